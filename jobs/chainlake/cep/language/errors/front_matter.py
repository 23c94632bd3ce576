"""What is wrong with the front matter of a pattern."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from chainlake.cep.language.errors.placed import PatternError
from chainlake.cep.language.source_text import At, SourceText
from chainlake.words import nearest


@dataclass(frozen=True)
class KeyPlace:
    """A key of a front matter.

    Args:
        source: the pattern's text.
        at: where the key is.
        key: the key, or None for the front matter as a whole.
    """

    source: SourceText
    at: At
    key: str | None = None


class FrontMatterError(PatternError):
    """A key of the front matter is wrong."""

    @classmethod
    def _of(cls, place: KeyPlace, what: str, hint: str | None = None) -> FrontMatterError:
        return cls._at(place.source, place.at, what, hint, key=place.key)


class WrongForm(FrontMatterError):
    """The front matter, or the value of a key, does not have the form that it must have."""

    @classmethod
    def no_end(cls, place: KeyPlace) -> FrontMatterError:
        """The line that ends the front matter is missing."""
        return cls._of(place, "the front matter has no end", "Close it with a line '---'.")

    @classmethod
    def no_keys(cls, place: KeyPlace) -> FrontMatterError:
        """The front matter is YAML, but not a map."""
        return cls._of(place, "the front matter must be a list of 'key: value' lines")

    @classmethod
    def no_text(cls, place: KeyPlace) -> FrontMatterError:
        """The value is not a string."""
        return cls._of(place, f"{place.key} must be a string")

    @classmethod
    def no_map(cls, place: KeyPlace) -> FrontMatterError:
        """The value is not a map of names."""
        return cls._of(place, f"{place.key} must be a map of names", "Write one 'name: value' per line, indented.")

    @classmethod
    def no_list(cls, place: KeyPlace, name: str) -> FrontMatterError:
        """A set is not a list."""
        return cls._of(place, f"{name} must be a list of strings or numbers")

    @classmethod
    def no_attributes(cls, place: KeyPlace) -> FrontMatterError:
        """The output is not a list of strings."""
        return cls._of(place, "output must be a list of attributes", "Write [price, a.volume].")

    @classmethod
    def no_rate(cls, place: KeyPlace, name: str) -> FrontMatterError:
        """The rate of a name is not a number of events."""
        return cls._of(place, f"the rate of {name} must be a number that is not negative")

    @classmethod
    def no_limit(cls, place: KeyPlace, name: str) -> FrontMatterError:
        """A limit is not a whole number of at least 1."""
        return cls._of(place, f"{name} must be a whole number of at least 1")

    @classmethod
    def high_limit(cls, place: KeyPlace) -> FrontMatterError:
        """A limit allows more sets than could ever be made."""
        return cls._of(place, "kleene_members can be at most 40", "40 members make 10^12 subsets.")

    @classmethod
    def no_day(cls, place: KeyPlace, typed: str | None) -> FrontMatterError:
        """The value is not a day; ``typed``: what is written there."""
        return cls._of(place, f"{place.key} must be a day, not {typed}", "Write 'start: 2025-10-01'.")

    @classmethod
    def no_span(cls, place: KeyPlace, limit: str, value: object) -> FrontMatterError:
        """A limit is not a duration above 0."""
        return cls._of(place, f"{limit} must be a duration above 0, not {value}", "Write 'longest: 12 h'.")


class UnknownKey(FrontMatterError):
    """There is no such key, or no such limit."""

    @classmethod
    def of(cls, place: KeyPlace, known: Iterable[object]) -> FrontMatterError:
        """There is no such key."""
        return cls._of(place, f"unknown key {place.key} in the front matter", nearest(str(place.key), known))

    @classmethod
    def limit(cls, place: KeyPlace, name: str, known: Iterable[object]) -> FrontMatterError:
        """There is no such limit."""
        return cls._of(place, f"unknown limit {name}", nearest(name, known))


class UnclearValue(FrontMatterError):
    """A parameter, or an item of a set, cannot be used as it is written."""

    @classmethod
    def both(cls, place: KeyPlace, name: str) -> FrontMatterError:
        """A parameter and a set have one name."""
        return cls._of(place, f"{name} is both a parameter and a set")

    @classmethod
    def no_value(cls, place: KeyPlace, name: str, problem: str) -> FrontMatterError:
        """The value is of no kind that conditions know; ``problem``: what is wrong, in words that follow the name."""
        return cls._of(place, f"{name} {problem}", "Put null or ~ in quotes if it is a string.")

    @classmethod
    def infinite(cls, place: KeyPlace, name: str, typed: object) -> FrontMatterError:
        """The value reads as an infinite number or NaN."""
        return cls._of(place, f"{name} is not a finite number", f"Write '{typed}' in quotes if it is a string.")

    @classmethod
    def ambiguous(cls, place: KeyPlace, name: str, typed: object, like: str) -> FrontMatterError:
        """The value reads both as a string and as ``like``: "a number", or true or false."""
        otherwise = "else true or false." if like != "a number" else "else a number such as 7, 0.5 or -20."
        hint = f"Write '{typed}' in quotes if it is a string, {otherwise}"
        return cls._of(place, f"{name}: {typed} can be read as {like} and as a string", hint)

    @classmethod
    def two_kinds(cls, place: KeyPlace, name: str, kinds: tuple[str, str], typed: tuple[str, str]) -> FrontMatterError:
        """A set holds items of two kinds; ``typed``: one of each."""
        what = f"{name} holds {' and '.join(kinds)}: {', '.join(typed)}"
        return cls._of(place, what, "The values of one attribute are of one kind; quote those that are strings.")
