"""MLX's products with quantized matrices, in all modes and both generations, against MLX's own quantization on the CPU."""

from __future__ import annotations

import numpy as np
import pytest
import triton_metal_host as metal_api

from mlx_kernels import NEEDS_MLX
from mlx_kernels.quantized_arrays import MODES, Quantized, batch_of, quantized
from mlx_kernels.running import (
    assert_close,
    blank,
    checked,
    encode,
    generator,
    i32,
    i64,
    launch,
    metal,
    numbers,
)

mx = pytest.importorskip("mlx.core")
pytestmark = NEEDS_MLX
FEW = ["affine3", "affine4", "nvfp4", "mxfp8"]


def run_kernel(
    family: str,
    name: str,
    w: Quantized,
    t: str,
    arguments: list[np.ndarray],
    out: int,
    template: tuple[object, ...],
    threadgroups: tuple[int, ...],
    group: tuple[int, ...],
    constants: dict[int, object] | None = None,
) -> np.ndarray:
    prefix = "" if w.kind == "affine" else "fp_"
    (result,) = launch(
        f"{prefix}{family}",
        (f"{w.kind}_{name}", metal(t), w.group, w.bits, *template),
        dict(enumerate(arguments)),
        [out],
        threadgroups=threadgroups,
        group=group,
        constants=constants,
    )
    return result


#: kernel, (rows, columns, terms), template arguments, threadgroups along columns, threads; rows of x are threadgroups
VECTORS = {
    "qmv": ((3, 21, 160), (), 8, (32, 2)),
    "qmv_fast": ((2, 24, 512), (), 8, (32, 2)),
    "qmv_quad": ((3, 70, 128), (128,), 64, (32,)),
}


@pytest.mark.parametrize(
    ("name", "mode"),
    # MLX takes qmv_quad only where a byte has a whole number of values.
    [(n, m) for n in VECTORS for m in MODES if n != "qmv_quad" or MODES[m][2] in (2, 4, 8)],
)
def test_matrix_times_vector(name: str, mode: str) -> None:
    """Two products, whose matrix and vectors are a batch."""
    times_vector(name, mode, 64 if name == "qmv_quad" else 0)


