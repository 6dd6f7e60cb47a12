#include "dialect/msl/MSL.h"
#include "dialect/msl/ScalarTypes.h"
#include "dialect/tt/TT.h"
#include "dialect/ttm/LayoutUtils.h"
#include "transforms/Dots.h"
#include "transforms/Erase.h"
#include "transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_TTMEXPANDDOT
#include "transforms/Passes.h.inc"

namespace {

using namespace ttm;

class DotExpansion {
public:
  DotExpansion(tt::DotOp dot, const Budget &budget)
      : dot(dot), budget(budget), builder(dot), loc(dot.getLoc()), rank(dot.getType().getRank()),
        terms(dot.getA().getType().getShape().back()) {}

  LogicalResult run();

private:
  /// An operand in threadgroup memory, with the dimensions [k][batch][rows of a, or columns of b].
  struct Operand {
    Value value;
    /// The dimension of the result that the operand does not have.
    unsigned missing;
    Value tile = {};
  };
  Operand makeOperand(Value value, unsigned kDim, unsigned missing);
  int64_t getBytes(const Operand &operand, int64_t k) { return getTileType(operand, k).getBytes(); }
  TileType getTileType(const Operand &operand, int64_t k);
  /// Stores the part of K that begins at `offset`.
  void stage(Operand &operand, int64_t k, int64_t offset);
  /// Reads the operand's elements for one k, broadcast to the result's shape, in the type of the
  /// sum.
  Value readTerm(Operand &operand, Value k);
  /// Converts the tile to another element type of the same kind.
  Value convert(Value tile, Type element);

  tt::DotOp dot;
  const Budget &budget;
  OpBuilder builder;
  Location loc;
  unsigned rank;
  int64_t terms;
  RankedTensorType sumType;
};

DotExpansion::Operand DotExpansion::makeOperand(Value value, unsigned kDim, unsigned missing) {
  // The operand can be stored in any layout, so a conversion before the dot is not needed.
  if (auto conversion = value.getDefiningOp<ConvertLayoutOp>())
    value = conversion.getSrc();
  SmallVector<int32_t> order{int32_t(kDim)};
  for (unsigned dim = 0; dim < rank; ++dim)
    if (dim != kDim)
      order.push_back(dim);
  return {transpose(builder, value.getLoc(), value, order), missing};
}

TileType DotExpansion::getTileType(const Operand &operand, int64_t k) {
  auto type = cast<RankedTensorType>(operand.value.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape.front() = k;
  return getOperandTile(shape, type.getElementType());
}

void DotExpansion::stage(Operand &operand, int64_t k, int64_t offset) {
  Location where = operand.value.getLoc();
  if (!operand.tile)
    operand.tile = AllocTileOp::create(builder, where, getTileType(operand, k));
  DenseI64ArrayAttr offsets;
  if (k < terms) {
    SmallVector<int64_t> begin(rank, 0);
    begin.front() = offset;
    offsets = builder.getDenseI64ArrayAttr(begin);
  }
  StoreTileOp::create(builder, where, operand.value, operand.tile, Value(), offsets);
}

Value DotExpansion::convert(Value tile, Type element) {
  auto type = cast<RankedTensorType>(tile.getType());
  auto wanted = type.clone(element);
  if (type == wanted)
    return tile;
  bool isWider = element.getIntOrFloatBitWidth() > type.getElementTypeBitWidth();
  if (isa<FloatType>(element))
    return isWider ? arith::ExtFOp::create(builder, loc, wanted, tile).getResult()
                   : arith::TruncFOp::create(builder, loc, wanted, tile).getResult();
  return isWider ? arith::ExtSIOp::create(builder, loc, wanted, tile).getResult()
                 : arith::TruncIOp::create(builder, loc, wanted, tile).getResult();
}

Value DotExpansion::readTerm(Operand &operand, Value k) {
  LinearLayout layout = *getLayout(sumType);
  LinearLayout row = *layout.sliceDim(operand.missing), column = row.expandDims(operand.missing);
  Type element = cast<RankedTensorType>(operand.value.getType()).getElementType();
  Location where = operand.value.getLoc();
  Value read = LoadTileOp::create(builder, where, getTensorType(row, element), operand.tile,
                                  /*slot=*/Value(), /*row=*/k);
  Type sum = sumType.getElementType();
  Value term = tt::ExpandDimsOp::create(builder, where, getTensorType(column, sum),
                                        convert(read, sum), operand.missing);
  return tt::BroadcastOp::create(builder, where, sumType, term);
}

LogicalResult DotExpansion::run() {
  Type result = dot.getType().getElementType();
  for (Value operand : {dot.getA(), dot.getB()})
    if (Type element = cast<RankedTensorType>(operand.getType()).getElementType();
        !msl::ScalarType::get(element))
      return dot.emitOpError("multiplies ")
             << element
             << ", which Metal does not have: use float16, bfloat16, float32, float64 or int8";
  // Sums of floats are float32, whatever the type of the accumulator, or float64 where anything is.
  bool isDouble = llvm::any_of(dot->getOperandTypes(),
                               [](Type type) { return getElementTypeOrSelf(type).isF64(); });
  Type sum = isDouble                 ? Type(builder.getF64Type())
             : isa<FloatType>(result) ? Type(builder.getF32Type())
                                      : result;
  sumType = cast<RankedTensorType>(dot.getType().clone(sum));
  Operand a = makeOperand(dot.getA(), rank - 1, rank - 1);
  Operand b = makeOperand(dot.getB(), rank - 2, rank - 2);
  int64_t k = terms;
  while (k > 1 && getBytes(a, k) + getBytes(b, k) > budget.getDotBytes())
    k /= 2;

  Value acc = convert(dot.getC(), sum);
  auto constant = [&](int64_t number) {
    return arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(number));
  };
  for (int64_t offset = 0; offset < terms; offset += k) {
    stage(a, k, offset);
    stage(b, k, offset);
    auto loop = scf::ForOp::create(builder, loc, constant(0), constant(k), constant(1), acc);
    loop.getInductionVar().setLoc(NameLoc::get(builder.getStringAttr("k"), loc));
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    Value left = readTerm(a, loop.getInductionVar()), right = readTerm(b, loop.getInductionVar());
    Value carried = loop.getRegionIterArg(0), next;
    if (isa<FloatType>(sum))
      next = math::FmaOp::create(builder, loc, left, right, carried);
    else
      next = arith::AddIOp::create(builder, loc, carried,
                                   arith::MulIOp::create(builder, loc, left, right));
    scf::YieldOp::create(builder, loc, next);
    acc = loop.getResult(0);
  }
  dot.getResult().replaceAllUsesWith(convert(acc, result));
  return eraseUnread(dot);
}

struct TTMExpandDotPass : impl::TTMExpandDotBase<TTMExpandDotPass> {
  void runOnOperation() override {
    Budget budget = Budget::of(getOperation());
    SmallVector<tt::DotOp> dots;
    getOperation().walk([&](tt::DotOp dot) {
      if (getDotForm(dot, budget) == DotForm::MultiplyAdds)
        dots.push_back(dot);
    });
    for (tt::DotOp dot : dots)
      if (failed(DotExpansion(dot, budget).run()))
        return signalPassFailure();
    if (dots.empty())
      markAllAnalysesPreserved();
  }
};

} // namespace
} // namespace triton_metal
