"""Functions of lists of arrays, as ``torch.compile`` keeps them.

Under PyTorch's tracing such a function is an operator of `torch.library`, as those of `Operator` are; otherwise it is a call.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from ._arrays import Array, dtype_of, is_torch
from ._launch import Spec
from ._operators import NAMESPACE, Registered, is_traced

Lists = dict[str, list[Array] | None]


class ListOperator(Registered):
    """One function of lists that are as long as each other, without gradients.

    ``numbers`` is "float lr, bool nesterov": PyTorch's types of the other arguments. ``compute(lists, **numbers)`` returns new
    arrays, for ``results(lists, **numbers)``, which gives their shapes and dtypes. Of ``lists`` all but the first may be None.
    """

    def __init__(
        self,
        name: str,
        lists: Sequence[str],
        numbers: str,
        compute: Callable[..., list[Array]],
        results: Callable[..., list[Spec]],
    ) -> None:
        self.name, self.lists, self.numbers = name, list(lists), numbers
        self.compute, self.results = compute, results

    def __call__(self, lists: Lists, **numbers: Any) -> list[Array]:
        every = [each for arrays in lists.values() for each in arrays or []]
        if not any(map(is_torch, every)):
            return self.compute(lists, **numbers)
        torch = sys.modules["torch"]
        if not torch.compiler.is_compiling() and not is_traced(every):
            return self.compute(lists, **numbers)
        self._ensure_registered()
        # Nothing is recorded of the results.
        plain = [[each.detach() for each in lists[name] or []] for name in self.lists]
        return list(self._torch(*plain, *numbers.values()))

    def _register(self) -> Any:
        torch = sys.modules["torch"]
        names = [each.split()[-1] for each in self.numbers.split(",")]
        parameters = ", ".join([*(f"Tensor[] {name}" for name in self.lists), self.numbers])
        library = torch.library.Library(NAMESPACE, "FRAGMENT")
        library.define(f"{self.name}({parameters}) -> Tensor[]")

        def read(arguments: Sequence[Any]) -> tuple[Lists, dict[str, Any]]:
            count = len(self.lists)
            lists: Lists = {
                name: list(arrays) or None
                for name, arrays in zip(self.lists, arguments, strict=False)
            }
            lists[self.lists[0]] = list(arguments[0])
            return lists, dict(zip(names, arguments[count:], strict=True))

        def run(*arguments: Any) -> Any:
            lists, numbers = read(arguments)
            return [each.data for each in self.compute(lists, **numbers)]

        def shapes(*arguments: Any) -> Any:
            lists, numbers = read(arguments)
            return [
                arguments[0][0].new_empty(tuple(shape), dtype=dtype_of(dtype, arguments[0][0]))
                for shape, dtype in self.results(lists, **numbers)
            ]

        library.impl(self.name, run, "CompositeExplicitAutograd")
        torch.library.register_fake(f"{NAMESPACE}::{self.name}", shapes, lib=library)
        self._library = library  # the registration ends with it
        return getattr(getattr(torch.ops, NAMESPACE), self.name).default
