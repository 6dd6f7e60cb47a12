// Attention as MLX's scaled_dot_product_attention.

#include "runtime/mlx/graph/Attention.h"
#include "runtime/mlx/graph/AxisGroups.h"
#include "runtime/mlx/graph/Functions.h"
#include "runtime/mlx/graph/Tracer.h"

#include "mlx/fast.h"
#include "mlx/ops.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace triton_metal::graph {

namespace {

/// What the outer axes are to attention.
struct Layout {
  /// Axes along which queries and keys change; those along which only queries do, but for `rows`.
  Axes batch, heads;
  /// The axis along which rows go on behind those of a tile.
  std::optional<size_t> rows;
};

std::optional<Layout> layoutOf(const Extents &queries, const Extents &keys, const Extents &values,
                               std::optional<size_t> steps, std::optional<size_t> rows,
                               bool isRowsFree) {
  Layout layout;
  layout.rows = rows;
  Axes only;
  for (size_t axis = 0; axis < outerAxes; ++axis) {
    bool isKey = keys[axis] > 1 || values[axis] > 1;
    if (axis == steps) {
      if (queries[axis] > 1)
        return std::nullopt;
    } else if (isKey && (queries[axis] == 1 || axis == rows)) {
      return std::nullopt;
    } else if (isKey) {
      layout.batch.push_back(axis);
    } else if (queries[axis] > 1 && axis != rows) {
      only.push_back(axis);
    }
  }
  // Where no mask tells which rows follow one another, the most blocks of rows do.
  if (isRowsFree && !only.empty()) {
    auto longest = std::max_element(only.begin(), only.end(),
                                    [&](size_t a, size_t b) { return queries[a] < queries[b]; });
    layout.rows = *longest;
    only.erase(longest);
  }
  layout.heads = only;
  return layout;
}

} // namespace

std::optional<float> Tracer::numberOf(const ScalarKey &key, const Type &type) const {
  if (key.bits)
    return mx::astype(constantOf(type, *key.bits).array(), mx::float32).item<float>();
  const Value &value = get(key.number);
  if (!value.isValid() || !value.isKnown() || !value.type().isFloat() || value.array().size() != 1)
    return std::nullopt;
  return mx::astype(value.array(), mx::float32).item<float>();
}

std::optional<Visible> Tracer::visibleOf(const Attention &attention, int rows, int columns) const {
  std::vector<Affine> conditions;
  for (int number : attention.visible) {
    Value value = aligned(get(number), outerAxes + 2);
    if (std::optional<int64_t> constant = value.constant()) {
      if (*constant == 0)
        return std::nullopt;
      continue;
    }
    if (!value.conditions())
      return std::nullopt;
    conditions.insert(conditions.end(), value.conditions()->begin(), value.conditions()->end());
  }
  return graph::visibleOf(conditions, rows, columns,
                          attention.loop ? std::optional(attention.loop->axis) : std::nullopt,
                          attention.loop ? attention.loop->size : 1);
}

bool Tracer::seesAll(const RescaledLoop &loop, const Visible &visible, int64_t queries,
                     int64_t keys, int rows, int columns) const {
  if (!loop.counts)
    return true;
  mx::array counts = mx::contiguous(*loop.counts);
  counts.eval();
  int64_t inner = 1, size = 1;
  if (visible.axis) {
    size = counts.shape(static_cast<int>(*visible.axis));
    for (int axis = static_cast<int>(*visible.axis) + 1; axis < static_cast<int>(counts.ndim());
         ++axis)
      inner *= counts.shape(axis);
  }
  const auto *numbers = counts.data<int64_t>();
  for (size_t i = 0; i < counts.size(); ++i) {
    int64_t block = static_cast<int64_t>(i) / inner % size;
    // Where all programs have one count, it is that of the last rows, too.
    int64_t last = size > 1 ? std::min(queries, (block + 1) * rows) - 1 : queries - 1;
    if (size > 1 && block * rows >= queries)
      continue;
    int64_t seen = visible.offset ? std::min(keys, last + *visible.offset + 1) : keys;
    if (numbers[i] * columns < seen)
      return false;
  }
  return true;
}

