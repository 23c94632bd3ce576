"""A compiled pattern: what it needs, who owns its matches, and how its text becomes it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from chainlake.cep.language import ast
from chainlake.cep.language.check import FIXED_COLUMNS, PSEUDO, Checker
from chainlake.cep.language.formatter import format_query
from chainlake.cep.language.front_matter import FrontMatter, param_problem, read_front_matter
from chainlake.cep.language.normal_form import Branch, normal_form
from chainlake.cep.language.parser import parse
from chainlake.cep.language.resolve import Resolver
from chainlake.cep.language.source_text import SourceText, nearest
from chainlake.cep.plan import partition
from chainlake.cep.plan.order import choose_order
from chainlake.cep.remembered import Remembered
from chainlake.definitions.derived import History
from chainlake.schemas.matches import CHANGE_COLUMN
from chainlake.schemas.matches import FIXED_COLUMNS as MATCH_COLUMNS

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class PositiveName:
    """A positive name of the pattern.

    Args:
        name: as written.
        type: its event type (in the first branch that has it).
        kleene: whether it is repeated in any branch.
        attributes: its attributes that the query mentions or ``output`` lists, in alphabetical order, without the
            fixed ones (id, ts, type).
    """

    name: str
    type: str
    kleene: bool
    attributes: tuple[str, ...]


@dataclass(frozen=True)
class Pattern:
    """A compiled pattern.

    Args:
        name: the file's stem.
        branches: in normal form.
        window_us: the window, in µs (in native units of ``ts`` if not ``strict``).
        strict: whether ``ts`` is a time in µs and durations carry units.
        front: the front matter.
        names: the positive names of all branches, in the order written.
        definition_hash: changes when the result can change (docs/semantics.md#definitions).
        text: for errors.
        kinds: column name to kind, or None if compiled without columns.
        types: column name to Arrow type, or None.
        histories: the derived columns that conditions mention.
    """

    name: str
    branches: tuple[Branch, ...]
    window_us: int
    strict: bool
    front: FrontMatter
    names: tuple[PositiveName, ...]
    definition_hash: str
    text: SourceText = field(repr=False)
    kinds: Mapping[str, str] | None = field(repr=False, default=None)
    types: Mapping[str, pa.DataType] | None = field(repr=False, default=None)
    histories: tuple[History, ...] = ()

    @property
    def source(self) -> str | None:
        """The source whose events it reads."""
        return self.front.source

    @property
    def description(self) -> str:
        """What it means to a person."""
        return self.front.description

    @property
    def file(self) -> str | None:
        """The file it came from."""
        return self.text.file

    @property
    def limits(self) -> dict[str, int]:
        """``kleene_members`` and ``matches_per_day``."""
        return self.front.limits

    @cached_property
    def memory(self) -> Remembered:
        """What searches for this pattern worked out once; it never changes what they find."""
        return Remembered()

    @cached_property
    def open_right(self) -> bool:
        """Whether some negated name has no positive name after it."""
        return any(b.open_right(f) for b in self.branches for f in b.negated)

    @cached_property
    def open_left(self) -> bool:
        """Whether some negated name has no positive name before it."""
        return any(b.open_left(f) for b in self.branches for f in b.negated)

    @property
    def decision(self) -> str:
        """When a match is decided: ``start+W`` or ``end`` (docs/semantics.md#owner-of-a-match)."""
        return "start+W" if self.open_right else "end"

    def read_range(self, lo_us: int, hi_us: int) -> tuple[int, int]:
        """The events that the matches deciding in ``[lo_us, hi_us)`` need: those with ts in the range returned."""
        windows = 2 if self.open_right and self.open_left else 1
        return lo_us - windows * self.window_us, hi_us

    def source_range(self, lo_us: int, hi_us: int) -> tuple[int, int]:
        """The events of the source that these events and their histories need (docs/semantics.md#read-range)."""
        lo, hi = self.read_range(lo_us, hi_us)
        return lo - max((one.reach_us for one in self.histories), default=0), hi

    def declared_order(self) -> tuple[str, ...] | None:
        """The binding order of all positive names that the front matter's rates give, or None if they do not."""
        rates = self.front.rates
        if not rates or any(name.name not in rates for name in self.names):
            return None
        if len(self.branches) == 1:
            return choose_order(self.branches[0], rates)
        return tuple(name.name for name in sorted(self.names, key=lambda name: (name.kleene, rates[name.name])))

    @cached_property
    def event_types(self) -> frozenset[str]:
        """All event types of the pattern, negated ones included."""
        return frozenset(t for b in self.branches for t in b.types.values())

    @cached_property
    def mentioned(self) -> frozenset[str]:
        """All attributes in conditions, pseudo-attributes included."""
        return _mentioned(self.branches)

    @cached_property
    def words(self) -> frozenset[str]:
        """All strings in conditions."""
        found: set[str] = set()
        for literal in (x for b in self.branches for c in b.clauses for x in c.literals):
            for node in literal.walk():
                values = (node, *(node.items if isinstance(node, ast.Member) else ()))
                found |= {v.value for v in values if isinstance(v, ast.Literal) and isinstance(v.value, str)}
        return frozenset(found)

    @cached_property
    def columns_needed(self) -> set[str]:
        """Columns, histories included, that detection and output need (the source's key not included)."""
        attributes = {a for name in self.names for a in name.attributes}
        return {"event_id", "type", "ts"} | attributes | (self.mentioned - {"id"})

    @cached_property
    def partition_key(self) -> str | None:
        """A column whose equalities link all names of every branch, or None (docs/semantics.md#partition-keys)."""
        return partition.partition_key(self.branches)


def compile_pattern(
    text: str,
    *,
    name: str = "pattern",
    file: str | None = None,
    columns: Mapping[str, pa.DataType] | None = None,
    params: Mapping[str, Any] | None = None,
    strict_units: bool = True,
    histories: Sequence[History] = (),
) -> Pattern:
    """Compile a pattern file (front matter optional).

    Example:
        >>> import chainlake as cl
        >>> pattern = cl.compile_pattern("PATTERN SEQ(Bar a, Bar b) WHERE b.close > a.close WITHIN 5 min")
        >>> sorted(pattern.event_types), pattern.window_us
        (['Bar'], 300000000)

    Args:
        text: front matter and query.
        name: the pattern's name.
        file: shown in errors.
        columns: what patterns of the source may refer to, with Arrow types; None leaves the check to the first run.
        params: values for parameters and sets; they win over the front matter's.
        strict_units: durations carry units and ``ts`` is a time in µs; else ``ts`` is a plain number and a bare
            duration counts its unit, a second.
        histories: those of the ``columns`` that are derived; they are computed when events are read and never stored.

    Raises:
        DefinitionError: with file, line, column, excerpt and hint.
    """
    source = SourceText(text, None if file is None else str(file))
    front, start = read_front_matter(source)
    given = {key: tuple(v) if isinstance(v, list | set | tuple) else v for key, v in (params or {}).items()}
    for key, value in given.items():
        problem = param_problem(value)
        if problem:
            raise source.error(f"the parameter {key} {problem}", key=key)
    every = {**front.params, **given}
    query = parse(source, start)
    resolver = Resolver(source, every, strict_units)
    resolved = resolver.query(query)
    window = resolver.window(resolved.within)
    branches = normal_form(source, resolved)
    kinds = None if columns is None else kinds_of(columns)
    checker = Checker(source, kinds, strict_units)
    for literal in (x for b in branches for c in b.clauses for x in c.literals):
        checker.condition(literal)
    if strict_units:
        check_event_names(source, name, query)
    derived = {one.name: one for one in histories}
    names = positive_names(source, branches, front, kinds, frozenset(derived))
    mentioned = sorted(_mentioned(branches) & derived.keys())
    check_rates(source, front, names)
    identity: dict[str, Any] = {
        "query": format_query(query),
        "params": {key: list(v) if isinstance(v, tuple) else v for key, v in every.items()},
        "output": sorted(front.output),
        "source": front.source,
        "strict": strict_units,
    }
    if mentioned:
        identity["derived"] = [astuple(derived[column]) for column in mentioned]
    digest = hashlib.blake2b(json.dumps(identity, sort_keys=True).encode(), digest_size=16).hexdigest()
    used = tuple(derived[column] for column in mentioned)
    return Pattern(name, branches, window, strict_units, front, names, digest, source, kinds, columns, used)


def _mentioned(branches: tuple[Branch, ...]) -> frozenset[str]:
    """All attributes in conditions, pseudo-attributes included."""
    return frozenset(
        node.attr
        for b in branches
        for c in b.clauses
        for literal in c.literals
        for node in literal.walk()
        if isinstance(node, ast.Ref | ast.Aggregate) and node.attr is not None
    )


def kinds_of(columns: Mapping[str, pa.DataType]) -> dict[str, str]:
    """Column name to the kind of its values (``unusable`` if the language has none for its type)."""
    from chainlake.cep.events.dataset import kind_of

    return {name: kind_of(kind) or "unusable" for name, kind in columns.items()}


def check_event_names(source: SourceText, pattern: str, query: ast.Query) -> None:
    """Raise DefinitionError for names that the match table cannot have."""
    if pattern.lower() == "all":
        raise source.error("a pattern cannot be named all", hint="matches.all is the view over all patterns.")
    spelled: dict[str, str] = {}
    for event in (e for b in query.branches for e in ast.events_of(b.structure)):
        other = spelled.setdefault(event.name.lower(), event.name)
        if other != event.name:
            raise source.error(
                f"the names {other} and {event.name} differ only in case",
                event.at,
                hint="Columns are case-insensitive; choose another name.",
            )
        if not event.negated and event.name.lower() == CHANGE_COLUMN:
            raise source.error(
                f"the column {event.name} marks the changes of a match table",
                event.at,
                hint="Choose another name for the event.",
            )
        if not event.negated and event.name.lower() in MATCH_COLUMNS:
            raise source.error(
                f"{event.name} is a column of every match table", event.at, hint="Choose another name for the event."
            )


def positive_names(
    source: SourceText,
    branches: tuple[Branch, ...],
    front: FrontMatter,
    kinds: Mapping[str, str] | None,
    derived: frozenset[str] = frozenset(),
) -> tuple[PositiveName, ...]:
    """The positive names of all branches with their attributes; DefinitionError for an ``output`` that does not fit."""
    used: dict[str, set[str]] = {}
    for literal in (x for b in branches for c in b.clauses for x in c.literals):
        for node in literal.walk():
            if isinstance(node, ast.Ref | ast.Aggregate) and node.attr is not None:
                used.setdefault(node.name, set()).add(node.attr)
    positive = {name: b.types[name] for b in reversed(branches) for name in reversed(b.positive)}
    every = list(dict.fromkeys(name for b in branches for name in b.positive))
    at = front.places.get("output", (1, 1))
    for item in front.output:
        name, _, attr = item.rpartition(".")
        if name and name not in positive:
            raise source.error(f"output: there is no event named {name}", at, key="output", hint=nearest(name, every))
        if kinds is not None and attr not in kinds or attr in FIXED_COLUMNS:
            raise source.error(
                f"output: the events have no attribute {attr}", at, key="output", hint=nearest(attr, kinds or ())
            )
        if attr in derived:
            hint = "List the attribute it is a history of."
            raise source.error(f"output: {attr} is derived and never stored", at, key="output", hint=hint)
        for one in [name] if name else every:
            used.setdefault(one, set()).add(attr)
    return tuple(
        PositiveName(
            name,
            positive[name],
            any(name in b.kleene for b in branches),
            tuple(sorted(used.get(name, set()) - PSEUDO - derived)),
        )
        for name in every
    )


def check_rates(source: SourceText, front: FrontMatter, names: tuple[PositiveName, ...]) -> None:
    """Raise DefinitionError for a rate of a name that is not there."""
    known = {name.name for name in names}
    for name in front.rates:
        if name not in known:
            raise source.error(
                f"rates: there is no positive event named {name}",
                front.places.get("rates", (1, 1)),
                key="rates",
                hint=nearest(name, known),
            )
