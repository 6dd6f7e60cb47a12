// Permutations of the elements of several registers.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/IRBuilder.h"

namespace triton_metal::engine {

/// Makes a vector for each list of places. Place i is element i % size of piece i / size, and -1
/// any value. The pieces are vectors of `size` elements. Vectors that need many pieces share
/// shuffles: the transposition of 8 pieces takes 24 and not 56.
llvm::SmallVector<llvm::Value *> permute(llvm::IRBuilderBase &b,
                                         llvm::ArrayRef<llvm::Value *> pieces, unsigned size,
                                         llvm::ArrayRef<llvm::SmallVector<int>> places);

} // namespace triton_metal::engine
