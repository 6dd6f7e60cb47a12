// Barriers that not all threads of a threadgroup or SIMD-group reach.
#include "host_device/msl/MetalAttributes.h"
#include "host_device/quirks/Matchers.h"
#include "clang/AST/Attr.h"

using namespace clang;
using llvm::StringRef;

namespace triton_metal::quirks {

namespace {

/// Threads of which a value may be the same.
enum class Among {
  /// Those of a threadgroup.
  Threadgroup,
  /// Those of a SIMD-group.
  Simdgroup,
  /// Those that are the same lane of their SIMD-groups.
  SameLanes,
};

/// Which values differ between the threads that a barrier waits for.
class Divergence {
public:
  Divergence(const Scan &scan, Among among) : scan(scan), among(among) {
    if (among == Among::Threadgroup)
      sameLanes = std::make_unique<Divergence>(scan, Among::SameLanes);
    for (const Assignment &assignment : scan.walk.assignments) {
      Pointer pointer = scan.values.address(assignment.target, assignment.frame);
      if (const auto *variable = dyn_cast_or_null<VarDecl>(pointer.root))
        assigned[variable].push_back(&assignment);
    }
    for (const Variable &event : scan.walk.variables)
      declared[event.variable] = event.scope;
  }

  /// What runs after this call, and not before it again, is not asked from now on.
  void setBarrier(const Call &call) {
    barrier = &call;
    known.clear();
    loops.clear();
    if (sameLanes)
      sameLanes->setBarrier(call);
  }

  bool differs(Value value) {
    if (!value.expr)
      return false;
    const Expr *expr = plain(value.expr);
    auto [entry, isNew] = known.try_emplace({expr, value.frame}, false);
    if (!isNew)
      return entry->second;
    bool result = compute({expr, value.frame});
    return known[{expr, value.frame}] = result;
  }

  /// Whether threads go different ways between a place and an outer one.
  bool splits(const Scope *scope, const Scope *outer) {
    for (; scope && scope != outer; scope = scope->outer)
      if (scope->kind == Scope::Loop ? differsInLoop(scope)
                                     : differs({scope->condition, scope->frame}))
        return true;
    return false;
  }

private:
  const Scan &scan;
  Among among;
  std::unique_ptr<Divergence> sameLanes;
  const Call *barrier = nullptr;
  llvm::DenseMap<const VarDecl *, SmallVector<const Assignment *, 2>> assigned;
  llvm::DenseMap<const VarDecl *, const Scope *> declared;
  llvm::DenseMap<std::pair<const Expr *, const Frame *>, bool> known;
  llvm::DenseMap<const Scope *, bool> loops;

  /// Whether threads run a loop a different number of times.
  bool differsInLoop(const Scope *loop) {
    auto [entry, isNew] = loops.try_emplace(loop, false);
    if (!isNew)
      return entry->second;
    const Expr *condition = nullptr;
    if (const auto *counted = dyn_cast<ForStmt>(loop->statement))
      condition = counted->getCond();
    else if (const auto *node = dyn_cast<WhileStmt>(loop->statement))
      condition = node->getCond();
    else if (const auto *node = dyn_cast<DoStmt>(loop->statement))
      condition = node->getCond();
    bool result = condition && differs({condition, loop->frame});
    for (const Jump &jump : scan.walk.jumps) {
      if (result || !isInside(jump.scope, loop) || jump.frame != loop->frame)
        continue;
      auto around = loopsAround(jump.scope);
      if (isa<ReturnStmt>(jump.statement) || (!around.empty() && around[0] == loop))
        for (const Scope *scope = jump.scope; scope != loop; scope = scope->outer)
          result |= scope->kind != Scope::Loop && differs({scope->condition, scope->frame});
    }
    return loops[loop] = result;
  }

  bool isBehindBarrier(const Assignment &assignment) const {
    if (assignment.order < barrier->order)
      return false;
    auto around = loopsAround(barrier->scope);
    return llvm::none_of(loopsAround(assignment.scope),
                         [&](const Scope *loop) { return llvm::is_contained(around, loop); });
  }

  bool differsByPosition(const VarDecl *variable) const {
    for (const auto *attribute : variable->specific_attrs<AnnotateAttr>()) {
      StringRef name = metalName(attribute);
      if (name == "thread_index_in_simdgroup")
        return among != Among::SameLanes;
      if (name.starts_with("thread_index") || name.starts_with("thread_position") ||
          name.starts_with("quadgroup_index"))
        return true;
      if (name == "simdgroup_index_in_threadgroup")
        return among != Among::Simdgroup;
    }
    return false;
  }

