"""lit's configuration: `lit tests/lit`, with the build in build/ or in --param build=<folder>."""

# ruff: noqa: F821 - lit gives config and lit_config to this file.

import os
import pathlib
import shutil
import sys

import lit.formats

config.name = "triton-metal"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".ttir", ".metal", ".test"]
config.excludes = ["Inputs"]
config.test_source_root = os.path.dirname(__file__)

root = pathlib.Path(__file__).resolve().parents[2]
build = pathlib.Path(lit_config.params.get("build", root / "build")).resolve()
config.test_exec_root = str(build / "tests" / "lit")

llvm_tools = lit_config.params.get("llvm_tools")
if not llvm_tools:
    candidates = [
        "/usr/lib/llvm-22/bin",
        "/opt/homebrew/opt/llvm@22/bin",
        "/opt/homebrew/opt/llvm/bin",
    ]
    llvm_tools = next(
        (path for path in candidates if os.path.exists(os.path.join(path, "FileCheck"))), None
    )
    found = shutil.which("FileCheck")
    if not llvm_tools and found:
        llvm_tools = os.path.dirname(found)
if not llvm_tools:
    lit_config.fatal(
        "FileCheck was not found: install LLVM 22's tools, or pass --param llvm_tools=<folder>"
    )

tools = lit_config.params.get("tools", str(build / "bin"))
config.environment["PATH"] = os.pathsep.join([tools, llvm_tools, os.environ.get("PATH", "")])
config.substitutions.append(("%python", sys.executable))
config.substitutions.append(("%root", str(root)))
