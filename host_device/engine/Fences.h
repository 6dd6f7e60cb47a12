// What fences and atomics order between threads, for Races.h.
//
// A thread with a fence that releases publishes what it and, by barriers, its threadgroup have done
// before, with the next atomic that it performs on a place. A thread that reads that place by an
// atomic later and then has a fence that acquires has all of that behind it, and with its next
// barrier its threadgroup does. A store of another thread to the place ends that; atomics that
// read and write do not.
#pragma once

#include "host_device/KernelInfo.h"
#include <array>
#include <cstdint>
#include <map>
#include <vector>

namespace triton_metal::engine {

class Fences {
public:
  /// Up to which times the accesses of a threadgroup are published: those of all its threads, and
  /// those of one.
  struct Release {
    uint64_t groupStart, all, own;
    uint32_t thread;
  };

  /// What an atomic does to its place, and what it orders by itself.
  struct Atomic {
    bool reads, writes, acquires, releases;
  };

  /// A threadgroup begins. `threadgroupMemory` is new, of so many bytes.
  void enter(uint64_t groupStart, uint64_t threadgroupMemory, uint64_t bytes);
  /// A fence of a thread at a time; accesses before `ordered` of all threads of its group are
  /// before it.
  void fence(uint32_t thread, bool acquires, bool releases, uint64_t ordered, uint64_t time);
  void atomic(uint32_t thread, uint64_t address, const Atomic &atomic, uint64_t ordered,
              uint64_t time);
  /// All threads of the group have come to a barrier. With `all`, each of them has had a fence that
  /// releases behind its last access.
  void barrier(bool all, uint64_t time);
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

  uint64_t groupStart = 0;
  /// What is behind all threads of the group, and what the next atomic of any publishes.
  Clock groupKnown, groupPublished;
  std::array<Thread, maxThreadsPerThreadgroup> threads;
  std::vector<uint32_t> active;
  std::map<uint64_t, Clock> places;
};

} // namespace triton_metal::engine
