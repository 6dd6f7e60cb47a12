// Rows 4, 5, 6 and 16: what loops carry, read again and swap, and loops without an end.
#include "host_device/quirks/Matchers.h"
#include "clang/AST/RecursiveASTVisitor.h"
#include <set>

using namespace clang;

namespace triton_metal::quirks {

/// Whether an expression accesses device memory.
static bool isDeviceAccess(const Expr *expr) {
  const auto *unary = dyn_cast<UnaryOperator>(expr);
  const auto *member = dyn_cast<MemberExpr>(expr);
  bool isMemory = isa<ArraySubscriptExpr>(expr) || (unary && unary->getOpcode() == UO_Deref) ||
                  (member && member->isArrow());
  return isMemory && Values::spaceOf(expr->getType()) == Space::Device;
}

/// The offset of an access from its root, in bytes.
static Linear offsetOf(const Scan &scan, const Pointer &pointer) {
  Linear sum;
  for (const Pointer::Step &step : pointer.steps) {
    Linear index = scan.values.linear(step.index);
    __int128 factor = step.elementBytes * (step.isNegative ? -1 : 1);
    sum.constant += index.constant * factor;
    for (auto &[name, coefficient] : index.terms)
      if ((sum.terms[name] += coefficient * factor) == 0)
        sum.terms.erase(name);
  }
  return sum;
}

static bool isInvariant(const Scan &scan, const Pointer &pointer, const Scope *loop) {
  const VariableSet &changed = scan.values.changedIn(loop->statement);
  for (const VarDecl *variable : pointer.changing)
    if (changed.contains(variable))
      return false;
  for (const Pointer::Step &step : pointer.steps)
    if (scan.values.variesIn(step.index, loop->statement, loop->frame))
      return false;
  return true;
}

//===----------------------------------------------------------------------===//
// Row 4
//===----------------------------------------------------------------------===//

/// The innermost loop around an assignment through which a variable keeps its value.
static const Scope *carryingLoop(const Scan &scan, const Assignment &assignment,
                                 const VarDecl *variable) {
  const Scope *declared = nullptr;
  for (const Variable &event : scan.walk.variables)
    if (event.variable == variable && event.frame == assignment.frame)
      declared = event.scope;
  for (const Scope *loop : loopsAround(assignment.scope))
    if (!declared || !isInside(declared, loop))
      return loop;
  return nullptr;
}

/// A store to device memory that may run before a loop.
static const Access *storeBefore(const Scan &scan, const Scope *loop) {
  for (const Access &access : scan.walk.accesses) {
    if (!access.stores() || Scan::spaceOf(access) != Space::Device ||
        excludeEachOther(access.scope, loop->outer))
      continue;
    if (access.order < loop->begin)
      return &access;
    for (const Scope *outer : loopsAround(loop->outer))
      if (isInside(access.scope, outer))
        return &access;
  }
  return nullptr;
}

static void forEachPart(const Expr *expr, llvm::function_ref<void(const Expr *)> function) {
  SmallVector<const Stmt *> open{expr};
  while (!open.empty()) {
    const Stmt *next = open.pop_back_val();
    if (!next)
      continue;
    if (const auto *part = dyn_cast<Expr>(next))
      function(part);
    open.append(next->child_begin(), next->child_end());
  }
}

/// Whether the assigned expression itself reads the cell that it is stored in.
static bool contains(const Scan &scan, const Assignment &assignment, llvm::StringRef cell) {
  bool found = false;
  forEachPart(assignment.value, [&](const Expr *part) {
    found |=
        isDeviceAccess(plain(part)) && scan.values.key({plain(part), assignment.frame}) == cell;
  });
  return found;
}

void matchAccumulations(const Scan &scan) {
  std::map<std::pair<const Expr *, const Frame *>, const Access *> loads;
  for (const Access &access : scan.walk.accesses)
    if (access.lvalue && access.loads())
      loads[{plain(access.lvalue), access.frame}] = &access;
  for (const Assignment &assignment : scan.walk.assignments) {
    if (loopsAround(assignment.scope).empty())
      continue;
    const VarDecl *variable = variableOf(assignment.target);
    const Expr *target = plain(assignment.target);
    bool isCell = isDeviceAccess(target);
    if (isCell && target->getType().isVolatileQualified())
      continue;
    const Scope *loop = nullptr;
    std::string cell;
    if (isCell) {
      Pointer pointer = scan.values.address(target, assignment.frame);
      for (const Scope *outer : loopsAround(assignment.scope))
        if (!loop && isInvariant(scan, pointer, outer))
          loop = outer;
      cell = scan.values.key({target, assignment.frame});
    } else if (variable && !variable->getType().getNonReferenceType().isVolatileQualified() &&
               !variable->getType()->isPointerType()) {
      Value original = scan.values.resolve({assignment.target, assignment.frame});
      if (const VarDecl *named = variableOf(original.expr))
        variable = named;
      Assignment place = assignment;
      place.frame = original.frame;
      loop = carryingLoop(scan, place, variable);
    }
    if (!loop)
      continue;
    // A cell that one statement reads and stores; row 5 has the others.
    bool isCoherent = isCell && scan.values.address(target, assignment.frame).isCoherent;
    bool accumulates = assignment.isCompound || (isCell && contains(scan, assignment, cell));
    bool reads = isCell && accumulates && !isCoherent;
    scan.values.visitSources({assignment.value, assignment.frame}, [&](Value source) {
      if (!isCell && variable && variableOf(source.expr) == variable)
        accumulates = true;
      if (!isDeviceAccess(source.expr) || source.expr->getType().isVolatileQualified())
        return;
      auto found = loads.find({source.expr, source.frame});
      if (found != loads.end() && isInside(found->second->scope, loop))
        reads |= !isCell || scan.values.key(source) != cell;
    });
    if (!accumulates || !reads)
      continue;
    const Access *store = storeBefore(scan, loop);
    if (!store && !isCell)
      continue;
    scan.report(
        4, QuirkClass::Costly, assignment.location,
        llvm::Twine("a loop adds up what it reads from device memory, in ") +
            (isCell ? std::string("device memory") : "'" + variable->getNameAsString() + "'") +
            (store ? ", after a store to device memory in line " +
                         std::to_string(scan.lineOf(store->location))
                   : std::string()) +
            "; read through a volatile pointer");
  }
}

//===----------------------------------------------------------------------===//
// Row 5
//===----------------------------------------------------------------------===//

void matchRereads(const Scan &scan) {
  struct Place {
    const Access *access;
    Pointer pointer;
    Linear offset;
  };
  std::vector<Place> places;
  for (const Access &access : scan.walk.accesses) {
    if (Scan::spaceOf(access) != Space::Device || access.type.isVolatileQualified() ||
        access.use == Use::Update || loopsAround(access.scope).empty() || access.pointer)
      continue;
    Pointer pointer = scan.pointerOf(access);
    if (!pointer.root || pointer.isCoherent)
      continue;
    Linear offset = offsetOf(scan, pointer);
    places.push_back({&access, std::move(pointer), std::move(offset)});
  }
  // An assignment that reads and stores one place is row 4.
  std::map<std::pair<const Expr *, const Frame *>, const Access *> byExpression;
  for (const Place &place : places)
    byExpression[{plain(place.access->lvalue), place.access->frame}] = place.access;
  std::set<std::pair<const Access *, const Access *>> together;
  for (const Assignment &assignment : scan.walk.assignments) {
    auto store = byExpression.find({plain(assignment.target), assignment.frame});
    if (store == byExpression.end())
      continue;
    forEachPart(assignment.value, [&](const Expr *part) {
      auto load = byExpression.find({plain(part), assignment.frame});
      if (load != byExpression.end())
        together.insert({load->second, store->second});
    });
  }
  for (const Place &load : places) {
    if (!load.access->loads())
      continue;
    for (const Place &store : places) {
      if (!store.access->stores() || store.access->order < load.access->order ||
          store.pointer.root != load.pointer.root || store.offset.terms != load.offset.terms ||
          store.offset.constant != load.offset.constant ||
          together.count({load.access, store.access}) ||
          excludeEachOther(load.access->scope, store.access->scope))
        continue;
      for (const Scope *loop : loopsAround(load.access->scope)) {
        if (!isInside(store.access->scope, loop) || isUnrolled(loop, scan.values))
          continue;
        const VariableSet &changed = scan.values.changedIn(loop->statement);
        bool moves = llvm::any_of(load.pointer.changing, [&](const VarDecl *variable) {
          return changed.contains(variable);
        });
        std::optional<Counter> counter;
        if (const auto *counted = dyn_cast<ForStmt>(loop->statement))
          counter = counterOf(counted);
        if (counter)
          for (auto &[name, coefficient] : load.offset.terms)
            moves |=
                name.find("v" + std::to_string(reinterpret_cast<uintptr_t>(
                                    counter->variable->getCanonicalDecl()))) != std::string::npos;
        if (moves)
          continue;
        bool isSame = isInvariant(scan, load.pointer, loop);
        scan.report(5, isSame ? QuirkClass::Defect : QuirkClass::Unproven, load.access->location,
                    "a loop reads device memory that its earlier iterations" +
                        llvm::Twine(isSame ? "" : " may") + " have stored in line " +
                        llvm::Twine(scan.lineOf(store.access->location)) +
                        "; declare the pointer coherent or volatile");
        break;
      }
    }
  }
}

//===----------------------------------------------------------------------===//
// Row 6
//===----------------------------------------------------------------------===//

/// The array of a thread, if an expression is its element with the counter of a loop.
static const VarDecl *elementOf(const Scan &scan, Value value, const Scope *loop) {
  value = scan.values.resolve(value);
  const auto *subscript = dyn_cast_or_null<ArraySubscriptExpr>(value.expr);
  if (!subscript || Values::spaceOf(subscript->getType()) != Space::Thread)
    return nullptr;
  Pointer pointer = scan.values.address(subscript, value.frame);
  const auto *array = dyn_cast_or_null<VarDecl>(pointer.root);
  if (!array || !array->getType()->isArrayType() || pointer.steps.size() != 1)
    return nullptr;
  const auto *counted = dyn_cast<ForStmt>(loop->statement);
  std::optional<Counter> counter = counted ? counterOf(counted) : std::nullopt;
  Value index = scan.values.resolveNumber(pointer.steps[0].index);
  return counter && variableOf(index.expr) == counter->variable ? array : nullptr;
}

void matchSwaps(const Scan &scan) {
  for (const LoopEvent &event : scan.walk.loops) {
    const Scope *outer = event.inner;
    if (std::optional<uint64_t> trips = tripCount(event.loop, event.frame, scan.values);
        trips && *trips < 2)
      continue;
    llvm::DenseSet<const Scope *> loops;
    llvm::DenseSet<const VarDecl *> arrays;
    std::map<const VarDecl *, const VarDecl *> origin; // null: computed
    for (const Assignment &assignment : scan.walk.assignments) {
      auto around = loopsAround(assignment.scope);
      if (around.size() < 2 || around[1] != outer)
        continue;
      const VarDecl *target = elementOf(scan, {assignment.target, assignment.frame}, around[0]);
      if (!target)
        continue;
      loops.insert(around[0]);
      arrays.insert(target);
      const VarDecl *from = assignment.isCompound
                                ? nullptr
                                : elementOf(scan, {assignment.value, assignment.frame}, around[0]);
      if (from)
        arrays.insert(from);
      auto found = origin.find(from);
      origin[target] = !from ? nullptr : found == origin.end() ? from : found->second;
    }
    if (loops.size() < 3 || arrays.size() < 3)
      continue;
    auto isCarried = [&](const VarDecl *array) {
      for (const Variable &variable : scan.walk.variables)
        if (variable.variable == array && isInside(variable.scope, outer))
          return false;
      return true;
    };
    for (auto &[array, from] : origin) {
      if (!from || from == array || !isCarried(array) || !isCarried(from))
        continue;
      auto next = origin.find(from);
      if (next == origin.end() || next->second == from)
        continue;
      scan.report(6, QuirkClass::Defect, event.location,
                  "each iteration moves '" + from->getNameAsString() + "' to '" +
                      array->getNameAsString() + "', and " + llvm::Twine(loops.size()) +
                      " inner loops copy " + llvm::Twine(arrays.size()) +
                      " thread arrays; copy them in one loop, or use scalars");
      break;
    }
  }
}

//===----------------------------------------------------------------------===//
// Row 16
//===----------------------------------------------------------------------===//

namespace {

/// Whether a loop changes a variable, and only by constant steps in one direction.
class Steps : public RecursiveASTVisitor<Steps> {
public:
  Steps(const VarDecl *variable, const ASTContext &ast) : variable(variable), ast(ast) {}
  const VarDecl *variable;
  const ASTContext &ast;
  bool up = false, down = false, other = false;

