// Floats, mathematical functions, SIMD-group functions and atomics.

#include "target/msl/KernelPrinter.h"
#include "target/msl/Types.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace triton_metal::msl;

static bool isBFloat(Type type) { return getElementTypeOrSelf(type).isBF16(); }

static Type withElement(Type type, Type element) {
  if (auto vector = dyn_cast<VectorType>(type))
    return VectorType::get(vector.getShape(), element);
  return element;
}

/// bfloat and half computed in float, where Metal has no such arithmetic or no such function.
Expr KernelPrinter::getFloat(Value value) {
  Expr expr = get(value);
  Type type = withElement(value.getType(), Float32Type::get(value.getContext()));
  if (getElementTypeOrSelf(value.getType()).isF32())
    return expr;
  bool splat = expr.isSplat;
  Expr result = cast(getTypeName(splat ? getElementTypeOrSelf(type) : type), expr);
  result.isSplat = splat;
  return result;
}

Expr KernelPrinter::buildFloat(Operation *op, StringRef symbol, int precedence) {
  Type type = op->getResult(0).getType();
  bool through = isBFloat(type);
  Expr a = through ? getFloat(op->getOperand(0)) : get(op->getOperand(0));
  Expr b = through ? getFloat(op->getOperand(1)) : get(op->getOperand(1));
  bool splat = a.isSplat && b.isSplat;
  Expr result = binary(a, symbol, b, precedence);
  if (through)
    result = cast(getTypeName(splat ? getElementTypeOrSelf(type) : type), result);
  result.isSplat = splat;
  return result;
}

Expr KernelPrinter::buildFloatCompare(Operation *op) {
  auto compare = cast<arith::CmpFOp>(op);
  Value left = compare.getLhs(), right = compare.getRhs();
  Type type = left.getType();
  bool isVector = isa<VectorType>(type);
  auto operand = [&](Value value) { return isBFloat(type) ? getFloat(value) : get(value); };
  Expr a = operand(left), b = operand(right);
  Type compared = isBFloat(type) ? withElement(type, Float32Type::get(type.getContext())) : type;
  auto whole = [&](Expr expr) { return expr.isSplat ? cast(getTypeName(compared), expr) : expr; };
  if (a.isSplat && b.isSplat)
    a = whole(a);
  auto negate = [&](Expr expr) {
    Expr result{"!" + inParens(expr, Unary), Unary};
    result.changing = expr.changing;
    return result;
  };
  // The unordered predicates are the negations of the opposite ordered ones.
  using P = arith::CmpFPredicate;
  switch (compare.getPredicate()) {
  case P::OEQ:
    return binary(a, "==", b, Equality);
  case P::UNE:
    return binary(a, "!=", b, Equality);
  case P::OLT:
    return binary(a, "<", b, Relation);
  case P::OLE:
    return binary(a, "<=", b, Relation);
  case P::OGT:
    return binary(a, ">", b, Relation);
  case P::OGE:
    return binary(a, ">=", b, Relation);
  case P::ULT:
    return negate(binary(a, ">=", b, Relation));
  case P::ULE:
    return negate(binary(a, ">", b, Relation));
  case P::UGT:
    return negate(binary(a, "<=", b, Relation));
  case P::UGE:
    return negate(binary(a, "<", b, Relation));
  case P::ORD:
  case P::UNO: {
    Expr either = call("isnan", {whole(a)});
    if (left != right)
      either = binary(either, isVector ? "|" : "||", call("isnan", {whole(b)}),
                      isVector ? BitOr : LogicalOr);
    return compare.getPredicate() == P::UNO ? either : negate(either);
  }
  case P::ONE:
  case P::UEQ: {
    Expr either = binary(binary(a, "<", b, Relation), isVector ? "|" : "||",
                         binary(a, ">", b, Relation), isVector ? BitOr : LogicalOr);
    return compare.getPredicate() == P::ONE ? either : negate(either);
  }
  case P::AlwaysTrue:
  case P::AlwaysFalse: {
    std::string text = compare.getPredicate() == P::AlwaysTrue ? "true" : "false";
    return isVector ? cast(getTypeName(op->getResult(0).getType()), Expr{text}) : Expr{text};
  }
  default:
    return fail(op, "is a comparison that Metal does not have");
  }
}

