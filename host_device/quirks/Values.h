// What expressions of a kernel stand for: through variables, parameters of inlined functions, casts
// and macros.
#pragma once

#include "clang/AST/ASTContext.h"
#include "clang/AST/Decl.h"
#include "clang/AST/Expr.h"
#include "clang/AST/ExprCXX.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace triton_metal::quirks {

struct Frame;

/// An expression in one call of the function that contains it.
struct Value {
  const clang::Expr *expr = nullptr;
  const Frame *frame = nullptr;
  explicit operator bool() const { return expr; }
};

/// One call of a function. A kernel's own frame has no caller.
struct Frame {
  const clang::FunctionDecl *function = nullptr;
  const Frame *caller = nullptr;
  const clang::Expr *call = nullptr;
  unsigned depth = 0;
  llvm::DenseMap<const clang::ParmVarDecl *, Value> arguments;
};

/// A closed interval of integers.
struct Range {
  __int128 low, high;
  bool isConstant() const { return low == high; }
  bool contains(const Range &other) const { return low <= other.low && other.high <= high; }
};

/// What a function does to its local variables.
struct VariableFacts {
  /// What is assigned to a variable, other than its initial value.
  llvm::SmallVector<const clang::Expr *, 2> assigned;
  /// The operations, such as +=, that change it.
  llvm::SmallVector<const clang::Expr *, 2> updates;
  /// Whether it is changed in another way: by ++, or through its address or a reference.
  bool escapes = false;
  /// Whether it is changed by anything but assignments.
  bool changes() const { return escapes || !updates.empty(); }
};

/// The variables that some statements change.
using VariableSet = llvm::DenseSet<const clang::VarDecl *>;

enum class Space { Thread, Device, Threadgroup, Constant };

/// Where a pointer points.
struct Pointer {
  /// The kernel's parameter, the variable or the field that the pointer comes from, or null.
  const clang::ValueDecl *root = nullptr;
  const Frame *frame = nullptr;
  /// What was added to the root, in order, and the bytes of an element.
  struct Step {
    Value index;
    bool isNegative;
    uint64_t elementBytes;
  };
  llvm::SmallVector<Step, 4> steps;
  /// The types of the pointees before each cast, from the last one.
  llvm::SmallVector<clang::QualType, 2> casts;
  /// The pointer variables on the way that have no cast in between and are changed somewhere.
  llvm::SmallVector<const clang::VarDecl *, 2> changing;
  /// The steps from this one on were added to the last such variable.
  unsigned stepsBeforeChange = 0;
  bool isCoherent = false;
};

/// A sum of variables with coefficients. The names are those that `key` gives.
struct Linear {
  std::map<std::string, __int128> terms;
  __int128 constant = 0;
};

/// A two-operand operation, on numbers or on vectors.
struct Operation {
  clang::BinaryOperatorKind code;
  Value left, right;
  /// The type of an element of the result.
  clang::QualType type;
};

class Values {
public:
  explicit Values(clang::ASTContext &ast) : ast(ast) {}
  clang::ASTContext &ast;

  Frame *makeFrame();

  /// Without parentheses and conversions that change no value, through variables that have one
  /// value and through calls of functions that only return one.
  Value resolve(Value value);
  /// As `resolve`, but also through conversions of numbers.
  Value resolveNumber(Value value);
  /// All values that the variable may have, if the expression is one; else the expression.
  llvm::SmallVector<Value, 2> alternatives(Value value);

  std::optional<Operation> operation(const clang::Expr *expr, const Frame *frame);
  std::optional<Operation> operation(Value value) { return operation(value.expr, value.frame); }

  /// The numbers that an integer expression may have.
  Range range(Value value);
  std::optional<int64_t> constant(Value value);
  static Range rangeOf(clang::QualType type, const clang::ASTContext &ast);

  Pointer pointer(Value value);
  /// The pointer to what a memory expression (`p[i]`, `*p`, `p->f`) accesses.
  Pointer address(const clang::Expr *lvalue, const Frame *frame);

  /// A text that is the same for expressions with the same value.
  std::string key(Value value, unsigned depth = 0);
  Linear linear(Value value, unsigned depth = 0);

  const VariableFacts &facts(const clang::VarDecl *variable, const clang::FunctionDecl *function);
  /// The variables that a statement changes.
  const VariableSet &changedIn(const clang::Stmt *statement);
  /// Whether an expression may differ between two executions of a statement of the frame.
  bool variesIn(Value value, const clang::Stmt *statement, const Frame *frame, unsigned depth = 0);

