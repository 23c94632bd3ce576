"""Patterns and files of events on the command line, for ``match``, ``backtest`` and ``explain``."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chainlake.cli.errors import BadOption, NothingGiven, OptionsClash, PatternNoText, UnfitFiles, UnreadablePattern
from chainlake.cli.named import definition_file, name_of
from chainlake.paths import Home

if TYPE_CHECKING:
    import pyarrow as pa

    from chainlake.cep.pattern import Pattern
    from chainlake.cep.plain_files.read import Events

#: How many types a note lists.
_MOST_TYPES = 10


def add_column_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that say how files of events are read."""
    parser.add_argument(
        "--source",
        metavar="NAME",
        type=name_of("source"),
        help="read the files as this source of dags/config/sources does",
    )
    parser.add_argument("--id", metavar="COLUMN", help="column of the event id (default: event_id or id)")
    parser.add_argument("--type", metavar="COLUMN", help="column of the event type (default: type)")
    parser.add_argument("--ts", metavar="COLUMN", help="column of the time (default: ts)")
    parser.add_argument("--key", metavar="COLUMN", help="column that tells series apart, for PREV and OF KEY")
    parser.add_argument(
        "--ts-unit",
        choices=("s", "ms", "us", "ns"),
        help="times are numbers in this unit since 1970 UTC (default: text, timestamps, or whole seconds)",
    )
    parser.add_argument(
        "--type-of",
        metavar="COLUMN=KIND",
        action="append",
        default=[],
        help="what a column holds: number, text, bool, time (ISO 8601) or date:FORM, such as ts=date:%%Y%%m%%d "
        "(default: number if every cell is a number, else text); may be repeated",
    )
    parser.add_argument(
        "--missing",
        metavar="TEXT",
        action="append",
        default=[],
        help="text that means a missing value in every column, such as NA (default: blank cells, null)",
    )


def says_columns(args: argparse.Namespace) -> bool:
    """Whether any option says how columns are named or read."""
    return any((args.id, args.type, args.ts, args.key, args.ts_unit, args.type_of, args.missing))


def pattern_text(given: str) -> tuple[str, str, str | None]:
    """Text, name and file of a pattern that was given by name, as a file, or as the query itself."""
    if given.lstrip().upper().startswith(("PATTERN ", "PATTERN\n", "---")):
        return given, "pattern", None
    if not given.strip():
        raise NothingGiven.pattern()
    path = definition_file(Home.from_env(), given, "pattern")
    try:
        return path.read_bytes().decode("utf-8"), path.stem, str(path)
    except OSError as error:
        raise UnreadablePattern.of(given, error) from None
    except UnicodeDecodeError as error:
        raise PatternNoText.of(path, error) from None


def read(args: argparse.Namespace, files: Sequence[Path], text: str = "") -> Events:
    """The events of the files, read as the column arguments say, with the source's histories that ``text`` mentions."""
    from chainlake.cep.plain_files.cells import asked_kinds
    from chainlake.cep.plain_files.read import Asked, read_events

    if args.source is not None:
        if says_columns(args):
            raise OptionsClash.source_and_columns()
        from chainlake.cli.inputs.landed_files import read_landed

        return _landed(args.source, read_landed(args.source, files), text)
    for option, column in (("--id", args.id), ("--type", args.type), ("--ts", args.ts), ("--key", args.key)):
        if column == "":
            raise BadOption.no_column(option)
    asked = Asked(args.id, args.type, args.ts, args.ts_unit, asked_kinds(args.type_of), args.missing)
    found = read_events(files, asked)
    if args.key is not None and len(found.table) and args.key not in found.table.column_names:
        raise UnfitFiles.no_key(args.key)
    return replace(found, key=args.key)


def _landed(source_name: str, events: pa.Table, text: str) -> Events:
    """The events of a source, with the histories that the text of a pattern mentions."""
    from chainlake.cep.events.history import add_histories
    from chainlake.cep.events.previous import positions
    from chainlake.cep.plain_files.read import Events
    from chainlake.definitions.source import find_source

    source = find_source(Home.from_env(), source_name)
    if len(events):
        # Events of equal key and time keep the order of the files, as ``seq`` does in the events table.
        events = events.append_column("seq", positions(events, source.key))
        wanted = [one for one in source.derived if re.search(rf"\.{one.name}\b", text)]
        events = add_histories(events, [source.key], wanted) if wanted else events
    return Events(events, key=source.key, landed=True)


def compiled(
    text: str, name: str, file: str | None, events: Events, params: Mapping[str, Any] | None = None
) -> Pattern:
    """The pattern that ``pattern_text`` gave, checked against the events' columns (if there are events).

    If the type guessed for a column decides a condition of the pattern in a way that the reader cannot see, a note on
    stderr says so.

    Args:
        text, name, file: as ``pattern_text`` gave them.
        events: the events read.
        params: values that replace those of the front matter; no notes are printed then, since they concern the
            pattern's own values.

    Raises:
        DefinitionError: the pattern is wrong, or does not fit the events.
    """
    import pyarrow as pa

    from chainlake.catalog.functions import codes_of
    from chainlake.cep.pattern import compile_pattern
    from chainlake.cep.plain_files.column_notes import notes_of
    from chainlake.definitions.derived import Series

    table = events.table
    strict = "ts" not in table.column_names or not pa.types.is_integer(table.schema.field("ts").type)
    fixed = {"event_id", "seq"} if events.landed else {"event_id"}
    columns = {field.name: field.type for field in table.schema if field.name not in fixed} if len(table) else None
    series = Series(events.key)
    if params is not None:
        return compile_pattern(
            text, name=name, file=file, columns=columns, params=params, strict_units=strict, series=series
        )
    for note in events.notes:
        print(f"note: {note}", file=sys.stderr)
    codes = codes_of(Home.from_env(), text, file)
    bare = compile_pattern(text, name=name, file=file, strict_units=strict, series=series)
    if columns is not None:
        for note in notes_of(bare, columns, events):
            print(f"note: {note}", file=sys.stderr)
    return compile_pattern(
        text, name=name, file=file, columns=columns, params=codes, strict_units=strict, series=series
    )


def with_type(events: pa.Table, pattern: Pattern) -> pa.Table:
    """The events with a column ``type``; without one they get the pattern's only type, or "event" if it has only ``*``.

    A note on stderr names each type of the pattern that no event has.
    """
    import pyarrow.compute as pc

    from chainlake.cep.events.any_type import ANY_TYPE
    from chainlake.cep.plain_files.errors import shown
    from chainlake.cep.values.arrow import text_array

    if "type" in events.column_names:
        found = pc.unique(events["type"]).to_pylist()
        for kind in sorted(pattern.event_types.difference([*found, ANY_TYPE])):
            known = ", ".join(shown(one) for one in sorted(found)[:_MOST_TYPES])
            others = f" and {len(found) - _MOST_TYPES} more" if len(found) > _MOST_TYPES else ""
            print(f"note: no event is of type {kind}; the types are {known}{others}", file=sys.stderr)
        return events
    types = sorted(pattern.event_types - {ANY_TYPE})
    if len(types) > 1:
        raise UnfitFiles.no_type(types)
    return events.append_column("type", text_array((types or ["event"]) * len(events)))
