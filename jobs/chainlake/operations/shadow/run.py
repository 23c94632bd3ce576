"""Shows what an edit of a pattern or a model would do to its rows, before it goes live."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from chainlake.catalog.models import LoadedModel, load_models
from chainlake.catalog.patterns import CompiledPattern, load_patterns
from chainlake.days import Days
from chainlake.definitions.source import load_sources
from chainlake.errors import UsageError
from chainlake.lake.records import ops
from chainlake.lake.records.defined.definitions import Definition
from chainlake.lake.records.event_days import EventDays
from chainlake.model_change.days.definitions import result_table
from chainlake.operations.backfills.backfill import Launch, run_here, run_plan
from chainlake.operations.backfills.plan import plan_range
from chainlake.operations.shadow.compare import Compared, Rows, compare
from chainlake.operations.shadow.lake import shadow_of
from chainlake.paths import Home


class NotTried(UsageError):
    """The file is not a definition that can be tried."""

    @classmethod
    def kind(cls, file: Path) -> NotTried:
        """Judged by the file's name."""
        hint = "Give a file that ends in .sase or .yaml; a source is tried by chainlake lint."
        return cls("this is neither a pattern nor a model", file=file, hint=hint)


@dataclass(frozen=True)
class EditTrial:
    """The result of trying a definition.

    Args:
        definition: ``pattern/NAME`` or ``model/NAME``.
        compared: days that are published and were computed with the edit.
        unpublished: days that were computed but are not published, so that their rows cannot be compared.
        tables: what would happen to each table's rows on the days compared.
    """

    definition: str
    compared: tuple[date, ...]
    unpublished: tuple[date, ...]
    tables: tuple[Compared, ...]


def try_edit(
    home: Home,
    file: Path,
    days: Days,
    *,
    run_id: str,
    launch: Launch = run_here,
    say: Callable[[str], None] = print,
) -> EditTrial:
    """Compute a definition on the published events in a lake beside the real one, and compare.

    Earlier days are computed, too, where later ones depend on them: for a model, and for a pattern that uses events up,
    all from the start.

    Args:
        home: the installation; nothing in it changes.
        file: the edited definition; the file's stem is its name, of a live definition or a new one.
        days: the days whose rows are compared.
        run_id: id of the run in the other lake.
        launch: runs an application.
        say: receives the lines of progress.

    Raises:
        ChainlakeError: the definition is wrong or could not be computed.
    """
    if file.suffix not in (".sase", ".yaml"):
        raise NotTried.kind(file)
    with shadow_of(home, file) as shadow:
        live, rows = _definition(shadow, file)
        first = EventDays.load(shadow, live.source).first if live.chained else None
        computed = Days(min(first, days.start), days.end) if first is not None else days
        # The plan has only this definition, since there is no other.
        run_plan(shadow, plan_range(shadow, computed), run_id=run_id, launch=launch, say=say)
        then, now = (_done(one, live.name, days) for one in (shadow, home))
        both = then & now
        tables = tuple(compare(home, shadow, one, days, both) for one in rows)
    say("the lake beside the real one is removed again, with its Data Docs")
    return EditTrial(live.name, tuple(sorted(both)), tuple(sorted(then - now)), tables)


def _definition(shadow: Home, file: Path) -> tuple[Definition, list[Rows]]:
    """The only definition there, and which rows it publishes."""
    sources = load_sources(shadow)
    loaded, broken = (load_patterns if file.suffix == ".sase" else load_models)(shadow, sources)
    if broken:
        raise broken[0].error
    (one,) = loaded
    return one.definition, _of_pattern(one) if isinstance(one, CompiledPattern) else _of_model(one)


def _of_pattern(one: CompiledPattern) -> list[Rows]:
    derived = [made.table for made in (one.episodes, one.ranking) if made is not None]
    return [Rows(table) for table in (one.table, *derived)]


def _of_model(one: LoadedModel) -> list[Rows]:
    table = result_table(one.config)
    return [Rows(table, (table.key[0], one.config.name))]


def _done(home: Home, name: str, days: Days) -> set[date]:
    rows = ops.current(home, "intervals", definition=name)
    return {row["day"] for row in rows if row["status"] == "done" and row["day"] in days}
