"""Keys that a monitor names but no event has: mostly misspelt, or ``007`` without quotes, which YAML reads as 7.

Also values that the monitor needs but no event gives: an attribute that is never filled, or an expression that cannot
be computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from chainlake.model_change.config.series import SeriesConfig
from chainlake.model_change.statistics import state as states
from chainlake.model_change.statistics.statistics import Array

#: How many keys are named one by one.
_LISTED = 5
_CHECK = (
    "check that events fill what it is made of, and that it can be computed (no division by 0, no root or logarithm "
    "of what is below 0)"
)


def unobserved(config: SeriesConfig, group: str, observed: Array, day: date) -> list[str]:
    """What to say of a group's keys that no event has had up to a day: one sentence, or none.

    Args:
        config: the monitor.
        group: its group.
        observed: for each key of ``config.keys(group)``, whether there was an event.
        day: the last day considered; nodes that only take part after it are not expected yet.
    """
    later = {key for node in config.groups[group] if not node.begun(day) for key in node.keys}
    keys = [key for key, known in zip(config.keys(group), observed, strict=True) if not known and key not in later]
    if not keys:
        return []
    where = f" of group {group}" if group else ""
    event = f"event with {config.missing_if_zero} other than 0" if config.missing_if_zero else "event"
    event += " that 'where' is true for" if config.where else ""
    return [
        f"no {event} up to {day} has the key{'s' if len(keys) > 1 else ''} {_listed(keys)}{where}: "
        "check that the file spells it as the events do; a key with leading zeros needs quotes"
    ]


def unobserved_of_state(config: SeriesConfig, group: str, snapshot: str, day: date) -> list[str]:
    """`unobserved` for a published state; none if the state is of another version or has other keys."""
    values = states.loads(snapshot)
    if values is None or group not in config.groups:
        return []
    observed = values["rounds"]["heard"]
    return unobserved(config, group, observed, day) if len(observed) == len(config.keys(group)) else []


def _listed(names: Sequence[str]) -> str:
    listed = ", ".join(f"'{name}'" for name in names[:_LISTED])
    return listed + (f" and {len(names) - _LISTED} more" if len(names) > _LISTED else "")


def of_no_round(group: str, name: str, rounds: int) -> str:
    """What to say of a response or a feature for which no node had a value in any of ``rounds`` rounds."""
    where = f" of group {group}" if group else ""
    return f"{name} has no value in any of {rounds} rounds{where}, so none of them is used: {_CHECK}"


def of_no_value(group: str, columns: Sequence[str], rounds: int) -> str:
    """What to say of events without a value in any of ``columns``, which filled ``rounds`` lengths of a round."""
    where = f" of group {group}" if group else ""
    return (
        f"no event{where} has any value of {_listed(columns)}, so there is no round in the {rounds} that have events: "
        f"{_CHECK}"
    )


def of_no_round_at(group: str, name: str, nodes: Sequence[str], rounds: int) -> str:
    """What to say of a response or a feature for which some nodes, and not all, had no value in any of their rounds."""
    where = f" of group {group}" if group else ""
    used = "no round is used that needs them" if len(nodes) > 1 else "no round is used that needs it"
    return f"{name} has no value at {_listed(nodes)}{where} in any of {rounds} rounds, so {used}: {_CHECK}"
