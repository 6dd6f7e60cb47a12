"""flash-linear-attention on CPU tensors: its modules against torch, its attentions against its own naive references."""

from __future__ import annotations

import itertools

import pytest
import torch
import torch.nn.functional as F
from package_support import check, labels, normal

pytest.importorskip("fla")

from fla.modules import activations, causal_conv1d
from fla.modules.fused_cross_entropy import cross_entropy_loss
from fla.modules.fused_kl_div import fused_kl_div_loss
from fla.modules.fused_linear_cross_entropy import fused_linear_cross_entropy_loss
from fla.modules.norm import fused_norm_gate, layernorm, layernorm_gated
from fla.modules.norm.l2norm import l2norm
from fla.modules.rotary import rotary_embedding
from fla.modules.rotary.ops import rotary_embedding_ref
from fla.modules.token_shift import token_shift, token_shift_ref
from fla.ops.delta_rule import chunk_delta_rule, fused_recurrent_delta_rule
from fla.ops.delta_rule.naive import delta_rule_recurrence
from fla.ops.gated_delta_rule import chunk_gated_delta_rule, fused_recurrent_gated_delta_rule
from fla.ops.gated_delta_rule.naive import naive_recurrent_gated_delta_rule
from fla.ops.gla import chunk_gla, fused_recurrent_gla
from fla.ops.gla.naive import naive_recurrent_gla
from fla.ops.linear_attn import (
    chunk_linear_attn,
    fused_chunk_linear_attn,
    fused_recurrent_linear_attn,
)
from fla.ops.linear_attn.naive import naive_recurrent_linear_attn
from fla.ops.retention import (
    chunk_retention,
    fused_chunk_retention,
    fused_recurrent_retention,
    parallel_retention,
)
from fla.ops.retention.naive import naive_retention
from fla.ops.simple_gla import (
    chunk_simple_gla,
    fused_chunk_simple_gla,
    fused_recurrent_simple_gla,
    parallel_simple_gla,
)
from fla.ops.simple_gla.naive import naive_recurrent_simple_gla

# --- norms

LOOSE = {"rtol": 1e-3, "atol": 1e-4}


@pytest.mark.parametrize("kind", ["layer", "rms", "group"])
@pytest.mark.parametrize("residual", [False, True])
def test_norms(kind, residual):
    ours = {
        "layer": lambda x, w, b, r: layernorm.layer_norm(x, w, b, r, eps=1e-5),
        "rms": lambda x, w, b, r: layernorm.rms_norm(x, w, b, r, eps=1e-5),
        "group": lambda x, w, b, r: layernorm.group_norm(x, w, b, r, eps=1e-5, num_groups=4),
    }[kind]
    theirs = {
        "layer": layernorm.layer_norm_ref,
        "rms": layernorm.rms_norm_ref,
        "group": lambda x, w, b, r, **k: layernorm.group_norm_ref(x, w, b, 4, r, **k),
    }[kind]
    check(
        lambda x, w, b, r: ours(x, w, b, r if residual else None),
        lambda x, w, b, r: theirs(x, w, b, r if residual else None, eps=1e-5),
        normal(2, 9, 96),
        normal(96),
        normal(96, seed=1),
        normal(2, 9, 96, seed=1),
        fixed=() if residual else (3,),
        **LOOSE,
    )


@pytest.mark.parametrize("activation", ["swish", "sigmoid"])
@pytest.mark.parametrize("rms", [False, True])
@pytest.mark.parametrize("size", [64, 1024])
def test_gated_norms(activation, rms, size):
    gate = F.silu if activation == "swish" else torch.sigmoid
    ours = fused_norm_gate.rms_norm_gated if rms else fused_norm_gate.layer_norm_gated
    theirs = layernorm.rms_norm_ref if rms else layernorm.layer_norm_ref
    check(
        lambda x, g, w, b: ours(x, g, w, b, activation, eps=1e-5),
        lambda x, g, w, b: theirs(x, w, b, eps=1e-5) * gate(g),
        normal(2, 9, size),
        normal(2, 9, size, seed=1),
        normal(size),
        normal(size, seed=1),
        **LOOSE,
    )


@pytest.mark.parametrize("before", [False, True])
def test_gated_norm_of_groups(before):
    check(
        lambda x, w, z: layernorm_gated.rmsnorm_fn(
            x, w, None, z, group_size=32, norm_before_gate=before
        ),
        lambda x, w, z: layernorm_gated.rms_norm_ref(
            x, w, None, z, group_size=32, norm_before_gate=before
        ),
        normal(2, 9, 64),
        normal(64),
        normal(2, 9, 64, seed=1),
        **LOOSE,
    )


@pytest.mark.parametrize("size", [64, 600])
def test_l2_norm(size):
    check(
        lambda x: l2norm(x, 1e-6),
        lambda x: x * torch.rsqrt(x.square().sum(-1, keepdim=True) + 1e-6),
        normal(2, 9, size),
        **LOOSE,
    )


