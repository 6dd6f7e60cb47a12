"""Mutates Metal texts and runs them on the host device: none may end the process or hang the compiler.

    python tests/fuzz/metal_texts.py --count 5000 --seed 1

Texts are the kernels of the examples and those under ``texts/``; ``--texts`` adds folders or files. Each mutant is compiled and
run in a child process, every other one with all checks, the budget of steps among them. An error is a good answer, a kernel that does not end is stopped by an
interrupt, and an unchecked kernel may overwrite the process's own memory ("wild"). What else crashes or hangs is written to ``--out``, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import collections
import os
import random
import re
import resource
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
COMPILE_SECONDS, RUN_SECONDS = 40, 2

TOKEN = re.compile(
    r"//[^\n]*|\#[^\n]*|\s+|[A-Za-z_]\w*|\.?\d(?:[\w.]|(?<=[eEpP])[+-])*"
    r"|<<=|>>=|\[\[|\]\]|<<|>>|[-+*/%&|^<>=!]=|&&|\|\||\+\+|--|->|::|.",
    re.S,
)
NUMBERS = (
    "0 1 -1 2 3 7 8 16 31 32 33 40 63 64 65 127 128 255 256 1024 32767 65535 65536 2147483647 (-2147483647-1) "
    "4294967295u 9223372036854775807l 18446744073709551615ul 0.0f -0.0f 1e20f -1e20f INFINITY NAN 65504.0h 1e-45f 0x7fffffff"
).split()
OPERATORS = (
    "+ - * / % & | ^ << >> && || == != < > <= >= = += -= *= /= %= <<= >>= ? : , ; ! ~ ++ -- . ->"
).split()
WORDS = (
    "int uint float half bfloat char uchar short ushort long ulong bool float4 int4 uint3 half2 void auto const constexpr static "
    "device threadgroup constant thread if else for while do switch case default break continue return struct template typename "
    "namespace using true false nullptr sizeof inline volatile goto this new delete throw operator enum union "
    "as_type simd_sum simd_shuffle simd_broadcast threadgroup_barrier mem_flags mem_threadgroup atomic_fetch_add_explicit clamp select "
    "simdgroup_float8x8 simdgroup_load simdgroup_multiply_accumulate"
).split()
BRACKETS = {"(": ")", "[": "]", "{": "}", "[[": "]]"}


def tokens_of(text: str) -> list[str]:
    return TOKEN.findall(text)


def is_space(token: str) -> bool:
    return token.isspace() or token.startswith("//")


def group_end(tokens: list[str], start: int) -> int:
    """One past the token that closes the bracket at ``start``."""
    open_, close = tokens[start], BRACKETS[tokens[start]]
    depth = 0
    for index in range(start, len(tokens)):
        depth += (tokens[index] == open_) - (tokens[index] == close)
        if depth == 0:
            return index + 1
    return len(tokens)


class Mutator:
    """Makes one text out of others."""

    def __init__(self, texts: list[str], seed: int) -> None:
        self.texts = [tokens_of(text) for text in texts]
        self.random = random.Random(seed)

    def mutant(self) -> str:
        tokens = list(self.random.choice(self.texts))
        for _ in range(self.random.choice((1, 1, 1, 2, 2, 3, 5, 8))):
            self.mutate(tokens)
        return "".join(tokens)

    def pick(self, tokens: list[str], accept=lambda token: not is_space(token)) -> int | None:
        places = [index for index, token in enumerate(tokens) if accept(token)]
        return self.random.choice(places) if places else None

    def mutate(self, tokens: list[str]) -> None:
        choices = (
            [self.number] * 24
            + [self.operator] * 12
            + [self.delete, self.duplicate, self.swap, self.word, self.rename] * 2
            + [self.splice, self.nest, self.drop_group, self.repeat_line, self.cut]
        )
        self.random.choice(choices)(tokens)

    def number(self, tokens: list[str]) -> None:
        at = self.pick(tokens, lambda token: token[0].isdigit())
        if at is not None:
            tokens[at] = self.random.choice(NUMBERS)

    def operator(self, tokens: list[str]) -> None:
        at = self.pick(tokens, lambda token: token in OPERATORS)
        if at is not None:
            tokens[at] = self.random.choice(OPERATORS)

    def delete(self, tokens: list[str]) -> None:
        at = self.pick(tokens)
        if at is not None:
            del tokens[at : at + self.random.choice((1, 1, 1, 2, 5))]

    def duplicate(self, tokens: list[str]) -> None:
        at = self.pick(tokens)
        if at is not None:
            part = tokens[at : at + self.random.choice((1, 2, 6, 20))]
            tokens[at:at] = part * self.random.choice((1, 1, 1, 3))

    def swap(self, tokens: list[str]) -> None:
        a, b = self.pick(tokens), self.pick(tokens)
        if a is not None and b is not None:
            tokens[a], tokens[b] = tokens[b], tokens[a]

    def word(self, tokens: list[str]) -> None:
        at = self.pick(tokens)
        if at is not None:
            tokens[at : at + self.random.choice((0, 1))] = [" ", self.random.choice(WORDS), " "]

    def rename(self, tokens: list[str]) -> None:
        a = self.pick(tokens, lambda token: token[0].isalpha())
        b = self.pick(tokens, lambda token: token[0].isalpha())
        if a is not None and b is not None:
            tokens[a] = tokens[b]

    def splice(self, tokens: list[str]) -> None:
        other = self.random.choice(self.texts)
        at, start = self.pick(tokens), self.random.randrange(len(other))
        if at is not None:
            tokens[at:at] = other[start : start + self.random.choice((3, 10, 40, 200))]

    def nest(self, tokens: list[str]) -> None:
        kind = self.random.choice(list(BRACKETS) + ["!", "-", "~", "*", "&", "(int)", "if (1) "])
        depth = self.random.choice((2, 10, 100, 3000))
        if kind in BRACKETS:
            at = self.pick(tokens, lambda token: token == kind)
            if at is None:
                return
            end = group_end(tokens, at)
            tokens[at:end] = [kind] * depth + tokens[at:end] + [BRACKETS[kind]] * depth
        else:
            at = self.pick(tokens)
            if at is not None:
                tokens[at:at] = [kind] * depth

    def drop_group(self, tokens: list[str]) -> None:
        at = self.pick(tokens, lambda token: token in BRACKETS)
        if at is not None:
            del tokens[at : group_end(tokens, at)]

    def repeat_line(self, tokens: list[str]) -> None:
        at = self.pick(tokens, lambda token: "\n" in token)
        if at is not None:
            end = next((k for k in range(at + 1, len(tokens)) if "\n" in tokens[k]), len(tokens))
            tokens[at:end] = tokens[at:end] * self.random.choice((2, 3, 50))

    def cut(self, tokens: list[str]) -> None:
        at = self.pick(tokens)
        if at is not None:
            del tokens[at:]


def run_mutant(text: str, report: int, check: bool) -> int:
    """In the child: compiles and runs every kernel of the text. 0 is ran, 1 an error, 3 stopped by an interrupt."""
    import numpy as np
    from triton_metal import _native

    try:
        library = _native.MetalLibrary(text, checks="all" if check else "")
        kernels = library.kernels
        os.write(report, b"c")
        for name, kernel in list(kernels.items())[:3]:
            memory = [
                np.full(1 << 14, 3, np.uint32) for _ in range(31)
            ]  # numbers that are small as sizes, and the same in every run
            buffers = [(array.ctypes.data, array.nbytes, True) for array in memory]
            library.threadgroup_memory(name)  # compiles it
            os.write(report, b"r")
            library.dispatch(name, buffers, (64, 1, 1), (min(64, kernel["max_threads"]), 1, 1))
        return 0
    except KeyboardInterrupt:
        return 3
    except Exception as error:
        if os.environ.get("FUZZ_SHOW"):
            print(error)
        return 1


def start(text: str, check: bool) -> tuple[int, int]:
    """The child's number and the pipe on which it says that the text's front end is through."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        null = os.open(os.devnull, os.O_WRONLY)
        if not os.environ.get("FUZZ_SHOW"):
            os.dup2(null, 1)
            os.dup2(null, 2)
        status = 1
        try:
            status = run_mutant(text, write, check)
        finally:
            os._exit(status)
    os.close(write)
    return child, read


