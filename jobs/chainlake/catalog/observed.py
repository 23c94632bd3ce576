"""The keys and types that the events of a source have, from the counts in ``ops.rates``."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pyarrow.compute as pc

from chainlake.catalog.patterns import CompiledPattern
from chainlake.cep.lint.observed import ObservedValues, named_keys, unknown_values
from chainlake.definitions.source import Sources
from chainlake.lake.records import ops
from chainlake.paths import Home


def observed_in_lake(home: Home, source: str, keys: Collection[str] = ()) -> ObservedValues | None:
    """The keys and types of a source's ingested events; ``None`` if there are none.

    Args:
        home: the installation.
        source: its name.
        keys: look only for these; for all keys if empty.
    """
    filters = [("source", "=", source), *([("key", "in", sorted(keys))] if keys else [])]
    rates = ops.current_table(home, "rates", columns=["type", "key", "events"], filters=filters, encoded=True)
    rates = rates.filter(pc.greater(rates["events"], 0))
    if not len(rates):
        return None
    types, found = (set(pc.unique(rates[name]).cast("string").to_pylist()) for name in ("type", "key"))
    return ObservedValues(f"of {source} in the lake", found, types)


def unobserved_keys(home: Home, sources: Sources, patterns: Sequence[CompiledPattern]) -> list[str]:
    """A line for each key that a condition of a pattern names but no ingested event of its source has.

    All rates of a source are read only if a key is missing, since there can be millions.
    """
    lines = []
    for item in patterns:
        name = item.definition.source
        named = named_keys(item.pattern, sources[name].key)
        if not named:
            continue
        some = observed_in_lake(home, name, named)
        if some is not None and named.keys() <= set(some.keys):
            continue
        every = observed_in_lake(home, name)
        if every is not None:
            observed = ObservedValues(every.where, every.keys, item.pattern.event_types)
            found = unknown_values(item.pattern, item.pattern.text, sources[name].key, observed)
            lines += [f"{item.definition.name}: {one.what} (line {one.line}). {one.hint}" for one in found]
    return lines
