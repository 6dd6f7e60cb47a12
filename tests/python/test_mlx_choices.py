"""Kernels with autotune and heuristics in triton_metal.mlx.call and triton_metal.mlx.graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import triton_metal
import triton_metal.language as tl
from triton_metal import Config, LaunchTypeError, LaunchValueError
from triton_metal.tools.tensor_descriptor import TensorDescriptor

mx = pytest.importorskip("mlx.core")
from triton_metal.mlx import call, custom, graph  # noqa: E402

pytestmark = [
    pytest.mark.own_route,
    pytest.mark.usefixtures("where"),
    pytest.mark.own_check("searches launch with options of their own"),
]


def scale(x_ptr, out_ptr, n, factor, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, factor * tl.load(x_ptr + i, i < n), i < n)


def tuned_scale(*configs: Config, **options: Any) -> Any:
    """The kernel with a search by the order in which `do_bench` is called: the last configuration is the best."""
    calls: list[int] = []

    def bench(launch: Any, quantiles: Any = None) -> list[float]:
        launch()
        calls.append(1)
        return [1.0 / len(calls)] * 3

    kernel = triton_metal.autotune(list(configs), key=["n"], do_bench=bench, **options)(
        triton_metal.jit(scale)
    )
    kernel.calls = calls
    return kernel


def blocks(meta: dict[str, Any]) -> tuple[int]:
    return (triton_metal.cdiv(meta["n"], meta["BLOCK"]),)


def test_a_search_finds_the_configuration_of_a_call() -> None:
    kernel = tuned_scale(Config({"BLOCK": 32}), Config({"BLOCK": 64}, num_warps=2))
    x = mx.arange(100, dtype=mx.float32)
    for _ in range(3):
        found = call(kernel, x, 100, 3.0, grid=blocks, outputs={"out_ptr": x})
        assert mx.array_equal(found, 3 * x)
    assert len(kernel.calls) == 2
    assert kernel.best_config.kwargs == {"BLOCK": 64}
    # A launch in place has the same key, and one with another dtype has not.
    out = mx.zeros(100)
    kernel[blocks](x, out, 100, 3.0)
    assert mx.array_equal(out, 3 * x)
    assert len(kernel.calls) == 2
    halves = x.astype(mx.float16)
    found = call(kernel, halves, 100, 3.0, grid=blocks, outputs={"out_ptr": halves})
    assert mx.array_equal(found, 3 * halves)
    assert len(kernel.calls) == 4


def test_traced_functions_have_searches_too() -> None:
    kernel = tuned_scale(Config({"BLOCK": 32}), Config({"BLOCK": 64}))

    def scaled(x: Any) -> Any:
        return call(kernel, x, x.size, 2.0, grid=blocks, outputs={"out_ptr": x}) + 1

    x = mx.arange(50, dtype=mx.float32)
    assert mx.array_equal(mx.compile(scaled)(x), 2 * x + 1)
    assert len(kernel.calls) == 2
    assert mx.array_equal(mx.compile(scaled)(x + 1), 2 * x + 3)


def test_graphs_take_a_known_configuration_or_the_first_one() -> None:
    kernel = tuned_scale(Config({"BLOCK": 32}), Config({"BLOCK": 64}))
    x = mx.arange(100, dtype=mx.float32)

    def total(x: Any) -> Any:
        scaled = graph(kernel)(x, 100, 3.0, grid=blocks, outputs={"out_ptr": x})
        return (scaled**2).sum()

    assert mx.array_equal(mx.grad(total)(x), 18 * x)
    assert not kernel.calls
    assert kernel.best_config.kwargs == {"BLOCK": 32}
    call(kernel, x, 100, 3.0, grid=blocks, outputs={"out_ptr": x})
    # The configuration may be the key of the next graph: it is not kept by the one before.
    graph(kernel)(x, 100, 3.0, grid=blocks, outputs={"out_ptr": x})
    assert kernel.best_config.kwargs == {"BLOCK": 64}


def test_the_search_changes_no_input_and_sees_the_value_that_fills_outputs() -> None:
    @triton_metal.autotune([Config({"BLOCK": 32}), Config({"BLOCK": 64})], key=["n"])
    @triton_metal.jit
    def add_into(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.atomic_add(out_ptr + i, tl.load(x_ptr + i, i < n), i < n)
        tl.store(x_ptr + i, 0.0, i < n)

    x = mx.arange(70, dtype=mx.float32)
    with pytest.raises(LaunchValueError, match="argument x_ptr is written by the kernel"):
        call(add_into, x, 70, grid=blocks, outputs={"out_ptr": x}, init_value=0)
    assert mx.array_equal(x, mx.arange(70, dtype=mx.float32))


def test_heuristics_see_arguments_and_the_kind_of_outputs() -> None:
    seen: list[Any] = []

    def block(arguments: dict[str, Any]) -> int:
        out = arguments["out_ptr"]
        seen.append((out.shape, out.dtype, arguments["n"]))
        return triton_metal.next_power_of_2(arguments["n"])

    kernel = triton_metal.heuristics({"BLOCK": block})(triton_metal.jit(scale))
    x = mx.arange(20, dtype=mx.float32)
    found = call(kernel, x, 20, 2.0, grid=(1,), outputs={"out_ptr": x})
    assert mx.array_equal(found, 2 * x)
    assert seen == [((20,), mx.float32, 20)]
    both = triton_metal.autotune([Config({}, num_warps=1), Config({}, num_warps=2)], key=["n"])(
        triton_metal.heuristics({"BLOCK": block})(triton_metal.jit(scale))
    )
    found = call(both, x, 20, 4.0, grid=(1,), outputs={"out_ptr": x})
    assert mx.array_equal(found, 4 * x)

    reader = triton_metal.heuristics({"BLOCK": lambda a: int(a["out_ptr"][0])})(
        triton_metal.jit(scale)
    )
    with pytest.raises(
        LaunchTypeError, match="output out_ptr has a shape and a dtype, but no elements"
    ):
        call(reader, x, 20, 2.0, grid=(1,), outputs={"out_ptr": x})


def test_hooks_of_configurations_run_before_a_call() -> None:
    def set_block(arguments: dict[str, Any]) -> None:
        arguments["x"].block_shape = [arguments["ROWS"], 16]

    @triton_metal.autotune(
        [Config({"ROWS": rows}, pre_hook=set_block) for rows in (16, 32)], key=["n"]
    )
    @triton_metal.jit
    def copied(x, out_ptr, n, ROWS: tl.constexpr):
        row = tl.program_id(0) * ROWS
        at = (row + tl.arange(0, ROWS))[:, None] * 16 + tl.arange(0, 16)[None, :]
        tl.store(out_ptr + at, x.load([row, 0]))

    x = mx.arange(64 * 16, dtype=mx.float32).reshape(64, 16)
    descriptor = TensorDescriptor.from_tensor(x, [1, 16])
    grid = lambda meta: (64 // meta["ROWS"],)  # noqa: E731
    for _ in range(2):
        found = call(copied, descriptor, 64, grid=grid, outputs={"out_ptr": x})
        assert mx.array_equal(found, x)

    def clear(arguments: dict[str, Any]) -> None:
        arguments["out_ptr"][:] = 0

    kernel = triton_metal.autotune([Config({"BLOCK": 32}, pre_hook=clear)], key=["n"])(
        triton_metal.jit(scale)
    )
    y = mx.arange(20, dtype=mx.float32)
    with pytest.raises(
        LaunchTypeError, match=r"a configuration's pre_hook asks for: .*init_value="
    ):
        call(kernel, y, 20, 2.0, grid=(1,), outputs={"out_ptr": y})


def test_pruning_sees_arguments_as_in_a_launch() -> None:
    def prune(configs: list[Config], named: dict[str, Any], **keywords: Any) -> list[Config]:
        assert named["n"] == 100
        assert "grid" in keywords
        return [config for config in configs if config.kwargs["BLOCK"] > 32]

    kernel = tuned_scale(
        *(Config({"BLOCK": block}) for block in (32, 64, 128)),
        prune_configs_by={"early_config_prune": prune},
    )
    x = mx.arange(100, dtype=mx.float32)
    assert mx.array_equal(graph(kernel)(x, 100, 3.0, grid=blocks, outputs={"out_ptr": x}), 3 * x)
    assert kernel.best_config.kwargs == {"BLOCK": 64}
    assert mx.array_equal(call(kernel, x, 100, 3.0, grid=blocks, outputs={"out_ptr": x}), 3 * x)
    assert len(kernel.calls) == 2


def test_wrong_arguments_of_tuned_kernels() -> None:
    kernel = tuned_scale(Config({"BLOCK": 32}), Config({"BLOCK": 64}))
    x = mx.arange(100, dtype=mx.float32)
    outputs = {"out_ptr": x}
    for form in (call, lambda kernel, *a, **b: graph(kernel)(*a, **b)):
        with pytest.raises(LaunchTypeError, match="takes 4 arguments besides its outputs, but 5"):
            form(kernel, x, 100, 3.0, 32, 1, grid=blocks, outputs=outputs)
        with pytest.raises(LaunchTypeError, match="argument n is given twice"):
            form(kernel, x, 100, 3.0, n=100, grid=blocks, outputs=outputs)
        with pytest.raises(LaunchTypeError, match="argument m is not a parameter"):
            form(kernel, x, 100, 3.0, m=100, grid=blocks, outputs=outputs)
        with pytest.raises(LaunchValueError, match="BLOCK is given by the caller and by autotune"):
            form(kernel, x, 100, 3.0, BLOCK=32, grid=blocks, outputs=outputs)
        with pytest.raises(LaunchTypeError, match="there is no argument out"):
            form(kernel, x, 100, 3.0, grid=blocks, outputs={"out": x})
        with pytest.raises(LaunchTypeError, match="argument x_ptr is a ndarray"):
            form(kernel, np.ones(100, np.float32), 100, 3.0, grid=blocks, outputs=outputs)
    found = call(kernel, x, 100, 3.0, grid=blocks, outputs=outputs, launch_pdl=False)
    assert mx.array_equal(found, 3 * x)


def cube(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, i < n)
    tl.store(y + i, v * v * v, i < n)


def cube_backward(x, dy, dx, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, i < n)
    tl.store(dx + i, 3 * v * v * tl.load(dy + i, i < n), i < n)


@pytest.mark.parametrize("form", ["metal", "graph"])
@pytest.mark.parametrize("tuned", ["forward", "backward", "both"])
def test_kernels_with_gradients_may_be_tuned(form: str, tuned: str) -> None:
    forward, backward = (triton_metal.jit(each) for each in (cube, cube_backward))
    search = triton_metal.autotune([Config({"BLOCK": 32}), Config({"BLOCK": 64})], key=["n"])
    if tuned != "backward":
        forward = search(forward)
    if tuned != "forward":
        backward = search(backward)
    options = {"vjp_launch": {"BLOCK": 128}} if tuned == "forward" else {}
    function = custom(forward, backward, form=form, **options)
    given = {"BLOCK": 128} if tuned == "backward" else {}
    grid = (4,) if tuned == "backward" else blocks
    x = mx.arange(100, dtype=mx.float32)

    def total(x: Any) -> Any:
        return function(x, 100, grid=grid, outputs={"y": x}, **given).sum()

    value, gradient = mx.value_and_grad(total)(x)
    assert mx.allclose(value, (x**3).sum())
    assert mx.allclose(gradient, 3 * x * x)
    assert mx.allclose(mx.compile(mx.grad(total))(x + 1), 3 * (x + 1) ** 2)


def test_what_is_no_kernel_has_no_gradient() -> None:
    class Own(type(tuned_scale(Config({"BLOCK": 32})))):
        def run(self, *args: Any, **kwargs: Any) -> Any:
            return super().run(*args, **kwargs)

    own = Own(
        triton_metal.jit(cube), ["x", "y", "n", "BLOCK"], [Config({"BLOCK": 32})], ["n"], None, None
    )
    for wrong in (own, len):
        with pytest.raises(LaunchTypeError, match=r"custom\(\) takes a @triton_metal.jit kernel"):
            custom(wrong, triton_metal.jit(cube))
        with pytest.raises(LaunchTypeError, match=r"graph\(\) takes a @triton_metal.jit kernel"):
            graph(wrong)


def test_a_call_has_the_key_of_a_launch_in_place() -> None:
    @triton_metal.autotune([Config({"BLOCK": 32}), Config({"BLOCK": 64})], key=["n"])
    @triton_metal.jit
    def converted(out_ptr, x_ptr, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out_ptr + i, tl.load(x_ptr + i, i < n), i < n)

    x = mx.arange(100, dtype=mx.float32)
    found = call(converted, x, 100, grid=blocks, outputs={"out_ptr": ((100,), mx.float16)})
    assert mx.array_equal(found, x.astype(mx.float16))
    converted[blocks](mx.zeros(100, mx.float16), x, 100)
    assert len(converted.cache) == 1
