"""Draws the pictures of docs/tutorial from what the pages' kernels count: `python scripts/tutorial_pictures.py`.

Each SVG carries the numbers that it was drawn from, in its description; the tests compare them with new ones.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import triton_metal as triton
from triton_metal.cost import bound, chip
from triton_metal.tutorial.pages import read_pages
from triton_metal.tutorial.running import Program, prepare

matplotlib.use("svg")
import matplotlib.pyplot as plt

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "tutorial"
INK, PAPER, BLUE, ORANGE, FAINT = "#1b1f24", "#ffffff", "#2f6fb7", "#c2571a", "#d0d7de"
#: On a dark background: the same colours, lighter.
DARK = {INK: "#e6edf3", PAPER: "#0d1117", BLUE: "#6cb0f5", ORANGE: "#f0965a", FAINT: "#3d444d"}


def program(page: int) -> Program:
    """The program of a page behind its last step that is no task."""
    steps = [step for step in read_pages(FOLDER)[page - 1].steps if step.code and not step.is_task]
    with contextlib.redirect_stdout(io.StringIO()):
        return prepare(steps)


def total(log: Any, *names: str) -> int:
    return sum(int(launch.counters[name]) for launch in log.launches for name in names)


def blocks() -> dict[str, Any]:
    return {"owners": np.bincount(program(1).variables["owners"]).tolist()}


def softmax() -> dict[str, Any]:
    names = program(2).variables
    data: dict[str, Any] = {
        "columns": [256, 512, 1024, 2048, 4096, 8192],
        "stepwise": [],
        "fused": [],
    }
    for columns in data["columns"]:
        x = np.zeros((16, columns), np.float32)
        with triton.launch_options(count=True) as log:
            names["stepwise"](x)
        data["stepwise"].append(names["moved"](log) / 16)
        with triton.launch_options(count=True) as log:
            names["softmax_kernel"][(16,)](x, np.empty_like(x), columns, BLOCK=columns)
        data["fused"].append(names["moved"](log) / 16)
    return data


def fusing() -> dict[str, Any]:
    names = program(3).variables
    chips = ["M1", "M2", "M2 Max", "M3 Max", "M2 Ultra"]
    return {"chips": chips} | {
        key: [
            round(1e6 * sum(bound(chip(each), work).seconds for work in names[key].works), 2)
            for each in chips
        ]
        for key in ("three", "one")
    }


def lines() -> dict[str, Any]:
    names = program(4).variables
    shapes = [(1, 1024), (16, 64), (64, 64), (256, 16), (256, 4), (1024, 1)]
    used = []
    for shape in shapes:
        counters = names["copy"](names["x"], names["out"], *shape)
        used.append(round(counters["device_bytes_read"] / 1.28 / counters["device_lines_read"], 1))
    return {"shapes": [f"{m} × {n}" for m, n in shapes], "used": used}


def sums() -> dict[str, Any]:
    names = program(5).variables
    x, out = names["x"], names["out"]
    data: dict[str, Any] = {"block": [256, 1024, 4096, 16384], "atomics": [], "extra": []}
    for block in data["block"]:
        with triton.launch_options(count=True) as log:
            names["atomic_kernel"][(triton.cdiv(x.size, block),)](x, out, x.size, BLOCK=block)
        data["atomics"].append(total(log, "atomics"))
        with triton.launch_options(count=True) as log:
            names["split_sum"](x, out, block)
        data["extra"].append(total(log, "device_bytes_read", "device_bytes_written") - x.nbytes)
    return data


def matmul() -> dict[str, Any]:
    names = program(8).variables
    data: dict[str, Any] = {"tile": [16, 32, 64, 128], "bytes": []}
    a, b, c = (names[name] for name in "abc")
    for tile in data["tile"]:
        with triton.launch_options(count=True) as log:
            names["tiled_kernel"][((256 // tile) ** 2,)](
                a, b, c, 256, 256, 256, BLOCK_M=tile, BLOCK_N=tile, BLOCK_K=16
            )
        data["bytes"].append(total(log, "device_bytes_read"))
    return data | {"naive": int(names["naive"]["device_bytes_read"]), "least": a.nbytes + b.nbytes}


def order() -> dict[str, Any]:
    names = program(8).variables
    return {str(group): names["order"](16, group).tolist() for group in (1, 8)}


def tuning() -> dict[str, Any]:
    names = program(9).variables
    found: dict[str, Any] = {}
    for key, result in names["matmul_kernel"].results.items():
        found[" × ".join(map(str, key[:3]))] = {
            "×".join(str(v) for v in row.config.kwargs.values()): round(row.value)
            for row in result.rows
        }
    return found


NUMBERS = {f.__name__: f for f in (blocks, softmax, fusing, lines, sums, matmul, order, tuning)}


def draw(name: str, data: dict[str, Any]) -> str:
    """The text of a picture."""
    style = {
        **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), INK),
        "figure.facecolor": PAPER, "axes.facecolor": PAPER, "svg.hashsalt": name, "font.size": 11,
        "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False,
        "axes.titlesize": 12, "axes.titlelocation": "left",
    }  # fmt: skip
    with plt.rc_context(style):
        figure, axes = plt.subplots(
            1, 2 if name in ("order", "sums") else 1, figsize=(7.2, 3.4), layout="constrained"
        )
        globals()[f"_{name}"](axes, data)
        stream = io.StringIO()
        figure.savefig(
            stream,
            format="svg",
            metadata={"Date": None, "Creator": None, "Description": json.dumps(data)},
        )
        plt.close(figure)
    rules = "".join(
        f'[style*="{kind}: {light}"]{{{kind}:{dark} !important}}'
        for light, dark in DARK.items()
        for kind in ("fill", "stroke")
    )
    text = re.sub(r"[ \t]+$", "", stream.getvalue(), flags=re.MULTILINE)
    return text.replace(
        "<defs>", f"<style>@media (prefers-color-scheme: dark){{{rules}}}</style>\n <defs>", 1
    )


def numbers_of(text: str) -> dict[str, Any]:
    """The numbers that a picture was drawn from."""
    import html

    found = re.search(r"<dc:description>(.*?)</dc:description>", text, re.DOTALL)
    assert found, "a picture without its numbers"
    return json.loads(html.unescape(found[1]))


def _bars(axes: Any, labels: list[str], values: list[float], form: str, color: str = BLUE) -> None:
    bars = axes.barh(labels, values, color=color)
    axes.bar_label(bars, [form.format(v) for v in values], padding=4)
    axes.invert_yaxis()
    axes.margins(x=0.18)


def _blocks(axes: Any, data: dict[str, Any]) -> None:
    for i, count in enumerate(data["owners"]):
        axes.barh(0, count, left=256 * i, height=0.5, color=(BLUE, ORANGE)[i % 2], edgecolor=PAPER)
        axes.text(256 * i + 128, 0.42, f"program {i}: {count}", ha="center")
        masked = 256 - count
        if masked:
            axes.barh(0, masked, left=256 * i + count, height=0.5, color=FAINT, edgecolor=PAPER)
            axes.text(1024, -0.48, f"{masked} masked", ha="right")
    axes.set(yticks=[], xticks=[0, 256, 512, 768, 1000], xlabel="element", ylim=(-0.7, 0.8))
    axes.spines["left"].set_visible(False)


def _softmax(axes: Any, data: dict[str, Any]) -> None:
    axes.plot(
        data["columns"], np.array(data["stepwise"]) / 1024, "o-", color=ORANGE, label="four kernels"
    )
    axes.plot(data["columns"], np.array(data["fused"]) / 1024, "o-", color=BLUE, label="one kernel")
    axes.set(xscale="log", xlabel="columns", ylabel="KB moved for a row", xticks=data["columns"])
    axes.set_xticks(data["columns"], [str(n) for n in data["columns"]])
    axes.minorticks_off()
    axes.legend()


def _fusing(axes: Any, data: dict[str, Any]) -> None:
    at = np.arange(len(data["chips"]))
    for shift, key, color, label in (
        (-0.2, "three", ORANGE, "three kernels"),
        (0.2, "one", BLUE, "one kernel"),
    ):
        axes.bar_label(
            axes.bar(at + shift, data[key], 0.38, color=color, label=label), fmt="%.0f", padding=2
        )
    axes.set_xticks(at, data["chips"])
    axes.set(ylabel="µs at least (model)")
    axes.legend()


def _lines(axes: Any, data: dict[str, Any]) -> None:
    _bars(axes, data["shapes"], data["used"], "{:.0f} %")
    axes.set(xlabel="used of each 128-byte line that is read", ylabel="tile")


def _sums(axes: Any, data: dict[str, Any]) -> None:
    labels = [str(block) for block in data["block"]]
    _bars(axes[0], labels, data["atomics"], "{:,.0f}", ORANGE)
    axes[0].set(title="atomics of the atomic sum", ylabel="BLOCK")
    _bars(axes[1], labels, data["extra"], "{:,.0f}")
    axes[1].set(title="bytes beside x, two kernels")
    for each in axes:
        each.margins(x=0.35)


def _matmul(axes: Any, data: dict[str, Any]) -> None:
    labels = ["naive", *(f"{n} × {n}" for n in data["tile"]), "A and B once"]
    _bars(axes, labels, [n / 1e6 for n in (data["naive"], *data["bytes"], data["least"])], "{:.2f}")
    axes.set(xscale="log", xlabel="MB read (logarithmic)", ylabel="tile of C")


def _order(axes: Any, data: dict[str, Any]) -> None:
    for each, (group, numbers) in zip(axes, data.items(), strict=True):
        values = np.array(numbers)
        for (row, column), number in np.ndenumerate(values):
            color = BLUE if number < 64 else FAINT
            each.add_patch(plt.Rectangle((column - 0.45, row - 0.45), 0.9, 0.9, color=color))
        path = np.array([np.argwhere(values == n)[0] for n in range(64)])
        each.plot(path[:, 1], path[:, 0], color=ORANGE, linewidth=1)
        each.set(
            xlim=(-0.6, 15.6), ylim=(15.6, -0.6), aspect="equal", xticks=[], yticks=[],
            title=f"GROUP={group}", xlabel="the first 64 of 256 tiles of C",
        )  # fmt: skip


def _tuning(axes: Any, data: dict[str, Any]) -> None:
    for (shape, costs), color in zip(data.items(), (BLUE, ORANGE), strict=True):
        values = np.array(list(costs.values()))
        axes.plot(list(costs), values / values.min(), "o-", color=color, label=shape)
    axes.set(ylabel="estimate ÷ the best one's", yscale="log")
    axes.set_yticks([1, 2, 4, 8], ["1", "2", "4", "8"])
    axes.minorticks_off()
    axes.tick_params(axis="x", rotation=40)
    axes.legend()


def main() -> int:
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # page 9 writes a file
        try:
            for name, numbers in NUMBERS.items():
                (FOLDER / f"{name}.svg").write_text(draw(name, numbers()), encoding="utf-8")
        finally:
            os.chdir(here)
    return 0


if __name__ == "__main__":
    sys.exit(main())
