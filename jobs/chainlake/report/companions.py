"""What a model of any kind but regression has found, presented for people: alerts, zones, learners, machines.

Charts show the last days that have rows, and tables the latest rows; both come from what was published.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Any

from chainlake.catalog.models import LoadedModel
from chainlake.days import US_PER_DAY, day_number, us_of
from chainlake.definitions.source import Source
from chainlake.lake.delta import tables
from chainlake.markup import Html, joined, section, table, tag
from chainlake.model_change.config.features import Feature
from chainlake.model_change.config.threshold import ThresholdConfig
from chainlake.model_change.days.definitions import result_table
from chainlake.model_change.faults.config import FaultsConfig
from chainlake.paths import Home
from chainlake.report.drawing import charts
from chainlake.report.page import chart
from chainlake.report.showing import Clock, counted, number, plain, short, unit_of
from chainlake.schemas.models import ALERTS, FAULT_SCORES, LEARNERS, METRICS, ZONE_EVENTS

Row = dict[str, Any]
#: How many days are drawn, and how many rows are listed.
DAYS, LISTED = 30, 80
#: How many machines' scores are drawn: those that were flagged, or came nearest to it.
_LINES = 6


def found(home: Home, loaded: LoadedModel) -> list[Html]:
    """The sections of a model's page that show its findings."""
    kind = result_table(loaded.config)
    rows = _rows(home, kind.schema, kind.name, (kind.key[0], loaded.config.name))
    sections = _SHOWN[kind.path_name](rows, loaded)
    metrics = _rows(home, METRICS.schema, METRICS.name, ("model", loaded.config.name))
    return [*sections, *_sent(metrics)]


def _rows(home: Home, schema: str, name: str, owner: tuple[str, str]) -> list[Row]:
    if not tables.exists(home, schema, name):
        return []
    found: list[Row] = tables.arrow(home, schema, name, filters=[(owner[0], "=", owner[1])]).to_pylist()
    return found


def _listed(
    title: str, header: Sequence[str], rows: Sequence[Sequence[object]], where: str, right: Sequence[int] = ()
) -> Html:
    """The first rows as a table, and how many more there are."""
    if not rows:
        return tag("p", "None yet.", class_="none")
    more = len(rows) - LISTED
    rest = [tag("p", f"And {more:,} earlier ones, in {where}.", class_="small")] if more > 0 else []
    return joined([table(header, rows[:LISTED], title, right=list(right)), *rest])


def _span(first_us: int, last_us: int, clock: Clock, *, aside: float = 0.0) -> charts.Span:
    """The last days up to ``last_us``, with a share of them as room for a name on either side."""
    lo = max(first_us, last_us - DAYS * US_PER_DAY)
    room = int(aside * max(last_us - lo, 1))
    return charts.Span(lo - room, max(last_us, lo + 1) + room, clock)


def _days(shown: Sequence[date]) -> charts.DaySpan:
    """Whole UTC days, from the first to the last."""
    return charts.DaySpan(day_number(shown[0]) * US_PER_DAY, (day_number(shown[-1]) + 1) * US_PER_DAY, Clock("UTC"))


def measured(feature: Feature, source: Source) -> str:
    """A column of a model, with its unit if it has the unit of an attribute."""
    unit = unit_of(source, feature.of) if feature.of is not None and not feature.steps else None
    return f"{feature.base}{f' ({unit})' if unit else ''}"


# ---- threshold monitors


def _alerts(rows: list[Row], loaded: LoadedModel) -> list[Html]:
    clock, config = Clock.of(loaded.source), loaded.config
    assert isinstance(config, ThresholdConfig)
    rows.sort(key=lambda row: row["ts"], reverse=True)
    what = f"mean of {measured(config.response, loaded.source)}"
    listed = [
        (clock.html(us_of(one["ts"])), one["kind"], short(one["mean"]), number(one["n_collected"])) for one in rows
    ]
    header = (f"time (in {clock.zone})", "what", what, "sensors asked")
    body = [_listed("Latest first", header, listed, ALERTS.path_name, right=[2, 3])]
    if len(rows) > 1:
        span = _span(us_of(rows[-1]["ts"]), us_of(rows[0]["ts"]), clock, aside=0.08)
        points = {
            said: [
                (us_of(one["ts"]), one["mean"])
                for one in reversed(rows)
                if one["kind"] == kind and us_of(one["ts"]) >= span.lo_us and plain(one["mean"]) is not None
            ]
            for kind, said in (("below", "it fell below"), ("recovered", "it came back"))
        }
        falls = sum(one["kind"] == "below" and us_of(one["ts"]) >= span.lo_us for one in rows)
        spec = charts.dots(span, points, title=what, level=(config.threshold, "threshold"))
        said = f"The mean whenever it fell below the threshold (dashed) or came back: {counted(falls, 'fall')}."
        body.insert(0, chart(spec, said, said, tall=210))
    return [section("Alerts", *body)]


# ---- safe zones


