"""Reports of measurements over a range of arguments: tables, CSV files and plots."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any


class Benchmark:
    """What `perf_report` measures: a line for each of ``line_vals``, over the values of ``x_names``.

    ``x_names`` are the arguments along the x axis; each of ``x_vals`` is a value for all of them, or a tuple with one for
    each. ``line_arg`` is the argument that distinguishes the lines, ``line_vals`` are its values and ``line_names``
    their labels. ``args`` are arguments that stay the same. ``plot_name`` names the files; without it there is no
    plot. ``xlabel``, ``ylabel``, ``x_log``, ``y_log`` and ``styles`` (pairs of a colour and a line style) are for the plot.
    """

    def __init__(
        self,
        x_names: Sequence[str],
        x_vals: Sequence[Any],
        line_arg: str,
        line_vals: Sequence[Any],
        line_names: Sequence[str],
        plot_name: str,
        args: dict[str, Any],
        xlabel: str = "",
        ylabel: str = "",
        x_log: bool = False,
        y_log: bool = False,
        styles: Sequence[tuple[str, str]] | None = None,
    ) -> None:
        if len(line_vals) != len(line_names):
            raise ValueError(
                f"Benchmark: line_vals has {len(line_vals)} values, but line_names has {len(line_names)} names"
            )
        self.x_names = x_names
        self.x_vals = x_vals
        self.line_arg = line_arg
        self.line_vals = line_vals
        self.line_names = line_names
        self.plot_name = plot_name
        self.args = args
        self.xlabel = xlabel
        self.ylabel = ylabel
        self.x_log = x_log
        self.y_log = y_log
        self.styles = styles


def _matplotlib(needed: bool) -> Any:
    """matplotlib.pyplot; None, with a warning, if it is missing and not needed."""
    try:
        from matplotlib import pyplot
    except ImportError:
        message = "plots need matplotlib, which is not installed: pip install matplotlib"
        if needed:
            raise ImportError(message) from None
        warnings.warn(f"no plot is written: {message}", stacklevel=4)
        return None
    return pyplot


def _text(value: Any) -> str:
    return f"{value:.6f}" if isinstance(value, float) else str(value)


class Table:
    """The figures of one benchmark: a row for each point of the x axis.

    ``columns`` has the names of the columns and ``rows`` the values; ``low`` and ``high`` the limits for each line,
    or None, where the measured function returned three numbers.
    """

    def __init__(self, benchmark: Benchmark) -> None:
        self.benchmark = benchmark
        self.labels = [f"{name} ({benchmark.ylabel})" for name in benchmark.line_names]
        self.columns = [*benchmark.x_names, *self.labels]
        self.rows: list[list[Any]] = []
        self.low: list[list[Any]] = []
        self.high: list[list[Any]] = []

    def add(self, x: Sequence[Any], results: Sequence[Any]) -> None:
        triples = [r if isinstance(r, (tuple, list)) else (r, None, None) for r in results]
        for triple in triples:
            if len(triple) != 3:
                raise ValueError(
                    "the function of perf_report must return a number, or three: the figure, its lower and its upper "
                    f"limit; it has returned {triple!r}"
                )
        self.rows.append([*x, *(triple[0] for triple in triples)])
        self.low.append([triple[1] for triple in triples])
        self.high.append([triple[2] for triple in triples])

    def with_difference(self) -> None:
        """Adds the difference of the two columns, if there are two."""
        if len(self.columns) == 2:
            self.columns = [*self.columns, "Diff"]
            self.rows = [[a, b, b - a] for a, b in self.rows]

    def __str__(self) -> str:
        lines = [["", *map(str, self.columns)]]
        lines += [[str(i), *map(_text, row)] for i, row in enumerate(self.rows)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join(
            "  ".join(part.rjust(width) for part, width in zip(line, widths, strict=True))
            for line in lines
        )

    def write_csv(self, path: Path, precision: int) -> None:
        import csv

        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(self.columns)
            for row in self.rows:
                writer.writerow([f"{v:.{precision}f}" if isinstance(v, float) else v for v in row])

    def frame(self) -> Any:
        """The table as a pandas.DataFrame."""
        try:
            import pandas
        except ImportError:
            raise ImportError(
                "return_df=True needs pandas, which is not installed: pip install pandas"
            ) from None
        return pandas.DataFrame(self.rows, columns=self.columns)

    def plot(self, pyplot: Any) -> Any:
        """A figure with a line for each column of results."""
        benchmark = self.benchmark
        figure, axes = pyplot.subplots()
        first = len(benchmark.x_names)
        xs = [row[0] for row in self.rows]
        for i, label in enumerate(self.labels):
            color, style = (benchmark.styles[i][:2]) if benchmark.styles else (None, None)
            axes.plot(xs, [row[first + i] for row in self.rows], label=label, color=color, ls=style)
            limits = [(a[i], b[i]) for a, b in zip(self.low, self.high, strict=True)]
            if limits and all(a is not None and b is not None for a, b in limits):
                low, high = ([float(v) for v in side] for side in zip(*limits, strict=True))
                axes.fill_between(xs, low, high, alpha=0.15, color=color)
        axes.legend()
        axes.set_xlabel(benchmark.xlabel or benchmark.x_names[0])
        axes.set_ylabel(benchmark.ylabel)
        axes.set_xscale("log" if benchmark.x_log else "linear")
        axes.set_yscale("log" if benchmark.y_log else "linear")
        return figure


class Mark:
    """A function with benchmarks; `perf_report` makes it."""

    def __init__(self, fn: Callable[..., Any], benchmarks: Benchmark | Sequence[Benchmark]) -> None:
        self.fn = fn
        self.benchmarks = benchmarks

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.fn(*args, **kwargs)

    def _measure(self, benchmark: Benchmark, **kwargs: Any) -> Table:
        table = Table(benchmark)
        names = list(benchmark.x_names)
        for x in benchmark.x_vals:
            values = list(x) if isinstance(x, (list, tuple)) else [x] * len(names)
            if len(values) != len(names):
                raise ValueError(
                    f"{benchmark.plot_name or 'Benchmark'}: x_names has {len(names)} names "
                    f"({', '.join(names)}), but x_vals has {x!r}"
                )
            given = {**dict(zip(names, values, strict=True)), **benchmark.args, **kwargs}
            table.add(
                values, [self.fn(**given, **{benchmark.line_arg: y}) for y in benchmark.line_vals]
            )
        return table

    def run(
        self,
        show_plots: bool = False,
        print_data: bool = False,
        save_path: str | Path = "",
        return_df: bool = False,
        *,
        diff_col: bool = False,
        save_precision: int = 6,
        **kwargs: Any,
    ) -> Any:
        """Measures all benchmarks.

        ``print_data`` prints tables. ``save_path`` is a folder for a CSV file and a plot of each, and a page results.html with
        all plots. ``show_plots`` opens them. ``return_df`` returns a pandas.DataFrame, or a list of them for a list of
        benchmarks. ``diff_col`` adds the difference of two columns, ``save_precision`` is the number of digits in CSV
        files. Other keywords go to the function. Plots need matplotlib: without it ``show_plots`` raises
        ImportError, and ``save_path`` warns.
        """
        single = isinstance(self.benchmarks, Benchmark)
        benchmarks = (
            [self.benchmarks] if isinstance(self.benchmarks, Benchmark) else self.benchmarks
        )
        pyplot = None
        if show_plots or (save_path and any(b.plot_name for b in benchmarks)):
            pyplot = _matplotlib(needed=show_plots)
        folder = Path(save_path) if save_path else None
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
        tables: list[Table] = []
        try:
            for benchmark in benchmarks:
                table = self._measure(benchmark, **kwargs)
                tables.append(table)
                if pyplot is not None and benchmark.plot_name:
                    figure = table.plot(pyplot)
                    if show_plots:
                        pyplot.show()
                    if folder is not None:
                        figure.savefig(folder / f"{benchmark.plot_name}.png")
                    pyplot.close(figure)
                if diff_col:
                    table.with_difference()
                if print_data:
                    print(f"{benchmark.plot_name}:\n{table}")
                if folder is not None:
                    table.write_csv(folder / f"{benchmark.plot_name}.csv", save_precision)
        finally:
            if folder is not None:
                _write_page(folder, [table.benchmark.plot_name for table in tables])
        if not return_df:
            return None
        frames = [table.frame() for table in tables]
        return frames[0] if single else frames


def _write_page(folder: Path, names: Sequence[str]) -> None:
    """A page with the plots of a folder."""
    import html

    images = [f'<img src="{html.escape(name)}.png"/>\n' for name in names]
    page = ["<html><body>\n", *images, "</body></html>\n"]
    (folder / "results.html").write_text("".join(page), encoding="utf-8")


def perf_report(
    benchmarks: Benchmark | Sequence[Benchmark],
) -> Callable[[Callable[..., Any]], Mark]:
    """Marks a function for measurements; ``run`` of the result makes them.

    The function takes the arguments that a `Benchmark` names, and returns a figure, or three: the figure and its limits.

    >>> import triton_metal
    >>> @triton_metal.testing.perf_report(triton_metal.testing.Benchmark(
    ...     x_names=["n"], x_vals=[1, 2], line_arg="power", line_vals=[2, 3],
    ...     line_names=["squares", "cubes"], plot_name="", args={}, ylabel="units"))
    ... def powers(n, power):
    ...     return n**power
    >>> powers.run(print_data=True)
    :
       n  squares (units)  cubes (units)
    0  1                1              1
    1  2                4              8
    """
    return lambda fn: Mark(fn, benchmarks)
