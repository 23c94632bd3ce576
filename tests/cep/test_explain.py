"""``chainlake explain``: what it says about a pattern, its picture, its costs on given files."""

from __future__ import annotations

import json
import random
import re
import time
from pathlib import Path

import pytest

from chainlake.cep.explain import report as explain_module
from chainlake.cep.library import from_dicts
from chainlake.cep.pattern import compile_pattern
from chainlake.cli.main import main
from chainlake.cli.verbs.files import explain as explain_command
from tests.cep.test_evaluations import RISING, stream

PATTERNS = sorted((Path(__file__).parents[2] / "dags" / "config" / "patterns").glob("*.sase"))

QUOTES = Path(__file__).parents[2] / "data" / "stock" / "us_equity_minute_trade_20131007.csv.gz"


def run(capsys: pytest.CaptureFixture, *args: object) -> tuple[int, list[str], str]:
    code = main(["explain", *map(str, args)])
    out, err = capsys.readouterr()
    return code, out.splitlines(), err


def events(folder: Path) -> Path:
    file = folder / "events.jsonl"
    file.write_text("".join(json.dumps(e) + "\n" for e in stream("a3", "a5", "a8", "b7", "b13", "c9")))
    return file


def test_normal_form_states_and_edges(capsys: pytest.CaptureFixture) -> None:
    query = (
        "PATTERN SEQ(A a, NOT(X x), B* b, C c) WHERE a.k = b.k AND a.k = c.k AND x.k = a.k AND AVG(b.v) < c.v "
        "AND (c.v > 1 OR c.v < 0) AND b.v != a.v AND c.ts - a.ts < 2 min AND 1 < 2 WITHIN 90 s"
    )
    code, out, err = run(capsys, query, "--order", "c,b,a")
    assert (code, err) == (0, "")
    assert out[: out.index("")] == [
        "pattern: no description",
        "window    90 s: the first and the last event are at most this far apart",
        "decision  at the last event",
        "reads     for matches decided in [s, e): events with ts in [s - 90 s, e)",
        "parallel  by k: equality links all names",
    ]
    assert out[out.index("branch 1 of 1") : out.index("```mermaid") - 1] == [
        "branch 1 of 1",
        "  names     a A, b B*, c C",
        "  forbidden x X",
        "  sequence  a < x, x < b, b < c",
        "  accepts   c: c.v > 1 OR c.v < 0",
        "  constant  1 < 2",
        "  order     c, a, b (as asked for)",
        "  q1  take c -> q2, from buffer and stream, scope (start, finish)",
        "      store a, b, x; ignore c",
        "  q2  take a -> q3, from buffer, scope (start, c)",
        "        where a.k = c.k AND c.ts - a.ts < 2 min",
        "      store b, x; ignore c, a",
        "  q3  iterate b -> F, from buffer, scope (a, c)",
        "        each where a.k = b.k AND b.v != a.v",
        "        where AVG(b.v) < c.v",
        "        forbids x in (a, b) where x.k = a.k -> R",
        "      store x; ignore c, a, b",
    ]


def test_open_negations_change_what_is_read_and_when_is_decided(capsys: pytest.CaptureFixture) -> None:
    code, out, _ = run(capsys, "PATTERN OR(AND(A a, NOT(B b)), SEQ(A a, AND(C c, D d), E e)) WITHIN 36 h")
    assert code == 0
    assert out[2] == "decision  36 h after the first event: until then a forbidden event may still come"
    assert out[3] == "reads     for matches decided in [s, e): events with ts in [s - 3 d, e)"
    assert "        forbids b in [last event - window, first event + window] -> R" in out
    assert "          and waits until the interval has passed" in out
    assert "  q4  take e -> F, from buffer and stream, scope (max of c, d, finish)" in out


def test_picture(capsys: pytest.CaptureFixture) -> None:
    _, out, _ = run(capsys, "PATTERN OR(SEQ(A a, NOT(X x), B b) WHERE a.k = '\"<>', SEQ(A a, C c, D d)) WITHIN 1 s")
    picture = out[out.index("```mermaid") + 1 : out.index("```")]
    assert picture[0] == "flowchart LR"
    node = r"(\w+)(\(+\w+\)+)"
    edges = [re.fullmatch(rf'  {node} -- "([^"<>]*)" --> {node}', line) for line in picture[1:]]
    assert all(edges)
    found = {(e[1], e[3], e[4]) for e in edges if e}
    assert {
        ("q1", "take a", "b1q2"),
        ("b1q2", "take b", "b1r"),
        ("b1r", "x in (a, b)", "R"),
        ("b1r", "no x", "F"),
        ("q1", "take a", "b2q2"),
        ("b2q2", "take c", "b2q3"),
        ("b2q3", "take d", "F"),
        ("b2q2", "store d", "b2q2"),
        ("b2q2", "ignore a, c", "b2q2"),
    } <= found
    assert ("q1", "store b, x", "q1") in found and ("b1q2", "store x", "b1q2") in found


