"""Errors in the file of a source. The section that was read adds the place (``Section.placed``)."""

from __future__ import annotations

from collections.abc import Sequence

from chainlake.errors import DefinitionError


def _names(reserved: Sequence[str]) -> str:
    """A hint on valid names of columns."""
    return (
        f"Names consist of the letters a to z, digits and _, and begin with a letter; reserved: {', '.join(reserved)}."
    )


class WrongName(DefinitionError):
    """A name cannot be the name of a column."""

    @classmethod
    def key_column(cls, name: str, reserved: Sequence[str]) -> WrongName:
        """For the key column."""
        return cls(f"'{name}' cannot be the name of the key column", hint=_names(reserved))

    @classmethod
    def attribute(cls, name: str, reserved: Sequence[str]) -> WrongName:
        """For an attribute."""
        return cls(f"'{name}' cannot be the name of an attribute", hint=_names(reserved))

    @classmethod
    def derived(cls, name: str, reserved: Sequence[str]) -> WrongName:
        """For a derived column."""
        return cls(f"'{name}' cannot be the name of a derived column", hint=_names(reserved))


class WrongAttribute(DefinitionError):
    """An attribute or a derived column for which no event could have a value."""

    @classmethod
    def none(cls) -> WrongAttribute:
        """There are no attributes."""
        return cls("'attributes' is missing", hint="List at least one, e.g. value: {type: double}.")

    @classmethod
    def bounds_of_text(cls) -> WrongAttribute:
        """Bounds are given for something that is not a number."""
        return cls("min and max need a number", hint="Type double or long.")

    @classmethod
    def crossed_bounds(cls) -> WrongAttribute:
        """No value is within the bounds."""
        return cls("min is above max, so every row would be out of range")

    @classmethod
    def no_history(cls, name: str) -> WrongAttribute:
        """A derived column is not a history of an attribute."""
        hint = "E.g. last_prices: history(price, 5, 10 min): an attribute, how many values, the longest gap."
        return cls(f"derived column '{name}' is not understood", hint=hint)

    @classmethod
    def no_gap(cls, name: str) -> WrongAttribute:
        """The events of a history would have to be simultaneous."""
        return cls(f"'{name}' never has a value: no two events lie within a gap of 0")

    @classmethod
    def history_of(cls, of: str, kind: str) -> WrongAttribute:
        """The attribute of a history is not a number."""
        return cls(f"a history needs numbers, but {of} is a {kind}")


class WrongType(DefinitionError):
    """The type of events comes from nowhere or from two places, or no row can have it."""

    @classmethod
    def two_origins(cls) -> WrongType:
        """The type is a constant, but a format maps it to a column."""
        return cls("type is constant here, but a format maps it to a column")

    @classmethod
    def blank(cls) -> WrongType:
        """The constant is blank."""
        return cls("a type must not be blank", hint="E.g. Bar.")

    @classmethod
    def no_column(cls, form: str) -> WrongType:
        """A format does not say which column has the type."""
        return cls(f"no column for the type in format '{form}'", hint="E.g. type: {column: kind}.")

    @classmethod
    def empty_map(cls) -> WrongType:
        """The map of types is empty."""
        return cls("the map of types is empty", hint="E.g. {T: Trade}, or leave it out.")

    @classmethod
    def no_type(cls, text: str, kind: str) -> WrongType:
        """An entry of the map is blank or has white space around it."""
        return cls(f"'{text}: {kind}' is not a type, or has white space around it")

    @classmethod
    def never_met(cls, text: str, case: str | None) -> WrongType:
        """An entry of the map is in a case that the format changes."""
        return cls(f"'{text}' never occurs: the format makes all types {case} case")


class WrongPath(DefinitionError):
    """What is declared about the paths of files is meaningless or cannot be found in them."""

    @classmethod
    def no_expression(cls, error: Exception) -> WrongPath:
        """The expression is not a regular expression."""
        return cls(f"not a regular expression: {error}")

    @classmethod
    def no_field(cls) -> WrongPath:
        """The expression names no field."""
        hint = r"E.g. 'bars_(?P<date>\d{8})'; without fields leave 'path' out."
        return cls("no field of the path is named", hint=hint)

    @classmethod
    def unknown_field(cls, name: str, near: str) -> WrongPath:
        """A field is probably misspelt."""
        return cls(f"the field '{name}' has no meaning here, and '{near}' is not defined")

    @classmethod
    def date_format(cls, form: str, problem: str | None) -> WrongPath:
        """The format gives no date."""
        return cls(f"date format '{form}' {problem or 'does not give a date alone'}", hint="E.g. '%d%m%y'.")

    @classmethod
    def no_date(cls) -> WrongPath:
        """A date format is given, but the path has no date."""
        return cls("there is no date in the path", hint="Define (?P<date>…) in 'pattern'.")

    @classmethod
    def field(cls, what: str, hint: str | None) -> WrongPath:
        """A field cannot hold a value of its kind, for the reason that ``formats.path_groups`` found."""
        return cls(what, hint=hint)

    @classmethod
    def lacking_field(cls, name: str, field: str) -> WrongPath:
        """A value comes from a field that the path lacks."""
        what = f"'{name}' comes from the path field '{field}', which 'path' does not define"
        return cls(what, hint=f"Name it in the expression: (?P<{field}>…).")

    @classmethod
    def no_digits(cls, name: str, kind: str, field: str) -> WrongPath:
        """A number comes from a field without digits."""
        what = f"'{name}' is a {kind}, but the path field '{field}' cannot match digits"
        return cls(what, hint=rf"E.g. (?P<{field}>\d+), or type: string.")

    @classmethod
    def around_no_date(cls) -> WrongPath:
        """Times must be around the file's date, but files have no date."""
        hint = "Define (?P<date>…) in 'path', or write earliest and latest."
        return cls("'around' is measured from the date in the file's path, but the path has none", hint=hint)

    @classmethod
    def time_of_no_day(cls) -> WrongPath:
        """There are times of day, but no date."""
        hint = "Define (?P<date>…) in 'path', or read the date too: time: {column: [day, time], …}."
        return cls("times of day need a date in the path", hint=hint)

    @classmethod
    def names_no_day(cls, glob: str, what: str, hint: str | None) -> WrongPath:
        """An expected glob names no file of a day, for the reason that ``formats.globs`` found."""
        return cls(f"'{glob}' names no file of a day: it {what}", hint=hint)


class WrongScope(DefinitionError):
    """It cannot be determined what a file replaces."""

    @classmethod
    def none(cls, scope: Sequence[str]) -> WrongScope:
        """The scope is not one of those that exist."""
        return cls(f"{list(scope)} is not a scope", hint="[file_date] or [file_date, key].")

    @classmethod
    def no_date(cls) -> WrongScope:
        """The path has no date."""
        return cls("replaces needs the file's date", hint="Define (?P<date>…) in 'path'.")

    @classmethod
    def no_revision(cls) -> WrongScope:
        """The path has no revision."""
        hint = "Define (?P<revision>…) in 'path'; only a higher revision replaces a lower one."
        return cls("replaces needs the file's revision", hint=hint)


class WrongSource(DefinitionError):
    """A part of a source's file is missing or of the wrong kind."""

    @classmethod
    def no_formats(cls) -> WrongSource:
        """There are no formats."""
        return cls("'formats' is missing", hint="List at least one format with time and columns.")

    @classmethod
    def no_duration(cls, value: object) -> WrongSource:
        """A value is not a duration."""
        return cls(f"'{value}' is not a duration", hint="E.g. 90 s, 15 min, 6 h or 2 d.")
