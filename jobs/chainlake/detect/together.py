"""Large runs of several patterns: one job whose tasks read the files once and match all patterns that can go this way.

Everything else about a pattern happens in its own turn, and whatever goes wrong here is left to that turn (design §5).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from chainlake.days import Days
from chainlake.detect.cut import Cut, InFiles
from chainlake.detect.order import Plan
from chainlake.detect.staged import write_reports
from chainlake.detect.tasks.by_files import stage_matches
from chainlake.detect.work import STEP, Work
from chainlake.lake.records.runs import one_line, phase
from chainlake.paths import Home
from chainlake.run.common import discard, staging_folder


@dataclass(frozen=True)
class Prepared:
    """A pattern of which all is known to find its matches, if they are not found yet.

    Args:
        plan: how it is searched.
        cut: how tasks that read files look for it by themselves; None if Spark's reader has less to do.
        path: the folder with the staged matches; None if they are still to be found.
    """

    plan: Plan
    cut: Cut | None
    path: str | None = None


def match_together(
    home: Home, source: str, files: InFiles, work: Sequence[Work], prepare: Callable[[Work], Prepared], run_id: str
) -> dict[str, Prepared]:
    """Prepare the large patterns of a run, and stage the matches of those that one scan serves.

    Args:
        home: the installation.
        source: name of the source.
        files: the files of what the run reads.
        work: the patterns.
        prepare: plans a pattern.
        run_id: the run; a phase ``detect`` without a definition is logged.

    Returns:
        what is prepared, by name of the pattern; nothing if fewer than two are large.
    """
    large = [item for item in work if item.compiled.pattern.name in files.large]
    ready: dict[str, Prepared] = {}
    if len(large) < 2:
        return ready
    paths: dict[str, str] = {}
    every = sorted(day for item in large for day in item.fingerprints)
    span = Days(every[0], Days.one(every[-1]).end)
    try:
        with phase(home, run_id, source=source, step=STEP, phase="detect", days=span):
            for item in large:
                name = item.compiled.pattern.name
                try:
                    ready[name] = prepare(item)
                except Exception as error:  # raised where the pattern has its turn
                    print(f"{name} is planned in its turn: {one_line(error)}", flush=True)
            cuts = files.together([one.cut for one in ready.values() if one.cut is not None])
            paths = {cut.pattern.name: staging_folder(home, run_id, cut.pattern.name) for cut in cuts}
            staged = _stage(files, cuts, work, paths)
    except Exception as error:  # of one of them, perhaps: each is matched in its turn
        print(f"the patterns of {source} are matched one by one: {one_line(error)}", flush=True)
        staged = set()
    for name, path in paths.items():
        if name in staged:
            ready[name] = replace(ready[name], path=path)
        else:
            discard(path)
    return ready


def _stage(files: InFiles, cuts: Sequence[Cut], work: Sequence[Work], paths: dict[str, str]) -> set[str]:
    """Stage the matches of some patterns by one job; the names of those that tasks could finish."""
    if not cuts:
        return set()
    tables = {item.compiled.pattern.name: item.compiled.table for item in work}
    names = [cut.pattern.name for cut in cuts]
    searches = [cut.search(tables[name], paths[name]) for cut, name in zip(cuts, names, strict=True)]
    staged = set()
    for name, outcome in zip(names, stage_matches(files.spark, files.files, searches), strict=True):
        if outcome.failure is None:
            write_reports(outcome.reports, paths[name], tables[name])
            staged.add(name)
        else:
            print(f"{name} is matched by itself: {outcome.failure}", flush=True)
    return staged
