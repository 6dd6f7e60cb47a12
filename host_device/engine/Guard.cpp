#ifdef _FORTIFY_SOURCE
#undef _FORTIFY_SOURCE // its longjmp takes a jump to a fiber's stack for an error
#endif
#include "host_device/engine/Guard.h"
#include <algorithm>
#include <array>
#include <condition_variable>
#include <mutex>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace triton_metal::engine {

/// The entry of a thread in the list that handlers walk. Entries are reused and never freed.
struct Guard::Slot {
  std::atomic<Guard *> guard{nullptr};
  pthread_t thread{};
  Slot *next = nullptr;
};

namespace {

constexpr std::array<int, 6> faults = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT};

/// The handler that was installed before.
struct Previous {
  struct sigaction action{};
  std::atomic<bool> isCalling{false};
};
Previous previous[NSIG];

std::mutex &installing() {
  static std::mutex *mutex = new std::mutex;
  return *mutex;
}

bool isDefault(const struct sigaction &action) {
  return !(action.sa_flags & SA_SIGINFO) && action.sa_handler == SIG_DFL;
}

/// Passes a signal to the handler that was installed before.
void pass(int number, siginfo_t *info, void *context) {
  Previous &before = previous[number];
  // The previous handler may raise the signal again and reach this handler, which it took for its
  // predecessor.
  if (isDefault(before.action) || before.isCalling.exchange(true)) {
    struct sigaction standard{};
    standard.sa_handler = SIG_DFL;
    sigaction(number, &standard, nullptr);
    if (!info || info->si_code <= 0 || number == SIGINT)
      raise(number); // else the instruction faults once more
    return;
  }
  if (before.action.sa_flags & SA_SIGINFO)
    before.action.sa_sigaction(number, info, context);
  else if (before.action.sa_handler != SIG_IGN)
    before.action.sa_handler(number);
  before.isCalling.store(false);
}

} // namespace

struct Guard::Handlers {
  static std::atomic<Slot *> &list() {
    static std::atomic<Slot *> head{nullptr};
    return head;
  }
  /// The number of handlers that are walking the list. A thread waits for them before it ends.
  static inline std::atomic<int> walking{0};

  static Guard *find() {
    pthread_t self = pthread_self();
    for (Slot *slot = list().load(std::memory_order_acquire); slot; slot = slot->next)
      if (Guard *guard = slot->guard.load(std::memory_order_acquire);
          guard && pthread_equal(slot->thread, self))
        return guard;
    return nullptr;
  }

  [[noreturn]] static void jump(Guard &guard, int number, uintptr_t address) {
    guard.signal = number;
    guard.address = address;
    _longjmp(*guard.leave(), 1);
  }

  static void onFault(int number, siginfo_t *info, void *context) {
    Guard *guard = find();
    if (guard && guard->isInside())
      jump(*guard, number, info ? reinterpret_cast<uintptr_t>(info->si_addr) : 0);
    pass(number, info, context);
  }

  static void onInterrupt(int number, siginfo_t *info, void *context) {
    Guard *self = find();
    // A thread that was stopped by an earlier interrupt may be the one that gets this one.
    bool isForwarded = self && self->forwarded.exchange(false);
    if (!isForwarded) {
      bool stopsAny = false;
      walking.fetch_add(1);
      for (Slot *slot = list().load(std::memory_order_acquire); slot; slot = slot->next)
        if (Guard *guard = slot->guard.load(std::memory_order_acquire);
            guard && guard->stoppable.load(std::memory_order_acquire) &&
            !guard->stopped.exchange(true)) {
          stopsAny = true;
          if (guard != self) {
            guard->forwarded.store(true);
            pthread_kill(slot->thread, number);
          }
        }
      walking.fetch_sub(1);
      // The default action would end the process. The error of the stopped launch replaces it.
      if (!stopsAny || !isDefault(previous[number].action))
        pass(number, info, context);
    }
    if (self && self->stoppable.load() && self->isStopped() && self->isInside())
      jump(*self, 0, 0);
  }

  /// The signal of TimeLimit.
  static void onTimeout(int number, siginfo_t *info, void *context) {
    Guard *self = find();
    if (self && self->expired.load()) {
      if (self->isInside())
        jump(*self, 0, 0);
    } else if (!isDefault(previous[number].action)) {
      pass(number, info, context);
    }
  }

  static void add(Guard &guard) {
    pthread_t self = pthread_self();
    static std::mutex *mutex = new std::mutex;
    std::lock_guard lock(*mutex);
    Slot *slot = list().load();
    while (slot && slot->guard.load())
      slot = slot->next;
    bool isNew = !slot;
    if (isNew)
      slot = new Slot;
    slot->thread = self;
    slot->guard.store(&guard, std::memory_order_release);
    guard.slot = slot;
    if (isNew) {
      slot->next = list().load();
      list().store(slot, std::memory_order_release);
    }
  }

