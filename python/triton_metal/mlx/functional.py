"""Kernels as functions of MLX arrays. Their outputs are new arrays of a lazy graph.

Launches use ``mx.fast.metal_kernel``, which writes the kernel's signature itself. docs/apple.md lists the assumptions
and their sources in MLX.
"""

from __future__ import annotations

import functools
import hashlib
import math
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .. import coverage, messages, profiling, refit, traced
from ..backends.metal.options import OTHERS
from ..errors import LaunchTypeError, LaunchValueError
from ..metal_text import (
    MAX_BUFFERS,
    NUM_PROGRAMS,
    PROGRAM_ID,
    MetalText,
    Parameter,
    threads_of,
    unused,
)
from ..tuples import flattened
from .choices import chosen, new_arrays, plain_kernel

if TYPE_CHECKING:
    import mlx.core as mx

    from ..interface import KernelInterface
    from ..jit import JITFunction

# MLX takes the sizes of a grid, in threads, as C++ ints.
MAX_GRID_THREADS = (1 << 31) - 1
# Smaller inputs are in the constant address space, where the text's `device` pointers cannot point.
SMALLEST_DEVICE_INPUT = 8
# Parameters that MLX adds where the source has an input's name with one of these behind it.
_ADDED = ("_shape", "_strides", "_ndim")

# MLX's dtypes and the meaning of their names in MLX's signatures. Metal's standard library defines the names with _t.
_ELEMENTS = {
    "bool": "bool",
    "int8": "int8_t",
    "int16": "short",
    "int32": "int",
    "int64": "int64_t",
    "uint8": "uchar",
    "uint16": "ushort",
    "uint32": "uint",
    "uint64": "uint64_t",
    "float16": "half",
    "bfloat16": "bfloat",
    "float32": "float",
}

LAUNCH_OPTIONS = OTHERS | {"num_warps", "num_stages", "debug", "sanitize_overflow"}
# What an element of an array of truth values, filled with anything but 0, is to a kernel that reads words.
_FILLED_WORD = 0x01010101

_lock = threading.RLock()
_metal_kernel: Callable[..., Any] | None = None


def metal_kernel() -> Callable[..., Any]:
    """``mx.fast.metal_kernel``, or a contract device's stand-in for it."""
    if _metal_kernel is not None:
        return _metal_kernel
    import mlx.core as mx

    return mx.fast.metal_kernel


def call(
    kernel: KernelInterface,
    /,
    *args: Any,
    grid: Any,
    outputs: Mapping[str, Any],
    init_value: float | None = None,
    stream: Any = None,
    **kwargs: Any,
) -> Any:
    """Runs a kernel whose outputs are new MLX arrays, lazily, as a part of MLX's graph.

    ``outputs`` names the arguments that the kernel writes. It gives for each an array with the same shape and dtype,
    or the shape and dtype themselves. The other arguments follow as in ``kernel[grid](...)``. Returns the output, or
    a tuple of the outputs in the order of ``outputs``.

    A new array is uninitialised. The launch must therefore write an output completely, or ``init_value`` must fill it
    first. For anything else, launch in place with ``kernel[grid](...)``. If MLX has no GPU, the host device runs the
    kernel.

    The kernel may have autotune and heuristics. A search runs on copies of the arrays and on new outputs; on zeros while
    MLX traces a function, whose arrays have no values.

    >>> import mlx.core as mx, triton_metal, triton_metal.language as tl
    >>> from triton_metal.testing import contract_device
    >>> @triton_metal.jit
    ... def double(x, out, n, BLOCK: tl.constexpr):
    ...     i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ...     tl.store(out + i, 2 * tl.load(x + i, i < n), i < n)
    >>> x = mx.arange(5)
    >>> with contract_device("mlx"):  # stands for a Mac's GPU
    ...     call(double, x, 5, 64, grid=(1,), outputs={"out": x})
    array([0, 2, 4, 6, 8], dtype=int32)
    """
    specs, values, compiled, sizes = prepared(
        "call()", kernel, args, kwargs, grid, outputs, init_value
    )
    values = dict(flattened(values))
    hidden = len(messages.roles(compiled))
    visible = compiled.metadata.args[: len(compiled.metadata.args) - hidden]
    arguments = [values[argument["name"]] for argument in visible]
    words = compiled.native.pack(arguments + [0] * hidden)
    own_words = words[: 4 * len(words_of(visible))]
    functional(compiled, tuple(specs)).check_outputs(sizes, own_words, specs, init_value)

    for listen in traced.call_listeners:
        known = {**values, **new_arrays(specs, init_value, stream)}
        listen(compiled, sizes, [known[argument["name"]] for argument in visible])

    def launch() -> list[mx.array]:
        if not has_metal():
            return in_place_of_new(compiled, sizes, values, specs, words, init_value, stream)
        # Made anew for each form of the kernel.
        function = functional(compiled, tuple(specs))
        if hidden:
            return with_messages(function, arguments, specs, sizes, words, init_value, stream)
        return function(arguments, list(specs.values()), sizes, words, init_value, stream)

    given = {**values, **{key: _Like(*spec) for key, spec in specs.items()}}
    names = [argument["name"] for argument in visible]
    with profiling.recorded(compiled, sizes, [given[name] for name in names], "mlx"):
        results = refit.launching("mlx", compiled, launch)
    return results[0] if len(results) == 1 else tuple(results)


