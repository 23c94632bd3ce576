"""Conditions and values of the pattern language in a model's file: about one event, whose attributes are bare words.

The language is imported only for a model that uses it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from chainlake.errors import DefinitionError
from chainlake.model_change.config.reading import Settings

if TYPE_CHECKING:
    import pyarrow as pa

#: No column of events begins with this character, so none shares its name with the column of an expression.
_MARK = "\x1f"


def column_of(text: str) -> str:
    """The column that the values of an expression are kept in."""
    return _MARK + text


def expression_of(column: str) -> str | None:
    """The expression whose values a column holds; None if it is a column of the events."""
    return column[1:] if column.startswith(_MARK) else None


def condition_text(section: Settings, key: str) -> str | None:
    """The condition that ``key`` gives, in normal form; None if there is none.

    Raises:
        DefinitionError: the text is not in the language; the error names its place in the file.
    """
    if key not in section.data:
        return None
    section.text(key)
    from chainlake.cep.expressions import condition

    try:
        return condition(str(section.data[key])).text
    except DefinitionError as error:
        raise section.error_inside(error, key) from None


def value_text(section: Settings, key: str) -> str:
    """The value that ``key`` gives, in normal form.

    Raises:
        DefinitionError: the text is not in the language; the error names its place in the file.
    """
    if not isinstance(section.data.get(key), int | float):
        section.text(key)
    from chainlake.cep.expressions import value

    try:
        return value(str(section.data[key])).text
    except DefinitionError as error:
        raise section.error_inside(error, key) from None


def stored_columns(columns: Iterable[str], where: str | None) -> tuple[str, ...]:
    """The columns of events from which a model's columns and its condition are computed, sorted."""
    names = set(columns)
    texts = {text for name in names if (text := expression_of(name)) is not None}
    found = {name for name in names if expression_of(name) is None}
    if texts or where is not None:
        from chainlake.cep.expressions import condition, value

        found.update(*(value(text).stored for text in texts))
        found.update(condition(where).stored if where is not None else ())
    return tuple(sorted(found))


def check_against(top: Settings, columns: Mapping[str, pa.DataType], histories: Collection[str]) -> None:
    """Check all expressions of a model's file against the columns of events; the file was read without an error.

    Args:
        top: the file's mapping.
        columns: of the events.
        histories: names that the source has in addition, for patterns only.

    Raises:
        DefinitionError: a column does not exist or is of another kind; the error names the place in the file.
    """
    for section, key in _given(top):
        from chainlake.cep.expressions import condition, value

        text = str(section.data[key])
        try:
            (condition(text) if key == "where" else value(text)).check(columns, histories)
        except DefinitionError as error:
            raise section.error_inside(error, key) from None


def _given(top: Settings) -> Iterator[tuple[Settings, str]]:
    """The sections, each with a key, that hold an expression."""
    if top.data.get("where") is not None:
        yield top, "where"
    entries = [*((top.data.get(key), (key,)) for key in ("response", "value")),
               *((entry, (key, i)) for key in ("features", "values", "counters")
                 for i, entry in enumerate(top.data.get(key) or []))]  # fmt: skip
    for entry, path in entries:
        if isinstance(entry, dict) and isinstance(entry.get("polynomial"), dict):
            entry, path = entry["polynomial"], (*path, "polynomial")
        if isinstance(entry, dict) and "expression" in entry:
            yield top.at(entry, *path), "expression"


def language_version() -> int:
    """The version of the language: what an expression gives can change with it."""
    from chainlake.cep.versions import ENGINE_VERSION

    return ENGINE_VERSION
