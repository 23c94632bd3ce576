"""Structures and clauses that do not go together, and patterns that exceed a limit."""

from __future__ import annotations

from collections.abc import Sequence

from chainlake.cep.language.errors.placed import PatternError
from chainlake.cep.language.source_text import NOWHERE, At, SourceText


class NoPositiveEvent(PatternError):
    """A branch has no event that must be there."""

    @classmethod
    def of(cls, source: SourceText, at: At) -> NoPositiveEvent:
        """It has no such event at all."""
        hint = "Write NOT, COLLECT and UNTIL beside an event: SEQ(A a, NOT(B b))."
        return cls._at(source, at, "a branch needs a positive event", hint)

    @classmethod
    def forbidden(cls, source: SourceText, at: At) -> NoPositiveEvent:
        """The branch begins with NOT."""
        return cls._at(source, at, "a branch needs a positive event", "NOT belongs inside SEQ or AND.")

    @classmethod
    def gathered(cls, source: SourceText, at: At) -> NoPositiveEvent:
        """The branch is a COLLECT or an UNTIL."""
        return cls._at(source, at, "a branch needs a positive event", "COLLECT and UNTIL belong inside SEQ.")

    @classmethod
    def optional(cls, source: SourceText, at: At) -> NoPositiveEvent:
        """All events of the branch may be missing."""
        return cls._at(source, at, "a branch needs a positive event", "At least one event must not be optional.")


class BeyondLimit(PatternError):
    """A pattern has more of something than is allowed."""

    @classmethod
    def branches(cls, source: SourceText, at: At, count: int, most: int) -> BeyondLimit:
        """There are too many branches once OR and ? are taken apart."""
        what = f"OR and ? make {count} branches of this one, and at most {most} are allowed"
        return cls._at(source, at, what, "Every ? doubles their number. Write only the alternatives that matter.")

    @classmethod
    def events(cls, source: SourceText, at: At, most: int, name: str) -> BeyondLimit:
        """A branch has too many events; ``name``: the first one too many."""
        hint = "One repeated event, such as A+ a, stands for any number of events of a type."
        return cls._at(source, at, f"a branch has at most {most} events, and {name} is one more", hint)

    @classmethod
    def clauses(cls, source: SourceText, at: At, most: int) -> BeyondLimit:
        """One condition becomes too many clauses."""
        hint = "Split the alternatives over branches of OR."
        return cls._at(source, at, f"this condition becomes more than {most} clauses", hint)

    @classmethod
    def ticks(cls, source: SourceText, at: At, word: str) -> BeyondLimit:
        """A duration is too long; ``word``: of what, such as "window"."""
        hint = "Write at most 26,000,000 days, or 2^61 ticks where times have no unit."
        return cls._at(source, at, f"the {word} is too long", hint)


class UnplacedCondition(PatternError):
    """A condition that nothing can test."""

    @classmethod
    def branches(cls, source: SourceText, at: At) -> UnplacedCondition:
        """The condition's names are in different branches."""
        what = "this condition needs names of different branches, so no branch can test it"
        return cls._at(source, at, what, "Give each branch of OR its own WHERE.")

    @classmethod
    def alternatives(cls, source: SourceText, at: At) -> UnplacedCondition:
        """The condition's names are in different alternatives."""
        what = "this condition needs names of different alternatives, so none can test it"
        return cls._at(source, at, what, "A condition goes to every alternative that has all its names.")

    @classmethod
    def several(cls, source: SourceText, at: At, names: Sequence[str], *, negated: bool) -> UnplacedCondition:
        """The condition mentions several events that are looked for separately; ``negated``: whether all are of NOT."""
        what = "negated event" if negated else "such event of NOT, COLLECT or UNTIL"
        hint = "They are looked for independently of each other."
        if negated:
            hint = "The two events are forbidden independently of each other."
        return cls._at(source, at, f"a condition may mention one {what} only, not {' and '.join(names)}", hint)


class Unbounded(PatternError):
    """Nothing says how far apart events may be."""

    @classmethod
    def window(cls, source: SourceText, at: At) -> Unbounded:
        """There is no window, and the pattern does not look for neighbours."""
        hint = "Write WITHIN before PAUSE. Only neighbours, SEQ STRICT (…), are bounded by a pause alone."
        return cls._at(source, at, "the window is missing", hint)

    @classmethod
    def open_end(cls, source: SourceText, at: At, name: str) -> Unbounded:
        """There is no window, but an event is looked for before or after all others."""
        what = f"without WITHIN, {name} must be between two events of the sequence"
        return cls._at(source, at, what, "The window says how far before or after a match it is looked for.")


