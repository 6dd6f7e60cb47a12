// Work that nobody waits for, on a thread of its own.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>

namespace triton_metal {

/// Runs tasks one after the other. When the process ends, the task that runs is waited for and the
/// others are dropped.
class Background {
public:
  /// The one of this process. A forked child has one of its own, without tasks.
  static Background &get();
  void add(std::function<void()> task);
  /// Waits until all tasks have run.
  void wait();

private:
  void serve();
  void stop();

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> tasks;
  bool hasThread = false, isBusy = false, isStopped = false;
};

} // namespace triton_metal
