"""Lint of a model's file: what is wrong, what is doubtful, and keys that no event has."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from chainlake.catalog.errors import DefinitionWarning, UnfitModel
from chainlake.catalog.models import load_one
from chainlake.cep.lint.observed import ObservedValues
from chainlake.cep.lint.report import Report
from chainlake.definitions.source import Source, Sources
from chainlake.definitions.yaml_lines import Section, load_section
from chainlake.errors import DefinitionError


def lint_model(file: Path, sources: Sources, observed_of: Callable[[Source], ObservedValues | None]) -> Report:
    """Check a model's or threshold monitor's file.

    Args:
        file: the file.
        sources: all sources.
        observed_of: gives the keys of a source's available events; ``None`` if there are no events.
    """
    try:
        model = load_one(file, sources)
    except DefinitionError as error:
        return Report((error,), (), None)
    warnings: list[DefinitionError] = [DefinitionWarning.of(one, file) for one in model.config.warnings]
    observed = observed_of(model.source)
    if observed is not None:
        warnings += _unobserved(load_section(file), model.source.key, model.config.all_keys, observed)
    return Report((), tuple(warnings), None)


def _unobserved(top: Section, key: str, named: tuple[str, ...], observed: ObservedValues) -> Iterator[DefinitionError]:
    """A warning at each place that names a key that no event has."""
    missing = set(named) - set(observed.keys)
    parts = {name: top.data[name] for name in ("nodes", "groups", "response", "features", "value") if name in top.data}
    for place in _places(parts, ()):
        value = str(top.typed(*place)).strip()
        # The last word of a place tells what a string means: names of nodes and columns are not keys.
        last = next((part for part in reversed(place) if isinstance(part, str)), "")
        if value in missing and last in ("nodes", "keys", "key", *_groups(place)):
            yield top.placed(UnfitModel.unobserved(observed.where, key, value, observed.keys), *place)


def _groups(place: tuple[str | int, ...]) -> tuple[str, ...]:
    """The name of the group whose nodes are listed at ``place``; none elsewhere."""
    return (str(place[1]),) if place[0] == "groups" else ()


def _places(value: Any, place: tuple[str | int, ...]) -> Iterator[tuple[str | int, ...]]:
    """The places of all scalars."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _places(item, (*place, name))
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from _places(item, (*place, at))
    else:
        yield place