  static void remove(Guard &guard) {
    guard.slot->guard.store(nullptr);
    while (walking.load())
      usleep(10);
  }

  /// A forked child only has the thread that forked.
  static void afterFork() {
    pthread_t self = pthread_self();
    for (Slot *slot = list().load(); slot; slot = slot->next)
      if (!pthread_equal(slot->thread, self))
        slot->guard.store(nullptr);
  }

  static void install(int number, void (*handler)(int, siginfo_t *, void *)) {
    struct sigaction now{};
    if (sigaction(number, nullptr, &now) ||
        ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == handler))
      return;
    struct sigaction ours{};
    ours.sa_sigaction = handler;
    sigemptyset(&ours.sa_mask);
    // Jumping out of the handler does not restore the signal mask, so the handler must not block
    // any signal.
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER | (now.sa_flags & SA_RESTART);
    previous[number].action = now;
    sigaction(number, &ours, nullptr);
  }
};

Guard::Guard() {
  stack_t now{};
  if (!sigaltstack(nullptr, &now) && (now.ss_flags & SS_DISABLE)) {
    long least = 0;
#ifdef _SC_MINSIGSTKSZ
    least = sysconf(_SC_MINSIGSTKSZ);
#endif
    alternateStackBytes = std::max<size_t>(64 * 1024, 4 * std::max(0l, least));
    alternateStack = mmap(nullptr, alternateStackBytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (alternateStack == MAP_FAILED) {
      alternateStack = nullptr;
    } else {
      stack_t ours{};
      ours.ss_sp = alternateStack;
      ours.ss_size = alternateStackBytes;
      sigaltstack(&ours, nullptr);
    }
  }
  Handlers::add(*this);
}

Guard::~Guard() {
  Handlers::remove(*this);
  if (!alternateStack)
    return;
  stack_t now{}, none{};
  none.ss_flags = SS_DISABLE;
  // Another library may have installed its own stack.
  if (!sigaltstack(nullptr, &now) && now.ss_sp == alternateStack)
    sigaltstack(&none, nullptr);
  munmap(alternateStack, alternateStackBytes);
}

Guard &Guard::ofThisThread() { return perThread<Guard>(); }

void Guard::abandon() { Handlers::jump(*this, 0, 0); }

void installFaultHandlers() {
  std::lock_guard lock(installing());
  static const bool watchesForks =
      (pthread_atfork(nullptr, nullptr, &Guard::Handlers::afterFork), true);
  (void)watchesForks;
  for (int number : faults)
    Guard::Handlers::install(number, &Guard::Handlers::onFault);
}

void installInterruptHandler() {
  std::lock_guard lock(installing());
  Guard::Handlers::install(SIGINT, &Guard::Handlers::onInterrupt);
}

//===----------------------------------------------------------------------===//
// TimeLimit
//===----------------------------------------------------------------------===//

/// A thread that waits for the next deadline.
struct TimeLimit::Watcher {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<TimeLimit *> limits;

  Watcher() {
    std::thread([this] { watch(); }).detach();
  }

  void watch() {
    std::unique_lock lock(mutex);
    for (;;) {
      auto next = std::chrono::steady_clock::time_point::max();
      auto now = std::chrono::steady_clock::now();
      for (TimeLimit *limit : limits) {
        if (!limit->isDone && limit->deadline <= now) {
          limit->isDone = true;
          limit->guard.expired.store(true);
          pthread_kill(limit->thread, SIGVTALRM);
        }
        if (!limit->isDone)
          next = std::min(next, limit->deadline);
      }
      if (next == std::chrono::steady_clock::time_point::max())
        changed.wait(lock);
      else
        changed.wait_until(lock, next);
    }
  }
};

TimeLimit::TimeLimit(std::chrono::nanoseconds time)
    : guard(Guard::ofThisThread()), thread(pthread_self()),
      deadline(std::chrono::steady_clock::now() + time) {
  {
    std::lock_guard lock(installing());
    Guard::Handlers::install(SIGVTALRM, &Guard::Handlers::onTimeout);
  }
  Watcher &watcher = perProcess<Watcher>();
  std::lock_guard lock(watcher.mutex);
  watcher.limits.push_back(this);
  watcher.changed.notify_one();
}

TimeLimit::~TimeLimit() {
  Watcher &watcher = perProcess<Watcher>();
  std::lock_guard lock(watcher.mutex);
  std::erase(watcher.limits, this);
  guard.expired.store(false);
}

const char *signalName(int signal) {
  switch (signal) {
  case SIGSEGV:
    return "SIGSEGV";
  case SIGBUS:
    return "SIGBUS";
  case SIGFPE:
    return "SIGFPE";
  case SIGILL:
    return "SIGILL";
  case SIGTRAP:
    return "SIGTRAP";
  case SIGABRT:
    return "SIGABRT";
  default:
    return "a signal";
  }
}

} // namespace triton_metal::engine
