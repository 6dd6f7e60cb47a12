"""Running one form of a probe on one route. The worker process calls this."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from ... import refusals
from .form import KERNEL, Form, Probe, Question, head_of, text_of

if TYPE_CHECKING:
    import numpy as np

#: The routes, with their names in the table.
ROUTES = {
    "mps": "PyTorch",
    "mlx": "MLX, mx.fast.metal_kernel",
    "mlx-in-place": "MLX in place",
    "host": "host device",
}

#: A header of a later system.
MISSING = re.compile(r"'([^']+)' file not found")

#: A defect may show in some launches only.
LAUNCHES = 3

Outputs = dict[str, "np.ndarray"]
Launch = Callable[[], Outputs]


class NotPossible(Exception):
    """A form that a route cannot run, with the reason."""


class DoesNotCompile(Exception):
    """A text that the compiler refuses, with its words."""


def prepare(route: str) -> None:
    """Imports what a route needs, before the clock runs."""
    import numpy as np  # noqa: F401

    if route == "mps":
        from ... import mps

        mps.compile_shader()
        if mps._compile_shader is None:
            import torch

            torch.zeros(1, device="mps")
    elif route == "mlx":
        from ...mlx import functional

        functional.metal_kernel()
    elif route == "mlx-in-place":
        from ...mlx import in_place

        in_place.native()
    else:
        from ... import _native  # noqa: F401


def on_host(item: Probe | Question, form: Form) -> Launch:
    """On the host device."""
    from ... import _native

    try:
        library = _native.MetalLibrary(text_of(item, form))
    except ValueError as error:
        raise DoesNotCompile(str(error)) from None

    def launch() -> Outputs:
        inputs = [buffer.array() for buffer in item.inputs]
        outputs = {buffer.name: buffer.array() for buffer in item.outputs}
        bound = [(a.ctypes.data, a.nbytes, False) for a in inputs]
        bound += [(a.ctypes.data, a.nbytes, True) for a in outputs.values()]
        library.dispatch(KERNEL, bound, (item.groups * item.threads, 1, 1), (item.threads, 1, 1))
        return outputs

    return launch


def on_mps(item: Probe | Question, form: Form) -> Launch:
    """With ``torch.mps.compile_shader``."""
    from ... import mps

    library = mps.compile_shader()(text_of(item, form))
    kernel = getattr(library, KERNEL)
    limit = kernel.max_threads_per_threadgroup
    if limit < item.threads:
        raise NotPossible(f"the pipeline takes {limit} threads, and the probe has {item.threads}")
    is_stand_in = mps._compile_shader is not None

    def launch() -> Outputs:
        arrays = [buffer.array() for buffer in (*item.inputs, *item.outputs)]
        bound: list[Any] = arrays
        if not is_stand_in:
            import torch

            # The kernel sees bytes; torch has few unsigned types.
            bound = [torch.from_numpy(array.view("int8")).to("mps") for array in arrays]
        kernel(*bound, threads=(item.groups * item.threads, 1, 1), group_size=(item.threads, 1, 1))
        if not is_stand_in:
            torch.mps.synchronize()
            arrays = [
                tensor.cpu().numpy().view(array.dtype)
                for tensor, array in zip(bound, arrays, strict=True)
            ]
        names = [buffer.name for buffer in item.outputs]
        return dict(zip(names, arrays[len(item.inputs) :], strict=True))

    return launch


def on_mlx(item: Probe | Question, form: Form) -> Launch:
    """With ``mx.fast.metal_kernel``, which writes the signature."""
    import mlx.core as mx
    import numpy as np

    from ...mlx import functional

    if form.has_own_signature:
        raise NotPossible("MLX writes the signature, and the construct is in it")
    if any(buffer.array().any() for buffer in item.outputs):
        raise NotPossible("an output of MLX's kernels has no content before the launch")
    head = head_of(form)
    digest = hashlib.sha256((head + form.body).encode()).hexdigest()[:12]
    kernel = functional.metal_kernel()(
        name=f"{KERNEL}_{digest}",
        input_names=[buffer.name for buffer in item.inputs],
        output_names=[buffer.name for buffer in item.outputs],
        source="\n" + form.body,
        header=head,
    )

    def launch() -> Outputs:
        contents = [buffer.array() for buffer in item.outputs]
        results = kernel(
            inputs=[mx.array(buffer.array()) for buffer in item.inputs],
            output_shapes=[array.shape for array in contents],
            output_dtypes=[getattr(mx, str(array.dtype)) for array in contents],
            grid=(item.groups * item.threads, 1, 1),
            threadgroup=(item.threads, 1, 1),
            init_value=0,
        )
        mx.eval(results)
        mx.synchronize()
        names = [buffer.name for buffer in item.outputs]
        return {name: np.array(result) for name, result in zip(names, results, strict=True)}

    return launch


def on_mlx_in_place(item: Probe | Question, form: Form) -> Launch:
    """As launches on MLX arrays run: with the whole text."""
    import mlx.core as mx
    import numpy as np

    from ... import _native
    from ...mlx import in_place

    buffers = [*item.inputs, *item.outputs]
    arguments = [
        {
            "name": buffer.name,
            "kind": "buffer",
            "slot": slot,
            "reads": True,
            "writes": slot >= len(item.inputs),
        }
        for slot, buffer in enumerate(buffers)
    ]
    contract = {"name": KERNEL, "threads": item.threads, "args": arguments, "scalar_buffer": -1}
    native = _native.Kernel(text_of(item, form), json.dumps(contract))
    kernel = SimpleNamespace(name=KERNEL, native=native)

    def launch() -> Outputs:
        arrays = [mx.array(buffer.array()) for buffer in buffers]
        mx.eval(arrays)
        in_place.native().launch(kernel, (item.groups, 1, 1), arrays, b"")
        outputs = arrays[len(item.inputs) :]
        mx.eval(outputs)
        in_place.synchronize()
        names = [buffer.name for buffer in item.outputs]
        return {name: np.array(array) for name, array in zip(names, outputs, strict=True)}

    return launch


#: What compiles a form on each route, and gives a function that launches it on new buffers.
COMPILE: dict[str, Callable[[Probe | Question, Form], Launch]] = {
    "host": on_host,
    "mps": on_mps,
    "mlx": on_mlx,
    "mlx-in-place": on_mlx_in_place,
}


def examine(route: str, item: Probe | Question, which: str) -> dict[str, Any]:
    """Runs a form and says what came of it, as a state and words."""
    form = item.form(which)
    if form is None:
        return {"state": "not possible", "says": "there is no such form"}
    try:
        launch = COMPILE[route](item, form)
        if isinstance(item, Question):
            return {"state": "answer", "says": item.answer(launch())}
        expected = item.expected()
        times = []
        for _ in range(LAUNCHES):
            start = time.perf_counter()
            outputs = launch()
            times.append(time.perf_counter() - start)
            wrong = difference(outputs, expected)
            if wrong is not None:
                return {"state": "wrong", "says": f"wrong: {wrong}"}
        return {"state": "right", "says": "right", "ms": min(times) * 1e3}
    except NotPossible as error:
        return {"state": "not possible", "says": f"not possible here: {error}"}
    except DoesNotCompile as error:
        if (missing := MISSING.search(str(error))) is not None:
            return {"state": "not applicable", "says": f"not applicable: no {missing[1]} here"}
        return {"state": "does not compile", "says": f"does not compile: {first_error(str(error))}"}
    except Exception as error:
        return refused(error, route)


def refused(error: Exception, route: str) -> dict[str, Any]:
    """A framework's or the host device's exception as a state and words."""
    framework = {"mps": "mps", "host": "host"}.get(route, "mlx")
    message = str(error)
    found = refusals.recognise(error, framework)
    if (missing := MISSING.search(message)) is not None:
        return {"state": "not applicable", "says": f"not applicable: no {missing[1]} here"}
    if found is not None and found.kind.name in ("text", "language"):
        return {"state": "does not compile", "says": f"does not compile: {found.summary()}"}
    if "error:" in message and "kernel.metal:" in message:
        return {"state": "does not compile", "says": f"does not compile: {first_error(message)}"}
    if found is not None:
        return {"state": "refused", "says": f"refused: {found.summary()}"}
    first = message.strip().splitlines()[0] if message.strip() else ""
    return {"state": "refused", "says": f"{type(error).__name__}: {first}"}


def first_error(message: str) -> str:
    """The first error of a compiler's diagnostics."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    return next((line for line in lines if "error:" in line), lines[0] if lines else "")


def difference(outputs: Outputs, expected: Mapping[str, Any]) -> str | None:
    """The first element that is wrong, in words: "3723 for 2379 at out[0], 1 of 2"; None if all are right."""
    import numpy as np

    for name, values in expected.items():
        found = outputs[name].reshape(-1)
        wanted = np.asarray(values).reshape(-1).astype(found.dtype)
        # -0 is 0 here, and NaN is never expected.
        bad = np.flatnonzero(~(found == wanted))
        if bad.size:
            place = int(bad[0])
            return (
                f"{found[place]} for {wanted[place]} at {name}[{place}], {bad.size} of {found.size}"
            )
    return None
