"""doctor --quirks: the probes are right on the host device and the stand-ins, and each kind of defect is told."""

from __future__ import annotations

import doctest
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from triton_metal import mps
from triton_metal.__main__ import main
from triton_metal.devices import detect, quirks
from triton_metal.doctor import text
from triton_metal.doctor.quirks import catalogue, processes, routes, survey, table, worker
from triton_metal.doctor.quirks.form import Form, Probe, text_of
from triton_metal.errors import LaunchValueError
from triton_metal.mlx import functional
from triton_metal.testing import find_quirks

import quirk_check
from mac_support import found_on_mac

# Which device a launch takes is what is tested here.
pytestmark = [
    pytest.mark.own_route,
    pytest.mark.own_check("the probes ask for what Metal does not promise"),
]

ROWS = [*range(1, 11), 14, 15, 16, 17, *range(21, 29)]
TENSOR_ROWS = [11, 12, 13]
PRINTED = [probe for probe in catalogue.probes() if probe.ours is not None]


def test_every_row_has_a_probe() -> None:
    assert [probe.row for probe in catalogue.probes()] == sorted([*ROWS, *TENSOR_ROWS])
    for probe in catalogue.probes():
        assert probe.raw is not None
        if probe.row in TENSOR_ROWS:
            assert probe.ours is None
            continue
        assert probe.ours is not None
        assert text_of(probe, probe.raw) != text_of(probe, probe.ours)
        assert "#pragma METAL fp math_mode(safe)" in text_of(probe, probe.ours)
    names = [question.name for question in catalogue.questions()]
    assert len(names) == len(set(names))
    assert not any(name.isdigit() for name in names)


@pytest.mark.parametrize("which", ["raw", "ours"])
@pytest.mark.parametrize("row", ROWS)
def test_probes_are_right_on_the_host_device(row: int, which: str) -> None:
    result = routes.examine("host", catalogue.find(str(row)), which)
    assert result["says"] == "right"


