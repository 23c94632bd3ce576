"""Decides which pages are made: those of definitions whose days have changed, and always the first page.

The report never makes a step fail. If a page cannot be made, the old page stays; the failure is logged, and shown on
the first page and in ``chainlake status`` until the page can be made.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from chainlake.catalog.models import LoadedModel
from chainlake.catalog.patterns import load_patterns
from chainlake.definitions.source import Sources, load_sources
from chainlake.digests import text_digest
from chainlake.env.processes.ending import reason_with_stack
from chainlake.lake.errors import LockBusy
from chainlake.lake.locks import local_lock
from chainlake.lake.records.recorded import UNREADABLE, Recorded
from chainlake.lake.records.staleness import Judged
from chainlake.operations.status import RecordedFiles, cut_off_attempts, judge_all, left_files, not_ingested
from chainlake.paths import PACKAGE, Home
from chainlake.quality.docs import index_page
from chainlake.report import models, overview, patterns
from chainlake.report.drawing.road import is_road
from chainlake.report.kept import Kept, Made, digest_of, failures, folder_of, is_due, note_due, replace_file, take_due
from chainlake.report.reading import SourceReader

log = logging.getLogger("chainlake")

#: The share of the steps' time that reports after them may take.
SHARE = 0.05
_LOCK = "report"
#: Kinds without their own page: episodes and rankings are on the page of their pattern.
_DERIVED = ("episodes", "ranked")


@dataclass(frozen=True)
class Outcome:
    """What a run of the report did.

    Args:
        index: the first page.
        made: definitions whose pages were made.
        left: definitions left for a later run.
        failed: definitions whose pages could not be made.
    """

    index: Path
    made: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Due:
    """Pages of a definition that are to be made.

    Args:
        name: the definition.
        digest: digest of what they are made from.
        make: makes them, as path → content.
    """

    name: str
    digest: str
    make: Callable[[], Mapping[str, str]]


def index_of(home: Home) -> Path:
    """The first page of the report, whether it has been made or not."""
    return folder_of(home) / "index.html"


def make_report(home: Home, *, everything: bool = False, only: str | None = None) -> Outcome:
    """Make the pages of all definitions whose days have changed.

    Args:
        home: the installation.
        everything: make all pages again, even those that are up to date.
        only: make the first page and the pages of this definition, and leave the others for a later run.

    Raises:
        ChainlakeError: the lake's records cannot be read.
    """
    folder = folder_of(home)
    with local_lock(home, _LOCK):
        if only is None:
            take_due(folder)
        return _make(home, None, everything=everything, only=only)


def after_step(home: Home, seconds: float) -> None:
    """Bring the report up to date after a step; whatever goes wrong is logged and not raised.

    Args:
        home: the installation.
        seconds: how long the step took. Reports take at most a twentieth of the time of all steps; what does not fit
            waits for the next step.
    """
    folder = folder_of(home)
    try:
        note_due(folder, seconds)
        while is_due(folder):
            try:
                with local_lock(home, _LOCK, wait_s=0.0):
                    outcome = _within(home, folder)
            except LockBusy:
                # The step that is making it looks for new days when it is done.
                log.info("report: another step is making it: %s", index_of(home))
                return
            if outcome is None:
                log.info(
                    "report: a later step brings it up to date, since it may take %.0f %% of the steps' time, "
                    "which is too little so far; 'chainlake report' makes it at once: %s",
                    100 * SHARE,
                    index_of(home),
                )
                return
            left = (
                f", {len(outcome.left)} definitions left for a later step or 'chainlake report'" if outcome.left else ""
            )
            log.info("report: %s%s", outcome.index, left)
    except Exception as error:
        log.warning("report: it could not be made: %s", reason_with_stack(error))


def _within(home: Home, folder: Path) -> Outcome | None:
    """Make what fits into the report's share of the time of the steps that have ended; None if not even the first page
    fits, and then their time is kept for later."""
    seconds = take_due(folder)
    budget = SHARE * seconds
    if Kept.read(folder).base_s > budget:
        note_due(folder, seconds)
        return None
    return _make(home, budget)


def _make(home: Home, budget: float | None, *, everything: bool = False, only: str | None = None) -> Outcome:
    began, folder = time.monotonic(), folder_of(home)
    kept = Kept() if everything else Kept.read(folder)
    judged, loaded, notes = judge_all(home)
    sources = load_sources(home)
    entries = _entries(judged, loaded, home)
    due = [one for one in _due(home, judged, loaded, sources) if _is_new(kept, one, folder)]
    _forget(kept, folder, [one.judged.name for one in entries if one.page is not None])
    _copy_assets(folder)
    base = time.monotonic() - began
    # The oldest pages come first, so that every page gets its turn when time is short.
    due.sort(key=lambda one: kept.pages[one.name].at if one.name in kept.pages else 0.0)
    made, left = [], []
    for one in due:
        late = budget is not None and time.monotonic() - began > budget
        if late or only not in (None, one.name):
            left.append(one.name)
        elif _page(kept, one, folder):
            made.append(one.name)
    kept.left = left
    older = [f"report: the page of {name} is older than its days" for name in left]
    last = time.monotonic()
    docs = index_page(home)
    where = f"../{docs.relative_to(home.root)}" if docs.exists() else None
    # Files that cannot be read are already among the notes.
    lost = [one for one in judged if isinstance(one, Recorded) and one.reason != UNREADABLE]
    problems = [
        *notes,
        *(f"{one.name}: {one.reason}" for one in lost if (one.state != "retired").any()),
        *left_files(home, RecordedFiles.of(home)),
        *not_ingested(home, judged, all_definitions=True),
        *cut_off_attempts(home, judged, None, all_definitions=True),
        *failures(kept),
        *older,
    ]
    replace_file(folder / "index.html", overview.page(home, entries, problems, where))
    kept.base_s = base + time.monotonic() - last
    kept.write(folder)
    return Outcome(folder / "index.html", tuple(made), tuple(left), tuple(sorted(kept.failed)))


def _page(kept: Kept, one: _Due, folder: Path) -> bool:
    """Make the pages of one definition, and return whether that worked; a failure does not affect the others."""
    try:
        files = one.make()
    except Exception as error:
        kept.failed[one.name] = reason_with_stack(error)
        log.warning("report: the page of %s could not be made: %s", one.name, kept.failed[one.name])
        return False
    for path, text in files.items():
        replace_file(folder / path, text)
    before = kept.pages.get(one.name)
    for path in set(before.files if before else ()) - set(files):
        (folder / path).unlink(missing_ok=True)
    kept.failed.pop(one.name, None)
    kept.pages[one.name] = Made(one.digest, sorted(files), time.time())
    return True


def _is_new(kept: Kept, one: _Due, folder: Path) -> bool:
    before = kept.pages.get(one.name)
    return before is None or before.digest != one.digest or not all((folder / path).exists() for path in before.files)


def _forget(kept: Kept, folder: Path, names: Sequence[str]) -> None:
    """Remove the pages of definitions that are gone."""
    known = set(names)
    for name in [one for one in kept.pages if one not in known]:
        for path in kept.pages.pop(name).files:
            (folder / path).unlink(missing_ok=True)
    kept.failed = {name: why for name, why in kept.failed.items() if name in known}


def _copy_assets(folder: Path) -> None:
    for file in sorted((PACKAGE / "report" / "assets").iterdir()):
        content, there = file.read_bytes(), folder / "assets" / file.name
        if not there.exists() or there.read_bytes() != content:
            replace_file(there, content)


# ---- definitions


def _page_of(name: str) -> str:
    kind, _, bare = name.partition("/")
    return f"models/{bare}.html" if kind == "model" else f"patterns/{bare}.html"


def _entries(judged: Sequence[Judged], loaded: Sequence[LoadedModel], home: Home) -> list[overview.Entry]:
    about = {one.definition.name: one.config.description for one in loaded}
    about |= {f"pattern/{path.stem}": _described(path) for path in sorted((home.config / "patterns").glob("*.sase"))}
    broken = {one.name for one in judged if one.unjudged}
    return [
        overview.Entry(
            one,
            None if one.name in broken else _page_of(one.name),
            about.get(one.name) or _made_of(one.name),
        )
        for one in judged
    ]


def _described(path: Path) -> str:
    """The description in a pattern's front matter; the pattern is compiled only when its page is made."""
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines()[:60]:
        if line.startswith("description:"):
            return line.removeprefix("description:").strip().strip("'\"")
    return ""


