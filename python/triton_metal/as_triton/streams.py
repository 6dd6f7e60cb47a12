"""The standard streams of a command: what is wrong with one of them costs neither the command's work nor a traceback."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any

# Streams that programs have put in place of the standard ones: their end would close the file that they write to.
_left: list[Any] = []


class Guarded:
    """A stream for writing that raises nothing.

    ``error`` is the first error of writing; what comes after it is dropped. A character that the encoding lacks is
    replaced. A ``stream`` of None, which Python has for a closed one, drops everything.
    """

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        #: What takes the stream's place when the command has ended.
        self.after = stream
        self.error: Exception | None = None
        self._nowhere = io.StringIO()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._nowhere if self.stream is None else self.stream, name)

    def write(self, text: str) -> int:
        """Writes a text if nothing has failed before."""
        self._try(lambda: self._write(text))
        return len(text)

    def flush(self) -> None:
        """Writes what is buffered."""
        self._try(lambda: self.stream.flush())

    def _try(self, action: Callable[[], object]) -> None:
        if self.stream is None or self.error is not None:
            return
        try:
            action()
        except (
            OSError,
            ValueError,
        ) as error:  # a ValueError says that the program has closed the stream
            self.error = error

    def _write(self, text: str) -> None:
        try:
            self.stream.write(text)
        except UnicodeEncodeError as error:
            self.stream.write(text.encode(error.encoding, "replace").decode(error.encoding))

    def give_up(self) -> None:
        """Lets Python's own flush at its exit go nowhere, which would fail again."""
        with contextlib.suppress(OSError, ValueError, AttributeError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.stream.fileno())
            os.close(nowhere)


def guarded(name: str, command: Callable[[], int]) -> int:
    """Runs a command of this name with guarded streams; returns the exit status.

    It is that of a program that a pipe has stopped if nobody reads the output to its end, and 1 if the output cannot be
    written for another reason, which is told.
    """
    output, errors = Guarded(sys.stdout), Guarded(sys.stderr)
    sys.stdout, sys.stderr = output, errors  # type: ignore[assignment]
    try:
        status = command()
        return _failed(name, output) or status
    except SystemExit:  # argparse's, after it has printed
        if status := _failed(name, output):
            raise SystemExit(status) from None
        raise
    except BaseException:
        _failed(name, output)
        raise
    finally:
        sys.stdout, sys.stderr = output.after, errors.after


def _failed(name: str, output: Guarded) -> int:
    """The exit status that the output makes; 0 if all of it was written."""
    output.flush()
    if output.error is None:
        return 0
    output.give_up()
    if isinstance(output.error, BrokenPipeError):
        return 128 + signal.SIGPIPE
    reason = getattr(output.error, "strerror", None) or output.error
    print(f"{name}: the output cannot be written: {reason}", file=sys.stderr)
    return 1


def keep_output() -> None:
    """Keeps the output of the present command for the command alone.

    All else that the process and its children write there from now on goes to the error stream: by print, by the descriptor, in
    threads that go on and when Python ends.
    """
    output, errors = sys.stdout, sys.stderr
    if not isinstance(output, Guarded) or not isinstance(errors, Guarded):
        return
    try:
        if (output.stream.fileno(), errors.stream.fileno()) != (1, 2):
            return
        output.flush()
        own = os.fdopen(
            os.dup(1), "w", encoding=output.stream.encoding, errors=output.stream.errors
        )
        os.dup2(2, 1)
    except (OSError, ValueError, AttributeError):  # a stream that is closed, or no file
        return
    _left.append(own)
    output.stream = own


def is_lost() -> bool:
    """Whether the output of the present command has failed: nobody sees what it prints."""
    return isinstance(sys.stdout, Guarded) and sys.stdout.error is not None


@contextlib.contextmanager
def unguarded(output_to_errors: bool = False) -> Iterator[None]:
    """A block with the streams that the process was started with, for a program that a command runs.

    With ``output_to_errors``, what the program prints goes to the error stream. What it has put in place of a stream ends
    with the block, and takes the place of one that it has closed.
    """
    before = sys.stdout, sys.stderr
    output, errors = (each.stream if isinstance(each, Guarded) else each for each in before)
    given = (errors if output_to_errors else output), errors
    sys.stdout, sys.stderr = given
    try:
        yield
    finally:
        for mine, left in zip(given, (sys.stdout, sys.stderr), strict=True):
            if left is not mine and left is not None:
                _keep(left)
                for each in before:
                    if isinstance(each, Guarded) and each.stream is mine and not _is_open(mine):
                        each.stream = each.after = left
        sys.stdout, sys.stderr = before


def _keep(stream: Any) -> None:
    _left.append(stream)
    with contextlib.suppress(Exception):
        stream.flush()


def _is_open(stream: Any) -> bool:
    try:
        return not stream.closed
    except (ValueError, AttributeError):  # its buffer has been detached, or there is none
        return False