def test_costs_on_files(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    code, out, _ = run(capsys, RISING, "--simulate", events(tmp_path))
    assert code == 0
    rows = [line.split() for line in out[out.index("```") + 2 :]]
    assert rows == [
        ["engine", "E", "E_neg", "E_pre", "I_rest", "I_dfs", "B_in", "B_all", "states", "matches"],
        ["eager", "14", "0", "0", "8", "8", "0", "5", "0", "2"],
        ["chain", "6", "0", "0", "0", "2", "6", "6", "0", "2"],
        ["tree", "6", "0", "0", "0", "2", "6", "6", "3", "2"],
    ]
    order = out.index("  order     c, b, a (the cheapest by estimate on these events)")
    estimates = [re.fullmatch(r" +(\w \w \w): about ([\d,]+) evaluations", line) for line in out[order + 1 : order + 7]]
    assert [e[1] for e in estimates if e][0] == "c b a" and all(estimates)
    _, out, _ = run(capsys, RISING, "--simulate", events(tmp_path), "--order", "b,a,c")
    assert out[-2].split()[:6] == ["chain", "13", "0", "0", "5", "6"]


def test_a_long_simulation_says_so_beforehand_and_can_be_cut(
    tmp_path: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(explain_command, "WORTH_SAYING", -1.0)
    code, out, err = run(capsys, RISING, "--simulate", events(tmp_path), "--first", "4")
    assert (code, err) == (
        0,
        "the run in time order over 4 events will take about 0 s; --first N takes the first N events only\n",
    )
    assert out[-3].split()[:2] == ["eager", "6"] and out[-1].split()[-1] == "0"  # a3 a5 a8 b7: 3 + 3 evaluations
    assert (explain_command._about(99.4), explain_command._about(150)) == ("99 s", "2 min")


@pytest.mark.few(1)
@pytest.mark.parametrize("engine", ["eager", "chain", "tree"])
def test_the_forecast_grows_with_the_events(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pattern = compile_pattern(RISING.replace("1000", "20"), strict_units=False)
    draw = random.Random(5)
    many, _ = from_dicts(stream(*(f"{draw.choice('abc')}{draw.randrange(20)}" for _ in range(1600))))
    clock = iter(range(10_000))
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock))  # every run takes a second
    monkeypatch.setattr(explain_module, "_runs", lambda pattern: [(engine, "first-chance")])
    # 100 events take a second, so 1,600 take 16; if two seconds were needed to say so, the last stretch were 800
    assert explain_module.forecast(pattern, many) == 16.0
    assert explain_module.forecast(pattern, many, enough=2.0) == 2.0
    assert explain_module.forecast(pattern, many.slice(0, 100)) == 0.0


def test_costs_of_both_ways_of_negation_and_of_engines_that_do_not_fit(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    query = "PATTERN AND(A a, A c, NOT(B b)) WHERE b.price > a.price WITHIN 2"
    code, out, _ = run(capsys, query, "--simulate", events(tmp_path))
    assert code == 0
    assert [line.split("  ")[0] for line in out[out.index("```") + 3 :]] == [
        "chain, first-chance",
        "chain, post-processing",
        "eager is not defined for this pattern: AND with a repeated or forbidden event",
        "tree is not defined for this pattern: NOT: ad hoc selectivity is defined without negation only",
    ]


@pytest.mark.parametrize("pattern", PATTERNS, ids=[p.stem for p in PATTERNS])
def test_shipped_patterns(pattern: Path, capsys: pytest.CaptureFixture) -> None:
    code, out, err = run(capsys, pattern)
    assert (code, err) == (0, "") and out[0].startswith(f"{pattern.stem}: ") and "None" not in " ".join(out)


@pytest.mark.parametrize("asked", ["auto", "spark"])
def test_the_back_end_that_publishes(
    asked: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setenv("CHAINLAKE_ENGINE", asked)
    worked = {"auto": "files", "spark": "spark"}[asked]
    line = f"matches are published by the back end {worked} (CHAINLAKE_ENGINE is {asked})"
    assert line in run(capsys, PATTERNS[0])[1]
    assert "back end" not in " ".join(run(capsys, "PATTERN A a WITHIN 1 s")[1])


def test_stated_rates_give_the_order(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    file = tmp_path / "some.sase"
    file.write_text("---\nsource: stock\nrates: {a: 5, b: 1}\n---\nPATTERN SEQ(A a, B b) WITHIN 1 s")
    _, out, _ = run(capsys, file)
    assert "  order     b, a (from the stated rates)" in out and out[1] == "source    stock"


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["PATTERN A a WITHIN 1 s", "--ts", "time"], 2, "are for files"),
        (["PATTERN A a WITHIN 1 s", "--first", "5"], 2, "--first is for --simulate"),
        (["PATTERN A a WITHIN 1 s", "--simulate", str(QUOTES), "--first", "0"], 2, "--first must be at least 1"),
        (["PATTERN A a WITHIN 1 s", "--order", "b"], 2, "is not an order of a"),
        (["PATTERN A a WITHIN 5", "--order", "a"], 3, "unit"),
        (["nowhere.sase"], 2, "cannot be read"),
    ],
)
def test_mistakes(args: list[str], code: int, message: str, capsys: pytest.CaptureFixture) -> None:
    found, out, err = run(capsys, *args)
    assert (found, out) == (code, []) and message in err


def test_files_without_events(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    file = tmp_path / "empty.csv"
    file.write_text("")
    code, out, _ = run(capsys, "PATTERN A a WITHIN 1 s", "--simulate", file)
    assert code == 0 and out[-1] == "the files hold no events"


def test_rankings_are_explained() -> None:
    text = (
        "PATTERN SEQ(A a, B b) WITHIN 5 min "
        "RANK BY MAX(b.x - a.x) NORM 0 .. 10 WEIGHT 2, MIN(b.ts - a.ts) COMBINE wsum "
        "TOP 3 WITH TIES PER HOP 1 h STEP 15 min FOR EACH a.k DISTINCT ON a.id AT MOST 2 NON OVERLAPPING"
    )
    pattern = compile_pattern(text)
    lines = list(explain_module.explain(pattern, explain_module.chosen_orders(pattern)))
    begin = next(i for i, line in enumerate(lines) if line.startswith("ranks"))
    assert lines[begin : begin + 7] == [
        "ranks     by MAX(b.x - a.x) from 0 to 10 times 2, MIN(b.ts - a.ts) times 1, their wsum",
        "keeps     the best 3 of each window of 1 h, one every 15 min, that holds a match for each a.k, and ties",
        "          at most 2 of them with the same a.id",
        "          none with an event of a better one",
        NEARLY,
        "strategy  A: all matches are found block by block; each list remembers those that it can still keep",
        "          no B: with NON OVERLAPPING a better match can make room for worse ones",
    ]
    assert lines[begin + 7].startswith("          no C: with NON OVERLAPPING")


NEARLY = "          ties are equal to the last digit of a double; QUANTUM makes nearly equal scores tie"
EQUAL = "          scores that round to the same multiple of 0.001 are equal"


@pytest.mark.parametrize(
    ("score", "more", "said"),
    [
        ("MAX(b.x - a.x)", "", NEARLY),
        ("MAX(AVG(c.x))", "", NEARLY),
        ("MAX(b.x) NORM 0 .. 3", "", NEARLY),
        ("MAX(b.x), MIN(a.x) COMBINE sum", "", NEARLY),
        ("MAX(b.x - a.x)", " QUANTUM 0.001", EQUAL),
        ("MAX(b.x)", "", None),
        ("MAX(COUNT(c))", "", None),
        ("MAX(Round(b.x / 10))", "", None),
        ("MAX(b.x - a.x), MIN(a.x) COMBINE lex", "", None),
    ],
)
def test_whether_nearly_equal_scores_tie_is_said(score: str, more: str, said: str | None) -> None:
    query = f"PATTERN SEQ(A a, COLLECT(C c), B b) WITHIN 5 min RANK BY {score} TOP 3 WITH TIES PER DAY{more}"
    pattern = compile_pattern(query)
    lines = list(explain_module.explain(pattern, explain_module.chosen_orders(pattern)))
    assert [line for line in lines if line in (NEARLY, EQUAL)] == ([] if said is None else [said])
    alone = query.replace(" WITH TIES", "") if not more else query.replace(more, " AT LEAST 43" + more)
    without = compile_pattern(alone)
    lines = list(explain_module.explain(without, explain_module.chosen_orders(without)))
    assert NEARLY not in lines and ("          none with a score below 43" in lines) == bool(more)


def test_the_best_strategy_is_explained() -> None:
    for score, wanted in (
        ("a.x + b.x", ["B: one pass"]),
        ("a.x * b.x", ["C: what cannot", "no B: the score is not a sum"]),
    ):
        pattern = compile_pattern(f"PATTERN SEQ(A a, B b) WITHIN 5 min RANK BY MAX({score}) TOP 3 PER DAY")
        lines = list(explain_module.explain(pattern, explain_module.chosen_orders(pattern)))
        begin = next(i for i, line in enumerate(lines) if line.startswith("strategy"))
        for line, words in zip(lines[begin:], wanted, strict=False):
            assert line[10:].startswith(words)
