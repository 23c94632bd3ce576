"""What an audit says about the days that a step is about to publish."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date

from chainlake.errors import AuditFailed


class DaysBroken(AuditFailed):
    """Some of the computed days are not as they should be."""

    @classmethod
    def of(cls, name: str, verdict: Verdict, *, onwards: bool, folder: str | None) -> DaysBroken:
        """For a definition whose days were not published.

        Args:
            name: of the definition.
            verdict: at least one day of it is broken.
            onwards: no day after the first broken one was published either.
            folder: where the staged rows are kept; ``None`` if they are made of published matches.
        """
        day, reason = min(verdict.broken.items())
        days = f"{len(verdict.broken)} of {len(verdict.reasons)} days"
        which = "from that day on" if onwards else "of these days"
        rest = "the matches are" if folder is None else f"the staged rows are kept in {folder}"
        what = f"the audit of {name} failed on {days}, first {day}: {reason}"
        return cls(what, hint=f"Nothing {which} was published; {rest}.")


@dataclass(frozen=True)
class Verdict:
    """Which days may be published.

    Args:
        reasons: every day that was looked at → ``None`` if it passed, else one line that names the broken expectation,
            with an example row.
    """

    reasons: Mapping[date, str | None]

    @classmethod
    def passed(cls, days: Iterable[date]) -> Verdict:
        """A verdict by which all days passed."""
        return cls(dict.fromkeys(days))

    def __and__(self, other: Verdict) -> Verdict:
        """The verdict by which days pass that pass both; else the first reason counts. Both have the same days."""
        return Verdict({day: reason or other.reasons[day] for day, reason in self.reasons.items()})

    @property
    def broken(self) -> dict[date, str]:
        """The days that did not pass, with the reason."""
        return {day: reason for day, reason in self.reasons.items() if reason is not None}

    @property
    def summary(self) -> str | None:
        """The broken days in one line; ``None`` if there are none."""
        return "; ".join(f"{day}: {reason}" for day, reason in sorted(self.broken.items()))[:1000] or None
