"""Random tile programs against NumPy: elementwise work, masks, reductions, shapes, loops, branches and dots.

A program is drawn step by step, so that Hypothesis can take steps away from one that fails. Every result is
exact: integers wrap around, floats are only added up where they are small whole numbers. The programs are the
same on every run; TRITON_METAL_RANDOM_PROGRAMS=n draws n fresh ones.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernel_support import assert_same, triton

FRESH = int(os.environ.get("TRITON_METAL_RANDOM_PROGRAMS", "0"))
LARGEST = 4096


@dataclass(frozen=True)
class Tile:
    """A value of the program, and what it must be."""

    name: str
    value: np.ndarray

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape

    @property
    def is_float(self) -> bool:
        return self.value.dtype.kind == "f"


@dataclass
class Program:
    lines: list[str] = field(default_factory=list)
    tiles: list[Tile] = field(default_factory=list)
    inputs: dict[str, np.ndarray] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)

    def add(self, text: str, value: Any, *operands: Tile) -> Tile:
        """Adds a tile that is computed by a line, or by several of which the last one gives its value."""
        tile = Tile(f"v{len(self.tiles)}", np.asarray(value))
        assert tile.value.dtype in (np.int32, np.float32)
        *before, last = text.split("\n")
        self.lines += [line.replace("@", tile.name) for line in before]
        self.lines.append(last.replace("@", tile.name) if "@" in last else f"{tile.name} = {last}")
        self.tiles.append(tile)
        self.used.update(operand.name for operand in operands)
        return tile


def positions(shape: tuple[int, ...], strides: list[Any]) -> str:
    """The text of the offsets of a tile's elements."""
    parts = []
    for axis, (size, stride) in enumerate(zip(shape, strides, strict=True)):
        index = ", ".join(":" if i == axis else "None" for i in range(len(shape)))
        parts.append(f"tl.arange(0, {size})[{index}] * {stride}")
    return " + ".join(parts)


def offsets(shape: tuple[int, ...], strides: list[int]) -> np.ndarray:
    result = np.zeros(shape, np.int64)
    for axis, (size, stride) in enumerate(zip(shape, strides, strict=True)):
        result += (np.arange(size) * stride).reshape(
            [-1 if i == axis else 1 for i in range(len(shape))]
        )
    return result


def draw_shape(draw: Any, rank: int | None = None) -> tuple[int, ...]:
    rank = rank or draw(st.integers(1, 3))
    left, shape = 11, []
    for _ in range(rank):
        shape.append(min(left, draw(st.sampled_from([4, 3, 5, 2, 1, 6, 0, 7]))))
        left -= shape[-1]
    return tuple(1 << bits for bits in shape)


def draw_strides(draw: Any, shape: tuple[int, ...]) -> list[int]:
    """Strides of memory in any order of the dimensions, with gaps."""
    strides, step = [0] * len(shape), draw(st.sampled_from([1, 1, 1, 2]))
    for axis in draw(st.permutations(range(len(shape)))):
        strides[axis] = step
        step = step * shape[axis] + draw(st.sampled_from([0, 0, 0, 1, 4]))
    return strides


def load(draw: Any, program: Program, shape: tuple[int, ...] | None = None) -> Tile:
    shape = shape or draw_shape(draw)
    strides = draw_strides(draw, shape)
    places = offsets(shape, strides)
    name = f"in{len(program.inputs)}"
    seed = draw(st.integers(0, 1000))
    memory = (
        np.random.default_rng(seed).integers(-(2**31), 2**31, places.max() + 1).astype(np.int32)
    )
    program.inputs[name] = memory
    texts: list[Any] = list(strides)
    if draw(st.booleans()):
        program.numbers[f"{name}_stride"] = strides[0]
        texts[0] = f"{name}_stride"
    pointer = f"{name} + {positions(shape, texts)}"
    if draw(st.integers(0, 2)):
        return program.add(f"tl.load({pointer})", memory[places])
    axis, other = draw(st.integers(0, len(shape) - 1)), draw(st.integers(-3, 3))
    kept = draw(st.integers(0, shape[axis]))
    program.numbers[f"{name}_kept"] = kept
    index = ", ".join(":" if i == axis else "None" for i in range(len(shape)))
    mask = f"tl.arange(0, {shape[axis]})[{index}] < {name}_kept"
    inside = (np.arange(shape[axis]) < kept).reshape(
        [-1 if i == axis else 1 for i in range(len(shape))]
    )
    return program.add(
        f"tl.load({pointer}, mask={mask}, other={other})",
        np.where(inside, memory[places], np.int32(other)),
    )