def output_specs(name: str, outputs: Any) -> dict[str, tuple[tuple[int, ...], Any]]:
    """Shape and dtype of each output that a call of the kernel names."""
    if not isinstance(outputs, Mapping) or not outputs:
        raise LaunchTypeError(
            f"{name}: outputs must give a shape and a dtype for every argument that the kernel writes"
        )
    return {key: read_spec(name, key, value) for key, value in outputs.items()}


def prepared(
    function: str,
    kernel: KernelInterface,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    grid: Any,
    outputs: Mapping[str, Any],
    init_value: float | None = None,
    searches: bool = True,
) -> tuple[dict[str, Any], dict[str, Any], Any, tuple[int, int, int]]:
    """The shapes and dtypes of the outputs, the bound arguments without them, the compiled kernel and the grid's sizes.

    ``searches`` says whether the configurations of autotune are searched, if none is known for the arguments.
    """
    import mlx.core as mx

    plain = plain_kernel(function, kernel)
    name = plain.name
    specs = output_specs(name, outputs)
    if plain is not kernel:
        values = positional(plain, args, specs)
        keyword_arguments(plain, kwargs, values, specs)
        check_arrays(name, values | kwargs)
        kwargs = chosen(kernel, {**values, **kwargs}, grid, specs, init_value, searches)
        kernel, args = plain, ()
    bound = bind(kernel, args, kwargs, specs)
    native, values = kernel.launcher.taken_apart(bound)
    check_arrays(name, values)
    options = {key: value for key, value in kwargs.items() if key in LAUNCH_OPTIONS}
    placeholders = values | {key: mx.zeros((1,), dtype) for key, (_, dtype) in specs.items()}
    compiled = native.warmup(**placeholders, **options)
    sizes = compiled.native.grid(grid(bound) if callable(grid) else grid)
    if 0 in sizes:
        raise LaunchValueError(
            f"{name}: the grid {sizes} has no programs, so nothing computes the outputs; "
            "each dimension must be at least 1"
        )
    return specs, values, compiled, sizes


class _Like:
    """The size of an output that is not there yet."""

    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        self.nbytes = math.prod(shape) * dtype.size


def with_messages(
    function: Functional,
    arguments: Sequence[Any],
    specs: Mapping[str, tuple[tuple[int, ...], Any]],
    grid: tuple[int, int, int],
    words: bytes,
    init_value: float | None,
    stream: Any,
) -> list[mx.array]:
    """The outputs of a kernel that prints or asserts, computed.

    The buffer of messages is one more output. MLX fills all outputs with one value, so the buffer consists of truth
    values, whose bits are known for each.
    """
    import mlx.core as mx

    compiled = function.compiled
    value = 0.0 if init_value is None else float(init_value)
    origin = _FILLED_WORD if value != 0 else 0
    hidden, packed = messages.with_hidden(compiled, words, origin)
    buffers = [role for role in hidden if role in ("failures", "prints")]
    results = function(
        [*arguments, *hidden.values()],
        [*specs.values(), *(((4 * hidden[role],), mx.bool_) for role in buffers)],
        grid,
        packed,
        value,
        stream,
    )
    hidden |= dict(zip(buffers, results[len(specs) :], strict=True))
    messages.report(compiled, messages.contents(hidden), origin=origin)
    return results[: len(specs)]


