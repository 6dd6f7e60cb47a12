#include "host_device/engine/Runner.h"
#include "host_device/Trace.h"
#include "host_device/engine/Owners.h"
#include "host_device/engine/Races.h"
#include "llvm/ADT/ArrayRef.h"
#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TRITON_METAL_ASAN 1
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#endif

namespace triton_metal::engine {

//===----------------------------------------------------------------------===//
// Inside of a fiber
//===----------------------------------------------------------------------===//

void Runner::leave() {
#ifdef TRITON_METAL_ASAN
  void *fake = nullptr;
  bool isLast = event == Event::Done || event == Event::Failed;
  if (isLast) // the frames of this fiber never return, and its stack is used again
    __asan_handle_no_return();
  __sanitizer_start_switch_fiber(isLast ? nullptr : &fake, schedulerStack, schedulerStackSize);
#endif
  scheduler = context::jump_fcontext(scheduler, nullptr).fctx;
#ifdef TRITON_METAL_ASAN
  __sanitizer_finish_switch_fiber(fake, &schedulerStack, &schedulerStackSize);
#endif
}

void Runner::barrier(uint32_t site) {
  jmp_buf *guarded = guard.leave();
  event = Event::Barrier;
  barrierSite = site;
  leave();
  guard.enter(guarded);
}

void Runner::pause() {
  ++running->atomics;
  if (!running->pausesLeft ||
      (pausePlace ? running->atomics <= pausePlace : pausing.next() % 2 == 0))
    return;
  --running->pausesLeft;
  running->pausedAt = ++lastPause;
  jmp_buf *guarded = guard.leave();
  event = Event::Paused;
  leave();
  guard.enter(guarded);
}

void Runner::fail(Failure kind, uint32_t site, uint64_t address, uint32_t lane,
                  const FailureRecord::Other &other) {
  guard.leave();
  event = Event::Failed;
  record.failure = kind;
  record.site = site;
  record.address = address;
  record.lane = lane;
  record.other = other;
  leave();
  abort(); // a fiber that failed is not resumed
}

void Runner::unwritten(uint32_t simdgroup, const uint64_t *addresses, uint32_t mask,
                       uint32_t site) {
  uint32_t lane = uint32_t(std::countr_zero(mask));
  if (!running->state.races)
    fail(Failure::Unwritten, site, addresses[lane], lane);
  if (early)
    return;
  early.emplace();
  early->failure = Failure::Unwritten;
  early->site = site;
  early->address = addresses[lane];
  early->lane = lane;
  early->simdgroup = simdgroup;
}

bool Runner::failEarly() {
  if (!early)
    return false;
  if (event != Event::Failed ||
      (record.failure != Failure::Race && record.failure != Failure::Interrupted))
    record = *early;
  early.reset();
  event = Event::Failed;
  return true;
}

void Runner::fiberMain(context::transfer_t from) {
  auto *runner = static_cast<Runner *>(from.data);
#ifdef TRITON_METAL_ASAN
  __sanitizer_finish_switch_fiber(nullptr, &runner->schedulerStack, &runner->schedulerStackSize);
#endif
  runner->scheduler = from.fctx;
  Group &group = *runner->running;
  uint32_t simdgroup = runner->current;
  bool good =
      runner->batch ? runner->enterBatch(group) : runner->enter(group, simdgroup, simdgroup + 1);
  runner->event = good ? Event::Done : Event::Failed;
  runner->leave();
}

bool Runner::enter(Group &group, uint32_t first, uint32_t last) {
  if (guard.call([&] { group.entry(launch, &group.state, first, last); }))
    return true;
  stop(group);
  return false;
}

bool Runner::enterWhole(Group &group, bool downwards) {
  if (guard.call([&] {
        for (uint32_t i = 0, count = group.state.simdgroups; i != count; ++i) {
          current = downwards ? count - 1 - i : i;
          group.entry(launch, &group.state, current, current + 1);
        }
      }))
    return true;
  stop(group);
  return false;
}

bool Runner::enterBatch(Group &group) {
  for (; batch->next != batch->last; ++batch->next) {
    Random random = placeNext(group, batch->plan, batch->part, batch->next);
    if (!enterWhole(group, batch->plan.seed && random.next() & 1))
      return false;
    if (early)
      return false;
    note(batch->part, group);
  }
  return true;
}

void Runner::stop(const Group &group) {
  record = {guard.signal ? Failure::Fault : Failure::Interrupted};
  record.signal = guard.signal;
  record.address = guard.address;
  if (guard.signal && guard.address && group.threadgroupMemory.isBeside(guard.address))
    record.note = ", outside its threadgroup memory";
}

//===----------------------------------------------------------------------===//
// Outside of fibers
//===----------------------------------------------------------------------===//

void Runner::place(Group &group, const LaunchPlan &plan, uint64_t linearGroup) {
  GroupState &state = group.state;
  state.exchanges = state.hasFailedSpuriously = 0;
  uint32_t width = launch->threadgroups[0], height = launch->threadgroups[1];
  state.position[0] = linearGroup % width;
  state.position[1] = linearGroup / width % height;
  state.position[2] = linearGroup / (uint64_t(width) * height);
  group.entry = plan.entry;
  bool cut = false;
  for (unsigned d = 0; d != 3; ++d) {
    uint32_t size = launch->dispatchThreads[d];
    uint64_t first = uint64_t(state.position[d]) * size;
    state.threads[d] = std::min<uint64_t>(size, launch->gridThreads[d] - first);
    cut |= state.threads[d] != size;
  }
  if (cut)
    group.entry = plan.entryFor({state.threads[0], state.threads[1], state.threads[2]});
  group.traced = {plan.trace, plan.trace ? plan.trace->find(state.position) : nullptr};
  state.trace = group.traced.group ? &group.traced : nullptr;
  state.totalThreads = state.threads[0] * state.threads[1] * state.threads[2];
  state.simdgroups = (state.totalThreads + simdWidth - 1) / simdWidth;
  // Without the question, a masked store of no bytes costs a hundred nanoseconds where the page has
  // never been touched.
  if (!plan.threadgroupBytes)
    return;
  if (plan.clearThreadgroupMemory)
    std::memset(group.threadgroupMemory.data(), 0xff, plan.threadgroupBytes);
  if (plan.portable || plan.checks.initialized) // nothing has been written
    for (uint32_t offset : {threadgroupWriters, threadgroupOlderWriters})
      std::memset(group.threadgroupMemory.data() + offset, 0, plan.threadgroupBytes);
}

Random Runner::placeNext(Group &group, const LaunchPlan &plan, const Part &part, uint64_t number) {
  uint64_t linear = part.order ? part.order[number] : number;
  place(group, plan, linear);
  if (part.races)
    part.races->enter(linear, group.state);
  if (!plan.seed)
    return Random(0);
  Random random(*plan.seed * 0x2545f4914f6cdd1d + linear);
  group.state.laneOrder = laneOrders[random.next() % laneOrders.size()].data();
  if (part.owners) {
    part.owners->enter(number);
  } else if (plan.visibility) {
    plan.visibility->enter(group.view, linear, group.state.simdgroups);
    group.state.view = &group.view;
  }
  return random;
}

void Runner::note(const Part &part, const Group &group) {
  const auto &position = group.state.position;
  if (!part.owners || !part.portable || part.portable->firedIn.empty() ||
      !std::equal(std::begin(position), std::end(position), part.portable->firedIn.back().begin()))
    return;
  const std::vector<uint64_t> &chunks = part.owners->writtenChunks();
  part.portable->chunks.insert(part.portable->chunks.end(), chunks.begin(), chunks.end());
}

bool Runner::begin(Group &group, const LaunchPlan &plan, Part &part) {
  if (guard.isStopped() || !group.threadgroupMemory.data()) {
    record = {Failure::Interrupted};
    if (!group.threadgroupMemory.data())
      record.note = ", as the host has no memory for its threadgroups";
    return false;
  }
  launch = &plan.state;
  portable = part.portable;
  group.state.threadgroupMemory = group.threadgroupMemory.data();
  group.state.counts = part.counts.data();
  group.state.runner = this;
  group.state.view = nullptr;
  group.state.owners = part.owners;
  group.state.races = part.races;
  early.reset();
  group.state.barrierFlags = ~0u;
  group.pausesLeft = 0;
  group.atomics = group.pausedAt = 0;
  if (plan.seed && laneSeed != plan.seed) {
    Random random(*plan.seed);
    for (auto &order : laneOrders) {
      std::iota(order.begin(), order.end(), 0);
      random.shuffle(order);
    }
    laneSeed = plan.seed;
  }
  return true;
}

bool Runner::makeFibers(Group &group, const LaunchPlan &plan, uint32_t count) {
  // Functions that the kernel calls need stack, too.
  size_t wanted = 256 * 1024 + plan.stackBytes + plan.stackBytes / 4;
  if (group.stacks.size() < count)
    group.stacks.resize(count);
  group.fibers.resize(count);
  for (uint32_t i = 0; i != count; ++i) {
    std::unique_ptr<Stack> &stack = group.stacks[i];
    if (!stack || stack->bytes() < wanted)
      stack = std::make_unique<Stack>(wanted);
    if (!stack->valid()) {
      record = {Failure::OutOfBounds};
      record.note = "the host has no memory for the stacks of a threadgroup's SIMD-groups";
      return false;
    }
    group.fibers[i] = context::make_fcontext(stack->top(), stack->bytes() - 4096, &fiberMain);
  }
  return true;
}

void Runner::resume(Group &group, uint32_t fiber) {
  if (guard.isStopped()) {
    record = {Failure::Interrupted};
    event = Event::Failed;
    return;
  }
  running = &group;
  current = fiber;
#ifdef TRITON_METAL_ASAN
  void *fake = nullptr;
  Stack &stack = *group.stacks[fiber];
  __sanitizer_start_switch_fiber(&fake, static_cast<char *>(stack.top()) - stack.bytes(),
                                 stack.bytes());
#endif
  context::transfer_t back = context::jump_fcontext(group.fibers[fiber], this);
#ifdef TRITON_METAL_ASAN
  __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#endif
  group.fibers[fiber] = back.fctx;
  if (event == Event::Failed)
    record.simdgroup = current;
}

/// All SIMD-groups have come to a barrier.
void Runner::orderMemory(Group &group, const LaunchPlan &plan) {
  if (plan.portable)
    passBarrier(group.state, plan.threadgroupBytes);
  else if (auto *races = static_cast<RaceRecord *>(group.state.races))
    races->passThreadgroupBarrier(std::exchange(group.state.barrierFlags, ~0u));
}

void Runner::failBarrier(const Group &group, uint32_t waiting) {
  record.failure = Failure::DivergentBarrier;
  record.site = barrierSite;
  record.note = std::to_string(waiting) + " of " + std::to_string(group.state.simdgroups) +
                " SIMD-groups wait at a barrier that the others do not come to: they have ended";
}

bool Runner::areApart(const Group &group, const LaunchPlan &plan) {
  if (!plan.checks.divergence)
    return false;
  const std::vector<Site> &sites = plan.facts->sites;
  auto placeOf = [&](uint32_t site) {
    // Copies of one barrier, of an unrolled loop for example, have one line.
    return site < sites.size() ? std::tuple(sites[site].line, sites[site].column,
                                            sites[site].callLine, sites[site].callColumn)
                               : std::tuple(0u, 0u, 0u, 0u);
  };
  for (uint32_t simdgroup = 1; simdgroup < group.state.simdgroups; ++simdgroup) {
    if (placeOf(barrierSites[simdgroup]) == placeOf(barrierSites[0]))
      continue;
    record.failure = Failure::SeveralBarriers;
    record.site = barrierSites[0];
    record.simdgroup = 0;
    record.lane = 0;
    record.other.site = barrierSites[simdgroup];
    record.other.thread = simdgroup * simdWidth;
    return true;
  }
  return false;
}

/// Runs the SIMD-groups from barrier to barrier, in an order that `random` draws, if it is given.
/// As on Apple's GPUs, those that have ended take no part in a barrier, unless a check asks.
bool Runner::runFibers(Group &group, const LaunchPlan &plan, Random *random) {
  if (!makeFibers(group, plan, group.state.simdgroups))
    return false;
  std::array<uint16_t, maxThreadsPerThreadgroup / simdWidth> numbers;
  llvm::MutableArrayRef<uint16_t> order(numbers.data(), group.state.simdgroups);
  std::iota(order.begin(), order.end(), 0);
  bool redraws = random;
  for (;;) {
    if (redraws)
      random->shuffle(order);
    uint32_t waiting = 0, site = 0;
    for (uint32_t simdgroup : order) {
      resume(group, simdgroup);
      if (event == Event::Failed)
        return false;
      if (event == Event::Done)
        continue;
      site = barrierSites[simdgroup] = barrierSite;
      numbers[waiting++] = simdgroup;
    }
    if (!waiting)
      return true;
    orderMemory(group, plan);
    order = order.take_front(waiting);
    if (waiting != group.state.simdgroups && (plan.checks.divergence || plan.portable)) {
      barrierSite = site;
      failBarrier(group, waiting);
      return false;
    }
    if (areApart(group, plan))
      return false;
    redraws = random && random->next() % 2;
  }
}

/// Records the failure of a threadgroup.
bool Runner::fail(const Group &group, Part &part) {
  record.threadgroup = {group.state.position[0], group.state.position[1], group.state.position[2]};
  std::copy_n(group.state.threads, 3, record.threads.begin());
  record.threadgroupMemory = uint64_t(group.state.threadgroupMemory);
  part.failure = record;
  record = {};
  return false;
}

bool Runner::run(const LaunchPlan &plan, uint64_t first, uint64_t last, Part &part) {
  if (first == last)
    return true;
  if (groups.empty())
    groups.push_back(std::make_unique<Group>());
  Group &group = *groups.front();
  bool good = begin(group, plan, part);
  if (!good)
    return fail(group, part);
  if (!plan.needsFibers) {
    // One guard is enough, because nothing in here has a destructor.
    good = guard.call([this, &group, &plan, first, last] {
      for (uint64_t linear = first; linear != last; ++linear) {
        place(group, plan, linear);
        group.entry(launch, &group.state, 0, group.state.simdgroups);
      }
    });
    if (!good)
      stop(group);
  } else if (!plan.facts->usesThreadgroupBarrier) {
    Batch all{plan, part, first, last};
    if ((good = makeFibers(group, plan, 1))) {
      batch = &all;
      resume(group, 0);
      batch = nullptr;
      good = event != Event::Failed;
      if (failEarly())
        good = false;
    }
  } else {
    for (uint64_t number = first; good && number != last; ++number) {
      Random random = placeNext(group, plan, part, number);
      good = runFibers(group, plan, plan.seed ? &random : nullptr);
      if (failEarly())
        good = false;
      note(part, group);
    }
  }
  return good || fail(group, part);
}

//===----------------------------------------------------------------------===//
// The functions that kernels call
//===----------------------------------------------------------------------===//

void pauseThreadgroup(GroupState &group) { static_cast<Runner *>(group.runner)->pause(); }

extern "C" void __tm_runtime_barrier(GroupState *group, uint32_t site) {
  if (group->simdgroups > 1)
    static_cast<Runner *>(group->runner)->barrier(site);
}

extern "C" void __tm_runtime_unwritten(GroupState *group, uint32_t simdgroup,
                                       const uint64_t *addresses, uint32_t mask, uint32_t site) {
  static_cast<Runner *>(group->runner)->unwritten(simdgroup, addresses, mask, site);
}

extern "C" void __tm_runtime_any(GroupState *group, uint32_t site, uint32_t mask, uint32_t perLane,
                                 const uint64_t *salts, uint64_t *bits) {
  static_cast<Runner *>(group->runner)->any(*group, site, mask, perLane, salts, bits);
}

extern "C" void __tm_runtime_fail(GroupState *group, uint32_t failure, uint32_t site,
                                  uint64_t address, uint32_t lane) {
  static_cast<Runner *>(group->runner)->fail(Failure(failure), site, address, lane);
}

} // namespace triton_metal::engine
