#include "dialect/tt/TT.h"
#include "transforms/Constants.h"
#include "transforms/FloatFormats.h"
#include "transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_TTDECOMPOSESCALEDDOTS
#include "transforms/Passes.h.inc"

namespace {

using tt::ScaleDotElemType;

/// One side of a scaled dot.
struct Operand {
  Value value;
  /// Null if the operand has no scales.
  Value scale;
  ScaleDotElemType kind;
  /// Two e2m1 numbers in a byte are neighbours along K, and not along M or N.
  bool packedAlongK;
  /// 0 for a, 1 for b.
  unsigned index;
};

RankedTensorType getType(Value value) { return cast<RankedTensorType>(value.getType()); }

/// Digits of the numbers of a kind, the leading one too.
unsigned getDigits(ScaleDotElemType kind) {
  switch (kind) {
  case ScaleDotElemType::E2M1:
    return 2;
  case ScaleDotElemType::E5M2:
    return 3;
  case ScaleDotElemType::E4M3:
    return 4;
  case ScaleDotElemType::BF16:
    return 8;
  default:
    return 11;
  }
}

class Decomposition {
public:
  explicit Decomposition(tt::DotScaledOp dot)
      : dot(dot), builder(dot), loc(dot.getLoc()), rank(dot.getType().getRank()) {}

  LogicalResult run();

private:
  LogicalResult check(const Operand &operand);
  /// Whether every number that the scaled operand can be is one of a type of 16 bits. The exponents
  /// of scaled numbers are those of a bfloat.
  bool isExactInHalf(const Operand &operand);
  bool isExactInBFloat(const Operand &operand);
  /// The numbers as the operation means them, in a type that holds them.
  Value unpack(const Operand &operand);
  /// The scales as floats, one for each element of an operand of this type.
  Value expandScale(const Operand &operand, RankedTensorType type);
  Value scale(const Operand &operand, Type element);

  Value convert(Value value, Type element) {
    return convertFloat(builder, loc, value, element, tt::RoundingMode::RTNE);
  }
  Value constant(Value like, int64_t number) {
    return makeConstantLike(builder, loc, like.getType(), number);
  }
  Value bitcast(Value value, Type element) {
    return arith::BitcastOp::create(builder, loc, withElementType(value.getType(), element), value);
  }
  Value extend(Value value, Type element) {
    return arith::ExtUIOp::create(builder, loc, withElementType(value.getType(), element), value);
  }
  Value left(Value value, int64_t bits) {
    return arith::ShLIOp::create(builder, loc, value, constant(value, bits));
  }
  /// The order of dimensions that exchanges the last but `second` and the last but `first`.
  SmallVector<int32_t> exchange(int64_t dims, unsigned first, unsigned second) {
    auto order = llvm::to_vector(llvm::seq<int32_t>(0, dims));
    std::swap(order[dims - 1 - first], order[dims - 1 - second]);
    return order;
  }
  Value reshape(Value value, ArrayRef<int64_t> shape) {
    auto type = RankedTensorType::get(shape, getType(value).getElementType());
    return tt::ReshapeOp::create(builder, loc, type, value, /*allow_reorder=*/false,
                                 /*efficient_layout=*/false);
  }

