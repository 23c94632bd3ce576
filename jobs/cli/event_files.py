"""Patterns and files of events on the command line: what ``match`` and ``explain`` share."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from jobs.errors import InputError, UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from jobs.cep import Pattern


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
        from jobs.cli.landed_files import read_landed

        return read_landed(args.source, files)
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