def _zones(rows: list[Row], loaded: LoadedModel) -> list[Html]:
    clock = Clock.of(loaded.source)
    rows.sort(key=lambda row: (row["ts"], row["kind"]))
    stays = list(_outside(rows))
    units = {one.base: measured(one, loaded.source) for one in loaded.config.features}
    several = len({row["group_id"] for row in rows}) > 1
    listed = [
        (
            clock.html(us_of(left["ts"])),
            "still outside" if back is None else clock.html(us_of(back["ts"])),
            _values(left["mean"], units),
            ", ".join(left["facets"] or ()),
            *([left["group_id"]] if several else []),
        )
        for left, back in reversed(stays)
    ]
    header = (f"left (in {clock.zone})", "back", "mean when it left", "limits that some node exceeded",
              *(["group"] if several else []))  # fmt: skip
    parts = [
        section(
            "True alerts",
            _listed("When the mean was outside the region, latest first", header, listed, ZONE_EVENTS.path_name),
            about="The mean of all nodes has left the region. A node outside its own zone only asks.",
        )
    ]
    asked = [row for row in rows if row["violators"]]
    if not asked:
        return parts
    by_node: dict[str, int] = {}
    for row in asked:
        for node in row["violators"]:
            by_node[node] = by_node.get(node, 0) + 1
    span = _span(us_of(asked[0]["ts"]), us_of(asked[-1]["ts"]), clock)
    names = {
        "the mean was inside": [row for row in asked if row["kind"] == "balanced"],
        "the mean was outside": [row for row in asked if row["kind"] in ("outside", "inside")],
    }
    points = {
        name: [(us_of(row["ts"]), float(len(row["violators"]))) for row in some if us_of(row["ts"]) >= span.lo_us]
        for name, some in names.items()
    }
    left = [us_of(one["ts"]) for one, _ in stays if us_of(one["ts"]) >= span.lo_us]
    spec = charts.dots(span, points, title="nodes outside their zones", changes=left)
    left_often = counted(len(left), "time")
    said = f"Rounds in which nodes were outside their zones; dashed: the mean left the region ({left_often})."
    often = sorted(by_node.items(), key=lambda one: (-one[1], one[0]))
    loud = _listed("Nodes by how often they asked", ("node", "times"), [(node, f"{n:,}") for node, n in often], "", [1])
    return [*parts, section("Violations", chart(spec, said, said, tall=220), loud)]


def _outside(rows: Sequence[Row]) -> list[tuple[Row, Row | None]]:
    """Periods outside the region: the row that begins each, and the row that ends it if it has ended."""
    open_: dict[str, Row] = {}
    stays: list[tuple[Row, Row | None]] = []
    for row in rows:
        if row["kind"] == "outside":
            open_[row["group_id"]] = row
        elif row["kind"] == "inside" and row["group_id"] in open_:
            stays.append((open_.pop(row["group_id"]), row))
    return sorted([*stays, *((row, None) for row in open_.values())], key=lambda pair: pair[0]["ts"])


def _values(mean: Sequence[Row] | None, named: Mapping[str, str] | None = None) -> str:
    """Values by their names, or by what ``named`` calls these."""
    return ", ".join(f"{(named or {}).get(one['feature'], one['feature'])} {one['value']:.4g}" for one in mean or ())


# ---- shared learning


def _learners(rows: list[Row], loaded: LoadedModel) -> list[Html]:
    days = [row for row in rows if row["kind"] == "day"]
    if not days:
        return [section("Losses", tag("p", "No day is done yet.", class_="none"))]
    by_day: dict[date, dict[str, float]] = {}
    for row in days:
        sums = by_day.setdefault(row["event_date"], dict.fromkeys(("loss", "loss_alone", "loss_static"), 0.0))
        for name in sums:
            sums[name] += row[name] or 0.0
    listed = [
        (day, short(one["loss"]), short(one["loss_alone"]), short(one["loss_static"]), _gain(one))
        for day, one in sorted(by_day.items(), reverse=True)
    ]
    header = ("day (UTC)", "as they are", "never sharing", "sharing at every check", "kept of the gain")
    shown = sorted(by_day)[-DAYS:]
    lines = {
        said: [(charts.noon_us(day), by_day[day][name] - by_day[day]["loss_static"]) for day in shown]
        for name, said in (("loss", "as they are"), ("loss_alone", "never sharing"))
    }
    body = [_listed("Sums of losses per day, latest first", header, listed, LEARNERS.path_name, [1, 2, 3, 4])]
    if len(shown) > 1:
        said = "Regret per day: how much more the learners lose than if they shared at every check."
        spec = charts.series(
            _days(shown), lines, title="regret (loss)", height=150, level=(0.0, "sharing at every check")
        )
        body.insert(0, chart(spec, said, said, tall=210))
    by_learner = {row["learner"]: row for row in sorted(days, key=lambda row: row["event_date"])}
    last = [
        (
            name,
            row["event_date"],
            short(row["loss"]),
            short(row["loss_alone"]),
            number(row["errors"]),
            _values(row["weights"]),
        )
        for name, row in sorted(by_learner.items())
    ]
    columns = ("learner", "day (UTC)", "loss", "never sharing", "errors", "weights")
    own = _listed("Each learner on its last day", columns, last, LEARNERS.path_name, [2, 3, 4])
    return [section("Regret", *body), section("Learners", own)]


