"""The kinds of formats: what the lines of a file are (docs/sources.md).

A kind is a line of ``KINDS`` and, in ``chainlake.ingest.rows.text_columns``, what reads its lines; all else goes by
these two.
"""

from __future__ import annotations

from typing import NamedTuple


class Kind(NamedTuple):
    """One kind.

    Args:
        cells: whether a line is a row of cells, which signs part and whose names a line above the rows has.
        unread: keys of a format that mean nothing for it.
        pair: the columns of a row, if it has always the same two: its time and its value. One attribute is read from
            the value then, and all else from the path or a constant.
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
