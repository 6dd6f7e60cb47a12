// What a kernel may be printed for: the Metal language version, the features and the limits of a
// target.
#ifndef TRITON_METAL_TARGET_MSL_TARGET_H
#define TRITON_METAL_TARGET_MSL_TARGET_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Support/LogicalResult.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <string>

namespace triton_metal {

/// What not every version of Metal, or not every GPU, has.
enum class Feature : uint8_t {
  BFloat,
  SimdReductions,
  SimdgroupMatrix,
  FloatAtomics,
  Atomic64MinMax,
  MemoryOrders,
  FpPragmas,
  TensorOps
};

/// Where nothing else is said, everything that the compiler prints is there: the newest baseline,
/// which the host device runs.
struct Target {
  unsigned mslMajor = 3, mslMinor = 2;
  unsigned maxThreads = 1024;
  unsigned threadgroupBytes = 32768;
  /// A bit for each feature.
  uint32_t features = ~0u & ~(1u << unsigned(Feature::TensorOps));

  bool has(Feature feature) const { return features >> unsigned(feature) & 1; }

  /// Reads "msl=3.1,threads=1024,threadgroup=32768,bfloat,float_atomics": a version, limits and the
  /// names of the features that are there. An empty text is the baseline.
  static llvm::Expected<Target> parse(llvm::StringRef spec);

  /// The target that a module's `msl.target` names; the baseline where it has none.
  static Target of(mlir::ModuleOp module);
};

/// The attribute of a module that names its target.
inline constexpr llvm::StringRef kTargetAttr = "msl.target";

/// Refuses a kernel in `msl` form, with one diagnostic, that uses what the target of its module
/// lacks.
mlir::LogicalResult checkTarget(mlir::ModuleOp module);

/// Registers `msl-check-target`.
void registerCheckTargetPass();

} // namespace triton_metal

#endif // TRITON_METAL_TARGET_MSL_TARGET_H
