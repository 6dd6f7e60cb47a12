// Places numbers in the register file: the first free registers, aligned, of those that do not cost
// threads in flight.
#include "host_device/engine/RegisterLive.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace llvm;

namespace triton_metal::engine::registers {

namespace {

/// The most halves of a thread with which a core holds one more step of threads (Mesa's table for
/// Apple7 and Apple8; python/triton_metal/cost/chips.py has it with the threads). A number is moved
/// rather than placed above the one that the demand reaches.
constexpr unsigned bounds[] = {104, 112, 128, 136, 144, 160, 184, 208, 232, 256};

class Places {
public:
  explicit Places(const Code &code)
      : code(code), placeOf(code.halves.size(), none), web(code.halves.size()),
        webPlace(code.halves.size(), none), group(code.halves.size(), none) {
    unsigned demand = alignTo(demandOf(code), 8);
    bound = *std::max_element(std::begin(bounds), std::end(bounds));
    for (unsigned each : reverse(bounds))
      if (demand <= each)
        bound = each;
    if (demand > bound)
      bound = demand;
    std::iota(web.begin(), web.end(), 0);
  }

  unsigned run() {
    for (const Block &block : code.blocks) {
      for (const Phi &phi : block.phis)
        for (auto [from, name] : phi.incoming)
          web[rootOf(name)] = rootOf(phi.defines);
      for (const Step &step : block.steps)
        for (const SmallVector<Name, 4> &vector : step.vectors) {
          for (Name name : vector)
            group[name] = groups.size();
          groups.push_back(vector);
        }
    }
    Numbers used = usedNumbers(code);
    std::vector<Numbers> liveOut = liveAtEnd(code);
    for (auto [block, out] : zip(code.blocks, liveOut)) {
      taken.clear();
      taken.resize(2 * bound + 64);
      taken.set(0, code.reserved);
      Numbers in = liveAtStart(block, out);
      for (const Phi &phi : block.phis)
        erase(in, phi.defines);
      forEach(in, [&](Name name) {
        if (placeOf[name] != none)
          mark(name, true);
      });
      for (const Phi &phi : block.phis)
        placeOne(phi.defines);
      for (auto [step, ended] : zip(block.steps, lastUses(block, out)))
        run(step, ended, used);
    }
    return std::min(most, bound);
  }

private:
  static constexpr unsigned none = ~0u;

  Name rootOf(Name name) {
    while (web[name] != name)
      name = web[name] = web[web[name]];
    return name;
  }

  bool isFree(unsigned first, unsigned count) const {
    return first + count <= taken.size() && taken.find_first_in(first, first + count) == -1;
  }

  void mark(Name name, bool isTaken) {
    unsigned first = placeOf[name], count = code.halves[name];
    if (first + count > taken.size())
      return;
    isTaken ? taken.set(first, first + count) : taken.reset(first, first + count);
  }

  unsigned firstFree(unsigned count, unsigned alignment) {
    for (unsigned first = 0;; first += alignment)
      if (isFree(first, count) || first + count > taken.size())
        return first;
  }

  void put(Name name, unsigned first) {
    placeOf[name] = first;
    mark(name, true);
    most = std::max(most, first + code.halves[name]);
    if (Name root = rootOf(name); webPlace[root] == none)
      webPlace[root] = first;
  }

  /// Where the phis that it belongs to are, where it becomes part of a vector, or anywhere.
  void placeOne(Name name) {
    unsigned count = code.halves[name];
    if (unsigned first = webPlace[rootOf(name)]; first != none && isFree(first, count))
      return put(name, first);
    if (group[name] != none) {
      ArrayRef<Name> vector = groups[group[name]];
      unsigned own = 0, offset = 0, size = 0;
      for (Name each : vector) {
        if (each == name)
          own = size;
        size += code.halves[each];
      }
      for (Name each : vector) {
        if (placeOf[each] != none && placeOf[each] >= offset && each != name &&
            taken.test(placeOf[each])) {
          unsigned first = placeOf[each] - offset + own;
          if (first % count == 0 && first + count <= bound && isFree(first, count))
            return put(name, first);
        }
        offset += code.halves[each];
      }
      unsigned alignment = PowerOf2Ceil(size);
      for (unsigned first = 0; first + size <= bound; first += alignment)
        if (isFree(first, size))
          return put(name, first + own);
    }
    put(name, firstFree(count, count));
  }

  void run(const Step &step, ArrayRef<Name> ended, const Numbers &used) {
    if (step.passing) {
      // Constants and uniform numbers that are moved into registers for this step.
      BitVector before = taken;
      for (unsigned left = step.passing; left;) {
        unsigned count = std::min(left, 2u), first = firstFree(count, count);
        if (first + count <= taken.size())
          taken.set(first, first + count);
        most = std::max(most, first + count);
        left -= count;
      }
      taken = std::move(before);
    }
    for (Name name : ended)
      if (placeOf[name] != none)
        mark(name, false);
    // A vector whose components are elsewhere is put together first.
    BitVector before = taken;
    for (const SmallVector<Name, 4> &vector : step.vectors) {
      unsigned size = 0;
      for (Name name : vector)
        size += code.halves[name];
      unsigned alignment = PowerOf2Ceil(size), offset = 0, first = placeOf[vector.front()];
      bool isInPlace = first != none && first % alignment == 0;
      for (Name name : vector) {
        isInPlace &= placeOf[name] == first + offset;
        offset += code.halves[name];
      }
      if (!isInPlace)
        first = firstFree(alignment, alignment);
      if (first + size <= taken.size())
        taken.set(first, first + size);
      most = std::max(most, first + size);
    }
    taken = std::move(before);
    if (step.defines.size() == 1 && step.vectors.size() == 1 && !step.isOrdered) {
      // A number that is put together of others is where those are, if it can be.
      Name name = step.defines.front();
      unsigned first = placeOf[step.vectors.front().front()], count = code.halves[name];
      if (first != none && first % count == 0 && isFree(first, count))
        put(name, first);
      else
        placeOne(name);
    } else if (step.defines.size() == 1) {
      placeOne(step.defines.front());
    } else if (!step.defines.empty()) {
      unsigned size = 0;
      for (Name name : step.defines)
        size += code.halves[name];
      unsigned first = firstFree(PowerOf2Ceil(size), PowerOf2Ceil(size));
      for (Name name : step.defines) {
        put(name, first);
        first += code.halves[name];
      }
    }
    for (Name name : step.defines)
      if (!has(used, name))
        mark(name, false);
  }

  const Code &code;
  unsigned bound = 0, most = 0;
  BitVector taken;
  std::vector<unsigned> placeOf;
  std::vector<Name> web;
  std::vector<unsigned> webPlace, group;
  std::vector<SmallVector<Name, 4>> groups;
};

} // namespace

unsigned allocate(const Code &code) { return Places(code).run(); }

} // namespace triton_metal::engine::registers
