// Matrix products, hints to the compiler, and debugging.
#include "language/Builder.h"

#include "dialect/tt/TT.h"
#include "dialect/ttg/TTG.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace triton_metal::language {

static llvm::Error badOperand(const char *side, Type type) {
  return typeError(llvm::Twine("dot: the ") + side +
                   " operand must be a tile of int8, float8, float16, bfloat16, float32 or "
                   "float64, not " +
                   type.str());
}

Result Builder::dot(const Value &lhs, const Value &rhs, std::optional<Value> acc,
                    llvm::StringRef inputPrecision, std::optional<Type> outType,
                    int64_t maxImprecise) {
  auto isElement = [](Type type) { return type.isFloating() || type.is(ScalarKind::Int8); };
  Type a = lhs.type.scalar(), b = rhs.type.scalar();
  if (!lhs.type.isBlock() || !isElement(a))
    return badOperand("first", lhs.type);
  if (!rhs.type.isBlock() || !isElement(b))
    return badOperand("second", rhs.type);
  if (a != b && !(a.isFloat8() && b.isFloat8()))
    return typeError("dot: both operands must have the same dtype, not " + a.str() + " and " +
                     b.str() + ": convert one with .to()");

  llvm::SmallVector<int64_t> left(lhs.type.getShape()), right(rhs.type.getShape());
  if (left.size() != right.size() || left.size() < 2)
    return valueError("dot: both operands must have the same rank, at least 2, not " +
                      lhs.type.str() + " and " + rhs.type.str());
  size_t rank = left.size();
  if (left[rank - 1] != right[rank - 2])
    return valueError("dot: the second operand " + rhs.type.str() + " must have as many rows as " +
                      lhs.type.str() + " has columns (" + llvm::Twine(left[rank - 1]) + ")");
  if (llvm::ArrayRef(left).drop_back(2) != llvm::ArrayRef(right).drop_back(2))
    return valueError("dot: the batch dimensions of " + lhs.type.str() + " and " + rhs.type.str() +
                      " differ");
  llvm::SmallVector<int64_t> shape(left);
  shape.back() = right.back();
  if (acc && acc->type.getShape() != llvm::ArrayRef(shape))
    return valueError("dot: the accumulator " + acc->type.str() +
                      " does not have the product's shape " +
                      Type(ScalarKind::Float32).withShape(shape).str());

  // Several batch dimensions become one in the IR.
  if (rank > 3) {
    auto flatten = [&](const Value &value) {
      llvm::ArrayRef<int64_t> full = value.type.getShape();
      int64_t batch = 1;
      for (int64_t size : full.drop_back(2))
        batch *= size;
      return reshape(value, {batch, full[rank - 2], full[rank - 1]}, false);
    };
    Result x = flatten(lhs), y = flatten(rhs);
    if (!x || !y)
      return llvm::joinErrors(x.takeError(), y.takeError());
    std::optional<Value> flatAcc;
    if (acc) {
      Result flat = flatten(*acc);
      if (!flat)
        return flat;
      flatAcc = *flat;
    }
    Result product = dot(*x, *y, flatAcc, inputPrecision, outType, maxImprecise);
    if (!product)
      return product;
    return reshape(*product, shape, false);
  }

  using tt::InputPrecision;
  std::string lower = inputPrecision.lower();
  auto precision = llvm::StringSwitch<std::optional<InputPrecision>>(lower)
                       .Cases({"", "ieee"}, InputPrecision::IEEE)
                       .Case("tf32", InputPrecision::TF32)
                       .Case("tf32x3", InputPrecision::TF32x3)
                       .Case("bf16x3", InputPrecision::BF16x3)
                       .Case("bf16x6", InputPrecision::BF16x6)
                       .Default(std::nullopt);
  if (!precision)
    return valueError("dot: unknown input_precision '" + inputPrecision +
                      "': 'ieee', 'tf32', 'tf32x3', 'bf16x3' and 'bf16x6' are known");

  Type wanted = outType ? *outType : acc ? acc->type.scalar() : Type(ScalarKind::Float32);
  Type result;
  if (a.isInteger())
    result = Type(ScalarKind::Int32);
  else if (wanted.is(ScalarKind::BFloat16))
    return valueError("dot: out_dtype bfloat16 is not supported. Use float32 and convert with "
                      ".to(tl.bfloat16)");
  else if (a.is(ScalarKind::Float32) || a.is(ScalarKind::BFloat16))
    result = Type(ScalarKind::Float32);
  else if (a.is(ScalarKind::Float64))
    result = a;
  else if (wanted.is(ScalarKind::Float16) || wanted.is(ScalarKind::Float32))
    result = wanted;
  else
    return valueError(llvm::Twine("dot: ") + (outType ? "out_dtype" : "the accumulator's dtype") +
                      " must be float16 or float32 for operands of " + a.str() + ", not " +
                      wanted.str());
  Type type = result.withShape(shape);
  if (acc && acc->type.scalar() != result)
    return typeError("dot: the accumulator has dtype " + acc->type.scalar().str() +
                     ", but this product has " + result.str());
  if (acc && outType && !a.isInteger() && *outType != result)
    return typeError("dot: out_dtype " + outType->str() + " differs from the accumulator's dtype " +
                     result.str());
  Value start = acc ? *acc : zeroLike(type);
  return make<tt::DotOp>(type, mlirType(type), lhs.handle, rhs.handle, start.handle, *precision,
                         static_cast<uint32_t>(maxImprecise));
}

