"""The rounds of a run through patterns whose days form chains: in each, every pattern publishes its next days.

All patterns are searched at the same time, each by a task that goes through its next days. Then the results are audited
and published, pattern by pattern, before later days are searched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import partial

from chainlake.days import Days
from chainlake.detect.chained.course import Course, Next
from chainlake.detect.chained.walk import Leg, Walked, walk
from chainlake.detect.division.counts import Counting
from chainlake.detect.order import SearchPlan
from chainlake.detect.prepared import planned
from chainlake.detect.run import StagedMatches, accept, audit, publish, rates
from chainlake.detect.stage import Search
from chainlake.detect.work import DetectResult, SearchRun, Work, named_together
from chainlake.errors import AuditFailed, ChainlakeError, LimitExceeded
from chainlake.lake.commits.publish import Published
from chainlake.lake.records.runs import error_line
from chainlake.run.common import discard, record_failure, staging_folder
from chainlake.storage.resolve import storage_of


@dataclass
class _Came:
    """The results of the rounds so far."""

    published: list[Published] = field(default_factory=list)
    failed: dict[str, BaseException] = field(default_factory=dict)

    def fail(self, run: SearchRun, course: Course, day: date, print_: str, error: BaseException) -> None:
        """Record what stopped a segment of a pattern, on its first day to compute; publishing records failed audits."""
        definition = course.compiled.definition
        self.failed.setdefault(definition.name, error)
        if not isinstance(error, AuditFailed):
            record_failure(run.home, definition, {day: print_}, error, run.run_id)
        print(f"{definition.name} failed: {error_line(error)}", flush=True)


def run_chains(run: SearchRun, courses: Sequence[Course]) -> DetectResult:
    """Go through the days of some patterns; whatever stops one segment stops neither the next nor another pattern."""
    came, waiting = _Came(), list(courses)
    while waiting:
        legs = [(course, leg) for course in waiting for leg in _next(run, course, came)]
        waiting = [course for course, _ in legs]
        items = [Work(course.compiled, leg.fingerprints) for course, leg in legs]
        for (course, leg), item, walked in zip(legs, items, _searched(run, legs, items), strict=True):
            try:
                _finish(run, course, leg, item, walked, came)
            except Exception as error:  # one pattern's failure does not stop the others; the step raises it later
                if isinstance(error, LimitExceeded) and course.shorten():
                    # A limit concerns one day, so the days before it are published.
                    continue
                came.fail(run, course, leg.target, leg.fingerprints[leg.target], error)
                course.skip()
    whole = {course.compiled.definition.name for course in courses} - came.failed.keys()
    return DetectResult(len(whole), tuple(came.published), tuple(came.failed.items()))


def _next(run: SearchRun, course: Course, came: _Came) -> list[Next]:
    """The next days of a pattern, if there are any; segments that cannot be entered are recorded and left out."""
    while True:
        try:
            leg = course.next()
        except ChainlakeError as error:
            came.fail(run, course, course.first, course.print_of(course.first), error)
            course.skip()
        else:
            return [] if leg is None else [leg]


@dataclass(frozen=True)
class _Searched:
    """What was found on some days of a pattern."""

    plan: SearchPlan
    folder: str
    walked: Walked


def _searched(
    run: SearchRun, legs: Sequence[tuple[Course, Next]], items: Sequence[Work]
) -> list[_Searched | Exception]:
    """Search all patterns at once; if that fails, each alone, so that one does not stop the others."""
    if not legs:
        return []
    folders = [staging_folder(run.home, run.run_id, item.compiled.pattern.name) for item in items]
    try:
        with run.phase("detect", _span(items)) as row:
            row.about = named_together(items)
            counting = Counting(run.ports.tasks, run.files, run.source.key)
            plans = [one.plan for one in planned(counting, items, run.pinned.event_days, partial(rates, run))]
            given = []
            for (_, leg), item, plan, folder in zip(legs, items, plans, folders, strict=True):
                storage_of(folder).make_folder(folder)
                search = Search(item.compiled.pattern, item.compiled.table, plan.orders, folder)
                start = item.compiled.definition.start or date.min
                given.append(Leg(search, leg.days, start, leg.state))
            files, key = run.files, run.source.key
            walked = walk(run.ports.tasks, files, key, given)
    except Exception as error:  # a scan's failure is raised where each pattern is finished
        for folder in folders:
            discard(folder)
        if len(legs) == 1:
            return [error]
        print(f"each pattern is searched alone: {error_line(error)}", flush=True)
        return [one for leg, item in zip(legs, items, strict=True) for one in _searched(run, [leg], [item])]
    return [_Searched(*one) for one in zip(plans, folders, walked, strict=True)]


def _span(items: Sequence[Work]) -> Days:
    return Days(min(item.days.start for item in items), max(item.days.end for item in items))


def _finish(
    run: SearchRun, course: Course, leg: Next, item: Work, searched: _Searched | Exception, came: _Came
) -> None:
    """Accept, audit and publish a pattern's days that are to be published, and inform its course."""
    if isinstance(searched, Exception):
        accept(run, item, searched)
        return
    walked = searched.walked
    staged = StagedMatches(item, searched.plan, searched.folder, walked.found, walked.links, leg.state.ids)
    if walked.found.failure is None:
        needed = course.finish_batch([walked.links[day].state_out for day in leg.days])
        days = list(leg.days)[:needed]
        few = Work(item.compiled, {day: leg.fingerprints[day] for day in days})
        links = {day: walked.links[day] for day in days}
        staged = replace(staged, item=few, found=walked.of(days), links=links)
    audited = audit(run, accept(run, staged.item, staged))
    published = publish(run, audited)
    came.published.append(published)
    if audited.failure is not None:
        raise audited.failure
    course.published(len(published.days_done), len(staged.item.fingerprints))
