"""``chainlake tune --try``: tries values of a setting of a model that is not a regression."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from chainlake.cli.errors import BadOption
from chainlake.days import Days
from chainlake.errors import UsageError
from chainlake.paths import Home
from chainlake.terminal import table_line

if TYPE_CHECKING:
    from chainlake.model_change.days.definitions import Kind
    from chainlake.model_change.days.trials import Trial
    from chainlake.monitoring.model_days import Model


class NoTrial(UsageError):
    """The setting to try is not one of the model's kind."""

    @classmethod
    def of(cls, model: str, kind: str, knobs: Sequence[str]) -> NoTrial:
        """For the model, its kind and the settings that can be tried."""
        listed = ", ".join(knobs)
        if not knobs:
            return cls(f"{model} is a linear model; try --eps, --window and --phi", hint="Drop --try.")
        what = f"{model} is of kind {kind}; --try takes one of {listed}"
        return cls(what, hint=f"Give --try {knobs[0]}=VALUE,VALUE,... and no --eps, --window, --phi, --plot or --json.")


def asked(model: str, kind_name: str, kind: Kind, text: str | None) -> tuple[str, list[Any]]:
    """The setting that ``NAME=VALUE,...`` names, and its values without repetition.

    Raises:
        UsageError: the kind has no such setting, or the setting cannot have such a value.
    """
    name, _, listed = (text or "").partition("=")
    if name not in kind.knobs:
        raise NoTrial.of(model, kind_name, list(kind.knobs))
    found = []
    for part in listed.split(","):
        try:
            found.append(kind.knobs[name].read(part.strip()))
        except ValueError as error:
            raise BadOption.not_one_of("--try", part.strip(), error) from None
    return name, list(dict.fromkeys(found))


def try_values(home: Home, model: Model[Any], days: Days, text: str | None) -> None:
    """Print a line for each value of a setting, as soon as it is computed."""
    from chainlake.model_change.days.definitions import kind_name, kind_of
    from chainlake.model_change.days.trials import trials
    from chainlake.monitoring.model_days import read_rounds

    config = model.config
    kind = kind_name(config)
    knob, values = asked(config.name, kind, kind_of(config), text)
    reduced = read_rounds(home, model, days)
    own = getattr(config, kind_of(config).knobs[knob].attribute)
    print(f"{config.name}, {days}: kind {kind}, its own {knob} is {own}")
    head: list[str] = []
    for one in trials(config, reduced, (days.start, days.end), knob, values):
        cells = _cells(one)
        if list(cells) != head:
            head = list(cells)
            print(_row([knob, *head]))
        print(_row([f"{one.value}", *cells.values()]), flush=True)


def _cells(one: Trial) -> dict[str, str]:
    """The columns of a line."""
    cells = {"rounds": str(one.rounds)}
    if one.normalized_up is not None:
        cells |= {"up": str(one.up), "down": str(one.down), "up/reading": f"{one.normalized_up:.4f}"}
    if one.max_error is not None:
        cells["max_error"] = f"{one.max_error:.4g}"
    return cells | {name: f"{value:.6g}" for name, value in one.figures.items()}


def _row(cells: Sequence[str]) -> str:
    return table_line(cells, [11] * len(cells), range(len(cells)))
