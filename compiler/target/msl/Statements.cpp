// Statements: declarations, assignments, loops and branches.

#include "target/msl/KernelPrinter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace triton_metal::msl;

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
  ++depth;
  body();
  --depth;
  names.pop();
  std::swap(buffer, outer);
  return outer;
}

static bool isOneLine(StringRef text) { return text.count('\n') == 1; }

/// `head` and a body, in braces unless it is one line.
void KernelPrinter::printBody(const std::string &head, function_ref<void()> body) {
  std::string text = capture(body);
  bool single = isOneLine(text);
  line(single ? head : head + " {");
  buffer += text;
  if (!single)
    line("}");
}

//===----------------------------------------------------------------------===//
// Variables
//===----------------------------------------------------------------------===//

std::string KernelPrinter::getDeclaration(Type type, const std::string &name,
                                          Qualifiers qualifiers) {
  if (auto pointer = dyn_cast<PtrType>(type))
    return getPointerName(pointer, qualifiers) + name;
  std::string text = getTypeName(type);
  return text.empty() ? text : text + " " + name;
}

void KernelPrinter::printLet(LetOp op) {
  std::string text = getAssigned(op.getValue()), name = names.make(op.getName());
  std::string declaration = getDeclaration(op.getType(), name, getQualifiers(op.getValue()));
  exprs[op.getResult()] = {name};
  if (declaration.empty())
    return (void)refuse(op.getValue().getDefiningOp(),
                        "makes a value of a type that Metal does not have");
  line(declaration + " = " + text + ";");
}

void KernelPrinter::printVar(VarOp op) {
  std::string init = op.getInit() ? " = " + getAssigned(op.getInit()) : "";
  std::string name = names.make(op.getName().value_or("result"));
  exprs[op.getResult()] = {name};
  ArrayType array = op.getType();
  std::string declaration =
      getDeclaration(array.getElementType(), name, getQualifiers(op.getResult()));
  if (declaration.empty())
    return (void)refuse(op, "declares a type that Metal does not have");
  if (array.isMatrix())
    prelude.useMatrices();
  if (array.getCount() != 1) {
    declaration += "[" + std::to_string(array.getCount()) + "]";
    // Apple's compiler has crashed on arrays without a first value (docs/apple-quirks.md, row 28).
    // Matrices have no literal, and are never indexed at run time.
    if (!array.isMatrix())
      init = " = {}";
  }
  line(declaration + init + ";");
}

/// Whether a value is what a place holds already.
static bool isHeld(SetOp set, Value value) {
  auto held = value.getDefiningOp<GetOp>();
  return held && held.getArray() == set.getArray() && held.getIndex() == set.getIndex() &&
         held.getElement() == set.getElement();
}

/// `x op y`, where that is what x becomes.
static BinaryOp getUpdate(SetOp set) {
  auto update = set.getValue().getDefiningOp<BinaryOp>();
  bool isUpdate = update && update.getKind() <= BinaryKind::Div &&
                  isa<FloatType>(getElementTypeOrSelf(update.getType())) &&
                  isHeld(set, update.getLhs());
  return isUpdate ? update : BinaryOp();
}

void KernelPrinter::printSet(SetOp op) {
  if (isHeld(op, op.getValue()))
    return;
  std::string target = getElement(op.getArray(), op.getIndex(), op.getElement());
  BinaryOp update = getUpdate(op);
  if (!update)
    return line(target + " = " + getAssigned(op.getValue()) + ";");
  line(target + " " + "+-*/"[unsigned(update.getKind())] + "= " + get(update.getRhs()).text + ";");
}

