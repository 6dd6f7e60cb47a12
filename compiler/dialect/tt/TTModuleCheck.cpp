// Checks a module before verifiers and passes work on it.

#include "dialect/tt/Import.h"
#include "dialect/tt/TT.h"
#include "dialect/ttg/TTG.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;

namespace triton_metal::tt {

namespace {

/// The largest rank of a tile. At most 20 dimensions have a size other than 1.
constexpr int64_t kMaxRank = 32;

/// The reason why a value cannot have this type; empty if it can.
std::string problemOf(Type type) {
  if (auto integer = dyn_cast<IntegerType>(type)) {
    if (!integer.isSignless() || !llvm::is_contained({1, 8, 16, 32, 64}, integer.getWidth()))
      return "an integer is i1, i8, i16, i32 or i64";
    return {};
  }
  if (auto real = dyn_cast<FloatType>(type))
    return real.getWidth() > 64 ? "a floating-point number has at most 64 bits" : "";
  if (isa<IndexType>(type))
    return {};
  if (auto pointer = dyn_cast<PtrType>(type)) {
    if (auto block = dyn_cast<RankedTensorType>(pointer.getPointeeType())) {
      if (block.getRank() == 0 || !block.getElementType().isIntOrFloat())
        return "a block has dimensions, and numbers as its elements";
      return problemOf(block);
    }
    // This is a loop because pointers may point to pointers.
    while (auto inner = dyn_cast<PtrType>(pointer.getPointeeType()))
      pointer = inner;
    if (isa<RankedTensorType>(pointer.getPointeeType()))
      return "nothing points to a block pointer";
    return problemOf(pointer.getPointeeType());
  }
  if (auto desc = dyn_cast<TensorDescType>(type))
    return problemOf(desc.getTileType());
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return "Triton IR has numbers, pointers, tensor descriptors and tiles of numbers and pointers";
  if (auto pointer = dyn_cast<PtrType>(tensor.getElementType());
      pointer && isa<RankedTensorType>(pointer.getPointeeType()))
    return "a tile has no block pointers";
  if (tensor.getEncoding())
    return "a tile of Triton IR has no layout yet";
  if (tensor.getRank() > kMaxRank)
    return "a tile has at most " + std::to_string(kMaxRank) + " dimensions";
  int64_t elements = 1;
  for (int64_t size : tensor.getShape()) {
    if (size <= 0 || !llvm::isPowerOf2_64(size))
      return "the sizes of a tile must be powers of two";
    // Neither factor exceeds the limit, so the product does not overflow.
    elements = size > kMaxTileElements ? size : elements * size;
    if (elements > kMaxTileElements)
      return "a tile has at most " + std::to_string(kMaxTileElements) + " elements";
  }
  return problemOf(tensor.getElementType());
}

class ModuleCheck {
public:
  LogicalResult run(ModuleOp module) {
    if (module->getNumRegions() != 1 || !module.getRegion().hasOneBlock())
      return module.emitError("has no body");
    for (Operation &op : *module.getBody()) {
      if (!isa<FuncOp>(op))
        return op.emitError("'") << op.getName() << "' stands beside the functions of the module";
      if (failed(check(&op)))
        return failure();
    }
    return success();
  }

private:
  LogicalResult checkType(Operation *op, Type type) {
    if (good.contains(type))
      return success();
    if (std::string problem = problemOf(type); !problem.empty())
      return op->emitError("'") << op->getName() << "' has a value of type " << type << ", but "
                                << problem;
    good.insert(type);
    return success();
  }

  static bool isOfTritonIR(Operation *op) {
    return isa_and_nonnull<TTDialect, arith::ArithDialect, math::MathDialect, scf::SCFDialect,
                           cf::ControlFlowDialect, ub::UBDialect>(op->getDialect()) ||
           isa<LLVM::AssumeOp, ttg::BarrierOp>(op);
  }

