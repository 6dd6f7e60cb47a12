"""check="portable" finds every result that depends on a value that Metal does not promise, and nothing else.

Each defect stands beside its twin: the same text without the defect, or with the value thrown away.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from portable_support import launch, line_of, reported_line

pytestmark = pytest.mark.own_check("the test chooses its check")


@dataclass(frozen=True)
class Case:
    name: str
    reason: str  # a part of the message
    defect: str  # with `// here` in the line that the message names
    twin: str
    before: str = ""
    number: int = 0
    group: int = 64


BARRIER = "threadgroup_barrier(mem_flags::mem_threadgroup);"

UNORDERED = "is read after another SIMD-group has stored it, with no threadgroup_barrier(mem_flags::mem_threadgroup)"

CASES = [
    # Threadgroup memory of which nothing writes a part, and constants that are unlikely by chance.
    Case(
        "element_that_nothing_writes",
        "threadgroup memory 'f' (declared in line",
        f"threadgroup int f[4];\nif (i == 0) f[0] = 1;\n{BARRIER}\nif (f[1] > 0) // here\n  out[i] = 5;",
        f"threadgroup int f[4];\nif (i == 0) f[0] = 1;\n{BARRIER}\nif (f[0] > 0)\n  out[i] = 5;",
    ),
    Case(
        "one_number_of_all",
        "threadgroup memory 'f' (declared in line",
        f"threadgroup int f[4];\nif (i == 0) f[0] = 1;\n{BARRIER}\nif (f[1] == 713) // here\n  out[i] = 5;",
        f"threadgroup int f[4];\nif (i == 0) f[1] = 1;\n{BARRIER}\nif (f[1] == 713)\n  out[i] = 5;",
    ),
    Case(
        "one_float_of_all",
        "variable 'v' is read before it has a value",
        "float v; // here\nif (n > 100) v = 1;\nif (v == 2.75f) out[i] = 1;",
        "float v = 0;\nif (n > 100) v = 1;\nif (v == 2.75f) out[i] = 1;",
    ),
    # Variables.
    Case(
        "accumulator",
        "variable 'sum' is read before it has a value",
        "int sum; // here\nfor (int k = 0; k < 3; ++k) sum += k;\nout[i] = sum;",
        "int sum = 0;\nfor (int k = 0; k < 3; ++k) sum += k;\nout[i] = sum;",
    ),
    Case(
        "one_path",
        "variable 'v' is read before it has a value",
        "int v; // here\nif (i < 40) v = 1;\nout[i] = v;",
        "int v;\nif (i < 40) v = 1;\nout[i] = i < 40 ? v : 0;",
    ),
    Case(
        "flag",
        "variable 'flag' is read before it has a value",
        "bool flag; // here\nif (i > 3) flag = true;\nif (flag) out[i] = 1;",
        "bool flag;\nif (i > 3) flag = true;\nif (i > 3) out[i] = flag;",
    ),
    Case(
        "later_iteration",
        "variable 'v' is read before it has a value",
        "int total = 0;\nfor (int k = 0; k < 3; ++k) {\n  int v; // here\n  if (k == 0) v = 5;\n  total += v;\n}\nout[i] = total;",
        "int total = 0, v;\nfor (int k = 0; k < 3; ++k) {\n  if (k == 0) v = 5;\n  total += v;\n}\nout[i] = total;",
    ),
    Case(
        "struct",
        "variable 'p' is read before it has a value",
        "Pair p; // here\np.a = i;\nout[i] = p.a + p.b;",
        "Pair p;\np.a = i;\nPair q = p;\nout[i] = q.a;",
        before="struct Pair { int a, b; };",
    ),
    Case(
        "component",
        "variable 'v' is read before it has a value",
        "float4 v; // here\nv.x = 1; v.y = 2; v.z = 3;\nx[i] = v.x + v.w;",
        "float4 v;\nv.x = 1; v.y = 2; v.z = 3;\nx[i] = v.x + v.z;",
    ),
    Case(
        "half",
        "variable 'h' is read before it has a value",
        "half h; // here\nif (n > 0) h = 1;\nx[i] = float(h);",
        "half h;\nif (n > 0) h = 1;\nx[i] = n > 0 ? float(h) : 2.0f;",
    ),
    Case(
        "private_array",
        "variable 'a' is read before it has a value",
        "int a[16]; // here\nfor (int k = 0; k < 15; ++k) a[k] = k;\nout[i] = a[i % 16];",
        "int a[16];\nfor (int k = 0; k < 15; ++k) a[k] = k;\nout[i] = a[i % 15];",
    ),
    Case(
        "large_private_array",
        "variable 'a' is read before it has a value",
        "int a[300]; // here\nfor (int k = 0; k < n; ++k) a[k * 3 % 300] = k;\nout[i] = a[i + 1];",
        "int a[300];\nfor (int k = 0; k < 300; ++k) a[k * 7 % 300] = k;\nout[i] = a[i + 1];",
        number=100,
    ),
    Case(
        "address",
        "variable 'at' is read before it has a value",
        "int at; // here\nif (n > 0) at = i;\nout[at] = 1;",
        "int at;\nif (n == 0) at = i;\nout[at] = 1;",
    ),
    Case(
        "out_parameter",
        "variable 'v' is read before it has a value",
        "int v; // here\nget(v, i < 50, i);\nout[i] = v;",
        "int v;\nget(v, true, i);\nout[i] = v;",
        before="void get(thread int &to, bool good, int from) { if (good) to = from; }",
    ),
    Case(
        "loop_bound",
        "variable 'm' is read before it has a value",
        "int m; // here\nif (n == 1) m = 4;\nint s = 0;\nfor (int k = 0; k < 8; ++k) if (k < m) s += k;\nout[i] = s;",
        "int m;\nif (n == 0) m = 4;\nint s = 0;\nfor (int k = 0; k < 8; ++k) if (k < m) s += k;\nout[i] = s;",
    ),
    Case(
        "outside_variable",
        "an element outside of the variable 'a' is read",
        "int a[4] = {1, 2, 3, int(i)};\nout[i] = a[4]; // here",
        "int a[4] = {1, 2, 3, int(i)};\nint b = a[4];\nout[i] = i < 64 ? a[3] : b;",
    ),
    Case(
        "no_return",
        "a function ends without returning a value",
        "out[i] = f(i);",
        "int v = f(i);\nout[i] = i < 40 ? v : 1;",
        before="int f(int x) { if (x < 40) return x; }",
    ),
    # Integers.
    Case(
        "division",
        "an integer is divided by zero",
        "out[i] = int(i) / n; // here",
        "int q = int(i) / n;\nout[i] = n == 0 ? -1 : q;",
    ),
    Case(
        "unsigned_division",
        "an integer is divided by zero",
        "out[i] = 100u / (i % 4); // here",
        "out[i] = i % 4 ? 100u / (i % 4) : 0;",
    ),
    Case(
        "remainder_by_zero",
        "an integer is divided by zero",
        "out[i] = i % uint(n); // here",
        "out[i] = i % uint(n + 1);",
    ),
    Case(
        "least_by_minus_one",
        "an integer is divided by zero, or the least integer by -1",
        "int least = 0x80000000 + i;\nout[i] = least / n; // here",
        "int least = 0x80000001 + i;\nout[i] = least / n;",
        number=-1,
    ),
    Case(
        "literal_zero",
        "an integer is divided by zero",
        "out[i] = int(i) / (n - n); // here",
        "out[i] = int(i) / (n - n + 1);",
    ),
    Case(
        "vector_division",
        "an integer is divided by zero",
        "int2 q = int2(7, 8) / int2(i + 1, n); // here\nout[i] = q.x + q.y;",
        "int2 q = int2(7, 8) / int2(i + 1, n);\nout[i] = q.x;",
    ),
    Case(
        "negative_remainder",
        "the remainder (%) of a negative integer",
        "out[i] = (int(i) - 3) % 5; // here",
        "int r = (int(i) - 3) % 5;\nout[i] = int(i) >= 3 ? r : 0;",
    ),
    Case(
        "negative_divisor",
        "the remainder (%) of a negative integer",
        "out[i] = int(i) % n; // here",
        "out[i] = int(i) % -n;",
        number=-7,
    ),
    Case(
        "wide_shift",
        "an integer is shifted by its width or more",
        "out[i] = 1u << i; // here",
        "out[i] = 1u << (i % 32);",
    ),
    Case(
        "literal_shift",
        "an integer is shifted by its width or more",
        "out[i] = i << 32; // here",
        "out[i] = ulong(i) << 32 >> 31;",
    ),
    Case(
        "right_shift",
        "an integer is shifted by its width or more",
        "int v = -1;\nout[i] = v >> n; // here",
        "int v = -1;\nout[i] = n < 32 ? v >> n : 0;",
        number=33,
    ),
    Case(
        "negative_shift",
        "an integer is shifted by its width or more",
        "out[i] = int(i) << n; // here",
        "out[i] = int(i) << -n;",
        number=-2,
    ),
    Case(
        "vector_shift",
        "an integer is shifted by its width or more",
        "uint4 v = uint4(i) << uint4(1, 2, 3, i); // here\nout[i] = v.w;",
        "uint4 v = uint4(i) << uint4(1, 2, 3, i);\nout[i] = v.z;",
    ),
    Case(
        "overflow",
        "signed arithmetic overflows",
        "int v = out[i];\nout[i] = v + n; // here",
        "int v = out[i];\nout[i] = int(uint(v) + uint(n));",
        number=2147483647,
    ),
    Case(
        "overflow_of_a_product",
        "signed arithmetic overflows",
        "int v = n;\nout[i] = v * int(i); // here",
        "int v = n;\nint w = v * int(i);\nout[i] = i < 2 ? w : 0;",
        number=2147483647,
    ),
    Case(
        "overflow_of_a_sum",
        "signed arithmetic overflows",
        "int s = 0;\nfor (int k = 0; k < 4; ++k) s += n; // here\nout[i] = s;",
        "int s = 0;\nfor (int k = 0; k < 1; ++k) s += n;\nout[i] = s;",
        number=2147483647,
    ),
    Case(
        "overflow_in_a_comparison",
        "signed arithmetic overflows",
        "int v = n;\nout[i] = v + 1 > v; // here",
        "int v = n;\nout[i] = v - 1 < v;",
        number=2147483647,
    ),
    # Threadgroup memory.
    Case(
        "threadgroup_element",
        "threadgroup memory 'tile' (declared in line 5:",
        f"threadgroup int tile[64];\nif (t > 0) tile[t] = t;\n{BARRIER}\nout[i] = tile[t]; // here",
        f"threadgroup int tile[64];\nif (t > 0) tile[t] = t;\n{BARRIER}\nint v = tile[t];\nout[i] = t > 0 ? v : 0;",
    ),
    Case(
        "threadgroup_padding",
        "threadgroup memory 'tile' (declared in line 5:",
        f"threadgroup float tile[64 * 5];\nfor (int k = 0; k < 4; ++k) tile[t * 5 + k] = k;\n{BARRIER}\n"
        "float s = 0;\nfor (int k = 0; k < 5; ++k) s += tile[t * 5 + k]; // here\nx[i] = s;",
        f"threadgroup float tile[64 * 5];\nfor (int k = 0; k < 4; ++k) tile[t * 5 + k] = k;\n{BARRIER}\n"
        "float s = 0;\nfor (int k = 0; k < 5; ++k) { float v = tile[t * 5 + k]; if (k < 4) s += v; }\nx[i] = s;",
    ),
    Case(
        "threadgroup_vector",
        "threadgroup memory 'tile' (declared in line 5:",
        f"threadgroup float4 tile[64];\ntile[t].xyz = float3(t);\n{BARRIER}\nfloat4 v = tile[63 - t]; // here\nx[i] = v.x + v.w;",
        f"threadgroup float4 tile[64];\ntile[t].xyz = float3(t);\n{BARRIER}\nfloat4 v = tile[63 - t];\nx[i] = v.x + v.z;",
    ),
    Case(
        "threadgroup_bytes",
        "threadgroup memory 'tile' (declared in line 5:",
        f"threadgroup uchar tile[128];\ntile[2 * t] = t;\n{BARRIER}\nout[i] = tile[t]; // here",
        f"threadgroup uchar tile[128];\ntile[2 * t] = t;\n{BARRIER}\nout[i] = tile[t & ~1u];",
    ),
    Case(
        "threadgroup_of_the_group_before",
        "threadgroup memory 'seen' (declared in line 5:",
        f"threadgroup int seen;\nif (g == 0) seen = 7;\n{BARRIER}\nout[i] = seen; // here",
        f"threadgroup int seen;\nif (t == 0) seen = 7;\n{BARRIER}\nout[i] = seen;",
        group=32,
    ),
    Case(
        "threadgroup_atomic",
        "threadgroup memory 'count' (declared in line 5:",
        f"threadgroup atomic_int count;\natomic_fetch_add_explicit(&count, 1, memory_order_relaxed); // here\n{BARRIER}\n"
        "out[i] = atomic_load_explicit(&count, memory_order_relaxed);",
        f"threadgroup atomic_int count;\nif (t == 0) atomic_store_explicit(&count, 0, memory_order_relaxed);\n{BARRIER}\n"
        f"atomic_fetch_add_explicit(&count, 1, memory_order_relaxed);\n{BARRIER}\n"
        "out[i] = atomic_load_explicit(&count, memory_order_relaxed);",
    ),
    Case(
        "threadgroup_maximum",
        "threadgroup memory 'parts' (declared in line 5:",
        f"threadgroup float parts[4];\nif (l == 0) parts[t / 32] = t;\n{BARRIER}\n"
        "float m = 0;\nfor (int k = 0; k < 4; ++k) m = max(m, parts[k]); // here\nx[i] = m;",
        f"threadgroup float parts[4];\nif (l == 0) parts[t / 32] = t;\n{BARRIER}\n"
        "float m = 0;\nfor (int k = 0; k < 2; ++k) m = max(m, parts[k]);\nx[i] = m;",
    ),
    # Barriers that are missing, or order other memory.
    Case(
        "second_barrier_of_a_loop",
        UNORDERED,
        f"threadgroup int tile[64];\nint s = 0;\nfor (int k = 1; k < 5; ++k) {{\n  tile[t] = t * k;\n  {BARRIER}\n"
        "  s += tile[63 - t]; // here\n}\nout[i] = s;",
        f"threadgroup int tile[64];\nint s = 0;\nfor (int k = 1; k < 5; ++k) {{\n  tile[t] = t * k;\n  {BARRIER}\n"
        f"  s += tile[63 - t];\n  {BARRIER}\n}}\nout[i] = s;",
    ),
    Case(
        "barrier_for_device_memory",
        UNORDERED,
        "threadgroup float tile[64];\ntile[t] = t;\nthreadgroup_barrier(mem_flags::mem_device);\nx[i] = tile[63 - t]; // here",
        "threadgroup float tile[64];\ntile[t] = t;\nthreadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);\n"
        "x[i] = tile[63 - t];",
    ),
    Case(
        "barrier_for_no_memory",
        UNORDERED,
        "threadgroup half4 tile[64];\ntile[t] = half4(t);\nthreadgroup_barrier(mem_flags::mem_none);\n"
        "half4 v = tile[63 - t]; // here\nx[i] = v.y + v.z;",
        "threadgroup half4 tile[64];\ntile[t] = half4(t);\nthreadgroup_barrier(mem_flags::mem_none);\n"
        "half4 v = tile[t / 32 * 32 + 31 - l];\nx[i] = v.y + v.z;",
    ),
    Case(
        "barrier_of_a_simdgroup",
        "threadgroup memory 'tile' (declared in line",
        "threadgroup uchar tile[64];\ntile[t] = t;\nsimdgroup_barrier(mem_flags::mem_threadgroup);\nout[i] = tile[63 - t]; // here",
        "threadgroup uchar tile[64];\ntile[t] = t;\nsimdgroup_barrier(mem_flags::mem_threadgroup);\nout[i] = tile[t ^ 31];",
    ),
    Case(
        "memory_that_is_used_again",
        UNORDERED,
        f"threadgroup int tile[64];\ntile[t] = t;\n{BARRIER}\nint a = tile[(t + 32) % 64]; // here\ntile[t] = a + 100;\n"
        f"{BARRIER}\nout[i] = tile[t];",
        f"threadgroup int tile[64];\ntile[t] = t;\n{BARRIER}\nint a = tile[(t + 32) % 64];\n{BARRIER}\ntile[t] = a + 100;\n"
        f"{BARRIER}\nout[i] = tile[t];",
    ),
    Case(
        "partial_sums",
        UNORDERED,
        f"threadgroup float part[2];\nif (l == 0) part[t / 32] = 0;\n{BARRIER}\nfloat sum = simd_sum(float(t));\n"
        "if (l == 0) part[t / 32] = sum;\nx[i] = part[0] + part[1]; // here",
        f"threadgroup float part[2];\nif (l == 0) part[t / 32] = 0;\n{BARRIER}\nfloat sum = simd_sum(float(t));\n"
        f"if (l == 0) part[t / 32] = sum;\n{BARRIER}\nx[i] = part[0] + part[1];",
    ),
    Case(
        "the_same_number_again",
        UNORDERED,
        f"threadgroup int all[2];\nif (l == 0) all[t / 32] = n;\n{BARRIER}\nif (l == 0) all[t / 32] = n + 1;\n"
        "out[i] = all[1 - t / 32]; // here",
        f"threadgroup int all[2];\nif (l == 0) all[t / 32] = n;\n{BARRIER}\nif (l == 0) all[t / 32] = n;\n"
        "out[i] = all[1 - t / 32];",
    ),
    Case(
        "a_pair_of_two_writers",
        UNORDERED,
        f"threadgroup int2 tile[64];\ntile[t] = int2(t);\n{BARRIER}\ntile[t].x = 7;\nint2 v = tile[63 - t]; // here\nout[i] = v.x + v.y;",
        f"threadgroup int2 tile[64];\ntile[t] = int2(t);\n{BARRIER}\ntile[t].x = 7;\nint2 v = tile[t ^ 1];\nout[i] = v.x + v.y;\n"
        "v = tile[63 - t];\nx[i] = v.y;",
    ),
    # Lanes.
    Case(
        "shuffle_down",
        "a shuffle reads a lane that is inactive or outside of the SIMD-group",
        "x[i] = simd_shuffle_down(float(i), 4); // here",
        "float v = simd_shuffle_down(float(i), 4);\nx[i] = l < 28 ? v : 0.0f;",
    ),
    Case(
        "shuffle_up",
        "a shuffle reads a lane that is inactive or outside of the SIMD-group",
        "out[i] = simd_shuffle_up(int(i), 1); // here",
        "int v = simd_shuffle_up(int(i), 1);\nout[i] = l ? v : 0;",
    ),
    Case(
        "tree",
        "a shuffle reads a lane that is inactive or outside of the SIMD-group",
        "float s = i;\nfor (ushort d = 16; d; d /= 2)\n  s += simd_shuffle_down(s, d); // here\nx[i] = s;",
        "float s = i;\nfor (ushort d = 16; d; d /= 2)\n  s += simd_shuffle_down(s, d);\nif (l == 0) x[i] = s;",
    ),
    Case(
        "inactive_lane",
        "a shuffle reads a lane that is inactive or outside of the SIMD-group",
        "int v = i;\nif (l % 2) v = simd_shuffle(v, ushort(l - 1)); // here\nout[i] = v;",
        "int v = i;\nint w = simd_shuffle(v, ushort(l & ~1u));\nif (l % 2) v = w;\nout[i] = v;",
    ),
    Case(
        "inactive_broadcast",
        "a shuffle reads a lane that is inactive or outside of the SIMD-group",
        "int v = 0;\nif (l > 5) v = simd_broadcast(int(i), 2); // here\nout[i] = v;",
        "int v = 0;\nif (l > 1) v = simd_broadcast(int(i), 2);\nout[i] = v;",
    ),
    Case(
        "lane_beyond",
        "a shuffle reads a lane that is inactive or outside of the SIMD-group",
        "out[i] = simd_shuffle(int(i), ushort(l + 1)); // here",
        "out[i] = simd_shuffle(int(i), ushort((l + 1) % 32));",
    ),
    Case(
        "missing_lane",
        "a shuffle reads a lane that is inactive or outside of the SIMD-group",
        "out[i] = simd_shuffle_xor(int(i), 16); // here",
        "int v = simd_shuffle_xor(int(i), 16);\nout[i] = l < 16 ? int(i) : v;",
        group=24,
    ),
    Case(
        "vector_shuffle",
        "a shuffle reads a lane that is inactive or outside of the SIMD-group",
        "float2 v = simd_shuffle_down(float2(i, 1), 1); // here\nx[i] = v.y;",
        "float2 v = simd_shuffle_down(float2(i, 1), 1);\nx[i] = l < 31 ? v.y : 1;",
    ),
    Case(
        "quad_shuffle",
        "a shuffle reads a lane that is inactive or outside of the SIMD-group",
        "out[i] = quad_shuffle_up(int(i), 1); // here",
        "int v = quad_shuffle_up(int(i), 1);\nout[i] = l % 4 ? v : 0;",
    ),
    Case(
        "maximum_of_nan",
        "the minimum or maximum across a SIMD-group of values with a NaN among them",
        "float v = i == 3 ? NAN : float(i);\nx[i] = simd_max(v); // here",
        "float v = i == 3 ? NAN : float(i);\nx[i] = simd_max(v != v ? -INFINITY : v);",
    ),
    # Functions whose result Metal does not define for some arguments.
    Case(
        "clamp_upside_down",
        "clamp gets arguments for which Metal does not define its result",
        "out[i] = clamp(int(i), 9, n); // here",
        "int v = clamp(int(i), 9, n);\nout[i] = n < 9 ? 9 : v;",
    ),
    Case(
        "clamp_of_halves_upside_down",
        "clamp gets arguments for which Metal does not define its result",
        "half2 v = clamp(half2(i), half2(0, 9), half2(4, n)); // here\nx[i] = v.x + v.y;",
        "half2 v = clamp(half2(i), half2(0, 9), half2(4, n));\nx[i] = v.x;",
    ),
    Case(
        "mix_beyond_its_ends",
        "mix gets arguments for which Metal does not define its result",
        "x[i] = mix(1.0f, 2.0f, float(i) / 16); // here",
        "x[i] = mix(1.0f, 2.0f, float(i) / 63);",
    ),
    Case(
        "smoothstep_of_one_edge",
        "smoothstep gets arguments for which Metal does not define its result",
        "x[i] = smoothstep(float(n), float(n), float(i)); // here",
        "x[i] = smoothstep(float(n), float(n + 1), float(i));",
    ),
    Case(
        "bits_beyond_the_last",
        "extract_bits gets arguments for which Metal does not define its result",
        "out[i] = extract_bits(uint(i), i, 8); // here",
        "uint v = extract_bits(uint(i), i, 8);\nout[i] = i <= 24 ? v : 0;",
    ),
    Case(
        "bits_inserted_beyond_the_last",
        "insert_bits gets arguments for which Metal does not define its result",
        "out[i] = insert_bits(ushort(n), ushort(i), 12, 5); // here",
        "out[i] = insert_bits(ushort(n), ushort(i), 11, 5);",
    ),
    Case(
        "fast_minimum_of_nan",
        "min gets arguments for which Metal does not define its result",
        "x[i] = fast::min(i == 5 ? NAN : 1.0f, 2.0f); // here",
        "x[i] = min(i == 5 ? NAN : 1.0f, 2.0f);",
    ),
    # Functions of fast math.
    Case(
        "fast_sin",
        "fast::sin gets or gives a number outside of the range",
        "x[i] = fast::sin(float(i)); // here",
        "x[i] = fast::sin(float(i) / 32);",
    ),
    Case(
        "fast_tanh",
        "fast::tanh gets or gives a number outside of the range",
        "x[i] = fast::tanh(float(i)); // here",
        "x[i] = precise::tanh(float(i));",
    ),
    Case(
        "fast_exp10",
        "fast::exp10 gets or gives a number outside of the range",
        "x[i] = fast::exp10(float(i) * 2); // here",
        "x[i] = fast::exp10(float(i) * -2) + fast::exp(i ? float(i) * 2 : -INFINITY);",
    ),
    Case(
        "fast_log",
        "fast::log gets or gives a number outside of the range",
        "x[i] = fast::log(float(i)); // here",
        "x[i] = fast::log(float(i + 1));",
    ),
    Case(
        "fast_divide",
        "fast::divide gets or gives a number outside of the range",
        "x[i] = fast::divide(1.0f, float(i) * 1e37f); // here",
        "x[i] = fast::divide(1.0f, float(i) * 1e36f);",
    ),
    Case(
        "fast_acosh",
        "fast::acosh gets or gives a number outside of the range",
        "x[i] = fast::acosh(float(i)); // here",
        "float r = fast::acosh(float(i));\nx[i] = i < 1 ? 0 : r + fast::sqrt(float(i) - 2);",
    ),
    Case(
        "infinity",
        "fast::cos gets or gives a number outside of the range",
        "x[i] = fast::cos(i ? 1.0f : INFINITY); // here",
        "x[i] = precise::cos(i ? 1.0f : INFINITY);",
    ),
]


def by_name(case: Case) -> str:
    return case.name


@pytest.mark.parametrize("case", CASES, ids=by_name)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_defect(case: Case, seed: int) -> None:
    outputs = np.full(64, 77, np.int32), np.full(64, 77, np.float32)
    message = launch(
        case.defect,
        seed,
        group=case.group,
        number=case.number,
        before=case.before,
        outputs=outputs,
    )
    assert message is not None
    assert case.reason in message
    assert "depends on a value that Metal does not promise" in message
    if "// here" in case.defect:
        assert reported_line(message) == line_of(case.defect, "// here", case.before), message
    # The buffers are as before the launch.
    for array in outputs:
        assert (array == 77).all()


@pytest.mark.parametrize("case", CASES, ids=by_name)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_twin(case: Case, seed: int) -> None:
    message = launch(case.twin, seed, group=case.group, number=case.number, before=case.before)
    assert message is None


def test_result_is_kept() -> None:
    outputs = np.zeros(64, np.int32), np.zeros(64, np.float32)
    body = "int v;\nif (i < 40) v = 3;\nout[i] = i < 40 ? v : 9;"
    assert launch(body, outputs=outputs) is None
    assert outputs[0].tolist() == [3] * 40 + [9] * 24


def test_in_place_result_is_of_one_run() -> None:
    outputs = np.arange(64, dtype=np.int32), np.zeros(64, np.float32)
    body = "int v;\nif (i < 40) v = 3;\nout[i] += i < 40 ? v : 9;"
    assert launch(body, outputs=outputs) is None
    assert outputs[0].tolist() == [i + (3 if i < 40 else 9) for i in range(64)]


def test_address_names_both_places() -> None:
    message = launch("int at; // here\nif (n > 0) at = i;\nout[at] = 1; // there")
    assert message is not None
    assert "whether the launch fails depends on a value" in message
    assert "with one such value, line 7:" in message
    assert "a store of 4 bytes" in message


def test_out_of_bounds_without_poison() -> None:
    outputs = np.full(64, 5, np.int32), np.zeros(64, np.float32)
    message = launch("out[i + 1] = 1;", outputs=outputs)
    assert message is not None
    assert "a store of 4 bytes at byte 256 of 'out' (buffer 0)" in message
    assert "promise" not in message
    assert (outputs[0] == 5).all()


def test_endless_loop() -> None:
    body = "int steps; // here\nif (n == 1) steps = 3;\nfor (int k = 0; k != steps; k = steps < 0 ? 0 : k + 1) out[i] = k;"
    message = launch(body)
    assert message is not None
    assert "variable 'steps' is read before it has a value" in message


def test_the_first_cause_is_found() -> None:
    """Of many values that are not promised, the message names one that the output depends on."""
    lines = "\n".join(f"int a{k};\nif (n == 1) a{k} = 1;\nint b{k} = a{k};" for k in range(20))
    sums = " + ".join(f"(n > 5 ? b{k} : 0)" for k in range(20) if k != 13)
    message = launch(f"{lines}\nout[i] = b13 + {sums};")
    assert message is not None
    assert "variable 'a13' is read" in message


def subnormals(seed: int) -> tuple[np.ndarray, np.ndarray]:
    outputs = np.zeros(64, np.int32), np.full(64, 1e-38, np.float32)
    body = "x[i] = x[i] / float(i + 2);\nhalf h = half(x[i] * 0 + 6e-8f) * half(i);\nout[i] = as_type<ushort>(h);"
    assert launch(body, seed, outputs=outputs) is None
    return outputs


def test_the_seed_decides_on_subnormals() -> None:
    results = [subnormals(seed) for seed in range(4)]
    kept = [bool(floats.any()) for _, floats in results]
    assert any(kept)
    assert not all(kept)
    # Halves keep theirs.
    assert all(halves.tolist() == list(range(64)) for halves, _ in results)


def test_the_seed_moves_fast_results() -> None:
    exact = np.exp(np.linspace(0.1, 3.0, 64, dtype=np.float32))
    results = []
    for seed in range(3):
        outputs = np.zeros(64, np.int32), np.linspace(0.1, 3.0, 64, dtype=np.float32)
        assert launch("x[i] = fast::exp(x[i]);", seed, outputs=outputs) is None
        results.append(outputs[1])
        np.testing.assert_allclose(outputs[1], exact, rtol=12 * 2**-23)
    assert len({result.tobytes() for result in results}) > 1


def test_fmax_of_nan_is_promised() -> None:
    assert launch("x[i] = fmax(NAN, float(i)) + fmin(float(i), NAN);") is None


def test_same_seed_same_message() -> None:
    body = "int v; // here\nif (i < 40) v = 1;\nout[i] = v;"
    assert launch(body, 5) == launch(body, 5)
