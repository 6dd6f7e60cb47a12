// Functions, branches, loops, and the regions of reductions, scans and maps.
#include "language/Builder.h"

#include "dialect/tt/TT.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace triton_metal::language {

static llvm::SmallVector<mlir::Value> handlesOf(llvm::ArrayRef<Value> values) {
  return llvm::map_to_vector(values, [](const Value &value) { return value.handle; });
}
static llvm::SmallVector<Type> typesOf(llvm::ArrayRef<Value> values) {
  return llvm::map_to_vector(values, [](const Value &value) { return value.type; });
}
static std::vector<Value> wrap(ValueRange handles, llvm::ArrayRef<Type> types) {
  std::vector<Value> values;
  for (auto [handle, type] : llvm::zip_equal(handles, types))
    values.push_back({handle, type});
  return values;
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

std::vector<Value> Builder::beginFunction(llvm::StringRef name, llvm::ArrayRef<Type> params,
                                          llvm::ArrayRef<std::string> names, bool isKernel,
                                          bool noinline, llvm::ArrayRef<int64_t> divisibility,
                                          llvm::ArrayRef<int64_t> memory) {
  frames.push_back({nullptr, builder.saveInsertionPoint(), location});
  llvm::SmallVector<mlir::Type> types =
      llvm::map_to_vector(params, [&](const Type &type) { return mlirType(type); });
  builder.setInsertionPointToEnd(module->getOp().getBody());
  NamedAttribute attributes[] = {
      builder.getNamedAttr("sym_visibility",
                           builder.getStringAttr(isKernel ? "public" : "private")),
      builder.getNamedAttr("noinline", builder.getBoolAttr(noinline))};
  auto function =
      tt::FuncOp::create(builder, location, name, builder.getFunctionType(types, {}), attributes);
  frames.back().function = function;
  if (isKernel) // as Triton has it
    module->getOp()->setLoc(location);
  for (auto [index, value] : llvm::enumerate(divisibility))
    if (value)
      function.setArgAttr(index,
                          value < 0 ? tt::testedDivisibilityAttrName : tt::divisibilityAttrName,
                          builder.getI32IntegerAttr(static_cast<int32_t>(std::abs(value))));
  for (auto [index, value] : llvm::enumerate(memory))
    if (value)
      function.setArgAttr(index, tt::memoryAttrName,
                          builder.getI32IntegerAttr(static_cast<int32_t>(value)));
  llvm::SmallVector<Location> locations = llvm::map_to_vector(names, [&](llvm::StringRef argument) {
    return Location(NameLoc::get(builder.getStringAttr(argument), location));
  });
  Block *entry = builder.createBlock(&function.getBody(), {}, types, locations);
  return wrap(entry->getArguments(), params);
}

void Builder::setArgumentFlag(const Value &argument, llvm::StringRef name, bool flag) {
  llvm::cast<tt::FuncOp>(frames.back().function)
      .setArgAttr(llvm::cast<BlockArgument>(argument.handle).getArgNumber(), name,
                  builder.getBoolAttr(flag));
}

void Builder::emitReturn(Block *block, llvm::ArrayRef<Value> values) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(block);
  tt::ReturnOp::create(builder, location, handlesOf(values));
}

void Builder::endFunction(llvm::ArrayRef<Type> results) {
  Frame frame = frames.pop_back_val();
  auto function = llvm::cast<tt::FuncOp>(frame.function);
  llvm::SmallVector<mlir::Type> types =
      llvm::map_to_vector(results, [&](const Type &type) { return mlirType(type); });
  function.setType(builder.getFunctionType(function.getFunctionType().getInputs(), types));
  module->results[function.getName()] = results.vec();
  builder.restoreInsertionPoint(frame.point);
  location = frame.location;
}

bool Builder::hasFunction(llvm::StringRef name) const { return module->results.contains(name); }

