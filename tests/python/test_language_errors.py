"""A kernel that is wrong: the error shows the line, the source, a caret, what came and what is allowed."""

from __future__ import annotations

import pickle
import re

import pytest
import triton_metal as triton
from triton_metal.testing import ttir

from language_support import OUR_HEADER, load_source

SIGNATURE = {"x": "*fp32", "i": "*i32", "n": "i32", "s": "fp32"}

PRELUDE = """
GLOBAL = 5
LIST = [1, 2]

def plain(v):
    return v

@triton.jit
def helper(v):
    return tl.exp(v)

@triton.jit
def recursive(v):
    return recursive(v)

@triton.jit
def needs_constexpr(v, C: tl.constexpr):
    return v * tl.arange(0, C)

@triton.jit
def unequal(v, n):
    if n > 0:
        return v
    return 1

@triton.jit
def sometimes(v, n):
    if n > 0:
        return v
    return

@triton.jit
def kernel(x, i, n, s, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    v = tl.load(x + offs)
"""

# (the line that is wrong, the text under the caret, words of the message)
CASES = {
    "dtype for an operation": ("w = v & 1", "v & 1", ["float32", "int32", "bitwise"]),
    "dtype for a function": ("w = tl.exp(offs)", "tl.exp(offs)", ["exp takes float32", "not int32"]),
    "float floor division": ("w = v // 2", "v // 2", ["//", "integers", "float32"]),
    "signedness": ("w = offs / offs.to(tl.uint32)", "offs / offs.to(tl.uint32)", ["signedness", "int32", "uint32"]),
    "negative number and unsigned": ("w = offs.to(tl.uint8) + -1", "offs.to(tl.uint8) + -1", ["unsigned", "-1"]),
    "number out of range": ("w = offs.to(tl.int8) + 300", "offs.to(tl.int8) + 300", ["300", "-128 to 127"]),
    "shapes": ("w = v + tl.arange(0, 16)", "v + tl.arange(0, 16)", ["[64]", "[16]", "do not broadcast"]),
    "rank": ("w = tl.broadcast_to(v, 1, 64)", "tl.broadcast_to(v, 1, 64)", ["ranks differ"]),
    "block size": ("w = tl.arange(0, 100)", "tl.arange(0, 100)", ["power of 2", "100"]),
    "empty range": ("w = tl.arange(8, 8)", "tl.arange(8, 8)", ["greater than the start"]),
    "shape": ("w = tl.zeros((3, 4), tl.float32)", "tl.zeros((3, 4), tl.float32)", ["power of 2", "3"]),
    "tile too large": ("w = tl.zeros((2048, 1024), tl.float32)", "tl.zeros((2048, 1024), tl.float32)", ["1048576"]),
    "run-time size": ("w = tl.arange(0, n)", "tl.arange(0, n)", ["constexpr", "run-time value int32"]),
    "reshape": ("w = v.reshape(4, 4)", "v.reshape(4, 4)", ["64", "16"]),
    "permutation": ("w = tl.permute(v, 1)", "tl.permute(v, 1)", ["permutation"]),
    "permutation of fewer dimensions": ("w = tl.permute(v.reshape(8, 8), (1,))", "tl.permute(v.reshape(8, 8), (1,))", ["names 1", "has 2"]),
    "not of an integer": ("w = not n", "not n", ["`not`", "truth value", "int32", "x != 0"]),
    "and of integers": ("w = n and n", "n and n", ["`and`", "truth value", "int32"]),
    "or of floats": ("w = s or s", "s or s", ["`or`", "truth value", "float32"]),
    "topk of more than there are": ("w = tl.topk(v, 128)", "tl.topk(v, 128)", ["must not exceed"]),
    "accumulator of integers": ("w = tl.dot(v.to(tl.float16).reshape(8, 8), v.to(tl.float16).reshape(8, 8), offs.reshape(8, 8))", "tl.dot(v.to(tl.float16).reshape(8, 8), v.to(tl.float16).reshape(8, 8), offs.reshape(8, 8))", ["accumulator's dtype", "int32"]),
    "trans of a vector": ("w = tl.trans(v)", "tl.trans(v)", ["2 dimensions"]),
    "axis": ("w = tl.sum(v, 1)", "tl.sum(v, 1)", ["axis 1"]),
    "load of a number": ("w = tl.load(offs)", "tl.load(offs)", ["pointer", "int32[64]"]),
    "load of text": ("w = tl.load('x')", "tl.load('x')", ["pointer", "'x'"]),
    "other without mask": ("w = tl.load(x, other=1.0)", "tl.load(x, other=1.0)", ["other", "mask"]),
    "mask": ("w = tl.load(x + offs, mask=offs)", "tl.load(x + offs, mask=offs)", ["mask must be boolean"]),
    "tile into a scalar": ("tl.store(x, v)", "tl.store(x, v)", ["tile", "pointer is a scalar"]),
    "store of a pointer": ("tl.store(x, i)", "tl.store(x, i)", ["pointer<int32>", "float32"]),
    "cache modifier": ("w = tl.load(x, cache_modifier='.zz')", "tl.load(x, cache_modifier='.zz')", ["'.zz'", "'.ca'"]),
    "pointers added": ("w = x + x", "x + x", ["pointers"]),
    "pointer and float": ("w = x + 1.5", "x + 1.5", ["pointer<float32>", "float32"]),
    "dot of vectors": ("w = tl.dot(v, v)", "tl.dot(v, v)", ["rank"]),
    "dot of two dtypes": (
        "w = tl.dot(v.reshape(8, 8), offs.to(tl.float16).reshape(8, 8))",
        "tl.dot(v.reshape(8, 8), offs.to(tl.float16).reshape(8, 8))",
        ["same dtype", "float32", "float16"],
    ),
    "dot shapes": ("w = tl.dot(v.reshape(4, 16), v.reshape(4, 16))", "tl.dot(v.reshape(4, 16), v.reshape(4, 16))", ["rows"]),
    "bitcast": ("w = v.to(tl.int16, bitcast=True)", "v.to(tl.int16, bitcast=True)", ["32 bits", "16 bits"]),
    "rounding": ("w = v.to(tl.float16, fp_downcast_rounding='up')", "v.to(tl.float16, fp_downcast_rounding='up')", ["'up'", "'rtz'"]),
    "index": ("w = v[0]", "v[0]", ["':' and None"]),
    "item assignment": ("v[0] = 1.0", "v[0]", ["cannot be assigned"]),
    "attribute": ("w = v.size", "v.size", ["no attribute 'size'"]),
    "undefined": ("w = nothing", "nothing", ["nothing is not defined"]),
    "global": ("w = GLOBAL + v", "GLOBAL", ["global int", "tl.constexpr"]),
    "global list": ("w = LIST", "LIST", ["global list"]),
    "python function": ("w = plain(v)", "plain(v)", ["plain", "@triton_metal.jit"]),
    "recursion": ("w = recursive(v)", "recursive(v)", ["recursion"]),
    "arguments of a function": ("w = helper(v, v)", "helper(v, v)", ["helper", "too many"]),
    "keyword": ("w = tl.load(x, wrong=1)", "tl.load(x, wrong=1)", ["wrong"]),
    "returns of two types": ("w = unequal(v, n)", "unequal(v, n)", ["Return type mismatch"]),
    "return without a value on one path": ("w = sometimes(v, n)", "sometimes(v, n)", ["Return type mismatch"]),
    "value from a kernel": ("return v", "return v", ["kernel cannot return"]),
    "size of a run-time constexpr": ("w: tl.constexpr = n\n    u = tl.arange(0, w)", "tl.arange(0, w)", ["constexpr"]),
    "static_assert": ("tl.static_assert(BLOCK == 1, 'one only')", "tl.static_assert(BLOCK == 1, 'one only')", ["one only"]),
    "static_assert on a value": ("tl.static_assert(n == 1)", "n == 1", ["compile-time condition"]),
    "condition on a tile": ("w = 1 if v > 0 else 2", "v > 0", ["must be a scalar"]),
    "sides of a ternary": ("w = 1 if n > 0 else 2.0", "1 if n > 0 else 2.0", ["int32", "float32"]),
    "unpacking": ("a, b = v, v, v", "a, b", ["2 names", "3 values"]),
    "unpacking a tensor": ("a, b = v", "a, b", ["not a tuple"]),
    "loop over a tensor": ("for j in v:\n        pass", "v", ["range"]),
    "float range": ("for j in range(s):\n        pass", "range(s)", ["integer", "float32"]),
    "zero step": ("for j in range(0, n, 0):\n        pass", "range(0, n, 0)", ["step", "0"]),
    "loop-carried type": ("for j in range(n):\n        n = 1.5", "for j in range(n):", ["n is int32", "float32"]),
    "loop variable after the loop": ("j = 1.5\n    for j in range(n):\n        pass\n    w = j", "j", ["no value here"]),
    "assigned in a loop only": ("for j in range(n):\n        w = j\n    u = w", "w", ["only a loop assigns it"]),
    "assigned on one path": ("if n > 0:\n        w = v\n    u = w", "w", ["one path"]),
    "types of two paths": ("if n > 0:\n        w = v\n    else:\n        w = 1", "if n > 0:", ["Mismatched type for w"]),
    "condition of an if": ("if tl.condition(n > 0):\n        pass", "tl.condition(n > 0)", ["boolean", "condition"]),
    "condition of a tile": ("while tl.condition(v > 0):\n        n = n - 1", "tl.condition(v > 0)", ["scalar"]),
    "hint at run time": ("while tl.condition(n > 0, disable_licm=n):\n        n = n - 1", "tl.condition(n > 0, disable_licm=n)", ["disable_licm", "constexpr"]),
    "condition of text": ("while tl.condition('a'):\n        n = n - 1", "tl.condition('a')", ["boolean"]),
    "else of a loop": ("for j in range(n):\n        pass\n    else:\n        pass", "for j in range(n):", ["else"]),
    "nested function": ("def inner():\n        if n > 0:\n            return 1\n        return v\n    w = inner()", "return v", ["Return type mismatch"]),
    "lambda": ("w = (lambda a: a)()", "(lambda a: a)()", ["lambda", "a is missing"]),
    "try": ("try:\n        pass\n    except ValueError:\n        pass", "try:", ["exceptions"]),
    "raise": ("raise ValueError", "raise ValueError", ["raise"]),
    "dictionary": ("w = {1: 2}", "{1: 2}", ["dictionaries"]),
    "class": ("class C:\n        pass", "class C:", ["class"]),
    "import": ("import math", "import math", ["import"]),
    "with": ("with v:\n        pass", "with v:", ["with"]),
    "del": ("del v", "del v", ["del"]),
    "matrix multiplication operator": ("w = v @ v", "v @ v", ["MatMult"]),
    "power of a tensor": ("w = v ** 2", "v ** 2", ["**", "compile-time"]),
    "None in arithmetic": ("w = v + None", "v + None", ["None"]),
    "truth of text": ("if 'a':\n        pass", "'a'", ["boolean"]),
    "run-time f-string": ("tl.static_print(f'{n}')", "f'{n}'", ["f-string"]),
    "atomic dtype": ("tl.atomic_add(i.to(tl.pointer_type(tl.int8)), 1)", "tl.atomic_add(i.to(tl.pointer_type(tl.int8)), 1)", ["int8"]),
    "atomic order": ("tl.atomic_add(i, 1, sem='strong')", "tl.atomic_add(i, 1, sem='strong')", ["'strong'", "'relaxed'"]),
    "assumption on a tile": ("tl.assume(v > 0)", "tl.assume(v > 0)", ["scalar"]),
    "hint of zero": ("tl.multiple_of(v, 0)", "tl.multiple_of(v, 0)", ["positive integers, not 0"]),
    "hint": ("tl.multiple_of(v, [1, 2])", "tl.multiple_of(v, [1, 2])", ["one number for each dimension"]),
    "gather": ("w = tl.gather(v, v, 0)", "tl.gather(v, v, 0)", ["integer indices"]),
    "combine function": ("w = tl.reduce(v, 0, plain)", "tl.reduce(v, 0, plain)", ["@triton_metal.jit"]),
}  # fmt: skip


