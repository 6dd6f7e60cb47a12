// Block pointers and tensor descriptors become addresses and masks: see Passes.td.

#include "dialect/tt/TT.h"
#include "dialect/ttm/LocationNames.h"
#include "transforms/BlockAccess.h"
#include "transforms/BlockPlaces.h"
#include "transforms/Constants.h"
#include "transforms/Passes.h"
#include "transforms/ValueParts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_TTREWRITEDESCRIPTORS
#include "transforms/Passes.h.inc"

namespace {

bool isRewritten(Type type) { return isa<tt::TensorDescType>(type) || tt::getBlockOf(type); }

/// The parts of a block pointer: base, sizes, strides, offsets.
struct BlockPointer {
  BlockPointer(ArrayRef<Value> parts) : rank((parts.size() - 1) / 3), parts(parts) {}
  Value base() const { return parts[0]; }
  Value size(unsigned dim) const { return parts[1 + dim]; }
  Value stride(unsigned dim) const { return parts[1 + rank + dim]; }
  Value offset(unsigned dim) const { return parts[1 + 2 * rank + dim]; }
  unsigned rank;
  ArrayRef<Value> parts;
};

/// The parts of a tensor descriptor: base, sizes, strides, and two flags.
struct Descriptor {
  Descriptor(ArrayRef<Value> parts) : rank((parts.size() - 3) / 2), parts(parts) {}
  Value base() const { return parts[0]; }
  Value size(unsigned dim) const { return parts[1 + dim]; }
  Value stride(unsigned dim) const { return parts[1 + rank + dim]; }
  Value padsWithNan() const { return parts[1 + 2 * rank]; }
  Value roundsToTF32() const { return parts[2 + 2 * rank]; }
  unsigned rank;
  ArrayRef<Value> parts;
};

/// An access to a block: its addresses, and the places of its tensor that it touches.
struct BlockOfTensor : BlockAddresses {
  DenseI32ArrayAttr places;

  /// Marks the access, if places of its tensor do not share memory.
  void mark(Operation *access) const {
    if (places)
      access->setAttr(tt::placesAttrName, places);
  }
};

class Rewriter : public ValueParts {
public:
  explicit Rewriter(MLIRContext *context) : builder(context) {}

private:
  SmallVector<PartType> partsOf(Type type) override;
  void enter(tt::FuncOp function) override;
  LogicalResult rewrite(Operation *op) override;

  void makeBlockPointer(tt::MakeTensorPtrOp op);
  void advance(tt::AdvanceOp op);
  void makeDescriptor(tt::MakeTensorDescOp op);

  template <typename Access> BlockOfTensor addressesOf(Access op, RankedTensorType tile);
  BlockOfTensor addressesOf(Value desc, ValueRange offsets);
  BlockOfTensor addressesOf(Value base, ArrayRef<BlockDim> dims, RankedTensorType tile);
  template <typename Access> BlockOfTensor rowsOf(Access op, Type tile);
  Value paddingOf(Value desc, RankedTensorType tile);
  Value load(Operation *op, Value desc, const BlockOfTensor &at, RankedTensorType tile);
  Value reshape(Value value, Type type);
  Value roundToTF32(Value value, Value flag);

  Value widen(Value number) {
    Type i64 = builder.getI64Type();
    return number.getType() == i64 ? number
                                   : arith::ExtSIOp::create(builder, loc, i64, number).getResult();
  }
  Value constant(Type type, const APInt &number) {
    return makeConstantLike(builder, loc, type, number);
  }
  void replace(Operation *op, Value by) {
    op->getResult(0).replaceAllUsesWith(by);
    eraseLater(op);
  }

