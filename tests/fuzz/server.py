"""A compiler in a process of its own, which takes many texts: one that crashes or hangs costs only itself."""

from __future__ import annotations

import os
import select
import subprocess
import tempfile
import time
from dataclasses import dataclass
from typing import IO

# LLVM itself is not instrumented and shares allocators with us; see the Makefile.
SANITIZER = {
    "ASAN_OPTIONS": "allow_user_poisoning=0:detect_stack_use_after_return=0:detect_leaks=0",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}


@dataclass(frozen=True)
class Options:
    """How one text is compiled."""

    num_warps: int = 4
    num_stages: int = 2
    check_metal: bool = False


@dataclass(frozen=True)
class Answer:
    """What became of a text: ok, refused, metal (Metal text that does not compile), invalid, crash or hang."""

    status: str
    message: str
    seconds: float = 0.0

    @property
    def is_defect(self) -> bool:
        return self.status not in ("ok", "refused")


class Compiler:
    """Compiles texts one after another in a child process, and starts another one where that ends."""

    def __init__(self, command: list[str], limit: float = 20.0) -> None:
        self.command, self.limit = command, limit
        self.process: subprocess.Popen[bytes] | None = None
        self.errors: IO[bytes] | None = None

    def start(self) -> subprocess.Popen[bytes]:
        if self.process is None:
            self.errors = tempfile.TemporaryFile()
            self.process = subprocess.Popen(
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self.errors,
                env={**os.environ, **SANITIZER},
            )
        return self.process

    def close(self) -> None:
        if self.process:
            self.process.kill()
            self.process.wait()
        if self.errors:
            self.errors.close()
        self.process = self.errors = None

    def read(self, count: int | None, deadline: float) -> bytes:
        """So many bytes, or a line; less where the process ends, TimeoutError where it takes too long."""
        assert self.process
        assert self.process.stdout
        descriptor, data = self.process.stdout.fileno(), b""
        while len(data) < count if count is not None else not data.endswith(b"\n"):
            ready, _, _ = select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError
            part = os.read(descriptor, 1 if count is None else count - len(data))
            if not part:
                break
            data += part
        return data

    def compile(self, text: bytes, options: Options) -> Answer:
        process = self.start()
        assert process.stdin
        assert self.errors
        start = time.monotonic()
        header = (
            f"{len(text)} {options.num_warps} {options.num_stages} {int(options.check_metal)}\n"
        )
        try:
            process.stdin.write(header.encode() + text)
            process.stdin.flush()
            line = self.read(None, start + self.limit)
            fields = line.split()
            if len(fields) == 3:
                message = self.read(int(fields[2]), start + self.limit)
                if len(message) == int(fields[2]):
                    return Answer(
                        fields[0].decode(),
                        message.decode(errors="replace"),
                        float(fields[1]) / 1000,
                    )
        except BrokenPipeError:
            pass
        except TimeoutError:
            self.close()
            return Answer("hang", f"more than {self.limit} s", self.limit)
        code = process.wait()
        self.errors.seek(0)
        told = self.errors.read().decode(errors="replace")
        self.close()
        return Answer("crash", f"exit status {code}\n{told[-20000:]}", time.monotonic() - start)
