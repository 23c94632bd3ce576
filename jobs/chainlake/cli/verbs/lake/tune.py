"""``chainlake tune``: shows what other thresholds would have cost and found; no Spark, nothing is published."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from chainlake.cli.errors import BadOption, BadTarget
from chainlake.cli.named import name_of
from chainlake.cli.trials import try_values
from chainlake.days import Days, instant
from chainlake.paths import Home
from chainlake.terminal import table_line

if TYPE_CHECKING:
    from chainlake.model_change.days.tuning import Outcome

HELP = (
    "Run a model over days with other thresholds (and window lengths, and phi of AR(1) errors). For each setting, "
    "show its cost and its findings: synchronisations and messages of the local detector, how many were false "
    "alarms, the largest error; the longest period of plain periodic updates with the same largest error; the "
    "changes of the exact detector. Nothing is chosen or published. The first window begins at FROM."
)
EXAMPLE = (
    "  chainlake tune i5n_speed_profile 2025-10-01 2025-10-05 --eps 3,4,5,6,8,10 --plot road.png\n"
    "  chainlake tune i5n_speed_profile 2025-10-01 2025-10-05 --window 3,6,12,24\n"
    "  chainlake tune next_speed 2025-10-01 2025-10-05 --try radius=0.02,0.05,0.1"
)
_T = TypeVar("_T")
#: Columns of the table and their widths, fixed since rows are printed as they are computed. The columns by which a
#: threshold is chosen come first, and fit a terminal of 80 columns.
_COLUMNS = {
    "W": 5, "phi": 5, "eps": 7, "changes": 7, "syncs": 6, "false alarms": 12, "messages": 8, "max error": 9,
    "(of rows' bytes)": 16, "PER(T*)": 8, "its messages": 12, "its error": 9, "T_mono": 6,
}  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add MODEL FROM TO, the settings and the outputs."""
    parser.add_argument(
        "model", metavar="MODEL", type=name_of("model"), help="name of the model: a file of dags/config/models/"
    )
    parser.add_argument("start", metavar="FROM", help="first day, YYYY-MM-DD (UTC)")
    parser.add_argument("end", metavar="TO", help="day after the last, YYYY-MM-DD (UTC)")
    parser.add_argument("--eps", metavar="LIST", help="thresholds (default: a quarter to four times the model's)")
    parser.add_argument("--window", metavar="LIST", help="window lengths in rounds (default: the model's)")
    parser.add_argument("--phi", metavar="LIST", help="AR(1) coefficients, none for OLS, fit (default: the model's)")
    parser.add_argument(
        "--try", dest="trial", metavar="NAME=LIST",
        help="values of a setting, such as radius=0.5,1,2, of a model of another kind (see docs/model-change.md)",
    )  # fmt: skip
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the sweep as a PNG")
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="write all numbers and the times of the changes as JSON"
    )


def run(args: argparse.Namespace) -> int:
    """Print one line per setting as soon as it is computed, then what they mean."""
    from chainlake.model_change.days.tuning import sweep
    from chainlake.monitoring.model_days import find_model, linear, read_rounds

    home, days = Home.from_env(), Days.parse(args.start, args.end)
    found = find_model(home, args.model)
    model = linear(found)
    if model is None or args.trial is not None:
        given = (args.eps, args.window, args.phi, args.plot, args.json)
        try_values(home, found, days, args.trial if given == (None,) * len(given) else None)
        return 0
    eps = _listed("--eps", args.eps, _above_zero)
    windows = _listed("--window", args.window, _rounds)
    phis = _listed("--phi", args.phi, _phi)
    reduced = read_rounds(home, model, days)
    print(f"{args.model}, {days}: constraint {model.config.constraint}, its own eps {model.config.eps:g}")
    print(_row(list(_COLUMNS)))
    outcomes = []
    for outcome in sweep(model.config, reduced, days.start, days.end, eps=eps, windows=windows, phis=phis):
        outcomes.append(outcome)
        print(_line(outcome), flush=True)
    print("\n".join(["", *_meaning(outcomes)]))
    if args.plot is not None:
        from chainlake.pictures.sweep import draw_sweep

        title = f"{args.model}, {days} UTC, constraint {model.config.constraint}"
        draw_sweep(outcomes, title, model.config.eps, args.plot)
        print(f"picture: {args.plot}")
    if args.json is not None:
        _write(args.json, args.model, days, outcomes)
    return 0


