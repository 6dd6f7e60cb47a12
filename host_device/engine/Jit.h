// Machine code: compiles a module with scalar kernels to an object file for this host, and loads
// object files.
#pragma once

#include "host_device/engine/Code.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <mutex>

namespace llvm::orc {
class LLJIT;
}

namespace triton_metal::engine {

class Processor;

/// Compiles one kernel and consumes the module. May be called from any thread, if each module has a
/// context of its own.
llvm::Expected<KernelCode> compileKernel(llvm::Module &module, const KernelInfo &kernel,
                                         const CodeOptions &options, const Processor &processor);

/// The process's loader of object files.
class Jit {
public:
  static llvm::Expected<Jit *> get();
  ~Jit();
  /// Loads code, which stays loaded until the process ends.
  llvm::Expected<KernelEntry> load(llvm::StringRef object, llvm::StringRef entryName);

private:
  Jit();
  std::unique_ptr<llvm::orc::LLJIT> jit;
  std::mutex mutex;
  unsigned loaded = 0;
};

} // namespace triton_metal::engine
