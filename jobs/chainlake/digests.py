"""Hashes that identify definitions, states and files."""

from __future__ import annotations

import hashlib
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any


def text_digest(text: str) -> str:
    """A string's BLAKE2b of 128 bits, as 32 hexadecimal digits."""
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def hashed_fields(value: Any) -> dict[str, Any]:
    """The fields of a dataclass that the hash of a definition includes.

    A field with its default value is left out, so a new optional key does not change the hash of definitions that do
    not use it. A class lists in ``NEVER_HASHED`` fields that change no result, and in ``ALWAYS_HASHED`` fields that the
    first hashes included with their default values; new fields are never added there.
    """
    cls = type(value)
    never, always = getattr(cls, "NEVER_HASHED", ()), getattr(cls, "ALWAYS_HASHED", ())
    given = [(one, getattr(value, one.name)) for one in fields(value) if one.name not in never]
    return {one.name: part for one, part in given if one.name in always or part != _default(one)}


def as_data(value: Any) -> Any:
    """A value and everything in it as maps and lists, with the fields that `hashed_fields` gives."""
    if is_dataclass(value):
        return {name: as_data(part) for name, part in hashed_fields(value).items()}
    if isinstance(value, dict):
        return {key: as_data(part) for key, part in value.items()}
    return [as_data(part) for part in value] if isinstance(value, list | tuple) else value


def as_text(value: Any) -> str:
    """A value and everything in it as Python writes them, with the fields that `hashed_fields` gives."""
    if is_dataclass(value):
        parts = (f"{name}={as_text(part)}" for name, part in hashed_fields(value).items())
        return f"{type(value).__name__}({', '.join(parts)})"
    if isinstance(value, tuple):
        return f"({', '.join(map(as_text, value))}{',' * (len(value) == 1)})"
    return repr(value)


def _default(one: Field[Any]) -> Any:
    return one.default if one.default_factory is MISSING else one.default_factory()
