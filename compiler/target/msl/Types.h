#ifndef TRITON_METAL_TARGET_MSL_TYPES_H
#define TRITON_METAL_TARGET_MSL_TYPES_H

#include "dialect/msl/MSL.h"

#include <string>

namespace triton_metal::msl {

/// Metal's name of a number, a vector of 2 to 4, or a simdgroup matrix; empty where it has none.
std::string getTypeName(mlir::Type type);

/// How a pointer's pointee is qualified, beside by its address space.
struct Qualifiers {
  bool isConst = false;
  /// Other threadgroups of the launch see the accesses.
  bool isCoherent = false;
};

/// `device const `, `coherent(device) device `: what stands before the pointee's type.
std::string getPointeePrefix(AddressSpace space, Qualifiers qualifiers);
/// `device const float *`, ready for a name behind it.
std::string getPointerName(PtrType type, Qualifiers qualifiers = {});

llvm::StringRef getSpaceName(AddressSpace space);

/// A number exactly, as short as it can be read back from.
std::string getLiteral(mlir::Attribute value);

} // namespace triton_metal::msl

#endif // TRITON_METAL_TARGET_MSL_TYPES_H
