"""Launches on MLX arrays as on a Mac: its target is compiled for, and what it lacks is refused before anything runs.

The Mac is a stand-in; the kernels run on the host device.
"""

import numpy as np
import pytest
import triton_metal as triton
import triton_metal.language as tl
from triton_metal import _native, devices
from triton_metal.devices import detect
from triton_metal.errors import DeviceError

from mac_support import found_on_mac

mx = pytest.importorskip("mlx.core")
# Which device a launch takes is what is tested here.
pytestmark = pytest.mark.own_route


@triton.jit
def halve_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * 0.5, mask=mask)


@triton.jit
def product_kernel(a_ptr, b_ptr, c_ptr, N: tl.constexpr):
    places = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(c_ptr + places, tl.dot(tl.load(a_ptr + places), tl.load(b_ptr + places)))


@pytest.fixture
def on_a_mac(monkeypatch):
    """Has launches take this machine for a Mac with MLX on its GPU; kernels are compiled anew around it."""
    monkeypatch.delenv("TRITON_METAL_DEVICE", raising=False)

    def pretend(chip, macos):
        found = found_on_mac(chip, macos)
        monkeypatch.setattr(detect, "is_mac", lambda: True)
        monkeypatch.setattr(detect, "detect_quickly", lambda: found)
        monkeypatch.setattr(devices.get("mlx"), "on_gpu", lambda: True)
        monkeypatch.setattr(devices.get("mlx"), "limit_arrays", lambda: None)
        _native.configuration_changed()

    yield pretend
    monkeypatch.undo()
    _native.configuration_changed()


def test_a_launch_is_compiled_for_the_mac(on_a_mac):
    x, y = mx.arange(100, dtype=mx.float32), mx.zeros((100,))
    plain = halve_kernel[(1,)](x, y, 100, BLOCK=128)
    assert "#pragma METAL fp" in plain.asm["metal"]
    on_a_mac("Apple M2", "14.2")
    y = mx.zeros((100,))
    kernel = halve_kernel[(1,)](x, y, 100, BLOCK=128)
    assert y.tolist() == [i / 2 for i in range(100)]
    assert kernel is not plain
    assert "#pragma STDC FP_CONTRACT OFF" in kernel.asm["metal"]
    assert "msl.target = #msl.target<metal(3, 1)," in kernel.asm["msl"]
    # NumPy arrays are the host device's, there as well.
    a, b = np.arange(100, dtype=np.float32), np.zeros(100, np.float32)
    assert "#pragma METAL fp" in halve_kernel[(1,)](a, b, 100, BLOCK=128).asm["metal"]
    assert np.array_equal(b, a / 2)
    # And MLX's are, where the host device is asked for.
    with triton.device("host"):
        assert "#pragma METAL fp" in halve_kernel[(1,)](x, y, 100, BLOCK=128).asm["metal"]


@pytest.mark.parametrize(
    ("chip", "macos", "error", "words"),
    [
        ("Apple M1", "12.6", DeviceError, "macOS 12.6 is not supported: kernels need Metal 3"),
        ("Intel(R) Core(TM) i7", "14.0", DeviceError, "is not supported: kernels need a Mac with"),
    ],
)
def test_what_a_mac_lacks_is_refused(on_a_mac, chip, macos, error, words):
    on_a_mac(chip, macos)
    x, y = mx.ones((64,), mx.bfloat16), mx.zeros((64,), mx.bfloat16)
    with pytest.raises(error) as caught:
        halve_kernel[(1,)](x, y, 64, BLOCK=64)
    assert words in str(caught.value)
    assert y.tolist() == [0.0] * 64
    # The same on the host device.
    with triton.device("host"):
        halve_kernel[(1,)](x, y, 64, BLOCK=64)
    assert y.tolist() == [0.5] * 64


def test_bfloats_before_metal_had_them(on_a_mac):
    """Metal 3.0 has no bfloat: the text computes with their bits."""
    on_a_mac("Apple M1", "13.5")
    x, y = mx.ones((64,), mx.bfloat16), mx.zeros((64,), mx.bfloat16)
    kernel = halve_kernel[(1,)](x, y, 64, BLOCK=64)
    assert y.tolist() == [0.5] * 64
    assert "bfloat" not in kernel.asm["metal"]


def test_guests_multiply_without_simdgroup_matrices(on_a_mac):
    on_a_mac("Apple M1 (Virtual)", "15.0")
    values = np.arange(32 * 32, dtype=np.float32).reshape(32, 32) % 7
    a, b = mx.array(values.astype(np.float16)), mx.array(values.T.astype(np.float16))
    c = mx.zeros((32, 32))
    kernel = product_kernel[(1,)](a, b, c, N=32)
    assert "simdgroup_multiply" not in kernel.asm["metal"]
    assert np.array_equal(np.array(c), values @ values.T)
    x, y = mx.ones((64,)), mx.zeros((64,))
    halve_kernel[(1,)](x, y, 64, BLOCK=64)
    assert y.tolist() == [0.5] * 64
