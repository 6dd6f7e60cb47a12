#include "host_device/metal/Commands.h"
#include "llvm/ADT/Twine.h"
#include <condition_variable>
#include <cstring>
#include <deque>
#include <thread>
#include <unistd.h>

using namespace llvm;

namespace triton_metal::metal {

static double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

namespace {
/// What the threads of one process share of a queue.
struct Turns {
  std::mutex mutex;
  /// Signalled when there is work, and when there is less of it.
  std::condition_variable changed;
  std::deque<std::shared_ptr<CommandBuffer>> committed;
  /// Whether a dispatch or a command buffer runs.
  bool isBusy = false;
  bool isClosed = false;
  bool hasThread = false;
  std::thread::id thread;

  bool isIdle() const { return committed.empty() && !isBusy; }
  /// Whether a handler asks, which runs on the queue's thread.
  bool isOnThread() const { return hasThread && thread == std::this_thread::get_id(); }
};
} // namespace

struct CommandBuffer::QueueState {
  /// A forked child has none of its parent's threads, and cannot use what they waited for. It
  /// begins with nothing committed.
  Turns &turns() {
    if (owner.load(std::memory_order_acquire) != getpid()) {
      current.store(new Turns, std::memory_order_relaxed); // the parent's stays where it is
      owner.store(getpid(), std::memory_order_release);
    }
    return *current.load(std::memory_order_relaxed);
  }
  ~QueueState() {
    if (owner == getpid())
      delete current.load();
  }

private:
  std::atomic<Turns *> current{new Turns};
  std::atomic<pid_t> owner{getpid()};
};

//===----------------------------------------------------------------------===//
// Encoders
//===----------------------------------------------------------------------===//

bool ComputeCommandEncoder::isOpen(const char *what) {
  if (ended)
    commands.refuse(Twine(what) + " was called after endEncoding");
  return !ended;
}

void ComputeCommandEncoder::setComputePipelineState(
    std::shared_ptr<ComputePipelineState> newPipeline) {
  if (isOpen("setComputePipelineState"))
    pipeline = std::move(newPipeline);
}

static constexpr const char *rangeOfIndices = "; indices are 0 to 30";
static_assert(maxBufferBindings == 31);

void ComputeCommandEncoder::setBuffer(std::shared_ptr<Buffer> buffer, uint64_t offset,
                                      uint32_t index) {
  if (!isOpen("setBuffer"))
    return;
  if (index >= maxBufferBindings)
    return commands.refuse("setBuffer: there is no buffer " + Twine(index) + rangeOfIndices);
  if (!buffer) {
    bindings[index] = {};
    return;
  }
  if (offset > buffer->length())
    return commands.refuse("setBuffer: the offset " + Twine(offset) + " of buffer " + Twine(index) +
                           " is beyond its length of " + Twine(buffer->length()) + " bytes");
  BufferBinding binding;
  binding.data = static_cast<char *>(buffer->contents()) + offset;
  binding.bytes = buffer->length() - offset;
  binding.writable = buffer->isWritable();
  binding.bytesBefore = offset;
  bindings[index] = {binding, std::move(buffer)};
}

void ComputeCommandEncoder::setBytes(const void *bytes, uint64_t length, uint32_t index) {
  constexpr uint64_t limit = 4096; // Metal's own
  if (!isOpen("setBytes"))
    return;
  if (index >= maxBufferBindings)
    return commands.refuse("setBytes: there is no buffer " + Twine(index) + rangeOfIndices);
  if (length == 0 || length > limit)
    return commands.refuse("setBytes: buffer " + Twine(index) + " is given " + Twine(length) +
                           " bytes; 1 to " + Twine(limit) + " are allowed");
  // As aligned as a buffer of Metal's.
  std::shared_ptr<void> copy(::operator new(length, std::align_val_t(256)),
                             [](void *p) { ::operator delete(p, std::align_val_t(256)); });
  std::memcpy(copy.get(), bytes, length);
  BufferBinding binding;
  binding.data = copy.get();
  binding.bytes = length;
  bindings[index] = {binding, std::move(copy)};
}

void ComputeCommandEncoder::setThreadgroupMemoryLength(uint32_t length, uint32_t index) {
  if (!isOpen("setThreadgroupMemoryLength"))
    return;
  if (index >= maxBufferBindings)
    return commands.refuse("setThreadgroupMemoryLength: there is no threadgroup argument " +
                           Twine(index) + rangeOfIndices);
  if (lengths.size() <= index)
    lengths.resize(index + 1, Dispatch::noLength);
  lengths[index] = length;
}

void ComputeCommandEncoder::setSeed(std::optional<uint64_t> newSeed) { seed = newSeed; }

void ComputeCommandEncoder::dispatchThreads(Size threads, Size threadsPerThreadgroup) {
  Dispatch dispatch;
  dispatch.gridThreads = threads.array();
  dispatch.threadsPerThreadgroup = threadsPerThreadgroup.array();
  if (isOpen("dispatchThreads"))
    encode(std::move(dispatch));
}

void ComputeCommandEncoder::dispatchThreadgroups(Size threadgroups, Size threadsPerThreadgroup) {
  Dispatch dispatch;
  dispatch.threadgroups = threadgroups.array();
  dispatch.threadsPerThreadgroup = threadsPerThreadgroup.array();
  if (isOpen("dispatchThreadgroups"))
    encode(std::move(dispatch));
}

void ComputeCommandEncoder::encode(Dispatch dispatch) {
  if (!pipeline)
    return commands.refuse("a dispatch needs a pipeline: call setComputePipelineState before it");
  EncodedDispatch encoded;
  encoded.pipeline = pipeline;
  dispatch.threadgroupMemoryLengths = lengths;
  if (pipeline->options().portable)
    dispatch.portableSeed = seed.value_or(0);
  else
    dispatch.scheduleSeed = seed;
  encoded.dispatch = std::move(dispatch);
  for (const Binding &bound : bindings) {
    encoded.bindings.push_back(bound.binding);
    if (bound.owner)
      encoded.keepAlive.push_back(bound.owner);
  }
  commands.dispatches.push_back(std::move(encoded));
}

void ComputeCommandEncoder::endEncoding() {
  if (isOpen("endEncoding"))
    ended = true;
}

//===----------------------------------------------------------------------===//
// Command buffers
//===----------------------------------------------------------------------===//

CommandBuffer::~CommandBuffer() = default;

void CommandBuffer::refuse(const Twine &text) {
  std::lock_guard lock(mutex);
  if (problem.empty())
    problem = text.str();
}

std::shared_ptr<ComputeCommandEncoder> CommandBuffer::computeCommandEncoder() {
  if (encoder && !encoder->ended)
    refuse("computeCommandEncoder: the encoder before this one has not ended; call endEncoding");
  if (status() != CommandBufferStatus::NotEnqueued)
    refuse("computeCommandEncoder was called after commit");
  encoder.reset(new ComputeCommandEncoder(*this));
  // An encoder that outlives the caller's command buffer keeps it.
  return {encoder.get(), [owner = shared_from_this(), kept = encoder](ComputeCommandEncoder *) {}};
}

void CommandBuffer::add(EncodedDispatch dispatch) { dispatches.push_back(std::move(dispatch)); }

void CommandBuffer::addCompletedHandler(std::function<void(CommandBuffer &)> handler) {
  if (status() != CommandBufferStatus::NotEnqueued)
    return refuse("addCompletedHandler was called after commit");
  handlers.push_back(std::move(handler));
}

void CommandBuffer::commit() {
  if (encoder && !encoder->ended)
    refuse("commit: the encoder has not ended; call endEncoding");
  {
    std::lock_guard lock(mutex);
    if (state != CommandBufferStatus::NotEnqueued) {
      if (problem.empty() && !isDone)
        problem = "commit was called twice";
      return;
    }
    state = CommandBufferStatus::Committed;
    process = getpid();
  }
  Turns &turns = queue->turns();
  std::lock_guard lock(turns.mutex);
  turns.committed.push_back(shared_from_this());
  if (!turns.hasThread) {
    std::thread thread([queue = queue] { serve(queue); });
    turns.hasThread = true;
    turns.thread = thread.get_id();
    thread.detach();
  }
  turns.changed.notify_all();
}

void CommandBuffer::serve(std::shared_ptr<QueueState> queue) {
  Turns &turns = queue->turns();
  std::unique_lock lock(turns.mutex);
  for (;;) {
    turns.changed.wait(
        lock, [&] { return !turns.isBusy && (!turns.committed.empty() || turns.isClosed); });
    if (turns.committed.empty())
      return;
    runNext(*queue, lock);
  }
}

void CommandBuffer::runNext(QueueState &queue, std::unique_lock<std::mutex> &lock) {
  Turns &turns = queue.turns();
  std::shared_ptr<CommandBuffer> next = std::move(turns.committed.front());
  turns.committed.pop_front();
  // A handler may run it, while its own command buffer is still busy.
  bool wasBusy = std::exchange(turns.isBusy, true);
  lock.unlock();
  next->run();
  lock.lock();
  turns.isBusy = wasBusy;
  {
    std::lock_guard own(next->mutex);
    next->isDone = true;
  }
  turns.changed.notify_all();
  // Its last owner may be this thread, whose destructors must not run under the lock.
  lock.unlock();
  next.reset();
  lock.lock();
}

void CommandBuffer::run() {
  bool isRefused;
  {
    std::lock_guard lock(mutex);
    state = CommandBufferStatus::Scheduled;
    isRefused = !problem.empty();
  }
  std::string failure;
  Counters sum;
  ProfileReport lines;
  double from = 0;
  auto label = [&](size_t number) {
    return dispatches.size() == 1 ? std::string()
                                  : "dispatch " + std::to_string(number + 1) + " of " +
                                        std::to_string(dispatches.size()) + ": ";
  };
  if (!isRefused)
    for (auto [number, encoded] : enumerate(dispatches))
      if (Error error = encoded.pipeline->prepare(encoded.dispatch)) {
        failure = label(number) + toString(std::move(error));
        break;
      }
  from = now();
  if (!isRefused && failure.empty())
    for (auto [number, encoded] : enumerate(dispatches)) {
      encoded.dispatch.buffers = encoded.bindings;
      bool counts = encoded.pipeline->options().counters;
      Profile profile;
      Error error = encoded.pipeline->run(encoded.dispatch, counts ? &sum : nullptr,
                                          counts ? &profile : nullptr);
      if (counts)
        lines.add(encoded.pipeline->function()->library(), profile);
      if (error) {
        failure = toString(std::move(error));
        // What asks for an interrupt looks at the beginning of the text.
        if (!StringRef(failure).starts_with(launchInterrupted))
          failure = label(number) + failure;
        break;
      }
    }
  double to = now();
  {
    std::lock_guard lock(mutex);
    start = from;
    end = to;
    counted = sum;
    profiled = std::move(lines);
    if (problem.empty())
      problem = failure;
    state = problem.empty() ? CommandBufferStatus::Completed : CommandBufferStatus::Error;
  }
  for (auto &handler : handlers)
    handler(*this);
  handlers.clear();
  dispatches.clear(); // and with them what they keep
}

bool CommandBuffer::waitFor(std::chrono::nanoseconds time) {
  Turns &turns = queue->turns();
  std::unique_lock lock(turns.mutex);
  auto done = [&] {
    std::lock_guard own(mutex);
    if (process != getpid() && !isDone) {
      problem = "the command buffer was committed by the process that this one was forked from";
      state = CommandBufferStatus::Error;
      isDone = true;
    }
    // A handler that asks is itself part of what it would wait for.
    return isDone || (turns.isOnThread() && state >= CommandBufferStatus::Completed);
  };
  if (status() == CommandBufferStatus::NotEnqueued)
    return false;
  // Nobody else would run what a handler waits for.
  while (turns.isOnThread() && !done() && !turns.committed.empty())
    runNext(*queue, lock);
  if (time == std::chrono::nanoseconds::max()) {
    turns.changed.wait(lock, done);
    return true;
  }
  return turns.changed.wait_for(lock, time, done);
}

Error CommandBuffer::waitUntilCompleted() {
  if (status() == CommandBufferStatus::NotEnqueued)
    return createStringError("waitUntilCompleted was called before commit");
  waitFor(std::chrono::nanoseconds::max());
  if (std::optional<std::string> text = error())
    return createStringError(*text);
  return Error::success();
}

CommandBufferStatus CommandBuffer::status() const {
  std::lock_guard lock(mutex);
  return state;
}

std::optional<std::string> CommandBuffer::error() const {
  std::lock_guard lock(mutex);
  if (state != CommandBufferStatus::Error)
    return std::nullopt;
  return problem;
}

double CommandBuffer::GPUStartTime() const {
  std::lock_guard lock(mutex);
  return start;
}

double CommandBuffer::GPUEndTime() const {
  std::lock_guard lock(mutex);
  return end;
}

Counters CommandBuffer::counters() const {
  std::lock_guard lock(mutex);
  return counted;
}

ProfileReport CommandBuffer::profile() const {
  std::lock_guard lock(mutex);
  return profiled;
}

//===----------------------------------------------------------------------===//
// Queues
//===----------------------------------------------------------------------===//

CommandQueue::CommandQueue() : state(std::make_shared<CommandBuffer::QueueState>()) {}

CommandQueue::~CommandQueue() {
  Turns &turns = state->turns();
  std::lock_guard lock(turns.mutex);
  turns.isClosed = true; // its thread ends when it has run everything
  turns.changed.notify_all();
}

std::shared_ptr<CommandBuffer> CommandQueue::commandBuffer() {
  return std::shared_ptr<CommandBuffer>(new CommandBuffer(state));
}

Error CommandQueue::run(ComputePipelineState &pipeline, const Dispatch &dispatch,
                        Counters *counters, double *seconds, Profile *profile) {
  Turns &turns = state->turns();
  bool wasBusy;
  {
    std::unique_lock lock(turns.mutex);
    // Nobody else would run what a handler waits for.
    while (turns.isOnThread() && !turns.committed.empty())
      CommandBuffer::runNext(*state, lock);
    turns.changed.wait(lock, [&] { return turns.isOnThread() || turns.isIdle(); });
    wasBusy = std::exchange(turns.isBusy, true);
  }
  Error error = seconds ? pipeline.prepare(dispatch) : Error::success();
  double start = seconds ? now() : 0;
  if (!error)
    error = pipeline.run(dispatch, counters, profile);
  if (seconds)
    *seconds = now() - start;
  {
    std::lock_guard lock(turns.mutex);
    turns.isBusy = wasBusy;
  }
  turns.changed.notify_all();
  return error;
}

bool CommandQueue::waitUntilIdle(std::chrono::nanoseconds time) {
  Turns &turns = state->turns();
  std::unique_lock lock(turns.mutex);
  while (turns.isOnThread() && !turns.committed.empty())
    CommandBuffer::runNext(*state, lock);
  return turns.changed.wait_for(lock, time, [&] { return turns.isOnThread() || turns.isIdle(); });
}

} // namespace triton_metal::metal
