"""A kernel and the hand-written kernels of its gradient, as one function of MLX arrays.

``custom(kernel, vjp)`` is an ``mx.custom_function`` around launches. Each of them is a node of MLX's graph
(:func:`triton_metal.mlx.call`) or is made of MLX's operations (:func:`triton_metal.mlx.graph`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..arguments import is_descriptor
from ..errors import LaunchTypeError, LaunchValueError
from ..tuples import element_name, flattened, rebuild_tuple
from .choices import chosen_names, is_kernel, plain_kernel
from .functional import LAUNCH_OPTIONS, bind, call, output_specs
from .graphs import graph

if TYPE_CHECKING:
    from ..interface import KernelInterface

FORMS = ("metal", "graph")
#: Computes gradients from the arguments, the cotangents of the outputs, and the outputs.
Vjp = Callable[["Named", "Named", "Named"], Any]


class Named:
    """Values by name: ``primals.x`` and ``primals["x"]``. Iterating gives the values in order."""

    def __init__(self, what: str, values: Mapping[str, Any]) -> None:
        self._what = what
        self._values = dict(values)

    def __getattr__(self, name: str) -> Any:
        values = vars(self).get("_values", {})
        if name not in values:
            what = vars(self).get("_what")
            raise AttributeError(f"{what} have no {name}; they are {listed(values)}")
        return values[name]

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values.values())

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"<{self._what}: {listed(self._values)}>"


class Custom:
    """A kernel with its gradient; made by :func:`custom`."""

    def __init__(
        self,
        kernel: KernelInterface,
        vjp: Vjp | KernelInterface,
        form: str,
        saved: tuple[str, ...],
        constant: tuple[str, ...],
        vjp_form: str,
        vjp_launch: Mapping[str, Any],
    ) -> None:
        self.kernel = kernel
        self.plain = plain_kernel("custom()", kernel)
        self.form = form
        self.saved = saved
        self.constant = constant
        self.backward = (
            BackwardKernel(kernel, vjp, vjp_form, vjp_launch) if is_kernel(vjp) else None
        )
        self.vjp: Any = None if self.backward else vjp
        functools.update_wrapper(self, self.plain.fn, updated=())

    def __call__(
        self,
        *args: Any,
        grid: Any,
        outputs: Mapping[str, Any],
        init_value: float | None = None,
        **kwargs: Any,
    ) -> Any:
        import mlx.core as mx

        name = self.plain.name
        specs, values = self._bound(args, kwargs, outputs)
        launch = {"grid": grid, "outputs": outputs, "init_value": init_value}
        launch |= {key: value for key, value in kwargs.items() if key not in values}
        arrays = dict(flattened(values))
        for label, value in arrays.items():
            if is_descriptor(value):
                raise LaunchTypeError(
                    f"{name}: argument {label} is a tensor descriptor, and custom() takes arrays: pass the array, and "
                    "make the descriptor in the kernel"
                )
        arrays = {label: value for label, value in arrays.items() if isinstance(value, mx.array)}
        wanted = [
            label
            for label, value in arrays.items()
            if label not in self.constant and mx.issubdtype(value.dtype, mx.floating)
        ]
        vjp = self.vjp
        if self.backward is not None:
            returned = [key for key in specs if key not in self.saved]
            floats = [key for key in returned if mx.issubdtype(specs[key][1], mx.floating)]
            vjp = self.backward.planned(values, wanted, floats, list(specs), grid)

        def forward(*given: Any) -> tuple[Any, ...]:
            if self.form == "metal":
                given = tuple(map(mx.stop_gradient, given))
            filled = refilled(values, dict(zip(arrays, given, strict=True)))
            return launched(self.kernel, self.form, filled, **launch)

        def gradients(primals: Any, cotangents: Any, results: Any) -> tuple[Any, ...]:
            given = dict(zip(arrays, each(primals), strict=True))
            found = vjp(
                Named(f"the arguments of {name}", refilled(values, given)),
                Named(f"the cotangents of {name}", zip_named(specs, cotangents)),
                Named(f"the outputs of {name}", zip_named(specs, results)),
            )
            checked = self._checked(found, given, wanted)
            return tuple(
                checked[label] if label in checked else mx.zeros_like(value)
                for label, value in given.items()
            )

        function = mx.custom_function(forward)
        function.vjp(gradients)
        if self.form == "metal":
            refuse(function, name, "mx.jvp")
        results = zip_named(specs, function(*arrays.values()) if arrays else forward())
        kept = [result for key, result in results.items() if key not in self.saved]
        return kept[0] if len(kept) == 1 else tuple(kept)

    def _bound(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], outputs: Any
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Shape and dtype of each output, and the other arguments by name."""
        kernel = self.plain
        specs = output_specs(kernel.name, outputs)
        for key in self.saved:
            if key not in specs:
                raise LaunchValueError(
                    f"{kernel.name}: {key} is saved for the gradient, so outputs= must contain it"
                )
        if len(self.saved) == len(specs):
            raise LaunchValueError(
                f"{kernel.name}: all outputs are saved for the gradient, so the function would return nothing"
            )
        for key in self.constant:
            if key in specs:
                raise LaunchValueError(
                    f"{kernel.name}: {key} is an output, and constant= names arguments without a gradient"
                )
        plain = {key: value for key, value in kwargs.items() if key != "stream"}
        values = bind(kernel, args, plain, specs, is_whole=kernel is self.kernel)
        return specs, {key: value for key, value in values.items() if key not in specs}

    def _checked(
        self, found: Any, given: Mapping[str, Any], wanted: Sequence[str]
    ) -> dict[str, Any]:
        """The gradients by name, each with its argument's dtype."""
        import mlx.core as mx

        name, needed = self.plain.name, listed(wanted)
        if isinstance(found, Mapping):
            for label in found:
                if label not in given:
                    raise LaunchValueError(
                        f"{name}: vjp returned a gradient of {label}, which is not an array argument; a gradient is "
                        f"needed of {needed}"
                    )
            for label in wanted:
                if label not in found:
                    raise LaunchValueError(
                        f"{name}: vjp returned no gradient of {label}; if it has none, custom(constant=) must name it"
                    )
            by_name = {label: found[label] for label in wanted}
        else:
            several = isinstance(found, (tuple, list))
            if not several and not isinstance(found, mx.array):
                raise LaunchTypeError(
                    f"{name}: vjp must return the gradients of {needed}, as arrays in this order or as a dictionary, "
                    f"not {type(found).__name__}"
                )
            parts = tuple(found) if several else (found,)
            if len(parts) != len(wanted):
                count = f"{len(parts)} gradient{'' if len(parts) == 1 else 's'}"
                raise LaunchValueError(
                    f"{name}: vjp returned {count}, but must return {len(wanted)}, of {needed}"
                )
            by_name = dict(zip(wanted, parts, strict=True))
        for label, gradient in by_name.items():
            primal = given[label]
            if not isinstance(gradient, mx.array):
                raise LaunchTypeError(
                    f"{name}: the gradient of {label} must be an MLX array, not {type(gradient).__name__}"
                )
            if gradient.shape != primal.shape:
                raise LaunchValueError(
                    f"{name}: the gradient of {label} has shape {gradient.shape}, but {label} has shape {primal.shape}"
                )
            if not mx.issubdtype(gradient.dtype, mx.floating):
                raise LaunchTypeError(
                    f"{name}: the gradient of {label} has dtype {gradient.dtype}, but must be of floats"
                )
        return {label: gradient.astype(given[label].dtype) for label, gradient in by_name.items()}


