"""Sends the events of a run if a transport is configured; a server that does not answer never fails a run."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING

from chainlake.paths import Home

if TYPE_CHECKING:
    from chainlake.lineage.flows import Flow

LOG = logging.getLogger("chainlake.steps")
#: OpenLineage's own variables, any of which configures a transport; its files in other places are not looked for.
_SETS_UP = ("OPENLINEAGE_URL", "OPENLINEAGE_CONFIG", "OPENLINEAGE__TRANSPORT__TYPE", "OPENLINEAGE__TRANSPORT")


def wanted() -> bool:
    """Whether the environment names a transport of OpenLineage, and does not turn it off."""
    off = os.environ.get("OPENLINEAGE_DISABLED", "").strip().lower() == "true"
    return not off and any(os.environ.get(name) for name in _SETS_UP)


def tell(home: Home, source: str, step: str, run_id: str) -> None:
    """Send what a run has read and written, after it has ended, even by an error; problems are warnings in its log.

    Args:
        home: the installation.
        source: name of the source.
        step: ``ingest``, ``detect`` or ``monitor``.
        run_id: id of the run in ``ops``.
    """
    # Whatever the error is (the client's settings, the network, definitions that changed), the rows are published.
    try:
        _tell(home, source, step, run_id)
    except Exception as error:
        LOG.warning("warning: no lineage of this run was sent: %s: %s", type(error).__name__, error)


def _tell(home: Home, source: str, step: str, run_id: str) -> None:
    from openlineage.client import OpenLineageClient

    from chainlake.lake.records import ops
    from chainlake.lineage.events import run_events

    rows = [row for row in ops.current(home, "runs", run_id=run_id) if row["step"] == step]
    events = run_events(home, run_id, rows, _flows(home, source, step))
    client = OpenLineageClient()
    for event in events:
        client.emit(event)
    client.close()
    LOG.info("lineage: %d events sent", len(events))


def _flows(home: Home, source: str, step: str) -> dict[str, Flow]:
    """The flows of everything that the step can have computed, by the names in ``ops``."""
    from chainlake.catalog.models import load_models
    from chainlake.catalog.patterns import load_patterns
    from chainlake.definitions.source import Sources, load_sources
    from chainlake.lineage.flows import of_ingest, of_model, of_pattern

    here = load_sources(home)[source]
    # Definitions of other sources do not compile, since only this source is known here.
    sources = Sources(here)
    flows: dict[str, Flow] = {}
    if step == "ingest":
        flows[""] = of_ingest(here)
    elif step == "detect":
        for compiled in load_patterns(home, sources)[0]:
            flows |= of_pattern(compiled, here)
    else:
        for model in load_models(home, sources)[0]:
            flows |= of_model(model)
    return flows
