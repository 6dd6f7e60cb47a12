// Runs the threads of a threadgroup one after the other, each to its next barrier: the plainest
// thing that a SIMD-group must agree with.
#pragma once

#include <boost/context/fiber.hpp>
#include <cstdint>
#include <functional>
#include <vector>

namespace triton_metal::testing {

enum class LaneOperation : uint32_t {
  Sum,
  Xor,
  Or,
  MaxSigned,
  MinUnsigned,
  Inclusive,
  Exclusive,
  QuadInclusive,
  QuadExclusive,
  Ballot,
  Shuffle
};

class ThreadByThread {
public:
  /// Runs `body` for threads 0 to size - 1; false if some waited at a barrier that others never
  /// came to.
  bool run(uint32_t size, const std::function<void(uint32_t)> &body);

  // What a thread calls. A lane operation takes in the lanes of a SIMD-group that come to the same
  // site; sites are numbered in the order of the program.
  static void barrier();
  static uint32_t lanes(uint32_t operation, uint32_t site, uint32_t value, uint32_t operand);

private:
  enum class At { Running, Barrier, Lanes, End };
  struct Thread {
    boost::context::fiber fiber;
    At at = At::Running;
    uint32_t operation = 0, site = 0, value = 0, operand = 0, result = 0;
  };
  void wait(At at);
  void runSimdgroup(uint32_t first, uint32_t last);
  void finish(uint32_t first, uint32_t last);

  std::vector<Thread> threads;
  boost::context::fiber scheduler;
  uint32_t current = 0;
  static inline thread_local ThreadByThread *active = nullptr;
};

inline void ThreadByThread::wait(At at) {
  threads[current].at = at;
  scheduler = std::move(scheduler).resume();
}

inline void ThreadByThread::barrier() { active->wait(At::Barrier); }

inline uint32_t ThreadByThread::lanes(uint32_t operation, uint32_t site, uint32_t value,
                                      uint32_t operand) {
  Thread &thread = active->threads[active->current];
  thread.operation = operation;
  thread.site = site;
  thread.value = value;
  thread.operand = operand;
  active->wait(At::Lanes);
  return thread.result;
}

/// The lane operation that the lanes came to first.
inline void ThreadByThread::finish(uint32_t first, uint32_t last) {
  uint32_t site = ~0u;
  for (uint32_t i = first; i != last; ++i)
    if (threads[i].at == At::Lanes)
      site = std::min(site, threads[i].site);
  auto takesPart = [&](uint32_t i) {
    return threads[i].at == At::Lanes && threads[i].site == site;
  };
  auto operation = LaneOperation::Sum;
  uint32_t sum = 0, quad = 0, all = 0, any = 0, least = ~0u, ballot = 0;
  int32_t most = INT32_MIN;
  for (uint32_t i = first; i != last; ++i) {
    if ((i - first) % 4 == 0)
      quad = 0;
    if (!takesPart(i))
      continue;
    Thread &thread = threads[i];
    operation = LaneOperation(thread.operation);
    bool ofQuad =
        operation == LaneOperation::QuadInclusive || operation == LaneOperation::QuadExclusive;
    thread.result = ofQuad ? quad : sum; // of the lanes before this one
    sum += thread.value;
    quad += thread.value;
    if (operation == LaneOperation::Inclusive)
      thread.result = sum;
    if (operation == LaneOperation::QuadInclusive)
      thread.result = quad;
    all ^= thread.value;
    any |= thread.value;
    least = std::min(least, thread.value);
    most = std::max(most, int32_t(thread.value));
    ballot |= uint32_t(thread.value != 0) << (i - first);
  }
  for (uint32_t i = first; i != last; ++i) {
    if (!takesPart(i))
      continue;
    uint32_t &result = threads[i].result;
    switch (operation) {
    case LaneOperation::Sum:
      result = sum;
      break;
    case LaneOperation::Xor:
      result = all;
      break;
    case LaneOperation::Or:
      result = any;
      break;
    case LaneOperation::MaxSigned:
      result = uint32_t(most);
      break;
    case LaneOperation::MinUnsigned:
      result = least;
      break;
    case LaneOperation::Ballot:
      result = ballot;
      break;
    case LaneOperation::Shuffle:
      result = threads[first + threads[i].operand].value;
      break;
    case LaneOperation::Inclusive:
    case LaneOperation::Exclusive:
    case LaneOperation::QuadInclusive:
    case LaneOperation::QuadExclusive:
      break;
    }
  }
  for (uint32_t i = first; i != last; ++i)
    if (takesPart(i))
      threads[i].at = At::Running;
}

inline void ThreadByThread::runSimdgroup(uint32_t first, uint32_t last) {
  for (;;) {
    bool waits = false;
    for (current = first; current != last; ++current) {
      if (threads[current].at == At::Running)
        threads[current].fiber = std::move(threads[current].fiber).resume();
      waits |= threads[current].at == At::Lanes;
    }
    if (!waits)
      return;
    finish(first, last);
  }
}

inline bool ThreadByThread::run(uint32_t size, const std::function<void(uint32_t)> &body) {
  active = this;
  threads.clear();
  threads.resize(size);
  for (uint32_t index = 0; index != size; ++index)
    threads[index].fiber =
        boost::context::fiber([this, index, &body](boost::context::fiber &&from) {
          scheduler = std::move(from);
          body(index);
          threads[index].at = At::End;
          return std::move(scheduler);
        });
  for (;;) {
    uint32_t ended = 0;
    for (uint32_t first = 0; first < size; first += 32)
      runSimdgroup(first, std::min(first + 32, size));
    for (Thread &thread : threads)
      ended += thread.at == At::End;
    if (ended == size)
      return true;
    if (ended)
      return false;
    for (Thread &thread : threads)
      thread.at = At::Running;
  }
}

} // namespace triton_metal::testing
