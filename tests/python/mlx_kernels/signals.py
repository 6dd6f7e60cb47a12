"""Fourier and Hadamard transforms."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product

from mlx_kernels.family import FLOATS, TYPES, Family, Instance, instance


def fft() -> Iterator[Instance]:
    for size in (256, 512, 1024, 2048, 4096):
        for given, result in (("float2", "float2"), ("float", "float2"), ("float2", "float")):
            for name, function in (
                ("fft", "fft"),
                ("rader_fft", "rader_fft"),
                ("bluestein_fft", "bluestein_fft"),
            ):
                yield instance(f"{name}_mem_{size}_{given}_{result}", function, size, given, result)
        for given, result, step, real in (
            ("float2", "float2", 0, False),
            ("float2", "float2", 1, False),
            ("float", "float2", 0, True),
            ("float2", "float2", 1, True),
            ("float2", "float2", 0, True),
            ("float2", "float", 1, True),
        ):
            name = f"four_step_mem_{size}_{given}_{result}_{step}_/*real=*/{str(real).lower()}"
            yield instance(name, "four_step_fft", size, given, result, step, real)


def hadamard_codelet(rows: int, matrix: list[list[int]]) -> str:
    """The function that MLX generates for the factor of a size that is no power of two."""
    sums = [" ".join(f"{'+-'[sign < 0]} x[{i}]" for i, sign in enumerate(row)) for row in matrix]
    body = "".join(f"  t[{i}] = {text};\n" for i, text in enumerate(sums))
    return (
        f"METAL_FUNC void hadamard_radix_m(thread float *x) {{\n  float t[{rows}];\n{body}"
        f"  for (int i = 0; i < {rows}; i++) x[i] = t[i];\n}}\n"
    )


def paley(prime: int) -> list[list[int]]:
    """Paley's Hadamard matrix of order `prime` + 1, for a prime that is 3 modulo 4."""
    squares = {i * i % prime for i in range(1, prime)}

    def character(i: int) -> int:
        return 0 if i % prime == 0 else 1 if i % prime in squares else -1

    rows = [[1] * (prime + 1)]
    for i in range(prime):
        rows.append([-1, *(character(j - i) + (i == j) for j in range(prime))])
    return rows


#: First rows of four circulant matrices whose squares add up to 28 times the identity.
WILLIAMSON_28 = ("+++--++", "+++--++", "++-++-+", "+-+--+-")


def williamson(blocks: tuple[str, ...]) -> list[list[int]]:
    """A Hadamard matrix of four circulant matrices, which are given by the signs of their first rows."""
    a, b, c, d = (
        [
            [1 if row[(j - i) % len(row)] == "+" else -1 for j in range(len(row))]
            for i in range(len(row))
        ]
        for row in blocks
    )

    def negative(matrix: list[list[int]]) -> list[list[int]]:
        return [[-x for x in row] for row in matrix]

    quarters = [
        [a, b, c, d],
        [negative(b), a, negative(d), c],
        [negative(c), d, a, negative(b)],
        [negative(d), negative(c), b, a],
    ]
    return [[x for part in row for x in part[i]] for row in quarters for i in range(len(a))]


def hadamard_matrix(order: int) -> list[list[int]]:
    """A Hadamard matrix of a power of two, or of 12, 20 or 28."""
    if order == 28:
        return williamson(WILLIAMSON_28)
    if order in (12, 20):
        return paley(order - 1)
    if order == 1:
        return [[1]]
    half = hadamard_matrix(order // 2)
    return [row + row for row in half] + [row + [-x for x in row] for row in half]


def hadamard() -> Iterator[Instance]:
    for t in FLOATS:
        for size in (2, 64, 2048):
            yield instance(
                f"n2_{size}_{t}", "hadamard_n", TYPES[t], size, min(size, 16), 2 if size == 2 else 4
            )
        yield instance(f"n1_64_{t}", "hadamard_n", TYPES[t], 64, 16, 4, 32)
        yield instance(f"m_12_{t}", "hadamard_m", TYPES[t], 64, 12, 4)


def hadamard_factor(m: int) -> Iterator[Instance]:
    """The kernels of one factor that is no power of two."""
    for t, size in product(FLOATS, (2, 32, 512)):
        yield instance(f"m_{m}_{size}_{t}", "hadamard_m", TYPES[t], size, m, 2)


def codelet_and_header(m: int) -> str:
    include = '#include "mlx/backend/metal/kernels/hadamard.h"\n'
    return hadamard_codelet(m, hadamard_matrix(m)) + include


FAMILIES = [
    Family("fft", ("utils.h", "fft.h"), fft, "fft"),
    Family(
        "hadamard",
        ("utils.h",),
        hadamard,
        # The codelet comes before the header that calls it.
        preamble=codelet_and_header(12),
    ),
    *(
        Family(
            f"hadamard_{m}",
            ("utils.h",),
            partial(hadamard_factor, m),
            preamble=codelet_and_header(m),
        )
        for m in (20, 28)
    ),
]
