"""Kernels with one defect each in values, barriers, arithmetic, loops and outputs, in the form of ``planted_defects``."""

from __future__ import annotations

from planted_defects import FEW, SYNC, TILE, WHOLE, Defect

INITIALIZED = [
    Defect(
        "tile without its ragged rows",
        "initialized",
        "threadgroup float s[16][8];\nuint r = t / 8, q = t % 8;\nif (r < 13)\n  s[r][q] = t;\n"
        + SYNC
        + "float x = 0;\nfor (uint j = 0; j < 16; ++j)\n  x += s[j][q]; // HERE\no[i] = x;",
        ("of threadgroup variable 's'", "at byte 416"),
    ),
    Defect(
        "case that falls out of a switch",
        "initialized",
        "float factor;\nswitch (t & 3) {\ncase 0:\n  factor = 1;\n  break;\ncase 1:\n  factor = 2;\ncase 2:\n  break;\ndefault:\n  factor = 3;\n}\no[i] = factor * 2; // HERE",
        ("'factor'", "lane 2"),
    ),
    Defect(
        "result of a loop that may not run",
        "initialized",
        "int last;\nfor (int j = int(t); j < 126; j += 60)\n  last = j;\nn[i] = last + 1; // HERE",
        ("'last'", "thread 126,0,0"),
    ),
    Defect(
        "out parameter of a helper",
        "initialized",
        "float root;\nif (!solve(float(t) - 100, root))\n  o[i] = 0;\no[i] = root; // HERE",
        ("'root'", "lane 0"),
        before="bool solve(float x, thread float &root) {\n  if (x < 0)\n    return false;\n  root = sqrt(x);\n  return true;\n}\n",
    ),
    Defect(
        "structure from a helper",
        "initialized",
        "Hit hit = find(int(t));\nn[i] = hit.count;\nif (hit.count < 200)\n  o[i] = hit.where; // HERE",
        ("lane 0",),
        before="struct Hit { int count; float where; };\nHit find(int x) {\n  Hit h;\n  h.count = x;\n  if (x > 50)\n    h.where = x;\n  return h;\n}\n",
    ),
    Defect(
        "array filled one short",
        "initialized",
        "float a[8];\nfor (int j = 0; j < 7 + z; ++j)\n  a[j] = j;\nfloat x = 0;\nfor (int j = 0; j < 8; ++j)\n  x += a[j]; // HERE\no[i] = x;",
        ("'a'",),
    ),
    Defect(
        "one element of a matrix's share",
        "initialized",
        "simdgroup_float8x8 m, r;\nm.thread_elements()[0] = float(lane);\nsimdgroup_multiply(r, m, m); // HERE\nsimdgroup_store(r, o + (t / 32 + g * 4) % 8 * 64, 8);",
        (),
    ),
    Defect(
        "fourth component",
        "initialized",
        "float4 v;\nv.xyz = float3(t);\no[i] = dot(v, float4(1)); // HERE",
        ("'v'",),
    ),
    Defect(
        "column of a private matrix",
        "initialized",
        "float2x2 m;\nm[0] = float2(t, 1);\nfloat2 x = m * float2(1, 2); // HERE\no[i] = x.x + x.y;",
        ("'m'",),
    ),
    Defect(
        "other half of a union",
        "initialized",
        "Word w;\nw.parts[0] = ushort(t);\nn[i] = int(w.all); // HERE",
        ("'w'",),
        before="union Word { uint all; ushort parts[2]; };\n",
    ),
    Defect(
        "flag of one branch",
        "initialized",
        "bool found;\nfor (int j = 0; j < 4; ++j)\n  if (n[i] == j + 1)\n    found = true;\no[i] = found ? 1.0f : 2.0f; // HERE",
        ("'found'",),
    ),
    Defect(
        "expected value of an exchange",
        "initialized",
        "uint expected;\nif (t == 200 + uint(z))\n  expected = 0;\nbool won = atomic_compare_exchange_weak_explicit(c + 1, &expected, 5u, memory_order_relaxed, memory_order_relaxed); // HERE\nn[i] = won;",
        ("'expected'",),
    ),
    Defect(
        "accumulator captured by a lambda",
        "initialized",
        "float sum;\nauto add = [&](float v) {\n  sum += v; // HERE\n};\nadd(1);\nadd(float(t));\no[i] = sum;",
        ("'sum'", "lane 0"),
    ),
    Defect(
        "partial sums of SIMD-groups that are not there",
        "initialized",
        "threadgroup float part[32];\nfloat x = simd_sum(float(t));\nif (lane == 0)\n  part[sg] = x;\n"
        + SYNC
        + "if (sg == 0) {\n  x = simd_sum(part[lane]); // HERE\n  o[g] = x;\n}",
        ("of threadgroup variable 'part'", "at byte 16", "lane 4"),
    ),
    Defect(
        "rest of an argument",
        "initialized",
        "arg[t / 2] = t / 2;\n" + SYNC + "o[i] = arg[127 - t]; // HERE",
        ("'arg' (threadgroup argument 0), element 127", "lane 0"),
    ),
    Defect(
        "member that a constructor forgets",
        "initialized",
        "Range range{int(t)};\nn[i] = range.low + range.high; // HERE",
        ("'range'",),
        before="struct Range {\n  int low, high;\n  Range(int at) thread : low(at) {\n    if (at > 3)\n      high = at + 1;\n  }\n};\n",
    ),
    Defect(
        "best index without a match",
        "initialized",
        "float best = 1000;\nuint where;\nfor (uint j = 0; j < 8; ++j)\n  if (o[j] > best) {\n    best = o[j];\n    where = j;\n  }\nn[i] = int(o[where]); // HERE",
        ("'where'",),
    ),
    Defect(
        "rotated window of registers",
        "initialized",
        "float w[3];\nw[0] = 1;\nw[1] = 2;\nfloat x = 0;\nfor (int j = 0; j < 4; ++j) {\n  x += w[0] + w[2] * 0.5f; // HERE\n  w[0] = w[1];\n  w[1] = w[2];\n  w[2] = t;\n}\no[i] = x;",
        ("'w'",),
    ),
]

