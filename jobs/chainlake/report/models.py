"""The page of a model: its changes in words, its coefficients, its data, and its error compared with eps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np

from chainlake.catalog.models import LoadedModel
from chainlake.days import Days, us_of
from chainlake.definitions.source import Source
from chainlake.errors import ChainlakeError
from chainlake.lake.delta import tables
from chainlake.lake.records.staleness import Judged
from chainlake.markup import Html, details, section, table, tag
from chainlake.model_change.config.features import Feature
from chainlake.model_change.config.model import ModelConfig
from chainlake.model_change.days.traces import GroupTrace, trace_group
from chainlake.monitoring.model_days import Model, beginning, read_rounds
from chainlake.paths import Home
from chainlake.pictures.model import profile_feature
from chainlake.report import companions
from chainlake.report.drawing import charts
from chainlake.report.drawing.road import PLACE, Change, is_road, road_map
from chainlake.report.drawing.states import shown, which_are
from chainlake.report.page import chart, document
from chainlake.report.reading import SourceReader
from chainlake.report.showing import Clock, comment, counted, short, unit_of, with_code, with_unit

#: The largest numbers of days drawn, and of events on them.
DAYS, EVENTS = 4, 150_000
#: How many groups of a model are drawn, and how many changes are listed.
GROUPS, LISTED = 4, 80
#: How many changes are shown at first; the others are folded.
FIRST = 12
_ONE = timedelta(days=1)
_KINDS = {
    "init": "first model", "sync": "synchronised", "change": "change", "node_change": "other nodes",
    "recovered": "model again", "unidentifiable": "no model can be determined",
}  # fmt: skip


@dataclass(frozen=True)
class Subject:
    """A model with what the lake knows about it.

    Args:
        lake: the tables.
        loaded: the model.
        judged: its days.
    """

    lake: SourceReader
    loaded: LoadedModel
    judged: Judged

    @property
    def home(self) -> Home:
        """The installation."""
        return self.lake.home

    @property
    def source(self) -> Source:
        """The source of the model's events."""
        return self.lake.source


def pages(of: Subject) -> dict[str, str]:
    """The page of a model, by its path in the report."""
    config = of.loaded.config
    lead = tag("p", with_code(config.description or "No description."), class_="lead")
    body = [lead, _facts(of), _failures(of), _meaning(of)]
    if isinstance(config, ModelConfig):
        body += [_changes(of, config), *_drawn(of, config)]
    else:
        body += companions.found(of.home, of.loaded)
    crumbs = [("Report", "index.html"), (f"model {config.name}", None)]
    return {f"models/{config.name}.html": document(f"Model {config.name}", body, depth=1, crumbs=crumbs)}


def _meaning(of: Subject) -> Html:
    """What the file says of the model, and the file."""
    text = (of.home.config / "models" / f"{of.loaded.config.name}.yaml").read_text(encoding="utf-8")
    said = [tag("p", with_code(one)) for one in comment(text)]
    shown = tag("pre", text.strip(), tabindex="0", aria_label="Text of the model")
    return section("What it means", *said, details("Its file", shown), name="meaning")


def changes_of(home: Home, models: Sequence[LoadedModel], source: str) -> list[Change]:
    """The changes of all models on a source, for a map."""
    names = {
        one.config.name: one for one in models if one.source.name == source and isinstance(one.config, ModelConfig)
    }
    if not names or not tables.exists(home, "models", "changes"):
        return []
    rows = tables.arrow(
        home, "models", "changes", columns=["model", "ts", "kind"],
        filters=[("model", "in", sorted(names)), ("kind", "=", "change")],
    ).to_pylist()  # fmt: skip
    found = []
    for row in rows:
        clock = Clock.of(names[row["model"]].source)
        found.append(Change(us_of(row["ts"]), f"{row['model']}, {clock.text(us_of(row['ts']))}"))
    return sorted(found, key=lambda one: one.us)


