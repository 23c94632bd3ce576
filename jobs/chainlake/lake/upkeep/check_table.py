"""Whether the files of a table are what its log says, and who else has written to it; no row is read here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from chainlake.lake.delta.damaged import in_the_way, no_folder
from chainlake.lake.delta.log import Commit, Problem, TableLog
from chainlake.lake.upkeep.contents import Contents, Unreadable
from chainlake.lake.upkeep.findings import Finding, OpsLog, Signature, TableFile, WholeTable
from chainlake.paths import Home

#: Schemas whose rows are compared with what was recorded when they were written, so that it does not matter who wrote
#: them.
COMPARED = ("events", "matches", "episodes", "ranked", "models", "alerts")


@dataclass
class Inspected:
    """A table that was inspected.

    Args:
        schema: its schema.
        name: its name under the schema.
        contents: its rows; ``None`` if it is gone or cannot be read.
        findings: what was found.
        strangers: commits of others that changed rows and that nobody has looked through.
    """

    schema: str
    name: str
    contents: Contents | None = None
    findings: list[Finding] = field(default_factory=list)
    strangers: list[Commit] = field(default_factory=list)

    @property
    def path_name(self) -> str:
        """``schema.name``."""
        return f"{self.schema}.{self.name}"

    def note_bad_files(self) -> None:
        """Turn the data files that proved damaged into findings."""
        if self.contents is None:
            return
        for bad in self.contents.bad:
            fix = OpsLog(self.name) if self.schema == "ops" else TableFile(self.schema, self.name, bad.path)
            self.findings.append(Finding(self.path_name, f"data file {bad.path}: {bad.what}", fixes=(fix,)))
        self.contents.bad.clear()


def inspect_table(home: Home, schema: str, name: str, *, strangers: bool = True) -> Inspected:
    """Look at a table's log and files.

    A table that is gone has no contents and no finding, unless a file is in the place of its folder.

    Args:
        home: the installation.
        schema: schema of the table.
        name: its name under the schema.
        strangers: also look for commits of others.
    """
    found = Inspected(schema, name)
    log = TableLog(home, schema, name)
    whole = OpsLog(name) if schema == "ops" else WholeTable(schema, name)
    if not log.exists:
        if place := in_the_way(home, schema, name):
            # A file in the place of a schema's folder does not belong to one table, so it is not set aside.
            fixes = (whole,) if place.startswith(home.table(schema, name)) else ()
            found.findings.append(Finding(found.path_name, no_folder(place), fixes=fixes))
        return found
    for problem in log.problems():
        fix = TableFile(schema, name, problem.file) if _can_be_spared(log, problem) else whole
        found.findings.append(Finding(found.path_name, f"{problem.file}: {problem.what}", fixes=(fix,)))
    try:
        found.contents = Contents(home, schema, name)
    except Unreadable as error:
        if not found.findings:
            found.findings.append(Finding(found.path_name, f"it cannot be opened: {error}", fixes=(whole,)))
        return found
    if strangers and (foreign := list(_foreign(found, log))):
        found.findings += foreign
        if by := log.reshaped():
            what = f"{by} was made by somebody else and changed its columns, types or partitions"
            found.findings.append(Finding(found.path_name, what, fixes=(whole,)))
            # None of its rows can be compared, and no step of ours writes to such a table.
            found.contents = None
            return found
    found.contents.look()
    return found


def _can_be_spared(log: TableLog, problem: Problem) -> bool:
    """Whether the table can be read without this log file: a checkpoint has its content, or it was the last entry."""
    if problem.version is None or "checkpoint" in problem.file:
        return True
    if any(version >= problem.version and log.readable_checkpoint(version) for version in log.checkpoints):
        return problem.version in log.versions
    return problem.version == log.last and problem.version > 0


def _foreign(found: Inspected, log: TableLog) -> Iterator[Finding]:
    """Findings on commits of others: one for each that changed rows, and one for the rest together."""
    harmless: list[Commit] = []
    # Entries that cannot be read are problems of the log, which are findings already.
    for commit in log.foreign().commits:
        if not commit.changes_rows:
            # Tables of older releases were made without a mark.
            harmless += [commit] if commit.version else []
            continue
        found.strangers.append(commit)
        signature = Signature(found.schema, found.name)
        if found.schema in COMPARED:
            what = f"{commit} was made by somebody else; its rows are compared with what was published"
            yield Finding(found.path_name, what, damage=False, fixes=(signature,))
        else:
            fixes = (OpsLog(found.name), signature) if found.schema == "ops" else (signature,)
            yield Finding(found.path_name, f"{commit} was made by somebody else and changed rows", fixes=fixes)
    if harmless:
        more = f" and {len(harmless) - 1} more" if len(harmless) > 1 else ""
        what = f"{harmless[-1]}{more} made by somebody else changed no row"
        yield Finding(found.path_name, what, damage=False)
