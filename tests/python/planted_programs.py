"""Long programs with the shape of real kernels, right as they are, and changes that make one defect each.

A product of matrices with two stages of tiles and ragged edges, an attention with an online softmax, and a radix sort. The
line of a defect ends in ``// HERE``, and that of a race's other side in ``// THERE``.
"""

from __future__ import annotations

from dataclasses import dataclass

HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"
SYNC = "threadgroup_barrier(mem_flags::mem_threadgroup);"


def _product() -> str:
    """c = a * b for matrices of 61x50 and 50x53, tiles of 32x32x16, 128 threads with 2x4 numbers each."""
    out = [
        "constant int M = 61, N = 53, K = 50, BM = 32, BN = 32, BK = 16;",
        "template <int ROWS, int COLUMNS>",
        "void load_tile(device const float *from, threadgroup float *to, int pitch, int rows, int columns, int t) {",
        "  for (int j = t; j < ROWS * COLUMNS; j += 128) {",
        "    int r = j / COLUMNS, q = j % COLUMNS;",
        "    to[r * (COLUMNS + 1) + q] = r < rows && q < columns ? from[r * pitch + q] : 0.0f;",
        "  }",
        "}",
        "kernel void product(device const float *a, device const float *b, device float *c,",
        "                    uint2 group [[threadgroup_position_in_grid]], uint t [[thread_index_in_threadgroup]]) {",
        "  threadgroup float as[2][32 * 17];",
        "  threadgroup float bs[2][16 * 33];",
        "  int row = int(group.y) * BM, column = int(group.x) * BN;",
        "  int r0 = int(t) / 8 * 2, q0 = int(t) % 8 * 4;",
    ]
    out += [f"  float c{i}{j} = 0;" for i in range(2) for j in range(4)]
    out += [
        "  int now = 0;",
        "  load_tile<32, 16>(a + row * K, as[0], K, M - row, K, int(t));",
        "  load_tile<16, 32>(b + column, bs[0], N, K, N - column, int(t));",
        "  " + SYNC + " // first",
        "  for (int k = 0; k < K; k += BK) {",
        "    int next = k + BK;",
        "    if (next < K) {",
        "      load_tile<32, 16>(a + row * K + next, as[now ^ 1], K, M - row, K - next, int(t));",
        "      load_tile<16, 32>(b + next * N + column, bs[now ^ 1], N, K - next, N - column, int(t));",
        "    }",
        "    threadgroup const float *ta = as[now] + r0 * 17;",
        "    threadgroup const float *tb = bs[now] + q0;",
    ]
    for k in range(16):
        out.append("    {")
        out += [f"      float a{i} = ta[{i * 17 + k}];" for i in range(2)]
        out += [f"      float b{j} = tb[{k * 33 + j}];" for j in range(4)]
        out += [f"      c{i}{j} = fma(a{i}, b{j}, c{i}{j});" for i in range(2) for j in range(4)]
        out.append("    }")
    out += [
        "    " + SYNC + " // loop",
        "    now ^= 1;",
        "  }",
        "  int r = row + r0, q = column + q0;",
    ]
    for i in range(2):
        for j in range(4):
            out += [
                f"  if (r + {i} < M && q + {j} < N)",
                f"    c[(r + {i}) * N + q + {j}] = c{i}{j};",
            ]
    return HEAD + "\n".join([*out, "}", ""])


