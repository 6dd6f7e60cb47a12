#include "host_device/msl/CodeVisitor.h"
#include "host_device/msl/LoopExits.h"
#include "host_device/msl/SyntaxTree.h"
#include "clang/AST/ExprCXX.h"
#include "clang/AST/StmtCXX.h"
#include "clang/Basic/SourceManager.h"

using namespace clang;

namespace triton_metal {

namespace {

/// Marks the loops of one function.
class Marker {
public:
  Marker(ASTContext &context, FunctionDecl *loop, FunctionDecl *leave)
      : context(context), loop(loop), leave(leave) {}

  void run(Stmt *body) {
    walk(body, /*inner=*/0, /*left=*/0);
    if (!leaves)
      return;
    for (auto [statement, number, parent] : loops)
      markLoop(statement, number, parent);
  }

private:
  ASTContext &context;
  FunctionDecl *loop, *leave;
  struct Found {
    Stmt *statement;
    unsigned number, parent;
  };
  llvm::SmallVector<Found> loops;
  bool leaves = false;

  /// `inner` is the loop around the statement, and `left` the one that a `break` leaves. 0 is none.
  void walk(Stmt *&statement, unsigned inner, unsigned left) {
    if (!statement || isa<Expr, DeclStmt>(statement))
      return;
    if (isa<ForStmt, WhileStmt, DoStmt, CXXForRangeStmt>(statement)) {
      unsigned number = loops.size() + 1;
      loops.push_back({statement, number, inner});
      inner = left = number;
    } else if (isa<SwitchStmt>(statement)) {
      left = 0;
    } else if (isa<BreakStmt>(statement) && left) {
      statement = markLeave(statement, left, /*returns=*/false);
      return;
    } else if (isa<ReturnStmt>(statement) && inner) {
      statement = markLeave(statement, inner, /*returns=*/true);
      return;
    }
    for (Stmt *&child : statement->children())
      walk(child, inner, left);
  }

  Stmt *markLeave(Stmt *statement, unsigned number, bool returns) {
    leaves = true;
    return inFrontOf(call(leave, number, returns, statement->getBeginLoc()), statement);
  }

  void markLoop(Stmt *statement, unsigned number, unsigned parent) {
    auto mark = [&](auto *of) {
      of->setBody(
          inFrontOf(call(loop, number, parent, of->getBody()->getBeginLoc()), of->getBody()));
    };
    if (auto *counted = dyn_cast<ForStmt>(statement))
      mark(counted);
    else if (auto *tested = dyn_cast<WhileStmt>(statement))
      mark(tested);
    else if (auto *ranged = dyn_cast<CXXForRangeStmt>(statement))
      mark(ranged);
    else
      mark(cast<DoStmt>(statement));
  }

  Stmt *inFrontOf(Expr *first, Stmt *statement) {
    return CompoundStmt::Create(context, {first, statement}, FPOptionsOverride(),
                                statement->getBeginLoc(), statement->getEndLoc());
  }

  Expr *call(FunctionDecl *function, unsigned a, unsigned b, SourceLocation place) {
    auto number = [&](unsigned value) -> Expr * {
      return IntegerLiteral::Create(context, llvm::APInt(context.getIntWidth(context.IntTy), value),
                                    context.IntTy, place);
    };
    return makeCall(context, function, {number(a), number(b)}, place);
  }
};

class Visitor : public CodeVisitor<Visitor> {
public:
  Visitor(ASTContext &context, llvm::DenseSet<const FunctionDecl *> &done, FunctionDecl *loop,
          FunctionDecl *leave)
      : context(context), done(done), loop(loop), leave(leave) {}

  bool VisitFunctionDecl(FunctionDecl *function) {
    if (function->doesThisDeclarationHaveABody() && !function->isDependentContext() &&
        done.insert(function).second)
      Marker(context, loop, leave).run(function->getBody());
    return true;
  }

private:
  ASTContext &context;
  llvm::DenseSet<const FunctionDecl *> &done;
  FunctionDecl *loop, *leave;
};

} // namespace

void LoopExits::run(ASTContext &context, Decl *declaration) {
  if (context.getSourceManager().isInSystemHeader(declaration->getLocation()))
    return;
  if (!loop)
    loop = functionNamed(context, "__tm_loop");
  if (!leave)
    leave = functionNamed(context, "__tm_leave");
  if (loop && leave)
    Visitor(context, done, loop, leave).TraverseDecl(declaration);
}

} // namespace triton_metal