  /// Calls `function` for the expression and everything that determines it, through variables.
  void visitSources(Value value, llvm::function_ref<void(Value)> function);

  static Space spaceOf(clang::QualType pointee);
  /// T of `vec<T, N>`, and N.
  static std::optional<std::pair<clang::QualType, unsigned>> vectorOf(clang::QualType type);
  /// The record's name if it is the standard library's template, as in "simdgroup_matrix".
  static llvm::StringRef templateName(clang::QualType type);
  static bool isMatrix(clang::QualType type) { return templateName(type) == "matrix"; }
  static bool isSimdgroupMatrix(clang::QualType type) {
    return templateName(type) == "simdgroup_matrix";
  }
  static bool isFloat(clang::QualType type);
  bool inLibrary(const clang::Decl *decl) const;
  /// The name of a called function of the standard library, or an empty text.
  llvm::StringRef libraryName(const clang::CallExpr *call) const;
  /// The namespace in which it is: "fast", "precise" or an empty text.
  static llvm::StringRef libraryNamespace(const clang::CallExpr *call);

  /// Where the text has `coherent(...)`: offsets of begin and end in the file.
  std::vector<std::pair<clang::SourceLocation, clang::SourceLocation>> coherentPlaces;
  bool isCoherent(clang::SourceLocation begin, clang::SourceLocation end) const;

private:
  Value single(Value value);
  Value returned(const clang::CallExpr *call, const Frame *frame);
  Range computeRange(Value value);
  Range rangeOfVariable(const clang::VarDecl *variable, const Frame *frame, clang::QualType type);
  Range rangeOfCall(const clang::CallExpr *call, const Frame *frame, const Range &whole);
  void resolvePointer(Value value, Pointer &result, unsigned depth);
  void resolveNumberedAddress(Value value, Pointer &result, unsigned depth);
  void resolveAddress(const clang::Expr *lvalue, const Frame *frame, Pointer &result,
                      unsigned depth);
  void visitSources(Value value, llvm::function_ref<void(Value)> function,
                    llvm::DenseSet<std::pair<const clang::Expr *, const Frame *>> &seen);

  std::vector<std::unique_ptr<Frame>> frames;
  llvm::DenseMap<const clang::FunctionDecl *, llvm::DenseMap<const clang::VarDecl *, VariableFacts>>
      known;
  llvm::DenseMap<const clang::Stmt *, std::unique_ptr<VariableSet>> changes;
  llvm::DenseMap<std::pair<const clang::Expr *, const Frame *>, Range> ranges;
  /// The expressions whose range is being computed.
  llvm::DenseSet<std::pair<const clang::Expr *, const Frame *>> active;
  unsigned rangeSteps = 0;
  bool isCyclic = false;
  llvm::DenseMap<std::pair<const clang::Expr *, const Frame *>, const Frame *> callFrames;
  llvm::DenseMap<const clang::VarDecl *, const clang::ForStmt *> counters;
  llvm::DenseSet<const clang::FunctionDecl *> collected;

  void collect(const clang::FunctionDecl *function);

public:
  /// The loop that counts with a variable, or null.
  const clang::ForStmt *loopOf(const clang::VarDecl *variable);
  /// The frame for a call, one for each call expression in each frame.
  const Frame *frameOf(const clang::CallExpr *call, const clang::FunctionDecl *callee,
                       const Frame *caller);
  const Frame *frameOf(const clang::Expr *call, const clang::FunctionDecl *callee,
                       llvm::ArrayRef<const clang::Expr *> arguments, const Frame *caller);
};

/// The counter of a `for` loop.
struct Counter {
  const clang::VarDecl *variable = nullptr;
  const clang::Expr *start = nullptr, *bound = nullptr;
  /// The comparison with the counter on its left.
  clang::BinaryOperatorKind comparison = clang::BO_LT;
  const clang::Expr *step = nullptr;
  bool isSubtracted = false, isOne = false;
};
std::optional<Counter> counterOf(const clang::ForStmt *loop);
/// How often a loop runs, if that is a constant.
std::optional<uint64_t> tripCount(const clang::Stmt *loop, const Frame *frame, Values &values);

const clang::Expr *plain(const clang::Expr *expr);
const clang::VarDecl *variableOf(const clang::Expr *expr);

} // namespace triton_metal::quirks
