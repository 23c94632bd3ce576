"""A compiled pattern: what it reads, when its matches are decided, and how it is compiled from its text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from chainlake.cep.compiling.episodes import episode_rule, with_key
from chainlake.cep.compiling.functions import identity_of, own_functions, parted
from chainlake.cep.compiling.identity import Identity
from chainlake.cep.compiling.names import (
    PositiveName,
    as_written,
    attributes_of,
    check_event_names,
    check_rates,
    kinds_of,
    positive_names,
    with_ranked,
)
from chainlake.cep.compiling.ranked import ranking_of
from chainlake.cep.compiling.tail import (
    UNBOUNDED,
    Extras,
    check_longest,
    check_tail,
    measures_of,
    with_event_windows,
    with_own_windows,
)
from chainlake.cep.language import ast
from chainlake.cep.language.check import Checker
from chainlake.cep.language.computed import Columns
from chainlake.cep.language.errors.names import UnfitParameter
from chainlake.cep.language.front_matter import FrontMatter, param_problem, read_front_matter
from chainlake.cep.language.lists import Lists
from chainlake.cep.language.normal_form import Branch, normal_form
from chainlake.cep.language.parsing.habits import advising
from chainlake.cep.language.parsing.query import parse
from chainlake.cep.language.resolve import Resolver
from chainlake.cep.language.source_text import SourceText
from chainlake.cep.plan import partition
from chainlake.cep.plan.order import choose_order
from chainlake.cep.plan.pause import with_pause
from chainlake.cep.policy import policy_of
from chainlake.cep.remembered import Remembered
from chainlake.definitions.derived import History, Series

if TYPE_CHECKING:
    import pyarrow as pa


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
        text: the source text, for errors.
        kinds: column name to kind, or None if compiled without columns.
        types: column name to Arrow type, or None.
        histories: the derived columns that conditions mention.
        key: the column that says which events are of one series, if the pattern asks for it.
        extras: what else the query says.
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
    key: str | None = None
    extras: Extras = Extras()

    @property
    def source(self) -> str | None:
        """The source whose events it reads."""
        return self.front.source

    @property
    def description(self) -> str:
        """What the pattern finds, in words."""
        return self.front.description

    @property
    def file(self) -> str | None:
        """The file that it came from."""
        return self.text.file

    @property
    def limits(self) -> dict[str, int]:
        """``kleene_members``, ``set_members``, ``matches_per_day``, ``compared_events``; ``longest`` (µs) if stated."""
        return self.front.limits

    @cached_property
    def memory(self) -> Remembered:
        """What searches for this pattern have worked out and keep; it never changes what they find."""
        return Remembered()

    @cached_property
    def open_right(self) -> bool:
        """Whether some negated or collected name has no positive name after it."""
        return any(b.open_right(f) for b in self.branches for f in b.gaps)

    @cached_property
    def open_left(self) -> bool:
        """Whether some negated or collected name has no positive name before it."""
        return any(b.open_left(f) for b in self.branches for f in b.gaps)

    @cached_property
    def neighbours(self) -> bool:
        """Whether the events of some branch are neighbours (``SEQ STRICT``)."""
        return any(b.stream is not None for b in self.branches)

    @cached_property
    def by_pause(self) -> bool:
        """Whether a pause of the stream decides a match, since no larger match can come after the pause."""
        kept = bool(self.extras.keep) and self.extras.pause is not None and not self.open_right
        return kept and all(b.stream is not None for b in self.branches)

    @property
    def decision(self) -> str:
        """When a match is decided: ``start+W``, ``end``, or ``pause``, which is one pause after the end of the unbroken
        stretch of the stream that holds its last event, or ``start+W`` if that is earlier
        (docs/semantics.md#owner-of-a-match).
        """
        if self.by_pause:
            return "pause"
        return "start+W" if self.open_right or self.extras.keep else "end"

    @property
    def late_us(self) -> int:
        """How long after its last event a match may be decided, at most."""
        if self.by_pause:
            return min(self.window_us, self.extras.pause or 0)
        return 0 if self.decision == "end" else self.window_us

    @property
    def longest(self) -> int | None:
        """The longest unbroken stretch of the stream that a pattern without a window looks at, in ticks."""
        longest = self.limits.get("longest")
        return longest if longest is None or self.strict else longest // 1_000_000

    @property
    def reach_us(self) -> int:
        """How far apart the events of a match are at most: the window, or the limit that stands for it."""
        return self.window_us if self.longest is None else self.longest

    @property
    def decided_us(self) -> int:
        """How long after its first event a match is decided, at most."""
        return self.window_us if self.longest is None else self.longest + self.late_us

    def read_range(self, lo_us: int, hi_us: int) -> tuple[int, int]:
        """The range of ``ts``, half-open, of the events that matches decided in ``[lo_us, hi_us)`` need."""
        if self.longest is not None:
            # From one pause before the stretch that ended as early as possible, so that its beginning is seen.
            return lo_us - self.longest - 2 * (self.extras.pause or 0), hi_us
        windows = 2 if self.open_right and self.open_left or self.extras.keep else 1
        return lo_us - windows * self.window_us, hi_us

    def source_range(self, lo_us: int, hi_us: int) -> tuple[int, int]:
        """The range of ``ts`` that these events and their earlier values need (docs/semantics.md#read-range)."""
        lo, hi = self.read_range(lo_us, hi_us)
        back = [one.node.reach for one in self.extras.computed if isinstance(one.node, ast.Prev)]
        return lo - max([*back, *(one.reach_us for one in self.histories)], default=0), hi

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
        """All event types of the pattern, negated ones included; ``ast.ANY_TYPE`` among them stands for all."""
        return frozenset(t for b in self.branches for t in b.types.values())

    @cached_property
    def mentioned(self) -> frozenset[str]:
        """All attributes in conditions and measures, pseudo-attributes included, computed columns not."""
        return _mentioned(self.extras)

    @cached_property
    def searched(self) -> frozenset[str]:
        """All attributes that the search itself looks at, without those that computed columns are computed from."""
        if not self.extras.computed:
            return self.mentioned
        nodes = [x for b in self.branches for c in b.every_clause for x in c.literals]
        nodes += [value for one in self.extras.values for value in one.values if value is not None]
        return frozenset(attr for node in nodes for _, attr in attributes_of(node))

    @property
    def carried(self) -> frozenset[str]:
        """The computed columns; they must be there before any events are left out."""
        return frozenset(one.column for one in self.extras.computed)

    @cached_property
    def words(self) -> frozenset[str]:
        """All strings in conditions."""
        found: set[str] = set()
        literals = [x for b in self.branches for c in b.every_clause for x in c.literals]
        literals += [value for one in self.extras.values for value in one.values]
        for literal in literals:
            for node in literal.walk():
                values = (node, *(node.items if isinstance(node, ast.Member) else ()))
                found |= {v.value for v in values if isinstance(v, ast.Literal) and isinstance(v.value, str)}
        return frozenset(found)

    @cached_property
    def columns_needed(self) -> set[str]:
        """Columns, histories included, that detection and output need (the source's key only if the pattern asks)."""
        attributes = {a for name in self.names for a in name.attributes}
        stream = set() if self.key is None else {self.key}
        placed = any(isinstance(one.node, ast.Prev | ast.Place) for one in self.extras.computed)
        if self.in_stream or self.neighbours or placed or self.extras.policy is not None:
            stream.add("seq")
        return {"event_id", "type", "ts"} | attributes | (self.mentioned - {"id"}) | stream

    @cached_property
    def in_stream(self) -> bool:
        """Whether the order of the stream, (ts, seq, id), counts: FIRST and LAST, for example, go by it."""
        nodes = (node for value in (*self.extras.conditions, *self.extras.measured) for node in value.walk())
        return any(isinstance(node, ast.Aggregate) and ast.AGGREGATES[node.function].by_place for node in nodes)

    @cached_property
    def partition_key(self) -> str | None:
        """A column whose equalities link all names of every branch, or None (docs/semantics.md#partition-keys)."""
        return partition.partition_key(self.branches, self.key)


@advising
def compile_pattern(
    text: str,
    *,
    name: str = "pattern",
    file: str | None = None,
    columns: Mapping[str, pa.DataType] | None = None,
    params: Mapping[str, Any] | None = None,
    strict_units: bool = True,
    series: Series | None = None,
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
        params: values for parameters and sets, which win over the front matter's, and the ``Code`` of functions that it
            declares, since a pattern's text never loads code; without it, the pattern compiles but cannot be searched.
        strict_units: whether durations carry units and ``ts`` is a time in µs; else ``ts`` is a plain number of
            seconds, and so is a bare duration.
        series: the key of the events, and which of the ``columns`` are derived, that is, computed when events are
            read and never stored.

    Raises:
        DefinitionError: with file, line, column, excerpt and hint.
    """
    source = SourceText(text, None if file is None else str(file))
    series = Series() if series is None else series
    front, start = read_front_matter(source)
    functions, given = parted(params or {})
    for key, value in given.items():
        problem = param_problem(value)
        if problem:
            raise UnfitParameter.given(source, key, problem)
    every = {**front.params, **given}
    query = parse(source, start)
    resolver = Resolver(source, every, strict_units, own_functions(source, name, front, functions))
    kinds = None if columns is None else kinds_of(columns)
    resolved = Lists(kinds, series).query(resolver.query(query))
    window = UNBOUNDED if resolved.within is None else resolver.window(resolved.within)
    pause = None if resolved.pause is None else resolver.window(resolved.pause, "pause")
    plain = with_event_windows(source, normal_form(source, resolved), resolved.counted)
    written = with_own_windows(plain, resolver)
    check_tail(source, resolved, written)
    check_longest(source, front, written, bounded=resolved.within is not None)
    checker = Checker(source, kinds, strict_units)
    for literal in (x for b in written for c in b.every_clause for x in c.literals):
        checker.condition(literal)
    measures = measures_of(source, resolved.measures, written, checker)
    if strict_units:
        check_event_names(source, name, query)
    derived = {one.name: one for one in series.histories}
    names = as_written(positive_names(source, written, front, kinds, frozenset(derived)), resolved)
    policy = policy_of(source, resolved, written, resolver)
    if policy is not None and policy.accumulates:
        names = tuple(replace(one, kleene=True) for one in names)
    check_rates(source, front, names)
    kinds_of_measures = {one.name: one.kind for one in measures}
    episodes = episode_rule(resolved, written, kinds_of_measures, checker, resolver, front=front, key=series.key)
    carried = names, with_key(names, episodes)
    names = carried[1]
    ranking = ranking_of(source, resolved, written, resolver, checker)
    unranked, names = names, with_ranked(names, () if ranking is None else ranking.written, frozenset(derived))
    into = Columns(window if pause is None else pause)
    branches = tuple(with_pause(into.branch(branch), pause, strict_units) for branch in written)
    loose: tuple[Branch, ...] = ()
    if any(branch.spans for branch in written):
        loose = tuple(replace(one, clauses=of.clauses) for one, of in zip(written, plain, strict=True))
        loose = tuple(with_pause(into.branch(branch), pause, strict_units) for branch in loose)
    if ranking is not None:
        ranking = ranking.with_values(lambda value, branch: into.node(value, branch.types), written)
    extras = Extras(
        pause,
        resolved.keep,
        tuple(
            replace(
                one,
                values=tuple(into.node(value, branch.types) for value, branch in zip(one.values, written, strict=True)),
            )
            for one in measures
        ),
        tuple(into.found.values()),
        written,
        (*(one.value for one in resolved.measures), *(() if ranking is None else ranking.written)),
        policy,
        episodes,
        ranking,
        loose,
    )
    mentioned = sorted(_mentioned(extras) & derived.keys())
    by_key = any(b.stream is not None and b.stream.by_key for b in branches)
    by_key |= any(isinstance(one.node, ast.Prev | ast.Place) for one in extras.computed)
    keyed = episodes is not None and episodes.attr != series.key
    identity = Identity(
        query=query,
        params=every,
        front=front,
        strict=strict_units,
        derived=tuple(derived[column] for column in mentioned),
        key=series.key if by_key else None,
        by_key=by_key,
        carried=names if names != unranked or carried[0] != carried[1] and keyed else None,
        functions=identity_of(front, functions, (*extras.conditions, *extras.measured)),
    )
    return Pattern(
        name=name,
        branches=branches,
        window_us=window,
        strict=strict_units,
        front=front,
        names=names,
        definition_hash=identity.digest,
        text=source,
        kinds=kinds,
        types=columns,
        histories=identity.derived,
        key=identity.key,
        extras=extras,
    )


def _mentioned(extras: Extras) -> frozenset[str]:
    """All attributes in conditions and measures, pseudo-attributes included."""
    return frozenset(attr for node in (*extras.conditions, *extras.measured) for _, attr in attributes_of(node))
