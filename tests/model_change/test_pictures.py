"""The picture of a model: what it is drawn from, and that it is drawn."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from html import unescape

import numpy as np
import pyarrow as pa
import pytest
from deltalake import write_deltalake

from chainlake.cli.main import main
from chainlake.cli.verbs.lake.picture import file_of
from chainlake.days import Days, day_start_us
from chainlake.lake.delta import tables
from chainlake.lake.records import ops
from chainlake.lake.records.chain import EMPTY
from chainlake.lake.records.defined.fingerprints import fingerprint
from chainlake.lake.records.event_days import EventDays
from chainlake.model_change.days.definitions import parse_definition
from chainlake.model_change.days.traces import trace_group
from chainlake.model_change.library import monitor
from chainlake.model_change.rounds.reduce import reduce_rows
from chainlake.monitoring.model_days import beginning, find_model, published, read_rounds
from chainlake.monitoring.states import digest_of
from chainlake.pictures.companions import draw_rows
from chainlake.pictures.model import largest_changes, profile_feature, shown_by_trace
from chainlake.pictures.sheet import save, sheet
from chainlake.schemas.models import CHANGES, FAULT_SCORES, METRICS, STATE, ZONE_EVENTS
from tests.model_change import lab

pytestmark = pytest.mark.slow

SECOND, END = date(2025, 3, 2), date(2025, 3, 4)


def publish(home, result, until, state):
    """What the monitor step leaves of some days."""
    model = find_model(home, "bend")
    definition, event_days = model.loaded.definition, EventDays.load(home, "lab")
    days = list(Days(lab.FIRST, until))
    prints = {day: fingerprint(definition, day, event_days) for day in days}
    for table in (CHANGES, METRICS, STATE):
        tables.ensure_table(home, table)
    write_deltalake(home.table("models", "changes"), result.changes.cast(CHANGES.arrow()), mode="append")
    write_deltalake(home.table("models", "metrics"), result.metrics.cast(METRICS.arrow()), mode="append")
    last = days[-1]
    ends = [EMPTY, *(str(day) for day in days[:-1]), digest_of({"": state}, {})]
    row = {"model": "bend", "group_id": "", "day": last, "fingerprint": ends[-1], "state": state}
    write_deltalake(home.table("models", "state"), pa.Table.from_pylist([row], schema=STATE.arrow()), mode="append")
    ops.append(
        home,
        "intervals",
        [{"definition": definition.name, "day": day, "table_name": definition.table_name, "status": "done", "rows": 1,
          "definition_hash": definition.definition_hash, "engine_version": definition.engine_version,
          "input_fingerprint": prints[day], "added": 1, "withdrawn": 0, "changed": 0, "published_version": 1,
          "state_in": before, "state_out": after, "reason": ""}
         for day, before, after in zip(days, ends[:-1], ends[1:], strict=True)],
        "test",
    )  # fmt: skip


def test_going_on_from_a_state_gives_the_same_rounds_and_references():
    config = parse_definition(lab.MODEL, "bend")
    reduced = reduce_rows(config, lab.events(), "sensor")
    whole = trace_group(config, "", reduced, lab.FIRST, END)
    state = monitor(config, lab.events(), key="sensor", until=SECOND).state[""]
    rest = trace_group(config, "", reduced, SECOND, END, state)
    n = len(rest.ts)
    assert n == 288 and len(whole.ts) == 432
    for name in ("ts", "beta", "coefficients", "error_local", "error_exact", "reports", "synced"):
        np.testing.assert_array_equal(getattr(rest, name), getattr(whole, name)[-n:])
    for detector in ("local", "exact"):
        for row in (0, 50, 200):
            np.testing.assert_array_equal(rest.reference(row, detector), whole.reference(row + 144, detector))
    at, event = whole.of_kind("change")[0]
    assert whole.reference(at, "exact") is event.beta_after is not whole.reference(at - 1, "exact")
    np.testing.assert_allclose(whole.coefficients[at], event.beta_after)


def test_profiles_are_for_curves_along_one_column():
    assert profile_feature(parse_definition(lab.MODEL)) == 1
    plain = lab.MODEL.replace("  - polynomial: {of: p, degree: 2, scale: [-1, 1], range: [10, 30]}", "  - p")
    assert profile_feature(parse_definition(plain)) is None
    reduced = reduce_rows(parse_definition(lab.MODEL), lab.events(), "sensor")
    trace = trace_group(parse_definition(lab.MODEL), "", reduced, lab.FIRST, END)
    assert trace.spans == {1: (10.0, 30.0)}
    rows = largest_changes(trace, day_start_us(SECOND))
    sizes = {at: event.error_before for at, event in trace.of_kind("change") if at >= 144}
    assert max(sizes, key=sizes.get) in rows and min(rows) >= 144 and rows == sorted(rows) and len(rows) == 4


def test_messages_of_the_trace_are_the_metrics():
    config = parse_definition(lab.MODEL)
    trace = trace_group(config, "", reduce_rows(config, lab.events(), "sensor"), lab.FIRST, END)
    metrics = monitor(config, lab.events(), key="sensor").metrics.to_pylist()
    shown = shown_by_trace(trace, day_start_us(lab.FIRST))
    assert shown.messages == [(m["day"], pytest.approx(m["normalized_up"]), m["changes"]) for m in metrics]


def test_the_verb_draws_published_rows_or_recomputes(home, monkeypatch, tmp_path, capsys):
    home = lab.make(home, monkeypatch, lab.events())
    out = tmp_path / "bend.png"
    asked = ["picture", "bend", "2025-03-02", "2025-03-04", "--out", str(out)]
    assert main([*asked, "--at", "2025-03-02T13:00"]) == 0
    assert "recomputed, coefficients" in capsys.readouterr().out
    assert out.read_bytes().startswith(b"\x89PNG")
    model = find_model(home, "bend")
    assert beginning(home, model, SECOND) == (lab.FIRST, {}) and published(home, model, Days(SECOND, END)) is None
    one = monitor(model.config, lab.events(), key="sensor", until=SECOND)
    publish(home, monitor(model.config, lab.events(), key="sensor"), END, one.state[""])
    assert published(home, model, Days(SECOND, END)).metrics.num_rows == 2
    assert main(asked) == 0
    assert "as published" in capsys.readouterr().out


def test_it_goes_on_from_the_published_state(home, monkeypatch):
    home = lab.make(home, monkeypatch, lab.events())
    model = find_model(home, "bend")
    one = monitor(model.config, lab.events(), key="sensor", until=SECOND)
    publish(home, one, SECOND, one.state[""])
    assert beginning(home, model, SECOND) == (SECOND, {"": one.state[""]})
    assert len(read_rounds(home, model, Days(SECOND, END))) == 864


@pytest.mark.parametrize(
    ("more", "code", "told"),
    [
        (["2025-03-02", "2025-03-03", "--at", "noon"], 2, "'noon' is not a time"),
        (["2025-03-02", "2025-03-03", "--at", "2025-03-05T10:00"], 2, "is not in"),
        (["2025-03-01", "2025-03-02", "--at", "2025-03-01T00:10"], 4, "no model yet"),
        (["2025-03-02", "2025-03-03", "--group", "x"], 2, "no group x"),
        (["2025-02-01", "2025-02-03"], 4, "its days begin with 2025-03-01"),
        (["2025-03-02", "2025-03-03", "--out", "missing/bend.png"], 2, "cannot be written"),
    ],
)
def test_what_is_wrong_is_said(more, code, told, home, monkeypatch, tmp_path, capsys):
    lab.make(home, monkeypatch, lab.events())
    monkeypatch.chdir(tmp_path)
    assert main(["picture", "bend", *more]) == code
    assert told in capsys.readouterr().err


def test_names_are_drawn_as_they_are(tmp_path):
    """Not as formulas, and none is left out of a legend; a formula with an error would end the drawing."""
    names = ["$x$", r"$\foo$", "_u", "a$b"]
    at = datetime(2025, 3, 2, 7, tzinfo=UTC)
    metrics = [{"day": SECOND, "rounds": 24, "normalized_up": 0.5}]
    scores = [{"day": SECOND, "machine": name, "p": 1e-5, "flagged": True} for name in names]
    zones = [{"ts": at, "kind": "balanced", "violators": names}]
    for table, rows in ((FAULT_SCORES, scores), (ZONE_EVENTS, zones)):
        file = tmp_path / f"{table.name}.svg"
        draw_rows(table.path_name, r"group $\bar$", rows, metrics, file)
        drawn = unescape(file.read_text())
        for name in (*names, r"group $\bar$"):
            assert f"{name}</text>" in drawn, name


def test_numbers_of_an_axis_are_still_powers(tmp_path):
    figure = sheet(4, 3)
    figure.subplots().loglog([1, 1e9], [1, 1e9])
    save(figure, tmp_path / "powers.svg")
    shown = re.findall(r">([^<>]*)</t(?:ext|span)>", (tmp_path / "powers.svg").read_text())
    assert {"1", "0", "8"} <= set("".join(shown)) and not any("$" in text for text in shown)


def test_a_picture_lies_here_whatever_its_group_is_called():
    assert [str(file_of("m", group, Days(SECOND, END))) for group in ("", "g", "../a/b")] == [
        "m_2025-03-02_2025-03-04.png", "m_g_2025-03-02_2025-03-04.png", "m_.._a_b_2025-03-02_2025-03-04.png",
    ]  # fmt: skip
