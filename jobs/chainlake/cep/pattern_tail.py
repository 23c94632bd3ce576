"""What a query says after its window: how far events may be apart, which matches are kept, what is computed of them."""

from __future__ import annotations

from dataclasses import dataclass, field

from chainlake.cep.language import ast
from chainlake.cep.language.check import Checker
from chainlake.cep.language.computed import Computed, rebuilt
from chainlake.cep.language.front_matter import LONGEST, FrontMatter
from chainlake.cep.language.normal_form import Branch
from chainlake.cep.language.source_text import SourceText
from chainlake.schemas.matches import CHANGE_COLUMN
from chainlake.schemas.matches import FIXED_COLUMNS as MATCH_COLUMNS

#: The window of a pattern that has none, in ticks.
UNBOUNDED = 1 << 61


@dataclass(frozen=True)
class Measure:
    """A computed column of the match table.

    Args:
        name: the column.
        kind: of its values: number, string, bool, time, duration; any if the columns are not known.
        values: for each branch the value; what the branch lacks is null in it.
    """

    name: str
    kind: str
    values: tuple[ast.Node, ...]


@dataclass(frozen=True)
class Extras:
    """What a query says beyond structure, conditions and window.

    Args:
        pause: the longest time between neighbouring events of a match, in ticks, or None.
        keep: ``MAXIMAL``, ``OUTERMOST``, or empty.
        measures: computed columns of the match table.
        computed: columns that are computed of one event each, before the search.
        written: the branches before values of one event became columns: for checks and for people.
        measured: the values of the measures, likewise.
    """

    pause: int | None = None
    keep: str = ""
    measures: tuple[Measure, ...] = ()
    computed: tuple[Computed, ...] = ()
    written: tuple[Branch, ...] = field(default=(), repr=False)
    measured: tuple[ast.Node, ...] = field(default=(), repr=False)

    @property
    def conditions(self) -> tuple[ast.Node, ...]:
        """All comparisons and tests of all branches, as written."""
        return tuple(x for b in self.written for c in b.every_clause for x in c.literals)


def check_tail(source: SourceText, query: ast.Query, branches: tuple[Branch, ...]) -> None:
    """Check that a query may have no window, and that it may keep the largest matches only.

    Raises:
        DefinitionError: it may not.
    """
    if query.within is None:
        _check_unbounded(source, query, branches)
    if query.keep:
        _check_keep(source, query, branches)


def check_longest(source: SourceText, front: FrontMatter, *, bounded: bool) -> None:
    """Raise DefinitionError for a limit of stretches in a pattern that a window bounds."""
    if bounded and LONGEST in front.limits:
        raise source.error(
            f"{LONGEST} is a limit of patterns without WITHIN, and this one has a window",
            front.places.get("limits", (1, 1)),
            key="limits",
            hint=f"Leave out either WITHIN or {LONGEST}.",
        )


def _check_unbounded(source: SourceText, query: ast.Query, branches: tuple[Branch, ...]) -> None:
    at = query.branches[0].at if query.pause is None else query.pause.at
    for branch in branches:
        if branch.stream is None:
            hint = "Write WITHIN before PAUSE. Only neighbours, SEQ STRICT (…), are bounded by a pause alone."
            raise source.error("the window is missing", at, hint=hint)
        for name in branch.gaps:
            if branch.open_left(name) or branch.open_right(name):
                raise source.error(
                    f"without WITHIN, {name} has to stand between two events of the sequence",
                    at,
                    hint="The window says how far before or after a match it is looked for.",
                )


def _check_keep(source: SourceText, query: ast.Query, branches: tuple[Branch, ...]) -> None:
    loose = frozenset(name for branch in branches if branch.stream is None for name in branch.kleene)
    conditions = [query.where, *(branch.where for branch in query.branches)]
    for node in (node for condition in conditions if condition is not None for node in condition.walk()):
        if isinstance(node, ast.Aggregate) and node.name in loose:
            raise source.error(
                f"{query.keep} cannot be combined with {node.function} over the repeated event {node.name}",
                node.at,
                hint=f"COLLECT({node.name}) takes all events that fit; SEQ STRICT takes neighbours.",
            )


def measures_of(
    source: SourceText, measures: tuple[ast.Measure, ...], branches: tuple[Branch, ...], checker: Checker
) -> tuple[Measure, ...]:
    """The measures of a resolved query.

    Raises:
        DefinitionError: a name that is taken, a value that is none in every match.
    """
    taken = {name.lower(): f"the event {name}" for branch in branches for name in branch.types}
    taken |= {name: "a column of every match table" for name in (*MATCH_COLUMNS, CHANGE_COLUMN)}
    found = []
    for one in measures:
        if one.name.lower() in taken:
            what = f"{one.name} is {taken[one.name.lower()]} already"
            raise source.error(what, one.at, hint="Choose another name for the measure.")
        taken[one.name.lower()] = f"the measure {one.name}"
        kind = checker.kind(one.value)
        if kind == "list":
            raise source.error("a measure is one value, and this is a list", one.value.at)
        values = tuple(_in_branch(one.value, branch) for branch in branches)
        for branch in branches:
            _check_members(source, one.value, branch)
        found.append(Measure(one.name, kind, values))
    return tuple(found)


def _in_branch(value: ast.Node, branch: Branch) -> ast.Node:
    """The value where only the events of a branch are bound: others have no attributes, and their sets are empty."""
    if isinstance(value, ast.Ref | ast.Prev | ast.Aggregate) and value.name not in {*branch.positive, *branch.sets}:
        counts = isinstance(value, ast.Aggregate) and value.function == "COUNT"
        return ast.Literal(0, value.at) if counts else ast.Case((), None, value.at)
    return rebuilt(value, lambda part: _in_branch(part, branch))


def _check_members(source: SourceText, value: ast.Node, branch: Branch) -> None:
    for node in value.walk():
        if isinstance(node, ast.Ref | ast.Prev) and node.name in branch.sets:
            raise source.error(
                f"{node.name} is a set, and {node.name}.{node.attr} is a value of each member",
                node.at,
                hint=f"Say which: FIRST({node.name}.{node.attr}), LAST, MIN, MAX, AVG, …",
            )
        if isinstance(node, ast.Aggregate) and node.name in branch.positive and node.name not in branch.kleene:
            raise source.error(
                f"{node.function} needs a repeated event, and {node.name} is a single one",
                node.at,
                hint=f"Write {node.name}.attribute.",
            )
