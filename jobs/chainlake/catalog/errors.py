"""Why a pattern's file, whose text is right, is none for this installation."""

from __future__ import annotations

from pathlib import Path

from chainlake.errors import DefinitionError


class UnfitPattern(DefinitionError):
    """A pattern that a lake cannot have."""

    @classmethod
    def reserved(cls, file: Path) -> UnfitPattern:
        """Its name is that of the view over all patterns."""
        return cls(
            "a pattern cannot be named 'all'", file=file, hint="matches.all is the view over all patterns; rename it."
        )

    @classmethod
    def no_source(cls, file: Path) -> UnfitPattern:
        """It names no source."""
        return cls(
            "the front matter names no source, so no step knows which events to search",
            file=file,
            key="source",
            hint="Add a line 'source: NAME' between the two --- lines.",
        )


class Doubtful(DefinitionError):
    """A definition that is right and may not be what was meant: a warning."""

    @classmethod
    def of(cls, warning: str, file: Path) -> Doubtful:
        """For what a model's file warns of."""
        return cls(warning, file=file)
