"""What one threadgroup sees of another's stores, and waits of one for another, in portable launches of Metal text.

Each planted text has one defect. Its error names the line with the comment `// here`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest
from triton_metal import _native

SEEDS = (0, 1, 2, 3)

HEADER = """#include <metal_stdlib>
using namespace metal;
#define FENCE atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device)
#define SYNC threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup)
#define COHERENT coherent(device) device
#define AT uint t [[thread_index_in_threadgroup]], uint g [[threadgroup_position_in_grid]], \\
           uint n [[threadgroups_per_grid]], uint i [[thread_position_in_grid]]
"""


@dataclass
class Case:
    """A text with the kernel `k`, its buffers, and what its error says, if it has a defect."""

    name: str
    text: str
    buffers: Sequence[np.ndarray]
    says: str = ""
    groups: int = 4
    threads: int = 64
    results: dict[int, np.ndarray] = field(default_factory=dict)
    seeds: Sequence[int] = SEEDS


def zeros(count: int, dtype: type = np.float32) -> np.ndarray:
    return np.zeros(count, dtype)


def numbers(count: int, dtype: type = np.float32) -> np.ndarray:
    return np.arange(1, count + 1, dtype=dtype)


def launch(case: Case, seed: int) -> tuple[list[np.ndarray], str]:
    """The buffers after the launch, and its error."""
    library = _native.MetalLibrary(HEADER + case.text, portable=True)
    buffers = [np.array(buffer, copy=True) for buffer in case.buffers]
    bindings = [(buffer.ctypes.data, buffer.nbytes, True) for buffer in buffers]
    grid, group = (case.groups * case.threads, 1, 1), (case.threads, 1, 1)
    try:
        library.dispatch("k", bindings, grid, group, portable_seed=seed)
    except Exception as error:
        return buffers, str(error)
    return buffers, ""


def last_group(
    store: str = "COHERENT",
    load: str = "COHERENT",
    release: str = "FENCE;",
    late: str = "",
    acquire: str = "FENCE;",
) -> str:
    """The last threadgroup to take a ticket adds what all have stored."""
    return f"""kernel void k(device const float *x, device float *parts, device atomic_uint *count,
                     device float *out, AT) {{
  threadgroup uint ticket;
  {store} float *mine = ({store} float *)parts;
  {load} float *theirs = ({load} float *)parts;
  mine[i] = x[i] * 2;
  {release}
  SYNC;
  if (t == 0) {{
    ticket = atomic_fetch_add_explicit(count, 1u, memory_order_relaxed);
    {late}
  }}
  SYNC;
  {acquire}
  if (ticket == n - 1) {{
    float sum = 0;
    for (uint part = 0; part < n; ++part)
      sum += theirs[part * 64 + t]; // here
    out[t] = sum;
  }}
}}"""


def of_last_group(name: str, says: str, **parts: str) -> Case:
    return Case(
        name, last_group(**parts), [numbers(256), zeros(256), zeros(1, np.uint32), zeros(64)], says
    )


PLANTED = [
    of_last_group("nothing coherent", "not coherent(device)", store="device", load="device"),
    of_last_group("store not coherent", "not coherent(device)", store="device"),
    of_last_group("load not coherent", "a load through a pointer that is not", load="device"),
    of_last_group(
        "coherent to a threadgroup",
        "not coherent(device)",
        store="coherent(threadgroup) device",
    ),
    of_last_group("no fence", "without a fence", release="", acquire=""),
    of_last_group("no release but acquire", "no fence", release=""),
    of_last_group(
        "late release", "no fence between the store and the atomic", release="", late="FENCE;"
    ),
    of_last_group("no acquire", "the loading thread has no fence", acquire=""),
    of_last_group(
        "one thread releases", "the storing thread", release="", late="", acquire="SYNC; FENCE;"
    ),
    of_last_group("release by thread 0 only", "the storing thread", release="if (t == 0) FENCE;"),
    of_last_group(
        "acquire by thread 0 only", "the loading thread", acquire="if (t == 0) FENCE; SYNC;"
    ),
    of_last_group(
        "fence of threadgroup memory",
        "fence",
        release="atomic_thread_fence(mem_flags::mem_threadgroup, memory_order_seq_cst, thread_scope_device);",
    ),
    of_last_group(
        "fence of threadgroup scope",
        "fence",
        release="atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_threadgroup);",
    ),
    of_last_group(
        "relaxed fence",
        "fence",
        acquire="atomic_thread_fence(mem_flags::mem_device, memory_order_relaxed, thread_scope_device);",
    ),
    Case(
        "message through a plain flag",
        """kernel void k(device float *data, device uint *flag, device float *out, AT) {
  if (t == 0) {
    data[g] = 7;
    flag[g] = 1;
    out[g] = flag[(g + 1) % n]; // here
  }
}""",
        [zeros(4), zeros(4, np.uint32), zeros(4)],
        "not coherent(device)",
    ),
    Case(
        "plain load of a counter that others change",
        """kernel void k(device atomic_uint *count, device uint *out, AT) {
  if (t == 0) {
    out[g] = *(device const uint *)count; // here
    atomic_fetch_add_explicit(count, 1u, memory_order_relaxed);
  }
}""",
        [zeros(1, np.uint32), zeros(4, np.uint32)],
        "atomic_load_explicit",
    ),
    Case(
        "plain store to a counter",
        """kernel void k(device atomic_uint *count, device uint *out, AT) {
  if (t == 0) {
    if (g == n / 2)
      *(device uint *)count = 0;
    else
      out[g] = atomic_fetch_add_explicit(count, 1u, memory_order_relaxed); // here
  }
}""",
        [np.array([100], np.uint32), zeros(4, np.uint32)],
        "an atomic reads",
        seeds=(0, 2, 3),
    ),
    Case(
        "the output of a neighbour",
        """kernel void k(device const float *x, device float *y, AT) {
  y[i] = x[i];
  SYNC;
  if (t == 0)
    y[i] = y[(i + 64) % 256] + 1; // here
}""",
        [numbers(256), zeros(256)],
        "not coherent(device)",
    ),
    Case(
        "a stencil in place",
        """kernel void k(device float *x, AT) {
  float left = i ? x[i - 1] : 0.0f; // here
  SYNC;
  x[i] += left;
}""",
        [numbers(256)],
        "not coherent(device)",
        seeds=(0, 2, 3),  # of the other, the order is from the last to the first
    ),
    Case(
        "the sum of the threadgroup before",
        """kernel void k(device const float *x, device float *sums, AT) {
  float own = simd_sum(x[i]);
  if (t == 0)
    sums[g] = own + (g ? sums[g - 1] : 0.0f); // here
}""",
        [numbers(128), zeros(4)],
        "not coherent(device)",
        threads=32,
        seeds=(0, 2, 3),
    ),
    Case(
        "coherent dropped by a cast",
        last_group().replace("theirs[part * 64 + t]", "((device float *)theirs)[part * 64 + t]"),
        [numbers(256), zeros(256), zeros(1, np.uint32), zeros(64)],
        "a load through a pointer that is not",
    ),
    Case(
        "coherent dropped by a function",
        "inline float get(const device float *from, uint at) { return from[at]; } // here\n"
        + last_group()
        .replace(
            "theirs[part * 64 + t]; // here", "get((const device float *)theirs, part * 64 + t);"
        )
        .replace("// here", ""),
        [numbers(256), zeros(256), zeros(1, np.uint32), zeros(64)],
        "a load through a pointer that is not",
    ),
    Case(
        "bytes of one word",
        """kernel void k(device uchar *x, device atomic_uint *order, device uint *out, AT) {
  if (t == 0) {
    x[g] = uchar(g + 1);
    atomic_fetch_add_explicit(order, 1u, memory_order_relaxed);
    out[g] = x[g ^ 1]; // here
  }
}""",
        [zeros(4, np.uint8), zeros(1, np.uint32), zeros(4, np.uint32)],
        "not coherent(device)",
    ),
    Case(
        "vectors",
        """kernel void k(device float4 *x, device float4 *out, AT) {
  x[i] = float4(i, 1, 2, 3);
  out[i] = x[255 - i]; // here
}""",
        [zeros(1024), zeros(1024)],
        "not coherent(device)",
    ),
    Case(
        "a struct",
        """struct Part { float sum; uint count; };
