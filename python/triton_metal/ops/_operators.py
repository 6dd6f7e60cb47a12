"""Functions with gradients, for the arrays of every framework.

An `Operator` computes new arrays from arrays and plain values. With PyTorch it is an operator of `torch.library`, so
that autograd and ``torch.compile`` know it; with MLX it is an ``mx.custom_function``, so that ``mx.grad`` does. With NumPy it
is a call.
"""

from __future__ import annotations

import functools
import re
import sys
import threading
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from ..errors import LaunchTypeError
from ._arrays import FLOATS, Array, dtype_name, dtype_of, is_array, is_mlx, is_torch, resolved
from ._checks import unusual_kind
from ._launch import Spec

#: Computes the outputs of an operator from its arguments.
Forward = Callable[..., tuple[Array, ...]]
#: The shapes and dtypes of the outputs for these arguments, which need no data.
Results = Callable[..., Sequence[Spec]]
#: The gradients of the array arguments by name, from what is kept and the gradients of the outputs.
Gradient = Callable[..., dict[str, Array]]

_SCHEMA = re.compile(r"(\w+)\((.*)\) -> \((.*)\)")
NAMESPACE = "triton_metal"


class Registered:
    """An operator of `torch.library` that is registered when it is first asked for."""

    _torch: Any = None
    #: PyTorch takes an operator once, and several threads may be the first to ask for it.
    _lock = threading.RLock()

    def _register(self) -> Any:
        raise NotImplementedError

    def _ensure_registered(self) -> None:
        if self._torch is None:
            with self._lock:
                if self._torch is None:
                    self._torch = self._register()

    # torch.compile may be what meets an operator first: it calls this and does not follow it, as with
    # torch.compiler.assume_constant_result, which needs PyTorch.
    _ensure_registered._dynamo_marked_constant = True  # type: ignore[attr-defined]


