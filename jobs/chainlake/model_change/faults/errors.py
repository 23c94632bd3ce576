"""What can be wrong in the file of a model that looks for faults."""

from __future__ import annotations

from chainlake.errors import DefinitionError
from chainlake.words import counted


class WrongFaults(DefinitionError):
    """Machines, windows or limits with which no fault could be found."""

    @classmethod
    def few(cls, machines: int, least: int) -> WrongFaults:
        """There are too few machines for a majority from which one could differ."""
        return cls(f"{counted(machines, 'machine')} cannot be compared", hint=f"Give {least} or more of one kind.")

    @classmethod
    def alpha(cls, alpha: float) -> WrongFaults:
        """A probability of 1 or more."""
        return cls(f"{alpha:g} is not below 1", hint="Allowed: numbers above 0 and below 1.")

    @classmethod
    def no_window(cls, value: object, forms: str) -> WrongFaults:
        """The window has none of the forms."""
        return cls(f"'{value}' is not a window", hint=f"Allowed: {forms}.")

    @classmethod
    def long_sketch(cls, dimensions: int, counters: int) -> WrongFaults:
        """A sketch with no fewer dimensions than there are counters."""
        what = f"a sketch of {dimensions} dimensions is no shorter than the {counters} counters"
        return cls(what, hint=f"Allowed: below {counters}; or leave 'sketch' out.")

    @classmethod
    def limits(cls) -> WrongFaults:
        """Limits of the variance that do not have the reference's between them."""
        what = "the reference's variance has to lie between the limits"
        return cls(what, hint="Give low below 1 and high above 1: shares of the variance.")

    @classmethod
    def no_sliding(cls) -> WrongFaults:
        """Limits of the variance without the sliding window that they need."""
        hint = "Give window: {sliding: ROUNDS}, or leave 'normalise' out."
        return cls("zones of the variance need a sliding window", hint=hint)
