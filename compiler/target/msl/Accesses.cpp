// Accesses to memory and to variables.

#include "target/msl/KernelPrinter.h"

#include "dialect/msl/ScalarTypes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace triton_metal::msl;

Qualifiers KernelPrinter::getQualifiers(Value pointer) {
  Qualifiers qualifiers;
  auto variable = dyn_cast<ArrayType>(pointer.getType());
  if (!isa<PtrType>(variable ? variable.getElementType() : pointer.getType()))
    return qualifiers;
  // What may come from an argument that is only read is `const` everywhere: a choice between it and
  // another pointer, too. So it is with memory in which threadgroups meet.
  const Origins &from = origins.get(pointer);
  for (unsigned argument : from.arguments) {
    qualifiers.isConst |= bool(kernel.getArgAttr(argument, kReadOnlyAttr));
    qualifiers.isCoherent |= bool(kernel.getArgAttr(argument, kCoherentAttr));
  }
  qualifiers.isCoherent |= from.isMadeOfAddress && kernel->hasAttr(kCoherentAttr);
  return qualifiers;
}

/// Whether the number is a constant once loops are unrolled.
static bool isStep(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return isa<UnrollOp>(argument.getOwner()->getParentOp());
  Operation *op = value.getDefiningOp();
  return op->hasTrait<OpTrait::ConstantLike>() ||
         (isa<BinaryOp, CastOp>(op) && llvm::all_of(op->getOperands(), isStep));
}

/// Whether a sum has a part that is a constant once loops are unrolled.
static bool hasStep(Value sum) {
  if (isStep(sum))
    return true;
  auto op = sum.getDefiningOp<BinaryOp>();
  return op && op.getKind() == BinaryKind::Add && (hasStep(op.getLhs()) || hasStep(op.getRhs()));
}

Expr KernelPrinter::getAddress(Value base, Value offset) {
  Expr pointer = get(base);
  IntegerAttr constant;
  if (!offset)
    return pointer;
  if (matchPattern(offset, m_Constant(&constant))) {
    if (constant.getValue().isZero())
      return pointer;
    if (constant.getValue().isNegative() && !constant.getValue().isMinSignedValue())
      return binary(pointer, "-",
                    {getLiteral(IntegerAttr::get(constant.getType(), -constant.getValue()))}, Sum);
  }
  Expr expr = get(offset);
  // A signed sum does not overflow, so its parts may be added to the pointer one by one. They are
  // where one of them is the access's own constant; of others, a sum of 32 bits takes fewer
  // instructions. Single bytes are addressed by one offset (docs/apple-quirks.md, row 8).
  bool isByte = getElementBytes(cast<PtrType>(base.getType()).getElementType()) == 1;
  if (expr.precedence == Sum && !isUnsigned(offset.getType()) && !isByte && hasStep(offset))
    return {inParens(pointer, Sum) + " + " + expr.text, Sum};
  return binary(pointer, "+", expr, Sum);
}

/// What a pointer is moved by is one number. Compilers may repeat additions to a pointer at each of
/// its uses, and then the parts of a sum would stay in registers till there.
Expr KernelPrinter::buildPointer(PtrAddOp op) {
  Expr offset = get(op.getOffset());
  // Back by a number.
  if (auto difference = op.getOffset().getDefiningOp<BinaryOp>();
      difference && offset.precedence == Sum && difference.getKind() == BinaryKind::Sub &&
      matchPattern(difference.getLhs(), m_Zero()) && !isUnsigned(difference.getType()))
    return binary(get(op.getBase()), "-", get(difference.getRhs()), Sum);
  if (offset.precedence == Sum && op.getOffset().getDefiningOp<BinaryOp>())
    return {inParens(get(op.getBase()), Sum) + " + (" + offset.text + ")", Sum};
  return getAddress(op.getBase(), op.getOffset());
}

std::string KernelPrinter::getAccess(Value base, Value offset, Type type, bool isConst,
                                     bool unaligned) {
  auto pointer = cast<PtrType>(base.getType());
  if (type == pointer.getElementType()) {
    if (auto it = byteMemory.find(base); it != byteMemory.end()) {
      std::string index = std::to_string(it->second.second);
      if (offset && !matchPattern(offset, m_Zero()))
        index += " + " + inParens(get(offset), Sum);
      return it->second.first + "[" + index + "]";
    }
    if (!offset || matchPattern(offset, m_Zero()))
      return "*" + inParens(get(base), Unary);
    if (get(base).precedence == Primary)
      return get(base).text + "[" + get(offset).text + "]";
    return "*(" + getAddress(base, offset).text + ")";
  }
  return "*(" + getPointeePrefix(pointer.getSpace(), {isConst, getQualifiers(base).isCoherent}) +
         (unaligned ? "packed_" : "") + getTypeName(type) + " *)" +
         inParens(getAddress(base, offset), Unary);
}

