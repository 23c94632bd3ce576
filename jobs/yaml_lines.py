"""YAML read with the line of every key, so that a mistake in a definition is reported where it stands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import yaml

from jobs.errors import DefinitionError

#: Place of a value inside the document: keys and list positions from the top.
Place = tuple[str | int, ...]

_KINDS = {
    str: "a text", bool: "true or false", int: "a whole number", float: "a number", list: "a list", dict: "a map",
    date: "a day such as 2025-01-31",
}  # fmt: skip


class Section:
    """One mapping of a YAML document, read key by key with checks.

    Args:
        data: the mapping.
        file: the file it was read from.
        lines: 1-based line of every place in the document.
        place: where the mapping stands in the document.
    """

    def __init__(self, data: dict[str, Any], file: str, lines: dict[Place, int], place: Place = ()) -> None:
        self.data = data
        self.file = file
        self._lines = lines
        self._place = place

    def error(self, what: str, *keys: str | int, hint: str | None = None) -> DefinitionError:
        """A ``DefinitionError`` at the line of ``keys`` below this section."""
        place = self._place + keys
        while place and place not in self._lines:
            place = place[:-1]
        name = ".".join(str(part) for part in self._place + keys) or None
        return DefinitionError(what, file=self.file, line=self._lines.get(place, 1), key=name, hint=hint)

    def only(self, allowed: Iterable[str]) -> None:
        """Raise ``DefinitionError`` for a key that means nothing here."""
        names = tuple(allowed)
        for key in self.data:
            if key not in names:
                raise self.error("unknown key", key, hint=f"Allowed here: {', '.join(names)}.")

    def get(self, key: str, *kinds: type, default: Any = None, required: bool = False) -> Any:
        """The value of ``key``, checked to be one of ``kinds`` (``int`` is accepted where ``float`` is asked)."""
        if key not in self.data or self.data[key] is None:
            if required:
                raise self.error(f"'{key}' is missing", *(() if key not in self.data else (key,)))
            return default
        value = self.data[key]
        accepted = (*kinds, int) if float in kinds else kinds
        if kinds and (not isinstance(value, accepted) or (isinstance(value, bool) and bool not in kinds)):
            expected = " or ".join(_KINDS[kind] for kind in kinds)
            raise self.error(f"'{key}' must be {expected}, not {value!r}", key)
        return value

    def choice(self, key: str, allowed: tuple[str, ...], default: str | None = None) -> str:
        """The value of ``key``, one of ``allowed``."""
        value = self.get(key, str, default=default, required=default is None)
        if value not in allowed:
            raise self.error(f"'{value}' is not allowed", key, hint=f"One of: {', '.join(allowed)}.")
        return str(value)

    def texts(self, key: str, default: tuple[str, ...] = ()) -> tuple[str, ...]:
        """The value of ``key`` as texts: a list of scalars, or one scalar."""
        value = self.get(key)
        if value is None:
            return default
        items = value if isinstance(value, list) else [value]
        for at, item in enumerate(items):
            if isinstance(item, list | dict) or item is None:
                raise self.error(f"'{key}' must be a list of texts", key, at)
        return tuple(str(item) for item in items)

    def section(self, key: str) -> Section:
        """The mapping under ``key``; empty if the key is absent."""
        return Section(self.get(key, dict, default={}), self.file, self._lines, (*self._place, key))

    def sections(self, key: str) -> Iterator[Section]:
        """The mappings of the list under ``key``."""
        for at, item in enumerate(self.get(key, list, default=[])):
            if not isinstance(item, dict):
                raise self.error(f"each item of '{key}' must be a map", key, at)
            yield Section(item, self.file, self._lines, (*self._place, key, at))


def load_section(path: Path) -> Section:
    """The YAML mapping in the file ``path``.

    Raises:
        DefinitionError: the file cannot be read, is not YAML, is not a mapping, or names a key twice.
    """
    try:
        node = yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
    except OSError as error:
        raise DefinitionError(f"cannot be read: {error.strerror}", file=path) from error
    except UnicodeDecodeError as error:
        raise DefinitionError("is not UTF-8 text", file=path) from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        raise DefinitionError(
            f"not valid YAML: {error.problem}",
            file=path,
            line=mark.line + 1 if mark else None,
            column=mark.column + 1 if mark else None,
        ) from error
    except yaml.YAMLError as error:
        raise DefinitionError(f"not valid YAML: {str(error).splitlines()[0]}", file=path) from error
    if not isinstance(node, yaml.MappingNode):
        raise DefinitionError("must be a YAML map of keys", file=path, line=1)
    lines: dict[Place, int] = {}
    data = _value(node, (), lines, path)
    return Section(data, str(path), lines)


def _value(node: yaml.Node, place: Place, lines: dict[Place, int], path: Path) -> Any:
    lines.setdefault(place, node.start_mark.line + 1)
    if isinstance(node, yaml.MappingNode):
        data: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = str(key_node.value)
            if key in data:
                raise DefinitionError("key given twice", file=path, line=key_node.start_mark.line + 1, key=key)
            lines[(*place, key)] = key_node.start_mark.line + 1
            data[key] = _value(value_node, (*place, key), lines, path)
        return data
    if isinstance(node, yaml.SequenceNode):
        return [_value(item, (*place, at), lines, path) for at, item in enumerate(node.value)]
    try:
        return yaml.SafeLoader("").construct_object(node)
    except (yaml.YAMLError, ValueError) as error:
        raise DefinitionError(f"value not understood: {error}", file=path, line=node.start_mark.line + 1) from error
