#include "runtime/mlx/graph/Box.h"

#include "runtime/mlx/graph/Functions.h"
#include "runtime/mlx/graph/Reductions.h"

#include "mlx/ops.h"

#include <algorithm>

namespace triton_metal::graph {

using Groups = std::vector<Window::Group>;

bool isCut(const Window::Group &group) { return group.length() != group.size; }

bool isSame(const Window::Group &a, const Window::Group &b) {
  return a.axes == b.axes && a.size == b.size && a.low == b.low && a.high == b.high;
}

bool areSame(const Groups &a, const Groups &b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), isSame);
}

namespace {

size_t cutsOf(const Groups &groups) {
  return static_cast<size_t>(std::count_if(groups.begin(), groups.end(), isCut));
}

/// The coordinates that all values have: those of the box with the most, and an axis each for what
/// only others have.
std::optional<Groups> frameOf(const std::vector<Value> &values, const Extents &extents) {
  const Box *most = nullptr;
  for (const Value &value : values)
    if (const Box *box = value.box(); box && (!most || box->groups.size() > most->groups.size()))
      most = box;
  if (!most)
    return std::nullopt;
  std::vector<bool> isCovered(extents.size(), false);
  for (const Window::Group &group : most->groups)
    for (size_t axis : group.axes)
      isCovered[axis] = true;
  Groups frame;
  for (size_t axis = 0; axis < extents.size(); ++axis)
    if (extents[axis] > 1 && !isCovered[axis])
      frame.push_back({{axis}, 1, extents[axis], 0, extents[axis]});
  frame.insert(frame.end(), most->groups.begin(), most->groups.end());
  return frame;
}

using Parts = std::pair<mx::array, mx::array>;

/// A box in a frame that has its groups among others.
std::optional<Parts> boxIn(const Box &box, const Groups &frame) {
  if (cutsOf(box.groups) != cutsOf(frame))
    return std::nullopt;
  mx::Shape inside, outside;
  size_t next = 0;
  for (const Window::Group &group : frame) {
    bool isOwn = next < box.groups.size() && isSame(box.groups[next], group);
    inside.push_back(isOwn ? static_cast<int>(group.length()) : 1);
    outside.push_back(isOwn ? box.outside.shape(static_cast<int>(next)) : 1);
    next += isOwn;
  }
  if (next != box.groups.size())
    return std::nullopt;
  return Parts{mx::reshape(box.inside, inside), mx::reshape(box.outside, outside)};
}

/// The coordinates of the frame where all conditions hold, where each cuts one of them or none.
std::optional<Groups> heldIn(const std::vector<Affine> &conditions, const Groups &frame,
                             const Extents &extents) {
  Groups cut = frame;
  for (Window::Group &group : cut)
    group.low = 0, group.high = group.size;
  for (const Affine &condition : conditions) {
    Window::Group *found = nullptr;
    for (Window::Group &group : cut) {
      bool hasStep = std::any_of(group.axes.begin(), group.axes.end(),
                                 [&](size_t axis) { return condition.steps[axis] != 0; });
      if (!hasStep)
        continue;
      // One coordinate counts the axes of the group, the last one fastest.
      int64_t step = condition.steps[group.axes.back()];
      for (size_t i = group.axes.size(); i-- > 0; step *= extents[group.axes[i]])
        if (condition.steps[group.axes[i]] != step)
          return std::nullopt;
      if (found)
        return std::nullopt;
      found = &group;
    }
    if (!found)
      return std::nullopt;
    limit(*found, condition.constant, condition.steps[found->axes.back()]);
  }
  return cut;
}

/// A mask in a frame: true inside, and on the outside either true or false everywhere.
std::optional<Parts> maskIn(const std::vector<Affine> &conditions, const Groups &frame,
                            const Extents &extents) {
  std::optional<Groups> cut = heldIn(conditions, frame, extents);
  if (!cut || !areSame(*cut, frame))
    return std::nullopt;
  mx::Shape ones(frame.size(), 1);
  return Parts{mx::reshape(mx::array(true), ones), mx::reshape(mx::array(false), ones)};
}

/// Numbers that do not change along what the frame cuts.
std::optional<Parts> arrayIn(const Value &value, const Groups &frame) {
  const Extents &extents = value.extents();
  mx::Shape shape;
  std::vector<int> order;
  std::vector<bool> isPlaced(extents.size(), false);
  for (const Window::Group &group : frame) {
    int size = 1;
    for (size_t axis : group.axes) {
      size *= extents[axis];
      order.push_back(static_cast<int>(axis));
      isPlaced[axis] = true;
    }
    if (size != 1 && (isCut(group) || size != group.size))
      return std::nullopt;
    shape.push_back(size);
  }
  for (size_t axis = 0; axis < extents.size(); ++axis)
    if (!isPlaced[axis])
      order.push_back(static_cast<int>(axis));
  mx::array moved = value.array();
  if (!std::is_sorted(order.begin(), order.end()))
    moved = mx::transpose(moved, order);
  moved = mx::reshape(moved, shape);
  return Parts{moved, moved};
}

std::optional<Parts> partsIn(const Value &value, const Groups &frame, const Extents &extents) {
  if (const Box *box = value.box())
    return boxIn(*box, frame);
  if (isUniform(value.extents()))
    return arrayIn(value, frame);
  // With two cuts, the outside is no longer one coordinate wide.
  if (value.conditions())
    if (std::optional<Parts> mask = maskIn(*value.conditions(), frame, extents))
      return mask;
  return cutsOf(frame) == 1 ? arrayIn(value, frame) : std::nullopt;
}

bool isOutsideKnown(const std::vector<Value> &values) {
  return std::all_of(values.begin(), values.end(), [](const Value &value) {
    return value.box() ? value.box()->isOutsideKnown : value.isKnown();
  });
}

} // namespace

