"""The gate of ingest: in each file and on each day, no row is lost or counted twice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from chainlake.errors import UsageError
from chainlake.quality.audit import Audit
from chainlake.quality.templates import instantiate
from chainlake.schemas.ops_rows import FileRow

if TYPE_CHECKING:
    import pandas as pd

_FILE_COUNTS = ("rows_read", "rows_raw", "rows_quarantined")
_DAY_COUNTS = ("rows", "duplicates", "conflicts", "superseded", "rows_raw")
_FILE_COLUMNS = ("source", "path", "file_id", "load_id", *_FILE_COUNTS)
_DAY_COLUMNS = ("source", "day", "status", "checksum", *_DAY_COUNTS)


def _frame(rows: Sequence[Mapping[str, Any]], columns: Sequence[str], counts: Sequence[str]) -> pd.DataFrame:
    """The columns that the suite needs; counts are nullable numbers, so that a missing one shows as missing."""
    import pandas as pd

    frame = pd.DataFrame([[row.get(column) for column in columns] for row in rows], columns=list(columns))
    for count in counts:
        frame[count] = pd.to_numeric(frame[count]).astype("Float64")
    frame["least_count"] = frame[list(counts)].min(axis=1)
    return frame


def audit_accounting(
    audit: Audit, files_rows: Sequence[FileRow], event_days_rows: Sequence[Mapping[str, Any]]
) -> str | None:
    """Whether the ``ops.files`` and ``ops.event_days`` rows about to be written add up.

    Args:
        audit: the application's audit.
        files_rows: rows of ``ops.files``; ``rows_read``, ``rows_raw`` and ``rows_quarantined`` count rows of the file.
        event_days_rows: final rows of ``ops.event_days``, each with the additional key ``rows_raw``: the number of raw
            rows of effective files on that day, which the table itself does not keep.

    Returns:
        ``None`` if everything adds up, else one line that names the broken expectation, with an example row.

    Raises:
        UsageError: the rows belong to more than one source.
    """
    sources = {str(row["source"]) for row in [*files_rows, *event_days_rows]}
    if len(sources) > 1:
        raise MixedSources.of(sources)
    reasons: list[str | None] = []
    if files_rows:
        files = _frame(files_rows, _FILE_COLUMNS, _FILE_COUNTS)
        files["rows_unaccounted"] = files["rows_read"] - files["rows_raw"] - files["rows_quarantined"]
        reasons.append(_run(audit, "files", files, sources, ("path",)))
    if event_days_rows:
        days = _frame(event_days_rows, _DAY_COLUMNS, _DAY_COUNTS)
        days["rows_unaccounted"] = days["rows_raw"] - days[["rows", "duplicates", "conflicts", "superseded"]].sum(
            axis=1, skipna=False
        )
        reasons.append(_run(audit, "days", days, sources, ("day",)))
    return next((reason for reason in reasons if reason), None)


def _run(audit: Audit, what: str, frame: pd.DataFrame, sources: set[str], key: tuple[str, ...]) -> str | None:
    (source,) = sources
    label = f"accounting of {what} of {source}"
    return audit.run(instantiate(f"accounting_{what}", {"source": source}), frame, label, key=key).reason


class MixedSources(UsageError):
    """Rows of several sources were given to be audited at once."""

    @classmethod
    def of(cls, sources: Iterable[str]) -> MixedSources:
        """For the names of the sources."""
        return cls(f"accounting is audited source by source, not for {', '.join(sorted(sources))} at once")
