#include "runtime/mlx/graph/Window.h"
#include "runtime/mlx/graph/Padding.h"

#include "mlx/ops.h"

#include <algorithm>
#include <numeric>

namespace triton_metal::graph {

namespace {

int64_t floorDivide(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

/// Whether `outer` continues the coordinate of the axis `inner`: in the place and in every
/// condition, its step is that of `inner` times the size of `inner`.
bool continues(const Affine &place, const std::vector<Affine> &conditions, const Extents &extents,
               size_t outer, size_t inner) {
  auto follows = [&](const Affine &affine) {
    return affine.steps[outer] == affine.steps[inner] * extents[inner];
  };
  return follows(place) && std::all_of(conditions.begin(), conditions.end(), follows);
}

mx::array sliceOf(const mx::array &array, size_t axis, int64_t from, int64_t to) {
  mx::Shape start(array.ndim(), 0), stop = array.shape();
  if (from == 0 && to == stop[axis])
    return array;
  start[axis] = static_cast<int>(from), stop[axis] = static_cast<int>(to);
  return mx::slice(array, start, stop);
}

/// The array with a box replaced, from this axis on: what lies before it, inside of it and behind.
mx::array joined(const mx::array &array, const mx::array &inside, const mx::Shape &start,
                 const mx::Shape &stop, size_t axis) {
  if (axis == start.size())
    return inside;
  int64_t from = start[axis], to = stop[axis], size = array.shape(static_cast<int>(axis));
  std::vector<mx::array> parts;
  if (from > 0)
    parts.push_back(sliceOf(array, axis, 0, from));
  parts.push_back(joined(sliceOf(array, axis, from, to), inside, start, stop, axis + 1));
  if (to < size)
    parts.push_back(sliceOf(array, axis, to, size));
  return parts.size() == 1 ? parts.front() : mx::concatenate(parts, static_cast<int>(axis));
}

/// The array with a slice replaced. A map of MLX 0.32's slice_update is wrong where the array is
/// mapped and what replaces the slice is not, and so is a map of its gradient, which replaces the
/// slice of a cotangent by zeros.
mx::array updated(const mx::array &array, const mx::array &inside, const mx::Shape &start,
                  const mx::Shape &stop) {
  if (!array.is_tracer() && !inside.is_tracer())
    return mx::slice_update(array, inside, start, stop);
  return joined(array, mx::astype(inside, array.dtype()), start, stop, 0);
}

} // namespace

int64_t Window::last() const {
  int64_t place = origin;
  for (const Group &group : groups)
    place += (group.length() - 1) * group.stride;
  return place;
}

void limit(Window::Group &group, int64_t constant, int64_t step) {
  if (step > 0)
    group.low = std::max(group.low, -floorDivide(constant, step));
  else
    group.high = std::min(group.high, floorDivide(constant, -step) + 1);
}

std::optional<Window> windowOf(const Affine &place, const std::vector<Affine> &conditions,
                               const Extents &extents) {
  std::vector<size_t> axes;
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    if (extents[axis] == 1)
      continue;
    if (place.steps[axis] < 0)
      return std::nullopt;
    if (place.steps[axis] > 0)
      axes.push_back(axis);
    else if (std::any_of(conditions.begin(), conditions.end(),
                         [&](const Affine &condition) { return condition.steps[axis] != 0; }))
      return std::nullopt;
  }
  std::stable_sort(axes.begin(), axes.end(),
                   [&](size_t a, size_t b) { return place.steps[a] > place.steps[b]; });

  Window window;
  window.origin = place.constant;
  for (size_t axis : axes) {
    if (!window.groups.empty()) {
      // Axes are added to the group from the greatest step down.
      Window::Group &group = window.groups.back();
      if (continues(place, conditions, extents, group.axes.back(), axis)) {
        group.axes.push_back(axis);
        group.stride = place.steps[axis];
        group.size *= extents[axis];
        continue;
      }
    }
    window.groups.push_back({{axis}, place.steps[axis], extents[axis], 0, 0});
  }
  for (Window::Group &group : window.groups)
    group.high = group.size;

