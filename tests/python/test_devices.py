"""The device interface, the choice of a device, and its memory figures."""

import doctest
import gc
import json
import subprocess
import sys
import threading

import numpy as np
import pytest
import triton_metal as triton
import triton_metal.language as tl
from triton_metal import _native, config, devices
from triton_metal.devices import (
    base,
    chip,
    detect,
    framework,
    host,
    memory,
    registry,
    selection,
    target,
)
from triton_metal.devices.mlx import MLXDevice
from triton_metal.devices.mps import MPSDevice
from triton_metal.errors import DeviceError, LaunchTypeError, LaunchValueError
from triton_metal.mlx import in_place

# Which device a launch takes is what is tested here.
pytestmark = [pytest.mark.own_route, pytest.mark.own_target]


@pytest.fixture(autouse=True)
def _nothing_asked_for(monkeypatch):
    monkeypatch.delenv("TRITON_METAL_DEVICE", raising=False)


@triton.jit
def scale_kernel(x_ptr, y_ptr, n, factor, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * factor, mask=mask)


@pytest.mark.parametrize(
    "module",
    [base, chip, config, detect, framework, host, memory, registry, selection, target],
    ids=lambda m: m.__name__,
)
def test_examples_in_docstrings(module):
    result = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert result.attempted > 0
    assert result.failed == 0