  bool compute(Value value) {
    const Expr *expr = value.expr;
    if (const VarDecl *variable = variableOf(expr)) {
      if (differsByPosition(variable))
        return true;
      if (const auto *parameter = dyn_cast<ParmVarDecl>(variable))
        for (const Frame *place = value.frame; place; place = place->caller) {
          auto found = place->arguments.find(parameter);
          if (found != place->arguments.end() && differs(found->second))
            return true;
        }
      if (!variable->isLocalVarDecl() && !isa<ParmVarDecl>(variable))
        return false;
      if (Values::spaceOf(variable->getType()) == Space::Threadgroup)
        return false;
      if (variable->getInit() && differs({variable->getInit(), value.frame}))
        return true;
      if (const ForStmt *loop = scan.values.loopOf(variable)) {
        std::optional<Counter> counter = counterOf(loop);
        if (counter && ((counter->step && differs({counter->step, value.frame})) ||
                        (counter->start && differs({counter->start, value.frame}))))
          return true;
      }
      const Scope *outer = declared.lookup(variable);
      for (const Assignment *assignment : assigned.lookup(variable))
        if (!isBehindBarrier(*assignment) &&
            (differs({assignment->value, assignment->frame}) || splits(assignment->scope, outer)))
          return true;
      return false;
    }
    if (const auto *call = dyn_cast<CallExpr>(expr)) {
      StringRef name = scan.values.libraryName(call);
      if (name.starts_with("atomic_") && name != "atomic_load_explicit")
        return true;
      if (name.starts_with("simd_") || name.starts_with("quad_")) {
        bool isShared = name.starts_with("simd_") && !name.contains("shuffle") &&
                        !name.contains("prefix") && name != "simd_is_first";
        if (isShared && among == Among::Simdgroup)
          return false;
        // Votes and sums of a value that all threads share, or all SIMD-groups.
        Divergence &arguments = isShared && sameLanes ? *sameLanes : *this;
        bool any = name == "simd_is_first";
        for (const Expr *argument : call->arguments())
          any |= arguments.differs({argument, value.frame});
        return any;
      }
      if (name.empty() && call->getDirectCallee() && !isa<CXXOperatorCallExpr>(call)) {
        bool any = false;
        scan.values.visitSources(value, [&](Value source) {
          if (source.expr != expr)
            if (const VarDecl *variable = variableOf(source.expr))
              any |= differsByPosition(variable);
        });
        if (any)
          return true;
      }
    }
    for (const Stmt *child : expr->children())
      if (const auto *inner = dyn_cast_or_null<Expr>(child))
        if (differs({inner, value.frame}))
          return true;
    return false;
  }
};

/// Whether nothing in a kernel tells threads of different SIMD-groups apart, so that it is for
/// threadgroups of one.
bool isForOneSimdgroup(const FunctionDecl *kernel) {
  for (const ParmVarDecl *parameter : kernel->parameters())
    for (const auto *attribute : parameter->specific_attrs<AnnotateAttr>()) {
      StringRef name = metalName(attribute);
      if (name != "thread_index_in_simdgroup" &&
          (name.starts_with("thread_") || name.starts_with("simdgroup_index") ||
           name.starts_with("quadgroup_index")))
        return false;
    }
  return true;
}

} // namespace

void matchBarriers(const Scan &scan) {
  if (!scan.walk.isKernel)
    return;
  bool isOne = isForOneSimdgroup(scan.walk.root);
  for (bool inSimdgroup : {false, true}) {
    StringRef name = inSimdgroup ? "simdgroup_barrier" : "threadgroup_barrier";
    Divergence divergence(scan, inSimdgroup || isOne ? Among::Simdgroup : Among::Threadgroup);
    for (const Call &call : scan.walk.calls) {
      if (call.name != name)
        continue;
      divergence.setBarrier(call);
      bool splits = divergence.splits(call.scope, nullptr);
      // Threads that have left the kernel or the function before.
      for (const Jump &jump : scan.walk.jumps)
        if (!splits && isa<ReturnStmt>(jump.statement) && jump.order < call.order &&
            !excludeEachOther(jump.scope, call.scope))
          for (const Frame *place = call.frame; place && !splits; place = place->caller)
            splits = place == jump.frame && divergence.splits(jump.scope, nullptr);
      if (splits)
        scan.report(104, QuirkClass::Defect, call.location,
                    "not all threads of the " +
                        llvm::Twine(inSimdgroup ? "SIMD-group" : "threadgroup") +
                        " reach this barrier in the same way");
    }
  }
}

} // namespace triton_metal::quirks
