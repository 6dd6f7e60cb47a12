// The rules of the language: every operation that a program can write, with Triton's promotion,
// broadcasting and checks, emitted as tt, arith, math, scf and cf operations.
#ifndef TRITON_METAL_LANGUAGE_BUILDER_H
#define TRITON_METAL_LANGUAGE_BUILDER_H

#include "language/Error.h"
#include "language/Type.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/StringMap.h"

#include <memory>
#include <variant>
#include <vector>

namespace triton_metal::tt {
enum class ScaleDotElemType : uint32_t;
} // namespace triton_metal::tt

namespace triton_metal::language {

/// A value of a running program: what MLIR computes, and how the language reads it.
struct Value {
  mlir::Value handle;
  Type type;
};

/// A number that is known while compiling. It has no dtype of its own until it meets a value.
struct Constant {
  enum class Kind { Bool, Int, Float };
  Kind kind = Kind::Int;
  __int128 integer = 0; // Bool, Int
  double real = 0;      // Float

  static Constant of(bool value) { return {Kind::Bool, value ? 1 : 0, 0}; }
  static Constant of(__int128 value) { return {Kind::Int, value, 0}; }
  static Constant of(double value) { return {Kind::Float, 0, value}; }
  bool isNegative() const { return kind == Kind::Float ? real < 0 : integer < 0; }
  double asDouble() const { return kind == Kind::Float ? real : static_cast<double>(integer); }
  std::string str() const;
};

/// One side of a scaled dot.
struct ScaledOperand {
  Value value;
  std::optional<Value> scale;
  /// What the numbers are: "e2m1", "e4m3", ...
  llvm::StringRef format;
  /// Where two numbers share a byte, they are neighbours along K, and not along the other
  /// dimension.
  bool packedAlongK;
};

using Operand = std::variant<Value, Constant>;
using Result = llvm::Expected<Value>;
using Results = llvm::Expected<std::vector<Value>>;

enum class BinaryOp {
  Add,
  Sub,
  Mul,
  TrueDiv,
  FloorDiv,
  Mod,
  And,
  Or,
  Xor,
  Shl,
  Shr,
  LogicalAnd,
  LogicalOr,
  Lt,
  Le,
  Gt,
  Ge,
  Eq,
  Ne,
};
enum class UnaryOp { Neg, Plus, Invert, Not };
enum class MathOp { Exp, Exp2, Log, Log2, Sin, Cos, Sqrt, SqrtRn, Rsqrt, Erf, Floor, Ceil };
enum class AtomicOp { Add, And, Or, Xor, Max, Min, Xchg };
enum class Hint { Divisibility, Contiguity, Constancy };

/// One compilation: the context, the module, and the functions made so far.
class Module {
public:
  /// The module goes before the context does.
  explicit Module(std::shared_ptr<mlir::MLIRContext> context);
  ~Module();
  mlir::MLIRContext &getContext() { return *context; }
  mlir::ModuleOp getOp() { return *module; }
  std::string str(bool debugInfo = true);
  /// Runs the verifier; the diagnostics are the error's message.
  llvm::Error verify();
  /// Takes `tt.divisibility` below `least` from the kernel's arguments on which no address and no
  /// mask depends. Returns their names.
  std::vector<std::string> dropIdleDivisibility(int64_t least);

private:
  std::shared_ptr<mlir::MLIRContext> context;
  mlir::OwningOpRef<mlir::ModuleOp> module;

public:
  /// The result types of the functions that are finished, by symbol.
  llvm::StringMap<std::vector<Type>> results;
};

class Builder {
public:
  explicit Builder(std::shared_ptr<Module> module);

  //===-- Locations -----------------------------------------------------===//
  void setLocation(llvm::StringRef file, unsigned line, unsigned column);
  /// Gives the operation that made `value` the name of the variable that it is assigned to.
  void setName(const Value &value, llvm::StringRef name);

