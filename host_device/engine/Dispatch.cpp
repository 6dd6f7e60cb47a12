// Runs the threadgroups on the cores of the machine, and the SIMD-groups of a threadgroup on one
// core: one after the other if they do not wait for each other, and otherwise as fibers that switch
// at barriers. With a seeded schedule, the SIMD-groups of several threadgroups share one core.
#include "host_device/engine/Guard.h"
#include "host_device/engine/PerProcess.h"
#include "host_device/engine/Runtime.h"
#include "host_device/engine/Visibility.h"
#include <algorithm>
#include <atomic>
#include <boost/context/detail/fcontext.hpp>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <numeric>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TRITON_METAL_ASAN 1
#include <sanitizer/common_interface_defs.h>
#endif
#endif

namespace triton_metal::engine {

namespace context = boost::context::detail;

namespace {

/// A small random number generator that gives the same numbers everywhere.
class Random {
public:
  explicit Random(uint64_t seed) : state(seed) {}
  uint64_t next() {
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }
  template <typename Range> void shuffle(Range &range) {
    for (size_t i = range.size(); i > 1; --i)
      std::swap(range[i - 1], range[size_t((unsigned __int128)(next()) * i >> 64)]);
  }

private:
  uint64_t state;
};

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
  static constexpr size_t bytes = 64 * 1024; // a multiple of every page
  /// The second half is the shadow of portable launches.
  static_assert(bytes >= 2 * maxThreadgroupMemory);

private:
  static constexpr size_t inFront = 1 << 20, behind = 1 << 20;
  char *memory = nullptr;
};

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

/// A threadgroup that is being run.
struct Group {
  enum class Status : uint8_t { Ready, Waiting, Done };

  GroupState state{};
  KernelEntry entry = nullptr;
  std::vector<std::unique_ptr<Stack>> stacks;
  std::vector<context::fcontext_t> fibers;
  /// Whether one fiber runs all SIMD-groups, one after the other. There are no barriers then.
  bool isWhole = false;
  uint32_t numFibers() const { return isWhole ? 1 : state.simdgroups; }
  /// The status and the priority of each fiber. Only seeded schedules use them.
  std::vector<Status> status;
  std::vector<uint64_t> priority;
  std::array<uint8_t, simdWidth> lanes;
  GroupView view;
  /// The atomics that it has come to, how often it may still be paused, and when it was; 0 if it is
  /// not.
  uint64_t atomics = 0;
  uint32_t pausesLeft = 0;
  uint64_t pausedAt = 0;
  ThreadgroupMemory threadgroupMemory;
};

/// Runs threadgroups on one thread.
class Runner {
public:
  static Runner &ofThisThread() {
    static thread_local Runner runner;
    return runner;
  }

  /// Runs the groups from `first` to `last`. Returns false if the kernel failed, with the reason in
  /// `failure`.
  bool run(const LaunchPlan &plan, uint64_t first, uint64_t last, std::vector<uint64_t> &counts,
           std::optional<FailureRecord> &failure);
  /// Runs all threadgroups in a random order, several at a time.
  void runSchedule(LaunchPlan &plan, uint64_t groups);

  /// Any bits for the lanes of a site. Called from inside of a kernel.
  void any(const GroupState &group, uint32_t site, uint32_t mask, bool perLane,
           const uint64_t *salts, uint64_t *bits) {
    if (!portable)
      return;
    portable->draw({group.position[0], group.position[1], group.position[2]}, current, site, mask,
                   perLane, salts, bits);
  }

