"""Errors in the ``formats`` of a source. The section that was read adds the place."""

from __future__ import annotations

from collections.abc import Sequence

from chainlake.errors import DefinitionError


class WrongFormat(DefinitionError):
    """A format that no file can have, or that contradicts itself."""

    @classmethod
    def unread(cls, key: str, kind: str) -> WrongFormat:
        """A key means nothing for a format of this kind."""
        return cls(f"'{key}' has no meaning for a {kind}", hint="Leave it out.")

    @classmethod
    def skipped(cls) -> WrongFormat:
        """The number of lines to skip is negative."""
        return cls("'skip_lines' must be a number of lines, 0 or more")

    @classmethod
    def wide_null(cls, text: str) -> WrongFormat:
        """A null text that no cell can have, since cells are stripped."""
        return cls(f"'{text}' has white space around it, but cells are stripped of theirs")

    @classmethod
    def optional(cls, column: str, read: bool, near: str | None, attributes: Sequence[str]) -> WrongFormat:
        """An optional column is ``read`` for something that every row needs, or is not read at all."""
        what = "every event needs" if read else "this format does not read"
        hint = f"Did you mean {near}?" if near else f"One of: {', '.join(attributes)}."
        return cls(f"'{column}' is a column that {what}", hint=hint)

    @classmethod
    def two_headers(cls) -> WrongFormat:
        """A header line is tested, but the format says that there is none."""
        return cls("'header' tests a header line, 'columns' says there is none")

    @classmethod
    def column_twice(cls, name: str) -> WrongFormat:
        """Two columns have the same name."""
        return cls(f"the column '{name}' is given twice")

    @classmethod
    def lacking(cls, missing: str, columns: Sequence[str]) -> WrongFormat:
        """A column that is read is not among those listed."""
        return cls(missing, hint=f"The columns are {', '.join(columns)}.")

    @classmethod
    def no_file(cls, glob: str, what: str, hint: str) -> WrongFormat:
        """A glob can match nothing, for the reason that ``globs`` found."""
        return cls(f"'{glob}' cannot fit any file: it {what}", hint=hint)

    @classmethod
    def no_encoding(cls, name: str) -> WrongFormat:
        """There is no such encoding."""
        return cls(f"encoding '{name}' is not known", hint=_ENCODINGS)

    @classmethod
    def no_charset(cls, name: str) -> WrongFormat:
        """An encoding is not one for text files."""
        return cls(f"encoding '{name}' is not an encoding of text", hint=_ENCODINGS)


_ENCODINGS = "E.g. utf-8, utf-16, cp1252."


class WrongSign(DefinitionError):
    """A sign of a format is not a single usable character, or stands for two things."""

    @classmethod
    def several(cls, key: str, value: str) -> WrongSign:
        """A sign has more than one character."""
        hint = 'A tab is written "\\t", in double quotes.' if value in ("\\t", "tab") else None
        return cls(f"'{key}' must be a single character", hint=hint)

    @classmethod
    def no_sign(cls, key: str, value: str) -> WrongSign:
        """A sign is a character that occurs in values."""
        return cls(f"{value!r} cannot be the {key}", hint="Use a character such as , ; | or \\t.")

    @classmethod
    def decimal(cls) -> WrongSign:
        """The decimal sign is also the delimiter or the thousands sign."""
        return cls("the decimal mark must differ from the delimiter and the thousands separator")

    @classmethod
    def quote_in_number(cls) -> WrongSign:
        """The quote is also the decimal or the thousands sign."""
        return cls("the quote must differ from the decimal mark and the thousands separator")

    @classmethod
    def quote(cls) -> WrongSign:
        """The quote is also the delimiter."""
        return cls("the quote must differ from the delimiter")


class WrongTime(DefinitionError):
    """The time of rows cannot be read as declared."""

    @classmethod
    def no_column(cls) -> WrongTime:
        """No column is named for the time."""
        return cls("'time.column' is missing", hint="Name the column or columns that hold the time.")

    @classmethod
    def column_twice(cls, name: str) -> WrongTime:
        """A part of the time is read twice."""
        return cls(f"the column '{name}' is given twice", hint="Name each part of the time once.")

    @classmethod
    def no_format(cls, form: str, known: Sequence[str]) -> WrongTime:
        """There is no such time format."""
        hint = f"One of {', '.join(known)}, or a format such as '%d.%m.%Y %H:%M'."
        return cls(f"time format '{form}' is not known", hint=hint)

    @classmethod
    def unfit_format(cls, form: str, what: str, hint: str) -> WrongTime:
        """A format gives no time, for the reason that ``time_formats`` found."""
        return cls(f"time format '{form}' {what}", hint=hint)

    @classmethod
    def one_number(cls, form: str, columns: int) -> WrongTime:
        """A count of seconds is spread over several columns."""
        return cls(f"{form} is one number, not {columns} columns")

    @classmethod
    def no_zone(cls, form: str) -> WrongTime:
        """A zone is given for times that have their own."""
        return cls(f"the zone changes nothing: times of format '{form}' say where they count from")

    @classmethod
    def unknown_zone(cls, zone: str) -> WrongTime:
        """There is no such zone."""
        return cls(f"zone '{zone}' is not known", hint="An IANA name, such as America/New_York or UTC.")

    @classmethod
    def crossed(cls) -> WrongTime:
        """The earliest day is after the latest."""
        return cls("'earliest' must not be after 'latest'")

    @classmethod
    def no_duration(cls, value: object) -> WrongTime:
        """The distance from the file's date is not a duration."""
        return cls(f"'{value}' is not a duration", hint="E.g. 36 h or 400 d.")


