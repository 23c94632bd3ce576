"""The zone in which local times are shown beside UTC: the one requested, or else the source's."""

from __future__ import annotations

import argparse
from pathlib import Path
from zoneinfo import ZoneInfo, available_timezones

from chainlake.definitions.files import source_named
from chainlake.definitions.source import find_source
from chainlake.errors import ChainlakeError, UsageError
from chainlake.paths import Home
from chainlake.words import zone_hint

#: Zones that are UTC, for which local times are not shown.
_UTC = ("UTC", "Etc/UTC", "GMT", "Etc/GMT", "Zulu")


class UnknownZone(UsageError):
    """There is no time zone with a name."""

    zone: str

    @classmethod
    def of(cls, zone: str) -> UnknownZone:
        """For the name."""
        return cls(f"there is no time zone '{zone}'", key="--zone", hint=zone_hint(zone)).holding(zone=zone)


def add_zone_argument(parser: argparse.ArgumentParser, what: str = "also show local times in this zone") -> None:
    """Add --zone; ``what`` says what the zone is for."""
    parser.add_argument("--zone", metavar="ZONE", help=f"{what} (default: the source's)")


def shown_zone(home: Home, asked: str | None, source: str | None) -> ZoneInfo | None:
    """The zone of local times; ``None`` if it is UTC or not known.

    Args:
        home: the installation with the sources.
        asked: the value of ``--zone``.
        source: the events' source, if they have one.

    Raises:
        UsageError: there is no such zone.
    """
    zone = asked
    if zone is None and source is not None:
        try:
            zone = find_source(home, source).zone
        except ChainlakeError:
            # The source of a pattern that runs over files need not exist; code that needs it reports that.
            return None
    if zone is None or zone in _UTC:
        return None
    if zone not in available_timezones():
        raise UnknownZone.of(zone)
    return ZoneInfo(zone)


def source_of_table(home: Home, table: str) -> str | None:
    """The source from whose events a table is made; ``None`` if there are several, or it is not known."""
    schema, _, name = table.partition(".")
    if schema in ("raw", "events", "quarantine"):
        return name
    file: Path = home.config / "patterns" / f"{name.partition('/')[0]}.sase"
    return source_named(file) if schema in ("matches", "episodes", "ranked") else None
