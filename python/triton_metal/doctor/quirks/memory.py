"""Probes of defects around memory, barriers and atomics."""

from __future__ import annotations

from typing import Any

from .form import Buffer, Form, Probe, zeros


def barrier_of_one_simdgroup() -> Probe:
    """Threads exchange their values through threadgroup memory, several times."""
    body = """\
  uint lane = thread_index_in_threadgroup;{guard}
  threadgroup uint2 places[125];
  uint2 mine[5] = {};
  for (uint k = 0; k < 5u; ++k)
    mine[k] = uint2(seeds[threadgroup_position_in_grid.x * 125u + k * 25u + lane], k);
  for (uint round = 0; round < 6u; ++round) {
    for (uint k = 0; k < 5u; ++k)
      places[((k * 25u + lane) * 44u + round * 9u + 2u) % 125u] = mine[k];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    uint2 read[5] = {};
    for (uint k = 0; k < 5u; ++k)
      read[k] = places[((k * 25u + lane) * 68u + round * 31u + 11u) % 125u];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint k = 0; k < 5u; ++k)
      mine[k] = uint2(read[k].x * 5u + mine[k].y, read[k].y ^ (mine[k].x >> 3));
  }
  for (uint k = 0; k < 5u; ++k)
    out[threadgroup_position_in_grid.x * 125u + k * 25u + lane] = mine[k].x + mine[k].y;
"""
    groups = 8

    def seeds() -> Any:
        import numpy as np

        return (np.arange(125 * groups, dtype=np.uint64) * 2654435761 + 12345) & 0xFFFFFFFF

    def expected() -> dict[str, Any]:
        import numpy as np

        element = np.arange(125)
        x = seeds().reshape(groups, 125)
        y = np.broadcast_to(element // 25, x.shape).astype(np.uint64)
        for turn in range(6):
            to, source = (element * 44 + turn * 9 + 2) % 125, (element * 68 + turn * 31 + 11) % 125
            shared_x, shared_y = np.empty_like(x), np.empty_like(y)
            shared_x[:, to], shared_y[:, to] = x, y
            x, y = (
                (shared_x[:, source] * 5 + y) & 0xFFFFFFFF,
                shared_y[:, source] ^ (x >> 3),
            )
        return {"out": ((x + y) & 0xFFFFFFFF).reshape(-1)}

    return Probe(
        1,
        "a bound of 32 threads on a kernel with barriers",
        "the barrier no longer orders threadgroup memory",
        "KhronosGroup/MoltenVK#2711, tracel-ai/cubecl#1636",
        (Buffer("seeds", "uint", seeds),),
        (Buffer("out", "uint", zeros(125 * groups)),),
        expected,
        # No thread takes the guard. It was in the report, and the compiler cannot know.
        raw=Form(
            body.replace("{guard}", "\n  if (lane >= 25u)\n    return;"),
            attributes="max_total_threads_per_threadgroup(32)",
        ),
        ours=Form(body.replace("{guard}", ""), attributes="max_total_threads_per_threadgroup(64)"),
        groups=groups,
        threads=25,
    )


def one_thread_accumulates() -> Probe:
    """One thread stores, then sums in a local variable what it reads from device memory."""
    raw = """\
  out[0] = 0.0f;
  float total = 0.0f;
  for (int row = 0; row < 4; ++row)
    for (int column = 0; column < 16; ++column)
      total = total + (float(16 * row + column) + {read});
  out[0] = total;
  out[1] = 0.0f;
  for (int row = 0; row < 4; ++row)
    for (int column = 0; column < 16; ++column)
      out[1] = {sum} + (float(16 * row + column) + {read});
"""
    volatile = "*(volatile device const float *)(values + (16 * row + column))"

    def values() -> Any:
        import numpy as np

        return np.arange(64) * 0.15625 + 0.75

    return Probe(
        4,
        "one thread accumulates in a loop what it reads from device memory",
        "a wrong sum",
        "ahrefs/ocannl#782, #820",
        (Buffer("values", "float", values),),
        (Buffer("out", "float", zeros(2)),),
        lambda: {"out": [2379.0, 2379.0]},
        raw=Form(
            raw.replace("{read}", "values[16 * row + column]").replace("{sum}", "out[1]"),
            pragmas="",
        ),
        ours=Form(
            raw.replace("{read}", volatile).replace(
                "{sum}", "*(volatile device const float *)(out + 1)"
            )
        ),
        threads=1,
        cure="volatile_accumulation",
    )


def store_seen_in_the_next_iteration() -> Probe:
    """One thread reads in each iteration what it stored in the one before."""
    loop = """\
  for (uint k = 0; k < 64u; ++k) {
    half value = {memory}[0];
    {memory}[1 + k] = value;
    {memory}[0] = value + 2.0h;
  }
"""
    loop = loop.replace("2.0h", "half(2.0f)")
    coherent = "  coherent(device) device half *shared = (coherent(device) device half *)cells;\n"

    def expected() -> dict[str, Any]:
        import numpy as np

        return {"cells": np.concatenate([[128.0], np.arange(64) * 2.0])}

    return Probe(
        5,
        "one thread reads what it stored in the iteration before",
        "the next iteration does not see the store",
        "Mesa KosmicKrisp, KK_WORKAROUND_6",
        (),
        (Buffer("cells", "half", zeros(65)),),
        expected,
        raw=Form(loop.replace("{memory}", "cells"), pragmas=""),
        ours=Form(coherent + loop.replace("{memory}", "shared")),
        threads=1,
        ours_needs=("memory_orders",),
    )


def arrays_change_places() -> Probe:
    """Three arrays of a thread change places in a loop, each copied by a loop of its own."""
    raw = """\
  uint thread_offset = thread_position_in_grid.x * 16u;
  float a[16], b[16], c[16];
  for (uint k = 0; k < 16u; ++k)
    a[k] = first[thread_offset + k];
  for (uint k = 0; k < 16u; ++k)
    b[k] = first[thread_offset + k];
  for (uint k = 0; k < 16u; ++k)
    c[k] = second[thread_offset + k];
  for (uint turn = 0; turn < 2u; ++turn) {
    float fresh[16];
    for (uint k = 0; k < 16u; ++k)
      fresh[k] = a[k] * 2.0f + 3.0f;
    float from_c[16];
    for (uint k = 0; k < 16u; ++k)
      from_c[k] = c[k];
    float from_a[16];
    for (uint k = 0; k < 16u; ++k)
      from_a[k] = a[k];
    for (uint k = 0; k < 16u; ++k)
      a[k] = from_c[k];
    for (uint k = 0; k < 16u; ++k)
      b[k] = fresh[k];
    for (uint k = 0; k < 16u; ++k)
      c[k] = from_a[k];
  }
  for (uint k = 0; k < 16u; ++k)
    out[thread_offset + k] = a[k] * 100.0f + b[k] * 10.0f + c[k];
"""
    # One loop reads what changes places before it writes.
    ours = """\
  uint thread_offset = thread_position_in_grid.x * 16u;
  float a[16] = {}, b[16] = {}, c[16] = {};
  for (ushort k = 0; k < 16; ++k) {
    a[k] = first[thread_offset + k];
    b[k] = a[k];
    c[k] = second[thread_offset + k];
  }
  for (uint turn = 0; turn < 2u; ++turn) {
    #pragma unroll
    for (ushort k = 0; k < 16; ++k) {
      float fresh = a[k] * 2.0f + 3.0f;
      float a_1 = a[k];
      float c_1 = c[k];
      a[k] = c_1;
      b[k] = fresh;
      c[k] = a_1;
    }
  }
  for (ushort k = 0; k < 16; ++k)
    out[thread_offset + k] = a[k] * 100.0f + b[k] * 10.0f + c[k];
"""

    def expected() -> dict[str, Any]:
        # After two turns a is the first array again, c the second, and b is computed from what c was.
        import numpy as np

        return {"out": np.full(512, 0.0 * 100 + (1.0 * 2 + 3) * 10 + 1.0)}

    return Probe(
        6,
        "three arrays of a thread change places in a loop, by a copying loop each",
        "wrong from the second iteration on",
        "nicholasjng/palladium, msl-loop-bug.md",
        (
            Buffer("first", "float", zeros(512)),
            Buffer("second", "float", lambda: [1.0] * 512),
        ),
        (Buffer("out", "float", zeros(512)),),
        expected,
        raw=Form(raw, pragmas=""),
        ours=Form(ours),
    )


def bytes_by_chained_offsets() -> Probe:
    """Single bytes through a pointer that was moved twice, in a grid of two threadgroups."""
    raw = """\
  device const uchar *group_bytes = bytes + threadgroup_position_in_grid.x * 64u;
  device uchar *group_out = out + threadgroup_position_in_grid.x * 64u;
  for (uint k = 0; k < 2u; ++k) {
    device const uchar *from = group_bytes + k * 32u;
    device uchar *to = group_out + k * 32u;
    to[thread_index_in_threadgroup] = from[thread_index_in_threadgroup];
  }
"""
    ours = """\
  int offset = threadgroup_position_in_grid.x * 64u;
  int lane = thread_index_in_threadgroup;
  for (int k = 0; k < 2; ++k)
    out[long(offset) + long(k * 32 + lane)] = bytes[long(offset) + long(k * 32 + lane)];
"""

    def values() -> Any:
        import numpy as np

        return np.arange(128) + 1

    return Probe(
        8,
        "single bytes through chained offsets, two threadgroups",
        "the first threadgroup's access is dropped",
        "JuliaGPU/GPUCompiler.jl#862",
        (Buffer("bytes", "uchar", values),),
        (Buffer("out", "uchar", zeros(128)),),
        lambda: {"out": values()},
        raw=Form(raw, pragmas=""),
        ours=Form(ours),
        groups=2,
    )


def local_array_in_a_large_kernel() -> Probe:
    """A local array with an index that is known at run time, many times in one kernel."""
    copies = 128

    def block(number: int, read: str) -> str:
        return f"""\
  {{
    float x = state * {1 + number % 3}.0f + value, y = state + {number % 7}.0f, z = value * 2.0f;
    float parts[3] = {{x, y, z}};
    uint place = 0;
    for (uint k = 1; k < 3u; ++k)
      if (parts[k] > parts[place])
        place = k;
    float best = {read};
    state = best - floor(best / 64.0f) * 64.0f;
  }}
"""

    start = "  float value = values[thread_position_in_grid.x];\n  float state = value;\n"
    end = "  out[thread_position_in_grid.x] = state;\n"
    selects = "place == 0u ? x : place == 1u ? y : z"

    def values() -> Any:
        import numpy as np

        return np.arange(32) % 13 + 1

    def expected() -> dict[str, Any]:
        import numpy as np

        value = values().astype(np.float64)
        state = value
        for number in range(copies):
            parts = [state * (1 + number % 3) + value, state + number % 7, value * 2]
            best = np.max(parts, axis=0)
            state = best - np.floor(best / 64) * 64
        return {"out": state}

    def form(read: str, pragmas: str) -> Form:
        return Form(start + "".join(block(n, read) for n in range(copies)) + end, pragmas=pragmas)

    return Probe(
        9,
        "an index into a local array that is known at run time, in a very large kernel",
        "reads 0",
        "Genesis-Embodied-AI/quadrants#835",
        (Buffer("values", "float", values),),
        (Buffer("out", "float", zeros(32)),),
        expected,
        raw=form("parts[place]", ""),
        ours=Form(
            start
            + "".join(
                block(n, selects)
                .replace("    float parts[3] = {x, y, z};\n", "")
                .replace(
                    "    uint place = 0;\n    for (uint k = 1; k < 3u; ++k)\n"
                    "      if (parts[k] > parts[place])\n        place = k;\n",
                    "    uint place = y > x ? 1u : 0u;\n"
                    "    place = z > (place == 0u ? x : y) ? 2u : place;\n",
                )
                for n in range(copies)
            )
            + end
        ),
    )


def threadgroup_memory_as_argument() -> Probe:
    """Threadgroup memory that a function receives as an argument, with a branch and a barrier."""
    body = """\
  threadgroup uint places[64];
  {call}
"""
    function = """\
__attribute__((noinline)) void exchange(threadgroup uint *places, device const uint *values,
                                        device uint *out, uint lane) {
  if (lane < 16u)
    places[lane] = values[lane] + 1u;
  else
    places[lane] = values[lane] * 2u;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[lane] = places[31u - lane];
}
"""
    ours = """\
  threadgroup uint places[64];
  uint lane = thread_index_in_threadgroup;
  if (lane < 16u)
    places[lane] = values[lane] + 1u;
  else
    places[lane] = values[lane] * 2u;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[lane] = places[31u - lane];
"""

    def values() -> Any:
        import numpy as np

        return np.arange(32) * 3 + 5

    def expected() -> dict[str, Any]:
        import numpy as np

        x = values()
        return {"out": np.where(np.arange(32) < 16, x + 1, x * 2)[::-1]}

    return Probe(
        10,
        "threadgroup memory as an argument (of a function: no framework sets a kernel's), branch, barrier",
        "stale values, a dropped load, or a freeze",
        "gfx-rs/wgpu#4500, #3181",
        (Buffer("values", "uint", values),),
        (Buffer("out", "uint", zeros(32)),),
        expected,
        raw=Form(
            body.replace("{call}", "exchange(places, values, out, thread_index_in_threadgroup);"),
            header=function,
            pragmas="",
        ),
        ours=Form(ours),
    )


def atomics_in_bytes() -> Probe:
    """An atomic through a threadgroup pointer that is cast from bytes."""
    body = """\
  threadgroup {type} {name};
  threadgroup atomic_uint *counter = {address};
  if (thread_index_in_threadgroup == 0u)
    atomic_store_explicit(counter, 5u, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  atomic_fetch_add_explicit(counter, thread_index_in_threadgroup, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[thread_index_in_threadgroup] = atomic_load_explicit(counter, memory_order_relaxed);
"""

    def form(type: str, name: str, address: str, pragmas: str) -> Form:
        text = body.replace("{type}", type).replace("{name}", name).replace("{address}", address)
        return Form(text, pragmas=pragmas)

    ours = Form(
        body.replace("{type} {name}", "atomic_uint counters[4]").replace(
            "{address}", "counters + 1"
        )
    )
    return Probe(
        21,
        "atomics through a threadgroup pointer that is cast from bytes",
        "the compiler crashes",
        "JuliaGPU/Metal.jl#282",
        (),
        (Buffer("out", "uint", zeros(32)),),
        lambda: {"out": [5 + 31 * 16] * 32},
        raw=form(
            "uchar",
            "bytes[64]",
            "(threadgroup atomic_uint *)((threadgroup uint *)(bytes + 16) + 2)",
            "",
        ),
        ours=ours,
    )


def plain_stores_and_compare_exchange() -> Probe:
    """Plain accesses and a compare-exchange of the same word of threadgroup memory."""
    raw = """\
  threadgroup uint words[32];
  uint lane = thread_index_in_threadgroup;
  words[lane] = values[lane];
  threadgroup atomic_uint *word = (threadgroup atomic_uint *)(words + lane);
  for (uint k = 0; k < 1000u; ++k) {
    uint old = values[lane];
    if (atomic_compare_exchange_weak_explicit(word, &old, 42u + lane, memory_order_relaxed,
                                              memory_order_relaxed))
      break;
  }
  out[lane] = words[lane];
"""
    ours = """\
  threadgroup atomic_uint words[32];
  uint lane = thread_index_in_threadgroup;
  atomic_store_explicit(words + lane, values[lane], memory_order_relaxed);
  for (uint k = 0; k < 1000u; ++k) {
    uint old = values[lane];
    if (atomic_compare_exchange_weak_explicit(words + lane, &old, 42u + lane, memory_order_relaxed,
                                              memory_order_relaxed))
      break;
  }
  out[lane] = atomic_load_explicit(words + lane, memory_order_relaxed);
"""

    def expected() -> dict[str, Any]:
        import numpy as np

        return {"out": np.arange(32) + 42}

    return Probe(
        22,
        "plain stores, then compare-exchange of the same threadgroup word",
        "zeros",
        "JuliaGPU/Metal.jl#217",
        (Buffer("values", "uint", lambda: [7] * 32),),
        (Buffer("out", "uint", zeros(32)),),
        expected,
        raw=Form(raw, pragmas=""),
        ours=Form(ours),
    )


def uninitialised_local_array() -> Probe:
    """A local array without an initial value, with indices that are known at run time."""
    body = """\
  uint count = counts[thread_position_in_grid.x];
  float3 parts[8]{initial};
  for (uint k = 0; k < count; ++k)
    parts[k] = float3(float(k), float(k + 1u), float(k + 2u));
  float3 total = float3(0.0f);
  for (uint k = 0; k < count; ++k)
    total += parts[count - 1u - k];
  out[thread_position_in_grid.x] = total.x + total.y * 2.0f + total.z * 4.0f;
"""

    def counts() -> Any:
        import numpy as np

        return np.arange(32) % 9

    def expected() -> dict[str, Any]:
        n = counts()
        triangle = n * (n - 1) / 2
        return {"out": triangle + 2 * (triangle + n) + 4 * (triangle + 2 * n)}

    return Probe(
        28,
        "a local array without an initial value",
        "the compiler crashes",
        "Mesa KosmicKrisp, KK_WORKAROUND_1",
        (Buffer("counts", "uint", counts),),
        (Buffer("out", "float", zeros(32)),),
        expected,
        raw=Form(body.replace("{initial}", ""), pragmas=""),
        ours=Form(body.replace("{initial}", " = {}")),
    )