  OpBuilder builder;
  Location loc = builder.getUnknownLoc();
  BlockPlaces places;
};

SmallVector<PartType> Rewriter::partsOf(Type type) {
  Type i1 = builder.getI1Type(), i32 = builder.getI32Type(), i64 = builder.getI64Type();
  SmallVector<PartType> parts;
  auto forEachDim = [&](Type part, int64_t rank, StringRef name, int32_t divisibility = 1) {
    for (int64_t dim = 0; dim < rank; ++dim)
      parts.push_back({part, ("_" + name + "_" + Twine(dim)).str(), divisibility});
  };
  if (auto desc = dyn_cast<tt::TensorDescType>(type)) {
    // What a launch promises of a descriptor's base and strides, in bytes.
    constexpr int32_t alignment = 16;
    Type element = desc.getTileType().getElementType();
    int32_t bytes = std::max<int32_t>(int32_t(element.getIntOrFloatBitWidth()) / 8, 1);
    parts.push_back({tt::PtrType::get(element), "", alignment});
    forEachDim(i32, desc.getRank(), "size");
    forEachDim(i64, desc.getRank() - 1, "stride", alignment / bytes);
    parts.push_back({i64, "_stride_" + std::to_string(desc.getRank() - 1)});
    parts.push_back({i1, "_pads_with_nan"});
    parts.push_back({i1, "_rounds_to_tf32"});
  } else if (RankedTensorType block = tt::getBlockOf(type)) {
    parts.push_back({tt::getBlockBaseType(type), ""});
    forEachDim(i64, block.getRank(), "size");
    forEachDim(i64, block.getRank(), "stride");
    forEachDim(i64, block.getRank(), "offset");
  }
  return parts;
}

/// The types of a descriptor's sizes and strides.
SmallVector<Type> getShapeTypes(tt::TensorDescType desc) {
  SmallVector<Type> types(desc.getRank(), IntegerType::get(desc.getContext(), 32));
  types.append(desc.getRank(), IntegerType::get(desc.getContext(), 64));
  return types;
}

LogicalResult verifyShapesBehind(tt::FuncOp function) {
  ArrayRef<Type> types = function.getArgumentTypes();
  for (auto [index, type] : llvm::enumerate(types)) {
    if (!tt::hasShapeBehind(function, unsigned(index)))
      continue;
    auto desc = dyn_cast<tt::TensorDescType>(type);
    if (!desc)
      return function.emitError() << "argument " << index << " has " << tt::shapeFollowsAttrName
                                  << " and is no tensor descriptor";
    SmallVector<Type> wanted = getShapeTypes(desc);
    if (types.drop_front(index + 1).take_front(wanted.size()) != ArrayRef<Type>(wanted))
      return function.emitError() << "argument " << index << " has " << tt::shapeFollowsAttrName
                                  << ", so " << desc.getRank() << " sizes (i32) and "
                                  << desc.getRank() << " strides (i64) must follow it";
  }
  return success();
}

/// The last dimension of a descriptor that a launch passes is contiguous. The launch may know more.
void Rewriter::enter(tt::FuncOp function) {
  builder.setInsertionPointToStart(&function.getBody().front());
  // The block has the parts behind each argument, and the function's type has not.
  Block &entry = function.getBody().front();
  unsigned place = 0;
  for (auto [index, type] : llvm::enumerate(function.getArgumentTypes())) {
    Value argument = entry.getArgument(place);
    place += 1 + unsigned(partsOf(type).size());
    auto desc = dyn_cast<tt::TensorDescType>(type);
    if (!desc)
      continue;
    SmallVector<Value> parts(get(argument));
    auto known = [&](size_t part, TypedAttr value) {
      parts[part] = arith::ConstantOp::create(builder, unnamed(argument.getLoc()), value);
    };
    size_t lastStride = 2 * desc.getRank();
    // What is passed twice is one value, of which both places may know something.
    SmallVector<PartType> partTypes = partsOf(type);
    if (tt::hasShapeBehind(function, unsigned(index)))
      for (size_t part = 0; part < lastStride; ++part) {
        unsigned behind = unsigned(index + 1 + part);
        parts[1 + part] = entry.getArgument(place + unsigned(part));
        auto divisor = function.getArgAttrOfType<IntegerAttr>(behind, tt::divisibilityAttrName);
        int32_t divisibility = partTypes[1 + part].divisibility;
        if (divisibility > (divisor ? divisor.getInt() : 1))
          function.setArgAttr(behind, tt::divisibilityAttrName,
                              builder.getI32IntegerAttr(divisibility));
      }
    known(lastStride, builder.getI64IntegerAttr(1));
    auto apart = function.getArgAttrOfType<BoolAttr>(unsigned(index), tt::nonOverlappingAttrName);
    if (apart && apart.getValue())
      places.setNonOverlapping(parts.front());
    size_t part = lastStride;
    for (StringRef name : {tt::padsWithNanAttrName, tt::roundsToTF32AttrName}) {
      ++part;
      if (auto flag = function.getArgAttrOfType<BoolAttr>(unsigned(index), name))
        known(part, flag);
    }
    set(argument, parts);
  }
}

//===----------------------------------------------------------------------===//
// What makes them
//===----------------------------------------------------------------------===//

void Rewriter::makeBlockPointer(tt::MakeTensorPtrOp op) {
  SmallVector<Value> parts{op.getBase()};
  llvm::append_range(parts, op.getShape());
  llvm::append_range(parts, op.getStrides());
  for (Value offset : op.getOffsets())
    parts.push_back(widen(offset));
  set(op.getResult(), parts);
  eraseLater(op);
}

void Rewriter::advance(tt::AdvanceOp op) {
  SmallVector<Value> parts(get(op.getPtr()));
  size_t first = parts.size() - op.getOffsets().size();
  for (auto [dim, by] : llvm::enumerate(op.getOffsets()))
    if (!matchPattern(by, m_Zero()))
      parts[first + dim] = arith::AddIOp::create(builder, loc, parts[first + dim], widen(by));
  set(op.getResult(), parts);
  eraseLater(op);
}

void Rewriter::makeDescriptor(tt::MakeTensorDescOp op) {
  SmallVector<Value> parts{op.getBase()};
  llvm::append_range(parts, op.getShape());
  llvm::append_range(parts, op.getStrides());
  bool padsWithNan = op.getPadding() == uint32_t(tt::padding::kNan);
  bool roundsToTF32 = op->hasAttr(tt::roundsToTF32AttrName);
  for (bool flag : {padsWithNan, roundsToTF32})
    parts.push_back(arith::ConstantOp::create(builder, loc, builder.getBoolAttr(flag)));
  set(op.getResult(), parts);
  eraseLater(op);
}

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

BlockOfTensor Rewriter::addressesOf(Value base, ArrayRef<BlockDim> dims, RankedTensorType tile) {
  return {makeBlockAddresses(builder, loc, base, dims, tile), places.get(base, dims)};
}

/// The addresses of a load or store through a block pointer.
template <typename Access> BlockOfTensor Rewriter::addressesOf(Access op, RankedTensorType tile) {
  BlockPointer block(get(op.getPtr()));
  DenseI32ArrayAttr checked = op.getBoundaryCheckAttr();
  SmallVector<BlockDim> dims;
  for (unsigned dim = 0; dim < block.rank; ++dim) {
    bool isChecked = checked && llvm::is_contained(checked.asArrayRef(), int32_t(dim));
    dims.push_back(
        {isChecked ? block.size(dim) : Value(), block.stride(dim), block.offset(dim), {}});
  }
  return addressesOf(block.base(), dims, tile);
}

/// The addresses of a descriptor's block.
BlockOfTensor Rewriter::addressesOf(Value value, ValueRange offsets) {
  Descriptor desc(get(value));
  SmallVector<BlockDim> dims;
  for (unsigned dim = 0; dim < desc.rank; ++dim)
    dims.push_back({desc.size(dim), desc.stride(dim), offsets[dim], {}});
  auto type = cast<tt::TensorDescType>(value.getType());
  return addressesOf(desc.base(), dims, type.getTileType());
}

/// The addresses of a gather or a scatter.
template <typename Access> BlockOfTensor Rewriter::rowsOf(Access op, Type tile) {
  Descriptor desc(get(op.getDesc()));
  BlockDim dims[] = {{desc.size(0), desc.stride(0), {}, op.getXOffsets()},
                     {desc.size(1), desc.stride(1), op.getYOffset(), {}}};
  return addressesOf(desc.base(), dims, cast<RankedTensorType>(tile));
}

/// What a load finds outside of the tensor.
Value Rewriter::paddingOf(Value desc, RankedTensorType tile) {
  Value zeros = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(tile));
  auto element = dyn_cast<FloatType>(tile.getElementType());
  Value flag = Descriptor(get(desc)).padsWithNan();
  if (!element || matchPattern(flag, m_Zero()))
    return zeros;
  auto nan = FloatAttr::get(element, APFloat::getQNaN(element.getFloatSemantics()));
  Value nans = arith::ConstantOp::create(builder, loc, DenseElementsAttr::get(tile, nan));
  if (matchPattern(flag, m_One()))
    return nans;
  return arith::SelectOp::create(builder, loc, flag, nans, zeros);
}

