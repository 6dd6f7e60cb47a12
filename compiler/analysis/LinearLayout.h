// Linear layouts: where the elements of a tile live.
//
// A tile of power-of-two extents is spread over registers, lanes of a SIMD-group and SIMD-groups of
// a threadgroup. The map from (register, lane, simdgroup) to the element is linear over GF(2): the
// element that bits r, l, s hold is the exclusive or of one basis for each set bit. Because all
// extents are powers of two, the coordinates of an element are bit fields of its row-major index,
// so that a basis is one integer here: the row-major ("flat") index of the element. Reshaping then
// changes nothing but the shape, and transposing permutes bits.
//
// A basis of zero replicates: the same element lives in both threads (or registers) that differ in
// that bit. The nonzero bases of a layout are independent and span the tile, so each element has a
// home, and its copies differ exactly in the bits whose basis is zero.
#ifndef TRITON_METAL_ANALYSIS_LINEARLAYOUT_H
#define TRITON_METAL_ANALYSIS_LINEARLAYOUT_H

#include "dialect/msl/Simdgroup.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdint>
#include <optional>
#include <string>

namespace triton_metal {

/// The three parts of a thread's name for an element.
enum class InDim { Register = 0, Lane = 1, Simdgroup = 2 };

/// One place: register of a thread, lane, SIMD-group.
struct HardwareIndex {
  uint32_t reg = 0, lane = 0, simdgroup = 0;
  bool operator==(const HardwareIndex &) const = default;
  HardwareIndex operator^(const HardwareIndex &o) const {
    return {reg ^ o.reg, lane ^ o.lane, simdgroup ^ o.simdgroup};
  }
};

class LinearLayout {
public:
  using Bases = llvm::SmallVector<uint32_t, 8>;
  using Shape = llvm::SmallVector<int64_t, 4>;

  LinearLayout() = default;
  /// From flat bases. Asserts that `lane` has five.
  LinearLayout(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<uint32_t> reg,
               llvm::ArrayRef<uint32_t> lane, llvm::ArrayRef<uint32_t> simdgroup);

  /// Says what is wrong with these bases for a layout of this shape, or nothing.
  static std::optional<std::string> check(llvm::ArrayRef<int64_t> shape,
                                          llvm::ArrayRef<uint32_t> reg,
                                          llvm::ArrayRef<uint32_t> lane,
                                          llvm::ArrayRef<uint32_t> simdgroup);

  //===--- Constructors
  //---------------------------------------------------------------------------===//

  /// Dimensions are walked in `order` (fastest first): first `perThread` elements of each to
  /// registers, then lanes, then SIMD-groups, and what is left over to registers again. Lanes and
  /// SIMD-groups that find no element replicate. SIMD-groups may walk the dimensions in an order of
  /// their own.
  static LinearLayout blocked(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> perThread,
                              llvm::ArrayRef<unsigned> order, unsigned numSimdgroups,
                              llvm::ArrayRef<unsigned> simdgroupOrder = {});
  /// `blocked` with one element a thread and the last dimension fastest.
  static LinearLayout defaultBlocked(llvm::ArrayRef<int64_t> shape, unsigned numSimdgroups);
  /// An accumulator of the instruction's fragments. `simdgroups` says how many SIMD-groups tile
  /// each dimension; SIMD-groups beyond their product replicate. The fragments of one SIMD-group
  /// are consecutive, columns inner, then rows. It has at least one fragment for each of the
  /// SIMD-groups. The dimensions before the last two are those of a batch: neighbouring matrices
  /// belong to different SIMD-groups.
  static LinearLayout simdgroupMatrix(llvm::ArrayRef<int64_t> shape, msl::MatrixShape instruction,
                                      llvm::ArrayRef<unsigned> simdgroups, unsigned numSimdgroups);
  /// Operand A (operandIndex 0, [M][K]) or B (1, [K][N]) in registers for an accumulator tiled by
  /// `simdgroups`: each SIMD-group holds all of K for its rows (columns). With `transposed` it
  /// consists of fragments of the transposed operand: a thread holds neighbours in a column.
  static LinearLayout simdgroupOperand(llvm::ArrayRef<int64_t> shape, msl::MatrixShape instruction,
                                       unsigned operandIndex, llvm::ArrayRef<unsigned> simdgroups,
                                       unsigned numSimdgroups, bool transposed = false);
  /// One fragment of operand A (operandIndex 0, [m][k]) or B (1, [k][n]).
  static LinearLayout simdgroupFragment(msl::MatrixShape instruction, unsigned operandIndex);

  //===--- Access
  //---------------------------------------------------------------------------------===//

  llvm::ArrayRef<int64_t> getShape() const { return shape; }
  unsigned getRank() const { return shape.size(); }
  int64_t getNumElements() const;
  llvm::ArrayRef<uint32_t> getBases(InDim dim) const { return bases[unsigned(dim)]; }
  llvm::ArrayRef<uint32_t> getRegisterBases() const { return bases[0]; }
  llvm::ArrayRef<uint32_t> getLaneBases() const { return bases[1]; }
  llvm::ArrayRef<uint32_t> getSimdgroupBases() const { return bases[2]; }
  /// Registers that one thread's share takes.
  unsigned getNumRegisters() const { return 1u << bases[0].size(); }
  unsigned getNumSimdgroups() const { return 1u << bases[2].size(); }
  unsigned getNumThreads() const { return kSimdWidth * getNumSimdgroups(); }

