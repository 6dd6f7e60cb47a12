"""Signals and interpreters while the compiled part is loaded."""

from __future__ import annotations

import signal

import pytest
from triton_metal.interrupts import deferred

from kernel_support import ON_STOCK
from process_support import run_program

pytestmark = [
    pytest.mark.own_route,
    pytest.mark.skipif(ON_STOCK, reason="the compiled part is of this package"),
]

INTERRUPTED = """
import importlib.machinery, signal
create = importlib.machinery.ExtensionFileLoader.create_module
signal.signal(signal.SIGINT, signal.default_int_handler)

def interrupted(self, spec):
    module = create(self, spec)
    if spec.name == "triton_metal._native":
        signal.raise_signal(signal.SIGINT)
    return module

importlib.machinery.ExtensionFileLoader.create_module = interrupted
try:
    import triton_metal
except KeyboardInterrupt:
    print("interrupted")
import triton_metal
print(triton_metal.__name__)
"""


def test_an_interrupt_while_the_library_loads_comes_behind_it() -> None:
    done = run_program("-c", INTERRUPTED)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == ["interrupted", "triton_metal"]


def raise_inside() -> None:
    with deferred():
        signal.raise_signal(signal.SIGUSR1)
        raise KeyError("inside")


def test_deferred_signals_reach_their_own_functions() -> None:
    seen: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, frame: seen.append(number))
    try:
        with deferred():
            signal.raise_signal(signal.SIGUSR1)
            signal.raise_signal(signal.SIGUSR1)
            assert seen == []
        assert seen == [signal.SIGUSR1] * 2
        with pytest.raises(KeyError, match="inside"):
            raise_inside()
        assert len(seen) == 3
    finally:
        signal.signal(signal.SIGUSR1, before)


SUBINTERPRETER = """
import importlib
for name in ("_interpreters", "_xxsubinterpreters"):
    try:
        interpreters = importlib.import_module(name)
        break
    except ImportError:
        pass
else:
    raise SystemExit("no subinterpreters")
text = '''
try:
    import triton_metal
except ImportError as error:
    print("ImportError")
'''
try:
    interpreters.run_string(interpreters.create(), text)
except Exception as error:
    print(type(error).__name__)
import triton_metal
print(triton_metal.__name__)
"""


def test_a_subinterpreter_has_an_error_and_the_process_goes_on() -> None:
    done = run_program("-c", SUBINTERPRETER)
    if done.stderr.strip() == "no subinterpreters":
        pytest.skip("this Python has none")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["ImportError", "triton_metal"]
