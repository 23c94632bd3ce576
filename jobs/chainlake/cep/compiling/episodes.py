"""``EPISODES BY key PAUSE 10 min``: which matches of a pattern are one row of its second table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from chainlake.cep.compiling.errors import UnfitEpisodes
from chainlake.cep.compiling.names import PositiveName
from chainlake.cep.language import ast
from chainlake.cep.language.check import OPEN, PSEUDO, Checker
from chainlake.cep.language.errors.names import UnknownEvent
from chainlake.cep.language.front_matter import LONGEST, FrontMatter
from chainlake.cep.language.normal_form import Branch
from chainlake.cep.language.resolve import Resolver
from chainlake.cep.language.source_text import SourceText
from chainlake.cep.plan.partition import same_in_match

#: The measure by which the matches of an episode are put in order.
SEVERITY = "severity"
#: What a key may be.
_KEYS = frozenset({"string", "number", "bool"})


@dataclass(frozen=True)
class EpisodeRule:
    """Which matches are one episode.

    Args:
        attr: the attribute, or the measure, that they have in common.
        names: for each branch, the event whose attribute it is; empty for a measure.
        pause: how far apart the matches are at most, in ticks.
        severe: whether the pattern has the measure ``severity``.
        written: the key as the query spells it.
    """

    attr: str
    names: tuple[str, ...]
    pause: int
    severe: bool
    written: str = field(default="", compare=False)


@dataclass(frozen=True)
class _Asked:
    """The clause, and what it may refer to.

    Args:
        source: for errors.
        query: the resolved query.
        branches: in normal form.
        measures: of the pattern, with the kinds of their values.
        checker: knows the kinds of the columns.
    """

    source: SourceText
    query: ast.Query
    branches: tuple[Branch, ...]
    measures: Mapping[str, str]
    checker: Checker

    @property
    def clause(self) -> ast.Episodes:
        assert self.query.episodes is not None
        return self.query.episodes


def episode_rule(
    query: ast.Query,
    branches: tuple[Branch, ...],
    measures: Mapping[str, str],
    checker: Checker,
    resolver: Resolver,
    *,
    front: FrontMatter,
    key: str | None,
) -> EpisodeRule | None:
    """The rule of a resolved query, or None if it has none.

    Args:
        query: the query.
        branches: in normal form, before values of one event became columns.
        measures: of the pattern, with the kinds of their values.
        checker, resolver: of the pattern.
        front: the front matter.
        key: the column that says which events are of one series, or None.

    Raises:
        DefinitionError: the key is not one that every match has, or nothing bounds how long a match may last.
    """
    clause = query.episodes
    if clause is None:
        return None
    source = resolver.source
    pause = resolver.window(clause.pause, "pause")
    if query.within is None and (LONGEST not in front.limits or query.counted):
        raise UnfitEpisodes.unbounded(source, clause.at)
    severe = _check_severity(source, clause, measures)
    asked = _Asked(source, query, branches, measures, checker)
    if clause.name:
        return EpisodeRule(clause.attr, _of_event(asked), pause, severe, f"{clause.name}.{clause.attr}")
    names = () if clause.attr in measures else _of_all(asked, key)
    if not names:
        _check_kind(asked, measures[clause.attr])
    lost = next((one for one in names if one in front.counted), None)
    if lost is not None:
        raise UnfitEpisodes.counted(source, clause.at, lost, clause.attr)
    return EpisodeRule(clause.attr, names, pause, severe, clause.attr)


def with_key(names: tuple[PositiveName, ...], rule: EpisodeRule | None) -> tuple[PositiveName, ...]:
    """The names of a pattern, with the attribute that its episodes need."""
    if rule is None or rule.attr in PSEUDO:
        return names
    return tuple(
        replace(one, attributes=tuple(sorted({*one.attributes, rule.attr}))) if one.name in rule.names else one
        for one in names
    )


def _check_severity(source: SourceText, clause: ast.Episodes, measures: Mapping[str, str]) -> bool:
    kind = measures.get(SEVERITY)
    if kind is not None and kind not in OPEN | {"number", "duration"}:
        raise UnfitEpisodes.severity(source, clause.at, SEVERITY, kind)
    return kind is not None


def _of_event(asked: _Asked) -> tuple[str, ...]:
    """The event that the clause names, once per branch."""
    clause, query = asked.clause, asked.query
    name, attr = clause.name, clause.attr
    known = {one for branch in asked.branches for one in branch.types}
    if name not in known:
        raise UnknownEvent.of(asked.source, clause.at, name, known)
    together = query.selection is not None and query.selection.context == "cumulative"
    for branch in asked.branches:
        if name in branch.sets or together:
            raise UnfitEpisodes.a_set(asked.source, clause.at, name, attr)
        if name not in branch.positive:
            raise UnfitEpisodes.not_in_all(asked.source, clause.at, name, attr)
    _check_kind(asked, asked.checker.kind(ast.Ref(name, attr, clause.at)))
    return (name,) * len(asked.branches)


def _of_all(asked: _Asked, key: str | None) -> tuple[str, ...]:
    """For each branch, an event whose attribute equals that of all events of the match."""
    clause, attr = asked.clause, asked.clause.attr
    _check_kind(asked, asked.checker.kind(ast.Ref(asked.branches[0].positive[0], attr, clause.at)))
    found = []
    for branch in asked.branches:
        of_key = branch.stream is not None and branch.stream.by_key and attr == key
        if not of_key and not same_in_match(branch, attr):
            raise UnfitEpisodes.unequal(asked.source, clause.at, attr, branch.positive)
        found.append(next((one for one in branch.positive if one not in branch.kleene), branch.positive[0]))
    return tuple(found)


def _check_kind(asked: _Asked, kind: str) -> None:
    if kind not in _KEYS | OPEN:
        raise UnfitEpisodes.kind(asked.source, asked.clause.at, kind)
