// Random integer tiles are computed, and everything that the axis analysis claims of them is
// checked on the numbers.
#include "analysis/AxisInfo.h"

#include "dialect/tt/TT.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"

#include "gtest/gtest.h"

#include <random>

using namespace mlir;
using namespace triton_metal;

namespace {

struct Tile {
  Value value;
  SmallVector<int64_t> shape;
  std::vector<int64_t> numbers;
};

class Program {
public:
  Program(MLIRContext &context, unsigned seed) : builder(&context), random(seed) {
    module = ModuleOp::create(builder.getUnknownLoc());
    builder.setInsertionPointToEnd(module->getBody());
    SmallVector<Type> types(kScalars, builder.getI32Type());
    function = tt::FuncOp::create(builder, loc(), "f", builder.getFunctionType(types, {}));
    Block *body = &function.getBody().emplaceBlock();
    for (unsigned i = 0; i < kScalars; ++i) {
      Value argument = body->addArgument(builder.getI32Type(), loc());
      int64_t divisor = int64_t(1) << below(6);
      scalars.push_back({argument, int64_t(below(200) - 100) * divisor});
      function.setArgAttr(i, "tt.divisibility", builder.getI32IntegerAttr(divisor));
    }
    builder.setInsertionPointToEnd(body);
    for (int32_t axis = 0; axis < 3; ++axis) {
      Value program = tt::GetProgramIdOp::create(builder, loc(), builder.getI32Type(),
                                                 static_cast<tt::ProgramDim>(axis));
      static constexpr int largest[] = {8, 4096, 1 << 20, INT32_MAX};
      programs[axis] = below(largest[below(4)]);
      scalars.push_back({program, programs[axis]});
    }
    for (unsigned i = 0; i < 2; ++i)
      range();
    for (unsigned i = 0; i < 20; ++i)
      step();
    tt::ReturnOp::create(builder, loc());
  }

  void check() {
    AxisInfoAnalysis axes(module->getOperation());
    for (const Tile &tile : tiles) {
      AxisInfo info = axes.get(tile.value);
      if (llvm::all_of(info.needs, [&](const GridSum &sum) { return valueOf(sum) <= INT32_MAX; }))
        for (unsigned d = 0; d < tile.shape.size(); ++d)
          checkDimension(tile, info, d);
      if (info.bound && llvm::all_of(info.bound->needs,
                                     [&](const GridSum &sum) { return valueOf(sum) <= INT32_MAX; }))
        for (int64_t number : tile.numbers) {
          ASSERT_GE(number, 0) << text(tile);
          ASSERT_LE(number, valueOf(info.bound->sum)) << text(tile);
        }
    }
  }

private:
  static constexpr unsigned kScalars = 3;

  /// Of this program: no program of the launch has larger indices.
  __int128 valueOf(const GridSum &sum) const {
    __int128 value = sum.most;
    for (unsigned axis = 0; axis < 3; ++axis)
      value += static_cast<__int128>(sum.perProgram[axis]) * programs[axis];
    return value;
  }

  Location loc() { return builder.getUnknownLoc(); }
  int below(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random); }
  std::string text(const Tile &tile) {
    std::string result;
    llvm::raw_string_ostream os(result);
    os << "in\n" << *module << "\nof " << tile.value;
    return result;
  }

  void checkDimension(const Tile &tile, const AxisInfo &info, unsigned d) {
    int64_t stride = 1, extent = tile.shape[d];
    for (unsigned e = d + 1; e < tile.shape.size(); ++e)
      stride *= tile.shape[e];
    for (int64_t flat = 0; flat < int64_t(tile.numbers.size()); ++flat) {
      int64_t at = flat / stride % extent, number = tile.numbers[flat];
      // An access takes no more neighbours than its first one is a multiple of.
      int64_t run = at % std::min(info.contiguity[d], info.divisibility[d]),
              same = at % info.constancy[d];
      ASSERT_EQ(number, tile.numbers[flat - run * stride] + run)
          << "contiguity " << d << " " << text(tile);
      ASSERT_EQ(number, tile.numbers[flat - same * stride])
          << "constancy " << d << " " << text(tile);
      if (at % info.contiguity[d] == 0) {
        ASSERT_EQ(number % info.divisibility[d], 0) << "divisibility " << d << " " << text(tile);
      }
    }
  }

  void add(Value value, ArrayRef<int64_t> shape, std::vector<int64_t> numbers) {
    for (int64_t &number : numbers)
      number = static_cast<int32_t>(number);
    tiles.push_back({value, SmallVector<int64_t>(shape), std::move(numbers)});
  }

