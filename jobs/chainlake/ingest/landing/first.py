"""What has landed for a source of which no day is ingested yet, and the ingest that takes it."""

from __future__ import annotations

from datetime import timedelta

from chainlake.definitions.source import Source
from chainlake.ingest.landing.discovery import untaken
from chainlake.ingest.landing.outcomes import days_of, nothing_landed
from chainlake.ingest.landing.walk import walk
from chainlake.ingest.path_fields import path_fields
from chainlake.paths import Home
from chainlake.words import counted

_ONE = timedelta(days=1)


def first_ingest(home: Home, source: Source) -> tuple[str, bool]:
    """What there is to ingest of a source of which no day is ingested.

    Args:
        home: the installation.
        source: the source.

    Returns:
        a sentence that says what has landed and what to do next, and whether an ingest would take some of it.
    """
    begun = f"no day of {source.name} is ingested yet"
    if (nothing := nothing_landed(home, source)) is not None:
        return f"{begun}: {nothing}", False
    walked = walk(home.landed(source.name), follow_links=source.follow_links)
    left = set(untaken(home, source, ()))
    paths = [entry.relative for entry in walked.entries if entry.stat is not None and entry.relative not in left]
    if not paths:
        globs = ", ".join(dict.fromkeys(one.glob for one in source.formats if one.glob))
        many = counted(len(walked.entries) + len(walked.waiting), "file")
        return f"{begun}: of {many} that landed, none can be read under a name of its formats ({globs})", False
    files = "1 file has" if len(paths) == 1 else f"{len(paths)} files have"
    call = f"chainlake ingest {source.name} {_span(source, paths)}"
    return f"{begun}: {files} landed; '{call}' takes {'it' if len(paths) == 1 else 'them'}", True


def _span(source: Source, paths: list[str]) -> str:
    """The days that the names of the files tell, as FROM and TO of a command; these two words if they tell none."""
    dated = [(date, path) for path in paths if (date := path_fields(source, path).file_date) is not None]
    if not dated:
        return "FROM TO"
    first, last = (days_of(source, path, date) for date, path in (min(dated), max(dated)))
    return f"{min(first)} {max(last) + _ONE}"
