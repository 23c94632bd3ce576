"""What a caller asks of the engine that cannot be done, and the limits of a pattern."""

from __future__ import annotations

from collections.abc import Sequence

from chainlake.errors import LimitExceeded, UsageError

_RAISE = "Add conditions or shorten the window, or raise kleene_members under limits: "


class WrongArgument(UsageError):
    """An argument of ``match`` is not what it has to be."""

    @classmethod
    def pattern(cls, kind: str) -> WrongArgument:
        """The pattern is no text."""
        return cls(f"the pattern is a text, not {kind}")

    @classmethod
    def params(cls, kind: str) -> WrongArgument:
        """The parameters are no mapping of names."""
        what = f"parameters are a mapping of names to values, not {kind}"
        return cls(what, key="params", hint="E.g. {'limit': 5}.")

    @classmethod
    def order(cls) -> WrongArgument:
        """The order is no sequence of names."""
        hint = "List every positive name once, as text."
        return cls("an order is a sequence of names", key="order", hint=hint)

    @classmethod
    def no_key(cls) -> WrongArgument:
        """Derived columns are asked for, without a key."""
        hint = "Name the attribute that says whose values they are."
        return cls("histories need a key", key="key", hint=hint)

    @classmethod
    def derived(cls, name: str) -> WrongArgument:
        """A derived column is none, or has the name of another one."""
        hint = "E.g. {'last5': 'history(price, 5, 10 min)'}, under a name that the events do not have."
        return cls(f"the derived column {name} is not understood", key="derived", hint=hint)


class UnfitOrder(UsageError):
    """The order of names, or the rates that it comes from, do not fit the pattern."""

    @classmethod
    def of(cls, order: Sequence[str], positive: Sequence[str]) -> UnfitOrder:
        """For an order, and the names that it has to have."""
        what = f"the order {', '.join(order)} is not an order of {', '.join(positive)}"
        return cls(what, hint="List every positive name once.")

    @classmethod
    def strange(cls, names: Sequence[str], pattern: str) -> UnfitOrder:
        """It has names that the pattern does not have."""
        return cls(f"the order names {', '.join(names)}, which is no positive name of {pattern}")

    @classmethod
    def no_rates(cls, names: Sequence[str]) -> UnfitOrder:
        """Names without a rate."""
        return cls(f"there is no rate for {', '.join(names)}")


class UnfitOption(UsageError):
    """An option of a search cannot be had, or not with this pattern."""

    @classmethod
    def unknown(cls, what: str, known: Sequence[str], asked: str) -> UnfitOption:
        """A word that is none of the known ones of a kind, such as ``mode``."""
        return cls(f"the {what} is one of {', '.join(known)}, not {asked}")

    @classmethod
    def choice_of_order(cls, asked: str) -> UnfitOption:
        """A way to choose an order that there is not."""
        return cls(f"an order is chosen by cost or by frequency, not by {asked}")

    @classmethod
    def block_rows(cls) -> UnfitOption:
        """Blocks without rows."""
        return cls("block_rows is at least 1")

    @classmethod
    def not_single(cls) -> UnfitOption:
        """Options for single events, and a pattern with others."""
        return cls(
            "shared_events, trailing and ties_in_order are for patterns of single events that need not be neighbours"
        )

    @classmethod
    def no_period(cls) -> UnfitOption:
        """Windows that end with a period, and a pattern without one."""
        return cls("trailing windows end with a period, so they need a pattern ranked by one")

    @classmethod
    def ties_in_part(cls) -> UnfitOption:
        """An order of equal times, and a search of some events."""
        return cls("ties in order are for a search of all events at a time")

    @classmethod
    def unranked(cls) -> UnfitOption:
        """A strategy, and a pattern that is not ranked."""
        return cls("a strategy is for the best matches of a ranked pattern")

    @classmethod
    def without_choice(cls) -> UnfitOption:
        """Used events, and a pattern that gives all matches."""
        return cls("used events are for patterns that choose among their matches")

    @classmethod
    def mode(cls, mode: str, why: str) -> UnfitOption:
        """A mode that cannot be had; ``why``: what is in its way."""
        return cls(f"mode {mode} is not possible: {why}")

    @classmethod
    def strategy(cls, strategy: str, why: str) -> UnfitOption:
        """A strategy that cannot be had."""
        return cls(f"strategy {strategy} is not allowed: {why}")

    @classmethod
    def too_many_parts(cls, parts: int) -> UnfitOption:
        """Parts whose times do not fit into one clock."""
        return cls(f"{parts} parts cannot be searched at a time: their times exceed 62 bits")