Value applied(const Type &type, const std::vector<Value> &values, const ArrayFunction &function) {
  Extents extents = values.front().extents();
  bool isKnown = true;
  for (const Value &value : values) {
    extents = join(extents, value.extents());
    isKnown &= value.isKnown();
  }
  if (std::optional<Groups> frame = frameOf(values, extents)) {
    std::vector<mx::array> insides, outsides;
    for (const Value &value : values) {
      std::optional<Parts> parts = partsIn(value, *frame, extents);
      if (!parts)
        break;
      insides.push_back(parts->first);
      outsides.push_back(parts->second);
    }
    if (insides.size() == values.size()) {
      mx::array inside = function(insides), outside = function(outsides);
      mx::Shape shape;
      for (const Window::Group &group : *frame)
        shape.push_back(static_cast<int>(group.length()));
      if (inside.shape() != shape)
        inside = mx::broadcast_to(inside, shape);
      return Value::of(type, extents, Box{*frame, inside, outside, isOutsideKnown(values)},
                       isKnown);
    }
  }
  std::vector<mx::array> arrays;
  for (const Value &value : values)
    arrays.push_back(value.array());
  return Value::of(type, extents, function(arrays), isKnown);
}

std::optional<Value> chosen(const Value &condition, const Value &a, const Value &b) {
  Extents extents = join(condition.extents(), join(a.extents(), b.extents()));
  std::optional<Groups> frame = frameOf({a, b}, extents);
  if (!condition.conditions() || !frame || cutsOf(*frame) == 0)
    return std::nullopt;
  std::optional<Parts> first = partsIn(a, *frame, extents), second = partsIn(b, *frame, extents);
  if (!first || !second || !maskIn(*condition.conditions(), *frame, extents))
    return std::nullopt;
  mx::Shape shape;
  for (const Window::Group &group : *frame)
    shape.push_back(static_cast<int>(group.length()));
  Box box{*frame, mx::broadcast_to(first->first, shape), second->second, isOutsideKnown({b})};
  return Value::of(a.type(), extents, std::move(box), a.isKnown() && b.isKnown());
}

