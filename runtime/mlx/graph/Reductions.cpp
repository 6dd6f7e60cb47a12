#include "runtime/mlx/graph/Reductions.h"

#include "runtime/mlx/graph/Functions.h"

#include "mlx/ops.h"
#include "mlx/transforms.h"

#include <algorithm>
#include <limits>

namespace triton_metal::graph {

std::string combinerOf(const Operation &op) {
  const Block &block = *op.regions.front();
  if (block.operations.size() != 2 || block.arguments.size() != 2)
    return "";
  const Operation &inner = block.operations.front(), &end = block.operations.back();
  std::vector<int> operands = inner.operands, arguments = block.arguments;
  std::sort(operands.begin(), operands.end());
  std::sort(arguments.begin(), arguments.end());
  return operands == arguments && end.operands == inner.results ? inner.name : "";
}

/// The greatest or the least number. NaN counts as missing, unless there is nothing else.
static mx::array extremeNumber(bool isMax, const mx::array &numbers, int axis, bool keepsAxis) {
  using Arrays = std::vector<mx::array>;
  auto find = [=](const Arrays &inputs) -> Arrays {
    const mx::array &x = inputs[0];
    double least = std::numeric_limits<double>::infinity();
    mx::array isNan = mx::isnan(x);
    mx::array none = mx::astype(mx::array(isMax ? -least : least, mx::float32), x.dtype());
    mx::array kept = mx::where(isNan, none, x);
    mx::array result = isMax ? mx::max(kept, axis, keepsAxis) : mx::min(kept, axis, keepsAxis);
    mx::array nan = mx::astype(mx::array(std::numeric_limits<float>::quiet_NaN()), x.dtype());
    return {mx::where(mx::all(isNan, axis, keepsAxis), nan, result)};
  };
  if (!numbers.is_tracer())
    return find({numbers}).front();
  // Those that are equal to the result share its gradient, as MLX has it. NaN is equal to nothing,
  // so the gradient needs none of the steps above.
  auto share = [=](const Arrays &inputs, const Arrays &gradients, const Arrays &outputs) -> Arrays {
    auto along = [&](const mx::array &x) { return keepsAxis ? x : mx::expand_dims(x, axis); };
    mx::array isFound = mx::equal(inputs[0], along(outputs[0]));
    mx::array count = mx::sum(mx::astype(isFound, mx::float32), axis, true);
    mx::array each = mx::divide(along(gradients[0]), mx::maximum(count, mx::array(1.0f)));
    mx::array zero = mx::array(0.0f, inputs[0].dtype());
    return {mx::where(isFound, mx::astype(each, inputs[0].dtype()), zero)};
  };
  return mx::custom_vjp(find, share)({numbers}).front();
}

std::optional<mx::array> reduced(const std::string &name, const mx::array &x, int axis,
                                 bool keepsAxis) {
  if (x.dtype() == mx::bool_) {
    if (name == "arith.andi" || name == "arith.muli")
      return mx::all(x, axis, keepsAxis);
    if (name == "arith.ori")
      return mx::any(x, axis, keepsAxis);
    return std::nullopt;
  }
  if (name == "arith.addf" || name == "arith.addi")
    return mx::astype(mx::sum(wide(x), axis, keepsAxis), x.dtype());
  if (name == "arith.mulf" || name == "arith.muli")
    return mx::astype(mx::prod(wide(x), axis, keepsAxis), x.dtype());
  if (name == "arith.maxsi" || name == "arith.maximumf")
    return mx::max(x, axis, keepsAxis);
  if (name == "arith.minsi" || name == "arith.minimumf")
    return mx::min(x, axis, keepsAxis);
  if (name == "arith.maxui")
    return mx::view(mx::max(asUnsigned(x), axis, keepsAxis), x.dtype());
  if (name == "arith.minui")
    return mx::view(mx::min(asUnsigned(x), axis, keepsAxis), x.dtype());
  if (name == "arith.maxnumf" || name == "arith.minnumf")
    return extremeNumber(name == "arith.maxnumf", x, axis, keepsAxis);
  return std::nullopt;
}

mx::array neutral(const std::string &name, const mx::array &like) {
  mx::Dtype dtype = like.dtype();
  auto integer = [&](int64_t bits) {
    return dtype == mx::bool_ ? mx::array(bits != 0)
                              : mx::astype(mx::array(bits, mx::int64), dtype);
  };
  bool isFloat = mx::issubdtype(dtype, mx::floating);
  auto extreme = [&](bool isLeast) {
    double infinity = std::numeric_limits<double>::infinity();
    if (isFloat)
      return mx::astype(mx::array(isLeast ? -infinity : infinity, mx::float32), dtype);
    int64_t most = std::numeric_limits<int64_t>::max() >> (64 - 8 * dtype.size());
    return integer(isLeast ? ~most : most);
  };
  if (name == "arith.mulf" || name == "arith.muli")
    return isFloat ? mx::astype(mx::array(1.0f), dtype) : integer(1);
  if (name == "arith.andi" || name == "arith.minui")
    return integer(-1);
  if (name == "arith.maxui")
    return integer(0);
  if (name.starts_with("arith.max"))
    return extreme(true);
  if (name.starts_with("arith.min"))
    return extreme(false);
  return isFloat ? mx::astype(mx::array(0.0f), dtype) : integer(0);
}

} // namespace triton_metal::graph
