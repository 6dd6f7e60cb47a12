"""Joins variants of a kernel that was compiled ahead of time, with the choice between them.

    python -m triton_metal.tools.link OUT.*.json -o NAME

The variants are those that `triton_metal.tools.compile` wrote: the same parameters with different hints, constants,
SIMD-groups or stages. NAME.h chooses: variants with the same constants and options are one algorithm, and a launch takes
the first of them whose conditions hold, those with the most conditions first. NAME.json says the same.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .c_names import identifiers, is_identifier
from .header import OBJECTIVE_C, names, parameters
from .signature import C_TYPES
from .written import print_written, write_files


def read(path: Path) -> dict[str, Any]:
    """The description of a compiled kernel."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from None
    if not _is_description(found):
        raise ValueError(f"{path} is no description that triton_metal.tools.compile wrote")
    return found


_KEYS: dict[str, type] = {
    "kernel": str,
    "function": str,
    "metal": str,
    "target": str,
    "constants": dict,
    "num_warps": int,
    "num_stages": int,
    "arguments": list,
    "parameters": list,
    "conditions": list,
}


def _is_description(found: Any) -> bool:
    """Whether a value has what `link` reads."""
    if not isinstance(found, dict) or found.get("format") != 1:
        return False
    if not all(isinstance(found.get(key), kind) for key, kind in _KEYS.items()):
        return False

    def named(entries: list[Any]) -> bool:
        return all(isinstance(one, dict) and isinstance(one.get("name"), str) for one in entries)

    if not all(named(found[key]) for key in ("arguments", "parameters", "conditions")):
        return False
    return (
        is_identifier(found["function"])
        and all(
            one.get("kind") == "buffer"
            or (one.get("kind") == "scalar" and one.get("type") in C_TYPES)
            for one in found["arguments"]
        )
        and all(isinstance(one.get("type"), str) for one in found["parameters"])
        and all(
            type(one.get("equals", one.get("multiple_of"))) is int for one in found["conditions"]
        )
    )


def link(paths: Sequence[Path], out: Path, prefix: str = "") -> list[Path]:
    """Joins the variants of these descriptions; returns the paths of the description and the header that it writes.

    Raises ValueError if they are not variants of one kernel.
    """
    if not out.name:
        raise ValueError(f"the path {str(out)!r} ends in no file's name")
    written = [out.with_name(f"{out.name}.json"), out.with_name(f"{out.name}.h")]
    variants = []
    for path in paths:
        header = path.with_suffix(".h")
        if {file.resolve() for file in (path, header)} & {file.resolve() for file in written}:
            raise ValueError(f"the variants' own files {path} and {header} would be overwritten")
        # The joined header may lie in another folder than its variants.
        where = os.path.relpath(header.resolve(), out.resolve().parent)
        variants.append(read(path) | {"header": Path(where).as_posix()})
    if not variants:
        raise ValueError("there are no variants to join")
    first = variants[0]
    seen: set[str] = set()
    for path, variant in zip(paths, variants, strict=True):
        for what in ("kernel", "parameters"):
            if variant[what] != first[what]:
                raise ValueError(
                    f"{path} is no variant of {paths[0]}: its {what} is {variant[what]}, not {first[what]}"
                )
        if variant["function"] in seen:
            raise ValueError(f"{path} is given twice")
        seen.add(variant["function"])
    algorithms: dict[str, list[dict[str, Any]]] = {}
    for variant in variants:
        options = ("constants", "num_warps", "num_stages", "target", "arithmetic")
        algorithms.setdefault(repr([variant.get(name) for name in options]), []).append(variant)
    ordered = [sorted(group, key=_most_conditions_first) for group in algorithms.values()]
    for group in ordered:
        taken: dict[str, str] = {}
        for variant in group:
            other = taken.setdefault(repr(variant["conditions"]), variant["function"])
            if other != variant["function"]:
                raise ValueError(
                    f"{other} and {variant['function']} have the same constants, options and conditions, so that no launch "
                    "would take the second"
                )
    name = prefix + first["kernel"]
    if not is_identifier(name):
        raise ValueError(f"the name {name!r} is no identifier of C")
    described = {
        "format": 1,
        "kernel": name,
        "parameters": first["parameters"],
        "algorithms": [
            {
                "constants": group[0]["constants"],
                "num_warps": group[0]["num_warps"],
                "num_stages": group[0]["num_stages"],
                "target": group[0]["target"],
                "arithmetic": group[0].get("arithmetic", ""),
                "variants": [
                    {key: one[key] for key in ("function", "metal", "header", "conditions")}
                    for one in group
                ],
            }
            for group in ordered
        ],
    }
    texts = (json.dumps(described, indent=2) + "\n", dispatcher(name, ordered))
    write_files(dict(zip(written, texts, strict=True)))
    return written


