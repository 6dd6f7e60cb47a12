// Types of floats and functions. What Metal cannot compute in bfloat or half is computed in float
// and rounded.

#include "transforms/MSLExplicitTypes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace triton_metal;
using namespace triton_metal::msl;

static bool isBFloat(Type type) { return getElementTypeOrSelf(type).isBF16(); }

LogicalResult TypeExplicator::convertFloat(Operation *op, BinaryKind kind) {
  Type type = op->getResult(0).getType();
  Value left = op->getOperand(0), right = op->getOperand(1);
  bool through = isBFloat(type), areSplats = isSplat(left) && isSplat(right);
  Value a = through ? getFloat(left) : getNumber(left),
        b = through ? getFloat(right) : getNumber(right);
  Value result = binary(kind, a, b);
  if (through)
    result = toType(areSplats ? getElementTypeOrSelf(type) : type, result);
  return replace(op, areSplats && isa<VectorType>(type) ? splat(result, type) : result);
}

LogicalResult TypeExplicator::convertFloatCompare(Operation *op) {
  auto compare = cast<arith::CmpFOp>(op);
  Value left = compare.getLhs(), right = compare.getRhs();
  Type type = left.getType();
  bool isVector = isa<VectorType>(type);
  Type compared = isBFloat(type) ? withElement(type, builder.getF32Type()) : type;
  Type truth = op->getResult(0).getType();
  Value a = isBFloat(type) ? getFloat(left) : getNumber(left),
        b = isBFloat(type) ? getFloat(right) : getNumber(right);
  if (isSplat(left) && isSplat(right))
    a = toType(compared, a);
  auto either = [&](Value a, Value b) {
    return binary(isVector ? BinaryKind::Or : BinaryKind::LogicalOr, a, b);
  };
  auto isNan = [&](Value value) { return call("isnan", truth, toType(compared, value)); };
  auto negated = [&](Value value) { return unary(UnaryKind::Not, value); };
  // The unordered predicates are the negations of the opposite ordered ones.
  using P = arith::CmpFPredicate;
  switch (compare.getPredicate()) {
  case P::OEQ:
    return replace(op, binary(BinaryKind::Equal, a, b));
  case P::UNE:
    return replace(op, binary(BinaryKind::NotEqual, a, b));
  case P::OLT:
    return replace(op, binary(BinaryKind::Less, a, b));
  case P::OLE:
    return replace(op, binary(BinaryKind::LessEqual, a, b));
  case P::OGT:
    return replace(op, binary(BinaryKind::Greater, a, b));
  case P::OGE:
    return replace(op, binary(BinaryKind::GreaterEqual, a, b));
  case P::ULT:
    return replace(op, negated(binary(BinaryKind::GreaterEqual, a, b)));
  case P::ULE:
    return replace(op, negated(binary(BinaryKind::Greater, a, b)));
  case P::UGT:
    return replace(op, negated(binary(BinaryKind::LessEqual, a, b)));
  case P::UGE:
    return replace(op, negated(binary(BinaryKind::Less, a, b)));
  case P::ORD:
  case P::UNO: {
    Value unordered = left == right ? isNan(a) : either(isNan(a), isNan(b));
    return replace(op, compare.getPredicate() == P::UNO ? unordered : negated(unordered));
  }
  case P::ONE:
  case P::UEQ: {
    Value differ = either(binary(BinaryKind::Less, a, b), binary(BinaryKind::Greater, a, b));
    return replace(op, compare.getPredicate() == P::ONE ? differ : negated(differ));
  }
  case P::AlwaysTrue:
  case P::AlwaysFalse:
    return replace(op, toType(truth, makeConstant(builder.getI1Type(),
                                                  compare.getPredicate() == P::AlwaysTrue)));
  }
  llvm_unreachable("a comparison of floats");
}

/// Functions of integers and booleans.
static StringRef getIntegerFunction(StringRef name) {
  return llvm::StringSwitch<StringRef>(name)
      .Case("math.absi", "abs")
      .Case("math.ctlz", "clz")
      .Case("math.cttz", "ctz")
      .Case("math.ctpop", "popcount")
      .Default("");
}

static StringRef getTest(StringRef name) {
  return llvm::StringSwitch<StringRef>(name)
      .Case("math.isnan", "isnan")
      .Case("math.isinf", "isinf")
      .Case("math.isfinite", "isfinite")
      .Case("math.isnormal", "isnormal")
      .Default("");
}

