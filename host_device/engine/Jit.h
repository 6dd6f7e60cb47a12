// Machine code: from a module with scalar kernels to an object file for this host, and from an
// object file to a function.
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

/// Compiles one kernel of the module, which is used up. Any thread, one module a context.
llvm::Expected<KernelCode> compileKernel(llvm::Module &module, const KernelInfo &kernel,
                                         const CodeOptions &options, const Processor &processor);

/// The process's loader of object files.
class Jit {
public:
  static llvm::Expected<Jit *> get();
  ~Jit();
  /// The code stays loaded until the process ends.
  llvm::Expected<KernelEntry> load(llvm::StringRef object, llvm::StringRef entryName);

private:
  Jit();
  std::unique_ptr<llvm::orc::LLJIT> jit;
  std::mutex mutex;
  unsigned loaded = 0;
};

} // namespace triton_metal::engine
