"""What there is no machine code for."""

from __future__ import annotations


class NotCompilable(Exception):
    """The plan holds something that the generator has no code for; its text follows "no machine code for"."""

    @classmethod
    def several_events(cls, what: str) -> NotCompilable:
        """A word or a function that joins several events."""
        return cls(f"{what} of several events")

    @classmethod
    def case(cls) -> NotCompilable:
        """CASE that joins several events."""
        return cls("CASE over several events")

    @classmethod
    def text_test(cls) -> NotCompilable:
        """LIKE or MATCHES that joins several events."""
        return cls("LIKE or MATCHES over several events")

    @classmethod
    def aggregate(cls, function: str, distinct: bool) -> NotCompilable:
        """An aggregate that is not kept up to date member by member."""
        return cls(f"{function}{'(DISTINCT …)' if distinct else ''}")

    @classmethod
    def a_list(cls) -> NotCompilable:
        """A value that is a list."""
        return cls("a list")

    @classmethod
    def large(cls) -> NotCompilable:
        """Whole numbers that no machine word holds."""
        return cls("whole numbers beyond 64 bits")

    @classmethod
    def growing(cls) -> NotCompilable:
        """Whole numbers of which nobody knows that a machine word holds what is computed of them."""
        return cls("whole numbers that may pass 64 bits")

    @classmethod
    def rounded(cls) -> NotCompilable:
        """Whole numbers that are rounded before the point."""
        return cls("whole numbers that are rounded to tens")

    @classmethod
    def parts_of_tick(cls, function: str) -> NotCompilable:
        """The least or greatest of times or durations that are no whole numbers."""
        return cls(f"{function} of parts of a tick")

    @classmethod
    def loops(cls, most: int) -> NotCompilable:
        """More loops within each other than can be compiled."""
        return cls(f"more than {most} loops within each other")

    @classmethod
    def sets(cls) -> NotCompilable:
        """Several sets, one of which may be larger than the limit."""
        return cls("several repeated events, and more of one in a window than kleene_members")

    @classmethod
    def events(cls) -> NotCompilable:
        """More events than positions of 32 bits."""
        return cls("more than 2^31 events at once")
