// Statements: declarations, assignments, loops and branches.

#include "target/msl/KernelPrinter.h"
#include "target/msl/Types.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace triton_metal::msl;

/// Numbers convert between signed and unsigned where they are assigned; vectors do not.
static bool isIntegerVector(Value value) {
  return isa<VectorType>(value.getType()) &&
         isa<IntegerType>(getElementTypeOrSelf(value.getType()));
}

void KernelPrinter::line(const Twine &text) {
  std::string content = text.str();
  notePlaces(content);
  buffer.append(2 * depth, ' ');
  buffer += content;
  buffer += '\n';
}

std::string KernelPrinter::capture(function_ref<void()> body) {
  std::string outer;
  std::swap(buffer, outer);
  names.push();
  body();
  names.pop();
  std::swap(buffer, outer);
  return outer;
}

/// `head` and a body, in braces unless it is one line.
void KernelPrinter::printBody(const std::string &head, function_ref<void()> body) {
  ++depth;
  std::string text = capture(body);
  --depth;
  bool single = StringRef(text).count('\n') == 1;
  line(single ? head : head + " {");
  buffer += text;
  if (!single)
    line("}");
}

//===----------------------------------------------------------------------===//
// Names and declarations
//===----------------------------------------------------------------------===//

std::string KernelPrinter::makeName(Value value, StringRef fallback) {
  StringRef name = getSourceName(value.getLoc());
  if (!name.empty())
    return names.make(name);
  Type type = value.getType();
  if (auto array = dyn_cast<ArrayType>(type))
    type = array.getScalarType();
  type = getElementTypeOrSelf(type);
  if (fallback.empty())
    fallback = isa<PtrType>(type)       ? "pointer"
               : type.isInteger(1)      ? "condition"
               : isa<IntegerType>(type) ? "index"
                                        : "value";
  return names.make(fallback);
}

std::string KernelPrinter::getDeclaration(Type type, const std::string &name, bool isUnsigned,
                                          Qualifiers qualifiers) {
  if (auto pointer = dyn_cast<PtrType>(type))
    return getPointerName(pointer, qualifiers) + name;
  if (auto array = dyn_cast<ArrayType>(type)) {
    std::string count = array.getCount() == 1 ? "" : "[" + std::to_string(array.getCount()) + "]";
    return getTypeName(array.getElementType()) + " " + name + count;
  }
  std::string text = getTypeName(type, isUnsigned);
  return text.empty() ? text : text + " " + name;
}

/// A number's variable is unsigned if its value is and nothing asks for the signed one.
bool KernelPrinter::wantsUnsigned(Value value, const Expr &expr) {
  auto integer = dyn_cast<IntegerType>(getElementTypeOrSelf(value.getType()));
  if (!integer || integer.getWidth() == 1 || !expr.isUnsigned)
    return false;
  if (isa<VectorType>(value.getType()))
    return true;
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    if (isa<arith::DivSIOp, arith::RemSIOp, arith::ShRSIOp, arith::MinSIOp, arith::MaxSIOp,
            arith::ExtSIOp, arith::SIToFPOp, PtrAddOp, ReadOp, WriteOp, scf::ForOp, scf::YieldOp,
            MatrixLoadOp>(user))
      return false;
    if (auto compare = dyn_cast<arith::CmpIOp>(user);
        compare && compare.getPredicate() > arith::CmpIPredicate::ne &&
        compare.getPredicate() < arith::CmpIPredicate::ult)
      return false;
  }
  return true;
}

void KernelPrinter::declare(Value value, const Expr &expr) {
  std::string name = makeName(value);
  bool isUnsigned = wantsUnsigned(value, expr);
  std::string declaration = getDeclaration(value.getType(), name, isUnsigned, getQualifiers(value));
  if (declaration.empty()) {
    (void)refuse(value.getDefiningOp(), "makes a value of a type that Metal does not have");
    return;
  }
  line(declaration + " = " + expr.text + ";");
  Expr variable{name};
  variable.isUnsigned = isUnsigned;
  exprs[value] = variable;
}

