"""The doctor's findings as data."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .. import cache, devices
from ..devices import detect
from ..errors import TritonError

PACKAGES = (
    "triton-metal",
    "triton-metal-host",
    "mlx",
    "torch",
    "numpy",
    "ml_dtypes",
    "triton",
    "rich",
)
PROBE_SECONDS = 300
SELF_TEST_SECONDS = 1800

Told = Callable[[str, dict[str, Any]], None]


def gather(full: bool = False, only: str = "", told: Told | None = None) -> dict[str, Any]:
    """All findings. ``told`` receives each record as soon as it exists."""
    from .. import __version__

    found = detect.detect()
    report: dict[str, Any] = {
        "triton_metal": __version__,
        "system": {
            "os": f"macOS {found.macos}"
            if found.macos
            else f"{platform.system()} {platform.release()}",
            "machine": platform.machine(),
            "python": platform.python_version(),
        },
        "packages": packages(),
        "gpu": gpu(found),
        "checks": [check_cache(), *check_numpy()],
        "devices": [],
    }
    for name in devices.names():
        report["devices"].append(examine(name, full, only, told))
    report["advice"] = advice(report, found)
    report["ok"] = verdict(report)
    return report


def packages() -> dict[str, str | None]:
    """The versions of the installed packages; None for a missing one."""
    result: dict[str, str | None] = {}
    for name in PACKAGES:
        try:
            result[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            result[name] = None
    return result


def gpu(found: detect.Detected) -> dict[str, Any]:
    """What is known of the Apple GPU of this machine, and why it cannot be used if it cannot."""
    result: dict[str, Any] = {"problem": found.problem()}
    if found.system != "Darwin":
        return result
    result |= found.properties("apple", found.chip.name or "unknown").as_dict()
    result |= {
        "architecture": found.architecture,
        "sources": found.sources,
        "conflicts": list(found.conflicts),
    }
    if result["problem"] is None:
        result["targets"] = {name: found.target(name).spec() for name in ("mlx", "mps")}
    return result


def check_cache() -> dict[str, Any]:
    """Whether compiled kernels can be cached."""
    record: dict[str, Any] = {"name": "cache of compiled kernels"}
    try:
        folder = cache.cache_dir()
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder):
            pass
        kernels = sum(1 for _ in folder.glob("*.json"))
        return record | {
            "ok": True,
            "detail": f"{shown_path(folder)}: {kernels} kernel{'s' * (kernels != 1)}",
        }
    except OSError as error:
        return record | {
            "ok": False,
            "error": f"{shown_path(cache.cache_dir())} cannot be written ({error.strerror})",
            "advice": "set another folder with the environment variable TRITON_METAL_CACHE_DIR",
        }


def check_numpy() -> list[dict[str, Any]]:
    """Whether the packages that the doctor itself needs are installed."""
    missing = {
        "numpy": {
            "ok": False,
            "error": "is not installed, but the doctor compares results with it",
        },
        "ml_dtypes": {
            "ok": True,
            "skipped": "is not installed, so bfloat16 is not tested",
        },
    }
    return [
        {"name": name, **record, "advice": f"pip install {name}"}
        for name, record in missing.items()
        if importlib.util.find_spec(name) is None
    ]


def examine(name: str, full: bool, only: str, told: Told | None) -> dict[str, Any]:
    """One device: its properties, and how kernels run on it."""
    device = devices.get(name)
    try:
        problem = device.problem()
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"
    result: dict[str, Any] = {"name": name, "problem": problem, "records": []}
    if problem is not None:
        return result
    try:
        result["properties"] = device.properties().as_dict()
        result["target"] = devices.target_for(name).spec()
    except TritonError as error:
        result["problem"] = str(error)
        return result

    def take(record: dict[str, Any]) -> None:
        result["records"].append(record)
        if told is not None:
            told(name, record)

    in_a_process(["probe", name], PROBE_SECONDS, take)
    if full:
        in_a_process(["self-test", name, only], SELF_TEST_SECONDS, take)
    result["ok"] = bool(result["records"]) and all(r.get("ok") for r in result["records"])
    return result


def example_names() -> list[str]:
    """The names of the examples; none where they cannot be had, which their runs tell."""
    records: list[dict[str, Any]] = []
    in_a_process(["examples"], PROBE_SECONDS, records.append)
    return [record["name"] for record in records if record["kind"] == "example"]


def in_a_process(
    command: list[str], seconds: float, take: Callable[[dict[str, Any]], None]
) -> None:
    """Runs one of this module's commands in a process, and takes its records, one per line."""
    code = "from triton_metal.doctor import worker; worker()"
    environment = dict(os.environ)
    # The child finds this package where this process found it.
    root = str(Path(__file__).resolve().parents[2])
    environment["PYTHONPATH"] = os.pathsep.join(
        part for part in (root, environment.get("PYTHONPATH", "")) if part
    )
    # Each device is asked in turn, whatever the environment would choose.
    environment.pop("TRITON_METAL_DEVICE", None)
    with tempfile.TemporaryFile("w+") as errors:
        child = subprocess.Popen(
            [sys.executable, "-c", code, *command],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=environment,
        )
        import threading

        timer = threading.Timer(seconds, child.kill)
        timer.start()
        assert child.stdout is not None
        ended = False
        try:
            for line in child.stdout:
                try:
                    record = json.loads(line)
                except ValueError:
                    continue  # what a library printed
                if record.get("kind") == "end":
                    ended = True
                else:
                    take(record)
            status = child.wait()
        finally:
            late = not timer.is_alive()
            timer.cancel()
            child.stdout.close()
        if not ended:
            errors.seek(0)
            said = errors.read().strip().splitlines()
            why = (
                f"took more than {seconds:.0f} s and was stopped"
                if late
                else f"was ended by signal {-status}"
                if status < 0
                else f"ended with status {status}"
            )
            last = f": {said[-1]}" if said else ""
            take({"kind": "process", "name": command[0], "ok": False, "error": f"{why}{last}"})