Value Rewriter::load(Operation *op, Value desc, const BlockOfTensor &at, RankedTensorType tile) {
  auto load = tt::LoadOp::create(builder, loc, at.pointers, at.mask, paddingOf(desc, tile));
  at.mark(load);
  if (auto whole = dyn_cast<tt::DescriptorLoadOp>(op)) {
    load.setCacheModifier(whole.getCacheModifier());
    load.setEvictionPolicy(whole.getEvictionPolicy());
    load.setCachePolicyAttr(whole.getCachePolicyAttr());
  }
  return roundToTF32(load, Descriptor(get(desc)).roundsToTF32());
}

/// Rounds floats of 32 bits to the 10 digits of tf32, to the nearest and to even, where the flag
/// is true. Infinities and NaNs stay.
Value Rewriter::roundToTF32(Value value, Value flag) {
  auto tile = cast<RankedTensorType>(value.getType());
  if (!tile.getElementType().isF32() || matchPattern(flag, m_Zero()))
    return value;
  Type i32 = builder.getI32Type();
  RankedTensorType bitsType = tile.clone(i32);
  auto number = [&](int64_t bits) {
    return constant(bitsType, APInt(32, uint64_t(bits), false, true));
  };
  Value bits = tt::BitcastOp::create(builder, loc, bitsType, value);
  Value exponent = arith::AndIOp::create(builder, loc, bits, number(0x7f800000));
  Value isFinite =
      arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, exponent, number(0x7f800000));
  Value all = tt::SplatOp::create(builder, loc, tile.clone(builder.getI1Type()), flag);
  Value rounds = arith::AndIOp::create(builder, loc, isFinite, all);
  Value odd = arith::AndIOp::create(
      builder, loc, arith::ShRUIOp::create(builder, loc, bits, number(13)), number(1));
  Value half = arith::AddIOp::create(builder, loc, odd, number(0xfff));
  Value sum = arith::AddIOp::create(builder, loc, bits, half);
  Value rounded = arith::AndIOp::create(builder, loc, sum, number(0xffffe000));
  Value chosen = arith::SelectOp::create(builder, loc, rounds, rounded, bits);
  return tt::BitcastOp::create(builder, loc, tile, chosen);
}

