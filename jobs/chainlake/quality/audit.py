"""The audit of an application: runs Great Expectations suites on a few rows, and keeps the results for Data Docs.

Importing Great Expectations takes about six seconds, and the first suite takes some more. So an application calls
``warm_up()`` before anything else that takes long, and makes one ``Audit`` for everything that it publishes.
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chainlake.errors import AuditFailed
from chainlake.paths import Home
from chainlake.quality import configurations, docs
from chainlake.terminal import one_line

if TYPE_CHECKING:
    import pandas as pd

#: How many offending rows a failure names.
EXAMPLES = 5

#: What our own code imports of packages that Great Expectations imports as well. Two threads that import such a package
#: at once can each get the other's half-made modules, so these are complete before the thread of `warm_up` starts.
_SHARED = (
    "psycopg2.extensions", "pyspark.cloudpickle", "pyspark.sql.functions", "pyspark.sql.pandas.types",
    "scipy.optimize", "scipy.special",
)  # fmt: skip

_importer: threading.Thread | None = None
_importer_lock = threading.Lock()


def _quiet() -> None:
    """Turn off telemetry and chatter; must run before the import."""
    os.environ["GX_ANALYTICS_ENABLED"] = "false"
    logging.getLogger("great_expectations").setLevel(logging.ERROR)


def _import() -> None:
    _quiet()
    import great_expectations  # noqa: F401
    import great_expectations.expectations.core  # noqa: F401


def _import_shared() -> None:
    """Import what this thread and the one of `warm_up` both need; what is not installed (psycopg2) neither will get."""
    for name in _SHARED:
        if importlib.util.find_spec(name.partition(".")[0]) is not None:
            importlib.import_module(name)


def warm_up() -> threading.Thread:
    """Start to import Great Expectations in the background; returns the thread, for which nobody has to wait.

    What the caller may import in the meantime is imported first.
    """
    global _importer
    with _importer_lock:
        if _importer is None:
            _import_shared()
            _importer = threading.Thread(target=_import, name="gx-import", daemon=True)
            _importer.start()
        return _importer


@dataclass(frozen=True)
class Failure:
    """One broken expectation.

    Args:
        expectation: its type, such as ``expect_column_values_to_be_between``.
        column: the column or columns that it looks at; empty if it is about the whole table.
        message: what should hold, in words.
        count: how many rows break it; ``None`` if not known.
        examples: up to five offending rows, as dicts.
    """

    expectation: str
    column: str
    message: str
    count: int | None
    examples: tuple[dict[str, Any], ...] = ()

    def __str__(self) -> str:
        text = f"{self.message}: broken"
        if self.count is not None:
            text += f" by {self.count} row" + ("" if self.count == 1 else "s")
        text += f" [{self.expectation}{' on ' + self.column if self.column else ''}]"
        if self.examples:
            shown = ", ".join(f"{key}={one_line(str(value))}" for key, value in self.examples[0].items())
            text += f", for example {shown}"
        return text


@dataclass(frozen=True)
class AuditResult:
    """What one run of a suite found.

    Args:
        label: what was looked at, as the caller named it.
        success: whether every expectation holds.
        failures: the broken ones, in the order of the template.
    """

    label: str
    success: bool
    failures: tuple[Failure, ...] = ()

    @property
    def reason(self) -> str | None:
        """One line that names the first broken expectation; ``None`` if all hold."""
        if self.success:
            return None
        more = f" (and {len(self.failures) - 1} more)" if len(self.failures) > 1 else ""
        return f"{self.label}: {self.failures[0]}{more}"


class Audit:
    """Runs suites and builds their Data Docs; an application has one.

    Args:
        home: the installation; Data Docs and their store are under ``home.docs``.
    """

    def __init__(self, home: Home) -> None:
        self.home = home
        self._results: list[docs.Kept] = []
        self._context: Any = None

    def run(
        self,
        suite: Mapping[str, Any],
        df: pd.DataFrame,
        label: str,
        *,
        key: Sequence[str] = (),
        details: bool | Callable[[], pd.DataFrame] = True,
    ) -> AuditResult:
        """Run a suite on the rows ``df``.

        At first only yes or no is computed; broken expectations alone are then run again for counts and example rows.

        Args:
            suite: a template that `templates.instantiate` has filled in.
            df: the rows, or fewer rows that break an expectation if and only if the rows do.
            label: what is looked at, for messages and Data Docs.
            key: columns that identify a row, shown with every example.
            details: whether to find counts and example rows for broken expectations; if ``df`` has fewer rows, a
                function that gives the rows themselves.
        """
        context = self._open()
        import great_expectations as gx
        from great_expectations.core.result_format import ResultFormat

        placed = [
            {**expectation, "meta": {**expectation.get("meta", {}), "position": position}}
            for position, expectation in enumerate(suite["expectations"])
        ]
        expected = gx.ExpectationSuite(name=suite["name"], expectations=placed)
        batch = self._batch(context, df)
        with configurations.kept():
            found = batch.validate(expected, result_format=ResultFormat.BOOLEAN_ONLY)
        found.results.sort(key=_position)  # results come grouped by how they are computed
        failures: list[Failure] = []
        if callable(details) and not found.success:
            batch = self._batch(context, details())
        for position, result in enumerate(found.results):
            if result.success:
                continue
            wanted: dict[str, Any] = {"partial_unexpected_count": EXAMPLES, "result_format": "SUMMARY"}
            if key:
                wanted["unexpected_index_column_names"] = list(key)
            if details:
                result = found.results[position] = batch.validate(expected.expectations[position], result_format=wanted)
            failures.append(_failure(result, key))
        self._results.append(docs.Kept.of(expected, found, batch.id, label))
        return AuditResult(label, bool(found.success), tuple(failures))

    def check(self, result: AuditResult) -> None:
        """Raise an error if an audit failed, so that its step fails.

        Raises:
            AuditFailed: the result is not a success.
        """
        if not result.success:
            raise SuiteFailed.of(result, self.build_docs())

    def build_docs(self) -> Path:
        """Write all results so far to the shared Data Docs, and return the path of their first page."""
        if self._results:
            docs.publish(self.home, self._results)
            self._results.clear()
        return docs.index_page(self.home)

    def _open(self) -> Any:
        if self._context is None:
            warm_up().join()
            _import()  # raises here the error that stopped the thread
            self._context = docs.memory_context()
        return self._context

    def _batch(self, context: Any, df: pd.DataFrame) -> Any:
        source = context.data_sources.all().get("pandas")
        if source is None:
            source = context.data_sources.add_pandas("pandas")
            source.add_dataframe_asset("rows").add_batch_definition_whole_dataframe("all")
        return source.get_asset("rows").get_batch_definition("all").get_batch({"dataframe": df})


def _position(result: Any) -> int:
    return int(result.expectation_config.meta["position"])


def _failure(result: Any, key: Sequence[str]) -> Failure:
    config = result.expectation_config
    kwargs = config.kwargs
    columns = kwargs.get("column") or ", ".join(kwargs.get("column_list", ()))
    outcome = result.result or {}
    count = outcome.get("unexpected_count")
    # Without key columns, pandas' index list holds only row numbers.
    rows: list[Any] = [row for row in outcome.get("partial_unexpected_index_list") or () if isinstance(row, dict)]
    if not rows:
        rows = [r if isinstance(r, dict) else {columns: r} for r in outcome.get("partial_unexpected_list") or ()]
    message = config.description or config.type
    if trouble := _trouble(result):
        message += f" (could not be evaluated: {trouble})"
    elif config.type == "expect_table_columns_to_match_set":
        mismatched = (outcome.get("details") or {}).get("mismatched", {})
        rows = [{kind: ", ".join(sorted(names)) for kind, names in mismatched.items()}]
    examples = tuple(_example(row, key) for row in rows[:EXAMPLES])
    return Failure(config.type, columns, message, count, examples)


def _example(row: Mapping[Any, Any], key: Sequence[str]) -> dict[str, Any]:
    """A row with its key columns first."""
    return {str(name): _plain(row[name]) for name in sorted(row, key=lambda name: name not in key)}


def _plain(value: Any) -> Any:
    """A value that reads well in one line: times in ISO form, NumPy scalars as Python values."""
    if hasattr(value, "isoformat"):
        return value.isoformat()
    return value.item() if hasattr(value, "item") else value


def _trouble(result: Any) -> str:
    """The first line of the exception that kept an expectation from being evaluated; empty if there was none."""
    info = result.exception_info or {}
    entries = [info] if "raised_exception" in info else list(info.values())
    for entry in entries:
        if isinstance(entry, dict) and entry.get("raised_exception"):
            return str(entry.get("exception_message") or "error").strip().splitlines()[0]
    return ""


class SuiteFailed(AuditFailed):
    """An expectation of a suite does not hold."""

    @classmethod
    def of(cls, result: AuditResult, docs: Path) -> SuiteFailed:
        """For a result of a failed audit; ``docs`` is the page that shows it."""
        return cls(f"audit of {result.reason}", hint=f"Data Docs: {docs}")