def _facts(of: Subject) -> Html:
    config, done = of.loaded.config, of.judged.state == "done"
    facts: list[tuple[object, str]] = [
        (of.source.name, "source"),
        (f"{int(done.sum()):,} of {len(done):,}", "days done"),
    ]
    if isinstance(config, ModelConfig):
        window = f"{'first' if config.infinite else 'last'} {config.window:,} rounds"
        eps = f"{config.eps:.0%} of the first model" if config.eps_is_share else f"{config.eps:g}"
        unit = _unit(of.source, config.response) if config.metric == "prediction" and not config.eps_is_share else None
        facts += [
            (window, f"window, rounds of {config.round_us / 6e7:g} min"),
            (f"{eps}{f' {unit}' if unit else ''}", "eps: a larger distance is a change"),
            (", ".join(config.feature_names), f"features of {config.response.base}"),
        ]
    return tag(
        "ul",
        *(
            tag("li", tag("b", value, class_="long" if len(str(value)) > 12 else None), tag("span", said))
            for value, said in facts
        ),
        class_="facts",
    )


def _failures(of: Subject) -> Html:
    rows = [
        (
            of.judged.day(at),
            shown(of.judged.state_at(at)),
            of.judged.why(at),
        )
        for at in np.flatnonzero(which_are(of.judged.state, "open", "bad"))[::-1][:LISTED].tolist()
    ]
    if not rows:
        return Html("")
    return section(
        "Days that need a look", table(("day (UTC)", "state", "why"), rows, "Days that are not done, latest first")
    )


def _unit(source: Source, feature: Feature) -> str | None:
    """The unit of an untransformed column; None where a transform or an expression changes it."""
    return None if feature.of is None or feature.steps else unit_of(source, feature.of)


# ---- changes in words


def _changes(of: Subject, config: ModelConfig) -> Html:
    if not tables.exists(of.home, "models", "changes"):
        return section("Changes", tag("p", "None yet.", class_="none"))
    rows = tables.arrow(of.home, "models", "changes", filters=[("model", "=", config.name)]).to_pylist()
    rows.sort(key=lambda row: (row["ts"], row["group_id"]), reverse=True)
    clock, several = Clock.of(of.source), len(config.groups) > 1
    shown = [row for row in rows if row["kind"] != "sync" or row["exceeded"]]
    listed = [
        (clock.html(us_of(row["ts"])), *([row["group_id"]] if several else []), _KINDS[row["kind"]],
         in_words(of.source, config, row), short(row["error_before"]))
        for row in shown[:LISTED]
    ]  # fmt: skip
    header = (f"from (in {clock.zone})", *(["group"] if several else []), "what", "in words", "size")
    unit = _unit(of.source, config.response) if config.metric == "prediction" else None
    about = (
        f"Size is the distance between the old and the new model{f', in {unit}' if unit else ', in the unit of eps'}."
    )
    more = (
        [tag("p", f"And {len(shown) - LISTED:,} earlier ones, in models.changes.", class_="small")]
        if len(shown) > LISTED
        else []
    )
    size = [len(header) - 1]
    parts = [table(header, listed[:FIRST], "Latest first", right=size)]
    if len(listed) > FIRST:
        earlier = listed[FIRST:]
        parts.append(details(f"{counted(len(earlier), 'earlier one')}", table(header, earlier, "Earlier", right=size)))
    return section("Changes", *parts, *more, about=about)


def in_words(source: Source, config: ModelConfig, row: Mapping[str, Any]) -> str:
    """What a row of ``models.changes`` says, in words."""
    before, after = _beta(row["beta_before"]), _beta(row["beta_after"])
    if row["violators"] and row["kind"] in ("sync", "change") and not after:
        return f"local test failed at {', '.join(row['violators'][:5])}"
    if not after:
        return "too few different values to determine a model"
    if not before:
        return ", ".join(f"{name} {short(value)}" for name, value in after.items())
    curve = profile_feature(config)
    if curve is not None and config.features[curve].low is not None:
        return _curve_words(source, config, config.features[curve], (before, after))
    moved = sorted(after, key=lambda name: -_relative(before.get(name), after[name]))
    parts = [f"{name} goes from {short(before.get(name))} to {short(after[name])}" for name in moved[:3]]
    return ", ".join(parts)


def _beta(entries: Sequence[Mapping[str, Any]] | None) -> dict[str, float]:
    return {str(one["feature"]): float(one["value"]) for one in entries or ()}