/// Adds or removes dimensions of size 1.
Value Rewriter::reshape(Value value, Type type) {
  if (value.getType() == type)
    return value;
  return tt::ReshapeOp::create(builder, loc, type, value);
}

/// The atomic update that a reduction into a descriptor's tensor is.
tt::RMWOp updateOf(tt::DescriptorReduceKind kind, Type element) {
  bool isFloat = isa<FloatType>(element), isUnsigned = element.isUnsignedInteger();
  switch (kind) {
  case tt::DescriptorReduceKind::ADD:
    return isFloat ? tt::RMWOp::FADD : tt::RMWOp::ADD;
  case tt::DescriptorReduceKind::MIN:
    return isUnsigned ? tt::RMWOp::UMIN : tt::RMWOp::MIN;
  case tt::DescriptorReduceKind::MAX:
    return isUnsigned ? tt::RMWOp::UMAX : tt::RMWOp::MAX;
  case tt::DescriptorReduceKind::AND:
    return tt::RMWOp::AND;
  case tt::DescriptorReduceKind::OR:
    return tt::RMWOp::OR;
  case tt::DescriptorReduceKind::XOR:
    return tt::RMWOp::XOR;
  }
  llvm_unreachable("a kind of reduction");
}

LogicalResult Rewriter::rewrite(Operation *op) {
  builder.setInsertionPoint(op);
  loc = op->getLoc();
  if (auto make = dyn_cast<tt::MakeTensorPtrOp>(op)) {
    makeBlockPointer(make);
  } else if (auto moved = dyn_cast<tt::AdvanceOp>(op)) {
    advance(moved);
  } else if (auto make = dyn_cast<tt::MakeTensorDescOp>(op)) {
    makeDescriptor(make);
  } else if (auto read = dyn_cast<tt::LoadOp>(op)) {
    auto tile = cast<RankedTensorType>(read.getType());
    BlockOfTensor at = addressesOf(read, tile);
    Value other;
    if (read.getPadding() && at.mask) {
      TypedAttr number = builder.getZeroAttr(tile.getElementType());
      if (*read.getPadding() == uint32_t(tt::padding::kNan)) {
        auto element = cast<FloatType>(tile.getElementType());
        number = FloatAttr::get(element, APFloat::getQNaN(element.getFloatSemantics()));
      }
      other = arith::ConstantOp::create(builder, loc, DenseElementsAttr::get(tile, number));
    }
    auto load =
        tt::LoadOp::create(builder, loc, tile, at.pointers, at.mask, other, read.getCacheModifier(),
                           read.getEvictionPolicy(), read.getCachePolicyAttr(),
                           read.getIsVolatile(), DenseI32ArrayAttr(), IntegerAttr());
    at.mark(load);
    replace(op, load);
  } else if (auto write = dyn_cast<tt::StoreOp>(op)) {
    BlockOfTensor at = addressesOf(write, cast<RankedTensorType>(write.getValue().getType()));
    at.mark(tt::StoreOp::create(builder, loc, at.pointers, write.getValue(), at.mask,
                                write.getCacheModifier(), write.getEvictionPolicy(),
                                write.getCachePolicyAttr(), DenseI32ArrayAttr()));
    eraseLater(op);
  } else if (auto read = dyn_cast<tt::DescriptorLoadOp>(op)) {
    BlockOfTensor at = addressesOf(read.getDesc(), read.getIndices());
    RankedTensorType tile = read.getDesc().getType().getTileType();
    replace(op, reshape(load(op, read.getDesc(), at, tile), read.getType()));
  } else if (auto write = dyn_cast<tt::DescriptorStoreOp>(op)) {
    BlockOfTensor at = addressesOf(write.getDesc(), write.getIndices());
    Value value = reshape(write.getSrc(), write.getDesc().getType().getTileType());
    at.mark(tt::StoreOp::create(builder, loc, at.pointers, value, at.mask));
    eraseLater(op);
  } else if (auto reduce = dyn_cast<tt::DescriptorReduceOp>(op)) {
    tt::TensorDescType desc = reduce.getDesc().getType();
    BlockOfTensor at = addressesOf(reduce.getDesc(), reduce.getIndices());
    tt::AtomicRMWOp::create(builder, loc, desc.getTileType(),
                            updateOf(reduce.getKind(), desc.getBlockType().getElementType()),
                            at.pointers, reshape(reduce.getSrc(), desc.getTileType()), at.mask,
                            tt::MemSemantic::ACQUIRE_RELEASE, tt::MemSyncScope::GPU);
    eraseLater(op);
  } else if (auto gather = dyn_cast<tt::DescriptorGatherOp>(op)) {
    BlockOfTensor at = rowsOf(gather, gather.getType());
    replace(op, load(op, gather.getDesc(), at, cast<RankedTensorType>(gather.getType())));
  } else if (auto scatter = dyn_cast<tt::DescriptorScatterOp>(op)) {
    BlockOfTensor at = rowsOf(scatter, scatter.getSrc().getType());
    tt::StoreOp::create(builder, loc, at.pointers, scatter.getSrc(), at.mask);
    eraseLater(op);
  } else {
    return op->emitOpError() << "takes or makes a block pointer or a tensor descriptor; what does "
                                "are loads, stores, and the control flow that carries them";
  }
  return success();
}

