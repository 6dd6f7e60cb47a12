"""The conversation: shows a step, runs what is typed, says what it counted and whether it is right."""

from __future__ import annotations

import codeop
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from ..launcher import LaunchRecord
from .pages import Page, Step
from .running import Program, Ran, decides, described, figures, missing, prepare
from .state import State
from .view import PlainView

HELP = """\
  Enter        run the step's code; when it has run, go on
  any Python   run it; an empty line ends a block of several lines
  next, back   the next step, the step before
  list         all steps, and which are done
  goto N       a page or a step, such as `goto 8` or `goto 8.2`
  hint         a hint for the step
  show         the step once more, of a task a solution; Enter then runs that code
  load FILE    run the Python in a file
  edit FILE    write the step's code to a file, unless it exists; edit it; run it
  reset        run the page anew up to this step; `reset all` forgets all progress
  quit         leave; the tutorial remembers the step (Ctrl-D and Ctrl-C leave, too)"""

_COMMANDS = (
    *("next", "back", "list", "goto", "hint", "show", "load", "edit", "reset", "quit", "help"),
)
_ALONE = ("next", "back", "list", "hint", "show", "quit", "help")


class Reader(Protocol):
    """Where lines come from."""

    def read(self, prompt: str) -> str:
        """The next line without its end. Raises EOFError behind the last one."""
        ...

    def more(self) -> bool:
        """Whether more lines are there at once, as when code is pasted."""
        ...


