#include "host_device/Device.h"
#include "host_device/Background.h"
#include "host_device/Compiling.h"
#include "host_device/State.h"
#include "host_device/engine/Cache.h"
#include "host_device/engine/Guard.h"
#include "host_device/engine/Jit.h"
#include "host_device/engine/Processor.h"
#include "host_device/engine/Protect.h"
#include "host_device/engine/Runtime.h"
#include "host_device/msl/Invocation.h"
#include "llvm/IRReader/IRReader.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"
#include <thread>
#if defined(__linux__)
#include <sched.h>
#endif

using namespace llvm;
using namespace triton_metal::engine;

namespace triton_metal {

unsigned usableCores() {
#if defined(__linux__)
  cpu_set_t cores;
  if (!sched_getaffinity(0, sizeof cores, &cores))
    return std::max(1, CPU_COUNT(&cores));
#endif
  return std::max(1u, std::thread::hardware_concurrency());
}

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
  if (variant.code.load(std::memory_order_acquire))
    return &variant;
  Compiling compiling;
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
// Library, Device
//===----------------------------------------------------------------------===//

Library::Library(std::unique_ptr<State> state) : state(std::move(state)) {}
Library::~Library() = default;
const std::vector<KernelInfo> &Library::kernels() const { return state->kernels; }

Expected<KernelInfo> Library::info(StringRef name) {
  Compiling compiling;
  std::lock_guard lock(state->mutex);
  Expected<const KernelInfo *> found = state->info(name);
  if (!found)
    return found.takeError();
  return **found;
}

Expected<Kernel *> Library::kernel(StringRef name) {
  Compiling compiling;
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
  Compiling compiling;
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
  Compiling compiling;
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
