// The device under Metal's names: libraries, functions with constants, pipelines, command buffers.
#include "host_device/Metal.h"
#include "gtest/gtest.h"
#include <future>
#include <numeric>
#include <thread>

using namespace triton_metal::metal;
using triton_metal::BufferBinding;
using triton_metal::Counters;
using triton_metal::Dispatch;
using triton_metal::KernelInfo;
using triton_metal::ParameterInfo;
using triton_metal::ScalarKind;

namespace {

const char *source = R"(#include <metal_stdlib>
using namespace metal;
constant bool use_bias [[function_constant(0)]];
constant float scale [[function_constant(3)]];
constant ushort4 unused [[function_constant(7)]];
constant float factor = is_function_constant_defined(scale) ? scale : 1.0f;
struct Sizes { uint rows, columns; };
kernel void add(device const float *a [[buffer(0)]], device float *out [[buffer(1)]],
                constant float &bias [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  out[i] = a[i] * factor + (use_bias ? bias : 0.0f);
}
kernel void twice(device float4 *x, uint i [[thread_position_in_grid]]) { x[i] *= 2; }
kernel void reverse(device uint *x, threadgroup uint *tile [[threadgroup(1)]],
                    constant Sizes &sizes, uint l [[thread_index_in_threadgroup]],
                    uint g [[threadgroup_position_in_grid]], uint n [[threads_per_threadgroup]]) {
  threadgroup uint own[16];
  own[l % 16] = sizes.rows;
  tile[l] = x[g * n + l];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  x[g * n + l] = tile[n - 1 - l] + own[(l + 1) % 16] * sizes.columns;
}
)";

std::string textOf(llvm::Error error) {
  return error ? llvm::toString(std::move(error)) : std::string();
}

template <typename T> std::string errorOf(llvm::Expected<T> result) {
  return result ? std::string() : llvm::toString(result.takeError());
}

struct MetalTest : ::testing::Test {
  Device device = createSystemDefaultDevice();
  std::shared_ptr<Library> library = llvm::cantFail(device.newLibrary(source));
  std::shared_ptr<CommandQueue> queue = device.newCommandQueue();

