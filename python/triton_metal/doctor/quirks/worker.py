"""The worker process: it imports a route, says so, runs one form of one probe (or answers questions), and ends."""

from __future__ import annotations

import json
import os
import sys
from typing import Any


def main() -> None:
    """The command ``ROUTE [stand-in]``. The request comes on the standard input, as JSON in one line."""
    route, *rest = sys.argv[1:]
    # Records have the standard output to themselves, whatever libraries print.
    records = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def write(record: dict[str, Any]) -> None:
        print(json.dumps(record), file=records, flush=True)

    from . import catalogue, routes

    try:
        if rest == ["stand-in"]:
            stand_in(route)
        routes.prepare(route)
    except Exception as error:
        write({"kind": "not ready", "says": f"{type(error).__name__}: {error}"})
        return
    write({"kind": "ready"})
    request = json.loads(sys.stdin.readline() or "null")
    if request is None:
        return
    for key in request["keys"]:
        item = catalogue.find(key)
        write({"kind": "result", **routes.examine(route, item, request["form"])})
    # A driver that crashes at the end of a process says nothing about the probe.
    os._exit(0)


def stand_in(route: str) -> None:
    """Has the stand-ins of triton_metal.testing take the place of the frameworks."""
    from ... import mps
    from ...mlx import functional
    from ...testing import compile_shader, metal_kernel

    # One that a test has put there stays.
    if route == "mps" and mps._compile_shader is None:
        mps._compile_shader = compile_shader.compile_shader
    if route == "mlx" and functional._metal_kernel is None:
        functional._metal_kernel = metal_kernel.metal_kernel
