"""The states that models keep at the end of their days, from which replays can continue."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import date, timedelta

from chainlake.catalog.models import LoadedModel
from chainlake.digests import text_digest
from chainlake.lake.delta import tables
from chainlake.lake.records.chain import EMPTY
from chainlake.model_change.unobserved import unobserved_of_state
from chainlake.paths import Home

#: How many days' digests are read at a time: the last good state is seldom far back.
_BLOCK = 64


def digest_of(kept: Mapping[str, str], fresh: Mapping[str, str]) -> str:
    """Digest of the state of all groups of a model; :data:`EMPTY` for a model that has seen nothing yet.

    Args:
        kept: the state of each group; empty before the model's start.
        fresh: the states of a model that has seen nothing yet.
    """
    return EMPTY if kept.items() <= fresh.items() else _hash(kept)


def _hash(kept: Mapping[str, str]) -> str:
    return text_digest(json.dumps(sorted(kept.items())))


class KeptStates:
    """The kept states of some models, read for all of them together.

    Args:
        home: the installation.
        models: names of the models that will be asked for.
    """

    def __init__(self, home: Home, models: Sequence[str]):
        self._home = home
        self._models = sorted(models)
        self._exists = tables.exists(home, "models", "state")
        self._prints: dict[int, dict[tuple[str, date], dict[str, str]]] = {}
        self._of_day: tuple[date, dict[str, dict[str, str]]] | None = None

    def at_end_of(self, day: date, model: LoadedModel, digest: str) -> dict[str, str] | None:
        """The state of a model at the end of a day, by group.

        Args:
            day: the day.
            model: one of the models.
            digest: digest of the state wanted.

        Returns:
            the state; empty if the model has seen nothing yet; None if the state is not kept.
        """
        if digest == EMPTY:
            return {}
        config = model.config
        found = self._fingerprints(day).get((config.name, day), {}) if self._exists else {}
        if set(found) != set(config.groups) or any(one != digest for one in found.values()):
            return None
        kept = self._states(day).get(config.name, {})
        return kept if _hash(kept) == digest else None

    def unobserved(self, models: Sequence[LoadedModel], last: Mapping[str, date]) -> list[str]:
        """A line for each group that names keys which no event has had, judged by the state of the model's last day.

        Args:
            models: some of the models.
            last: ``model/NAME`` → the last day that is done; models without one are left out.
        """
        found = []
        for model in models:
            day = last.get(model.definition.name)
            if day is None or not self._exists:
                continue
            for group, text in sorted(self._states(day).get(model.config.name, {}).items()):
                found += [
                    f"{model.definition.name}: {one}" for one in unobserved_of_state(model.config, group, text, day)
                ]
        return found

    def _fingerprints(self, day: date) -> dict[tuple[str, date], dict[str, str]]:
        """(model, day) → group → fingerprint, for the block of days that contains ``day``."""
        number = day.toordinal() // _BLOCK
        if number not in self._prints:
            lo = date.fromordinal(max(1, number * _BLOCK))
            rows = tables.arrow(
                self._home,
                "models",
                "state",
                columns=["model", "group_id", "day", "fingerprint"],
                filters=[("model", "in", self._models), ("day", ">=", lo), ("day", "<", lo + timedelta(days=_BLOCK))],
            )
            found: dict[tuple[str, date], dict[str, str]] = {}
            for row in rows.to_pylist():
                found.setdefault((row["model"], row["day"]), {})[row["group_id"]] = row["fingerprint"]
            self._prints[number] = found
        return self._prints[number]

    def _states(self, day: date) -> dict[str, dict[str, str]]:
        """Model → group → state at the end of a day; remembered until another day is asked for."""
        if self._of_day is None or self._of_day[0] != day:
            wanted = [("model", "in", self._models), ("day", "=", day)]
            rows = tables.arrow(self._home, "models", "state", columns=["model", "group_id", "state"], filters=wanted)
            found: dict[str, dict[str, str]] = {}
            for row in rows.to_pylist():
                found.setdefault(row["model"], {})[row["group_id"]] = row["state"]
            self._of_day = day, found
        return self._of_day[1]