def _arguments(variants: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The arguments of a launch, of all variants: one that is 1 in some is a number in others."""
    result = []
    for parameter in variants[0]["parameters"]:
        own = parameter["name"]
        for variant in variants:
            found = [
                argument
                for argument in variant["arguments"]
                if argument["name"] == own or argument["name"].startswith(f"{own}.")
            ]
            if found:
                break
        else:
            found = [{"name": own, "kind": "scalar", "type": parameter["type"]}]
        result += found
    return result


def _condition(condition: dict[str, Any], buffers: set[str], own: Mapping[str, str]) -> str:
    name = own[condition["name"]]
    if "equals" in condition:
        return f"{name} == {condition['equals']}"
    place = f"{name}_offset" if condition["name"] in buffers else name
    return f"{place} % {condition['multiple_of']} == 0"


def _most_conditions_first(variant: dict[str, Any]) -> tuple[int, int]:
    """Where a variant stands among those of an algorithm: a launch takes the first that its arguments fulfil."""
    multiples = [condition.get("multiple_of", 0) for condition in variant["conditions"]]
    return -len(multiples), -sum(multiples)


def dispatcher(name: str, algorithms: Sequence[Sequence[dict[str, Any]]]) -> str:
    """The header that chooses between variants."""
    variants = [variant for group in algorithms for variant in group]
    arguments = _arguments(variants)
    buffers = {one["name"] for one in arguments if one["kind"] == "buffer"}
    own = identifiers(one["name"] for one in arguments)
    offsets = parameters(arguments, own, "uint64_t {0}_offset")
    lines = [
        f"/* Variants of the kernel {name}, joined by triton_metal.tools.link. */",
        "#pragma once",
        *(f'#include "{variant["header"]}"' for variant in variants),
        "",
        f"enum {{ {name}_algorithms = {len(algorithms)}, {name}_variants = {len(variants)} }};",
        f"static const char *const {name}_functions[] = {{",
        *(f'  "{variant["function"]}", /* {variant["metal"]} */' for variant in variants),
        "};",
        "",
        "/* The variant of an algorithm for these arguments, -1 if there is none. A buffer is given by its offset in bytes. */",
        f"static inline int {name}_variant(int algorithm{', ' + offsets if offsets else ''}) {{",
        *(f"  (void){one.split()[-1]};" for one in offsets.split(", ") if one),
        "  switch (algorithm) {",
    ]
    number = 0
    for index, group in enumerate(algorithms):
        lines.append(f"  case {index}: /* {_shown(group[0])} */")
        for variant in group:
            if tests := " && ".join(_condition(one, buffers, own) for one in variant["conditions"]):
                lines.append(f"    if ({tests})")
            lines.append(f"{'      ' if tests else '    '}return {number};")
            number += 1
        if group[-1]["conditions"]:
            lines.append("    return -1;")
    lines += ["  default:", "    return -1;", "  }", "}", ""]
    launch = parameters(arguments, own, OBJECTIVE_C)
    passed = names(arguments, own, "{0}_offset")
    lines += [
        "#ifdef __OBJC__",
        f"/* Encodes a launch with the pipeline of its variant; they are in the order of {name}_functions. Returns whether",
        "   there is a variant, and the grid is one that can be launched. */",
        f"static inline bool {name}_encode(id<MTLComputeCommandEncoder> encoder, "
        "NSArray<id<MTLComputePipelineState>> *pipelines, "
        f"int algorithm{', ' + launch if launch else ''}) {{",
        f"  const int variant = {name}_variant(algorithm{', ' + passed if passed else ''});",
        "  switch (variant) {",
    ]
    for number, variant in enumerate(variants):
        given = names(variant["arguments"], own, "{0}, {0}_offset")
        lines += [
            f"  case {number}:",
            f"    return {variant['function']}_encode(encoder, pipelines[{number}]{', ' + given if given else ''});",
        ]
    return "\n".join([*lines, "  default:", "    return false;", "  }", "}", "#endif", ""])


def _shown(variant: dict[str, Any]) -> str:
    parts = [f"{name} = {value}" for name, value in variant["constants"].items()]
    parts.append(f"{variant['num_warps']} SIMD-groups, {variant['num_stages']} stages")
    words = [variant["arithmetic"]] if variant.get("arithmetic") else []
    return ", ".join([*parts, *words, variant["target"]]).replace("*/", "")


def main(argv: Sequence[str] | None = None) -> int:
    """The command. Returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m triton_metal.tools.link",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "descriptions", nargs="+", type=Path, help="the .json files of the variants"
    )
    parser.add_argument("--out", "-o", type=Path, required=True, help="the files' name")
    parser.add_argument("--prefix", default="", help="goes before the kernel's name")
    given = parser.parse_args(argv)
    return print_written(
        parser.prog, lambda: link(given.descriptions, given.out, given.prefix), ValueError
    )


if __name__ == "__main__":
    sys.exit(main())
