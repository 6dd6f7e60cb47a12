// From tiles with layouts to what one thread does: a tensor becomes the vector of the thread's
// registers.
//
// The conversion walks the program once, in order, and builds the kernel beside it. Each family of
// operations has a file of its own; a family answers nothing for operations that are not its own.
#pragma once

#include "analysis/LinearLayout.h"
#include "dialect/msl/MSL.h"
#include "dialect/tt/TT.h"
#include "dialect/ttg/TTG.h"
#include "dialect/ttm/TTM.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Pass/Pass.h"

#include <map>
#include <optional>

namespace triton_metal {

/// Elements behind a uniform pointer, at offsets; without a base, the offsets are addresses in
/// bytes.
struct Address {
  mlir::Value base;
  mlir::Value offsets;
};

class Lowering {
public:
  explicit Lowering(tt::FuncOp func) : func(func), builder(func.getContext()), loc(func.getLoc()) {}

  /// Builds the kernel before the function. The function is left as it is.
  mlir::LogicalResult run();

private:
  using Handled = std::optional<mlir::LogicalResult>;

  //===--- Families: nothing if the operation belongs to another
  //------------------------------------===//
  Handled lowerProgram(mlir::Operation *op);
  Handled lowerShape(mlir::Operation *op);
  Handled lowerElementwise(mlir::Operation *op);
  Handled lowerMemory(mlir::Operation *op);
  Handled lowerReduce(mlir::Operation *op);
  Handled lowerTiles(mlir::Operation *op);
  Handled lowerControlFlow(mlir::Operation *op);

  mlir::LogicalResult lower(mlir::Operation *op);
  mlir::LogicalResult lowerBlock(mlir::Block *block);

  //===--- Program
  //----------------------------------------------------------------------------------===//
  mlir::LogicalResult lowerArguments(msl::KernelOp kernel);
  /// Whether the pointers whose alignment is to be tested are aligned; computed once, uniform.
  void testAlignment();
  void collectTileLifetimes();
  /// Threadgroup memory that the tiles leave to the operation at hand.
  int64_t freeThreadgroupBytes();

  //===--- Types and values
  //-------------------------------------------------------------------------===//
  /// Null for a type that Metal does not have.
  mlir::Type convertType(mlir::Type type);
  mlir::VectorType registersOf(const LinearLayout &layout, mlir::Type elementType);
  /// The layout of a tensor; tensors at this level have one.
  LinearLayout layoutOf(mlir::Value value);
  mlir::Value get(mlir::Value value) { return mapping.lookup(value); }
  void map(mlir::Value from, mlir::Value to) { mapping.map(from, to); }
  mlir::Value constant(mlir::Type type, int64_t value);
  mlir::Value zero(mlir::Type type);
  mlir::Value splat(mlir::Value scalar, int64_t count);
  /// The only register, or the first of equal ones.
  mlir::Value extractScalar(mlir::Value vector);
  mlir::Value permute(mlir::Value vector, llvm::ArrayRef<int64_t> bases, int64_t offset = 0);
  mlir::Value castOffsets(mlir::Value offsets, mlir::Type elementType);
  /// Address of a scalar pointer or of a tensor of pointers.
  Address addressOf(mlir::Value pointer);
  /// The addresses in bytes, as i64.
  mlir::Value byteAddresses(const Address &address, mlir::Type pointee, mlir::Type converted);

  //===--- Thread positions
  //-------------------------------------------------------------------------===//
  /// A sum over the set bits of the lane and SIMD-group index of these values, computed once at the
  /// kernel's top.
  mlir::Value threadSum(llvm::ArrayRef<uint32_t> laneValues,
                        llvm::ArrayRef<uint32_t> simdgroupValues, const llvm::Twine &name = "");
  /// A location with only a name.
  mlir::Location named(const llvm::Twine &name);
  /// The name that the source gave to a value, or the other one.
  std::string nameOf(mlir::Location loc, llvm::StringRef otherwise = "");
  /// Whether the masked bits of the lane and SIMD-group index are all zero; null if there are no
  /// bits.
  mlir::Value threadBitsAreZero(uint32_t laneMask, uint32_t simdgroupMask) {
    return threadBitsAre(laneMask, 0, simdgroupMask, 0);
  }
  /// Whether the masked bits of the lane and SIMD-group index are these.
  mlir::Value threadBitsAre(uint32_t laneMask, uint32_t laneBits, uint32_t simdgroupMask,
                            uint32_t simdgroupBits);
  /// For each register the value that `field` gives to its element's flat index. The field must be
  /// additive over disjoint bits; `general` computes it from flat indices where the bases are not
  /// disjoint bits.
  mlir::Value registerIndices(const LinearLayout &layout,
                              llvm::function_ref<uint32_t(uint32_t)> field,
                              llvm::function_ref<mlir::Value(mlir::Value)> general,
                              const llvm::Twine &name);
  /// Coordinates along a dimension.
  mlir::Value coordinates(const LinearLayout &layout, unsigned dim);
  /// Places of the elements in threadgroup memory where `pad` elements follow every 2^shift.
  mlir::Value paddedIndices(const LinearLayout &layout, unsigned shift, uint32_t pad,
                            const llvm::Twine &name = "place");

