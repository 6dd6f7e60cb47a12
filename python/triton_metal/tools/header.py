"""C and Objective-C headers for kernels that are compiled ahead of time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .c_names import identifiers
from .grid import CHECKS, Size, checked
from .signature import C_TYPES


def scalars_of(kernel: dict[str, Any]) -> list[dict[str, Any]]:
    """The arguments of a launch that are numbers."""
    return [one for one in kernel["arguments"] if one["kind"] == "scalar"]


def buffers_of(kernel: dict[str, Any]) -> list[dict[str, Any]]:
    """The arguments of a launch that are buffers."""
    return [one for one in kernel["arguments"] if one["kind"] == "buffer"]


def parameters(
    arguments: Sequence[dict[str, Any]], own: Mapping[str, str], buffers: str = ""
) -> str:
    """The parameters of a C function for arguments with the identifiers ``own``. ``buffers`` says how a buffer named ``{0}`` is
    passed, if it is.
    """
    parts = []
    for one in arguments:
        if one["kind"] == "scalar":
            parts.append(f"{C_TYPES[one['type']]} {own[one['name']]}")
        elif buffers:
            parts.append(buffers.format(own[one["name"]]))
    return ", ".join(parts)


def names(arguments: Sequence[dict[str, Any]], own: Mapping[str, str], buffers: str = "") -> str:
    """What is passed on to such a function."""
    parts = []
    for one in arguments:
        if one["kind"] == "scalar":
            parts.append(own[one["name"]])
        elif buffers:
            parts.append(buffers.format(own[one["name"]]))
    return ", ".join(parts)


OBJECTIVE_C = "id<MTLBuffer> {0}, NSUInteger {0}_offset"


def kernel_header(kernel: dict[str, Any], grid: Sequence[Size]) -> str:
    """The header of one kernel: constants, the packing of its numbers, its grid, and its launch in Objective-C."""
    name, scalars = kernel["function"], scalars_of(kernel)
    own = identifiers(one["name"] for one in kernel["arguments"])
    given = parameters(scalars, own)
    lines = [
        f"/* The kernel {kernel['kernel']}, compiled by triton_metal.tools.compile. Its text is {kernel['metal']}. */",
        "#pragma once",
        "#include <stdbool.h>",
        "#include <stdint.h>",
        "#include <string.h>",
        "",
        *CHECKS.splitlines(),
        "",
        "enum {",
        f"  {name}_threads = {kernel['threads']}, /* of a threadgroup */",
        f"  {name}_threadgroup_bytes = {kernel['threadgroup_bytes']},",
    ]
    lines += [f"  {name}_buffer_{own[b['name']]} = {b['buffer']}," for b in buffers_of(kernel)]
    if scalars:
        lines.append(f"  {name}_buffer_numbers = {kernel['scalar_buffer']},")
    lines += ["};", ""]
    if scalars:
        lines += [
            f"/* What the buffer {name}_buffer_numbers holds. */",
            f"typedef struct {{ uint32_t words[{kernel['scalar_words']}]; }} {name}_numbers;",
            f"static inline {name}_numbers {name}_pack({given}) {{",
            f"  {name}_numbers packed;",
            "  memset(&packed, 0, sizeof packed);",
        ]
        for one in scalars:
            value, place = own[one["name"]], f"packed.words + {one['word']}"
            if one["type"] in ("fp32", "fp64", "i64", "u64"):
                lines.append(f"  memcpy({place}, &{value}, sizeof {value});")
            else:
                lines.append(f"  packed.words[{one['word']}] = (uint32_t){value};")
        lines += ["  return packed;", "}", ""]
    lines += [
        "/* The threadgroups of a launch. Returns whether each size is from 0 to 2147483647; if not, all are 0. */",
        f"static inline bool {name}_grid(uint32_t grid[3]{', ' + given if given else ''}) {{",
        "  bool valid = true;",
    ]
    lines += [f"  (void){own[one['name']]};" for one in scalars]
    lines += [
        f"  grid[{index}] = triton_metal_size({checked(size, own)}, &valid);"
        for index, size in enumerate(grid)
    ]
    lines += ["  if (!valid)", "    grid[0] = grid[1] = grid[2] = 0;", "  return valid;"]
    lines += ["}", "", *_objective_c(kernel, own), ""]
    return "\n".join(lines)


def _objective_c(kernel: dict[str, Any], own: Mapping[str, str]) -> list[str]:
    name, scalars = kernel["function"], scalars_of(kernel)
    passed = names(scalars, own)
    launch = parameters(kernel["arguments"], own, OBJECTIVE_C)
    lines = [
        "#ifdef __OBJC__",
        "#import <Metal/Metal.h>",
        f"/* Encodes a launch. The pipeline is that of the function {name}. What the kernel writes must not overlap what",
        f"   another of its buffers holds. Returns what {name}_grid returns; a grid without threadgroups is not encoded. */",
        f"static inline bool {name}_encode(id<MTLComputeCommandEncoder> encoder, "
        f"id<MTLComputePipelineState> pipeline{', ' + launch if launch else ''}) {{",
        "  uint32_t grid[3];",
        f"  const bool valid = {name}_grid(grid{', ' + passed if passed else ''});",
        "  if (grid[0] == 0 || grid[1] == 0 || grid[2] == 0)",
        "    return valid;",
        "  [encoder setComputePipelineState:pipeline];",
    ]
    for one in buffers_of(kernel):
        buffer = own[one["name"]]
        lines.append(
            f"  [encoder setBuffer:{buffer} offset:{buffer}_offset atIndex:{one['buffer']}];"
        )
    if scalars:
        lines += [
            f"  const {name}_numbers numbers = {name}_pack({passed});",
            f"  [encoder setBytes:&numbers length:sizeof numbers atIndex:{kernel['scalar_buffer']}];",
        ]
    return [
        *lines,
        "  [encoder dispatchThreadgroups:MTLSizeMake(grid[0], grid[1], grid[2])",
        f"          threadsPerThreadgroup:MTLSizeMake({kernel['threads']}, 1, 1)];",
        "  return valid;",
        "}",
        "#endif",
    ]
