#include "transforms/BlockPlaces.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

using namespace mlir;

namespace triton_metal {

namespace {

std::optional<int64_t> getConstant(Value value) {
  APInt number;
  if (!matchPattern(value, m_ConstantInt(&number)) || number.getSignificantBits() > 64)
    return std::nullopt;
  return number.getSExtValue();
}

/// The number that a value extends, if it does.
Value getNarrow(Value value) {
  auto extension = value.getDefiningOp<arith::ExtSIOp>();
  return extension ? extension.getIn() : value;
}

/// A product of a positive constant and of other numbers. Sizes of a tensor that has elements are
/// positive.
struct Product {
  int64_t factor = 1;
  SmallVector<const void *, 2> numbers;

  bool multiply(const Product &other) {
    if (llvm::MulOverflow(factor, other.factor, factor))
      return false;
    numbers.append(other.numbers);
    llvm::sort(numbers);
    // No more than 63 bits, so that nothing wraps around: each number has 31.
    unsigned bits = llvm::Log2_64(factor) + 1 + 31 * unsigned(numbers.size());
    return bits <= 63;
  }
};

std::optional<Product> productOf(Value value) {
  if (std::optional<int64_t> number = getConstant(getNarrow(value))) {
    if (*number <= 0)
      return std::nullopt;
    return Product{*number, {}};
  }
  if (Value narrow = getNarrow(value); narrow.getType().isInteger(32))
    return Product{1, {narrow.getAsOpaquePointer()}};
  auto product = value.getDefiningOp<arith::MulIOp>();
  if (!product || !value.getType().isInteger(64))
    return std::nullopt;
  std::optional<Product> lhs = productOf(product.getLhs()), rhs = productOf(product.getRhs());
  if (!lhs || !rhs || !lhs->multiply(*rhs))
    return std::nullopt;
  return lhs;
}

/// Whether the strides tell that each place is memory of its own: from the shortest on, each is at
/// least as long as what lies within it.
bool isNonOverlapping(ArrayRef<BlockDim> dims) {
  SmallVector<const BlockDim *> left;
  for (const BlockDim &dim : dims)
    if (getConstant(getNarrow(dim.size)) != 1)
      left.push_back(&dim);
  Product extent;
  while (!left.empty()) {
    const BlockDim *next = nullptr;
    int64_t least = 0;
    for (const BlockDim *dim : left) {
      std::optional<Product> stride = productOf(dim->stride);
      if (stride && stride->numbers == extent.numbers && stride->factor >= extent.factor &&
          (!next || stride->factor < least)) {
        next = dim;
        least = stride->factor;
      }
    }
    if (!next)
      return false;
    llvm::erase(left, next);
    if (left.empty())
      return true;
    std::optional<Product> size = productOf(next->size);
    extent.factor = least;
    if (!size || !extent.multiply(*size))
      return false;
  }
  return true;
}

} // namespace

int getLoopDepth(Operation *op, function_ref<bool(Operation *)> counts) {
  int depth = 0;
  for (Operation *parent = op->getParentOp(); parent; parent = parent->getParentOp())
    depth += isa<LoopLikeOpInterface>(parent) && counts(parent);
  return depth;
}

BlockPlaces::Number BlockPlaces::numberOf(Value value) {
  value = getNarrow(value);
  if (std::optional<int64_t> number = getConstant(value))
    return {nullptr, *number};
  return {value.getAsOpaquePointer(), 0};
}

DenseI32ArrayAttr BlockPlaces::get(Value base, ArrayRef<BlockDim> dims) {
  // Outside of its bounds, a block may reach into another row.
  if (llvm::any_of(dims, [](const BlockDim &dim) { return !dim.size || dim.places; }))
    return {};
  if (!llvm::is_contained(nonOverlapping, base) && !isNonOverlapping(dims))
    return {};
  std::vector<Number> tensor{numberOf(base)};
  for (const BlockDim &dim : dims) {
    tensor.push_back(numberOf(dim.size));
    tensor.push_back(numberOf(dim.stride));
  }
  auto getIndex = [](auto &known, const auto &key) {
    return known.try_emplace(key, int32_t(known.size())).first->second;
  };
  SmallVector<int32_t> places{getIndex(tensors, tensor)};
  for (const BlockDim &dim : dims) {
    Value offset = getNarrow(dim.offset);
    places.push_back(getIndex(offsets, numberOf(offset)));
    bool isKnown = getConstant(offset).has_value();
    // An argument of a loop's body changes in this loop.
    Operation *front = &offset.getParentBlock()->front();
    places.push_back(isKnown ? 0 : getLoopDepth(front));
  }
  return DenseI32ArrayAttr::get(base.getContext(), places);
}

bool haveSameOffset(Operation *a, Operation *b, unsigned dim, int depth) {
  auto first = a->getAttrOfType<DenseI32ArrayAttr>(tt::placesAttrName);
  auto second = b->getAttrOfType<DenseI32ArrayAttr>(tt::placesAttrName);
  if (!first || !second || first[0] != second[0])
    return false;
  unsigned at = 1 + 2 * dim;
  return first[at] == second[at] && first[at + 1] <= depth;
}

} // namespace triton_metal
