// Where pointers point.
#include "host_device/quirks/Values.h"
#include "clang/AST/DeclTemplate.h"

using namespace clang;

namespace triton_metal::quirks {

void Values::resolvePointer(Value value, Pointer &result, unsigned depth) {
  if (depth > 64 || !value.expr)
    return;
  const Expr *expr = value.expr->IgnoreParens();
  if (const auto *cast = dyn_cast<CastExpr>(expr)) {
    const Expr *inner = cast->getSubExpr();
    if (const auto *written = dyn_cast<CStyleCastExpr>(cast))
      result.isCoherent |= isCoherent(written->getLParenLoc(), written->getRParenLoc());
    if (cast->getCastKind() == CK_ArrayToPointerDecay)
      return resolveAddress(inner, value.frame, result, depth + 1);
    if (cast->getCastKind() == CK_IntegralToPointer)
      return resolveNumberedAddress({inner, value.frame}, result, depth + 1);
    if (cast->getType()->isPointerType() && inner->getType()->isPointerType()) {
      QualType from = inner->getType()->getPointeeType();
      if (ast.getCanonicalType(from).getUnqualifiedType() !=
          ast.getCanonicalType(cast->getType()->getPointeeType()).getUnqualifiedType())
        result.casts.push_back(from);
    }
    return resolvePointer({inner, value.frame}, result, depth + 1);
  }
  const Expr *bare = plain(expr);
  if (bare != expr)
    return resolvePointer({bare, value.frame}, result, depth + 1);
  if (const auto *binary = dyn_cast<BinaryOperator>(expr)) {
    if (binary->getOpcode() == BO_Add || binary->getOpcode() == BO_Sub) {
      bool isLeft = binary->getLHS()->getType()->isPointerType();
      const Expr *base = isLeft ? binary->getLHS() : binary->getRHS();
      const Expr *index = isLeft ? binary->getRHS() : binary->getLHS();
      resolvePointer({base, value.frame}, result, depth + 1);
      QualType pointee = base->getType()->getPointeeType();
      uint64_t bytes = pointee->isIncompleteType() || pointee->isDependentType()
                           ? 1
                           : ast.getTypeSizeInChars(pointee).getQuantity();
      result.steps.push_back({{index, value.frame}, binary->getOpcode() == BO_Sub, bytes});
      return;
    }
    if (binary->getOpcode() == BO_Assign || binary->getOpcode() == BO_Comma)
      return resolvePointer({binary->getRHS(), value.frame}, result, depth + 1);
  }
  if (const auto *unary = dyn_cast<UnaryOperator>(expr)) {
    if (unary->getOpcode() == UO_AddrOf)
      return resolveAddress(unary->getSubExpr(), value.frame, result, depth + 1);
    if (unary->isIncrementDecrementOp())
      return resolvePointer({unary->getSubExpr(), value.frame}, result, depth + 1);
  }
  if (const auto *choice = dyn_cast<AbstractConditionalOperator>(expr))
    return resolvePointer({choice->getTrueExpr(), value.frame}, result, depth + 1);
  if (const auto *member = dyn_cast<MemberExpr>(expr)) {
    result.root = member->getMemberDecl();
    result.frame = value.frame;
    return;
  }
  if (const VarDecl *variable = variableOf(expr)) {
    result.isCoherent |= isCoherent(variable->getBeginLoc(), variable->getLocation());
    if (variable->getType().getNonReferenceType().isVolatileQualified()) {
      result.root = variable;
      result.frame = value.frame;
      return;
    }
    if (Value next = single(value))
      return resolvePointer(next, result, depth + 1);
    // A pointer that moves: what it starts from.
    const VariableFacts &changes = facts(variable, nullptr);
    if (isa<ParmVarDecl>(variable)) {
      for (const Frame *frame = value.frame; frame; frame = frame->caller) {
        auto found = frame->arguments.find(cast<ParmVarDecl>(variable));
        if (found == frame->arguments.end())
          continue;
        result.changing.push_back(variable);
        resolvePointer(found->second, result, depth + 1);
        result.stepsBeforeChange = unsigned(result.steps.size());
        return;
      }
    } else if (variable->isLocalVarDecl() && variable->getInit() &&
               variable->getType()->isPointerType() && !variable->isStaticLocal()) {
      result.changing.push_back(variable);
      resolvePointer({variable->getInit(), value.frame}, result, depth + 1);
      result.stepsBeforeChange = unsigned(result.steps.size());
      return;
    } else if (variable->isLocalVarDecl() && !changes.assigned.empty() &&
               variable->getType()->isPointerType()) {
      result.changing.push_back(variable);
      resolvePointer({changes.assigned[0], value.frame}, result, depth + 1);
      result.stepsBeforeChange = unsigned(result.steps.size());
      return;
    }
    result.root = variable;
    result.frame = value.frame;
    return;
  }
  Value next = resolve(value);
  if (next.expr != expr || next.frame != value.frame)
    return resolvePointer(next, result, depth + 1);
}

/// A pointer that is made of a number: the variable or member that the number comes from.
void Values::resolveNumberedAddress(Value value, Pointer &result, unsigned depth) {
  value = resolveNumber(value);
  if (depth > 64 || !value.expr)
    return;
  if (const auto *cast = dyn_cast<CastExpr>(value.expr);
      cast && cast->getCastKind() == CK_PointerToIntegral)
    return resolvePointer({cast->getSubExpr(), value.frame}, result, depth + 1);
  if (auto sum = operation(value); sum && sum->code == BO_Add) {
    bool isLeft = !constant(sum->left);
    resolveNumberedAddress(isLeft ? sum->left : sum->right, result, depth + 1);
    result.steps.push_back({isLeft ? sum->right : sum->left, false, 1});
    return;
  }
  result.frame = value.frame;
  if (const auto *member = dyn_cast<MemberExpr>(value.expr))
    result.root = member->getMemberDecl();
  else
    result.root = variableOf(value.expr);
}

void Values::resolveAddress(const Expr *lvalue, const Frame *frame, Pointer &result,
                            unsigned depth) {
  if (depth > 64 || !lvalue)
    return;
  const Expr *expr = plain(lvalue);
  if (const auto *cast = dyn_cast<CastExpr>(expr)) {
    if (cast->getSubExpr()->isGLValue()) { // reinterpret_cast<T &>(x)
      result.casts.push_back(cast->getSubExpr()->getType());
      return resolveAddress(cast->getSubExpr(), frame, result, depth + 1);
    }
    return;
  }
  if (const auto *subscript = dyn_cast<ArraySubscriptExpr>(expr)) {
    resolvePointer({subscript->getBase(), frame}, result, depth + 1);
    uint64_t bytes = subscript->getType()->isIncompleteType()
                         ? 1
                         : ast.getTypeSizeInChars(subscript->getType()).getQuantity();
    result.steps.push_back({{subscript->getIdx(), frame}, false, bytes});
    return;
  }
  if (const auto *unary = dyn_cast<UnaryOperator>(expr); unary && unary->getOpcode() == UO_Deref)
    return resolvePointer({unary->getSubExpr(), frame}, result, depth + 1);
  if (const auto *member = dyn_cast<MemberExpr>(expr)) {
    if (member->isArrow()) {
      if (isa<CXXThisExpr>(plain(member->getBase()))) {
        result.root = member->getMemberDecl();
        result.frame = frame;
        return;
      }
      return resolvePointer({member->getBase(), frame}, result, depth + 1);
    }
    return resolveAddress(member->getBase(), frame, result, depth + 1);
  }
  if (const auto *call = dyn_cast<CXXOperatorCallExpr>(expr);
      call && call->getOperator() == OO_Subscript) {
    resolveAddress(call->getArg(0), frame, result, depth + 1);
    result.steps.push_back({{call->getArg(1), frame}, false, 0});
    return;
  }
  if (const VarDecl *variable = variableOf(expr)) {
    if (variable->getType()->isReferenceType())
      if (Value next = single({expr, frame}))
        return resolveAddress(next.expr, next.frame, result, depth + 1);
    result.root = variable;
    result.frame = frame;
    return;
  }
  Value next = resolve({expr, frame});
  if (next.expr && (next.expr != expr || next.frame != frame) && next.expr->isGLValue())
    return resolveAddress(next.expr, next.frame, result, depth + 1);
}

Pointer Values::pointer(Value value) {
  Pointer result;
  resolvePointer(value, result, 0);
  return result;
}

Pointer Values::address(const Expr *lvalue, const Frame *frame) {
  Pointer result;
  resolveAddress(lvalue, frame, result, 0);
  return result;
}

} // namespace triton_metal::quirks
