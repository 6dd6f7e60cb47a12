// Prints and assertions become records in a buffer that the launcher reads: see Passes.td.

#include "dialect/tt/Messages.h"
#include "dialect/tt/TT.h"
#include "transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_TTLOWERMESSAGES
#include "transforms/Passes.h.inc"

namespace {

/// Writes the records of one kernel.
class MessageWriter {
public:
  explicit MessageWriter(tt::FuncOp func) : func(func), builder(func.getContext()) {}

  void addArguments(bool hasAssertions, bool hasPrints);
  void lower(tt::PrintOp print);
  void lower(tt::AssertOp assertion);
  ArrayAttr getSites() { return builder.getArrayAttr(sites); }

private:
  Value constant(int64_t value) {
    return arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(int32_t(value)));
  }
  /// One number in each element of a tile of this shape, or the number itself.
  Value repeated(Value value, ArrayRef<int64_t> shape) {
    return tt::SplatOp::create(builder, loc, RankedTensorType::get(shape, value.getType()), value);
  }
  Value add(Value a, Value b) { return arith::AddIOp::create(builder, loc, a, b); }
  Value compare(arith::CmpIPredicate predicate, Value a, Value b) {
    return arith::CmpIOp::create(builder, loc, predicate, a, b);
  }
  /// The address of a word of a buffer.
  Value address(Value buffer, Value word) {
    return tt::AddPtrOp::create(builder, loc, buffer.getType(), buffer, word);
  }
  /// Updates a word of a buffer for all programs, and gives what it held.
  Value update(tt::RMWOp kind, Value buffer, Value word, Value value) {
    return tt::AtomicRMWOp::create(builder, loc, value.getType(), kind, address(buffer, word),
                                   value, Value(), tt::MemSemantic::RELAXED, tt::MemSyncScope::GPU);
  }
  Value update(tt::RMWOp kind, Value buffer, int32_t word, Value value) {
    return update(kind, buffer, constant(word), value);
  }
  /// Writes numbers, or whole tiles, one after the other, as a part of a print.
  void write(Value first, ValueRange values);
  /// The row-major index of each element of a tile.
  Value indices(ArrayRef<int64_t> shape);
  /// The bits of a value as 32-bit words, the low words first.
  void addWords(Value value, SmallVectorImpl<Value> &words);
  /// The number of the site, and the program's position.
  SmallVector<Value> header();
  void addSite(Location at, ArrayRef<NamedAttribute> fields);
  void begin(Operation *op) {
    builder.setInsertionPoint(op);
    loc = op->getLoc();
  }

  tt::FuncOp func;
  OpBuilder builder;
  Location loc = func.getLoc();
  Value failures, prints, origin, size;
  SmallVector<Attribute> sites;
};

void MessageWriter::addArguments(bool hasAssertions, bool hasPrints) {
  llvm::StringSet<> taken;
  for (BlockArgument argument : func.getArguments())
    if (auto name = argument.getLoc()->findInstanceOf<NameLoc>())
      taken.insert(name.getName().getValue());
  auto addArgument = [&](Type type, StringRef role, StringRef base) {
    std::string name = base.str();
    for (unsigned number = 1; !taken.insert(name).second; ++number)
      name = (base + "_" + Twine(number)).str();
    Location named = NameLoc::get(builder.getStringAttr(name), func.getLoc());
    unsigned index = func.getNumArguments();
    (void)func.insertArgument(index, type, {}, named);
    func.setArgAttr(index, tt::messageRoleAttrName, builder.getStringAttr(role));
    return func.getArgument(index);
  };
  Type i32 = builder.getI32Type(), words = tt::PtrType::get(i32, /*addressSpace=*/1);
  if (hasAssertions)
    failures = addArgument(words, "failures", "failures");
  if (hasPrints)
    prints = addArgument(words, "prints", "prints");
  origin = addArgument(i32, "origin", "messages_origin");
  if (hasPrints)
    size = addArgument(i32, "size", "prints_size");
}

