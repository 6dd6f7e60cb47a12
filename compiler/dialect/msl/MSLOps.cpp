#include "dialect/msl/MSL.h"
#include "dialect/msl/ScalarTypes.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/FunctionImplementation.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace triton_metal::msl;

/// An index is an i32 where it does not say otherwise: `%i`, `%i (ui16)`.
static ParseResult parseIndex(OpAsmParser &parser, OpAsmParser::UnresolvedOperand &index,
                              Type &type) {
  type = parser.getBuilder().getI32Type();
  if (parser.parseOperand(index))
    return failure();
  if (failed(parser.parseOptionalLParen()))
    return success();
  return failure(parser.parseType(type) || parser.parseRParen());
}

static ParseResult parseIndex(OpAsmParser &parser,
                              std::optional<OpAsmParser::UnresolvedOperand> &index, Type &type) {
  return parseIndex(parser, index.emplace(), type);
}

static void printIndex(OpAsmPrinter &p, Operation *, Value index, Type type) {
  p << index;
  if (!type.isSignlessInteger(32))
    p << " (" << type << ')';
}

/// The types of an atomic's operands: its base, where there is one, comes first.
static ParseResult parseAtomicTypes(OpAsmParser &parser, Type &base, Type &offsets, Type &value) {
  Type first;
  OptionalParseResult found = parser.parseOptionalType(first);
  if (!found.has_value()) {
    // A pointer without its dialect's name.
    PtrType pointer;
    if (parser.parseCustomTypeWithFallback(pointer))
      return failure();
    first = pointer;
  } else if (failed(*found)) {
    return failure();
  }
  if (parser.parseComma())
    return failure();
  if (!isa<PtrType>(first)) {
    offsets = first;
    return parser.parseType(value);
  }
  base = first;
  return failure(parser.parseType(offsets) || parser.parseComma() || parser.parseType(value));
}

static void printAtomicTypes(OpAsmPrinter &p, Operation *, Type base, Type offsets, Type value) {
  if (base) {
    p.printStrippedAttrOrType(cast<PtrType>(base));
    p << ", ";
  }
  p << offsets << ", " << value;
}

#define GET_OP_CLASSES
#include "dialect/msl/MSLOps.cpp.inc"

//===----------------------------------------------------------------------===//
// Some of the threads
//===----------------------------------------------------------------------===//

void InThreadsOp::build(OpBuilder &builder, OperationState &state, ThreadSet threads,
                        TypeRange results, bool addBlock) {
  Properties &properties = state.getOrAddProperties<Properties>();
  properties.lane_mask = builder.getI32IntegerAttr(threads.laneMask);
  properties.lanes = builder.getI32IntegerAttr(threads.lanes);
  properties.simdgroup_mask = builder.getI32IntegerAttr(threads.simdgroupMask);
  properties.simdgroups = builder.getI32IntegerAttr(threads.simdgroups);
  state.addTypes(results);
  Region *body = state.addRegion();
  if (!addBlock)
    return;
  OpBuilder::InsertionGuard guard(builder);
  builder.createBlock(body);
  if (results.empty())
    InThreadsOp::ensureTerminator(*body, builder, state.location);
}

ThreadSet InThreadsOp::getThreadsIn(Block *block) {
  ThreadSet threads;
  for (Operation *op = block->getParentOp(); op; op = op->getParentOp())
    if (auto around = dyn_cast<InThreadsOp>(op))
      threads = threads & around.getThreadSet();
  return threads;
}

LogicalResult InThreadsOp::verify() {
  ThreadSet threads = getThreadSet();
  if ((threads.lanes & ~threads.laneMask) || (threads.simdgroups & ~threads.simdgroupMask))
    return emitOpError("wants bits that its masks leave out");
  if (threads.laneMask > 31)
    return emitOpError("asks for lanes beyond the 32 of a SIMD-group");
  if (auto kernel = (*this)->getParentOfType<KernelOp>();
      kernel && threads.simdgroupMask >= uint32_t(kernel.getThreads()) / 32)
    return emitOpError("asks for SIMD-groups beyond the ")
           << kernel.getThreads() / 32 << " of its threadgroup";
  if (getBodyBlock()->getTerminator()->getOperandTypes() != getResultTypes())
    return emitOpError("must yield its results");
  return success();
}

