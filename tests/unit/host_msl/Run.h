// Running small kernels in tests.
#pragma once

#include "host_device/Device.h"
#include "gtest/gtest.h"
#include <string>
#include <vector>

namespace triton_metal::test {

/// `body` is the inside of a kernel whose parameters are `device T *b0 ... bN`, in this order, and
/// `uint i`, the thread's index. Runs it over `threads` threads, 64 a group.
inline void runKernel(const std::string &parameters, const std::string &body,
                      std::vector<BufferBinding> buffers, uint32_t threads,
                      const std::string &before = "", uint32_t group = 64) {
  std::string text =
      "#include <metal_stdlib>\nusing namespace metal;\n" + before + "\nkernel void k(" +
      parameters +
      ", uint i [[thread_position_in_grid]], uint lane [[thread_index_in_simdgroup]], "
      "uint local [[thread_index_in_threadgroup]]) {\n" +
      body + "\n}\n";
  auto library = Device::get().compile(text);
  ASSERT_TRUE(bool(library)) << llvm::toString(library.takeError());
  auto kernel = (*library)->kernel("k");
  ASSERT_TRUE(bool(kernel)) << llvm::toString(kernel.takeError());
  Dispatch dispatch;
  dispatch.gridThreads = {threads, 1, 1};
  dispatch.threadsPerThreadgroup = {group, 1, 1};
  dispatch.buffers = buffers;
  llvm::Error error = (*kernel)->dispatch(dispatch);
  ASSERT_FALSE(bool(error)) << llvm::toString(std::move(error));
}

template <typename T> BufferBinding in(std::vector<T> &values) {
  return {values.data(), values.size() * sizeof(T), false};
}
template <typename T> BufferBinding out(std::vector<T> &values) {
  return {values.data(), values.size() * sizeof(T), true};
}

} // namespace triton_metal::test
