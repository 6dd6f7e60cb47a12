// Code that may fault or never end, run so that either becomes an error of the call.
#pragma once

#include <atomic>
#include <csetjmp>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <pthread.h>

namespace triton_metal::engine {

/// This thread's part in catching faults. Handlers are the process's: what faults outside guarded
/// code goes to the handler that was there before.
class Guard {
public:
  static Guard &ofThisThread();
  Guard(const Guard &) = delete;
  ~Guard();

  /// Calls `code`. False: a fault or a request to stop ended it, and no destructor of its frames
  /// ran; `signal` and `address` say which.
  template <typename Code> [[gnu::noinline]] bool call(Code &&code) {
    jmp_buf here;
    if (_setjmp(here))
      return false;
    enter(&here);
    code();
    leave();
    return true;
  }

  /// Guarded code that runs something that must not be cut short says so, and comes back with what
  /// it got.
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

  /// Ends the guarded code that this thread is in. Only from inside it.
  [[noreturn]] void abandon();
  bool isInside() const { return place.load(std::memory_order_relaxed); }

  /// Between these, a request to stop reaches this thread. They may be nested.
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
  /// Whether it was asked to stop; guarded code is ended at once, other code must look.
  bool isStopped() const { return stopped.load(std::memory_order_relaxed); }

  /// What ended the last call: a signal's number, or 0 for a request to stop or `abandon`.
  int signal = 0;
  uintptr_t address = 0;

  struct Handlers;

private:
  Guard();
  friend struct Handlers;

  std::atomic<jmp_buf *> place{nullptr};
  std::atomic<bool> stoppable{false}, stopped{false};
  unsigned stoppableDepth = 0;
  void *alternateStack = nullptr;
  size_t alternateStackBytes = 0;
  struct Slot;
  Slot *slot = nullptr;
};

/// While it lives, a request to stop reaches this thread.
struct Stoppable {
  Stoppable() { Guard::ofThisThread().beginStoppable(); }
  ~Stoppable() { Guard::ofThisThread().endStoppable(); }
  Stoppable(const Stoppable &) = delete;
};

/// Puts the handlers of faults in, or back in front of what has replaced them.
void installFaultHandlers();
/// The same for SIGINT: from now on it also ends all launches, and then goes where it went before.
void installInterruptHandler();

/// "SIGSEGV" and so on.
const char *signalName(int signal);

} // namespace triton_metal::engine
