// What is known of a value across the lanes of a SIMD-group: which lanes differ by known constants.
// One lattice describes uniform values (all lanes equal), consecutive addresses (lane times element
// size), and two-dimensional tiles of addresses.
#pragma once

#include "host_device/KernelInfo.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/Analysis/CycleAnalysis.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/UniformityAnalysis.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/Instructions.h"
#include <array>
#include <cstdint>
#include <memory>

namespace triton_metal::engine {

struct CodeOptions;

/// The value of lane l is the value of lane `representative[l]` plus `offset[l]`, modulo the width
/// of the type.
struct LaneShape {
  std::array<uint8_t, simdWidth> representative;
  std::array<int64_t, simdWidth> offset;
  /// The number of low bits that are zero in the values of all representatives.
  uint8_t alignment = 0;
  /// Adding the offset does not wrap around in any lane, as an unsigned or as a signed number.
  bool noUnsignedWrap = false;
  bool noSignedWrap = false;
  /// The offsets only hold if no zext or sext on the way to the value had an operand that wrapped
  /// around. The values of the representatives are correct in any case.
  bool speculative = false;

  static LaneShape uniform(unsigned alignment = 0);
  static LaneShape varying();
  /// base + lane * stride.
  static LaneShape strided(int64_t stride, unsigned alignment);

  bool isUniform() const;
  unsigned classes() const;
  bool isVarying() const { return classes() == simdWidth; }
  /// Whether the value of every lane differs from that of lane 0 by a known number.
  bool isOneClass() const { return classes() == 1; }
  bool provedNoUnsignedWrap() const;
  bool provedNoSignedWrap() const;
  bool offsetsBelowAlignment() const;
  bool operator==(const LaneShape &) const = default;
};

/// The divergence of control flow and the shapes of values of one prepared scalar function.
class LaneAnalysis {
public:
  LaneAnalysis(llvm::Function &function, const CodeOptions &options, llvm::DominatorTree &domTree,
               llvm::LoopInfo &loops);

  const LaneShape &shape(const llvm::Value *value) const;
  bool isUniform(const llvm::Value *value) const { return shape(value).isUniform(); }
  /// Whether lanes that run this block together may leave it to different blocks.
  bool hasDivergentBranch(const llvm::BasicBlock &block) const {
    return divergentBranches.contains(&block);
  }
  /// Whether lanes may come to this block along different edges, one after the other, before it
  /// runs.
  bool isDivergentJoin(const llvm::BasicBlock &block) const {
    return divergentJoins.contains(&block);
  }

private:
  LaneShape transfer(llvm::Instruction &inst, bool final);
  LaneShape transferBinary(llvm::BinaryOperator &inst);
  LaneShape transferCall(llvm::CallInst &call);
  LaneShape transferPosition(llvm::CallInst &call);
  LaneShape sameOperands(llvm::Instruction &inst);
  LaneShape &slot(const llvm::Value *value);

  const CodeOptions &options;
  const llvm::DataLayout &layout;
  llvm::DenseMap<const llvm::Value *, LaneShape> shapes;
  mutable llvm::DenseMap<const llvm::Value *, LaneShape> constants;
  llvm::DenseSet<const llvm::BasicBlock *> divergentBranches, divergentJoins;
  llvm::DenseSet<const llvm::Instruction *> uniformByControl;
};

} // namespace triton_metal::engine
