"""MLX's kernels along an axis against NumPy: softmax, logsumexp, reductions of all shapes, scans, sorts."""

from __future__ import annotations

import numpy as np
import pytest
import triton_metal_host as metal_api

from mlx_kernels import NEEDS_MLX
from mlx_kernels.family import TYPES, WIDE
from mlx_kernels.parameters import column_arguments
from mlx_kernels.reductions import reduction_operations, scan_operations
from mlx_kernels.running import (
    assert_close,
    blank,
    checked,
    decode,
    encode,
    i32,
    i64,
    launch,
    metal,
    numbers,
    some,
    together,
)

pytestmark = NEEDS_MLX
ALL_FLOATS = pytest.mark.parametrize("t", ["float32", "float16", "bfloat16"])
REDUCE = {
    "and": lambda x, axis: np.all(x != 0, axis=axis),
    "or": lambda x, axis: np.any(x != 0, axis=axis),
    "sum": lambda x, axis: np.sum(x, axis=axis),
    "prod": lambda x, axis: np.prod(x, axis=axis),
    "min": lambda x, axis: np.min(x, axis=axis),
    "max": lambda x, axis: np.max(x, axis=axis),
}


@ALL_FLOATS
@pytest.mark.parametrize(
    ("kind", "columns"), [("single_row", 77), ("single_row", 1000), ("looped", 5003)]
)
def test_softmax_and_logsumexp(t: str, kind: str, columns: int) -> None:
    x = numbers((3, columns), t, 1, scale=3)
    threads = 1024 if kind == "looped" else -(-columns // 128) * 32
    exact = np.exp(x - x.max(1, keepdims=True))
    top = x.max(1) + np.log(exact.sum(1))
    exact /= exact.sum(1, keepdims=True)
    buffers = {0: encode(x, t), 2: i32(columns)}
    options = {"threadgroups": (3,), "group": (threads,)}
    for precise in (("float",), ()):
        name = ("softmax_" + kind, metal(t), *precise)
        (out,) = launch("softmax", name, buffers | {1: blank(x.shape, t)}, [1], **options)
        if precise or t == "float32":
            np.testing.assert_allclose(
                decode(out, t), exact, rtol={"float32": 2e-5}.get(t, 1e-2), atol=1e-7
            )
        else:
            np.testing.assert_allclose(decode(out, t), exact, rtol=0.2, atol=0.01)
    name = "logsumexp" if kind == "single_row" else "logsumexp_looped"
    (out,) = launch("logsumexp", (name, metal(t)), buffers | {1: blank((3,), t)}, [1], **options)
    np.testing.assert_allclose(decode(out, t), top, rtol={"float32": 1e-5}.get(t, 1e-2))


def operand(name: str, t: str, shape: tuple[int, ...]) -> np.ndarray:
    if name == "prod":
        x = (
            np.ones(shape)
            if t == "bool_"
            else np.where(numbers(shape, "bool_", 3), 1, 2 if shape[-1] < 20 else 1)
        )
        return x.astype(
            {"float16": np.float64, "bfloat16": np.float64}.get(t, {"bool_": bool}.get(t, t))
        )
    if name in ("and", "or"):
        x = np.full(shape, int(name == "and"))
        x.flat[:: max(1, x.size // 5)] = int(name == "or")
        return x.astype({"bool_": bool}.get(t, t))
    x = numbers(shape, t, 1)
    return np.rint(x * 3) if t in ("float16", "bfloat16", "float32", "complex64") else x


@pytest.mark.parametrize("t", TYPES)
def test_reductions_of_all_elements_and_of_rows(t: str) -> None:
    # NumPy orders complex numbers otherwise.
    operations = [
        (name, (metal(source), metal(result), f"{op}<{metal(result)}>"), result)
        for name, op, source, result in reduction_operations()
        if source == t and (t != "complex64" or name == "sum")
    ]
    operations = some(operations, t)
    kinds = ("all_reduce", "row_reduce_simple")
    together("reduce", [(kind, *functor) for _, functor, _ in operations for kind in kinds])
    for name, functor, result in operations:
        x = operand(name, t, (10, 13))
        (out,) = launch(
            "reduce",
            ("all_reduce", *functor),
            {0: encode(x, t), 1: blank((1,), result), 2: i64(x.size), 3: i64(x.size)},
            [1],
            grid=(64,),
            group=(64,),
        )
        if name != "prod":
            assert_close(out, np.atleast_1d(REDUCE[name](x, None)), result)
        (out,) = launch(
            "reduce",
            ("row_reduce_simple", *functor),
            {0: encode(x, t), 1: blank((10,), result), 2: i64(13), 3: i64(10)},
            [1],
            grid=(32, 3),
            group=(32,),
        )
        assert_close(out, REDUCE[name](x, 1), result)


def rows(x: np.ndarray, axes: tuple[int, ...]) -> dict[int, np.ndarray]:
    """The arguments of reductions along `axes`, the last of which is `x`'s last."""
    kept = [a for a in range(x.ndim) if a not in axes]
    strides = np.array(x.strides, np.int64) // x.itemsize
    outer = axes[:-1]
    return {
        2: i64(x.shape[axes[-1]]),
        3: i64(int(np.prod([x.shape[a] for a in outer]))),
        4: i32(*[x.shape[a] for a in kept]),
        5: i64(*strides[kept]),
        6: i32(len(kept)),
        7: i32(*[x.shape[a] for a in outer] or [0]),
        8: i64(*strides[list(outer)]) if outer else i64(0),
        9: i32(len(outer)),
    }


@pytest.mark.parametrize("index", ["int", "int64_t"])
@pytest.mark.parametrize(
    ("kernel", "shape", "axes", "n", "group"),
    [
        ("row_reduce_small", (4, 9, 7), (2,), 1, (9,)),
        ("row_reduce_small", (5, 6, 50), (0, 2), 1, (6,)),
        ("row_reduce_small", (40, 6, 7), (0, 2), 1, (32,)),
        ("row_reduce_looped", (4, 3, 1100), (2,), 1, (256,)),
        ("row_reduce_looped", (3, 4, 5, 700), (0, 2, 3), 2, (128,)),
        ("row_reduce_looped", (3, 2, 2, 3, 2, 90), (0, 2, 4, 5), 5, (32,)),
    ],
)
def test_reductions_of_rows(kernel: str, shape, axes, n: int, group, index: str) -> None:
    x = numbers(shape, "int32", 1)
    exact = x.sum(axes)
    outer = int(np.prod([shape[a] for a in axes[:-1]]))
    grid = (group[0], exact.size) if kernel == "row_reduce_looped" or outer > 8 else (exact.size,)
    (out,) = launch(
        "reduce",
        (kernel, "int", "int", "Sum<int>", index, n),
        {0: x, 1: blank(exact.shape, "int32")} | rows(x, axes),
        [1],
        grid=grid,
        group=group,
    )
    np.testing.assert_array_equal(out, exact)


@pytest.mark.parametrize("index", ["int", "int64_t"])
@pytest.mark.parametrize("kernel", ["col_reduce_small", "col_reduce_looped"])
@pytest.mark.parametrize(
    ("shape", "axes", "n"),
    [
        *(((3, 70, 45), (1,), 1), ((5, 3, 11, 128), (0, 2), 2)),
        *(((2, 2, 3, 2, 7, 10), (1, 3, 4), 5), ((2, 9, 131), (1,), 1)),
    ],
)
def test_reductions_of_columns(kernel: str, shape, axes, n: int, index: str) -> None:
    """The last dimension is kept, and so are some before."""
    reduce_columns(kernel, shape, axes, n, index)


def test_defect_threads_beside_the_columns_miss_a_barrier() -> None:
    """In MLX's col_reduce_small, threads right of the last column return before the threadgroup's barrier."""
    with (
        checked("bounds"),
        pytest.raises(metal_api.LaunchError, match=r"line 67:5 of reduce_col.h: not all threads"),
    ):
        reduce_columns("col_reduce_small", (2, 9, 131), (1,), 1, "int", "divergence")


def reduce_columns(kernel: str, shape, axes, n: int, index: str, checks: str | None = None) -> None:
    x = numbers(shape, "float16", 1)
    x = np.rint(x * 4)
    exact = x.sum(axes)
    buffers = {0: encode(x, "float16"), 1: blank(exact.shape, "float16")}
    buffers |= column_arguments(x, axes)
    stride = int(buffers[3][0])
    outer = list(axes)
    columns = exact.size // stride
    if kernel == "col_reduce_small":
        blocks = -(-stride // 4)
        group = (min(blocks, 32), min(8, int(np.prod([x.shape[a] for a in outer]))))
        options = {"threadgroups": (-(-blocks // group[0]), columns), "group": group}
        tile = ()
    else:
        options = {"grid": (256 * -(-stride // 32), columns), "group": (256,)}
        tile = (32, 32)
    (out,) = launch(
        "reduce",
        (kernel, "half", "half", "Sum<half>", index, n, *tile),
        buffers,
        [1],
        checks=checks,
        **options,
    )
    assert_close(out, exact, "float16", terms=4)


def test_reductions_of_long_columns() -> None:
    """In 32 blocks, whose results are reduced again; and the first of two passes over wider ones."""
    x = numbers((700, 6), "int32", 1)
    common = {
        0: x,
        2: i64(700),
        3: i64(6),
        4: i32(0),
        5: i64(0),
        6: i32(0),
        7: i32(700),
        8: i64(6),
        9: i32(1),
        10: i64(1),
    }
    (partial,) = launch(
        "reduce",
        ("col_reduce_longcolumn", "int", "int", "Sum<int>", "int", 1),
        common | {1: blank((32, 6), "int32"), 11: i64(6)},
        [1],
        threadgroups=(1, 1, 32),
        group=(6, 22),
    )
    np.testing.assert_array_equal(partial.sum(0), x.sum(0))
    wide = numbers((900, 50), "int32", 2)
    again = common | {0: wide, 2: i64(900), 3: i64(50), 7: i32(900), 8: i64(50)}
    (partial,) = launch(
        "reduce",
        ("col_reduce_2pass", "int", "int", "Sum<int>", "int", 1, 32, 32),
        again | {1: blank((32, 50), "int32"), 11: i64(1)},
        [1],
        grid=(256 * 2, 1, 32),
        group=(256,),
    )
    np.testing.assert_array_equal(partial.sum(0), wide.sum(0))


def test_initial_values() -> None:
    for op, t, value in (
        ("Sum", "float32", 0),
        ("Prod", "int32", 1),
        ("Min", "int16", 32767),
        ("Max", "uint8", 0),
    ):
        (out,) = launch(
            "reduce",
            ("init_reduce", metal(t), f"{op}<{metal(t)}>"),
            {0: blank((70,), t)},
            [0],
            grid=(70,),
            group=(32,),
        )
        np.testing.assert_array_equal(out, np.full(70, value))


SCAN = {
    "sum": np.cumsum,
    "prod": np.cumprod,
    "max": np.maximum.accumulate,
    "min": np.minimum.accumulate,
    "logaddexp": np.logaddexp.accumulate,
}


def neutral(name: str, t: str) -> float | int | bool:
    if name in ("sum", "prod"):
        return int(name == "prod")
    if t == "bool_":
        return name == "min"
    if t.startswith(("int", "uint")):
        return np.iinfo(t).min if name == "max" else np.iinfo(t).max
    return np.inf if name == "min" else -np.inf


@pytest.mark.parametrize("t", TYPES)
def test_scans(t: str) -> None:
    """Each operation of the type once: along rows or columns, either way, with the number itself or without."""
    cases = []
    for case, (name, op, source, result) in enumerate(scan_operations()):
        if source != t or (t == "complex64" and name != "sum"):
            continue
        reverse, inclusive, contiguous = case % 2 == 1, case % 3 > 0, case % 5 < 3
        reads = 2 if source in WIDE else 4
        kind = "contiguous_scan" if contiguous else "strided_scan"
        kernel = (kind, metal(source), metal(result), f"{op}<{metal(result)}>")
        kernel += (reads, inclusive, reverse)
        cases.append((name, result, kernel, reverse, inclusive, contiguous, reads))
    cases = some(cases, t)
    together("scan", [each[2] for each in cases])
    for name, result, kernel, reverse, inclusive, contiguous, reads in cases:
        length = 1100 if contiguous else 150
        if t in ("bool_",):
            x = numbers((3, length), t, 1)
        else:
            x = (numbers((3, length), "int8", 1) % 3).astype(
                {"bfloat16": float, "float16": float}.get(t, t)
            )
            if name == "prod":
                x = np.where(x == 0, 1, np.where(np.arange(length) % 50 == 0, 2, 1)).astype(x.dtype)
                x = x[:, :1100]
            if name == "sum" and t in ("float16", "bfloat16"):
                x = x * (np.arange(length) % 16 == 0)
        wide = {"uint8": np.uint8, "int8": np.int8, "uint16": np.uint16, "int16": np.int16}.get(
            result
        )
        work = x[:, ::-1] if reverse else x
        if result == "int32" or result == "uint32":
            work = work.astype(result)
        options = {"dtype": wide} if wide and name in ("sum", "prod") else {}
        with np.errstate(over="ignore"):
            exact = SCAN[name](work, axis=1, **options)
        if name == "prod" and t == "bool_":
            exact = exact != 0
        if not inclusive:
            first = np.full((3, 1), neutral(name, result))
            exact = np.concatenate([first.astype(exact.dtype), exact[:, :-1]], 1)
        if reverse:
            exact = exact[:, ::-1]
        if contiguous:
            (out,) = launch(
                "scan",
                kernel,
                {0: encode(x, t), 1: blank(x.shape, result), 2: i64(length)},
                [1],
                threadgroups=(1, 3),
                group=(256,),
            )
        else:
            # Columns of a (150, 37) array, of which three are x's rows.
            columns = 37
            wide_x = np.repeat(x[:1].T, columns, 1)
            wide_x[:, :3] = x.T
            (out,) = launch(
                "scan",
                kernel,
                {
                    **{0: encode(wide_x, t), 1: blank(wide_x.shape, result), 2: i64(length)},
                    **{3: i64(columns), 4: i64(2)},
                },
                [1],
                threadgroups=(2, 1),
                group=(32 // reads * 32,),
            )
            out = np.ascontiguousarray(decode(out, result)[:, :3].T)
            out = encode(out, result)
        loose = 4000 if name == "logaddexp" else 64
        assert_close(out, exact, result, terms=loose)


def order(x: np.ndarray) -> np.ndarray:
    return np.argsort(x, axis=-1, kind="stable")


@pytest.mark.parametrize("t", [each for each in TYPES if each != "bool_"])
def test_sort_of_blocks(t: str) -> None:
    """Values and places, along rows and along columns, of fewer elements than a block."""
    x = numbers((3, 100), t, 1)
    if t in ("float32", "float16"):
        x[1, 7] = np.nan
    threads = 32
    together(
        "sort",
        [
            ("block_sort", metal(t), metal(t), False, threads, 4),
            ("block_sort", metal(t), "uint32_t", True, threads, 4),
            ("block_sort_nc", metal(t), metal(t), False, threads, 4),
        ],
    )
    for argument in (False, True):
        result = "uint32" if argument else t
        arguments = metal(t), metal(result), argument, threads, 4
        exact = order(x) if argument else np.sort(x, -1)
        (out,) = launch(
            "sort",
            ("block_sort", *arguments),
            {
                0: encode(x, t),
                1: blank(x.shape, result),
                2: i32(100),
                3: i32(1),
                4: i32(1),
                5: i32(100),
                6: i32(100),
            },
            [1],
            threadgroups=(1, 3),
            group=(threads,),
        )
        check_sorted(out, exact, x, t, argument)
    (out,) = launch(
        "sort",
        ("block_sort_nc", metal(t), metal(t), False, threads, 4),
        {
            **{
                0: encode(np.ascontiguousarray(x.T), t),
                1: blank(x.T.shape, t),
                2: i32(100),
                3: i32(3),
                4: i32(3),
            },
            **{5: i32(1), 6: i32(3), 7: i64(1), 8: i64(1)},
        },
        [1],
        threadgroups=(1, 3),
        group=(threads,),
    )
    np.testing.assert_array_equal(decode(out, t).T, np.sort(x, -1))


def check_sorted(out: np.ndarray, exact: np.ndarray, x: np.ndarray, t: str, argument: bool) -> None:
    if argument:
        # Equal numbers may come in any order.
        np.testing.assert_array_equal(
            np.take_along_axis(x, out.astype(np.int64), -1), np.sort(x, -1)
        )
        assert all(len(set(row)) == len(row) for row in out)
    else:
        np.testing.assert_array_equal(decode(out, t), exact)


@pytest.mark.parametrize("t", ["float32", "int32", "bfloat16", "int64", "uint8"])
def test_sort_of_many_blocks(t: str) -> None:
    """Blocks that are sorted, and merged in pairs until one is left."""
    threads = 256 if t in WIDE else 512
    block = threads * 4
    size = 2 * block + 301
    blocks = 3
    x = numbers((2, size), t, 1)
    arguments = metal(t), "uint32_t", True, threads, 4
    together("sort", [(f"mb_block_{kind}", *arguments) for kind in ("sort", "partition", "merge")])
    values, places = launch(
        "sort",
        ("mb_block_sort", *arguments),
        {
            **{0: encode(x, t), 1: blank(x.shape, t), 2: blank(x.shape, "uint32")},
            **{3: i32(size), 4: i32(1), 5: i32(1), 6: i32(2), 7: i64(size)},
        },
        [1, 2],
        threadgroups=(blocks, 2),
        group=(threads,),
    )
    tiles = 2
    while tiles // 2 < blocks:
        common = {1: values, 2: places}
        (parts,) = launch(
            "sort",
            ("mb_block_partition", *arguments),
            common
            | {0: blank((2, blocks + 1), "uint32"), 3: i32(size), 4: i32(tiles), 5: i32(blocks)},
            [0],
            threadgroups=(1, 2),
            group=(blocks + 1,),
        )
        values, places = launch(
            "sort",
            ("mb_block_merge", *arguments),
            common
            | {0: parts, 3: blank(x.shape, t), 4: blank(x.shape, "uint32")}
            | {5: i32(size), 6: i32(tiles), 7: i32(blocks)},
            [3, 4],
            threadgroups=(blocks, 2),
            group=(threads,),
        )
        tiles *= 2
    np.testing.assert_array_equal(decode(values, t), np.sort(x, -1))
    check_sorted(places, order(x), x, t, True)
