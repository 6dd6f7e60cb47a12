"""Prints and assertions of kernels: the buffers that a launch passes, and what a kernel has written into them.

A kernel that prints or asserts has more arguments than its function: buffers of 32-bit words for prints and for failed
assertions, what their words hold before the launch, and how many words prints may take. The launch contract gives
these arguments a role (compiler/dialect/tt/Messages.h has the places of the words). A launch of such a kernel waits
for its end on every device. It then writes the prints to the standard output, in the order of the programs and of each
program's prints, and raises the assertion that failed in the first program.
"""

from __future__ import annotations

import linecache
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from .errors import (
    DeviceAssertionError,
    DeviceError,
    LaunchValueError,
    LostPrintsWarning,
    SourceLocation,
    outside_language,
)

if TYPE_CHECKING:
    import numpy as np

#: The environment variable with the bytes of a launch's buffer for prints.
SIZE_VARIABLE = "TRITON_METAL_PRINT_BYTES"
DEFAULT_BYTES = 4 << 20
#: The kernel's atomic counters count words below this.
MAX_BYTES = 1 << 31

# Words of the buffer of prints.
_USED, _LOST, _FIRST_PRINT, _PRINT_HEADER = 0, 1, 4, 4
# Words of the buffer of failures.
_FAILURES, _FIRST_FAILURE, _FAILURE_WORDS, _MAX_FAILURES = 1, 4, 5, 64

Route = Callable[[Any, tuple[int, int, int], list[Any], bytes], Any]


def sites_of(compiled: Any) -> list[dict[str, Any]]:
    """The prints and assertions of a compiled kernel, as its launch contract lists them."""
    return _contract(compiled).get("messages", [])


def _contract(compiled: Any) -> dict[str, Any]:
    metadata = compiled.metadata
    return metadata if isinstance(metadata, dict) else vars(metadata)


def roles(compiled: Any) -> list[str]:
    """The roles of a kernel's hidden arguments, in their order behind all others."""
    return [
        argument["messages"] for argument in _contract(compiled)["args"] if "messages" in argument
    ]


