"""doctor --quirks --save switches tensor operations off on a Mac whose cooperative tensors lie elsewhere, and on again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import triton_metal as triton
from triton_metal import devices
from triton_metal.devices import detect, quirks
from triton_metal.devices.target import APPLE10
from triton_metal.doctor.quirks import catalogue, survey

from kernel_support import tl
from mac_support import found_on_mac

pytestmark = [pytest.mark.own_target, pytest.mark.own_route]


@pytest.fixture(autouse=True)
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_METAL_CONFIG_DIR", str(tmp_path))
    monkeypatch.delenv("TRITON_METAL_QUIRKS", raising=False)


def an_m5() -> detect.Detected:
    return found_on_mac("Apple M5", "26.2", build="25C1")


def surveyed(mac: detect.Detected, state: str) -> dict[str, Any]:
    """What `survey.gather` finds where row 12's probe ends in `state` on PyTorch's route."""
    (probe,) = (probe for probe in catalogue.probes() if probe.row == 12)
    raw = {"mps": {"state": state, "says": state}}
    row = {"row": 12, "cure": probe.cure, "raw": raw, "ours": {}, "ours_ok": True}
    row["has"] = survey.has_defect(raw)
    return {
        "machine": {"key": mac.quirk_key, "stand_ins": False},
        "rows": [row],
        "features": [probe.cure] if row["has"] else [],
    }


@triton.jit
def product_kernel(a_ptr, b_ptr, c_ptr):
    at = tl.arange(0, 32)[:, None] * 32 + tl.arange(0, 32)[None, :]
    tl.store(c_ptr + at, tl.dot(tl.load(a_ptr + at), tl.load(b_ptr + at)))


def text_for(mac: detect.Detected) -> str:
    ttir = product_kernel.warmup(tl.float16, tl.float16, tl.float32).asm["ttir"]
    return triton.compile_ttir(ttir, target=mac.target("mlx")).asm["metal"]


def test_a_wrong_layout_switches_tensor_operations_off_until_it_is_right() -> None:
    mac = an_m5()
    plain = mac.target("mlx").spec()
    assert "tensor_ops" in plain.split(",")
    assert "mpp::tensor_ops" in text_for(mac)
    assert survey.save(surveyed(mac, "wrong")).endswith(": simdgroup_dots")
    words = mac.target("mlx").spec().split(",")
    assert "tensor_ops" not in words
    assert "simdgroup_dots" not in words
    assert "simdgroup_multiply_accumulate" in text_for(mac)
    assert "mpp::tensor_ops" not in text_for(mac)
    # The Mac still has them, so that the next survey probes them again; one that cannot forgets nothing.
    assert mac.target("mlx").features["tensor_ops"]
    survey.save(surveyed(mac, "not applicable"))
    assert "tensor_ops" not in mac.target("mlx").spec().split(",")
    assert survey.save(surveyed(mac, "right")).endswith("no feature is needed")
    assert mac.target("mlx").spec() == plain


def test_the_environment_switches_them_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_METAL_QUIRKS", "simdgroup_dots")
    assert "simdgroup_dots" in quirks.understood()
    assert "tensor_ops" not in an_m5().target("mlx").spec().split(",")
    monkeypatch.setattr(devices.get("host"), "target", lambda: APPLE10)
    assert "tensor_ops" not in devices.target_spec("host").split(",")
    monkeypatch.setenv("TRITON_METAL_QUIRKS", "none")
    assert "tensor_ops" in devices.target_spec("host").split(",")