class NotTogether(PatternError):
    """Two parts of a pattern exclude each other."""

    @classmethod
    def group_in_strict(cls, source: SourceText, at: At, kind: str) -> NotTogether:
        """A group is among neighbours."""
        hint = "Neighbours follow one another in one order. Write each order as an alternative of OR."
        return cls._at(source, at, f"{kind} cannot be used inside SEQ STRICT", hint)

    @classmethod
    def key_of_none(cls, source: SourceText) -> NotTogether:
        """Neighbours of a key are requested for events without a key."""
        what = "SEQ STRICT OF KEY needs a key, but the events have none"
        hint = "A source names its key; match takes --key COLUMN, and the library key=."
        return cls._at(source, source.place("STRICT"), what, hint)

    @classmethod
    def gap_and_set(cls, source: SourceText, at: At, count: int) -> NotTogether:
        """A gap in events, with a repeated event."""
        what = f"GAP {count} EVENTS cannot be combined with a repeated event"
        return cls._at(source, at, what, "Say how far apart in time neighbours may be: PAUSE 5 min.")

    @classmethod
    def longest(cls, source: SourceText, at: At, limit: str) -> NotTogether:
        """A limit for patterns without a window, in a pattern with one."""
        what = f"{limit} applies only to patterns without WITHIN, but this one has a window"
        return cls._at(source, at, what, f"Leave out either WITHIN or {limit}.", key="limits")

    @classmethod
    def longest_of_none(cls, source: SourceText, at: At, limit: str) -> NotTogether:
        """A limit on stretches of neighbours, in a pattern without them."""
        what = f"{limit} applies to stretches of neighbours, but this pattern does not look for neighbours alone"
        return cls._at(
            source, at, what, f"Write WITHIN instead of {limit}; SEQ STRICT looks for neighbours.", key="limits"
        )

    @classmethod
    def keep_and_aggregate(cls, source: SourceText, at: At, keep: str, function: str, name: str) -> NotTogether:
        """MAXIMAL or OUTERMOST, with an aggregate over a repeated event."""
        what = f"{keep} cannot be combined with {function} over the repeated event {name}"
        hint = f"COLLECT({name}) takes all events that fit; SEQ STRICT takes neighbours."
        return cls._at(source, at, what, hint)

    @classmethod
    def selection(cls, source: SourceText, at: At, word: str) -> NotTogether:
        """A choice among matches, with ``word``, which such matches must not have."""
        what = f"{word} cannot be combined with CONTEXT, SELECT, PICK and CONSUME"
        hint = (
            "They choose among matches of single events. EPISODES BY key PAUSE 10 min merges matches that "
            "overlap into one row."
        )
        return cls._at(source, at, what, hint)

    @classmethod
    def selection_and_end(cls, source: SourceText, at: At, name: str) -> NotTogether:
        """A choice among matches, with an event that is looked for before or after all others."""
        hint = "Whether an event comes after a match is known too late to choose the match by it."
        return cls._at(source, at, f"{name} must be between two events of a sequence", hint)

    @classmethod
    def cumulative_and_rank(cls, source: SourceText, at: At) -> NotTogether:
        """One row for many matches, with a ranking."""
        hint = "It merges many matches into one row, but a score belongs to a single match."
        return cls._at(source, at, "CONTEXT cumulative cannot be combined with RANK BY", hint)

    @classmethod
    def cumulative_and_measures(cls, source: SourceText, at: At) -> NotTogether:
        """One row for many matches, with measures, which are computed from one match."""
        hint = (
            "It merges many matches into one row, but a measure belongs to a single match. Compute it in SQL from the "
            "sets of the row."
        )
        return cls._at(source, at, "CONTEXT cumulative cannot be combined with MEASURES", hint)


class UnfitPick(PatternError):
    """A PICK is not possible."""

    @classmethod
    def twice(cls, source: SourceText, at: At, name: str) -> UnfitPick:
        """Two clauses choose the same event."""
        return cls._at(
            source, at, f"PICK names {name} twice", "An event is picked once: keep the clause that is meant."
        )

    @classmethod
    def own_origin(cls, source: SourceText, at: At, name: str) -> UnfitPick:
        """A distance is measured from the event that is chosen."""
        hint = f"Measure it from another event: PICK first {name} within 5 min from b."
        return cls._at(source, at, f"the distance of {name} is measured from {name} itself", hint)

    @classmethod
    def origin_later(cls, source: SourceText, at: At, origin: str, name: str) -> UnfitPick:
        """A distance is measured from an event that is chosen later."""
        what = f"{origin} is picked later than {name}, which is measured from it"
        return cls._at(source, at, what, "Put the clause of the origin first.")


class TakenName(PatternError):
    """A name is already taken by something else."""

    @classmethod
    def duplicate(cls, source: SourceText, at: At, name: str) -> TakenName:
        """Two events of a branch have the same name."""
        return cls._at(source, at, f"duplicate name {name} in a branch", "Give each event its own name.")

    @classmethod
    def all(cls, source: SourceText) -> TakenName:
        """The pattern has the name of the view over all patterns."""
        hint = "matches.all is the view over all patterns."
        return cls._at(source, NOWHERE, "a pattern cannot be named all", hint)

    @classmethod
    def case_only(cls, source: SourceText, at: At, one: str, other: str) -> TakenName:
        """The names of two events differ only in case."""
        what = f"the names {one} and {other} differ only in case"
        return cls._at(source, at, what, "Columns are case-insensitive; choose another name.")

    @classmethod
    def changes(cls, source: SourceText, at: At, name: str) -> TakenName:
        """The change feed of a table has a column of this name."""
        what = f"the column {name} marks the changes of a match table"
        return cls._at(source, at, what, "Choose another name for the event.")

    @classmethod
    def match_column(cls, source: SourceText, at: At, name: str) -> TakenName:
        """Every match table has a column of this name."""
        what = f"{name} is a column of every match table"
        return cls._at(source, at, what, "Choose another name for the event.")

    @classmethod
    def ranked_column(cls, source: SourceText, at: At, name: str) -> TakenName:
        """Every table of the best matches has a column of this name."""
        return cls._at(source, at, f"{name} is a column of every ranked pattern", "Choose another name.")

    @classmethod
    def measure(cls, source: SourceText, at: At, name: str, whose: str) -> TakenName:
        """A measure has the name of ``whose``: an event, a column or another measure."""
        return cls._at(source, at, f"{name} is {whose} already", "Choose another name for the measure.")
