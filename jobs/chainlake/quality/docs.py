"""Data Docs: a single site under ``home.docs`` for all applications.

Applications run at the same time, so each keeps its results in memory and adds them to the shared store and site in
one go, under a lock. Only new pages are rendered; old results beyond a limit are dropped from the store and the site.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from chainlake.lake.locks import local_lock
from chainlake.paths import Home

#: How many results the store and the site keep, the newest ones.
KEEP = 200
#: Names the form of the pages; when it changes, all pages are written again.
_PAGES = "pages-2"


@dataclass(frozen=True)
class Kept:
    """A suite, its result, and the key under which the store keeps the result."""

    suite: Any
    result: Any
    identifier: Any

    @classmethod
    def of(cls, suite: Any, result: Any, batch_id: str, label: str) -> Kept:
        """Give a result its run id (made from ``label``; unique whatever the clock says) and its key in the store."""
        from great_expectations.core.run_identifier import RunIdentifier
        from great_expectations.data_context.types.resource_identifiers import (
            ExpectationSuiteIdentifier,
            ValidationResultIdentifier,
        )

        now = datetime.now(UTC)
        run_id = RunIdentifier(run_name=_file_name(label) + "-" + uuid.uuid4().hex[:8], run_time=now)
        result.meta.update(run_id=run_id, validation_time=now)
        identifier = ValidationResultIdentifier(ExpectationSuiteIdentifier(suite.name), run_id, batch_id)
        return cls(suite, result, identifier)


def _file_name(label: str) -> str:
    """A label as a file can be named, from which `label_of` reads it back, but for its signs."""
    words = re.sub(r"[^\w.-]+", " ", label).strip()
    return words.replace("_", "__").replace(" ", "_")[:80]


def label_of(run_name: str) -> str:
    """What was looked at: the name of a run without the suffix that makes it unique."""
    name = run_name.rpartition("-")[0] or run_name
    return re.sub("__?", lambda found: "_" if len(found[0]) == 2 else " ", name)


def index_page(home: Home) -> Path:
    """The first page of the site, whether it has been built or not."""
    return home.docs / "index.html"


def memory_context() -> Any:
    """A context that keeps everything in memory; :func:`publish` brings to the site what is worth keeping."""
    from great_expectations.data_context.types.base import DataContextConfig, InMemoryStoreBackendDefaults

    defaults = InMemoryStoreBackendDefaults(init_temp_docs_sites=False)
    return _quiet(DataContextConfig(store_backend_defaults=defaults))


def _quiet(config: Any) -> Any:
    """A context with this configuration, but without progress bars and telemetry."""
    import great_expectations as gx
    from great_expectations.data_context.types.base import ProgressBarsConfig

    config.analytics_enabled = False
    config.progress_bars = ProgressBarsConfig(globally=False, metric_calculations=False)
    return gx.get_context(mode="ephemeral", project_config=config)


def _context(home: Home) -> Any:
    """A context whose stores and site are folders under ``home.docs``."""
    from great_expectations.data_context.types.base import DataContextConfig

    def store(kind: str, folder: str) -> dict[str, Any]:
        backend = {"class_name": "TupleFilesystemStoreBackend", "base_directory": str(home.docs / ".store" / folder)}
        return {"class_name": kind, "store_backend": backend}

    def page(name: str) -> dict[str, str]:
        return {"module_name": "chainlake.quality.pages", "class_name": name}

    config = DataContextConfig(
        config_version=4.0,
        stores={
            "expectations_store": store("ExpectationsStore", "suites"),
            "validation_results_store": store("ValidationResultsStore", "results"),
            "checkpoint_store": store("CheckpointStore", "checkpoints"),
            "validation_definition_store": store("ValidationDefinitionStore", "definitions"),
        },
        expectations_store_name="expectations_store",
        validation_results_store_name="validation_results_store",
        checkpoint_store_name="checkpoint_store",
        data_docs_sites={
            "chainlake": {
                "class_name": "SiteBuilder",
                "show_how_to_buttons": False,
                "store_backend": {
                    "class_name": "TupleFilesystemStoreBackend",
                    "base_directory": str(home.docs),
                },
                "site_section_builders": {
                    "expectations": {"renderer": page("SuitePage"), "view": page("Words")},
                    "validations": {"renderer": page("ResultPage"), "view": page("Words")},
                    "profiling": "None",
                },
                "site_index_builder": {
                    "class_name": "DefaultSiteIndexBuilder",
                    "renderer": page("IndexPage"),
                    "view": page("Words"),
                },
            }
        },
    )
    return _quiet(config)


def publish(home: Home, results: Sequence[Kept]) -> None:
    """Add ``results`` to the shared site, one writer at a time."""
    with local_lock(home, "docs"):
        home.docs.mkdir(parents=True, exist_ok=True)
        context = _context(home)
        suites = {kept.suite.name: kept for kept in results}
        for kept in suites.values():
            context.suites.add_or_update(kept.suite)
        store = context.validation_results_store
        for kept in results:
            store.set(kept.identifier, kept.result)
        keys = sorted(store.list_keys(), key=lambda key: key.run_id.run_time, reverse=True)
        for key in keys[KEEP:]:
            store.remove_key(key)
        new = [kept.identifier for kept in results] + [
            kept.identifier.expectation_suite_identifier for kept in suites.values()
        ]
        # Pages that an earlier version wrote are rewritten once, since text from data could run as code in them.
        stamp = home.docs / ".store" / _PAGES
        context.build_data_docs(resource_identifiers=new if stamp.exists() else None)
        stamp.touch()
