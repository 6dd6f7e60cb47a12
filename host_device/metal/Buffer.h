// Memory that kernels read and write.
#pragma once

#include "llvm/Support/Error.h"
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace triton_metal::metal {

/// Memory of this process that kernels see at the same address. What a kernel has written can be
/// read when its command buffer has completed.
class Buffer {
public:
  /// Whole pages of zeros.
  static llvm::Expected<std::shared_ptr<Buffer>> allocate(uint64_t length);
  /// Memory of the caller, which `deallocator` releases when nothing uses it any more.
  static std::shared_ptr<Buffer> wrap(void *contents, uint64_t length, bool writable = true,
                                      std::function<void()> deallocator = {});
  Buffer(const Buffer &) = delete;
  ~Buffer();

  void *contents() const { return memory; }
  /// Its length in bytes.
  uint64_t length() const { return bytes; }
  /// Whether kernels may write it.
  bool isWritable() const { return writable; }
  /// A name for the program's own use.
  std::string label;

private:
  Buffer() = default;
  void *memory = nullptr;
  uint64_t bytes = 0;
  bool writable = true;
  std::function<void()> deallocator;
};

} // namespace triton_metal::metal
