#include "host_device/Compiling.h"
#include "host_device/engine/PerProcess.h"
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <pthread.h>
#include <thread>
#include <unistd.h>
#ifdef __linux__
#include <sys/syscall.h>
#endif

namespace triton_metal {

namespace {

struct Scopes {
  std::mutex mutex;
  std::condition_variable changed;
  uint64_t running = 0, begun = 0;
  /// The thread that ends the process.
  std::thread::id last;
};

/// The outermost scope of this thread.
thread_local unsigned depth = 0;
thread_local Scopes *scopes = nullptr;

bool isMainThread() {
#ifdef __linux__
  return syscall(SYS_gettid) == getpid();
#else
  return pthread_main_np();
#endif
}

/// The end of a process destroys what belongs to its thread before all other objects, and before it
/// calls the functions that are registered for it.
struct OfThread {
  ~OfThread() { Compiling::finish(); }
};

/// Waits for the scopes of other threads when the process ends.
void registerEnd(uint64_t number) {
  if (isMainThread()) {
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wexit-time-destructors"
    static thread_local OfThread ofMainThread;
#pragma clang diagnostic pop
    (void)ofMainThread;
  }
  // Another thread may end the process. Objects that scopes have made on first use are destroyed
  // before functions that were registered earlier are called, so that one is registered with the
  // 1st, 2nd, 4th, 8th scope, and so on.
  if ((number & (number - 1)) == 0)
    std::atexit(Compiling::finish);
}

} // namespace

Compiling::Compiling() {
  if (depth++)
    return;
  scopes = &engine::perProcess<Scopes>();
  std::unique_lock lock(scopes->mutex);
  while (scopes->last != std::thread::id() && scopes->last != std::this_thread::get_id()) {
    lock.unlock();
    pause();
    lock.lock();
  }
  registerEnd(++scopes->begun);
  ++scopes->running;
}

Compiling::~Compiling() {
  if (--depth)
    return;
  std::lock_guard lock(scopes->mutex);
  if (--scopes->running == 0)
    scopes->changed.notify_all();
}

void Compiling::join() { ++depth; }

void Compiling::finish() {
  if (depth) // LLVM itself ends the process: this scope, too, would be waited for
    return;
  auto &all = engine::perProcess<Scopes>();
  std::unique_lock lock(all.mutex);
  all.last = std::this_thread::get_id();
  all.changed.wait(lock, [&] { return all.running == 0; });
}

} // namespace triton_metal