class Run:
    """A text that is being compiled and run."""

    def __init__(self, number: int, text: str, check: bool) -> None:
        self.number, self.text, self.check = number, text, check
        self.child, self.pipe = start(text, check)
        self.started = time.monotonic()
        self.interrupts = 0

    def outcome(self) -> str | None:
        """How it ended, or None while it runs."""
        found, status = os.waitpid(self.child, os.WNOHANG)
        if found:
            is_running = b"r" in os.read(self.pipe, 100)
            os.close(self.pipe)
            code = os.waitstatus_to_exitcode(status)
            if code < 0 and is_running and not self.check:
                return "wild"  # nothing keeps an unchecked kernel from writing into the process's own memory
            return {0: "ran", 1: "error", 3: "stopped"}.get(code, f"crash ({code})")
        spent = time.monotonic() - self.started
        if spent > COMPILE_SECONDS:
            os.kill(self.child, signal.SIGKILL)
            os.waitpid(self.child, 0)
            os.close(self.pipe)
            return "hang"
        if spent > RUN_SECONDS * (self.interrupts + 1) and select.select([self.pipe], [], [], 0)[0]:
            # Between the kernels' runs it is Python's to raise, as soon as the engine has compiled.
            os.kill(self.child, signal.SIGINT)
            self.interrupts += 1
        return None


