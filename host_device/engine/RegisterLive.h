// Sets of numbers, and what is live.
#pragma once

#include "host_device/engine/RegisterCode.h"
#include "llvm/ADT/bit.h"

namespace triton_metal::engine::registers {

inline bool has(const Numbers &numbers, Name name) { return numbers[name / 64] >> (name % 64) & 1; }
inline void insert(Numbers &numbers, Name name) {
  numbers[name / 64] |= uint64_t(1) << (name % 64);
}
inline void erase(Numbers &numbers, Name name) {
  numbers[name / 64] &= ~(uint64_t(1) << (name % 64));
}
template <typename Action> void forEach(const Numbers &numbers, Action action) {
  for (size_t word = 0; word != numbers.size(); ++word)
    for (uint64_t bits = numbers[word]; bits; bits &= bits - 1)
      action(static_cast<Name>(64 * word + llvm::countr_zero(bits)));
}

/// What is live before a block's steps; its phis have run.
Numbers liveAtStart(const Block &block, const Numbers &liveOut);
/// The operands that each step of a block is the last to use.
std::vector<llvm::SmallVector<Name, 4>> lastUses(const Block &block, const Numbers &liveOut);
/// The numbers that some step or phi uses.
Numbers usedNumbers(const Code &code);

} // namespace triton_metal::engine::registers
