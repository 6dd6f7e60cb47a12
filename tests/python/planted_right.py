"""Kernels without a defect that look like ones with: fences, atomics of all orders, barriers of all scopes, and values that
only some lanes have. No check may report any of them. The form is that of ``planted_defects``.
"""

from __future__ import annotations

from planted_defects import SYNC, TILE, Defect

ALL = "threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);\n"
DEVICE_SYNC = "threadgroup_barrier(mem_flags::mem_device);\n"
SIMD_SYNC = "simdgroup_barrier(mem_flags::mem_threadgroup);\n"


def fence(order: str = "seq_cst", scope: str = "device", memory: str = "device") -> str:
    return f"atomic_thread_fence(mem_flags::mem_{memory}, memory_order_{order}, thread_scope_{scope});\n"


def add(place: str, order: str = "relaxed") -> str:
    return f"atomic_fetch_add_explicit({place}, 1u, memory_order_{order})"


#: What all threads of a threadgroup have stored is summed by the last threadgroup to come.
LAST = "threadgroup uint last[1];\n"
READ_ALL = "if (last[0] == 3)\n  for (uint j = t; j < 512; j += 128)\n    n[j] = int(o[j]);\n"


def right(name: str, body: str, before: str = "") -> Defect:
    return Defect(name, "all", body, (), before=before)


