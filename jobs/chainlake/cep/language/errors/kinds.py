"""Values of a kind that cannot be used where they are."""

from __future__ import annotations

from collections.abc import Iterable

from chainlake.cep.language.errors.placed import PatternError
from chainlake.cep.language.source_text import At, SourceText
from chainlake.words import zone_hint

#: Functions of a time and a zone.
CLOCKS = frozenset({"hour", "minute", "weekday", "date"})


class WrongKind(PatternError):
    """An operator, a function or a clause does not take a value of this kind."""

    @classmethod
    def no_text(cls, source: SourceText, at: At, word: str, kind: str) -> WrongKind:
        """LIKE or MATCHES is applied to something other than a string."""
        hint = "Numbers are compared: a.x BETWEEN 1 AND 2." if kind == "number" else None
        return cls._at(source, at, f"{word} takes a string, not a {kind}", hint)

    @classmethod
    def no_number(cls, source: SourceText, at: At, operator: str, kind: str) -> WrongKind:
        """Arithmetic is done with something other than a number."""
        hint = "Strings cannot be concatenated: compare each of them." if kind == "string" else None
        return cls._at(source, at, f"'{operator}' takes numbers, not a {kind}", hint)

    @classmethod
    def operands(cls, source: SourceText, at: At, operator: str, left: str, right: str) -> WrongKind:
        """Arithmetic is done with two kinds that do not go together."""
        hint = "Durations carry a unit: a.ts + 2 s." if "number" in (left, right) else None
        return cls._at(source, at, f"'{operator}' is not defined for a {left} and a {right}", hint)

    @classmethod
    def negative(cls, source: SourceText, at: At, kind: str) -> WrongKind:
        """A minus sign is before something other than a number."""
        return cls._at(source, at, f"a {kind} has no negative")

    @classmethod
    def in_set(cls, source: SourceText, at: At, kind: str) -> WrongKind:
        """IN is asked about a kind of value that no set holds."""
        return cls._at(source, at, f"a {kind} cannot be looked up in a set")

    @classmethod
    def cases(cls, source: SourceText, at: At, kinds: Iterable[str]) -> WrongKind:
        """CASE has results of several kinds, or lists."""
        return cls._at(source, at, f"CASE gives a {' or a '.join(sorted(kinds))}", "Give values of one kind.")

    @classmethod
    def aggregate(cls, source: SourceText, at: At, function: str, kind: str) -> WrongKind:
        """An aggregate is not defined for a kind of values."""
        hint = {
            "list": "Which columns hold lists has to be known when the pattern is compiled.",
            "string": "For strings, there are COUNT(DISTINCT b.x), FIRST and LAST.",
        }.get(kind)
        return cls._at(source, at, f"{function} of a {kind} is not defined", hint)

    @classmethod
    def counted_lists(cls, source: SourceText, at: At) -> WrongKind:
        """COUNT(DISTINCT …) is applied to lists."""
        return cls._at(source, at, "lists are not compared, so different ones cannot be counted")

    @classmethod
    def arguments(cls, source: SourceText, at: At, function: str, kinds: Iterable[str], *, swapped: bool) -> WrongKind:
        """A function does not take arguments of these kinds; ``swapped``: since the halves of them may be swapped."""
        said = f"{function} does not take {', '.join(f'a {kind}' for kind in kinds)}"
        hint = f"{function.capitalize()}(a.ts, 'UTC'): a time and a zone." if function in CLOCKS else None
        if swapped:
            hint = (
                "It is declared as symmetric: the two halves of its values are swapped, so they are of the same kinds."
            )
        return cls._at(source, at, said, hint)

    @classmethod
    def constant(cls, source: SourceText, at: At, function: str, value: object, problem: str) -> WrongKind:
        """A function does not take a constant; ``problem``: what is wrong with it."""
        hint = zone_hint(value) if isinstance(value, str) and function in CLOCKS else None
        return cls._at(source, at, f"{function}: {problem}", hint)

    @classmethod
    def pattern(cls, source: SourceText, at: At, word: str, text: str, problem: str, *, regex: bool) -> WrongKind:
        """LIKE or MATCHES cannot use a string; ``problem``: what is wrong with it."""
        hint = "Write \\% for a percent sign, and \\\\ for a backslash."
        if regex:
            hint = "Regular expressions follow RE2: no look-around, no references to groups."
        return cls._at(source, at, f"{word} cannot use '{text}': {problem}", hint)

    @classmethod
    def gap(cls, source: SourceText, at: At) -> WrongKind:
        """The third argument of PREV is not a duration."""
        return cls._at(source, at, "the longest gap of PREV must be a duration", "PREV(b.x, 1, 10 min).")

    @classmethod
    def unit_missing(cls, source: SourceText, at: At, word: str, value: object) -> WrongKind:
        """The window or the pause (``word``) is a bare number."""
        keyword = "WITHIN" if word == "window" else "PAUSE"
        return cls._at(source, at, f"the {word} needs a unit", f"Write {keyword} {value} s.")

    @classmethod
    def measure(cls, source: SourceText, at: At) -> WrongKind:
        """A measure is a list."""
        return cls._at(source, at, "a measure must be one value, but this is a list")


