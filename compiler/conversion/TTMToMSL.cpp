#include "conversion/TTMToMSL.h"

#include "transforms/Budget.h"
#include "transforms/Erase.h"
#include "transforms/Passes.h"

#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_CONVERTTTMTOMSL
#include "transforms/Passes.h.inc"

//===----------------------------------------------------------------------===//
// The walk
//===----------------------------------------------------------------------===//

/// Address spaces as Triton's other targets number them: any memory, device memory, and memory that
/// a launch only reads. All of them are device memory in Metal; what a thread shares with its group
/// is not a kernel's to point to.
static bool isDeviceSpace(int space) { return space == 0 || space == 1 || space == 4; }

/// Says of a type that Metal does not have what to use instead.
static LogicalResult refuseType(Operation *op, Type type) {
  Type element = getElementTypeOrSelf(type);
  if (auto pointer = dyn_cast<tt::PtrType>(element)) {
    if (!isDeviceSpace(pointer.getAddressSpace()))
      return op->emitOpError("uses ")
             << pointer << ", which points into address space " << pointer.getAddressSpace()
             << "; a kernel's pointers go to device memory, which is 1 (or "
                "0, any memory, or 4, memory that is only read)";
    element = pointer.getPointeeType();
  }
  InFlightDiagnostic diagnostic = op->emitOpError("uses ")
                                  << element << ", which Metal does not have: ";
  if (element.isF64())
    return diagnostic << "use float32";
  if (auto floating = dyn_cast<FloatType>(element); floating && floating.getWidth() <= 8)
    return diagnostic << "convert to float16 before the kernel";
  return diagnostic
         << "its numbers are integers of 1, 8, 16, 32 and 64 bits, float16, bfloat16 and float32";
}

LogicalResult Lowering::lower(Operation *op) {
  loc = op->getLoc();
  position = positions.lookup(op);
  for (Type type : llvm::concat<const Type>(op->getOperandTypes(), op->getResultTypes()))
    if (!isa<ttm::TileType>(type) && !convertType(type))
      return refuseType(op, type);
  for (auto family : {&Lowering::lowerElementwise, &Lowering::lowerShape, &Lowering::lowerMemory,
                      &Lowering::lowerProgram, &Lowering::lowerReduce, &Lowering::lowerTiles,
                      &Lowering::lowerControlFlow})
    if (Handled handled = (this->*family)(op))
      return *handled;
  return op->emitOpError("cannot be compiled for Metal yet");
}

LogicalResult Lowering::lowerBlock(Block *block) {
  for (Operation &op : *block)
    if (failed(lower(&op)))
      return failure();
  return success();
}

LogicalResult Lowering::lowerArguments(msl::KernelOp kernel) {
  OpBuilder::InsertionGuard guard(builder);
  for (auto [index, argument] : llvm::enumerate(func.getArguments())) {
    map(argument, kernel.getBody().getArgument(index));
    // The name that the source gave to the argument travels in its location.
    if (auto name = argument.getLoc()->findInstanceOf<NameLoc>())
      kernel.setArgAttr(index, msl::kNameAttr, name.getName());
    if (Attribute memory = func.getArgAttr(index, "tt.memory"))
      kernel.setArgAttr(index, msl::kMemoryAttr, memory);
  }
  return success();
}

void Lowering::testAlignment() {
  Value bits;
  int64_t multiple = 1;
  for (auto [index, argument] : llvm::enumerate(func.getArguments())) {
    auto tested = func.getArgAttrOfType<IntegerAttr>(index, tt::testedDivisibilityAttrName);
    if (!tested || !isa<tt::PtrType>(argument.getType()))
      continue;
    multiple = std::max(multiple, tested.getInt());
    Value address = msl::PtrToIntOp::create(builder, loc, get(argument));
    bits = bits ? arith::OrIOp::create(builder, loc, bits, address) : address;
  }
  if (!bits)
    return;
  Type type = bits.getType();
  bits = arith::AndIOp::create(builder, loc, bits, constant(type, multiple - 1));
  alignmentTest = arith::CmpIOp::create(builder, named("aligned"), arith::CmpIPredicate::eq, bits,
                                        constant(type, 0));
  topEnd = alignmentTest.getDefiningOp();
}

