// The processor that code is compiled for, and the way from a module to an object file for it.
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
  /// The host's own for an empty name. Any other name is a lesser processor of the same family, as
  /// LLVM calls it: its instructions must all be ones that the host has. Lives for ever.
  static llvm::Expected<const Processor *> get(llvm::StringRef name = "");
  /// The name that the environment asks for (TRITON_METAL_HOST_CPU); empty: the host's own.
  static std::string requested();

  const std::string &cpu() const { return cpuName; }
  const HostTraits &traits() const { return hostTraits; }
  /// Names the processor and its features: code for one does not run on another.
  std::string description() const;
  std::unique_ptr<llvm::TargetMachine> machine() const;
  /// What the functions of a module are compiled for is said in their attributes.
  void annotate(llvm::Module &module) const;
  /// The object file of a module, which is used up.
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

/// Names the host's own processor and its features.
std::string hostDescription();

} // namespace triton_metal::engine
