// The code of a thread as a GPU's register file sees it: which registers each instruction takes and
// gives back. It is made of LLVM's IR and used to estimate the registers of a thread.
//
// The rules are those of Apple's register file as Mesa documents it for G13. Registers are counted
// in halves of 32 bits. Addresses of device memory have 64 bits, those of threadgroup memory 16,
// and conditions take a half. What is computed from the launch's arguments and constants alone is
// in uniform registers, which are another file.
#pragma once

#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/Function.h"
#include <cstdint>
#include <vector>

namespace triton_metal::engine::registers {

/// A number of one thread in registers, by its place in Code::halves.
using Name = uint32_t;

/// An instruction, or several that are always together.
struct Step {
  /// The components of a vector, which are in consecutive registers.
  llvm::SmallVector<Name, 2> defines;
  llvm::SmallVector<Name, 4> uses;
  /// Those of the uses that have to be in consecutive registers, in their order.
  llvm::SmallVector<llvm::SmallVector<Name, 4>, 1> vectors;
  /// Halves that are taken only while it runs.
  unsigned passing = 0;
  /// Memory accesses and barriers keep their order.
  bool isOrdered = false;
  /// Arithmetic of one number, and comparisons, are done just before they are needed.
  bool isLate = false;
};

/// A number that depends on where control comes from. Constants and uniform numbers that come in
/// are not listed.
struct Phi {
  Name defines;
  /// The place of the block before, and the number there.
  llvm::SmallVector<std::pair<uint32_t, Name>, 2> incoming;
};

struct Block {
  std::vector<Phi> phis;
  /// The last one, if `endsInBranch`, stays last.
  std::vector<Step> steps;
  bool endsInBranch = false;
  llvm::SmallVector<uint32_t, 2> successors, predecessors;
};

struct Code {
  /// The halves of each number.
  std::vector<uint8_t> halves;
  /// In reverse post-order; the first one is the entry.
  std::vector<Block> blocks;
  /// Halves that are taken all the time.
  unsigned reserved = 0;
};

/// Computes numbers of 64 bits that fit into 32 in 32, and adds up offsets before addresses
/// (RegisterForms.cpp).
void narrowNumbers(llvm::Function &function);

/// Makes straight code of conditions that only choose between numbers (RegisterConditions.cpp).
void flattenConditions(llvm::Function &function);

/// Reads a function whose vectors are in components.
Code readCode(llvm::Function &function);

/// Orders the steps of each block so that few numbers are live at once, as a GPU's compiler does.
void orderSteps(Code &code);

/// One bit for each number.
using Numbers = std::vector<uint64_t>;

/// The numbers that are live at the end of each block.
std::vector<Numbers> liveAtEnd(const Code &code);

/// The halves that are live at once at most.
unsigned demandOf(const Code &code);

/// The halves that an allocation without moves takes: each number is in consecutive halves, aligned
/// to their number. At least the demand.
unsigned allocate(const Code &code);

} // namespace triton_metal::engine::registers
