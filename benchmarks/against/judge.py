"""The machine code that Mesa's compiler for Apple's G13 (the M1) makes of a kernel, where that compiler has been built.

The environment variable TRITON_METAL_AGX names the program that judges: it takes `--json`, `--include DIR`, `--constants
INDEX:VALUE,…`, `--threads N` and a file of Metal text, and writes one JSON object. Without it, these columns stay empty.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from against.counting import Measured, Text

VARIABLE = "TRITON_METAL_AGX"


def available() -> bool:
    """Whether TRITON_METAL_AGX names a program."""
    return bool(os.environ.get(VARIABLE))


def judge(text: Text) -> dict[str, Any]:
    """Registers (of 32 bits), threads in flight on a core, spills and the mix of each innermost loop.

    Also, for a loop with matrix multiplies, the other instructions (but those of floats) for each. {"error": …} if the compiler refuses the text. Its functions are not judged if it has more than one.
    """
    if text.text.count("[[kernel") + text.text.count("instantiate_kernel(") != 1:
        return {"error": "a text of several kernels"}
    command = [os.environ[VARIABLE], "--json", "--threads", str(text.threads)]
    if text.constants:
        values = (f"{index}:{int(value)}" for index, value in text.constants)
        command += ["--constants", ",".join(values)]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "kernel.metal"
        file.write_text(text.text, encoding="utf-8")
        command += ["--include", str(text.include or folder)]
        try:
            done = subprocess.run(
                [*command, str(file)], capture_output=True, text=True, timeout=300, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return {"error": str(error)}
    if done.returncode:
        return {"error": (done.stderr.strip() or "no message").splitlines()[-1][-200:]}
    said = json.loads(done.stdout)
    products = [loop for loop in said["loops"] if loop.get("mma")]
    if products:
        most = max(products, key=lambda loop: loop["mma"])
        others = sum(n for kind, n in most.items() if kind not in ("mma", "float"))
        said["others_a_multiply"] = round(others / most["mma"], 2)
    return said


def judged(measured: Measured) -> dict[str, Any]:
    """What is said of the configuration's first kernel, which does the most; the others only join its results."""
    return judge(measured.texts[0]) if measured.texts and not measured.error else {}