class Operator(Registered):
    """One function of arrays.

    ``schema`` is "name(Tensor x, Tensor? bias, int axis, float eps) -> (y, mean)": PyTorch's types of the arguments, and names
    of the outputs. ``forward(*arguments)`` returns the outputs, which must be new arrays; ``results(*arguments)`` returns
    their shapes and dtypes without computing anything.

    ``gradient(kept, *grads)`` returns the gradients of array arguments by name. ``kept`` has the arguments and outputs that
    ``keeps`` names, all arguments that are no arrays, and ``needs``: the names of the array arguments whose gradients are
    asked for. ``grads`` are the gradients of the outputs, and None where nothing depends on one. All that ``gradient``
    does to arrays it does by operators, so that ``torch.compile`` can follow it. Of the floats that ``refused`` names there
    is none, and asking for one is an error.
    """

    def __init__(
        self,
        schema: str,
        forward: Forward,
        results: Results,
        gradient: Gradient | None = None,
        keeps: str = "",
        refused: str = "",
    ) -> None:
        match = _SCHEMA.fullmatch(schema)
        if match is None:
            raise ValueError(f"{schema!r} is no schema such as 'f(Tensor x, int n) -> (y)'")
        self.name, parameters, outputs = match.groups()
        pairs = [each.strip().rsplit(" ", 1) for each in parameters.split(",") if each.strip()]
        self.types = {name: type for type, name in pairs}
        self.arrays = [name for name, type in self.types.items() if type.startswith("Tensor")]
        self.outputs = [each.strip() for each in outputs.split(",")]
        self.forward, self.results, self.gradient = forward, results, gradient
        self.keeps, self.refused = keeps.split(), refused.split()
        unknown = set(self.keeps) - set(self.types) - set(self.outputs)
        if unknown:
            raise ValueError(f"{self.name} has no {sorted(unknown)}")

    def __call__(self, *arguments: Any) -> tuple[Array, ...]:
        """The outputs. The arguments are those of the schema, in its order."""
        if any(is_torch(each) for each in arguments):
            return self._call_torch(arguments)
        if any(is_mlx(each) for each in arguments):
            if self.gradient is not None:
                return self._call_mlx(arguments)
            floats = any(dtype_name(each) in FLOATS for each in arguments if is_mlx(each))
            if not floats or not any(made in FLOATS for _, made in self.results(*arguments)):
                # Of integers and bools there is no gradient: a loss may use them, as indices for example, and mx.grad asks no further.
                stop = sys.modules["mlx.core"].stop_gradient
                arguments = tuple(stop(each) if is_mlx(each) else each for each in arguments)
        return self.forward(*arguments)

    def _kept(self, arguments: Sequence[Any], outputs: Sequence[Array]) -> list[Any]:
        known = dict(zip(self.types, arguments, strict=True)) | dict(
            zip(self.outputs, outputs, strict=True)
        )
        return [known[name] for name in self.keeps]

    def _namespace(
        self, kept: Sequence[Any], arguments: Sequence[Any], needs: set[str]
    ) -> SimpleNamespace:
        plain = {
            name: value
            for name, value in zip(self.types, arguments, strict=True)
            if name not in self.arrays
        }
        return SimpleNamespace(**plain, **dict(zip(self.keeps, kept, strict=True)), needs=needs)

    # PyTorch

    def _call_torch(self, arguments: tuple[Any, ...]) -> tuple[Array, ...]:
        torch = sys.modules["torch"]
        if not torch.compiler.is_compiling():
            # Kernels read memory. What is compiled comes by the dispatcher, which does the same.
            arguments = tuple(map(resolved, arguments))
        wanted = torch.is_grad_enabled() and any(
            is_torch(each) and each.requires_grad for each in arguments
        )
        if not wanted and not torch.compiler.is_compiling() and not is_traced(arguments):
            return self.forward(*arguments)
        self._ensure_registered()
        return _outputs(self._torch(*arguments))

    @property
    def torch_operator(self) -> Any:
        """The operator of `torch.library`, ``torch.ops.triton_metal.<name>``; it is registered when it is first asked for."""
        self._ensure_registered()
        return self._torch

    def _register(self) -> Any:
        torch = sys.modules["torch"]
        parameters = ", ".join(f"{type} {name}" for name, type in self.types.items())
        single = len(self.outputs) == 1
        returned = "Tensor" if single else f"({', '.join(['Tensor'] * len(self.outputs))})"
        library = torch.library.Library(NAMESPACE, "FRAGMENT")
        library.define(f"{self.name}({parameters}) -> {returned}")

        def run(*arguments: Any) -> Any:
            # A result in another shape is a view, which autograd lets nobody change in place.
            made = tuple(each.data for each in self.forward(*arguments))
            return made[0] if single else made

        def shapes(*arguments: Any) -> Any:
            like = next(each for each in arguments if is_torch(each))
            made = tuple(
                like.new_empty(tuple(shape), dtype=dtype_of(dtype, like))
                for shape, dtype in self.results(*arguments)
            )
            return made[0] if single else made

        library.impl(self.name, run, "CompositeExplicitAutograd")
        name = f"{NAMESPACE}::{self.name}"
        torch.library.register_fake(name, shapes, lib=library)
        if self.gradient is not None:
            torch.library.register_autograd(
                name, self._backward_torch, setup_context=self._set_up_torch, lib=library
            )
        else:
            torch.library.register_autograd(name, self._refuse_torch, lib=library)
        self._library = library  # the registration ends with it
        return getattr(getattr(torch.ops, NAMESPACE), self.name).default

    def _set_up_torch(self, ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        outputs = (output,) if len(self.outputs) == 1 else output
        ctx.save_for_backward(*self._kept(inputs, outputs))
        ctx.arguments = [None if is_torch(each) else each for each in inputs]
        ctx.set_materialize_grads(False)

    def _backward_torch(self, ctx: Any, *grads: Any) -> Any:
        if all(grad is None for grad in grads):
            return (None,) * len(self.types)
        assert self.gradient is not None
        for grad in grads:
            if grad is not None and (unusual := unusual_kind(grad)) is not None:
                raise LaunchTypeError(
                    f"[{self.name}] the gradient of a result must be a plain array but is {unusual}."
                )
        needs = {
            name
            for name, needed in zip(self.types, ctx.needs_input_grad, strict=True)
            if needed and name in self.arrays
        }
        for name in self.refused:
            if name in needs:
                raise NotImplementedError(_without_gradient(self.name, name))
        found = self.gradient(self._namespace(ctx.saved_tensors, ctx.arguments, needs), *grads)
        return tuple(found.get(name) if name in needs else None for name in self.types)

    def _refuse_torch(self, ctx: Any, *grads: Any) -> Any:
        # Without this PyTorch warns and goes on as if the gradient were zero.
        raise NotImplementedError(
            f"{NAMESPACE}::{self.name} has no gradient: most functions of triton_metal.ops have a first derivative only, "
            "and some have none, as their docstrings say."
        )

    # MLX

    def _call_mlx(self, arguments: tuple[Any, ...]) -> tuple[Array, ...]:
        import mlx.core as mx

        places = [i for i, each in enumerate(arguments) if is_array(each)]
        names = list(self.types)
        if self.refused:
            arguments = tuple(
                _refusing(self.name, name)(each)
                if name in self.refused and is_array(each)
                else each
                for name, each in zip(names, arguments, strict=True)
            )

        def filled(arrays: Sequence[Array]) -> list[Any]:
            given = list(arguments)
            for place, array in zip(places, arrays, strict=True):
                given[place] = array
            return given

        def compute(*arrays: Array) -> list[Array]:
            return list(self.forward(*filled(arrays)))

        function = mx.custom_function(compute)

        def vjp(primals: Any, cotangents: Any, outputs: Any) -> Any:
            primals, cotangents, outputs = map(_outputs, (primals, cotangents, outputs))
            given = filled(primals)
            needs = {
                names[place]
                for place in places
                if mx.issubdtype(arguments[place].dtype, mx.floating)
            }
            assert self.gradient is not None
            kept = self._namespace(self._kept(given, outputs), given, needs)
            found = self.gradient(kept, *cotangents)
            gradients = [found.get(names[place]) for place in places]
            return tuple(
                mx.zeros_like(primal) if gradient is None else gradient
                for primal, gradient in zip(primals, gradients, strict=True)
            )

        function.vjp(vjp)
        return tuple(function(*(arguments[place] for place in places)))


def _without_gradient(function: str, name: str) -> str:
    return (
        f"[{function}] {name} has no gradient: leave it out of what is differentiated, "
        "as with detach() of PyTorch and mx.stop_gradient."
    )


@functools.cache
def _refusing(function: str, name: str) -> Any:
    """Gives back an array of MLX, of which mx.grad asks for the gradient in vain."""
    import mlx.core as mx

    same = mx.custom_function(lambda x: x)

    def vjp(primals: Any, cotangents: Any, outputs: Any) -> Any:
        raise ValueError(_without_gradient(function, name))

    same.vjp(vjp)
    return same


def _outputs(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def is_traced(arguments: Sequence[Any]) -> bool:
    """Whether tensors stand for others, as in tracing: their type is no plain tensor's."""
    torch = sys.modules["torch"]
    plain = (torch.Tensor, torch.nn.Parameter)
    return any(is_torch(each) and type(each) not in plain for each in arguments)