//===----------------------------------------------------------------------===//
// Folding expressions into their users
//===----------------------------------------------------------------------===//

/// Nothing between `op` and the statement that its only user ends up in changes what it reads.
bool KernelPrinter::isUndisturbed(Operation *op, Operation *user) {
  auto get = dyn_cast<GetOp>(op);
  auto disturbs = [&](Operation *other) {
    bool found = false;
    other->walk([&](Operation *inner) {
      if (get) {
        for (Value operand : inner->getOperands())
          if (operand == get.getArray() &&
              isa<SetOp, FillOp, MatrixLoadOp, MultiplyAccumulateOp>(inner))
            found = true;
      } else if (isa<WriteOp, AtomicRMWOp, AtomicCASOp, BarrierOp, FenceOp>(inner)) {
        found = true;
      }
    });
    return found;
  };
  // The user may be folded itself, so look as far as that can go.
  Operation *last = user;
  while (last->getNumResults() == 1 && last->getResult(0).hasOneUse() && !last->getNumRegions() &&
         op->getBlock()->findAncestorOpInBlock(**last->getResult(0).user_begin()))
    last = *last->getResult(0).user_begin();
  Operation *end = op->getBlock()->findAncestorOpInBlock(*last);
  if (!end)
    return false;
  if (end != last && (isa<LoopLikeOpInterface, UnrollOp>(end) || disturbs(end)))
    return false;
  for (Operation *between = op->getNextNode(); between && between != end;
       between = between->getNextNode())
    if (disturbs(between))
      return false;
  return true;
}

/// Made of the indices of unrolled loops and constants.
static bool isLoopIndex(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return isa<UnrollOp>(argument.getOwner()->getParentOp());
  Operation *op = value.getDefiningOp();
  return matchPattern(op, m_Constant()) ||
         (isa<arith::AddIOp, arith::MulIOp, arith::DivUIOp, arith::RemUIOp>(op) &&
          llvm::all_of(op->getOperands(), isLoopIndex));
}

/// A statement of its own, in its place, even if nothing uses it.
static bool isVolatile(Operation *op) {
  auto read = dyn_cast<ReadOp>(op);
  return read && read.getIsVolatile();
}

bool KernelPrinter::isFolded(Operation *op, const Expr &expr) {
  Value value = op->getResult(0);
  if (isa<LaneOp, SimdgroupOp>(op) || isa<SplatOp>(op))
    return true;
  if (isa<SimdReduceOp, SimdShuffleOp, SimdShuffleXorOp, AtomicRMWOp, AtomicCASOp>(op))
    return false;
  if (isVolatile(op))
    return false;
  bool reads = isa<GetOp, ReadOp>(op);
  // A component of a variable costs nothing to name again.
  if (isa<SwizzleOp>(op) && expr.text.size() <= 16 && expr.changing.empty())
    return true;
  if (auto get = dyn_cast<GetOp>(op); get && expr.text.size() <= 16 && !value.hasOneUse())
    return llvm::all_of(value.getUsers(), [&](Operation *user) {
      return user->getBlock() == op->getBlock() && isUndisturbed(op, user);
    });
  // Nor does a multiple of a loop's index.
  if (expr.text.size() <= 12 && isLoopIndex(value))
    return true;
  if (!value.hasOneUse())
    return false;
  Operation *user = *value.user_begin();
  // A splat is written wherever it is used, and its operand with it.
  if (isa<SplatOp>(user) && !user->getResult(0).hasOneUse())
    return false;
  if (reads && !isUndisturbed(op, user))
    return false;
  // Not into a loop, where it would be computed again and again, nor under an index, where it must
  // have a name.
  Operation *ancestor = op->getBlock()->findAncestorOpInBlock(*user);
  for (Operation *at = user; at != ancestor; at = at->getParentOp())
    if (isa<LoopLikeOpInterface, UnrollOp>(at->getParentOp()))
      return false;
  if (isa<ElementOp, SwizzleOp>(user) && expr.precedence < Primary)
    return false;
  // A loop's bound is computed once, in front of it.
  if (auto loop = dyn_cast<scf::ForOp>(user);
      loop && value == loop.getUpperBound() && expr.precedence < Primary)
    return false;
  if (isa<SwizzleOp>(user) && reads && isa<ReadOp>(op))
    return false;
  if (isa<scf::WhileOp>(user) || isa<scf::ConditionOp>(user))
    return isa<scf::ConditionOp>(user) && expr.text.size() <= 60;
  return expr.text.size() <= (reads && !isa<WriteOp>(user) ? 100 : 64);
}

