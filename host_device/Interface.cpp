#include "host_device/Interface.h"
#include "host_device/Device.h"
#include "host_device/engine/Guard.h"
#include "host_device/metal/Library.h"
#include <cstdlib>
#include <cstring>

using namespace llvm;

namespace triton_metal {

struct HostLibrary {
  std::shared_ptr<Library> library;
};

namespace {

char *copyOf(const std::string &text) {
  char *copy = static_cast<char *>(std::malloc(text.size() + 1));
  std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

char *textOf(Error error) { return error ? copyOf(toString(std::move(error))) : nullptr; }

char *configure(const HostConfiguration *configuration) {
  DeviceOptions options;
  options.cacheDirectory = configuration->cacheDirectory ? configuration->cacheDirectory : "";
  options.cacheRequired = configuration->cacheRequired;
  options.numThreads = configuration->numThreads;
  return textOf(Device::configure(options));
}

char *compile(const HostText *text, HostLibrary **library) {
  LibraryOptions options;
  options.checks = Checks::fromBits(text->checks);
  options.portable = text->portable;
  options.count = text->count;
  if (text->fileName)
    options.fileName = text->fileName;
  for (size_t i = 0; i != text->numMacros; ++i)
    options.macros.emplace_back(text->macros[2 * i], text->macros[2 * i + 1]);
  for (size_t i = 0; i != text->numIncludeDirectories; ++i)
    options.includeDirectories.emplace_back(text->includeDirectories[i]);
  for (size_t i = 0; i != text->numFunctionConstants; ++i)
    options.functionConstants.push_back(
        {text->functionConstants[i], text->functionConstantBits[i]});
  Expected<std::shared_ptr<Library>> made =
      Device::get().compile(StringRef(text->text, text->size), options);
  if (!made)
    return textOf(made.takeError());
  *library = new HostLibrary{std::move(*made)};
  return nullptr;
}

char *describe(HostLibrary *library) {
  return copyOf(metal::describeAsJson(library->library->kernels()));
}

char *kernel(HostLibrary *library, const char *name, HostKernel **kernel) {
  Expected<Kernel *> found = library->library->kernel(name);
  if (!found)
    return textOf(found.takeError());
  *kernel = reinterpret_cast<HostKernel *>(*found);
  return nullptr;
}

char *threadgroupMemory(HostKernel *kernel, uint64_t *bytes) {
  Expected<uint64_t> found = reinterpret_cast<Kernel *>(kernel)->staticThreadgroupMemory();
  if (!found)
    return textOf(found.takeError());
  *bytes = *found;
  return nullptr;
}

char *dispatch(HostKernel *kernel, const HostDispatch *launch, uint64_t *counters) {
  Dispatch dispatch;
  std::memcpy(dispatch.threadgroups.data(), launch->threadgroups, sizeof launch->threadgroups);
  std::memcpy(dispatch.threadsPerThreadgroup.data(), launch->threadsPerThreadgroup,
              sizeof launch->threadsPerThreadgroup);
  if (launch->hasGridThreads)
    dispatch.gridThreads = {launch->gridThreads[0], launch->gridThreads[1], launch->gridThreads[2]};
  if (launch->hasSeed)
    dispatch.scheduleSeed = launch->seed;
  dispatch.portableSeed = launch->portableSeed;
  if (launch->maxSteps)
    dispatch.maxSteps = launch->maxSteps;
  dispatch.wholeBuffers = launch->wholeBuffers;
  dispatch.keptBuffers = launch->keptBuffers;
  dispatch.buffers = ArrayRef(launch->buffers, launch->numBuffers);
  if (launch->numThreadgroupMemoryLengths)
    dispatch.threadgroupMemoryLengths.assign(launch->threadgroupMemoryLengths,
                                             launch->threadgroupMemoryLengths +
                                                 launch->numThreadgroupMemoryLengths);
  if (!counters)
    return textOf(reinterpret_cast<Kernel *>(kernel)->dispatch(dispatch));
  Counters counted;
  std::memcpy(counted.values.data(), counters, sizeof counted.values);
  Error error = reinterpret_cast<Kernel *>(kernel)->dispatch(dispatch, &counted);
  std::memcpy(counters, counted.values.data(), sizeof counted.values);
  return textOf(std::move(error));
}

void release(HostLibrary *library) { delete library; }
void freeText(char *text) { std::free(text); }

} // namespace

const HostDeviceTable &hostDeviceTable() {
  static constexpr HostDeviceTable table = {hostDeviceInterface,
                                            Counters::Count,
                                            configure,
                                            compile,
                                            describe,
                                            kernel,
                                            threadgroupMemory,
                                            dispatch,
                                            release,
                                            freeText,
                                            engine::installInterruptHandler};
  return table;
}

} // namespace triton_metal
