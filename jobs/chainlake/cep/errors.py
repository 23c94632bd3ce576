"""Errors of callers who ask the engine for what it cannot do, and of patterns that exceed their limits."""

from __future__ import annotations

from collections.abc import Sequence

from chainlake.errors import LimitExceeded, UsageError

_RAISE = "Add conditions or shorten the window, or raise kleene_members under limits: "


class WrongArgument(UsageError):
    """An argument of ``match`` is not what it has to be."""

    @classmethod
    def pattern(cls, kind: str) -> WrongArgument:
        """The pattern is not a string."""
        return cls(f"the pattern must be a string, not {kind}")

    @classmethod
    def params(cls, kind: str) -> WrongArgument:
        """The parameters are not a mapping of names to values."""
        what = f"parameters must be a mapping of names to values, not {kind}"
        return cls(what, key="params", hint="E.g. {'limit': 5}.")

    @classmethod
    def order(cls) -> WrongArgument:
        """The order is not a sequence of names."""
        hint = "List every positive name once, as text."
        return cls("an order must be a sequence of names", key="order", hint=hint)

    @classmethod
    def no_key(cls) -> WrongArgument:
        """Derived columns are asked for without a key."""
        hint = "Name the attribute that tells series apart."
        return cls("histories need a key", key="key", hint=hint)

    @classmethod
    def derived(cls, name: str) -> WrongArgument:
        """A derived column is not a history, or has the name of another column."""
        hint = "E.g. {'last5': 'history(price, 5, 10 min)'}, under a name that the events do not have."
        return cls(f"the derived column {name} is not understood", key="derived", hint=hint)


class UnfitOrder(UsageError):
    """The order of names does not fit the pattern, or the rates that it comes from do not."""

    @classmethod
    def of(cls, order: Sequence[str], positive: Sequence[str]) -> UnfitOrder:
        """``order`` does not list each of the ``positive`` names once."""
        what = f"the order {', '.join(order)} is not an order of {', '.join(positive)}"
        return cls(what, hint="List every positive name once.")

    @classmethod
    def strange(cls, names: Sequence[str], pattern: str) -> UnfitOrder:
        """The order has names that the pattern does not have."""
        return cls(f"{pattern} has no positive name {', '.join(names)}, which the order lists")

    @classmethod
    def no_rates(cls, names: Sequence[str]) -> UnfitOrder:
        """Some names have no rate."""
        return cls(f"there is no rate for {', '.join(names)}")


class UnfitOption(UsageError):
    """An option of a search does not exist, or does not fit this pattern."""

    @classmethod
    def unknown(cls, what: str, known: Sequence[str], asked: str) -> UnfitOption:
        """A word is not one of the known ones; ``what``: their kind, such as ``mode``."""
        return cls(f"the {what} must be one of {', '.join(known)}, not {asked}")

    @classmethod
    def choice_of_order(cls, asked: str) -> UnfitOption:
        """There is no such way to choose an order."""
        return cls(f"an order can be chosen by cost or by frequency, not by {asked}")

    @classmethod
    def block_rows(cls) -> UnfitOption:
        """Blocks would have no rows."""
        return cls("block_rows must be at least 1")

    @classmethod
    def not_single(cls) -> UnfitOption:
        """Options for single events are used with a pattern that is not of single events."""
        return cls(
            "shared_events, trailing and ties_in_order are for patterns of single events that need not be neighbours"
        )

    @classmethod
    def no_period(cls) -> UnfitOption:
        """Windows are to end with a period, and the pattern is not ranked by one."""
        return cls("trailing windows end with a period, so they need a pattern that is ranked by period")

    @classmethod
    def ties_in_part(cls) -> UnfitOption:
        """An order of equal times is requested for a search of only some of the events."""
        return cls("ties_in_order needs a search of all events at once")

    @classmethod
    def unranked(cls) -> UnfitOption:
        """A strategy is requested for a pattern that is not ranked."""
        return cls("a strategy applies only to a ranked pattern")

    @classmethod
    def without_choice(cls) -> UnfitOption:
        """Used events are given to a pattern that publishes all matches."""
        return cls("used events apply only to patterns that choose among their matches")

    @classmethod
    def mode(cls, mode: str, why: str) -> UnfitOption:
        """A mode is not possible; ``why``: what prevents it."""
        return cls(f"mode {mode} is not possible: {why}")

    @classmethod
    def strategy(cls, strategy: str, why: str) -> UnfitOption:
        """A strategy is not allowed; ``why``: what prevents it."""
        return cls(f"strategy {strategy} is not allowed: {why}")

    @classmethod
    def too_many_parts(cls, parts: int) -> UnfitOption:
        """The times of all parts do not fit into one clock."""
        return cls(f"{parts} parts cannot be searched at once: their times exceed 62 bits")


