"""What is wrong in the file of a source. The section that was read says where it stands (``Section.placed``)."""

from __future__ import annotations

from collections.abc import Sequence

from chainlake.errors import DefinitionError


def _names(reserved: Sequence[str]) -> str:
    """What a name of a column is."""
    return (
        f"Names consist of the letters a to z, digits and _, and begin with a letter; reserved: {', '.join(reserved)}."
    )


class WrongName(DefinitionError):
    """A name that no column can have."""

    @classmethod
    def key_column(cls, name: str, reserved: Sequence[str]) -> WrongName:
        """Of the key."""
        return cls(f"'{name}' cannot be the name of the key column", hint=_names(reserved))

    @classmethod
    def attribute(cls, name: str, reserved: Sequence[str]) -> WrongName:
        """Of an attribute."""
        return cls(f"'{name}' cannot be the name of an attribute", hint=_names(reserved))

    @classmethod
    def derived(cls, name: str, reserved: Sequence[str]) -> WrongName:
        """Of a derived column."""
        return cls(f"'{name}' cannot be the name of a derived column", hint=_names(reserved))


class WrongAttribute(DefinitionError):
    """An attribute, or a derived column, that no event could have a value of."""

    @classmethod
    def none(cls) -> WrongAttribute:
        """There is not one."""
        return cls("'attributes' is missing", hint="List at least one, e.g. value: {type: double}.")

    @classmethod
    def bounds_of_text(cls) -> WrongAttribute:
        """Bounds of something that has no order of numbers."""
        return cls("min and max need a number", hint="Type double or long.")

    @classmethod
    def crossed_bounds(cls) -> WrongAttribute:
        """Bounds that nothing is within."""
        return cls("min is above max, so every row would be out of range")

    @classmethod
    def no_history(cls, name: str) -> WrongAttribute:
        """A derived column that is no history of an attribute."""
        hint = "E.g. last_prices: history(price, 5, 10 min): an attribute, how many values, the longest gap."
        return cls(f"derived column '{name}' is not understood", hint=hint)

    @classmethod
    def no_gap(cls, name: str) -> WrongAttribute:
        """A history of events that would have to be simultaneous."""
        return cls(f"'{name}' never has a value: no two events lie within a gap of 0")

    @classmethod
    def history_of(cls, of: str, kind: str) -> WrongAttribute:
        """A history of what is no number."""
        return cls(f"a history is of numbers, and {of} is a {kind}")


class WrongType(DefinitionError):
    """The type of events comes from nowhere, or from two places, or no row has it."""

    @classmethod
    def two_origins(cls) -> WrongType:
        """A constant, and a column of a format."""
        return cls("type is a constant here, but a format maps it to a column")

    @classmethod
    def blank(cls) -> WrongType:
        """A constant that is empty."""
        return cls("a type must not be blank", hint="E.g. Bar.")

    @classmethod
    def no_column(cls, form: str) -> WrongType:
        """A format says nothing of it."""
        return cls(f"no column for the type in format '{form}'", hint="E.g. type: {column: kind}.")

    @classmethod
    def empty_map(cls) -> WrongType:
        """A map that maps nothing."""
        return cls("the map of types is empty", hint="E.g. {T: Trade}, or leave it out.")

    @classmethod
    def no_type(cls, text: str, kind: str) -> WrongType:
        """An entry of the map is blank, or has blanks around it."""
        return cls(f"'{text}: {kind}' is no type, or has white space around it")

    @classmethod
    def never_met(cls, text: str, case: str | None) -> WrongType:
        """An entry of the map in letters that the format does not leave."""
        return cls(f"'{text}' is never met: the format makes all types {case} case")


class WrongPath(DefinitionError):
    """What is said of the paths of files means nothing, or cannot be had from them."""

    @classmethod
    def no_expression(cls, error: Exception) -> WrongPath:
        """No regular expression."""
        return cls(f"not a regular expression: {error}")

    @classmethod
    def no_field(cls) -> WrongPath:
        """An expression that nothing is taken from."""
        hint = r"E.g. 'bars_(?P<date>\d{8})'; without fields leave 'path' out."
        return cls("no field of the path is named", hint=hint)

    @classmethod
    def unknown_field(cls, name: str, near: str) -> WrongPath:
        """A field that is probably a misspelt one."""
        return cls(f"the field '{name}' means nothing, and '{near}' is not defined")

    @classmethod
    def date_format(cls, form: str, problem: str | None) -> WrongPath:
        """A format that gives no date."""
        return cls(f"date format '{form}' {problem or 'gives no date alone'}", hint="E.g. '%d%m%y'.")

    @classmethod
    def no_date(cls) -> WrongPath:
        """A format of a date that the path does not have."""
        return cls("there is no date in the path", hint="Define (?P<date>…) in 'pattern'.")

    @classmethod
    def field(cls, what: str, hint: str | None) -> WrongPath:
        """A field that holds no value of its kind, as ``formats.path_groups`` says."""
        return cls(what, hint=hint)

    @classmethod
    def lacking_field(cls, name: str, field: str) -> WrongPath:
        """A value comes from a field that the path does not have."""
        what = f"'{name}' comes from the path field '{field}', which 'path' does not define"
        return cls(what, hint=f"Name it in the expression: (?P<{field}>…).")

    @classmethod
    def no_digits(cls, name: str, kind: str, field: str) -> WrongPath:
        """A number comes from a field without digits."""
        what = f"'{name}' is a {kind}, and the path field '{field}' can match no digits"
        return cls(what, hint=rf"E.g. (?P<{field}>\d+), or type: string.")

    @classmethod
    def around_no_date(cls) -> WrongPath:
        """Times lie around a date that files do not have."""
        hint = "Define (?P<date>…) in 'path', or write earliest and latest."
        return cls("'around' is measured from the date in the file's path, which names none", hint=hint)

    @classmethod
    def time_of_no_day(cls) -> WrongPath:
        """Times of day, and no day."""
        hint = "Define (?P<date>…) in 'path', or read the date too: time: {column: [day, time], …}."
        return cls("times of day need a date in the path", hint=hint)

    @classmethod
    def names_no_day(cls, glob: str, what: str, hint: str | None) -> WrongPath:
        """An expected file that is none of a day, as ``formats.globs`` says."""
        return cls(f"'{glob}' names no file of a day: it {what}", hint=hint)


class WrongScope(DefinitionError):
    """What a file replaces cannot be told."""

    @classmethod
    def none(cls, scope: Sequence[str]) -> WrongScope:
        """It is none of the scopes that there are."""
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
    """A part of a source's file is missing, or of another kind."""

    @classmethod
    def no_formats(cls) -> WrongSource:
        """It says of no file how it looks."""
        return cls("'formats' is missing", hint="List at least one format with time and columns.")

    @classmethod
    def no_duration(cls, value: object) -> WrongSource:
        """A value is no length of time."""
        return cls(f"'{value}' is not a duration", hint="E.g. 90 s, 15 min, 6 h or 2 d.")