Expr KernelPrinter::buildMath(Operation *op) {
  Type type = op->getResult(0).getType();
  Type element = getElementTypeOrSelf(type);
  StringRef name = op->getName().getStringRef();
  // Integers.
  if (isa<IntegerType>(element)) {
    StringRef function = llvm::StringSwitch<StringRef>(name)
                             .Case("math.absi", "abs")
                             .Case("math.ctlz", "clz")
                             .Case("math.cttz", "ctz")
                             .Case("math.ctpop", "popcount")
                             .Default("");
    StringRef test = llvm::StringSwitch<StringRef>(name)
                         .Case("math.isnan", "isnan")
                         .Case("math.isinf", "isinf")
                         .Case("math.isfinite", "isfinite")
                         .Case("math.isnormal", "isnormal")
                         .Default("");
    if (!test.empty()) {
      Type operand = op->getOperand(0).getType();
      Expr value = isBFloat(operand) ? getFloat(op->getOperand(0)) : get(op->getOperand(0));
      if (isBFloat(operand) && test == "isnormal")
        return fail(op, "has no form for bfloat in Metal");
      if (value.isSplat)
        value = cast(getTypeName(withElement(operand, isBFloat(operand)
                                                          ? Float32Type::get(operand.getContext())
                                                          : getElementTypeOrSelf(operand))),
                     value);
      return call(test, {value});
    }
    if (function.empty())
      return fail(op, "has no form in Metal");
    return call(function, {makeWhole(getSigned(op->getOperand(0)), type)});
  }
  if (name == "arith.negf") {
    Expr value = isBFloat(type) ? getFloat(op->getOperand(0)) : get(op->getOperand(0));
    bool splat = value.isSplat;
    Expr result{"-" + inParens(value, Primary), Unary};
    result.changing = value.changing;
    if (isBFloat(type))
      result = cast(getTypeName(splat ? element : type), result);
    result.isSplat = splat;
    return result;
  }
  // Exact functions have one meaning; the others say which of their versions is meant. Those exist
  // for float alone.
  StringRef exact = llvm::StringSwitch<StringRef>(name)
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
  StringRef rounded = llvm::StringSwitch<StringRef>(name)
                          .Case("math.exp", "exp")
                          .Case("math.exp2", "exp2")
                          .Case("math.log", "log")
                          .Case("math.log2", "log2")
                          .Case("math.log10", "log10")
                          .Case("math.sin", "sin")
                          .Case("math.cos", "cos")
                          .Case("math.tan", "tan")
                          .Case("math.asin", "asin")
                          .Case("math.acos", "acos")
                          .Case("math.atan", "atan")
                          .Case("math.atan2", "atan2")
                          .Case("math.sinh", "sinh")
                          .Case("math.cosh", "cosh")
                          .Case("math.tanh", "tanh")
                          .Case("math.asinh", "asinh")
                          .Case("math.acosh", "acosh")
                          .Case("math.atanh", "atanh")
                          .Case("math.sqrt", "sqrt")
                          .Case("math.rsqrt", "rsqrt")
                          .Case("math.powf", "pow")
                          .Case("arith.remf", "fmod")
                          .Case("msl.precise_div", "divide")
                          .Case("msl.precise_sqrt", "sqrt")
                          .Default("");
  // Functions that the text brings along.
  StringRef own = llvm::StringSwitch<StringRef>(name)
                      .Case("math.erf", "error_function")
                      .Case("math.log1p", "log_plus_one")
                      .Case("math.expm1", "exp_minus_one")
                      .Default("");
  prelude.erf |= name == "math.erf";
  prelude.log1p |= name == "math.log1p";
  prelude.expm1 |= name == "math.expm1";
  if (exact.empty() && rounded.empty() && own.empty())
    return fail(op, "is a function that Metal does not have");
  prelude.maximum |= exact == "maximum";
  prelude.minimum |= exact == "minimum";
  // fma of half rounds once, which the way through float would not.
  bool through = isBFloat(type) || (element.isF16() && exact.empty());
  if (isBFloat(type) && exact == "fma")
    return fail(op, "has no bfloat form that rounds once");
  SmallVector<Expr> arguments;
  Type computed = through ? withElement(type, Float32Type::get(type.getContext())) : type;
  for (Value operand : op->getOperands()) {
    Expr expr = through ? getFloat(operand) : get(operand);
    if (expr.isSplat)
      expr = cast(getTypeName(computed), expr);
    arguments.push_back(expr);
  }
  bool fastest = false;
  if (auto flags = dyn_cast<arith::ArithFastMathInterface>(op))
    fastest =
        bitEnumContainsAll(flags.getFastMathFlagsAttr().getValue(), arith::FastMathFlags::afn);
  std::string function = !own.empty()    ? own.str()
                         : exact.empty() ? ((fastest ? "fast::" : "precise::") + rounded).str()
                                         : exact.str();
  Expr result = call(function, arguments);
  return through ? cast(getTypeName(type), result) : result;
}