class WrongUnpivot(DefinitionError):
    """Columns cannot become rows."""

    @classmethod
    def no_attribute(cls, name: str, attributes: Sequence[str]) -> WrongUnpivot:
        """The target of their cells is not an attribute."""
        return cls(f"'{name}' is not an attribute", hint=f"One of: {', '.join(attributes)}.")

    @classmethod
    def no_columns(cls) -> WrongUnpivot:
        """No columns are named."""
        return cls("no columns are named", hint="E.g. [R1, R2], or {R1: left, R2: right}.")

    @classmethod
    def blank_or_twice(cls, what: str, name: str) -> WrongUnpivot:
        """A column or key, as ``what`` says, is blank or given twice."""
        return cls(f"the {what} '{name}' is blank, or given twice")

    @classmethod
    def key_mapped(cls) -> WrongUnpivot:
        """The key is also mapped from a column."""
        return cls("the key comes from the names of the columns of unpivot", hint="Leave it out here.")

    @classmethod
    def taken(cls, what: str, column: str, key: str) -> WrongUnpivot:
        """Something else is read from one of the columns."""
        hint = f"Columns of unpivot become rows: '{key}' holds their names, 'value' their cells."
        return cls(f"{what} is read from the column '{column}', which unpivot turns into rows", hint=hint)

    @classmethod
    def two_origins(cls, name: str) -> WrongUnpivot:
        """The attribute that takes their cells also comes from elsewhere."""
        return cls(f"'{name}' comes from the cells of unpivot", hint="Leave out where it comes from.")


class WrongMapping(DefinitionError):
    """A value comes from nowhere or from two places, or would not be the value that was written."""

    @classmethod
    def unknown(cls, name: str, near: str | None, known: Sequence[str]) -> WrongMapping:
        """Events have no column of that name."""
        hint = f"Did you mean {near}?" if near else f"Allowed here: {', '.join(known)}."
        return cls(f"unknown key '{name}'", hint=hint)

    @classmethod
    def needed(cls, name: str) -> WrongMapping:
        """The key is not mapped, and rows with only a time and a value have no column for it."""
        return cls(f"'{name}' needs a mapping", hint="Map it from a path field or a constant.")

    @classmethod
    def one_value(cls, value: str) -> WrongMapping:
        """Rows have a time and a ``value``, and the number of attributes that take the values is not one."""
        return cls(f"one attribute must be mapped to the column '{value}'")

    @classmethod
    def beside_pair(cls, column: str, kind: str, pair: tuple[str, str]) -> WrongMapping:
        """A column is read that rows with these two columns do not have."""
        what = f"a {kind} has the columns '{pair[0]}' and '{pair[1]}', no '{column}'"
        return cls(what, hint="Its other values come from a path field or a constant.")

    @classmethod
    def two_origins(cls) -> WrongMapping:
        """A value comes from several places."""
        return cls("only one of column, path and constant can be given")

    @classmethod
    def for_numbers(cls, key: str, name: str, kind: str) -> WrongMapping:
        """A key for numbers is given to another type."""
        return cls(f"'{key}' applies to numbers, but {name} is a {kind}")

    @classmethod
    def for_texts(cls, name: str, kind: str) -> WrongMapping:
        """A key for strings is given to another type."""
        return cls(f"'case' applies to strings, but {name} is a {kind}")

    @classmethod
    def no_scale(cls) -> WrongMapping:
        """The scale is 0, which would make all values equal."""
        return cls("a scale of 0 makes every value the same")

    @classmethod
    def digits(cls, most: int) -> WrongMapping:
        """Rounding is to more digits than a double has."""
        return cls(f"'round' must be a number of digits from -{most} to {most}")

    @classmethod
    def no_column(cls, text: str) -> WrongMapping:
        """A column name is blank or has white space around it."""
        return cls(f"'{text}' cannot be the name of a column", hint="Names have no white space around them.")


class WrongConstant(DefinitionError):
    """A constant is not a value of its type."""

    @classmethod
    def blank(cls) -> WrongConstant:
        """It is blank."""
        return cls("a constant must not be blank")

    @classmethod
    def no_number(cls, text: str, kind: str) -> WrongConstant:
        """It is not a number."""
        return cls(f"the constant '{text}' is not a {kind}", hint="Write digits, as in 1000, -0.5 or 1e-3.")

    @classmethod
    def no_long(cls, text: str) -> WrongConstant:
        """It is not a whole number that a double can hold."""
        return cls(f"the constant '{text}' is not a long", hint="Write a whole number of at most 2^53.")

    @classmethod
    def no_boolean(cls, text: str, known: Sequence[str]) -> WrongConstant:
        """It is neither true nor false."""
        return cls(f"the constant '{text}' is not a boolean", hint=f"One of: {', '.join(known)}.")


class WrongSentinel(DefinitionError):
    """A sentinel, which means "no value", is not written correctly."""

    @classmethod
    def no_number(cls) -> WrongSentinel:
        """It is not a number, with or without conditions."""
        return cls(_SENTINEL, hint="List strings that mean a missing value under 'null' of the format.")

    @classmethod
    def no_conditions(cls) -> WrongSentinel:
        """Its conditions are not a map, or are an empty one."""
        return cls(_SENTINEL)

    @classmethod
    def condition(cls, name: object, condition: object) -> WrongSentinel:
        """One of its conditions is not understood."""
        hint = "Write an attribute of type double or long, and a comparison: {flow: 0} or {flow: '> 0'}."
        return cls(f"condition '{name}: {condition}' is not understood", hint=hint)


_SENTINEL = "a sentinel must be a number, or {value: NUMBER, when: {ATTRIBUTE: COMPARISON}}"