class BackwardKernel:
    """A kernel that computes all gradients, with arguments that are found by their names."""

    def __init__(
        self, kernel: KernelInterface, backward: Any, form: str, launch: Mapping[str, Any]
    ) -> None:
        self.forward = plain_kernel("custom()", kernel)
        self.kernel = backward
        self.plain = backward = plain_kernel("custom()", backward)
        self.form = form
        self.launch = dict(launch)
        known = [param.name for param in backward.params]
        for key in self.launch:
            if key not in (*known, *LAUNCH_OPTIONS, "grid", "init_value", "stream"):
                raise LaunchTypeError(
                    f"{backward.name}: vjp_launch has {key}, which is neither grid, init_value or a launch option nor "
                    f"one of the kernel's parameters, {listed(known)}"
                )

    def planned(
        self,
        values: Mapping[str, Any],
        wanted: Sequence[str],
        cotangents: Sequence[str],
        outputs: Sequence[str],
        grid: Any,
    ) -> Vjp:
        """The launch for arguments and outputs of these names, as a function of them."""
        name = self.plain.name
        chosen = chosen_names(self.kernel)
        sources: dict[str, tuple[str, str]] = {}
        gradients: dict[str, str] = {}
        known = [param.name for param in self.plain.params]
        for param in self.plain.params:
            key, base = param.name, param.name[1:]
            if key in self.launch or key in chosen:
                continue
            if key in values:
                sources[key] = ("primal", key)
            elif key in outputs:
                sources[key] = ("output", key)
            elif key.startswith("d") and base in outputs:
                sources[key] = ("cotangent", base)
            elif key.startswith("d") and base in wanted:
                gradients[base] = key
            elif not param.has_default:
                raise LaunchTypeError(
                    f"{name}: parameter {key} is not an argument or output of {self.forward.name}, nor d and the name "
                    f"of an output or of an array that needs a gradient ({listed(wanted)}); vjp_launch can give it"
                )
        for label in wanted:
            if label not in gradients:
                raise LaunchValueError(
                    f"{name}: there is no parameter d{label} for the gradient of {label}; the parameters are "
                    f"{listed(known)}. If {label} has no gradient, custom(constant=) must name it"
                )
        taken = {source for kind, source in sources.values() if kind == "cotangent"}
        for output in cotangents:
            if output not in taken:
                raise LaunchValueError(
                    f"{name}: there is no parameter d{output} for the cotangent of {output}; the parameters are "
                    f"{listed(known)}. If only the gradient needs {output}, custom(saved=) must name it"
                )

        def vjp(primals: Named, cotangents: Named, outputs: Named) -> dict[str, Any]:
            named = {"primal": primals, "cotangent": cotangents, "output": outputs}
            arguments = {key: named[kind][source] for key, (kind, source) in sources.items()}
            launch = {"grid": grid, **self.launch}
            arguments |= {key: launch.pop(key) for key in known if key in launch}
            specs = {key: primals[label] for label, key in gradients.items()}
            defaults = {param.name: param.default for param in self.plain.params}
            filled = {
                key: arguments.get(key, defaults[key])
                for key in known
                if key not in specs and (key in arguments or key not in chosen)
            }
            results = without_derivative(self.kernel, self.form, filled, outputs=specs, **launch)
            return dict(zip(gradients, results, strict=True))

        return vjp


