#include "host_device/Device.h"
#include "host_device/Background.h"
#include "host_device/engine/Cache.h"
#include "host_device/engine/Checked.h"
#include "host_device/engine/Describe.h"
#include "host_device/engine/Guard.h"
#include "host_device/engine/Jit.h"
#include "host_device/engine/Processor.h"
#include "host_device/engine/Protect.h"
#include "host_device/engine/Runtime.h"
#include "host_device/msl/Invocation.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/IRReader/IRReader.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <thread>
#if defined(__linux__)
#include <sched.h>
#endif

using namespace llvm;
using namespace triton_metal::engine;

namespace triton_metal {

//===----------------------------------------------------------------------===//
// State
//===----------------------------------------------------------------------===//

static unsigned usableCores() {
#if defined(__linux__)
  cpu_set_t cores;
  if (!sched_getaffinity(0, sizeof cores, &cores))
    return std::max(1, CPU_COUNT(&cores));
#endif
  return std::max(1u, std::thread::hardware_concurrency());
}

struct Device::State {
  /// `files` are those of a library of the same text; if null, the host has them.
  Expected<std::shared_ptr<Library>> make(const std::string &source, const LibraryOptions &given,
                                          const HostFiles *files);

  std::mutex mutex;
  StringMap<std::shared_ptr<Library>> libraries;
  /// By a text's key with its files' digest.
  StringMap<std::weak_ptr<Text>> texts;
  /// The files that a text asked for, by its key.
  StringMap<std::string> fileLists;
  DiskCache cache;
  std::atomic<unsigned> numThreads{usableCores()};
  bool warned = false;
};

struct Library::State {
  /// The library that this is the state of.
  std::weak_ptr<Library> library;
  std::string key;
  LibraryOptions options;
  /// Null if the library was made of LLVM IR.
  std::shared_ptr<Text> text;
  std::vector<KernelInfo> kernels;
  const Processor *processor = nullptr;
  DiskCache cache;
  Device::State *device = nullptr;
  std::mutex mutex;
  std::map<std::string, KernelInfo, std::less<>> infos;
  /// The front end's modules by kernel. That of LLVM IR has no name and all kernels.
  std::map<std::string, std::string, std::less<>> bitcode;
  std::map<std::string, std::unique_ptr<Kernel>, std::less<>> made;

  /// What is known about a kernel once it is lowered. The caller has the mutex.
  Expected<const KernelInfo *> info(StringRef name);
  /// The module with the kernel, in the given context.
  Expected<std::unique_ptr<Module>> module(StringRef kernel, LLVMContext &context);

private:
  Error lower(StringRef kernel);
};

static constexpr unsigned variants = 8;

struct Kernel::State {
  Library::State *library = nullptr;
  KernelInfo info;

  /// Code in memory. It never changes and lives as long as the kernel.
  struct Loaded {
    CodeFacts facts;
    KernelEntry entry = nullptr;
    bool quick = false;
    size_t bytes = 0;
  };
  struct Variant {
    CodeOptions options;
    std::once_flag once;
    std::string error;
    std::unique_ptr<const Loaded> first, improved;
    /// The best code that there is.
    std::atomic<const Loaded *> code = nullptr;
    /// How long quick code has run, in nanoseconds, and whether better code has been asked for.
    std::atomic<uint64_t> spent = 0;
    std::atomic<bool> asked = false;
  };
  std::array<Variant, variants> code;
  std::atomic<double> nanosecondsPerGroup{0};