def has_metal() -> bool:
    """Whether MLX has a GPU for custom kernels, or a contract device replaces it."""
    import mlx.core as mx

    return _metal_kernel is not None or mx.metal.is_available()


def in_place_of_new(
    compiled: Any,
    grid: tuple[int, int, int],
    values: Mapping[str, Any],
    specs: Mapping[str, tuple[tuple[int, ...], Any]],
    words: bytes,
    init_value: float | None,
    stream: Any,
) -> list[mx.array]:
    """Runs the kernel if MLX is on the CPU: an in-place launch on new arrays, on the host device."""
    from . import in_place

    new = new_arrays(specs, init_value, stream)
    known = {**values, **new}
    names = [argument["name"] for argument in compiled.metadata.args]
    if messages.sites_of(compiled):
        arguments = [known[name] for name in names[: -len(messages.roles(compiled))]]
        messages.launch(in_place.launch, compiled, grid, arguments, words)
    else:
        in_place.launch(compiled, grid, [known[name] for name in names], words)
    return list(new.values())


def functional(compiled: Any, outputs: tuple[str, ...]) -> Functional:
    """The kernel with these outputs. It is made once, because MLX compiles each kernel object again."""
    cache = vars(compiled).setdefault("_mlx_functional", {})
    key = (outputs, metal_kernel())
    found = cache.get(key)
    if found is None:
        with refit.lock:
            # A refit drops the kernel's cache with what was made of the form before.
            cache = vars(compiled).setdefault("_mlx_functional", {})
            found = cache.setdefault(key, Functional(compiled, outputs))
    return found


