#ifndef TRITON_METAL_TARGET_MSL_RANGES_H
#define TRITON_METAL_TARGET_MSL_RANGES_H

#include "dialect/msl/MSL.h"

namespace triton_metal::msl {

/// What signed values an integer can have, as far as its operations tell. It decides where the text
/// may use signed arithmetic, whose overflow C++ leaves undefined.
class Ranges {
public:
  struct Interval {
    __int128 low, high;
    bool isNonNegative() const { return low >= 0; }
  };
  Interval get(mlir::Value value);
  /// The exact result of an addition, subtraction, multiplication or shift to the left is that of
  /// its type.
  bool cannotOverflow(mlir::Operation *op);

private:
  Interval compute(mlir::Value value);
  std::optional<Interval> getExact(mlir::Operation *op);
  llvm::DenseMap<mlir::Value, Interval> known;
};

} // namespace triton_metal::msl

#endif // TRITON_METAL_TARGET_MSL_RANGES_H
