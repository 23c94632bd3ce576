"""Errors of readers that met a damaged table, turned into one that names the table, the file and the remedy.

Delta, Arrow, DuckDB and Spark each word such an error differently, many without the file. So when one of them
gives up, the lake's logs and files are searched, and the user is told what is damaged there. That costs time only after
something has failed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from chainlake.lake.delta.damaged import DamagedTable
from chainlake.lake.sql.scan import list_tables
from chainlake.lake.upkeep.check_table import inspect_table
from chainlake.lake.upkeep.contents import Contents
from chainlake.paths import Home
from chainlake.storage.errors import store_error

SCHEMAS = ("ops", "raw", "events", "quarantine", "matches", "episodes", "ranked", "models", "alerts")
#: Packages whose errors a damaged table can cause; delta-rs calls its own ``_internal``, and logs are JSON.
_READERS = ("json", "_internal", "deltalake", "pyarrow", "duckdb", "_duckdb", "py4j", "pyspark")
#: Words found in errors about the inside of a data file.
_INSIDE = re.compile(
    r"parquet|crc|corrupt|snappy|decompress|thrift|tprotocol|page|magic|footer|deserializ|end of|malformed|utf", re.I
)


def explained(home: Home, error: Exception) -> Exception:
    """The error itself, or one that names the damaged table or the failing store if that caused it.

    Args:
        home: the installation.
        error: the error that stopped a verb.
    """
    if isinstance(error, DamagedTable):
        return error
    chain = list(_chain(error))
    for one in chain:
        if (failed := store_error(one, home.lake)) is not None:
            # A store that does not answer cannot be searched.
            failed.__cause__ = error
            return failed
    if not any(_of_reader(one) for one in chain):
        return error
    text = "\n".join(str(one) for one in chain)
    found = list(_damage(home))
    if not found and _INSIDE.search(text):
        found = list(_inside(home, text))
    if not found:
        return error
    # What the error mentions comes first.
    found.sort(key=lambda pair: not _spoken_of(text, *pair))
    damaged = DamagedTable.of(*found[0], more=len(found) - 1)
    damaged.__cause__ = error
    return damaged


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _of_reader(error: BaseException) -> bool:
    return isinstance(error, OSError) or type(error).__module__.partition(".")[0] in _READERS


def _spoken_of(text: str, table: str, what: str) -> bool:
    schema, _, name = table.partition(".")
    file = what.partition(":")[0].removeprefix("data file ").rpartition("/")[2]
    return file in text or f"/{schema}/{name}" in text or table in text


def _damage(home: Home) -> Iterator[tuple[str, str]]:
    """Tables whose log or data files are damaged or missing, each with what is wrong."""
    for schema in SCHEMAS:
        for name in list_tables(home, schema):
            inspected = inspect_table(home, schema, name, strangers=False)
            inspected.note_bad_files()
            for one in inspected.findings:
                yield one.table, one.what


def _inside(home: Home, text: str) -> Iterator[tuple[str, str]]:
    """Tables with a data file that cannot be read; only tables that the error names, if it names any."""
    tables = [(schema, name) for schema in SCHEMAS for name in list_tables(home, schema)]
    named = [(schema, name) for schema, name in tables if f"/{schema}/{name}" in text]
    for schema, name in named or tables:
        contents = Contents(home, schema, name)
        for _ in contents.batches():
            # Reading fills ``contents.bad``; the rows do not matter.
            pass
        for bad in contents.bad:
            yield f"{schema}.{name}", f"data file {bad.path}: {bad.what}"
