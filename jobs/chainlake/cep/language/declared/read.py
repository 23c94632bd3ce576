"""The key ``functions`` of a front matter."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from chainlake.cep.language.declared.function import COSTS, LONGEST, Declared
from chainlake.cep.language.source_text import SourceText
from chainlake.definitions.duration import parse_span
from chainlake.definitions.yaml_lines import Document
from chainlake.words import nearest

#: ``MODULE:FUNCTION``; one file, one name in it, neither private.
CALL = re.compile(r"(?:chainlake_functions\.)?([A-Za-z]\w*):([A-Za-z]\w*)", re.ASCII)
_NAME = re.compile(r"[A-Za-z]\w*", re.ASCII)
_KEYS = ("call", "cost", "symmetric", "pure", "result", "longest", "vectorised")


def read_functions(source: SourceText, document: Document, value: Any) -> dict[str, Declared]:
    """The functions that a front matter declares, by their names in small letters.

    Args:
        source: for errors.
        document: the front matter, with the places of its keys.
        value: what stands under ``functions``.

    Raises:
        DefinitionError: an entry that declares no function, with its place.
    """
    if not isinstance(value, dict):
        hint = "Write one 'name: {call: MODULE:FUNCTION}' per line, indented."
        raise _Reader(source, document, ()).error("functions must be a map of names", hint)
    found: dict[str, Declared] = {}
    for name, entry in value.items():
        reader = _Reader(source, document, (name,))
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            hint = "A name has letters A to Z, digits and _, and begins with a letter."
            raise reader.error(f"{name} is no name of a function", hint)
        if name.lower() in found:
            raise reader.error(f"{name} is declared twice", "Upper and lower case do not count in names of functions.")
        found[name.lower()] = reader.declared(name, entry)
    return found


class _Reader:
    """Reads one entry."""

    def __init__(self, source: SourceText, document: Document, path: tuple[str, ...]) -> None:
        self.source, self.spots, self.path = source, document.spots, ("functions", *path)

    def error(self, what: str, hint: str | None = None, key: str | None = None) -> Exception:
        paths = [self.path, self.path[:1]] if key is None else [(*self.path, key), self.path, self.path[:1]]
        spot = next(self.spots[path] for path in paths if path in self.spots)
        return self.source.error(what, (spot.line, spot.column), key="functions", hint=hint)

    def declared(self, name: str, entry: Any) -> Declared:
        if not isinstance(entry, dict):
            raise self.error(f"{name} must say what it calls", f"Write '{name}: {{call: MODULE:FUNCTION}}'.")
        for key in entry:
            if key not in _KEYS:
                raise self.error(f"the declaration of {name} has no key {key}", nearest(str(key), _KEYS), key)
        if entry.get("pure", True) is not True:
            hint = "Its result may depend on its values alone, or a rerun would publish other rows: write pure: true."
            raise self.error(f"{name} must be pure", hint, "pure")
        readers: dict[str, Callable[[str, Any], Any]] = {
            "call": self.call, "symmetric": self._symmetric, "result": self.result, "longest": self.longest,
            "vectorised": self._vectorised,
        }  # fmt: skip
        if "call" not in entry:
            raise self.error(f"{name} must say what it calls", "Write 'call: MODULE:FUNCTION'.")
        found = {key: readers[key](name, entry[key]) for key in entry if key in readers}
        spot = self.spots[self.path]
        return Declared(name, us=self.cost(name, entry.get("cost", "heavy")), at=(spot.line, spot.column), **found)

    def call(self, name: str, value: Any) -> str:
        if not isinstance(value, str) or not CALL.fullmatch(value):
            hint = "Write 'call: text:similar' for the function similar of dags/config/functions/text.py."
            raise self.error(f"{name} calls {value}, which names no function of a module", hint, "call")
        return value

    def cost(self, name: str, value: Any) -> float:
        if isinstance(value, str) and value in COSTS:
            return COSTS[value]
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
            hint = "Write cheap, heavy, or how many milliseconds 1,000 pairs take."
            raise self.error(f"{value} is no cost of {name}", hint, "cost")
        # Milliseconds of a thousand pairs are microseconds of one.
        return float(value)

    def _symmetric(self, name: str, value: Any) -> bool:
        return self._truth(name, "symmetric", value)

    def _vectorised(self, name: str, value: Any) -> bool:
        return self._truth(name, "vectorised", value)

    def _truth(self, name: str, key: str, value: Any) -> bool:
        if not isinstance(value, bool):
            raise self.error(f"{key} of {name} is true or false, not {value}", key=key)
        return value

    def result(self, name: str, value: Any) -> str:
        if value not in ("number", "bool"):
            raise self.error(f"{name} cannot give {value}", "Write result: number, or result: bool.", "result")
        return str(value)

    def longest(self, name: str, value: Any) -> float:
        span = parse_span(value) if isinstance(value, str) else None
        if not span:
            hint = f"Write 'longest: {LONGEST:.0f} s': the time that a batch of pairs may take."
            raise self.error(f"longest of {name} is a duration above 0, not {value}", hint, "longest")
        return span / timedelta(seconds=1)