def _attention() -> str:
    """Rows of 32 numbers: one query for each SIMD-group, keys in blocks of 32, the last one cut."""
    out = [
        "constant int KEYS = 75;",
        "kernel void attention(device const float *q, device const float *k, device const float *v, device float *o,",
        "                      uint g [[threadgroup_position_in_grid]], uint t [[thread_index_in_threadgroup]],",
        "                      uint lane [[thread_index_in_simdgroup]], uint sg [[simdgroup_index_in_threadgroup]]) {",
        "  threadgroup float ks[32][33], vs[32][33], ps[4][32];",
        "  int row = int(g) * 4 + int(sg);",
        "  float top = -INFINITY, sum = 0, result = 0;",
        "  float query = q[row * 32 + lane] * 0.17677669f;",
        "  threadgroup float qs[4][32];",
        "  qs[sg][lane] = query;",
        "  simdgroup_barrier(mem_flags::mem_threadgroup); // query",
        "  for (int first = 0; first < KEYS; first += 32) {",
        "    for (int j = int(sg); j < 32; j += 4) {",
        "      bool exists = first + j < KEYS;",
        "      ks[j][lane] = exists ? k[(first + j) * 32 + lane] : 0.0f;",
        "      vs[j][lane] = exists ? v[(first + j) * 32 + lane] : 0.0f;",
        "    }",
        "    " + SYNC + " // tile",
        "    float score = 0;",
    ]
    for d in range(32):
        out += [
            "    {",
            f"      float x = qs[sg][{d}];",
            f"      float y = ks[lane][{d}];",
            "      score = fma(x, y, score);",
            "    }",
        ]
    out += [
        "    if (first + int(lane) >= KEYS)",
        "      score = -INFINITY;",
        "    float best = max(top, simd_max(score));",
        "    float scale = exp(top - best);",
        "    float p = exp(score - best);",
        "    sum = sum * scale + simd_sum(p);",
        "    result *= scale;",
        "    top = best;",
        "    ps[sg][lane] = p;",
        "    simdgroup_barrier(mem_flags::mem_threadgroup); // weights",
    ]
    for j in range(32):
        out += [
            "    {",
            f"      float w = ps[sg][{j}];",
            f"      float y = vs[{j}][lane];",
            "      result = fma(w, y, result);",
            "    }",
        ]
    out += ["    " + SYNC + " // end", "  }", "  o[row * 32 + lane] = result / sum;"]
    return HEAD + "\n".join([*out, "}", ""])


def _sort() -> str:
    """256 keys of each threadgroup by their lowest 8 bits, 2 bits a pass, 128 threads with 2 keys each."""
    out = [
        "kernel void sort(device const uint *keys, device uint *sorted, uint g [[threadgroup_position_in_grid]],",
        "                 uint t [[thread_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]],",
        "                 uint sg [[simdgroup_index_in_threadgroup]]) {",
        "  threadgroup uint list[256];",
        "  threadgroup uint counts[4][4];",
        "  threadgroup uint starts[16];",
        "  list[t] = keys[g * 256 + t];",
        "  list[t + 128] = keys[g * 256 + t + 128];",
        "  " + SYNC + " // start",
    ]
    for step in range(4):
        shift = step * 2
        out.append(f"  {{ // bits {shift} and {shift + 1}")
        out += ["    uint one = list[2 * t], two = list[2 * t + 1];"]
        out += [f"    uint d1 = one >> {shift} & 3u, d2 = two >> {shift} & 3u;"]
        for d in range(4):
            out += [
                f"    uint mine{d} = uint(d1 == {d}u) + uint(d2 == {d}u);",
                f"    uint before{d} = simd_prefix_exclusive_sum(mine{d});",
                f"    uint total{d} = simd_sum(mine{d});",
            ]
        out += ["    if (lane == 0) {"]
        out += [f"      counts[{d}][sg] = total{d};" for d in range(4)]
        out += ["    }", f"    {SYNC} // counts {step}"]
        out += ["    if (t < 16) {", "      uint x = counts[t / 4][t % 4];"]
        out += [f"      starts[t] = simd_prefix_exclusive_sum(x); // scan {step}", "    }"]
        out += [f"    {SYNC} // starts {step}"]
        out += ["    uint at1 = 0, at2 = 0;"]
        for d in range(4):
            out += [
                f"    if (d1 == {d}u)",
                f"      at1 = starts[{4 * d} + sg] + before{d};",
                f"    if (d2 == {d}u)",
                f"      at2 = starts[{4 * d} + sg] + before{d} + uint(d1 == {d}u);",
            ]
        out += [
            f"    list[at1] = one; // first {step}",
            f"    list[at2] = two; // second {step}",
            f"    {SYNC} // pass {step}",
            "  }",
        ]
    # What follows is checked by the kernel itself, as a debug build would.
    for number in range(40):
        out += [
            f"  if (t == {number * 3}) {{",
            f"    uint low = list[{number * 6}] & 255u;",
            f"    uint high = list[{number * 6 + 1}] & 255u;",
            "    if (low > high)",
            f"      sorted[g * 256 + {number}] = 0xffffffffu;",
            "  }",
        ]
    out += ["  threadgroup_barrier(mem_flags::mem_device);"]
    out += ["  sorted[g * 256 + t] = list[t];", "  sorted[g * 256 + t + 128] = list[t + 128];"]
    return HEAD + "\n".join([*out, "}", ""])


