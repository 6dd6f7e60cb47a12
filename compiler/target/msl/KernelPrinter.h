#ifndef TRITON_METAL_TARGET_MSL_KERNELPRINTER_H
#define TRITON_METAL_TARGET_MSL_KERNELPRINTER_H

#include "analysis/PointerOrigins.h"
#include "dialect/msl/MSL.h"
#include "target/msl/Names.h"
#include "target/msl/Prelude.h"
#include "target/msl/Printer.h"
#include "target/msl/Types.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

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
};

/// Writes one kernel in the text form. Each operation has one form in Metal.
class KernelPrinter {
public:
  KernelPrinter(KernelOp kernel, llvm::raw_ostream &os, Prelude &prelude, bool withLines)
      : kernel(kernel), origins(kernel), os(os), prelude(prelude), withLines(withLines) {}
  mlir::LogicalResult print();
  /// Positions are relative to the first character of the kernel.
  const TextLayout &getLayout() const { return layout; }

private:
  // The kernel (KernelPrinter.cpp).
  void printSignature();
  void printThreadgroupMemory();
  mlir::LogicalResult refuse(mlir::Operation *op, const llvm::Twine &why);

  // Statements (Statements.cpp).
  void printBlock(mlir::Block &block);
  void printOp(mlir::Operation *op);
  void printFor(ForOp op);
  void printWhile(mlir::scf::WhileOp op);
  void printIf(mlir::scf::IfOp op);
  void printUnroll(UnrollOp op);
  void printLet(LetOp op);
  void printVar(VarOp op);
  void printSet(SetOp op);
  void printAtomic(mlir::Operation *op);
  void printBody(const std::string &head, llvm::function_ref<void()> body);
  std::string capture(llvm::function_ref<void()> body);
  void line(const llvm::Twine &text);
  std::string getDeclaration(mlir::Type type, const std::string &name, Qualifiers qualifiers = {});

  // Where accesses, and lines as a whole, come from (Places.cpp).
  void notePlaces(llvm::StringRef text);
  void takePlaces();

  // Expressions (Expressions.cpp).
  Expr get(mlir::Value value);
  Expr build(mlir::Operation *op);
  Expr buildConstant(mlir::Operation *op, mlir::Attribute value);
  Expr buildBinary(BinaryOp op);
  Expr buildCall(MetalCallOpInterface op);
  Expr call(const llvm::Twine &function, mlir::ValueRange arguments,
            llvm::ArrayRef<std::string> literals = {});
  Expr binary(const Expr &a, llvm::StringRef symbol, const Expr &b, int precedence);
  Expr choose(const Expr &condition, const Expr &yes, const Expr &no);
  Expr fail(mlir::Operation *op, const llvm::Twine &why);
  std::string inParens(const Expr &expr, int atLeast);
  /// The text of a value that is assigned. A number is converted to the sign of the variable, and a
  /// vector variable takes one number for all components. Memory only does the former.
  std::string getAssigned(mlir::Value value, bool isVariable = true);

  // Memory (Accesses.cpp).
  Expr buildRead(ReadOp op);
  Expr buildVolatileRead(ReadOp op);
  Expr buildAtomic(mlir::Operation *op);
  /// base + offset, as a pointer.
  Expr buildPointer(PtrAddOp op);
  Expr getAddress(mlir::Value base, mlir::Value offset);
  std::string getAccess(mlir::Value base, mlir::Value offset, mlir::Type type, bool isConst,
                        bool unaligned = false);
  /// `array[index]`, as a matrix where it is one.
  std::string getMatrix(mlir::TypedValue<ArrayType> array, mlir::Value index);
  /// The elements of the matrix `array[index]` that this thread holds, or one of them.
  std::string getElement(mlir::TypedValue<ArrayType> array, mlir::Value index,
                         mlir::Value element = {});
  Qualifiers getQualifiers(mlir::Value pointer);

  KernelOp kernel;
  PointerOrigins origins;
  llvm::raw_ostream &os;
  Prelude &prelude;
  Names names;
  llvm::DenseMap<mlir::Value, Expr> exprs;
  /// Allocations of bytes that share memory with others: a pointer to the memory, and where they
  /// begin in it.
  llvm::DenseMap<mlir::Value, std::pair<std::string, int64_t>> byteMemory;
  std::string buffer;
  TextLayout layout;
  /// The operation whose statement is being written.
  mlir::Operation *statement = nullptr;
  /// What is known of a line: its accesses, and if `withLines` where all of it comes from and the
  /// buffers of threadgroup memory, by their number in the layout, that it accesses.
  struct Note {
    std::vector<TextPlace> places;
    TextLine line;
    std::vector<size_t> buffers;
  };
  void noteLine(mlir::Operation *own, llvm::ArrayRef<mlir::Operation *> parts, Note &note);
  /// The notes of the lines in the buffer. Lines refer to them by number, because line numbers
  /// change until the kernel is complete.
  std::vector<Note> notes;
  bool withLines;
  /// The numbers of allocations in the layout's buffers.
  llvm::DenseMap<mlir::Operation *, size_t> bufferNumbers;
  unsigned depth = 1;
  unsigned loopDepth = 0;
  bool failed = false;
};

} // namespace triton_metal::msl

#endif // TRITON_METAL_TARGET_MSL_KERNELPRINTER_H
