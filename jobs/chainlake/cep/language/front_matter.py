"""The YAML front matter of a pattern file: what it reads, its parameters, output and limits (docs/language.md)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any, ClassVar

from chainlake.cep.language.declared.examples import Example, read_examples
from chainlake.cep.language.declared.function import Declared
from chainlake.cep.language.declared.read import read_functions
from chainlake.cep.language.errors.front_matter import KeyPlace, UnclearValue, UnknownKey, WrongForm
from chainlake.cep.language.errors.placed import Referred
from chainlake.cep.language.source_text import At, SourceText
from chainlake.days import parse_day
from chainlake.definitions.alerting import Alerts, read_alerts
from chainlake.definitions.duration import parse_span
from chainlake.definitions.errors import UnfitAlerts
from chainlake.definitions.yaml_lines import Document, Place, YamlProblem, read_yaml
from chainlake.errors import UsageError

Scalar = int | float | str | bool

#: Limits and their defaults. What they count depends neither on slicing nor on the join order.
LIMITS = {"kleene_members": 20, "set_members": 10_000, "matches_per_day": 10_000_000, "compared_events": 20_000_000}
#: A limit without a default: how long a stretch of neighbours may be in a pattern without WITHIN.
LONGEST = "longest"


_COUNTED = re.compile(r"\s*COUNT\s*\(\s*(\w+)\s*\)\s*", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True)
class FrontMatter:
    """The front matter of one pattern.

    Args:
        source: the source whose events the pattern reads, or None.
        description: what the pattern finds, in words.
        params: parameters by name: numbers, strings, booleans or lists of these.
        rates: declared events per unit of time for each name, in any common unit.
        output: attributes to carry into the match: ``attr`` (for every name) or ``name.attr``; ``COUNT(name)`` keeps
            only the number of events of a set.
        limits: as ``LIMITS``, and ``LONGEST`` in µs if it is stated.
        start: for a pattern that uses up events, the first UTC day for which a lake has matches.
        functions: what conditions may call besides the functions of the language, by lower-case name.
        tests: events, and the matches that must be found in them.
        alerts: where matches are sent, if anywhere.
        places: line and column of each key.
    """

    #: Fields that change no match; what any other one says is in the pattern's hash (`compiling/identity.py`).
    NEVER_HASHED: ClassVar[tuple[str, ...]] = ("description", "rates", "start", "tests", "alerts", "places")

    source: str | None = None
    description: str = ""
    params: dict[str, Any] = field(default_factory=dict)
    rates: dict[str, float] = field(default_factory=dict)
    output: tuple[str, ...] = ()
    limits: dict[str, int] = field(default_factory=lambda: dict(LIMITS))
    start: date | None = None
    functions: dict[str, Declared] = field(default_factory=dict)
    tests: tuple[Example, ...] = ()
    alerts: Alerts | None = None
    places: dict[str, At] = field(default_factory=dict)

    @property
    def counted(self) -> tuple[str, ...]:
        """The sets for which only the number of events is kept."""
        return tuple(found[1] for found in map(_COUNTED.fullmatch, self.output) if found is not None)

    @property
    def carried(self) -> tuple[str, ...]:
        """The attributes that ``output`` lists."""
        return tuple(item for item in self.output if _COUNTED.fullmatch(item) is None)


def read_front_matter(source: SourceText) -> tuple[FrontMatter, int]:
    """The front matter of ``source`` and the character at which the query begins.

    There is none unless the first line that is neither blank nor a ``#`` comment is ``---``.

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
        raise WrongForm.no_end(KeyPlace(source, (first + 1, 1)))
    document = _yaml(source, "".join(lines[first + 1 : last]), first + 1)
    return _Reader(source, document).read(), sum(map(len, lines[: last + 1]))


def _yaml(source: SourceText, text: str, offset: int) -> Document:
    """The YAML in the lines after line ``offset`` of a pattern, with spots that count from the start of the text."""
    try:
        data, found = read_yaml(text)
    except YamlProblem as error:
        raise Referred.no_yaml(source, (error.line + offset, error.column), error.what, error.hint, error.key) from None
    if data is None:
        data = {}
    if not isinstance(data, dict):
        raise WrongForm.no_keys(KeyPlace(source, (offset + 1, 1)))
    return Document(data, {place: spot._replace(line=spot.line + offset) for place, spot in found.items()})


