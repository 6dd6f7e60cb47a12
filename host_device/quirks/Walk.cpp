#include "host_device/quirks/Walk.h"
#include "clang/AST/Attr.h"
#include "clang/AST/StmtCXX.h"
#include "llvm/Support/MathExtras.h"

using namespace clang;
using llvm::StringRef;

namespace triton_metal::quirks {

namespace {

/// Kernels of published libraries have some ten thousand; this ends what recursion could make.
constexpr unsigned mostEvents = 400'000;
constexpr unsigned deepestCall = 40;

class Walker {
public:
  Walker(Values &values, Walk &walk, llvm::DenseSet<const FunctionDecl *> &followed)
      : values(values), walk(walk), followed(followed) {}

  void function(const FunctionDecl *function, const Frame *frame, const Scope *scope) {
    followed.insert(function->getCanonicalDecl());
    if (const auto *constructor = dyn_cast<CXXConstructorDecl>(function))
      for (const CXXCtorInitializer *init : constructor->inits())
        if (init->isWritten())
          expression(init->getInit(), frame, scope, Use::Load);
    statement(function->getBody(), frame, scope);
  }

  bool isCut() const { return order > mostEvents; }

private:
  Values &values;
  Walk &walk;
  llvm::DenseSet<const FunctionDecl *> &followed;
  unsigned order = 0;
  uint64_t weight = 1;
  /// What a pragma says of the loop that follows.
  uint64_t nextUnroll = 0;
  bool nextHint = false;
  /// How many parts of an object are being taken.
  unsigned parts = 0;

  template <typename EventT>
  EventT event(const Frame *frame, const Scope *scope, SourceLocation location) {
    EventT made;
    made.frame = frame;
    made.scope = scope;
    made.order = ++order;
    made.location = location;
    return made;
  }

  Scope *enter(Scope::Kind kind, const Stmt *statement, const Frame *frame, const Scope *outer,
               const Expr *condition = nullptr) {
    walk.scopes.push_back(std::make_unique<Scope>(
        Scope{kind, statement, frame, outer, condition, 0, false, order, 0}));
    return walk.scopes.back().get();
  }

  std::optional<bool> decided(const Expr *condition) const {
    bool result = false;
    if (!condition || condition->isValueDependent() ||
        !condition->EvaluateAsBooleanCondition(result, values.ast))
      return std::nullopt;
    return result;
  }

  void statement(const Stmt *node, const Frame *frame, const Scope *scope) {
    if (!node || order > mostEvents)
      return;
    if (!isa<CompoundStmt, AttributedStmt>(node))
      walk.statements = llvm::SaturatingAdd(walk.statements, weight);
    if (const auto *compound = dyn_cast<CompoundStmt>(node)) {
      for (const Stmt *inner : compound->body())
        statement(inner, frame, scope);
    } else if (const auto *attributed = dyn_cast<AttributedStmt>(node)) {
      readHints(attributed, frame);
      statement(attributed->getSubStmt(), frame, scope);
      nextUnroll = 0;
      nextHint = false;
    } else if (const auto *declaration = dyn_cast<DeclStmt>(node)) {
      for (const Decl *decl : declaration->decls())
        if (const auto *variable = dyn_cast<VarDecl>(decl)) {
          auto made = event<Variable>(frame, scope, variable->getLocation());
          made.variable = variable;
          walk.variables.push_back(made);
          if (variable->getInit()) {
            QualType type = variable->getType();
            bool isReference =
                type->isReferenceType() && !type.getNonReferenceType().isConstQualified();
            expression(variable->getInit(), frame, scope, isReference ? Use::Address : Use::Load);
          }
        }
    } else if (const auto *branch = dyn_cast<IfStmt>(node)) {
      statement(branch->getInit(), frame, scope);
      if (const DeclStmt *condition = branch->getConditionVariableDeclStmt())
        statement(condition, frame, scope);
      std::optional<bool> known = decided(branch->getCond());
      if (!known)
        expression(branch->getCond(), frame, scope, Use::Load);
      if (known) {
        statement(*known ? branch->getThen() : branch->getElse(), frame, scope);
        return;
      }
      branches(branch, branch->getCond(), branch->getThen(), branch->getElse(), frame, scope);
    } else if (isa<ForStmt, WhileStmt, DoStmt, CXXForRangeStmt>(node)) {
      loop(node, frame, scope);
    } else if (const auto *choice = dyn_cast<SwitchStmt>(node)) {
      statement(choice->getInit(), frame, scope);
      expression(choice->getCond(), frame, scope, Use::Load);
      auto made = event<Branch>(frame, scope, choice->getBeginLoc());
      made.statement = choice;
      made.condition = choice->getCond();
      Scope *inner = enter(Scope::Case, choice, frame, scope, choice->getCond());
      made.thenScope = inner;
      statement(choice->getBody(), frame, inner);
      inner->end = made.end = order;
      walk.branches.push_back(made);
    } else if (const auto *choice = dyn_cast<SwitchCase>(node)) {
      statement(choice->getSubStmt(), frame, scope);
    } else if (const auto *label = dyn_cast<LabelStmt>(node)) {
      statement(label->getSubStmt(), frame, scope);
    } else if (const auto *result = dyn_cast<ReturnStmt>(node)) {
      if (result->getRetValue())
        expression(result->getRetValue(), frame, scope, Use::Load);
      jump(node, frame, scope);
    } else if (isa<BreakStmt, ContinueStmt>(node)) {
      jump(node, frame, scope);
    } else if (const auto *expr = dyn_cast<Expr>(node)) {
      expression(expr, frame, scope, Use::Load);
    } else {
      for (const Stmt *inner : node->children())
        statement(inner, frame, scope);
    }
  }

