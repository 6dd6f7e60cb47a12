"""``python -m triton_metal shim``: a distribution named triton, whose modules are triton_metal's.

Packages that depend on ``triton`` install and run with it, where no Triton can be installed. ``shim uninstall`` or
``pip uninstall triton`` takes it away. It refuses where another Triton is.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import hashlib
import importlib.metadata
import importlib.util
import os
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path, PurePosixPath

from . import METADATA, NAME, SITE, VERSION

#: What the file INSTALLER of the distribution says: whose it is.
INSTALLER = "triton_metal"
_WHEEL = "Wheel-Version: 1.0\nGenerator: triton_metal\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


class ShimError(Exception):
    """The environment cannot take the distribution, or it is not triton-metal's to remove."""


@dataclass(frozen=True)
class Found:
    """A Triton in an environment: the folder of its metadata or of its package, and whether it is the shim."""

    place: Path
    version: str
    ours: bool


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    actions.add_parser("install", help="put the distribution into this environment")
    actions.add_parser("uninstall", help="take it away")
    actions.add_parser("status", help="say what is there; the exit status is 0 if the shim is")


def main(options: argparse.Namespace) -> int:
    """Runs the command; returns the exit status."""
    try:
        if options.action == "status":
            return _status()
        print(install() if options.action == "install" else uninstall())
    except ShimError as error:
        print(f"shim: {error}", file=sys.stderr)
        return 1
    return 0


def site_packages() -> Path:
    """The folder that this environment's packages of pure Python are in."""
    return Path(sysconfig.get_path("purelib"))


def find() -> Found | None:
    """The Triton that this environment's programs import, with triton_metal's own folder left out."""
    paths = _paths()
    for entry in importlib.metadata.distributions(name=NAME, path=paths):
        place = _place(entry)
        return Found(place, entry.version, _is_ours(place))
    spec = _find_package(paths)
    if spec is None or spec.origin is None:
        return None
    return Found(Path(spec.origin).parent, "of an unknown version", False)


def install() -> str:
    """Puts the distribution into this environment; returns what was done.

    Nothing is changed where it is there already. An older one is replaced. Raises ShimError where another Triton is
    installed, or the environment cannot be written; there is no half of a distribution then.
    """
    target = site_packages()
    found = find()
    if found is not None and not found.ours:
        raise ShimError(
            f"a Triton is installed already ({found.version}, {found.place}). Programs can run beside it with "
            "python -m triton_metal PROGRAM.py; to replace it, remove it first (pip uninstall triton)"
        )
    files = _files()
    if found is not None and found.place.parent == target and _is_same(target, files):
        return f"triton {VERSION} is installed already, in {target}"
    _check_free(target, found)
    try:
        work = Path(tempfile.mkdtemp(prefix=".triton_metal-shim-", dir=target))
    except OSError as error:
        raise ShimError(_cannot_write(target, error)) from None
    try:
        for name, data in files.items():
            path = work / "new" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        if found is not None and found.place.parent == target:
            with _taken_away(found.place, work / "old"):
                _move_in(work / "new", target)
        else:
            _move_in(work / "new", target)
    except OSError as error:
        raise ShimError(_cannot_write(target, error)) from None
    finally:
        shutil.rmtree(work, ignore_errors=True)
    how = "installed" if found is None else f"replaced triton {found.version} by"
    return (
        f"{how} triton {VERSION} in {target}: `import triton` is triton_metal in this environment"
    )


def uninstall() -> str:
    """Takes the distribution away; returns what was done.

    Only files that it brought go, and the folders that are empty then. Raises ShimError where the Triton in the
    environment is another, or the files cannot be removed; they all stay then.
    """
    target = site_packages()
    found = find()
    if found is None:
        return f"there is no triton in {target}"
    if not found.ours:
        raise ShimError(
            f"the Triton in {found.place} ({found.version}) is not triton-metal's: pip removes it"
        )
    target = found.place.parent
    try:
        work = Path(tempfile.mkdtemp(prefix=".triton_metal-shim-", dir=target))
    except OSError as error:
        raise ShimError(_cannot_write(target, error)) from None
    try:
        with _taken_away(found.place, work):
            pass
    except OSError as error:
        raise ShimError(_cannot_write(target, error)) from None
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return f"removed triton {found.version} from {target}"


def _status() -> int:
    found = find()
    if found is None:
        print(f"no triton is installed in {site_packages()}; python -m triton_metal shim install")
    elif not found.ours:
        print(f"a Triton of its own is installed: {found.version}, {found.place}")
    else:
        old = "" if found.version == VERSION else f" (this triton-metal has {VERSION})"
        print(f"triton {found.version}{old} is triton_metal, in {found.place.parent}")
    return 0 if found is not None and found.ours else 1


def _paths() -> list[str]:
    """Python's path as a program of this environment has it, without the folder where ``-m`` was typed."""
    paths = sys.path if getattr(sys.flags, "safe_path", False) else sys.path[1:]
    return [path for path in paths if path and Path(path) != SITE]


def _find_package(paths: list[str]) -> ModuleSpec | None:
    """A package ``triton`` on a path, or one that a finder of an editable installation knows."""
    for finder in sys.meta_path:
        if finder is PathFinder:
            spec = PathFinder.find_spec(NAME, paths)
        elif type(finder).__module__.partition(".")[0] == __name__.partition(".")[0]:
            continue
        else:
            spec = finder.find_spec(NAME, None) if hasattr(finder, "find_spec") else None
        # A folder without __init__.py is not a package that anyone installed.
        if spec is not None and spec.origin is not None:
            return spec
    return None