//===----------------------------------------------------------------------===//
// Scaled products
//===----------------------------------------------------------------------===//

/// Checks one side of dot_scaled, and gives it the type that its format names.
llvm::Expected<Builder::ScaledKind> Builder::scaledOperand(ScaledOperand &operand,
                                                           const char *side) {
  struct Format {
    const char *name;
    ScaledKind kind;
    ScalarKind element, bits;
  };
  using enum tt::ScaleDotElemType;
  static const Format formats[] = {
      {"e2m1", E2M1, ScalarKind::UInt8, ScalarKind::UInt8},
      {"e4m3", E4M3, ScalarKind::Float8E4NV, ScalarKind::UInt8},
      {"e5m2", E5M2, ScalarKind::Float8E5, ScalarKind::UInt8},
      {"bf16", BF16, ScalarKind::BFloat16, ScalarKind::UInt16},
      {"fp16", FP16, ScalarKind::Float16, ScalarKind::UInt16},
  };
  const Format *format = llvm::find_if(
      formats, [&](const Format &entry) { return operand.format.lower() == entry.name; });
  if (format == std::end(formats))
    return valueError(llvm::Twine("dot_scaled: unknown ") + side + "_format '" + operand.format +
                      "': 'e2m1', 'e4m3', 'e5m2', 'bf16' and 'fp16' are known");
  Type element = operand.value.type.scalar();
  if (!operand.value.type.isBlock() || (!element.is(format->element) && !element.is(format->bits)))
    return typeError(llvm::Twine("dot_scaled: ") + side + " must be a tile of " +
                     Type(format->element).str() + " or " + Type(format->bits).str() + " for '" +
                     format->name + "', not " + operand.value.type.str());
  Result typed = bitcast(operand.value, format->element);
  if (!typed)
    return typed.takeError();
  operand.value = *typed;
  if (format->kind != E2M1 && !operand.packedAlongK)
    return valueError(llvm::Twine("dot_scaled: ") + side +
                      "_k_pack=False is for 'e2m1', whose numbers are packed, not for '" +
                      format->name + "'");
  if (!operand.scale)
    return format->kind;
  Type scale = operand.scale->type.scalar();
  if (!operand.scale->type.isBlock() ||
      (!scale.is(ScalarKind::UInt8) && !scale.is(ScalarKind::Int8) && !scale.isFloat8()))
    return typeError(llvm::Twine("dot_scaled: ") + side +
                     "_scale must be a tile of uint8 (exponents) or of a float8, not " +
                     operand.scale->type.str());
  return format->kind;
}