class Functional:
    """A compiled kernel and the arguments that are its outputs."""

    def __init__(self, compiled: Any, outputs: tuple[str, ...]) -> None:
        self.name: str = compiled.metadata.name
        self.compiled = compiled
        self.threads: int = compiled.metadata.threads
        self.text = MetalText.of(compiled.asm["metal"], compiled.metadata)
        self.scalar_buffer: int = compiled.metadata.scalar_buffer
        self.arguments: list[dict[str, Any]] = compiled.metadata.args
        buffers = [argument for argument in self.arguments if argument["kind"] == "buffer"]
        outputs += tuple(argument["name"] for argument in buffers if "messages" in argument)
        by_name = {argument["name"]: argument for argument in buffers}
        for output in outputs:
            if output not in by_name:
                raise LaunchValueError(
                    f"{self.name}: output {output} is not an array of the kernel"
                )
        for argument in buffers:
            writes = argument["writes"] or argument["atomic"]
            if writes and argument["name"] not in outputs:
                raise LaunchValueError(
                    f"{self.name}: argument {argument['name']} is written by the kernel, so outputs= must contain it; "
                    f"an array that is there already is changed by an in-place launch, {self.name}[grid](...)"
                )
            if not writes and argument["name"] in outputs:
                raise LaunchValueError(
                    f"{self.name}: output {argument['name']} is never written by the kernel"
                )
        self.outputs = [by_name[output] for output in outputs]
        self.inputs = [
            (index, argument)
            for index, argument in enumerate(self.arguments)
            if argument["kind"] == "buffer" and argument["name"] not in outputs
        ]
        self.factory = metal_kernel()
        self.made: dict[Any, Any] = {}
        # MLX's kernel objects whose pipelines exist.
        self.proven: set[Any] = set()

    def check_outputs(
        self,
        grid: tuple[int, int, int],
        words: bytes,
        specs: Mapping[str, tuple[tuple[int, ...], Any]],
        init_value: float | None,
    ) -> None:
        """Raises if an output would keep, or the kernel would read, uninitialised elements."""
        if init_value is not None:
            return
        in_place = f"launch it in place, {self.name}[grid](...), or give init_value="
        for argument in self.outputs:
            name = argument["name"]
            if "messages" in argument:
                continue
            if argument["reads"] or argument["atomic"]:
                how = "updates atomically" if argument["atomic"] else "reads"
                raise LaunchValueError(
                    f"{self.name}: the kernel {how} {name}, but an output is new, uninitialised memory: {in_place}"
                )
        sizes = {name: math.prod(shape) for name, (shape, _) in specs.items()}
        whole = coverage.of(self.compiled).whole(grid, words, sizes, run_coverage)
        for name in specs:
            if sizes[name] and not whole[name]:
                raise LaunchValueError(
                    f"{self.name}: this launch may not write all of {name}, and the rest of an output would be "
                    f"undefined: {in_place}"
                )

    def __call__(
        self,
        arguments: Sequence[Any],
        specs: Sequence[tuple[tuple[int, ...], Any]],
        grid: tuple[int, int, int],
        words: bytes,
        init_value: float | None = None,
        stream: Any = None,
    ) -> list[mx.array]:
        """The outputs of a launch. Arrays and scalars are in the kernel's order."""
        threads = threads_of(grid, self.threads, MAX_GRID_THREADS)
        inputs = [large_enough(arguments[index], stream) for index, _ in self.inputs]
        words += threads.words
        if words:
            inputs.append(words_array(words))
        dtypes = [array.dtype for array in inputs] + [dtype for _, dtype in specs]
        # MLX has no memory for an array without elements: the kernel gets one element, which is dropped.
        shapes = [shape if math.prod(shape) else (1,) for shape, _ in specs]
        function = self.kernel(threads.folded, tuple(dtype_name(dtype) for dtype in dtypes))
        results = function(
            inputs=inputs,
            output_shapes=shapes,
            output_dtypes=[dtype for _, dtype in specs],
            grid=threads.size,
            threadgroup=threads.group,
            init_value=None if init_value is None else float(init_value),
            stream=stream,
        )
        if function not in self.proven and proven(self.name, results):
            self.proven.add(function)
        return [
            result if math.prod(shape) else result[:0].reshape(shape)
            for result, (shape, _) in zip(results, specs, strict=True)
        ]

    def kernel(self, folded: bool, dtypes: tuple[str, ...]) -> Any:
        """MLX's kernel object for these dtypes, inputs first."""
        found = self.made.get((folded, dtypes))
        if found is None:
            with _lock:
                found = self.made.get((folded, dtypes))
                if found is None:
                    found = self.made[folded, dtypes] = self.make(folded, dtypes)
        return found

    def make(self, folded: bool, dtypes: tuple[str, ...]) -> Any:
        """Passes MLX the names of the buffers, a header and the body of a kernel."""
        text = self.text
        buffers = {parameter.buffer: parameter for parameter in text.buffers}
        bound = [buffers[argument["slot"]] for _, argument in self.inputs]
        if self.scalar_buffer >= 0:
            bound.append(buffers[self.scalar_buffer])
        elif folded:
            if len(bound) + len(self.outputs) >= MAX_BUFFERS:
                raise LaunchValueError(
                    f"{self.name} has {MAX_BUFFERS} buffers, and a grid this wide needs one more for its sizes"
                )
            bound.append(Parameter(text.fresh_name("grid_words"), "constant uint *", None, None))
        num_inputs = len(bound)
        bound += [buffers[argument["slot"]] for argument in self.outputs]

        places = ""
        if folded:
            words = bound[num_inputs - 1].name
            first = len(words_of(self.arguments))
            places += text.unfold(
                PROGRAM_ID, NUM_PROGRAMS, [f"{words}[{first + i}]" for i in range(3)]
            )
        for parameter in text.parameters:
            if parameter.buffer is not None:
                continue
            if folded and parameter.attribute in (PROGRAM_ID, NUM_PROGRAMS):
                continue
            places += f"  const {parameter.declared()} = {parameter.attribute};\n"

        # A parameter keeps the text's name if MLX gives it the same type.
        names: list[str] = []
        aliases = ""
        for position, (parameter, dtype) in enumerate(zip(bound, dtypes, strict=True)):
            is_input = position < num_inputs
            is_words = is_input and parameter.type.startswith("constant")
            same = is_words or element_of(parameter.type) == _ELEMENTS[dtype]
            name = parameter.name
            taken = text.header + places + text.body + " ".join(names)
            if not same or (is_input and pulls_in(name, places + text.body)) or name in names:
                name = unused(f"{parameter.name}_buffer", taken)
                while is_input and pulls_in(name, places + text.body):
                    name = unused(f"{name}_buffer", taken)
                if is_words:
                    # `constant` or `device`, as MLX has it for the number of words.
                    aliases += f"  const auto {parameter.name} = {name};\n"
                else:
                    aliases += f"  {parameter.declared()} = ({parameter.type}){name};\n"
            names.append(name)
        source = f"\n{aliases}{places}{text.body}"
        digest = hashlib.sha256((text.header + source + repr(dtypes)).encode()).hexdigest()[:16]
        return self.factory(
            # One name for one source: MLX before 0.32.1 keeps libraries by their names alone.
            name=f"{self.name}_{digest}",
            input_names=names[:num_inputs],
            output_names=names[num_inputs:],
            source=source,
            header=text.header,
        )


