"""Random Metal kernels of loops, conditions and SIMD-group functions, and an interpreter that runs a SIMD-group in lockstep.

Threads that take different ways meet again after the condition or the loop, and at the end of each step of a loop, as the text has it.
All numbers are 32-bit and unsigned.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

LANES = 32
VARIABLES = ("a", "b", "x")

Expression = tuple
"""The operator or function and its operands; ("number", n) and ("name", text) are the leaves."""

Array = np.ndarray

REDUCTIONS: dict[str, Callable[[Array], np.uint32]] = {
    "simd_sum": lambda values: values.sum(dtype=np.uint32),
    "simd_max": lambda values: values.max(),
    "simd_or": lambda values: np.bitwise_or.reduce(values),
    "simd_xor": lambda values: np.bitwise_xor.reduce(values),
    "simd_broadcast_first": lambda values: values[0],
}
OPERATORS: dict[str, Callable[[Array, Array], Array]] = {
    "+": np.add,
    "*": np.multiply,
    "&": np.bitwise_and,
    "^": np.bitwise_xor,
    "==": np.equal,
    "!=": np.not_equal,
    "<": np.less,
}


@dataclass
class Assign:
    name: str
    value: Expression


@dataclass
class Call:
    name: str
    function: Function
    arguments: tuple[Expression, Expression]


@dataclass
class If:
    condition: Expression
    then: list[Statement]
    otherwise: list[Statement]


@dataclass
class Switch:
    """Each case has its labels, and ends with a `break`; ``otherwise`` is the body of `default`."""

    value: Expression
    cases: list[tuple[tuple[int, ...], list[Statement]]]
    otherwise: list[Statement] | None


@dataclass
class Loop:
    """`for`, which may have a condition besides the number of steps, or `do ... while`."""

    index: str
    steps: int
    body: list[Statement]
    condition: Expression | None = None
    asks_first: bool = False


@dataclass
class Leave:
    kind: str  # break, continue or return
    value: Expression


Statement = Assign | Call | If | Switch | Loop | Leave


@dataclass
class Function:
    name: str
    body: list[Statement] = field(default_factory=list)
    result: Expression = ("number", 0)


class Program:
    """The kernel `k` with a buffer of numbers and a buffer of results, and the functions that it calls."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.count = 0
        self.indices: list[str] = []
        self.around: list[str] = []  # the loops and switches around a statement
        self.functions: list[Function] = []
        self.inside_function = True
        for number in range(self.random.randrange(3)):
            body = self.block(3)
            self.functions.append(Function(f"f{number}", body, self.expression()))
        self.inside_function = False
        self.body = self.block(4)

    def expression(self) -> Expression:
        random = self.random
        kind = random.randrange(9)
        if kind < 2:
            return ("number", random.randrange(6))
        if kind < 3 and self.indices:
            return ("name", random.choice(self.indices[-2:]))
        if kind < 4:
            return ("name", random.choice(VARIABLES))
        if kind == 4:
            return ("name", "t")
        if kind == 5:
            return ("+", self.expression(), self.expression())
        if kind == 6:
            return ("&", self.expression(), ("number", random.choice([1, 3, 7])))
        if kind == 7:
            return ("^", self.expression(), self.expression())
        return ("*", self.expression(), ("number", random.randrange(1, 4)))

    def condition(self) -> Expression:
        random = self.random
        mask = ("number", random.choice([1, 3, 7]))
        if self.indices and random.random() < 0.6:
            own = ("+", ("name", "t"), ("name", random.choice("ab")))
            return (
                random.choice(["==", "==", "<"]),
                ("&", own if random.random() < 0.7 else self.expression(), mask),
                ("name", self.indices[-1]),
            )
        number = ("number", random.randrange(5))
        return (random.choice(["==", "<", "!="]), ("&", self.expression(), mask), number)

    def exchange(self) -> Expression:
        random = self.random
        call = (random.choice(list(REDUCTIONS)), self.expression())
        if random.random() < 0.15:  # only the threads of which it holds exchange
            arms = [call, self.expression() if random.random() < 0.5 else self.exchange()]
            random.shuffle(arms)
            return ("?", self.condition(), *arms)
        return call

    def question(self) -> Expression:
        """A condition, which may depend on what other threads have."""
        random = self.random
        if random.random() < 0.6:
            return self.condition()
        mask = ("number", random.choice([1, 3, 7]))
        held = ("&", self.exchange(), mask)
        number = ("name", "x") if random.random() < 0.3 else ("number", random.randrange(5))
        asked = (random.choice(["==", "<", "!="]), held, number)
        if random.random() < 0.5:
            return asked
        return (random.choice(["&&", "||"]), self.condition(), asked)

    def block(self, depth: int) -> list[Statement]:
        return [self.statement(depth) for _ in range(self.random.randrange(1, 4))]

    def inside(self, what: str, depth: int) -> list[Statement]:
        self.around.append(what)
        body = self.block(depth)
        self.around.pop()
        return body

    def switch(self, depth: int) -> Switch:
        random = self.random
        labels = list(range(random.choice([2, 4, 8])))
        random.shuffle(labels)
        cases = []
        while labels and len(cases) < 3 and random.random() < 0.8:
            count = random.randrange(1, 3)
            cases.append((tuple(labels[:count]), self.inside("switch", depth)))
            labels = labels[count:]
        otherwise = self.inside("switch", depth) if random.random() < 0.6 or not cases else None
        value = self.exchange() if random.random() < 0.3 else self.expression()
        return Switch(("&", value, ("number", random.choice([1, 3, 7]))), cases, otherwise)

    def statement(self, depth: int) -> Statement:
        random = self.random
        name, kind = random.choice(VARIABLES), random.random()
        if kind < 0.25 or depth == 0:
            return Assign(name, self.exchange() if random.random() < 0.6 else self.expression())
        if kind < 0.36:
            otherwise = self.block(depth - 1) if random.random() < 0.4 else []
            return If(self.question(), self.block(depth - 1), otherwise)
        if kind < 0.42:
            return self.switch(depth - 1)
        if kind < 0.63:
            self.count += 1
            index = f"i{self.count}"
            self.indices.append(index)
            body, condition = self.inside("loop", depth - 1), self.question()
            self.indices.pop()
            steps, how = random.randrange(1, 9), random.random()
            return Loop(index, steps, body, condition if how < 0.5 else None, how < 0.2)
        if kind < 0.85 and self.around:
            body = self.block(depth - 1) if random.random() < 0.7 else []
            ways = ["break", "break", "break", "return"]
            how = random.choice(ways + ["continue"] * ("loop" in self.around))
            exchanges = self.inside_function and random.random() < 0.5
            leave = Leave(how, self.exchange() if exchanges else self.expression())
            return If(self.question(), [*body, leave], [])
        if kind < 0.93 and self.functions and not self.inside_function:
            arguments = (self.expression(), self.expression())
            return Call(name, random.choice(self.functions), arguments)
        return Assign(name, self.exchange())

    def text(self) -> str:
        lines = ["#include <metal_stdlib>", "using namespace metal;"]
        for function in self.functions:
            lines += [
                f"static uint {function.name}(uint a, uint b, uint t, uint zero) {{",
                "  uint x = 0;",
                *_lines(function.body, returns="return {};"),
                f"  return {_text(function.result)};",
                "}",
            ]
        return "\n".join(
            [
                *lines,
                "kernel void k(device const uint *in [[buffer(0)]], device uint *out [[buffer(1)]],",
                "              uint t [[thread_position_in_grid]]) {",
                "  uint a = in[t], b = t & 3, x = 5, zero = in[0] >> 10;",
                *_lines(self.body, returns="out[t] = a + 3 * b + 7 * x + 1000; return;"),
                "  out[t] = a + 3 * b + 7 * x;",
                "}",
                "",
            ]
        )

    def run(self, numbers: Array) -> Array:
        """What the kernel stores for these 32 numbers."""
        thread = np.arange(LANES, dtype=np.uint32)
        values = {"a": numbers.copy(), "b": thread & 3, "x": np.full(LANES, 5, np.uint32)}
        runner = _Runner(thread, values, is_kernel=True)
        with np.errstate(over="ignore"):
            left = runner.run(self.body, np.ones(LANES, bool))[0]
            result = values["a"] + 3 * values["b"] + 7 * values["x"]
        return np.where(left, result, runner.result).astype(np.uint32)


