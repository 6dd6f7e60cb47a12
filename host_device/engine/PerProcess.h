// An object for each process.
#pragma once

#include <mutex>
#include <unistd.h>

namespace triton_metal::engine {

/// The object of this process. It is made on first use, and anew in a forked child, which has none
/// of its parent's threads. It is never destroyed.
template <typename T> T &perProcess() {
  static std::mutex guard;
  static T *object = nullptr;
  static pid_t owner = 0;
  std::lock_guard lock(guard);
  if (!object || owner != getpid()) {
    object = new T;
    owner = getpid();
  }
  return *object;
}

/// The object of a thread, which frees it when it ends.
template <typename T> T &perThread() {
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wexit-time-destructors"
  static thread_local T object;
#pragma clang diagnostic pop
  return object;
}

} // namespace triton_metal::engine
