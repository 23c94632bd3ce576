"""The Spark applications that a long range of days needs, and what each computes, as values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from chainlake.days import Days
from chainlake.schemas.ops_rows import ComputingStep

#: Days in one application by default: a year, for which Java starts once. A step publishes a few days at a time, so a
#: failure costs no more than these.
CHUNK = 366


@dataclass(frozen=True)
class Part:
    """What one definition computes in one application.

    Args:
        definition: ``pattern/NAME``, ``episodes/NAME``, ``ranked/NAME`` or ``model/NAME``.
        table: ``schema.name`` of the table it publishes to.
        days: the days to compute, ascending.
        following: days that may have to be computed as well: later ones of a chain, and those made from matches that
            are searched for again; only the states and matches of the days before will tell.
        states: how many of ``days`` are ``missing``, ``stale``, ``failed``, or ``done`` (days of a chain for which no
            state is kept that a later day could continue from).
        reads: whole days that hold the read ranges of all these days.
        rows_read: number of events on the days of ``reads``.
        rows_there: number of rows published so far for ``days`` and ``following``; only these can be withdrawn or
            changed.
        in_order: its days depend on earlier ones, so that applications have to run in time order.
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
        days: from the first to the last day to do; days in between that are done are left alone.
        only_stale: days that were never computed are left alone, too.
        parts: what it computes, by definition.
    """

    step: ComputingStep
    source: str
    days: Days
    only_stale: bool
    parts: tuple[Part, ...]

    @property
    def definitions(self) -> list[str]:
        """Names of the definitions without their kind, as the step takes them."""
        return list(dict.fromkeys(part.definition.partition("/")[2] for part in self.parts))

    @property
    def in_order(self) -> bool:
        """Whether earlier applications of the same step and source have to be done first."""
        return any(part.in_order for part in self.parts)

    @property
    def name(self) -> str:
        """The name, such as ``detect stock 2013-10-01 2013-10-31``."""
        return f"{self.step} {self.source} {self.days.start} {self.days.end}"
