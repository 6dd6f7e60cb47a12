"""device_print, device_assert and the overflow sanitizer."""

from __future__ import annotations

import inspect
import pickle

import numpy as np
import pytest
import triton_metal as triton
import triton_metal.language as tl
from triton_metal import messages
from triton_metal.errors import DeviceAssertionError, LaunchTypeError, LostPrintsWarning


def printed(capsys) -> list[str]:
    return capsys.readouterr().out.splitlines()


# --- device_print -----------------------------------------------------------------------------------------


@triton.jit
def print_tile(x, BLOCK: tl.constexpr):
    tl.device_print("x: ", tl.load(x + tl.arange(0, BLOCK)))


@pytest.mark.parametrize(
    "dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
)
def test_integers(capsys, dtype):
    info = np.iinfo(dtype)
    x = np.array([0, 1, 7, info.max, info.min, info.max - 1, 2, 3] * 2, dtype)
    print_tile[(1,)](x, BLOCK=16)
    expected = [f"pid (0, 0, 0) idx ({i:2}) x: {value}" for i, value in enumerate(x.tolist())]
    assert printed(capsys) == expected


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_floats(capsys, dtype):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    dtype = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    x = np.array([0, -0.0, 1.5, -2.25, np.inf, -np.inf, np.nan, 3.14], dtype)
    print_tile[(1,)](x, BLOCK=8)
    expected = [f"pid (0, 0, 0) idx ({i}) x: {float(value):f}" for i, value in enumerate(x)]
    assert printed(capsys) == expected


