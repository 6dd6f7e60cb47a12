// Metal's number types by name, and values packed as one of them.
#pragma once

#include "host_device/KernelInfo.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <optional>
#include <string>
#include <variant>

namespace triton_metal::metal {

/// A number before it has one of Metal's types.
using Number = std::variant<bool, int64_t, uint64_t, double>;

struct ScalarType {
  ScalarKind kind = ScalarKind::None;
  unsigned bits = 0;
  unsigned bytes() const { return bits / 8; }
};

/// A scalar type by Metal's name or NumPy's: "float", "float32", "f4", "uint", "bfloat".
std::optional<ScalarType> scalarTypeNamed(llvm::StringRef name);
/// Metal's name of a scalar type.
std::string nameOf(ScalarType type);

/// The base of a whole number as it is written: 10, or that of its prefix 0x or 0b (0 for LLVM).
unsigned radixOf(llvm::StringRef text);
/// Reads "true", "-3", "0x10", "1.5e-3", "inf" or "nan".
llvm::Expected<Number> parseNumber(llvm::StringRef text);
std::string textOf(const Number &number);

/// Appends the bytes of a number of this type, rounded to nearest even. A number that is out of the
/// range of an integer type, or not whole, is an error.
llvm::Error appendNumber(const Number &number, ScalarType type, llvm::SmallVectorImpl<char> &bytes);

} // namespace triton_metal::metal
