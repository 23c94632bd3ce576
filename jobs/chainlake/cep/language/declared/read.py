"""Reads the key ``functions`` of a front matter."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from chainlake.cep.language.declared.errors import WrongDeclaration
from chainlake.cep.language.declared.function import COSTS, LONGEST, Declared
from chainlake.cep.language.errors.front_matter import KeyPlace
from chainlake.cep.language.source_text import SourceText
from chainlake.definitions.duration import parse_span
from chainlake.definitions.yaml_lines import Document

#: ``MODULE:FUNCTION``: one file and one name in it, neither of them private.
CALL = re.compile(r"(?:chainlake_functions\.)?([A-Za-z]\w*):([A-Za-z]\w*)", re.ASCII)
_NAME = re.compile(r"[A-Za-z]\w*", re.ASCII)
#: The keys of a function.
KEYS = ("call", "cost", "symmetric", "pure", "result", "longest", "vectorised")


def read_functions(source: SourceText, document: Document, value: Any) -> dict[str, Declared]:
    """The functions that a front matter declares, by lower-case name.

    Args:
        source: for errors.
        document: the front matter, with the places of its keys.
        value: the value of the key ``functions``.

    Raises:
        DefinitionError: an entry does not declare a function; with its place.
    """
    if not isinstance(value, dict):
        raise WrongDeclaration.no_map(_Reader(source, document, ()).place())
    found: dict[str, Declared] = {}
    for name, entry in value.items():
        reader = _Reader(source, document, (name,))
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise WrongDeclaration.no_name(reader.place(), name)
        if name.lower() in found:
            raise WrongDeclaration.twice(reader.place(), name)
        found[name.lower()] = reader.declared(name, entry)
    return found


class _Reader:
    """Reads one entry."""

    def __init__(self, source: SourceText, document: Document, path: tuple[str, ...]) -> None:
        self.source, self.spots, self.path = source, document.spots, ("functions", *path)

    def place(self, key: str | None = None) -> KeyPlace:
        """The place of the entry, or of one of its keys."""
        paths = [self.path, self.path[:1]] if key is None else [(*self.path, key), self.path, self.path[:1]]
        spot = next(self.spots[path] for path in paths if path in self.spots)
        return KeyPlace(self.source, (spot.line, spot.column), "functions")

    def declared(self, name: str, entry: Any) -> Declared:
        if not isinstance(entry, dict):
            raise WrongDeclaration.no_entry(self.place(), name)
        for key in entry:
            if key not in KEYS:
                raise WrongDeclaration.unknown_key(self.place(key), name, key, KEYS)
        if entry.get("pure", True) is not True:
            raise WrongDeclaration.impure(self.place("pure"), name)
        readers: dict[str, Callable[[str, Any], Any]] = {
            "call": self.call, "symmetric": self._symmetric, "result": self.result, "longest": self.longest,
            "vectorised": self._vectorised,
        }  # fmt: skip
        if "call" not in entry:
            raise WrongDeclaration.no_call(self.place(), name)
        found = {key: readers[key](name, entry[key]) for key in entry if key in readers}
        spot = self.spots[self.path]
        return Declared(name, us=self.cost(name, entry.get("cost", "heavy")), at=(spot.line, spot.column), **found)

    def call(self, name: str, value: Any) -> str:
        if not isinstance(value, str) or not CALL.fullmatch(value):
            raise WrongDeclaration.no_function(self.place("call"), name, value)
        return value

    def cost(self, name: str, value: Any) -> float:
        if isinstance(value, str) and value in COSTS:
            return COSTS[value]
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
            raise WrongDeclaration.no_cost(self.place("cost"), name, value)
        # Milliseconds for a thousand pairs are microseconds for one.
        return float(value)

    def _symmetric(self, name: str, value: Any) -> bool:
        return self._truth(name, "symmetric", value)

    def _vectorised(self, name: str, value: Any) -> bool:
        return self._truth(name, "vectorised", value)

    def _truth(self, name: str, key: str, value: Any) -> bool:
        if not isinstance(value, bool):
            raise WrongDeclaration.no_truth(self.place(key), name, key, value)
        return value

    def result(self, name: str, value: Any) -> str:
        if value not in ("number", "bool"):
            raise WrongDeclaration.no_result(self.place("result"), name, value)
        return str(value)

    def longest(self, name: str, value: Any) -> float:
        span = parse_span(value) if isinstance(value, str) else None
        if not span:
            raise WrongDeclaration.no_span(self.place("longest"), name, value, LONGEST)
        return span / timedelta(seconds=1)