  tt::DotScaledOp dot;
  OpBuilder builder;
  Location loc;
  int64_t rank;
};

LogicalResult Decomposition::check(const Operand &operand) {
  Type element = getType(operand.value).getElementType();
  StringRef side = operand.index == 0 ? "first" : "second";
  auto refuse = [&](const Twine &expected) {
    return dot.emitOpError("has a ")
           << side << " operand of kind " << tt::stringifyScaleDotElemType(operand.kind) << " in "
           << element << "; it is " << expected;
  };
  switch (operand.kind) {
  case ScaleDotElemType::E2M1:
    if (!element.isInteger(8))
      return refuse("two numbers in an i8");
    break;
  case ScaleDotElemType::E4M3:
    if (!isa<Float8E4M3FNType>(element) && !element.isInteger(8))
      return refuse("an f8E4M3FN or an i8 with its bits");
    break;
  case ScaleDotElemType::E5M2:
    if (!isa<Float8E5M2Type>(element) && !element.isInteger(8))
      return refuse("an f8E5M2 or an i8 with its bits");
    break;
  case ScaleDotElemType::BF16:
    if (!element.isBF16())
      return refuse("a bf16");
    break;
  case ScaleDotElemType::FP16:
    if (!element.isF16())
      return refuse("an f16");
    break;
  default:
    return dot.emitOpError("has a ")
           << side << " operand of kind " << tt::stringifyScaleDotElemType(operand.kind)
           << ", which Triton's front end does not make: use e2m1, e4m3, e5m2, bf16 or fp16";
  }
  if (operand.kind != ScaleDotElemType::E2M1 && !operand.packedAlongK)
    return dot.emitOpError("has a ")
           << side << " operand of kind " << tt::stringifyScaleDotElemType(operand.kind)
           << " packed along another dimension than K; only e2m1 is packed";
  if (!operand.scale)
    return success();
  RankedTensorType scales = getType(operand.scale);
  Type scale = scales.getElementType();
  if (!scale.isInteger(8) && !isa<Float8E4M3FNType, Float8E5M2Type>(scale))
    return dot.emitOpError("has scales of type ")
           << scale << "; they are i8 (exponents) or floats of 8 bits";
  RankedTensorType a = dot.getA().getType();
  int64_t k = a.getDimSize(rank - 1);
  if (dot.getAElemType() == ScaleDotElemType::E2M1 && dot.getLhsKPack())
    k *= 2;
  int64_t other = dot.getType().getDimSize(rank - 2 + operand.index);
  ArrayRef<int64_t> shape = scales.getShape();
  bool fits = scales.getRank() == rank && shape[rank - 2] == other && k % shape[rank - 1] == 0 &&
              shape.drop_back(2) == dot.getType().getShape().drop_back(2);
  if (!fits)
    return dot.emitOpError("has scales of shape ")
           << scales << "; they have " << other << " rows, and columns that divide K = " << k;
  return success();
}

bool Decomposition::isExactInHalf(const Operand &operand) {
  return !operand.scale && operand.kind != ScaleDotElemType::BF16;
}

bool Decomposition::isExactInBFloat(const Operand &operand) {
  unsigned digits = getDigits(operand.kind);
  // A scale that is no exponent has digits of its own.
  if (operand.scale)
    if (const SmallFloat *format = SmallFloat::get(getType(operand.scale).getElementType()))
      digits += 1 + format->mantissaBits;
  return digits <= 8;
}

Value Decomposition::unpack(const Operand &operand) {
  Type element = getType(operand.value).getElementType();
  Type i16 = builder.getI16Type();
  auto asFloat = [&](Type type) -> Value {
    if (element == type)
      return operand.value;
    return tt::BitcastOp::create(builder, loc, withElementType(operand.value.getType(), type),
                                 operand.value);
  };
  if (operand.kind == ScaleDotElemType::E4M3)
    return convert(asFloat(builder.getType<Float8E4M3FNType>()), builder.getF16Type());
  if (operand.kind == ScaleDotElemType::E5M2)
    return convert(asFloat(builder.getType<Float8E5M2Type>()), builder.getF16Type());
  if (operand.kind != ScaleDotElemType::E2M1)
    return operand.value;

  // The bits of a number are the sign, the last two bits of the exponent and the first of the
  // mantissa of a half, which is 2^14 times too small.
  Value wide = extend(operand.value, i16);
  auto decode = [&](int64_t shift) {
    // An arithmetic shift to the right leaves the sign where it is and takes the rest to its place.
    Value top = left(wide, shift);
    Value bits = arith::ShRSIOp::create(builder, loc, top, constant(top, 3));
    bits = arith::AndIOp::create(builder, loc, bits, constant(bits, int16_t(0x8E00)));
    Value half = bitcast(bits, builder.getF16Type());
    TypedAttr factor = builder.getF16FloatAttr(16384);
    Value factors = arith::ConstantOp::create(
        builder, loc, DenseElementsAttr::get(getType(half), Attribute(factor)));
    return arith::MulFOp::create(builder, loc, half, factors);
  };
  Value low = decode(12), high = decode(8);
  Value joined = tt::JoinOp::create(builder, loc, low, high);
  SmallVector<int64_t> shape(getType(operand.value).getShape());
  // The pair goes beside the dimension along which it was packed: the last one, or the one before.
  bool lastDim = operand.packedAlongK == (operand.index == 0);
  shape[rank - (lastDim ? 1 : 2)] *= 2;
  if (!lastDim)
    joined = tt::TransOp::create(builder, loc, joined, exchange(rank + 1, 0, 1));
  return reshape(joined, shape);
}

Value Decomposition::expandScale(const Operand &operand, RankedTensorType type) {
  Value scale = operand.scale;
  if (operand.index == 1)
    scale = tt::TransOp::create(builder, loc, scale, exchange(rank, 0, 1));
  if (getType(scale).getElementType().isInteger(8)) {
    // The exponent of a float. 0 is 2^-127 there, which is no normal float: it is taken as 0.
    Value exponent = extend(scale, builder.getI32Type()), bits = left(exponent, 23);
    // 255 is a NaN, and would be infinite as a float.
    if (!dot.getFastMath()) {
      Value isNaN = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, exponent,
                                          constant(exponent, 255));
      bits = arith::SelectOp::create(builder, loc, isNaN, constant(exponent, 0x7FC00000), bits);
    }
    scale = bitcast(bits, builder.getF32Type());
  } else {
    scale = convert(scale, builder.getF32Type());
  }
  unsigned kDim = operand.index == 0 ? rank - 1 : rank - 2;
  scale = tt::ExpandDimsOp::create(builder, loc, scale, kDim + 1);
  SmallVector<int64_t> shape(getType(scale).getShape());
  shape[kDim + 1] = type.getDimSize(kDim) / shape[kDim];
  scale = tt::BroadcastOp::create(builder, loc, RankedTensorType::get(shape, builder.getF32Type()),
                                  scale);
  return reshape(scale, type.getShape());
}

