"""Calls of every function of triton_metal.ops, whose kernels `make spills` asks the G13 compiler about.

Each is a function of no arguments; with PyTorch's tensors that need gradients, it goes back through the function, too. Launches
may be replaced by compilations (`compiled_only`): no call looks at what a kernel has computed.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from triton_metal import ops
from triton_metal.jit import JITFunction
from triton_metal.ops._choices import forced
from triton_metal.ops._groups import GROUPS

#: A name that says the function first, then the shapes, the dtype and the options; and the call.
Call = tuple[str, Callable[[], Any]]
FLOATS = ("float32", "float16", "bfloat16")
#: Powers of two, and what is left over beside one of them in all sizes.
WIDTHS = (16, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 120, 128, 136, 144, 160, 176, 192, 200, 208, 224, 240, 256)  # fmt: skip


@contextmanager
def compiled_only() -> Iterator[list[Any]]:
    """Launches of this block compile their kernels, which the list gets, and run nothing.

    Kernels have the SIMD-groups of large launches; small ones have more, and so fewer registers.
    """
    kernels: list[Any] = []
    before = JITFunction.__getitem__

    def at(self: JITFunction, grid: Any) -> Callable[..., Any]:
        def compile(*args: Any, **kwargs: Any) -> Any:
            kernels.append(self.warmup(*args, grid=grid, **kwargs))
            return kernels[-1]

        return compile

    JITFunction.__getitem__ = at  # type: ignore[method-assign]
    try:
        with forced(GROUPS.name, (0,)):
            yield kernels
    finally:
        JITFunction.__getitem__ = before  # type: ignore[method-assign]


def array(*shape: int, dtype: str = "float32", grad: bool = False) -> Any:
    """Ones; with ``grad``, whose gradient is asked for."""
    return torch.ones(shape, dtype=getattr(torch, dtype), requires_grad=grad)


def back(function: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """A call, and the gradients of the arrays that need some."""
    result = function(*args, **kwargs)
    for each in result if isinstance(result, (tuple, list)) else (result,):
        if each.requires_grad:
            each.sum().backward(retain_graph=True)


def calls() -> Iterator[Call]:
    """All of them. Their names are different."""
    yield from attention_calls()
    yield from row_calls()
    yield from product_calls()
    yield from quantized_calls()
    yield from convolution_calls()
    yield from axis_calls()
    yield from index_calls()
    yield from optimiser_calls()


def attention_calls() -> Iterator[Call]:
    def attend(width: int, dtype: str, heads: int = 2, **options: Any) -> None:
        def made(name: str) -> Any:
            shapes = {
                "bias": (1, heads, 70, 70), "mask": (1, 1, 70, 70), "lengths": (1,),
            }  # fmt: skip
            kinds = {"bias": dtype, "mask": "bool", "lengths": "int32"}
            return array(*shapes[name], dtype=kinds[name], grad=name == "bias")

        q = array(1, heads, 70, width, dtype=dtype, grad=True)
        k, v = (array(1, 2, 70, width, dtype=dtype, grad=True) for _ in range(2))
        given = {n: made(n) if v is ... else v for n, v in options.items()}
        back(ops.attention, q, k, v, **given)

    def called(options: dict[str, Any]) -> str:
        return " ".join(n if v in (True, ...) else f"{n}={v}" for n, v in options.items())

    plain: list[dict[str, Any]] = [
        {}, {"causal": True}, {"bias": ...}, {"causal": True, "bias": ...},
    ]  # fmt: skip
    further: list[dict[str, Any]] = [
        {"mask": ...}, {"lengths": ...}, {"window": 32}, {"causal": True, "window": 32},
        {"causal": True, "mask": ..., "bias": ...}, {"heads": 4}, {"scale": -0.5},
        {"heads": 4, "causal": True, "mask": ..., "bias": ...},
    ]  # fmt: skip
    for width, dtype in itertools.product(WIDTHS, FLOATS):
        for options in [*plain, *(further if width in (64, 72, 96, 128, 192, 200, 256) else [])]:
            name = f"attention 70x70x{width} {dtype} {called(options)}".rstrip()
            yield name, lambda w=width, d=dtype, o=options: attend(w, d, **o)

    def decode(width: int, dtype: str, queries: int, heads: int, **options: Any) -> None:
        q = array(1, heads, queries, width, dtype=dtype, grad=True)
        k, v = (array(1, 2, 1000, width, dtype=dtype, grad=True) for _ in range(2))
        back(ops.attention_decode, q, k, v, **options)

    def varlen(width: int, dtype: str, causal: bool) -> None:
        q, k, v = (array(140, 2, width, dtype=dtype, grad=True) for _ in range(3))
        back(
            ops.attention_varlen, q, k, v, torch.tensor([0, 70, 140], dtype=torch.int32), causal=causal
        )  # fmt: skip

    def paged(width: int, dtype: str, queries: int) -> None:
        q, pages = (
            array(2, 4, queries, width, dtype=dtype),
            array(8, 16, 2, width, dtype=dtype),
        )
        table = torch.zeros((2, 4), dtype=torch.int32)
        ops.paged_attention(q, pages, pages, table, torch.full((2,), 60, dtype=torch.int32))

    for width, dtype in itertools.product((16, 64, 72, 80, 128, 136, 256), FLOATS):
        for queries, heads in ((1, 2), (1, 8), (4, 8)):
            yield (
                f"attention_decode {heads}x{queries}x1000x{width} {dtype}",
                lambda w=width, d=dtype, q=queries, h=heads: decode(w, d, q, h),
            )
        for causal in (False, True):
            yield (
                f"attention_varlen 140x{width} {dtype}{' causal' * causal}",
                lambda w=width, d=dtype, c=causal: varlen(w, d, c),
            )
        for queries in (1, 4):
            yield (
                f"paged_attention {queries}x{width} {dtype}",
                lambda w=width, d=dtype, q=queries: paged(w, d, q),
            )


def row_calls() -> Iterator[Call]:
    """Functions of rows, and of single elements."""
    for dtype, columns in itertools.product(FLOATS, (7, 1000, 1024, 4096, 8192, 16_384, 20_000)):
        x = lambda c=columns, d=dtype: array(4, c, dtype=d, grad=True)  # noqa: E731
        weight = lambda c=columns, d=dtype: array(c, dtype=d, grad=True)  # noqa: E731
        size = f"4x{columns} {dtype}"
        for function in (ops.softmax, ops.log_softmax):
            yield f"{function.__name__} {size}", lambda f=function, x=x: back(f, x())
        for function in (ops.layer_norm, ops.rms_norm):
            name = function.__name__
            yield f"{name} {size}", lambda f=function, x=x: back(f, x())
            yield (
                f"{name} {size} weight bias",
                lambda f=function, x=x, w=weight: back(f, x(), w(), w()),
            )
            yield (
                f"{name} {size} weight residual",
                lambda f=function, x=x, w=weight: back(f, x(), w(), residual=x()),
            )
        for smoothing in (0.0, 0.1):
            yield (
                f"cross_entropy {size} label_smoothing={smoothing}",
                lambda x=x, s=smoothing: back(
                    ops.cross_entropy, x(), torch.zeros(4, dtype=torch.int64), label_smoothing=s
                ),
            )
    for dtype in FLOATS:
        for function in (ops.softmax, ops.log_softmax):
            yield (
                f"{function.__name__} 4x100x48 {dtype} axis=1",
                lambda f=function, d=dtype: back(f, array(4, 100, 48, dtype=d, grad=True), axis=1),
            )
        for function in (ops.relu, ops.sigmoid, ops.tanh, ops.silu):
            yield (
                f"{function.__name__} 4096 {dtype}",
                lambda f=function, d=dtype: back(f, array(4096, dtype=d, grad=True)),
            )
        for approximate in ("none", "tanh"):
            yield (
                f"gelu 4096 {dtype} approximate={approximate}",
                lambda d=dtype, a=approximate: back(ops.gelu, array(4096, dtype=d, grad=True), a),
            )
            yield (
                f"gelu_mul 4096 {dtype} approximate={approximate}",
                lambda d=dtype, a=approximate: back(
                    ops.gelu_mul, array(4096, dtype=d, grad=True), array(4096, dtype=d, grad=True), a
                ),
            )  # fmt: skip
        yield (
            f"silu_mul 4096 {dtype}",
            lambda d=dtype: back(
                ops.silu_mul, array(4096, dtype=d, grad=True), array(4096, dtype=d, grad=True)
            ),
        )
        yield (
            f"dropout 5000 {dtype}",
            lambda d=dtype: back(ops.dropout, array(5000, dtype=d, grad=True), 0.5, 3),
        )
        for traditional, dims in itertools.product((False, True), (None, 48)):
            yield (
                f"rotary_embedding 1x4x100x128 {dtype} traditional={traditional} dims={dims}",
                lambda d=dtype, t=traditional, n=dims: back(
                    ops.rotary_embedding, array(1, 4, 100, 128, dtype=d, grad=True), traditional=t, dims=n
                ),
            )  # fmt: skip
        yield (
            f"rotary_embedding 1x4x100x64 {dtype} cos sin",
            lambda d=dtype: back(
                ops.rotary_embedding, array(1, 4, 100, 64, dtype=d, grad=True),
                array(100, 32, dtype=d), array(100, 32, dtype=d),
            ),
        )  # fmt: skip
        yield (
            f"embedding 100x96 {dtype}",
            lambda d=dtype: back(
                ops.embedding, array(100, 96, dtype=d, grad=True), torch.zeros((4, 5), dtype=torch.int64)
            ),
        )  # fmt: skip
        for smoothing in (0.0, 0.1):
            yield (
                f"linear_cross_entropy 70x96x1000 {dtype} label_smoothing={smoothing}",
                lambda d=dtype, s=smoothing: back(
                    ops.linear_cross_entropy, array(70, 96, dtype=d, grad=True),
                    array(1000, 96, dtype=d, grad=True), torch.zeros(70, dtype=torch.int64),
                    label_smoothing=s,
                ),
            )  # fmt: skip


def product_calls() -> Iterator[Call]:
    shapes = [
        (512, 512, 256), (500, 300, 200), (16, 512, 256), (70, 20, 300), (4, 4, 4096),
        (1, 4096, 4096), (1, 1001, 777), (4096, 1, 4096),
    ]  # fmt: skip
    for (m, n, k), dtype in itertools.product(shapes, FLOATS):
        for ta, tb in itertools.product((False, True), repeat=2):

            def multiply(
                m: int = m, n: int = n, k: int = k, d: str = dtype, ta: bool = ta, tb: bool = tb
            ) -> None:
                a = array(*((k, m) if ta else (m, k)), dtype=d, grad=True)
                b = array(*((n, k) if tb else (k, n)), dtype=d, grad=True)
                back(ops.matmul, a, b, transpose_a=ta, transpose_b=tb)

            yield f"matmul {m}x{n}x{k} {dtype}{' A^T' * ta}{' B^T' * tb}", multiply
        yield (
            f"linear {m}x{n}x{k} {dtype} bias",
            lambda m=m, n=n, k=k, d=dtype: back(
                ops.linear, array(m, k, dtype=d, grad=True), array(n, k, dtype=d, grad=True),
                array(n, dtype=d, grad=True),
            ),
        )  # fmt: skip
    for activation, dtype in itertools.product(
        ("relu", "gelu", "gelu_tanh", "silu", "sigmoid", "tanh"), FLOATS
    ):
        for m, n, k in ((500, 300, 200), (1, 512, 512)):
            yield (
                f"linear {m}x{n}x{k} {dtype} bias {activation}",
                lambda m=m, n=n, k=k, d=dtype, a=activation: back(
                    ops.linear, array(m, k, dtype=d, grad=True), array(n, k, dtype=d, grad=True),
                    array(n, dtype=d, grad=True), a,
                ),
            )  # fmt: skip
    for dtype in FLOATS:
        yield (
            f"matmul 3x70x80x90 {dtype}",
            lambda d=dtype: back(
                ops.matmul, array(3, 70, 90, dtype=d, grad=True), array(3, 90, 80, dtype=d, grad=True)
            ),
        )  # fmt: skip
        yield (
            f"matmul 64x64x4096 {dtype} split_k=8",
            lambda d=dtype: ops.matmul(
                array(64, 4096, dtype=d), array(4096, 64, dtype=d), split_k=8
            ),
        )
    for a, b in (("float16", "float32"), ("float8_e4m3fn", "float8_e4m3fn"), ("float8_e5m2", "float16"), ("int8", "int8")):  # fmt: skip
        for m, n, k in ((128, 128, 128), (1, 512, 512), (100, 90, 70)):
            yield (
                f"matmul {m}x{n}x{k} {a} {b}",
                lambda m=m, n=n, k=k, a=a, b=b: ops.matmul(
                    array(m, k, dtype=a), array(k, n, dtype=b)
                ),
            )
    for form, m in itertools.product(("e4m3", "e5m2", "mxfp8", "mxfp4"), (1, 32, 200)):

        def scaled(form: str = form, m: int = m) -> None:
            columns = 128 if form == "mxfp4" else 256
            scaled_groups = form.startswith("mx")
            sides = []
            for rows in (m, 96):
                scale = (
                    torch.full((rows, 8), 127, dtype=torch.uint8)
                    if scaled_groups
                    else array(rows, 1)
                )
                sides.append((torch.zeros((rows, columns), dtype=torch.uint8), scale))
            (a, a_scale), (b, b_scale) = sides
            ops.scaled_matmul(a, b, a_scale, b_scale, a_format=form, b_format=form)

        yield f"scaled_matmul {m}x96x256 {form}", scaled


def quantized_calls() -> Iterator[Call]:
    modes = [("affine", g, b) for g in (32, 64, 128) for b in (4, 8)]
    modes += [("mxfp4", 32, 4), ("mxfp8", 32, 8)]
    for (mode, group, bits), dtype in itertools.product(modes, FLOATS):
        given = {"group_size": group, "bits": bits, "mode": mode}
        name = f"{dtype} {mode} group_size={group} bits={bits}"
        yield (
            f"quantize 96x256 {name}",
            lambda d=dtype, g=given: ops.quantize(array(96, 256, dtype=d), **g),
        )

        def restored(d: str = dtype, g: dict[str, Any] = given) -> None:
            parts = [
                each for each in ops.quantize(array(96, 256, dtype=d), **g) if each is not None
            ]
            ops.dequantize(*parts, **g, **({} if g["mode"] == "affine" else {"dtype": d}))

        yield f"dequantize 96x256 {name}", restored
        for rows, transpose in itertools.product((1, 4, 8, 70), (True, False)):

            def multiply(
                d: str = dtype, g: dict[str, Any] = given, rows: int = rows, transpose: bool = transpose
            ) -> None:  # fmt: skip
                parts = [
                    each for each in ops.quantize(array(256, 256, dtype=d), **g) if each is not None
                ]
                x = array(rows, 256, dtype=d, grad=True)
                back(ops.quantized_matmul, x, *parts, transpose=transpose, **g)

            yield f"quantized_matmul {rows}x256x256 {name}{' W^T' * transpose}", multiply


def convolution_calls() -> Iterator[Call]:
    cases = {
        1: ({}, {"stride": 2, "padding": 1, "dilation": 2}, {"groups": 4}, {"groups": 16}),
        2: ({}, {"stride": 2, "padding": 1}, {"padding": 1, "dilation": 2}, {"groups": 4}, {"groups": 16}),
        3: ({}, {"stride": 2, "padding": 1}, {"groups": 4}),
    }  # fmt: skip
    for rank, options in ((rank, each) for rank, several in cases.items() for each in several):
        groups = options.get("groups", 1)
        for dtype, transposed in itertools.product(FLOATS, (False, True)):
            function = getattr(ops, f"conv{'_transpose' * transposed}{rank}d")

            def convolve(
                function: Any = function, rank: int = rank, d: str = dtype, g: int = groups,
                o: dict[str, Any] = options,
            ) -> None:  # fmt: skip
                x = array(2, *(9,) * rank, 16, dtype=d, grad=True)
                w = array(32, *(3,) * rank, 16 // g, dtype=d, grad=True)
                back(function, x, w, array(32, dtype=d, grad=True), **o)

            said = " ".join(f"{n}={v}" for n, v in options.items())
            yield f"{function.__name__} 2x{'9x' * rank}16 {dtype} {said}".rstrip(), convolve


def axis_calls() -> Iterator[Call]:
    """Reductions, scans and sorts."""
    kinds = (*FLOATS, "int32", "int8")
    of_numbers = (ops.sum, ops.mean, ops.prod, ops.max, ops.min)
    of_floats = (ops.var, ops.std, ops.logsumexp, ops.norm)
    for axis, dtype in itertools.product((None, 0, 1, (0, 1)), kinds):
        grad = dtype in FLOATS
        for function in (*of_numbers, *(of_floats if grad else ())):
            for shape in ((100, 1000), (64, 4096)):
                yield (
                    f"{function.__name__} {shape[0]}x{shape[1]} {dtype} axis={axis}",
                    lambda f=function, s=shape, d=dtype, a=axis, g=grad: back(
                        f, array(*s, dtype=d, grad=g), axis=a
                    ),
                )
        for function in (ops.all, ops.any):
            yield (
                f"{function.__name__} 100x1000 {dtype} axis={axis}",
                lambda f=function, d=dtype, a=axis: f(array(100, 1000, dtype=d), axis=a),
            )
        for function in (ops.argmax, ops.argmin):
            if not isinstance(axis, tuple):
                yield (
                    f"{function.__name__} 100x1000 {dtype} axis={axis}",
                    lambda f=function, d=dtype, a=axis: f(array(100, 1000, dtype=d), axis=a),
                )
    for axis, dtype in itertools.product((0, 1), kinds):
        grad = dtype in FLOATS
        for function in (ops.cumsum, ops.cumprod, ops.cummax):
            for columns in (1000, 5000):
                options: list[dict[str, Any]] = [{}, {"reverse": True}]
                for o in options:
                    yield (
                        f"{function.__name__} 40x{columns} {dtype} axis={axis}{' reverse' * bool(o)}",
                        lambda f=function, c=columns, d=dtype, a=axis, g=grad and function is ops.cumsum, o=o: back(
                            f, array(40, c, dtype=d, grad=g), axis=a, **o
                        ),
                    )  # fmt: skip
        for length in (100, 1000, 3000):
            shape = (4, length) if axis else (length, 4)
            name = f"{shape[0]}x{shape[1]} {dtype} axis={axis}"
            for function in (ops.sort, ops.argsort):
                yield (
                    f"{function.__name__} {name}",
                    lambda f=function, s=shape, d=dtype, a=axis, g=grad: back(
                        f, array(*s, dtype=d, grad=g), axis=a
                    ),
                )
            yield (
                f"topk {name} k=10",
                lambda s=shape, d=dtype, a=axis, g=grad: back(
                    ops.topk, array(*s, dtype=d, grad=g), 10, axis=a
                ),
            )


def index_calls() -> Iterator[Call]:
    for dtype in (*FLOATS, "int32"):
        grad = dtype in FLOATS
        x = lambda d=dtype, g=grad: array(50, 96, dtype=d, grad=g)  # noqa: E731
        places = lambda *shape: torch.zeros(shape, dtype=torch.int64)  # noqa: E731
        for axis in (0, 1):
            name = f"50x96 {dtype} axis={axis}"
            yield (
                f"take {name}",
                lambda x=x, p=places, a=axis: back(ops.take, x(), p(7), axis=a),
            )
            for function in (ops.take_along_axis, ops.gather):
                yield (
                    f"{function.__name__} {name}",
                    lambda f=function, x=x, p=places, a=axis: back(f, x(), p(50, 96), axis=a),
                )
            yield (
                f"scatter_add {name}",
                lambda x=x, p=places, a=axis: back(ops.scatter_add, x(), p(50, 96), x(), axis=a),
            )
            yield (
                f"index_add {name}",
                lambda x=x, p=places, a=axis, d=dtype, g=grad: back(
                    ops.index_add, x(), p(7),
                    array(*((7, 96) if a == 0 else (50, 7)), dtype=d, grad=g), axis=a,
                ),
            )  # fmt: skip
    for dtype, bins in itertools.product(FLOATS, (10, 256, 2000)):
        yield (
            f"histogram 5000 {dtype} bins={bins}",
            lambda d=dtype, b=bins: ops.histogram(array(5000, dtype=d), b, range=(0.0, 1.0)),
        )
    for length in (10, 256, 2000):
        yield (
            f"bincount 5000 length={length}",
            lambda n=length: ops.bincount(torch.zeros(5000, dtype=torch.int32), n),
        )


def optimiser_calls() -> Iterator[Call]:
    for dtype, count in itertools.product(FLOATS, (1, 4)):
        arrays = lambda d=dtype, c=count: [array(1000 + 24 * i, dtype=d) for i in range(c)]  # noqa: E731
        for momentum in (0.0, 0.9):
            yield (
                f"sgd_step {count}x1000 {dtype} momentum={momentum}",
                lambda a=arrays, m=momentum: ops.sgd_step(a(), a(), lr=0.1, momentum=m),
            )
        yield (
            f"adamw_step {count}x1000 {dtype}",
            lambda a=arrays: ops.adamw_step(a(), a(), a(), a(), step=2),
        )
