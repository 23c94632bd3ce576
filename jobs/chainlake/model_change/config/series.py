"""What all monitors share: whose events they watch, and how events become rounds (docs/semantics.md#rounds)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from typing import Any, ClassVar

from chainlake.days import US_PER_DAY
from chainlake.definitions.alerting import Alerts, read_alerts
from chainlake.definitions.errors import UnfitAlerts
from chainlake.digests import as_data, text_digest
from chainlake.model_change.config.aggregates import AGGREGATES
from chainlake.model_change.config.errors import WrongRounds
from chainlake.model_change.config.expressions import condition_text, expression_of, language_version, stored_columns
from chainlake.model_change.config.features import Feature
from chainlake.model_change.config.nodes import Node, fewest
from chainlake.model_change.config.reading import Settings

ON_GAP = ("continue", "reset")
#: Keys that every kind of monitor reads the same way.
SHARED_KEYS = ("kind", "description", "source", "start", "round", "max_carry", "missing_if_zero", "where", "max_replay")
#: The same for kinds whose findings can be sent as alerts.
ALERTING_KEYS = (*SHARED_KEYS, "alerts")


@dataclass(frozen=True)
class Reduction:
    """How the events of a key become rounds: the length of a round, how several events in one are aggregated, the
    column in which 0 means not reported, and the condition that an event must meet to count."""

    round_us: int
    aggregate: str
    missing_if_zero: str | None
    where: str | None = None

    def stored(self, columns: Iterable[str]) -> tuple[str, ...]:
        """The columns of events from which rounds of ``columns`` are made, besides the key and ``ts``, sorted."""
        zero = [self.missing_if_zero] if self.missing_if_zero else []
        return tuple(sorted({*stored_columns(columns, self.where), *zero}))


@dataclass(frozen=True, kw_only=True)
class SeriesConfig:
    """The part of a monitor that says how its rounds are made. Times are in microseconds, counts in rounds.

    ``groups`` maps a group's id to its ordered nodes; every group is a separate monitor. An event whose column
    ``missing_if_zero`` is 0 counts as not reported. An event for which ``where``, a condition of the pattern language,
    is not true is ignored.

    Give a new field, here or in the class of a kind, a default: `digests.hashed_fields` then leaves it out of the hash,
    so days of models without it do not become stale.
    """

    #: The keys of a file that ``response`` and ``features`` come from.
    COLUMN_KEYS: ClassVar[tuple[str, str]] = ("response", "features")
    #: Fields that change no result.
    NEVER_HASHED: ClassVar[tuple[str, ...]] = ("file", "description", "max_replay", "alerts")

    name: str
    file: str | None
    description: str
    source: str
    start: date
    groups: dict[str, tuple[Node, ...]]
    response: Feature
    features: tuple[Feature, ...]
    round_us: int
    aggregate: str
    min_nodes: int
    window: int
    max_carry: int
    session_gap_us: int | None
    on_gap: str
    missing_if_zero: str | None
    where: str | None = None
    max_replay: int
    alerts: Alerts | None

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The coefficients' names in model order."""
        return tuple(name for feature in self.features for name in feature.names)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of its rounds, sorted: columns of events, and those of expressions."""
        return tuple(sorted({f.of for f in (self.response, *self.features) if f.of is not None}))

    @property
    def bound(self) -> float | None:
        """The bound that findings are audited against, such as eps; None if only the state knows it."""
        return None

    @property
    def counted_from(self) -> int:
        """Number of the first round that metrics count; the group's first round is number 0."""
        return 0

    @property
    def has_expressions(self) -> bool:
        """Whether any part of it is written in the pattern language."""
        return self.where is not None or any(expression_of(name) is not None for name in self.columns)

    @property
    def reduction(self) -> Reduction:
        """How its events become rounds; monitors with equal reductions can share the work."""
        return Reduction(self.round_us, self.aggregate, self.missing_if_zero, self.where)

    def keys(self, group: str) -> tuple[str, ...]:
        """The key values whose events ``group`` needs: those of its nodes, then other keys that its features name."""
        own = tuple(dict.fromkeys(key for node in self.groups[group] for key in node.keys))
        others = sorted({f.key for f in (self.response, *self.features) if f.key is not None} - set(own))
        return (*own, *others)

    @property
    def all_keys(self) -> tuple[str, ...]:
        """Every key value that any group needs, sorted."""
        return tuple(sorted({key for group in self.groups for key in self.keys(group)}))

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is allowed but rarely intended, one sentence each."""
        return ()

    @property
    def definition_hash(self) -> str:
        """Hash of everything that can change a result, hence not of ``alerts`` (docs/semantics.md#definitions)."""
        data = as_data(self)
        if self.has_expressions:
            data["language"] = language_version()
        text = json.dumps(data, sort_keys=True, default=str)
        return text_digest(text)


def shared_values(
    top: Settings, name: str, groups: dict[str, tuple[Node, ...]], window: int, least_nodes: int | None
) -> dict[str, Any]:
    """The fields of `SeriesConfig` that `SHARED_KEYS` give.

    Args:
        top: the file.
        name: the monitor's name.
        groups: its nodes.
        window: the default of ``max_carry``.
        least_nodes: the default of ``min_nodes``; None: 1.

    Raises:
        DefinitionError: naming file, line, key and the allowed values.
    """
    smallest = min(fewest(nodes) for nodes in groups.values())
    rounds = top.mapping("round", "a mapping with length, aggregate, min_nodes")
    rounds.only(("length", "aggregate", "min_nodes"))
    length = rounds.duration("length")
    if US_PER_DAY % length:
        raise rounds.placed(WrongRounds.no_day(), "length")
    min_nodes = rounds.whole("min_nodes", least_nodes or 1)
    if min_nodes > smallest:
        raise rounds.placed(WrongRounds.few_nodes(min_nodes, smallest), "min_nodes")
    return {
        "name": name,
        "file": top.file,
        "description": top.text("description", ""),
        "source": top.text("source"),
        "start": top.day("start"),
        "groups": groups,
        "round_us": length,
        "aggregate": rounds.choice("aggregate", tuple(AGGREGATES), "last"),
        "min_nodes": min_nodes,
        "max_carry": top.whole("max_carry", window, least=0),
        "missing_if_zero": top.text("missing_if_zero", None),
        "where": condition_text(top, "where"),
        "max_replay": top.whole("max_replay", 60),
        "alerts": _alerts(top),
    }


def _alerts(top: Settings) -> Alerts | None:
    if top.data.get("alerts") is None:
        return None
    try:
        return read_alerts(top.data["alerts"])
    except UnfitAlerts as error:
        raise top.placed(error, "alerts") from None
