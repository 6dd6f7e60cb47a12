"""Every Triton kernel of liger-kernel, forward and backward, against torch's own functions."""

from __future__ import annotations

import math
import sys

import pytest
import torch
import torch.nn.functional as F
import triton
from package_support import check, labels, normal

pytest.importorskip("liger_kernel")

from liger_kernel.ops import (
    attn_res,
    cross_entropy,
    dyt,
    fused_add_rms_norm,
    fused_ce_tvd,
    fused_linear_cross_entropy,
    fused_linear_jsd,
    fused_linear_kl_div,
    fused_moe,
    fused_neighborhood_attention,
    geglu,
    group_norm,
    grpo_loss,
    jsd,
    kl_div,
    layer_norm,
    llama4_rope,
    mhc,
    mlp,
    modulated_rms_norm,
    multi_token_attention,
    poly_norm,
    qwen2vl_mrope,
    relu_squared,
    rms_norm,
    rope,
    softmax,
    sparsemax,
    swiglu,
    tvd,
    vocab_parallel_cross_entropy,
)
from liger_kernel.ops.experimental import embedding, mm_int8int2

DTYPES = [torch.float32, torch.bfloat16]


def tolerance(dtype: torch.dtype) -> dict[str, float]:
    return {"rtol": 1e-4, "atol": 2e-5} if dtype is torch.float32 else {"rtol": 4e-2, "atol": 4e-2}


# --- norms


def reference_rms(x, w, eps, offset=0.0, casting="llama"):
    kind = x.dtype
    y = x.float() if casting != "none" else x
    y = y * torch.rsqrt(y.square().mean(-1, keepdim=True) + eps)
    if casting == "llama":
        y = y.to(kind)
        return y if w is None else (y * (w + offset)).to(kind)
    return (y if w is None else y * (w.float() + offset)).to(kind)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("casting", ["llama", "gemma", "none"])
@pytest.mark.parametrize("shape", [(5, 96), (2, 3, 257)])
def test_rms_norm(dtype, casting, shape):
    offset = 1.0 if casting == "gemma" else 0.0
    check(
        lambda x, w: rms_norm.LigerRMSNormFunction.apply(x, w, 1e-6, offset, casting, False),
        lambda x, w: reference_rms(x, w, 1e-6, offset, casting),
        normal(*shape, dtype=dtype),
        normal(shape[-1], dtype=dtype),
        **tolerance(dtype),
    )


def test_rms_norm_of_many_rows_takes_blocks_of_rows():
    """Very many rows of few columns: the kernels that take a block of rows each."""
    check(
        lambda x, w: rms_norm.LigerRMSNormFunction.apply(x, w, 1e-6, 0.0, "llama", True),
        lambda x, w: reference_rms(x, w, 1e-6),
        normal(32768, 16),
        normal(16),
        atol=1e-4,
    )


def test_rms_norm_without_a_weight():
    check(
        lambda x: rms_norm.LigerRMSNormFunction.apply(x, None, 1e-6, 0.0, "llama", False),
        lambda x: reference_rms(x, None, 1e-6),
        normal(7, 100),
    )


@pytest.mark.parametrize("casting", ["llama", "gemma", "none"])
def test_fused_add_rms_norm(casting):
    def theirs(x, r, w):
        s = x + r
        return reference_rms(s, w, 1e-6, 0.0, casting), s

    check(
        lambda x, r, w: fused_add_rms_norm.LigerFusedAddRMSNormFunction.apply(
            x, r, w, 1e-6, 0.0, casting, False
        ),
        theirs,
        normal(6, 100),
        normal(6, 100, seed=1),
        normal(100),
    )


