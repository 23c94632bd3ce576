"""SQL on tables of ranked matches."""

from __future__ import annotations

import re
from collections.abc import Sequence

from chainlake.lake.sql.scan import quoted

#: The view of a ranking with the bound events of its matches.
BOUND = "_matches"
#: Columns of a match table by which its rows are compared: the ranking shows the same more readably.
_COMPARED = re.compile(r"per|distinct_on|score_\d+|criterion_\d+")


def bound_select_of(columns: Sequence[str], name: str) -> str:
    """The SELECT of the best matches with everything that their match table says about them, list by list and by rank.

    Args:
        columns: the columns of the match table.
        name: the pattern's name, quoted.
    """
    shared = ("match_id", "decision_ts", "start_ts", "end_ts")
    others = [quoted(one) for one in columns if one not in shared and _COMPARED.fullmatch(one) is None]
    listed = ", ".join(["r.* EXCLUDE (events)", *(f"m.{one}" for one in others)])
    return (
        f"SELECT {listed} FROM ranked.{name} AS r JOIN matches.{name} AS m USING (match_id, decision_ts) "
        "ORDER BY r.scope_start, r.per, r.rank"
    )
