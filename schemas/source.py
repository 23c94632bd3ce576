"""What the table definitions need to know about a source; ``chainlake.definitions.source.Source`` provides it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa

from chainlake.schemas.table import Column


class AttributeLike(Protocol):
    """One typed attribute of a source's events."""

    @property
    def name(self) -> str: ...
    @property
    def arrow_type(self) -> pa.DataType: ...
    @property
    def unit(self) -> str | None: ...
    @property
    def description(self) -> str | None: ...


class SourceLike(Protocol):
    """The part of a source that shapes its tables."""

    @property
    def name(self) -> str: ...
    @property
    def key(self) -> str: ...
    @property
    def attributes(self) -> Sequence[AttributeLike]: ...


def attribute_columns(source: SourceLike) -> tuple[Column, ...]:
    """The columns of the source's attributes, with description and unit as their comments."""
    return tuple(
        Column(a.name, a.arrow_type, " ".join(filter(None, (a.description or a.name, f"[{a.unit}]" if a.unit else ""))))
        for a in source.attributes
    )
