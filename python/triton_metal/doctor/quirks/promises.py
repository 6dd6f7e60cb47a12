"""Questions about what Metal does not promise. The answers are facts about a Mac, neither right nor wrong."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from .form import SAFE, Buffer, Form, Question, zeros

_OUT = (Buffer("out", "uint", zeros(64)),)


def _floats(bits: Any) -> Any:
    import numpy as np

    return np.asarray(bits, np.uint32).view(np.float32)


def _question(
    name: str,
    asks: str,
    source: str,
    body: str,
    answer: Callable[[Any], str],
    inputs: tuple[Buffer, ...] = (),
    *,
    pragmas: str = SAFE,
    header: str = "",
    groups: int = 1,
    needs: tuple[str, ...] = (),
) -> Question:
    """A question whose answer is in the words of ``out``."""

    def answered(outputs: Mapping[str, Any]) -> str:
        return answer(outputs["out"])

    form = Form(body, header=header, pragmas=pragmas)
    return Question(name, asks, source, inputs, _OUT, form, answered, groups=groups, needs=needs)


def _input(name: str, type: str, values: list[Any]) -> Buffer:
    return Buffer(name, type, lambda: (values * 32)[:32])


def _flushed(bits: int) -> str:
    return "flushed to zero" if bits == 0 else "kept"


def _subnormals() -> list[Question]:
    small = _input("x", "float", [2.0**-100])
    # 2^-140 and 2^-130 are subnormal, 2^-20 is subnormal in half.
    return [
        _question(
            "subnormal-fp32",
            "a subnormal fp32: as the result of a product; as an operand (x * 2^20)",
            "ml-explore/mlx#4205",
            "  float tiny = as_type<float>(bits[thread_index_in_threadgroup]);\n"
            "  out[thread_index_in_threadgroup] = as_type<uint>(x[thread_index_in_threadgroup] * "
            "9.094947e-13f);\n"
            "  out[32u + thread_index_in_threadgroup] = as_type<uint>(tiny * 1048576.0f);\n",
            lambda out: f"result {_flushed(int(out[0]))}; operand {_flushed(int(out[32]))}",
            (small, _input("bits", "uint", [1 << 19])),
        ),
        _question(
            "subnormal-bfloat",
            "a subnormal bfloat as the result of a conversion and as an operand",
            "ml-explore/mlx#4205",
            "  float tiny = as_type<float>(bits[thread_index_in_threadgroup]);\n"
            "  bfloat narrow = bfloat(tiny);\n"
            "  out[thread_index_in_threadgroup] = uint(as_type<ushort>(narrow));\n"
            "  bfloat operand = as_type<bfloat>(ushort(bits[thread_index_in_threadgroup] >> 16));\n"
            "  out[32u + thread_index_in_threadgroup] = as_type<uint>(float(operand) * 1048576.0f);\n",
            lambda out: f"result {_flushed(int(out[0]))}; operand {_flushed(int(out[32]))}",
            (_input("bits", "uint", [1 << 19]),),
            needs=("bfloat",),
        ),
        _question(
            "subnormal-half",
            "a subnormal half as the result of a product",
            "ml-explore/mlx#4205",
            "  half narrow = half(x[thread_index_in_threadgroup]) * half(0.0009765625f);\n"
            "  out[thread_index_in_threadgroup] = uint(as_type<ushort>(narrow));\n",
            lambda out: _flushed(int(out[0])),
            (_input("x", "float", [2.0**-10]),),
        ),
    ]


def _nan(value: float) -> str:
    return "NaN" if math.isnan(value) else f"{value:g}"


def _nans() -> list[Question]:
    x = _input("x", "float", [3.0, math.nan, 1.0, 2.0])
    return [
        _question(
            "simd-max-nan",
            "simd_max and simd_min of 3, NaN, 1, 2, ...",
            "Metal Shading Language Specification, 6.9.2",
            "  float value = x[thread_index_in_threadgroup];\n"
            "  out[thread_index_in_threadgroup] = as_type<uint>(simd_max(value));\n"
            "  out[32u + thread_index_in_threadgroup] = as_type<uint>(simd_min(value));\n",
            lambda out: f"{_nan(_floats(out)[0])} and {_nan(_floats(out)[32])}",
            (x,),
        ),
        _question(
            "fmax-nan",
            "fmax(3, NaN) and max(NaN, 3)",
            "Metal Shading Language Specification, 6.5",
            "  out[thread_index_in_threadgroup] = as_type<uint>(fmax(x[0], x[1]));\n"
            "  out[32u + thread_index_in_threadgroup] = as_type<uint>(max(x[1], x[0]));\n",
            lambda out: f"{_nan(_floats(out)[0])} and {_nan(_floats(out)[32])}",
            (x,),
        ),
        _question(
            "conversions",
            "float to int of 1e20, -1e20 and NaN",
            "Metal Shading Language Specification, 2.15",
            "  out[thread_index_in_threadgroup] =\n"
            "      as_type<uint>(int(x[thread_index_in_threadgroup]));\n",
            lambda out: ", ".join(str(int(v)) for v in out[:3].astype("int32")),
            (_input("x", "float", [1e20, -1e20, math.nan]),),
        ),
    ]


def _shuffles() -> list[Question]:
    result = []
    for type, value, read in (
        ("half2", "half2(half(i), 1)", "uint(found.x)"),
        ("char4", "char4(char(i), 1, 1, 1)", "uint(found.x)"),
        ("float4", "float4(float(i), 1, 1, 1)", "uint(found.x)"),
        ("float2", "float2(float(i), 1)", "uint(found.x)"),
        ("int2", "int2(int(i), 1)", "uint(found.x)"),
        ("bfloat", "bfloat(float(i))", "uint(float(found))"),
        ("ulong", "ulong(i)", "uint(found)"),
        ("uchar", "uchar(i)", "uint(found)"),
        ("bool", "(i & 1u) != 0u", "(found ? i ^ 2u : i & 0u)"),
    ):
        wanted = "i ^ 2u" if type != "bool" else "((i & 1u) != 0u ? i ^ 2u : 0u)"
        result.append(
            _question(
                f"shuffle-{type}",
                f"simd_shuffle_xor of {type}",
                "Metal Shading Language Specification, 6.9.2; candle#1614, modular#5487",
                "  uint i = thread_index_in_simdgroup;\n"
                f"  {type} found = simd_shuffle_xor({type}({value}), ushort(2));\n"
                f"  out[i] = {read} == {wanted} ? 1u : 0u;\n",
                lambda out: "compiles, right" if out[:32].all() else "compiles, wrong values",
                needs=("bfloat",) if type == "bfloat" else (),
            )
        )

    def past_the_end(out: Any) -> str:
        last = [int(v) for v in out[28:32]]
        if last == [28, 29, 30, 31]:
            return "the lane's own value"
        if last == [0, 0, 0, 0]:
            return "0"
        if last == [0, 1, 2, 3]:
            return "the lanes from 0 on"
        return "values " + ", ".join(map(str, last))

    result.append(
        _question(
            "shuffle-past-the-end",
            "simd_shuffle_down by 4 in lanes 28 to 31",
            "Metal Shading Language Specification, 6.9.2",
            "  uint i = thread_index_in_simdgroup;\n  out[i] = simd_shuffle_down(i, ushort(4));\n",
            past_the_end,
        )
    )
    result.append(
        _question(
            "shuffle-inactive",
            "simd_shuffle_xor by 1 where only even lanes take part (lane i holds i + 1)",
            "Metal Shading Language Specification, 6.9.2",
            "  uint i = thread_index_in_simdgroup;\n"
            "  if ((i & 1u) == 0u)\n"
            "    out[i] = simd_shuffle_xor(i + 1u, ushort(1));\n",
            lambda out: (
                "the inactive lane's value"
                if [int(v) for v in out[:8:2]] == [2, 4, 6, 8]
                else "0"
                if not out[:32].any()
                else "values " + ", ".join(str(int(v)) for v in out[:8:2])
            ),
        )
    )
    return result


def _integers() -> list[Question]:
    numbers = (
        _input("a", "int", [7, -7, -2147483648, 5]),
        _input("b", "int", [0, 0, -1, 3]),
    )
    first = "  uint i = thread_index_in_threadgroup;\n"
    return [
        _question(
            "division-by-zero",
            "7 / 0, -7 / 0 and -2147483648 / -1; the same with %",
            "Metal Shading Language Specification, 3.1",
            first + "  out[i] = as_type<uint>(a[i] / b[i]);\n"
            "  out[32u + i] = as_type<uint>(a[i] % b[i]);\n",
            lambda out: (
                ", ".join(str(int(v)) for v in out[:3].astype("int32"))
                + "; "
                + ", ".join(str(int(v)) for v in out[32:35].astype("int32"))
            ),
            numbers,
        ),
        _question(
            "remainder-of-negatives",
            "-7 % 3, 7 % -3 and -7 % -3",
            "Metal Shading Language Specification, 3.1",
            first + "  out[i] = as_type<uint>(a[i] % b[i]);\n",
            lambda out: ", ".join(str(int(v)) for v in out[:3].astype("int32")),
            (_input("a", "int", [-7, 7, -7, 1]), _input("b", "int", [3, -3, -3, 1])),
        ),
        _question(
            "wide-shifts",
            "1 << 32, 1 << 33 and 2147483648u >> 32",
            "Metal Shading Language Specification, 3.1",
            first + "  out[i] = b[i] == 2u ? a[i] >> 32u * (b[i] - 1u) : a[i] << (32u + b[i]);\n",
            lambda out: ", ".join(str(int(v)) for v in out[:3]),
            (_input("a", "uint", [1, 1, 1 << 31, 1]), _input("b", "uint", [0, 1, 2, 0])),
        ),
    ]


def _memory() -> list[Question]:
    return [
        _question(
            "threadgroup-memory-at-start",
            "threadgroup memory that nothing has written",
            "Metal Shading Language Specification, 4.4",
            "  threadgroup uint words[1024];\n"
            "  uint found = 0;\n"
            "  for (uint k = 0; k < 32u; ++k)\n"
            "    found |= words[k * 32u + thread_index_in_threadgroup];\n"
            "  threadgroup_barrier(mem_flags::mem_threadgroup);\n"
            "  if (threadgroup_position_in_grid.x == 0u)\n"
            "    out[thread_index_in_threadgroup] = found;\n"
            "  words[thread_index_in_threadgroup] = out[63] + 1u;\n",
            lambda out: "zeros" if not out[:32].any() else "other values",
            groups=4,
        ),
        _question(
            "coherent-between-threadgroups",
            "a store in one threadgroup, read in another: coherent(device), seq_cst fences, an atomic flag",
            "KhronosGroup/SPIRV-Cross#2473; Metal Shading Language Specification, 4.8, 6.15.3",
            """\
  coherent(device) device uint *shared = (coherent(device) device uint *)out;
  device atomic_uint *flag = (device atomic_uint *)(out + 40);
  if (threadgroup_position_in_grid.x == 0u) {
    if (thread_index_in_threadgroup == 0u) {
      for (uint k = 0; k < 8u; ++k)
        shared[k] = 100u + k;
      atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);
      atomic_store_explicit(flag, 1u, memory_order_relaxed);
    }
  } else if (thread_index_in_threadgroup == 0u) {
    uint seen = 0;
    for (uint k = 0; k < 1000000u && seen == 0u; ++k)
      seen = atomic_load_explicit(flag, memory_order_relaxed);
    atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);
    uint total = 0;
    for (uint k = 0; k < 8u; ++k)
      total += shared[k];
    out[48] = seen;
    out[49] = total;
  }
