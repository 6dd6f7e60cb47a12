"""A pytest plugin that records the kernels of tests. TRITON_METAL_RECORD names the file."""

from __future__ import annotations

import pytest


def pytest_configure(config: pytest.Config) -> None:
    import recorder

    recorder.start()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    import recorder

    recorder.place = item.nodeid
