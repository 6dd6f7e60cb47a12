"""Files that belong to a key: what programs keep beside their kernels.

The compiler's own cache is `triton_metal.cache`; its directory is ``knobs.cache.dir`` if that is set.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import os
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from .. import files, knobs
from ..cache import build_id


class CacheManager(ABC):
    """The files of one key."""

    def __init__(self, key: str, override: bool = False, dump: bool = False) -> None:
        self.key = key

    @abstractmethod
    def get_file(self, filename: str) -> str | None:
        """The path of a file; None if there is none."""

    @abstractmethod
    def put(self, data: bytes | str, filename: str, binary: bool = True) -> str:
        """Writes a file. Returns its path."""

    @abstractmethod
    def get_group(self, filename: str) -> dict[str, str] | None:
        """The paths of a group of files by name; None if one is missing."""

    @abstractmethod
    def put_group(self, filename: str, group: dict[str, str]) -> Any:
        """Notes that these files belong together, under a name."""


class FileCacheManager(CacheManager):
    """Files in a directory, which is the key's own. Writing is atomic."""

    def __init__(self, key: str, override: bool = False, dump: bool = False) -> None:
        super().__init__(key, override, dump)
        place = knobs.cache
        root = place.dump_dir if dump else place.override_dir if override else place.dir
        if not root:
            raise RuntimeError("knobs.cache.dir is empty: there is no directory for files")
        self.cache_dir = os.path.join(root, key)
        self.lock_path = None if override else os.path.join(self.cache_dir, "lock")
        if not override:
            os.makedirs(self.cache_dir, exist_ok=True)

    def _make_path(self, filename: str) -> str:
        return os.path.join(self.cache_dir, filename)

    def has_file(self, filename: str) -> bool:
        return os.path.exists(self._make_path(filename))

    def get_file(self, filename: str) -> str | None:
        return self._make_path(filename) if self.has_file(filename) else None

    def put(self, data: Any, filename: str, binary: bool = True) -> str:
        content = data if isinstance(data, bytes) else str(data).encode()
        path = self._make_path(filename)
        files.replace(Path(path), content)
        return path

    def get_group(self, filename: str) -> dict[str, str] | None:
        path = self.get_file(f"__grp__{filename}")
        if path is None:
            return None
        try:
            paths = json.loads(Path(path).read_text(encoding="utf-8"))["child_paths"]
            return dict(paths) if all(map(os.path.exists, paths.values())) else None
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None  # damaged

    def put_group(self, filename: str, group: dict[str, str]) -> str:
        text = json.dumps({"child_paths": group})
        return self.put(text, f"__grp__{filename}", binary=False)


class RemoteCacheBackend:
    """A store of the files of one key elsewhere."""

    def __init__(self, key: str) -> None:
        self.key = key

    def get(self, filenames: list[str]) -> dict[str, bytes]:
        """The content of those of the files that are there."""
        raise NotImplementedError

    def put(self, filename: str, data: bytes) -> Any:
        """Keeps a file."""
        raise NotImplementedError


class RedisRemoteCacheBackend(RemoteCacheBackend):
    """A Redis server, as ``knobs.redis`` names it."""

    def __init__(self, key: str) -> None:
        import redis

        super().__init__(key)
        self._format = knobs.redis.key_format
        self._redis = redis.Redis(host=knobs.redis.host, port=knobs.redis.port)

    def _name(self, filename: str) -> str:
        return self._format.format(key=self.key, filename=filename)

    def get(self, filenames: list[str]) -> dict[str, bytes]:
        found = self._redis.mget([self._name(filename) for filename in filenames])
        pairs = zip(filenames, found, strict=True)
        return {filename: content for filename, content in pairs if content is not None}

    def put(self, filename: str, data: bytes) -> None:
        self._redis.set(self._name(filename), data)


class RemoteCacheManager(CacheManager):
    """Files of a remote store, of the class ``knobs.cache.remote_manager_class``. What is read lies on the disk, too."""

    def __init__(self, key: str, override: bool = False, dump: bool = False) -> None:
        super().__init__(key, override, dump)
        backend = knobs.cache.remote_manager_class
        if backend is None:
            raise RuntimeError(
                "TRITON_REMOTE_CACHE_BACKEND names no class: set it to MODULE:CLASS of a RemoteCacheBackend"
            )
        self._backend = backend(key)
        self._files = FileCacheManager(key, override=override, dump=dump)
        self._is_local = override or dump

    def get_file(self, filename: str) -> str | None:
        if self._is_local:
            return self._files.get_file(filename)
        found = self._backend.get([filename])
        return self._files.put(found[filename], filename) if filename in found else None

    def put(self, data: Any, filename: str, binary: bool = True) -> str:
        content = data if isinstance(data, bytes) else str(data).encode()
        if not self._is_local:
            self._backend.put(filename, content)
        return self._files.put(content, filename)

    def get_group(self, filename: str) -> dict[str, str] | None:
        if self._is_local:
            return self._files.get_group(filename)
        path = self.get_file(f"__grp__{filename}")
        if path is None:
            return None
        try:
            names = json.loads(Path(path).read_text(encoding="utf-8"))["child_paths"]
        except (OSError, ValueError, KeyError):
            return None
        contents = self._backend.get(list(names))
        if any(name not in contents for name in names):
            return None
        return {name: self._files.put(content, name) for name, content in contents.items()}

    def put_group(self, filename: str, group: dict[str, str]) -> Any:
        if self._is_local:
            return self._files.put_group(filename, group)
        text = json.dumps({"child_paths": sorted(group)})
        return self.put(text, f"__grp__{filename}", binary=False)


def _base32(key: str) -> str:
    """A hexadecimal key in fewer characters, for the names of directories."""
    return base64.b32encode(bytes.fromhex(key)).decode().rstrip("=")


def _manager(key: str, **options: bool) -> CacheManager:
    return (knobs.cache.manager_class or FileCacheManager)(_base32(key), **options)


def get_cache_manager(key: str) -> CacheManager:
    """The files of a hexadecimal key."""
    return _manager(key)


def get_override_manager(key: str) -> CacheManager:
    """The files that take the place of compiled ones."""
    return _manager(key, override=True)


def get_dump_manager(key: str) -> CacheManager:
    """The files of a dump."""
    return _manager(key, dump=True)


def make_so_cache_key(
    version_hash: str, signature: dict[Any, str], constants: Any, ids: Any, **kwargs: Any
) -> str:
    """The key of a native module for a launch with this signature."""
    types = "".join("ptr" if type[0] == "*" else type for type in signature.values())
    text = "-".join(map(str, (version_hash, types, constants, ids, *kwargs.values())))
    return _base32(hashlib.sha256(text.encode()).hexdigest())


@functools.cache
def triton_key() -> str:
    """A text that changes with the compiler."""
    return f"3.9.0+metal-{build_id()}"


def get_cache_key(src: Any, backend: Any, backend_options: Any, env_vars: dict[str, str]) -> str:
    """A text that changes with all that a compiled kernel depends on."""
    variables = sorted(env_vars.items())
    return f"{triton_key()}-{src.hash()}-{backend.hash()}-{backend_options.hash()}-{variables}"
