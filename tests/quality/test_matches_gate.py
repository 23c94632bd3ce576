"""The gate of match tables: good rows pass, and every expectation goes red on a row planted against it."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import chainlake.quality.matches.gate as matches_gate
from chainlake.errors import DefinitionError
from chainlake.paths import Home
from chainlake.quality import Audit, AuditResult, MatchFiles, MatchRules, audit_matches
from chainlake.quality.matches.files import Matches
from chainlake.quality.templates import template_path
from chainlake.schemas.matches import MatchName, MatchShape, matches_table
from chainlake.schemas.table import TIMESTAMP

pytestmark = pytest.mark.slow

DAYS = [date(2013, 10, 7), date(2013, 10, 8)]
T0 = datetime(2013, 10, 7, 13, 30, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
FIELDS = (("event_id", pa.string()), ("ts", TIMESTAMP), ("type", pa.string()), ("ticker", pa.string()))
NAMES = (MatchName("a", False, FIELDS), MatchName("b", True, FIELDS), MatchName("c", False, FIELDS))
TABLE = matches_table(MatchShape("p", 1, "stock", NAMES))
AB, ABC = frozenset({"a", "b"}), frozenset({"a", "b", "c"})
#: OR(SEQ(A a, B+ b), SEQ(A a, B+ b, C c)) within ten minutes.
RULES = MatchRules(
    "p", 600_000_000, False, {"a": False, "b": True, "c": False},
    ((AB, frozenset({("a", "b")})), (ABC, frozenset({("a", "b"), ("b", "c"), ("a", "c")}))),
)  # fmt: skip


def event(number: int, minute: int, day: int = 0) -> dict[str, Any]:
    return {"event_id": f"e{number}", "ts": T0 + day * timedelta(days=1) + minute * MINUTE, "type": "B", "ticker": "X"}


def match(number: int, day: int = 0) -> dict[str, Any]:
    """a at 0, b at 1 and 2, c at 3 minutes: events 10·number and the following."""
    events = [event(10 * number + i, i, day) for i in range(4)]
    return {
        "match_id": f"{number:032x}",
        "decision_ts": events[3]["ts"],
        "start_ts": events[0]["ts"],
        "end_ts": events[3]["ts"],
        "a": events[0],
        "b": events[1:3],
        "c": events[3],
    }


GOOD = [match(1), match(2), match(3, day=1)]


@pytest.fixture(scope="module")
def audit(tmp_path_factory: pytest.TempPathFactory) -> Audit:
    root = tmp_path_factory.mktemp("quality")
    return Audit(Home(root=root, lake=str(root / "lake"), config=root, cache=root))


@pytest.fixture
def files(tmp_path: Path) -> Callable[..., MatchFiles]:
    """Rows as files beside the events e0 to e99."""

    def written(rows: list[dict[str, Any]], schema: pa.Schema | None = None) -> MatchFiles:
        pq.write_table(pa.table({"event_id": [f"e{n}" for n in range(100)]}), tmp_path / "events.parquet")
        plain = schema or pa.schema([pa.field(f.name, f.type) for f in TABLE.arrow()])
        pq.write_table(pa.Table.from_pylist(rows, schema=plain), tmp_path / "matches.parquet")
        return MatchFiles([str(tmp_path / "matches.parquet")], [str(tmp_path / "events.parquet")])

    return written


Files = Callable[..., MatchFiles]


def test_good_rows_pass_and_are_not_looked_at_one_by_one(
    audit: Audit, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Matches, "rows", lambda *_: pytest.fail("rows were looked at"))
    two_names = {**match(4), "c": None, "end_ts": T0 + 2 * MINUTE, "decision_ts": T0 + 2 * MINUTE}
    verdict = audit_matches(audit, RULES, files([*GOOD, two_names]), DAYS)
    assert verdict.reasons == dict.fromkeys(DAYS) and not verdict.broken and verdict.summary is None


def test_no_rows_pass(audit: Audit, files: Files) -> None:
    for nothing in (files([]), MatchFiles([], [])):
        assert audit_matches(audit, RULES, nothing, DAYS).reasons == dict.fromkeys(DAYS)


def test_matches_that_wait_decide_at_the_end_of_the_window(audit: Audit, files: Files) -> None:
    waiting = MatchRules("p", RULES.window_us, True, RULES.names, RULES.branches)
    late = [{**row, "decision_ts": row["start_ts"] + 10 * MINUTE} for row in GOOD]
    assert not audit_matches(audit, waiting, files(late), DAYS).broken
    early = audit_matches(audit, waiting, files(GOOD), DAYS).broken
    assert sorted(early) == DAYS and "decision_ts is start_ts + W" in early[DAYS[0]]


def _later(row: dict[str, Any]) -> None:
    """c eleven minutes after a, all else in line with it."""
    row["c"]["ts"] = row["end_ts"] = row["decision_ts"] = T0 + 11 * MINUTE


def _swapped(row: dict[str, Any]) -> None:
    row["b"][1]["ts"], row["c"]["ts"] = row["c"]["ts"], row["b"][1]["ts"]


def _tie(row: dict[str, Any]) -> None:
    """Strictly before means that equal times are out of order."""
    row["b"][0]["ts"] = T0


#: What is broken in a row → (how, words of the expectation that must name it).
PLANTED: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "no match_id": (lambda r: r.update(match_id=None), "every match has an id"),
    "no decision_ts": (lambda r: r.update(decision_ts=None), "every match has a decision time"),
    "no start_ts": (lambda r: r.update(start_ts=None), "every match has a start"),
    "no end_ts": (lambda r: r.update(end_ts=None), "every match has an end"),
    "no event id": (lambda r: r["a"].update(event_id=None), "every bound event has an id"),
    "no event id in an array": (lambda r: r["b"][0].update(event_id=None), "every bound event has an id"),
    "same key twice": (lambda r: r.update(match_id=f"{2:032x}"), "(match_id, decision_ts) is unique"),
    "too long": (_later, "the match fits into the window"),
    "wrong start": (lambda r: r.update(start_ts=T0 + MINUTE), "start_ts is the time of the earliest"),
    "wrong end": (lambda r: r.update(end_ts=T0 + 4 * MINUTE, decision_ts=T0 + 4 * MINUTE), "end_ts is the time of"),
    "wrong decision": (lambda r: r.update(decision_ts=T0 + 5 * MINUTE), "decision_ts is end_ts"),
    "a name missing": (lambda r: r.update(b=None), "exactly the names of one branch"),
    "an empty array": (lambda r: r.update(b=[]), "exactly the names of one branch"),
    "out of order": (_swapped, "keep the order of the pattern"),
    "a tie": (_tie, "keep the order of the pattern"),
    "an event twice": (lambda r: r["b"][1].update(event_id="e10"), "no event is bound twice"),
    "an unknown event": (lambda r: r["c"].update(event_id="e999"), "every bound event exists"),
}


USED_UP = "no event is bound that an earlier match has used up"


def test_events_that_an_earlier_match_has_used_up(audit: Audit, files: Files) -> None:
    fields = (*FIELDS, ("seq", pa.int64()))
    names = tuple(replace(name, fields=fields) for name in NAMES)
    schema = matches_table(MatchShape("p", 1, "stock", names)).arrow()
    good, again = [with_seq(row) for row in GOOD], with_seq(match(4))
    again["b"][0] = good[0]["b"][0]
    consuming = replace(RULES, consume="all")
    assert not audit_matches(audit, consuming, files(good, schema), DAYS).broken
    assert not audit_matches(audit, RULES, files([*good, again], schema), DAYS).broken
    broken = audit_matches(audit, consuming, files([*good, again], schema), DAYS).broken
    assert list(broken) == DAYS[:1] and USED_UP in broken[DAYS[0]]


def with_seq(row: dict[str, Any]) -> dict[str, Any]:
    """The match of a pattern that uses events up: each event says which of one time is the earlier one."""
    found = deepcopy(row)
    for one in (found["a"], *found["b"], found["c"]):
        one["seq"] = 0
    return found


def planted() -> list[dict[str, Any]]:
    """One broken match per case, all on the first day; number 10 + position, unless the case takes its id away."""
    rows = []
    for number, (breaking, _) in enumerate(PLANTED.values(), 10):
        row = deepcopy(match(1))
        row["match_id"] = f"{number:032x}"
        breaking(row)
        rows.append(row)
    return rows


def test_each_broken_row_is_found_by_its_expectation(
    audit: Audit, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All planted rows at once; every expectation must show the rows that were planted against it."""
    results: list[AuditResult] = []
    plain = Audit.run
    monkeypatch.setattr(Audit, "run", lambda *args, **kwargs: results.append(plain(*args, **kwargs)) or results[-1])
    broken = audit_matches(audit, RULES, files([*planted(), *GOOD[1:]]), DAYS[:1]).broken
    assert "every match has an id" in broken[DAYS[0]] and "\n" not in broken[DAYS[0]]
    found = {failure.message: failure for failure in results[0].failures}
    counts: dict[str, int] = {}
    for row, (case, (_, words)) in zip(planted(), PLANTED.items(), strict=True):
        failure = next((f for message, f in found.items() if words in message), None)
        assert failure is not None, case
        assert row["match_id"] in [example["match_id"] for example in failure.examples], (case, str(failure))
        counts[failure.message] = counts.get(failure.message, 0) + 1
    said = {words for _, words in PLANTED.values()} | {"a day that this run owns"}
    assert {message for message in found if not any(words in message for words in said)} == set()
    # What one case plants can break others; no expectation misses one that was planted against it.
    assert all((found[message].count or 0) >= count for message, count in counts.items())
    assert found["every match has an id"].count == 1 and found["every bound event has an id"].count == 2


