"""The YAML front matter of a pattern file: what the pattern reads, its parameters, output and limits (design §5)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from jobs.cep.source_text import At, SourceText, nearest

Scalar = int | float | str | bool

#: Limits and their defaults. They count facts that depend neither on slicing nor on the join order.
LIMITS = {"kleene_members": 20, "matches_per_day": 10_000_000}


@dataclass(frozen=True)
class FrontMatter:
    """The front matter of one pattern.

    Args:
        source: the source whose events it reads, or None.
        description: what it means to a person.
        params: parameter name to number, string, boolean or list of these.
        rates: declared events per unit of time and name, in any common unit; only their order counts.
        output: attributes to carry into the match: ``attr`` (for every name) or ``name.attr``.
        limits: as ``LIMITS``.
    """

    source: str | None = None
    description: str = ""
    params: dict[str, Any] = field(default_factory=dict)
    rates: dict[str, float] = field(default_factory=dict)
    output: tuple[str, ...] = ()
    limits: dict[str, int] = field(default_factory=lambda: dict(LIMITS))
    places: dict[str, At] = field(default_factory=dict)


def read_front_matter(source: SourceText) -> tuple[FrontMatter, int]:
    """The front matter of ``source`` and the character at which the query begins.

    A text whose first line that is neither blank nor a ``#`` comment is not ``---`` has none.

    Raises:
        DefinitionError: broken YAML, an unknown key, a value of the wrong form.
    """
    lines = source.text.splitlines(keepends=True)
    first = 0
    while first < len(lines) and (not lines[first].strip() or lines[first].lstrip().startswith("#")):
        first += 1
    if first == len(lines) or lines[first].rstrip() != "---":
        return FrontMatter(), 0
    last = first + 1
    while last < len(lines) and lines[last].rstrip() != "---":
        last += 1
    if last == len(lines):
        raise source.error("the front matter has no end", (first + 1, 1), hint="Close it with a line '---'.")
    values, places = _yaml(source, "".join(lines[first + 1 : last]), first + 1)
    return _Reader(source, places).read(values), sum(map(len, lines[: last + 1]))


def _yaml(source: SourceText, text: str, offset: int) -> tuple[dict[str, Any], dict[str, At]]:
    import yaml

    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        values = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        at = (mark.line + 1 + offset, mark.column + 1) if mark else (offset, 1)
        problem = getattr(error, "problem", None) or "it cannot be read"
        raise source.error(f"the front matter is not YAML: {problem}", at) from None
    if values is None:
        return {}, {}
    if not isinstance(node, yaml.MappingNode):
        raise source.error("the front matter is a list of 'key: value' lines", (offset + 1, 1))
    places: dict[str, At] = {}
    for key, _ in node.value:
        at = (key.start_mark.line + 1 + offset, key.start_mark.column + 1)
        if str(key.value) in places:
            raise source.error(f"the key {key.value} stands twice", at, key=str(key.value))
        places[str(key.value)] = at
    return {str(key): value for key, value in values.items()}, places


class _Reader:
    def __init__(self, source: SourceText, places: dict[str, At]) -> None:
        self.source = source
        self.places = places

    def read(self, values: dict[str, Any]) -> FrontMatter:
        readers: dict[str, Callable[[str, Any], Any]] = {
            "source": self.text,
            "description": self.text,
            "params": self.params,
            "sets": self.sets,
            "rates": self.rates,
            "output": self.output,
            "limits": self.limits,
        }
        for key in values:
            if key not in readers:
                raise self.error(key, f"the front matter has no key {key}", nearest(key, readers))
        found = {key: readers[key](key, value) for key, value in values.items()}
        sets = found.pop("sets", {})
        params = found.pop("params", {})
        for name in sets:
            if name in params:
                raise self.error("sets", f"{name} is a parameter and a set")
        return FrontMatter(params={**params, **sets}, places=self.places, **found)

    def error(self, key: str, what: str, hint: str | None = None) -> Exception:
        return self.source.error(what, self.places.get(key, (1, 1)), key=key, hint=hint)

    def text(self, key: str, value: Any) -> str:
        if not isinstance(value, str) or not value.strip():
            raise self.error(key, f"{key} is a text")
        return value.strip()

    def mapping(self, key: str, value: Any) -> dict[str, Any]:
        if not isinstance(value, dict) or not all(isinstance(name, str) for name in value):
            raise self.error(key, f"{key} is a map of names", "Write one 'name: value' per line, indented.")
        return value

    def params(self, key: str, value: Any) -> dict[str, Any]:
        return {name: self.param(key, name, v) for name, v in self.mapping(key, value).items()}

    def param(self, key: str, name: str, value: Any) -> Any:
        problem = param_problem(value)
        if problem:
            raise self.error(key, f"{name} {problem}")
        return tuple(value) if isinstance(value, list) else value

    def sets(self, key: str, value: Any) -> dict[str, Any]:
        for name, items in self.mapping(key, value).items():
            if not isinstance(items, list):
                raise self.error(key, f"{name} is a list of strings or numbers")
        return self.params(key, value)

    def rates(self, key: str, value: Any) -> dict[str, float]:
        for name, rate in self.mapping(key, value).items():
            if isinstance(rate, bool) or not isinstance(rate, int | float) or not rate >= 0 or math.isinf(rate):
                raise self.error(key, f"the rate of {name} is a number that is not negative")
        return {name: float(rate) for name, rate in value.items()}

    def output(self, key: str, value: Any) -> tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.error(key, "output is a list of attributes", "Write [price, a.volume].")
        return tuple(dict.fromkeys(value))

    def limits(self, key: str, value: Any) -> dict[str, int]:
        for name, limit in self.mapping(key, value).items():
            if name not in LIMITS:
                raise self.error(key, f"there is no limit {name}", nearest(name, LIMITS))
            if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
                raise self.error(key, f"{name} is a whole number from 1 on")
        if value.get("kleene_members", 1) > 40:
            raise self.error(key, "kleene_members is at most 40", "40 members make 10^12 subsets.")
        return {**LIMITS, **value}


def param_problem(value: Any) -> str | None:
    """Why ``value`` cannot be a parameter, or None: numbers, strings, booleans and lists of them can."""
    for item in value if isinstance(value, list | tuple) else (value,):
        if not isinstance(item, int | float | str | bool):
            return "is neither a number nor a string, nor a list of these"
        if isinstance(item, float) and not math.isfinite(item):
            return "is not a finite number"
    return None