class Session:
    """One run of the tutorial."""

    def __init__(
        self, pages: Sequence[Page], view: PlainView, state: State, reader: Reader
    ) -> None:
        self.pages, self.view, self.state, self.reader = pages, view, state, reader
        self.steps = [step for page in pages for step in page.steps]
        self.program = Program()
        self.reference: tuple[Program, Ran] | None = None
        self.typed = 0
        self.at = 0
        self._begin_step()

    def _begin_step(self) -> None:
        self.done = False  # the step was passed, or its code was run
        self.own = False  # the learner has typed something
        self.shown = False  # Enter takes the page's code
        self.hinted = False
        self.launches: list[LaunchRecord] = []
        self.reference = None

    @property
    def step(self) -> Step:
        """The present step."""
        return self.steps[self.at]

    @property
    def page(self) -> Page:
        """The present page."""
        return next(page for page in self.pages if page.number == self.step.page)

    # The conversation.

    def run(self, start: str = "") -> int:
        """Talks until the learner leaves; returns the exit status."""
        names = [step.name for step in self.steps]
        wanted = start or self.state.step
        self.view.note("The tutorial of triton-metal. `help` lists the commands, `quit` leaves.")
        if not start and self.state.step in names[1:]:
            self.view.note(f"You were at step {self.state.step}; `goto 1` starts anew.")
        try:
            self._open(names.index(wanted) if wanted in names else 0, fresh=True)
            while self._turn():
                pass
        except (EOFError, KeyboardInterrupt):
            print()
            self._farewell()
        except SystemExit:
            self._farewell()
        return 0

    def _turn(self) -> bool:
        """Reads one command or block and acts on it. False ends the session."""
        line = self.reader.read(">>> ")
        words = line.split()
        if not words:
            # Empty lines of pasted code mean nothing.
            return self.reader.more() or self._enter()
        if words[0] in _COMMANDS and self._is_command(words):
            return self._command(words)
        self._typed(self._block(line))
        return True

    @staticmethod
    def _is_command(words: list[str]) -> bool:
        """Whether a line is a command, and not Python that begins with such a name (`next(x)`, `list = 1`)."""
        if words[0] in _ALONE:
            return len(words) == 1
        if words[0] == "reset":
            return len(words) == 1 or words[1:] == ["all"]
        # A path may begin with a slash or a dot, and an expression goes on with an operator alone.
        return len(words) == 1 or (
            words[1][0] not in "=([,:" and len(words[1].strip("+-*/%<>=")) > 0
        )

    def _block(self, line: str) -> str:
        """A whole statement: more lines are read until it is complete, or an empty line ends it."""
        lines = [line]
        while True:
            text = "\n".join(lines)
            try:
                if codeop.compile_command(text, "<typed>", "single") is not None:
                    return text
            except (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError):
                return text
            try:
                lines.append(self.reader.read("... "))
            except EOFError:
                return text
            except KeyboardInterrupt:
                print()
                self.view.note("The block was dropped.")
                return ""

    def _enter(self) -> bool:
        step = self.step
        if self.done or not step.code:
            return self._move(1)
        if step.is_task and not self.shown:
            self.view.note(
                "Type your code; `hint` helps, `show` has a solution, `next` goes on without."
            )
            return True
        if self.own and not self.shown:
            self.view.note(
                "`show` shows the page's code again; Enter then runs it. `next` goes on."
            )
            return True
        absent = missing(step.needs)
        if absent:
            self.view.note(
                f"This step needs {' and '.join(absent)}, which {'are' if absent[1:] else 'is'} not installed. "
                "Enter goes on."
            )
            self.done = True
            return True
        self._run(step.code, step.file, own=False)
        return True

    def _command(self, words: list[str]) -> bool:
        name, rest = words[0], words[1:]
        if name == "quit":
            self._farewell()
            return False
        if name == "next":
            return self._move(1)
        if name == "back":
            return self._move(-1)
        if name == "help":
            print(HELP)
        elif name == "list":
            self._list()
        elif name == "hint":
            self.view.note(
                f"Hint: {self.step.hint}" if self.step.hint else "This step has no hint."
            )
        elif name == "show":
            self._show()
        elif name == "reset":
            self._reset(rest == ["all"])
        elif not rest:
            what = "a page or step" if name == "goto" else "a file"
            self.view.bad(f"`{name}` needs {what}.")
        elif name == "goto":
            self._goto(rest[0])
        else:
            given = " ".join(rest)
            try:
                path = Path(given).expanduser()
            except RuntimeError:
                self.view.bad(f"{given} cannot be read: there is no such user's home folder.")
                return True
            (self._load if name == "load" else self._edit)(path)
        return True

    # Commands.

    def _move(self, by: int) -> bool:
        """Opens the next step or the one before; False behind the last one."""
        to = self.at + by
        if to < 0:
            self.view.note("This is the first step.")
            return True
        if to == len(self.steps):
            self.state.save(self.step.name, passed=self.done or not self.step.code)
            self.view.good(
                "That was the last step. docs/performance.md and docs/ops.md go on from here."
            )
            return False
        same_page = self.steps[to].page == self.step.page
        if by == 1 and same_page:
            self._complete()
        if not self.step.code and by == 1:
            self.state.save(self.step.name, passed=True)
        self._open(to, fresh=not (by == 1 and same_page))
        return True

    def _complete(self) -> None:
        """Runs what was skipped, and adds what own code has not defined: later steps use it."""
        step = self.step
        if not step.code or step.is_task or missing(step.needs):
            return
        if not self.done:
            error = self.program.run(step.code, step.file, counts=not step.uncounted).error
            if error is not None:
                self.view.bad(described(error))
            return
        if self.own and (reference := self._reference()) is not None:
            for name, value in reference[0].variables.items():
                self.program.variables.setdefault(name, value)

    def _open(self, at: int, fresh: bool) -> None:
        """Shows a step. A fresh one gets a program that has run the page's steps before it."""
        new_page = self.steps[at].page != self.step.page or at == 0 or not self.state.step
        self.at = at
        self._begin_step()
        self.state.save(self.step.name)
        if fresh:
            self._prepare()
        step, page = self.step, self.page
        if new_page or step.number == 1:
            self.view.title(f"Page {page.number} of {len(self.pages)}: {page.title}")
            self.view.prose(page.about)
        self.view.title(f"{step.name}  {step.title}")
        self._show_step()

    def _prepare(self) -> None:
        before = [
            step
            for step in self.page.steps[: self.step.number - 1]
            if not (step.is_task or missing(step.needs))
        ]
        if before:
            self.view.note(f"(The steps of page {self.page.number} before this one are run.)")
        try:
            self.program = prepare(before)
        except Exception as error:
            self.program = Program()
            self.view.bad(described(error))

    def _show_step(self) -> None:
        step = self.step
        self.view.prose(step.before)
        if step.code and not step.is_task:
            self.view.code(step.code)
            self.view.note("Enter runs this code. Or type your own.")
        elif step.is_task:
            self.view.note("Type your code: an empty line ends a block. `hint`, `show`, `next`.")
        else:
            self.view.prose(step.after)
            self.view.note("Enter goes on.")

    def _show(self) -> None:
        if not self.step.is_task:
            self._show_step()
        else:
            self.view.code(self.step.code)
            self.view.note("Enter runs this solution.")
        self.shown, self.done = True, False

    def _goto(self, where: str) -> None:
        name = where if "." in where else f"{where}.1"
        for at, step in enumerate(self.steps):
            if step.name == name:
                self._open(at, fresh=True)
                return
        self.view.bad(
            f"There is no step {where!r}: pages are 1 to {len(self.pages)}, steps such as 2.3; `list` has all of them."
        )

    def _list(self) -> None:
        for page in self.pages:
            self.view.note(f"{page.number}. {page.title}")
            for step in page.steps:
                here = ">" if step is self.step else " "
                mark = "x" if step.name in self.state.passed else " "
                print(f"  {here} [{mark}] {step.name}  {step.title}")

    def _reset(self, everything: bool) -> None:
        if everything:
            self.state.clear()
            self._open(0, fresh=True)
            return
        self._begin_step()
        self._prepare()
        self.view.note(f"The variables are those at the beginning of step {self.step.name}.")

    def _load(self, path: Path) -> None:
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            self.view.bad(f"{path} cannot be read: it is no UTF-8 text.")
            return
        except (OSError, ValueError) as error:  # a path with a null byte, say
            reason = getattr(error, "strerror", None) or error
            self.view.bad(f"{path} cannot be read: {reason}.")
            return
        self._run(text, str(path), own=True)

    def _edit(self, path: Path) -> None:
        editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
        if not editor or not sys.stdin.isatty():
            self.view.bad(
                f"`edit` needs a terminal and the environment variable EDITOR; write {path} elsewhere, then `load {path}`."
            )
            return
        try:
            if not path.exists():
                path.write_text("" if self.step.is_task else self.step.code, encoding="utf-8")
            status = subprocess.run([*shlex.split(editor), str(path)], check=False).returncode
        except (OSError, ValueError) as error:
            self.view.bad(f"{path} cannot be edited: {getattr(error, 'strerror', None) or error}.")
            return
        if status:
            self.view.bad(f"{editor} ended with status {status}; {path} was not run.")
            return
        self._load(path)

    def _farewell(self) -> None:
        if self.state.path is None:
            self.view.note(
                f"You were at step {self.step.name}: `goto {self.step.name}` comes back to it."
            )
        else:
            self.view.note(f"Until next time: the tutorial remembers step {self.step.name}.")

    # Running and judging.

    def _typed(self, text: str) -> None:
        if text.strip():
            self.typed += 1
            self._run(f"{text}\n", f"<typed {self.typed}>", own=True)

    def _run(self, code: str, file: str, own: bool) -> None:
        step = self.step
        self.own |= own
        self.shown &= own
        ran = self.program.run(code, file, sys.stdout, echoes=own, counts=not step.uncounted)
        self.launches += ran.launches
        if ran.error is not None:
            self._say_error(ran.error)
            return
        if step.uncounted and "(" in code and not own:
            self.view.note(f"Nothing was counted: {step.uncounted}.")
        held, wrong, pending = self._judge()
        if own and (pending or (wrong and not ran.launches and not decides(code, wrong))):
            # The learner is on the way: a kernel is defined and not launched yet, say.
            self._say_figures(ran.launches)
            return
        if wrong:
            self._say_figures(ran.launches)
            self.view.bad("Not as expected. This does not hold:")
            for check in wrong:
                self.view.bad(f"    {check}")
            self._say_hint()
            return
        if not (own and not held):
            self.done = True
            self.state.save(step.name, passed=True)
        self._say_figures(self.launches if own else ran.launches, compared=own)
        if not own and step.output and not _same(ran.output, step.output):
            self.view.note("The page has another output:")
            self.view.code(step.output)
        self.view.good("Right." if held else "It ran.")
        self.view.prose(step.after)
        self.view.note("Enter goes on.")

    def _judge(self) -> tuple[bool, list[str], bool]:
        """Whether there are checks and all hold, those that do not, and whether one asks for what is not there yet."""
        wrong, pending = [], False
        for check in self.step.checks:
            try:
                if not self.program.holds(check):
                    wrong.append(check)
            except NameError:
                pending = True
        return bool(self.step.checks) and not wrong and not pending, wrong, pending

    def _say_error(self, error: BaseException) -> None:
        if isinstance(error, KeyboardInterrupt):
            self.view.note("Stopped.")
            return
        self.view.bad(described(error))
        self._say_hint()

    def _say_hint(self) -> None:
        """The hint, by itself once a step."""
        if self.step.hint and not self.hinted:
            self.hinted = True
            self.view.note(f"Hint: {self.step.hint}")

    def _reference(self) -> tuple[Program, Ran] | None:
        """The page's own program up to this step, and what the step's code did; None if it cannot run."""
        if self.reference is None:
            before = [
                step
                for step in self.page.steps[: self.step.number - 1]
                if not (step.is_task or missing(step.needs))
            ]
            try:
                program = prepare(before)
            except Exception:
                return None
            step = self.step
            ran = program.run(step.code, step.file, counts=not step.uncounted)
            if ran.error is not None:
                return None
            self.reference = program, ran
        return self.reference

    def _say_figures(self, launches: Sequence[LaunchRecord], compared: bool = False) -> None:
        if not launches:
            return
        rows = figures(launches)
        reference = self._reference() if compared else None
        if reference is None:
            print()
            self.view.table(("counted", ""), [(name, f"{value:,}") for name, value in rows.items()])
            return
        expected = figures(reference[1].launches)
        print()
        self.view.table(
            ("counted", "yours", "the page's"),
            [(name, f"{value:,}", f"{expected[name]:,}") for name, value in rows.items()],
        )
        more = rows["bytes read"] + rows["bytes written"]
        least = expected["bytes read"] + expected["bytes written"]
        if least and more > 1.05 * least:
            self.view.note(f"Yours moves {more / least:.1f} times the bytes of the page's.")


def _same(output: str, expected: str) -> bool:
    return [line.rstrip() for line in output.splitlines()] == expected.splitlines()