void MessageWriter::write(Value first, ValueRange values) {
  int64_t offset = 0;
  for (Value value : values) {
    Value pointer = address(prints, add(first, constant(offset)));
    auto tile = dyn_cast<RankedTensorType>(value.getType());
    if (tile) {
      Value pointers = repeated(pointer, tile.getShape());
      pointer = tt::AddPtrOp::create(builder, loc, pointers.getType(), pointers,
                                     indices(tile.getShape()));
    }
    tt::StoreOp::create(builder, loc, pointer, value);
    offset += tile ? tile.getNumElements() : 1;
  }
}

Value MessageWriter::indices(ArrayRef<int64_t> shape) {
  Type i32 = builder.getI32Type();
  Value sum;
  int64_t stride = 1;
  for (int64_t axis = int64_t(shape.size()) - 1; axis >= 0; --axis) {
    Value range = tt::MakeRangeOp::create(builder, loc, RankedTensorType::get({shape[axis]}, i32),
                                          0u, static_cast<uint32_t>(shape[axis]));
    if (stride != 1)
      range = arith::MulIOp::create(builder, loc, range, repeated(constant(stride), {shape[axis]}));
    for (int64_t other = 0; other < int64_t(shape.size()); ++other)
      if (other != axis)
        range = tt::ExpandDimsOp::create(builder, loc, range, int(other));
    if (shape.size() > 1)
      range = tt::BroadcastOp::create(builder, loc, RankedTensorType::get(shape, i32), range);
    sum = sum ? add(range, sum) : range;
    stride *= shape[axis];
  }
  return sum;
}

/// The type with another element.
static Type withElement(Type type, Type element) {
  auto tile = dyn_cast<RankedTensorType>(type);
  return tile ? Type(tile.clone(element)) : element;
}

void MessageWriter::addWords(Value value, SmallVectorImpl<Value> &words) {
  Type type = value.getType(), i32 = withElement(type, builder.getI32Type());
  Type element = getElementTypeOrSelf(type);
  unsigned width = tt::getBitWidth(element);
  Type integer = withElement(type, builder.getIntegerType(width));
  if (isa<tt::PtrType>(element))
    value = tt::PtrToIntOp::create(builder, loc, integer, value);
  else if (isa<FloatType>(element))
    value = tt::BitcastOp::create(builder, loc, integer, value);
  if (width < 32) {
    words.push_back(arith::ExtUIOp::create(builder, loc, i32, value));
    return;
  }
  if (width == 32) {
    words.push_back(value);
    return;
  }
  words.push_back(arith::TruncIOp::create(builder, loc, i32, value));
  Value amount =
      arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(builder.getI64Type(), 32));
  if (auto tile = dyn_cast<RankedTensorType>(type))
    amount = repeated(amount, tile.getShape());
  Value high = arith::ShRUIOp::create(builder, loc, value, amount);
  words.push_back(arith::TruncIOp::create(builder, loc, i32, high));
}

SmallVector<Value> MessageWriter::header() {
  SmallVector<Value> words = {constant(int64_t(sites.size()))};
  for (int axis = 0; axis < 3; ++axis)
    words.push_back(tt::GetProgramIdOp::create(builder, loc, axis));
  return words;
}

void MessageWriter::addSite(Location at, ArrayRef<NamedAttribute> fields) {
  NamedAttrList site(fields);
  site.set("loc", LocationAttr(at));
  sites.push_back(site.getDictionary(builder.getContext()));
}

/// The shape of a value; empty for a scalar.
static ArrayRef<int64_t> shapeOf(Value value) {
  auto tile = dyn_cast<RankedTensorType>(value.getType());
  return tile ? tile.getShape() : ArrayRef<int64_t>();
}

