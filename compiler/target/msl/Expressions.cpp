// Expressions: each operation's operator or call, and where C++ needs parentheses.

#include "target/msl/KernelPrinter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace triton_metal::msl;

Expr KernelPrinter::fail(Operation *op, const Twine &why) {
  (void)refuse(op, why);
  return {"0"};
}

//===----------------------------------------------------------------------===//
// Composing text
//===----------------------------------------------------------------------===//

std::string KernelPrinter::inParens(const Expr &expr, int atLeast) {
  return expr.precedence >= atLeast ? expr.text : "(" + expr.text + ")";
}

Expr KernelPrinter::binary(const Expr &a, StringRef symbol, const Expr &b, int precedence) {
  // Operands of bit operators, shifts, && and || are put in parentheses, as compilers recommend.
  auto side = [&](const Expr &part, bool isRight) {
    int atLeast = precedence + (isRight ? 1 : 0);
    if (precedence == BitOr || precedence == BitXor || precedence == BitAnd || precedence == Shift)
      atLeast = part.precedence == precedence && !isRight ? precedence : int(Unary);
    if (precedence == LogicalOr && part.precedence == LogicalAnd)
      atLeast = Primary;
    // && and || may be grouped either way.
    if ((precedence == LogicalAnd || precedence == LogicalOr) && part.precedence == precedence)
      atLeast = precedence;
    return inParens(part, atLeast);
  };
  return {side(a, false) + " " + symbol.str() + " " + side(b, true), precedence};
}

Expr KernelPrinter::choose(const Expr &condition, const Expr &yes, const Expr &no) {
  return {inParens(condition, LogicalOr) + " ? " + inParens(yes, LogicalOr) + " : " +
              inParens(no, Conditional),
          Conditional};
}

Expr KernelPrinter::call(const Twine &function, ValueRange arguments,
                         ArrayRef<std::string> literals) {
  Expr result{function.str() + "("};
  const char *separator = "";
  for (Value argument : arguments) {
    result.text += separator + get(argument).text;
    separator = ", ";
  }
  for (const std::string &literal : literals) {
    result.text += separator + literal;
    separator = ", ";
  }
  result.text += ")";
  return result;
}

std::string KernelPrinter::getAssigned(Value value, bool isVariable) {
  auto cast = value.getDefiningOp<CastOp>();
  if (!cast)
    return get(value).text;
  Type from = cast.getValue().getType(), to = cast.getType();
  bool isOtherSign = from.isInteger() && to.isInteger() && !from.isInteger(1) &&
                     from.getIntOrFloatBitWidth() == to.getIntOrFloatBitWidth();
  bool isNumberForAll = isVariable && isa<VectorType>(to) && getElementTypeOrSelf(to) == from;
  return get(isOtherSign || isNumberForAll ? cast.getValue() : value).text;
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

Expr KernelPrinter::get(Value value) {
  if (auto it = exprs.find(value); it != exprs.end())
    return it->second;
  Attribute attr;
  if (Operation *op = value.getDefiningOp(); op && matchPattern(op, m_Constant(&attr)))
    return buildConstant(op, attr);
  if (Operation *op = value.getDefiningOp())
    return fail(op, "has no text here");
  failed = true;
  return {"0"};
}

Expr KernelPrinter::buildConstant(Operation *op, Attribute attr) {
  auto dense = dyn_cast<DenseElementsAttr>(attr);
  if (!dense) {
    if (!isa<IntegerAttr, FloatAttr>(attr))
      return fail(op, "is a constant that Metal does not have");
    std::string text = getLiteral(attr);
    return {text, StringRef(text).starts_with("-") ? Unary : Primary};
  }
  std::string type = getTypeName(dense.getType());
  if (type.empty())
    return fail(op, "is a vector that Metal does not have");
  Expr expr{type + "("};
  const char *separator = "";
  for (Attribute value : dense.getValues<Attribute>()) {
    expr.text += separator + getLiteral(value);
    separator = ", ";
    if (dense.isSplat())
      break;
  }
  expr.text += ")";
  return expr;
}

Expr KernelPrinter::buildBinary(BinaryOp op) {
  static constexpr struct {
    StringLiteral symbol;
    Precedence precedence;
  } operators[] = {{"+", Sum},         {"-", Sum},       {"*", Product},   {"/", Product},
                   {"%", Product},     {"&", BitAnd},    {"|", BitOr},     {"^", BitXor},
                   {"<<", Shift},      {">>", Shift},    {"<", Relation},  {"<=", Relation},
                   {">", Relation},    {">=", Relation}, {"==", Equality}, {"!=", Equality},
                   {"&&", LogicalAnd}, {"||", LogicalOr}};
  auto [symbol, precedence] = operators[unsigned(op.getKind())];
  return binary(get(op.getLhs()), symbol, get(op.getRhs()), precedence);
}

Expr KernelPrinter::buildCall(MetalCallOpInterface op) {
  std::string function = op.getMetalFunction();
  prelude.use(function);
  return call(function, op->getOperands(), op.getMetalLiterals());
}

Expr KernelPrinter::build(Operation *op) {
  return llvm::TypeSwitch<Operation *, Expr>(op)
      .Case([&](BinaryOp binary) { return buildBinary(binary); })
      .Case([&](UnaryOp unary) {
        bool isNot = unary.getKind() == UnaryKind::Not;
        return Expr{(isNot ? "!" : "-") + inParens(get(unary.getValue()), isNot ? Unary : Primary),
                    Unary};
      })
      .Case([&](CastOp cast) -> Expr {
        std::string type = getTypeName(cast.getType());
        if (type.empty())
          return fail(op, "makes a value of a type that Metal does not have");
        return call(type, cast.getValue());
      })
      .Case([&](MetalCallOpInterface) { return buildCall(cast<MetalCallOpInterface>(op)); })
      .Case([&](arith::SelectOp select) {
        return choose(get(select.getCondition()), get(select.getTrueValue()),
                      get(select.getFalseValue()));
      })
      .Case([&](VectorOp vector) { return call(getTypeName(vector.getType()), vector.getParts()); })
      .Case([&](SwizzleOp swizzle) {
        Expr result{inParens(get(swizzle.getValue()), Primary) + "."};
        for (int64_t position : swizzle.getPositions())
          result.text += "xyzw"[position];
        return result;
      })
      .Case([&](ElementOp element) {
        return Expr{inParens(get(element.getValue()), Primary) + "[" +
                    get(element.getIndex()).text + "]"};
      })
      .Case([&](AsTypeOp asType) {
        return call("as_type<" + getTypeName(asType.getType()) + ">", asType.getValue());
      })
      .Case([&](GetOp read) {
        return Expr{getElement(read.getArray(), read.getIndex(), read.getElement())};
      })
      .Case([&](ReadOp read) { return buildRead(read); })
      .Case([&](PtrAddOp add) { return buildPointer(add); })
      .Case([&](PtrCastOp cast) {
        std::string type = getPointerName(cast.getType(), getQualifiers(cast.getBase()));
        return Expr{"(" + type + ")" + inParens(get(cast.getBase()), Unary), Unary};
      })
      .Case([&](IntToPtrOp toPointer) {
        return call("reinterpret_cast<" +
                        getPointerName(toPointer.getType(), getQualifiers(toPointer)) + ">",
                    toPointer.getAddress());
      })
      .Case<AtomicRMWOp, AtomicCASOp>([&](auto) { return buildAtomic(op); })
      .Default([&](Operation *) { return fail(op, "has no form in Metal"); });
}
