"""The tables to which the definitions of an installation publish, whether or not they hold rows yet."""

from __future__ import annotations

from chainlake.catalog.installed import Installed
from chainlake.definitions.source import load_sources
from chainlake.model_change.days.definitions import result_table
from chainlake.paths import Home
from chainlake.schemas import ops
from chainlake.schemas.events import events_table
from chainlake.schemas.models import METRICS
from chainlake.schemas.quarantine import quarantine_table
from chainlake.schemas.raw import raw_table
from chainlake.schemas.table import Table


def defined_tables(home: Home) -> list[Table]:
    """The tables of every usable source, pattern and model, and the ``ops`` tables; each once."""
    sources = load_sources(home)
    found = [make(source) for source in sources.values() for make in (events_table, raw_table, quarantine_table)]
    installed = Installed.load(home, sources)
    for compiled in installed.patterns:
        derived = (one.table for one in (compiled.episodes, compiled.ranking) if one is not None)
        found += [compiled.table, *derived]
    found += [result_table(model.config) for model in installed.models] + [METRICS] * bool(installed.models)
    found += ops.ALL.values()
    return list({(table.schema, table.name): table for table in found}.values())