/// One element, read each time. bfloat has no copies of volatile ones everywhere: its bits have.
Expr KernelPrinter::buildVolatileRead(ReadOp op) {
  PtrType pointer = op.getBase().getType();
  Type type = op.getType();
  bool asBits = type.isBF16();
  std::string access =
      "*(volatile " +
      getPointeePrefix(pointer.getSpace(), {true, getQualifiers(op.getBase()).isCoherent}) +
      (asBits ? "ushort" : getTypeName(type)) + " *)" +
      inParens(getAddress(op.getBase(), op.getOffset()), Unary);
  return asBits ? Expr{"as_type<bfloat>(" + access + ")"} : Expr{access, Unary};
}

Expr KernelPrinter::buildRead(ReadOp op) {
  Expr access;
  if (op.getIsVolatile()) {
    access = buildVolatileRead(op);
  } else {
    access.text = getAccess(op.getBase(), op.getOffset(), op.getType(), true, op.getUnaligned());
    access.precedence = StringRef(access.text).starts_with("*") ? Unary : Primary;
    // A packed vector is a class of its own.
    if (op.getUnaligned())
      access = {getTypeName(op.getType()) + "(" + access.text + ")"};
  }
  if (!op.getCondition())
    return access;
  // A choice is between values: of a vector or a bfloat in memory and one in registers, each may be
  // a class of its own.
  if ((isa<VectorType>(op.getType()) && !op.getUnaligned()) || op.getType().isBF16())
    access = {getTypeName(op.getType()) + "(" + access.text + ")"};
  return choose(get(op.getCondition()), {access.text}, get(op.getOther()));
}

std::string KernelPrinter::getMatrix(TypedValue<ArrayType> array, Value index) {
  std::string text = get(array).text;
  return array.getType().getCount() == 1 ? text : text + "[" + get(index).text + "]";
}

std::string KernelPrinter::getElement(TypedValue<ArrayType> array, Value index, Value element) {
  std::string text = getMatrix(array, index);
  if (MatrixType matrix = array.getType().getMatrixType()) {
    prelude.useElements(matrix.getShape());
    text = "elements(" + text + ")";
  }
  IntegerAttr position;
  if (element && matchPattern(element, m_Constant(&position)))
    text += std::string(".") + "xyzw"[position.getInt()];
  else if (element)
    text += "[" + get(element).text + "]";
  return text;
}

Expr KernelPrinter::buildAtomic(Operation *op) {
  auto cas = dyn_cast<AtomicCASOp>(op);
  auto rmw = dyn_cast<AtomicRMWOp>(op);
  Value base = cas ? cas.getBase() : rmw.getBase();
  Value offset = cas ? cas.getOffsets() : rmw.getOffsets();
  Value mask = cas ? cas.getMask() : rmw.getMask();
  StringRef space = getSpaceName(cast<PtrType>(base.getType()).getSpace());
  Type type = op->getResult(0).getType();
  AtomicForm form = cast<AtomicOpInterface>(op).getAtomicForm();
  bool isOfMetal = form == AtomicForm::Metal;
  std::string pointee = !isOfMetal                           ? getTypeName(type)
                        : isa<FloatType>(type)               ? "atomic_float"
                        : type.getIntOrFloatBitWidth() == 64 ? "atomic_ulong"
                        : isUnsigned(type)                   ? "atomic_uint"
                                                             : "atomic_int";
  std::string arguments =
      ("(" + space + " " + pointee + " *)").str() + inParens(getAddress(base, offset), Unary);
  if (cas)
    arguments += ", " + get(cas.getCompare()).text;
  arguments += ", " + get(cas ? cas.getValue() : rmw.getValue()).text;
  std::optional<AtomicKind> kind = rmw ? std::optional(rmw.getKind()) : std::nullopt;
  Expr result;
  if (!isOfMetal) {
    result = {prelude.useAtomic(form, kind, type) + "(" + arguments + ")"};
  } else if (cas) {
    prelude.useCompareExchange(space);
    result = {"compare_exchange(" + arguments + ")"};
  } else {
    static const char *functions[] = {"fetch_add", "fetch_add", "fetch_min", "fetch_max",
                                      "fetch_min", "fetch_max", "fetch_and", "fetch_or",
                                      "fetch_xor", "exchange"};
    StringRef function = functions[unsigned(*kind)];
    // Extremes of 64 bits do not give what they found.
    if (type.getIntOrFloatBitWidth() == 64)
      function.consume_front("fetch_");
    result = {("atomic_" + function + "_explicit(" + arguments + ", memory_order_relaxed)").str()};
  }
  if (!mask || op->use_empty())
    return result;
  // Both of a choice have one type.
  bool isWord = type.getIntOrFloatBitWidth() == 32;
  return choose(get(mask), result,
                {!isWord                ? getTypeName(type) + "(0)"
                 : isa<FloatType>(type) ? "0.0f"
                 : isUnsigned(type)     ? "0u"
                                        : "0"});
}
