"""The package's modules depend on each other in one direction: no import closes a cycle, wherever it stands."""

from __future__ import annotations

import ast
import graphlib
import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGES = Path(__file__).resolve().parents[2] / "python"

# Modules that call importlib, and what for. Such an import does not show in the graph, so that each needs a reason.
DYNAMIC = {
    "triton_metal.as_triton": "the modules of the package under another name, when a program asks for them",
    "triton_metal.backends.metal.driver": "measuring, which is above drivers",
    "triton_metal.devices.framework": "MLX and PyTorch are optional: they are imported when a device is used",
    "triton_metal.doctor.run": "the examples, which are no part of the package",
    "triton_metal.knobs": "a class that an environment variable names",
    "triton_metal.mlx": "PEP 562: the package's names come from its modules when they are first used",
    "triton_metal.mlx.in_place": "the extension module for the MLX that is installed",
    "triton_metal.torch": "Inductor, which is part of PyTorch",
    "triton_metal.runtime": "PEP 562: its names are loaded when they are first used",
}


def modules_in(root: Path) -> dict[str, Path]:
    """The modules of the packages below a folder, by name."""
    result = {}
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        result[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return result


def imported(name: str, path: Path, modules: dict[str, Path]) -> Iterator[tuple[str, int]]:
    """The modules that one names in import statements, at any depth, with their lines."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name in modules:
                    yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom):
            base = (node.module or "").split(".") if node.module else []
            if node.level:
                own = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
                base = own[: len(own) - node.level + 1] + base
            for alias in node.names:
                one = ".".join([*base, alias.name])
                if one in modules:
                    yield one, node.lineno
                # What a package does not define is one of its extension modules.
                elif ".".join(base) in modules and not alias.name.startswith(
                    ("_native", "_engine")
                ):
                    yield ".".join(base), node.lineno


def graph_of(modules: dict[str, Path]) -> dict[str, dict[str, int]]:
    """For every module those that must be there before it, and the line that says so.

    Importing a module of another package runs that package's __init__, too.
    """
    graph: dict[str, dict[str, int]] = {name: {} for name in modules}
    for name, path in modules.items():
        for target, line in imported(name, path, modules):
            parts = target.split(".")
            for end in range(1, len(parts) + 1):
                needed = ".".join(parts[:end])
                is_around = name == needed or name.startswith(f"{needed}.")
                if not is_around or needed == target:
                    graph[name].setdefault(needed, line)
    return graph


def cycle_in(graph: dict[str, dict[str, int]]) -> str:
    """A cycle in words, or nothing."""
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        cycle = list(reversed(error.args[1]))
        return "\n".join(
            f"{one}:{graph[one][other]} imports {other}" for one, other in itertools.pairwise(cycle)
        )
    return ""


def test_no_import_closes_a_cycle() -> None:
    graph = graph_of(modules_in(PACKAGES))
    assert len(graph) > 50
    assert cycle_in(graph) == ""


def test_imports_by_name_are_known() -> None:
    found = set()
    for name, path in modules_in(PACKAGES).items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Name) and node.id == "__import__":
                found.add(name)
            if isinstance(node, ast.Attribute) and node.attr == "import_module":
                found.add(name)
    assert found == set(DYNAMIC)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"a.py": "import p.b", "b.py": "import p.c", "c.py": ""}, ""),
        (
            {"a.py": "import p.b", "b.py": "def f():\n    from .a import x"},
            "p.a:1 imports p.b\np.b:2 imports p.a",
        ),
        (
            {"a.py": "if TYPE_CHECKING:\n    from . import b", "b.py": "from .a import x"},
            "p.a:2 imports p.b\np.b:1 imports p.a",
        ),
        # p.q's __init__ runs before p.q.c does.
        (
            {"a.py": "from .q.c import x", "q/__init__.py": "from ..a import y", "q/c.py": ""},
            "p.a:1 imports p.q\np.q:1 imports p.a",
        ),
        ({"__init__.py": "from .a import x", "a.py": "from . import b", "b.py": ""}, ""),
    ],
)
def test_cycles_are_found(tmp_path: Path, files: dict[str, str], expected: str) -> None:
    for name, text in {"__init__.py": "", "q/__init__.py": "", **files}.items():
        path = tmp_path / "p" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    lines = cycle_in(graph_of(modules_in(tmp_path))).splitlines()
    # A cycle may be told from any of its modules on.
    assert sorted(lines) == sorted(expected.splitlines())
