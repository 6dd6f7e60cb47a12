"""What the host device says about wrong arguments: the argument, its value and what is allowed."""

from __future__ import annotations

import re

import numpy as np
import pytest
import triton_metal_host as metal

SOURCE = """#include <metal_stdlib>
using namespace metal;
constant bool flag [[function_constant(0)]];
constant int count [[function_constant(1)]];
struct Pair { uint a, b; };
kernel void f(device float *x, device const half4 *h, constant Pair &pair, constant uchar &c, constant float2 &v,
              threadgroup float *t [[threadgroup(0)]], uint i [[thread_position_in_grid]]) {
  x[i] = h[i].x + pair.a + c + v.y;
}
kernel void g(device int *x) { x[0] = flag ? count : 0; }
kernel void bits(constant bfloat &b, constant half &h, constant bool &z, device void *raw) {}
"""


@pytest.fixture(scope="module")
def device() -> metal.Device:
    return metal.Device()


@pytest.fixture(scope="module")
def library(device: metal.Device) -> metal.Library:
    return device.library(SOURCE)


def floats(count: int = 8) -> np.ndarray:
    return np.zeros(count, np.float32)


HALVES = np.zeros((8, 4), np.float16)
READ_ONLY = floats()
READ_ONLY.flags.writeable = False
UNALIGNED = np.zeros(9, np.uint8)[1:].view(np.uint8)
PAIR = np.zeros((), [("a", np.uint32), ("b", np.uint32)])


