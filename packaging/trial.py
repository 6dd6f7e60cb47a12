"""Tries an installed triton-metal; the argument says whether triton-metal-host is there: with or without."""

import sys

import numpy as np
import triton_metal
import triton_metal.language as tl

loaded = {"torch", "mlx", "triton", "triton_metal_host"} & set(sys.modules)
assert not loaded, f"import triton_metal brings in {loaded}"


@triton_metal.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


@triton_metal.jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        left = tl.load(
            a + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0
        )
        right = tl.load(
            b + k[:, None] * N + n[None, :], mask=(k[:, None] < K) & (n[None, :] < N), other=0.0
        )
        total = tl.dot(left, right, total)
    tl.store(c + m[:, None] * N + n[None, :], total, mask=(m[:, None] < M) & (n[None, :] < N))


random = np.random.default_rng(0)
x, y = random.standard_normal((2, 1003)).astype(np.float32)
out = np.zeros_like(x)
launch = add[(triton_metal.cdiv(x.size, 256),)]
if sys.argv[1] == "without":
    message = ""
    try:
        launch(x, y, out, x.size, BLOCK=256)
    except triton_metal.DeviceError as error:
        message = str(error)
    assert message.startswith("add: ")
    assert message.endswith("pip install triton-metal[host]")
    assert not out.any()
    print("  without the host device:", message)
    sys.exit()
launch(x, y, out, x.size, BLOCK=256)
assert np.array_equal(out, x + y)
M, N, K = 70, 53, 100
a = random.standard_normal((M, K)).astype(np.float16)
b = random.standard_normal((K, N)).astype(np.float16)
c = np.empty((M, N), np.float32)
matmul[(3, 2)](a, b, c, M, N, K, BM=32, BN=32, BK=32)
error = np.abs(c - a.astype(np.float64) @ b.astype(np.float64)).max()
assert error < 1e-3, error
print(f"  vector add is exact, the matmul's largest error {error:.1e}")


def try_metal() -> None:
    import triton_metal_host as metal

    device = metal.Device()
    text = "kernel void f(device float *x, uint i [[thread_position_in_grid]]) { x[i] *= 2; }"
    y = x.copy()
    device.pipeline(device.library(text).function("f")).submit(y, threads=y.size).wait()
    assert np.array_equal(y, 2 * x)
    print("  a Metal kernel of the program's own is exact")


try_metal()


def try_data() -> None:
    """What comes from files that are no modules: pages, the report's style and script, tables of ops."""
    import tempfile
    from pathlib import Path

    from triton_metal import ops
    from triton_metal.tutorial.pages import read_pages

    pages = read_pages()
    assert len(pages) >= 9, len(pages)
    assert all(page.steps for page in pages)
    with tempfile.TemporaryDirectory() as folder:
        report = add.report(Path(folder) / "add.html", (4,), x, y, out, x.size, BLOCK=256)
        text = report.read_text(encoding="utf-8")
    assert "prefers-color-scheme: dark" in text
    assert "addEventListener" in text
    left, right = a.astype(np.float32), b.astype(np.float32)
    assert np.allclose(ops.matmul(left, right), left @ right, atol=1e-4)
    print(
        f"  the tutorial's {len(pages)} pages, a report of {len(text) // 1000} KB, and ops.matmul are there"
    )


try_data()
