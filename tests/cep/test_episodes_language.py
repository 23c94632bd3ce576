"""``EPISODES BY … PAUSE …``: what may be written, what it means, and what it leaves alone."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import chainlake as cl
from chainlake.cep.episodes.merge import merged
from chainlake.cep.episodes.sources import columns_of, of_batch, of_rows
from chainlake.cep.explain.report import chosen_orders, explain
from chainlake.cep.language.formatter import format_query
from chainlake.cep.language.parsing.query import parse
from chainlake.cep.language.source_text import SourceText
from chainlake.cep.library import from_dicts
from chainlake.cep.lint.report import Schema, laid_out, lint
from chainlake.cep.matches.rows import match_rows
from chainlake.cep.pattern import compile_pattern
from chainlake.cep.pattern_shape import match_shape
from chainlake.cep.search.find import find
from chainlake.cli.main import main
from chainlake.definitions.derived import Series
from chainlake.errors import ChainlakeError, InputError, UsageError
from chainlake.schemas.matches import matches_table

COLUMNS = {"k": pa.string(), "n": pa.int64(), "x": pa.float64(), "up": pa.bool_(), "at": pa.timestamp("us")}
PAIR = "PATTERN SEQ(A a, B b) WHERE a.k = b.k WITHIN 5 s"


def compiled(text: str, **options: Any) -> Any:
    return compile_pattern(text, columns=COLUMNS, series=Series("k"), **options)


@pytest.mark.parametrize(
    ("text", "attr", "names"),
    [
        (f"{PAIR} EPISODES BY k PAUSE 1 min", "k", ("a",)),
        (f"{PAIR} EPISODES BY b.x PAUSE 1 min", "x", ("b",)),
        (f"{PAIR} MEASURES b.n - a.n AS more EPISODES BY more PAUSE 0 s", "more", ()),
        # A measure of the name of an attribute is the measure.
        ("PATTERN OR(SEQ(A a, B b), C c) WITHIN 5 s MEASURES Coalesce(a.k, c.k) AS k EPISODES BY k PAUSE 9 s", "k", ()),
        ("PATTERN OR(SEQ(A a, B b) WHERE a.k = b.k, C c) WITHIN 5 s EPISODES BY k PAUSE 9 s", "k", ("a", "c")),
        ("PATTERN SEQ(A+ a, B b) WHERE a.k = b.k WITHIN 5 s EPISODES BY k PAUSE 9 s", "k", ("b",)),
        ("PATTERN SEQ(A+ a, B+ b) WHERE a.k = b.k WITHIN 5 s EPISODES BY k PAUSE 9 s", "k", ("a",)),
        ("PATTERN SEQ STRICT OF KEY (A+ a) WITHIN 5 s EPISODES BY k PAUSE 9 s", "k", ("a",)),
        ("PATTERN A a WITHIN 5 s EPISODES BY a.type PAUSE 9 s", "type", ("a",)),
        (f"{PAIR} CONTEXT cumulative EPISODES BY k PAUSE 9 s", "k", ("a",)),
    ],
)
def test_what_a_key_may_be(text: str, attr: str, names: tuple[str, ...]) -> None:
    rule = compiled(text).extras.episodes
    assert (rule.attr, rule.names) == (attr, names)
    assert parse(SourceText(format_query(parse(SourceText(text))))) == parse(SourceText(text))


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("PATTERN SEQ(A a, B b) WITHIN 5 s EPISODES BY k PAUSE 1 s",
         "1:46: the events of a match may differ in k | Say whose value counts, BY a.k, or equate the values: WHERE "
         "a.k = b.k."),
        ("PATTERN A+ a WITHIN 5 s EPISODES BY k PAUSE 1 s",
         "1:37: the events of a match may differ in k | MEASURES FIRST(a.k) AS k"),
        ("PATTERN SEQ STRICT (A+ a) WITHIN 5 s EPISODES BY k PAUSE 1 s", "1:50: the events of a match may differ in k"),
        ("PATTERN SEQ STRICT OF KEY (A+ a) WITHIN 5 s EPISODES BY x PAUSE 1 s", "the events of a match may"),
        ("PATTERN SEQ(A a, B? b) WITHIN 5 s EPISODES BY b.k PAUSE 1 s",
         "1:47: not every match has an event b | MEASURES Coalesce(b.k, …) AS k"),
        ("PATTERN OR(A a, B b) WITHIN 5 s EPISODES BY a.k PAUSE 1 s", "1:45: not every match has an event a"),
        ("PATTERN SEQ(A a, NOT(N n), B b) WITHIN 5 s EPISODES BY n.k PAUSE 1 s", "not every match has an event n"),
        ("PATTERN SEQ(A a, COLLECT(N n), B b) WITHIN 5 s EPISODES BY n.k PAUSE 1 s", "n is a set"),
        ("PATTERN SEQ(A a, B+ b) WITHIN 5 s EPISODES BY b.k PAUSE 1 s", "1:47: b is a set, and its events may differ"),
        (f"{PAIR} CONTEXT cumulative EPISODES BY a.k PAUSE 1 s", "a is a set, and its events may differ in k"),
        (f"{PAIR} EPISODES BY c.k PAUSE 1 s", "1:62: there is no event named c | Known here: a, b"),
        (f"{PAIR} EPISODES BY a.kk PAUSE 1 s", "1:62: the events have no attribute kk | k"),
        (f"{PAIR} EPISODES BY kk PAUSE 1 s", "1:62: the events have no attribute kk"),
        (f"{PAIR} EPISODES BY a.ts PAUSE 1 s", "must be a string, a number or a boolean, not a time"),
        (f"{PAIR} MEASURES b.ts - a.ts AS long EPISODES BY long PAUSE 1 s", "not a duration"),
        (f"{PAIR} MEASURES a.k AS severity EPISODES BY k PAUSE 1 s",
         "ordered by severity, which must be a number, but this is a string | give it another name"),
        (f"{PAIR} EPISODES PAUSE 1 s", "1:59: BY is expected after EPISODES, not 'PAUSE' | EPISODES BY door PAUSE"),
        (f"{PAIR} EPISODES BY PAUSE 1 s", "1:62: what the matches of an episode have in common is missing"),
        (f"{PAIR} EPISODES BY k", "PAUSE is expected here, not the end of the pattern"),
        (f"{PAIR} EPISODES BY k PAUSE", "a duration is expected after PAUSE"),
        (f"{PAIR} EPISODES BY k PAUSE 5", "1:64: the pause needs a unit | PAUSE 5 s"),
        (f"{PAIR} EPISODES BY k PAUSE 5 lightyears", "'lightyears' is not a unit"),
        (f"{PAIR} EPISODES BY k PAUSE gap", "1:64: there is no parameter gap"),
        (f"{PAIR} EPISODES BY k PAUSE 5 s MEASURES a.x AS x",
         "MEASURES does not belong here | PER, MEASURES, EPISODES, RANK BY, TOP."),
        (f"{PAIR} EPISODES BY k PAUSE 5 s TOP 3 PER DAY", "1:74: a pattern with EPISODES ranks nothing | leave one"),
        ("PATTERN SEQ(A a, B b) WHERE a.k = b.k WITHIN 5 EVENTS EPISODES BY k PAUSE 5 s",
         "nothing limits how long a match may last | WITHIN 1 h, also beside a window in events"),
        ("PATTERN SEQ STRICT OF KEY (A+ a) PAUSE 5 s EPISODES BY k PAUSE 5 s",
         "nothing limits how long a match may last | 'limits: {longest: 12 h}'"),
        ("---\noutput: [COUNT(a)]\n---\nPATTERN SEQ STRICT OF KEY (A+ a) WITHIN 5 s EPISODES BY k PAUSE 5 s",
         "4:57: output: COUNT(a) leaves out the events, so nothing says which k a match has"),
    ],
)  # fmt: skip
def test_what_a_key_may_not_be(text: str, what: str) -> None:
    with pytest.raises(ChainlakeError) as raised:
        compiled(text)
    wanted, _, hint = what.partition(" | ")
    assert wanted in str(raised.value) and hint in str(raised.value), str(raised.value)
    head = "" if text.startswith("---") else "---\nsource: s\n---\n"
    report = lint(head + text, schema=lambda name: Schema(COLUMNS, None, key="k"))
    assert report.errors and report.pattern is None


def test_the_matches_know_nothing_of_it() -> None:
    bare = compiled(PAIR)
    for clause in ("k PAUSE 1 min", "k PAUSE 2 min", "a.k PAUSE 1 min"):
        one = compiled(f"{PAIR} EPISODES BY {clause}")
        assert one.definition_hash == bare.definition_hash
        assert match_shape(one, key="k") == match_shape(bare, key="k")
    # What the match table does not carry yet is carried because of it.
    other = compiled(f"{PAIR} EPISODES BY a.n PAUSE 1 min")
    assert other.definition_hash != bare.definition_hash
    assert other.definition_hash == compiled(f"{PAIR} EPISODES BY a.n PAUSE 5 min").definition_hash
    assert other.definition_hash != compiled(f"{PAIR} EPISODES BY b.n PAUSE 1 min").definition_hash


def test_how_long_an_episode_waits() -> None:
    assert compiled(f"{PAIR} EPISODES BY k PAUSE 1 min").decided_us == 5_000_000
    longest = "---\nlimits: {longest: 1 h}\n---\nPATTERN SEQ STRICT OF KEY (A+ a) PAUSE 5 s"
    assert compiled(f"{longest} EPISODES BY k PAUSE 1 min").decided_us == 3_600_000_000
    assert compiled(f"{longest} MAXIMAL EPISODES BY k PAUSE 1 min").decided_us == 3_605_000_000


def test_layout_and_words() -> None:
    messy = "pattern seq(A a,B b) where a.k=b.k within 5 s measures a.x as severity episodes by  a.k pause 1 min"
    neat = "PATTERN SEQ(A a, B b)\nWHERE a.k = b.k\nWITHIN 5 s\nMEASURES a.x AS severity\nEPISODES BY a.k PAUSE 1 min\n"
    assert laid_out(messy) == neat == laid_out(neat)
    strange = (
        "PATTERN SEQ(episodes episodes, B by)\nWHERE episodes.by = by.by AND episodes.pause = by.episodes\n"
        "WITHIN 5 s PICK first episodes\nEPISODES BY by PAUSE 1 min\n"
    )
    assert laid_out(strange) == strange
    assert laid_out(strange.replace("BY by PAUSE", "BY by.pause PAUSE")).endswith("EPISODES BY by.pause PAUSE 1 min\n")
    report = lint(
        f"---\nsource: s\ndescription: d\nparams: {{gap: 5 min}}\n---\n{neat.replace('1 min', 'gap')}",
        schema=lambda name: Schema(COLUMNS, None, key="k"),
    )
    assert (report.errors, report.warnings) == ((), ())


def test_explain_says_it() -> None:
    pattern = compiled(f"{PAIR} MEASURES a.x AS severity EPISODES BY k PAUSE 1 min")
    lines = [line for line in explain(pattern, chosen_orders(pattern))]
    at = next(n for n, line in enumerate(lines) if line.startswith("episodes"))
    assert lines[at] == "episodes  matches of one k at most 1 min apart are one episode; the top one is the most severe"
    assert lines[at + 1] == "          decided 65 s after their last event: until then a match may join them"


EVENTS = [
    {"id": str(n), "type": kind, "ts": datetime(2025, 1, 1, 10, 0, ts, tzinfo=UTC), "attrs": {"k": k, "n": n, "x": x}}
    for n, (kind, ts, k, x) in enumerate([
        ("A", 0, "u", 1.0), ("B", 3, "u", 7.0), ("B", 4, "u", 9.0), ("A", 8, "u", 2.0), ("B", 10, "u", 4.0),
        ("A", 0, "v", 5.0), ("B", 5, "v", None), ("A", 40, "u", 1.0), ("B", 41, "u", 1.0),
    ])
]  # fmt: skip


def test_the_library_gives_them() -> None:
    text = f"{PAIR} MEASURES b.x - a.x AS severity EPISODES BY k PAUSE 4 s"
    found = list(cl.episodes(text, EVENTS))
    assert [(one["key"], one["start"].second, one["end"].second, one["matches"]) for one in found] == [
        ("u", 0, 10, 3), ("u", 40, 41, 1), ("v", 0, 5, 1),
    ]  # fmt: skip
    assert found[0]["first"] in list(cl.match(text, EVENTS))
    assert found[0]["top"] == {"a": "0", "b": "2", "severity": 8.0} and found[0]["severity"] == 8.0
    assert [one["severity"] for one in found] == [8.0, 0.0, None]
    assert found[0]["decided"] - found[0]["end"] == (found[1]["decided"] - found[1]["end"])
    assert (found[0]["decided"] - found[0]["end"]).total_seconds() == 9
    assert list(cl.episodes(text, [])) == []
    assert [one["matches"] for one in cl.episodes(text.replace("PAUSE 4 s", "PAUSE 3 s"), EVENTS)] == [2, 1, 1, 1]
    with pytest.raises(UsageError, match="the pattern does not define episodes"):
        cl.episodes(PAIR, EVENTS)
    with pytest.raises(InputError, match="key of an episode must be a string, a number or a boolean"):
        list(
            cl.episodes(text.replace("BY k", "BY a.n"), [{**e, "attrs": {**e["attrs"], "n": e["ts"]}} for e in EVENTS])
        )


@pytest.mark.parametrize(
    "text",
    [
        f"{PAIR} EPISODES BY k PAUSE 4 s",
        f"{PAIR} MEASURES b.x - a.x AS severity EPISODES BY b.n PAUSE 4 s",
        f"{PAIR} EPISODES BY a.id PAUSE 4 s",
        "PATTERN OR(SEQ(A a, B b) WHERE a.k = b.k, SEQ(B c, A d) WHERE c.k = d.k) WITHIN 9 s EPISODES BY k PAUSE 4 s",
        "PATTERN SEQ(A+ a, B+ b) WHERE a.k = b.k WITHIN 20 s EPISODES BY k PAUSE 4 s",
        "PATTERN SEQ STRICT OF KEY (A+ a) WITHIN 20 s MEASURES COUNT(a) AS severity EPISODES BY k PAUSE 4 s",
        "PATTERN OR(SEQ(A a, B b), B c) WITHIN 9 s MEASURES c.x AS severity, Coalesce(a.k, c.k) AS who "
        "EPISODES BY who PAUSE 4 s",
        f"{PAIR} CONTEXT cumulative EPISODES BY k PAUSE 4 s",
    ],
)
def test_rows_of_the_match_table_give_the_same(text: str) -> None:
    events, _ = from_dicts(EVENTS)
    types = {field.name: field.type for field in events.schema}
    pattern = compile_pattern(text, name="p", columns=types, series=Series("k"))
    schema = matches_table(match_shape(pattern, key="k", types=types)).arrow()
    batches = list(find(pattern, events))
    rows = pa.concat_tables(match_rows(pattern, events, batch, schema) for batch in batches)
    searched = pa.concat_tables(of_batch(pattern, events, batch) for batch in batches)
    published = of_rows(pattern, rows.select(columns_of(pattern.extras.episodes)))
    assert len(rows) > 1
    assert merged(published, 4_000_000).to_pylist() == merged(searched, 4_000_000).to_pylist()


def test_the_command_prints_them(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    file = tmp_path / "e.jsonl"
    rows = [{"id": e["id"], "type": e["type"], "ts": e["ts"].isoformat(), **e["attrs"]} for e in EVENTS]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert main(["match", f"{PAIR} EPISODES BY k PAUSE 4 s", str(file), "--episodes"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == {
        "key": "u", "start": "2025-01-01 10:00:00+00:00", "end": "2025-01-01 10:00:10+00:00",
        "decided": "2025-01-01 10:00:19+00:00", "matches": 3, "first": lines[0]["top"], "top": lines[0]["first"],
    }  # fmt: skip
    assert lines[0]["top"] in [{"a": "0", "b": "1"}, {"a": "0", "b": "2"}]
    assert [line["matches"] for line in lines] == [3, 1, 1]
    assert main(["match", f"{PAIR} EPISODES BY k PAUSE 4 s", str(file)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 5
    assert main(["match", PAIR, str(file), "--episodes"]) == 2
    assert "does not define episodes" in capsys.readouterr().err
