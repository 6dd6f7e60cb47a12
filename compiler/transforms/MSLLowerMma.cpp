// Products of simdgroup matrices, fragment by fragment: see Passes.td.

#include "transforms/MSLArrays.h"
#include "transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace triton_metal {
#define GEN_PASS_DEF_MSLLOWERMMA
#include "transforms/Passes.h.inc"
} // namespace triton_metal

using namespace mlir;
using namespace triton_metal::msl;

namespace {

/// An operand in memory. `alongK`: the tile's rows, as stored, go along k.
struct Tile {
  Value pointer;
  int64_t count, stride;
  bool transposed, alongK;
  StringRef name;
};

/// Writes the loops of one product. An index that is null is 0.
class ProductLowering {
public:
  explicit ProductLowering(MatrixProductOp op)
      : op(op), loc(op.getLoc()), nowhere(UnknownLoc::get(op.getContext())), builder(op) {}

  void run() {
    int64_t m = op.getM(), n = op.getN(), k = op.getK();
    bool aInMemory = isa<PtrType>(op.getA().getType());
    bool bInMemory = isa<PtrType>(op.getB().getType());
    createLoop(k, [&](Value kIndex) {
      Value a = op.getA(), b = op.getB();
      if (aInMemory)
        a = load({a, m, op.getAStride(), op.getATransposed(), op.getATransposed(), "a_fragment"},
                 kIndex);
      if (bInMemory)
        b = load({b, n, op.getBStride(), op.getBTransposed(), !op.getBTransposed(), "b_fragment"},
                 kIndex);
      createLoop(m, [&](Value mIndex) {
        createLoop(n, [&](Value nIndex) {
          Value aIndex = aInMemory ? mIndex : add(scale(mIndex, k), kIndex);
          Value bIndex = bInMemory ? nIndex : add(scale(kIndex, n), nIndex);
          MultiplyAccumulateOp::create(builder, loc, op.getAcc(),
                                       getIndex(op.getAcc(), add(scale(mIndex, n), nIndex)), a,
                                       getIndex(a, aIndex), b, getIndex(b, bIndex));
        });
      });
    });
    op.erase();
  }

private:
  Value add(Value a, Value b) {
    if (!a || !b)
      return a ? a : b;
    return arith::AddIOp::create(builder, nowhere, a, b, arith::IntegerOverflowFlags::nsw);
  }

  Value scale(Value index, int64_t by) {
    if (!index || by == 1)
      return index;
    return arith::MulIOp::create(builder, nowhere, index,
                                 createConstant(builder, loc, by, builder.getI32Type()),
                                 arith::IntegerOverflowFlags::nsw);
  }

  void createLoop(int64_t count, function_ref<void(Value)> body) {
    if (count == 1)
      return body(Value());
    OpBuilder::InsertionGuard guard(builder);
    auto unroll = UnrollOp::create(builder, loc, 0, count);
    builder.setInsertionPoint(unroll.getBody().front().getTerminator());
    body(unroll.getIndex());
  }

  /// The index in an array: none where it has one element.
  Value getIndex(Value array, Value index) {
    if (getArrayType(array).getCount() == 1)
      return {};
    return index ? index : createConstant(builder, loc, 0, builder.getI32Type());
  }

  /// The operand's fragments of one slice of k.
  Value load(const Tile &tile, Value kIndex) {
    Type element = cast<PtrType>(tile.pointer.getType()).getElementType();
    Location name = NameLoc::get(builder.getStringAttr(tile.name), loc);
    Value fragments = createVariable(builder, name, VectorType::get(tile.count * 2, element), 2,
                                     /*isMatrix=*/true);
    createLoop(tile.count, [&](Value index) {
      Value rows = tile.alongK ? kIndex : index, columns = tile.alongK ? index : kIndex;
      Value offset = add(scale(rows, 8 * tile.stride), scale(columns, 8));
      MatrixLoadOp::create(builder, loc, tile.pointer, offset, fragments,
                           getIndex(fragments, index), builder.getI32IntegerAttr(tile.stride),
                           tile.transposed ? builder.getUnitAttr() : UnitAttr());
    });
    return fragments;
  }

  MatrixProductOp op;
  Location loc, nowhere;
  OpBuilder builder;
};

struct LowerMma : triton_metal::impl::MSLLowerMmaBase<LowerMma> {
  void runOnOperation() override {
    bool changes = false;
    getOperation().walk([&](MatrixProductOp op) {
      ProductLowering(op).run();
      changes = true;
    });
    if (!changes)
      markAllAnalysesPreserved();
  }
};

} // namespace
