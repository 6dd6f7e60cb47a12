// Products of simdgroup matrices, fragment by fragment: see Passes.td.

#include "analysis/LinearLayout.h"
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
  /// To this thread's first element of the first fragment.
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
    if (!op.getAcc().getType().isMatrix())
      return multiplyRegisters();
    bool aInMemory = isa<PtrType>(op.getA().getType());
    bool bInMemory = isa<PtrType>(op.getB().getType());
    Value first = scale(batch, m * n);
    if (int64_t before = int64_t(op.getFirstBatch()) * m * n)
      first = add(first, createConstant(builder, loc, before, builder.getI32Type()));
    // The factor with more fragments is loaded one by one, each before its products, so that few
    // are alive at once.
    bool bOneByOne = bInMemory && (!aInMemory || m <= n), aOneByOne = aInMemory && !bOneByOne;
    createLoop(k, [&](Value kIndex) {
      auto loadA = [&](Value from, int64_t count) {
        return load({0, op.getA(), count, op.getAStride(), op.getATransposed(),
                     scale(batch, op.getABatchStride())},
                    from, kIndex);
      };
      auto loadB = [&](Value from, int64_t count) {
        return load({1, op.getB(), count, op.getBStride(), op.getBTransposed(),
                     scale(batch, op.getBBatchStride())},
                    from, kIndex);
      };
      Value a = aInMemory && !aOneByOne ? loadA({}, m) : op.getA();
      Value b = bInMemory && !bOneByOne ? loadB({}, n) : op.getB();
      auto multiplyFragments = [&](Value a, Value mIndex, Value b, Value nIndex) {
        Value aIndex = aInMemory ? mIndex : add(scale(mIndex, k), kIndex);
        Value bIndex = bInMemory ? nIndex : add(scale(kIndex, n), nIndex);
        Value index = add(first, add(scale(mIndex, n), nIndex));
        MultiplyAccumulateOp::create(builder, loc, op.getAcc(), getIndex(op.getAcc(), index), a,
                                     getIndex(a, aIndex), b, getIndex(b, bIndex));
      };
      if (bOneByOne)
        return createLoop(n, [&](Value nIndex) {
          Value fragment = loadB(nIndex, 1);
          createLoop(m, [&](Value mIndex) { multiplyFragments(a, mIndex, fragment, nIndex); });
        });
      createLoop(m, [&](Value mIndex) {
        Value fragment = aOneByOne ? loadA(mIndex, 1) : a;
        createLoop(n, [&](Value nIndex) { multiplyFragments(fragment, mIndex, b, nIndex); });
      });
    });
  }

  /// The product of operands in registers. What the loops over m and n take first is what a thread
  /// has just loaded for a step of k.
  void multiplyRegisters() {
    int64_t m = op.getM(), n = op.getN(), k = op.getK();
    MatrixShape shape = op.getInstruction();
    auto getFirst = [&](Value array, Value row, int64_t columns, Value column,
                        FragmentShape fragment) -> Value {
      Value index = scale(add(scale(row, columns), column), fragment.getNumRegisters() / 4);
      return getIndex(array, index);
    };
    createLoop(k, [&](Value kIndex) {
      createLoop(m, [&](Value mIndex) {
        createLoop(n, [&](Value nIndex) {
          Value acc = getFirst(op.getAcc(), mIndex, n, nIndex, shape.getAccumulator());
          Value a = op.getATransposed()
                        ? getFirst(op.getA(), kIndex, m, mIndex, shape.getOperand(0))
                        : getFirst(op.getA(), mIndex, k, kIndex, shape.getOperand(0));
          Value b = op.getBTransposed()
                        ? getFirst(op.getB(), nIndex, k, kIndex, shape.getOperand(1))
                        : getFirst(op.getB(), kIndex, n, nIndex, shape.getOperand(1));
          TensorMultiplyOp::create(builder, loc, op.getAcc(), acc, op.getA(), a, op.getB(), b,
                                   shape, op.getATransposed(), op.getBTransposed(),
                                   op.getRelaxed());
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

  /// The factor's fragments of one slice of k, from `first` on.
  Value load(const Factor &factor, Value first, Value kIndex) {
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
      Value at = add(first, index);
      Value row = rowsAreK ? kIndex : at, column = rowsAreK ? at : kIndex;
      Value offset =
          add(factor.begin, add(scale(row, rows * factor.stride), scale(column, columns)));
      SetOp::create(builder, loc, readElements(factor, offset), fragments,
                    getIndex(fragments, index), Value());
    });
    return fragments;
  }

  /// This thread's elements of the fragment at an offset.
  Value readElements(const Factor &factor, Value offset) {
    Type element = cast<PtrType>(factor.pointer.getType()).getElementType();
    triton_metal::LinearLayout layout =
        triton_metal::LinearLayout::simdgroupFragment(op.getInstruction(), factor.index);
    int64_t count = layout.getNumRegisters();
    SmallVector<int64_t> places;
    for (uint32_t reg = 0; reg < count; ++reg) {
      triton_metal::LinearLayout::Shape at = layout.toCoordinates(layout.apply({reg, 0, 0}));
      places.push_back(factor.transposed ? at[1] * factor.stride + at[0]
                                         : at[0] * factor.stride + at[1]);
    }
    // Neighbours are one access: rows begin where one of their width may.
    int64_t width = 1;
    while (width < 4 && 2 * width <= count && factor.stride % (2 * width) == 0 &&
           llvm::all_of(
               llvm::seq<int64_t>(0, count),
               [&](int64_t reg) {
                 return places[reg] == places[reg / (2 * width) * (2 * width)] + reg % (2 * width);
               }))
      width *= 2;
    Type chunk = width == 1 ? element : VectorType::get(width, element);
    SmallVector<Value> elements;
    for (int64_t reg = 0; reg < count; reg += width) {
      Value at = offset;
      if (places[reg])
        at = add(at, createConstant(builder, loc, places[reg], builder.getI32Type()));
      elements.push_back(ReadOp::create(builder, loc, chunk, factor.pointer, at, Value(), Value(),
                                        /*is_volatile=*/false));
    }
    if (elements.size() == 1)
      return elements.front();
    return VectorOp::create(builder, loc, VectorType::get(count, element), elements);
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
