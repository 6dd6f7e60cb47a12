"""Triton's tutorials on CPU tensors: their text is unchanged, their benchmarks are left out, and devices "cuda" are the CPU.

TRITON_METAL_TUTORIALS names the folder with them (python/tutorials of Triton's repository).
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
import triton
from torch.overrides import TorchFunctionMode

TUTORIALS = Path(os.environ.get("TRITON_METAL_TUTORIALS", "absent"))
pytestmark = pytest.mark.skipif(
    not TUTORIALS.is_dir(), reason="TRITON_METAL_TUTORIALS names no folder"
)


class OnCpu(TorchFunctionMode):
    """Makes tensors for the CPU where a program asks for a device "cuda"."""

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        if "cuda" in str(kwargs.get("device", "")):
            kwargs["device"] = "cpu"
        args = ["cpu" if isinstance(x, str) and x.startswith("cuda") else x for x in args]
        return function(*args, **kwargs)


class _NoBenchmark:
    def run(self, *args: Any, **kwargs: Any) -> None:
        """A benchmark takes sizes for GPUs."""


class _NoProfiler(ModuleType):
    """Proton measures other vendors' GPUs. Two tutorials name it when they start, and use it in their benchmarks."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)

    @staticmethod
    @contextlib.contextmanager
    def scope(*args: Any, **kwargs: Any) -> Iterator[None]:
        yield


@pytest.fixture(autouse=True)
def _device(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    processors = SimpleNamespace(multi_processor_count=4)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda *a: processors)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda *a: (8, 0))
    monkeypatch.setattr(triton.testing, "perf_report", lambda marks: lambda fn: _NoBenchmark())
    profiler = _NoProfiler("triton.profiler")
    monkeypatch.setitem(sys.modules, "triton.profiler", profiler)
    monkeypatch.setattr(triton, "profiler", profiler, raising=False)
    torch.manual_seed(0)
    with OnCpu():
        yield


def path_of(start: str) -> Path:
    return next(path for path in sorted(TUTORIALS.glob(f"{start}*.py")) if "-cpu" not in path.name)


def load(start: str) -> ModuleType:
    """The module of a tutorial. What it checks by itself runs."""
    path = path_of(start)
    name = f"tutorial_{start}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def test_01_vector_add():
    if "num_cpu_threads" in path_of("01").read_text():
        pytest.skip("this variant needs options of triton-cpu's own")
    module = load("01")
    x, y = torch.rand(98432), torch.rand(98432)
    torch.testing.assert_close(module.add(x, y), x + y)


def test_02_fused_softmax():
    load("02")  # it asserts the result of 1823 rows


def test_03_matrix_multiplication():
    module = load("03")
    a, b = torch.randn(300, 130).half(), torch.randn(130, 200).half()
    torch.testing.assert_close(module.matmul(a, b), a @ b, atol=1e-2, rtol=1e-2)
    leaky = module.matmul(a, b, activation="leaky_relu")
    torch.testing.assert_close(
        leaky, torch.nn.functional.leaky_relu(a.float() @ b.float()).half(), atol=1e-1, rtol=1e-2
    )


def test_04_low_memory_dropout():
    module = load("04")
    x = torch.randn(10_000)
    y = module.seeded_dropout(x, p=0.5, seed=123)
    assert torch.equal(y, module.seeded_dropout(x, p=0.5, seed=123))
    kept = y != 0
    assert 0.45 < kept.float().mean() < 0.55
    torch.testing.assert_close(y[kept], 2 * x[kept])
    keep = (torch.rand(10_000) > 0.5).to(torch.int32)
    torch.testing.assert_close(module.dropout(x, x_keep=keep, p=0.5), x * keep * 2)


def test_05_layer_norm():
    module = load("05")
    module.test_layer_norm(151, 1000, torch.float16)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("mode", ["fwd", "bwd"])
def test_06_fused_attention(causal, mode):
    module = load("06")
    module.test_op(1, 2, 128, 64, causal, False, mode, "triton-fp16")


def test_06_fused_attention_in_fp8():
    module = load("06")
    if not module.TORCH_HAS_FP8:
        pytest.skip("this torch has no fp8")
    module.test_op(1, 2, 128, 64, True, False, "fwd", "triton-fp8")


def test_08_grouped_matrix_multiplication():
    load("08")  # it asserts four products


def test_08_grouped_matrix_multiplication_with_descriptors(monkeypatch):
    module = load("08")
    monkeypatch.setattr(module, "supports_tma", lambda: True)
    sizes = [(128, 256, 128), (256, 128, 256)]
    a = [torch.rand(m, k).half() for m, n, k in sizes]
    b = [torch.rand(n, k).half() for m, n, k in sizes]
    for x, y, c in zip(a, b, module.group_gemm_tma_fn(a, b), strict=True):
        torch.testing.assert_close(c, x @ y.T, atol=1e-1, rtol=1e-2)


@pytest.mark.parametrize(
    "name",
    [
        "matmul",
        "matmul_persistent",
        "matmul_tma",
        "matmul_tma_persistent",
        "matmul_descriptor_persistent",
    ],
)
def test_09_persistent_matrix_multiplication(name):
    module = load("09")
    a, b = torch.randn(300, 128).half(), torch.randn(128, 200).half()
    expected = a @ b
    if name in ("matmul", "matmul_persistent"):
        result = getattr(module, name)(a, b)
    else:
        result = getattr(module, name)(a, b.T.contiguous(), False)
    torch.testing.assert_close(result, expected, atol=5e-2, rtol=1e-2)


@pytest.mark.parametrize("kind", ["nvfp4", "mxfp4", "mxfp8", "mixed"])
def test_10_block_scaled_matrix_multiplication(kind):
    module = load("10")
    module.validate_block_scaled(256, 256, 512, block_scale_type=kind)


def test_10_block_scaled_matrix_multiplication_of_another_vendor():
    module = load("10")
    module.validate_block_scaled_amd(128, 128, 256)
