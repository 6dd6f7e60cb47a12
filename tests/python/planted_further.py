"""More kernels with one defect each, in the form of ``planted_defects``: structures, vectors, matrices, atomics, tiles,
scopes of barriers, and numbers at the edges of their types.
"""

from __future__ import annotations

from planted_defects import FEW, GROUPS, SIMD, SYNC, TG, TILE, TILE_BYTES, WHOLE, Defect

RACES = [
    Defect(
        "member of a neighbour",
        "races",
        "threadgroup P s[128];\ns[t].a = 1;\ns[t].b = int(t); // THERE\no[i] = s[t].a + float(s[t ^ 64].b); // HERE",
        ("of threadgroup variable 's'", TG, "at byte 516"),
        before="struct P { float a; int b; };\n",
    ),
    Defect(
        "structure copied beside a store",
        "races",
        "threadgroup P s[128];\ns[t].a = 1;\ns[t].b = 2;\n"
        + SYNC
        + "P p = s[(t + 32) % 128]; // THERE\ns[t].b = int(t); // HERE\n"
        + SYNC
        + "o[i] = p.a + p.b + s[t].b;",
        ("of threadgroup variable 's'", TG),
        before="struct P { float a; int b; };\n",
    ),
    Defect(
        "component of a vector",
        "races",
        "threadgroup float4 s[32];\ns[t / 4][t % 4] = t; // THERE\nfloat4 v = s[(t + 64) % 128 / 4]; // HERE\no[i] = v.x + v.w;",
        ("of threadgroup variable 's'", TG),
    ),
    Defect(
        "packed vector over its neighbour",
        "races",
        "*(device packed_float3 *)(o + i * 2 % 500) = float3(1, 2, float(t)); // HERE",
        ("of 'o' (buffer 0)", SIMD),
    ),
    Defect(
        "half of a word",
        "races",
        "threadgroup ushort s[128];\ns[t] = ushort(t); // THERE\nn[i] = ((threadgroup int *)s)[(t / 2 + 32) % 64]; // HERE",
        ("of threadgroup variable 's'", TG, "a load of 4 bytes"),
    ),
    Defect(
        "matrix beside a store of its elements",
        "races",
        "threadgroup half s[256];\ns[t * 2] = half(t); // THERE\nsimdgroup_half8x8 m;\nsimdgroup_load(m, s + (sg ^ 1) * 64, 8); // HERE\no[i] = float(m.thread_elements()[0]);",
        ("of threadgroup variable 's'",),
    ),
    Defect(
        "matrices that overlap by a row",
        "races",
        "simdgroup_float8x8 m = simdgroup_float8x8(float(t / 32 + 1));\nsimdgroup_store(m, o + sg * 56 + g * 0, 8); // HERE",
        ("of 'o' (buffer 0)",),
    ),
    Defect(
        "matrix in place",
        "races",
        "threadgroup float s[256];\ns[t] = t;\ns[t + 128] = t;\n"
        + SYNC
        + "simdgroup_float8x8 m;\nsimdgroup_load(m, s + (sg ^ 2) * 64, 8); // THERE\nsimdgroup_store(m, s + sg * 64, 8); // HERE\n"
        + SYNC
        + "o[i] = s[t];",
        ("of threadgroup variable 's'", TG),
    ),
    Defect(
        "wide atomic and a byte of it",
        "races",
        "atomic_fetch_or_explicit(c + 1, 1u << lane, memory_order_relaxed); // THERE\nif (i == 77)\n  ((device uchar *)c)[6] = 3; // HERE",
        ("of 'c' (buffer 2)", "a store of 1 bytes at byte 6"),
    ),
    Defect(
        "counter reset without a barrier",
        "races",
        "threadgroup atomic_uint a[1];\nif (t == 0)\n  *(threadgroup uint *)a = 0; // THERE\natomic_fetch_add_explicit(a, 1u, memory_order_relaxed); // HERE\n"
        + SYNC
        + "n[i] = int(atomic_load_explicit(a, memory_order_relaxed));",
        ("of threadgroup variable 'a'",),
    ),
    Defect(
        "tile with a rim that is one too small",
        "races",
        "threadgroup float s[16][9];\nuint r = t / 8, q = t % 8;\ns[r][q] = t; // THERE\nif (q == 0)\n  s[r][8] = 0;\nsimdgroup_barrier(mem_flags::mem_threadgroup);\no[i] = s[r][q] + s[(r + 4) % 16][q + 1]; // HERE",
        ("of threadgroup variable 's'", TG),
    ),
    Defect(
        "transposed tile",
        "races",
        "threadgroup float s[8][16];\nuint r = t / 16, q = t % 16;\ns[r][q] = t; // THERE\no[i] = s[q % 8][r + (q / 8) * 8]; // HERE",
        ("of threadgroup variable 's'",),
    ),
    Defect(
        "halo of the next threadgroup",
        "races",
        "o[i] = t; // THERE\nthreadgroup_barrier(mem_flags::mem_device);\nn[i] = int(o[min(i + 1, 511u)]); // HERE",
        ("of 'o' (buffer 0)", GROUPS),
    ),
    Defect(
        "last block without the reader's fence",
        "races",
        "threadgroup uint last[1];\no[i] = t; // THERE\natomic_thread_fence(mem_flags::mem_device, memory_order_release, thread_scope_device);\n"
        + "threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);\nif (t == 0)\n  last[0] = atomic_fetch_add_explicit(c, 1u, memory_order_relaxed);\n"
        + SYNC
        + "if (last[0] == 3)\n  n[t] = int(o[t]); // HERE",
        ("of 'o' (buffer 0)", GROUPS),
    ),
    Defect(
        "last block without the writer's fence",
        "races",
        "threadgroup uint last[1];\no[i] = t; // THERE\n"
        + "threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);\nif (t == 0) {\n  last[0] = atomic_fetch_add_explicit(c, 1u, memory_order_relaxed);\n  atomic_thread_fence(mem_flags::mem_device, memory_order_acquire, thread_scope_device);\n}\n"
        + "threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);\nif (last[0] == 3)\n  n[t] = int(o[t]); // HERE",
        ("of 'o' (buffer 0)", GROUPS),
    ),
    Defect(
        "fence of other memory",
        "races",
        "if (t == 0) {\n  o[g] = g; // THERE\n  atomic_thread_fence(mem_flags::mem_threadgroup, memory_order_seq_cst, thread_scope_device);\n  uint k = atomic_fetch_add_explicit(c, 1u, memory_order_relaxed);\n"
        + "  atomic_thread_fence(mem_flags::mem_threadgroup, memory_order_seq_cst, thread_scope_device);\n  if (k == 3)\n    for (int j = 0; j < 4; ++j)\n      n[j] = int(o[j]); // HERE\n}",
        ("of 'o' (buffer 0)", GROUPS),
    ),
    Defect(
        "relaxed fence",
        "races",
        "if (t == 0) {\n  o[g] = g; // THERE\n  atomic_thread_fence(mem_flags::mem_device, memory_order_relaxed, thread_scope_device);\n  uint k = atomic_fetch_add_explicit(c, 1u, memory_order_relaxed);\n"
        + "  atomic_thread_fence(mem_flags::mem_device, memory_order_relaxed, thread_scope_device);\n  if (k == 3)\n    for (int j = 0; j < 4; ++j)\n      n[j] = int(o[j]); // HERE\n}",
        ("of 'o' (buffer 0)", GROUPS),
    ),
    Defect(
        "fence in front of the store",
        "races",
        "if (t == 0) {\n  atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);\n  o[g] = g; // THERE\n  uint k = atomic_fetch_add_explicit(c, 1u, memory_order_relaxed);\n"
        + "  atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);\n  if (k == 3)\n    for (int j = 0; j < 4; ++j)\n      n[j] = int(o[j]); // HERE\n}",
        ("of 'o' (buffer 0)", GROUPS),
    ),
    Defect(
        "exchange through a shuffle",
        "races",
        "s[t] = t; // THERE\nfloat x = simd_shuffle_xor(float(t), 1);\no[i] = s[t ^ 1] + x; // HERE".replace(
            "s[t] = t", TILE + "s[t] = t", 1
        ),
        (TILE_BYTES, SIMD),
    ),
    Defect(
        "sum of a SIMD-group read by the others",
        "races",
        "threadgroup float s[4];\nfloat x = simd_sum(float(t));\nif (lane == 0)\n  s[sg] = x; // THERE\nsimdgroup_barrier(mem_flags::mem_threadgroup);\no[i] = s[0] + s[1] + s[2] + s[3]; // HERE",
        ("of threadgroup variable 's'", TG),
    ),
    Defect(
        "buffer of the loop before",
        "races",
        "threadgroup float s[2][128];\ns[0][t] = t;\n"
        + SYNC
        + "float x = 0;\nfor (int j = 0; j < 4; ++j) {\n  s[(j + 1) % 2][t] = j; // HERE\n  x += s[j % 2][127 - t]; // THERE\n  if (j != 2)\n    threadgroup_barrier(mem_flags::mem_threadgroup);\n}\no[i] = x;",
        ("of threadgroup variable 's'", TG),
    ),
]
BOUNDS = [
    Defect(
        "vector threadgroup element",
        "bounds",
        "threadgroup float4 s[32];\nif (t % 4 == 0)\n  s[t / 4 + (t == 124)] = float4(t); // HERE\n",
        ("outside its threadgroup variable 's': at byte 512 of 512", "thread 124,0,0"),
    ),
    Defect(
        "index that wraps",
        "bounds",
        "if (i == 9)\n  o[i - 10u] = 1; // HERE",
        ("a store of 4 bytes at byte 17179869180 of 'o' (buffer 0)", "in the grid 9,0,0"),
    ),
    Defect(
        "index of 64 bits that wraps",
        "bounds",
        "ulong at = ulong(i) + 0xfffffffffffffffful * ulong(1 - z);\nn[i] = int(o[at]); // HERE",
        ("a load of 4 bytes at byte -4 of 'o' (buffer 0)", "lane 0"),
    ),
    Defect(
        "packed vector behind",
        "bounds",
        "((device packed_float3 *)o)[i] = packed_float3(1); // HERE",
        ("a store of 4 bytes", "of 'o' (buffer 0)", "threadgroup 1,0,0"),
    ),
    Defect(
        "vector that is not aligned",
        "bounds",
        "float4 v = *(device float4 *)(o + 2 * (i % 16)); // HERE\nn[i] = int(v.x);",
        ("a load of 16 bytes", "not aligned for its type", "byte 8 of 'o'", "lane 1"),
    ),
    Defect(
        "vector of a threadgroup that is not aligned",
        "bounds",
        TILE
        + "s[t] = t;\n"
        + SYNC
        + "if (t < 100) {\n  float2 v = *(threadgroup float2 *)(s + t); // HERE\n  o[i] = v.x + v.y;\n}",
        ("a load of 8 bytes", "not aligned for its type", "lane 1"),
    ),
    Defect(
        "rows of a matrix behind",
        "bounds",
        "simdgroup_float8x8 m(1.0f);\nif (i / 32 == 2)\n  simdgroup_store(m, o + 64, 72); // HERE",
        ("of 'o' (buffer 0)",),
    ),
    Defect(
        "array in an array",
        "bounds",
        "float a[4][4];\nfor (int j = 0; j < 16; ++j)\n  a[j / 4][j % 4] = j;\no[i] = a[3][(t + z) % 5]; // HERE",
        ("outside its array 'a' in thread memory", "lane 4"),
    ),
    Defect(
        "constant index behind an array",
        "bounds",
        "float a[4] = {1, 2, 3, float(t)};\nfor (int j = 0; j < 4; ++j)\n  o[i] += a[j + 1]; // HERE",
        ("a load of 4 bytes outside of the variable 'a': at byte 16 of 16",),
    ),
    Defect(
        "store in front of an array",
        "bounds",
        "float a[4] = {1, 2, 3, float(t)};\nfor (int j = 3; j >= 0; --j)\n  a[j - 1] = a[j]; // HERE\no[i] = a[0] + a[z];",
        ("a store of 4 bytes outside of", "'a'"),
    ),
    Defect(
        "pointer that runs ahead",
        "bounds",
        "float a[32];\nfor (int j = 0; j < 32; ++j)\n  a[j] = t + j;\nthread float *p = a;\nfor (int j = 0; j < 4 + z; ++j) {\n  p += 8 * j;\n  o[i] += p[7]; // HERE\n}",
        ("outside its array 'a' in thread memory: at byte 220 of 128",),
    ),
    Defect(
        "component that is not there",
        "bounds",
        "float4 v = float4(t);\nv[t % 5 + z] = 1; // HERE\no[i] = v.x;",
        ("lane 4",),
    ),
    Defect(
        "atomic of the next threadgroup variable",
        "bounds",
        "threadgroup atomic_uint a[4];\nif (t < 4)\n  atomic_store_explicit(a + t, 0u, memory_order_relaxed);\n"
        + SYNC
        + "atomic_fetch_add_explicit(a + sg + (t == 100), 1u, memory_order_relaxed); // HERE",
        ("outside its threadgroup variable 'a': at byte 16 of 16", "thread 100,0,0"),
    ),
]
INITIALIZED = [
    Defect(
        "one element of a tile of two dimensions",
        "initialized",
        "threadgroup float s[8][17];\nuint r = t / 16, q = t % 16;\ns[r][q] = t;\n"
        + SYNC
        + "o[i] = s[r][q + (r == 5 && q == 15)]; // HERE",
        ("no thread of the threadgroup has written it", "byte 404", "thread 95,0,0"),
    ),
    Defect(
        "row of a matrix",
        "initialized",
        "threadgroup float s[64];\nif (t < 56)\n  s[t] = t;\n"
        + SYNC
        + "simdgroup_float8x8 m;\nsimdgroup_load(m, s, 8); // HERE\no[i] = m.thread_elements()[0] + m.thread_elements()[1];",
        ("of threadgroup variable 's'", "no thread of the threadgroup has written it"),
    ),
    Defect(
        "half of a private array",
        "initialized",
        "float a[16];\nfor (int j = 0; j < 8 + z; ++j)\n  a[j] = j;\nfloat x = 0;\nfor (int j = 0; j < 9 + z; ++j)\n  x += a[j]; // HERE\no[i] = x;",
        ("the variable 'a' is read before it has a value",),
    ),
    Defect(
        "bit-field beside one that is written",
        "initialized",
        "struct S {\n  uint a : 3;\n  uint b : 7;\n  int c : 22;\n};\nS s;\ns.a = i;\ns.c = -int(i);\nfloat x = s.a + s.c;\nx += s.b; // HERE\no[i] = x;",
        ("the variable 's' is read before it has a value",),
    ),
    Defect(
        "matrix without a value",
        "initialized",
        "simdgroup_float8x8 a(1.0f), b(1.0f), m;\nsimdgroup_multiply_accumulate(m, a, b, m); // HERE\no[i] = m.thread_elements()[0];",
        ("the variable 'm' is read before it has a value",),
    ),
    Defect(
        "shuffled",
        "initialized",
        "float x;\nif (lane != 5)\n  x = t;\nfloat y = simd_shuffle(x, ushort((lane + 1) % 32));\no[i] = y; // HERE",
        ("the variable 'y' is read before it has a value", "lane 4"),
    ),
    Defect(
        "summed",
        "initialized",
        "float x;\nif (lane < 20)\n  x = t;\no[i] = simd_sum(x); // HERE",
        ("the variable 'x' is read before it has a value", "lane 20"),
    ),
    Defect(
        "voted",
        "initialized",
        "bool x;\nif (lane < 20)\n  x = t > 5;\no[i] = simd_all(x) ? 1 : 2; // HERE",
        ("the variable 'x' is read before it has a value", "lane 20"),
    ),
    Defect(
        "shifted in",
        "initialized",
        "float x;\nif (lane >= 8)\n  x = t;\nfloat y = simd_shuffle_up(x, 1);\no[i] = lane > 8 ? 0 : y * 2; // HERE",
        ("the variable 'y' is read before it has a value", "lane 0"),
    ),
    Defect(
        "quad",
        "initialized",
        "int x;\nif (lane % 4 != 3)\n  x = int(t);\nn[i] = quad_broadcast(x, 3); // HERE",
        ("the variable 'x' is read before it has a value", "lane 0"),
    ),
    Defect(
        "address",
        "initialized",
        "int at;\nif (t > 0)\n  at = int(i);\no[at] = 1; // HERE",
        ("the variable 'at' is read before it has a value", "lane 0"),
    ),
    Defect(
        "switch without a default",
        "initialized",
        "float x;\nswitch (t % 3) {\ncase 0:\n  x = 1;\n  break;\ncase 1:\n  x = 2;\n  break;\n}\no[i] = x; // HERE",
        ("the variable 'x' is read before it has a value", "lane 2"),
    ),
    Defect(
        "element of an array of structures",
        "initialized",
        "P p[3];\np[0].a = 1;\np[0].b = 2;\np[1].a = 3;\np[2].a = 3;\np[2].b = 3;\no[i] = p[t % 3].a;\nn[i] = p[t % 3].b; // HERE",
        ("the variable 'p' is read before it has a value", "lane 1"),
        before="struct P { float a; int b; };\n",
    ),
]
DIVERGENCE = [
    Defect(
        "barrier in a loop of each thread's length",
        "divergence",
        "for (uint j = 0; j < 2 + t % 2; ++j) {\n  o[i] = j;\n  threadgroup_barrier(mem_flags::mem_threadgroup); // HERE\n}",
        ("not all threads of the SIMD-group come to this threadgroup barrier",),
    ),
    Defect(
        "barrier in a loop of each SIMD-group's length",
        "divergence",
        "for (uint j = 0; j < 2 + sg; ++j) {\n  o[i] = j;\n  threadgroup_barrier(mem_flags::mem_threadgroup); // HERE\n}",
        ("SIMD-groups wait at a barrier that the others do not come to",),
    ),
    Defect(
        "barrier behind a continue",
        "divergence",
        "for (uint j = 0; j < 3; ++j) {\n  if (j == 1 && lane == 3)\n    continue;\n  threadgroup_barrier(mem_flags::mem_threadgroup); // HERE\n}",
        ("not all threads of the SIMD-group come to this threadgroup barrier",),
    ),
    Defect(
        "barrier in a function",
        "divergence",
        "if (o[i] == 0 && lane > 2)\n  meet();",
        ("not all threads of the SIMD-group come to this threadgroup barrier", "called in line"),
        before="void meet() {\n  threadgroup_barrier(mem_flags::mem_threadgroup); // HERE\n}\n",
    ),
    Defect(
        "broadcast of a lane that has left",
        "divergence",
        "if (lane == 0)\n  return;\nn[i] = simd_broadcast(int(t), ushort(0)); // HERE",
        ("lane 0, which takes no part",),
    ),
    Defect(
        "one lane never comes to the barrier",
        "steps",
        "uint x = t;\nwhile (x == 37 + uint(z)) { // HERE\n  o[i] += 1;\n}\n" + SYNC + "o[i] = 1;",
        ("the kernel does not end", "SIMD-group 1"),
        options=FEW,
    ),
]
ARITHMETIC = [
    Defect(
        "component of a vector by zero",
        "arithmetic",
        "int4 v = int4(7, 8, 9, 10) / (int4(1, 1, 1, 1) - int4(0, 0, int(t) / 9, 0)); // HERE\nn[i] = v.x + v.z;",
        ("an integer division by zero", "lane 9"),
    ),
    Defect(
        "remainder of a vector by zero",
        "arithmetic",
        "uint2 v = uint2(i, 5) % uint2(3, t); // HERE\nn[i] = int(v.x + v.y);",
        ("an integer remainder by zero", "lane 0"),
    ),
    Defect(
        "remainder of the least by -1",
        "arithmetic",
        "int x = int(0x80000000u) + z;\nn[i] = x % (z - 1); // HERE",
        ("of the least number by -1",),
    ),
    Defect(
        "least long by -1",
        "arithmetic",
        "long x = long(0x8000000000000000ul) + z;\nn[i] = int(x / long(z - 1)); // HERE",
        ("an integer division of the least number by -1",),
    ),
    Defect(
        "shift of a vector",
        "arithmetic",
        "uint4 v = uint4(1) << uint4(1, 2, 3, t + 1); // HERE\nn[i] = int(v.x + v.w);",
        ("a shift by the width of its type or more", "lane 31"),
    ),
    Defect(
        "shift of a short vector",
        "arithmetic",
        "ushort2 v = ushort2(1, 2) >> ushort2(ushort(t), 1); // HERE\nn[i] = int(v.x + v.y);",
        ("a shift by the width of its type or more", "lane 16"),
    ),
    Defect(
        "shift of a vector in place",
        "arithmetic",
        "int3 v = int3(1, 2, 3);\nv <<= int(t) - 1; // HERE\nn[i] = v.x + v.y + v.z;",
        ("a shift by the width of its type or more", "lane 0"),
    ),
    Defect(
        "shift of a long",
        "arithmetic",
        "n[i] = int(1ul << (t + 30) >> 30); // HERE",
        ("a shift by the width of its type or more", "SIMD-group 1", "lane 2"),
    ),
    Defect(
        "compound division",
        "arithmetic",
        "int x = 100;\nx /= int(t % 50) - 3; // HERE\nn[i] = x;",
        ("an integer division by zero", "lane 3"),
    ),
    Defect(
        "vector to integers",
        "arithmetic",
        "int2 v = int2(float2(1, float(t) * 1e9f)); // HERE\nn[i] = v.x + v.y;",
        ("a conversion of a number that the integer type does not hold", "lane 3"),
    ),
]
NANS = [
    Defect(
        "zero times infinity",
        "nans",
        "float x = float(z) + INFINITY;\no[i] = x * float(t); // HERE",
        ("a NaN comes of operands that are none", "lane 0"),
    ),
    Defect(
        "root in a vector",
        "nans",
        "float4 v = sqrt(float4(1, 2, float(t) - 1, 4)); // HERE\no[i] = v.x + v.z;",
        ("a NaN comes of operands that are none", "lane 0"),
    ),
    Defect(
        "power of a negative number",
        "nans",
        "o[i] = pow(float(z) - 2.0f, 0.5f); // HERE",
        ("a NaN comes of operands that are none",),
    ),
    Defect(
        "product and sum",
        "nans",
        "float x = float(z) + INFINITY;\no[i] = fma(x, 1.0f, -x); // HERE",
        ("a NaN comes of operands that are none",),
    ),
    Defect(
        "remainder of infinity",
        "nans",
        "o[i] = fmod(float(z) + INFINITY, 2.0f); // HERE",
        ("a NaN comes of operands that are none",),
    ),
    Defect(
        "half",
        "nans",
        "half x = half(65504.0f) * half(z + 4);\no[i] = float(x - x); // HERE",
        ("a NaN comes of operands that are none",),
    ),
]
OUTPUTS = [
    Defect(
        "odd threadgroups",
        "outputs",
        "if (g % 2 == 0)\n  o[i] = 1;",
        ("byte 512 of 'o' (buffer 0), element 128; 1024 of its 2048 bytes have no value",),
        options=WHOLE,
    ),
    Defect(
        "half of each element",
        "outputs",
        "((device half *)o)[i * 2] = 1;",
        ("byte 2 of 'o' (buffer 0), element 0; 1024 of its 2048 bytes",),
        options=WHOLE,
    ),
]
FURTHER = [*RACES, *BOUNDS, *INITIALIZED, *DIVERGENCE, *ARITHMETIC, *NANS, *OUTPUTS]