@pytest.fixture
def stand_ins(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    pytest.importorskip("mlx.core")
    monkeypatch.setattr(mps, "_compile_shader", None)
    monkeypatch.setattr(functional, "_metal_kernel", None)
    for route in ("mps", "mlx"):
        worker.stand_in(route)
    yield
    # The reported forms are what the scanner of the suite's texts finds, and no text of the compiler's.
    quirk_check._new.clear()


@pytest.mark.parametrize("route", ["mps", "mlx", "mlx-in-place"])
@pytest.mark.parametrize("row", ROWS)
def test_probes_are_right_on_the_stand_ins(stand_ins: None, row: int, route: str) -> None:
    routes.prepare(route)
    for which in ("raw", "ours"):
        result = routes.examine(route, catalogue.find(str(row)), which)
        if route == "mlx" and row == 1:
            assert result["says"] == (
                "not possible here: MLX writes the signature, and the construct is in it"
            )
        else:
            assert result["says"] == "right"


@pytest.mark.parametrize("name", [question.name for question in catalogue.questions()])
def test_questions_are_answered(stand_ins: None, name: str) -> None:
    question = catalogue.find(name)
    answers = {route: routes.examine(route, question, "question") for route in routes.ROUTES}
    assert {answer["state"] for answer in answers.values()} == {"answer"}
    for answer in answers.values():
        assert "wrong values" not in answer["says"]


def test_a_probe_would_notice_a_wrong_element() -> None:
    """Each output depends on what is computed: another expectation is not met."""
    from dataclasses import replace

    for probe in PRINTED:
        name, values = next(iter(probe.expected().items()))

        def spoiled(name: str = name, values: Any = values) -> dict[str, Any]:
            changed = [float(v) for v in values]
            changed[-1] = 1.0 if changed[-1] == 0 else 0.0
            return {name: changed}

        result = routes.examine("host", replace(probe, expected=spoiled), "ours")
        assert result["state"] == "wrong", probe.row
        assert result["says"].startswith("wrong: ")


def test_the_scanner_agrees() -> None:
    """The scanner finds each row in its reported form, and nothing in the compiler's forms."""
    # What the scanner does not look for in a text of this form or size.
    without = {9, 10, 17, 23}

    def found_in(probe: Probe, which: str) -> list[Any]:
        form = probe.form(which)
        assert form is not None
        return find_quirks(text_of(probe, form))

    for probe in PRINTED:
        assert [str(hit) for hit in found_in(probe, "ours") if hit.kind != "unproven"] == []
        if probe.row not in without:
            rows = {hit.row for hit in found_in(probe, "raw") if hit.kind != "unproven"}
            assert probe.row in rows


# --- What a Mac with a defect shows --------------------------------------------------------------------

PATCH = """
from triton_metal import mps
from triton_metal.testing import compile_shader as real

class Library:
    def __init__(self, text):
        self.text, self.library = text, real.compile_shader(text)
        self.raw = "math_mode(safe)" not in text
    def __getattr__(self, name):
        kernel, raw = getattr(self.library, name), self.raw
        class Kernel:
            max_threads_per_threadgroup = kernel.max_threads_per_threadgroup
            def __call__(self, *args, **options):
                before(raw)
                kernel(*args, **options)
                after(raw, args)
        return Kernel()

def before(raw): pass
def after(raw, args): pass
def compiled(raw): pass

def compile(text):
    compiled("math_mode(safe)" not in text)
    return Library(text)
mps._compile_shader = compile
"""


def found(setup: str, only: str = "4", **options: Any) -> dict[str, Any]:
    options = {"ways": ("mps", "host")} | options
    return survey.gather(only, stand_ins=True, setup=PATCH + setup, **options)


def row_of(result: dict[str, Any]) -> dict[str, Any]:
    assert len(result["rows"]) == 1
    return result["rows"][0]


@pytest.mark.parametrize(
    ("setup", "says", "state"),
    [
        (
            "def after(raw, args):\n    if raw: args[-1][0] = 3723",
            "wrong: 3723.0 for 2379.0 at out[0], 1 of 2",
            "wrong",
        ),
        (
            "import os, signal\ndef before(raw):\n    if raw: os.kill(os.getpid(), signal.SIGSEGV)",
            "crashes: signal 11",
            "crashes",
        ),
        (
            "import os, sys\ndef before(raw):\n"
            "    if raw: print('dying words', file=sys.stderr, flush=True); os._exit(3)",
            "crashes: ended with status 3 (dying words)",
            "crashes",
        ),
        (
            "def compiled(raw):\n"
            "    if raw: raise SyntaxError('program_source:9:3: error: no such thing')",
            "does not compile: program_source:9:3: error: no such thing",
            "does not compile",
        ),
        (
            "def compiled(raw):\n    if raw: raise RuntimeError('Failed to created pipeline state object, '"
            "'error: Compiler encountered an internal error')",
            "refused: Failed to created pipeline state object, error: Compiler encountered an internal error",
            "refused",
        ),
        (
            "import sys\ndef after(raw, args):\n"
            "    if raw: print('Error: command buffer exited with error status.', file=sys.stderr)",
            "refused: the GPU stopped (command buffer exited with error status)",
            "refused",
        ),
    ],
)
def test_a_defect_is_told(setup: str, says: str, state: str) -> None:
    result = found(setup)
    row = row_of(result)
    assert row["raw"]["mps"] == {"state": state, "says": says}
    assert row["ours"]["mps"]["says"] == "right"
    assert row["raw"]["host"]["says"] == "right"
    assert row["has"] is True
    assert row["ours_ok"] is True
    assert result["ok"] is True
    assert result["conclusion"] == (
        "this machine has 1 of 1 known defect (row 4); our form is right on all"
    )
    assert result["features"] == ["volatile_accumulation"]
    assert any("volatile_accumulation" in line for line in result["advice"])
    assert f"PyTorch: {says}" in table.plain(result)
    assert any(says in line for line in table.markdown(result))


def test_a_form_that_hangs() -> None:
    setup = "import time\ndef before(raw):\n    if raw: time.sleep(60)"
    result = found(setup, run_seconds=3.0)
    assert row_of(result)["raw"]["mps"] == {
        "state": "hangs",
        "says": "hangs: no result after 3 s",
    }
    assert row_of(result)["ours"]["mps"]["says"] == "right"


def test_our_own_form_is_wrong() -> None:
    result = found("def after(raw, args):\n    if not raw: args[-1][0] = 1")
    row = row_of(result)
    assert row["ours"]["mps"]["says"] == "wrong: 1.0 for 2379.0 at out[0], 1 of 2"
    assert row["has"] is False
    assert row["ours_ok"] is False
    assert result["ok"] is False
    assert result["conclusion"].endswith("our form is NOT right in row 4")
    assert result["features"] == []
    assert any(
        line.startswith("row 4: the compiler's form fails with PyTorch: please report it")
        and line.endswith("until then, use host device")
        for line in result["advice"]
    )


def test_a_framework_that_does_not_start() -> None:
    result = found("raise ImportError('no dylib')")
    row = row_of(result)
    assert "not run: the process ended with status 1" in row["raw"]["mps"]["says"]
    assert row["has"] is None
    assert result["ok"] is True
    assert "1 could not be looked for; our form is right wherever it ran" in result["conclusion"]


def test_the_time_is_bounded() -> None:
    result = found("import time\ntime.sleep(30)", total_seconds=1.0)
    states = [r["state"] for form in ("raw", "ours") for r in row_of(result)[form].values()]
    assert set(states) == {"not run"}


def test_questions_go_on_after_a_crash() -> None:
    setup = """
import os
from triton_metal.doctor.quirks import routes
examine = routes.examine
def crashing(route, item, which):
    if item.key == "shuffle-char4" and route == "host":
        os.abort()
    return examine(route, item, which)
routes.examine = crashing
"""
    result = found(setup, "shuffle-")
    answers = {entry["name"]: entry["answers"] for entry in result["answers"]}
    assert answers["shuffle-char4"]["host"]["says"].startswith("crashes: signal 6")
    assert answers["shuffle-char4"]["mps"]["says"] == "compiles, right"
    assert answers["shuffle-half2"]["host"]["says"] == "compiles, right"
    assert answers["shuffle-float4"]["host"]["says"] == "compiles, right"
    assert result["conclusion"] == "no defect was looked for"


def test_what_a_mac_lacks_is_not_probed(monkeypatch: pytest.MonkeyPatch) -> None:
    lacking = {"simdgroup_matrix": False, "memory_orders": False}
    monkeypatch.setattr(survey, "features_here", lambda: lacking)
    result = found("", "24")
    assert {r["says"] for r in row_of(result)["raw"].values()} == {
        "not applicable: needs simdgroup_matrix"
    }
    assert row_of(result)["has"] is None
    assert row_of(result)["ours_ok"] is True
    result = found("", "5")
    assert row_of(result)["raw"]["host"]["says"] == "right"
    assert row_of(result)["ours"]["host"]["says"] == "not applicable: needs memory_orders"


@pytest.mark.own_target
def test_cooperative_tensors_are_for_macs_that_have_them(monkeypatch: pytest.MonkeyPatch) -> None:
    for row in TENSOR_ROWS:
        result = found("", str(row))
        assert {r["says"] for r in row_of(result)["raw"].values()} == {
            "not applicable: needs tensor_ops"
        }
        assert result["conclusion"] == "no defect was looked for"
        assert result["ok"] is True
    # With the features of an M5, but without its headers.
    features = found_on_mac("Apple M5", "26.2").target("mps").features
    monkeypatch.setattr(survey, "features_here", lambda: features)
    result = found("", "11")
    for answer in row_of(result)["raw"].values():  # the host device has them
        assert answer["says"] == "right"
    assert {r["says"] for r in row_of(result)["ours"].values()} == {
        "not applicable: the compiler prints none"
    }
    for row in TENSOR_ROWS:
        probe = catalogue.find(str(row))
        assert isinstance(probe, Probe)
        assert probe.raw is not None
        text = text_of(probe, probe.raw)
        assert text.index("MetalPerformancePrimitives.h") < text.index("using namespace metal")
        assert text.count("{") == text.count("}")
        assert len(probe.expected()["out"]) == 512


def test_a_host_text_that_does_not_compile() -> None:
    probe = catalogue.find("2")
    assert isinstance(probe, Probe)
    from dataclasses import replace

    broken = replace(probe, raw=Form("  out[0] = nothing;\n"))
    for route in ("host", "mlx-in-place"):
        if route != "host":
            pytest.importorskip("mlx.core")
        result = routes.examine(route, broken, "raw")
        assert result["state"] == "does not compile"
        assert "undeclared identifier 'nothing'" in result["says"]


# --- The command -----------------------------------------------------------------------------------------


def doctor(*options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "triton_metal", "doctor", "--quirks", *options],
        capture_output=True,
        text=True,
        env=os.environ | environment,
        timeout=300,
    )


