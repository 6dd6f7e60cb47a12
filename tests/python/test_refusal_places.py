"""Whatever is refused is refused with its place: the file, the line, and the source with a caret.

Each program is the body of a kernel; `# here` marks the line that is to blame, without it the kernel's own.
"""

from __future__ import annotations

import textwrap

import numpy as np
import pytest
import triton_metal as triton

from kernel_support import ON_STOCK
from process_support import load_module

pytestmark = [
    pytest.mark.own_route,
    pytest.mark.own_target,
    pytest.mark.skipif(ON_STOCK, reason="the interpreter refuses other things"),
]

PRELUDE = """
import triton_metal as triton
import triton_metal.language as tl

@triton.jit
def scan_add(a, b):
    return a + b

@triton.jit
def uses_load(a, b):
    return a + tl.load(b)

@triton.constexpr_function
def broken():
    raise KeyError("nothing")

@triton.jit
def inner(p, q):
    return tl.load(tl.reduce(p, 0, first))

@triton.jit
def outer(p, q):
    return inner(p, q)

@triton.jit(noinline=True)
def apart(p):
    tl.store(p, tl.load(tl.reduce(p, 0, first)))

@triton.jit
def endless(v):
    return endless(v)

@triton.jit
def loads(a, b):
    return a + tl.load(POINTER)

@triton.jit
def scans(a, b):
    return tl.cumsum(a, 0)

@triton.jit
def missing(a, b, c, d):
    return a

@triton.jit
def first(a, b):
    return a

@triton.jit
def kernel(x, i, h, b, n, s, d, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
"""

PROGRAMS = {
    "reduction in a store": "tl.store(x + tl.arange(0, 16),\n    tl.load(tl.reduce(  # here\n        x + o, 0, first)))",
    "reduction method": "tl.store(i, tl.load((i + o).reduce(0, first)))  # here",
    "reduction in a function": "tl.store(i, outer(i + o, i))  # here",
    "reduction in a loop": "for k in range(n):\n    tl.store(i, tl.load(tl.reduce(i + o, 0, first)))  # here",
    "reduction in an if": "if n > 3:\n    tl.store(i, tl.load(tl.reduce(i + o, 0, first)))  # here",
    "reduction apart": "apart(i + o)  # here",
    "scan of pointers": "tl.store(x + o, tl.load(tl.associative_scan(x + o, 0, first)))  # here",
    "load in a scan": "tl.store(x + o, tl.associative_scan(tl.load(x + o), 0, loads))  # here",
    "atomic half max": "tl.atomic_max(h + o, 1.0)  # here",
    "atomic poll": "tl.store(i + o, tl.atomic_poll(i, 1))  # here",
    "atomic of bytes": "tl.atomic_add((i + o).to(tl.pointer_type(tl.int8)), 1)  # here",
    "atomic load order": "tl.store(i + o, tl.atomic_load(i + o, sem='release'))  # here",
    "float atomic and": "tl.atomic_and(x + o, 1.0)  # here",
    "atomic order": "tl.atomic_add(i + o, 1, sem='strong')  # here",
    "dot of wide integers": "r = tl.arange(0, 16)\nt = tl.load(i + r[:, None] * 16 + r[None, :])\nu = tl.dot(t, t)  # here\ntl.store(i + r[:, None] * 16 + r[None, :], u)",
    "load in a reduction": "tl.store(x, tl.reduce(tl.load(x + o), 0, loads))  # here",
    "reduction of pointers": "tl.store(d, tl.reduce((x + o).to(tl.int64), 0, scan_add))\ntl.store(x + o, tl.load(tl.reduce(x + o, 0, first)))  # here",
    "store of pointers": "tl.store((d + o).to(tl.pointer_type(tl.pointer_type(tl.float32))), x + o)  # here",
    "print prefix": "tl.device_print(3, n)  # here",
    "static assert": "tl.static_assert(BLOCK == 5, 'five')  # here",
    "static assert in a function": "tl.xor_sum(tl.load(x + o))  # here",
    "scan in a reduction's function": "tl.store(x, tl.reduce(tl.load(x + o), 0, scans))  # here",
    "reduction with an index": "tl.store(x, tl.reduce((tl.load(x + o), o), 0, missing))  # here",
    "too many bytes": "r = tl.arange(0, 128)\np = x + r[:, None] * 128 + r[None, :]\nu = tl.dot(tl.load(p), tl.load(p))\ntl.store(p, tl.dot(tl.trans(u), u))",
    "message of a function that runs while compiling": "v = broken()  # here",
    "undefined": "tl.store(x + o, nothing)  # here",
    "undefined in an annotation": "v: nothing = 3  # here",
    "undefined attribute": "tl.store(x + o, tl.nothing(o))  # here",
    "return of a value": "return n  # here",
    "recursion": "tl.store(x + o, endless(o))  # here",
    "arange": "w = tl.arange(0, 17)  # here",
    "range bounds": "for k in range(1.5):  # here\n    tl.store(x + o, k)",
    "loop type": "a = 1\nfor k in range(n):  # here\n    a = a * 1.5\ntl.store(x + o, a)",
    "condition": "if o > 3:  # here\n    tl.store(x + o, 1.0)",
    "while condition": "while o > 3:  # here\n    tl.store(x + o, 1.0)",
    "unary": "tl.store(x + o, ~tl.load(x + o))  # here",
    "unary of a pointer": "tl.store(-x, 1.0)  # here",
    "power": "tl.store(x + o, tl.load(x + o) ** 2)  # here",
    "matmul operator": "v = tl.load(x + o) @ tl.load(x + o)  # here",
    "division by zero": "v = 1 // 0  # here",
    "big number": "tl.store(i + o, 1 << 80)  # here",
    "shift": "tl.store(i + o, o << (1 << 40))  # here",
    "subscript": "v = tl.load(x + o)[3]  # here",
    "tuple index": "v = (1, 2)[5]  # here",
    "unpack": "a, c = 1, 2, 3  # here",
    "too many elements": "tl.store(x, tl.sum(tl.full((1 << 21,), 1.0, tl.float32)))  # here",
    "reshape": "tl.store(x + o, tl.load(x + o).reshape(7))  # here",
    "permute": "tl.store(x + o, tl.permute(tl.load(x + o), 1, 0))  # here",
    "keyword": "tl.store(x + o, 1.0, nothing=3)  # here",
    "missing argument": "tl.store(x + o)  # here",
    "dtype": "tl.store(x + o, tl.zeros((BLOCK,), 'nothing'))  # here",
    "external": "v = tl.extra.nothing(o)  # here",
    "with": "with n:  # here\n    pass",
    "starred": "v = [*n]  # here",
    "f-string": "tl.static_print(f'{n}')  # here",
    "call of a number": "v = n(3)  # here",
    "method": "tl.store(x + o, tl.load(x + o).nothing())  # here",
    "softmax of an axis": "tl.store(x + o, tl.softmax(tl.load(x + o), 3))  # here",
    "random of floats": "tl.store(x + o, tl.rand(1.5, o))  # here",
    "pointer of two dtypes": "p = tl.where(n > 3, x, i)  # here",
    "list comprehension": "v = [k for k in n]  # here",
    "nested": "tl.store(x + o,\n         tl.load(x + o)\n         + tl.exp(  # here\n             o))",
}  # fmt: skip


