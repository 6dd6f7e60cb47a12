#include "host_device/Device.h"
#include "host_device/State.h"
#include "host_device/Trace.h"
#include "host_device/engine/Checked.h"
#include "host_device/engine/Describe.h"
#include "host_device/engine/Guard.h"
#include "host_device/engine/Protect.h"
#include "host_device/engine/Runtime.h"
#include "host_device/msl/Invocation.h"

using namespace llvm;
using namespace triton_metal::engine;

namespace triton_metal {

static CodeOptions optionsFor(std::array<uint32_t, 3> threads, bool seeded) {
  CodeOptions options;
  uint64_t total = uint64_t(threads[0]) * threads[1] * threads[2];
  options.partial = total % simdWidth != 0;
  options.scatteredPositions =
      threads[0] % simdWidth != 0 && uint64_t(threads[1]) * threads[2] != 1;
  options.seeded = seeded;
  return options;
}

/// The counts of a launch, by line.
static Profile profileOf(const CodeFacts &facts, const std::vector<uint64_t> &counts,
                         uint64_t groups, uint64_t threadgroupBytes, StringRef fileName) {
  std::vector<Counters> byLine(std::max<size_t>(1, facts.lines.size()));
  auto add = [&](const LineAmount &amount, uint64_t times) {
    byLine[amount.line].values[amount.counter] += times * amount.amount;
  };
  for (size_t block = 0; block != facts.blocks.size(); ++block) {
    for (const LineAmount &amount : facts.blocks[block].lane)
      add(amount, counts[3 * block]);
    for (const LineAmount &amount : facts.blocks[block].simdgroup)
      add(amount, counts[3 * block + 1]);
    for (const LineAmount &amount : facts.blocks[block].threadgroup)
      add(amount, counts[3 * block + 2]);
  }
  for (size_t i = 0; i != facts.dynamicCounters.size(); ++i)
    add(facts.dynamicCounters[i], counts[3 * facts.blocks.size() + i]);
  Profile profile;
  for (auto [number, counters] : enumerate(byLine)) {
    if (all_of(counters.values, [](uint64_t value) { return value == 0; }))
      continue;
    LineProfile line;
    if (number < facts.lines.size()) {
      line.file = facts.lines[number].file == mainPath ? fileName.str() : facts.lines[number].file;
      line.line = facts.lines[number].line;
    }
    line.counters = counters;
    Profile one;
    one.lines.push_back(line);
    one.total = counters;
    profile += one;
  }
  profile.total[Counters::Threadgroups] += groups;
  profile.total[Counters::RegistersPerThread] = facts.registersPerThread;
  profile.total[Counters::ThreadgroupMemoryBytes] = threadgroupBytes;
  return profile;
}

/// Describes the sites of the accesses that were traced.
static void nameSites(Trace &trace, const CodeFacts &facts) {
  for (const TracedThreadgroup &group : trace.threadgroups)
    for (auto &[key, count] : group.executions) {
      const Site &site = facts.sites[key.first];
      bool isStore = site.kind == AccessKind::Store;
      trace.sites[key.first] = {
          site.line,       site.column, site.file, site.callLine,
          site.callColumn, !isStore,    isStore,   site.space == AddressSpace::Constant,
          site.bytes};
    }
}

/// A buffer that the launch writes and whose size is not known: an object that does not tell it is
/// bound with 2^40 bytes (python/bindings/arrays.cpp).
static std::optional<uint32_t> writtenBufferOfUnknownSize(const LaunchPlan &plan) {
  constexpr uint64_t unknownBytes = uint64_t(1) << 40;
  for (uint32_t index = 0; index != maxBufferBindings; ++index)
    if ((plan.facts->writtenBuffers >> index & 1) && plan.state.bufferBytes[index] >= unknownBytes)
      return index;
  return std::nullopt;
}

Error Kernel::prepare(const Dispatch &dispatch) {
  auto compile = [&](std::array<uint32_t, 3> threads) {
    return state->get(optionsFor(threads, dispatch.scheduleSeed.has_value())).takeError();
  };
  const std::array<uint32_t, 3> &threads = dispatch.threadsPerThreadgroup;
  if (Error error = compile(threads))
    return error;
  if (!dispatch.gridThreads)
    return Error::success();
  // The groups that the grid's edges cut.
  for (unsigned corner = 1; corner != 8; ++corner) {
    std::array<uint32_t, 3> size = threads;
    for (unsigned d = 0; d != 3; ++d)
      if (corner >> d & 1 && threads[d] && (*dispatch.gridThreads)[d] % threads[d])
        size[d] = (*dispatch.gridThreads)[d] % threads[d];
    if (Error error = compile(size))
      return error;
  }
  return Error::success();
}

Expected<uint64_t> Kernel::staticThreadgroupMemory() {
  auto variant = state->get({});
  if (!variant)
    return variant.takeError();
  return (*variant)->code.load()->facts.threadgroupBytes;
}

Expected<uint32_t> Kernel::registersPerThread() {
  auto variant = state->get({});
  if (!variant)
    return variant.takeError();
  return (*variant)->code.load()->facts.registersPerThread;
}

Expected<bool> Kernel::isQuick(const Dispatch &dispatch) {
  auto variant =
      state->get(optionsFor(dispatch.threadsPerThreadgroup, dispatch.scheduleSeed.has_value()));
  if (!variant)
    return variant.takeError();
  return (*variant)->code.load(std::memory_order_acquire)->quick;
}

Expected<uint32_t> Kernel::writtenBuffers() {
  auto variant = state->get({});
  if (!variant)
    return variant.takeError();
  return (*variant)->code.load()->facts.writtenBuffers;
}

Error Kernel::dispatch(const Dispatch &dispatch, Counters *counters, Profile *profile) {
  const KernelInfo &info = state->info;
  auto refuse = [&](const Twine &what) {
    return createStringError("[dispatch of '" + info.name + "'] " + what);
  };
  auto extent = [](const std::array<uint32_t, 3> &size) {
    return (Twine(size[0]) + "x" + Twine(size[1]) + "x" + Twine(size[2])).str();
  };
  const auto &threads = dispatch.threadsPerThreadgroup;
  std::array<uint32_t, 3> groups = dispatch.threadgroups;
  uint64_t total = uint64_t(threads[0]) * threads[1] * threads[2];
  if (!threads[0] || !threads[1] || !threads[2])
    return refuse("a threadgroup needs at least one thread in each dimension, but has " +
                  extent(threads));
  if (threads[0] > maxThreadsPerThreadgroup || threads[1] > maxThreadsPerThreadgroup ||
      threads[2] > maxThreadsPerThreadgroup || total > maxThreadsPerThreadgroup)
    return refuse("a threadgroup can have at most " + Twine(maxThreadsPerThreadgroup) +
                  " threads, but has " + extent(threads));
  if (total > info.maxTotalThreadsPerThreadgroup)
    return refuse("the kernel allows at most " + Twine(info.maxTotalThreadsPerThreadgroup) +
                  " threads in a threadgroup, but has " + Twine(total));
  if (dispatch.gridThreads)
    for (unsigned d = 0; d != 3; ++d)
      groups[d] = (uint64_t((*dispatch.gridThreads)[d]) + threads[d] - 1) / threads[d];
  uint64_t groupCount = 1;
  for (unsigned d = 0; d != 3; ++d) {
    if (uint64_t(groups[d]) * threads[d] >= (uint64_t(1) << 31))
      return refuse("the grid can have at most 2147483647 threads in a dimension, but has " +
                    Twine(uint64_t(groups[d]) * threads[d]));
    groupCount *= groups[d];
    if (groupCount >= (uint64_t(1) << 31))
      return refuse("the grid can have at most 2147483647 threadgroups, but has " + extent(groups));
  }
  if (dispatch.buffers.size() > maxBufferBindings)
    return refuse("buffers have indices 0 to " + Twine(maxBufferBindings - 1) + ", but " +
                  Twine(dispatch.buffers.size()) + " are bound");

  // A request to stop that arrives while the kernel is being compiled also stops the launch.
  engine::Stoppable stoppable;
  auto variant = state->get(optionsFor(threads, dispatch.scheduleSeed.has_value()));
  if (!variant)
    return variant.takeError();
  const State::Loaded *code = (*variant)->code.load(std::memory_order_acquire);
  const CodeFacts &facts = code->facts;

  LaunchPlan plan;
  LaunchState &launch = plan.state;
  for (auto [index, binding] : enumerate(dispatch.buffers)) {
    launch.buffers[index] = binding.data;
    launch.bufferStarts[index] =
        static_cast<char *>(binding.data) - (binding.data ? binding.bytesBefore : 0);
    launch.bufferBytes[index] = binding.data ? binding.bytesBefore + binding.bytes : 0;
    launch.bufferWritable[index] = binding.writable;
  }
  uint64_t end = facts.threadgroupBytes;
  for (const ParameterInfo &parameter : info.parameters) {
    uint32_t index = parameter.index;
    if (parameter.kind == ParameterInfo::Kind::Buffer) {
      if (index >= maxBufferBindings)
        return refuse("'" + Twine(parameter.name) + "' is buffer " + Twine(index) +
                      ", but indices end at " + Twine(maxBufferBindings - 1));
      if (!(facts.usedBuffers >> index & 1))
        continue;
      bool bound = index < dispatch.buffers.size() &&
                   (dispatch.buffers[index].data ||
                    (dispatch.buffers[index].bytes == 0 && dispatch.buffers[index].writable));
      if (!bound)
        return refuse("'" + Twine(parameter.name) + "' (buffer " + Twine(index) + ") is missing");
      const BufferBinding &binding = dispatch.buffers[index];
      if (binding.bytes < parameter.elementSize && (parameter.isReference || binding.bytes))
        return refuse("'" + Twine(parameter.name) + "' (buffer " + Twine(index) +
                      ") needs at least " + Twine(parameter.elementSize) + " bytes, but has " +
                      Twine(binding.bytes));
      if ((facts.writtenBuffers >> index & 1) && !binding.writable)
        return refuse("the kernel writes '" + Twine(parameter.name) + "' (buffer " + Twine(index) +
                      "), which is bound read-only");
    } else if (parameter.kind == ParameterInfo::Kind::Threadgroup) {
      if (index >= maxBufferBindings)
        return refuse("'" + Twine(parameter.name) + "' is threadgroup argument " + Twine(index) +
                      ", but indices end at " + Twine(maxBufferBindings - 1));
      uint32_t bytes = index < dispatch.threadgroupMemoryLengths.size()
                           ? dispatch.threadgroupMemoryLengths[index]
                           : Dispatch::noLength;
      if (bytes == Dispatch::noLength)
        return refuse("threadgroup argument '" + Twine(parameter.name) + "' (" + Twine(index) +
                      ") has no length");
      end = alignTo(end, 16);
      launch.argumentOffsets[index] = end;
      launch.argumentBytes[index] = bytes;
      end += bytes;
    }
  }
  if (end > maxThreadgroupMemory)
    return refuse("a threadgroup can have at most " + Twine(maxThreadgroupMemory) +
                  " bytes of memory, but needs " + Twine(end));
  for (unsigned d = 0; d != 3; ++d) {
    launch.threadgroups[d] = groups[d];
    launch.dispatchThreads[d] = threads[d];
    launch.gridThreads[d] =
        dispatch.gridThreads ? (*dispatch.gridThreads)[d] : groups[d] * threads[d];
  }
  if (!groupCount)
    return Error::success();

  // Groups that are cut at the edge of the grid may need another variant of the code. All variants
  // are compiled before anything runs.
  std::array<KernelEntry, variants> entries{};
  auto codeFor = [&](std::array<uint32_t, 3> size) {
    CodeOptions options = optionsFor(size, dispatch.scheduleSeed.has_value());
    return options.partial + 2 * options.scatteredPositions;
  };
  if (dispatch.gridThreads) {
    for (unsigned corner = 0; corner != 8; ++corner) {
      std::array<uint32_t, 3> size = threads;
      for (unsigned d = 0; d != 3; ++d)
        if (corner >> d & 1)
          size[d] = launch.gridThreads[d] - (groups[d] - 1) * threads[d];
      auto edge = state->get(optionsFor(size, dispatch.scheduleSeed.has_value()));
      if (!edge)
        return edge.takeError();
      const State::Loaded *edgeCode = (*edge)->code.load(std::memory_order_acquire);
      entries[codeFor(size)] = edgeCode->entry;
      plan.stackBytes = std::max(plan.stackBytes, edgeCode->facts.stackBytes);
    }
    plan.entryFor = [&](std::array<uint32_t, 3> size) { return entries[codeFor(size)]; };
  }
  bool counting = state->library->options.count;
  plan.entry = code->entry;
  plan.facts = &facts;
  plan.kernel = &info;
  plan.portable = state->library->options.portable;
  const Checks &checks = state->library->options.checks;
  bool checked = checks.any();
  plan.stackBytes = std::max(plan.stackBytes, facts.stackBytes);
  plan.needsFibers = facts.usesThreadgroupBarrier || checked || plan.stackBytes > 512 * 1024;
  plan.clearThreadgroupMemory = checked;
  plan.seed = dispatch.scheduleSeed;
  plan.portableSeed = dispatch.portableSeed;
  if (plan.portable && !plan.seed)
    plan.seed = plan.portableSeed;
  // Such launches copy what they write.
  if (plan.portable || checked)
    if (std::optional<uint32_t> index = writtenBufferOfUnknownSize(plan))
      return createStringError("a launch with checks copies what it writes, and the size of buffer "
                               "%u is not known",
                               *index);
  plan.threadgroupBytes = end;
  if (counting) {
    plan.counts.resize(facts.countWords());
    plan.footprint = std::make_unique<engine::Footprint>(launch);
    launch.footprint = plan.footprint.get();
  }
  if (counting && !plan.portable)
    plan.trace = dispatch.trace;
  if (plan.trace)
    for (const TracedThreadgroup &traced : plan.trace->threadgroups)
      for (unsigned d = 0; d != 3; ++d)
        if (traced.position[d] >= groups[d])
          return refuse("there is no threadgroup (" + Twine(traced.position[0]) + ", " +
                        Twine(traced.position[1]) + ", " + Twine(traced.position[2]) +
                        ") to trace: the grid has " + Twine(groups[0]) + ", " + Twine(groups[1]) +
                        ", " + Twine(groups[2]));
  plan.nanosecondsPerGroup = state->nanosecondsPerGroup.load(std::memory_order_relaxed);
  plan.numThreads = state->library->device->numThreads.load(std::memory_order_relaxed);
  bool mayImprove = code->quick && !(*variant)->asked.load(std::memory_order_relaxed);
  std::chrono::steady_clock::time_point start;
  if (mayImprove)
    start = std::chrono::steady_clock::now();
  if (plan.portable) {
    std::string problem = runPortably(plan, info, [&](const FailureRecord &failure) {
      return describeFailure(failure, facts, info, launch);
    });
    if (!problem.empty())
      return createStringError(problem);
  } else if (checked) {
    launch.maxSteps = dispatch.maxSteps;
    plan.checks = checks;
    runChecked(plan, dispatch.wholeBuffers, dispatch.keptBuffers);
  } else {
    runLaunch(plan);
  }
  state->nanosecondsPerGroup.store(plan.nanosecondsPerGroup, std::memory_order_relaxed);
  if (mayImprove)
    state->ran(**variant, *code, std::chrono::steady_clock::now() - start);
  if (plan.failure)
    return createStringError(describeFailure(*plan.failure, facts, info, launch));
  if (plan.trace)
    nameSites(*plan.trace, facts);
  if (counting && (counters || profile)) {
    Profile launched =
        profileOf(facts, plan.counts, groupCount, end, state->library->options.fileName);
    launched.total[Counters::DeviceMemoryLinesRead] =
        plan.footprint->count(engine::Footprint::Read);
    launched.total[Counters::DeviceMemoryLinesWritten] =
        plan.footprint->count(engine::Footprint::Written);
    if (counters)
      *counters += launched.total;
    if (profile)
      *profile += launched;
  }
  return Error::success();
}

Kernel::Kernel(std::unique_ptr<State> state) : state(std::move(state)) {}
Kernel::~Kernel() = default;
const KernelInfo &Kernel::info() const { return state->info; }

} // namespace triton_metal
