// Loads and stores: slices of a buffer where the places are a box, gathers and scatters otherwise.

#include "runtime/mlx/graph/Box.h"
#include "runtime/mlx/graph/Functions.h"
#include "runtime/mlx/graph/Steps.h"
#include "runtime/mlx/graph/Tracer.h"
#include "runtime/mlx/graph/Window.h"

#include "mlx/ops.h"
#include "mlx/transforms.h"

#include <algorithm>

namespace triton_metal::graph {

namespace {

/// tt.atomic_rmw's operations.
enum Update : int64_t {
  And = 1,
  Or,
  Xor,
  Add,
  AddFloat,
  Max,
  Min,
  MaxUnsigned,
  MinUnsigned,
  Exchange
};

Type elementOf(const Type &pointer) { return {pointer.element.substr(1), pointer.shape}; }

std::vector<Affine> conditionsOf(const std::optional<Value> &mask) {
  return mask ? *mask->conditions() : std::vector<Affine>();
}

/// The axes of a window in the order of its coordinates.
std::vector<int> orderOf(const Window &window) {
  std::vector<int> order;
  for (const Window::Group &group : window.groups)
    for (size_t axis : group.axes)
      order.push_back(static_cast<int>(axis));
  return order;
}

} // namespace

mx::array Tracer::viewed(const Operation &op, int buffer, const Type &type) const {
  const mx::array &elements = buffers[static_cast<size_t>(buffer)].elements;
  mx::Dtype dtype = type.dtype();
  if (elements.dtype() == dtype)
    return elements;
  // A truth value in memory is a byte that is not 0.
  if (type.isBool() && elements.itemsize() == 1)
    return mx::not_equal(elements, mx::array(0, elements.dtype()));
  if (elements.dtype().size() != dtype.size())
    refuse(op, "an array of " + std::to_string(8 * elements.dtype().size()) +
                   "-bit elements is accessed as " + type.element);
  return mx::view(elements, dtype);
}

void Tracer::keep(int buffer, const mx::array &elements) {
  mx::array &kept = buffers[static_cast<size_t>(buffer)].elements;
  kept = elements.dtype() == kept.dtype() ? elements : mx::view(elements, kept.dtype());
}

void Tracer::record(const Operation &op, Access::Kind kind, int64_t update, const Value &pointer,
                    const std::optional<Value> &mask, bool isDistinct, const Extents &extents,
                    bool mustBeDistinct) {
  Buffer &buffer = buffers[static_cast<size_t>(pointer.buffer())];
  buffer.isWritten |= kind != Access::Read;
  buffer.accesses.push_back(
      {kind, update, pointer, mask, isDistinct, mustBeDistinct, extents, op.place});
}

bool Tracer::hasSteps(const Extents &extents) const {
  for (size_t axis = 0; axis < outerAxes; ++axis)
    if (extents[axis] > 1 && outer.ofGrid()[axis] == 1)
      return true;
  return false;
}

std::optional<Value> Tracer::loadWindow(const Operation &op, const Value &pointer,
                                        const std::optional<Value> &mask, const Value *other,
                                        const mx::array &elements, const Type &type,
                                        const Extents &extents, bool mustBeInside) {
  if (!pointer.affine() || (mask && !mask->conditions()))
    return std::nullopt;
  std::optional<Window> window = windowOf(*pointer.affine(), conditionsOf(mask), extents);
  if (!window)
    return std::nullopt;
  // Other numbers than one for all elements are chosen behind a gather.
  if (mask && other && !isUniform(other->extents()))
    return std::nullopt;
  mx::array filling =
      mx::astype(mask && other ? mx::reshape(other->array(), {}) : mx::array(0), type.dtype());
  Extents result(extents.size(), 1);
  if (window->isEmpty)
    return Value::of(type, result, mx::reshape(filling, shapeOf(result)), false);
  for (const Window::Group &group : window->groups)
    for (size_t axis : group.axes)
      result[axis] = extents[axis];
  int64_t size = elements.shape(0);
  bool isInside = window->origin >= 0 && window->last() < size;
  if (!isInside && !mustBeInside)
    return std::nullopt;
  if (!isInside)
    refuse(op, "loads place " +
                   std::to_string(window->origin < 0 ? window->origin : window->last()) +
                   " of an array of " + std::to_string(size) + " elements");
  Box box{window->groups, mx::astype(readWindow(elements, *window), type.dtype()),
          mx::reshape(filling, mx::Shape(window->groups.size(), 1)),
          !mask || !other || other->isKnown()};
  bool isCut = std::any_of(box.groups.begin(), box.groups.end(),
                           [](const Window::Group &group) { return group.length() != group.size; });
  return isCut ? Value::of(type, result, std::move(box), false)
               : Value::of(type, result, toTile(box, result), false);
}

void Tracer::checkLater(const Operation &op, const mx::array &areInside, int64_t size) {
  constexpr size_t most = 64;
  checks.push_back({numChecks++, &op, mx::all(areInside), size});
  if (checks.size() >= firstCheck + most)
    makeChecks(firstCheck);
}

void Tracer::makeChecks(size_t first) {
  std::vector<BoundsCheck> made(checks.begin() + static_cast<std::ptrdiff_t>(first), checks.end());
  checks.erase(checks.begin() + static_cast<std::ptrdiff_t>(first), checks.end());
  std::vector<mx::array> results;
  for (const BoundsCheck &check : made)
    results.push_back(check.areInside);
  mx::eval(results);
  for (BoundsCheck &check : made)
    if (!check.areInside.item<bool>())
      refuse(*check.op,
             "accesses places outside of an array of " + std::to_string(check.size) + " elements");
}

mx::array Tracer::safePlaces(const Operation &op, const Value &pointer,
                             const std::optional<Value> &mask, int64_t size, int64_t otherwise) {
  mx::array places = mx::astype(pointer.array(), mx::int64);
  mx::array inside = mx::logical_and(mx::greater_equal(places, mx::array(int64_t(0), mx::int64)),
                                     mx::less(places, mx::array(size, mx::int64)));
  if (pointer.isKnown() && (!mask || mask->isKnown())) {
    mx::array right = mask ? mx::logical_or(inside, mx::logical_not(mask->array())) : inside;
    checkLater(op, right, size);
  }
  mx::array used = mask ? mx::logical_and(inside, mask->array()) : inside;
  places = mx::where(used, places, mx::array(otherwise, mx::int64));
  return size < (int64_t(1) << 31) - 1 ? mx::astype(places, mx::int32) : places;
}

Value Tracer::load(const Operation &op, const Value &pointer, const Value *given,
                   const Value *other, const Type &type) {
  std::optional<Value> mask = activeMask(given, pointer.rank());
  Extents extents = pointer.extents();
  if (mask)
    extents = join(extents, mask->extents());
  record(op, Access::Read, 0, pointer, mask, false, extents);
  mx::array elements = viewed(op, pointer.buffer(), type);
  auto give = [&](mx::array result, const Extents &sizes) {
    return Value::of(type, sizes, mx::astype(result, type.dtype()), false);
  };
  // Nothing uses what other programs load: any number will do, if it is there.
  std::optional<Value> own;
  if (given && given->constant() != 1)
    own = *given;
  Extents sliced = own ? join(pointer.extents(), own->extents()) : pointer.extents();
  std::optional<Value> box;
  if (active)
    box = loadWindow(op, pointer, own, other, elements, type, sliced, false);
  if (!box)
    box = loadWindow(op, pointer, mask, other, elements, type, extents, true);
  if (box) {
    ++summary.sliced;
    return *box;
  }
  checkSize(extents);
  ++summary.gathered;
  if (std::optional<Value> rows = loadRows(op, pointer, mask, other, elements, type, extents))
    return *rows;
  std::optional<mx::array> found;
  if (elements.size() > 0) {
    // Places outside are read as the first one, and not used.
    found = mx::take(elements, safePlaces(op, pointer, mask, elements.shape(0), 0));
  } else if (!mask || mask->constant() != 0) {
    found = mx::zeros(shapeOf(extents), type.dtype());
  }
  if (mask) {
    mx::array filling = other ? other->array() : mx::astype(mx::array(0), type.dtype());
    if (other)
      extents = join(extents, other->extents());
    found = found ? mx::where(mask->array(), *found, filling) : filling;
  }
  return give(mx::broadcast_to(*found, shapeOf(extents)), extents);
}

std::optional<mx::array> Tracer::storeWindow(const Operation &op, const Value &pointer,
                                             const std::optional<Value> &mask, const Value &value,
                                             const mx::array &elements) {
  if (!pointer.affine() || (mask && !mask->conditions()))
    return std::nullopt;
  Extents extents = join(pointer.extents(), value.extents());
  if (mask)
    extents = join(extents, mask->extents());
  std::optional<Window> window = windowOf(*pointer.affine(), conditionsOf(mask), extents);
  if (!window)
    return std::nullopt;
  // Along an axis without a step, all write one place.
  std::vector<int> order = orderOf(*window);
  for (size_t axis = 0; axis < extents.size(); ++axis)
    if (value.extents()[axis] != 1 &&
        std::find(order.begin(), order.end(), int(axis)) == order.end())
      return std::nullopt;
  if (window->isEmpty)
    return elements;
  int64_t size = elements.shape(0);
  if (window->origin < 0 || window->last() >= size)
    refuse(op, "stores to place " +
                   std::to_string(window->origin < 0 ? window->origin : window->last()) +
                   " of an array of " + std::to_string(size) + " elements");
  Extents needed(extents.size(), 1);
  for (int axis : order)
    needed[static_cast<size_t>(axis)] = extents[static_cast<size_t>(axis)];
  std::optional<mx::array> inside;
  if (value.box())
    inside = insideOf(*value.box(), window->groups);
  if (inside)
    return writeWindow(elements, *window, *inside);
  mx::array box = whole(value, needed);
  // The tile's axes in the order of the coordinates; those without a step are 1 long.
  std::vector<int> permutation = order;
  for (size_t axis = 0; axis < extents.size(); ++axis)
    if (std::find(order.begin(), order.end(), int(axis)) == order.end())
      permutation.push_back(static_cast<int>(axis));
  if (!std::is_sorted(permutation.begin(), permutation.end()))
    box = mx::transpose(box, permutation);
  mx::Shape shape, start, stop;
  for (const Window::Group &group : window->groups) {
    shape.push_back(static_cast<int>(group.size));
    start.push_back(static_cast<int>(group.low));
    stop.push_back(static_cast<int>(group.high));
  }
  box = mx::reshape(box, shape);
  if (start != mx::Shape(start.size(), 0) || stop != shape)
    box = mx::slice(box, start, stop);
  return writeWindow(elements, *window, box);
}

void Tracer::store(const Operation &op, const Value &pointer, const Value &value,
                   const Value *given) {
  std::optional<Value> mask = activeMask(given, pointer.rank());
  Extents extents = join(pointer.extents(), value.extents());
  if (mask)
    extents = join(extents, mask->extents());
  Type type = elementOf(pointer.type());
  Buffer &buffer = buffers[static_cast<size_t>(pointer.buffer())];
  mx::Dtype own = buffer.elements.dtype();
  if (type.isBool() && own != mx::bool_) {
    // Bytes that are not written keep all of their bits.
    Type byte{"i8", type.shape};
    Value bytes = Value::of(byte, value.extents(), mx::astype(value.array(), mx::int8), false);
    return store(op, pointer.withType({"*i8", pointer.type().shape}), bytes, given);
  }
  mx::array elements = viewed(op, pointer.buffer(), type);
  if (std::optional<mx::array> result = storeWindow(op, pointer, mask, value, elements)) {
    ++summary.sliced;
    record(op, Access::Write, 0, pointer, mask, true, extents);
    return keep(pointer.buffer(), *result);
  }
  if (hasSteps(extents))
    throw NotRaised{"steps may store to one place"};
  ++summary.gathered;
  record(op, Access::Write, 0, pointer, mask, false, extents);
  int64_t size = elements.shape(0);
  if (size == 0)
    return;
  // Elements that are masked go to a place behind the array.
  mx::array places = mx::broadcast_to(safePlaces(op, pointer, mask, size, size), shapeOf(extents));
  mx::array numbers = mx::reshape(whole(value, extents), {-1, 1});
  mx::array longer = mx::concatenate({elements, mx::zeros({1}, elements.dtype())}, 0);
  mx::array result = mx::scatter(longer, mx::reshape(places, {-1}), numbers, 0);
  keep(pointer.buffer(), mx::slice(result, {0}, {static_cast<int>(size)}));
}

void Tracer::runLoad(const Operation &op) {
  auto segments = op.attributes.at("operandSegmentSizes").get<std::vector<int>>();
  const Value *mask = segments[1] ? &operand(op, 1) : nullptr;
  const Value *other = segments[2] ? &operand(op, op.operands.size() - 1) : nullptr;
  const Value &pointer = operand(op, 0);
  const Type &type = resultType(op);
  int before = summary.gathered;
  size_t firstNumber = numChecks;
  setResult(op, load(op, pointer, mask, other, type));
  bool fillsZeros = !mask || !other || zeros.contains(op.operands.back());
  std::optional<size_t> check;
  if (numChecks > firstNumber)
    check = firstNumber;
  loaded.insert_or_assign(op.results.front(),
                          LoadedElements{get(op.results.front()),
                                         viewed(op, pointer.buffer(), type), pointer, fillsZeros,
                                         summary.gathered != before, check});
}

void Tracer::runStore(const Operation &op) {
  store(op, operand(op, 0), operand(op, 1), op.operands.size() > 2 ? &operand(op, 2) : nullptr);
}

void Tracer::runAtomicLoad(const Operation &op) {
  setResult(op, load(op, operand(op, 0), op.operands.size() > 1 ? &operand(op, 1) : nullptr,
                     nullptr, resultType(op)));
}

void Tracer::runAtomicStore(const Operation &op) { runStore(op); }

void Tracer::runAtomicRmw(const Operation &op) {
  const Value &pointer = operand(op, 0), &value = operand(op, 1);
  const Value *given = op.operands.size() > 2 ? &operand(op, 2) : nullptr;
  int64_t kind = op.integer("atomic_rmw_op");
  std::optional<Value> mask = activeMask(given, pointer.rank());
  // Every program and step counts, also where all do the same.
  Extents extents = fullExtents(pointer.type(), outer.sizes());
  Type type = elementOf(pointer.type());
  mx::array elements = viewed(op, pointer.buffer(), type);
  int64_t size = elements.shape(0);
  // What an update found is only defined where no other element changes the place, and MLX scatters
  // sums, maxima and minima only.
  bool isBitwise = kind == And || kind == Or || kind == Xor;
  bool mustBeDistinct = op.isUsed || isBitwise;
  bool isOnly = kind == Exchange || mustBeDistinct;
  record(op, isOnly ? Access::Write : Access::Update, kind, pointer, mask, false, extents,
         mustBeDistinct);
  ++summary.gathered;
  mx::array places =
      size == 0 ? mx::zeros(shapeOf(extents), mx::int32)
                : mx::broadcast_to(safePlaces(op, pointer, mask, size, size), shapeOf(extents));
  mx::array flat = mx::reshape(places, {-1});
  mx::array numbers = mx::reshape(whole(value, extents), {-1, 1});
  mx::array longer = mx::concatenate({elements, mx::zeros({1}, elements.dtype())}, 0);
  mx::array found = mx::take(longer, places);
  setResult(op, Value::of(resultType(op), extents, found, false));
  auto put = [&](const mx::array &fresh) {
    return mx::scatter(longer, flat, mx::reshape(fresh, {-1, 1}), 0);
  };
  auto asUnsigned = [&](const mx::array &x) {
    return mx::view(x, x.dtype().size() == 4 ? mx::uint32 : mx::uint64);
  };
  mx::array result = longer;
  switch (kind) {
  case Add:
  case AddFloat:
    result = mx::scatter_add(longer, flat, numbers, 0);
    break;
  case Max:
    result = mx::scatter_max(longer, flat, numbers, 0);
    break;
  case Min:
    result = mx::scatter_min(longer, flat, numbers, 0);
    break;
  case MaxUnsigned:
    result =
        mx::view(mx::scatter_max(asUnsigned(longer), flat, asUnsigned(numbers), 0), longer.dtype());
    break;
  case MinUnsigned:
    result =
        mx::view(mx::scatter_min(asUnsigned(longer), flat, asUnsigned(numbers), 0), longer.dtype());
    break;
  case Exchange:
    result = mx::scatter(longer, flat, numbers, 0);
    break;
  case And:
    result = put(bitwiseAnd(found, whole(value, extents)));
    break;
  case Or:
    result = put(bitwiseOr(found, whole(value, extents)));
    break;
  default:
    result = put(bitwiseXor(found, whole(value, extents)));
    break;
  }
  if (size == 0)
    return;
  keep(pointer.buffer(), mx::slice(result, {0}, {static_cast<int>(size)}));
}

void Tracer::runAtomicCas(const Operation &op) {
  const Value &pointer = operand(op, 0), &expected = operand(op, 1), &value = operand(op, 2);
  std::optional<Value> mask = activeMask(nullptr, pointer.rank());
  Extents extents = fullExtents(pointer.type(), outer.sizes());
  record(op, Access::Write, Exchange, pointer, mask, false, extents, /*mustBeDistinct=*/true);
  ++summary.gathered;
  mx::array elements = viewed(op, pointer.buffer(), elementOf(pointer.type()));
  int64_t size = elements.shape(0);
  mx::array longer = mx::concatenate({elements, mx::zeros({1}, elements.dtype())}, 0);
  mx::array places = mx::broadcast_to(safePlaces(op, pointer, mask, size, size), shapeOf(extents));
  mx::array found = mx::take(longer, places);
  setResult(op, Value::of(resultType(op), extents, found, false));
  // Bits are compared, not numbers.
  auto bitsOf = [](const mx::array &x) {
    return mx::view(x, x.itemsize() == 2 ? mx::int16 : x.itemsize() == 4 ? mx::int32 : mx::int64);
  };
  mx::array isExpected = mx::equal(bitsOf(found), bitsOf(whole(expected, extents)));
  mx::array fresh = mx::where(isExpected, whole(value, extents), found);
  mx::array result = mx::scatter(longer, mx::reshape(places, {-1}), mx::reshape(fresh, {-1, 1}), 0);
  keep(pointer.buffer(), mx::slice(result, {0}, {static_cast<int>(size)}));
}

} // namespace triton_metal::graph
