"""check="portable" under the launcher and in metal-run."""

from __future__ import annotations

import numpy as np
import pytest
import triton_metal as triton
import triton_metal.language as tl
from triton_metal.errors import LaunchTypeError, LaunchValueError

from metal_run import invoke

pytestmark = [
    pytest.mark.own_check("the test chooses its check"),
    pytest.mark.own_route,
]


@triton.jit
def quotient(x_ptr, y_ptr, out_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    inside = i < n
    x = tl.load(x_ptr + i, mask=inside)
    y = tl.load(y_ptr + i, mask=inside)
    tl.store(out_ptr + i, x // y, mask=inside)


@triton.jit
def row_sum(x_ptr, out_ptr, n, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(x_ptr + tl.program_id(0) * n + i, mask=i < n, other=0.0)
    tl.store(out_ptr + tl.program_id(0), tl.sum(x, axis=0))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_division_by_zero(seed: int) -> None:
    x, y, out = np.arange(100, dtype=np.int32), np.ones(100, np.int32), np.full(100, 9, np.int32)
    y[70] = 0
    with (
        triton.launch_options(check="portable", seed=seed),
        pytest.raises(triton.DeviceError, match="an integer is divided by zero") as error,
    ):
        quotient[(1,)](x, y, out, 100, B=128)
    assert "of 'out_ptr' (buffer 2)" in str(error.value)
    assert "test_portable_launches.py" in str(error.value)
    assert (out == 9).all()


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_division_in_lanes_that_are_masked(seed: int) -> None:
    x, y, out = np.arange(100, dtype=np.int32), np.full(100, 3, np.int32), np.zeros(100, np.int32)
    with triton.launch_options(check="portable", seed=seed):
        quotient[(1,)](x, y, out, 100, B=128)
    assert (out == x // 3).all()


@pytest.mark.parametrize("num_warps", [1, 4])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_reduction(seed: int, num_warps: int) -> None:
    x, out = np.ones((5, 100), np.float32), np.zeros(5, np.float32)
    with triton.launch_options(check="portable", seed=seed):
        row_sum[(5,)](x, out, 100, B=128, num_warps=num_warps)
    assert (out == 100).all()


def test_counters_are_those_of_one_run() -> None:
    x, out = np.ones((5, 100), np.float32), np.zeros(5, np.float32)
    with triton.launch_options(count=True) as plain:
        row_sum[(5,)](x, out, 100, B=128)
    with triton.launch_options(count=True, check="portable") as portable:
        row_sum[(5,)](x, out, 100, B=128)
    for name in ("device_bytes_read", "device_bytes_written", "threadgroups"):
        assert portable.counters[name] == plain.counters[name]


def test_options_that_make_no_sense() -> None:
    with (
        pytest.raises(LaunchValueError, match=r"the checks are bounds, races, .*, all, portable"),
        triton.launch_options(check="everything"),
    ):
        pass
    with (
        pytest.raises(LaunchValueError, match='seed draws the choices of check="po'),
        triton.launch_options(seed=1),
    ):
        pass
    with (
        pytest.raises(LaunchTypeError, match="seed must be an integer seed"),
        triton.launch_options(check="portable", seed=True),
    ):
        pass
    with (
        pytest.raises(LaunchValueError, match="seed must be a seed from 0 to"),
        triton.launch_options(check="portable", seed=-1),
    ):
        pass


TEXT = """kernel void k(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  float sum;
  for (int k = 0; k < 3; ++k) sum += k;
  out[i] = sum;
}
"""


def test_metal_run() -> None:
    arguments = ["--buffer", "out=zeros:float:32", "--grid", "32"]
    assert invoke(arguments, TEXT).returncode == 0
    for seed in ("1", "2"):
        result = invoke([*arguments, "--portable", "--seed", seed], TEXT)
        assert result.returncode == 1
        assert "kernel 'k', line 2:3: " in result.stderr
        assert "variable 'sum' is read before it has a value" in result.stderr
    result = invoke([*arguments, "--seed", "1"], TEXT)
    assert result.returncode == 1
    assert "--seed draws the choices of --portable" in result.stderr


@triton.jit
def logistic_kernel(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    tl.store(out_ptr + i, tl.sigmoid(x))
    tl.store(out_ptr + N + i, 0.5 / (tl.exp(-x) + 1.0))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_sigmoids_divide_only_by_what_metal_promises(seed: int) -> None:
    ends = [0.0, 1e-45, 1.0, 20.0, 79.0, 86.0, 87.5, 88.5, 89.0, 104.0, 1e30, 3.4e38, np.inf]
    x = np.resize(np.array([*ends, *(-np.array(ends)), np.nan], np.float32), 64)
    out = np.zeros((2, 64), np.float32)
    with triton.launch_options(check="portable", seed=seed):
        logistic_kernel[(1,)](x, out, N=64)
    with np.errstate(over="ignore"):
        exact = 1 / (1 + np.exp(-x.astype(np.float64)))
    for result, times in zip(out, (1.0, 0.5), strict=True):
        # exp's bound grows with |x|; a result that is subnormal may be 0.
        bound = (8 + 2 * np.minimum(np.abs(x), 104)) * 2.0**-23 * times * exact + 2.0**-126
        assert np.array_equal(np.isnan(result), np.isnan(x))
        known = ~np.isnan(x)
        assert (np.abs(result - times * exact)[known] <= bound[known]).all()
        assert (result[x < -104] == 0).all()