@dataclass(frozen=True)
class Program:
    text: str
    launch: tuple[str, ...]


PROGRAMS = {
    "product": Program(
        _product(),
        (
            "--buffer=a=random:float:61x50:1",
            "--buffer=b=random:float:50x53:2",
            "--buffer=c=zeros:float:61x53",
            "--threadgroups=2,2",
            "--group=128",
            "--whole=c",
        ),
    ),
    "attention": Program(
        _attention(),
        (
            "--buffer=q=random:float:8x32:1",
            "--buffer=k=random:float:75x32:2",
            "--buffer=v=random:float:75x32:3",
            "--buffer=o=zeros:float:8x32",
            "--threadgroups=2",
            "--group=128",
            "--whole=o",
        ),
    ),
    "sort": Program(
        _sort(),
        (
            "--buffer=keys=random:uint:512:1",
            "--buffer=sorted=zeros:uint:512",
            "--threadgroups=2",
            "--group=128",
            "--whole=sorted",
        ),
    ),
}


@dataclass(frozen=True)
class Change:
    """Replaces texts that a program has once each."""

    name: str
    program: str
    changes: tuple[tuple[str, str], ...]
    says: tuple[str, ...]

    def text(self) -> str:
        text = PROGRAMS[self.program].text
        for old, new in self.changes:
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        return text


def without(mark: str) -> tuple[str, str]:
    return SYNC + " // " + mark, "// no barrier"