/// A region that all threads run that come here becomes part of the block around it.
LogicalResult InThreadsOp::canonicalize(InThreadsOp op, PatternRewriter &rewriter) {
  if (!op.getThreadSet().contains(getThreadsIn(op->getBlock())))
    return failure();
  Operation *yield = op.getBodyBlock()->getTerminator();
  SmallVector<Value> results(yield->getOperands());
  rewriter.eraseOp(yield);
  rewriter.inlineBlockBefore(op.getBodyBlock(), op);
  rewriter.replaceOp(op, results);
  return success();
}

//===----------------------------------------------------------------------===//
// Positions
//===----------------------------------------------------------------------===//

/// A 32-bit number from `low` to `high`.
static ConstantIntRanges getInt32Range(int64_t low, int64_t high) {
  return ConstantIntRanges::fromSigned(APInt(32, low, /*isSigned=*/true),
                                       APInt(32, high, /*isSigned=*/true));
}

static constexpr int64_t kLargestInt32 = std::numeric_limits<int32_t>::max();

void LaneOp::inferResultRanges(ArrayRef<ConstantIntRanges>, SetIntRangeFn setResultRange) {
  setResultRange(getResult(), getInt32Range(0, 31));
}
void SimdgroupOp::inferResultRanges(ArrayRef<ConstantIntRanges>, SetIntRangeFn setResultRange) {
  auto kernel = (*this)->getParentOfType<KernelOp>();
  auto threads = static_cast<int64_t>(kernel ? kernel.getThreads() : 1024);
  setResultRange(getResult(), getInt32Range(0, threads / 32 - 1));
}
// The launcher keeps a grid below 2^31 programs along each axis.
void ProgramIdOp::inferResultRanges(ArrayRef<ConstantIntRanges>, SetIntRangeFn setResultRange) {
  setResultRange(getResult(), getInt32Range(0, kLargestInt32 - 1));
}
void NumProgramsOp::inferResultRanges(ArrayRef<ConstantIntRanges>, SetIntRangeFn setResultRange) {
  setResultRange(getResult(), getInt32Range(1, kLargestInt32));
}
void NextSlotOp::inferResultRanges(ArrayRef<ConstantIntRanges>, SetIntRangeFn setResultRange) {
  setResultRange(getResult(), getInt32Range(0, int64_t(getSlots()) - 1));
}
void SplatOp::inferResultRanges(ArrayRef<ConstantIntRanges> ranges, SetIntRangeFn setResultRange) {
  setResultRange(getResult(), ranges[0]);
}

//===----------------------------------------------------------------------===//
// Effects
//===----------------------------------------------------------------------===//

/// A volatile access is neither dropped nor moved across another.
static void addReadEffects(bool isVolatile,
                           SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  effects.emplace_back(MemoryEffects::Read::get());
  if (isVolatile)
    effects.emplace_back(MemoryEffects::Write::get());
}

void LoadOp::getEffects(SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  addReadEffects(getIsVolatile(), effects);
}
void LoadAddressOp::getEffects(SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  addReadEffects(getIsVolatile(), effects);
}
void ReadOp::getEffects(SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  addReadEffects(getIsVolatile(), effects);
}

//===----------------------------------------------------------------------===//
// msl.kernel
//===----------------------------------------------------------------------===//

void KernelOp::build(OpBuilder &builder, OperationState &state, StringRef name, FunctionType type,
                     int32_t threads) {
  state.addAttribute(SymbolTable::getSymbolAttrName(), builder.getStringAttr(name));
  state.addAttribute(getFunctionTypeAttrName(state.name), TypeAttr::get(type));
  state.addAttribute(getThreadsAttrName(state.name), builder.getI32IntegerAttr(threads));
  state.addRegion();
}

