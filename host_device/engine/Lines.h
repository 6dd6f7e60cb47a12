// Which lines of the program instructions belong to.
#pragma once

#include "host_device/engine/Code.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/Function.h"
#include <map>

namespace triton_metal::engine {

/// The innermost line that is not one of the standard library.
SourceLine sourceLineOf(const llvm::DILocation *location);

/// Gives lines numbers.
class LineTable {
public:
  explicit LineTable(std::vector<SourceLine> &lines);
  uint32_t lineOf(const llvm::Instruction &inst);

private:
  std::vector<SourceLine> &lines;
  std::map<SourceLine, uint32_t> numbers;
  llvm::DenseMap<const llvm::DILocation *, uint32_t> known;
};

/// Whether this is a call that marks an elementary function (msl/MarkMath.h).
bool isMathMark(const llvm::Instruction &inst);

/// The elementary functions that have been inlined into a kernel.
class MarkedFunctions {
public:
  explicit MarkedFunctions(llvm::Function &function);
  /// Whether the function of this mark was called by another one with a mark.
  bool isInside(const llvm::Instruction &mark) const;
  /// Whether an instruction is of a function that has, or had, a mark, or is called by one.
  bool hasPart(const llvm::Instruction &inst) const;
  /// Erases the marks. They would hinder optimisations.
  void eraseMarks();

private:
  llvm::SmallVector<llvm::Instruction *> marks;
  llvm::DenseMap<const llvm::DISubprogram *, bool> programs;
};

} // namespace triton_metal::engine