DIVERGENCE = [
    Defect(
        "loop as long as its thread",
        "divergence",
        "float x = 0;\nfor (uint j = 0; j < t; ++j) {\n  x += j;\n  threadgroup_barrier(mem_flags::mem_threadgroup); // HERE\n}\no[i] = x;",
        ("threadgroup barrier",),
    ),
    Defect(
        "case of a switch",
        "divergence",
        "switch (t % 3) {\ncase 0:\n  threadgroup_barrier(mem_flags::mem_none); // HERE\n  break;\ndefault:\n  break;\n}\no[i] = 1;",
        ("not all threads of the SIMD-group come to this threadgroup barrier",),
    ),
    Defect(
        "break in front of a barrier",
        "divergence",
        "float x = t;\nwhile (true) {\n  x *= 0.5f;\n  if (x < 1)\n    break;\n  threadgroup_barrier(mem_flags::mem_device); // HERE\n}\no[i] = x;",
        ("threadgroup barrier",),
    ),
    Defect(
        "barrier behind &&",
        "divergence",
        "bool ready = t < 96 && sync(); \no[i] = ready;",
        ("SIMD-groups wait at a barrier that the others do not come to",),
        before="bool sync() {\n  threadgroup_barrier(mem_flags::mem_threadgroup); // HERE\n  return true;\n}\n",
    ),
    Defect(
        "barrier in a lambda",
        "divergence",
        "auto sync = [&] {\n  threadgroup_barrier(mem_flags::mem_threadgroup); // HERE\n};\nif (o[i] == 0 && t != 17)\n  sync();\nn[i] = 1;",
        ("threadgroup barrier", "called in line"),
    ),
    Defect(
        "loops of SIMD-groups of several lengths",
        "divergence",
        "for (uint j = 0; j <= sg; ++j)\n  threadgroup_barrier(mem_flags::mem_threadgroup); // HERE\no[i] = 1;",
        ("of 4 SIMD-groups wait at a barrier that the others do not come to",),
    ),
    Defect(
        "threads outside of the problem",
        "divergence",
        "if (i >= 500)\n  return;\n"
        + TILE
        + "s[t] = t;\nthreadgroup_barrier(mem_flags::mem_threadgroup); // HERE\no[i] = s[t ^ 1];",
        ("threadgroup 3,0,0", "threadgroup barrier"),
    ),
    Defect(
        "SIMD-group barrier in a loop of lanes",
        "divergence",
        "for (uint j = lane; j < 40; j += 16)\n  simdgroup_barrier(mem_flags::mem_threadgroup); // HERE\no[i] = 1;",
        ("not all threads of the SIMD-group come to this simdgroup_barrier",),
    ),
    Defect(
        "product in a loop of lanes",
        "divergence",
        "simdgroup_float8x8 a = simdgroup_float8x8(1), r = simdgroup_float8x8(0);\nuint j = 0;\ndo {\n  simdgroup_multiply_accumulate(r, a, a, r); // HERE\n} while (++j < 1 + lane % 2);\no[i] = r.thread_elements()[0];",
        ("not all threads of the SIMD-group come to this multiplication",),
    ),
    Defect(
        "lane that has left the loop",
        "divergence",
        "float x = t;\nfor (uint j = 0; j < lane; ++j)\n  x += simd_shuffle(x, ushort(0)); // HERE\no[i] = x;",
        ("reads lane 0, which takes no part",),
    ),
    Defect(
        "neighbour outside of the problem",
        "divergence",
        "if (i < 509) {\n  float x = i;\n  x += simd_shuffle_xor(x, 2); // HERE\n  o[i] = x;\n}",
        ("takes no part", "threadgroup 3,0,0", "SIMD-group 3"),
    ),
    Defect(
        "quad that is not whole",
        "divergence",
        "if (t % 4 != 2)\n  o[i] = quad_broadcast(float(t), 2); // HERE",
        ("takes no part",),
    ),
    Defect(
        "broadcast from the other branch",
        "divergence",
        "float x = t;\nif (lane >= 16)\n  x = simd_broadcast(x, 3); // HERE\no[i] = x;",
        ("reads lane 3, which takes no part",),
    ),
    Defect(
        "two barriers that look alike",
        "divergence",
        TILE
        + "s[t] = t;\nif (sg % 2 == 0) {\n  s[t] += 1;\n  threadgroup_barrier(mem_flags::mem_threadgroup); // HERE\n} else {\n  s[t] += 2;\n  threadgroup_barrier(mem_flags::mem_threadgroup); // THERE\n}\no[i] = s[127 - t];",
        ("wait at this barrier, and SIMD-group",),
    ),
    Defect(
        "matrix load of half of the lanes",
        "divergence",
        "simdgroup_float8x8 m = simdgroup_float8x8(0);\nif (t % 32 < 16)\n  simdgroup_load(m, o, 8); // HERE\nn[i] = int(m.thread_elements()[0]);",
        ("not all threads of the SIMD-group come to this operation on a simdgroup_matrix",),
    ),
]