def _relative(before: float | None, after: float) -> float:
    return abs(after - (before or 0.0)) / max(abs(after), abs(before or 0.0), 1e-12)


def _curve_words(
    source: Source, config: ModelConfig, feature: Feature, betas: tuple[dict[str, float], dict[str, float]]
) -> str:
    """Where along the curve the two models differ most, in words."""
    assert feature.low is not None and feature.high is not None and feature.of is not None
    where = np.linspace(feature.low, feature.high, 141)
    a, b = feature.scale or (0.0, 1.0)
    scaled = a + (where - feature.low) * (b - a) / (feature.high - feature.low)
    powers = {name: scaled ** (at + 1) for at, name in enumerate(feature.names)}
    columns = np.stack([powers.get(name, np.ones_like(scaled)) for name in config.feature_names], axis=1)
    old, new = (columns @ np.array([beta.get(name, 0.0) for name in config.feature_names]) for beta in betas)
    at = int(np.argmax(np.abs(new - old)))
    by, unit, place = float(new[at] - old[at]), _unit(source, config.response) or "", unit_of(source, feature.of) or ""
    mean = float(np.mean(new - old))
    most = f"{abs(by):.3g} {unit} {'higher' if by > 0 else 'lower'} at {feature.of} {where[at]:.4g} {place}"
    words = (
        f"{config.response.base} is {most} ({float(old[at]):.3g} → {float(new[at]):.3g}); "
        f"on average {abs(mean):.2g} {unit} {'higher' if mean > 0 else 'lower'}"
    )
    return " ".join(words.split())


# ---- pictures


def _drawn(of: Subject, config: ModelConfig) -> list[Html]:
    days = _days(of)
    if days is None:
        return [section("Pictures", tag("p", "No day with events is done yet.", class_="none"))]
    model, found = Model(of.loaded, config), []
    try:
        first, states = beginning(of.home, model, days.start)
        reduced = read_rounds(of.home, model, Days(first, days.end))
        for group in list(config.groups)[:GROUPS]:
            trace = trace_group(config, group, reduced, first, days.end, states.get(group))
            found += _group(of, config, trace, days)
    except ChainlakeError as error:
        return [section("Pictures", tag("p", f"The rounds could not be recomputed: {error.summary}", class_="warn"))]
    more = len(config.groups) - GROUPS
    if more > 0:
        verb = f"chainlake picture {config.name} {days.start} {days.end} --group NAME"
        left = f"{counted(more, 'more group is', 'more groups are')} not drawn: "
        found.append(tag("p", left, tag("code", verb), class_="small"))
    return found


def _days(of: Subject) -> Days | None:
    """The last days up to the last one done, as many as can be drawn."""
    lake, done = of.lake, np.flatnonzero(of.judged.state == "done")
    if not len(done):
        return None
    first, last = of.judged.day(int(done[0])), of.judged.day(int(done[-1]))
    for many in range(DAYS, 0, -1):
        days = Days(max(first, last - timedelta(days=many - 1)), last + _ONE)
        if many == 1 or lake.events_on(days) <= EVENTS:
            return days
    return None


