"""A Mac as its tools describe it, in the format of their texts. None of them was recorded on a Mac by this project."""

from __future__ import annotations

from triton_metal.devices import detect

# ioreg prints an object of the IO registry with its properties one a line, as `"key" = value`.
IOREG = """+-o AGXAcceleratorG{generation}X  <class AGXAcceleratorG{generation}X, id 0x100000abc, registered, matched, active, busy 0 (0 ms), retain 99>
    {{
      "gpu-core-count" = {cores}
      "model" = "{chip}"
      "IOClass" = "AGXAcceleratorG{generation}X"
    }}

"""


def mac(chip, macos, cores=None, memory=None, ioreg=True, build=None):
    """A stand-in for running commands."""
    outputs = {
        ("sysctl", "-n", "machdep.cpu.brand_string"): f"{chip}\n" if chip else None,
        ("sysctl", "-n", "hw.memsize"): f"{memory}\n" if memory else None,
        ("sysctl", "-n", "kern.osproductversion"): f"{macos}\n" if macos else None,
        ("sw_vers", "-productVersion"): f"{macos}\n" if macos else None,
        ("sw_vers", "-buildVersion"): f"{build}\n" if build else None,
    }
    if ioreg and cores:
        outputs[("ioreg", "-r", "-c", "AGXAccelerator", "-d", "1")] = IOREG.format(
            generation=13, cores=cores, chip=chip
        )
    return lambda command: outputs.get(tuple(command))


def found_on_mac(chip, macos, mlx=None, torch=None, **others):
    """What detection finds on a Mac whose tools and frameworks say this."""
    return detect.gather(
        mac(chip, macos, **others),
        mlx=lambda: mlx or {},
        torch=lambda: torch or {},
        system="Darwin",
        machine="arm64",
    )
