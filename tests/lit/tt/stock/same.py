"""Compares a fixture with what was printed for it: equal but for the names of values.

    same.py fixture.ttir < printed

MLIR's text keeps the names of block arguments nowhere but in the names themselves, so a parser
cannot give them back. Values are therefore numbered in the order of their definitions.
"""

import difflib
import re
import sys

# What a line gives names to: what stands before its "=", block arguments, what a loop carries.
RESULTS = re.compile(r"^\s*(%[\w., %:]+) = ")
DEFINED = re.compile(r"%[\w.]+(?=(?::\d+)? = |: )")
VALUE = re.compile(r"%[\w.]+")
HEADER = re.compile(r"( = |^\s*)scf\.|tt\.func|^\s*\^")


def renamed(text: str, names: dict[str, str]) -> str:
    return VALUE.sub(lambda match: names.get(match[0], match[0]), text)


def numbered(text: str) -> list[str]:
    """The lines of a text with its values numbered in the order of their definitions."""
    names: dict[str, str] = {}
    count = 0
    lines = []
    for line in text.rstrip().splitlines():
        if line.startswith("// RUN:"):
            continue
        results = RESULTS.match(line)
        left = results[0] if results else ""
        right = line[len(left) :]
        header = HEADER.search(line)
        made: dict[str, str] = {}
        for name in VALUE.findall(left) + (DEFINED.findall(right) if header else []):
            made[name] = f"%{count}"
            count += 1
        if header:
            names.update(made)
        # An operand named like something that its own line defines is an older value.
        right = renamed(right, names)
        names.update(made)
        lines.append(renamed(left, made) + right)
    return lines


def main() -> int:
    with open(sys.argv[1], encoding="utf-8") as file:
        stock = numbered(file.read())
    printed = numbered(sys.stdin.read())
    difference = list(difflib.unified_diff(stock, printed, "stock", "printed", lineterm="", n=1))
    print("\n".join(difference))
    return 1 if difference else 0


if __name__ == "__main__":
    sys.exit(main())
