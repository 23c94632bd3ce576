"""The state of every definition and day, judged from what ``ops`` records of the last runs; no JVM.

Definition files that cannot be read, and landed files whose rows are not in the lake, are reported here, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from chainlake.catalog.installed import Installed
from chainlake.catalog.models import LoadedModel
from chainlake.catalog.observed import unobserved_keys
from chainlake.days import Days, us_of
from chainlake.definitions.errors import SourceBroken, UnknownDefinition
from chainlake.definitions.formats.globs import is_ignored
from chainlake.definitions.source import load_sources
from chainlake.errors import ChainlakeError
from chainlake.ingest.landing.completeness import Arrived
from chainlake.ingest.landing.discovery import untaken
from chainlake.ingest.landing.first import first_ingest
from chainlake.ingest.landing.outcomes import READ, copies, quarantined_rows, unread, why_unread
from chainlake.ingest.landing.waiting_log import early
from chainlake.lake.locks import held
from chainlake.lake.records import ops
from chainlake.lake.records.defined.definitions import Definition
from chainlake.lake.records.defined.wanted import names_of
from chainlake.lake.records.event_days import AbandonedDays
from chainlake.lake.records.intervals import Intervals
from chainlake.lake.records.recorded import UNREADABLE, Recorded, gone
from chainlake.lake.records.runs import error_line
from chainlake.lake.records.staleness import STATUS, Judged, inside, judge
from chainlake.lake.records.suspects import mark_suspects
from chainlake.paths import Home
from chainlake.run.attempts import Attempt, cut_off
from chainlake.schemas.ops_rows import FileRow, WaitingFileRow
from chainlake.storage.resolve import storage_of
from chainlake.terminal import one_line
from chainlake.words import counted, listed, nearest

#: How many files of each kind are named; of the others, only the number is given.
_NAMED = 20
#: How many definitions a line names.
_FEW = 3


def status_table(home: Home) -> pa.Table:
    """The view ``ops.status``: one row per definition and day; :data:`chainlake.lake.records.staleness.STATUS`."""
    judged, *_ = judge_all(home)
    return united(one.table(np.arange(len(one.numbers))) for one in judged)


def united(parts: Iterable[pa.Table]) -> pa.Table:
    """Rows of several definitions as one table of the view ``ops.status``."""
    return pa.concat_tables([STATUS.empty_table(), *parts])


def judge_all(
    home: Home,
    days: Days | None = None,
    names: Sequence[str] | None = None,
    recorded: RecordedFiles | None = None,
) -> tuple[list[Judged], list[LoadedModel], list[str]]:
    """Every definition that has a file or was ever published, the models, and notes: a line for each file that cannot
    be read, and so on.

    Args:
        home: the installation.
        days: only these days; all if None.
        names: only these definitions, as ``pattern/NAME`` or ``model/NAME``.
        recorded: the landed files, if they were read before.

    Raises:
        UsageError: no definition has one of the names.
    """
    definitions, models, broken, notes = all_definitions(home)
    asked = None if names is None else {*names, *names_of([one for one in definitions if one.name in names])}
    intervals = Intervals(home, asked)
    known = {definition.name for definition in definitions}
    # These were retired, or their files were removed without it.
    lost = [name for name in intervals.names if name not in known]
    if names is not None:
        unknown = sorted(set(names) - known - set(lost) - set(broken))
        if unknown:
            raise UnknownDefinition.of_any(unknown, sorted(known))
        definitions = [definition for definition in definitions if definition.name in names]
        lost = [name for name in lost if name in names]
    judged = list(judge(home, definitions, days, intervals=intervals))
    _mark_absent(home, judged, recorded)
    notes += mark_suspects(home, judged, intervals)
    judged += [Recorded(name, UNREADABLE if name in broken else gone(name), intervals, days) for name in lost]
    return sorted(judged, key=lambda one: one.name), models, notes


def _mark_absent(home: Home, judged: Sequence[Judged], recorded: RecordedFiles | None) -> None:
    """Say what the input of provisional days lacks."""
    concerned = [one for one in judged if one.provisional.any()]
    if not concerned:
        return
    sources, recorded = load_sources(home), recorded or RecordedFiles.of(home)
    for name in sorted({one.definition.source for one in concerned} & set(sources)):
        mine = [one for one in concerned if one.definition.source == name]
        files = recorded.files.filter(pc.equal(recorded.files["source"], name)).to_pylist()
        waiting = [row["path"] for row in recorded.waiting if row["source"] == name and row["waits"]]
        arrived = Arrived.of(sources[name], files, waiting)
        days = sorted({one.day(at) for one in mine for at in np.flatnonzero(one.provisional).tolist()})
        absent = {day: arrived.not_there(sources[name], day) for day in days}
        for one in mine:
            one.absent = absent


def all_definitions(home: Home) -> tuple[list[Definition], list[LoadedModel], set[str], list[str]]:
    """All definitions that can be read; the models; the names of those that cannot be read; and a line for each broken
    file, and for each key that a pattern names but no event has."""
    sources = load_sources(home)
    installed = Installed.load(home, sources)
    files: list[tuple[str, ChainlakeError]] = [(f"source/{name}", error) for name, error in sources.broken.items()]
    for kind, items in installed.broken.items():
        files += [(f"{kind}/{item.name}", item.error) for item in items]
    own, waiting = SourceBroken.apart(files)
    notes = [f"broken {name}: {error_line(error)}" for name, error in own]
    notes += SourceBroken.waiting_lines(waiting)
    notes += unobserved_keys(home, sources, installed.patterns)
    return installed.definitions, installed.models, {name for name, _ in files}, notes


@dataclass(frozen=True)
class RecordedFiles:
    """What ``ops`` says of landed files.

    Args:
        files: current rows of those that were looked into.
        waiting: current rows of those that waited once.
    """

    files: pa.Table
    waiting: list[WaitingFileRow]

    @classmethod
    def of(cls, home: Home) -> RecordedFiles:
        """Those of an installation."""
        columns = ["source", "path", "file_id", "load_id", "file_date", "revision", "outcome", "reason"]
        columns += ["checksum", "rows_read", "rows_raw", "rows_quarantined"]
        return cls(ops.current_table(home, "files", columns=columns), ops.current(home, "waiting_files"))


def not_ingested(home: Home, judged: Sequence[Judged], *, all_definitions: bool) -> list[str]:
    """A line for each source of which no day is ingested though files of it have landed; if nothing has landed or was
    ingested at all, a line for each source; and one if nothing is defined.

    Args:
        home: the installation.
        judged: the definitions that are shown.
        all_definitions: whether these are all there are; otherwise only their sources are meant.
    """
    sources = load_sources(home)
    lines = [] if judged or sources.broken else [f"no pattern and no model is defined in {home.config}"]
    if not sources and not sources.broken:
        lines = [f"no source is defined in {home.config}: 'chainlake init DIR' makes a project with one"]
    begun = set(ops.current_table(home, "event_days", columns=["source"])["source"].unique().to_pylist())
    meant = set(sources) if all_definitions else {one.definition.source for one in judged if not one.unjudged}
    found = [first_ingest(home, sources[name]) for name in sorted(meant & set(sources) - begun)]
    some = bool(begun) or any(landed for _, landed in found)
    return [*lines, *(line for line, landed in found if landed or not some)]


def cut_off_attempts(home: Home, judged: Sequence[Judged], days: Days | None, *, all_definitions: bool) -> list[str]:
    """A line for each attempt that ended without a result and left days to do; and one for each source whose events are
    half changed while no ingest is at work.

    Args:
        home: the installation.
        judged: the definitions that are shown.
        days: the days that are shown; all if None.
        all_definitions: whether these definitions are all there are; otherwise only their sources are meant.
    """
    shown = [one for one in judged if not one.unjudged]
    sources = {one.definition.source for one in shown}
    lines = []
    for attempt in cut_off(home):
        if attempt.step == "ingest":
            meant = all_definitions or attempt.source in sources
            meant = meant and (days is None or (days.start < attempt.days.end and attempt.days.start < days.end))
            left = "repeat it" if meant else ""
        else:
            to_do = {one.name: count for one in shown if (count := _undone(one, attempt))}
            left = f"to do: {counted(sum(to_do.values()), 'day')} of {listed(to_do, _FEW)}" if to_do else ""
        if left:
            call = f"{attempt.step} {attempt.source} {attempt.days.start} {attempt.days.end}"
            lines.append(
                f"ended without a result: {call}, begun "
                f"{attempt.began:%Y-%m-%d %H:%M:%S} UTC by {attempt.process}, run {attempt.run_id}; it was killed, or "
                f"its machine stopped; {left}"
            )
    changing: dict[str, set[date]] = {}
    for one in shown:
        changing.setdefault(one.definition.source, set()).update(map(one.day, np.flatnonzero(one.changing).tolist()))
    return [
        *lines,
        *(
            AbandonedDays.failed(source, sorted(marked)).summary
            for source, marked in sorted(changing.items())
            if marked and not held(home, f"source-{source}")
        ),
    ]


def _undone(judged: Judged, attempt: Attempt) -> int:
    """How many days of a definition are to do that an attempt was to do."""
    kind, _, name = judged.name.partition("/")
    if (attempt.step, attempt.source) != ("monitor" if kind == "model" else "detect", judged.definition.source):
        return 0
    if attempt.definitions is not None and name not in attempt.definitions:
        return 0
    return int((judged.unrecorded_since(us_of(attempt.began)) & inside(judged.numbers, attempt.days)).sum())


def left_files(home: Home, recorded: RecordedFiles) -> list[str]:
    """A line for each landed file that was not read, is waiting, or is dated in the future, and for each source with
    rows in quarantine or copies of files."""
    now = datetime.now(UTC)
    files = recorded.files
    waiting = [row for row in recorded.waiting if row["waits"]]
    dated: list[FileRow] = files.filter(pc.greater(files["file_date"], now.date())).to_pylist()
    future = [row for row in dated if early(row["file_date"], now)]
    return [
        *_lines("not read", [(why_unread(row), _place(row)) for row in _unread_files(home, files)]),
        *_lines("waiting", [(row["reason"], _place(row)) for row in waiting if not early(row["file_date"], now)]),
        *_lines(
            "file dated in the future",
            [
                *((row["file_date"], _place(row)) for row in future),
                *((row["file_date"], _place(row)) for row in waiting if early(row["file_date"], now)),
            ],
        ),
        *_of_sources(files),
    ]


def _of_sources(files: pa.Table) -> list[str]:
    """A line for each source with rows in quarantine, and for each with files that are copies of others."""
    bad = files.filter(pc.greater(files["rows_quarantined"], 0))
    counts = files["checksum"].value_counts()
    twice = counts.field("values").filter(pc.greater(counts.field("counts"), 1))
    alike = files.filter(pc.is_in(files["checksum"], twice))
    found = []
    for rows, text in ((bad, quarantined_rows), (alike, copies)):
        for source in sorted(rows["source"].unique().to_pylist()):
            found.append(text(source, rows.filter(pc.equal(rows["source"], source)).to_pylist()))
    return [line for line in found if line]


def untaken_files(home: Home, recorded: RecordedFiles) -> list[str]:
    """A line for each landed file that no ingest has seen and none will read: no format of its source takes its name,
    or no source has its folder.

    It lists all landed files, of which there may be many, and in a store at some cost.
    """
    sources = load_sources(home)
    known: dict[str, set[str]] = {}
    places = [(row["source"], row["path"]) for row in recorded.waiting]
    places += zip(recorded.files["source"].to_pylist(), recorded.files["path"].to_pylist(), strict=True)
    for name, path in places:
        known.setdefault(name, set()).add(path.split("!", 1)[0])
    pairs = []
    for name in sorted(sources):
        untaken_of = untaken(home, sources[name], known.get(name, set()))
        pairs += [("no format's glob fits its name", f"{name}/{one_line(path)}") for path in untaken_of]
    if not home.landing_root:
        # A folder that is named for us holds what others put there, too.
        there = storage_of(home.landed_all).names(home.landed_all)
        others = [one for one in there if not is_ignored(one) and one not in {*sources, *sources.broken}]
        hints = {one: nearest(one, [*sources, *sources.broken]) for one in others}
        pairs += [(f"no source has this name. {hints[one] or ''}".strip(), one_line(one)) for one in others]
    return _lines("landed", pairs, "below " + home.landed_all)


def _place(row: FileRow | WaitingFileRow) -> str:
    return f"{row['source']}/{one_line(row['path'])}"


def _lines(
    word: str, pairs: Sequence[tuple[object, str]], where: str = "in ops.current_files and ops.current_waiting_files"
) -> list[str]:
    listed = sorted(f"{word} ({why}): {place}" for why, place in pairs)
    if len(listed) <= _NAMED:
        return listed
    return [
        *listed[:_NAMED],
        f"{word}: {len(listed) - _NAMED} more, {where}",
    ]


def _unread_files(home: Home, files: pa.Table) -> list[FileRow]:
    bad = pc.and_not(pc.is_valid(files["outcome"]), pc.is_in(files["outcome"], pa.array(READ)))
    found: list[FileRow] = []
    if pc.any(bad).as_py():
        sources = load_sources(home)
        for name in files.filter(bad)["source"].unique().to_pylist():
            replaces = sources[name].replaces if name in sources else ()
            found += unread(replaces, files.filter(pc.equal(files["source"], name)).to_pylist())
    return found
