"""Control flow and constants that Triton IR has and our own front end does not print."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import triton_metal as triton

HEAD = "module { tt.func public @k(%out: !tt.ptr<i32>, %n: i32, %m: i32) {"
HEAD += "".join(f" %c{i} = arith.constant {i} : i32" for i in (0, 1, 3, 10))
TAIL = " tt.store %out, %r : !tt.ptr<i32> tt.return } }"


def launch(text: str, *arguments: object, num_warps: int = 4) -> None:
    compiled = triton.compile_ttir(text, num_warps=num_warps)
    host = triton.devices.get("host")
    host.launch(host.compile(compiled.asm["metal"], compiled.metadata), (1,), list(arguments))


BLOCKS = """
  %r = scf.execute_region -> i32 {
    cf.br ^loop(%n : i32)
  ^loop(%i: i32):
    %more = arith.cmpi slt, %i, %c10 : i32
    cf.cond_br %more, ^step, ^end
  ^step:
    %x = arith.addi %i, %c3 : i32
    %special = arith.cmpi eq, %x, %m : i32
    cf.cond_br %special, ^early, ^loop(%x : i32)
  ^early:
    scf.yield %c1 : i32
  ^end:
    scf.yield %i : i32
  }
"""


def blocks(n: int, m: int) -> int:
    while n < 10:
        n += 3
        if n == m:
            return 1
    return n


# Two loops that share their bodies: each block is entered from outside.
IRREDUCIBLE = """
    %c = arith.cmpi slt, %n, %m : i32
    cf.cond_br %c, ^a(%n : i32), ^b(%m : i32)
  ^a(%x: i32):
    %x1 = arith.addi %x, %c1 : i32
    %ca = arith.cmpi slt, %x1, %m : i32
    cf.cond_br %ca, ^b(%x1 : i32), ^end(%x1 : i32)
  ^b(%y: i32):
    %y1 = arith.addi %y, %c3 : i32
    %cb = arith.cmpi sgt, %y1, %c10 : i32
    cf.cond_br %cb, ^end(%y1 : i32), ^a(%y1 : i32)
  ^end(%r: i32):
"""


def irreducible(n: int, m: int) -> int:
    at, value = ("a", n) if n < m else ("b", m)
    while True:
        if at == "a":
            value += 1
            if value >= m:
                return value
            at = "b"
        else:
            value += 3
            if value > 10:
                return value
            at = "a"


SWITCH = """
  %i = arith.index_cast %n : i32 to index
  %r = scf.index_switch %i -> i32
  case 2 { scf.yield %c10 : i32 }
  case 7 { %s = arith.addi %m, %c1 : i32  scf.yield %s : i32 }
  default { scf.yield %m : i32 }
"""


@pytest.mark.parametrize(
    ("body", "model"),
    [
        (BLOCKS, blocks),
        (IRREDUCIBLE, irreducible),
        (SWITCH, lambda n, m: {2: 10, 7: m + 1}.get(n, m)),
    ],
    ids=["blocks", "irreducible", "switch"],
)
def test_branches(body: str, model: Callable[[int, int], int]) -> None:
    for n in range(-3, 12):
        for m in (-2, 4, 7, 9, 11):
            out = np.zeros(1, np.int32)
            launch(HEAD + body + TAIL, out, n, m)
            assert out[0] == model(n, m), (n, m)


CONSTANTS = [
    ("i32", np.int32, [3, -5, 7, 11, 0, 0, 2**31 - 1, -(2**31)]),
    ("i32", np.int32, list(range(-40, 600, 10))),
    ("i8", np.int8, [0, 100, -56, 44, -112, -12, 88, -68]),
    ("i64", np.int64, [1 + 5 * 2**32 * i for i in range(16)]),
    ("i16", np.int16, [5]),
    ("i1", np.bool_, [True, False, False, True, True, True, False, False]),
    ("f32", np.float32, [0.0, -0.0, 1.5, np.inf, 1.5, np.nan, -3.25, 1e-40]),
    ("f16", np.float16, [1.0, 2.0, 1.0, 2.0, 0.5, -0.0, 0.5, -0.0]),
]


@pytest.mark.parametrize("num_warps", [1, 4])
@pytest.mark.parametrize("case", range(len(CONSTANTS)))
def test_constants_with_different_elements(case: int, num_warps: int) -> None:
    name, kind, values = CONSTANTS[case]
    array = np.array(values, kind)
    size, memory = len(values), name
    if name == "i1":
        texts = ["true" if value else "false" for value in values]
        memory = "i8"
    elif name.startswith("f"):
        bits = array.view(f"u{array.itemsize}")
        texts = [f"0x{value:0{2 * array.itemsize}X}" for value in bits]
    else:
        texts = [str(value) for value in values]
    wide = "" if memory == name else f"%w = arith.extui %c : tensor<{size}xi1> to tensor<{size}xi8>"
    text = f"""module {{ tt.func public @k(%out: !tt.ptr<{memory}>) {{
      %i = tt.make_range {{end = {size} : i32, start = 0 : i32}} : tensor<{size}xi32>
      %p = tt.splat %out : !tt.ptr<{memory}> -> tensor<{size}x!tt.ptr<{memory}>>
      %q = tt.addptr %p, %i : tensor<{size}x!tt.ptr<{memory}>>, tensor<{size}xi32>
      %c = arith.constant dense<[{", ".join(texts)}]> : tensor<{size}x{name}>
      {wide}
      tt.store %q, {"%w" if wide else "%c"} : tensor<{size}x!tt.ptr<{memory}>>
      tt.return }} }}"""
    out = np.full(size, 9, np.int8 if name == "i1" else kind)
    launch(text, out, num_warps=num_warps)
    np.testing.assert_array_equal(out.view(np.uint8), array.view(np.uint8))
