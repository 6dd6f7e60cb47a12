// How a launch is encoded for a GPU: MLX's own header, its classes recording.
#include "Recording.h"
#include "runtime/mlx/InPlace.h"

#include "mlx/ops.h"
#include "mlx/stream.h"
#include "mlx/transforms.h"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>

using namespace triton_metal;
using namespace triton_metal::mlx_route;

namespace {

/// A table of a kernel that never runs here.
struct FakeKernel : runtime::KernelTable {
  std::deque<runtime::KernelTableArgument> list;
  std::string text;
  int references = 0;

  explicit FakeKernel(std::string text = "kernel void k() {}") : KernelTable{}, text(text) {
    interface = runtime::kernelTableInterface;
    retain = [](const KernelTable *table) {
      ++const_cast<FakeKernel *>(static_cast<const FakeKernel *>(table))->references;
    };
    release = [](const KernelTable *table) {
      --const_cast<FakeKernel *>(static_cast<const FakeKernel *>(table))->references;
    };
    name = "k";
    metal = this->text.c_str();
    metalBytes = this->text.size();
    threads = 128;
    numBuffers = 4;
    scalarBuffer = 3;
    scalarWords = 2;
  }
};

/// The graph's arrays of one launch, as MLX makes them.
std::vector<mx::array> outputsOf(const std::shared_ptr<InPlace> &primitive,
                                 const std::vector<mx::array> &inputs,
                                 const std::vector<int> &places) {
  std::vector<mx::Shape> shapes;
  std::vector<mx::Dtype> dtypes;
  for (size_t i = 0; i < places.size(); ++i)
    if (places[i] >= 0) {
      shapes.push_back(inputs[i].shape());
      dtypes.push_back(inputs[i].dtype());
    }
  return mx::array::make_arrays(shapes, dtypes, primitive, inputs);
}

mx::array filled(mx::Shape shape, float value = 1) {
  mx::array result = mx::full(std::move(shape), value, mx::float32);
  mx::eval(result);
  return result;
}

mx::Stream cpu() { return mx::default_stream(mx::Device(mx::Device::cpu)); }

Launch launchOf(const FakeKernel &kernel, std::vector<Launch::Binding> bindings,
                std::vector<int> outputs) {
  Launch launch{KernelReference(&kernel), {}, {}, {}, {}, {}};
  launch.grid[0] = 7;
  launch.grid[1] = 5;
  launch.grid[2] = 3;
  launch.scalars = {0x01020304, 0xfffffff0};
  launch.bindings = std::move(bindings);
  launch.aligned.resize(outputs.size(), false);
  launch.outputs = std::move(outputs);
  return launch;
}

/// "input 0", "output 1", ... of all calls.
std::vector<std::string> order() {
  std::vector<std::string> result;
  for (const recording::Call &call : recording::calls())
    result.push_back(call.what + (call.what == "pipeline" ? " " + call.name
                                  : call.index >= 0       ? " " + std::to_string(call.index)
                                                          : ""));
  return result;
}

using Order = std::vector<std::string>;

class EvalGpu : public testing::Test {
protected:
  void SetUp() override { recording::clear(); }
};

TEST_F(EvalGpu, TakesOverABufferThatNobodyElseHolds) {
  FakeKernel kernel;
  {
    std::vector<mx::array> inputs;
    inputs.push_back(filled({8}));
    inputs.push_back(filled({8}));
    const void *read = inputs[0].data<char>(), *written = inputs[1].data<char>();
    auto primitive = std::make_shared<InPlace>(cpu(), launchOf(kernel, {{0, 0}, {2, 1}}, {-1, 0}));
    auto outputs = outputsOf(primitive, inputs, {-1, 0});
    inputs.clear();
    primitive->eval_gpu(outputs[0].inputs(), outputs);
    EXPECT_EQ(order(), (Order{"pipeline k", "input 0", "output 2", "bytes 3", "threadgroups",
                              "temporaries 0"}));
    auto &calls = recording::calls();
    EXPECT_EQ(calls[1].address, read);
    EXPECT_EQ(calls[2].address, written);
    EXPECT_EQ(calls[3].bytes, (std::vector<uint8_t>{4, 3, 2, 1, 0xf0, 0xff, 0xff, 0xff}));
    EXPECT_EQ(calls[4].grid.width, 7u);
    EXPECT_EQ(calls[4].grid.height, 5u);
    EXPECT_EQ(calls[4].grid.depth, 3u);
    EXPECT_EQ(calls[4].group.width, 128u);
    EXPECT_EQ(calls[4].group.height, 1u);
    EXPECT_EQ(calls[4].group.depth, 1u);
    ASSERT_EQ(recording::libraries().size(), 1u);
    EXPECT_EQ(recording::libraries()[0].second, "kernel void k() {}");
  }
  EXPECT_EQ(kernel.references, 0);
}

TEST_F(EvalGpu, TakesOverTheBuffersOfSeveralOutputs) {
  FakeKernel kernel;
  std::vector<mx::array> inputs;
  for (int i = 0; i < 3; ++i)
    inputs.push_back(filled({8}));
  std::vector<const void *> before;
  for (mx::array &input : inputs)
    before.push_back(input.data<char>());
  auto primitive =
      std::make_shared<InPlace>(cpu(), launchOf(kernel, {{0, 0}, {1, 1}, {2, 2}}, {0, 1, 2}));
  auto outputs = outputsOf(primitive, inputs, {0, 1, 2});
  inputs.clear();
  primitive->eval_gpu(outputs[1].inputs(), outputs);
  auto &calls = recording::calls();
  ASSERT_EQ(order(), (Order{"pipeline k", "output 0", "output 1", "output 2", "bytes 3",
                            "threadgroups", "temporaries 0"}));
  for (size_t i = 0; i < 3; ++i)
    EXPECT_EQ(calls[i + 1].address, before[i]);
}

TEST_F(EvalGpu, CopiesAnArrayThatSomebodyHolds) {
  FakeKernel kernel;
  mx::array held = filled({8});
  auto primitive = std::make_shared<InPlace>(cpu(), launchOf(kernel, {{0, 0}}, {0}));
  auto outputs = outputsOf(primitive, {held}, {0});
  primitive->eval_gpu(outputs[0].inputs(), outputs);
  EXPECT_EQ(order(), (Order{"pipeline triton_metal_copy_4", "input 0", "output 1", "bytes 2",
                            "bytes 3", "bytes 4", "bytes 5", "threads", "pipeline k", "output 0",
                            "bytes 3", "threadgroups", "temporaries 0"}));
  auto &calls = recording::calls();
  EXPECT_EQ(calls[1].address, held.data<char>());
  EXPECT_EQ(calls[2].address, outputs[0].data<char>());
  EXPECT_NE(calls[1].address, calls[2].address);
  EXPECT_EQ(calls[9].address, outputs[0].data<char>());
  EXPECT_EQ(calls[5].bytes, (std::vector<uint8_t>{0, 0, 0, 0})); // rank: as it lies
  EXPECT_EQ(calls[6].bytes, (std::vector<uint8_t>{8, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(calls[7].grid.width, 8u);
}

TEST_F(EvalGpu, BringsAViewIntoRowMajorOrder) {
  FakeKernel kernel;
  mx::array base = filled({2, 3});
  mx::array view = mx::transpose(base, cpu());
  mx::eval(view);
  ASSERT_FALSE(view.flags().row_contiguous);
  mx::array out = filled({6});
  auto primitive = std::make_shared<InPlace>(cpu(), launchOf(kernel, {{0, 0}, {1, 1}}, {-1, 0}));
  auto outputs = outputsOf(primitive, {view, out}, {-1, 0});
  primitive->eval_gpu(outputs[0].inputs(), outputs);
  auto &calls = recording::calls();
  ASSERT_EQ(calls[0].name, "triton_metal_copy_4");
  int32_t shape[2];
  int64_t strides[2];
  ASSERT_EQ(calls[3].bytes.size(), sizeof shape);
  ASSERT_EQ(calls[4].bytes.size(), sizeof strides);
  std::memcpy(shape, calls[3].bytes.data(), sizeof shape);
  std::memcpy(strides, calls[4].bytes.data(), sizeof strides);
  EXPECT_EQ(shape[0], 3);
  EXPECT_EQ(shape[1], 2);
  EXPECT_EQ(strides[0], 1);
  EXPECT_EQ(strides[1], 3);
  EXPECT_EQ(calls[5].bytes, (std::vector<uint8_t>{2, 0, 0, 0}));
  EXPECT_EQ(calls.back().index, 1); // the copy is a temporary
  // The kernel reads the copy.
  size_t kernelAt = 0;
  while (kernelAt < calls.size() && calls[kernelAt].name != "k")
    ++kernelAt;
  ASSERT_LT(kernelAt + 1, calls.size());
  EXPECT_EQ(calls[kernelAt + 1].what, "input");
  EXPECT_EQ(calls[kernelAt + 1].address, calls[2].address);
}

TEST_F(EvalGpu, BringsAnArrayToAnAlignedPlaceWhereTheKernelWantsOne) {
  FakeKernel kernel;
  std::vector<mx::array> inputs = {filled({9})};
  mx::array part = mx::slice(inputs[0], {1}, {9}, cpu());
  mx::eval(part);
  auto begins = [](const void *address) { return reinterpret_cast<uintptr_t>(address) & 15; };
  ASSERT_NE(begins(part.data<char>()), 0u);
  for (bool aligned : {false, true}) {
    recording::clear();
    Launch launch = launchOf(kernel, {{0, 0}, {1, 1}}, {-1, 0});
    launch.aligned[0] = aligned;
    auto primitive = std::make_shared<InPlace>(cpu(), std::move(launch));
    std::vector<mx::array> arrays = {part, filled({8})};
    auto outputs = outputsOf(primitive, arrays, {-1, 0});
    arrays.clear();
    primitive->eval_gpu(outputs[0].inputs(), outputs);
    auto &calls = recording::calls();
    EXPECT_EQ(calls[0].name, aligned ? "triton_metal_copy_4" : "k");
    EXPECT_EQ(calls[1].address, part.data<char>());
    EXPECT_EQ(calls.back().index, aligned ? 1 : 0);
    if (aligned)
      EXPECT_EQ(begins(calls[2].address), 0u);
  }
}

TEST_F(EvalGpu, BindsOneArrayAtTwoPlacesAsOneOutput) {
  FakeKernel kernel;
  std::vector<mx::array> inputs = {filled({8})};
  auto primitive = std::make_shared<InPlace>(cpu(), launchOf(kernel, {{0, 0}, {1, 0}}, {0}));
  auto outputs = outputsOf(primitive, inputs, {0});
  inputs.clear();
  primitive->eval_gpu(outputs[0].inputs(), outputs);
  ASSERT_EQ(order(), (Order{"pipeline k", "output 0", "output 1", "bytes 3", "threadgroups",
                            "temporaries 0"}));
  EXPECT_EQ(recording::calls()[1].address, recording::calls()[2].address);
}

TEST_F(EvalGpu, BindsMemoryForAnEmptyArray) {
  FakeKernel kernel;
  mx::array empty = filled({0});
  std::vector<mx::array> inputs = {empty, filled({4})};
  auto primitive = std::make_shared<InPlace>(cpu(), launchOf(kernel, {{0, 0}, {1, 1}}, {-1, 0}));
  auto outputs = outputsOf(primitive, inputs, {-1, 0});
  inputs.clear();
  primitive->eval_gpu(outputs[0].inputs(), outputs);
  EXPECT_EQ(order(), (Order{"pipeline k", "input 0", "output 1", "bytes 3", "threadgroups",
                            "temporaries 1"}));
  EXPECT_NE(recording::calls()[1].address, nullptr);
}

TEST_F(EvalGpu, SetsNoBytesWithoutScalars) {
  FakeKernel kernel;
  kernel.scalarBuffer = -1;
  std::vector<mx::array> inputs = {filled({4})};
  auto primitive = std::make_shared<InPlace>(cpu(), launchOf(kernel, {{0, 0}}, {0}));
  auto outputs = outputsOf(primitive, inputs, {0});
  inputs.clear();
  primitive->eval_gpu(outputs[0].inputs(), outputs);
  EXPECT_EQ(order(), (Order{"pipeline k", "output 0", "threadgroups", "temporaries 0"}));
}

TEST_F(EvalGpu, RefusesMoreThreadsThanThePipelineRuns) {
  FakeKernel kernel;
  recording::threadsOfPipelines = 64;
  try {
    prepareGpu(kernel, mx::Device(mx::Device::gpu));
    FAIL();
  } catch (const std::invalid_argument &error) {
    EXPECT_NE(std::string(error.what()).find("128 threads are more than the 64"),
              std::string::npos);
    EXPECT_NE(std::string(error.what()).find("num_warps"), std::string::npos);
  }
}

TEST_F(EvalGpu, RefusesTextThatMlxCannotPassOn) {
  FakeKernel kernel("kernel void k() {} // \xc3\xa9");
  EXPECT_THROW(prepareGpu(kernel, mx::Device(mx::Device::gpu)), std::invalid_argument);
}

TEST_F(EvalGpu, BuildsALibraryOnceForEachText) {
  FakeKernel first, second("kernel void k() { }");
  prepareGpu(first, mx::Device(mx::Device::gpu));
  prepareGpu(first, mx::Device(mx::Device::gpu));
  prepareGpu(second, mx::Device(mx::Device::gpu));
  ASSERT_EQ(recording::libraries().size(), 2u);
  EXPECT_NE(recording::libraries()[0].first, recording::libraries()[1].first);
}

} // namespace