ParseResult KernelOp::parse(OpAsmParser &parser, OperationState &result) {
  StringAttr name;
  SmallVector<OpAsmParser::Argument> arguments;
  bool isVariadic = false;
  SmallVector<Type> resultTypes;
  SmallVector<DictionaryAttr> resultAttrs;
  IntegerAttr threads;
  if (parser.parseSymbolName(name, SymbolTable::getSymbolAttrName(), result.attributes) ||
      function_interface_impl::parseFunctionSignatureWithArguments(
          parser, /*allowVariadic=*/false, arguments, isVariadic, resultTypes, resultAttrs) ||
      parser.parseKeyword("threads") ||
      parser.parseAttribute(threads, parser.getBuilder().getI32Type(),
                            getThreadsAttrName(result.name), result.attributes) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes))
    return failure();
  SmallVector<Type> inputTypes;
  for (OpAsmParser::Argument &argument : arguments)
    inputTypes.push_back(argument.type);
  Builder &builder = parser.getBuilder();
  result.addAttribute(getFunctionTypeAttrName(result.name),
                      TypeAttr::get(builder.getFunctionType(inputTypes, resultTypes)));
  call_interface_impl::addArgAndResultAttrs(builder, result, arguments, resultAttrs,
                                            getArgAttrsAttrName(result.name),
                                            getResAttrsAttrName(result.name));
  return parser.parseRegion(*result.addRegion(), arguments);
}

void KernelOp::print(OpAsmPrinter &p) {
  p << ' ';
  p.printSymbolName(getSymName());
  call_interface_impl::printFunctionSignature(p, getArgumentTypes(), getArgAttrsAttr(),
                                              /*isVariadic=*/false, getResultTypes(),
                                              getResAttrsAttr(), &getBody(),
                                              /*printEmptyResult=*/false);
  p << " threads " << getThreads();
  p.printOptionalAttrDictWithKeyword(
      (*this)->getAttrs(), {getSymNameAttrName(), getFunctionTypeAttrName(), getThreadsAttrName(),
                            getArgAttrsAttrName(), getResAttrsAttrName()});
  p << ' ';
  p.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

LogicalResult KernelOp::verify() {
  if (!getResultTypes().empty())
    return emitOpError("returns nothing in Metal");
  if (getThreads() < 1 || getThreads() > 1024 || getThreads() % 32)
    return emitOpError("has ") << getThreads()
                               << " threads, but a threadgroup has a multiple of 32, up to 1024";
  for (auto [index, type] : llvm::enumerate(getArgumentTypes())) {
    if (auto pointer = dyn_cast<PtrType>(type)) {
      if (pointer.getSpace() == AddressSpace::Device ||
          pointer.getSpace() == AddressSpace::Constant)
        continue;
      return emitOpError("argument ")
             << index << " points to an address space that cannot be bound";
    }
    if (!ScalarType::get(type))
      return emitOpError("argument ")
             << index << " has type " << type << ", which no Metal kernel takes";
  }
  return success();
}

StringRef KernelOp::getArgName(unsigned index) {
  auto name = getArgAttrOfType<StringAttr>(index, kNameAttr);
  return name ? name.getValue() : StringRef();
}

bool triton_metal::msl::mayOverlap(Value argument, Value other) {
  if (argument == other)
    return true;
  auto memoryOf = [](Value value) {
    auto argument = cast<BlockArgument>(value);
    auto kernel = cast<KernelOp>(argument.getOwner()->getParentOp());
    return kernel.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(), kMemoryAttr);
  };
  IntegerAttr memory = memoryOf(argument);
  return memory && memory == memoryOf(other);
}

//===----------------------------------------------------------------------===//
// Registers
//===----------------------------------------------------------------------===//

OpFoldResult SplatOp::fold(FoldAdaptor adaptor) {
  if (Attribute value = adaptor.getValue())
    return DenseElementsAttr::get(getType(), value);
  return {};
}

