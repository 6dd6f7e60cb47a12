"""Operators of triton_metal.ops with PyTorch."""

from __future__ import annotations

import numpy as np
import pytest
from triton_metal.ops._operators import Operator


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
