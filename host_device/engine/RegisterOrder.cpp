// Orders steps for few registers, from the end of a block to its beginning.
#include "host_device/engine/RegisterCode.h"
#include "llvm/ADT/BitVector.h"
#include <numeric>

using namespace llvm;

namespace triton_metal::engine::registers {

namespace {

class Orderer {
public:
  explicit Orderer(Code &code) : code(code), live(code.halves.size()), maker(code.halves.size()) {}

  void order(Block &block, const Numbers &liveOut) {
    steps = &block.steps;
    depend(block);
    SmallVector<uint32_t> given;
    for (uint32_t i = steps->size(); i-- > 0;)
      given.push_back(i);
    unsigned before = start(liveOut), most = before;
    for (uint32_t place : given)
      most = std::max<int>(most, before = take(place, before));
    start(liveOut);
    SmallVector<uint32_t> chosen = choose();
    unsigned now = start(liveOut), best = now;
    for (uint32_t place : chosen)
      best = std::max<int>(best, now = take(place, now));
    if (best < most) {
      std::vector<Step> ordered;
      for (uint32_t place : reverse(chosen))
        ordered.push_back(std::move((*steps)[place]));
      block.steps = std::move(ordered);
    }
    for (const Step &step : block.steps)
      for (Name name : step.defines)
        maker[name] = 0;
  }

private:
  /// Fills in, for each step, those that must come before it.
  void depend(const Block &block) {
    earlier.assign(steps->size(), {});
    later.assign(steps->size(), 0);
    std::optional<uint32_t> lastOrdered;
    auto add = [&](uint32_t first, uint32_t second) {
      if (first == second || is_contained(earlier[second], first))
        return;
      earlier[second].push_back(first);
      ++later[first];
    };
    for (auto [place, step] : enumerate(*steps)) {
      for (Name name : step.uses)
        if (maker[name])
          add(maker[name] - 1, place);
      for (Name name : step.defines)
        maker[name] = place + 1;
      if (step.isOrdered) {
        if (lastOrdered)
          add(*lastOrdered, place);
        lastOrdered = place;
      }
    }
    if (block.endsInBranch)
      for (uint32_t place = 0; place + 1 < steps->size(); ++place)
        add(place, steps->size() - 1);
  }

  /// The halves that are live at the end of the block.
  unsigned start(const Numbers &liveOut) {
    unsigned halves = 0;
    live.reset();
    for (Name name = 0; name != code.halves.size(); ++name)
      if (liveOut[name / 64] >> (name % 64) & 1) {
        live.set(name);
        halves += code.halves[name];
      }
    return halves;
  }

  int change(const Step &step) const {
    int halves = 0;
    for (Name name : step.defines)
      if (live.test(name))
        halves -= code.halves[name];
    for (Name name : step.uses)
      if (!live.test(name))
        halves += code.halves[name];
    return halves;
  }

  /// The halves that are live before a step if `now` are after it.
  unsigned take(uint32_t place, unsigned now) {
    const Step &step = (*steps)[place];
    now += change(step);
    for (Name name : step.defines)
      live.reset(name);
    for (Name name : step.uses)
      live.set(name);
    return now;
  }

  /// Of the steps whose users are all placed, always the one that frees most.
  SmallVector<uint32_t> choose() {
    SmallVector<uint32_t> order, ready;
    for (uint32_t place = 0; place != steps->size(); ++place)
      if (!later[place])
        ready.push_back(place);
    while (!ready.empty()) {
      size_t best = 0;
      int least = std::numeric_limits<int>::max();
      for (auto [i, place] : enumerate(ready))
        if (int halves = change((*steps)[place]); halves < least) {
          least = halves;
          best = i;
        }
      uint32_t place = ready[best];
      ready.erase(ready.begin() + best);
      take(place, 0);
      order.push_back(place);
      for (uint32_t each : earlier[place])
        if (--later[each] == 0)
          ready.push_back(each);
    }
    return order;
  }

  Code &code;
  std::vector<Step> *steps = nullptr;
  BitVector live;
  /// The step of the block that makes a number, plus one.
  std::vector<uint32_t> maker;
  std::vector<SmallVector<uint32_t, 4>> earlier;
  std::vector<uint32_t> later;
};

/// Puts late steps just before the first of their users, or at the end of the block.
void delaySteps(Block &block, std::vector<uint32_t> &firstUse) {
  std::vector<Step> &steps = block.steps;
  size_t fixed = steps.size() - (block.endsInBranch ? 1 : 0);
  // The place that a step goes before, counted from the end.
  std::vector<uint32_t> places(steps.size());
  bool isOrdered = true;
  for (uint32_t i = steps.size(), place = 1; i-- > 0; ++place) {
    const Step &step = steps[i];
    places[i] = i < fixed ? place : 0;
    if (step.isLate && i < fixed) {
      places[i] = 0;
      for (Name name : step.defines)
        places[i] = std::max(places[i], firstUse[name]);
      isOrdered &= places[i] == place - 1;
    }
    for (Name name : step.uses)
      firstUse[name] = std::max(firstUse[name], places[i]);
  }
  for (const Step &step : steps)
    for (Name name : step.uses)
      firstUse[name] = 0;
  if (isOrdered)
    return;
  std::vector<uint32_t> order(steps.size());
  std::iota(order.begin(), order.end(), 0);
  llvm::sort(order, [&](uint32_t a, uint32_t b) {
    return std::make_pair(places[b], a) < std::make_pair(places[a], b);
  });
  std::vector<Step> delayed;
  delayed.reserve(steps.size());
  for (uint32_t i : order)
    delayed.push_back(std::move(steps[i]));
  steps = std::move(delayed);
}

} // namespace

void orderSteps(Code &code) {
  std::vector<Numbers> liveOut = liveAtEnd(code);
  std::vector<uint32_t> firstUse(code.halves.size());
  for (Block &block : code.blocks)
    delaySteps(block, firstUse);
  Orderer orderer(code);
  for (auto [block, live] : zip(code.blocks, liveOut))
    if (block.steps.size() > 1)
      orderer.order(block, live);
}

} // namespace triton_metal::engine::registers
