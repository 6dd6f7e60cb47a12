"""The stand-ins take, pass and refuse what mx.fast.metal_kernel and torch.mps.compile_shader do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from triton_metal.testing.compile_shader import compile_shader

pytestmark = pytest.mark.own_route

WORDS = """
kernel void copy(constant uint *words [[buffer(0)]], device uint *out [[buffer(1)]],
                 uint i [[thread_position_in_grid]]) { out[i] = words[i]; }
kernel void groups(device uint *out, uint3 i [[thread_position_in_grid]], uint3 n [[threads_per_grid]],
                   uint3 size [[threads_per_threadgroup]]) {
  out[(i.z * n.y + i.y) * n.x + i.x] = size.x + 100 * size.y + 10000 * size.z;
}
[[kernel, max_total_threads_per_threadgroup(64)]] void narrow(device uint *out, uint i [[thread_position_in_grid]]) {
  threadgroup uint shared[8];
  shared[i % 8] = 7;
  metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
  out[i] = shared[(i + 1) % 8];
}
"""


def library() -> Any:
    return compile_shader(WORDS)


@pytest.mark.parametrize(
    ("value", "casts", "expected"),
    [
        ([1, -1, 1 << 31], "int32", [1, 0xFFFFFFFF, 1 << 31]),
        ((1, 2), {0: "int32"}, [1, 2]),
        ([1, 2], None, [1, 0, 2, 0]),
        ([1, 2], {1: "int32"}, [1, 0, 2, 0]),
        (5, None, [5, 0]),
        (True, None, [1, 0]),
        (-2, "int32", [0xFFFFFFFE]),
        (1.5, None, [0x3FC00000]),
        ([1.5, -2.0], None, [0x3FC00000, 0xC0000000]),
        ([1.5, -2.0], "fp16", [0xC0003E00]),
        ([1.5, -2.0], "bf16", [0xC0003FC0]),
        ([1, 2, 3, 300], "uint8", [0x2C030201]),
        ([1, 2], "int16", [0x00020001]),
    ],
)
def test_arguments_by_value(value: Any, casts: Any, expected: list[int]) -> None:
    out = np.zeros(len(expected), np.uint32)
    library().copy(value, out, threads=len(expected), arg_casts=casts)
    assert out.tolist() == expected


@pytest.mark.parametrize(
    ("value", "casts", "problem"),
    [
        ([], None, "Empty list/tuple"),
        ("text", None, "Unsupported argument type"),
        (None, None, "Unsupported argument type"),
        (["text"], None, "Unexpected argument types"),
        (1 << 63, None, "64-bit integer"),
        ([1, 2.5], None, "64-bit integer"),
        (1, "int64", "Unsupported cast instruction"),
        (1, 3, "Unexpected caster arg type int"),
        ([0] * 513, None, "setBytes:length:atIndex: takes 4096 bytes"),
    ],
)
def test_arguments_that_pytorch_refuses(value: Any, casts: Any, problem: str) -> None:
    out = np.zeros(4, np.uint32)
    with pytest.raises(RuntimeError, match=problem):
        library().copy(value, out, threads=1, arg_casts=casts)
    assert out.tolist() == [0, 0, 0, 0]


def test_threads_and_their_groups() -> None:
    out = np.zeros((3, 5, 7), np.uint32)
    library().groups(out, threads=(7, 5, 3), group_size=(4, 2, 1))
    # Groups at the edges are cut.
    assert out[0, 0].tolist() == [10204] * 4 + [10203] * 3
    assert out[0, 4].tolist() == [10104] * 4 + [10103] * 3
    # Without threads=, the first tensor's elements count.
    out = np.zeros(1500, np.uint32)
    library().groups(out)
    assert out.tolist() == [10100 + 1024] * 1024 + [10100 + 476] * 476
    for options, error in (
        ({"threads": (1, 1, 1, 1)}, "1 to 3 dimensions"),
        ({"threads": (4, 4), "group_size": 4}, "same number of dimensions"),
        ({"threads": 0}, "cannot dispatch"),
        ({"threads": 1 << 32}, "cannot dispatch"),
    ):
        with pytest.raises(RuntimeError, match=error):
            library().groups(out, **options)
    with pytest.raises(ValueError, match="Threadgroup size exceeds 1024 limit"):
        library().groups(out, threads=2048, group_size=2048)


def test_what_a_kernel_says_of_itself() -> None:
    kernels = library()
    assert sorted(dir(kernels)) == ["copy", "groups", "narrow"]
    assert kernels.narrow.max_threads_per_threadgroup == 64
    assert kernels.narrow.thread_execution_width == 32
    assert kernels.narrow.static_thread_group_memory_length >= 32
    out = np.zeros(128, np.uint32)
    with pytest.raises(ValueError, match="exceeds 64"):
        kernels.narrow(out, group_size=128)
    kernels.narrow(out)
    assert out.tolist() == [7] * 128
    with pytest.raises(RuntimeError, match="Failed to create function state object for: other"):
        _ = kernels.other
    with pytest.raises(RuntimeError, match=r"nothing is bound to out \[\[buffer\(1\)\]\]"):
        kernels.copy([1], threads=1)


def test_texts_that_pytorch_refuses() -> None:
    with pytest.raises(SyntaxError, match="error"):
        compile_shader("kernel void f( {")
    with pytest.raises(RuntimeError, match="ASCII"):
        compile_shader("// é\nkernel void f() {}")
    with pytest.raises(TypeError, match="takes text"):
        compile_shader(b"kernel void f() {}")  # type: ignore[arg-type]


mx = pytest.importorskip("mlx.core")
from triton_metal.testing import metal_kernel as stand_in  # noqa: E402
from triton_metal.testing.metal_kernel import metal_kernel, recording  # noqa: E402

BODY = """
    uint elem = thread_position_in_grid.x;
    T tmp = inp[elem];
    out[elem] = metal::exp(tmp);
