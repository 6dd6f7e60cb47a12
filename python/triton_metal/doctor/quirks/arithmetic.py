"""Probes of defects around integers and floating point."""

from __future__ import annotations

from typing import Any

from .form import FAST, Buffer, Form, Probe, zeros

_MODULI = (6, 3, 5)


def remainder_of_quotient() -> Probe:
    """The remainder, by a constant, of an unsigned quotient by a power of two."""
    raw = "  uint i = thread_position_in_grid.x;\n" + "".join(
        f"  out[{n}u * 128u + i] = (i / 65536u) % {m}u;\n" for n, m in enumerate(_MODULI)
    )
    # The remainder comes first: 65536 times the modulus.
    ours = "  uint i = thread_position_in_grid.x;\n" + "".join(
        f"  out[{n}u * 128u + i] = i % {65536 * m}u / 65536u;\n" for n, m in enumerate(_MODULI)
    )
    return Probe(
        2,
        "(x / 65536) % 6 of unsigned numbers, also % 3 and % 5",
        "not 0 where 0 is due",
        "pytorch/pytorch#175481, #184392",
        (),
        (Buffer("out", "uint", zeros(384)),),
        lambda: {"out": [0] * 384},
        raw=Form(raw, pragmas=""),
        ours=Form(ours),
        groups=4,
    )


def wide_remainder_of_narrow_numbers() -> Probe:
    """The remainder of two 32-bit numbers that are computed with 64 bits."""
    divisors = (3, 1, 2, 5, 7, 10, 65537, 2147483649)
    raw = """\
  uint i = thread_position_in_grid.x;
  ulong constant_dividend = 4294967294ul;
  uint divisor = divisors[i];
  out[i] = uint(ulong(uint(constant_dividend)) % ulong(divisor));
  out[32u + i] = uint(ulong(dividends[i]) % ulong(divisor));
"""
    ours = """\
  uint i = thread_position_in_grid.x;
  uint divisor = divisors[i];
  out[i] = 4294967294u % divisor;
  out[32u + i] = dividends[i] % divisor;
"""

    def dividends() -> Any:
        import numpy as np

        return 4294967294 - np.arange(32, dtype=np.int64) * 3

    def expected() -> dict[str, Any]:
        import numpy as np

        d = np.array([divisors[i % 8] for i in range(32)])
        return {"out": np.concatenate([4294967294 % d, dividends() % d])}

    return Probe(
        3,
        "ulong(uint_a) % ulong(uint_b)",
        "4294967294 % 3 is 4294967295",
        "HigherOrderCO/Bend#824",
        (
            Buffer("dividends", "uint", dividends),
            Buffer("divisors", "uint", lambda: [divisors[i % 8] for i in range(32)]),
        ),
        (Buffer("out", "uint", zeros(64)),),
        expected,
        raw=Form(raw, pragmas=""),
        ours=Form(ours),
    )


def remainder_as_an_address() -> Probe:
    """A remainder that is computed by a multiplication, shifted to an address inside a branch."""
    raw = """\
  int number = numbers[thread_position_in_grid.x];
  long wide = long(number) + 1l;
  int other = int(wide - 5l * (((wide * 1717986919l) >> 33l) + (wide < 0l ? 1l : 0l)));
  int next = number + 1;
  int quotient = int((long(next) * 1717986919l) >> 33l) + (next < 0 ? 1 : 0);
  out[thread_position_in_grid.x] =
      other < 2 ? *(bytes + ((next - 5 * quotient) << 3)) : uchar(0);
"""
    ours = """\
  int number = numbers[thread_position_in_grid.x];
  int next = number + 1;
  int remainder = next - next / 5 * 5;
  out[thread_position_in_grid.x] = remainder < 2 ? bytes[remainder * 8] : uchar(0);
"""

    def numbers() -> Any:
        import numpy as np

        return np.arange(32) * 11 % 25

    def expected() -> dict[str, Any]:
        import numpy as np

        r = (numbers() + 1) % 5
        return {"out": np.where(r < 2, 100 + r * 8, 0)}

    return Probe(
        7,
        "x % 5 by multiply and shift, then << 3 as an address in a branch on another value",
        "the load gives 0",
        "tinygrad#14137, a public reduction of it",
        (
            Buffer("numbers", "int", numbers),
            Buffer("bytes", "uchar", lambda: [100 + i for i in range(40)]),
        ),
        (Buffer("out", "uchar", zeros(32)),),
        expected,
        raw=Form(raw, pragmas=""),
        ours=Form(ours),
    )