/// Functions that give the exact result. They have one version, also for half.
static StringRef getExactFunction(StringRef name) {
  return llvm::StringSwitch<StringRef>(name)
      .Case("math.absf", "fabs")
      .Case("math.floor", "floor")
      .Case("math.ceil", "ceil")
      .Case("math.trunc", "trunc")
      .Case("math.roundeven", "rint")
      .Case("math.round", "round")
      .Case("math.copysign", "copysign")
      .Case("math.fma", "fma")
      .Case("arith.maxnumf", "fmax")
      .Case("arith.minnumf", "fmin")
      .Case("arith.maximumf", "maximum")
      .Case("arith.minimumf", "minimum")
      .Default("");
}

/// Functions that round. Their name says which version is meant; the versions exist for float only.
static StringRef getRoundedFunction(StringRef name) {
  return llvm::StringSwitch<StringRef>(name)
      .Cases({"math.exp",   "math.exp2",  "math.log",   "math.log2", "math.log10",
              "math.sin",   "math.cos",   "math.tan",   "math.asin", "math.acos",
              "math.atan",  "math.atan2", "math.sinh",  "math.cosh", "math.tanh",
              "math.asinh", "math.acosh", "math.atanh", "math.sqrt", "math.rsqrt"},
             name.drop_front(5))
      .Case("math.powf", "pow")
      .Case("arith.remf", "fmod")
      .Case("msl.precise_div", "divide")
      .Case("msl.precise_sqrt", "sqrt")
      .Default("");
}

/// Functions that the text defines itself.
static StringRef getOwnFunction(StringRef name) {
  return llvm::StringSwitch<StringRef>(name)
      .Case("math.erf", "error_function")
      .Case("math.log1p", "log_plus_one")
      .Case("math.expm1", "exp_minus_one")
      .Default("");
}

/// Functions that the text defines itself where an approximate form is allowed: Metal's own fast
/// form has no bound there, or one of an absolute error alone (docs/arithmetic.md).
static StringRef getOwnApproximation(StringRef name, bool isBeside) {
  if (isBeside)
    return name == "math.sin" ? "approximate_sin_beside_cos" : "approximate_cos_beside_sin";
  return llvm::StringSwitch<StringRef>(name)
      .Case("math.log", "approximate_log")
      .Case("math.log2", "approximate_log2")
      .Case("math.sin", "approximate_sin")
      .Case("math.cos", "approximate_cos")
      .Default("");
}

static bool isApproximate(Operation *op) {
  auto flags = dyn_cast<arith::ArithFastMathInterface>(op);
  return flags &&
         bitEnumContainsAll(flags.getFastMathFlagsAttr().getValue(), arith::FastMathFlags::afn);
}

/// A sine whose operand a cosine in the same block has, too, or a cosine with such a sine.
constexpr StringLiteral kBesideAttr = "msl.beside";

void TypeExplicator::markPairs(KernelOp kernel) {
  auto mark = [](Operation *sine) {
    for (Operation *cosine : sine->getOperand(0).getUsers())
      if (isa<math::CosOp>(cosine) && cosine->getBlock() == sine->getBlock() &&
          isApproximate(cosine))
        for (Operation *op : {sine, cosine})
          op->setAttr(kBesideAttr, UnitAttr::get(op->getContext()));
  };
  kernel.walk([&](math::SinOp sine) {
    if (isApproximate(sine))
      mark(sine);
  });
}

LogicalResult TypeExplicator::convertQuotient(Operation *op) {
  if (!isApproximate(op) || getElementTypeOrSelf(op->getResult(0).getType()).isF64())
    return convertFloat(op, BinaryKind::Div);
  Type type = op->getResult(0).getType();
  Value left = op->getOperand(0), right = op->getOperand(1);
  bool through = !getElementTypeOrSelf(type).isF32();
  Type computed = through ? withElement(type, builder.getF32Type()) : type;
  // Metal's bound ends at a divisor of 2^126, whose reciprocal is the smallest that is not
  // subnormal. No half is as large, and what tt-reciprocals has marked neither.
  auto flags = cast<arith::ArithFastMathInterface>(op).getFastMathFlagsAttr().getValue();
  bool isInBounds =
      getElementTypeOrSelf(type).isF16() || bitEnumContainsAll(flags, arith::FastMathFlags::arcp);
  SmallVector<Value> arguments;
  for (Value operand : {left, right})
    arguments.push_back(toType(computed, through ? getFloat(operand) : getNumber(operand)));
  return replace(op, toType(type, call(isInBounds ? "fast::divide" : "approximate_quotient",
                                       computed, arguments)));
}

