"""The tables of a run of Triton's own tests: by file, the refusals by reason, what is wrong."""

from __future__ import annotations

import json
import re
import statistics
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

#: What became of a test, in words.
KINDS = {
    "right": "right",
    "wrong": "wrong",
    "refused": "refused",
    "crashed": "crashed",
    "foreign": "asks for another backend's text or limit",
    "stock": "failed in stock Triton",
    "front": "failed before a kernel was compiled",
    "uncollected": "not collected",
    "passed": "passed without a kernel",
    "skipped": "skipped",
}


def read(path: Path) -> list[dict[str, Any]]:
    """The results of a run. Where a test has several, the worst counts."""
    order = [
        "passed",
        "right",
        "skipped",
        "stock",
        "front",
        "uncollected",
        "foreign",
        "refused",
        "wrong",
        "crashed",
    ]
    found: dict[str, dict[str, Any]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        result = json.loads(line)
        before = found.get(result["test"])
        if before is None or order.index(before["kind"]) < order.index(result["kind"]):
            found[result["test"]] = result
    return list(found.values())


def file_of(test: str) -> str:
    """The file of a test, without the folders that all have."""
    return test.partition("::")[0].rpartition("unit/")[2]


def reason(message: str) -> str:
    """A refusal without what differs from kernel to kernel: places, numbers and shapes."""
    line = next((part for part in message.splitlines() if part.strip()), "")
    line = re.sub(r"^.*?error: ", "", line)
    line = re.sub(r"tensor<[^>]*>+", "tensor", line)
    return re.sub(r"\b\d+\b", "N", line)[:160]


def markdown(results: list[dict[str, Any]]) -> str:
    """The tables, as Markdown."""
    files: dict[str, Counter[str]] = defaultdict(Counter)
    for result in results:
        files[file_of(result["test"])][result["kind"]] += 1
    kinds = [kind for kind in KINDS if any(counts[kind] for counts in files.values())]
    lines = ["| file | " + " | ".join(KINDS[kind] for kind in kinds) + " |"]
    lines.append("|---|" + "---:|" * len(kinds))
    for file, counts in sorted(files.items()):
        lines.append(f"| {file} | " + " | ".join(str(counts[kind]) for kind in kinds) + " |")
    total = Counter(result["kind"] for result in results)
    lines.append("| all | " + " | ".join(str(total[kind]) for kind in kinds) + " |")

    refusals: dict[str, list[str]] = defaultdict(list)
    for result in results:
        if result["kind"] == "refused":
            refusals[reason(result["refused"][0])].append(result["test"])
    if refusals:
        lines += ["", "| tests | refused because | for example |", "|---:|---|---|"]
        for text, tests in sorted(refusals.items(), key=lambda item: -len(item[1])):
            lines.append(f"| {len(tests)} | {text} | `{tests[0].rpartition('::')[2]}` |")
    titles = {"wrong": "Wrong", "crashed": "Crashed", "foreign": KINDS["foreign"].capitalize()}
    for kind, title in titles.items():
        bad = [result for result in results if result["kind"] == kind]
        if bad:
            lines += ["", f"{title}:", ""]
            lines += [f"- `{result['test']}`: {first_line(result['error'])}" for result in bad]
    stock = Counter(
        (file_of(result["test"]), reason(result["error"]))
        for result in results
        if result["kind"] in ("stock", "front", "uncollected")
    )
    if stock:
        lines += [
            "",
            "| tests | file | failed before a kernel reached the backend |",
            "|---:|---|---|",
        ]
        lines += [f"| {n} | {file} | {text} |" for (file, text), n in stock.most_common()]
    return "\n".join(lines)


def against(results: list[dict[str, Any]], others: list[dict[str, Any]]) -> str:
    """The share of what passed in another run that passes in this one, and what does not, by reason."""
    passing = ("right", "passed")
    passed = {name_of(result["test"]) for result in others if result["kind"] in passing}
    here = [result for result in results if name_of(result["test"]) in passed]
    lost = [result for result in here if result["kind"] not in passing]
    # Tests of a file that cannot be imported are lost.
    absent = {
        file_of(result["test"]): result for result in results if result["kind"] == "uncollected"
    }
    unseen = [
        result
        for result in others
        if result["kind"] in passing and file_of(result["test"]) in absent
    ]
    lost += [absent[file_of(result["test"])] | {"test": result["test"]} for result in unseen]
    here += unseen
    files = Counter(file_of(result["test"]) for result in here)
    missing = Counter(file_of(result["test"]) for result in lost)
    lines = ["| file | passed there | passes here |", "|---|---:|---:|"]
    lines += [f"| {file} | {n} | {n - missing[file]} |" for file, n in sorted(files.items())]
    reasons: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for result in lost:
        said = result["refused"][0] if result["refused"] else result["error"]
        reasons[file_of(result["test"]), result["kind"], reason(said)].append(result["test"])
    if reasons:
        lines += ["", "| tests | file | kind | reason | for example |", "|---:|---|---|---|---|"]
        for (file, kind, text), tests in sorted(reasons.items(), key=lambda item: -len(item[1])):
            example = tests[0].rpartition("::")[2]
            lines.append(f"| {len(tests)} | {file} | {kind} | {text} | `{example}` |")
    share = (len(here) - len(lost)) / len(here) if here else 0.0
    lines += [
        "",
        f"{len(here) - len(lost)} of {len(here)} tests that passed there pass here ({share:.2%})",
    ]
    return "\n".join(lines)


def name_of(test: str) -> str:
    """A test's name without what differs from process to process."""
    return re.sub(r"0x[0-9a-f]+", "0x", test)


def first_line(text: str) -> str:
    """The first line of a message, shortened."""
    return next((line for line in text.splitlines() if line.strip()), "")[:200]


def summary(results: list[dict[str, Any]], seconds: float) -> str:
    """The figures, and a last line as pytest writes it."""
    total = Counter(result["kind"] for result in results)
    reached = sum(total[kind] for kind in ("right", "wrong", "refused", "crashed"))
    lines = []
    if reached:
        lines.append(
            f"{reached} tests reach the backend: {total['right']} right ({total['right'] / reached:.1%}), "
            f"{total['wrong'] + total['crashed']} wrong, {total['refused']} refused"
        )
    times = sorted(time for result in results for time in result["milliseconds"])
    if len(times) > 1:
        lines.append(
            f"{len(times)} kernels compiled to Metal in {statistics.median(times):.1f} ms (median), "
            f"{times[int(len(times) * 0.99)]:.1f} ms (99 %), {times[-1]:.0f} ms (most); "
            f"the largest text has {max(result['largest'] for result in results):,} bytes"
        )
    lines.append(f"{seconds / 60:.1f} minutes")
    passed = total["right"] + total["passed"]
    failed = len(results) - passed - total["skipped"]
    lines.append(f"{passed} passed, {failed} failed, {total['skipped']} skipped")
    return "\n".join(lines)
