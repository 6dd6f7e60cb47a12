// Runs threadgroups on one thread: their SIMD-groups one after the other if they do not wait for
// each other, and otherwise as fibers that switch at barriers.
#pragma once

#include "host_device/engine/GroupMemory.h"
#include "host_device/engine/Guard.h"
#include "host_device/engine/PerProcess.h"
#include "host_device/engine/Random.h"
#include "host_device/engine/Runtime.h"
#include "host_device/engine/Visibility.h"
#include <array>
#include <boost/context/detail/fcontext.hpp>
#include <memory>
#include <optional>
#include <vector>

namespace triton_metal::engine {

namespace context = boost::context::detail;

class Owners;
class RaceRecord;

/// A threadgroup that is being run.
struct Group {
  enum class Status : uint8_t { Ready, Waiting, Done };

  GroupState state{};
  /// What `state.trace` points to.
  TraceRecord traced;
  KernelEntry entry = nullptr;
  std::vector<std::unique_ptr<Stack>> stacks;
  std::vector<context::fcontext_t> fibers;
  /// The status and the priority of each fiber. Only schedules of several threadgroups use them.
  std::vector<Status> status;
  std::vector<uint64_t> priority;
  GroupView view;
  /// The atomics that it has come to, how often it may still be paused, and when it was; 0 if it is
  /// not.
  uint64_t atomics = 0;
  uint32_t pausesLeft = 0;
  uint64_t pausedAt = 0;
  ThreadgroupMemory threadgroupMemory;
};

/// What one thread runs of a launch, and what comes of it.
struct Part {
  explicit Part(const LaunchPlan &plan) : portable(plan.portableRun), counts(plan.counts.size()) {}
  /// The order of the threadgroups, or null for that of their numbers.
  const uint32_t *order = nullptr;
  PortableRun *portable;
  /// Records who accesses memory, if it is not null.
  Owners *owners = nullptr;
  /// Finds races, if it is not null.
  RaceRecord *races = nullptr;
  std::vector<uint64_t> counts;
  std::optional<FailureRecord> failure;

  /// Adds what came of it to the plan. The first failure stays.
  void addTo(LaunchPlan &plan) const {
    for (size_t i = 0; i != counts.size(); ++i)
      plan.counts[i] += counts[i];
    if (!plan.failure)
      plan.failure = failure;
  }
};

class Runner {
public:
  static Runner &ofThisThread() { return perThread<Runner>(); }

  /// Runs the threadgroups from `first` to `last` of the order. Returns false if the kernel failed.
  bool run(const LaunchPlan &plan, uint64_t first, uint64_t last, Part &part);
  /// Runs all threadgroups in a random order, several at a time (Schedule.cpp).
  bool runSchedule(const LaunchPlan &plan, uint64_t groups, Part &part);

  /// Any bits for the lanes of a site. Called from inside of a kernel.
  void any(const GroupState &group, uint32_t site, uint32_t mask, bool perLane,
           const uint64_t *salts, uint64_t *bits) {
    if (!portable)
      return;
    Uninterrupted here;
    portable->draw({group.position[0], group.position[1], group.position[2]}, current, site, mask,
                   perLane, salts, bits);
  }

  // Called from inside a fiber.
  void unwritten(uint32_t simdgroup, const uint64_t *addresses, uint32_t mask, uint32_t site);
  void barrier(uint32_t site);
  void pause();
  [[noreturn]] void fail(Failure kind, uint32_t site, uint64_t address, uint32_t lane,
                         const FailureRecord::Other &other = {});

private:
  enum class Event { Done, Barrier, Paused, Failed };
  /// The threadgroups that one fiber runs, one after the other.
  struct Batch {
    const LaunchPlan &plan;
    const Part &part;
    uint64_t next, last;
  };

  void leave();
  static void fiberMain(context::transfer_t from);

  /// Runs the kernel's code. Returns false if it faulted or was stopped.
  bool enter(Group &group, uint32_t first, uint32_t last);
  bool enterBatch(Group &group);
  /// Runs the SIMD-groups upwards or downwards.
  bool enterWhole(Group &group, bool downwards);
  /// Records why the kernel did not finish.
  void stop(const Group &group);
  bool fail(const Group &group, Part &part);

  /// Prepares for a launch. Returns false if it was stopped or if the host has no memory.
  bool begin(Group &group, const LaunchPlan &plan, Part &part);
  /// Sets the position, the size and the code of a threadgroup.
  void place(Group &group, const LaunchPlan &plan, uint64_t linearGroup);
  /// The same for a place in the order. Returns the numbers that the threadgroup draws.
  Random placeNext(Group &group, const LaunchPlan &plan, const Part &part, uint64_t number);
  /// Records the memory of a threadgroup that has ended, if a site gave a value in it.
  static void note(const Part &part, const Group &group);
  bool makeFibers(Group &group, const LaunchPlan &plan, uint32_t count);
  /// Runs a fiber to its next barrier or its end; `event` says which.
  void resume(Group &group, uint32_t fiber);
  bool runFibers(Group &group, const LaunchPlan &plan, Random *random);
  static void orderMemory(Group &group, const LaunchPlan &plan);
  /// Whether SIMD-groups wait at barriers in different lines. Then records that.
  bool areApart(const Group &group, const LaunchPlan &plan);
  void failBarrier(const Group &group, uint32_t waiting);

  context::fcontext_t scheduler = nullptr;
  [[maybe_unused]] const void *schedulerStack = nullptr;
  [[maybe_unused]] size_t schedulerStackSize = 0;
  Event event = Event::Done;
  uint32_t barrierSite = 0, current = 0;
  /// The barriers at which the SIMD-groups wait.
  std::array<uint32_t, maxThreadsPerThreadgroup / simdWidth> barrierSites{};
  FailureRecord record{};
  /// A read of threadgroup memory that no thread has written so far.
  std::optional<FailureRecord> early;
  /// Makes it the failure, unless that is a race. Returns whether there was one.
  bool failEarly();
  const LaunchState *launch = nullptr;
  PortableRun *portable = nullptr;
  Group *running = nullptr;
  Batch *batch = nullptr;
  /// Where threadgroups are paused: behind so many atomics, or, if it is 0, where a number is
  /// drawn.
  uint64_t pausePlace = 0, lastPause = 0;
  Random pausing{0};
  /// Orders in which the conflicting accesses of a SIMD-group take effect, drawn for this seed.
  std::array<std::array<uint8_t, simdWidth>, 8> laneOrders;
  std::optional<uint64_t> laneSeed;
  std::vector<std::unique_ptr<Group>> groups;
  Guard &guard = Guard::ofThisThread();
};

} // namespace triton_metal::engine
