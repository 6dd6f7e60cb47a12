"""``python -m triton_metal PROGRAM.py``: runs a program as Python does, with ``import triton`` meaning triton_metal.

The program has Python's own `sys.argv`, `sys.path[0]`, module ``__main__`` and exit status, and a traceback starts in the
program. Its child processes find the same ``triton``, whether it forks, spawns or starts Python anew.
"""

from __future__ import annotations

import io
import os
import runpy
import sys
import zipfile
from collections.abc import Callable, Sequence
from functools import partial
from importlib.machinery import SourceFileLoader, SourcelessFileLoader
from types import CodeType, ModuleType, TracebackType
from typing import Any

from . import SITE, install
from .streams import unguarded

_USAGE = "python -m triton_metal"
# What ran as __main__ before the program stays alive: its functions are still running.
_before: list[ModuleType] = []


class NoProgram(SystemExit):
    """There is no such program, or it cannot be started. The reason has been told, or is the code as with SystemExit."""


def run_for_command(arguments: Sequence[str], output_to_errors: bool = False) -> int:
    """Runs a program as `run` does, for a command that goes on after it; returns the program's exit status.

    The program has the streams that the process was started with, and with ``output_to_errors`` prints to the error stream.
    Raises NoProgram, and what the program raises.
    """
    try:
        with unguarded(output_to_errors):
            run(arguments, names_commands=False)
    except NoProgram:
        raise
    except SystemExit as end:
        return exit_status(end)
    return 0


def exit_status(end: SystemExit) -> int:
    """The status that Python ends with, after it has printed what a program has ended with instead of a number."""
    if end.code is None or isinstance(end.code, int):
        return end.code or 0
    if sys.stderr is not None:  # print takes the output for an error stream that is closed
        print(end.code, file=sys.stderr)
    return 1


def run(arguments: Sequence[str], names_commands: bool = True) -> None:
    """Runs ``PROGRAM [args]``, ``-m MODULE [args]``, ``-c TEXT [args]`` or ``- [args]`` (the standard input).

    Returns when the program has ended by itself. What it raises passes through, SystemExit as well; Python then
    reports an exception with the program's frames alone. Raises NoProgram with status 2 where Python would find
    no program, and with status 1 where another Triton has been imported already. ``names_commands`` says whether the name
    of an absent program may be a misspelt command.
    """
    kind, rest = arguments[0], list(arguments[1:])
    if kind in ("-m", "-c") and not rest:
        _fail(2, f"argument expected for the {kind} option")
    try:
        install()
    except RuntimeError as error:
        _fail(1, str(error))
    if kind == "-m":
        # Python resolves the module before sys.argv[0] becomes its file.
        _start([kind, *rest[1:]], os.getcwd())
        _call(lambda: _run_module(rest[0]))
    elif kind == "-c":
        main = _start([kind, *rest[1:]], "")
        _execute(main, lambda: compile(rest[0], "<string>", "exec", dont_inherit=True))
    elif kind == "-":
        main = _start([kind, *rest], "")
        text = sys.stdin.read() if sys.stdin is not None else ""
        _execute(main, lambda: compile(text, "<stdin>", "exec", dont_inherit=True))
    else:
        _run_path(kind, rest, names_commands)


def _run_path(path: str, rest: list[str], names_commands: bool) -> None:
    if os.path.isdir(path) or zipfile.is_zipfile(path):
        # Its __main__.py is the program.
        _start([path, *rest], path)
        _call(lambda: _run_module("__main__", False))
        return
    full = os.path.abspath(path)
    try:
        with io.open_code(full) as file:
            data = file.read()
    except OSError as error:
        commands = (
            ""
            if os.path.dirname(path) or not names_commands
            else "; the commands are cost, doctor, report, shim, tune-ops and tutorial"
        )
        _fail(2, f"can't open file {full!r}: [Errno {error.errno}] {error.strerror}{commands}")
    main = _start([path, *rest], os.path.dirname(os.path.realpath(path)))
    if path.endswith(".pyc"):
        loader: Any = SourcelessFileLoader("__main__", full)
        code = partial(loader.get_code, "__main__")
    else:
        loader = SourceFileLoader("__main__", full)
        code = partial(compile, data, full, "exec", dont_inherit=True)
    vars(main).update(__file__=full, __cached__=None, __loader__=loader)
    _execute(main, code)


def _fail(status: int, message: str) -> Any:
    if sys.stderr is not None:
        print(f"{_USAGE}: {message}", file=sys.stderr)
    raise NoProgram(status)


def _is_safe_path() -> bool:
    """Whether Python was asked to leave the program's folder off the path (-P, -I, PYTHONSAFEPATH; new in 3.11)."""
    return getattr(sys.flags, "safe_path", False) or bool(sys.flags.isolated)


def _start(arguments: list[str], folder: str) -> ModuleType:
    """Sets what a program sees of its start; returns its module ``__main__``. `folder` becomes `sys.path[0]`."""
    sys.argv[:] = arguments
    if not _is_safe_path():
        # `python -m` has put the current folder at the front, and install may have put its own before that.
        place = 1 if sys.path[0] == str(SITE) else 0
        sys.path[place] = folder
        sys.path[0], sys.path[place] = sys.path[place], sys.path[0]
    main = ModuleType("__main__")
    vars(main)["__builtins__"] = sys.modules["builtins"]
    _before.append(sys.modules["__main__"])
    sys.modules["__main__"] = main
    return main


def _execute(main: ModuleType, code: Callable[[], CodeType | None]) -> None:
    """Runs a program's code. What is wrong with its text is told as the program's."""
    _call(lambda: exec(code() or "", vars(main)))


def _run_module(*arguments: Any) -> None:
    try:
        runpy._run_module_as_main(*arguments)  # type: ignore[attr-defined]
    except SystemExit as end:
        traceback = end.__traceback__
        while traceback is not None and traceback.tb_next is not None:
            traceback = traceback.tb_next
        if traceback is not None and traceback.tb_frame.f_globals.get("__name__") == "runpy":
            raise NoProgram(end.code) from None  # runpy itself ends so where it finds no module
        raise


def _call(program: Callable[[], object]) -> None:
    try:
        program()
    except SystemExit:
        raise
    except BaseException:
        _hide_own_frames()
        raise


def _hide_own_frames() -> None:
    """Lets an exception that ends the process be shown as if Python had started the program."""
    shown = sys.excepthook

    def hook(
        kind: type[BaseException], error: BaseException, traceback: TracebackType | None
    ) -> None:
        traceback = _of_program(traceback)
        shown(kind, error.with_traceback(traceback), traceback)

    sys.excepthook = hook


def _of_program(traceback: TracebackType | None) -> TracebackType | None:
    """The frames of the program: without the command's that runs it, this module's, and those of Python's own `runpy`.

    An error that has not come through this module keeps all.
    """
    inner = traceback
    while inner is not None and inner.tb_frame.f_code.co_filename != __file__:
        inner = inner.tb_next
    if inner is None:
        return traceback
    while inner is not None and _is_own(inner):
        inner = inner.tb_next
    return inner


def _is_own(traceback: TracebackType) -> bool:
    """Whether a frame belongs to this way of starting a program, or to Python's own `runpy`."""
    name = traceback.tb_frame.f_globals.get("__name__")
    code = traceback.tb_frame.f_code.co_filename
    return name == "runpy" or code == __file__ or "<frozen runpy>" in code
