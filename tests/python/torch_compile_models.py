"""Trains whole models twice, eagerly and with torch.compile on kernels of triton_metal, and prints how far they part.

``python torch_compile_models.py MODEL``, in a process of its own: ``import triton`` means triton_metal here.
"""

from __future__ import annotations

import copy
import json
import os
import sys
from collections.abc import Callable
from typing import Any

import triton_metal

triton_metal.install()

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402
from torch._inductor import config, metrics  # noqa: E402


class Block(nn.Module):
    """A block of a residual network."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList([nn.BatchNorm2d(outputs) for _ in range(2)])
        self.skip = nn.Conv2d(inputs, outputs, 1, stride)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.relu(self.norms[0](self.first(x)))
        return F.relu(self.norms[1](self.second(y)) + self.skip(x))


def mlp() -> tuple[nn.Module, torch.Tensor, torch.Tensor, Any]:
    model = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 8))
    return model, torch.randn(12, 16), torch.randn(12, 8), F.mse_loss


def transformer() -> tuple[nn.Module, torch.Tensor, torch.Tensor, Any]:
    model = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, dropout=0.0)
    return model, torch.randn(2, 10, 32), torch.randn(2, 10, 32), F.mse_loss


def resnet() -> tuple[nn.Module, torch.Tensor, torch.Tensor, Any]:
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, 1, 1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), Block(8, 16, 2),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10),
    )  # fmt: skip
    return model, torch.randn(4, 3, 12, 12), torch.randint(0, 10, (4,)), F.cross_entropy


def embedding() -> tuple[nn.Module, torch.Tensor, torch.Tensor, Any]:
    model = nn.Sequential(nn.Embedding(50, 16), nn.Linear(16, 50))
    return model, torch.randint(0, 50, (20,)), torch.randint(0, 50, (20,)), F.cross_entropy


class Decoder(nn.Module):
    """Causal attention with rotary positions, a gated MLP among experts, and a loss over the next words."""

    def __init__(self, words: int = 29, width: int = 16, heads: int = 2, experts: int = 3) -> None:
        super().__init__()
        self.heads = heads
        self.words = nn.Embedding(words, width)
        self.inputs, self.output = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.gate = nn.Linear(width, experts)
        self.up = nn.Parameter(torch.randn(experts, width, 2 * width) * 0.2)
        self.down = nn.Parameter(torch.randn(experts, 2 * width, width) * 0.2)
        self.scale = nn.Parameter(torch.ones(width))

    def norm(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5) * self.scale

    def rotate(self, x: torch.Tensor) -> torch.Tensor:
        half = x.shape[-1] // 2
        angle = torch.arange(x.shape[-2])[:, None] / 100 ** (torch.arange(half) / half)
        a, b = x.chunk(2, -1)
        sin, cos = angle.sin(), angle.cos()
        return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)

    def forward(self, indices: torch.Tensor) -> torch.Tensor:
        x = self.words(indices)
        parts = self.inputs(self.norm(x)).chunk(3, -1)
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in parts)
        scores = self.rotate(q) @ self.rotate(k).transpose(-1, -2)
        later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        weights = scores.masked_fill(later, float("-inf")).softmax(-1)
        x = x + self.output((weights @ v).transpose(1, 2).flatten(2))
        chosen, expert = self.gate(x).softmax(-1).topk(2, -1)
        shares = torch.zeros(*x.shape[:-1], self.up.shape[0]).scatter(-1, expert, chosen)
        hidden = F.silu(torch.einsum("btd,edh->bteh", self.norm(x), self.up))
        x = x + (torch.einsum("bteh,ehd->bted", hidden, self.down) * shares[..., None]).sum(2)
        return (x @ self.words.weight.t()).flatten(0, 1)


def decoder() -> tuple[nn.Module, torch.Tensor, torch.Tensor, Any]:
    return Decoder(), torch.randint(0, 29, (2, 9)), torch.randint(0, 29, (18,)), F.cross_entropy


class UNet(nn.Module):
    """Convolutions down and up again, with group norms and padding in a circle."""

    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, width, 3, padding=1, padding_mode="circular")
        self.deep = nn.Conv2d(width, 2 * width, 3, padding=1, padding_mode="reflect")
        self.norms = nn.ModuleList([nn.GroupNorm(2, width), nn.InstanceNorm2d(2 * width)])
        self.up = nn.ConvTranspose2d(2 * width, width, 4, 2, 1)
        self.last = nn.Conv2d(2 * width, 3, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.silu(self.norms[0](self.first(x)))
        y = F.mish(self.norms[1](self.deep(F.avg_pool2d(x, 2))))
        return self.last(torch.cat([self.up(y) + F.interpolate(y[:, ::2], scale_factor=2), x], 1))


def unet() -> tuple[nn.Module, torch.Tensor, torch.Tensor, Any]:
    return UNet(), torch.randn(2, 3, 12, 12), torch.randn(2, 3, 12, 12), F.smooth_l1_loss


MODELS: dict[str, Callable[[], Any]] = {
    "mlp": mlp,
    "transformer": transformer,
    "resnet": resnet,
    "embedding": embedding,
    "decoder": decoder,
    "unet": unet,
}


def distance(a: Any, b: Any) -> float:
    """The largest difference of two lists of tensors."""
    return max(
        (x.double() - y.double()).abs().max().item() for x, y in zip(a, b, strict=True) if x.numel()
    )


def main(name: str) -> None:
    torch.manual_seed(0)
    config.cpu_backend = "triton"
    config.force_disable_caches = True
    config.compile_threads = int(os.environ.get("COMPILE_THREADS", "1"))
    model, x, target, loss = MODELS[name]()
    results: dict[str, float] = {}
    models = [model, copy.deepcopy(model)]
    # A large eps, as Adam turns the sign of a gradient that is almost zero into a whole step.
    optimizers = [
        torch.optim.AdamW(m.parameters(), lr=1e-2, eps=1e-2, foreach=True) for m in models
    ]
    forwards: list[Callable[..., Any]] = [models[0], torch.compile(lambda x: models[1](x))]
    steps: list[Callable[..., Any]] = [optimizers[0].step, torch.compile(optimizers[1].step)]
    metrics.reset()
    for _ in range(2):
        outputs = []
        for forward, optimizer in zip(forwards, optimizers, strict=True):
            optimizer.zero_grad()
            output = forward(x)
            value = loss(output, target)
            value.backward()
            outputs.append([output.detach(), value.detach()])
        gradients = [[p.grad for p in m.parameters()] for m in models]
        for step in steps:
            step()
        found = {
            "output": distance(*outputs),
            "gradient": distance(*gradients),
            "parameter": distance(*(list(m.parameters()) for m in models)),
            "buffer": distance(*([*m.buffers(), torch.zeros(1)] for m in models)),
        }
        results = {key: max(value, results.get(key, 0.0)) for key, value in found.items()}
    print(json.dumps(results | {"kernels": metrics.generated_kernel_count}))


if __name__ == "__main__":
    main(sys.argv[1])
