"""What other thresholds would have cost and found, against the monitor itself and a loop over periods."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date

import numpy as np
import pytest

from chainlake.cli.main import main
from chainlake.days import Days
from chainlake.errors import InputError
from chainlake.model_change.days.definitions import kind_of, load_definition, parse_definition
from chainlake.model_change.days.traces import trace_group
from chainlake.model_change.days.tuning import sweep
from chainlake.model_change.library import monitor
from chainlake.model_change.rounds.reduce import reduce_rows
from chainlake.monitoring.model_days import find_model, read_rounds
from tests.model_change import lab

END = date(2025, 3, 4)


def setting(text=lab.MODEL, rows=None):
    config = parse_definition(text)
    return config, reduce_rows(config, lab.events() if rows is None else rows, "sensor")


@pytest.mark.slow
def test_an_outcome_is_what_the_monitor_says_with_that_eps():
    config, reduced = setting()
    found = list(sweep(config, reduced, lab.FIRST, END, eps=[0.9, 0.3], windows=[12, 24]))
    assert [(o.window, o.eps) for o in found] == [(12, 0.3), (12, 0.9), (24, 0.3), (24, 0.9)]
    for outcome in found:
        whole = monitor(replace(config, eps=outcome.eps, window=outcome.window), lab.events(), key="sensor")
        metrics, changes = whole.metrics.to_pylist(), whole.changes.to_pylist()
        syncs = [row for row in changes if row["kind"] == "sync"]
        assert outcome.syncs == len(syncs) > 0
        assert outcome.exceeded == sum(row["exceeded"] for row in syncs)
        assert outcome.exact == sum(row["kind"] == "change" for row in changes) == len(outcome.exact_us) > 0
        assert outcome.max_error == pytest.approx(max(row["max_error"] for row in metrics), rel=1e-12)
        sent = sum(row["reports_up"] + row["polls_down"] for row in metrics)
        assert outcome.rounds == 432 - outcome.window
        assert outcome.up == pytest.approx(sent / (3 * outcome.rounds))
        both = sum(row["reports_up"] + 3 * row["polls_down"] for row in metrics)
        assert outcome.both == pytest.approx(both / (3 * outcome.rounds))


@pytest.mark.slow
def test_periods_are_those_of_a_plain_loop():
    config, reduced = setting()
    outcome = next(sweep(config, reduced, lab.FIRST, END, eps=[3.0]))
    trace = trace_group(config, "", reduced, lab.FIRST, END)
    beta = trace.beta[trace.counted]
    good, errors = [], []
    for period in range(1, len(beta) // 2 + 1):
        held, worst = beta[0], 0.0
        for i, now in enumerate(beta):
            held = now if i % period == 0 else held
            worst = max(worst, float(np.linalg.norm(now - held)))
        good.append(worst <= outcome.max_error)
        errors.append(worst)
    assert outcome.period == len(good) - good[::-1].index(True) > 1
    assert outcome.period_mono == good.index(False) and not outcome.capped
    assert outcome.periodic_up == 1 / outcome.period
    assert outcome.periodic_error == pytest.approx(errors[outcome.period - 1]) and 0 < outcome.periodic_error
    assert outcome.periodic_error <= outcome.max_error


@pytest.mark.slow
def test_groups_add_up_and_phi_is_swept():
    text = lab.MODEL.replace("nodes: [a, b, c]", "groups: {one: [a, b, c], two: [c, b, a]}")
    one, reduced = setting()
    two, _ = setting(text)
    alone = list(sweep(one, reduced, lab.FIRST, END, eps=[0.6], phis=[None, 0.5]))
    both = list(sweep(two, reduced, lab.FIRST, END, eps=[0.6], phis=[None, 0.5]))
    assert [o.phi for o in both] == [None, 0.5] and alone[0].syncs != alone[1].syncs
    for single, double in zip(alone, both, strict=True):
        assert (double.syncs, double.exact) == (2 * single.syncs, 2 * single.exact)
        assert double.up == pytest.approx(single.up) and double.period == single.period
        assert double.periodic_error == pytest.approx(single.periodic_error)


@pytest.mark.slow
def test_shares_and_uncounted_rounds():
    text = lab.MODEL.replace("eps: 0.6", "eps: {share: 0.012}")
    share, reduced = setting(text)
    plain, _ = setting()
    whole = trace_group(share, "", reduced, lab.FIRST, END)
    found = next(sweep(share, reduced, lab.FIRST, END, eps=[0.012]))
    same = next(sweep(plain, reduced, lab.FIRST, END, eps=[whole.eps]))
    assert whole.eps > 0.3 and (found.syncs, found.exact) == (same.syncs, same.exact)
    assert found.max_error == pytest.approx(same.max_error * 0.012 / whole.eps) and found.max_error < 0.012
    assert found.periodic_error == pytest.approx(same.periodic_error * 0.012 / whole.eps)
    late = replace(plain, count_from=200)
    outcome = next(sweep(late, reduced, lab.FIRST, END, eps=[0.6]))
    metrics = monitor(late, lab.events(), key="sensor").metrics.to_pylist()
    assert outcome.rounds == 232 and outcome.exact == sum(row["changes"] for row in metrics)
    assert outcome.exact < next(sweep(plain, reduced, lab.FIRST, END, eps=[0.6])).exact
    assert outcome.syncs == sum(row["syncs"] for row in metrics)


def test_a_window_that_is_never_complete_is_an_error():
    config, reduced = setting()
    with pytest.raises(InputError, match="no window of 1000 rounds"):
        list(sweep(config, reduced, lab.FIRST, END, windows=[1000]))


@pytest.mark.slow
def test_the_verb_prints_draws_and_writes(home, monkeypatch, tmp_path, capsys):
    lab.make(home, monkeypatch, lab.events(days=1))
    plot, numbers = tmp_path / "sweep.png", tmp_path / "sweep.json"
    asked = ["tune", "bend", "2025-03-01", "2025-03-02", "--eps", "0.3,1", "--window", "6,12", "--phi", "none,0.5"]
    assert main([*asked, "--plot", str(plot), "--json", str(numbers)]) == 0
    said = capsys.readouterr().out
    rows = json.loads(numbers.read_text())["settings"]
    assert len(rows) == 8 and all(len(row["changes_at"]) == row["exact"] for row in rows)
    assert said.count("false alarms:") == 8 and f"{rows[0]['up']:.4f} messages per node and round" in said
    assert plot.read_bytes().startswith(b"\x89PNG")


@pytest.mark.few(1)
@pytest.mark.parametrize("more", ["missing_if_zero: p", "where: p > 10 AND sensor != 'b' AND id LIKE '%1'"])
def test_what_decides_on_events_is_read_with_them(more, home, monkeypatch):
    """Columns that the rounds themselves do not have."""
    text = lab.MODEL.replace("polynomial: {of: p, degree: 2, scale: [-1, 1], range: [10, 30]}", "constant")
    home = lab.make(home, monkeypatch, lab.events(days=1))
    (home.config / "models" / "level.yaml").write_text(f"{text}intercept: false\n{more}\n")
    model = find_model(home, "level")
    found = read_rounds(home, model, Days.one(lab.FIRST))
    assert found.equals(reduce_rows(model.config, lab.events(days=1), "sensor")) and found.column_names[2:] == ["y"]
    assert set(found["key"].to_pylist()) == ({"c"} if "where" in more else set(lab.PLACES))


@pytest.mark.parametrize(
    ("more", "code", "told"),
    [
        (["nowhere", "2025-03-01", "2025-03-04"], 2, "Models are bend"),
        (["bend", "2025-03-01", "2025-03-04", "--eps", "1,0"], 2, "'0' is not a number above 0"),
        (["bend", "2025-03-01", "2025-03-04", "--window", "1.5"], 2, "'1.5' is not a whole number of rounds"),
        (["bend", "2025-03-01", "2025-03-04", "--phi", "1"], 2, "'1' is not a number from 0"),
        (["bend", "2025-05-01", "2025-05-04"], 4, "ingest lab 2025-05-01"),
    ],
)
def test_what_is_wrong_is_said(more, code, told, home, monkeypatch, capsys):
    lab.make(home, monkeypatch, lab.events(days=1))
    assert main(["tune", *more]) == code
    assert told in capsys.readouterr().err


KINDS = {
    "mean": ("kind: threshold\nvalue: y\nthreshold: 48\n", "threshold=48,47", "48.0", {"below", "recovered"}),
    "zones": ("kind: safe_zones\nvalues: [y]\nregion: {box: [[48, null]]}\ndesign: {rounds: 20}\n", "rounds=20,40",
              "20", {"outside", "inside"}),
    "learn": ("kind: shared_learning\nresponse: {name: y, expression: y / 50}\n"
              "features: [{name: p, expression: p / 30}]\n"
              "learning_rate: 0.1\nsync: {dynamic: 0.1}\n", "radius=0.1,1", "0.1", {"loss", "loss_alone"}),
    "faults": ("kind: latent_faults\ncounters: [y, p]\nalpha: 0.05\n", "alpha=0.05,0.9", "0.05", {"flagged"}),
}  # fmt: skip


def other_kind(home, monkeypatch, name):
    """A lake with a model of another kind, over a day."""
    home = lab.make(home, monkeypatch, lab.events(days=2))
    text = KINDS[name][0] + "source: lab\nstart: 2025-03-01\nnodes: [a, b, c]\nround: {length: 10 min}\n"
    (home.config / "models" / f"{name}.yaml").write_text(text)
    config = load_definition(home.config / "models" / f"{name}.yaml")
    return config, monitor(config, lab.events(days=2), key="sensor")


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_a_setting_of_another_kind_is_tried_and_its_rows_are_drawn(name, home, monkeypatch, capsys, tmp_path):
    config, whole = other_kind(home, monkeypatch, name)
    _, trial, own, columns = KINDS[name]
    assert main(["tune", name, "2025-03-01", "2025-03-03", "--try", trial]) == 0
    lines = capsys.readouterr().out.splitlines()
    head = lines[1].split()
    assert lines[0].endswith(f"is {own}") and columns <= set(head)
    first = dict(zip(head, lines[2].split(), strict=True))
    metrics = whole.metrics.to_pylist()
    assert int(first["rounds"]) == sum(row["rounds"] for row in metrics)
    if "up" in first:
        assert int(first["up"]) == sum(row["reports_up"] for row in metrics)
    for column, value in kind_of(config).figures(whole.found.to_pylist()).items():
        assert float(first[column]) == pytest.approx(value, rel=1e-5)
    assert len({line.split()[0] for line in lines[2:]} - {head[0]}) == 2
    out = tmp_path / "drawn.png"
    assert main(["picture", name, "2025-03-01", "2025-03-03", "--out", str(out)]) == 0
    assert out.read_bytes()[:4] == b"\x89PNG" and f"{len(whole.found)} rows of" in capsys.readouterr().out


def test_what_cannot_be_tried_is_said(home, monkeypatch, capsys):
    other_kind(home, monkeypatch, "learn")
    days = ["2025-03-01", "2025-03-03"]
    for more, told in (
        (["learn", *days], "learn is of kind shared_learning; --try takes one of radius, every, learning_rate"),
        (["learn", *days, "--eps", "3"], "--try takes one of radius"),
        (["learn", *days, "--try", "radius=1,-1"], "--try: '-1' is not a number above 0"),
        (["learn", *days, "--try", "every=0"], "--try: '0' is not a whole number from 1 on"),
        (["bend", *days, "--try", "eps=1"], "bend is a linear model; try --eps, --window and --phi"),
    ):
        assert main(["tune", *more]) == 2
        assert told in capsys.readouterr().err
    assert main(["picture", "learn", *days, "--at", "2025-03-01T10:00"]) == 2
