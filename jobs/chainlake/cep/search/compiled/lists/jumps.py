"""Where a search for one event continues after a candidate that fails, computed in one pass before the search.

If a clause compares a candidate with what is bound, then after a candidate that fails, all fail up to the next one
whose value passes more easily.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from chainlake.cep.conditions.scan import Scan
from chainlake.cep.language import ast
from chainlake.cep.language.normal_form import Clause
from chainlake.cep.search.compiled import machine
from chainlake.cep.search.compiled.text.expressions import Expressions


@dataclass(frozen=True)
class Jump:
    """A comparison by which a search skips candidates.

    Args:
        name: the name whose candidates are searched.
        clause: the clause, which is nothing but this comparison.
        op: ``candidate op bound``, not an equality.
        candidate: the value of the candidate.
    """

    name: str
    clause: Clause
    op: str
    candidate: ast.Node

    def table(self, make: Expressions, *, backward: bool) -> str:
        """The array that says where the search continues after a candidate that fails."""
        make.form(self.name, self.candidate)
        if isinstance(self.candidate, ast.Ref):
            make.slots.reads(self.name, self.candidate.attr)

        def made(scan: Scan) -> np.ndarray:
            values = scan.value(self.name, self.candidate).values
            return next_easier(values, self.op in ("<", "<="), backward=backward)

        key = ("jumps", self.name, self.candidate.written, self.op in ("<", "<="), backward)
        return make.slots.array("j", made, key)


def next_easier(values: np.ndarray, smaller: bool, *, backward: bool) -> np.ndarray:
    """For each value, the place of the next one that passes a comparison more easily; int32.

    Args:
        values: doubles or whole numbers, shape (n,); NaN never passes.
        smaller: whether smaller values pass more easily, not larger ones.
        backward: whether the next one is looked for before the value, with -1 for none; else after it, with n for none.
    """
    floating = values.dtype.kind == "f"
    values = np.ascontiguousarray(values, np.float64 if floating else np.int64)
    found = np.empty(len(values), np.int32)
    kernel = machine.load(_source(floating, smaller, backward))
    tables = ([values], []) if floating else ([], [values])
    kernel(*tables, [], [found], machine.NOTHING, np.array([len(values)]), machine.NOTHING)
    return found


@cache
def _source(floating: bool, smaller: bool, backward: bool) -> str:
    first, step, inside = ("0", "-", "j >= 0") if backward else ("n - 1", "+", "j < n")
    return f"""def kernel(F, I, B, J, kf, ki, st):
    values = {"F" if floating else "I"}[0]
    found = J[0]
    n = ki[0]
    i = {first}
    for k in range(n):
        x = values[i]
        j = i {step} 1
        if x == x:
            while {inside} and not values[j] {"<" if smaller else ">"} x:
                j = found[j]
        found[i] = j
        i {"+" if backward else "-"}= 1
    return 0
"""