@pytest.mark.parametrize(
    ("position", "value", "kind", "message"),
    [
        (0, np.zeros(8), TypeError, "an array of float32, not one of float64"),
        (0, np.zeros(8, np.int32), TypeError, "an array of float32, not one of int32"),
        (0, np.zeros(8, ">f4"), TypeError, "not one of byte-swapped float32"),
        (0, np.zeros(8, PAIR.dtype), TypeError, "not one of structure"),
        (0, np.array(["a"]), TypeError, "not one of str32"),
        (0, np.array([None]), TypeError, "not one of object"),
        (0, floats(16)[::2], ValueError, "is not contiguous"),
        (0, np.zeros((4, 4), np.float32).T[:2], ValueError, "is not contiguous"),
        (0, READ_ONLY, ValueError, "is written by the kernel, but its memory is read-only"),
        (0, bytes(32), ValueError, "is written by the kernel, but its memory is read-only"),
        (0, metal.Buffer(bytes(32)), ValueError, "read-only"),
        (0, bytearray(7), ValueError, "values of 4 bytes each.* has 7 bytes"),
        (0, metal.Buffer(3), ValueError, "needs at least 4 bytes, but the buffer has 3"),
        (0, metal.Buffer(64)[1:], ValueError, "begins at address .* needs a multiple of 4"),
        (0, 1.0, TypeError, "takes an array of float32, not float 1.0"),
        (0, [1.0, 2.0], TypeError, r"takes an array of float32, not list \[1.0, 2.0\]"),
        (0, "text", TypeError, "takes an array of float32, not str 'text'"),
        (0, object(), TypeError, "takes an array of float32, not object"),
        (0, None, TypeError, "is missing; it takes an array of float32"),
        (1, np.zeros(6, np.float16), ValueError, "values of 8 bytes each.*has 12 bytes"),
        (1, np.float16(1), TypeError, "takes an array of float16"),
        (
            2,
            np.zeros(2, np.uint32),
            TypeError,
            "bytes, a structured array, or a metal.Buffer .*8 bytes",
        ),
        (2, np.zeros((), [("a", np.uint32)]), TypeError, "values of 8 bytes.* have 4"),
        (2, np.zeros(2, PAIR.dtype), ValueError, "takes one value of 8 bytes.* has 16"),
        (2, bytes(7), ValueError, "takes one value of 8 bytes"),
        (2, 5, TypeError, "takes bytes, a structured array"),
        (2, (1, 2), TypeError, "takes bytes, a structured array"),
        (3, 256, ValueError, "a number of type uchar, 0 to 255, not 256"),
        (3, -1, ValueError, "0 to 255, not -1"),
        (3, 10**30, ValueError, "0 to 255, not 1000000000"),
        (3, 1.0, TypeError, "a whole number of type uchar, not float 1.0"),
        (3, np.float32(1), TypeError, "a whole number of type uchar"),
        (3, "1", TypeError, "a number of type uchar, not str '1'"),
        (3, (1, 2), ValueError, r"takes 1 number, but tuple \(1, 2\) has 2"),
        (3, np.zeros(2, np.uint8), ValueError, "takes one value of 1 bytes"),
        (3, np.zeros((), np.int8), TypeError, "not one of int8"),
        (4, 1.0, ValueError, "takes 2 numbers, but float 1.0 has 1"),
        (4, (1, 2, 3), ValueError, "takes 2 numbers"),
        (4, (1, "x"), TypeError, "takes a number of type float, not str 'x'"),
        (4, (1, 1e39), ValueError, "a number of type float, which 1e[+]39 exceeds"),
    ],
)
def test_wrong_arguments(device, library, position: int, value, kind, message: str) -> None:
    arguments = [floats(), HALVES, PAIR, 1, (1.0, 2.0)]
    pipeline = device.pipeline(library.function("f"))
    pipeline(*arguments, threads=8, threadgroup_memory={0: 16})
    arguments[position] = value
    with pytest.raises(kind) as error:
        pipeline(*arguments, threads=8, threadgroup_memory={0: 16})
    name = ("x", "h", "pair", "c", "v")[position]
    text = str(error.value)
    assert re.search(message, text), text
    if value is None:
        assert text.startswith("f: 'x' is missing") or f"'{name}'" in text
    else:
        assert text.startswith(f"f: argument '{name}' (")
        assert f", buffer {position})" in text


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({}, TypeError, "f: give the grid as threads=... or as threadgroups=..."),
        ({"threads": 8, "threadgroups": 1}, TypeError, "give the grid"),
        ({"threads": -1}, ValueError, "threads: -1 is out of range"),
        ({"threads": 2**32}, ValueError, "4294967296 is out of range"),
        ({"threads": 1.5}, TypeError, "threads takes one to three whole numbers, not 1.5"),
        ({"threads": "8"}, TypeError, "threads takes one to three whole numbers, not '8'"),
        ({"threads": ()}, ValueError, "threads: .* has 0 extents"),
        ({"threadgroups": (1, None)}, TypeError, "threadgroups takes one to three whole numbers"),
        ({"threads": (1, 2, 3, 4)}, ValueError, "has 4 extents"),
        (
            {"threads": 8, "threads_per_threadgroup": ()},
            ValueError,
            "threads_per_threadgroup: .* has 0",
        ),
        ({"threads": 8, "threads_per_threadgroup": 0}, metal.LaunchError, "at least one thread"),
        ({"threads": 8, "threads_per_threadgroup": 2048}, metal.LaunchError, "1024"),
        ({"threads": 8, "threads_per_threadgroup": (32, 64)}, metal.LaunchError, "1024"),
        ({"threads": 8, "threadgroup_memory": {}}, metal.LaunchError, "'t'.* has no length"),
        ({"threads": 8, "threadgroup_memory": {1: 16}}, ValueError, "no threadgroup argument 1"),
        (
            {"threads": 8, "threadgroup_memory": {"u": 16}},
            ValueError,
            "no threadgroup argument 'u'",
        ),
        ({"threads": 8, "threadgroup_memory": {0: -4}}, ValueError, "-4 bytes; 0 to 32,768"),
        ({"threads": 8, "threadgroup_memory": {0: "x"}}, TypeError, "number of bytes, not 'x'"),
        ({"threads": 8, "threadgroup_memory": {0: 65536}}, metal.LaunchError, "32768"),
        ({"threads": 8, "seed": -1}, ValueError, "seed takes a whole number from 0 .*, not -1"),
        ({"threads": 8, "seed": 0.5}, TypeError, "seed takes a whole number from 0 .*, not 0.5"),
        ({"threads": 8, "thread": 3}, TypeError, "f has no buffer 'thread': kernel void f"),
        ({"threads": 8, "arguments": {9: 1}}, TypeError, "f has no buffer 9"),
        ({"threads": 8, "x": 1}, TypeError, "'x' is given twice"),
    ],
)
def test_wrong_options(device, library, options, kind, message: str) -> None:
    memory = {"threadgroup_memory": {0: 16}} | options
    with pytest.raises(kind, match=message):
        device.pipeline(library.function("f"))(floats(), HALVES, PAIR, 1, (1.0, 2.0), **memory)


