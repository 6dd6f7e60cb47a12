"""The tests of packages run in an environment of their own (scripts/packages): with triton_metal's shim, or install()."""

import importlib.metadata
import os

import pytest
import triton


def pytest_report_header() -> str:
    return f"triton {triton.__version__} from {triton.__file__}"


def pytest_configure() -> None:
    # Searches try few configurations: the tests are for the results, and some kernels have dozens.
    os.environ.setdefault("TRITON_METAL_AUTOTUNE_BUDGET", "2")
    if "+metal" not in triton.__version__:
        raise pytest.UsageError(
            "these tests are for triton_metal under Triton's name: run scripts/packages"
        )
    assert importlib.metadata.version("triton") == triton.__version__
