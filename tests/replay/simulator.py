"""One seed of the replay simulator: a random history of files, edits, deaths and reruns against one clean run.

docs/semantics.md#the-promise: the tables are a function of the files and definitions, whatever happened on the way. A
seed makes up a history, lets it end with runs that nothing disturbs, and compares the lake with that of a single run
over the files and definitions that were there in the end. After every action, days that are recorded as done hold as
many rows as was recorded.
"""

from __future__ import annotations

import contextlib
import os
import random
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from chainlake.days import Days
from chainlake.definitions.errors import UnknownDefinition
from chainlake.detect.step import detect
from chainlake.errors import InfrastructureError, InputError, UsageError
from chainlake.ingest.step import ingest
from chainlake.lake.delta import tables
from chainlake.lake.records import ops, runs
from chainlake.lake.records.staleness import status_rows
from chainlake.lake.store.files import FilesLake
from chainlake.lake.upkeep.same import same_tables
from chainlake.monitoring.step import monitor
from chainlake.paths import Home
from chainlake.run.ports import Ports
from chainlake.run.tasks import LocalTasks
from chainlake.schemas.models import FINDINGS
from tests.check.published import published_damage
from tests.replay import verbs, world
from tests.replay.deaths import Deaths, Fate, Injected
from tests.replay.light import light
from tests.replay.surroundings import large, quick, quiet

#: Long after all days, so that no expected file is waited for any longer.
_LATE = datetime(2026, 1, 1, tzinfo=UTC)
#: Actions between the first delivery and the last, unless said otherwise.
ACTIONS = 9
#: Points that a step passes, about; a fate beyond the last never comes.
_POINTS = {
    "ingest": 30, "detect": 36, "monitor": 22, "maintain": 40, "backfill": 70, "restate": 60, "retire": 6,
}  # fmt: skip
#: Undisturbed rounds in which everything must become done.
_SETTLING = 4
#: What a disturbed attempt may end with; anything else is a bug.
_ALLOWED = (InfrastructureError, InputError, Injected)


class Broken(AssertionError):
    """A seed found something wrong."""


