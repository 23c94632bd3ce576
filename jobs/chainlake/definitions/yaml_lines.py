"""The one reader of YAML in definitions: it keeps the place of every value, and bare words as typed.

A bare word is a number if JSON would write it so, or ``true`` or ``false``, or nothing (``null``, ``~``, blank); any
other is the text that was typed. YAML's own rules differ by version and would turn ``ON``, ``007`` or ``12:30`` into
values that nobody meant. A key that takes a string gets what was typed, whatever it looks like.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar

import yaml

from chainlake.definitions.errors import NoMapping, WrongEntry
from chainlake.definitions.files import read_definition
from chainlake.definitions.yaml_scalars import COMMENT, is_cut, is_open, place_of
from chainlake.definitions.yaml_words import in_words
from chainlake.errors import DefinitionError

Placeable = TypeVar("Placeable", bound=DefinitionError)
#: The place of a value in the document: keys and list positions from the top.
Place = tuple[str | int, ...]

#: The deepest nesting of lists and maps, and the most values in a document, counting those behind aliases each time.
DEEPEST, MOST_VALUES = 30, 50_000

_KINDS = {
    str: "a string", bool: "true or false", int: "a whole number", float: "a number", list: "a list", dict: "a map",
    date: "a day such as 2025-01-31",
}  # fmt: skip
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?\Z")
_NUMBER_LIKE = re.compile(r"[-+]?(\.?[0-9][0-9_.:]*(e[-+]?[0-9]+)?|0[xob][0-9a-f_]+)\Z", re.IGNORECASE)
_NO_NUMBER = re.compile(r"[-+]?\.(inf|nan)\Z", re.IGNORECASE)
_SWITCH_LIKE = re.compile(r"(y|yes|n|no|on|off|true|false)\Z", re.IGNORECASE)
_NOTHING = ("", "~", "null")
_SWITCHES = {"true": True, "false": False}
_DAY = re.compile(r"\d{4}-\d\d-\d\d\Z")
# The C parser is used if PyYAML was built with it, as its wheels are: it is five times as fast, with the same events.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Spot(NamedTuple):
    """Where a value is, 1-based, and what was typed: ``text`` for a scalar, ``bare`` if it has no quotes.

    A value in a map has the place of its key; ``begin`` is the place of the scalar itself.
    """

    line: int
    column: int
    text: str | None = None
    bare: bool = False
    begin: tuple[int, int] = (1, 1)

    @property
    def looks_like(self) -> str | None:
        """What other YAML readers may take a bare text for: "a number", "not a finite number", "true or false"."""
        if not self.bare or self.text is None or self.text in _SWITCHES or _NUMBER.match(self.text):
            return None
        if _NO_NUMBER.match(self.text):
            return "not a finite number"
        if _NUMBER_LIKE.match(self.text):
            return "a number"
        return "true or false" if _SWITCH_LIKE.match(self.text) else None


class Document(NamedTuple):
    """A YAML text that was read: ``data``, and the ``spots`` of every key and value."""

    data: Any
    spots: dict[Place, Spot]


class YamlProblem(Exception):
    """A string is not YAML, or uses YAML that definitions do not allow.

    Args:
        what: what is wrong.
        line, column: where, 1-based, in the text that was read.
        key: the key concerned.
        hint: what to do.
    """

    def __init__(self, what: str, line: int, column: int, key: str | None = None, hint: str | None = None) -> None:
        super().__init__(what)
        self.what, self.line, self.column, self.key, self.hint = what, line, column, key, hint


def read_yaml(text: str) -> Document:
    """The one document in ``text``.

    Raises:
        YamlProblem: it cannot be read, or has a tag, a duplicate key, a key that is not a word, an alias to something
            that contains it, or more levels or values than a definition needs.
    """
    try:
        root = _tree(text)
    except yaml.MarkedYAMLError as error:
        found = in_words(error, text)
        raise YamlProblem(f"not valid YAML: {found.what}", *found.at, hint=found.hint) from None
    except (yaml.YAMLError, UnicodeError) as error:
        bad = re.search(r"[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", text)
        before = text[: bad.start()] if bad else ""
        line = before.count("\n") + 1
        what = f"the character {bad[0]!r} is not allowed in YAML" if bad else str(error).splitlines()[0]
        raise YamlProblem(f"not valid YAML: {what}", line, len(before) - before.rfind("\n")) from None
    spots: dict[Place, Spot] = {}
    return Document(None if root is None else _value(root, (), spots), spots)


@dataclass(slots=True)
class _Node:
    """A scalar (``text``), or a list or map of ``parts``; in a map, keys and values alternate.

    ``values`` and ``levels`` count it with its parts, and each alias as what it stands for.
    """

    line: int
    column: int
    kind: str
    text: str = ""
    bare: bool = False
    parts: list[_Node] = field(default_factory=list)
    values: int = 1
    levels: int = 1

    def add(self, part: _Node) -> None:
        """Count a part that is complete.

        Raises:
            YamlProblem: the node now holds more than a definition needs.
        """
        self.values += part.values
        self.levels = max(self.levels, part.levels + 1)
        if self.values > MOST_VALUES:
            hint = "Are there aliases of aliases?"
            what = f"more than {MOST_VALUES:,} values in one definition"
            raise YamlProblem(what, part.line, part.column, hint=hint)
        if self.levels > DEEPEST:
            raise YamlProblem(f"more than {DEEPEST} lists and maps inside each other", part.line, part.column)


def _tree(text: str) -> _Node | None:
    """The root node of the document; built without recursion, so that no nesting exhausts the stack."""
    open_nodes: list[_Node] = []
    anchors: dict[str, _Node] = {}
    root: _Node | None = None
    documents = 0
    events: Iterator[Any] = yaml.parse(text, Loader=_LOADER)
    for event in events:
        line, column = event.start_mark.line + 1, event.start_mark.column + 1
        if isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents > 1:
                raise YamlProblem("a second document begins here", line, column, hint="Write one document per file.")
        elif isinstance(event, yaml.CollectionEndEvent):
            whole = open_nodes.pop()
            if open_nodes:
                open_nodes[-1].add(whole)
        elif isinstance(event, yaml.NodeEvent):
            node = _node(event, line, column, anchors, open_nodes)
            if open_nodes:
                open_nodes[-1].parts.append(node)
            else:
                root = node
            if isinstance(event, yaml.CollectionStartEvent):
                open_nodes.append(node)
            elif open_nodes:
                open_nodes[-1].add(node)
    return root


def _node(event: Any, line: int, column: int, anchors: dict[str, _Node], open_nodes: list[_Node]) -> _Node:
    if isinstance(event, yaml.AliasEvent):
        found = anchors.get(str(event.anchor))
        if found is None:
            raise YamlProblem(f"the alias *{event.anchor} has no anchor before it", line, column)
        if any(node is found for node in open_nodes):
            raise YamlProblem(f"the alias *{event.anchor} is inside what it names", line, column)
        return found
    if event.tag is not None:
        hint = "Write the value alone, in quotes if it is a string."
        raise YamlProblem(f"the tag {event.tag} is not supported in definitions", line, column, hint=hint)
    if isinstance(event, yaml.ScalarEvent):
        node = _Node(line, column, "scalar", event.value, event.style in (None, ""))
    else:
        node = _Node(line, column, "map" if isinstance(event, yaml.MappingStartEvent) else "list")
    if event.anchor is not None:
        anchors[event.anchor] = node
    return node


def _value(node: _Node, place: Place, spots: dict[Place, Spot]) -> Any:
    if node.kind == "scalar":
        spots[place] = Spot(node.line, node.column, node.text, node.bare, (node.line, node.column))
        return _bare(node) if node.bare else node.text
    spots[place] = Spot(node.line, node.column)
    if node.kind == "list":
        return [_value(item, (*place, at), spots) for at, item in enumerate(node.parts)]
    data: dict[str, Any] = {}
    for key, value in zip(node.parts[::2], node.parts[1::2], strict=True):
        if key.kind != "scalar":
            raise YamlProblem("a key must be a word", key.line, key.column, hint="Quote it if it begins with [ or {.")
        if key.text in data:
            raise YamlProblem(f"duplicate key {key.text}", key.line, key.column, key=key.text)
        data[key.text] = _value(value, (*place, key.text), spots)
        # A mistake in a value is reported at its key, which is on the same line or above.
        spots[(*place, key.text)] = spots[(*place, key.text)]._replace(line=key.line, column=key.column)
    return data


def _bare(node: _Node) -> Any:
    text = node.text
    if text in _NOTHING:
        return None
    if text in _SWITCHES:
        return _SWITCHES[text]
    if not _NUMBER.match(text):
        return text
    try:
        number = float(text) if re.search(r"[.eE]", text) else int(text)
        finite = math.isfinite(number)
    except (ValueError, OverflowError):
        # A whole number with more digits than Python reads, or than a double can come near.
        finite = False
    if not finite:
        raise YamlProblem(
            f"{text[:40]} is too large for a number", node.line, node.column, hint="Put it in quotes if it is a string."
        )
    return number


class Section:
    """One mapping of a YAML document, read key by key with checks.

    Args:
        data: the mapping.
        file: the file it was read from; empty if it comes from a program.
        spots: the spot of every place in the document.
        place: where the mapping is in the document.
    """

    def __init__(self, data: dict[str, Any], file: str, spots: dict[Place, Spot], place: Place = ()) -> None:
        self.data = data
        self.file = file
        self._spots = spots
        self._place = place

    def placed(self, error: Placeable, *keys: str | int) -> Placeable:
        """Give an error about the value at ``keys`` below this section its file, line, column and key."""
        error.key = ".".join(str(part) for part in self._place + keys) or None
        if self.file:
            spot = self.spot(*keys)
            error.file, error.line, error.column = self.file, spot.line, spot.column
        return error

    def error_inside(self, error: DefinitionError, *keys: str | int) -> DefinitionError:
        """Turn an error with a place in the text at ``keys`` into one with the place in the file.

        Args:
            error: the error, with line and column in the text.
            keys: keys of the text, below this section.
        """
        details = error.details() | {"key": ".".join(str(part) for part in self._place + keys)}
        if self.file:
            text, begin = str(self.spot(*keys).text), self.spot(*keys).begin
            lines = read_definition(Path(self.file)).split("\n")
            at = place_of(lines, begin, text, (error.line or 1, error.column or 1))
            if self.spot(*keys).bare and is_cut(lines, begin, text, at):
                details["hint"] = COMMENT
            shown = "".join(letter if letter.isprintable() else " " for letter in lines[at[0] - 1])
            details |= {"file": self.file, "line": at[0], "column": at[1], "excerpt": shown}
        return DefinitionError(error.what, **details)

    def at(self, data: dict[str, Any], *keys: str | int) -> Self:
        """The mapping ``data``, which is at ``keys`` below this section, as a section."""
        return type(self)(data, self.file, self._spots, (*self._place, *keys))

    def spot(self, *keys: str | int) -> Spot:
        """Where ``keys`` below this section are, or else the nearest place above them."""
        place = self._place + keys
        while place and place not in self._spots:
            place = place[:-1]
        return self._spots.get(place, Spot(1, 1))

    def typed(self, *keys: str | int) -> Any:
        """The value at ``keys`` below this section; for a number or a switch, the text that was typed."""
        value: Any = self.data
        for key in keys:
            value = value[key]
        if not isinstance(value, bool | int | float):
            return value
        text = self.spot(*keys).text
        return str(value) if text is None else text

    def only(self, allowed: Iterable[str]) -> None:
        """Raise ``DefinitionError`` for a key that means nothing here."""
        names = tuple(allowed)
        for before, key in zip(("", *self.data), self.data, strict=False):
            if key not in names:
                if self.data[key] is None and is_open(self.data.get(before)):
                    raise self.placed(WrongEntry.cut(before, key), key)
                raise self.placed(WrongEntry.unknown(key, names), key)

    def get(self, key: str, *kinds: type, default: Any = None, required: bool = False) -> Any:
        """The value of ``key``, checked to be one of ``kinds``.

        ``int`` is accepted for ``float``, and any scalar, as typed, for ``str``.

        Raises:
            DefinitionError: it is of another kind, has no value, or is absent but ``required``.
        """
        if key not in self.data:
            if required:
                raise self.placed(WrongEntry.missing(key))
            return default
        value = self.data[key]
        if value is None:
            raise self.placed(WrongEntry.no_value(key), key)
        if not kinds or (isinstance(value, bool) and bool in kinds):
            return value
        if date in kinds and isinstance(value, str) and _DAY.match(value):
            try:
                return date.fromisoformat(value)
            except ValueError:
                raise self.placed(WrongEntry.kind(key, _KINDS[date], value), key) from None
        accepted = (*kinds, int) if float in kinds else kinds
        if isinstance(value, accepted) and not isinstance(value, bool):
            return value
        if str in kinds and not isinstance(value, list | dict):
            return self.typed(key)
        expected = " or ".join(_KINDS[kind] for kind in kinds)
        raise self.placed(WrongEntry.kind(key, expected, self.typed(key), self._spelling(key, kinds)), key)

    def _spelling(self, key: str, kinds: tuple[type, ...]) -> str | None:
        """A hint on how to write a number or a switch, for those who wrote it as elsewhere in YAML."""
        like = self.spot(key).looks_like
        if like == "a number" and (int in kinds or float in kinds):
            return "Write it as 7, -0.5 or 1e-3: no sign +, no leading zeros, no underscores, digits around the point."
        return "Write true or false." if like == "true or false" and bool in kinds else None

    def choice(self, key: str, allowed: tuple[str, ...], default: str | None = None) -> str:
        """The value of ``key``, one of ``allowed``."""
        value = self.get(key, str, default=default, required=default is None)
        if value not in allowed:
            raise self.placed(WrongEntry.none_of(value, allowed), key)
        return str(value)

    def texts(self, key: str, default: tuple[str, ...] = ()) -> tuple[str, ...]:
        """The value of ``key`` as strings, each as typed: a list of scalars, or one scalar."""
        if key not in self.data:
            return default
        value = self.get(key)
        if not isinstance(value, list):
            if isinstance(value, dict):
                raise self.placed(WrongEntry.no_texts(key), key)
            return (str(self.typed(key)),)
        for at, item in enumerate(value):
            if isinstance(item, list | dict) or item is None:
                raise self.placed(WrongEntry.no_text(key), key, at)
        return tuple(str(self.typed(key, at)) for at in range(len(value)))

    def section(self, key: str) -> Self:
        """The mapping under ``key``; empty if the key is absent."""
        return self.at(self.get(key, dict, default={}), key)

    def sections(self, key: str) -> Iterator[Self]:
        """The mappings of the list under ``key``."""
        for at, item in enumerate(self.get(key, list, default=[])):
            if not isinstance(item, dict):
                raise self.placed(WrongEntry.no_maps(key), key, at)
            yield self.at(item, key, at)


def load_section(path: Path) -> Section:
    """The YAML mapping in the file ``path``.

    Raises:
        DefinitionError: the file cannot be read, is not YAML, is not a mapping, or names a key twice.
    """
    return section_of(read_definition(path), str(path))


def section_of(text: str, file: str | None) -> Section:
    """The YAML mapping in ``text``, which was read from ``file``; raises what ``load_section`` raises."""
    try:
        data, spots = read_yaml(text)
    except YamlProblem as error:
        raise DefinitionError(
            error.what, file=file, line=error.line, column=error.column, key=error.key, hint=error.hint
        ) from None
    if not isinstance(data, dict):
        raise NoMapping.of(file)
    return Section(data, file or "", spots)
