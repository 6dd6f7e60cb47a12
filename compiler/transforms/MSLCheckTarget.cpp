#include "dialect/msl/MSL.h"
#include "dialect/msl/ScalarTypes.h"
#include "transforms/Passes.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_MSLCHECKTARGET
#include "transforms/Passes.h.inc"

namespace {

using namespace msl;

/// What the target must have for values of this type.
Feature getRequiredFeature(Type type) {
  if (auto pointer = dyn_cast<PtrType>(type))
    type = pointer.getElementType();
  const ScalarType *scalar = ScalarType::get(getElementTypeOrSelf(type));
  return scalar ? scalar->feature : Feature::None;
}

struct MSLCheckTargetPass : impl::MSLCheckTargetBase<MSLCheckTargetPass> {
  void runOnOperation() override {
    target = TargetAttr::get(getOperation());
    for (KernelOp kernel : getOperation().getOps<KernelOp>())
      if (failed(check(kernel)))
        return signalPassFailure();
    markAllAnalysesPreserved();
  }

private:
  LogicalResult check(KernelOp kernel) {
    if (kernel.getThreads() > target.getThreads())
      return kernel.emitError("has num_warps=")
             << kernel.getThreads() / 32 << ", which is " << kernel.getThreads()
             << " threads in a threadgroup, and the target takes " << target.getThreads()
             << ": launch it with num_warps="
             << llvm::bit_floor(std::max(1u, target.getThreads() / 32));
    // An operation that computes tells more than one that only carries a value, so the arguments
    // come last.
    WalkResult walked = kernel.getBody().walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (auto multiply = dyn_cast<MatrixMultiplyOpInterface>(op))
        if (failed(check(multiply)))
          return WalkResult::interrupt();
      Feature feature = Feature::None;
      if (auto needs = dyn_cast<TargetFeatureOpInterface>(op))
        feature = needs.getRequiredFeature();
      for (Type type : llvm::concat<const Type>(op->getResultTypes(), op->getOperandTypes()))
        if (feature == Feature::None)
          feature = getRequiredFeature(type);
      return failed(require(op, feature)) ? WalkResult::interrupt() : WalkResult::advance();
    });
    if (walked.wasInterrupted())
      return failure();
    for (BlockArgument argument : kernel.getBody().getArguments())
      if (failed(require(kernel, getRequiredFeature(argument.getType()))))
        return failure();
    return success();
  }

  LogicalResult check(MatrixMultiplyOpInterface multiply) {
    MatrixShape shape = multiply.getInstruction();
    const MatrixInstruction *instruction = MatrixInstruction::get(shape);
    if (!instruction)
      return multiply->emitError("multiplies matrices of ")
             << shape.str() << ", which no target does";
    if (failed(require(multiply, instruction->feature)))
      return failure();
    if (instruction->inRegisters && multiply.getNumberType(multiply.getA().getType()) !=
                                        multiply.getNumberType(multiply.getB().getType()))
      return multiply->emitError("multiplies matrices of two types, which ")
             << getFeatureInfo(instruction->feature).words << " do not take";
    for (Value factor : {multiply.getA(), multiply.getB()})
      if (Type number = multiply.getNumberType(factor.getType()); !instruction->takes(number))
        return multiply->emitError("multiplies matrices of ")
               << number << ", which " << getFeatureInfo(instruction->feature).words
               << " do not take";
    return success();
  }

  LogicalResult require(Operation *op, Feature feature) {
    if (feature == Feature::None || target.has(feature))
      return success();
    const FeatureInfo &info = getFeatureInfo(feature);
    InFlightDiagnostic error = op->emitError("uses ")
                               << info.words << ", which the target (Metal " << target.getMajor()
                               << "." << target.getMinor() << ") does not have: it takes "
                               << info.since;
    if (!info.instead.empty())
      error << "; " << info.instead;
    return error;
  }

  TargetAttr target;
};

} // namespace
} // namespace triton_metal
