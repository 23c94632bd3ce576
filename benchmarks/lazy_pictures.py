"""The figures of ``benchmarks.lazy``, drawn like those of the papers, with logarithmic costs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from chainlake.pictures.sheet import COLOURS, QUIET, legend, save, sheet

#: Colour, line and marker of each automaton; chains that bind the same name first look alike.
STYLES = {
    "eager": (QUIET, "-", "x"),
    "abc": (COLOURS[0], "-", "o"), "acb": (COLOURS[0], "--", "s"),
    "bac": (COLOURS[2], "-", "o"), "bca": (COLOURS[2], "--", "s"),
    "cab": (COLOURS[1], "-", "o"), "cba": (COLOURS[1], "--", "s"),
    "tree": (COLOURS[6], "-", "^"), "cost": (COLOURS[3], ":", "D"),
}  # fmt: skip


def _lines(axis: Any, at: list[float], values: dict[str, list[float]], marks: bool = True) -> None:
    for name, style in STYLES.items():
        if name in values:
            colour, line, marker = style
            axis.plot(at, values[name], line, color=colour, marker=marker if marks else "", markersize=4,
                      linewidth=2 if name in ("tree", "eager") else 1.2, label=name)  # fmt: skip
    axis.grid(True, which="both", alpha=0.25)


def draw(results: dict[str, Any], name: str, folder: Path) -> None:
    """Write ``lazy_NAME.png`` (experiments 1 to 3) and ``lazy_rotating.png`` (experiment 4), if there are results."""
    if "stock" in results:
        _stock(results["stock"], name, folder / f"lazy_{name}.png")
    if "rotating" in results:
        _rotating(results["rotating"], folder / "lazy_rotating.png")


def _stock(results: dict[str, Any], name: str, path: Path) -> None:
    figure = sheet(13, 8)
    figure.suptitle(f"Stock quotes ({name}): evaluations and waiting instances")
    axes = figure.subplots(2, 2).flat
    for axis, rows in zip(axes, results["sweeps"], strict=False):
        shares = [row["share"] for row in rows]
        _lines(axis, shares, {key: [row["E"][key] for row in rows] for key in rows[0]["E"]})
        axis.set(xscale="log", yscale="log", xlabel="events of c per event of a or b (f_c)", ylabel="E",
                 title=f"SEQ({', '.join(rows[0]['sequence'])})")  # fmt: skip
        legend(axis, ncols=2)
    axis = list(figure.axes)[3]
    peaks = results["peaks"]
    resting = {key: [row["costs"][key]["resting"] for row in peaks] for key in peaks[0]["costs"]}
    _lines(axis, [row["events"] for row in peaks], resting)
    axis.set_yscale("symlog", linthresh=1)
    axis.set(xlabel="events", ylabel="I_rest, peak of waiting instances", title="SEQ(a, b, c), f_c 0.03")
    legend(axis, ncols=2)
    save(figure, path)


def _rotating(results: dict[str, Any], path: Path) -> None:
    figure = sheet(13, 5)
    axis = figure.subplots()
    steps = [results["every"] * (i + 1) for i in range(len(results["course"]["tree"]))]
    _lines(axis, steps, results["course"], marks=False)
    for number, start in enumerate(range(0, results["events"], results["phase"])):
        axis.axvline(start, color=QUIET, linewidth=0.6)
        axis.text(start, axis.get_ylim()[1], f"  rarest: {'CAB'[number % 3]}", va="bottom", fontsize=8)
    axis.set(yscale="log", xlabel="events", ylabel=f"E per {results['every']:,} events")
    legend(axis, ncols=4)
    save(figure, path)
