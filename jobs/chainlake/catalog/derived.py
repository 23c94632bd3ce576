"""Definitions that are derived from the published matches of a pattern: its episodes, its best matches."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Required, TypedDict, Unpack

import numpy as np

from chainlake.cep.pattern import Pattern
from chainlake.digests import text_digest
from chainlake.lake.records.defined.definitions import Definition
from chainlake.schemas.table import Table


@dataclass(frozen=True)
class Derived:
    """Something made from the matches of a pattern.

    Args:
        table: the table that it is published to.
        definition: its definition, ``KIND/NAME``.
    """

    table: Table
    definition: Definition


class Schedule(TypedDict, total=False):
    """Which days it is made for, and from which days; the fields are those of ``Definition``."""

    late_us: Required[int]
    read_range: Required[Callable[[date], tuple[int, int]]]
    start: date
    memory_us: int
    owners: Callable[[np.ndarray], np.ndarray]


def definition_of(
    kind: str, pattern: Pattern, of: Definition, table: Table, identity: Sequence[Any], **schedule: Unpack[Schedule]
) -> Definition:
    """The definition ``KIND/NAME``.

    Args:
        kind: ``episodes`` or ``ranked``.
        pattern: the pattern from whose matches it is made.
        of: the pattern's definition.
        table: the table that it is published to.
        identity: what it depends on besides the matches, its version first; after an edit of it, all days are made
            again.
        schedule: its days.
    """
    version, *rest = identity
    return Definition(
        name=f"{kind}/{pattern.name}",
        source=of.source,
        definition_hash=text_digest(json.dumps([version, of.definition_hash, *rest])),
        engine_version=of.engine_version,
        table_name=table.path_name,
        of=of,
        **schedule,
    )
