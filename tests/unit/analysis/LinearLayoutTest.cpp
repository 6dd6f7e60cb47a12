// Properties of layouts, on random ones.
#include "analysis/LinearLayout.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <numeric>
#include <random>

using namespace triton_metal;

namespace {

using Shape = LinearLayout::Shape;

/// The instruction of `simdgroup_matrix`, and larger ones.
constexpr msl::MatrixShape kInstruction = {8, 8, 8}, kLarger = {16, 16, 16}, kWider = {16, 32, 16};

class Generator {
public:
  explicit Generator(unsigned seed) : random(seed) {}

  unsigned below(unsigned n) { return std::uniform_int_distribution<unsigned>(0, n - 1)(random); }

  Shape shape(unsigned maxRank, unsigned maxBits) {
    Shape result;
    unsigned rank = 1 + below(maxRank), bits = 0;
    for (unsigned d = 0; d < rank; ++d) {
      unsigned dimBits = below(std::min(6u, maxBits - bits) + 1);
      bits += dimBits;
      result.push_back(int64_t(1) << dimBits);
    }
    return result;
  }

  /// Any layout of the shape: independent bases, dealt to registers, lanes and SIMD-groups in any
  /// order.
  LinearLayout layout(const Shape &shape, unsigned simdgroupBits, bool mixed) {
    unsigned bits = 0;
    for (int64_t extent : shape)
      bits += __builtin_ctzll(extent);
    std::vector<uint32_t> bases(bits);
    for (unsigned i = 0; i < bits; ++i)
      bases[i] = 1u << i;
    std::shuffle(bases.begin(), bases.end(), random);
    if (mixed)
      for (unsigned i = 0; i < bits; ++i)
        for (unsigned j = 0; j < i; ++j)
          if (below(3) == 0)
            bases[i] ^= bases[j];
    LinearLayout::Bases reg, lane(5, 0), simdgroup(simdgroupBits, 0);
    for (uint32_t basis : bases) {
      unsigned slot = below(5 + simdgroupBits + 4);
      if (slot < 5 && !lane[slot])
        lane[slot] = basis;
      else if (slot >= 5 && slot < 5 + simdgroupBits && !simdgroup[slot - 5])
        simdgroup[slot - 5] = basis;
      else
        reg.push_back(basis);
    }
    return LinearLayout(shape, reg, lane, simdgroup);
  }

