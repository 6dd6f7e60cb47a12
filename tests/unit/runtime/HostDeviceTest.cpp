#include "runtime/HostDevice.h"
#include "host_device/Counters.h"
#include "runtime/Kernel.h"
#include "gtest/gtest.h"

using namespace triton_metal;
using namespace triton_metal::runtime;

namespace {

std::string textOf(llvm::Error error) { return llvm::toString(std::move(error)); }

const char *text =
    "#include <metal_stdlib>\n"
    "using namespace metal;\n"
    "kernel void twice(device float *x [[buffer(0)]], constant uint *args [[buffer(1)]],\n"
    "                  uint i [[thread_position_in_grid]]) {\n"
    "  threadgroup float tile[32];\n"
    "  tile[i % 32] = x[i];\n"
    "  x[i] = tile[i % 32] * 2.0f + float(args[0]);\n"
    "}\n";
const char *metadata = R"({"name": "twice", "threads": 32, "scalar_buffer": 1, "args": [
  {"name": "x", "kind": "buffer", "slot": 0, "type": "*f32", "reads": true, "writes": true},
  {"name": "n", "kind": "scalar", "slot": 0, "words": 1, "type": "i32"}]})";

/// One program for the whole file: a device, once registered, stays.
TEST(HostDevice, RefusedUntilRegisteredThenRuns) {
  llvm::Expected<std::shared_ptr<runtime::Kernel>> kernel = runtime::Kernel::create(text, metadata);
  ASSERT_TRUE(bool(kernel));
  EXPECT_EQ(textOf((*kernel)->prepare({})),
            "NumPy arrays and CPU tensors run on the host device, which is not installed: "
            "pip install triton-metal[host]");

  setHostDeviceLoader([] { return llvm::createStringError("broken in two"); });
  EXPECT_EQ(textOf((*kernel)->prepare({})), "broken in two");

  HostDeviceTable other = hostDeviceTable();
  other.interface = hostDeviceInterface + 1;
  EXPECT_NE(textOf(registerHostDevice(&other)).find("made for another version"), std::string::npos);
  other = hostDeviceTable();
  other.numCounters = Counters::Count - 1;
  EXPECT_NE(textOf(registerHostDevice(&other)).find("made for another version"), std::string::npos);

  setHostDeviceLoader([] { return registerHostDevice(&hostDeviceTable()); });
  std::vector<float> values(64);
  for (size_t i = 0; i != values.size(); ++i)
    values[i] = float(i);
  std::vector<BufferBinding> buffers(2);
  buffers[0] = {values.data(), values.size() * sizeof(float), true};
  std::vector<uint32_t> scalars = {5};
  LaunchOptions options;
  options.count = true;
  Counters counters;
  ASSERT_EQ(textOf((*kernel)->launch({2, 1, 1}, buffers, scalars, options, &counters)), "");
  for (size_t i = 0; i != values.size(); ++i)
    EXPECT_EQ(values[i], 2.0f * float(i) + 5.0f);
  EXPECT_EQ(counters[Counters::Threads], 64u);
  EXPECT_EQ(counters[Counters::DeviceBytesWritten], 256u);
}

TEST(HostDevice, DescribesLibraries) {
  ASSERT_EQ(textOf(registerHostDevice(&hostDeviceTable())), "");
  HostText library;
  library.text = text;
  library.size = std::strlen(text);
  llvm::Expected<std::shared_ptr<MetalLibrary>> made = MetalLibrary::compile(library);
  ASSERT_TRUE(bool(made));
  EXPECT_NE((*made)->describe().find("\"name\":\"twice\""), std::string::npos);
  llvm::Expected<HostKernel *> kernel = (*made)->kernel("twice");
  ASSERT_TRUE(bool(kernel));
  EXPECT_EQ(llvm::cantFail((*made)->threadgroupMemory(*kernel)), 128u);
  EXPECT_NE(textOf((*made)->kernel("thrice").takeError()).find("no kernel 'thrice'"),
            std::string::npos);

  library.text = "kernel void broken(";
  library.size = std::strlen(library.text);
  EXPECT_NE(textOf(MetalLibrary::compile(library).takeError()).find("kernel.metal:1"),
            std::string::npos);
}

} // namespace