void MessageWriter::lower(tt::PrintOp print) {
  begin(print);
  SmallVector<Attribute> operands;
  SmallVector<Value> words = header();
  for (auto [index, value] : llvm::enumerate(print.getArgs())) {
    bool isSigned = print.getIsSigned().empty() || print.getIsSigned()[index];
    operands.push_back(builder.getDictionaryAttr({
        builder.getNamedAttr("type", TypeAttr::get(getElementTypeOrSelf(value.getType()))),
        builder.getNamedAttr("shape", builder.getDenseI64ArrayAttr(shapeOf(value))),
        builder.getNamedAttr("signed", builder.getBoolAttr(isSigned)),
    }));
    addWords(value, words);
  }
  int64_t count = 0;
  for (Value word : words) {
    auto tile = dyn_cast<RankedTensorType>(word.getType());
    count += tile ? tile.getNumElements() : 1;
  }

  // Nothing is reserved once the buffer is full, so that the counter of words cannot wrap around.
  Value zero = constant(0);
  Value used = arith::SubIOp::create(
      builder, loc, update(tt::RMWOp::OR, prints, tt::prints::kUsed, zero), origin);
  Value hasRoom = compare(arith::CmpIPredicate::ult, used, size);
  auto reserve = scf::IfOp::create(builder, loc, TypeRange{builder.getI1Type()}, hasRoom,
                                   /*withElseRegion=*/true);
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(reserve.thenBlock());
    Value first = arith::SubIOp::create(
        builder, loc, update(tt::RMWOp::ADD, prints, tt::prints::kUsed, constant(count)), origin);
    Value place = add(first, constant(tt::prints::kFirst));
    // The host reads up to the first record that is cut off, whose site says how long it is.
    Value begins = compare(arith::CmpIPredicate::ult, first, size);
    auto mark = scf::IfOp::create(builder, loc, begins, /*withElseRegion=*/false);
    Value fits = compare(arith::CmpIPredicate::ule, add(first, constant(count)), size);
    auto whole = scf::IfOp::create(builder, loc, fits, /*withElseRegion=*/false);
    scf::YieldOp::create(builder, loc, fits);
    builder.setInsertionPointToStart(mark.thenBlock());
    write(place, words.front());
    builder.setInsertionPointToStart(whole.thenBlock());
    write(add(place, constant(1)), ValueRange(words).drop_front());
    builder.setInsertionPointToStart(reserve.elseBlock());
    Value none = arith::ConstantOp::create(builder, loc, builder.getBoolAttr(false));
    scf::YieldOp::create(builder, loc, none);
  }
  auto lost = scf::IfOp::create(builder, loc, reserve.getResult(0), /*withElseRegion=*/true);
  builder.setInsertionPointToStart(lost.elseBlock());
  update(tt::RMWOp::ADD, prints, tt::prints::kLost, constant(1));

  addSite(loc, {
                   builder.getNamedAttr("prefix", print.getPrefixAttr()),
                   builder.getNamedAttr("hex", print.getHexAttr()),
                   builder.getNamedAttr("operands", builder.getArrayAttr(operands)),
               });
  print.erase();
}

