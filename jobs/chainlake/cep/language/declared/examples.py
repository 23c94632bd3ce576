"""``tests`` in a pattern's front matter: events, and the matches that must be found in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from chainlake.cep.language.declared.errors import WrongExample
from chainlake.cep.language.errors.front_matter import KeyPlace
from chainlake.cep.language.source_text import At
from chainlake.definitions.yaml_lines import Place, Spot

#: The keys of an entry of ``tests``.
KEYS = ("name", "events", "matches")
#: Gives the place in the text of a place in the front matter.
PlaceOf = Callable[[Place], KeyPlace]


@dataclass(frozen=True)
class Example:
    """One test of a pattern.

    Args:
        name: what it is called.
        events: a CSV text with a header, or the path of a file beside the pattern.
        matches: for each match that must be found, its events' ids (a tuple for a repeated name) and its measures.
        at: where the test is in the text, 1-based.
    """

    name: str
    events: str
    matches: tuple[Mapping[str, str | tuple[str, ...]], ...]
    at: At

    @property
    def inline(self) -> bool:
        """Whether ``events`` is the text itself."""
        return "\n" in self.events


def read_examples(value: Any, spots: Mapping[Place, Spot], place_of: PlaceOf) -> tuple[Example, ...]:
    """The tests that the front matter lists.

    Args:
        value: the value of the key ``tests``.
        spots: the spots of the front matter, with lines of the file.
        place_of: gives the places for errors.

    Raises:
        DefinitionError: they do not have this form.
    """
    if not isinstance(value, list) or not value:
        raise WrongExample.no_list(place_of(("tests",)))
    return tuple(_example(item, ("tests", number), spots, place_of) for number, item in enumerate(value))


def _example(item: Any, place: Place, spots: Mapping[Place, Spot], place_of: PlaceOf) -> Example:
    if not isinstance(item, dict):
        raise WrongExample.no_map(place_of(place))
    for key in item:
        if key not in KEYS:
            raise WrongExample.unknown_key(place_of((*place, key)), key, KEYS)
    for key in KEYS[1:]:
        if item.get(key) is None:
            raise WrongExample.missing(place_of(place), key)
    events, matches = item["events"], item["matches"]
    if not isinstance(events, str) or not events.strip():
        raise WrongExample.no_events(place_of((*place, "events")))
    if not isinstance(matches, list):
        raise WrongExample.no_matches(place_of((*place, "matches")))
    found = tuple(_match(one, (*place, "matches", at), spots, place_of) for at, one in enumerate(matches))
    number = place[-1]
    name = str(spots[*place, "name"].text) if item.get("name") is not None else f"{int(number) + 1}"
    spot = spots[place]
    return Example(name, events, found, (spot.line, spot.column))


def _match(item: Any, place: Place, spots: Mapping[Place, Spot], place_of: PlaceOf) -> dict[str, str | tuple[str, ...]]:
    if not isinstance(item, dict) or not item:
        raise WrongExample.no_match(place_of(place))
    found: dict[str, str | tuple[str, ...]] = {}
    for name, value in item.items():
        if isinstance(value, list):
            found[name] = tuple(str(spots[*place, name, at].text) for at in range(len(value)))
        elif isinstance(value, dict) or value is None:
            raise WrongExample.no_id(place_of((*place, name)), name)
        else:
            found[name] = str(spots[*place, name].text)
    return found