  Type type(ArrayRef<int64_t> shape) { return RankedTensorType::get(shape, builder.getI32Type()); }

  void range() {
    int64_t extent = int64_t(1) << (2 + below(4)), start = below(4) ? 0 : (below(8) - 4) * 4;
    std::vector<int64_t> numbers;
    for (int64_t i = 0; i < extent; ++i)
      numbers.push_back(start + i);
    Value value = tt::MakeRangeOp::create(builder, loc(), type({extent}), start, start + extent);
    add(value, {extent}, numbers);
  }

  /// A tile of one number: an argument, or a constant.
  Tile uniform(ArrayRef<int64_t> shape) {
    int64_t elements = 1;
    for (int64_t extent : shape)
      elements *= extent;
    if (below(2)) {
      auto [argument, number] = scalars[below(scalars.size())];
      Value value = tt::SplatOp::create(builder, loc(), type(shape), argument);
      return {value, SmallVector<int64_t>(shape), std::vector<int64_t>(elements, number)};
    }
    static constexpr int32_t choices[] = {0,
                                          1,
                                          2,
                                          3,
                                          4,
                                          7,
                                          8,
                                          12,
                                          15,
                                          16,
                                          31,
                                          -1,
                                          -8,
                                          1000,
                                          4096,
                                          1 << 20,
                                          1 << 30,
                                          INT32_MAX,
                                          INT32_MAX - 15,
                                          INT32_MIN,
                                          INT32_MIN + 16};
    int32_t number = choices[below(std::size(choices))];
    auto attr = DenseElementsAttr::get(cast<ShapedType>(type(shape)), number);
    Value value = arith::ConstantOp::create(builder, loc(), attr);
    return {value, SmallVector<int64_t>(shape), std::vector<int64_t>(elements, number)};
  }

  Tile partner(const Tile &tile) {
    SmallVector<Tile> same;
    for (const Tile &other : tiles)
      if (other.shape == tile.shape)
        same.push_back(other);
    return below(2) ? uniform(tile.shape) : same[below(same.size())];
  }

  void step() {
    Tile a = tiles[below(tiles.size())];
    switch (below(12)) {
    case 0: {
      if (a.shape.size() > 1)
        return;
      SmallVector<int64_t> shape(a.shape);
      unsigned axis = below(2);
      shape.insert(shape.begin() + axis, 1);
      return add(tt::ExpandDimsOp::create(builder, loc(), type(shape), a.value, axis), shape,
                 a.numbers);
    }
    case 1: {
      if (a.shape.size() != 2 || (a.shape[0] != 1 && a.shape[1] != 1))
        return;
      SmallVector<int64_t> shape(a.shape);
      unsigned axis = a.shape[0] == 1 ? 0 : 1;
      shape[axis] = 8;
      std::vector<int64_t> numbers;
      for (int64_t i = 0; i < shape[0]; ++i)
        for (int64_t j = 0; j < shape[1]; ++j)
          numbers.push_back(a.numbers[axis == 0 ? j : i]);
      return add(tt::BroadcastOp::create(builder, loc(), type(shape), a.value), shape, numbers);
    }
    case 2: {
      if (a.shape.size() != 2)
        return;
      SmallVector<int64_t> shape = {a.shape[1], a.shape[0]};
      std::vector<int64_t> numbers;
      for (int64_t i = 0; i < shape[0]; ++i)
        for (int64_t j = 0; j < shape[1]; ++j)
          numbers.push_back(a.numbers[j * shape[0] + i]);
      return add(tt::TransOp::create(builder, loc(), type(shape), a.value, ArrayRef<int32_t>{1, 0}),
                 shape, numbers);
    }
    case 3: {
      int64_t elements = a.numbers.size(), inner = int64_t(1) << below(llvm::Log2_64(elements) + 1);
      SmallVector<int64_t> shape = {elements / inner, inner};
      return add(tt::ReshapeOp::create(builder, loc(), type(shape), a.value), shape, a.numbers);
    }
    default:
      return binary(a);
    }
  }

