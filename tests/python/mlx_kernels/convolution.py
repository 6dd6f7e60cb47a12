"""A convolution: its arrays, the parameters that MLX's kernels take, and the result."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

import numpy as np

from mlx_kernels.running import i32, i64, numbers, raw


@dataclass
class Convolution:
    """One convolution: images of `channels` in rows of pixels, and filters for each of `outputs`."""

    batch: int
    channels: int
    outputs: int
    image: tuple[int, ...]
    filter: tuple[int, ...]
    stride: tuple[int, ...] = ()
    padding: tuple[int, ...] = ()
    spread: tuple[int, ...] = ()
    #: Zeros are put between the pixels, as a transposed convolution needs.
    widening: tuple[int, ...] = ()
    groups: int = 1
    flip: bool = False
    t: str = "float32"
    size: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        n = len(self.image)
        self.stride = self.stride or (1,) * n
        self.padding = self.padding or (0,) * n
        self.spread = self.spread or (1,) * n
        self.widening = self.widening or (1,) * n
        self.size = tuple(
            ((image - 1) * wide + 1 + 2 * pad - (taps - 1) * spread - 1) // step + 1
            for image, wide, pad, taps, spread, step in zip(
                *(self.image, self.widening, self.padding, self.filter, self.spread, self.stride),
                strict=True,
            )
        )

    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        x = numbers((self.batch, *self.image, self.channels), self.t, 1)
        w = numbers((self.outputs, *self.filter, self.channels // self.groups), self.t, 2)
        return x, w

    def params(self) -> np.ndarray:
        """The struct of parameters that all kernels take."""

        def strides(shape: tuple[int, ...]) -> list[int]:
            return [prod(shape[i + 1 :]) for i in range(len(shape))]

        x, w = self.arrays()
        head = [self.batch, self.channels, self.outputs, *self.image, *self.filter, *self.size]
        head += [*self.stride, *self.padding, *self.spread, *self.widening]
        head += [0] * (len(head) % 2)  # the strides are aligned to 8 bytes
        out = (self.batch, *self.size, self.outputs)
        return raw(
            i32(*head),
            i64(*strides(x.shape), *strides(w.shape), *strides(out)),
            i32(self.groups, int(self.flip)),
        )

    def jumps(self, block: int) -> list[int]:
        """How far the input moves from one tap to the next in each dimension, last first, and to more channels."""
        pixel = [self.channels * prod(self.image[i + 1 :]) for i in range(len(self.image))]
        each = [p * s for p, s in zip(pixel, self.spread, strict=True)]
        back = [(taps - 1) * step for taps, step in zip(self.filter, each, strict=True)]
        sign = -1 if self.flip else 1
        result = [sign * (each[i] - sum(back[i + 1 :])) for i in range(len(each))][::-1]
        return [*result, block - sign * sum(back)]

    def gemm(self, tile: tuple[int, ...]) -> tuple[int, np.ndarray]:
        """How many channels the kernel of two dimensions is made for (0: any number), and its ImplicitGemmConv2DParams."""
        bm, bn, bk = tile[:3]
        inputs, taps = self.channels // self.groups, prod(self.filter)
        m, n = self.batch * prod(self.size), self.outputs // self.groups
        few = inputs if inputs <= 4 else 0
        steps = taps * -(-inputs // bk)
        if few:
            steps = -(-taps * (inputs if inputs <= 2 else 4) // bk)
        sizes = (m, n, taps * inputs, steps, *self.jumps(bk), -(-n // bn), -(-m // bm), 0)
        return few, i32(*sizes)

    def exact(self) -> np.ndarray:
        x, w = self.arrays()
        n = len(self.image)
        shape = [(i - 1) * s + 1 for i, s in zip(self.image, self.widening, strict=True)]
        wide = np.zeros((self.batch, *shape, self.channels))
        wide[(slice(None), *(slice(None, None, s) for s in self.widening))] = x
        wide = np.pad(wide, [(0, 0), *((p, p) for p in self.padding), (0, 0)])
        if self.flip:
            w = np.flip(w, tuple(range(1, n + 1)))
        out = np.zeros((self.batch, *self.size, self.outputs))
        inputs, outputs = self.channels // self.groups, self.outputs // self.groups
        for tap in np.ndindex(*self.filter):
            part = wide[
                (
                    slice(None),
                    *(
                        slice(t * d, t * d + (o - 1) * s + 1, s)
                        for t, d, o, s in zip(tap, self.spread, self.size, self.stride, strict=True)
                    ),
                )
            ]
            for group in range(self.groups):
                left = part[..., group * inputs : (group + 1) * inputs]
                to = slice(group * outputs, (group + 1) * outputs)
                out[..., to] += left @ w[(to, *tap)].T
        return out
