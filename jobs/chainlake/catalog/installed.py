"""All patterns and models of an installation."""

from __future__ import annotations

from dataclasses import dataclass

from chainlake.catalog.models import LoadedModel, load_models
from chainlake.catalog.patterns import CompiledPattern, load_patterns
from chainlake.definitions.files import BrokenDefinition
from chainlake.definitions.source import Sources
from chainlake.lake.records.defined.definitions import Definition
from chainlake.paths import Home


@dataclass(frozen=True)
class Installed:
    """What ``dags/config/patterns`` and ``dags/config/models`` hold.

    Args:
        patterns: the usable patterns.
        models: the usable models.
        broken: files that cannot be used, by kind ("pattern", "model").
    """

    patterns: list[CompiledPattern]
    models: list[LoadedModel]
    broken: dict[str, list[BrokenDefinition]]

    @classmethod
    def load(cls, home: Home, sources: Sources) -> Installed:
        """Read and check every file.

        Args:
            home: the installation, which has the configuration.
            sources: all sources.
        """
        patterns, bad_patterns = load_patterns(home, sources)
        models, bad_models = load_models(home, sources)
        return cls(patterns, models, {"pattern": bad_patterns, "model": bad_models})

    @property
    def definitions(self) -> list[Definition]:
        """The definitions of each pattern, of its episodes or its ranking if it has one, and of each model."""
        found = [one for each in self.patterns for one in each.definitions]
        return [*found, *(one.definition for one in self.models)]