class _Reader:
    def __init__(self, source: SourceText, document: Document) -> None:
        self.source = source
        self.document = document
        self.values = document.data
        self.spots = document.spots
        self.places = {key: (spot.line, spot.column) for key in self.values for spot in [document.spots[(key,)]]}

    def read(self) -> FrontMatter:
        readers: dict[str, Callable[[str, Any], Any]] = {
            "source": self.text,
            "description": self.text,
            "params": self.params,
            "sets": self.sets,
            "rates": self.rates,
            "output": self.output,
            "limits": self.limits,
            "start": self.start,
            "functions": lambda key, value: read_functions(self.source, self.document, value),
            "tests": self.tests,
            "alerts": self.alerts,
        }
        for key in self.values:
            if key not in readers:
                raise UnknownKey.of(self.place(key), readers)
        found = {key: readers[key](key, value) for key, value in self.values.items()}
        sets = found.pop("sets", {})
        params = found.pop("params", {})
        for name in sets:
            if name in params:
                raise UnclearValue.both(self.place("sets"), name)
        return FrontMatter(params={**params, **sets}, places=self.places, **found)

    def place(self, key: str) -> KeyPlace:
        return KeyPlace(self.source, self.places.get(key, (1, 1)), key)

    def text(self, key: str, value: Any) -> str:
        typed = self.spots[(key,)].text
        if value is None or typed is None or not typed.strip():
            raise WrongForm.no_text(self.place(key))
        return typed.strip()

    def mapping(self, key: str, value: Any) -> dict[str, Any]:
        if not isinstance(value, dict) or not all(isinstance(name, str) for name in value):
            raise WrongForm.no_map(self.place(key))
        return value

    def params(self, key: str, value: Any) -> dict[str, Any]:
        return {name: self.param(key, name, v) for name, v in self.mapping(key, value).items()}

    def param(self, key: str, name: str, value: Any) -> Any:
        problem = param_problem(value)
        if problem:
            raise UnclearValue.no_value(self.place(key), name, problem)
        if isinstance(value, list):
            return self.listed(key, name, value)
        like = self.spots[(key, name)].looks_like
        if like is not None:
            raise self.unclear(key, name, value, like)
        return value

    def listed(self, key: str, name: str, items: list[Any]) -> tuple[Any, ...]:
        """A list's values, all of one kind; numbers are written as they print, since others may be meant as codes."""
        for at, item in enumerate(items):
            spot = self.spots[(key, name, at)]
            if spot.looks_like in ("a number", "not a finite number"):
                raise self.unclear(key, name, spot.text, spot.looks_like)
            if _is_number(item) and str(item) != spot.text:
                raise self.unclear(key, name, spot.text, "a number")
            if _kind(item) != _kind(items[0]):
                raise UnclearValue.two_kinds(
                    self.place(key),
                    name,
                    (_kind(items[0]), _kind(item)),
                    (str(self.spots[(key, name, 0)].text), str(spot.text)),
                )
        return tuple(items)

    def unclear(self, key: str, name: str, word: Any, like: str) -> Exception:
        if like == "not a finite number":
            return UnclearValue.infinite(self.place(key), name, word)
        return UnclearValue.ambiguous(self.place(key), name, word, like)

    def sets(self, key: str, value: Any) -> dict[str, Any]:
        for name, items in self.mapping(key, value).items():
            if not isinstance(items, list):
                raise WrongForm.no_list(self.place(key), name)
        return self.params(key, value)

    def rates(self, key: str, value: Any) -> dict[str, float]:
        for name, rate in self.mapping(key, value).items():
            if isinstance(rate, bool) or not isinstance(rate, int | float) or not rate >= 0 or math.isinf(rate):
                raise WrongForm.no_rate(self.place(key), name)
        return {name: float(rate) for name, rate in value.items()}

    def output(self, key: str, value: Any) -> tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise WrongForm.no_attributes(self.place(key))
        return tuple(dict.fromkeys(value))

    def limits(self, key: str, value: Any) -> dict[str, int]:
        found = {}
        for name, limit in self.mapping(key, value).items():
            if name == LONGEST:
                found[name] = self.longest(key, limit)
                continue
            if name not in LIMITS:
                raise UnknownKey.limit(self.place(key), name, [*LIMITS, LONGEST])
            if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
                raise WrongForm.no_limit(self.place(key), name)
        if value.get("kleene_members", 1) > 40:
            raise WrongForm.high_limit(self.place(key))
        return {**LIMITS, **value, **found}

    def start(self, key: str, value: Any) -> date:
        typed = self.spots[(key,)].text
        try:
            return parse_day(str(typed))
        except UsageError:
            raise WrongForm.no_day(self.place(key), typed) from None

    def tests(self, key: str, value: Any) -> tuple[Example, ...]:
        def place_of(place: Place) -> KeyPlace:
            spot = self.spots.get(place, self.spots[key,])
            return KeyPlace(self.source, (spot.line, spot.column), key)

        return read_examples(value, self.spots, place_of)

    def alerts(self, key: str, value: Any) -> Alerts:
        try:
            return read_alerts(value)
        except UnfitAlerts as error:
            raise Referred.of(self.source, self.place(key).at, error.what, error.hint, key=key) from None

    def longest(self, key: str, value: Any) -> int:
        span = parse_span(value) if isinstance(value, str) else None
        if not span:
            raise WrongForm.no_span(self.place(key), LONGEST, value)
        return span // timedelta(microseconds=1)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _kind(value: Any) -> str:
    return "numbers" if _is_number(value) else "true or false" if isinstance(value, bool) else "strings"


def param_problem(value: Any) -> str | None:
    """Why ``value`` cannot be a parameter, or None: numbers, strings, booleans and lists of them can."""
    for item in value if isinstance(value, list | tuple) else (value,):
        if not isinstance(item, int | float | str | bool):
            return "is neither a number nor a string, nor a list of these"
        if isinstance(item, float) and not math.isfinite(item):
            return "is not a finite number"
    return None
