"""A task of the monitor step: runs some groups over their days, from files of events to staged rows.

However many groups a task has, it reads each file once, and besides the groups' states it holds no more than a piece of
the events and their rounds: all groups advance together, piece by piece.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa

from chainlake.days import Days
from chainlake.errors import ChainlakeError
from chainlake.lake.store.port import DayFiles
from chainlake.model_change.config.series import Reduction
from chainlake.model_change.days.definitions import result_table
from chainlake.model_change.days.replay import GroupDays, GroupReplay, GroupRun
from chainlake.model_change.rounds.reduce import reduce_events
from chainlake.monitoring.tasks.by_value import ByValue
from chainlake.monitoring.tasks.events import Piece, Wanted, pieces, read_events
from chainlake.monitoring.tasks.staging import Folder
from chainlake.schemas.models import METRICS, STATE
from chainlake.schemas.table import Table

T = TypeVar("T")


@dataclass(frozen=True)
class Share:
    """What one task does.

    Args:
        runs: the groups and their days, at least one.
        files: the events' files.
        key: name of the key column.
        folder: where the rows go.
    """

    runs: tuple[GroupRun, ...]
    files: DayFiles
    key: str
    folder: Folder


@dataclass(frozen=True)
class GroupReport:
    """What a group gave besides rows.

    Args:
        eps: the threshold in force afterwards; None if it is not known yet.
        warnings: what its first windows showed.
        near_ties: rounds that a difference in the last bit, as on another machine, could have decided otherwise.
    """

    eps: float | None
    warnings: tuple[str, ...]
    near_ties: int


@dataclass(frozen=True)
class ShareReport:
    """What a task did.

    Args:
        groups: for each group its report, or the error that stopped it.
        files: path name of a table → name of the file in the folder with the rows of all groups without an error.
    """

    groups: tuple[GroupReport | Exception, ...]
    files: Mapping[str, str]


@dataclass(frozen=True)
class _Rounds:
    """A kind of rounds; the groups that need the same kind share the work."""

    how: Reduction
    columns: tuple[str, ...]

    @classmethod
    def of(cls, run: GroupRun) -> _Rounds:
        return cls(run.config.reduction, run.config.columns)


def run_share(share: Share) -> ShareReport:
    """Run the groups of a task; no group stops another."""
    groups: list[GroupReplay | Exception] = [_fenced(GroupReplay, run) for run in share.runs]
    waiting: list[Mapping[_Rounds, pa.Table | Exception]] = []
    for piece in _pieces(share):
        waiting.append(_reduced(share, piece))
        if piece.last:
            rounds = {kind: _together([part[kind] for part in waiting]) for kind in waiting[0]}
            groups = [
                group if isinstance(group, Exception) else _gone_on(group, run, piece, rounds[_Rounds.of(run)])
                for group, run in zip(groups, share.runs, strict=True)
            ]
            waiting = []
    return _written(share, [group if isinstance(group, Exception) else _fenced(group.gave) for group in groups])


def _pieces(share: Share) -> Iterator[Piece]:
    first, end = min(run.first for run in share.runs), max(run.end for run in share.runs)
    if first < end:
        yield from pieces(share.files, Days(first, end), math.lcm(*(run.config.round_us for run in share.runs)))


def _reduced(share: Share, piece: Piece) -> dict[_Rounds, pa.Table | Exception]:
    """The rounds of a piece, for each kind, with all the keys that groups need of that kind."""
    keys: dict[_Rounds, dict[str, None]] = {}
    for run in share.runs:
        keys.setdefault(_Rounds.of(run), {}).update(dict.fromkeys(run.config.keys(run.group)))
    columns = {name for kind in keys for name in kind.how.stored(kind.columns)}
    every = {key for mine in keys.values() for key in mine}
    wanted = Wanted(share.key, tuple(sorted(every)), ("event_id", *sorted(columns)))
    events = read_events(piece, wanted, share.files.schema)
    return {
        kind: _fenced(reduce_events, kind.how, events, share.key, tuple(mine), kind.columns)
        for kind, mine in keys.items()
    }


def _together(parts: list[pa.Table | Exception]) -> ByValue | Exception:
    wrong = [part for part in parts if isinstance(part, Exception)]
    return wrong[0] if wrong else ByValue([part for part in parts if isinstance(part, pa.Table)], "key")


def _gone_on(group: GroupReplay, run: GroupRun, piece: Piece, rounds: ByValue | Exception) -> GroupReplay | Exception:
    """The group after it has run up to the end of a piece, or the error that stopped it."""
    if isinstance(rounds, Exception):
        return rounds
    stopped = _fenced(group.until, piece.end, rounds.of(run.config.keys(run.group)))
    return group if stopped is None else stopped


def _written(share: Share, gave: list[GroupDays | Exception]) -> ShareReport:
    """Write the rows of all groups to one file per table."""
    rows: dict[str, list[Mapping[str, object]]] = {}
    of: dict[str, Table] = {}
    for run, one in zip(share.runs, gave, strict=True):
        if isinstance(one, Exception):
            continue
        states = [
            {"model": run.config.name, "group_id": run.group, "day": day, "state": state}
            for day, state in one.states.items()
        ]
        for table, mine in ((result_table(run.config), one.found), (METRICS, one.metrics), (STATE, states)):
            of[table.path_name] = table
            rows.setdefault(table.path_name, []).extend(mine)
    files = {
        name: share.folder.write(of[name], pa.Table.from_pylist(found, schema=nullable(of[name])))
        for name, found in rows.items()
        if found
    }
    return ShareReport(tuple(one if isinstance(one, Exception) else _report(one) for one in gave), files)


def nullable(table: Table) -> pa.Schema:
    """A table's columns in staging, all nullable: some values are filled in later, others are judged later."""
    return pa.schema([pa.field(field.name, field.type) for field in table.arrow()])


def _report(gave: GroupDays) -> GroupReport:
    return GroupReport(gave.eps, gave.warnings, gave.near_ties)


def _fenced(work: Callable[..., T], *args: Any) -> T | Exception:
    """The result of ``work``, or its error in a form that can be sent, since it must not stop another group."""
    try:
        return work(*args)
    except ChainlakeError as error:
        return error
    except Exception as error:
        return RuntimeError(f"{type(error).__name__}: {error}")