kernel void k(device Part *parts, device float *out, AT) {
  if (t == 0) {
    parts[g] = Part{float(g) + 1, 1};
    Part other = parts[(g + 1) % n]; // here
    out[g] = other.sum;
  }
}""",
        [zeros(8), zeros(4)],
        "not coherent(device)",
    ),
    Case(
        "parts in relaxed atomics",
        last_group(release="", acquire="")
        .replace(
            "mine[i] = x[i] * 2;",
            "atomic_store_explicit((device atomic_float *)parts + i, x[i] * 2, memory_order_relaxed);",
        )
        .replace(
            "theirs[part * 64 + t]",
            "atomic_load_explicit((device atomic_float *)parts + part * 64 + t, memory_order_relaxed)",
        ),
        [numbers(256), zeros(256), zeros(1, np.uint32), zeros(64)],
        "relaxed atomics on different memory are not ordered",
    ),
    Case(
        "barrier of threadgroup memory",
        """kernel void k(device float *x, device float *out, AT) {
  x[i] = t;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = x[i ^ 32]; // here
}""",
        [zeros(256), zeros(256)],
        "no threadgroup_barrier(mem_flags::mem_device)",
    ),
    Case(
        "barrier of no memory",
        """kernel void k(device float *x, device float *out, AT) {
  x[i] = t;
  threadgroup_barrier(mem_flags::mem_none);
  out[i] = x[i ^ 32]; // here
}""",
        [zeros(256), zeros(256)],
        "no threadgroup_barrier(mem_flags::mem_device)",
        groups=1,
    ),
    Case(
        "barrier of no memory before an atomic",
        """kernel void k(device atomic_uint *count, device uint *out, AT) {
  device atomic_uint *mine = count + g;
  if (t == 0)
    *(device uint *)mine = 1000;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (t == 32)
    out[g] = atomic_fetch_add_explicit(mine, 1u, memory_order_relaxed); // here
}""",
        [zeros(4, np.uint32), zeros(4, np.uint32)],
        "no threadgroup_barrier(mem_flags::mem_device)",
    ),
]

WAITS = "waits for another threadgroup"

WAITING = [
    Case(
        "a flag",
        """kernel void k(device atomic_uint *flag, device uint *out, AT) {
  if (t == 0) {
    atomic_store_explicit(flag + g, 1u, memory_order_relaxed);
    while (atomic_load_explicit(flag + (g + 1) % n, memory_order_relaxed) == 0) // here
      ;
    out[g] = 1;
  }
}""",
        [zeros(4, np.uint32), zeros(4, np.uint32)],
        WAITS,
    ),
    Case(
        "a volatile flag",
        """kernel void k(volatile device uint *flag, device uint *out, AT) {
  flag[g] = 1;
  uint spins = 0;
  do { // here
    ++spins;
  } while (flag[(g + 1) % n] == 0);
  out[g] = 1;
}""",
        [zeros(4, np.uint32), zeros(4, np.uint32)],
        WAITS,
    ),
    Case(
        "a barrier of all threadgroups",
        """inline void meet(device atomic_uint *count, uint n) {
  atomic_fetch_add_explicit(count, 1u, memory_order_relaxed);
  while (atomic_load_explicit(count, memory_order_relaxed) < n) { // here
  }
}
kernel void k(device atomic_uint *count, device uint *out, AT) {
  if (t == 0)
    meet(count, n);
  SYNC;
  out[i] = 1;
}""",
        [zeros(1, np.uint32), zeros(256, np.uint32)],
        WAITS,
    ),
    Case(
        "a turn",
        """kernel void k(device atomic_uint *turn, device uint *out, AT) {
  if (t == 0) {
    for (;;) { // here
      if (atomic_load_explicit(turn, memory_order_relaxed) == g)
        break;
    }
    out[g] = 1;
    atomic_store_explicit(turn, g + 1, memory_order_relaxed);
  }
}""",
        [zeros(1, np.uint32), zeros(4, np.uint32)],
        WAITS,
    ),
    Case(
        "look-back",
        """kernel void k(device const uint *x, device atomic_uint *state, device uint *out, AT) {
  threadgroup uint before;
  uint sum = simd_sum(x[i]);
  if (t == 0) {
    atomic_store_explicit(state + g, sum << 2 | 1u, memory_order_relaxed);
    uint exclusive = 0;
    for (int at = int(g) - 1; at >= 0;) { // here
      uint word = atomic_load_explicit(state + at, memory_order_relaxed);
      if ((word & 3) == 0)
        continue;
      exclusive += word >> 2;
      if ((word & 3) == 2)
        break;
      --at;
    }
    atomic_store_explicit(state + g, (exclusive + sum) << 2 | 2u, memory_order_relaxed);
    before = exclusive;
  }
  SYNC;
  out[i] = before;
}""",
        [numbers(256, np.uint32), zeros(8, np.uint32), zeros(256, np.uint32)],
        WAITS,
        groups=8,
        threads=32,
    ),
    Case(
        "a lock that another threadgroup keeps",
        """kernel void k(device atomic_uint *lock, device uint *sum, AT) {
  if (t == 0) {
    uint expected = 0;
    while (!atomic_compare_exchange_weak_explicit(lock, &expected, 1u, memory_order_relaxed, // here
                                                  memory_order_relaxed))
      expected = 0;
    *sum += 1;
    if (g != n / 2)
      atomic_store_explicit(lock, 0u, memory_order_relaxed);
  }
}""",
        [zeros(1, np.uint32), zeros(1, np.uint32)],
        WAITS,
    ),
    Case(
        "a threadgroup's own threads",
        """kernel void k(device uint *out, AT) {
  threadgroup atomic_uint flag;
  if (t == 0)
    atomic_store_explicit(&flag, 0u, memory_order_relaxed);
  SYNC;
  if (t < 32)
    while (atomic_load_explicit(&flag, memory_order_relaxed) == 0) // here
      ;
  if (t == 32)
    atomic_store_explicit(&flag, 1u, memory_order_relaxed);
  out[i] = 1;
}""",
        [zeros(256, np.uint32)],
        "waits for another thread of its threadgroup",
    ),
]


WAITING += [
    Case(
        "a lock",
        """kernel void k(device atomic_uint *lock, device uint *sum, AT) {
  COHERENT uint *shared = (COHERENT uint *)sum;
  if (t == 0) {
    uint expected = 0;
    while (!atomic_compare_exchange_weak_explicit(lock, &expected, 1u, memory_order_relaxed, // here
                                                  memory_order_relaxed))
      expected = 0;
    FENCE;
    *shared += 1;
    FENCE;
    atomic_store_explicit(lock, 0u, memory_order_relaxed);
  }
}""",
        [zeros(1, np.uint32), zeros(1, np.uint32)],
        WAITS,
        groups=8,
    ),
    Case(
        "look-back in the order of tickets",
        """kernel void k(device const uint *x, device atomic_uint *state, device uint *out,
                     device atomic_uint *tickets, AT) {
  threadgroup uint before;
  uint sum = simd_sum(x[i]);
  if (t == 0) {
    uint own = atomic_fetch_add_explicit(tickets, 1u, memory_order_relaxed);
    uint exclusive = 0;
    if (own) {
      uint word;
      do { // here
        word = atomic_load_explicit(state + own - 1, memory_order_relaxed);
      } while (word == 0);
      exclusive = word - 1;
    }
    atomic_store_explicit(state + own, exclusive + sum + 1, memory_order_relaxed);
    before = exclusive;
  }
  SYNC;
  out[i] = before;
}""",
        [numbers(256, np.uint32), zeros(8, np.uint32), zeros(256, np.uint32), zeros(1, np.uint32)],
        WAITS,
        groups=8,
        threads=32,
    ),
]


def line_of(case: Case) -> int:
    lines = (HEADER + case.text).split("\n")
    found = [number for number, line in enumerate(lines, 1) if "// here" in line]
    assert len(found) == 1
    return found[0]


def ids(case: Case) -> str:
    return re.sub(r"\W+", "-", case.name)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("case", [case for case in PLANTED + WAITING if case.says], ids=ids)
def test_planted(case: Case, seed: int) -> None:
    if seed not in case.seeds:
        pytest.skip("the order of this seed does not show it")
    buffers, error = launch(case, seed)
    assert f"kernel 'k', line {line_of(case)}:" in error
    assert case.says in error
    for buffer, before in zip(buffers, case.buffers, strict=True):
        np.testing.assert_array_equal(buffer, before)


INNOCENT = [
    Case(
        "last threadgroup",
        last_group(),
        [numbers(256), zeros(256), zeros(1, np.uint32), zeros(64)],
        results={3: (2 * numbers(256)).reshape(4, 64).sum(0)},
    ),
    Case(
        "last threadgroup of one SIMD-group",
        last_group().replace("part * 64", "part * 32"),
        [numbers(256), zeros(256), zeros(1, np.uint32), zeros(32)],
        groups=8,
        threads=32,
        results={3: (2 * numbers(256)).reshape(8, 32).sum(0)},
    ),
    Case(
        "parts in atomics with fences",
        last_group()
        .replace(
            "mine[i] = x[i] * 2;",
            "atomic_store_explicit((device atomic_float *)parts + i, x[i] * 2, memory_order_relaxed);",
        )
        .replace(
            "theirs[part * 64 + t]",
            "atomic_load_explicit((device atomic_float *)parts + part * 64 + t, memory_order_relaxed)",
        ),
        [numbers(256), zeros(256), zeros(1, np.uint32), zeros(64)],
        results={3: (2 * numbers(256)).reshape(4, 64).sum(0)},
    ),
    Case(
        "functions of coherent pointers",
        "inline float get(const COHERENT float *from, uint at) { return from[at]; }\n"
        + last_group().replace("theirs[part * 64 + t]", "get(theirs, part * 64 + t)"),
        [numbers(256), zeros(256), zeros(1, np.uint32), zeros(64)],
        results={3: (2 * numbers(256)).reshape(4, 64).sum(0)},
    ),
    Case(
        "templates, auto and references of coherent memory",
        """template <typename T> struct Slots {
  COHERENT T *at;
  T get(uint i) const { return at[i]; }
  void set(uint i, T value) const { COHERENT T &slot = at[i]; slot = value; }
};
typedef COHERENT float4 *Shared;
"""
        + last_group()
        .replace("mine[i] = x[i] * 2;", "Slots<float>{mine}.set(i, x[i] * 2);")
        .replace("theirs[part * 64 + t]", "Slots<float>{theirs}.get(part * 64 + t)")
        .replace(
            "float sum = 0;",
            "float sum = 0; auto again = (Shared)theirs + 1; sum -= 0 * again[-1].x;",
        ),
        [numbers(256), zeros(256), zeros(1, np.uint32), zeros(64)],
        results={3: (2 * numbers(256)).reshape(4, 64).sum(0)},
    ),
    Case(
        "a coherent parameter",
        last_group(store="COHERENT", load="COHERENT")
        .replace("device float *parts", "COHERENT float *parts")
        .replace("theirs[", "parts["),
        [numbers(256), zeros(256), zeros(1, np.uint32), zeros(64)],
        results={3: (2 * numbers(256)).reshape(4, 64).sum(0)},
    ),
    Case(
        "one thread stores for its threadgroup",
        """kernel void k(device const float *x, device float *parts, device atomic_uint *count,
                     device float *out, AT) {
  COHERENT float *shared = (COHERENT float *)parts;
  float own = simd_sum(x[i]);
  if (t == 0) {
    shared[g] = own;
    FENCE;
    uint ticket = atomic_fetch_add_explicit(count, 1u, memory_order_relaxed);
    FENCE;
    if (ticket == n - 1) {
      float sum = 0;
      for (uint part = 0; part < n; ++part)
        sum += shared[part];
      *out = sum;
    }
  }
}""",
        [numbers(256), zeros(8), zeros(1, np.uint32), zeros(1)],
        groups=8,
        threads=32,
        results={3: np.array([numbers(256).sum()])},
    ),
    Case(
        "a histogram",
        """kernel void k(device const uint *x, device atomic_uint *bins, AT) {
  atomic_fetch_add_explicit(bins + x[i] % 8, 1u, memory_order_relaxed);
}""",
        [numbers(256, np.uint32), zeros(8, np.uint32)],
        results={1: np.full(8, 32, np.uint32)},
    ),
    Case(
        "a sum of floats",
        """kernel void k(device const float *x, device atomic_float *sum, AT) {
  float own = simd_sum(x[i]);
  if (simd_is_first())
    atomic_fetch_add_explicit(sum, own, memory_order_relaxed);
}""",
        [numbers(256), zeros(1)],
        results={1: np.array([numbers(256).sum()])},
    ),
    Case(
        "a maximum by compare-and-exchange",
        """kernel void k(device const uint *x, device atomic_uint *most, AT) {
  uint old = atomic_load_explicit(most, memory_order_relaxed);
  while (old < x[i] && !atomic_compare_exchange_weak_explicit(most, &old, x[i], memory_order_relaxed,
                                                              memory_order_relaxed))
    ;
}""",
        [numbers(256, np.uint32), zeros(1, np.uint32)],
        results={1: np.array([256], np.uint32)},
    ),
    Case(
        "a queue of work",
        """kernel void k(device const float *x, device float *y, device atomic_uint *next, AT) {
  threadgroup uint tile;
  for (;;) {
    if (t == 0)
      tile = atomic_fetch_add_explicit(next, 1u, memory_order_relaxed);
    SYNC;
    uint own = tile;
    SYNC;
    if (own >= 16)
      return;
    y[own * 64 + t] = x[own * 64 + t] + 1;
  }
}""",
        [numbers(1024), zeros(1024), zeros(1, np.uint32)],
        results={1: numbers(1024) + 1},
    ),
    Case(
        "in place",
        "kernel void k(device float *x, AT) { x[i] = x[i] * 2 + 1; x[i] += x[i]; }",
        [numbers(256)],
        results={0: 4 * numbers(256) + 2},
    ),
    Case(
        "bytes in place",
        "kernel void k(device uchar *x, AT) { x[i * 3] += 1; x[i * 3 + 1] = x[i * 3] + 1; x[i * 3 + 2] ^= 0; }",
        [np.zeros(768, np.uint8)],
        results={0: np.tile(np.array([1, 2, 0], np.uint8), 256)},
    ),
    Case(
        "a threadgroup's own scratch",
        """kernel void k(device float *x, device float *out, AT) {
  x[i] = t;
  threadgroup_barrier(mem_flags::mem_device);
  out[i] = x[i ^ 32];
  threadgroup_barrier(mem_flags::mem_device);
  x[i] = 2 * t;
  threadgroup_barrier(mem_flags::mem_device);
  out[i] += x[i ^ 63];
}""",
        [zeros(256), zeros(256)],
        results={1: np.tile((np.arange(64) ^ 32) + 2 * (np.arange(64) ^ 63), 4).astype(np.float32)},
    ),
    Case(
        "a stale value that does not matter",
        """kernel void k(device float *x, device float *out, AT) {
  float other = x[(i + 64) % 256];
  x[i] = 1;
  out[i] = other > 5 ? 1.0f : 2.0f;
}""",
        [zeros(256), zeros(256)],
        results={1: np.full(256, 2, np.float32)},
    ),
    Case(
        "the same value from all threadgroups",
        """kernel void k(device uint *flag, device uint *out, AT) {
  flag[0] = 1;
  out[i] = flag[0];
}""",
        [zeros(1, np.uint32), zeros(256, np.uint32)],
        results={1: np.ones(256, np.uint32)},
    ),
    Case(
        "a long loop that ends",
        """kernel void k(device atomic_uint *stop, device uint *out, AT) {
  uint value = i;
  for (uint round = 0; round < 20000; ++round) {
    if (atomic_load_explicit(stop, memory_order_relaxed))
      break;
    value = value * 1664525u + 1013904223u;
  }
  out[i] = value | 1;
  if (false)
    atomic_store_explicit(stop, 1u, memory_order_relaxed);
}""",
        [zeros(1, np.uint32), zeros(32, np.uint32)],
        groups=1,
        threads=32,
    ),
    Case(
        "attempts with a limit",
        """kernel void k(device atomic_uint *flag, device uint *out, AT) {
  uint attempts = 0;
  while (atomic_load_explicit(flag, memory_order_relaxed) == 0 && attempts < 10000)
    ++attempts;
  out[i] = 1;
  atomic_fetch_add_explicit(flag + 1, 1u, memory_order_relaxed);
}""",
        [zeros(2, np.uint32), zeros(256, np.uint32)],
        results={1: np.ones(256, np.uint32)},
    ),
    Case(
        "a list that is walked",
        """kernel void k(device const uint *next, device uint *out, AT) {
  uint at = i;
  while (next[at] != at)
    at = next[at];
  out[i] = at;
}""",
        [np.maximum(np.arange(256) - 1, 0).astype(np.uint32), zeros(256, np.uint32)],
        results={1: np.zeros(256, np.uint32)},
    ),
]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("case", INNOCENT, ids=ids)
def test_innocent(case: Case, seed: int) -> None:
    buffers, error = launch(case, seed)
    assert error == ""
    for index, result in case.results.items():
        np.testing.assert_array_equal(buffers[index], result)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_weak_exchange_may_fail_without_a_reason(seed: int) -> None:
    once = """kernel void k(device atomic_uint *flags, device uint *won, AT) {
  uint expected = 0;
  won[i] = atomic_compare_exchange_weak_explicit(flags + i, &expected, 1u, memory_order_relaxed, memory_order_relaxed);
  if (expected) won[i] = 9;
}"""
    case = Case("once", once, [zeros(256, np.uint32), zeros(256, np.uint32)])
    (flags, won), error = launch(case, seed)
    assert error == ""
    assert set(won.tolist()) == {0, 1}
    np.testing.assert_array_equal(flags, won)
    again = once.replace("  won[i] =", "  while (!").replace(
        "memory_order_relaxed);", "memory_order_relaxed) && !expected);"
    )
    again = again.replace("  if (expected) won[i] = 9;", "  won[i] = 1;")
    (flags, won), error = launch(Case("again", again, case.buffers), seed)
    assert error == ""
    np.testing.assert_array_equal(flags, np.ones(256))
    np.testing.assert_array_equal(won, np.ones(256))
