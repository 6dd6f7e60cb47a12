// Tiles in threadgroup memory through which threads exchange data.
#ifndef TRITON_METAL_TRANSFORMS_TTMSCRATCH_H
#define TRITON_METAL_TRANSFORMS_TTMSCRATCH_H

#include "dialect/msl/MSL.h"
#include "dialect/tt/TT.h"
#include "dialect/ttm/TTM.h"

#include "mlir/IR/Builders.h"

namespace triton_metal::ttm {

/// Makes scratch tiles of one function, and knows how much threadgroup memory the function's tiles
/// leave to them.
class Scratch {
public:
  explicit Scratch(tt::FuncOp func);

  /// A new tile with this name, at the function's top.
  mlir::Value allocate(TileType type, llvm::StringRef name);

  /// The value in another layout (or its own: one thread's data for all that hold copies), through
  /// a tile. `at` is the operation of the function that asks for it.
  mlir::Value convert(mlir::OpBuilder &builder, mlir::Operation *at, mlir::Value value,
                      const LinearLayout &to, llvm::StringRef name);

  /// Threadgroup memory that the tiles leave to the operation.
  int64_t freeBytes(mlir::Operation *op) const;

private:
  /// From the first to the last operation, by position in the program, during which a tile's bytes
  /// are taken.
  struct Lifetime {
    unsigned first, last;
    int64_t bytes;
  };

  tt::FuncOp func;
  llvm::DenseMap<mlir::Operation *, unsigned> positions;
  llvm::SmallVector<Lifetime> lifetimes;
  mlir::Operation *lastAllocation = nullptr;
};

/// The same bits in a type that memory takes: i1 travels as i8.
mlir::Value toStorage(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value);
mlir::Value fromStorage(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value,
                        mlir::Type elementType);

} // namespace triton_metal::ttm

#endif