std::optional<Value> reducedBox(const Value &value, const std::string &combiner, size_t axis) {
  const Box &box = *value.box();
  auto found = std::find_if(box.groups.begin(), box.groups.end(), [&](const Window::Group &group) {
    return group.axes == std::vector<size_t>{axis};
  });
  if (found == box.groups.end())
    return std::nullopt;
  auto place = static_cast<int>(found - box.groups.begin());
  bool isSum = combiner == "arith.addf" || combiner == "arith.addi";
  bool isRepeatable = combiner.starts_with("arith.max") || combiner.starts_with("arith.min") ||
                      combiner == "arith.andi" || combiner == "arith.ori";
  if (!isSum && !isRepeatable)
    return std::nullopt;
  std::optional<mx::array> inside = reduced(combiner, wide(box.inside), place);
  if (!inside)
    return std::nullopt;
  /// What a number becomes that is there `count` times.
  auto repeated = [&](const mx::array &number, int64_t count) {
    return isSum ? mx::multiply(number, mx::array(count, number.dtype())) : number;
  };
  bool isAlongOutside = box.outside.shape(place) != 1;
  mx::array around = isAlongOutside ? *reduced(combiner, wide(box.outside), place)
                                    : mx::squeeze(wide(box.outside), place);
  mx::Dtype dtype = box.inside.dtype();
  Box left{{}, *inside, isAlongOutside ? around : repeated(around, found->size), false};
  if (isCut(*found))
    left.inside =
        functions().at(combiner)({left.inside, repeated(around, found->size - found->length())});
  left.inside = mx::astype(left.inside, dtype);
  left.outside = mx::astype(left.outside, dtype);
  for (const Window::Group &group : box.groups)
    if (&group != &*found)
      left.groups.push_back(group);
  for (Window::Group &group : left.groups)
    for (size_t &other : group.axes)
      other -= other > axis;
  Extents extents = value.extents();
  extents.erase(extents.begin() + static_cast<std::ptrdiff_t>(axis));
  Type type{value.type().element, {}};
  if (cutsOf(left.groups) == 0)
    return Value::of(type, extents, toTile(left, extents), value.isKnown());
  return Value::of(type, extents, std::move(left), value.isKnown());
}

bool holdsInside(const Value &condition, const Groups &groups, const Extents &extents) {
  if (condition.constant())
    return *condition.constant() != 0;
  if (!condition.conditions())
    return false;
  std::optional<Groups> held =
      heldIn(*aligned(condition, extents.size()).conditions(), groups, extents);
  return held && std::equal(groups.begin(), groups.end(), held->begin(),
                            [](const Window::Group &wanted, const Window::Group &own) {
                              return own.low <= wanted.low && own.high >= wanted.high;
                            });
}

std::optional<mx::array> insideOf(const Box &box, const Groups &groups) {
  if (box.groups.size() != groups.size())
    return std::nullopt;
  mx::Shape start, stop;
  bool isWhole = true;
  for (size_t i = 0; i < groups.size(); ++i) {
    const Window::Group &own = box.groups[i], &wanted = groups[i];
    if (own.axes != wanted.axes || own.size != wanted.size || own.low > wanted.low ||
        own.high < wanted.high)
      return std::nullopt;
    start.push_back(static_cast<int>(wanted.low - own.low));
    stop.push_back(static_cast<int>(wanted.high - own.low));
    isWhole &= wanted.length() == own.length();
  }
  return isWhole ? box.inside : mx::slice(box.inside, start, stop);
}

std::optional<Box> boxAt(const Box &box, size_t axis, int index) {
  for (size_t i = 0; i < box.groups.size(); ++i) {
    if (box.groups[i].axes != std::vector<size_t>{axis} || isCut(box.groups[i]))
      continue;
    auto place = static_cast<int>(i);
    auto at = [&](const mx::array &array) {
      return mx::take(array, array.shape(place) == 1 ? 0 : index, place);
    };
    Box result{box.groups, at(box.inside), at(box.outside), box.isOutsideKnown};
    result.groups.erase(result.groups.begin() + place);
    return result;
  }
  return std::nullopt;
}

} // namespace triton_metal::graph
