// The state behind Device.h's classes.
#pragma once

#include "host_device/Device.h"
#include "host_device/engine/Cache.h"
#include "host_device/engine/Jit.h"
#include "host_device/engine/Processor.h"
#include "llvm/ADT/StringMap.h"
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>

namespace triton_metal {

/// The processor's cores that this process may use.
unsigned usableCores();

struct Device::State {
  /// `files` are those of a library of the same text; if null, the host has them.
  llvm::Expected<std::shared_ptr<Library>>
  make(const std::string &source, const LibraryOptions &given, const HostFiles *files);

  std::mutex mutex;
  llvm::StringMap<std::shared_ptr<Library>> libraries;
  /// By a text's key with its files' digest.
  llvm::StringMap<std::weak_ptr<Text>> texts;
  /// The files that a text asked for, by its key.
  llvm::StringMap<std::string> fileLists;
  engine::DiskCache cache;
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
  const engine::Processor *processor = nullptr;
  engine::DiskCache cache;
  Device::State *device = nullptr;
  std::mutex mutex;
  std::map<std::string, KernelInfo, std::less<>> infos;
  /// The front end's modules by kernel. That of LLVM IR has no name and all kernels.
  std::map<std::string, std::string, std::less<>> bitcode;
  std::map<std::string, std::unique_ptr<Kernel>, std::less<>> made;

  /// What is known about a kernel once it is lowered. The caller has the mutex.
  llvm::Expected<const KernelInfo *> info(llvm::StringRef name);
  /// The module with the kernel, in the given context.
  llvm::Expected<std::unique_ptr<llvm::Module>> module(llvm::StringRef kernel,
                                                       llvm::LLVMContext &context);

private:
  llvm::Error lower(llvm::StringRef kernel);
};

inline constexpr unsigned variants = 8;

struct Kernel::State {
  Library::State *library = nullptr;
  KernelInfo info;

  /// Code in memory. It never changes and lives as long as the kernel.
  struct Loaded {
    engine::CodeFacts facts;
    engine::KernelEntry entry = nullptr;
    bool quick = false;
    size_t bytes = 0;
  };
  struct Variant {
    engine::CodeOptions options;
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

  llvm::Expected<Variant *> get(engine::CodeOptions options);
  /// The code of the cache, or null.
  std::unique_ptr<const Loaded> find(const engine::CodeOptions &options);
  llvm::Expected<std::unique_ptr<const Loaded>> build(const engine::CodeOptions &options);
  static llvm::Expected<std::unique_ptr<const Loaded>> load(const engine::KernelCode &code,
                                                            bool quick);
  std::string keyOf(const engine::CodeOptions &options) const;
  /// Notes that quick code has run, and has it compiled again if that pays.
  void ran(Variant &variant, const Loaded &code, std::chrono::nanoseconds time);
};

} // namespace triton_metal
