"""What a launch gets that names no SIMD-groups or stages: the compiler's choice, the same on every route."""

import numpy as np
import pytest
import triton_metal as triton
import triton_metal.language as tl
from triton_metal import Config


@triton.jit
def row_sum_kernel(x, out, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + tl.program_id(0), tl.sum(tl.load(x + i), axis=0))


def launch(block: int, **options):
    x = np.arange(2 * block, dtype=np.float32) % 7
    out = np.zeros(2, np.float32)
    kernel = row_sum_kernel[(2,)](x, out, BLOCK=block, **options)
    assert np.array_equal(out, x.reshape(2, block).sum(axis=1))
    return kernel


def test_a_larger_block_gets_no_fewer_threads_and_small_ones_few():
    warps = [launch(block).metadata.num_warps for block in (32, 256, 1024, 16384)]
    assert warps == sorted(warps)
    assert warps[0] == 1
    assert warps[-1] >= 4


@pytest.mark.parametrize("given", [{}, {"num_warps": None}, {"num_stages": None}])
def test_none_names_nothing(given):
    first, second = launch(1024), launch(1024, **given)
    assert first.asm["metal"] == second.asm["metal"]
    assert second.metadata.choice.startswith(f"{second.metadata.num_warps} SIMD-groups")


def test_what_a_launch_names_is_kept():
    kernel = launch(1024, num_warps=16, num_stages=3)
    assert (kernel.metadata.num_warps, kernel.metadata.threads) == (16, 512)
    assert kernel.metadata.num_stages == 3
    assert not hasattr(kernel.metadata, "choice")


def test_named_as_it_was_chosen_it_is_the_same_text():
    chosen = launch(4096)
    metadata = chosen.metadata
    named = triton.compile_ttir(
        chosen.asm["ttir"], num_warps=metadata.num_warps, num_stages=metadata.num_stages
    )
    assert named.asm["metal"] == chosen.asm["metal"]
    again = triton.compile_ttir(chosen.asm["ttir"])
    assert again.asm["metal"] == chosen.asm["metal"]
    assert again.metadata["choice"] == metadata.choice
    assert "ttm.num_simdgroups = " + str(metadata.num_warps) in chosen.asm["ttm"]


def test_a_configuration_without_warps_names_none():
    config = Config({"BLOCK": 1024})
    assert (config.num_warps, config.num_stages) == (4, 3)
    assert "num_warps" not in config.all_kwargs()
    config.num_warps = 8
    assert config.all_kwargs()["num_warps"] == 8
    tuned = triton.autotune([Config({"BLOCK": 1024})], [])(row_sum_kernel)
    x, out = np.ones(1024, np.float32), np.zeros(1, np.float32)
    kernel = tuned[(1,)](x, out)
    assert kernel.metadata.num_warps == launch(1024).metadata.num_warps
    assert out[0] == 1024
