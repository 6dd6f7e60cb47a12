#include "analysis/LinearLayout.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cassert>

using namespace llvm;

namespace triton_metal {

namespace {

/// Gaussian elimination over GF(2). Each row remembers which of the added vectors it is made of.
class Echelon {
public:
  /// Adds a vector; false if it depends on the earlier ones.
  bool add(uint32_t vector) {
    uint64_t tag = uint64_t(1) << count++;
    reduce(vector, tag);
    if (!vector)
      return false;
    rows.push_back({vector, tag});
    return true;
  }
  /// Reduces `vector`, collecting in `tag` the vectors that were used.
  void reduce(uint32_t &vector, uint64_t &tag) const {
    for (const Row &row : rows) {
      if (vector & leading(row.vector)) {
        vector ^= row.vector;
        tag ^= row.tag;
      }
    }
  }
  unsigned rank() const { return rows.size(); }

private:
  struct Row {
    uint32_t vector;
    uint64_t tag;
  };
  static uint32_t leading(uint32_t v) { return uint32_t(1) << Log2_32(v); }
  SmallVector<Row> rows;
  unsigned count = 0;
};

int64_t product(ArrayRef<int64_t> shape) {
  int64_t n = 1;
  for (int64_t extent : shape)
    n *= extent;
  return n;
}

} // namespace

LinearLayout::LinearLayout(ArrayRef<int64_t> shape, ArrayRef<uint32_t> reg, ArrayRef<uint32_t> lane,
                           ArrayRef<uint32_t> simdgroup)
    : shape(shape.begin(), shape.end()) {
  bases[0].assign(reg.begin(), reg.end());
  bases[1].assign(lane.begin(), lane.end());
  bases[2].assign(simdgroup.begin(), simdgroup.end());
  assert(!check(shape, reg, lane, simdgroup) && "not a layout");
}

std::optional<std::string> LinearLayout::check(ArrayRef<int64_t> shape, ArrayRef<uint32_t> reg,
                                               ArrayRef<uint32_t> lane,
                                               ArrayRef<uint32_t> simdgroup) {
  int64_t elements = 1;
  for (int64_t extent : shape) {
    if (extent <= 0 || !isPowerOf2_64(extent))
      return "every extent must be a power of two, but one is " + std::to_string(extent);
    elements *= extent;
    if (elements > (int64_t(1) << 31))
      return "a tile must have at most 2^31 elements";
  }
  if (lane.size() != kLaneBits)
    return "a SIMD-group has 32 lanes, so there must be 5 lane bases, but there are " +
           std::to_string(lane.size());
  if (simdgroup.size() > kLaneBits)
    return "a threadgroup has at most 32 SIMD-groups, so there must be at most 5 simdgroup bases";
  if (reg.size() > 31)
    return "there are too many register bases";
  Echelon echelon;
  for (ArrayRef<uint32_t> part : {reg, lane, simdgroup}) {
    for (uint32_t basis : part) {
      if (basis >= elements)
        return "a basis lies outside of the tile";
      if (basis && !echelon.add(basis))
        return "the nonzero bases must be independent";
    }
  }
  if (llvm::is_contained(reg, 0u))
    return "a register basis must not be zero";
  if (echelon.rank() != Log2_64(elements))
    return "the bases must reach every element of the tile";
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Constructors
//===----------------------------------------------------------------------===//

static void appendDim(SmallVectorImpl<uint32_t> &out, size_t limit, int64_t &done, int64_t extent,
                      unsigned shift) {
  while (out.size() < limit && done < extent) {
    out.push_back(uint32_t(done) << shift);
    done *= 2;
  }
}

static unsigned shiftOf(ArrayRef<int64_t> shape, unsigned dim) {
  unsigned shift = 0;
  for (unsigned d = dim + 1; d < shape.size(); ++d)
    shift += Log2_64(shape[d]);
  return shift;
}

LinearLayout LinearLayout::blocked(ArrayRef<int64_t> shape, ArrayRef<int64_t> perThread,
                                   ArrayRef<unsigned> order, unsigned numSimdgroups,
                                   ArrayRef<unsigned> simdgroupOrder) {
  assert(shape.size() == perThread.size() && shape.size() == order.size());
  if (simdgroupOrder.empty())
    simdgroupOrder = order;
  SmallVector<int64_t> done(shape.size(), 1);
  Bases reg, lane, simdgroup;
  for (unsigned d : order)
    appendDim(reg, 31, done[d], std::min(perThread[d], shape[d]), shiftOf(shape, d));
  for (unsigned d : order)
    appendDim(lane, kLaneBits, done[d], shape[d], shiftOf(shape, d));
  for (unsigned d : simdgroupOrder)
    appendDim(simdgroup, Log2_32(numSimdgroups), done[d], shape[d], shiftOf(shape, d));
  for (unsigned d : order)
    appendDim(reg, 31, done[d], shape[d], shiftOf(shape, d));
  lane.resize(kLaneBits, 0);
  simdgroup.resize(Log2_32(numSimdgroups), 0);
  return LinearLayout(shape, reg, lane, simdgroup);
}

LinearLayout LinearLayout::defaultBlocked(ArrayRef<int64_t> shape, unsigned numSimdgroups) {
  SmallVector<int64_t> ones(shape.size(), 1);
  SmallVector<unsigned> order;
  for (unsigned d = shape.size(); d-- > 0;)
    order.push_back(d);
  return blocked(shape, ones, order, numSimdgroups);
}

/// The bits of one fragment, then of the fragments of one SIMD-group, then of the SIMD-groups. In a
/// fragment, a lane holds neighbours in a row, and the same in every eighth row; each four lanes
/// whose indices differ in bits 0 and 3 hold a row. A fragment with more than 16 rows or columns
/// consists of such of 16, which follow each other.
static LinearLayout fragments(ArrayRef<int64_t> shape, msl::FragmentShape fragment,
                              int64_t rowsEach, int64_t columnsEach, ArrayRef<int> simdgroupDims) {
  assert(shape.size() >= 2 && fragment.isValid() && rowsEach >= fragment.rows &&
         columnsEach >= fragment.columns);
  int rowDim = shape.size() - 2, columnDim = shape.size() - 1;
  unsigned rowShift = Log2_64(shape[columnDim]);
  auto row = [&](uint32_t r) { return r << rowShift; };
  int64_t unitRows = std::min(fragment.rows, msl::kUnitExtent);
  int64_t unitColumns = std::min(fragment.columns, msl::kUnitExtent);
  uint32_t neighbours = unitColumns / msl::kLaneColumns;
  SmallVector<uint32_t> reg, simdgroup;
  SmallVector<uint32_t> lane = {neighbours, row(1), row(2), 2 * neighbours, row(4)};
  for (uint32_t c = 1; c < neighbours; c *= 2)
    reg.push_back(c);
  for (int64_t r = msl::kLaneRows; r < unitRows; r *= 2)
    reg.push_back(row(r));
  for (int64_t c = unitColumns; c < fragment.columns; c *= 2)
    reg.push_back(c);
  for (int64_t r = unitRows; r < fragment.rows; r *= 2)
    reg.push_back(row(r));
  for (int64_t c = fragment.columns; c < columnsEach; c *= 2)
    reg.push_back(c);
  for (int64_t r = fragment.rows; r < rowsEach; r *= 2)
    reg.push_back(row(r));
  SmallVector<int64_t> next(shape.size(), 1);
  next[rowDim] = rowsEach;
  next[columnDim] = columnsEach;
  for (int dim : simdgroupDims) {
    if (dim < 0) {
      simdgroup.push_back(0);
      continue;
    }
    simdgroup.push_back(uint32_t(next[dim]) << shiftOf(shape, dim));
    next[dim] *= 2;
  }
  for (int dim = rowDim; dim-- > 0;)
    for (int64_t matrix = next[dim]; matrix < shape[dim]; matrix *= 2)
      reg.push_back(uint32_t(matrix) << shiftOf(shape, dim));
  return LinearLayout(shape, reg, lane, simdgroup);
}

/// Which dimension each SIMD-group bit tiles: columns inner, then rows, then a batch, then none.
static SmallVector<int> simdgroupDims(ArrayRef<unsigned> simdgroups, unsigned numSimdgroups) {
  SmallVector<int> dims;
  for (int dim = simdgroups.size(); dim-- > 0;)
    dims.append(Log2_32(simdgroups[dim]), dim);
  assert(dims.size() <= Log2_32(numSimdgroups));
  dims.resize(Log2_32(numSimdgroups), -1);
  return dims;
}

LinearLayout LinearLayout::simdgroupMatrix(ArrayRef<int64_t> shape, msl::MatrixShape instruction,
                                           ArrayRef<unsigned> simdgroups, unsigned numSimdgroups) {
  assert(shape.size() == simdgroups.size());
  size_t rows = shape.size() - 2, columns = shape.size() - 1;
  return fragments(shape, instruction.getAccumulator(), shape[rows] / simdgroups[rows],
                   shape[columns] / simdgroups[columns], simdgroupDims(simdgroups, numSimdgroups));
}

LinearLayout LinearLayout::simdgroupOperand(ArrayRef<int64_t> shape, msl::MatrixShape instruction,
                                            unsigned operandIndex, ArrayRef<unsigned> simdgroups,
                                            unsigned numSimdgroups, bool transposed) {
  assert(operandIndex < 2);
  SmallVector<int> dims = simdgroupDims(simdgroups, numSimdgroups);
  int kept = operandIndex == 0 ? 0 : 1;
  for (int &dim : dims)
    if (dim != kept)
      dim = -1;
  int64_t rows = operandIndex == 0 ? shape[0] / simdgroups[0] : shape[0];
  int64_t columns = operandIndex == 1 ? shape[1] / simdgroups[1] : shape[1];
  msl::FragmentShape fragment = instruction.getOperand(operandIndex);
  if (!transposed)
    return fragments(shape, fragment, rows, columns, dims);
  for (int &dim : dims)
    dim = dim < 0 ? dim : 1 - dim;
  return fragments({shape[1], shape[0]}, fragment.getTransposed(), columns, rows, dims)
      .transpose({1, 0});
}

LinearLayout LinearLayout::simdgroupFragment(msl::MatrixShape instruction, unsigned operandIndex) {
  msl::FragmentShape fragment = instruction.getOperand(operandIndex);
  return fragments({fragment.rows, fragment.columns}, fragment, fragment.rows, fragment.columns,
                   {});
}

//===----------------------------------------------------------------------===//
// Access
//===----------------------------------------------------------------------===//

int64_t LinearLayout::getNumElements() const { return product(shape); }

uint32_t LinearLayout::apply(HardwareIndex index) const {
  uint32_t values[3] = {index.reg, index.lane, index.simdgroup};
  uint32_t flat = 0;
  for (unsigned part = 0; part < 3; ++part)
    for (auto [bit, basis] : llvm::enumerate(bases[part]))
      if (values[part] >> bit & 1)
        flat ^= basis;
  return flat;
}

LinearLayout::Shape LinearLayout::toCoordinates(uint32_t flat) const {
  Shape coordinates(shape.size());
  for (unsigned d = shape.size(); d-- > 0;) {
    coordinates[d] = flat & (shape[d] - 1);
    flat >>= Log2_64(shape[d]);
  }
  return coordinates;
}

uint32_t LinearLayout::toFlat(ArrayRef<int64_t> coordinates) const {
  uint32_t flat = 0;
  for (unsigned d = 0; d < shape.size(); ++d)
    flat = (flat << Log2_64(shape[d])) | uint32_t(coordinates[d]);
  return flat;
}

unsigned LinearLayout::dimShift(unsigned dim) const { return shiftOf(shape, dim); }

uint32_t LinearLayout::dimMask(unsigned dim) const {
  return uint32_t(shape[dim] - 1) << dimShift(dim);
}

uint32_t LinearLayout::freeMask(InDim dim) const {
  uint32_t mask = 0;
  for (auto [bit, basis] : llvm::enumerate(getBases(dim)))
    if (!basis)
      mask |= 1u << bit;
  return mask;
}

uint32_t LinearLayout::equalRegisters(llvm::ArrayRef<int64_t> groups) const {
  uint32_t within = 0;
  for (auto [dim, group] : llvm::enumerate(groups)) {
    // A group of 12 has three whole groups of 4.
    int64_t power = std::min(group & -group, shape[dim]);
    within |= uint32_t(power - 1) << dimShift(dim);
  }
  uint32_t mask = 0;
  for (auto [bit, basis] : llvm::enumerate(getRegisterBases()))
    if (!(basis & ~within))
      mask |= 1u << bit;
  return mask;
}

bool LinearLayout::isInjective() const {
  return !freeMask(InDim::Register) && !freeMask(InDim::Lane) && !freeMask(InDim::Simdgroup);
}

uint32_t LinearLayout::bitsAlong(InDim dim, unsigned tensorDim) const {
  uint32_t mask = 0;
  for (auto [bit, basis] : llvm::enumerate(getBases(dim)))
    if (basis & dimMask(tensorDim))
      mask |= 1u << bit;
  return mask;
}

bool LinearLayout::isPermutationAlong(unsigned dim) const {
  uint32_t mask = dimMask(dim);
  for (const Bases &part : bases)
    for (uint32_t basis : part)
      if ((basis & mask) && !isPowerOf2_32(basis))
        return false;
  return true;
}

bool LinearLayout::isSeparable(unsigned dim) const {
  uint32_t mask = dimMask(dim);
  for (const Bases &part : bases)
    for (uint32_t basis : part)
      if ((basis & mask) && (basis & ~mask))
        return false;
  return true;
}

bool LinearLayout::isPermutation() const {
  for (const Bases &part : bases)
    for (uint32_t basis : part)
      if (basis && !isPowerOf2_32(basis))
        return false;
  return true;
}

HardwareIndex LinearLayout::invert(uint32_t flat) const {
  Echelon echelon;
  SmallVector<HardwareIndex> places;
  for (unsigned part = 0; part < 3; ++part) {
    for (auto [bit, basis] : llvm::enumerate(bases[part])) {
      if (!basis)
        continue;
      echelon.add(basis);
      HardwareIndex place;
      (part == 0 ? place.reg : part == 1 ? place.lane : place.simdgroup) = 1u << bit;
      places.push_back(place);
    }
  }
  uint64_t tag = 0;
  echelon.reduce(flat, tag);
  assert(!flat && "the element is outside of the tile");
  HardwareIndex result;
  for (auto [i, place] : llvm::enumerate(places))
    if (tag >> i & 1)
      result = result ^ place;
  return result;
}

//===----------------------------------------------------------------------===//
// Algebra
//===----------------------------------------------------------------------===//

LinearLayout LinearLayout::expandDims(unsigned axis) const {
  LinearLayout result = *this;
  result.shape.insert(result.shape.begin() + axis, 1);
  return result;
}

LinearLayout LinearLayout::squeezeDim(unsigned axis) const {
  assert(shape[axis] == 1);
  LinearLayout result = *this;
  result.shape.erase(result.shape.begin() + axis);
  return result;
}

/// Deletes the bits of a dimension from a flat index.
static uint32_t dropBits(uint32_t flat, unsigned shift, unsigned width) {
  uint32_t low = flat & ((1u << shift) - 1);
  return uint32_t(uint64_t(flat) >> (shift + width) << shift) | low;
}

LinearLayout LinearLayout::reduceBits(unsigned axis, uint32_t bits) const {
  unsigned shift = dimShift(axis), width = Log2_64(shape[axis]);
  LinearLayout result;
  result.shape = shape;
  result.shape[axis] >>= llvm::popcount(bits);
  unsigned reducedWidth = Log2_64(result.shape[axis]);
  for (unsigned part = 0; part < 3; ++part)
    for (uint32_t basis : bases[part]) {
      uint32_t coordinate = basis >> shift & (shape[axis] - 1);
      if (coordinate & bits) {
        if (part != 0)
          result.bases[part].push_back(0);
        continue;
      }
      uint32_t kept = 0;
      for (unsigned bit = 0, next = 0; bit < width; ++bit)
        if (!(bits >> bit & 1))
          kept |= (coordinate >> bit & 1) << next++;
      uint32_t inner = basis & ((1u << shift) - 1), outer = uint64_t(basis) >> (shift + width);
      result.bases[part].push_back(inner | kept << shift |
                                   uint32_t(uint64_t(outer) << (shift + reducedWidth)));
    }
  return result;
}

std::optional<LinearLayout> LinearLayout::sliceDim(unsigned axis) const {
  if (!isSeparable(axis))
    return std::nullopt;
  uint32_t mask = dimMask(axis);
  unsigned shift = dimShift(axis), width = Log2_64(shape[axis]);
  LinearLayout result;
  result.shape = shape;
  result.shape.erase(result.shape.begin() + axis);
  for (unsigned part = 0; part < 3; ++part)
    for (uint32_t basis : bases[part])
      if (part != 0 || !(basis & mask))
        result.bases[part].push_back((basis & mask) ? 0 : dropBits(basis, shift, width));
  return result;
}

LinearLayout LinearLayout::transpose(ArrayRef<int32_t> order) const {
  LinearLayout result;
  for (int32_t d : order)
    result.shape.push_back(shape[d]);
  for (unsigned part = 0; part < 3; ++part) {
    for (uint32_t basis : bases[part]) {
      Shape from = toCoordinates(basis), to;
      for (int32_t d : order)
        to.push_back(from[d]);
      result.bases[part].push_back(result.toFlat(to));
    }
  }
  return result;
}

LinearLayout LinearLayout::inverseTranspose(ArrayRef<int32_t> order) const {
  SmallVector<int32_t> inverse(order.size());
  for (auto [i, d] : llvm::enumerate(order))
    inverse[d] = i;
  return transpose(inverse);
}

LinearLayout LinearLayout::reshape(ArrayRef<int64_t> newShape) const {
  assert(product(newShape) == getNumElements());
  LinearLayout result = *this;
  result.shape.assign(newShape.begin(), newShape.end());
  return result;
}

std::optional<LinearLayout> LinearLayout::broadcastSource(ArrayRef<int64_t> sourceShape) const {
  assert(sourceShape.size() == shape.size());
  uint32_t mask = 0;
  for (unsigned d = 0; d < shape.size(); ++d)
    if (sourceShape[d] != shape[d])
      mask |= dimMask(d);
  LinearLayout result;
  result.shape.assign(sourceShape.begin(), sourceShape.end());
  for (unsigned part = 0; part < 3; ++part) {
    for (uint32_t basis : bases[part]) {
      if ((basis & mask) && (basis & ~mask))
        return std::nullopt;
      if (basis & mask) {
        if (part != 0)
          result.bases[part].push_back(0);
        continue;
      }
      Shape coordinates = toCoordinates(basis);
      result.bases[part].push_back(result.toFlat(coordinates));
    }
  }
  return result;
}

LinearLayout LinearLayout::broadcastTo(ArrayRef<int64_t> newShape) const {
  assert(newShape.size() == shape.size());
  LinearLayout result;
  result.shape.assign(newShape.begin(), newShape.end());
  for (unsigned part = 0; part < 3; ++part)
    for (uint32_t basis : bases[part])
      result.bases[part].push_back(result.toFlat(toCoordinates(basis)));
  SmallVector<uint32_t> fresh;
  for (unsigned d = shape.size(); d-- > 0;)
    if (shape[d] != newShape[d])
      for (int64_t e = 1; e < newShape[d]; e *= 2)
        fresh.push_back(uint32_t(e) << result.dimShift(d));
  size_t next = 0;
  for (unsigned part : {1u, 2u})
    for (uint32_t &basis : result.bases[part])
      if (!basis && next < fresh.size())
        basis = fresh[next++];
  while (next < fresh.size())
    result.bases[0].push_back(fresh[next++]);
  return result;
}

LinearLayout LinearLayout::join() const {
  LinearLayout result = *this;
  result.shape.push_back(2);
  for (Bases &part : result.bases)
    for (uint32_t &basis : part)
      basis <<= 1;
  result.bases[0].insert(result.bases[0].begin(), 1);
  return result;
}

std::optional<LinearLayout> LinearLayout::split(unsigned *registerBit) const {
  if (shape.empty() || shape.back() != 2)
    return std::nullopt;
  LinearLayout result;
  result.shape.assign(shape.begin(), shape.end() - 1);
  bool found = false;
  for (unsigned part = 0; part < 3; ++part) {
    for (auto [bit, basis] : llvm::enumerate(bases[part])) {
      if (part == 0 && basis == 1) {
        found = true;
        if (registerBit)
          *registerBit = bit;
        continue;
      }
      if (basis & 1)
        return std::nullopt;
      result.bases[part].push_back(basis >> 1);
    }
  }
  if (!found)
    return std::nullopt;
  return result;
}

LinearLayout LinearLayout::cat() const {
  assert(!shape.empty());
  LinearLayout result = *this;
  result.shape[0] *= 2;
  result.bases[0].push_back(getNumElements());
  return result;
}

std::optional<SmallVector<uint32_t>>
LinearLayout::registerMap(const LinearLayout &source, const LinearLayout &result,
                          function_ref<uint32_t(uint32_t)> resultToSource) {
  for (InDim dim : {InDim::Lane, InDim::Simdgroup}) {
    if (source.getBases(dim).size() != result.getBases(dim).size())
      return std::nullopt;
    for (auto [from, to] : llvm::zip(source.getBases(dim), result.getBases(dim)))
      if (resultToSource(to) != from)
        return std::nullopt;
  }
  SmallVector<uint32_t> map;
  for (uint32_t basis : result.getRegisterBases()) {
    HardwareIndex place = source.invert(resultToSource(basis));
    if (place.lane || place.simdgroup)
      return std::nullopt;
    map.push_back(place.reg);
  }
  return map;
}

hash_code hash_value(const LinearLayout &layout) {
  return hash_combine(hash_combine_range(layout.shape), hash_combine_range(layout.bases[0]),
                      hash_combine_range(layout.bases[1]), hash_combine_range(layout.bases[2]));
}

void LinearLayout::print(raw_ostream &os) const {
  static constexpr const char *names[] = {"register", "lane", "simdgroup"};
  os << "{";
  for (unsigned part = 0; part < 3; ++part) {
    os << (part ? ", " : "") << names[part] << " = [";
    llvm::interleaveComma(bases[part], os, [&](uint32_t basis) {
      os << "[";
      llvm::interleaveComma(toCoordinates(basis), os);
      os << "]";
    });
    os << "]";
  }
  os << "}";
}

std::string LinearLayout::str() const {
  std::string text;
  raw_string_ostream os(text);
  print(os);
  return text;
}

//===----------------------------------------------------------------------===//
// LayoutConversion
//===----------------------------------------------------------------------===//

LayoutConversion::LayoutConversion(const LinearLayout &source, const LinearLayout &result) {
  assert(source.getShape() == result.getShape() &&
         source.getNumSimdgroups() == result.getNumSimdgroups());
  for (uint32_t basis : result.getRegisterBases())
    reg.push_back(source.invert(basis));
  // A thread first looks at its own bit: it is the right one if the source has the same element
  // there, or a copy.
  for (InDim dim : {InDim::Lane, InDim::Simdgroup}) {
    auto &out = dim == InDim::Lane ? lane : simdgroup;
    for (unsigned bit = 0; bit < result.getBases(dim).size(); ++bit) {
      uint32_t from = source.getBases(dim)[bit], to = result.getBases(dim)[bit];
      HardwareIndex own;
      (dim == InDim::Lane ? own.lane : own.simdgroup) = 1u << bit;
      if (from == to)
        out.push_back(own);
      else if (from == 0)
        out.push_back(source.invert(to) ^ own);
      else
        out.push_back(source.invert(to));
    }
  }
  bool registers = true, lanes = true;
  for (const HardwareIndex &place : reg) {
    registers &= !place.lane && !place.simdgroup;
    lanes &= !place.simdgroup;
  }
  for (auto [bit, place] : llvm::enumerate(lane)) {
    registers &= place == HardwareIndex{0, 1u << bit, 0};
    lanes &= !place.simdgroup;
  }
  for (auto [bit, place] : llvm::enumerate(simdgroup)) {
    registers &= place == HardwareIndex{0, 0, 1u << bit};
    lanes &= place.simdgroup == 1u << bit;
  }
  if (source == result)
    kind = Kind::Identity;
  else if (registers)
    kind = Kind::Registers;
  else if (lanes)
    kind = Kind::Simdgroup;
  else
    kind = Kind::Threadgroup;
}

bool LayoutConversion::isShuffle() const {
  if (kind != Kind::Simdgroup)
    return false;
  // Where the lanes depend on the result's register, several lanes' worth of registers would have
  // to travel.
  for (const HardwareIndex &place : reg)
    if (place.lane || place.simdgroup)
      return false;
  // Every bit of the position that chooses among registers doubles what is shuffled.
  unsigned choices = 0;
  bool isIdentity = true;
  for (auto [bit, place] : llvm::enumerate(lane)) {
    isIdentity &= place.lane == 1u << bit;
    choices += place.reg != 0;
  }
  for (const HardwareIndex &place : simdgroup) {
    isIdentity &= place.lane == 0;
    choices += place.reg != 0;
  }
  return choices <= 3 && (isIdentity || choices <= 1);
}

HardwareIndex LayoutConversion::apply(HardwareIndex index) const {
  HardwareIndex place;
  auto add = [&](ArrayRef<HardwareIndex> columns, uint32_t bits) {
    for (auto [bit, column] : llvm::enumerate(columns))
      if (bits >> bit & 1)
        place = place ^ column;
  };
  add(reg, index.reg);
  add(lane, index.lane);
  add(simdgroup, index.simdgroup);
  return place;
}

std::optional<LayoutConversion> getGatherFromLanes(const LinearLayout &source,
                                                   const LinearLayout &result, unsigned axis) {
  auto from = source.sliceDim(axis), to = result.sliceDim(axis);
  if (!from || !to || !source.isPermutationAlong(axis) || source.bitsAlong(InDim::Register, axis) ||
      source.bitsAlong(InDim::Simdgroup, axis))
    return std::nullopt;
  LayoutConversion others(*from, *to);
  auto choosesRegister = [](const HardwareIndex &place) { return place.reg != 0; };
  if (others.kind == LayoutConversion::Kind::Threadgroup ||
      llvm::any_of(others.lane, choosesRegister) || llvm::any_of(others.simdgroup, choosesRegister))
    return std::nullopt;
  return others;
}

} // namespace triton_metal
