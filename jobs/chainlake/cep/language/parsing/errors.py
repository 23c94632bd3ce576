"""What the grammar of patterns does not allow."""

from __future__ import annotations

import unicodedata

from chainlake.cep.language.errors.placed import PatternError
from chainlake.cep.language.parsing.expected import ORDER, Found
from chainlake.cep.language.source_text import At, SourceText

_HINTS = {
    **dict.fromkeys("`\u2018\u2019\u201c\u201d\u00b4", "Strings take single quotes: 'text'."),
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "Minus is written -."),
    **dict.fromkeys("\u00a0\u2007\u202f\u3000\u2003\u200b", "Use an ordinary space here, or nothing."),
    "\u2264": "Write <=.",
    "\u2265": "Write >=.",
    "\u2260": "Write !=.",
    "\u00d7": "Write *.",
    "\u00f7": "Write /.",
    ";": "A query ends with its window, without a semicolon.",
    "&": "Write AND.",
    "|": "Write OR.",
    "!": "Write NOT before a condition, or != for unequal values.",
    "~": "Write MATCHES 'expression' for regular expressions.",
    "%": "Write Mod(a, b) for the remainder, and LIKE 'a%' in single quotes.",
    "^": "Write Power(x, y).",
    "[": "A set is written {1, 2}.",
    ":": 'A name with a colon takes double quotes: "a:b".',
    "$": "Write a parameter by its name alone.",
    "@": "Write a parameter by its name alone.",
    "\ufeff": "Save the file as UTF-8 without a byte order mark.",
}


class Unreadable(PatternError):
    """Characters do not form a token."""

    @classmethod
    def open_string(cls, source: SourceText, at: At) -> Unreadable:
        """A string does not end on its line."""
        return cls._at(source, at, "this string has no closing quote", "Strings are written 'like this'.")

    @classmethod
    def open_name(cls, source: SourceText, at: At) -> Unreadable:
        """A quoted name does not end on its line."""
        return cls._at(source, at, "this name has no closing quote", 'Names may be written "like this".')

    @classmethod
    def empty_name(cls, source: SourceText, at: At) -> Unreadable:
        """A quoted name is empty."""
        return cls._at(source, at, "a quoted name is empty")

    @classmethod
    def large_number(cls, source: SourceText, at: At) -> Unreadable:
        """A number is too large for a double."""
        return cls._at(source, at, "this number is too large")

    @classmethod
    def character(cls, source: SourceText, at: At, character: str) -> Unreadable:
        """No token begins with this character."""
        code = f"U+{ord(character):04X}"
        shown = f"'{character}' ({code})" if character.isprintable() and not character.isascii() else repr(character)
        what, hint = f"the character {shown} has no meaning here", _HINTS.get(character)
        if character.isdigit():
            what, hint = f"the character {shown} is not a digit here", "Numbers are written with 0 to 9."
        elif character.isalnum() or unicodedata.category(character).startswith("M"):
            what = f"the character {shown} cannot be part of a name"
            hint = (
                "Names consist of the letters A to Z and a to z, digits and _; types and attributes with other letters "
                'take double quotes, a."größe", and strings single quotes.'
            )
        return cls._at(source, at, what, hint)