def sizes(compiled: Any) -> dict[str, int]:
    """The words of each buffer by role, and the words for the records of prints as "size"."""
    result = {"failures": _FIRST_FAILURE + _FAILURE_WORDS * _MAX_FAILURES, "size": 0}
    if "prints" in roles(compiled):
        text = os.environ.get(SIZE_VARIABLE, "")
        size = int(text) if text.isdecimal() else -1 if text else DEFAULT_BYTES
        if not 0 <= size <= MAX_BYTES:
            raise LaunchValueError(
                f"{SIZE_VARIABLE} is {text!r}; it must be a number of bytes from 0 to {MAX_BYTES}"
            )
        result |= {"prints": _FIRST_PRINT + size // 4, "size": size // 4}
    return result


def launch(
    run: Route,
    compiled: Any,
    grid: tuple[int, int, int],
    arguments: Sequence[Any],
    scalar_words: bytes,
    scalar_copies: int = 1,
) -> None:
    """Launches a kernel with messages through ``run``, waits for its end, and reports them.

    ``arguments`` are those of the kernel's function, and ``scalar_words`` has room for the hidden ones.
    ``scalar_copies`` is the number of lines for each printed scalar.
    """
    hidden, packed = with_hidden(compiled, scalar_words)
    for role in ("failures", "prints"):
        if role in hidden:
            hidden[role] = new_buffer(arguments, hidden[role])
    try:
        run(compiled, grid, [*arguments, *hidden.values()], packed)
    except DeviceError as error:
        # An access that an assertion would have prevented.
        report_after(error, compiled, contents(hidden), scalar_copies)
        raise
    report(compiled, contents(hidden), scalar_copies=scalar_copies)


def with_hidden(
    compiled: Any, scalar_words: bytes, origin: int = 0
) -> tuple[dict[str, Any], bytes]:
    """The hidden arguments by role, with the words of a buffer in its place, and the words of all scalars."""
    known = sizes(compiled) | {"origin": origin}
    hidden, packed = {}, bytearray(scalar_words)
    for argument in _contract(compiled)["args"]:
        if "messages" not in argument:
            continue
        value = hidden[argument["messages"]] = known[argument["messages"]]
        if argument["kind"] == "scalar":
            at = 4 * argument["slot"]
            packed[at : at + 4] = value.to_bytes(4, "little")
    return hidden, bytes(packed)


def new_buffer(arguments: Sequence[Any], words: int) -> Any:
    """A buffer of zeros on the device of the first array among the arguments."""
    import numpy as np

    for value in arguments:
        module = type(value).__module__.partition(".")[0]
        if module == "torch" and getattr(getattr(value, "device", None), "type", "cpu") != "cpu":
            import torch

            return torch.zeros(words, dtype=torch.int32, device=value.device)
        if module == "mlx" and hasattr(value, "dtype"):
            import mlx.core as mx

            return mx.zeros((words,), mx.int32)
        if hasattr(value, "__array_interface__") or module == "torch":
            break
    return np.zeros(words, np.int32)


def contents(hidden: dict[str, Any]) -> dict[str, Any]:
    """The words of the buffers by role, once the launch has ended."""
    return {role: words_in(hidden[role]) for role in ("failures", "prints") if role in hidden}


def words_in(buffer: Any) -> Any:
    """The words of a buffer."""
    import numpy as np

    if hasattr(buffer, "cpu"):
        buffer = buffer.cpu().numpy()
    elif type(buffer).__module__.startswith("mlx"):
        import mlx.core as mx

        try:
            mx.eval(buffer)
        except ValueError as error:
            if "transformation" not in str(error):
                raise
            raise LaunchValueError(
                "a kernel that prints or asserts needs its buffer's values after the launch, and there are none while "
                "mx.compile, mx.grad or mx.vmap traces a function: launch it outside of them"
            ) from error
    return np.asarray(buffer).view(np.uint32)


def report_after(
    error: BaseException, compiled: Any, buffers: dict[str, Any], scalar_copies: int = 1
) -> None:
    """Reports the messages of a launch that failed; returns if none explains the failure."""
    try:
        report(compiled, buffers, scalar_copies=scalar_copies)
    except DeviceAssertionError as assertion:
        raise assertion from error


def report(
    compiled: Any, buffers: dict[str, Any], *, origin: int = 0, scalar_copies: int = 1
) -> None:
    """Prints what a kernel has printed, and raises the assertion that failed in the first program.

    ``buffers`` has the words of the buffers by role, and ``origin`` is what they held before the launch.
    """
    import numpy as np

    words = {
        role: np.frombuffer(content, np.uint32) if isinstance(content, bytes) else content
        for role, content in buffers.items()
    }
    sites, contract = sites_of(compiled), _contract(compiled)
    if "prints" in words:
        report_prints(contract["name"], words["prints"], sites, origin, scalar_copies)
    if "failures" in words:
        failure = first_failure(words["failures"], origin)
        if failure is not None:
            raise assertion_error(contract, sites, failure)


def report_prints(
    name: str, words: Any, sites: list[dict[str, Any]], origin: int, scalar_copies: int
) -> None:
    """Writes the prints to the standard output, and warns of those that are lost."""
    lines = [
        line for record in prints_in(words, sites, origin) for line in record.lines(scalar_copies)
    ]
    if lines:
        sys.stdout.write("\n".join(lines) + "\n")
        sys.stdout.flush()
    lost = (int(words[_LOST]) - origin) & 0xFFFFFFFF
    if lost:
        size = 4 * (len(words) - _FIRST_PRINT)
        warnings.warn(
            f"{name}: {lost} {'print' if lost == 1 else 'prints'} found no room in the buffer of {size} bytes and "
            f"{'is' if lost == 1 else 'are'} lost; {SIZE_VARIABLE}={max(4 * size, 4096)} makes it larger",
            LostPrintsWarning,
            stacklevel=4,
        )


# --- Prints --------------------------------------------------------------------------------------------


class Record:
    """One print of one program."""

    def __init__(
        self, site: dict[str, Any], program: tuple[int, int, int], words: np.ndarray
    ) -> None:
        self.site = site
        self.program = program
        self.words = words

    def lines(self, scalar_copies: int) -> Iterator[str]:
        """The lines of the print, one for each element of each operand."""
        begin = "pid ({}, {}, {})".format(*self.program)
        prefix, operands = self.site["text"], self.site["operands"]
        if not operands:
            yield from [begin + prefix] * scalar_copies
        at = 0
        for number, operand in enumerate(operands):
            count = size_of(operand)
            planes = [
                self.words[at + k * count :][:count] for k in range(words_of(operand["type"]))
            ]
            at += count * len(planes)
            values = formatted(operand, planes, self.site["hex"])
            if len(operands) > 1:
                values = [f"(operand {number}) {value}" for value in values]
            if not operand["shape"]:
                yield from [f"{begin} idx (){prefix}{values[0]}"] * scalar_copies
                continue
            for index, value in zip(indices(operand["shape"]), values, strict=True):
                yield f"{begin} idx ({index}){prefix}{value}"


def prints_in(words: Any, sites: list[dict[str, Any]], origin: int) -> list[Record]:
    """The prints in a buffer, by program. Those of one program are in their order."""
    prints = words[_FIRST_PRINT:]
    used = min((int(words[_USED]) - origin) & 0xFFFFFFFF, len(prints))
    records, at = [], 0
    while at < used:
        site = sites[int(prints[at])]
        length = _PRINT_HEADER + sum(
            size_of(operand) * words_of(operand["type"]) for operand in site["operands"]
        )
        if at + length > len(prints):
            break
        x, y, z = (int(word) for word in prints[at + 1 : at + _PRINT_HEADER])
        records.append(Record(site, (x, y, z), prints[at + _PRINT_HEADER : at + length]))
        at += length
    return sorted(records, key=lambda record: record.program[::-1])


def size_of(operand: dict[str, Any]) -> int:
    """The number of elements of an operand."""
    count = 1
    for size in operand["shape"]:
        count *= size
    return count


def bits_of(type: str) -> int:
    """The bits of an element.

    >>> [bits_of(type) for type in ("i1", "bf16", "f8E4M3FN", "!tt.ptr<f32>")]
    [1, 16, 8, 64]
    """
    if type.startswith("!"):
        return 64
    digits = type[type.index("f") + 1 if "f" in type else 1 :]
    return int(digits.partition("E")[0])


def words_of(type: str) -> int:
    """The 32-bit words of an element."""
    return 2 if bits_of(type) > 32 else 1


def indices(shape: Sequence[int]) -> Iterator[str]:
    """The index of each element, in columns.

    >>> list(indices((1, 16)))[8:11]
    ['0,  8', '0,  9', '0, 10']
    """
    if not shape:
        yield ""
        return
    width = len(str(shape[0] - 1))
    rest = list(indices(shape[1:]))
    for index in range(shape[0]):
        for inner in rest:
            yield f"{index:{width}}, {inner}" if inner else f"{index:{width}}"


def formatted(operand: dict[str, Any], planes: list[Any], hex: bool) -> list[str]:
    """The elements of an operand as text, from their low and high words."""
    import numpy as np

    type = operand["type"]
    bits = planes[0].astype(np.uint64)
    if len(planes) > 1:
        bits |= planes[1].astype(np.uint64) << np.uint64(32)
    width = bits_of(type)
    if type.startswith("!"):
        return [f"0x{value:x}" for value in bits.tolist()]
    if hex:
        return [f"0x{value:0{max(width // 4, 1)}x}" for value in bits.tolist()]
    if type.startswith("i"):
        values = bits.tolist()
        if operand["signed"] and width > 1:
            values = [value - (value >> (width - 1) << width) for value in values]
        return [str(value) for value in values]
    return [f"{value:f}" for value in floats(type, bits)]


def floats(type: str, bits: Any) -> list[float]:
    """Floats from their bits."""
    import numpy as np

    if type == "f64":
        return bits.view(np.float64).tolist()
    if type == "f32":
        return bits.astype(np.uint32).view(np.float32).tolist()
    if type == "bf16":
        return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32).tolist()
    if type == "f16":
        return bits.astype(np.uint16).view(np.float16).tolist()
    return [small_float(type, value) for value in bits.tolist()]