def test_the_command(tmp_path: Path) -> None:
    done = doctor("--only", "3", "--save", TRITON_METAL_CONFIG_DIR=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "row 3: ulong(uint_a) % ulong(uint_b)" in done.stdout
    assert "source:      HigherOrderCO/Bend#824" in done.stdout
    if sys.platform != "darwin":
        assert "this machine has 0 of 1 known defect; our form is right on all." in done.stdout
        assert "nothing was saved" in done.stdout
        assert not list(tmp_path.iterdir())
    done = doctor("--only", "3", "--json")
    assert done.returncode == 0, done.stderr
    whole = json.loads(done.stdout)
    assert whole["rows"][0]["row"] == 3
    assert whole["rows"][0]["ours"]["host"]["says"] == "right"
    assert whole["ok"] is True


def test_the_exit_status(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    good = found("")
    for ours_ok in (True, False):
        result = good | {"ok": ours_ok}
        monkeypatch.setattr(survey, "gather", lambda *a, result=result, **k: result)
        assert main(["doctor", "--quirks"]) == (0 if ours_ok else 1)
    assert main(["doctor", "--quirks", "--only", "99"]) == 2
    assert "--only 99 names no probe; the rows are 1, 2, 3" in capsys.readouterr().err
    assert main(["doctor", "--save"]) == 2
    assert "--save belongs to --quirks" in capsys.readouterr().err


def test_it_is_a_part_of_the_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from triton_metal.doctor import report

    result = found("def after(raw, args):\n    if raw: args[-1][0] = 3723")
    monkeypatch.setattr(survey, "gather", lambda *a, **k: result)
    monkeypatch.setattr(
        report,
        "gather",
        lambda *a, **k: {
            "triton_metal": "0", "system": {"os": "x", "machine": "y", "python": "3"},
            "packages": {}, "gpu": {"problem": "none"}, "checks": [], "devices": [],
            "advice": [], "ok": True,
        },
    )  # fmt: skip
    file = tmp_path / "report.md"
    assert main(["doctor", "--report", str(file)]) == 0
    content = file.read_text()
    assert "## Known defects" in content
    assert "**this machine has 1 of 1 known defect (row 4); our form is right on all.**" in content
    assert "wrong: 3723.0 for 2379.0" in content
    # A report of some examples is not about the machine.
    assert main(["doctor", "--report", str(file), "--only", "softmax"]) == 0
    assert "## Known defects" not in file.read_text()


def test_rich_and_plain_tables(capsys: pytest.CaptureFixture, monkeypatch: Any) -> None:
    result = found("def after(raw, args):\n    if raw: args[-1][0] = 3723")
    table.show(result)
    assert capsys.readouterr().out.strip() == table.plain(result).strip()
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "200")
    table.show(result | {"saved": "saved for a Mac"})
    shown = capsys.readouterr().out
    assert "3723.0 for 2379.0" in shown
    assert "saved for a Mac" in shown
    assert doctest.testmod(table).failed == 0
    assert text.plain  # the doctor's own table has one line on the defects


# --- Remembering ------------------------------------------------------------------------------------------


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRITON_METAL_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.delenv("TRITON_METAL_QUIRKS", raising=False)
    monkeypatch.setattr(quirks, "understood", lambda: frozenset(quirks.QUIRKS))
    return tmp_path / "config" / "quirks.json"


def a_mac(build: str = "25F80") -> detect.Detected:
    return found_on_mac("Apple M4 Max", "26.5.2", build=build)


def on_a_mac(result: dict[str, Any], mac: detect.Detected) -> dict[str, Any]:
    machine = result["machine"] | {
        "system": "Darwin", "chip": "Apple M4 Max", "macos": "26.5.2", "build": mac.build,
        "key": mac.quirk_key, "stand_ins": False,
    }  # fmt: skip
    return result | {"machine": machine}


def test_a_defect_turns_a_feature_on(config: Path) -> None:
    mac = a_mac()
    assert mac.quirk_key == "Apple M4 Max, 25F80"
    plain = mac.target("mps").spec()
    assert "volatile_accumulation" not in plain
    wrong = on_a_mac(found("def after(raw, args):\n    if raw: args[-1][0] = 3723"), mac)
    assert survey.save(wrong) == (
        f"saved for Apple M4 Max, 25F80 in {config}: volatile_accumulation"
    )
    entry = json.loads(config.read_text())["machines"]["Apple M4 Max, 25F80"]
    assert entry["features"] == ["volatile_accumulation"]
    assert entry["results"]["4"]["mps"].startswith("wrong: 3723")
    # The feature is in the text that the compiler and the cache's keys get, of both frameworks.
    for framework in ("mps", "mlx"):
        assert mac.target(framework).spec().endswith(",volatile_accumulation")
    # Not on another build of macOS or another chip, and not where the build is unknown.
    assert a_mac("25G1").target("mps").spec() == plain
    assert found_on_mac("Apple M3", "26.5.2", build="25F80").target("mps").quirks == ()
    assert found_on_mac("Apple M4 Max", "26.5.2").target("mps").spec() == plain
    assert "macOS 26.5.2 (25F80)" in dict(table.facts(wrong))["this Mac"]
    assert any("volatile_accumulation is on" in line for line in survey.advice(wrong))
    # Another survey finds it gone.
    right = on_a_mac(found(""), mac)
    assert survey.save(right).endswith("no feature is needed")
    assert mac.target("mps").spec() == plain


def test_a_survey_of_other_rows_forgets_nothing(config: Path) -> None:
    mac = a_mac()
    assert mac.quirk_key is not None
    quirks.save(mac.quirk_key, ["volatile_accumulation"], {})
    assert survey.save(on_a_mac(found("", "3"), mac)).startswith("nothing was saved: none of these")
    # Row 23 has a cure of its own. Its text is long: a machine that is busy needs more than the usual seconds for it.
    assert survey.save(on_a_mac(found("", "23", run_seconds=120.0), mac)).endswith(
        ": volatile_accumulation"
    )
    assert mac.target("mps").quirks == ("volatile_accumulation",)


def test_the_environment_overrides(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from triton_metal import devices

    mac = a_mac()
    assert mac.quirk_key is not None
    quirks.save(mac.quirk_key, ["volatile_accumulation"], {})
    for value in ("", "none"):
        monkeypatch.setenv("TRITON_METAL_QUIRKS", value)
        assert mac.target("mps").quirks == ()
    monkeypatch.setenv("TRITON_METAL_QUIRKS", "rolled_loops, volatile_accumulation")
    assert mac.target("mps").quirks == ("rolled_loops", "volatile_accumulation")
    # On every device, also where there is no Mac.
    assert devices.target_for("host").quirks == ("rolled_loops", "volatile_accumulation")
    assert devices.target_spec("host").endswith(",rolled_loops,volatile_accumulation")
    monkeypatch.setenv("TRITON_METAL_QUIRKS", "fast")
    told = survey.advice({"rows": [], "features": [], "machine": {"key": None}})
    assert told == [
        "TRITON_METAL_QUIRKS names 'fast'; the features are volatile_accumulation, rolled_loops, simdgroup_dots, or none"
    ]
    with pytest.raises(LaunchValueError, match="names 'fast'; the features are volatile_acc"):
        devices.target_for("host")


def test_a_compiler_without_the_feature(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mac = a_mac()
    assert mac.quirk_key is not None
    quirks.save(mac.quirk_key, ["volatile_accumulation"], {})
    monkeypatch.setattr(quirks, "understood", frozenset)
    assert mac.target("mps").quirks == ()
    wrong = on_a_mac(found("def after(raw, args):\n    if raw: args[-1][0] = 3723"), mac)
    assert any("this build's compiler does not have" in line for line in survey.advice(wrong))
    monkeypatch.setenv("TRITON_METAL_QUIRKS", "volatile_accumulation")
    with pytest.raises(LaunchValueError, match="this build's compiler does not have"):
        mac.target("mps")


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"format": 9, "machines": {}}', '{"format": 1, "machines": []}']
)
def test_a_damaged_file_remembers_nothing(config: Path, content: str) -> None:
    config.parent.mkdir()
    config.write_text(content)
    assert quirks.saved("Apple M4 Max, 25F80") == ()
    quirks.save("Apple M4 Max, 25F80", ["rolled_loops"], {})
    assert quirks.saved("Apple M4 Max, 25F80") == ("rolled_loops",)


def test_a_folder_that_cannot_be_written(config: Path) -> None:
    config.parent.parent.joinpath("config").write_text("a file")
    words = survey.save(on_a_mac(found(""), a_mac()))
    assert words.startswith(f"nothing was saved: {config} cannot be written (")


def test_workers_are_started_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes start while others run, but only one runs at a time."""
    jobs = [processes.Job("host", ("2",), form) for form in ("raw", "ours")] * 2
    seen: list[str] = []
    results = processes.run_all(jobs, lambda count, job, key: seen.append(f"{count} {job.form}"))
    assert {result["state"] for result in results.values()} == {"right"}
    assert seen == ["0 raw", "1 ours", "2 raw", "2 ours"]
    assert doctest.testmod(quirks).failed == 0