void Lowering::collectTileLifetimes() {
  unsigned next = 0;
  func.walk<WalkOrder::PreOrder>([&](Operation *op) { positions[op] = next++; });
  func.walk([&](ttm::AllocTileOp alloc) {
    // What a loop around a use, but not around the allocation, does comes between two uses.
    TileLifetime lifetime{~0u, 0, alloc.getTile().getType().getBytes()};
    for (Operation *user : alloc->getUsers()) {
      Operation *outermost = alloc->getBlock()->findAncestorOpInBlock(*user);
      lifetime.first = std::min(lifetime.first, positions[outermost]);
      unsigned last = 0;
      outermost->walk([&](Operation *op) { last = std::max(last, positions[op]); });
      lifetime.last = std::max(lifetime.last, last);
    }
    tileLifetimes.push_back(lifetime);
  });
}

int64_t Lowering::freeThreadgroupBytes() {
  int64_t live = 0;
  for (const TileLifetime &tile : tileLifetimes)
    if (tile.first <= position && position <= tile.last)
      live += tile.bytes;
  return Budget::of(func).getExchangeBytes(live);
}

LogicalResult Lowering::run() {
  if (!func.getResultTypes().empty())
    return func.emitOpError("returns a value; a kernel cannot, let it store what it computes");
  if (!func.getBody().hasOneBlock())
    return func.emitOpError("has branches that are not structured");
  numSimdgroups = ttm::getNumSimdgroups(func);
  assert(numSimdgroups && "ttm modules say how many SIMD-groups they have");
  collectTileLifetimes();

  SmallVector<Type> argumentTypes;
  SmallVector<Location> argumentLocs;
  for (BlockArgument argument : func.getArguments()) {
    Type type = convertType(argument.getType());
    if (!type)
      return refuseType(func, argument.getType());
    if (isa<VectorType>(type))
      return func.emitOpError("has an argument of type ")
             << argument.getType() << ", which a Metal kernel cannot take";
    argumentTypes.push_back(type);
    argumentLocs.push_back(argument.getLoc());
  }
  builder.setInsertionPoint(func);
  auto kernel = msl::KernelOp::create(
      builder, loc, func.getName(), builder.getFunctionType(argumentTypes, {}), 32 * numSimdgroups);
  Block *entry = builder.createBlock(&kernel.getBody(), {}, argumentTypes, argumentLocs);
  if (failed(lowerArguments(kernel)))
    return failure();
  builder.setInsertionPointToStart(entry);
  lane = msl::LaneOp::create(builder, loc);
  simdgroup = msl::SimdgroupOp::create(builder, loc);
  topEnd = simdgroup.getDefiningOp();
  testAlignment();
  return lowerBlock(&func.getBody().front());
}

//===----------------------------------------------------------------------===//
// Types and values
//===----------------------------------------------------------------------===//

Type Lowering::convertType(Type type) {
  if (auto tensor = dyn_cast<RankedTensorType>(type)) {
    Type element = convertType(tensor.getElementType());
    std::optional<LinearLayout> layout = ttm::getLayout(tensor);
    if (!element || !layout)
      return {};
    // Pointers that are carried around are addresses in bytes.
    if (isa<msl::PtrType>(element))
      element = builder.getI64Type();
    return registersOf(*layout, element);
  }
  if (auto pointer = dyn_cast<tt::PtrType>(type)) {
    if (!isDeviceSpace(pointer.getAddressSpace()))
      return {};
    Type pointee = convertType(pointer.getPointeeType());
    if (isa_and_present<msl::PtrType>(pointee))
      pointee = builder.getI64Type();
    return pointee ? msl::PtrType::get(pointee, msl::AddressSpace::Device) : Type();
  }
  if (type.isF16() || type.isBF16() || type.isF32())
    return type;
  if (type.isIndex())
    return builder.getI32Type();
  if (auto integer = dyn_cast<IntegerType>(type))
    if (llvm::is_contained({1u, 8u, 16u, 32u, 64u}, integer.getWidth()))
      return type;
  return {};
}

VectorType Lowering::registersOf(const LinearLayout &layout, Type elementType) {
  return VectorType::get(layout.getNumRegisters(), elementType);
}

LinearLayout Lowering::layoutOf(Value value) { return *ttm::getLayout(value); }

Value Lowering::constant(Type type, int64_t value) {
  Type element = getElementTypeOrSelf(type);
  TypedAttr attribute = isa<FloatType>(element) ? TypedAttr(FloatAttr::get(element, double(value)))
                                                : TypedAttr(IntegerAttr::get(element, value));
  if (auto vector = dyn_cast<VectorType>(type))
    attribute = DenseElementsAttr::get(vector, Attribute(attribute));
  return arith::ConstantOp::create(builder, loc, type, attribute);
}