Expr KernelPrinter::buildSimd(Operation *op) {
  Value value = op->getOperand(0);
  Type type = value.getType();
  Type element = getElementTypeOrSelf(type);
  unsigned bits = element.getIntOrFloatBitWidth();
  Expr operand = makeWhole(getSigned(value), type);
  if (auto reduce = dyn_cast<SimdReduceOp>(op)) {
    bool isFloat = isa<FloatType>(element);
    bool isUnsigned =
        reduce.getKind() == SimdReduceKind::UMin || reduce.getKind() == SimdReduceKind::UMax;
    bool isBits = reduce.getKind() == SimdReduceKind::And ||
                  reduce.getKind() == SimdReduceKind::Or || reduce.getKind() == SimdReduceKind::Xor;
    if (bits == 64 || bits == 1 || element.isBF16() || (isFloat && (isBits || isUnsigned)))
      return fail(op, "Metal has no such reduction over a SIMD-group");
    static const char *functions[] = {"simd_sum", "simd_product", "simd_min",
                                      "simd_max", "simd_min",     "simd_max",
                                      "simd_and", "simd_or",      "simd_xor"};
    if (isUnsigned) {
      operand = makeWhole(getUnsigned(value), type);
    }
    Expr result = call(functions[int(reduce.getKind())], {operand});
    result.isUnsigned = isUnsigned;
    return bits < 32 && !isFloat ? narrow(op, result) : result;
  }
  StringRef function = "simd_shuffle_xor";
  Expr by;
  if (auto shuffle = dyn_cast<SimdShuffleOp>(op)) {
    function = "simd_shuffle";
    by = cast("ushort", get(shuffle.getLane()));
  } else {
    by.text = std::to_string(cast<SimdShuffleXorOp>(op).getMask());
  }
  auto integer = [&](unsigned width) { return IntegerType::get(type.getContext(), width); };
  // Metal shuffles numbers of up to 32 bits; others travel as such.
  if (bits == 1) {
    std::string carrier = getTypeName(withElement(type, integer(32)));
    return cast(getTypeName(type), call(function, {cast(carrier, operand), by}));
  }
  if (element.isBF16()) {
    std::string carrier = getTypeName(withElement(type, integer(16)), true);
    return call("as_type<" + getTypeName(type) + ">",
                {call(function, {call("as_type<" + carrier + ">", {operand}), by})});
  }
  if (bits == 64) {
    if (isa<VectorType>(type) && getNumRegisters(type) > 2)
      return fail(op, "Metal cannot shuffle four 64-bit numbers at once");
    std::string carrier = isa<VectorType>(type) ? "uint4" : "uint2";
    return call("as_type<" + getTypeName(type) + ">",
                {call(function, {call("as_type<" + carrier + ">", {operand}), by})});
  }
  return call(function, {operand, by});
}

