#include "runtime/mlx/graph/Affine.h"

#include "mlx/ops.h"

#include <algorithm>
#include <limits>

namespace triton_metal::graph {

bool Affine::isConstant() const {
  return std::all_of(steps.begin(), steps.end(), [](int64_t step) { return step == 0; });
}

std::pair<int64_t, int64_t> Affine::range(const Extents &extents) const {
  __int128 low = constant, high = constant;
  for (size_t axis = 0; axis < steps.size(); ++axis) {
    __int128 reach = __int128(steps[axis]) * (extents[axis] - 1);
    (reach < 0 ? low : high) += reach;
  }
  auto cut = [](__int128 number) {
    return static_cast<int64_t>(std::clamp<__int128>(number, std::numeric_limits<int64_t>::min(),
                                                     std::numeric_limits<int64_t>::max()));
  };
  return {cut(low), cut(high)};
}

std::optional<Affine> add(const Affine &a, const Affine &b) {
  Affine sum = a;
  bool overflows = __builtin_add_overflow(a.constant, b.constant, &sum.constant);
  for (size_t axis = 0; axis < sum.steps.size(); ++axis)
    overflows |= __builtin_add_overflow(a.steps[axis], b.steps[axis], &sum.steps[axis]);
  return overflows ? std::nullopt : std::optional(std::move(sum));
}

std::optional<Affine> multiply(const Affine &a, int64_t factor) {
  Affine product = a;
  bool overflows = __builtin_mul_overflow(a.constant, factor, &product.constant);
  for (int64_t &step : product.steps)
    overflows |= __builtin_mul_overflow(step, factor, &step);
  return overflows ? std::nullopt : std::optional(std::move(product));
}

std::optional<std::pair<Affine, Affine>> divide(const Affine &a, int64_t divisor,
                                                const Extents &extents) {
  Affine quotient = Affine::of(0, a.steps.size()), remainder = quotient;
  for (size_t axis = 0; axis < a.steps.size(); ++axis)
    (a.steps[axis] % divisor == 0 ? quotient : remainder).steps[axis] = a.steps[axis];
  int64_t rest = ((a.constant % divisor) + divisor) % divisor;
  remainder.constant = rest;
  auto [low, high] = remainder.range(extents);
  if (low < 0 || high >= divisor)
    return std::nullopt;
  for (int64_t &step : quotient.steps)
    step /= divisor;
  quotient.constant = (a.constant - rest) / divisor;
  return std::pair(std::move(quotient), std::move(remainder));
}

std::optional<mx::array> dividedArray(const Affine &affine, int64_t divisor, bool isRemainder,
                                      const Extents &extents, mx::Dtype dtype) {
  constexpr size_t most = size_t(1) << 20;
  mx::Shape shape;
  size_t count = 1;
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    shape.push_back(affine.steps[axis] == 0 ? 1 : extents[axis]);
    count *= static_cast<size_t>(shape.back());
  }
  if (count > most)
    return std::nullopt;
  std::vector<int64_t> numbers;
  numbers.reserve(count);
  std::vector<int> index(extents.size(), 0);
  int64_t number = affine.constant;
  while (numbers.size() < count) {
    numbers.push_back(isRemainder ? number % divisor : number / divisor);
    for (size_t axis = shape.size(); axis-- > 0;) {
      number += affine.steps[axis];
      if (++index[axis] < shape[axis])
        break;
      number -= affine.steps[axis] * index[axis];
      index[axis] = 0;
    }
  }
  return mx::array(numbers.begin(), shape, dtype);
}

mx::array toArray(const Affine &affine, const Extents &extents, mx::Dtype dtype) {
  auto [low, high] = affine.range(extents);
  // Sums are made in 32 bits where all of them fit.
  mx::Dtype wide =
      low >= std::numeric_limits<int32_t>::min() && high <= std::numeric_limits<int32_t>::max()
          ? mx::int32
          : mx::int64;
  size_t rank = affine.steps.size();
  std::optional<mx::array> sum;
  for (size_t axis = 0; axis < rank; ++axis) {
    if (affine.steps[axis] == 0)
      continue;
    mx::Shape shape(rank, 1);
    shape[axis] = extents[axis];
    mx::array part = mx::reshape(
        mx::multiply(mx::arange(0, extents[axis], wide), mx::array(affine.steps[axis], wide)),
        shape);
    sum = sum ? mx::add(*sum, part) : part;
  }
  mx::array constant = mx::reshape(mx::array(affine.constant, wide), mx::Shape(rank, 1));
  if (!sum)
    sum = constant;
  else if (affine.constant != 0)
    sum = mx::add(*sum, constant);
  return mx::astype(*sum, dtype);
}

} // namespace triton_metal::graph
