"""triton.tools: linear layouts, numbers of the microscaling formats, and what has no counterpart on Metal."""

from __future__ import annotations

import itertools
import random

import pytest
from triton_metal.tools import LinearLayout, disasm

torch = pytest.importorskip("torch")


def some_layout(number: int) -> LinearLayout:
    draw = random.Random(number)

    def one() -> LinearLayout:
        size, names = 1 << draw.randrange(4), (draw.choice("abc"), draw.choice("xyz"))
        return draw.choice(
            [
                LinearLayout.identity_1d(size, *names),
                LinearLayout.strided_1d(size, 1 << draw.randrange(3), *names),
                LinearLayout.zeros_1d(size, *names, 1 << draw.randrange(3)),
            ]
        )

    layout = one()
    for _ in range(draw.randrange(3)):
        layout = layout * one()
    return layout


def points(layout: LinearLayout) -> list[dict[str, int]]:
    sizes = {name: range(1 << len(bases)) for name, bases in layout.bases}
    return [dict(zip(sizes, values, strict=True)) for values in itertools.product(*sizes.values())]


@pytest.mark.parametrize("number", range(60))
def test_a_layout_is_its_map(number: int) -> None:
    layout = some_layout(number)
    images = [tuple(layout.apply(point).values()) for point in points(layout)]
    total = 1
    for _, size in layout.out_dims:
        total *= size
    assert layout.is_injective() == (len(set(images)) == len(images))
    assert layout.is_surjective() == (len(set(images)) == total)
    copy = LinearLayout.from_bases(
        layout.bases,
        layout.get_out_dim_names(),
        [size for _, size in layout.out_dims],
        require_surjective=False,
    )
    assert copy == layout
    if layout.is_invertible():
        back = layout.invert()
        assert all(back.apply(layout.apply(point)) == point for point in points(layout))
        assert layout.compose(back).get_matrix_view() == [
            [int(row == column) for column in range(len(layout.get_matrix_view()))]
            for row in range(len(layout.get_matrix_view()))
        ]
    elif layout.is_surjective():
        back = layout.pseudoinvert()
        assert all(layout.apply(back.apply(out)) == out for out in points(back))


def test_the_inputs_of_another_layout_that_give_the_same() -> None:
    first = LinearLayout.identity_1d(8, "lane", "x") * LinearLayout.identity_1d(4, "warp", "x")
    second = LinearLayout.identity_1d(4, "warp", "x") * LinearLayout.identity_1d(8, "lane", "x")
    found = first.invert_and_compose(second)
    for point in points(first):
        assert second.apply(found.apply(point)) == first.apply(point)
    assert str(LinearLayout.strided_1d(4, 2, "i", "o")).splitlines() == [
        "- i=1 -> (2)",
        "  i=2 -> (4)",
        "where out dims are: [o (size 8)]",
    ]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LinearLayout.identity_1d(3, "a", "b"), "must be a power of two"),
        (lambda: LinearLayout.from_bases([("a", [[1], [1]])], ["b"], [4]), "does not reach all"),
        (lambda: LinearLayout({"a": [[4]]}, {"b": 4}), "not within the outputs"),
        (lambda: LinearLayout.zeros_1d(2, "a", "b").invert(), "has no inverse"),
        (lambda: LinearLayout.identity_1d(2, "a", "b").apply({"c": 1}), r"the inputs are \['a'\]"),
    ],
)
def test_what_is_no_layout_is_refused(make: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()  # type: ignore[operator]


def test_numbers_in_e2m1_are_rounded_to_the_nearest() -> None:
    from triton_metal.tools.mxfp import MXFP4Tensor

    table = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6])
    values = torch.cat([torch.randn(500) * 3, (table[1:] + table[:-1]) / 2, torch.tensor([1e9])])
    values = torch.cat([values, -values, torch.tensor([float("nan"), float("inf")])])
    found = MXFP4Tensor(data=values)
    decoded = found.to(torch.float32)
    best = (values.abs().nan_to_num(9, 9)[:, None] - table).abs().min(1).values
    assert torch.equal((decoded.abs() - values.abs().nan_to_num(9, 9)).abs(), best)
    ties = torch.tensor([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0])
    assert MXFP4Tensor(data=ties).to(torch.float32).tolist() == [0, 1, 1, 2, 2, 4, 4]
    for dim, shape in ((0, (5, 6)), (1, (5, 7)), (2, (2, 3, 4))):
        codes = MXFP4Tensor(size=shape).random()
        packed = codes.to_packed_tensor(dim)
        assert packed.shape[dim] == (shape[dim] + 1) // 2
        assert torch.equal(codes.unpack_packed_tensor(packed, dim, shape), codes.data)


def test_scales_are_powers_of_two() -> None:
    from triton_metal.tools.mxfp import MXScaleTensor, fp8e8m0_to_float32

    powers = 2.0 ** torch.arange(-126, 128)
    scale = MXScaleTensor(data=torch.cat([powers, powers[:-1] * 1.9]))
    assert torch.equal(scale.to(torch.float32), torch.cat([powers, powers[:-1]]))
    wrong = MXScaleTensor(data=torch.tensor([0.0, -1.0, float("inf"), float("nan")]))
    assert wrong.data.tolist() == [255] * 4
    assert torch.isnan(fp8e8m0_to_float32(wrong.data)).all()
    drawn = MXScaleTensor(size=(1000,)).random(0.5, 8.0).to(torch.float32)
    assert (drawn.min(), drawn.max()) == (0.5, 8.0)
    with pytest.raises(AssertionError, match=r"low is 8\.0"):
        MXScaleTensor(size=3).random(8.0, 0.5)


def test_machine_code_of_other_vendors_is_refused() -> None:
    with pytest.raises(RuntimeError, match="Metal text"):
        disasm.get_sass(b"")
