"""A kernel as a graph, beside the function of MLX that does the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

Function = Callable[..., Any]


@dataclass(frozen=True)
class Problem:
    """Two functions of the same arrays. ``target`` is the most that ours may take, as a multiple of MLX's time."""

    name: str
    target: float
    against: str
    ours: Function
    theirs: Function
    arrays: tuple[Any, ...]
    #: Whether both sides are functions that `mx.compile` has made.
    compiled: bool = False
    rtol: float = 1e-4
    atol: float = 1e-4

    def functions(self) -> tuple[Function, Function]:
        """Both sides as they are timed."""
        import mlx.core as mx

        if self.compiled:
            return mx.compile(self.ours), mx.compile(self.theirs)
        return self.ours, self.theirs


def normal(*shape: int) -> Any:
    """Normally distributed fp32 numbers that are computed already."""
    import mlx.core as mx

    result = mx.random.normal(shape)
    mx.eval(result)
    return result


def gradient(problem: Problem, arguments: Sequence[int], target: float) -> Problem:
    """The gradients of a problem's result, weighted at random, in some of its arguments."""
    import mlx.core as mx

    weights = normal(*problem.theirs(*problem.arrays).shape)

    def gradients(function: Function) -> Function:
        return mx.grad(lambda *arrays: (function(*arrays) * weights).sum(), argnums=list(arguments))

    return replace(
        problem,
        name=f"gradient of {problem.name}",
        target=target,
        against=f"gradient of {problem.against}",
        ours=gradients(problem.ours),
        theirs=gradients(problem.theirs),
        rtol=1e-3,
        atol=1e-3,
    )
