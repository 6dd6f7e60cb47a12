// Elementary functions in terms of what GPUs have. The precise forms are a model of their cost: a
// more exact reduction around the same instruction.
#include "Gpu.h"

using namespace llvm;

namespace triton_metal::gpu {

namespace {

constexpr float log2Of10 = 3.32192809f, log2Of10Low = 3.1e-8f;
constexpr float log2OfE = 1.44269502f, log2OfELow = 1.92596299e-8f;
constexpr float ln2 = 0.693147181f, ln2Low = -1.9e-9f;
constexpr float log10Of2 = 0.301029996f, log10Of2Low = -1.4e-9f;
constexpr float pi = 3.14159274f;

/// Writes formulas over floats.
class Formula {
public:
  Formula(IRBuilder<> &b, Gpu &gpu, bool isFast) : b(b), gpu(gpu), isFast(isFast) {}

  Value *number(double x) { return ConstantFP::get(b.getFloatTy(), x); }
  Value *fma(Value *x, Value *y, Value *z) {
    return b.CreateIntrinsic(Intrinsic::fma, {b.getFloatTy()}, {x, y, z});
  }
  Value *unit(Unit what, Value *x) { return gpu.unit(b, what, x); }
  Value *divide(Value *x, Value *y) { return gpu.divide(b, x, y, isFast); }

  /// base^x by way of 2^x, where `scale` + `low` is log2 of the base.
  Value *power(Value *x, float scale, float low) {
    Value *exponent = b.CreateFMul(x, number(scale));
    if (isFast)
      return unit(Unit::Exp2, exponent);
    Value *lost = fma(x, number(low), fma(x, number(scale), b.CreateFNeg(exponent)));
    Value *result = unit(Unit::Exp2, exponent);
    return fma(result, b.CreateFMul(lost, number(ln2)), result);
  }

  Value *logarithm(Value *x, float scale, float low) {
    Value *bits = unit(Unit::Log2, x);
    return isFast ? b.CreateFMul(bits, number(scale))
                  : fma(bits, number(scale), b.CreateFMul(bits, number(low)));
  }

  /// x modulo pi/2 around the nearest multiple, which stays in the angle: the unit knows its own
  /// period.
  Value *angle(Value *x) {
    if (isFast)
      return x;
    Value *turns = b.CreateUnaryIntrinsic(Intrinsic::rint, b.CreateFMul(x, number(1 / (2 * pi))));
    Value *rest = fma(turns, number(-6.28125), x);
    rest = fma(turns, number(-1.93500519e-3), rest);
    return fma(turns, number(-3.0199e-7), rest);
  }

  /// (e^2x - 1) / (e^2x + 1)
  Value *tanh(Value *x) {
    Value *e = power(b.CreateFAdd(x, x), log2OfE, log2OfELow);
    return divide(b.CreateFSub(e, number(1)), b.CreateFAdd(e, number(1)));
  }

  /// (e^x -+ e^-x) / 2
  Value *hyperbolic(Value *x, bool isSine) {
    Value *e = power(x, log2OfE, log2OfELow), *other = unit(Unit::Reciprocal, e);
    return b.CreateFMul(isSine ? b.CreateFSub(e, other) : b.CreateFAdd(e, other), number(0.5));
  }

private:
  IRBuilder<> &b;
  Gpu &gpu;
  bool isFast;
};

} // namespace

Value *lowerMath(IRBuilder<> &b, Gpu &gpu, StringRef name, ArrayRef<Value *> arguments) {
  auto [kind, rest] = name.split('.');
  StringRef function = rest.split('.').first;
  bool isFast = kind == "fast";
  Formula f(b, gpu, isFast);
  Value *x = arguments[0], *y = arguments.size() > 1 ? arguments[1] : nullptr;
  if (function == "fmin" || function == "min" || function == "fmax" || function == "max")
    return gpu.order(b, function.ends_with("max"), x, y);
  if (function == "exp2")
    return f.unit(Unit::Exp2, x);
  if (function == "exp")
    return f.power(x, log2OfE, log2OfELow);
  if (function == "exp10")
    return f.power(x, log2Of10, log2Of10Low);
  if (function == "log2")
    return f.unit(Unit::Log2, x);
  if (function == "log")
    return f.logarithm(x, ln2, ln2Low);
  if (function == "log10")
    return f.logarithm(x, log10Of2, log10Of2Low);
  if (function == "divide")
    return gpu.divide(b, x, y, isFast);
  if (function == "sqrt") {
    if (isFast)
      return f.unit(Unit::Root, x);
    Value *root = f.unit(Unit::ReciprocalRoot, x), *guess = b.CreateFMul(x, root);
    Value *error = f.fma(b.CreateFNeg(guess), guess, x);
    Value *better = f.fma(error, b.CreateFMul(root, f.number(0.5)), guess);
    return b.CreateSelect(b.CreateFCmpOGT(x, f.number(0)), better, x);
  }
  if (function == "rsqrt") {
    Value *root = f.unit(Unit::ReciprocalRoot, x);
    if (isFast)
      return root;
    Value *error = f.fma(b.CreateFNeg(b.CreateFMul(x, root)), root, f.number(1));
    return f.fma(b.CreateFMul(error, f.number(0.5)), root, root);
  }
  if (function == "sin" || function == "cos")
    return f.unit(function == "sin" ? Unit::Sine : Unit::Cosine, f.angle(x));
  if (function == "tan") {
    Value *angle = f.angle(x);
    return f.divide(f.unit(Unit::Sine, angle), f.unit(Unit::Cosine, angle));
  }
  if (function == "sinpi" || function == "cospi")
    return f.unit(function == "sinpi" ? Unit::Sine : Unit::Cosine, b.CreateFMul(x, f.number(pi)));
  if (function == "tanh")
    return f.tanh(x);
  if (function == "sinh" || function == "cosh")
    return f.hyperbolic(x, function == "sinh");
  if (function == "pow" || function == "powr")
    return f.unit(Unit::Exp2, b.CreateFMul(y, f.unit(Unit::Log2, x)));
  if (function == "fmod") {
    Value *whole = b.CreateUnaryIntrinsic(Intrinsic::trunc, f.divide(x, y));
    return f.fma(b.CreateFNeg(whole), y, x);
  }
  return nullptr;
}

} // namespace triton_metal::gpu