  std::shared_ptr<ComputePipelineState> pipeline(llvm::StringRef name,
                                                 const FunctionConstantValues &constants = {},
                                                 const PipelineOptions &options = {}) {
    auto function = llvm::cantFail(library->newFunction(name, constants));
    return llvm::cantFail(device.newComputePipelineState(function, options));
  }
  std::shared_ptr<Buffer> floats(std::vector<float> values) {
    return llvm::cantFail(device.newBuffer(values.data(), values.size() * sizeof(float)));
  }
  static std::vector<float> contents(const Buffer &buffer) {
    const float *begin = static_cast<const float *>(buffer.contents());
    return {begin, begin + buffer.length() / sizeof(float)};
  }
};

TEST_F(MetalTest, RunsAFunctionWithConstants) {
  FunctionConstantValues constants;
  constants.set("use_bias", true).set(3, 2.5);
  auto state = pipeline("add", constants);
  EXPECT_EQ(state->threadExecutionWidth(), 32u);
  EXPECT_EQ(state->maxTotalThreadsPerThreadgroup(), 1024u);
  EXPECT_EQ(state->staticThreadgroupMemoryLength(), 0u);
  EXPECT_EQ(state->writtenBuffers(), 2u);
  auto a = floats({1, 2, 3, 4}), out = floats({0, 0, 0, 0});
  auto commands = queue->commandBuffer();
  auto encoder = commands->computeCommandEncoder();
  encoder->setComputePipelineState(state);
  encoder->setBuffer(a, 0, 0);
  encoder->setBuffer(out, 0, 1);
  encoder->setValue(10.0f, 2);
  encoder->dispatchThreads({4}, {32});
  encoder->endEncoding();
  EXPECT_EQ(commands->status(), CommandBufferStatus::NotEnqueued);
  commands->commit();
  EXPECT_EQ(textOf(commands->waitUntilCompleted()), "");
  EXPECT_EQ(commands->status(), CommandBufferStatus::Completed);
  EXPECT_EQ(contents(*out), (std::vector<float>{12.5, 15, 17.5, 20}));
  EXPECT_GT(commands->GPUStartTime(), 0);
  EXPECT_GE(commands->GPUEndTime(), commands->GPUStartTime());
}

TEST_F(MetalTest, OneLibraryMakesSeveralSpecialisations) {
  std::vector<float> a{1, 2}, out(2);
  float bias = 5;
  std::vector<BufferBinding> buffers = {{a.data(), 8}, {out.data(), 8, true}, {&bias, 4}};
  auto run = [&](const FunctionConstantValues &constants) {
    Dispatch dispatch;
    dispatch.gridThreads = {2, 1, 1};
    dispatch.buffers = buffers;
    EXPECT_EQ(textOf(queue->run(*pipeline("add", constants), dispatch)), "");
    return out;
  };
  EXPECT_EQ(run(FunctionConstantValues().set(0, true)), (std::vector<float>{6, 7}));
  EXPECT_EQ(run(FunctionConstantValues().set(0, false).set("scale", int64_t(3))),
            (std::vector<float>{3, 6}));
}

TEST_F(MetalTest, Reflection) {
  EXPECT_EQ(library->functionNames(), (std::vector<std::string>{"add", "twice", "reverse"}));
  std::vector<KernelInfo> functions = library->functions();
  const KernelInfo &add = functions[0], &reverse = functions[2];
  ASSERT_EQ(add.functionConstants.size(), 3u);
  EXPECT_EQ(add.functionConstants[0].name, "use_bias");
  EXPECT_TRUE(add.functionConstants[0].required);
  EXPECT_FALSE(add.functionConstants[1].required); // it asks whether there is a value
  EXPECT_FALSE(add.functionConstants[2].required);
  EXPECT_EQ(add.functionConstants[2].vectorWidth, 4u);
  EXPECT_FALSE(functions[1].functionConstants[0].required);
  EXPECT_EQ(declarationOf(add.parameters[0]), "device const float *a");
  EXPECT_EQ(declarationOf(reverse.parameters[1]), "threadgroup uint *tile");
  EXPECT_EQ(declarationOf(reverse.parameters[2]), "constant Sizes &sizes");
  EXPECT_EQ(reverse.parameters[2].scalarKind, ScalarKind::None);
  EXPECT_EQ(reverse.parameters[2].elementSize, 8u);
  const ParameterInfo &x = functions[1].parameters[0];
  EXPECT_EQ(x.scalarKind, ScalarKind::Float);
  EXPECT_EQ(x.scalarBits, 32u);
  EXPECT_EQ(x.vectorWidth, 4u);
  EXPECT_EQ(pipeline("reverse")->staticThreadgroupMemoryLength(), 64u);
}

TEST_F(MetalTest, WrongFunctionsAndConstants) {
  auto problem = [&](llvm::StringRef name, const FunctionConstantValues &constants) {
    return errorOf(library->newFunction(name, constants));
  };
  EXPECT_EQ(problem("ad", {}), "the library has no function 'ad'; did you mean 'add'?");
  EXPECT_EQ(problem("zzzzzz", {}),
            "the library has no function 'zzzzzz'; its functions are add, twice, reverse");
  EXPECT_EQ(problem("add", {}),
            "kernel 'add': needs a value for function constant 'use_bias' (index 0, bool)");
  EXPECT_EQ(problem("add", FunctionConstantValues().set("bias", true)),
            "'add': there is no function constant 'bias'; the library has use_bias (index 0), "
            "scale (index 3), unused (index 7)");
  EXPECT_EQ(problem("add", FunctionConstantValues().set(0, int64_t(2))),
            "'add': function constant 0: 2 does not fit into 'bool'");
  EXPECT_EQ(problem("add", FunctionConstantValues().set(0, true).set("use_bias", true)),
            "'add': function constant 'use_bias' is given two values");
  EXPECT_EQ(problem("add", FunctionConstantValues().set(7, int64_t(1))),
            "'add': function constant 7: has type 'ushort4', which takes 4 numbers, but got 1");
  EXPECT_EQ(problem("add", FunctionConstantValues().set(0, true).set(
                               7, {int64_t(1), int64_t(2), int64_t(3), int64_t(70000)})),
            "'add': function constant 7: 70000 does not fit into 'ushort'");
  EXPECT_NE(errorOf(device.newLibrary("kernel void f() { x; }")).find("kernel.metal:1:19: error:"),
            std::string::npos);
}

TEST_F(MetalTest, DispatchesOfACommandBufferRunInOrderWithTheirOwnBindings) {
  auto twice = pipeline("twice");
  auto add = pipeline("add", FunctionConstantValues().set(0, true));
  auto x = floats({1, 2, 3, 4, 5, 6, 7, 8}), out = floats(std::vector<float>(4));
  auto commands = queue->commandBuffer();
  auto encoder = commands->computeCommandEncoder();
  encoder->setComputePipelineState(twice);
  encoder->setBuffer(x, 0, 0);
  encoder->dispatchThreads({2}, {2});
  encoder->dispatchThreads({2}, {2});
  encoder->setComputePipelineState(add);
  encoder->setBuffer(x, 16, 0);
  encoder->setBuffer(out, 0, 1);
  encoder->setValue(1.0f, 2);
  encoder->dispatchThreadgroups({2}, {2});
  encoder->setValue(2.0f, 2); // later bindings do not change what is encoded
  encoder->endEncoding();
  commands->commit();
  ASSERT_EQ(textOf(commands->waitUntilCompleted()), "");
  EXPECT_EQ(contents(*out), (std::vector<float>{21, 25, 29, 33}));
}

TEST_F(MetalTest, ThreadgroupMemoryAndBytes) {
  std::vector<uint32_t> x(64);
  std::iota(x.begin(), x.end(), 0);
  auto buffer = device.newBufferNoCopy(x.data(), x.size() * 4);
  auto commands = queue->commandBuffer();
  auto encoder = commands->computeCommandEncoder();
  encoder->setComputePipelineState(pipeline("reverse"));
  encoder->setBuffer(buffer, 0, 0);
  uint32_t sizes[2] = {10, 10};
  encoder->setBytes(sizes, sizeof sizes, 1);
  encoder->setThreadgroupMemoryLength(128, 1);
  encoder->dispatchThreadgroups({2}, {32});
  encoder->endEncoding();
  commands->commit();
  ASSERT_EQ(textOf(commands->waitUntilCompleted()), "");
  for (uint32_t i = 0; i != 64; ++i)
    EXPECT_EQ(x[i], (i / 32 * 32) + 31 - i % 32 + 100);
}

TEST_F(MetalTest, CommandBuffersRunInOrderAndCallTheirHandlers) {
  auto twice = pipeline("twice");
  auto x = floats({1, 1, 1, 1});
  std::vector<int> order;
  std::vector<std::shared_ptr<CommandBuffer>> all;
  for (int i = 0; i != 20; ++i) {
    auto commands = queue->commandBuffer();
    auto encoder = commands->computeCommandEncoder();
    encoder->setComputePipelineState(twice);
    encoder->setBuffer(x, 0, 0);
    encoder->dispatchThreads({1}, {1});
    encoder->endEncoding();
    commands->addCompletedHandler([&, i](CommandBuffer &done) {
      EXPECT_EQ(done.status(), CommandBufferStatus::Completed);
      EXPECT_EQ(textOf(done.waitUntilCompleted()), ""); // does not wait for itself
      order.push_back(i);
    });
    commands->commit();
    all.push_back(commands);
  }
  EXPECT_EQ(textOf(all.back()->waitUntilCompleted()), "");
  std::vector<int> expected(20);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(order, expected);
  EXPECT_EQ(contents(*x), std::vector<float>(4, 1 << 20));
}

TEST_F(MetalTest, AFailureEndsItsCommandBufferAndNoOther) {
  auto twice = pipeline("twice", {}, {.checks = {.bounds = true}});
  auto x = floats({1, 1, 1, 1});
  auto submit = [&](std::vector<uint32_t> threads) {
    auto commands = queue->commandBuffer();
    auto encoder = commands->computeCommandEncoder();
    encoder->setComputePipelineState(twice);
    encoder->setBuffer(x, 0, 0);
    for (uint32_t count : threads)
      encoder->dispatchThreads({count}, {1});
    encoder->endEncoding();
    commands->commit();
    return commands;
  };
  auto bad = submit({1, 2, 1}), good = submit({1});
  std::string text = textOf(bad->waitUntilCompleted());
  EXPECT_NE(text.find("dispatch 2 of 3: kernel 'twice', line 12:"), std::string::npos) << text;
  EXPECT_EQ(bad->status(), CommandBufferStatus::Error);
  EXPECT_EQ(bad->error(), text);
  EXPECT_EQ(textOf(good->waitUntilCompleted()), "");
}

TEST_F(MetalTest, WrongEncodingIsAnErrorOfTheCommandBuffer) {
  auto twice = pipeline("twice");
  auto x = floats({1, 1, 1, 1});
  using Encode = std::function<void(CommandBuffer &, ComputeCommandEncoder &)>;
  auto problem = [&](const Encode &encode) {
    auto commands = queue->commandBuffer();
    auto encoder = commands->computeCommandEncoder();
    encode(*commands, *encoder);
    encoder->endEncoding();
    commands->commit();
    return textOf(commands->waitUntilCompleted());
  };
  EXPECT_EQ(problem([](auto &, auto &encoder) { encoder.dispatchThreads({1}, {1}); }),
            "a dispatch needs a pipeline: call setComputePipelineState before it");
  EXPECT_EQ(problem([&](auto &, auto &encoder) { encoder.setBuffer(x, 17, 0); }),
            "setBuffer: the offset 17 of buffer 0 is beyond its length of 16 bytes");
  EXPECT_EQ(problem([&](auto &, auto &encoder) { encoder.setBuffer(x, 0, 31); }),
            "setBuffer: there is no buffer 31; indices are 0 to 30");
  EXPECT_EQ(problem([&](auto &, auto &encoder) { encoder.setBytes("", 0, 1); }),
            "setBytes: buffer 1 is given 0 bytes; 1 to 4096 are allowed");
  std::vector<char> large(4097);
  EXPECT_EQ(problem([&](auto &, auto &encoder) { encoder.setBytes(large.data(), 4097, 1); }),
            "setBytes: buffer 1 is given 4097 bytes; 1 to 4096 are allowed");
  EXPECT_EQ(problem([&](auto &, auto &encoder) { encoder.setThreadgroupMemoryLength(16, 40); }),
            "setThreadgroupMemoryLength: there is no threadgroup argument 40; indices are 0 to 30");
  EXPECT_EQ(problem([&](auto &, auto &encoder) {
              encoder.endEncoding();
              encoder.dispatchThreads({1}, {1});
            }),
            "dispatchThreads was called after endEncoding");
  EXPECT_EQ(problem([&](auto &commands, auto &) { commands.commit(); }),
            "commit: the encoder has not ended; call endEncoding");
  EXPECT_NE(problem([&](auto &, auto &encoder) {
              encoder.setComputePipelineState(twice);
              encoder.dispatchThreads({1}, {1});
            }).find("'x' (buffer 0) is missing"),
            std::string::npos);
  auto constant = device.newBufferNoCopy(static_cast<const void *>(large.data()), 16);
  EXPECT_NE(problem([&](auto &, auto &encoder) {
              encoder.setComputePipelineState(twice);
              encoder.setBuffer(constant, 0, 0);
              encoder.dispatchThreads({1}, {1});
            }).find("bound read-only"),
            std::string::npos);
  EXPECT_EQ(textOf(queue->commandBuffer()->waitUntilCompleted()),
            "waitUntilCompleted was called before commit");
  EXPECT_EQ(contents(*x), std::vector<float>(4, 1));
}

TEST_F(MetalTest, CountersAreSummedOverDispatches) {
  auto twice = pipeline("twice", {}, {.checks = {}, .counters = true});
  auto x = floats({1, 1, 1, 1});
  auto commands = queue->commandBuffer();
  auto encoder = commands->computeCommandEncoder();
  encoder->setComputePipelineState(twice);
  encoder->setBuffer(x, 0, 0);
  encoder->dispatchThreads({1}, {1});
  encoder->dispatchThreads({1}, {1});
  encoder->endEncoding();
  commands->commit();
  ASSERT_EQ(textOf(commands->waitUntilCompleted()), "");
  EXPECT_EQ(commands->counters()[Counters::DeviceBytesRead], 32u);
  EXPECT_EQ(commands->counters()[Counters::Threads], 2u);
}

TEST_F(MetalTest, BuffersAreWholeZeroedMemoryAndReleased) {
  auto buffer = llvm::cantFail(device.newBuffer(10000));
  EXPECT_EQ(buffer->length(), 10000u);
  for (size_t i = 0; i != 10000; ++i)
    ASSERT_EQ(static_cast<char *>(buffer->contents())[i], 0);
  EXPECT_EQ(errorOf(device.newBuffer(0)), "a buffer needs a length of at least 1 byte");
  EXPECT_NE(errorOf(device.newBuffer(uint64_t(1) << 62)).find("there is no memory"),
            std::string::npos);
  // A buffer lives as long as a command buffer needs it.
  std::promise<void> released;
  std::vector<float> values(4, 1);
  auto wrapped =
      device.newBufferNoCopy(values.data(), values.size() * 4, [&] { released.set_value(); });
  auto commands = queue->commandBuffer();
  auto encoder = commands->computeCommandEncoder();
  encoder->setComputePipelineState(pipeline("twice"));
  encoder->setBuffer(wrapped, 0, 0);
  encoder->dispatchThreads({1}, {1});
  encoder->endEncoding();
  encoder.reset();
  wrapped.reset();
  commands->commit();
  EXPECT_EQ(textOf(commands->waitUntilCompleted()), "");
  commands.reset();
  released.get_future().wait();
  EXPECT_EQ(values, std::vector<float>(4, 2));
}

TEST_F(MetalTest, ADroppedQueueRunsWhatWasCommitted) {
  auto x = floats({1, 1, 1, 1});
  auto commands = queue->commandBuffer();
  auto encoder = commands->computeCommandEncoder();
  encoder->setComputePipelineState(pipeline("twice"));
  encoder->setBuffer(x, 0, 0);
  encoder->dispatchThreads({1}, {1});
  encoder->endEncoding();
  commands->commit();
  queue.reset();
  EXPECT_EQ(textOf(commands->waitUntilCompleted()), "");
  EXPECT_EQ(contents(*x), std::vector<float>(4, 2));
}

TEST_F(MetalTest, ManyThreadsUseOneQueue) {
  auto twice = pipeline("twice");
  std::vector<std::thread> threads;
  std::vector<std::vector<float>> values(8, std::vector<float>(4, 1));
  for (auto &own : values)
    threads.emplace_back([&] {
      std::vector<BufferBinding> buffers = {{own.data(), 16, true}};
      Dispatch dispatch;
      dispatch.buffers = buffers;
      for (int i = 0; i != 16; ++i) {
        if (i % 2) {
          EXPECT_EQ(textOf(queue->run(*twice, dispatch)), "");
          continue;
        }
        auto commands = queue->commandBuffer();
        commands->add({twice, dispatch, buffers, {}});
        commands->commit();
        EXPECT_EQ(textOf(commands->waitUntilCompleted()), "");
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  for (auto &own : values)
    EXPECT_EQ(own, std::vector<float>(4, 1 << 16));
}

} // namespace
