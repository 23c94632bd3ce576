"""Runs the tests of a pattern's front matter: which of their matches are missing, and which are not listed."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from chainlake.cep.events.any_type import ANY_TYPE
from chainlake.cep.events.history import add_histories
from chainlake.cep.events.previous import positions
from chainlake.cep.explain.failing import failing
from chainlake.cep.language.declared.examples import Example
from chainlake.cep.language.front_matter import read_front_matter
from chainlake.cep.language.source_text import SourceText
from chainlake.cep.library import as_dicts, from_table
from chainlake.cep.pattern import Pattern, compile_pattern
from chainlake.cep.plain_files.read import Asked, read_events
from chainlake.cep.search.find import find
from chainlake.cep.values.arrow import text_array
from chainlake.definitions.derived import Series
from chainlake.definitions.source import Source
from chainlake.errors import ChainlakeError

#: Type of a source's attribute → kind of a file's column.
_HOLDS = {"string": "text", "double": "number", "long": "number", "boolean": "bool", "timestamp": "time"}

#: How many conditions that were not true are named.
_NAMED = 3


class ExampleFailed(ChainlakeError):
    """A test of a pattern does not find what it must, or cannot be run."""

    exit_code = 1
    test: str

    @classmethod
    def missing(
        cls, source: SourceText, example: Example, match: Mapping[str, Any], failing: Sequence[str]
    ) -> ExampleFailed:
        """A match that the test must find is missing; its events fail some conditions, as far as that is known."""
        why = f": for these events {' and '.join(failing[:_NAMED])} " if failing else ""
        more = f"and {len(failing) - _NAMED} more " if len(failing) > _NAMED else ""
        verb = "is" if len(failing) == 1 else "are"
        return cls._at(
            source, example, f"the match {_words(match)} is not found{why}{more}{f'{verb} not true' * bool(why)}"
        )

    @classmethod
    def surplus(cls, source: SourceText, example: Example, match: Mapping[str, Any]) -> ExampleFailed:
        """A match is found that the test does not list."""
        return cls._at(source, example, f"the match {_words(match)} is found but not listed")

    @classmethod
    def broken(cls, source: SourceText, example: Example, why: ChainlakeError) -> ExampleFailed:
        """The test cannot be run."""
        # Events of the front matter are read from a temporary file, whose name means nothing to the user.
        text = why.what if example.inline else why.summary
        line = f" (line {why.line} of the events)" if example.inline and why.line else ""
        return cls._at(source, example, f"{text}{line}")

    @classmethod
    def types(cls, source: SourceText, example: Example, types: Sequence[str]) -> ExampleFailed:
        """The events of the test have no type, and the pattern asks for several."""
        what = f"the events have no column type, but the pattern asks for {', '.join(types)}"
        return cls._at(source, example, what, "Add a column type.")

    @classmethod
    def _at(cls, source: SourceText, example: Example, what: str, hint: str | None = None) -> ExampleFailed:
        line, column = example.at
        text = f"test {example.name}: {what}"
        return cls(text, file=source.file, line=line, column=column, key="tests", hint=hint).holding(test=example.name)


def failures(source: SourceText, name: str, of: Source | None) -> tuple[int, list[ExampleFailed]]:
    """How many tests a pattern has, and what is wrong with them.

    Args:
        source: the text of a pattern that compiles.
        name: of the pattern.
        of: the source that the pattern reads, which gives the columns their types; None if there is none.
    """
    front, _ = read_front_matter(source)
    wrong: list[ExampleFailed] = []
    for example in front.tests:
        try:
            wrong += _run(source, name, of, example)
        except ChainlakeError as error:
            wrong.append(error if isinstance(error, ExampleFailed) else ExampleFailed.broken(source, example, error))
    return len(front.tests), wrong


def _run(source: SourceText, name: str, of: Source | None, example: Example) -> list[ExampleFailed]:
    events = _events(source, of, example)
    series = Series() if of is None else of.series
    bare = compile_pattern(source.text, name=name, file=source.file, series=series)
    if not len(events):
        return [ExampleFailed.missing(source, example, one, ()) for one in example.matches]
    if of is not None:
        events = events.append_column("seq", positions(events, of.key))
        events = add_histories(events, [of.key], bare.histories) if bare.histories else events
    if "type" not in events.column_names:
        types = sorted(bare.event_types - {ANY_TYPE})
        if len(types) > 1:
            raise ExampleFailed.types(source, example, types)
        events = events.append_column("type", text_array((types or ["event"]) * len(events)))
    fixed = ("event_id",) if of is None else ("event_id", "seq")
    columns = {field.name: field.type for field in events.schema if field.name not in fixed}
    pattern = compile_pattern(source.text, name=name, file=source.file, columns=columns, series=series)
    table, ids = from_table(events)
    found = [match for batch in find(pattern, table) for match in as_dicts(pattern, batch, ids)]
    return _differences(source, pattern, example, found, lambda wanted: _failing(pattern, table, ids, wanted))


def _events(source: SourceText, of: Source | None, example: Example) -> pa.Table:
    if not example.inline:
        return _typed(Path(source.file or ".").parent / example.events.strip(), of)
    with tempfile.TemporaryDirectory(prefix="chainlake-test-") as folder:
        file = Path(folder, "events.csv")
        file.write_text(example.events, encoding="utf-8")
        return _typed(file, of)


def _typed(file: Path, of: Source | None) -> pa.Table:
    """The events of a file; the columns that the source declares have its types."""
    plain = read_events([file])
    if of is None or not len(plain.table):
        return plain.table
    kinds = {of.key: "text", **{one.name: _HOLDS[one.type] for one in of.attributes}}
    asked = Asked(kinds={name: kind for name, kind in kinds.items() if name in plain.table.column_names})
    table = read_events([file], asked).table
    for one in of.attributes:
        if one.name in table.column_names:
            index = table.column_names.index(one.name)
            table = table.set_column(index, one.name, table[one.name].cast(one.arrow_type))
    return table


def _differences(
    source: SourceText,
    pattern: Pattern,
    example: Example,
    found: list[dict[str, Any]],
    why: Callable[[Mapping[str, str | tuple[str, ...]]], Sequence[str]],
) -> list[ExampleFailed]:
    events = {one.name for one in pattern.names}
    left = list(found)
    missing = []
    for wanted in example.matches:
        match = next((one for one in left if _same(wanted, one, events)), None)
        if match is None:
            missing.append(ExampleFailed.missing(source, example, wanted, why(wanted)))
        else:
            left.remove(match)
    surplus = [{name: value for name, value in one.items() if name in events} for one in left]
    return [*missing, *(ExampleFailed.surplus(source, example, one) for one in surplus)]


def _failing(
    pattern: Pattern, table: pa.Table, ids: Sequence[Any], wanted: Mapping[str, str | tuple[str, ...]]
) -> list[str]:
    """The conditions that the events of a match fail; none if they are not events of the test."""
    rows = {str(one): row for row, one in enumerate(ids)}
    names = {one.name for one in pattern.names}
    listed = {name: (value,) if isinstance(value, str) else value for name, value in wanted.items() if name in names}
    if not listed or not all(one in rows for some in listed.values() for one in some):
        return []
    return failing(pattern, table, {name: [rows[one] for one in some] for name, some in listed.items() if some})


def _same(wanted: Mapping[str, str | tuple[str, ...]], match: Mapping[str, Any], events: set[str]) -> bool:
    """Whether a match has exactly these events, and at least these measures."""
    if not wanted.keys() <= match.keys() or match.keys() & events - wanted.keys():
        return False
    return all(_equal(value, match[name]) for name, value in wanted.items())


def _equal(wanted: str | tuple[str, ...], value: Any) -> bool:
    if isinstance(value, list):
        given = wanted if isinstance(wanted, tuple) else (wanted,)
        return list(given) == [str(one) for one in value]
    if isinstance(value, float) and isinstance(wanted, str):
        try:
            return math.isclose(float(wanted), value, rel_tol=1e-9)
        except ValueError:
            return False
    return wanted == str(value)


def _words(match: Mapping[str, Any]) -> str:
    shown = {name: list(value) if isinstance(value, tuple | list) else [value] for name, value in match.items()}
    return ", ".join(f"{name} = {' '.join(map(str, value))}" for name, value in shown.items())
