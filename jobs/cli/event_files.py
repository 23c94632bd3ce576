"""Patterns and files of events on the command line: what ``match`` and ``explain`` share."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from jobs.errors import InputError, UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from jobs.cep import Pattern

#: Reasons of quarantine that concern a file as a whole and leave no row of it; an empty file is none.
WHOLE = frozenset({"no_format", "damaged_archive", "unreadable", "bad_path_date"})


def add_column_arguments(parser: argparse.ArgumentParser) -> None:
    """How files of events are read."""
    parser.add_argument("--source", metavar="NAME", help="read the files as this source of dags/config/sources does")
    parser.add_argument("--id", metavar="COLUMN", help="column of the event id (default: event_id or id)")
    parser.add_argument("--type", metavar="COLUMN", help="column of the event type (default: type)")
    parser.add_argument("--ts", metavar="COLUMN", help="column of the time (default: ts)")


def pattern_text(given: str) -> tuple[str, str, str | None]:
    """Text, name and file of a pattern that was given as a file or as the query itself."""
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


def read(args: argparse.Namespace, files: Sequence[Path]) -> pa.Table:
    """The events of the files, as the column arguments say."""
    if args.source is not None:
        if args.id or args.type or args.ts:
            raise UsageError("--source says how the columns are called", hint="Leave out --id, --type and --ts.")
        return _landed(args.source, files)
    from jobs.cep.files import read_events

    return read_events(files, id_column=args.id, type_column=args.type, ts_column=args.ts)


def compiled(text: str, name: str, file: str | None, events: pa.Table) -> Pattern:
    """What ``pattern_text`` gave as a pattern, checked against the events' columns (if there are events)."""
    import pyarrow as pa

    from jobs.cep.pattern import compile_pattern

    strict = "ts" not in events.column_names or not pa.types.is_integer(events.schema.field("ts").type)
    columns = {field.name: field.type for field in events.schema if field.name != "event_id"} if len(events) else None
    return compile_pattern(text, name=name, file=file, columns=columns, strict_units=strict)


def with_type(events: pa.Table, pattern: Pattern) -> pa.Table:
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


def _landed(source_name: str, files: Sequence[Path]) -> pa.Table:
    """The rows of landed files, as ingest parses them; rows that it would put into quarantine are counted and said."""
    import pyarrow as pa

    from jobs.cep.files import regular_file
    from jobs.ingest.discovery import path_fields
    from jobs.ingest.identity import event_id
    from jobs.ingest.parse import BAD, ROW, Task, parse_file
    from jobs.paths import Home
    from jobs.sources import find_source

    source = find_source(Home.from_env(), source_name)
    kept = ["type", source.key, "ts", *(attribute.name for attribute in source.attributes)]
    tables = []
    bad: Counter[str] = Counter()
    for file in files:
        regular_file(file)
        fields, file_date, _, problem = path_fields(source, file.name)
        task = Task(file.name, str(file), None, file.name, file.name, fields, file_date, problem)
        for batch in parse_file(source, task):
            kinds = batch.column("_kind").to_numpy()
            refused = batch.filter(pa.array(kinds == BAD))
            bad.update(refused.column("_reason").to_pylist())
            if WHOLE & set(refused.column("_reason").to_pylist()):
                reason = refused.column("_reason")[0].as_py()
                raise InputError(
                    f"the file cannot be read as {source_name}: {reason}",
                    file=file,
                    hint=f"{source.file} says which files and columns the source has.",
                )
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
        reasons = ", ".join(f"{count} {reason}" for reason, count in sorted(bad.items()))
        print(f"{bad.total()} rows cannot be read as {source_name} and are left out: {reasons}", file=sys.stderr)
    return pa.concat_tables(tables)
