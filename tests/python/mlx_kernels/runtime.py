"""Indexing and compiled functions. MLX makes these kernels while it runs: gather and scatter are a kernel around a function, and
of compiled functions the kernel is written for each."""

from __future__ import annotations

from collections.abc import Iterator

from mlx_kernels.family import FLOATS, TYPES, Family, Instance, instance

INDICES = ("uint32", "int32", "int64", "uint8")

GATHER = """
template <typename T, typename I, int N, int D, typename L>
[[kernel]] void gather(
    const device T *src [[buffer(0)]], device T *out [[buffer(1)]], const constant int *shape [[buffer(2)]],
    const constant int64_t *strides [[buffer(3)]], const constant size_t &ndim [[buffer(4)]],
    const constant int *slices [[buffer(5)]], const constant int *axes [[buffer(6)]],
    const constant int *index_shapes [[buffer(7)]], const constant int64_t *index_strides [[buffer(8)]],
    const constant bool *contiguous [[buffer(9)]], const constant int &index_ndim [[buffer(10)]],
    const device I *first [[buffer(20)]], const device I *second [[buffer(21)]],
    uint3 at [[thread_position_in_grid]], uint3 grid [[threads_per_grid]]) {
  if constexpr (N == 1) {
    Indices<I, N> indices{{{first}}, index_shapes, index_strides, contiguous, index_ndim};
    return gather_impl<T, I, N, D, L>(src, out, shape, strides, ndim, slices, axes, indices, at, grid);
  } else {
    Indices<I, N> indices{{{first, second}}, index_shapes, index_strides, contiguous, index_ndim};
    return gather_impl<T, I, N, D, L>(src, out, shape, strides, ndim, slices, axes, indices, at, grid);
  }
}
"""
SCATTER = """
template <typename T, typename I, typename Op, int N, bool contiguous_updates, int work, typename L>
[[kernel]] void scatter(
    const device T *updates [[buffer(1)]], device mlx_atomic<T> *out [[buffer(2)]],
    const constant int *shape [[buffer(3)]], const constant int64_t *strides [[buffer(4)]],
    const constant size_t &ndim [[buffer(5)]], const constant size_t &size [[buffer(6)]],
    const constant int *out_shape [[buffer(7)]], const constant int64_t *out_strides [[buffer(8)]],
    const constant size_t &out_ndim [[buffer(9)]], const constant int *axes [[buffer(10)]],
    const constant int *index_shapes [[buffer(11)]], const constant int64_t *index_strides [[buffer(12)]],
    const constant bool *contiguous [[buffer(13)]], const constant int &index_ndim [[buffer(14)]],
    const constant size_t &index_size [[buffer(15)]], const device I *first [[buffer(20)]],
    uint2 at [[thread_position_in_grid]]) {
  Indices<I, N> indices{{{first}}, index_shapes, index_strides, contiguous, index_ndim};
  return scatter_impl<T, I, Op, N, contiguous_updates, work, L>(
      updates, out, shape, strides, ndim, size, out_shape, out_strides, out_ndim, axes, index_size, indices, at);
}
"""
#: Functions of mlx.nn that MLX compiles: one kernel of the functors, each result of which has the arrays' type.
COMPILED = """
template <typename T> struct Silu { T operator()(T x) { return Multiply()(x, Sigmoid()(x)); } };
template <typename T> struct Gelu {
  T operator()(T x) {
    T sum = Add()(static_cast<T>(1.0f), Erf()(Divide()(x, static_cast<T>(1.41421356f))));
    return Divide()(Multiply()(x, sum), static_cast<T>(2.0f));
  }
};
template <typename T, int N, typename F>
METAL_FUNC void each_of_thread(const device T *x, device T *out, uint size, uint place, F f) {
  uint index = N * place;
  for (int i = 0; i < N && index < size; ++i, ++index)
    out[index] = f(x[index], index);
}
template <typename T, int N>
[[kernel]] void compiled_silu(
    const device T *x [[buffer(0)]], device T *out [[buffer(1)]], const constant uint &size [[buffer(2)]],
    uint3 at [[thread_position_in_grid]]) {
  each_of_thread<T, N>(x, out, size, at.x, [](T a, uint) { return Silu<T>()(a); });
}
template <typename T, int N>
[[kernel]] void compiled_gelu(
    const device T *x [[buffer(0)]], device T *out [[buffer(1)]], const constant uint &size [[buffer(2)]],
    uint3 at [[thread_position_in_grid]]) {
  each_of_thread<T, N>(x, out, size, at.x, [](T a, uint) { return Gelu<T>()(a); });
}
template <typename T, int N>
[[kernel]] void compiled_silu_mul(
    const device T *x [[buffer(0)]], const device T *y [[buffer(1)]], device T *out [[buffer(2)]],
    const constant uint &size [[buffer(3)]], uint3 at [[thread_position_in_grid]]) {
  each_of_thread<T, N>(x, out, size, at.x, [&](T a, uint i) { return Multiply()(Silu<T>()(a), y[i]); });
}
"""
#: Types that are updated atomically: those of 8 bytes are not.
ATOMIC = [t for t in TYPES if t not in ("uint64", "int64", "complex64")]