//===----------------------------------------------------------------------===//
// Statements
//===----------------------------------------------------------------------===//

void KernelPrinter::printAssignment(const std::string &target, const Expr &value, Type type) {
  if (value.text == target)
    return;
  // x = x + y is x += y.
  if (value.left == target && value.op.size() == 1 && !value.right.empty() &&
      value.text == value.left + " " + value.op + " " + value.right &&
      isa<FloatType>(getElementTypeOrSelf(type))) {
    StringRef right = value.right;
    if (right.starts_with("(") && right.ends_with(")") && right.count('(') == 1)
      right = right.drop_front().drop_back();
    line(target + " " + value.op + "= " + right + ";");
    return;
  }
  line(target + " = " + value.text + ";");
}

void KernelPrinter::printYield(ValueRange values, ArrayRef<std::string> targets,
                               ArrayRef<Value> variables) {
  // All at once: what reads a variable that an earlier assignment changes is put aside first.
  SmallVector<Expr> sources;
  for (Value value : values)
    sources.push_back(get(value));
  for (unsigned index = 0; index < values.size(); ++index)
    for (unsigned earlier = 0; earlier < index; ++earlier)
      if (sources[earlier].text != targets[earlier] && index < sources.size() &&
          !variables.empty() && llvm::is_contained(sources[index].changing, variables[earlier])) {
        std::string name = names.make(targets[index] + "_next");
        line(getDeclaration(values[index].getType(), name, false, getQualifiers(values[index])) +
             " = " + sources[index].text + ";");
        sources[index] = Expr{name};
        break;
      }
  for (auto [index, source] : llvm::enumerate(sources))
    printAssignment(targets[index], source, values[index].getType());
}

void KernelPrinter::printFor(scf::ForOp op) {
  SmallVector<std::string> targets;
  SmallVector<Value> variables;
  for (auto [argument, init, result] :
       llvm::zip_equal(op.getRegionIterArgs(), op.getInitArgs(), op.getResults())) {
    StringRef name = getSourceName(argument.getLoc());
    if (name.empty())
      name = getSourceName(result.getLoc());
    targets.push_back(name.empty() ? makeName(argument) : names.make(name));
    std::string declaration =
        getDeclaration(argument.getType(), targets.back(), false, getQualifiers(argument));
    if (declaration.empty()) {
      (void)refuse(op, "carries a value of a type that Metal does not have");
      return;
    }
    line(declaration + " = " + get(init).text + ";");
    variables.push_back(argument);
    Expr expr{targets.back()};
    exprs[result] = expr;
    expr.changing.push_back(argument);
    exprs[argument] = expr;
  }
  names.push();
  bool isUnsigned = op.getUnsignedCmp();
  std::string index = makeName(op.getInductionVar(), "k");
  Expr indexExpr{index};
  indexExpr.isUnsigned = isUnsigned;
  exprs[op.getInductionVar()] = indexExpr;
  auto bound = [&](Value value) { return isUnsigned ? getUnsigned(value) : getSigned(value); };
  Expr step = bound(op.getStep());
  std::string advance =
      step.literal && step.literal->isOne() ? "++" + index : index + " += " + step.text;
  std::string head = "for (" + getTypeName(op.getInductionVar().getType(), isUnsigned) + " " +
                     index + " = " + bound(op.getLowerBound()).text + "; " + index + " < " +
                     inParens(bound(op.getUpperBound()), Shift) + "; " + advance + ")";
  printBody(head, [&] {
    printBlock(*op.getBody());
    printYield(op.getYieldedValues(), targets, variables);
  });
  names.pop();
}

