"""What staleness and publishing know about a pattern or a model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date

import numpy as np


@dataclass(frozen=True)
class Definition:
    """A pattern or a model, as far as days and versions are concerned.

    Args:
        name: ``pattern/NAME``, ``episodes/NAME``, ``ranked/NAME`` or ``model/NAME``.
        source: name of the source it reads.
        definition_hash: changes whenever its results could.
        engine_version: number bumped by hand when the engine's results can change.
        table_name: ``schema.name`` of the table it publishes to.
        late_us: how long after its last event a match can be decided, µs: W of a pattern with an open-right name, else
            0.
        read_range: UTC day → time range of the events that it reads for that day, ``[lo, hi)`` µs.
        start: first day of a chain, from which on state is carried from day to day, as models and patterns that use
            events up do; ``None`` if days are independent of each other, as most patterns' are.
        memory_us: for a chain: how far back its state goes, µs; after so long without events it is empty. ``None`` if
            it never becomes empty again.
        of: for episodes and rankings: the pattern from whose published matches they are made; ``None`` if events are
            read.
        owners: for rankings: days of matches → the days on which the periods begin that can hold these matches, both as
            days since 1970-01-01, ascending; ``None`` if a day is made of its own matches.
    """

    name: str
    source: str
    definition_hash: str
    engine_version: int
    table_name: str
    late_us: int
    read_range: Callable[[date], tuple[int, int]]
    start: date | None = None
    memory_us: int | None = None
    of: Definition | None = None
    owners: Callable[[np.ndarray], np.ndarray] | None = None

    @property
    def chained(self) -> bool:
        """Whether a day continues from the state that the day before it left."""
        return self.start is not None

    @property
    def is_model(self) -> bool:
        """Whether it is a model or a monitor, not a pattern."""
        return self.name.startswith("model/")
