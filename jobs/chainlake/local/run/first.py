"""Shows the first matches that ``make run`` publishes while other work continues, and the page that draws them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from queue import SimpleQueue

from chainlake.env.processes.ending import reason_with_stack
from chainlake.lake.records import ops
from chainlake.lake.upkeep.damage import explained
from chainlake.local.run.chain import DagRun
from chainlake.local.run.summary import table
from chainlake.paths import Home
from chainlake.terminal import rounded

#: How many matches and columns are shown.
_ROWS, _COLUMNS = 3, 9
#: Columns that a pattern's view has for every event, besides its attributes.
_OF_EVERY_EVENT = ("_event_id", "_ts", "_type")


@dataclass
class First:
    """Looks at each detection run that has ended until one has matches; it works in a thread, so nothing waits for it.

    Args:
        home: the installation.
    """

    home: Home
    _found: SimpleQueue[str] = field(default_factory=SimpleQueue, init=False)
    _thread: threading.Thread | None = field(default=None, init=False)
    _over: bool = field(default=False, init=False)

    def look(self, run: DagRun) -> None:
        """Look at a run that has ended; it is passed over while another one is being looked at."""
        busy = self._thread is not None and self._thread.is_alive()
        if not self._over and not busy and run.ok and run.dag_id.startswith("detect_"):
            self._thread = threading.Thread(target=self._show, args=(run,), daemon=True)
            self._thread.start()

    def said(self) -> list[str]:
        """What there is to print, each given once."""
        return [self._found.get() for _ in range(self._found.qsize())]

    def _show(self, run: DagRun) -> None:
        try:
            for said in first_matches(self.home, run):
                self._over = True
                self._found.put(said)
        except Exception as error:
            # The chain continues; if something is wrong with the lake, its steps will report it.
            self._over = True
            self._found.put(f"the first matches cannot be shown: {reason_with_stack(explained(self.home, error))}")


def first_matches(home: Home, run: DagRun) -> Iterator[str]:
    """Some of a day's matches, of the pattern that has the fewest; then, once it is made, the page that draws them.

    Args:
        home: the installation.
        run: a detect run that has succeeded.

    Yields:
        what is to be printed; nothing if the day has no matches.

    Raises:
        ChainlakeError: the tables cannot be read, or the report cannot be made.
    """
    from chainlake.catalog.patterns import load_patterns
    from chainlake.definitions.source import load_sources
    from chainlake.lake.sql.query import SqlConnection
    from chainlake.report.make import make_report

    compiled, _ = load_patterns(home, load_sources(home))
    mine = {one.definition.name: one.pattern.name for one in compiled if one.definition.source == run.source}
    done = [row for row in ops.current(home, "intervals") if row["day"] == run.day and row["status"] == "done"]
    counts = {mine[row["definition"]]: row["rows"] for row in done if row["definition"] in mine and row["rows"]}
    if not counts:
        return
    pattern = min(counts, key=lambda name: (counts[name], name))
    cursor = SqlConnection(home).query(
        "SELECT strftime(start_ts, '%H:%M:%S') AS \"from\", strftime(end_ts, '%H:%M:%S') AS \"to\", "
        f'* EXCLUDE (match_id, decision_ts) FROM matches."{pattern}_flat" '
        f"WHERE CAST(decision_ts AS DATE) = DATE '{run.day}' ORDER BY start_ts, end_ts LIMIT {_ROWS}"
    )
    header = [column[0] for column in cursor.description or []]
    kept = [at for at, name in enumerate(header) if not name.endswith(_OF_EVERY_EVENT)][:_COLUMNS]
    found = [[row[at] for at in kept] for row in cursor.fetchall()]
    rows = [[rounded(value) if isinstance(value, float) else value for value in row] for row in found]
    yield f"first matches, {counts[pattern]} of {pattern} on {run.day}:\n{table([header[at] for at in kept], rows)}"
    index = make_report(home, only=f"pattern/{pattern}").index
    page = index.parent / "patterns" / f"{pattern}.html"
    yield f"the first matches are drawn on {page if page.exists() else index}"
