"""The ways to an Apple GPU, on their contract devices: the same results as on the host."""

from __future__ import annotations

import doctest
import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import triton_metal
import triton_metal.language as tl
from triton_metal import LaunchTypeError, LaunchValueError, mps
from triton_metal.errors import DeviceError
from triton_metal.metal_text import MetalText, fold
from triton_metal.testing import contract_device

from attention import attention
from dropout import dropout
from kernel_support import assert_same, dtype, normal
from layer_norm import layer_norm
from matmul import matmul
from softmax import softmax
from vector_add import add

pytestmark = [
    pytest.mark.own_route,
    # What a route gives is compared with what the host device's own target gives.
    pytest.mark.own_target,
    pytest.mark.own_check("launch_options keeps launches away from the routes"),
]
ROUTES = ("mps", "mlx")


def rows(*shape: int, name: str = "float32") -> np.ndarray:
    return normal(np.random.default_rng(sum(shape)), shape, name)


EXAMPLES: dict[str, Callable[[], Any]] = {
    "add": lambda: add(rows(1000), rows(1000)),
    "add one": lambda: add(rows(1), rows(1)),
    "add bfloat16": lambda: add(rows(777, name="bfloat16"), rows(777, name="bfloat16")),
    "add int8": lambda: add(rows(300).astype(np.int8), rows(300).astype(np.int8)),
    "add int64": lambda: add(np.arange(99) << 40, np.arange(99)),
    "softmax": lambda: softmax(rows(5, 781)),
    "softmax of long rows": lambda: softmax(rows(2, 40_001)),
    "dropout": lambda: dropout(rows(1000), 0.3, 7),
    "layer norm": lambda: layer_norm(rows(4, 300), rows(300), rows(300)),
    "matmul": lambda: matmul(rows(70, 33), rows(33, 90)),
    "matmul float16": lambda: matmul(rows(64, 64, name="float16"), rows(64, 64, name="float16")),
    "matmul with bias": lambda: matmul(rows(50, 40), rows(40, 30), rows(30), "relu"),
    "attention": lambda: attention(*[rows(2, 70, 32, name="float16") for _ in range(3)]),
}


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("name", EXAMPLES)
def test_examples(name: str, route: str) -> None:
    if "bfloat16" in name:
        dtype("bfloat16")
    if route == "mlx":
        pytest.importorskip("mlx.core")
    expected = EXAMPLES[name]()
    launches: dict[str, int] = {}
    with contract_device(route, launches=launches):
        actual = EXAMPLES[name]()
    assert launches.get(route, 0) >= 1
    assert launches.get("host", 0) == 0
    for one, other in zip(as_list(actual), as_list(expected), strict=True):
        # A framework's array may begin anywhere, so tiles can lie otherwise, and sums have another order.
        if name == "layer norm":
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
        else:
            assert_same(one, other)


def as_list(value: Any) -> list[np.ndarray]:
    return list(value) if isinstance(value, tuple) else [value]


def test_torch_tensors_stand_for_those_on_mps() -> None:
    torch = pytest.importorskip("torch")
    x, y = torch.arange(1000, dtype=torch.float32), torch.ones(1000)
    launches: dict[str, int] = {}
    with contract_device("mps", launches=launches):
        # An offset of 3 elements into the storage.
        total = add(x[3:], y[3:])
    assert launches == {"mps": 1}
    assert torch.equal(total, x[3:] + 1)


def test_a_stand_in_ends_with_its_block() -> None:
    launches: dict[str, int] = {}
    with pytest.raises(ZeroDivisionError), contract_device("mps", launches=launches):
        raise ZeroDivisionError
    add(rows(10), rows(10))
    assert launches == {}


@triton_metal.jit
def places_kernel(out_ptr, grid_size, threads_per_grid, x_shape):
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    nx, ny, nz = tl.num_programs(0), tl.num_programs(1), tl.num_programs(2)
    at = (z * ny + y) * nx + x
    tl.store(out_ptr + 2 * at, x + 1000 * y + 1000000 * z + grid_size)
    tl.store(out_ptr + 2 * at + 1, nx + 1000 * ny + 1000000 * nz + threads_per_grid + x_shape)


def places(grid: tuple[int, int, int]) -> np.ndarray:
    nx, ny, nz = grid
    z, y, x = np.meshgrid(np.arange(nz), np.arange(ny), np.arange(nx), indexing="ij")
    first = x + 1000 * y + 1000000 * z + 3
    second = np.full_like(first, nx + 1000 * ny + 1000000 * nz + 9)
    return np.stack([first, second], axis=-1).astype(np.int32).reshape(-1)