def _group(of: Subject, config: ModelConfig, trace: GroupTrace, days: Days) -> list[Html]:
    clock, source = Clock.of(of.source), of.source
    lo, hi = days.micros()
    rows = np.flatnonzero(trace.ts >= lo)
    of_group = f", group {trace.group}" if trace.group else ""
    if not len(rows):
        return [
            section(
                f"Coefficients{of_group}",
                tag("p", f"There are no complete rounds on {days.start} to {days.end - _ONE}.", class_="none"),
            )
        ]
    span = charts.Span(int(trace.ts[rows[0]]), min(hi, int(trace.ts[rows[-1]]) + config.round_us), clock)
    times = trace.ts[rows].tolist()
    changed = [int(trace.ts[at]) for at, event in trace.events if event.kind == "change" and trace.ts[at] >= lo]
    panels = []
    for at, name in enumerate(config.feature_names):
        line = list(zip(times, map(charts.finite, trace.coefficients[rows, at].tolist()), strict=True))
        spec = charts.series(
            span,
            {name: line},
            title=_coefficient(of, config, at),
            changes=changed,
            named=name == config.feature_names[-1],
        )
        panels.append(
            chart(spec, Html(""), f"Coefficient of {name} over time, {counted(len(changed), 'change')}.", tall=160)
        )
    errors: dict[str, list[tuple[int, float | None]]] = {}
    for label, values, wanted in (
        ("exact", trace.error_exact, config.detector != "local"),
        ("local", trace.error_local, config.detector != "exact"),
    ):
        if wanted:
            errors[f"{label} detector"] = list(zip(times, map(charts.finite, values[rows].tolist()), strict=True))
    level = None if trace.eps is None else (float(trace.eps), f"eps {trace.eps:.4g}")
    unit = _unit(source, config.response) if config.metric == "prediction" else None
    error = charts.series(
        span, errors, title=f"distance{f' ({unit})' if unit else ''}", height=150, level=level, changes=changed
    )
    dashed = f"Dashed lines: {counted(len(changed), 'change')} of the model."
    about = f"Recomputed for {days.start} to {days.end - _ONE} (UTC days). {dashed}"
    parts = [section(f"Coefficients{of_group}", *panels, about=about)]
    limit = f" of {trace.eps:.4g}" if trace.eps else ""
    said = f"Distance between the model of the window and the one last reported, against eps{limit}."
    parts.append(section(f"Error against eps{of_group}", chart(error, said, said, tall=200)))
    parts.append(section(f"Data{of_group}", _data(of, config, trace, (rows, span, changed))))
    return parts


def _coefficient(of: Subject, config: ModelConfig, at: int) -> str:
    """The title of a coefficient's axis, with a unit if the source states all units that it is made from."""
    name, unit = config.feature_names[at], _unit(of.source, config.response)
    feature = next(one for one in config.features if name in one.names)
    if unit is None:
        return name
    if feature.of is None or feature.scale is not None:
        return f"{name} ({unit})"
    other = _unit(of.source, feature)
    power = feature.names.index(name) + 1
    return f"{name} ({unit}/{other}{f'^{power}' if power > 1 else ''})" if other else name


def _data(
    of: Subject, config: ModelConfig, trace: GroupTrace, drawn: tuple[np.ndarray, charts.Span, list[int]]
) -> Html:
    """What the model was fitted to: a map if the source is a road, else the response of each node in each round."""
    rows, span, changed = drawn
    source, response = of.source, config.response
    if (
        is_road(source)
        and response.of is not None
        and not response.steps
        and any(a.name == response.of for a in source.attributes)
    ):
        keys = sorted({str(key) for nodes in config.groups.values() for node in nodes for key in node.keys})
        events = of.lake.events((span.lo_us, span.hi_us), [PLACE, response.of], keys)
        marks = [Change(us, span.clock.text(us)) for us in changed]
        spec = road_map(source, span, events, response.of, changes=marks)
        dashed = f"{counted(len(marks), 'change')} of the model (dashed)"
        said = f"{with_unit(source, response.of)} along the road, with {dashed}."
        return chart(spec, said, said, tall=400)
    nodes = max((len(trace.y[row]) for row in rows.tolist()), default=0)
    measured: dict[str, list[tuple[int, float | None]]] = {}
    for node in range(min(nodes, 4)):
        name = "measured" if nodes == 1 else f"measured, node {node + 1}"
        measured[name] = [
            (int(trace.ts[row]), charts.finite(float(trace.y[row][node])) if node < len(trace.y[row]) else None)
            for row in rows.tolist()
        ]
    if nodes == 1:
        fitted = [
            (int(trace.ts[row]), charts.finite(float(trace.x[row][0] @ trace.coefficients[row])))
            for row in rows.tolist()
        ]
        measured["by the model"] = fitted
    unit = _unit(source, response)
    spec = charts.series(
        span, measured, title=f"{response.base}{f' ({unit})' if unit else ''}", height=190, changes=changed
    )
    said = f"{response.base} of each round{', and what the model of the window gives' if nodes == 1 else ''}."
    return chart(spec, said, said, tall=240)