std::optional<Value> Tracer::attentionAt(const Operation &op) {
  std::optional<Attention> found = attentionOf(program, op, rescaled, zeros);
  if (!found || resultType(op).element != "f32")
    return std::nullopt;
  std::optional<size_t> steps;
  if (found->loop)
    steps = found->loop->axis;

  double scale = found->isBaseTwo ? std::numbers::ln2 : 1.0;
  for (const ScalarKey &key : found->scales) {
    std::optional<float> factor = numberOf(key, Type{"f32", {}});
    // A negative scale makes infinity of what is not visible.
    if (!factor || !(*factor > 0) || !std::isfinite(*factor))
      return std::nullopt;
    scale *= *factor;
  }

  const Value &a = operand(*found->scores, 0), &b = operand(*found->scores, 1),
              &c = get(found->values);
  if (!a.type().isFloat() || a.type().dtype() == mx::float64)
    return std::nullopt;
  Extents ofQueries = fullExtents(a.type(), a.extents()),
          ofKeys = fullExtents(b.type(), b.extents()),
          ofValues = fullExtents(c.type(), c.extents());
  constexpr size_t row = outerAxes, column = outerAxes + 1;
  int rows = ofQueries[row], columns = ofKeys[column];
  std::optional<Visible> visible = visibleOf(*found, rows, columns);
  if (!visible)
    return std::nullopt;
  // The mask may change where the queries do not.
  if (visible->axis)
    ofQueries[*visible->axis] = outer.sizes()[*visible->axis];
  std::optional<Layout> layout = layoutOf(ofQueries, ofKeys, ofValues, steps, visible->axis,
                                          !visible->axis && !visible->offset &&
                                              visible->rows == std::numeric_limits<int>::max());
  if (!layout)
    return std::nullopt;
  for (size_t axis = 0; axis < outerAxes; ++axis)
    if (axis == steps)
      ofKeys[axis] = ofValues[axis] = found->loop->size;
    else
      ofKeys[axis] = ofValues[axis] = std::max(ofKeys[axis], ofValues[axis]);

  int blocks = layout->rows ? ofQueries[*layout->rows] : 1;
  int64_t all = int64_t(blocks) * rows, queries = std::min(visible->rows, all),
          keys =
              std::min<int64_t>(visible->columns, int64_t(columns) * (steps ? ofKeys[*steps] : 1));
  // The first key is visible to every query: there are no rows without a number.
  if (queries < 1 || keys < 1 || (visible->offset && *visible->offset < 0) ||
      (found->loop && !seesAll(*found->loop, *visible, queries, keys, rows, columns)))
    return std::nullopt;
  if (visible->offset)
    keys = std::min(keys, queries + *visible->offset);

  auto with = [](std::optional<size_t> axis, size_t last) {
    return axis ? Axes{*axis, last} : Axes{last};
  };
  auto wideOf = [&](const Value &value, const Extents &extents) {
    return mx::astype(whole(value, extents), mx::float32);
  };
  auto first = [](const mx::array &array, int64_t size) {
    return array.shape(2) == size ? array : part(array, 2, 0, static_cast<int>(size));
  };
  std::vector<Axes> groups = {layout->batch, layout->heads, with(layout->rows, row), {column}};
  mx::array q = first(inGroups(wideOf(a, ofQueries), groups), queries);
  mx::array k =
      first(inGroups(wideOf(b, ofKeys), {layout->batch, {}, with(steps, column), {row}}), keys);
  mx::array v =
      first(inGroups(wideOf(c, ofValues), {layout->batch, {}, with(steps, row), {column}}), keys);

  std::string mode;
  std::optional<mx::array> mask;
  if (visible->offset && *visible->offset < keys - 1) {
    if (*visible->offset == keys - queries) {
      mode = "causal";
    } else {
      int64_t offset = *visible->offset;
      mask = mx::greater_equal(mx::expand_dims(mx::arange(offset, offset + queries, mx::int64), 1),
                               mx::expand_dims(mx::arange(0, keys, mx::int64), 0));
    }
  }
  mx::array result =
      mx::fast::scaled_dot_product_attention(q, k, v, static_cast<float>(scale), mode, mask);
  // Rows that see nothing.
  if (queries < all) {
    mx::Shape missing = result.shape();
    missing[2] = static_cast<int>(all - queries);
    result = mx::concatenate(
        {result, mx::full(missing, std::numeric_limits<float>::quiet_NaN(), mx::float32)}, 2);
  }

  Extents extents = ofQueries;
  extents[column] = ofValues[column];
  summary.raised.emplace_back(op.place, "scaled dot-product attention");
  return Value::of(resultType(op), extents, fromGroups(result, groups, extents),
                   a.isKnown() && b.isKnown() && c.isKnown());
}

} // namespace triton_metal::graph
