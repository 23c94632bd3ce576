"""What cannot be compiled to machine code."""

from __future__ import annotations


class NotCompilable(Exception):
    """The plan has something for which there is no code; its text follows "no machine code for"."""

    @classmethod
    def several_events(cls, what: str) -> NotCompilable:
        """A word or a function is applied to several events."""
        return cls(f"{what} of several events")

    @classmethod
    def case(cls) -> NotCompilable:
        """CASE is applied to several events."""
        return cls("CASE over several events")

    @classmethod
    def text_test(cls) -> NotCompilable:
        """LIKE or MATCHES is applied to several events."""
        return cls("LIKE or MATCHES over several events")

    @classmethod
    def aggregate(cls, function: str, distinct: bool) -> NotCompilable:
        """An aggregate cannot be updated member by member."""
        return cls(f"{function}{'(DISTINCT …)' if distinct else ''}")

    @classmethod
    def a_list(cls) -> NotCompilable:
        """A value is a list."""
        return cls("a list")

    @classmethod
    def large(cls) -> NotCompilable:
        """Whole numbers do not fit into a machine word."""
        return cls("whole numbers beyond 64 bits")

    @classmethod
    def growing(cls) -> NotCompilable:
        """What is computed from whole numbers may not fit into a machine word."""
        return cls("whole numbers that may exceed 64 bits")

    @classmethod
    def rounded(cls) -> NotCompilable:
        """Whole numbers are rounded to tens or more."""
        return cls("whole numbers that are rounded to tens")

    @classmethod
    def parts_of_tick(cls, function: str) -> NotCompilable:
        """The least or greatest of times or durations that are not whole ticks is asked for."""
        return cls(f"{function} of parts of a tick")

    @classmethod
    def loops(cls, most: int) -> NotCompilable:
        """There are more nested loops than can be compiled."""
        return cls(f"more than {most} nested loops")

    @classmethod
    def sets(cls) -> NotCompilable:
        """There are several sets, one of which may exceed the limit."""
        return cls("several repeated events, and more of one in a window than kleene_members")

    @classmethod
    def events(cls) -> NotCompilable:
        """There are more events than 32-bit positions."""
        return cls("more than 2^31 events at once")
