// Runs code that may fault or never end, and turns either into an error of the call.
#pragma once

#include "host_device/engine/PerProcess.h"
#include <atomic>
#include <chrono>
#include <csetjmp>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <pthread.h>

namespace triton_metal::engine {

/// The part of a thread in catching faults. Signal handlers belong to the process: a fault outside
/// of guarded code is passed to the previous handler.
class Guard {
public:
  static Guard &ofThisThread();
  Guard(const Guard &) = delete;
  ~Guard();

  /// Calls `code`. Returns false if a fault or a request to stop ended it; `signal` and `address`
  /// say which. Destructors of its frames have not run then.
  template <typename Code> [[gnu::noinline]] bool call(Code &&code) {
    jmp_buf here;
    if (_setjmp(here))
      return false;
    enter(&here);
    code();
    leave();
    return true;
  }

  /// Leaves the guarded code for work that must not be interrupted. The result is passed to `enter`
  /// afterwards.
  jmp_buf *leave() {
    jmp_buf *was = place.load(std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    place.store(nullptr, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    return was;
  }
  void enter(jmp_buf *to) {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    place.store(to, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (isStopped()) // by a request that came just before
      abandon();
  }

  /// Ends the guarded code of this thread. May only be called inside of it.
  [[noreturn]] void abandon();
  bool isInside() const { return place.load(std::memory_order_relaxed); }

  /// Between these calls, this thread receives requests to stop. They may be nested.
  void beginStoppable() {
    if (stoppableDepth++)
      return;
    stopped.store(false, std::memory_order_relaxed);
    stoppable.store(true, std::memory_order_release);
  }
  void endStoppable() {
    if (!--stoppableDepth)
      stoppable.store(false, std::memory_order_release);
  }
  /// Whether this thread was asked to stop. Guarded code is ended immediately; other code must ask.
  bool isStopped() const {
    return stopped.load(std::memory_order_relaxed) || expired.load(std::memory_order_relaxed);
  }

  /// The reason why the last call ended: the number of a signal, or 0 for a request to stop or
  /// `abandon`.
  int signal = 0;
  uintptr_t address = 0;

  struct Handlers;

private:
  template <typename T> friend T &perThread();
  Guard();
  friend struct Handlers;
  friend class TimeLimit;

  std::atomic<jmp_buf *> place{nullptr};
  std::atomic<bool> stoppable{false}, stopped{false}, expired{false};
  /// Another thread's handler has sent this thread a signal.
  std::atomic<bool> forwarded{false};
  unsigned stoppableDepth = 0;
  void *alternateStack = nullptr;
  size_t alternateStackBytes = 0;
  struct Slot;
  Slot *slot = nullptr;
};

/// A request to stop does not end the code of this object's lifetime, which may allocate memory.
struct Uninterrupted {
  Guard &guard = Guard::ofThisThread();
  jmp_buf *place = guard.leave();
  Uninterrupted() = default;
  Uninterrupted(const Uninterrupted &) = delete;
  ~Uninterrupted() { guard.enter(place); }
};

/// This thread receives requests to stop during the lifetime of this object.
struct Stoppable {
  Stoppable() { Guard::ofThisThread().beginStoppable(); }
  ~Stoppable() { Guard::ofThisThread().endStoppable(); }
  Stoppable(const Stoppable &) = delete;
};

/// Ends the guarded code of this thread when the time is over, until this object is destroyed.
class TimeLimit {
public:
  explicit TimeLimit(std::chrono::nanoseconds time);
  ~TimeLimit();
  TimeLimit(const TimeLimit &) = delete;
  bool hasExpired() const { return guard.expired.load(std::memory_order_relaxed); }

private:
  struct Watcher;
  Guard &guard;
  pthread_t thread;
  std::chrono::steady_clock::time_point deadline;
  bool isDone = false;
};

/// Installs the handlers for faults, or reinstalls them if they have been replaced.
void installFaultHandlers();
/// The same for SIGINT. From then on it also stops all launches, and is then passed to the previous
/// handler.
void installInterruptHandler();

/// "SIGSEGV" and so on.
const char *signalName(int signal);

} // namespace triton_metal::engine
