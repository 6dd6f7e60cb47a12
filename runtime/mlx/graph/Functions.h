// What operations do to each element, in MLX's functions.
#ifndef TRITON_METAL_RUNTIME_MLX_GRAPH_FUNCTIONS_H
#define TRITON_METAL_RUNTIME_MLX_GRAPH_FUNCTIONS_H

#include "mlx/array.h"
#include "mlx/utils.h"

#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

namespace triton_metal::graph {

namespace mx = mlx::core;

using Arrays = std::vector<mx::array>;
using Function = std::function<mx::array(const Arrays &)>;

/// The functions of operations on elements, by their names in MLIR. `tt.clampf`, which depends on
/// an attribute, is there without a function.
const std::unordered_map<std::string, Function> &functions();

/// The unsigned integers of the same width.
mx::Dtype unsignedOf(mx::Dtype dtype);

/// MLX's functions, but for a defect of its vmap: MLX 0.32 mixes up the axes of these where only
/// the second operand is mapped.
mx::array notEqual(const mx::array &x, const mx::array &y, mx::StreamOrDevice stream = {});
mx::array bitwiseAnd(const mx::array &x, const mx::array &y, mx::StreamOrDevice stream = {});
mx::array bitwiseOr(const mx::array &x, const mx::array &y, mx::StreamOrDevice stream = {});
mx::array bitwiseXor(const mx::array &x, const mx::array &y, mx::StreamOrDevice stream = {});
mx::array leftShift(const mx::array &x, const mx::array &y, mx::StreamOrDevice stream = {});
mx::array rightShift(const mx::array &x, const mx::array &y, mx::StreamOrDevice stream = {});

/// Short floats as float32: their sums are added as floats and rounded once.
mx::array wide(const mx::array &x);

/// The elements from one index along an axis up to another one.
mx::array part(const mx::array &array, size_t axis, int from, int to, int step = 1);

/// The bits as unsigned integers; truth values as bytes.
mx::array asUnsigned(const mx::array &x);

/// Integers that become floats exactly, with the digits that say how they round to fewer: a
/// conversion through a float then rounds once.
mx::array asExactFloats(const mx::array &integers);

/// Doubles as floats whose last digit says whether others follow, for the same reason.
mx::array asOddFloats(const mx::array &doubles);

} // namespace triton_metal::graph

#endif // TRITON_METAL_RUNTIME_MLX_GRAPH_FUNCTIONS_H
