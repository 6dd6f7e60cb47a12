#include "target/msl/Target.h"

#include "dialect/msl/MSL.h"

#include "mlir/Pass/Pass.h"

using namespace mlir;

namespace triton_metal {

namespace {

struct FeatureInfo {
  Feature feature;
  llvm::StringRef name;
  /// As it stands in a diagnostic, and what to do without it.
  llvm::StringRef words, since, instead;
};

constexpr FeatureInfo features[] = {
    {Feature::BFloat, "bfloat", "bfloat (bfloat16)", "Metal 3.1, which macOS 14 has first",
     "use float16 or float32"},
    {Feature::SimdReductions, "simd_reductions", "reductions over a SIMD-group",
     "GPU family Apple7 (M1)", "run it on the host device"},
    {Feature::SimdgroupMatrix, "simdgroup_matrix", "simdgroup matrices (tl.dot)",
     "GPU family Apple7 (M1), but not the virtual GPU of a guest system",
     "run it on the host device"},
    {Feature::FloatAtomics, "float_atomics", "atomic addition of floats", "Metal 3.0",
     "add integers, or reduce without atomics"},
    {Feature::Atomic64MinMax, "atomic64_min_max", "64-bit atomic min and max",
     "GPU family Apple8 (M2)", "use 32 bits"},
    {Feature::MemoryOrders, "memory_orders", "memory orders other than relaxed",
     "Metal 3.2, which macOS 15 has first",
     "where no program reads what another one of the launch has written, use sem=\"relaxed\"; else "
     "read it in a second "
     "launch"},
    {Feature::FpPragmas, "fp_pragmas", "#pragma METAL fp", "Metal 3.2", ""},
    {Feature::TensorOps, "tensor_ops", "Metal 4 tensor operations", "GPU family Apple10 (M5)", ""},
};

const FeatureInfo &infoOf(Feature feature) {
  return *llvm::find_if(features, [&](const FeatureInfo &info) { return info.feature == feature; });
}

bool isBFloat(Type type) {
  if (auto pointer = dyn_cast<msl::PtrType>(type))
    return pointer.getElementType().isBF16();
  return getElementTypeOrSelf(type).isBF16();
}

/// What an operation needs of the target, beside the types that it makes.
std::optional<Feature> featureOf(Operation *op) {
  if (isa<msl::MmaOp, msl::MatrixLoadOp, msl::MultiplyAccumulateOp>(op))
    return Feature::SimdgroupMatrix;
  if (isa<msl::FenceOp>(op))
    return Feature::MemoryOrders;
  if (isa<msl::SimdReduceOp>(op))
    return Feature::SimdReductions;
  if (auto atomic = dyn_cast<msl::AtomicRMWOp>(op)) {
    if (isa<FloatType>(getElementTypeOrSelf(atomic.getType())) &&
        atomic.getKind() == msl::AtomicKind::FAdd)
      return Feature::FloatAtomics;
    if (getElementTypeOrSelf(atomic.getType()).isInteger(64))
      return Feature::Atomic64MinMax;
  }
  return std::nullopt;
}

LogicalResult refuse(Operation *op, const Target &target, Feature feature) {
  const FeatureInfo &info = infoOf(feature);
  InFlightDiagnostic error = op->emitError("uses ")
                             << info.words << ", which the target (Metal " << target.mslMajor << "."
                             << target.mslMinor << ") does not have: it takes " << info.since;
  if (!info.instead.empty())
    error << "; " << info.instead;
  return error;
}

} // namespace

llvm::Expected<Target> Target::parse(llvm::StringRef spec) {
  Target target;
  spec = spec.trim();
  if (spec.empty())
    return target;
  auto problem = [](const Twine &message) {
    return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
  };
  target.features = 0;
  bool hasVersion = false;
  SmallVector<StringRef> parts;
  spec.split(parts, ',');
  for (StringRef part : parts) {
    part = part.trim();
    StringRef rest = part;
    unsigned *limit = rest.consume_front("threads=")       ? &target.maxThreads
                      : rest.consume_front("threadgroup=") ? &target.threadgroupBytes
                                                           : nullptr;
    if (limit) {
      if (rest.getAsInteger(10, *limit))
        return problem("the target's '" + part + "' is no number");
      continue;
    }
    if (rest.consume_front("msl=")) {
      auto [major, minor] = rest.split('.');
      if (major.getAsInteger(10, target.mslMajor) || minor.getAsInteger(10, target.mslMinor))
        return problem("the target's '" + part + "' is no version of Metal, such as msl=3.1");
      if (target.mslMajor < 3)
        return problem("the target's Metal is " + rest + "; kernels need Metal 3 (macOS 13)");
      hasVersion = true;
      continue;
    }
    const auto *found = llvm::find_if(triton_metal::features,
                                      [&](const FeatureInfo &info) { return info.name == part; });
    if (found == std::end(triton_metal::features))
      return problem("there is no feature '" + part + "' that a target may have");
    target.features |= 1u << unsigned(found->feature);
  }
  if (!hasVersion)
    return problem("the target '" + spec + "' names no version of Metal: add msl=3.2");
  return target;
}

Target Target::of(ModuleOp module) {
  auto spec = module->getAttrOfType<StringAttr>(kTargetAttr);
  if (!spec)
    return {};
  llvm::Expected<Target> target = parse(spec.getValue());
  if (target)
    return *target;
  llvm::consumeError(target.takeError());
  return {};
}

LogicalResult checkTarget(ModuleOp module) {
  if (auto spec = module->getAttrOfType<StringAttr>(kTargetAttr)) {
    llvm::Expected<Target> target = Target::parse(spec.getValue());
    if (!target)
      return module.emitError(llvm::toString(target.takeError()));
  }
  Target target = Target::of(module);
  for (auto kernel : module.getOps<msl::KernelOp>()) {
    if (kernel.getThreads() > target.maxThreads)
      return kernel.emitError("has num_warps=")
             << kernel.getThreads() / 32 << ", which is " << kernel.getThreads()
             << " threads in a threadgroup, and the target takes " << target.maxThreads
             << ": launch it with num_warps="
             << llvm::bit_floor(std::max(1u, target.maxThreads / 32));
    // What computes says more than what only carries, so the arguments come last.
    WalkResult walked = kernel.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (op == kernel.getOperation())
        return WalkResult::advance();
      std::optional<Feature> feature = featureOf(op);
      if (!feature && !target.has(Feature::BFloat) &&
          (llvm::any_of(op->getResultTypes(), isBFloat) ||
           llvm::any_of(op->getOperandTypes(), isBFloat)))
        feature = Feature::BFloat;
      if (!feature || target.has(*feature))
        return WalkResult::advance();
      (void)refuse(op, target, *feature);
      return WalkResult::interrupt();
    });
    if (walked.wasInterrupted())
      return failure();
    for (BlockArgument argument : kernel.getBody().front().getArguments())
      if (isBFloat(argument.getType()) && !target.has(Feature::BFloat))
        return refuse(kernel, target, Feature::BFloat);
    int64_t bytes = 0;
    msl::AllocOp last;
    kernel.walk([&](msl::AllocOp alloc) {
      int64_t size = std::max(1u, alloc.getType().getElementType().getIntOrFloatBitWidth() / 8);
      int64_t end = int64_t(alloc.getOffset().value_or(0)) +
                    int64_t(llvm::alignTo(alloc.getCount() * size, 16));
      if (end > bytes) {
        bytes = end;
        last = alloc;
      }
    });
    if (bytes > target.threadgroupBytes)
      return last.emitError("brings threadgroup memory to ")
             << bytes << " bytes, and the target (or set_kernel_config) has "
             << target.threadgroupBytes << ": use smaller tiles, or num_stages=1";
  }
  return success();
}

namespace {
struct CheckTarget : PassWrapper<CheckTarget, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(CheckTarget)
  StringRef getArgument() const override { return "msl-check-target"; }
  StringRef getDescription() const override { return "Refuses what the module's msl.target lacks"; }
  void runOnOperation() override {
    if (failed(checkTarget(getOperation())))
      signalPassFailure();
  }
};
} // namespace

void registerCheckTargetPass() {
  registerPass([]() -> std::unique_ptr<Pass> { return std::make_unique<CheckTarget>(); });
}

} // namespace triton_metal
