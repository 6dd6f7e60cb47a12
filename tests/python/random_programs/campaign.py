"""Many programs in worker processes that may crash or hang, and a file for each one that fails."""

from __future__ import annotations

import collections
import contextlib
import json
import os
import re
import selectors
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from .worker import request

PROGRAMS_OF_A_WORKER = 400
SECONDS_OF_A_PROGRAM = 60.0
MOST_FAILURES = 200


class Worker:
    """A process, and the program that it is at."""

    def __init__(self) -> None:
        self.folder = tempfile.mkdtemp(prefix="random-programs-")
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "random_programs.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            cwd=Path(__file__).parents[1],
            env=_environment(self.folder),
        )
        self.done = 0
        self.before: list[int] = []
        self.seed = -1
        self.since = 0.0

    def send(self, line: str) -> None:
        self.seed, self.since = json.loads(line)["seed"], time.monotonic()
        self.before.append(self.seed)
        # A process that has died since its last answer shows it by having none to this.
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(line.encode() + b"\n")
            self.process.stdin.flush()

    def receive(self) -> dict:
        """The answer; that of a worker that has died says how."""
        line = self.process.stdout.readline()
        self.done += 1
        if line.endswith(b"\n"):
            return json.loads(line)
        self.process.wait()
        return self._failed(
            "crash", f"the process ended with {self.process.returncode}\n{self._tail()}"
        )

    def stop_hanging(self) -> dict:
        self.process.kill()
        self.process.wait()
        return self._failed("hang", f"no answer after {SECONDS_OF_A_PROGRAM:.0f} s")

    def _failed(self, kind: str, detail: str) -> dict:
        seconds = round(time.monotonic() - self.since, 3)
        return {"seed": self.seed, "kind": kind, "detail": detail, "seconds": seconds}

    def _tail(self) -> str:
        self.errors.seek(0)
        return self.errors.read().decode(errors="replace")[-2000:]

    def close(self) -> None:
        if self.process.poll() is None:
            with contextlib.suppress(BrokenPipeError):
                self.process.stdin.close()
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process.stdout.close()
        self.errors.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def _environment(folder: str) -> dict[str, str]:
    root = Path(__file__).parents[3]
    paths = [str(root / "python"), str(Path(__file__).parents[1])]
    paths += filter(None, [os.environ.get("PYTHONPATH")])
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "TMPDIR": folder}


@dataclass
class Tally:
    """What became of a campaign's programs."""

    kinds: collections.Counter[str] = field(default_factory=collections.Counter)
    failures: list[dict] = field(default_factory=list)
    refusals: dict[str, list[int]] = field(default_factory=dict)
    seconds: float = 0.0

    def add(self, answer: dict) -> None:
        self.kinds[answer["kind"]] += 1
        if answer["kind"] == "refused":
            self.refusals.setdefault(pattern(answer["detail"]), []).append(answer["seed"])
        elif answer["kind"] not in ("ok", "elsewhere"):
            self.failures.append(answer)

    def __str__(self) -> str:
        count = sum(self.kinds.values())
        kinds = ", ".join(f"{number} {kind}" for kind, number in self.kinds.most_common())
        return f"{count} programs in {self.seconds:.0f} s ({count / max(self.seconds, 1e-9):.1f}/s): {kinds}"


def pattern(message: str) -> str:
    """A message without its numbers and names: equal ones have equal causes."""
    first = next((line for line in message.splitlines() if line.strip()), "")
    first = re.sub(r"\b[a-z]+\d+(_\d+)*\b", "NAME", first)
    return re.sub(r"\d+", "N", first)[:160]


def alone(answer: dict, before: list[int]) -> dict:
    """A crash once more, in a process of its own: it may be due to an earlier program."""
    worker = Worker()
    try:
        worker.send(request(answer["seed"]))
        again = worker.receive()
    finally:
        worker.close()
    if again["kind"] == "ok":
        detail = f"{answer['detail']}\nnot alone, but after {before[-20:-1]}"
        return {**answer, "detail": detail}
    return again


def campaign(seeds: Iterable[int], jobs: int, on_failure=None, progress=None) -> Tally:
    """Runs the programs of these numbers."""
    tally, start = Tally(), time.monotonic()
    pending = iter(seeds)
    selector = selectors.DefaultSelector()
    busy: dict[int, Worker] = {}

    def begin(worker: Worker | None) -> None:
        # What fails so often says no more when it fails more often.
        seed = next(pending, None) if len(tally.failures) < MOST_FAILURES else None
        if seed is None:
            if worker is not None:
                worker.close()
            return
        if worker is None or worker.done >= PROGRAMS_OF_A_WORKER:
            if worker is not None:
                worker.close()
            worker = Worker()
        worker.send(request(seed))
        busy[worker.process.stdout.fileno()] = worker
        selector.register(worker.process.stdout, selectors.EVENT_READ)

    def end(worker: Worker, answer: dict) -> None:
        selector.unregister(worker.process.stdout)
        del busy[worker.process.stdout.fileno()]
        if answer["kind"] == "crash" and len(worker.before) > 1:
            answer = alone(answer, worker.before)
        tally.add(answer)
        tally.seconds = time.monotonic() - start
        if answer["kind"] not in ("ok", "refused", "elsewhere") and on_failure:
            on_failure(answer)
        if progress:
            progress(tally)
        if answer["kind"] in ("wrong", "crash", "hang"):
            # A store to a wrong place may have damaged the process.
            worker.close()
            begin(None)
        else:
            begin(worker)

    try:
        for _ in range(jobs):
            begin(None)
        while busy:
            for key, _ in selector.select(timeout=1.0):
                worker = busy[key.fd]
                end(worker, worker.receive())
            for worker in list(busy.values()):
                if time.monotonic() - worker.since > SECONDS_OF_A_PROGRAM:
                    end(worker, worker.stop_hanging())
    finally:
        for worker in busy.values():
            worker.process.kill()
            worker.close()
    return tally