GRIDS = ((7, 1, 1), (3, 5, 2), (1, 11, 1), (1, 1, 13), (40, 3, 1))


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("limit", [32 * 11, 32 * 64, 1 << 31])
def test_wide_grids_are_folded_for_mps(
    grid: tuple[int, int, int], limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from triton_metal.testing import compile_shader

    grids: list[list[int]] = []
    dispatch = compile_shader.MetalKernel._dispatch

    def record(self: Any, bindings: Any, grid: list[int], group: Any) -> None:
        grids.append(grid)
        dispatch(self, bindings, grid, group)

    monkeypatch.setattr(compile_shader.MetalKernel, "_dispatch", record)
    monkeypatch.setattr(mps, "MAX_GRID_THREADS", limit)
    out = np.zeros(2 * grid[0] * grid[1] * grid[2], np.int32)
    with contract_device("mps"):
        places_kernel[grid](out, 3, 4, 5, num_warps=1)
    np.testing.assert_array_equal(out, places(grid))
    assert len(grids) == 1
    assert max(grids[0]) <= limit


def test_fold_keeps_the_programs() -> None:
    for grid in GRIDS:
        programs = grid[0] * grid[1] * grid[2]
        for limit in (11, 12, 100):
            width, height, depth = fold(grid, limit)
            assert max(width, height) <= limit
            assert depth == 1
            assert programs <= width * height < programs + width
    with pytest.raises(ValueError, match="does not support a grid of"):
        fold((1000, 1000, 1), 999)


def test_no_buffer_is_left_for_the_sizes_of_a_wide_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mps, "MAX_GRID_THREADS", 64)
    signature = ", ".join(f"a{i}" for i in range(31))
    stores = "\n".join(f"    tl.store(a{i}, {i})" for i in range(31))
    kernel = kernel_of(f"def many({signature}):\n{stores}\n")
    arrays = [np.zeros(1, np.int32) for _ in range(31)]
    with contract_device("mps"):
        kernel[(1,)](*arrays, num_warps=1)
        assert [int(array[0]) for array in arrays] == list(range(31))
        with pytest.raises(LaunchValueError, match="many has 31 buffers"):
            kernel[(3,)](*arrays, num_warps=1)


def kernel_of(source: str) -> Any:
    """A kernel from its text."""
    import linecache

    name = f"<routes {hash(source)}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    scope: dict[str, Any] = {"tl": tl, "__name__": __name__}
    exec(compile(source, name, "exec"), scope)
    return triton_metal.jit(scope["many"])


def test_the_parts_make_the_whole() -> None:
    x = tl.float32
    for kernel, arguments in (
        (places_kernel, (tl.int32, 1000, 1000, 1000)),
        (softmax_module().softmax_kernel, (x, x, 9, 9, 9, 64)),
        (softmax_module().long_softmax_kernel, (x, x, 9, 9, 9, 64)),
    ):
        compiled = kernel.warmup(*arguments)
        text = MetalText.of(compiled.asm["metal"], compiled.metadata)
        assert text.whole() == compiled.asm["metal"]
        assert [parameter.buffer for parameter in text.buffers] == list(range(len(text.buffers)))
        assert text.body.startswith("  ")


def softmax_module() -> Any:
    import softmax as module

    return module


@triton_metal.jit
def threads_kernel(x_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x_ptr + i, i)


def test_fewer_threads_than_the_kernel_has(monkeypatch: pytest.MonkeyPatch) -> None:
    from triton_metal.testing import compile_shader

    limit = property(lambda self: 64)
    monkeypatch.setattr(compile_shader.MetalKernel, "max_threads_per_threadgroup", limit)
    x = np.zeros(64, np.int32)
    with (
        contract_device("mps"),
        pytest.warns(triton_metal.RefusalWarning, match="num_warps=2 inst"),
    ):
        threads_kernel[(1,)](x, 64, num_warps=8)
    assert x.tolist() == list(range(64))
    # A kernel that no number of SIMD-groups brings below the limit.
    monkeypatch.setattr(
        compile_shader.MetalKernel, "max_threads_per_threadgroup", property(lambda self: 16)
    )
    with contract_device("mps"), pytest.raises(DeviceError, match="num_warps=1 or fewer"):
        threads_kernel[(1,)](np.zeros(128, np.int32), 128, num_warps=4)


def test_a_tensor_on_the_cpu_among_those_on_mps() -> None:
    compiled = threads_kernel.warmup(tl.int32, 32)
    with pytest.raises(LaunchTypeError, match="argument x_ptr is on the device None"):
        mps.launch(compiled, (1, 1, 1), [np.zeros(32, np.int32)], b"")


@pytest.mark.parametrize(
    "name",
    [
        "metal_text",
        "coverage",
        "testing",
        "testing.compile_shader",
        "testing.metal_kernel",
        "mlx.functional",
    ],
)
def test_the_examples_in_docstrings(name: str) -> None:
    if name in ("testing.metal_kernel", "mlx.functional"):
        pytest.importorskip("mlx.core")
    module = importlib.import_module(f"triton_metal.{name}")
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0