def launched(kernel: KernelInterface, form: str, values: Mapping[str, Any], **launch: Any) -> tuple:
    """The outputs of a launch. ``values`` are the other arguments, in the kernel's order: all of them, but for what autotune
    and heuristics add.
    """
    if form == "graph":
        launch.pop("stream", None)
    function = graph(kernel) if form == "graph" else functools.partial(call, kernel)
    if hasattr(kernel, "launcher"):
        return each(function(*values.values(), **launch))
    return each(function(**values, **launch))


def without_derivative(
    kernel: KernelInterface, form: str, values: Mapping[str, Any], **launch: Any
) -> tuple:
    """The outputs of a launch; a Metal kernel says itself that MLX cannot transform it."""
    import mlx.core as mx

    if form == "graph":
        return launched(kernel, form, values, **launch)
    arrays = {label: value for label, value in flattened(values) if isinstance(value, mx.array)}

    def run(*given: Any) -> tuple:
        given = tuple(map(mx.stop_gradient, given))
        filled = refilled(values, dict(zip(arrays, given, strict=True)))
        return launched(kernel, form, filled, **launch)

    function = mx.custom_function(run)
    refuse(function, plain_kernel("custom()", kernel).name, "mx.grad", "mx.jvp")
    return each(function(*arrays.values()))


def refuse(function: Any, kernel: str, *transforms: str) -> None:
    """Has a function raise where MLX asks it for a derivative that its Metal kernel does not have.

    MLX asks what is inside of the function first, unless it sees mx.stop_gradient there. Under mx.vmap it does so all
    the same, and the launch itself refuses.
    """
    settings = {"mx.grad": function.vjp, "mx.jvp": function.jvp}
    for transform in transforms:

        def raises(*_: Any, transform: str = transform) -> Any:
            raise LaunchValueError(
                f"{kernel}: {transform} has no derivative of the Metal kernel; it has one of its graph form: "
                'custom(form="graph") for the forward kernel, vjp_form="graph" for the backward one'
            )

        settings[transform](raises)


