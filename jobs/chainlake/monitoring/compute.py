"""Computes the groups of many models for the monitor step, packed into tasks that read the files of events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from chainlake.days import Days
from chainlake.lake.records.chain import Link
from chainlake.lake.records.event_days import Pinned
from chainlake.lake.store.port import DayFiles
from chainlake.model_change.days.definitions import result_table
from chainlake.model_change.days.replay import GroupRun, pack
from chainlake.model_change.days.runs import start
from chainlake.monitoring.replay import Replay
from chainlake.monitoring.states import digest_of
from chainlake.monitoring.tasks.by_value import ByValue
from chainlake.monitoring.tasks.staging import Folder
from chainlake.monitoring.tasks.task import GroupReport, Share, ShareReport, nullable, run_share
from chainlake.run.ports import Ports
from chainlake.schemas.models import METRICS, STATE
from chainlake.schemas.table import Table

#: Number of events that make one more task worth its start: some seconds of reading and of the groups' kernels.
_ROWS_PER_TASK = 200_000


@dataclass(frozen=True)
class Outcome:
    """The result of a replay.

    Args:
        item: the replay.
        found: rows of the definition's table.
        metrics: rows of ``models.metrics``.
        states: rows of ``models.state``.
        links: day → the digests of the states before and after it.
        eps: the threshold in force of each group where it is known.
        remarks: what the owner of the model should think about, one sentence each.
    """

    item: Replay
    found: pa.Table
    metrics: pa.Table
    states: pa.Table
    links: dict[date, Link]
    eps: dict[str, float]
    remarks: list[str]

    @property
    def days(self) -> Days:
        """The days that the result covers."""
        return Days(min(self.links), max(self.links) + timedelta(days=1))

    def first_days(self, count: int) -> Outcome:
        """The part of the result for the first ``count`` days, of which there must be at least one."""
        days = sorted(self.links)[:count]
        day_column = result_table(self.item.model.config).day_column
        rows = {name: until(getattr(self, name), column, Days(days[0], days[-1] + timedelta(days=1)))
                for name, column in (("found", day_column), ("metrics", "day"), ("states", "day"))}  # fmt: skip
        return replace(self, links={day: self.links[day] for day in days}, **rows)

    def state_after(self, day: date) -> dict[str, str]:
        """The state of each group at the end of a day."""
        rows = self.states.filter(pc.equal(self.states["day"], pa.scalar(day)))
        return dict(zip(rows["group_id"].to_pylist(), rows["state"].to_pylist(), strict=True))


def until(rows: pa.Table, column: str, days: Days) -> pa.Table:
    """The rows of ``days``, by a column of times or dates."""
    times = rows[column]
    lo, hi = (pa.scalar(us).cast(times.type) for us in days.micros()) if pa.types.is_timestamp(times.type) else (
        pa.scalar(day) for day in (days.start, days.end))  # fmt: skip
    return rows.filter(pc.and_(pc.greater_equal(times, lo), pc.less(times, hi)))


@dataclass(frozen=True)
class Computed:
    """The results of several replays.

    Args:
        outcomes: for each model its result, or the error that stopped it.
        events: number of events of the source on the days.
    """

    outcomes: tuple[Outcome | Exception, ...]
    events: int


def compute(ports: Ports, pinned: Pinned, items: Sequence[Replay], folder: Folder) -> Computed:
    """Run every group of every model over its days.

    Args:
        ports: the tasks that compute, and the lake that has the events.
        pinned: the source's events.
        items: replays of models of one source, at least one.
        folder: where the resulting rows are staged.
    """
    runs = [run for item in items for run in _runs(item)]
    first, end = min(run.first for run in runs), max(run.end for run in runs)
    events = pinned.event_days.events(day for day in pinned.event_days.rows if first <= day < end)
    files = DayFiles(pa.schema([]), ())
    if pinned.version is not None and first < end:
        files = ports.lake.day_files("events", items[0].model.config.source, Days(first, end), pinned.version)
    bins = min(len(runs), ports.tasks.parallelism, 1 + events // _ROWS_PER_TASK)
    place = pack([run.weight for run in runs], bins)
    slots = [mine for number in range(bins) if (mine := [slot for slot, at in enumerate(place) if at == number])]
    key = items[0].model.source.key
    reports = ports.tasks.map(
        run_share, [Share(tuple(runs[s] for s in mine), files, key, folder) for mine in slots if mine]
    )
    groups: dict[int, GroupReport | Exception] = {}
    for mine, report in zip(slots, reports, strict=True):
        groups.update(zip(mine, report.groups, strict=True))
    staged = _Staged(folder, reports)
    outcomes: list[Outcome | Exception] = []
    at = 0
    for item in items:
        names = list(item.model.config.groups)
        outcomes.append(_outcome(item, {name: groups[at + i] for i, name in enumerate(names)}, staged))
        at += len(names)
    return Computed(tuple(outcomes), events)


def _runs(item: Replay) -> list[GroupRun]:
    """The runs of a model's groups, in order; days before the model's start are not run, and published empty."""
    config = item.model.config
    first = max(item.days.start, config.start)
    end = max(first, item.days.end)
    return [GroupRun(config, group, first, end, item.snapshots.get(group)) for group in config.groups]


class _Staged:
    """The rows that tasks wrote, by model."""

    def __init__(self, folder: Folder, reports: Sequence[ShareReport]):
        self._folder, self._reports = folder, reports
        self._of: dict[str, ByValue] = {}

    def rows(self, table: Table, model: str) -> pa.Table:
        """The rows of a model; the caller chose models so that their rows fit into this process."""
        if table.path_name not in self._of:
            names = [one.files[table.path_name] for one in self._reports if table.path_name in one.files]
            self._of[table.path_name] = ByValue([self._folder.read(nullable(table), names)], table.key[0])
        return self._of[table.path_name].of([model])


def _outcome(item: Replay, groups: dict[str, GroupReport | Exception], staged: _Staged) -> Outcome | Exception:
    stopped = [one for one in groups.values() if isinstance(one, Exception)]
    if stopped:
        return stopped[0]
    config = item.model.config
    reports = {group: one for group, one in groups.items() if isinstance(one, GroupReport)}
    remarks = [*config.warnings, *(line for one in reports.values() for line in one.warnings)]
    near_ties = sum(one.near_ties for one in reports.values())
    if near_ties:
        remarks.append(f"{near_ties} decisions within 1e-9 of eps could turn out differently on another machine")
    table = result_table(config)
    states = staged.rows(STATE, config.name)
    links = _links(item, states)
    digests = pa.array([links[day].state_out for day in states["day"].to_pylist()], pa.string())
    states = states.set_column(states.column_names.index("fingerprint"), "fingerprint", digests)
    return Outcome(
        item,
        staged.rows(table, config.name).cast(table.arrow()),
        staged.rows(METRICS, config.name).cast(METRICS.arrow()),
        states.cast(STATE.arrow()),
        links,
        {group: one.eps for group, one in reports.items() if one.eps is not None},
        remarks,
    )


def _links(item: Replay, states: pa.Table) -> dict[date, Link]:
    """The digests of the states before and after each day; before its start, a model has seen nothing."""
    of: dict[date, dict[str, str]] = {day: {} for day in item.days}
    for row in states.select(["group_id", "day", "state"]).to_pylist():
        of[row["day"]][row["group_id"]] = row["state"]
    config = item.model.config
    fresh = {group: start(config, group).snapshot() for group in config.groups}
    before, links = item.state, {}
    for day, kept in of.items():
        after = digest_of(kept, fresh)
        links[day] = Link(before, after)
        before = after
    return links
