"""Settings: from the environment until a program sets them, and what those do that mean something on Metal."""

from __future__ import annotations

import gc
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import triton_metal
import triton_metal.language as tl
from triton_metal import knobs

from process_support import fresh_kernel


@pytest.fixture(autouse=True)
def same_afterwards() -> Any:
    groups = (knobs.cache, knobs.compilation, knobs.runtime, knobs.language, knobs.autotuning)
    with groups[0].scope(), groups[1].scope(), groups[2].scope(), groups[3].scope():
        yield
    assert not knobs.runtime.launch_enter_hook.calls
    assert not knobs.runtime.launch_exit_hook.calls


class Group(knobs.base_knobs):
    text = knobs.env_str("TEST_KNOB_TEXT", "fallback")
    flag = knobs.env_bool("TEST_KNOB_FLAG")
    number = knobs.env_int("TEST_KNOB_NUMBER", 3)
    maybe = knobs.env_opt_bool("TEST_KNOB_MAYBE")
    kind = knobs.env_class("TEST_KNOB_CLASS", "CacheManager")


def test_a_knob_follows_the_environment_until_it_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    group = Group()
    assert group.knobs == {
        "text": "fallback", "flag": False, "number": 3, "maybe": None, "kind": None,
    }  # fmt: skip
    for text, value in (("1", True), ("TRUE", True), ("On", True), ("y", True), ("0", False)):
        monkeypatch.setenv("TEST_KNOB_FLAG", text)
        assert group.flag is value
    group.flag = True
    monkeypatch.setenv("TEST_KNOB_FLAG", "0")
    assert group.flag is True
    del group.flag
    assert group.flag is False
    group.flag = True
    group.flag = knobs.env
    assert group.flag is True  # the setting had gone into the environment
    assert os.environ["TEST_KNOB_FLAG"] == "1"


def test_a_scope_restores_settings_and_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_KNOB_NUMBER", "5")
    group = Group()
    with group.scope():
        group.number = 7
        group.text = "inside"
        assert (group.number, os.environ["TEST_KNOB_NUMBER"]) == (7, "7")
    assert (group.number, group.text) == (5, "fallback")
    assert "TEST_KNOB_TEXT" not in os.environ
    monkeypatch.setattr(knobs, "propagate_env", False)
    copied = group.copy()
    copied.maybe = True
    assert (group.maybe, copied.maybe, copied.reset().number) == (None, True, 5)


@pytest.mark.parametrize(
    ("variable", "text", "knob", "message"),
    [
        ("TEST_KNOB_NUMBER", "many", "number", "TEST_KNOB_NUMBER is 'many'; it must be an integer"),
        ("TEST_KNOB_CLASS", "pathlib", "kind", "must have the form MODULE:CLASS"),
        ("TEST_KNOB_CLASS", "pathlib:Path", "kind", "not a class of type CacheManager"),
    ],
)
def test_what_cannot_be_read_is_said(
    monkeypatch: pytest.MonkeyPatch, variable: str, text: str, knob: str, message: str
) -> None:
    monkeypatch.setenv(variable, text)
    with pytest.raises(RuntimeError, match=message):
        getattr(Group(), knob)