llvm::Expected<std::vector<Value>> Builder::call(llvm::StringRef name,
                                                 llvm::ArrayRef<Value> arguments) {
  auto found = module->results.find(name);
  if (found == module->results.end())
    return valueError("function " + name + " calls itself: recursion is not supported");
  llvm::SmallVector<mlir::Type> types =
      llvm::map_to_vector(found->second, [&](const Type &type) { return mlirType(type); });
  auto op = tt::CallOp::create(builder, location, name, TypeRange(types), handlesOf(arguments));
  return wrap(op->getResults(), found->second);
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

Block *Builder::createBlock() {
  auto *block = new Block();
  llvm::cast<tt::FuncOp>(frames.back().function).getBody().push_back(block);
  return block;
}

std::vector<Value> Builder::addArguments(Block *block, llvm::ArrayRef<Type> types) {
  for (const Type &type : types)
    block->addArgument(mlirType(type), location);
  return wrap(block->getArguments(), types);
}

void Builder::branch(Block *target, llvm::ArrayRef<Value> values) {
  cf::BranchOp::create(builder, location, target, handlesOf(values));
}

void Builder::condBranch(const Value &test, Block *thenBlock, Block *elseBlock) {
  cf::CondBranchOp::create(builder, location, test.handle, thenBlock, elseBlock);
}

//===----------------------------------------------------------------------===//
// Conditions and loops
//===----------------------------------------------------------------------===//

Result Builder::condition(const Value &value) {
  if (value.type.isBlock() && value.type.numElements() != 1)
    return typeError(
        "the truth of a tile (" + value.type.str() +
        ") is ambiguous: a condition must be a scalar. Choose by element with "
        "tl.where(condition, a, b) or a mask, or reduce the tile with tl.max or tl.min");
  Result scalar = unsplat(value);
  if (!scalar)
    return scalar;
  return cast(*scalar, Type(ScalarKind::Int1));
}

llvm::Expected<Type> Builder::inductionType(const Operand &lower, const Operand &upper,
                                            const Operand &step) {
  std::optional<Type> result;
  for (auto [name, operand] :
       {std::pair("lower bound", &lower), {"upper bound", &upper}, {"step", &step}}) {
    llvm::Expected<Type> type = Type();
    if (const Value *value = std::get_if<Value>(operand))
      type = value->type;
    else
      type = typeOf(std::get<Constant>(*operand));
    if (!type)
      return type;
    if (type->isBlock() || !type->isInteger())
      return typeError(llvm::Twine("the ") + name + " of a loop must be an integer scalar, not " +
                       type->str() + (type->isFloating() ? ": divide integers with //" : ""));
    if (!result) {
      result = *type;
      continue;
    }
    llvm::Expected<Type> joined = promoteIntegers(*result, *type);
    if (!joined)
      return joined;
    result = *joined;
  }
  return *result;
}

/// Asks LLVM not to move anything out of a loop.
static void keepInLoop(OpBuilder &ops, Operation *loop) {
  MLIRContext *context = ops.getContext();
  BoolAttr yes = ops.getBoolAttr(true);
  auto licm = LLVM::LoopLICMAttr::get(context, yes, yes);
  loop->setAttr("llvm.loop_annotation",
                LLVM::LoopAnnotationAttr::get(context, {}, {}, {}, {}, {}, licm, {}, {}, {}, {}, {},
                                              {}, {}, {}, {}));
}

llvm::Expected<std::unique_ptr<ForLoop>> ForLoop::begin(Builder &builder, const Operand &lower,
                                                        const Operand &upper, const Operand &step,
                                                        llvm::ArrayRef<Value> inits,
                                                        const Attributes &attributes) {
  llvm::Expected<Type> type = builder.inductionType(lower, upper, step);
  if (!type)
    return type.takeError();
  // scf.for counts up: a constant negative step runs the mirrored loop, from which i is computed.
  Operand low = lower, high = upper, stride = step;
  const Constant *constantStep = std::get_if<Constant>(&step);
  bool isNegative = constantStep && constantStep->isNegative();
  if (constantStep && constantStep->integer == 0)
    return valueError("the step of a loop must not be 0");
  if (isNegative) {
    std::swap(low, high);
    stride = Constant::of(-constantStep->integer);
  }
  Value bounds[3];
  const Operand *operands[] = {&low, &high, &stride};
  for (auto [bound, operand] : llvm::zip(bounds, operands)) {
    Result converted = std::holds_alternative<Constant>(*operand)
                           ? builder.constant(std::get<Constant>(*operand), *type)
                           : builder.cast(*operand, *type);
    if (!converted && isNegative && operand == &stride) {
      llvm::consumeError(converted.takeError());
      return valueError("the step " + constantStep->str() + " of a loop is out of range: " +
                        type->str() + " does not have its negative");
    }
    if (!converted)
      return converted.takeError();
    bound = *converted;
  }
  std::unique_ptr<ForLoop> loop(new ForLoop(builder));
  loop->op = scf::ForOp::create(builder.builder, builder.location, bounds[0].handle,
                                bounds[1].handle, bounds[2].handle, handlesOf(inits),
                                /*bodyBuilder=*/nullptr, type->isUnsigned());
  scf::ForOp op = loop->op;
  OpBuilder &ops = builder.builder;
  if (attributes.numStages)
    op->setAttr("tt.num_stages",
                ops.getI32IntegerAttr(static_cast<int32_t>(*attributes.numStages)));
  if (attributes.unrollFactor)
    op->setAttr("tt.loop_unroll_factor",
                ops.getI32IntegerAttr(static_cast<int32_t>(*attributes.unrollFactor)));
  if (attributes.disallowAccMultiBuffer)
    op->setAttr("tt.disallow_acc_multi_buffer", ops.getUnitAttr());
  if (attributes.flatten)
    op->setAttr("tt.flatten", ops.getUnitAttr());
  if (attributes.warpSpecialize)
    op->setAttr("tt.warp_specialize", ops.getUnitAttr());
  if (attributes.disableLicm)
    keepInLoop(ops, op);

  Block *body = op.getBody();
  if (!body->empty() && body->mightHaveTerminator())
    body->back().erase();
  ops.setInsertionPointToEnd(body);
  loop->arguments = wrap(op.getRegionIterArgs(), typesOf(inits));
  loop->induction = {op.getInductionVar(), *type};
  if (isNegative) {
    Value mirrored = builder.make<arith::SubIOp>(*type, bounds[1].handle, op.getInductionVar());
    loop->induction = builder.make<arith::AddIOp>(*type, mirrored.handle, bounds[0].handle);
  }
  return loop;
}

std::vector<Value> ForLoop::finish(llvm::ArrayRef<Value> yields) {
  scf::YieldOp::create(builder.builder, op.getLoc(), handlesOf(yields));
  builder.builder.setInsertionPointAfter(op);
  return wrap(op.getResults(), typesOf(arguments));
}

WhileLoop::WhileLoop(Builder &builder, llvm::ArrayRef<Value> inits) : builder(builder) {
  for (const Value &init : inits)
    types.push_back(init.type);
  OpBuilder &ops = builder.builder;
  llvm::SmallVector<mlir::Value> handles = handlesOf(inits);
  op = scf::WhileOp::create(ops, builder.location, TypeRange(ValueRange(handles)), handles);
  llvm::SmallVector<Location> locations =
      llvm::map_to_vector(handles, [](mlir::Value value) { return value.getLoc(); });
  ops.createBlock(&op.getBefore(), {}, TypeRange(ValueRange(handles)), locations);
  arguments = wrap(op.getBeforeArguments(), types);
}

void WhileLoop::disableLicm() { keepInLoop(builder.builder, op); }

std::vector<Value> WhileLoop::endCondition(const Value &test) {
  OpBuilder &ops = builder.builder;
  scf::ConditionOp::create(ops, builder.location, test.handle, op.getBeforeArguments());
  llvm::SmallVector<Location> locations = llvm::map_to_vector(
      op.getBeforeArguments(), [](BlockArgument argument) { return argument.getLoc(); });
  ops.createBlock(&op.getAfter(), {}, ValueRange(op.getBeforeArguments()).getTypes(), locations);
  return wrap(op.getAfterArguments(), types);
}

std::vector<Value> WhileLoop::finish(llvm::ArrayRef<Value> yields) {
  scf::YieldOp::create(builder.builder, op.getLoc(), handlesOf(yields));
  builder.builder.setInsertionPointAfter(op);
  return wrap(op.getResults(), types);
}

IfRegion::IfRegion(Builder &builder, const Value &test) : builder(builder) {
  op = scf::IfOp::create(builder.builder, builder.location, TypeRange(), test.handle,
                         /*withElseRegion=*/true);
  op.thenBlock()->clear();
  op.elseBlock()->clear();
  builder.builder.setInsertionPointToEnd(op.thenBlock());
}

void IfRegion::beginElse() { builder.builder.setInsertionPointToEnd(op.elseBlock()); }

/// The result types are known only now, so the regions move to an operation that has them.
std::vector<Value> IfRegion::finish(llvm::ArrayRef<Value> thenValues,
                                    llvm::ArrayRef<Value> elseValues) {
  OpBuilder &ops = builder.builder;
  ops.setInsertionPoint(op);
  llvm::SmallVector<mlir::Value> thenHandles = handlesOf(thenValues);
  auto typed = scf::IfOp::create(ops, op.getLoc(), TypeRange(ValueRange(thenHandles)),
                                 op.getCondition(), /*addThenBlock=*/false, /*addElseBlock=*/false);
  typed.getThenRegion().takeBody(op.getThenRegion());
  typed.getElseRegion().takeBody(op.getElseRegion());
  op.erase();
  ops.setInsertionPointToEnd(typed.thenBlock());
  scf::YieldOp::create(ops, typed.getLoc(), thenHandles);
  ops.setInsertionPointToEnd(typed.elseBlock());
  scf::YieldOp::create(ops, typed.getLoc(), handlesOf(elseValues));
  if (typed.getResults().empty() && typed.elseBlock()->getOperations().size() == 1)
    typed.getElseRegion().front().erase();
  ops.setInsertionPointAfter(typed);
  return wrap(typed.getResults(), typesOf(thenValues));
}

//===----------------------------------------------------------------------===//
// Reductions and scans
//===----------------------------------------------------------------------===//

static llvm::Expected<int64_t> wrapAxis(const char *what, llvm::ArrayRef<Value> inputs,
                                        int64_t axis) {
  if (inputs.empty())
    return valueError(llvm::Twine(what) + " needs at least one operand");
  const Type &first = inputs.front().type;
  int64_t rank = static_cast<int64_t>(first.getShape().size());
  if (rank == 0)
    return valueError(llvm::Twine(what) + " takes tiles, not the scalar " + first.str());
  for (const Value &input : inputs)
    if (input.type.getShape() != first.getShape())
      return valueError(llvm::Twine(what) + ": all operands must have the same shape, not " +
                        first.str() + " and " + input.type.str());
  if (axis < -rank || axis >= rank)
    return valueError(llvm::Twine(what) + ": axis " + llvm::Twine(axis) + " is not in " +
                      llvm::Twine(-rank) + " to " + llvm::Twine(rank - 1) + ", the dimensions of " +
                      first.str());
  return axis < 0 ? axis + rank : axis;
}

/// The arguments of a combine function: an element of each operand, twice.
static llvm::SmallVector<Type> twoOfEach(llvm::ArrayRef<Value> inputs) {
  llvm::SmallVector<Type> elements;
  for (int repeat = 0; repeat < 2; ++repeat)
    for (const Value &input : inputs)
      elements.push_back(input.type.scalar());
  return elements;
}

void CombineRegion::open(Region &region, llvm::ArrayRef<Type> elements) {
  llvm::SmallVector<mlir::Type> elementTypes =
      llvm::map_to_vector(elements, [&](const Type &type) { return builder.mlirType(type); });
  llvm::SmallVector<Location> locations(elements.size(), builder.location);
  Block *block = builder.builder.createBlock(&region, {}, elementTypes, locations);
  arguments = wrap(block->getArguments(), elements);
}

llvm::Expected<std::unique_ptr<CombineRegion>>
CombineRegion::reduce(Builder &builder, llvm::ArrayRef<Value> inputs, int64_t axis) {
  llvm::Expected<int64_t> dimension = wrapAxis("reduce", inputs, axis);
  if (!dimension)
    return dimension.takeError();
  std::unique_ptr<CombineRegion> combine(new CombineRegion(builder));
  auto op = tt::ReduceOp::create(builder.builder, builder.location, handlesOf(inputs),
                                 static_cast<int>(*dimension));
  combine->op = op;
  for (const Value &input : inputs) {
    llvm::SmallVector<int64_t> shape(input.type.getShape());
    shape.erase(shape.begin() + *dimension);
    combine->types.push_back(input.type.withShape(shape));
  }
  combine->open(op.getCombineOp(), twoOfEach(inputs));
  return combine;
}

llvm::Expected<std::unique_ptr<CombineRegion>>
CombineRegion::scan(Builder &builder, llvm::ArrayRef<Value> inputs, int64_t axis, bool reverse) {
  llvm::Expected<int64_t> dimension = wrapAxis("associative_scan", inputs, axis);
  if (!dimension)
    return dimension.takeError();
  std::unique_ptr<CombineRegion> combine(new CombineRegion(builder));
  auto op = tt::ScanOp::create(builder.builder, builder.location, handlesOf(inputs),
                               static_cast<int>(*dimension), reverse);
  combine->op = op;
  combine->isScan = true;
  for (const Value &input : inputs)
    combine->types.push_back(input.type);
  combine->open(op.getCombineOp(), twoOfEach(inputs));
  return combine;
}

llvm::Expected<std::unique_ptr<CombineRegion>>
CombineRegion::map(Builder &builder, llvm::ArrayRef<Value> inputs, int64_t pack) {
  llvm::Expected<int64_t> dimension = wrapAxis("map_elementwise", inputs, -1);
  if (!dimension)
    return dimension.takeError();
  llvm::ArrayRef<int64_t> shape = inputs.front().type.getShape();
  int64_t count = mlir::ShapedType::getNumElements(shape);
  if (pack < 1 || !llvm::isPowerOf2_64(pack) || pack > count)
    return valueError("map_elementwise: pack must be a power of two from 1 to " +
                      llvm::Twine(count) + ", the elements of a tile, not " + llvm::Twine(pack));
  std::unique_ptr<CombineRegion> combine(new CombineRegion(builder));
  combine->pack = pack;
  combine->shape.assign(shape.begin(), shape.end());
  OperationState state(builder.location, tt::MapElementwiseOp::getOperationName());
  state.addOperands(handlesOf(inputs));
  state.addAttribute("pack", builder.builder.getI32IntegerAttr(static_cast<int32_t>(pack)));
  state.addRegion();
  combine->op = builder.builder.create(state);
  llvm::SmallVector<Type> elements;
  for (const Value &input : inputs)
    elements.append(pack, input.type.scalar());
  combine->open(combine->op->getRegion(0), elements);
  return combine;
}

Results CombineRegion::finishMap(llvm::ArrayRef<Value> results) {
  if (results.empty() || results.size() % pack != 0)
    return typeError("the function of map_elementwise must return " + llvm::Twine(pack) +
                     " values for each result, but returns " + llvm::Twine(results.size()));
  for (auto [index, result] : llvm::enumerate(results)) {
    if (result.type.isBlock() || result.type != results[index / pack * pack].type)
      return typeError("the function of map_elementwise returns " + result.type.str() +
                       " as value " + llvm::Twine(index) +
                       "; it must return scalars, of one type for each result");
    if (index % pack == 0)
      types.push_back(result.type.withShape(shape));
  }
  tt::MapElementwiseReturnOp::create(builder.builder, builder.location, handlesOf(results));
  // The operation again, now that the types of its results are known.
  builder.builder.setInsertionPointAfter(op);
  OperationState state(op->getLoc(), op->getName());
  state.addOperands(op->getOperands());
  for (const Type &type : types)
    state.addTypes(builder.mlirType(type));
  state.addAttribute("pack", builder.builder.getI32IntegerAttr(static_cast<int32_t>(pack)));
  state.addRegion()->takeBody(op->getRegion(0));
  Operation *typed = builder.builder.create(state);
  op->erase();
  op = typed;
  return wrap(op->getResults(), types);
}

Results CombineRegion::finish(llvm::ArrayRef<Value> results) {
  if (pack)
    return finishMap(results);
  if (results.size() != types.size())
    return typeError("the combine function must return " + llvm::Twine(types.size()) +
                     " values, but returns " + llvm::Twine(results.size()));
  for (auto [index, result] : llvm::enumerate(results))
    if (result.type != types[index].scalar())
      return typeError("the combine function must return " + types[index].scalar().str() +
                       " as value " + llvm::Twine(index) + ", but returns " + result.type.str());
  if (isScan)
    tt::ScanReturnOp::create(builder.builder, builder.location, handlesOf(results));
  else
    tt::ReduceReturnOp::create(builder.builder, builder.location, handlesOf(results));
  builder.builder.setInsertionPointAfter(op);
  return wrap(op->getResults(), types);
}

} // namespace triton_metal::language