def _gain(sums: dict[str, float]) -> str:
    """What share of the gain from sharing at every check the learners have achieved."""
    most = sums["loss_alone"] - sums["loss_static"]
    return "none to gain" if most <= 0 else f"{(sums['loss_alone'] - sums['loss']) / most:.0%}"


# ---- latent faults


def _faults(rows: list[Row], loaded: LoadedModel) -> list[Html]:
    clock, several, config = Clock.of(loaded.source), len({row["group_id"] for row in rows}) > 1, loaded.config
    assert isinstance(config, FaultsConfig)
    # A window of a whole day ends with the day's last round, whichever round that is.
    inside = config.length is not None
    listed = [
        (
            said, last["machine"], _signed(last["top_counters"]), short(last["v_norm"]), f"{last['p']:.2g}",
            *([_first(last, clock)] if inside else []), *([last["group_id"]] if several else []),
        )
        for said, last in _flagged(rows)
    ]  # fmt: skip
    header = ("days (UTC)", "machine", "counters that carry it (+ above the others, − below)", "v", "p",
              *([f"first flagged (in {clock.zone})"] if inside else []), *(["group"] if several else []))  # fmt: skip
    table_ = _listed("Latest first; of several days, the values of the last", header, listed, FAULT_SCORES.path_name,
                     [3, 4])  # fmt: skip
    about = f"A machine is flagged on a day if its p is below {config.bound:g}."
    parts = [section("Flagged machines", table_, about=about)]
    shown = sorted({row["day"] for row in rows})[-DAYS:]
    if len(shown) < 2:
        return parts
    nearest = sorted({row["machine"] for row in rows}, key=lambda name: (_least(rows, name), name))[:_LINES]
    lines = {
        name: [
            (charts.noon_us(row["day"]), plain(row["v_norm"]))
            for row in sorted(rows, key=lambda row: row["day"])
            if row["machine"] == name and row["day"] in shown
        ]
        for name in nearest
    }
    spec = charts.series(_days(shown), lines, title="v (0 to 1)", height=170)
    said = f"How far machines behave unlike the others: the {len(nearest)} with the smallest p."
    return [*parts, section("Scores", chart(spec, said, said, tall=240))]


def _flagged(rows: Sequence[Row]) -> list[tuple[str, Row]]:
    """Stretches of days on which a machine was flagged, in words, each with its last row; those that end last first."""
    known = sorted({row["day"] for row in rows})
    place = {day: at for at, day in enumerate(known)}
    stretches: dict[tuple[str, str], list[list[Row]]] = {}
    for row in sorted((row for row in rows if row["flagged"]), key=lambda row: row["day"]):
        mine = stretches.setdefault((row["group_id"], row["machine"]), [])
        if mine and place[row["day"]] == place[mine[-1][-1]["day"]] + 1:
            mine[-1].append(row)
        else:
            mine.append([row])
    found = [stretch for mine in stretches.values() for stretch in mine]
    found.sort(key=lambda one: (-one[-1]["day"].toordinal(), one[-1]["p"], one[-1]["machine"]))
    return [(_days_of(one, one[-1]["day"] == known[-1]), one[-1]) for one in found]


def _days_of(stretch: Sequence[Row], lasts: bool) -> str:
    first, last = stretch[0]["day"], stretch[-1]["day"]
    if first == last:
        return str(first)
    return f"every day since {first}" if lasts else f"{first} to {last}, every day"


def _first(row: Row, clock: Clock) -> object:
    return "" if row["first_flagged"] is None else clock.html(us_of(row["first_flagged"]))


def _signed(values: Sequence[Row] | None) -> str:
    """Values by their names, each with its sign."""
    return ", ".join(f"{one['feature']} {one['value']:+.4g}".replace(" -", " −") for one in values or ())


def _least(rows: Sequence[Row], machine: str) -> float:
    return min(float(row["p"]) for row in rows if row["machine"] == machine)


# ---- all


def _sent(metrics: list[Row]) -> list[Html]:
    """Messages sent per day, over all groups."""
    by_day: dict[date, int] = {}
    for row in metrics:
        if row["reports_up"] is not None:
            by_day[row["day"]] = by_day.get(row["day"], 0) + row["reports_up"] + (row["polls_down"] or 0)
    if not by_day:
        return []
    said = f"Messages of {counted(len(by_day), 'day')}, up and down: {sum(by_day.values()):,}."
    spec = charts.bars(sorted(by_day.items()), title="messages")
    return [section("Messages per day", chart(spec, said, said, tall=190))]


_SHOWN: dict[str, Callable[[list[Row], LoadedModel], list[Html]]] = {
    ALERTS.path_name: _alerts,
    ZONE_EVENTS.path_name: _zones,
    LEARNERS.path_name: _learners,
    FAULT_SCORES.path_name: _faults,
}