ARITHMETIC = [
    Defect(
        "remainder in a template",
        "arithmetic",
        "n[i] = int(wrap<ushort>(ushort(t), ushort(t / 100)));",
        ("by zero", "called in line", "thread 0,0,0"),
        before="template <typename T> T wrap(T a, T size) {\n  return a % size; // HERE\n}\n",
    ),
    Defect(
        "division in device memory",
        "arithmetic",
        "n[i] = 7;\nn[i] /= z + int(t) - 64; // HERE",
        ("by zero", "thread 64,0,0"),
    ),
    Defect(
        "remainder of a long",
        "arithmetic",
        "long a = long(i) << 40, b = long(t) - 31;\nn[i] = int(a % b); // HERE",
        ("by zero", "lane 31"),
    ),
    Defect(
        "vector by a number",
        "arithmetic",
        "int4 v = int4(i, 1, 2, 3);\nv /= int(lane) - 7; // HERE\nn[i] = v.x + v.w;",
        ("by zero", "lane 7"),
    ),
    Defect(
        "least by -1 in a vector",
        "arithmetic",
        "int2 v = int2(1, INT_MIN + z), d = int2(1, t == 3 ? -1 : 1);\nv %= d; // HERE\nn[i] = v.x + v.y;",
        ("lane 3",),
    ),
    Defect(
        "shift of a bit-mask of 32",
        "arithmetic",
        "uint mask = (1u << (lane + 1)) - 1; // HERE\nn[i] = int(mask);",
        ("shift", "lane 31"),
    ),
    Defect(
        "shift of bytes",
        "arithmetic",
        "uchar4 v = uchar4(uchar(t));\nv = v << uchar4(1, 2, 3, uchar(t)); // HERE\nn[i] = v.w;",
        ("shift", "lane 8"),
    ),
    Defect(
        "shift in place by a long",
        "arithmetic",
        "int x = int(t);\nx <<= long(t) - 2; // HERE\nn[i] = x;",
        ("shift", "lane 0"),
    ),
    Defect(
        "number for a byte",
        "arithmetic",
        "float x = float(t) * 3;\nuchar b = uchar(x); // HERE\nn[i] = b;",
        ("thread 86,0,0",),
    ),
    Defect(
        "half for a short",
        "arithmetic",
        "half h = half(t) * 600.0h;\nn[i] = short(h); // HERE",
        ("thread 55,0,0",),
    ),
    Defect(
        "infinity for an index",
        "arithmetic",
        "float x = 1.0f / float(t - 5 * (t == 5));\nn[i] = o[int(x)] > 0; // HERE",
        ("lane 0",),
    ),
    Defect(
        "tiles of no width",
        "arithmetic",
        "uint width = uint(z), rows = 512 / max(width, 1u);\nuint r = i / width; // HERE\nn[i] = int(r + rows);",
        ("by zero", "lane 0"),
    ),
    Defect(
        "vectors of floats to bytes",
        "arithmetic",
        "float4 v = float4(1, 2, 3, float(t) * -1.0f);\nuchar4 b = uchar4(v); // HERE\nn[i] = b.w;",
        ("lane 1",),
    ),
]

