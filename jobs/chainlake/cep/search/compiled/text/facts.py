"""What a kernel's code depends on: questions about the events, with their answers.

The generator sees the events only through these questions. If all have the same answers on other events, it would
write the same code, so the existing code fits those events, too.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

import numpy as np

from chainlake.cep.conditions.scan import Scan
from chainlake.cep.language import ast
from chainlake.cep.values.values import Lists, Value

#: Whole numbers must be smaller than this, or code in int64 may be wrong.
TOO_LARGE = 2**63

T = TypeVar("T", bound=Hashable)


class Form(NamedTuple):
    """What code depends on about a value.

    Args:
        kind: kind of the value (chainlake.cep.values.values).
        letter: the dtype of an array (f, i, b or O), ``list``, or ``float``, ``int`` or ``bool`` for one value for all.
        nullable: whether a mask says which values are null.
    """

    kind: str
    letter: str
    nullable: bool

    @property
    def is_array(self) -> bool:
        """Whether it is an array of numbers or booleans that code can read."""
        return self.letter in ("f", "i", "b")


def form_of(value: Value) -> Form:
    """The form of a value."""
    values = value.values
    if isinstance(values, np.ndarray):
        return Form(value.kind, values.dtype.kind, value.valid is not None)
    if isinstance(values, Lists):
        return Form(value.kind, "list", value.valid is not None)
    letter = "bool" if isinstance(values, bool | np.bool_) else "float" if isinstance(values, float) else "int"
    return Form(value.kind, letter, False)


def form_in(scan: Scan, name: str, node: ast.Node) -> Form:
    """The form of the value of ``node`` for the candidates of ``name``, the only name that it mentions."""
    # An attribute has one form for all events, so no values are computed.
    return form_of(scan.data.columns[node.attr] if isinstance(node, ast.Ref) else scan.value(name, node))


@dataclass(frozen=True)
class Size:
    """How large whole numbers can be.

    Args:
        key: equal for numbers that are equally large on all events.
        of: the largest absolute value on the events of a scan.
    """

    key: Hashable
    of: Callable[[Scan], int] = field(compare=False)


#: The size of numbers about which nothing is known.
ANY_SIZE = Size("any", lambda scan: TOO_LARGE)


class Facts:
    """Questions about a scan and their answers.

    Args:
        scan: the scan about which questions are asked, until ``seal``.
    """

    def __init__(self, scan: Scan) -> None:
        self._scan: Scan | None = scan
        self._asked: dict[Hashable, tuple[Callable[[Scan], Hashable], Hashable]] = {}

    def of(self, key: Hashable, question: Callable[[Scan], T]) -> T:
        """The answer to ``question``, recorded under ``key``; it may depend only on the scan and the key."""
        assert self._scan is not None, "nothing is asked once the code is written"
        answer = question(self._scan)
        self._asked[key] = question, answer
        return answer

    def fit(self, sizes: tuple[Size, ...]) -> bool:
        """Whether the sum of whole numbers of these sizes fits in 64 bits."""
        return self.of(("fit", sizes), lambda scan: sum(size.of(scan) for size in sizes) < TOO_LARGE)

    def seal(self) -> None:
        """Release the events; the answers stay."""
        self._scan = None

    def hold_for(self, scan: Scan) -> bool:
        """Whether all questions have the same answers on other events."""
        return all(question(scan) == answer for question, answer in self._asked.values())
