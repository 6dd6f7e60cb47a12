// Accesses to blocks of tensors in memory: through block pointers and tensor descriptors.
#ifndef TRITON_METAL_LANGUAGE_BLOCKS_H
#define TRITON_METAL_LANGUAGE_BLOCKS_H

#include "language/Builder.h"

namespace triton_metal::language {

/// A tensor in memory and the shape of the blocks that a program accesses.
struct BlockedTensor {
  Value base;
  std::vector<Operand> shape, strides;
  std::vector<int64_t> block;
  /// "zero", "nan" or "": what is read outside of the tensor.
  std::string padding;
};

/// A tensor descriptor of the program, and what it was made of.
struct Descriptor {
  Value handle;
  std::vector<Value> shape, strides;
};

/// `roundsToTF32` says that floats of 32 bits are rounded when they are loaded.
llvm::Expected<Descriptor> makeDescriptor(Builder &builder, const BlockedTensor &tensor,
                                          bool roundsToTF32);
/// Accesses to the block of a descriptor at these offsets.
Result loadDescriptor(Builder &builder, const Value &desc, llvm::ArrayRef<Operand> offsets);
llvm::Error storeDescriptor(Builder &builder, const Value &desc, llvm::ArrayRef<Operand> offsets,
                            const Operand &value);
llvm::Error reduceDescriptor(Builder &builder, AtomicOp op, const Value &desc,
                             llvm::ArrayRef<Operand> offsets, const Operand &value);
/// Accesses to parts of rows, which begin at a column.
Result gatherRows(Builder &builder, const Value &desc, const Value &rows, const Operand &column);
llvm::Error scatterRows(Builder &builder, const Value &desc, const Value &rows,
                        const Operand &column, const Operand &value);

/// Checks what does not depend on an access.
llvm::Error checkBlockPointer(const BlockedTensor &tensor, size_t offsets,
                              llvm::ArrayRef<int64_t> order);
/// The offset of a block pointer, as 64 bits.
Result blockOffset(Builder &builder, const Operand &offset);
Result loadBlock(Builder &builder, const BlockedTensor &tensor, llvm::ArrayRef<Operand> offsets,
                 llvm::ArrayRef<int64_t> checked, llvm::StringRef cache, llvm::StringRef eviction,
                 bool isVolatile);
llvm::Error storeBlock(Builder &builder, const BlockedTensor &tensor,
                       llvm::ArrayRef<Operand> offsets, llvm::ArrayRef<int64_t> checked,
                       const Operand &value, llvm::StringRef cache, llvm::StringRef eviction);

} // namespace triton_metal::language

#endif // TRITON_METAL_LANGUAGE_BLOCKS_H