Result Builder::dotScaled(ScaledOperand lhs, ScaledOperand rhs, std::optional<Value> acc,
                          bool fastMath, Type outType) {
  llvm::Expected<ScaledKind> left = scaledOperand(lhs, "lhs");
  if (!left)
    return left.takeError();
  llvm::Expected<ScaledKind> right = scaledOperand(rhs, "rhs");
  if (!right)
    return right.takeError();
  llvm::SmallVector<int64_t> a(lhs.value.type.getShape()), b(rhs.value.type.getShape());
  size_t rank = a.size();
  if (rank != b.size() || (rank != 2 && rank != 3) ||
      llvm::ArrayRef(a).drop_back(2) != llvm::ArrayRef(b).drop_back(2))
    return valueError("dot_scaled: takes two matrices or two batches of matrices, not " +
                      lhs.value.type.str() + " and " + rhs.value.type.str());
  // The shapes of the numbers, two of which are in a byte of e2m1.
  if (*left == tt::ScaleDotElemType::E2M1)
    a[rank - (lhs.packedAlongK ? 1 : 2)] *= 2;
  if (*right == tt::ScaleDotElemType::E2M1)
    b[rank - (rhs.packedAlongK ? 2 : 1)] *= 2;
  int64_t k = a[rank - 1];
  if (k != b[rank - 2])
    return valueError("dot_scaled: lhs " + lhs.value.type.str() + " has " + llvm::Twine(k) +
                      " columns of numbers, rhs " + rhs.value.type.str() + " has " +
                      llvm::Twine(b[rank - 2]) + " rows of them");
  llvm::SmallVector<int64_t> shape(a);
  shape.back() = b.back();
  // One scale for 16 or 32 numbers along K; rows of both scales go along M and N.
  std::optional<int64_t> factor;
  auto checkScale = [&](const ScaledOperand &operand, int64_t rows,
                        const char *side) -> llvm::Error {
    if (!operand.scale)
      return llvm::Error::success();
    llvm::SmallVector<int64_t> expected(shape);
    expected[rank - 2] = rows;
    for (int64_t size : {16, 32}) {
      expected[rank - 1] = k / size;
      if (operand.scale->type.getShape() == llvm::ArrayRef(expected) && k % size == 0 &&
          (!factor || *factor == size)) {
        factor = size;
        return llvm::Error::success();
      }
    }
    return valueError(llvm::Twine("dot_scaled: ") + side + "_scale " + operand.scale->type.str() +
                      " must have " + llvm::Twine(rows) +
                      " rows and K / 32 or K / 16 columns (K = " + llvm::Twine(k) +
                      "), as many on both sides");
  };
  if (llvm::Error error = checkScale(lhs, shape[rank - 2], "lhs"))
    return std::move(error);
  if (llvm::Error error = checkScale(rhs, shape[rank - 1], "rhs"))
    return std::move(error);
  if (!outType.isFloating() || outType.isFloat8() || outType.is(ScalarKind::Float64))
    return valueError("dot_scaled: out_dtype must be float32, float16 or bfloat16, not " +
                      outType.str());
  Type type = outType.withShape(shape);
  if (acc && acc->type != type)
    return typeError("dot_scaled: the accumulator is " + acc->type.str() +
                     ", but this product is " + type.str());
  Value start = acc ? *acc : zeroLike(type);
  auto scaleOf = [](const ScaledOperand &operand) {
    return operand.scale ? operand.scale->handle : mlir::Value();
  };
  return make<tt::DotScaledOp>(type, mlirType(type), lhs.value.handle, rhs.value.handle,
                               start.handle, scaleOf(lhs), scaleOf(rhs), *left, *right, fastMath,
                               lhs.packedAlongK, rhs.packedAlongK);
}

//===----------------------------------------------------------------------===//
// Hints
//===----------------------------------------------------------------------===//

