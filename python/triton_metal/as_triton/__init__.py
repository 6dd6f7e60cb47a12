"""Makes ``import triton`` mean triton_metal.

The folder ``site`` holds a package ``triton`` and the metadata of a distribution of that name. Where it is on Python's
path, ``import triton``, `importlib.metadata` and new processes find them as they find any package. The package's
``__init__`` calls `take_name`, which puts a module in its place whose attributes and submodules are those of
triton_metal: ``triton.language`` and ``triton_metal.language`` are one module object.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

NAME = "triton"
VERSION = "3.9.0+metal"
SITE = Path(__file__).parent / "site"

#: Parts of Triton that are absent, and why.
ABSENT = {
    "triton.experimental": "Gluon programs the layouts and memories of other vendors' GPUs",
    "triton.language.extra.cuda": "it holds functions of NVIDIA's GPUs; use triton.language.extra.libdevice",
    "triton.language.extra.hip": "it holds functions of AMD's GPUs; use triton.language.extra.libdevice",
    "triton.backends.nvidia": "it is NVIDIA's backend",
    "triton.backends.amd": "it is AMD's backend",
    "triton.profiler": "Proton measures NVIDIA's and AMD's GPUs",
    "triton._C": "it is stock Triton's compiled part",
}

_PACKAGE = __name__.partition(".")[0]


class _SameModule(importlib.abc.Loader):
    """Loads ``triton.x`` as the module object of ``triton_metal.x``."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module
        self._spec = module.__spec__

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec  # the import system has put the spec of this name there


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the submodules of ``triton``."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if not name.startswith(f"{NAME}."):
            return None
        for absent, reason in ABSENT.items():
            if name == absent or name.startswith(f"{absent}."):
                raise ModuleNotFoundError(
                    f"triton-metal has no module {name!r}: {reason}", name=name
                )
        own = f"{_PACKAGE}{name.removeprefix(NAME)}"
        try:
            module = importlib.import_module(own)
        except ModuleNotFoundError as error:
            if error.name != own:
                raise
            raise ModuleNotFoundError(f"triton-metal has no module {name!r}", name=name) from None
        return importlib.machinery.ModuleSpec(
            name, _SameModule(module), is_package=hasattr(module, "__path__")
        )


class _Triton(ModuleType):
    """The module ``triton``: triton_metal's attributes, with the version of Triton that it stands for."""

    def __getattr__(self, name: str) -> Any:
        try:
            return getattr(sys.modules[_PACKAGE], name)
        except AttributeError:
            raise AttributeError(f"module 'triton' has no attribute {name!r}") from None

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(sys.modules[_PACKAGE])})


def is_ours(module: ModuleType | None) -> bool:
    """Whether a module ``triton`` is triton_metal under this name."""
    return isinstance(module, _Triton)


def take_name() -> None:
    """Puts triton_metal into `sys.modules` as ``triton``."""
    if is_ours(sys.modules.get(NAME)):
        return
    own = importlib.import_module(_PACKAGE)
    module = _Triton(NAME, own.__doc__)
    spec = importlib.machinery.ModuleSpec(NAME, None, origin=own.__file__, is_package=True)
    module.__spec__ = spec
    module.__file__ = own.__file__
    module.__path__ = []
    module.__package__ = NAME
    vars(module).update({name: getattr(own, name) for name in own.__all__})
    vars(module)["__version__"] = VERSION
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
    sys.modules[NAME] = module


def real_triton() -> str | None:
    """The folder of another package ``triton`` that has been imported."""
    module = sys.modules.get(NAME)
    if module is None or is_ours(module):
        return None
    return os.path.dirname(getattr(module, "__file__", None) or NAME)


def install() -> None:
    """Makes ``import triton`` mean triton_metal in this process, and in the processes that it starts.

    ``triton.__version__`` and `importlib.metadata.version("triton")` are "3.9.0+metal". Raises RuntimeError if another
    Triton has been imported: programs hold references into it.

    >>> import triton_metal
    >>> triton_metal.install()
    >>> import triton, triton.language
    >>> triton.language is triton_metal.language
    True
    """
    if found := real_triton():
        raise RuntimeError(
            f"triton has already been imported from {found}: call triton_metal.install() before anything imports "
            "triton, or start the program with python -m triton_metal PROGRAM.py"
        )
    site = str(SITE)
    if site not in sys.path:
        sys.path.insert(0, site)
        importlib.invalidate_caches()
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if site not in paths:
        own = str(Path(sys.modules[_PACKAGE].__file__ or "").parents[1])
        os.environ["PYTHONPATH"] = os.pathsep.join([site, *filter(None, paths), own])
    take_name()