def refilled(values: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments with other arrays in the places that ``given`` names."""

    def filled(name: str, value: Any) -> Any:
        if isinstance(value, tuple):
            kind = type(value)
            return rebuild_tuple(
                kind, [filled(element_name(name, kind, i), x) for i, x in enumerate(value)]
            )
        return given.get(name, value)

    return {name: filled(name, value) for name, value in values.items()}


def each(values: Any) -> tuple[Any, ...]:
    """MLX gives one array where there is one, and a tuple of several."""
    return tuple(values) if isinstance(values, (tuple, list)) else (values,)


def zip_named(names: Mapping[str, Any], values: Any) -> dict[str, Any]:
    return dict(zip(names, each(values), strict=True))


def listed(names: Any) -> str:
    return ", ".join(names) or "none"


def custom(
    kernel: KernelInterface,
    vjp: Vjp | KernelInterface,
    *,
    form: str = "metal",
    saved: Sequence[str] = (),
    constant: Sequence[str] = (),
    vjp_form: str | None = None,
    vjp_launch: Mapping[str, Any] | None = None,
) -> Custom:
    """A kernel whose gradient other kernels compute, as a function from MLX arrays to new MLX arrays.

    The result takes the arguments of :func:`triton_metal.mlx.call`, and ``mx.grad``, ``mx.value_and_grad``, ``mx.vjp``
    and ``mx.compile`` take it. ``form`` says how the kernel runs: "metal" as with :func:`triton_metal.mlx.call`,
    "graph" as with :func:`triton_metal.mlx.graph`, which ``mx.jvp`` and ``mx.vmap`` take, too.

    ``vjp`` is a kernel that computes all gradients in one launch. Its parameters are found by their names: those of
    the forward kernel's arguments and outputs have the same values, ``dy`` is the gradient by output ``y``, and
    ``dx``, which the kernel writes, the gradient of argument ``x``. It runs on the same grid, in ``vjp_form``, or else
    in ``form``. ``vjp_launch`` has what differs: ``grid``, ``init_value``, launch options, values of parameters.

    Or ``vjp`` is any function of ``(primals, cotangents, outputs)``, as with ``mx.custom_function``, but each by name:
    ``primals.x``, also of the arguments that are no arrays; ``cotangents.y``; ``outputs.y``. It returns the gradients
    of the arguments that are arrays of floats, in the order of the parameters, or a dictionary of them. It may launch any
    kernels, with ``call`` or ``graph``.

    ``saved`` names outputs that only ``vjp`` needs: the function does not return them. ``constant`` names arrays that
    have no gradient; with respect to them it is 0.

    Both kernels may have autotune and heuristics. What these choose is known to their own kernel alone.

    >>> import mlx.core as mx, triton_metal, triton_metal.language as tl
    >>> @triton_metal.jit
    ... def root_kernel(x, y, n, BLOCK: tl.constexpr):
    ...     i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ...     tl.store(y + i, tl.sqrt(tl.load(x + i, i < n)), i < n)
    >>> @triton_metal.jit
    ... def root_backward_kernel(y, dy, dx, n, BLOCK: tl.constexpr):
    ...     i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ...     half = 0.5 / tl.load(y + i, i < n, other=1.0)
    ...     tl.store(dx + i, half * tl.load(dy + i, i < n), i < n)
    >>> root = custom(root_kernel, root_backward_kernel)
    >>> def length(x):
    ...     return root((x * x).sum(keepdims=True), 1, 64, grid=(1,), outputs={"y": ((1,), x.dtype)}).sum()
    >>> mx.value_and_grad(length)(mx.array([3.0, 4.0]))
    (array(5, dtype=float32), array([0.6, 0.8], dtype=float32))
    """
    plain = plain_kernel("custom()", kernel)
    if not is_kernel(vjp) and not callable(vjp):
        raise LaunchTypeError(
            f"custom({plain.name}): vjp must be a @triton_metal.jit kernel or a function of primals, cotangents and "
            f"outputs, not {vjp!r}"
        )
    if not is_kernel(vjp) and (vjp_form is not None or vjp_launch is not None):
        raise LaunchTypeError(
            f"custom({plain.name}): vjp_form and vjp_launch belong to a backward kernel; a function launches its "
            "kernels itself"
        )
    vjp_form = form if vjp_form is None else vjp_form
    for option, value in (("form", form), ("vjp_form", vjp_form)):
        if value not in FORMS:
            raise LaunchValueError(
                f'custom({plain.name}): {option} must be "metal" or "graph", not {value!r}'
            )
    names = [param.name for param in plain.params]
    chosen = {"saved": saved, "constant": constant}
    for option, given in chosen.items():
        chosen[option] = given = (given,) if isinstance(given, str) else tuple(given)
        for name in given:
            if name not in names:
                raise LaunchValueError(
                    f"custom({plain.name}): {option} names {name}, but the parameters are {listed(names)}"
                )
    return Custom(
        kernel, vjp, form, chosen["saved"], chosen["constant"], vjp_form, vjp_launch or {}
    )  # type: ignore[arg-type]
