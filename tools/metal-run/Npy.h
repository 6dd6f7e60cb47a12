// NumPy's .npy files.
#pragma once

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <new>
#include <string>
#include <vector>

namespace triton_metal {

/// Allocates whole pages, as Metal's buffers do. Counts of memory lines are then the same in every
/// run.
template <typename T> struct PageAllocator {
  typedef T value_type;
  static constexpr std::align_val_t page{4096};
  PageAllocator() = default;
  template <typename U> PageAllocator(const PageAllocator<U> &) {}
  T *allocate(size_t n) { return static_cast<T *>(::operator new(n * sizeof(T), page)); }
  void deallocate(T *pointer, size_t) { ::operator delete(pointer, page); }
  bool operator==(const PageAllocator &) const { return true; }
};

/// The content of a .npy file: C order, little-endian.
struct NpyArray {
  /// NumPy's own type string: "<f4", "|u1".
  std::string dtype;
  std::vector<int64_t> shape;
  std::vector<uint8_t, PageAllocator<uint8_t>> bytes;

  uint64_t itemSize() const;
  uint64_t items() const;
};

llvm::Expected<NpyArray> readNpy(llvm::StringRef path);
llvm::Error writeNpy(llvm::StringRef path, const NpyArray &array);

/// The .npy type of one of Metal's scalar types or of NumPy's names ("float", "float32", "uchar");
/// bfloat is stored as its bits.
llvm::Expected<std::string> npyType(llvm::StringRef name);

} // namespace triton_metal
