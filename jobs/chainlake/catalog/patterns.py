"""The pattern files of an installation, compiled against their sources; detect, status and lint start from these.

An error in one file never hides another file: errors are collected, and each is raised when its file is needed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

from chainlake.catalog.derived import Derived
from chainlake.catalog.episodes import CompiledEpisodes, episodes_of
from chainlake.catalog.errors import UnboundedPattern, UnfitPattern, UnfitRankedPattern
from chainlake.catalog.functions import codes_of
from chainlake.catalog.rankings import ranking_of
from chainlake.cep.compiling.tail import UNBOUNDED
from chainlake.cep.language import ast
from chainlake.cep.pattern import Pattern, compile_pattern
from chainlake.cep.pattern_shape import match_shape, ranking_columns
from chainlake.cep.plan.partition import equated
from chainlake.cep.versions import engine_version
from chainlake.days import US_PER_DAY, Days
from chainlake.definitions.files import (
    BrokenDefinition,
    check_name,
    named_source,
    read_definition,
    source_line,
    source_named,
)
from chainlake.definitions.source import Source, Sources, load_sources, source_for
from chainlake.errors import DefinitionError
from chainlake.lake.delta import tables
from chainlake.lake.delta.columns import same_columns
from chainlake.lake.delta.reader import UnreadableTable
from chainlake.lake.records.defined.definitions import Definition
from chainlake.lake.records.defined.registered import later_versions, next_version
from chainlake.paths import Home
from chainlake.schemas.events import events_table
from chainlake.schemas.matches import MatchShape, matches_table
from chainlake.schemas.table import Table


@dataclass(frozen=True)
class CompiledPattern:
    """A pattern with the table it publishes to and its place in the schedule of days."""

    pattern: Pattern
    table: Table
    definition: Definition
    episodes: CompiledEpisodes | None = None
    ranking: Derived | None = None

    @property
    def derived(self) -> tuple[Derived, ...]:
        """What is made from its matches."""
        return tuple(one for one in (self.episodes, self.ranking) if one is not None)

    @property
    def definitions(self) -> tuple[Definition, ...]:
        """The pattern's definition, and that of its episodes or its ranking if it has one."""
        return (self.definition, *(one.definition for one in self.derived))


def pattern_files(home: Home) -> list[Path]:
    """All pattern files, sorted by name."""
    return sorted((home.config / "patterns").glob("*.sase"))


def load_patterns(
    home: Home, sources: Sources, *, only: str | None = None
) -> tuple[list[CompiledPattern], list[BrokenDefinition]]:
    """Compile every pattern file against the source it names.

    Args:
        home: the installation, which has the configuration.
        sources: all sources.
        only: compile only the pattern with this name.
    """
    compiled: list[CompiledPattern] = []
    broken: list[BrokenDefinition] = []
    for file in pattern_files(home):
        if only is not None and file.stem != only:
            continue
        try:
            compiled.append(_compile(home, file, read_definition(file), sources))
        except (DefinitionError, UnreadableTable) as error:
            broken.append(BrokenDefinition(file.stem, file, source_named(file), error))
    return compiled, broken


def check_pattern(home: Home, file: Path, text: str) -> None:
    """Check that a lake can take a pattern, if it names a source.

    Args:
        home: the installation, which has the configuration.
        file: the pattern's file.
        text: its content.

    Raises:
        DefinitionError: the first thing that is wrong.
    """
    if named_source(text) is not None:
        _chain_of(_checked(home, file, text, load_sources(home))[0])


def _checked(home: Home, file: Path, text: str, sources: Sources) -> tuple[Pattern, Source]:
    """Compile a pattern, checked to be one that a lake can take, and load its source; raises DefinitionError."""
    check_name(file, "pattern")
    if file.stem == "all":
        raise UnfitPattern.reserved(file)
    source = None
    source_name = named_source(text)
    if source_name is not None:
        source = source_for(sources, source_name, file, source_line(text))
    pattern = compile_pattern(
        text,
        name=file.stem,
        file=str(file),
        columns=source.pattern_columns() if source else None,
        params=codes_of(home, text, str(file)),
        series=source.series if source else None,
    )
    if source is None:
        raise UnfitPattern.no_source(file)
    _check_counted(pattern, source)
    _check_ranked(pattern)
    _check_reach(pattern)
    return pattern, source


