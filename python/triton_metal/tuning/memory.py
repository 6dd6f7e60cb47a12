"""The best configurations that are known, by key."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .config import Config


class Memory(dict[tuple[Any, ...], Config]):
    """A dictionary that says when somebody changes it."""

    def __init__(self, changed: Callable[[], Any]) -> None:
        super().__init__()
        self._changed = changed

    def __setitem__(self, key: tuple[Any, ...], value: Config) -> None:
        super().__setitem__(key, value)
        self._changed()

    def __delitem__(self, key: tuple[Any, ...]) -> None:
        super().__delitem__(key)
        self._changed()

    def clear(self) -> None:
        super().clear()
        self._changed()

    def pop(self, *arguments: Any) -> Any:
        result = super().pop(*arguments)
        self._changed()
        return result

    def popitem(self) -> tuple[tuple[Any, ...], Config]:
        result = super().popitem()
        self._changed()
        return result

    def setdefault(self, *arguments: Any) -> Any:
        if arguments and arguments[0] in self:
            return self[arguments[0]]
        result = super().setdefault(*arguments)
        self._changed()
        return result

    def update(self, *arguments: Any, **more: Any) -> None:
        super().update(*arguments, **more)
        self._changed()

    def __ior__(self, other: Any) -> Memory:  # type: ignore[override,misc]
        self.update(other)
        return self