Value Lowering::zero(Type type) { return constant(type, 0); }

Value Lowering::splat(Value scalar, int64_t count) {
  return msl::SplatOp::create(builder, loc, VectorType::get(count, scalar.getType()), scalar);
}

Value Lowering::extractScalar(Value vector) {
  if (!isa<VectorType>(vector.getType()))
    return vector;
  if (auto splatOp = vector.getDefiningOp<msl::SplatOp>())
    return splatOp.getValue();
  if (cast<VectorType>(vector.getType()).getNumElements() > 1)
    vector = permute(vector, {});
  Value scalar = vector::ExtractOp::create(builder, loc, vector, ArrayRef<int64_t>{0});
  return msl::UniformOp::create(builder, loc, scalar);
}

Value Lowering::permute(Value vector, ArrayRef<int64_t> bases, int64_t offset) {
  auto type = cast<VectorType>(vector.getType());
  if (auto splatOp = vector.getDefiningOp<msl::SplatOp>())
    return splat(splatOp.getValue(), int64_t(1) << bases.size());
  bool identity = offset == 0 && int64_t(1) << bases.size() == type.getNumElements();
  for (auto [bit, base] : llvm::enumerate(bases))
    identity &= base == int64_t(1) << bit;
  if (identity)
    return vector;
  auto resultType = VectorType::get(int64_t(1) << bases.size(), type.getElementType());
  return builder.createOrFold<msl::PermuteRegistersOp>(loc, resultType, vector, bases, offset);
}

Value Lowering::castOffsets(Value offsets, Type elementType) {
  if (getElementTypeOrSelf(offsets.getType()) == elementType)
    return offsets;
  Type type = elementType;
  if (auto vector = dyn_cast<VectorType>(offsets.getType()))
    type = VectorType::get(vector.getShape(), elementType);
  unsigned from = getElementTypeOrSelf(offsets.getType()).getIntOrFloatBitWidth();
  if (from < elementType.getIntOrFloatBitWidth())
    return arith::ExtSIOp::create(builder, loc, type, offsets);
  return arith::TruncIOp::create(builder, loc, type, offsets);
}

Address Lowering::addressOf(Value pointer) {
  if (auto found = addresses.find(pointer); found != addresses.end())
    return found->second;
  Value converted = get(pointer);
  if (isa<msl::PtrType>(converted.getType()))
    return {converted, constant(builder.getI32Type(), 0)};
  return {Value(), converted};
}

Value Lowering::byteAddresses(const Address &address, Type pointee, Type converted) {
  if (!address.base)
    return address.offsets;
  Value base = msl::PtrToIntOp::create(builder, loc, address.base);
  Value offsets = castOffsets(address.offsets, builder.getI64Type());
  int64_t bytes = getStorageBytes(pointee);
  if (bytes != 1)
    offsets = arith::MulIOp::create(builder, loc, offsets, constant(offsets.getType(), bytes));
  if (auto vector = dyn_cast<VectorType>(converted))
    base = splat(base, vector.getNumElements());
  return arith::AddIOp::create(builder, loc, base, offsets);
}

int64_t getStorageBytes(Type elementType) {
  if (isa<tt::PtrType, msl::PtrType>(elementType))
    return 8;
  return std::max<int64_t>(1, elementType.getIntOrFloatBitWidth() / 8);
}

//===----------------------------------------------------------------------===//
// Thread positions
//===----------------------------------------------------------------------===//

Location Lowering::named(const Twine &name) {
  return NameLoc::get(builder.getStringAttr(name), UnknownLoc::get(builder.getContext()));
}

std::string Lowering::nameOf(Location location, StringRef otherwise) {
  if (auto call = dyn_cast<CallSiteLoc>(location))
    return nameOf(call.getCallee(), otherwise);
  if (auto name = dyn_cast<NameLoc>(location))
    if (llvm::all_of(name.getName().getValue(),
                     [](char c) { return llvm::isAlnum(c) || c == '_'; }))
      return name.getName().str();
  return otherwise.str();
}

