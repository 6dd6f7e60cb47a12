// Threads that share the threadgroups of a launch.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace triton_metal::engine {

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

/// The work from `first` to `end`, in pieces of `size`, for several threads.
class Pieces {
public:
  Pieces(uint64_t first, uint64_t end, uint64_t size) : next(first), end(end), size(size) {}
  /// Sets the next piece. Returns false if there is none.
  bool take(uint64_t &from, uint64_t &to) {
    from = next.fetch_add(size, std::memory_order_relaxed);
    to = std::min(end, from + size);
    return from < end;
  }
  /// Leaves the pieces that no thread has taken.
  void stop() { next.store(end, std::memory_order_relaxed); }

private:
  std::atomic<uint64_t> next;
  const uint64_t end, size;
};

} // namespace triton_metal::engine
