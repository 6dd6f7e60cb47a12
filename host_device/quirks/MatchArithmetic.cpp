// Rows 2, 3, 7 and 17: remainders, and arithmetic that may overflow.
#include "host_device/quirks/Matchers.h"
#include "llvm/Support/MathExtras.h"

using namespace clang;

namespace triton_metal::quirks {

/// A constant that is a number or a vector of one number.
static std::optional<int64_t> constantOf(Values &values, Value value) {
  value = values.resolveNumber(value);
  while (value.expr) {
    if (const auto *construct = dyn_cast<CXXConstructExpr>(value.expr);
        construct && construct->getNumArgs() == 1)
      value = values.resolveNumber({construct->getArg(0), value.frame});
    else if (const auto *cast = dyn_cast<CastExpr>(value.expr);
             cast && Values::vectorOf(cast->getType()))
      value = values.resolveNumber({cast->getSubExpr(), value.frame});
    else
      break;
  }
  return values.constant(value);
}

static bool isPowerOfTwo(int64_t number) {
  return number > 0 && llvm::isPowerOf2_64(uint64_t(number));
}

static void matchQuotientRemainder(const Scan &scan, const Operator &event,
                                   const Operation &remainder) {
  std::optional<int64_t> divisor = constantOf(scan.values, remainder.right);
  if (!divisor || *divisor < 3 || isPowerOfTwo(*divisor))
    return;
  for (Value dividend : scan.values.alternatives(scan.values.resolveNumber(remainder.left))) {
    dividend = scan.values.resolveNumber(dividend);
    auto quotient = dividend ? scan.values.operation(dividend) : std::nullopt;
    if (!quotient || (quotient->code != BO_Div && quotient->code != BO_Shr) ||
        !quotient->type->isUnsignedIntegerType())
      continue;
    std::optional<int64_t> by = constantOf(scan.values, quotient->right);
    if (!by || *by < (quotient->code == BO_Div ? 2 : 1))
      continue;
    scan.report(2, QuirkClass::Defect, event.location,
                "the remainder by " + llvm::Twine(*divisor) + " of an unsigned number that was " +
                    (quotient->code == BO_Div ? "divided by " : "shifted right by ") +
                    llvm::Twine(*by) + "; pass the dividend through a volatile variable");
    return;
  }
}

static void matchWideRemainder(const Scan &scan, const Operator &event,
                               const Operation &operation) {
  if (scan.values.ast.getTypeSize(operation.type) != 64 || Values::vectorOf(event.expr->getType()))
    return;
  Range a = scan.values.range(operation.left), b = scan.values.range(operation.right);
  auto isNarrow = [](const Range &range) {
    return Range{0, UINT32_MAX}.contains(range) || Range{INT32_MIN, INT32_MAX}.contains(range);
  };
  if (!isNarrow(a) || !isNarrow(b) || (a.isConstant() && b.isConstant()))
    return;
  if (b.isConstant() && b.low > 0 && isPowerOfTwo(int64_t(b.low)))
    return;
  scan.report(3, QuirkClass::Defect, event.location,
              llvm::Twine("a 64-bit ") + (operation.code == BO_Rem ? "remainder" : "quotient") +
                  " of two numbers of at most 32 bits; compute it in 32 bits");
}

/// `(y * M) >> S` or `mulhi(y, M)`, below conversions and sums.
static bool hasReciprocal(const Scan &scan, Value value, unsigned depth = 0) {
  if (depth > 8)
    return false;
  value = scan.values.resolveNumber(value);
  if (!value)
    return false;
  if (const auto *call = dyn_cast<CallExpr>(value.expr))
    if (scan.values.libraryName(call) == "mulhi")
      return true;
  auto operation = scan.values.operation(value);
  if (!operation)
    return false;
  if (operation->code == BO_Add || operation->code == BO_Sub)
    return hasReciprocal(scan, operation->left, depth + 1) ||
           hasReciprocal(scan, operation->right, depth + 1);
  if (operation->code != BO_Shr)
    return false;
  std::optional<int64_t> shift = constantOf(scan.values, operation->right);
  if (!shift || *shift < 1)
    return false;
  Value shifted = scan.values.resolveNumber(operation->left);
  if (const auto *call = dyn_cast_or_null<CallExpr>(shifted.expr);
      call && scan.values.libraryName(call) == "mulhi")
    return true;
  auto product = shifted ? scan.values.operation(shifted) : std::nullopt;
  if (!product || product->code != BO_Mul)
    return false;
  for (Value factor : {product->left, product->right})
    if (auto number = constantOf(scan.values, factor);
        number && *number > 2 && !isPowerOfTwo(*number))
      return true;
  return false;
}

/// `x - C * q` in any spelling, with q from a multiplication and a shift.
static bool isFastRemainder(const Scan &scan, Value value) {
  auto operation = value ? scan.values.operation(value) : std::nullopt;
  if (!operation || (operation->code != BO_Sub && operation->code != BO_Add))
    return false;
  for (Value side : {operation->left, operation->right}) {
    Value number = scan.values.resolveNumber(side);
    auto product = number ? scan.values.operation(number) : std::nullopt;
    if (!product || product->code != BO_Mul)
      continue;
    for (auto [factor, quotient] :
         {std::pair(product->left, product->right), std::pair(product->right, product->left)}) {
      auto divisor = constantOf(scan.values, factor);
      if (divisor && *divisor != 0 && !isPowerOfTwo(std::abs(*divisor)) &&
          hasReciprocal(scan, quotient))
        return true;
    }
  }
  return false;
}

/// The fast remainder that is shifted as a part of an index.
static Value shiftedRemainder(const Scan &scan, Value index, unsigned depth = 0) {
  if (depth > 12)
    return {};
  index = scan.values.resolveNumber(index);
  auto operation = index ? scan.values.operation(index) : std::nullopt;
  if (!operation)
    return {};
  auto remainderIn = [&](Value side) {
    Value value = scan.values.resolveNumber(side);
    return isFastRemainder(scan, value) ? value : Value();
  };
  if (operation->code == BO_Shl) {
    if (Value found = remainderIn(operation->left))
      return found;
  } else if (operation->code == BO_Mul) {
    for (auto [factor, side] : {std::pair(operation->left, operation->right),
                                std::pair(operation->right, operation->left)})
      if (auto number = constantOf(scan.values, factor);
          number && *number > 1 && isPowerOfTwo(*number))
        if (Value found = remainderIn(side))
          return found;
  }
  if (operation->code == BO_Add || operation->code == BO_Sub || operation->code == BO_Mul ||
      operation->code == BO_Or || operation->code == BO_Shl) {
    if (Value found = shiftedRemainder(scan, operation->left, depth + 1))
      return found;
    return shiftedRemainder(scan, operation->right, depth + 1);
  }
  return {};
}

static void matchBranchedAddresses(const Scan &scan) {
  for (const Access &access : scan.walk.accesses) {
    if (!access.loads() || Scan::spaceOf(access) == Space::Thread)
      continue;
    bool isBranched = false;
    for (const Scope *scope = access.scope; scope; scope = scope->outer)
      isBranched |= scope->kind != Scope::Loop;
    if (!isBranched)
      continue;
    Pointer pointer = scan.pointerOf(access);
    for (const Pointer::Step &step : pointer.steps) {
      Value remainder = shiftedRemainder(scan, step.index);
      if (!remainder)
        continue;
      // A condition on the same remainder computes it before the branch.
      bool isShared = false;
      for (const Scope *scope = access.scope; scope; scope = scope->outer)
        if (scope->condition)
          scan.values.visitSources({scope->condition, scope->frame}, [&](Value source) {
            isShared |= source.expr == remainder.expr && source.frame == remainder.frame;
          });
      if (!isShared)
        scan.report(7, QuirkClass::Defect, access.location,
                    "the address of a load in a branch contains a shifted remainder that is "
                    "computed by a multiplication and a shift; use '%', or test the remainder in "
                    "the branch's condition");
      break;
    }
  }
}

/// The dividend x of a product `x / y * y`, which is no greater than x. There is none if x / y may
/// be the least number divided by -1.
static Value dividendOf(const Scan &scan, const Operation &product) {
  if (product.code != BO_Mul)
    return {};
  for (auto [side, factor] :
       {std::pair(product.left, product.right), std::pair(product.right, product.left)}) {
    auto quotient = scan.values.operation(scan.values.resolveNumber(side));
    if (!quotient || quotient->code != BO_Div ||
        scan.values.key(quotient->right) != scan.values.key(factor))
      continue;
    Range least = Values::rangeOf(quotient->type, scan.values.ast);
    if (scan.values.range(quotient->left).low > least.low ||
        !scan.values.range(quotient->right).contains({-1, -1}))
      return quotient->left;
  }
  return {};
}

/// Whether this is `x / y * y` or `x - x / y * y`.
static bool isPartOfRemainder(const Scan &scan, const Operation &operation) {
  if (operation.code == BO_Mul)
    return bool(dividendOf(scan, operation));
  if (operation.code != BO_Sub)
    return false;
  auto product = scan.values.operation(scan.values.resolve(operation.right));
  Value dividend = product ? dividendOf(scan, *product) : Value();
  return dividend && scan.values.key(dividend) == scan.values.key(operation.left);
}

static void matchOverflow(const Scan &scan, const Operator &event, const Operation &operation) {
  if (Values::vectorOf(event.expr->getType()) || isPartOfRemainder(scan, operation))
    return;
  Range type = Values::rangeOf(operation.type, scan.values.ast);
  Range a = scan.values.range(operation.left), b = scan.values.range(operation.right);
  if (operation.code == BO_Rem) {
    if (a.low < 0 || b.low < 0)
      scan.report(17, QuirkClass::Unproven, event.location,
                  llvm::Twine("the ") + (a.low < 0 ? "dividend" : "divisor") +
                      " of this signed remainder may be negative");
    return;
  }
  __int128 low = 0, high = 0;
  switch (operation.code) {
  case BO_Add:
    low = a.low + b.low, high = a.high + b.high;
    break;
  case BO_Sub:
    low = a.low - b.high, high = a.high - b.low;
    break;
  case BO_Mul: {
    // No operand has more than 64 bits, so that no product has more than 128.
    std::initializer_list<__int128> corners = {a.low * b.low, a.low * b.high, a.high * b.low,
                                               a.high * b.high};
    low = std::min(corners), high = std::max(corners);
    break;
  }
  case BO_Shl:
    if (b.low < 0 || b.high > 62) {
      low = type.low - 1;
      break;
    }
    low = std::min(a.low << int(b.low), a.low << int(b.high));
    high = std::max(a.high << int(b.low), a.high << int(b.high));
    break;
  default:
    return;
  }
  if (!type.contains({low, high}))
    scan.report(17, QuirkClass::Unproven, event.location,
                llvm::Twine("the signed ") +
                    (operation.code == BO_Add   ? "sum"
                     : operation.code == BO_Sub ? "difference"
                     : operation.code == BO_Mul ? "product"
                                                : "shift") +
                    " may overflow for all that the text says");
}

void matchArithmetic(const Scan &scan) {
  for (const Operator &event : scan.walk.operators) {
    auto operation = scan.values.operation(event.expr, event.frame);
    if (!operation || !operation->type->isIntegerType())
      continue;
    if (operation->code == BO_Rem)
      matchQuotientRemainder(scan, event, *operation);
    if (operation->code == BO_Rem || operation->code == BO_Div)
      matchWideRemainder(scan, event, *operation);
    if (operation->type->isSignedIntegerType() && !event.expr->getType()->isPointerType())
      matchOverflow(scan, event, *operation);
  }
  matchBranchedAddresses(scan);
}

} // namespace triton_metal::quirks
