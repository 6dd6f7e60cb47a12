"""The host device as a Metal programmer uses it from Python: libraries, functions, pipelines, buffers, launches."""

from __future__ import annotations

import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import triton_metal_host as metal

ROOT = Path(__file__).resolve().parents[2]

SOURCE = """#include <metal_stdlib>
using namespace metal;
constant bool use_bias [[function_constant(0)]];
constant float scale [[function_constant(3)]];
constant ushort4 offsets [[function_constant(7)]];
constant float factor = is_function_constant_defined(scale) ? scale : 1.0f;

struct Sizes { uint rows; float factor; };

kernel void add(device const float *a [[buffer(0)]], device const float *b [[buffer(1)]],
                device float *out [[buffer(2)]], constant float &bias [[buffer(5), function_constant(use_bias)]],
                uint i [[thread_position_in_grid]]) {
  out[i] = (a[i] + b[i]) * factor;
  if (use_bias) out[i] += bias;
}
kernel void offset(device uint *x, uint i [[thread_position_in_grid]]) {
  if (is_function_constant_defined(offsets)) x[i] += offsets[i % 4];
}
kernel void twice(device float4 *x, uint i [[thread_position_in_grid]]) { x[i] *= 2; }
kernel void numbers(device float *out, constant Sizes &sizes, constant float3 &v, constant packed_short3 &s,
                    constant bool &flag, constant bfloat &b, constant long &l, constant half &h) {
  out[0] = sizes.rows; out[1] = sizes.factor; out[2] = v.y; out[3] = s[2]; out[4] = flag; out[5] = float(b);
  out[6] = float(l); out[7] = h;
}
kernel void where(device uint *x, uint3 p [[thread_position_in_grid]], uint3 n [[threads_per_grid]],
                  uint3 g [[threads_per_threadgroup]]) {
  x[(p.z * n.y + p.y) * n.x + p.x] = g.x * 10000 + g.y * 100 + g.z;
}
[[max_total_threads_per_threadgroup(64)]]
kernel void reverse(device uint *x, threadgroup uint *tile [[threadgroup(1)]], uint l [[thread_index_in_threadgroup]],
                    uint g [[threadgroup_position_in_grid]], uint n [[threads_per_threadgroup]]) {
  threadgroup uint own[16];
  own[l % 16] = g;
  tile[l] = x[g * n + l];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  x[g * n + l] = tile[n - 1 - l] + own[(l + 1) % 16];
}
kernel void narrow(device bfloat *x, uint i [[thread_position_in_grid]]) { x[i] = x[i] + x[i]; }
kernel void threads(device int *threads, constant int &seed) { threads[0] = seed; }
kernel void empty() {}
"""


@pytest.fixture(scope="module")
def device() -> metal.Device:
    return metal.Device()


@pytest.fixture(scope="module")
def library(device: metal.Device) -> metal.Library:
    return device.library(SOURCE)


def test_a_function_with_constants_runs_on_numpy_arrays(device, library) -> None:
    a, b = np.arange(1000, dtype=np.float32), np.ones(1000, np.float32)
    out = np.zeros_like(a)
    add = device.pipeline(library.function("add", constants={"use_bias": True, 3: 2.5}))
    run = add(a, b, out, 7, threads=a.size, threads_per_threadgroup=256)
    np.testing.assert_array_equal(out, (a + b) * np.float32(2.5) + 7)
    assert run.done
    assert 0 < run.seconds < 60
    assert add.thread_execution_width == 32
    assert add.max_total_threads_per_threadgroup == 1024
    assert add.static_threadgroup_memory_length == 0
    assert add.written_buffers == (2,)


def test_constants_belong_to_functions_and_not_to_the_library(device, library) -> None:
    x = np.ones(4, np.float32)
    results = []
    for constants in ({0: False}, {0: False, "scale": 3}, {0: True}):
        out = np.zeros_like(x)
        device.pipeline(library.function("add", constants))(x, x, out, 10.0, threads=4)
        results.append(out[0])
    assert results == [2, 6, 12]
    y = np.zeros(8, np.uint32)
    offset = library.function("offset", {"offsets": (1, 2, 3, np.uint16(4))})
    device.pipeline(offset)(y, threads=8)
    assert y.tolist() == [1, 2, 3, 4, 1, 2, 3, 4]


