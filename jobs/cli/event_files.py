"""Patterns and files of events on the command line: what ``match`` and ``explain`` share."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from jobs.cep.places import NUMBER
from jobs.errors import DefinitionError, InputError, UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from jobs.cep import Pattern


def add_column_arguments(parser: argparse.ArgumentParser) -> None:
    """How files of events are read."""
    parser.add_argument("--source", metavar="NAME", help="read the files as this source of dags/config/sources does")
    parser.add_argument("--id", metavar="COLUMN", help="column of the event id (default: event_id or id)")
    parser.add_argument("--type", metavar="COLUMN", help="column of the event type (default: type)")
    parser.add_argument("--ts", metavar="COLUMN", help="column of the time (default: ts)")
    parser.add_argument(
        "--ts-unit",
        choices=("s", "ms", "us", "ns"),
        help="times are numbers that count these since 1970 UTC (default: texts, timestamps, or whole seconds)",
    )


def pattern_text(given: str) -> tuple[str, str, str | None]:
    """Text, name and file of a pattern that was given as a file or as the query itself."""
    if given.lstrip().upper().startswith(("PATTERN ", "PATTERN\n", "---")):
        return given, "pattern", None
    path = Path(given)
    if not given.strip():
        raise UsageError("the pattern is empty", hint="Give a file or a query in quotes.")
    try:
        return path.read_text(encoding="utf-8"), path.stem, given
    except OSError as error:
        raise UsageError(
            f"the pattern cannot be read: {error.strerror}", file=given, hint="Give a file or a query in quotes."
        ) from None
    except UnicodeDecodeError:
        raise InputError("the pattern is not UTF-8 text", file=given) from None


def read(args: argparse.Namespace, files: Sequence[Path], text: str = "") -> pa.Table:
    """The events of the files, as the column arguments say; with those histories of the source that ``text`` names."""
    if args.source is not None:
        if args.id or args.type or args.ts or args.ts_unit:
            raise UsageError(
                "--source says how the columns are called", hint="Leave out --id, --type, --ts and --ts-unit."
            )
        from jobs.cli.landed_files import read_landed

        return _derived(args.source, read_landed(args.source, files), text)
    from jobs.cep.files import read_events

    for option, column in (("--id", args.id), ("--type", args.type), ("--ts", args.ts)):
        if column == "":
            raise UsageError(f"{option} needs the name of a column")
    return read_events(files, id_column=args.id, type_column=args.type, ts_column=args.ts, ts_unit=args.ts_unit)


def _derived(source_name: str, events: pa.Table, text: str) -> pa.Table:
    """The events of a source with the histories that the text of a pattern names."""
    import numpy as np

    from jobs.cep.arrow import int64_array
    from jobs.cep.history import add_histories
    from jobs.paths import Home
    from jobs.sources import find_source

    source = find_source(Home.from_env(), source_name)
    wanted = [one for one in source.derived if re.search(rf"\.{one.name}\b", text)]
    if not wanted or not len(events):
        return events
    # Equal events of one key and time stand in the order of the files, as ``seq`` has it in the events table.
    ordered = events.append_column("seq", int64_array(np.arange(len(events))))
    return add_histories(ordered, [source.key], wanted).drop_columns(["seq"])


def compiled(text: str, name: str, file: str | None, events: pa.Table, files: Sequence[Path] = ()) -> Pattern:
    """What ``pattern_text`` gave as a pattern, checked against the events' columns (if there are events).

    Raises:
        DefinitionError: the pattern is wrong, or does not fit the events.
        InputError: it would fit them, were it not for a cell that is no number in a column of numbers.
    """
    import pyarrow as pa

    from jobs.cep.pattern import compile_pattern

    strict = "ts" not in events.column_names or not pa.types.is_integer(events.schema.field("ts").type)
    columns = {field.name: field.type for field in events.schema if field.name != "event_id"} if len(events) else None
    spoilt = _spoilt(events)
    try:
        pattern = compile_pattern(text, name=name, file=file, columns=columns, strict_units=strict)
    except DefinitionError:
        if spoilt:
            with suppress(DefinitionError):
                meant = (columns or {}) | dict.fromkeys(spoilt, pa.float64())
                pattern = compile_pattern(text, name=name, file=file, columns=meant, strict_units=strict)
                raise _blame(sorted(pattern.mentioned & spoilt), files) from None
        raise
    if pattern.mentioned & spoilt:
        columns_of_texts = sorted(pattern.mentioned & spoilt)
        print(f"{', '.join(columns_of_texts)} is compared as text: {_blame(columns_of_texts, files)}", file=sys.stderr)
    return pattern


def _spoilt(events: pa.Table) -> set[str]:
    """Columns of texts at least half of which are numbers."""
    import pyarrow as pa
    import pyarrow.compute as pc

    found = set()
    for field in events.schema:
        if field.name not in ("event_id", "type", "ts") and pa.types.is_string(field.type):
            column = events[field.name]
            numbers = pc.sum(pc.match_substring_regex(column, NUMBER.pattern.replace(r"\Z", "$"))).as_py() or 0
            if 2 * numbers >= len(column) - column.null_count > numbers:
                found.add(field.name)
    return found


def _blame(columns: Sequence[str], files: Sequence[Path]) -> InputError:
    """The first cell of these columns that is no number."""
    from jobs.cep.files import not_a_number

    errors = (not_a_number(file, column) for column in columns for file in files)
    return next((e for e in errors if e), InputError(f"{', '.join(columns)} holds texts beside numbers"))


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
