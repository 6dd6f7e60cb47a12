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

/// A factor in memory: `index` is 0 for a, 1 for b.
struct Factor {
  unsigned index;
  Value pointer;
  int64_t count, stride;
  bool transposed;
  /// Where the matrix of the batch begins; null if it is the first one.
  Value begin;
};

/// Writes the loops of one product. An index that is null is 0.
class ProductLowering {
public:
  explicit ProductLowering(MatrixProductOp op)
      : op(op), loc(op.getLoc()), nowhere(UnknownLoc::get(op.getContext())), builder(op) {}

  void run() {
    createLoop(op.getBatch(), [&](Value batch) { multiply(batch); });
    op.erase();
  }

private:
  /// One product of the batch.
  void multiply(Value batch) {
    int64_t m = op.getM(), n = op.getN(), k = op.getK();
    bool aInMemory = isa<PtrType>(op.getA().getType());
    bool bInMemory = isa<PtrType>(op.getB().getType());
    Value first = scale(batch, m * n);
    if (int64_t before = int64_t(op.getFirstBatch()) * m * n)
      first = add(first, createConstant(builder, loc, before, builder.getI32Type()));
    createLoop(k, [&](Value kIndex) {
      Value a = op.getA(), b = op.getB();
      if (aInMemory)
        a = load(
            {0, a, m, op.getAStride(), op.getATransposed(), scale(batch, op.getABatchStride())},
            kIndex);
      if (bInMemory)
        b = load(
            {1, b, n, op.getBStride(), op.getBTransposed(), scale(batch, op.getBBatchStride())},
            kIndex);
      createLoop(m, [&](Value mIndex) {
        createLoop(n, [&](Value nIndex) {
          Value aIndex = aInMemory ? mIndex : add(scale(mIndex, k), kIndex);
          Value bIndex = bInMemory ? nIndex : add(scale(kIndex, n), nIndex);
          Value index = add(first, add(scale(mIndex, n), nIndex));
          MultiplyAccumulateOp::create(builder, loc, op.getAcc(), getIndex(op.getAcc(), index), a,
                                       getIndex(a, aIndex), b, getIndex(b, bIndex));
        });
      });
    });
  }

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

  /// The factor's fragments of one slice of k.
  Value load(const Factor &factor, Value kIndex) {
    Type element = cast<PtrType>(factor.pointer.getType()).getElementType();
    FragmentShape fragment = op.getInstruction().getOperand(factor.index);
    Location name =
        NameLoc::get(builder.getStringAttr(factor.index == 0 ? "a_fragment" : "b_fragment"), loc);
    Value fragments = VarOp::create(
        builder, name, ArrayType::get(factor.count, MatrixType::get(fragment, element)));
    // As it is stored.
    int64_t rows = factor.transposed ? fragment.columns : fragment.rows;
    int64_t columns = factor.transposed ? fragment.rows : fragment.columns;
    bool rowsAreK = (factor.index == 0) == factor.transposed;
    createLoop(factor.count, [&](Value index) {
      Value row = rowsAreK ? kIndex : index, column = rowsAreK ? index : kIndex;
      Value offset =
          add(factor.begin, add(scale(row, rows * factor.stride), scale(column, columns)));
      MatrixLoadOp::create(builder, loc, factor.pointer, offset, fragments,
                           getIndex(fragments, index), builder.getI32IntegerAttr(factor.stride),
                           factor.transposed ? builder.getUnitAttr() : UnitAttr());
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
