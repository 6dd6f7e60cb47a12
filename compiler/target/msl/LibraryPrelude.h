// Mathematical functions in Metal text that Metal does not have.
#ifndef TRITON_METAL_TARGET_MSL_LIBRARYPRELUDE_H
#define TRITON_METAL_TARGET_MSL_LIBRARYPRELUDE_H

#include "target/msl/Float64Prelude.h"

namespace triton_metal::msl {

/// Functions of `msl.library`, each behind those that it calls: rounding, integers, roots and
/// powers.
llvm::ArrayRef<PreludeFunction> getExactLibrary();
/// Error, gamma and Bessel functions, which call the ones above.
llvm::ArrayRef<PreludeFunction> getSpecialLibrary();

} // namespace triton_metal::msl

#endif // TRITON_METAL_TARGET_MSL_LIBRARYPRELUDE_H
