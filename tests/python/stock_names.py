"""Prints the public names of modules and classes of stock Triton, as JSON. It runs in a process of its own."""

import importlib
import inspect
import json
import sys
from types import ModuleType
from typing import Any


def home(value: Any) -> str:
    """The module that a value was defined in, or ""."""
    return getattr(value, "__module__", None) or ""


def names_of(module: ModuleType) -> list[str]:
    """The public names of a module that are Triton's own, without modules and what it imports from elsewhere."""
    listed = set(getattr(module, "__all__", ()))
    for name, value in vars(module).items():
        if name.startswith("_") or inspect.ismodule(value):
            continue
        is_foreign = callable(value) and home(value) and not home(value).startswith("triton")
        if not is_foreign and home(value) != "__future__":
            listed.add(name)
    return sorted(listed)


def members_of(cls: type) -> list[str]:
    """The public attributes of a class."""
    return sorted(name for name in dir(cls) if not name.startswith("_"))


def main() -> None:
    """Reads "module" and "module:class" from the command line."""
    found = {}
    for name in sys.argv[1:]:
        module, _, cls = name.partition(":")
        loaded = importlib.import_module(module)
        found[name] = members_of(getattr(loaded, cls)) if cls else names_of(loaded)
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
