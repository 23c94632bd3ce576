"""Typed look-ups in a model's YAML: every error names the file, the line, the key and what is allowed there."""

from __future__ import annotations

import sys
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

from chainlake.definitions.duration import parse_span
from chainlake.definitions.errors import NoMapping
from chainlake.definitions.yaml_lines import Section, load_section, section_of
from chainlake.model_change.config.errors import WrongValue


class Settings(Section):
    """One mapping of a model's file, with look-ups that only models need."""

    @classmethod
    def read(cls, path: Path) -> Settings:
        """The top mapping of a file; DefinitionError if its content is not a mapping."""
        return cls.like(load_section(path))

    @classmethod
    def of(cls, content: dict[str, Any] | str) -> Settings:
        """The top mapping of a YAML text, or a mapping as it is."""
        if isinstance(content, str):
            return cls.like(section_of(content, None))
        if not isinstance(content, dict):
            raise NoMapping.of()
        return cls(content, "", {})

    @classmethod
    def like(cls, section: Section) -> Settings:
        """The same mapping with these look-ups."""
        return cls(section.data, section.file, section._spots)

    def _missing(self, key: str, default: Any, kind: str) -> Any:
        if default is ...:
            raise self.placed(WrongValue.missing(key, kind), key)
        return default

    def text(self, key: str, default: Any = ...) -> Any:
        value = self.data.get(key)
        if value is None:
            return self._missing(key, default, "a string")
        if not isinstance(value, str) or not value.strip():
            raise self.placed(WrongValue.no_text(value), key)
        return value.strip()

    def key_value(self, key: str) -> str:
        """A value of the source's key column as it was typed: a number is taken as text."""
        value = self.data.get(key)
        if value is None or isinstance(value, list | dict | bool) or not str(value).strip():
            raise self.placed(WrongValue.no_key(value), key)
        return str(self.typed(key)).strip()

    def flag(self, key: str, default: bool) -> bool:
        value = self.data.get(key, default)
        if not isinstance(value, bool):
            raise self.placed(WrongValue.no_switch(value), key)
        return value

    def number(self, key: str, *, above: float | None = None, least: float | None = None) -> float:
        value = self.data.get(key)
        if value is None:
            self._missing(key, ..., "a number")
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) <= sys.float_info.max:
            raise self.placed(WrongValue.no_number(value), key)
        if above is not None and value <= above:
            raise self.placed(WrongValue.not_above(value, above), key)
        if least is not None and value < least:
            raise self.placed(WrongValue.below(value, least), key)
        return float(value)

    def whole(self, key: str, default: Any = ..., *, least: int = 1) -> Any:
        value = self.data.get(key)
        allowed = f"whole numbers from {least} on"
        if value is None:
            return self._missing(key, default, f"a number; allowed: {allowed}")
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise self.placed(WrongValue.no_whole(value, key, allowed), key)
        return value

    def duration(self, key: str, default: Any = ...) -> Any:
        """Microseconds of a duration such as ``5 min``."""
        value = self.data.get(key)
        if value is None:
            return self._missing(key, default, "a duration such as 5 min")
        span = parse_span(value) if isinstance(value, str) else None
        if not span:
            raise self.placed(WrongValue.no_duration(value), key)
        return span // timedelta(microseconds=1)

    def day(self, key: str) -> date:
        value = self.data.get(key)
        if value is None:
            self._missing(key, ..., "a UTC day as YYYY-MM-DD")
        if isinstance(value, date) and not isinstance(value, datetime):
            return value
        try:
            return datetime.strptime(str(value), "%Y-%m-%d").date()
        except ValueError:
            raise self.placed(WrongValue.no_day(value), key) from None

    def mapping(self, key: str, like: str) -> Settings:
        """The mapping under ``key``."""
        value = self.data.get(key)
        if value is None:
            self._missing(key, ..., like)
        if not isinstance(value, dict):
            raise self.placed(WrongValue.no_mapping(value, like), key)
        return self.at(value, key)

    def names(self, key: str) -> tuple[str, ...]:
        """A non-empty list of different key values (numbers are taken as their text)."""
        value = self.data.get(key)
        if not isinstance(value, list) or not value:
            raise self.placed(WrongValue.no_keys(key), key)
        for at, item in enumerate(value):
            if item is None or isinstance(item, list | dict | bool):
                raise self.placed(WrongValue.no_key(item), key, at)
        found = tuple(str(self.typed(key, at)) for at in range(len(value)))
        for name in found:
            if found.count(name) > 1:
                raise self.placed(WrongValue.key_twice(name, key), key)
        return found
