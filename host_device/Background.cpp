#include "host_device/Background.h"
#include "host_device/engine/PerProcess.h"
#include <cstdlib>
#include <thread>

namespace triton_metal {

Background &Background::get() {
  // A task uses LLVM, whose global objects the end of the process destroys.
  static const bool isRegistered = [] {
    return std::atexit([] { engine::perProcess<Background>().stop(); }) == 0;
  }();
  (void)isRegistered;
  return engine::perProcess<Background>();
}

void Background::add(std::function<void()> task) {
  std::lock_guard lock(mutex);
  if (isStopped)
    return;
  tasks.push_back(std::move(task));
  if (!hasThread) {
    std::thread([this] { serve(); }).detach();
    hasThread = true;
  }
  changed.notify_all();
}

void Background::wait() {
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return tasks.empty() && !isBusy; });
}

void Background::stop() {
  std::unique_lock lock(mutex);
  isStopped = true;
  tasks.clear();
  changed.notify_all();
  changed.wait(lock, [&] { return !isBusy; });
}

void Background::serve() {
  std::unique_lock lock(mutex);
  for (;;) {
    changed.wait(lock, [&] { return !tasks.empty(); });
    {
      std::function<void()> task = std::move(tasks.front());
      tasks.pop_front();
      isBusy = true;
      lock.unlock();
      task();
    }
    lock.lock();
    isBusy = false;
    changed.notify_all();
  }
}

} // namespace triton_metal
