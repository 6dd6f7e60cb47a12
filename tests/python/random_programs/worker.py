"""A process that runs programs for a campaign: a line of JSON in for each, a line out.

It may die of one: the campaign then knows of which.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

from .execute import Elsewhere, check
from .generate import generate
from .program import Config


def request(seed: int, removed: list[str] | None = None, config: Config | None = None) -> str:
    fields: dict = {"seed": seed}
    if removed:
        fields["removed"] = removed
    if config:
        fields["config"] = vars(config)
    return json.dumps(fields)


def program_of(fields: dict):
    config = None
    if "config" in fields:
        config = Config(**{**fields["config"], "grid": tuple(fields["config"]["grid"])})
    return generate(fields["seed"], frozenset(fields.get("removed", [])), config)


def answer(fields: dict, folder: Path) -> dict:
    """What became of a program: "ok", "wrong", "metal" (the text does not compile), "refused", "elsewhere" or "error"."""
    from triton_metal.errors import CompileError, DeviceError

    start = time.perf_counter()
    try:
        wrong = check(program_of(fields), folder, route=os.environ.get("RANDOM_PROGRAMS_ROUTE"))
        kind, detail = ("wrong", "\n".join(wrong)) if wrong else ("ok", "")
    except Elsewhere as error:
        kind, detail = "elsewhere", str(error)
    except DeviceError as error:
        kind, detail = "metal", str(error)
    except CompileError as error:
        kind, detail = "refused", error.error_message
    except Exception as error:
        kind, detail = "error", f"{type(error).__name__}: {error}"
    seconds = time.perf_counter() - start
    return {"seed": fields["seed"], "kind": kind, "detail": detail, "seconds": round(seconds, 4)}


def main() -> None:
    output = os.fdopen(os.dup(1), "w")
    if texts := os.environ.get("RANDOM_PROGRAMS_TEXTS"):
        from ttir_texts import dump_texts

        dump_texts(Path(texts))
    os.dup2(2, 1)  # What kernels print is not an answer.
    folder = Path(tempfile.mkdtemp(prefix="random-programs-"))
    os.environ["TRITON_METAL_CACHE_DIR"] = str(folder / "cache")
    try:
        for line in sys.stdin:
            print(json.dumps(answer(json.loads(line), folder)), file=output, flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