def small_float(type: str, bits: int) -> float:
    """A float of 8 bits.

    >>> small_float("f8E4M3FN", 0x7e), small_float("f8E5M2", 0xfc), small_float("f8E4M3FNUZ", 0x80)
    (448.0, -inf, nan)
    """
    exponent_bits, mantissa_bits = int(type[3]), int(type[5])
    has_zero_for_nan = type.endswith("UZ")
    bias = (1 << exponent_bits - 1) - (0 if has_zero_for_nan else 1)
    sign = -1.0 if bits >> 7 else 1.0
    exponent = bits >> mantissa_bits & (1 << exponent_bits) - 1
    mantissa = bits & (1 << mantissa_bits) - 1
    if has_zero_for_nan:
        if bits == 0x80:
            return float("nan")
    elif exponent == (1 << exponent_bits) - 1:
        if not type.endswith("FN"):
            return float("nan") if mantissa else sign * float("inf")
        if mantissa == (1 << mantissa_bits) - 1:
            return float("nan")
    if not exponent:
        return sign * mantissa * 2.0 ** (1 - bias - mantissa_bits)
    return sign * (1 + mantissa / (1 << mantissa_bits)) * 2.0 ** (exponent - bias)


# --- Assertions ----------------------------------------------------------------------------------------


def first_failure(words: Any, origin: int) -> list[int] | None:
    """The record of the failed assertion of the first program; None if all held."""
    count = min((int(words[_FAILURES]) - origin) & 0xFFFFFFFF, _MAX_FAILURES)
    records = [
        [int(word) for word in words[_FIRST_FAILURE + i * _FAILURE_WORDS :][:_FAILURE_WORDS]]
        for i in range(count)
    ]
    return min(records, key=lambda record: record[3:0:-1], default=None)