def test_wrong_numbers_of_arguments(device, library) -> None:
    pipeline = device.pipeline(library.function("f"))
    with pytest.raises(TypeError, match="f takes 5 buffers, but 6 are given: kernel void f"):
        pipeline(1, 2, 3, 4, 5, 6, threads=1)
    with pytest.raises(TypeError, match="f: 'pair', 'c', 'v' are missing"):
        pipeline(floats(), HALVES, threads=1)
    with pytest.raises(TypeError, match="f: 'v' is missing"):
        pipeline(floats(), HALVES, PAIR, 1, threads=1)


@pytest.mark.parametrize(
    ("name", "constants", "kind", "message"),
    [
        ("ff", None, ValueError, "no function 'ff'; did you mean 'f'"),
        ("nothing", None, ValueError, "its functions are f, g, bits"),
        (3, None, TypeError, "a function has a name, not 3"),
        (
            "g",
            None,
            ValueError,
            r"needs a value for function constants 'flag' \(index 0, bool\), 'count' \(index 1, int\)",
        ),
        (
            "g",
            {"flag": True},
            ValueError,
            r"needs a value for function constant 'count' \(index 1, int\)",
        ),
        (
            "g",
            {"flags": True},
            ValueError,
            r"no function constant 'flags'; the library has flag \(index 0\)",
        ),
        ("g", {5: True}, ValueError, "no function constant 5"),
        ("g", {-1: True}, ValueError, "function constant -1 does not exist"),
        ("g", {0: 2, 1: 0}, ValueError, "function constant 0: 2 does not fit into 'bool'"),
        ("g", {0: True, 1: 2**31}, ValueError, "2147483648 does not fit into 'int'"),
        ("g", {0: True, 1: 1.5}, ValueError, "1.5.* is no whole number, as needed for 'int'"),
        (
            "g",
            {0: True, 1: 2**70},
            ValueError,
            "function constant 1: 1180591620717411303424 does not fit",
        ),
        ("g", {0: True, 1: "1"}, TypeError, "takes a number, not '1'"),
        ("g", {0: True, 1: (1, 2)}, ValueError, "takes 1 numbers, but got 2"),
        ("g", {0: True, "flag": True, 1: 1}, ValueError, "'flag' is given two values"),
    ],
)
def test_wrong_functions(library, name, constants, kind, message: str) -> None:
    with pytest.raises(kind, match=message):
        library.function(name, constants)


def test_wrong_libraries_and_pipelines(device) -> None:
    with pytest.raises(TypeError, match=r"Metal text as a str, or a pathlib.Path, not bytes"):
        device.library(b"kernel void f() {}")
    with pytest.raises(metal.CompileError, match=r"mine.metal:2:3: error: .*'foobar'"):
        device.library("kernel void f() {\n  foobar x;\n}", file_name="mine.metal")
    with pytest.raises(metal.CompileError, match="does not exist"):
        device.library("kernel void f() {}", include=["/nowhere/at/all"])
    with pytest.raises(TypeError, match="takes a Function, not 'f'"):
        device.pipeline("f")
    with pytest.raises(ValueError, match="there is no check 'bound'"):
        metal.Device(checks="bound")
    function = device.library("kernel void f() {}").function("f")
    for steps, kind in ((0, ValueError), (-1, ValueError), (1 << 64, ValueError), (1.5, TypeError)):
        with pytest.raises(kind, match="max_steps must be"):
            device.pipeline(function, checks="steps", max_steps=steps)


@pytest.mark.parametrize(
    ("source", "kind", "message"),
    [
        (0, ValueError, "at least 1 byte, not 0"),
        (-5, ValueError, "at least 1 byte, not -5"),
        (2**62, MemoryError, "no memory for a buffer of"),
        (1.5, TypeError, "not float"),
        (True, TypeError, "not bool"),
        (None, TypeError, "not NoneType"),
        (np.zeros(8)[::2], ValueError, "contiguous"),
    ],
)
def test_wrong_buffers(source, kind, message: str) -> None:
    with pytest.raises(kind, match=message):
        metal.Buffer(source)


