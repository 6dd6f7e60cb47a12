// One kernel with the functions that it calls, as lists of what it does in the order of the text.
#pragma once

#include "host_device/quirks/Values.h"
#include "clang/AST/Stmt.h"
#include <vector>

namespace triton_metal::quirks {

/// A loop or a branch that a statement is in.
struct Scope {
  enum Kind { Loop, Then, Else, Case };
  Kind kind;
  /// The loop, `if`, `switch`, `?:`, `&&` or `||`.
  const clang::Stmt *statement;
  const Frame *frame;
  const Scope *outer;
  /// The condition of a branch; null for loops.
  const clang::Expr *condition = nullptr;
  /// What the text asks for: how often the loop is unrolled. 0 means not at all.
  uint64_t unrolled = 0;
  bool hasUnrollHint = false;
  unsigned begin = 0, end = 0;
};

/// What every event has.
struct Event {
  const Frame *frame;
  const Scope *scope;
  unsigned order;
  clang::SourceLocation location;
};

enum class Use { Load, Store, Update, Address };

/// An access of memory through a pointer, or of an element of an array.
struct Access : Event {
  const clang::Expr *lvalue = nullptr;
  /// For functions that access memory: the pointer.
  const clang::Expr *pointer = nullptr;
  Use use = Use::Load;
  clang::QualType type;
  /// Whether the whole object is loaded, not a part of it.
  bool isWhole = true;
  bool loads() const { return use == Use::Load || use == Use::Update; }
  bool stores() const { return use == Use::Store || use == Use::Update; }
};

struct Call : Event {
  const clang::CallExpr *call = nullptr;
  const clang::FunctionDecl *callee = nullptr;
  /// The name of a function of the standard library, or an empty text.
  llvm::StringRef name;
};

struct Operator : Event {
  const clang::Expr *expr = nullptr;
};

struct Assignment : Event {
  /// The variable or memory that is assigned to, and the whole expression.
  const clang::Expr *target = nullptr;
  const clang::Expr *value = nullptr;
  const clang::Expr *whole = nullptr;
  bool isCompound = false;
};

struct LoopEvent : Event {
  const clang::Stmt *loop = nullptr;
  const Scope *inner = nullptr;
  /// The statements that unrolling makes of it; 0 for loops without a hint.
  uint64_t unrolledStatements = 0;
};

struct Variable : Event {
  const clang::VarDecl *variable = nullptr;
};

/// A `return`, `break` or `continue`.
struct Jump : Event {
  const clang::Stmt *statement = nullptr;
};

struct Branch : Event {
  const clang::Stmt *statement = nullptr;
  const clang::Expr *condition = nullptr;
  const Scope *thenScope = nullptr, *elseScope = nullptr;
  unsigned end = 0;
};

struct Walk {
  const clang::FunctionDecl *root = nullptr;
  const Frame *frame = nullptr;
  bool isKernel = false;
  std::vector<Access> accesses;
  std::vector<Call> calls;
  std::vector<Operator> operators;
  std::vector<Assignment> assignments;
  std::vector<LoopEvent> loops;
  std::vector<Variable> variables;
  std::vector<Jump> jumps;
  std::vector<Branch> branches;
  /// The statements after inlining and unrolling.
  uint64_t statements = 0;
  /// Whether the function has more of everything than is kept.
  bool isCut = false;
  std::vector<std::unique_ptr<Scope>> scopes;
};

/// Walks a function. Calls of functions in `entered` are followed; functions that have been
/// followed are added to `followed`.
void walkFunction(const clang::FunctionDecl *function, Values &values, Walk &walk,
                  llvm::DenseSet<const clang::FunctionDecl *> &followed);

/// The loops around an event, from the innermost one.
llvm::SmallVector<const Scope *, 4> loopsAround(const Scope *scope);
bool isInside(const Scope *scope, const Scope *outer);
/// Whether two events are in different branches of one condition.
bool excludeEachOther(const Scope *a, const Scope *b);
/// Whether a loop is gone after the unrolling that the text asks for.
bool isUnrolled(const Scope *loop, Values &values);

} // namespace triton_metal::quirks
