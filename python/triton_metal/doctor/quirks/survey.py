"""All probes on all routes: which defects this machine has, and whether the compiler's forms are right."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ... import devices
from ...devices import detect, quirks
from ...errors import DeviceError, TritonError
from . import catalogue, processes
from .form import Probe, Question
from .processes import Job
from .routes import ROUTES

#: States of a form that show a defect: of the Mac in the raw form, of triton-metal in the other.
BAD = ("wrong", "crashes", "hangs", "does not compile", "refused")

Told = Callable[[str], None]


def select(only: str) -> tuple[list[Probe], list[Question]]:
    """The probes and questions that ``--only`` names: a row's number, or a part of a question's name."""
    probes, questions = list(catalogue.probes()), list(catalogue.questions())
    if not only:
        return probes, questions
    if only.isdigit():
        return [probe for probe in probes if probe.row == int(only)], []
    return [], [question for question in questions if only in question.name]


def routes_here(
    stand_ins: bool | None = None,
) -> tuple[dict[str, str | None], frozenset[str]]:
    """Each route with the reason why it is not here, and the routes where a stand-in replaces the framework.

    On a machine without an Apple GPU the stand-ins of triton_metal.testing take the place of PyTorch's and MLX's
    functions.
    """
    problems: dict[str, str | None] = {}
    mlx, mps, host = (devices.get(name) for name in ("mlx", "mps", "host"))
    mlx_problem = _problem(mlx)
    use_stand_ins = not detect.is_mac() if stand_ins is None else stand_ins
    if use_stand_ins:
        problems["mps"] = _problem(host)
        problems["mlx"] = problems["mlx-in-place"] = mlx_problem
    else:
        problems["mps"] = _problem(mps)
        if mlx_problem is None and not mlx.on_gpu():  # type: ignore[attr-defined]
            mlx_problem = "MLX has no GPU here"
        problems["mlx"] = problems["mlx-in-place"] = mlx_problem
    if problems["mlx-in-place"] is None:
        from ...mlx import in_place

        try:
            in_place.native()
        except (DeviceError, ImportError) as error:
            problems["mlx-in-place"] = str(error)
            if use_stand_ins:
                problems["mlx"] = str(error)
    problems["host"] = _problem(host)
    return problems, frozenset(("mps", "mlx")) if use_stand_ins else frozenset()


def _problem(device: devices.Device) -> str | None:
    try:
        return device.problem()
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def features_here() -> Mapping[str, bool | None]:
    """The features of this Mac's target; those of the baseline elsewhere."""
    try:
        return detect.detect_quickly().target("mps").features
    except TritonError:
        return devices.get("host").target().features


def lacking(item: Probe | Question, which: str, features: Mapping[str, bool | None]) -> str | None:
    """The first feature that a form needs and this machine does not have."""
    needs = item.needs
    if which == "ours" and isinstance(item, Probe):
        needs += item.ours_needs
        if item.ours is None:
            return None
    return next((name for name in needs if features.get(name) is False), None)


