"""Kernels with autotune or heuristics as functions of MLX arrays: their parameters are chosen before the call.

A launch in place has its outputs, and a call has none yet. So a search runs on copies of the inputs and on new outputs.
Where MLX traces a function, its arrays have no values: the search then takes zeros.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ..arguments import is_descriptor
from ..errors import LaunchTypeError
from ..tuples import rebuild_tuple

if TYPE_CHECKING:
    from ..jit import JITFunction

#: The shape and dtype of each output.
Specs = Mapping[str, tuple[tuple[int, ...], Any]]


class Output:
    """What functions of heuristics and hooks see in the place of an output: shape and dtype, and no elements."""

    def __init__(self, kernel: str, name: str, shape: tuple[int, ...], dtype: Any) -> None:
        self._what = f"{kernel}: output {name}"
        self.shape = shape
        self.dtype = dtype
        self.ndim = len(shape)
        self.size = math.prod(shape)
        self.itemsize = dtype.size
        self.nbytes = self.size * self.itemsize

    def _refuse(self, *_: Any) -> Any:
        raise LaunchTypeError(
            f"{self._what} has a shape and a dtype, but no elements before the launch, which a function of heuristics or "
            "a configuration's pre_hook asks for: leave it out there and give init_value=, or launch in place, "
            "kernel[grid](...)"
        )

    __getitem__ = __setitem__ = _refuse

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._refuse()


def is_kernel(value: Any) -> bool:
    """Whether a value is a kernel, also with autotune and heuristics."""
    return hasattr(_below(value), "launcher")


def chosen_names(kernel: Any) -> set[str]:
    """The parameters that autotune and heuristics give."""
    return {name for each in _decorators(kernel) for name in each.added_names}


def _decorators(kernel: Any) -> Iterator[Any]:
    """Autotune and heuristics around a kernel, the outermost first."""
    # A class that is derived from one of these may launch in its own way.
    while "added" in vars(type(kernel)):
        yield kernel
        kernel = kernel.fn


def _below(kernel: Any) -> Any:
    for each in _decorators(kernel):
        kernel = each.fn
    return kernel


def plain_kernel(function: str, kernel: Any) -> JITFunction:
    """The kernel below autotune and heuristics. Raises LaunchTypeError for what is not made of these."""
    below = _below(kernel)
    if not hasattr(below, "launcher"):
        raise LaunchTypeError(
            f"{function} takes a @triton_metal.jit kernel, also with autotune and heuristics, not {kernel!r}"
        )
    return below


def new_arrays(specs: Specs, init_value: float | None, stream: Any = None) -> dict[str, Any]:
    """Outputs that are filled with ``init_value``, or 0."""
    import mlx.core as mx

    return {
        name: mx.full(shape, mx.array(init_value or 0, dtype), stream=stream)
        for name, (shape, dtype) in specs.items()
    }


def chosen(
    kernel: Any,
    values: dict[str, Any],
    grid: Any,
    specs: Specs,
    init_value: float | None,
    searches: bool,
) -> dict[str, Any]:
    """The arguments of the plain kernel, by name: ``values``, which has no outputs, and what the decorators add.

    A configuration that is not known for the key is searched for; without ``searches`` it is the first one that pruning leaves.
    """
    plain = _below(kernel)
    given = {**values, **{key: Output(plain.name, key, *spec) for key, spec in specs.items()}}
    # Dtypes are in autotune's key as arguments come: in the order of a launch in place.
    places = {param.name: place for place, param in enumerate(plain.params)}
    given = dict(sorted(given.items(), key=lambda each: places.get(each[0], len(places))))
    for each in _decorators(kernel):
        real = _arrays_of(given, specs, init_value) if searches else None
        given |= each.added(given, grid, real)
    if given.get("num_ctas") == 1:
        del given["num_ctas"]  # what every launch has
    return {key: value for key, value in given.items() if key not in specs}


def _arrays_of(
    given: Mapping[str, Any], specs: Specs, init_value: float | None
) -> Callable[[], dict[str, Any]]:
    """Makes the arguments of a search."""

    def make() -> dict[str, Any]:
        new = new_arrays(specs, init_value)
        return {name: new[name] if name in new else _copied(value) for name, value in given.items()}

    return make


def _copied(value: Any) -> Any:
    """A value with copies of its arrays, or zeros if MLX traces them."""
    import mlx.core as mx

    if isinstance(value, tuple):
        return rebuild_tuple(type(value), map(_copied, value))
    if is_descriptor(value):
        other = copy.copy(value)
        other.base = _copied(value.base)
        return other
    if not isinstance(value, mx.array):
        return value
    found = mx.array(value)
    try:
        mx.eval(found)
    except ValueError as error:
        if "transformation" not in str(error):
            raise
        return mx.zeros(value.shape, value.dtype)
    return found
