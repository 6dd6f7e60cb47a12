"""What the tests of packages share: operands, and the comparison of a function and its gradients with torch's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

Outputs = torch.Tensor | Sequence[torch.Tensor]


def normal(*shape: int, seed: int = 0, scale: float = 1.0, dtype: Any = torch.float32) -> Any:
    """Numbers of a normal distribution."""
    generator = torch.Generator().manual_seed(seed + 1000 * len(shape) + sum(shape))
    return (torch.randn(shape, generator=generator) * scale).to(dtype)


def labels(count: int, classes: int, *ignored: int, ignore_index: int = -100) -> torch.Tensor:
    """Classes, with some that are to be ignored."""
    result = torch.randint(classes, (count,), generator=torch.Generator().manual_seed(count))
    result[list(ignored)] = ignore_index
    return result


def as_list(outputs: Outputs) -> list[torch.Tensor]:
    return [outputs] if isinstance(outputs, torch.Tensor) else [x for x in outputs if x is not None]


def gradients(
    function: Callable[..., Outputs], operands: Sequence[torch.Tensor], fixed: Sequence[int] = ()
) -> tuple[list[torch.Tensor], list[torch.Tensor | None]]:
    """A function's results, and the gradients of its operands, for given gradients of the results.

    `fixed` names operands without a gradient. The operands are copies, so that a function may overwrite them.
    """
    leaves = [
        x.detach().clone().requires_grad_(x.is_floating_point() and i not in fixed)
        for i, x in enumerate(operands)
    ]
    # A function that works in place may not change a leaf.
    results = as_list(function(*(x.clone() if x.requires_grad else x for x in leaves)))
    kept = [x.detach().clone() for x in results]
    differentiable = [x for x in results if x.requires_grad]
    weights = [normal(*x.shape, seed=7 + i).to(x.dtype) for i, x in enumerate(differentiable)]
    torch.autograd.backward(differentiable, weights)
    return kept, [x.grad for x in leaves]


def check(
    ours: Callable[..., Outputs],
    theirs: Callable[..., Outputs],
    *operands: torch.Tensor,
    fixed: Sequence[int] = (),
    rtol: float = 1e-4,
    atol: float = 1e-5,
    backward: bool = True,
) -> None:
    """Compares the results and the gradients of a package's function with those of a function of torch's."""
    if not backward:
        results, expected = as_list(ours(*operands)), as_list(theirs(*operands))
        grads: list[Any] = []
        expected_grads: list[Any] = []
    else:
        results, grads = gradients(ours, operands, fixed)
        expected, expected_grads = gradients(theirs, operands, fixed)
    assert len(results) == len(expected)
    for i, (x, y) in enumerate(zip(results, expected, strict=True)):
        torch.testing.assert_close(
            x.float(), y.float(), rtol=rtol, atol=atol, msg=lambda m, i=i: f"result {i}: {m}"
        )
    for i, (x, y) in enumerate(zip(grads, expected_grads, strict=True)):
        assert (x is None) == (y is None), f"gradient {i}: {x is None} {y is None}"
        if x is not None:
            scale = max(1.0, float(y.abs().max()))
            torch.testing.assert_close(
                x.float(),
                y.float(),
                rtol=rtol,
                atol=atol * scale,
                msg=lambda m, i=i: f"gradient {i}: {m}",
            )
