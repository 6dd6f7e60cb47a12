"""MLX's Fourier and Hadamard transforms against NumPy's."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
import pytest
import triton_metal_host as metal_api

from mlx_kernels import NEEDS_MLX
from mlx_kernels.running import blank, checked, decode, encode, f32, i32, launch, metal, numbers
from mlx_kernels.signals import hadamard_matrix

pytestmark = NEEDS_MLX
RADICES = (13, 11, 8, 7, 6, 5, 4, 3, 2)


def steps(n: int) -> list[int] | None:
    """How often each radix divides a length, or None if other primes do, too."""
    counts, rest = [0] * len(RADICES), n
    for i, radix in enumerate(RADICES):
        if n & (n - 1) == 0 and n < 512 and radix > 4:
            continue
        while rest % radix == 0:
            counts[i], rest = counts[i] + 1, rest // radix
    return counts if rest == 1 else None


def factors(n: int) -> list[int]:
    return [p for p in range(2, n + 1) if n % p == 0 and all(p % q for q in range(2, p))]


@dataclass
class Plan:
    """How MLX computes a transform: the kernel, the length in threadgroup memory, and function constants."""

    kernel: str
    length: int
    elements: int
    prime: int
    constants: dict[int, object]


def plan(n: int, inverse: bool, kernel: str = "fft") -> Plan:
    """Radices alone, or those after one prime by Rader's method, or Bluestein's for any length."""
    prime, length, rader = 1, n, [0] * len(RADICES)
    counts = steps(n)
    if counts is None:
        large = [p for p in factors(n) if p > 13]
        smooth = steps(large[0] - 1) if len(large) == 1 and n % large[0] ** 2 else None
        if smooth is not None:
            kernel, prime, rader = "rader_fft", large[0], smooth
            counts = steps(n // prime)
        else:
            kernel, length = "bluestein_fft", 1 << (2 * n - 2).bit_length()
            counts = steps(length)
    assert counts is not None
    used = sorted({r for r, a, b in zip(RADICES, counts, rader, strict=True) if a or b})
    if 7 in used and (11 in used or 13 in used):
        elements = 7
    elif len(used) == 1:
        elements = used[0]
    elif len(used) == 2 and (11 in used or 13 in used):
        elements = sum(used) // 2
    else:
        elements = used[1]
    constants = {0: inverse, 1: length & (length - 1) == 0, 2: elements, 3: n // prime}
    constants |= dict(enumerate([*counts, *rader], 4))
    return Plan(kernel, length, elements, prime, constants)


def rader_tables(p: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The transformed roots of one in the order of a generator of the group modulo p, and the order both ways."""
    root = next(r for r in range(2, p) if all(pow(r, (p - 1) // f, p) != 1 for f in factors(p - 1)))
    order = [pow(root, i, p) for i in range(p - 1)]
    back = [pow(root, -i, p) for i in range(p - 1)]
    spectrum = np.fft.fft(np.exp(-2j * np.pi * np.array(back) / p))
    return encode(spectrum, "complex64"), np.array(order, np.int16), np.array(back, np.int16)


def bluestein_tables(n: int, length: int) -> tuple[np.ndarray, np.ndarray]:
    angles = np.pi * np.arange(-n + 1, n) ** 2 / n
    chirp = np.zeros(length, complex)
    chirp[: 2 * n - 1] = np.exp(1j * angles)
    spectrum = np.fft.fft(chirp)
    return encode(spectrum, "complex64"), encode(np.exp(-1j * angles[n - 1 :]), "complex64")


def transformed(x: np.ndarray, n: int, inverse: bool, real: bool, behind: int = 0) -> np.ndarray:
    """The transform of rows of `n` numbers, by the kernel that MLX takes, with memory for so many behind the last row."""
    p = plan(n, inverse)
    rows = x.shape[0]
    given, result = "complex64", "complex64"
    columns = n
    if real:
        given, result = (given, "float32") if inverse else ("float32", result)
        columns = n if inverse else n // 2 + 1
    together = max(256 // p.length, 1)
    memory = 1 << (together * p.length - 1).bit_length()
    threads = -(-p.length // p.elements)
    groups = -(-rows // together)
    if real:
        groups = -(-groups // 2)
    data = np.concatenate([x.ravel(), np.zeros(behind, x.dtype)])
    buffers = {0: encode(data, given), 1: blank((rows * columns + behind,), result)}
    if p.kernel == "bluestein_fft":
        spectrum, chirp = bluestein_tables(n, p.length)
        buffers |= {2: spectrum, 3: chirp, 4: i32(n), 5: i32(p.length), 6: i32(rows)}
    elif p.kernel == "rader_fft":
        spectrum, order, back = rader_tables(p.prime)
        buffers |= {2: spectrum, 3: order, 4: back, 5: i32(n), 6: i32(rows), 7: i32(p.prime)}
    else:
        buffers |= {2: i32(n), 3: i32(rows)}
    names = {"complex64": "float2", "float32": "float"}
    (out,) = launch(
        "fft",
        (p.kernel, memory, names[given], names[result]),
        buffers,
        [1],
        grid=(groups, together, threads),
        group=(1, together, threads),
        constants=p.constants,
    )
    return decode(out, result)[: rows * columns].reshape(rows, columns)


def assert_transform(out: np.ndarray, exact: np.ndarray, n: int) -> None:
    np.testing.assert_allclose(out, exact, atol=3e-6 * sqrt(n) * np.abs(exact).max(), rtol=0)


@pytest.mark.parametrize(
    ("n", "rows", "inverse"),
    [
        *((16, 37, False), (60, 9, True), (77, 5, False), (256, 3, True), (1001, 2, False)),
        *((1024, 1, False), (4096, 2, True), (104, 7, False), (34, 10, True), (113, 3, False)),
        *((47, 5, True), (289, 3, False)),
    ],
)
def test_complex_transforms(n: int, rows: int, inverse: bool) -> None:
    x = numbers((rows, n), "complex64", 1)
    exact = np.fft.ifft(x) if inverse else np.fft.fft(x)
    # The threads of these lengths ask for more than there is in the last threadgroup.
    behind = {104: 60, 34: 60, 113: 60}.get(n, 0)
    assert_transform(transformed(x, n, inverse, False, behind), exact, n)


def test_defect_last_threadgroup_goes_behind_the_last_row() -> None:
    """MLX's `load` and `write` compare with the end of a whole threadgroup's rows; with memory behind the input, the store."""
    x = numbers((7, 104), "complex64", 1)
    with (
        checked("bounds"),
        pytest.raises(
            metal_api.LaunchError, match=r"a load of 8 bytes at byte 5824 of 'in' \(buffer 0\)"
        ),
    ):
        transformed(x, 104, False, False)


@pytest.mark.parametrize(("n", "rows"), [(60, 9), (45, 6), (512, 3), (34, 5), (47, 4), (2, 300)])
@pytest.mark.parametrize("inverse", [False, True])
def test_real_transforms(n: int, rows: int, inverse: bool) -> None:
    """Two rows at once; an odd number of them leaves one alone."""
    if inverse:
        x = numbers((rows, n // 2 + 1), "complex64", 1)
        # What these must be for a result that is real.
        x[:, 0] = x[:, 0].real
        if n % 2 == 0:
            x[:, -1] = x[:, -1].real
        exact = np.fft.irfft(x, n)
    else:
        x = numbers((rows, n), "float32", 1)
        exact = np.fft.rfft(x)
    behind = 100 if inverse and n == 47 else 0
    assert_transform(transformed(x, n, inverse, True, behind), exact, n)


def test_defect_padding_is_read_before_its_length_is_known() -> None:
    """MLX reads both rows of a padded transform, and then asks whether they are so long."""
    x = numbers((4, 24), "complex64", 1)
    with (
        checked("bounds"),
        pytest.raises(metal_api.LaunchError, match=r"line 482:16 of readwrite\.h"),
    ):
        transformed(x, 47, True, True)


@pytest.mark.parametrize("real", [False, True])
@pytest.mark.parametrize("inverse", [False, True])
def test_four_steps(inverse: bool, real: bool) -> None:
    """A power of two that threadgroup memory does not hold: columns first, then rows."""
    n, rows, parts = 8192, 3, (128, 64)
    if inverse and real:
        x = numbers((rows, n // 2 + 1), "complex64", 1)
        x[:, [0, -1]] = x[:, [0, -1]].real
        exact = np.fft.irfft(x, n)
    else:
        x = numbers((rows, n), "float32" if real else "complex64", 1)
        exact = np.fft.ifft(x) if inverse else np.fft.rfft(x) if real else np.fft.fft(x)
    data = encode(x, "complex64" if inverse or not real else "float32")
    for step, length in enumerate(parts):
        p = plan(length, inverse)
        given = "float" if real and not inverse and step == 0 else "float2"
        result = "float" if real and inverse and step == 1 else "float2"
        columns = n // 2 + 1 if real and not inverse and step == 1 else n
        together = max(256 // length, 4)
        threads = length // p.elements
        total = rows * n // length
        (data,) = launch(
            "fft",
            ("four_step_fft", together * length, given, result, step, real),
            {
                0: data,
                1: blank((rows, columns), "complex64" if result == "float2" else "float32"),
                **{2: i32(parts[0]), 3: i32(parts[1]), 4: i32(total)},
            },
            [1],
            grid=(-(-total // together), together, threads),
            group=(1, together, threads),
            constants=p.constants,
        )
    out = decode(data, "float32" if inverse and real else "complex64").reshape(rows, -1)
    assert_transform(out, exact, n)


@pytest.mark.parametrize(
    ("n1", "n2", "m", "t"),
    [
        *((1, 2, 1, "float32"), (1, 64, 1, "bfloat16"), (1, 4096, 1, "float16")),
        *((1, 8, 12, "float32"), (1, 512, 20, "float16"), (1, 32, 28, "bfloat16")),
        *((4, 128, 1, "float32"), (32, 64, 12, "float32"), (1, 2, 12, "float16")),
    ],
)
def test_hadamard(n1: int, n2: int, m: int, t: str) -> None:
    """Powers of two in one or two steps, and the factors that are not powers of two."""
    n, rows = n1 * n2, 5
    x = numbers((rows, m * n), t, 1)
    scale = 1 / sqrt(m * n)
    size, family = rows * m * n, f"hadamard_{m}" if m in (20, 28) else "hadamard"
    data = encode(x, t)

    def width(length: int) -> int:
        return 2 if length == 2 else 4

    if n1 > 1:
        radix = min(n1, 16)
        (data,) = launch(
            family,
            ("hadamard_n", metal(t), n1, radix, width(n1), n2),
            {0: data, 1: blank(x.shape, t), 2: f32(1)},
            [1],
            grid=(n1 // radix, size // n, n2),
            group=(n1 // radix,),
        )
    radix = min(n2, 16)
    (data,) = launch(
        family,
        ("hadamard_n", metal(t), n2, radix, width(n2)),
        {0: data, 1: blank(x.shape, t), 2: f32(scale if m == 1 else 1)},
        [1],
        grid=(n2 // radix, size // n2),
        group=(n2 // radix,),
    )
    if m > 1:
        read = 2 if n == 2 or m == 28 else 4
        threads = min(n // read, 256)
        (data,) = launch(
            family,
            ("hadamard_m", metal(t), n, m, read),
            {0: data, 1: blank(x.shape, t), 2: f32(scale)},
            [1],
            grid=(threads, size // m // read // threads),
            group=(threads,),
        )
    matrix = np.array(hadamard_matrix(m))
    np.testing.assert_array_equal(matrix @ matrix.T, m * np.eye(m))
    exact = np.einsum("rmn,km->rkn", x.reshape(rows, m, n), matrix)
    for bit in range(n.bit_length() - 1):
        pairs = exact.reshape(rows, m, -1, 2, 1 << bit)
        exact = np.stack(
            [pairs[..., 0, :] + pairs[..., 1, :], pairs[..., 0, :] - pairs[..., 1, :]], -2
        )
    exact = exact.reshape(rows, -1) * scale
    bound = {"float32": 2e-6, "float16": 4e-3, "bfloat16": 3e-2}[t]
    np.testing.assert_allclose(decode(data, t), exact, atol=bound * np.abs(exact).max(), rtol=0)
