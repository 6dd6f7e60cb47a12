"""Bad input at launch: one clear error each, and nothing changed."""

from __future__ import annotations

import numpy as np
import pytest
import triton_metal as triton
import triton_metal.language as tl


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    tl.store(out + offs, tl.load(x + offs, mask=mask) + tl.load(y + offs, mask=mask), mask=mask)


@triton.jit
def typed(x, n: tl.int32, s: tl.float16, p: tl.pointer_type(tl.float32)):
    tl.store(p, tl.load(x) + n + s)


N = 100


@pytest.fixture
def arrays():
    x = np.arange(N, dtype=np.float32)
    return x, x.copy(), np.full(N, -7, np.float32)


def refused(launch, exception, *words, out=None):
    with pytest.raises(exception) as caught:
        launch()
    message = str(caught.value)
    assert isinstance(caught.value, triton.TritonMetalError)
    for word in words:
        assert word in message, message
    assert "\n" not in message
    if out is not None:
        assert (out == -7).all()


def test_missing_argument(arrays):
    x, y, out = arrays
    refused(lambda: add[(1,)](x, y, out), TypeError, "add", "argument n is missing", out=out)


def test_surplus_arguments(arrays):
    x, y, out = arrays
    refused(lambda: add[(1,)](x, y, out, N, 128, 3), TypeError, "takes 5", "6 were given", out=out)
    refused(lambda: add[(1,)](x, y, out, N, BLOCK=128, extra=1), TypeError, "no parameter extra")
    refused(lambda: add[(1,)](x, y, out, N, 128, BLOCK=128), TypeError, "BLOCK is given twice")


@pytest.mark.parametrize(
    ("grid", "exception", "words"),
    [
        ((-3,), ValueError, ["dimension 0 is -3", "from 0 to 2147483647"]),
        ((1, -1), ValueError, ["dimension 1 is -1"]),
        ((2**31,), ValueError, ["dimension 0 is 2147483648"]),
        ((2**70,), ValueError, ["dimension 0"]),
        ((2**16, 2**16), ValueError, ["more than 2147483647 programs"]),
        ((1.5,), TypeError, ["dimension 0 must be an integer, not 1.5"]),
        ((True,), TypeError, ["must be an integer"]),
        (("8",), TypeError, ["must be an integer, not '8'"]),
        ((), ValueError, ["1 to 3 dimensions"]),
        ((1, 1, 1, 1), ValueError, ["1 to 3 dimensions"]),
        ("abc", TypeError, ["tuple of 1 to 3 integers"]),
        (None, TypeError, ["tuple of 1 to 3 integers"]),
        (lambda meta: (-1,), ValueError, ["dimension 0 is -1"]),
        (lambda meta: "x", TypeError, ["tuple of 1 to 3 integers"]),
    ],
)
def test_grid(arrays, grid, exception, words):
    x, y, out = arrays
    refused(lambda: add[grid](x, y, out, N, BLOCK=128), exception, "grid", *words, out=out)


def test_read_only_array(arrays):
    x, y, out = arrays
    out.flags.writeable = False
    refused(
        lambda: add[(1,)](x, y, out, N, BLOCK=128), ValueError, "argument out", "read-only", out=out
    )
    # An array that is only read may be read-only.
    x.flags.writeable = False
    fresh = np.zeros(N, np.float32)
    add[(1,)](x, y, fresh, N, BLOCK=128)
    assert (fresh == x + y).all()


def test_byte_order(arrays):
    x, y, out = arrays
    swapped = x.astype(x.dtype.newbyteorder())
    refused(
        lambda: add[(1,)](swapped, y, out, N, BLOCK=128),
        ValueError,
        "argument x",
        "byte order",
        out=out,
    )


@pytest.mark.parametrize("dtype", ["longdouble", "complex64", "U3", "datetime64[s]"])
def test_dtype_that_kernels_do_not_have(arrays, dtype):
    _, y, out = arrays
    wrong = np.zeros(N, dtype)
    refused(
        lambda: add[(1,)](wrong, y, out, N, BLOCK=128), TypeError, "argument x", "float32", out=out
    )


