"""Rows of the table that work along rows: softmax, logsumexp, norms, argmax, running sums, sorting."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from _arrays import numpy_dtype
from against.problem import Case, Launch, Problem, equal, grid_of, near
from kernels import blocks_softmax, norms, rows
from kernels import logsumexp as logsumexp_kernels
from mlx_kernels.parameters import threads_for, tiles
from mlx_kernels.running import blank, decode, encode, f32, i32, i64, launch, metal, numbers
from softmax import softmax, softmax_kernel

EPSILON = 1e-5
#: MLX's limit of a row that a threadgroup takes whole, in softmax, logsumexp and the norms.
LOOPED = 4096


def block_of(columns: int) -> int:
    """The numbers of the one block that holds a row: threads have places for all of them."""
    return 1 << (columns - 1).bit_length()


def warps(columns: int) -> list[tuple[int]]:
    """Numbers of SIMD-groups that leave a thread 4 to 32 numbers of a row's block."""
    block = block_of(columns)
    return [(w,) for w in (1, 2, 4, 8, 16, 32) if 4 <= block / (32 * w) <= 32] or [(1,)]


def four_each(columns: int) -> list[tuple[int]]:
    """The number of SIMD-groups that leaves a thread four numbers of a row, as MLX's kernels do, or the most."""
    return [(min(32, max(1, block_of(columns) // 128)),)]


def typed(x: np.ndarray, t: str) -> np.ndarray:
    return x.astype(numpy_dtype(t))


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

    def in_registers(num_warps: int) -> np.ndarray:
        out = np.empty_like(given)
        block = block_of(columns)
        softmax_kernel[(shape[0],)](
            out, given, columns, columns, columns, BLOCK=block, num_warps=num_warps
        )
        return out

    ours: dict[str, Launch] = {"examples/softmax.py": lambda: softmax(given)}
    if columns <= LOOPED:
        ours = grid_of(in_registers, "num_warps", four_each(columns))
    # A block longer than the row has numbers that are none of it, and four neighbours of a thread as many addresses.
    if columns > LOOPED or columns & (columns - 1):
        held = [(w,) for w in (2, 4, 8, 16, 32) if 3 <= columns / (32 * w) <= 16]
        in_blocks = lambda num_warps: blocks_softmax.softmax(given, num_warps)  # noqa: E731
        ours |= {
            f"kernels/blocks_softmax.py, {label}": one
            for label, one in grid_of(in_blocks, "num_warps", held).items()
        }
    # Sums in float, as ours, which MLX calls precise.
    theirs = {f"{kind}, precise": lambda: run(t != "float32")}
    return Problem(ours, theirs, near(exact, t, terms=16, rtol=2e-5 if t == "float32" else 2e-2))


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

    # Eight numbers a thread: each makes its number for the others once.
    ours = grid_of(
        lambda num_warps: logsumexp_kernels.logsumexp(given, num_warps),
        "num_warps",
        [(w,) for (w,) in warps(columns) if block_of(columns) >= 8 * 32 * w][-1:],
    )
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

        def one(num_warps: int) -> np.ndarray:
            return norms.layer_norm(*given, EPSILON, num_warps)

    else:
        exact = x / np.sqrt((x**2).mean(1, keepdims=True) + EPSILON) * w
        reads, limit, file, name = 4, LOOPED, "rms_norm", "rms"

        def one(num_warps: int) -> np.ndarray:
            return norms.rms_norm(*given[:2], EPSILON, num_warps)

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

    ours = grid_of(one, "num_warps", warps(columns))
    return Problem(ours, {f"{name}{'_looped' * looped}": run}, near(exact, t, terms=16))


def _argmax(shape: tuple[int, int], t: str) -> Problem:
    x = numbers(shape, t, 1)
    given, columns = typed(x, t), shape[1]
    threads = min(1024, tiles(tiles(columns, 4), 32) * 32)

    def run() -> np.ndarray:
        (out,) = launch(
            "arg_reduce",
            f"argmax_{t}",
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

    ours = grid_of(lambda num_warps: rows.argmax(given, num_warps), "num_warps", warps(columns))
    return Problem(ours, {"argmax": run}, equal(x.argmax(1)))


def _scan(shape: tuple[int, int], t: str) -> Problem:
    x = numbers(shape, t, 1)
    given, columns = typed(x, t), shape[1]
    threads = tiles(columns if columns <= 4096 else columns // 2, 128) * 32

    def run() -> np.ndarray:
        (out,) = launch(
            "scan",
            ("contiguous_scan", metal(t), metal(t), f"CumSum<{metal(t)}>", 4, True, False),
            {0: encode(x, t), 1: blank(shape, t), 2: i64(columns)},
            [1],
            threadgroups=(1, shape[0]),
            group=(min(threads, 1024),),
        )
        return decode(out, t)

    ours = grid_of(lambda num_warps: rows.cumsum(given, num_warps), "num_warps", warps(columns))
    return Problem(ours, {"contiguous_scan": run}, near(x.cumsum(1), t, terms=columns))


def _sort(shape: tuple[int, int], t: str) -> Problem:
    x = numbers(shape, t, 1)
    given, columns = typed(x, t), shape[1]
    threads = next((n for n in (32, 64, 128, 256) if tiles(columns, 4) <= n), 512)

    def run() -> np.ndarray:
        (out,) = launch(
            "sort",
            ("block_sort", metal(t), metal(t), False, threads, 4),
            {
                0: encode(x, t),
                1: blank(shape, t),
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
        return decode(out, t)

    # 32 numbers of a thread and those that they change places with have no room in G13's registers.
    few = [(w,) for (w,) in warps(columns) if block_of(columns) <= 16 * 32 * w]
    few += [(w,) for w in (16, 32) if block_of(columns) == 64 * w]
    ours = grid_of(lambda num_warps: rows.sort(given, num_warps), "num_warps", few)
    return Problem(ours, {f"block_sort, {threads} threads": run}, equal(np.sort(x, 1)))


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
    for shape, t in (((256, 1024), "float32"), ((128, 4096), "float16")):
        yield Case("argmax", sized(shape), t, lambda s=shape, t=t: _argmax(s, t), source=True)
    for shape, t in (((256, 1024), "float32"), ((128, 4096), "float32")):
        yield Case("scan (sum)", sized(shape), t, lambda s=shape, t=t: _scan(s, t))
    for shape, t in (((64, 1024), "float32"), ((32, 2048), "float32")):
        yield Case("sort", sized(shape), t, lambda s=shape, t=t: _sort(s, t))
