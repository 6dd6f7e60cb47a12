"""triton_metal.ops.sgd_step and adamw_step against torch.optim in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import triton_metal.ops as ops
from triton_metal.errors import LaunchTypeError, LaunchValueError

from ops_support import FLOATS, FRAMEWORKS, assert_near, made, numbers, rounded

EPS = 2.0**-24
SHAPES = ((3, 5), (1,), (0, 4), (2100,), (), (2, 3, 4), (7,))
ROUNDING = {"float32": EPS, "float16": 2.0**-11, "bfloat16": 2.0**-8}


def arrays(dtype: str, shapes: Any = SHAPES) -> tuple[list[np.ndarray], list[list[np.ndarray]]]:
    rng = np.random.default_rng(1)
    params = [rounded(rng.standard_normal(s), dtype) for s in shapes]
    return params, [[rounded(rng.standard_normal(s), dtype) for s in shapes] for _ in range(3)]


def exact(
    kind: str, params: list[np.ndarray], grads: list[list[np.ndarray]], **how: Any
) -> list[np.ndarray]:
    torch = pytest.importorskip("torch")
    own = [torch.tensor(p, requires_grad=True) for p in params]
    optimiser = getattr(torch.optim, kind)(own, **how)
    for each in grads:
        for p, g in zip(own, each, strict=True):
            p.grad = torch.tensor(g)
        optimiser.step()
    return [p.detach().numpy() for p in own]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize(
    "how",
    [
        {},
        {"weight_decay": 0.1},
        {"momentum": 0.9, "weight_decay": 0.1},
        {"momentum": 0.9, "nesterov": True},
    ],
    ids=["plain", "decay", "momentum", "nesterov"],
)
def test_sgd(how: dict, framework: str, dtype: str) -> None:
    params, grads = arrays(dtype)
    own = [made(framework, p, dtype) for p in params]
    before, buffers = own, None
    for each in grads:
        given = [made(framework, g, dtype) for g in each]
        own, found = ops.sgd_step(own, given, buffers, lr=0.1, **how)
        buffers = found or None
    assert (buffers is None) == ("momentum" not in how)
    for p, x, y in zip(params, own, exact("SGD", params, grads, lr=0.1, **how), strict=True):
        assert_near(x, y, 8 * ROUNDING[dtype] * (np.abs(p) + 2), dtype)
    for p, x in zip(params, before, strict=True):
        np.testing.assert_array_equal(numbers(x), p)  # they stay as they were


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_adamw(framework: str, dtype: str) -> None:
    params, grads = arrays(dtype)
    own, means, squares = [made(framework, p, dtype) for p in params], None, None
    for step, each in enumerate(grads, 1):
        given = [made(framework, g, dtype if step % 2 else "float32") for g in each]
        own, means, squares = ops.adamw_step(
            own, given, means, squares, step=step, lr=0.1, weight_decay=0.2
        )
    assert {str(x.dtype).split(".")[-1] for x in (*means, *squares)} == {"float32"}
    for p, x, y in zip(
        params, own, exact("AdamW", params, grads, lr=0.1, weight_decay=0.2), strict=True
    ):
        assert_near(x, y, 16 * ROUNDING[dtype] * (np.abs(p) + 1), dtype)


def test_states_of_the_parameters_dtype_and_no_correction() -> None:
    params, grads = arrays("float16", ((5,), (6,)))
    own = [made("numpy", p, "float16") for p in params]
    zeros = [np.zeros_like(p) for p in own]
    new, means, squares = ops.adamw_step(
        own,
        [made("numpy", g, "float16") for g in grads[0]],
        zeros,
        zeros,
        step=1,
        lr=0.5,
        bias_correction=False,
        weight_decay=0,
    )
    for p, g, x, m, v in zip(params, grads[0], new, means, squares, strict=True):
        assert_near(m, 0.1 * g, 2.0**-20, "float16")
        assert_near(v, 0.001 * g * g, 2.0**-20, "float16")
        right = p - 0.5 * 0.1 * g / (np.sqrt(0.001 * g * g) + 1e-8)
        assert_near(x, right, 2.0**-20 * 8, "float16")


def test_one_launch_for_four_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    from triton_metal.ops import optimisers

    grids = []
    launch = optimisers.launch
    monkeypatch.setattr(
        optimisers,
        "launch",
        lambda kernel, grid, *a, **k: grids.append(grid) or launch(kernel, grid, *a, **k),
    )
    x = [np.full(n, 1, np.float32) for n in (3, 2000, 1, 4, 5)]
    new, _ = ops.sgd_step(x, x, lr=0.5)
    assert grids == [(5,), (1,)]
    assert all((p == 0.5).all() for p in new)
    assert ops.sgd_step([], [], lr=1) == ([], [])


def test_views_are_read_in_their_order() -> None:
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    [new], _ = ops.sgd_step([x.T[::-1]], [x.T], lr=1)
    np.testing.assert_array_equal(new, x.T[::-1] - x.T)


X = [np.zeros((2, 3), np.float32)]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ops.sgd_step(X, [], lr=1), LaunchValueError, r"\[sgd_step\] grads must have 1 arrays, as many as params, but has 0"),
        (lambda: ops.sgd_step(X[0], X, lr=1), LaunchTypeError, r"\[sgd_step\] params must be a list of arrays but is ndarray"),
        (lambda: ops.sgd_step(X, [X[0][0]], lr=1), LaunchValueError, r"grads\[0\] must have shape \(2, 3\), that of params\[0\], but has shape \(3,\)"),
        (lambda: ops.sgd_step(X, X, lr=-1), LaunchValueError, r"lr must be at least 0 but is -1"),
        (lambda: ops.sgd_step(X, X, lr=1, nesterov=True), LaunchValueError, r"nesterov needs a momentum above 0"),
        (lambda: ops.sgd_step(X, X, X, lr=1), LaunchValueError, r"buffers must be None without momentum"),
        (lambda: ops.sgd_step(X, [X[0].astype(np.float16)], lr=1), LaunchValueError, r"grads\[0\] must have dtype float32 but has dtype float16"),
        (lambda: ops.adamw_step(X, X, step=0), LaunchValueError, r"\[adamw_step\] step must be from 1 to 2\*\*63 - 1 but is 0"),
        (lambda: ops.adamw_step(X, X, X, step=1), LaunchValueError, r"means and squares must be given both or neither"),
        (lambda: ops.adamw_step(X, X, step=1, betas=(0.9, 1)), LaunchValueError, r"betas must be at least 0 and less than 1 but is 1"),
        (lambda: ops.adamw_step([1.0], X, step=1), LaunchTypeError, r"params\[0\] must be an array"),
    ],
)  # fmt: skip
def test_bad_arguments(call, error, message) -> None:
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("kind", ["sgd", "sgd with momentum", "adamw"])
def test_torch_compile_keeps_steps(kind: str, dtype: str) -> None:
    torch = pytest.importorskip("torch")
    torch._dynamo.reset()
    params, grads = arrays(dtype)

    def step(number: int, own: Any, given: Any, states: Any) -> Any:
        if kind == "adamw":
            own, *states = ops.adamw_step(own, given, *(states or ()), step=number, lr=0.1)
            return own, states
        momentum = 0.9 if "momentum" in kind else 0.0
        own, buffers = ops.sgd_step(own, given, states or None, lr=0.1, momentum=momentum)
        return own, buffers

    compiled = torch.compile(step, fullgraph=True, backend="aot_eager")
    results = []
    for each in (step, compiled):
        own = [made("torch", p, dtype).requires_grad_() for p in params]
        states: Any = None
        for number in range(1, 4):
            given = [made("torch", g, dtype) for g in grads[number - 1]]
            own, states = each(number, own, given, states)
        assert not any(p.requires_grad for p in own)
        results.append(
            [*own, *(states if kind != "adamw" else [s for each in states for s in each])]
        )
    assert len(results[0]) == len(results[1])
    for one, other in zip(*results, strict=True):
        assert one.dtype == other.dtype
        assert torch.equal(one, other)


def test_compiled_steps_change_parameters_in_place() -> None:
    torch = pytest.importorskip("torch")
    layers = [torch.nn.Linear(3, 2) for _ in range(2)]
    layers[1].load_state_dict(layers[0].state_dict())

    def step(own: Any, given: Any) -> None:
        for p, fresh in zip(own, ops.sgd_step(own, given, lr=0.5)[0], strict=True):
            p.copy_(fresh)

    for layer, each in zip(layers, (step, torch.compile(step, fullgraph=True, backend="aot_eager")), strict=True):  # fmt: skip
        for _ in range(2):
            layer(torch.ones(4, 3)).square().sum().backward()
            with torch.no_grad():
                each(list(layer.parameters()), [p.grad for p in layer.parameters()])
    for one, other in zip(layers[0].parameters(), layers[1].parameters(), strict=True):
        assert torch.equal(one, other)
