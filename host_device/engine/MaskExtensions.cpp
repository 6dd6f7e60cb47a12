#include "host_device/engine/MaskExtensions.h"
#include "llvm/CodeGen/MachineFunctionPass.h"
#include "llvm/CodeGen/MachineInstrBuilder.h"
#include "llvm/CodeGen/TargetInstrInfo.h"
#include "llvm/CodeGen/TargetSubtargetInfo.h"
#include "llvm/MC/MCInstrInfo.h"
#include "llvm/TargetParser/Triple.h"

using namespace llvm;

namespace triton_metal::engine {

namespace {
struct ExtendByAnd : MachineFunctionPass {
  static char ID;
  const MaskExtensions extensions;
  bool &ran;

  ExtendByAnd(MaskExtensions extensions, bool &ran)
      : MachineFunctionPass(ID), extensions(std::move(extensions)), ran(ran) {}

  StringRef getPassName() const override { return "Extend lane masks by AND"; }

  void getAnalysisUsage(AnalysisUsage &usage) const override {
    usage.setPreservesCFG();
    MachineFunctionPass::getAnalysisUsage(usage);
  }

  bool runOnMachineFunction(MachineFunction &function) override {
    ran = true;
    const TargetInstrInfo &instructions = *function.getSubtarget().getInstrInfo();
    bool changed = false;
    for (MachineBasicBlock &block : function)
      for (MachineInstr &inst : make_early_inc_range(block)) {
        std::optional<unsigned> replacement = extensions.replacementOf(inst.getOpcode());
        if (!replacement)
          continue;
        MachineOperand source = inst.getOperand(1);
        source.setIsKill(false);
        BuildMI(block, inst, inst.getDebugLoc(), instructions.get(*replacement),
                inst.getOperand(0).getReg())
            .add(source)
            .add(inst.getOperand(1));
        inst.eraseFromParent();
        changed = true;
      }
    return changed;
  }
};
char ExtendByAnd::ID = 0;
} // namespace

Expected<MaskExtensions> MaskExtensions::of(const Triple &triple, const MCInstrInfo &instructions) {
  MaskExtensions result;
  if (!triple.isX86())
    return result;
  StringMap<unsigned> opcodes;
  for (unsigned opcode = 0; opcode != instructions.getNumOpcodes(); ++opcode)
    if (StringRef name = instructions.getName(opcode);
        name.starts_with("KMOV") || name.starts_with("KAND"))
      opcodes[name] = opcode;
  // KMOVQ moves the whole register.
  for (StringRef width : {"B", "W", "D"})
    for (StringRef encoding : {"", "_EVEX"}) {
      std::string from = ("KMOV" + width + "kk" + encoding).str(),
                  to = ("KAND" + width + "kk").str();
      for (const std::string &name : {from, to})
        if (!opcodes.contains(name))
          return createStringError("LLVM's x86 target has no instruction '%s': how it extends lane "
                                   "masks has to be looked at again",
                                   name.c_str());
      result.replacements[opcodes[from]] = opcodes[to];
    }
  return result;
}

std::optional<unsigned> MaskExtensions::replacementOf(unsigned opcode) const {
  auto found = replacements.find(opcode);
  return found == replacements.end() ? std::nullopt : std::optional(found->second);
}

MachineFunctionPass *MaskExtensions::createPass(bool &ran) const {
  return new ExtendByAnd(*this, ran);
}

} // namespace triton_metal::engine