def proven(kernel: str, results: list[Any]) -> bool:
    """Has MLX schedule the first launch of a kernel, so that a text or pipeline that is refused shows here.

    MLX makes the pipeline when it evaluates an output, in the thread that asks for it, and this does not wait for the
    GPU. False if a function is being traced: its arrays cannot be evaluated, so a refusal shows when MLX evaluates
    what the function gives.
    """
    import mlx.core as mx

    start = time.perf_counter()
    try:
        mx.async_eval(results)
    except ValueError as error:
        if "transformation" in str(error):
            return False
        raise
    refit.warn_if_slow(kernel, time.perf_counter() - start)
    return True


def run_coverage(
    compiled: Any, positions: Mapping[int, int], grid: tuple[int, int, int], words: bytes
) -> dict[int, bool]:
    """Runs the kernel that stores bytes other than 0 wherever another one writes, with MLX."""
    import mlx.core as mx

    described = compiled.metadata.args
    outputs = {
        described[position]["name"]: ((max(size, 1),), ones_dtype(described[position]["type"]))
        for position, size in positions.items()
    }
    dummy = mx.zeros((SMALLEST_DEVICE_INPUT,))
    results = functional(compiled, tuple(outputs))(
        [dummy] * len(described), list(outputs.values()), grid, words, init_value=0
    )
    return {
        position: bool(mx.all(mx.view(result, mx.uint8) != 0).item())
        for position, result in zip(positions, results, strict=True)
    }


def ones_dtype(pointer: str) -> Any:
    """An MLX dtype with the elements of a pointer in the launch contract."""
    import mlx.core as mx

    name = pointer.removeprefix("*")
    floats = {"f16": mx.float16, "bf16": mx.bfloat16, "f32": mx.float32}
    return floats.get(name) or (mx.bool_ if name == "i1" else getattr(mx, f"int{name[1:]}"))


def words_of(arguments: Sequence[Mapping[str, Any]]) -> range:
    """The words of a kernel's scalars."""
    return range(sum(argument["words"] for argument in arguments if argument["kind"] == "scalar"))


def pulls_in(name: str, source: str) -> bool:
    """Whether MLX would add parameters for this input. It searches for their names anywhere in the text."""
    return any(name + added in source for added in _ADDED)


def element_of(pointer: str) -> str:
    """The element type of a pointer type.

    >>> element_of("device const half *")
    'half'
    """
    return " ".join(
        word for word in pointer.rstrip("* ").split() if word not in ("device", "const", "constant")
    )


@functools.cache
def dtype_name(dtype: Any) -> str:
    """MLX's name of a dtype: "float32"."""
    return str(dtype).rpartition(".")[2].removesuffix("_")


def is_element(dtype: Any) -> bool:
    """Whether arrays of one of MLX's dtypes reach a Metal kernel."""
    return dtype_name(dtype) in _ELEMENTS


def large_enough(array: Any, stream: Any) -> Any:
    """The array, padded with zeros if it is small: MLX passes small arrays in the constant address space."""
    import mlx.core as mx

    if array.size >= SMALLEST_DEVICE_INPUT:
        return array
    rest = mx.zeros((SMALLEST_DEVICE_INPUT - array.size,), array.dtype, stream=stream)
    return mx.concatenate([mx.reshape(array, (-1,), stream=stream), rest], stream=stream)


@functools.lru_cache(maxsize=4096)
def words_array(words: bytes) -> Any:
    """Words as an MLX array. An array in a lazy graph is never changed."""
    import mlx.core as mx

    return mx.array(memoryview(words).cast("I").tolist(), dtype=mx.uint32)


