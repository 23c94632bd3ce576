"""The kinds of formats: what the lines of a file hold (docs/sources.md).

A kind is a line of ``KINDS`` and a reader of its lines in ``chainlake.ingest.rows.text_columns``. All other code uses
these two.
"""

from __future__ import annotations

from typing import NamedTuple


class Kind(NamedTuple):
    """One kind.

    Args:
        cells: whether a line is a row of cells with a delimiter between them and a header line above.
        unread: keys of a format that mean nothing for this kind.
        pair: the columns of time and value, if rows have only these two. One attribute is then read from the value,
            and everything else from the path or a constant.
    """

    cells: bool
    unread: tuple[str, ...] = ()
    pair: tuple[str, str] | None = None


KINDS = {
    "csv": Kind(cells=True),
    "json_map": Kind(
        cells=False,
        unread=("header", "delimiter", "quote", "columns", "short_rows", "unpivot", "optional"),
        pair=("time", "value"),
    ),
}