def test_hooks_are_called_around_each_launch() -> None:
    @triton_metal.jit(launch_metadata=lambda grid, kernel, arguments: {"size": arguments["n"]})
    def fill(x, n, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(x + i, 1, i < n)

    x, said = np.zeros(8, np.float32), []
    fill[(1,)](x, 5, 8)

    def enter(metadata: Any) -> None:
        found = metadata.get()
        said.append(("enter", found["name"], found["size"], x.sum()))

    def leave(metadata: Any) -> None:
        said.append(("exit", metadata.get()["name"]))

    x[:] = 0
    knobs.runtime.launch_enter_hook.add(enter)
    knobs.runtime.launch_exit_hook.add(leave)
    try:
        fill[(1,)](x, 5, 8)
        compiled = fill.warmup(x, 5, 8, grid=(1,))
        assert said == [("enter", "fill", 5, 0), ("exit", "fill")]
        compiled[(1, 1, 1)](x, 3, 8)
        assert said[2:] == [("enter", "fill", 3, 5), ("exit", "fill")]
        fill[(0,)](x, 5, 8)  # no program, and yet a launch
        assert len(said) == 6
    finally:
        knobs.runtime.launch_enter_hook.remove(enter)
        knobs.runtime.launch_exit_hook.remove(leave)
    fill[(1,)](x, 5, 8)
    assert len(said) == 6


def test_a_plain_function_and_none_may_take_the_place_of_a_chain() -> None:
    kernel, said = fresh_kernel(), []
    x = np.zeros(4, np.float32)
    knobs.runtime.launch_enter_hook = lambda metadata: said.append(metadata.get()["name"])
    kernel[(1,)](x, 4)
    knobs.runtime.launch_enter_hook = None
    kernel[(1,)](x, 4)
    del knobs.runtime.launch_enter_hook
    knobs.runtime.launch_enter_hook.calls = [lambda metadata: said.append("replaced")]
    kernel[(1,)](x, 4)
    knobs.runtime.launch_enter_hook.calls = []
    kernel[(1,)](x, 4)
    assert said == ["kernel", "replaced"]


def test_chains_call_in_order_and_backwards() -> None:
    said: list[str] = []
    for backwards, expected in ((False, ["a", "b"]), (True, ["b", "a"])):
        chain: Any = knobs.HookChain(reversed=backwards)
        one, two = (lambda: said.append("a")), (lambda: said.append("b"))
        chain.add(one)
        chain.add(two)
        chain.add(one)
        chain()
        assert said == expected
        chain.remove(one)
        chain.remove(one)
        said.clear()


def test_the_hooks_of_compilation_are_told_and_may_decline() -> None:
    kernel, said = fresh_kernel(), []
    x = np.zeros(16, np.float32)

    def before(**told: Any) -> bool:
        said.append(
            (told["fn"].jit_function, told["compile"]["num_warps"], told["is_manual_warmup"])
        )
        return len(said) == 1

    after: list[str] = []
    knobs.runtime.jit_cache_hook = before
    knobs.runtime.jit_post_compile_hook = lambda **told: after.append(told["key"])
    assert kernel.warmup(x, 16, grid=(1,)) is None
    assert (kernel.device_caches[0][0], after) == ({}, [])
    compiled = kernel[(1,)](x, 16)
    kernel[(1,)](x, 16)
    # The launch names no SIMD-groups: the compiler chooses them.
    assert said == [(kernel, None, True), (kernel, None, False)]
    assert list(kernel.device_caches[0][0].items()) == [(after[0], compiled)]


def test_loading_and_unloading_are_told() -> None:
    gc.collect()  # kernels of other tests are unloaded now
    kernel, said = fresh_kernel(), []

    def note(what: str) -> Any:
        return lambda module, function, name, group, hash: said.append(
            (what, name, function is None)
        )

    hooks = [
        (knobs.runtime.kernel_load_start_hook, note("start")),
        (knobs.runtime.kernel_load_end_hook, note("end")),
        (knobs.runtime.kernel_unload_hook, note("unload")),
    ]
    for chain, hook in hooks:
        chain.add(hook)
    try:
        x = np.zeros(4, np.float32)
        compiled = kernel.warmup(x, 4, grid=(1,))
        assert said == []
        kernel[(1,)](x, 4)
        kernel[(1,)](x, 4)
        assert said == [("start", "kernel", True), ("end", "kernel", False)]
        compiled.__del__()
        assert said[2:] == [("unload", "kernel", False)]
        assert compiled.module is None
    finally:
        for chain, hook in hooks:
            chain.remove(hook)


def test_the_listener_hears_of_times_and_of_the_cache(tmp_path: Path) -> None:
    knobs.cache.dir = str(tmp_path)
    heard: list[dict[str, Any]] = []
    knobs.compilation.listener = lambda **told: heard.append(told)
    kernel, x = fresh_kernel(), np.zeros(4, np.float32)
    kernel[(1,)](x, 4)
    kernel.device_caches.clear()
    kernel._launcher = None  # what this process has in memory
    kernel[(1,)](x, 4)
    knobs.compilation.always_compile = True
    kernel.device_caches.clear()
    kernel._launcher = None
    kernel[(1,)](x, 4)
    assert [told["cache_hit"] for told in heard] == [False, True, False]
    times = heard[0]["times"]
    assert times.ir_initialization > 0
    assert times.total_lowering > 0
    assert times.store_results > 0
    assert heard[1]["times"].total == heard[1]["times"].ir_initialization
    assert heard[0]["src"].fn is kernel
    assert heard[0]["metadata"]["hash"] == heard[1]["metadata"]["hash"]
    assert [path.suffix for path in tmp_path.iterdir() if path.is_file()] == [".json"]


def test_texts_are_dumped_and_replaced(tmp_path: Path) -> None:
    knobs.cache.dump_dir, knobs.cache.override_dir = str(tmp_path / "dump"), str(tmp_path / "dump")
    knobs.compilation.dump_ir = True
    kernel, x = fresh_kernel(), np.zeros(4, np.float32)
    kernel[(1,)](x, 4)
    assert x.tolist() == [1] * 4
    found = {path.suffix: path for path in (tmp_path / "dump").rglob("kernel.*")}
    assert set(found) == {".ttir", ".ttm", ".msl", ".metal"}
    text = found[".ttir"].read_text()
    assert text.count("1.000000e+00") == 1
    found[".ttir"].write_text(text.replace("1.000000e+00", "5.000000e+00"))
    knobs.compilation.dump_ir, knobs.compilation.override = False, True
    kernel._launcher = None
    kernel.device_caches.clear()
    kernel[(1,)](x, 4)
    assert x.tolist() == [6] * 4


def test_debug_turns_assertions_on() -> None:
    @triton_metal.jit
    def check(x):
        tl.device_assert(tl.load(x) == 0, "not zero")

    x = np.ones(1, np.float32)
    check[(1,)](x)
    knobs.runtime.debug = True
    try:
        with pytest.raises(triton_metal.DeviceError, match="not zero"):
            check[(1,)](x)
    finally:
        knobs.refresh_knobs()
    check[(1,)](x)


def test_another_group_of_knobs_takes_the_place_of_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kernel, said = fresh_kernel(), []
    x = np.zeros(4, np.float32)
    other = knobs.runtime.copy()
    other.launch_enter_hook = lambda metadata: said.append("other")
    kernel[(1,)](x, 4)
    monkeypatch.setattr(knobs, "runtime", other)
    kernel[(1,)](x, 4)
    monkeypatch.undo()
    kernel[(1,)](x, 4)
    assert said == ["other"]


@triton_metal.jit
def square(x, PRECISION: tl.constexpr):
    i = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
    tile = tl.load(x + i)
    tl.store(x + i, tl.dot(tile, tile, input_precision=PRECISION))


def test_the_precision_of_dots_without_one_is_a_knob_and_part_of_the_kernel() -> None:
    x = np.zeros((16, 16), np.float32)

    def precision(wanted: str | None) -> str:
        return square[(1,)](x, wanted).asm["ttir"].partition("inputPrecision = ")[2].split()[0]

    assert precision(None) == "tf32"
    with knobs.language.scope():
        knobs.language.fp32_default = "tf32x3"
        assert precision(None) == "tf32x3"
        assert precision("tf32") == "tf32"
        knobs.language.fp32_default = "ieee"
        # The operation prints no precision that is the default.
        assert "inputPrecision" not in square[(1,)](x, None).asm["ttir"]
    assert precision(None) == "tf32"


def test_the_table_of_settings_names_all_of_them() -> None:
    text = (Path(__file__).parents[2] / "docs" / "knobs.md").read_text(encoding="utf-8")
    groups = ("autotuning", "build", "cache", "compilation", "language", "runtime")
    missing = []
    for group in groups:
        kind = type(getattr(knobs, group))
        for name, value in vars(kind).items():
            is_function = callable(value) and not isinstance(value, knobs.HookChain)
            if name.startswith("_") or is_function or isinstance(value, property):
                continue
            if f"`{group}.{name}`" not in text and f"`{name}`" not in text:
                missing.append(f"{group}.{name}")
    assert missing == []
