// One step of a loop over registers.

#ifndef TRITON_METAL_TRANSFORMS_MSLTILESTEP_H
#define TRITON_METAL_TRANSFORMS_MSLTILESTEP_H

#include "dialect/msl/MSL.h"
#include "transforms/MSLAccess.h"
#include "transforms/MSLRegisters.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseSet.h"

namespace triton_metal::msl {

/// Registers within a step: the one at `part`, or `index` registers after it.
struct StepPart {
  int64_t part;
  mlir::Value index;
  int64_t trip;

  StepPart(int64_t part, mlir::Value index = {}, int64_t trip = 1)
      : part(part), index(index), trip(trip) {}
  StepPart plus(int64_t registers) const { return {part + registers, index, trip}; }
};

/// Creates the operations of one step at the insertion point. Registers of tiles from outside of
/// the loop become `msl.chunk`s.
class TileStep {
public:
  /// The step takes the registers [at, at + step). If `guarded`, masks are tested; otherwise
  /// `certain` are the choices whose mask is true. If `writtenOut`, there are no loops, neither
  /// over steps nor over the components of a chunk.
  TileStep(mlir::OpBuilder &builder, const Coord &at, int64_t step, bool guarded, bool writtenOut,
           const llvm::DenseSet<mlir::Operation *> *certain = nullptr)
      : builder(builder), at(at), step(step), guarded(guarded), writtenOut(writtenOut),
        certain(certain) {}

  /// In this step the masks are true everywhere, or false.
  void assume(llvm::ArrayRef<mlir::Value> masks, bool value) {
    for (mlir::Value mask : masks)
      known[mask] = value;
  }
  void lower(mlir::Operation *op);
  /// Reads the step's registers of a tile from outside of the loop now, so that what is written
  /// later does not change them.
  void read(mlir::Value tile);
  /// Registers of a tile, or the value itself if it is a number.
  mlir::Value get(mlir::Value value, const StepPart &part, int64_t width);

private:
  void lowerElementwise(mlir::Operation *op);
  void lowerWrite(WriteTileOp op);
  void lowerAccumulate(AccumulateOp op);
  // MSLTileStepMemory.cpp.
  void lowerLoad(mlir::Operation *op);
  void lowerStore(mlir::Operation *op);
  void lowerAtomic(mlir::Operation *op);
  /// Reads registers; if `group` is given, the one at the part's index behind that pointer.
  mlir::Value createRead(const Access &access, mlir::Location loc, const StepPart &part,
                         int64_t width, llvm::SmallVectorImpl<mlir::Value> &chunks,
                         mlir::Value group = {});
  void createWrite(const Access &access, mlir::Location loc, const StepPart &part, int64_t width,
                   mlir::ValueRange chunks);
  mlir::Value createAtomic(mlir::Operation *op, const StepPart &part);
  /// The base and offset of an access.
  std::pair<mlir::Value, mlir::Value> createAddress(const Access &access, mlir::Location loc,
                                                    mlir::Value address);
  /// Calls `body` for each register of a chunk: in a loop, or written out if an operand cannot be
  /// computed at a loop's index. `body` takes the register and the component.
  void forEachComponent(mlir::Operation *op, int64_t part,
                        llvm::function_ref<void(const StepPart &, mlir::Value)> body);
  /// Computes a chunk component by component.
  mlir::Value createByComponent(mlir::Operation *op, int64_t part,
                                llvm::function_ref<mlir::Value(const StepPart &)> compute);

  int64_t getChunkWidth() const;
  /// Whether each register of the access is accessed under its mask.
  bool isMasked(const Access &access) const {
    return access.isMasked(guarded) && !known.contains(access.mask);
  }
  /// The number of registers that one access takes.
  int64_t getAccessWidth(const Access &access) const {
    bool isWhole = access.mask && known.contains(access.mask) && access.maskRun >= step &&
                   !access.element.isInteger(1);
    return std::min(isWhole ? access.width : access.getWidth(guarded), step);
  }
  /// Whether the registers of a step are neighbours in memory, also where the mask is true for
  /// some.
  bool areNeighbours(const Access &access) const {
    return access.mask && access.width >= step && access.maskRun >= step &&
           !access.element.isInteger(1);
  }
  /// What is known of a mask here.
  std::optional<bool> getKnown(mlir::Value mask) const {
    auto it = known.find(mask);
    return it == known.end() ? std::nullopt : std::optional(it->second);
  }

  mlir::OpBuilder &builder;
  Coord at;
  int64_t step;
  bool guarded, writtenOut;
  const llvm::DenseSet<mlir::Operation *> *certain;
  llvm::SmallDenseMap<mlir::Value, bool> known;
  /// The chunks that this step has computed.
  llvm::DenseMap<mlir::Value, llvm::SmallVector<mlir::Value, 1>> computed;
};

/// Gives an atomic of one element at an address, which is its offset so far, a pointer there as its
/// base.
void addAtomicBase(mlir::OpBuilder &builder, mlir::Operation *op);

} // namespace triton_metal::msl

#endif // TRITON_METAL_TRANSFORMS_MSLTILESTEP_H