  std::mt19937 random;
};

template <typename Visit> void forEachPlace(const LinearLayout &layout, Visit visit) {
  for (uint32_t s = 0; s < layout.getNumSimdgroups(); ++s)
    for (uint32_t l = 0; l < 32; ++l)
      for (uint32_t r = 0; r < layout.getNumRegisters(); ++r)
        visit(HardwareIndex{r, l, s});
}

constexpr unsigned kRounds = 200;

TEST(LinearLayout, InvertIsARightInverseWithZeroFreeBits) {
  Generator g(1);
  for (unsigned i = 0; i < kRounds; ++i) {
    LinearLayout layout = g.layout(g.shape(3, 11), g.below(4), i % 2);
    for (uint32_t flat = 0; flat < layout.getNumElements(); ++flat) {
      HardwareIndex home = layout.invert(flat);
      ASSERT_EQ(layout.apply(home), flat) << layout.str();
      ASSERT_EQ(home.lane & layout.freeMask(InDim::Lane), 0u);
      ASSERT_EQ(home.simdgroup & layout.freeMask(InDim::Simdgroup), 0u);
    }
    // Copies of an element differ in replicated bits alone.
    forEachPlace(layout, [&](HardwareIndex place) {
      HardwareIndex home = place;
      home.lane &= ~layout.freeMask(InDim::Lane);
      home.simdgroup &= ~layout.freeMask(InDim::Simdgroup);
      ASSERT_EQ(layout.invert(layout.apply(place)), home);
    });
  }
}

TEST(LinearLayout, EqualRegistersStayInTheirGroups) {
  Generator g(11);
  for (unsigned i = 0; i < kRounds; ++i) {
    LinearLayout layout = g.layout(g.shape(3, 11), g.below(4), i % 2);
    // Groups of a number that is no power of two are groups of the power that divides it.
    Shape groups, powers;
    for (unsigned dim = 0; dim < layout.getRank(); ++dim) {
      powers.push_back(int64_t(1) << g.below(5));
      groups.push_back(powers.back() * (i % 3 ? 1 : 3));
    }
    uint32_t equal = layout.equalRegisters(groups);
    ASSERT_LT(equal, layout.getNumRegisters());
    forEachPlace(layout, [&](HardwareIndex place) {
      Shape from = layout.toCoordinates(layout.apply(place));
      for (uint32_t bit = 1; bit < layout.getNumRegisters(); bit <<= 1) {
        HardwareIndex other = place;
        other.reg ^= bit;
        Shape to = layout.toCoordinates(layout.apply(other));
        bool stays = true;
        for (unsigned dim = 0; dim < layout.getRank(); ++dim)
          stays &= from[dim] / powers[dim] == to[dim] / powers[dim];
        ASSERT_EQ(stays, bool(equal & bit)) << layout.str();
      }
    });
  }
}

TEST(LinearLayout, CoordinatesRoundTrip) {
  Generator g(2);
  for (unsigned i = 0; i < kRounds; ++i) {
    LinearLayout layout = g.layout(g.shape(4, 10), 2, false);
    for (uint32_t flat = 0; flat < layout.getNumElements(); ++flat) {
      Shape coordinates = layout.toCoordinates(flat);
      ASSERT_EQ(layout.toFlat(coordinates), flat);
      int64_t rowMajor = 0;
      for (unsigned d = 0; d < layout.getRank(); ++d)
        rowMajor = rowMajor * layout.getShape()[d] + coordinates[d];
      ASSERT_EQ(rowMajor, int64_t(flat));
    }
  }
}

TEST(LinearLayout, TransposeMovesCoordinates) {
  Generator g(3);
  for (unsigned i = 0; i < kRounds; ++i) {
    LinearLayout layout = g.layout(g.shape(4, 10), g.below(3), i % 2);
    std::vector<int32_t> order(layout.getRank());
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), g.random);
    LinearLayout transposed = layout.transpose(order);
    forEachPlace(layout, [&](HardwareIndex place) {
      Shape from = layout.toCoordinates(layout.apply(place)),
            to = transposed.toCoordinates(transposed.apply(place));
      for (unsigned d = 0; d < order.size(); ++d)
        ASSERT_EQ(to[d], from[order[d]]);
    });
    EXPECT_EQ(transposed.inverseTranspose(order), layout);
  }
}

TEST(LinearLayout, ReshapeKeepsRowMajorOrder) {
  Generator g(4);
  for (unsigned i = 0; i < kRounds; ++i) {
    LinearLayout layout = g.layout(g.shape(3, 10), 2, i % 2);
    LinearLayout flat = layout.reshape({layout.getNumElements()});
    forEachPlace(layout,
                 [&](HardwareIndex place) { ASSERT_EQ(layout.apply(place), flat.apply(place)); });
    EXPECT_EQ(flat.reshape(layout.getShape()), layout);
  }
}

TEST(LinearLayout, ExpandAndSqueezeAreInverse) {
  Generator g(5);
  for (unsigned i = 0; i < kRounds; ++i) {
    LinearLayout layout = g.layout(g.shape(3, 9), 1, i % 2);
    unsigned axis = g.below(layout.getRank() + 1);
    LinearLayout expanded = layout.expandDims(axis);
    EXPECT_EQ(expanded.getShape()[axis], 1);
    EXPECT_EQ(expanded.squeezeDim(axis), layout);
  }
}

TEST(LinearLayout, SliceDropsTheReducedCoordinate) {
  Generator g(6);
  unsigned sliced = 0;
  for (unsigned i = 0; i < kRounds; ++i) {
    LinearLayout layout = g.layout(g.shape(3, 9), 2, i % 4 == 0);
    unsigned axis = g.below(layout.getRank());
    auto result = layout.sliceDim(axis);
    ASSERT_EQ(result.has_value(), layout.isSeparable(axis));
    if (!result)
      continue;
    ++sliced;
    uint32_t reducedRegisters = layout.bitsAlong(InDim::Register, axis);
    forEachPlace(layout, [&](HardwareIndex place) {
      if (place.reg & reducedRegisters)
        return;
      HardwareIndex kept = place;
      kept.reg = 0;
      for (unsigned bit = 0, next = 0; bit < layout.getRegisterBases().size(); ++bit)
        if (!(reducedRegisters >> bit & 1))
          kept.reg |= (place.reg >> bit & 1) << next++;
      Shape coordinates = layout.toCoordinates(layout.apply(place));
      coordinates.erase(coordinates.begin() + axis);
      ASSERT_EQ(result->toCoordinates(result->apply(kept)), coordinates);
    });
  }
  EXPECT_GT(sliced, kRounds / 2);
}

