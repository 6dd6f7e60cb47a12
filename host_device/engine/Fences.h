// What fences and atomics order between threads, for Races.h.
//
// A thread with a fence that releases publishes what it and, by barriers, its threadgroup have done
// before, with the next atomic that it performs on a place. A simdgroup_barrier does for a
// SIMD-group what a barrier does for the threadgroup. A thread that reads that place by an atomic
// later and then has a fence that acquires has all of that behind it, and with its next barrier its
// threadgroup does. A store of another thread to the place ends that; atomics that read and write
// do not.
#pragma once

#include "host_device/KernelInfo.h"
#include <array>
#include <cstdint>
#include <map>
#include <vector>

namespace triton_metal::engine {

class Fences {
public:
  /// Up to which times the accesses of a threadgroup are published: those of all its threads, those
  /// of one, and those of that one's SIMD-group.
  struct Release {
    uint64_t groupStart, all, own;
    uint32_t thread;
    uint64_t simd;
  };
  /// A thread does something; accesses before `ordered` of all threads of its group, and before
  /// `simdOrdered` of its SIMD-group, are before that.
  struct Moment {
    uint32_t thread;
    uint64_t ordered, simdOrdered, time;
  };

  /// What an atomic does to its place, and what it orders by itself.
  struct Atomic {
    bool reads, writes, acquires, releases;
  };

  /// A threadgroup begins. `threadgroupMemory` is new, of so many bytes.
  void enter(uint64_t groupStart, uint64_t threadgroupMemory, uint64_t bytes);
  void fence(const Moment &moment, bool acquires, bool releases);
  void atomic(const Moment &moment, uint64_t address, const Atomic &atomic);
  /// All threads of the group have come to a barrier. With `all`, each of them has had a fence that
  /// releases behind its last access.
  void barrier(bool all, uint64_t time);
  /// The same for a SIMD-group and a simdgroup_barrier.
  void simdBarrier(uint32_t simdgroup, bool all, uint64_t time);
  /// Whether what a thread of the group that began at `groupStart` did at `time` is before what
  /// `thread` does now.
  bool isBefore(uint32_t otherThread, uint64_t groupStart, uint64_t time, uint32_t thread) const;

private:
  /// By the start of the group, and the thread.
  using Clock = std::map<std::pair<uint64_t, uint32_t>, Release>;
  static void join(Clock &to, const Clock &from);
  struct Thread {
    bool active = false, releases = false;
    /// What is behind the thread; what will be with its next fence; and what its next atomic
    /// publishes.
    Clock known, observed, published;
  };
  Thread &of(uint32_t thread);
  Release releaseOf(const Moment &moment) const {
    return {groupStart, moment.ordered, moment.time, moment.thread, moment.simdOrdered};
  }
  /// What threads begin with behind a barrier. They begin anew, unless they have read an atomic and
  /// no fence since.
  struct Start {
    bool active = false;
    Clock known, published;
  };
  void begin(Thread &thread, const Start &start);
  void beginAnew(uint32_t first, uint32_t last, const Start &start);

  uint64_t groupStart = 0;
  /// What is behind all threads of the group, and what the next atomic of any publishes; and the
  /// same for the SIMD-groups that have had a barrier of their own since.
  Start ofGroup;
  std::array<Start, maxThreadsPerThreadgroup / simdWidth> ofSimdgroup;
  const Start &startOf(uint32_t thread) const {
    const Start &own = ofSimdgroup[thread / simdWidth];
    return own.active ? own : ofGroup;
  }
  std::array<Thread, maxThreadsPerThreadgroup> threads;
  std::vector<uint32_t> active;
  std::map<uint64_t, Clock> places;
};

} // namespace triton_metal::engine
