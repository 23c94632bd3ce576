"""What all definitions made from published matches (episodes, rankings) have in common.

That is: which of their days are considered, isolating one pattern's failure from the others, publishing what passed its
audit, and ``validate``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np

from chainlake.catalog.derived import Derived
from chainlake.catalog.patterns import CompiledPattern, load_patterns
from chainlake.days import Days
from chainlake.definitions.source import Sources
from chainlake.detect.work import DetectResult, DetectRun
from chainlake.errors import AuditFailed
from chainlake.lake.commits.publish import MatchOutput, Published, PublishingRun, publish_matches
from chainlake.lake.commits.publishable import DaysNow
from chainlake.lake.delta import tables
from chainlake.lake.records.defined.definitions import Definition
from chainlake.lake.records.defined.fingerprints import fingerprint
from chainlake.lake.records.defined.wanted import days_of, names_of
from chainlake.lake.records.event_days import EventDays
from chainlake.lake.records.intervals import Intervals
from chainlake.lake.records.runs import error_line
from chainlake.lake.records.staleness import Judged, judge
from chainlake.paths import Home
from chainlake.quality import Audit, DaysBroken, Verdict
from chainlake.quality.published import Outcome
from chainlake.run.common import record_failure

#: Gives what is made from a pattern's matches; None if the pattern does not ask for it.
Of = Callable[[CompiledPattern], Derived | None]


@dataclass(frozen=True)
class Judgement:
    """The state of the days of something derived.

    Args:
        compiled: the pattern.
        judged: the judged days of what is derived.
        days: the days of the pattern's published matches.
    """

    compiled: CompiledPattern
    judged: Judged
    days: EventDays


def judged_days(home: Home, mine: Sequence[CompiledPattern], of: Of, asked: Days | None = None) -> Iterator[Judgement]:
    """Judge the days of what is derived from some patterns, by the matches published now.

    Args:
        home: the installation.
        mine: patterns of one source.
        of: gives what is derived.
        asked: days that are to do even if the source has no events there.
    """
    by_name = {one.definition.name: compiled for compiled in mine if (one := of(compiled)) is not None}
    definitions = [one.definition for compiled in mine if (one := of(compiled)) is not None]
    if not definitions:
        return
    intervals = Intervals(home, names_of(definitions))
    events = EventDays.load(home, definitions[0].source)
    for judged in judge(home, definitions, asked=asked, intervals=intervals, events={events.source: events}):
        yield Judgement(by_name[judged.name], judged, days_of(judged.definition, events, intervals))


@dataclass(frozen=True)
class Piece:
    """Some days of something derived, to be made in one go.

    Args:
        definition: what is made.
        inputs: gives the input fingerprints of the days that are recorded as failed if it does not finish.
        make: makes, audits and publishes the days; what it yields is published, whatever comes after.
    """

    definition: Definition
    inputs: Callable[[], Mapping[date, str]]
    make: Callable[[], Iterable[Published]]


def run_pieces(run: DetectRun, pieces: Iterable[Piece]) -> DetectResult:
    """Make what is derived from some patterns; whatever stops one does not stop the others."""
    published: list[Published] = []
    failed: dict[str, BaseException] = {}
    for piece in pieces:
        name = piece.definition.name
        try:
            for done in piece.make():
                published.append(done)
        except Exception as error:  # one pattern's failure does not stop the others
            failed.setdefault(name, error)
            if not isinstance(error, AuditFailed):
                record_failure(run.home, piece.definition, piece.inputs(), error, run.run_id)
            print(f"{name} failed: {error_line(error)}", flush=True)
    return DetectResult(0, tuple(published), tuple(failed.items()))


def publish_derived(
    run: DetectRun, output: MatchOutput, verdict: Verdict, span: Days, recheck: Callable[[], DaysNow]
) -> Iterator[Published]:
    """Publish the days that passed.

    Args:
        run: the run.
        output: the days, with the reasons of the verdict.
        verdict: the audit's verdict.
        span: the days that were made.
        recheck: what the days are made from now; called under the lock of the table.

    Yields:
        what was published.

    Raises:
        DaysBroken: after that, if the audit failed for some days.
    """
    name = output.definition.name
    with run.phase("publish", span, name) as row:
        done = publish_matches(PublishingRun(run.home, run.ports.lake, run.run_id), output, recheck=recheck)
        row.rows_out = done.added + done.changed + done.withdrawn
    for day, reason in sorted(done.left_out.items()):
        print(f"{name} {day} not published: {reason}", flush=True)
    yield done
    if verdict.broken:
        raise DaysBroken.of(name, verdict, onwards=output.links is not None, folder=None)


@dataclass(frozen=True)
class Now:
    """What days are made from now.

    Args:
        days: the days of the matches.
        prints: the fingerprint of each day asked for; none if the definition changed.
    """

    days: EventDays
    prints: Mapping[date, str]


def now(run: DetectRun, compiled: CompiledPattern, of: Of, days: Sequence[date]) -> Now:
    """What some days are made from now; days whose matches or definition changed meanwhile are left to the next run."""
    was = of(compiled)
    assert was is not None, "only what is derived gets here"
    definition = was.definition
    loaded, _ = load_patterns(run.home, Sources(run.source), only=compiled.pattern.name)
    hashes = {one.definition.definition_hash for c in loaded if (one := of(c)) is not None}
    found = days_of(definition, EventDays.load(run.home, run.source.name), Intervals(run.home, names_of([definition])))
    same = definition.definition_hash in hashes
    return Now(found, {day: fingerprint(definition, day, found) for day in days} if same else {})


@dataclass(frozen=True)
class Gate:
    """How the published days of something derived are compared with the matches.

    Args:
        of: gives what is derived.
        asked: gives a flag per day to be looked at.
        broken: takes days, ascending; gives those that do not agree with the matches, each with one line.
    """

    of: Of
    asked: Callable[[Judged], np.ndarray]
    broken: Callable[[Judgement, Sequence[date]], dict[date, str]]


def validate_derived(audit: Audit, patterns: Sequence[CompiledPattern], gate: Gate) -> Iterator[Outcome]:
    """Check that the published matches give what is published from them, pattern by pattern; no JVM.

    Days that are to be made again are left out, because their matches have changed since.

    Args:
        audit: the application's audit.
        patterns: patterns of one source.
        gate: what is compared, and how.
    """
    for one in judged_days(audit.home, patterns, gate.of):
        derived = gate.of(one.compiled)
        assert derived is not None, "only what is derived gets here"
        if not tables.exists(audit.home, derived.table.schema, derived.table.name):
            continue
        flags = (one.judged.state == "done") & gate.asked(one.judged)
        own = tuple(one.judged.day(at) for at in np.flatnonzero(flags).tolist())
        if own:
            yield Outcome(derived.definition.name, own, gate.broken(one, own))
