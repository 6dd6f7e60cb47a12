"""Detection of this Mac from what the system and the frameworks report. Nothing is guessed."""

from __future__ import annotations

import functools
import platform
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..errors import DeviceError
from . import quirks
from .base import DeviceProperties
from .chip import Chip, parse_chip
from .target import Target, apple, features_of, msl_of_macos

Run = Callable[[Sequence[str]], str | None]


@dataclass(frozen=True)
class Detected:
    """The detected values, and the source of each."""

    system: str
    machine: str
    chip: Chip = field(default_factory=lambda: Chip(None))
    macos: str | None = None
    build: str | None = None
    gpu_cores: int | None = None
    memory_bytes: int | None = None
    working_set_bytes: int | None = None
    max_buffer_bytes: int | None = None
    architecture: str | None = None
    metal_support: str | None = None
    mlx: str | None = None
    torch: str | None = None
    sources: dict[str, str] = field(default_factory=dict)
    conflicts: tuple[str, ...] = ()

    @property
    def msl_version(self) -> str | None:
        """The newest Metal language version that this macOS has."""
        return msl_of_macos(self.macos or "")

    @property
    def gpu_family(self) -> str | None:
        """MTLGPUFamily's name; None if the feature set tables do not list the chip."""
        return f"apple{self.chip.family}" if self.chip.family else None

    def problem(self) -> str | None:
        """Why kernels cannot run on this machine's GPU; None if they can."""
        try:
            self.target()
        except DeviceError as error:
            return str(error)
        return None

    def target(self, framework: str | None = None) -> Target:
        """The target to compile for. A framework may use an older language version than the newest."""
        if self.system != "Darwin":
            raise DeviceError(f"{self.system} {self.machine} has no Apple GPU")
        return apple(
            self.macos or "",
            self.chip,
            framework_msl(framework, self.macos or ""),
            quirks.features_of(self.quirk_key),
        )

    @property
    def quirk_key(self) -> str | None:
        """How the doctor's file of quirks names this Mac."""
        return quirks.machine(self.chip.name, self.build)

    def properties(self, kind: str, name: str) -> DeviceProperties:
        """The detected values as a device's properties."""
        msl = self.msl_version
        return DeviceProperties(
            name=name,
            kind=kind,
            chip=self.chip.name,
            gpu_cores=self.gpu_cores,
            gpu_family=self.gpu_family,
            os=f"macOS {self.macos}" if self.macos else None,
            msl_version=msl,
            working_set_bytes=self.working_set_bytes,
            max_buffer_bytes=self.max_buffer_bytes,
            memory_bytes=self.memory_bytes,
            features=features_of(
                msl,
                self.chip.family,
                7 if self.chip.is_apple_gpu else None,
                self.chip.virtual,
            )
            if msl
            else {},
        )


def framework_msl(framework: str | None, macos: str) -> str | None:
    """The newest language version that a framework passes to Metal's compiler; None if no limit is known.

    Both frameworks use 3.1 before macOS 15, 3.2 on macOS 15, and 4.0 on macOS 26 (MLX: mlx/backend/metal/device.cpp;
    PyTorch: compileLibrary in aten/src/ATen/native/mps/OperationUtils.mm; its earlier releases use 3.1 everywhere).
    PyTorch uses at most 4.0.

    >>> framework_msl("mps", "27.0"), framework_msl("mlx", "15.1")
    ('4.0', '3.2')
    """
    head = macos.split(".")[0]
    if framework is None or not head.isdigit():
        return None
    major = int(head)
    if major >= 26:
        return "4.0" if framework == "mps" else None
    return "3.2" if major >= 15 else "3.1"


def run_command(command: Sequence[str]) -> str | None:
    """The output of a command; None if it does not exist or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def mlx_facts() -> dict[str, Any]:
    """mx.device_info() of the GPU, with MLX's version under "version"; empty without MLX."""
    try:
        import mlx.core as mx
    except ImportError:
        return {}
    facts: dict[str, Any] = {"version": getattr(mx, "__version__", None)}
    if mx.metal.is_available():
        # Of the GPU, whatever the default device is; MLX's earlier releases have it under mx.metal alone.
        info = getattr(mx, "device_info", None)
        facts |= dict(mx.metal.device_info() if info is None else info(mx.gpu))
    return facts


def torch_facts() -> dict[str, Any]:
    """What torch reports of the MPS device, with its version under "version"; empty without torch."""
    try:
        import torch
    except ImportError:
        return {}
    facts: dict[str, Any] = {"version": str(torch.__version__)}
    if torch.backends.mps.is_available():
        count = getattr(torch.backends.mps, "get_core_count", None)
        if count is not None:
            # Where the IO registry has no AGXAccelerator, as in a guest, torch counts none.
            facts["gpu_cores"] = count() or None
        name = getattr(torch.backends.mps, "get_name", None)
        if name is not None:
            facts["device_name"] = name()
        facts["working_set_bytes"] = torch.mps.recommended_max_memory()
    return facts


