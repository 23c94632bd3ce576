"""``EPISODES BY key PAUSE 10 min``: which matches of a pattern are one row of its second table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from chainlake.cep.compiling.names import PositiveName
from chainlake.cep.language import ast
from chainlake.cep.language.check import OPEN, PSEUDO, Checker
from chainlake.cep.language.front_matter import LONGEST, FrontMatter
from chainlake.cep.language.normal_form import Branch
from chainlake.cep.language.resolve import Resolver
from chainlake.cep.language.source_text import SourceText
from chainlake.cep.plan.partition import same_in_match
from chainlake.words import nearest

#: The measure by which the matches of an episode are put in order.
SEVERITY = "severity"
#: What a key may be.
_KEYS = frozenset({"string", "number", "bool"})


@dataclass(frozen=True)
class EpisodeRule:
    """Which matches are one episode.

    Args:
        attr: the attribute, or the measure, that they have in common.
        names: for each branch the event whose attribute it is; none of a measure.
        pause: how far apart they are at most, in ticks.
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
        raise source.error(
            "an episode ends when no later match can join it, and nothing says how long a match may last",
            clause.at,
            hint="Write WITHIN 1 h, also beside a window in events, or 'limits: {longest: 12 h}' in the front matter.",
        )
    severe = _check_severity(source, clause, measures)
    asked = _Asked(source, query, branches, measures, checker)
    if clause.name:
        return EpisodeRule(clause.attr, _of_event(asked), pause, severe, f"{clause.name}.{clause.attr}")
    names = () if clause.attr in measures else _of_all(asked, key)
    if not names:
        _check_kind(asked, measures[clause.attr])
    lost = next((one for one in names if one in front.counted), None)
    if lost is not None:
        raise source.error(
            f"output: COUNT({lost}) leaves the events out that say which {clause.attr} it is",
            clause.at,
            hint=f"Put it into a measure: MEASURES FIRST({lost}.{clause.attr}) AS {clause.attr}.",
        )
    return EpisodeRule(clause.attr, names, pause, severe, clause.attr)


def with_key(names: tuple[PositiveName, ...], rule: EpisodeRule | None) -> tuple[PositiveName, ...]:
    """The names of a pattern, which carry what its episodes need."""
    if rule is None or rule.attr in PSEUDO:
        return names
    return tuple(
        replace(one, attributes=tuple(sorted({*one.attributes, rule.attr}))) if one.name in rule.names else one
        for one in names
    )


def _check_severity(source: SourceText, clause: ast.Episodes, measures: Mapping[str, str]) -> bool:
    kind = measures.get(SEVERITY)
    if kind is not None and kind not in OPEN | {"number", "duration"}:
        raise source.error(
            f"the matches of an episode are put in order by {SEVERITY}, and this one is a {kind}",
            clause.at,
            hint=f"{SEVERITY} is a number; call the measure something else.",
        )
    return kind is not None


def _of_event(asked: _Asked) -> tuple[str, ...]:
    """The event that the clause names, once per branch."""
    clause, query = asked.clause, asked.query
    name, attr = clause.name, clause.attr
    known = {one for branch in asked.branches for one in branch.types}
    if name not in known:
        raise asked.source.error(f"there is no event named {name}", clause.at, hint=nearest(name, known))
    together = query.selection is not None and query.selection.context == "cumulative"
    for branch in asked.branches:
        if name in branch.sets or together:
            raise asked.source.error(
                f"{name} is a set, and its events may differ in {attr}",
                clause.at,
                hint=f"BY {attr}, if conditions equate it in all events; or a measure, such as FIRST({name}.{attr}).",
            )
        if name not in branch.positive:
            raise asked.source.error(
                f"not every match has an event {name}",
                clause.at,
                hint=f"Put it into a measure that every match has: MEASURES Coalesce({name}.{attr}, …) AS {attr}.",
            )
    _check_kind(asked, asked.checker.kind(ast.Ref(name, attr, clause.at)))
    return (name,) * len(asked.branches)


def _of_all(asked: _Asked, key: str | None) -> tuple[str, ...]:
    """For each branch an event whose attribute is that of all events of the match."""
    clause, attr = asked.clause, asked.clause.attr
    _check_kind(asked, asked.checker.kind(ast.Ref(asked.branches[0].positive[0], attr, clause.at)))
    found = []
    for branch in asked.branches:
        of_key = branch.stream is not None and branch.stream.by_key and attr == key
        if not of_key and not same_in_match(branch, attr):
            names = branch.positive
            equal = " AND ".join(f"{one}.{attr} = {other}.{attr}" for one, other in zip(names, names[1:], strict=False))
            raise asked.source.error(
                f"the events of a match may differ in {attr}",
                clause.at,
                hint=f"Say whose it is, BY {names[0]}.{attr}, or equate it: WHERE {equal}."
                if equal
                else f"Put it into a measure: MEASURES FIRST({names[0]}.{attr}) AS {attr}.",
            )
        found.append(next((one for one in branch.positive if one not in branch.kleene), branch.positive[0]))
    return tuple(found)


def _check_kind(asked: _Asked, kind: str) -> None:
    if kind not in _KEYS | OPEN:
        raise asked.source.error(
            f"the matches of an episode have a text, a number or a boolean in common, not a {kind}",
            asked.clause.at,
            hint="BY the attribute that says whose events they are, such as the source's key.",
        )
