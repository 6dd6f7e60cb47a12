#include "runtime/mlx/graph/Convolution.h"

#include "runtime/mlx/graph/Value.h"

#include "mlx/ops.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace triton_metal::graph {

namespace {

constexpr size_t none = ~size_t(0);

/// A coordinate of the convolved array.
struct Coordinate {
  enum Kind { Batch, Spatial, Group, Channel } kind;
  /// The axes that move it: one of the result, one of the sum, or for Spatial both.
  size_t kept = none, summed = none;
  /// Its step in memory; how far the two axes move it.
  int64_t stride;
  int64_t stride_kept = 1, stride_summed = 1;
  int size = 1;
};

/// Indices of an axis, from `low` up to `high`.
struct Range {
  int64_t low = 0, high = 0;
  bool operator==(const Range &other) const = default;
};

class Search {
public:
  Search(ProductSum sum, ConvolutionForm form)
      : x(std::move(sum.x)), w(std::move(sum.w)), axes(std::move(sum.axes)), form(form),
        members(axes.size()), ranges(axes.size()), isReversed(axes.size(), false),
        cutsFilters(axes.size(), false) {
    for (size_t axis = 0; axis < axes.size(); ++axis)
      members[axis] = {axis};
  }

  std::optional<Convolved> run() {
    for (Affine *affine : allAffines())
      for (size_t axis = 0; axis < axes.size(); ++axis)
        if (axes[axis].size == 1)
          affine->steps[axis] = 0;
    turnAround();
    mergeAxes();
    if (!limitAxes() || !classify())
      return std::nullopt;
    // The fewest shifts that explain all places. Without any, it is a product of matrices.
    for (size_t count = 0; count <= std::min<size_t>(3, pixels.size()); ++count) {
      std::vector<size_t> partners(sums.size(), none);
      if (tryPartners(partners, 0, count))
        return count == 0 ? std::nullopt : build();
    }
    return std::nullopt;
  }

private:
  std::vector<Affine *> affinesOf(ProductFactor &factor) {
    std::vector<Affine *> all = {&factor.place};
    for (Affine &condition : factor.conditions)
      all.push_back(&condition);
    return all;
  }
  std::vector<Affine *> allAffines() {
    std::vector<Affine *> all = affinesOf(x), others = affinesOf(w);
    all.insert(all.end(), others.begin(), others.end());
    return all;
  }

  static void reverse(Affine &affine, size_t axis, int size) {
    affine.constant += affine.steps[axis] * (size - 1);
    affine.steps[axis] = -affine.steps[axis];
  }

  /// The order of a sum's terms is free: the convolved array is read forwards. Filters that run
  /// backwards then are turned around.
  void turnAround() {
    for (size_t axis = 0; axis < axes.size(); ++axis) {
      if (!axes[axis].isSummed || axes[axis].size != axes[axis].complete)
        continue;
      if (x.place.steps[axis] < 0)
        for (Affine *affine : allAffines())
          reverse(*affine, axis, axes[axis].size);
      if (w.place.steps[axis] < 0) {
        isReversed[axis] = true;
        for (Affine *affine : affinesOf(w))
          reverse(*affine, axis, axes[axis].size);
      }
    }
  }

  /// Axes that follow on one another in all places and conditions are one.
  void mergeAxes() {
    std::vector<Affine *> all = allAffines();
    auto canMerge = [&](size_t outer, size_t inner) {
      const ProductSum::Axis &a = axes[outer], &b = axes[inner];
      return outer != inner && a.size > 1 && b.size > 1 && a.isSummed == b.isSummed &&
             (a.isSummed || (a.isFree && b.isFree)) && b.complete == b.size &&
             isReversed[outer] == isReversed[inner] &&
             std::all_of(all.begin(), all.end(), [&](const Affine *affine) {
               return affine->steps[outer] == affine->steps[inner] * b.size;
             });
    };
    for (bool isDone = false; !isDone;) {
      isDone = true;
      for (size_t outer = 0; outer < axes.size(); ++outer)
        for (size_t inner = 0; inner < axes.size(); ++inner) {
          if (!canMerge(outer, inner))
            continue;
          axes[outer].size *= axes[inner].size;
          axes[outer].complete *= axes[inner].size;
          for (Affine *affine : all)
            affine->steps[outer] = affine->steps[inner], affine->steps[inner] = 0;
          axes[inner].size = axes[inner].complete = 1;
          members[outer].insert(members[outer].end(), members[inner].begin(), members[inner].end());
          isDone = false;
        }
    }
    for (size_t axis = 0; axis < axes.size(); ++axis) {
      ranges[axis] = {0, axes[axis].size};
      fullSizes.push_back(axes[axis].size);
      isOfFilters.push_back(w.place.steps[axis] != 0);
    }
  }