TEST(LinearLayout, BroadcastSourceUndoesBroadcast) {
  Generator g(7);
  for (unsigned i = 0; i < kRounds; ++i) {
    Shape target = g.shape(3, 10), source = target;
    for (int64_t &extent : source)
      if (g.below(2))
        extent = 1;
    LinearLayout layout = g.layout(source, g.below(4), false);
    LinearLayout wide = layout.broadcastTo(target);
    auto back = wide.broadcastSource(source);
    ASSERT_TRUE(back);
    // Registers keep their order, and threads that had an element of the source still have it.
    EXPECT_EQ(*back, layout);
    forEachPlace(wide, [&](HardwareIndex place) {
      Shape coordinates = wide.toCoordinates(wide.apply(place));
      for (unsigned d = 0; d < source.size(); ++d)
        if (source[d] == 1)
          coordinates[d] = 0;
      auto map = LinearLayout::registerMap(layout, wide, [&](uint32_t flat) {
        Shape c = wide.toCoordinates(flat);
        for (unsigned d = 0; d < source.size(); ++d)
          if (source[d] == 1)
            c[d] = 0;
        return layout.toFlat(c);
      });
      ASSERT_TRUE(map);
      HardwareIndex from = place;
      from.reg = 0;
      for (unsigned bit = 0; bit < map->size(); ++bit)
        if (place.reg >> bit & 1)
          from.reg ^= (*map)[bit];
      ASSERT_EQ(layout.toCoordinates(layout.apply(from)), coordinates);
    });
  }
}

TEST(LinearLayout, JoinSplitAndCat) {
  Generator g(8);
  for (unsigned i = 0; i < kRounds; ++i) {
    LinearLayout layout = g.layout(g.shape(2, 9), 2, i % 2);
    LinearLayout joined = layout.join();
    unsigned bit = 99;
    auto half = joined.split(&bit);
    ASSERT_TRUE(half);
    EXPECT_EQ(*half, layout);
    EXPECT_EQ(bit, 0u);
    LinearLayout twice = layout.cat();
    EXPECT_EQ(twice.getShape()[0], 2 * layout.getShape()[0]);
    forEachPlace(layout, [&](HardwareIndex place) {
      ASSERT_EQ(joined.apply(place.reg * 2 + 1, place.lane, place.simdgroup),
                layout.apply(place) * 2 + 1);
      ASSERT_EQ(twice.apply(place), layout.apply(place));
      HardwareIndex second = place;
      second.reg += layout.getNumRegisters();
      ASSERT_EQ(twice.apply(second), layout.apply(place) + layout.getNumElements());
    });
  }
  // In a lane, the pair cannot be split without moving it.
  LinearLayout inLane({32, 2}, {}, {1, 2, 4, 8, 16}, {32});
  EXPECT_FALSE(inLane.split());
}

TEST(LayoutConversion, ReadsTheRightElement) {
  Generator g(9);
  unsigned kinds[4] = {};
  for (unsigned i = 0; i < kRounds; ++i) {
    Shape shape = g.shape(3, 9);
    unsigned groups = g.below(4);
    LinearLayout source = g.layout(shape, groups, i % 3 == 0);
    LinearLayout result = i % 5 == 0 ? source : g.layout(shape, groups, i % 3 == 1);
    LayoutConversion conversion(source, result);
    ++kinds[unsigned(conversion.kind)];
    forEachPlace(result, [&](HardwareIndex place) {
      HardwareIndex from = conversion.apply(place);
      ASSERT_EQ(source.apply(from), result.apply(place)) << source.str() << " -> " << result.str();
      ASSERT_LT(from.reg, source.getNumRegisters());
      if (conversion.kind <= LayoutConversion::Kind::Registers) {
        ASSERT_EQ(from.lane, place.lane);
      }
      if (conversion.kind <= LayoutConversion::Kind::Simdgroup) {
        ASSERT_EQ(from.simdgroup, place.simdgroup);
      }
    });
    if (source == result) {
      EXPECT_EQ(conversion.kind, LayoutConversion::Kind::Identity);
    }
  }
  EXPECT_GT(kinds[unsigned(LayoutConversion::Kind::Threadgroup)], 0u);
}