def _listed(option: str, text: str | None, value: Callable[[str], _T]) -> list[_T]:
    """The values of a comma-separated list, without repetition."""
    if text is None:
        return []
    found = []
    for part in text.split(","):
        try:
            found.append(value(part.strip()))
        except ValueError as error:
            raise BadOption.not_one_of(option, part.strip(), error) from None
    return list(dict.fromkeys(found))


def _number(text: str, what: str) -> float:
    try:
        found = float(text)
    except ValueError:
        raise ValueError(what) from None
    if not math.isfinite(found):
        raise ValueError(what)
    return found


def _above_zero(text: str) -> float:
    found = _number(text, "a number above 0")
    if found <= 0:
        raise ValueError("a number above 0")
    return found


def _rounds(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ValueError("a whole number of rounds")
    return int(text)


def _phi(text: str) -> float | str | None:
    if text in ("none", "fit"):
        return None if text == "none" else "fit"
    found = _number(text, "a number from 0 up to, not including, 1, none or fit")
    if not 0 <= found < 1:
        raise ValueError("a number from 0 up to, not including, 1, none or fit")
    return found


def _line(outcome: Outcome) -> str:
    period = "none" if outcome.period is None else f"{'>=' if outcome.capped else ''}{outcome.period}"
    per = "" if outcome.periodic_up is None else f"{outcome.periodic_up:.4f}"
    error = "" if outcome.periodic_error is None else f"{outcome.periodic_error:.4g}"
    phi = "OLS" if outcome.phi is None else f"{outcome.phi}"
    mono = "" if outcome.period_mono is None else str(outcome.period_mono)
    alarms = outcome.syncs - outcome.exceeded
    cells = (outcome.window, phi, f"{outcome.eps:.4g}", outcome.exact, outcome.syncs, alarms, f"{outcome.up:.4f}")
    more = (f"{outcome.max_error:.4g}", f"{outcome.up_bytes:.4f}", period, per, error, mono)
    return _row([str(cell) for cell in (*cells, *more)])


def _row(cells: Sequence[str]) -> str:
    return table_line(cells, list(_COLUMNS.values()), range(len(cells)))


def _meaning(outcomes: Sequence[Outcome]) -> list[str]:
    """What each eps would have cost and found, in words."""
    lines = []
    many = len({(o.window, o.phi) for o in outcomes}) > 1
    for o in outcomes:
        which = f" (W={o.window}, {'OLS' if o.phi is None else f'phi={o.phi}'})" if many else ""
        alarms = f"{o.syncs - o.exceeded} of {o.syncs} syncs"
        if o.period in (None, 1):
            periodic = "updates every second round have a larger error"
        elif o.capped:
            periodic = f"updates every {o.period} rounds, the longest period tried, have no larger error"
        else:
            periodic = f"updates every {o.period} rounds, a period known only afterwards, cost {o.periodic_up:.4f}"
        lines.append(
            f"eps {o.eps:g}{which}: {o.exact} changes; {o.up:.4f} messages per node and round (every row: 1) for an "
            f"error of at most {o.max_error:.4g}; false alarms: {alarms}; {periodic}."
        )
    return lines


def _write(path: Path, model: str, days: Days, outcomes: Sequence[Outcome]) -> None:
    rows: list[dict[str, Any]] = []
    for outcome in outcomes:
        row = asdict(outcome)
        stamps = [instant(us) for us in row.pop("exact_us")]
        rows.append({**row, "changes_at": [f"{at:%Y-%m-%dT%H:%M:%SZ}" for at in stamps]})
    try:
        result = {"model": model, "from": str(days.start), "to": str(days.end), "settings": rows}
        path.write_text(json.dumps(result, indent=1) + "\n")
    except OSError as error:
        raise BadTarget.refused("the numbers", path, error) from None
    print(f"numbers: {path}", file=sys.stderr)
