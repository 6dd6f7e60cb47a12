// Arithmetic of 64-bit floats, which no Metal has: functions of the integers that hold their bits.

#include "dialect/msl/ScalarTypes.h"
#include "transforms/BFloatBits.h"
#include "transforms/Constants.h"
#include "transforms/MSLEmulateTypes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace triton_metal;
using namespace triton_metal::msl;

namespace {

constexpr uint64_t kSign = 1ull << 63, kInfinity = 0x7ffull << 52;

bool isDouble(Type type) { return getElementTypeOrSelf(type).isF64(); }

/// The function that computes an operation whose operands and result are 64-bit floats.
StringRef getFunction(StringRef name) {
  return llvm::StringSwitch<StringRef>(name)
      .Case("arith.addf", "add")
      .Case("arith.subf", "sub")
      .Case("arith.mulf", "mul")
      .Cases({"arith.divf", "msl.precise_div"}, "div")
      .Case("arith.remf", "fmod")
      .Case("arith.maxnumf", "max")
      .Case("arith.minnumf", "min")
      .Case("arith.maximumf", "maximum")
      .Case("arith.minimumf", "minimum")
      .Case("math.fma", "fma")
      .Cases({"math.sqrt", "msl.precise_sqrt"}, "sqrt")
      .Case("math.floor", "floor")
      .Case("math.ceil", "ceil")
      .Case("math.trunc", "trunc")
      .Case("math.round", "nearest")
      .Case("math.roundeven", "rint")
      .Case("math.powf", "pow")
      .Case("math.fpowi", "powi")
      .Cases({"math.acos", "math.acosh", "math.asin", "math.asinh", "math.atan", "math.atan2",
              "math.atanh", "math.cbrt", "math.erfc"},
             name.drop_front(5))
      .Cases({"math.exp", "math.exp2", "math.expm1", "math.log", "math.log2", "math.log10",
              "math.log1p", "math.sin", "math.cos", "math.tan", "math.sinh", "math.cosh",
              "math.tanh", "math.erf", "math.rsqrt"},
             name.drop_front(5))
      .Default("");
}

/// The function for one of `msl.library`, or nothing. Those with a direction of rounding are
/// templates of it: 1 is toward zero, 2 down, 3 up.
std::string getLibraryFunction(StringRef name) {
  auto [base, direction] = name.rsplit('_');
  StringRef mode = llvm::StringSwitch<StringRef>(direction)
                       .Case("rn", "0")
                       .Case("rz", "1")
                       .Case("rd", "2")
                       .Case("ru", "3")
                       .Default("");
  if (!mode.empty()) {
    if (base == "double_to_float")
      return ("narrow<23, 127, " + mode + ">").str();
    StringRef function = llvm::StringSwitch<StringRef>(base)
                             .Cases({"add", "sub", "mul", "div", "fma", "sqrt", "rcp"}, base)
                             .Case("ll_to_double", "from_long")
                             .Case("ull_to_double", "from_ulong")
                             .Default("");
    return function.empty() ? "" : (function + "_to<" + mode + ">").str();
  }
  return llvm::StringSwitch<StringRef>(name)
      .Cases({"cbrt", "rcbrt", "exp10", "sinpi", "cospi", "powi", "hypot", "norm3d", "norm4d",
              "rhypot", "rnorm3d", "rnorm4d"},
             name)
      .Cases({"erfc", "erfcx", "erfinv", "erfcinv", "normcdf", "normcdfinv", "lgamma", "tgamma"},
             name)
      .Cases({"cyl_bessel_i0", "cyl_bessel_i1", "j0", "j1", "jn", "y0", "y1", "yn"}, name)
      .Cases({"fdim", "ilogb", "ldexp", "logb", "nextafter", "remainder", "rcp64h", "signbit",
              "high_word", "low_word", "of_words"},
             name)
      .Default("")
      .str();
}

/// The parameters of `float64_narrow`: digits behind the point, the exponent's bias and to nearest.
StringRef getFormat(Type type) {
  return type.isF32()    ? "23, 127, 0"
         : type.isF16()  ? "10, 15, 0"
         : type.isBF16() ? "7, 127, 0"
                         : "";
}

/// Builds what stands for one operation.
class Float64Builder {
public:
  Float64Builder(Operation *op, ValueRange operands, const TypeConverter &types,
                 ConversionPatternRewriter &rewriter)
      : op(op), operands(operands), types(types), rewriter(rewriter), loc(op->getLoc()),
        shape(op->getResult(0).getType()) {}