def _place(entry: importlib.metadata.Distribution) -> Path:
    """The folder of a distribution's metadata."""
    path = getattr(entry, "_path", None)
    return Path(str(path)) if path is not None else Path(str(entry.locate_file("")))


def _is_ours(place: Path) -> bool:
    with contextlib.suppress(OSError):
        return (place / "INSTALLER").read_text(encoding="utf-8").strip() == INSTALLER
    return False


def _files() -> dict[str, bytes]:
    """The distribution's files, by their names below site-packages."""
    result = {
        path.relative_to(SITE).as_posix(): path.read_bytes() for path in sorted(SITE.rglob("*.py"))
    }
    metadata = f"{NAME}-{VERSION}.dist-info"
    result[f"{metadata}/METADATA"] = METADATA.read_bytes()
    result[f"{metadata}/INSTALLER"] = f"{INSTALLER}\n".encode()
    result[f"{metadata}/WHEEL"] = _WHEEL.encode()
    result[f"{metadata}/top_level.txt"] = f"{NAME}\n".encode()
    lines = [f"{name},{_digest(data)},{len(data)}" for name, data in sorted(result.items())]
    record = f"{metadata}/RECORD"
    result[record] = "\n".join([*lines, f"{record},,", ""]).encode()
    return result


def _digest(data: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"sha256={digest}"


def _is_same(target: Path, files: dict[str, bytes]) -> bool:
    try:
        return all((target / name).read_bytes() == data for name, data in files.items())
    except OSError:
        return False


def _check_free(target: Path, found: Found | None) -> None:
    """Refuses an environment that is not the user's own, and a folder in the way."""
    marker = Path(sysconfig.get_path("stdlib")) / "EXTERNALLY-MANAGED"
    if sys.prefix == sys.base_prefix and marker.exists():
        raise ShimError(
            f"this Python's packages belong to the system ({marker}): make an environment of your own "
            "(python -m venv DIRECTORY) with triton-metal in it"
        )
    brought = set() if found is None else {target / name for name in _recorded(found.place)}
    folder = target / NAME
    if folder.exists() and folder / "__init__.py" not in brought:
        raise ShimError(
            f"{folder} is in the way, and nothing says which package it is from: remove it first"
        )


def _recorded(metadata: Path) -> list[str]:
    """The files that a distribution says are its own, with the bytecode that Python has made from them."""
    try:
        lines = (metadata / "RECORD").read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise ShimError(
            f"{metadata} does not tell which files it brought ({error.strerror}): remove it and "
            f"{metadata.parent / NAME} by hand"
        ) from None
    names = [line.split(",")[0] for line in lines if line]
    result = []
    for name in names:
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts:
            raise ShimError(f"{metadata / 'RECORD'} names a file outside of its folder: {name!r}")
        result.append(name)
        if path.suffix == ".py":
            caches = metadata.parent / path.parent / "__pycache__"
            result += [
                file.relative_to(metadata.parent).as_posix()
                for file in caches.glob(f"{path.stem}.*.pyc")
            ]
    return list(dict.fromkeys(result))


@contextlib.contextmanager
def _taken_away(metadata: Path, aside: Path) -> Iterator[None]:
    """A distribution's files are aside in the block, and back in their places if the block fails."""
    target = metadata.parent
    moved: list[str] = []
    try:
        for name in _recorded(metadata):
            if (target / name).exists():
                (aside / name).parent.mkdir(parents=True, exist_ok=True)
                os.rename(target / name, aside / name)
                moved.append(name)
        for folder in _folders(moved):
            with contextlib.suppress(OSError):  # something of another's is in it
                (target / folder).rmdir()
        yield
    except BaseException:
        for name in moved:
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            os.rename(aside / name, target / name)
        raise


def _folders(names: list[str]) -> list[str]:
    """The folders of files, the deepest first."""
    folders = {
        str(folder) for name in names for folder in PurePosixPath(name).parents if folder.name
    }
    return sorted(folders, key=lambda folder: -len(PurePosixPath(folder).parts))


def _move_in(new: Path, target: Path) -> None:
    """Moves whole folders into place: all of them, or none."""
    moved: list[Path] = []
    try:
        # The package comes before the metadata that promises it.
        for path in sorted(new.iterdir(), key=lambda path: path.suffix == ".dist-info"):
            place = target / path.name
            if place.exists():
                # What another has left in an older one's folder stays.
                for file in sorted(path.rglob("*")):
                    if file.is_file():
                        end = place / file.relative_to(path)
                        end.parent.mkdir(parents=True, exist_ok=True)
                        os.rename(file, end)
                        moved.append(end)
            else:
                os.rename(path, place)
                moved.append(place)
    except BaseException:
        for place in moved:
            if place.is_dir():
                shutil.rmtree(place, ignore_errors=True)
            else:
                place.unlink(missing_ok=True)
        raise


def _cannot_write(target: Path, error: OSError) -> str:
    reason = (error.strerror or str(error)).lower()
    return (
        f"cannot write to {target} ({reason}); nothing was changed. Make an environment of your own "
        "(python -m venv DIRECTORY) with triton-metal in it"
    )
