// What is live, how much of the register file that takes, and where it goes.
#include "host_device/engine/RegisterLive.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;

namespace triton_metal::engine::registers {

std::vector<SmallVector<Name, 4>> lastUses(const Block &block, const Numbers &liveOut) {
  Numbers live = liveOut;
  std::vector<SmallVector<Name, 4>> last(block.steps.size());
  for (size_t i = block.steps.size(); i-- > 0;) {
    const Step &step = block.steps[i];
    for (Name name : step.defines)
      erase(live, name);
    for (Name name : step.uses)
      if (!has(live, name)) {
        insert(live, name);
        last[i].push_back(name);
      }
  }
  return last;
}

Numbers liveAtStart(const Block &block, const Numbers &liveOut) {
  Numbers live = liveOut;
  for (const Step &step : reverse(block.steps)) {
    for (Name name : step.defines)
      erase(live, name);
    for (Name name : step.uses)
      insert(live, name);
  }
  return live;
}

Numbers usedNumbers(const Code &code) {
  Numbers used(divideCeil(code.halves.size(), 64));
  for (const Block &block : code.blocks) {
    for (const Phi &phi : block.phis)
      for (auto [from, name] : phi.incoming)
        insert(used, name);
    for (const Step &step : block.steps)
      for (Name name : step.uses)
        insert(used, name);
  }
  return used;
}

std::vector<Numbers> liveAtEnd(const Code &code) {
  size_t words = divideCeil(code.halves.size(), 64);
  std::vector<Numbers> before(code.blocks.size(), Numbers(words)), after = before;
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t place = code.blocks.size(); place-- > 0;) {
      const Block &block = code.blocks[place];
      Numbers out(words);
      for (uint32_t successor : block.successors) {
        const Block &next = code.blocks[successor];
        Numbers in = before[successor];
        for (const Phi &phi : next.phis)
          erase(in, phi.defines);
        for (const Phi &phi : next.phis)
          for (auto [from, name] : phi.incoming)
            if (from == place)
              insert(in, name);
        for (size_t word = 0; word != words; ++word)
          out[word] |= in[word];
      }
      after[place] = std::move(out);
      Numbers in = liveAtStart(block, after[place]);
      if (in != before[place]) {
        before[place] = std::move(in);
        changed = true;
      }
    }
  }
  return after;
}

unsigned demandOf(const Code &code) {
  std::vector<Numbers> liveOut = liveAtEnd(code);
  Numbers used = usedNumbers(code);
  unsigned most = code.reserved;
  for (auto [block, out] : zip(code.blocks, liveOut)) {
    unsigned now = code.reserved;
    Numbers in = liveAtStart(block, out);
    for (const Phi &phi : block.phis)
      insert(in, phi.defines);
    forEach(in, [&](Name name) { now += code.halves[name]; });
    most = std::max(most, now);
    for (auto [step, ended] : zip(block.steps, lastUses(block, out))) {
      most = std::max(most, now + step.passing);
      for (Name name : ended)
        now -= code.halves[name];
      for (Name name : step.defines)
        now += code.halves[name];
      most = std::max(most, now);
      for (Name name : step.defines)
        if (!has(used, name))
          now -= code.halves[name];
    }
  }
  return most;
}

} // namespace triton_metal::engine::registers
