#ifndef TRITON_METAL_TRANSFORMS_MSLEMITTER_H
#define TRITON_METAL_TRANSFORMS_MSLEMITTER_H

#include "transforms/MSLPlan.h"
#include "transforms/MSLRegisters.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"

#include <map>
#include <set>

namespace triton_metal::msl {

/// A variable that holds the registers of a value: `count` elements of `width` registers.
struct Storage {
  mlir::Value variable;
  int64_t width = 1;
  explicit operator bool() const { return bool(variable); }
  ArrayType getType() const { return mlir::cast<ArrayType>(variable.getType()); }
  bool isMatrix() const { return getType().isMatrix(); }
  bool operator==(const Storage &other) const { return variable == other.variable; }
};

/// One loop over register bits [low, low + log2(trip)).
struct Dim {
  int64_t stride;
  int64_t trip;
};

/// Writes the loop form of a kernel's value form into a new body.
class Emitter {
public:
  Emitter(KernelOp kernel, Plan &plan) : builder(kernel.getContext()), plan(plan) {}

  /// Emits `from` at the end of `to`, whose arguments stand for the scalar ones of `from`.
  mlir::LogicalResult emitKernel(mlir::Block &from, mlir::Block &to);

private:
  // Chunks of values (MSLChunks.cpp).
  /// Registers [at, at + width) of a value, width 1, 2 or 4: a number or a Metal vector.
  mlir::Value get(mlir::Value value, const Coord &at, int64_t width);
  mlir::Value getScalar(mlir::Value value);
  mlir::Value compute(mlir::Value value, const Coord &at, int64_t width);
  mlir::Value getOfConstant(mlir::arith::ConstantOp op, const Coord &at, int64_t width);
  mlir::Value getPermuted(PermuteRegistersOp op, const Coord &at, int64_t width);
  mlir::Value readStorage(mlir::Location loc, const Storage &storage, const Coord &at,
                          int64_t width);
  void writeStorage(mlir::Location loc, const Storage &storage, const Coord &at, int64_t width,
                    mlir::Value value);
  mlir::Value swizzle(mlir::Location loc, mlir::Value vector, int64_t first, int64_t width);
  mlir::Value constant(mlir::Location loc, int64_t value, mlir::Type type);
  /// The sum of the terms, counted in units of `unit` registers; null for 0.
  mlir::Value getIndex(mlir::Location loc, const Coord &at, int64_t unit);
  /// The same as a component of a chunk, 0 too.
  mlir::Value getComponent(mlir::Location loc, const Coord &at);
  /// Splits a register index into the element of an array and the component in it.
  std::pair<Coord, Coord> split(mlir::Location loc, const Coord &at, int64_t width);
  Coord permute(mlir::Location loc, PermuteRegistersOp op, const Coord &at);
  void remember(mlir::Value value, const Coord &at, int64_t width, mlir::Value chunk);
  mlir::Value recall(mlir::Value value, const Coord &at, int64_t width);

  // Segments (MSLSegments.cpp).
  void emitSegment(Segment &segment, int entry, mlir::Block *block);
  void emitBody(Segment &segment, int64_t step, bool guarded,
                llvm::DenseMap<mlir::Value, Storage> &accumulators);
  void emitItem(mlir::Operation *op, const Coord &at, int64_t step, bool guarded);
  /// Calls `body` for every `step`-th register, in loops.
  void emitNest(mlir::Location loc, llvm::ArrayRef<Dim> dims, bool unrolled, int64_t registers,
                int64_t step, llvm::function_ref<void(const Coord &)> body);
  /// A loop over the registers of a chunk that `op` takes one by one: its coordinate and component
  /// index. Written out where an operand cannot be had at a loop's index.
  void emitElements(mlir::Operation *op, const Coord &at, int64_t width,
                    llvm::function_ref<void(const Coord &, const Coord &)> body);
  bool canLoopOverElements(mlir::Operation *op);
  int64_t getStep(llvm::ArrayRef<mlir::Operation *> items, int64_t registers);
  /// The loops over a segment's registers, and in `unrolled` whether there can be none: a root asks
  /// for registers that are no sum of loop indices, or for a constant that is not linear in them.
  /// Every loop over registers or over a chunk's elements is formed by this answer.
  std::vector<Dim> getDims(llvm::ArrayRef<mlir::Value> roots, int64_t registers, int64_t step,
                           bool &unrolled, llvm::ArrayRef<int64_t> breaks = {});
  Storage makeStorage(mlir::Location loc, mlir::Type type, int64_t width, bool matrix);
  Storage chooseStorage(mlir::Value value, int64_t width, int entry, mlir::Block *block,
                        bool sameStep);
  bool wantsMatrix(mlir::Value value);
  void copyInto(mlir::Value value, const Storage &storage);
  void copyStorage(mlir::Location loc, const Storage &from, const Storage &to);

