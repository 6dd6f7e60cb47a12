// Memory between pages that nobody may touch: an access past either end stops the program there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <sys/mman.h>
#include <unistd.h>

namespace triton_metal::testing {

class GuardedMemory {
public:
  /// So many words, right before the page behind them, or right after the one in front. What is
  /// left of their pages holds a pattern.
  GuardedMemory(size_t words, bool atEnd) : words(words) {
    page = size_t(sysconf(_SC_PAGESIZE));
    inner = (words * 4 + page - 1) / page * page;
    void *mapped = mmap(nullptr, inner + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED)
      std::abort();
    base = static_cast<char *>(mapped);
    if (mprotect(base + page, inner, PROT_READ | PROT_WRITE))
      std::abort();
    std::memset(base + page, pattern, inner);
    start = base + page + (atEnd ? inner - words * 4 : 0);
  }
  GuardedMemory(const GuardedMemory &) = delete;
  ~GuardedMemory() { munmap(base, inner + 2 * page); }

  std::span<uint32_t> data() const { return {reinterpret_cast<uint32_t *>(start), words}; }
  /// Whether nobody has written around the words.
  bool intact() const {
    for (char *at = base + page; at != base + page + inner; ++at)
      if ((at < start || at >= start + words * 4) && *at != pattern)
        return false;
    return true;
  }

private:
  static constexpr char pattern = 0x5a;
  size_t words, page = 0, inner = 0;
  char *base = nullptr, *start = nullptr;
};

} // namespace triton_metal::testing
