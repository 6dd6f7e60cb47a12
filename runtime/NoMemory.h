// What an array without elements is given as its memory.
#ifndef TRITON_METAL_RUNTIME_NOMEMORY_H
#define TRITON_METAL_RUNTIME_NOMEMORY_H

#include <cstddef>
#include <sys/mman.h>

namespace triton_metal {

/// Addresses that nothing may access: a kernel that does ends with an error, and changes no memory
/// of the process. Null where the system has no such addresses left, which is as good but for
/// kernels that ask whether a pointer is null.
inline void *noMemory() {
  static void *const middle = []() -> void * {
    constexpr size_t bytes = size_t(1) << 32;
    void *begin =
        mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return begin == MAP_FAILED ? nullptr : static_cast<char *>(begin) + bytes / 2;
  }();
  return middle;
}

} // namespace triton_metal

#endif
