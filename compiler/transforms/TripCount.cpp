#include "transforms/TripCount.h"

#include "transforms/Constants.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace triton_metal {

Value createTripCount(OpBuilder &builder, Location loc, Value lower, Value upper, Value step,
                      bool isUnsigned) {
  using Predicate = arith::CmpIPredicate;
  auto number = [&](int64_t value) {
    return makeConstantLike(builder, loc, step.getType(), value);
  };
  auto compare = [&](Predicate predicate, Value a, Value b) -> Value {
    return arith::CmpIOp::create(builder, loc, predicate, a, b);
  };
  auto subtract = [&](Value a, Value b) -> Value {
    return arith::SubIOp::create(builder, loc, a, b);
  };
  auto select = [&](Value condition, Value yes, Value no) -> Value {
    return arith::SelectOp::create(builder, loc, condition, yes, no);
  };
  Predicate less = isUnsigned ? Predicate::ult : Predicate::slt;
  Value zero = number(0), one = number(1);
  Value runs = compare(less, lower, upper), distance = subtract(upper, lower), stride = step;
  APInt constant;
  bool isConstant = matchPattern(step, m_ConstantInt(&constant));
  if (!isUnsigned && !(isConstant && constant.isStrictlyPositive())) {
    Value isUp = compare(Predicate::sgt, step, zero);
    runs = select(isUp, runs, compare(less, upper, lower));
    distance = select(isUp, distance, subtract(lower, upper));
    stride = select(isUp, step, subtract(zero, step));
  }
  if (!isConstant || constant.isZero()) {
    Value moves = compare(Predicate::ne, stride, zero);
    runs = arith::AndIOp::create(builder, loc, runs, moves);
    stride = select(moves, stride, one);
  }
  Value others = arith::DivUIOp::create(builder, loc, subtract(distance, one), stride);
  Value count = arith::AddIOp::create(builder, loc, others, one);
  return select(runs, count, zero);
}

} // namespace triton_metal
