"""Kernels with one defect each, for the checks of the host device.

The line of the defect ends in ``// HERE``. For a race, the line of the other access ends in ``// THERE``, unless both
are the same line. ``FILL`` is where a long right text goes.
"""

from __future__ import annotations

from dataclasses import dataclass

#: 4 threadgroups of 128 threads; 512 floats, 512 integers, 64 counters, z = 0, and 128 floats of threadgroup memory.
HEAD = """#include <metal_stdlib>
using namespace metal;
"""
SIGNATURE = """kernel void k(device float *o [[buffer(0)]], device int *n [[buffer(1)]], device atomic_uint *c [[buffer(2)]],
              constant int &z [[buffer(3)]], device float *pads [[buffer(9)]], threadgroup float *arg [[threadgroup(0)]],
              uint t [[thread_index_in_threadgroup]], uint g [[threadgroup_position_in_grid]],
              uint i [[thread_position_in_grid]], uint lane [[thread_index_in_simdgroup]],
              uint sg [[simdgroup_index_in_threadgroup]]) {
"""


@dataclass(frozen=True)
class Defect:
    name: str
    check: str
    body: str
    #: What the report contains besides the lines.
    says: tuple[str, ...]
    #: Functions and constants before the kernel.
    before: str = ""
    options: tuple[str, ...] = ()

    def text(self, filler: str = "") -> str:
        body = self.body if "FILL" in self.body else "FILL\n" + self.body
        return HEAD + self.before + SIGNATURE + body.strip("\n").replace("FILL", filler) + "\n}\n"


def filler(lines: int) -> str:
    """Right code of so many lines: arithmetic, loops, threadgroup memory with its barriers."""
    out = ["threadgroup float pad_memory[128];", "float pad = float(t);"]
    number = 0
    while len(out) < lines:
        number += 1
        out += [
            f"pad = fma(pad, 0.5f, {number}.0f);",
            "pad_memory[t] = pad;",
            "threadgroup_barrier(mem_flags::mem_threadgroup);",
            f"pad += pad_memory[(t + {number % 128}) % 128];",
            "threadgroup_barrier(mem_flags::mem_threadgroup);",
            f"if (pad > {number}.5f)",
            "  pad -= 1.0f;",
        ]
    out.append("pads[i] = pad;")
    return "\n".join(out)


TILE = "threadgroup float s[128];\n"
SYNC = "threadgroup_barrier(mem_flags::mem_threadgroup);\n"
TILE_BYTES = "of threadgroup variable 's'"

