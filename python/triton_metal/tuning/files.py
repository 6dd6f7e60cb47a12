"""Files of results: what `Results.export` writes, and `autotune(results=...)` and the cache on disk read."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import LaunchTypeError, LaunchValueError
from ..files import replace
from .config import Config
from .rows import UNITS, Row, Tuning, shown_key

#: Format 1 had no estimates, and costs that no longer mean anything where there was no GPU.
FORMAT = 2
_CONFIG = ("kwargs", "num_warps", "num_stages", "num_ctas", "maxnreg", "ir_override")
_SCALARS = (type(None), bool, int, float, str)


def encode(kernel: str, tunings: Sequence[Tuning]) -> str:
    """Results as JSON. Raises LaunchValueError for configurations with values that JSON does not have."""
    fields = {
        "format": FORMAT,
        "kernel": kernel,
        "tunings": [
            {
                "key": json.loads(shown_key(tuning.key)),
                "device": tuning.device,
                "unit": tuning.unit,
                "seconds": tuning.seconds,
                "how": tuning.how,
                "best": _config(kernel, tuning.best),
                "rows": [
                    {
                        "config": _config(kernel, row.config),
                        **{name: _number(getattr(row, name)) for name in ("value", "low", "high")},
                        "runs": row.runs,
                        "compile_ms": row.compile_ms,
                        "reason": row.reason,
                        "left_out": row.left_out,
                        "estimate": row.estimate,
                        "counted": row.counted,
                    }
                    for row in tuning.rows
                ],
            }
            for tuning in tunings
        ],
    }
    return json.dumps(fields, indent=1)


def content(kernel: str, tunings: Sequence[Tuning]) -> bytes:
    """What a file of results holds."""
    return f"{encode(kernel, tunings)}\n".encode()


def write(path: Path, kernel: str, tunings: Sequence[Tuning]) -> None:
    """Writes results to a file."""
    replace(path, content(kernel, tunings))


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _config(kernel: str, config: Config) -> dict[str, Any]:
    for name, value in config.kwargs.items():
        if not isinstance(value, _SCALARS):
            raise LaunchValueError(
                f"{kernel}: a configuration has {name}={value!r}, which a file of results cannot hold: it holds "
                "numbers, strings, booleans and None"
            )
    return {"kwargs": config.kwargs} | {name: config.option(name) for name in _CONFIG[1:]}


class _Reader:
    """Checks the fields of a file. Errors name the file and the field."""

    def __init__(self, path: str, kernel: str, arg_names: Sequence[str]) -> None:
        self.path = path
        self.kernel = kernel
        self.arg_names = arg_names
        self.format = FORMAT

    def problem(self, where: str, message: str) -> LaunchValueError:
        return LaunchValueError(f"{self.path}: {where} {message}")

    def field(self, where: str, holder: Any, name: str, kinds: Any, what: str) -> Any:
        if not isinstance(holder, dict):
            raise self.problem(where or "the file", f"must be an object, not {holder!r}")
        place = f"{where}.{name}" if where else name
        if name not in holder:
            raise self.problem(place, "is missing")
        value = holder[name]
        if not isinstance(value, kinds) or (isinstance(value, bool) and kinds is not _SCALARS):
            raise self.problem(place, f"must be {what}, not {value!r}")
        return value

    def config(self, where: str, holder: Any) -> Config:
        kwargs = self.field(where, holder, "kwargs", dict, "an object of parameters and values")
        for name, value in kwargs.items():
            if name not in self.arg_names:
                raise self.problem(
                    f"{where}.kwargs.{name}",
                    f"is not a parameter of {self.kernel} ({', '.join(self.arg_names)})",
                )
            if not isinstance(value, _SCALARS):
                raise self.problem(f"{where}.kwargs.{name}", f"must be a value, not {value!r}")
        options: dict[str, Any] = {}
        for name in _CONFIG[1:]:
            value = holder.get(name)
            wanted = str if name == "ir_override" else int
            if value is not None and (not isinstance(value, wanted) or isinstance(value, bool)):
                kind = "a string" if wanted is str else "an integer"
                raise self.problem(f"{where}.{name}", f"must be {kind} or null, not {value!r}")
            options[name] = value
        warps = options["num_warps"]
        if warps is not None and not (1 <= warps <= 32 and warps & (warps - 1) == 0):
            raise self.problem(f"{where}.num_warps", f"must be 1, 2, 4, 8, 16 or 32, not {warps}")
        stages = options["num_stages"]
        if stages is not None and not 1 <= stages <= 16:
            raise self.problem(f"{where}.num_stages", f"must be from 1 to 16, not {stages}")
        return Config(kwargs, **options)

    def row(self, where: str, holder: Any) -> Row:
        def number(name: str) -> float:
            value = self.field(where, holder, name, (int, float, type(None)), "a number or null")
            return math.inf if value is None else float(value)

        figures = {name: number(name) for name in ("value", "low", "high")}
        config = _lenient(holder, where, self)
        runs = self.field(where, holder, "runs", int, "an integer")
        compile_ms = self.field(where, holder, "compile_ms", (int, float), "a number")
        reason = self.field(where, holder, "reason", str, "a string")
        more = self.model(where, holder) if self.format > 1 else {}
        return Row(
            config, **figures, runs=runs, compile_ms=float(compile_ms), reason=reason, **more
        )

    def model(self, where: str, holder: Any) -> dict[str, Any]:
        """What a row says of the model."""
        left_out = holder.get("left_out")
        if not isinstance(left_out, bool):
            raise self.problem(f"{where}.left_out", f"must be true or false, not {left_out!r}")
        kinds = (int, float, type(None))
        estimate = self.field(where, holder, "estimate", kinds, "a number or null")
        counted = self.field(where, holder, "counted", (list, type(None)), "a list or null")
        if counted is not None:
            if len(counted) != 2 or not all(type(n) is int and n > 0 for n in counted):
                raise self.problem(
                    f"{where}.counted", f"must be two numbers of programs, not {counted!r}"
                )
            counted = tuple(counted)
        return {"left_out": left_out, "estimate": estimate, "counted": counted}

    def tuning(self, where: str, holder: Any, source: str) -> Tuning:
        key = self.field(where, holder, "key", list, "a list")
        unit = self.field(where, holder, "unit", str, "a string")
        if unit not in UNITS and not (unit == "cost" and self.format == 1):
            raise self.problem(f"{where}.unit", f"must be {', '.join(UNITS)}, not {unit!r}")
        device = self.field(where, holder, "device", str, "a string")
        seconds = self.field(where, holder, "seconds", (int, float), "a number")
        best = self.config(f"{where}.best", self.field(where, holder, "best", dict, "an object"))
        rows = self.field(where, holder, "rows", list, "a list")
        return Tuning(
            key=tuple(key),
            best=best,
            rows=tuple(self.row(f"{where}.rows[{i}]", row) for i, row in enumerate(rows)),
            unit=unit,
            device=device,
            seconds=float(seconds),
            source=source,
            how=self.field(where, holder, "how", str, "a string") if self.format > 1 else "",
        )


def _lenient(holder: Any, where: str, reader: _Reader) -> Config:
    """The configuration of a row; a refused one may have options that no launch takes."""
    config = reader.field(where, holder, "config", dict, "an object")
    if not holder.get("reason"):
        return reader.config(f"{where}.config", config)
    kwargs = reader.field(f"{where}.config", config, "kwargs", dict, "an object")
    return Config(kwargs, **{name: config.get(name) for name in _CONFIG[1:]})


def decode(
    text: str, path: str, kernel: str, arg_names: Sequence[str], source: str
) -> list[tuple[str, Tuning]]:
    """The searches in a JSON text, each with its key as text. Raises LaunchValueError that names the file and field."""
    reader = _Reader(path, kernel, arg_names)
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise LaunchValueError(f"{path} is not a file of results: {error}") from None
    found = reader.field("", fields, "format", int, "an integer")
    if found not in (1, FORMAT):
        raise reader.problem("format", f"must be 1 or {FORMAT}, not {found}")
    reader.format = found
    name = reader.field("", fields, "kernel", str, "a string")
    if name != kernel:
        raise reader.problem("kernel", f"is {name!r}, but the results are for {kernel!r}")
    tunings = reader.field("", fields, "tunings", list, "a list")
    result = []
    for i, holder in enumerate(tunings):
        tuning = reader.tuning(f"tunings[{i}]", holder, source)
        if tuning.unit in UNITS:
            result.append((json.dumps(holder["key"]), tuning))
    return result


def read(path: str | os.PathLike[str], kernel: str, arg_names: Sequence[str]) -> Any:
    """The searches of a shipped file, by (device, key as text)."""
    if not isinstance(path, (str, os.PathLike)):
        raise LaunchTypeError(
            f"autotune of {kernel}: results must be the name of a file, not {path!r}"
        )
    name = os.fspath(path)
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise LaunchValueError(
            f"autotune of {kernel}: the results {name} cannot be read: {error}"
        ) from None
    found = decode(text, name, kernel, arg_names, "file")
    return {(tuning.device, key): tuning for key, tuning in found}