class UnfitEngine(UsageError):
    """A run in event order is not possible."""

    @classmethod
    def unknown(cls, what: str, asked: str, known: Sequence[str]) -> UnfitEngine:
        """An unknown word for ``what``, which is the engine or its way of negation."""
        return cls(f"there is no {what} '{asked}'", hint=f"Choose one of {', '.join(known)}.")

    @classmethod
    def undefined(cls, engine: str, pattern: str, why: str) -> UnfitEngine:
        """The engine is not defined for what the pattern asks."""
        return cls(f"{engine} is not defined for {pattern}: {why}")

    @classmethod
    def takes_no_order(cls, engine: str) -> UnfitEngine:
        """An order is given to an engine that has its own."""
        return cls(f"{engine} takes no order")


class NoEpisodes(UsageError):
    """Episodes are requested for a pattern that does not define them."""

    @classmethod
    def of(cls) -> NoEpisodes:
        """For any pattern."""
        hint = "End it with EPISODES BY door PAUSE 10 min: matches of one door at most 10 minutes apart are one row."
        return cls("the pattern does not define episodes", hint=hint)


class TooManyMatches(LimitExceeded):
    """A day has more matches than the pattern's limit allows."""

    @classmethod
    def of(cls, pattern: str, limit: int, day: object, file: str | None) -> TooManyMatches:
        """For the pattern, its limit, the day and its file."""
        what = f"the pattern {pattern} has more than {limit} matches on day {day}"
        hint = "Add conditions or shorten the window, or raise matches_per_day under limits:."
        return cls(what, file=file, key="matches_per_day", hint=hint)


class TooManyMembers(LimitExceeded):
    """There would be too many sets of events, or too large ones."""

    @classmethod
    def _usable(cls, what: str, hint: str) -> TooManyMembers:
        return cls(what, key="kleene_members", hint=hint)

    @classmethod
    def of_any_size(cls, events: int, name: str, limit: int) -> TooManyMembers:
        """More events of one window are usable for a repeated name than its sets may be made of."""
        what = f"{events} events of one window are usable for {name}*, but the limit is {limit}"
        return cls._usable(what, f"{_RAISE}(n events make 2^n - 1 sets).")

    @classmethod
    def of_size(cls, events: int, name: str, most: int, limit: int) -> TooManyMembers:
        """The same for sets of a given size; ``most``: how many events such sets may be made of."""
        what = f"{events} events of one window are usable for {name}, but its sets can be made from at most {most}"
        return cls._usable(what, f"{_RAISE}(no more sets are made than the 2^n - 1 of n = {limit} events).")

    @classmethod
    def in_event_order(cls, events: int, name: str, most: int) -> TooManyMembers:
        """The same in a run in event order."""
        hint = "In event order a set is made before it is known whether the other names will be found."
        return cls._usable(f"{events} events of one window are usable for {name}*, but the limit is {most}", hint)

    @classmethod
    def collected(cls, events: int, name: str, limit: int) -> TooManyMembers:
        """A set of all events of a kind is too large."""
        return cls(
            f"a match has {events} events of {name}, but the limit is {limit}",
            key="set_members",
            hint="Add conditions or shorten the window, ask for COLLECT sets of fewer events, "
            "or raise set_members under limits:.",
        )


class TooManyCompared(LimitExceeded):
    """To find the largest matches, those of too many events would have to be compared at a time."""

    @classmethod
    def of(cls, keep: str, pattern: str, limit: int) -> TooManyCompared:
        """For what the pattern keeps, its name and its limit."""
        what = f"{keep} of the pattern {pattern} would have to compare matches of more than {limit} events at a time"
        hint = "Add conditions or shorten the window, or raise compared_events under limits:."
        return cls(what, key="compared_events", hint=hint)