void KernelPrinter::printWhile(scf::WhileOp op) {
  SmallVector<std::string> targets, passedTargets;
  SmallVector<Value> variables;
  for (auto [argument, init] : llvm::zip_equal(op.getBeforeArguments(), op.getInits())) {
    targets.push_back(makeName(argument));
    line(getDeclaration(argument.getType(), targets.back(), false, getQualifiers(argument)) +
         " = " + get(init).text + ";");
    variables.push_back(argument);
    Expr expr{targets.back()};
    expr.changing.push_back(argument);
    exprs[argument] = expr;
  }
  // What the condition passes on: a carried variable as it is, else a variable of its own.
  scf::ConditionOp condition = op.getConditionOp();
  SmallVector<std::pair<Value, std::string>> copies;
  for (auto [value, argument, result] :
       llvm::zip_equal(condition.getArgs(), op.getAfterArguments(), op.getResults())) {
    Expr expr;
    if (value.getParentBlock() == op.getBeforeBody() && isa<BlockArgument>(value)) {
      expr = exprs[value];
    } else {
      expr.text = makeName(result);
      line(getDeclaration(result.getType(), expr.text, false, getQualifiers(result)) + ";");
      copies.push_back({value, expr.text});
    }
    exprs[argument] = expr;
    expr.changing.clear();
    exprs[result] = expr;
  }
  std::string first, second;
  Expr test;
  ++depth;
  // Both are in one pair of braces: the names of the first part are taken in the second.
  second = capture([&] {
    printBlock(*op.getBeforeBody());
    for (auto &[value, name] : copies)
      line(name + " = " + get(value).text + ";");
    test = get(condition.getCondition());
    std::swap(first, buffer);
    printBlock(*op.getAfterBody());
    printYield(op.getYieldOp().getOperands(), targets, variables);
  });
  --depth;
  if (first.empty()) {
    line("while (" + test.text + ") {");
  } else {
    line("while (true) {");
    buffer += first;
    ++depth;
    line("if (!" + inParens(test, Unary) + ")");
    ++depth;
    line("break;");
    depth -= 2;
  }
  buffer += second;
  line("}");
}

void KernelPrinter::printIf(scf::IfOp op) {
  SmallVector<std::string> targets;
  for (Value result : op.getResults()) {
    targets.push_back(makeName(result));
    std::string declaration =
        getDeclaration(result.getType(), targets.back(), false, getQualifiers(result));
    if (declaration.empty()) {
      (void)refuse(op, "yields a value of a type that Metal does not have");
      return;
    }
    line(declaration + ";");
  }
  Expr condition = get(op.getCondition());
  auto branch = [&](Block *block) {
    if (!block)
      return std::string();
    ++depth;
    std::string text = capture([&] {
      printBlock(*block);
      printYield(block->getTerminator()->getOperands(), targets, {});
    });
    --depth;
    return text;
  };
  std::string then = branch(op.thenBlock()), otherwise = branch(op.elseBlock());
  for (auto [result, name] : llvm::zip_equal(op.getResults(), targets))
    exprs[result] = Expr{name};
  auto isSingle = [](StringRef text) { return text.count('\n') == 1; };
  if (then.empty() && otherwise.empty())
    return;
  if (then.empty()) {
    bool single = isSingle(otherwise);
    line("if (!" + inParens(condition, Unary) + ")" + (single ? "" : " {"));
    buffer += otherwise;
    if (!single)
      line("}");
    return;
  }
  bool single = isSingle(then) && (otherwise.empty() || isSingle(otherwise));
  line("if (" + condition.text + ")" + (single ? "" : " {"));
  buffer += then;
  if (!otherwise.empty()) {
    line(single ? "else" : "} else {");
    buffer += otherwise;
  }
  if (!single)
    line("}");
}

