// What is known of a value across the lanes of a SIMD-group: which lanes are known to differ by
// constants. One lattice serves uniformity (all lanes equal), consecutive addresses (lane times
// element size) and two-dimensional tiles of them.
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

/// Lane l's value is the value of lane `representative[l]` plus `offset[l]`, modulo the type's
/// width.
struct LaneShape {
  std::array<uint8_t, simdWidth> representative;
  std::array<int64_t, simdWidth> offset;
  /// Bits known to be zero at the low end of every representative's value.
  uint8_t alignment = 0;
  /// Adding the offset wraps around in no lane, as an unsigned or as a signed number.
  bool noUnsignedWrap = false;
  bool noSignedWrap = false;
  /// The offsets hold only if no zext or sext on the way to the value saw a wrapped-around operand.
  /// The representatives' values are right in any case.
  bool speculative = false;

  static LaneShape uniform(unsigned alignment = 0);
  static LaneShape varying();
  /// base + lane * stride.
  static LaneShape strided(int64_t stride, unsigned alignment);

  bool isUniform() const;
  unsigned classes() const;
  bool isVarying() const { return classes() == simdWidth; }
  /// Every lane's value is a known number away from lane 0's.
  bool isOneClass() const { return classes() == 1; }
  bool provedNoUnsignedWrap() const;
  bool provedNoSignedWrap() const;
  bool offsetsBelowAlignment() const;
  bool operator==(const LaneShape &) const = default;
};

/// Divergence of control and shapes of values, for one prepared scalar function.
class LaneAnalysis {
public:
  LaneAnalysis(llvm::Function &function, const CodeOptions &options, llvm::DominatorTree &domTree,
               llvm::LoopInfo &loops);

  const LaneShape &shape(const llvm::Value *value) const;
  bool isUniform(const llvm::Value *value) const { return shape(value).isUniform(); }
  /// Lanes that run this block together may leave it to different blocks.
  bool hasDivergentBranch(const llvm::BasicBlock &block) const {
    return divergentBranches.contains(&block);
  }
  /// Lanes may come to this block by different edges, one after the other, before it runs.
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