  bool isVariable(const Expr *expr) const {
    expr = plain(expr);
    while (const auto *cast = dyn_cast<CastExpr>(expr))
      expr = plain(cast->getSubExpr());
    return variableOf(expr) == variable;
  }
  void step(const Expr *amount, bool isNegative) {
    Expr::EvalResult result;
    if (!amount || amount->isValueDependent() || !amount->EvaluateAsInt(result, ast)) {
      other = true;
      return;
    }
    const llvm::APSInt &number = result.Val.getInt();
    if (number.isZero())
      other = true;
    else if (number.isNegative() != isNegative)
      down = true;
    else
      up = true;
  }
  bool VisitUnaryOperator(UnaryOperator *operation) {
    if (!isVariable(operation->getSubExpr()))
      return true;
    if (operation->isIncrementOp())
      up = true;
    else if (operation->isDecrementOp())
      down = true;
    else if (operation->getOpcode() == UO_AddrOf)
      other = true;
    return true;
  }
  /// A vector of two words that counts to 2^64.
  bool VisitCXXOperatorCallExpr(CXXOperatorCallExpr *call) {
    if (!call->isAssignmentOp() || !isVariable(call->getArg(0)))
      return true;
    if (call->getOperator() == OO_PlusEqual)
      up = true;
    else if (call->getOperator() == OO_MinusEqual)
      down = true;
    else
      other = true;
    return true;
  }
  bool VisitBinaryOperator(BinaryOperator *operation) {
    if (!operation->isAssignmentOp() || !isVariable(operation->getLHS()))
      return true;
    if (operation->getOpcode() == BO_AddAssign || operation->getOpcode() == BO_SubAssign) {
      step(operation->getRHS(), operation->getOpcode() == BO_SubAssign);
      return true;
    }
    const Expr *value = plain(operation->getRHS());
    while (const auto *cast = dyn_cast<CastExpr>(value))
      value = plain(cast->getSubExpr());
    const auto *sum = dyn_cast<BinaryOperator>(value);
    if (operation->getOpcode() != BO_Assign || !sum || !sum->isAdditiveOp())
      other = true;
    else if (isVariable(sum->getLHS()))
      step(sum->getRHS(), sum->getOpcode() == BO_Sub);
    else if (isVariable(sum->getRHS()) && sum->getOpcode() == BO_Add)
      step(sum->getLHS(), false);
    else
      other = true;
    return true;
  }
};

} // namespace

/// Whether a condition compares a number that the loop counts.
static bool countsTo(const Scan &scan, const Expr *condition, const Stmt *loop) {
  if (!condition)
    return false;
  const Expr *expr = plain(condition);
  while (const auto *cast = dyn_cast<CastExpr>(expr))
    expr = plain(cast->getSubExpr());
  if (const auto *unary = dyn_cast<UnaryOperator>(expr)) {
    if (unary->getOpcode() == UO_LNot)
      return countsTo(scan, unary->getSubExpr(), loop);
    if (unary->isDecrementOp()) // while (n--)
      return true;
  }
  if (const VarDecl *variable = variableOf(expr)) // may be anything
    return variable->getType().isVolatileQualified();
  if (const auto *call = dyn_cast<CallExpr>(expr)) {
    llvm::StringRef name = scan.values.libraryName(call);
    if ((name == "all" || name == "any") && call->getNumArgs() == 1)
      return countsTo(scan, call->getArg(0), loop);
  }
  const auto *binary = dyn_cast<BinaryOperator>(expr);
  if (binary && (binary->isLogicalOp() || binary->isBitwiseOp()))
    return countsTo(scan, binary->getLHS(), loop) || countsTo(scan, binary->getRHS(), loop);
  auto comparison = scan.values.operation(expr, nullptr);
  if (!comparison || !BinaryOperator::isComparisonOp(comparison->code))
    return false;
  for (const Expr *side : {comparison->left.expr, comparison->right.expr}) {
    const Expr *number = plain(side);
    while (number) {
      if (const auto *cast = dyn_cast<CastExpr>(number))
        number = plain(cast->getSubExpr());
      else if (const auto *unary = dyn_cast<UnaryOperator>(number);
               unary && unary->isIncrementDecrementOp())
        number = plain(unary->getSubExpr());
      else if (const auto *sum = dyn_cast<BinaryOperator>(number); sum && sum->isAdditiveOp())
        number = plain(sum->getLHS());
      else
        break;
    }
    const VarDecl *variable = variableOf(number);
    if (!variable || variable->getType().isVolatileQualified())
      continue;
    QualType type = variable->getType().getNonReferenceType();
    if (auto vector = Values::vectorOf(type))
      type = vector->first;
    if (!type->isIntegerType())
      continue;
    Steps steps(variable, scan.values.ast);
    steps.TraverseStmt(const_cast<Stmt *>(loop));
    if (steps.up != steps.down && !steps.other)
      return true;
  }
  return false;
}

void matchEndlessLoops(const Scan &scan) {
  for (const LoopEvent &event : scan.walk.loops) {
    const Expr *condition = nullptr;
    if (const auto *loop = dyn_cast<ForStmt>(event.loop)) {
      if (counterOf(loop))
        continue;
      condition = loop->getCond();
    } else if (const auto *loop = dyn_cast<WhileStmt>(event.loop)) {
      condition = loop->getCond();
    } else if (const auto *loop = dyn_cast<DoStmt>(event.loop)) {
      condition = loop->getCond();
    } else {
      continue;
    }
    bool value = false;
    bool isConstant = !condition || (!condition->isValueDependent() &&
                                     condition->EvaluateAsBooleanCondition(value, scan.values.ast));
    if (condition && isConstant && !value)
      continue; // do { ... } while (false)
    if (isConstant) {
      bool ends = false;
      for (const Jump &jump : scan.walk.jumps) {
        if (!isInside(jump.scope, event.inner) || isa<ContinueStmt>(jump.statement) ||
            jump.frame != event.frame)
          continue;
        for (const Scope *scope = jump.scope; scope != event.inner; scope = scope->outer) {
          if (scope->kind == Scope::Loop && isa<BreakStmt>(jump.statement))
            break; // it ends another loop
          ends |= scope->condition && countsTo(scan, scope->condition, event.loop);
        }
      }
      if (!ends)
        scan.report(16, QuirkClass::Defect, event.location,
                    "this loop has no counter with a bound; count its iterations and stop at a "
                    "number that they never reach");
      continue;
    }
    if (countsTo(scan, condition, event.loop))
      continue;
    if (!scan.values.variesIn({condition, event.frame}, event.loop, event.frame)) {
      scan.report(16, QuirkClass::Defect, event.location,
                  "nothing in this loop changes its condition");
      continue;
    }
    const VariableSet &changed = scan.values.changedIn(event.loop);
    bool changes = false, readsMemory = false;
    scan.values.visitSources({condition, event.frame}, [&](Value source) {
      if (const VarDecl *variable = variableOf(source.expr))
        changes |= changed.contains(variable);
      if (const auto *call = dyn_cast<CallExpr>(source.expr)) {
        llvm::StringRef name = scan.values.libraryName(call);
        readsMemory |= name.starts_with("atomic_");
        changes |= name.empty() && !isa<CXXOperatorCallExpr>(call) &&
                   !cast<CallExpr>(source.expr)->getDirectCallee();
      }
      readsMemory |= isDeviceAccess(source.expr) ||
                     (isa<ArraySubscriptExpr>(source.expr) &&
                      Values::spaceOf(source.expr->getType()) != Space::Constant);
    });
    if (readsMemory && !changes)
      for (const Access &access : scan.walk.accesses)
        changes |= access.stores() && isInside(access.scope, event.inner);
    if (readsMemory && !changes)
      scan.report(16, QuirkClass::Defect, event.location,
                  "this loop waits for other threads, and nothing bounds it; count its iterations "
                  "and stop at a bound");
  }
}

} // namespace triton_metal::quirks
