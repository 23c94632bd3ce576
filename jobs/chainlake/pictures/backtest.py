"""A backtest as a picture: precision against recall of each setting, and how much each setting finds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from chainlake.cep.backtest import Score
from chainlake.pictures.sheet import COLOURS, LOUD, QUIET, legend, save, sheet

#: A setting of the parameters, and its score.
ScoredSetting = tuple[Mapping[str, float], Score]
#: The largest number of points with a label; if there are more settings, the best ones have one.
_NAMED = 12
#: Values of F, the harmonic mean of precision and recall, for which a curve is drawn.
_LEVELS = (0.2, 0.4, 0.6, 0.8)


def draw_backtest(scored: Sequence[ScoredSetting], title: str, path: Path) -> None:
    """Draw the settings of a backtest.

    Args:
        scored: each setting with its score, in the order of the grid.
        title: title of the picture.
        path: path of the file: SVG if it ends in ``.svg``, else PNG.

    Raises:
        UsageError: the file cannot be written.
    """
    figure = sheet(13, 6)
    figure.suptitle(title)
    plane, counts = figure.subplots(1, 2)
    for level in _LEVELS:
        recalls = [level / (2 - level) + step / 50 * (1 - level / (2 - level)) for step in range(51)]
        plane.plot(recalls, [level * r / (2 * r - level) for r in recalls], color=QUIET, linewidth=0.6, linestyle=":")
        plane.annotate(f"F = {level:g}", (1.0, level / (2 - level)), fontsize=7, color=QUIET, ha="right", va="bottom")
    drawn = [(setting, one, *_place(one)) for setting, one in scored if one.recall is not None]
    if len({len(setting) for setting, _ in scored}) == 1 and len(scored[0][0]) == 1:
        # With a single parameter, a line joins its values in their order.
        line = [(recall, precision) for _, one, recall, precision in drawn if one.precision is not None]
        plane.plot([r for r, _ in line], [p for _, p in line], color=COLOURS[0], linewidth=0.8, alpha=0.6)
    best = max(drawn, key=lambda one: f_score(one[1]), default=None)
    for setting, one, recall, precision in drawn:
        silent = one.precision is None
        colour = LOUD if best is not None and setting is best[0] else COLOURS[0]
        plane.plot(recall, precision, "x" if silent else "o", color=QUIET if silent else colour, clip_on=False)
    named = sorted(drawn, key=lambda one: -f_score(one[1]))[:_NAMED]
    for setting, _, recall, precision in named:
        plane.annotate(_words(setting), (recall, precision), textcoords="offset points", xytext=(6, 5), fontsize=7)
    plane.set(xlim=(0, 1.02), ylim=(0, 1.02), xlabel="recall: labels found", ylabel="precision: alarms that are true",
              title="Highlighted: the best F; a cross: no alarm")  # fmt: skip
    at = range(len(scored))
    counts.bar(at, [one.alarms - one.true_alarms for _, one in scored], bottom=[one.true_alarms for _, one in scored],
               color=QUIET, alpha=0.6, label="false alarms")  # fmt: skip
    counts.bar(at, [one.true_alarms for _, one in scored], color=COLOURS[0], label="true alarms")
    counts.plot(at, [one.found for _, one in scored], "D-", color=LOUD, markersize=4, label="labels found")
    counts.axhline(scored[0][1].labels, color=LOUD, linewidth=0.8, linestyle="--", label="labels")
    counts.set_xticks(list(at), [_words(setting) for setting, _ in scored], rotation=45, ha="right", fontsize=7)
    counts.set(ylabel="number", title="Alarms and labels per setting")
    for axis in (plane, counts):
        axis.grid(True, alpha=0.25)
    legend(counts)
    save(figure, path)


def f_score(one: Score) -> float:
    """The harmonic mean of precision and recall; 0 if there is none."""
    precision, recall = one.precision or 0.0, one.recall or 0.0
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def _place(one: Score) -> tuple[float, float]:
    return one.recall or 0.0, one.precision or 0.0


def _words(setting: Mapping[str, float]) -> str:
    return ", ".join(f"{name}={value:g}" for name, value in setting.items()) or "as written"
