// Mask registers of AVX-512 that are extended with zeros stay extended.
//
// LLVM's x86 target extends a mask of 8, 16 or 32 lanes with lanes that are off by KMOVB, KMOVW or
// KMOVD from one mask register to another, and at the same time says that these instructions are
// plain copies (isMoveReg). The register allocator believes it: where the extended mask has to be
// spilled (mask registers do not survive a call), it spills the mask from before the extension,
// and lanes that were off are on again. The pass here puts an AND of the mask with itself in their
// place. It takes the same time, and is a copy to nobody.
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

/// The instructions that extend a mask and count as copies, and what does the same and does not.
class MaskExtensions {
public:
  /// None on targets other than x86. An error names an instruction that this LLVM does not have:
  /// no mask would be safe then.
  static llvm::Expected<MaskExtensions> of(const llvm::Triple &triple,
                                           const llvm::MCInstrInfo &instructions);
  bool empty() const { return replacements.empty(); }
  /// The instruction to use for this one; nothing where it may stay.
  std::optional<unsigned> replacementOf(unsigned opcode) const;
  /// The pass. It goes after instruction selection and what changes the registers' domains, and
  /// before register allocation; `ran` is set where it came to a function.
  llvm::MachineFunctionPass *createPass(bool &ran) const;

private:
  llvm::DenseMap<unsigned, unsigned> replacements;
};

} // namespace triton_metal::engine
