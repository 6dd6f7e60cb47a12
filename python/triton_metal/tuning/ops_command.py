"""Makes the tables that defaults of `triton_metal.ops` come from: one small launch after another, counted on the host device.

    python -m triton_metal tune-ops [--family NAME]... [--kind TEXT] [--folder FOLDER]

Each configuration of each kind of operands is launched twice, one program of few steps and one of more, by the function of
`triton_metal.ops` that users call. The difference is what a step does, the rest what a program does once. No GPU is asked and no time is
measured: the tables are the same on every machine. Those of a checkout are in python/triton_metal/ops/tables.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from ..files import replace


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument(
        "--family", action="append", metavar="NAME", help="such as matmul (default: all)"
    )
    parser.add_argument(
        "--kind",
        metavar="TEXT",
        help="only kinds of operands with this in their names; the file keeps those of others",
    )
    parser.add_argument(
        "--folder", type=Path, help="where the tables are (default: in the package)"
    )


def main(options: argparse.Namespace) -> int:
    """Runs the command; returns the exit status."""
    from ..ops._choices import FOLDER, read_table, written_table
    from ..ops._families import FAMILIES
    from ..ops._table_counts import entries

    names = options.family or list(FAMILIES)
    folder = options.folder or FOLDER
    for name in names:
        if name not in FAMILIES:
            return _failed(f"--family must be one of {', '.join(FAMILIES)} but is {name!r}")
    kinds = [kind for name in names for kind in FAMILIES[name].kinds()]
    if options.kind and not any(options.kind in kind for kind in kinds):
        return _failed(
            f"--kind must be in the name of a kind of operands, such as {kinds[0]!r} and {kinds[-1]!r}, but is {options.kind!r}"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        return _failed(f"{folder} cannot be created: {error.strerror}")
    if not os.access(folder, os.W_OK | os.X_OK):
        return _failed(f"{folder} cannot be written to")
    for name in names:
        family, path, table = FAMILIES[name], folder / f"{name}.json", {}
        wanted = [kind for kind in family.kinds() if (options.kind or "") in kind]
        if not wanted:
            continue
        if len(wanted) < len(family.kinds()) and path.exists():
            table.update(read_table(path, name, family.names))
        for kind in wanted:
            table[kind] = entries(family, kind, lambda text: print(text, file=sys.stderr))
            count = len(table[kind])
            print(f"{name} {kind}: {count} configuration{'s' * (count != 1)}", flush=True)
        ordered = {kind: table[kind] for kind in family.kinds() if kind in table}
        try:
            replace(path, written_table(name, family.names, ordered).encode())
        except OSError as error:
            return _failed(f"{path} cannot be written: {error}")
    return 0


def _failed(text: str) -> int:
    print(f"python -m triton_metal tune-ops: {text}", file=sys.stderr)
    return 2