"""


def run(kernel: Any, inputs: list[Any], n: int = 4, **options: Any) -> list[Any]:
    settings: dict[str, Any] = {
        "output_shapes": [(n,)] * len(kernel.output_names),
        "output_dtypes": [mx.float32] * len(kernel.output_names),
        "grid": (n, 1, 1),
        "threadgroup": (32, 1, 1),
    }
    return kernel(inputs=inputs, **{**settings, **options})


def test_the_signature_that_mlx_documents() -> None:
    # docs/src/dev/custom_metal_kernels.rst of MLX, "Simple Example"; the name has one more _ than there, as
    # mlx/backend/common/metal_kernel.cpp makes it.
    a = mx.random.normal(shape=(4, 16)).astype(mx.float16)
    kernel = metal_kernel("myexp", ["inp"], ["out"], BODY)
    with recording() as recorder:
        (out,) = kernel(
            inputs=[a],
            template=[("T", mx.float32)],
            grid=(a.size, 1, 1),
            threadgroup=(256, 1, 1),
            output_shapes=[a.shape],
            output_dtypes=[a.dtype],
        )
    assert mx.allclose(out, mx.exp(a))
    name = "custom_kernel_myexp__float_float16_t_float16_t"
    assert recorder.launches[0].text == (
        "template <typename T>\n"
        f"[[kernel]] void {name}(\n"
        "  const device float16_t* inp [[buffer(0)]],\n"
        "  device float16_t* out [[buffer(1)]],\n"
        "  uint3 thread_position_in_grid [[thread_position_in_grid]]) {\n"
        f"{BODY}\n}}\n\n"
        f'template [[host_name("{name}")]] [[kernel]] decltype({name}<float>) {name}<float>;\n'
    )


def test_how_inputs_are_passed() -> None:
    source = "out[thread_position_in_grid.x] = many[0] + few[1] + one + a_shape[1] + a_strides[0] + a_ndim + a[0];"
    kernel = metal_kernel("inputs", ["many", "few", "one", "a"], ["out"], source)
    a = mx.ones((3, 5))[:, :4]
    with recording() as recorder:
        (out,) = run(kernel, [mx.ones(8), mx.arange(7), 2.5, a])
    assert out.tolist() == [1 + 1 + 2.5 + 4 + 4 + 2 + 1] * 4
    text = recorder.launches[0].text
    for line in (
        "const device float* many [[buffer(0)]]",
        "const constant int32_t* few [[buffer(1)]]",
        "const constant float& one [[buffer(2)]]",
        "const device float* a [[buffer(3)]]",
        "const constant int* a_shape [[buffer(4)]]",
        "const constant int64_t* a_strides [[buffer(5)]]",
        "const constant int& a_ndim [[buffer(6)]]",
        "device float* out [[buffer(7)]]",
    ):
        assert line in text


def test_names_that_only_look_like_mlx_own() -> None:
    # Parts of words count, in a comment too.
    kernel = metal_kernel("names", ["x"], ["out"], "out[0] = 1; // max_shape, my_grid_size")
    with recording() as recorder:
        run(kernel, [mx.ones(8)], n=1)
    assert "x_shape [[buffer(1)]]" in recorder.launches[0].text
    assert "uint3 grid_size [[grid_size]]" in recorder.launches[0].text


def test_outputs_are_new_memory() -> None:
    kernel = metal_kernel(
        "half_of_it",
        ["x"],
        ["out"],
        "if (thread_position_in_grid.x < 2) out[thread_position_in_grid.x] = x[0];",
    )
    (out,) = run(kernel, [mx.ones(8)], init_value=5)
    assert out.tolist() == [1, 1, 5, 5]
    with stand_in.uninitialized(lambda index, size: b"\xff" * size):
        (out,) = run(kernel, [mx.ones(8)])
    assert np.isnan(np.array(out)).tolist() == [False, False, True, True]
    # An input is never an output: kernels have it const.
    with pytest.raises(RuntimeError, match="Unable to build metal library"):
        run(metal_kernel("writes", ["x"], ["out"], "x[0] = 1;"), [mx.ones(8)])


def test_groups_are_cut_to_the_grid() -> None:
    source = "out[thread_position_in_grid.x] = threads_per_threadgroup.x;"
    kernel = metal_kernel("cut", ["x"], ["out"], source)
    (out,) = run(kernel, [mx.ones(8)], n=10)
    assert out.tolist() == [10.0] * 10
    (out,) = run(kernel, [mx.ones(8)], n=40)
    assert out.tolist() == [32.0] * 32 + [8.0] * 8


@pytest.mark.parametrize(
    ("options", "error", "problem"),
    [
        ({"inputs": []}, ValueError, "Expected `inputs` to have size 1 but got size 0"),
        ({"output_shapes": []}, ValueError, "Expected `output_shapes` to have size 1"),
        ({"output_dtypes": []}, ValueError, "Expected `output_dtypes` to have size 1"),
        ({"grid": (1 << 31, 1, 1)}, TypeError, "incompatible function arguments"),
        ({"grid": (4, 1)}, TypeError, "incompatible function arguments"),
        ({"grid": (0, 1, 1)}, ValueError, "dispatchThreads"),
        ({"threadgroup": (2048, 1, 1)}, ValueError, r"Thread group size \(2048\) is greater"),
        ({"stream": mx.cpu}, ValueError, "Only supports the GPU"),
        ({"template": [("T", "float")]}, ValueError, "Invalid template argument"),
    ],
)
def test_launches_that_mlx_refuses(options: Any, error: type, problem: str) -> None:
    kernel = metal_kernel("refused", ["x"], ["out"], "out[0] = x[0];")
    settings = {
        "inputs": [mx.ones(8)],
        "output_shapes": [(4,)],
        "output_dtypes": [mx.float32],
        "grid": (4, 1, 1),
        "threadgroup": (4, 1, 1),
    }
    with pytest.raises(error, match=problem):
        kernel(**{**settings, **options})


def test_kernels_that_mlx_refuses() -> None:
    with pytest.raises(ValueError, match="Must specify at least one output"):
        metal_kernel("k", ["x"], [], "")
    with pytest.raises(ValueError, match="Unknown compile option"):
        metal_kernel("k", ["x"], ["y"], "", compile_options={"fast": "yes"})
    with pytest.raises(ValueError, match="Expected math_mode"):
        metal_kernel("k", ["x"], ["y"], "", compile_options={"math_mode": "quick"})
    with pytest.raises(TypeError, match="incompatible function arguments"):
        metal_kernel("k", ["x"], [3], "")  # type: ignore[list-item]


def test_the_real_one_takes_the_same_arguments() -> None:
    # Without a Mac, MLX's own refuses only when it is called.
    for factory in (metal_kernel, mx.fast.metal_kernel):
        kernel = factory(
            name="k",
            input_names=["x"],
            output_names=["out"],
            source="out[0] = x[0];",
            header="",
            ensure_row_contiguous=True,
            atomic_outputs=False,
        )
        call = {
            "inputs": [mx.ones(8)],
            "output_shapes": [(1,)],
            "output_dtypes": [mx.float32],
            "grid": (1, 1, 1),
            "threadgroup": (1, 1, 1),
            "template": None,
            "init_value": None,
            "verbose": False,
            "stream": None,
        }
        if factory is metal_kernel or mx.metal.is_available():
            assert kernel(**call)[0].tolist() == [1.0]
        else:
            with pytest.raises(RuntimeError, match="No Metal back-end"):
                kernel(**call)