def pick(
    draw: Any, program: Program, where: Callable[[Tile], bool] = lambda tile: True
) -> Tile | None:
    tiles = [tile for tile in program.tiles if where(tile)]
    return draw(st.sampled_from(tiles[::-1])) if tiles else None


def integers(
    draw: Any, program: Program, where: Callable[[Tile], bool] = lambda tile: True
) -> Tile:
    return pick(draw, program, lambda tile: not tile.is_float and where(tile)) or load(
        draw, program, (16, 8)
    )


def meets(a: Tile, b: Tile) -> bool:
    if len(a.shape) != len(b.shape):
        return False
    shape = [max(pair) for pair in zip(a.shape, b.shape, strict=True)]
    fits = all(1 in pair or pair[0] == pair[1] for pair in zip(a.shape, b.shape, strict=True))
    return fits and np.prod(shape) <= LARGEST


def binary(draw: Any, program: Program) -> None:
    a = pick(draw, program)
    b = pick(draw, program, lambda tile: tile.is_float == a.is_float and meets(a, tile))
    kinds: dict[str, Any] = {
        "{} + {}": np.add,
        "{} - {}": np.subtract,
        "{} * {}": np.multiply,
        "tl.minimum({}, {})": np.minimum,
        "tl.maximum({}, {})": np.maximum,
        "tl.where({} > {}, 3, 5)": lambda x, y: np.where(x > y, np.int32(3), np.int32(5)),
    }
    if not a.is_float:
        kinds |= {
            "{} & {}": np.bitwise_and,
            "{} ^ {}": np.bitwise_xor,
            "{} >> ({} & 31)": lambda x, y: x >> (y & 31),
            "{} // (({} & 15) + 1)": lambda x, y: truncated(x, (y & 15) + 1),
            "{} % (({} & 15) + 1)": lambda x, y: x - truncated(x, (y & 15) + 1) * ((y & 15) + 1),
        }
    text = draw(st.sampled_from(list(kinds)))
    program.add(text.format(a.name, b.name), kinds[text](a.value, b.value), a, b)


