#include "runtime/mlx/graph/Taps.h"
#include "runtime/mlx/graph/Padding.h"

#include "mlx/device.h"
#include "mlx/ops.h"

#include <algorithm>

namespace triton_metal::graph {

/// A graph holds each slice. Filters with more taps than this are no sum of slices.
constexpr int mostSlices = 64;

static int numTaps(const mx::array &filters) {
  int count = 1;
  for (int axis = 1; axis + 1 < static_cast<int>(filters.ndim()); ++axis)
    count *= filters.shape(axis);
  return count;
}

/// The product of what one tap sees of an image, (N, ..., C), with its filters, (C / groups, O).
static mx::array productOfTap(const mx::array &image, const mx::array &filters, int groups) {
  int depth = filters.shape(0), outputs = filters.shape(1) / groups;
  mx::Shape split = image.shape();
  int rows = static_cast<int>(image.size()) / split.back();
  split.back() = groups * outputs;
  if (depth == 1) {
    mx::array products = mx::multiply(mx::reshape(image, {rows, groups, 1}),
                                      mx::reshape(filters, {1, groups, outputs}));
    return mx::reshape(products, split);
  }
  if (groups == 1)
    return mx::reshape(mx::matmul(mx::reshape(image, {rows, depth}), filters), split);
  mx::array left = mx::transpose(mx::reshape(image, {rows, groups, depth}), {1, 0, 2});
  mx::array right = mx::transpose(mx::reshape(filters, {depth, groups, outputs}), {1, 0, 2});
  return mx::reshape(mx::transpose(mx::matmul(left, right), {1, 0, 2}), split);
}

static mx::array paddedFor(const Taps &taps, const mx::array &image) {
  std::vector<std::pair<int, int>> widths(image.ndim(), {0, 0});
  std::copy(taps.padding.begin(), taps.padding.end(), widths.begin() + 1);
  bool isPadded = std::any_of(widths.begin(), widths.end(),
                              [](auto width) { return width.first > 0 || width.second > 0; });
  return isPadded ? paddedWithZeros(image, widths) : image;
}

/// The padding where it is the same on both sides, and not longer than the filters. For others, the
/// gradient of MLX 0.32 has wrong numbers or a wrong shape.
static std::optional<std::vector<int>> evenPadding(const mx::array &filters, const Taps &taps) {
  std::vector<int> padding;
  for (size_t i = 0; i < taps.padding.size(); ++i) {
    auto [low, high] = taps.padding[i];
    // Less than a stride more makes no further result.
    if (low < high || low - high >= taps.strides[i] ||
        low > taps.dilations[i] * (filters.shape(static_cast<int>(i) + 1) - 1))
      return std::nullopt;
    padding.push_back(low);
  }
  return padding;
}

static mx::array sumOfSlices(mx::array image, const mx::array &filters, const Taps &taps) {
  size_t dimensions = taps.strides.size();
  image = paddedFor(taps, image);
  // The filters of each tap, (taps, C, O). MLX multiplies by a matrix whose rows lie side by side
  // twice as fast on the CPU as by one whose columns do. The gradient of an image takes the
  // transposes.
  int count = numTaps(filters), outputs = filters.shape(0), depth = filters.shape(-1);
  bool isTransposed = image.is_tracer();
  std::vector<int> order = isTransposed ? std::vector{1, 0, 2} : std::vector{1, 2, 0};
  mx::array turned =
      mx::contiguous(mx::transpose(mx::reshape(filters, {outputs, count, depth}), order));
  std::vector<mx::array> ofTaps =
      count > 1 ? mx::split(turned, count, 0) : std::vector<mx::array>{turned};
  std::optional<mx::array> sum;
  for (int number = 0; number < count; ++number) {
    mx::Shape start(image.ndim(), 0), stop = image.shape(), steps(image.ndim(), 1);
    int rest = number;
    for (size_t i = dimensions; i-- > 0;) {
      auto axis = static_cast<int>(i) + 1;
      int size = filters.shape(axis), tap = rest % size;
      rest /= size;
      int length = image.shape(axis) - (size - 1) * taps.dilations[i];
      int last = (length - 1) / taps.strides[i] * taps.strides[i];
      start[i + 1] = tap * taps.dilations[i];
      // Up to the last one that a stride reaches, so that a slice is as long as all others. Of one
      // element, vmap of MLX 0.32 takes two where there is a step.
      stop[i + 1] = start[i + 1] + last + 1;
      steps[i + 1] = last == 0 ? 1 : taps.strides[i];
    }
    mx::array own = mx::squeeze(ofTaps[static_cast<size_t>(number)], 0);
    if (isTransposed)
      own = mx::transpose(own);
    mx::array product = productOfTap(mx::slice(image, start, stop, steps), own, taps.groups);
    sum = sum ? mx::add(*sum, product) : product;
  }
  return *sum;
}

/// Whether a filter is longer than the image or the result. There, MLX 0.32 reads outside of arrays
/// on the CPU, or in the gradient.
static bool areLong(const mx::array &image, const mx::array &filters, const Taps &taps) {
  for (size_t i = 0; i < taps.strides.size(); ++i) {
    auto axis = static_cast<int>(i) + 1;
    int reach = taps.dilations[i] * (filters.shape(axis) - 1);
    auto [low, high] = taps.padding[i];
    int results = (image.shape(axis) + low + high - reach - 1) / taps.strides[i] + 1;
    if (reach >= image.shape(axis) || reach >= results)
      return true;
  }
  return false;
}

std::optional<mx::array> sumOfTaps(const mx::array &image, const mx::array &filters,
                                   const Taps &taps, ConvolutionForm form) {
  bool isGeneral = form == ConvolutionForm::General;
  // vmap of MLX 0.32 mixes up the groups where only the filters are mapped, and has no groups in
  // three dimensions.
  if (taps.groups > 1)
    isGeneral &= taps.strides.size() < 3 && !filters.is_tracer();
  if (mx::default_device() == mx::Device::cpu)
    isGeneral &= !areLong(image, filters, taps);
  if (!isGeneral && numTaps(filters) <= mostSlices)
    return sumOfSlices(image, filters, taps);
  // On the CPU, MLX has a product of matrices for these only.
  auto areOne = [](const std::vector<int> &sizes) {
    return std::all_of(sizes.begin(), sizes.end(), [](int size) { return size == 1; });
  };
  bool isProduct = taps.groups == 1 && areOne(taps.dilations) && areOne(taps.strides);
  if (!isGeneral && !isProduct)
    return std::nullopt;
  std::vector<int> none(taps.strides.size(), 0), ones(taps.strides.size(), 1);
  std::optional<std::vector<int>> padding = evenPadding(filters, taps);
  return mx::conv_general(padding ? image : paddedFor(taps, image), filters, taps.strides,
                          padding ? *padding : none, padding ? *padding : none, taps.dilations,
                          ones, taps.groups);
}

} // namespace triton_metal::graph
