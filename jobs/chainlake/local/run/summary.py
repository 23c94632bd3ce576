"""The summary at the end of ``make run``: what was read, found and published, where it is, and how long it took."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any

from chainlake.errors import ChainlakeError
from chainlake.lake.delta import tables
from chainlake.lake.records import ops
from chainlake.local.run.chain import Chain
from chainlake.paths import Home
from chainlake.terminal import rounded, table_lines

QUERIES = (
    "SELECT pattern, count(*) AS matches, min(start_ts) AS first, max(end_ts) AS last FROM matches.all "
    "GROUP BY pattern ORDER BY pattern",
    "SELECT model, kind, count(*) AS times, min(ts) AS first, max(ts) AS last FROM models.changes "
    "GROUP BY model, kind ORDER BY model, kind",
)

#: How many rows of a ranking are shown.
_BEST = 10


@dataclass
class Timing:
    """The wall-clock seconds of the parts of a run, in order."""

    start: datetime
    parts: list[tuple[str, float]] = field(default_factory=list)

    def mark(self, name: str) -> None:
        """End the part ``name`` now; it began where the last one ended."""
        passed = (datetime.now(UTC) - self.start).total_seconds()
        self.parts.append((name, passed - sum(seconds for _, seconds in self.parts)))


def table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """An indented table: the first column is aligned to the left, the others to the right."""
    return "\n".join(f"  {line}" for line in table_lines(header, rows, range(1, len(header))))


def print_summary(
    home: Home,
    chain: Chain,
    timing: Timing,
    report: str,
    *,
    page: str = "make airflow   (prints the address of its page)",
    command: str = ".venv/bin/chainlake",
) -> None:
    """Print rows per source, matches per pattern and day, model changes, places, two queries and the times.

    Args:
        home: the installation.
        chain: what ran.
        timing: how long its parts took.
        report: what :func:`report_now` returned.
        page: where Airflow's page is.
        command: how to call ``chainlake``.
    """
    sources = list(chain.plan)
    print("\n== Rows per source")
    print(
        table(
            ("source", "files", "rows read", "events", "duplicates", "conflicts", "quarantined"), _rows(home, sources)
        )
    )
    _print_matches(home, sources, chain)
    _print_changes(home)
    failed = [run for run in chain.runs if not run.ok]
    print(f"\n== Runs: {len(chain.runs) - len(failed)} ok, {len(failed)} not")
    for run in failed:
        print(f"  {run.dag_id} {run.day}: {run.skipped or run.state}")
    print("\n== Where things are")
    print(f"  tables       {home.lake}/<schema>/<table>")
    print(f"  landing      {home.landed_all}")
    print(f"  Data Docs    {_docs(home)}")
    print(f"  report       {report}")
    print(f"  Airflow      {page}")
    print(f'  query        {command} sql "SELECT …"')
    for query in QUERIES:
        _print_query(home, query)
    timing.mark("summary")
    _print_timing(home, chain, timing)


def _rows(home: Home, sources: Sequence[str]) -> list[tuple[Any, ...]]:
    found = []
    for source in sources:
        files = ops.current(home, "files", source=source)
        days = ops.current(home, "event_days", source=source)

        def total(rows: Sequence[Mapping[str, Any]], *columns: str) -> int:
            return sum(row[column] or 0 for row in rows for column in columns)

        conflicts = total(days, "conflicts")
        quarantined = total(files, "rows_quarantined") + conflicts
        found.append(
            (
                source,
                len(files),
                total(files, "rows_read"),
                total(days, "rows"),
                total(days, "duplicates"),
                conflicts,
                quarantined,
            )
        )
    return found


def _print_matches(home: Home, sources: Sequence[str], chain: Chain) -> None:
    """Print matches and episodes per pattern and day: for each source a table of each."""
    from chainlake.catalog.patterns import load_patterns
    from chainlake.definitions.source import load_sources

    compiled, broken = load_patterns(home, load_sources(home))
    for source in sources:
        days = [shipped.day for shipped in chain.plan[source]]
        rows: list[tuple[Any, ...]] = []
        episodes: list[tuple[Any, ...]] = []
        for one in sorted(compiled, key=lambda one: one.pattern.name):
            if one.definition.source == source:
                rows.append((one.pattern.name, *_counts(home, one.definition.name, days)))
                if one.episodes is not None:
                    episodes.append((one.pattern.name, *_counts(home, one.episodes.definition.name, days)))
        for what, counted in (("Matches", rows), ("Episodes", episodes)):
            if counted:
                print(f"\n== {what} per pattern and day of {source}")
                print(table(("pattern", *(str(day) for day in days), "total"), counted))
        for one in compiled:
            if one.definition.source == source and one.ranking is not None:
                _print_ranking(home, one.pattern.name, days)
    for bad in broken:
        print(f"  {bad.name}: {bad.error.summary}")


def _print_ranking(home: Home, pattern: str, days: Sequence[date]) -> None:
    """Print the best matches of the periods that contain the days."""
    print(f"\n== Best matches of {pattern} (ranked.{pattern})")
    rows = []
    if tables.exists(home, "ranked", pattern):
        columns = ["scope_kind", "scope_start", "scope_end", "per", "rank", "score", "start_ts", "end_ts"]
        first = f"{min(days)} 00:00"
        rows = [
            (f"{row['scope_kind']} {row['scope_start']:%Y-%m-%d}", row["per"], row["rank"], rounded(row["score"]),
             f"{row['start_ts']:%Y-%m-%d %H:%M:%S}", f"{row['end_ts']:%Y-%m-%d %H:%M:%S}")
            for row in tables.arrow(home, "ranked", pattern, columns=columns).sort_by(
                [(name, "ascending") for name in ("scope_start", "per", "rank")]
            ).to_pylist()
            if row["scope_end"] is None or f"{row['scope_end']:%Y-%m-%d %H:%M}" > first
        ]  # fmt: skip
    if not rows:
        print("  none")
        return
    print(table(("period", "per", "rank", "score", "from", "to"), rows[:_BEST]))
    if len(rows) > _BEST:
        print(f"  and {len(rows) - _BEST} more")


def _counts(home: Home, definition: str, days: Sequence[date]) -> list[Any]:
    """The number of rows of each day that is done, the status of each other day, and the total."""
    current = {row["day"]: row for row in ops.current(home, "intervals", definition=definition)}
    cells: list[Any] = []
    total = 0
    for day in days:
        row = current.get(day)
        if row is None:
            cells.append("missing")
        elif row["status"] == "done":
            cells.append(row["rows"] or 0)
            total += row["rows"] or 0
        else:
            cells.append(row["status"])
    return [*cells, total]


def _print_changes(home: Home) -> None:
    from chainlake.schemas.models import FAULT_SCORES, LEARNERS, ZONE_EVENTS

    for title, schema, name, owner, day in (
        ("Model changes", "models", "changes", "model", "event_date"),
        ("Threshold alerts", "alerts", "threshold", "monitor", "ts"),
    ):
        rows = []
        if tables.exists(home, schema, name):
            rows = tables.arrow(home, schema, name, columns=[owner, "kind", day]).to_pylist()
        if not rows:
            print(f"\n== {title}: none published")
            continue
        counts = Counter((row[owner], f"{row[day]:%Y-%m-%d}", row["kind"]) for row in rows)
        print(f"\n== {title} per {owner}, day and kind")
        print(table((owner, "day", "kind", "rows"), [(*key, count) for key, count in sorted(counts.items())]))
    for one, what in ((ZONE_EVENTS, "kind"), (LEARNERS, "kind"), (FAULT_SCORES, "machine")):
        if not tables.exists(home, one.schema, one.name):
            continue
        wanted = [("flagged", "=", True)] if one is FAULT_SCORES else None
        found = tables.arrow(home, one.schema, one.name, columns=["model", one.day_column, what], filters=wanted)
        counts = Counter((r["model"], f"{r[one.day_column]:%Y-%m-%d}", r[what]) for r in found.to_pylist())
        print(f"\n== {one.path_name} per model, day and {what}{', flagged' if wanted else ''}")
        print(table(("model", "day", what, "rows"), [(*key, count) for key, count in sorted(counts.items())]))


def _docs(home: Home) -> str:
    from chainlake.quality.docs import index_page

    page = index_page(home)
    return str(page) if page.exists() else "not built: no audit has run yet"


def report_now(home: Home) -> str:
    """The path of the report's first page, brought up to date; if it cannot be made, the reason."""
    from chainlake.report.make import make_report

    try:
        return str(make_report(home).index)
    except ChainlakeError as error:
        return f"not made: {error.summary}"


