"""Patterns and files of events on the command line: what ``match`` and ``explain`` share."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from jobs.cep.places import TEXT, suffix_of
from jobs.errors import DefinitionError, InputError, UsageError
from jobs.words import counted

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
        return path.read_bytes().decode("utf-8"), path.stem, given
    except OSError as error:
        raise UsageError(
            f"the pattern cannot be read: {error.strerror}", file=given, hint="Give a file or a query in quotes."
        ) from None
    except UnicodeDecodeError as error:
        raise not_utf8(path, error) from None


def not_utf8(file: Path, error: UnicodeDecodeError) -> DefinitionError:
    """What is wrong with a pattern file that is no UTF-8 text."""
    line = error.object[: error.start].count(b"\n") + 1
    return DefinitionError("the pattern is not UTF-8 text", file=file, line=line, hint="Save the file as UTF-8.")


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


def compiled(
    text: str, name: str, file: str | None, events: pa.Table, files: Sequence[Path] = ()
) -> tuple[Pattern, pa.Table]:
    """What ``pattern_text`` gave as a pattern, checked against the events' columns (if there are events); the events.

    A column of a CSV file that is numbers for the most part, and is compared with numbers, is numbers: its other cells
    are missing values, and the first of them is named on stderr.

    Args:
        text, name, file: of the pattern.
        events: what was read.
        files: where from; those read as a source says are left out, for they have the types that it says.

    Raises:
        DefinitionError: the pattern is wrong, or does not fit the events.
    """
    import pyarrow as pa

    from jobs.cep.cells import as_numbers, meant_as_numbers, spoilt
    from jobs.cep.check import PSEUDO
    from jobs.cep.pattern import compile_pattern

    strict = "ts" not in events.column_names or not pa.types.is_integer(events.schema.field("ts").type)
    bad: set[str] = set()
    meant: set[str] = set()
    if files and all(suffix_of(one) in TEXT for one in files):
        found = compile_pattern(text, name=name, file=file, strict_units=strict)
        bad = spoilt(events, found.mentioned - PSEUDO)
        meant = meant_as_numbers(found, dict(zip(events.schema.names, events.schema.types, strict=True)), bad)
    for column in sorted(meant):
        numbers, wrong = as_numbers(events[column])
        events = events.set_column(events.column_names.index(column), column, numbers)
        others = f", and so {'is' if wrong == 2 else 'are'} {counted(wrong - 1, 'other cell')}" if wrong > 1 else ""
        print(f"{_first(column, files)}: taken as missing{others}", file=sys.stderr)
    columns = {field.name: field.type for field in events.schema if field.name != "event_id"} if len(events) else None
    pattern = compile_pattern(text, name=name, file=file, columns=columns, strict_units=strict)
    for column in sorted(bad - meant):
        print(f"{column} is compared as text: {_first(column, files)}", file=sys.stderr)
    return pattern, events


def _first(column: str, files: Sequence[Path]) -> str:
    """The first cell of a column that is no number, in words."""
    from jobs.cep.files import not_a_number

    return next((str(error) for file in files if (error := not_a_number(file, column))), f"{column} holds texts")


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