  /// The only axis along which a condition changes; nothing for others.
  std::optional<size_t> axisOf(const Affine &condition) const {
    std::optional<size_t> found;
    for (size_t axis = 0; axis < axes.size(); ++axis)
      if (condition.steps[axis] != 0 && axes[axis].size > 1) {
        if (found)
          return std::nullopt;
        found = axis;
      }
    return found;
  }

  Range rangeOf(const ProductFactor &factor, size_t axis) const {
    Window::Group group{{axis}, 1, axes[axis].size, 0, axes[axis].size};
    for (const Affine &condition : factor.conditions)
      if (axisOf(condition) == axis)
        limit(group, condition.constant, condition.steps[axis]);
    return {group.low, group.high};
  }

  /// Leaves out the indices at which all products are 0 times 0, and those of the result at which
  /// the convolved array is 0 throughout.
  bool limitAxes() {
    for (size_t axis = 0; axis < axes.size(); ++axis) {
      if (axes[axis].size == 1)
        continue;
      Range ofX = rangeOf(x, axis), ofW = rangeOf(w, axis), whole{0, axes[axis].size};
      // Around the places of a digit, the image is padded: a count has no bound but its own.
      bool isPixel =
          axes[axis].isFree && !axes[axis].isSummed && w.place.steps[axis] == 0 && ofW == whole;
      if (ofX == ofW || isPixel) {
        if (ofX.low >= ofX.high)
          return false;
        cutsFilters[axis] = ofW != whole;
        cut(axis, ofX);
      }
    }
    for (size_t axis = 0; axis < axes.size(); ++axis)
      if (ranges[axis].high > axes[axis].complete)
        return false;
    return true;
  }

  void cut(size_t axis, Range range) {
    ranges[axis] = range;
    for (ProductFactor *factor : {&x, &w}) {
      std::erase_if(factor->conditions,
                    [&](const Affine &condition) { return axisOf(condition) == axis; });
      for (Affine *affine : affinesOf(*factor))
        affine->constant += affine->steps[axis] * range.low;
    }
    axes[axis].size = static_cast<int>(range.high - range.low);
    if (axes[axis].size == 1)
      for (Affine *affine : allAffines())
        affine->steps[axis] = 0;
  }

  bool classify() {
    for (size_t axis = 0; axis < axes.size(); ++axis) {
      if (axes[axis].size == 1) {
        // What is cut to one index is still an axis of the result.
        if (!axes[axis].isSummed && fullSizes[axis] > 1)
          single.push_back(axis);
        continue;
      }
      bool inX = x.place.steps[axis] != 0, inW = w.place.steps[axis] != 0;
      // What only conditions change along is no coordinate.
      for (ProductFactor *factor : {&x, &w})
        for (const Affine &condition : factor->conditions)
          if (condition.steps[axis] != 0 && factor->place.steps[axis] == 0)
            return false;
      if (axes[axis].isSummed) {
        if (!inX || !inW)
          return false;
        sums.push_back(axis);
      } else if (inX && inW) {
        groups.push_back(axis);
      } else if (inX) {
        pixels.push_back(axis);
      } else if (inW) {
        outputs.push_back(axis);
      } else {
        return false;
      }
    }
    auto byStep = [](const Affine &place) {
      return [&](size_t a, size_t b) { return place.steps[a] > place.steps[b]; };
    };
    std::stable_sort(sums.begin(), sums.end(), byStep(x.place));
    std::stable_sort(pixels.begin(), pixels.end(), byStep(x.place));
    std::stable_sort(groups.begin(), groups.end(), byStep(x.place));
    std::stable_sort(outputs.begin(), outputs.end(), byStep(w.place));
    // The search is over pairs of these.
    return sums.size() <= 5 && pixels.size() <= 6;
  }

  static std::optional<Window> windowInside(const ProductFactor &factor, const Extents &sizes) {
    std::optional<Window> window = windowOf(factor.place, factor.conditions, sizes);
    if (!window || window->isEmpty || window->origin < 0 ||
        window->last() >= factor.elements.shape(0))
      return std::nullopt;
    return window;
  }

  static Box boxOf(const ProductFactor &factor, const Window &window) {
    mx::array zero = mx::zeros(mx::Shape(window.groups.size(), 1), mx::float32);
    return {window.groups, mx::astype(readWindow(factor.elements, window), mx::float32), zero,
            true};
  }