def gather() -> Iterator[Instance]:
    for t in TYPES:
        for index in INDICES:
            yield instance(f"gather_{t}{index}", "gather", TYPES[t], TYPES[index], 1, 1, "int")
        for count, ndim, place in ((1, 0, "int"), (1, 2, "int"), (2, 2, "int"), (1, 1, "int64_t")):
            name = f"gather_{t}_{count}_{ndim}_{place}"
            yield instance(name, "gather", TYPES[t], "int32_t", count, ndim, place)


def gather_front() -> Iterator[Instance]:
    for t in TYPES:
        for index in INDICES:
            work = (
                2
                if t in ("bool_", "uint8", "int8", "uint16", "int16", "float16", "bfloat16")
                else 1
            )
            yield instance(
                f"gather_front_{t}{index}", "gather_front", TYPES[t], TYPES[index], "int", work
            )


def operations(t: str) -> Iterator[tuple[str, str]]:
    yield "none", "None"
    for name in ("Sum", "Prod", "Max", "Min"):
        if t != "bool_" or name in ("Max", "Min"):
            yield name.lower(), f"{name}<{TYPES[t]}>"


def scatter() -> Iterator[Instance]:
    for t in ATOMIC:
        for name, op in operations(t):
            yield instance(
                f"scatter_{name}_{t}", "scatter", TYPES[t], "int32_t", op, 1, True, 1, "int"
            )
        name = f"scatter_strided_{t}"
        yield instance(name, "scatter", TYPES[t], "uint32_t", "None", 1, False, 4, "int64_t")


def gather_axis() -> Iterator[Instance]:
    for t in TYPES:
        for index in INDICES:
            name = f"gather_axis_{t}{index}"
            yield instance(name, "gather_axis", TYPES[t], TYPES[index], "int", True, True)
        yield instance(
            f"gather_axis_strided_{t}", "gather_axis", TYPES[t], "int32_t", "int64_t", False, False
        )


def scatter_axis() -> Iterator[Instance]:
    for t in ATOMIC:
        for name, op in operations(t):
            if name in ("none", "sum"):
                full = f"scatter_axis_{name}_{t}"
                yield instance(full, "scatter_axis", TYPES[t], "int32_t", "int", op, True, True)
        name = f"scatter_axis_strided_{t}"
        yield instance(name, "scatter_axis", TYPES[t], "uint32_t", "int64_t", "None", False, False)


def masked_assign() -> Iterator[Instance]:
    for t in TYPES:
        for contiguous in (True, False):
            name = f"masked_assign_{t}_{'contiguous' if contiguous else 'strided'}"
            yield instance(name, "masked_assign_impl", TYPES[t], contiguous)


def slice_update() -> Iterator[Instance]:
    for t in TYPES:
        for name, op in operations(t):
            if name != "none":
                full = f"slice_update_{name}_{t}"
                yield instance(
                    full, "slice_update_op_impl", TYPES[t], "int", op, True, True, False, 1, 1
                )
        if t != "bool_":
            for ndim in (1, 2, 3, 4):
                yield instance(
                    f"slice_update_strided{ndim}_{t}",
                    "slice_update_op_impl",
                    *(TYPES[t], "int64_t", f"Sum<{TYPES[t]}>", False, False, False, 2, ndim),
                )


def compiled() -> Iterator[Instance]:
    for t in FLOATS:
        for function in ("compiled_silu", "compiled_gelu", "compiled_silu_mul"):
            yield instance(f"{function}_{t}", function, TYPES[t], 1)
            yield instance(f"{function}_n_{t}", function, TYPES[t], 2 if t == "float32" else 4)


SCATTERS = ("utils.h", "reduce_utils.h", "indexing/scatter.h")
FAMILIES = [
    Family("gather", ("utils.h", "indexing/gather.h"), gather, preamble=GATHER),
    Family("gather_front", ("utils.h", "indexing/gather_front.h"), gather_front),
    Family("gather_axis", ("utils.h", "indexing/gather_axis.h"), gather_axis),
    Family("scatter", SCATTERS, scatter, preamble=SCATTER),
    Family("scatter_axis", ("utils.h", "reduce_utils.h", "indexing/scatter_axis.h"), scatter_axis),
    Family("masked_assign", ("utils.h", "indexing/masked_scatter.h"), masked_assign),
    Family("slice_update", SCATTERS, slice_update),
    Family("compiled", ("utils.h", "unary_ops.h", "binary_ops.h"), compiled, preamble=COMPILED),
]
