"""What a long stretch of days needs, as values: the Spark applications and what each computes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from chainlake.days import Days
from chainlake.schemas.ops_rows import ComputingStep

#: Days of one application unless said otherwise: a failure costs no more than this, and Java starts once a month.
CHUNK = 30


@dataclass(frozen=True)
class Part:
    """What one definition computes in one application.

    Args:
        definition: ``pattern/NAME``, ``episodes/NAME``, ``ranked/NAME`` or ``model/NAME``.
        table: ``schema.name`` of the table it publishes to.
        days: the days to compute, ascending.
        following: of a chain, days that may be computed besides: a day before them is, and only its state will say.
        states: how many of ``days`` are ``missing``, ``stale``, ``failed``, or ``done`` (of a chain: no state is kept
            of them that a later day could go on from).
        reads: whole days that hold the read ranges of all these days.
        rows_read: events on these days.
        rows_there: rows published for all these days so far; these and no others can be withdrawn or changed.
        in_order: its days depend on others of them, so that the applications have to come in the order of time.
    """

    definition: str
    table: str
    days: tuple[date, ...]
    following: tuple[date, ...]
    states: dict[str, int]
    reads: Days
    rows_read: int
    rows_there: int
    in_order: bool


@dataclass(frozen=True)
class Application:
    """One Spark application.

    Args:
        step: ``detect`` or ``monitor``.
        source: name of the source.
        days: from the first to the last day that is to do; days in between that are done are left alone.
        only_stale: days that were never computed are left alone too.
        parts: what it computes, by definition.
    """

    step: ComputingStep
    source: str
    days: Days
    only_stale: bool
    parts: tuple[Part, ...]

    @property
    def definitions(self) -> list[str]:
        """Names without their kind, as the step takes them."""
        return list(dict.fromkeys(part.definition.partition("/")[2] for part in self.parts))

    @property
    def in_order(self) -> bool:
        """Whether those of the same step and source before it have to be done first."""
        return any(part.in_order for part in self.parts)

    @property
    def name(self) -> str:
        """Such as ``detect stock 2013-10-01 2013-10-31``."""
        return f"{self.step} {self.source} {self.days.start} {self.days.end}"
