"""Draws programs in Triton IR: tiles that are loaded, computed, transposed, reduced, multiplied as matrices, carried through loops and branches, and stored.

Every value may be read again anywhere later, also in what is nested, so that passes which move, stage, pipeline or erase
operations meet values that something else still needs.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

FLOATS = ("f16", "bf16", "f32")
INTEGERS = ("i8", "i32")
SIZES = (8, 16, 16, 32, 32, 64)
LARGEST = 4096


@dataclass(frozen=True)
class Value:
    """A value of the program: a scalar where the shape is empty."""

    name: str
    element: str
    shape: tuple[int, ...] = ()

    @property
    def type(self) -> str:
        return tensor(self.shape, self.element)


def tensor(shape: tuple[int, ...], element: str) -> str:
    if not shape:
        return element
    return f"tensor<{''.join(f'{size}x' for size in shape)}{element}>"


def is_float(element: str) -> bool:
    return element in FLOATS


class Program:
    """One kernel while it is drawn; `scope` has what may be read at the current place."""

    def __init__(self, choice: random.Random) -> None:
        self.random = choice
        self.lines: list[str] = []
        self.scope: list[Value] = []
        self.numbers = 0
        self.depth = 0
        self.budget = choice.randint(6, 60)
        self.arguments = {f"%p{i}": choice.choice(FLOATS * 3 + INTEGERS) for i in range(4)}

    # Text.

    def emit(self, text: str) -> None:
        self.lines.append("  " * (self.depth + 2) + text)

    def name(self) -> str:
        self.numbers += 1
        return f"%v{self.numbers}"

    def define(
        self, text: str, element: str, shape: tuple[int, ...] = (), keep: bool = True
    ) -> Value:
        value = Value(self.name(), element, shape)
        self.emit(f"{value.name} = {text}")
        if keep:
            self.scope.append(value)
        return value

    def constant(
        self, element: str, shape: tuple[int, ...] = (), number: int | None = None
    ) -> Value:
        number = self.random.choice([0, 1, 2, 3]) if number is None else number
        literal = f"{number}.0" if is_float(element) else str(number)
        kind = tensor(shape, element)
        return self.define(
            f"arith.constant {f'dense<{literal}>' if shape else literal} : {kind}", element, shape
        )

    # Choosing.

    def pick(self, where: Callable[[Value], bool]) -> Value | None:
        found = [value for value in self.scope if where(value)]
        if not found:
            return None
        # What is new, mostly.
        return found[-1 - min(int(self.random.expovariate(0.3)), len(found) - 1)]

    def tile(self, shape: tuple[int, ...] | None = None, element: str | None = None) -> Value:
        """A tile of that shape and element, converted or loaded where there is none."""
        found = self.pick(
            lambda v: (
                bool(v.shape)
                and v.element != "i1"
                and (shape is None or v.shape == shape)
                and (element is None or v.element == element)
            )
        )
        if found and self.random.random() < 0.85:
            return found
        if shape is None:
            shape = tuple(
                self.random.choice(SIZES) for _ in range(self.random.choice([1, 2, 2, 2]))
            )
        if self.random.random() < 0.1:
            return self.constant(element or "f32", shape)
        loaded = self.load(shape)
        return self.convert(loaded, element or loaded.element)

    def convert(self, value: Value, element: str) -> Value:
        source = value.element
        if source == element:
            return value
        widths = {"f16": 16, "bf16": 16, "f32": 32, "i8": 8, "i32": 32, "i1": 1}
        if is_float(source) and is_float(element):
            if widths[source] == widths[element]:
                return self.convert(self.convert(value, "f32"), element)
            kind = "extf" if widths[source] < widths[element] else "truncf"
        elif is_float(source):
            kind = "fptosi"
        elif is_float(element):
            kind = "uitofp" if source == "i1" else "sitofp"
        else:
            kind = (
                "trunci"
                if widths[source] > widths[element]
                else "extui"
                if source == "i1"
                else "extsi"
            )
        return self.define(
            f"arith.{kind} {value.name} : {value.type} to {tensor(value.shape, element)}",
            element,
            value.shape,
        )

    # Memory.

    def index(self, shape: tuple[int, ...]) -> Value:
        """Offsets of a tile: rows or columns together, perhaps moved by a scalar."""
        order = self.random.sample(range(len(shape)), len(shape))
        stride, total = 1, None
        for axis in order:
            size = shape[axis]
            part = self.define(
                f"tt.make_range {{end = {size} : i32, start = 0 : i32}} : tensor<{size}xi32>",
                "i32", (size,), keep=False,
            )  # fmt: skip
            if stride > 1:
                by = self.constant("i32", (size,), stride)
                part = self.define(
                    f"arith.muli {part.name}, {by.name} : {part.type}", "i32", (size,), keep=False
                )
            for other in range(len(shape)):
                if other != axis:
                    wide = (*part.shape[:other], 1, *part.shape[other:])
                    part = self.define(
                        f"tt.expand_dims {part.name} {{axis = {other} : i32}} : {part.type} -> {tensor(wide, 'i32')}",
                        "i32", wide, keep=False,
                    )  # fmt: skip
            if part.shape != shape:
                part = self.define(
                    f"tt.broadcast {part.name} : {part.type} -> {tensor(shape, 'i32')}",
                    "i32", shape, keep=False,
                )  # fmt: skip
            total = part if total is None else self.define(
                f"arith.addi {total.name}, {part.name} : {part.type}", "i32", shape, keep=False
            )  # fmt: skip
            stride *= size
        assert total
        scalar = self.pick(lambda v: v.type == "i32")
        if scalar and self.random.random() < 0.5:
            many = self.define(
                f"tt.splat {scalar.name} : i32 -> {total.type}", "i32", shape, keep=False
            )
            total = self.define(
                f"arith.addi {total.name}, {many.name} : {total.type}", "i32", shape, keep=False
            )
        return total

    def pointers(self, shape: tuple[int, ...], wanted: str | None = None) -> tuple[str, str, Value]:
        """A tile of pointers: its name, its type, and the offsets."""
        matching = [name for name, element in self.arguments.items() if element == wanted]
        base = self.random.choice(matching or list(self.arguments))
        element = self.arguments[base]
        offsets = self.index(shape)
        kind = tensor(shape, f"!tt.ptr<{element}>")
        many, moved = self.name(), self.name()
        self.emit(f"{many} = tt.splat {base} : !tt.ptr<{element}> -> {kind}")
        self.emit(f"{moved} = tt.addptr {many}, {offsets.name} : {kind}, {offsets.type}")
        return moved, element, offsets

    def mask(self, offsets: Value) -> Value:
        limit = self.pick(lambda v: v.type == "i32") or self.constant("i32")
        many = self.define(
            f"tt.splat {limit.name} : i32 -> {offsets.type}", "i32", offsets.shape, keep=False
        )
        return self.define(
            f"arith.cmpi slt, {offsets.name}, {many.name} : {offsets.type}", "i1", offsets.shape
        )

    def load(self, shape: tuple[int, ...]) -> Value:
        pointers, element, offsets = self.pointers(shape)
        operands = pointers
        if self.random.random() < 0.4:
            operands += f", {self.mask(offsets).name}"
            if self.random.random() < 0.7:
                operands += f", {self.constant(element, shape).name}"
        kind = tensor(shape, f"!tt.ptr<{element}>")
        return self.define(f"tt.load {operands} : {kind}", element, shape)

    def store(self) -> None:
        value = self.tile()
        pointers, element, offsets = self.pointers(value.shape, value.element)
        value = self.convert(value, element)
        operands = f"{pointers}, {value.name}"
        if self.random.random() < 0.4:
            operands += f", {self.mask(offsets).name}"
        self.emit(f"tt.store {operands} : {tensor(value.shape, f'!tt.ptr<{element}>')}")

    # Arithmetic.

    def elementwise(self) -> None:
        a = self.tile()
        same = self.pick(lambda v: v.type == a.type)
        b = same if same and self.random.random() < 0.7 else self.constant(a.element, a.shape)
        kinds = (
            ["addf", "subf", "mulf", "maximumf", "divf"]
            if is_float(a.element)
            else ["addi", "subi", "muli", "andi", "maxsi"]
        )
        kind = self.random.choice(kinds)
        self.define(f"arith.{kind} {a.name}, {b.name} : {a.type}", a.element, a.shape)

    def select(self) -> None:
        a = self.tile()
        b = self.tile(a.shape, a.element)
        compare = "cmpf ogt" if is_float(a.element) else "cmpi sgt"
        c = self.define(f"arith.{compare}, {a.name}, {b.name} : {a.type}", "i1", a.shape)
        self.define(
            f"arith.select {c.name}, {a.name}, {b.name} : {tensor(a.shape, 'i1')}, {a.type}",
            a.element,
            a.shape,
        )

    def cast(self) -> None:
        self.convert(self.tile(), self.random.choice(FLOATS + INTEGERS))

    def trans(self) -> None:
        a = self.tile()
        order = self.random.sample(range(len(a.shape)), len(a.shape))
        shape = tuple(a.shape[axis] for axis in order)
        self.define(
            f"tt.trans {a.name} {{order = array<i32: {', '.join(map(str, order))}>}}"
            f" : {a.type} -> {tensor(shape, a.element)}",
            a.element,
            shape,
        )

    def reshape(self) -> None:
        a = self.tile()
        size = 1
        for extent in a.shape:
            size *= extent
        first = 1 << self.random.randint(0, size.bit_length() - 1)
        shape = self.random.choice([(size,), (first, size // first)])
        self.define(
            f"tt.reshape {a.name} : {a.type} -> {tensor(shape, a.element)}", a.element, shape
        )

    def reduce(self) -> None:
        a = self.tile()
        axis = self.random.randrange(len(a.shape))
        shape = a.shape[:axis] + a.shape[axis + 1 :]
        combine = self.random.choice(
            ["addf", "maxnumf"] if is_float(a.element) else ["addi", "maxsi"]
        )
        result = self.define(
            f'"tt.reduce"({a.name}) <{{axis = {axis} : i32}}> ({{ ^bb0(%x: {a.element}, %y: {a.element}): '
            f"%z = arith.{combine} %x, %y : {a.element} tt.reduce.return %z : {a.element} }}) : "
            f"({a.type}) -> {tensor(shape, a.element)}",
            a.element,
            shape,
        )
        if not shape:
            return
        if self.random.random() < 0.6:
            wide = (*shape[:axis], 1, *shape[axis:])
            row = self.define(
                f"tt.expand_dims {result.name} {{axis = {axis} : i32}} : {result.type} -> {tensor(wide, a.element)}",
                a.element,
                wide,
            )
            self.define(f"tt.broadcast {row.name} : {row.type} -> {a.type}", a.element, a.shape)

    def splat(self) -> None:
        scalar = self.pick(lambda v: not v.shape and v.element != "i1")
        if scalar:
            shape = (self.random.choice(SIZES), self.random.choice(SIZES))
            self.define(
                f"tt.splat {scalar.name} : {scalar.element} -> {tensor(shape, scalar.element)}",
                scalar.element,
                shape,
            )

    def dot(self) -> None:
        a = self.pick(lambda v: len(v.shape) == 2 and v.element != "i1" and v.element != "i32")
        if a is None or self.random.random() < 0.2:
            a = self.load((self.random.choice(SIZES), self.random.choice(SIZES)))
        if a.element == "i32":
            a = self.convert(a, "i8")
        n = self.random.choice(SIZES)
        b = self.pick(
            lambda v: v.shape[:1] == a.shape[1:] and len(v.shape) == 2 and v.element == a.element
        )
        if b is None or self.random.random() < 0.3:
            b = self.tile((a.shape[1], n), a.element)
        result = (
            "i32"
            if a.element == "i8"
            else "f32"
            if a.element != "f16"
            else self.random.choice(["f16", "f32"])
        )
        shape = (a.shape[0], b.shape[1])
        c = self.pick(lambda v: v.type == tensor(shape, result)) or self.constant(result, shape, 0)
        self.define(
            f"tt.dot {a.name}, {b.name}, {c.name} : {a.type} * {b.type} -> {c.type}", result, shape
        )

    # Control flow.

    def block(self, steps: int) -> None:
        """Lines of a region; what they define ends with it."""
        before = list(self.scope)
        self.depth += 1
        self.steps(steps)
        self.depth -= 1
        self.inner, self.scope = self.scope, before

    def yielded(self, values: list[Value]) -> list[Value]:
        """Values of the region to hand on, of these types."""
        result = []
        for value in values:
            inner = self.pick(lambda v, wanted=value: v.type == wanted.type)
            result.append(inner or value)
        return result

    def carried(self) -> list[Value]:
        values = []
        for _ in range(self.random.randint(0, 4)):
            value = self.tile() if self.random.random() < 0.8 else self.constant("i32")
            values.append(value)
        return values

    def loop(self) -> None:
        inits = self.carried()
        low, high, step = self.constant("i32", (), 0), self.random.choice(["%n", "%c4"]), "%c1"
        arguments = [Value(self.name(), v.element, v.shape) for v in inits]
        results = self.name()
        head = f"scf.for %i{self.numbers} = {low.name} to {high} step {step}"
        index = Value(f"%i{self.numbers}", "i32")
        types = ", ".join(v.type for v in inits)
        if inits:
            pairs = ", ".join(f"{a.name} = {v.name}" for a, v in zip(arguments, inits, strict=True))
            head = f"{results}:{len(inits)} = {head} iter_args({pairs}) -> ({types})"
        self.emit(f"{head} : i32 {{")
        before = list(self.scope)
        self.scope += [index, *arguments]
        self.depth += 1
        self.steps(self.random.randint(2, 8))
        out = self.yielded(inits)
        if out:
            self.emit(f"scf.yield {', '.join(v.name for v in out)} : {types}")
        self.depth -= 1
        stages = self.random.choice(
            ["", "", "", " {tt.num_stages = 3 : i32}", " {tt.num_stages = 1 : i32}"]
        )
        self.emit("}" + stages)
        self.scope = before + [
            Value(f"{results}#{i}", v.element, v.shape) for i, v in enumerate(inits)
        ]

    def branch(self) -> None:
        limit = self.pick(lambda v: v.type == "i32") or self.constant("i32")
        condition = self.define(f"arith.cmpi sgt, {limit.name}, %n : i32", "i1", keep=False)
        values = self.carried()
        types = ", ".join(v.type for v in values)
        results = self.name()
        head = f"scf.if {condition.name}"
        self.emit(f"{results}:{len(values)} = {head} -> ({types}) {{" if values else f"{head} {{")
        for turn in range(2):
            before = list(self.scope)
            self.depth += 1
            self.steps(self.random.randint(1, 4))
            if values:
                out = self.yielded(values)
                self.emit(f"scf.yield {', '.join(v.name for v in out)} : {types}")
            self.depth -= 1
            self.scope = before
            if turn == 0:
                if not values and self.random.random() < 0.5:
                    break
                self.emit("} else {")
        self.emit("}")
        self.scope += [Value(f"{results}#{i}", v.element, v.shape) for i, v in enumerate(values)]

    def repeat(self) -> None:
        """scf.while over a counter and what else is carried."""
        inits = [self.constant("i32", (), 0), *self.carried()]
        types = ", ".join(v.type for v in inits)
        results = self.name()
        first = [Value(self.name(), v.element, v.shape) for v in inits]
        second = [Value(self.name(), v.element, v.shape) for v in inits]
        pairs = ", ".join(f"{a.name} = {v.name}" for a, v in zip(first, inits, strict=True))
        self.emit(f"{results}:{len(inits)} = scf.while ({pairs}) : ({types}) -> ({types}) {{")
        before = list(self.scope)
        self.depth += 1
        self.scope += first
        if self.random.random() < 0.3:
            self.steps(2)
        more = self.define(f"arith.cmpi slt, {first[0].name}, %n : i32", "i1", keep=False)
        passed = [first[0], *self.yielded(first[1:])]
        self.emit(f"scf.condition({more.name}) {', '.join(v.name for v in passed)} : {types}")
        self.depth -= 1
        self.emit("} do {")
        heads = ", ".join(f"{v.name}: {v.type}" for v in second)
        self.lines.append("  " * (self.depth + 2) + f"^bb0({heads}):")
        self.depth += 1
        self.scope = before + second
        self.steps(self.random.randint(1, 5))
        count = self.define(f"arith.addi {second[0].name}, %c1 : i32", "i32", keep=False)
        out = [count, *self.yielded(second[1:])]
        self.emit(f"scf.yield {', '.join(v.name for v in out)} : {types}")
        self.depth -= 1
        self.emit("}")
        self.scope = before + [
            Value(f"{results}#{i}", v.element, v.shape) for i, v in enumerate(inits)
        ]

    # All of it.

    def steps(self, count: int) -> None:
        flat = [self.elementwise] * 3 + [self.dot] * 5 + [self.trans] * 2 + [self.reduce] * 3
        flat += [self.select, self.cast, self.reshape, self.splat, self.store, self.store]
        nested = [self.loop, self.loop, self.branch, self.repeat]
        for _ in range(count):
            if self.budget <= 0:
                return
            self.budget -= 1
            deep = self.depth < 3 and self.random.random() < 0.25
            self.random.choice(nested if deep else flat)()

    def text(self) -> str:
        self.scope += [Value("%n", "i32"), Value("%c1", "i32"), Value("%c4", "i32")]
        self.emit("%c1 = arith.constant 1 : i32")
        self.emit("%c4 = arith.constant 4 : i32")
        self.steps(1000)
        # What is left is read, most of it.
        for value in list(self.scope):
            if value.shape and value.element != "i1" and self.random.random() < 0.3:
                self.scope = [value]
                pointers, element, _ = self.pointers(value.shape, value.element)
                stored = self.convert(value, element)
                self.emit(
                    f"tt.store {pointers}, {stored.name} : {tensor(value.shape, f'!tt.ptr<{element}>')}"
                )
        heads = ", ".join(f"{name}: !tt.ptr<{element}>" for name, element in self.arguments.items())
        body = "\n".join(self.lines)
        return f"module {{\n  tt.func public @drawn({heads}, %n: i32) {{\n{body}\n    tt.return\n  }}\n}}\n"


def draw_program(choice: random.Random) -> str:
    return Program(choice).text()