@pytest.mark.parametrize("value", ["abc", [1.0, 2.0], object(), b"abcd", {"a": 1}])
def test_object_that_is_no_array(arrays, value):
    _, y, out = arrays
    refused(
        lambda: add[(1,)](value, y, out, N, BLOCK=128),
        TypeError,
        "argument x",
        "not an array",
        out=out,
    )


def test_misaligned_array(arrays):
    _, y, out = arrays
    raw = np.zeros(4 * N + 1, np.uint8)
    odd = raw[1:].view(np.float32)
    refused(
        lambda: add[(1,)](odd, y, out, N, BLOCK=128),
        ValueError,
        "argument x",
        "not aligned",
        out=out,
    )


def test_array_for_constexpr(arrays):
    x, y, out = arrays
    refused(lambda: add[(1,)](x, y, out, N, BLOCK=x), TypeError, "BLOCK", "constexpr", out=out)


def test_integers_that_fit_no_type(arrays):
    x, y, out = arrays
    for value in (2**64, -(2**63) - 1):
        refused(
            lambda: add[(1,)](x, y, out, value, BLOCK=128),
            ValueError,
            "argument n",
            "uint64",
            out=out,
        )


def test_annotated_parameters(arrays):
    x, _, out = arrays
    refused(lambda: typed[(1,)](x, 2**31, 1.0, out), ValueError, "argument n", "i32")
    refused(lambda: typed[(1,)](x, 1.5, 1.0, out), TypeError, "argument n", "integer")
    refused(lambda: typed[(1,)](x, 1, x, out), TypeError, "argument s", "number")
    refused(lambda: typed[(1,)](x, 1, 1.0, 3), TypeError, "argument p", "pointer")
    refused(lambda: typed[(1,)](x, 1, 1.0, out.astype(np.int32)), TypeError, "argument p", "*fp32")
    typed[(1,)](x, 2, 0.5, out)
    assert out[0] == 2.5


@pytest.mark.parametrize(
    ("options", "exception"),
    [
        ({"num_warps": 3}, ValueError),
        ({"num_warps": 64}, ValueError),
        ({"num_warps": "4"}, TypeError),
        ({"num_stages": 0}, ValueError),
        ({"num_stages": 2.0}, TypeError),
    ],
)
def test_options(arrays, options, exception):
    x, y, out = arrays
    name = next(iter(options))
    refused(lambda: add[(1,)](x, y, out, N, BLOCK=128, **options), exception, name, out=out)


def test_launch_options():
    for arguments, exception in [
        ({"check": "everything"}, ValueError),
        ({"schedule": -1}, ValueError),
        ({"schedule": "a"}, TypeError),
    ]:
        with pytest.raises(exception), triton.launch_options(**arguments):
            pass


def test_call_without_grid(arrays):
    x, y, out = arrays
    with pytest.raises(RuntimeError, match=r"launch it as add\[grid\]"):
        add(x, y, out, N, 128)


def test_language_outside_of_kernels():
    with pytest.raises(RuntimeError, match="jit"):
        tl.arange(0, 16)


def test_function_without_a_file():
    namespace = {"triton": triton, "tl": tl}
    exec("def f(x):\n    pass", namespace)
    kernel = triton.jit(namespace["f"])
    with pytest.raises(ValueError, match="file"):
        kernel[(1,)](np.zeros(1, np.float32))


def test_a_one_bit_annotation_takes_one_bit():
    @triton.jit
    def bit(x, v: tl.uint1):
        tl.store(x, v)

    x = np.zeros(1, np.int32)
    for value in (True, 1):
        x[0] = 0
        assert "%v: i1" in bit[(1,)](x, value).asm["ttir"]
        assert x[0] == 1
    with pytest.raises(ValueError, match="is 3, which does not fit its type i1"):
        bit[(1,)](x, 3)


@pytest.mark.parametrize("value", [3, None, "add", [add], len, add, print], ids=repr)
def test_what_is_no_function_of_python(value):
    if value is not None:  # jit(None) gives a decorator, as jit() does
        with pytest.raises(TypeError, match=r"^@jit takes a function defined with def, not "):
            triton.jit(value)
    with pytest.raises(TypeError, match=r"^@jit takes a function defined with def, not "):
        triton.jit(debug=True)(value)


def test_what_cannot_be_called_is_no_constexpr_function():
    with pytest.raises(TypeError, match=r"^@constexpr_function takes a function, not 3$"):
        triton.constexpr_function(3)
