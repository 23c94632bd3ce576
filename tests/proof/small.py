"""A small installation for the proofs: a source with dated files, two patterns, a model; and how two are compared."""

from __future__ import annotations

import csv
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from deltalake import DeltaTable

from chainlake.lake.records.defined.registered import registered_table
from chainlake.lake.records.staleness import status_rows
from chainlake.lake.upkeep.same import published_tables, same_tables
from chainlake.operations.status import all_definitions
from chainlake.paths import Home
from tests.steps.history import SOURCE, configured, day, pattern, readings

DAYS = 3
#: A late hour of the first day: the windows of its pairs reach into the second.
LATE_HOUR = 23
#: Readings that cannot be read, and that contradict the ones before them: there must be something to put aside.
_UNREADABLE = "oops"
_CONTRADICTION = 9.0


def in_folder(prefix: str, body: Callable[[Path], int]) -> int:
    """Run ``body`` in a new temporary folder and return its exit code; the folder is kept unless that is 0."""
    root, code = Path(tempfile.mkdtemp(prefix=prefix)), 1
    try:
        code = body(root)
    finally:
        if code == 0:
            shutil.rmtree(root)
        else:
            print(f"what is there is kept for a look: {root}", flush=True)
    return code


def installation(root: Path, lake: str | None = None) -> Home:
    """A home of its own with the source ``lab``, two patterns and a model; the environment points to it.

    Args:
        root: a folder that does not exist yet.
        lake: where its tables lie; in the folder if omitted.
    """
    (root / "config").mkdir(parents=True)
    os.environ["CHAINLAKE_HOME"] = str(root)
    os.environ["CHAINLAKE_LAKE"] = lake or str(root / "lake")
    os.environ["CHAINLAKE_CONFIG"] = str(root / "config")
    configured(Home.from_env(), near=pattern(), far=pattern("26 h", step=1.0))
    (root / "config" / "sources" / "lab.yaml").write_text(SOURCE + "path: 'lab_(?P<date>\\d{8})(?:_late)?'\n")
    return Home.from_env()


def deliver(folder: Path, n: int, *, late: bool = False, all_hours: bool = False) -> Path:
    """Write the file of day ``n``, an hour old.

    Args:
        folder: where to.
        n: number of the day.
        late: the file with what comes late of this day, and nothing else.
        all_hours: nothing of the day comes late.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"lab_{day(n):%Y%m%d}{'_late' if late else ''}.csv"
    rows = [row for row in readings(n) if all_hours or (n == 0 and row["ts"].hour == LATE_HOUR) == late]
    lines = [[f"{row['ts']:%Y-%m-%dT%H:%M:%S}", row["sensor"], repr(row["x"]), repr(row["y"])] for row in rows]
    lines += [[*lines[0][:2], str(_CONTRADICTION), lines[0][3]], [*lines[1][:2], _UNREADABLE, lines[1][3]]]
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([["ts", "sensor", "x", "y"], *lines])
    an_hour_ago = time.time() - 3600
    os.utime(path, (an_hour_ago, an_hour_ago))
    return path


def differences(first: Home, second: Home) -> list[str]:
    """What is not the same in two installations, and the days that are not done in either; a line each."""
    return same_tables(first, second) + [line for home in (first, second) for line in _unfinished(home)]


def _unfinished(home: Home) -> list[str]:
    rows = status_rows(home, all_definitions(home)[0])
    return [
        f"{home.root.name}: {row.definition} {row.day} is {row.state}"
        for row in rows
        if row.state not in ("done", "waiting")
    ]


def print_tables(first: Home, second: Home) -> None:
    """Print the tables that are compared, with the rows and the version each side has."""
    print(f"  {'table':<24} {first.root.name:>20} {second.root.name:>20}")
    for schema, name in published_tables(first):
        sides = []
        for home in (first, second):
            table = DeltaTable(_path(home, schema, name))
            sides.append(f"{table.to_pyarrow_table().num_rows} rows, version {table.version()}")
        print(f"  {schema + '.' + name:<24} {sides[0]:>20} {sides[1]:>20}")


def control(first: Home, second: Home) -> bool:
    """Whether the comparison sees one altered row of one table: the start of one match, a second earlier."""
    table = DeltaTable(_path(second, "matches", "near"))
    row = min(table.to_pyarrow_table(columns=["match_id"])["match_id"].to_pylist())
    table.update(updates={"start_ts": "start_ts - interval '1 second'"}, predicate=f"match_id = '{row}'")
    seen = same_tables(first, second)
    table.restore(table.version() - 1)
    print("control: one value of one match altered: " + ("; ".join(seen) or "NOT SEEN"))
    return len(seen) == 1 and not same_tables(first, second)


def _path(home: Home, schema: str, name: str) -> str:
    return home.table(schema, registered_table(home, name) if schema == "matches" else name)
