#include "transforms/MSLValueNames.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace triton_metal;
using namespace triton_metal::msl;

/// How far a name looks at what a value is made of.
static constexpr unsigned kMaxDepth = 4;

static std::string describe(Value value, unsigned depth);

/// What Python, an enclosing variable or the kernel's signature calls it; else empty.
static std::string getKnownName(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto kernel = dyn_cast<KernelOp>(argument.getOwner()->getParentOp());
    if (kernel && !kernel.getArgName(argument.getArgNumber()).empty())
      return kernel.getArgName(argument.getArgNumber()).str();
    if (kernel)
      return "arg" + std::to_string(argument.getArgNumber());
    return getSourceName(argument.getLoc()).str();
  }
  Operation *op = value.getDefiningOp();
  if (auto let = dyn_cast<LetOp>(op))
    return let.getName().str();
  if (auto alloc = dyn_cast<AllocOp>(op))
    return alloc.getName().str();
  if (auto get = dyn_cast<GetOp>(op)) {
    auto variable = get.getArray().getDefiningOp<VarOp>();
    return variable.getName() ? variable.getName()->str() : getSourceName(variable.getLoc()).str();
  }
  return getSourceName(op->getLoc()).str();
}

static std::string getTypeWord(Type type) {
  return type.isInteger(1)      ? "bool"
         : type.isInteger(64)   ? "long"
         : isa<FloatType>(type) ? (type.isF32()   ? "float"
                                   : type.isF16() ? "half"
                                                  : "bfloat")
         : type.isInteger(32)   ? "int"
                                : "short";
}

/// `x` of a pointer that Python calls `x_ptr`.
static std::string getStem(Value pointer) {
  std::string name = getKnownName(pointer);
  if (name.empty())
    if (auto add = pointer.getDefiningOp<PtrAddOp>())
      return getStem(add.getBase());
  StringRef stem = name;
  for (StringRef ending : {"_pointer", "_ptrs", "_ptr"})
    if (stem.size() > ending.size() && stem.consume_back(ending))
      break;
  return stem.empty() ? "pointer" : stem.str();
}

/// What an offset depends on beside strides: a row, or the program.
static std::string getPlace(Value offset, unsigned depth = kMaxDepth) {
  Operation *op = offset.getDefiningOp();
  if (!op)
    return isa<KernelOp>(cast<BlockArgument>(offset).getOwner()->getParentOp())
               ? ""
               : getKnownName(offset);
  // What the text calls a variable says less than what it is made of.
  if (auto let = dyn_cast<LetOp>(op); let && getSourceName(op->getLoc()).empty() && depth != 0)
    return getPlace(let.getValue(), depth);
  if (isa<ProgramIdOp>(op) && getSourceName(op->getLoc()).empty())
    return "block";
  if (std::string name = getKnownName(offset); !name.empty())
    return name;
  if (depth != 0)
    for (Value operand : op->getOperands())
      if (!isa<PtrType>(operand.getType()))
        if (std::string place = getPlace(operand, depth - 1); !place.empty())
          return place;
  return "";
}

static std::string getPointerName(Value value) {
  Operation *op = value.getDefiningOp();
  if (auto add = dyn_cast_or_null<PtrAddOp>(op)) {
    std::string place = getPlace(add.getOffset());
    // A name that is itself made of others says no more than that it is some place.
    return getStem(add.getBase()) + "_" + (place.empty() || place.size() > 12 ? "part" : place);
  }
  if (auto castOp = dyn_cast_or_null<PtrCastOp>(op))
    return getStem(castOp.getBase()) + "_words";
  return "pointer";
}

/// Whether an integer is what a pointer is moved by, as it is or in a sum.
static bool isOffset(Value value, unsigned depth = 2) {
  return llvm::any_of(value.getUses(), [&](OpOperand &use) {
    Operation *user = use.getOwner();
    if (auto add = dyn_cast<PtrAddOp>(user))
      return true;
    if (auto write = dyn_cast<WriteOp>(user))
      return write.getOffset() == value;
    if (auto read = dyn_cast<ReadOp>(user))
      return read.getOffset() == value;
    auto sum = dyn_cast<BinaryOp>(user);
    bool passes = isa<CastOp>(user) || (sum && sum.getKind() == BinaryKind::Add);
    return depth != 0 && passes && isOffset(user->getResult(0), depth - 1);
  });
}