  // Memory (MSLMemory.cpp).
  struct AccessInfo;
  AccessInfo getAccessInfo(mlir::Operation *op);
  void emitLoad(mlir::Operation *op, const Coord &at, int64_t step, bool guarded);
  void emitStore(mlir::Operation *op, const Coord &at, int64_t step, bool guarded);
  void emitAtomic(mlir::Operation *op, const Coord &at, int64_t step);
  mlir::Value emitRead(const AccessInfo &info, mlir::Operation *op, const Coord &at, int64_t width,
                       bool masked, mlir::SmallVectorImpl<mlir::Value> &parts);
  void emitWrite(const AccessInfo &info, mlir::Operation *op, const Coord &at, int64_t width,
                 bool masked, mlir::ValueRange parts);

  // Reductions and matrices (MSLReduce.cpp).
  void emitReduce(ReduceRegistersOp op);
  llvm::SmallVector<mlir::Value> combine(ReduceRegistersOp op, mlir::ValueRange left,
                                         mlir::ValueRange right);
  llvm::SmallVector<mlir::Value>
  combineComponents(ReduceRegistersOp op, llvm::SmallVector<mlir::Value> chunks, int64_t bits);
  void emitMma(MmaOp op, int entry, mlir::Block *block);
  Storage getFragments(mlir::Value value);

  // Control flow (MSLFormLoops.cpp).
  void emitBlock(mlir::Block &block);
  void emitOp(mlir::Operation *op, int entry, mlir::Block *block);
  void emitFor(mlir::scf::ForOp op, int entry, mlir::Block *block);
  void emitIf(mlir::scf::IfOp op);
  void emitWhile(mlir::scf::WhileOp op);
  bool isStored(mlir::Type type) const { return getNumRegisters(type) > 1; }
  void assign(mlir::ValueRange values, llvm::ArrayRef<Storage> storages);
  bool readsStorage(mlir::Value value, const Storage &storage);
  mlir::LogicalResult error(mlir::Operation *op, const llvm::Twine &message);

  mlir::OpBuilder builder;
  Plan &plan;
  mlir::IRMapping scalars;
  llvm::DenseMap<mlir::Value, mlir::Value> ssa;
  llvm::DenseMap<mlir::Value, Storage> stored;
  bool failed = false;
  /// Inside code that is written out register by register: no index is a loop's.
  bool written = false;

  using Key =
      std::tuple<void *, int64_t, int64_t, std::vector<std::tuple<void *, int64_t, int64_t>>>;
  std::vector<std::map<Key, mlir::Value>> memo{1};
  struct Scope {
    Emitter &emitter;
    explicit Scope(Emitter &emitter) : emitter(emitter) { emitter.memo.emplace_back(); }
    ~Scope() { emitter.memo.pop_back(); }
  };
};

/// A type of `width` registers of `type`'s elements: the element itself for 1.
mlir::Type getChunkType(mlir::Type type, int64_t width);

} // namespace triton_metal::msl

#endif // TRITON_METAL_TRANSFORMS_MSLEMITTER_H