BOUNDS = [
    Defect(
        "store behind",
        "bounds",
        "o[i + 1] = 1; // HERE",
        (
            "a store of 4 bytes at byte 2048 of 'o' (buffer 0), element 512",
            "threadgroup 3,0,0",
            "thread 127,0,0",
            "in the grid 511,0,0",
        ),
    ),
    Defect(
        "store in front",
        "bounds",
        "o[int(i) - 1] = 1; // HERE",
        ("byte -4 of 'o' (buffer 0), element -1", "lane 0"),
    ),
    Defect(
        "load behind",
        "bounds",
        "float x = o[i + 2]; // HERE\nn[i] = int(x);",
        ("a load of 4 bytes at byte 2048 of 'o'", "lane 30"),
    ),
    Defect(
        "vector behind",
        "bounds",
        "((device float4 *)o)[i] = float4(1); // HERE",
        ("a store of 16 bytes at byte 2048 of 'o'", "threadgroup 1,0,0"),
    ),
    Defect(
        "far away",
        "bounds",
        "if (i == 300)\n  n[i * 1000] = 1; // HERE",
        ("byte 1200000 of 'n' (buffer 1), element 300000", "in the grid 300,0,0"),
    ),
    Defect(
        "misaligned",
        "bounds",
        "if (i == 5)\n  *(device float2 *)(o + 1) = float2(1); // HERE",
        ("a store of 8 bytes", "not aligned for its type", "byte 4 of 'o'"),
    ),
    Defect(
        "threadgroup behind",
        "bounds",
        TILE + "s[t + 1] = 1; // HERE\n" + SYNC + "o[i] = s[t];",
        (
            "a store of 4 bytes outside its threadgroup variable 's': at byte 512 of 512",
            "thread 127,0,0",
        ),
    ),
    Defect(
        "into the next variable",
        "bounds",
        TILE
        + "threadgroup float u[128];\ns[t] = 1;\nu[t] = 1;\n"
        + SYNC
        + "o[i] = s[t + 64] + u[t]; // HERE",
        (
            "a load of 4 bytes outside its threadgroup variable 's': at byte 512 of 512",
            "thread 64,0,0",
        ),
    ),
    Defect(
        "argument behind",
        "bounds",
        "arg[t * 2] = 1; // HERE",
        ("outside its threadgroup argument 'arg': at byte 512 of 512", "thread 64,0,0"),
    ),
    Defect(
        "private array",
        "bounds",
        "float a[4] = {1, 2, 3, 4};\na[t % 5] = 7; // HERE\no[i] = a[z];",
        ("outside its array 'a' in thread memory", "lane 4"),
    ),
    Defect(
        "atomic behind",
        "bounds",
        "atomic_fetch_add_explicit(c + t, 1u, memory_order_relaxed); // HERE",
        ("an atomic operation of 4 bytes at byte 256 of 'c' (buffer 2)", "thread 64,0,0"),
    ),
    Defect(
        "constant table",
        "bounds",
        "n[i] = table[t % 4]; // HERE",
        ("a load of 4 bytes", "lane 3"),
        before="constant int table[3] = {1, 2, 3};\n",
    ),
    Defect(
        "matrix store",
        "bounds",
        "simdgroup_float8x8 m(1.0f);\nif (i / 32 == 0)\n  simdgroup_store(m, o + 480, 8); // HERE",
        ("of 'o' (buffer 0), element 512",),
    ),
    Defect(
        "matrix load",
        "bounds",
        TILE
        + "s[t] = t;\n"
        + SYNC
        + "simdgroup_float8x8 m;\nsimdgroup_load(m, s + 80, 8); // HERE\nsimdgroup_store(m, o + (i / 32 % 4) * 64 + g * 0, 8);",
        ("outside its threadgroup variable 's': at byte 512 of 512",),
    ),
    Defect(
        "in a function",
        "bounds",
        "put(o, i);",
        ("a store of 4 bytes at byte 2048 of 'o'", "called in line"),
        before="void put(device float *p, uint at) {\n  p[at + 1] = 1; // HERE\n}\n",
    ),
    Defect(
        "structure",
        "bounds",
        "((device P *)o)[i].b = 1; // HERE",
        ("a store of 4 bytes at byte 2052 of 'o'", "threadgroup 2,0,0"),
        before="struct P { float a; int b; };\n",
    ),
]

TG = "No threadgroup_barrier with mem_flags::mem_threadgroup is between them"
SIMD = "threads of a SIMD-group do not run in lockstep"
DEVICE = "No threadgroup_barrier with mem_flags::mem_device is between them"
GROUPS = "Nothing orders two threadgroups of a launch but atomics with fences"