  /// Tries all ways in which so many axes of the sum from `first` on shift one of the result.
  bool tryPartners(std::vector<size_t> &partners, size_t first, size_t count) {
    if (count == 0)
      return findCoordinates(partners);
    for (size_t i = first; i + count <= sums.size(); ++i) {
      for (size_t pixel : pixels) {
        if (std::find(partners.begin(), partners.end(), pixel) != partners.end())
          continue;
        partners[i] = pixel;
        if (tryPartners(partners, i + 1, count - 1))
          return true;
        partners[i] = none;
      }
    }
    return false;
  }

  bool findCoordinates(const std::vector<size_t> &partners) {
    coordinates.clear();
    auto stepOf = [&](size_t axis) { return x.place.steps[axis]; };
    auto add = [&](Coordinate coordinate) { coordinates.push_back(coordinate); };
    for (size_t axis : pixels) {
      auto found = std::find(partners.begin(), partners.end(), axis);
      if (found == partners.end()) {
        add({Coordinate::Batch, axis, none, stepOf(axis), 1, 1, axes[axis].size});
        continue;
      }
      size_t tap = sums[static_cast<size_t>(found - partners.begin())];
      int64_t stride = std::gcd(stepOf(axis), stepOf(tap));
      Coordinate pair{Coordinate::Spatial, axis, tap, stride, stepOf(axis) / stride,
                      stepOf(tap) / stride};
      __int128 size = __int128(pair.stride_kept) * (axes[axis].size - 1) +
                      __int128(pair.stride_summed) * (axes[tap].size - 1) + 1;
      if (stepOf(axis) <= 0 || stepOf(tap) <= 0 || size >= (__int128(1) << 31))
        return false;
      pair.size = static_cast<int>(size);
      add(pair);
    }
    for (size_t axis : groups)
      add({Coordinate::Group, axis, none, stepOf(axis), 1, 1, axes[axis].size});
    for (size_t i = 0; i < sums.size(); ++i)
      if (partners[i] == none)
        add({Coordinate::Channel, none, sums[i], stepOf(sums[i]), 1, 1, axes[sums[i]].size});
    std::stable_sort(coordinates.begin(), coordinates.end(),
                     [](const Coordinate &a, const Coordinate &b) { return a.kind < b.kind; });

    ProductFactor image{x.elements, Affine::of(x.place.constant, coordinates.size()), {}};
    sizes.clear();
    for (size_t i = 0; i < coordinates.size(); ++i) {
      image.place.steps[i] = coordinates[i].stride;
      sizes.push_back(coordinates[i].size);
    }
    for (const Affine &condition : x.conditions) {
      std::optional<Affine> moved = inCoordinates(condition);
      if (!moved)
        return false;
      image.conditions.push_back(*moved);
    }
    window = windowInside(image, sizes);
    return window.has_value();
  }

  /// The condition as one of coordinates; nothing where an axis counts otherwise than in them.
  std::optional<Affine> inCoordinates(const Affine &condition) const {
    Affine moved = Affine::of(condition.constant, coordinates.size());
    for (size_t i = 0; i < coordinates.size(); ++i) {
      const Coordinate &coordinate = coordinates[i];
      auto step = [&](size_t axis) { return axis == none ? 0 : condition.steps[axis]; };
      int64_t kept = step(coordinate.kept), summed = step(coordinate.summed);
      if (coordinate.kind != Coordinate::Spatial) {
        moved.steps[i] = coordinate.kept == none ? summed : kept;
        continue;
      }
      // As the strides have no common divisor, it is a whole number.
      if (__int128(kept) * coordinate.stride_summed != __int128(summed) * coordinate.stride_kept ||
          kept % coordinate.stride_kept != 0)
        return std::nullopt;
      moved.steps[i] = kept / coordinate.stride_kept;
    }
    return moved;
  }

  int productOf(const std::vector<size_t> &list) const {
    int product = 1;
    for (size_t axis : list)
      product *= axes[axis].size;
    return product;
  }

