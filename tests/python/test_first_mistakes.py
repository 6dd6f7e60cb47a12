"""The mistakes of first kernels: each message says what is wrong and what to write instead."""

from __future__ import annotations

import linecache
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import triton_metal as triton
import triton_metal.language as tl

torch = pytest.importorskip("torch")

SIZE = 64


def plain(v):
    return v * 2


#: The kernel's lines, and words of the message. ``x`` and ``out`` are arrays of 64 float32, ``n`` an int32, ``B`` no constexpr.
MISTAKES = {
    "i = tl.arange(0, B)": "constexpr integer, not the run-time value int32. Write B: tl.constexpr",
    "v = tl.zeros((n,), tl.float32)": "shape element 0 must be a constexpr integer",
    "v = np.exp(tl.load(x))": "exp is a function of numpy, which a kernel cannot call: use tl.exp",
    "v = torch.relu(tl.load(x))": "relu is a function of torch, .* use tl.maximum\\(x, 0\\)",
    "v = math.exp(tl.load(x))": "exp works on compile-time values, but is given float32: use tl.exp",
    "v = plain(tl.load(x))": "plain is not a function of the language: .* decorated with @",
    "v = sum((1, 2))": "sum is not defined in kernels, .* use tl.sum",
    "breakpoint()": "breakpoint is not defined in kernels, .* print",
    "v = [tl.load(x + i) for i in range(n)]": "range works on .* its bounds must be constexpr",
    "v = tl.load(x + tl.arange(0, 4))\nif v > 0:\n    v = 1": "must be a scalar. Choose by .* tl.where",
    "v = tl.load(x + tl.arange(0, 4))\nv = v if v > 0 else 0.0": "tl.where\\(condition, a, b\\)",
    "return tl.load(x)": "a kernel cannot return a value: store it",
    "v = tl.arange(0, 4) + tl.arange(0, 8)": "shapes \\[4\\] and \\[8\\] do not broadcast",
    "tl.store(out + tl.arange(0, 4), tl.arange(0, 8))": "store: the pointer and the value: shapes",
    "v = tl.load(x + tl.arange(0, 8), mask=tl.arange(0, 4) < 2)": "load: the pointer and the mask: shapes",
    "tl.store(out, tl.arange(0, 8))": "the pointer is a scalar: add offsets such as tl.arange",
    "for k in range(tl.arange(0, 4)):\n    pass": "upper bound of a loop must be an integer scalar",
    "for k in range(n / 2):\n    pass": "not float32: divide integers with //",
    "v = n * SIZE": "Cannot access global variable SIZE, .* SIZE = tl.constexpr\\(...\\), or pass it",
    "v = tl.arange(0, 60)": "must be a power of 2, but is 60: use arange\\(0, 64\\) and a mask",
    "v = tl.arange(64)": "missing 1 required positional argument: 'end': it is tl.arange\\(start, end\\)",
    "v = tl.load(n)": "load takes a pointer, not int32: a pointer is an array argument",
    "v = tl.load(x + 1.5)": "a pointer takes the addition and subtraction of integers only",
    "v = x[0]": "a pointer has no elements to index: use tl.load\\(pointer \\+ 0\\)",
    "x[n] = 1.0": "elements of a pointer cannot be assigned: use tl.store\\(x \\+ n, value\\)",
    "v = tl.arange(0, 4)\nv[2] = 1": "cannot be assigned: use tl.where, or tl.store",
    "v = tl.arange(0, 4)[2]": "can only contain ':' and None, .* use pointers, tl.gather",
    'print(f"v = {n}")': 'To print it, make it an argument of its own: print\\("x =", x\\)',
    "v = tl.laod(x)": "has no 'laod': did you mean load\\?",
    "total = 1\nv = totl": "totl is not defined: did you mean total\\?",
    "v = entirely_unknown": "entirely_unknown is not defined$",
    "s = 0\nfor k in range(n):\n    s += tl.load(x + k)": "must stay the same. Begin with a float: s = 0.0",
    "s = 0.0\nfor k in range(n):\n    s += tl.load(x + tl.arange(0, 4))": (
        "Begin with a tile: s = tl.zeros\\(\\[4\\], tl.float32\\)"
    ),
    "if n > 3:\n    v = 1.0\ntl.store(out, v)": "only one path of an if assigns it; assign it before the if",
    'v = {"a": 1}': "dictionaries: use a tuple, a NamedTuple or @triton.aggregate",
    "v = []\nv.append(n)": "a list is a tuple in kernels, which does not change; use x = x \\+ \\(y,\\)",
    "v = tl.load(x).cuda()": "float32 has no attribute 'cuda'",
    "v = len(x)": "a kernel does not know how long the array of a pointer is",
    "v = x.shape[0]": "a kernel does not know the shape of the array that a pointer points to",
    "v = max(tl.arange(0, 4))": "use tl.max to reduce a tensor",
    "v = tl.load(x) ** n": "use a product such as x \\* x",
    "v = tl.zeros((16, 16), tl.float32) @ tl.zeros((16, 16), tl.float32)": "use tl.dot\\(a, b\\)",
    "v = tl.load(x).to(torch.float16)": "not torch.float16 \\(dtype\\): write tl.float16",
    'v = tl.load(x, mask=n > 1, other="0")': "load does not take .*other=constexpr '0'",
    "v = triton.cdiv(n, 4)": "cdiv works on compile-time values, .* use tl.cdiv",
    "v = int(tl.load(x))": "int works on .* convert it with .to\\(tl.int32\\)",
    "v = np.float32(3.0) * n": "float32 is a type of numpy: .* convert with .to\\(tl.float32\\)",
    "v = tl.sum(tl.arange(0, 4), dim=0)": "unexpected keyword argument 'dim'; its parameters are input, axis",
    "v = len(tl.arange(0, 4))": "len takes a tuple, not a tile: use its shape",
    "v = tl.arange(0, 4).mean()": "has no attribute 'mean': use tl.sum",
    "x[0:4] = 1.0": "use tl.store\\(x \\+ tl.arange\\(...\\), value\\)",
    "for k in n:\n    pass": "must iterate over .* not int32: use range",
    "tl.static_assert(n > 3)": "takes a compile-time condition, not int1: use tl.device_assert",
    "global SIZE\nSIZE = 1": "a kernel changes nothing but memory; use tl.store",
    "import random": "import modules outside the kernel",
    "v = none + tl.arange(0, 4)": "Pass an array or a number for none, or test it with: if none is not None",
}