def advice(report: dict[str, Any], found: detect.Detected) -> list[str]:
    """What to do, with the most useful advice first."""
    result = []
    by_name = {device["name"]: device for device in report["devices"]}
    for check in report["checks"]:
        if "advice" in check:
            result.append(check["advice"])
    if found.system == "Darwin":
        problem = report["gpu"]["problem"]
        if problem:
            result.append(f"{problem}; kernels still run on the host device")
        elif by_name["mlx"]["problem"] and by_name["mps"]["problem"]:
            result.append("to run kernels on the GPU: pip install mlx (or torch)")
        result += [f"sources disagree: {text}" for text in report["gpu"]["conflicts"]]
    else:
        result.append(
            f"there is no Apple GPU on {found.system} {found.machine}: kernels run on the CPU, with the host Metal device"
        )
    if by_name["host"]["problem"]:
        result.append(f"the host device: {by_name['host']['problem']}")
    if any(not r.get("ok") for d in report["devices"] for r in d["records"]):
        result.append(
            "some kernels failed: `python -m triton_metal doctor --report report.md` writes a file with their "
            "Metal text, to attach to an issue"
        )
    return result


def verdict(report: dict[str, Any]) -> bool:
    """Whether every available device works, and at least one is available."""
    there = [device for device in report["devices"] if device["problem"] is None]
    return (
        bool(there)
        and all(device["ok"] for device in there)
        and all(check["ok"] for check in report["checks"])
    )


def _home() -> str:
    """The home folder; an empty text for a user who has none, or the root."""
    try:
        home = str(Path.home())
    except RuntimeError:
        return ""
    return home if len(home) > 1 else ""


def shown_path(path: Path) -> str:
    """A path without the name of its owner."""
    text, home = str(path), _home()
    return "~" + text[len(home) :] if home and text.startswith(home) else text


def without_owner(value: Any) -> Any:
    """The value with the home folder replaced by ~ in every text."""
    home = _home()
    if isinstance(value, str):
        return value.replace(home, "~") if home else value
    if isinstance(value, dict):
        return {key: without_owner(item) for key, item in value.items()}
    if isinstance(value, list):
        return [without_owner(item) for item in value]
    return value