  std::optional<Convolved> build() {
    Extents ofFilters;
    for (size_t axis = 0; axis < axes.size(); ++axis)
      ofFilters.push_back(w.place.steps[axis] == 0 ? 1 : axes[axis].size);
    std::optional<Window> filterWindow = windowInside(w, ofFilters);
    if (!filterWindow)
      return std::nullopt;
    mx::array filters = toTile(boxOf(w, *filterWindow), ofFilters);

    // What surrounds the image along a coordinate is the convolution's padding.
    Box box = boxOf(x, *window);
    Taps taps;
    std::vector<size_t> batch, spatial, shifts, channels;
    std::string shape;
    std::vector<std::pair<int, int>> padding(coordinates.size(), {0, 0});
    for (size_t i = 0; i < coordinates.size(); ++i) {
      if (coordinates[i].kind != Coordinate::Spatial)
        continue;
      for (Window::Group &group : box.groups)
        if (group.axes == std::vector{i}) {
          padding[i] = {static_cast<int>(group.low), static_cast<int>(group.size - group.high)};
          sizes[i] = static_cast<int>(group.length());
          group.low = 0, group.high = group.size = group.length();
        }
    }
    for (size_t i = 0; i < coordinates.size(); ++i) {
      const Coordinate &coordinate = coordinates[i];
      switch (coordinate.kind) {
      case Coordinate::Batch:
        batch.push_back(coordinate.kept);
        break;
      case Coordinate::Spatial:
        spatial.push_back(coordinate.kept);
        shifts.push_back(coordinate.summed);
        taps.strides.push_back(static_cast<int>(coordinate.stride_kept));
        taps.dilations.push_back(static_cast<int>(coordinate.stride_summed));
        taps.padding.push_back(padding[i]);
        shape += (shape.empty() ? "" : "x") + std::to_string(axes[coordinate.summed].size);
        break;
      case Coordinate::Group:
        break;
      case Coordinate::Channel:
        channels.push_back(coordinate.summed);
        break;
      }
    }
    taps.groups = productOf(groups);
    int depth = productOf(channels);

    mx::array image = toTile(box, sizes);
    mx::Shape imageShape{productOf(batch)};
    for (size_t i = 0; i < coordinates.size(); ++i)
      if (coordinates[i].kind == Coordinate::Spatial)
        imageShape.push_back(sizes[i]);
    imageShape.push_back(taps.groups * depth);
    image = mx::reshape(image, imageShape);

    std::vector<size_t> order = groups;
    for (const std::vector<size_t> &list : {outputs, shifts, channels})
      order.insert(order.end(), list.begin(), list.end());
    mx::Shape filterShape{taps.groups * productOf(outputs)};
    for (size_t axis : shifts)
      filterShape.push_back(axes[axis].size);
    filterShape.push_back(depth);
    mx::array turned = filters;
    for (size_t axis : order)
      if (isReversed[axis])
        turned = mx::take(turned, mx::arange(axes[axis].size - 1, -1, -1, mx::int32),
                          static_cast<int>(axis));
    std::vector<int> permutation(order.begin(), order.end());
    for (size_t axis = 0; axis < axes.size(); ++axis)
      if (std::find(order.begin(), order.end(), axis) == order.end())
        permutation.push_back(static_cast<int>(axis));
    turned = mx::reshape(mx::transpose(turned, permutation), filterShape);

    std::optional<mx::array> result = sumOfTaps(image, turned, taps, form);
    if (!result)
      return std::nullopt;
    Convolved found{{}, *result, *result, "a convolution of " + shape};
    mx::Shape resultShape, outsideShape;
    for (const std::vector<size_t> *list : {&single, &batch, &spatial, &groups, &outputs})
      for (size_t axis : *list) {
        found.sides.push_back({members[axis], fullSizes[axis], static_cast<int>(ranges[axis].low),
                               static_cast<int>(ranges[axis].high), isOfFilters[axis],
                               cutsFilters[axis]});
        resultShape.push_back(axes[axis].size);
        outsideShape.push_back(isOfFilters[axis] ? axes[axis].size : 1);
      }
    found.result = mx::reshape(found.result, resultShape);
    std::vector<int> all(turned.ndim() - 1);
    std::iota(all.begin(), all.end(), 1);
    found.ofZeros = mx::reshape(mx::sum(mx::multiply(turned, mx::array(0.0f)), all), outsideShape);
    return found;
  }

  ProductFactor x, w;
  std::vector<ProductSum::Axis> axes;
  ConvolutionForm form;
  /// The axes of the sum that became one.
  std::vector<std::vector<size_t>> members;
  std::vector<Range> ranges;
  std::vector<int> fullSizes;
  std::vector<bool> isReversed, isOfFilters, cutsFilters;
  std::vector<size_t> sums, pixels, groups, outputs, single;
  std::vector<Coordinate> coordinates;
  Extents sizes;
  std::optional<Window> window;
};

} // namespace

std::optional<Convolved> convolved(ProductSum sum, ConvolutionForm form) {
  return Search(std::move(sum), form).run();
}

} // namespace triton_metal::graph
