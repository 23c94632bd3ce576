"""Rankings and episodes that cannot be computed as requested."""

from __future__ import annotations

from chainlake.cep.language.errors.placed import PatternError
from chainlake.cep.language.source_text import At, SourceText
from chainlake.words import zone_hint


class UnfitRanking(PatternError):
    """A ranking that does not say which matches are the best."""

    @classmethod
    def no_top(cls, source: SourceText, at: At) -> UnfitRanking:
        """A branch has a score, and nothing says how many matches are kept."""
        hint = "State after the window how many matches to keep: TOP 10 PER DAY."
        return cls._at(source, at, "RANK BY of a branch needs TOP", hint)

    @classmethod
    def no_score(cls, source: SourceText, at: At) -> UnfitRanking:
        """The query says how many matches are kept, but not by which score."""
        return cls._at(source, at, "TOP needs RANK BY", "RANK BY MAX(b.price - a.price) TOP 10 PER DAY.")

    @classmethod
    def two_places(cls, source: SourceText, at: At) -> UnfitRanking:
        """A score is in a branch and another after the window."""
        what = "RANK BY appears both in a branch and after the window"
        return cls._at(source, at, what, "Write it in one of the places.")

    @classmethod
    def branch_without(cls, source: SourceText, at: At, number: int) -> UnfitRanking:
        """One branch has no score although others have; ``number`` counts from 1."""
        what = f"branch {number} has no RANK BY, but others have one"
        return cls._at(source, at, what, "The matches of all branches compete in one list.")

    @classmethod
    def unlike_lengths(cls, source: SourceText, at: At) -> UnfitRanking:
        """Branches have different numbers of criteria."""
        what = "the branches have scores of different lengths, which cannot be compared"
        return cls._at(source, at, what, "COMBINE lex needs the same number of criteria in every branch.")

    @classmethod
    def uncombined(cls, source: SourceText, at: At) -> UnfitRanking:
        """There are several criteria, and nothing combines them into one number."""
        hint = (
            "COMBINE sum, avg, wsum, min, max or product makes one number of them; lex compares one after "
            "another. NORM makes numbers of different units comparable."
        )
        return cls._at(source, at, "several criteria need COMBINE", hint)

    @classmethod
    def weight(cls, source: SourceText, at: At) -> UnfitRanking:
        """A criterion has a weight, and there is no weighted sum."""
        return cls._at(source, at, "WEIGHT is only for COMBINE wsum")

    @classmethod
    def several_numbers(cls, source: SourceText, at: At, word: str) -> UnfitRanking:
        """AT LEAST or QUANTUM is used with a score that is not a single number."""
        hint = "COMBINE lex compares several numbers one after another. Leave one of them out."
        return cls._at(source, at, f"{word} applies to one number, but the score has several", hint)

    @classmethod
    def no_rank(cls, source: SourceText, at: At, kind: str) -> UnfitRanking:
        """A criterion is not a number."""
        hint = "SECONDS(…) and CASE WHEN … THEN 1 ELSE 0 END make numbers."
        return cls._at(source, at, f"matches are ranked by numbers, but this is a {kind}", hint)

    @classmethod
    def a_list(cls, source: SourceText, at: At) -> UnfitRanking:
        """A value of FOR EACH or DISTINCT ON is a list."""
        return cls._at(source, at, "one value is expected here, but this is a list")

    @classmethod
    def norm(cls, source: SourceText, at: At, criterion: str, end: str) -> UnfitRanking:
        """An end of NORM is not of the criterion's kind."""
        hint = "Write the unit: NORM 0 s .. 60 s." if criterion == "duration" else "Leave the unit out."
        return cls._at(source, at, f"the criterion is a {criterion}, but an end of NORM is a {end}", hint)

    @classmethod
    def norm_order(cls, source: SourceText, at: At) -> UnfitRanking:
        """The ends of NORM are in the wrong order."""
        return cls._at(
            source,
            at,
            "the ends of NORM are in the wrong order",
            "Write the smaller number first; MIN already reverses the scale.",
        )