NANS = [
    Defect(
        "softmax of a masked row",
        "nans",
        "float x = t < 64 ? float(t) : -INFINITY;\nfloat top = simd_max(x);\nfloat e = exp(x - top); // HERE\no[i] = e / simd_sum(e);",
        ("thread 64,0,0",),
    ),
    Defect(
        "variance below zero",
        "nans",
        "float mean = 3, square = 9 - 1e-3f * float(t);\no[i] = sqrt(square - mean * mean); // HERE",
        ("lane 1",),
    ),
    Defect(
        "arc of more than one", "nans", "o[i] = acos(float(t) / 100); // HERE", ("thread 101,0,0",)
    ),
    Defect(
        "length of nothing",
        "nans",
        "float3 v = float3(float(t) - 9, 0, 0);\no[i] = normalize(v).x; // HERE",
        ("lane 9",),
    ),
    Defect(
        "halves that overflow",
        "nans",
        "half h = half(t) * 1000.0h;\nhalf d = h - h * (t > 80 ? 1.0h : 0.0h); // HERE\no[i] = d;",
        ("thread 66,0,0",),
    ),
    Defect(
        "bfloat",
        "nans",
        "bfloat b = bfloat(t) * bfloat(0.0f) / bfloat(float(t) - 2 + z); // HERE\no[i] = float(b);",
        ("lane 2",),
    ),
    Defect(
        "sum of both infinities",
        "nans",
        "float x = lane == 3 ? INFINITY : lane == 4 ? -INFINITY : 0;\no[i] = simd_sum(x); // HERE",
        ("SIMD-group 0",),
    ),
    Defect(
        "remainder by nothing",
        "nans",
        "o[i] = fmod(float(t), float(z)); // HERE",
        ("lane 0",),
    ),
    Defect(
        "product of matrices",
        "nans",
        "simdgroup_float8x8 a = simdgroup_float8x8(0), b = simdgroup_float8x8(INFINITY), r;\nsimdgroup_multiply(r, a, b); // HERE\no[i] = r.thread_elements()[0];",
        (),
    ),
    Defect(
        "vector in place",
        "nans",
        "float4 v = float4(1, 2, float(z), 3);\nv *= float4(1, 1, INFINITY, 1); // HERE\no[i] = v.z;",
        ("lane 0",),
    ),
]

