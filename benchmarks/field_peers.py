"""Runs the examples of docs/coming-from.md in the engines that they come from, if these are Python packages.

``python -m benchmarks.field_peers`` needs an environment with the packages ``eql`` and ``chdb``
(benchmarks/requirements.txt). Each query runs on the events of the example with that title, and its result is compared
with the matches that the page shows, which tests compare with the product's. Exits with 1 if one differs.

Left out are absence and ``sample`` in EQL, which the package does not have (``join`` stands in for the latter).
"""

from __future__ import annotations

import csv
import io
import json
import re
import sys
import tempfile
from datetime import datetime
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[1] / "docs" / "coming-from.md"
_BLOCKS = re.compile(
    r"```events ?\S*\n(.*?)^```\n```pattern\n.*?^```\n```matches\n(.*?)^```$", re.MULTILINE | re.DOTALL
)

#: Beginning of an example's title → the query. For EQL, the ids of each match are compared, in any order.
EQL = {
    "A program is written": "sequence by user, path with maxspan=15m "
    "[File where wildcard(path, '*.exe')] [Process where true]",
    "Three failures in a row": "sequence by user with maxspan=5m [Auth where outcome == 'failure'] "
    "[Auth where outcome == 'failure'] [Auth where outcome == 'failure'] [Auth where outcome == 'success']",
    "Events of one host": "join by host [File where true] [Net where true] [Reg where true]",
    "A download by a shell": "sequence by host, pid with maxspan=1m [Start where name == 'cmd.exe'] [Net where true] "
    "until [Stop where true]",
}
_SECONDS = "toUInt64(toUnixTimestamp(t))"
_MS = "toUInt64(toUnixTimestamp64Milli(t))"
#: Beginning of a title → ClickHouse's query, its key, and the same numbers by key, made from our matches.
CLICKHOUSE = {
    "How far did each user": (
        f"SELECT user, windowFunnel(3600)({_SECONDS}, type = 'Login', type = 'Search', type = 'Order')",
        "user",
        lambda rows: {row["user"]: [row["level"]] for row in rows},
    ),
    "A longest gap": (
        f"SELECT '', sequenceCount('(?1)(?t<=100)(?2)(?t<=200)(?3)')({_MS}, type = 'A', type = 'B', type = 'C')",
        "",
        lambda rows: {"": [len(rows)]},
    ),
    "Graduated": (
        "SELECT person, countIf(type = 'Graduated') > 0 AND countIf(type = 'Entered') = 0",
        "person",
        lambda rows: {"ann": [0], "bob": [len(rows)]},
    ),
    "Who came back": (
        "SELECT user, r[2], r[3] FROM (SELECT user, retention(toDate(t, 'UTC') = '2025-01-01', "
        "toDate(t, 'UTC') = '2025-01-02', toDate(t, 'UTC') = '2025-01-03') AS r",
        "user",
        lambda rows: {row["user"]: [row["second"], row["third"]] for row in rows} | {"eve": [0, 0]},
    ),
    "How often one thing": (
        f"SELECT user, sequenceCount('(?1)(?2)')({_SECONDS}, type = 'Search', type = 'Click')",
        "user",
        lambda rows: {"ann": [len([row for row in rows if row["s"] < "6"])], "bob": [1]},
    ),
}


def examples() -> dict[str, tuple[str, list[dict[str, Any]]]]:
    """Title → events, as CSV, and matches."""
    parts = PAGE.read_text(encoding="utf-8").split("\n### ")[1:]
    found = {part.split("\n")[0]: _BLOCKS.search(part) for part in parts}
    return {title: (one[1], [json.loads(row) for row in one[2].splitlines()]) for title, one in found.items() if one}


def eql_ids(query: str, events: str) -> list[list[str]]:
    """The sorted ids of each match."""
    import eql

    rows = sorted(csv.DictReader(io.StringIO(events)), key=lambda row: datetime.fromisoformat(row["ts"]))
    engine, found = eql.PythonEngine({"flatten": False}), []
    engine.add_queries([eql.parse_query(query)])
    engine.add_output_hook(lambda result: found.append(sorted(event.data["id"] for event in result.events)))
    made = []
    for row in rows:
        tenths_of_us = int(datetime.fromisoformat(row["ts"]).timestamp() * 10_000_000)
        made.append(eql.Event(row["type"], tenths_of_us, {name: value for name, value in row.items() if value}))
    engine.stream_events(made, finalize=True)
    return sorted(found)


def clickhouse_rows(query: str, key: str, events: str) -> dict[str, list[int]]:
    """Key → numbers that the query gives."""
    import chdb

    with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
        file.write(events)
        file.flush()
        columns = ", ".join(f"{name} String" for name in events.split("\n")[0].split(","))
        rows = f"file('{file.name}', 'CSVWithNames', '{columns}')"
        source = f"(SELECT *, parseDateTime64BestEffort(ts, 3, 'UTC') AS t FROM {rows})"
        group = f" GROUP BY {key}" if key else ""
        closing = ")" if query.count("(") > query.count(")") else ""
        answer = str(chdb.query(f"{query} FROM {source}{group}{closing}", "CSV"))
    return {row[0]: [int(one) for one in row[1:]] for row in csv.reader(io.StringIO(answer))}


def _ids(match: dict[str, Any]) -> list[str]:
    return sorted(one for value in match.values() for one in (value if isinstance(value, list) else [value]))


def main() -> int:
    """Run the comparison; returns 1 if an engine gives something else."""
    differ = False
    known = examples()
    asked: list[tuple[str, str, Any]] = [(begin, query, None) for begin, query in EQL.items()]
    asked += [(begin, query, (key, wanted)) for begin, (query, key, wanted) in CLICKHOUSE.items()]
    for begin, query, counted in asked:
        ((title, (events, matches)),) = ((title, one) for title, one in known.items() if title.startswith(begin))
        found: Any = eql_ids(query, events) if counted is None else clickhouse_rows(query, counted[0], events)
        wanted = sorted(map(_ids, matches)) if counted is None else counted[1](matches)
        differ |= found != wanted
        print(f"{'same' if found == wanted else 'DIFFERENT'}  {title}: {found}")
    return int(differ)


if __name__ == "__main__":
    sys.exit(main())
