"""Definitions that are made from the published matches of a pattern: its episodes, its best matches."""

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
    """What is made from the matches of a pattern.

    Args:
        table: that it is published to.
        definition: ``KIND/NAME``.
    """

    table: Table
    definition: Definition


class Schedule(TypedDict, total=False):
    """Which days it is made on, and of which; as of ``Definition``."""

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
        pattern: whose matches it is made from.
        of: the pattern's own.
        table: that it is published to.
        identity: what it depends on beside the matches; an edit of it makes all days anew.
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