  /// Null where Metal's text has no function for it.
  Value build();

private:
  Type like(Type element) { return withElement(shape, element); }
  Type bits() { return like(rewriter.getI64Type()); }
  Value constant(uint64_t number) {
    return makeConstantLike(rewriter, loc, bits(), APInt(64, number));
  }
  Value call(const Twine &function, Type type, ValueRange arguments) {
    return Float64Op::create(rewriter, loc, type, rewriter.getStringAttr(function), arguments);
  }
  template <typename Op> Value make(Value a, Value b) { return Op::create(rewriter, loc, a, b); }
  Value compare(arith::CmpIPredicate predicate, Value a, Value b) {
    return arith::CmpIOp::create(rewriter, loc, predicate, a, b);
  }
  Value magnitude(Value a) { return make<arith::AndIOp>(a, constant(~kSign)); }
  Value negated(Value truth) {
    return make<arith::XOrIOp>(truth,
                               makeConstantLike(rewriter, loc, truth.getType(), APInt(1, 1)));
  }
  Value compareFloats(arith::CmpFPredicate predicate, Value a, Value b);
  Value fromFloat(Value value);
  Value toFloat(Value value, Type type);
  Value callLibrary(StringRef function, Type type);
  Value fromInteger(Value value, bool isUnsigned);
  Value toInteger(Value value, Type type, bool isUnsigned);
  Value test(StringRef name, Value a);

  Operation *op;
  ValueRange operands;
  const TypeConverter &types;
  ConversionPatternRewriter &rewriter;
  Location loc;
  /// A type with the shape of all values.
  Type shape;
};

Value Float64Builder::compareFloats(arith::CmpFPredicate predicate, Value a, Value b) {
  Type truth = like(rewriter.getI1Type());
  auto less = [&](Value a, Value b) { return call("less", truth, {a, b}); };
  auto lessEqual = [&](Value a, Value b) { return call("less_equal", truth, {a, b}); };
  auto isNaN = [&](Value a) { return call("is_nan", truth, a); };
  auto unordered = [&]() -> Value {
    return a == b ? isNaN(a) : make<arith::OrIOp>(isNaN(a), isNaN(b));
  };
  auto differ = [&] { return make<arith::OrIOp>(less(a, b), less(b, a)); };
  // The unordered predicates are the negations of the opposite ordered ones.
  using P = arith::CmpFPredicate;
  switch (predicate) {
  case P::OEQ:
    return call("equal", truth, {a, b});
  case P::UNE:
    return negated(call("equal", truth, {a, b}));
  case P::OLT:
    return less(a, b);
  case P::OLE:
    return lessEqual(a, b);
  case P::OGT:
    return less(b, a);
  case P::OGE:
    return lessEqual(b, a);
  case P::ULT:
    return negated(lessEqual(b, a));
  case P::ULE:
    return negated(less(b, a));
  case P::UGT:
    return negated(lessEqual(a, b));
  case P::UGE:
    return negated(less(a, b));
  case P::ORD:
    return negated(unordered());
  case P::UNO:
    return unordered();
  case P::ONE:
    return differ();
  case P::UEQ:
    return negated(differ());
  case P::AlwaysTrue:
  case P::AlwaysFalse:
    return makeConstantLike(rewriter, loc, truth, APInt(1, predicate == P::AlwaysTrue));
  }
  llvm_unreachable("a comparison of floats");
}

Value Float64Builder::fromFloat(Value value) {
  Type f32 = like(rewriter.getF32Type());
  // A bfloat that the target lacks is its bits already.
  if (isa<IntegerType>(getElementTypeOrSelf(value)))
    value = makeFloatOfBits(rewriter, loc, value);
  else if (value.getType() != f32)
    value = arith::ExtFOp::create(rewriter, loc, f32, value);
  return call("from_float", bits(), value);
}

Value Float64Builder::toFloat(Value value, Type type) {
  Type element = getElementTypeOrSelf(type);
  StringRef format = getFormat(element);
  if (format.empty())
    return {};
  Value narrow = call("narrow<" + format + ">", like(rewriter.getI32Type()), value);
  if (!element.isF32())
    narrow = arith::TruncIOp::create(rewriter, loc, like(rewriter.getI16Type()), narrow);
  Type converted = types.convertType(type);
  return converted == narrow.getType()
             ? narrow
             : arith::BitcastOp::create(rewriter, loc, converted, narrow).getResult();
}

Value Float64Builder::callLibrary(StringRef function, Type type) {
  if (function.empty())
    return {};
  Type element = getElementTypeOrSelf(type);
  if (element.isF64())
    return call(function, bits(), operands);
  Value result = call(function, like(rewriter.getI32Type()), operands);
  return element.isF32() ? arith::BitcastOp::create(rewriter, loc, type, result).getResult()
                         : result;
}

Value Float64Builder::fromInteger(Value value, bool isUnsigned) {
  if (value.getType() != bits())
    value = isUnsigned ? arith::ExtUIOp::create(rewriter, loc, bits(), value).getResult()
                       : arith::ExtSIOp::create(rewriter, loc, bits(), value).getResult();
  return call(isUnsigned ? "from_ulong" : "from_long", bits(), value);
}

Value Float64Builder::toInteger(Value value, Type type, bool isUnsigned) {
  unsigned width = getElementTypeOrSelf(type).getIntOrFloatBitWidth();
  Value whole = call(isUnsigned ? "to_ulong" : "to_long", bits(), value);
  if (width == 64)
    return whole;
  // The nearest integer of the type, as from the other floats.
  if (isUnsigned) {
    whole = make<arith::MinUIOp>(whole, constant(APInt::getMaxValue(width).getZExtValue()));
  } else {
    whole = make<arith::MinSIOp>(whole, constant(APInt::getSignedMaxValue(width).getSExtValue()));
    whole = make<arith::MaxSIOp>(whole, constant(APInt::getSignedMinValue(width).getSExtValue()));
  }
  return arith::TruncIOp::create(rewriter, loc, type, whole);
}

Value Float64Builder::test(StringRef name, Value a) {
  using P = arith::CmpIPredicate;
  if (name == "math.isnan")
    return call("is_nan", like(rewriter.getI1Type()), a);
  if (name == "math.isinf")
    return compare(P::eq, magnitude(a), constant(kInfinity));
  if (name == "math.isfinite")
    return compare(P::ult, magnitude(a), constant(kInfinity));
  return {};
}

Value Float64Builder::build() {
  StringRef name = op->getName().getStringRef();
  Type result = op->getResult(0).getType();
  if (StringRef function = getFunction(name); !function.empty())
    return call(function, bits(), operands);
  if (auto library = dyn_cast<LibraryOp>(op))
    return callLibrary(getLibraryFunction(library.getFunction()), result);
  if (auto compared = dyn_cast<arith::CmpFOp>(op))
    return compareFloats(compared.getPredicate(), operands[0], operands[1]);
  if (isa<arith::NegFOp>(op))
    return make<arith::XOrIOp>(operands[0], constant(kSign));
  if (isa<math::AbsFOp>(op))
    return magnitude(operands[0]);
  if (isa<math::CopySignOp>(op))
    return make<arith::OrIOp>(magnitude(operands[0]),
                              make<arith::AndIOp>(operands[1], constant(kSign)));
  if (isa<arith::ExtFOp>(op))
    return fromFloat(operands[0]);
  if (isa<arith::TruncFOp>(op))
    return toFloat(operands[0], result);
  if (isa<arith::SIToFPOp, arith::UIToFPOp>(op))
    return fromInteger(operands[0], isa<arith::UIToFPOp>(op));
  if (isa<arith::FPToSIOp, arith::FPToUIOp>(op))
    return toInteger(operands[0], result, isa<arith::FPToUIOp>(op));
  return test(name, operands[0]);
}

/// Whether the operation computes with 64-bit floats, and does not only move them.
bool computesWithDoubles(Operation *op) {
  bool computes = isa<arith::ArithDialect, math::MathDialect>(op->getDialect()) ||
                  isa<PreciseDivOp, PreciseSqrtOp, LibraryOp>(op);
  if (!computes || op->getNumResults() != 1 || op->getNumOperands() == 0 ||
      isa<arith::SelectOp, arith::BitcastOp>(op))
    return false;
  return isDouble(op->getResult(0).getType()) || llvm::any_of(op->getOperandTypes(), isDouble);
}

struct Float64Pattern : ConversionPattern {
  Float64Pattern(const EmulatedTypes &types, MLIRContext *context)
      : ConversionPattern(types, MatchAnyOpTypeTag(), /*benefit=*/3, context) {}

