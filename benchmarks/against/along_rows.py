"""Rows of the table that work along an axis: softmax, logsumexp, norms, argmax, running sums, sorting."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from triton_metal import ops

from _arrays import numpy_dtype
from against.problem import Case, Launch, Problem, default, equal, near
from mlx_kernels.parameters import threads_for, tiles
from mlx_kernels.running import blank, decode, encode, f32, i32, i64, launch, metal, numbers

EPSILON = 1e-5
#: MLX's limit of a row that a threadgroup takes whole, in softmax, logsumexp and the norms.
LOOPED = 4096


def typed(x: np.ndarray, t: str) -> np.ndarray:
    return x.astype(numpy_dtype(t))


def in_mlx(x: np.ndarray, t: str) -> Any:
    """An array of MLX, whose places are uint32 on both sides."""
    import mlx.core as mx

    return mx.array(x.astype(np.float32)).astype(getattr(mx, t))


def _softmax(shape: tuple[int, int], t: str) -> Problem:
    x = numbers(shape, t, 1, scale=3)
    exact = np.exp(x - x.max(1, keepdims=True))
    exact /= exact.sum(1, keepdims=True)
    given, columns = typed(x, t), shape[1]
    looped = columns > LOOPED
    kind = "softmax_looped" if looped else "softmax_single_row"

    def run(precise: bool) -> np.ndarray:
        (out,) = launch(
            "softmax",
            (kind, metal(t), *(["float"] if precise else [])),
            {0: encode(x, t), 1: blank(shape, t), 2: i32(columns)},
            [1],
            threadgroups=(shape[0],),
            group=(threads_for(columns, looped, 4),),
        )
        return decode(out, t)

    # Sums in float, as ours, which MLX calls precise.
    theirs = {f"{kind}, precise": lambda: run(t != "float32")}
    check = near(exact, t, terms=16, rtol=2e-5 if t == "float32" else 2e-2)
    return Problem(default(lambda: ops.softmax(given)), theirs, check)


def _logsumexp(shape: tuple[int, int], t: str) -> Problem:
    x = numbers(shape, t, 1, scale=3)
    exact = x.max(1) + np.log(np.exp(x - x.max(1, keepdims=True)).sum(1))
    given, columns = typed(x, t), shape[1]
    looped = columns > LOOPED
    kind = "logsumexp_looped" if looped else "logsumexp"

    def run() -> np.ndarray:
        (out,) = launch(
            "logsumexp",
            (kind, metal(t)),
            {0: encode(x, t), 1: blank(shape[:1], t), 2: i32(columns)},
            [1],
            threadgroups=(shape[0],),
            group=(threads_for(columns, looped, 4),),
        )
        return decode(out, t)

    ours = default(lambda: ops.logsumexp(given, axis=1))
    return Problem(ours, {kind: run}, near(exact, t, terms=16))


def _norm(kind: str, shape: tuple[int, int], t: str) -> Problem:
    x = numbers(shape, t, 1) + 1
    x = decode(encode(x, t), t)
    w, b = numbers(shape[1:], t, 2), numbers(shape[1:], t, 3)
    columns = shape[1]
    given = [typed(each, t) for each in (x, w, b)]
    if kind == "layer norm":
        exact = x - x.mean(1, keepdims=True)
        exact = exact / np.sqrt((exact**2).mean(1, keepdims=True) + EPSILON) * w + b
        reads, limit, file, name = 8, 6656, "layer_norm", "layer_norm"
        ours = default(lambda: ops.layer_norm(*given, eps=EPSILON))
    else:
        exact = x / np.sqrt((x**2).mean(1, keepdims=True) + EPSILON) * w
        reads, limit, file, name = 4, LOOPED, "rms_norm", "rms"
        ours = default(lambda: ops.rms_norm(*given[:2], eps=EPSILON))
    looped = columns > limit
    threads = threads_for(columns, looped, reads)
    size, step = np.array([columns], np.uint32), np.array([1], np.uint32)
    operands = {0: encode(x, t), 1: encode(w, t)}
    if kind == "layer norm":
        operands |= {2: encode(b, t), 3: blank(shape, t), 4: f32(EPSILON), 5: size}
        operands |= {6: step, 7: step}
    else:
        operands |= {2: blank(shape, t), 3: f32(EPSILON), 4: size, 5: step}

    def run() -> np.ndarray:
        (out,) = launch(
            file,
            f"{name}{'_looped' * looped}{t}",
            operands,
            [3 if kind == "layer norm" else 2],
            grid=(shape[0] * threads,),
            group=(threads,),
        )
        return decode(out, t)

    return Problem(ours, {f"{name}{'_looped' * looped}": run}, near(exact, t, terms=16))


def _place(name: str, shape: tuple[int, int], t: str) -> Problem:
    x = numbers(shape, t, 1)
    given, columns = in_mlx(x, t), shape[1]
    threads = min(1024, tiles(tiles(columns, 4), 32) * 32)

    def run() -> np.ndarray:
        (out,) = launch(
            "arg_reduce",
            f"{name}_{t}",
            {
                0: encode(x, t),
                1: blank(shape[:1], "uint32"),
                2: i32(shape[0]),
                3: i64(columns),
                4: i64(1),
                5: np.array([1], np.uint64),
                6: i64(1),
                7: np.array([columns], np.uint64),
            },
            [1],
            grid=(threads, shape[0], 1),
            group=(threads,),
        )
        return out

    function, exact = (ops.argmax, np.argmax) if name == "argmax" else (ops.argmin, np.argmin)
    ours = default(lambda: np.asarray(function(given, axis=1)))
    return Problem(ours, {name: run}, equal(exact(x, 1)))


#: MLX's functors of scans, and NumPy's functions.
SCANS: dict[str, tuple[str, Callable[..., np.ndarray], Callable[..., np.ndarray]]] = {
    "cumsum": ("CumSum", np.cumsum, ops.cumsum),
    "cumprod": ("CumProd", np.cumprod, ops.cumprod),
    "cummax": ("CumMax", np.maximum.accumulate, ops.cummax),
}


def _scan(name: str, shape: tuple[int, ...], axis: int, t: str) -> Problem:
    x = numbers(shape, t, 1)
    if name == "cumprod":
        x = decode(encode(1 + x / 64, t), t)
    functor, exact, function = SCANS[name]
    given, length, inner = typed(x, t), shape[axis], int(np.prod(shape[axis + 1 :]))
    outer = x.size // (length * inner)
    named = metal(t), metal(t), f"{functor}<{metal(t)}>", 4, True, False
    arrays = {0: encode(x, t), 1: blank(shape, t), 2: i64(length)}

    def along_rows() -> np.ndarray:
        threads = min(1024, tiles(length if length <= 4096 else length // 2, 128) * 32)
        (out,) = launch(
            "scan",
            ("contiguous_scan", *named),
            arrays,
            [1],
            threadgroups=(1, outer),
            group=(threads,),
        )
        return decode(out, t)

    def along_columns() -> np.ndarray:
        blocks = tiles(inner, 32)
        (out,) = launch(
            "scan",
            ("strided_scan", *named),
            arrays | {3: i64(inner), 4: i64(blocks)},
            [1],
            threadgroups=(1, outer * blocks),
            group=(256,),
        )
        return decode(out, t)

    theirs = {"contiguous_scan": along_rows} if inner == 1 else {"strided_scan": along_columns}
    check = near(exact(x, axis=axis), t, terms=length, rtol=1e-4 if name == "cumprod" else None)
    return Problem(default(lambda: function(given, axis=axis)), theirs, check)


def _sort(name: str, shape: tuple[int, int], t: str) -> Problem:
    x = numbers(shape, t, 1)
    columns, places = shape[1], name == "argsort"
    given = in_mlx(x, t) if places else typed(x, t)
    threads = next((n for n in (32, 64, 128, 256) if tiles(columns, 4) <= n), 512)
    result = "uint32" if places else t
    blocks = tiles(columns, 4 * threads)

    def in_one_block() -> np.ndarray:
        (out,) = launch(
            "sort",
            ("block_sort", metal(t), metal(result), places, threads, 4),
            {
                0: encode(x, t),
                1: blank(shape, result),
                2: i32(columns),
                3: i32(1),
                4: i32(1),
                5: i32(columns),
                6: i32(columns),
            },
            [1],
            threadgroups=(1, shape[0]),
            group=(threads,),
        )
        return out if places else decode(out, t)

    def in_blocks() -> np.ndarray:
        named = metal(t), "uint32_t", True, threads, 4
        values, indices = launch(
            "sort",
            ("mb_block_sort", *named),
            {
                0: encode(x, t),
                1: blank(shape, t),
                2: blank(shape, "uint32"),
                3: i32(columns),
                4: i32(1),
                5: i32(1),
                6: i32(shape[0]),
                7: i64(columns),
            },
            [1, 2],
            threadgroups=(blocks, shape[0]),
            group=(threads,),
        )
        tile = 2
        while tile // 2 < blocks:
            sizes = i32(columns), i32(tile), i32(blocks)
            (parts,) = launch(
                "sort",
                ("mb_block_partition", *named),
                {
                    0: blank((shape[0], blocks + 1), "uint32"),
                    1: values,
                    2: indices,
                    **dict(enumerate(sizes, 3)),
                },
                [0],
                threadgroups=(1, shape[0]),
                group=(min(blocks + 1, 1024),),
            )
            values, indices = launch(
                "sort",
                ("mb_block_merge", *named),
                {
                    0: parts,
                    1: values,
                    2: indices,
                    3: blank(shape, t),
                    4: blank(shape, "uint32"),
                    **dict(enumerate(sizes, 5)),
                },
                [3, 4],
                threadgroups=(blocks, shape[0]),
                group=(threads,),
            )
            tile *= 2
        found, of = (indices, "uint32") if places else (values, t)
        (out,) = launch(
            "copy",
            ("copy_v", metal(of), metal(of), 4 // found.itemsize * 1),
            {0: found, 1: blank(shape, of), 2: np.array([x.size], np.uint32)},
            [1],
            grid=(x.size,),
            group=(1024,),
        )
        return out if places else decode(out, t)

    function = ops.argsort if places else ops.sort
    exact = np.argsort(x, 1, kind="stable") if places else np.sort(x, 1)
    if name.startswith("topk"):
        return _topk(x, int(name.split()[1]), t, in_one_block if blocks == 1 else in_blocks)
    kind = f"{'arg' * places}block_sort, {threads} threads" if blocks == 1 else f"{blocks} blocks"
    theirs = {kind: in_one_block if blocks == 1 else in_blocks}
    return Problem(default(lambda: np.asarray(function(given))), theirs, equal(exact))


def _topk(x: np.ndarray, k: int, t: str, sort: Launch) -> Problem:
    """The largest numbers, which MLX takes from the end of a sort; ours come with their places, and fall."""
    given, exact = in_mlx(x, t), np.sort(x, 1)[:, ::-1][:, :k]
    return Problem(
        default(lambda: np.asarray(ops.topk(given, k)[0])),
        {"sort": lambda: sort().reshape(x.shape)[:, ::-1][:, :k]},
        equal(exact),
    )


def cases() -> Iterator[Case]:
    def sized(shape: tuple[int, ...]) -> str:
        return "×".join(map(str, shape))

    for shape, t, quick in (
        ((256, 1024), "float32", True),
        ((256, 1024), "float16", False),
        ((256, 781), "float32", False),
        ((128, 4096), "float32", True),
        ((128, 4096), "bfloat16", False),
        ((16, 16384), "float32", False),
    ):
        yield Case("softmax", sized(shape), t, lambda s=shape, t=t: _softmax(s, t), quick=quick)
    for shape, t, quick in (((256, 1024), "float32", True), ((128, 4096), "float16", False)):
        yield Case("logsumexp", sized(shape), t, lambda s=shape, t=t: _logsumexp(s, t), quick=quick)
    for kind in ("layer norm", "RMS norm"):
        for shape, t, quick in (
            ((256, 1024), "float32", True),
            ((256, 1021), "float16", False),
            ((128, 4096), "float32", False),
            ((128, 4096), "float16", False),
        ):
            make = lambda k=kind, s=shape, t=t: _norm(k, s, t)  # noqa: E731
            yield Case(kind, sized(shape), t, make, source=True, quick=quick)
    for shape, t in (
        ((256, 1024), "float32"),
        ((128, 4096), "float32"),
        ((128, 4096), "float16"),
        ((1000, 500), "float32"),
    ):
        yield Case(
            "argmax", sized(shape), t, lambda s=shape, t=t: _place("argmax", s, t), source=True
        )
    yield Case(
        "argmin",
        "256×1024",
        "float32",
        lambda: _place("argmin", (256, 1024), "float32"),
        source=True,
    )
    for name, shape, axis, t in (
        ("cumsum", (256, 1024), 1, "float32"),
        ("cumsum", (128, 4096), 1, "float32"),
        ("cumsum", (128, 4096), 1, "float16"),
        ("cumsum", (16, 16384), 1, "float32"),
        ("cumsum", (1024, 512), 0, "float32"),
        ("cumprod", (256, 1024), 1, "float32"),
        ("cummax", (256, 1024), 1, "float32"),
    ):
        make = lambda a=(name, shape, axis, t): _scan(*a)  # noqa: E731
        kind = f"{name} of {'rows' if axis else 'columns'}"
        yield Case(kind, sized(shape), t, make)
    for name, shape, t in (
        ("sort", (64, 1024), "float32"),
        ("sort", (32, 2048), "float32"),
        ("sort", (64, 1000), "float16"),
        ("sort", (8, 5000), "float32"),
        ("argsort", (64, 1024), "float32"),
        ("argsort", (8, 5000), "float32"),
        ("topk, 16", (64, 1024), "float32"),
        ("topk, 16", (8, 5000), "float32"),
    ):
        yield Case(name, sized(shape), t, lambda a=(name, shape, t): _sort(*a))
