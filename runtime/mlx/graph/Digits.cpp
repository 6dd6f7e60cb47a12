#include "runtime/mlx/graph/Digits.h"

#include "mlx/ops.h"
#include "mlx/transforms.h"

#include <algorithm>

namespace triton_metal::graph {

/// Longer arrays of places are not looked at.
constexpr size_t mostNumbers = size_t(1) << 24;

std::optional<Digits> Digits::of(const Extents &extents, const std::vector<CountedAxes> &counted) {
  Digits result;
  result.extents = extents;
  std::vector<bool> isCounted(extents.size(), false);
  for (const CountedAxes &count : counted) {
    Group group;
    group.axes = count.axes;
    for (size_t axis : count.axes) {
      if (isCounted[axis])
        return std::nullopt;
      isCounted[axis] = true;
      group.size *= extents[axis];
    }
    group.limit = group.size;
    std::vector<int64_t> worths = {1};
    for (int64_t divisor : count.divisors) {
      if (divisor <= 1 || divisor >= group.size)
        continue;
      if (divisor % worths.back() != 0)
        return std::nullopt;
      worths.push_back(divisor);
    }
    std::reverse(worths.begin(), worths.end());
    group.worths = worths;
    for (size_t i = 0; i < worths.size(); ++i) {
      int64_t below = i == 0 ? group.size : worths[i - 1];
      group.digits.push_back(result.all.size());
      result.all.push_back({none, static_cast<int>(result.grouped.size()),
                            static_cast<int>((below + worths[i] - 1) / worths[i]),
                            static_cast<int>(below / worths[i])});
    }
    result.grouped.push_back(std::move(group));
  }
  for (size_t axis = 0; axis < extents.size(); ++axis)
    if (!isCounted[axis])
      result.all.push_back({axis, -1, extents[axis], extents[axis]});
  return result;
}

std::optional<int64_t> Digits::stepOf(const Affine &affine, const Group &group) const {
  int64_t step = affine.steps[group.axes.back()], whole = step;
  for (size_t i = group.axes.size(); i-- > 0; whole *= extents[group.axes[i]])
    if (affine.steps[group.axes[i]] != whole)
      return std::nullopt;
  return step;
}

std::optional<std::pair<size_t, int64_t>> Digits::boundOf(const Affine &condition) const {
  for (size_t i = 0; i < grouped.size(); ++i) {
    const Group &group = grouped[i];
    // The last digit that counts: the bound is a multiple of its worth.
    size_t last = group.digits.size();
    while (last > 0 && condition.steps[group.digits[last - 1]] == 0)
      --last;
    if (last == 0)
      continue;
    int64_t step = condition.steps[group.digits[--last]], worth = group.worths[last];
    if (step >= 0 || condition.constant < 0)
      return std::nullopt;
    Affine rest = condition;
    for (size_t j = 0; j <= last; ++j) {
      int64_t wanted = all[group.digits[j]].size > 1 ? step * (group.worths[j] / worth) : 0;
      rest.steps[group.digits[j]] -= wanted;
    }
    if (!rest.isConstant())
      return std::nullopt;
    return std::pair(i, (condition.constant / -step + 1) * worth);
  }
  return std::nullopt;
}

void Digits::setLimit(size_t number, int64_t limit) {
  Group &group = grouped[number];
  group.limit = limit;
  Axis &first = all[group.digits.front()];
  first.size = static_cast<int>((limit + group.worths.front() - 1) / group.worths.front());
  first.complete = static_cast<int>(limit / group.worths.front());
}

std::optional<Affine> Digits::split(const Affine &affine) const {
  Affine result = Affine::of(affine.constant, all.size());
  for (size_t i = 0; i < all.size(); ++i)
    if (all[i].group < 0 && all[i].size > 1)
      result.steps[i] = affine.steps[all[i].axis];
  for (const Group &group : grouped) {
    std::optional<int64_t> step = stepOf(affine, group);
    if (!step)
      return std::nullopt;
    for (size_t i = 0; i < group.digits.size(); ++i)
      if (all[group.digits[i]].size > 1)
        result.steps[group.digits[i]] = *step * group.worths[i];
  }
  return result;
}

std::optional<Extents> Digits::wholeSizes(const Value &value) const {
  Extents sizes = value.extents();
  for (const Group &group : grouped)
    if (std::any_of(group.axes.begin(), group.axes.end(),
                    [&](size_t axis) { return sizes[axis] > 1; }))
      for (size_t axis : group.axes)
        sizes[axis] = extents[axis];
  size_t count = 1;
  for (int size : sizes)
    count *= static_cast<size_t>(size);
  return value.isKnown() && count <= mostNumbers ? std::optional(sizes) : std::nullopt;
}

std::optional<Affine> Digits::fit(const std::vector<int64_t> &numbers, const Extents &sizes) const {
  std::vector<size_t> places(extents.size());
  size_t place = 1;
  for (size_t axis = extents.size(); axis-- > 0; place *= static_cast<size_t>(sizes[axis]))
    places[axis] = place;
  // The steps are those to each axis's and digit's index 1.
  Affine result = Affine::of(numbers[0], all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    const Axis &axis = all[i];
    if (axis.size == 1)
      continue;
    size_t at = 0;
    if (axis.group < 0) {
      if (sizes[axis.axis] == 1)
        continue;
      at = places[axis.axis];
    } else {
      const Group &group = grouped[static_cast<size_t>(axis.group)];
      if (sizes[group.axes.front()] == 1)
        continue;
      auto digit = std::find(group.digits.begin(), group.digits.end(), i) - group.digits.begin();
      int64_t rest = group.worths[static_cast<size_t>(digit)];
      for (size_t j = group.axes.size(); j-- > 0; rest /= extents[group.axes[j]])
        at += places[group.axes[j]] * static_cast<size_t>(rest % extents[group.axes[j]]);
    }
    if (__builtin_sub_overflow(numbers[at], numbers[0], &result.steps[i]))
      return std::nullopt;
  }
  return isEverywhere(result, numbers, sizes) ? std::optional(result) : std::nullopt;
}

bool Digits::isEverywhere(const Affine &affine, const std::vector<int64_t> &numbers,
                          const Extents &sizes) const {
  /// An axis along which the numbers change: its own step, or how far it moves a count.
  struct Moving {
    int size;
    int64_t step = 0, weight = 0;
    size_t count = none;
    int index = 0;
  };
  /// What each count adds.
  struct Count {
    std::vector<int64_t> sums;
    int64_t at = 0;
  };
  std::vector<Moving> moving;
  std::vector<size_t> placeOf(extents.size(), none);
  for (size_t axis = 0; axis < extents.size(); ++axis)
    if (sizes[axis] > 1) {
      placeOf[axis] = moving.size();
      moving.push_back({sizes[axis]});
    }
  for (size_t i = 0; i < all.size(); ++i)
    if (all[i].group < 0 && placeOf[all[i].axis] != none)
      moving[placeOf[all[i].axis]].step = affine.steps[i];
  std::vector<Count> counts;
  for (const Group &group : grouped) {
    if (placeOf[group.axes.front()] == none)
      continue;
    int64_t weight = 1;
    for (size_t j = group.axes.size(); j-- > 0; weight *= extents[group.axes[j]]) {
      moving[placeOf[group.axes[j]]].count = counts.size();
      moving[placeOf[group.axes[j]]].weight = weight;
    }
    Count count;
    for (int64_t number = 0; number < group.limit; ++number) {
      int64_t rest = number, sum = 0;
      for (size_t i = 0; i < group.digits.size(); ++i) {
        sum += affine.steps[group.digits[i]] * (rest / group.worths[i]);
        rest %= group.worths[i];
      }
      count.sums.push_back(sum);
    }
    counts.push_back(std::move(count));
  }
  int64_t plain = affine.constant;
  for (size_t number = 0; number < numbers.size(); ++number) {
    int64_t expected = plain;
    bool isPossible = true;
    for (const Count &count : counts) {
      isPossible = isPossible && count.at < static_cast<int64_t>(count.sums.size());
      if (isPossible)
        expected += count.sums[static_cast<size_t>(count.at)];
    }
    if (isPossible && numbers[number] != expected)
      return false;
    for (size_t axis = moving.size(); axis-- > 0;) {
      Moving &own = moving[axis];
      ++own.index;
      plain += own.step;
      if (own.count != none)
        counts[own.count].at += own.weight;
      if (own.index < own.size)
        break;
      plain -= own.step * own.index;
      if (own.count != none)
        counts[own.count].at -= own.weight * own.index;
      own.index = 0;
    }
  }
  return true;
}

/// The numbers of an array that is computed already, row by row.
static std::vector<int64_t> integersOf(mx::array array) {
  if (array.dtype() != mx::int32 && array.dtype() != mx::int64)
    array = mx::astype(array, mx::int64);
  if (!array.is_available() || !array.flags().row_contiguous) {
    array = mx::contiguous(array);
    mx::eval(array);
  }
  if (array.dtype() == mx::int64)
    return {array.data<int64_t>(), array.data<int64_t>() + array.size()};
  return {array.data<int32_t>(), array.data<int32_t>() + array.size()};
}

std::optional<std::vector<Affine>> Digits::affineOf(const std::vector<Value> &values) const {
  std::vector<Affine> results;
  // Arrays are computed together.
  std::vector<mx::array> numbers;
  std::vector<std::pair<size_t, Extents>> ofNumbers;
  for (const Value &value : values) {
    const Affine *affine = value.affine();
    if (const Sum *sum = value.sum())
      affine = &sum->offset;
    std::optional<Affine> known = affine ? split(*affine) : Affine::of(0, all.size());
    if (!known)
      return std::nullopt;
    if (!value.affine()) {
      const Value &base = value.sum() ? value.sum()->base : value;
      std::optional<Extents> sizes = wholeSizes(base);
      if (!sizes)
        return std::nullopt;
      mx::array array = base.array();
      if (array.shape() != shapeOf(*sizes))
        array = mx::broadcast_to(array, shapeOf(*sizes));
      numbers.push_back(array);
      ofNumbers.emplace_back(results.size(), *sizes);
    }
    results.push_back(std::move(*known));
  }
  mx::eval(numbers);
  for (size_t i = 0; i < numbers.size(); ++i) {
    std::optional<Affine> fitted = fit(integersOf(numbers[i]), ofNumbers[i].second);
    Affine &result = results[ofNumbers[i].first];
    std::optional<Affine> both = fitted ? add(result, *fitted) : std::nullopt;
    if (!both)
      return std::nullopt;
    result = std::move(*both);
  }
  return results;
}

} // namespace triton_metal::graph