class Incomparable(PatternError):
    """Two values cannot be compared, or cannot be compared by order."""

    @classmethod
    def lists(cls, source: SourceText, at: At) -> Incomparable:
        """One of them is a list."""
        return cls._at(source, at, "lists cannot be compared", "Use Corr(a.x, b.x).")

    @classmethod
    def unordered(cls, source: SourceText, at: At, left: str, right: str) -> Incomparable:
        """The values are equal or not, but have no order."""
        what = f"a {left} and a {right}" if left != right else f"two {left} values"
        hint = (
            "Strings take single quotes, numbers take none; compare values of the same kind." if left != right else None
        )
        return cls._at(source, at, f"{what} have no order", hint)

    @classmethod
    def bare_number(cls, source: SourceText, at: At) -> Incomparable:
        """A duration is compared with a number."""
        what = "a time difference is compared with a duration, not a bare number"
        return cls._at(source, at, what, "Write the unit: b.ts - a.ts <= 2 s.")

    @classmethod
    def units(cls, source: SourceText, at: At, left: str, right: str) -> Incomparable:
        """A time or a duration is compared with something else."""
        hint = "Compare times with times, and time differences with durations such as 2 s."
        return cls._at(source, at, f"a {left} cannot be compared with a {right}", hint)


class NoSet(PatternError):
    """There is one event where a set is needed, or a set where one event is needed."""

    @classmethod
    def single(cls, source: SourceText, at: At, function: str, name: str, kind: str) -> NoSet:
        """An aggregate is over a single event; ``kind``: the event's type."""
        what = f"{function} needs a repeated event, and {name} is a single one"
        return cls._at(source, at, what, f"Write {kind}* {name} in the pattern, or use {name}.attribute.")

    @classmethod
    def single_in_match(cls, source: SourceText, at: At, function: str, name: str) -> NoSet:
        """An aggregate is over a single event, in a value that is computed from matches."""
        what = f"{function} needs a repeated event, and {name} is a single one"
        return cls._at(source, at, what, f"Write {name}.attribute.")

    @classmethod
    def member(cls, source: SourceText, at: At, name: str, attr: str) -> NoSet:
        """A value of each member of a set is given where one value is needed."""
        what = f"{name} is a set, so {name}.{attr} has a value for each member"
        return cls._at(source, at, what, f"Say which: FIRST({name}.{attr}), LAST, MIN, MAX, AVG, …")


class UnfitExpression(PatternError):
    """An expression cannot be computed from one event, or is not one."""

    @classmethod
    def constant(cls, source: SourceText) -> UnfitExpression:
        """The expression names no attribute."""
        hint = "Name an attribute, or use the feature 'constant'."
        return cls._at(source, (1, 1), "this is the same number for every event", hint)

    @classmethod
    def goes_on(cls, source: SourceText, at: At, shown: str) -> UnfitExpression:
        """Something follows the expression; ``shown``: what."""
        hint = "Conditions are joined by AND and OR, values by + - * and /."
        return cls._at(source, at, f"the expression should end before {shown}", hint)

    @classmethod
    def reserved(cls, source: SourceText, at: At, word: str) -> UnfitExpression:
        """A word of the language is where an attribute is needed."""
        hint = f'An attribute of this name takes double quotes: "{word.lower()}".'
        return cls._at(source, at, f"a value is expected, not '{word}'", hint)

    @classmethod
    def earlier(cls, source: SourceText, at: At) -> UnfitExpression:
        """The expression asks for an earlier event."""
        hint = "Features of a model look back with transform: lag N, or diff."
        return cls._at(source, at, "PREV needs another event, but there is only one", hint)

    @classmethod
    def several(cls, source: SourceText, at: At, function: str) -> UnfitExpression:
        """The expression asks for several events."""
        hint = "For one event, it takes an attribute that holds a list."
        return cls._at(source, at, f"{function} needs several events, but there is only one", hint)

    @classmethod
    def no_number(cls, source: SourceText, kind: str) -> UnfitExpression:
        """The expression is not a number."""
        hint = "CASE WHEN … THEN 1 ELSE 0 END turns a condition into a number."
        if kind == "duration":
            hint = "Seconds(…) turns a duration into a number."
        return cls._at(source, (1, 1), f"a number is expected, but this is a {kind}", hint)
