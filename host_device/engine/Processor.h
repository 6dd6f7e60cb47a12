// The processor that code is compiled for, and the compilation of a module to an object file for
// it.
#pragma once

#include "host_device/engine/MaskExtensions.h"
#include "host_device/engine/Vectorize.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Error.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Triple.h"
#include <memory>
#include <string>

namespace llvm {
class Target;
}

namespace triton_metal::engine {

class Processor {
public:
  /// The host's own processor for an empty name. Other names are LLVM's names of processors of the
  /// same family; the host must have all of their instructions. The result is never freed.
  static llvm::Expected<const Processor *> get(llvm::StringRef name = "");
  /// The name in the environment (TRITON_METAL_HOST_CPU); empty for the host's own processor.
  static std::string requested();

  const std::string &cpu() const { return cpuName; }
  const HostTraits &traits() const { return hostTraits; }
  /// Identifies the processor and its features. Code for one processor does not run on another.
  std::string description() const;
  /// With `quick`, the machine generates code in little time, with few optimisations.
  std::unique_ptr<llvm::TargetMachine> machine(bool quick = false) const;
  /// Sets the attributes of a module's functions that name the processor.
  void annotate(llvm::Module &module) const;
  /// Compiles a module to an object file and consumes the module.
  llvm::Error emitObject(llvm::Module &module, llvm::TargetMachine &machine,
                         llvm::SmallVectorImpl<char> &object) const;

private:
  llvm::Error start(llvm::StringRef name);

  const llvm::Target *target = nullptr;
  llvm::Triple triple;
  std::string cpuName, features;
  HostTraits hostTraits;
  MaskExtensions maskExtensions;
};

/// Identifies the host's own processor and its features.
std::string hostDescription();

} // namespace triton_metal::engine
