"""The streams of ``benchmarks.lazy``: stock quotes with price histories, and a stream whose rarest type changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from chainlake.cep.events.history import add_histories
from chainlake.cep.plain_files.read import Asked, read_events
from chainlake.definitions.derived import parse_history


@dataclass(frozen=True)
class Quotes:
    """Stock quotes of three kinds: two sectors and one rarer stock.

    Args:
        events: columns ``event_id``, ``type`` (Stock), ``ts``, ``ticker``, ``history``.
        first: tickers for the name a.
        second: tickers for the name b.
        rare: ticker for the name c.
        minutes: length of the histories, and of the window.
    """

    events: pa.Table
    first: tuple[str, ...]
    second: tuple[str, ...]
    rare: str
    minutes: int

    def counts(self) -> tuple[int, int, int]:
        """The numbers of events for a, b and c."""
        tickers = self.events["ticker"].to_pylist()
        return tuple(sum(t in those for t in tickers) for those in (self.first, self.second, (self.rare,)))  # type: ignore[return-value]

    def with_rare(self, share: float) -> Quotes:
        """The same quotes, but the number of events of the rare stock is ``share`` times the mean number of a and b.

        Events of the rare stock are dropped, or repeated under other ids, evenly over the stream.
        """
        first, second, present = self.counts()
        wanted = max(1, round(share * (first + second) / 2))
        is_rare = pc.equal(self.events["ticker"], self.rare)
        others, rare = self.events.filter(pc.invert(is_rare)), self.events.filter(is_rare)
        at = (np.arange(wanted) * present) // wanted
        copies = np.arange(wanted) - np.searchsorted(at, at)
        ids = [f"{rare['event_id'][int(i)].as_py()}/{copy}" for i, copy in zip(at, copies, strict=True)]
        taken = rare.take(pa.array(at)).set_column(0, "event_id", pa.array(ids))
        events = pa.concat_tables([others, taken]).sort_by([("ts", "ascending"), ("event_id", "ascending")])
        return Quotes(events, self.first, self.second, self.rare, self.minutes)

    def beginning(self, share: float) -> Quotes:
        """The first part of the stream."""
        events = self.events.slice(0, round(len(self.events) * share))
        return Quotes(events, self.first, self.second, self.rare, self.minutes)

    def query(self, structure: str, threshold: float, more: str = "") -> str:
        """The text of the papers' pattern with another structure."""
        sectors = f"{{finance: [{', '.join(self.first)}], hitech: [{', '.join(self.second)}]}}"
        return (
            f"---\nsets: {sectors}\nlimits: {{matches_per_day: 100000000}}\n---\nPATTERN {structure}\n"
            f"WHERE a.ticker IN finance AND b.ticker IN hitech AND c.ticker = '{self.rare}'\n"
            f"  AND Corr(a.history, b.history) > {threshold} AND Corr(b.history, c.history) > {threshold}{more}\n"
            f"WITHIN {self.minutes} min"
        )


def quotes(files: Sequence[Path], first: Sequence[str], second: Sequence[str], rare: str, minutes: int) -> Quotes:
    """The quotes of these tickers in CSV files with the columns ``ticker``, ``ts`` and ``close``.

    A history is the last ``minutes`` prices of a ticker, with neighbours at most three minutes apart: a price every
    minute, with small gaps.
    """
    events = read_events(files).table
    if pa.types.is_integer(events.schema.field("ts").type):
        events = read_events(files, Asked(ts_unit="s")).table
    wanted = pa.array([*first, *second, rare])
    events = events.filter(pc.is_in(events["ticker"], value_set=wanted)).select(["event_id", "ts", "ticker", "close"])
    events = events.set_column(0, "event_id", events["event_id"].cast(pa.string()))
    events = events.append_column("type", pa.array(["Stock"] * len(events)))
    history = parse_history("history", f"history(close, {minutes}, 3 min)")
    assert history is not None, "the expression is one"
    events = add_histories(events, ["ticker"], [history]).drop_columns(["close"])
    return Quotes(events.sort_by([("ts", "ascending")]), tuple(first), tuple(second), rare, minutes)


def rotating(events: int, phase: int, share: float, seed: int = 1) -> pa.Table:
    """One event per second of type A, B or C; the rarest type changes after every ``phase`` events: C, A, B, C …

    The rarest type makes up ``share`` of all events. The other two are equally frequent; ``x`` is uniform in [0, 1).
    """
    draw = np.random.default_rng(seed)
    rare = np.array([2, 0, 1])[(np.arange(events) // phase) % 3]
    other = (rare + 1 + draw.integers(0, 2, events)) % 3
    kinds = np.where(draw.random(events) < share, rare, other)
    return pa.table(
        {
            "event_id": pa.array([f"{i:08d}" for i in range(events)]),
            "type": pa.array(np.array(["A", "B", "C"])[kinds]),
            "ts": pa.array(np.arange(events)),
            "x": pa.array(draw.random(events)),
        }
    )
