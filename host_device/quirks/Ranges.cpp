// The numbers that integer expressions may have, and how often loops run.
#include "host_device/msl/MetalAttributes.h"
#include "host_device/quirks/Values.h"
#include "clang/AST/Attr.h"
#include "llvm/ADT/StringSwitch.h"

using namespace clang;
using llvm::StringRef;

namespace triton_metal::quirks {

Range Values::rangeOf(QualType type, const ASTContext &ast) {
  if (auto vector = vectorOf(type))
    type = vector->first;
  if (type->isBooleanType())
    return {0, 1};
  if (!type->isIntegralOrEnumerationType())
    return {-(__int128(1) << 64), __int128(1) << 64};
  unsigned bits = unsigned(ast.getTypeSize(type));
  if (type->isUnsignedIntegerOrEnumerationType())
    return {0, (__int128(1) << bits) - 1};
  return {-(__int128(1) << (bits - 1)), (__int128(1) << (bits - 1)) - 1};
}

std::optional<int64_t> Values::constant(Value value) {
  if (!value.expr || !value.expr->getType()->isIntegralOrEnumerationType())
    return std::nullopt;
  Range found = range(value);
  if (!found.isConstant() || found.low > INT64_MAX || found.low < INT64_MIN)
    return std::nullopt;
  return int64_t(found.low);
}

Range Values::range(Value value) {
  if (!value.expr)
    return {-(__int128(1) << 64), __int128(1) << 64};
  auto place = std::pair(value.expr, value.frame);
  auto found = ranges.find(place);
  if (found != ranges.end())
    return found->second;
  Range whole = rangeOf(value.expr->getType(), ast);
  // An expression that depends on itself, or on too much.
  if (active.empty())
    rangeSteps = 0;
  if (++rangeSteps > 4096 || active.size() > 200 || !active.insert(place).second) {
    isCyclic = true;
    return whole;
  }
  Range result = computeRange(value);
  active.erase(place);
  if (!whole.contains(result))
    result = whole;
  // What is found inside a cycle is only known to be enough for the expression that it began with.
  if (!isCyclic || active.empty())
    ranges.try_emplace(place, result);
  if (active.empty())
    isCyclic = false;
  return result;
}

/// What Metal promises of a position, or what a launch can have at most.
static std::optional<Range> rangeOfPosition(const VarDecl *variable) {
  for (const auto *attribute : variable->specific_attrs<AnnotateAttr>()) {
    StringRef name = metalName(attribute);
    int64_t high =
        llvm::StringSwitch<int64_t>(name)
            .Cases({"thread_index_in_simdgroup", "simdgroup_index_in_threadgroup"}, 31)
            .Case("thread_index_in_quadgroup", 3)
            .Case("quadgroup_index_in_threadgroup", 255)
            .Cases({"thread_index_in_threadgroup", "thread_position_in_threadgroup"}, 1023)
            .Cases({"simdgroups_per_threadgroup", "threads_per_simdgroup", "thread_execution_width",
                    "dispatch_simdgroups_per_threadgroup"},
                   32)
            .Cases({"threads_per_threadgroup", "dispatch_threads_per_threadgroup"}, 1024)
            .Cases({"thread_position_in_grid", "threadgroup_position_in_grid",
                    "threadgroups_per_grid", "threads_per_grid", "grid_size", "grid_origin"},
                   INT32_MAX)
            .Default(-1);
    if (high >= 0)
      return Range{0, high};
  }
  return std::nullopt;
}

static Range unite(const Range &a, const Range &b) {
  return {std::min(a.low, b.low), std::max(a.high, b.high)};
}

Range Values::rangeOfVariable(const VarDecl *variable, const Frame *frame, QualType type) {
  Range whole = rangeOf(type, ast);
  if (std::optional<Range> position = rangeOfPosition(variable))
    return *position;
  if (variable->getType().isVolatileQualified() || variable->getType()->isArrayType())
    return whole;
  if (const ForStmt *loop = loopOf(variable)) {
    const VariableFacts &changes = facts(variable, nullptr);
    std::optional<Counter> counter = counterOf(loop);
    bool isPlain = changes.assigned.empty() && !changedIn(loop->getBody()).contains(variable);
    if (counter && isPlain && counter->start && counter->bound) {
      Range start = range({counter->start, frame}), bound = range({counter->bound, frame});
      bool isEqual = counter->comparison == BO_LE || counter->comparison == BO_GE;
      bool isUp = counter->comparison == BO_LT || counter->comparison == BO_LE;
      if (counter->comparison == BO_NE)
        isUp = !counter->isSubtracted;
      if (isUp && !counter->isSubtracted)
        return {start.low, std::max(start.low, std::min(whole.high, bound.high - !isEqual))};
      if (!isUp && counter->isSubtracted)
        return {std::min(start.high, std::max(whole.low, bound.low + !isEqual)), start.high};
    }
    return whole;
  }
  const VariableFacts &changes = facts(variable, nullptr);
  if (!variable->isLocalVarDecl() || changes.escapes || variable->isStaticLocal())
    return whole;
  std::optional<Range> all;
  if (variable->getInit())
    all = range({variable->getInit(), frame});
  for (const Expr *assigned : changes.assigned) {
    Range next = range({assigned, frame});
    all = all ? unite(*all, next) : next;
  }
  for (const Expr *update : changes.updates) {
    Range next = range({update, frame});
    all = all ? unite(*all, next) : next;
  }
  return all.value_or(whole);
}

Range Values::rangeOfCall(const CallExpr *call, const Frame *frame, const Range &whole) {
  StringRef name = libraryName(call);
  auto argument = [&](unsigned i) { return range({call->getArg(i), frame}); };
  if (name == "min" || name == "max") {
    if (call->getNumArgs() == 2) {
      Range a = argument(0), b = argument(1);
      return name == "min" ? Range{std::min(a.low, b.low), std::min(a.high, b.high)}
                           : Range{std::max(a.low, b.low), std::max(a.high, b.high)};
    }
  } else if (name == "clamp" && call->getNumArgs() == 3) {
    Range low = argument(1), high = argument(2);
    if (low.low <= high.high)
      return {low.low, high.high};
  } else if (name == "popcount" || name == "clz" || name == "ctz") {
    return {0, 64};
  } else if (name == "as_type" && call->getNumArgs() == 1 &&
             call->getArg(0)->getType()->isIntegerType()) {
    Range inner = argument(0);
    return whole.contains(inner) ? inner : whole;
  } else if (name.starts_with("simd_shuffle") || name.starts_with("simd_broadcast") ||
             name.starts_with("quad_shuffle") || name.starts_with("quad_broadcast") ||
             name == "simd_min" || name == "simd_max" || name == "__tm_load") {
    if (call->getNumArgs() > 0)
      return argument(0);
  }
  return whole;
}

Range Values::computeRange(Value value) {
  Range whole = rangeOf(value.expr->getType(), ast);
  const Expr *expr = plain(value.expr);
  if (expr != value.expr && expr->getType()->isIntegralOrEnumerationType())
    return range({expr, value.frame});
  if (const auto *literal = dyn_cast<IntegerLiteral>(expr)) {
    llvm::APSInt number(literal->getValue(), literal->getType()->isUnsignedIntegerType());
    __int128 exact =
        number.isUnsigned() ? __int128(number.getZExtValue()) : __int128(number.getSExtValue());
    return {exact, exact};
  }
  if (const auto *cast = dyn_cast<CastExpr>(expr)) {
    switch (cast->getCastKind()) {
    case CK_IntegralCast: {
      Range inner = range({cast->getSubExpr(), value.frame});
      return whole.contains(inner) ? inner : whole;
    }
    case CK_IntegralToBoolean:
    case CK_FloatingToBoolean:
      return {0, 1};
    default:
      break;
    }
  }
  if (const VarDecl *variable = variableOf(expr)) {
    if (Value next = single({expr, value.frame});
        next && next.expr->getType()->isIntegralOrEnumerationType())
      return range(next);
    Expr::EvalResult result;
    if (!variable->isLocalVarDecl() && !isa<ParmVarDecl>(variable) &&
        expr->EvaluateAsInt(result, ast)) {
      __int128 exact = result.Val.getInt().getExtValue();
      if (result.Val.getInt().isUnsigned())
        exact = result.Val.getInt().getZExtValue();
      return {exact, exact};
    }
    return rangeOfVariable(variable, value.frame, expr->getType());
  }
  if (const auto *member = dyn_cast<MemberExpr>(expr)) {
    // A component of a position.
    const Expr *base = member;
    while (const auto *outer = dyn_cast<MemberExpr>(base))
      base = plain(outer->getBase());
    if (const VarDecl *variable = variableOf(base)) {
      Value source = resolve({base, value.frame});
      if (const VarDecl *original = variableOf(source.expr))
        variable = original;
      if (std::optional<Range> position = rangeOfPosition(variable))
        return *position;
    }
    return whole;
  }
  if (const auto *choice = dyn_cast<ConditionalOperator>(expr))
    return unite(range({choice->getTrueExpr(), value.frame}),
                 range({choice->getFalseExpr(), value.frame}));
  if (const auto *unary = dyn_cast<UnaryOperator>(expr)) {
    Range inner = range({unary->getSubExpr(), value.frame});
    switch (unary->getOpcode()) {
    case UO_Plus:
      return inner;
    case UO_Minus:
      return {-inner.high, -inner.low};
    case UO_Not:
      return expr->getType()->isSignedIntegerType() ? Range{~inner.high, ~inner.low} : whole;
    case UO_LNot:
      return {0, 1};
    default:
      return whole;
    }
  }
  if (const auto *call = dyn_cast<CallExpr>(expr); call && !isa<CXXOperatorCallExpr>(call)) {
    if (Value next = returned(call, value.frame))
      return range(next);
    return rangeOfCall(call, value.frame, whole);
  }
  auto binary = operation(expr, value.frame);
  if (!binary || vectorOf(expr->getType())) {
    Expr::EvalResult result;
    if (!isa<ArraySubscriptExpr>(expr) && !expr->isValueDependent() &&
        expr->EvaluateAsInt(result, ast)) {
      const llvm::APSInt &number = result.Val.getInt();
      __int128 exact =
          number.isUnsigned() ? __int128(number.getZExtValue()) : __int128(number.getSExtValue());
      return {exact, exact};
    }
    return whole;
  }
  Range a = range(binary->left), b = range(binary->right);
  auto corners = [](std::initializer_list<__int128> all) {
    return Range{std::min(all), std::max(all)};
  };
  constexpr __int128 large = __int128(1) << 62;
  bool areSmall = a.low > -large && a.high < large && b.low > -large && b.high < large;
  switch (binary->code) {
  case BO_Add:
    return {a.low + b.low, a.high + b.high};
  case BO_Sub:
    return {a.low - b.high, a.high - b.low};
  case BO_Mul:
    if (!areSmall)
      return whole;
    return corners({a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high});
  case BO_Div:
    if (b.low <= 0)
      return a.low >= 0 && b.low >= 0 ? Range{0, a.high} : whole;
    return corners({a.low / b.low, a.low / b.high, a.high / b.low, a.high / b.high});
  case BO_Rem: {
    __int128 most = std::max(b.high < 0 ? -b.high : b.high, b.low < 0 ? -b.low : b.low);
    most = most > 0 ? most - 1 : 0;
    return {a.low < 0 ? std::max(a.low, -most) : 0, a.high < 0 ? 0 : std::min(a.high, most)};
  }
  case BO_And:
    if (a.low >= 0 && b.low >= 0)
      return {0, std::min(a.high, b.high)};
    if (b.low >= 0)
      return {0, b.high};
    if (a.low >= 0)
      return {0, a.high};
    return whole;
  case BO_Or:
  case BO_Xor:
    if (a.low >= 0 && b.low >= 0) {
      __int128 most = std::max(a.high, b.high);
      __int128 ones = 1;
      while (ones <= most)
        ones <<= 1;
      return {0, ones - 1};
    }
    return whole;
  case BO_Shl:
    if (b.low < 0 || b.high > 63 || !areSmall || a.high > (__int128(1) << 32) ||
        a.low < -(__int128(1) << 32))
      return whole;
    return corners(
        {a.low << int(b.low), a.low << int(b.high), a.high << int(b.low), a.high << int(b.high)});
  case BO_Shr:
    if (b.low < 0 || b.high > 63)
      return a.low >= 0 ? Range{0, a.high} : whole;
    return corners(
        {a.low >> int(b.low), a.low >> int(b.high), a.high >> int(b.low), a.high >> int(b.high)});
  default:
    return binary->type->isBooleanType() ? Range{0, 1} : whole;
  }
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

std::optional<Counter> counterOf(const ForStmt *loop) {
  const auto *condition =
      loop->getCond() ? dyn_cast<BinaryOperator>(plain(loop->getCond())) : nullptr;
  if (!condition || !condition->isComparisonOp() || !loop->getInc())
    return std::nullopt;
  Counter counter;
  const Expr *inc = plain(loop->getInc());
  if (const auto *unary = dyn_cast<UnaryOperator>(inc)) {
    if (!unary->isIncrementDecrementOp())
      return std::nullopt;
    counter.variable = variableOf(unary->getSubExpr());
    counter.isSubtracted = unary->isDecrementOp();
    counter.isOne = true;
  } else if (const auto *binary = dyn_cast<BinaryOperator>(inc)) {
    counter.variable = variableOf(binary->getLHS());
    if (binary->getOpcode() == BO_AddAssign || binary->getOpcode() == BO_SubAssign) {
      counter.step = binary->getRHS();
      counter.isSubtracted = binary->getOpcode() == BO_SubAssign;
    } else if (binary->getOpcode() == BO_Assign) {
      const Expr *value = plain(binary->getRHS());
      while (const auto *cast = dyn_cast<CastExpr>(value))
        value = plain(cast->getSubExpr());
      const auto *sum = dyn_cast<BinaryOperator>(value);
      if (!sum || !sum->isAdditiveOp())
        return std::nullopt;
      auto isCounter = [&](const Expr *expr) {
        expr = plain(expr);
        while (const auto *cast = dyn_cast<CastExpr>(expr))
          expr = plain(cast->getSubExpr());
        return variableOf(expr) == counter.variable;
      };
      if (isCounter(sum->getLHS()))
        counter.step = sum->getRHS();
      else if (isCounter(sum->getRHS()) && sum->getOpcode() == BO_Add)
        counter.step = sum->getLHS();
      else
        return std::nullopt;
      counter.isSubtracted = sum->getOpcode() == BO_Sub;
    } else {
      return std::nullopt;
    }
  }
  if (!counter.variable)
    return std::nullopt;
  auto comparesCounter = [&](const Expr *expr) {
    expr = plain(expr);
    while (const auto *cast = dyn_cast<CastExpr>(expr))
      expr = plain(cast->getSubExpr());
    return variableOf(expr) == counter.variable;
  };
  counter.comparison = condition->getOpcode();
  if (comparesCounter(condition->getLHS())) {
    counter.bound = condition->getRHS();
  } else if (comparesCounter(condition->getRHS())) {
    counter.bound = condition->getLHS();
    counter.comparison = BinaryOperator::reverseComparisonOp(counter.comparison);
  } else {
    return std::nullopt;
  }
  counter.start = counter.variable->getInit();
  if (const auto *init = dyn_cast_or_null<BinaryOperator>(loop->getInit());
      init && init->getOpcode() == BO_Assign && variableOf(init->getLHS()) == counter.variable)
    counter.start = init->getRHS();
  return counter;
}

std::optional<uint64_t> tripCount(const Stmt *statement, const Frame *frame, Values &values) {
  const auto *loop = dyn_cast<ForStmt>(statement);
  if (!loop)
    return std::nullopt;
  std::optional<Counter> counter = counterOf(loop);
  if (!counter || !counter->start || !counter->bound)
    return std::nullopt;
  std::optional<int64_t> start = values.constant({counter->start, frame}),
                         bound = values.constant({counter->bound, frame});
  std::optional<int64_t> step = counter->isOne ? 1 : values.constant({counter->step, frame});
  if (!start || !bound || !step || *step <= 0)
    return std::nullopt;
  __int128 distance = __int128(*bound) - *start;
  if (counter->isSubtracted)
    distance = -distance;
  if (counter->comparison == BO_LE || counter->comparison == BO_GE)
    distance += 1;
  if (distance <= 0)
    return 0;
  return uint64_t((distance + *step - 1) / *step);
}

} // namespace triton_metal::quirks
