#include "language/Blocks.h"
#include "language/Writable.h"

#include "dialect/tt/TT.h"
#include "language/CacheHints.h"

using namespace mlir;

namespace triton_metal::language {

static Type elementOf(const BlockedTensor &tensor) { return tensor.base.type.pointee(); }

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

/// The block, for messages.
static std::string dimensions(size_t rank) {
  return std::to_string(rank) + (rank == 1 ? " dimension" : " dimensions");
}

static llvm::Error checkCount(const char *name, const char *what, size_t count, size_t rank) {
  if (count == rank)
    return llvm::Error::success();
  return valueError(llvm::Twine(name) + ": " + llvm::Twine(count) + " " + what +
                    " are given for a block of " + dimensions(rank));
}

static llvm::Error checkPadding(const char *name, const BlockedTensor &tensor) {
  if (tensor.padding == "nan" && !elementOf(tensor).isFloating())
    return valueError(llvm::Twine(name) + ": padding_option 'nan' is for floats, not for " +
                      elementOf(tensor).str());
  return llvm::Error::success();
}

static llvm::Error checkTensor(const char *name, const BlockedTensor &tensor, size_t largest) {
  const Type &type = tensor.base.type;
  if (type.isBlock() || !type.isPointer() || type.pointee().isPointer())
    return typeError(llvm::Twine(name) + ": the base must be a pointer to numbers, not " +
                     type.str());
  size_t rank = tensor.block.size();
  if (rank == 0 || rank > largest)
    return valueError(llvm::Twine(name) + ": a block has 1 to " + llvm::Twine(largest) +
                      " dimensions, not " + llvm::Twine(rank));
  int64_t elements = 1;
  for (int64_t size : tensor.block) {
    if (size <= 0 || !llvm::isPowerOf2_64(size))
      return valueError(llvm::Twine(name) + ": a block's sizes are powers of 2, and " +
                        llvm::Twine(size) + " is none");
    elements = size > maxTileElements ? size : elements * size;
    if (elements > maxTileElements)
      return valueError(llvm::Twine(name) + ": a block has at most " +
                        llvm::Twine(maxTileElements) + " elements");
  }
  if (llvm::Error error = checkCount(name, "sizes", tensor.shape.size(), rank))
    return error;
  if (llvm::Error error = checkCount(name, "strides", tensor.strides.size(), rank))
    return error;
  return checkPadding(name, tensor);
}

static llvm::Error checkDescriptor(const BlockedTensor &tensor) {
  const char *name = "make_tensor_descriptor";
  if (llvm::Error error = checkTensor(name, tensor, tt::kMaxDescriptorRank))
    return error;
  if (tensor.padding != "zero" && tensor.padding != "nan")
    return valueError(llvm::Twine(name) + ": padding_option is '" + tensor.padding +
                      "'; it can be 'zero' or 'nan'");
  const auto *last = std::get_if<Constant>(&tensor.strides.back());
  if (last && (last->kind == Constant::Kind::Float || last->integer != 1))
    return valueError(llvm::Twine(name) + ": the last stride is " + last->str() +
                      "; a descriptor's last dimension is contiguous, so its stride is 1");
  return llvm::Error::success();
}

llvm::Error checkBlockPointer(const BlockedTensor &tensor, size_t offsets,
                              llvm::ArrayRef<int64_t> order) {
  const char *name = "make_block_ptr";
  if (llvm::Error error = checkTensor(name, tensor, 32))
    return error;
  size_t rank = tensor.block.size();
  if (llvm::Error error = checkCount(name, "offsets", offsets, rank))
    return error;
  SmallVector<int64_t> sorted(order);
  llvm::sort(sorted);
  if (sorted.size() != rank || !llvm::equal(sorted, llvm::seq<int64_t>(0, int64_t(rank))))
    return valueError(llvm::Twine(name) + ": order must list each of the " + dimensions(rank) +
                      " once");
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

/// A scalar integer, which messages call `what`.
static Result scalar(Builder &builder, const Operand &operand, const char *what) {
  Result value = builder.toTensor(operand);
  if (value && (value->type.isBlock() || !value->type.isInteger()))
    return typeError(llvm::Twine(what) + " must be an integer, not " + value->type.str());
  return value;
}

static Result to64(Builder &builder, const Operand &operand, const char *what) {
  Result value = scalar(builder, operand, what);
  return value ? builder.cast(*value, Type(ScalarKind::Int64)) : std::move(value);
}

/// The size of a descriptor's tensor, which has 32 bits. No offset reaches beyond that.
static Result sizeOf(Builder &builder, const Operand &operand) {
  Result value = scalar(builder, operand, "the size of a descriptor");
  if (!value)
    return value;
  unsigned bits = value->type.bitWidth();
  if (bits > 32 || (bits == 32 && value->type.isUnsigned())) {
    value = builder.minimum(*value, Constant::of(__int128(INT32_MAX)), /*propagateNan=*/false);
    if (!value)
      return value;
  }
  return builder.cast(*value, Type(ScalarKind::Int32));
}

static Result offset32(Builder &builder, const Operand &operand) {
  Result value = scalar(builder, operand, "an offset of a descriptor");
  if (!value)
    return value;
  if (value->type.bitWidth() > 32 || value->type.is(ScalarKind::UInt32))
    return typeError("an offset of a descriptor is an int32, not " + value->type.str() +
                     "; add .to(tl.int32)");
  return builder.cast(*value, Type(ScalarKind::Int32));
}

using Handles = SmallVector<mlir::Value>;

template <typename Convert>
static llvm::Expected<Handles> handlesOf(llvm::ArrayRef<Operand> operands, Convert convert) {
  Handles handles;
  for (const Operand &operand : operands) {
    Result value = convert(operand);
    if (!value)
      return value.takeError();
    handles.push_back(value->handle);
  }
  return handles;
}

/// A pointer to memory's elements.
static Result baseOf(Builder &builder, const BlockedTensor &tensor) {
  return builder.memoryPointer(tensor.base);
}

/// What a load gives of elements, from what memory holds.
static Result loaded(Builder &builder, Type element, Value value) {
  return element.isBool() ? builder.cast(value, element) : Result(value);
}

/// A value as a tile of memory's elements in a shape.
static Result stored(Builder &builder, Type element, const Operand &operand,
                     llvm::ArrayRef<int64_t> shape) {
  Result value = builder.cast(operand, element);
  if (value && element.isBool())
    value = builder.cast(*value, Builder::memoryType(element));
  if (!value || value->type.getShape() == shape)
    return value;
  if (value->type.isBlock())
    return valueError("a block of " + element.withShape(shape).str() +
                      " is stored, and the value is " + value->type.str());
  return builder.splat(*value, shape);
}

//===----------------------------------------------------------------------===//
// Tensor descriptors
//===----------------------------------------------------------------------===//

static Handles handlesOf(llvm::ArrayRef<Value> values) {
  return llvm::map_to_vector(values, [](const Value &value) { return value.handle; });
}

llvm::Expected<Descriptor> makeDescriptor(Builder &builder, const BlockedTensor &tensor,
                                          bool roundsToTF32) {
  if (llvm::Error error = checkDescriptor(tensor))
    return error;
  Descriptor result;
  for (const Operand &size : tensor.shape) {
    Result value = sizeOf(builder, size);
    if (!value)
      return value.takeError();
    result.shape.push_back(*value);
  }
  for (const Operand &stride : tensor.strides) {
    Result value = to64(builder, stride, "a stride of a descriptor");
    if (!value)
      return value.takeError();
    result.strides.push_back(*value);
  }
  Result base = baseOf(builder, tensor);
  if (!base)
    return base.takeError();
  Type type = Type::descriptorOf(elementOf(tensor), tensor.block, tensor.base.type.isConst());
  IntegerAttr padding;
  if (tensor.padding == "nan")
    padding = builder.ops().getI32IntegerAttr(tt::padding::kNan);
  auto desc = tt::MakeTensorDescOp::create(
      builder.ops(), builder.loc(), type.toMLIR(builder.ops().getContext()), base->handle,
      handlesOf(result.shape), handlesOf(result.strides), padding);
  if (roundsToTF32)
    desc->setAttr(tt::roundsToTF32AttrName, builder.ops().getUnitAttr());
  result.handle = {desc, type};
  return result;
}

static llvm::Expected<Handles> offsetsOf(Builder &builder, const char *name, const Value &desc,
                                         llvm::ArrayRef<Operand> offsets) {
  if (llvm::Error error = checkCount(name, "offsets", offsets.size(), desc.type.getShape().size()))
    return error;
  return handlesOf(offsets, [&](const Operand &offset) { return offset32(builder, offset); });
}

/// The type of what memory holds of a block.
static Type storedBlock(const Value &desc, llvm::ArrayRef<int64_t> shape) {
  return Builder::memoryType(desc.type.scalar()).withShape(shape);
}

Result loadDescriptor(Builder &builder, const Value &desc, llvm::ArrayRef<Operand> offsets) {
  llvm::Expected<Handles> places = offsetsOf(builder, "load", desc, offsets);
  if (!places)
    return places.takeError();
  Type type = storedBlock(desc, desc.type.getShape());
  mlir::Value value = tt::DescriptorLoadOp::create(
      builder.ops(), builder.loc(), type.toMLIR(builder.ops().getContext()), desc.handle, *places,
      tt::CacheModifier::NONE, tt::EvictionPolicy::NORMAL, tt::CachePolicyAttr());
  return loaded(builder, desc.type.scalar(), {value, type});
}

namespace {

/// What is written to a block, and where.
struct BlockWrite {
  Handles places;
  mlir::Value tile;
};

} // namespace

static llvm::Expected<BlockWrite> writeOf(Builder &builder, const char *name, const Value &desc,
                                          llvm::ArrayRef<Operand> offsets, const Operand &value) {
  if (llvm::Error error = checkWritable(desc.type))
    return error;
  llvm::Expected<Handles> places = offsetsOf(builder, name, desc, offsets);
  if (!places)
    return places.takeError();
  Result tile = stored(builder, desc.type.scalar(), value, desc.type.getShape());
  if (!tile)
    return tile.takeError();
  return BlockWrite{std::move(*places), tile->handle};
}

llvm::Error storeDescriptor(Builder &builder, const Value &desc, llvm::ArrayRef<Operand> offsets,
                            const Operand &value) {
  llvm::Expected<BlockWrite> write = writeOf(builder, "store", desc, offsets, value);
  if (!write)
    return write.takeError();
  tt::DescriptorStoreOp::create(builder.ops(), builder.loc(), desc.handle, write->tile,
                                write->places);
  return llvm::Error::success();
}

llvm::Error reduceDescriptor(Builder &builder, AtomicOp op, const Value &desc,
                             llvm::ArrayRef<Operand> offsets, const Operand &value) {
  using Kind = tt::DescriptorReduceKind;
  Type element = desc.type.scalar();
  bool isBitwise = op == AtomicOp::And || op == AtomicOp::Or || op == AtomicOp::Xor;
  if (element.isBool() || element.isFloat8() || (isBitwise && !element.isInteger()))
    return typeError("an atomic update of a descriptor's block does not support " + element.str());
  llvm::Expected<BlockWrite> write = writeOf(builder, "an atomic update", desc, offsets, value);
  if (!write)
    return write.takeError();
  Kind kind = op == AtomicOp::Add   ? Kind::ADD
              : op == AtomicOp::Min ? Kind::MIN
              : op == AtomicOp::Max ? Kind::MAX
              : op == AtomicOp::And ? Kind::AND
              : op == AtomicOp::Or  ? Kind::OR
                                    : Kind::XOR;
  tt::DescriptorReduceOp::create(builder.ops(), builder.loc(), kind, desc.handle, write->tile,
                                 write->places);
  return llvm::Error::success();
}

/// Checks a gather or scatter, and gives the shape of its tile.
static llvm::Expected<std::vector<int64_t>> rowShape(const char *name, const Value &desc,
                                                     const Value &rows) {
  llvm::ArrayRef<int64_t> block = desc.type.getShape();
  if (block.size() != 2 || block[0] != 1)
    return valueError(llvm::Twine(name) +
                      ": the descriptor's block must be one row of two dimensions");
  Type element = rows.type.scalar();
  if (rows.type.getShape().size() != 1 ||
      !(element.is(ScalarKind::Int16) || element.is(ScalarKind::Int32)))
    return typeError(llvm::Twine(name) +
                     " takes a tile of one dimension of int16 or int32 as its rows, not " +
                     rows.type.str());
  return std::vector<int64_t>{rows.type.getShape()[0], block[1]};
}

Result gatherRows(Builder &builder, const Value &desc, const Value &rows, const Operand &column) {
  llvm::Expected<std::vector<int64_t>> shape = rowShape("gather", desc, rows);
  if (!shape)
    return shape.takeError();
  Result first = offset32(builder, column);
  if (!first)
    return first;
  Type type = storedBlock(desc, *shape);
  mlir::Value value = tt::DescriptorGatherOp::create(builder.ops(), builder.loc(),
                                                     type.toMLIR(builder.ops().getContext()),
                                                     desc.handle, rows.handle, first->handle);
  return loaded(builder, desc.type.scalar(), {value, type});
}

llvm::Error scatterRows(Builder &builder, const Value &desc, const Value &rows,
                        const Operand &column, const Operand &value) {
  if (llvm::Error error = checkWritable(desc.type))
    return error;
  llvm::Expected<std::vector<int64_t>> shape = rowShape("scatter", desc, rows);
  if (!shape)
    return shape.takeError();
  Result first = offset32(builder, column);
  if (!first)
    return first.takeError();
  Result tile = stored(builder, desc.type.scalar(), value, *shape);
  if (!tile)
    return tile.takeError();
  tt::DescriptorScatterOp::create(builder.ops(), builder.loc(), desc.handle, rows.handle,
                                  first->handle, tile->handle);
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Block pointers
//===----------------------------------------------------------------------===//

Result blockOffset(Builder &builder, const Operand &offset) {
  return to64(builder, offset, "an offset of a block pointer");
}

static llvm::Expected<mlir::Value> makeBlockPointer(Builder &builder, const BlockedTensor &tensor,
                                                    llvm::ArrayRef<Operand> offsets) {
  Result base = baseOf(builder, tensor);
  if (!base)
    return base.takeError();
  auto convert = [&](const Operand &number) {
    return to64(builder, number, "a size, a stride or an offset of a block pointer");
  };
  llvm::Expected<Handles> shape = handlesOf(tensor.shape, convert);
  if (!shape)
    return shape.takeError();
  llvm::Expected<Handles> strides = handlesOf(tensor.strides, convert);
  if (!strides)
    return strides.takeError();
  llvm::Expected<Handles> places = handlesOf(offsets, convert);
  if (!places)
    return places.takeError();
  MLIRContext *context = builder.ops().getContext();
  auto tile =
      RankedTensorType::get(tensor.block, Builder::memoryType(elementOf(tensor)).toMLIR(context));
  SmallVector<int32_t> order(llvm::reverse(llvm::seq<int32_t>(0, int32_t(tensor.block.size()))));
  return mlir::Value(tt::MakeTensorPtrOp::create(builder.ops(), builder.loc(),
                                                 tt::PtrType::get(tile), base->handle, *shape,
                                                 *strides, *places, order));
}

/// The dimensions whose bounds are checked.
static llvm::Expected<DenseI32ArrayAttr> checkedDims(Builder &builder, const BlockedTensor &tensor,
                                                     llvm::ArrayRef<int64_t> checked) {
  SmallVector<int32_t> dims;
  for (int64_t dim : checked) {
    if (dim < 0 || dim >= int64_t(tensor.block.size()) || llvm::is_contained(dims, dim))
      return valueError("boundary_check lists dimensions of the block, each once, and " +
                        llvm::Twine(dim) + " is none or is there twice");
    dims.push_back(int32_t(dim));
  }
  llvm::sort(dims);
  return dims.empty() ? DenseI32ArrayAttr() : builder.ops().getDenseI32ArrayAttr(dims);
}

Result loadBlock(Builder &builder, const BlockedTensor &tensor, llvm::ArrayRef<Operand> offsets,
                 llvm::ArrayRef<int64_t> checked, llvm::StringRef cache, llvm::StringRef eviction,
                 bool isVolatile) {
  if (!tensor.padding.empty() && tensor.padding != "zero" && tensor.padding != "nan")
    return valueError("load: padding_option is '" + tensor.padding +
                      "'; it can be 'zero', 'nan' or ''");
  if (llvm::Error error = checkPadding("load", tensor))
    return error;
  llvm::Expected<tt::CachePolicyAttr> policy =
      cachePolicy(builder.ops().getContext(), cache, eviction, /*isStore=*/false);
  if (!policy)
    return policy.takeError();
  llvm::Expected<DenseI32ArrayAttr> dims = checkedDims(builder, tensor, checked);
  if (!dims)
    return dims.takeError();
  llvm::Expected<mlir::Value> pointer = makeBlockPointer(builder, tensor, offsets);
  if (!pointer)
    return pointer.takeError();
  IntegerAttr padding;
  if (!tensor.padding.empty())
    padding = builder.ops().getI32IntegerAttr(tensor.padding == "nan" ? tt::padding::kNan
                                                                      : tt::padding::kZero);
  Type type = Builder::memoryType(elementOf(tensor)).withShape(tensor.block);
  mlir::Value value =
      tt::LoadOp::create(builder.ops(), builder.loc(), type.toMLIR(builder.ops().getContext()),
                         *pointer, mlir::Value(), mlir::Value(), tt::CacheModifier::NONE,
                         tt::EvictionPolicy::NORMAL, *policy, isVolatile, *dims, padding);
  return loaded(builder, elementOf(tensor), {value, type});
}

llvm::Error storeBlock(Builder &builder, const BlockedTensor &tensor,
                       llvm::ArrayRef<Operand> offsets, llvm::ArrayRef<int64_t> checked,
                       const Operand &value, llvm::StringRef cache, llvm::StringRef eviction) {
  if (llvm::Error error = checkWritable(tensor.base.type))
    return error;
  llvm::Expected<tt::CachePolicyAttr> policy =
      cachePolicy(builder.ops().getContext(), cache, eviction, /*isStore=*/true);
  if (!policy)
    return policy.takeError();
  llvm::Expected<DenseI32ArrayAttr> dims = checkedDims(builder, tensor, checked);
  if (!dims)
    return dims.takeError();
  Operand operand = value;
  if (const Value *tile = std::get_if<Value>(&value); tile && tile->type.isBlock()) {
    Result whole = builder.broadcastTo(*tile, tensor.block);
    if (!whole)
      return whole.takeError();
    operand = *whole;
  }
  Result tile = stored(builder, elementOf(tensor), operand, tensor.block);
  if (!tile)
    return tile.takeError();
  llvm::Expected<mlir::Value> pointer = makeBlockPointer(builder, tensor, offsets);
  if (!pointer)
    return pointer.takeError();
  tt::StoreOp::create(builder.ops(), builder.loc(), *pointer, tile->handle, mlir::Value(),
                      tt::CacheModifier::NONE, tt::EvictionPolicy::NORMAL, *policy, *dims);
  return llvm::Error::success();
}

} // namespace triton_metal::language