def kernel_of(body: str) -> Callable[..., Any]:
    lines = ["def kernel(x, out, n, B, none):", *(f"    {line}" for line in body.split("\n"))]
    text, file = "\n".join(lines) + "\n", f"<mistake {len(linecache.cache)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    space = {"np": np, "torch": torch, "math": math, "tl": tl, "plain": plain, "SIZE": SIZE}
    space |= {"triton": triton}
    exec(compile(text, file, "exec"), space)
    return triton.jit(space["kernel"])  # type: ignore[arg-type]


@pytest.mark.parametrize("body", MISTAKES)
def test_the_message_says_what_to_write(body: str) -> None:
    with pytest.raises(triton.CompilationError) as caught:
        kernel_of(body).warmup(tl.float32, tl.float32, 5, 7, None, grid=(1,))
    assert caught.value.error_message == str(caught.value).split("\n")[0].partition(": ")[2]
    with pytest.raises(AssertionError, match=MISTAKES[body]):
        raise AssertionError(caught.value.error_message)


@triton.jit
def add(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)


def test_launches_say_what_to_pass() -> None:
    x = torch.zeros(64)
    for grid, args, kind, words in (
        (
            (64 / 64,),
            (x, x, 64, 64),
            TypeError,
            "must be an integer, not 1.0: use triton.cdiv or //",
        ),
        ((1,), ([1.0], x, 64, 64), TypeError, "make the list an array, or a tuple"),
        ((1,), (x, x, 64), TypeError, "argument BLOCK is missing; its parameters are"),
        ((1,), (x, x, 1 << 64, 64), OverflowError, "does not fit in any type"),
        ((1,), (x, x, -(1 << 63) - 1, 64), ValueError, "does not fit in any type"),
        ((1,), (x.to("meta"), x, 64, 64), ValueError, "a tensor on another device"),
    ):
        with pytest.raises(kind, match=words):
            add[grid](*args)
    with pytest.raises(RuntimeError, match=r"launch it as add\[grid\]\(...\)"):
        add(x, x, 64, 64)
    for largest in ((1 << 64) - 1, -(1 << 63)):
        add.warmup(x, x, largest, 64, grid=(1,))