void MessageWriter::lower(tt::AssertOp assertion) {
  begin(assertion);
  Value condition = assertion.getCondition();
  ArrayRef<int64_t> shape = shapeOf(condition);
  Type type = condition.getType();
  auto zero =
      arith::ConstantOp::create(builder, loc, type, cast<TypedAttr>(builder.getZeroAttr(type)));
  Value failed = compare(arith::CmpIPredicate::eq, condition, zero);
  // The first element that fails.
  Value element = constant(0);
  if (!shape.empty()) {
    Value none = constant(cast<RankedTensorType>(type).getNumElements());
    element = arith::SelectOp::create(builder, loc, failed, indices(shape), repeated(none, shape));
    while (isa<RankedTensorType>(element.getType())) {
      auto reduce = tt::ReduceOp::create(builder, loc, ValueRange{element}, /*axis=*/0);
      OpBuilder::InsertionGuard guard(builder);
      Type i32 = builder.getI32Type();
      Block *block = builder.createBlock(&reduce.getCombineOp(), {}, {i32, i32}, {loc, loc});
      Value least =
          arith::MinUIOp::create(builder, loc, block->getArgument(0), block->getArgument(1));
      tt::ReduceReturnOp::create(builder, loc, least);
      element = reduce.getResult().front();
    }
    failed = compare(arith::CmpIPredicate::ult, element, none);
  }

  auto report = scf::IfOp::create(builder, loc, failed, /*withElseRegion=*/false);
  builder.setInsertionPointToStart(report.thenBlock());
  SmallVector<Value> words = header();
  Value x = words[1], y = words[2], z = words[3];
  Value width = tt::GetNumProgramsOp::create(builder, loc, 0);
  Value height = tt::GetNumProgramsOp::create(builder, loc, 1);
  Value program = add(y, arith::MulIOp::create(builder, loc, z, height));
  program = add(x, arith::MulIOp::create(builder, loc, program, width));
  // Of all programs the first is reported. A record is written by each program that comes before
  // those that have failed so far, and by each program once.
  Value rank = arith::XOrIOp::create(builder, loc, program, constant(-1));
  Value before = update(tt::RMWOp::UMAX, failures, tt::failures::kFailed, rank);
  Value isFirst = compare(arith::CmpIPredicate::ult, before, rank);
  auto first = scf::IfOp::create(builder, loc, isFirst, /*withElseRegion=*/false);
  builder.setInsertionPointToStart(first.thenBlock());
  Value record = arith::SubIOp::create(
      builder, loc, update(tt::RMWOp::ADD, failures, tt::failures::kCount, constant(1)), origin);
  Value hasRoom = compare(arith::CmpIPredicate::ult, record, constant(tt::failures::kMaxRecords));
  auto room = scf::IfOp::create(builder, loc, hasRoom, /*withElseRegion=*/false);
  builder.setInsertionPointToStart(room.thenBlock());
  Value place = arith::MulIOp::create(builder, loc, record, constant(tt::failures::kWords));
  place = add(place, constant(tt::failures::kFirst));
  // All accesses are atomic, so that one thread does them without a barrier in between.
  words.push_back(element);
  for (auto [offset, word] : llvm::enumerate(words))
    update(tt::RMWOp::XCHG, failures, add(place, constant(int64_t(offset))), word);

  addSite(loc, {
                   builder.getNamedAttr("message", assertion.getMessageAttr()),
                   builder.getNamedAttr("shape", builder.getDenseI64ArrayAttr(shape)),
               });
  assertion.erase();
}

struct TTLowerMessagesPass : impl::TTLowerMessagesBase<TTLowerMessagesPass> {
  void runOnOperation() override {
    bool changes = false;
    for (tt::FuncOp func : getOperation().getOps<tt::FuncOp>())
      if (func.isPublic())
        changes |= lower(func);
    if (!changes)
      markAllAnalysesPreserved();
  }

private:
  bool lower(tt::FuncOp func) {
    SmallVector<Operation *> messages;
    func.walk([&](Operation *op) {
      // These regions run for single elements: what is left in them is refused with its location.
      if (!isa<tt::PrintOp, tt::AssertOp>(op) || op->getParentOfType<tt::ReduceOp>() ||
          op->getParentOfType<tt::ScanOp>() || op->getParentOfType<tt::MapElementwiseOp>())
        return;
      // Constant conditions hold, mostly: the sanitizer writes many of them.
      auto assertion = dyn_cast<tt::AssertOp>(op);
      if (!assertion || !isTrue(assertion.getCondition()))
        messages.push_back(op);
      else
        holding.push_back(op);
    });
    bool hasErased = !holding.empty();
    for (Operation *op : holding)
      op->erase();
    holding.clear();
    if (messages.empty())
      return hasErased;
    MessageWriter writer(func);
    auto isPrint = [](Operation *op) { return isa<tt::PrintOp>(op); };
    writer.addArguments(!llvm::all_of(messages, isPrint), llvm::any_of(messages, isPrint));
    for (Operation *op : messages) {
      if (auto print = dyn_cast<tt::PrintOp>(op))
        writer.lower(print);
      else
        writer.lower(cast<tt::AssertOp>(op));
    }
    getOperation()->setAttr(tt::messagesAttrName, writer.getSites());
    return true;
  }

  static bool isTrue(Value condition) {
    Attribute value;
    if (!matchPattern(condition, m_Constant(&value)))
      return false;
    if (auto tile = dyn_cast<SplatElementsAttr>(value))
      value = tile.getSplatValue<Attribute>();
    auto number = dyn_cast<IntegerAttr>(value);
    return number && !number.getValue().isZero();
  }

  SmallVector<Operation *> holding;
};

} // namespace
} // namespace triton_metal
