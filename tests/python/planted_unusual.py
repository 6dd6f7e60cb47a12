"""Kernels with one defect each, of shapes that programs in the wild have: unions, references, templates, lambdas, aliases,
scratch memory used twice, flags, locks and tables. The form is that of ``planted_defects``.
"""

from __future__ import annotations

from planted_defects import DEVICE, GROUPS, SIMD, SYNC, TG, TILE, TILE_BYTES, Defect
from planted_unusual_values import OF_VALUES

SIMD_SYNC = "simdgroup_barrier(mem_flags::mem_threadgroup);\n"
OF_O = "of 'o' (buffer 0)"
OF_N = "of 'n' (buffer 1)"
OF_C = "of 'c' (buffer 2)"

RACES = [
    Defect(
        "bytes of a union",
        "races",
        "threadgroup Word s[128];\ns[t].bytes[3] = uchar(t); // THERE\no[i] = s[t ^ 64].number; // HERE",
        ("of threadgroup variable 's'", TG, "a load of 4 bytes", "a store of 1 bytes"),
        before="union Word { float number; uint bits; uchar bytes[4]; };\n",
    ),
    Defect(
        "bit-fields of one word",
        "races",
        "threadgroup Bits s[64];\nif (t < 64) {\n  s[t].low = 0;\n  s[t].high = 0;\n}\n"
        + SYNC
        + "if (t < 64)\n  s[t].low = t; // THERE\nelse\n  s[t - 64].high = t; // HERE\n"
        + SYNC
        + "n[i] = int(s[t % 64].low);",
        ("of threadgroup variable 's'", TG),
        before="struct Bits { uint low : 20; uint high : 12; };\n",
    ),
    Defect(
        "pointer that strides through a tile",
        "races",
        TILE
        + "for (threadgroup float *p = s + t / 4; p < s + 128; p += 32)\n  *p = float(t % 4); // HERE\n"
        + SYNC
        + "o[i] = s[t];",
        (TILE_BYTES, SIMD, "a store of 4 bytes"),
    ),
    Defect(
        "template that stores",
        "races",
        TILE + "put<4>(s, t, float(t));\nout(o + i, s + (t + 96) % 128);",
        (TILE_BYTES, TG, "called in line"),
        before="template <int N> void put(threadgroup float *s, uint t, float v) {\n  for (int j = 0; j < N; ++j)\n    s[(t + 32 * j) % 128] = v + j; // HERE\n}\n"
        "void out(device float *o, threadgroup const float *s) { *o = *s; }\n",
    ),
    Defect(
        "lambda that captures a tile",
        "races",
        TILE
        + "auto put = [&](uint at, float v) {\n  s[at % 128] = v; // HERE\n};\nput(t, 1);\nput(t + 1, 2);\n"
        + SYNC
        + "o[i] = s[t];",
        (TILE_BYTES,),
    ),
    Defect(
        "reference to an element",
        "races",
        TILE
        + "s[t] = 0;\n"
        + SYNC
        + "threadgroup float &mine = s[t / 2];\nmine += t; // HERE\n"
        + SYNC
        + "o[i] = s[t];",
        (TILE_BYTES, SIMD),
    ),
    Defect(
        "method of a shared structure",
        "races",
        "threadgroup Stack stack;\nif (t == 0)\n  stack.top = 0;\n"
        + SYNC
        + "stack.push(float(t));\n"
        + SYNC
        + "o[i] = stack.values[t];",
        ("of threadgroup variable 'stack'", SIMD, "called in line"),
        before="struct Stack {\n  uint top;\n  float values[128];\n  void push(float v) threadgroup {\n    values[top++ & 127] = v; // HERE\n  }\n};\n",
    ),
    Defect(
        "producer and consumers",
        "races",
        TILE
        + "if (sg == 0)\n  for (uint j = lane; j < 128; j += 32)\n    s[j] = j; // THERE\nelse\n  o[i] = s[t]; // HERE",
        (TILE_BYTES, TG),
    ),
    Defect(
        "scratch used twice",
        "races",
        "threadgroup float part[4];\nfloat x = simd_sum(float(t));\nif (lane == 0)\n  part[sg] = x;\n"
        + SYNC
        + "float all = part[0] + part[1] + part[2] + part[3]; // THERE\nx = simd_max(float(t));\nif (lane == 0)\n  part[sg] = x; // HERE\n"
        + SYNC
        + "o[i] = all + part[3];",
        ("of threadgroup variable 'part'", SIMD),
    ),
    Defect(
        "volatile tail of a tree",
        "races",
        TILE
        + "s[t] = t;\n"
        + SYNC
        + "for (uint d = 64; d > 16; d /= 2) {\n  if (t < d)\n    s[t] += s[t + d];\n"
        + SYNC
        + "}\nvolatile threadgroup float *v = s;\nif (t < 16)\n  v[t] += v[t + 16]; // THERE\nif (t < 8)\n  v[t] += v[t + 8]; // HERE\n"
        + SYNC
        + "o[i] = s[0];",
        (TILE_BYTES, SIMD),
    ),
    Defect(
        "flag that is reset too early",
        "races",
        "threadgroup uint changed;\nfor (int round = 0; round < 3; ++round) {\n  if (t == 0)\n    changed = 0; // HERE\n"
        + SYNC
        + "  if (t == 70 + uint(round))\n    changed = 1;\n"
        + SYNC
        + "  if (changed == 0) // THERE\n    break;\n}\no[i] = 1;",
        ("of threadgroup variable 'changed'", SIMD),
    ),
    Defect(
        "scan in place",
        "races",
        TILE
        + "s[t] = 1;\n"
        + SYNC
        + "for (uint d = 1; d < 128; d *= 2) {\n  if (t >= d)\n    s[t] += s[t - d]; // HERE\n"
        + SYNC
        + "}\no[i] = s[t];",
        (TILE_BYTES,),
    ),
    Defect(
        "down-sweep without a barrier",
        "races",
        TILE
        + "s[t] = 1;\n"
        + SYNC
        + "for (uint d = 32; d > 0; d /= 2) {\n  if (t < 64 / d) {\n    uint a = d * (2 * t + 1) - 1, b = d * (2 * t + 2) - 1;\n    float old = s[a];\n    s[a] = s[b]; // HERE\n    s[b] += old + float(t);\n  }\n}\n"
        + SYNC
        + "o[i] = s[t];",
        (TILE_BYTES,),
    ),
    Defect(
        "sort whose last steps are of a SIMD-group",
        "races",
        "threadgroup uint s[128];\ns[t] = (t * 37) % 128;\n"
        + SYNC
        + "for (uint k = 2; k <= 128; k *= 2)\n  for (uint j = k / 2; j > 0; j /= 2) {\n    uint other = t ^ j;\n    uint a = s[t], b = s[other]; // HERE\n    bool up = (t & k) == 0;\n    if (j >= 32)\n      threadgroup_barrier(mem_flags::mem_threadgroup);\n    else\n      simdgroup_barrier(mem_flags::mem_threadgroup);\n    s[t] = (t < other) == up ? min(a, b) : max(a, b); // THERE\n    simdgroup_barrier(mem_flags::mem_threadgroup);\n  }\nn[i] = int(s[t]);",
        ("of threadgroup variable 's'", TG),
    ),
    Defect(
        "column of a matrix",
        "races",
        "threadgroup float4x4 m[8];\nif (t < 32)\n  m[t / 4][t % 4] = float4(t);\n"
        + SYNC
        + "float4x4 whole = m[t % 8]; // THERE\nif (t >= 96)\n  m[(t - 96) / 4][t % 4] = float4(1); // HERE\n"
        + SYNC
        + "o[i] = whole[0].x + m[0][0].x;",
        ("of threadgroup variable 'm'", TG),
    ),
    Defect(
        "swizzled store",
        "races",
        "threadgroup float4 s[32];\nif (t < 32)\n  s[t] = float4(0);\n"
        + SYNC
        + "if (t < 32)\n  s[t].xz = float2(1, 2); // THERE\nelse if (t < 64)\n  s[t - 32].zy = float2(3, 4); // HERE\n"
        + SYNC
        + "o[i] = s[t % 32].y;",
        ("of threadgroup variable 's'", TG),
    ),
    Defect(
        "plain read of a counter",
        "races",
        "atomic_fetch_add_explicit(c + 5, 1u, memory_order_relaxed); // THERE\nn[i] = int(*(device uint *)(c + 5)); // HERE",
        (OF_C, "a load of 4 bytes at byte 20"),
    ),
    Defect(
        "half of a 64-bit atomic",
        "races",
        "if (t == 5)\n  atomic_max_explicit((device atomic_ulong *)c + 2, ulong(g) << 40, memory_order_relaxed); // THERE\nif (t == 77)\n  n[i] = int(((device uint *)c)[5]); // HERE",
        (OF_C, DEVICE, "byte 20"),
    ),
    Defect(
        "zero of a histogram",
        "races",
        "threadgroup atomic_uint h[16];\nif (t < 16)\n  atomic_store_explicit(h + t, 0u, memory_order_relaxed);\nfor (uint j = t; j < 16; j += 128)\n  ((threadgroup uint *)h)[j] = 0; // THERE\natomic_fetch_add_explicit(h + t % 16, 1u, memory_order_relaxed); // HERE\n"
        + SYNC
        + "if (t < 16)\n  n[t + g * 16] = int(atomic_load_explicit(h + t, memory_order_relaxed));",
        ("of threadgroup variable 'h'",),
    ),
    Defect(
        "bits of one byte",
        "races",
        "device uchar *mask = (device uchar *)n;\nmask[i / 8] |= uchar(1u << (i % 8)); // HERE",
        (OF_N, "of 1 bytes"),
    ),
    Defect(
        "lock without fences",
        "races",
        "if (t == 0) {\n  uint free = 0;\n  while (!atomic_compare_exchange_weak_explicit(c, &free, 1u, memory_order_relaxed, memory_order_relaxed))\n    free = 0;\n  o[0] += float(g); // HERE\n  atomic_store_explicit(c, 0u, memory_order_relaxed);\n}",
        (OF_O, GROUPS),
    ),
    Defect(
        "lock that a plain store opens",
        "races",
        "if (t == 0) {\n  uint free = 0;\n  while (!atomic_compare_exchange_weak_explicit(c, &free, 1u, memory_order_relaxed, memory_order_relaxed)) // THERE\n    free = 0;\n  atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);\n  o[0] += float(g);\n  atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);\n  *(device uint *)c = 0; // HERE\n}",
        (OF_C, GROUPS),
    ),
    Defect(
        "fence of one lane only",
        "races",
        "threadgroup uint last;\no[i] = t; // THERE\nif (t == 0) {\n  atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);\n  last = atomic_fetch_add_explicit(c, 1u, memory_order_relaxed);\n  atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);\n}\n"
        + SYNC
        + "if (last == 3)\n  for (uint j = t; j < 512; j += 128)\n    n[j] = int(o[j]); // HERE",
        (OF_O,),
    ),
    Defect(
        "last block with a fence of the threadgroup",
        "races",
        "threadgroup uint last;\no[i] = t; // THERE\natomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_threadgroup);\nthreadgroup_barrier(mem_flags::mem_device);\nif (t == 0)\n  last = atomic_fetch_add_explicit(c, 1u, memory_order_relaxed);\n"
        + "threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);\nif (last == 3)\n  for (uint j = t; j < 512; j += 128)\n    n[j] = int(o[j]); // HERE",
        (OF_O, GROUPS),
    ),
    Defect(
        "SIMD-groups that publish without a barrier of their own",
        "races",
        "o[i] = t; // THERE\nuint k = 0;\nif (lane == 0) {\n  atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);\n  k = atomic_fetch_add_explicit(c, 1u, memory_order_relaxed);\n  atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);\n}\nsimdgroup_barrier(mem_flags::mem_device);\nif (simd_broadcast_first(k) == 15)\n  for (uint j = lane; j < 512; j += 32)\n    n[j] = int(o[j]); // HERE",
        (OF_O,),
    ),
    Defect(
        "SIMD-groups whose barrier is of other memory",
        "races",
        "o[i] = t; // THERE\nsimdgroup_barrier(mem_flags::mem_threadgroup);\nuint k = 0;\nif (lane == 0) {\n  atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);\n  k = atomic_fetch_add_explicit(c, 1u, memory_order_relaxed);\n  atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);\n}\nsimdgroup_barrier(mem_flags::mem_device);\nif (simd_broadcast_first(k) == 15)\n  for (uint j = lane; j < 512; j += 32)\n    n[j] = int(o[j]); // HERE",
        (OF_O,),
    ),
    Defect(
        "data behind the flag",
        "races",
        "if (t == 0) {\n  if (g > 0) {\n    while (atomic_load_explicit(c + g - 1, memory_order_relaxed) == 0) {\n    }\n    o[g] = o[g - 1] + 1; // HERE\n  } else {\n    o[0] = 1;\n  }\n  atomic_store_explicit(c + g, 1u, memory_order_relaxed);\n}",
        (OF_O, GROUPS),
    ),
    Defect(
        "device memory behind a threadgroup's barrier",
        "races",
        "o[i] = t; // THERE\n" + SYNC + "n[i] = int(o[g * 128 + (t + 64) % 128]); // HERE",
        (OF_O, DEVICE),
    ),
    Defect(
        "exchange in a quad",
        "races",
        TILE + "s[t] = t; // THERE\nfloat x = quad_sum(float(t));\no[i] = s[t ^ 2] + x; // HERE",
        (TILE_BYTES, SIMD),
    ),
    Defect(
        "one path without a barrier",
        "races",
        TILE
        + "s[t] = t; // THERE\nif (z != 0)\n  threadgroup_barrier(mem_flags::mem_threadgroup);\no[i] = s[127 - t]; // HERE",
        (TILE_BYTES, TG),
    ),
    Defect(
        "copies of structures that overlap",
        "races",
        "*(device Block *)(o + g * 128 + t % 120) = Block{{float(t), 1, 2, 3, 4}}; // HERE",
        (OF_O,),
        before="struct Block { float v[5]; };\n",
    ),
    Defect(
        "two views of one argument",
        "races",
        "threadgroup uint *words = (threadgroup uint *)arg;\nthreadgroup ushort *halves = (threadgroup ushort *)(arg + 32);\nwords[t] = t; // THERE\nif (t < 64)\n  halves[t] = 1; // HERE\n"
        + SYNC
        + "n[i] = int(words[t]);",
        ("of 'arg' (threadgroup argument 0)", TG, "of 2 bytes"),
    ),
    Defect(
        "ring of stages",
        "races",
        "threadgroup float ring[3][128];\nfloat x = 0;\nring[0][t] = t;\nring[1][t] = t;\n"
        + SYNC
        + "for (int k = 0; k < 6; ++k) {\n  ring[(k + 2) % 3][t] = k; // HERE\n  x += ring[k % 3][127 - t]; // THERE\n  if (k % 2 == 1)\n    threadgroup_barrier(mem_flags::mem_threadgroup);\n}\no[i] = x;",
        ("of threadgroup variable 'ring'", TG),
    ),
    Defect(
        "switch with one case that shares",
        "races",
        TILE
        + "s[t] = 0;\n"
        + SYNC
        + "switch (t % 4) {\ncase 0:\n  s[t + 1] = t; // HERE\n  break;\ncase 1:\n  s[t] = t; // THERE\n  break;\ndefault:\n  break;\n}\n"
        + SYNC
        + "o[i] = s[t];",
        (TILE_BYTES, SIMD),
    ),
    Defect(
        "prefetch into the tile that is read",
        "races",
        "threadgroup half4 a[2][32];\nif (t < 32)\n  a[0][t] = half4(t);\n"
        + SYNC
        + "half4 sum = 0;\nfor (int k = 0; k < 4; ++k) {\n  int now = k & 1;\n  if (t < 32)\n    a[now ^ 1][t] = half4(k); // HERE\n  sum += a[now][31 - t % 32]; // THERE\n  if (k < 2)\n    threadgroup_barrier(mem_flags::mem_threadgroup);\n}\no[i] = sum.x;",
        ("of threadgroup variable 'a'", SIMD, "of 8 bytes"),
    ),
    Defect(
        "maximum by hand",
        "races",
        "threadgroup float best;\nif (t == 0)\n  best = -1;\n"
        + SYNC
        + "if (float(t) > best) // THERE\n  best = t; // HERE\n"
        + SYNC
        + "o[i] = best;",
        ("of threadgroup variable 'best'",),
    ),
    Defect(
        "matrix at an origin that overlaps",
        "races",
        "simdgroup_float8x8 m = simdgroup_float8x8(float(sg + 1));\nsimdgroup_store(m, o + g * 128, 16, ulong2(sg * 4, 0)); // HERE",
        (OF_O, DEVICE),
    ),
    Defect(
        "atomic in one place, plain in the other",
        "races",
        "threadgroup atomic_int sum;\nif (t == 0)\n  atomic_store_explicit(&sum, 0, memory_order_relaxed);\n"
        + SYNC
        + "atomic_fetch_add_explicit(&sum, int(t), memory_order_relaxed); // THERE\nif (t == 127)\n  n[g] = *(threadgroup int *)&sum; // HERE",
        ("of threadgroup variable 'sum'",),
    ),
    Defect(
        "gather of the neighbours' rows",
        "races",
        "device float2 *rows = (device float2 *)o;\nif (t < 64) {\n  uint at = g * 64 + t;\n  float2 next = rows[(at + 1) % 256]; // THERE\n  rows[at] = next.yx + float2(t); // HERE\n}",
        (OF_O, "of 8 bytes"),
    ),
]