/// A constant is the same in every thread, and saying it once is enough.
OpFoldResult UniformOp::fold(FoldAdaptor adaptor) {
  if (Attribute value = adaptor.getValue())
    return value;
  return getValue().getDefiningOp<UniformOp>() ? getValue() : Value();
}

LogicalResult SimdShuffleOp::verify() {
  if (isa<VectorType>(getLane().getType()) &&
      getNumRegisters(getLane().getType()) != getNumRegisters(getType()))
    return emitOpError("takes ") << getNumRegisters(getLane().getType()) << " lanes for "
                                 << getNumRegisters(getType()) << " registers";
  return success();
}

LogicalResult PermuteRegistersOp::verify() {
  int64_t from = getValue().getType().getNumElements(), to = getType().getNumElements();
  if (getValue().getType().getElementType() != getType().getElementType())
    return emitOpError("changes the element type");
  if (!llvm::isPowerOf2_64(to) || (int64_t(1) << getBases().size()) != to)
    return emitOpError("needs one base for each bit of the result's register index");
  if (getOffset() >= static_cast<uint64_t>(from) ||
      llvm::any_of(getBases(), [&](int64_t base) { return base < 0 || base >= from; }))
    return emitOpError("has a base beyond the operand's registers");
  return success();
}

OpFoldResult PermuteRegistersOp::fold(FoldAdaptor adaptor) {
  if (auto dense = dyn_cast_if_present<DenseElementsAttr>(adaptor.getValue())) {
    if (dense.isSplat())
      return dense.resizeSplat(getType());
    auto values = llvm::to_vector(dense.getValues<Attribute>());
    SmallVector<Attribute> result;
    for (int64_t index = 0, e = getType().getNumElements(); index < e; ++index)
      result.push_back(values[getSource(index)]);
    return DenseElementsAttr::get(getType(), result);
  }
  bool identity = getValue().getType() == getType() && getOffset() == 0;
  for (auto [bit, base] : llvm::enumerate(getBases()))
    identity &= base == int64_t(1) << bit;
  if (identity)
    return getValue();
  return {};
}

/// Bits of bits are bits.
OpFoldResult AsTypeOp::fold(FoldAdaptor) {
  if (getValue().getType() == getType())
    return getValue();
  if (auto inner = getValue().getDefiningOp<AsTypeOp>();
      inner && inner.getValue().getType() == getType())
    return inner.getValue();
  return {};
}

/// All components of one vector, in order, are that vector.
OpFoldResult VectorOp::fold(FoldAdaptor) {
  Value source;
  int64_t next = 0;
  for (Value part : getParts()) {
    auto swizzle = part.getDefiningOp<SwizzleOp>();
    if (!swizzle || (source && swizzle.getValue() != source))
      return {};
    source = swizzle.getValue();
    for (int64_t position : swizzle.getPositions())
      if (position != next++)
        return {};
  }
  return source && source.getType() == getType() ? source : Value();
}

OpFoldResult SwizzleOp::fold(FoldAdaptor adaptor) {
  if (auto dense = dyn_cast_if_present<DenseElementsAttr>(adaptor.getValue())) {
    auto values = dense.getValues<Attribute>();
    if (!isa<VectorType>(getType()))
      return values[getPositions()[0]];
    SmallVector<Attribute> components;
    for (int64_t position : getPositions())
      components.push_back(values[position]);
    return DenseElementsAttr::get(cast<ShapedType>(getType()), components);
  }
  if (auto splat = getValue().getDefiningOp<SplatOp>(); splat && !isa<VectorType>(getType()))
    return splat.getValue();
  return {};
}

//===----------------------------------------------------------------------===//
// Pointers
//===----------------------------------------------------------------------===//

OpFoldResult PtrAddOp::fold(FoldAdaptor adaptor) {
  if (auto offset = dyn_cast_if_present<IntegerAttr>(adaptor.getOffset());
      offset && offset.getValue().isZero())
    return getBase();
  return {};
}

