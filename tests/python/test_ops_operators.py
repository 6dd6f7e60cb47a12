"""Operators of triton_metal.ops with PyTorch."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
import triton_metal.ops as ops
from triton_metal.ops import (
    activations,
    cross_entropies,
    dropouts,
    embeddings,
    indexing,
    linear_cross_entropies,
    norms,
    rotary,
)
from triton_metal.ops._operators import Operator

ROTARY = (0, 1, 1e4, 1.0, 8, True, False)
#: Operators and their arguments: a shape is a tensor with a gradient, a list one of integers.
CASES = (
    (norms._NORM, ((3, 8), (8,), None, 1e-5, True)),
    (norms._RESIDUAL_NORM, ((3, 8), (3, 8), None, (8,), 1e-5, False)),
    (cross_entropies._CROSS_ENTROPY, ((3, 8), [1, 2, -100], -100, 0.1, "mean")),
    (linear_cross_entropies._LINEAR_CROSS_ENTROPY, ((3, 8), (5, 8), [1, 2, 4], -100, 0.0, "none")),
    (activations._ACTIVATION, ((3, 8), "silu")),
    (activations._GATED, ((3, 8), (3, 8), "gelu")),
    (rotary._ROTARY, ((3, 8), None, None, *ROTARY)),
    (dropouts._DROPOUT, ((3, 8), None, 0.5, 7)),
    (dropouts._DROPOUT, ((3, 8), [7], 0.5, 0)),
    (embeddings._EMBEDDING, ((5, 4), [1, 4, 1])),
)  # fmt: skip


@pytest.mark.own_route
@pytest.mark.parametrize(
    ("operator", "arguments"), CASES, ids=lambda each: getattr(each, "name", "")
)
def test_operators_of_pytorch_are_as_its_own_check_wants_them(operator, arguments) -> None:
    torch = pytest.importorskip("torch")

    def tensor(given):
        if isinstance(given, tuple):
            # Not side by side in memory.
            return torch.randn(given[::-1]).permute(*range(len(given))[::-1]).requires_grad_(True)
        return torch.tensor(given) if isinstance(given, list) else given

    torch.library.opcheck(operator.torch_operator, tuple(map(tensor, arguments)))


@pytest.mark.own_route
def test_a_gradient_that_is_passed_on_lies_as_the_operator_says() -> None:
    """The copy of a transposed gradient is in row-major order, as compiled programs expect."""
    torch = pytest.importorskip("torch")
    given = torch.randn(3, 5).t()
    checks = ("test_schema", "test_faketensor")
    torch.library.opcheck(indexing._SAME.torch_operator, (given,), test_utils=checks)
    (copy,) = indexing._SAME(given)
    assert copy.is_contiguous()
    assert torch.equal(copy, given)
    same = given.contiguous()
    assert indexing._SAME(same)[0].data_ptr() != same.data_ptr()


@pytest.mark.own_route
@pytest.mark.parametrize("name", ["sum", "prod", "mean", "cross_entropy"])
def test_results_may_be_changed_in_place(name: str) -> None:
    """As losses are added up: `loss = ops.cross_entropy(...)`, `loss += other`."""
    torch = pytest.importorskip("torch")
    x = torch.randn(3, 5, requires_grad=True)
    more = (torch.tensor([0, 4, 2]),) if name == "cross_entropy" else ()
    loss = getattr(ops, name)(x, *more)
    (expected,) = torch.autograd.grad(loss, x, retain_graph=True)
    before = loss.item()
    loss += 2.0
    loss *= 3.0
    assert loss.item() == pytest.approx(3 * (before + 2))
    (found,) = torch.autograd.grad(loss, x)
    torch.testing.assert_close(found, 3 * expected)


@pytest.mark.own_route
def test_second_derivatives_are_refused() -> None:
    torch = pytest.importorskip("torch")
    x = torch.randn(5, requires_grad=True)
    (dx,) = torch.autograd.grad(ops.silu(x).sum(), x, create_graph=True)
    with pytest.raises(NotImplementedError, match="activation_backward has no gradient"):
        torch.autograd.grad((dx * x).sum(), x)
    mx = pytest.importorskip("mlx.core")
    first = mx.grad(lambda x: ops.silu(x).sum())
    with pytest.raises(ValueError, match="activation_backward_kernel has no derivative"):
        mx.grad(lambda x: first(x).sum())(mx.ones(3))


#: Losses of a matrix (4, 8) that use integers and bools of it.
INTEGRAL = {
    "argmax": lambda x: ops.gather(x, ops.argmax(x, 1, True), 1),
    "argsort": lambda x: ops.gather(x, ops.argsort(x, 1), 1),
    "topk": lambda x: ops.gather(x, ops.topk(x, 2)[1], 1),
    "any": lambda x: x * ops.any(x, 1, True),
    "sum": lambda x: x * ops.sum(x > 0, 1, True),
    "mean": lambda x: x * ops.mean(x > 0, 1, True),
    "max": lambda x: x * ops.max(x > 0, 1, True),
    "cumsum": lambda x: x * ops.cumsum(x > 0, 1),
    "sort": lambda x: x * ops.sort(x > 0, 1),
    "histogram": lambda x: x * ops.histogram(x, 8, range=(-2, 2))[0],
    "bincount": lambda x: x * ops.bincount(ops.argmax(x, 1), 8),
    "labels": lambda x: ops.cross_entropy(x, ops.argmax(x, 1)),
}


@pytest.mark.own_route
@pytest.mark.parametrize("name", INTEGRAL)
def test_a_loss_may_use_integers_that_depend_on_what_is_differentiated(name: str) -> None:
    """Its gradient is that beside them as constants, with MLX as with PyTorch."""
    torch, mx = pytest.importorskip("torch"), pytest.importorskip("mlx.core")
    loss = INTEGRAL[name]
    x = np.random.default_rng(3).standard_normal((4, 8)).astype(np.float32)
    tensor = torch.tensor(x, requires_grad=True)
    loss(tensor).sum().backward()
    for function in (mx.grad, lambda loss: mx.compile(mx.grad(loss))):
        found = function(lambda x: loss(x).sum())(mx.array(x))
        np.testing.assert_allclose(np.array(found), tensor.grad.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.own_route
def test_torch_compile_may_be_the_first_to_meet_an_operator() -> None:
    torch = pytest.importorskip("torch")
    like_first = lambda x, *_: [(x.shape, "float32")]  # noqa: E731
    backward = Operator(
        "test_first_met_backward(Tensor dy, float by) -> (dx)",
        lambda dy, by: (dy * by,),
        like_first,
    )
    operator = Operator(
        "test_first_met(Tensor x, float by) -> (y)",
        lambda x, by: (x * by,),
        like_first,
        lambda kept, dy: {"x": backward(dy, kept.by)[0]},
    )
    compiled = torch.compile(lambda x: operator(x, 3.0)[0], fullgraph=True, backend="aot_eager")
    x = torch.ones(4, requires_grad=True)
    y = compiled(x)
    y.sum().backward()
    assert np.array_equal(y.detach().numpy(), np.full(4, 3.0))
    assert np.array_equal(x.grad.numpy(), np.full(4, 3.0))


@pytest.mark.own_route
def test_threads_may_be_the_first_to_use_an_operator_together() -> None:
    torch = pytest.importorskip("torch")
    meeting = threading.Barrier(8)
    made: list[object] = []

    class Slow(Operator):
        def _register(self):
            made.append(self)
            time.sleep(0.1)
            return super()._register()

    operator = Slow(
        "of_threads(Tensor x) -> (y)",
        lambda x: (x.detach() * 2,),
        lambda x: [(tuple(x.shape), "float32")],
        lambda kept, dy: {"x": dy * 2},
    )
    gradients: list[list[float]] = []

    def use() -> None:
        x = torch.ones(3, requires_grad=True)
        meeting.wait()
        operator(x)[0].sum().backward()
        gradients.append(x.grad.tolist())

    threads = [threading.Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert gradients == [[2, 2, 2]] * 8
    assert len(made) == 1
