"""Lets the Python that runs this import triton_metal from this checkout, from any folder, and stock Triton find its
backend.
"""

import sysconfig
from pathlib import Path

import tomllib

root = Path(__file__).resolve().parents[1]
site = Path(sysconfig.get_paths()["purelib"])
(site / "triton_metal_checkout.pth").write_text(f"{root / 'python'}\n")

project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
information = site / f"triton_metal_checkout-{project['version']}.dist-info"
information.mkdir(exist_ok=True)
(information / "METADATA").write_text(
    f"Metadata-Version: 2.1\nName: triton-metal-checkout\nVersion: {project['version']}\n"
)
(information / "entry_points.txt").write_text(
    "".join(
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in entries.items())
        for group, entries in project["entry-points"].items()
    )
)