/// A pointer takes the parts of a sum of 64 bits one by one, modulo 2^64 as the sum. Each part of
/// 32 bits then stays one: a GPU adds 64 bits in several steps, and an index of 32 bits in none.
/// Single bytes have one offset (msl-merge-byte-offsets).
static LogicalResult splitOffset(Operation *op, OpOperand &base, OpOperand &offset,
                                 PatternRewriter &rewriter) {
  Value sum = offset.get();
  auto type = cast<PtrType>(base.get().getType());
  auto narrow = [](Value part) {
    auto wide = part.getDefiningOp<arith::ExtSIOp>();
    return wide && wide.getIn().getType().isInteger(32) ? wide.getIn() : Value();
  };
  if (!sum.getType().isInteger(64) || getElementBytes(type.getElementType()) == 1)
    return failure();
  if (Value part = narrow(sum)) {
    rewriter.modifyOpInPlace(op, [&] { offset.set(part); });
    return success();
  }
  auto add = sum.getDefiningOp<arith::AddIOp>();
  if (!add)
    return failure();
  Value first = add.getLhs(), last = add.getRhs();
  if (!narrow(last))
    std::swap(first, last);
  if (!narrow(last))
    return failure();
  Value moved = PtrAddOp::create(rewriter, op->getLoc(), base.get(), first);
  rewriter.modifyOpInPlace(op, [&] {
    base.set(moved);
    offset.set(narrow(last));
  });
  return success();
}

LogicalResult PtrAddOp::canonicalize(PtrAddOp op, PatternRewriter &rewriter) {
  return splitOffset(op, op.getBaseMutable(), op.getOffsetMutable(), rewriter);
}

LogicalResult ReadOp::canonicalize(ReadOp op, PatternRewriter &rewriter) {
  // A condition that is known where the read is.
  APInt condition;
  if (op.getCondition() && op.getOther() &&
      matchPattern(op.getCondition(), m_ConstantInt(&condition))) {
    if (condition.isZero()) {
      rewriter.replaceOp(op, op.getOther());
      return success();
    }
    rewriter.modifyOpInPlace(op, [&] {
      op.getConditionMutable().clear();
      op.getOtherMutable().clear();
    });
    return success();
  }
  if (!op.getOffset())
    return failure();
  return splitOffset(op, op.getBaseMutable(), op.getOffsetMutable()[0], rewriter);
}

LogicalResult WriteOp::canonicalize(WriteOp op, PatternRewriter &rewriter) {
  if (!op.getOffset())
    return failure();
  return splitOffset(op, op.getBaseMutable(), op.getOffsetMutable()[0], rewriter);
}

LogicalResult PtrCastOp::verify() {
  if (getBase().getType().getSpace() != getType().getSpace())
    return emitOpError("cannot change the address space");
  return success();
}

