"""Kernels as stock Triton 3.9.0 prints them, through triton-metal-compile and metal-run, against NumPy."""

from __future__ import annotations

import json
import pathlib
import subprocess

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOLS = ROOT / "build" / "bin"
STOCK = ROOT / "tests" / "lit" / "tt" / "stock"
VERSIONS = ("3.7.1", "3.8.0", "3.9.0")

pytestmark = pytest.mark.skipif(
    not (TOOLS / "metal-run").exists(), reason="the tools are not built (TRITON_METAL_BUILD_TOOLS)"
)


def run(
    tmp_path: pathlib.Path,
    kernel: str,
    grid: tuple[int, ...],
    arguments: dict[str, np.ndarray | int | float],
    version: str = "3.9.0",
    num_warps: int = 4,
    num_stages: int = 2,
    schedule: int | None = None,
) -> dict[str, np.ndarray]:
    """The buffers that the kernel writes, after a launch of `grid` programs."""
    source = STOCK / version / f"{kernel}.ttir"
    options = [f"--num-warps={num_warps}", f"--num-stages={num_stages}"]
    metal = tmp_path / "kernel.metal"
    compiler = TOOLS / "triton-metal-compile"
    subprocess.run([compiler, source, *options, "-o", metal], check=True)
    text = subprocess.run(
        [compiler, source, *options, "--emit=metadata"], check=True, capture_output=True, text=True
    ).stdout
    metadata = json.loads(text)
    words = np.zeros(64, np.uint32)
    command = [str(TOOLS / "metal-run"), str(metal), "--check", f"--group={metadata['threads']}"]
    command.append("--threadgroups=" + ",".join(map(str, grid)))
    outputs = {}
    for argument in metadata["args"]:
        value = arguments[argument["name"]]
        if argument["kind"] == "buffer":
            path = tmp_path / f"{argument['name']}.npy"
            np.save(path, value)
            command.append(f"--buffer={argument['slot']}={path}")
            if argument["writes"]:
                outputs[argument["name"]] = tmp_path / f"{argument['name']}.out.npy"
                command.append(f"--output={argument['slot']}={outputs[argument['name']]}")
        else:
            kind = {"f32": np.float32, "i64": np.int64}.get(argument["type"], np.int32)
            bits = np.array([value], kind).view(np.uint32)
            words[argument["slot"] : argument["slot"] + len(bits)] = bits
    if metadata["scalar_buffer"] >= 0:
        path = tmp_path / "args.npy"
        np.save(path, words)
        command.append(f"--buffer={metadata['scalar_buffer']}={path}")
    if schedule is not None:
        command.append(f"--schedule={schedule}")
    subprocess.run(command, check=True)
    return {name: np.load(path) for name, path in outputs.items()}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("n", [16, 1008, 4096])
def test_vector_add(tmp_path: pathlib.Path, version: str, n: int) -> None:
    rng = np.random.default_rng(n)
    x, y = (rng.standard_normal(n).astype(np.float32) for _ in range(2))
    out = np.full(n, np.nan, np.float32)
    grid = (-(-n // 1024),)
    result = run(tmp_path, "vector_add", grid, {"x": x, "y": y, "out": out, "n": n}, version)
    np.testing.assert_array_equal(result["out"], x + y)


@pytest.mark.parametrize("num_warps", [1, 4, 16, 32])
@pytest.mark.parametrize("cols", [1, 500, 512])
def test_softmax(tmp_path: pathlib.Path, cols: int, num_warps: int) -> None:
    x = np.random.default_rng(cols).standard_normal((5, cols)).astype(np.float32)
    arguments = {
        "out": np.zeros_like(x),
        "x": x,
        "out_stride": cols,
        "x_stride": cols,
        "cols": cols,
    }
    result = run(tmp_path, "softmax", (5,), arguments, num_warps=num_warps, schedule=cols)
    exponentials = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    expected = exponentials / exponentials.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(result["out"], expected, rtol=1e-5)


@pytest.mark.parametrize("num_stages", [1, 2])
@pytest.mark.parametrize("num_warps", [1, 4, 8])
@pytest.mark.parametrize("version", VERSIONS)
def test_matmul(tmp_path: pathlib.Path, version: str, num_warps: int, num_stages: int) -> None:
    m, n, k = 100, 80, 48
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((m, k)) / 4, rng.standard_normal((k, n)) / 4
    a, b = a.astype(np.float16), b.astype(np.float16)
    arguments: dict[str, np.ndarray | int | float] = {
        "a": a,
        "b": b,
        "c": np.zeros((m, n), np.float16),
    }
    arguments |= {"M": m, "N": n, "K": k, "sam": k, "sbk": n, "scm": n}
    result = run(tmp_path, "matmul", (4,), arguments, version, num_warps, num_stages, schedule=7)
    product = a.astype(np.float64) @ b.astype(np.float64)
    expected = np.where(product >= 0, product, 0.01 * product)
    np.testing.assert_allclose(result["c"], expected, rtol=2e-3, atol=1e-4)


@pytest.mark.parametrize("num_stages", [1, 2])
@pytest.mark.parametrize("rows", [64, 150])
def test_attention(tmp_path: pathlib.Path, rows: int, num_stages: int) -> None:
    heads, dim, scale = 2, 64, 0.125
    rng = np.random.default_rng(rows)
    q, k, v = (rng.standard_normal((heads, rows, dim)).astype(np.float16) for _ in range(3))
    arguments: dict[str, np.ndarray | int | float] = {"q": q, "k": k, "v": v, "o": np.zeros_like(q)}
    arguments |= {"scale": scale * np.log2(np.e), "rows": rows}
    grid = (-(-rows // 64), heads)
    result = run(tmp_path, "attention", grid, arguments, num_stages=num_stages, schedule=3)
    scores = scale * np.einsum("hid,hjd->hij", q.astype(np.float64), k.astype(np.float64))
    scores = np.where(np.tril(np.ones((rows, rows), bool)), scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    expected = np.einsum("hij,hjd->hid", weights, v.astype(np.float64))
    np.testing.assert_allclose(result["o"], expected, rtol=4e-3, atol=4e-3)


@pytest.mark.parametrize("shape", [(13, 40), (8, 32), (3, 5)])
def test_block_pointers(tmp_path: pathlib.Path, shape: tuple[int, int]) -> None:
    m, n = shape
    x = np.random.default_rng(1).standard_normal((64, 64)).astype(np.float32)
    y = np.zeros((64, 64), np.float32)
    wanted = y.copy()
    for program in range(-(-m // 8)):
        rows, at = np.arange(8)[:, None] + 8 * program, 0
        for k in range(0, n, 16):
            columns, target = np.arange(16)[None, :] + at, np.arange(16)[None, :] + k
            block = x[rows, columns]
            value = np.where((rows < m) & (columns < n), block, np.float32(np.nan))
            value += np.where(columns < n, block, np.float32(0))
            if m > 5:
                at += 16
            value += x[rows, np.arange(16)[None, :] + at]
            stored = np.where((rows < m) & (target < n), value, wanted[rows, target])
            wanted[rows, target] = stored
    arguments = {"x": x, "y": y, "m": m, "n": n, "stride": 64}
    out = run(tmp_path, "block_pointers", (-(-m // 8),), arguments, "3.7.1")
    np.testing.assert_array_equal(out["y"], wanted)