""",
            lambda out: (
                "the other threadgroup's flag was not seen (it did not run meanwhile)"
                if not out[48]
                else "seen"
                if int(out[49]) == 828
                else f"the flag was seen, the stores were not (sum {int(out[49])} for 828)"
            ),
            groups=2,
            needs=("memory_orders",),
        ),
    ]


def _forms() -> list[Question]:
    return [
        _question(
            "alignas-threadgroup",
            "alignas(16) of a threadgroup variable",
            "docs/msl-constructs.md",
            "  threadgroup half first[1];\n"
            "  alignas(16) threadgroup half x[32];\n"
            "  uint i = thread_index_in_threadgroup;\n"
            "  first[0] = half(1.0f);\n"
            "  x[i] = half(i);\n"
            "  threadgroup_barrier(mem_flags::mem_threadgroup);\n"
            "  uint4 four = *(threadgroup const uint4 *)(x + (i / 8u) * 8u);\n"
            "  out[i] = (four.x & 0xFFFFu) == uint(as_type<ushort>(half((i / 8u) * 8u))) ? 1u : 0u;\n"
            "  out[32u + i] = uint(first[0]);\n",
            lambda out: "compiles, right" if out[:32].all() else "compiles, wrong values",
        ),
        _question(
            "fp-pragmas",
            "#pragma METAL fp contract(off) at the head of a file: a * b - c stays two operations",
            "docs/msl-constructs.md",
            "  uint i = thread_index_in_threadgroup;\n"
            "  out[i] = as_type<uint>(x[i] * x[i] - y[i]);\n",
            lambda out: (
                "compiles, products and sums stay apart"
                if not out[:32].any()
                else "compiles, but the product is contracted"
            ),
            # 16777215 squared is not an fp32; y is its rounded square.
            (
                _input("x", "float", [4097.0]),
                _input("y", "float", [4097.0 * 4097.0 - 1.0]),
            ),
        ),
        _question(
            "half-as-uint4",
            "a cast of device const half * to device const uint4 *",
            "docs/msl-constructs.md",
            "  uint i = thread_index_in_threadgroup;\n"
            "  uint4 eight = *(device const uint4 *)(x + (i % 4u) * 8u);\n"
            "  out[i] = float(as_type<half2>(eight.y).y) == float(x[(i % 4u) * 8u + 3u]) ? 1u : 0u;\n",
            lambda out: "compiles, right" if out[:32].all() else "compiles, wrong values",
            (Buffer("x", "half", lambda: [float(i) for i in range(32)]),),
        ),
        _question(
            "language-version",
            "the language version that the route compiles with",
            "ggml-org/llama.cpp#27473",
            "  out[thread_index_in_threadgroup] = uint(__METAL_VERSION__);\n",
            lambda out: f"Metal {int(out[0]) // 100}.{int(out[0]) // 10 % 10}",
        ),
        _question(
            "default-math",
            "fast math without any pragma: min(inf, 65504h)",
            "google/filament#7485",
            "  uint i = thread_index_in_threadgroup;\n"
            "  out[i] = float(min(x[i], half(65504.0f))) == 65504.0f ? 1u : 0u;\n",
            lambda out: "off" if out[:32].all() else "on: the clamp is removed",
            (Buffer("x", "half", lambda: [math.inf] * 32),),
            pragmas="",
        ),
    ]


def questions() -> tuple[Question, ...]:
    """All questions."""
    return (*_subnormals(), *_nans(), *_shuffles(), *_integers(), *_memory(), *_forms())