def test_import_needs_no_framework():
    code = (
        "import sys, triton_metal; "
        "print([m for m in ('torch', 'mlx', 'mlx.core', 'numpy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_launch_of_a_compiled_text():
    device = devices.get("host")
    x = device.allocate(1000)
    y = device.allocate(1000)
    x[:] = np.arange(1000)
    y[:] = -1
    kernel = scale_kernel.warmup(x, y, 1000, 2.5, BLOCK=256)
    library = device.compile(kernel.asm["metal"], kernel.metadata)
    device.launch(library, (4,), [x, y, 1000, 2.5])
    device.synchronize()
    assert np.array_equal(y, x * np.float32(2.5))
    device.launch(kernel, 2, [x, y, 300, -1.0])
    assert np.array_equal(y[:300], -x[:300])
    assert np.array_equal(y[300:], x[300:] * np.float32(2.5))


def test_launch_errors_change_nothing():
    device = devices.get("host")
    x, y = device.allocate(64), device.allocate(64)
    y[:] = 7
    kernel = scale_kernel.warmup(x, y, 64, 1.0, BLOCK=64)
    library = device.compile(kernel.asm["metal"], kernel.metadata)
    for grid, arguments, error, words in [
        ((-1,), [x, y, 64, 1.0], LaunchValueError, "grid dimension 0 is -1"),
        ((1, 1, 1, 1), [x, y, 64, 1.0], LaunchValueError, "grid must have 1 to 3 dimensions"),
        ((1,), [x, y, 64], LaunchTypeError, "takes 4 arguments (x_ptr, y_ptr, n, factor)"),
        ((1,), [x, y, 1 << 40, 1.0], LaunchValueError, "does not fit its type i32"),
        ((1,), [x, y, 1.5, 1.0], LaunchTypeError, "argument n must be an integer"),
        ((1,), [x, y, 64, "a"], LaunchTypeError, "argument factor must be a number"),
        ((1,), [x, 3, 64, 1.0], LaunchTypeError, "argument y_ptr must be an array"),
        ((1,), [x, y.astype(np.complex64), 64, 1.0], LaunchTypeError, "complex64"),
    ]:
        with pytest.raises(error) as caught:
            device.launch(library, grid, arguments)
        assert words in str(caught.value)
    frozen = y.view()
    frozen.flags.writeable = False
    with pytest.raises(LaunchValueError, match="read-only array"):
        device.launch(library, 1, [x, frozen, 64, 1.0])
    with pytest.raises(LaunchTypeError, match="takes a kernel from the device"):
        device.launch("kernel", 1, [x])
    assert (y == 7).all()


def test_scalars_travel_by_their_types():
    def pack(type, words, value):
        argument = {"name": "a", "kind": "scalar", "slot": 0, "words": words, "type": type}
        contract = {"name": "k", "threads": 32, "args": [argument]}
        return _native.Kernel("", json.dumps(contract)).pack([value])

    assert pack("i64", 2, -1) == b"\xff" * 8
    assert pack("i64", 2, (1 << 64) - 1) == b"\xff" * 8
    assert pack("i8", 1, -2) == b"\xfe\xff\xff\xff"
    assert pack("i1", 1, True) == b"\x01\0\0\0"
    assert pack("f16", 1, 1.0) == b"\x00\x3c\0\0"
    assert pack("f16", 1, 1e9) == b"\x00\x7c\0\0"
    assert pack("f32", 1, -1e300) == np.float32(-np.inf).tobytes()
    assert pack("f64", 2, 0.1) == np.float64(0.1).tobytes()


def test_bfloat16_scalars_round_once():
    import ml_dtypes

    rng = np.random.default_rng(0)
    bits = rng.integers(0, 1 << 16, 400).astype(np.uint16)
    exact = bits.view(ml_dtypes.bfloat16).astype(np.float64)
    exact = exact[np.isfinite(exact)]
    step = np.spacing(np.abs(exact).astype(np.float32)).astype(np.float64) * 2.0**16
    # On a tie between two bfloat16, and a double's breadth beside it, where rounding to float first would see a tie.
    for value in np.concatenate([exact, exact + step / 2, (exact + step / 2) * (1 + 2.0**-50)]):
        low = np.frexp(value)
        expected = _nearest_bfloat16(float(value))
        words = _native.pack_float("bf16", float(value))
        assert int.from_bytes(words, "little") == expected, (value, low)


def _nearest_bfloat16(value):
    """By comparing exact distances to the neighbours, ties to the even one."""
    from fractions import Fraction

    top = int(np.array(np.clip(value, -3.38e38, 3.38e38), np.float32).view(np.uint32)) >> 16
    candidates = [c for c in (top - 1, top, top + 1) if 0 <= c < 1 << 16]

    def number(bits):
        return float(np.array(bits << 16, np.uint32).view(np.float32))

    candidates = [c for c in candidates if np.isfinite(number(c))]
    # The sign of zero is the value's.
    return min(
        candidates,
        key=lambda c: (
            abs(Fraction(number(c)) - Fraction(value)),
            c & 1,
            np.signbit(number(c)) != np.signbit(value),
        ),
    )


def test_host_events_measure():
    device = devices.get("host")
    start, end = device.event(), device.event()
    with pytest.raises(DeviceError, match="has not been recorded"):
        start.elapsed_time(end)
    start.record()
    end.record()
    end.synchronize()
    assert 0 <= start.elapsed_time(end) < 1000
    assert end.elapsed_time(start) <= 0


def test_memory_figures_of_the_host():
    gc.collect()
    device = host.HostDevice()
    devices_before = devices.get("host").memory_stats().current_allocated
    pool = devices.MemoryPool(device)
    x = device.allocate((100, 10), "float32")
    y = device.allocate(50, "bfloat16")
    assert (pool.current_allocated, pool.max_allocated) == (4100, 4100)
    assert x.ctypes.data % 128 == 0
    assert str(y.dtype) == "bfloat16"
    view = x[3:5]
    del x
    assert pool.current_allocated == 4100
    del view
    assert (pool.current_allocated, pool.max_allocated) == (100, 4100)
    pool.reset_max_allocated()
    assert pool.max_allocated == 100
    assert devices.get("host").memory_stats().current_allocated == devices_before
    assert repr(pool) == "MemoryPool(host: 100 bytes now, 100 at most)"


@pytest.mark.parametrize(
    ("shape", "dtype", "error", "words"),
    [
        (-1, "float32", LaunchValueError, "integers of 0 or more"),
        ((2, 2.0), "float32", LaunchValueError, "integers of 0 or more"),
        (4, "float99", LaunchTypeError, "there is no dtype 'float99'"),
        (
            1 << 62,
            "uint8",
            DeviceError,
            "the host device cannot allocate 4,611,686,018,427,387,904 bytes",
        ),
    ],
)
def test_bad_allocations(shape, dtype, error, words):
    with pytest.raises(error) as caught:
        devices.get("host").allocate(shape, dtype)
    assert words in str(caught.value)


def test_device_as_setter_and_for_a_block():
    assert devices.chosen() is None
    with triton.device("host") as device:
        assert device is devices.get("host")
        assert devices.chosen() == "host"
        with triton.device(None):
            assert devices.chosen() is None
        assert devices.chosen() == "host"
        # Another thread asks for its own.
        seen = []
        thread = threading.Thread(target=lambda: seen.append(devices.chosen()))
        thread.start()
        thread.join()
        assert seen == [None]
    assert devices.chosen() is None
    triton.device("host")
    try:
        assert devices.chosen() == "host"
    finally:
        triton.device(None)
    assert devices.chosen() is None


def test_a_device_that_was_asked_for_takes_its_own_arrays():
    pytest.importorskip("mlx.core")
    x, y = np.ones(64, np.float32), np.zeros(64, np.float32)
    with triton.device("mlx"), pytest.raises(LaunchTypeError) as caught:
        scale_kernel[(1,)](x, y, 64, 2.0, BLOCK=64)
    assert str(caught.value) == (
        "scale_kernel: the device mlx was requested, which takes MLX arrays, but the arguments are "
        "NumPy arrays and CPU tensors"
    )
    assert (y == 0).all()
    with triton.device("host"):
        scale_kernel[(1,)](x, y, 64, 2.0, BLOCK=64)
    assert (y == 2).all()


def test_environment_asks_for_a_device(monkeypatch):
    x, y = np.ones(64, np.float32), np.zeros(64, np.float32)
    monkeypatch.setenv("TRITON_METAL_DEVICE", "host")
    scale_kernel[(1,)](x, y, 64, 2.0, BLOCK=64)
    assert (y == 2).all()
    assert devices.current().name == "host"
    monkeypatch.setenv("TRITON_METAL_DEVICE", "cuda")
    with pytest.raises(LaunchValueError) as caught:
        scale_kernel[(1,)](x, y, 64, 2.0, BLOCK=64)
    assert (
        str(caught.value)
        == "TRITON_METAL_DEVICE is 'cuda'; the devices are host, mlx, mps, mlx-graph"
    )
    monkeypatch.setenv("TRITON_METAL_DEVICE", "mps")
    with pytest.raises(LaunchTypeError, match="the device mps was requested"):
        scale_kernel[(1,)](x, y, 64, 3.0, BLOCK=64)
    assert (y == 2).all()
    # What a thread asks for goes before.
    with triton.device("host"):
        scale_kernel[(1,)](x, y, 64, 3.0, BLOCK=64)
    assert (y == 3).all()


def test_unknown_devices():
    for call in (lambda: triton.device("cuda"), lambda: devices.get("gpu")):
        with pytest.raises(
            DeviceError, match=r"there is no device '(cuda|gpu)'; the devices are host"
        ):
            call()
    assert devices.chosen() is None


@pytest.mark.skipif(sys.platform == "darwin", reason="says what another system lacks")
def test_mps_is_not_here():
    with pytest.raises(DeviceError) as caught:
        triton.device("mps")
    message = str(caught.value)
    assert message.startswith("the device mps is not available: torch ")
    assert "built without MPS" in message or "is not installed" in message
    assert devices.chosen() is None
    with pytest.raises(DeviceError, match="the device mps is not available"):
        devices.get("mps").allocate(4)


class FakeModule:
    """Stands for a framework of another version."""

    def __init__(self, version):
        self.__version__ = version


def test_frameworks_that_are_missing_or_too_old(monkeypatch):
    mlx = MLXDevice()
    monkeypatch.setattr(mlx, "installed", lambda: None)
    assert mlx.problem().startswith("mlx is not installed: pip install mlx")
    monkeypatch.setattr(mlx, "installed", lambda: FakeModule("0.29.3"))
    assert mlx.problem() == ("mlx 0.29.3 is too old: 0.30 or later is needed (pip install -U mlx)")
    for call in (lambda: mlx.allocate(3), mlx.synchronize, mlx.event, mlx.properties):
        with pytest.raises(
            DeviceError, match=r"the device mlx is not available: mlx 0\.29\.3 is too old"
        ):
            call()

    def broken():
        raise ImportError("no symbol")

    monkeypatch.setattr(mlx, "installed", broken)
    assert mlx.problem() == "mlx is installed, but cannot be imported (no symbol)"

    mps = MPSDevice()
    monkeypatch.setattr(mps, "installed", lambda: None)
    assert mps.problem() == "torch is not installed: pip install torch"
    monkeypatch.setattr(mps, "installed", lambda: FakeModule("2.1.0+cpu"))
    assert "torch 2.1.0+cpu is too old" in mps.problem()


def test_mlx_device_on_the_cpu():
    mx = pytest.importorskip("mlx.core")
    device = devices.get("mlx")
    assert device.problem() is None
    x = device.allocate((3, 4), "bfloat16")
    assert x.shape == (3, 4)
    assert x.dtype == mx.bfloat16
    with pytest.raises(LaunchTypeError, match="MLX has no dtype 'complex128'"):
        device.allocate(3, "complex128")
    pool = triton.memory_pool("mlx")
    before = pool.current_allocated
    big = mx.ones((1 << 20,))
    mx.eval(big)
    assert pool.current_allocated - before >= 1 << 22
    assert pool.max_allocated >= pool.current_allocated
    start, end = device.event(), device.event()
    start.record()
    end.record()
    assert start.elapsed_time(end) >= 0
    assert device.properties().kind == "mlx"
    del big


def test_mlx_launch_of_a_compiled_text():
    pytest.importorskip("mlx.core")
    device = devices.get("mlx")
    x, y = (device.from_numpy(np.arange(200, dtype=np.float32)) for _ in range(2))
    kernel = scale_kernel.warmup(x, y, 200, 1.0, BLOCK=64)
    library = device.compile(kernel.asm["metal"], kernel.metadata)
    device.launch(library, (4,), [x, y, 200, 3.0])
    device.synchronize()
    assert np.array_equal(device.to_numpy(y), np.arange(200, dtype=np.float32) * 3)
    assert np.array_equal(device.to_numpy(x), np.arange(200, dtype=np.float32))
    device.launch(kernel, (4,), [x, y, 100, -1.0])
    expected = np.arange(200, dtype=np.float32) * np.where(np.arange(200) < 100, -1, 3)
    assert np.array_equal(device.to_numpy(y), expected.astype(np.float32))


@pytest.mark.parametrize("name", ["host", "mlx"])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "bfloat16", "float32"])
def test_arrays_to_a_device_and_back(name, dtype):
    import ml_dtypes

    device = devices.get(name)
    if device.problem():
        pytest.skip(device.problem())
    element = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    values = np.array([[0, 1, 3], [100, 7, 1]]).astype(element)
    array = device.from_numpy(values)
    assert devices.device_of(array) == name
    back = device.to_numpy(array)
    assert back.dtype == values.dtype
    assert back.tolist() == values.tolist()