class UnfitEngine(UsageError):
    """A run in event order that cannot be made."""

    @classmethod
    def unknown(cls, what: str, asked: str, known: Sequence[str]) -> UnfitEngine:
        """A word that is none of the known ones for ``what``: the engine, or the way of negation."""
        return cls(f"there is no {what} '{asked}'", hint=f"Choose one of {', '.join(known)}.")

    @classmethod
    def undefined(cls, engine: str, pattern: str, why: str) -> UnfitEngine:
        """It does not know what the pattern asks for."""
        return cls(f"{engine} is not defined for {pattern}: {why}")

    @classmethod
    def takes_no_order(cls, engine: str) -> UnfitEngine:
        """An order for one that has its own."""
        return cls(f"{engine} takes no order")


class NoEpisodes(UsageError):
    """Episodes are asked for, of a pattern that says nothing of them."""

    @classmethod
    def of(cls) -> NoEpisodes:
        """For any pattern."""
        hint = "End it with EPISODES BY door PAUSE 10 min: matches of one door at most 10 minutes apart are one row."
        return cls("the pattern does not define episodes", hint=hint)


class TooManyMatches(LimitExceeded):
    """A day has more matches than the pattern may have."""

    @classmethod
    def of(cls, pattern: str, limit: int, day: object, file: str | None) -> TooManyMatches:
        """For the pattern, its limit, the day and its file."""
        what = f"the pattern {pattern} has more than {limit} matches on day {day}"
        hint = "Add conditions or shorten the window, or raise matches_per_day under limits:."
        return cls(what, file=file, key="matches_per_day", hint=hint)


class TooManyMembers(LimitExceeded):
    """Sets of events would be too many or too large."""

    @classmethod
    def _usable(cls, what: str, hint: str) -> TooManyMembers:
        return cls(what, key="kleene_members", hint=hint)

    @classmethod
    def of_any_size(cls, events: int, name: str, limit: int) -> TooManyMembers:
        """More events of one window are usable for a repeated name than its sets may be made of."""
        what = f"{events} events of one window are usable for {name}*, and the limit is {limit}"
        return cls._usable(what, f"{_RAISE}(n events make 2^n - 1 sets).")

    @classmethod
    def of_size(cls, events: int, name: str, most: int, limit: int) -> TooManyMembers:
        """The same where sets have a size; ``most``: events that such sets may be made of."""
        what = f"{events} events of one window are usable for {name}, and sets of its size are made of {most} at most"
        return cls._usable(what, f"{_RAISE}(no more sets are made than the 2^n - 1 of n = {limit} events).")

    @classmethod
    def in_event_order(cls, events: int, name: str, most: int) -> TooManyMembers:
        """The same in a run in event order."""
        hint = "In event order a set is made before it is known whether the other names will be found."
        return cls._usable(f"{events} events of one window are usable for {name}*, and the limit is {most}", hint)

    @classmethod
    def collected(cls, events: int, name: str, limit: int) -> TooManyMembers:
        """A set of all events of a kind is too large."""
        return cls(
            f"a match has {events} events of {name}, and the limit is {limit}",
            key="set_members",
            hint="Add conditions or shorten the window, ask for COLLECT sets of fewer events, "
            "or raise set_members under limits:.",
        )


class TooManyCompared(LimitExceeded):
    """The largest matches cannot be told without a look at too many events at a time."""

    @classmethod
    def of(cls, keep: str, pattern: str, limit: int) -> TooManyCompared:
        """For what the pattern keeps, its name and its limit."""
        what = f"{keep} of the pattern {pattern} would have to compare matches of more than {limit} events at a time"
        hint = "Add conditions or shorten the window, or raise compared_events under limits:."
        return cls(what, key="compared_events", hint=hint)
