"""What the home remembers about ingested sources, so that a lake that is entirely gone is noticed.

Everything recorded about files and days is in the lake. If the lake was removed, is not mounted, or is looked for in
the wrong place, nothing there distinguishes it from a new one; a small file in the home does.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from chainlake.env.own_folders import NotWritable
from chainlake.errors import InfrastructureError
from chainlake.lake.records import ops
from chainlake.paths import Home

_REPAIR = "chainlake check --repair"


@dataclass(frozen=True)
class Remembered:
    """What is remembered about a source and a lake.

    Args:
        source: its name.
        lake: the lake, relative to the home if it is there.
        start, end: the days that were ingested, ``[start, end)``.
        at: when, as ISO text.
        again: whether a lake that lost the source may take it for a new one.
    """

    source: str
    lake: str
    start: date
    end: date
    at: str
    again: bool = False

    def lost(self, home: Home) -> str:
        """What is lost and what to do, in one line."""
        gone = (
            f"there is no record of source {self.source}, which was ingested up to {self.end - timedelta(days=1)} "
            f"(at {self.at})"
        )
        if self.lake == _lake(home):
            return (
                f"{gone}: the lake {home.lake} has lost its tables, or at least ops. If they are elsewhere, put them "
                f"back, or set CHAINLAKE_LAKE to their place; '{_REPAIR}' marks everything in landing to be read again"
            )
        other = self.lake if "://" in self.lake else os.path.join(home.root, self.lake)
        return (
            f"{gone} into the lake {other}: the lake {home.lake} is empty. "
            f"Set CHAINLAKE_LAKE to the other one; '{_REPAIR}' says how to read everything from landing into this one"
        )


class SourceForgotten(InfrastructureError):
    """The lake knows nothing about a source that was ingested into it."""

    @classmethod
    def of(cls, home: Home, known: Remembered) -> SourceForgotten:
        """Args: the installation, and what is remembered about the source."""
        return cls(
            f"there is no record of source {known.source} in {home.lake}, into which it was ingested up to "
            f"{known.end - timedelta(days=1)} (at {known.at}): the lake has lost its tables; nothing was written",
            hint=f"Put the tables back, or set CHAINLAKE_LAKE to their place. If they are lost, run '{_REPAIR}' and "
            "then what it prints: files that are still in landing are read again.",
        )


class NoMemory(InfrastructureError):
    """What the home remembers about a source cannot be read."""

    @classmethod
    def of(cls, path: Path, error: OSError) -> NoMemory:
        """For its file, and the system's error."""
        return cls(f"{path} cannot be read: {error.strerror}", hint="Move it away, and run this again.")


def remember(home: Home, source: str, days: Iterable[date], end: date) -> None:
    """Note that a source is in the lake.

    Args:
        home: the installation.
        source: its name.
        days: the days whose events were resolved.
        end: the day after the last that was asked for.

    Raises:
        NoMemory, NotWritable: the home cannot be read or written.
    """
    listed, known = [*days, end - timedelta(days=1)], _read(home, source)
    old = known.get(_lake(home))
    if old is not None and not old.again:
        listed += [old.start, old.end - timedelta(days=1)]
        if (min(listed), max(listed) + timedelta(days=1)) == (old.start, old.end):
            return
    now = datetime.now(UTC).isoformat(timespec="seconds")
    fresh = Remembered(source, _lake(home), min(listed), max(listed) + timedelta(days=1), now)
    _write(home, source, {**known, fresh.lake: fresh})


def take_for_new(home: Home, source: str) -> None:
    """Allow the lake that lost a source to take it for a new one."""
    known = _read(home, source)
    if (old := known.get(_lake(home))) is not None:
        _write(home, source, {**known, old.lake: replace(old, again=True)})


def require_known(home: Home, source: str) -> None:
    """Make sure that a source about which the lake knows nothing was never in it.

    Raises:
        SourceForgotten: it was.
    """
    old = _read(home, source).get(_lake(home))
    if old is not None and not old.again:
        raise SourceForgotten.of(home, old)


def forgotten(home: Home) -> list[Remembered]:
    """Sources that were ingested but about which the lake knows nothing.

    Those ingested into other lakes count only if this lake knows no source at all.
    """
    folder = _folder(home)
    names = sorted(path.stem for path in folder.glob("*.json")) if folder.is_dir() else []
    if not names:
        return []
    here: set[str] = set()
    for log in ("files", "event_days"):
        here |= set(ops.current_table(home, log, columns=["source"])["source"].to_pylist())
    found = []
    for name in names:
        known = _read(home, name)
        last = known.get(_lake(home))
        if last is None and not here and known:
            last = max(known.values(), key=lambda one: one.at)
        if last is not None and name not in here:
            found.append(last)
    return found


def _folder(home: Home) -> Path:
    return home.root / "ingested"


def _lake(home: Home) -> str:
    """The lake's name, relative to the home, so that a home that was moved as a whole knows its lake."""
    return home.lake.removeprefix(f"{home.root}/")


def _read(home: Home, source: str) -> dict[str, Remembered]:
    """What is remembered about a source, by lake.

    A damaged file counts as gone; the next ingest writes it again.
    """
    path = _folder(home) / f"{source}.json"
    try:
        rows = json.loads(path.read_text())
        return {
            one["lake"]: Remembered(
                **{**one, "start": date.fromisoformat(one["start"]), "end": date.fromisoformat(one["end"])}
            )
            for one in rows
        }
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return {}
    except OSError as error:
        raise NoMemory.of(path, error) from None


def _write(home: Home, source: str, known: dict[str, Remembered]) -> None:
    folder = _folder(home)
    text = json.dumps([asdict(one) for one in known.values()], default=str, indent=1)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        work = folder / f".{source}.{os.getpid()}"
        work.write_text(text)
        os.replace(work, folder / f"{source}.json")
    except OSError as error:
        raise NotWritable.home(folder, error) from None