def test_a_parameter_that_a_constant_removes_may_be_left_out(device, library) -> None:
    x, out = np.ones(4, np.float32), np.zeros(4, np.float32)
    add = device.pipeline(library.function("add", {"use_bias": False}))
    add(x, x, out, threads=4)
    add(x, x, out, None, threads=4)
    assert (out == 2).all()


def test_reflection(device, library) -> None:
    assert library.function_names[:3] == ["add", "offset", "twice"]
    add = library.functions["add"]
    assert [str(p) for p in add.buffers] == [
        "device const float *a [[buffer(0)]]",
        "device const float *b [[buffer(1)]]",
        "device float *out [[buffer(2)]]",
        "constant float &bias [[buffer(5)]]",
    ]
    assert [p.access for p in add.buffers] == ["read", "read", "read_write", "read"]
    assert [p.dtype for p in add.buffers] == ["float32"] * 4
    required = {c.name: (c.index, c.type, c.required) for c in add.constants}
    assert required == {
        "use_bias": (0, "bool", True),
        "scale": (3, "float", False),
        "offsets": (7, "ushort4", False),
    }
    assert not any(c.required for c in library.functions["twice"].constants)
    reverse = library.functions["reverse"]
    assert reverse.max_total_threads_per_threadgroup == 64
    assert [(v.name, v.size) for v in reverse.variables] == [("own", 64)]
    assert [(p.name, p.index, p.space) for p in reverse.threadgroup_arguments] == [
        ("tile", 1, "threadgroup")
    ]
    numbers = library.functions["numbers"]
    assert [(p.type, p.size, p.components) for p in numbers.buffers[1:4]] == [
        ("Sizes", 8, 1),
        ("float3", 16, 3),
        ("packed_short3", 6, 3),
    ]
    pipeline = device.pipeline(library.function("reverse"))
    assert pipeline.static_threadgroup_memory_length == 64
    assert pipeline.max_total_threads_per_threadgroup == 64
    assert "threadgroup uint *tile [[threadgroup(1)]]" in repr(pipeline)


def test_types_of_aliases_and_enumerations_are_known(device) -> None:
    library = device.library(
        "enum Mode : ushort { off, on }; typedef uint32_t index_t; using namespace metal;\n"
        "template <typename T> kernel void f(device T *x, constant Mode &m, device index_t *i, device atomic_int *a,\n"
        "                                    constant int (&shape)[3], device float2x2 *y) { x[0] = m; i[0] = shape[2]; }\n"
        'template [[host_name("f_half")]] kernel void f<half>(device half *, constant Mode &, device index_t *,\n'
        "  device atomic_int *, constant int (&)[3], device float2x2 *);"
    )
    info = library.functions["f_half"]
    assert [p.dtype for p in info.buffers] == [
        "float16",
        "uint16",
        "uint32",
        "int32",
        "int32",
        "float32",
    ]
    x, i, a, y = (
        np.zeros(1, np.float16),
        np.zeros(1, np.uint32),
        np.zeros(1, np.int32),
        np.zeros((2, 2), np.float32),
    )
    device.pipeline(library.function("f_half"))(x, 1, i, a, (4, 5, 6), y, threads=1)
    assert x[0] == 1
    assert i[0] == 6


def test_numbers_are_packed_by_the_type_of_their_parameter(device, library) -> None:
    out = np.zeros(8, np.float32)
    numbers = device.pipeline(library.function("numbers"))
    structure = np.dtype([("rows", np.uint32), ("factor", np.float32)])
    expected = [7, 0.5, 20, -3, 1, 1.5, 2.0**40, 65504]
    for sizes in (np.array((7, 0.5), structure), struct.pack("If", 7, 0.5)):
        out[:] = 0
        numbers(out, sizes, (10, 20, 30), [-1, -2, -3], True, 1.5, 1 << 40, 65504, threads=1)
        assert out.tolist() == expected
    out[:] = 0
    sizes = np.array((7, 0.5), structure)[()]
    vector = np.array([10, 20, 30, 0], np.float32)
    numbers(
        out,
        sizes,
        vector,
        np.array([-1, -2, -3], np.int16),
        np.bool_(True),
        np.float32(1.5),
        np.int64(1 << 40),
        np.float16(65504),
        threads=1,
    )
    assert out.tolist() == expected


