"""What programs do with tuned kernels: change them, derive from them, listen to them, and launch them in threads."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
import triton_metal as triton
import triton_metal.language as tl
from triton_metal import Config

from autotune_support import Bench, arrays, blocks, grid, increment_kernel, scale_kernel
from kernel_support import torch_or_skip

pytestmark = pytest.mark.own_check  # a search runs launches with counters, or not at all


def test_a_program_may_change_the_cache() -> None:
    bench = Bench(*range(20))
    kernel = triton.autotune(blocks(32, 64), ["n"], do_bench=bench)(scale_kernel)
    x, out = arrays(100)
    assert kernel[grid](x, out, 100, 2.0).constants["BLOCK"] == 32
    [key] = kernel.cache
    kernel.cache[key] = kernel.configs[1]
    assert kernel[grid](x, out, 100, 2.0).constants["BLOCK"] == 64
    assert kernel.best_config is kernel.configs[1]
    kernel.cache = {key: kernel.configs[0]}
    assert kernel[grid](x, out, 100, 2.0).constants["BLOCK"] == 32
    kernel.cache.clear()
    kernel[grid](x, out, 100, 2.0)
    assert len(bench.quantiles) == 4


def test_warmup_compiles_every_configuration_and_launches_none() -> None:
    kernel = triton.autotune(blocks(32, 64), ["n"])(scale_kernel)
    x, out = arrays(100)
    compiled = kernel.warmup(x, out, 100, 2.0, grid=(1,))
    assert [k.constants["BLOCK"] for k in compiled] == [32, 64]
    assert not out.any()
    assert kernel.cache == {}
    assert kernel.run(x, out, 100, 2.0, grid=(1,), warmup=True)[1].constants["BLOCK"] == 64


def test_a_listener_hears_of_each_search(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[dict[str, Any]] = []
    monkeypatch.setattr(triton.knobs.autotuning, "listener", lambda **event: heard.append(event))
    kernel = triton.autotune(blocks(32, 64), ["n"], do_bench=Bench(2, 1))(scale_kernel)
    for _ in range(2):
        kernel[grid](*arrays(100), 100, 2.0)
    [event] = heard
    assert event["fn"] is scale_kernel
    assert event["key"] == (100, "float32", "float32")
    assert event["best_config"] is kernel.configs[1]
    assert list(event["configs_timings"].values()) == [2, 1]
    assert event["duration"] == kernel.bench_time
    assert event["cache_hit"] is False


def test_a_search_prints_what_it_does_if_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRITON_PRINT_AUTOTUNING", "1")
    kernel = triton.autotune(blocks(32, 64), ["n"], do_bench=Bench(2, 1))(scale_kernel)
    kernel[grid](*arrays(100), 100, 2.0)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert lines[2].endswith(f"measured all 2 by do_bench, best config: {blocks(64)[0]}")


def test_a_class_of_the_programs_own_around_a_kernel_launches_once() -> None:
    class Wrapper(triton.runtime.KernelInterface):
        """Ignores whether it is to compile only, as classes of packages do."""

        def __init__(self, fn: Any) -> None:
            self.fn, self.arg_names, self.launches = fn, fn.arg_names, 0

        def run(self, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
            self.launches += 1
            return self.fn[grid](*args, **kwargs)

    wrapper = Wrapper(increment_kernel)
    kernel = triton.autotune(blocks(32, 64), ["n"])(wrapper)
    x = np.zeros(100, np.float32)
    kernel[grid](x, 100)
    assert wrapper.launches == 3
    assert x.tolist() == [1.0] * 100  # what the search changed is undone
    kernel[grid](x, 100)
    assert wrapper.launches == 4
    outer = triton.heuristics({"num_warps": lambda arguments: 2})(wrapper)
    assert outer[grid](x, 100, BLOCK=32).metadata.num_warps == 2


def test_subclasses_measure_launch_and_remember_in_their_own_way() -> None:
    class Rounded(dict[Any, Any]):
        """Keys with numbers up to the next power of two."""

        def __getitem__(self, key: Any) -> Any:
            return super().__getitem__(self.rounded(key))

        def __setitem__(self, key: Any, value: Any) -> None:
            super().__setitem__(self.rounded(key), value)

        def get(self, key: Any, default: Any = None) -> Any:
            return super().get(self.rounded(key), default)

        @staticmethod
        def rounded(key: Any) -> Any:
            return (triton.next_power_of_2(key[0]), *key[1:])

    class Own(triton.runtime.Autotuner):
        runs = 0

        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            self.cache = Rounded()

        def run(self, *args: Any, **kwargs: Any) -> Any:
            self.runs += 1
            return super().run(*args, **kwargs)

        def _bench(self, *args: Any, config: Config, **meta: Any) -> Any:
            timing = super()._bench(*args, config=config, **meta)
            assert len(timing) == 3
            return [-config.kwargs["BLOCK"]]

    kernel = Own(scale_kernel, scale_kernel.arg_names, blocks(32, 64), ["n"], None, None)
    for n in (100, 120, 100, 130):
        x, out = arrays(n)
        kernel[grid](x, out, n, 2.0)
        assert (out == 2 * x).all()
    assert kernel.best_config.kwargs["BLOCK"] == 64
    assert kernel.runs == 4
    assert len(kernel.cache) == len(kernel.results) == 2
    assert isinstance(kernel.cache, Rounded)


def test_every_launch_goes_through_the_run_of_a_subclass() -> None:
    class Own(triton.runtime.Autotuner):
        keys_seen: tuple[Any, ...] = ()

        def run(self, *args: Any, **kwargs: Any) -> Any:
            # As packages compute the key.
            given = {**dict(zip(self.arg_names, args, strict=False)), **kwargs}
            given = {name: value for name, value in given.items() if name in self.arg_names}
            key = [given[name] for name in self.keys if name in given]
            key += [str(value.dtype) for value in given.values() if hasattr(value, "dtype")]
            self.keys_seen += (tuple(key),)
            self.cache.setdefault(tuple(key), self.configs[1])
            return super().run(*args, **kwargs)

    kernel = Own(scale_kernel, scale_kernel.arg_names, blocks(32, 64), ["n"], None, None)
    x, out = np.ones(100, np.float16), np.zeros(100, np.float32)
    for _ in range(3):
        assert kernel[grid](x, out, 100, 2.0).constants["BLOCK"] == 64
        assert kernel[grid](factor=2.0, n=100, out_ptr=out, x_ptr=x).constants["BLOCK"] == 64
    kernel.cache[kernel.keys_seen[0]] = kernel.configs[0]
    assert kernel[grid](x, out, 100, 2.0).constants["BLOCK"] == 32
    assert len(kernel.keys_seen) == 7
    assert set(kernel.keys_seen) == set(kernel.cache)
    assert not kernel.results


def test_an_interrupt_leaves_arrays_as_they_were() -> None:
    class Interrupted(triton.runtime.KernelInterface):
        def __init__(self, fn: Any) -> None:
            self.fn, self.arg_names, self.launches = fn, fn.arg_names, 0

        def run(self, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
            self.launches += 1
            result = self.fn[grid](*args, **kwargs)
            if self.launches == 2:
                raise KeyboardInterrupt
            return result

    wrapper = Interrupted(increment_kernel)
    kernel = triton.autotune(blocks(32, 64, 128), ["n"], restore_value=["x_ptr"])(wrapper)
    x = np.zeros(100, np.float32)
    with pytest.raises(KeyboardInterrupt):
        kernel[grid](x, 100)
    assert not x.any()
    assert kernel.cache == {}
    assert kernel.nargs is None
    kernel[grid](x, 100)
    assert x.tolist() == [1.0] * 100


def test_do_bench_can_be_replaced() -> None:
    kernel = triton.autotune(blocks(32, 64), ["n"])(scale_kernel)
    assert kernel.do_bench is triton.testing.do_bench
    kernel.do_bench = Bench(2, 1)
    kernel[grid](*arrays(100), 100, 2.0)
    assert list(kernel.configs_timings.values()) == [2, 1]


def test_threads_share_one_search() -> None:
    launches = []

    def bench(call: Any, quantiles: Any) -> float:
        call()
        launches.append(threading.get_ident())
        return float(len(launches))

    kernel = triton.autotune(blocks(32, 64, 128), ["n"], do_bench=bench)(scale_kernel)
    results = []
    barrier = threading.Barrier(8)

    def work(i: int) -> None:
        n = 100 + i % 2
        barrier.wait()
        for _ in range(20):
            x, out = arrays(n)
            kernel[grid](x, out, n, float(i))
            results.append(bool((out == i * x).all()))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 160
    assert len(launches) == 6
    assert len(kernel.cache) == 2


def test_configurations_compare_print_and_travel() -> None:
    import pickle

    one = Config({"A": 1, "B": 2}, num_warps=8, maxnreg=64)
    assert one == Config({"A": 1, "B": 2}, num_warps=8, maxnreg=64)
    assert hash(one) == hash(Config({"A": 1, "B": 2}, num_warps=8, maxnreg=64))
    assert one != Config({"A": 1, "B": 2}, num_warps=4, maxnreg=64)
    assert one != Config({"A": 1, "B": 2}, num_warps=8, maxnreg=64, pre_hook=print)
    assert one != "A: 1"
    assert one.all_kwargs() == {
        "A": 1,
        "B": 2,
        "num_warps": 8,
        "num_ctas": 1,
        "maxnreg": 64,
    }
    assert str(one) == "A: 1, B: 2, num_warps: 8, num_ctas: 1, num_stages: None, maxnreg: 64"
    assert pickle.loads(pickle.dumps(one)) == one


def test_a_torch_program_tunes_as_it_does_with_triton() -> None:
    torch = torch_or_skip()
    kernel = triton.autotune(blocks(32, 256), ["n"])(scale_kernel)
    x = torch.randn(1000)
    out = torch.empty_like(x)
    kernel[grid](x, out, x.numel(), 2.0)
    torch.testing.assert_close(out, 2 * x)
    assert list(kernel.cache) == [(1000, "torch.float32", "torch.float32")]
    kernel[grid](x.half(), out, x.numel(), 2.0)
    assert len(kernel.cache) == 2


def test_tensor_descriptors_are_in_the_key_by_their_dtype() -> None:
    @triton.jit
    def copy_kernel(source, target, ROWS: tl.constexpr):
        at = [tl.program_id(0) * ROWS, 0]
        target.store(at, source.load(at))

    def shape_blocks(arguments: dict[str, Any]) -> None:
        for name in ("source", "target"):
            arguments[name].block_shape = [arguments["ROWS"], 16]

    from triton_metal.tools.tensor_descriptor import TensorDescriptor

    configs = [Config({"ROWS": r}, pre_hook=shape_blocks) for r in (8, 16)]
    kernel = triton.autotune(configs, [], do_bench=Bench(2, 1))(copy_kernel)
    x = np.arange(32 * 16).reshape(32, 16).astype(np.float32)
    out = np.zeros_like(x)
    descriptors = [TensorDescriptor.from_tensor(a, [8, 16]) for a in (x, out)]
    kernel[lambda meta: (32 // meta["ROWS"],)](*descriptors)
    assert (out == x).all()
    assert list(kernel.cache) == [("float32", "float32")]
    assert kernel.best_config is configs[1]
