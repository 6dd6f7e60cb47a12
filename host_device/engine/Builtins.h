// The functions of the Metal standard library that only a whole SIMD-group can execute.
#pragma once

#include "llvm/ADT/StringRef.h"
#include "llvm/IR/InstrTypes.h"
#include <optional>

namespace triton_metal::engine {

/// What a call's result is across lanes, before its operands are looked at.
enum class BuiltinUniformity {
  /// A function of its operands, lane by lane.
  Pure,
  /// The same in every lane that takes part.
  Uniform,
  Varying,
  /// The lane's own number.
  Lane,
  /// Lane `operand 1` of operand 0.
  ShuffleLike,
};

enum class ReductionKind { Sum, Product, Min, Max, And, Or, Xor };

/// A `__tm_simd_*` reduction or prefix scan, from its name.
struct LaneReduction {
  ReductionKind kind;
  bool isFloat = false, isSigned = false;
  /// A prefix scan, and whether a lane's own value takes part.
  bool isScan = false, inclusive = false;

  static std::optional<LaneReduction> parse(llvm::StringRef name);
};

BuiltinUniformity builtinUniformity(const llvm::CallBase &call);

/// True for calls that the engine knows how to execute.
bool isKnownBuiltin(llvm::StringRef name);

} // namespace triton_metal::engine
