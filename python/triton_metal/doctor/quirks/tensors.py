"""Probes of defects around Metal 4's cooperative tensors, for Macs that have them. The compiler
prints products of one type in the layout of row 12 for family Apple10.

A matrix product of 16 x 16 and 16 x 32 numbers, by one SIMD-group. The numbers are small integers, so the result is
exact.
"""

from __future__ import annotations

from typing import Any

from .form import Buffer, Form, Probe, zeros

_INCLUDE = "#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>\n"

_OPERANDS = """\
  constexpr auto sizes = mpp::tensor_ops::matmul2d_descriptor(
      16, 32, 16, false, false, true,
      mpp::tensor_ops::matmul2d_descriptor::mode::multiply_accumulate);
  mpp::tensor_ops::matmul2d<sizes, metal::execution_simdgroup> product;
  auto a = product.get_left_input_cooperative_tensor<half, {right}, float>();
  auto b = product.get_right_input_cooperative_tensor<half, {right}, float>();
  auto c = product.get_destination_cooperative_tensor<metal::remove_addrspace_t<decltype(a)>,
                                                      metal::remove_addrspace_t<decltype(b)>, float>();
"""

#: Each thread asks where its elements are.
_ASKED = """\
  for (ushort k = 0; k < a.get_capacity(); ++k)
    if (a.is_valid_element(k))
      a[k] = left[a.get_multidimensional_index(k)[1] * 16 + a.get_multidimensional_index(k)[0]];
  for (ushort k = 0; k < b.get_capacity(); ++k)
    if (b.is_valid_element(k))
      b[k] = right[b.get_multidimensional_index(k)[1] * 32 + b.get_multidimensional_index(k)[0]];
  for (ushort k = 0; k < c.get_capacity(); ++k)
    if (c.is_valid_element(k))
      c[k] = 0.0f;
  product.run(a, b, c);
  for (ushort k = 0; k < c.get_capacity(); ++k)
    if (c.is_valid_element(k))
      out[c.get_multidimensional_index(k)[1] * 32 + c.get_multidimensional_index(k)[0]] = c[k];
"""

#: The places of a thread's elements as they were seen on one generation of GPUs: rows 8 apart, columns in fours.
_ASSUMED = """\
  ushort lane = thread_index_in_simdgroup;
  ushort row = ((lane >> 2) & 4) | ((lane >> 1) & 3);
  ushort column = (((lane >> 2) & 2) | (lane & 1)) * 4;
  for (ushort k = 0; k < 8; ++k)
    a[k] = left[(row + (k >> 2) * 8) * 16 + column + k % 4];
  for (ushort k = 0; k < 16; ++k) {
    b[k] = right[(row + ((k >> 2) & 1) * 8) * 32 + (k >> 3) * 16 + column + k % 4];
    c[k] = 0.0f;
  }
  product.run(a, b, c);
  for (ushort k = 0; k < 16; ++k)
    out[(row + ((k >> 2) & 1) * 8) * 32 + (k >> 3) * 16 + column + k % 4] = c[k];
"""


def _left() -> Any:
    import numpy as np

    return np.arange(256) * 7 % 11 - 5


def _right() -> Any:
    import numpy as np

    return np.arange(512) * 5 % 13 - 6


def _expected() -> dict[str, Any]:
    return {"out": (_left().reshape(16, 16) @ _right().reshape(16, 32)).reshape(-1)}


def _probe(
    row: int, construct: str, happens: str, source: str, body: str, right: str, cure: str = ""
) -> Probe:
    return Probe(
        row,
        construct,
        happens,
        source,
        (Buffer("left", "half", _left), Buffer("right", "half", _right)),
        (Buffer("out", "float", zeros(512)),),
        _expected,
        raw=Form(_OPERANDS.replace("{right}", right) + body, pragmas="", includes=_INCLUDE),
        ours=None,
        cure=cure,
        needs=("tensor_ops",),
    )


def probes() -> tuple[Probe, ...]:
    """The probes of all three rows."""
    return (
        _probe(
            11,
            "a product of cooperative tensors with 16 rows, compiled at run time",
            "rows from 8 on are wrong if the deployment target is below macOS 26.2",
            "ml-explore/mlx#3586, #3622, #3797",
            _ASKED,
            "half",
        ),
        _probe(
            12,
            "the places of a cooperative tensor's elements, as constants",
            "they differ by the generation of the GPU",
            "pytorch/pytorch#182256",
            _ASSUMED,
            "half",
            "simdgroup_dots",
        ),
        _probe(
            13,
            "half and bfloat in one product of cooperative tensors",
            "does not compile: static_assert",
            "ggml-org/llama.cpp#18210",
            _ASKED,
            "bfloat",
        ),
    )