class Misplaced(PatternError):
    """A part of a query that belongs elsewhere, or nowhere."""

    @classmethod
    def clause(cls, source: SourceText, found: Found) -> Misplaced:
        """A clause comes after one that it must precede."""
        return cls._at(source, found.at, f"{found.text.upper()} does not belong here", ORDER)

    @classmethod
    def of_ranking(cls, source: SourceText, found: Found) -> Misplaced:
        """A clause of a ranking comes after one that it must precede."""
        hint = "The order is PER, FOR EACH, DISTINCT ON, NON OVERLAPPING, AT LEAST, QUANTUM."
        return cls._at(source, found.at, f"{found.text.upper()} does not belong here", hint)

    @classmethod
    def after_end(cls, source: SourceText, found: Found) -> Misplaced:
        """Something follows the query."""
        return cls._at(source, found.at, f"nothing may follow the window, but {found.shown} does")

    @classmethod
    def event_window(cls, source: SourceText, found: Found) -> Misplaced:
        """A window in events comes without WITHIN."""
        hint = "Write WITHIN 25 EVENTS or WITHIN GAP 25 EVENTS; after a duration, WITHIN 1 h, GAP 25 EVENTS."
        return cls._at(source, found.at, f"{found.text.upper()} belongs to WITHIN", hint)

    @classmethod
    def consumed(cls, source: SourceText, found: Found, word: str) -> Misplaced:
        """A name follows a word that says what all matches use up."""
        hint = "Write the word alone, or names alone, such as CONSUME a, b."
        return cls._at(source, found.at, f"nothing is added to CONSUME {word}", hint)

    @classmethod
    def where(cls, source: SourceText, at: At) -> Misplaced:
        """An alternative has its own WHERE."""
        hint = "Put the condition into the WHERE after the structure."
        return cls._at(source, at, "an alternative inside SEQ or AND cannot have its own WHERE", hint)

    @classmethod
    def window(cls, source: SourceText, at: At) -> Misplaced:
        """OR has its own window."""
        return cls._at(source, at, "OR cannot have its own window", "Write WITHIN after each of its alternatives.")

    @classmethod
    def strict(cls, source: SourceText, at: At) -> Misplaced:
        """STRICT is in a group inside another one."""
        return cls._at(source, at, "STRICT belongs to the outermost SEQ of a branch", "Write SEQ(…) here.")

    @classmethod
    def structure(cls, source: SourceText, at: At, word: str) -> Misplaced:
        """A group is inside NOT, COLLECT or UNTIL (``word``)."""
        hint = f"Write one {word} for each {'forbidden event' if word == 'NOT' else 'of them'}."
        return cls._at(source, at, f"{word} takes one event, not a structure", hint)

    @classmethod
    def quantifier(cls, source: SourceText, found: Found, kind: str, name: str) -> Misplaced:
        """A quantifier comes after the name of an event of type ``kind``."""
        hint = f"It belongs after the type: {kind}{found.text} {name}."
        return cls._at(source, found.at, f"'{found.text}' comes after the name {name}", hint)

    @classmethod
    def ranking(cls, source: SourceText, at: At) -> Misplaced:
        """A ranking comes after episodes."""
        hint = "Episodes merge all matches of a key, and a ranking keeps the best ones: leave one of the two out."
        return cls._at(source, at, "a pattern with EPISODES ranks nothing", hint)


class WrongQuantifier(PatternError):
    """A number of events, branches or items is not possible."""

    @classmethod
    def branches(cls, source: SourceText, at: At) -> WrongQuantifier:
        """OR has only one branch."""
        return cls._at(
            source, at, "OR needs at least two branches", "OR(SEQ(A a, B b), C c); a single one is written without OR."
        )

    @classmethod
    def alternatives(cls, source: SourceText, at: At) -> WrongQuantifier:
        """OR has only one alternative."""
        return cls._at(
            source, at, "OR needs at least two alternatives", "OR(A a, B b); a single one is written without OR."
        )

    @classmethod
    def any_of(cls, source: SourceText, at: At, asked: int, items: int) -> WrongQuantifier:
        """ANY takes more items than there are, or none."""
        hint = "ANY(2, A a, B b, C c) takes two of the three, in any order."
        return cls._at(source, at, f"ANY takes 1 to {items} of {items} items, not {asked}", hint)

    @classmethod
    def size(cls, source: SourceText, at: At, least: int, most: int | None) -> WrongQuantifier:
        """No set can have this size."""
        hint = "Write {2,5}: from 1 on, the smaller number first. Use ? for an event that may be missing."
        return cls._at(source, at, f"{{{least},{'' if most is None else most}}} fits no set", hint)

    @classmethod
    def optional_set(cls, source: SourceText, at: At, kind: str) -> WrongQuantifier:
        """``?`` comes after the type that COLLECT takes."""
        return cls._at(source, at, "an empty set is allowed by COLLECT?", f"COLLECT?({kind} …).")

    @classmethod
    def repeated_set(cls, source: SourceText, at: At, kind: str) -> WrongQuantifier:
        """``*`` or ``+`` comes after the type that COLLECT takes."""
        return cls._at(source, at, "COLLECT already takes all events", f"COLLECT({kind} …) is enough.")