Value Decomposition::scale(const Operand &operand, Type element) {
  Value value = unpack(operand);
  if (!operand.scale)
    return convert(value, element);
  Type f32 = builder.getF32Type();
  value = convert(value, f32);
  Value scales = expandScale(operand, getType(value));
  value = arith::MulFOp::create(builder, loc, value, scales);
  return convert(value, element);
}

LogicalResult Decomposition::run() {
  Operand a{dot.getA(), dot.getAScale(), dot.getAElemType(), dot.getLhsKPack(), 0};
  Operand b{dot.getB(), dot.getBScale(), dot.getBElemType(), dot.getRhsKPack(), 1};
  if (failed(check(a)) || failed(check(b)))
    return failure();
  auto result = cast<RankedTensorType>(dot.getType());
  if (!isa<FloatType>(result.getElementType()))
    return dot.emitOpError("accumulates in ") << result.getElementType() << "; use float32";

  Type f32 = builder.getF32Type();
  Type element = f32;
  if (isExactInHalf(a) && isExactInHalf(b))
    element = builder.getF16Type();
  else if (isExactInBFloat(a) && isExactInBFloat(b))
    element = builder.getBF16Type();
  Value product = tt::DotOp::create(builder, loc, withElementType(result, f32), scale(a, element),
                                    scale(b, element), convert(dot.getC(), f32),
                                    tt::InputPrecision::IEEE, /*maxNumImpreciseAcc=*/0);
  dot.getResult().replaceAllUsesWith(convert(product, result.getElementType()));
  dot.erase();
  return success();
}

struct TTDecomposeScaledDotsPass : impl::TTDecomposeScaledDotsBase<TTDecomposeScaledDotsPass> {
  void runOnOperation() override {
    SmallVector<tt::DotScaledOp> dots;
    getOperation().walk([&](tt::DotScaledOp dot) { dots.push_back(dot); });
    for (tt::DotScaledOp dot : dots)
      if (failed(Decomposition(dot).run()))
        return signalPassFailure();
    if (dots.empty())
      markAllAnalysesPreserved();
  }
};

} // namespace
} // namespace triton_metal
