"""The simulator's light mode: the product's own steps, with tasks in this process, so that a seed takes seconds.

Everything is the product's own, by ``LocalTasks`` and the files back end of the lake. What is left out: ``ops`` is in
memory, and Great Expectations is not asked unless a seed says so; what it judges is measured all the same.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

from chainlake.lake.delta import tables
from chainlake.lake.records import ops
from chainlake.quality import Audit, AuditResult
from chainlake.quality import audit as auditing
from tests.replay.memory import MemoryOps


@contextlib.contextmanager
def light(*, ops_in_memory: bool = True, audits: bool = False) -> Iterator[None]:
    """Leave out what takes long and decides nothing; files land and steps run as ever.

    Args:
        ops_in_memory: ``ops`` is no table either.
        audits: ask Great Expectations, which takes longer than all else; if not, every suite passes.
    """
    memory = MemoryOps()
    places: list[tuple[Any, dict[str, Any]]] = []
    if ops_in_memory:
        places += [
            (ops, {"append": memory.append, "current_table": memory.current_table}),
            (tables, {"arrow": memory.arrow, "exists": memory.exists}),
        ]
    if not audits:
        places += [
            (auditing, {"warm_up": lambda: None}),
            (Audit, {"run": lambda self, suite, df, label, **_: AuditResult(label, True)}),
        ]
    with contextlib.ExitStack() as stack:
        for module, changes in places:
            for name, value in changes.items():
                stack.enter_context(patch.object(module, name, value))
        yield