# --- rotary, convolution, shift


@pytest.mark.parametrize("interleaved", [False, True])
def test_rotary(interleaved):
    phase = normal(20, 16)
    cos, sin = phase.cos(), phase.sin()
    check(
        lambda x: rotary_embedding(x, cos, sin, interleaved=interleaved),
        lambda x: rotary_embedding_ref(x, cos, sin, interleaved=interleaved),
        normal(2, 20, 3, 48),
    )


@pytest.mark.parametrize("activation", [None, "swish"])
@pytest.mark.parametrize("size", [64, 100])
def test_causal_convolution(activation, size):
    def theirs(x, w, b, r):
        y = F.conv1d(x.mT, w[:, None], b, padding=3, groups=size)[..., : x.shape[1]].mT
        return (F.silu(y) if activation else y) + r

    check(
        lambda x, w, b, r: causal_conv1d.causal_conv1d(x, w, b, r, activation=activation)[0],
        theirs,
        normal(2, 70, size),
        normal(size, 4),
        normal(size),
        normal(2, 70, size, seed=1),
        **LOOSE,
    )


def test_token_shift():
    check(token_shift, token_shift_ref, normal(2, 70, 48))


# --- activations


@pytest.mark.parametrize(
    ("ours", "theirs", "operands"),
    [
        (activations.ops.sigmoid, torch.sigmoid, 1),
        (activations.ops.logsigmoid, F.logsigmoid, 1),
        (activations.ops.swish, F.silu, 1),
        (activations.ops.elu_p1, lambda x: F.elu(x) + 1, 1),
        (activations.ops.swiglu, lambda x, y: F.silu(x) * y, 2),
        (activations.ops.sigmoidglu, lambda x, y: torch.sigmoid(x) * y, 2),
    ],
)
def test_activations(ours, theirs, operands):
    values = [normal(3, 50, 33, seed=i) for i in range(operands)]
    check(ours, theirs, *values)


def test_swiglu_before_a_linear_layer():
    check(
        activations.ops.swiglu_linear,
        lambda x, y, w, b: F.linear(F.silu(x) * y, w, b),
        normal(3, 9, 64),
        normal(3, 9, 64, seed=1),
        normal(32, 64),
        normal(32),
        **LOOSE,
    )


# --- losses


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_cross_entropy(smoothing):
    target = labels(11, 100, 3, 7)
    check(
        lambda x: cross_entropy_loss(x, target, label_smoothing=smoothing)[0],
        lambda x: F.cross_entropy(x, target, reduction="none", label_smoothing=smoothing),
        normal(11, 100),
    )


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_fused_linear_cross_entropy(smoothing):
    target = labels(20, 300, 3)
    check(
        lambda x, w, b: fused_linear_cross_entropy_loss(
            x, target, w, b, label_smoothing=smoothing, num_chunks=2
        ),
        lambda x, w, b: F.cross_entropy(F.linear(x, w, b), target, label_smoothing=smoothing),
        normal(20, 32),
        normal(300, 32),
        normal(300),
        **LOOSE,
    )


def test_fused_kl_divergence():
    teacher, weight = normal(20, 32, seed=2), normal(300, 32, seed=2)
    check(
        lambda x, w: fused_kl_div_loss(x, teacher, w, weight),
        lambda x, w: F.kl_div(
            (x @ w.T).log_softmax(-1), (teacher @ weight.T).softmax(-1), reduction="batchmean"
        ),
        normal(20, 32),
        normal(300, 32),
        **LOOSE,
    )


# --- attentions: batch, time, heads, size

B, T, H, K, V = 2, 80, 2, 32, 64
ATTENTION = {"rtol": 5e-3, "atol": 2e-3}


def queries(*, unit: bool = False, seed: int = 0) -> list[torch.Tensor]:
    q, k = normal(B, T, H, K, seed=seed), normal(B, T, H, K, seed=seed + 1)
    if unit:
        k = F.normalize(k, dim=-1)
    return [q, k, normal(B, T, H, V, seed=seed + 2)]


def start() -> torch.Tensor:
    return normal(B, H, K, V, seed=5)


def state(function, **options):
    """The output and the last state of a function that takes a first one."""

    def call(*operands):
        *operands, first = operands
        return function(*operands, initial_state=first, output_final_state=True, **options)[:2]

    return call


@pytest.mark.parametrize(
    "function", [chunk_linear_attn, fused_recurrent_linear_attn, fused_chunk_linear_attn]
)
def test_linear_attention(function):
    check(
        state(function, normalize=False),
        state(naive_recurrent_linear_attn, normalize=False),
        *queries(),
        start(),
        **ATTENTION,
    )