  LogicalResult matchAndRewrite(Operation *op, ArrayRef<Value> operands,
                                ConversionPatternRewriter &rewriter) const override {
    if (!computesWithDoubles(op))
      return failure();
    Value result = Float64Builder(op, operands, *getTypeConverter(), rewriter).build();
    if (!result)
      return failure();
    rewriter.replaceOp(op, result);
    return success();
  }
};

} // namespace

LogicalResult triton_metal::msl::checkFloat64(Operation *op) {
  if (!computesWithDoubles(op) ||
      isa<arith::CmpFOp, arith::NegFOp, arith::ExtFOp, arith::TruncFOp, arith::SIToFPOp,
          arith::UIToFPOp, arith::FPToSIOp, arith::FPToUIOp, math::AbsFOp, math::CopySignOp,
          math::IsNaNOp, math::IsInfOp, math::IsFiniteOp>(op) ||
      !getFunction(op->getName().getStringRef()).empty())
    return success();
  StringRef name = op->getName().getStringRef();
  if (auto library = dyn_cast<LibraryOp>(op)) {
    name = library.getFunction();
    if (!getLibraryFunction(name).empty())
      return success();
  }
  return op->emitError("computes '")
         << name << "' of float64, which has no function in software: convert to float32";
}

void triton_metal::msl::populateFloat64Patterns(const EmulatedTypes &types,
                                                RewritePatternSet &patterns) {
  patterns.add<Float64Pattern>(types, patterns.getContext());
}
