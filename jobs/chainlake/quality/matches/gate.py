"""The gate of ``matches.<pattern>``: what must be true of matches before they are published, and afterwards.

Every expectation of the suite looks at one column, row by row, and if it holds for two values, it holds for all values
between them. So Great Expectations is shown only three rows per day, however many matches there are: the smallest value
of each measure, the largest, and null wherever a match of the day has null. Violations are then counted in the rows of
the day.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from chainlake.lake.sql.duck import connected
from chainlake.lake.sql.scan import literal, quoted
from chainlake.quality.audit import Audit, AuditResult
from chainlake.quality.days import per_day, span
from chainlake.quality.frames import nullable
from chainlake.quality.matches.files import Matches, MatchFiles
from chainlake.quality.matches.measures import MEASURES, column_of
from chainlake.quality.matches.rules import MatchRules, rules_of
from chainlake.quality.templates import UnfitTemplate, instantiate, template_path
from chainlake.quality.verdict import Verdict

if TYPE_CHECKING:
    import pandas as pd

    from chainlake.cep.pattern import Pattern

TEMPLATE = "matches"
KEY = ("match_id", "decision_ts")
#: How many rows of a broken day are looked at for a message, broken rows first.
SHOWN = 100_000
_DAY = "decision_day"
#: A failure in one of these columns means that rows belong to no day of the run.
_UNDATED = (_DAY, "decision_ts")
#: Columns whose extremes are all their values on a day, so that they can be compared with a set.
_WHOLE = (_DAY, "names_fit")


def audit_matches(audit: Audit, pattern: Pattern | MatchRules, files: MatchFiles, days: Iterable[date]) -> Verdict:
    """Which days of staged matches may be published.

    Args:
        audit: the application's audit.
        pattern: a compiled pattern, or its rules.
        files: the matches, which should all be decided on ``days``, and the events that they may bind.
        days: the UTC days that the run owns.

    Raises:
        DefinitionError: three rows per day cannot decide an expectation of the suite.
    """
    rules = pattern if isinstance(pattern, MatchRules) else rules_of(pattern)
    with connected(audit.home, len(os.sched_getaffinity(0))) as con:
        return judge(audit, rules, files.read_by(con, rules), days)


def judge(audit: Audit, rules: MatchRules, matches: Matches, days: Iterable[date]) -> Verdict:
    """The verdict of :func:`audit_matches` on matches that a connection reads; arguments as there."""
    owned = sorted(days)
    suite = suite_of(rules, owned)
    broken = _broken(suite)
    if rules.lacking(matches.columns):
        # Nothing can be measured, and the suite says which columns are missing.
        extremes = _without_rows(matches.columns)
    else:
        extremes = three_rows(*matches.aggregated())

    def run(day: date | None, details: bool) -> AuditResult:
        frame = extremes if day is None else extremes[extremes[_DAY] == str(day)]
        label = f"matches.{rules.pattern} of {day or span(owned)}"
        shown: list[int] = []

        def rows() -> pd.DataFrame:
            if not len(frame):
                return frame
            found = matches.rows(None if day is None else str(day), broken, SHOWN)
            shown.append(len(found))
            return nullable(found)

        result = audit.run(suite, frame, label, key=KEY, details=rows if details else False)
        if shown == [SHOWN]:
            return replace(result, label=f"{label}, of which {SHOWN} matches were checked, broken ones first")
        return result

    return Verdict(per_day(owned, run, _UNDATED))


def suite_of(rules: MatchRules, days: Sequence[date]) -> dict[str, Any]:
    """The suite for the matches of a pattern on some days."""
    params = {
        "pattern": rules.pattern,
        "columns": [*map(column_of, rules.columns), *MEASURES],
        "window_us": rules.window_us,
        "decision": _decision(rules),
        "days": [day.isoformat() for day in days],
    }
    return instantiate(TEMPLATE, params)


def _decision(rules: MatchRules) -> str:
    if rules.pause_us is not None:
        return "the end of its stretch + pause" + (", start_ts + W at the latest" if rules.waits else "")
    return "start_ts + W" if rules.waits else "end_ts"


def three_rows(found: pa.Table, ordered: Mapping[str, bool]) -> pd.DataFrame:
    """For each day the smallest values, the largest, and null wherever a row has null; a string only shows as present.

    Args:
        found, ordered: the result of :meth:`chainlake.quality.matches.files.Matches.aggregated`.
    """
    rows = found["rows"].to_pylist()
    columns: dict[str, pa.Array] = {_DAY: pa.concat_arrays(3 * [found[_DAY].combine_chunks()])}
    for at, (name, both) in enumerate(ordered.items()):
        counts = found[f"n{at}"].to_pylist()
        if both:
            low, high = (found[f"{end}{at}"].combine_chunks() for end in ("lo", "hi"))
        else:
            low = high = pa.array(["present" if n else None for n in counts], pa.string())
        lacking = pa.array([n < of for n, of in zip(counts, rows, strict=True)], pa.bool_())
        columns[name] = pa.concat_arrays([low, high, pc.if_else(lacking, pa.scalar(None, low.type), high)])
    return nullable(pa.table(columns))


def _without_rows(columns: Sequence[str]) -> pd.DataFrame:
    return nullable(pa.table({column_of(name): pa.array([], pa.string()) for name in columns}))


def _broken(suite: Mapping[str, Any]) -> str:
    """SQL on the measures that is true for the rows that break an expectation of the suite.

    Raises:
        DefinitionError: the extremes of a column do not decide an expectation.
    """
    tests = []
    for one in suite["expectations"]:
        kind, wanted = one["type"], one["kwargs"]
        column = quoted(wanted.get("column", ""))
        if kind == "expect_column_values_to_not_be_null":
            tests.append(f"{column} IS NULL")
        elif kind == "expect_column_values_to_be_null":
            tests.append(f"{column} IS NOT NULL")
        elif kind == "expect_column_values_to_be_between":
            bounds = (("<", wanted.get("min_value")), (">", wanted.get("max_value")))
            tests += [f"{column} {beyond} {bound}" for beyond, bound in bounds if bound is not None]
        elif kind == "expect_column_values_to_be_in_set" and wanted["column"] in _WHOLE:
            tests.append(f"{column} NOT IN ({', '.join(map(_value, wanted['value_set']))})")
        elif kind != "expect_table_columns_to_match_set":
            raise UnfitTemplate.undecided(template_path(TEMPLATE), kind, wanted.get("column", "the table"))
    # Null breaks no expectation except those about null.
    return " OR ".join(f"coalesce({test}, false)" for test in tests)


def _value(value: object) -> str:
    return literal(value) if isinstance(value, str) else str(value)