@pytest.mark.parametrize("case", PLANTED)
def test_a_broken_row_alone_is_found(audit: Audit, files: Files, case: str) -> None:
    row = planted()[list(PLANTED).index(case)]
    verdict = audit_matches(audit, RULES, files([row, match(2), match(3)]), DAYS[:1])
    assert verdict.broken, case


def test_names_may_be_those_of_measures(audit: Audit, files: Files) -> None:
    names = {"a": "copies", "b": "event_ids", "c": "unknown_event"}
    schema = pa.schema([pa.field(names.get(f.name, f.name), f.type) for f in TABLE.arrow()])
    renamed = [{names.get(name, name): value for name, value in row.items()} for row in GOOD]
    branches = tuple(
        (frozenset(names[n] for n in bound), frozenset((names[x], names[y]) for x, y in order))
        for bound, order in RULES.branches
    )
    rules = replace(RULES, names={names[n]: kleene for n, kleene in RULES.names.items()}, branches=branches)
    assert not audit_matches(audit, rules, files(renamed, schema), DAYS).broken
    twice = audit_matches(audit, rules, files(renamed + renamed, schema), DAYS).broken
    assert sorted(twice) == DAYS and all("is unique" in reason for reason in twice.values())
    unknown = [{**row, "unknown_event": {**row["unknown_event"], "event_id": "e999"}} for row in renamed[:1]]
    assert "unknown_event=e999" in audit_matches(audit, rules, files(unknown, schema), DAYS).broken[DAYS[0]]


