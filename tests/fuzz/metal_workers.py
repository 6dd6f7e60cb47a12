"""Processes that compile and launch many Metal texts one after another, and who watches them.

What a text did to its process is found out alone: a text at which a process crashed, hung or grew is run again in a
fresh process, and the outcome of that run counts. Texts whose launches may write anywhere in their process have
processes of their own, so that they cannot be the reason for what becomes of the others.
"""

from __future__ import annotations

import collections
import json
import os
import resource
import select
import signal
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from metal_launches import Plan, Runner, stopwatch

COMPILE_SECONDS, RUN_SECONDS = 40, 2
TEXTS_OF_A_WORKER = 500
# A worker ends behind a text with the one, and in a text with the other.
GROWN_BYTES, TOO_MANY_BYTES = 1 << 30, 6 << 30


@dataclass(frozen=True)
class Source:
    """The texts of numbers, and how they are launched. Workers make both by themselves."""

    text: Callable[[int], str]
    plan: Callable[[int], Plan]


@dataclass
class Result:
    """How a text ended: ran, error, surprise, stopped, wild, crash, hang or memory.

    ``compiling`` and ``running`` are seconds. ``company`` are the texts that ran in the same process before it, if it
    failed there and not alone.
    """

    number: int
    outcome: str
    message: str = ""
    compiling: float = 0.0
    running: float = 0.0
    company: list[int] = field(default_factory=list)
    failed: str = ""

    @property
    def is_defect(self) -> bool:
        return self.outcome in ("crash", "hang", "memory", "surprise") or bool(self.company)


def resident_bytes(process: int) -> int:
    """The memory that a process has; 0 if it has ended."""
    try:
        with open(f"/proc/{process}/statm") as file:
            return int(file.read().split()[1]) * resource.getpagesize()
    except (OSError, IndexError, ValueError):
        return 0


def serve(source: Source, ask: int, answer: int) -> None:
    """In the worker: runs the text of each number that is asked for."""
    runner = Runner()

    def tell(words: str) -> None:
        os.write(answer, words.encode() + b"\n")

    with os.fdopen(ask) as numbers:
        for line in numbers:
            text, plan = source.text(int(line)), source.plan(int(line))
            tell_stage, spent = stopwatch(tell)
            try:
                outcome, _, message = runner.run(text, plan, tell_stage).partition(" ")
                tell_stage("end")
            except KeyboardInterrupt:
                outcome, message = "stopped", ""
            tell(json.dumps([outcome, message[:1000], spent["compile"], spent["launch"]]))
            if os.environ.get("FUZZ_SHOW"):
                print(outcome, message, spent, flush=True)


class Worker:
    """A process that runs texts, and the number of the one that it has."""

    def __init__(self, source: Source, is_checked: bool, is_alone: bool = False) -> None:
        self.is_checked, self.is_alone = is_checked, is_alone
        self.done: list[int] = []
        self.number: int | None = None
        self.stage = ""
        self.interrupts = 0
        self.changed = 0.0  # when the stage began
        self.heard = b""
        ask, self.ask = os.pipe()
        self.answer, answer = os.pipe()
        self.process = os.fork()
        if self.process == 0:
            self.be(source, ask, answer)
        os.close(ask)
        os.close(answer)

    @staticmethod
    def be(source: Source, ask: int, answer: int) -> None:
        """The worker's own life."""
        try:
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            # A job in the background starts with interrupts ignored, and so would its children.
            signal.signal(signal.SIGINT, signal.default_int_handler)
            # Other workers' pipes must not stay open here.
            for descriptor in map(int, os.listdir("/proc/self/fd")):
                if descriptor > 2 and descriptor not in (ask, answer):
                    try:
                        os.close(descriptor)
                    except OSError:
                        pass
            if not os.environ.get("FUZZ_SHOW"):
                null = os.open(os.devnull, os.O_RDWR)
                for standard in (0, 1, 2):
                    os.dup2(null, standard)
            serve(source, ask, answer)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(77)

    def give(self, number: int) -> None:
        self.number, self.stage, self.interrupts = number, "compile", 0
        self.changed = time.monotonic()
        try:
            os.write(self.ask, b"%d\n" % number)
        except BrokenPipeError:
            pass  # `hear` finds out

    def hear(self) -> Result | None:
        """Reads what the worker says, and gives how its text ended."""
        part = os.read(self.answer, 1 << 16)
        if not part:
            _, status = os.waitpid(self.process, 0)
            self.process = 0
            code = os.waitstatus_to_exitcode(status)
            return self.failed("crash", f"signal {-code}" if code < 0 else f"status {code}")
        self.heard += part
        *lines, self.heard = self.heard.split(b"\n")
        for line in lines:
            if line.startswith(b"["):
                assert self.number is not None
                result = Result(self.number, *json.loads(line))
                self.done.append(self.number)
                self.number = None
                return result
            self.stage, self.changed, self.interrupts = line.decode(), time.monotonic(), 0
        return None

    def watch(self) -> Result | None:
        """Interrupts a launch that does not end, and gives how a text ended that hangs even so."""
        spent = time.monotonic() - self.changed
        if spent > COMPILE_SECONDS:
            return self.failed("hang", f"{spent:.0f} s in the stage '{self.stage}'")
        if self.stage == "launch" and spent > RUN_SECONDS * (self.interrupts + 1):
            os.kill(self.process, signal.SIGINT)
            self.interrupts += 1
        return None

    def watch_memory(self) -> Result | None:
        size = resident_bytes(self.process)
        if size > TOO_MANY_BYTES:
            return self.failed("memory", f"{size >> 20} MB in the stage '{self.stage}'")
        return None

    def failed(self, outcome: str, message: str) -> Result:
        assert self.number is not None
        spent = time.monotonic() - self.changed
        if outcome == "crash" and self.stage == "launch" and not self.is_checked:
            outcome = "wild"  # nothing keeps an unchecked kernel from writing into the process's own memory
        times = (spent, 0.0) if self.stage == "compile" else (0.0, spent)
        return Result(self.number, outcome, message, *times)

    @property
    def is_worn(self) -> bool:
        """Whether another worker must take the next text."""
        # An interrupt may still be on its way.
        return (
            self.interrupts > 0
            or len(self.done) >= TEXTS_OF_A_WORKER
            or resident_bytes(self.process) > GROWN_BYTES
        )

    def end(self) -> None:
        if self.process:
            os.kill(self.process, signal.SIGKILL)
            os.waitpid(self.process, 0)
        os.close(self.ask)
        os.close(self.answer)


