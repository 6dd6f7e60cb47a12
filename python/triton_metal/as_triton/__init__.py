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
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from .._native import set_package_name

NAME = "triton"
VERSION = "3.9.0+metal"
SITE = Path(__file__).parent / "site"
#: One file, which importlib.metadata reads: builders of wheels leave out folders of other distributions' metadata.
METADATA = SITE / f"{NAME}-{VERSION}.egg-info"

#: Parts of Triton that are absent, and why.
ABSENT = {
    "triton.experimental": "Gluon programs the layouts and memories of other vendors' GPUs",
    "triton.language.extra.cuda": "it holds functions of NVIDIA's GPUs; use triton.language.extra.libdevice",
    "triton.language.extra.hip": "it holds functions of AMD's GPUs; use triton.language.extra.libdevice",
    "triton.backends.nvidia": "it is NVIDIA's backend",
    "triton.backends.amd": "it is AMD's backend",
    "triton.tools.build_extern": "it makes bindings of LLVM bitcode, which Metal does not link",
    "triton.tools.extra": "it is for NVIDIA's tools",
    "triton.tools.gsan": "it checks NVIDIA's GPUs; see triton_metal.launch_options(check=...)",
    "triton.tools.triton_to_gluon_translator": "there is no Gluon for Metal",
    "triton.profiler": "Proton measures NVIDIA's and AMD's GPUs",
}

_PACKAGE = __name__.partition(".")[0]


class _SameModule(importlib.abc.InspectLoader):
    """Loads ``triton.x`` as the module object of ``triton_metal.x``, and shows and runs (``-m``) its text."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module
        self._spec = module.__spec__

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec  # the import system has put the spec of this name there

    def is_package(self, fullname: str) -> bool:
        return hasattr(self._module, "__path__")

    def get_source(self, fullname: str) -> str | None:
        return self._own_loader().get_source(self._module.__name__)

    def get_code(self, fullname: str) -> CodeType | None:
        return self._own_loader().get_code(self._module.__name__)

    def get_filename(self, fullname: str) -> str:
        if self._spec is None or self._spec.origin is None:
            raise ImportError(f"module {fullname!r} has no file", name=fullname)
        return self._spec.origin

    def _own_loader(self) -> importlib.abc.InspectLoader:
        loader = self._spec.loader if self._spec is not None else None
        if not isinstance(loader, importlib.abc.InspectLoader):
            raise ImportError(
                f"module {self._module.__name__!r} has no text", name=self._module.__name__
            )
        return loader


class _OwnName(importlib.abc.Loader):
    """Loads ``triton`` anew where a program has taken it out of `sys.modules`."""

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return _make()

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = _spec()


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the submodules of ``triton``."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name == NAME:
            # Also where the path has another Triton in front of this one, such as the folder of its source.
            return importlib.machinery.ModuleSpec(
                name, _OwnName(), origin=sys.modules[_PACKAGE].__file__, is_package=True
            )
        if name in _EXTENDED:
            return _spec_of_extended(name, path)
        if not name.startswith(f"{NAME}."):
            return None
        for absent, reason in ABSENT.items():
            if name == absent or name.startswith(f"{absent}."):
                if _is_asked_only():
                    return None
                raise ModuleNotFoundError(
                    f"triton-metal has no module {name!r}: {reason}", name=name
                )
        own = f"{_PACKAGE}{name.removeprefix(NAME)}"
        try:
            module = importlib.import_module(own)
        except ModuleNotFoundError as error:
            if error.name != own:
                raise
            if _is_asked_only():
                return None
            raise ModuleNotFoundError(f"triton-metal has no module {name!r}", name=name) from None
        spec = importlib.machinery.ModuleSpec(
            name,
            _SameModule(module),
            origin=getattr(module, "__file__", None),
            is_package=hasattr(module, "__path__"),
        )
        spec.has_location = spec.origin is not None
        return spec


def _register_with_inductor() -> None:
    """Keeps the kernels that Inductor generates for CPU tensors within what Metal binds."""
    try:
        importlib.import_module(f"{_PACKAGE}.inductor").register("cpu")
    except (ImportError, AttributeError) as error:
        warnings.warn(
            f"this version of PyTorch's Inductor is not known ({error}): kernels that it generates may have more "
            "arrays than Metal binds",
            stacklevel=2,
        )


def _extend_analysis() -> None:
    """Lets PyTorch's analysis of a program's kernels see all that they write."""
    try:
        analysis = sys.modules[_ANALYSIS]
        importlib.import_module(f"{_PACKAGE}.accesses").extend(analysis)
    except AttributeError as error:
        warnings.warn(
            f"this version of PyTorch's analysis of kernels is not known ({error}): compiled graphs may miss what "
            "kernels write by jumps and by tl.atomic_store or a descriptor's atomics and scatter",
            stacklevel=2,
        )


_ANALYSIS = "torch._higher_order_ops.triton_kernel_wrap"

#: Modules of PyTorch, and what is called after they have been imported.
_EXTENDED = {"torch._inductor.graph": _register_with_inductor, _ANALYSIS: _extend_analysis}


class _ThenCall(importlib.abc.Loader):
    """Loads a module as this loader does, and calls a function."""

    def __init__(self, loader: importlib.abc.Loader, then: Callable[[], None]) -> None:
        self._loader = loader
        self._then = then

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        self._then()


def _spec_of_extended(
    name: str, path: Sequence[str] | None
) -> importlib.machinery.ModuleSpec | None:
    spec = importlib.machinery.PathFinder.find_spec(name, path)
    if spec is not None and spec.loader is not None:
        spec.loader = _ThenCall(spec.loader, _EXTENDED[name])
    return spec


def _is_asked_only() -> bool:
    """Whether `importlib.util.find_spec` asks for a module, which is to say None, rather than an import, which fails."""
    frame = sys._getframe(2)
    while frame is not None and frame.f_globals.get("__name__") == "importlib._bootstrap":
        frame = frame.f_back
    return frame is not None and frame.f_globals.get("__name__") == "importlib.util"


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
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
    sys.modules[NAME] = _make()
    # What is written into programs names the package that they import: "triton.language.float32".
    set_package_name(NAME)
    # Programs look for this module in `sys.modules` before they have imported it by name.
    importlib.import_module(f"{NAME}.runtime.driver")
    for extended, then in _EXTENDED.items():
        if extended in sys.modules:
            then()


def _make() -> ModuleType:
    own = importlib.import_module(_PACKAGE)
    module = _Triton(NAME, own.__doc__)
    module.__spec__ = _spec()
    module.__loader__ = None
    module.__file__ = own.__file__
    module.__path__ = list(own.__path__)
    module.__package__ = NAME
    vars(module).update({name: getattr(own, name) for name in own.__all__})
    vars(module)["__version__"] = VERSION
    return module


def _spec() -> importlib.machinery.ModuleSpec:
    own = importlib.import_module(_PACKAGE)
    spec = importlib.machinery.ModuleSpec(NAME, _SameModule(own), origin=own.__file__)
    spec.submodule_search_locations = list(own.__path__)
    spec.has_location = True
    return spec


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