def test_bfloat_numbers_are_rounded_once(device, library) -> None:
    out = np.zeros(8, np.float32)
    numbers = device.pipeline(library.function("numbers"))
    above = 1 + 2**-8 + 2**-40  # to nearest is up; through float32, it is a tie
    for value, rounded in ((above, 1 + 2**-7), (1 + 2**-8, 1.0), (-above, -1 - 2**-7)):
        for given in (value, np.float64(value)):
            numbers(out, bytes(8), (0, 0, 0), (0, 0, 0), False, given, 0, 0, threads=1)
            assert out[5] == rounded


def test_grids_in_threads_and_in_threadgroups(device, library) -> None:
    where = device.pipeline(library.function("where"))
    x = np.zeros((3, 5, 7), np.uint32)
    where(x, threads=(7, 5, 3), threads_per_threadgroup=(4, 2, 2))
    assert x[0, 0, 0] == 40202
    assert x[2, 4, 6] == 30101  # the last group is cut in each direction
    x = np.zeros((4, 6, 8), np.uint32)
    where(x, threadgroups=[2, 3, np.int64(4)], threads_per_threadgroup=(4, 2))
    assert (x == 40201).all()
    x = np.zeros(40, np.uint32)
    where(x, threads=40)
    assert x[0] == 320101
    where(x, threads=np.int64(40))
    where(np.zeros(0, np.uint32), threads=0)


def test_threadgroup_memory_by_index_and_name(device, library) -> None:
    reverse = device.pipeline(library.function("reverse"))
    expected = np.arange(64).reshape(2, 32)[:, ::-1].ravel() + np.repeat([0, 1], 32)
    for key in (1, "tile"):
        x = np.arange(64, dtype=np.uint32)
        reverse(x, threadgroups=2, threads_per_threadgroup=32, threadgroup_memory={key: 128})
        np.testing.assert_array_equal(x, expected)


def test_buffers_by_name_index_and_mapping(device, library) -> None:
    x = np.ones(4, np.float32)
    add = device.pipeline(library.function("add", {0: True}))
    launches = (
        lambda out: add(threads=4, a=x, b=x, out=out, bias=3.0),
        lambda out: add(x, threads=4, bias=3.0, out=out, arguments={1: x}),
        lambda out: add(x, x, out, threads=4, arguments={"bias": 3.0}),
        lambda out: add(threads=4, arguments={0: x, 1: x, 2: out, 5: 3.0}),
    )
    for launch in launches:
        out = np.zeros(4, np.float32)
        launch(out)
        assert (out == 5).all()
    y = np.zeros(1, np.int32)
    odd = device.pipeline(library.function("threads"))
    odd(threads=1, arguments={"threads": y, "seed": 9})
    assert y[0] == 9


def test_memory_is_used_in_place(device, library) -> None:
    twice = device.pipeline(library.function("twice"))
    array = np.ones((4, 4), np.float32)
    twice(array[1:3], threads=2)
    assert array.sum(axis=1).tolist() == [4, 8, 8, 4]
    raw = bytearray(np.ones(4, np.float32).tobytes())
    twice(raw, threads=1)
    assert np.frombuffer(raw, np.float32).tolist() == [2] * 4


def test_buffers_of_bytes(device, library) -> None:
    twice = device.pipeline(library.function("twice"))
    buffer = device.buffer(64)
    assert buffer.nbytes == len(buffer) == 64
    assert buffer.address % 4096 == 0
    view = buffer.contents(np.float32, (4, 4))
    assert not view.any()
    view[:] = 1
    twice(buffer[16:], threads=2)
    assert view.sum(axis=1).tolist() == [4, 8, 8, 4]
    del buffer
    view += 1  # the array keeps the memory
    integers = np.zeros(4, np.int32)
    twice(metal.Buffer(integers), threads=1)
    constant = metal.Buffer(b"0123456789abcdef")
    assert not constant.writable
    assert constant.contents()[0] == ord("0")
    assert not constant.contents().flags.writeable


def test_torch_tensors_on_the_cpu(device, library) -> None:
    torch = pytest.importorskip("torch")
    x = torch.ones(8)
    device.pipeline(library.function("twice"))(x, threads=2)
    assert x.tolist() == [2] * 8
    y = torch.full((5,), 1.5, dtype=torch.bfloat16)
    device.pipeline(library.function("narrow"))(y, threads=5)
    assert y.tolist() == [3] * 5
    with pytest.raises(ValueError, match=r"'x' .*not contiguous"):
        device.pipeline(library.function("twice"))(torch.ones(8, 8).t()[:2], threads=1)
    with pytest.raises(TypeError, match="an array of float32, not one of float64"):
        device.pipeline(library.function("twice"))(torch.ones(8).double(), threads=1)
    with pytest.raises(ValueError, match=r"requires? grad|require gradient"):
        device.pipeline(library.function("twice"))(torch.ones(8, requires_grad=True), threads=1)


