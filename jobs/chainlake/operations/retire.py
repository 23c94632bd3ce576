"""Retires a pattern or a model whose file has been removed: its days are marked, its rows kept or dropped.

This happens under the table's lock, so that a run that is still publishing ends first. A run that is still computing
for the removed file will publish nothing, since publishing checks that the definition is still there.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Literal

from chainlake.cep.language.front_matter import read_front_matter
from chainlake.cep.language.parsing.query import parse
from chainlake.cep.language.source_text import SourceText
from chainlake.definitions.errors import UnknownDefinition
from chainlake.errors import DefinitionError, InputError
from chainlake.lake.delta import tables
from chainlake.lake.delta.log import marked
from chainlake.lake.delta.own_files import remove_table
from chainlake.lake.delta.reader import open_table
from chainlake.lake.delta.where import delta_literal
from chainlake.lake.locks import file_lock
from chainlake.lake.records import ops
from chainlake.lake.records.defined.registered import later_versions
from chainlake.lake.records.runs import phase
from chainlake.lake.upkeep.maintain import lock_of
from chainlake.paths import Home
from chainlake.run.results import RetiredDefinition
from chainlake.schemas.models import SHARED
from chainlake.schemas.ops_rows import IntervalRow
from chainlake.storage.resolve import storage_of

STEP: Literal["retire"] = "retire"
_KEPT, _DROPPED = "retired, rows kept", "retired, rows dropped"
#: Kind → folder and suffix of its files.
FILES = {
    "pattern": ("patterns", ".sase"),
    "episodes": ("patterns", ".sase"),
    "ranked": ("patterns", ".sase"),
    "model": ("models", ".yaml"),
}
#: Kinds of results made from a pattern's published matches; they are also the schemas of their tables.
_DERIVED = ("episodes", "ranked")
#: Tables that hold rows of several models, in the order in which publishing locks them, each with the column that
#: names the model.
_SHARED = {(table.schema, table.name): table.key[0] for table in SHARED}


class StillInUse(InputError):
    """A definition to be retired still has its file, so that the next run would compute it again."""

    @classmethod
    def of(cls, definition: str, file: Path) -> StillInUse:
        """For the definition and its file."""
        return cls(
            f"{definition} is in use: its file is still there",
            file=file,
            hint="Remove the file first; with it there, the next run would compute all days again.",
        )


def retire(home: Home, name: str, *, drop: bool, run_id: str) -> RetiredDefinition:
    """Retire a definition.

    Args:
        home: the installation.
        name: ``pattern/NAME``, with its episodes and ranking, or ``model/NAME``; just ``NAME`` if only one of these was
            ever published; ``episodes/NAME`` or ``ranked/NAME`` if the pattern itself stays.
        drop: remove the rows: a pattern's tables, or a model's rows in the model tables. Otherwise they stay.
        run_id: id under which the run is logged.

    Returns:
        what was done.

    Raises:
        UsageError: nothing was ever published under the name, or both a pattern and a model have it.
        InputError: its file is still in ``dags/config``.
        InfrastructureError: a table was in use all the time.
    """
    definition = _definition(home, name)
    kind, _, short = definition.partition("/")
    folder, ending = FILES[kind]
    file = home.config / folder / f"{short}{ending}"
    if file.exists() and (kind not in _DERIVED or _says(kind, file)):
        raise StillInUse.of(definition, file)
    with ExitStack() as locks, phase(home, run_id, source="", step=STEP, phase=STEP, definition=definition) as report:
        owned = _tables(home, kind, short)
        # Locks are taken in this order; all versions of a match table share one lock.
        for purpose in dict.fromkeys(lock_of(schema, table) for schema, table in owned):
            locks.enter_context(file_lock(home, purpose))
        # A pattern's episodes and ranking are retired with it.
        mine = [definition, *(f"{one}/{short}" for one in _DERIVED)] if kind == "pattern" else [definition]
        recorded = [row for name in mine for row in ops.current(home, "intervals", definition=name)]
        rows = [row for row in recorded if row["status"] != "retired"]
        ops.append(home, "intervals", [_retired(row, False) for row in rows], run_id)
        dropped: list[str | None] = []
        if drop:
            # The first version goes last: while it is there, the others are known as its versions.
            dropped = [_drop(home, schema, table, short) for schema, table in reversed(owned)]
            # Recorded only when the rows are gone, so that after a kill the record never claims more than was done.
            recorded = [row for name in mine for row in ops.current(home, "intervals", definition=name)]
            kept = [row for row in recorded if row["reason"] == _KEPT]
            ops.append(home, "intervals", [_retired(row, True) for row in kept], run_id)
        report.rows_out = len(rows)
    return {"definition": definition, "days": len(rows), "dropped": [name for name in dropped if name]}


def _says(kind: str, file: Path) -> bool:
    """Whether a pattern has EPISODES or RANK BY; a file that cannot be read counts as yes."""
    source = SourceText(file.read_text(encoding="utf-8"), str(file))
    try:
        _, start = read_front_matter(source)
        found = parse(source, start)
        return (found.episodes if kind == "episodes" else found.ranking) is not None
    except DefinitionError:
        return True


def _definition(home: Home, name: str) -> str:
    known = set(ops.current_table(home, "intervals", columns=["definition"])["definition"].to_pylist())
    found = [name] if name in known else sorted(known & {f"{kind}/{name}" for kind in ("pattern", "model")})
    if len(found) > 1:
        raise UnknownDefinition.two_kinds(name, found)
    if not found:
        raise UnknownDefinition.never_published(name, sorted(known))
    return found[0]


def _tables(home: Home, kind: str, name: str) -> list[tuple[str, str]]:
    """The tables that hold the definition's rows, in the order in which publishing locks them."""
    if kind == "model":
        return [place for place in _SHARED if tables.exists(home, *place)]
    derived = [(one, name) for one in _DERIVED if kind in ("pattern", one) and tables.exists(home, one, name)]
    if kind in _DERIVED:
        return derived
    versions = [("matches", f"{name}/v{number}") for number in later_versions(home, name)]
    return [("matches", name), *versions, *derived]


def _retired(row: IntervalRow, drop: bool) -> IntervalRow:
    return {
        **ops.again(row),
        "rows": 0 if drop else row["rows"],
        "added": None,
        "withdrawn": None,
        "changed": None,
        "status": "retired",
        "reason": _DROPPED if drop else _KEPT,
    }


def _drop(home: Home, schema: str, table: str, name: str) -> str | None:
    """Remove a pattern's table, or a model's rows in a table; returns what was removed, ``None`` for nothing."""
    column = _SHARED.get((schema, table))
    if column is not None:
        rows = open_table(home, schema, table, to_write=True)
        gone = rows.delete(f"{column} = {delta_literal(name)}", commit_properties=marked("retire"))["num_deleted_rows"]
        return f"{gone} rows of {schema}.{table}" if gone else None
    path = home.table(schema, table)
    if not storage_of(path).names(path):
        return None
    left = remove_table(path)
    kept = f" (left: {', '.join(left)}, which Delta did not write)" if left else ""
    return f"{schema}.{table}{kept}"
