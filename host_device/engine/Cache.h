// A cache of compiled kernels on disk. Each entry is a file that is written under another name and
// then renamed, so that other processes see it completely or not at all. Entries that are damaged,
// truncated or foreign are ignored.
#pragma once

#include "host_device/engine/Code.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <optional>
#include <string>

namespace triton_metal::engine {

class DiskCache {
public:
  /// An empty folder means that there is no cache. An error gives the reason why the folder cannot
  /// be written.
  static llvm::Expected<DiskCache> open(llvm::StringRef folder);
  DiskCache() = default;

  std::optional<std::string> find(llvm::StringRef kind, llvm::StringRef key) const;
  /// Entries that cannot be written are dropped silently.
  void insert(llvm::StringRef kind, llvm::StringRef key, llvm::StringRef content) const;
  bool enabled() const { return !folder.empty(); }

private:
  std::string path(llvm::StringRef kind, llvm::StringRef key) const;
  std::string folder;
};

/// Identifies this build of the engine, its LLVM and the host.
const std::string &buildIdentity();

std::string serialize(const KernelCode &code);
std::optional<KernelCode> deserializeCode(llvm::StringRef bytes);
std::string serialize(const std::vector<KernelInfo> &kernels);
std::optional<std::vector<KernelInfo>> deserializeKernels(llvm::StringRef bytes);

} // namespace triton_metal::engine
