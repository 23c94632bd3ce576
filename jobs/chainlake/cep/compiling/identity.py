"""What of a pattern decides its rows, as the hash by which days are known to be stale."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import astuple, dataclass, replace
from typing import Any

from chainlake.cep.compiling.names import PositiveName
from chainlake.cep.language import ast
from chainlake.cep.language.formatter import format_query
from chainlake.cep.language.front_matter import FrontMatter
from chainlake.definitions.derived import History
from chainlake.digests import text_digest


@dataclass(frozen=True)
class Identity:
    """All that decides which rows a pattern has; the text may say it in another way.

    Args:
        query: as it was parsed.
        params: values of parameters and sets.
        front: the front matter.
        strict: whether durations carry units.
        derived: the derived columns that it mentions.
        key: of the series; None unless something in it goes by the key.
        by_key: whether something does.
        carried: the names with their attributes, if they carry more than the query mentions.
        functions: those that are called, and their code.
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
            # What matches are put together to changes none of them.
            "query": format_query(replace(self.query, episodes=None)),
            "params": {key: list(v) if isinstance(v, tuple) else v for key, v in self.params.items()},
            "output": sorted(self.front.output),
            "source": self.front.source,
            "strict": self.strict,
        }
        if self.derived:
            found["derived"] = [astuple(one) for one in self.derived]
        if self.by_key:
            found["key"] = self.key
        if self.carried is not None:
            found["carried"] = [[one.name, list(one.attributes)] for one in self.carried]
        if self.functions:
            found["functions"] = self.functions
        if "longest" in self.front.limits:
            found["longest"] = self.front.limits["longest"]
        return text_digest(json.dumps(found, sort_keys=True))
