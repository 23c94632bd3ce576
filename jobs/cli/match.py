"""``python -m jobs match``: find a pattern in plain files; no Spark, no lake."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from jobs.errors import InputError, UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from jobs.cep import Pattern

HELP = (
    "Find a pattern in files of events and print each match as one JSON line (name: event id, or a list of ids for a "
    "repeated name). PATTERN is a file or the query itself; its front matter may be left out. FILEs are JSON lines, "
    "CSV or Parquet, plain or gzipped; with --source NAME they are files as they are landed for that source. Events "
    "without an id are called FILE:ROW, or FILE:LINE with --source."
)
EXAMPLE = (
    "  python -m jobs match dags/config/patterns/NAME.sase readings.csv --id reading --ts time\n"
    "  python -m jobs match \"PATTERN SEQ(Login a, Alarm b) WHERE a.user = b.user WITHIN 5 min\" events.jsonl"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The pattern, the files and how their columns are called."""
    parser.add_argument("pattern", metavar="PATTERN", help="a pattern file, or a query that begins with PATTERN")
    parser.add_argument("files", metavar="FILE", nargs="+", type=Path, help="files of events")
    parser.add_argument("--source", metavar="NAME", help="read the files as this source of dags/config/sources does")
    parser.add_argument("--id", metavar="COLUMN", help="column of the event id (default: event_id or id)")
    parser.add_argument("--type", metavar="COLUMN", help="column of the event type (default: type)")
    parser.add_argument("--ts", metavar="COLUMN", help="column of the time (default: ts)")


def run(args: argparse.Namespace) -> int:
    """Print the matches."""
    import pyarrow as pa

    from jobs.cep.kernel import find
    from jobs.cep.library import as_dicts, from_table
    from jobs.cep.pattern import compile_pattern

    text, name, file = _pattern_text(args.pattern)
    if args.source is not None:
        if args.id or args.type or args.ts:
            raise UsageError("--source says how the columns are called", hint="Leave out --id, --type and --ts.")
        events = _landed(args.source, args.files)
    else:
        from jobs.cep.files import read_events

        events = read_events(args.files, id_column=args.id, type_column=args.type, ts_column=args.ts)
    strict = "ts" not in events.column_names or not pa.types.is_integer(events.schema.field("ts").type)
    columns = {field.name: field.type for field in events.schema if field.name != "event_id"} if len(events) else None
    pattern = compile_pattern(text, name=name, file=file, columns=columns, strict_units=strict)
    if not len(events):
        return 0
    table, ids = from_table(_with_type(events, pattern))
    for batch in find(pattern, table):
        sys.stdout.writelines(json.dumps(found, default=str) + "\n" for found in as_dicts(pattern, batch, ids))
    sys.stdout.flush()
    return 0


def _pattern_text(given: str) -> tuple[str, str, str | None]:
    """Text, name and file of the pattern."""
    if given.lstrip().upper().startswith(("PATTERN ", "PATTERN\n", "---")):
        return given, "pattern", None
    path = Path(given)
    try:
        return path.read_text(encoding="utf-8"), path.stem, given
    except OSError as error:
        raise UsageError(
            f"the pattern cannot be read: {error.strerror}", file=given, hint="Give a file or a query in quotes."
        ) from None
    except UnicodeDecodeError:
        raise InputError("the pattern is not UTF-8 text", file=given) from None


def _with_type(events: pa.Table, pattern: Pattern) -> pa.Table:
    """Events without a type are of the pattern's type, if it has only one."""
    from jobs.cep.arrow import text_array

    if "type" in events.column_names:
        return events
    if len(pattern.event_types) > 1:
        raise InputError(
            f"the events have no type, and the pattern asks for {', '.join(sorted(pattern.event_types))}",
            key="type",
            hint="Name the column with --type.",
        )
    return events.append_column("type", text_array(list(pattern.event_types) * len(events)))


def _landed(source_name: str, files: list[Path]) -> pa.Table:
    """The rows of landed files, as ingest parses them; rows that it would put into quarantine are counted and said."""
    import pyarrow as pa

    from jobs.ingest.discovery import path_fields
    from jobs.ingest.identity import event_id
    from jobs.ingest.parse import BAD, ROW, Task, parse_file
    from jobs.paths import Home
    from jobs.sources import find_source

    source = find_source(Home.from_env(), source_name)
    kept = ["type", source.key, "ts", *(attribute.name for attribute in source.attributes)]
    tables = []
    bad = 0
    for file in files:
        if not file.is_file():
            raise InputError("there is no such file", file=file)
        fields, file_date, _, problem = path_fields(source, file.name)
        task = Task(file.name, str(file), None, file.name, file.name, fields, file_date, problem)
        for batch in parse_file(source, task):
            kinds = batch.column("_kind").to_numpy()
            bad += int((kinds == BAD).sum())
            rows = pa.Table.from_batches([batch]).filter(pa.array(kinds == ROW))
            lines = rows["line"].to_pylist()
            rows = rows.select(kept)
            if source.identity == "unique":
                ts = rows["ts"].cast(pa.int64()).to_pylist()
                parts = zip(rows["type"].to_pylist(), rows[source.key].to_pylist(), ts, strict=True)
                ids = [event_id(source.name, *part) for part in parts]
            else:
                ids = [f"{file.name}:{line}" for line in lines]
            tables.append(rows.add_column(0, "event_id", pa.array(ids, pa.string())))
    if bad:
        print(f"{bad} rows cannot be read as {source_name} and are left out", file=sys.stderr)
    return pa.concat_tables(tables)
