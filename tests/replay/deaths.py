"""How attempts of the simulator die, fail, come late and overlap, all in one process.

A step passes many points: each side of every write and commit, and the moment when its output is staged. At one of
them, drawn by the seed, something happens to the attempt:

- ``kill``: it dies. An exception unwinds it, and whatever it still tries to write on the way (a log row of a
  ``finally``, say) is refused, as if nothing ran any more.
- ``late``: it dies as a commit to a data table is on its way; the commit lands later, whenever the seed says.
- ``error``: something ordinary goes wrong, once; the step may clean up and note its failure.
- ``nest``: another attempt runs at this very moment, from its beginning to its end, death or failure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

from chainlake.detect import run as detect_run
from chainlake.lake import faults, locks
from chainlake.lake.commits.places import take_places
from chainlake.lake.records import event_days, ops
from chainlake.lake.store.files import FilesLake
from chainlake.lake.store.spark import SparkLake
from chainlake.lake.upkeep import maintain
from chainlake.monitoring import run as monitor_run

#: How long an attempt waits for a lock that the attempt around it holds: it never gets it.
_LOCK_WAIT_S = 0.2


class Killed(BaseException):
    """The end of a process."""


class Injected(OSError):
    """Something ordinary that goes wrong."""


@dataclass
class Fate:
    """What happens to an attempt: ``kind`` (empty for nothing) at the ``at``-th point; ``other`` is what is nested."""

    kind: str = ""
    at: int = 0
    other: Callable[[], None] | None = None


@dataclass
class _Attempt:
    fate: Fate
    points: int = 0
    dead: bool = False
    where: str = ""
    spent: bool = False


@dataclass
class Deaths:
    """The harness; one per seed.

    Args:
        note: takes one line for the log.
    """

    note: Callable[[str], None]
    pending: list[tuple[str, Callable[[], Any]]] = field(default_factory=list)
    _stack: list[_Attempt] = field(default_factory=list)
    _landing: bool = False

    @contextmanager
    def attempt(self, fate: Fate) -> Iterator[None]:
        """One attempt; ends when it dies, and passes on every other exception."""
        mine = _Attempt(fate)
        self._stack.append(mine)
        try:
            yield
        except Killed:
            if self._stack[-1] is not mine or not mine.dead:
                raise
            self.note(f"  died at {mine.where}")
        finally:
            self._stack.remove(mine)

    def land(self) -> None:
        """A pending commit lands, if there is one: refused, skipped or made."""
        if not self.pending:
            self.note("no commit is on its way")
            return
        what, commit = self.pending.pop(0)
        self._landing = True
        try:
            commit()
            self.note(f"late commit of {what} came through, or was skipped")
        except Exception as error:
            self.note(f"late commit of {what} was refused: {type(error).__name__}")
        finally:
            self._landing = False

    def land_of(self, table: str) -> None:
        """All pending commits to a table, or to later versions of it, land."""
        mine = [one for one in self.pending if one[0] == table or one[0].startswith(f"{table}/")]
        self.pending = [*mine, *(one for one in self.pending if one not in mine)]
        for _ in mine:
            self.land()

    def point(self, name: str) -> None:
        """Called wherever something can happen to the running attempt."""
        if not self._stack or self._landing:
            return
        mine = self._stack[-1]
        if mine.dead:
            raise Killed(name)
        mine.points += 1
        fate = mine.fate
        if mine.spent or mine.points < fate.at or fate.kind in ("", "late"):
            return
        mine.spent = True
        if fate.kind == "kill":
            mine.dead, mine.where = True, name
            raise Killed(name)
        if fate.kind == "error":
            self.note(f"  fails at {name}")
            raise Injected(f"injected at {name}")
        assert fate.other is not None
        self.note(f"  at {name} meanwhile {{")
        fate.other()
        self.note("  }")

    def commit(self, what: str, commit: Callable[[], Any]) -> Any:
        """A commit to a data table, which may come late."""
        if not self._stack or self._landing:
            return commit()
        mine = self._stack[-1]
        if mine.dead:
            raise Killed(what)
        if mine.fate.kind == "late" and not mine.spent and mine.points >= mine.fate.at:
            mine.spent = mine.dead = True
            mine.where = f"{what}, the commit on its way"
            self.pending.append((what, commit))
            raise Killed(mine.where)
        return commit()

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Put the points into the product."""
        append, audit_matches, audit_models = ops.append, detect_run.audit_matches, monitor_run.audit_models
        by_files, by_spark = FilesLake.commit, SparkLake.commit

        def ops_append(home: Any, table: str, rows: Any, run_id: str) -> None:
            self.point(f"ops.{table}.before")
            append(home, table, rows, run_id)
            self.point(f"ops.{table}.after")

        def staged(audit: Callable[..., Any]) -> Callable[..., Any]:
            def wrapped(*args: Any, **more: Any) -> Any:
                self.point("staged")
                return audit(*args, **more)

            return wrapped

        def committed(commit: Callable[..., Any]) -> Callable[..., Any]:
            def wrapped(lake: Any, change: Any, turn: Any) -> Any:
                return self.commit(change.table.path_name, lambda: commit(lake, change, turn))

            return wrapped

        wait = {"wait_s": _LOCK_WAIT_S}
        with (
            patch.object(faults, "reached", self.point),
            patch.object(ops, "append", ops_append),
            patch.object(detect_run, "audit_matches", staged(audit_matches)),
            patch.object(monitor_run, "audit_models", staged(audit_models)),
            patch.object(FilesLake, "commit", committed(by_files)),
            patch.object(SparkLake, "commit", committed(by_spark)),
            patch.object(locks.jvm_lock.__wrapped__, "__kwdefaults__", wait),
            patch.object(locks.file_lock.__wrapped__, "__kwdefaults__", wait),
            patch.object(FilesLake.lock, "__kwdefaults__", wait),
            patch.object(take_places, "__kwdefaults__", wait),
            patch.object(SparkLake.lock, "__kwdefaults__", wait),
            patch.object(maintain.maintain_table, "__kwdefaults__", {**maintain.maintain_table.__kwdefaults__, **wait}),
            # Who waits for days that the attempt around it is changing waits in vain.
            patch.object(event_days.pin, "__defaults__", (0.0,)),
        ):
            yield
