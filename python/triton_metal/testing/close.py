"""Comparing arrays of any framework."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


def as_numpy(value: Any) -> Any:
    """A NumPy array with the values of an array, a tensor, a number or a list. Short floats become float32."""
    import numpy as np

    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        value = value.detach()
        if value.is_floating_point() and value.dtype.itemsize <= 2:
            value = value.float()
        return value.cpu().numpy()
    mx = sys.modules.get("mlx.core")
    if mx is not None and isinstance(value, mx.array):
        return np.array(value.astype(mx.float32) if value.dtype == mx.bfloat16 else value)
    if isinstance(value, (list, tuple)):
        return np.array([as_numpy(part) for part in value])
    array = np.asarray(value)
    if array.dtype.kind == "V" or (array.dtype.kind == "f" and array.dtype.itemsize <= 2):
        return array.astype(np.float32)
    return array


def _tolerance(given: Any, default: float, dtype: Any) -> float:
    if given is None:
        return default
    return float(given(dtype) if callable(given) else given)


def assert_close(
    x: Any,
    y: Any,
    atol: float | Callable[[Any], float] | None = None,
    rtol: float | Callable[[Any], float] | None = None,
    err_msg: str = "",
) -> None:
    """Raises AssertionError unless ``|x - y| <= atol + rtol * |y|`` holds for every element.

    ``x`` and ``y`` are arrays of NumPy, torch or MLX on any device, numbers, or lists of them, and of one shape unless one
    of them is a number. NaN is close to NaN in arrays, and to nothing as a number. ``atol`` is 0.01 and ``rtol`` is 0
    by default; each may be a function of ``x``'s dtype. ``err_msg`` stands in front of the message.

    >>> import numpy as np, triton_metal
    >>> triton_metal.testing.assert_close(np.ones(3), [1, 1, 1.005])
    >>> triton_metal.testing.assert_close(1.0, 1.5, err_msg="sum:")
    Traceback (most recent call last):
        ...
    AssertionError: sum: 1.0 is not close to 1.5 (atol=0.01, rtol=0.0)
    """
    import numpy as np

    first, second = as_numpy(x), as_numpy(y)
    kind = getattr(x, "dtype", first.dtype)
    absolute = _tolerance(atol, 1e-2, kind)
    relative = _tolerance(rtol, 0.0, kind)
    if first.size > 1 or second.size > 1:
        np.testing.assert_allclose(
            first, second, atol=absolute, rtol=relative, equal_nan=True, err_msg=err_msg
        )
    elif not np.allclose(first, second, atol=absolute, rtol=relative):
        message = f"{first} is not close to {second} (atol={absolute}, rtol={relative})"
        raise AssertionError(f"{err_msg} {message}".strip())