  void jump(const Stmt *node, const Frame *frame, const Scope *scope) {
    auto made = event<Jump>(frame, scope, node->getBeginLoc());
    made.statement = node;
    walk.jumps.push_back(made);
  }

  void branches(const Stmt *node, const Expr *condition, const Stmt *then, const Stmt *otherwise,
                const Frame *frame, const Scope *scope) {
    auto made = event<Branch>(frame, scope, node->getBeginLoc());
    made.statement = node;
    made.condition = condition;
    Scope *inner = enter(Scope::Then, node, frame, scope, condition);
    made.thenScope = inner;
    statement(then, frame, inner);
    inner->end = order;
    if (otherwise) {
      Scope *second = enter(Scope::Else, node, frame, scope, condition);
      made.elseScope = second;
      statement(otherwise, frame, second);
      second->end = order;
    }
    made.end = order;
    walk.branches.push_back(made);
  }

  void readHints(const AttributedStmt *node, const Frame *frame) {
    nextUnroll = 0;
    nextHint = false;
    for (const Attr *attribute : node->getAttrs()) {
      const auto *hint = dyn_cast<LoopHintAttr>(attribute);
      if (!hint || (hint->getOption() != LoopHintAttr::Unroll &&
                    hint->getOption() != LoopHintAttr::UnrollCount))
        continue;
      nextHint = hint->getState() != LoopHintAttr::Disable;
      nextUnroll = nextHint ? UINT64_MAX : 0;
      if (hint->getOption() == LoopHintAttr::UnrollCount && hint->getValue())
        if (std::optional<int64_t> count = values.constant({hint->getValue(), frame}))
          nextUnroll = uint64_t(std::max<int64_t>(*count, 0));
    }
  }

  void loop(const Stmt *node, const Frame *frame, const Scope *scope) {
    uint64_t unroll = nextUnroll;
    bool hint = nextHint;
    nextUnroll = 0;
    nextHint = false;
    if (const auto *counted = dyn_cast<ForStmt>(node))
      statement(counted->getInit(), frame, scope);
    auto made = event<LoopEvent>(frame, scope, node->getBeginLoc());
    made.loop = node;
    Scope *inner = enter(Scope::Loop, node, frame, scope);
    made.inner = inner;
    inner->unrolled = unroll;
    inner->hasUnrollHint = hint;
    size_t index = walk.loops.size();
    walk.loops.push_back(made);
    uint64_t before = weight, statements = walk.statements;
    if (unroll)
      if (std::optional<uint64_t> trips = tripCount(node, frame, values))
        weight = llvm::SaturatingMultiply(weight, std::max<uint64_t>(1, std::min(*trips, unroll)));
    if (const auto *counted = dyn_cast<ForStmt>(node)) {
      if (counted->getCond())
        expression(counted->getCond(), frame, inner, Use::Load);
      statement(counted->getBody(), frame, inner);
      if (counted->getInc())
        expression(counted->getInc(), frame, inner, Use::Load);
    } else if (const auto *loop = dyn_cast<WhileStmt>(node)) {
      expression(loop->getCond(), frame, inner, Use::Load);
      statement(loop->getBody(), frame, inner);
    } else if (const auto *loop = dyn_cast<DoStmt>(node)) {
      statement(loop->getBody(), frame, inner);
      expression(loop->getCond(), frame, inner, Use::Load);
    } else if (const auto *range = dyn_cast<CXXForRangeStmt>(node)) {
      statement(range->getLoopVarStmt(), frame, inner);
      statement(range->getBody(), frame, inner);
    }
    weight = before;
    inner->end = order;
    if (unroll && walk.statements > statements)
      walk.loops[index].unrolledStatements =
          (walk.statements - statements) / std::max<uint64_t>(weight, 1);
  }

