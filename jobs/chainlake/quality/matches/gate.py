"""Gate of ``matches.<pattern>``: what must be true of staged matches before they are published (design §7).

Great Expectations runs on pandas where the staged output is small, the usual case, and else on Spark: with Spark each
expectation or two is a job, and a job of a few dozen rows costs about as much as the whole suite does in pandas. Of
large outputs it first sees the extremes only, which decide whether everything passes
(chainlake.quality.matches.extremes).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

from chainlake.lake.commits.rows import SMALL_ROWS
from chainlake.quality.audit import Audit, AuditResult
from chainlake.quality.days import per_day, span
from chainlake.quality.frames import nullable
from chainlake.quality.matches.extremes import extremes, extremes_in_files, tell_all
from chainlake.quality.matches.files import MatchFiles
from chainlake.quality.matches.measures import apart, measures, small_measures
from chainlake.quality.matches.sql import MEASURES, MatchRules, bound_column, has_columns, rules_of
from chainlake.quality.templates import instantiate
from chainlake.schemas.matches import FIXED_COLUMNS

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame

KEY = ("match_id", "decision_ts")
#: A failure of these means rows that belong to no day of the run.
_UNDATED = ("decision_day", "decision_ts")


def audit_matches(
    audit: Audit,
    pattern: Any,
    staged: DataFrame,
    days: Iterable[date],
    events: DataFrame,
    *,
    small: int = SMALL_ROWS,
    files: MatchFiles | None = None,
) -> dict[date, str | None]:
    """Which days of staged matches may be published.

    Args:
        audit: the application's audit.
        pattern: a compiled pattern, or its :class:`MatchRules`.
        staged: rows in the form of the pattern's match table; all should decide on ``days``.
        days: the UTC days that the run owns.
        events: events of the read range, at least ``event_id``.
        small: up to so many rows the suite runs on the driver; 0 if they are known to be many.
        files: the same rows as files at hand, from which the extremes of many are had without Spark.

    Returns:
        day → ``None`` if it passed, else one line naming the broken expectation with an example row.
    """
    rules = pattern if isinstance(pattern, MatchRules) else rules_of(pattern)
    if not has_columns(rules, staged.columns):
        return judge(audit, rules, nullable(apart(staged).limit(0).toArrow()), days)  # the suite says what is missing
    frame = small_measures(rules, staged, events, small) if small else None
    if frame is not None:
        return judge(audit, rules, frame, days)
    owned = sorted(days)
    if tell_all(instantiate("matches", suite_params(rules, owned))):
        frame = extremes_in_files(rules, staged.columns, files) if files else extremes(rules, staged, events)
        if frame is not None and _run(audit, rules, frame, owned, None, False).success:
            return dict.fromkeys(owned)
    with measures(rules, staged, events) as measured:
        return judge(audit, rules, measured, owned)


def suite_params(rules: MatchRules, days: Sequence[date]) -> dict[str, Any]:
    """What the template is filled with."""
    return {
        "pattern": rules.pattern,
        "columns": [*FIXED_COLUMNS, *map(bound_column, rules.names), *MEASURES],
        "window_us": rules.window_us,
        "decision": "start_ts + W" if rules.waits else "end_ts",
        "days": [day.isoformat() for day in days],
    }


def judge(
    audit: Audit, rules: MatchRules, measured: DataFrame | pd.DataFrame, days: Iterable[date]
) -> dict[date, str | None]:
    """Run the suite on measured rows, of Spark or of pandas; arguments and result as in :func:`audit_matches`."""
    owned = sorted(days)
    return per_day(owned, lambda day, details: _run(audit, rules, measured, owned, day, details), _UNDATED)


def _run(
    audit: Audit,
    rules: MatchRules,
    measured: DataFrame | pd.DataFrame,
    owned: Sequence[date],
    day: date | None,
    details: bool,
) -> AuditResult:
    """The suite on the rows of one day, or of all days."""
    rows = measured if day is None else measured[measured["decision_day"] == str(day)]
    label = f"matches.{rules.pattern} of {day or span(owned)}"
    return audit.run("matches", rows, suite_params(rules, owned), label, key=KEY, details=details)
