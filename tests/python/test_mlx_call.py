"""triton_metal.mlx.call: kernels as functions of MLX arrays, on the contract device and on the host."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import triton_metal
import triton_metal.language as tl
from triton_metal import LaunchTypeError, LaunchValueError

from matmul import matmul_kernel
from softmax import softmax_kernel
from test_routes import GRIDS, places, places_kernel
from vector_add import add_kernel

mx = pytest.importorskip("mlx.core")
from triton_metal.mlx import functional  # noqa: E402
from triton_metal.mlx.functional import call  # noqa: E402
from triton_metal.testing import metal_kernel as stand_in  # noqa: E402

pytestmark = [
    pytest.mark.own_route,
    pytest.mark.usefixtures("where"),
    pytest.mark.own_check("launch_options keeps launches away from the routes"),
]


def add(x: Any, y: Any, **options: Any) -> Any:
    n = x.size
    grid = (max(1, triton_metal.cdiv(n, 64)),)
    return call(add_kernel, x, y, n, grid=grid, outputs={"out_ptr": x}, BLOCK=64, **options)


@pytest.mark.parametrize("n", [0, 1, 2, 7, 8, 9, 63, 64, 65, 1000])
def test_inputs_of_every_size(n: int) -> None:
    x = mx.arange(n, dtype=mx.float32)
    result = add(x, x + 0.5)
    assert result.shape == (n,)
    assert result.tolist() == (2 * np.arange(n) + 0.5).tolist()


@pytest.mark.parametrize(
    "name",
    [*(f"{u}int{w}" for u in ("", "u") for w in (8, 16, 32, 64)), "float16", "bfloat16", "float32"],
)
def test_every_dtype(name: str) -> None:
    kind = getattr(mx, name)
    x = mx.arange(100).astype(kind)
    result = add(x, x)
    assert result.dtype == kind
    assert mx.array_equal(result, x + x)


@triton_metal.jit
def not_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i) == 0)


def test_booleans() -> None:
    x = mx.arange(32) % 3 == 0
    result = call(not_kernel, x, 32, grid=(1,), outputs={"out_ptr": x})
    assert result.dtype == mx.bool_
    assert result.tolist() == [i % 3 != 0 for i in range(32)]


@triton_metal.jit
def scale_kernel(x_ptr, factor_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask) * tl.load(factor_ptr), mask)


def test_an_array_without_dimensions_and_views() -> None:
    x = mx.arange(24).reshape(4, 6)
    for view in (x, x.T, x[1:3], x[:, ::2], mx.broadcast_to(x[:, :1], (4, 5))):
        n = view.size
        result = call(
            scale_kernel, view, mx.array(3), n, BLOCK=32, grid=(1,), outputs={"out_ptr": view}
        )
        assert mx.array_equal(result, 3 * view)


def test_softmax_and_matmul_are_known_to_be_whole() -> None:
    x = mx.random.normal((5, 100), key=mx.random.key(1))
    y = call(softmax_kernel, x, 100, 100, 100, 128, grid=(5,), outputs={"out_ptr": x})
    np.testing.assert_allclose(np.array(y), np.array(mx.softmax(x, axis=-1)), rtol=2e-6)

    a, b = (mx.random.normal(s, key=mx.random.key(2)) for s in ((70, 50), (50, 33)))
    names = [param.name for param in matmul_kernel.params]
    output = names[2]
    c = call(
        matmul_kernel, a, b, a, 70, 33, 50, 50, 1, 33, 1, 33, 1,
        BLOCK_M=32, BLOCK_N=32, BLOCK_K=16, GROUP_M=8, HAS_BIAS=False, ACTIVATION="",
        ACCUMULATOR=tl.float32, grid=(6,), outputs={output: ((70, 33), mx.float32)},
    )  # fmt: skip
    expected = np.array(a).astype(np.float64) @ np.array(b).astype(np.float64)
    np.testing.assert_allclose(np.array(c), expected, atol=1e-4)
    # One program fewer leaves a tile.
    with pytest.raises(LaunchValueError, match=f"may not write all of {output}"):
        call(
            matmul_kernel, a, b, a, 70, 33, 50, 50, 1, 33, 1, 33, 1,
            BLOCK_M=32, BLOCK_N=32, BLOCK_K=16, GROUP_M=8, HAS_BIAS=False, ACTIVATION="",
            ACCUMULATOR=tl.float32, grid=(5,), outputs={output: ((70, 33), mx.float32)},
        )  # fmt: skip


def test_what_is_not_wholly_written() -> None:
    x = mx.arange(100, dtype=mx.float32)
    arguments = {"outputs": {"out_ptr": x}, "BLOCK": 64}
    with pytest.raises(LaunchValueError, match=r"all of out_ptr.*in place, add_kernel\[grid\]"):
        call(add_kernel, x, x, 99, grid=(2,), **arguments)
    with pytest.raises(LaunchValueError, match="all of out_ptr"):
        call(add_kernel, x, x, 100, grid=(1,), **arguments)
    result = call(add_kernel, x, x, 99, grid=(2,), init_value=-1, **arguments)
    assert result.tolist() == [2 * i for i in range(99)] + [-1]


@triton_metal.jit
def through_mask_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, i, tl.load(x_ptr + i) > 0)


@triton_metal.jit
def histogram_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.atomic_add(out_ptr + tl.load(x_ptr + i), 1)


@triton_metal.jit
def increment_kernel(x_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x_ptr + i, tl.load(x_ptr + i) + 1)


def test_outputs_that_depend_on_memory() -> None:
    x = mx.arange(32) % 4
    out = {"out_ptr": ((32,), mx.int32)}
    with pytest.raises(LaunchValueError, match="all of out_ptr"):
        call(through_mask_kernel, x, 32, grid=(1,), outputs=out)
    with pytest.raises(LaunchValueError, match="updates atomically out_ptr"):
        call(histogram_kernel, x, 32, grid=(1,), outputs={"out_ptr": (4, mx.int32)})
    counts = call(
        histogram_kernel, x, 32, grid=(1,), outputs={"out_ptr": (4, mx.int32)}, init_value=0
    )
    assert counts.tolist() == [8, 8, 8, 8]
    with pytest.raises(LaunchValueError, match=r"reads x_ptr.*increment_kernel\[grid\]"):
        call(increment_kernel, 32, grid=(1,), outputs={"x_ptr": x})


def test_arguments_that_are_refused() -> None:
    x = mx.arange(100, dtype=mx.float32)
    for outputs, problem in (
        ({}, "outputs must give"),
        ({"out": x}, "there is no argument out"),
        ({"out_ptr": 3}, "must be an MLX array that it is like"),
        ({"out_ptr": ((2,), "float32")}, "must be an MLX array that it is like"),
        ({"out_ptr": ((2,), mx.complex64)}, "which no kernel can write"),
    ):
        with pytest.raises(LaunchTypeError, match=problem):
            call(add_kernel, x, x, 100, BLOCK=64, grid=(2,), outputs=outputs)
    with pytest.raises(LaunchValueError, match="the shape of output"):
        call(add_kernel, x, x, 9, BLOCK=64, grid=(2,), outputs={"out_ptr": ((-1,), mx.float32)})
    with pytest.raises(LaunchValueError, match="x_ptr is never written"):
        call(add_kernel, x, 100, BLOCK=64, grid=(2,), outputs={"x_ptr": x, "out_ptr": x})
    with pytest.raises(LaunchValueError, match="out_ptr is written by the kernel"):
        call(two_outputs_kernel, x, grid=(1,), outputs={"first_ptr": x}, BLOCK=64)
    with pytest.raises(LaunchTypeError, match="argument BLOCK is given twice"):
        call(add_kernel, x, x, 100, 64, grid=(2,), outputs={"out_ptr": x}, BLOCK=64)
    with pytest.raises(LaunchTypeError, match="argument y_ptr is missing"):
        call(add_kernel, x, grid=(2,), outputs={"out_ptr": x}, BLOCK=64)
    with pytest.raises(LaunchTypeError, match="is a ndarray"):
        call(add_kernel, x, np.zeros(3), 3, BLOCK=64, grid=(2,), outputs={"out_ptr": x})
    with pytest.raises(LaunchValueError, match="has no programs, so nothing computes the outputs"):
        call(add_kernel, x, x, 100, BLOCK=64, grid=(0,), outputs={"out_ptr": x})


@triton_metal.jit
def two_outputs_kernel(out_ptr, first_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(first_ptr + i, i)
    tl.store(out_ptr + i, 2 * i)


def test_two_outputs_in_the_order_of_their_names_here() -> None:
    first, out = call(
        two_outputs_kernel,
        grid=lambda meta: (64 // meta["BLOCK"],),
        outputs={"first_ptr": ((4, 16), mx.int32), "out_ptr": (64, mx.int64)},
        BLOCK=64,
    )
    assert first.tolist() == np.arange(64).reshape(4, 16).tolist()
    assert out.tolist() == (2 * np.arange(64)).tolist()


@pytest.mark.parametrize("grid", GRIDS)
def test_program_ids(grid: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    size = 2 * grid[0] * grid[1] * grid[2]
    for limit in (32 * 11, 32 * 64, functional.MAX_GRID_THREADS):
        monkeypatch.setattr(functional, "MAX_GRID_THREADS", limit)
        with stand_in.recording() as recorder:
            out = call(
                places_kernel,
                3,
                4,
                5,
                grid=grid,
                outputs={"out_ptr": (size, mx.int32)},
                num_warps=1,
            )
        np.testing.assert_array_equal(np.array(out), places(grid))
        for launch in recorder.launches:
            assert max(launch.grid) <= limit


@triton_metal.jit
def names_kernel(x, max_shape, simd, out, BLOCK: tl.constexpr):
    grid_size = tl.arange(0, BLOCK)
    x_shape = tl.load(x + grid_size)
    x_ndim = x_shape + max_shape
    threads_per_grid = x_ndim * simd
    tl.store(out + grid_size, threads_per_grid)


def test_names_that_mlx_gives_a_meaning_to(where: str) -> None:
    x = mx.arange(32)
    with stand_in.recording() as recorder:
        result = call(names_kernel, x, 2, 3, 32, grid=(1,), outputs={"out": x})
    assert mx.array_equal(result, (x + 2) * 3)
    for launch in recorder.launches:
        assert "_shape [[buffer" not in launch.text
        assert "_ndim [[buffer" not in launch.text


def test_one_object_and_one_name_a_kernel(where: str) -> None:
    if where == "host":
        pytest.skip("MLX makes no kernel there")
    x, y = mx.arange(100, dtype=mx.float32), mx.arange(100, dtype=mx.int32)
    with stand_in.recording() as recorder:
        for _ in range(3):
            add(x, x)
            add(y, y)
    texts = {launch.name: launch.text for launch in recorder.launches}
    assert len(texts) == 2
    assert all(texts[launch.name] == launch.text for launch in recorder.launches)


def test_lazy_and_inside_compile() -> None:
    def function(x: Any) -> Any:
        return add(x * 2, x).sum()

    compiled = mx.compile(function)
    for shift in (0, 10):
        x = mx.arange(1000, dtype=mx.float32) + shift
        expected = 3 * float(np.sum(np.arange(1000) + shift))
        assert compiled(x).item() == expected
        assert function(x).item() == expected


def test_on_a_stream() -> None:
    x = mx.arange(100, dtype=mx.float32)
    with mx.stream(mx.new_stream(mx.default_device())):
        result = add(x, x)
        assert mx.array_equal(result, 2 * x)


def test_coverage_where_there_is_no_host_device(
    monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    if where == "host":
        pytest.skip("the host device runs the kernel there")
    from triton_metal import coverage

    monkeypatch.setattr(coverage._native, "host_device_problem", lambda: "not installed")

    @triton_metal.jit
    def kernel(x_ptr, flags_ptr, out_ptr, n, BLOCK: tl.constexpr):
        for start in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
            i = start + tl.arange(0, BLOCK)
            x = tl.load(x_ptr + i, i < n)
            tl.store(out_ptr + i, x, i < n)
            tl.store(flags_ptr + i, x > 3, i < n)

    x = mx.arange(200).astype(mx.bfloat16)
    for size, whole in ((200, True), (201, False)):
        outputs = {"flags_ptr": ((size,), mx.bool_), "out_ptr": ((size,), mx.bfloat16)}

        def function(x: Any, outputs: Any = outputs) -> Any:
            return call(kernel, x, 200, 32, grid=(3,), outputs=outputs)

        if not whole:
            with pytest.raises(LaunchValueError, match="all of flags_ptr"):
                function(x)
            continue
        for way in (function, mx.compile(function)):
            flags, out = way(x)
            assert mx.array_equal(out, x)
            assert mx.array_equal(flags, x > 3)


def test_a_launch_that_writes_outside_of_its_outputs() -> None:
    x = mx.arange(100, dtype=mx.float32)
    with pytest.raises(LaunchValueError, match="writes outside of its outputs"):
        call(add_kernel, x, x, 100, BLOCK=64, grid=(2,), outputs={"out_ptr": ((90,), mx.float32)})


@triton_metal.jit
def double_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, 2 * tl.load(x_ptr + i, i < n), i < n)


@pytest.mark.parametrize("dtype", [mx.float32, mx.float16, mx.int8, mx.int64])
@pytest.mark.parametrize("begin", [0, 1, 2, 4, 8])
def test_arrays_that_begin_anywhere(dtype: Any, begin: int) -> None:
    """Where MLX puts an array is seen in the kernel: it has a body for 16 bytes, and one for less."""
    whole = (mx.arange(1100) % 50).astype(dtype)
    mx.eval(whole)
    x = whole[begin : begin + 1030]
    out = call(double_kernel, x, 1030, 512, grid=(3,), outputs={"out_ptr": x})
    assert mx.array_equal(out, 2 * x)


def test_wide_accesses_after_a_test() -> None:
    x = mx.zeros((1024,))
    compiled = double_kernel.warmup(x, mx.zeros((1024,)), 1000, BLOCK=1024)
    metal = compiled.asm["metal"]
    assert "reinterpret_cast<ulong>(x_ptr) | reinterpret_cast<ulong>(out_ptr)" in metal
    assert "*(device const float4 *)" in metal
    assert "*(device float4 *)" in metal


@triton_metal.jit
def tuples_kernel(x, out, steps, sizes, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    at = i % sizes[0] * steps[0] + i // sizes[0] * steps[1][0]
    tl.store(out + i, tl.load(x + at, mask=i < n), mask=i < n)


def test_tuples_are_arguments() -> None:
    x = mx.arange(12).reshape(3, 4)
    found = call(tuples_kernel, x, steps=(4, (1,)), sizes=(3,), n=12, BLOCK=16, grid=(1,), outputs={"out": ((12,), x.dtype)})  # fmt: skip
    np.testing.assert_array_equal(np.array(found), np.array(x).T.ravel())


@triton_metal.jit
def stepped(x, steps, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    value = tl.load(x + steps[0] + i * steps[1], mask=i < n)
    tl.store(out + i, value, mask=i < n)


def test_tuples_of_numbers() -> None:
    x = mx.arange(100, dtype=mx.float32)
    given = {"grid": (1,), "outputs": {"out": ((8,), mx.float32)}, "BLOCK": 16}
    assert call(stepped, x, (3, 5), n=8, **given).tolist() == list(range(3, 43, 5))
    assert call(stepped, x, (0, 1), n=8, **given).tolist() == list(range(8))
