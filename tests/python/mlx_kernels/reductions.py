"""Kernels along an axis: softmax, logsumexp, reductions, scans, sorts."""

from __future__ import annotations

from collections.abc import Iterator

from mlx_kernels.family import FLOATS, INTEGERS, TYPES, WIDE, Family, Instance, instance

SUM_TYPES = {t: t for t in TYPES if t != "bool_"} | {
    "uint8": "int32",
    "uint16": "uint32",
    "int8": "int32",
    "int16": "int32",
}


def softmax() -> Iterator[Instance]:
    for t in FLOATS:
        for kind, function in (("block", "softmax_single_row"), ("looped", "softmax_looped")):
            yield instance(f"{kind}_softmax_{t}", function, TYPES[t])
            if t != "float32":
                yield instance(f"{kind}_softmax_precise_{t}", function, TYPES[t], "float")


def logsumexp() -> Iterator[Instance]:
    for t in FLOATS:
        yield instance(f"block_logsumexp_{t}", "logsumexp", TYPES[t])
        yield instance(f"looped_logsumexp_{t}", "logsumexp_looped", TYPES[t])


def reduction_operations() -> Iterator[tuple[str, str, str, str]]:
    """Names, functors, and the types of operands and results."""
    for name in ("and", "or"):
        yield from ((name, name.title(), t, "bool_") for t in ("bool_", "int16", "int32", "int64"))
    for name in ("sum", "prod"):
        yield from ((name, name.title(), t, result) for t, result in SUM_TYPES.items())
    for name in ("min", "max"):
        yield from ((name, name.title(), t, t) for t in SUM_TYPES)


def reduce() -> Iterator[Instance]:
    for name in ("and", "or"):
        yield instance(f"init_reduce_{name}bool_", "init_reduce", "bool", f"{name.title()}<bool>")
    for name in ("sum", "prod"):
        for t in ("int32", "int64", *FLOATS, "complex64"):
            yield instance(
                f"init_reduce_{name}{t}", "init_reduce", TYPES[t], f"{name.title()}<{TYPES[t]}>"
            )
    for name in ("min", "max"):
        for t in TYPES:
            yield instance(
                f"init_reduce_{name}{t}", "init_reduce", TYPES[t], f"{name.title()}<{TYPES[t]}>"
            )
    for name, op, source, result in reduction_operations():
        arguments = TYPES[source], TYPES[result], f"{op}<{TYPES[result]}>"
        name += source
        yield instance(f"all_reduce_{name}", "all_reduce", *arguments)
        yield instance(f"row_reduce_simple_{name}", "row_reduce_simple", *arguments)
        for large, index in (("", "int"), ("large_", "int64_t")):
            for n in (1, 2, 5):
                for kind in (
                    "row_reduce_small",
                    "row_reduce_looped",
                    "col_reduce_small",
                    "col_reduce_longcolumn",
                ):
                    yield instance(f"{kind}_{large}{n}_reduce_{name}", kind, *arguments, index, n)
                for kind in ("col_reduce_looped", "col_reduce_2pass"):
                    yield instance(
                        f"{kind}_{large}{n}_32_32_reduce_{name}", kind, *arguments, index, n, 32, 32
                    )


def scan_operations() -> Iterator[tuple[str, str, str, str]]:
    yield ("sum", "CumSum", "bool_", "int32")
    yield ("sum", "CumSum", "bool_", "uint32")
    yield from (("sum", "CumSum", t, t) for t in [*INTEGERS, *FLOATS, "complex64"])
    for name in ("prod", "max", "min"):
        yield from ((name, f"Cum{name.title()}", t, t) for t in TYPES)
    yield from (("logaddexp", "CumLogaddexp", t, t) for t in [*FLOATS, "complex64"])


def scan() -> Iterator[Instance]:
    for name, op, source, result in scan_operations():
        for kind in ("contig", "strided"):
            for reverse in (False, True):
                for inclusive in (True, False):
                    prefix = f"{kind}_scan_{'reverse_' * reverse}{'inclusive' if inclusive else 'exclusive'}"
                    yield instance(
                        f"{prefix}_{name}_{source}_{result}",
                        {"contig": "contiguous_scan", "strided": "strided_scan"}[kind],
                        TYPES[source],
                        TYPES[result],
                        f"{op}<{TYPES[result]}>",
                        2 if source in WIDE else 4,
                        inclusive,
                        reverse,
                    )


def sort() -> Iterator[Instance]:
    for t in [each for each in TYPES if each != "bool_"]:
        for threads in (32, 64, 128, 256) if t in WIDE else (32, 64, 128, 256, 512):
            for name, result, argument in (
                (f"_block_sort_{t}", t, False),
                ("arg_block_sort", "uint32", True),
            ):
                suffix = f"{name}_{t}" if not argument else f"{name}_{t}_uint32"
                for prefix, function in (("c", "block_sort"), ("nc", "block_sort_nc")):
                    yield instance(
                        f"{prefix}{suffix}_bn{threads}_tn4",
                        function,
                        TYPES[t],
                        TYPES[result],
                        argument,
                        threads,
                        4,
                    )
        threads = 256 if t in WIDE else 512
        for kind in ("sort", "partition", "merge"):
            yield instance(
                f"{kind}_mbsort_{t}_uint32_bn{threads}_tn4",
                f"mb_block_{kind}",
                TYPES[t],
                "uint32_t",
                True,
                threads,
                4,
            )


FAMILIES = [
    Family("softmax", ("utils.h", "softmax.h"), softmax, "softmax"),
    Family("logsumexp", ("utils.h", "logsumexp.h"), logsumexp, "logsumexp"),
    Family("reduce", ("utils.h", "atomic.h", "reduction/ops.h", "reduce.h"), reduce, "reduce"),
    Family("scan", ("utils.h", "scan.h"), scan, "scan"),
    Family("sort", ("utils.h", "sort.h"), sort, "sort"),
]