TEST(LayoutConversion, FindsTheCheapestKind) {
  // Registers swapped.
  LinearLayout a({128}, {1, 2}, {4, 8, 16, 32, 64}, {}), b({128}, {2, 1}, {4, 8, 16, 32, 64}, {});
  EXPECT_EQ(LayoutConversion(a, b).kind, LayoutConversion::Kind::Registers);
  // Lanes swapped, in each of two SIMD-groups.
  LinearLayout c({64}, {}, {1, 2, 4, 8, 16}, {32}), d({64}, {}, {2, 1, 4, 8, 16}, {32});
  EXPECT_EQ(LayoutConversion(c, d).kind, LayoutConversion::Kind::Simdgroup);
  // Every SIMD-group has all of it already: each takes its part.
  LinearLayout e({64}, {32}, {1, 2, 4, 8, 16}, {0}), f({64}, {}, {1, 2, 4, 8, 16}, {32});
  EXPECT_EQ(LayoutConversion(f, e).kind, LayoutConversion::Kind::Threadgroup);
  EXPECT_NE(LayoutConversion(e, f).kind, LayoutConversion::Kind::Threadgroup);
}

TEST(LinearLayout, BlockedGivesEachThreadItsNeighbours) {
  for (unsigned groups : {1u, 2u, 4u, 8u, 32u}) {
    for (int64_t extent : {1, 2, 16, 32, 64, 1024, 4096, 131072}) {
      for (int64_t perThread : {1, 2, 4, 8}) {
        LinearLayout layout = LinearLayout::blocked({extent}, {perThread}, {0}, groups);
        int64_t neighbours = std::min(perThread, extent);
        for (uint32_t r = 0; r < neighbours; ++r)
          ASSERT_EQ(layout.apply(r, 0, 0), r);
        if (extent >= 2 * neighbours) {
          ASSERT_EQ(layout.apply(0, 1, 0), uint32_t(neighbours));
        }
        // No register is spent on a copy, and threads copy only when there are more of them than
        // elements.
        int64_t threads = 32 * groups;
        ASSERT_EQ(layout.getNumRegisters(), std::max<int64_t>(neighbours, extent / threads));
        ASSERT_EQ(layout.isInjective(), extent >= neighbours * threads);
      }
    }
  }
}

TEST(LinearLayout, SimdgroupOrderIsItsOwn) {
  // Four SIMD-groups on rows although columns are fastest.
  LinearLayout layout = LinearLayout::blocked({16, 128}, {1, 1}, {1, 0}, 4, {0, 1});
  EXPECT_EQ(layout.bitsAlong(InDim::Simdgroup, 0), 3u);
  EXPECT_EQ(layout.bitsAlong(InDim::Lane, 1), 31u);
}

TEST(LinearLayout, FragmentsAreAsMetalHasThem) {
  LinearLayout layout = LinearLayout::simdgroupMatrix({8, 8}, kInstruction, {1, 1}, 1);
  for (uint32_t l = 0; l < 32; ++l) {
    for (uint32_t r = 0; r < 2; ++r) {
      Shape at = layout.toCoordinates(layout.apply(r, l, 0));
      EXPECT_EQ(at[0], int64_t((l / 4 & 4) + (l / 2) % 4));
      EXPECT_EQ(at[1], int64_t((l / 4 & 2) * 2 + (l % 2) * 2 + r));
    }
  }
}

TEST(LinearLayout, LargerFragmentsAreAsMetalHasThem) {
  // Metal 4's tensor operations hold 16x16 elements so: four neighbours in a row, and four more
  // eight rows below.
  LinearLayout layout = LinearLayout::simdgroupMatrix({16, 16}, kLarger, {1, 1}, 1);
  ASSERT_EQ(layout.getNumRegisters(), 8u);
  for (uint32_t l = 0; l < 32; ++l) {
    for (uint32_t r = 0; r < 8; ++r) {
      Shape at = layout.toCoordinates(layout.apply(r, l, 0));
      EXPECT_EQ(at[0], int64_t((l / 4 & 4) + (l / 2) % 4 + r / 4 * 8));
      EXPECT_EQ(at[1], int64_t(((l / 4 & 2) + l % 2) * 4 + r % 4));
    }
  }
}

