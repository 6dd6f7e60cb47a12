"""Lets the Python that runs this import triton_metal from this checkout, from any folder."""

import sysconfig
from pathlib import Path

checkout = Path(__file__).resolve().parents[1] / "python"
site = Path(sysconfig.get_paths()["purelib"])
(site / "triton_metal_checkout.pth").write_text(f"{checkout}\n")