class RepeatedAbsence(WrongQuantifier):
    """The event of a NOT or of an UNTIL is repeated."""

    word: str

    @classmethod
    def of(cls, source: SourceText, at: At, word: str, kind: str) -> RepeatedAbsence:
        """For NOT or UNTIL (``word``) and the event's type."""
        return cls._at(source, at, f"{word} takes no repeated event", f"{word}({kind}) is enough.").holding(word=word)


class Duplicate(PatternError):
    """A second clause of a kind that a query has once, or one that another clause already implies."""

    @classmethod
    def duration(cls, source: SourceText, at: At) -> Duplicate:
        """There are two windows in time."""
        return cls._at(source, at, "a second duration", "WITHIN 1 h, 25 EVENTS.")

    @classmethod
    def event_window(cls, source: SourceText, at: At) -> Duplicate:
        """There are two windows in events."""
        return cls._at(source, at, "a second window in events", "Write the smaller one.")

    @classmethod
    def comparison(cls, source: SourceText, at: At) -> Duplicate:
        """Two comparisons are chained."""
        return cls._at(source, at, "comparisons cannot be chained", "Write them one by one: 1 < a.x AND a.x < 5.")

    @classmethod
    def selection(cls, source: SourceText, at: At) -> Duplicate:
        """There are two ways to choose among matches."""
        return cls._at(source, at, "CONTEXT, SELECT and PICK exclude one another", "Write one of them.")

    @classmethod
    def consumption(cls, source: SourceText, at: At, context: str) -> Duplicate:
        """CONSUME or PER is used with a context."""
        hint = "Use SELECT with CONSUME and PER."
        return cls._at(source, at, f"CONTEXT {context} already determines what is used up", hint)


class WrongCall(PatternError):
    """An aggregate, PREV or PICK does not take these arguments."""

    @classmethod
    def distinct(cls, source: SourceText, at: At) -> WrongCall:
        """DISTINCT is used in an aggregate other than COUNT."""
        return cls._at(source, at, "DISTINCT can be used only with COUNT", "COUNT(DISTINCT b.x).")

    @classmethod
    def no_attribute(cls, source: SourceText, at: At, function: str, name: str) -> WrongCall:
        """An aggregate is over events, not over their values."""
        return cls._at(source, at, f"{function} needs an attribute: {function}({name}.x)")

    @classmethod
    def several_names(cls, source: SourceText, at: At, function: str) -> WrongCall:
        """An aggregate is over values of several names, or of none."""
        what = f"{function} ranges over the events of one name"
        return cls._at(source, at, what, f"{function}(b.price * b.volume).")

    @classmethod
    def steps(cls, source: SourceText, at: At) -> WrongCall:
        """PREV goes back by no event, or by too many."""
        return cls._at(source, at, "PREV goes back by 1 to 1000 events")

    @classmethod
    def distance(cls, source: SourceText, at: At, name: str) -> WrongCall:
        """A clause of PICK has a length but no origin, or the other way round."""
        hint = f"PICK first {name} within 5 s from c."
        return cls._at(source, at, "a distance has a length and an origin", hint)


class TooComplex(PatternError):
    """A query is too deep for the parser or for later passes, which are recursive."""

    @classmethod
    def nested(cls, source: SourceText, at: At, most: int) -> TooComplex:
        """Parentheses, groups or calls are nested too deeply."""
        what = f"the query is nested more than {most} levels deep"
        return cls._at(source, at, what, "Write it with fewer parts.")

    @classmethod
    def in_a_row(cls, source: SourceText, at: At, most: int) -> TooComplex:
        """There are too many operators in a row."""
        return cls._at(source, at, f"more than {most} operators in a row")