def gather(
    run: Run = run_command,
    mlx: Callable[[], dict[str, Any]] = mlx_facts,
    torch: Callable[[], dict[str, Any]] = torch_facts,
    system: str | None = None,
    machine: str | None = None,
) -> Detected:
    """Asks the system and the frameworks. Tests replace them through the arguments."""
    system = system or platform.system()
    machine = machine or platform.machine()
    from_mlx, from_torch = mlx(), torch()
    versions = {"mlx": from_mlx.get("version"), "torch": from_torch.get("version")}
    if system != "Darwin":
        return Detected(system, machine, **versions)
    found: dict[str, list[tuple[Any, str]]] = {}

    def note(name: str, value: Any, source: str) -> None:
        if value not in (None, ""):
            found.setdefault(name, []).append((value, source))

    def sysctl(name: str) -> str | None:
        text = run(["sysctl", "-n", name])
        return text.strip() if text and text.strip() else None

    note("chip", sysctl("machdep.cpu.brand_string"), "sysctl machdep.cpu.brand_string")
    names = (from_mlx.get("device_name"), from_torch.get("device_name"))
    # MTLDevice's name in a guest of macOS's own virtualisation, where the system's is that of the host's chip.
    virtual = any("paravirtual" in str(name).lower() for name in names)
    if sysctl("kern.hv_vmm_present") == "1":
        virtual = True
    if not virtual:
        note("chip", names[0], "mx.device_info()")
        note("chip", names[1], "torch.backends.mps.get_name()")
    macos = run(["sw_vers", "-productVersion"])
    note("macos", macos.strip() if macos else None, "sw_vers -productVersion")
    note("macos", sysctl("kern.osproductversion"), "sysctl kern.osproductversion")
    build = run(["sw_vers", "-buildVersion"])
    note("build", build.strip() if build else None, "sw_vers -buildVersion")
    note("build", sysctl("kern.osversion"), "sysctl kern.osversion")
    registry = run(["ioreg", "-r", "-c", "AGXAccelerator", "-d", "1"]) or ""
    cores = re.search(r'"gpu-core-count"\s*=\s*(\d+)', registry)
    note("gpu_cores", int(cores[1]) if cores else None, "ioreg gpu-core-count")
    note("gpu_cores", from_torch.get("gpu_cores"), "torch.backends.mps.get_core_count()")
    model = re.search(r'"model"\s*=\s*"([^"]*)"', registry)
    note("chip", model[1] if model else None, "ioreg model")
    memory = sysctl("hw.memsize")
    note("memory_bytes", int(memory) if memory and memory.isdigit() else None, "sysctl hw.memsize")
    note("memory_bytes", from_mlx.get("memory_size"), "mx.device_info()")
    note("working_set_bytes", from_mlx.get("max_recommended_working_set_size"), "mx.device_info()")
    note(
        "working_set_bytes",
        from_torch.get("working_set_bytes"),
        "torch.mps.recommended_max_memory()",
    )
    note("max_buffer_bytes", from_mlx.get("max_buffer_length"), "mx.device_info()")
    note("architecture", from_mlx.get("architecture"), "mx.device_info()")

    conflicts = []
    for name, values in found.items():
        different = {str(value) for value, _ in values}
        if len(different) > 1:
            said = ", ".join(f"{source} says {value}" for value, source in values)
            conflicts.append(f"{name}: {said}")

    def first(name: str) -> Any:
        return found[name][0][0] if name in found else None

    chip = parse_chip(first("chip"))
    if virtual:
        chip = replace(chip, virtual=True)
    return Detected(
        system,
        machine,
        chip=chip,
        macos=first("macos"),
        build=first("build"),
        gpu_cores=first("gpu_cores"),
        memory_bytes=first("memory_bytes"),
        working_set_bytes=first("working_set_bytes"),
        max_buffer_bytes=first("max_buffer_bytes"),
        architecture=first("architecture"),
        sources={name: values[0][1] for name, values in found.items()},
        conflicts=tuple(conflicts),
        **versions,
    )


@functools.cache
def detect() -> Detected:
    """Everything that is known of this machine, cached. Imports the frameworks."""
    return gather()


@functools.cache
def detect_with(framework: str) -> Detected:
    """Detection from the system and from only one framework, "mlx" or "mps"."""
    return gather(
        mlx=mlx_facts if framework == "mlx" else dict,
        torch=torch_facts if framework == "mps" else dict,
    )


@functools.cache
def detect_quickly() -> Detected:
    """Detection from the system only, which is enough for a compilation."""
    return gather(mlx=dict, torch=dict)


def is_mac() -> bool:
    """Whether this is macOS."""
    return sys.platform == "darwin"
