"""What tests of stock Triton's kernels share."""

from __future__ import annotations

from pathlib import Path

import pytest

#: Marks of its tests: stock Triton launches in its own way, so the suite's routes and targets do not concern it.
MARKS = [
    pytest.mark.own_route,
    pytest.mark.own_target,
    pytest.mark.usefixtures("metal_backend"),
]


@pytest.fixture
def metal_backend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stock Triton compiles with the backend "metal", into a cache of the test's own."""
    import triton

    monkeypatch.setenv("TRITON_DEFAULT_BACKEND", "metal")
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "triton"))
    if triton.runtime.driver.active.get_current_target().backend != "metal":
        pytest.skip("another backend is active in this process")
