// The C++ of docs/metal-device.md, word for word: test_metal_device_docs.py compares them.
#include "host_device/Metal.h"
#include "gtest/gtest.h"

namespace {

using namespace triton_metal::metal;

llvm::Error scale(llvm::StringRef source, std::vector<float> &x, float factor) {
  Device device = createSystemDefaultDevice();
  auto library = device.newLibrary(source);
  if (!library)
    return library.takeError(); // clang's diagnostics
  auto function = (*library)->newFunction("scale", FunctionConstantValues().set("inverse", false));
  if (!function)
    return function.takeError();
  auto pipeline =
      device.newComputePipelineState(*function, {.checks = triton_metal::Checks::all()});
  if (!pipeline)
    return pipeline.takeError();

  auto buffer = device.newBufferNoCopy(x.data(), x.size() * sizeof(float));
  auto commands = device.newCommandQueue()->commandBuffer();
  auto encoder = commands->computeCommandEncoder();
  encoder->setComputePipelineState(*pipeline);
  encoder->setBuffer(buffer, 0, 0);
  encoder->setValue(factor, 1);
  encoder->dispatchThreads({uint32_t(x.size())}, {256});
  encoder->endEncoding();
  commands->commit();
  return commands->waitUntilCompleted();
}

TEST(Tutorial, Runs) {
  std::vector<float> x{1, 2, 3};
  llvm::Error error = scale("constant bool inverse [[function_constant(0)]];\n"
                            "kernel void scale(device float *x, constant float &a,\n"
                            "                  uint i [[thread_position_in_grid]]) {\n"
                            "  x[i] = inverse ? x[i] / a : x[i] * a;\n}\n",
                            x, 2);
  EXPECT_FALSE(bool(error)) << llvm::toString(std::move(error));
  EXPECT_EQ(x, (std::vector<float>{2, 4, 6}));
  EXPECT_NE(llvm::toString(scale("kernel void scale() { x; }", x, 2)).find("error:"),
            std::string::npos);
}

} // namespace