def load(path, program):
    body = textwrap.indent(program, "    ")
    path.write_text(PRELUDE + body + "\n")
    return load_module(path).kernel


def arguments():
    n = 1 << 15
    return (
        np.zeros(n, np.float32),
        np.zeros(n, np.int32),
        np.zeros(n, np.float16),
        np.zeros(n, np.float32),
        7,
        1.5,
        np.zeros(n, np.int64),
    )


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_place_of_a_refusal(name, tmp_path, monkeypatch, request):
    monkeypatch.setenv("TRITON_METAL_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "refused.py"
    kernel = load(path, PROGRAMS[name])
    if name == "too many bytes":
        triton.set_kernel_config(shared_memory=1024)
        request.addfinalizer(lambda: triton.set_kernel_config(shared_memory=None))
    with pytest.raises(triton.CompileError) as caught:
        kernel[(1,)](*arguments(), BLOCK=32)
    error = caught.value
    lines = path.read_text().splitlines()
    marked = [k for k, line in enumerate(lines, 1) if line.endswith("# here")]
    (wanted,) = marked or [k for k, line in enumerate(lines, 1) if line.startswith("def kernel")]
    assert error.location is not None, str(error)
    outermost = (error.location, *error.callers)[-1]
    assert (outermost.file, outermost.line) == (str(path), wanted), str(error)
    for place in (error.location, *error.callers):
        assert place.file == str(path), str(error)
        assert place.text.strip() == lines[place.line - 1].strip()
        assert "^" in place.excerpt()
    first = str(error).splitlines()[0]
    assert first.startswith(f"{path}:{error.location.line}:{error.location.column}: ")
    assert len(first) > len(str(path)) + 20