class Simulation:
    """One seed in a folder of its own.

    Args:
        seed: all that happens is a function of it.
        root: an empty folder.
        cache: of the JARs.
        light: plain loops in Spark's place (``tests.replay.light``).
        actions: between the first delivery and the last; another number is another history.
        audits: in the light mode, too, Great Expectations is asked.
        lake: where the tables of the random history lie, which are then ``ops``, too, in the light mode; in the folder
            if empty. Those of the clean run lie in the folder.
    """

    def __init__(
        self,
        seed: int,
        root: Path,
        cache: Path,
        *,
        light: bool,
        actions: int = ACTIONS,
        audits: bool = False,
        lake: str = "",
    ) -> None:
        self.seed = seed
        self.audits = audits
        self.actions = actions
        self.light = light
        self.rng = random.Random(seed)
        self.log: list[str] = []
        self.home = _home(root / "lived", cache, lake)
        self.ops_in_memory = not lake
        self.clean = replace(_home(root / "clean", cache), config=self.home.config)
        self.kind = world.source_kind(self.rng)
        self.scale = 1
        names = sorted(world.PATTERNS)
        # Every pattern comes up within a few seeds, whatever the generator draws.
        self.patterns = dict.fromkeys((names[seed % len(names)], self.rng.choice(names)), 0)
        #: Those whose file is not there for the moment.
        self.away: set[str] = set()
        self.model = 0 if self.rng.random() < 0.7 else None
        self.coming = world.deliveries(self.rng)
        self.landed: dict[str, str] = {}
        self.deaths = Deaths(self._note)
        self.by_spark = not light and self.rng.random() < 0.2

    def run(self) -> None:
        """Live through the seed.

        Raises:
            Broken: the tables are not those of a clean run; the message holds the whole history.
        """
        note = f"{self.kind} patterns {sorted(self.patterns)} model {self.model} differences by Spark {self.by_spark}"
        self._note(note)
        place = self._light() if self.light else large() if self.by_spark else contextlib.nullcontext()
        with quiet(), quick(), place:
            try:
                self._write_config()
                self._live()
                self._settle()
                self._compare()
            except Exception as error:
                told = isinstance(error, Broken | verbs.NotAsPlanned)
                text = f"seed {self.seed}: {error}\n" if told else traceback.format_exc()
                raise Broken("\n".join([text, f"history of seed {self.seed}:", *self.log])) from error

    def _light(self) -> contextlib.AbstractContextManager[None]:
        return light(audits=self.audits, ops_in_memory=self.ops_in_memory)

    def _ports(self, home: Home) -> Ports | None:
        return Ports(LocalTasks(), FilesLake(home)) if self.light else None

    # What happens

    def _live(self) -> None:
        with self.deaths.installed():
            for _ in range(self.actions):
                self._action()
                self._check_done_days()

    def _action(self) -> None:
        draw = self.rng.random()
        if self.coming and draw < 0.55:
            for _ in range(self.rng.choice([1, 2, 3])):
                self._land()
            self._steps()
        elif draw < 0.62:
            self._step("maintain")
        elif draw < 0.68:
            self._retire()
        elif draw < 0.8:
            self._edit()
            self._step(self.rng.choice(["detect", "monitor", "restate"]))
        else:
            self._steps()
        if self.deaths.pending and self.rng.random() < 0.3:
            self.deaths.land()

    def _land(self) -> None:
        if not self.coming:
            return
        delivery = self.coming.pop(0)
        self._note(f"lands {delivery.path} ({delivery.what})")
        self.landed[delivery.path] = delivery.content
        _deliver(self.home, delivery.path, delivery.content)

    def _steps(self) -> None:
        """A daily run, a backfill or a restatement as the command line does it, one in pieces, or a single step."""
        how = self.rng.random()
        if how < 0.4:
            for verb in ("ingest", "detect", "monitor"):
                self._step(verb)
        elif how < 0.6:
            self._step("ingest")
            self._step(self.rng.choice(["backfill", "backfill", "restate"]))
        elif how < 0.8:
            self._step("ingest")
            pieces = [self._range() for _ in range(2)]
            for days in pieces:
                self._step(self.rng.choice(["detect", "monitor"]), days)
        else:
            self._step(self.rng.choice(["ingest", "ingest", "detect", "monitor"]))

    def _step(self, verb: str, days: Days | None = None, *, nested: bool = False) -> None:
        """One attempt, and, if it did not come to its end, perhaps the retry."""
        if verb == "monitor" and self.model is None:
            return
        days = days or self._range()
        fate = self._fate(verb, nested)
        self._note(f"{verb} {days} {fate.kind}{f'@{fate.at}' if fate.kind else ''}")
        with self.deaths.attempt(fate):
            try:
                result = self._run(verb, days, self._now(), undisturbed=not fate.kind, nested=nested)
                self._note(f"  {result}")
            except _ALLOWED as error:
                self._note(f"  {runs.error_line(error)}"[:300])
            except UnknownDefinition as error:
                # It was retired after the backfill was planned.
                if fate.kind != "nest":
                    raise
                self._note(f"  {runs.error_line(error)}"[:300])
        if not nested and fate.kind in ("kill", "late", "error") and self.rng.random() < 0.4:
            self._step(verb, days, nested=True)

    def _run(self, verb: str, days: Days, now: datetime, *, undisturbed: bool, nested: bool = False) -> dict[str, Any]:
        if verb in ("backfill", "restate"):
            asked, chunk = days if verb == "backfill" else None, self.rng.choice([1, 2, 3, 30])
            return verbs.long_run(self.home, asked, chunk=chunk, undisturbed=undisturbed, ports=self._ports(self.home))
        if verb == "maintain":
            # What an attempt around this one reads must stay; so must what Spark remembers of a table.
            gone = self.light and not nested and self.rng.random() < 0.5
            return verbs.maintained(self.home, nothing_kept=gone)
        return _STEPS[verb](self.home, days, now, self._ports(self.home))

    def _retire(self) -> None:
        """A pattern's file is removed and the pattern retired; an edit or the end brings it back."""
        name, drop = self.rng.choice(sorted(self.patterns)), self.rng.random() < 0.5
        self.away.add(name)
        self._write_config()
        if drop:
            # Who still commits to the table holds its lock, so that it is not dropped before.
            self.deaths.land_of(f"matches.{name}")
        fate = self._fate("retire", nested=True)
        self._note(f"retire {name}, rows {'dropped' if drop else 'kept'} {fate.kind}@{fate.at}")
        with self.deaths.attempt(fate):
            try:
                self._note(f"  {verbs.retired(self.home, name, drop=drop)}")
            except (*_ALLOWED, UsageError) as error:
                # It may never have been published.
                self._note(f"  {runs.error_line(error)}"[:300])

    def _fate(self, verb: str, nested: bool) -> Fate:
        kind = self.rng.choices(["", "kill", "late", "error", "nest"], [4, 2, 2, 1, 0 if nested else 2])[0]
        fate = Fate(kind, self.rng.randrange(1, _POINTS[verb]))
        if kind == "nest":
            other = self.rng.choice(
                ["ingest", "detect", "monitor", "edit", "land", "maintain", "backfill", "restate", "retire"]
            )
            if other == "land":
                fate.other = self.deaths.land
            elif other == "retire":
                fate.other = self._retire
            elif other == "edit":
                fate.other = self._edit
            else:
                days = self._range()
                fate.other = lambda: self._step(other, days, nested=True)
        return fate

    def _edit(self) -> None:
        what = self.rng.choice(["pattern", "pattern", "pattern", "model", "source"])
        if what == "pattern":
            name = self.rng.choice(sorted(self.patterns))
            self.away.discard(name)
            self.patterns[name] = self.rng.randrange(len(world.PATTERNS[name]))
            self._note(f"pattern {name} is now number {self.patterns[name]}")
        elif what == "model" and self.model is not None:
            self.model = self.rng.randrange(len(world.MODELS))
            self._note(f"the model is now number {self.model}")
        elif what == "source":
            self.scale = 3 - self.scale
            self._note(f"the source scales by {self.scale}")
        self._write_config()

    def _range(self) -> Days:
        first, end = world.SPAN
        length = (end - first).days
        how = self.rng.random()
        if how < 0.3:
            return Days(first, end)
        start = self.rng.randrange(length)
        size = 1 if how < 0.7 else self.rng.randint(1, length - start)
        return Days(first + timedelta(days=start), first + timedelta(days=start + size))

    def _now(self) -> datetime:
        """Most often long after; sometimes within the lag of one of the days."""
        if self.rng.random() < 0.7:
            return _LATE
        day = world.FIRST + timedelta(days=self.rng.randrange(world.DAYS + 2))
        return datetime(day.year, day.month, day.day, 12, tzinfo=UTC)

    # How it ends

    def _settle(self) -> None:
        """Everything has landed; undisturbed runs until nothing is to do, then the commits that still come late."""
        while self.coming:
            self._land()
        self.away.clear()
        self._write_config()
        with self.deaths.installed():
            if self.deaths.pending and self.rng.random() < 0.5:
                self.deaths.land()
            first, end = world.SPAN
            days = Days(first, end)
            verbs_of_a_round, how = ["ingest", "detect", "monitor"], self.rng.random()
            if how < 0.4:
                verbs_of_a_round = ["ingest", "backfill"]
            elif how < 0.7:
                # A scheduled run, whose horizon reaches back to the first day.
                days = Days(end - timedelta(days=1), end)
            # A backfill of all days leaves nothing to do.
            rounds = 1 if "backfill" in verbs_of_a_round else _SETTLING
            for _ in range(rounds):
                for verb in verbs_of_a_round:
                    if verb == "monitor" and self.model is None:
                        continue
                    result = self._run(verb, days, _LATE, undisturbed=True)
                    self._note(f"settling: {verb} {days} {result}")
                left = self._left()
                if not left:
                    break
            else:
                raise Broken(f"after {rounds} undisturbed rounds still to do: {left[:5]}")
            while self.deaths.pending:
                self.deaths.land()
        self._check_done_days()

    def _left(self) -> list[str]:
        changing = [r["day"] for r in ops.current(self.home, "event_days", source=world.SOURCE) if not r["checksum"]]
        to_do = [f"{r.definition} {r.day} {r.state} {r.why}" for r in self._status() if r.state != "done"]
        return [*map(str, changing), *to_do]

    def _compare(self) -> None:
        for path, content in sorted(self.landed.items()):
            _deliver(self.clean, path, content)
        days = Days(*world.SPAN)
        for verb in ("ingest", "detect", "monitor"):
            if verb != "monitor" or self.model is not None:
                self._note(f"clean: {verb} {_STEPS[verb](self.clean, days, _LATE, self._ports(self.clean))}")
        found = same_tables(self.home, self.clean)
        if found:
            raise Broken("\n".join(["the tables are not those of a clean run (first: lived, second: clean)", *found]))

    def _check_done_days(self) -> None:
        """What is recorded as done is there."""
        recorded: dict[str, dict[tuple[str, date], int]] = {}
        for row in ops.current(self.home, "intervals"):
            if row["status"] == "done":
                recorded.setdefault(row["table_name"], {})[row["definition"], row["day"]] = row["rows"]
        for table, counts in recorded.items():
            schema, name = table.split(".", 1)
            there: Counter[tuple[str, date]] = Counter()
            kind = {"matches": "pattern", "episodes": "episodes", "ranked": "ranked"}.get(schema, "model")
            day_column = "scope_start" if kind == "ranked" else "decision_ts"
            # The first column of a key is the owner of a row.
            column, extra = (_OF[table].day_column, [_OF[table].key[0]]) if kind == "model" else (day_column, [])
            for row in tables.arrow(self.home, schema, name, columns=[column, *extra]).to_pylist():
                definition = f"{kind}/{row[extra[0]] if extra else name.partition('/')[0]}"
                day = row[column]
                there[definition, day.date() if isinstance(day, datetime) else day] += 1
            for at, count in counts.items():
                if there[at] != count:
                    raise Broken(f"{table} {at[0]} {at[1]} is recorded as done with {count} rows, but has {there[at]}")
        damage = published_damage(self.home)
        if damage:
            raise Broken("\n".join(["tables do not hold what was published", *damage]))

    # Small things

    def _status(self) -> list[Any]:
        from chainlake.catalog.models import load_models
        from chainlake.catalog.patterns import load_patterns
        from chainlake.definitions.source import load_sources

        sources = load_sources(self.home)
        found = [one for item in load_patterns(self.home, sources)[0] for one in item.definitions]
        found += [item.definition for item in load_models(self.home, sources)[0]]
        return status_rows(self.home, found, Days(*world.SPAN))

    def _write_config(self) -> None:
        texts = {"sources/lab.yaml": self.kind.text(self.scale)}
        there = {name: number for name, number in self.patterns.items() if name not in self.away}
        texts |= {f"patterns/{name}.sase": world.pattern_text(name, number) for name, number in there.items()}
        if self.model is not None:
            texts[f"models/{world.MODEL}.yaml"] = world.model_text(self.model)
            name = world.companion(self.seed)
            texts[f"models/{name}.yaml"] = world.companion_text(name, self.model)
        for name, text in texts.items():
            path = self.home.config / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        for name in self.away:
            (self.home.config / "patterns" / f"{name}.sase").unlink(missing_ok=True)

    def _note(self, line: str) -> None:
        self.log.append(line)


#: The tables of models.
_OF = {table.path_name: table for table in FINDINGS}

_STEPS: dict[str, Callable[[Home, Days, datetime, Ports | None], dict[str, Any]]] = {
    "ingest": lambda home, days, now, ports: ingest(
        home, world.SOURCE, days, run_id=runs.new_run_id("ingest"), now=now, ports=ports
    ),
    "detect": lambda home, days, now, ports: detect(
        home, world.SOURCE, days, run_id=runs.new_run_id("detect"), ports=ports
    ),
    "monitor": lambda home, days, now, ports: monitor(
        home, world.SOURCE, days, run_id=runs.new_run_id("monitor"), ports=ports
    ),
}


def _home(root: Path, cache: Path, lake: str = "") -> Home:
    root.mkdir(parents=True)
    return Home(root=root, lake=lake or str(root / "lake"), config=root / "config", cache=cache)


def _deliver(home: Home, path: str, content: str) -> None:
    """A landing file, an hour old."""
    file = home.landing(world.SOURCE) / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content)
    os.utime(file, (time.time() - 3600, time.time() - 3600))
