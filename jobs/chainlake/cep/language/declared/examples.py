"""``tests`` in a pattern's front matter: events, and the matches that must be found in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from chainlake.cep.language.source_text import At
from chainlake.definitions.yaml_lines import Place, Spot
from chainlake.words import nearest

_KEYS = ("name", "events", "matches")
#: An error at a place of the front matter: what is wrong, and what to do.
Wrong = Callable[[Place, str, str | None], Exception]


@dataclass(frozen=True)
class Example:
    """One test of a pattern.

    Args:
        name: what it is called.
        events: a CSV text with a header, or the path of a file beside the pattern.
        matches: of each match that must be found, its events' ids (a tuple of a repeated name) and its measures.
        at: where it stands, 1-based.
    """

    name: str
    events: str
    matches: tuple[Mapping[str, str | tuple[str, ...]], ...]
    at: At

    @property
    def inline(self) -> bool:
        """Whether ``events`` is the text itself."""
        return "\n" in self.events


def read_examples(value: Any, spots: Mapping[Place, Spot], wrong: Wrong) -> tuple[Example, ...]:
    """The tests that the front matter lists.

    Args:
        value: of the key ``tests``.
        spots: of the front matter, with lines of the file.
        wrong: makes an error.

    Raises:
        DefinitionError: not of this form.
    """
    if not isinstance(value, list) or not value:
        raise wrong(("tests",), "tests must be a list", "Write '- events: FILE.csv' and below it 'matches: [{a: 1}]'.")
    return tuple(_example(item, ("tests", number), spots, wrong) for number, item in enumerate(value))


def _example(item: Any, place: Place, spots: Mapping[Place, Spot], wrong: Wrong) -> Example:
    if not isinstance(item, dict):
        raise wrong(place, "a test is a map of name, events and matches", None)
    for key in item:
        if key not in _KEYS:
            raise wrong((*place, key), f"a test has no key {key}", nearest(key, _KEYS))
    for key in _KEYS[1:]:
        if item.get(key) is None:
            raise wrong(place, f"the test has no {key}", None)
    events, matches = item["events"], item["matches"]
    if not isinstance(events, str) or not events.strip():
        hint = "Write 'events: |' and the rows of a CSV below it, or the name of a file beside the pattern."
        raise wrong((*place, "events"), "events must be a text", hint)
    if not isinstance(matches, list):
        raise wrong((*place, "matches"), "matches must be a list", "Write [] if nothing must be found.")
    found = tuple(_match(one, (*place, "matches", at), spots, wrong) for at, one in enumerate(matches))
    number = place[-1]
    name = str(spots[*place, "name"].text) if item.get("name") is not None else f"{int(number) + 1}"
    spot = spots[place]
    return Example(name, events, found, (spot.line, spot.column))


def _match(item: Any, place: Place, spots: Mapping[Place, Spot], wrong: Wrong) -> dict[str, str | tuple[str, ...]]:
    if not isinstance(item, dict) or not item:
        raise wrong(place, "a match is a map of names to ids", "Write {a: 1, b: 2}.")
    found: dict[str, str | tuple[str, ...]] = {}
    for name, value in item.items():
        if isinstance(value, list):
            found[name] = tuple(str(spots[*place, name, at].text) for at in range(len(value)))
        elif isinstance(value, dict) or value is None:
            raise wrong((*place, name), f"{name} must be an id, or a list of ids", None)
        else:
            found[name] = str(spots[*place, name].text)
    return found