def test_wrong_ranges_of_buffers() -> None:
    buffer = metal.Buffer(64)
    with pytest.raises(TypeError, match="range of bytes"):
        buffer[3]
    with pytest.raises(TypeError, match="range of bytes"):
        buffer[::2]
    with pytest.raises(ValueError, match="no whole number of float32s"):
        buffer[:10].contents(np.float32)
    assert buffer[64:].nbytes == 0
    for part in (slice(100, None), slice(0, 65), slice(-65, None)):
        with pytest.raises(IndexError, match=r"is outside of a buffer of 64 bytes"):
            buffer[part]


class Elsewhere:
    """An array on a GPU."""

    def __dlpack__(self, **options):
        raise AssertionError("its memory must not be asked for")

    def __dlpack_device__(self):
        return (2, 0)


def test_arrays_on_other_devices(device, library) -> None:
    with pytest.raises(ValueError, match=r"f: argument 'x' .* is an array on CUDA"):
        device.pipeline(library.function("f"))(
            Elsewhere(), HALVES, PAIR, 1, (1.0, 2.0), threads=1, threadgroup_memory={0: 16}
        )


def test_numbers_out_of_range_of_short_floats(device, library) -> None:
    bits = device.pipeline(library.function("bits"))
    raw = np.zeros(1, np.complex64)
    bits(1.0, 2.0, True, raw, threads=1)
    bits(float("inf"), float("nan"), 0, raw, threads=1)
    for arguments, message in (
        ((3.4e38 * 1.001, 1.0, True), "exceeds"),
        ((1e300, 1.0, True), "exceeds"),
        ((1.0, 65520.0, True), "exceeds"),
        ((1.0, 1.0, 2), "True or False, not 2"),
    ):
        with pytest.raises(ValueError, match=message):
            bits(*arguments, raw, threads=1)


@pytest.mark.parametrize(
    "text", ["foo(1)\n", "struct A {\n", "kernel void f(device int *x) {\n", "int a[3", "enum E {"]
)
def test_errors_at_the_end_of_a_text_are_about_the_text(device: metal.Device, text: str) -> None:
    """What the device puts behind the user's text is in no message."""
    with pytest.raises(metal.CompileError) as raised:
        device.library(text)
    assert "pragma" not in str(raised.value)
    lines = str(raised.value).splitlines()
    assert all(line.startswith("kernel.metal:") for line in lines if ": error: " in line)


def test_what_would_be_lost_or_is_no_memory_is_refused() -> None:
    device = metal.Device()
    fill = device.pipeline(device.library("kernel void k(device int *o) { *o = 7; }").function("k"))
    number, array, place = np.int32(3), np.zeros(4, np.int32), np.zeros((), np.int32)
    for value in (number, array[2]):
        with pytest.raises(TypeError, match="takes an array of int32, not int32 "):
            fill(value, threads=1)
    fill(place, threads=1)
    assert place == 7
    objects = np.array([object()], object)
    with pytest.raises(TypeError, match="not one of Python objects"):
        metal.Buffer(objects)
    for dtype in ("V0", "U", object):
        with pytest.raises(ValueError, match="a buffer holds numbers"):
            metal.Buffer(16).contents(dtype)


def test_options_of_pipelines_and_traces_are_checked() -> None:
    device = metal.Device(counters=True)
    function = device.library(
        "kernel void k(device int *o, uint i [[thread_position_in_grid]]) { o[i] = 7; }"
    ).function("k")
    for wrong, message in (
        ({"checks": {"bounds": False}}, "checks takes True, a name or several names"),
        ({"portable": "yes"}, "portable takes True or False"),
        ({"counters": 1}, "counters takes True or False"),
        ({"outputs": 5}, "outputs takes names of buffers"),
    ):
        with pytest.raises(TypeError, match=message):
            device.pipeline(function, **wrong)
    fill, out = device.pipeline(function), np.zeros(128, np.int32)
    for given in ([0], [(0,)], [(0, 0)], [(0, 0, 0)]):
        [group] = fill(out, threads=128, trace=given).trace.threadgroups
        assert len(group.accesses) == 1
    with pytest.raises(
        metal.LaunchError,
        match=r"there is no threadgroup \(4, 0, 0\) to trace: the grid has 4, 1, 1",
    ):
        fill(out, threads=128, trace=[4])
    with pytest.raises(TypeError, match="trace takes positions"):
        fill(out, threads=128, trace=["x"])
    with pytest.raises(ValueError, match="threads must be from 0 to 4096, not -1"):
        metal.configure(cache_directory=None, threads=-1)