@pytest.mark.parametrize(
    "function",
    [chunk_retention, fused_recurrent_retention, fused_chunk_retention, parallel_retention],
)
def test_retention(function):
    def theirs(q, k, v):
        return naive_retention(*(x.transpose(1, 2) for x in (q, k, v))).transpose(1, 2)

    check(lambda q, k, v: function(q, k, v)[0], theirs, *queries(), **ATTENTION)


@pytest.mark.parametrize("function", [chunk_gla, fused_recurrent_gla])
def test_gated_linear_attention(function):
    gate = F.logsigmoid(normal(B, T, H, K, seed=9)) / 4
    check(
        state(function),
        state(naive_recurrent_gla),
        *queries(),
        gate,
        start(),
        **ATTENTION,
    )


@pytest.mark.parametrize(
    "function", [chunk_simple_gla, fused_recurrent_simple_gla, fused_chunk_simple_gla]
)
def test_simple_gated_linear_attention(function):
    gate = F.logsigmoid(normal(B, T, H, seed=9))
    check(
        state(function),
        state(naive_recurrent_simple_gla),
        *queries(),
        gate,
        start(),
        **ATTENTION,
    )


def test_simple_gated_linear_attention_in_parallel():
    check(
        lambda q, k, v, g: parallel_simple_gla(q, k, v, g)[0],
        lambda q, k, v, g: naive_recurrent_simple_gla(q, k, v, g)[0],
        *queries(),
        F.logsigmoid(normal(B, T, H, seed=9)),
        **ATTENTION,
    )


@pytest.mark.parametrize("function", [chunk_simple_gla, fused_recurrent_simple_gla])
def test_state_space_duality_of_mamba_2(function):
    """Mamba-2's recurrence h = exp(dt A) h + dt B x, y = C h, which the library computes as gated attention."""

    def theirs(x, dt, a, b, c):
        h = torch.zeros(B, H, K, V)
        outputs = []
        for t in range(T):
            decay = (dt[:, t] * a).exp()[..., None, None]
            h = h * decay + (dt[:, t, :, None] * b[:, t])[..., None] * x[:, t, :, None]
            outputs.append((c[:, t][..., None] * h).sum(-2))
        return torch.stack(outputs, 1)

    check(
        lambda x, dt, a, b, c: function(c, b, x * dt[..., None], dt * a, scale=1.0)[0],
        theirs,
        normal(B, T, H, V),
        F.softplus(normal(B, T, H)),
        -normal(H).exp(),
        normal(B, T, H, K),
        normal(B, T, H, K, seed=1),
        **ATTENTION,
    )


@pytest.mark.parametrize("function", [chunk_delta_rule, fused_recurrent_delta_rule])
def test_delta_rule(function):
    def theirs(q, k, v, beta, first):
        o, last = delta_rule_recurrence(
            *(x.transpose(1, 2) for x in (q, k, v, beta)), initial_state=first
        )
        return o.transpose(1, 2), last

    # The library refuses float32 in chunks.
    dtype = torch.bfloat16 if function is chunk_delta_rule else torch.float32
    check(
        state(function),
        theirs,
        *(x.to(dtype) for x in queries(unit=True)),
        normal(B, T, H).sigmoid().to(dtype),
        start(),
        **(ATTENTION if dtype is torch.float32 else {"rtol": 5e-2, "atol": 8e-2}),
    )


@pytest.mark.parametrize("function", [chunk_gated_delta_rule, fused_recurrent_gated_delta_rule])
def test_gated_delta_rule(function):
    recurrent = function is fused_recurrent_gated_delta_rule
    check(
        lambda q, k, v, beta, g, first: function(
            q, k, v, g=g, beta=beta, initial_state=first, output_final_state=True
        )[:2],
        lambda q, k, v, beta, g, first: naive_recurrent_gated_delta_rule(
            q, k, v, beta, g, initial_state=first, output_final_state=True
        ),
        *queries(unit=True),
        normal(B, T, H).sigmoid(),
        F.logsigmoid(normal(B, T, H, seed=3)),
        start(),
        backward=not recurrent,  # the library has no gradient of it
        **ATTENTION,
    )


@pytest.mark.parametrize(
    ("function", "gated"),
    [(chunk_simple_gla, True), (chunk_retention, False), (chunk_linear_attn, False)],
)
def test_sequences_of_several_lengths(function, gated):
    """Packed sequences give what each of them gives alone."""
    lengths = torch.tensor([0, 15, 100, 160])
    q, k, v = (x.reshape(1, B * T, H, -1) for x in queries())
    operands = [q, k, v, *([F.logsigmoid(normal(1, B * T, H))] if gated else [])]

    def alone(*operands):
        parts = [
            function(*(x[:, a:b] for x in operands), scale=0.2)[0]
            for a, b in itertools.pairwise(lengths)
        ]
        return torch.cat(parts, 1)

    check(lambda *x: function(*x, scale=0.2, cu_seqlens=lengths)[0], alone, *operands, **ATTENTION)