  //===-- Numbers and types ---------------------------------------------===//
  /// The type that a number takes when nothing else decides.
  static llvm::Expected<Type> typeOf(const Constant &value);
  static llvm::Expected<Type> promoteIntegers(Type a, Type b);
  static llvm::Expected<Type> computationType(Type a, bool aIsNumber, Type b, bool bIsNumber,
                                              bool divOrMod);
  Result toTensor(const Operand &value);
  Result constant(const Constant &value, Type type, llvm::ArrayRef<int64_t> shape = {});
  Result full(llvm::ArrayRef<int64_t> shape, const Operand &value, Type type);
  Result arange(int64_t start, int64_t end);
  /// A value that nobody may read.
  Value poison(Type type);
  Result programId(int64_t axis);
  Result numPrograms(int64_t axis);

  //===-- Arithmetic ----------------------------------------------------===//
  Result binary(BinaryOp op, const Operand &lhs, const Operand &rhs);
  /// The operands of an operation in one type and shape.
  Results operands(const Operand &lhs, const Operand &rhs);
  Result unary(UnaryOp op, const Operand &operand);
  Result math(MathOp op, const Operand &operand);
  Result abs(const Operand &operand);
  Result fdiv(const Operand &lhs, const Operand &rhs, bool ieeeRounding);
  Result divRn(const Operand &lhs, const Operand &rhs);
  Result umulhi(const Operand &lhs, const Operand &rhs);
  Result minimum(const Operand &lhs, const Operand &rhs, bool propagateNan);
  Result maximum(const Operand &lhs, const Operand &rhs, bool propagateNan);
  Result clamp(const Operand &value, const Operand &low, const Operand &high, bool propagateNan);
  Result fma(const Operand &x, const Operand &y, const Operand &z);
  /// Calls a function of a device library on values of one shape.
  Result externElementwise(llvm::StringRef symbol, llvm::ArrayRef<Value> values, Type scalar);
  Result where(const Operand &condition, const Operand &x, const Operand &y);
  Result cast(const Operand &value, Type type, llvm::StringRef rounding = "");
  /// A truth value as `not`, `and` and `or` take it.
  Result truthOf(const Operand &operand, llvm::StringRef op);
  Result bitcast(const Operand &value, Type type);
  /// Memory has no type of one bit: int1 is int8 there, and a pointer to int1 a pointer to int8.
  static Type memoryType(Type element) {
    return element.isBool() ? Type(ScalarKind::Int8) : element;
  }
  Result memoryPointer(const Value &pointer);

  //===-- Shapes --------------------------------------------------------===//
  Result splat(const Value &value, llvm::ArrayRef<int64_t> shape);
  Result unsplat(const Value &value);
  Result reshape(const Value &value, llvm::ArrayRef<int64_t> shape, bool canReorder);
  Result expandDims(const Value &value, int64_t axis);
  Result broadcastTo(const Value &value, llvm::ArrayRef<int64_t> shape);
  Results broadcast(const Value &lhs, const Value &rhs);
  Result permute(const Value &value, llvm::ArrayRef<int64_t> order);
  Result cat(const Value &lhs, const Value &rhs);
  Result join(const Value &lhs, const Value &rhs);
  Results split(const Value &value);

  //===-- Memory --------------------------------------------------------===//
  Result load(const Value &pointer, std::optional<Operand> mask, std::optional<Operand> other,
              llvm::StringRef cache, llvm::StringRef eviction, bool isVolatile);
  llvm::Error store(const Value &pointer, const Operand &value, std::optional<Operand> mask,
                    llvm::StringRef cache, llvm::StringRef eviction);
  Result atomicRmw(AtomicOp op, const Value &pointer, const Operand &value,
                   std::optional<Operand> mask, llvm::StringRef sem, llvm::StringRef scope);
  Result atomicLoad(const Value &pointer, std::optional<Operand> mask, llvm::StringRef sem,
                    llvm::StringRef scope);
  llvm::Error atomicStore(const Value &pointer, const Operand &value, std::optional<Operand> mask,
                          llvm::StringRef sem, llvm::StringRef scope);
  Result atomicPoll(const Value &pointer, const Operand &expected, llvm::StringRef sem,
                    llvm::StringRef scope, std::optional<Operand> timeout);
  Result atomicCas(const Value &pointer, const Operand &compare, const Operand &value,
                   llvm::StringRef sem, llvm::StringRef scope);

