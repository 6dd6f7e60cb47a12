"""Kernels whose TTIR, as stock Triton prints it, the fixtures beside this file hold (see generate.py)."""

import triton
import triton.language as tl

KERNELS = {}

#: Kernels whose fixture is what the front end prints, before stock Triton's passes.
UNSTAGED = {"block_pointers"}


def fixture(signature, attrs=None, /, **constexprs):
    """Registers a kernel with the argument types and constants that its fixture is made for."""

    def register(fn):
        KERNELS[fn.__name__] = (fn, dict(signature), constexprs, attrs or {})
        return fn

    return register


@fixture(
    {"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32"},
    {"x": 16, "y": 16, "out": 16, "n": 16},
    BLOCK=1024,
)
@triton.jit
def vector_add(x, y, out, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    a = tl.load(x + offs, mask=mask)
    b = tl.load(y + offs, mask=mask, other=0.0)
    tl.store(out + offs, a + b, mask=mask)


@fixture(
    {"out": "*fp32", "x": "*fp32", "out_stride": "i32", "x_stride": "i32", "cols": "i32"},
    {"out": 16},
    BLOCK=512,
)
@triton.jit
def softmax(out, x, out_stride, x_stride, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    v = tl.load(x + row * x_stride + c, mask=c < cols, other=-float("inf"))
    v = v - tl.max(v, axis=0)
    e = tl.exp(v)
    tl.store(out + row * out_stride + c, e / tl.sum(e, axis=0), mask=c < cols)


@fixture(
    {
        "x": "*bf16",
        "y": "*bf16",
        "w": "*fp32",
        "b": "*fp32",
        "stride": "i64",
        "n": "i32",
        "eps": "fp32",
    },
    BLOCK=256,
)
@triton.jit
def layer_norm(x, y, w, b, stride, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, n, BLOCK):
        c = start + tl.arange(0, BLOCK)
        total += tl.load(
            x + row * stride + c, mask=c < n, other=0.0, eviction_policy="evict_last"
        ).to(tl.float32)
    mean = tl.sum(total, axis=0) / n
    var = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, n, BLOCK):
        c = start + tl.arange(0, BLOCK)
        d = (
            tl.load(x + row * stride + c, mask=c < n, other=0.0, cache_modifier=".cg").to(
                tl.float32
            )
            - mean
        )
        d = tl.where(c < n, d, 0.0)
        var += d * d
    rstd = 1 / tl.sqrt(tl.sum(var, axis=0) / n + eps)
    for start in range(0, n, BLOCK):
        c = start + tl.arange(0, BLOCK)
        m = c < n
        v = tl.load(
            x + row * stride + c, mask=m, other=0.0, eviction_policy="evict_first", volatile=True
        )
        r = (v.to(tl.float32) - mean) * rstd * tl.load(w + c, mask=m) + tl.load(b + c, mask=m)
        tl.store(
            y + row * stride + c,
            r.to(tl.bfloat16),
            mask=m,
            cache_modifier=".cs",
            eviction_policy="evict_first",
        )


@triton.jit
def leaky_relu(v):
    return tl.where(v >= 0, v, 0.01 * v)


@fixture(
    {"a": "*fp16", "b": "*fp16", "c": "*fp16", "M": "i32", "N": "i32", "K": "i32", "sam": "i32", "sak": "constexpr",
     "sbk": "i32", "sbn": "constexpr", "scm": "i32", "scn": "constexpr"},
    {"a": 16, "b": 16, "c": 16, "sam": 16, "sbk": 16, "scm": 16},
    sak=1, sbn=1, scn=1, BM=64, BN=64, BK=32, GROUP=8,
)  # fmt: skip
@triton.jit
def matmul(
    a,
    b,
    c,
    M,
    N,
    K,
    sam,
    sak,
    sbk,
    sbn,
    scm,
    scn,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    GROUP: tl.constexpr,
):
    pid = tl.program_id(0)
    tiles_m = tl.cdiv(M, BM)
    tiles_n = tl.cdiv(N, BN)
    in_group = GROUP * tiles_n
    first_m = pid // in_group * GROUP
    size_m = min(tiles_m - first_m, GROUP)
    pid_m = first_m + pid % in_group % size_m
    pid_n = pid % in_group // size_m
    rm = pid_m * BM + tl.arange(0, BM)
    rn = pid_n * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    a_ptrs = a + (rm[:, None] * sam + rk[None, :] * sak)
    b_ptrs = b + (rk[:, None] * sbk + rn[None, :] * sbn)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        left = K - k * BK
        at = tl.load(a_ptrs, mask=(rm[:, None] < M) & (rk[None, :] < left), other=0.0)
        bt = tl.load(b_ptrs, mask=(rk[:, None] < left) & (rn[None, :] < N), other=0.0)
        acc = tl.dot(at, bt, acc)
        a_ptrs += BK * sak
        b_ptrs += BK * sbk
    acc = leaky_relu(acc)
    c_ptrs = c + rm[:, None] * scm + rn[None, :] * scn
    tl.store(c_ptrs, acc.to(tl.float16), mask=(rm[:, None] < M) & (rn[None, :] < N))


@fixture({"x": "*i8", "y": "*i8", "out": "*i32", "f": "*fp32", "g": "*fp32"}, BLOCK=32)
@triton.jit
def dots(x, y, out, f, g, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    p = i[:, None] * BLOCK + i[None, :]
    tl.store(out + p, tl.dot(tl.load(x + p), tl.load(y + p), out_dtype=tl.int32))
    fp = tl.load(f + p)
    tl.store(f + p, tl.dot(fp, tl.trans(tl.load(g + p)), input_precision="ieee"))
    tl.store(g + p, tl.dot(fp, tl.load(g + p), input_precision="tf32", max_num_imprecise_acc=8))


@fixture({"x": "*fp32", "value": "*fp32", "index": "*i32", "low": "*i64"}, ROWS=16, COLS=128)
@triton.jit
def arg_reductions(x, value, index, low, ROWS: tl.constexpr, COLS: tl.constexpr):
    r = tl.arange(0, ROWS)
    v = tl.load(x + r[:, None] * COLS + tl.arange(0, COLS)[None, :])
    m, i = tl.max(v, axis=1, return_indices=True)
    tl.store(value + r, m)
    tl.store(index + r, i)
    tl.store(low + r, tl.argmin(v, axis=1).to(tl.int64))
    tl.store(x, tl.min(v))


@triton.jit
def product(a, b):
    return a * b


@triton.jit
def welford(mean_a, m2_a, n_a, mean_b, m2_b, n_b):
    n = n_a + n_b
    d = mean_b - mean_a
    return mean_a + d * n_b / n, m2_a + m2_b + d * d * n_a * n_b / n, n


@fixture({"x": "*fp32", "out": "*fp32"}, N=64)
@triton.jit
def scans(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    tl.store(out + i, tl.cumsum(v, axis=0))
    tl.store(out + i, tl.associative_scan(v, 0, product, reverse=True))
    ones = tl.full([N], 1.0, tl.float32)
    mean, m2, n = tl.reduce((v, v * 0.0, ones), 0, welford)
    tl.store(out, mean + m2 / n)
    tl.store(out + i, tl.sort(v))


@fixture({"p": "*i32", "q": "*fp32", "h": "*fp16", "u": "*u32"}, N=128)
@triton.jit
def atomics(p, q, h, u, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.atomic_add(q + i, i.to(tl.float32), mask=i < 100)
    tl.atomic_add(h + i, i.to(tl.float16), sem="relaxed")
    old = tl.atomic_max(p + i, i, sem="acquire", scope="cta")
    tl.atomic_min(u + i, i.to(tl.uint32), sem="release", scope="sys")
    tl.atomic_and(p, 3)
    tl.atomic_or(p + i, old)
    tl.atomic_xor(p + i, 1)
    tl.atomic_xchg(p + i, old + 1)
    tl.atomic_max(q, 2.0)
    while tl.atomic_cas(p, 0, 1) == 1:
        pass
    tl.store(p, tl.atomic_cas(u, 7, 9, sem="acq_rel"))


@fixture({"x": "*i32", "out": "*i32", "n": "i32"}, BLOCK=64)
@triton.jit
def while_loop(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    acc = tl.zeros([BLOCK], tl.int32)
    k = n
    while k > 1:
        acc += tl.load(x + i + k)
        if k % 2 == 0:
            k = k // 2
        else:
            k = 3 * k + 1
    tl.store(out + i, acc)


@fixture({"x": "*fp32", "out": "*fp32", "n": "i32", "flag": "i1"}, BLOCK=64)
@triton.jit
def early_return(x, out, n, flag, BLOCK: tl.constexpr):
    pid = tl.program_id(1)
    if pid >= n:
        return
    i = pid * BLOCK + tl.arange(0, BLOCK)
    if flag:
        v = tl.load(x + i)
        if n > 100:
            tl.store(out + i, v)
            return
        v = v * 2
    else:
        v = tl.load(out + i) + tl.num_programs(1)
    tl.store(out + i, v)


@triton.jit(noinline=True)
def square_plus(v, p, c: tl.constexpr):
    return v * v + c + tl.load(p)


@triton.jit(noinline=True)
def bump(p, n):
    if n > 3:
        tl.store(p, n)


@fixture({"x": "*fp32", "out": "*fp32", "count": "*i32", "n": "i32"}, {"n": 16}, BLOCK=128)
@triton.jit
def calls(x, out, count, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = square_plus(tl.load(x + n), x, 3)
    bump(count, n)
    s = square_plus(tl.load(x), x, 5)
    tl.store(out + i, v + s * tl.load(x + i))


@fixture(
    {
        "a": "*i8",
        "b": "*u8",
        "c": "*i16",
        "d": "*u16",
        "e": "*i64",
        "f": "*u64",
        "g": "*i1",
        "s": "i8",
        "t": "u16",
        "w": "u64",
    },
    N=32,
)
@triton.jit
def integers(a, b, c, d, e, f, g, s, t, w, N: tl.constexpr):
    i = tl.arange(0, N)
    av = tl.load(a + i)
    bv = tl.load(b + i)
    cv = tl.load(c + i)
    dv = tl.load(d + i)
    ev = tl.load(e + i)
    fv = tl.load(f + i)
    gv = tl.load(g + i)
    tl.store(a + i, (av + s) // 3)
    tl.store(b + i, bv % 7 << 1)
    tl.store(c + i, cv >> 2 ^ av)
    tl.store(d + i, dv // t | 1)
    tl.store(e + i, tl.where(gv, ev % -5, -ev))
    tl.store(f + i, tl.umulhi(fv, w) & ~fv)
    tl.store(g + i, (av < cv) | (dv > 3) & (ev != 0))
    tl.store(e + i, tl.minimum(ev, tl.abs(ev)))
    tl.store(f + i, tl.maximum(fv, fv >> 3))


@fixture(
    {
        "x": "*bf16",
        "y": "*fp16",
        "z": "*fp32",
        "w": "*fp64",
        "p": "*u8",
        "b": "*i32",
        "q8": "*fp8e5",
        "s": "fp32",
    },
    N=64,
)
@triton.jit
def floats(x, y, z, w, p, b, q8, s, N: tl.constexpr):
    i = tl.arange(0, N)
    xv = tl.load(x + i).to(tl.float32)
    yv = tl.load(y + i)
    tl.store(
        z + i,
        tl.exp2(xv)
        + tl.log(xv)
        + tl.log2(xv)
        + tl.sin(xv)
        + tl.cos(xv)
        + tl.rsqrt(xv)
        + tl.erf(xv),
    )
    tl.store(y + i, (yv * 2).to(tl.float16) + yv.to(tl.float16))
    tl.store(x + i, (xv * s).to(tl.bfloat16))
    tl.store(z + i, tl.fma(xv, xv, s) + tl.floor(xv) + tl.ceil(xv) + tl.abs(xv) + xv % 2.0)
    tl.store(z + i, tl.clamp(xv, -1.0, 1.0) + tl.sqrt_rn(xv) + tl.div_rn(xv, s))
    tl.store(z + i, tl.maximum(xv, s) + tl.minimum(xv, s, propagate_nan=tl.PropagateNan.ALL))
    tl.store(b + i, xv.to(tl.int32, bitcast=True))
    tl.store(p + i, xv.to(tl.uint8))
    tl.store(b + i, xv.to(tl.int32))
    tl.store(z + i, tl.load(b + i).to(tl.uint32, bitcast=True).to(tl.float32))
    tl.store(w + i, xv.to(tl.float64))
    tl.store(q8 + i, xv.to(tl.float8e5, fp_downcast_rounding="rtne"))
    tl.store(y + i, xv.to(tl.float16, fp_downcast_rounding="rtz"))
    tl.store(z + i, tl.load(q8 + i).to(tl.float32))


@fixture({"q": "*fp16", "k": "*fp16", "v": "*fp16", "o": "*fp16", "scale": "fp32", "rows": "i32"},
         {"q": 16, "k": 16, "v": 16, "o": 16}, BM=64, BN=32, D=64, STAGES=2)  # fmt: skip
@triton.jit
def attention(
    q,
    k,
    v,
    o,
    scale,
    rows,
    BM: tl.constexpr,
    BN: tl.constexpr,
    D: tl.constexpr,
    STAGES: tl.constexpr,
):
    start = tl.program_id(0)
    base = tl.program_id(1).to(tl.int64) * rows * D
    om = start * BM + tl.arange(0, BM)
    on = tl.arange(0, BN)
    od = tl.arange(0, D)
    qt = tl.load(q + base + om[:, None] * D + od[None, :], mask=om[:, None] < rows, other=0.0)
    kp = k + base + on[None, :] * D + od[:, None]
    vp = v + base + on[:, None] * D + od[None, :]
    m = tl.full([BM], -float("inf"), tl.float32)
    den = tl.zeros([BM], tl.float32)
    acc = tl.zeros([BM, D], tl.float32)
    for n in tl.range(0, (start + 1) * BM, BN, num_stages=STAGES):
        n = tl.multiple_of(n, BN)
        kt = tl.load(kp + n * D, mask=(n + on)[None, :] < rows, other=0.0)
        s = tl.dot(qt, kt) * scale
        s = tl.where(om[:, None] >= (n + on)[None, :], s, -1.0e6)
        mi = tl.maximum(m, tl.max(s, 1))
        p = tl.exp2(s - mi[:, None])
        alpha = tl.exp2(m - mi)
        den = den * alpha + tl.sum(p, 1)
        vt = tl.load(vp + n * D, mask=(n + on)[:, None] < rows, other=0.0)
        acc = tl.dot(p.to(tl.float16), vt, acc * alpha[:, None])
        m = mi
    acc = acc / den[:, None]
    tl.store(o + base + om[:, None] * D + od[None, :], acc.to(tl.float16), mask=om[:, None] < rows)


@fixture({"x": "*fp32", "out": "*fp32", "n": "i32", "p": "fp32", "seed": "i32"}, BLOCK=256)
@triton.jit
def dropout(x, out, n, p, seed, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + offs, mask=offs < n)
    keep = tl.rand(seed, offs) > p
    tl.store(out + offs, tl.where(keep, v / (1 - p), 0.0), mask=offs < n)
    tl.store(out + offs, tl.randn(seed, offs) + tl.randint(seed, offs))


@fixture({"x": "*fp32", "out": "*fp32", "i": "*i32"}, N=8)
@triton.jit
def shapes(x, out, i, N: tl.constexpr):
    r = tl.arange(0, N)
    cube = tl.load(x + r[:, None, None] * 64 + r[None, :, None] * 8 + r[None, None, :])
    tl.store(
        out + r[:, None, None] * 64 + r[None, :, None] * 8 + r[None, None, :],
        tl.permute(cube, (2, 0, 1)),
    )
    flat = tl.reshape(cube, (N * N * N,))
    tl.store(
        out + tl.arange(0, N * N * N),
        tl.ravel(cube) + tl.reshape(flat, (N * N * N,), can_reorder=True),
    )
    j = tl.join(flat, flat * 2)
    a, b = tl.split(j)
    tl.store(out + tl.arange(0, N * N * N), a + b)
    tl.store(out + tl.arange(0, 2 * N * N * N), tl.cat(flat, flat, can_reorder=True))
    tl.store(out + tl.arange(0, 2 * N * N * N), tl.interleave(flat, flat))
    tl.store(i + tl.arange(0, 16), tl.histogram(tl.load(i + r), 16))
    tl.store(out + r, tl.gather(tl.load(x + r), tl.load(i + r), 0))
    tl.store(out + r[:, None] * N + r[None, :], tl.sum(tl.broadcast_to(cube, (N, N, N)), axis=1))
    one = tl.full((1, 1), 3.0, tl.float32)
    tl.store(out + tl.arange(0, 1), tl.reshape(one, (1,)))


@fixture({"x": "*fp32", "addr": "i64", "table": "*i64", "out": "*fp32", "which": "i1"}, N=16)
@triton.jit
def pointers(x, addr, table, out, which, N: tl.constexpr):
    i = tl.arange(0, N)
    p = addr.to(tl.pointer_type(tl.float32))
    many = tl.load(table + i).to(tl.pointer_type(tl.float32))
    v = tl.load(many) + tl.load(p + i)
    chosen = tl.where(which, x + i, out + i)
    tl.store(chosen, v)
    tl.store(table + i, (x + i).to(tl.int64))
    if which:
        q = x + i
    else:
        q = out + i * 2
    for _ in range(4):
        tl.store(q, v)
        q += N
    tl.store(tl.max_contiguous(tl.multiple_of(out, 16) + i, N), v)


@fixture({"x": "*fp32", "n": "i32"}, N=16)
@triton.jit
def debug(x, n, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    tl.device_print("value ", v, n)
    tl.device_print("hex", i, hex=True)
    tl.device_assert(v > 0, "must be positive")
    tl.assume(n > 0)
    tl.static_assert(N == 16)
    tl.store(
        x + i,
        tl.inline_asm_elementwise(
            "add.f32 $0, $1, $1;", "=f,f", [v], dtype=tl.float32, is_pure=True, pack=1
        ),
    )


@fixture({"x": "*fp32", "out": "*fp32", "n": "i32"}, N=16)
@triton.jit
def nested_loops(x, out, n, N: tl.constexpr):
    i = tl.arange(0, N)
    acc = tl.zeros([N, N], tl.float32)
    for a in tl.range(0, n, loop_unroll_factor=2):
        for b in tl.static_range(2):
            acc += tl.load(x + (a * 2 + b) * N * N + i[:, None] * N + i[None, :])
        for c in tl.range(n, 0, -1, disallow_acc_multi_buffer=True, flatten=False):
            acc *= c
    tl.store(out + i[:, None] * N + i[None, :], acc)


@fixture({"x": "*fp32", "i": "*i32", "flag": "*i32"}, N=16)
@triton.jit
def later(x, i, flag, N: tl.constexpr):
    """What only later versions have."""
    r = tl.arange(0, N)
    v = tl.atomic_load(i + r, sem="acquire", mask=r < 7)
    tl.atomic_store(i + r, v + tl.atomic_load(flag), sem="release")
    tl.atomic_poll(flag, 1)
    tl.atomic_poll(flag, 2, sem="relaxed", timeout_ns=1000)
    tl.store(x + r, tl.fdiv(tl.load(x + r), 3.0))


@fixture({"x": "*fp32", "i": "*i32"}, N=16)
@triton.jit
def scalars(x, i, N: tl.constexpr):
    r = tl.arange(0, N)
    one = tl.full((1,), 1, tl.int32) + tl.load(i + tl.arange(0, 1))
    tl.store(i, one.item())
    tl.store(i + r, tl.histogram(tl.load(i + r), N, mask=r < 5))
    tl.store(x + r, tl.cumsum(tl.load(x + r), 0), mask=r != one.item())
    a, b = tl.split(tl.reshape(tl.load(x + r), (8, 2)))
    tl.store(x + tl.arange(0, 8), a * b)
    tl.store(x, tl.xor_sum(tl.load(i + r), 0).to(tl.float32))


@triton.jit
def swap(a, b):
    return b, a


@fixture({"x": "*fp32", "out": "*fp32"}, N=32)
@triton.jit
def mapped(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b = tl.map_elementwise(swap, tl.load(x + i), tl.load(out + i))
    tl.store(out + i, a - b)


@fixture({"a": "*fp8e4nv", "sa": "*u8", "b": "*fp8e5", "sb": "*u8", "c": "*fp32"}, M=64, K=64)
@triton.jit
def scaled(a, sa, b, sb, c, M: tl.constexpr, K: tl.constexpr):
    m = tl.arange(0, M)
    k = tl.arange(0, K)
    g = tl.arange(0, K // 32)
    av = tl.load(a + m[:, None] * K + k[None, :])
    bv = tl.load(b + k[:, None] * M + m[None, :])
    scale_a = tl.load(sa + m[:, None] * (K // 32) + g[None, :])
    scale_b = tl.load(sb + m[:, None] * (K // 32) + g[None, :])
    r = tl.dot_scaled(av, scale_a, "e4m3", bv, scale_b, "e5m2")
    tl.store(c + m[:, None] * M + m[None, :], r)


@fixture({"x": "*fp32"}, N=64)
@triton.jit
def barrier(x, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    tl.debug_barrier()
    tl.store(x + (N - 1) - i, v)


@fixture({"x": "*fp32", "y": "*fp32", "m": "i32", "n": "i32", "stride": "i64"}, BM=8, BN=16)
@triton.jit
def block_pointers(x, y, m, n, stride, BM: tl.constexpr, BN: tl.constexpr):
    row = tl.program_id(0) * BM
    a = tl.make_block_ptr(x, (m, n), (stride, 1), (row, 0), (BM, BN), (1, 0))
    b = tl.make_block_ptr(y, (n, m), (1, stride), (0, row), (BN, BM), (0, 1))
    for _ in range(0, n, BN):
        v = tl.load(a, boundary_check=(0, 1), padding_option="nan", cache_modifier=".cg")
        v += tl.load(a, boundary_check=(1,), padding_option="zero", eviction_policy="evict_last")
        if m > 5:
            a = tl.advance(a, (0, BN))
        tl.store(b, tl.trans(v + tl.load(a, boundary_check=(0,))), boundary_check=(0, 1))
        b = tl.advance(b, (BN, 0))
    tl.store(b, tl.load(b))


@triton.jit(noinline=True)
def load_row(d, i):
    return d.load([i, 0])


@fixture({"x": "*fp32", "y": "*fp32", "m": "i32", "n": "i32", "stride": "i64"}, BM=8, BN=16)
@triton.jit
def descriptors(x, y, m, n, stride, BM: tl.constexpr, BN: tl.constexpr):
    a = tl.make_tensor_descriptor(x, [m, n], [stride, 1], [BM, BN], padding_option="nan")
    b = tl.make_tensor_descriptor(y, [m, n], [stride, 1], [BM, BN])
    for i in range(0, n, BN):
        v = a.load([0, i])
        b.store([0, i], v)
        b.atomic_add([BM, i], v)
        if m > 5:
            a = tl.make_tensor_descriptor(x + i, [m, n], [stride, 1], [BM, BN])
    while m > 0:
        a, b = b, a
        m -= 1
    b.store([3, 0], load_row(a, 3))
    deep = tl.make_tensor_descriptor(x, [2, 3, m, n], [stride, stride, stride, 1], [1, 1, BM, BN])
    v = deep.load([0, 1, 0, 0]).reshape([BM, BN])
    deep.store([1, 0, 0, 0], v.reshape([1, 1, BM, BN]))


@fixture(
    {"x": "*u32", "y": "*fp16", "rows": "*i32", "m": "i32", "n": "i32", "stride": "i64"}, BN=16
)
@triton.jit
def descriptor_updates(x, y, rows, m, n, stride, BN: tl.constexpr):
    a = tl.make_tensor_descriptor(x, [m, n], [stride, 1], [8, BN])
    v = tl.load_tensor_descriptor(a, [0, 3])
    a.atomic_and([0, 0], v)
    a.atomic_or([0, 0], v)
    a.atomic_xor([0, 0], v)
    a.atomic_min([0, 0], v)
    a.atomic_max([0, 0], v)
    tl.store_tensor_descriptor(a, [1, 2], v)
    b = tl.make_tensor_descriptor(y, [m, n], [stride, 1], [1, BN])
    which = tl.load(rows + tl.arange(0, 8))
    b.scatter(b.gather(which, 5), which, 6)


@fixture(
    {
        "a": "tensordesc<fp32[8, 16]>",
        "b": "tensordesc<fp32[8, 16]>",
        "pair": ("tensordesc<i8[16]>", "i32"),
        "y": "*fp32",
    }
)
@triton.jit
def descriptor_arguments(a, b, pair, y):
    b.store([a.shape[0], 0], a.load([0, 3]))
    d = a
    for i in range(a.shape[1]):
        tl.store(y + i, tl.sum(d.load([0, i])))
        d = b
    pair[0].store([pair[1]], pair[0].load([1]))