  /// The flat element that a place holds.
  uint32_t apply(HardwareIndex index) const;
  uint32_t apply(uint32_t reg, uint32_t lane, uint32_t simdgroup) const {
    return apply(HardwareIndex{reg, lane, simdgroup});
  }
  Shape toCoordinates(uint32_t flat) const;
  uint32_t toFlat(llvm::ArrayRef<int64_t> coordinates) const;
  /// The flat bits that belong to a dimension.
  uint32_t dimMask(unsigned dim) const;
  /// How far a dimension's bits are shifted in the flat index.
  unsigned dimShift(unsigned dim) const;

  /// Bits of the part whose basis is zero: flipping them reaches another copy of the same element.
  uint32_t freeMask(InDim dim) const;
  /// The bits of a register's index that do not move a register to another group, where along each
  /// dimension neighbours are in groups of so many.
  uint32_t equalRegisters(llvm::ArrayRef<int64_t> groups) const;
  /// No element lives twice.
  bool isInjective() const;
  /// Bits of the part that move along the dimension.
  uint32_t bitsAlong(InDim dim, unsigned tensorDim) const;
  /// No basis moves along `dim` and another dimension at once.
  bool isSeparable(unsigned dim) const;
  /// Each basis is zero or a single bit.
  bool isPermutation() const;
  /// Each basis that moves along `dim` is a single bit.
  bool isPermutationAlong(unsigned dim) const;

  /// The home of a flat element: the place with zero in all replicated bits.
  HardwareIndex invert(uint32_t flat) const;

  //===--- Algebra: what a shape operation makes of a layout
  //---------------------------------------===//

  /// A new dimension of extent 1 at `axis`.
  LinearLayout expandDims(unsigned axis) const;
  /// The inverse: removes a dimension of extent 1.
  LinearLayout squeezeDim(unsigned axis) const;
  /// The dimension is reduced away: its register bits go, its lane and SIMD-group bits replicate.
  /// None if not separable.
  std::optional<LinearLayout> sliceDim(unsigned axis) const;
  /// Elements that differ in these bits of their coordinate become one: register bits that tell
  /// them apart go, lane and SIMD-group bits replicate, and the coordinate keeps its other bits.
  LinearLayout reduceBits(unsigned axis, uint32_t bits) const;
  /// Result dimension i is this layout's dimension order[i].
  LinearLayout transpose(llvm::ArrayRef<int32_t> order) const;
  LinearLayout inverseTranspose(llvm::ArrayRef<int32_t> order) const;
  /// Same elements in row-major order under another shape.
  LinearLayout reshape(llvm::ArrayRef<int64_t> newShape) const;
  /// The layout an operand of extent 1 along the broadcast dimensions must have so that
  /// broadcasting it to this layout moves nothing. None if a basis mixes broadcast and other
  /// dimensions.
  std::optional<LinearLayout> broadcastSource(llvm::ArrayRef<int64_t> sourceShape) const;
  /// Some layout of the broadcast result that needs no movement: lanes and SIMD-groups that
  /// replicate take the new elements first (innermost dimension first), registers the rest.
  LinearLayout broadcastTo(llvm::ArrayRef<int64_t> newShape) const;
  /// A new innermost dimension of extent 2, held in register bit 0.
  LinearLayout join() const;
  /// The inverse of `join`: none if the innermost extent is not 2 or not in one register bit.
  /// `registerBit` is that bit.
  std::optional<LinearLayout> split(unsigned *registerBit = nullptr) const;
  /// Two tiles one after the other along dimension 0, held in a new highest register bit.
  LinearLayout cat() const;

  /// Register bits that a result of `permute_registers` reads: for each register bit of `result`,
  /// the exclusive or of `source` registers whose element is the (masked) element. None if lanes or
  /// SIMD-groups would have to exchange data. `resultToSource` maps a flat element of the result to
  /// a flat element of the source.
  static std::optional<llvm::SmallVector<uint32_t>>
  registerMap(const LinearLayout &source, const LinearLayout &result,
              llvm::function_ref<uint32_t(uint32_t)> resultToSource);

  bool operator==(const LinearLayout &) const = default;
  friend llvm::hash_code hash_value(const LinearLayout &layout);
  void print(llvm::raw_ostream &os) const;
  std::string str() const;

private:
  Shape shape;
  Bases bases[3];
};

inline llvm::raw_ostream &operator<<(llvm::raw_ostream &os, const LinearLayout &layout) {
  layout.print(os);
  return os;
}

/// How the elements of one layout reach another of the same shape and threads.
struct LayoutConversion {
  /// What has to move: nothing; registers within a thread; between lanes of a SIMD-group; between
  /// SIMD-groups.
  enum class Kind { Identity, Registers, Simdgroup, Threadgroup };

  Kind kind = Kind::Threadgroup;
  /// For each bit of the result's register, lane and SIMD-group index, the place in the source to
  /// read, combined by exclusive or. Copies are chosen nearest: in the same thread, else in the
  /// same SIMD-group, where there is one.
  llvm::SmallVector<HardwareIndex> reg, lane, simdgroup;

  LayoutConversion(const LinearLayout &source, const LinearLayout &result);
  /// The source place of a result place.
  HardwareIndex apply(HardwareIndex result) const;
  /// Whether each thread reads registers of one other lane of its SIMD-group, and its position
  /// chooses among few of them: more would cost more than a round through memory.
  bool isShuffle() const;
};

/// How the places of a gather's result reach those of its source along the dimensions other than
/// `axis`, if each element that an index may choose is in the index's SIMD-group, in one register
/// of some lane: the bits of the lane that move along `axis` are then the index's. None otherwise.
std::optional<LayoutConversion> getGatherFromLanes(const LinearLayout &source,
                                                   const LinearLayout &result, unsigned axis);

} // namespace triton_metal

#endif
