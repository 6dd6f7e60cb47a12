"""MLX's gather and scatter kernels, which it makes while it runs, against NumPy's indexing."""

from __future__ import annotations

import numpy as np
import pytest
import triton_metal_host as metal_api

from mlx_kernels import NEEDS_MLX
from mlx_kernels.family import TYPES
from mlx_kernels.running import (
    NUMPY,
    assert_close,
    blank,
    checked,
    decode,
    encode,
    generator,
    i32,
    i64,
    launch,
    metal,
    numbers,
    together,
)
from mlx_kernels.runtime import ATOMIC, operations

pytestmark = NEEDS_MLX
EACH_TYPE = pytest.mark.parametrize("t", TYPES)
EACH_ATOMIC = pytest.mark.parametrize("t", ATOMIC)
INDICES = ("uint32", "int32", "int64", "uint8")


def u64(*values: int) -> np.ndarray:
    return np.array(values, np.uint64)


def places(shape: tuple[int, ...], size: int, index: str, seed: int = 5) -> np.ndarray:
    """Indices of an axis; signed ones count from the end as well."""
    low = 0 if index.startswith("u") else -size
    return generator(seed).integers(low, size, shape).astype(NUMPY[index])


def strides(array: np.ndarray) -> list[int]:
    return [s // array.itemsize for s in array.strides]


def words(array: np.ndarray, t: str) -> np.ndarray:
    """The numbers as a kernel reads them, and memory behind them up to a whole word: atomics are of words."""
    stored = encode(array, t).ravel()
    return np.concatenate([stored, np.zeros(-stored.nbytes % 4 // stored.itemsize, stored.dtype)])


def assert_same(out: np.ndarray, exact: np.ndarray, t: str) -> None:
    np.testing.assert_array_equal(decode(out, t).ravel()[: exact.size].reshape(exact.shape), exact)


@EACH_TYPE
def test_gather(t: str) -> None:
    """One index array of one dimension into each axis; the rest of the source is copied."""
    index = INDICES[list(TYPES).index(t) % 4]
    x = numbers((5, 7, 3), t, 1)
    for axis in (0, 1):
        at = places((11,), x.shape[axis], index)
        slices = [1 if a == axis else size for a, size in enumerate(x.shape)]
        (out,) = launch(
            "gather",
            ("gather", metal(t), metal(index), 1, 1, "int"),
            {
                **{0: encode(x, t), 1: blank((11, x.size // x.shape[axis]), t), 2: i32(*x.shape)},
                **{3: i64(*strides(x)), 4: u64(3), 5: i32(*slices), 6: i32(axis), 7: i32(11)},
                **{8: i64(1), 9: np.array([True]), 10: i32(1), 20: at},
            },
            [1],
            grid=(11, 1, x.size // x.shape[axis]),
            group=(4, 1, 8),
        )
        assert_same(out, np.moveaxis(np.take(x, at.astype(int), axis), axis, 0), t)


@pytest.mark.parametrize("t", ["float32", "bfloat16", "int64", "bool_"])
def test_gather_of_several_axes(t: str) -> None:
    """Two index arrays of two dimensions, of which one is transposed, from a source whose last axes are exchanged."""
    x = np.swapaxes(numbers((6, 4, 5), t, 1), 1, 2)
    first = places((3, 7), x.shape[0], "int32", 2)
    second = np.ascontiguousarray(places((3, 7), x.shape[2], "int32", 3).T)
    (out,) = launch(
        "gather",
        ("gather", metal(t), "int", 2, 2, "int"),
        {
            **{0: encode(np.swapaxes(x, 1, 2), t), 1: blank((3, 7, 5), t), 2: i32(*x.shape)},
            **{3: i64(*strides(x)), 4: u64(3), 5: i32(1, 5, 1), 6: i32(0, 2), 7: i32(3, 7, 3, 7)},
            **{8: i64(7, 1, 1, 3), 9: np.array([True, False]), 10: i32(2), 20: first},
            **{21: second},
        },
        [1],
        grid=(3, 7, 5),
        group=(2, 4, 4),
    )
    assert_same(out, x[first, :, second.T], t)
    # A number as the index, and places of 64 bits.
    (out,) = launch(
        "gather",
        ("gather", metal(t), "int", 1, 0, "int64_t"),
        {
            **{0: encode(np.swapaxes(x, 1, 2), t), 1: blank((20,), t), 2: i32(*x.shape)},
            **{3: i64(*strides(x)), 4: u64(3), 5: i32(1, 5, 4), 6: i32(0), 7: i32(0), 8: i64(0)},
            **{9: np.array([False]), 10: i32(0), 20: i32(-2)},
        },
        [1],
        grid=(1, 1, 20),
        group=(1, 1, 16),
    )
    assert_same(out, x[-2].ravel(), t)


@EACH_TYPE
def test_gather_of_rows(t: str) -> None:
    """Whole rows, of which a thread takes one or two elements."""
    index = INDICES[list(TYPES).index(t) % 4]
    x = numbers((9, 13), t, 1)
    at = places((6,), 9, index)
    together("gather_front", [("gather_front", metal(t), metal(index), "int", n) for n in (1, 2)])
    for work in (1, 2):
        (out,) = launch(
            "gather_front",
            ("gather_front", metal(t), metal(index), "int", work),
            {0: encode(x, t), 1: at, 2: blank((6, 13), t), 3: i64(13), 4: i32(9)},
            [2],
            grid=(-(-13 // work), 6),
            group=(4, 2),
        )
        assert_same(out, x[at.astype(int)], t)


@EACH_TYPE
def test_gather_along_an_axis(t: str) -> None:
    """An index for each element of the result, contiguous or not."""
    index = INDICES[list(TYPES).index(t) % 4]
    together(
        "gather_axis",
        [("gather_axis", metal(t), metal(index), "int", each, each) for each in (True, False)],
    )
    x, at = numbers((5, 9, 7), t, 1), places((5, 4, 7), 9, index)
    exact = np.take_along_axis(x, at.astype(int) % 9, 1)
    for contiguous in (True, False):
        source = x if contiguous else np.swapaxes(np.ascontiguousarray(np.swapaxes(x, 0, 2)), 0, 2)
        # What a kernel reads is in the order of memory.
        stored = source if contiguous else np.swapaxes(source, 0, 2)
        indices = at if contiguous else np.repeat(at, 2, 2)
        steps = (
            strides(indices)
            if contiguous
            else [s * (1 + (a == 2)) for a, s in enumerate(strides(indices))]
        )
        (out,) = launch(
            "gather_axis",
            ("gather_axis", metal(t), metal(index), "int", contiguous, contiguous),
            {
                **{0: encode(stored, t), 1: indices, 2: blank(exact.shape, t), 3: i32(5, 7)},
                **{4: i64(strides(source)[0], strides(source)[2]), 5: i64(steps[0], steps[2])},
                **{6: u64(2), 7: i32(1), 8: i32(9), 9: u64(strides(source)[1]), 10: u64(steps[1])},
            },
            [2],
            grid=(7, 4, 5),
            group=(4, 2, 2),
        )
        assert_same(out, exact, t)


def updated(
    x: np.ndarray, at: tuple[np.ndarray, ...], updates: np.ndarray, name: str
) -> np.ndarray:
    """What NumPy makes of updates, several of one element included."""
    result = x.copy()
    if name == "none":
        result[at] = updates
    else:
        ufunc = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}[name]
        ufunc.at(result, at, updates)
    return result


def operand(shape: tuple[int, ...], t: str, name: str, seed: int) -> np.ndarray:
    """Numbers of which sums and products are exact in any order."""
    x = numbers(shape, t, seed)
    if name == "prod" and t != "bool_":
        x = generator(seed).integers(1, 3, shape).astype(x.dtype)
    if name in ("sum", "none") and t in ("float16", "bfloat16", "float32"):
        x = np.rint(x * 2)
    return x


@EACH_ATOMIC
def test_scatter(t: str) -> None:
    """Updates of rows by each operation, several of one row, in a source that small types do not fill to a word."""
    together(
        "scatter",
        [("scatter", metal(t), "int", op, 1, True, 1, "int") for _, op in operations(t)],
    )
    for name, op in operations(t):
        x, updates = operand((7, 3), t, name, 1), operand((9, 3), t, name, 2)
        at = places((9,), 7, "int32")
        if name == "none":
            # Updates of one element are in no order.
            at, updates = np.array([4, -1, 0], np.int32), updates[:3]
        count = len(at)
        (out,) = launch(
            "scatter",
            ("scatter", metal(t), "int", op, 1, True, 1, "int"),
            {
                **{1: encode(updates, t), 2: words(x, t), 3: i32(count, 1, 3), 4: i64(3, 3, 1)},
                **{5: u64(3), 6: u64(3), 7: i32(7, 3), 8: i64(3, 1), 9: u64(2), 10: i32(0)},
                **{11: i32(count), 12: i64(1), 13: np.array([True]), 14: i32(1)},
                **{15: u64(count), 20: at},
            },
            [2],
            grid=(3, count),
            group=(2, 4),
        )
        assert_same(out, updated(x, (at,), updates, name), t)


def test_defect_scatter_changes_whole_words() -> None:
    """MLX updates small numbers by atomics of words, the last of which may end behind the array."""
    x = numbers((3,), "int16", 1)
    with (
        checked("bounds"),
        pytest.raises(
            metal_api.LaunchError,
            match=r"an atomic operation of 4 bytes at byte 4 of 'out' \(buffer 2\)",
        ),
    ):
        launch(
            "scatter_axis",
            ("scatter_axis", "int16_t", "int", "int", "None", True, True),
            {
                **{0: x[:1], 1: i32(2), 2: x, 3: i32(1), 4: i64(1), 5: i64(1), 6: u64(0)},
                **{7: i32(0), 8: i32(3), 9: u64(1), 10: u64(1)},
            },
            [2],
            grid=(1, 1, 1),
            group=(1,),
        )


@EACH_ATOMIC
def test_scatter_with_strides(t: str) -> None:
    """Four updates for a thread, indices and updates that are transposed, and places of 64 bits."""
    x, updates = numbers((13, 2), t, 1), numbers((3, 2, 2), t, 2)
    at = generator(3).permutation(13)[:6].reshape(3, 2).astype(np.uint32)
    # Both index dimensions are exchanged in memory.
    (out,) = launch(
        "scatter",
        ("scatter", metal(t), "uint", "None", 1, False, 4, "int64_t"),
        {
            **{1: encode(np.swapaxes(updates, 0, 1), t), 2: words(x, t), 3: i32(3, 2, 1, 2)},
            **{4: i64(2, 6, 2, 1), 5: u64(4), 6: u64(2), 7: i32(13, 2), 8: i64(2, 1), 9: u64(2)},
            **{10: i32(0), 11: i32(3, 2), 12: i64(1, 3), 13: np.array([False]), 14: i32(2)},
            **{15: u64(6), 20: np.ascontiguousarray(at.T)},
        },
        [2],
        grid=(2, 2),
        group=(2, 2),
    )
    assert_same(out, updated(x, (at,), updates, "none"), t)


@EACH_ATOMIC
def test_scatter_along_an_axis(t: str) -> None:
    index = ("int32", "uint32")[list(ATOMIC).index(t) % 2]
    together(
        "scatter_axis",
        [
            ("scatter_axis", metal(t), metal(index), "int", op, each, each)
            for name, op in operations(t)
            if name in ("none", "sum")
            for each in (True, False)
        ],
    )
    for name, op in operations(t):
        if name not in ("none", "sum"):
            continue
        x, updates = operand((3, 5, 4), t, name, 1), operand((3, 2, 4), t, name, 2)
        at = places((3, 2, 4), 5, index)
        if name == "none":
            at[:, 1] = (at[:, 0].astype(int) + 1) % 5
        where = (np.arange(3)[:, None, None], at.astype(int) % 5, np.arange(4)[None, None])
        for contiguous in (True, False):
            given = updates if contiguous else np.swapaxes(updates, 0, 1)
            steps = strides(updates) if contiguous else [4, 12, 1]
            indices = at if contiguous else np.swapaxes(at, 0, 1)
            (out,) = launch(
                "scatter_axis",
                ("scatter_axis", metal(t), metal(index), "int", op, contiguous, contiguous),
                {
                    **{0: encode(given, t), 1: indices, 2: words(x, t), 3: i32(3, 4)},
                    **{4: i64(steps[0], 1), 5: i64(steps[0], 1), 6: u64(2), 7: i32(1), 8: i32(5)},
                    **{9: u64(steps[1]), 10: u64(steps[1])},
                },
                [2],
                grid=(4, 2, 3),
                group=(4, 2, 1),
            )
            assert_same(out, updated(x, where, updates, name), t)


@EACH_TYPE
def test_masked_assign(t: str) -> None:
    """Where a mask is true, the next element of the source; each row of a batch has its own."""
    x = numbers((3, 17), t, 1)
    mask = generator(4).integers(0, 2, (3, 17)).astype(bool)
    offsets = np.cumsum(mask, axis=1).astype(np.uint32) - mask
    source = numbers((3, 18), t, 2)
    exact = x.copy()
    for row in range(3):
        exact[row, mask[row]] = source[row, : mask[row].sum()]
    together("masked_assign", [("masked_assign_impl", metal(t), each) for each in (True, False)])
    for contiguous in (True, False):
        given = source if contiguous else np.ascontiguousarray(source.T)
        (out,) = launch(
            "masked_assign",
            ("masked_assign_impl", metal(t), contiguous),
            {
                **{0: mask, 1: offsets.astype(np.uint32), 2: encode(given, t), 3: encode(x, t)},
                **{4: i32(3, 18), 5: i64(18, 1) if contiguous else i64(1, 3), 6: i32(2)},
                **{7: i64(18), 8: i64(17)},
            },
            [3],
            grid=(x.size,),
            group=(32,),
        )
        assert_same(out, exact, t)


@EACH_TYPE
def test_slice_update(t: str) -> None:
    """Each operation, on all of an array, and on parts of arrays of one to four dimensions with strides."""
    # NumPy orders complex numbers otherwise.
    known = [
        each
        for each in operations(t)
        if each[0] != "none" and (t != "complex64" or each[0] in ("sum", "prod"))
    ]
    whole = [
        ("slice_update_op_impl", metal(t), "int", op, True, True, False, 4, 1) for _, op in known
    ]
    parts = [
        (
            *("slice_update_op_impl", metal(t), "int64_t", f"Sum<{metal(t)}>"),
            *(False, False, False, 2, ndim),
        )
        for ndim in (1, 2, 3, 0)
    ]
    together("slice_update", whole + (parts if t != "bool_" else []))
    for (name, _), kernel in zip(known, whole, strict=True):
        apply = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}[name]
        x, updates = operand((47,), t, name, 1), operand((40,), t, name, 2)
        (out,) = launch(
            "slice_update",
            kernel,
            {
                **{0: encode(updates, t), 1: encode(x, t), 2: i32(40), 3: i64(1), 4: i32(1)},
                **{5: i64(40), 6: i64(1), 7: i64(3)},
            },
            [1],
            grid=(10,),
            group=(8,),
        )
        exact = x.copy()
        exact[3:43] = apply(x[3:43], updates)
        assert_close(out, exact, t)
    if t == "bool_":
        return
    for ndim in (1, 2, 3, 4):
        shape = (3, 2, 5, 6)[4 - ndim :]
        x, updates = operand((7, 5, 12, 13)[4 - ndim :], t, "sum", 1), operand(shape, t, "sum", 2)
        part = tuple(slice(1, 1 + 2 * size, 2) for size in shape)
        part = (*part[:-1], slice(0, 12, 2))
        if ndim == 2 or ndim == 4:
            part = (slice(0, 3), slice(1, 3), slice(2, 7), slice(0, 12, 2))[4 - ndim :]
        view = x[part]
        rows = int(np.prod(shape[:-2]))
        offset = (
            view.__array_interface__["data"][0] - x.__array_interface__["data"][0]
        ) // x.itemsize
        (out,) = launch(
            "slice_update",
            parts[ndim - 1],
            {
                **{0: encode(updates.T, t), 1: encode(x, t), 2: i32(*shape)},
                **{
                    3: i64(
                        *[
                            s // updates.itemsize
                            for s in np.zeros_like(updates.T, order="C").T.strides
                        ]
                    )
                },
                **{4: i32(ndim), 5: i64(updates.size)},
                **{6: i64(*[s // x.itemsize for s in view.strides]), 7: i64(offset)},
            },
            [1],
            grid=(shape[-1] // 2, shape[-2] if ndim > 1 else 1, rows),
            group=(2, 2, 2),
        )
        exact = x.copy()
        exact[part] += updates
        assert_close(out, exact, t)
