"""How well a pattern finds known occurrences: its matches, merged into alarms, against labelled time ranges."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

import pyarrow as pa

from chainlake.cep.search.found.batch import MatchBatch


@dataclass(frozen=True)
class Label:
    """A known occurrence: its first and last instant (µs, both included) and its key; ``None`` stands for any key."""

    start: int
    end: int
    key: str | None


@dataclass(frozen=True)
class Alarm:
    """Matches of one key that overlap or lie close together: first event, last event and earliest decision (µs)."""

    start: int
    end: int
    decided: int
    key: str | None


@dataclass(frozen=True)
class Score:
    """How well alarms fit labels.

    Args:
        matches, alarms: how many.
        true_alarms: alarms that a label explains.
        found, labels: how many labels have an alarm, and how many there are.
        delay_s: median seconds from a label's start to the earliest decision of its alarms; ``None`` if none is found.
    """

    matches: int
    alarms: int
    true_alarms: int
    found: int
    labels: int
    delay_s: float | None

    @property
    def precision(self) -> float | None:
        """Share of the alarms that a label explains."""
        return self.true_alarms / self.alarms if self.alarms else None

    @property
    def recall(self) -> float | None:
        """Share of the labels that an alarm finds."""
        return self.found / self.labels if self.labels else None


def alarms_of(batches: Iterable[MatchBatch], keys: pa.ChunkedArray | None, slack: int) -> tuple[int, list[Alarm]]:
    """The number of matches, and the alarms that they make.

    Args:
        batches: the matches.
        keys: the key of each event, or None; an alarm has the key of its matches' first name.
        slack: matches of one key that are at most this far apart are one alarm (µs).
    """
    names = None if keys is None else keys.to_pylist()
    rows: list[Alarm] = []
    for batch in batches:
        starts, ends, decided = (times.tolist() for times in (batch.start_us, batch.end_us, batch.decision_us))
        first = next(iter(batch.single.values()), None)
        of = [None] * batch.n if names is None or first is None else [names[row] for row in first.tolist()]
        rows += [Alarm(*one) for one in zip(starts, ends, decided, of, strict=True)]
    found: list[Alarm] = []
    for one in sorted(rows, key=lambda row: (row.key or "", row.start)):
        last = found[-1] if found else None
        if last is not None and last.key == one.key and one.start <= last.end + slack:
            found[-1] = Alarm(last.start, max(last.end, one.end), min(last.decided, one.decided), one.key)
        else:
            found.append(one)
    return len(rows), found


def score(matches: int, alarms: Sequence[Alarm], labels: Sequence[Label], slack: int) -> Score:
    """Compare alarms with labels.

    Args:
        matches: how many matches the alarms were made from.
        alarms: those of the pattern.
        labels: the known occurrences.
        slack: how far before or after a label an alarm may lie and still count for it (µs).
    """
    good: set[int] = set()
    delays: list[float] = []
    for label in labels:
        own = [
            number
            for number, alarm in enumerate(alarms)
            if (label.key is None or alarm.key in (None, label.key))
            and alarm.start <= label.end + slack
            and alarm.end >= label.start - slack
        ]
        good.update(own)
        if own:
            delays.append((min(alarms[number].decided for number in own) - label.start) / 1e6)
    return Score(matches, len(alarms), len(good), len(delays), len(labels), median(delays) if delays else None)