  //===--- Data movement
  //----------------------------------------------------------------------------===//
  mlir::FailureOr<mlir::Value> convertLayout(mlir::Value value, const LinearLayout &from,
                                             const LinearLayout &to, llvm::StringRef name);
  mlir::Value convertThroughShuffles(mlir::Value value, const LayoutConversion &conversion,
                                     unsigned numRegisters);
  mlir::Value convertThroughMemory(mlir::Value value, const LinearLayout &from,
                                   const LinearLayout &to, llvm::StringRef name);
  /// Registers whose index has only the bits that are not in `repeats`.
  mlir::Value dropRepeats(mlir::Value vector, uint32_t repeats);
  mlir::Value addRepeats(mlir::Value vector, uint32_t repeats, unsigned numRegisterBits);
  /// Runs `body` in those threads only where the condition holds; null means in all.
  void predicated(mlir::Value condition, llvm::function_ref<void()> body);
  mlir::Value allocate(llvm::StringRef name, mlir::Type elementType, int64_t count);
  /// The same bits in a type that memory and shuffles take: i1 travels as i8.
  mlir::Value toStorage(mlir::Value value);
  mlir::Value fromStorage(mlir::Value value, mlir::Type elementType);
  /// Shuffles what SIMD-group functions take; wider and narrower types travel in it.
  mlir::Value shuffleStorage(mlir::Value value,
                             llvm::function_ref<mlir::Value(mlir::Value)> shuffle);

  //===--- Tiles
  //------------------------------------------------------------------------------------===//
  mlir::LogicalResult storeTile(ttm::StoreTileOp op);
  mlir::LogicalResult loadTile(ttm::LoadTileOp op);
  mlir::LogicalResult mma(ttm::MMAOp op);
  mlir::Value slotOf(mlir::Value tile, mlir::Value slot);
  std::string tileName(mlir::Value tile);

  //===--- Reductions
  //-------------------------------------------------------------------------------===//
  mlir::LogicalResult reduce(tt::ReduceOp op);
  llvm::SmallVector<mlir::Value> combine(tt::ReduceOp op, mlir::ValueRange lhs,
                                         mlir::ValueRange rhs);
  llvm::SmallVector<mlir::Value> reduceRegisters(tt::ReduceOp op, mlir::ValueRange values,
                                                 int64_t bits);
  mlir::Value shuffleXor(mlir::Value value, unsigned mask);
  void reduceInAnyOrder(tt::ReduceOp op, llvm::SmallVector<mlir::Value> &values,
                        const LinearLayout &layout, unsigned axis);
  void reduceInOrder(tt::ReduceOp op, llvm::SmallVector<mlir::Value> &values,
                     const LinearLayout &layout, unsigned axis);
  /// Lanes that differ in this bit, or registers that do, combined.
  llvm::SmallVector<mlir::Value> combineLanes(tt::ReduceOp op, mlir::ValueRange values,
                                              unsigned laneBit);
  llvm::SmallVector<mlir::Value> combinePairs(tt::ReduceOp op, mlir::ValueRange values,
                                              unsigned registerBit);
  /// What the SIMD-groups that differ in these bits hold, in new lowest register bits, through
  /// threadgroup memory. Threads that differ in a free bit hold the same.
  llvm::SmallVector<mlir::Value> readPartials(mlir::ValueRange values,
                                              llvm::ArrayRef<unsigned> simdgroupBits,
                                              uint32_t freeLanes, uint32_t freeSimdgroups);

  //===--- Memory
  //-----------------------------------------------------------------------------------===//
  mlir::LogicalResult load(tt::LoadOp op);
  mlir::LogicalResult store(tt::StoreOp op);
  mlir::LogicalResult atomicRMW(tt::AtomicRMWOp op);
  mlir::LogicalResult atomicCAS(tt::AtomicCASOp op);
  /// Null where there is none, or where it is true everywhere.
  mlir::Value maskOf(mlir::Value mask);
  /// One thread's result to all: through threadgroup memory.
  mlir::Value broadcastFromOwner(mlir::Value value, const LinearLayout &layout);
  mlir::LogicalResult finishAtomic(mlir::Operation *op, mlir::Value result,
                                   const LinearLayout &layout, mlir::Value owner);
  /// A uniform i1 that implies that every element of the mask is true; null if none is known.
  mlir::Value uniformMask(mlir::Value mask);
  struct Access {
    int32_t width = 1, maskWidth = 1;
  };
  /// Makes an access hold whatever the test of the pointers' alignment says.
  void useAlignmentTest(Access &access, const Address &address, mlir::Value mask,
                        mlir::Value tileMask, mlir::Value &full);
  Access accessOf(mlir::Operation *op, mlir::Value pointer, mlir::Value mask,
                  const LinearLayout &layout);

  tt::FuncOp func;
  mlir::OpBuilder builder;
  mlir::Location loc;
  mlir::IRMapping mapping;
  llvm::DenseMap<mlir::Value, Address> addresses;

  unsigned numSimdgroups = 1;
  /// From the first to the last operation, by position in the program, during which a tile's bytes
  /// are taken.
  struct TileLifetime {
    unsigned first, last;
    int64_t bytes;
  };
  llvm::SmallVector<TileLifetime> tileLifetimes;
  llvm::DenseMap<mlir::Operation *, unsigned> positions;
  unsigned position = 0;
  mlir::Value lane, simdgroup;
  /// Where what is computed once for the whole kernel goes.
  mlir::Operation *topEnd = nullptr;
  /// True where all pointers whose alignment is tested are aligned; null where none is.
  mlir::Value alignmentTest;
  std::map<std::pair<std::vector<uint32_t>, std::vector<uint32_t>>, mlir::Value> threadSums;
  llvm::DenseMap<mlir::Value, mlir::Value> tiles;
  llvm::StringMap<unsigned> allocationNames;
};

/// Bytes that a value takes in memory.
int64_t getStorageBytes(mlir::Type elementType);

} // namespace triton_metal
