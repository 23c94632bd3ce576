"""Worked cases of ranked patterns, as queries of the language, and the rows of a search in the form of the cases."""

from __future__ import annotations

import itertools
import json
import math
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pytest

from chainlake.cep.library import from_dicts, match
from chainlake.cep.matches.best import ranked_rows, thinned
from chainlake.cep.matches.candidates import find_candidates, keeps_all
from chainlake.cep.matches.rows import match_rows
from chainlake.cep.pattern import Pattern, compile_pattern
from chainlake.cep.pattern_shape import match_shape
from chainlake.cep.search.bounding import cut, thresholds
from chainlake.cep.search.bounding.strategy import strategies
from chainlake.cep.search.options import SearchOptions
from chainlake.cep.search.statistics import Statistics
from chainlake.errors import UsageError
from chainlake.schemas.matches import matches_table
from tests.cep import ranking_by_definition as definition
from tests.cep import ranking_queries as queries
from tests.cep.context_cases import events_of as plain_events
from tests.cep.context_cases import structure_of
from tests.cep.interpreted import no_compiler


def _score(score: dict[str, Any]) -> str:
    weights = score.get("weights", [None] * len(score["criteria"]))
    found = []
    for one, weight in zip(score["criteria"], weights, strict=True):
        text = f"{one['dir'].upper()}({one['expr']})"
        text += " NORM {} .. {}".format(*one["norm"]) if "norm" in one else ""
        found.append(text + (f" WEIGHT {weight}" if weight is not None else ""))
    return f"RANK BY {', '.join(found)}" + (f" COMBINE {score['combine']}" if "combine" in score else "")


def _period(scope: Any) -> str:
    if scope in (None, "global"):
        return "ALL"
    if scope["kind"] == "hop":
        return f"HOP {scope['size']} STEP {scope['step']} OFFSET {scope.get('offset', 0)}"
    return f"BUCKET {scope['size']} BY {scope['by'].upper()} OFFSET {scope.get('offset', 0)}"


def text_of(query: dict[str, Any]) -> str:
    """The query of a case as pattern text; what the text cannot say is among ``options_of``."""
    pattern = query["pattern"]
    if "branch_scores" in query:
        parts = zip(pattern["items"], query["branch_scores"], strict=True)
        text = f"PATTERN OR({', '.join(f'{structure_of(one)} {_score(score)}' for one, score in parts)})"
    else:
        text = f"PATTERN {structure_of(pattern)}"
    text += f" WHERE {' AND '.join(f'({one})' for one in query['where'])}" if query.get("where") else ""
    text += f" WITHIN {query['within']}" if "within" in query else ""
    text += f" {_score(query['score'])}" if "score" in query else ""
    text += (
        f" TOP {query['k']}{' WITH TIES' if query.get('ties') == 'with_ties' else ''} PER {_period(query.get('scope'))}"
    )
    text += f" FOR EACH {', '.join(query['per'])}" if query.get("per") else ""
    if "distinct_on" in query:
        text += f" DISTINCT ON {', '.join(query['distinct_on']['key'])} AT MOST {query['distinct_on']['m']}"
    text += " NON OVERLAPPING" if query.get("non_overlap") else ""
    text += f" AT LEAST {query['min_score']}" if "min_score" in query else ""
    return text + (f" QUANTUM {query['quantum']}" if "quantum" in query else "")


def options_of(query: dict[str, Any]) -> dict[str, Any]:
    """What only a caller of the library can ask for."""
    return {
        "ties_in_order": query.get("order") == "total",
        "shared_events": not query.get("distinct_events", True),
        "trailing": query.get("component_window") == "trailing",
    }


def events_of(case: dict[str, Any]) -> list[dict[str, Any]]:
    """The events of a case."""
    found = plain_events(case)
    for event in found:
        event["attrs"] = {k: float("nan") if v == "NaN" else v for k, v in event["attrs"].items()}
    return found


#: Rows, and what was counted in each list, in the form of the cases; None where not all matches were looked at.
Found = tuple[list[dict[str, Any]], list[dict[str, Any]] | None]
#: How often each strategy was used, and on how many of these searches it left something out.
used: Counter[str] = Counter()


def _found(text: str, events: list[dict[str, Any]], pattern: Pattern, **options: Any) -> Found:
    """What a search finds."""
    statistics = Statistics()
    names, of_all_time = [name.name for name in pattern.names], pattern.extras.ranking.rule.period.kind == "all"
    rows = [
        {
            "scope": None if of_all_time else [one["scope_start"], one["scope_end"]],
            "per": one.get("per", []),
            **{name: one[name] for name in ("rank", "score", "criteria")},
            "match": {name: one[name] for name in names if name in one},
        }
        for one in match(text, events, statistics=statistics, **options)
    ]
    scopes = [
        {
            "scope": None if of_all_time else [one.start, one.end],
            "per": json.loads(one.per),
            "candidates": one.candidates,
            "excluded_null": one.excluded_null,
            "below_min_score": one.below_min_score,
        }
        for one in statistics.lists
    ]
    used[statistics.best.strategy] += 1
    used[f"{statistics.best.strategy} cut"] += bool(statistics.best.cut)
    return rows, scopes if statistics.best.all_seen else None


