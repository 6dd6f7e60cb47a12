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

/// Checks what does not depend on an access.
llvm::Error checkDescriptor(const BlockedTensor &tensor);
llvm::Error checkBlockPointer(const BlockedTensor &tensor, size_t offsets,
                              llvm::ArrayRef<int64_t> order);

Result loadDescriptor(Builder &builder, const BlockedTensor &tensor,
                      llvm::ArrayRef<Operand> offsets);
llvm::Error storeDescriptor(Builder &builder, const BlockedTensor &tensor,
                            llvm::ArrayRef<Operand> offsets, const Operand &value);
llvm::Error reduceDescriptor(Builder &builder, AtomicOp op, const BlockedTensor &tensor,
                             llvm::ArrayRef<Operand> offsets, const Operand &value);
Result gatherRows(Builder &builder, const BlockedTensor &tensor, const Value &rows,
                  const Operand &column);
llvm::Error scatterRows(Builder &builder, const BlockedTensor &tensor, const Value &rows,
                        const Operand &column, const Operand &value);

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
