// Kernels from LLVM IR, run on the device and, for comparison, thread by thread.
#pragma once

#include "host_device/Device.h"
#include "host_device/engine/Processor.h"
#include "gtest/gtest.h"
#include <string>
#include <vector>

namespace triton_metal::testing {

inline ParameterInfo buffer(std::string name, uint32_t index, bool isConst = false,
                            uint64_t size = 4, AddressSpace space = AddressSpace::Device) {
  ParameterInfo info;
  info.name = std::move(name);
  info.kind = ParameterInfo::Kind::Buffer;
  info.index = index;
  info.isConst = isConst;
  info.elementSize = info.elementAlignment = size;
  info.addressSpace = space;
  return info;
}

inline ParameterInfo position(std::string name, Position which, uint32_t width = 1) {
  ParameterInfo info;
  info.name = std::move(name);
  info.kind = ParameterInfo::Kind::Position;
  info.position = which;
  info.vectorWidth = width;
  return info;
}

inline KernelInfo kernelInfo(std::string name, std::vector<ParameterInfo> parameters) {
  KernelInfo info;
  info.name = std::move(name);
  info.parameters = std::move(parameters);
  return info;
}

/// The library of one kernel from IR; a failed compilation fails the test.
inline std::shared_ptr<Library> libraryOf(const std::string &ir, KernelInfo info,
                                          LibraryOptions options = {}) {
  auto library = Device::get().compileIR(ir, {std::move(info)}, options);
  if (!library) {
    ADD_FAILURE() << llvm::toString(library.takeError());
    return nullptr;
  }
  return *library;
}

/// The processors to test for: the host's own, and with and without AVX-512 where it can run that.
inline std::vector<std::string> processors() {
  std::vector<std::string> result{""};
  for (const char *name : {"x86-64-v3", "x86-64-v4"}) {
    auto processor = engine::Processor::get(name);
    if (processor)
      result.push_back(name);
    else
      llvm::consumeError(processor.takeError());
  }
  return result;
}

inline std::string errorOf(llvm::Error error) {
  return error ? llvm::toString(std::move(error)) : std::string();
}

template <typename T> BufferBinding bind(std::vector<T> &data) {
  return {data.data(), data.size() * sizeof(T), true};
}
template <typename T> BufferBinding bindConst(const std::vector<T> &data) {
  return {const_cast<T *>(data.data()), data.size() * sizeof(T), false};
}

inline std::string run(Library &library, const std::string &name,
                       const std::vector<BufferBinding> &buffers, std::array<uint32_t, 3> groups,
                       std::array<uint32_t, 3> threads, Counters *counters = nullptr,
                       std::optional<uint64_t> seed = std::nullopt,
                       std::vector<uint32_t> lengths = {}) {
  auto kernel = library.kernel(name);
  if (!kernel)
    return llvm::toString(kernel.takeError());
  Dispatch dispatch;
  dispatch.threadgroups = groups;
  dispatch.threadsPerThreadgroup = threads;
  dispatch.buffers = buffers;
  dispatch.scheduleSeed = seed;
  dispatch.threadgroupMemoryLengths = std::move(lengths);
  return errorOf((*kernel)->dispatch(dispatch, counters));
}

inline const std::string header = "#include <metal_stdlib>\nusing namespace metal;\n";

/// The error of a portable launch of the kernel `k`.
inline std::string runPortable(const std::string &text, const std::vector<BufferBinding> &buffers,
                               uint32_t groups, uint32_t threads, uint64_t seed,
                               Counters *counters = nullptr) {
  LibraryOptions options;
  options.portable = true;
  options.count = counters;
  auto library = Device::get().compile(header + text, options);
  if (!library)
    return llvm::toString(library.takeError());
  auto kernel = (*library)->kernel("k");
  if (!kernel)
    return llvm::toString(kernel.takeError());
  Dispatch dispatch;
  dispatch.threadgroups = {groups, 1, 1};
  dispatch.threadsPerThreadgroup = {threads, 1, 1};
  dispatch.buffers = buffers;
  dispatch.portableSeed = seed;
  return errorOf((*kernel)->dispatch(dispatch, counters));
}

} // namespace triton_metal::testing
