"""Linear layouts: maps from the bits of some indices to the bits of others, linear over GF(2)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_Bases = Mapping[str, Sequence[Sequence[int]]]


class LinearLayout:
    """A map from named input indices to named output indices.

    Each bit of an input has a basis, the outputs that it stands for. The map of several bits is the exclusive or of
    theirs.

    >>> layout = LinearLayout.identity_1d(4, "lane", "x") * LinearLayout.identity_1d(2, "warp", "x")
    >>> layout.apply({"lane": 3, "warp": 1})
    {'x': 7}
    """

    def __init__(self, bases: _Bases, out_dims: Mapping[str, int]) -> None:
        """``out_dims`` has the size of each output, a power of two."""
        self._bases = {
            name: [tuple(map(int, basis)) for basis in some] for name, some in bases.items()
        }
        self._sizes = dict(out_dims)
        for name, size in self._sizes.items():
            if size < 1 or size & (size - 1):
                raise ValueError(f"the size of {name} is {size}; it must be a power of two")
        for name, basis in ((n, b) for n, some in self._bases.items() for b in some):
            fits = len(basis) == len(self._sizes) and all(
                0 <= part < size for part, size in zip(basis, self._sizes.values(), strict=True)
            )
            if not fits:
                raise ValueError(
                    f"a basis of {name} is {list(basis)}, which is not within the outputs {self._sizes}"
                )

    @staticmethod
    def from_bases(
        bases: Iterable[tuple[str, Sequence[Sequence[int]]]],
        out_dim_names: Sequence[str],
        out_dim_sizes: Sequence[int] | None = None,
        require_surjective: bool = True,
    ) -> LinearLayout:
        """The layout with these bases. Without sizes, each output is as large as its bases need."""
        given = dict(bases)
        if out_dim_sizes is None:
            columns = zip(*itertools.chain(*given.values()), strict=True)
            largest = [max(column) for column in columns] or [0] * len(out_dim_names)
            out_dim_sizes = [1 << value.bit_length() for value in largest]
        layout = LinearLayout(given, dict(zip(out_dim_names, out_dim_sizes, strict=True)))
        if require_surjective and not layout.is_surjective():
            raise ValueError(f"the layout does not reach all outputs:\n{layout}")
        return layout

    @staticmethod
    def strided_1d(size: int, stride: int, inDim: str, outDim: str) -> LinearLayout:
        """index -> index * stride."""
        bases = [[stride << bit] for bit in range(_bits(size))]
        return LinearLayout({inDim: bases}, {outDim: stride * size})

    @staticmethod
    def identity_1d(size: int, inDim: str, outDim: str) -> LinearLayout:
        """index -> index."""
        return LinearLayout.strided_1d(size, 1, inDim, outDim)

    @staticmethod
    def zeros_1d(size: int, inDim: str, outDim: str, outDimSize: int = 1) -> LinearLayout:
        """index -> 0."""
        return LinearLayout({inDim: [[0]] * _bits(size)}, {outDim: outDimSize})

    # --- Parts --------------------------------------------------------------------------------------

    @property
    def bases(self) -> list[tuple[str, list[list[int]]]]:
        """The bases of each input."""
        return [(name, [list(basis) for basis in some]) for name, some in self._bases.items()]

    @property
    def out_dims(self) -> list[tuple[str, int]]:
        """The outputs with their sizes."""
        return list(self._sizes.items())

    @property
    def num_in_dims(self) -> int:
        return len(self._bases)

    @property
    def num_out_dims(self) -> int:
        return len(self._sizes)

    def get_in_dim_names(self) -> list[str]:
        return list(self._bases)

    def get_out_dim_names(self) -> list[str]:
        return list(self._sizes)

    def apply(self, inputs: Mapping[str, int]) -> dict[str, int]:
        """The outputs for these inputs."""
        if set(inputs) != set(self._bases):
            raise ValueError(f"the inputs are {list(self._bases)}, not {list(inputs)}")
        result = [0] * len(self._sizes)
        for name, value in inputs.items():
            for bit, basis in enumerate(self._bases[name]):
                if value >> bit & 1:
                    result = [have ^ part for have, part in zip(result, basis, strict=True)]
        return dict(zip(self._sizes, result, strict=True))

    # --- As a matrix --------------------------------------------------------------------------------

    def _columns(self) -> list[int]:
        """The bases as numbers that hold the bits of all outputs, the first output lowest."""
        shifts = list(itertools.accumulate(map(_bits, self._sizes.values()), initial=0))
        return [
            sum(part << shift for part, shift in zip(basis, shifts, strict=False))
            for some in self._bases.values()
            for basis in some
        ]

    def _height(self) -> int:
        return sum(map(_bits, self._sizes.values()))

    def get_matrix_view(self) -> list[list[int]]:
        """The matrix over GF(2): a row for each bit of the outputs, a column for each bit of the inputs."""
        columns = self._columns()
        return [[column >> row & 1 for column in columns] for row in range(self._height())]

    def _rank(self) -> int:
        return len(_eliminated(self._columns()))

    def is_surjective(self) -> bool:
        """Whether every output is reached."""
        return self._rank() == self._height()

    def is_injective(self) -> bool:
        """Whether different inputs have different outputs."""
        return self._rank() == len(self._columns())

    def is_invertible(self) -> bool:
        return self.is_surjective() and self.is_injective()

    # --- Others -------------------------------------------------------------------------------------

    def compose(self, other: LinearLayout) -> LinearLayout:
        """inputs -> ``other`` of this layout's outputs."""
        if set(self._sizes) != set(other._bases):
            raise ValueError(
                f"the outputs are {list(self._sizes)}, and the other layout's inputs {list(other._bases)}"
            )
        bases = {
            name: [
                list(other.apply(dict(zip(self._sizes, basis, strict=True))).values())
                for basis in some
            ]
            for name, some in self._bases.items()
        }
        return LinearLayout(bases, other._sizes)

    def _inputs_for(self, outputs: Sequence[int], sizes: Mapping[str, int]) -> list[list[int]]:
        """For each output, as a number, the inputs that give it. Raises ValueError if none do."""
        reduced = _eliminated(self._columns())
        result = []
        for wanted in outputs:
            left, used = wanted, 0
            for column, combination in reduced:
                if left ^ column < left:
                    left, used = left ^ column, used ^ combination
            if left:
                raise ValueError(f"the layout does not reach all outputs:\n{self}")
            parts = []
            for size in sizes.values():
                parts.append(used & (size - 1))
                used >>= _bits(size)
            result.append(parts)
        return result

    def _in_sizes(self) -> dict[str, int]:
        return {name: 1 << len(some) for name, some in self._bases.items()}

    def pseudoinvert(self) -> LinearLayout:
        """A layout from the outputs to inputs that give them."""
        sizes = self._in_sizes()
        found = iter(self._inputs_for([1 << bit for bit in range(self._height())], sizes))
        bases = {
            name: [next(found) for _ in range(_bits(size))] for name, size in self._sizes.items()
        }
        return LinearLayout(bases, sizes)

    def invert(self) -> LinearLayout:
        """The layout from the outputs to the inputs. Raises ValueError if there is none."""
        if not self.is_invertible():
            raise ValueError(f"the layout has no inverse:\n{self}")
        return self.pseudoinvert()

    def invert_and_compose(self, other: LinearLayout) -> LinearLayout:
        """The layout from this one's inputs to those of ``other`` that give the same outputs."""
        if list(self._sizes) != list(other._sizes):
            raise ValueError(
                f"the outputs are {list(self._sizes)}, and the other layout's {list(other._sizes)}"
            )
        wide = LinearLayout(
            self._bases, {name: max(size, other._sizes[name]) for name, size in self._sizes.items()}
        )
        target = LinearLayout(other._bases, wide._sizes)
        sizes = other._in_sizes()
        found = iter(target._inputs_for(wide._columns(), sizes))
        bases = {name: [next(found) for _ in some] for name, some in self._bases.items()}
        return LinearLayout(bases, sizes)

    def __mul__(self, other: LinearLayout) -> LinearLayout:
        """Both layouts side by side: an input or output of both has this one's bits below the other's."""
        names = dict.fromkeys([*self._sizes, *other._sizes])
        sizes = {name: self._sizes.get(name, 1) * other._sizes.get(name, 1) for name in names}
        bases: dict[str, list[list[int]]] = {}
        for layout, shifted in ((self, False), (other, True)):
            for name, some in layout._bases.items():
                for basis in some:
                    own = dict(zip(layout._sizes, basis, strict=True))
                    scale = self._sizes if shifted else {}
                    bases.setdefault(name, []).append(
                        [own.get(out, 0) * scale.get(out, 1) for out in names]
                    )
                bases.setdefault(name, [])
        return LinearLayout(bases, sizes)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, LinearLayout)
            and self._bases == other._bases
            and list(self._sizes.items()) == list(other._sizes.items())
        )

    def __hash__(self) -> int:
        return hash(str(self))

    def __str__(self) -> str:
        lines = []
        for name, some in self._bases.items():
            for bit, basis in enumerate(some):
                parts = ", ".join(map(str, basis))
                lines.append(f"{' ' if bit else '-'} {name}={1 << bit} -> ({parts})")
            if not some:
                lines.append(f"- {name} is a size 1 dimension")
        outs = ", ".join(f"{name} (size {size})" for name, size in self._sizes.items())
        return "\n".join([*lines, f"where out dims are: [{outs}]"])

    __repr__ = __str__


def _bits(size: int) -> int:
    """The number of bits of an index below a power of two."""
    if size < 1 or size & (size - 1):
        raise ValueError(f"a size is {size}; it must be a power of two")
    return int(math.log2(size))


def _eliminated(columns: Sequence[int]) -> list[tuple[int, Any]]:
    """Independent combinations of columns, the highest first, each with the columns that it combines, as bits."""
    reduced: list[tuple[int, int]] = []
    for index, column in enumerate(columns):
        used = 1 << index
        for other, combination in reduced:
            if column ^ other < column:
                column, used = column ^ other, used ^ combination
        if column:
            reduced.append((column, used))
            reduced.sort(reverse=True)
    return reduced
