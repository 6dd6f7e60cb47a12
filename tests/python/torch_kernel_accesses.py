"""Prints which tensors PyTorch finds that kernels read and write: ``python torch_kernel_accesses.py ours|stock``."""

from __future__ import annotations

import json
import logging
import sys

if sys.argv[1] == "ours":
    import triton_metal

    triton_metal.install()

import torch
import triton
import triton.language as tl
from torch._higher_order_ops.triton_kernel_wrap import identify_accessed_tensors

logging.getLogger("torch._dynamo").setLevel(logging.CRITICAL)


@triton.jit
def one_of_three(x, y, z, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(z + i, tl.load(x + i, i < n) + tl.load(y + i, i < n), i < n)


@triton.jit
def in_branch(x, y, z, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    if n > 5:
        p = y
    else:
        p = z
    tl.store(p + i, tl.load(x + i))


@triton.jit
def one_of_two_in_branch(x, y, z, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a, b = x, y
    if n > 5:
        a, b = x + 1, z
    tl.store(b + i, tl.load(a + i))


@triton.jit
def with_return(x, y, z, n, BLOCK: tl.constexpr):
    if n > 100:
        return
    tl.store(y, 1.0)


@triton.jit
def in_for(x, y, z, n, BLOCK: tl.constexpr):
    p = z + tl.arange(0, BLOCK)
    for k in range(n):
        tl.store(p, tl.load(x + k))
        p += BLOCK


@triton.jit
def in_while(x, y, z, n, BLOCK: tl.constexpr):
    p = y
    while n > 0:
        tl.store(p, tl.load(x))
        p += 1
        n -= 1


@triton.jit
def _writes(p, v):
    tl.store(p, v)


@triton.jit
def _reads(p, i):
    return tl.load(p + i)


@triton.jit
def _copies(p, q, i):
    _writes(p + i, _reads(q, i))


@triton.jit
def in_calls(x, y, z, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    _copies(z, x, i)
    _copies(y, y, i)


@triton.jit
def with_atomics(x, y, z, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.atomic_add(x + i, tl.load(y + i))
    tl.atomic_cas(z.to(tl.pointer_type(tl.int32)), 0, 1)


@triton.jit
def with_reductions(x, y, z, n, BLOCK: tl.constexpr):
    v = tl.load(x + tl.arange(0, BLOCK))
    tl.store(y, tl.sum(v) + tl.max(tl.cumsum(v, 0)))


@triton.jit
def at_indices(x, y, z, n, BLOCK: tl.constexpr):
    j = tl.load(y + tl.arange(0, BLOCK)).to(tl.int32)
    tl.store(x + j, tl.load(z + j))


@triton.jit
def with_descriptors(x, y, z, n, BLOCK: tl.constexpr):
    a = tl.make_tensor_descriptor(x, [n, BLOCK], [BLOCK, 1], [8, BLOCK])
    b = tl.make_tensor_descriptor(z, [n, BLOCK], [BLOCK, 1], [8, BLOCK])
    b.store([0, 0], a.load([0, 0]) + 1)


@triton.jit
def of_none(x, y, z, n=None, BLOCK: tl.constexpr = 8):
    if n is None:
        tl.store(y, tl.load(z))


@triton.jit
def only_reads(x, y, z, n, BLOCK: tl.constexpr):
    tl.device_assert(tl.load(x) == tl.load(y))


@triton.autotune(configs=[triton.Config({"BLOCK": 16}), triton.Config({"BLOCK": 32})], key=["n"])
@triton.jit
def tuned(x, y, z, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, i < n) * 2, i < n)


# What PyTorch alone does not see.


@triton.jit
def own_reduces_by_descriptor(x, y, z, n, BLOCK: tl.constexpr):
    d = tl.make_tensor_descriptor(y, [n, BLOCK], [BLOCK, 1], [8, BLOCK])
    d.atomic_add([0, 0], tl.full((8, BLOCK), 1.0, tl.float32))


@triton.jit
def own_scatters_by_descriptor(x, y, z, n, BLOCK: tl.constexpr):
    d = tl.make_tensor_descriptor(y, [n, BLOCK], [BLOCK, 1], [1, BLOCK])
    d.scatter(tl.load(x + tl.arange(0, 8)[:, None] + tl.arange(0, BLOCK)), tl.arange(0, 8), 0)


@triton.jit
def own_jumps(x, y, z, n, BLOCK: tl.constexpr):
    p = z
    if n > 10:
        p = y
        if n > 100:
            return
    tl.store(p, 1.0)


@triton.jit
def own_swaps_in_for(x, y, z, n, BLOCK: tl.constexpr):
    p, q = x, y
    for _ in range(n):
        tl.store(p, tl.load(q))
        p, q = q, p


@triton.jit
def own_swaps_in_while(x, y, z, n, BLOCK: tl.constexpr):
    p = x
    while n > 0:
        tl.store(p, 1.0)
        p = y
        n -= 1


@triton.jit
def of_loops_in_loops(x, y, z, n, BLOCK: tl.constexpr):
    p, q, first, last = x, z + tl.arange(0, BLOCK), 0, 1
    for k in range(n):
        while first < k:
            if first > 3:
                q += 2
            else:
                q += 1
            tl.store(q, tl.load(p))
            first, last = last, first + 1
        p = x + k


def main() -> None:
    found = {}
    for name, kernel in globals().items():
        if type(kernel) not in (type(one_of_three), type(tuned)) or name[0] == "_":
            continue
        if name.startswith("own_") and sys.argv[1] == "stock":
            continue
        x, y, z = (torch.ones(1024) for _ in range(3))
        arguments = {"x": x, "y": y, "z": z, "n": None if kernel is of_none else 7}
        if kernel is not tuned:
            arguments["BLOCK"] = 16
        accesses = identify_accessed_tensors(kernel, arguments, {})
        deps = accesses.read_writes
        found[name] = [
            "".join(sorted(dep.name for dep in deps.reads)),
            "".join(sorted(dep.name for dep in deps.writes)),
            accesses.can_fuse_epilogue,
        ]
    print(json.dumps(found))


if __name__ == "__main__":
    main()
