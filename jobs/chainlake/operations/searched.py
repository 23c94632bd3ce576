"""How the best matches of a ranked pattern were last searched for, from ``ops.plans``."""

from __future__ import annotations

from chainlake.lake.records import ops
from chainlake.paths import Home


def last_search(home: Home, pattern: str) -> str | None:
    """One line about the last search for a ranked pattern; None if there was none.

    Args:
        home: the installation.
        pattern: its name.
    """
    rows = [row for row in ops.current(home, "plans", definition=f"pattern/{pattern}") if row.get("strategy")]
    if not rows:
        return None
    last = max(rows, key=lambda row: (row["written_at"], row["day"]))
    counted = ", ".join(
        f"{last.get(name) or 0:,} {what}"
        for name, what in (
            ("partial", "partial matches"), ("bounds", "bounds compared"), ("pruned", "left out"), ("scored", "scored"),
        )
    )  # fmt: skip
    why = f"; {last['why_not']}" if last.get("why_not") else ""
    return f"last searched up to {last['day']} by {last['strategy']}: {counted}{why}"