THREADGROUP_RACES = [
    Defect(
        "no barrier",
        "races",
        TILE + "s[t] = t; // THERE\nFILL\no[i] = s[127 - t]; // HERE".replace("FILL\n", ""),
        (TILE_BYTES, TG),
    ),
    Defect(
        "barrier without memory",
        "races",
        TILE
        + "s[t] = t; // THERE\nthreadgroup_barrier(mem_flags::mem_none);\no[i] = s[127 - t]; // HERE",
        (TILE_BYTES, TG),
    ),
    Defect(
        "barrier of other memory",
        "races",
        TILE
        + "s[t] = t; // THERE\nthreadgroup_barrier(mem_flags::mem_device);\no[i] = s[127 - t]; // HERE",
        (TILE_BYTES, TG),
    ),
    Defect(
        "write after read",
        "races",
        TILE
        + "s[t] = t;\n"
        + SYNC
        + "float x = s[(t + 40) % 128]; // THERE\ns[t] = x; // HERE\n"
        + SYNC
        + "o[i] = s[t];",
        (TILE_BYTES, TG),
    ),
    Defect(
        "lanes in lockstep",
        "races",
        TILE + "s[t] = t; // THERE\no[i] = s[sg * 32 + (lane + 1) % 32]; // HERE",
        (TILE_BYTES, SIMD),
    ),
    Defect(
        "barrier of a SIMD-group",
        "races",
        TILE
        + "s[t] = t; // THERE\nsimdgroup_barrier(mem_flags::mem_threadgroup);\no[i] = s[(t + 32) % 128]; // HERE",
        (TILE_BYTES, TG),
    ),
    Defect(
        "flags of a SIMD-group",
        "races",
        TILE
        + "s[t] = t; // THERE\nsimdgroup_barrier(mem_flags::mem_none);\no[i] = s[t ^ 1]; // HERE",
        (TILE_BYTES, SIMD),
    ),
    Defect(
        "tree",
        "races",
        TILE
        + "s[t] = t;\n"
        + SYNC
        + "for (uint d = 64; d > 0; d /= 2)\n  if (t < d)\n    s[t] += s[t + d]; // HERE\n"
        + SYNC
        + "o[i] = s[0];",
        (TILE_BYTES,),
    ),
    Defect(
        "one place",
        "races",
        TILE + "s[0] = t; // HERE\n" + SYNC + "o[i] = s[0];",
        (TILE_BYTES, "at byte 0"),
    ),
    Defect(
        "atomic and plain",
        "races",
        "threadgroup atomic_uint a[1];\nif (t == 0)\n  atomic_store_explicit(a, 0u, memory_order_relaxed);\n"
        + SYNC
        + "atomic_fetch_add_explicit(a, 1u, memory_order_relaxed); // THERE\nn[i] = ((threadgroup int *)a)[0]; // HERE",
        ("of threadgroup variable 'a'",),
    ),
    Defect(
        "double buffer",
        "races",
        "threadgroup float s[2][128];\nfloat x = t;\nfor (int j = 0; j < 3; ++j) {\n  s[0][t] = x; // HERE\n"
        + SYNC
        + "  x = s[0][127 - t]; // THERE\n}\no[i] = x;",
        (TILE_BYTES, TG),
    ),
    Defect(
        "bytes",
        "races",
        "threadgroup uchar s[64];\ns[t / 2] = uchar(t); // HERE\n"
        + SYNC
        + "if (t < 64)\n  o[i] = s[t];",
        (TILE_BYTES, SIMD, "of 1 bytes"),
    ),
    Defect(
        "argument",
        "races",
        "arg[t] = t; // THERE\no[i] = arg[(t + 64) % 128]; // HERE",
        ("of 'arg' (threadgroup argument 0), element", TG),
    ),
    Defect(
        "matrices",
        "races",
        "threadgroup float s[256];\nsimdgroup_float8x8 m(1.0f), r;\nsimdgroup_store(m, s + sg * 64, 8); // THERE\nsimdgroup_load(r, s + (sg ^ 1) * 64, 8); // HERE\n"
        + SYNC
        + "if (g == 0)\n  simdgroup_store(r, o + sg * 64, 8);",
        (TILE_BYTES, TG),
    ),
    Defect(
        "read beside the write",
        "races",
        TILE
        + "s[t] = 0;\n"
        + SYNC
        + "if (t == 0)\n  s[5] = 9; // THERE\nif (t == 100)\n  o[g] = s[5]; // HERE",
        (TILE_BYTES, "at byte 20", "thread 100,0,0", "thread 0,0,0 of the same threadgroup"),
    ),
    Defect(
        "in a function too",
        "races",
        TILE + "s[t] = t; // THERE\no[i] = neighbour(s, t);",
        (TILE_BYTES, TG, "called in line"),
        before="float neighbour(threadgroup float *p, uint t) {\n  return p[127 - t]; // HERE\n}\n",
    ),
]

