// What the processor does with subnormal floats.
#pragma once

#include <cstdint>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace triton_metal::engine {

/// Sets what the processor does with subnormal floats, for the lifetime of this object. Halves keep
/// theirs: the host converts them without regard to this mode.
class SubnormalMode {
public:
  SubnormalMode(bool flushResults, bool flushOperands) {
#if defined(__x86_64__)
    before = _mm_getcsr();
    _mm_setcsr((before & ~0x8040u) | (flushResults ? 0x8000 : 0) | (flushOperands ? 0x0040 : 0));
#elif defined(__aarch64__)
    asm volatile("mrs %0, fpcr" : "=r"(before));
    asm volatile("msr fpcr, %0" ::"r"((before & ~(1ull << 24)) |
                                      (flushResults || flushOperands ? 1ull << 24 : 0)));
#endif
  }
  ~SubnormalMode() {
#if defined(__x86_64__)
    _mm_setcsr(before);
#elif defined(__aarch64__)
    asm volatile("msr fpcr, %0" ::"r"(before));
#endif
  }
  SubnormalMode(const SubnormalMode &) = delete;

private:
#if defined(__x86_64__)
  unsigned before;
#elif defined(__aarch64__)
  uint64_t before;
#endif
};

} // namespace triton_metal::engine