CHANGES = [
    Change(
        "no barrier behind the loads",
        "product",
        (
            without("first"),
            without("loop"),
            ("? from[r * pitch + q] : 0.0f;", "? from[r * pitch + q] : 0.0f; // HERE"),
            ("float a0 = ta[0];", "float a0 = ta[0]; // THERE"),
        ),
        ("a race: ", "of threadgroup variable "),
    ),
    Change(
        "no barrier at the end of the loop",
        "product",
        (
            without("loop"),
            ("? from[r * pitch + q] : 0.0f;", "? from[r * pitch + q] : 0.0f; // HERE"),
        ),
        ("a race: ", "of threadgroup variable ", "called in line"),
    ),
    Change(
        "barrier of the wrong memory",
        "product",
        (
            (SYNC + " // loop", "threadgroup_barrier(mem_flags::mem_device);"),
            ("? from[r * pitch + q] : 0.0f;", "? from[r * pitch + q] : 0.0f; // HERE"),
        ),
        ("a race: ", "of threadgroup variable "),
    ),
    Change(
        "one stage for two",
        "product",
        (
            ("as[now ^ 1], K, M", "as[now], K, M"),
            ("? from[r * pitch + q] : 0.0f;", "? from[r * pitch + q] : 0.0f; // HERE"),
        ),
        ("a race: ", "of threadgroup variable 'as'"),
    ),
    Change(
        "tile without its padding",
        "product",
        (
            ("float as[2][32 * 17]", "float as[2][32 * 16]"),
            ("? from[r * pitch + q] : 0.0f;", "? from[r * pitch + q] : 0.0f; // HERE"),
        ),
        ("of 4 bytes",),
    ),
    Change(
        "rows beyond the matrix",
        "product",
        (
            (
                "r < rows && q < columns ? from[r * pitch + q] : 0.0f;",
                "q < columns ? from[r * pitch + q] : 0.0f; // HERE",
            ),
        ),
        ("a load of 4 bytes at byte 11024 of 'b' (buffer 1), element 2756, which has 10600 bytes",),
    ),
    Change(
        "tile that is not filled at its edge",
        "product",
        (
            (
                "to[r * (COLUMNS + 1) + q] = r < rows && q < columns ? from[r * pitch + q] : 0.0f;",
                "if (r < rows && q < columns) to[r * (COLUMNS + 1) + q] = from[r * pitch + q];",
            ),
            ("float b0 = tb[0];", "float b0 = tb[0]; // HERE"),
        ),
        ("no thread of the threadgroup has written it",),
    ),
    Change(
        "store beyond a row",
        "product",
        (
            ("if (r + 1 < M && q + 3 < N)", "if (r + 1 < M)"),
            ("c[(r + 1) * N + q + 3] = c13;", "c[(r + 1) * N + q + 3] = c13; // HERE"),
        ),
        ("of 'c' (buffer 2)",),
    ),
    Change(
        "column that is not stored",
        "product",
        (("if (r + 0 < M && q + 3 < N)", "if (r + 0 < M && q + 7 < N)"),),
        ("no thread has written byte ", "of 'c' (buffer 2)"),
    ),
    Change(
        "loop that does not advance",
        "product",
        (
            ("for (int k = 0; k < K; k += BK) {", "for (int k = 0; k < K; k += BK / 32) { // HERE"),
            # The budget may end in the loop within.
            (
                "for (int j = t; j < ROWS * COLUMNS; j += 128) {",
                "for (int j = t; j < ROWS * COLUMNS; j += 128) { // HERE",
            ),
        ),
        ("the kernel does not end",),
    ),
    Change(
        "barrier of the threads with work",
        "product",
        ((SYNC + " // loop", f"if (t < 120)\n      {SYNC} // HERE"),),
        ("not all threads of the SIMD-group come to this threadgroup barrier",),
    ),
    Change(
        "no barrier behind the keys",
        "attention",
        (
            without("tile"),
            ("float y = ks[lane][0];", "float y = ks[lane][0]; // HERE"),
            (
                "? k[(first + j) * 32 + lane] : 0.0f;",
                "? k[(first + j) * 32 + lane] : 0.0f; // THERE",
            ),
        ),
        ("a race: ", "of threadgroup variable 'ks'"),
    ),
    Change(
        "no barrier at the end of a block",
        "attention",
        (
            without("end"),
            (
                "? k[(first + j) * 32 + lane] : 0.0f;",
                "? k[(first + j) * 32 + lane] : 0.0f; // HERE",
            ),
            (
                "? v[(first + j) * 32 + lane] : 0.0f;",
                "? v[(first + j) * 32 + lane] : 0.0f; // HERE",
            ),
        ),
        ("a race: ", "of threadgroup variable "),
    ),
    Change(
        "weights without a barrier of the SIMD-group",
        "attention",
        (
            ("simdgroup_barrier(mem_flags::mem_threadgroup); // weights", "// none"),
            ("ps[sg][lane] = p;", "ps[sg][lane] = p; // THERE"),
            ("float w = ps[sg][0];", "float w = ps[sg][0]; // HERE"),
        ),
        ("a race: ", "of threadgroup variable 'ps'", "do not run in lockstep"),
    ),
    Change(
        "weights with a barrier of no memory",
        "attention",
        (
            (
                "simdgroup_barrier(mem_flags::mem_threadgroup); // weights",
                "simdgroup_barrier(mem_flags::mem_none);",
            ),
            ("ps[sg][lane] = p;", "ps[sg][lane] = p; // THERE"),
            ("float w = ps[sg][0];", "float w = ps[sg][0]; // HERE"),
        ),
        ("a race: ", "of threadgroup variable 'ps'"),
    ),
    Change(
        "keys beyond the last one",
        "attention",
        (
            (
                "exists ? k[(first + j) * 32 + lane] : 0.0f;",
                "k[(first + j) * 32 + lane]; // HERE",
            ),
        ),
        ("a load of 4 bytes at byte 9728 of 'k' (buffer 1), element 2432, which has 9600 bytes",),
    ),
    Change(
        "one key too many",
        "attention",
        (
            ("bool exists = first + j < KEYS;", "bool exists = first + j <= KEYS;"),
            (
                "? k[(first + j) * 32 + lane] : 0.0f;",
                "? k[(first + j) * 32 + lane] : 0.0f; // HERE",
            ),
        ),
        ("a load of 4 bytes at byte 9600 of 'k' (buffer 1)",),
    ),
    Change(
        "block that is masked as a whole",
        "attention",
        (
            ("if (first + int(lane) >= KEYS)", "if (first + int(lane) >= KEYS || first == 0)"),
            ("float scale = exp(top - best);", "float scale = exp(top - best); // HERE"),
        ),
        ("a NaN comes of operands that are none",),
    ),
    Change(
        "sum that has no start",
        "attention",
        (
            (
                "float top = -INFINITY, sum = 0, result = 0;",
                "float top = -INFINITY, sum, result = 0;",
            ),
            ("sum = sum * scale + simd_sum(p);", "sum = sum * scale + simd_sum(p); // HERE"),
        ),
        ("'sum' is read before it has a value",),
    ),
    Change(
        "maximum of the lanes with keys",
        "attention",
        (
            ("if (first + int(lane) >= KEYS)", "if (first + int(lane) < KEYS)"),
            ("      score = -INFINITY;", "      score = simd_shuffle_xor(score, 16); // HERE"),
        ),
        ("which takes no part",),
    ),
    Change(
        "weights of one SIMD-group for all",
        "attention",
        (("ps[sg][lane] = p;", "ps[0][lane] = p; // HERE"),),
        ("a race: ", "of threadgroup variable 'ps'"),
    ),
    Change(
        "no barrier behind the counts",
        "sort",
        (
            without("counts 2"),
            (
                "starts[t] = simd_prefix_exclusive_sum(x); // scan 2",
                "starts[t] = simd_prefix_exclusive_sum(x);",
            ),
        ),
        ("a race: ", "of threadgroup variable 'counts'"),
    ),
    Change(
        "no barrier behind a pass",
        "sort",
        (without("pass 1"),),
        ("a race: ", "of threadgroup variable 'list'"),
    ),
    Change(
        "starts in a SIMD-group that is too small",
        "sort",
        (
            (
                "starts[t] = simd_prefix_exclusive_sum(x); // scan 3",
                "if (t < 15) starts[t] = simd_prefix_exclusive_sum(x);",
            ),
        ),
        ("a race: ", "of threadgroup variable 'list'"),
    ),
    Change(
        "two keys in one place",
        "sort",
        (
            (
                "list[at2] = two; // second 0",
                "list[at2 > 0 ? at2 - 1 : 0] = two; // HERE",
            ),
        ),
        ("a race: ", "of threadgroup variable 'list'"),
    ),
    Change(
        "keys behind the list",
        "sort",
        (("list[at2] = two; // second 3", "list[at2 + 1] = two; // HERE"),),
        (),
    ),
    Change(
        "shift by too much",
        "sort",
        (
            (
                "uint d1 = one >> 6 & 3u, d2 = two >> 6 & 3u;",
                "uint d1 = one >> (6 + (t & 64)) & 3u, d2 = two >> 6 & 3u; // HERE",
            ),
        ),
        ("shift",),
    ),
    Change(
        "results without a barrier of the device",
        "sort",
        (
            ("  threadgroup_barrier(mem_flags::mem_device);\n", "\n"),
            ("if (t == 0) {", "if (t < 2) {"),
            (
                "sorted[g * 256 + 0] = 0xffffffffu;",
                "sorted[g * 256 + 130 + (t ^ 1) * 60] = t; // THERE",
            ),
            ("    uint high = list[1] & 255u;", "    uint high = 0;\n    low = 1;"),
            (
                "sorted[g * 256 + t + 128] = list[t + 128];",
                "sorted[g * 256 + t + 128] = list[t + 128]; // HERE",
            ),
        ),
        ("a race: a store of 4 bytes", "of 'sorted' (buffer 1)", "mem_flags::mem_device"),
    ),
]