def read_spec(kernel: str, name: str, value: Any) -> tuple[tuple[int, ...], Any]:
    """An output's shape and dtype, from a similar array or from the two themselves."""
    import mlx.core as mx

    shape, dtype = (
        (value.shape, value.dtype)
        if hasattr(value, "shape") and hasattr(value, "dtype")
        else value
        if isinstance(value, tuple) and len(value) == 2
        else (None, None)
    )
    if isinstance(shape, int) and not isinstance(shape, bool):
        shape = (shape,)
    if not isinstance(dtype, mx.Dtype) or not isinstance(shape, (tuple, list)):
        raise LaunchTypeError(
            f"{kernel}: output {name} must be an MLX array that it is like, or (shape, dtype), not {value!r}"
        )
    if any(isinstance(size, bool) or not isinstance(size, int) or size < 0 for size in shape):
        raise LaunchValueError(
            f"{kernel}: the shape of output {name} must consist of integers of 0 or more, not {tuple(shape)}"
        )
    if not is_element(dtype):
        raise LaunchTypeError(
            f"{kernel}: output {name} has dtype {dtype}, which no kernel can write"
        )
    return tuple(shape), dtype


def bind(
    kernel: JITFunction,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    specs: Mapping[str, Any],
    is_whole: bool = True,
) -> dict[str, Any]:
    """Binds every argument except the outputs to its name. Of a kernel with autotune or heuristics some come later:
    ``is_whole`` is False.
    """
    names = [param.name for param in kernel.params]
    values = positional(kernel, args, specs)
    values |= keyword_arguments(kernel, kwargs, values, specs)
    for param in kernel.params:
        if param.name not in values and param.name not in specs and is_whole:
            if not param.has_default:
                raise LaunchTypeError(f"{kernel.name}: argument {param.name} is missing")
            values[param.name] = param.default
    numpy = sys.modules.get("numpy")
    for name, value in values.items():
        if numpy is not None and isinstance(value, numpy.generic):
            values[name] = value.item()
    return {name: values[name] for name in names if name in values} | dict.fromkeys(specs)


def positional(
    kernel: JITFunction, args: tuple[Any, ...], specs: Mapping[str, Any]
) -> dict[str, Any]:
    """The positional arguments by name: they follow each other without the outputs."""
    names = [param.name for param in kernel.params]
    for output in specs:
        if output not in names:
            problem = (
                f"output {output} is an element of a tuple; outputs are parameters of their own"
                if output.partition(".")[0] in names
                else f"there is no argument {output}; its parameters are {', '.join(names)}"
            )
            raise LaunchTypeError(f"{kernel.name}: {problem}")
    open_names = [name for name in names if name not in specs]
    if len(args) > len(open_names):
        raise LaunchTypeError(
            f"{kernel.name} takes {len(open_names)} arguments besides its outputs, but {len(args)} were given; they "
            f"are {', '.join(open_names)}"
        )
    return dict(zip(open_names, args, strict=False))


def keyword_arguments(
    kernel: JITFunction,
    kwargs: Mapping[str, Any],
    values: Mapping[str, Any],
    specs: Mapping[str, Any],
) -> dict[str, Any]:
    """The keywords without launch options. Raises LaunchTypeError for one that is no parameter, or is given already."""
    names = [param.name for param in kernel.params]
    found = {key: each for key, each in kwargs.items() if key in names or key not in LAUNCH_OPTIONS}
    for name in found:
        if name in specs or name in values or name not in names:
            problem = "is an output" if name in specs else "is given twice"
            problem = problem if name in names else "is not a parameter"
            raise LaunchTypeError(
                f"{kernel.name}: argument {name} {problem}; its parameters are {', '.join(names)}"
            )
    return found


def check_arrays(kernel: str, values: Mapping[str, Any]) -> None:
    """Raises LaunchTypeError for an array that is not one of MLX."""
    for label, value in flattened(values):
        if hasattr(value, "__array_interface__") and not is_number_or_array_of_mlx(value):
            raise LaunchTypeError(
                f"{kernel}: argument {label} is a {type(value).__name__}, not an array of MLX"
            )


def is_number_or_array_of_mlx(value: Any) -> bool:
    """Whether a value that tells its memory is an array of MLX, or a number of NumPy."""
    import mlx.core as mx

    numpy = sys.modules.get("numpy")
    return isinstance(value, mx.array) or (numpy is not None and isinstance(value, numpy.generic))
