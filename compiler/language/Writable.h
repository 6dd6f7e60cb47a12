// Which pointers may be stored to.
#ifndef TRITON_METAL_LANGUAGE_WRITABLE_H
#define TRITON_METAL_LANGUAGE_WRITABLE_H

#include "language/Error.h"
#include "language/Type.h"

namespace triton_metal::language {

/// Refuses pointers to, and descriptors of, memory that the kernel only reads.
inline llvm::Error checkWritable(const Type &type) {
  if (type.isConst())
    return valueError("Cannot store to a constant pointer: the kernel takes it as tl.const");
  return llvm::Error::success();
}

} // namespace triton_metal::language

#endif // TRITON_METAL_LANGUAGE_WRITABLE_H
