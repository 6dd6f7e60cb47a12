// Works around wrong copies of AVX-512 mask registers.
//
// To extend a mask of 8, 16 or 32 lanes with zeros, LLVM's x86 target uses KMOVB, KMOVW or KMOVD
// between two mask registers. It also declares these instructions to be plain copies (isMoveReg),
// which the register allocator relies on. If the extended mask has to be spilled (mask registers do
// not survive a call), the allocator spills the mask before its extension, and lanes that were off
// are on again. The pass replaces these instructions by an AND of the mask with itself. It takes
// the same time, and nothing takes it for a copy.
#pragma once

#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/Error.h"
#include <optional>

namespace llvm {
class MachineFunctionPass;
class MCInstrInfo;
class Triple;
} // namespace llvm

namespace triton_metal::engine {

/// The instructions that extend a mask but count as copies, and equivalent instructions that do
/// not.
class MaskExtensions {
public:
  /// Empty for targets other than x86. Returns an error if this LLVM lacks one of the instructions,
  /// because no mask would be safe then.
  static llvm::Expected<MaskExtensions> of(const llvm::Triple &triple,
                                           const llvm::MCInstrInfo &instructions);
  bool empty() const { return replacements.empty(); }
  /// The replacement of an instruction; nothing if it may stay.
  std::optional<unsigned> replacementOf(unsigned opcode) const;
  /// Creates the pass. It must run after instruction selection and the passes that change register
  /// domains, and before register allocation. It sets `ran` when it visits a function.
  llvm::MachineFunctionPass *createPass(bool &ran) const;

private:
  llvm::DenseMap<unsigned, unsigned> replacements;
};

} // namespace triton_metal::engine