DEVICE_RACES = [
    Defect(
        "device, no barrier",
        "races",
        "o[i] = t; // THERE\nn[i] = int(o[g * 128 + 127 - t]); // HERE",
        ("of 'o' (buffer 0), element", DEVICE),
    ),
    Defect(
        "device, barrier of other memory",
        "races",
        "o[i] = t; // THERE\n" + SYNC + "n[i] = int(o[g * 128 + 127 - t]); // HERE",
        ("of 'o' (buffer 0)", DEVICE),
    ),
    Defect(
        "device, lockstep",
        "races",
        "o[i] = t; // THERE\nn[i] = int(o[i ^ 1]); // HERE",
        ("of 'o' (buffer 0)", SIMD),
    ),
    Defect(
        "sum of all threads",
        "races",
        "o[0] += 1; // HERE",
        ("byte 0 of 'o' (buffer 0), element 0", SIMD),
    ),
    Defect(
        "pairs",
        "races",
        "n[i / 2] = int(i); // HERE",
        (
            "a store of 4 bytes at byte 0 of 'n' (buffer 1), element 0 meets a store",
            "thread 0,0,0 of the same threadgroup",
        ),
    ),
    Defect(
        "two threadgroups write",
        "races",
        "o[g * 127 + t] = g; // HERE",
        ("element 127 meets a store", "threadgroup 0,0,0", GROUPS),
    ),
    Defect(
        "reads another threadgroup",
        "races",
        "o[i] = 1; // THERE\nn[i] = int(o[(i + 128) % 512]); // HERE",
        ("of 'o' (buffer 0)", GROUPS),
    ),
    Defect(
        "stencil in place",
        "races",
        "float x = i == 0 ? 0.0f : o[i - 1]; // THERE\no[i] = x + 1; // HERE",
        ("of 'o' (buffer 0)",),
    ),
    Defect("histogram", "races", "n[t % 7] += 1; // HERE", ("of 'n' (buffer 1)",)),
    Defect(
        "count and read",
        "races",
        "atomic_fetch_add_explicit(c, 1u, memory_order_relaxed); // THERE\nn[i] = ((device int *)c)[0]; // HERE",
        ("of 'c' (buffer 2)",),
    ),
    Defect(
        "flag without fences",
        "races",
        "if (t == 0) {\n  o[g] = g; // THERE\n  uint k = atomic_fetch_add_explicit(c, 1u, memory_order_relaxed);\n  if (k == 3)\n    for (int j = 0; j < 4; ++j)\n      n[j] = int(o[j]); // HERE\n}",
        ("of 'o' (buffer 0)", GROUPS),
    ),
    Defect(
        "half of a vector",
        "races",
        "((device float2 *)o)[i / 2] = float2(i, i); // HERE",
        ("a store of 8 bytes", SIMD),
    ),
    Defect(
        "transposed in place",
        "races",
        "uint r = t / 16, q = t % 16;\nif (r < 8 && q < 8)\n  o[r * 8 + q] = o[q * 8 + r] + g; // HERE",
        ("of 'o' (buffer 0)",),
    ),
]

INITIALIZED = [
    Defect(
        "hole in a tile",
        "initialized",
        TILE + "if (t != 77)\n  s[t] = t;\n" + SYNC + "o[i] = s[127 - t]; // HERE",
        (
            "a load of 4 bytes at byte 308 " + TILE_BYTES,
            "no thread of the threadgroup has written it",
            "thread 50,0,0",
        ),
    ),
    Defect(
        "empty tile",
        "initialized",
        TILE + "if (z == 1)\n  s[t] = 1;\n" + SYNC + "o[i] = s[t]; // HERE",
        ("at byte 0 " + TILE_BYTES,),
    ),
    Defect(
        "empty counter",
        "initialized",
        "threadgroup atomic_uint a[1];\nif (t == 0)\n  atomic_fetch_add_explicit(a, 1u, memory_order_relaxed); // HERE\n",
        ("of threadgroup variable 'a'", "no thread of the threadgroup has written it"),
    ),
    Defect(
        "empty argument",
        "initialized",
        "if (t < 100)\n  arg[t] = 1;\n" + SYNC + "o[i] = arg[t]; // HERE",
        ("of 'arg' (threadgroup argument 0), element 100",),
    ),
    Defect(
        "sum without a start",
        "initialized",
        "float x;\nfor (int j = 0; j < 4; ++j)\n  x += j; // HERE\no[i] = x;",
        ("the variable 'x' is read before it has a value",),
    ),
    Defect(
        "one branch",
        "initialized",
        "float x;\nif (t > 3)\n  x = 1;\no[i] = x; // HERE",
        ("the variable 'x' is read before it has a value", "lane 0"),
    ),
    Defect(
        "element of an array",
        "initialized",
        "float a[8];\nfor (int j = 0; j < 7; ++j)\n  a[j] = j;\nfloat x = 0;\nfor (int j = 0; j < 8; ++j)\n  x += a[j]; // HERE\no[i] = x;",
        ("the variable 'a' is read before it has a value",),
    ),
    Defect(
        "element found at run time",
        "initialized",
        "float a[8];\nfor (int j = z; j < 8; j += 2)\n  a[j] = j;\no[i] = a[(t + z) % 8]; // HERE",
        ("the variable 'a' is read before it has a value", "lane 1"),
    ),
    Defect(
        "member",
        "initialized",
        "P p;\np.a = 1;\nP q = p;\no[i] = q.a;\nn[i] = q.b; // HERE",
        ("the variable 'q' is read before it has a value",),
        before="struct P { float a; int b; };\n",
    ),
    Defect(
        "component",
        "initialized",
        "float4 v;\nv.x = 1;\nv.z = 2;\no[i] = v.x + v.y; // HERE",
        ("the variable 'v' is read before it has a value",),
    ),
    Defect(
        "new each time",
        "initialized",
        "float y = 0;\nfor (int j = 0; j < 3; ++j) {\n  float x;\n  if (j == z)\n    x = 1;\n  y += x; // HERE\n}\no[i] = y;",
        ("the variable 'x' is read before it has a value",),
    ),
    Defect(
        "result of a function",
        "initialized",
        "float x;\nmaybe(x, int(t));\no[i] = x; // HERE",
        ("the variable 'x' is read before it has a value", "lane 0"),
        before="void maybe(thread float &x, int t) {\n  if (t > 0)\n    x = 1;\n}\n",
    ),
]