/// How often the bodies inside are run, one after the other.
static int64_t countIterations(UnrollOp op) {
  int64_t inside = 0;
  for (Operation &nested : op.getBody().front())
    nested.walk<WalkOrder::PreOrder>([&](UnrollOp loop) {
      inside += countIterations(loop);
      return WalkResult::skip();
    });
  return (int64_t(op.getUpper()) - int64_t(op.getLower())) * std::max<int64_t>(inside, 1);
}

/// Of a thread's numbers, a bool being one.
static int64_t getBytes(ArrayType array) {
  auto vector = dyn_cast<VectorType>(array.getElementType());
  int64_t width = vector ? vector.getNumElements() : 1;
  return array.getCount() * width *
         llvm::divideCeil(array.getScalarType().getIntOrFloatBitWidth(), 8);
}

/// A loop over more values than a thread's registers could hold stays a loop: unrolled, it would
/// spill them all the same, and take seconds to compile. Matrices cannot be indexed at run time, so
/// that loops over them are always unrolled.
static bool isToBeUnrolled(UnrollOp op) {
  constexpr int64_t mostIterations = 256, mostBytes = 1024;
  bool isLarge = countIterations(op) > mostIterations, hasMatrix = false;
  op->walk([&](Operation *nested) {
    for (Type type : llvm::concat<const Type>(nested->getOperandTypes(), nested->getResultTypes()))
      if (auto array = dyn_cast<ArrayType>(type)) {
        hasMatrix |= array.isMatrix();
        if (!array.isMatrix())
          isLarge |= getBytes(array) > mostBytes;
      }
  });
  return hasMatrix || !isLarge;
}

void KernelPrinter::printUnroll(UnrollOp op) {
  names.push();
  static const char *indices[] = {"i", "j", "k", "l", "m", "n"};
  std::string index = names.make(indices[std::min(loopDepth, 5u)]);
  exprs[op.getIndex()] = Expr{index};
  exprs[op.getIndex()].isShort = true;
  if (isToBeUnrolled(op))
    line("#pragma unroll");
  ++loopDepth;
  printBody("for (ushort " + index + " = " + std::to_string(op.getLower()) + "; " + index + " < " +
                std::to_string(op.getUpper()) + "; ++" + index + ")",
            [&] { printBlock(op.getBody().front()); });
  --loopDepth;
  names.pop();
}

void KernelPrinter::printBlock(Block &block) {
  for (Operation &op : block) {
    if (op.hasTrait<OpTrait::IsTerminator>())
      break;
    printOp(&op);
  }
}

