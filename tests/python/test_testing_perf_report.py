"""`testing.perf_report`: tables, CSV files, plots and pages."""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import Any

import pytest
from triton_metal.testing import Benchmark, perf_report


def benchmark(**changes: Any) -> Benchmark:
    fields: dict[str, Any] = {
        "x_names": ["M", "N"],
        "x_vals": [(2, 3), 4],
        "line_arg": "provider",
        "line_vals": ["ours", "theirs"],
        "line_names": ["Ours", "Theirs"],
        "plot_name": "product",
        "args": {"scale": 10},
        "ylabel": "GB/s",
    }
    return Benchmark(**{**fields, **changes})


def product(M: int, N: int, provider: str, scale: int, offset: float = 0.0) -> Any:
    value = M * N * scale + offset
    return value if provider == "ours" else (value / 2, value / 4, value)


TABLE = [
    ["M", "N", "Ours (GB/s)", "Theirs (GB/s)"],
    ["2", "3", "60", "30.000000"],
    ["4", "4", "160", "80.000000"],
]


def test_figures_become_a_csv_file_a_plot_and_a_page(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib").use("Agg")
    folder = tmp_path / "a" / "b"
    assert perf_report(benchmark())(product).run(save_path=str(folder)) is None
    with (folder / "product.csv").open() as file:
        rows = list(csv.reader(file))
    assert rows[0] == TABLE[0]
    assert [[float(v) for v in row] for row in rows[1:]] == [[2, 3, 60, 30], [4, 4, 160, 80]]
    assert (folder / "product.png").read_bytes().startswith(b"\x89PNG")
    assert '<img src="product.png"/>' in (folder / "results.html").read_text()


def test_tables_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    perf_report([benchmark(), benchmark(plot_name="second", args={"scale": 1})])(product).run(
        print_data=True, offset=1
    )
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "product:"
    assert lines[1].split() == "M N Ours (GB/s) Theirs (GB/s)".split()
    assert lines[2].split() == ["0", "2", "3", "61", "30.500000"]
    assert lines[4] == "second:"


def test_frames_are_pandas(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    mark = perf_report(benchmark())(product)
    frame = mark.run(return_df=True)
    assert list(frame.columns) == TABLE[0]
    assert frame["Theirs (GB/s)"].tolist() == [30.0, 80.0]
    frames = perf_report([benchmark(), benchmark()])(product).run(return_df=True)
    assert len(frames) == 2
    assert isinstance(frames[1], pandas.DataFrame)


def test_the_difference_of_two_columns_and_the_digits_of_a_file(tmp_path: Path) -> None:
    one = benchmark(
        x_names=["M"],
        x_vals=[3],
        line_vals=["ours"],
        line_names=["Ours"],
        args={"N": 2, "scale": 1},
        plot_name="",
    )
    mark = perf_report(one)(product)
    mark.run(save_path=tmp_path, diff_col=True, save_precision=2, offset=0.125)
    assert (tmp_path / ".csv").read_text() == "M,Ours (GB/s),Diff\n3,6.12,3.12\n"


def test_plots_have_lines_bands_labels_and_scales() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    wanted = benchmark(x_log=True, y_log=True, xlabel="size", styles=[("red", "-"), ("blue", "--")])
    table = perf_report(wanted)(product)._measure(wanted)
    figure = table.plot(pyplot)
    [axes] = figure.axes
    assert [line.get_label() for line in axes.lines] == ["Ours (GB/s)", "Theirs (GB/s)"]
    assert [line.get_color() for line in axes.lines] == ["red", "blue"]
    assert list(axes.lines[0].get_ydata()) == [60, 160]
    assert len(axes.collections) == 1  # limits of one line only
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("size", "GB/s")
    pyplot.close(figure)


def test_without_matplotlib_there_are_tables_and_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "matplotlib.pyplot", raising=False)
    mark = perf_report(benchmark())(product)
    with pytest.raises(ImportError, match=r"plots need matplotlib.*pip install matplotlib"):
        mark.run(show_plots=True)
    with pytest.warns(UserWarning, match="no plot is written: plots need matplotlib"):
        mark.run(save_path=tmp_path)
    assert (tmp_path / "product.csv").exists()
    assert not (tmp_path / "product.png").exists()
    mark.run(print_data=True)
    assert "60" in capsys.readouterr().out
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"needs pandas.*pip install pandas"):
        mark.run(return_df=True)


def test_wrong_benchmarks_are_refused() -> None:
    with pytest.raises(ValueError, match="line_vals has 2 values, but line_names has 1 names"):
        benchmark(line_names=["Ours"])
    with pytest.raises(
        ValueError, match=r"x_names has 2 names \(M, N\), but x_vals has \(1, 2, 3\)"
    ):
        perf_report(benchmark(x_vals=[(1, 2, 3)]))(product).run()
    with pytest.raises(ValueError, match="must return a number, or three"):
        perf_report(benchmark())(lambda **arguments: (1, 2)).run()


def test_results_before_an_error_are_kept(tmp_path: Path) -> None:
    def fails(M: int, N: int, provider: str, scale: int) -> float:
        if scale == 2:
            raise RuntimeError("no more")
        return 1.0

    marks = perf_report([benchmark(plot_name=""), benchmark(plot_name="", args={"scale": 2})])(
        fails
    )
    with pytest.raises(RuntimeError, match="no more"):
        marks.run(save_path=tmp_path)
    assert (tmp_path / "results.html").exists()


def test_the_function_can_still_be_called() -> None:
    assert perf_report(benchmark())(product)(2, 3, "ours", 1) == 6
