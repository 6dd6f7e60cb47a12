// NumPy's .npy files.
#pragma once

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <string>
#include <vector>

namespace triton_metal {

/// An array as a .npy file holds it: C order, little-endian.
struct NpyArray {
  /// NumPy's own type string: "<f4", "|u1".
  std::string dtype;
  std::vector<int64_t> shape;
  std::vector<uint8_t> bytes;

  uint64_t itemSize() const;
  uint64_t items() const;
};

llvm::Expected<NpyArray> readNpy(llvm::StringRef path);
llvm::Error writeNpy(llvm::StringRef path, const NpyArray &array);

/// The .npy type of one of Metal's scalar types or of NumPy's names ("float", "float32", "uchar"); bfloat is stored as its bits.
llvm::Expected<std::string> npyType(llvm::StringRef name);

} // namespace triton_metal
