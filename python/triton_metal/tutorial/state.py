"""Where a learner was: a small file in the user's state folder."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .. import files

_VERSION = 1


def default_path() -> Path:
    """The file of this user."""
    from platformdirs import user_state_path

    return files.user_folder(user_state_path) / "tutorial.json"


class State:
    """The step that a learner is at, and the steps that were passed.

    A damaged file is set aside under another name, and one that cannot be read or written is reported once; the tutorial goes on
    without it.
    """

    def __init__(self, path: Path | None, warn: Callable[[str], None]) -> None:
        self.path = path
        self.step = ""
        self.passed: list[str] = []
        self._warn = warn
        self._load()

    def _load(self) -> None:
        if self.path is None:
            return
        try:
            content = json.loads(files.read(self.path))
            self.step, self.passed = _checked(content)
        except FileNotFoundError:
            pass
        except OSError as error:
            self._give_up("read", error)
        except (ValueError, RecursionError) as error:
            self._set_aside(str(error))

    def _set_aside(self, problem: str) -> None:
        assert self.path is not None
        aside = self.path.with_name(f"{self.path.name}.damaged")
        count = 1
        while aside.exists():
            count += 1
            aside = self.path.with_name(f"{self.path.name}.damaged-{count}")
        try:
            self.path.rename(aside)
        except OSError as error:
            self._give_up("read", error)
            return
        self._warn(
            f"The file that remembers your place is damaged ({problem}). It was renamed to {aside}; "
            "the tutorial starts from the beginning."
        )

    def _give_up(self, what: str, error: OSError) -> None:
        reason = error.strerror or str(error)
        self._warn(
            f"{self.path} cannot be {what} ({reason}): the tutorial works, but does not remember your place. "
            "`--state FILE` names another file."
        )
        self.path = None

    def save(self, step: str, passed: bool = False) -> None:
        """Remembers a step as the present one, and whether it was passed."""
        self.step = step
        if passed and step not in self.passed:
            self.passed.append(step)
        self._write()

    def clear(self) -> None:
        """Forgets everything."""
        self.step, self.passed = "", []
        self._write()

    def _write(self) -> None:
        if self.path is None:
            return
        content = {"version": _VERSION, "step": self.step, "passed": self.passed}
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            files.write(self.path, f"{json.dumps(content)}\n".encode())
        except OSError as error:
            self._give_up("written", error)


def _checked(content: Any) -> tuple[str, list[str]]:
    """The fields of a file. Raises ValueError if it is no file of ours."""
    if not isinstance(content, dict) or content.get("version") != _VERSION:
        raise ValueError(f"its version is not {_VERSION}")
    step, passed = content.get("step"), content.get("passed")
    if not isinstance(step, str):
        raise ValueError("`step` is no text")
    if not isinstance(passed, list) or not all(isinstance(name, str) for name in passed):
        raise ValueError("`passed` is no list of texts")
    return step, passed