def test_a_bad_day_alone_is_held_back(audit: Audit, files: Files) -> None:
    bad = {**match(1), "c": {**match(1)["c"], "event_id": "e999"}}
    verdict = audit_matches(audit, RULES, files([bad, *GOOD[1:]]), DAYS)
    assert list(verdict.broken) == DAYS[:1] and verdict.reasons[DAYS[1]] is None
    reason = verdict.broken[DAYS[0]]
    assert "every bound event exists" in reason and "broken by 1 row" in reason
    assert f"match_id={1:032x}" in reason and "unknown_event=e999" in reason and "2013-10-07" in reason
    assert verdict.summary == f"2013-10-07: {reason}"


def test_of_more_rows_than_are_looked_at_the_broken_ones_are_named(
    audit: Audit, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matches_gate, "SHOWN", 2)
    rows = [match(n) for n in (1, 2, 4, 5)] + [match(3, day=1)]
    rows[3]["c"]["event_id"] = "e999"
    reason = audit_matches(audit, RULES, files(rows), DAYS).broken[DAYS[0]]
    assert f"match_id={5:032x}" in reason and "of which 2 matches were checked, broken ones first" in reason


def test_a_match_of_a_foreign_day_fails_every_day(audit: Audit, files: Files) -> None:
    outcome = audit_matches(audit, RULES, files([*GOOD, match(4, day=2)]), DAYS).broken
    assert sorted(outcome) == DAYS and all("a day that this run owns" in reason for reason in outcome.values())
    assert f"match_id={4:032x}" in outcome[DAYS[0]]


