// The values that Metal does not promise. In a portable launch each of them is any value.
#pragma once

#include <cstdint>

namespace triton_metal {

/// The reasons why a value is any value.
enum class Unpromised : uint8_t {
  DivisionByZero,
  NegativeRemainder,
  WideShift,
  SignedOverflow,
  Variable,
  OutsideVariable,
  VectorIndex,
  NoReturn,
  ThreadgroupRead,
  UnorderedThreadgroupRead,
  Shuffle,
  ReductionOfNaN,
  FastFunction,
  UndefinedResult,
};

} // namespace triton_metal
