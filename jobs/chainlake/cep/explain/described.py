"""Near misses in lines of text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, tzinfo
from typing import Any

import pyarrow as pa

from chainlake.cep.explain.near_misses import Example, Report
from chainlake.cep.language.check import PSEUDO
from chainlake.cep.pattern import Pattern
from chainlake.terminal import without_noise


def describe(
    pattern: Pattern,
    events: pa.Table,
    reports: Sequence[Report],
    key: str | None = None,
    zone: tzinfo | None = None,
    where: str = "on these days",
) -> Iterator[str]:
    """The reports in lines of text.

    Args:
        pattern: the pattern.
        events: the table that holds the examples' rows.
        reports: one of each branch.
        key: a column that tells the events apart for a reader.
        zone: of the times; UTC if None.
        where: where the matches were looked for, such as "on these days".
    """
    wanted = dict.fromkeys([*([key] if key else []), *sorted(pattern.mentioned - PSEUDO)])
    shown = [name for name in wanted if name in events.column_names]
    for number, report in enumerate(reports, 1):
        branch = f"branch {number} of {len(reports)}, " if len(reports) > 1 else ""
        yield f"{branch}order {', '.join(report.plan.order)}"
        for stage in report.stages:
            yield f"  {stage.what}: {stage.entered:,} looked at, {stage.left:,} passed"
            for miss in stage.misses.values():
                if miss.count:
                    yield f"    {miss.count:,} rejected by: {miss.reason}"
                    yield from (f"      {_example(one, events, shown, zone)}" for one in miss.examples)
        yield f"  matches decided {where}: {report.matches:,}"


def _example(one: Example, events: pa.Table, shown: Sequence[str], zone: tzinfo | None) -> str:
    parts = []
    for name, bound in one.items():
        rows = bound if isinstance(bound, list) else [bound]
        texts = [_event(events.slice(row, 1).to_pylist()[0], shown, zone) for row in rows]
        parts.append(f"{name} {texts[0]}" if not isinstance(bound, list) else f"{name} [{', '.join(texts)}]")
    return "; ".join(parts)


def _event(row: dict[str, Any], shown: Sequence[str], zone: tzinfo | None) -> str:
    ts = row["ts"] if zone is None or not isinstance(row["ts"], datetime) else row["ts"].astimezone(zone)
    values = [f"{name}={without_noise(row[name])}" for name in shown if row[name] is not None]
    return " ".join([ts.isoformat().replace("+00:00", "Z") if hasattr(ts, "isoformat") else str(ts), *values])
