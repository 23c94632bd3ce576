"""Everything about a pattern that decides its rows, as the hash that shows which days are stale."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from chainlake.cep.compiling.names import PositiveName
from chainlake.cep.language import ast
from chainlake.cep.language.formatter import format_query
from chainlake.cep.language.front_matter import FrontMatter
from chainlake.definitions.derived import History
from chainlake.digests import as_data, hashed_fields, text_digest

#: Fields of a front matter that the hash includes in a special form.
_IN_OWN_FORM = ("source", "params", "output", "limits", "functions")


@dataclass(frozen=True)
class Identity:
    """Everything that decides which rows a pattern has, however its text is written.

    Args:
        query: as it was parsed.
        params: values of parameters and sets.
        front: the front matter.
        strict: whether durations carry units.
        derived: the derived columns that the pattern mentions.
        key: the key of the series; None unless something in the pattern depends on it.
        by_key: whether something in the pattern depends on the key.
        carried: the names with their attributes, if they carry more than the query mentions.
        functions: the functions that are called, and their code.
    """

    query: ast.Query
    params: Mapping[str, Any]
    front: FrontMatter
    strict: bool
    derived: tuple[History, ...]
    key: str | None
    by_key: bool
    carried: tuple[PositiveName, ...] | None
    functions: list[list[object]]

    @property
    def digest(self) -> str:
        """The hash of the definition."""
        found: dict[str, Any] = {
            # How matches are grouped into episodes changes none of them.
            "query": format_query(replace(self.query, episodes=None)),
            "params": {key: list(v) if isinstance(v, tuple) else v for key, v in self.params.items()},
            "output": sorted(self.front.output),
            "source": self.front.source,
            "strict": self.strict,
        }
        if self.derived:
            found["derived"] = [list(hashed_fields(one).values()) for one in self.derived]
        if self.by_key:
            found["key"] = self.key
        if self.carried is not None:
            found["carried"] = [[one.name, list(one.attributes)] for one in self.carried]
        if self.functions:
            found["functions"] = self.functions
        if "longest" in self.front.limits:
            found["longest"] = self.front.limits["longest"]
        found |= {name: as_data(part) for name, part in hashed_fields(self.front).items() if name not in _IN_OWN_FORM}
        return text_digest(json.dumps(found, sort_keys=True, default=str))
