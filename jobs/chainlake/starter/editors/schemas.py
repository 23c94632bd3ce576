"""JSON schemas (draft 2020-12) of sources, of models and of the front matter of patterns.

They say which keys there are and what a value looks like; ``lint`` checks how values fit together. Wherever a string is
asked for, a bare word is the text that was typed, so strings may also be numbers and booleans of YAML.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from chainlake.cep.language.declared.function import COSTS
from chainlake.cep.language.front_matter import LIMITS, LONGEST
from chainlake.definitions.formats.format import EPOCHS
from chainlake.definitions.formats.kinds import KINDS
from chainlake.definitions.source_keys import CONFLICTS, DELIVERIES, IDENTITIES, LINKS, TYPES
from chainlake.model_change.config.aggregates import AGGREGATES
from chainlake.model_change.config.model import CONSTRAINTS, DETECTORS, METRICS
from chainlake.model_change.config.series import ON_GAP
from chainlake.model_change.days.definitions import KINDS as KINDS_OF_MODELS
from chainlake.model_change.learning.learners import LOSSES
from chainlake.model_change.zones.design import METHODS

Schema = dict[str, Any]
_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_TEXT: Schema = {"type": ["string", "number", "boolean"]}
_WORD: Schema = {"type": "string", "minLength": 1}
_NUMBER: Schema = {"type": "number"}
_SWITCH: Schema = {"type": "boolean"}
_DURATION: Schema = {"type": "string", "pattern": r"^[0-9.]+\s*[A-Za-zµ]+$", "description": "such as 90 s or 15 min"}
_DAY: Schema = {"type": "string", "pattern": r"^\d{4}-\d\d-\d\d$", "description": "a UTC day, such as 2025-01-31"}
_TEXTS: Schema = {"anyOf": [_TEXT, {"type": "array", "items": _TEXT}]}


def _whole(least: int = 1) -> Schema:
    return {"type": "integer", "minimum": least}


def _one_of(values: Iterable[str]) -> Schema:
    return {"enum": list(values)}


def _map(properties: dict[str, Schema], required: Iterable[str] = (), **more: Any) -> Schema:
    """An object with only these keys."""
    needed = {"required": list(required)} if required else {}
    return {"type": "object", "properties": properties, "additionalProperties": False, **needed, **more}


def _any(*ways: Schema) -> Schema:
    return {"anyOf": list(ways)}


def _of_each(value: Schema) -> Schema:
    """A map from names to values."""
    return {"type": "object", "additionalProperties": value}


def _said(schema: Schema, description: str) -> Schema:
    return {**schema, "description": description}


def source_schema() -> Schema:
    """The schema of ``sources/NAME.yaml``."""
    attribute = _map(
        {
            "type": _one_of(TYPES),
            "unit": _TEXT,
            "description": _TEXT,
            "required": _said(_SWITCH, "a row without it goes to quarantine"),
            "min": _said(_NUMBER, "rows below it go to quarantine"),
            "max": _said(_NUMBER, "rows above it go to quarantine"),
        },
        ["type"],
    )
    sentinel = _any(_NUMBER, _map({"value": _NUMBER, "when": _of_each(_TEXT)}, ["value"]))
    mapping = _any(
        _TEXT,
        _map(
            {
                "column": _TEXT,
                "path": _TEXT,
                "constant": _TEXT,
                "scale": _NUMBER,
                "offset": _NUMBER,
                "round": {"type": "integer"},
                "sentinels": {"type": "array", "items": sentinel},
                "case": _one_of(("upper", "lower")),
            }
        ),
    )
    time = _map(
        {
            "column": _TEXTS,
            "format": _said(_TEXT, f"iso, a strptime format, or {', '.join(EPOCHS)}"),
            "zone": _WORD,
            "earliest": _DAY,
            "latest": _DAY,
            "around": _DURATION,
        }
    )
    form = _map(
        {
            "name": _TEXT,
            "kind": _one_of(KINDS),
            "glob": _said(_TEXT, "the file's name must fit"),
            "header": _said(_TEXTS, "columns that must be in the header line"),
            "delimiter": _TEXT,
            "quote": _TEXT,
            "decimal": _one_of((".", ",")),
            "thousands": _TEXT,
            "encoding": _WORD,
            "columns": _TEXTS,
            "skip_lines": _whole(0),
            "short_rows": _one_of(("quarantine", "fill")),
            "members": _TEXT,
            "null": _TEXTS,
            "time": time,
            "map": _of_each(mapping),
            "unpivot": _map({"columns": _any(_TEXTS, _of_each(_TEXT)), "into": _WORD}, ["columns", "into"]),
            "optional": _TEXTS,
        }
    )
    top = {
        "description": _TEXT,
        "key": _said(_WORD, "name of the key column: events of one key are one series"),
        "type": _any(_TEXT, _map({"column": _TEXT, "map": _of_each(_TEXT)})),
        "zone": _said(_WORD, "of times without an offset, such as America/New_York"),
        "attributes": {**_of_each(attribute), "minProperties": 1},
        "identity": _one_of(IDENTITIES),
        "delivery": _one_of(DELIVERIES),
        "on_conflict": _one_of(CONFLICTS),
        "path": _any(_WORD, _map({"pattern": _WORD, "date_format": _TEXT}, ["pattern"])),
        "replaces": _TEXTS,
        "file_date_zone": _WORD,
        "expect": _said(_TEXTS, "globs of the files of a UTC day"),
        "lag": _said(_DURATION, "how long a day waits for expected files"),
        "settle": _said(_DURATION, "how long a file must have been unchanged"),
        "links": _one_of(LINKS),
        "derived": _of_each(_said(_WORD, "such as history(price, 5, 10 min)")),
        "formats": {"type": "array", "minItems": 1, "items": form},
    }
    return {"$schema": _DRAFT, "title": "Chainlake source", **_map(top, ("key", "type", "attributes", "formats"))}


def _series() -> Schema:
    """A column of the node itself or of another key."""
    transform = _any(_WORD, {"type": "array", "items": _WORD})
    entry = {
        "of": _WORD,
        "name": _WORD,
        "expression": _WORD,
        "key": _TEXT,
        "member": _whole(),
        "transform": _said(transform, "log, diff, lag N, or a list of them"),
    }
    return _any(_WORD, _map(entry))


def model_schema() -> Schema:
    """The schema of ``models/NAME.yaml`` for all kinds of models, which ``kind`` distinguishes."""
    pair = {"type": "array", "items": _NUMBER, "minItems": 2, "maxItems": 2}
    powers = {"of": _WORD, "name": _WORD, "expression": _WORD, "degree": _whole(), "scale": pair, "range": pair}
    feature = _any(_series(), _map({"polynomial": _map(powers, ["degree"])}, ["polynomial"]))
    span = {"from": _DAY, "to": _DAY}
    node = _any(
        _TEXT,
        _map(
            {
                "name": _TEXT,
                "keys": {"type": "array", "items": _TEXT, "minItems": 1},
                **span,
                "dates": {"type": "array", "items": _map(span), "minItems": 1},
            },
            ["keys"],
        ),
    )
    nodes = {"type": "array", "items": node, "minItems": 1}
    rounds = {"length": _DURATION, "aggregate": _one_of(AGGREGATES), "min_nodes": _whole()}
    shared = {
        "kind": _one_of(KINDS_OF_MODELS),
        "description": _TEXT,
        "source": _said(_WORD, "whose events"),
        "start": _said(_DAY, "first UTC day"),
        "round": _map(rounds, ["length"]),
        "max_carry": _whole(0),
        "missing_if_zero": _WORD,
        "where": _said(_WORD, "a condition on events"),
        "max_replay": _whole(),
    }
    alerting = shared | {"alerts": _alerts()}
    window = _map({"sliding": _whole(), "infinite": _whole()}, minProperties=1, maxProperties=1)
    phi = _any({"const": "fit"}, {"type": "number", "minimum": 0, "exclusiveMaximum": 1})
    matrix = {"type": "array", "items": {"type": "array", "items": _NUMBER}}
    above = {"type": "number", "exclusiveMinimum": 0}
    linear = {
        "nodes": nodes,
        "groups": {**_of_each(nodes), "minProperties": 1},
        "response": _series(),
        "features": {"type": "array", "items": feature},
        "intercept": _SWITCH,
        "window": window,
        "eps": _any(above, _map({"share": above}, ["share"])),
        "constraint": _one_of(CONSTRAINTS),
        "detector": _one_of(DETECTORS),
        "metric": _one_of(METRICS),
        "ridge": _any({"type": "number", "minimum": 0}, matrix),
        "penalise_intercept": _SWITCH,
        "gls": _map({"phi": phi}, ["phi"]),
        "session_gap": _DURATION,
        "on_gap": _one_of(ON_GAP),
        "per_baseline": _SWITCH,
        "per_Tmax": _whole(),
        "count_from": _whole(0),
    }
    threshold = {"nodes": nodes, "value": _series(), "threshold": _NUMBER, "weight": _WORD}
    ranges = {"nodes": nodes, "groups": linear["groups"]}
    columns = {"type": "array", "items": _series(), "minItems": 1}
    companions = _companions(ranges, columns, linear)
    always = ("source", "start", "round")
    found = _map(alerting | linear, (*always, "response", "window", "eps"))
    for kind, (own, required) in {"threshold": (threshold, ("nodes", "value", "threshold")), **companions}.items():
        asked = {"properties": {"kind": {"const": kind}}, "required": ["kind"]}
        keys = shared if kind == "shared_learning" else alerting
        found = {"if": asked, "then": _map(keys | own, (*always, *required)), "else": found}
    return {"$schema": _DRAFT, "title": "Chainlake model", "type": "object", **found}


def _alerts() -> Schema:
    return _map({"webhook": _WORD, "mute": _TEXTS, "withdrawn": _SWITCH}, ["webhook"])


def _companions(ranges: Schema, columns: Schema, linear: Schema) -> dict[str, tuple[Schema, tuple[str, ...]]]:
    """For each kind that is neither a linear model nor a threshold monitor, its keys, and those that are required."""
    above = {"type": "number", "exclusiveMinimum": 0}
    bound = {"type": ["number", "null"]}
    corner = {"type": "array", "items": _NUMBER, "minItems": 2, "maxItems": 2}
    half_plane = _map(
        {"normal": {"type": "array", "items": _NUMBER, "minItems": 1}, "below": _NUMBER, "name": _WORD},
        ["normal", "below"],
    )
    forms = {"box": {**corner, "items": bound}, "polygon": corner, "half_planes": half_plane}
    region = {form: {"type": "array", "items": item, "minItems": 1} for form, item in forms.items()}
    designed = {"rounds": _whole(10), "every": _whole(), "method": _one_of(METHODS)}
    zones = {
        **ranges,
        "values": columns,
        "region": _map(region, minProperties=1, maxProperties=1),
        "design": _map(designed, ["rounds"]),
    }
    learning = {
        **ranges,
        **{key: linear[key] for key in ("response", "features", "intercept")},
        "loss": _one_of(LOSSES),
        "learning_rate": above,
        "penalty": {"type": "number", "minimum": 0},
        "sync": _any(
            _map({"dynamic": above, "every": _whole()}, ["dynamic"]),
            _map({"static": _whole()}, ["static"]),
        ),
    }
    faults = {
        **ranges,
        "counters": columns,
        "window": _any({"const": "day"}, _map({"sliding": _whole(2)}, ["sliding"])),
        "alpha": {**above, "exclusiveMaximum": 1},
        "sketch": _map({"dimensions": _whole(), "seed": _whole(0)}, ["dimensions"]),
        "normalise": _map({"low": {"type": "number", "minimum": 0}, "high": _NUMBER}, ["low", "high"]),
    }
    return {
        "safe_zones": (zones, ("values", "region")),
        "shared_learning": (learning, ("response", "features", "learning_rate", "sync")),
        "latent_faults": (faults, ("counters",)),
    }


def pattern_schema() -> Schema:
    """The schema of a pattern's front matter."""
    scalar: Schema = {"type": ["string", "number", "boolean"]}
    values = {"type": "array", "items": scalar}
    test = _map(
        {
            "name": _TEXT,
            "events": _said({"type": "string"}, "rows of a CSV with a header, or a file beside the pattern"),
            "matches": {"type": "array", "items": {**_of_each(_any(scalar, values)), "minProperties": 1}},
        },
        ("events", "matches"),
    )
    limits = {**{name: _whole() for name in LIMITS}, LONGEST: _DURATION}
    function = _map(
        {
            "call": _said(_WORD, "MODULE:FUNCTION of dags/config/functions/"),
            "cost": _any(_one_of(COSTS), {"type": "number", "exclusiveMinimum": 0}),
            "symmetric": _SWITCH, "pure": {"const": True}, "result": _one_of(("number", "bool")), "longest": _DURATION,
            "vectorised": _SWITCH,
        },
        ["call"],
    )  # fmt: skip
    top = {
        "source": _said(_WORD, "whose events it reads"),
        "description": _said(_WORD, "what it means: readers of the match table see it"),
        "params": _of_each(_any(scalar, values)),
        "sets": _of_each(values),
        "rates": _of_each({"type": "number", "minimum": 0}),
        "output": _said({"type": "array", "items": {"type": "string"}}, "attributes to carry into the match table"),
        "functions": _of_each(function),
        "limits": _map(limits),
        "start": _DAY,
        "alerts": _alerts(),
        "tests": {"type": "array", "minItems": 1, "items": test},
    }
    return {"$schema": _DRAFT, "title": "Front matter of a Chainlake pattern", **_map(top)}