  void access(const Expr *lvalue, const Frame *frame, const Scope *scope, Use use) {
    if (use == Use::Address)
      return;
    auto made = event<Access>(frame, scope, lvalue->getExprLoc());
    made.lvalue = lvalue;
    made.use = use;
    made.type = lvalue->getType();
    made.isWhole = parts == 0;
    walk.accesses.push_back(made);
  }

  void children(const Expr *node, const Frame *frame, const Scope *scope) {
    for (const Stmt *child : node->children())
      if (const auto *inner = dyn_cast_or_null<Expr>(child))
        expression(inner, frame, scope, Use::Load);
      else if (child)
        statement(child, frame, scope);
  }

  void assignment(const Expr *whole, const Expr *target, const Expr *value, bool isCompound,
                  const Frame *frame, const Scope *scope) {
    expression(value, frame, scope, Use::Load);
    expression(target, frame, scope, isCompound ? Use::Update : Use::Store);
    auto made = event<Assignment>(frame, scope, whole->getExprLoc());
    made.target = target;
    made.value = value;
    made.whole = whole;
    made.isCompound = isCompound;
    walk.assignments.push_back(made);
  }

  void operatorEvent(const Expr *node, const Frame *frame, const Scope *scope) {
    auto made = event<Operator>(frame, scope, node->getExprLoc());
    made.expr = node;
    walk.operators.push_back(made);
  }