def published(
    pattern: Pattern, events: list[dict[str, Any]], cuts: list[int], draw: random.Random, **options: Any
) -> pa.Table:
    """What a lake keeps of the matches: of stretches of time, each searched by itself, put together in any groups.

    Args:
        pattern: with a ranking.
        events: in any order.
        cuts: where one stretch ends and the next begins.
        draw: groups them.
        options: of ``SearchOptions``, and ``backend``.
    """
    table, _ = from_dicts(events)
    schema = matches_table(match_shape(pattern, key="k", types={one.name: one.type for one in table.schema})).arrow()
    ts, backend = table["ts"].to_pylist(), options.pop("backend", "auto")
    tables = [schema.empty_table()]
    for lo, hi in itertools.pairwise([min(ts), *cuts, max(ts) + 1 + min(pattern.late_us, 1 << 40)]):
        begin, end = pattern.read_range(lo, hi)
        mine = table.take([row for row, at in enumerate(ts) if begin <= at < end])
        statistics, search = Statistics(), SearchOptions(**options)
        found = find_candidates(
            pattern, mine, own=(lo, hi), backend=backend, statistics=statistics, options=search
        )  # fmt: skip
        tables += [match_rows(pattern, mine, batch, schema) for batch in found]
        used[f"part {statistics.best.strategy}"] += 1
        used[f"part {statistics.best.strategy} cut"] += bool(statistics.best.cut)
    while len(tables) > 1:
        draw.shuffle(tables)
        some = draw.randrange(2, len(tables) + 1)
        together = pa.concat_tables(tables[:some])
        tables = [together if keeps_all(pattern) else thinned(pattern, together), *tables[some:]]
    return tables[0].sort_by([("match_id", "ascending"), ("decision_ts", "ascending")])


def from_lake(pattern: Pattern, rows: pa.Table, ids: dict[str, Any]) -> Found:
    """The best of what a lake keeps, in the form of the cases; nothing is counted there."""
    rule = pattern.extras.ranking.rule
    best = ranked_rows(pattern, rows, -(1 << 62), 1 << 62)
    starts, ends = (best[name].cast(pa.int64()).to_pylist() for name in ("scope_start", "scope_end"))
    repeated = {name.name for name in pattern.names if name.kleene}
    found = []
    for start, end, row in zip(starts, ends, best.to_pylist(), strict=True):
        bound: dict[str, Any] = {}
        for event in row["events"]:
            one = ids[event["event_id"]]
            if event["name"] in repeated:
                bound.setdefault(event["name"], []).append(one)
            else:
                bound[event["name"]] = one
        found.append({
            "scope": None if rule.period.kind == "all" else [start, end],
            "per": json.loads(row["per"]),
            "rank": row["rank"],
            "score": row["scores"] if rule.scores[0].combine == "lex" else row["scores"][0],
            "criteria": row["criteria"],
            "match": bound,
        })  # fmt: skip
    return found, None


def runs(
    text: str,
    events: list[dict[str, Any]],
    options: dict[str, Any],
    backend: str,
    draw: random.Random,
    *,
    few: bool = False,
) -> Iterator[tuple[str, Found]]:
    """How each run was made, and what it found: rows and order of binding shuffled, and days searched one by one."""
    pattern = compile_pattern(text, strict_units=False)
    names = [name.name for name in pattern.names]
    moved = {name: options.get(name, False) for name in ("ties_in_order", "trailing")}
    allowed = strategies(pattern, **moved).allowed
    for number in range(1 if few else 3):
        order = names if number else None
        for strategy in allowed:
            try:
                found = _found(text, events, pattern, backend=backend, order=order, strategy=strategy, **options)
            except UsageError as error:
                # Whether a window is shorter than the events reach is a fact of the events.
                assert strategy != "A" and "is not allowed" in error.what, error
                continue
            yield f"run {number}, {strategy}", found
        events, names = draw.sample(events, len(events)), draw.sample(names, len(names))
    if any(moved.values()):
        return  # These look at all events at a time.
    times = sorted({event["ts"] for event in events})
    counts = [draw.choice([1, 2])] * draw.randrange(2) if few else [0, 1, 6]
    for count in sorted({min(one, len(times) - 1) for one in counts}):
        cuts = sorted(draw.sample(times[1:], count)) if len(times) > 1 else []
        ids, first = {str(event["id"]): event["id"] for event in events}, None
        for strategy in allowed[::-1]:
            how = {"backend": backend, "strategy": strategy, "shared_events": options.get("shared_events", False)}
            try:
                rows = published(pattern, events, cuts, draw, **how)
            except UsageError as error:
                assert strategy == "B" and "is not allowed" in error.what, error
                continue
            # What a lake keeps does not say how it was found, nor where the work was cut. NaN is equal to itself here.
            kept = repr(rows.to_pylist())
            first = kept if first is None else first
            assert kept == first, (strategy, cuts, text, kept, first)
            yield f"cut at {cuts}, {strategy}", from_lake(pattern, rows, ids)


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal but for the last digits of numbers."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    numbers = [value for value in (one, other) if isinstance(value, int | float) and not isinstance(value, bool)]
    return math.isclose(one, other, rel_tol=1e-9) if len(numbers) == 2 else one == other