  // Called from inside a fiber.
  void barrier(uint32_t site) {
    jmp_buf *guarded = guard.leave();
    event = Event::Barrier;
    barrierSite = site;
    leave();
    guard.enter(guarded);
  }
  void pause() {
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
  [[noreturn]] void fail(Failure kind, uint32_t site, uint64_t address, uint32_t lane) {
    guard.leave();
    event = Event::Failed;
    record.failure = kind;
    record.site = site;
    record.address = address;
    record.lane = lane;
    leave();
    abort(); // a fiber that failed is not resumed
  }

private:
  enum class Event { Done, Barrier, Paused, Failed };

  void leave() {
#ifdef TRITON_METAL_ASAN
    void *fake = nullptr;
    __sanitizer_start_switch_fiber(event == Event::Done || event == Event::Failed ? nullptr : &fake,
                                   schedulerStack, schedulerStackSize);
#endif
    scheduler = context::jump_fcontext(scheduler, nullptr).fctx;
#ifdef TRITON_METAL_ASAN
    __sanitizer_finish_switch_fiber(fake, &schedulerStack, &schedulerStackSize);
#endif
  }

  static void fiberMain(context::transfer_t from) {
    auto *runner = static_cast<Runner *>(from.data);
#ifdef TRITON_METAL_ASAN
    __sanitizer_finish_switch_fiber(nullptr, &runner->schedulerStack, &runner->schedulerStackSize);
#endif
    runner->scheduler = from.fctx;
    Group &group = *runner->running;
    uint32_t simdgroup = runner->current;
    bool good =
        group.isWhole ? runner->enterWhole(group) : runner->enter(group, simdgroup, simdgroup + 1);
    runner->event = good ? Event::Done : Event::Failed;
    runner->leave();
  }

  /// Runs the kernel's code. Returns false if it faulted or was stopped.
  bool enter(Group &group, uint32_t first, uint32_t last) {
    if (guard.call([&] { group.entry(launch, &group.state, first, last); }))
      return true;
    stop(group);
    return false;
  }
  /// Runs the SIMD-groups upwards or downwards.
  bool enterWhole(Group &group) {
    bool downwards = group.priority[0] & 1;
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
  /// Records why the kernel did not finish.
  void stop(const Group &group) {
    record = {guard.signal ? Failure::Fault : Failure::Interrupted};
    record.signal = guard.signal;
    record.address = guard.address;
    if (guard.signal && guard.address && group.threadgroupMemory.isBeside(guard.address))
      record.note = ", outside its threadgroup memory";
  }

  /// Sets the position, the size and the code of a threadgroup.
  void place(Group &group, const LaunchPlan &plan, uint64_t linearGroup);
  /// Returns false if the launch was stopped or if the host has no memory.
  bool begin(Group &group, const LaunchPlan &plan, std::vector<uint64_t> &counts);
  bool makeFibers(Group &group, const LaunchPlan &plan);
  /// Runs a SIMD-group to its next barrier or its end; `event` says which.
  void resume(Group &group, uint32_t simdgroup);
  bool runFibers(Group &group, const LaunchPlan &plan);
  void failBarrier(const Group &group, uint32_t waiting);

  context::fcontext_t scheduler = nullptr;
  [[maybe_unused]] const void *schedulerStack = nullptr;
  [[maybe_unused]] size_t schedulerStackSize = 0;
  Event event = Event::Done;
  uint32_t barrierSite = 0, current = 0;
  FailureRecord record{};
  const LaunchState *launch = nullptr;
  PortableRun *portable = nullptr;
  Group *running = nullptr;
  /// Where threadgroups are paused: behind so many atomics, or, if it is 0, where a number is
  /// drawn.
  uint64_t pausePlace = 0, lastPause = 0;
  Random pausing{0};
  std::vector<std::unique_ptr<Group>> groups;
  Guard &guard = Guard::ofThisThread();
};

void Runner::place(Group &group, const LaunchPlan &plan, uint64_t linearGroup) {
  GroupState &state = group.state;
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
  state.totalThreads = state.threads[0] * state.threads[1] * state.threads[2];
  state.simdgroups = (state.totalThreads + simdWidth - 1) / simdWidth;
  if (plan.clearThreadgroupMemory)
    std::memset(group.threadgroupMemory.data(), 0xff,
                std::min<size_t>(plan.threadgroupBytes, ThreadgroupMemory::bytes));
  if (plan.portable) // nothing has been written
    std::memset(group.threadgroupMemory.data() + maxThreadgroupMemory, 0,
                std::min<size_t>(plan.threadgroupBytes, maxThreadgroupMemory));
}

bool Runner::begin(Group &group, const LaunchPlan &plan, std::vector<uint64_t> &counts) {
  if (guard.isStopped() || !group.threadgroupMemory.data()) {
    record = {Failure::Interrupted};
    if (!group.threadgroupMemory.data())
      record.note = ", as the host has no memory for its threadgroups";
    return false;
  }
  launch = &plan.state;
  portable = plan.portableRun;
  group.state.threadgroupMemory = group.threadgroupMemory.data();
  group.state.counts = counts.data();
  group.state.runner = this;
  group.state.view = nullptr;
  group.isWhole = false;
  return true;
}

bool Runner::makeFibers(Group &group, const LaunchPlan &plan) {
  uint32_t count = group.numFibers();
  // Functions that the kernel calls need stack, too.
  size_t wanted = 256 * 1024 + plan.facts->stackBytes + plan.facts->stackBytes / 4;
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

void Runner::resume(Group &group, uint32_t simdgroup) {
  if (guard.isStopped()) {
    record = {Failure::Interrupted};
    event = Event::Failed;
    return;
  }
  running = &group;
  current = simdgroup;
#ifdef TRITON_METAL_ASAN
  void *fake = nullptr;
  Stack &stack = *group.stacks[simdgroup];
  __sanitizer_start_switch_fiber(&fake, static_cast<char *>(stack.top()) - stack.bytes(),
                                 stack.bytes());
#endif
  context::transfer_t back = context::jump_fcontext(group.fibers[simdgroup], this);
#ifdef TRITON_METAL_ASAN
  __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#endif
  group.fibers[simdgroup] = back.fctx;
  if (event == Event::Failed)
    record.simdgroup = current;
}

void Runner::failBarrier(const Group &group, uint32_t waiting) {
  record.failure = Failure::DivergentBarrier;
  record.site = barrierSite;
  record.note = std::to_string(waiting) + " of " + std::to_string(group.state.simdgroups) +
                " SIMD-groups wait at a barrier that the others do not come to: they have ended";
}

bool Runner::runFibers(Group &group, const LaunchPlan &plan) {
  if (!makeFibers(group, plan))
    return false;
  uint32_t done = 0;
  for (;;) {
    uint32_t waiting = 0, ended = 0, site = 0;
    for (uint32_t simdgroup = 0; simdgroup != group.state.simdgroups; ++simdgroup) {
      resume(group, simdgroup);
      if (event == Event::Failed)
        return false;
      if (event == Event::Done) {
        ++ended;
      } else {
        ++waiting;
        site = barrierSite;
      }
    }
    done += ended;
    if (!waiting)
      return true;
    if (done) {
      barrierSite = site;
      failBarrier(group, waiting);
      return false;
    }
  }
}

bool Runner::run(const LaunchPlan &plan, uint64_t first, uint64_t last,
                 std::vector<uint64_t> &counts, std::optional<FailureRecord> &failure) {
  if (groups.empty())
    groups.push_back(std::make_unique<Group>());
  Group &group = *groups.front();
  bool good = true;
  if (plan.needsFibers) {
    for (uint64_t linear = first; good && linear != last; ++linear)
      if ((good = begin(group, plan, counts))) {
        place(group, plan, linear);
        good = runFibers(group, plan);
      }
  } else if (first != last && (good = begin(group, plan, counts))) {
    // One guard is enough, because nothing in here has a destructor.
    good = guard.call([this, &group, &plan, first, last] {
      for (uint64_t linear = first; linear != last; ++linear) {
        place(group, plan, linear);
        group.entry(launch, &group.state, 0, group.state.simdgroups);
      }
    });
    if (!good)
      stop(group);
  }
  if (good)
    return true;
  record.threadgroup = {group.state.position[0], group.state.position[1], group.state.position[2]};
  failure = record;
  record = {};
  return false;
}

/// The order of the threadgroups of a portable launch. They run one after the other, as nothing
/// promises that two run at the same time.
static std::vector<uint32_t> portableOrder(uint64_t seed, uint64_t count, Random &random) {
  std::vector<uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  switch (seed % 4) {
  case 0:
    random.shuffle(order);
    break;
  case 1:
    std::reverse(order.begin(), order.end());
    break;
  case 2: { // by a stride that visits all of them
    uint64_t stride = count / 2 | 1;
    while (std::gcd(stride, count) != 1)
      stride += 2;
    for (uint64_t i = 0; i != count; ++i)
      order[i] = i * stride % count;
    break;
  }
  default: // as they are numbered
    break;
  }
  return order;
}

/// Always runs the most urgent SIMD-group of several threadgroups that can continue. Urgencies are
/// random numbers, drawn when a SIMD-group starts and sometimes at a barrier. A SIMD-group may
/// therefore stay behind until all others have ended or wait for it, which exposes missing
/// synchronisation.
void Runner::runSchedule(LaunchPlan &plan, uint64_t count) {
  Random random(*plan.seed);
  std::vector<uint32_t> order;
  uint64_t mostAtOnce = 4;
  if (plan.portable) {
    order = portableOrder(*plan.seed, count, random);
    mostAtOnce = 1;
    pausing = Random(*plan.seed);
    pausePlace = plan.pausePlace;
  } else {
    order.resize(count);
    std::iota(order.begin(), order.end(), 0);
    random.shuffle(order);
  }
  size_t atOnce = std::min<uint64_t>(count, 1 + random.next() % mostAtOnce);
  constexpr uint64_t mostPaused = 16;
  if (plan.pauses)
    atOnce = std::min(count, mostPaused);
  while (groups.size() < atOnce)
    groups.push_back(std::make_unique<Group>());
  std::vector<Group *> live;
  uint64_t next = 0;
  auto failed = [&](Group &group) {
    record.threadgroup = {group.state.position[0], group.state.position[1],
                          group.state.position[2]};
    plan.failure = record;
    record = {};
  };
  auto start = [&](Group &group) {
    uint64_t linear = order[next++];
    if (!begin(group, plan, plan.counts))
      return false;
    place(group, plan, linear);
    Random own(*plan.seed * 0x2545f4914f6cdd1d + linear);
    std::iota(group.lanes.begin(), group.lanes.end(), 0);
    own.shuffle(group.lanes);
    group.state.laneOrder = group.lanes.data();
    if (plan.visibility) {
      plan.visibility->enter(group.view, linear, group.state.simdgroups);
      group.state.view = &group.view;
    }
    group.atomics = group.pausedAt = 0;
    group.pausesLeft = !plan.pauses ? 0 : plan.pausePlace ? 1 : 2;
    group.isWhole = plan.portable && !plan.pauses && !plan.facts->usesThreadgroupBarrier;
    group.status.assign(group.numFibers(), Group::Status::Ready);
    group.priority.resize(group.numFibers());
    for (uint64_t &priority : group.priority)
      priority = random.next();
    return makeFibers(group, plan);
  };
  for (size_t i = 0; i != atOnce; ++i) {
    live.push_back(groups[i].get());
    if (!start(*live.back()))
      return failed(*live.back());
  }
  while (!live.empty()) {
    Group *chosen = nullptr;
    uint32_t simdgroup = 0;
    // If all are paused, the last one continues. The others have not done what it may wait for.
    if (std::all_of(live.begin(), live.end(), [](Group *group) { return group->pausedAt; }))
      (*std::max_element(live.begin(), live.end(), [](Group *a, Group *b) {
        return a->pausedAt < b->pausedAt;
      }))->pausedAt = 0;
    for (Group *group : live)
      for (uint32_t i = 0; i != group->numFibers() && !group->pausedAt; ++i)
        if (group->status[i] == Group::Status::Ready &&
            (!chosen || group->priority[i] > chosen->priority[simdgroup])) {
          chosen = group;
          simdgroup = i;
        }
    resume(*chosen, simdgroup);
    if (event == Event::Failed)
      return failed(*chosen);
    if (event == Event::Paused)
      continue;
    std::vector<Group::Status> &status = chosen->status;
    status[simdgroup] = event == Event::Done ? Group::Status::Done : Group::Status::Waiting;
    if (std::count(status.begin(), status.end(), Group::Status::Ready))
      continue;
    auto waiting = uint32_t(std::count(status.begin(), status.end(), Group::Status::Waiting));
    if (!waiting) {
      if (next == count)
        live.erase(std::find(live.begin(), live.end(), chosen));
      else if (!start(*chosen))
        return failed(*chosen);
      continue;
    }
    if (waiting != status.size()) {
      failBarrier(*chosen, waiting);
      return failed(*chosen);
    }
    std::fill(status.begin(), status.end(), Group::Status::Ready);
    if (random.next() % 2)
      for (uint64_t &priority : chosen->priority)
        priority = random.next();
  }
}

/// A pool of threads that wait for work.
class Pool {
public:
  /// Runs `work` on this thread and on up to `helpers` others. Returns false without running
  /// anything if the pool is in use.
  bool tryRun(unsigned helpers, const std::function<void()> &work) {
    std::unique_lock taken(use, std::try_to_lock);
    if (!taken)
      return false;
    {
      std::lock_guard lock(mutex);
      while (threads.size() < helpers) {
        threads.emplace_back([this, number = unsigned(threads.size())] { serve(number); });
        threads.back().detach();
      }
      job = &work;
      wanted = helpers;
      running = helpers;
      ++generation;
    }
    wake.notify_all();
    work();
    std::unique_lock lock(mutex);
    finished.wait(lock, [&] { return running == 0; });
    job = nullptr;
    return true;
  }

private:
  void serve(unsigned number) {
    uint64_t seen = 0;
    for (;;) {
      const std::function<void()> *work;
      {
        std::unique_lock lock(mutex);
        wake.wait(lock, [&] { return generation != seen && (number >= wanted || job); });
        seen = generation;
        if (number >= wanted)
          continue;
        work = job;
      }
      (*work)();
      std::lock_guard lock(mutex);
      if (--running == 0)
        finished.notify_all();
    }
  }

  std::mutex use, mutex;
  std::condition_variable wake, finished;
  std::vector<std::thread> threads;
  const std::function<void()> *job = nullptr;
  unsigned wanted = 0, running = 0;
  uint64_t generation = 0;
};

} // namespace

void pauseThreadgroup(GroupState &group) { static_cast<Runner *>(group.runner)->pause(); }

extern "C" void __tm_runtime_barrier(GroupState *group, uint32_t site) {
  if (group->simdgroups > 1)
    static_cast<Runner *>(group->runner)->barrier(site);
}

extern "C" void __tm_runtime_any(GroupState *group, uint32_t site, uint32_t mask, uint32_t perLane,
                                 const uint64_t *salts, uint64_t *bits) {
  static_cast<Runner *>(group->runner)->any(*group, site, mask, perLane, salts, bits);
}

extern "C" void __tm_runtime_fail(GroupState *group, uint32_t failure, uint32_t site,
                                  uint64_t address, uint32_t lane) {
  static_cast<Runner *>(group->runner)->fail(Failure(failure), site, address, lane);
}

void runLaunch(LaunchPlan &plan, unsigned numThreads) {
  Stoppable stoppable;
  const LaunchState &state = plan.state;
  uint64_t groups = uint64_t(state.threadgroups[0]) * state.threadgroups[1] * state.threadgroups[2];
  size_t words = plan.counts.size();
  if (plan.seed) {
    // The schedule has one order, so it runs on one thread.
    auto run = [&] {
      std::optional<SubnormalMode> mode;
      if (plan.portableRun)
        mode.emplace(plan.portableRun->flushResults, plan.portableRun->flushOperands);
      Runner::ofThisThread().runSchedule(plan, groups);
    };
    return plan.portable ? runWithVisibility(plan, run) : run();
  }
  using Clock = std::chrono::steady_clock;
  auto nanoseconds = [](Clock::duration time) {
    return double(std::chrono::duration_cast<std::chrono::nanoseconds>(time).count());
  };
  uint64_t first = 0;
  double perGroup = plan.nanosecondsPerGroup;
  if (groups > 1 && numThreads > 1 && perGroup == 0) {
    auto start = Clock::now();
    if (!Runner::ofThisThread().run(plan, 0, 1, plan.counts, plan.failure))
      return;
    first = 1;
    perGroup = std::max(1.0, nanoseconds(Clock::now() - start));
  }
  constexpr double worthWaking = 20000;
  std::atomic<uint64_t> next{first};
  if (groups - first > 1 && numThreads > 1 && perGroup * double(groups - first) > worthWaking) {
    unsigned helpers = std::min<uint64_t>(numThreads - 1, groups - first - 1);
    uint64_t chunk = std::clamp<uint64_t>((groups - first) / (numThreads * 16), 1,
                                          std::max<uint64_t>(1, uint64_t(200000 / perGroup)));
    std::mutex mutex;
    auto start = Clock::now();
    std::function<void()> work = [&] {
      Stoppable stoppable;
      std::vector<uint64_t> counts(words);
      std::optional<FailureRecord> failure;
      Runner &runner = Runner::ofThisThread();
      for (;;) {
        uint64_t begin = next.fetch_add(chunk, std::memory_order_relaxed);
        if (begin >= groups)
          break;
        if (!runner.run(plan, begin, std::min(groups, begin + chunk), counts, failure)) {
          next.store(groups, std::memory_order_relaxed);
          break;
        }
      }
      if (words || failure) {
        std::lock_guard lock(mutex);
        for (size_t i = 0; i != words; ++i)
          plan.counts[i] += counts[i];
        if (failure && !plan.failure)
          plan.failure = failure;
      }
    };
    if (perProcess<Pool>().tryRun(helpers, work)) {
      plan.nanosecondsPerGroup =
          std::max(1.0, nanoseconds(Clock::now() - start) * std::min<uint64_t>(numThreads, groups) /
                            double(groups - first));
      return;
    }
  }
  auto start = Clock::now();
  if (!Runner::ofThisThread().run(plan, first, groups, plan.counts, plan.failure))
    return;
  if (groups != first)
    plan.nanosecondsPerGroup =
        std::max(1.0, nanoseconds(Clock::now() - start) / double(groups - first));
}

} // namespace triton_metal::engine