def times_vector(name: str, mode: str, more: int) -> None:
    (m, n, k), template, block, group = VECTORS[name]
    k = 384 if (name, MODES[mode][1]) == ("qmv", 128) else 192 if name == "qmv" else k
    t = ["float32", "float16", "bfloat16"][list(MODES).index(mode) % 3]
    w = quantized((2, n, k), mode, t)
    x = numbers((2, m, k), t, 1)
    stored = x.astype(np.float32)
    arguments = [
        *w.rows(more),
        encode(x, t),
        blank((2, m, n), t),
        i32(k),
        i32(n),
        *batch_of(stored, w),
    ]
    out = len(w.parts) + 1
    threadgroups = (m, -(-n // block), 2)
    got = run_kernel("quantized", name, w, t, arguments, out, (*template, 1), threadgroups, group)
    assert_close(got, x @ np.swapaxes(w.values, -1, -2), t, terms=k)


@pytest.mark.parametrize("mode", FEW)
@pytest.mark.parametrize("vectors", [2, 5])
def test_matrix_times_several_vectors(mode: str, vectors: int) -> None:
    m, n, k, t = 7, 21, 256, "float16"
    w = quantized((n, k), mode, t)
    x = numbers((m, k), t, 1)
    lanes = 8 if w.kind == "affine" else 16
    arguments = [*w.parts, encode(x, t), blank((m, n), t), i32(k), i32(n), i32(m), *batch_of(x, w)]
    out = len(w.parts) + 1
    threadgroups = (-(-m // vectors), -(-n // (64 // lanes)))
    template = (vectors, lanes, 0)
    got = run_kernel("quantized", "qmv_wide", w, t, arguments, out, template, threadgroups, (32, 2))
    assert_close(got, x @ w.values.T, t, terms=k)


@pytest.mark.parametrize("mode", MODES)
def test_vector_times_matrix(mode: str) -> None:
    m, n, k, t = 3, 256, 75, "float32"
    w = quantized((k, n), mode, t)
    x = numbers((m, k), t, 1)
    arguments = [*w.parts, encode(x, t), blank((m, n), t), i32(k), i32(n), *batch_of(x, w)]
    block = min(w.group, 32) * 2
    out = len(w.parts) + 1
    got = run_kernel("quantized", "qvm", w, t, arguments, out, (0,), (m, -(-n // block)), (32, 2))
    assert_close(got, x @ w.values, t, terms=k)


@pytest.mark.parametrize("mode", FEW)
def test_vector_times_matrix_in_parts(mode: str) -> None:
    """The terms are cut into eight parts, the last of which is shorter."""
    m, n, k, parts, t = 2, 128, 75, 8, "float16"
    size = -(-k // parts)
    w = quantized((k, n), mode, t)
    x = numbers((m, k), t, 1)
    columns = [each.shape[-1] for each in w.parts]
    block = min(w.group, 32) * 2
    arguments = [
        *w.parts,
        encode(x, t),
        blank((parts, m, n), t),
        i32(size),
        i32(n),
        i32(1),
        i32(parts, m, size),
        i64(size, k, 1),
        i32(1),
        i32(parts, size, columns[0]),
        *(i64(size * width, width, 1) for width in columns),
        i32(k - (parts - 1) * size),
    ]
    out = len(w.parts) + 1
    got = run_kernel(
        "quantized",
        "qvm_split_k",
        w,
        t,
        arguments,
        out,
        (parts,),
        (m, n // block, parts),
        (32, 2),
    )
    exact = np.stack([x[:, i : i + size] @ w.values[i : i + size] for i in range(0, k, size)])
    assert_close(got, exact, t, terms=size)


@pytest.mark.parametrize(
    ("name", "mode", "t"),
    [
        *(("qmm_t", mode, "float32") for mode in MODES),
        *(("qmm_n", mode, "float16") for mode in FEW),
        ("qmm_t", "affine4", "bfloat16"),
        ("qmm_t_nax", "affine4", "float16"),
        ("qmm_t_nax", "affine3", "bfloat16"),
        ("qmm_t_nax", "mxfp4", "float16"),
        ("qmm_t_nax", "nvfp4", "bfloat16"),
        ("qmm_t_nax", "mxfp8", "float32"),
        ("qmm_n_nax", "affine4", "float16"),
        ("qmm_n_nax", "affine3", "float32"),
    ],
)
def test_matrix_times_matrix(name: str, mode: str, t: str) -> None:
    """Neither rows nor columns fill their tiles."""
    times_matrix(name, mode, t, 64)


def times_matrix(name: str, mode: str, t: str, more: int) -> None:
    transposed = "_t" in name
    m, n, k = (45, 50, 128) if transposed else (45, 128, 70)
    tile = 64 if "nax" in name else 32
    if name == "qmm_n_nax":
        # MLX has this kernel and never launches it: right for one tile and as many columns as terms.
        m = n = k = 64
    w = quantized((n, k) if transposed else (k, n), mode, t)
    x = numbers((m, k), t, 1)
    arguments = [*w.rows(more if transposed else 0), encode(x, t), blank((m, n), t)]
    arguments += [i32(k), i32(n), i32(m), *batch_of(x, w)]
    shape = (64, 64, 64, 2, 2) if "nax" in name else ()
    got = run_kernel(
        "quantized_nax" if "nax" in name else "quantized",
        name,
        w,
        t,
        arguments,
        len(w.parts) + 1,
        ((False, 0) if transposed else (0,)) + (shape if w.kind == "affine" else ()),
        (-(-n // tile), -(-m // tile)),
        (32, 2, 2),
    )
    assert_close(got, x @ (w.values.T if transposed else w.values), t, terms=k)


DEFECT = (
    r"a load of \d bytes at byte (\d+) of 'scales' \(buffer 1\), element \d+, which has \1 bytes"
)


def test_defect_scales_are_read_below_the_last_row() -> None:
    """QuantizedBlockLoader and qmv_quad_impl read the scale of a row before they ask whether there is one."""
    for name, mode in (("qmm_t", "affine4"), ("qmm_t", "mxfp8"), ("qmm_t_nax", "affine4")):
        with checked("bounds"), pytest.raises(metal_api.LaunchError, match=DEFECT):
            times_matrix(name, mode, "float32", 0)
    with checked("bounds"), pytest.raises(metal_api.LaunchError, match=DEFECT):
        times_vector("qmv_quad", "affine4", 0)


@pytest.mark.parametrize("mode", ["affine3", "affine5", "affine6"])
def test_defect_the_vector_of_a_thread_is_read_behind_its_end(mode: str) -> None:
    """For widths that MLX does not call it with, qdot moves its pointers further in each iteration than it reads."""
    outside = r"outside (its array 'x_thread' in thread memory|of the variable 'x_thread')"
    with pytest.raises(metal_api.LaunchError, match=outside):
        times_vector("qmv_quad", mode, 64)


def test_defect_rows_are_read_below_the_last_one() -> None:
    """affine_qmm_n_nax takes no notice of the number of rows."""
    w = quantized((64, 64), "affine4", "float32")
    x = numbers((45, 64), "float32", 1)
    arguments = [
        *w.parts,
        encode(x, "float32"),
        blank((45, 64), "float32"),
        i32(64),
        i32(64),
        i32(45),
    ]
    with (
        checked("bounds"),
        pytest.raises(
            metal_api.LaunchError, match=r"of 'x' \(buffer 3\), element \d+, which has 11520 bytes"
        ),
    ):
        run_kernel(
            *(
                "quantized_nax",
                "qmm_n_nax",
                w,
                "float32",
                [*arguments, *batch_of(x, w)],
                4,
            ),
            *((0, 64, 64, 64, 2, 2), (1, 1), (32, 2, 2)),
        )


@pytest.mark.parametrize("mode", FEW)
def test_matrix_times_matrix_in_parts(mode: str) -> None:
    m, n, k, parts, t = 20, 40, 256, 2, "float32"
    w = quantized((n, k), mode, t)
    x = numbers((m, k), t, 1)
    arguments = [
        *w.rows(32),
        *(encode(x, t), blank((parts, m, n), t)),
        *(i32(k), i32(n), i32(m), i32(k // parts), i32(m * n)),
    ]
    out = len(w.parts) + 1
    got = run_kernel(
        "quantized",
        "qmm_t_splitk",
        w,
        t,
        arguments,
        out,
        (False,),
        (2, 1, parts),
        (32, 2, 2),
    )
    half = k // parts
    exact = np.stack([x[:, i : i + half] @ w.values[:, i : i + half].T for i in range(0, k, half)])
    assert_close(got, exact, t, terms=k)


#: kernel: (rows, columns, terms), template arguments, threadgroups, threads
GATHERED = {
    "gather_qmv": ((1, 21, 192), (), lambda m, n: (m, -(-n // 8)), (32, 2)),
    "gather_qmv_fast": ((1, 16, 512), (), lambda m, n: (m, n // 8), (32, 2)),
    "gather_qvm": ((1, 128, 75), (), lambda m, n: (m, n // 32), (32, 2)),
    "gather_qmm_t": ((40, 50, 128), (False,), lambda m, n: (2, 2), (32, 2, 2)),
    "gather_qmm_n": ((40, 64, 70), (), lambda m, n: (2, 2), (32, 2, 2)),
    "gather_qmm_t_nax": ((40, 50, 128), (False, 64, 64, 64, 2, 2), lambda m, n: (1, 1), (32, 2, 2)),
}


@pytest.mark.parametrize(
    ("name", "mode"), [(name, mode) for name in GATHERED for mode in ("affine4", "mxfp8")]
)
def test_gathered_products(name: str, mode: str) -> None:
    """The vectors and matrices of each product are named by indices."""
    (m, n, k), template, groups, group = GATHERED[name]
    t = "float16"
    transposed = "qmv" in name or "_t" in name
    w = quantized((3, n, k) if transposed else (3, k, n), mode, t)
    x = numbers((2, m, k), t, 1)
    left, right = np.array([1, 0, 1, 1], np.uint32), np.array([2, 0, 0, 1], np.uint32)
    sizes = [i32(k), i32(n), *([i32(m)] if "qmm" in name else [])]
    arguments = [
        *(
            *w.rows(64 if "qmm_t" in name else 0),
            encode(x, t),
            left,
            right,
            blank((4, m, n), t),
            *sizes,
        ),
        *(*batch_of(x.astype(np.float32), w), i32(1), i32(4), i64(1), i64(1)),
    ]
    if w.kind == "fp":
        template = template[:1]
    threadgroups = (*groups(m, n), 4)
    if name == "gather_qvm":
        threadgroups = (m, n // (min(w.group, 32) * 2), 4)
    family = "quantized_nax" if "nax" in name else "quantized"
    out = len(w.parts) + 3
    got = run_kernel(family, name, w, t, arguments, out, template, threadgroups, group)
    values = np.swapaxes(w.values, -1, -2) if transposed else w.values
    assert_close(got, x[left] @ values[right], t, terms=k)


@pytest.mark.parametrize("suffix", ["", "_nax"])
@pytest.mark.parametrize("mode", ["affine4", "mxfp4"])
def test_gather_of_right_operands(suffix: str, mode: str) -> None:
    tile = (64, 64, 64, 2, 2) if suffix else (16, 32, 32, 1, 2)
    m, n, k, t = 30 if suffix else 21, 72, 128, "float16"
    w = quantized((4, n, k), mode, t)
    x = numbers((m, k), t, 1)
    indices = np.sort(generator().integers(0, 4, m)).astype(np.uint32)
    arguments = [encode(x, t), *w.rows(64), indices, blank((m, n), t), i32(m), i32(n), i32(k)]
    got = run_kernel(
        f"quantized{suffix}",
        f"gather_qmm_rhs{suffix}",
        w,
        t,
        arguments,
        len(w.parts) + 2,
        (*tile, True),
        (-(-n // tile[1]), -(-m // tile[0])),
        (32, tile[4], tile[3]),
        {200: False, 201: False, 202: True},
    )
    assert_close(got, np.einsum("mk,mnk->mn", x, w.values[indices]), t, terms=k)


@pytest.mark.parametrize("mode", MODES)
def test_dequantize(mode: str) -> None:
    t = "float32"
    w = quantized((6, 256), mode, t)
    affine = w.kind == "affine"
    packed = w.parts[0].view(np.uint8)
    out = 3
    buffers = dict(enumerate([packed, *w.parts[1:]])) | {out: blank((6, 256), t)}
    pack = {3: 8, 5: 8, 6: 4}.get(w.bits, 8 // w.bits)
    (got,) = launch(
        "quantized" if affine else "fp_quantized",
        (f"{w.kind}_dequantize", "float", w.group, w.bits),
        buffers,
        [out],
        grid=(6 * 256 // pack, 1),
        group=(64,),
    )
    assert_close(got, w.values, t)


@pytest.mark.parametrize("mode", ["affine2", "affine4", "affine6", "affine8"])
def test_quantize(mode: str) -> None:
    """MLX's own numbers on the CPU, and the same bits."""
    _, group, bits = MODES[mode]
    matrix = numbers((4, 256), "float32", 9).astype(np.float32)
    packed, scales, biases = (
        np.array(a) for a in mx.quantize(mx.array(matrix), group_size=group, bits=bits)
    )
    got = launch(
        "quantized",
        ("affine_quantize", "float", group, bits),
        {
            0: matrix,
            1: np.zeros(packed.nbytes, np.uint8),
            2: np.zeros_like(scales),
            3: np.zeros_like(biases),
        },
        [1, 2, 3],
        grid=(matrix.size // (group // 32), 1),
        group=(64,),
    )
    np.testing.assert_allclose(got[1], scales, rtol=1e-6)
    np.testing.assert_allclose(got[2], biases, rtol=1e-6)
    assert (got[0] != packed.view(np.uint8).ravel()).mean() < 0.01


@pytest.mark.parametrize("mode", ["nvfp4", "mxfp8", "mxfp4"])
def test_fp_quantize(mode: str) -> None:
    _, group, bits = MODES[mode]
    matrix = numbers((4, 256), "float32", 9).astype(np.float32)
    packed, scales = (
        np.array(a) for a in mx.quantize(mx.array(matrix), group_size=group, bits=bits, mode=mode)
    )
    got = launch(
        "fp_quantized",
        ("fp_quantize", "float", group, bits),
        {0: matrix, 1: np.zeros(packed.nbytes, np.uint8), 2: np.zeros_like(scales)},
        [1, 2],
        grid=(32, matrix.size // 32),
        group=(32,),
    )
    np.testing.assert_array_equal(got[1], scales)
    exact = packed.view(np.uint8).ravel()
    if bits == 4:
        # MLX keeps the sign of a zero on GPUs only.
        signs = np.array(
            [
                0x88 & ~(0x80 * (v & 0x70 == 0) | 0x08 * (v & 0x07 == 0)) | v & 0x77
                for v in range(256)
            ]
        )
        got[0], exact = signs[got[0]], signs[exact]
    np.testing.assert_array_equal(got[0], exact)
    exact = mx.dequantize(
        mx.array(packed), mx.array(scales), group_size=group, bits=bits, mode=mode
    )
    (same,) = launch(
        "fp_quantized",
        ("fp_quantize_dequantize", "float", group, bits),
        {0: matrix, 1: np.zeros_like(matrix)},
        [1],
        grid=(32, matrix.size // 32),
        group=(32,),
    )
    np.testing.assert_array_equal(same, np.array(exact.astype(mx.float32)))
