// Rows 14 and 15: what fast math changes.
#include "host_device/quirks/Matchers.h"
#include <cmath>

using namespace clang;
using llvm::StringRef;

namespace triton_metal::quirks {

/// The value of a float constant.
static std::optional<double> floatConstant(const Scan &scan, Value value) {
  value = scan.values.resolve(value);
  if (!value || value.expr->isValueDependent())
    return std::nullopt;
  if (const auto *construct = dyn_cast<CXXConstructExpr>(value.expr);
      construct && construct->getNumArgs() == 1)
    return floatConstant(scan, {construct->getArg(0), value.frame});
  llvm::APFloat number(0.0f);
  if (value.expr->getType()->isRealFloatingType() &&
      value.expr->EvaluateAsFloat(number, scan.values.ast)) {
    bool lost = false;
    number.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &lost);
    return number.convertToDouble();
  }
  if (const auto *cast = dyn_cast<CastExpr>(value.expr))
    return floatConstant(scan, {cast->getSubExpr(), value.frame});
  return std::nullopt;
}

static bool isSpecial(std::optional<double> number) {
  return number && (std::isnan(*number) || std::isinf(*number));
}

/// An infinity or NaN of the library's macros, or the largest number of a float type.
static bool isExtreme(std::optional<double> number) {
  if (!number)
    return false;
  double size = std::fabs(*number);
  return isSpecial(number) || size == 65504.0 || size >= 3.38e38;
}

static bool isMin(StringRef name) {
  return name == "min" || name == "max" || name == "fmin" || name == "fmax" || name == "clamp" ||
         name == "fmin3" || name == "fmax3" || name == "min3" || name == "max3";
}

/// Row 14: constructs whose result fast math changes.
static void matchFastMath(const Scan &scan) {
  const char *cure = "; the text does not ask for '#pragma METAL fp math_mode(safe)'";
  for (const Call &call : scan.walk.calls) {
    if (call.name == "isnan" || call.name == "isinf" || call.name == "isfinite" ||
        call.name == "isnormal" || call.name == "isunordered" || call.name == "isordered") {
      scan.report(14, QuirkClass::Defect, call.location,
                  "'" + call.name + "' is a constant under fast math" + cure);
    } else if (isMin(call.name)) {
      for (const Expr *argument : call.call->arguments())
        if (Values::isFloat(argument->getType()) &&
            isExtreme(floatConstant(scan, {argument, call.frame}))) {
          scan.report(14, QuirkClass::Defect, call.location,
                      "fast math removes '" + call.name +
                          "' with the largest number or an infinity" + cure);
          break;
        }
    }
  }
  for (const Operator &event : scan.walk.operators) {
    auto operation = scan.values.operation(event.expr, event.frame);
    if (!operation)
      continue;
    Value left = scan.values.resolve(operation->left),
          right = scan.values.resolve(operation->right);
    if (!left || !right || !Values::isFloat(left.expr->getType()))
      continue;
    if (BinaryOperator::isComparisonOp(operation->code)) {
      bool comparesItself = scan.values.key(left) == scan.values.key(right) &&
                            (operation->code == BO_EQ || operation->code == BO_NE);
      if (comparesItself || isSpecial(floatConstant(scan, left)) ||
          isSpecial(floatConstant(scan, right)))
        scan.report(14, QuirkClass::Defect, event.location,
                    llvm::Twine("fast math decides this comparison with a NaN or an infinity "
                                "without looking") +
                        cure);
      continue;
    }
    if (operation->code != BO_Add)
      continue;
    // a * m + (-1e10) * (1 - m)
    for (Value side : {left, right}) {
      auto product = scan.values.operation(side);
      if (!product || product->code != BO_Mul)
        continue;
      for (auto [factor, other] :
           {std::pair(product->left, product->right), std::pair(product->right, product->left)}) {
        std::optional<double> number = floatConstant(scan, factor);
        auto difference = scan.values.operation(scan.values.resolve(other));
        if (number && std::fabs(*number) >= 1e4 && difference && difference->code == BO_Sub &&
            floatConstant(scan, difference->left) == 1.0)
          scan.report(14, QuirkClass::Defect, event.location,
                      llvm::Twine("fast math distributes the large factor over the mask") + cure);
      }
    }
  }
}

/// Whether a function's argument is bounded by a constant of at most `most`.
static bool isBounded(const Scan &scan, Value value, double most) {
  value = scan.values.resolve(value);
  const auto *call = dyn_cast_or_null<CallExpr>(value.expr);
  if (!call)
    return floatConstant(scan, value).value_or(most + 1) <= most;
  StringRef name = scan.values.libraryName(call);
  if (name == "clamp" && call->getNumArgs() == 3)
    return floatConstant(scan, {call->getArg(2), value.frame}).value_or(most + 1) <= most;
  if (name == "min" || name == "fmin")
    for (const Expr *argument : call->arguments())
      if (floatConstant(scan, {argument, value.frame}).value_or(most + 1) <= most)
        return true;
  return false;
}

void matchFloats(const Scan &scan) {
  for (const Call &call : scan.walk.calls) {
    if (call.name != "tanh" || call.call->getNumArgs() != 1)
      continue;
    StringRef space = Values::libraryNamespace(call.call);
    if (space == "precise" || (space.empty() && scan.safeMath) ||
        isBounded(scan, {call.call->getArg(0), call.frame}, 44.0))
      continue;
    scan.report(15, QuirkClass::Defect, call.location,
                llvm::Twine(space.empty() ? "'tanh' without the safe math mode" : "'fast::tanh'") +
                    " gives NaN for large arguments; use precise::tanh");
  }
  if (!scan.safeMath)
    matchFastMath(scan);
}

} // namespace triton_metal::quirks