  void expression(const Expr *node, const Frame *frame, const Scope *scope, Use use) {
    if (!node || order > mostEvents)
      return;
    node = node->IgnoreParens();
    if (const auto *wrapped = dyn_cast<FullExpr>(node))
      return expression(wrapped->getSubExpr(), frame, scope, use);
    if (const auto *wrapped = dyn_cast<MaterializeTemporaryExpr>(node))
      return expression(wrapped->getSubExpr(), frame, scope, use);
    if (const auto *wrapped = dyn_cast<CXXBindTemporaryExpr>(node))
      return expression(wrapped->getSubExpr(), frame, scope, use);
    if (const auto *wrapped = dyn_cast<SubstNonTypeTemplateParmExpr>(node))
      return expression(wrapped->getReplacement(), frame, scope, use);
    if (const auto *wrapped = dyn_cast<OpaqueValueExpr>(node))
      return expression(wrapped->getSourceExpr(), frame, scope, use);
    if (const auto *pseudo = dyn_cast<PseudoObjectExpr>(node)) {
      const Expr *form = pseudo->getSyntacticForm()->IgnoreParens();
      return expression(form, frame, scope, use);
    }
    if (const auto *property = dyn_cast<MSPropertyRefExpr>(node))
      return expression(property->getBaseExpr(), frame, scope,
                        use == Use::Store ? Use::Update : use);
    if (const auto *cast = dyn_cast<CastExpr>(node)) {
      if (cast->getCastKind() == CK_ArrayToPointerDecay)
        return expression(cast->getSubExpr(), frame, scope, Use::Address);
      return expression(cast->getSubExpr(), frame, scope, cast->isGLValue() ? use : Use::Load);
    }
    if (const auto *subscript = dyn_cast<ArraySubscriptExpr>(node)) {
      unsigned outer = std::exchange(parts, 0);
      expression(subscript->getBase(), frame, scope, Use::Load);
      expression(subscript->getIdx(), frame, scope, Use::Load);
      parts = outer;
      return access(node, frame, scope, use);
    }
    if (const auto *member = dyn_cast<MemberExpr>(node)) {
      if (!member->isArrow()) {
        ++parts;
        expression(member->getBase(), frame, scope, use);
        --parts;
        return;
      }
      if (isa<CXXThisExpr>(plain(member->getBase())))
        return;
      expression(member->getBase(), frame, scope, Use::Load);
      return isa<FieldDecl>(member->getMemberDecl()) ? access(node, frame, scope, use) : void();
    }
    if (const auto *unary = dyn_cast<UnaryOperator>(node)) {
      if (unary->getOpcode() == UO_Deref) {
        expression(unary->getSubExpr(), frame, scope, Use::Load);
        return access(node, frame, scope, use);
      }
      Use inner = unary->getOpcode() == UO_AddrOf   ? Use::Address
                  : unary->isIncrementDecrementOp() ? Use::Update
                                                    : Use::Load;
      expression(unary->getSubExpr(), frame, scope, inner);
      return operatorEvent(node, frame, scope);
    }
    if (const auto *binary = dyn_cast<BinaryOperator>(node)) {
      if (binary->isAssignmentOp()) {
        assignment(node, binary->getLHS(), binary->getRHS(), binary->isCompoundAssignmentOp(),
                   frame, scope);
        if (binary->isCompoundAssignmentOp())
          operatorEvent(node, frame, scope);
        return;
      }
      if (binary->isLogicalOp()) {
        expression(binary->getLHS(), frame, scope, Use::Load);
        return branches(node, binary->getLHS(),
                        binary->getOpcode() == BO_LAnd ? binary->getRHS() : nullptr,
                        binary->getOpcode() == BO_LOr ? binary->getRHS() : nullptr, frame, scope);
      }
      children(node, frame, scope);
      return operatorEvent(node, frame, scope);
    }
    if (const auto *choice = dyn_cast<ConditionalOperator>(node)) {
      std::optional<bool> known = decided(choice->getCond());
      if (known)
        return expression(*known ? choice->getTrueExpr() : choice->getFalseExpr(), frame, scope,
                          use);
      expression(choice->getCond(), frame, scope, Use::Load);
      return branches(node, choice->getCond(), choice->getTrueExpr(), choice->getFalseExpr(), frame,
                      scope);
    }
    if (const auto *call = dyn_cast<CallExpr>(node))
      return callExpression(call, frame, scope, use);
    if (const auto *construct = dyn_cast<CXXConstructExpr>(node)) {
      for (const Expr *argument : construct->arguments())
        expression(argument, frame, scope, Use::Load);
      const FunctionDecl *definition = nullptr;
      if (!values.inLibrary(construct->getConstructor()) &&
          construct->getConstructor()->hasBody(definition) &&
          !construct->getConstructor()->isImplicit() && (!frame || frame->depth < deepestCall)) {
        SmallVector<const Expr *> arguments(construct->arguments());
        function(definition, values.frameOf(node, definition, arguments, frame), scope);
      }
      operatorEvent(node, frame, scope);
      return;
    }
    if (const VarDecl *variable = variableOf(node);
        variable && isa<DeclRefExpr>(node) &&
        Values::spaceOf(variable->getType()) == Space::Threadgroup)
      return access(node, frame, scope, use);
    if (isa<UnaryExprOrTypeTraitExpr, LambdaExpr, DeclRefExpr>(node))
      return;
    children(node, frame, scope);
  }

  /// Functions of the library that access memory through a pointer.
  void libraryAccess(StringRef name, const CallExpr *call, const Frame *frame, const Scope *scope) {
    auto add = [&](unsigned argument, Use use) {
      if (argument >= call->getNumArgs())
        return;
      const Expr *pointer = call->getArg(argument);
      if (!pointer->getType()->isPointerType())
        return;
      auto made = event<Access>(frame, scope, call->getExprLoc());
      made.pointer = pointer;
      made.use = use;
      made.type = pointer->getType()->getPointeeType();
      walk.accesses.push_back(made);
    };
    if (name == "simdgroup_load")
      add(1, Use::Load);
    else if (name == "simdgroup_store")
      add(1, Use::Store);
  }