TEST(LinearLayout, FragmentsTileTheMatrix) {
  for (msl::MatrixShape instruction : {kInstruction, kLarger, kWider}) {
    for (auto [rows, columns] :
         {std::pair(1u, 4u), std::pair(2u, 2u), std::pair(4u, 1u), std::pair(2u, 1u)}) {
      LinearLayout layout =
          LinearLayout::simdgroupMatrix({64, 128}, instruction, {rows, columns}, 4);
      unsigned m = 64 / rows / instruction.m, n = 128 / columns / instruction.n;
      unsigned each = instruction.getAccumulator().getNumRegisters();
      ASSERT_EQ(each, instruction.m * instruction.n / 32);
      ASSERT_EQ(layout.getNumRegisters(), each * m * n);
      for (uint32_t s = 0; s < rows * columns; ++s) {
        for (uint32_t f = 0; f < m * n; ++f) {
          Shape at = layout.toCoordinates(layout.apply(f * each, 0, s));
          ASSERT_EQ(at[0], int64_t((s / columns) * 64 / rows + f / n * instruction.m));
          ASSERT_EQ(at[1], int64_t((s % columns) * 128 / columns + f % n * instruction.n));
        }
      }
      EXPECT_EQ(layout.isInjective(), rows * columns == 4);
    }
  }
}

TEST(LinearLayout, OperandsHaveAllOfK) {
  for (msl::MatrixShape instruction : {kInstruction, kLarger, kWider}) {
    LinearLayout a = LinearLayout::simdgroupOperand({64, 32}, instruction, 0, {2, 2}, 4);
    EXPECT_EQ(a.bitsAlong(InDim::Simdgroup, 1), 0u);
    EXPECT_EQ(a.freeMask(InDim::Simdgroup), 1u); // the column bit
    LinearLayout b = LinearLayout::simdgroupOperand({32, 64}, instruction, 1, {2, 2}, 4);
    EXPECT_EQ(b.bitsAlong(InDim::Simdgroup, 0), 0u);
    EXPECT_EQ(b.freeMask(InDim::Simdgroup), 2u); // the row bit
  }
}

TEST(LinearLayout, OperandsAreInFragmentsOfTheirOwn) {
  // 32 rows of 16 columns for each of two SIMD-groups: two fragments of 16x16 on end.
  LinearLayout a = LinearLayout::simdgroupOperand({64, 16}, kWider, 0, {2, 1}, 2);
  EXPECT_EQ(a.toCoordinates(a.apply(8, 0, 0)), Shape({16, 0}));
  // 32 columns: two fragments of 16x32 on end, of 16 registers.
  LinearLayout b = LinearLayout::simdgroupOperand({32, 64}, kWider, 1, {1, 2}, 2);
  EXPECT_EQ(b.toCoordinates(b.apply(16, 0, 0)), Shape({16, 0}));
}

TEST(LinearLayout, ResultsAreOperandsWhereTheirFragmentsAgree) {
  // With all SIMD-groups along the rows, a result is an operand A as it is. So is one of 16x32: it
  // lies as two fragments of 16x16, which A's are.
  for (msl::MatrixShape instruction : {kInstruction, kLarger, kWider})
    EXPECT_EQ(LinearLayout::simdgroupMatrix({64, 32}, instruction, {4, 1}, 4),
              LinearLayout::simdgroupOperand({64, 32}, instruction, 0, {4, 1}, 4));
  for (msl::MatrixShape instruction : {kInstruction, kLarger})
    EXPECT_EQ(LinearLayout::simdgroupMatrix({32, 64}, instruction, {1, 4}, 4),
              LinearLayout::simdgroupOperand({32, 64}, instruction, 1, {1, 4}, 4));
}

TEST(LinearLayout, CheckRefusesWhatIsNoLayout) {
  using Bases = LinearLayout::Bases;
  Bases lanes = {1, 2, 4, 8, 16};
  EXPECT_FALSE(LinearLayout::check({32}, {}, lanes, {}));
  EXPECT_TRUE(LinearLayout::check({48}, {}, lanes, {}));               // extent
  EXPECT_TRUE(LinearLayout::check({64}, {}, lanes, {}));               // not reached
  EXPECT_TRUE(LinearLayout::check({32}, {3}, lanes, {}));              // dependent
  EXPECT_TRUE(LinearLayout::check({32}, {0}, lanes, {}));              // zero register
  EXPECT_TRUE(LinearLayout::check({32}, {}, {1, 2, 4, 8}, {16}));      // lanes
  EXPECT_TRUE(LinearLayout::check({16}, {}, lanes, {}));               // outside
  EXPECT_FALSE(LinearLayout::check({8}, {}, {1, 2, 4, 0, 0}, {0, 0})); // copies
}

} // namespace
