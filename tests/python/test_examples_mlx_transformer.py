"""examples/mlx_transformer.py: its modules against MLX's own, that it learns, and that processes share a batch."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import signal
import socket
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import numpy as np
import pytest

mx = pytest.importorskip("mlx.core")
nn = pytest.importorskip("mlx.nn")
pytest.importorskip("sklearn")
pytest.importorskip("triton_metal.ops", reason="stock Triton has no such functions")
pytestmark = [
    pytest.mark.own_route,
    pytest.mark.own_check("MLX traces the launches, and launch_options needs values"),
]
from mlx.utils import tree_flatten  # noqa: E402
from triton_metal.testing import contract_device  # noqa: E402

import mlx_transformer  # noqa: E402
from mlx_transformer import Attention, RMSNorm, cross_entropy, train  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
FORMS = ["metal", "graph"]


class MLXAttention(nn.Module):
    """The example's attention with MLX's own function."""

    def __init__(self, ours: Attention) -> None:
        super().__init__()
        self.heads, self.inputs, self.output = ours.heads, ours.inputs, ours.output

    def __call__(self, x: Any) -> Any:
        batch, length, width = x.shape
        head = width // self.heads
        q, k, v = (
            self.inputs(x).reshape(batch, length, 3, self.heads, head).transpose(2, 0, 3, 1, 4)
        )
        out = mx.fast.scaled_dot_product_attention(q, k, v, scale=head**-0.5)
        return self.output(out.transpose(0, 2, 1, 3).reshape(batch, length, width))


def same_slopes(ours: Any, theirs: Any, x: Any, tolerance: float) -> None:
    """Compares the results of two modules, and the gradients by their parameters and by x."""
    theirs.update(ours.parameters())
    weight = mx.random.normal(x.shape)
    found = []
    for model in (ours, theirs):
        value, gradients = nn.value_and_grad(model, lambda x, m=model: (m(x) * weight).sum())(x)
        by_x = mx.grad(lambda x, m=model: (m(x) * weight).sum())(x)
        found.append({"value": value, "x": by_x, **dict(tree_flatten(gradients))})
    assert list(found[0]) == list(found[1])
    for name, one in found[0].items():
        other = np.array(found[1][name])
        atol = tolerance * max(1.0, np.abs(other).max())
        np.testing.assert_allclose(np.array(one), other, rtol=0, atol=atol, err_msg=name)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("width", [40, 64])
def test_norm_is_that_of_mlx(form: str, width: int) -> None:
    mx.random.seed(width)
    ours = RMSNorm(width, form)
    ours.weight = mx.random.normal((width,))
    same_slopes(ours, nn.RMSNorm(width), mx.random.normal((3, 7, width)), 1e-5)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("length", [8, 16, 50])
def test_attention_is_that_of_mlx(form: str, length: int) -> None:
    mx.random.seed(length)
    ours = Attention(32, 2, form)
    same_slopes(ours, MLXAttention(ours), mx.random.normal((2, length, 32)), 2e-5)


@pytest.mark.parametrize("form", FORMS)
def test_loss_is_that_of_mlx(form: str) -> None:
    mx.random.seed(0)
    logits, labels = 4 * mx.random.normal((50, 10)), mx.random.randint(0, 10, (50,))
    weight = mx.random.normal((50,))
    ours, theirs = (
        mx.value_and_grad(lambda x, f=f: (f(x) * weight).sum())(logits)
        for f in (
            lambda x: cross_entropy(x, labels, form),
            lambda x: nn.losses.cross_entropy(x, labels),
        )
    )
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(np.array(one), np.array(other), rtol=1e-5, atol=1e-5)


@functools.cache
def trained(form: str) -> tuple[list[float], float]:
    """The losses of six epochs, and the accuracy."""
    losses: list[float] = []
    _, accuracy = train(form, epochs=6, on_epoch=lambda _, loss: losses.append(loss))
    return losses, accuracy


@pytest.mark.parametrize("form", FORMS)
def test_it_learns(form: str) -> None:
    losses, accuracy = trained(form)
    assert accuracy >= 0.95
    assert losses[-1] < losses[0] / 10


def test_forms_have_the_same_losses() -> None:
    np.testing.assert_allclose(trained("metal")[0], trained("graph")[0], rtol=1e-3)


def test_the_route_of_a_mac_has_the_same_losses() -> None:
    found: list[list[float]] = [[], []]
    with contract_device("mlx"):
        train("metal", epochs=1, batch=128, on_epoch=lambda _, loss: found[0].append(loss))
    train("metal", epochs=1, batch=128, on_epoch=lambda _, loss: found[1].append(loss))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-5)


def free_ports(count: int) -> int:
    """The first of some ports in a row that nothing listens on."""
    for _ in range(100):
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            first = one.getsockname()[1]
        try:
            for port in range(first, first + count):
                with socket.socket() as one:
                    one.bind(("127.0.0.1", port))
        except (OSError, OverflowError):
            continue
        return first
    raise AssertionError("no ports in a row are free")


def losses_of(processes: int, form: str, batch: int, folder: Path) -> tuple[list[float], float]:
    """The losses of two epochs, and the accuracy, of so many processes that mlx.launch starts."""
    launcher = Path(sysconfig.get_path("scripts")) / "mlx.launch"
    assert launcher.exists(), "MLX's package brings mlx.launch"
    # MLX keeps what it compiles for the CPU in the temporary folder, and one process may load what another still writes.
    own_folder = 'export TMPDIR="$TMPDIR/$MLX_RANK" && mkdir "$TMPDIR" && exec "$@"'
    program = ["sh", "-c", own_folder, "sh"]
    program += [sys.executable, mlx_transformer.__file__, "--epochs=2", f"--batch={batch}"]
    command = [
        sys.executable, launcher, "-n", processes, "--backend=ring", "--starting-port", free_ports(processes), "--",
        *program, f"--form={form}",
    ]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "TMPDIR": str(folder)}
    with subprocess.Popen(
        [str(part) for part in command],
        env=environment,
        stdin=subprocess.PIPE,  # MLX's launcher reads it all the time
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as started:
        try:
            started.wait(timeout=200)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(started.pid, signal.SIGKILL)
        assert started.stdout is not None
        assert started.stderr is not None
        said, errors = started.stdout.read(), started.stderr.read()
    found = [float(loss) for loss in re.findall(r"epoch \d+: loss ([\d.]+)", said)]
    accuracy = re.search(r"([\d.]+)% of the held-out", said)
    assert len(found) == 2, said + errors
    assert accuracy is not None, said + errors
    return found, float(accuracy[1])


def test_two_processes_learn_as_one_with_a_batch_of_twice_the_size(tmp_path: Path) -> None:
    two, accuracy = losses_of(2, "metal", 64, tmp_path)
    one: list[float] = []
    _, expected = train("metal", epochs=2, batch=128, on_epoch=lambda _, loss: one.append(loss))
    np.testing.assert_allclose(two, one, rtol=1e-4)
    # Two of the 359 held-out images.
    assert abs(accuracy - 100 * expected) < 0.6
