"""Upstream's tests under triton_metal's own front end: ``import triton`` is triton_metal, and no other Triton is there.

The helpers that Triton keeps for its tests inside its package are read from the checkout, like the tests themselves;
`_filecheck`, which calls stock Triton's compiled part, is filecheck.py here.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

#: Modules of a checkout's python/triton that belong to its tests.
HELPERS = {"triton._internal_testing": "_internal_testing.py", "triton.tools.mxfp": "tools/mxfp.py"}
#: Those that are here.
OWN = {"triton._filecheck": "filecheck.py"}


class _Helpers(importlib.abc.MetaPathFinder):
    """Finds the test helpers of a checkout as modules of ``triton``."""

    def __init__(self, checkout: Path) -> None:
        self._folder = checkout / "python" / "triton"

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name in OWN:
            return importlib.util.spec_from_file_location(name, Path(__file__).parent / OWN[name])
        file = self._folder / HELPERS.get(name, "")
        if name not in HELPERS or not file.exists():
            return None
        return importlib.util.spec_from_file_location(name, file)


class _Hidden(importlib.abc.MetaPathFinder):
    """Refuses modules of an installed Triton under any name."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        for folder in path or ():
            if foreign(folder):
                raise ModuleNotFoundError(
                    f"{name} is part of an installed Triton, which is hidden here", name=name
                )
        return None


def foreign(file: str | None) -> bool:
    """Whether a file belongs to an installed Triton."""
    parts = Path(file or "").parts
    return "site-packages" in parts and "triton" in parts


def install(checkout: Path) -> None:
    """Makes ``import triton`` mean triton_metal, with the test helpers of a checkout."""
    import triton_metal

    triton_metal.install()
    sys.meta_path[:0] = [_Helpers(checkout), _Hidden()]


def loaded_foreign() -> list[str]:
    """The modules of an installed Triton that have been imported; there must be none."""
    return sorted(
        name
        for name, module in list(sys.modules.items())
        if foreign(getattr(module, "__file__", None))
    )


def observe(observed: Any) -> None:
    """Counts what is compiled and launched. ``observed()`` is the record of the running test."""
    import time

    from triton_metal import errors, launcher

    compile_arguments = launcher.Launcher.compile

    def observed_compile(self: Any, *arguments: Any, **options: Any) -> Any:
        record = observed()
        start = time.perf_counter()
        try:
            compiled = compile_arguments(self, *arguments, **options)
        except Exception as error:
            record.refused.append(getattr(error, "error_message", None) or str(error))
            raise
        record.compiled += 1
        record.milliseconds.append((time.perf_counter() - start) * 1e3)
        record.largest = max(record.largest, len(compiled.asm.get("metal", "")))
        return compiled

    launcher.Launcher.compile = observed_compile
    create = launcher.Launcher.__init__

    def observed_init(self: Any, *arguments: Any, **options: Any) -> None:
        create(self, *arguments, **options)
        at = self.at

        def counted_at(grid: Any) -> Any:
            launch = at(grid)

            def counted(*args: Any, **kwargs: Any) -> Any:
                record = observed()
                try:
                    result = launch(*args, **kwargs)
                except errors.DeviceError as error:
                    record.launched += 1
                    record.failed.append(str(error))
                    raise
                record.launched += 1
                return result

            return counted

        self.at = counted_at

    launcher.Launcher.__init__ = observed_init


assert os.environ.get("TRITON_INTERPRET", "0") != "1", "the tests compile their kernels"
