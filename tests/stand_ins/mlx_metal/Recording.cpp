#include "Recording.h"

#include <map>
#include <memory>

namespace recording {

NS::UInteger threadsOfPipelines = 1024;

namespace {
std::map<std::string, std::unique_ptr<MTL::Library>> libraryCache;
std::map<std::pair<MTL::Library *, std::string>, std::unique_ptr<MTL::ComputePipelineState>>
    pipelineCache;
} // namespace

std::vector<Call> &calls() {
  static std::vector<Call> list;
  return list;
}

std::vector<std::pair<std::string, std::string>> &libraries() {
  static std::vector<std::pair<std::string, std::string>> list;
  return list;
}

void clear() {
  calls().clear();
  libraries().clear();
  pipelineCache.clear();
  libraryCache.clear();
  threadsOfPipelines = 1024;
}

static Call named(const char *what) {
  Call call;
  call.what = what;
  return call;
}

static void record(Call call) { calls().push_back(std::move(call)); }

} // namespace recording

namespace mlx::core::metal {

using recording::record;

ResidencySet::ResidencySet(MTL::Device *) {}
ResidencySet::~ResidencySet() = default;

Device::Device() : residency_set_(nullptr) {}
Device::~Device() = default;

MTL::Library *Device::get_library(const std::string &name, const CompileOptions &,
                                  const std::function<std::string(void)> &builder) {
  auto &library = recording::libraryCache[name];
  if (!library) {
    library = std::make_unique<MTL::Library>();
    library->name = name;
    library->text = builder();
    recording::libraries().emplace_back(name, library->text);
  }
  return library.get();
}

MTL::ComputePipelineState *Device::get_kernel(const std::string &name, MTL::Library *library,
                                              const std::string &, const MTLFCList &,
                                              const std::vector<MTL::Function *> &) {
  auto &pipeline = recording::pipelineCache[{library, name}];
  if (!pipeline) {
    pipeline = std::make_unique<MTL::ComputePipelineState>();
    pipeline->name = name;
    pipeline->library = library;
    pipeline->threads = recording::threadsOfPipelines;
  }
  return pipeline.get();
}

CommandEncoder::CommandEncoder(Device &device, int, ResidencySet &) : device_(device) {}
CommandEncoder::~CommandEncoder() = default;

MTL::ComputeCommandEncoder *CommandEncoder::get_command_encoder() {
  static MTL::ComputeCommandEncoder encoder{[](const MTL::ComputePipelineState *pipeline) {
                                              recording::Call call = recording::named("pipeline");
                                              call.name = pipeline->name;
                                              record(std::move(call));
                                            },
                                            [](std::vector<uint8_t> bytes, NS::UInteger index) {
                                              recording::Call call = recording::named("bytes");
                                              call.index = static_cast<int>(index);
                                              call.bytes = std::move(bytes);
                                              record(std::move(call));
                                            }};
  return &encoder;
}

void CommandEncoder::set_input_array(const array &a, int index, int64_t offset) {
  recording::Call call = recording::named("input");
  call.index = index;
  call.address = a.data<char>() + offset;
  record(std::move(call));
}

void CommandEncoder::set_output_array(array &a, int index, int64_t offset) {
  recording::Call call = recording::named("output");
  call.index = index;
  call.address = a.data<char>() + offset;
  record(std::move(call));
}

void CommandEncoder::add_temporaries(std::vector<array> arrays) {
  recording::Call call = recording::named("temporaries");
  call.index = static_cast<int>(arrays.size());
  record(std::move(call));
}

void CommandEncoder::dispatch_threadgroups(MTL::Size grid, MTL::Size group) {
  recording::Call call = recording::named("threadgroups");
  call.grid = grid;
  call.group = group;
  record(std::move(call));
}

void CommandEncoder::dispatch_threads(MTL::Size grid, MTL::Size group) {
  recording::Call call = recording::named("threads");
  call.grid = grid;
  call.group = group;
  record(std::move(call));
}

Device &device(mlx::core::Device) {
  static Device device;
  return device;
}

CommandEncoder &get_command_encoder(Stream) {
  static CommandEncoder encoder(device(mlx::core::Device::gpu), 0,
                                device(mlx::core::Device::gpu).residency_set());
  return encoder;
}

} // namespace mlx::core::metal
