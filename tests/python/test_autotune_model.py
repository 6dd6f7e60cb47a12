"""What autotune does by the model of triton_metal.cost: rankings without a GPU, and what a GPU measures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import triton_metal as triton
import triton_metal.language as tl
from triton_metal import Config, cost
from triton_metal.array_copies import ArrayCopies
from triton_metal.cost.sampling import part_of, sampled
from triton_metal.cost.spread import counted_elsewhere, launcher_of, step_of

from autotune_support import Bench, arrays, blocks, grid, increment_kernel, scale_kernel
from kernel_support import ON_STOCK

pytestmark = [
    pytest.mark.own_check,
    pytest.mark.own_route,
    pytest.mark.skipif(ON_STOCK, reason="the model is no part of stock Triton"),
]
SIZES = (32, 64, 128, 256, 512, 1024)


@triton.jit
def increment_unmasked_kernel(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + i, tl.load(x_ptr + i) + 1)


@triton.jit
def product_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        a = tl.load(a_ptr + m[:, None] * K + (start + k)[None, :])
        b = tl.load(b_ptr + (start + k)[:, None] * N + n[None, :])
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc.to(tl.float16))


@triton.jit
def triangle_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """Program i reads i + 1 blocks."""
    total = tl.zeros((BLOCK,), tl.float32)
    for i in range(tl.program_id(0) + 1):
        total += tl.load(x_ptr + i * BLOCK + tl.arange(0, BLOCK))
    tl.store(out_ptr + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), total)


@triton.jit
def strided_kernel(x_ptr, n, BLOCK: tl.constexpr):
    """As many programs as the launch has share the work."""
    for block in range(tl.program_id(0), tl.cdiv(n, BLOCK), tl.num_programs(0)):
        at = block * BLOCK + tl.arange(0, BLOCK)
        tl.store(x_ptr + at, tl.load(x_ptr + at, at < n) + 1, at < n)


@triton.jit
def count_kernel(total_ptr, seen_ptr, BLOCK: tl.constexpr):
    place = tl.atomic_add(total_ptr, 1)
    tl.store(seen_ptr + place, BLOCK)


def product_grid(meta: dict[str, Any]) -> tuple[int, int]:
    return triton.cdiv(meta["M"], meta["BM"]), triton.cdiv(meta["N"], meta["BN"])


# --- Rankings without a GPU ---------------------------------------------------------------------------


def test_the_chip_of_a_ranking(monkeypatch: pytest.MonkeyPatch) -> None:
    """The option goes before the environment, and that before the default."""
    x, out = arrays(4096)

    def device_of(**options: Any) -> tuple[str, str]:
        kernel = triton.autotune(blocks(32, 256), ["n"], **options)(scale_kernel)
        kernel[grid](x, out, 4096, 2.0)
        [tuning] = kernel.results.values()
        return tuning.device, tuning.how

    assert device_of() == ("model of M1", "ranked by the model for M1")
    assert device_of(chip="M2 Max 30 cores")[0] == "model of M2 Max 30 cores"
    monkeypatch.setenv("TRITON_METAL_CHIP", "Apple M2")
    assert device_of()[0] == "model of M2"
    assert device_of(chip="M4 Max") == (
        "model of M4 Max",
        "ranked by the model for M4 Max (clock: none is published: that of M4 Pro)",
    )
    monkeypatch.setenv("TRITON_METAL_CHIP", "M9")
    with pytest.raises(ValueError, match=r"TRITON_METAL_CHIP must be one of M1, .* but is 'M9'"):
        device_of()


def test_every_chip_can_rank() -> None:
    for forms in cost.CHIPS.values():
        for form in forms:
            found = cost.ranking_chip(cost.full_name(form))
            assert found.clock is not None
            assert (found.cores, found.bandwidth) == (form.cores, form.bandwidth)


def test_chips_prefer_other_configurations() -> None:
    """64 programs keep 8 cores busy and leave some of 64 idle."""
    a, b, c = (np.ones((256, 256), np.float16) for _ in range(3))
    configs = [Config({"BM": size, "BN": size, "BK": 16}) for size in (16, 32, 64)]
    best = {}
    for chip in ("M1", "M1 Ultra"):
        kernel = triton.autotune(configs, ["M"], chip=chip)(product_kernel)
        kernel[product_grid](a, b, c, 256, 256, 256)
        best[chip] = kernel.best_config.kwargs["BM"]
    assert best["M1"] > best["M1 Ultra"]


def test_arrays_that_a_kernel_changes_are_as_they_were_after_a_search() -> None:
    for options in ({}, {"restore_value": ["x_ptr"]}):
        kernel = triton.autotune(blocks(*SIZES), ["n"], **options)(increment_kernel)
        x = np.zeros(5000, np.float32)
        kernel[grid](x, 5000)
        assert (x == 1).all()
    kernel = triton.autotune(blocks(*SIZES), ["n"], reset_to_zero=["x_ptr"])(increment_kernel)
    kernel[grid](x, 5000)
    assert (x == 1).all()


def test_a_large_product_is_ranked_by_a_few_programs() -> None:
    n = 4096
    a, b = (np.zeros((n, n), np.float16) for _ in range(2))
    c = np.full((n, n), 7, np.float16)
    configs = [Config({"BM": 64, "BN": size, "BK": 32}) for size in (32, 64)]
    kernel = triton.autotune(configs, ["M"])(product_kernel)
    with triton.profile() as p:
        kernel[product_grid](a, b, c, n, n, n)
    [tuning] = kernel.results.values()
    for row in tuning.rows:
        assert row.counted is not None
        assert row.counted[1] == 64 * 4096 // row.config.kwargs["BN"]
        assert row.counted[0] <= 16
    assert "(counted " in kernel.report()
    *counts, last = [launch.grid for launch in p.launches]
    assert last[0] * last[1] in (4096, 8192)  # the launch itself
    assert sum(x * y for x, y, _ in counts) < 64
    assert (c == 0).all()


# --- Counting a part ---------------------------------------------------------------------------------


def test_parts_of_grids() -> None:
    assert part_of((16, 4, 2), 1) == (1, 1, 1)
    assert part_of((16, 4, 2), 16) == (16, 1, 1)
    assert part_of((16, 4, 2), 64) == (16, 4, 1)
    assert part_of((16, 4, 2), 1000) == (16, 4, 2)
    assert part_of((1, 1, 5), 3) == (1, 1, 3)


def test_a_part_of_equal_programs_counts_as_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("triton_metal.cost.sampling.ENOUGH", 400_000)
    a, b, c = (np.ones((256, 256), np.float16) for _ in range(3))
    sizes = {"BM": 32, "BN": 32, "BK": 16}

    def launch(turn: Any) -> Any:
        return product_kernel[lambda meta: turn((8, 8))](a, b, c, 256, 256, 256, **sizes)

    found = sampled(launch)
    assert found.alike
    assert (found.counted, found.programs) == (4, 64)
    with cost.counting() as counted:
        launch(lambda given: given)
    # Programs share lines, so that a part stands for too many of them.
    part, whole = (dict(works[0].counters) for works in (found.works, counted.works))
    for use in ("read", "written"):
        assert part.pop(f"device_memory_lines_{use}") >= whole.pop(f"device_memory_lines_{use}")
    assert part == whole
    assert cost.bound(cost.chip("M1"), found.works[0]) == cost.bound(
        cost.chip("M1"), counted.works[0]
    )


def test_of_programs_that_differ_more_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("triton_metal.cost.sampling.ENOUGH", 5_000)
    monkeypatch.setattr("triton_metal.cost.sampling.ENOUGH_OF_DIFFERENT", 100_000)
    x, out = np.ones(256 * 128, np.float32), np.ones(256 * 128, np.float32)
    found = sampled(lambda turn: triangle_kernel[lambda meta: turn((256,))](x, out, BLOCK=128))
    assert not found.alike
    assert 16 <= found.counted < 256


def test_programs_all_over_the_grid_stand_for_those_that_differ(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first of 256 programs read 1 to 16 blocks, all of them 128 in the mean."""
    monkeypatch.setattr("triton_metal.cost.sampling.ENOUGH", 5_000)
    monkeypatch.setattr("triton_metal.cost.sampling.ENOUGH_OF_DIFFERENT", 100_000)
    x, out = np.ones(256 * 128, np.float32), np.ones(256 * 128, np.float32)
    named = {"x_ptr": x, "out_ptr": out}
    compiled = triangle_kernel.warmup(*named.values(), BLOCK=128, grid=(1,))

    def launch(turn: Any) -> Any:
        return triangle_kernel[lambda meta: turn((256,))](x, out, BLOCK=128)

    def elsewhere(grid: tuple[int, int, int], count: int) -> Any:
        return launcher_of(compiled, named, grid, count)

    with cost.counting() as counted:
        launch(lambda given: given)
    right, found = counted.works[0].counters, sampled(launch, elsewhere=elsewhere)
    assert found.spread
    assert not found.alike
    assert found.counted < 256
    for name in ("device_lines_read", "optimized_f32_add", "optimized_int_add"):
        assert found.works[0].counters[name] == pytest.approx(right[name], rel=0.1)
        first = sampled(launch).works[0].counters[name]
        assert first < 0.1 * right[name], "the first programs say nothing of the others"