  Expected<Variant *> get(CodeOptions options);
  /// The code of the cache, or null.
  std::unique_ptr<const Loaded> find(const CodeOptions &options);
  Expected<std::unique_ptr<const Loaded>> build(const CodeOptions &options);
  static Expected<std::unique_ptr<const Loaded>> load(const KernelCode &code, bool quick);
  std::string keyOf(const CodeOptions &options) const;
  /// Notes that quick code has run, and has it compiled again if that pays.
  void ran(Variant &variant, const Loaded &code, std::chrono::nanoseconds time);
};

//===----------------------------------------------------------------------===//
// Compilation
//===----------------------------------------------------------------------===//

static MslOptions frontendOptions(const LibraryOptions &options) {
  MslOptions result;
  result.fileName = options.fileName;
  result.functionConstants = options.functionConstants;
  result.macros = options.macros;
  result.includeDirectories = options.includeDirectories;
  result.portable = options.portable;
  result.count = options.count;
  result.checks = options.checks;
  return result;
}

/// Identifies a text, and the options that decide what clang makes of it. Files are not in it.
static std::string textKey(StringRef source, const LibraryOptions &options) {
  std::string key;
  raw_string_ostream stream(key);
  stream << options.checks.bits() << ' ' << options.portable << options.count << ' '
         << options.fileName.size() << ' ' << options.fileName;
  for (auto &[name, value] : options.macros)
    stream << "\nmacro " << name.size() << ' ' << name << ' ' << value.size() << ' ' << value;
  for (const std::string &folder : options.includeDirectories) {
    SmallString<256> whole(folder);
    sys::fs::make_absolute(whole);
    stream << "\nfolder " << folder.size() << ' ' << folder << ' ' << whole.size() << ' ' << whole;
  }
  stream << "\n\n" << source;
  return key;
}

static std::string libraryKey(const std::string &text, const LibraryOptions &options) {
  std::string key;
  raw_string_ostream stream(key);
  for (const FunctionConstantValue &constant : options.functionConstants)
    stream << "constant " << constant.index << ' ' << constant.bits << '\n';
  stream << "processor " << options.processor << '\n' << text;
  return key;
}

/// Sets the processor and the effort from the environment, so that everything that depends on the
/// options uses them.
static Expected<const Processor *> resolveProcessor(LibraryOptions &options) {
  if (const char *effort = std::getenv("TRITON_METAL_HOST_EFFORT");
      effort && *effort && options.effort == Effort::Adaptive) {
    if (StringRef(effort) != "quick" && StringRef(effort) != "full")
      return createStringError("TRITON_METAL_HOST_EFFORT is '%s', but must be quick or full",
                               effort);
    options.effort = StringRef(effort) == "quick" ? Effort::Quick : Effort::Full;
  }
  bool asked = !options.processor.empty();
  if (!asked)
    options.processor = Processor::requested();
  Expected<const Processor *> processor = Processor::get(options.processor);
  if (!processor && !asked)
    return createStringError("TRITON_METAL_HOST_CPU: " + toString(processor.takeError()));
  return processor;
}

Error Library::State::lower(StringRef kernel) {
  Expected<Text::Lowered> lowered = text->lower(kernel, options.functionConstants);
  if (!lowered)
    return lowered.takeError();
  cache.insert("function", key + "\n" + kernel.str(), serialize({lowered->info}));
  infos[kernel.str()] = std::move(lowered->info);
  bitcode[kernel.str()] = std::move(lowered->bitcode);
  return Error::success();
}

Expected<const KernelInfo *> Library::State::info(StringRef name) {
  auto declared = find_if(kernels, [&](const KernelInfo &one) { return one.name == name; });
  if (declared == kernels.end()) {
    std::string names;
    for (const KernelInfo &kernel : kernels)
      names += (names.empty() ? "" : ", ") + kernel.name;
    return createStringError("the library has no kernel '%s'; it has: %s", name.str().c_str(),
                             names.c_str());
  }
  if (!text)
    return &*declared;
  auto found = infos.find(name);
  if (found != infos.end())
    return &found->second;
  if (auto stored = cache.find("function", key + "\n" + name.str()))
    if (auto known = deserializeKernels(*stored); known && known->size() == 1)
      return &(infos[name.str()] = std::move(known->front()));
  if (Error error = lower(name))
    return std::move(error);
  return &infos[name.str()];
}

Expected<std::unique_ptr<Module>> Library::State::module(StringRef kernel, LLVMContext &context) {
  std::lock_guard lock(mutex);
  auto found = bitcode.find(text ? kernel : "");
  if (found == bitcode.end()) {
    if (Error error = lower(kernel))
      return std::move(error);
    found = bitcode.find(kernel);
  }
  SMDiagnostic diagnostic;
  auto module = parseIR(MemoryBufferRef(found->second, "kernel"), diagnostic, context);
  if (!module)
    return createStringError("line %d of the IR: %s", diagnostic.getLineNo(),
                             diagnostic.getMessage().str().c_str());
  return module;
}

std::string Kernel::State::keyOf(const CodeOptions &options) const {
  return library->key + "\n" + info.name + "\n" +
         formatv("{0}{1}{2}{3}{4}{5} {6}", options.partial, options.scatteredPositions,
                 options.portable, options.count, options.seeded, options.quick,
                 options.checks.bits())
             .str();
}

Expected<std::unique_ptr<const Kernel::State::Loaded>> Kernel::State::load(const KernelCode &code,
                                                                           bool quick) {
  Expected<Jit *> jit = Jit::get();
  if (!jit)
    return jit.takeError();
  Expected<KernelEntry> entry = (*jit)->load(code.object, code.entryName);
  if (!entry)
    return entry.takeError();
  auto result = std::make_unique<Loaded>();
  result->facts = code.facts;
  result->entry = *entry;
  result->quick = quick;
  result->bytes = code.object.size();
  return result;
}

std::unique_ptr<const Kernel::State::Loaded> Kernel::State::find(const CodeOptions &options) {
  auto found = library->cache.find("kernel", keyOf(options));
  if (!found)
    return nullptr;
  auto code = deserializeCode(*found);
  if (!code)
    return nullptr;
  auto loaded = load(*code, options.quick);
  if (loaded)
    return std::move(*loaded);
  consumeError(loaded.takeError()); // made anew
  return nullptr;
}

Expected<std::unique_ptr<const Kernel::State::Loaded>>
Kernel::State::build(const CodeOptions &options) {
  auto context = std::make_unique<LLVMContext>();
  auto module = library->module(info.name, *context);
  if (!module)
    return module.takeError();
  std::optional<Expected<KernelCode>> made;
  if (std::optional<std::string> problem = runProtected(
          [&] { made.emplace(compileKernel(**module, info, options, *library->processor)); })) {
    (void)module->release(); // in any state: left where they are
    (void)context.release();
    return createStringError(inconvertibleErrorCode(),
                             "kernel '" + info.name + "' cannot be compiled: " + *problem);
  }
  Expected<KernelCode> &code = *made;
  if (!code)
    return code.takeError();
  library->cache.insert("kernel", keyOf(options), serialize(*code));
  return load(*code, options.quick);
}

Expected<Kernel::State::Variant *> Kernel::State::get(CodeOptions options) {
  options.portable = library->options.portable;
  options.checks = library->options.checks;
  options.seeded |= options.portable;
  options.count = library->options.count;
  Variant &variant = code[options.partial + 2 * options.scatteredPositions + 4 * options.seeded];
  std::call_once(variant.once, [&] {
    installFaultHandlers();
    variant.options = options;
    Effort effort = library->options.effort;
    if (effort != Effort::Quick)
      variant.first = find(options);
    if (!variant.first && effort != Effort::Full) {
      options.quick = true;
      variant.first = find(options);
    }
    if (!variant.first) {
      auto built = build(options);
      if (!built && options.quick && effort == Effort::Adaptive) {
        consumeError(built.takeError()); // the other code generator may have no trouble
        options.quick = false;
        built = build(options);
      }
      if (built)
        variant.first = std::move(*built);
      else
        variant.error = toString(built.takeError());
    }
    variant.asked = effort != Effort::Adaptive;
    variant.code.store(variant.first.get(), std::memory_order_release);
  });
  if (!variant.error.empty())
    return createStringError(variant.error);
  return &variant;
}

void Kernel::State::ran(Variant &variant, const Loaded &code, std::chrono::nanoseconds time) {
  uint64_t spent = variant.spent.fetch_add(time.count(), std::memory_order_relaxed) + time.count();
  // Optimised compilation takes some 4 ms for each KB of quick code, on another core.
  uint64_t worthwhile = 1000000 + code.bytes * 1000;
  if (spent < worthwhile || variant.asked.exchange(true))
    return;
  std::shared_ptr<Library> owner = library->library.lock();
  if (!owner)
    return;
  Background::get().add([this, owner, &variant] {
    auto improved = find(variant.options);
    if (!improved) {
      auto built = build(variant.options);
      if (!built) {
        consumeError(built.takeError()); // the quick code stays
        return;
      }
      improved = std::move(*built);
    }
    variant.improved = std::move(improved);
    variant.code.store(variant.improved.get(), std::memory_order_release);
  });
}

//===----------------------------------------------------------------------===//
// Dispatch
//===----------------------------------------------------------------------===//

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
                           : 0;
      if (!bytes)
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
  plan.threadgroupBytes = end;
  if (counting)
    plan.counts.resize(facts.countWords());
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
  if (counting && (counters || profile)) {
    Profile launched =
        profileOf(facts, plan.counts, groupCount, end, state->library->options.fileName);
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

//===----------------------------------------------------------------------===//
// Library, Device
//===----------------------------------------------------------------------===//

Library::Library(std::unique_ptr<State> state) : state(std::move(state)) {}
Library::~Library() = default;
const std::vector<KernelInfo> &Library::kernels() const { return state->kernels; }

Expected<KernelInfo> Library::info(StringRef name) {
  std::lock_guard lock(state->mutex);
  Expected<const KernelInfo *> found = state->info(name);
  if (!found)
    return found.takeError();
  return **found;
}

Expected<Kernel *> Library::kernel(StringRef name) {
  std::lock_guard lock(state->mutex);
  if (auto found = state->made.find(name); found != state->made.end())
    return found->second.get();
  Expected<const KernelInfo *> info = state->info(name);
  if (!info)
    return info.takeError();
  if (!(*info)->unusable.empty())
    return createStringError(inconvertibleErrorCode(),
                             "kernel '" + (*info)->name + "': " + (*info)->unusable);
  auto made = std::make_unique<Kernel::State>();
  made->library = state.get();
  made->info = **info;
  auto &place = state->made[name.str()];
  place.reset(new Kernel(std::move(made)));
  return place.get();
}

Expected<std::shared_ptr<Library>> Library::with(const LibraryOptions &options) {
  if (!state->text)
    return createStringError("a library of LLVM IR has no text");
  HostFiles files = state->text->files();
  return state->device->make(state->text->source(), options, &files);
}

Text::Work Library::work() const { return state->text ? state->text->work() : Text::Work(); }

Device::Device() : state(std::make_unique<State>()) {}
Device::~Device() = default;

Device &Device::get() {
  static Device *device = new Device; // kernels may run until the very end of the process
  return *device;
}

Error Device::configure(const DeviceOptions &options) {
  State &state = *get().state;
  Expected<DiskCache> cache = DiskCache::open(options.cacheDirectory);
  std::lock_guard lock(state.mutex);
  if (!cache) {
    Error error = cache.takeError();
    if (options.cacheRequired)
      return error;
    if (!std::exchange(state.warned, true))
      errs() << "warning: " << toString(std::move(error))
             << "; compiled kernels are kept in memory only\n";
    else
      consumeError(std::move(error));
    state.cache = DiskCache();
  } else {
    state.cache = *cache;
  }
  state.numThreads = options.numThreads ? options.numThreads : usableCores();
  return Error::success();
}

/// Sets the checks that others need: what is recorded of accesses is that of valid ones.
static Error completeChecks(LibraryOptions &options) {
  Checks &checks = options.checks;
  if (options.portable && (checks.any() && checks != Checks{.bounds = true}))
    return createStringError("a portable library checks bounds, and can check nothing else");
  checks.races |= checks.sameValues;
  checks.bounds |= options.portable || checks.races || checks.initialized || checks.outputs;
  return Error::success();
}

Expected<std::shared_ptr<Library>> Device::compile(StringRef msl, const LibraryOptions &options) {
  return state->make(msl.str(), options, nullptr);
}

Expected<std::shared_ptr<Library>>
Device::State::make(const std::string &source, const LibraryOptions &given, const HostFiles *same) {
  LibraryOptions options = given;
  if (Error error = completeChecks(options))
    return std::move(error);
  Expected<const Processor *> processor = resolveProcessor(options);
  if (!processor)
    return processor.takeError();
  std::string key = textKey(source, options);
  // A text is known by its files as well. Until it has been parsed, these are the ones that it
  // asked for the last time.
  bool hasFiles = !options.includeDirectories.empty();
  HostFiles files = same ? *same : HostFiles();
  std::string withFiles = key;
  auto made = std::make_unique<Library::State>();
  {
    std::lock_guard lock(mutex);
    made->cache = cache;
  }
  if (hasFiles && !same) {
    std::string list;
    {
      std::lock_guard lock(mutex);
      list = fileLists.lookup(key);
    }
    if (list.empty())
      list = made->cache.find("files", key).value_or("");
    files = readFiles(list);
  }
  if (hasFiles)
    withFiles += "\nfiles " + digest(files);

  auto inMemory = [&] {
    return libraryKey(withFiles, options) + std::to_string(int(options.effort));
  };
  {
    // Compiled code is the same for all efforts.
    std::lock_guard lock(mutex);
    if (auto found = libraries.find(inMemory()); found != libraries.end())
      return found->second;
    made->text = texts.lookup(withFiles).lock();
  }
  made->processor = *processor;
  made->options = options;
  made->device = this;
  auto makeText = [&](HostFiles known) {
    MslOptions all = frontendOptions(options);
    all.functionConstants.clear();
    made->text = std::make_shared<Text>(source, std::move(all), std::move(known));
  };
  bool known = false;
  if (auto found = made->cache.find("library", libraryKey(withFiles, options)))
    if (auto kernels = deserializeKernels(*found)) {
      made->kernels = std::move(*kernels);
      known = true;
    }
  if (!made->text)
    makeText(known || same ? std::move(files) : HostFiles());
  if (!known) {
    auto kernels = made->text->kernels(options.functionConstants);
    if (!kernels)
      return kernels.takeError();
    made->kernels = std::move(*kernels);
    if (hasFiles && !same) {
      HostFiles read = made->text->files();
      std::string list = listFiles(read);
      withFiles = key + "\nfiles " + digest(read);
      made->cache.insert("files", key, list);
      std::lock_guard lock(mutex);
      fileLists[key] = std::move(list);
    }
    made->cache.insert("library", libraryKey(withFiles, options), serialize(made->kernels));
  }
  // The code does not depend on the effort.
  made->key = libraryKey(withFiles, options);
  std::shared_ptr<Library> library(new Library(std::move(made)));
  library->state->library = library;
  std::lock_guard lock(mutex);
  texts[withFiles] = library->state->text;
  return libraries.try_emplace(inMemory(), library)
      .first->second; // another thread may have been faster
}

Expected<std::shared_ptr<Library>> Device::compileIR(StringRef ir, std::vector<KernelInfo> kernels,
                                                     const LibraryOptions &given) {
  LibraryOptions options = given;
  if (Error error = completeChecks(options))
    return std::move(error);
  Expected<const Processor *> processor = resolveProcessor(options);
  if (!processor)
    return processor.takeError();
  auto made = std::make_unique<Library::State>();
  made->processor = *processor;
  made->bitcode[""] = ir.str();
  made->kernels = std::move(kernels);
  made->options = options;
  made->device = state.get();
  std::shared_ptr<Library> library(new Library(std::move(made)));
  library->state->library = library;
  return library;
}

void Device::finishCompilations() { Background::get().wait(); }

void Device::trim() {
  std::lock_guard lock(state->mutex);
  for (auto it = state->libraries.begin(); it != state->libraries.end();) {
    auto current = it++;
    if (current->second.use_count() == 1)
      state->libraries.erase(current);
  }
  for (auto it = state->texts.begin(); it != state->texts.end();) {
    auto current = it++;
    if (current->second.expired())
      state->texts.erase(current);
  }
}

} // namespace triton_metal