def test_a_missing_or_extra_column_fails_every_day(audit: Audit, files: Files) -> None:
    plain = pa.schema([pa.field(f.name, f.type) for f in TABLE.arrow()])
    missing = audit_matches(audit, RULES, files(GOOD[:1], plain.remove(plain.get_field_index("c"))), DAYS).broken
    extra = audit_matches(audit, RULES, files(GOOD[:1], plain.append(pa.field("extra", pa.int64()))), DAYS).broken
    for outcome, words in ((missing, "missing=c"), (extra, "extra")):
        assert sorted(outcome) == DAYS and all("the columns are those of" in reason for reason in outcome.values())
        assert words in str(outcome)


@pytest.mark.parametrize(
    ("kind", "column"),
    [("expect_column_values_to_be_unique", "match_id"), ("expect_column_values_to_be_in_set", "copies")],
)
def test_an_expectation_that_extremes_do_not_decide_is_refused(
    audit: Audit, files: Files, monkeypatch: pytest.MonkeyPatch, kind: str, column: str
) -> None:
    plain = matches_gate.instantiate

    def more(name: str, params: dict[str, Any]) -> dict[str, Any]:
        suite = plain(name, params)
        suite["expectations"].append({"type": kind, "kwargs": {"column": column, "value_set": [1]}})
        return suite

    monkeypatch.setattr(matches_gate, "instantiate", more)
    with pytest.raises(DefinitionError, match=f"{kind} of {column}") as caught:
        audit_matches(audit, RULES, files(GOOD), DAYS)
    assert caught.value.file == str(template_path("matches"))


def test_what_is_added_to_the_suite_is_tested_and_its_rows_are_found(
    audit: Audit, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The suite is filled in once: what is run is what rows are looked for by."""
    filled: list[str] = []
    plain = matches_gate.instantiate

    def more(name: str, params: dict[str, Any]) -> dict[str, Any]:
        filled.append(name)
        suite = plain(name, params)
        kwargs = {"column": "span_us", "max_value": -1}
        added = {"type": "expect_column_values_to_be_between", "kwargs": kwargs, "description": "a match is no span"}
        suite["expectations"].append(added)
        return suite

    monkeypatch.setattr(matches_gate, "instantiate", more)
    outcome = audit_matches(audit, RULES, files(GOOD), DAYS).broken
    assert filled == ["matches"] and outcome
    for reason in outcome.values():
        assert "a match is no span: broken by" in reason and "match_id=" in reason


def test_every_expectation_of_the_template_is_broken_here() -> None:
    said = [words for _, words in PLANTED.values()]
    said += ["the columns are those of", "a day that this run owns", USED_UP]
    for expectation in json.loads(template_path("matches").read_text())["expectations"]:
        described = expectation["description"].replace("$decision", "end_ts")
        assert any(words in described for words in said), described