def _compile(home: Home, file: Path, text: str, sources: Sources) -> CompiledPattern:
    pattern, source = _checked(home, file, text, sources)
    start, memory = _chain_of(pattern)
    table = current_table(home, pattern, source)
    definition = Definition(
        name=f"pattern/{pattern.name}",
        source=source.name,
        definition_hash=pattern.definition_hash,
        engine_version=engine_version(pattern),
        table_name=table.path_name,
        late_us=pattern.late_us,
        read_range=lambda day: pattern.source_range(*Days.one(day).micros()),
        start=start,
        memory_us=memory,
    )
    return CompiledPattern(
        pattern, table, definition, episodes_of(pattern, definition), ranking_of(pattern, definition)
    )


#: The most days of a period of which all ranked matches are kept.
_MOST_DAYS = 31


def _check_ranked(pattern: Pattern) -> None:
    """Raise DefinitionError for a ranking that a lake's rows cannot express, or that would keep all matches forever."""
    if pattern.extras.ranking is None:
        return
    rule, text = pattern.extras.ranking.rule, pattern.text
    at = pattern.extras.ranking.written[0].at
    columns = {name for name, *_ in ranking_columns(rule)}
    taken = [*(one.name for one in pattern.names), *pattern.front.counted, *(m.name for m in pattern.extras.measures)]
    for name in taken:
        if name.lower() in columns:
            raise UnfitRankedPattern.taken(text, at, name)
    if pattern.front.counted:
        place = pattern.front.places.get("output", at)
        raise UnfitRankedPattern.counted(text, place, pattern.name, pattern.front.counted[0])
    longest = rule.period.longest
    if rule.non_overlapping and (longest is None or longest > _MOST_DAYS * US_PER_DAY):
        raise UnfitRankedPattern.long_period(text, at, pattern.name, _MOST_DAYS)


def _check_counted(pattern: Pattern, source: Source) -> None:
    """Raise DefinitionError for windows in events that do not bound what a day reads."""
    for place in (node for one in pattern.extras.conditions for node in one.walk() if isinstance(node, ast.Place)):
        if pattern.window_us >= UNBOUNDED:
            raise UnboundedPattern.events(pattern.text, place.at)
        if place.by_key and not equated(pattern.extras.written, source.key):
            raise UnboundedPattern.events_of_key(pattern.text, place.at, source.key)


def _chain_of(pattern: Pattern) -> tuple[date | None, int | None]:
    """The start of a chain of days and how far back their state goes, µs; None and None if they form no chain.

    Raises:
        DefinitionError: the pattern has a start, but its days form no chain.
    """
    policy, start = pattern.extras.policy, pattern.front.start
    if policy is not None and policy.consumes:
        # Without a start, the chain begins on the first day with events.
        return start or date.min, pattern.reach_us
    if start is not None:
        raise UnboundedPattern.start(pattern.text, pattern.front.places.get("start", (1, 1)), pattern.name)
    return None, None


def _check_reach(pattern: Pattern) -> None:
    """Raise DefinitionError for a pattern that would read without a bound, or with one that nobody stated."""
    text, extras = pattern.text, pattern.extras
    if pattern.window_us >= UNBOUNDED and any(branch.stream is None for branch in pattern.branches):
        raise UnboundedPattern.window(text, text.place("RANK", "TOP"), pattern.name)
    if pattern.window_us >= UNBOUNDED and pattern.longest is None:
        raise UnboundedPattern.stretch(text, text.place("PAUSE"), pattern.name)
    values = (*extras.conditions, *extras.measured)
    loose = [node for value in values for node in value.walk() if isinstance(node, ast.Prev) and node.gap is None]
    if loose and extras.pause is None:
        one = loose[0]
        raise UnboundedPattern.gap(text, one.at, (one.name, one.attr), one.steps)


def current_table(home: Home, pattern: Pattern, source: Source) -> Table:
    """The version of the match table that has the pattern's columns: the first that fits, or else a new one."""
    first = matches_table(shape_of(pattern, source, 1))
    if not tables.exists(home, "matches", first.name) or _fits(home, first):
        return first
    for version in later_versions(home, pattern.name):
        table = matches_table(shape_of(pattern, source, version))
        if _fits(home, table):
            return table
    return matches_table(shape_of(pattern, source, next_version(home, pattern.name)))


def _fits(home: Home, table: Table) -> bool:
    return same_columns(tables.arrow_schema(home, table.schema, table.name), table.arrow())


def shape_of(pattern: Pattern, source: Source, version: int) -> MatchShape:
    """The output columns of ``pattern`` on ``source``."""
    shape = match_shape(pattern, version=version, key=source.key, types=source.event_columns())
    return replace(shape, meanings={column.name: column.comment for column in events_table(source).columns})