  //===-- Products, hints, debugging ------------------------------------===//
  Result dot(const Value &lhs, const Value &rhs, std::optional<Value> acc,
             llvm::StringRef inputPrecision, std::optional<Type> outType, int64_t maxImprecise);
  Result dotScaled(ScaledOperand lhs, ScaledOperand rhs, std::optional<Value> acc, bool fastMath,
                   Type outType);
  Result gather(const Value &source, const Value &index, int64_t axis);
  Result histogram(const Value &input, int64_t bins, std::optional<Value> mask);
  llvm::Error hint(Hint kind, const Value &value, llvm::ArrayRef<int64_t> values);
  llvm::Error assume(const Operand &condition);
  llvm::Error deviceAssert(const Operand &condition, llvm::StringRef message,
                           std::optional<Operand> mask);
  llvm::Error devicePrint(llvm::StringRef prefix, llvm::ArrayRef<Value> values, bool hex);
  void debugBarrier();

  //===-- Functions -----------------------------------------------------===//
  /// Opens a function and returns its arguments; nested calls are allowed and restored by
  /// endFunction. `divisibility[i]` is 0 where nothing is known of argument i,
  /// and negative where the kernel is to test whether the argument is a multiple.
  std::vector<Value> beginFunction(llvm::StringRef name, llvm::ArrayRef<Type> params,
                                   llvm::ArrayRef<std::string> names, bool isKernel, bool noinline,
                                   llvm::ArrayRef<int64_t> divisibility,
                                   llvm::ArrayRef<int64_t> memory);
  /// Gives an argument of the function that is being built an attribute.
  void setArgumentFlag(const Value &argument, llvm::StringRef name, bool flag);
  /// Ends the block with `return values`; the function's type is fixed by endFunction.
  void emitReturn(mlir::Block *block, llvm::ArrayRef<Value> values);
  void endFunction(llvm::ArrayRef<Type> results);
  bool hasFunction(llvm::StringRef name) const;
  llvm::Expected<std::vector<Value>> call(llvm::StringRef name, llvm::ArrayRef<Value> arguments);

  //===-- Blocks: what a `return` inside an `if` needs --------------------===//
  mlir::Block *currentBlock() { return builder.getInsertionBlock(); }
  void setBlock(mlir::Block *block) { builder.setInsertionPointToEnd(block); }
  mlir::Block *createBlock();
  std::vector<Value> addArguments(mlir::Block *block, llvm::ArrayRef<Type> types);
  void branch(mlir::Block *target, llvm::ArrayRef<Value> values);
  void condBranch(const Value &condition, mlir::Block *thenBlock, mlir::Block *elseBlock);

  //===-- Structured control flow ----------------------------------------===//
  /// A value that a condition may be: a scalar, as int1.
  Result condition(const Value &value);
  llvm::Expected<Type> inductionType(const Operand &lower, const Operand &upper,
                                     const Operand &step);

  mlir::OpBuilder &ops() { return builder; }
  mlir::Location loc() const { return location; }
  std::shared_ptr<Module> getModule() { return module; }

private:
  friend class ForLoop;
  friend class WhileLoop;
  friend class IfRegion;
  friend class CombineRegion;

  struct Operands {
    Value lhs, rhs;
  };
  /// Promotion, then broadcasting; numbers become constants of the final type and shape.
  llvm::Expected<Operands> binaryOperands(const Operand &lhs, const Operand &rhs,
                                          bool allowLhsPointer = false,
                                          bool allowRhsPointer = false, bool divOrMod = false);
  llvm::Expected<std::array<Value, 3>> ternaryOperands(const Operand &a, const Operand &b,
                                                       const Operand &c);
  llvm::Expected<Operands> bitwiseOperands(const Operand &lhs, const Operand &rhs);
  /// Both operands in their common shape. `what` begins the message if they have none.
  llvm::Expected<Operands> broadcastPair(Value lhs, Value rhs, const llvm::Twine &what = "");
  /// The pointers of an atomic access, of bytes where they go to int1, and its mask.
  llvm::Expected<std::pair<Value, Value>> atomicPlaces(llvm::StringRef name, const Value &pointer,
                                                       std::optional<Operand> mask);
  /// An operand as one element for each pointer.
  llvm::Expected<Value> atomicOperand(llvm::StringRef name, const Value &pointer,
                                      const Operand &operand);
  Result castNumberOrValue(const Operand &value, Type type, llvm::ArrayRef<int64_t> shape);
  Result compare(BinaryOp op, const Value &lhs, const Value &rhs);
  Result addPointer(Value pointer, Value offset);
  Result atomicFloatMinMax(bool isMax, const Value &pointer, const Value &value, const Value &mask,
                           llvm::StringRef sem, llvm::StringRef scope);
  using ScaledKind = tt::ScaleDotElemType;
  llvm::Expected<ScaledKind> scaledOperand(ScaledOperand &operand, const char *side);
  Value zeroLike(Type type);
  Value allOnes(Type scalar);
  mlir::Type mlirType(const Type &type) { return type.toMLIR(builder.getContext()); }
  template <typename Op, typename... Args> Value make(Type type, Args &&...args) {
    return {Op::create(builder, location, std::forward<Args>(args)...)->getResult(0), type};
  }