Value Lowering::threadSum(ArrayRef<uint32_t> laneValues, ArrayRef<uint32_t> simdgroupValues,
                          const Twine &name) {
  auto &cached = threadSums[{laneValues.vec(), simdgroupValues.vec()}];
  if (cached)
    return cached;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointAfter(topEnd);
  // Positions of the thread are no value of the source: they take no name from it.
  llvm::SaveAndRestore saved(loc, Location(UnknownLoc::get(builder.getContext())));
  Type i32 = builder.getI32Type();
  Value sum;
  auto addTerms = [&](Value position, ArrayRef<uint32_t> values) {
    for (unsigned bit = 0; bit < values.size();) {
      if (!values[bit]) {
        ++bit;
        continue;
      }
      // Neighbouring bits whose values double are one field of the position times the first value.
      unsigned end = bit + 1;
      while (end < values.size() && values[end] == values[end - 1] * 2)
        ++end;
      Value term = position;
      if (bit > 0)
        term = arith::ShRUIOp::create(builder, loc, term, constant(i32, bit));
      if (end < values.size())
        term = arith::AndIOp::create(builder, loc, term, constant(i32, (1 << (end - bit)) - 1));
      if (values[bit] != 1)
        term = arith::MulIOp::create(builder, loc, term, constant(i32, values[bit]));
      sum = sum ? arith::AddIOp::create(builder, loc, sum, term).getResult() : term;
      bit = end;
    }
  };
  addTerms(simdgroup, simdgroupValues);
  addTerms(lane, laneValues);
  if (!sum)
    sum = constant(i32, 0);
  if (sum != lane && sum != simdgroup) {
    topEnd = sum.getDefiningOp();
    if (!name.isTriviallyEmpty())
      topEnd->setLoc(named(name));
  }
  return cached = sum;
}

Value Lowering::threadBitsAre(uint32_t laneMask, uint32_t laneBits, uint32_t simdgroupMask,
                              uint32_t simdgroupBits) {
  Type i32 = builder.getI32Type();
  Value condition;
  auto test = [&](Value position, uint32_t mask, uint32_t wanted, uint32_t all) {
    if (!(mask &= all))
      return;
    Value bits =
        mask == all
            ? position
            : arith::AndIOp::create(builder, loc, position, constant(i32, mask)).getResult();
    Value equal =
        arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, bits, constant(i32, wanted));
    condition =
        condition ? arith::AndIOp::create(builder, loc, condition, equal).getResult() : equal;
  };
  test(lane, laneMask, laneBits, 31);
  test(simdgroup, simdgroupMask, simdgroupBits, numSimdgroups - 1);
  return condition;
}

Value Lowering::registerIndices(const LinearLayout &layout,
                                llvm::function_ref<uint32_t(uint32_t)> field,
                                llvm::function_ref<Value(Value)> general, const Twine &name) {
  auto denseOf = [&](llvm::function_ref<uint32_t(uint32_t)> value) {
    SmallVector<int32_t> values;
    for (uint32_t index = 0; index < layout.getNumRegisters(); ++index)
      values.push_back(value(layout.apply(index, 0, 0)));
    auto type = VectorType::get(values.size(), builder.getI32Type());
    return arith::ConstantOp::create(builder, loc,
                                     DenseElementsAttr::get(type, ArrayRef<int32_t>(values)))
        .getResult();
  };
  auto through = [&](ArrayRef<uint32_t> bases, llvm::function_ref<uint32_t(uint32_t)> value) {
    return llvm::map_to_vector(bases, [&](uint32_t base) { return value(base); });
  };
  auto identity = [](uint32_t flat) { return flat; };
  int64_t count = layout.getNumRegisters();
  if (layout.isPermutation()) {
    Value thread = threadSum(through(layout.getLaneBases(), field),
                             through(layout.getSimdgroupBases(), field), name);
    if (count == 1)
      return splat(thread, 1);
    if (matchPattern(thread, m_Zero()))
      return denseOf(field);
    Value registers = denseOf(field);
    return arith::AddIOp::create(builder, loc, splat(thread, count), registers);
  }
  // Bases share bits: the flat index is an exclusive or, one term for each bit of the thread's
  // position.
  Value flat = denseOf(identity);
  auto addBits = [&](ArrayRef<uint32_t> bases, bool isLane) {
    for (auto [bit, base] : llvm::enumerate(bases)) {
      if (!base)
        continue;
      SmallVector<uint32_t> laneValues(5, 0), simdgroupValues(layout.getSimdgroupBases().size(), 0);
      (isLane ? laneValues : simdgroupValues)[bit] = base;
      flat = arith::XOrIOp::create(builder, loc,
                                   splat(threadSum(laneValues, simdgroupValues), count), flat);
    }
  };
  addBits(layout.getLaneBases(), true);
  addBits(layout.getSimdgroupBases(), false);
  return general(flat);
}

