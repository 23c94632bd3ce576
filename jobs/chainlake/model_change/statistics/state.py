"""The state of one group of a model as JSON: exact, documented, independent of the machine.

Every array is ``{"shape": [...], "float64" | "int64": base64 of its little-endian bytes}``, so that numbers survive
unchanged. ``version`` rises with every change of form; a text of another version cannot be used.

The text is canonical: states with the same future have the same text, whatever history led to them. So a
state holds nothing that only grows and nothing that no later round reads, counters are distances from now, and every
NaN has the same bits.
"""

from __future__ import annotations

import base64
import json
from dataclasses import fields
from typing import Any

import numpy as np

from chainlake.model_change.statistics.basis import Basis, Measure
from chainlake.model_change.statistics.records import State

VERSION = 6
_FORMS: dict[str, Any] = {"kernel": State, "basis": Basis, "measure": Measure}


def dumps(values: dict[str, Any]) -> str:
    """A mapping with values that are numbers, strings, arrays, None, `State`, `Basis` or `Measure`, as JSON text."""
    return json.dumps({"version": VERSION, **{key: _encode(value) for key, value in values.items()}}, sort_keys=True)


def loads(text: str) -> dict[str, Any] | None:
    """What `dumps` wrote; None if it is of another version."""
    values = json.loads(text)
    if values.pop("version", None) != VERSION:
        return None
    return {key: _decode(value) for key, value in values.items()}


def restored(snapshot: str | None) -> dict[str, Any]:
    """The values that a monitor continues from; none at its start.

    Raises:
        ValueError: the snapshot is of another version; `loads` gives None for such a one.
    """
    values = {} if snapshot is None else loads(snapshot)
    if values is None:
        raise ValueError("the snapshot was written by another version")
    return values


def _encode(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        kind = "int64" if value.dtype.kind == "i" else "float64"
        same = value if kind == "int64" else np.where(np.isnan(value), np.nan, value)
        raw = np.ascontiguousarray(same, dtype="<i8" if kind == "int64" else "<f8").tobytes()
        return {"shape": list(value.shape), kind: base64.b64encode(raw).decode("ascii")}
    form = next((name for name, form in _FORMS.items() if isinstance(value, form)), None)
    if form is not None:
        return {form: {f.name: _encode(getattr(value, f.name)) for f in fields(value)}}
    if isinstance(value, dict):
        return {"map": {str(key): _encode(item) for key, item in value.items()}}
    return value


def _decode(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if "shape" in value:
        kind = "int64" if "int64" in value else "float64"
        raw = np.frombuffer(base64.b64decode(value[kind]), dtype="<i8" if kind == "int64" else "<f8")
        return raw.reshape(value["shape"]).astype(kind)
    if "map" in value:
        return {key: _decode(item) for key, item in value["map"].items()}
    kind = next(iter(value))
    return _FORMS[kind](**{key: _decode(item) for key, item in value[kind].items()})
