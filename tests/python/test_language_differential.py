"""Whole kernels: stock Triton's TTIR and ours have the same operations after inlining and clean-up."""

from __future__ import annotations

import pytest

from language_support import compare

KERNELS = {
    "vector_add": (
        """
@triton.jit
def kernel(x, y, out, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    a = tl.load(x + offs, mask=mask, cache_modifier=".ca")
    b = tl.load(y + offs, mask=mask, other=0.0, eviction_policy="evict_last")
    tl.store(out + offs, a + b, mask=mask)
""",
        {"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32"},
        {"BLOCK": 1024},
        {"x": 16, "n": 16},
    ),
    "softmax": (
        """
@triton.jit
def kernel(x, out, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n
    v = tl.load(x + row * stride + cols, mask=mask, other=-float('inf')).to(tl.float32)
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(out + row * stride + cols, e / tl.sum(e, axis=0), mask=mask)
""",
        {"x": "*fp16", "out": "*fp16", "stride": "i32", "n": "i32"},
        {"BLOCK": 512},
        {},
    ),
    "library_softmax": (
        """
@triton.jit
def kernel(x, out, M: tl.constexpr, N: tl.constexpr):
    offs = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    v = tl.load(x + offs)
    tl.store(out + offs, tl.softmax(v, 1))
    tl.store(out + offs, tl.sigmoid(v) + v.sigmoid())
""",
        {"x": "*fp32", "out": "*fp32"},
        {"M": 16, "N": 32},
        {},
    ),
    "matmul": (
        """
@triton.jit
def leaky(x):
    return tl.where(x >= 0, x, 0.01 * x)

@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm,
           stride_cn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
           ACT: tl.constexpr):
    pid = tl.program_id(axis=0)
    num_pid_m = tl.cdiv(M, BM)
    num_pid_n = tl.cdiv(N, BN)
    num_pid_in_group = GROUP * num_pid_n
    group_id = pid // num_pid_in_group
    first_pid_m = group_id * GROUP
    group_size_m = min(num_pid_m - first_pid_m, GROUP)
    pid_m = first_pid_m + ((pid % num_pid_in_group) % group_size_m)
    pid_n = (pid % num_pid_in_group) // group_size_m
    tl.assume(pid_m >= 0)
    offs_am = (pid_m * BM + tl.arange(0, BM)) % M
    offs_bn = (pid_n * BN + tl.arange(0, BN)) % N
    offs_k = tl.arange(0, BK)
    a_ptrs = a_ptr + (offs_am[:, None] * stride_am + offs_k[None, :] * stride_ak)
    b_ptrs = b_ptr + (offs_k[:, None] * stride_bk + offs_bn[None, :] * stride_bn)
    accumulator = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        a = tl.load(a_ptrs, mask=offs_k[None, :] < K - k * BK, other=0.0)
        b = tl.load(b_ptrs, mask=offs_k[:, None] < K - k * BK, other=0.0)
        accumulator = tl.dot(a, b, accumulator, input_precision="ieee")
        a_ptrs += BK * stride_ak
        b_ptrs += BK * stride_bk
    if ACT == "leaky":
        accumulator = leaky(accumulator)
    c = accumulator.to(tl.float16)
    offs_cm = pid_m * BM + tl.arange(0, BM)
    offs_cn = pid_n * BN + tl.arange(0, BN)
    c_ptrs = c_ptr + stride_cm * offs_cm[:, None] + stride_cn * offs_cn[None, :]
    c_mask = (offs_cm[:, None] < M) & (offs_cn[None, :] < N)
    tl.store(c_ptrs, c, mask=c_mask)
""",
        {
            **dict.fromkeys(("a_ptr", "b_ptr", "c_ptr"), "*fp16"),
            **dict.fromkeys(
                (
                    "M",
                    "N",
                    "K",
                    "stride_am",
                    "stride_ak",
                    "stride_bk",
                    "stride_bn",
                    "stride_cm",
                    "stride_cn",
                ),
                "i32",
            ),
        },
        {"BM": 64, "BN": 64, "BK": 32, "GROUP": 8, "ACT": "leaky"},
        {"a_ptr": 16, "M": 16},
    ),
    "attention": (
        """
@triton.jit
def inner(acc, l_i, m_i, q, k_ptr, v_ptr, start, end, offs_m, offs_n, n, scale,
          BN: tl.constexpr, CAUSAL: tl.constexpr):
    for start_n in range(start, end, BN):
        start_n = tl.multiple_of(start_n, BN)
        k = tl.load(k_ptr + (start_n + offs_n)[None, :] * 64 + tl.arange(0, 64)[:, None],
                    mask=(start_n + offs_n)[None, :] < n, other=0.0)
        qk = tl.dot(q, k, input_precision="ieee") * scale
        if CAUSAL:
            qk = tl.where(offs_m[:, None] >= (start_n + offs_n)[None, :], qk, -1.0e6)
        m_ij = tl.maximum(m_i, tl.max(qk, 1))
        p = tl.math.exp2(qk - m_ij[:, None])
        alpha = tl.math.exp2(m_i - m_ij)
        l_i = l_i * alpha + tl.sum(p, 1)
        acc = acc * alpha[:, None]
        v = tl.load(v_ptr + (start_n + offs_n)[:, None] * 64 + tl.arange(0, 64)[None, :],
                    mask=(start_n + offs_n)[:, None] < n, other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc, input_precision="ieee")
        m_i = m_ij
    return acc, l_i, m_i

@triton.jit
def kernel(q_ptr, k_ptr, v_ptr, out, n, scale, BM: tl.constexpr, BN: tl.constexpr,
           CAUSAL: tl.constexpr):
    offs_m = tl.program_id(0) * BM + tl.arange(0, BM)
    offs_n = tl.arange(0, BN)
    q = tl.load(q_ptr + offs_m[:, None] * 64 + tl.arange(0, 64)[None, :], mask=offs_m[:, None] < n)
    m_i = tl.zeros([BM], dtype=tl.float32) - float("inf")
    l_i = tl.zeros([BM], dtype=tl.float32) + 1.0
    acc = tl.zeros([BM, 64], dtype=tl.float32)
    end = n if not CAUSAL else tl.minimum(n, (tl.program_id(0) + 1) * BM)
    acc, l_i, m_i = inner(acc, l_i, m_i, q, k_ptr, v_ptr, 0, end, offs_m, offs_n, n, scale, BN, CAUSAL)
    acc = acc / l_i[:, None]
    tl.store(out + offs_m[:, None] * 64 + tl.arange(0, 64)[None, :], acc.to(tl.float16),
             mask=offs_m[:, None] < n)
""",
        {**dict.fromkeys(("q_ptr", "k_ptr", "v_ptr", "out"), "*fp16"), "n": "i32", "scale": "fp32"},
        {"BM": 64, "BN": 32, "CAUSAL": True},
        {},
    ),
    "random": (
        """
@triton.jit
def kernel(out, iout, seed, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(out + offs, tl.rand(seed, offs))
    tl.store(out + offs, tl.randn(seed, offs + BLOCK))
    tl.store(iout + offs, tl.randint(seed, offs.to(tl.int64)))
    a, b, c, d = tl.rand4x(seed, offs, 7)
    tl.store(out + offs, a + b + c + d)
""",
        {"out": "*fp32", "iout": "*i32", "seed": "i32"},
        {"BLOCK": 128},
        {},
    ),
    "control_flow": (
        """
@triton.jit
def early(x, n):
    if n > 3:
        return x
    x = x + 1
    if n < -3:
        if n < -5:
            x = x * 2
        else:
            return x - 1
    return x * 3

@triton.jit
def kernel(x, out, n, BLOCK: tl.constexpr, FLAG: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    v = tl.load(x + offs)
    if n > 10:
        v = v * 2
        w = v + 1
    elif n > 5:
        w = v
    else:
        w = -v
        v = v + n
    i = 0
    total = tl.zeros_like(v)
    while (i < n) & (i < 100):
        for j in range(i, n, 3):
            if j % 2 == 0:
                total += w * j
        i += 1
    while tl.condition(i < 2 * n):
        i += 3
    for j in range(10, 0, -2):
        total += j
    for j in tl.static_range(3):
        total = total * (j + 1)
    for j in tl.range(0, n, num_stages=3, loop_unroll_factor=2):
        total += j
    k = i if i > 4 else n
    total += early(v, n) * k
    if FLAG and n > 2:
        total = total - 1
    if n == 0:
        return
    tl.store(out + offs, total)
""",
        {"x": "*fp32", "out": "*fp32", "n": "i32"},
        {"BLOCK": 64, "FLAG": True},
        {},
    ),
    "shapes": (
        """
@triton.jit
def combine(a, b):
    return a * 2 + b

@triton.jit
def kernel(x, out, iout, M: tl.constexpr, N: tl.constexpr):
    offs = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    v = tl.load(x + offs)
    t = tl.trans(v)
    p = tl.permute(tl.reshape(v, (M, 2, N // 2)), (2, 0, 1))
    tl.store(out + offs, tl.reshape(p, (M, N)))
    tl.store(out + offs, tl.reshape(t.T + v, (M * N,)).reshape(M, N))
    j = tl.join(v, v + 1)
    a, b = j.split()
    tl.store(out + offs, a - b)
    c = tl.cat(tl.arange(0, 16), tl.arange(16, 32))
    tl.store(iout + tl.arange(0, 32), c)
    e = tl.expand_dims(v, [0, -1])
    tl.store(out + offs, e.broadcast_to(1, M, N, 1).reshape([M, N]))
    tl.store(out + tl.arange(0, M), tl.sum(v, 1) + tl.max(v, axis=1) + tl.min(v, 1))
    tl.store(iout + tl.arange(0, N), tl.argmax(v, 0) + tl.argmin(v, axis=0, tie_break_left=False))
    tl.store(out + tl.arange(0, M), tl.reduce(v, 1, combine))
    m, i = tl.max(v, 1, return_indices=True)
    tl.store(out + tl.arange(0, M), m + i)
    tl.store(out, tl.sum(v))
    tl.store(iout, tl.xor_sum(tl.arange(0, 64), 0))
    tl.store(out + offs, tl.cumsum(v, 1, reverse=True))
    tl.store(out + offs, tl.sum(v, 1, keep_dims=True) + v)
    tl.store(out + offs, tl.interleave(v, v).reshape(2, M, N).sum(0))
    tl.store(out + offs, tl.ravel(v).reshape(M, N))
""",
        {"x": "*fp32", "out": "*fp32", "iout": "*i32"},
        {"M": 16, "N": 16},
        {},
    ),
    "mathematics": (
        """
@triton.jit
def kernel(x, y, out, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    a = tl.load(x + offs)
    b = tl.load(y + offs)
    r = tl.exp(a) + tl.exp2(b) + tl.log(a) + tl.log2(a) + tl.sin(a) + tl.cos(a)
    r += tl.sqrt(a) + tl.rsqrt(a) + tl.abs(a) + tl.erf(a) + tl.floor(a) + tl.ceil(a)
    r += tl.fma(a, b, r) + tl.math.fdiv(a, b) + tl.div_rn(a, b) + tl.sqrt_rn(b)
    r += tl.clamp(a, -1.0, 1.0) + tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)
    r += tl.maximum(a, b) + tl.where(a > b, a, 0)
    r += a.exp() + a.abs() + a.to(tl.float16).to(tl.float32) + a.to(tl.bfloat16)
    r += a.to(tl.int32, bitcast=True) + a.to(tl.float16, fp_downcast_rounding="rtz")
    tl.store(out + offs, r)
""",
        {"x": "*fp32", "y": "*fp32", "out": "*fp32"},
        {"BLOCK": 64},
        {},
    ),
    "atomics": (
        """
@triton.jit
def kernel(x, i, out, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.atomic_add(x + offs, 1.0, mask=offs < n)
    tl.atomic_add(x, 2.0, sem="relaxed")
    old = tl.atomic_max(i + offs, offs)
    tl.atomic_min(i + offs, old, scope="cta")
    tl.atomic_and(i, 1)
    tl.atomic_or(i, 1)
    tl.atomic_xor(i, 1)
    tl.atomic_xchg(i, 1)
    tl.atomic_max(x + offs, tl.load(x + offs))
    tl.store(out, tl.atomic_cas(i, 1, 2))
""",
        {"x": "*fp32", "i": "*i32", "out": "*i32", "n": "i32"},
        {"BLOCK": 32},
        {},
    ),
    "atomics of other widths": (
        """
@triton.jit
def kernel(h, l, u, d, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.atomic_add(h + offs, 1.5, mask=offs < n)
    tl.store(h, tl.atomic_cas(h, tl.load(h + 1), tl.load(h + 2)))
    tl.store(l, tl.atomic_max(l + 1, tl.atomic_xchg(l + 2, 3)))
    tl.atomic_min(u + offs, 3, sem="release")
    tl.atomic_add(d + offs, 0.5)
    tl.atomic_max(d + offs, 1.5, mask=offs < n)
    tl.store(l, tl.atomic_cas(l, tl.load(l + 1), tl.load(l + 2), sem="acquire"))
""",
        {"h": "*fp16", "l": "*i64", "u": "*u64", "d": "*fp64", "n": "i32"},
        {"BLOCK": 32},
        {},
    ),
    "atomic loads and stores": (
        """
@triton.jit
def kernel(x, i, b, h, flags, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    v = tl.atomic_load(i + offs, mask=offs < n)
    tl.atomic_store(x + offs, v, mask=offs < n)
    tl.atomic_store(b + offs, tl.atomic_load(b + (BLOCK - 1 - offs), sem="relaxed"), sem="relaxed")
    tl.atomic_store(h, tl.atomic_load(h + 1, scope="cta"), scope="sys")
    (h + offs).atomic_store(1.5)
    tl.atomic_store(flags, tl.atomic_load(flags + 1))
    there = tl.atomic_poll(i, 3, timeout_ns=1000)
    tl.store(i + 1, tl.where(there, 1, 0))
    tl.store(i + offs, tl.atomic_poll(i + offs, offs, sem="relaxed", timeout_ns=n).to(tl.int32))
""",
        {"x": "*fp32", "i": "*i32", "b": "*i8", "h": "*fp16", "flags": "*i1", "n": "i32"},
        {"BLOCK": 32},
        {},
    ),
    "tuples": (
        """
@triton.jit
def swap(pair, scale: tl.constexpr):
    return pair[1] * scale, pair[0]

@triton.jit
def many(*values):
    total = values[0]
    for i in tl.static_range(1, len(values)):
        total += values[i]
    return total

@triton.jit
def kernel(x, out, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    a, b = tl.load(x + offs), tl.load(x + offs + BLOCK)
    b, a = swap((a, b), 2)
    (c, d), e = swap((a, b), 3), n
    tl.store(out + offs, many(a, b, c, d, e))
    shape: tl.constexpr = (BLOCK // 2, 2)
    tl.store(out + offs, tl.full(shape, 1, tl.float32).reshape(BLOCK))
    x0, x1 = tl.swizzle2d(n, n + 1, 8, 8, 4)
    tl.store(out, x0 + x1)
""",
        {"x": "*fp32", "out": "*fp32", "n": "i32"},
        {"BLOCK": 64},
        {},
    ),
}


@pytest.mark.parametrize("name", KERNELS)
def test_same_operations(tmp_path, name):
    source, signature, constexprs, divisibility = KERNELS[name]
    compare(tmp_path, source, signature, constexprs, divisibility)
