"""Worked cases of contexts, selection and consumption, as queries of the language."""

from __future__ import annotations

from typing import Any


def structure_of(item: dict[str, Any]) -> str:
    """The structure of a case as pattern text; a group may have a window of its own."""
    kind = item.get("op")
    if kind == "NOT":
        return f"NOT({item['type']} {item['var']})"
    if kind is None:
        return f"{item['type']} {item['var']}"
    inner = [structure_of(one) for one in item["items"]]
    if kind == "ANY":
        inner.insert(0, str(item["m"]))
    window = f" WITHIN {item['within']}" if "within" in item else ""
    return f"{'AND' if kind == 'ALL' else kind}({', '.join(inner)}){window}"


def _window(within: Any) -> str:
    if not isinstance(within, dict):
        return f"{within}"
    ((unit, size),) = within.items()
    return {"time": f"{size}", "events": f"{size} EVENTS", "gap_events": f"GAP {size} EVENTS"}[unit]


def _pick(clause: dict[str, Any]) -> str:
    distance = f" within {clause['within']} from {clause['from']}" if "within" in clause else ""
    return f"{clause['q']} {clause['var']}{distance}"


def text_of(query: dict[str, Any]) -> str:
    """The query of a case as pattern text; what the text cannot say (``order: total``) is left out."""
    where = f" WHERE {' AND '.join(f'({one})' for one in query['where'])}" if query.get("where") else ""
    text = f"PATTERN {structure_of(query['pattern'])}{where}"
    text += f" WITHIN {_window(query['within'])}" if "within" in query else ""
    if "context" in query:
        return f"{text} CONTEXT {query['context']}"
    if query.get("pick"):
        text += f" PICK {', '.join(map(_pick, query['pick']))}"
    elif "select" in query:
        text += f" SELECT {query['select']}"
    consume = query.get("consume", "none")
    text += f" CONSUME {consume if isinstance(consume, str) else ', '.join(consume)}"
    timing = query.get("timing", "per_match")
    return f"{text} PER {timing.removeprefix('per_').upper()}"


def events_of(case: dict[str, Any]) -> list[dict[str, Any]]:
    """The events of a case."""
    fixed = ("id", "ts", "seq", "type")
    return [
        {**{name: event[name] for name in fixed}, "attrs": {k: v for k, v in event.items() if k not in fixed}}
        for event in case["events"]
    ]