def gather(
    only: str = "",
    told: Told | None = None,
    *,
    stand_ins: bool | None = None,
    ways: Sequence[str] = tuple(ROUTES),
    setup: str = "",
    run_seconds: float = processes.RUN_SECONDS,
    total_seconds: float | None = None,
) -> dict[str, Any]:
    """The findings as data. ``told`` receives a line on the progress before each form.

    ``ways`` are the routes to take, where they are here. ``setup`` and the others are for tests.
    """
    problems, replaced = routes_here(stand_ins)
    routes = [route for route in ROUTES if problems[route] is None and route in ways]
    probes, questions = select(only)
    features = features_here()

    jobs: list[Job] = []
    skipped: dict[Job, dict[str, Any]] = {}
    # What decides the exit status comes first; what may hang or crash comes after it.
    plan: list[tuple[Probe | Question, str]] = [(probe, "ours") for probe in probes]
    plan += [(probe, "raw") for probe in probes]
    for item, which in plan:
        name = lacking(item, which, features)
        why = f"needs {name}" if name else "" if item.form(which) else "the compiler prints none"
        for route in routes:
            job = Job(route, (item.key,), which)
            if why:
                skipped[job] = {"state": "not applicable", "says": f"not applicable: {why}"}
            else:
                jobs.append(job)
    asked = tuple(q.key for q in questions if lacking(q, "question", features) is None)
    if asked:
        jobs += [Job(route, asked, "question") for route in routes]

    total = sum(len(job.keys) for job in jobs)

    def progress(count: int, job: Job, key: str) -> None:
        if told is not None:
            told(f"{count + 1} of {total}: {ROUTES[job.route]}, {key}, {job.form}")

    if total_seconds is None:
        total_seconds = processes.STAND_IN_SECONDS if replaced else processes.TOTAL_SECONDS
    found = processes.run_all(
        jobs,
        progress,
        stand_ins=replaced,
        setup=setup,
        run_seconds=run_seconds,
        total_seconds=total_seconds,
    )

    def result(route: str, key: str, which: str) -> dict[str, Any]:
        job = Job(route, (key,), which)
        if job in skipped:
            return skipped[job]
        return found.get(
            (route, key, which), {"state": "not applicable", "says": "not applicable here"}
        )

    rows: list[dict[str, Any]] = []
    for probe in probes:
        row: dict[str, Any] = {
            "row": probe.row,
            "construct": probe.construct,
            "happens": probe.happens,
            "source": probe.source,
            "cure": probe.cure,
        }
        for which in ("raw", "ours"):
            row[which] = {route: result(route, probe.key, which) for route in routes}
        row["has"] = has_defect(row["raw"])
        row["ours_ok"] = not any(r["state"] in BAD for r in row["ours"].values())
        rows.append(row)
    survey: dict[str, Any] = {
        "machine": describe(replaced),
        "routes": {
            route: {
                "name": ROUTES[route],
                "problem": problem,
                "stand_in": route in replaced or (route == "mlx-in-place" and bool(replaced)),
            }
            for route, problem in problems.items()
        },
        "rows": rows,
        "answers": [
            {
                "name": question.name,
                "asks": question.asks,
                "source": question.source,
                "answers": {route: result(route, question.key, "question") for route in routes},
            }
            for question in questions
        ],
    }
    survey["features"] = sorted(
        {row["cure"] for row in rows if row["cure"] and row["has"] and row["ours_ok"]}
    )
    survey["conclusion"] = conclusion(survey)
    survey["advice"] = advice(survey)
    survey["ok"] = bool(routes) and all(row["ours_ok"] for row in rows)
    return survey


def has_defect(raw: Mapping[str, Mapping[str, Any]]) -> bool | None:
    """Whether the raw form went wrong on a route; None if no route has run it."""
    states = [result["state"] for result in raw.values()]
    if any(state in BAD for state in states):
        return True
    return False if "right" in states else None