BOUNDS = [
    Defect(
        "row and column swapped",
        "bounds",
        "threadgroup float s[8][16], other[128];\nother[t] = 1;\ns[t % 16][t / 16] = t; // HERE\n"
        + SYNC
        + "o[i] = s[t / 16][t % 16] + other[t];",
        (
            "a store of 4 bytes outside its threadgroup variable 's': at byte 512 of 512",
            "thread 8,0,0",
        ),
    ),
    Defect(
        "rim of a tile",
        "bounds",
        "threadgroup float s[10][14];\nuint r = t / 12, q = t % 12;\nif (t < 96)\n  s[r + 1][q + 1] = t;\nif (t < 14) {\n  s[0][t] = 0;\n  s[10][t] = 0; // HERE\n}\n"
        + SYNC
        + "o[i] = s[r % 9 + 1][q];",
        ("outside its threadgroup variable 's': at byte 560 of 560",),
    ),
    Defect(
        "short index that becomes negative",
        "bounds",
        TILE + "short at = short(t) - 40;\ns[at] = t; // HERE\n" + SYNC + "o[i] = s[t];",
        ("outside its threadgroup variable 's': at byte -160 of 512", "lane 0"),
    ),
    Defect(
        "last matrix of a buffer",
        "bounds",
        "device float4x4 *m = (device float4x4 *)o;\nif (i <= 32)\n  m[i][3] = float4(1); // HERE",
        ("a store of 16 bytes at byte 2096 of 'o'", "threadgroup 0,0,0", "lane 0, thread 32,0,0"),
    ),
    Defect(
        "packed halves at the end",
        "bounds",
        "device packed_half3 *p = (device packed_half3 *)(o + 509);\nif (i < 3)\n  n[i] = int(half3(p[i]).z); // HERE",
        ("of 'o' (buffer 0)", "at byte 2052", "lane 2"),
    ),
    Defect(
        "matrix from an origin",
        "bounds",
        "simdgroup_float8x8 m;\nsimdgroup_load(m, o, 32, ulong2(24, 8 * sg + 9 - 8 * (sg & 2))); // HERE\nn[i] = int(m.thread_elements()[0]);",
        ("of 'o' (buffer 0)",),
    ),
    Defect(
        "transposed matrix of a tile",
        "bounds",
        "threadgroup half s[8 * 12];\nif (t < 96)\n  s[t] = 1;\n"
        + SYNC
        + "simdgroup_half8x8 m;\nsimdgroup_load(m, s + 8, 12, ulong2(0, 0), true); // HERE\nn[i] = int(m.thread_elements()[1]);",
        ("a load of 2 bytes outside its threadgroup variable 's': at byte 192 of 192",),
    ),
    Defect(
        "tile as an argument of a helper",
        "bounds",
        "threadgroup float s[40];\nfill(s, t);\n" + SYNC + "o[i] = s[t % 40];",
        ("outside its threadgroup variable 's': at byte 160 of 160", "called in line"),
        before="void fill(threadgroup float *s, uint t) {\n  for (uint j = t; j <= 40; j += 128)\n    s[j] = j; // HERE\n}\n",
    ),
    Defect(
        "argument that is shorter than its structures",
        "bounds",
        "threadgroup Cell *cells = (threadgroup Cell *)arg;\ncells[t].weight = 1; // HERE\n"
        + SYNC
        + "o[i] = cells[t].weight;",
        ("outside its threadgroup argument 'arg': at byte 508 of 508", "thread 63,0,0"),
        before="struct Cell { float place[1]; half weight; half rest; };\n",
        options=("--threadgroup-memory=0=508",),
    ),
    Defect(
        "pointer that runs backwards",
        "bounds",
        "if (t == 3) {\n  device const float *p = o + 5;\n  float x = 0;\n  do\n    x += *p--; // HERE\n  while (p > o - 2);\n  n[i] = int(x);\n}",
        ("byte -4 of 'o' (buffer 0)", "lane 3"),
    ),
    Defect(
        "pair at an odd element",
        "bounds",
        "if (t < 64)\n  *(device packed_float2 *)(o + g * 128 + t * 2 + 1) = float2(t); // HERE",
        ("of 'o' (buffer 0)", "threadgroup 3,0,0", "thread 63,0,0"),
    ),
    Defect(
        "wide atomic at the end",
        "bounds",
        "atomic_max_explicit((device atomic_ulong *)c + t / 3, ulong(1), memory_order_relaxed); // HERE",
        ("at byte 256 of 'c' (buffer 2)", "thread 96,0,0"),
    ),
    Defect(
        "table behind a reference",
        "bounds",
        "n[i] = int(look(weights, t / 16)); // HERE",
        ("outside its constant 'weights': at byte 20 of 20", "called in line", "thread 80,0,0"),
        before="constant float weights[5] = {1, 2, 3, 4, 5};\ntemplate <int N> float look(constant float (&table)[N], uint at) {\n  return table[at]; // HERE\n}\n",
    ),
    Defect(
        "column of a private matrix",
        "bounds",
        "float3x3 m = float3x3(float(t));\no[i] = m[t / 32].y; // HERE",
        ("outside its array 'm' in thread memory: at byte 52 of 48", "thread 96,0,0"),
    ),
    Defect(
        "component of a vector of three",
        "bounds",
        "float3 v = float(t);\nv[t & 3] = 2; // HERE\no[i] = v.x;",
        ("an index outside of the vector", "lane 3"),
    ),
    Defect(
        "component of a matrix's column",
        "bounds",
        "float4x4 m = float4x4(float(t));\no[i] = m[1][t / 16]; // HERE",
        ("an index outside of the vector", "thread 64,0,0"),
    ),
    Defect(
        "component of a vector in threadgroup memory",
        "bounds",
        "threadgroup float2 s[2];\nif (t == 5)\n  s[0][t - 3] = 1; // HERE",
        ("an index outside of the vector", "thread 5,0,0"),
    ),
    Defect(
        "component of a packed vector",
        "bounds",
        "packed_half3 p = packed_half3(half(t));\no[i] = p[t % 4]; // HERE",
        ("an index outside of the vector", "lane 3"),
    ),
    Defect(
        "private array through a helper",
        "bounds",
        "int box[6] = {0};\nstore(box, int(t) % 7, 5); \nn[i] = box[t % 6];",
        (
            "outside its array 'box' in thread memory: at byte 24 of 24",
            "called in line",
            "thread 6,0,0",
        ),
        before="void store(thread int *p, int at, int v) {\n  p[at] = v; // HERE\n}\n",
    ),
    Defect(
        "element of metal::array",
        "bounds",
        "array<float, 9> a;\nfor (int j = 0; j < 9; ++j)\n  a[j] = j;\no[i] = a[t % 10]; // HERE",
        ("outside its array 'a' in thread memory: at byte 36 of 36", "thread 9,0,0"),
    ),
    Defect(
        "last member of a structure",
        "bounds",
        "device const Sample *samples = (device const Sample *)o;\nn[i] = int(samples[i].tail); // HERE",
        ("of 'o' (buffer 0)", "a load of 4 bytes", "thread 102,0,0"),
        before="struct Sample { float place[4]; float tail; };\n",
    ),
    Defect(
        "three dimensions",
        "bounds",
        "uint x = i % 8, y = i / 8 % 8, q = i / 64;\no[(q * 8 + y) * 8 + x + (x == 7 ? 1 : 0)] = 1; // HERE",
        ("byte 2048 of 'o'", "thread 127,0,0"),
    ),
    Defect(
        "halves at an odd address",
        "bounds",
        "device half2 *p = (device half2 *)((device half *)o + 1);\nif (i < 8)\n  p[i] = half2(1); // HERE",
        (
            "at byte 2 of 'o' (buffer 0), which is not aligned for its type: the address must be a multiple of 4",
        ),
    ),
    Defect(
        "untyped memory",
        "bounds",
        "device char *bytes = (device char *)(device void *)o;\n*(device int *)(bytes + 4 * i + 1028) = 1; // HERE",
        ("byte 2048 of 'o'", "thread 127,0,0"),
    ),
    Defect(
        "index of a flattened loop",
        "bounds",
        "float x = 0;\nfor (uint k = t; k < 520; k += 128)\n  x += o[k]; // HERE\nn[i] = int(x);",
        ("byte 2048 of 'o' (buffer 0), element 512", "a load of 4 bytes"),
    ),
    Defect(
        "window behind a row",
        "bounds",
        "if (t < 125) {\n  float4 w = *(device packed_float4 *)(o + g * 128 + t + (g == 3)); // HERE\n  n[i] = int(w.w);\n}",
        ("of 'o' (buffer 0)", "threadgroup 3,0,0", "thread 124,0,0"),
    ),
    Defect(
        "chain of structures",
        "bounds",
        "threadgroup Row rows[4];\nif (t >= 96 || lane < 28)\n  rows[t / 32].cells[lane].w = half(t); // HERE\n"
        + SYNC
        + "o[i] = rows[0].cells[0].w;",
        ("outside its threadgroup variable 'rows': at byte 450 of 448", "thread 124,0,0"),
        before="struct Pair { half v, w; };\nstruct Row { Pair cells[28]; };\n",
    ),
    Defect(
        "index found by a search",
        "bounds",
        "int low = 0, high = 512;\nwhile (low < high) {\n  int middle = (low + high) / 2;\n  if (n[middle] <= int(t))\n    low = middle + 1;\n  else\n    high = middle;\n}\no[i] = n[low]; // HERE",
        ("byte 2048 of 'n' (buffer 1), element 512",),
    ),
    Defect(
        "shuffle from lane 32",
        "bounds",
        "o[i] = simd_shuffle(float(t), ushort(lane + 1)); // HERE",
        ("lane 31",),
    ),
]

UNUSUAL = [*RACES, *BOUNDS, *OF_VALUES]