void KernelPrinter::printAtomic(Operation *op) {
  auto rmw = dyn_cast<AtomicRMWOp>(op);
  Value mask = rmw ? rmw.getMask() : cast<AtomicCASOp>(op).getMask();
  std::string update = build(op).text + ";";
  if (!mask)
    return line(update);
  line("if (" + get(mask).text + ")");
  ++depth;
  line(update);
  --depth;
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

/// The call of a barrier.
static std::string getBarrier(bool device) {
  return std::string("threadgroup_barrier(mem_flags::mem_threadgroup") +
         (device ? " | mem_flags::mem_device)" : ")");
}

void KernelPrinter::printFor(msl::ForOp op) {
  names.push();
  StringRef source = getSourceName(op.getCounter().getLoc());
  std::string counter = names.make(source.empty() ? "k" : source);
  exprs[op.getCounter()] = {counter};
  std::string advance = matchPattern(op.getStep(), m_One())
                            ? "++" + counter
                            : counter + " += " + get(op.getStep()).text;
  std::string wait = op.getWaits() ? getBarrier(op.getDevice()) + ", " : "";
  printBody("for (" + getTypeName(op.getCounter().getType()) + " " + counter + " = " +
                get(op.getLower()).text + "; " + wait + counter + " < " +
                inParens(get(op.getUpper()), Shift) + "; " + advance + ")",
            [&] { printBlock(op.getBody().front()); });
  names.pop();
}

/// Whether what the condition of a loop is computed from may change from step to step: variables
/// that the loop sets, and memory that it writes.
static bool conditionChanges(scf::WhileOp op) {
  auto isInLoop = [&](Operation *user) { return op->isProperAncestor(user); };
  SmallVector<Value> work{op.getConditionOp().getCondition()};
  llvm::SmallPtrSet<Operation *, 16> seen;
  while (!work.empty()) {
    Operation *source = work.pop_back_val().getDefiningOp();
    if (!source || !isInLoop(source) || !seen.insert(source).second)
      continue;
    if (auto get = dyn_cast<GetOp>(source)) {
      if (llvm::any_of(get.getArray().getUsers(),
                       [&](Operation *user) { return isa<SetOp>(user) && isInLoop(user); }))
        return true;
    } else if (auto read = dyn_cast<ReadOp>(source);
               read ? read.getIsVolatile() : !isMemoryEffectFree(source)) {
      return true;
    }
    llvm::append_range(work, source->getOperands());
  }
  return false;
}

void KernelPrinter::printWhile(scf::WhileOp op) {
  names.push();
  std::string first, second;
  Expr test;
  // Both are in one pair of braces: the names of the first part are taken in the second.
  std::string more = names.make("more");
  second = capture([&] {
    printBlock(*op.getBeforeBody());
    test = get(op.getConditionOp().getCondition());
    std::swap(first, buffer);
    if (!first.empty())
      ++depth;
    printBlock(*op.getAfterBody());
    if (!first.empty())
      --depth;
  });
  // Apple's compiler has removed loops without a visible end, and has crashed on some
  // (docs/apple-quirks.md, row 16).
  std::string steps = conditionChanges(op) ? "" : names.make("steps");
  std::string bound = steps + " < 18446744073709551615ul";
  std::string head = steps.empty() ? "while (" : "for (ulong " + steps + " = 0; " + bound + " && ";
  std::string tail = steps.empty() ? ") {" : "; ++" + steps + ") {";
  if (first.empty()) {
    line(head + (steps.empty() ? test.text : inParens(test, LogicalAnd)) + tail);
    buffer += second;
  } else {
    line("bool " + more + " = true;");
    line(head + more + tail);
    buffer += first;
    ++depth;
    line(more + " = " + test.text + ";");
    if (!second.empty()) {
      line("if (" + more + ") {");
      buffer += second;
      line("}");
    }
    --depth;
  }
  line("}");
  names.pop();
  if (!first.empty()) // it is declared before the loop
    names.take(more);
}

void KernelPrinter::printIf(scf::IfOp op) {
  Expr condition = get(op.getCondition());
  std::string then = capture([&] { printBlock(*op.thenBlock()); }), otherwise;
  if (op.elseBlock())
    otherwise = capture([&] { printBlock(*op.elseBlock()); });
  if (then.empty() && otherwise.empty())
    return;
  if (then.empty()) {
    condition = {"!" + inParens(condition, Unary), Unary};
    std::swap(then, otherwise);
  }
  bool single = isOneLine(then) && (otherwise.empty() || isOneLine(otherwise));
  line("if (" + condition.text + ")" + (single ? "" : " {"));
  buffer += then;
  if (!otherwise.empty()) {
    line(single ? "else" : "} else {");
    buffer += otherwise;
  }
  if (!single)
    line("}");
}

void KernelPrinter::printUnroll(UnrollOp op) {
  names.push();
  static const char *indices[] = {"i", "j", "k", "l", "m", "n"};
  std::string index = names.make(indices[std::min(loopDepth, 5u)]);
  exprs[op.getIndex()] = {index};
  if (op.getPragma())
    line("#pragma unroll");
  ++loopDepth;
  printBody("for (" + getTypeName(op.getIndex().getType()) + " " + index + " = " +
                std::to_string(op.getLower()) + "; " + index + " < " +
                std::to_string(op.getUpper()) + "; ++" + index + ")",
            [&] { printBlock(op.getBody().front()); });
  --loopDepth;
  names.pop();
}

//===----------------------------------------------------------------------===//
// All operations
//===----------------------------------------------------------------------===//

void KernelPrinter::printBlock(Block &block) {
  for (Operation &op : block) {
    if (op.hasTrait<OpTrait::IsTerminator>())
      break;
    printOp(&op);
  }
}

void KernelPrinter::printOp(Operation *op) {
  if (failed || op->hasTrait<OpTrait::ConstantLike>() ||
      isa<AllocOp, LaneOp, SimdgroupOp, ProgramIdOp, NumProgramsOp>(op))
    return;
  llvm::SaveAndRestore<Operation *> current(statement, op);
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](LetOp let) { printLet(let); })
      .Case([&](VarOp variable) { printVar(variable); })
      .Case([&](SetOp set) { printSet(set); })
      .Case([&](msl::ForOp loop) { printFor(loop); })
      .Case([&](UnrollOp loop) { printUnroll(loop); })
      .Case([&](scf::WhileOp loop) { printWhile(loop); })
      .Case([&](scf::IfOp conditional) { printIf(conditional); })
      .Case([&](FillOp fill) {
        FragmentShape shape = fill.getArray().getType().getMatrixType().getShape();
        line(getMatrix(fill.getArray(), fill.getIndex()) + " = make_filled_simdgroup_matrix<" +
             getTypeName(fill.getValue().getType()) + ", " + std::to_string(shape.columns) + ", " +
             std::to_string(shape.rows) + ">(" + get(fill.getValue()).text + ");");
      })
      .Case([&](MultiplyAccumulateOp multiply) {
        std::string acc = getMatrix(multiply.getAcc(), multiply.getAccIndex());
        line("simdgroup_multiply_accumulate(" + acc + ", " +
             getMatrix(multiply.getA(), multiply.getAIndex()) + ", " +
             getMatrix(multiply.getB(), multiply.getBIndex()) + ", " + acc + ");");
      })
      .Case([&](TensorMultiplyOp multiply) {
        auto pointer = [&](TypedValue<ArrayType> array, Value index) {
          std::string name = get(array).text;
          if (array.getType().getCount() == 1)
            return "&" + name;
          IntegerAttr constant;
          if (!index ||
              (matchPattern(index, m_Constant(&constant)) && constant.getValue().isZero()))
            return name;
          return "&" + name + "[" + get(index).text + "]";
        };
        auto flag = [](bool value) { return value ? "true" : "false"; };
        prelude.useTensorMultiply(multiply.getInstruction());
        line(getTensorMultiplyName(multiply.getInstruction()) + "<" +
             flag(multiply.getATransposed()) + ", " + flag(multiply.getBTransposed()) + ", " +
             flag(multiply.getRelaxed()) + ">(" +
             pointer(multiply.getAcc(), multiply.getAccIndex()) + ", " +
             pointer(multiply.getA(), multiply.getAIndex()) + ", " +
             pointer(multiply.getB(), multiply.getBIndex()) + ");");
      })
      .Case([&](WriteOp write) {
        Type type = write.getValue().getType();
        std::string value =
            write.getUnaligned()
                ? "packed_" + getTypeName(type) + "(" + get(write.getValue()).text + ")"
                : getAssigned(write.getValue(), /*isVariable=*/false);
        line(getAccess(write.getBase(), write.getOffset(), type, false, write.getUnaligned()) +
             " = " + value + ";");
      })
      .Case([&](BarrierOp barrier) { line(getBarrier(barrier.getDevice()) + ";"); })
      .Case([&](FenceOp) {
        line("atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, "
             "thread_scope_device);");
      })
      .Default([&](Operation *) {
        if (op->getNumResults() != 1)
          return (void)refuse(op, "has no form in Metal");
        if (isa<AtomicRMWOp, AtomicCASOp>(op) && op->use_empty())
          return printAtomic(op);
        // The text of what uses it.
        exprs[op->getResult(0)] = build(op);
      });
}
