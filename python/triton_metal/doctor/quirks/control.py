"""Probes of defects around loops, branches, long texts and simdgroup matrices."""

from __future__ import annotations

from typing import Any

from .form import Buffer, Form, Probe, zeros


def loop_without_visible_end() -> Probe:
    """A loop whose end the compiler cannot see, with a condition that no iteration changes."""
    raw = """\
  uint i = thread_position_in_grid.x;
  uint steps = 0;
  bool leave = false;
  while (true) {
    if (flags[0] != 0u)
      leave = true;
    else
      leave = false;
    if (leave)
      break;
    steps += 1u;
  }
  uint n = numbers[i];
  for (;;) {
    if (n <= 1u)
      break;
    n = (n & 1u) == 0u ? n / 2u : n * 3u + 1u;
    steps += 1u;
  }
  out[i] = steps;
"""
    ours = """\
  uint i = thread_position_in_grid.x;
  uint steps = 0;
  uint flag = flags[0];
  for (ulong bound = 0; bound < 18446744073709551615ul && flag == 0u; ++bound)
    steps += 1u;
  uint n = numbers[i];
  while (n > 1u) {
    n = (n & 1u) == 0u ? n / 2u : n * 3u + 1u;
    steps += 1u;
  }
  out[i] = steps;
"""

    def expected() -> dict[str, Any]:
        result = []
        for i in range(32):
            n, steps = i + 1, 0
            while n > 1:
                n, steps = (n // 2 if n % 2 == 0 else 3 * n + 1), steps + 1
            result.append(steps)
        return {"out": result}

    return Probe(
        16,
        "loops without a visible end",
        "removed, or the compiler crashes",
        "gfx-rs/wgpu#6528, #6929; Mesa KosmicKrisp, KK_WORKAROUND_2",
        (
            Buffer("flags", "uint", lambda: [1] * 8),
            Buffer("numbers", "uint", lambda: [i + 1 for i in range(32)]),
        ),
        (Buffer("out", "uint", zeros(32)),),
        expected,
        raw=Form(raw, pragmas=""),
        ours=Form(ours),
    )


def long_unrolled_body() -> Probe:
    """A long body without loops, with nested vectors and wide loads."""
    count = 1200
    step = "  s = uint4(uint2(s.yz), uint2(uint(s.w), s.x * 5u + {part}));\n"

    def part(k: int) -> str:
        return f"numbers[{k % 64}u] + {k}u"

    raw = "  uint4 s = uint4(thread_position_in_grid.x, 1u, 2u, 3u);\n" + "".join(
        step.replace("{part}", part(k)) for k in range(count)
    )
    ours = (
        "  uint4 s = uint4(thread_position_in_grid.x, 1u, 2u, 3u);\n"
        f"  for (uint k = 0; k < {count}u; ++k) {{\n"
        "    uint first = s.x;\n"
        "    s.x = s.y;\n    s.y = s.z;\n    s.z = s.w;\n"
        "    s.w = first * 5u + (numbers[k % 64u] + k);\n"
        "  }\n"
    )
    end = "  out[thread_position_in_grid.x] = s.x ^ s.y ^ s.z ^ s.w;\n"

    def numbers() -> Any:
        import numpy as np

        return (np.arange(64, dtype=np.int64) * 40503) & 0xFFFF

    def expected() -> dict[str, Any]:
        import numpy as np

        values = numbers()
        x, y, z, w = (np.array(v, np.uint64) for v in (range(32), [1] * 32, [2] * 32, [3] * 32))
        for k in range(count):
            x, y, z, w = y, z, w, (x * 5 + np.uint64(values[k % 64] + k)) & np.uint64(0xFFFFFFFF)
        return {"out": x ^ y ^ z ^ w}

    return Probe(
        23,
        "a very long body without loops, with nested vectors",
        "an internal error of the compiler, a connection that is interrupted, or minutes",
        "modular/modular#6768, JuliaGPU/Metal.jl#792",
        (Buffer("numbers", "uint", numbers),),
        (Buffer("out", "uint", zeros(32)),),
        expected,
        raw=Form(raw + end, pragmas=""),
        ours=Form(ours + end),
        cure="rolled_loops",
    )


def _matrices(kind: str) -> tuple[str, str]:
    """A function that stores an array of matrices, and a kernel that calls it."""
    function = f"""\
{kind} void store_all(thread simdgroup_float8x8 (&tiles)[2][2], device float *out) {{
#pragma unroll
  for (ushort row = 0; row < 2; ++row)
#pragma unroll
    for (ushort column = 0; column < 2; ++column)
      simdgroup_store(tiles[row][column], out + (row * 2 + column) * 64, 8);
}}
"""
    body = """\
  simdgroup_float8x8 tiles[2][2];
#pragma unroll
  for (ushort row = 0; row < 2; ++row)
#pragma unroll
    for (ushort column = 0; column < 2; ++column)
      tiles[row][column] = make_filled_simdgroup_matrix<float, 8, 8>(float(row * 2 + column + 1));
  store_all(tiles, out);
"""
    return function, body


def matrices_as_arguments() -> Probe:
    """An array of simdgroup matrices that a function receives which is not inlined."""
    called, body = _matrices("__attribute__((noinline))")
    inlined, _ = _matrices("__attribute__((always_inline))")

    def expected() -> dict[str, Any]:
        import numpy as np

        return {"out": np.repeat([1.0, 2.0, 3.0, 4.0], 64)}

    return Probe(
        24,
        "an array of simdgroup matrices as an argument of a function that is not inlined",
        "every index reads element 0",
        "public thread",
        (),
        (Buffer("out", "float", zeros(256)),),
        expected,
        raw=Form(body, header=called, pragmas=""),
        ours=Form(body, header=inlined),
        needs=("simdgroup_matrix",),
    )


def rolled_loop_over_matrices() -> Probe:
    """A loop that indexes simdgroup matrices at run time."""
    body = """\
  simdgroup_float8x8 a, b, sums[4];
  simdgroup_load(a, left, 8);
  {hint}
  for (ushort k = 0; k < 4; ++k)
    sums[k] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
  for (uint turn = 0; turn < 16u; ++turn) {
    simdgroup_load(b, right, 8);
    {hint}
    for (ushort k = 0; k < 4; ++k)
      simdgroup_multiply_accumulate(sums[k], a, b, sums[k]);
  }
  {hint}
  for (ushort k = 0; k < 4; ++k)
    simdgroup_store(sums[k], out + k * 64, 8);
"""

    def left() -> Any:
        import numpy as np

        return np.arange(64) % 5 - 2

    def right() -> Any:
        import numpy as np

        return np.arange(64) % 7 - 3

    def expected() -> dict[str, Any]:
        import numpy as np

        product = left().reshape(8, 8) @ right().reshape(8, 8) * 16
        return {"out": np.tile(product.reshape(-1), 4)}

    return Probe(
        25,
        "a rolled loop that indexes simdgroup matrices",
        "the matrices are spilled: 6 times slower",
        "tile-ai/tilelang#3195",
        (Buffer("left", "float", left), Buffer("right", "float", right)),
        (Buffer("out", "float", zeros(256)),),
        expected,
        raw=Form(body.replace("{hint}", "#pragma clang loop unroll(disable)"), pragmas=""),
        ours=Form(body.replace("{hint}", "#pragma unroll")),
        needs=("simdgroup_matrix",),
    )


def matrices_in_threadgroup_memory() -> Probe:
    """Threadgroup memory of a matrix type."""
    raw = """\
  threadgroup half4x4 tiles[2];
  uint i = thread_index_in_threadgroup;
  tiles[i / 16u][(i / 4u) % 4u][i % 4u] = half(i);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  uint j = 31u - i;
  out[i] = float(tiles[j / 16u][(j / 4u) % 4u][j % 4u]);
"""
    ours = """\
  alignas(16) threadgroup half tiles[32];
  uint i = thread_index_in_threadgroup;
  tiles[i] = half(i);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = float(tiles[31u - i]);
"""
    return Probe(
        26,
        "threadgroup half4x4 a[n]",
        "does not compile: no constructor",
        "ggml-org/llama.cpp#26646",
        (),
        (Buffer("out", "float", zeros(32)),),
        lambda: {"out": [31.0 - i for i in range(32)]},
        raw=Form(raw, pragmas=""),
        ours=Form(ours),
    )


def first_lane_in_a_branch() -> Probe:
    """A branch on the first lane: the other branch must run without that lane."""
    raw = """\
  uint found;
  if (simd_is_first())
    found = 100u;
  else
    found = popcount(uint(ulong(simd_ballot(true))));
  out[thread_index_in_threadgroup] = found;
"""
    ours = """\
  uint found;
  bool is_first_lane = thread_index_in_simdgroup == 0u;
  uint others = simd_sum(is_first_lane ? 0u : 1u);
  found = is_first_lane ? 100u : others;
  out[thread_index_in_threadgroup] = found;
"""
    return Probe(
        27,
        "simd_is_first() with a ballot in the else branch",
        "the ballot has the first lane too",
        "Mesa KosmicKrisp, KK_WORKAROUND_3",
        (),
        (Buffer("out", "uint", zeros(32)),),
        lambda: {"out": [100] + [31] * 31},
        raw=Form(raw, pragmas=""),
        ours=Form(ours),
        needs=("simd_reductions",),
    )