STEPS = [
    Defect(
        "countdown of unsigned numbers",
        "steps",
        "float x = 0;\nfor (uint j = t; j >= 0; --j) // HERE\n  x += o[j % 512];\nn[i] = int(x);",
        (),
        options=FEW,
    ),
    Defect(
        "number too large to grow",
        "steps",
        "float x = 16777216.0f + z;\nwhile (x < 16777300.0f) // HERE\n  x += 1;\no[i] = x;",
        (),
        options=FEW,
    ),
    Defect(
        "search that stands still",
        "steps",
        "int low = 0, high = 100;\nwhile (low < high) { // HERE\n  int middle = (low + high) / 2;\n  if (middle < int(t))\n    low = middle;\n  else\n    high = middle;\n}\nn[i] = low;",
        (),
        options=FEW,
    ),
    Defect(
        "ring of links",
        "steps",
        "n[i] = int(i) / 2 * 2 + (i % 2 == 0);\nthreadgroup_barrier(mem_flags::mem_device);\nint at = int(i);\nwhile (at != 9999) // HERE\n  at = n[at];\no[i] = at;",
        (),
        options=FEW,
    ),
    Defect(
        "lock between lanes",
        "steps",
        "while (atomic_exchange_explicit(c, 1u, memory_order_relaxed) != 0) { // HERE\n}\nif (lane == 0)\n  atomic_store_explicit(c + 1, 0u, memory_order_relaxed);",
        (),
        options=FEW,
    ),
    Defect(
        "continue in front of the step",
        "steps",
        "int j = 0;\nfloat x = 0;\nwhile (j < 10) { // HERE\n  if (o[i] == 0)\n    continue;\n  x += 1;\n  ++j;\n}\nn[i] = int(x);",
        (),
        options=FEW,
    ),
]

OUTPUTS = [
    Defect(
        "ragged edge",
        "outputs",
        "if (i < 509)\n  o[i] = i;",
        ("byte 2036 of 'o' (buffer 0), element 509", "12 of its 2048 bytes"),
        options=WHOLE,
    ),
    Defect(
        "last row of a matrix",
        "outputs",
        "uint r = i / 16, q = i % 16;\nif (r < 31)\n  o[r * 16 + q] = 1;",
        ("byte 1984 of 'o' (buffer 0), element 496", "64 of its 2048 bytes"),
        options=WHOLE,
    ),
    Defect(
        "threes that leave a rest",
        "outputs",
        "for (uint j = i * 3; j + 3 <= 512; j += 1536)\n  *(device packed_float3 *)(o + j) = float3(1);",
        ("byte 2040 of 'o' (buffer 0), element 510", "8 of its 2048 bytes"),
        options=WHOLE,
    ),
    Defect(
        "lane that has nothing to say",
        "outputs",
        "if (simd_is_first() || lane > 1)\n  o[i] = t;",
        ("byte 4 of 'o' (buffer 0), element 1", "64 of its 2048 bytes"),
        options=WHOLE,
    ),
]
OF_VALUES = [*INITIALIZED, *DIVERGENCE, *ARITHMETIC, *NANS, *STEPS, *OUTPUTS]