def run_all(texts: Iterator[tuple[int, str, bool]], jobs: int) -> Iterator[tuple[Run, str]]:
    """Runs texts, some at a time, and gives how each ended."""
    running: list[Run] = []
    while True:
        while len(running) < jobs and (entry := next(texts, None)):
            running.append(Run(*entry))
        if not running:
            return
        for run in list(running):
            if result := run.outcome():
                running.remove(run)
                yield run, result
        time.sleep(0.001)


def example_texts() -> list[str]:
    """The Metal texts of the examples' kernels."""
    import numpy as np
    import triton_metal

    sys.path.insert(0, str(ROOT / "examples"))
    import attention
    import layer_norm
    import matmul
    import softmax
    import vector_add

    texts: dict[str, None] = {}
    launch = triton_metal.launch_options
    x = np.ones((64, 64), np.float32)
    with launch(count=True) as log:
        vector_add.add(x.reshape(-1), x.reshape(-1))
        softmax.softmax(x)
        matmul.matmul(x, x)
        layer_norm.layer_norm(x, x[0], x[0])
        attention.attention(*(np.ones((1, 64, 64), np.float16),) * 3)
    for record in log.launches:
        texts[record.kernel.asm["metal"]] = None
    return list(texts)


def in_a_child(function: Callable[[], list[str]]) -> list[str]:
    """What a function gives, in a process of its own: forks must not come after threads."""
    read, write = os.pipe()
    if os.fork() == 0:
        os.close(read)
        with os.fdopen(write, "w") as stream:
            stream.write("\0".join(function()))
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as stream:
        texts = stream.read().split("\0")
    os.wait()
    return [text for text in texts if text]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--texts", type=Path, nargs="*", default=[], help="files or folders")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "fuzz-metal")
    parser.add_argument("--replay", type=Path, nargs="*", help="run these texts as they are")
    options = parser.parse_args()
    # A job in the background starts with interrupts ignored, and so would its children.
    signal.signal(signal.SIGINT, signal.default_int_handler)

    if options.replay:
        paths = options.replay
        again = ((n, paths[n // 2].read_text(), n % 2 == 1) for n in range(2 * len(paths)))
        results = [(run.number, result) for run, result in run_all(again, options.jobs)]
        for number, result in sorted(results):
            print(paths[number // 2].name, "with checks:" if number % 2 else "unchecked:", result)
        return 0
    texts = [path.read_text() for path in sorted((HERE / "texts").glob("*.metal"))]
    for path in options.texts:
        files = sorted(path.rglob("*.metal")) if path.is_dir() else [path]
        texts += [file.read_text() for file in files]
    texts += in_a_child(example_texts)

    from triton_metal import _native

    _native.host_device_problem()  # loads it, once, before the forks
    mutator = Mutator(texts, options.seed)
    mutants = ((number, mutator.mutant(), number % 2 == 1) for number in range(options.count))
    counts: collections.Counter[str] = collections.Counter()
    options.out.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    for run, result in run_all(mutants, options.jobs):
        counts[result] += 1
        if result == "hang" or result.startswith("crash"):
            path = options.out / f"{options.seed}-{run.number}.metal"
            path.write_text(run.text)
            print(f"{result}: {path}", flush=True)
    print(f"{options.count} texts in {time.monotonic() - started:.0f} s: {dict(counts)}")
    return int(any(result not in ("ran", "error", "stopped", "wild") for result in counts))


if __name__ == "__main__":
    sys.exit(main())
