#include "host_device/Background.h"
#include "host_device/Compiling.h"
#include "host_device/engine/PerProcess.h"
#include <thread>

namespace triton_metal {

Background &Background::get() { return engine::perProcess<Background>(); }

void Background::add(std::function<void()> task) {
  std::lock_guard lock(mutex);
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

void Background::serve() {
  std::unique_lock lock(mutex);
  for (;;) {
    changed.wait(lock, [&] { return !tasks.empty(); });
    {
      std::function<void()> task = std::move(tasks.front());
      tasks.pop_front();
      isBusy = true;
      lock.unlock();
      Compiling compiling;
      task();
    }
    lock.lock();
    isBusy = false;
    changed.notify_all();
  }
}

} // namespace triton_metal
