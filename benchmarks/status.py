"""How long ``chainlake status`` takes for ten years of a hundred patterns, with made-up rows of operations.

Usage: ``python benchmarks/status.py [--years 10] [--patterns 100] [--runs 3]``; it prints seconds and peak memory for
each way of asking, as a table, and as JSON in the last line. The aim is 3 s.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PROJECT))

from chainlake.catalog.patterns import load_patterns  # noqa: E402
from chainlake.definitions.source import load_sources  # noqa: E402
from chainlake.lake.delta.tables import ensure_table  # noqa: E402
from chainlake.lake.records import ops  # noqa: E402
from chainlake.lake.records.defined.fingerprints import fingerprint  # noqa: E402
from chainlake.lake.records.event_days import EventDays  # noqa: E402
from chainlake.paths import Home  # noqa: E402
from chainlake.schemas.events import events_table  # noqa: E402
from chainlake.schemas.raw import raw_table  # noqa: E402

SOURCE = """\
key: sensor
type: Reading
zone: UTC
attributes: {x: {type: double}}
identity: unique
on_conflict: first
formats:
  - {name: csv, glob: '*.csv', header: [ts, sensor, x], time: {column: ts, format: '%Y-%m-%d'}, map: {sensor: sensor,
     x: x}}
"""
PATTERN = """\
---
source: lab
---
PATTERN SEQ(Reading a, Reading b)
WHERE a.x > %d AND b.x > a.x
WITHIN %d h
"""
FIRST = date(2015, 1, 1)
WAYS = {
    "status": ["status"],
    "status --state stale": ["status", "--state", "stale"],
    "status --json": ["status", "--json"],
    "one SQL query": ["sql", "SELECT definition, state, why, count(*) FROM ops.status GROUP BY ALL ORDER BY ALL"],
}


def main() -> None:
    """Make the rows, run the commands, and print the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("years", 10), ("patterns", 100), ("runs", 3)):
        parser.add_argument(f"--{name}", type=int, default=default)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="chainlake-status-") as folder:
        os.environ |= {"CHAINLAKE_HOME": folder, "CHAINLAKE_CONFIG": f"{folder}/config"}
        Path(folder, "config").mkdir()
        pairs = make(Home.from_env(), args.patterns, args.years)
        print(f"{pairs} pairs of definition and day; wall and CPU seconds of {args.runs} runs, and peak memory")
        found = {}
        for name, words in WAYS.items():
            wall, cpu, peak = zip(*(ask(words) for _ in range(args.runs)), strict=True)
            found[name] = {
                "seconds": round(statistics.median(wall), 2),
                "cpu_seconds": round(statistics.median(cpu), 2),
                "peak_mib": max(peak),
            }
            print(
                f"{name:<24}{min(wall):6.2f} to {max(wall):5.2f} s {min(cpu):6.2f} to {max(cpu):5.2f} s CPU "
                f"{max(peak):6d} MiB"
            )
        print(json.dumps(found))


def make(home: Home, patterns: int, years: int) -> int:
    """Make patterns, days of events, and a row per pattern and day; some days are late, edited, failed or missing."""
    (home.config / "sources").mkdir()
    (home.config / "patterns").mkdir()
    (home.config / "sources" / "lab.yaml").write_text(SOURCE)
    for n in range(patterns):
        (home.config / "patterns" / f"p{n:03}.sase").write_text(PATTERN % (n, 1 + n % 30))
    days = [FIRST + timedelta(days=n) for n in range(365 * years)]
    late = set(days[100::397])

    def event_days(edition: str) -> list[dict[str, object]]:
        return [
            {"source": "lab", "day": day, "status": "complete", "rows": 1000, "duplicates": 0, "conflicts": 0,
             "superseded": 0, "events_version": 0, "checksum": f"{day}{edition if day in late else ''}"}
            for day in days
        ]  # fmt: skip

    before = EventDays.of("lab", event_days("first"))
    sources = load_sources(home)
    compiled, broken = load_patterns(home, sources)
    assert len(compiled) == patterns and not broken, broken
    # Days whose table is gone are stale, and those of a table at another version are suspect.
    for table in (events_table(sources["lab"]), raw_table(sources["lab"]), *(item.table for item in compiled)):
        ensure_table(home, table)

    def intervals() -> Iterator[dict[str, object]]:
        for n, item in enumerate(compiled):
            definition = item.definition
            for at, day in enumerate(days):
                if n % 10 == 3 and at % 500 == 7:
                    continue
                failed = n % 10 == 4 and at % 700 == 9
                yield {
                    "definition": definition.name, "day": day, "table_name": definition.table_name, "rows": at % 5,
                    "definition_hash": "edited" if n == 5 else definition.definition_hash, "added": 0, "changed": 0,
                    "engine_version": definition.engine_version, "withdrawn": 0, "published_version": 0,
                    "input_fingerprint": fingerprint(definition, day, before),
                    "status": "failed" if failed else "done", "reason": "no memory left" if failed else None,
                }  # fmt: skip

    read = {"source": "lab", "path": "all.csv", "file_id": "all", "load_id": "all", "outcome": "ok"}
    ops.append(home, "files", [read], "made")
    ops.append(home, "event_days", event_days(""), "made")
    rows = list(intervals())
    # As after daily runs: many commits, merged from time to time, and two rows for every day, since publishing is
    # recorded first.
    for start in range(0, len(rows), 20_000):
        part = rows[start : start + 20_000]
        ops.append(home, "intervals", [row | {"status": "publishing"} for row in part], "made")
        ops.append(home, "intervals", part, "made")
    return patterns * len(days)


def ask(words: list[str]) -> tuple[float, float, int]:
    """Wall seconds, CPU seconds and peak memory (MiB) of a command in its own process."""
    begin = time.monotonic()
    with subprocess.Popen([sys.executable, "-m", "jobs", *words], cwd=PROJECT, stdout=subprocess.DEVNULL) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(words)} failed with code {process.returncode}")
    return time.monotonic() - begin, usage.ru_utime + usage.ru_stime, usage.ru_maxrss // 1024


if __name__ == "__main__":
    main()