class Pool:
    """Runs texts in some processes at a time."""

    def __init__(self, source: Source, jobs: int, seconds: float = float("inf")) -> None:
        self.source, self.jobs = source, jobs
        self.deadline = time.monotonic() + seconds  # after which no text begins
        self.workers: list[Worker] = []
        # What waits: (number, whether it is checked), for shared workers; and what runs again alone.
        self.waiting: dict[bool, collections.deque[int]] = {
            kind: collections.deque() for kind in (False, True)
        }
        self.again: collections.deque[tuple[Result, bool, list[int]]] = collections.deque()
        self.first_runs: dict[int, tuple[Result, list[int]]] = {}

    def run(self, numbers: Iterable[int]) -> Iterator[Result]:
        """How each text ended, in the order in which they end."""
        coming = iter(numbers)
        checked_memory = time.monotonic()
        while True:
            self.hand_out(coming)
            busy = {worker.answer: worker for worker in self.workers if worker.number is not None}
            if not busy:
                break
            ready, _, _ = select.select(list(busy), [], [], 0.05)
            for descriptor in ready:
                worker = busy.pop(descriptor)
                if result := worker.hear():
                    yield from self.judge(worker, result)
            is_memory_due = time.monotonic() - checked_memory > 0.5
            for worker in busy.values():
                result = worker.watch()
                if result is None and is_memory_due:
                    result = worker.watch_memory()
                if result:
                    yield from self.judge(worker, result)
            if is_memory_due:
                checked_memory = time.monotonic()
        self.close()

    def close(self) -> None:
        for worker in self.workers:
            worker.end()
        self.workers = []

    def hand_out(self, coming: Iterator[int]) -> None:
        """Gives each idle worker a text of its kind, and makes new workers."""
        for worker in list(self.workers):
            if worker.number is None:
                number = (
                    None
                    if worker.is_alone or worker.is_worn
                    else self.next(coming, worker.is_checked)
                )
                if number is None:
                    self.workers.remove(worker)
                    worker.end()
                else:
                    worker.give(number)
        while len(self.workers) < self.jobs:
            if self.again:
                first, is_checked, company = self.again.popleft()
                worker = Worker(self.source, is_checked, is_alone=True)
                self.first_runs[first.number] = first, company
                number: int | None = first.number
            else:
                checked = sum(worker.is_checked for worker in self.workers)
                is_checked = 2 * checked < len(self.workers) + 1
                number = self.next(coming, is_checked)
                if number is None:
                    is_checked = not is_checked
                    number = self.next(coming, is_checked)
                if number is None:
                    return
                worker = Worker(self.source, is_checked)
            assert number is not None
            worker.give(number)
            self.workers.append(worker)

    def next(self, coming: Iterator[int], is_checked: bool) -> int | None:
        """The next text of this kind."""
        if time.monotonic() > self.deadline:
            return None
        waiting = self.waiting[is_checked]
        while not waiting:
            number = next(coming, None)
            if number is None:
                return None
            self.waiting[self.source.plan(number).is_checked].append(number)
        return waiting.popleft()

    def judge(self, worker: Worker, result: Result) -> Iterator[Result]:
        """Gives a result, or runs a text again alone if its process failed."""
        has_failed = worker.number is not None
        if has_failed:
            worker.end()
            self.workers.remove(worker)
        if worker.is_alone:
            first, company = self.first_runs.pop(result.number)
            result.failed = first.outcome
            if not has_failed and worker.is_checked:
                result.company = company
            yield result
        elif has_failed and worker.done:
            self.again.append((result, worker.is_checked, worker.done))
        else:
            yield result