DIVERGENCE = [
    Defect(
        "barrier of some lanes",
        "divergence",
        "if (lane < 16)\n  threadgroup_barrier(mem_flags::mem_threadgroup); // HERE",
        ("not all threads of the SIMD-group come to this threadgroup barrier",),
    ),
    Defect(
        "barrier of some SIMD-groups",
        "divergence",
        "if (sg < 2)\n  threadgroup_barrier(mem_flags::mem_threadgroup); // HERE",
        ("2 of 4 SIMD-groups wait at a barrier that the others do not come to",),
    ),
    Defect(
        "two barriers",
        "divergence",
        "if (sg < 2)\n  threadgroup_barrier(mem_flags::mem_threadgroup); // HERE\nelse\n  threadgroup_barrier(mem_flags::mem_threadgroup); // THERE",
        ("all threads must come to the same one",),
    ),
    Defect(
        "early return",
        "divergence",
        "if (t >= 100)\n  return;\nthreadgroup_barrier(mem_flags::mem_threadgroup); // HERE\no[i] = 1;",
        ("this threadgroup barrier", "SIMD-group 3"),
    ),
    Defect(
        "barrier of the SIMD-group",
        "divergence",
        "if (lane != 7)\n  simdgroup_barrier(mem_flags::mem_threadgroup); // HERE",
        ("not all threads of the SIMD-group come to this simdgroup_barrier", "lane 7"),
    ),
    Defect(
        "product of some lanes",
        "divergence",
        "simdgroup_float8x8 a(1.0f), b(2.0f), m(0.0f);\nif (lane < 20)\n  simdgroup_multiply_accumulate(m, a, b, m); // HERE\no[i] = m.thread_elements()[0];",
        ("not all threads of the SIMD-group come to this multiplication of simdgroup matrices",),
    ),
    Defect(
        "matrix of some lanes",
        "divergence",
        "simdgroup_float8x8 m(1.0f);\nif (lane < 20)\n  simdgroup_load(m, o, 8); // HERE\nn[i] = int(m.thread_elements()[0]);",
        ("operation on a simdgroup_matrix",),
    ),
    Defect(
        "value of another branch",
        "divergence",
        "int x = int(t);\nif (lane < 8)\n  x = simd_shuffle(x, 9); // HERE\nn[i] = x;",
        ("a shuffle reads lane 9, which takes no part",),
    ),
    Defect(
        "value of no lane",
        "divergence",
        "n[i] = simd_shuffle(int(t), ushort(lane + 1)); // HERE",
        ("a shuffle reads lane 32, which does not exist", "lane 31"),
    ),
]

