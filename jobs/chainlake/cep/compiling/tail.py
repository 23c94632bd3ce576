"""What a query says after its window: how far apart events may be, which matches are kept, what they measure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product

from chainlake.cep.compiling.episodes import EpisodeRule
from chainlake.cep.compiling.errors import UnfitRanking
from chainlake.cep.language import ast
from chainlake.cep.language.check import OPEN, Checker
from chainlake.cep.language.computed import Computed, rebuilt
from chainlake.cep.language.errors.kinds import NoSet, WrongKind
from chainlake.cep.language.errors.structure import NotTogether, TakenName, Unbounded
from chainlake.cep.language.front_matter import LONGEST, FrontMatter
from chainlake.cep.language.normal_form import Branch, Clause, clauses_of
from chainlake.cep.language.resolve import Resolver
from chainlake.cep.language.source_text import SourceText
from chainlake.cep.policy import Policy
from chainlake.cep.ranking.rule import Rule
from chainlake.schemas.matches import CHANGE_COLUMN
from chainlake.schemas.matches import FIXED_COLUMNS as MATCH_COLUMNS

#: The window of a pattern that has none, in ticks.
UNBOUNDED = 1 << 61
#: The kinds of values by which matches are ranked.
_NUMBERS = OPEN | {"number", "duration"}


@dataclass(frozen=True)
class Measure:
    """A computed column of the match table.

    Args:
        name: the column.
        kind: the kind of its values: number, string, bool, time, duration; any if the columns are not known.
        values: the value for each branch, in which what the branch lacks is null.
    """

    name: str
    kind: str
    values: tuple[ast.Node, ...]


@dataclass(frozen=True)
class Ranking:
    """A compiled ranking.

    Args:
        rule: what the ranking asks for.
        values: what is computed for each match: criteria, then the values of ``FOR EACH``, then of ``DISTINCT ON``;
            what a branch lacks is null in them.
        written: the same values as written, for checks.
        criteria: how many of ``written`` are criteria.
        ends: for each criterion, the ends of its ``NORM`` and their kinds.
    """

    rule: Rule
    values: tuple[Measure, ...]
    written: tuple[ast.Node, ...]
    criteria: int
    ends: tuple[tuple[tuple[ast.Node, str], ...], ...]

    def with_values(self, change: Callable[[ast.Node, Branch], ast.Node], branches: tuple[Branch, ...]) -> Ranking:
        """The ranking with the values of each branch changed."""
        values = tuple(
            replace(one, values=tuple(change(value, b) for value, b in zip(one.values, branches, strict=True)))
            for one in self.values
        )
        return replace(self, values=values)

    def check(self, source: SourceText, checker: Checker) -> None:
        """Check the values against the kinds of the events' columns.

        Raises:
            DefinitionError: a criterion is not a number, or not of the kind of its ``NORM``; another value is a list.
        """
        for number, value in enumerate(self.written):
            kind = checker.kind(value)
            if number < self.criteria and kind not in _NUMBERS:
                raise UnfitRanking.no_rank(source, value.at, kind)
            if kind == "list":
                raise UnfitRanking.a_list(source, value.at)
            for end, found in self.ends[number] if number < self.criteria and kind not in OPEN else ():
                if found != kind:
                    raise UnfitRanking.norm(source, end.at, kind, found)


@dataclass(frozen=True)
class Extras:
    """What a query says beyond structure, conditions and window.

    Args:
        pause: the longest time between neighbouring events of a match, in ticks, or None.
        keep: ``MAXIMAL``, ``OUTERMOST``, or empty.
        measures: computed columns of the match table.
        computed: columns that are computed from single events before the search.
        written: the branches before values of one event became columns: for checks and messages.
        measured: the values of the measures, then those of the ranking, before values of one event became columns.
        policy: which matches are published, or None for all.
        episodes: which matches are one episode, or None.
        ranking: which matches are the best, or None for all.
        loose: the branches without the windows of groups inside them, if there are such windows.
    """

    pause: int | None = None
    keep: str = ""
    measures: tuple[Measure, ...] = ()
    computed: tuple[Computed, ...] = ()
    written: tuple[Branch, ...] = field(default=(), repr=False)
    measured: tuple[ast.Node, ...] = field(default=(), repr=False)
    policy: Policy | None = None
    episodes: EpisodeRule | None = None
    ranking: Ranking | None = None
    loose: tuple[Branch, ...] = field(default=(), repr=False)

    @property
    def values(self) -> tuple[Measure, ...]:
        """All that is computed for each match: its measures, and what it is ranked by."""
        return self.measures if self.ranking is None else (*self.measures, *self.ranking.values)

    @property
    def conditions(self) -> tuple[ast.Node, ...]:
        """All comparisons and tests of all branches, as written."""
        return tuple(x for b in self.written for c in b.every_clause for x in c.literals)


def with_event_windows(
    source: SourceText, branches: tuple[Branch, ...], windows: tuple[ast.EventWindow, ...]
) -> tuple[Branch, ...]:
    """The branches with windows in events as conditions.

    Raises:
        DefinitionError: a gap in events together with a repeated event.
    """
    for window in windows:
        branches = tuple(_with_window(source, branch, window) for branch in branches)
    return branches


def _with_window(source: SourceText, branch: Branch, window: ast.EventWindow) -> Branch:
    if window.gap and branch.kleene:
        raise NotTogether.gap_and_set(source, window.at, window.count)

    def far(later: str, earlier: str) -> ast.Node:
        ends = (("MAX", later), ("MIN", earlier))
        places = [
            ast.Aggregate(end, name, None, window.at, of=ast.Place(name, window.by_key, window.at))
            if name in branch.kleene
            else ast.Place(name, window.by_key, window.at)
            for end, name in ends
        ]
        return ast.Arithmetic("-", places[0], places[1], window.at)

    def near(later: str, earlier: str) -> ast.Node:
        return ast.Compare("<=", far(later, earlier), ast.Literal(window.count, window.at), window.at)

    names = branch.positive
    if not window.gap:
        pairs = [(x, y) for x in names for y in names if x not in branch.before[y] and (x != y or x in branch.kleene)]
        conditions = [near(x, y) for x, y in pairs]
    else:
        conditions = [_followed(branch, name, near, far, window) for name in names if len(names) > 1]
    if not conditions:
        return branch
    clauses = clauses_of(source, ast.All(tuple(conditions), window.at))
    return replace(branch, clauses=(*branch.clauses, *clauses))


def _followed(
    branch: Branch,
    name: str,
    near: Callable[[str, str], ast.Node],
    far: Callable[[str, str], ast.Node],
    window: ast.EventWindow,
) -> ast.Node:
    """The condition that an event is the last of the match, or that another one follows it soon enough."""
    nothing = ast.Literal(0, window.at)
    others = [one for one in branch.positive if one != name]
    last = [ast.Compare("<", far(one, name), nothing, window.at) for one in others if not branch.ordered(one, name)]
    soon = [
        ast.All((ast.Compare(">", far(one, name), nothing, window.at), near(one, name)), window.at)
        if name not in branch.before[one]
        else near(one, name)
        for one in others
        if one not in branch.before[name]
    ]
    follows = any(name in branch.before[one] for one in others)
    every = ((ast.All(tuple(last), window.at),) if last and not follows else ()) if len(others) else ()
    options = (*every, *soon)
    return options[0] if len(options) == 1 else ast.Any(options, window.at) if options else ast.Const(True, window.at)


def with_own_windows(branches: tuple[Branch, ...], resolver: Resolver) -> tuple[Branch, ...]:
    """The branches with the windows of groups inside them as conditions."""
    return tuple(_with_own(branch, resolver) for branch in branches)


def _with_own(branch: Branch, resolver: Resolver) -> Branch:
    clauses, spans = [], []
    for window, spanned in branch.windows:
        ticks = resolver.window(window)
        spans.append((ticks, spanned))
        longest: ast.Node = ast.Literal(ticks, window.at)
        if resolver.strict:
            longest = ast.Duration(Fraction(ticks, 1_000_000), None, window.at)
        names = [name for name in branch.positive if name in spanned]
        first = [name for name in names if not branch.before[name] & spanned]
        last = [name for name in names if not branch.after[name] & spanned]
        for later, earlier in product(last, first):
            if later != earlier or later in branch.kleene:
                ends = [_end("MAX", later, branch, window), _end("MIN", earlier, branch, window)]
                apart = ast.Arithmetic("-", ends[0], ends[1], window.at)
                clauses.append(Clause((ast.Compare("<=", apart, longest, window.at),)))
    return replace(branch, clauses=(*branch.clauses, *clauses), spans=tuple(spans))


def _end(which: str, name: str, branch: Branch, window: ast.Within) -> ast.Node:
    if name in branch.kleene:
        return ast.Aggregate(which, name, "ts", window.at)
    return ast.Ref(name, "ts", window.at)


def check_tail(source: SourceText, query: ast.Query, branches: tuple[Branch, ...]) -> None:
    """Check that a query, where it does, may do without a window, keep only the largest matches, and have measures.

    Raises:
        DefinitionError: it may not.
    """
    if query.within is None and not query.counted:
        _check_unbounded(source, query, branches)
    if query.keep:
        _check_keep(source, query, branches)
    if query.measures and query.selection is not None and query.selection.context == "cumulative":
        raise NotTogether.cumulative_and_measures(source, query.measures[0].at)


def check_longest(source: SourceText, front: FrontMatter, branches: tuple[Branch, ...], *, bounded: bool) -> None:
    """Raise DefinitionError for ``longest`` in a pattern that a window bounds or that has no stretches."""
    if LONGEST not in front.limits:
        return
    at = front.places.get("limits", (1, 1))
    if bounded:
        raise NotTogether.longest(source, at, LONGEST)
    if any(branch.stream is None for branch in branches):
        raise NotTogether.longest_of_none(source, at, LONGEST)


def _check_unbounded(source: SourceText, query: ast.Query, branches: tuple[Branch, ...]) -> None:
    at = query.branches[0].at if query.pause is None else query.pause.at
    for branch in branches:
        if branch.stream is None and query.ranking is None:
            raise Unbounded.window(source, at)
        for name in branch.gaps:
            if branch.open_left(name) or branch.open_right(name):
                raise Unbounded.open_end(source, at, name)


def _check_keep(source: SourceText, query: ast.Query, branches: tuple[Branch, ...]) -> None:
    loose = frozenset(name for branch in branches if branch.stream is None for name in branch.kleene)
    conditions = [query.where, *(branch.where for branch in query.branches)]
    for node in (node for condition in conditions if condition is not None for node in condition.walk()):
        if isinstance(node, ast.Aggregate) and node.name in loose:
            raise NotTogether.keep_and_aggregate(source, node.at, query.keep, node.function, node.name)


def measures_of(
    source: SourceText, measures: tuple[ast.Measure, ...], branches: tuple[Branch, ...], checker: Checker
) -> tuple[Measure, ...]:
    """The measures of a resolved query.

    Raises:
        DefinitionError: a name is taken, a value is a list, a set is used as one event or one event as a set.
    """
    taken = {name.lower(): f"the event {name}" for branch in branches for name in branch.types}
    taken |= {name: "a column of every match table" for name in (*MATCH_COLUMNS, CHANGE_COLUMN)}
    found = []
    for one in measures:
        if one.name.lower() in taken:
            raise TakenName.measure(source, one.at, one.name, taken[one.name.lower()])
        taken[one.name.lower()] = f"the measure {one.name}"
        kind = checker.kind(one.value)
        if kind == "list":
            raise WrongKind.measure(source, one.value.at)
        values = tuple(in_branch(one.value, branch) for branch in branches)
        for branch in branches:
            check_members(source, one.value, branch)
        found.append(Measure(one.name, kind, values))
    return tuple(found)


def in_branch(value: ast.Node, branch: Branch) -> ast.Node:
    """The value where only the events of a branch are bound: others have no attributes, and their sets are empty."""
    if isinstance(value, ast.Ref | ast.Prev | ast.Aggregate) and value.name not in {*branch.positive, *branch.sets}:
        counts = isinstance(value, ast.Aggregate) and ast.AGGREGATES[value.function].counts
        return ast.Literal(0, value.at) if counts else ast.Case((), None, value.at)
    return rebuilt(value, lambda part: in_branch(part, branch))


def check_members(source: SourceText, value: ast.Node, branch: Branch) -> None:
    for node in value.walk():
        if isinstance(node, ast.Ref | ast.Prev) and node.name in branch.sets:
            raise NoSet.member(source, node.at, node.name, node.attr)
        if isinstance(node, ast.Aggregate) and node.name in branch.positive and node.name not in branch.kleene:
            raise NoSet.single_in_match(source, node.at, node.function, node.name)