def _made_of(name: str) -> str:
    kind, _, bare = name.partition("/")
    return {"episodes": f"episodes of {bare}", "ranked": f"the best matches of {bare}"}.get(kind, "")


def _due(home: Home, judged: Sequence[Judged], loaded: Sequence[LoadedModel], sources: Sources) -> list[_Due]:
    by_name = {one.name: one for one in judged}
    of_model = {one.definition.name: one for one in loaded}
    found = []
    lakes = {name: SourceReader(home, source) for name, source in sources.items()}
    for one in judged:
        kind, _, bare = one.name.partition("/")
        if one.unjudged or kind in _DERIVED:
            continue
        source = sources[one.definition.source]
        also = [by_name[f"{other}/{bare}"] for other in _DERIVED if f"{other}/{bare}" in by_name and kind == "pattern"]
        # The map of a road shows changes of its models.
        shown = [name for name, model in of_model.items() if kind == "pattern" and model.source.name == source.name]
        parts = [digest_of(each) for each in (*also, *(by_name[name] for name in shown if is_road(source)))]
        # Pages also show what no result depends on, such as a description, a comment or a unit.
        texts = [_text(home, folder, each) for folder, each in ((f"{kind}s", bare), ("sources", source.name))]
        digest = digest_of(one, one.definition.definition_hash, source.definition_hash, parts, texts)
        if kind == "pattern":
            found.append(_Due(one.name, digest, partial(_pattern, lakes, sources, loaded, (one, *also))))
        else:
            lake = lakes[one.definition.source]
            found.append(_Due(one.name, digest, partial(_model, lake, of_model[one.name], one)))
    return found


def _text(home: Home, folder: str, name: str) -> str:
    """Digest of a definition's file; empty if it is gone."""
    files = sorted((home.config / folder).glob(f"{name}.*"))
    return text_digest("\0".join(file.read_text(encoding="utf-8", errors="replace") for file in files))


def _pattern(
    lakes: Mapping[str, SourceReader], sources: Sources, loaded: Sequence[LoadedModel], judged: Sequence[Judged]
) -> Mapping[str, str]:
    one, *also = judged
    lake = lakes[one.definition.source]
    compiled, broken = load_patterns(lake.home, sources, only=one.name.removeprefix("pattern/"))
    if broken:
        raise broken[0].error
    changes = models.changes_of(lake.home, loaded, lake.source.name)
    return patterns.pages(patterns.Subject(lake, compiled[0], one, also, changes))


def _model(lake: SourceReader, loaded: LoadedModel, judged: Judged) -> Mapping[str, str]:
    return models.pages(models.Subject(lake, loaded, judged))