def fast_math() -> Probe:
    """A clamp of an infinite number, and a mask that is applied by multiplications."""
    body = """\
  uint i = thread_position_in_grid.x;
  half clamped = min(numbers[i], half(65504.0f));
  out[i] = float(clamped);
  float mask = i % 2u == 0u ? 1.0f : 0.0f;
  float a = 0.125f * float(i);
  out[32u + i] = a * mask + -1e10f * (1.0f - mask);
"""

    def numbers() -> Any:
        import numpy as np

        return np.where(np.arange(32) % 3 == 0, np.inf, np.arange(32))

    def expected() -> dict[str, Any]:
        import numpy as np

        i = np.arange(32)
        masked = np.where(i % 2 == 0, 0.125 * i, np.float32(-1e10))
        return {"out": np.concatenate([np.minimum(numbers(), 65504.0), masked])}

    return Probe(
        14,
        "fast math: min(x, 65504h), a * m + -1e10 * (1 - m)",
        "the clamp is removed; the sum is regrouped",
        "google/filament#7485, iree-org/iree#23914",
        (Buffer("numbers", "half", numbers),),
        (Buffer("out", "float", zeros(64)),),
        expected,
        raw=Form(body, pragmas=FAST),
        ours=Form(body),
    )


def fast_tanh() -> Probe:
    """The hyperbolic tangent of large numbers, where it is 1 to the last bit."""
    body = "  uint i = thread_position_in_grid.x;\n  out[i] = {name}::tanh(numbers[i]);\n"

    def numbers() -> Any:
        import numpy as np

        return 20.0 + 10.0 * np.arange(32)

    return Probe(
        15,
        "fast::tanh(x) of x > 45",
        "NaN",
        "apache/tvm#16438",
        (Buffer("numbers", "float", numbers),),
        (Buffer("out", "float", zeros(32)),),
        lambda: {"out": [1.0] * 32},
        raw=Form(body.replace("{name}", "fast"), pragmas=""),
        ours=Form(body.replace("{name}", "precise")),
    )


def signed_overflow() -> Probe:
    """Sums and remainders of signed numbers that leave C++'s defined range."""
    raw = """\
  uint i = thread_position_in_grid.x;
  int sum = a[i] + b[i];
  out[i] = sum;
  out[32u + i] = a[i] * b[i];
  out[64u + i] = (b[i] - 40) % 7;
"""
    ours = """\
  uint i = thread_position_in_grid.x;
  out[i] = uint(a[i]) + uint(b[i]);
  out[32u + i] = uint(a[i]) * uint(b[i]);
  int dividend = b[i] - 40;
  out[64u + i] = dividend - dividend / 7 * 7;
"""

    def a() -> Any:
        import numpy as np

        return 2147483647 - np.arange(32) * 5

    def b() -> Any:
        import numpy as np

        return np.arange(32) * 3

    def expected() -> dict[str, Any]:
        import numpy as np

        x, y = a().astype(np.int64), b().astype(np.int64)
        whole = np.concatenate([x + y, x * y, np.fmod(y - 40, 7)])
        return {"out": whole.astype(np.uint64).astype(np.uint32).view(np.int32)}

    return Probe(
        17,
        "signed overflow, and % of negative numbers",
        "undefined: any value, or branches are removed",
        "gfx-rs/wgpu#6959, #7012",
        (Buffer("a", "int", a), Buffer("b", "int", b)),
        (Buffer("out", "int", zeros(96)),),
        expected,
        raw=Form(raw, pragmas=""),
        ours=Form(ours),
    )
