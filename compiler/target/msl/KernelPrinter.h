#ifndef TRITON_METAL_TARGET_MSL_KERNELPRINTER_H
#define TRITON_METAL_TARGET_MSL_KERNELPRINTER_H

#include "dialect/msl/MSL.h"
#include "target/msl/Names.h"
#include "target/msl/Printer.h"
#include "target/msl/Ranges.h"
#include "target/msl/Types.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/DenseSet.h"

namespace triton_metal::msl {

/// How tightly an expression's outermost operator binds.
enum Precedence {
  Conditional = 1,
  LogicalOr,
  LogicalAnd,
  BitOr,
  BitXor,
  BitAnd,
  Equality,
  Relation,
  Shift,
  Sum,
  Product,
  Unary,
  Primary
};

struct Expr {
  std::string text;
  int precedence = Primary;
  /// The expression's C++ type is the unsigned one of its width.
  bool isUnsigned = false;
  /// The expression is a ushort, though its value is an int: arithmetic promotes it, functions do
  /// not.
  bool isShort = false;
  /// One number that stands for every component of a vector.
  bool isSplat = false;
  /// An integer literal, whose type follows what it is combined with.
  std::optional<llvm::APInt> literal = std::nullopt;
  /// Variables that a loop changes.
  llvm::SmallVector<mlir::Value, 2> changing = {};
  /// For `a op b`: what `x = x op b` needs to become `x op= b`.
  std::string left = {}, op = {}, right = {};
};

/// Helper functions that the text may need in front of its kernels.
struct Prelude {
  bool elements = false, maximum = false, minimum = false, compareExchangeDevice = false,
       compareExchangeThreadgroup = false;
  bool erf = false, log1p = false, expm1 = false, roundToOdd = false;
  void print(llvm::raw_ostream &os) const;
};

/// Writes one kernel.
class KernelPrinter {
public:
  KernelPrinter(KernelOp kernel, llvm::raw_ostream &os, Prelude &prelude)
      : kernel(kernel), os(os), prelude(prelude) {}
  mlir::LogicalResult print();
  /// Places are counted from the kernel's first character.
  const TextLayout &getLayout() const { return layout; }

private:
  // The kernel (KernelPrinter.cpp).
  void printSignature();
  void printThreadgroupMemory();
  mlir::LogicalResult refuse(mlir::Operation *op, const llvm::Twine &why);

  // Statements (Statements.cpp).
  void printBlock(mlir::Block &block);
  void printOp(mlir::Operation *op);
  void printFor(mlir::scf::ForOp op);
  void printWhile(mlir::scf::WhileOp op);
  void printIf(mlir::scf::IfOp op);
  void printUnroll(UnrollOp op);
  void printYield(mlir::ValueRange values, llvm::ArrayRef<std::string> targets,
                  llvm::ArrayRef<mlir::Value> variables);
  void printAssignment(const std::string &target, const Expr &value, mlir::Type type);
  void printBody(const std::string &head, llvm::function_ref<void()> body);
  std::string capture(llvm::function_ref<void()> body);
  void line(const llvm::Twine &text);
  void declare(mlir::Value value, const Expr &expr);
  bool isFolded(mlir::Operation *op, const Expr &expr);
  bool isUndisturbed(mlir::Operation *op, mlir::Operation *user);
  bool wantsUnsigned(mlir::Value value, const Expr &expr);
  std::string getElement(mlir::Value array, mlir::Value index);
  std::string makeName(mlir::Value value, llvm::StringRef fallback = "");
  std::string getDeclaration(mlir::Type type, const std::string &name, bool isUnsigned,
                             Qualifiers qualifiers = {});

  // Where accesses come from (Places.cpp).
  void notePlaces(llvm::StringRef text);
  void takePlaces();

  // Expressions (Expressions.cpp, Calls.cpp).
  /// The text of a value; its signed or unsigned form, or as a whole vector, where the context
  /// needs that. The latter is of the value's very type, as functions and templates need it.
  Expr get(mlir::Value value);
  Expr getSigned(mlir::Value value);
  Expr getUnsigned(mlir::Value value);
  Expr getWhole(mlir::Value value);
  Expr makeWhole(const Expr &expr, mlir::Type type);
  Expr getFloat(mlir::Value value);
  Expr build(mlir::Operation *op);
  Expr buildArith(mlir::Operation *op);
  Expr buildConstant(mlir::Operation *op, mlir::Attribute value);
  Expr buildWrapping(mlir::Operation *op, llvm::StringRef symbol, int precedence);
  Expr buildDivision(mlir::Operation *op, llvm::StringRef symbol, bool isUnsigned);
  Expr buildBits(mlir::Operation *op, llvm::StringRef symbol, llvm::StringRef logical,
                 int precedence, int logicalPrecedence);
  Expr buildShift(mlir::Operation *op, llvm::StringRef symbol, bool isUnsigned);
  Expr buildCompare(mlir::Operation *op);
  Expr buildFloatCompare(mlir::Operation *op);
  Expr buildFloat(mlir::Operation *op, llvm::StringRef symbol, int precedence);
  Expr buildSelect(mlir::Operation *op);
  Expr buildConversion(mlir::Operation *op);
  Expr buildMath(mlir::Operation *op);
  Expr buildSimd(mlir::Operation *op);
  Expr buildAtomic(mlir::Operation *op);
  Expr buildRead(ReadOp op);
  Expr buildVolatileRead(ReadOp op);
  Expr buildMinMax(mlir::Operation *op, llvm::StringRef function, bool isUnsigned);
  Expr call(llvm::StringRef function, llvm::ArrayRef<Expr> arguments);
  Expr cast(const std::string &type, const Expr &value);
  Expr castTo(mlir::Type type, bool isUnsigned, const Expr &value);
  Expr binary(const Expr &a, llvm::StringRef symbol, const Expr &b, int precedence);
  Expr narrow(mlir::Operation *op, Expr expr);
  Expr fail(mlir::Operation *op, const llvm::Twine &why);
  std::string inParens(const Expr &expr, int atLeast);
  /// base + offset, as a pointer.
  Expr getAddress(mlir::Value base, mlir::Value offset);
  std::string getAccess(mlir::Value base, mlir::Value offset, mlir::Type type, bool isConst);
  Qualifiers getQualifiers(mlir::Value pointer);
  Expr getOffset(mlir::Value offset);

  KernelOp kernel;
  llvm::raw_ostream &os;
  Prelude &prelude;
  Names names;
  Ranges ranges;
  llvm::DenseMap<mlir::Value, Expr> exprs;
  std::string buffer;
  TextLayout layout;
  /// The operation whose statement is being written, and those that are part of another's.
  mlir::Operation *statement = nullptr;
  llvm::DenseSet<mlir::Operation *> folded;
  /// Accesses of the lines in the buffer, which name them by their number: lines move until the
  /// kernel is complete.
  std::vector<std::vector<TextPlace>> notes;
  unsigned depth = 1;
  unsigned loopDepth = 0;
  bool failed = false;
  bool usesProgramId = false, usesNumPrograms = false, usesLane = false, usesSimdgroup = false;
  std::string programId, numPrograms, lane, simdgroup, args;
};

} // namespace triton_metal::msl

#endif // TRITON_METAL_TARGET_MSL_KERNELPRINTER_H