def _text(value: Expression) -> str:
    kind = value[0]
    if kind == "number":
        return f"{value[1]}u"
    if kind == "name":
        return value[1]
    if kind in REDUCTIONS:
        return f"{kind}({_text(value[1])})"
    if kind == "?":
        return f"({_text(value[1])} ? {_text(value[2])} : {_text(value[3])})"
    return f"({_text(value[1])} {kind} {_text(value[2])})"


def _lines(statements: list[Statement], returns: str, indent: str = "  ") -> list[str]:
    lines = []
    for statement in statements:
        match statement:
            case Assign(name, value):
                lines.append(f"{name} = {_text(value)};")
            case Call(name, function, (first, second)):
                lines.append(f"{name} = {function.name}({_text(first)}, {_text(second)}, t, zero);")
            case If(condition, then, otherwise):
                lines += [f"if ({_text(condition)}) {{", *_lines(then, returns), "}"]
                if otherwise:
                    lines += ["else {", *_lines(otherwise, returns), "}"]
            case Switch(value, cases, otherwise):
                lines.append(f"switch ({_text(value)}) {{")
                for labels, body in cases:
                    lines += [f"case {label}:" for label in labels]
                    lines += ["{", *_lines(body, returns), "} break;"]
                if otherwise is not None:
                    lines += ["default: {", *_lines(otherwise, returns), "}"]
                lines.append("}")
            case Loop(index, steps, body, condition, asks_first) if asks_first or not condition:
                # The number of steps is not known to the compiler.
                more = f" && {_text(condition)}" if condition else ""
                lines.append(
                    f"for (uint {index} = 0; {index} < {steps}u + zero{more}; ++{index}) {{"
                )
                lines += [*_lines(body, returns), "}"]
            case Loop(index, steps, body, condition):
                lines += [f"uint {index} = 0;", "do {", *_lines(body, returns)]
                lines.append(f"}} while (++{index} < {steps}u + zero && {_text(condition)});")
            case Leave("return", value):
                lines.append(returns.format(_text(value)))
            case Leave(kind):
                lines.append(f"{kind};")
    return [indent + line for line in lines]


