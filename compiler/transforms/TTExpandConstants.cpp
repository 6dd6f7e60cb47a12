// Constants whose elements differ: see Passes.td.

#include "dialect/tt/TT.h"
#include "transforms/Constants.h"
#include "transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_TTEXPANDCONSTANTS
#include "transforms/Passes.h.inc"

namespace {

/// The most selections that a constant may take.
constexpr unsigned kMaxSelections = 1024;

/// Computes the elements of one constant from their places in row-major order.
class ConstantExpansion {
public:
  ConstantExpansion(arith::ConstantOp op, DenseElementsAttr elements)
      : op(op), builder(op), loc(op.getLoc()), elements(elements),
        type(cast<RankedTensorType>(elements.getType())), flat(type.clone({type.getNumElements()})),
        places(flat.clone(builder.getI32Type())) {
    for (APInt bits : elements.getElementType().isInteger()
                          ? SmallVector<APInt>(elements.getValues<APInt>())
                          : llvm::map_to_vector(elements.getValues<APFloat>(), [](APFloat value) {
                              return value.bitcastToAPInt();
                            }))
      values.push_back(bits);
  }

  LogicalResult run() {
    place = tt::MakeRangeOp::create(builder, loc, places, 0, uint32_t(values.size()));
    Value value = build(values);
    if (selections > kMaxSelections)
      return op.emitOpError("has elements that differ without order, more than ")
             << kMaxSelections << " times; load them from memory instead";
    if (value.getType() != type)
      value = tt::ReshapeOp::create(builder, loc, type, value);
    op.getResult().replaceAllUsesWith(value);
    op.erase();
    return success();
  }

private:
  /// The elements at places whose lower bits count through `part`.
  Value build(ArrayRef<APInt> part) {
    if (llvm::all_equal(part))
      return splat(part.front());
    ArrayRef<APInt> lower = part.take_front(part.size() / 2), upper = part.drop_front(lower.size());
    if (lower == upper)
      return build(lower);
    if (Value progression = buildProgression(part))
      return progression;
    if (++selections > kMaxSelections)
      return splat(part.front());
    Value no = build(lower), yes = build(upper);
    Value bit = arith::AndIOp::create(builder, loc, place, number(lower.size()));
    Value isUpper = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, bit, number(0));
    return arith::SelectOp::create(builder, loc, isUpper, yes, no);
  }

  /// Integers in equal steps.
  Value buildProgression(ArrayRef<APInt> part) {
    auto integer = dyn_cast<IntegerType>(type.getElementType());
    if (!integer || integer.getWidth() == 1 || part.size() < 4)
      return {};
    APInt step = part[1] - part[0];
    for (size_t index = 2; index < part.size(); ++index)
      if (part[index] - part[index - 1] != step)
        return {};
    Value index = arith::AndIOp::create(builder, loc, place, number(part.size() - 1));
    if (integer.getWidth() < 32)
      index = arith::TruncIOp::create(builder, loc, flat, index);
    else if (integer.getWidth() > 32)
      index = arith::ExtUIOp::create(builder, loc, flat, index);
    Value offset = arith::MulIOp::create(builder, loc, index, splat(step));
    return arith::AddIOp::create(builder, loc, offset, splat(part[0]));
  }

  Value splat(const APInt &bits) {
    Attribute value;
    if (auto real = dyn_cast<FloatType>(type.getElementType()))
      value = FloatAttr::get(real, APFloat(real.getFloatSemantics(), bits));
    else
      value = IntegerAttr::get(type.getElementType(), bits);
    return arith::ConstantOp::create(builder, loc, DenseElementsAttr::get(flat, value));
  }

  Value number(int64_t value) { return makeConstantLike(builder, loc, places, value); }

  arith::ConstantOp op;
  OpBuilder builder;
  Location loc;
  DenseElementsAttr elements;
  RankedTensorType type, flat, places;
  SmallVector<APInt> values;
  Value place;
  unsigned selections = 0;
};

struct TTExpandConstantsPass : impl::TTExpandConstantsBase<TTExpandConstantsPass> {
  void runOnOperation() override {
    SmallVector<arith::ConstantOp> constants;
    getOperation().walk([&](arith::ConstantOp op) {
      auto elements = dyn_cast<DenseElementsAttr>(op.getValue());
      if (elements && isa<RankedTensorType>(op.getType()) && !elements.isSplat())
        constants.push_back(op);
    });
    if (constants.empty())
      return markAllAnalysesPreserved();
    for (arith::ConstantOp op : constants)
      if (failed(ConstantExpansion(op, cast<DenseElementsAttr>(op.getValue())).run()))
        return signalPassFailure();
  }
};

} // namespace
} // namespace triton_metal
