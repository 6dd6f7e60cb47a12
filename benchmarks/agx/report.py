"""Reads the compiler's report: its listing of the final code, block by block, and the cycles of each block."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from triton_metal.cost.chips import OCCUPANCY

#: How often a loop runs whose count the text does not say.
ASSUMED_TRIPS = 16
#: Threadgroup memory of a core, in bytes.
CORE_THREADGROUP_BYTES = 60 * 1024

#: The kinds of instructions of a mix, and the names that belong to them. All others are "integer".
KINDS = {
    "multiply": r"matrix_multiply_add",
    "device load": r"device_load",
    "device store": r"device_store",
    "threadgroup load": r"local_load",
    "threadgroup store": r"local_store",
    "spill": r"stack_(load|store)",
    "atomic": r"(local_)?atomic",
    "across lanes": r"(quad_)?shuffle(_\w+)?|(simd|quad)_(reduce|prefix)|[fi]cmp_(quad_)?ballot",
    "barrier": r"threadgroup_barrier|memory_barrier",
    "float": r"[fh](add|mul|ma|fma|cmpsel|max|min)(_\w+)?|floor|ceil|trunc|rint|round|fmov|roundeven",
    "special function": r"rcp|s?rsqrt|exp2|log2|sin_pt_[12]",
    "branch": r"(if|else|while)_[fi]cmp|pop_exec|jmp_exec\w*|break(_if_[fi]cmp)?|begin_cf|stop|end_cf",
    "wait": r"wait",
    "move": r"mov(_imm)?|get_sr\w*",
}
_KINDS = [(kind, re.compile(names)) for kind, names in KINDS.items()]
#: A bitwise function with table 10 is its first operand: a move.
_MOVE = re.compile(r"bitop \S+, #0, #a$")


@dataclass
class Block:
    """Instructions in a row, and where control goes after them."""

    number: int
    lines: list[str]
    successors: list[int]
    float_cycles: int = 0
    integer_cycles: int = 0


@dataclass
class Loop:
    """A loop that is left in the code.

    `mix` counts the instructions of one step by kind, without those of the loops in it. `weight` is how often a step
    runs in the kernel. `trips` is None if the text does not say how often the loop runs.
    """

    depth: int
    trips: int | None
    line: int
    weight: int
    mix: dict[str, int]
    cycles: int
    innermost: bool

    def per(self, kind: str, *of: str) -> float | None:
        """Instructions of the kinds `of` for each one of `kind`, or None without any of that kind."""
        count = self.mix.get(kind, 0)
        return sum(self.mix.get(each, 0) for each in of) / count if count else None


@dataclass
class Stats:
    """What one kernel takes. Registers are of 32 bits; a fraction is a half register.

    `in_flight` are the threads that a core holds, by registers and by threadgroup memory. `instructions`, `mix` and
    `cycles` are of the code as it stands; `weighted_mix` and `weighted_cycles` count the steps of loops, where a loop
    of unknown length counts as `assumed_trips` steps, and every branch as taken.
    """

    kernel: str
    threads: int
    registers: float
    threads_by_registers: int
    threadgroup_bytes: int
    in_flight: int
    spills: int
    fills: int
    instructions: int
    cycles: int
    mix: dict[str, int]
    weighted_cycles: int
    weighted_mix: dict[str, int]
    assumed_trips: int
    loops: list[Loop] = field(default_factory=list)

    @property
    def main_loop(self) -> Loop | None:
        """The innermost loop with the most matrix multiplies; without any, the one whose steps cost most.

        Of loops with as many multiplies the first in the text: whole blocks come before those that are cut.
        """
        innermost = [loop for loop in self.loops if loop.innermost]

        def key(loop: Loop) -> tuple[int, int]:
            multiplies = loop.mix.get("multiply", 0)
            return (multiplies, -loop.line if multiplies else loop.cycles * loop.weight)

        return max(innermost, key=key, default=None)


def threads_in_flight(registers: float, threadgroup_bytes: int, threads: int) -> int:
    """The threads of whole threadgroups of `threads` that a core holds, by their 32-bit registers and bytes."""
    held = next((held for most, held in OCCUPANCY if registers <= most), OCCUPANCY[-1][1])
    groups = held // threads
    if threadgroup_bytes:
        groups = min(groups, CORE_THREADGROUP_BYTES // threadgroup_bytes)
    return groups * threads


class ReportError(ValueError):
    """The text is no report of the patched compiler."""


def kind_of(line: str) -> str | None:
    """The kind of the instruction on a line of the listing; None if there is none."""
    body = line.split(" = ", 1)[-1].strip()
    name = body.split(" ", 1)[0]
    if not name or not name[0].isalpha():
        return None
    if _MOVE.match(body):
        return "move"
    return next((kind for kind, names in _KINDS if names.fullmatch(name)), "integer")


def mix_of(lines: Iterable[str]) -> Counter[str]:
    """Instructions by kind."""
    return Counter(kind for kind in map(kind_of, lines) if kind)


def parse_blocks(listing: str) -> list[Block]:
    """The blocks of a listing, in the order of the code."""
    blocks = {}
    pattern = r"^block(\d+) \{\n(.*?)^\}([^\n]*)$"
    for number, body, after in re.findall(pattern, listing, re.S | re.M):
        to = re.search(r"->((?: block\d+)*)", after)
        successors = [int(n) for n in re.findall(r"block(\d+)", to.group(1))] if to else []
        blocks[int(number)] = Block(int(number), body.splitlines(), successors)
    for number, scib, ic in re.findall(
        r"^report cycles block(\d+) f_scib (\d+) ic (\d+)$", listing, re.M
    ):
        block = blocks[int(number)]
        block.float_cycles, block.integer_cycles = int(scib), int(ic)
    return list(blocks.values())


def cycles_of(blocks: Iterable[Block]) -> int:
    """Cycles of arithmetic: the two groups of units work side by side."""
    blocks = list(blocks)
    return max(sum(b.float_cycles for b in blocks), sum(b.integer_cycles for b in blocks))


def find_loops(blocks: Sequence[Block]) -> list[set[int]]:
    """The places of the blocks of each loop, outer loops before those in them."""
    place = {block.number: index for index, block in enumerate(blocks)}
    before: dict[int, set[int]] = defaultdict(set)
    for index, block in enumerate(blocks):
        for successor in block.successors:
            before[place[successor]].add(index)
    bodies: dict[int, set[int]] = {}
    for index, block in enumerate(blocks):
        for successor in block.successors:
            head = place[successor]
            if head > index:
                continue
            body, todo = bodies.setdefault(head, {head}), [index]
            while todo:
                at = todo.pop()
                if at not in body:
                    body.add(at)
                    todo += before[at]
    return [bodies[head] for head in sorted(bodies)]


def _nest(bodies: Sequence[set[int]]) -> list[int]:
    return [sum(body <= other for other in bodies) for body in bodies]


def parse_report(
    text: str, described: dict, *, threads: int, assumed_trips: int = ASSUMED_TRIPS
) -> Stats:
    """The figures of a kernel from the compiler's report, and from what the front end said of it.

    `described` is the front end's JSON: its loops, with their depth and, where the text says it, how often they run.
    Raises ReportError if the report is not complete.
    """
    parts = re.findall(r"^report main (.*?)\n(.*?)^report end$", text, re.S | re.M)
    kernel = re.search(r"^report kernel (\S+) threadgroup (\d+)$", text, re.M)
    if not parts or not kernel:
        raise ReportError("the compiler's report has no kernel: is agx-compiler the patched one?")
    head, listing = parts[-1]
    numbers = {name: int(value) for name, value in re.findall(r"(\w+) (\d+)", head)}
    blocks = parse_blocks(listing)
    bodies = find_loops(blocks)
    depths = _nest(bodies)
    known = described.get("loops", [])
    if [loop["depth"] for loop in known] != depths:
        known = [{"trips": None, "line": 0}] * len(bodies)  # the compiler changed the nest
    weights = [1] * len(blocks)
    loops = []
    for number, (body, depth) in enumerate(zip(bodies, depths, strict=True)):
        inner = [other for other in bodies if other < body]
        own = body - set().union(*inner)
        trips = known[number]["trips"]
        for index in body:
            weights[index] *= trips or assumed_trips
        mine = [blocks[index] for index in sorted(own)]
        loops.append(
            Loop(
                depth=depth,
                trips=trips,
                line=known[number]["line"],
                weight=weights[min(own)],
                mix=dict(mix_of(line for block in mine for line in block.lines)),
                cycles=cycles_of(mine),
                innermost=not inner,
            )
        )
    weighted: Counter[str] = Counter()
    for block, weight in zip(blocks, weights, strict=True):
        for kind, count in mix_of(block.lines).items():
            weighted[kind] += count * weight
    by_registers, shared = numbers["threads"], int(kernel.group(2))
    groups = by_registers // threads
    if shared:
        groups = min(groups, CORE_THREADGROUP_BYTES // shared)
    return Stats(
        kernel=kernel.group(1),
        threads=threads,
        registers=numbers["registers16"] / 2,
        threads_by_registers=by_registers,
        threadgroup_bytes=shared,
        in_flight=groups * threads,
        spills=numbers["spills"],
        fills=numbers["fills"],
        instructions=numbers["instructions"],
        cycles=cycles_of(blocks),
        mix=dict(mix_of(line for block in blocks for line in block.lines)),
        weighted_cycles=max(
            sum(b.float_cycles * w for b, w in zip(blocks, weights, strict=True)),
            sum(b.integer_cycles * w for b, w in zip(blocks, weights, strict=True)),
        ),
        weighted_mix=dict(weighted),
        assumed_trips=assumed_trips,
        loops=loops,
    )