FENCES = [
    right(
        "last block",
        LAST
        + "o[i] = t;\n"
        + fence()
        + ALL
        + f"if (t == 0) {{\n  last[0] = {add('c')};\n{fence()}}}\n"
        + ALL
        + READ_ALL,
    ),
    right(
        "last block, both sides in one thread",
        LAST
        + "o[i] = t;\n"
        + ALL
        + f"if (t == 0) {{\n{fence('release')}  last[0] = {add('c')};\n{fence('acquire')}}}\n"
        + ALL
        + READ_ALL,
    ),
    right(
        "last block, acquire and release in one",
        LAST
        + "o[i] = t;\n"
        + DEVICE_SYNC
        + f"if (t == 0) {{\n{fence('acq_rel')}  last[0] = {add('c')};\n{fence('acq_rel')}}}\n"
        + ALL
        + READ_ALL,
    ),
    right(
        "last block of one thread each",
        f"if (t == 0) {{\n  o[g] = g;\n{fence('release')}  uint k = {add('c')};\n{fence('acquire')}"
        "  if (k == 3)\n    for (int j = 0; j < 4; ++j)\n      n[j] = int(o[j]);\n}",
    ),
    right(
        "each lane counts",
        f"o[i] = t;\n{fence()}uint k = {add('c')};\n{fence()}if (k == 511)\n  for (int j = 0; j < 512; ++j)\n    n[j] = int(o[j]);",
    ),
    right(
        "partial sums",
        LAST
        + "float x = simd_sum(float(t));\nif (lane == 0) {\n  o[g * 4 + sg] = x;\n"
        + fence()
        + "}\n"
        + ALL
        + f"if (t == 0) {{\n  last[0] = {add('c')};\n{fence()}}}\n"
        + ALL
        + "if (last[0] == 3 && t < 16)\n  n[t] = int(o[t]);",
    ),
    right(
        "largest element and its fence",
        LAST
        + "if (t == 0) {\n  o[g] = float(g);\n"
        + fence("release")
        + "  last[0] = atomic_fetch_max_explicit(c, g, memory_order_relaxed);\n"
        + fence("acquire")
        + "  if (g > 0 && last[0] == g - 1)\n    n[g] = int(o[g - 1]);\n}",
    ),
    right(
        "exchange of a flag",
        "if (t == 0) {\n  o[g] = float(g);\n"
        + fence("release")
        + "  uint before = atomic_exchange_explicit(c, g + 1, memory_order_relaxed);\n"
        + fence("acquire")
        + "  if (before > 0)\n    n[g] = int(o[before - 1]);\n}",
    ),
    right(
        "compare and exchange",
        "if (t == 0) {\n  o[g] = float(g);\n"
        + fence("release")
        + "  uint before = 0;\n  while (!atomic_compare_exchange_weak_explicit(c, &before, before + (1u << g), memory_order_relaxed, memory_order_relaxed)) {\n  }\n"
        + fence("acquire")
        + "  for (uint j = 0; j < 4; ++j)\n    if (before >> j & 1)\n      n[g] += int(o[j]);\n}",
    ),
    right(
        "two steps of publishing",
        "if (t == 0) {\n  o[g] = float(g);\n"
        + fence()
        + f"  uint k = {add('c')};\n"
        + fence()
        + f"  uint m = {add('c + 1')};\n"
        + fence()
        + "  if (m == 3 && k <= 3)\n    n[0] = int(o[0] + o[1] + o[2] + o[3]);\n}",
    ),
    right(
        "flag in threadgroup memory",
        "threadgroup uint data[1];\nthreadgroup atomic_uint flag[1];\nif (t == 0)\n  atomic_store_explicit(flag, 0u, memory_order_relaxed);\n"
        + SYNC
        + "if (t == 0) {\n  data[0] = 7;\n"
        + fence("release", "threadgroup", "threadgroup")
        + "  atomic_store_explicit(flag, 1u, memory_order_relaxed);\n}\nif (t == 99 && atomic_load_explicit(flag, memory_order_relaxed) == 1) {\n"
        + fence("acquire", "threadgroup", "threadgroup")
        + "  n[g] = int(data[0]);\n}",
    ),
    right(
        "ticket of each threadgroup",
        LAST
        + f"if (t == 0)\n  last[0] = {add('c')};\n"
        + SYNC
        + "o[last[0] * 128 + t] = g;\nn[i] = int(o[last[0] * 128 + t]);",
    ),
    right(
        "fence in one threadgroup",
        "if (t == 0)\n  o[g] = 1;\n"
        + fence("seq_cst", "threadgroup")
        + DEVICE_SYNC
        + "n[i] = int(o[g]);",
    ),
]
ATOMICS = [
    right(
        "histogram in threadgroup memory",
        "threadgroup atomic_uint h[16];\nif (t < 16)\n  atomic_store_explicit(h + t, 0u, memory_order_relaxed);\n"
        + SYNC
        + "atomic_fetch_add_explicit(h + t % 16, 1u, memory_order_relaxed);\n"
        + SYNC
        + "if (t < 16)\n  atomic_fetch_add_explicit(c + t, atomic_load_explicit(h + t, memory_order_relaxed), memory_order_relaxed);",
    ),
    right(
        "plain before, atomic behind a barrier",
        "threadgroup uint a[1];\nif (t == 0)\n  a[0] = 0;\n"
        + SYNC
        + "atomic_fetch_add_explicit((threadgroup atomic_uint *)a, 1u, memory_order_relaxed);\n"
        + SYNC
        + "n[i] = int(a[0]);",
    ),
    right(
        "bits of one word",
        "atomic_fetch_or_explicit(c + 1, 1u << lane, memory_order_relaxed);\natomic_fetch_and_explicit(c + 2, ~0u, memory_order_relaxed);\natomic_fetch_xor_explicit(c + 2, 1u << lane, memory_order_relaxed);",
    ),
    right(
        "atomic loads and stores",
        "atomic_store_explicit(c + 3, 5u, memory_order_relaxed);\nn[i] = int(atomic_load_explicit(c + 3, memory_order_relaxed));",
    ),
    right(
        "slots by a counter",
        f"uint at = {add('c')};\no[at] = i;\nn[i] = int(at);",
    ),
    right(
        "slots of a threadgroup",
        "threadgroup atomic_uint a[1];\nif (t == 0)\n  atomic_store_explicit(a, 0u, memory_order_relaxed);\n"
        + TILE
        + SYNC
        + f"uint at = {add('a')};\ns[at] = t;\n"
        + SYNC
        + "o[i] = s[t];",
    ),
    right(
        "float atomics",
        "atomic_fetch_add_explicit((device atomic_float *)o + t % 8, 1.0f, memory_order_relaxed);",
    ),
]
BARRIERS = [
    right(
        "device memory in a threadgroup",
        "o[i] = t;\n" + DEVICE_SYNC + "n[i] = int(o[g * 128 + 127 - t]);",
    ),
    right(
        "SIMD-group's own tile",
        TILE + "s[t] = t;\n" + SIMD_SYNC + "o[i] = s[t ^ 1];\n" + SIMD_SYNC + "s[t ^ 3] = 1;",
    ),
    right(
        "SIMD-group's own device memory",
        "o[i] = t;\nsimdgroup_barrier(mem_flags::mem_device);\nn[i] = int(o[i ^ 5]);",
    ),
    right(
        "tree",
        TILE
        + "s[t] = t;\n"
        + SYNC
        + "for (uint d = 64; d > 0; d /= 2) {\n  if (t < d)\n    s[t] += s[t + d];\n  threadgroup_barrier(mem_flags::mem_threadgroup);\n}\no[i] = s[0];",
    ),
    right(
        "tree that ends in a SIMD-group",
        TILE
        + "s[t] = t;\n"
        + SYNC
        + "for (uint d = 64; d > 16; d /= 2) {\n  if (t < d)\n    s[t] += s[t + d];\n  threadgroup_barrier(mem_flags::mem_threadgroup);\n}\n"
        + "if (sg == 0) {\n  float x = s[lane];\n  for (ushort d = 16; d > 0; d /= 2)\n    x += simd_shuffle_down(x, d);\n  if (lane == 0)\n    o[g] = x;\n}",
    ),
    right(
        "double buffer",
        "threadgroup float s[2][128];\nfloat x = 0;\ns[0][t] = t;\nfor (int j = 0; j < 4; ++j) {\n  threadgroup_barrier(mem_flags::mem_threadgroup);\n  s[(j + 1) % 2][t] = j;\n  x += s[j % 2][127 - t];\n}\no[i] = x;",
    ),
    right(
        "matrices of each SIMD-group",
        "threadgroup half s[256];\nsimdgroup_half8x8 m = simdgroup_half8x8(half(sg)), r;\nsimdgroup_store(m, s + sg * 64, 8);\n"
        + SIMD_SYNC
        + "simdgroup_load(r, s + sg * 64, 8, ulong2(0), true);\n"
        + SYNC
        + "simdgroup_store(r, s + (3 - sg) * 64, 8);\n"
        + SYNC
        + "o[i] = s[t];",
    ),
    right(
        "transposed through a tile with a rim",
        "threadgroup float s[8][17];\nuint r = t / 16, q = t % 16;\ns[r][q] = t;\n"
        + SYNC
        + "o[i] = s[t % 8][t / 8];",
    ),
    right(
        "in place by each thread",
        "for (int j = 0; j < 3; ++j)\n  o[i] = o[i] * 2 + n[i];\nn[i] = int(o[i]);",
    ),
    right(
        "barrier in a loop that all run",
        TILE
        + "for (int j = 0; j < 3 + z; ++j) {\n  s[(t + j) % 128] = t;\n  threadgroup_barrier(mem_flags::mem_threadgroup);\n  threadgroup_barrier(mem_flags::mem_threadgroup);\n}\no[i] = s[t];",
    ),
    right(
        "one value by all threads",
        TILE + "s[0] = 5;\nif (t == 0)\n  o[g] = 3;\n" + SYNC + "n[i] = int(s[0]);",
    ),
    right(
        "members of one structure by two threads",
        "threadgroup P s[64];\nif (t % 2 == 0)\n  s[t / 2].a = t;\nelse\n  s[t / 2].b = int(t);\n"
        + SYNC
        + "o[i] = s[t / 2].a + s[t / 2].b;",
        before="struct P { float a; int b; };\n",
    ),
]
LANES = [
    right(
        "values of some lanes through shuffles",
        "float x;\nif (lane < 8)\n  x = t;\no[i] = simd_shuffle(x, ushort(lane % 8));",
    ),
    right(
        "value of the first lane",
        "uint at;\nif (lane == 0)\n  at = atomic_fetch_add_explicit(c, 32u, memory_order_relaxed);\nat = simd_broadcast_first(at);\no[at + lane] = 1;",
    ),
    right(
        "half of the first lane",
        "half h;\nif (lane == 0)\n  h = half(g);\nchar b;\nif (lane == 1)\n  b = char(sg);\nlong w;\nif (lane == 2)\n  w = long(t);\nbool q;\nif (lane == 3)\n  q = t > 9;\nh = simd_broadcast(h, 0);\no[i] = h + simd_broadcast(b, 1);\nn[i] = int(simd_broadcast(w, 2)) + simd_broadcast(q, 3);",
    ),
    right(
        "shifted out",
        "float x;\nif (lane >= 8)\n  x = t;\nfloat y = simd_shuffle_up(x, 1);\no[i] = lane > 9 ? y : 0;",
    ),
    right(
        "active lanes only",
        "if (lane < 20)\n  o[i] = simd_sum(float(t)) + simd_max(float(i));\nn[i] = int(simd_any(lane > 3));",
    ),
    right(
        "vector of which some components count",
        "float4 v;\nv.xy = float2(t, i);\nfloat2 w = v.xy;\nv.zw = w.yx;\no[i] = v.w + v.z;",
    ),
]
RIGHT = [*FENCES, *ATOMICS, *BARRIERS, *LANES]