/// Whether an integer is computed from what was read, and not from the places of threads and
/// programs alone.
static bool isOfData(Value value, unsigned depth = 6) {
  Operation *op = value.getDefiningOp();
  if (!op || depth == 0)
    return false;
  if (isa<ReadOp, AtomicRMWOp, AtomicCASOp>(op))
    return true;
  if (auto get = dyn_cast<GetOp>(op))
    return llvm::any_of(get.getArray().getUsers(), [&](Operation *user) {
      auto set = dyn_cast<SetOp>(user);
      return set && set.getArray() == get.getArray() && isOfData(set.getValue(), depth - 1);
    });
  return llvm::any_of(op->getOperands(),
                      [&](Value operand) { return isOfData(operand, depth - 1); });
}

static std::string describeBinary(BinaryOp op, unsigned depth) {
  bool isInteger = isa<IntegerType>(getElementTypeOrSelf(op.getType()));
  bool isTruth = getElementTypeOrSelf(op.getType()).isInteger(1);
  if (isInteger && !isTruth && !isa<VectorType>(op.getType()) && isOffset(op.getResult()))
    return "offset";
  switch (op.getKind()) {
  case BinaryKind::Add:
    return isInteger && !isOfData(op) ? "index" : "sum";
  case BinaryKind::Sub:
    return "difference";
  case BinaryKind::Mul:
    return isInteger && !isOfData(op) ? "index" : "product";
  case BinaryKind::Div:
    return "quotient";
  case BinaryKind::Rem:
    return "remainder";
  case BinaryKind::Shl:
  case BinaryKind::Shr:
    return "shifted";
  case BinaryKind::And:
  case BinaryKind::LogicalAnd:
    return isTruth ? "both" : "bits";
  case BinaryKind::Or:
  case BinaryKind::LogicalOr:
    return isTruth ? "either" : "bits";
  case BinaryKind::Xor:
    return "bits";
  case BinaryKind::Equal:
    return "is_equal";
  case BinaryKind::NotEqual:
    return "is_different";
  case BinaryKind::Less:
  case BinaryKind::LessEqual:
    return "is_less";
  case BinaryKind::Greater:
  case BinaryKind::GreaterEqual:
    return "is_greater";
  }
  llvm_unreachable("an operator");
}

/// `exp_x` for a value with a name, `exp` for another.
static std::string describeCall(CallOp call) {
  StringRef function = call.getFunction();
  function = function.substr(function.rfind(':') + 1).take_until([](char c) { return c == '<'; });
  // Functions of 64-bit floats are called after what they compute.
  function.consume_front("float64_");
  function.consume_front("library_");
  function.consume_front("approximate_");
  StringRef name = llvm::StringSwitch<StringRef>(function)
                       .Case("add", "sum")
                       .Case("sub", "difference")
                       .Case("mul", "product")
                       .Case("fmod", "remainder")
                       .Case("equal", "is_equal")
                       .Cases({"less", "less_equal"}, "is_less")
                       .Case("nearest", "round")
                       .Cases({"from_float", "from_long", "from_ulong"}, "wide")
                       .Cases({"to_long", "to_ulong"}, "whole")
                       .Cases({"fmax", "maximum", "max"}, "max")
                       .Cases({"fmin", "minimum", "min"}, "min")
                       .Case("select", "chosen")
                       .Case("mulhi", "high")
                       .Case("fabs", "abs")
                       .Cases({"divide", "div"}, "quotient")
                       .Case("reinterpret_cast", "address")
                       .Case("error_function", "erf")
                       .Default(function);
  if (call.getInputs().size() != 1)
    return name.str();
  std::string operand = getKnownName(call.getInputs().front());
  return operand.empty() || operand.size() > 12 ? name.str() : (name + "_" + operand).str();
}

