"""What Apple's compiler and GPUs refuse: it is recognised, told in a sentence, and tried in another form.

Stand-ins raise what MLX and PyTorch raise. None of the messages was seen on a Mac by this project.
"""

from __future__ import annotations

import doctest
import pickle
import re
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import triton_metal
import triton_metal.language as tl
from triton_metal import DeviceError, DeviceRefusal, RefusalWarning, _native, devices, mps, refit
from triton_metal.devices import detect, quirks
from triton_metal.devices.target import apple, downgraded
from triton_metal.refusals import KINDS, recognise, reporting
from triton_metal.testing import contract_device, refusing
from triton_metal.testing.refused import LIBRARY, PIPELINE, WORDS, metal_error

from mac_support import found_on_mac

pytestmark = [
    pytest.mark.own_route,
    pytest.mark.own_check("the host device's portable launches do not go through a framework"),
]


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    refit.forget()
    yield
    refit.forget()


def kernel_of() -> Any:
    """A kernel that has compiled nothing."""

    @triton_metal.jit
    def scale(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
        offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        mask = offsets < n
        tl.store(y_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * 2.0 + 1.0, mask=mask)

    return scale


N, BLOCK = 1000, 512


class Route:
    """A launch of a kernel through one of the contract devices."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.kernel = kernel_of()
        self.x = np.arange(N, dtype=np.float32)
        self.y = np.full(N, -1.0, np.float32)

    def launch(self, kernel: Any = None, **options: Any) -> Any:
        kernel = kernel or self.kernel
        with contract_device(self.name):
            if self.name != "mlx":
                return kernel[(2,)](self.x, self.y, N, BLOCK=BLOCK, **options)
            import mlx.core as mx

            result = triton_metal.mlx.call(
                kernel, mx.array(self.x), N, BLOCK=BLOCK, grid=(2,), **options,
                outputs={"y_ptr": ((N,), mx.float32)},
            )  # fmt: skip
            self.y[:] = np.array(result)
            return None

    @property
    def is_right(self) -> bool:
        return bool((self.y == self.x * 2 + 1).all())

    @property
    def is_unchanged(self) -> bool:
        return bool((self.y == -1).all())


@pytest.fixture(params=["mps", "mlx", "mlx-in-place"])
def route(request: pytest.FixtureRequest) -> Route:
    if request.param != "mps":
        pytest.importorskip("mlx.core")
    return Route(request.param)


# --- Recognising ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "framework", "kind"),
    [
        # ml-explore/mlx: device.cpp, custom_kernel.cpp, eval.cpp; ml-explore/mlx-lm#697; jundot/omlx#1335, #1387
        (
            "[metal::Device] Unable to build metal library from source\n"
            "error: invalid value 'metal4.0' in '-std=metal4.0'\nnote: use 'metal3.2' for ...",
            "mlx",
            "language",
        ),
        (
            "[metal::Device] Unable to build metal library from source\n"
            "program_source:9:1: error: unknown type name 'coherent'\n",
            "mlx",
            "text",
        ),
        ("[metal::Device] Unable to load kernel triton_metal_add_1f\n", "mlx", "no function"),
        (
            "[metal::Device] Unable to load kernel add\nCompiler encountered an internal error\n",
            "mlx",
            "internal",
        ),
        (
            "[metal::Device] Unable to load kernel add\nUnable to reach MTLCompilerService. The process is "
            "unavailable because the compiler is no longer active.\n",
            "mlx",
            "service",
        ),
        ("[metal::Device] Unable to load kernel add\nsomething else\n", "mlx", "pipeline"),
        ("[metal::Device] Unable to load function add\nno\n", "mlx", "no function"),
        (
            "Thread group size (1024) is greater than  the maximum allowed threads per threadgroup (448).",
            "mlx",
            "threads",
        ),
        (
            "[METAL] Command buffer execution failed: Impacting Interactivity "
            "(0000000e:kIOGPUCommandBufferCallbackErrorImpactingInteractivity)",
            "mlx",
            "watchdog",
        ),
        ("[METAL] Command buffer execution failed: Caused GPU Hang Error (00000003:k)", "mlx", "watchdog"),
        (
            "[METAL] Command buffer execution failed: Ignored (for causing prior/excessive GPU errors) (00000004:k)",
            "mlx",
            "ignored",
        ),
        ("[METAL] Command buffer execution failed: Insufficient Memory (00000008:k)", "mlx", "memory"),
        ("[METAL] Command buffer execution failed: Internal Error (0000000e:Internal Error)", "mlx", "stopped"),
        # pytorch/pytorch: OperationUtils.mm, torch/csrc/mps/Module.cpp; pull request 193571
        ("Failed to create function state object for: add", "mps", "no function"),
        ("'torch._C._mps_ShaderLibrary' object has no attribute 'add'", "mps", "no function"),
        (
            'Failed to created pipeline state object, error: Error Domain=CompilerError Code=2 "Compiler '
            'encountered an internal error"',
            "mps",
            "internal",
        ),
        (
            "Failed to created pipeline state object, error: Error Domain=AGXMetalG13X Code=3 "
            '"Threadgroup memory size (49152) exceeds the maximum threadgroup memory allowed (32768)"',
            "mps",
            "threadgroup memory",
        ),
        (
            'Failed to created pipeline state object, error: Error "Function add is using language version 4.1 '
            'which is incompatible with this OS."',
            "mps",
            "language",
        ),
        ("Failed to created pipeline state object, error: what", "mps", "pipeline"),
        ("Failed to create metal library, error: connection interrupted", "mps", "internal"),
        ("Threadgroup size exceeds 448 limit", "mps", "threads"),
        ("command buffer exited with error status: 5", "mps", "stopped"),
        ("[metal::malloc] Unable to allocate 1073741824 bytes.", "mlx", "allocation"),
        ("MPS backend out of memory (MPS allocated: 17 GB)", "mps", "allocation"),
        # risc0/risc0#937
        ("Compute function exceeds available temporary registers", "mps", "threads"),
    ],
)  # fmt: skip
def test_messages(message: str, framework: str, kind: str) -> None:
    found = recognise(RuntimeError(message), framework)
    assert found is not None
    assert found.kind.name == kind
    error = found.error("add")
    assert str(error).startswith("add: ")
    assert str(error).count("\n") == 0
    assert error.said == message
    assert (error.kind, error.framework) == (kind, framework)
    assert ("is not defined now" in str(error)) == found.kind.ran


def test_what_is_no_refusal() -> None:
    for message in (
        "the arrays have 3 elements",
        "Trying to create tensor with negative dimension",
    ):
        assert recognise(RuntimeError(message), "mps") is None
    assert recognise(SyntaxError("odd words"), "mps").kind.name == "text"  # type: ignore[union-attr]
    with pytest.raises(ZeroDivisionError), reporting("mlx"):
        raise ZeroDivisionError
    with pytest.raises(RuntimeError, match=r"^other$"), reporting("mlx"):
        raise RuntimeError("other")


def test_every_kind_says_what_to_do() -> None:
    names = [kind.name for kind in KINDS]
    assert len(names) == len(set(names))
    for kind in KINDS:
        assert kind.patterns
        assert not kind.advice.endswith(".")
        assert set(kind.changes) <= {"warps", "language", "rolled"}
        assert not (kind.ran and kind.changes)


def test_a_refusal_can_be_sent_between_processes() -> None:
    error = recognise("Threadgroup size exceeds 448 limit", "mps").error("add")  # type: ignore[union-attr]
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is DeviceRefusal
    assert (str(copy), copy.kind, copy.framework, copy.said) == (
        str(error), "threads", "mps", error.said,
    )  # fmt: skip
    assert "num_warps=8 or fewer" in str(error)


# --- Errors, on every route -------------------------------------------------------------------------------

EXPECTED_KIND = {"language of a function": "language", "interrupted": "internal"}


@pytest.mark.parametrize("kind", [*LIBRARY, *PIPELINE, "no function"])
def test_a_kernel_that_is_refused_in_every_form(route: Route, kind: str) -> None:
    with refusing(kind), warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(DeviceRefusal) as caught:
            route.launch()
    error = caught.value
    assert error.kind == EXPECTED_KIND.get(kind, kind)
    assert isinstance(error, DeviceError)
    assert error.framework == ("mps" if route.name == "mps" else "mlx")
    assert route.is_unchanged
    # The kernel, its line in Python, the cause in Metal's words, and a next step.
    assert error.message.startswith("scale: ")
    assert error.location is not None
    assert error.location.file == __file__
    assert "def scale" in error.location.text
    assert WORDS.get(kind, "").format(name="scale")[:30] in error.message or "{name}" in WORDS[kind]
    assert re.search(r": (use|install|start|please) ", error.message)
    # It runs as soon as it is accepted, in the first form.
    route.launch()
    assert route.is_right


def test_a_metal_line_is_a_python_line() -> None:
    route = Route("mps")
    kernel = route.kernel.warmup(tl.float32, tl.float32, N, BLOCK)
    line = next(place[0] for place in kernel.metadata.text["places"] if place[2] == "store")
    found = recognise(f"program_source:{line}:7: error: no", "mps")
    assert found is not None
    location = found.error("scale", kernel.metadata).location
    assert location is not None
    assert "tl.store(y_ptr" in location.text


def test_the_stand_ins_refuse_only_what_there_is() -> None:
    with pytest.raises(ValueError, match="there is no refusal 'other'"), refusing("other"):
        pass
    with pytest.raises(ValueError, match="'hang' is reported after a launch"), refusing("hang"):
        pass


# --- Other forms ------------------------------------------------------------------------------------------


def launch_and_warn(route: Route, words: str, **options: Any) -> Any:
    with pytest.warns(RefusalWarning) as told:
        result = route.launch(**options)
    assert len(told) == 1
    assert words in str(told[0].message)
    assert str(told[0].message).startswith("scale runs ")
    assert route.is_right
    return result


@pytest.mark.parametrize(("limit", "warps"), [(448, 8), (256, 8), (64, 2), (32, 1)])
def test_fewer_warps(route: Route, limit: int, warps: int) -> None:
    with refusing("threads", limit=limit):
        kernel = launch_and_warn(route, f"with num_warps={warps} instead of 16", num_warps=16)
        if kernel is not None:
            assert kernel.metadata.num_warps == warps
            assert kernel.metadata.threads == 32 * warps
            assert kernel.metadata.refits == (f"with num_warps={warps} instead of 16",)
            # A bound below 64 is row 1 of the known defects.
            bound = f"max_total_threads_per_threadgroup({max(32 * warps, 64)})"
            assert bound in kernel.asm["metal"]
        # The launch caches remember: no second refusal, no second warning.
        route.y[:] = -1
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            again = route.launch(num_warps=16)
        assert route.is_right
        assert again is kernel


def test_a_limit_that_shrinks_with_the_threads(route: Route) -> None:
    """A form may be refused as well: the next one is tried."""
    with refusing("pipeline", when=lambda text, threads: threads > 64) as state:
        launch_and_warn(route, "with num_warps=2 instead of 16", num_warps=16)
    assert len(state.refused) == 3


def test_an_older_language(route: Route) -> None:
    modern = "#pragma METAL fp math_mode(safe)"
    with refusing("text", when=lambda text, threads: modern in text):
        kernel = launch_and_warn(route, "as Metal 3.1 instead of 3.2")
        if kernel is not None:
            assert modern not in kernel.asm["metal"]
            assert "#msl.target<metal(3, 1)," in kernel.asm["msl"]
            assert kernel.metadata.refits == ("as Metal 3.1 instead of 3.2",)
    assert refit.language_limit("mps" if route.name == "mps" else "mlx") == "3.1"


def test_the_language_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels that are compiled later, for the same device, are of the language that it takes."""
    found = found_on_mac("Apple M2", "26.1")
    monkeypatch.setattr(detect, "is_mac", lambda: True)
    monkeypatch.setattr(detect, "detect_quickly", lambda: found)
    device = devices.get("mps")
    monkeypatch.setattr(device, "limit_arrays", lambda: None)
    assert device.target().msl_version == "4.0"
    route = Route("mps")
    with refusing("text", when=lambda text, threads: "#pragma METAL" in text):
        # 3.2 would print the same.
        launch_and_warn(route, "as Metal 3.1 instead of 4.0")
    assert device.target().msl_version == "3.1"
    assert "memory_orders" not in device.target().spec()
    assert device.target().features["bfloat"] is True
    assert devices.target_spec("mps").startswith("msl=3.1,")
    # Another framework may ask for another version.
    assert refit.language_limit("mlx") is None


def test_downgrading_leaves_out_what_came_later() -> None:
    target = apple("26.2", "Apple M5", quirks=("rolled_loops",))
    for msl in ("3.2", "3.1", "3.0"):
        spec = downgraded(target, msl).spec()
        assert spec == refit.downgraded(target.spec(), msl)
        assert spec.startswith(f"msl={msl},")
        assert spec.endswith(",rolled_loops")
        assert ("memory_orders" in spec) == (msl == "3.2")
        assert ("bfloat" in spec) == (msl != "3.0")
    assert doctest.testmod(refit).failed == 0


@pytest.mark.parametrize("kind", ["internal", "interrupted"])
def test_rolled_loops_after_an_internal_error(route: Route, kind: str) -> None:
    """A thread has so many elements here that the text has loops over them."""
    assert "rolled_loops" in quirks.understood()
    with refusing(kind, when=lambda text, threads: "#pragma unroll" in text) as state:
        kernel = launch_and_warn(route, "with loops that are not unrolled", num_warps=1)
        if kernel is not None:
            assert "#pragma unroll" not in kernel.asm["metal"]
            assert "for (" in kernel.asm["metal"]
            assert kernel.metadata.refits == ("with loops that are not unrolled",)
            assert kernel.metadata.num_warps == 1
    assert len(state.refused) == 1


def test_fewer_warps_where_loops_cannot_be_rolled(
    route: Route, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quirks, "understood", frozenset)
    with refusing("internal", when=lambda text, threads: threads > 64):
        launch_and_warn(route, "with num_warps=2 instead of 4: Apple's compiler failed on the ")


def test_a_new_problem_of_another_form() -> None:
    """Fewer warps are accepted by the pipeline, but the text must also be older."""
    route = Route("mps")
    from triton_metal.testing import compile_shader

    with refusing("threads", limit=64) as state:
        limit = compile_shader.refuse
        assert limit is not None

        def refuse(stage: str, name: str, text: str, threads: int) -> int | None:
            if stage == "library" and "max_total_threads_per_threadgroup(64)" in text:
                if "#pragma METAL" in text:
                    raise SyntaxError("program_source:4:1: error: unknown pragma")
            return limit(stage, name, text, threads)

        compile_shader.refuse = refuse
        words = "with num_warps=2 instead of 8 and as Metal 3.1 instead of 3.2"
        kernel = launch_and_warn(route, words, num_warps=8)
        compile_shader.refuse = limit
    assert state.kind == "threads"
    assert kernel.metadata.num_warps == 2


def test_what_was_tried_is_told() -> None:
    route = Route("mps")
    with refusing("pipeline"), pytest.raises(DeviceRefusal) as caught:
        route.launch(num_warps=4)
    assert caught.value.kind == "pipeline"
    for words in ("with num_warps=2 instead of 4", "num_warps=1 instead of 4", "as Metal 3.1"):
        assert words in str(caught.value)
    assert "which is refused too)" in str(caught.value)


def test_two_launchers_of_one_text_are_told_once(route: Route) -> None:
    """Another specialisation with the same text takes the known form, without a warning."""
    with refusing("threads", limit=64):
        launch_and_warn(route, "with num_warps=2 instead of 4")
        same = route.kernel
        same.launcher._kernels.clear()
        _native.configuration_changed()
        route.y[:] = -1
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            route.launch()
        assert route.is_right


def test_a_text_kernel_has_no_other_form() -> None:
    compiled = kernel_of().warmup(tl.float32, tl.float32, N, BLOCK)
    host = devices.get("host")
    kernel = host.compile(compiled.asm["metal"], compiled.metadata)
    x, y = np.ones(N, np.float32), np.zeros(N, np.float32)
    with contract_device("mps"), refusing("threads", limit=64), pytest.raises(DeviceRefusal):
        mps.launch(kernel, (2, 1, 1), [x, y], kernel.native.pack([x, y, N]))
    assert not y.any()


def test_slow_compilations_are_told(monkeypatch: pytest.MonkeyPatch, route: Route) -> None:
    monkeypatch.setattr(refit, "SLOW_SECONDS", 0.0)
    with pytest.warns(RefusalWarning, match=r"Apple's compiler took \d+ s for this kernel"):
        route.launch()
    assert route.is_right


# --- MLX is lazy ------------------------------------------------------------------------------------------


def call(kernel: Any, x: Any) -> Any:
    import mlx.core as mx

    return triton_metal.mlx.call(
        kernel, x, N, BLOCK=BLOCK, grid=(2,), outputs={"y_ptr": ((N,), mx.float32)}, num_warps=8
    )


def test_a_pipeline_is_tried_at_the_first_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    """MLX makes the pipeline when it schedules an output: the first launch is scheduled at once."""
    mx = pytest.importorskip("mlx.core")
    kernel, x = kernel_of(), mx.arange(N, dtype=mx.float32)
    async_eval, scheduled = mx.async_eval, []

    def schedule(results: Any) -> None:
        scheduled.append(1)
        if len(scheduled) == 1:
            raise ValueError(
                "Thread group size (256) is greater than  the maximum allowed threads per threadgroup (64)."
            )
        async_eval(results)

    monkeypatch.setattr(mx, "async_eval", schedule)
    with contract_device("mlx"):
        with pytest.warns(RefusalWarning, match="with num_warps=2 instead of 8"):
            y = call(kernel, x)
        assert len(scheduled) == 2
        # Later launches of the same kernel stay lazy.
        z = call(kernel, x)
        assert len(scheduled) == 2
    assert mx.array_equal(y, x * 2 + 1).item()
    assert mx.array_equal(z, y).item()


def test_functions_that_are_traced_stay_lazy(monkeypatch: pytest.MonkeyPatch) -> None:
    mx = pytest.importorskip("mlx.core")
    kernel, x = kernel_of(), mx.arange(N, dtype=mx.float32)
    with contract_device("mlx"):
        y = mx.compile(lambda x: call(kernel, x))(x)
        assert mx.array_equal(y, x * 2 + 1).item()

    def other(results: Any) -> None:
        raise ValueError("another problem")

    monkeypatch.setattr(mx, "async_eval", other)
    with contract_device("mlx"), pytest.raises(ValueError, match=r"^another problem$"):
        call(kernel_of(), x)


# --- What the GPU ends ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["watchdog", "hang", "timeout", "ignored", "memory"])
def test_mlx_reports_when_it_waits(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    mx = pytest.importorskip("mlx.core")

    def fail(*_: Any) -> None:
        raise metal_error(kind)

    device = devices.get("mlx")
    expected = {"hang": "watchdog", "timeout": "watchdog"}.get(kind, kind)
    y = mx.ones((4,))
    mx.eval(y)
    for wait in (triton_metal.mlx.synchronize, device.synchronize, lambda: device.wait_for(y)):
        with monkeypatch.context() as patch:
            patch.setattr(mx, "synchronize", fail)
            patch.setattr(mx, "eval", fail)
            with pytest.raises(DeviceRefusal) as caught:
                wait()
        assert caught.value.kind == expected
        assert caught.value.message.startswith("a launch: ")
        assert caught.value.message.endswith("what the launch was to write is not defined now")


def test_pytorch_reports_when_it_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Released versions do not; a version that does is understood."""
    torch = pytest.importorskip("torch")
    device = devices.get("mps")
    monkeypatch.setattr(device, "problem", lambda: None)

    def fail() -> None:
        raise metal_error("watchdog", "mps")

    monkeypatch.setattr(torch.mps, "synchronize", fail)
    with pytest.raises(DeviceRefusal) as caught:
        device.synchronize()
    assert caught.value.kind == "watchdog"
    assert caught.value.framework == "mps"


def test_a_launch_after_one_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    """MLX's stream stays in error: the next launch says so, and no other form is tried."""
    pytest.importorskip("mlx.core")
    from triton_metal.mlx import in_place

    route, launches = Route("mlx-in-place"), []

    def fail(kernel: Any, *_: Any) -> None:
        launches.append(kernel)
        raise DeviceError(
            f"an earlier launch failed, and this one was not started: scale: {metal_error('hang')}"
        )

    monkeypatch.setattr(in_place, "run", fail)
    with pytest.raises(DeviceRefusal) as caught:
        route.launch()
    assert len(launches) == 1
    assert caught.value.kind == "watchdog"
    assert "an earlier launch failed" in caught.value.said
    assert route.is_unchanged


def test_errors_of_kernels_are_left_alone(route: Route) -> None:
    with pytest.raises(triton_metal.CompileError, match="power of 2"):
        with contract_device(route.name):
            route.kernel[(1,)](route.x, route.y, N, BLOCK=1000)


def test_threads_that_launch_one_refused_kernel() -> None:
    """One thread finds the form, the others launch it or wait for it; all results are right."""
    from concurrent.futures import ThreadPoolExecutor

    route = Route("mps")
    with contract_device("mps"):
        compiled = route.kernel.warmup(tl.float32, tl.float32, N, BLOCK, num_warps=16)
    results = [np.full(N, -1.0, np.float32) for _ in range(16)]

    def launch(y: np.ndarray) -> None:
        words = compiled.native.pack([route.x, y, N])
        for _ in range(5):
            mps.launch(compiled, (2, 1, 1), [route.x, y], words)

    with (
        contract_device("mps"),
        refusing("threads", limit=64),
        pytest.warns(RefusalWarning) as told,
    ):
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(launch, results))
    assert len(told) == 1
    assert compiled.metadata.num_warps == 2
    assert all((y == route.x * 2 + 1).all() for y in results)
