// Compiled kernels on disk. An entry is a file of its own, written beside its place and renamed
// into it, so that readers in other processes see all of it or nothing; what is damaged, cut short
// or not ours is not found.
#pragma once

#include "host_device/engine/Code.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <optional>
#include <string>

namespace triton_metal::engine {

class DiskCache {
public:
  /// An empty folder is no cache. An error says why the folder cannot be written.
  static llvm::Expected<DiskCache> open(llvm::StringRef folder);
  DiskCache() = default;

  std::optional<std::string> find(llvm::StringRef kind, llvm::StringRef key) const;
  /// What cannot be written is not kept; nothing else happens.
  void insert(llvm::StringRef kind, llvm::StringRef key, llvm::StringRef content) const;
  bool enabled() const { return !folder.empty(); }

private:
  std::string path(llvm::StringRef kind, llvm::StringRef key) const;
  std::string folder;
};

/// Names this build of the engine, the LLVM in it and the host.
const std::string &buildIdentity();

std::string serialize(const KernelCode &code);
std::optional<KernelCode> deserializeCode(llvm::StringRef bytes);
std::string serialize(const std::vector<KernelInfo> &kernels);
std::optional<std::vector<KernelInfo>> deserializeKernels(llvm::StringRef bytes);

} // namespace triton_metal::engine