def test_memory_figures_of_torch(monkeypatch):
    """torch.mps says what is allocated now; the most is of the times that it was asked."""
    torch = pytest.importorskip("torch")
    device = MPSDevice()
    monkeypatch.setattr(device, "require", lambda: None)
    figures = iter([500, 900, 300, 300, 400])
    monkeypatch.setattr(torch.mps, "current_allocated_memory", lambda: next(figures))
    pool = devices.MemoryPool(device)
    assert pool.current_allocated == 500
    assert pool.max_allocated == 900
    assert pool.max_allocated == 900
    pool.reset_max_allocated()
    assert pool.max_allocated == 300
    assert pool.current_allocated == 400


def test_arrays_larger_than_the_device_takes(monkeypatch):
    pytest.importorskip("mlx.core")
    device = MLXDevice()
    small = base.DeviceProperties(
        name="small", kind="mlx", working_set_bytes=1 << 20, max_buffer_bytes=1 << 19
    )
    monkeypatch.setattr(device, "properties", lambda: small)
    device.allocate(1 << 17)
    with pytest.raises(DeviceError) as caught:
        device.allocate(1 << 18)
    assert str(caught.value) == (
        "an array of shape (262144,) has 1,048,576 bytes, but the device mlx takes 524,288 in a buffer"
    )


