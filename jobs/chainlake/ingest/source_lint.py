"""Lint of a source's file, by itself and against files: what would not be read, or would be read wrongly. No Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pyarrow.compute as pc

from chainlake.cep.lint.observed import ObservedValues
from chainlake.definitions.source import Source, load_source
from chainlake.errors import DefinitionError
from chainlake.ingest.landing.container import Damaged, NotReadable, gather, open_bytes
from chainlake.ingest.landing.discovery import Landed, look_into
from chainlake.ingest.landing.expected import LandedNames, expected_globs
from chainlake.ingest.landing.walk import walk
from chainlake.ingest.path_fields import path_fields
from chainlake.ingest.rows.choice import HEAD, choose_format
from chainlake.ingest.rows.parse import HOPELESS, parse_file
from chainlake.ingest.rows.parsed import BadRows, Counts, RawRows, Task
from chainlake.ingest.source_findings import BadRowsOf, NamesNoFile, NoFormat, NothingRead, Quarantined, UnreadFile
from chainlake.paths import Home

#: How many landed files are looked at: the last ones by name, and only the first block of each.
MOST_FILES = 20
#: Days around a file's date for which ``expect`` may name it.
_AROUND = range(-3, 4)
#: The most characters that are shown of the first row with a fault.
_SHOWN = 60


@dataclass(frozen=True)
class SourceReport:
    """What lint found about a source.

    Args:
        errors: the first error in the definition, or errors for files that it cannot read.
        warnings: what it reads, but perhaps not as intended.
        files: how many files were looked at.
    """

    errors: tuple[DefinitionError, ...]
    warnings: tuple[DefinitionError, ...]
    files: int = 0


def lint_source(home: Home, path: Path, files: Sequence[Path] = ()) -> SourceReport:
    """Check a source's file.

    Args:
        home: the installation; its landed files of the source are looked at if no ``files`` are given.
        path: the source's file.
        files: files as they will land; all their rows are read.
    """
    try:
        source = load_source(path)
    except DefinitionError as error:
        return SourceReport((error,), ())
    landing = home.landed(source.name)
    walked = walk(landing, follow_links=source.follow_links)
    landed = {entry.relative: entry.file for entry in walked.entries if entry.stat is not None}
    chosen = {_relative(file, landing): str(file) for file in files} or dict(list(landed.items())[-MOST_FILES:])
    report = _Look(source, whole=bool(files))
    for entry in walked.entries:
        if entry.stat is None:
            report.wrong(UnreadFile.refused(source.file, entry.relative, entry.detail))
    for waiting, why in walked.waiting.items():
        report.wrong(UnreadFile.failed(source.file, waiting, why))
    for relative, file in chosen.items():
        report.file(file, relative)
    if landed:
        report.expected(list(landed))
    return SourceReport(tuple(report.errors), tuple(report.warnings), len(chosen))


def _relative(file: Path, landing: str) -> str:
    """The path of a given file as ingest would see it."""
    return file.relative_to(landing).as_posix() if file.is_relative_to(landing) else file.name


def observed_in_files(source: Source, files: Sequence[Path]) -> ObservedValues | None:
    """The keys and types of the rows that files would give; ``None`` if they give none, which the source's lint
    reports.

    Args:
        source: the source.
        files: files as they will land.
    """
    look = _Look(source, whole=True)
    keys: set[str] = set()
    types: set[str] = set()
    for landed in (landed for file in files for landed in look.looked_into(str(file), file.name)):
        for piece in look.pieces(Task.of(landed, "")):
            if isinstance(piece, RawRows):
                keys.update(pc.unique(piece.batch[source.key]).to_pylist())
                types.update(pc.unique(piece.batch["type"]).to_pylist())
    return ObservedValues(f"of {', '.join(file.name for file in files)}", keys, types) if keys else None


class _Look:
    def __init__(self, source: Source, *, whole: bool) -> None:
        self.source = source
        self.whole = whole
        self.errors: list[DefinitionError] = []
        self.warnings: list[DefinitionError] = []

    def wrong(self, error: DefinitionError) -> None:
        """Keep an error; one that several files give is reported once."""
        if error.summary not in [known.summary for known in self.errors]:
            self.errors.append(error)

    def file(self, file: str, relative: str) -> None:
        """Check one file, or each member of an archive."""
        for landed in self.looked_into(file, relative):
            self.content(landed)

    def looked_into(self, file: str, relative: str) -> Sequence[Landed]:
        """The file, or the members of an archive; none if it cannot be read."""
        try:
            return look_into(self.source, file, relative)
        except (NotReadable, OSError) as error:
            self.wrong(UnreadFile.failed(self.source.file, relative, error))
            return ()

    def content(self, landed: Landed) -> None:
        path = landed.path
        if landed.problem:
            self.wrong(UnreadFile.problem(self.source.file, path, landed.problem, landed.detail))
        if landed.problem in (*HOPELESS, "bad_path_date"):
            return
        if self.source.path.pattern is not None and not landed.fields:
            self.warnings.append(NothingRead.path_fields(self.source.file, path))
        try:
            with open_bytes(landed.file, landed.member) as stream:
                head = gather(stream, HEAD)[0]
        except (Damaged, NotReadable, OSError) as error:
            self.wrong(UnreadFile.failed(self.source.file, path, error))
            return
        if self.fits(path, head):
            self.rows(path, Task.of(landed, ""))

    def fits(self, path: str, head: bytes) -> bool:
        """Whether a format fits the file; if none does, each whose glob fits reports where and why."""
        file, choice = self.source.file, choose_format(self.source.formats, path, head)
        if choice.form is not None:
            return True
        if choice.no_lines:
            self.wrong(NoFormat.no_lines(file, path, choice.no_lines))
        elif not choice.unfit:
            self.wrong(NoFormat.by_path(file, path, [str(form.glob) for form in self.source.formats]))
        for one in () if choice.no_lines else choice.unfit:
            form, header = one.form, one.header
            if header is None:
                self.wrong(NoFormat.of_format(file, path, form.name, one.why))
                continue
            missing = form.missing(header) if set(form.header_test) <= set(header) else []
            for column in missing:
                self.wrong(NoFormat.lacking(file, path, form.name, column, header))
            if not missing:
                self.wrong(NoFormat.header(file, path, form.name, form.lines_before, one.why, header))
        return False

    def rows(self, path: str, task: Task) -> None:
        """Report what becomes of the rows, and which attributes none of them has."""
        file = self.source.file
        bad: Counter[tuple[str, str]] = Counter()
        examples: dict[tuple[str, str], tuple[int, str]] = {}
        good = 0
        empty = {attribute.name for attribute in self.source.attributes}
        for piece in self.pieces(task):
            if isinstance(piece, RawRows):
                good += len(piece.batch)
                empty -= {name for name in empty if pc.count(piece.batch[name]).as_py()}
                continue
            for row in piece.batch.to_pylist():
                if row["reason"] == task.problem:
                    # It stands for the whole file, whose problem is an error already.
                    continue
                why = (row["reason"], row["field"] or "")
                bad[why] += 1
                examples.setdefault(why, (row["line"], (row["value"] or row["raw"] or "")[:_SHOWN]))
        if bad:
            reasons = [BadRowsOf(*why, count, *examples[why]) for why, count in bad.most_common()]
            found = Quarantined.rows(file, path, reasons, good)
            if good:
                self.warnings.append(found)
            else:
                self.wrong(found)
        if good:
            self.warnings += [NothingRead.attribute(file, path, name, good) for name in sorted(empty)]
        elif not bad:
            self.warnings.append(NothingRead.rows(file, path))

    def pieces(self, task: Task) -> Iterator[RawRows | BadRows]:
        rows = 0
        for piece in parse_file(self.source, task):
            # The bad rows of a block come before its good ones and after them.
            if isinstance(piece, Counts) or (rows and not self.whole and isinstance(piece, RawRows)):
                return
            rows += len(piece.batch) if isinstance(piece, RawRows) else 0
            yield piece

    def expected(self, paths: list[str]) -> None:
        """Warn about each glob of ``expect`` that names no landed file."""
        dates = {found for path in paths if (found := path_fields(self.source, path).file_date) is not None}
        days = sorted({date + timedelta(days=n) for date in dates for n in _AROUND})
        names = LandedNames(paths)
        for at, glob in enumerate(self.source.expect):
            wanted = [expected_globs(self.source, day)[at] for day in days]
            if days and not any(map(names.has, wanted)):
                self.warnings.append(NamesNoFile.of(self.source.file, glob, at, len(paths)))
