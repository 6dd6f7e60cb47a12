// Reads LLVM's IR as the code that a GPU's register file sees (RegisterCode.h).
#pragma once

#include "host_device/engine/Prepare.h"
#include "host_device/engine/RegisterCode.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/Instructions.h"

namespace triton_metal::engine::registers {

/// The name of the function that is called, or nothing.
llvm::StringRef calleeOf(const llvm::Value *value);

/// How many neighbouring bytes of a vector of bytes are one number in memory.
unsigned bytesTogether(const llvm::Type *type);

/// What an access adds up by itself.
struct FoldedAddress {
  const llvm::Value *base = nullptr, *index = nullptr;
};

class Reader {
public:
  explicit Reader(llvm::Function &function)
      : function(function), layout(function.getDataLayout()) {}
  Code run();

private:
  /// Whether a value is a constant, or the same for all threads of the launch.
  bool isUniform(const llvm::Value *value) const {
    return llvm::isa<llvm::Constant>(value) || uniform.contains(value);
  }
  void findUniform();
  /// Whether a uniform address is also an operand of arithmetic, which takes no uniform registers
  /// of 64 bits: it is moved where it is made.
  bool isMoved(const llvm::Instruction &inst) const;
  bool isUniformPlusBytes(const llvm::GetElementPtrInst &address) const;
  bool isFolded(const llvm::GetElementPtrInst &address) const;
  bool computesUniform(const llvm::Instruction &inst) const;
  /// Whether the users of a value compute it by themselves.
  bool isPartOfUsers(const llvm::Instruction &inst) const;
  bool isNoStep(const llvm::Instruction &inst) const;
  /// Whether a phi of floats that all become halves takes halves.
  bool isNarrowed(const llvm::PHINode &phi) const;

  unsigned halvesOf(llvm::Type *type) const;
  unsigned componentsOf(const llvm::Value *value) const {
    auto *vector = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
    return vector ? vector->getNumElements() : 1;
  }
  /// New names for the components of a value.
  llvm::ArrayRef<Name> define(const llvm::Value *value);
  /// The numbers in registers that computing with the value takes.
  void use(const llvm::Value *value, Step &step);
  /// The same for what cannot be a uniform register: it is moved into a register first.
  void useInRegister(const llvm::Value *value, Step &step);
  void useComponent(const llvm::Value *value, unsigned component,
                    llvm::SmallVectorImpl<Name> &names);
  void usePacked(const llvm::Value *value, unsigned bytes, Step &step, Block &block);
  void useAddress(const llvm::Value *pointer, llvm::Type *accessed, Step &step);
  bool isFoldedAddress(const llvm::GetElementPtrInst &address, llvm::Type *accessed,
                       FoldedAddress &folded) const;
  bool isOwnLane(const llvm::Value *lane) const;

  bool takesLongOperand(const llvm::Instruction &inst) const;
  void readAddress(const llvm::GetElementPtrInst &address, Step &step, Block &block);
  void readDivision(const llvm::Instruction &inst, Step &step, Block &block);
  void readStep(llvm::Instruction &inst, Block &block);
  void readCall(llvm::CallBase &call, Step &step, Block &block);
  void shuffleInQuads(const llvm::Value *lane, Step &step, Block &block);
  /// Copies components of matrices for the phis of a loop if others take them, too.
  void copyComponents();
  void dropDead();

  llvm::Function &function;
  const llvm::DataLayout &layout;
  Code code;
  llvm::DenseSet<const llvm::Value *> uniform, moved;
  llvm::DenseMap<const llvm::Value *, llvm::SmallVector<Name, 4>> names;
  llvm::DenseMap<const llvm::AllocaInst *, llvm::SmallVector<Name, 4>> arrays;
  /// The lanes of a quad that a shuffle in this block takes numbers from, by the lane that it
  /// names.
  llvm::DenseMap<const llvm::Value *, llvm::SmallVector<Name, 4>> quadLanes;
  /// The offsets of 64 bits that are made in this block, by what they are made of and their scale.
  llvm::DenseMap<std::pair<const llvm::Value *, uint64_t>, Name> longOffsets;
};

} // namespace triton_metal::engine::registers
