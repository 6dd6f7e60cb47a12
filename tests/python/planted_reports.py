"""Runs planted kernels under checks, and compares what is said with what was planted."""

from __future__ import annotations

import re

from metal_run import invoke
from planted_defects import Defect, filler

LAUNCH = (
    "--buffer=o=zeros:float:512",
    "--buffer=n=zeros:int:512",
    "--buffer=c=zeros:uint:64",
    "--buffer=pads=zeros:float:512",
    "--scalar=z=0",
    "--threadgroup-memory=0=512",
    "--threadgroups=4",
    "--group=128",
)
LONG = filler(300)


def report(text: str, check: str, *options: str) -> str:
    """What a checked run says; buffers that the kernel does not use may be bound."""
    result = invoke([*LAUNCH, f"--check={check}", *options, "-"], text)
    return result.stderr.strip() if result.returncode else ""


def marked(text: str, mark: str) -> list[int]:
    return [
        number for number, line in enumerate(text.splitlines(), 1) if line.endswith(f"// {mark}")
    ]


def problems(defect: Defect, text: str, said: str) -> list[str]:
    """What is missing in a report."""
    missing = [part for part in defect.says if part not in said]
    here, there = marked(text, "HERE"), marked(text, "THERE")
    lines = [int(line) for line in re.findall(r"(?<!declared in )(?<!called in )line (\d+):", said)]
    if here and not lines:
        missing.append(f"line {here[0]}")
    elif there:
        if sorted(lines[:2]) != sorted(here + there):
            missing.append(f"lines {here + there}, not {lines}")
    elif here and lines[0] not in here:
        missing.append(f"line {here[0]}, not {lines[0]}")
    return missing
