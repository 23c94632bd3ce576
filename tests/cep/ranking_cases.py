"""Worked cases of ranked patterns, as queries of the language, and the rows of a search in the form of the cases."""

from __future__ import annotations

import math
from typing import Any

from tests.cep.context_cases import events_of as plain_events


def _structure(item: dict[str, Any]) -> str:
    kind = item.get("op")
    if kind == "NOT":
        return f"NOT({item['type']} {item['var']})"
    if kind is None:
        return f"{item['type']} {item['var']}"
    inner = [_structure(one) for one in item["items"]]
    if kind == "ANY":
        inner.insert(0, str(item["m"]))
    window = f" WITHIN {item['within']}" if "within" in item else ""
    return f"{'AND' if kind == 'ALL' else kind}({', '.join(inner)}){window}"


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
        text = f"PATTERN OR({', '.join(f'{_structure(one)} {_score(score)}' for one, score in parts)})"
    else:
        text = f"PATTERN {_structure(pattern)}"
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


def options_of(query: dict[str, Any]) -> dict[str, bool]:
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


def row_of(found: dict[str, Any], names: list[str], period: str) -> dict[str, Any]:
    """A row of a search as the cases have it."""
    return {
        "scope": None if period == "all" else [found["scope_start"], found["scope_end"]],
        "per": found["per"],
        "rank": found["rank"],
        "score": found["score"],
        "criteria": found["criteria"],
        "match": {name: found[name] for name in names if name in found},
    }


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal but for the last digits of numbers."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    numbers = [value for value in (one, other) if isinstance(value, int | float) and not isinstance(value, bool)]
    return math.isclose(one, other, rel_tol=1e-9) if len(numbers) == 2 else one == other


def in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows by list and rank."""
    return sorted(rows, key=lambda row: (row["scope"] or [0, 0], [str(value) for value in row["per"]], row["rank"]))


def differences(case: dict[str, Any], rows: list[dict[str, Any]]) -> list[str]:
    """What a case expects and a search does not have, or the other way round."""
    wanted = in_order([{k: v for k, v in row.items() if k != "branch"} for row in case["expect"]["rows"]])
    rows = in_order(rows)
    if same(wanted, rows):
        return []
    missing = [row for row in wanted if not any(same(row, one) for one in rows)]
    return [f"missing {missing or 'none'}, not expected {[r for r in rows if not any(same(r, w) for w in wanted)]}"]
