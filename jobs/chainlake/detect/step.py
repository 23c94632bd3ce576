"""The detect step: events of a source to the match tables of its patterns.

What is to do is decided without a JVM. Patterns fail separately: all others publish, then the step fails and names
them. Independent days are searched together, those of a chain one after another.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import date, timedelta
from typing import TypedDict, Unpack

from chainlake.catalog.patterns import CompiledPattern, load_patterns
from chainlake.days import US_PER_DAY, Days
from chainlake.detect.episodes.run import episodes_to_do, run_episodes
from chainlake.detect.plan import Plan, Wanted, plan_of
from chainlake.detect.rankings.run import rankings_to_do, run_rankings
from chainlake.detect.work import STEP, DetectResult, DetectRun, SearchRun
from chainlake.lake.commits.places import take_places
from chainlake.lake.records.defined.wanted import last_day
from chainlake.lake.records.event_days import EventDays
from chainlake.lake.records.runs import phase
from chainlake.lake.records.staleness import TO_DO, judge
from chainlake.paths import Home
from chainlake.quality import Audit, warm_up
from chainlake.run.chains import held
from chainlake.run.common import REPAIR_HORIZON, STALE, chosen, raise_together, sweep_leftovers, the_source
from chainlake.run.ports import Ports, open_ports
from chainlake.run.results import Detected
from chainlake.words import counted

log = logging.getLogger(__name__)


class Options(TypedDict, total=False):
    """Which patterns and days are computed, and how."""

    patterns: Sequence[str] | None
    repair_horizon: int
    only_stale: bool
    ports: Ports | None


def detect(home: Home, source_name: str, days: Days, *, run_id: str, **options: Unpack[Options]) -> Detected:
    """Detect, audit and publish what is missing or stale on ``days`` and in the repair horizon before them.

    Args:
        home: the installation.
        source_name: name of the source.
        days: days asked for.
        run_id: id of the run in ``ops``.
        options: ``patterns``: names of the patterns to run; all of the source if None. ``repair_horizon``: number of
            days before ``days`` that are repaired, too; unless it is 0, also days after the source's last event on
            which its matches can still be decided, and those of ``days`` on which none can. ``only_stale``: leave out
            days that were never computed. ``ports``: the ports to use; those of the installation if None.

    Returns:
        ``{"patterns": …, "days": days published, "added": …, "changed": …, "withdrawn": …}``.

    Raises:
        ChainlakeError: a pattern failed; it is raised after all others have published.
    """
    patterns, repair_horizon = options.get("patterns"), options.get("repair_horizon", REPAIR_HORIZON)
    source, sources = the_source(home, source_name)
    compiled, broken = load_patterns(home, sources)
    mine, bad = chosen("pattern", patterns, compiled, broken, source_name)
    taken, stuck = take_places(home, [c.pattern.name for c in mine], run_id)
    if taken:
        compiled, broken = load_patterns(home, sources)
        mine, bad = chosen("pattern", patterns, compiled, broken, source_name)
    mine = [c for c in mine if c.pattern.name not in stuck]
    failures: list[tuple[str, BaseException]] = [(f"pattern/{b.name}", b.error) for b in bad]
    failures += [(f"pattern/{name}", error) for name, error in stuck.items()]

    horizon = Days(days.start - timedelta(days=repair_horizon), days.end)
    if mine and repair_horizon:
        horizon = Days(horizon.start, max(horizon.end, _end_of_events(home, source_name, mine, horizon)))
    states = STALE if options.get("only_stale") else TO_DO
    # Some patterns have no use for some days of a long horizon; the plan leaves those out.
    wanted = Wanted(days if repair_horizon else None, horizon, states)
    plan = plan_of(home, source_name, mine, wanted) if mine else Plan()
    result = DetectResult()
    ports = options.get("ports")
    audit = Audit(home)
    if plan.days:
        from chainlake.detect.chained.rounds import run_chains
        from chainlake.detect.run import run_work  # imports Arrow and Numba, which a run without work does not need

        ports = ports or _opened(home, f"detect {source.name} {days}", plan)
        run = SearchRun(home, source, run_id, ports, audit, plan.pinned, plan.read_days)
        if plan.work:
            result = run_work(run, plan.work)
        if plan.courses:
            result += run_chains(run, plan.courses)
    if any((c.episodes or c.ranking) and "/" in c.table.name for c in mine):
        # A new version of a match table may have taken its place meanwhile, and what follows is made from it.
        names = {c.definition.name for c in mine}
        mine = [c for c in load_patterns(home, sources)[0] if c.definition.name in names]
    # Where matches have come or gone, a later day may now start from the empty state, or no longer do so.
    memory = max((c.episodes.definition.memory_us or 0 for c in mine if c.episodes), default=0)
    behind = timedelta(days=-(-memory // US_PER_DAY))
    following = episodes_to_do(home, mine, wanted, _with(horizon, result, behind))
    if following:
        ports = ports or _opened(home, f"detect {source.name} {days}", plan)
        result += run_episodes(DetectRun(home, source, run_id, ports, audit), following)
    # Days of a chain can change long after those that were asked for.
    merging = rankings_to_do(home, mine, replace(wanted, horizon=_with(horizon, result)))
    if merging:
        ports = ports or _opened(home, f"detect {source.name} {days}", plan)
        result += run_rankings(DetectRun(home, source, run_id, ports, audit), merging)
    if not plan.days and not following and not merging:
        with phase(home, run_id, source=source_name, step=STEP, phase="plan", days=days) as row:
            row.status, row.reason = "nothing", "nothing to do"
    else:
        log.info("Data Docs: %s", audit.build_docs())
    sweep_leftovers(home)
    failures += [*result.failed, *_held(home, mine, days, {name for name, _ in result.failed})]
    raise_together(failures, f"{counted(result.counts['days'], 'day')} published")
    return result.counts


def _with(days: Days, result: DetectResult, behind: timedelta = timedelta(0)) -> Days:
    """The days, extended to all that were published, with the time ``behind`` after each."""
    done = [day for one in result.published for day in one.days_done]
    return Days(min([days.start, *done]), max([days.end, *(Days.one(day).end + behind for day in done)]))


def _opened(home: Home, app: str, plan: Plan) -> Ports:
    # Great Expectations is imported while Java starts.
    warm_up()
    return open_ports(home, app, long_running=plan.longest > REPAIR_HORIZON)


def _end_of_events(home: Home, source_name: str, mine: Sequence[CompiledPattern], horizon: Days) -> date:
    """The day after the last on which a match of the last events can be decided, if these events are in ``horizon``.

    If nothing follows the events, nobody asks for that day, and it would stay missing.
    """
    events = EventDays.load(home, source_name)
    if events.last is None or events.last not in horizon:
        return horizon.end
    ends = [last_day(one, events) or events.last for c in mine for one in c.definitions]
    return max(ends) + timedelta(days=1)


def _held(
    home: Home, mine: Sequence[CompiledPattern], days: Days, stopped: Collection[str]
) -> list[tuple[str, BaseException]]:
    """Definitions with requested days that wait for a day that this run was not meant to finish, and the reason."""
    every = [one for c in mine for one in c.definitions]
    chains = [one for one in every if one.chained and one.name not in stopped]
    found = [(judged.name, held(judged, days)) for judged in judge(home, chains, days, asked=days)]
    return [(name, error) for name, error in found if error is not None]