  void binary(const Tile &a) {
    Tile b = partner(a);
    unsigned kind = below(17);
    std::vector<int64_t> numbers;
    for (auto [x, y] : llvm::zip(a.numbers, b.numbers)) {
      switch (kind) {
      case 0:
      case 1:
      case 2:
        numbers.push_back(x + y);
        break;
      case 3:
        numbers.push_back(x - y);
        break;
      case 4:
        numbers.push_back(x * y);
        break;
      case 5:
        if (y == 0 || (x == INT32_MIN && y == -1))
          return;
        numbers.push_back(x / y);
        break;
      case 6:
        if (y == 0 || (x == INT32_MIN && y == -1))
          return;
        numbers.push_back(x % y);
        break;
      case 7:
        numbers.push_back(x & y);
        break;
      case 8:
        if (y < 0 || y > 8)
          return;
        numbers.push_back(x * (int64_t(1) << y));
        break;
      case 9:
        if (y < 0 || y > 8)
          return;
        numbers.push_back(x >> y);
        break;
      case 10:
        numbers.push_back(std::min(x, y));
        break;
      case 11:
        if (y == 0)
          return;
        numbers.push_back(static_cast<uint32_t>(x) / static_cast<uint32_t>(y));
        break;
      case 12:
        if (y == 0)
          return;
        numbers.push_back(static_cast<uint32_t>(x) % static_cast<uint32_t>(y));
        break;
      case 13:
        if (y < 0 || y > 8)
          return;
        numbers.push_back(static_cast<uint32_t>(x) >> y);
        break;
      case 14:
        numbers.push_back(std::min(static_cast<uint32_t>(x), static_cast<uint32_t>(y)));
        break;
      case 15:
        numbers.push_back(std::max(static_cast<uint32_t>(x), static_cast<uint32_t>(y)));
        break;
      default:
        numbers.push_back(std::max(x, y));
        break;
      }
    }
    Value x = a.value, y = b.value, result;
    switch (kind) {
    case 0:
    case 1:
    case 2:
      result = arith::AddIOp::create(builder, loc(), x, y);
      break;
    case 3:
      result = arith::SubIOp::create(builder, loc(), x, y);
      break;
    case 4:
      result = arith::MulIOp::create(builder, loc(), x, y);
      break;
    case 5:
      result = arith::DivSIOp::create(builder, loc(), x, y);
      break;
    case 6:
      result = arith::RemSIOp::create(builder, loc(), x, y);
      break;
    case 7:
      result = arith::AndIOp::create(builder, loc(), x, y);
      break;
    case 8:
      result = arith::ShLIOp::create(builder, loc(), x, y);
      break;
    case 9:
      result = arith::ShRSIOp::create(builder, loc(), x, y);
      break;
    case 10:
      result = arith::MinSIOp::create(builder, loc(), x, y);
      break;
    case 11:
      result = arith::DivUIOp::create(builder, loc(), x, y);
      break;
    case 12:
      result = arith::RemUIOp::create(builder, loc(), x, y);
      break;
    case 13:
      result = arith::ShRUIOp::create(builder, loc(), x, y);
      break;
    case 14:
      result = arith::MinUIOp::create(builder, loc(), x, y);
      break;
    case 15:
      result = arith::MaxUIOp::create(builder, loc(), x, y);
      break;
    default:
      result = arith::MaxSIOp::create(builder, loc(), x, y);
      break;
    }
    add(result, a.shape, numbers);
    if (below(3) == 0)
      compareAndSelect(a, b);
  }

  void compareAndSelect(const Tile &a, const Tile &b) {
    using P = arith::CmpIPredicate;
    static constexpr P predicates[] = {P::slt, P::sle, P::sgt, P::sge, P::eq, P::ne};
    P predicate = predicates[below(6)];
    Value condition = arith::CmpIOp::create(builder, loc(), predicate, a.value, b.value);
    std::vector<int64_t> truth, chosen;
    for (auto [x, y] : llvm::zip(a.numbers, b.numbers)) {
      bool holds = predicate == P::slt   ? x < y
                   : predicate == P::sle ? x <= y
                   : predicate == P::sgt ? x > y
                   : predicate == P::sge ? x >= y
                   : predicate == P::eq  ? x == y
                                         : x != y;
      truth.push_back(holds);
      chosen.push_back(holds ? x : y);
    }
    add(arith::ExtUIOp::create(builder, loc(), type(a.shape), condition), a.shape, truth);
    add(arith::SelectOp::create(builder, loc(), condition, a.value, b.value), a.shape, chosen);
  }

  OpBuilder builder;
  std::mt19937 random;
  OwningOpRef<ModuleOp> module;
  tt::FuncOp function;
  SmallVector<std::pair<Value, int64_t>> scalars;
  std::vector<Tile> tiles;
  std::array<int64_t, 3> programs;
};

TEST(AxisInfoProperty, ClaimsHoldOfTheNumbers) {
  MLIRContext context;
  context.loadDialect<arith::ArithDialect, cf::ControlFlowDialect, math::MathDialect,
                      scf::SCFDialect, ub::UBDialect, tt::TTDialect>();
  for (unsigned seed = 0; seed < 3000 && !::testing::Test::HasFatalFailure(); ++seed)
    Program(context, seed).check();
}

} // namespace