@pytest.mark.parametrize("casting", ["llama", "gemma", "none"])
def test_modulated_rms_norm(casting):
    check(
        lambda x, w, scale, shift: modulated_rms_norm.LigerModulatedRMSNormFunction.apply(
            x, w, scale, shift, 1e-6, 0.0, casting, False
        ),
        lambda x, w, scale, shift: (
            reference_rms(x, w, 1e-6, 0.0, casting) * (1 + scale[:, None]) + shift[:, None]
        ),
        normal(3, 4, 96),
        normal(96),
        normal(3, 96),
        normal(3, 96, seed=2),
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_layer_norm(dtype):
    check(
        lambda x, w, b: layer_norm.LigerLayerNormFunction.apply(x, w, b, 1e-5),
        lambda x, w, b: F.layer_norm(x, (130,), w, b, 1e-5),
        normal(9, 130, dtype=dtype),
        normal(130, dtype=dtype),
        normal(130, seed=1, dtype=dtype),
        **tolerance(dtype),
    )


@pytest.mark.parametrize(("channels", "groups"), [(6, 2), (8, 8)])
def test_group_norm(channels, groups):
    check(
        lambda x, w, b: group_norm.LigerGroupNormFunction.apply(x, w, b, channels, groups, 1e-5),
        lambda x, w, b: F.group_norm(x, groups, w, b, 1e-5),
        normal(2, channels, 37),
        normal(channels),
        normal(channels, seed=1),
        atol=1e-4,
    )


def test_poly_norm():
    def theirs(x, w, b):
        def norm(y):
            return y * torch.rsqrt(y.square().mean(-1, keepdim=True) + 1e-6)

        return w[0] * norm(x**3) + w[1] * norm(x**2) + w[2] * norm(x) + b

    check(
        lambda x, w, b: poly_norm.LigerPolyNormFunction.apply(x, w, b, 1e-6, False),
        theirs,
        normal(5, 100),
        normal(3),
        torch.tensor(0.3),
        atol=1e-4,
    )


@pytest.mark.parametrize("beta", [True, False])
def test_dyt(beta, monkeypatch):
    # Its backward pass counts the processors of a GPU, and knows none for the CPU.
    monkeypatch.setattr(dyt, "infer_device", lambda: "npu")
    check(
        lambda x, a, g, b: dyt.LigerDyTFunction.apply(x, a, g, b if beta else None),
        lambda x, a, g, b: g * torch.tanh(a * x) + (b if beta else 0),
        normal(5, 100),
        normal(1),
        normal(100),
        normal(100, seed=1),
        fixed=() if beta else (3,),
    )


# --- activations


@pytest.mark.parametrize("dtype", DTYPES)
def test_geglu(dtype):
    check(
        geglu.LigerGELUMulFunction.apply,
        lambda a, b: F.gelu(a, approximate="tanh") * b,
        normal(3, 5, 100, dtype=dtype),
        normal(3, 5, 100, seed=1, dtype=dtype),
        **tolerance(dtype),
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_swiglu(dtype):
    check(
        swiglu.LigerSiLUMulFunction.apply,
        lambda a, b: F.silu(a) * b,
        normal(3, 100, dtype=dtype),
        normal(3, 100, seed=1, dtype=dtype),
        **tolerance(dtype),
    )


def test_swiglu_in_tiles(monkeypatch):
    """The kernels that it takes for long rows on one kind of GPU."""
    monkeypatch.setattr(swiglu, "infer_device_arch", lambda: "blackwell")
    check(
        swiglu.LigerSiLUMulFunction.apply,
        lambda a, b: F.silu(a) * b,
        normal(2, 9000),
        normal(2, 9000, seed=1),
    )


def test_swiglu_with_multipliers():
    check(
        lambda a, b: swiglu.LigerSiLUMulFunction.apply(a, b, 0.5, 2.0),
        lambda a, b: F.silu(0.5 * a) * b * 2.0,
        normal(4, 100),
        normal(4, 100, seed=1),
    )


@pytest.mark.parametrize("in_place", [False, True])
def test_swiglu_of_one_operand(in_place):
    check(
        lambda y: swiglu.LigerFusedGateUpSiLUMulFunction.apply(y, in_place),
        lambda y: F.silu(y[..., :100]) * y[..., 100:],
        normal(4, 200),
    )


def test_relu_squared():
    check(relu_squared.LigerReLUSquaredFunction.apply, lambda x: F.relu(x).square(), normal(5, 100))


@pytest.mark.parametrize("columns", [100, 3000])
def test_softmax(columns):
    check(softmax.LigerSoftmaxFunction.apply, lambda x: x.softmax(-1), normal(3, columns))


def test_softmax_in_blocks():
    """The kernels with a loop over a row, which the package's own choice of a block does not reach.

    They call a dtype. Triton refuses that, and so does triton_metal.
    """
    x, out = normal(3, 1000), torch.empty(3, 1000)
    with pytest.raises(triton.CompilationError, match=r"softmax\.py:.*fp32"):
        softmax._softmax_multi_block_forward_kernel[(3,)](
            out, 1000, x, 1000, 1000, BLOCK_SIZE=256, num_warps=4
        )
    with pytest.raises(triton.CompilationError, match=r"softmax\.py:.*fp32"):
        softmax._softmax_backward(x, x.softmax(-1), 256, 4, True)


def sparse(x, dim=-1):
    """Sparsemax by its definition."""
    z = x.transpose(dim, -1)
    ordered = z.sort(-1, descending=True).values
    sums = ordered.cumsum(-1) - 1
    steps = torch.arange(1, z.shape[-1] + 1)
    support = (ordered * steps > sums).sum(-1, keepdim=True)
    tau = sums.gather(-1, support - 1) / support
    return (z - tau).clamp(min=0).transpose(dim, -1)


@pytest.mark.parametrize("dim", [-1, 1])
def test_sparsemax(dim):
    check(
        lambda x: sparsemax.LigerSparsemaxFunction.apply(x, dim),
        lambda x: sparse(x, dim),
        normal(3, 20, 50),
    )


# --- positions


def angles(length, size, seed=0):
    phase = normal(1, length, size // 2, seed=seed)
    phase = torch.cat([phase, phase], -1)
    return phase.cos(), phase.sin()


def rotated(x, cos, sin):
    half = x.shape[-1] // 2
    turned = torch.cat([-x[..., half:], x[..., :half]], -1)
    return x * cos[:, None] + turned * sin[:, None]


def test_rope():
    cos, sin = angles(9, 32)
    check(
        lambda q, k: rope.LigerRopeFunction.apply(q, k, cos, sin),
        lambda q, k: (rotated(q, cos, sin), rotated(k, cos, sin)),
        normal(2, 6, 9, 32),
        normal(2, 3, 9, 32),
    )


def test_mrope():
    """Qwen2-VL's: a third of the head's angles each from time, height and width."""
    sections = [4, 6, 6]
    phase = normal(3, 2, 9, 16)
    phase = torch.cat([phase, phase], -1)
    cos, sin = phase.cos(), phase.sin()

    def mixed(table):
        parts = table.split(sections * 2, -1)
        return torch.cat([part[i % 3] for i, part in enumerate(parts)], -1)

    check(
        lambda q, k: qwen2vl_mrope.LigerQwen2VLMRopeFunction.apply(q, k, cos, sin, sections),
        lambda q, k: (rotated(q, mixed(cos), mixed(sin)), rotated(k, mixed(cos), mixed(sin))),
        normal(2, 6, 9, 32),
        normal(2, 3, 9, 32),
    )


def test_rope_of_llama_4():
    table = torch.polar(torch.ones(9, 16), normal(9, 16))

    def turned(x):
        pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))
        return torch.view_as_real(pairs * table[None, :, None]).flatten(3)

    check(
        lambda q, k: llama4_rope.LigerLlama4RopeFunction.apply(q, k, table),
        lambda q, k: (turned(q), turned(k)),
        normal(2, 9, 6, 32),
        normal(2, 9, 3, 32),
    )


def test_embedding():
    indices = torch.randint(20, (3, 7), generator=torch.Generator().manual_seed(0))
    check(
        lambda table: embedding.LigerEmbeddingFunction.apply(table, indices),
        lambda table: F.embedding(indices, table),
        normal(20, 100),
    )


# --- losses


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("options", [{}, {"label_smoothing": 0.1}, {"weight": True}])
def test_cross_entropy(dtype, reduction, options):
    target = labels(11, 100, 3, 7)
    weight = normal(100).abs() if "weight" in options else None
    smoothing = options.get("label_smoothing", 0.0)
    check(
        lambda x: cross_entropy.LigerCrossEntropyFunction.apply(
            x, target, weight, -100, 0.0, smoothing, reduction, None, False
        )[0],
        lambda x: F.cross_entropy(
            x.float(), target, weight, reduction=reduction, label_smoothing=smoothing
        ),
        normal(11, 100, dtype=dtype),
        **tolerance(dtype),
    )


def test_cross_entropy_with_soft_cap_and_z_loss():
    target = labels(11, 5000, 3)

    def theirs(x):
        x = 30 * torch.tanh(x / 30)
        z = 1e-2 * x.logsumexp(-1).square()[target != -100].mean()
        return F.cross_entropy(x, target) + z, z.detach()

    check(
        lambda x: cross_entropy.LigerCrossEntropyFunction.apply(
            x, target, None, -100, 1e-2, 0.0, "mean", 30.0, True
        )[:2],
        theirs,
        normal(11, 5000),
    )


def test_cross_entropy_tells_the_accuracy():
    target = labels(40, 10, 3)
    x = normal(40, 10)
    results = cross_entropy.LigerCrossEntropyFunction.apply(
        x, target, None, -100, 0.0, 0.0, "mean", None, False, True, True
    )
    kept = target != -100
    expected = (x.argmax(-1) == target)[kept].float().mean()
    torch.testing.assert_close(results[2], expected)
    assert torch.equal(results[3][kept], x.argmax(-1)[kept])


@pytest.mark.parametrize("bias", [True, False])
def test_fused_linear_cross_entropy(bias):
    target = labels(20, 300, 3)
    check(
        lambda x, w, b: fused_linear_cross_entropy.LigerFusedLinearCrossEntropyFunction.apply(
            x, w, target, b if bias else None
        )[0],
        lambda x, w, b: F.cross_entropy(F.linear(x, w, b if bias else None), target),
        normal(20, 32),
        normal(300, 32),
        normal(300),
        fixed=() if bias else (2,),
    )


def jensen(p, q, beta):
    """The generalised Jensen-Shannon divergence of logarithms of probabilities, of every element."""
    if beta == 0:
        return F.kl_div(p, q, log_target=True, reduction="none")
    if beta == 1:
        return F.kl_div(q, p, log_target=True, reduction="none")
    m = ((1 - beta) * p.exp() + beta * q.exp()).log()
    left = F.kl_div(m, q, log_target=True, reduction="none")
    right = F.kl_div(m, p, log_target=True, reduction="none")
    return beta * left + (1 - beta) * right


@pytest.mark.parametrize("beta", [0.0, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("ignored", [False, True])
def test_jsd(beta, ignored):
    q = normal(10, 100, seed=1).log_softmax(-1)
    target = labels(10, 100, 2) if ignored else None

    def theirs(p):
        rows = jensen(p, q, beta).sum(-1)
        return rows.mean() if target is None else rows[target != -100].sum() / 9

    check(
        lambda p: jsd.LigerJSDFunction.apply(p, q, target, beta, -100),
        theirs,
        normal(10, 100).log_softmax(-1),
    )


def test_fused_linear_jsd():
    target = labels(10, 100, 2)
    teacher, weight = normal(10, 40, seed=2), normal(100, 40, seed=2)

    def theirs(x, w):
        p = (x @ w.T).log_softmax(-1)
        q = (teacher @ weight.T).log_softmax(-1)
        return jensen(p, q, 0.5).sum(-1)[target != -100].sum() / 9

    check(
        lambda x, w: fused_linear_jsd.LigerFusedLinearJSDFunction.apply(
            x, w, teacher, weight, target, 0.5, -100, 1.0
        ),
        theirs,
        normal(10, 40),
        normal(100, 40),
    )


@pytest.mark.parametrize("reduction", ["batchmean", "sum", "mean", "none"])
@pytest.mark.parametrize("log_target", [False, True])
def test_kl_div(reduction, log_target):
    target = normal(6, 100, seed=1).log_softmax(-1)
    target = target if log_target else target.exp()
    check(
        lambda x: kl_div.LigerKLDivLossFunction.apply(x, target, reduction, log_target),
        lambda x: F.kl_div(x, target, reduction=reduction, log_target=log_target),
        normal(6, 100).log_softmax(-1),
    )


def test_fused_linear_kl_div():
    target = normal(10, 100, seed=1).softmax(-1)
    check(
        lambda x, w: fused_linear_kl_div.LigerFusedLinearKLDivFunction.apply(x, w, target),
        lambda x, w: F.kl_div((x @ w.T).log_softmax(-1), target, reduction="batchmean"),
        normal(10, 40),
        normal(100, 40),
    )


@pytest.mark.parametrize("reduction", ["batchmean", "sum", "mean", "none"])
def test_tvd(reduction):
    q = normal(6, 100, seed=1).softmax(-1)

    def theirs(p):
        x = 0.5 * (p - q).abs()
        if reduction == "batchmean":
            return x.sum() / 6
        return {"sum": x.sum(), "mean": x.mean(), "none": x}[reduction]

    check(
        lambda p: tvd.LigerTVDLossFunction.apply(p, q, None, reduction, -100),
        theirs,
        normal(6, 100).softmax(-1),
    )


def test_fused_cross_entropy_and_tvd():
    teacher, target = normal(8, 100, seed=1), labels(8, 100, 2)

    def theirs(x):
        kept = (target != -100).float()
        distance = 0.5 * (x.softmax(-1) - teacher.softmax(-1)).abs().sum(-1)
        return F.cross_entropy(x, target, reduction="none"), distance * kept

    check(
        lambda x: fused_ce_tvd.LigerFusedCETVDFunction.apply(x, teacher, target, -100),
        theirs,
        normal(8, 100),
    )


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_vocabulary_parallel_cross_entropy(smoothing):
    target = labels(12, 100, 2).view(4, 3)

    def theirs(x):
        return F.cross_entropy(
            x.flatten(0, 1), target.flatten(), reduction="none", label_smoothing=smoothing
        ).view(4, 3)

    check(
        lambda x: vocab_parallel_cross_entropy.LigerVocabParallelCEFunction.apply(
            x, target, None, -100, smoothing, "pytorch", "global"
        ),
        theirs,
        normal(4, 3, 100),
    )


def grpo_reference(logits, old, reference, ids, advantages, mask, level):
    logp = (logits[:, :-1] / 0.9).log_softmax(-1).gather(-1, ids[..., None])[..., 0]
    ratio = logp - old
    if level == "sequence":
        ratio = ((ratio * mask).sum(-1) / mask.sum(-1))[:, None].expand_as(logp)
    ratio = ratio.exp()
    kept = torch.minimum(ratio * advantages[:, None], ratio.clamp(0.8, 1.2) * advantages[:, None])
    delta = reference - logp
    loss = -kept + 0.04 * (delta.exp() - delta - 1)
    return ((loss * mask).sum(-1) / mask.sum(-1)).mean()


@pytest.mark.parametrize("level", ["token", "sequence"])
def test_grpo_loss(level):
    batch, length, size = 3, 7, 100
    ids = torch.randint(size, (batch, length), generator=torch.Generator().manual_seed(1))
    old = normal(batch, length, seed=1, scale=0.1) - math.log(size)
    reference = normal(batch, length, seed=2, scale=0.1) - math.log(size)
    advantages = normal(batch)
    mask = torch.ones(batch, length)
    mask[1, 4:] = 0
    check(
        lambda x: grpo_loss.GrpoLossFunction.apply(
            x,
            old,
            reference,
            ids,
            advantages,
            mask,
            0.9,
            0.04,
            0.2,
            0.2,
            False,
            "grpo",
            None,
            True,
            level,
        )[0],
        lambda x: grpo_reference(x, old, reference, ids, advantages, mask, level),
        normal(batch, length + 1, size, scale=0.3),
    )


# --- layers


def test_attention_residuals():
    def theirs(v, query, weight):
        k = v * torch.rsqrt(v.square().mean(-1, keepdim=True) + 1e-6) * weight
        alpha = (k * query).sum(-1).softmax(0)
        return (alpha[..., None] * v).sum(0)

    check(
        lambda v, q, w: attn_res.LigerAttnResFunction.apply(v, q, w, 1e-6),
        theirs,
        normal(5, 2, 3, 100),
        normal(100),
        normal(100, seed=1),
    )


@pytest.mark.parametrize("sparse_scores", [False, True])
def test_multi_token_attention(sparse_scores):
    def theirs(scores, weight, bias):
        length = scores.shape[-1]
        future = torch.ones(length, length).triu(1).bool()
        scores = scores.masked_fill(future, -1e9)
        probabilities = sparse(scores) if sparse_scores else scores.softmax(-1)
        mixed = F.conv2d(probabilities, weight, bias, padding=1)
        return mixed.masked_fill(future, 0)

    check(
        lambda s, w, b: multi_token_attention.LigerMultiTokenAttentionFunction.apply(
            s, w, b, 1, 1, 1, 1, sparse_scores
        ),
        theirs,
        normal(2, 3, 20, 20),
        normal(3, 3, 3, 3),
        normal(3),
        atol=1e-4,
    )


def test_neighborhood_attention():
    def theirs(q, k, v):
        places = torch.arange(q.shape[2])
        near = (places[:, None] - places).abs() <= 3
        scores = (q @ k.mT) / math.sqrt(q.shape[-1])
        return scores.masked_fill(~near, float("-inf")).softmax(-1) @ v

    check(
        lambda q, k, v: fused_neighborhood_attention.LigerFusedNeighborhoodAttentionFunction.apply(
            q, k, v, 7
        ),
        theirs,
        normal(1, 2, 40, 32),
        normal(1, 2, 40, 32, seed=1),
        normal(1, 2, 40, 32, seed=2),
        rtol=1e-3,
        atol=1e-4,
    )


def sinkhorn(x, rounds, eps=1e-6):
    x = x.softmax(-1) + eps
    x = x / (x.sum(-2, keepdim=True) + eps)
    for _ in range(rounds - 1):
        x = x / (x.sum(-1, keepdim=True) + eps)
        x = x / (x.sum(-2, keepdim=True) + eps)
    return x


def test_coefficients_of_hyper_connections():
    streams, size = 4, 64

    def theirs(x, phi, b, pre, post, res):
        flat = x.flatten(-2)
        mix = flat @ phi * torch.rsqrt(flat.square().mean(-1, keepdim=True) + 1e-6)
        a, c, d = mix.split([streams, streams, streams * streams], -1)
        h_pre = torch.sigmoid(a * pre + b[:streams]) + 1e-4
        h_post = 2 * torch.sigmoid(c * post + b[streams : 2 * streams])
        square = (d * res + b[2 * streams :]).unflatten(-1, (streams, streams))
        return h_pre, h_post, sinkhorn(square, 5)

    check(
        lambda x, phi, b, pre, post, res: mhc.LigerMHCCoeffsFunction.apply(
            x, phi, b, pre, post, res, True, 5, 1e-6, 1e-4, 1e-6, 2.0
        ),
        theirs,
        normal(2, 5, streams, size),
        normal(streams * size, streams * (streams + 2), scale=0.1),
        normal(streams * (streams + 2)),
        torch.tensor(0.5),
        torch.tensor(0.7),
        torch.tensor(0.3),
        rtol=1e-3,
        atol=2e-4,
    )


def test_streams_of_hyper_connections():
    x, h_pre = normal(2, 5, 4, 64), normal(2, 5, 4)
    check(
        mhc.LigerMHCPreFunction.apply, lambda x, h: (x * h[..., None]).sum(-2), x, h_pre, atol=1e-4
    )
    check(
        mhc.LigerMHCPostResFunction.apply,
        lambda x, f, post, res: post[..., None] * f[..., None, :] + res @ x,
        x,
        normal(2, 5, 64),
        normal(2, 5, 4, seed=1),
        normal(2, 5, 4, 4),
        atol=1e-4,
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_mixture_of_experts(dtype):
    tokens, experts, size, inner, chosen = 20, 4, 64, 32, 2
    scores = normal(tokens, experts)
    index = scores.topk(chosen).indices.to(torch.int32)

    def theirs(x, up, down, weights):
        result = torch.zeros_like(x, dtype=torch.float32)
        for k in range(chosen):
            for e in range(experts):
                rows = (index[:, k] == e).nonzero()[:, 0]
                gate, value = (x[rows] @ up[e].T).chunk(2, -1)
                y = (F.silu(gate) * value) @ down[e].T
                result = result.index_add(0, rows, (y * weights[rows, k : k + 1]).float())
        return result.to(x.dtype)

    check(
        lambda x, up, down, w: fused_moe.LigerFusedMoEFunction.apply(x, up, down, index, w),
        theirs,
        normal(tokens, size, dtype=dtype, scale=0.5),
        normal(experts, 2 * inner, size, dtype=dtype, scale=0.2),
        normal(experts, size, inner, dtype=dtype, scale=0.2),
        normal(tokens, chosen).softmax(-1).to(dtype),
        **({"rtol": 1e-3, "atol": 1e-3} if dtype is torch.float32 else tolerance(dtype)),
    )


def test_gradient_of_sinkhorn_without_the_history():
    mix, b, grad = normal(6, 24), normal(24), normal(6, 4, 4)
    alpha = torch.tensor(0.3)
    options = {"tmax": 5, "sinkhorn_eps": 1e-6}
    result = mhc.mhc_sinkhorn_bwd(mix, b, alpha, grad, **options)
    logits = (mix[:, 8:] * alpha + b[8:]).unflatten(-1, (4, 4)).requires_grad_()
    sinkhorn(logits, 5).backward(grad)
    torch.testing.assert_close(result.view(6, 4, 4), logits.grad, rtol=1e-3, atol=1e-5)


def test_mlp_without_gradients(monkeypatch):
    monkeypatch.setattr(torch.Tensor, "is_cuda", True)
    x = normal(1, 64, 128, dtype=torch.bfloat16, scale=0.5)
    gate, up, down = (normal(128, 128, seed=i, dtype=torch.bfloat16, scale=0.1) for i in range(3))
    with torch.no_grad():
        result = mlp.LigerMLPFunction.apply(x, gate, up, down)
    expected = (F.silu(x @ gate.T) * (x @ up.T)) @ down.T
    torch.testing.assert_close(result, expected, rtol=5e-2, atol=5e-2)


def test_mlp_with_tensor_descriptors(monkeypatch):
    # It asserts that its operands are on a GPU.
    monkeypatch.setattr(torch.Tensor, "is_cuda", True)
    check(
        lambda x, gate, up, down: mlp.LigerMLPFunction.apply(x, gate, up, down),
        lambda x, gate, up, down: (F.silu(x @ gate.T) * (x @ up.T)) @ down.T,
        normal(1, 64, 128, dtype=torch.bfloat16, scale=0.5),
        normal(128, 128, dtype=torch.bfloat16, scale=0.1),
        normal(128, 128, seed=1, dtype=torch.bfloat16, scale=0.1),
        normal(128, 128, seed=2, dtype=torch.bfloat16, scale=0.1),
        rtol=5e-2,
        atol=5e-2,
    )


def test_matmul_of_int8_and_two_bits():
    generator = torch.Generator().manual_seed(0)
    x = torch.randint(-128, 127, (64, 256), generator=generator).to(torch.int8)
    weights = torch.randint(-1, 2, (256, 64), generator=generator).to(torch.int8)
    packed = mm_int8int2.pack_weights(weights.clone(), 2)  # it adds 1 in place
    result = mm_int8int2.matmul(x, packed)
    assert torch.equal(result, x.int() @ weights.int())


#: What other kernels call, and so is launched by no test.
CALLED = {"_keyed_add", "_l2_swizzle", "silu"}
#: What Triton refuses, too: test_softmax_in_blocks.
REFUSED = {"_softmax_multi_block_forward_kernel", "_softmax_multi_block_backward_kernel"}


def kernels() -> dict[str, triton.JITFunction]:
    result = {}
    for name, module in list(sys.modules.items()):
        if name.startswith("liger_kernel.ops."):
            for value in vars(module).values():
                while hasattr(value, "fn") and not isinstance(value, triton.JITFunction):
                    value = value.fn
                if isinstance(value, triton.JITFunction) and value.fn.__module__ == name:
                    result[value.fn.__name__] = value
    return result


def test_every_kernel_was_launched(request):
    here = [item for item in request.session.items if item.fspath == request.node.fspath]
    if len(here) < 100 or request.config.option.keyword:
        pytest.skip("some tests of this file did not run")
    known = kernels()
    assert len(known) > 80
    idle = {name for name, kernel in known.items() if not kernel.device_caches[0][0]}
    assert idle == CALLED | REFUSED
