#ifndef TRITON_METAL_TARGET_MSL_TYPES_H
#define TRITON_METAL_TARGET_MSL_TYPES_H

#include "dialect/msl/MSL.h"

#include <string>

namespace triton_metal::msl {

/// Metal's name of a number, a vector of 2 to 4, or a simdgroup matrix; empty where it has none.
std::string getTypeName(mlir::Type type, bool isUnsigned = false);

/// `device const float *`, ready for a name behind it.
std::string getPointerName(PtrType type, bool isConst);

llvm::StringRef getSpaceName(AddressSpace space);

/// A number exactly, as short as it can be read back from.
std::string getLiteral(mlir::Attribute value, bool isUnsigned = false);

} // namespace triton_metal::msl

#endif // TRITON_METAL_TARGET_MSL_TYPES_H
