"""``docs/tables.md``, made from the table definitions: ``python -m chainlake.schemas.documents.page [FILE]``."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from chainlake.schemas import ops
from chainlake.schemas.episodes import episodes_table
from chainlake.schemas.events import events_table
from chainlake.schemas.matches import MatchName, MatchShape, matches_table
from chainlake.schemas.models import SHARED
from chainlake.schemas.quarantine import quarantine_table
from chainlake.schemas.ranked import ranked_table
from chainlake.schemas.raw import raw_table
from chainlake.schemas.source import AttributeLike
from chainlake.schemas.table import TIMESTAMP, Column, Table

_HEAD = """\
# Tables

<!-- Made by `make docs` from the files in schemas/; edit those. -->

All tables of a lake, as `schemas/` defines them. They are Delta tables at `lake/<schema>/<name>/`; comments of tables,
columns, and fields inside columns are in the tables, too, as they were when a table was made: `DESCRIBE` shows those of
columns, `DeltaTable(path).schema()` all. An event in a match has the comments that `events.<source>` has. **Bold**
columns are the key. *Volatile* columns say when or from which file a row was written; they are left out wherever tables
are compared or checksummed ([Same tables](semantics.md#same-tables)). Times are microseconds in UTC, days are UTC days;
other units are in the meaning. Hashes have 128 bits, written as 32 hexadecimal digits.

Names in angle brackets stand for those of your definitions: the shipped source `stock` has the key `ticker`, the
attributes `open`, `high`, `low`, `close`, `volume`, and the tables `raw.stock`, `events.stock` and `quarantine.stock`.
"""

_VIEWS = """\
## Views

`chainlake sql` and `Lake` have these views beside the tables; they are made when asked for, and stored nowhere.

- `matches.all`: the rows of all match tables: pattern, match_id, start_ts, end_ts, decision_ts, and `events`, a map
  from names to lists of event ids.
- `episodes.<pattern>_open`: the episodes that are not decided at the end of the last day that is done; `day` says which
  one.
- `ranked.<pattern>_scopes`: the lists of a ranking: how many matches each has, the score of the last one (`theta`), and
  whether it can still change (`provisional`).
- `ranked.<pattern>_matches`: the best matches with the events that they bind and their measures, list by list.
- `matches.<pattern>_ordered`, `matches.<pattern>_consumed`: of a pattern that uses events up, its matches in the order
  in which they are published, and the events that they use up.
- `matches.<pattern>_flat`: a row per match without structs and arrays, for programs that know columns only: `a_ts`,
  `a_close`; of several events `b_count`, `b_first_ts`, `b_last_ts` ([readers.md](readers.md)).
- `matches.<pattern>_origin`, `episodes.<pattern>_origin`, `ranked.<pattern>_origin`, `models.changes_origin`,
  `models.metrics_origin` and those of the other tables of models: the rows with the definition, engine, input,
  version and run they came from ([replay.md](replay.md)).
- `models.zones`: the safe zones of every node, from when until when each was in force.
- `ops.current_<name>`: of `ops.<name>`, the row with the highest `seq` of each key.
- `ops.status`: the [state](semantics.md#staleness) of every day of every definition.
"""

_FAMILIES = (
    ("Rows and events", "One table per source ([From files to events](semantics.md#part-3-from-files-to-events))."),
    ("Matches", "One table per pattern ([Owner of a match](semantics.md#owner-of-a-match))."),
    (
        "Episodes",
        "One table per pattern that says EPISODES ([Episodes](semantics.md#episodes)).",
    ),
    (
        "Rankings",
        "One table per pattern that says RANK BY ([Rankings in a lake](semantics.md#rankings-in-a-lake)). Its match "
        "table keeps the matches that can be among the best, with the columns `per`, `distinct_on`, `score_<n>` and "
        "`criterion_<n>`, by which they are compared.",
    ),
    ("Models and monitors", "Shared by all models and monitors ([monitors.md](monitors.md))."),
    (
        "Operations",
        "Append-only logs: what was read, computed from what, and published as which version "
        "([Operations tables](semantics.md#operations-tables)).",
    ),
)


@dataclass(frozen=True)
class _Attribute:
    """Stands for every attribute of a source."""

    name: str = "<attribute>"
    arrow_type: pa.DataType = pa.null()
    unit: str | None = None
    description: str | None = "One column per attribute of the source, with its type, description and unit."


@dataclass(frozen=True)
class _Source:
    """Stands for every source."""

    name: str = "<source>"
    key: str = "<key>"
    attributes: Sequence[AttributeLike] = (_Attribute(),)


def families() -> list[tuple[str, str, tuple[Table, ...]]]:
    """Heading, introduction and tables of each family; one table stands for all tables of sources or patterns."""
    source = _Source()
    fields = (
        ("event_id", pa.string()),
        ("ts", TIMESTAMP),
        ("type", pa.string()),
        ("<key>", pa.string()),
        ("<attribute>", pa.null()),
    )
    names = (MatchName("<name>", False, fields), MatchName("<repeated name>", True, fields))
    meanings = {column.name: column.comment for column in events_table(source).columns}
    matches = matches_table(MatchShape("<pattern>", 1, "<source>", names, meanings=meanings))
    tables = (
        (raw_table(source), events_table(source), quarantine_table(source)),
        (matches,),
        (episodes_table("<pattern>", "<source>"),),
        (ranked_table("<pattern>", "<source>"),),
        SHARED,
        tuple(ops.ALL.values()),
    )
    return [(*family, found) for family, found in zip(_FAMILIES, tables, strict=True)]


def type_name(kind: pa.DataType) -> str:
    """An Arrow type by the name that SQL users know; ``as declared`` if a definition decides it."""
    if pa.types.is_struct(kind):
        return f"struct({', '.join(f'{field.name} {type_name(field.type)}' for field in kind)})"
    if pa.types.is_list(kind):
        return f"array({type_name(kind.value_type)})"
    if pa.types.is_map(kind):
        return f"map({type_name(kind.key_type)}, {type_name(kind.item_type)})"
    named = {pa.null(): "as declared", pa.int64(): "long", TIMESTAMP: "timestamp", pa.date32(): "date"}
    return named.get(kind, {"bool": "boolean"}.get(str(kind), str(kind)))


def page() -> str:
    """The text of ``docs/tables.md``."""
    parts = [_HEAD]
    for heading, introduction, tables in families():
        parts.append(f"## {heading}\n\n{introduction}\n")
        parts += ["\n".join(_section(table)) + "\n" for table in tables]
    return "\n".join([*parts, _VIEWS])


def _section(table: Table) -> Iterator[str]:
    yield f"### `{table.path_name}`\n"
    yield _cell(table.comment)
    yield ""
    yield "| column | type | may be null | meaning |"
    yield "|---|---|---|---|"
    for column in table.columns:
        null = "yes" if column.nullable else ""
        yield f"| {_name(table, column)} | {_cell(type_name(column.type))} | {null} | {_cell(column.comment)} |"
    if table.partition_by:
        yield f"\nPartitioned by {', '.join(f'`{name}`' for name in table.partition_by)}."
    if table.checks:
        yield f"\nConstraints: {'; '.join(f'`{check.sql}`' for check in table.checks)}."


def _name(table: Table, column: Column) -> str:
    name = f"`{column.name}`"
    return f"**{name}**" if column.name in table.key else f"*{name}*" if column.volatile else name


def _cell(text: str) -> str:
    for character, shown in (("<", "&lt;"), (">", "&gt;"), ("|", "\\|")):
        text = text.replace(character, shown)
    return text


def main(arguments: Sequence[str]) -> int:
    """Write the page to the given file, or to ``docs/tables.md``."""
    Path(arguments[0] if arguments else "docs/tables.md").write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