def test_mlx_arrays_on_the_cpu(device, library) -> None:
    mx = pytest.importorskip("mlx.core")
    if mx.default_device() != mx.Device(mx.cpu):
        pytest.skip("MLX keeps its arrays on the GPU")
    a = mx.arange(8, dtype=mx.float32)
    out = np.zeros(8, np.float32)
    add = device.pipeline(library.function("add", {0: False}))
    add(a, a + 1, out, threads=8)
    assert out.tolist() == [2 * i + 1 for i in range(8)]


def test_bfloat_as_bits_and_as_ml_dtypes(device, library) -> None:
    narrow = device.pipeline(library.function("narrow"))
    bits = np.array([0x3FC0], np.uint16)
    narrow(bits, threads=1)
    assert bits[0] == 0x4040
    ml_dtypes = pytest.importorskip("ml_dtypes")
    array = np.full(4, 1.5, ml_dtypes.bfloat16)
    narrow(array, threads=4)
    assert array.astype(np.float32).tolist() == [3] * 4


def test_libraries_from_files_with_macros_and_folders(device, tmp_path: Path) -> None:
    (tmp_path / "headers").mkdir()
    (tmp_path / "headers" / "value.h").write_text("constant int value = 40;\n")
    path = tmp_path / "kernel.metal"
    path.write_text(
        '#include "value.h"\nkernel void f(device int *x) { x[0] = value + TWO + ON; }\n'
    )
    library = device.library(path, macros={"TWO": 2, "ON": True}, include=[tmp_path / "headers"])
    x = np.zeros(1, np.int32)
    device.pipeline(library.function("f"))(x, threads=1)
    assert x[0] == 43
    path.write_text("kernel void f() { nothing; }\n")
    with pytest.raises(metal.CompileError) as error:
        device.library(path)
    assert f"{path}:1:19: error: use of undeclared identifier 'nothing'" in str(error.value)


def test_checks_counters_and_portable_launches(library) -> None:
    checked = metal.Device(checks="bounds", counters=True)
    library = checked.library(SOURCE)
    twice = checked.pipeline(library.function("twice"))
    x = np.ones(8, np.float32)
    run = twice(x, threads=2)
    assert run.counters["device_bytes_read"] == 32
    assert run.counters["threads"] == 2
    with pytest.raises(
        metal.LaunchError, match=r"kernel 'twice', line \d+:\d+: .* of 'x' \(buffer 0\)"
    ):
        twice(x, threads=3)
    plain = checked.pipeline(library.function("twice"), checks=(), counters=False)
    with pytest.raises(ValueError, match="counters=True"):
        plain(x, threads=2).counters
    portable = checked.pipeline(
        checked.library(
            "kernel void f(device int *o, device int *i) { threadgroup int t[2]; o[0] = i[0] ? t[1] : 0; }"
        ).function("f"),
        portable=True,
        counters=False,
    )
    o, i = np.zeros(1, np.int32), np.ones(1, np.int32)
    with pytest.raises(metal.LaunchError, match="depends on a value that Metal does not promise"):
        portable(o, i, threads=1, seed=1)


def test_a_program_without_numpy(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import sys, array\n"
        "sys.modules['numpy'] = None\n"
        "import triton_metal_host as metal\n"
        "device = metal.Device()\n"
        "text = 'kernel void f(device float *x, constant float &a, uint i [[thread_position_in_grid]]) { x[i] *= a; }'\n"
        "f = device.pipeline(device.library(text).function('f'))\n"
        "x = array.array('f', [1, 2, 3])\n"
        "f(x, 2.0, threads=3)\n"
        "print(x.tolist())\n"
        "try:\n    f(array.array('d', [1]), 2.0, threads=1)\n"
        "except TypeError as error:\n    print(error)\n"
        "print('triton_metal' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, str(program)],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(ROOT / "python"), "TRITON_METAL_CACHE_DIR": str(tmp_path)},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "[2.0, 4.0, 6.0]",
        "f: argument 'x' (device float *x, buffer 0) takes an array of float32, not one of float64: convert it with "
        "astype, or bind its bytes as they are with metal.Buffer(array)",
        "False",
    ]
