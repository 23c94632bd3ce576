"""The episodes of events in memory: what a search finds, merged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Unpack

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from chainlake.cep.episodes.days import Timing, episodes_of_day
from chainlake.cep.episodes.sources import of_batch, rule_of
from chainlake.cep.errors import NoEpisodes
from chainlake.cep.library import MatchOptions, as_dicts, prepared
from chainlake.cep.pattern import Pattern
from chainlake.cep.search.find import find
from chainlake.cep.search.found.batch import MatchBatch
from chainlake.days import instant

#: One episode: its key, first start, last end, when it is decided, how many matches, the first and the top one.
Episode = dict[str, Any]


def episodes(
    pattern_text: str,
    events: Iterable[Mapping[str, Any]] | pa.Table,
    params: Mapping[str, Any] | None = None,
    order: Sequence[str] | None = None,
    *,
    backend: str = "auto",
    **options: Unpack[MatchOptions],
) -> Iterator[Episode]:
    """The episodes of a pattern with ``EPISODES BY … PAUSE …`` (docs/semantics.md#episodes).

    Example:
        >>> import chainlake as cl
        >>> events = [{"id": n, "type": "A", "ts": ts, "attrs": {"k": "x"}} for n, ts in enumerate([0, 4, 9, 60])]
        >>> found = cl.episodes("PATTERN A a WITHIN 1 EPISODES BY a.k PAUSE 5", events)
        >>> [(one["start"], one["end"], one["matches"]) for one in found]
        [(0, 9, 3), (60, 60, 1)]

    Args:
        pattern_text, events, params, order, backend, options: as for ``match``.

    Returns:
        mappings in the order of key and start: ``key``, ``start``, ``end``, ``decided``, ``matches``; ``severity`` of
        the top match, if the pattern has that measure; and ``first`` and ``top``, two matches as ``match`` gives them.

    Raises:
        UsageError: the pattern does not define episodes; and as ``match``.
        InputError: key or severity is of a kind that it cannot be; and as ``match``.
    """
    asked = prepared(pattern_text, events, params, order, options)
    check_episodes(asked.pattern)
    batches = list(find(asked.pattern, asked.table, order=order, backend=backend, options=asked.search))
    return merged_matches(asked.pattern, asked.table, asked.ids, batches)


def check_episodes(pattern: Pattern) -> None:
    """Raise UsageError for a pattern that does not define episodes."""
    if pattern.extras.episodes is None:
        raise NoEpisodes.of()


def merged_matches(
    pattern: Pattern, events: pa.Table, ids: Sequence[Any], batches: Sequence[MatchBatch]
) -> Iterator[Episode]:
    """The episodes of the matches of a search.

    Args:
        pattern: with EPISODES.
        events: the table in which they were found.
        ids: the id of every row of the table, as it is shown.
        batches: the matches.

    Raises:
        InputError: key or severity is of a kind that it cannot be.
    """
    batches = [batch for batch in batches if batch.n]
    if not batches:
        return
    rule = rule_of(pattern)
    timing = Timing(rule.pause, pattern.decided_us)
    spans = [of_batch(pattern, events, batch) for batch in batches]
    day = episodes_of_day(timing, None, spans, None)
    every = pa.concat_tables([one.select(["top_match"]) for one in spans])["top_match"].combine_chunks()
    begins = np.cumsum([0, *(batch.n for batch in batches)])

    def shown(match_id: str) -> dict[str, Any]:
        place = pc.index(every, match_id).as_py()
        number = int(np.searchsorted(begins, place, "right")) - 1
        return next(as_dicts(pattern, batches[number].at(np.array([place - begins[number]])), ids))

    for row in day.decided.to_pylist():
        yield {
            "key": row["key"],
            "start": _time(pattern, row["start"]),
            "end": _time(pattern, row["end"]),
            "decided": _time(pattern, row["end"] + timing.late),
            "matches": row["matches"],
            **({"severity": row["severity"]} if rule.severe else {}),
            "first": shown(row["members"][0]["match_id"]),
            "top": shown(row["top_match"]),
        }


def _time(pattern: Pattern, ticks: int) -> datetime | int:
    return instant(ticks) if pattern.strict else ticks
