"""Hashes of definitions hold, whatever becomes possible beside what they say (docs/semantics.md#definitions)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, fields, is_dataclass, make_dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from chainlake.catalog.patterns import load_patterns
from chainlake.cep.compiling import identity
from chainlake.cep.language import front_matter
from chainlake.cep.language.ast import Query
from chainlake.cep.language.parsing.query import parse
from chainlake.cep.language.source_text import SourceText
from chainlake.cep.pattern import compile_pattern
from chainlake.definitions import source_keys
from chainlake.definitions.derived import History, Series
from chainlake.definitions.source import load_source, load_sources
from chainlake.digests import as_text
from chainlake.model_change.days.definitions import load_definition, parse_definition
from chainlake.paths import PROJECT, Home
from tests.cli.test_schemas import RICH

CONFIG = PROJECT / "dags" / "config"
#: As the first releases had them: of what is shipped, whose lines an edit of the file changes, and of RICH by number.
HASHES = {
    "model/bac_beta": "979a4248741b7da99e0f88d82ebed697",
    "model/gas_array": "5c17ef332b0b13fc800ebf2a2c646143",
    "model/i5n_speed_profile": "62486c497ed30e5d275683aec175ab93",
    "model/loop_lengths": "28ad18f7bb47ed8f765c891a8b1a9809",
    "model/next_speed": "b61eed8c9e2354f38a0f2d06fba3f86b",
    "model/road_queue": "5381f49bfc0930b6356614bbfae2b216",
    "model 0": "dad28e67610cce9ad078a8a2f760e2d2",
    "model 1": "8528b0c589f1a8182fc812ac42775df9",
    "model 2": "c969ee66f3b73d55ba87eb2681a68883",
    "model 3": "15b1bf01a1af5cd4e07f5c7043ed5450",
    "model 4": "36a6c7a2d7f0f5d134917f43d4bf3675",
    "model 5": "336017b6e4fca3f651a77eb18fd8584a",
    "source 0": "0dc6dd39f2c01e1522627681c81f02c7",
    "source 1": "98fa12702037920f3ea8da5ea8d028bf",
    "source/sensor": "fd4d93dc42f05ef98e27a64ed1778410",
    "source/stock": "8411d4c91a82ba55860cf7271a65a5e5",
    "source/traffic": "e9a8dfaae122994439842d656bf2ce42",
    "pattern/air_changes": "e8cdbcade63fd7552accc8c75224c5eb",
    "pattern/bank_follows_market": "3d4cf93b039a3d7a862744ebf28169c7",
    "pattern/breakdown": "8fdf9964b36ee7670d2a125e57bf6281",
    "pattern/deepest_drops": "fa12e2e0eef568c82ddabf8d4ee1b754",
    "ranked/deepest_drops": "0eebe15f9be42d87abb94c174e2dbf69",
    "pattern/echo": "3dbe753fc3ecd44637fd649f9b808a7c",
    "pattern/fall_not_recovered": "e228e4815f73e9616d9b161f41eadeb1",
    "episodes/fall_not_recovered": "37dfd1ec560b1c04a29d283432cd7b40",
    "pattern/fastest_rises": "2d524b53d294e4013b3507f0a007f85b",
    "ranked/fastest_rises": "54d9d0d1520df3179d4a8d23efc577c1",
    "pattern/gas_onset": "2242ba7dccd041a4a681314415e1439f",
    "episodes/gas_onset": "0c94343111cff7d00f9506b92691c084",
    "pattern/gas_seen": "d82943d7fac60c162f105f225d0959e5",
    "pattern/gas_stays": "0ec84ea801255c0219da7d04a7287dd9",
    "pattern/hardest_brakings": "0e49638019f1ca3fd76378b47f604a3c",
    "ranked/hardest_brakings": "29375d9c2ff2871ddea6ad781fa25861",
    "pattern/jam_cleared": "47338b3fea9dae11637a81574b7cae57",
    "pattern/jam_holds": "687657d380a11f595fc7e6a3d82518ab",
    "pattern/queue_spillback": "07d01a434dc15a6e7b99199d42298ec3",
    "pattern/queue_tail": "012ade8af2279410be3fd42f757a926d",
    "episodes/queue_tail": "00d0966f603cbd662a5becb648ed7d2f",
    "pattern/sensors_agree": "a84143ac6b0f9ca0855d591bb4716656",
    "pattern/shakeout": "244d3b44bd0bcc3e70a5462013128d76",
    "pattern/shakeout_pairs": "67123f68da5875d10e3daca5801ff710",
    "pattern/stuck": "d77282275039cb8c98cc2fbecc36a394",
    "episodes/stuck": "bcb840f5c78ecb0e29fa0faeef1177b8",
    "pattern/three_pushes": "79a2df1d86b9e1c0ec290874114213a0",
}


def hashes(folder: Path) -> Iterator[tuple[str, str]]:
    for file in (CONFIG / "models").glob("*.yaml"):
        yield f"model/{file.stem}", load_definition(file).definition_hash
    for number, text in enumerate(RICH["model"]):
        yield f"model {number}", parse_definition(text).definition_hash
    for file in (CONFIG / "sources").glob("*.yaml"):
        yield f"source/{file.stem}", load_source(file).definition_hash
    for number, text in enumerate(RICH["source"]):
        (folder / "mine.yaml").write_text(text)
        yield f"source {number}", load_source(folder / "mine.yaml").definition_hash
    home = replace(Home.from_env(), config=CONFIG)
    compiled, broken = load_patterns(home, load_sources(home))
    assert not broken
    for one in compiled:
        yield from ((each.name, each.definition_hash) for each in one.definitions)


def test_no_day_becomes_stale_by_another_hash(tmp_path: Path) -> None:
    assert dict(hashes(tmp_path)) == HASHES


def grown(value: Any, later: Any = None) -> Any:
    """A value whose classes, and those of all that is in it, have an optional field more."""
    if is_dataclass(value) and not isinstance(value, type):
        cls = make_dataclass(
            type(value).__name__, [("later", Any, field(default=None))], bases=(type(value),), frozen=True, kw_only=True
        )
        return cls(**{one.name: grown(getattr(value, one.name), later) for one in fields(value)}, later=later)
    if isinstance(value, dict):
        return {key: grown(part, later) for key, part in value.items()}
    return tuple(grown(part, later) for part in value) if isinstance(value, tuple) else value


@pytest.mark.parametrize("text", RICH["model"])
def test_a_new_optional_field_changes_the_hash_of_those_models_that_use_it(text: str) -> None:
    config = parse_definition(text)
    assert grown(config).definition_hash == config.definition_hash
    assert grown(config, 7).definition_hash != config.definition_hash


def test_a_new_optional_field_changes_the_hash_of_those_rankings_that_use_it() -> None:
    pattern = compile_pattern(
        "PATTERN SEQ(A a, A b) WITHIN 5 min RANK BY MAX(a.x) NORM 0 .. 1 WEIGHT 2, MIN(b.x) COMBINE wsum TOP 2 PER DAY"
    )
    assert pattern.extras.ranking is not None
    rule = pattern.extras.ranking.rule
    assert as_text(grown(rule)) == as_text(rule) == repr(rule)
    assert as_text(grown(rule, 7)) != as_text(rule)


def test_a_new_optional_field_of_histories_changes_no_pattern() -> None:
    history = History("last5", "price", 5, 60_000_000)

    def hash_with(one: History) -> str:
        text = "PATTERN SEQ(A a, A b) WHERE Corr(a.last5, b.last5) > 0.5 WITHIN 5 min"
        return compile_pattern(text, series=Series("key", (one,))).definition_hash

    assert hash_with(grown(history)) == hash_with(history) != hash_with(grown(history, 7))


def test_a_new_key_of_a_front_matter_is_in_the_hash_unless_it_is_said_to_change_no_match(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    front = front_matter.FrontMatter(source="stock")
    of = identity.Identity(compile_query(), {}, front, True, (), None, False, None, [])
    assert replace(of, front=grown(front)).digest == of.digest != replace(of, front=grown(front, 7)).digest
    monkeypatch.setattr(front_matter.FrontMatter, "NEVER_HASHED", (*front_matter.FrontMatter.NEVER_HASHED, "later"))
    assert replace(of, front=grown(front, 7)).digest == of.digest
    named = {*identity._IN_OWN_FORM, *front_matter.FrontMatter.NEVER_HASHED} - {"later"}
    assert named <= {one.name for one in fields(front_matter.FrontMatter)}


def compile_query() -> Query:
    return parse(SourceText("PATTERN A a WITHIN 1 s"), 0)


def test_every_key_of_a_source_says_whether_it_changes_the_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = RICH["source"][0]
    (tmp_path / "mine.yaml").write_text(text)
    before = load_source(tmp_path / "mine.yaml").definition_hash
    (tmp_path / "mine.yaml").write_text(text + "later: 7\n")
    for changes in (False, True):
        monkeypatch.setitem(source_keys.KEYS, "later", changes)
        assert (load_source(tmp_path / "mine.yaml").definition_hash != before) is changes