def build(tmp_path, body):
    module = load_source(tmp_path, PRELUDE + "    " + body + "\n", OUR_HEADER)
    return module, ttir(module.kernel, SIGNATURE, {"BLOCK": 64})


@pytest.mark.parametrize("case", CASES)
def test_error(tmp_path, case):
    body, marked, words = CASES[case]
    with pytest.raises(triton.CompileError) as caught:
        build(tmp_path, body)
    error = caught.value
    text = str(error)
    for word in words:
        assert word in text, text
    lines = text.splitlines()
    # The place, the source line, and a caret line under the failing expression.
    place = re.match(r"(.*\.py):(\d+):(\d+): ", lines[0])
    assert place, text
    carets = [k for k, line in enumerate(lines) if re.fullmatch(r" *\^~*", line)]
    assert carets, text
    shown = []
    for k in carets:
        start, end = lines[k].index("^"), len(lines[k])
        shown.append(lines[k - 1][start:end])
    first = marked.splitlines()[0]
    assert any(s == first or (len(s) == 1 and first.startswith(s)) for s in shown), text


def test_error_in_a_function_names_the_call(tmp_path):
    with pytest.raises(triton.CompileError) as caught:
        build(tmp_path, "w = helper(offs)")
    text = str(caught.value)
    assert "return tl.exp(v)" in text
    assert "called from" in text
    assert "w = helper(offs)" in text
    assert text.index("tl.exp(v)") < text.index("called from")


def test_line_numbers_are_those_of_the_file(tmp_path):
    source = PRELUDE + "    w = 1\n    u = nothing\n"
    module = load_source(tmp_path, source, OUR_HEADER)
    line = (OUR_HEADER + source).splitlines().index("    u = nothing") + 1
    with pytest.raises(triton.CompileError) as caught:
        ttir(module.kernel, SIGNATURE, {"BLOCK": 64})
    assert caught.value.location.line == line
    assert caught.value.location.column == 9
    assert f"{module.__file__}:{line}:9:" in str(caught.value)


def test_kinds(tmp_path):
    with pytest.raises(triton.UnsupportedConstruct):
        build(tmp_path, "raise ValueError")
    with pytest.raises(triton.StaticAssertionError):
        build(tmp_path, "tl.static_assert(False)")


def test_errors_can_be_pickled(tmp_path):
    with pytest.raises(triton.CompileError) as caught:
        build(tmp_path, "w = helper(offs)")
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
