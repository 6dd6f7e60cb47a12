"""Runs forms of probes in processes of their own, one at a time, with the next processes already starting."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: Seconds for a process to start, and for a form to compile and run.
START_SECONDS = 60.0
RUN_SECONDS = 10.0
#: Seconds for all forms together; where stand-ins run, nobody waits for a GPU.
TOTAL_SECONDS = 120.0
STAND_IN_SECONDS = 300.0

#: What a framework prints when the GPU stopped and it raises nothing.
_STOPPED = re.compile(r"command buffer exited with error status|Command buffer execution failed.*")


TIME_WAS_UP = {"state": "not run", "says": "not run: the time was up"}


@dataclass(frozen=True)
class Job:
    """One form of one probe on one route, or several questions."""

    route: str
    keys: tuple[str, ...]
    form: str


class Worker:
    """A process that runs one job."""

    def __init__(self, route: str, stand_in: bool, setup: str) -> None:
        environment = dict(os.environ)
        root = str(Path(__file__).resolve().parents[3])
        environment["PYTHONPATH"] = os.pathsep.join(
            part for part in (root, environment.get("PYTHONPATH", "")) if part
        )
        environment.pop("TRITON_METAL_DEVICE", None)
        code = f"{setup}\nfrom triton_metal.doctor.quirks.worker import main; main()"
        self.errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 (closed in end())
        self.child = subprocess.Popen(
            [sys.executable, "-c", code, route, *(["stand-in"] if stand_in else [])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
            env=environment,
        )
        self.lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.child.stdout is not None
        for line in self.child.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def record(self, seconds: float) -> dict[str, Any] | None:
        """The next record; None if the process has ended. Raises queue.Empty if there is none in time."""
        deadline = time.monotonic() + seconds
        while True:
            line = self.lines.get(timeout=max(0.01, deadline - time.monotonic()))
            if line is None:
                return None
            try:
                record = json.loads(line)
            except ValueError:
                continue
            if isinstance(record, dict) and "kind" in record:
                return record

    def start(self, job: Job, seconds: float) -> dict[str, Any] | None:
        """Waits until the process is ready, and gives it its job. Says why if that does not work."""
        try:
            first = self.record(seconds)
            if first is None:
                return {"state": "not run", "says": f"not run: the process {self.ending()}"}
            if first["kind"] != "ready":
                return {"state": "not run", "says": f"not run: {first['says']}"}
            assert self.child.stdin is not None
            self.child.stdin.write(json.dumps({"keys": job.keys, "form": job.form}) + "\n")
            self.child.stdin.flush()
        except queue.Empty:
            return {
                "state": "not run",
                "says": f"not run: the process took more than {seconds:.0f} s to start",
            }
        except OSError:
            return {"state": "not run", "says": f"not run: the process {self.ending()}"}
        return None

    def result(self, seconds: float, whole: float) -> dict[str, Any]:
        """The next result, within the seconds that are left of the whole time for one form."""
        try:
            result = self.record(seconds)
        except queue.Empty:
            if seconds < whole:
                return dict(TIME_WAS_UP)
            return {"state": "hangs", "says": f"hangs: no result after {seconds:.0f} s"}
        if result is None:
            return {"state": "crashes", "says": f"crashes: {self.ending()}"}
        result.pop("kind")
        said = _STOPPED.search(self.said())
        if said and result["state"] in ("right", "wrong", "answer"):
            return {"state": "refused", "says": f"refused: the GPU stopped ({said[0]})"}
        return result

    def ending(self) -> str:
        """How the process ended, with the last words that it printed."""
        status = self.child.wait()
        how = f"signal {-status}" if status < 0 else f"ended with status {status}"
        said = [line for line in self.said().strip().splitlines() if line.strip()]
        return how + (f" ({said[-1].strip()[:160]})" if said else "")

    def said(self) -> str:
        """What the process printed on its standard error."""
        self.errors.seek(0)
        return self.errors.read()

    def end(self) -> None:
        """Ends the process."""
        self.child.kill()
        self.child.wait()
        for stream in (self.child.stdin, self.child.stdout, self.errors):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()


def run_all(
    jobs: Iterable[Job],
    told: Callable[[int, Job, str], None] | None = None,
    *,
    stand_ins: frozenset[str] = frozenset(),
    setup: str = "",
    run_seconds: float = RUN_SECONDS,
    total_seconds: float = TOTAL_SECONDS,
) -> dict[tuple[str, str, str], dict[str, Any]]:
    """The results of all jobs, by route, key and form. ``stand_ins`` are the routes whose frameworks are replaced.

    ``setup`` is Python text that each process runs first. Tests replace a framework with it. ``told`` is called
    before each form.
    """
    end = time.monotonic() + total_seconds
    waiting = deque(jobs)
    started: deque[tuple[Job, Worker]] = deque()
    ahead = max(1, min(6, (os.cpu_count() or 2) - 1))
    results: dict[tuple[str, str, str], dict[str, Any]] = {}

    def left() -> float:
        return end - time.monotonic()

    def take(job: Job, key: str, result: dict[str, Any]) -> None:
        results[job.route, key, job.form] = result

    try:
        while waiting or started:
            while waiting and len(started) < 1 + ahead and left() > 0:
                job = waiting.popleft()
                started.append((job, Worker(job.route, job.route in stand_ins, setup)))
            if left() <= 0:
                for job in (*(job for job, _ in started), *waiting):
                    for key in job.keys:
                        take(job, key, dict(TIME_WAS_UP))
                break
            job, worker = started[0]
            problem = worker.start(job, min(START_SECONDS, left()))
            for index, key in enumerate(job.keys):
                if told is not None:
                    told(len(results), job, key)
                result = problem or worker.result(max(0.01, min(run_seconds, left())), run_seconds)
                take(job, key, result)
                rest = job.keys[index + 1 :]
                if problem is None and rest and result["state"] in ("crashes", "hangs"):
                    # The others are asked in another process.
                    waiting.appendleft(Job(job.route, rest, job.form))
                    break
            started.popleft()
            worker.end()
    finally:
        for _, worker in started:
            worker.end()
    return results
