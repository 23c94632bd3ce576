"""Files of a source on the command line: parsed and resolved as by ingest, without Spark and without a lake."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from chainlake.cli.errors import UnfitFiles
from chainlake.words import counted

if TYPE_CHECKING:
    import pyarrow as pa

    from chainlake.definitions.source import Source
    from chainlake.ingest.landing.discovery import Landed

#: Outcomes of files whose rows can be used; of a damaged file, the rows before the damage.
_USABLE = ("ok", "empty", "damaged", "bad_path_revision")


def read_landed(source_name: str, files: Sequence[Path]) -> pa.Table:
    """The events in files of a source, by its rules of identity, conflicts and replacement.

    The id of an event is the ``FILE:LINE`` of its row (``FILE:LINE:ENTRY`` where a line holds several).
    What is left out (rows that ingest would quarantine, duplicates, conflicts, superseded rows) is counted on stderr.

    Args:
        source_name: name of the source.
        files: landed files; archives are opened. A file's place in the order is its path in the landing folder, or its
            name if it is elsewhere.

    Raises:
        DefinitionError: the source's file is wrong.
        InputError: a file does not exist, or does not fit the source.
        UsageError: there is no such source.
    """
    import pyarrow as pa

    from chainlake.cep.plain_files.read import regular_file
    from chainlake.definitions.source import asked_source
    from chainlake.ingest.events.local import in_order, resolve_local
    from chainlake.paths import Home

    home = Home.from_env()
    source = asked_source(home, source_name)
    for file in files:
        regular_file(file)
    relative = _relative(Path(home.landed(source.name)), files)
    landed = in_order([one for file, name in relative.items() for one in _contents(source, file, name)])
    bad: Counter[str] = Counter()
    rows = [_rows(source, one, bad) for one in landed]
    if bad:
        reasons = ", ".join(f"{count} {reason}" for reason, count in sorted(bad.items()))
        print(
            f"{counted(bad.total(), 'row')} cannot be read as {source_name}; left out: {reasons}",
            file=sys.stderr,
        )
    if not rows:
        return pa.table({})
    resolved = resolve_local(source, landed, rows)
    left_out = [
        counted(number, noun)
        for number, noun in (
            (resolved.duplicates, "duplicate"),
            (resolved.conflicts, "conflict"),
            (resolved.superseded, "superseded row"),
        )
        if number
    ]
    if left_out:
        print(f"left out by the rules of {source_name}: {', '.join(left_out)}", file=sys.stderr)
    return resolved.events.drop_columns(["line", "entry"])


def _relative(landing: Path, files: Sequence[Path]) -> dict[Path, str]:
    """The path of each file as ingest would see it; a file that is named twice counts once."""
    found: dict[Path, str] = {}
    for file in files:
        place = file.resolve()
        inside = place.is_relative_to(landing.resolve())
        found[place] = place.relative_to(landing.resolve()).as_posix() if inside else place.name
    # Two folders may hold files with the same name, which must not be taken for the same path.
    names = Counter(found.values())
    return {place: name if names[name] == 1 else place.as_posix().lstrip("/") for place, name in found.items()}


def _contents(source: Source, file: Path, relative: str) -> list[Landed]:
    from chainlake.ingest.landing.container import NotReadable
    from chainlake.ingest.landing.discovery import look_into

    try:
        return look_into(source, file, relative)
    except (NotReadable, OSError) as error:
        raise UnfitFiles.not_now(file, error) from error


def _rows(source: Source, file: Landed, bad: Counter[str]) -> pa.Table:
    """The good rows of a file with their ids; ``bad`` counts the reasons of the other rows."""
    import pyarrow as pa

    from chainlake.ingest.rows.parse import read_file
    from chainlake.ingest.rows.parsed import Task

    whole = read_file(source, Task.of(file, file.path))
    bad.update(whole.bad["reason"].to_pylist())
    if whole.counts.outcome not in _USABLE:
        why = whole.counts.outcome, whole.counts.reason
        place = file.file if file.member is None else f"{file.file}!{file.member}"
        raise UnfitFiles.of_source(place, *why, source.name, source.file)
    table = whole.rows
    lines, entries = table["line"].to_pylist(), table["entry"].to_pylist()
    several = len(set(lines)) < len(lines)
    ids = [
        f"{file.path}:{line}:{entry}" if several else f"{file.path}:{line}"
        for line, entry in zip(lines, entries, strict=True)
    ]
    kept = ["line", "entry", "type", source.key, "ts", *(attribute.name for attribute in source.attributes)]
    return table.select(kept).add_column(0, "event_id", pa.array(ids, pa.string()))