  struct Frame {
    mlir::Operation *function;
    mlir::OpBuilder::InsertPoint point;
    mlir::Location location;
  };

  std::shared_ptr<Module> module;
  mlir::OpBuilder builder;
  mlir::Location location;
  llvm::SmallVector<Frame> frames;
};

/// A `for` under construction: the builder stands in its body until finish().
class ForLoop {
public:
  struct Attributes {
    std::optional<int64_t> numStages, unrollFactor;
    bool disallowAccMultiBuffer = false, flatten = false, warpSpecialize = false,
         disableLicm = false;
  };
  static llvm::Expected<std::unique_ptr<ForLoop>> begin(Builder &builder, const Operand &lower,
                                                        const Operand &upper, const Operand &step,
                                                        llvm::ArrayRef<Value> inits,
                                                        const Attributes &attributes);
  std::vector<Value> arguments;
  Value induction;
  std::vector<Value> finish(llvm::ArrayRef<Value> yields);

private:
  ForLoop(Builder &builder) : builder(builder) {}
  Builder &builder;
  mlir::scf::ForOp op;
};

/// A `while` under construction: first its condition, then its body.
class WhileLoop {
public:
  WhileLoop(Builder &builder, llvm::ArrayRef<Value> inits);
  std::vector<Value> arguments;
  std::vector<Value> endCondition(const Value &condition);
  /// Asks that nothing is moved out of the loop.
  void disableLicm();
  std::vector<Value> finish(llvm::ArrayRef<Value> yields);

private:
  Builder &builder;
  mlir::scf::WhileOp op;
  std::vector<Type> types;
};

/// An `if` under construction: the builder stands in the then-region, after beginElse() in the
/// other.
class IfRegion {
public:
  IfRegion(Builder &builder, const Value &condition);
  void beginElse();
  std::vector<Value> finish(llvm::ArrayRef<Value> thenValues, llvm::ArrayRef<Value> elseValues);

private:
  Builder &builder;
  mlir::scf::IfOp op;
};

/// A reduction, scan or map whose region is being built.
class CombineRegion {
public:
  static llvm::Expected<std::unique_ptr<CombineRegion>>
  reduce(Builder &builder, llvm::ArrayRef<Value> inputs, int64_t axis);
  static llvm::Expected<std::unique_ptr<CombineRegion>>
  scan(Builder &builder, llvm::ArrayRef<Value> inputs, int64_t axis, bool reverse);
  /// The types of the results follow from what the region returns.
  static llvm::Expected<std::unique_ptr<CombineRegion>>
  map(Builder &builder, llvm::ArrayRef<Value> inputs, int64_t pack);
  std::vector<Value> arguments;
  Results finish(llvm::ArrayRef<Value> results);

private:
  CombineRegion(Builder &builder) : builder(builder) {}
  void open(mlir::Region &region, llvm::ArrayRef<Type> elements);
  Results finishMap(llvm::ArrayRef<Value> results);
  Builder &builder;
  mlir::Operation *op = nullptr;
  std::vector<Type> types;
  bool isScan = false;
  /// The elements of each operand that a map takes at once; 0 for reductions and scans.
  int64_t pack = 0;
  /// The shape of a map's tiles.
  llvm::SmallVector<int64_t> shape;
};

} // namespace triton_metal::language

#endif // TRITON_METAL_LANGUAGE_BUILDER_H