Value Lowering::coordinates(const LinearLayout &layout, unsigned dim) {
  unsigned shift = layout.dimShift(dim);
  uint32_t mask = layout.getShape()[dim] - 1;
  return registerIndices(
      layout, [&](uint32_t flat) { return flat >> shift & mask; },
      [&](Value flat) -> Value {
        if (shift)
          flat = arith::ShRUIOp::create(builder, loc, flat, constant(flat.getType(), shift));
        if (dim > 0)
          flat = arith::AndIOp::create(builder, loc, flat, constant(flat.getType(), mask));
        return flat;
      },
      "thread_" + nameOf(loc, "index"));
}

Value Lowering::paddedIndices(const LinearLayout &layout, unsigned shift, uint32_t pad,
                              const Twine &name) {
  return registerIndices(
      layout, [&](uint32_t flat) { return flat + (flat >> shift) * pad; },
      [&](Value flat) -> Value {
        if (!pad)
          return flat;
        Value rows = arith::ShRUIOp::create(builder, loc, flat, constant(flat.getType(), shift));
        rows = arith::MulIOp::create(builder, loc, rows, constant(flat.getType(), pad));
        return arith::AddIOp::create(builder, loc, flat, rows);
      },
      name);
}

//===----------------------------------------------------------------------===//
// Program
//===----------------------------------------------------------------------===//

Lowering::Handled Lowering::lowerProgram(Operation *op) {
  if (auto id = dyn_cast<tt::GetProgramIdOp>(op)) {
    map(id, msl::ProgramIdOp::create(builder, loc, id.getAxisAsInt()));
    return success();
  }
  if (auto count = dyn_cast<tt::GetNumProgramsOp>(op)) {
    map(count, msl::NumProgramsOp::create(builder, loc, count.getAxisAsInt()));
    return success();
  }
  if (isa<tt::ReturnOp>(op)) {
    msl::ReturnOp::create(builder, loc);
    return success();
  }
  if (isa<ttg::BarrierOp>(op)) {
    msl::BarrierOp::create(builder, loc).setDevice(true);
    return success();
  }
  // What to do instead, for what the language has and this compiler does not.
  auto refuse = [&](StringRef instead) {
    return Handled(op->emitOpError("cannot be compiled for Metal: ") << instead);
  };
  if (isa<tt::ScanOp>(op))
    return refuse("there are no scans yet; reduce over a mask, or scan on the host");
  if (isa<tt::GatherOp>(op))
    return refuse("there is no gather between tiles yet; store the tile and load through pointers");
  if (isa<tt::HistogramOp>(op))
    return refuse("there is no histogram yet; use tl.atomic_add");
  if (isa<tt::DotScaledOp>(op))
    return refuse("there are no scaled dots; scale the operands and use tl.dot");
  if (isa<tt::DotOp>(op))
    return refuse("only dots of two-dimensional tiles, of 16-bit or 32-bit floats or of int8, are");
  if (isa<tt::JoinOp, tt::SplitOp, tt::CatOp>(op))
    return refuse("there is no join, split or cat yet; load and store the parts apart");
  if (isa<tt::MapElementwiseOp>(op))
    return refuse("there is no map_elementwise yet; write the operations on the tile itself");
  if (isa<tt::PrintOp>(op))
    return refuse("a Metal kernel cannot print; store the values instead");
  if (isa<tt::AssertOp>(op))
    return refuse("there are no device assertions yet; remove it or compile without debug");
  if (isa<tt::ElementwiseInlineAsmOp>(op))
    return refuse("inline assembler belongs to another machine");
  if (auto external = dyn_cast<tt::ExternElementwiseOp>(op))
    return Handled(op->emitOpError("calls '")
                   << external.getSymbol()
                   << "' of a device library that Metal does not have: use tl.math");
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {
struct ConvertTTMToMSLPass : impl::ConvertTTMToMSLBase<ConvertTTMToMSLPass> {
  void runOnOperation() override {
    SmallVector<tt::FuncOp> functions(getOperation().getOps<tt::FuncOp>());
    for (tt::FuncOp function : functions) {
      if (failed(Lowering(function).run()) || failed(eraseUnread(function)))
        return signalPassFailure();
    }
  }
};
} // namespace

} // namespace triton_metal
