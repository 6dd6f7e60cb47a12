#include "dialect/msl/Target.h"

#include "dialect/msl/MSL.h"
#include "dialect/msl/ScalarTypes.h"

using namespace mlir;
using namespace triton_metal::msl;

static constexpr FeatureInfo features[] = {
    {Feature::BFloat, "bfloat (bfloat16)", "Metal 3.1, which macOS 14 has first",
     "use float16 or float32"},
    {Feature::SimdReductions, "reductions over a SIMD-group", "GPU family Apple7 (M1)",
     "run it on the host device"},
    {Feature::SimdgroupMatrix, "simdgroup matrices",
     "GPU family Apple7 (M1), but not the virtual GPU of a guest system",
     "run it on the host device"},
    {Feature::FloatAtomics, "atomic addition of floats", "Metal 3.0",
     "add integers, or reduce without atomics"},
    {Feature::Atomic64MinMax, "64-bit atomic min and max", "GPU family Apple8 (M2)", "use 32 bits"},
    {Feature::MemoryOrders, "memory orders other than relaxed",
     "Metal 3.2, which macOS 15 has first",
     "where no program reads what another one of the launch has written, use sem=\"relaxed\"; else "
     "read it in a second launch"},
    {Feature::FpPragmas, "#pragma METAL fp", "Metal 3.2", ""},
    {Feature::TensorOps, "Metal 4 tensor operations", "GPU family Apple10 (M5)", ""},
};

const FeatureInfo &triton_metal::msl::getFeatureInfo(Feature feature) {
  return *llvm::find_if(features, [&](const FeatureInfo &info) { return info.feature == feature; });
}

/// The instruction that is to be preferred comes last.
static constexpr MatrixInstruction matrixInstructions[] = {
    {Feature::SimdgroupMatrix, {8, 8, 8}, /*inRegisters=*/false},
    {Feature::TensorOps, {16, 32, 16}, /*inRegisters=*/true},
};

bool MatrixInstruction::takes(Type number) const {
  const ScalarType *scalar = ScalarType::get(number);
  return scalar && bitEnumContainsAny(scalar->matrices, feature);
}

const MatrixInstruction *MatrixInstruction::get(MatrixShape shape) {
  for (const MatrixInstruction &instruction : matrixInstructions)
    if (instruction.shape == shape)
      return &instruction;
  return nullptr;
}

bool MatrixInstruction::hasFragment(FragmentShape shape) {
  return llvm::any_of(matrixInstructions, [&](const MatrixInstruction &instruction) {
    return !instruction.inRegisters &&
           (shape == instruction.shape.getAccumulator() ||
            shape == instruction.shape.getOperand(0) || shape == instruction.shape.getOperand(1));
  });
}

bool triton_metal::msl::isMatrixNumber(Type number) {
  const ScalarType *scalar = ScalarType::get(number);
  return scalar && scalar->matrices != Feature::None;
}

const MatrixInstruction *
TargetAttr::getMatrixInstruction(function_ref<bool(const MatrixInstruction &)> suits) const {
  for (const MatrixInstruction &instruction : llvm::reverse(matrixInstructions))
    if (has(instruction.feature) && suits(instruction))
      return &instruction;
  return nullptr;
}

/// 32-bit registers of a thread on every M chip: the G13's instructions address 256 halves (Mesa's
/// documentation of the AGX instruction set).
static constexpr unsigned kRegisters = 128;

TargetAttr TargetAttr::getBaseline(MLIRContext *context) {
  Feature all = Feature::None;
  for (const FeatureInfo &info : features)
    if (info.feature != Feature::TensorOps)
      all = all | info.feature;
  return get(context, 3, 2, 1024, 32768, kRegisters, all);
}

TargetAttr TargetAttr::get(Operation *op) {
  auto module = dyn_cast<ModuleOp>(op);
  if (!module)
    module = op->getParentOfType<ModuleOp>();
  if (module)
    if (auto target = module->getAttrOfType<TargetAttr>(MSLDialect::getTargetAttrName()))
      return target;
  return getBaseline(op->getContext());
}

llvm::Expected<TargetAttr> TargetAttr::parseSpec(MLIRContext *context, StringRef spec) {
  TargetAttr baseline = getBaseline(context);
  spec = spec.trim();
  if (spec.empty())
    return baseline;
  auto problem = [](const Twine &message) {
    return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
  };
  unsigned major = 0, minor = 0, threads = baseline.getThreads();
  unsigned threadgroupBytes = baseline.getThreadgroupBytes();
  Feature found = Feature::None;
  SmallVector<StringRef> parts;
  spec.split(parts, ',');
  for (StringRef part : parts) {
    part = part.trim();
    StringRef rest = part;
    unsigned *limit = rest.consume_front("threads=")       ? &threads
                      : rest.consume_front("threadgroup=") ? &threadgroupBytes
                                                           : nullptr;
    if (limit) {
      if (rest.getAsInteger(10, *limit))
        return problem("the target's '" + part + "' is no number");
      continue;
    }
    if (rest.consume_front("msl=")) {
      auto [first, second] = rest.split('.');
      if (first.getAsInteger(10, major) || second.getAsInteger(10, minor))
        return problem("the target's '" + part + "' is no version of Metal, such as msl=3.1");
      if (major < 3)
        return problem("the target's Metal is " + rest + "; kernels need Metal 3 (macOS 13)");
      continue;
    }
    std::optional<Feature> feature = symbolizeFeature(part);
    if (!feature || part.contains('|') || *feature == Feature::None)
      return problem("there is no feature '" + part + "' that a target may have");
    found = found | *feature;
  }
  if (!major)
    return problem("the target '" + spec + "' names no version of Metal: add msl=3.2");
  return get(context, major, minor, threads, threadgroupBytes, kRegisters, found);
}

LogicalResult TargetAttr::verify(function_ref<InFlightDiagnostic()> emitError, unsigned major,
                                 unsigned, unsigned threads, unsigned, unsigned, Feature) {
  if (major < 3)
    return emitError() << "kernels need Metal 3 (macOS 13), not Metal " << major;
  if (threads < 32)
    return emitError() << "a threadgroup has at least one SIMD-group of 32 threads, not "
                       << threads;
  return success();
}