  void callExpression(const CallExpr *call, const Frame *frame, const Scope *scope, Use use) {
    const FunctionDecl *callee = call->getDirectCallee();
    StringRef name = values.libraryName(call);
    if (!callee) {
      expression(call->getCallee(), frame, scope, Use::Load);
      for (const Expr *argument : call->arguments())
        expression(argument, frame, scope, Use::Load);
      return;
    }
    unsigned first = 0;
    if (const auto *operation = dyn_cast<CXXOperatorCallExpr>(call)) {
      if (values.inLibrary(callee)) {
        OverloadedOperatorKind code = operation->getOperator();
        if (code == OO_Equal)
          return assignment(call, call->getArg(0), call->getArg(1), false, frame, scope);
        if (operation->isAssignmentOp()) {
          assignment(call, call->getArg(0), call->getArg(1), true, frame, scope);
          return operatorEvent(call, frame, scope);
        }
        if (code == OO_Subscript) {
          expression(call->getArg(0), frame, scope, use);
          expression(call->getArg(1), frame, scope, Use::Load);
          return access(call, frame, scope, use);
        }
      }
      if (isa<CXXMethodDecl>(callee)) {
        expression(call->getArg(0), frame, scope,
                   cast<CXXMethodDecl>(callee)->isConst() ? Use::Load : Use::Update);
        first = 1;
      }
    } else if (const auto *member = dyn_cast<CXXMemberCallExpr>(call)) {
      if (const Expr *object = member->getImplicitObjectArgument();
          object && !object->getType()->isPointerType())
        expression(object, frame, scope,
                   cast<CXXMethodDecl>(callee)->isConst() ? Use::Load : Use::Update);
    }
    for (unsigned i = first; i < call->getNumArgs(); ++i) {
      Use argument = Use::Load;
      if (i - first < callee->getNumParams()) {
        QualType type = callee->getParamDecl(i - first)->getType();
        // A user's function is followed: what it does with the reference is then seen.
        if (type->isLValueReferenceType() && !type.getNonReferenceType().isConstQualified())
          argument = values.inLibrary(callee) ? Use::Update : Use::Address;
      }
      expression(call->getArg(i), frame, scope, argument);
    }
    auto made = event<Call>(frame, scope, call->getExprLoc());
    made.call = call;
    made.callee = callee;
    made.name = name;
    walk.calls.push_back(made);
    if (values.inLibrary(callee)) {
      libraryAccess(name, call, frame, scope);
      return operatorEvent(call, frame, scope);
    }
    const FunctionDecl *definition = nullptr;
    if (!callee->hasBody(definition) || (frame && frame->depth >= deepestCall))
      return;
    for (const Frame *place = frame; place; place = place->caller)
      if (place->function == definition)
        return; // recursion
    function(definition, values.frameOf(call, definition, frame), scope);
  }
};

} // namespace

void walkFunction(const FunctionDecl *function, Values &values, Walk &walk,
                  llvm::DenseSet<const FunctionDecl *> &followed) {
  Frame *frame = values.makeFrame();
  frame->function = function;
  walk.root = function;
  walk.frame = frame;
  Walker walker(values, walk, followed);
  walker.function(function, frame, nullptr);
  walk.isCut = walker.isCut();
}

SmallVector<const Scope *, 4> loopsAround(const Scope *scope) {
  SmallVector<const Scope *, 4> found;
  for (; scope; scope = scope->outer)
    if (scope->kind == Scope::Loop)
      found.push_back(scope);
  return found;
}

bool isInside(const Scope *scope, const Scope *outer) {
  for (; scope; scope = scope->outer)
    if (scope == outer)
      return true;
  return outer == nullptr;
}

bool excludeEachOther(const Scope *a, const Scope *b) {
  for (const Scope *x = a; x; x = x->outer)
    for (const Scope *y = b; y; y = y->outer)
      if (x->statement == y->statement && x->frame == y->frame && x->outer == y->outer && x != y &&
          ((x->kind == Scope::Then && y->kind == Scope::Else) ||
           (x->kind == Scope::Else && y->kind == Scope::Then)))
        return true;
  return false;
}

bool isUnrolled(const Scope *loop, Values &values) {
  if (!loop->hasUnrollHint)
    return false;
  std::optional<uint64_t> trips = tripCount(loop->statement, loop->frame, values);
  return trips && *trips <= loop->unrolled;
}

} // namespace triton_metal::quirks
