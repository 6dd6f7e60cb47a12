"""Right kernels of shapes that programs in the wild have, which no check may report: look-back scans, tickets, work queues,
locks, butterflies, SIMD-groups that work apart, bytes of one word, tails, and values that only some threads have. The form is
that of ``planted_defects``.
"""

from __future__ import annotations

from planted_defects import SYNC, TILE
from planted_right import ALL, DEVICE_SYNC, SIMD_SYNC, add, fence, right

FENCES = [
    right(
        "look-back scan",
        "threadgroup uint before;\nuint sum = simd_sum(t + g), part = 0;\nthreadgroup uint sums[4];\nif (lane == 0)\n  sums[sg] = sum;\n"
        + SYNC
        + "for (int j = 0; j < 4; ++j)\n  part += sums[j];\nif (t == 0) {\n  uint total = 0;\n"
        "  if (g > 0) {\n    uint flag;\n    do\n      flag = atomic_load_explicit(c + g - 1, memory_order_relaxed);\n    while (flag == 0);\n"
        + fence("acquire")
        + "    total = uint(n[g - 1]);\n  }\n  n[g] = int(total + part);\n"
        + fence("release")
        + "  atomic_store_explicit(c + g, 1u, memory_order_relaxed);\n  before = total;\n}\n"
        + SYNC
        + "o[i] = float(before);",
    ),
    right(
        "look-back by one atomic word",
        "threadgroup uint before;\nif (t == 0) {\n  uint total = 0;\n  if (g > 0) {\n    uint word;\n    do\n      word = atomic_load_explicit(c + g - 1, memory_order_relaxed);\n    while ((word >> 31) == 0);\n    total = word & 0x7fffffffu;\n  }\n  atomic_store_explicit(c + g, (total + g + 1) | 0x80000000u, memory_order_relaxed);\n  before = total;\n}\n"
        + SYNC
        + "o[i] = float(before);",
    ),
    right(
        "lock with fences",
        "if (t == 0) {\n  uint free = 0;\n  while (!atomic_compare_exchange_weak_explicit(c, &free, 1u, memory_order_relaxed, memory_order_relaxed))\n    free = 0;\n"
        + fence("acquire")
        + "  o[0] += float(g);\n  n[0] = n[0] * 3 + int(g);\n"
        + fence("release")
        + "  atomic_store_explicit(c, 0u, memory_order_relaxed);\n}",
    ),
    right(
        "lock by exchange",
        "if (t == 0) {\n  while (atomic_exchange_explicit(c, 1u, memory_order_relaxed) != 0) {\n  }\n"
        + fence()
        + "  o[0] += float(g);\n"
        + fence()
        + "  atomic_exchange_explicit(c, 0u, memory_order_relaxed);\n}",
    ),
    right(
        "ticket lock",
        "if (t == 0) {\n  uint mine = "
        + add("c")
        + ";\n  while (atomic_load_explicit(c + 1, memory_order_relaxed) != mine) {\n  }\n"
        + fence("acquire")
        + "  o[0] = o[0] * 2 + float(g);\n"
        + fence("release")
        + "  "
        + add("c + 1")
        + ";\n}",
    ),
    right(
        "work queue",
        "threadgroup uint job;\nfor (;;) {\n  if (t == 0)\n    job = "
        + add("c")
        + ";\n"
        + SYNC
        + "  uint mine = job;\n"
        + SYNC
        + "  if (mine >= 16)\n    break;\n  if (t < 32)\n    o[mine * 32 + t] = mine;\n}",
    ),
    right(
        "chain of threadgroups",
        "if (t == 0) {\n  if (g > 0) {\n    while (atomic_load_explicit(c, memory_order_relaxed) < g) {\n    }\n"
        + fence()
        + "    o[g] = o[g - 1] + 1;\n  } else {\n    o[0] = 1;\n  }\n"
        + fence()
        + "  "
        + add("c")
        + ";\n}",
    ),
    right(
        "last block that clears its counter",
        "threadgroup bool isLast;\no[i] = t;\n"
        + fence("release")
        + DEVICE_SYNC
        + "if (t == 0) {\n  isLast = "
        + add("c")
        + " == 3;\n"
        + fence("acquire")
        + "}\n"
        + ALL
        + "if (isLast) {\n  float x = 0;\n  for (uint j = 0; j < 4; ++j)\n    x += o[j * 128 + t];\n  n[t] = int(x);\n  if (t == 0)\n    atomic_store_explicit(c, 0u, memory_order_relaxed);\n}",
    ),
    right(
        "tree of threadgroups",
        "threadgroup uint first;\nif (t == 0) {\n  n[g] = int(g);\n"
        + fence()
        + "  first = "
        + add("c + 1 + g / 2")
        + ";\n"
        + fence()
        + "  if (first == 1) {\n    n[8 + g / 2] = n[g & ~1u] + n[g | 1];\n"
        + fence()
        + "    if ("
        + add("c")
        + " == 1) {\n"
        + fence()
        + "      n[12] = n[8] + n[9];\n    }\n  }\n}",
    ),
    right(
        "flag of each SIMD-group",
        "threadgroup float data[4][32];\nthreadgroup atomic_uint ready[4];\nif (t < 4)\n  atomic_store_explicit(ready + t, 0u, memory_order_relaxed);\n"
        + SYNC
        + "data[sg][lane] = t;\n"
        + fence("release", "threadgroup", "threadgroup")
        + SIMD_SYNC
        + "if (lane == 0) {\n"
        + fence("release", "threadgroup", "threadgroup")
        + "  atomic_store_explicit(ready + sg, 1u, memory_order_relaxed);\n}\n"
        + "if (atomic_load_explicit(ready + (sg ^ 1), memory_order_relaxed) == 1) {\n"
        + fence("acquire", "threadgroup", "threadgroup")
        + "  o[i] = data[sg ^ 1][lane];\n}",
    ),
    right(
        "all threads wait for the flag of another threadgroup",
        "if (g > 0) {\n  while (atomic_load_explicit(c + g - 1, memory_order_relaxed) == 0) {\n  }\n"
        + fence("acquire")
        + "  o[i] = o[i - 128] + 1;\n} else {\n  o[i] = 1;\n}\n"
        + fence("release")
        + DEVICE_SYNC
        + "if (t == 0)\n  atomic_store_explicit(c + g, 1u, memory_order_relaxed);",
    ),
    right(
        "SIMD-groups that publish their partial sums",
        "o[i] = t;\nsimdgroup_barrier(mem_flags::mem_device);\nuint k = 0;\nif (lane == 0) {\n"
        + fence()
        + "  k = "
        + add("c")
        + ";\n"
        + fence()
        + "}\nsimdgroup_barrier(mem_flags::mem_device);\nif (simd_broadcast_first(k) == 15)\n  for (uint j = lane; j < 512; j += 32)\n    n[j] = int(o[j]);",
    ),
    right(
        "SIMD-groups whose lanes have each a fence",
        "o[i] = t;\n"
        + fence("release")
        + "simdgroup_barrier(mem_flags::mem_none);\nuint k = 0;\nif (lane == 0) {\n  k = "
        + add("c")
        + ";\n"
        + fence("acquire")
        + "}\nsimdgroup_barrier(mem_flags::mem_device);\nif (simd_broadcast_first(k) == 15)\n  for (uint j = lane; j < 512; j += 32)\n    n[j] = int(o[j]);",
    ),
    right(
        "acquire and release of the atomics themselves",
        "if (t == 0) {\n  o[g] = g;\n  uint k = atomic_fetch_add_explicit(c, 1u, memory_order_acq_rel);\n  if (k == 3)\n    n[0] = int(o[0] + o[1] + o[2] + o[3]);\n}",
    ),
    right(
        "sums of halves by a 64-bit maximum",
        "if (t == 0) {\n  o[g] = g;\n"
        + fence("release")
        + "  "
        + add("c + 8")
        + ";\n  atomic_max_explicit((device atomic_ulong *)c + 2, ulong(g) << 32 | 1, memory_order_relaxed);\n}",
    ),
]
ATOMICS = [
    right(
        "bits of one byte by atomics of its word",
        "atomic_fetch_or_explicit(c + i / 32, 1u << (i % 32), memory_order_relaxed);",
    ),
    right(
        "bytes of one word",
        "((device uchar *)n)[i] = uchar(i);\nif (i < 64)\n  ((device ushort *)o)[i * 2] = ushort(i);\nelse if (i < 128)\n  ((device ushort *)o)[(i - 64) * 2 + 1] = 7;",
    ),
    right(
        "bytes of a shared word, and then the word",
        "threadgroup uchar4 s[128];\nfor (uint j = 0; j < 4; ++j)\n  ((threadgroup uchar *)s)[j * 128 + t] = uchar(t + j);\n"
        + SYNC
        + "n[i] = int(as_type<uint>(s[127 - t]));",
    ),
    right(
        "slots by votes",
        "threadgroup atomic_uint used;\nthreadgroup uint list[128];\nif (t == 0)\n  atomic_store_explicit(&used, 0u, memory_order_relaxed);\n"
        + SYNC
        + "bool keep = t % 3 != 0;\nuint votes = uint(simd_vote::vote_t(simd_ballot(keep)));\nuint at = popcount(votes & ((1u << lane) - 1)), base = 0;\nif (simd_is_first())\n  base = atomic_fetch_add_explicit(&used, popcount(votes), memory_order_relaxed);\nbase = simd_broadcast_first(base);\nif (keep)\n  list[base + at] = t;\n"
        + SYNC
        + "if (t < atomic_load_explicit(&used, memory_order_relaxed))\n  n[i] = int(list[t]);",
    ),
    right(
        "compare and exchange of a maximum",
        "device atomic_float *best = (device atomic_float *)o;\nfloat seen = atomic_load_explicit(best, memory_order_relaxed);\nwhile (seen < float(i) && !atomic_compare_exchange_weak_explicit(best, &seen, float(i), memory_order_relaxed, memory_order_relaxed)) {\n}",
    ),
    right(
        "open addressing",
        "uint at = (i * 7) % 64;\nfor (int tries = 0; tries < 64; ++tries, at = (at + 1) % 64) {\n  uint empty = 0;\n  while (empty == 0 && !atomic_compare_exchange_weak_explicit(c + at, &empty, i % 60 + 1, memory_order_relaxed, memory_order_relaxed)) {\n  }\n  if (empty == 0 || empty == i % 60 + 1)\n    break;\n}",
    ),
    right(
        "counter that is read behind a barrier of the device",
        "threadgroup uint total;\n"
        + add("c + g")
        + ";\nthreadgroup_barrier(mem_flags::mem_device);\nif (t == 0)\n  total = *(device uint *)(c + g);\n"
        + SYNC
        + "n[i] = int(total);",
    ),
    right(
        "minimum of a threadgroup by atomics",
        "threadgroup atomic_int least;\nif (t == 127)\n  atomic_store_explicit(&least, INT_MAX, memory_order_relaxed);\n"
        + SYNC
        + "atomic_fetch_min_explicit(&least, int(t ^ 77), memory_order_relaxed);\n"
        + SYNC
        + "n[i] = atomic_load_explicit(&least, memory_order_relaxed);",
    ),
    right(
        "two words by one thread each",
        "threadgroup atomic_uint pair[2];\nif (t < 2)\n  atomic_store_explicit(&pair[t], t, memory_order_relaxed);\n"
        + SYNC
        + "if (sg == 1)\n  atomic_fetch_add_explicit(&pair[0], 1u, memory_order_relaxed);\nif (t == 0)\n  atomic_store_explicit(&pair[1], 9u, memory_order_relaxed);\n"
        + SYNC
        + "n[i] = int(atomic_load_explicit(&pair[0], memory_order_relaxed) + atomic_load_explicit(&pair[1], memory_order_relaxed));",
    ),
]
BARRIERS = [
    right(
        "butterfly through memory",
        TILE
        + "s[t] = t;\nfor (uint d = 1; d < 32; d *= 2) {\n"
        + SIMD_SYNC
        + "float other = s[t ^ d];\n"
        + SIMD_SYNC
        + "s[t] += other;\n}\no[i] = s[t];",
    ),
    right(
        "butterfly of two buffers",
        "threadgroup float s[2][128];\ns[0][t] = t;\nuint now = 0;\nfor (uint d = 1; d < 128; d *= 2) {\n"
        + SYNC
        + "s[now ^ 1][t] = s[now][t] + s[now][t ^ d];\nnow ^= 1;\n}\no[i] = s[now][t];",
    ),
    right(
        "scan of two buffers",
        "threadgroup uint s[2][128];\nuint now = 0;\ns[0][t] = t;\n"
        + SYNC
        + "for (uint d = 1; d < 128; d *= 2) {\n  s[now ^ 1][t] = s[now][t] + (t >= d ? s[now][t - d] : 0);\n  now ^= 1;\n"
        + SYNC
        + "}\nn[i] = int(s[now][t]);",
    ),
    right(
        "up-sweep and down-sweep",
        "threadgroup uint s[256];\ns[2 * t] = 1;\ns[2 * t + 1] = 1;\nuint d = 1;\nfor (uint k = 128; k > 0; k /= 2) {\n"
        + SYNC
        + "if (t < k)\n  s[d * (2 * t + 2) - 1] += s[d * (2 * t + 1) - 1];\nd *= 2;\n}\nif (t == 0)\n  s[255] = 0;\nfor (uint k = 1; k < 256; k *= 2) {\n  d /= 2;\n"
        + SYNC
        + "if (t < k) {\n  uint a = d * (2 * t + 1) - 1, b = d * (2 * t + 2) - 1;\n  uint old = s[a];\n  s[a] = s[b];\n  s[b] += old;\n}\n}\n"
        + SYNC
        + "n[i] = int(s[t]);",
    ),
    right(
        "bitonic sort with SIMD-group steps",
        "threadgroup uint s[128];\ns[t] = (t * 37) % 128;\n"
        + SYNC
        + "for (uint k = 2; k <= 128; k *= 2)\n  for (uint j = k / 2; j > 0; j /= 2) {\n    uint other = t ^ j;\n    uint a = s[t], b = s[other];\n    if (j >= 32)\n      threadgroup_barrier(mem_flags::mem_threadgroup);\n    else\n      simdgroup_barrier(mem_flags::mem_threadgroup);\n    s[t] = (t < other) == ((t & k) == 0) ? min(a, b) : max(a, b);\n    if (j > 32 || j == 1)\n      threadgroup_barrier(mem_flags::mem_threadgroup);\n    else if (j == 32)\n      simdgroup_barrier(mem_flags::mem_threadgroup);\n    else\n      simdgroup_barrier(mem_flags::mem_threadgroup);\n  }\nn[i] = int(s[t]);",
    ),
    right(
        "producers and consumers",
        TILE
        + "for (int k = 0; k < 3; ++k) {\n  if (sg == 0)\n    for (uint j = lane; j < 128; j += 32)\n      s[j] = float(j + k);\n"
        + SYNC
        + "  if (sg != 0)\n    o[i] = s[t];\n"
        + SYNC
        + "}",
    ),
    right(
        "flag with three barriers",
        "threadgroup uint changed;\nfor (int round = 0; round < 3; ++round) {\n"
        + SYNC
        + "  if (t == 0)\n    changed = 0;\n"
        + SYNC
        + "  if (t == 70 + uint(round))\n    changed = 1;\n"
        + SYNC
        + "  if (changed == 0)\n    break;\n}\no[i] = 1;",
    ),
    right(
        "scratch used twice",
        "threadgroup float part[4];\nfloat all = 0;\nfor (int k = 0; k < 3; ++k) {\n  float x = simd_sum(float(t + k));\n  if (lane == 0)\n    part[sg] = x;\n"
        + SYNC
        + "  all += part[0] + part[1] + part[2] + part[3];\n"
        + SYNC
        + "}\no[i] = all;",
    ),
    right(
        "barrier in a branch that all threads take",
        TILE
        + "s[t] = t;\nif (z == 0) {\n"
        + SYNC
        + "  o[i] = s[127 - t];\n} else {\n  o[i] = 0;\n}",
    ),
    right(
        "threadgroups that leave as a whole",
        TILE + "if (g == 2)\n  return;\ns[t] = t;\n" + SYNC + "o[i] = s[127 - t];",
    ),
    right(
        "barrier in each case",
        TILE
        + "s[t] = t;\nswitch (g) {\ncase 0:\n"
        + SYNC
        + "  o[i] = s[t ^ 64];\n  break;\ncase 1:\n"
        + SYNC
        + "  o[i] = s[t ^ 32];\n  break;\ndefault:\n"
        + SYNC
        + "  o[i] = s[t ^ 1];\n}",
    ),
    right(
        "loops of threadgroups of several lengths",
        TILE
        + "float x = 0;\nfor (uint j = 0; j < g + 1; ++j) {\n  s[(t + j) % 128] = t;\n"
        + SYNC
        + "  x += s[127 - t];\n"
        + SYNC
        + "}\no[i] = x;",
    ),
    right(
        "ring of three stages",
        "threadgroup float ring[3][128];\nfloat x = 0;\nring[0][t] = t;\nring[1][t] = t;\nfor (int k = 0; k < 6; ++k) {\n"
        + SYNC
        + "  ring[(k + 2) % 3][t] = k;\n  x += ring[k % 3][127 - t];\n}\no[i] = x;",
    ),
    right(
        "SIMD-groups that work apart",
        "threadgroup float s[4][32];\nfor (uint k = 0; k <= sg; ++k) {\n  s[sg][lane] = k;\n"
        + SIMD_SYNC
        + "  o[i] = s[sg][31 - lane];\n"
        + SIMD_SYNC
        + "}",
    ),
    right(
        "matrices through a tile and back",
        "threadgroup float s[4 * 64];\nsimdgroup_float8x8 a = simdgroup_float8x8(float(sg + 1)), r;\nsimdgroup_store(a, s + sg * 64, 8);\n"
        + SYNC
        + "simdgroup_load(r, s + (sg ^ 3) * 64, 8, ulong2(0, 0), true);\nsimdgroup_multiply(r, r, a);\n"
        + SYNC
        + "simdgroup_store(r, s + sg * 64, 8, ulong2(0, 0), true);\n"
        + SIMD_SYNC
        + "o[i] = s[sg * 64 + lane];",
    ),
    right(
        "matrix stores side by side",
        "simdgroup_float8x8 m = simdgroup_float8x8(float(sg));\nif (g < 2)\n  simdgroup_store(m, o + g * 256, 32, ulong2(sg * 8, 0));",
    ),
    right(
        "stencil with a halo",
        "threadgroup float s[130];\ns[t + 1] = o[i];\nif (t == 0)\n  s[0] = i > 0 ? o[i - 1] : 0;\nif (t == 127)\n  s[129] = i < 511 ? o[i + 1] : 0;\n"
        + SYNC
        + "n[i] = int(s[t] + s[t + 1] + s[t + 2]);",
    ),
    right(
        "argument in two halves",
        "threadgroup half *low = (threadgroup half *)arg;\nthreadgroup float *high = arg + 64;\nlow[t] = half(t);\nif (t < 64)\n  high[t] = t;\n"
        + SYNC
        + "o[i] = float(low[127 - t]) + high[t % 64];",
    ),
    right(
        "transposition in place by pairs",
        "uint r = t / 8, q = t % 8;\nif (r < q) {\n  device float *tile = o + g * 128;\n  float a = tile[r * 8 + q];\n  tile[r * 8 + q] = tile[q * 8 + r];\n  tile[q * 8 + r] = a;\n}",
    ),
    right(
        "even and odd steps",
        "threadgroup int s[128];\ns[t] = int(127 - t);\nfor (int k = 0; k < 128; ++k) {\n"
        + SYNC
        + "  uint at = 2 * t + k % 2;\n  if (at + 1 < 128 && s[at] > s[at + 1]) {\n    int swap = s[at];\n    s[at] = s[at + 1];\n    s[at + 1] = swap;\n  }\n}\n"
        + SYNC
        + "n[i] = s[t];",
    ),
]
VALUES = [
    right(
        "division behind a guard",
        "int d = int(t) - 64;\nn[i] = d != 0 ? int(i) / d : 0;\nif (d != 0 && int(i) % d == 1)\n  n[i] = 3;",
    ),
    right(
        "shift behind a guard",
        "uint k = t;\nn[i] = k < 32 ? int(1u << k) : 0;\nulong wide = 1ul << (t % 64);\nn[i] += int(wide >> 60) + int(uchar(1) << 9);",
    ),
    right(
        "least of a short by -1",
        "short least = short(-32768 + z), minus = short(-1 - z);\nn[i] = least / minus;\nchar b = char(-128 + z);\nn[i] += b / minus;",
    ),
    right(
        "rotations and bits at the edge",
        "n[i] = int(rotate(t, 32u) + rotate(t, t) + extract_bits(t, 31, 1) + insert_bits(t, 1u, 0, 32) + clz(0u) + ctz(0u));",
    ),
    right(
        "conversions at the edge",
        "float x = 255.9f + z;\nn[i] = uchar(x) + int(2147483520.0f) / 2 + int(char(-128.9f + z)) + int(uint(4294967040.0f + z) >> 8) + short(half(32752.0h)) + uchar(-0.99f + z);",
    ),
    right(
        "saturated conversions",
        "n[i] = int(clamp(float(t) * 1e9f, -2147483648.0f, 2147483520.0f)) / 4;",
    ),
    right(
        "NaNs that come in",
        "float x = as_type<float>(0x7fc00000u + uint(z));\nfloat y = x * 2 + 1;\no[i] = max(y, 1.0f) + simd_sum(y) + fma(x, y, x);\nn[i] = isnan(y);",
    ),
    right(
        "infinities that stay",
        "float x = -INFINITY;\nx = max(x, float(t));\no[i] = exp(-INFINITY) + x + 1 / (INFINITY + t) + atan2(0.0f, float(z)) + pow(0.0f, float(z)) + simd_max(-INFINITY);",
    ),
    right(
        "online softmax",
        "float top = -INFINITY, sum = 0;\nfor (int k = 0; k < 4; ++k) {\n  float x = k == 0 ? float(t) : -INFINITY;\n  float next = max(top, simd_max(x));\n  sum = sum * exp(top - next) + simd_sum(exp(x - next));\n  top = next;\n}\no[i] = sum;",
    ),
    right(
        "padding of structures",
        "threadgroup Item s[64];\nItem item;\nitem.kind = uchar(t);\nitem.weight = t;\nif (t < 64)\n  s[t] = item;\n"
        + SYNC
        + "Item copy = s[t % 64];\no[i] = copy.weight + copy.kind;\nItem kept[2];\nkept[1] = copy;\nn[i] = kept[t / 64 + 1 - t / 64].kind;",
        before="struct Item { uchar kind; float weight; };\n",
    ),
    right(
        "vectors of three",
        "threadgroup float3 s[128];\ns[t] = float3(t, 1, 2);\n"
        + SYNC
        + "float3 v = s[127 - t];\nfloat3 w = v;\no[i] = w.x + w.z;\n"
        + SYNC
        + "s[t].y = 3;\nn[i] = int(s[t].y);",
    ),
    right(
        "tail of a row through a mask",
        "float4 v = 0;\nuint first = i * 4;\nfor (uint j = 0; j < 4; ++j)\n  if (first + j < 510)\n    v[j] = o[first + j];\nn[i] = int(dot(v, float4(1)));",
    ),
    right(
        "addresses that are made but not used",
        "device float *p = o + i + 100000;\ndevice float *q = o - 5;\np = i < 512 ? o + i : p;\n*p = float(q + 5 == o);",
    ),
    right(
        "pointer past the end",
        "float x = 0;\nfor (device const float *p = o + t, *end = o + 512; p < end; p += 128)\n  x += *p;\nn[i] = int(x);",
    ),
    right(
        "value on each path",
        "float x;\nif (t < 10)\n  x = 1;\nelse if (t < 100)\n  x = 2;\nif (t >= 100)\n  x = 3;\no[i] = x;",
    ),
    right(
        "array filled and read to the same end",
        "float a[16];\nint used = 0;\nfor (int j = 0; j < 16; ++j)\n  if ((j * int(t)) % 3 == 0)\n    a[used++] = j;\nfloat x = 0;\nfor (int j = 0; j < used; ++j)\n  x += a[j];\no[i] = x;",
    ),
    right(
        "out parameters of the library",
        "float cosine, whole;\nint exponent;\nfloat x = sincos(float(t), cosine) + modf(float(t) * 0.3f, whole) + frexp(float(t) + 1, exponent);\no[i] = x + cosine + whole + exponent;",
    ),
    right(
        "variable declared in front of a switch",
        "int x;\nswitch (t & 1) {\ncase 0:\n  x = 4;\n  break;\ndefault:\n  x = 5;\n}\nn[i] = x;",
    ),
    right(
        "best of an argument search",
        "float best = -INFINITY;\nuint where = 0;\nfor (uint j = t; j < 512; j += 128)\n  if (o[j] > best) {\n    best = o[j];\n    where = j;\n  }\nfor (ushort d = 16; d > 0; d /= 2) {\n  float other = simd_shuffle_xor(best, d);\n  uint at = simd_shuffle_xor(where, d);\n  if (other > best || (other == best && at < where)) {\n    best = other;\n    where = at;\n  }\n}\nn[i] = int(where);",
    ),
    right(
        "scan by shuffles",
        "uint x = t;\nfor (ushort d = 1; d < 32; d *= 2) {\n  uint other = simd_shuffle_up(x, d);\n  if (lane >= d)\n    x += other;\n}\nn[i] = int(x);",
    ),
    right(
        "shuffles with a filling",
        "float x = simd_shuffle_and_fill_up(float(t), float(i), ushort(3)) + simd_shuffle_rotate_down(float(t), ushort(40 % 32)) + quad_shuffle_xor(float(t), ushort(2)) + quad_broadcast(float(t), ushort(3));\no[i] = x;",
    ),
    right(
        "votes in loops of several lengths",
        "uint left = lane;\nint rounds = 0;\nwhile (simd_any(left > 0)) {\n  left = left > 4 ? left - 4 : 0;\n  ++rounds;\n}\nn[i] = rounds;",
    ),
    right(
        "active lanes one after the other",
        "bool done = false;\nwhile (!done) {\n  uint first = simd_broadcast_first(lane);\n  if (first / 4 == lane / 4) {\n    o[i] = simd_sum(1.0f);\n    done = true;\n  }\n}",
    ),
    right(
        "one value by all lanes",
        "threadgroup uint total;\nuint x = simd_sum(1u);\ntotal = x;\n"
        + SYNC
        + "n[i] = int(total);",
    ),
    right(
        "read-only aliases",
        "device const int4 *v = (device const int4 *)n;\ndevice const ushort *h = (device const ushort *)n;\nconstant const uchar *bytes = (constant const uchar *)&z;\no[i] = v[t].x + h[t * 2] + bytes[t % 4];",
    ),
]
TRICKY = [*FENCES, *ATOMICS, *BARRIERS, *VALUES]
