// The Metal that a module is compiled for: `#msl.target`.
#ifndef TRITON_METAL_DIALECT_MSL_TARGET_H
#define TRITON_METAL_DIALECT_MSL_TARGET_H

#include "mlir/IR/Attributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"

#include "dialect/msl/MSLEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialect/msl/MSLAttrs.h.inc"

namespace triton_metal::msl {

/// A feature in the words of a diagnostic.
struct FeatureInfo {
  Feature feature;
  /// What uses it, what has it first, and what to do without it (or nothing).
  llvm::StringRef words, since, instead;
};

const FeatureInfo &getFeatureInfo(Feature feature);

} // namespace triton_metal::msl

#endif // TRITON_METAL_DIALECT_MSL_TARGET_H
