"""What is wrong with the declaration of a function or of a test."""

from __future__ import annotations

from collections.abc import Iterable

from chainlake.cep.language.errors.front_matter import FrontMatterError, KeyPlace
from chainlake.words import nearest


class WrongDeclaration(FrontMatterError):
    """An entry under ``functions`` does not declare a function."""

    @classmethod
    def no_map(cls, place: KeyPlace) -> FrontMatterError:
        """``functions`` is not a map of names."""
        hint = "Write one 'name: {call: MODULE:FUNCTION}' per line, indented."
        return cls._of(place, "functions must be a map of names", hint)

    @classmethod
    def no_name(cls, place: KeyPlace, name: object) -> FrontMatterError:
        """No function can have this name."""
        hint = "A name has letters A to Z, digits and _, and begins with a letter."
        return cls._of(place, f"{name} cannot be the name of a function", hint)

    @classmethod
    def twice(cls, place: KeyPlace, name: str) -> FrontMatterError:
        """Two entries have one name."""
        return cls._of(place, f"{name} is declared twice", "Upper and lower case do not count in names of functions.")

    @classmethod
    def no_entry(cls, place: KeyPlace, name: str) -> FrontMatterError:
        """An entry is not a map."""
        return cls._of(place, f"{name} must say what it calls", f"Write '{name}: {{call: MODULE:FUNCTION}}'.")

    @classmethod
    def no_call(cls, place: KeyPlace, name: str) -> FrontMatterError:
        """An entry does not have the key ``call``."""
        return cls._of(place, f"{name} must say what it calls", "Write 'call: MODULE:FUNCTION'.")

    @classmethod
    def unknown_key(cls, place: KeyPlace, name: str, key: object, known: Iterable[str]) -> FrontMatterError:
        """Entries do not have this key."""
        return cls._of(place, f"unknown key {key} in the declaration of {name}", nearest(str(key), known))

    @classmethod
    def impure(cls, place: KeyPlace, name: str) -> FrontMatterError:
        """The function is declared to depend on more than its arguments."""
        hint = "Its result may depend on its values alone, or a rerun would publish other rows: write pure: true."
        return cls._of(place, f"{name} must be pure", hint)

    @classmethod
    def no_function(cls, place: KeyPlace, name: str, value: object) -> FrontMatterError:
        """``call`` does not have the form MODULE:FUNCTION."""
        hint = "Write 'call: text:similar' for the function similar of dags/config/functions/text.py."
        return cls._of(place, f"{name} calls {value}, which does not name a function in a module", hint)

    @classmethod
    def no_cost(cls, place: KeyPlace, name: str, value: object) -> FrontMatterError:
        """``cost`` is not a cost."""
        hint = "Write cheap, heavy, or how many milliseconds 1,000 pairs take."
        return cls._of(place, f"{value} is not a valid cost for {name}", hint)

    @classmethod
    def no_truth(cls, place: KeyPlace, name: str, key: str, value: object) -> FrontMatterError:
        """The value under ``key`` is neither true nor false."""
        return cls._of(place, f"{key} of {name} must be true or false, not {value}")

    @classmethod
    def no_result(cls, place: KeyPlace, name: str, value: object) -> FrontMatterError:
        """``result`` is a kind that no function gives."""
        return cls._of(place, f"{name} cannot return {value}", "Write result: number, or result: bool.")

    @classmethod
    def no_span(cls, place: KeyPlace, name: str, value: object, usual: float) -> FrontMatterError:
        """``longest`` is not a duration above 0; ``usual``: the default, in seconds."""
        hint = f"Write 'longest: {usual:.0f} s': the time that a batch of pairs may take."
        return cls._of(place, f"longest of {name} must be a duration above 0, not {value}", hint)


class WrongExample(FrontMatterError):
    """An entry under ``tests`` is not a test."""

    @classmethod
    def no_list(cls, place: KeyPlace) -> FrontMatterError:
        """There is no list of tests."""
        return cls._of(place, "tests must be a list", "Write '- events: FILE.csv' and below it 'matches: [{a: 1}]'.")

    @classmethod
    def no_map(cls, place: KeyPlace) -> FrontMatterError:
        """A test is not a map."""
        return cls._of(place, "a test must be a map with name, events and matches")

    @classmethod
    def unknown_key(cls, place: KeyPlace, key: object, known: Iterable[str]) -> FrontMatterError:
        """Tests do not have this key."""
        return cls._of(place, f"unknown key {key} in a test", nearest(str(key), known))

    @classmethod
    def missing(cls, place: KeyPlace, key: str) -> FrontMatterError:
        """A test lacks a key that every test must have."""
        return cls._of(place, f"the test lacks {key}")

    @classmethod
    def no_events(cls, place: KeyPlace) -> FrontMatterError:
        """The events are not a string."""
        hint = "Write 'events: |' and the rows of a CSV below it, or the name of a file beside the pattern."
        return cls._of(place, "events must be a string", hint)

    @classmethod
    def no_matches(cls, place: KeyPlace) -> FrontMatterError:
        """There is no list of matches."""
        return cls._of(place, "matches must be a list", "Write [] if nothing must be found.")

    @classmethod
    def no_match(cls, place: KeyPlace) -> FrontMatterError:
        """A match is not a map."""
        return cls._of(place, "a match must be a map of names to ids", "Write {a: 1, b: 2}.")

    @classmethod
    def no_id(cls, place: KeyPlace, name: str) -> FrontMatterError:
        """The value of a name is not an id."""
        return cls._of(place, f"{name} must be an id, or a list of ids")