  /// Checks the attribute with the sizes of the operand groups, which accessors rely on.
  static LogicalResult checkSegments(Operation *op, StringRef name, unsigned count) {
    std::optional<Attribute> attr = op->getInherentAttr(name);
    auto sizes = attr ? dyn_cast_if_present<DenseI32ArrayAttr>(*attr) : DenseI32ArrayAttr();
    if (!sizes)
      return success();
    int64_t sum = 0;
    for (int32_t size : sizes.asArrayRef()) {
      if (size < 0)
        return op->emitError("'") << op->getName() << "' has a negative number in '" << name << "'";
      sum += size;
    }
    if (sum != count)
      return op->emitError("'") << op->getName() << "' has " << count << " values, but '" << name
                                << "' counts " << sum;
    return success();
  }

  /// Checks a promise about numbers: positive integers. 0 would promise anything.
  static LogicalResult checkHint(Operation *op, StringAttr name, Attribute hint) {
    static constexpr StringLiteral names[] = {tt::divisibilityAttrName, tt::contiguityAttrName,
                                              tt::constancyAttrName, testedDivisibilityAttrName};
    if (!llvm::is_contained(names, name.getValue()))
      return success();
    auto isPositive = [](const APInt &value) {
      return value.getSignificantBits() <= 64 && value.isStrictlyPositive();
    };
    auto integer = dyn_cast<IntegerAttr>(hint);
    auto dense = dyn_cast<DenseIntElementsAttr>(hint);
    if (integer ? isPositive(integer.getValue())
                : dense && llvm::all_of(dense.getValues<APInt>(), isPositive))
      return success();
    return op->emitError("'") << name.getValue() << "' is " << hint
                              << ", but must be a positive integer, or one for each dimension";
  }

  static LogicalResult checkHints(Operation *op) {
    for (NamedAttribute attr : op->getDiscardableAttrs())
      if (failed(checkHint(op, attr.getName(), attr.getValue())))
        return failure();
    // The function has not been verified yet. It may lack a type, and its attributes may have any
    // form.
    auto function = dyn_cast<FunctionOpInterface>(op);
    ArrayAttr arguments = function ? function.getArgAttrsAttr() : ArrayAttr();
    if (!arguments)
      return success();
    for (Attribute argument : arguments)
      if (auto attrs = dyn_cast_if_present<DictionaryAttr>(argument))
        for (NamedAttribute attr : attrs)
          if (failed(checkHint(op, attr.getName(), attr.getValue())))
            return failure();
    return success();
  }

  LogicalResult check(Operation *op) {
    if (!isOfTritonIR(op))
      return op->emitError("'") << op->getName()
                                << "' is not an operation of Triton IR that triton-metal knows";
    if (failed(checkHints(op)) ||
        failed(checkSegments(op, "operandSegmentSizes", op->getNumOperands())) ||
        failed(checkSegments(op, "resultSegmentSizes", op->getNumResults())))
      return failure();
    if (auto function = dyn_cast<FuncOp>(op); function && !isa<ModuleOp>(op->getParentOp()))
      return op->emitError("a function stands within another");
    if (auto constant = dyn_cast<arith::ConstantOp>(op);
        constant && constant.getValueAttr() &&
        !isa<IntegerAttr, FloatAttr, DenseElementsAttr>(constant.getValue()))
      return op->emitError("a constant is a number or a dense tile of numbers, not ")
             << constant.getValue();
    for (Type type : op->getResultTypes())
      if (failed(checkType(op, type)))
        return failure();
    for (Region &region : op->getRegions())
      for (Block &block : region) {
        for (Type type : block.getArgumentTypes())
          if (failed(checkType(op, type)))
            return failure();
        for (Operation &inner : block)
          if (failed(check(&inner)))
            return failure();
      }
    return success();
  }

  DenseSet<Type> good;
};

} // namespace

LogicalResult checkModule(ModuleOp module) { return ModuleCheck().run(module); }

} // namespace triton_metal::tt
