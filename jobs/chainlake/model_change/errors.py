"""Input that a monitor cannot work with."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime

from chainlake.errors import InputError, UsageError

_TIMES = "Give UTC timestamps, or whole microseconds since 1970."


class UnfitEvents(InputError):
    """Events lack something that a model needs."""

    @classmethod
    def no_column(cls, name: str, there: Sequence[str]) -> UnfitEvents:
        """A column is missing."""
        return cls(f"the events have no column '{name}'", key=name, hint=f"They have {list(there)}.")

    @classmethod
    def no_number(cls, name: str, error: Exception) -> UnfitEvents:
        """A column holds something other than numbers."""
        return cls(f"the column '{name}' is not a number: {error}", key=name)

    @classmethod
    def no_table(cls, error: Exception) -> UnfitEvents:
        """The rows do not make one table."""
        return cls(f"the events do not make a table: {error}", hint="Give every column values of one type in all rows.")

    @classmethod
    def without_time(cls, row: int, missing: int, total: int) -> UnfitEvents:
        """Some events have no time; ``row`` is the first of them, counted from 1."""
        return cls(
            f"row {row} of the events has no 'ts'",
            key="ts",
            hint=f"Rows count from 1; {missing} of {total} have none. Give each a time, or drop it.",
        )

    @classmethod
    def no_time(cls, kind: object) -> UnfitEvents:
        """The column ``ts`` is not of a type that can hold times."""
        return cls(f"'ts' is of type {kind}", key="ts", hint=_TIMES)

    @classmethod
    def parted_time(cls, row: int, value: float) -> UnfitEvents:
        """The time of a row (counted from 1) is not a whole number of microseconds, or not a number at all."""
        what = f"the 'ts' of row {row}, {value}, is not a whole number of microseconds"
        return cls(what, key="ts", hint=_TIMES)

    @classmethod
    def uncounted_time(cls, error: Exception) -> UnfitEvents:
        """A time is too far off to be counted in microseconds."""
        return cls(f"a 'ts' cannot be counted in microseconds: {error}", key="ts", hint=_TIMES)


class OtherState(InputError):
    """A monitor was told to continue from the state of another definition."""

    model: str

    @classmethod
    def of(cls, model: str) -> OtherState:
        """For the model that should continue."""
        return cls(
            f"the state to continue from does not belong to this definition of {model}",
            key="after",
            hint="Pass the result of the same model, or leave out 'after' and begin again at the model's start.",
        ).holding(model=model)


class EndsBefore(UsageError):
    """A monitor was told to end before it begins."""

    @classmethod
    def of(cls, end: date, first: date) -> EndsBefore:
        """For the end that was given, and the day at which the monitor continues."""
        return cls(f"until {end} is before {first}, where the monitor continues")


class Diverged(InputError):
    """Learners whose weights have left the range of doubles."""

    @classmethod
    def at(cls, model: str, ts: datetime, file: str | None) -> Diverged:
        """For the model, the round and its file."""
        return cls(
            f"the weights of a learner of {model} are no longer numbers from round {ts:%Y-%m-%dT%H:%M:%SZ} on",
            file=file,
            key="learning_rate",
            hint="Give a smaller learning_rate, or features of about the size 1.",
        )


class UnsafeZones(InputError):
    """The average of the zones does not lie in the region, so silence would prove nothing."""

    @classmethod
    def of(cls, model: str, file: str | None) -> UnsafeZones:
        """For the monitor and its file."""
        return cls(
            f"the zones designed for {model} could let the mean leave the region unnoticed; they are not used",
            file=file,
            key="design",
            hint="Give design: {method: multipliers}, or leave 'design' out, so that every zone is the region.",
        )
