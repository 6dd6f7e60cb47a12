"""The program of a kernel's MLX graph, and its runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .. import _native
from ..errors import DeviceAssertionError, GraphRefusal, compile_error
from ..messages import assertion_message
from . import in_place


@dataclass(frozen=True)
class Summary:
    """What a graph was made of.

    ``operations`` counts the operations of the kernel that were translated, those of each step of a loop that runs step
    by step, and ``primitives`` those of MLX that its results need. ``reads_elements`` says that elements of arrays
    decide about bounds of loops, branches or checks, and were computed while the graph was made. ``sliced``
    are the loads and stores that became slices and reshapes, ``gathered`` those that became gathers and scatters.
    ``unchecked_assertions`` depend on arrays that have no values yet, because a transform of MLX traces. ``raised``
    says, with lines of the kernel, which loops became axes, reductions and products of whole matrices, and which rows a
    softmax or a norm of MLX; ``fell_back``, which loops run step by step, and why.
    """

    operations: int
    sliced: int
    gathered: int
    unchecked_assertions: int
    primitives: int
    reads_elements: bool
    raised: list[str]
    fell_back: list[str]


def program_of(compiled: Any) -> Any:
    """The kernel as a program of array operations. It is made once."""
    found = vars(compiled).get("_mlx_graph")
    if found is None:
        try:
            text = _native.graph_program(compiled.asm["ttir"], compiled.metadata.name)
        except ValueError as error:
            raise compile_error(str(error), GraphRefusal) from None
        found = vars(compiled).setdefault("_mlx_graph", in_place.native().GraphProgram.read(text))
    return found


def run(
    compiled: Any,
    grid: tuple[int, int, int],
    arrays: Sequence[Any],
    words: bytes,
    counts_primitives: bool = False,
    convolves: bool | None = None,
) -> tuple[list[Any], list[bool], Summary]:
    """The contents of ``arrays`` after a launch, whether each is written, and what the graph was made of.

    ``arrays`` has one array for each buffer among the kernel's arguments, in order; they are told apart by their
    ``id``. Scalars are in ``words``. Primitives are only counted if that is asked for. Convolutions are
    ``mx.conv_general`` if ``convolves``, or if it is None, on a GPU; else sums of products of slices.
    """
    import mlx.core as mx

    if convolves is None:
        convolves = mx.default_device().type == mx.DeviceType.gpu
    program = program_of(compiled)
    described = compiled.metadata.args[: len(program.arguments)]
    given: list[tuple[int, int]] = []
    numbers: dict[int, int] = {}
    distinct: list[Any] = []
    places = iter(arrays)
    order = []
    for argument in described:
        if argument["kind"] == "buffer":
            array = next(places)
            if id(array) not in numbers:
                numbers[id(array)] = len(distinct)
                distinct.append(array)
            order.append(numbers[id(array)])
            given.append((numbers[id(array)], 0))
        else:
            begin = 4 * argument["slot"]
            given.append(
                (-1, bits_of(words[begin : begin + 4 * argument["words"]], argument["type"]))
            )
    try:
        results, written, counts = program.run(
            tuple(grid), given, distinct, counts_primitives, convolves
        )
    except in_place.native().GraphRefused as error:
        raise compile_error(str(error), GraphRefusal) from None
    return [results[i] for i in order], [written[i] for i in order], Summary(**counts)


def bits_of(words: bytes, type: str) -> int:
    """The bits of a scalar in the launch's words, as a signed integer of its width.

    >>> bits_of(b"\\xfd\\xff\\xff\\xff", "i8"), bits_of(b"\\x01\\x00\\x00\\x00", "i1")
    (-3, 1)
    """
    width = int(type.lstrip("bfiu"))
    return int.from_bytes(words[: max(1, width // 8)], "little", signed=width > 1)


def failed_assertion(
    name: str, diagnostic: str, program: tuple[int, int, int], index: Sequence[int]
) -> DeviceAssertionError:
    """The error of a failed assertion, whose text and place are in a diagnostic. The extension module calls this."""
    told = compile_error(diagnostic)
    message = assertion_message(name, program, tuple(index), told.error_message)
    error = DeviceAssertionError(message, told.location, told.callers)
    error.program, error.index = program, tuple(index)
    return error
