// Command queues, command buffers and encoders: dispatches that run in order.
#pragma once

#include "host_device/metal/Buffer.h"
#include "host_device/metal/Pipeline.h"
#include "host_device/metal/ProfileReport.h"
#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace triton_metal::metal {

struct Size {
  uint32_t width = 1, height = 1, depth = 1;
  std::array<uint32_t, 3> array() const { return {width, height, depth}; }
};

/// A dispatch with everything that it needs. The memory of its buffers must stay until it has run;
/// `keepAlive` may hold what owns it.
struct EncodedDispatch {
  std::shared_ptr<ComputePipelineState> pipeline;
  /// Its `buffers` are not used.
  Dispatch dispatch;
  std::vector<BufferBinding> bindings;
  std::vector<std::shared_ptr<void>> keepAlive;
};

enum class CommandBufferStatus { NotEnqueued, Committed, Scheduled, Completed, Error };

class CommandBuffer;
class CommandQueue;

/// Encodes dispatches into a command buffer. Bindings stay from one dispatch to the next. Wrong use
/// is an error of the command buffer, whose dispatches then do not run.
class ComputeCommandEncoder {
public:
  void setComputePipelineState(std::shared_ptr<ComputePipelineState> pipeline);
  void setBuffer(std::shared_ptr<Buffer> buffer, uint64_t offset, uint32_t index);
  /// Copies up to 4,096 bytes, which the function sees as a buffer.
  void setBytes(const void *bytes, uint64_t length, uint32_t index);
  template <typename T> void setValue(const T &value, uint32_t index) {
    setBytes(&value, sizeof value, index);
  }
  /// Sets the length of a `threadgroup` argument.
  void setThreadgroupMemoryLength(uint32_t length, uint32_t index);
  /// Draws the order of threadgroups and SIMD-groups from a seed. (Not in Metal.)
  void setSeed(std::optional<uint64_t> seed);

  /// A grid of threads; threadgroups at its edges are cut.
  void dispatchThreads(Size threads, Size threadsPerThreadgroup);
  void dispatchThreadgroups(Size threadgroups, Size threadsPerThreadgroup);
  void endEncoding();

private:
  friend class CommandBuffer;
  explicit ComputeCommandEncoder(CommandBuffer &commands) : commands(commands) {}
  void encode(Dispatch dispatch);
  bool isOpen(const char *what);

  struct Binding {
    BufferBinding binding;
    std::shared_ptr<void> owner;
  };
  CommandBuffer &commands;
  std::shared_ptr<ComputePipelineState> pipeline;
  std::array<Binding, maxBufferBindings> bindings;
  std::vector<uint32_t> lengths;
  std::optional<uint64_t> seed;
  bool ended = false;
};

/// Dispatches that run one after the other, when the command buffers that its queue got before have
/// run. If one fails, those after it do not run.
class CommandBuffer : public std::enable_shared_from_this<CommandBuffer> {
public:
  ~CommandBuffer();
  std::shared_ptr<ComputeCommandEncoder> computeCommandEncoder();
  /// Adds a dispatch without an encoder.
  void add(EncodedDispatch dispatch);
  /// `handler` is called on the queue's thread when the command buffer has completed or failed. It
  /// must be added before `commit`. A handler may run dispatches and wait for command buffers.
  void addCompletedHandler(std::function<void(CommandBuffer &)> handler);
  /// Gives the command buffer to its queue, which runs it on a thread of its own.
  void commit();
  /// Waits until all dispatches have run and all handlers have been called. Returns what went
  /// wrong.
  llvm::Error waitUntilCompleted();
  /// The same for at most this time. Returns whether it has completed.
  bool waitFor(std::chrono::nanoseconds time);

  CommandBufferStatus status() const;
  /// What went wrong, once the status is Error; otherwise nothing.
  std::optional<std::string> error() const;
  /// When its dispatches began and ended to run, in seconds of a steady clock. 0 before that.
  double GPUStartTime() const;
  double GPUEndTime() const;
  /// The sums over the dispatches of pipelines that count.
  Counters counters() const;
  /// The same for each line of the texts.
  ProfileReport profile() const;
  std::string label;

private:
  friend class CommandQueue;
  friend class ComputeCommandEncoder;
  struct QueueState;
  explicit CommandBuffer(std::shared_ptr<QueueState> queue) : queue(std::move(queue)) {}
  void refuse(const llvm::Twine &problem);
  void run();
  static void serve(std::shared_ptr<QueueState> queue);
  /// Runs the queue's next command buffer. `lock` holds the queue's mutex.
  static void runNext(QueueState &queue, std::unique_lock<std::mutex> &lock);

  std::shared_ptr<QueueState> queue;
  std::vector<EncodedDispatch> dispatches;
  std::vector<std::function<void(CommandBuffer &)>> handlers;
  std::shared_ptr<ComputeCommandEncoder> encoder;
  mutable std::mutex mutex;
  CommandBufferStatus state = CommandBufferStatus::NotEnqueued;
  bool isDone = false;
  /// The process that committed it.
  int process = 0;
  std::string problem;
  double start = 0, end = 0;
  Counters counted;
  ProfileReport profiled;
};

/// Runs command buffers in the order in which they are committed.
class CommandQueue {
public:
  CommandQueue();
  ~CommandQueue();
  CommandQueue(const CommandQueue &) = delete;
  std::shared_ptr<CommandBuffer> commandBuffer();
  /// Runs one dispatch on this thread when everything committed before has run: the quickest way
  /// for those who wait anyway. `seconds` is set to the time of the run.
  llvm::Error run(ComputePipelineState &pipeline, const Dispatch &dispatch,
                  Counters *counters = nullptr, double *seconds = nullptr,
                  Profile *profile = nullptr);
  /// Waits at most this time until everything committed has run. Returns whether it has.
  bool waitUntilIdle(std::chrono::nanoseconds time);

private:
  std::shared_ptr<CommandBuffer::QueueState> state;
};

} // namespace triton_metal::metal