def truncated(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The quotient of C: towards zero."""
    quotient = np.abs(x.astype(np.int64)) // np.abs(y.astype(np.int64))
    return np.where((x < 0) != (y < 0), -quotient, quotient).astype(np.int32)


def choose(draw: Any, program: Program) -> None:
    a = pick(draw, program)
    b = pick(draw, program, lambda tile: tile.is_float == a.is_float and tile.shape == a.shape)
    c = integers(draw, program, lambda tile: tile.shape == a.shape)
    if c.shape != a.shape:
        return
    value = np.where(c.value % 2 == 0, a.value, b.value)
    program.add(f"tl.where({c.name} % 2 == 0, {a.name}, {b.name})", value, a, b, c)


def convert(draw: Any, program: Program) -> None:
    a = integers(draw, program)
    value = ((a.value & 15) - 8).astype(np.float32)
    program.add(f"(({a.name} & 15) - 8).to(tl.float32)", value, a)


def reduce(draw: Any, program: Program) -> None:
    a = integers(draw, program, lambda tile: tile.value.size > 1)
    axis, keep = draw(st.integers(0, len(a.shape) - 1)), draw(st.booleans())
    x = a.value.astype(np.int32)
    small = ((x & 15) - 8).astype(np.float32)
    kinds: dict[str, Any] = {
        "tl.sum({}, {}{})": x.sum(axis, dtype=np.int32, keepdims=keep),
        "tl.max({}, {}{})": x.max(axis, keepdims=keep),
        "tl.min({}, {}{})": x.min(axis, keepdims=keep),
        "tl.xor_sum({}, {}{})": np.bitwise_xor.reduce(x, axis, keepdims=keep),
        "tl.argmin({}, {}{})": x.argmin(axis, keepdims=keep).astype(np.int32),
        "tl.argmax({} & 3, {}{})": (x & 3).argmax(axis, keepdims=keep).astype(np.int32),
        "tl.sum((({} & 15) - 8).to(tl.float32), {}{})": small.sum(axis, keepdims=keep),
        "tl.reduce({}, {}, combine_product{})": x.prod(axis, dtype=np.int32, keepdims=keep),
    }
    text = draw(st.sampled_from(list(kinds)))
    program.add(text.format(a.name, axis, ", keep_dims=True" if keep else ""), kinds[text], a)


def reshape(draw: Any, program: Program) -> None:
    a = pick(draw, program, lambda tile: tile.shape != ())
    if a is None:
        return
    kind = draw(st.sampled_from(["permute", "reshape", "expand", "broadcast"]))
    if kind == "permute":
        order = tuple(draw(st.permutations(range(len(a.shape)))))
        program.add(f"tl.permute({a.name}, {order})", a.value.transpose(order), a)
    elif kind == "reshape":
        bits, shape = a.value.size.bit_length() - 1, []
        for _ in range(draw(st.integers(0, 2))):
            shape.append(1 << draw(st.integers(0, bits)))
            bits -= shape[-1].bit_length() - 1
        shape.append(1 << bits)
        program.add(f"tl.reshape({a.name}, {tuple(shape)})", a.value.reshape(shape), a)
    elif kind == "expand" and len(a.shape) < 4:
        axis = draw(st.integers(0, len(a.shape)))
        program.add(f"tl.expand_dims({a.name}, {axis})", np.expand_dims(a.value, axis), a)
    elif 1 in a.shape:
        room = LARGEST // a.value.size
        shape = tuple(min(8, room) if size == 1 else size for size in a.shape)
        if np.prod(shape) <= LARGEST:
            value = np.broadcast_to(a.value, shape)
            program.add(f"tl.broadcast_to({a.name}, {shape})", value, a)


def loop(draw: Any, program: Program) -> None:
    """A tile carried round a loop, with a reduction, a transpose or a branch in its body."""
    a = integers(draw, program, lambda tile: tile.shape != ())
    trips, kind = (
        draw(st.integers(0, 5)),
        draw(st.sampled_from(["sum", "trans", "branch", "while"])),
    )
    number = f"n{len(program.numbers)}"
    program.numbers[number] = trips
    x = a.value.astype(np.int32)
    last = len(a.shape) - 1
    if kind == "trans" and (len(a.shape) != 2 or a.shape[0] != a.shape[1]):
        kind = "sum"
    for step in range(trips):
        if kind == "sum":
            x = x * 3 + x.sum(last, dtype=np.int32, keepdims=True) + np.int32(step)
        elif kind == "trans":
            x = x.T - (x >> 1) + np.int32(step)
        elif kind == "branch":
            x = x ^ np.int32(step) if step % 2 == 0 else x * 5 + x.max(last, keepdims=True)
        else:
            x = x * 7 + np.int32(step)
    bodies = {
        "sum": [f"@ = @ * 3 + tl.sum(@, {last}, keep_dims=True) + step"],
        "trans": ["@ = tl.trans(@) - (@ >> 1) + step"],
        "branch": [
            "if step % 2 == 0:",
            "    @ = @ ^ step",
            "else:",
            f"    @ = @ * 5 + tl.max(@, {last}, keep_dims=True)",
        ],
        "while": ["@ = @ * 7 + step", "step += 1"],
    }
    head = (
        ["step = 0", f"while step < {number}:"]
        if kind == "while"
        else [f"for step in range({number}):"]
    )
    body = [f"    {line}" for line in bodies[kind]]
    program.add("\n".join([f"@ = {a.name}", *head, *body, "@ = @"]), x, a)


def dot(draw: Any, program: Program) -> None:
    def operand(tile: Tile) -> bool:
        return len(tile.shape) == 2 and min(tile.shape) >= 16

    a = pick(draw, program, lambda tile: not tile.is_float and operand(tile)) or load(
        draw, program, (32, 16)
    )
    b = pick(
        draw,
        program,
        lambda tile: not tile.is_float and operand(tile) and tile.shape[0] == a.shape[1],
    ) or load(draw, program, (a.shape[1], 16))
    dtype = draw(st.sampled_from(["float16", "float32", "int8"]))
    x, y = (a.value & 7) - 4, (b.value & 7) - 4
    product = x.astype(np.int64) @ y.astype(np.int64)
    value = product.astype(np.int32 if dtype == "int8" else np.float32)
    left, right = (f"(({tile.name} & 7) - 4).to(tl.{dtype})" for tile in (a, b))
    text = f"tl.dot({left}, {right})"
    steps = draw(st.integers(1, 3))
    if steps > 1:
        zeros = f"tl.zeros({value.shape}, tl.{'int32' if dtype == 'int8' else 'float32'})"
        text = (
            f"@ = {zeros}\nfor step in range({steps}):\n    @ = tl.dot({left}, {right}, @)\n@ = @"
        )
        value = value * value.dtype.type(steps)
    program.add(text, value, a, b)


STEPS = [load, binary, binary, binary, choose, convert, reduce, reduce, reshape, reshape, loop, dot]


@st.composite
def programs(draw: Any) -> tuple[str, Program, list[tuple[Tile, list[int]]]]:
    program = Program()
    load(draw, program)
    with np.errstate(all="ignore"):
        for step in draw(st.lists(st.sampled_from(STEPS), min_size=4, max_size=14)):
            step(draw, program)
    stores = []
    for tile in program.tiles:
        if tile.name not in program.used and len(stores) + len(program.inputs) < 28:
            strides = draw_strides(draw, tile.shape) if tile.shape else []
            stores.append((tile, strides))
            places = f" + {positions(tile.shape, list(strides))}" if tile.shape else ""
            program.lines.append(f"tl.store(out_{tile.name}{places}, {tile.name})")
    names = [*program.inputs, *(f"out_{tile.name}" for tile, _ in stores), *program.numbers]
    body = "".join(f"    {line}\n" for line in program.lines)
    return f"@triton.jit\ndef program({', '.join(names)}):\n{body}", program, stores


HEAD = """import triton_metal as triton
import triton_metal.language as tl


@triton.jit
def combine_product(a, b):
    return a * b


"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("programs")


@settings(
    max_examples=FRESH or 60,
    derandomize=not FRESH,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(
    drawn=programs(),
    num_warps=st.sampled_from([1, 2, 4, 8, 16, 32]),
    schedule=st.sampled_from([None, 1, 2]),
    check=st.sampled_from([None, None, "bounds"]),
)
def test_random_programs(
    folder: Path, drawn: Any, num_warps: int, schedule: int | None, check: str | None
) -> None:
    text, program, stores = drawn
    name = f"program_{len(list(folder.iterdir()))}"
    path = folder / f"{name}.py"
    path.write_text(HEAD + text)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
        outs, wanted = [], []
        for tile, strides in stores:
            dtype = np.float32 if tile.is_float else np.int32
            places = offsets(tile.shape, strides)
            outs.append(np.full(places.max() + 2, 77, dtype))
            wanted.append(outs[-1].copy())
            wanted[-1][places] = tile.value
        inputs = [memory.copy() for memory in program.inputs.values()]
        with triton.launch_options(schedule=schedule, check=check):
            module.program[(1,)](*inputs, *outs, *program.numbers.values(), num_warps=num_warps)
        for (tile, _), out, want in zip(stores, outs, wanted, strict=True):
            try:
                assert_same(out, want)
            except AssertionError as error:
                raise AssertionError(
                    f"{tile.name} with {num_warps} warps of\n{text}\n{error}"
                ) from None
        for memory, given in zip(inputs, program.inputs.values(), strict=True):
            assert_same(memory, given)
    finally:
        del sys.modules[name]
