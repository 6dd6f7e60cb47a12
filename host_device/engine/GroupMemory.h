// The memory of a threadgroup that is being run.
#pragma once

#include "host_device/engine/Abi.h"
#include <cstddef>
#include <cstdint>
#include <sys/mman.h>
#include <unistd.h>

namespace triton_metal::engine {

/// The stack of a fiber, with a guard page below it.
class Stack {
public:
  explicit Stack(size_t wanted) {
    size_t page = sysconf(_SC_PAGESIZE);
    size = (wanted + page - 1) / page * page + page;
    memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
      memory = nullptr;
      size = 0;
      return;
    }
    mprotect(memory, page, PROT_NONE);
  }
  ~Stack() {
    if (memory)
      munmap(memory, size);
  }
  Stack(const Stack &) = delete;
  bool valid() const { return memory; }
  void *top() const { return static_cast<char *>(memory) + size; }
  size_t bytes() const { return size; }

private:
  void *memory = nullptr;
  size_t size = 0;
};

/// The memory of a threadgroup, with guard pages on both sides.
class ThreadgroupMemory {
public:
  ThreadgroupMemory() {
    void *found =
        mmap(nullptr, inFront + bytes + behind, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (found == MAP_FAILED)
      return;
    memory = static_cast<char *>(found) + inFront;
    mprotect(memory, bytes, PROT_READ | PROT_WRITE);
  }
  ~ThreadgroupMemory() {
    if (memory)
      munmap(memory - inFront, inFront + bytes + behind);
  }
  ThreadgroupMemory(const ThreadgroupMemory &) = delete;
  char *data() const { return memory; }
  bool isBeside(uint64_t address) const {
    return address - (uint64_t(memory) - inFront) < inFront + bytes + behind;
  }
  static constexpr size_t bytes = 128 * 1024; // a multiple of every page
  /// Behind the memory is what portable launches know of it.
  static_assert(bytes >= threadgroupOlderWriters + maxThreadgroupMemory);

private:
  static constexpr size_t inFront = 1 << 20, behind = 1 << 20;
  char *memory = nullptr;
};

} // namespace triton_metal::engine