static std::string describe(Value value, unsigned depth) {
  if (std::string name = getKnownName(value); !name.empty())
    return name;
  if (isa<PtrType>(value.getType()))
    return getPointerName(value);
  if (matchPattern(value, m_Constant()))
    return "number";
  if (depth == 0 || !value.getDefiningOp())
    return "result";
  auto of = [&](Value part) { return describe(part, depth - 1); };
  bool isVector = isa<VectorType>(value.getType());
  return llvm::TypeSwitch<Operation *, std::string>(value.getDefiningOp())
      .Case([&](BinaryOp op) { return describeBinary(op, depth); })
      .Case([&](UnaryOp op) {
        return op.getKind() == UnaryKind::Not ? "is_not" : "negated_" + of(op.getValue());
      })
      .Case([&](CastOp op) {
        if (isOffset(value))
          return std::string("offset");
        // With its new type, where it has a name already.
        std::string name = of(op.getValue());
        bool isNamed = !getKnownName(op.getValue()).empty() && !isVector;
        return isNamed ? name + "_" + getTypeWord(op.getType()) : name;
      })
      .Case([&](CallOp op) { return describeCall(op); })
      .Case(
          [&](SimdPrefixOp op) { return "running_" + stringifySimdReduceKind(op.getKind()).str(); })
      .Case([&](SimdReduceOp op) { return stringifySimdReduceKind(op.getKind()).ltrim('u').str(); })
      .Case([&](SimdBroadcastFirstOp op) { return of(op.getValue()); })
      .Case([&](MetalCallOpInterface op) {
        // What another lane has of it.
        return op->getNumOperands() != 0 ? "other_" + of(op->getOperand(0)) : op.getMetalFunction();
      })
      .Case([&](ReadOp op) { return getStem(op.getBase()) + (isVector ? "_values" : "_value"); })
      .Case<SwizzleOp, ElementOp, SplatOp, AsTypeOp>([&](auto op) { return of(op.getValue()); })
      .Case([&](VectorOp op) { return of(op.getParts().front()); })
      .Case([&](arith::SelectOp) { return std::string("chosen"); })
      .Case<AtomicRMWOp, AtomicCASOp>([&](auto op) { return "old_" + getStem(op.getBase()); })
      .Case([&](LaneOp) { return std::string("lane"); })
      .Case([&](SimdgroupOp) { return std::string("simdgroup"); })
      .Case([&](ProgramIdOp) { return std::string("program"); })
      .Case([&](NumProgramsOp) { return std::string("programs"); })
      .Default([](Operation *) { return std::string("result"); });
}

/// The compiler's own tests of who is first, which any line of the source may lead to.
static StringRef getFirstName(Value value) {
  auto equal = value.getDefiningOp<BinaryOp>();
  if (!equal || equal.getKind() != BinaryKind::Equal || !matchPattern(equal.getRhs(), m_Zero()))
    return {};
  if (equal.getLhs().getDefiningOp<LaneOp>())
    return "is_first_lane";
  return equal.getLhs().getDefiningOp<SimdgroupOp>() ? "is_first_simdgroup" : StringRef();
}

std::string triton_metal::msl::getValueName(Value value) {
  if (StringRef name = getFirstName(value); !name.empty())
    return name.str();
  std::string name = describe(value, kMaxDepth);
  // Of what another lane has, of what another lane has, the last is enough.
  StringRef short_ = name;
  while (short_.starts_with("other_other_"))
    short_ = short_.drop_front(6);
  return short_.str();
}

/// `x = x + 1`
static bool countsUp(SetOp set) {
  Value value = set.getValue();
  if (auto castOp = value.getDefiningOp<CastOp>())
    value = castOp.getValue();
  auto sum = value.getDefiningOp<BinaryOp>();
  if (!sum || sum.getKind() != BinaryKind::Add || !value.getType().isInteger())
    return false;
  Value left = sum.getLhs();
  if (auto castOp = left.getDefiningOp<CastOp>())
    left = castOp.getValue();
  auto old = left.getDefiningOp<GetOp>();
  return old && old.getArray() == set.getArray();
}

std::string triton_metal::msl::getVariableName(VarOp variable) {
  if (StringRef name = getSourceName(variable.getLoc()); !name.empty())
    return name.str();
  // What is computed says more than what it starts from, or than what is passed on.
  std::string name;
  for (Operation *user : variable->getUsers()) {
    if (auto multiply = dyn_cast<MatrixMultiplyOpInterface>(user);
        multiply && multiply.getAcc() == variable.getResult())
      return "product";
    auto set = dyn_cast<SetOp>(user);
    if (!set || set.getArray() != variable.getResult() ||
        matchPattern(set.getValue(), m_Constant()))
      continue;
    auto get = set.getValue().getDefiningOp<GetOp>();
    if (get && get.getArray() == variable.getResult())
      continue;
    if (countsUp(set))
      return "counter";
    std::string found = get ? getKnownName(get) : getValueName(set.getValue());
    if (name.empty() || name == "result")
      name = found;
  }
  if (!name.empty())
    return name;
  if (variable.getType().isMatrix())
    return "fragment";
  if (Value init = variable.getInit();
      init && !matchPattern(init, m_Constant()) && !init.getDefiningOp<GetOp>())
    return getValueName(init);
  return isa<PtrType>(variable.getType().getElementType()) ? "pointer" : "result";
}