Expr KernelPrinter::buildAtomic(Operation *op) {
  Value base = op->getOperand(0), offset = op->getOperand(1);
  auto pointer = cast<PtrType>(base.getType());
  Type type = op->getResult(0).getType();
  StringRef space = getSpaceName(pointer.getSpace());
  if (isa<VectorType>(type))
    return fail(op, "is an atomic update of a vector");
  if (pointer.getSpace() != AddressSpace::Device && pointer.getSpace() != AddressSpace::Threadgroup)
    return fail(op, "updates memory that cannot be written");
  if (getElementTypeOrSelf(type).getIntOrFloatBitWidth() != 32)
    return fail(op, "Metal's atomic operations are for 32 bits");
  std::string address = inParens(getAddress(base, offset), Unary);
  auto pointerTo = [&](StringRef atomic) {
    return Expr{("(" + space + " " + atomic + " *)").str() + address, Unary};
  };
  auto rmwOp = dyn_cast<AtomicRMWOp>(op);
  if ((rmwOp ? rmwOp.getOrder() : cast<AtomicCASOp>(op).getOrder()) != MemoryOrder::Relaxed)
    return fail(op, "has an order, and Metal's atomics are relaxed: msl-order-atomics comes first");
  Expr relaxed{"memory_order_relaxed"};
  Value mask;
  Expr result;
  bool isFloat = isa<FloatType>(type);
  if (auto cas = dyn_cast<AtomicCASOp>(op)) {
    (pointer.getSpace() == AddressSpace::Device ? prelude.compareExchangeDevice
                                                : prelude.compareExchangeThreadgroup) = true;
    mask = cas.getMask();
    auto asBits = [&](Value value) {
      return isFloat ? call("as_type<uint>", {get(value)}) : getUnsigned(value);
    };
    result = call("compare_exchange",
                  {pointerTo("atomic_uint"), asBits(cas.getCompare()), asBits(cas.getValue())});
    if (isFloat)
      result = call("as_type<float>", {result});
    else
      result.isUnsigned = true;
  } else {
    auto rmw = cast<AtomicRMWOp>(op);
    mask = rmw.getMask();
    static const char *functions[] = {"add", "add", "min", "max", "min",
                                      "max", "and", "or",  "xor", ""};
    bool isUnsigned = rmw.getKind() == AtomicKind::UMin || rmw.getKind() == AtomicKind::UMax;
    if (rmw.getKind() == AtomicKind::FAdd) {
      if (pointer.getSpace() != AddressSpace::Device)
        return fail(op, "Metal adds floats atomically in device memory alone");
      result = call("atomic_fetch_add_explicit",
                    {pointerTo("atomic_float"), get(rmw.getValue()), relaxed});
    } else if (rmw.getKind() == AtomicKind::Exchange) {
      Expr value =
          isFloat ? call("as_type<uint>", {get(rmw.getValue())}) : getUnsigned(rmw.getValue());
      result = call("atomic_exchange_explicit", {pointerTo("atomic_uint"), value, relaxed});
      if (isFloat)
        result = call("as_type<float>", {result});
      else
        result.isUnsigned = true;
    } else {
      Expr value =
          makeWhole(isUnsigned ? getUnsigned(rmw.getValue()) : getSigned(rmw.getValue()), type);
      result = call(std::string("atomic_fetch_") + functions[int(rmw.getKind())] + "_explicit",
                    {pointerTo(isUnsigned ? "atomic_uint" : "atomic_int"), value, relaxed});
      result.isUnsigned = isUnsigned;
    }
  }
  if (!mask || op->use_empty())
    return result;
  Expr condition = get(mask), masked;
  masked.text = inParens(condition, LogicalOr) + " ? " + result.text + " : " +
                (isFloat             ? "0.0f"
                 : result.isUnsigned ? "0u"
                                     : "0");
  masked.precedence = Conditional;
  masked.isUnsigned = result.isUnsigned;
  masked.changing = result.changing;
  masked.changing.append(condition.changing.begin(), condition.changing.end());
  return masked;
}
