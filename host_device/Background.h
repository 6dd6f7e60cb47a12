// Work that nobody waits for, on a thread of its own.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>

namespace triton_metal {

/// Runs tasks one after the other. A task uses LLVM: the end of the process waits for the one that
/// runs (Compiling.h), and the others are not begun.
class Background {
public:
  /// The one of this process. A forked child has one of its own, without tasks.
  static Background &get();
  void add(std::function<void()> task);
  /// Waits until all tasks have run.
  void wait();

private:
  void serve();

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> tasks;
  bool hasThread = false, isBusy = false;
};

} // namespace triton_metal