struct TTRewriteDescriptorsPass : impl::TTRewriteDescriptorsBase<TTRewriteDescriptorsPass> {
  void runOnOperation() override {
    WalkResult found = getOperation().walk([](Operation *op) {
      auto isPresent = [](TypeRange types) { return llvm::any_of(types, isRewritten); };
      bool inBlocks = llvm::any_of(op->getRegions(), [&](Region &region) {
        return llvm::any_of(region,
                            [&](Block &block) { return isPresent(block.getArgumentTypes()); });
      });
      return inBlocks || isPresent(op->getResultTypes()) ? WalkResult::interrupt()
                                                         : WalkResult::advance();
    });
    if (!found.wasInterrupted())
      return markAllAnalysesPreserved();
    for (tt::FuncOp function : getOperation().getOps<tt::FuncOp>()) {
      for (Type type : function.getArgumentTypes())
        if (tt::getBlockOf(type)) {
          function.emitError() << "a kernel has an argument of type " << type
                               << "; a block pointer is made in the kernel";
          return signalPassFailure();
        }
      Rewriter rewriter(&getContext());
      if (function.isExternal())
        continue;
      if (failed(verifyShapesBehind(function)) ||
          failed(rewriter.run(function, {tt::memoryAttrName})))
        return signalPassFailure();
    }
    // Accesses with the same offsets share their addresses and masks.
    OpPassManager cleaning(ModuleOp::getOperationName());
    cleaning.addPass(createCSEPass());
    if (failed(runPipeline(cleaning, getOperation())))
      signalPassFailure();
  }
};

} // namespace
} // namespace triton_metal