def test_launches_refuse_arrays_that_do_not_fit():
    mx = pytest.importorskip("mlx.core")
    x, y = mx.ones((64,)), mx.zeros((64,))
    try:
        _native.set_largest_array("mlx", 255)
        with pytest.raises(LaunchValueError) as caught:
            scale_kernel[(1,)](x, y, 64, 2.0, BLOCK=64)
        assert str(caught.value) == (
            "scale_kernel: argument x_ptr has 256 bytes, but the device mlx takes 255 in one array"
        )
        assert y.tolist() == [0.0] * 64
        _native.set_largest_array("mlx", 256)
        scale_kernel[(1,)](x, y, 64, 2.0, BLOCK=64)
        assert y.tolist() == [2.0] * 64
    finally:
        _native.set_largest_array("mlx", None)


def test_mlx_arrays_on_the_host_device(monkeypatch):
    mx = pytest.importorskip("mlx.core")
    x, y = mx.arange(64, dtype=mx.float32), mx.zeros((64,))
    streams = []
    launch = in_place.launch

    def route(*arguments):
        streams.append(mx.default_device().type)
        launch(*arguments)

    monkeypatch.setattr(in_place, "launch", route)
    with triton.device("host"):
        scale_kernel[(1,)](x, y, 64, 2.0, BLOCK=64)
    assert y.tolist() == [2.0 * i for i in range(64)]
    assert streams == [mx.DeviceType.cpu]


