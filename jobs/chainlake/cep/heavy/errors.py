"""What stops a search whose conditions call a function of pairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chainlake.cep.language.declared.function import Heavy
from chainlake.errors import DefinitionError

#: The most characters of a value in a message, and of what a function raised.
_MOST, _MOST_SAID = 60, 1_000


class FunctionFailed(DefinitionError):
    """A function did not give what it must; the message shows an example of its arguments."""

    @classmethod
    def _of(cls, function: Heavy, what: str, hint: str) -> FunctionFailed:
        place = function.place
        return cls(
            f"{place.pattern}: {what}", file=place.file, line=place.line, column=place.column, excerpt=place.excerpt,
            key=f"functions.{function.name}", hint=hint,
        )  # fmt: skip

    @classmethod
    def without_code(cls, function: Heavy) -> FunctionFailed:
        """The function is declared, but its code was not given."""
        hint = (
            "The library takes it as match(…, functions={'NAME': FUNCTION}); the verbs look in dags/config/functions/."
        )
        return cls._of(function, f"{function.name} is declared, but its code was not found", hint)

    @classmethod
    def raised(cls, function: Heavy, values: Sequence[Any], error: BaseException) -> FunctionFailed:
        """The function raised an error."""
        said = " ".join(_text_of(error).split())
        said = said if len(said) <= _MOST_SAID else f"{said[:_MOST_SAID]}…"
        hint = "Call it in Python with arrays of these values, and fix it."
        return cls._of(function, f"{called(function, values)} raised {said}", hint)

    @classmethod
    def no_column(cls, function: Heavy, values: Sequence[Any], gave: str, rows: int) -> FunctionFailed:
        """The function did not return an array with one value per pair."""
        what = f"{function.name} was called with {rows} pairs, such as {called(function, values)}, and returned {gave}"
        return cls._of(function, what, "It takes columns and has to return one array with a value for each row.")

    @classmethod
    def wrong_type(cls, function: Heavy, values: Sequence[Any], dtype: str) -> FunctionFailed:
        """The function returned values of another kind."""
        wanted = "numbers" if function.result == "number" else "true or false"
        what = f"{called(function, values)} returned values of type {dtype}, but {wanted} are expected"
        return cls._of(function, what, "The declaration says which: result: number, or result: bool.")

    @classmethod
    def unknown(cls, function: Heavy, values: Sequence[Any]) -> FunctionFailed:
        """The function returned no value for a pair whose arguments are all known."""
        hint = (
            "It is not called for missing values, so it must return a value for every pair; choose one that means none."
        )
        return cls._of(function, f"{called(function, values)} returned no value (NaN or null)", hint)

    @classmethod
    def too_slow(cls, function: Heavy, values: Sequence[Any], rows: int, seconds: float, done: bool) -> FunctionFailed:
        """A batch took too long, or was given up."""
        took = f"took {seconds:.1f} s" if done else f"was not done after {seconds:.1f} s"
        what = (
            f"{function.name} {took} for {rows} pairs, such as {called(function, values)}; "
            f"a batch may take {function.longest:g} s"
        )
        hint = "Add cheaper conditions, make it faster, or allow more time with 'longest: 5 min'."
        return cls._of(function, what, hint)


def called(function: Heavy, values: Sequence[Any]) -> str:
    """A call as a person would write it."""
    return f"{function.name}({', '.join(map(_shown, values))})"


def _shown(value: Any) -> str:
    plain = value.item() if hasattr(value, "item") and getattr(value, "ndim", 0) == 0 else value
    text = plain.isoformat(sep=" ") if hasattr(plain, "isoformat") else repr(plain)
    return text if len(text) <= _MOST else f"{text[:_MOST]}…"


def _text_of(error: BaseException) -> str:
    """The class and the text of an error of users' code, either of which may raise anything itself."""
    try:
        name = type(error).__name__
    except BaseException:  # what it raises says nothing about the pair
        name = "an error without a name"
    try:
        return f"{name}: {error}"
    except BaseException as other:  # even an exit, which would end the process
        return f"{name}: (its text raises {type(other).__name__})"