LogicalResult TypeExplicator::convertMath(Operation *op) {
  Type type = op->getResult(0).getType();
  Type element = getElementTypeOrSelf(type);
  StringRef name = op->getName().getStringRef();
  if (isa<IntegerType>(element)) {
    StringRef function = getIntegerFunction(name), test = getTest(name);
    if (!test.empty()) {
      Value operand = op->getOperand(0);
      if (!isBFloat(operand.getType()))
        return replace(op, call(test, type, getWhole(operand)));
      if (test == "isnormal")
        return refuse(op, "has no form for bfloat in Metal");
      return replace(
          op, call(test, type, toType(withElement(type, builder.getF32Type()), getFloat(operand))));
    }
    if (function.empty())
      return refuse(op, "has no form in Metal");
    return replace(op, call(function, type, getWhole(op->getOperand(0), false)));
  }
  if (isa<arith::NegFOp>(op)) {
    Value operand = op->getOperand(0);
    bool isOne = isSplat(operand);
    Value result = negate(isBFloat(type) ? getFloat(operand) : getNumber(operand));
    if (isBFloat(type))
      result = toType(isOne ? element : type, result);
    return replace(op, isOne ? splat(result, type) : result);
  }
  StringRef exact = getExactFunction(name), rounded = getRoundedFunction(name),
            own = getOwnFunction(name);
  if (exact.empty() && rounded.empty() && own.empty())
    return refuse(op, "is a function that Metal does not have");
  // fma of half rounds once. By way of float it would round twice, as that of bfloat would: the
  // float is rounded to odd.
  bool through = isBFloat(type) || (element.isF16() && exact.empty());
  Type computed = through ? withElement(type, builder.getF32Type()) : type;
  SmallVector<Value> arguments;
  for (Value operand : op->getOperands())
    arguments.push_back(toType(computed, through ? getFloat(operand) : getNumber(operand)));
  // fast::tanh is NaN for large numbers (docs/apple-quirks.md, row 15).
  bool approximate = isApproximate(op) && !isa<math::TanhOp>(op);
  StringRef ofNumbers = isBFloat(type) && exact == "fma" ? "fma_to_odd"
                        : approximate ? getOwnApproximation(name, op->hasAttr(kBesideAttr))
                                      : StringRef();
  if (!ofNumbers.empty())
    return replace(op, toType(type, callByComponent(ofNumbers, computed, builder.getF32Type(),
                                                    arguments, false)));
  std::string function = !own.empty()    ? own.str()
                         : exact.empty() ? ((approximate ? "fast::" : "precise::") + rounded).str()
                                         : exact.str();
  return replace(op, toType(type, call(function, computed, arguments)));
}

/// The functions take and give bits as unsigned numbers, and have no form for vectors.
LogicalResult TypeExplicator::convertFloat64(Float64Op op) {
  Type type = op.getType(), element = getElementTypeOrSelf(type);
  Type returned = element.isInteger(1) ? element : withSign(element, true);
  std::string function = ("float64_" + op.getFunction()).str();
  return replace(op, callByComponent(function, type, returned, op.getInputs(), true));
}

/// The functions take and give signed numbers and floats, and have no form for vectors.
LogicalResult TypeExplicator::convertLibrary(LibraryOp op) {
  Type type = op.getType();
  return replace(op, callByComponent(("library_" + op.getFunction()).str(), type,
                                     getElementTypeOrSelf(type), op.getInputs(), false));
}

/// Calls a function of numbers for each component of a vector. It takes integers as signed or as
/// unsigned numbers.
Value TypeExplicator::callByComponent(StringRef function, Type type, Type returned,
                                      ValueRange inputs, bool isUnsigned) {
  SmallVector<Value> operands;
  bool areSplats = true;
  for (Value input : inputs) {
    bool isNumber = !isa<VectorType>(input.getType()) || isSplat(input);
    areSplats &= isNumber;
    if (!isa<IntegerType>(getElementTypeOrSelf(input)))
      operands.push_back(isNumber ? getNumber(input) : getWhole(input));
    else if (!isNumber)
      operands.push_back(getWhole(input, isUnsigned));
    else
      operands.push_back(isUnsigned ? getUnsigned(input) : getSigned(input));
  }
  if (areSplats) {
    Value result = call(function, returned, operands);
    return isa<VectorType>(type) ? splat(result, type) : result;
  }
  SmallVector<Value> parts;
  for (int64_t part = 0; part < cast<VectorType>(type).getNumElements(); ++part) {
    SmallVector<Value> arguments;
    for (Value value : operands)
      arguments.push_back(isa<VectorType>(value.getType())
                              ? SwizzleOp::create(builder, loc, getElementTypeOrSelf(value), value,
                                                  builder.getDenseI64ArrayAttr(part))
                              : value);
    parts.push_back(call(function, returned, arguments));
  }
  return VectorOp::create(builder, loc, withElement(type, returned), parts);
}