def test_current_device_of_arguments():
    torch = pytest.importorskip("torch")
    mx = pytest.importorskip("mlx.core")
    x, a, t = np.ones(4), mx.ones((4,)), torch.ones(4)
    assert devices.current([3, x, t]).name == "host"
    assert devices.current([a, 1.5, None]).name == "mlx"
    assert devices.device_of(np.float32(1)) is None
    with pytest.raises(LaunchTypeError) as caught:
        devices.current([x, 2, a])
    assert str(caught.value) == (
        "argument 0 is on the device host and argument 2 on mlx: a launch takes arrays of one device"
    )
    with pytest.raises(LaunchValueError, match="argument 1 is a tensor on meta"):
        devices.current([1, torch.ones(3, device="meta")])
    with (
        triton.device("mlx"),
        pytest.raises(LaunchTypeError, match="but the device mlx was requested"),
    ):
        devices.current([x])
    with triton.device("host"):
        assert devices.current([a]).name == "mlx"


def test_kernels_are_compiled_once_a_device():
    mx = pytest.importorskip("mlx.core")
    x, y = np.ones(64, np.float32), np.zeros(64, np.float32)
    first = scale_kernel[(1,)](x, y, 64, 2.0, BLOCK=64)
    assert scale_kernel[(1,)](x, y, 64, 3.0, BLOCK=64) is first
    other = scale_kernel.warmup(mx.ones((64,)), mx.zeros((64,)), 64, 2.0, BLOCK=64)
    assert other is not first