def all_not_applicable(results: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether a form concerns no route here."""
    return bool(results) and all(r["state"] == "not applicable" for r in results.values())


def is_foreign(row: Mapping[str, Any]) -> bool:
    """Whether neither form of a row concerns this machine."""
    return all_not_applicable(row["raw"]) and all_not_applicable(row["ours"])


def describe(replaced: frozenset[str]) -> dict[str, Any]:
    """This machine: chip, macOS and its build, the versions of the frameworks and of the Metal compiler."""
    found = detect.detect_quickly()
    from ..report import packages

    versions = packages()
    compiler = detect.run_command(["xcrun", "metal", "--version"]) if detect.is_mac() else None
    return {
        "system": found.system,
        "machine": found.machine,
        "chip": found.chip.name,
        "macos": found.macos,
        "build": found.build,
        "metal_compiler": compiler.strip().splitlines()[0]
        if compiler and compiler.strip()
        else None,
        "mlx": versions.get("mlx"),
        "torch": versions.get("torch"),
        "key": found.quirk_key,
        "stand_ins": bool(replaced),
    }


def conclusion(survey: Mapping[str, Any]) -> str:
    """One sentence on the defects, and one on the compiler's forms."""
    # Rows that cannot be on this machine do not count.
    rows = [row for row in survey["rows"] if not is_foreign(row)]
    if not any(row["raw"] or row["ours"] for row in rows):
        return "no probe ran: no route is available here" if rows else "no defect was looked for"
    subject = "this Mac" if survey["machine"]["system"] == "Darwin" else "this machine"
    has = [row["row"] for row in rows if row["has"]]
    unknown = [row["row"] for row in rows if row["has"] is None]
    known = "defect" if len(rows) == 1 else "defects"
    first = f"{subject} has {len(has)} of {len(rows)} known {known}"
    if has:
        first += f" ({'row' if len(has) == 1 else 'rows'} {', '.join(map(str, has))})"
    if unknown:
        first += f"; {len(unknown)} could not be looked for"
    wrong = [row["row"] for row in rows if not row["ours_ok"]]
    if wrong:
        second = f"our form is NOT right in {'row' if len(wrong) == 1 else 'rows'} " + ", ".join(
            map(str, wrong)
        )
    elif not (printed := [row for row in rows if not all_not_applicable(row["ours"])]):
        second = "the compiler prints no such construct"
    elif all(any(r["state"] == "right" for r in row["ours"].values()) for row in printed):
        second = "our form is right on all"
    else:
        second = "our form is right wherever it ran"
    return f"{first}; {second}"


def advice(survey: Mapping[str, Any]) -> list[str]:
    """What to do about the findings."""
    result = []
    for row in survey["rows"]:
        bad = [route for route, found in row["ours"].items() if found["state"] in BAD]
        if bad:
            names = ", ".join(ROUTES[route] for route in bad)
            good = [
                ROUTES[route] for route, found in row["ours"].items() if found["state"] == "right"
            ]
            instead = f"; until then, use {' or '.join(good)}" if good else ""
            result.append(
                f"row {row['row']}: the compiler's form fails with {names}: please report it with the file of "
                f"`python -m triton_metal doctor --report report.md`{instead}"
            )
    key = survey["machine"]["key"]
    active: set[str] = set()
    try:
        active.update(quirks.features_of(key))
    except TritonError as error:
        result.append(str(error))
    for name in survey["features"]:
        if name in active:
            result.append(f"{name} is on: {quirks.QUIRKS[name]}")
        elif name not in quirks.understood():
            result.append(
                f"kernels here need {name} ({quirks.QUIRKS[name]}), which this build's compiler does not have: "
                "update triton-metal"
            )
        else:
            result.append(
                f"kernels here need {name} ({quirks.QUIRKS[name]}): run `python -m triton_metal doctor --quirks "
                f"--save` once, or set TRITON_METAL_QUIRKS={name}"
            )
    return result


def save(survey: Mapping[str, Any]) -> str:
    """Remembers the features that this Mac needs; says where, or why not."""
    key = survey["machine"]["key"]
    if key is None or survey["machine"]["stand_ins"]:
        return "nothing was saved: the features of a target are saved for Macs, and this is none"
    costly = [row for row in survey["rows"] if row["cure"]]
    if not costly:
        return "nothing was saved: none of these rows has a cure that is a feature of the target"
    before = set(quirks.saved(key))
    # Rows that were not probed now keep what was known of them.
    probed = {row["cure"] for row in costly if row["has"] is not None}
    features = (before - probed) | set(survey["features"])
    results = {
        str(row["row"]): {route: found["says"] for route, found in row["raw"].items()}
        for row in costly
    }
    try:
        path = quirks.save(key, features, results)
    except OSError as error:
        return f"nothing was saved: {quirks.file()} cannot be written ({error.strerror})"
    return f"saved for {key} in {path}: {', '.join(sorted(features)) or 'no feature is needed'}"
