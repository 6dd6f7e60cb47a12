"""A program as a Python file that needs nothing of this package."""

from __future__ import annotations

import base64
import zlib

import numpy as np

from .dtypes import DType
from .execute import HEAD
from .program import Program

_CHECK = '''

def same(actual, expected, known, error):
    """Where an array is as it must be; what is not known may be anything."""
    if actual.dtype.kind in "iub":
        return (actual == expected) | ~known
    a, e = actual.astype(np.float64), expected.astype(np.float64)
    near = np.abs(a - e) <= error if error is not None else False
    equal = (a == e) & (np.signbit(a) == np.signbit(e)) | (np.isnan(a) & np.isnan(e))
    return equal | near | ~known


def check(name, actual, expected, known=True, error=None):
    wrong = np.flatnonzero(~same(actual, expected, np.broadcast_to(known, expected.shape), error))
    for i in wrong[:8].tolist():
        print(f"{name}[{i}] is {actual[i]}, must be {expected[i]}")
    return wrong.size


def packed(text, dtype):
    return np.frombuffer(zlib.decompress(base64.b85decode(text)), dtype).copy()

'''


def array_text(array: np.ndarray, dtype: DType | None = None) -> str:
    """An expression that makes the array."""
    name = (
        "ml_dtypes.bfloat16"
        if dtype is not None and dtype.name == "bfloat16"
        else f'"{array.dtype}"'
    )
    if array.size <= 64 and array.dtype.kind in "iub":
        return f"np.array({array.tolist()}, {name})"
    if array.size <= 64:
        numbers = ", ".join(
            repr(x) if np.isfinite(x) else f"float('{x}')"
            for x in array.astype(np.float64).tolist()
        )
        return f"np.array([{numbers}], {name})"
    data = base64.b85encode(zlib.compress(array.tobytes(), 9)).decode()
    return f"packed({data!r}, {name})"


def source(program: Program, note: str = "") -> str:
    """The file's text: it prints what is wrong, and ends with status 1 if anything is."""
    config = program.config
    head = f'"""{note}"""\n\n' if note else ""
    text = (
        f"{head}import base64\nimport os\nimport zlib\n\nimport ml_dtypes\nimport numpy as np\n{HEAD.rstrip()}\n"
        f"{_CHECK}\n{program.text()}\n\n"
    )
    lines = []
    for name, data in program.initial.items():
        lines.append(f"{name} = {array_text(data, program.machine.memory[name].dtype)}")
    arguments = []
    for argument in program.arguments:
        if argument.array is None:
            value = argument.number
            shown = (
                f"float('{value}')"
                if isinstance(value, float) and not np.isfinite(value)
                else repr(value)
            )
            arguments.append(shown)
        else:
            arguments.append(
                f"{argument.array}[{argument.offset}:]" if argument.offset else argument.array
            )
    if config.processor is not None:
        lines.append(f'os.environ["TRITON_METAL_HOST_CPU"] = {config.processor!r}')
    lines.append(
        f"with triton.launch_options(schedule={config.schedule!r}, check={config.check!r}, seed={config.seed!r}):"
    )
    lines.append(
        f"    kernel[{config.grid}]({', '.join(arguments)}, num_warps={config.num_warps}, "
        f"num_stages={config.num_stages}, precise_math=True, enable_fp_fusion=False)"
    )
    lines.append("wrong = 0")
    for name, memory in program.machine.memory.items():
        extra = "" if memory.known.all() else f", known={array_text(memory.known)}"
        if memory.error is not None:
            extra += f", error={array_text(memory.error)}"
        label = "/".join(a.name for a in program.arguments if a.array == name)
        lines.append(
            f'wrong += check("{label}", {name}, {array_text(memory.data, memory.dtype)}{extra})'
        )
    lines.append("raise SystemExit(wrong > 0)")
    return text + "\n".join(lines) + "\n"