class UnfitAmount(PatternError):
    """A number or a duration in a ranking is not one that it can use."""

    @classmethod
    def quantum(cls, source: SourceText, at: At) -> UnfitAmount:
        """QUANTUM is 0 or less."""
        return cls._at(source, at, "QUANTUM must be a number above 0")

    @classmethod
    def number(cls, source: SourceText, at: At) -> UnfitAmount:
        """Something else is where a number is expected."""
        return cls._at(source, at, "a number is expected here")

    @classmethod
    def whole(cls, source: SourceText, at: At, word: str) -> UnfitAmount:
        """Something else is where a whole number of at least 1 is expected."""
        return cls._at(source, at, f"{word} takes a whole number of at least 1")

    @classmethod
    def unit(cls, source: SourceText, at: At, word: str) -> UnfitAmount:
        """A duration has no unit."""
        return cls._at(source, at, f"{word} takes a duration with its unit", f"{word} 4 h.")

    @classmethod
    def length(cls, source: SourceText, at: At, word: str, ticks: int) -> UnfitAmount:
        """A duration is shorter than one tick, or too long to compute with."""
        return cls._at(source, at, f"{word} is too {'short' if ticks < 1 else 'long'}")

    @classmethod
    def windows(cls, source: SourceText, at: At, most: int) -> UnfitAmount:
        """Windows follow one another too closely."""
        return cls._at(source, at, f"a match would be in more than {most} windows", "Make STEP longer.")

    @classmethod
    def zone(cls, source: SourceText, at: At, name: str) -> UnfitAmount:
        """There is no such time zone."""
        return cls._at(source, at, f"there is no time zone '{name}'", zone_hint(name))


class UnfitEpisodes(PatternError):
    """Episodes that nothing ends, or whose key some matches lack."""

    @classmethod
    def unbounded(cls, source: SourceText, at: At) -> UnfitEpisodes:
        """Nothing says how long a match may last."""
        what = "an episode ends when no later match can join it, but nothing limits how long a match may last"
        hint = "Write WITHIN 1 h, also beside a window in events, or 'limits: {longest: 12 h}' in the front matter."
        return cls._at(source, at, what, hint)

    @classmethod
    def counted(cls, source: SourceText, at: At, name: str, attr: str) -> UnfitEpisodes:
        """The events that have the key are only counted."""
        what = f"output: COUNT({name}) leaves out the events, so nothing says which {attr} a match has"
        return cls._at(source, at, what, f"Put it into a measure: MEASURES FIRST({name}.{attr}) AS {attr}.")

    @classmethod
    def severity(cls, source: SourceText, at: At, measure: str, kind: str) -> UnfitEpisodes:
        """The measure that orders the matches is not a number."""
        what = f"the matches of an episode are ordered by {measure}, which must be a number, but this is a {kind}"
        return cls._at(source, at, what, "If the measure means something else, give it another name.")

    @classmethod
    def a_set(cls, source: SourceText, at: At, name: str, attr: str) -> UnfitEpisodes:
        """The event that has the key is a set."""
        hint = f"Write BY {attr} if conditions equate it in all events, or use a measure, such as FIRST({name}.{attr})."
        return cls._at(source, at, f"{name} is a set, and its events may differ in {attr}", hint)

    @classmethod
    def not_in_all(cls, source: SourceText, at: At, name: str, attr: str) -> UnfitEpisodes:
        """Not every match has the event."""
        hint = f"Put it into a measure that every match has: MEASURES Coalesce({name}.{attr}, …) AS {attr}."
        return cls._at(source, at, f"not every match has an event {name}", hint)

    @classmethod
    def unequal(cls, source: SourceText, at: At, attr: str, names: tuple[str, ...]) -> UnfitEpisodes:
        """No condition equates the key; ``names``: those of the events of a match."""
        equal = " AND ".join(f"{one}.{attr} = {other}.{attr}" for one, other in zip(names, names[1:], strict=False))
        hint = f"Put it into a measure: MEASURES FIRST({names[0]}.{attr}) AS {attr}."
        if equal:
            hint = f"Say whose value counts, BY {names[0]}.{attr}, or equate the values: WHERE {equal}."
        return cls._at(source, at, f"the events of a match may differ in {attr}", hint)

    @classmethod
    def kind(cls, source: SourceText, at: At, kind: str) -> UnfitEpisodes:
        """The key is of a kind that matches cannot have in common."""
        what = f"the key of an episode must be a string, a number or a boolean, not a {kind}"
        return cls._at(
            source, at, what, "After BY, name the attribute that tells series apart, such as the source's key."
        )
