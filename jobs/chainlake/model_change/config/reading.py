"""Typed look-ups in a model's YAML: every error names file, line, key and what is allowed there."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any, NoReturn

from chainlake.definitions.duration import USUAL, parse_span
from chainlake.definitions.yaml_lines import Section as Lines
from chainlake.definitions.yaml_lines import load_section, section_of
from chainlake.errors import DefinitionError


class Section:
    """One mapping of a model.

    Args:
        lines: the mapping with the lines of its keys.
        path: keys that lead to it from the top.
    """

    def __init__(self, lines: Lines, path: tuple[str | int, ...] = ()):
        self._lines = lines
        self._path = path
        self.file = lines.file or None
        self.values: dict[str, Any] = lines.data

    @classmethod
    def read(cls, path: Path) -> Section:
        """The top mapping of a file; DefinitionError if it is none."""
        return cls(load_section(path))

    @classmethod
    def of(cls, content: dict[str, Any] | str) -> Section:
        """The top mapping of a YAML text, or a mapping as it is."""
        if isinstance(content, str):
            return cls(section_of(content, None))
        if not isinstance(content, dict):
            raise DefinitionError("must be a YAML map of keys")
        return cls(Lines(content, "", {}))

    def typed(self, *keys: str | int) -> Any:
        """The value at ``keys``; of a number the text that was typed for it: a node called 1.50 is not 1.5."""
        return self._lines.typed(*self._path, *keys)

    def inner(self, value: dict[str, Any], *path: str | int) -> Section:
        """The mapping ``value`` that stands at ``path`` below this one."""
        found = Section(self._lines, self._path + path)
        found.values = value
        return found

    def fail(self, what: str, *keys: str | int, hint: str | None = None) -> NoReturn:
        """Raise a `DefinitionError` at ``keys``."""
        error = self._lines.error(what, *self._path, *keys, hint=hint)
        if self.file is None:
            error.file = error.line = None
        raise error

    def only(self, *allowed: str) -> None:
        """Refuse keys that nothing reads."""
        for key in self.values:
            if key not in allowed:
                self.fail(f"unknown key '{key}'", str(key), hint=f"Allowed here: {', '.join(allowed)}.")

    def _missing(self, key: str, default: Any, kind: str) -> Any:
        if default is ...:
            self.fail(f"'{key}' is missing", key, hint=f"Give {kind}.")
        return default

    def text(self, key: str, default: Any = ...) -> Any:
        value = self.values.get(key)
        if value is None:
            return self._missing(key, default, "a text")
        if not isinstance(value, str) or not value.strip():
            self.fail(f"'{value}' is not a text", key, hint="Give a non-empty text.")
        return value.strip()

    def key_value(self, key: str) -> str:
        """A value of the source's key column, as it was typed; numbers are taken as texts."""
        value = self.values.get(key)
        if value is None or isinstance(value, list | dict | bool) or not str(value).strip():
            self.fail(f"'{value}' is not a key", key, hint="Give a text; quote true, false and null.")
        return str(self.typed(key)).strip()

    def choice(self, key: str, allowed: tuple[str, ...], default: Any = ...) -> Any:
        value = self.values.get(key)
        if value is None:
            return self._missing(key, default, f"one of {', '.join(allowed)}")
        if value not in allowed:
            self.fail(f"'{value}' is not a valid value of '{key}'", key, hint=f"Allowed: {', '.join(allowed)}.")
        return value

    def flag(self, key: str, default: bool) -> bool:
        value = self.values.get(key, default)
        if not isinstance(value, bool):
            self.fail(f"'{value}' is not true or false", key, hint="Allowed: true, false.")
        return value

    def number(self, key: str, *, above: float | None = None, least: float | None = None) -> float:
        value = self.values.get(key)
        if value is None:
            self._missing(key, ..., "a number")
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < float("inf"):
            self.fail(f"'{value}' is not a number", key, hint="Give a finite number, written as 7, -0.5 or 1e-3.")
        if above is not None and value <= above:
            self.fail(f"{value} is not above {above:g}", key, hint=f"Allowed: numbers above {above:g}.")
        if least is not None and value < least:
            self.fail(f"{value} is below {least:g}", key, hint=f"Allowed: numbers from {least:g} on.")
        return float(value)

    def whole(self, key: str, default: Any = ..., *, least: int = 1) -> Any:
        value = self.values.get(key)
        allowed = f"whole numbers from {least} on"
        if value is None:
            return self._missing(key, default, f"a number; allowed: {allowed}")
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            self.fail(f"'{value}' is not a valid value of '{key}'", key, hint=f"Allowed: {allowed}.")
        return value

    def duration(self, key: str, default: Any = ...) -> Any:
        """Microseconds of a duration such as ``5 min``."""
        value = self.values.get(key)
        if value is None:
            return self._missing(key, default, "a duration such as 5 min")
        span = parse_span(value) if isinstance(value, str) else None
        if not span:
            self.fail(f"'{value}' is not a duration", key, hint=f"Allowed: 5 min; units {USUAL}.")
        return span // timedelta(microseconds=1)

    def day(self, key: str) -> date:
        value = self.values.get(key)
        if value is None:
            self._missing(key, ..., "a UTC day as YYYY-MM-DD")
        if isinstance(value, date) and not isinstance(value, datetime):
            return value
        try:
            return datetime.strptime(str(value), "%Y-%m-%d").date()
        except ValueError:
            self.fail(f"'{value}' is not a day", key, hint="Allowed: a UTC day as YYYY-MM-DD.")

    def section(self, key: str, like: str) -> Section:
        """The mapping under ``key``."""
        value = self.values.get(key)
        if value is None:
            self._missing(key, ..., like)
        if not isinstance(value, dict):
            self.fail(f"'{value}' is not a mapping", key, hint=f"Give {like}.")
        return self.inner(value, key)

    def names(self, key: str) -> tuple[str, ...]:
        """A non-empty list of different key values (numbers are taken as their text)."""
        value = self.values.get(key)
        if not isinstance(value, list) or not value:
            self.fail(f"'{key}' is not a list of keys", key, hint="Give a non-empty list, such as [a, b, c].")
        for at, item in enumerate(value):
            if item is None or isinstance(item, list | dict | bool):
                self.fail(f"'{item}' is not a key", key, at, hint="Give a text; quote true, false and null.")
        found = tuple(str(self.typed(key, at)) for at in range(len(value)))
        for name in found:
            if found.count(name) > 1:
                self.fail(f"'{name}' is given twice in '{key}'", key, hint="Name every key once.")
        return found
