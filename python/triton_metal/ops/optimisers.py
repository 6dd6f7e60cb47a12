"""Steps of optimisers over lists of arrays, up to four of them in one launch.

A step changes none of the arrays that it is given, in any framework: it returns new ones, which the next step takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import triton_metal as triton
import triton_metal.language as tl

from ..errors import LaunchTypeError
from ._arrays import FLOATS, Array, contiguous, dtype_name, is_torch, resolved, size_of
from ._checks import (
    check_arrays,
    check_dtype,
    check_flag,
    check_number,
    check_shape,
    fail,
    integer,
)
from ._launch import Spec, launch
from ._list_operators import ListOperator, Lists

BLOCK = 1024
#: The arrays of one launch: with what belongs to them they stay below the 31 buffers that a Metal kernel may have.
TOGETHER = 4


@triton.jit
def _sgd(
    block,
    n,
    p_ptr,
    g_ptr,
    m_ptr,
    new_p_ptr,
    new_m_ptr,
    lr,
    momentum,
    kept,
    decay,
    NESTEROV,
    BLOCK: tl.constexpr,
):
    at = block.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    p = tl.load(p_ptr + at, mask=mask).to(tl.float32)
    step = tl.load(g_ptr + at, mask=mask).to(tl.float32) + decay * p
    if new_m_ptr is not None:
        m = step * kept
        if m_ptr is not None:
            m = momentum * tl.load(m_ptr + at, mask=mask).to(tl.float32) + m
        tl.store(new_m_ptr + at, m.to(new_m_ptr.dtype.element_ty), mask=mask)
        step = step + momentum * m if NESTEROV else m
    tl.store(new_p_ptr + at, (p - lr * step).to(new_p_ptr.dtype.element_ty), mask=mask)


@triton.jit
def sgd_kernel(
    p0, g0, m0, new_p0, new_m0, p1, g1, m1, new_p1, new_m1, p2, g2, m2, new_p2, new_m2, p3, g3, m3, new_p3, new_m3,
    n0, n1, n2, n3, first1, first2, first3, lr, momentum, kept, decay, NESTEROV: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """A block of the array to which the program belongs: the programs of the second begin at `first1`, and so on."""
    program = tl.program_id(0)
    if program < first1:
        _sgd(program, n0, p0, g0, m0, new_p0, new_m0, lr, momentum, kept, decay, NESTEROV, BLOCK)
    elif program < first2:
        if p1 is not None:
            _sgd(
                program - first1,
                n1,
                p1,
                g1,
                m1,
                new_p1,
                new_m1,
                lr,
                momentum,
                kept,
                decay,
                NESTEROV,
                BLOCK,
            )
    elif program < first3:
        if p2 is not None:
            _sgd(
                program - first2,
                n2,
                p2,
                g2,
                m2,
                new_p2,
                new_m2,
                lr,
                momentum,
                kept,
                decay,
                NESTEROV,
                BLOCK,
            )
    else:
        if p3 is not None:
            _sgd(
                program - first3,
                n3,
                p3,
                g3,
                m3,
                new_p3,
                new_m3,
                lr,
                momentum,
                kept,
                decay,
                NESTEROV,
                BLOCK,
            )


@triton.jit
def _adamw(
    block, n, p_ptr, g_ptr, m_ptr, v_ptr, new_p_ptr, new_m_ptr, new_v_ptr,
    lr, beta1, beta2, new1, new2, eps, shrink, correct1, correct2, BLOCK: tl.constexpr,
):  # fmt: skip
    at = block.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    g = tl.load(g_ptr + at, mask=mask).to(tl.float32)
    m, v = new1 * g, new2 * g * g
    if m_ptr is not None:
        m += beta1 * tl.load(m_ptr + at, mask=mask).to(tl.float32)
        v += beta2 * tl.load(v_ptr + at, mask=mask).to(tl.float32)
    p = tl.load(p_ptr + at, mask=mask).to(tl.float32) * shrink
    p -= lr * (m * correct1) / (tl.sqrt(v * correct2) + eps)
    tl.store(new_p_ptr + at, p.to(new_p_ptr.dtype.element_ty), mask=mask)
    tl.store(new_m_ptr + at, m.to(new_m_ptr.dtype.element_ty), mask=mask)
    tl.store(new_v_ptr + at, v.to(new_v_ptr.dtype.element_ty), mask=mask)


@triton.jit
def adamw_kernel(
    p0, g0, m0, v0, new_p0, new_m0, new_v0, p1, g1, m1, v1, new_p1, new_m1, new_v1,
    p2, g2, m2, v2, new_p2, new_m2, new_v2, p3, g3, m3, v3, new_p3, new_m3, new_v3,
    n0, n1, n2, n3, first1, first2, first3, lr, beta1, beta2, new1, new2, eps, shrink, correct1, correct2, BLOCK: tl.constexpr,
):  # fmt: skip
    """As in `sgd_kernel`."""
    program = tl.program_id(0)
    if program < first1:
        _adamw(program, n0, p0, g0, m0, v0, new_p0, new_m0, new_v0,
               lr, beta1, beta2, new1, new2, eps, shrink, correct1, correct2, BLOCK)  # fmt: skip
    elif program < first2:
        if p1 is not None:
            _adamw(program - first1, n1, p1, g1, m1, v1, new_p1, new_m1, new_v1,
                   lr, beta1, beta2, new1, new2, eps, shrink, correct1, correct2, BLOCK)  # fmt: skip
    elif program < first3:
        if p2 is not None:
            _adamw(program - first2, n2, p2, g2, m2, v2, new_p2, new_m2, new_v2,
                   lr, beta1, beta2, new1, new2, eps, shrink, correct1, correct2, BLOCK)  # fmt: skip
    else:
        if p3 is not None:
            _adamw(program - first3, n3, p3, g3, m3, v3, new_p3, new_m3, new_v3,
                   lr, beta1, beta2, new1, new2, eps, shrink, correct1, correct2, BLOCK)  # fmt: skip


def _in_groups(kernel: Any, inputs: Lists, states: Sequence[str], **numbers: Any) -> list[Array]:
    """The new arrays for "p" and each of the states, one list behind the other; ``inputs`` has all arrays, by the letters of the kernel."""
    params = inputs["p"]
    assert params is not None
    made: dict[int, tuple[Array, ...]] = {}
    full = [i for i, p in enumerate(params) if size_of(tuple(p.shape))]
    for start in range(0, len(full), TOGETHER):
        group = full[start : start + TOGETHER]
        given: dict[str, Any] = {}
        outputs: dict[str, Any] = {}
        blocks = []
        for place in range(TOGETHER):
            i = group[place] if place < len(group) else None
            for letter, arrays in inputs.items():
                given[f"{letter}{place}"] = (
                    None if i is None or arrays is None else _plain(arrays[i])
                )
            for letter in ("p", *[each for each in inputs if each in ("m", "v")]):
                new = f"new_{letter}{place}"
                if i is None or letter not in ("p", *states):
                    given[new] = None
                else:
                    outputs[new] = (params[i].shape, _state_dtype(inputs[letter], i))
            given[f"n{place}"] = 0 if i is None else size_of(tuple(params[i].shape))
            blocks.append(triton.cdiv(given[f"n{place}"], BLOCK))
        firsts = {f"first{j}": sum(blocks[:j]) for j in range(1, TOGETHER)}
        like = params[group[0]]
        new = launch(
            kernel, (sum(blocks),), outputs, like=like, **given, **firsts, **numbers, BLOCK=BLOCK
        )
        each = 1 + len(states)
        for j, i in enumerate(group):
            made[i] = new[each * j : each * (j + 1)]
    for i, p in enumerate(params):
        if i not in made:
            specs = {
                letter: (p.shape, _state_dtype(inputs[letter], i)) for letter in ("p", *states)
            }
            made[i] = launch(kernel, (0,), specs, like=p)
    return [made[i][j] for j in range(1 + len(states)) for i in range(len(params))]


def _results(lists: Lists, states: Sequence[str]) -> list[Spec]:
    """The shapes and dtypes of what `_in_groups` makes of these lists."""
    params = lists["p"] or []
    return [
        (p.shape, _state_dtype(lists[letter], i))
        for letter in ("p", *states)
        for i, p in enumerate(params)
    ]


def _sgd_states(momentum: float) -> tuple[str, ...]:
    return ("m",) if momentum else ()


def _sgd_arrays(lists: Lists, nesterov: bool, **numbers: float) -> list[Array]:
    states = _sgd_states(numbers["momentum"])
    return _in_groups(sgd_kernel, lists, states, **numbers, NESTEROV=nesterov)


def _adamw_arrays(lists: Lists, **numbers: float) -> list[Array]:
    return _in_groups(adamw_kernel, lists, ("m", "v"), **numbers)


_SGD = ListOperator(
    "sgd_step",
    ("p", "g", "m"),
    "bool nesterov, float lr, float momentum, float kept, float decay",
    _sgd_arrays,
    lambda lists, **numbers: _results(lists, _sgd_states(numbers["momentum"])),
)
_ADAMW = ListOperator(
    "adamw_step",
    ("p", "g", "m", "v"),
    "float lr, float beta1, float beta2, float new1, float new2, float eps, float shrink, float correct1, float correct2",
    _adamw_arrays,
    lambda lists, **numbers: _results(lists, ("m", "v")),
)


def _plain(x: Array) -> Array:
    return contiguous(resolved(x.detach()) if is_torch(x) else x)


def _state_dtype(arrays: list[Array] | None, i: int) -> str:
    return "float32" if arrays is None else dtype_name(arrays[i])


def _checked(function: str, params: Any, **lists: Any) -> Lists:
    """The lists, after their lengths, shapes and dtypes have been compared."""
    found: Lists = {}
    for name, arrays in {"params": params, **lists}.items():
        if arrays is None and name not in ("params", "grads"):
            found[name] = None
            continue
        if not isinstance(arrays, (list, tuple)):
            raise LaunchTypeError(
                f"[{function}] {name} must be a list of arrays but is {type(arrays).__name__}."
            )
        if len(arrays) != len(params):
            raise fail(
                function,
                f"{name} must have {len(params)} arrays, as many as params, but has {len(arrays)}.",
            )
        found[name] = list(arrays)
    for i, p in enumerate(found["params"] or []):
        for name, arrays in found.items():
            if arrays is None:
                continue
            label = f"{name}[{i}]"
            check_arrays(function, **{f"params[{0}]": params[0], label: arrays[i]})
            allowed = (dtype_name(p), "float32") if name != "params" else FLOATS
            check_dtype(function, label, arrays[i], tuple(dict.fromkeys(allowed)))
            check_shape(function, label, arrays[i], p.shape, f", that of params[{i}],")
    return found


def sgd_step(
    params: Sequence[Array],
    grads: Sequence[Array],
    buffers: Sequence[Array] | None = None,
    *,
    lr: float,
    momentum: float = 0.0,
    dampening: float = 0.0,
    nesterov: bool = False,
    weight_decay: float = 0.0,
) -> tuple[list[Array], list[Array]]:
    """One step of gradient descent with momentum: the new ``params`` and the new ``buffers``, which the next step takes.

    With g = grad + weight_decay · p, a buffer becomes b = momentum · b + (1 - dampening) · g, and p becomes p - lr · b, or
    p - lr · (g + momentum · b) with ``nesterov``. Without momentum, p becomes p - lr · g, whatever ``dampening`` is, as in PyTorch. All is
    computed in float32. All arrays that are given stay as they are, in every
    framework, and the results are new ones, of which PyTorch records no gradients.

    ``params`` is a list of arrays, each float16, bfloat16 or float32, of any shape; ``grads`` and ``buffers`` are as many, of the same shapes,
    in the dtype of their parameter or float32. Without ``buffers`` they begin as 0, in float32. Without momentum there are none:
    the second list is empty.

    Raises LaunchValueError for lists or shapes that do not fit, other dtypes, and numbers out of range; LaunchTypeError for what are
    no lists of arrays.

    Error: 8 · 2^-24 of the parameter and of the step, beside the rounding of each result. Without gradients.

    >>> import numpy as np, triton_metal.ops as ops
    >>> p, g = [np.array([1, 2], np.float32)], [np.array([2, 4], np.float32)]
    >>> p, b = ops.sgd_step(p, g, lr=0.25, momentum=0.5)
    >>> p, b = ops.sgd_step(p, g, b, lr=0.25, momentum=0.5)
    >>> p, b
    ([array([-0.25, -0.5 ], dtype=float32)], [array([3., 6.], dtype=float32)])
    """
    found = _checked("sgd_step", params, grads=grads, buffers=buffers)
    lr = check_number("sgd_step", "lr", lr, least=0)
    momentum = check_number("sgd_step", "momentum", momentum, least=0)
    dampening = check_number("sgd_step", "dampening", dampening)
    decay = check_number("sgd_step", "weight_decay", weight_decay, least=0)
    nesterov = check_flag("sgd_step", "nesterov", nesterov)
    if nesterov and (momentum == 0 or dampening != 0):
        raise fail(
            "sgd_step",
            f"nesterov needs a momentum above 0 and no dampening but has momentum={momentum} and dampening={dampening}.",
        )
    if momentum == 0 and buffers is not None and len(buffers):
        raise fail("sgd_step", "buffers must be None without momentum but are given.")
    inputs = {"p": found["params"], "g": found["grads"], "m": found["buffers"]}
    new = _SGD(inputs, nesterov=nesterov, lr=lr, momentum=momentum, kept=1 - dampening, decay=decay)
    count = len(inputs["p"] or [])
    return new[:count], new[count:]


def adamw_step(
    params: Sequence[Array],
    grads: Sequence[Array],
    means: Sequence[Array] | None = None,
    squares: Sequence[Array] | None = None,
    *,
    step: int,
    lr: float = 1e-3,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    weight_decay: float = 0.01,
    bias_correction: bool = True,
) -> tuple[list[Array], list[Array], list[Array]]:
    """One step of AdamW: the new ``params``, ``means`` and ``squares``, which the next step takes, with ``step`` one more.

    A mean becomes m = beta1 · m + (1 - beta1) · grad, a square v = beta2 · v + (1 - beta2) · grad², and a parameter
    p · (1 - lr · weight_decay) - lr · m' / (√v' + eps), where m' = m / (1 - beta1^step) and v' = v / (1 - beta2^step), or m and v
    without ``bias_correction``; all is computed in float32, in which squares of gradients from 2^64 on are infinite (then a step is 0),
    and below 2^-63 lose digits (then a step is infinite if ``eps`` is 0). ``step`` counts from 1. All arrays that are given stay as they are, in
    every framework, and the results are new ones, of which PyTorch records no gradients.

    ``params`` is a list of arrays, each float16, bfloat16 or float32, of any shape; the other lists are as long, of the same shapes, in the
    dtype of their parameter or float32. Without ``means`` and ``squares`` these begin as 0, in float32.

    Raises LaunchValueError for lists or shapes that do not fit, other dtypes, and numbers out of range; LaunchTypeError for what are
    no lists of arrays.

    Error: 16 · 2^-24 of the parameter and of the step, beside the rounding of each result. Without gradients.

    >>> import numpy as np, triton_metal.ops as ops
    >>> p, g = [np.array([1, 2], np.float32)], [np.array([0.5, -4], np.float32)]
    >>> p, m, v = ops.adamw_step(p, g, step=1, lr=0.5, weight_decay=0)
    >>> p, m, v = ops.adamw_step(p, g, m, v, step=2, lr=0.5, weight_decay=0)
    >>> p[0].round(3)
    array([0., 3.], dtype=float32)
    """
    name = "adamw_step"
    found = _checked(name, params, grads=grads, means=means, squares=squares)
    if (means is None) != (squares is None):
        raise fail(name, "means and squares must be given both or neither.")
    count = integer(step)
    if count is None:
        raise LaunchTypeError(f"[{name}] step must be an integer but is {step!r}.")
    if not 1 <= count < 2**63:
        raise fail(name, f"step must be from 1 to 2**63 - 1 but is {count}.")
    if not isinstance(betas, (tuple, list)) or len(betas) != 2:
        raise LaunchTypeError(f"[{name}] betas must be two numbers but is {betas!r}.")
    beta1, beta2 = (check_number(name, "betas", beta, least=0, below=1) for beta in betas)
    lr = check_number(name, "lr", lr, least=0)
    bias_correction = check_flag(name, "bias_correction", bias_correction)
    inputs = {"p": found["params"], "g": found["grads"], "m": found["means"], "v": found["squares"]}
    new = _ADAMW(
        inputs,
        lr=lr,
        beta1=beta1,
        beta2=beta2,
        new1=1 - beta1,
        new2=1 - beta2,
        eps=check_number(name, "eps", eps, least=0),
        shrink=1 - lr * check_number(name, "weight_decay", weight_decay, least=0),
        correct1=1 / (1 - beta1**count) if bias_correction else 1.0,
        correct2=1 / (1 - beta2**count) if bias_correction else 1.0,
    )
    many = len(inputs["p"] or [])
    return new[:many], new[many : 2 * many], new[2 * many :]