void KernelPrinter::printOp(Operation *op) {
  if (failed)
    return;
  llvm::SaveAndRestore<Operation *> current(statement, op);
  Attribute attr;
  if (matchPattern(op, m_Constant(&attr)) || isa<AllocOp>(op))
    return;
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return printFor(loop);
  if (auto loop = dyn_cast<scf::WhileOp>(op))
    return printWhile(loop);
  if (auto conditional = dyn_cast<scf::IfOp>(op))
    return printIf(conditional);
  if (auto unroll = dyn_cast<UnrollOp>(op))
    return printUnroll(unroll);
  if (auto variable = dyn_cast<VarOp>(op)) {
    std::string name = makeName(variable.getResult());
    exprs[variable.getResult()] = Expr{name};
    std::string declaration = getDeclaration(variable.getType(), name, false);
    if (declaration.empty()) {
      (void)refuse(op, "declares a type that Metal does not have");
      return;
    }
    // The first assignment is the initialiser where it comes right behind.
    if (auto set = dyn_cast_or_null<SetOp>(op->getNextNode());
        set && set.getArray() == variable.getResult() && !set.getElement() &&
        variable.getType().getCount() == 1 && !variable.getType().isMatrix()) {
      Expr value =
          isIntegerVector(set.getValue()) ? getSigned(set.getValue()) : get(set.getValue());
      line(declaration + " = " + value.text + ";");
      return;
    }
    line(declaration + ";");
    return;
  }
  if (auto set = dyn_cast<SetOp>(op)) {
    if (auto variable = dyn_cast_or_null<VarOp>(op->getPrevNode());
        variable && variable.getResult() == set.getArray() && !set.getElement() &&
        variable.getType().getCount() == 1 && !variable.getType().isMatrix())
      return;
    std::string target = getElement(set.getArray(), set.getIndex());
    if (set.getArray().getType().isMatrix()) {
      prelude.elements = true;
      target = "elements(" + target + ")";
    }
    if (Value element = set.getElement()) {
      if (matchPattern(element, m_Constant(&attr)))
        target += std::string(".") + "xyzw"[cast<IntegerAttr>(attr).getInt()];
      else
        target += "[" + get(element).text + "]";
    }
    Value value = set.getValue();
    printAssignment(target, isIntegerVector(value) ? getSigned(value) : get(value),
                    value.getType());
    return;
  }
  if (auto fill = dyn_cast<FillOp>(op)) {
    std::string element = getTypeName(fill.getValue().getType());
    line(getElement(fill.getArray(), fill.getIndex()) + " = make_filled_simdgroup_matrix<" +
         element + ", 8, 8>(" + get(fill.getValue()).text + ");");
    return;
  }
  if (auto load = dyn_cast<MatrixLoadOp>(op)) {
    if (getQualifiers(load.getBase()).isCoherent) {
      (void)refuse(op,
                   "would read what other programs write through a function that does not see it");
      return;
    }
    line("simdgroup_load(" + getElement(load.getArray(), load.getIndex()) + ", " +
         getAddress(load.getBase(), load.getOffset()).text + ", " +
         std::to_string(load.getStride()) + (load.getTransposed() ? ", ulong2(0), true" : "") +
         ");");
    return;
  }
  if (auto multiply = dyn_cast<MultiplyAccumulateOp>(op)) {
    std::string acc = getElement(multiply.getAcc(), multiply.getAccIndex());
    line("simdgroup_multiply_accumulate(" + acc + ", " +
         getElement(multiply.getA(), multiply.getAIndex()) + ", " +
         getElement(multiply.getB(), multiply.getBIndex()) + ", " + acc + ");");
    return;
  }
  if (auto write = dyn_cast<WriteOp>(op)) {
    Value value = write.getValue();
    Type element = write.getBase().getType().getElementType();
    bool carrier = isa<VectorType>(value.getType()) &&
                   isa<IntegerType>(getElementTypeOrSelf(value.getType())) &&
                   !isa<IntegerType>(element);
    Expr source = carrier                  ? getUnsigned(value)
                  : isIntegerVector(value) ? getSigned(value)
                                           : get(value);
    if (source.isSplat && isa<VectorType>(value.getType()))
      source = cast(getTypeName(value.getType(), carrier), source);
    line(getAccess(write.getBase(), write.getOffset(), value.getType(), false) + " = " +
         source.text + ";");
    return;
  }
  if (auto barrier = dyn_cast<BarrierOp>(op)) {
    line(barrier.getDevice()
             ? "threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);"
             : "threadgroup_barrier(mem_flags::mem_threadgroup);");
    return;
  }
  if (isa<FenceOp>(op)) {
    line("atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);");
    return;
  }
  if (op->getNumResults() != 1) {
    (void)refuse(op, "has no form in Metal");
    return;
  }
  if (isa<AtomicRMWOp, AtomicCASOp>(op) && op->use_empty()) {
    Value mask =
        isa<AtomicRMWOp>(op) ? cast<AtomicRMWOp>(op).getMask() : cast<AtomicCASOp>(op).getMask();
    Expr update = build(op);
    if (mask) {
      line("if (" + get(mask).text + ")");
      ++depth;
      line(update.text + ";");
      --depth;
    } else {
      line(update.text + ";");
    }
    return;
  }
  if (op->use_empty() && isMemoryEffectFree(op))
    return;
  if (op->use_empty() && isa<GetOp, ReadOp>(op) && !isVolatile(op))
    return;
  Expr expr = build(op);
  if (failed)
    return;
  if (isFolded(op, expr)) {
    exprs[op->getResult(0)] = expr;
    folded.insert(op);
    return;
  }
  declare(op->getResult(0), expr);
}