OpFoldResult PtrCastOp::fold(FoldAdaptor) {
  return getBase().getType() == getType() ? getBase() : Value();
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// What loads and stores share: as many values as addresses, groups that divide the registers.
static LogicalResult verifyAccess(Operation *op, Type value, Type addresses, Type element,
                                  int32_t width, int32_t maskWidth, int32_t maskRun = 1,
                                  bool unaligned = false) {
  if (isa<VectorType>(value) != isa<VectorType>(addresses) ||
      getNumRegisters(value) != getNumRegisters(addresses))
    return op->emitOpError("needs one address for each register");
  // An atomic of the text form exchanges bits, and may be without a sign.
  bool areBits =
      element && isUnsigned(value) &&
      getElementTypeOrSelf(value).getIntOrFloatBitWidth() == element.getIntOrFloatBitWidth();
  if (element && getElementTypeOrSelf(value) != element && !areBits)
    return op->emitOpError("accesses ")
           << getElementTypeOrSelf(value) << " through a pointer to " << element;
  int64_t registers = getNumRegisters(value);
  if (width < 1 || registers % width || !llvm::isPowerOf2_32(width))
    return op->emitOpError("has width ")
           << width << ", which must be a power of two that divides its " << registers
           << " registers";
  if (maskWidth < 1 || registers % maskWidth || !llvm::isPowerOf2_32(maskWidth))
    return op->emitOpError("has mask_width ")
           << maskWidth << ", which must be a power of two that divides its " << registers
           << " registers";
  if (maskRun < 1 || registers % maskRun || !llvm::isPowerOf2_32(maskRun))
    return op->emitOpError("has mask_run ")
           << maskRun << ", which must be a power of two that divides its " << registers
           << " registers";
  unsigned bits = element ? element.getIntOrFloatBitWidth()
                          : getElementTypeOrSelf(value).getIntOrFloatBitWidth();
  if (unaligned && (width > 4 || bits > 32))
    return op->emitOpError("is unaligned and has more than four numbers of 32 bits");
  if (std::max(bits, 8u) * width > 128)
    return op->emitOpError("accesses more than 16 bytes at once");
  return success();
}

LogicalResult LoadOp::verify() {
  return verifyAccess(*this, getType(), getOffsets().getType(),
                      getBase().getType().getElementType(), getWidth(), getMaskWidth(),
                      getMaskRun(), getUnaligned());
}
LogicalResult StoreOp::verify() {
  if (getBase().getType().getSpace() == AddressSpace::Constant)
    return emitOpError("cannot write to constant memory");
  return verifyAccess(*this, getValue().getType(), getOffsets().getType(),
                      getBase().getType().getElementType(), getWidth(), getMaskWidth(),
                      getMaskRun(), getUnaligned());
}
LogicalResult LoadAddressOp::verify() {
  return verifyAccess(*this, getType(), getAddresses().getType(), {}, getWidth(), getMaskWidth(),
                      getMaskRun(), getUnaligned());
}
LogicalResult StoreAddressOp::verify() {
  return verifyAccess(*this, getValue().getType(), getAddresses().getType(), {}, getWidth(),
                      getMaskWidth(), getMaskRun(), getUnaligned());
}

/// What an atomic's base points to; null without a base.
static Type getPointee(Value base) {
  return base ? cast<PtrType>(base.getType()).getElementType() : Type();
}

LogicalResult AtomicRMWOp::verify() {
  Type element = getElementTypeOrSelf(getType());
  bool fits = true;
  switch (getKind()) {
  case AtomicKind::FAdd:
  case AtomicKind::FMin:
  case AtomicKind::FMax:
    fits = isa<FloatType>(element);
    break;
  case AtomicKind::BFAdd:
  case AtomicKind::BFMin:
  case AtomicKind::BFMax:
    fits = isa<IntegerType>(element) && element.getIntOrFloatBitWidth() == 16;
    break;
  case AtomicKind::DAdd:
  case AtomicKind::DMin:
  case AtomicKind::DMax:
    fits = isa<IntegerType>(element) && element.getIntOrFloatBitWidth() == 64;
    break;
  case AtomicKind::Exchange:
    break;
  default:
    fits = isa<IntegerType>(element);
  }
  if (!fits)
    return emitOpError("has kind ")
           << stringifyAtomicKind(getKind()) << ", which does not fit " << element;
  if (getForm() == AtomicForm::Halves && !use_empty())
    return emitOpError("is done in two halves, so that what it found is not known");
  return verifyAccess(*this, getType(), getOffsets().getType(), getPointee(getBase()), 1, 1);
}
LogicalResult AtomicCASOp::verify() {
  if (getForm() == AtomicForm::Halves)
    return emitOpError("cannot be done in two halves");
  return verifyAccess(*this, getType(), getOffsets().getType(), getPointee(getBase()), 1, 1);
}

int64_t AllocOp::getBytes() {
  return getSlots() * getCount() * getElementBytes(getType().getElementType());
}

LogicalResult AllocOp::verify() {
  if (getType().getSpace() != AddressSpace::Threadgroup)
    return emitOpError("is for threadgroup memory");
  if (int64_t(getCount()) <= 0 || int64_t(getSlots()) <= 0)
    return emitOpError("needs at least one element and one slot");
  return success();
}

LogicalResult SlotOp::verify() {
  if (!getMemory().getDefiningOp<AllocOp>())
    return emitOpError("is of an allocation");
  return success();
}
