#include "transforms/ValueParts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"

using namespace mlir;

namespace triton_metal {

/// Operations whose operands, results and block arguments are carried from one to another.
static bool carriesValues(Operation *op) {
  return isa<scf::ForOp, scf::IfOp, scf::WhileOp, scf::ExecuteRegionOp, scf::IndexSwitchOp,
             scf::YieldOp, scf::ConditionOp>(op);
}

/// The location of a part. It keeps the value's name, if there is one, with the suffix.
static Location locationOf(Location loc, StringRef suffix) {
  auto named = dyn_cast<NameLoc>(loc);
  if (!named || suffix.empty())
    return loc;
  return NameLoc::get(StringAttr::get(loc.getContext(), named.getName().getValue() + suffix),
                      named.getChildLoc());
}

LogicalResult ValueParts::run(tt::FuncOp function, ArrayRef<StringRef> keptAttrs) {
  expandArguments(function.getBody().front());
  enter(function);
  LogicalResult result = rewriteBlock(function.getBody().front());
  if (failed(result))
    return failure();
  for (Operation *op : llvm::reverse(dead)) {
    op->dropAllUses();
    op->erase();
  }
  updateType(function, keptAttrs);
  for (BlockArgument argument : deadArguments)
    argument.getOwner()->eraseArgument(argument.getArgNumber());
  return success();
}

LogicalResult ValueParts::rewriteBlock(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(block)) {
    Operation *current = &op;
    auto touched = [&](TypeRange types) {
      return llvm::any_of(types, [&](Type type) { return hasParts(type); });
    };
    bool takes = touched(op.getOperandTypes()), makes = touched(op.getResultTypes());
    if (carriesValues(&op)) {
      if (takes || makes)
        current = expand(&op);
    } else if ((takes || makes) && isa<arith::SelectOp, ub::PoisonOp>(op)) {
      expandElementwise(&op);
      continue;
    } else if (takes || makes) {
      if (failed(rewrite(&op)))
        return failure();
      continue;
    }
    for (Region &region : current->getRegions())
      for (Block &inner : region) {
        expandArguments(inner);
        if (failed(rewriteBlock(inner)))
          return failure();
      }
  }
  return success();
}

void ValueParts::expandArguments(Block &block) {
  for (BlockArgument argument : llvm::to_vector(block.getArguments())) {
    SmallVector<PartType> types = partsOf(argument.getType());
    if (types.empty())
      continue;
    SmallVector<Value> values;
    unsigned at = argument.getArgNumber();
    for (const PartType &part : types)
      values.push_back(
          block.insertArgument(++at, part.type, locationOf(argument.getLoc(), part.suffix)));
    set(argument, values);
    deadArguments.push_back(argument);
  }
}

/// The operation with the parts of its operands and results, and with its regions.
Operation *ValueParts::expand(Operation *op) {
  SmallVector<Value> operands;
  for (Value operand : op->getOperands()) {
    if (hasParts(operand.getType()))
      llvm::append_range(operands, get(operand));
    else
      operands.push_back(operand);
  }
  SmallVector<Type> types;
  for (Type type : op->getResultTypes()) {
    SmallVector<PartType> expanded = partsOf(type);
    for (const PartType &part : expanded)
      types.push_back(part.type);
    if (expanded.empty())
      types.push_back(type);
  }
  OpBuilder builder(op);
  OperationState state(op->getLoc(), op->getName(), operands, types);
  state.propertiesAttr = op->getPropertiesAsAttribute();
  state.addAttributes(llvm::to_vector(op->getDiscardableAttrs()));
  for (Region &region : op->getRegions())
    state.addRegion()->takeBody(region);
  Operation *wider = builder.create(state);

  unsigned at = 0;
  for (Value result : op->getResults()) {
    size_t count = partsOf(result.getType()).size();
    if (count)
      set(result, llvm::to_vector_of<Value>(wider->getResults().slice(at, count)));
    else
      result.replaceAllUsesWith(wider->getResult(at));
    at += count ? count : 1;
  }
  eraseLater(op);
  return wider;
}

/// A selection, or an undefined value: the same of each part.
void ValueParts::expandElementwise(Operation *op) {
  OpBuilder builder(op);
  SmallVector<Value> values;
  Value result = op->getResult(0);
  for (auto [index, part] : llvm::enumerate(partsOf(result.getType()))) {
    if (auto select = dyn_cast<arith::SelectOp>(op)) {
      values.push_back(arith::SelectOp::create(builder, op->getLoc(), select.getCondition(),
                                               get(select.getTrueValue())[index],
                                               get(select.getFalseValue())[index]));
    } else {
      values.push_back(ub::PoisonOp::create(builder, op->getLoc(), part.type,
                                            cast<ub::PoisonOp>(op).getValueAttr()));
    }
  }
  set(result, values);
  eraseLater(op);
}

/// Makes the function's type that of its block's arguments.
void ValueParts::updateType(tt::FuncOp function, ArrayRef<StringRef> keptAttrs) {
  SmallVector<Type> inputs;
  SmallVector<DictionaryAttr> attributes;
  MLIRContext *context = function.getContext();
  for (auto [index, type] : llvm::enumerate(function.getArgumentTypes())) {
    SmallVector<PartType> expanded = partsOf(type);
    DictionaryAttr own = function.getArgAttrDict(index);
    if (expanded.empty()) {
      inputs.push_back(type);
      attributes.push_back(own ? own : DictionaryAttr::get(context));
      continue;
    }
    NamedAttrList kept;
    for (StringRef name : keptAttrs)
      if (Attribute attr = own ? own.get(name) : Attribute())
        kept.set(name, attr);
    for (const PartType &part : expanded) {
      inputs.push_back(part.type);
      if (part.divisibility > 1)
        kept.set(tt::divisibilityAttrName, Builder(context).getI32IntegerAttr(part.divisibility));
      attributes.push_back(kept.getDictionary(context));
      kept = {};
    }
  }
  if (inputs.size() == function.getArgumentTypes().size())
    return;
  function.setType(FunctionType::get(context, inputs, function.getResultTypes()));
  function.setAllArgAttrs(attributes);
}

} // namespace triton_metal