def assertion_message(
    name: str, program: tuple[int, int, int], index: tuple[int, ...], text: str
) -> str:
    """What a failed assertion says of a kernel, the program, its element and the assertion's own text."""
    message = f"{name}: device-side assertion failed in program {program}"
    if index:
        message += f" at element {index if len(index) > 1 else index[0]}"
    return f"{message}: {text}" if text else message


def assertion_error(
    contract: dict[str, Any], sites: list[dict[str, Any]], failure: list[int]
) -> DeviceAssertionError:
    """A failed assertion with its message, program, element and location."""
    site = sites[failure[0]]
    program = (failure[1], failure[2], failure[3])
    index: tuple[int, ...] = ()
    rest = failure[4]
    for size in reversed(site["operands"][0]["shape"]):
        index = (rest % size, *index)
        rest //= size
    message = assertion_message(contract["name"], program, index, site["text"])
    text = contract["text"]
    frames = site["source"]
    places = [
        SourceLocation(
            text["files"][file], line, column, linecache.getline(text["files"][file], line)
        )
        for file, line, column in zip(frames[::3], frames[1::3], frames[2::3], strict=True)
    ]
    places = outside_language(places)
    error = DeviceAssertionError(message, places[0] if places else None, tuple(places[1:]))
    error.program, error.index = program, index
    return error
