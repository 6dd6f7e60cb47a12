"""Compiles native modules, for programs that bring their own."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

from .. import knobs
from .cache import get_cache_manager

_SUFFIX = sysconfig.get_config_var("EXT_SUFFIX") or ".so"


def platform_key() -> str:
    """What a native module is compiled for."""
    return ",".join((platform.machine(), platform.system(), *platform.architecture()))


def _compiler(language: str) -> str:
    named = os.environ.get("CXX") if language == "c++" else knobs.build.cc
    for name in (named, *(("c++", "clang++", "g++") if language == "c++" else ("cc", "clang", "gcc"))):
        if name and (found := shutil.which(name)):
            return found
    raise RuntimeError(f"there is no compiler for {language}: set the environment variable CC or CXX")


def _build(
    name: str, src: str, srcdir: str, library_dirs: list[str], include_dirs: list[str], libraries: list[str],
    ccflags: list[str] | None = None, language: str = "c",
) -> str:  # fmt: skip
    """Compiles the file ``src`` to a module in ``srcdir``. Returns its path."""
    if knobs.build.impl is not None:
        return knobs.build.impl(name, src, srcdir, library_dirs, include_dirs, libraries)
    made = os.path.join(srcdir, name + _SUFFIX)
    folders = [sysconfig.get_path("include"), srcdir, *include_dirs]
    undefined = ["-undefined", "dynamic_lookup"] if sys.platform == "darwin" else []
    command = [
        _compiler(language), src, "-O3", "-shared", "-fPIC", "-Wno-psabi", "-o", made, *undefined,
        *(f"-l{library}" for library in libraries), *(f"-L{folder}" for folder in library_dirs),
        *(f"-I{folder}" for folder in folders), *(ccflags or ()),
    ]  # fmt: skip
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return made


def _load_module_from_path(name: str, path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise RuntimeError(f"the module {name} cannot be loaded from {path}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _compile_so(
    source: bytes, name: str, suffix: str, library_dirs: Any, include_dirs: Any, libraries: Any, ccflags: Any
) -> str:  # fmt: skip
    """Compiles a source, once for each content and each set of flags. Returns the module's path."""
    digest = hashlib.sha256(source)
    digest.update(repr((platform_key(), library_dirs, include_dirs, libraries, ccflags)).encode())
    manager = get_cache_manager(digest.hexdigest())
    known = manager.get_file(name + _SUFFIX)
    if known is not None:
        with contextlib.suppress(Exception):
            _load_module_from_path(name, known)
            return known
    language = "c++" if suffix in (".cpp", ".cc", ".cxx") else "c"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}{suffix}"
        path.write_bytes(source)
        made = _build(
            name, str(path), folder, library_dirs or [], include_dirs or [], libraries or [], ccflags, language
        )  # fmt: skip
        return manager.put(Path(made).read_bytes(), name + _SUFFIX)


def compile_so_from_src(
    src: str, name: str, library_dirs: list[str] | None = None, include_dirs: list[str] | None = None,
    libraries: list[str] | None = None, ccflags: list[str] | None = None, language: str = "c",
) -> str:  # fmt: skip
    """The path of the native module that a text in C or C++ makes."""
    suffix = ".cpp" if language == "c++" else ".c"
    return _compile_so(src.encode(), name, suffix, library_dirs, include_dirs, libraries, ccflags)


def compile_so_from_file(
    src_path: str, name: str, library_dirs: list[str] | None = None, include_dirs: list[str] | None = None,
    libraries: list[str] | None = None, ccflags: list[str] | None = None,
) -> str:  # fmt: skip
    """The path of the native module that a file makes."""
    path = Path(src_path)
    return _compile_so(
        path.read_bytes(), name, path.suffix, library_dirs, include_dirs, libraries, ccflags
    )


@functools.wraps(compile_so_from_src, assigned=("__annotations__",), updated=())
def compile_module_from_src(src: str, name: str, *args: Any, **kwargs: Any) -> ModuleType:
    """The native module that a text in C or C++ makes."""
    return _load_module_from_path(name, compile_so_from_src(src, name, *args, **kwargs))


@functools.wraps(compile_so_from_file, assigned=("__annotations__",), updated=())
def compile_module_from_file(src_path: str, name: str, *args: Any, **kwargs: Any) -> ModuleType:
    """The native module that a file makes."""
    return _load_module_from_path(name, compile_so_from_file(src_path, name, *args, **kwargs))