  for (const Affine &condition : conditions) {
    Window::Group *cut = nullptr;
    for (Window::Group &group : window.groups) {
      if (condition.steps[group.axes.back()] == 0)
        continue;
      // Two coordinates in one condition cut the box askew.
      if (cut)
        return std::nullopt;
      cut = &group;
    }
    if (!cut) {
      window.isEmpty |= condition.constant < 0;
      continue;
    }
    limit(*cut, condition.constant, condition.steps[cut->axes.back()]);
  }
  for (Window::Group &group : window.groups)
    window.isEmpty |= group.low >= group.high;
  if (window.isEmpty)
    return window;

  // From the smallest stride on, all that is below a stride must be shorter than it.
  __int128 span = 1;
  for (auto group = window.groups.rbegin(); group != window.groups.rend(); ++group) {
    if (group->stride < span && group->length() > 1)
      return std::nullopt;
    span += __int128(group->stride) * (group->length() - 1);
    if (span > (__int128(1) << 62))
      return std::nullopt;
    window.origin += group->low * group->stride;
  }
  return window;
}

mx::array readWindow(const mx::array &elements, const Window &window) {
  mx::array view = elements;
  // The last axis of `view` holds what is not divided into coordinates yet; `from` is the place of
  // the first coordinate in it.
  int64_t from = window.origin;
  for (size_t i = 0; i < window.groups.size(); ++i) {
    const Window::Group &group = window.groups[i];
    size_t axis = view.ndim() - 1;
    int64_t length = view.shape(static_cast<int>(axis)), stride = group.stride;
    int64_t span = 1;
    for (size_t j = i + 1; j < window.groups.size(); ++j)
      span += window.groups[j].stride * (window.groups[j].length() - 1);
    if (group.length() == 1) {
      // Nothing is divided.
      view = mx::expand_dims(view, static_cast<int>(axis));
      continue;
    }
    if (stride == 1 && span == 1) {
      view = mx::expand_dims(sliceOf(view, axis, from, from + group.length()), -1);
      from = 0;
      continue;
    }
    int64_t row = from / stride, rest = from % stride;
    if (length % stride != 0 || rest + span > stride) {
      // Rows are counted from the first place on; the end of the last one may be missing.
      int64_t end = from + group.length() * stride;
      view = sliceOf(view, axis, from, std::min(end, length));
      if (end > length) {
        std::vector<std::pair<int, int>> widths(view.ndim(), {0, 0});
        widths[axis] = {0, static_cast<int>(end - length)};
        view = paddedWithZeros(view, widths);
      }
      row = 0, rest = 0;
    }
    mx::Shape shape = view.shape();
    shape.back() /= static_cast<int>(stride);
    shape.push_back(static_cast<int>(stride));
    view = mx::reshape(view, shape);
    view = sliceOf(view, axis, row, row + group.length());
    from = rest;
  }
  size_t axis = view.ndim() - 1;
  view = mx::squeeze(sliceOf(view, axis, from, from + 1), static_cast<int>(axis));
  return view;
}

std::optional<mx::array> writeWindow(const mx::array &elements, const Window &window,
                                     const mx::array &box) {
  int64_t size = elements.shape(0);
  if (box.size() == static_cast<size_t>(size))
    return mx::reshape(box, {-1});
  // The axes of the whole array in which the box is one slice.
  mx::Shape shape, start, stop;
  int64_t length = size, from = window.origin;
  for (size_t i = 0; i < window.groups.size(); ++i) {
    const Window::Group &group = window.groups[i];
    int64_t stride = group.stride, span = 1;
    for (size_t j = i + 1; j < window.groups.size(); ++j)
      span += window.groups[j].stride * (window.groups[j].length() - 1);
    if (group.length() == 1) {
      shape.push_back(1), start.push_back(0), stop.push_back(1);
      continue;
    }
    if (length % stride != 0 || from % stride + span > stride)
      return std::nullopt;
    shape.push_back(static_cast<int>(length / stride));
    start.push_back(static_cast<int>(from / stride));
    stop.push_back(static_cast<int>(from / stride + group.length()));
    length = stride, from %= stride;
  }
  shape.push_back(static_cast<int>(length));
  start.push_back(static_cast<int>(from));
  stop.push_back(static_cast<int>(from + 1));
  mx::array whole = mx::reshape(elements, shape), inside = mx::expand_dims(box, -1);
  return mx::reshape(updated(whole, inside, start, stop), {-1});
}

} // namespace triton_metal::graph
