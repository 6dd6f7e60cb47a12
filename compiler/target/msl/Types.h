#ifndef TRITON_METAL_TARGET_MSL_TYPES_H
#define TRITON_METAL_TARGET_MSL_TYPES_H

#include "dialect/msl/MSL.h"

#include <string>

namespace triton_metal::msl {

/// Metal's name of a number, a vector of 2 to 4 components, or a simdgroup matrix; empty for other
/// types.
std::string getTypeName(mlir::Type type);

/// The qualifiers of a pointee, except for its address space.
struct Qualifiers {
  bool isConst = false;
  /// Whether other threadgroups of the launch see the accesses.
  bool isCoherent = false;
};

/// The text before the pointee's type: `device const `, `coherent(device) device `.
std::string getPointeePrefix(AddressSpace space, Qualifiers qualifiers);
/// `device const float *`, to be followed by a name.
std::string getPointerName(PtrType type, Qualifiers qualifiers = {});

llvm::StringRef getSpaceName(AddressSpace space);

/// The shortest literal that reads back as exactly this number.
std::string getLiteral(mlir::Attribute value);

} // namespace triton_metal::msl

#endif // TRITON_METAL_TARGET_MSL_TYPES_H
