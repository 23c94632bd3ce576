"""Why files cannot be generated as they were asked for."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date

from chainlake.errors import UsageError


class UnfitRecipe(UsageError):
    """What was asked for does not go together, or is too much or too little."""

    @classmethod
    def source(cls, name: str, known: Iterable[str]) -> UnfitRecipe:
        """There are no files like those of this source."""
        return cls(f"there is no source '{name}' to generate", hint=f"Known: {', '.join(known)}.")

    @classmethod
    def ticks(cls) -> UnfitRecipe:
        """Ticks of a source that has none."""
        return cls("only stock has ticks")

    @classmethod
    def too_many_patterns(cls, most: int, source: str) -> UnfitRecipe:
        """More planted matches than a day has room for."""
        return cls(f"a day has room for at most {most} matches of each pattern of {source}")

    @classmethod
    def counts(cls) -> UnfitRecipe:
        """A number that is too small by itself."""
        return cls("days and events per day must be at least 1, seed, dirt, patterns and changes at least 0")

    @classmethod
    def days(cls, earliest: date, latest: date) -> UnfitRecipe:
        """Days that ingest does not take."""
        return cls(f"the days must lie between {earliest} and {latest}, as ingest requires")

    @classmethod
    def too_many_events(cls, events: int, most: int) -> UnfitRecipe:
        """More events than a day's file has."""
        return cls(f"{events} events per day are more than {most}", hint="Write more days instead.")

    @classmethod
    def too_few_events(cls, least: int) -> UnfitRecipe:
        """Too few to plant something in."""
        return cls(
            f"patterns and changes can be planted from {least} events per day on",
            hint="Use --patterns 0 --changes 0 for fewer events.",
        )

    @classmethod
    def too_dirty(cls, dirt: int) -> UnfitRecipe:
        """More dirty rows than there is room for."""
        return cls(f"{dirt} dirty rows of each kind need at least {dirt * 16} events per day")