@triton.jit
def print_all(x, n, f, flag, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    print("nothing else")
    print("int:", n)
    tl.device_print("float ", f)
    print("", flag != 0, i)
    tl.device_print("hex", i.to(tl.int16) * 17, hex=True)
    tl.device_print("ptr", x + i)


def test_prefixes_scalars_several_operands_hex_and_pointers(capsys):
    x = np.zeros(4, np.float32)
    print_all[(1,)](x, -42, 3.14, 1, BLOCK=4)
    at = "pid (0, 0, 0)"
    lines = printed(capsys)
    # The kernel may have been given a copy.
    address = int(lines[-4].partition("ptr: ")[2], 16)
    assert lines == [
        f"{at} nothing else",
        f"{at} idx () int: -42",
        f"{at} idx () float: 3.140000",
        f"{at} idx (): (operand 0) 1",
        *[f"{at} idx ({i}): (operand 1) {i}" for i in range(4)],
        *[f"{at} idx ({i}) hex: 0x{17 * i:04x}" for i in range(4)],
        *[f"{at} idx ({i}) ptr: 0x{address + 4 * i:x}" for i in range(4)],
    ]


@triton.jit
def print_grid(n, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    tile = tl.arange(0, ROWS)[:, None] * 100 + tl.arange(0, COLUMNS)[None, :]
    tl.device_print("tile", tile)
    for k in range(n):
        tl.device_print("k", k)
        if (x + y + z + k) % 2 == 0:
            tl.device_print("even", k)


@pytest.mark.parametrize("schedule", [None, 1, 2])
@pytest.mark.parametrize("num_warps", [1, 4])
def test_the_prints_of_a_program_are_in_order(capsys, num_warps, schedule):
    grid = (3, 2, 2)
    with triton.launch_options(schedule=schedule):
        print_grid[grid](3, ROWS=2, COLUMNS=16, num_warps=num_warps)
    expected = []
    for z, y, x in np.ndindex(grid[::-1]):
        at = f"pid ({x}, {y}, {z})"
        expected += [
            f"{at} idx ({i}, {j:2}) tile: {100 * i + j}" for i in range(2) for j in range(16)
        ]
        for k in range(3):
            expected.append(f"{at} idx () k: {k}")
            if (x + y + z + k) % 2 == 0:
                expected.append(f"{at} idx () even: {k}")
    assert printed(capsys) == expected


@pytest.mark.parametrize("options", [{"check": "portable"}, {"check": "bounds"}, {"count": True}])
def test_a_kernel_with_prints_runs_under_checks(capsys, options):
    with triton.launch_options(**options):
        print_grid[(2,)](1, ROWS=2, COLUMNS=16)
    assert len(printed(capsys)) == 2 * 32 + 3


@triton.jit
def square_and_print(x):
    tl.device_print("x", x)
    return x * x


@triton.jit
def print_in_functions(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, square_and_print(tl.load(x + i)))


def test_results_do_not_depend_on_prints(capsys):
    x = np.arange(64, dtype=np.float32)
    out = np.zeros_like(x)
    print_in_functions[(1,)](x, out, BLOCK=64)
    np.testing.assert_array_equal(out, x * x)
    assert len(printed(capsys)) == 64


def test_a_full_buffer_says_what_is_lost(capsys, monkeypatch):
    monkeypatch.setenv(messages.SIZE_VARIABLE, str(4 * (2 * (4 + 16) + 3)))
    x = np.arange(16, dtype=np.int32)
    with pytest.warns(LostPrintsWarning, match=r"print_tile: 3 prints found no room .*PRINT_BYTES"):
        print_tile[(5,)](x, BLOCK=16)
    lines = printed(capsys)
    assert len(lines) == 2 * 16
    assert [line.partition("x: ")[2] for line in lines[:16]] == [str(i) for i in range(16)]
    monkeypatch.setenv(messages.SIZE_VARIABLE, "much")
    with pytest.raises(ValueError, match="PRINT_BYTES is 'much'; it must be a number of bytes"):
        print_tile[(1,)](x, BLOCK=16)


def test_text_without_messages_has_no_buffer():
    @triton.jit
    def plain(x, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.device_assert(tl.load(x + i) > 0, "positive")
        tl.store(x + i, 1.0)

    compiled = plain.warmup(tl.float32, 16)
    assert "messages" not in compiled.asm["metal"]
    assert not hasattr(compiled.metadata, "messages")


# --- device_assert ----------------------------------------------------------------------------------------


@triton.jit(debug=True)
def check_all(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i)
    tl.device_assert(value < n, "too large")  # here
    tl.store(out + i, value + 1)


def line_of(function, marker: str) -> int:
    lines, first = inspect.getsourcelines(function.function)
    return first + next(number for number, line in enumerate(lines) if marker in line)


@pytest.mark.parametrize("schedule", [None, 3, 4, 5])
@pytest.mark.parametrize("num_warps", [1, 2, 8])
def test_the_first_failure_is_raised(num_warps, schedule):
    x = np.arange(1024, dtype=np.int32) % 100
    x[[300, 301, 777]] = 500
    out = np.zeros_like(x)
    with (
        pytest.raises(DeviceAssertionError) as caught,
        triton.launch_options(schedule=schedule),
    ):
        check_all[(8,)](x, out, 100, BLOCK=128, num_warps=num_warps)
    error = caught.value
    assert isinstance(error, RuntimeError)
    assert (error.program, error.index) == ((2, 0, 0), (300 - 256,))
    assert error.location.line == line_of(check_all, "# here")
    assert error.location.file == __file__
    text = "check_all: device-side assertion failed in program (2, 0, 0) at element 44: too large"
    assert text in str(error)
    # Every program has run to its end.
    np.testing.assert_array_equal(out, x + 1)
    again = pickle.loads(pickle.dumps(error))
    assert (again.program, again.index, str(again)) == (error.program, error.index, str(error))
    x[:] = 5
    check_all[(8,)](x, out, 100, BLOCK=128, num_warps=num_warps)


@triton.jit
def helper(x):
    assert x > 0, "helper"
    return x


@triton.jit(debug=True)
def check_scalar(n, ROWS: tl.constexpr):
    helper(n)
    tile = tl.arange(0, ROWS)[:, None] + tl.arange(0, 4)[None, :]
    for k in range(3):
        tl.device_assert(tile + k < n, "in a loop", mask=tile < 6)


def test_scalars_callers_loops_and_masks():
    with pytest.raises(DeviceAssertionError) as caught:
        check_scalar[(2, 3)](-1, ROWS=8)
    error = caught.value
    assert (error.program, error.index) == ((0, 0, 0), ())
    assert error.location.line == line_of(helper, "assert")
    assert [place.line for place in error.callers] == [line_of(check_scalar, "helper(n)")]
    check_scalar[(2, 3)](8, ROWS=8)
    with pytest.raises(DeviceAssertionError, match="in a loop") as caught:
        check_scalar[(1,)](7, ROWS=8)
    assert caught.value.index == (2, 3)


def test_a_failure_is_told_behind_the_prints(capsys):
    @triton.jit(debug=True)
    def kernel(n):
        tl.device_print("before", n)
        tl.device_assert(n == 0)
        tl.device_print("behind", n)

    with pytest.raises(DeviceAssertionError, match=r"failed in program \(0, 0, 0\)\n"):
        kernel[(1,)](2)
    assert len(printed(capsys)) == 2


def test_an_assertion_explains_an_access_out_of_bounds():
    @triton.jit(debug=True)
    def kernel(x, n):
        tl.device_assert(n < 16, "n is an index")
        tl.store(x + n, 1.0)

    with (
        pytest.raises(DeviceAssertionError, match="n is an index"),
        triton.launch_options(check="bounds"),
    ):
        kernel[(1,)](np.zeros(16, np.float32), 1 << 20)


def test_debug_is_an_option_of_launches_and_of_the_environment(monkeypatch):
    @triton.jit
    def kernel(n):
        tl.device_assert(n > 0)

    kernel[(1,)](-1)
    with pytest.raises(DeviceAssertionError):
        kernel[(1,)](-1, debug=True)
    kernel[(1,)](-1, debug=None)
    monkeypatch.setenv("TRITON_DEBUG", "1")
    with pytest.raises(DeviceAssertionError):
        kernel[(1,)](-1, debug=False)
    monkeypatch.setenv("TRITON_DEBUG", "0")
    kernel[(1,)](-1)
    with pytest.raises(LaunchTypeError, match="debug must be True, False or None, not 3"):
        kernel[(1,)](-1, debug=3)


# --- The overflow sanitizer -------------------------------------------------------------------------------


@triton.jit
def compute(x, y, out, OP: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a, b = tl.load(x + i), tl.load(y + i)
    if OP == "add":
        c = a + b
    elif OP == "sub":
        c = a - b
    else:
        c = a * b
    tl.store(out + i, c)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32"])
@pytest.mark.parametrize("op", ["add", "sub", "mul"])
def test_overflow(op, dtype):
    info = np.iinfo(dtype)
    exact = {"add": int.__add__, "sub": int.__sub__, "mul": int.__mul__}[op]
    values = [0, 1, 2, info.max, info.min, info.max // 2, info.min // 2, info.max - 1]
    random = np.random.default_rng(0)
    for _ in range(6):
        x, y = (random.choice(values, 8).astype(dtype) for _ in range(2))
        out = np.zeros_like(x)
        results = [exact(int(a), int(b)) for a, b in zip(x, y, strict=True)]
        wrong = [i for i, c in enumerate(results) if not info.min <= c <= info.max]
        if wrong:
            with pytest.raises(DeviceAssertionError) as caught:
                compute[(1,)](x, y, out, OP=op, BLOCK=8, debug=True)
            assert caught.value.index == (wrong[0],)
            assert f"int{info.bits} overflow detected for operation {op}" in str(caught.value)
        else:
            compute[(1,)](x, y, out, OP=op, BLOCK=8, debug=True)
        compute[(1,)](x, y, out, OP=op, BLOCK=8, debug=True, sanitize_overflow=False)
        compute[(1,)](x, y, out, OP=op, BLOCK=8)
        wrapped = [(c - info.min) % (1 << info.bits) + info.min for c in results]
        np.testing.assert_array_equal(out, np.array(wrapped).astype(dtype))


@triton.jit
def total(x, out, scanned, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out, tl.reduce(tl.load(x + i), 0, combine))
    tl.store(scanned + i, tl.associative_scan(tl.load(x + i), 0, combine))


@triton.jit
def combine(a, b):
    return a + b


def test_overflow_in_a_reduction_and_a_scan():
    x = np.full(64, 1 << 20, np.int32)
    out, scanned = np.zeros(1, np.int32), np.zeros(64, np.int32)
    total[(1,)](x, out, scanned, BLOCK=64, debug=True)
    assert out[0] == 64 << 20
    np.testing.assert_array_equal(scanned, np.cumsum(x))
    x[:] = 1 << 26
    with pytest.raises(DeviceAssertionError, match="int32 overflow detected for operation add"):
        total[(1,)](x, out, scanned, BLOCK=64, debug=True)


def test_random_numbers_wrap_around():
    @triton.jit(debug=True)
    def kernel(out, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(out + i, tl.rand(7, i))

    out = np.zeros(64, np.float32)
    kernel[(1,)](out, BLOCK=64)
    assert len(set(out.tolist())) > 32


# --- Routes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("route", ["mps", "mlx", "mlx-in-place"])
def test_routes(capsys, route):
    from triton_metal.testing import contract_device

    if route != "mps":
        pytest.importorskip("mlx.core")
    x = np.arange(64, dtype=np.int32)
    out = np.zeros_like(x)
    with contract_device(route):
        print_tile[(1,)](x, BLOCK=16)
        assert printed(capsys) == [f"pid (0, 0, 0) idx ({i:2}) x: {i}" for i in range(16)]
        check_all[(1,)](x, out, 100, BLOCK=64)
        with pytest.raises(DeviceAssertionError) as caught:
            check_all[(1,)](x, out, 40, BLOCK=64)
        assert caught.value.index == (40,)
        np.testing.assert_array_equal(out, x + 1)


@pytest.mark.parametrize("on_gpu", [True, False])
@pytest.mark.parametrize("init_value", [None, 0, 1, -2.5])
def test_mlx_functions(capsys, init_value, on_gpu):
    mx = pytest.importorskip("mlx.core")
    import contextlib

    from triton_metal.mlx import call
    from triton_metal.testing import contract_device

    @triton.jit(debug=True)
    def kernel(x, out, n, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        value = tl.load(x + i)
        tl.device_print("x", value)
        tl.device_assert(value < n, "too large")
        tl.store(out + i, value * 2)

    x = mx.arange(16)
    with contract_device("mlx") if on_gpu else contextlib.nullcontext():
        for _ in range(2):
            out = call(kernel, x, 16, 16, grid=(1,), outputs={"out": x}, init_value=init_value)
            assert out.tolist() == list(range(0, 32, 2))
            assert printed(capsys) == [f"pid (0, 0, 0) idx ({i:2}) x: {i}" for i in range(16)]
        with pytest.raises(DeviceAssertionError) as caught:
            call(kernel, x, 9, 16, grid=(3,), outputs={"out": x}, init_value=init_value)
        assert (caught.value.program, caught.value.index) == ((0, 0, 0), (9,))


def test_mlx_transformations_are_refused():
    mx = pytest.importorskip("mlx.core")
    from triton_metal.errors import LaunchValueError
    from triton_metal.mlx import call
    from triton_metal.testing import contract_device

    def function(x):
        return call(copy_and_print, x, 16, grid=(1,), outputs={"out": x})

    with contract_device("mlx"), pytest.raises(LaunchValueError, match="launch it outside of them"):
        mx.compile(function)(mx.arange(16))


@triton.jit
def copy_and_print(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.device_print("x", tl.load(x + i))
    tl.store(out + i, tl.load(x + i))


def test_device_launch(capsys):
    x, out = np.arange(16, dtype=np.int32), np.zeros(16, np.int32)
    compiled = copy_and_print.warmup(tl.int32, tl.int32, BLOCK=16)
    triton.devices.get("host").launch(compiled, 1, [x, out])
    assert len(printed(capsys)) == 16
    np.testing.assert_array_equal(out, x)
