"""Kernels as MLX array operations: one graph for all programs of a launch.

``graph(kernel)`` is a function of MLX arrays that ``mx.grad``, ``mx.vmap`` and ``mx.compile`` take. It runs wherever
MLX does, without a kernel. docs/mlx-graphs.md describes what becomes of a kernel.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..errors import LaunchValueError
from ..tuples import flattened
from .choices import new_arrays, plain_kernel
from .compiled_graphs import run_compiled
from .functional import prepared
from .graph_programs import Summary, program_of, run

if TYPE_CHECKING:
    from ..interface import KernelInterface


class Graph:
    """A kernel as a function of MLX arrays; made by :func:`graph`."""

    def __init__(
        self,
        kernel: KernelInterface,
        compiled: bool | None = None,
        convolutions: bool | None = None,
    ) -> None:
        plain = plain_kernel("graph()", kernel)
        self.name = plain.name
        self.kernel = kernel
        self._is_compiled = compiled
        self._convolves = convolutions
        functools.update_wrapper(self, plain.fn, updated=())

    def __call__(
        self,
        *args: Any,
        grid: Any,
        outputs: Mapping[str, Any],
        init_value: float | None = None,
        **kwargs: Any,
    ) -> Any:
        results, _ = self._run(args, grid, outputs, init_value, kwargs)
        return results[0] if len(results) == 1 else tuple(results)

    def summary(
        self,
        *args: Any,
        grid: Any,
        outputs: Mapping[str, Any],
        init_value: float | None = None,
        **kwargs: Any,
    ) -> Summary:
        """What the graph of this launch is made of. Takes the arguments of a call."""
        return self._run(args, grid, outputs, init_value, kwargs, is_summary=True)[1]

    def _run(
        self,
        args: tuple[Any, ...],
        grid: Any,
        outputs: Mapping[str, Any],
        init_value: float | None,
        kwargs: dict[str, Any],
        is_summary: bool = False,
    ) -> tuple[list[Any], Summary]:
        # All programs are computed together, whatever the configuration: none is searched for.
        specs, values, compiled, sizes = prepared(
            "graph()", self.kernel, args, kwargs, grid, outputs, init_value, searches=False
        )
        values = dict(flattened(values | new_arrays(specs, init_value)))
        visible = compiled.metadata.args[: len(program_of(compiled).arguments)]
        arguments = [values[argument["name"]] for argument in visible]
        hidden = len(compiled.metadata.args) - len(visible)
        words = compiled.native.pack(arguments + [0] * hidden)
        names = [argument["name"] for argument in visible if argument["kind"] == "buffer"]
        for argument in visible:
            writes = argument["writes"] or argument["atomic"]
            if argument["kind"] == "buffer" and writes and argument["name"] not in specs:
                raise LaunchValueError(
                    f"{self.name}: argument {argument['name']} is written by the kernel, so outputs= must contain it"
                )
        arrays = [values[name] for name in names]
        if is_summary:
            results, written, summary = run(
                compiled,
                sizes,
                arrays,
                words,
                counts_primitives=True,
                convolves=self._convolves,
            )
        else:
            results, written, summary = run_compiled(
                compiled, sizes, arrays, words, self._is_compiled, self._convolves
            )
        by_name = dict(zip(names, zip(results, written, strict=True), strict=True))
        for name in specs:
            if name not in by_name:
                raise LaunchValueError(f"{self.name}: output {name} is not an array of the kernel")
        return [by_name[name][0] for name in specs], summary


def graph(
    kernel: KernelInterface, compiled: bool | None = None, convolutions: bool | None = None
) -> Graph:
    """The kernel as a function from MLX arrays to new MLX arrays, made of MLX's own operations.

    Takes the arguments of :func:`triton_metal.mlx.call`: ``outputs`` names the arguments that the kernel writes and
    gives for each an array like it, or shape and dtype. Elements that no program writes are ``init_value``, or 0.
    All programs of the grid are computed together. Raises GraphRefusal, at the line in the kernel, for what has no
    meaning without an order of the programs, and for operations that MLX does not have.

    ``compiled`` says whether calls with the same grid, scalars and arrays' sizes go through ``mx.compile``, from the
    second one on; if it is None, they do on a GPU. Graphs that depend on elements of arrays never do. On the CPU, MLX
    compiles with g++, which takes about a second for each new chain of operations.

    The kernel may have autotune and heuristics. A configuration that is known for the arguments is taken, or the first one
    that pruning leaves: nothing is searched, since a graph computes all programs together.

    ``convolutions`` says whether shifted sums of products are ``mx.conv_general``; if it is None, they are on a GPU. On
    the CPU, sums of products of slices are faster.

    >>> import mlx.core as mx, triton_metal, triton_metal.language as tl
    >>> @triton_metal.jit
    ... def square(x, out, n, BLOCK: tl.constexpr):
    ...     i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ...     v = tl.load(x + i, i < n)
    ...     tl.store(out + i, v * v, i < n)
    >>> x = mx.array([1.0, 2.0, 3.0])
    >>> f = lambda x: graph(square)(x, 3, 64, grid=(1,), outputs={"out": x}).sum()
    >>> mx.grad(f)(x)
    array([2, 4, 6], dtype=float32)
    """
    return Graph(kernel, compiled, convolutions)
