"""What the name of a column says: our name for it, and its unit."""

from __future__ import annotations

import re
from collections.abc import Sequence

from chainlake.definitions.files import WORD
from chainlake.definitions.source_keys import FIXED

#: A unit at the end of a column's name: Speed (mph), Price [USD].
_UNIT = re.compile(r"\s*[(\[]\s*([^()\[\]]{1,20}?)\s*[)\]]$")
#: Our name of a place along a road, and names that such columns have.
PLACE = "position"
_PLACES = ("milepost", "mile_post", "postmile", "post_mile", "abs_pm", "pm", "mp", "chainage")


def unit_of(written: str) -> str:
    """The unit at the end of a column's name; empty if it has none."""
    found = _UNIT.search(written)
    return found[1] if found and _UNIT.sub("", written) else ""


def names_of(written: Sequence[str]) -> dict[str, str]:
    """Unique names that columns of a table can have, for the names in the file."""
    found: dict[str, str] = {}
    for text in written:
        plain = re.sub(r"\W+", "_", _UNIT.sub("", text) or text, flags=re.ASCII).strip("_").lower() or "column"
        plain = plain if plain[0].isalpha() else f"c_{plain}"
        plain = f"{plain}_" if plain in FIXED else PLACE if plain in _PLACES else plain[:90]
        name, number = plain, 2
        while name in found.values():
            name, number = f"{plain}_{number}", number + 1
        assert WORD.match(name)
        found[text] = name
    return found