def _print_query(home: Home, query: str) -> None:
    from chainlake.lake.sql.query import SqlConnection

    print(f"\n== {query}")
    try:
        cursor = SqlConnection(home).query(query)
        print(table([column[0] for column in cursor.description or []], cursor.fetchall()))
    except ChainlakeError as error:
        print(f"  {error.summary}")


def _print_timing(home: Home, chain: Chain, timing: Timing) -> None:
    print("\n== Where the time went (seconds)")
    total = sum(seconds for _, seconds in timing.parts)
    print(table(("part", "seconds"), [(name, f"{s:.1f}") for name, s in [*timing.parts, ("total", total)]]))
    spans: dict[str, set[tuple[datetime, datetime]]] = defaultdict(set)
    applications = set()
    for row in ops.current(home, "runs"):
        started, ended = row["started"], row["ended"]
        if started is not None and ended is not None and started >= timing.start:
            # Models that are run together have one row each, with the same times.
            spans[f"{row['step']}: {row['phase']}"].add((started, ended))
            if row["spark_app_id"]:
                applications.add(row["spark_app_id"])
    runs = [run.seconds for run in chain.runs if run.seconds]
    print(f"\n  {len(runs)} runs took {sum(runs):.0f} s in all, with their waits; Spark drivers: {len(applications)}")
    rows = [
        (name, len(times), f"{sum((ended - started).total_seconds() for started, ended in times):.1f}")
        for name, times in sorted(spans.items())
    ]
    if rows:
        print(table(("phase", "times", "seconds in all"), rows))
