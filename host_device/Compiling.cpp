#include "host_device/Compiling.h"
#include "host_device/engine/PerProcess.h"
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <unistd.h>

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

void waitAtExit() {
  if (depth) // LLVM itself ends the process: this scope, too, would be waited for
    return;
  auto &all = engine::perProcess<Scopes>();
  std::unique_lock lock(all.mutex);
  all.last = std::this_thread::get_id();
  all.changed.wait(lock, [&] { return all.running == 0; });
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
  // The process calls the functions of its end in reverse order. Objects that scopes have made on
  // first use are destroyed before the functions that were registered earlier are called, so that
  // one is registered with the 1st, 2nd, 4th, 8th scope, and so on.
  uint64_t count = ++scopes->begun;
  if ((count & (count - 1)) == 0)
    std::atexit(waitAtExit);
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

} // namespace triton_metal
