"""Makes a program that fails smaller: fewer steps, a plainer launch, the same failure."""

from __future__ import annotations

import select
from dataclasses import replace

from .campaign import SECONDS_OF_A_PROGRAM, Worker, pattern
from .generate import generate
from .program import Config
from .worker import request


class Oracle:
    """Tells what becomes of a program, in a process that may crash."""

    def __init__(self) -> None:
        self.worker: Worker | None = None
        self.asked = 0

    def __call__(self, seed: int, removed: frozenset[str], config: Config | None) -> dict:
        self.asked += 1
        if self.worker is None:
            self.worker = Worker()
        self.worker.send(request(seed, sorted(removed), config))
        ready, _, _ = select.select([self.worker.process.stdout], [], [], SECONDS_OF_A_PROGRAM)
        answer = self.worker.receive() if ready else self.worker.stop_hanging()
        if answer["kind"] in ("crash", "hang"):
            self.close()
        return answer

    def close(self) -> None:
        if self.worker is not None:
            self.worker.close()
            self.worker = None


def signature(answer: dict) -> str:
    """Failures of one signature are taken for the same."""
    kind = answer["kind"]
    return (
        kind if kind in ("wrong", "crash", "hang", "ok") else f"{kind}: {pattern(answer['detail'])}"
    )


def shrink(seed: int, most: int = 150) -> tuple[frozenset[str], Config | None, dict]:
    """The steps that can be left out, the plainest launch, and what then fails."""
    oracle = Oracle()
    try:
        removed: frozenset[str] = frozenset()
        config: Config | None = None
        answer = oracle(seed, removed, config)
        wanted = signature(answer)
        if wanted == "ok":
            return removed, config, answer

        def fails(removed: frozenset[str], config: Config | None) -> dict | None:
            if oracle.asked >= most:
                return None
            try:
                generate(seed, removed, config)
            except Exception:
                return None
            got = oracle(seed, removed, config)
            return got if signature(got) == wanted else None

        changed = True
        while changed and oracle.asked < most:
            changed = False
            steps = [s for s in generate(seed, removed, config).steps if s not in removed]
            size = max(1, len(steps) // 2)
            while size:
                steps = [s for s in generate(seed, removed, config).steps if s not in removed]
                for first in range(len(steps) - size, -size, -size):
                    chunk = removed | set(steps[max(first, 0) : first + size])
                    if chunk != removed and (got := fails(chunk, config)):
                        removed, answer, changed = chunk, got, True
                size //= 2
            for plainer in _plainer(generate(seed, removed, config).config):
                if got := fails(removed, plainer):
                    config, answer, changed = plainer, got, True
                    break
        return removed, config, answer
    finally:
        oracle.close()


def _plainer(config: Config) -> list[Config]:
    result = []
    if config.grid != (1,):
        result.append(replace(config, grid=(1,)))
    if config.schedule is not None:
        result.append(replace(config, schedule=None))
    if config.check is not None:
        result.append(replace(config, check=None))
    if config.processor is not None:
        result.append(replace(config, processor=None))
    if config.num_stages != 2:
        result.append(replace(config, num_stages=2))
    result += [replace(config, num_warps=n) for n in (1, 2, 4) if n < config.num_warps]
    return result
