"""A sweep as a picture: messages and largest errors against eps, W and phi, for the local detector and the periodic
baseline side by side (SPEEDD D6.6, figures 4.5, 4.6d, 4.8 and 4.9; `chainlake.pictures.model` draws figure 4.7)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from chainlake.model_change.days.tuning import Outcome
from chainlake.pictures.sheet import COLOURS, QUIET, legend, save, sheet

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PERIODIC = "PER(T*), T* the longest with no larger error"
_PERIODIC_ERROR = "PER(T*); at T* = 1 it is 0"
_MESSAGES, _ERROR = "messages up per node and round", "max error after resolution"


def draw_sweep(outcomes: Sequence[Outcome], title: str, own_eps: float, path: Path) -> None:
    """Draw the outcomes of `chainlake.model_change.days.tuning.sweep`.

    Args:
        outcomes: all outcomes.
        title: title of the picture.
        own_eps: the model's eps, which is marked, and held fixed where W or phi vary.
        path: path of the PNG.
    """
    windows = sorted({o.window for o in outcomes})
    phis = sorted({o.phi for o in outcomes}, key=_phi_order)
    nearest = min({o.eps for o in outcomes}, key=lambda eps: abs(eps - own_eps))
    panels: list[Callable[[Axes], None]] = [
        lambda axis: _messages(axis, outcomes),
        lambda axis: _errors(axis, outcomes),
        lambda axis: _found(axis, outcomes),
    ]
    held = [o for o in outcomes if o.eps == nearest]
    if len(windows) > 1:
        panels += _both(held, "W (rounds)", lambda o: o.window, _phi, nearest)
    if len([phi for phi in phis if not isinstance(phi, str)]) > 1:
        numbers = [o for o in held if not isinstance(o.phi, str)]
        panels += _both(numbers, "phi", _phi_number, lambda o: f"W={o.window}", nearest)
    rows = -(-len(panels) // 3)
    figure = sheet(14, 4.2 * rows)
    figure.suptitle(title)
    axes = figure.subplots(rows, 3, squeeze=False).ravel()
    for axis, panel in zip(axes, panels, strict=False):
        panel(axis)
        axis.grid(True, which="both", alpha=0.25)
        legend(axis)
    tried = sorted({o.eps for o in outcomes})
    for axis in axes[:3]:
        axis.axvline(own_eps, color=QUIET, linewidth=0.8, linestyle=":")
        axis.set_xticks(tried, [f"{eps:.3g}" for eps in tried], rotation=45)
        axis.set_xticks([], minor=True)
    for axis in axes[len(panels) :]:
        axis.set_visible(False)
    save(figure, path)


def _phi_order(phi: float | str | None) -> tuple[bool, float]:
    return isinstance(phi, str), 0.0 if phi is None or isinstance(phi, str) else phi


def _phi_number(outcome: Outcome) -> float:
    return _phi_order(outcome.phi)[1]


def _phi(outcome: Outcome) -> str:
    return "OLS" if outcome.phi is None else f"phi={outcome.phi}"


def _curves(outcomes: Sequence[Outcome]) -> list[tuple[str, str, list[Outcome]]]:
    """For each (W, phi): colour, label, and outcomes in the order of eps."""
    keys = list(dict.fromkeys((o.window, o.phi) for o in outcomes))
    found = []
    for i, (window, phi) in enumerate(keys):
        mine = sorted((o for o in outcomes if (o.window, o.phi) == (window, phi)), key=lambda o: o.eps)
        found.append((COLOURS[i % len(COLOURS)], f"W={window} {_phi(mine[0])}", mine))
    return found


def _positive(value: float | None) -> float:
    """The value for a logarithmic axis; NaN for what it cannot show."""
    return value if value else float("nan")


def _once(text: str, first: bool) -> str:
    """The label of a kind of line, only for the first: one entry in the legend explains it for all colours."""
    return text if first else "_"


def _messages(axis: Axes, outcomes: Sequence[Outcome]) -> None:
    for i, (colour, label, mine) in enumerate(_curves(outcomes)):
        eps = [o.eps for o in mine]
        axis.plot(eps, [_positive(o.up) for o in mine], "o-", color=colour, markersize=3, label=f"local, {label}")
        per = [_positive(o.periodic_up) for o in mine]
        axis.plot(eps, per, "s--", color=colour, markersize=3, alpha=0.6, label=_once(_PERIODIC, i == 0))
    axis.set(xscale="log", yscale="log", xlabel="eps", ylabel=_MESSAGES, title="Communication")


def _errors(axis: Axes, outcomes: Sequence[Outcome]) -> None:
    for i, (colour, label, mine) in enumerate(_curves(outcomes)):
        eps = [o.eps for o in mine]
        worst = [_positive(o.max_error) for o in mine]
        axis.plot(eps, worst, "o-", color=colour, markersize=3, label=f"local, {label}")
        per = [_positive(o.periodic_error) for o in mine]
        axis.plot(eps, per, "s--", color=colour, markersize=3, alpha=0.6, label=_once(_PERIODIC_ERROR, i == 0))
    tried = sorted({o.eps for o in outcomes})
    axis.plot(tried, tried, color=QUIET, label="eps")
    axis.set(xscale="log", yscale="log", xlabel="eps", ylabel=_ERROR, title="Error")


def _found(axis: Axes, outcomes: Sequence[Outcome]) -> None:
    for i, (colour, label, mine) in enumerate(_curves(outcomes)):
        eps = [o.eps for o in mine]
        for values, style, alpha, text in (
            ([o.exact for o in mine], "o-", 1.0, f"changes, {label}"),
            ([o.syncs for o in mine], "x:", 1.0, _once("syncs of local", i == 0)),
            ([o.exceeded for o in mine], "+--", 0.6, _once("syncs with eps exceeded", i == 0)),
        ):
            line = [_positive(value) for value in values]
            axis.plot(eps, line, style, color=colour, markersize=4, alpha=alpha, label=text)
    axis.set(xscale="log", yscale="log", xlabel="eps", ylabel="number", title="What is found")


def _both(
    outcomes: Sequence[Outcome],
    name: str,
    value: Callable[[Outcome], float],
    label: Callable[[Outcome], str],
    eps: float,
) -> list[Callable[[Axes], None]]:
    """Panels with messages and errors at one eps against another setting."""

    def panel(
        axis: Axes, what: str, local: Callable[[Outcome], float], periodic: Callable[[Outcome], float | None]
    ) -> None:
        for i, text in enumerate(dict.fromkeys(label(o) for o in outcomes)):
            mine = sorted((o for o in outcomes if label(o) == text), key=value)
            colour = COLOURS[i % len(COLOURS)]
            at = [value(o) for o in mine]
            own, per = ([_positive(read(o)) for o in mine] for read in (local, periodic))
            axis.plot(at, own, "o-", color=colour, markersize=3, label=f"local, {text}")
            axis.plot(at, per, "s--", color=colour, markersize=3, alpha=0.6, label=_once(what, i == 0))
        axis.set(yscale="log", xlabel=name, title=f"{name} at eps={eps:g}")

    def messages(axis: Axes) -> None:
        panel(axis, _PERIODIC, lambda o: o.up, lambda o: o.periodic_up)
        axis.set_ylabel(_MESSAGES)

    def errors(axis: Axes) -> None:
        panel(axis, _PERIODIC_ERROR, lambda o: o.max_error, lambda o: o.periodic_error)
        axis.axhline(eps, color=QUIET, label="eps")
        axis.set_ylabel(_ERROR)

    return [messages, errors]