def test_programs_all_over_the_grid_are_counted_without_what_finds_them() -> None:
    """Of equal programs they count as the first one does, but for what a compiler joins."""
    n = 512
    a, b, c = (np.ones((n, n), np.float16) for _ in range(3))
    named = {"a_ptr": a, "b_ptr": b, "c_ptr": c, "M": n, "N": n, "K": n}
    sizes = {"BM": 32, "BN": 32, "BK": 16}
    compiled = product_kernel.warmup(*named.values(), grid=(1,), **sizes)

    def works(call: Any) -> Any:
        with cost.counting() as counted:
            call()
        return counted.works

    [alone] = works(lambda: compiled[(1, 1, 1)](*named.values()))
    launch_at = launcher_of(compiled, named, (16, 16, 1), 8)
    assert launch_at is not None
    found = counted_elsewhere(alone, 8, launch_at, works)
    for name in ("device_lines_read", "simdgroup_matrix_multiplies", "threadgroup_barriers", "optimized_int_add"):  # fmt: skip
        assert found[name] == pytest.approx(8 * alone.counters[name], rel=0.01), name


def test_places_lie_in_every_row_and_column() -> None:
    for sizes in ((64, 64, 1), (30, 7, 5), (4096, 1, 1), (100, 3, 2)):
        step = step_of(sizes, 16)
        places = [step * i + step // 2 for i in range(16)]
        assert places[-1] < sizes[0] * sizes[1] * sizes[2]
        assert places[-1] > 0.8 * sizes[0] * sizes[1] * sizes[2]
        assert len({place % sizes[0] for place in places}) == 16
    assert step_of((5, 2, 1), 16) == 0


def test_a_search_over_programs_that_differ_undoes_what_they_write() -> None:
    x, out = np.ones(256 * 128, np.float32), np.full(256 * 128, 7, np.float32)
    kernel = triton.autotune([Config({"BLOCK": 128}, num_warps=w) for w in (1, 4)], [])(
        triangle_kernel
    )
    kernel[(200,)](x, out)
    assert (out[200 * 128 :] == 7).all()
    assert (out[: 200 * 128].reshape(200, 128) == np.arange(1, 201)[:, None]).all()


@pytest.mark.parametrize("case", ["the number of programs", "atomics"])
def test_programs_that_depend_on_each_other_are_all_counted(case: str) -> None:
    if case == "atomics":
        kernel = triton.autotune(blocks(32, 64), [])(count_kernel)
        total, seen = np.zeros(1, np.int32), np.zeros(5000, np.int32)
        kernel[(5000,)](total, seen)
        assert total[0] == 5000
        assert (seen == kernel.best_config.kwargs["BLOCK"]).all()
        wanted = 5000
    else:
        kernel = triton.autotune(blocks(32, 64), ["n"])(strided_kernel)
        x = np.zeros(100_000, np.float32)
        kernel[(50,)](x, x.size)
        assert (x == 1).all()
        wanted = 50
    [tuning] = kernel.results.values()
    assert all(row.counted == (wanted, wanted) for row in tuning.rows)


def test_copies_have_the_strides_and_the_sharing_of_arrays() -> None:
    whole = np.arange(1000, dtype=np.float32)
    views = [whole, whole[5:], whole[::2], whole[::-1], whole[:900].reshape(30, 30).T, whole[:0]]
    read_only = np.broadcast_to(np.ones(3, np.int16), (4, 3))
    copied = ArrayCopies([*views, (read_only, 3)]).of
    for view in views:
        copy = copied(view)
        assert (copy.strides, copy.shape) == (view.strides, view.shape)
        assert (copy == view).all()
        assert (copy.ctypes.data - view.ctypes.data) % 256 == 0
    copied(whole)[10] = -1
    assert [copied(view).ravel()[at] for view, at in ((views[1], 5), (views[2], 5))] == [-1, -1]
    assert whole[10] == 10
    assert (copied(read_only) == 1).all()
    assert not copied(read_only).flags.writeable
    assert copied((whole, 3))[1] == 3
    torch = pytest.importorskip("torch")
    base = torch.arange(100.0)
    part = base[10::3]
    copied = ArrayCopies([part, base]).of
    copy = copied(part)
    assert (copy.stride(), copy.storage_offset()) == (part.stride(), 10)
    assert torch.equal(copy, part)
    copied(base)[10] = 7
    assert copy[0] == 7
    assert base[10] == 10


def test_the_cost_of_a_launch_on_a_view() -> None:
    """A kernel that is given strides reads the copy as it reads the array."""

    @triton.jit
    def gather(x_ptr, out_ptr, step, BLOCK: tl.constexpr):
        at = tl.arange(0, BLOCK)
        tl.store(out_ptr + at, tl.load(x_ptr + at * step))

    x, out = np.arange(64 * 100, dtype=np.float32)[::100], np.zeros(64, np.float32)
    found = gather.cost("M1", (1,), x, out, 100, BLOCK=64)
    assert found.work.counters["device_lines_read"] == 64
    assert not out.any()


# --- A GPU -------------------------------------------------------------------------------------------


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy's arrays are on a GPU, whose launches the host device runs."""
    import triton_metal.tuning.measure as measure

    monkeypatch.setattr(measure, "is_gpu", lambda device: True)


def measured(kernel: Any) -> list[Any]:
    [tuning] = kernel.results.values()
    return [row.config.kwargs["BLOCK"] for row in tuning.rows if not row.left_out]


@pytest.mark.usefixtures("gpu")
def test_a_gpu_measures_what_the_model_puts_first() -> None:
    x, out = arrays(1 << 16)
    ranked = triton.autotune(blocks(*SIZES), ["n"], chip="M2 Max")(scale_kernel)
    bench = Bench(*range(10, 0, -1))
    ranked = triton.autotune(blocks(*SIZES), ["n"], chip="M2 Max", do_bench=bench)(scale_kernel)
    ranked[grid](x, out, x.size, 2.0)
    [tuning] = ranked.results.values()
    assert tuning.unit == "benchmark"
    assert tuning.how == "measured 2 of 6, those that the model for M2 Max puts first"
    estimates = {row.config.kwargs["BLOCK"]: row.estimate for row in tuning.rows}
    order = sorted(SIZES, key=estimates.__getitem__)
    assert measured(ranked) == order[:2]
    assert ranked.best_config.kwargs["BLOCK"] == order[1]  # it had the lower time
    assert len(bench.quantiles) == 2
    left_out = [row for row in tuning.rows if row.left_out]
    assert len(left_out) == 4
    for row in left_out:
        assert row.runs == 0
        assert row.estimate is not None
        at = order.index(row.config.kwargs["BLOCK"]) + 1
        assert row.reason.startswith(f"the model for M2 Max puts it in place {at} of 6, at ")
    assert ranked.report().count("left out: the model for M2 Max") == 4
    assert tuning.how in ranked.report()
    assert list(ranked.configs_timings) == [row.config for row in tuning.rows[:2]]
    assert (out == 2 * x).all()


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("how", ["option", "environment", "the user's own model", "unknown chip"])
def test_a_gpu_measures_all(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    options: dict[str, Any] = {"chip": "M2", "do_bench": Bench(*range(6))}
    wanted = "measured all 6 by do_bench, as measure_all says"
    if how == "option":
        options["measure_all"] = True
    elif how == "environment":
        monkeypatch.setenv("TRITON_METAL_AUTOTUNE_MEASURE_ALL", "1")
    elif how == "unknown chip":
        del options["chip"]  # the host's processor is none that the model knows
        wanted = "measured all 6 by do_bench, since the model does not know the chip"
    else:
        options["prune_configs_by"] = {"perf_model": lambda **given: given["BLOCK"], "top_k": 4}
        wanted = "measured all 4 by do_bench that the given perf_model leaves"
    kernel = triton.autotune(blocks(*SIZES), ["n"], **options)(scale_kernel)
    kernel[grid](*arrays(4096), 4096, 2.0)
    [tuning] = kernel.results.values()
    assert tuning.how.startswith(wanted)
    assert measured(kernel) == list(SIZES[: len(tuning.rows)])
    assert all(row.estimate is None for row in tuning.rows)


@pytest.mark.usefixtures("gpu")
def test_an_early_pruning_goes_before_the_model() -> None:
    def early(configs: list[Config], named: Any, **given: Any) -> list[Config]:
        return [config for config in configs if config.kwargs["BLOCK"] < 500]

    kernel = triton.autotune(
        blocks(*SIZES), ["n"], chip="M2", do_bench=Bench(1, 2), prune_configs_by={"early_config_prune": early}
    )(scale_kernel)  # fmt: skip
    kernel[grid](*arrays(4096), 4096, 2.0)
    [tuning] = kernel.results.values()
    assert tuning.how == "measured 2 of 4, those that the model for M2 puts first"


@pytest.mark.usefixtures("gpu")
def test_the_model_counts_on_copies_where_a_gpu_measures() -> None:
    launched: list[float] = []

    def bench(call: Any, quantiles: Any) -> float:
        launched.append(x[0])
        call()
        return 1.0

    x = np.zeros(3000, np.float32)
    kernel = triton.autotune(
        blocks(*SIZES), ["n"], chip="M1", do_bench=bench, restore_value=["x_ptr"]
    )(increment_kernel)
    kernel[grid](x, 3000)
    assert launched == [0, 0]
    assert (x == 1).all()
    x[:] = 5
    kernel = triton.autotune(
        blocks(*SIZES), ["n"], chip="M1", do_bench=bench, reset_to_zero=["x_ptr"]
    )(increment_kernel)
    kernel[grid](x, 3000)
    assert launched[2:] == [5, 1]  # the model set a copy to zero
    assert (x == 1).all()


@pytest.mark.usefixtures("gpu")
def test_what_the_model_cannot_count_is_measured() -> None:
    hooked = []

    def fails_on_copies(named: dict[str, Any]) -> None:
        hooked.append(named["out_ptr"] is out)
        if named["out_ptr"] is not out:
            raise RuntimeError("not my array")

    configs = [*blocks(*SIZES), Config({"BLOCK": 16}, pre_hook=fails_on_copies)]
    kernel = triton.autotune(configs, ["n"], chip="M1", do_bench=Bench(3, 2, 1))(scale_kernel)
    x, out = arrays(4096)
    kernel[grid](x, out, 4096, 2.0)
    assert measured(kernel)[-1] == 16
    assert len(measured(kernel)) == 3
    assert hooked == [False, True, True]  # the model, the measurement, the launch


@pytest.mark.usefixtures("gpu")
def test_the_rest_is_measured_if_nothing_of_the_first_third_runs() -> None:
    def bench(call: Any, quantiles: Any) -> float:
        launched.append(call)
        if len(launched) < 4:
            raise triton.errors.OutOfResources(1, 0, "threads")
        return 1.0

    launched: list[Any] = []
    kernel = triton.autotune(blocks(*SIZES), ["n"], chip="M1", do_bench=bench)(scale_kernel)
    kernel[grid](*arrays(4096), 4096, 2.0)
    [tuning] = kernel.results.values()
    assert [row.ok for row in tuning.rows] == [False, False, False, True, False, False]
    assert [row.left_out for row in tuning.rows] == [False] * 4 + [True] * 2


@pytest.mark.usefixtures("gpu")
def test_rows_that_were_left_out_travel_in_files(tmp_path: Path) -> None:
    options: dict[str, Any] = {"chip": "M2", "do_bench": Bench(1, 2)}
    kernel = triton.autotune(blocks(*SIZES), ["n"], **options)(scale_kernel)
    kernel[grid](*arrays(4096), 4096, 2.0)
    path = tmp_path / "tuned.json"
    kernel.results.export(path)
    shipped = triton.autotune(blocks(*SIZES), ["n"], results=path, **options)(scale_kernel)
    shipped[grid](*arrays(4096), 4096, 2.0)
    [before], [after] = kernel.results.values(), shipped.results.values()
    assert after.rows == before.rows
    assert (after.how, after.source) == (before.how, "file")
    assert list(shipped.configs_timings) == list(kernel.configs_timings)


def test_a_file_of_the_model_serves_the_gpu_of_its_chip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = triton.autotune(blocks(*SIZES), ["n"], chip="M4 Max")(scale_kernel)
    kernel[grid](*arrays(4096), 4096, 2.0)
    path = tmp_path / "tuned.json"
    kernel.results.export(path)
    monkeypatch.setattr("triton_metal.tuning.measure.is_gpu", lambda device: True)
    for chip, source in (("M4 Max", "file"), ("M2", "search")):
        other = triton.autotune(
            blocks(*SIZES), ["n"], results=path, chip=chip, do_bench=Bench(1, 2)
        )(scale_kernel)
        other[grid](*arrays(4096), 4096, 2.0)
        [tuning] = other.results.values()
        assert tuning.source == source


def test_a_file_of_the_first_format_keeps_its_times(tmp_path: Path) -> None:
    kernel = triton.autotune(blocks(32, 64), ["n"], do_bench=Bench(1, 2))(scale_kernel)
    kernel[grid](*arrays(4096), 4096, 2.0)
    path = tmp_path / "tuned.json"
    kernel.results.export(path)
    fields = json.loads(path.read_text())
    fields["format"] = 1
    [tuning] = fields["tunings"]
    del tuning["how"]
    for row in tuning["rows"]:
        del row["left_out"], row["estimate"], row["counted"]
    fields["tunings"].append({**tuning, "unit": "cost", "key": [1, "float32", "float32"]})
    path.write_text(json.dumps(fields))
    old = triton.autotune(blocks(32, 64), ["n"], results=path)(scale_kernel)
    old[grid](*arrays(4096), 4096, 2.0)
    old[grid](*arrays(1), 1, 2.0)  # its cost is no estimate of the model
    assert [tuning.source for tuning in old.results.values()] == ["file", "search"]


def test_a_configuration_that_fails_a_check_is_not_chosen() -> None:
    memory = np.zeros(4096, np.float32)
    x = memory[1024:2304]
    kernel = triton.autotune(blocks(512, 256), ["n"])(increment_unmasked_kernel)
    with triton.launch_options(check="bounds"):
        kernel[grid](x, 1280)
    [tuning] = kernel.results.values()
    assert [row.ok for row in tuning.rows] == [False, True]
    assert "byte 5120 of 'x_ptr'" in tuning.rows[0].reason
    np.testing.assert_array_equal(np.flatnonzero(memory), np.arange(1024, 2304))


def test_arrays_of_mlx_are_counted_all_over_a_large_grid() -> None:
    mx = pytest.importorskip("mlx.core")
    n = 1 << 20
    x, out = mx.ones(n), mx.zeros(n)
    kernel = triton.autotune(blocks(64, 128), ["n"])(scale_kernel)
    kernel[grid](x, out, n, 2.0)
    assert mx.all(out == 2.0).item()
    [tuning] = kernel.results.values()
    assert all(row.ok for row in tuning.rows)