ARITHMETIC = [
    Defect(
        "division by zero",
        "arithmetic",
        "n[i] = int(i) / z; // HERE",
        ("an integer division by zero",),
    ),
    Defect(
        "remainder by zero",
        "arithmetic",
        "n[i] = int(i % uint(int(t) - 5)); // HERE",
        ("an integer remainder by zero", "lane 5"),
    ),
    Defect(
        "least by -1",
        "arithmetic",
        "int x = int(0x80000000u) + z;\nn[i] = x / (z - 1); // HERE",
        ("an integer division of the least number by -1",),
    ),
    Defect(
        "shift to the left",
        "arithmetic",
        "n[i] = 1 << (int(t) - 64 + 80); // HERE",
        ("a shift by the width of its type or more", "lane 16"),
    ),
    Defect(
        "shift to the right",
        "arithmetic",
        "n[i] = int(0xffffffffu >> (z + 32)); // HERE",
        ("a shift by the width of its type or more",),
    ),
    Defect(
        "negative shift",
        "arithmetic",
        "n[i] = 1 << (z - 1); // HERE",
        ("a shift by the width of its type or more",),
    ),
    Defect(
        "too large",
        "arithmetic",
        "n[i] = int(float(t) * 1e9f); // HERE",
        ("a conversion of a number that the integer type does not hold", "lane 3"),
    ),
    Defect(
        "negative",
        "arithmetic",
        "n[i] = int(uint(float(z) - 1.5f)); // HERE",
        ("a conversion of a number that the integer type does not hold",),
    ),
    Defect(
        "no number",
        "arithmetic",
        "n[i] = int(NAN + float(z)); // HERE",
        ("a conversion of a number that the integer type does not hold",),
    ),
]

NANS = [
    Defect(
        "zero by zero",
        "nans",
        "o[i] = float(z) / float(z); // HERE",
        ("a NaN comes of operands that are none",),
    ),
    Defect(
        "infinity",
        "nans",
        "float x = float(z) + INFINITY;\no[i] = x - x; // HERE",
        ("a NaN comes of operands that are none",),
    ),
    Defect(
        "root",
        "nans",
        "o[i] = sqrt(float(int(t) - 1 + z)); // HERE",
        ("a NaN comes of operands that are none", "lane 0"),
    ),
    Defect(
        "logarithm",
        "nans",
        "o[i] = log(float(z) - 1.0f); // HERE",
        ("a NaN comes of operands that are none",),
    ),
]

FEW = ("--max-steps=20000",)
STEPS = [
    Defect(
        "for ever",
        "steps",
        "while (true) { // HERE\n  o[i] += 1;\n}",
        ("a SIMD-group has run 20000 iterations",),
        options=FEW,
    ),
    Defect(
        "never zero",
        "steps",
        "for (int j = 1; j != 0; j += 2) // HERE\n  n[i] += j;",
        ("the kernel does not end",),
        options=FEW,
    ),
    Defect(
        "one lane",
        "steps",
        "int x = int(t);\nwhile (x != 40) // HERE\n  x = x == 41 ? 41 : 40;\nn[i] = x;",
        ("the kernel does not end", "SIMD-group 1"),
        options=FEW,
    ),
    Defect(
        "nobody comes",
        "steps",
        "while (atomic_load_explicit(c, memory_order_relaxed) == 0) { // HERE\n}\no[i] = 1;",
        ("the kernel does not end",),
        options=FEW,
    ),
]

WHOLE = ("--whole=o",)
OUTPUTS = [
    Defect(
        "last element",
        "outputs",
        "if (i < 511)\n  o[i] = 1;",
        (
            "no thread has written byte 2044 of 'o' (buffer 0), element 511; 4 of its 2048 bytes have no value",
        ),
        options=WHOLE,
    ),
    Defect(
        "every other one",
        "outputs",
        "if (i % 2 == 0)\n  o[i] = 1;",
        ("no thread has written byte 4 of 'o' (buffer 0), element 1; 1024 of its 2048 bytes",),
        options=WHOLE,
    ),
    Defect(
        "nothing",
        "outputs",
        "n[i] = 1;",
        ("no thread has written byte 0 of 'o' (buffer 0), element 0; 2048 of its 2048 bytes",),
        options=WHOLE,
    ),
]

DEFECTS = [
    *BOUNDS,
    *THREADGROUP_RACES,
    *DEVICE_RACES,
    *INITIALIZED,
    *DIVERGENCE,
    *ARITHMETIC,
    *NANS,
    *STEPS,
    *OUTPUTS,
]
