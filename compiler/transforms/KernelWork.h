// What a kernel in Triton IR does, in numbers: its operations on tiles, how often they run, and
// which tiles wait in registers in between. `ThreadChoice.h` says what that costs.
#ifndef TRITON_METAL_TRANSFORMS_KERNELWORK_H
#define TRITON_METAL_TRANSFORMS_KERNELWORK_H

#include "analysis/AxisInfo.h"
#include "dialect/tt/TT.h"
#include "transforms/Budget.h"
#include "transforms/Dots.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

#include <map>
#include <vector>

namespace triton_metal {

/// The bytes of an element.
int64_t bytesOf(mlir::Type type);

/// The shape of a tile: its last dimension and all others.
struct Tile {
  int64_t elements = 1, last = 1, bytes = 4;

  static Tile of(mlir::Type type);
  int64_t perThread(int64_t warps) const {
    return std::max<int64_t>(1, elements / (warps * int64_t(kSimdWidth)));
  }
  /// 32-bit registers of a thread.
  double registers(int64_t warps) const {
    return double(perThread(warps)) * std::max<double>(bytes, 2) / 4;
  }
};

enum class WorkKind { Elements, Memory, Atomic, Reduce, Scan, Exchange, Dot };

/// An operation on tiles.
struct Work {
  WorkKind kind;
  /// How often it runs in a program.
  double times = 1;
  Tile tile;
  /// Instructions for each element.
  double each = 1;
  /// Of a reduction or scan: the extent along its axis, whether that is the last, and how many
  /// tiles it has.
  int64_t axis = 1, values = 1;
  bool alongLast = true;
  /// Of an access: the neighbours that lie side by side and aligned. Of a reduction or scan: those
  /// of the accesses that have its shape, which a thread then has; others have one.
  int64_t width = 1;
  /// Of an access: its vectors need not be aligned, and a mask may cut them, so that the end of a
  /// row is asked for number by number.
  bool isPacked = false;
  /// Of an access: its rows follow each other.
  bool isWhole = false;
  /// Of an access: its places are numbers of the kernel's, and not a range's.
  bool isGathered = false;
  /// Of an access: the numbers of a row follow each other in memory.
  bool isRows = false;
  /// Of a reduction or scan: its tiles.
  mlir::RankedTensorType source;
  /// The dot or reduction of which the tile is computed, element by element, and which decides
  /// where its elements are; -1 for others.
  int like = -1;
  /// Of a dot: batch, m, n, k, the bytes of its operands, and whether A and B are staged at each
  /// step of a loop.
  int64_t batch = 1, m = 0, n = 0, k = 0, bytesA = 0, bytesB = 0;
  /// The bytes of its numbers in fragments: G13 multiplies no bfloats.
  int64_t fragmentA = 0, fragmentB = 0;
  bool loadsA = false, loadsB = false, registersA = false, invariantA = false, simdgroup = false;
  /// The innermost loop around it, or null.
  mlir::Operation *loop = nullptr;
  /// When it runs: between which reductions, dots and loops.
  unsigned phase = 0;
};

/// A tile that waits in registers from one loop over registers to another.
struct Held {
  unsigned from, to;
  Tile tile;
  /// Of an accumulator of dots: its m and n; 0 for others.
  int64_t m = 0, n = 0;
};

/// The work of a kernel without calls.
class KernelWork {
public:
  KernelWork(tt::FuncOp kernel, const Budget &budget);

  llvm::ArrayRef<Work> getWorks() const { return works; }
  llvm::ArrayRef<Held> getHeld() const { return held; }
  /// The phases are from 0 to this one.
  unsigned getLastPhase() const { return phase; }
  /// Whether a loop stages operands of products, for which it may have two buffers.
  bool hasStagedLoops() const;

private:
  void visit(mlir::Block &block, double times, mlir::Operation *loop);
  void visitOp(mlir::Operation *op, double times, mlir::Operation *loop);
  void define(mlir::Value value);
  void use(mlir::Value value);
  void finish();
  /// Whether a value follows from ranges, scalars and constants alone: such a tile is computed
  /// again wherever it is needed, and often once for several neighbours.
  bool isCheap(mlir::Value value) const { return cheap.contains(value); }
  bool isLoaded(mlir::Value value, mlir::Operation *loop) const;
  bool isInvariant(mlir::Value value, mlir::Operation *loop) const;
  /// Whether an operand of a dot waits in threadgroup memory during a loop that does not change it.
  bool isStagedBefore(mlir::OpOperand &operand, mlir::Operation *loop) const;

  /// How an access through these pointers lies: along the dimension whose neighbours do.
  void setAccess(Work &work, mlir::Value pointers);

  /// Which dot or reduction decides where the elements of a value are; -1 if none does.
  int findMaker(mlir::Value value) const;

  const Budget &budget;
  AxisInfoAnalysis axes;
  std::vector<Work> works;
  std::vector<Held> held;
  llvm::DenseMap<mlir::Value, std::pair<unsigned, unsigned>> lives;
  llvm::SmallVector<mlir::Value> order;
  llvm::DenseSet<mlir::Value> cheap;
  /// Tiles that are repeated along a dimension: a thread has all of its numbers at once.
  llvm::DenseSet<mlir::Value> repeated;
  llvm::DenseMap<mlir::Value, std::pair<int64_t, int64_t>> accumulators;
  /// The dots and reductions that decide where the elements of values are: see Work::like.
  llvm::DenseMap<mlir::Value, int> makers;
  /// Of each shape that is read or written: neighbours along the last dimension in one access.
  std::map<llvm::SmallVector<int64_t>, int64_t> widths;
  unsigned phase = 0;
};

} // namespace triton_metal

#endif // TRITON_METAL_TRANSFORMS_KERNELWORK_H
