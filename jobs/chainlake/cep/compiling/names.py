"""The names of a pattern as columns of its match table, and checks of names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from chainlake.cep.events.columns import kind_of
from chainlake.cep.language import ast
from chainlake.cep.language.check import FIXED_COLUMNS, PSEUDO
from chainlake.cep.language.errors.names import UnknownAttribute, UnknownEvent
from chainlake.cep.language.errors.structure import TakenName
from chainlake.cep.language.front_matter import FrontMatter
from chainlake.cep.language.normal_form import Branch
from chainlake.cep.language.source_text import SourceText
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
        kleene: whether it is bound to a set in any branch, repeated or collected.
        attributes: its attributes that the query mentions or ``output`` lists, in alphabetical order, without the
            fixed ones (id, ts, type).
    """

    name: str
    type: str
    kleene: bool
    attributes: tuple[str, ...]


def kinds_of(columns: Mapping[str, pa.DataType]) -> dict[str, str]:
    """Column name to the kind of its values (``unusable`` if the language has none for its type)."""
    return {name: kind_of(kind) or "unusable" for name, kind in columns.items()}


def check_event_names(source: SourceText, pattern: str, query: ast.Query) -> None:
    """Raise DefinitionError for names that the match table cannot have."""
    if pattern.lower() == "all":
        raise TakenName.all(source)
    spelled: dict[str, str] = {}
    for event in (e for b in query.branches for e in ast.events_of(b.structure)):
        other = spelled.setdefault(event.name.lower(), event.name)
        if other != event.name:
            raise TakenName.case_only(source, event.at, other, event.name)
        kept = event.role in (ast.Role.BOUND, ast.Role.COLLECTED)
        if kept and event.name.lower() == CHANGE_COLUMN:
            raise TakenName.changes(source, event.at, event.name)
        if kept and event.name.lower() in MATCH_COLUMNS:
            raise TakenName.match_column(source, event.at, event.name)


def positive_names(
    source: SourceText,
    branches: tuple[Branch, ...],
    front: FrontMatter,
    kinds: Mapping[str, str] | None,
    derived: frozenset[str] = frozenset(),
) -> tuple[PositiveName, ...]:
    """The positive names of all branches with their attributes; DefinitionError for an ``output`` that does not fit."""
    used: dict[str, set[str]] = {}
    for literal in (x for b in branches for c in b.every_clause for x in c.literals):
        for name, attr in attributes_of(literal):
            used.setdefault(name, set()).add(attr)
    kept = [(b, name) for b in branches for name in b.types if name in b.positive or name in b.sets]
    positive = {name: b.types[name] for b, name in reversed(kept)}
    every = list(dict.fromkeys(name for _, name in kept))
    at = front.places.get("output", (1, 1))
    for name in front.counted:
        if not any(name in b.sets for b in branches):
            raise UnknownEvent.counted(source, at, name, {one for b in branches for one in b.sets})
    for item in front.carried:
        name, _, attr = item.rpartition(".")
        if name and name not in positive:
            raise UnknownEvent.of_output(source, at, name, every)
        if kinds is not None and attr not in kinds or attr in FIXED_COLUMNS:
            raise UnknownAttribute.of_output(source, at, attr, kinds or ())
        if attr in derived:
            raise UnknownAttribute.derived(source, at, attr)
        for one in [name] if name else every:
            used.setdefault(one, set()).add(attr)
    return tuple(
        PositiveName(
            name,
            positive[name],
            any(name in b.sets for b in branches),
            tuple(sorted(used.get(name, set()) - PSEUDO - derived)),
        )
        for name in every
    )


def as_written(names: tuple[PositiveName, ...], query: ast.Query) -> tuple[PositiveName, ...]:
    """The names in the order in which the query has them, since equal matches are compared name by name.

    Branches alone do not have it: an alternative that comes later can have a name that is written earlier.
    """
    events = (event for branch in query.branches for event in ast.events_of(branch.structure))
    places = {name: place for place, name in enumerate(dict.fromkeys(event.name for event in events))}
    return tuple(sorted(names, key=lambda one: places[one.name]))


def with_ranked(
    names: tuple[PositiveName, ...], values: Iterable[ast.Node], derived: frozenset[str]
) -> tuple[PositiveName, ...]:
    """The names of a pattern, with the attributes that its matches are ranked by, so that a row explains its score.

    Args:
        names: the positive names.
        values: the criteria, and the values of ``FOR EACH`` and ``DISTINCT ON``.
        derived: attributes that are never stored.
    """
    used = {pair for value in values for pair in attributes_of(value)}
    return tuple(
        replace(
            one,
            attributes=tuple(
                sorted({*one.attributes, *(attr for name, attr in used if name == one.name)} - PSEUDO - derived)
            ),
        )
        for one in names
    )


def check_rates(source: SourceText, front: FrontMatter, names: tuple[PositiveName, ...]) -> None:
    """Raise DefinitionError for a rate of a name that the pattern does not have."""
    known = {name.name for name in names}
    for name in front.rates:
        if name not in known:
            raise UnknownEvent.of_rates(source, front.places.get("rates", (1, 1)), name, known)


def attributes_of(node: ast.Node) -> set[tuple[str, str]]:
    """The names and attributes that a condition or value mentions."""
    found: set[tuple[str, str]] = set()
    for one in node.walk():
        if isinstance(one, ast.Ref | ast.Prev):
            found.add((one.name, one.attr))
        elif isinstance(one, ast.Aggregate):
            found |= {(one.name, one.attr)} if one.attr is not None else set()
            found |= set() if one.of is None else attributes_of(one.of)
    return found