def in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows, or counts, by list and rank."""

    def key(row: dict[str, Any]) -> Any:
        return row["scope"] or [0, 0], [str(value) for value in row["per"]], row.get("rank", 0)

    return sorted(rows, key=key)


def differences(wanted: Found, found: Found) -> list[str]:
    """What is expected and not there, or the other way round."""
    every = []
    for one, other in zip(wanted, found, strict=True):
        if other is None or one is None:
            continue
        one, other = in_order(one), in_order(other)
        if not same(one, other):
            missing = [row for row in one if not any(same(row, that) for that in other)]
            more = [row for row in other if not any(same(row, that) for that in one)]
            every.append(f"missing {missing or 'none'}, not expected {more or 'none'}")
    return every


def expected_of(case: dict[str, Any]) -> Found:
    """What a case expects."""
    rows = [{k: v for k, v in row.items() if k != "branch"} for row in case["expect"]["rows"]]
    return rows, case["expect"]["scopes"]


def case_differences(case: dict[str, Any], backend: str) -> tuple[int, list[str]]:
    """The number of runs of a case, and in what they differ from what it expects."""
    draw, found, count = random.Random(case["id"]), [], 0
    for how, got in runs(text_of(case["query"]), events_of(case), options_of(case["query"]), backend, draw):
        count += 1
        found += [f"{how}: {one}" for one in differences(expected_of(case), got)]
    return count, found


@contextmanager
def at_once() -> Iterator[None]:
    """Within it, thresholds are looked at after every match, and kernels are interpreted."""
    with pytest.MonkeyPatch.context() as patch, no_compiler():
        patch.setattr(thresholds.Thresholds, "room", property(lambda self: 1))
        patch.setattr(cut, "_FIRST", 1)
        patch.setattr(cut, "_GROWTH", 1.0)
        yield


#: Ticks by which the numbers of a query are multiplied: four make a day, so that there are matches of several days.
QUARTER = 21_600


def over_days(query: dict[str, Any], events: list[dict[str, Any]]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The same query and events, whose times and durations are quarters of days."""

    def moved(node: Any, key: str = "") -> Any:
        if isinstance(node, dict):
            return {name: moved(value, name) for name, value in node.items()}
        if isinstance(node, list):
            return [moved(one) for one in node]
        return node * QUARTER if key in ("within", "size", "step", "offset") and isinstance(node, int) else node

    return moved(query), [{**event, "ts": event["ts"] * QUARTER} for event in events]


def random_query(draw: random.Random, kind: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A random query and random events; of every second one the matches are decided on several days."""
    query, events = getattr(queries, kind)(draw), queries.events(draw)
    if draw.random() < 0.5:
        return query, events
    # With few rows of a list, most lists are full.
    return over_days({**query, "k": draw.choice([1, 1, 2])}, events)


def differences_of(seed: int, query: dict[str, Any], events: list[dict[str, Any]], backend: str) -> Iterator[Any]:
    """In what the strategies differ from the definition."""
    case, draw = queries.as_case(query), random.Random(seed)
    wanted = definition.Evaluation(query, events).result()
    events = events_of({"events": draw.sample(events, len(events))})
    for how, found in runs(text_of(case), events, options_of(case), backend, draw, few=True):
        for one in differences(wanted, found):
            yield seed, how, text_of(case), one


def random_differences(seed: int) -> Iterator[Any]:
    """The differences of the random query of a seed, on either backend."""
    draw = random.Random(seed)
    query, events = random_query(draw, draw.choice(["query", "sum_query"]))
    with at_once():
        yield from differences_of(seed, query, events, draw.choice(["numpy", "compiled"]))