llvm::Error Builder::hint(Hint kind, const Value &value, llvm::ArrayRef<int64_t> values) {
  static const char *const functions[] = {"multiple_of", "max_contiguous", "max_constancy"};
  static constexpr llvm::StringLiteral attributes[] = {
      tt::divisibilityAttrName, tt::contiguityAttrName, tt::constancyAttrName};
  auto index = static_cast<unsigned>(kind);
  size_t rank = value.type.getShape().size();
  if (kind == Hint::Divisibility)
    rank = std::max<size_t>(rank, 1);
  if (values.size() != rank)
    return valueError(llvm::Twine(functions[index]) + " takes one number for each dimension of " +
                      value.type.str() + ", but got " + llvm::Twine(values.size()));
  llvm::SmallVector<int32_t> numbers(values);
  auto attribute = DenseElementsAttr::get(
      RankedTensorType::get(static_cast<int64_t>(numbers.size()), builder.getI32Type()),
      llvm::ArrayRef<int32_t>(numbers));
  if (Operation *op = value.handle.getDefiningOp()) {
    op->setDiscardableAttr(attributes[index], attribute);
    return llvm::Error::success();
  }
  // An argument of the kernel keeps the hint; other block arguments have nowhere to keep it.
  auto argument = llvm::cast<BlockArgument>(value.handle);
  auto function = llvm::dyn_cast<tt::FuncOp>(argument.getOwner()->getParentOp());
  if (function && argument.getOwner()->isEntryBlock() && kind == Hint::Divisibility)
    function.setArgAttr(argument.getArgNumber(), attributes[index],
                        builder.getI32IntegerAttr(numbers[0]));
  return llvm::Error::success();
}

llvm::Error Builder::assume(const Operand &operand) {
  Result condition = toTensor(operand);
  if (!condition)
    return condition.takeError();
  if (condition->type != Type(ScalarKind::Int1))
    return typeError("assume takes a boolean scalar, not " + condition->type.str());
  LLVM::AssumeOp::create(builder, location, condition->handle);
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Debugging
//===----------------------------------------------------------------------===//

llvm::Error Builder::deviceAssert(const Operand &operand, llvm::StringRef message,
                                  std::optional<Operand> mask) {
  Result condition = cast(operand, Type(ScalarKind::Int1));
  if (!condition)
    return condition.takeError();
  if (mask) {
    Result off = toTensor(*mask);
    if (!off)
      return off.takeError();
    off = unary(UnaryOp::Not, *off);
    if (!off)
      return off.takeError();
    condition = binary(BinaryOp::Or, *condition, *off);
    if (!condition)
      return condition.takeError();
  }
  tt::AssertOp::create(builder, location, condition->handle, message);
  return llvm::Error::success();
}

llvm::Error Builder::devicePrint(llvm::StringRef prefix, llvm::ArrayRef<Value> values, bool hex) {
  if (!llvm::all_of(prefix, [](char c) { return llvm::isPrint(c) || llvm::isSpace(c); }))
    return valueError("device_print: the prefix must be printable ASCII");
  // Before values the prefix ends in ": ", and a prefix that says something starts with a space.
  std::string text = prefix.str();
  if (!values.empty()) {
    text = llvm::StringRef(text).ends_with(" ") ? text : text + " ";
    if (!llvm::StringRef(text).ends_with(": "))
      text = text.substr(0, text.size() - 1) + ": ";
  }
  if (text.size() > 2 && text.front() != ' ')
    text = " " + text;
  llvm::SmallVector<mlir::Value> handles;
  llvm::SmallVector<int32_t> isSigned;
  for (const Value &value : values) {
    handles.push_back(value.handle);
    isSigned.push_back(value.type.scalar().isSigned());
  }
  tt::PrintOp::create(builder, location, text, hex, handles, isSigned);
  return llvm::Error::success();
}

void Builder::debugBarrier() { ttg::BarrierOp::create(builder, location, ttg::AddrSpace::All); }

} // namespace triton_metal::language