class _Runner:
    """Runs statements for a set of threads, and says which of them go on, break and continue."""

    def __init__(self, thread: Array, values: dict[str, Array], is_kernel: bool) -> None:
        self.thread, self.values, self.is_kernel = thread, values, is_kernel
        self.result = np.zeros(LANES, np.uint32)

    def value(self, value: Expression, active: Array) -> Array:
        kind = value[0]
        if kind == "number":
            return np.full(LANES, value[1], np.uint32)
        if kind == "name":
            return self.thread if value[1] == "t" else self.values[value[1]]
        if not active.any():
            return np.zeros(LANES, np.uint32)
        first = self.value(value[1], active)
        if kind in ("?", "&&", "||"):
            holds = first.astype(bool)
            if kind == "?":
                then = self.value(value[2], active & holds)
                return np.where(holds, then, self.value(value[3], active & ~holds))
            asked = active & (holds if kind == "&&" else ~holds)
            second = self.value(value[2], asked).astype(bool)
            return holds & second if kind == "&&" else holds | second
        if kind in REDUCTIONS:
            return np.full(LANES, REDUCTIONS[kind](first[active]), np.uint32)
        return OPERATORS[kind](first, self.value(value[2], active))

    def assign(self, name: str, value: Array, active: Array) -> None:
        self.values[name] = np.where(active, value, self.values[name])

    def run(self, statements: list[Statement], active: Array) -> tuple[Array, Array, Array]:
        broken, continued = np.zeros(LANES, bool), np.zeros(LANES, bool)
        for statement in statements:
            if not active.any():
                break
            match statement:
                case Assign(name, value):
                    self.assign(name, self.value(value, active), active)
                case Call(name, function, arguments):
                    self.assign(name, self.call(function, arguments, active), active)
                case If(condition, then, otherwise):
                    holds = self.value(condition, active).astype(bool)
                    left = np.zeros(LANES, bool)
                    for threads, body in ((active & holds, then), (active & ~holds, otherwise)):
                        if threads.any():
                            on, breaks, continues = self.run(body, threads)
                            left, broken = left | on, broken | breaks
                            continued = continued | continues
                    active = left
                case Switch(value, cases, otherwise):
                    chosen = self.value(value, active)
                    rest, left = active, np.zeros(LANES, bool)
                    for labels, body in [*cases, (None, otherwise or [])]:
                        threads = rest if labels is None else active & np.isin(chosen, labels)
                        rest = rest & ~threads
                        if threads.any():
                            on, breaks, continues = self.run(body, threads)
                            left, continued = left | on | breaks, continued | continues
                    active = left
                case Loop():
                    active = self.loop(statement, active)
                case Leave("break"):
                    return np.zeros(LANES, bool), broken | active, continued
                case Leave("continue"):
                    return np.zeros(LANES, bool), broken, continued | active
                case Leave("return", value):
                    values = self.values
                    result = (
                        values["a"] + 3 * values["b"] + 7 * values["x"] + 1000
                        if self.is_kernel
                        else self.value(value, active)
                    )
                    self.result = np.where(active, result, self.result)
                    return np.zeros(LANES, bool), broken, continued
        return active, broken, continued

    def loop(self, loop: Loop, active: Array) -> Array:
        ended = np.zeros(LANES, bool)
        self.values[loop.index] = np.zeros(LANES, np.uint32)
        for step in range(loop.steps):
            if loop.asks_first:
                holds = self.value(loop.condition, active).astype(bool)
                ended, active = ended | (active & ~holds), active & holds
                if not active.any():
                    return ended
            on, broken, continued = self.run(loop.body, active)
            ended, active = ended | broken, on | continued
            if not active.any():
                return ended
            self.values[loop.index] = np.full(LANES, step + 1, np.uint32)
            if loop.condition and not loop.asks_first and step + 1 < loop.steps:
                holds = self.value(loop.condition, active).astype(bool)
                ended, active = ended | (active & ~holds), active & holds
                if not active.any():
                    return ended
        return ended | active

    def call(self, function: Function, arguments: tuple, active: Array) -> Array:
        first, second = (self.value(argument, active) for argument in arguments)
        values = {"a": first, "b": second, "x": np.zeros(LANES, np.uint32)}
        callee = _Runner(self.thread, values, is_kernel=False)
        left = callee.run(function.body, active)[0]
        if not left.any():
            return callee.result
        return np.where(left, callee.value(function.result, left), callee.result)
