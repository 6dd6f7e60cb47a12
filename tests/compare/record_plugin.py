"""A pytest plugin that records the kernels of tests. TRITON_METAL_RECORD names the file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def pytest_configure(config: pytest.Config) -> None:
    import recorder

    if os.environ.get("TRITON_METAL_RECORD_DRY") == "1":
        import dry

        dry.install()
    recorder.install(Path(os.environ["TRITON_METAL_RECORD"]))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    import recorder

    recorder.place = item.nodeid
