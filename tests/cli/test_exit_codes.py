"""With which codes each verb ends: its help and docs/semantics.md say what the code declares, and each can happen."""

from __future__ import annotations

import importlib
import re
from datetime import date
from pathlib import Path

import pytest

from chainlake.cli.exits import OF_ALL, OF_VERB
from chainlake.cli.main import VERBS, _parser, main, module_of
from chainlake.lake.records import ops
from chainlake.paths import PROJECT, Home
from tests.steps.history import configured, deliver, pattern, readings

PAGE = (PROJECT / "docs" / "semantics.md").read_text(encoding="utf-8")
EXITS = PAGE.partition("## Exit codes")[2].partition("\n## ")[0]
DAYS = ("2025-03-01", "2025-03-03")


def test_the_page_has_what_the_code_declares() -> None:
    tables: list[list[list[str]]] = [[]]
    for line in EXITS.splitlines():
        if line.startswith("|"):
            tables[-1].append([cell.strip() for cell in line.strip("|").split(" | ")])
        elif tables[-1]:
            tables.append([])
    codes, verbs = (table[2:] for table in tables if table)
    assert [row[:2] + row[3:] for row in codes] == [[str(code), *told] for code, told in OF_ALL.items()]
    told = [[f"`{verb}`", *(OF_VERB[verb].get(code, "") for code in (1, 3, 4))] for verb in VERBS if OF_VERB[verb]]
    assert [[cell.strip("|").strip() for cell in row] + [""] * (4 - len(row)) for row in verbs] == told
    none = next(line for line in EXITS.splitlines() if line.startswith("All other verbs"))
    assert re.findall("`([a-z]+)`", none) == [verb for verb in VERBS if not OF_VERB[verb]]


def test_every_verb_is_declared_and_its_help_names_its_codes() -> None:
    assert OF_VERB.keys() == VERBS.keys()
    for verb in VERBS:
        text = _parser(verb, importlib.import_module(module_of(verb))).format_help()
        codes = [int(code) for code in re.findall(r"^  (\d+) ", text.partition("exit codes:")[2], re.MULTILINE)]
        assert codes == sorted({0, 2, 5, 130, *OF_VERB[verb]}), verb
        assert set(OF_VERB[verb]) <= {1, 3, 4}


@pytest.fixture
def lab(home: Home, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Home:
    """A history of eight days with a good and a broken definition of each kind, and files of events."""
    made = configured(home, near=pattern(), wrong=pattern().replace("p.x", "p.z"))
    monkeypatch.setenv("CHAINLAKE_CONFIG", str(made.config))
    monkeypatch.chdir(tmp_path)
    deliver(made, {n: readings(n) for n in range(8)})
    (made.config / "models" / "off.yaml").write_text("source: lab\nresponse: [\n")
    (made.config / "sources" / "road.yaml").write_text("key: [\n")
    (tmp_path / "good.csv").write_text("ts,sensor,x,y\n2025-03-01T00:00:00,a,1,1\n2025-03-01T00:30:00,b,2,2\n")
    (tmp_path / "bad.csv").write_text("when,where\nnever,nowhere\n")
    (tmp_path / "labels.csv").write_text("start,end,key\nx,y,z\n")
    (tmp_path / "wrong.sase").write_text(pattern().replace("p.x", "p.z"))
    made.landing("lab").mkdir(parents=True)
    (made.landing("lab") / "damaged.csv").write_bytes(b"\x1f\x8b\x08\x00 no gzip")
    return made


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "words"),
    [
        (3, ["ingest", "road", *DAYS]),
        (4, ["ingest", "lab", *DAYS]),
        (3, ["detect", "lab", *DAYS, "--pattern", "wrong"]),
        (3, ["monitor", "lab", *DAYS, "--model", "off"]),
        (4, ["monitor", "lab", "2025-03-08", "2025-03-09", "--model", "slope"]),
        (3, ["plan", *DAYS]),
        (4, ["plan", "2025-03-08", "2025-03-09", "--models", "slope"]),
        (3, ["backfill", *DAYS, "--patterns", "wrong"]),
        (4, ["backfill", "2025-03-08", "2025-03-09", "--models", "slope"]),
        (3, ["restate", "--source", "lab"]),
        (3, ["shadow", "wrong.sase", *DAYS]),
        (4, ["retire", "pattern/near"]),
        (3, ["alerts", "send", "wrong"]),
        (3, ["tune", "off", *DAYS]),
        (4, ["tune", "slope", *DAYS]),
        (3, ["picture", "off", *DAYS]),
        (4, ["picture", "slope", "2024-01-01", "2024-01-03"]),
        (4, ["init", "new", "--from", "bad.csv"]),
        (3, ["match", "wrong", "good.csv"]),
        (4, ["match", "near", "bad.csv", "--source", "lab"]),
        (3, ["try", "off", "good.csv"]),
        (4, ["try", "slope", "bad.csv"]),
        (3, ["backtest", "wrong", "good.csv", "--source", "lab", "--labels", "labels.csv"]),
        (4, ["backtest", "near", "good.csv", "--source", "lab", "--labels", "labels.csv"]),
        (3, ["explain", "wrong"]),
        (4, ["explain", "near", "--simulate", "bad.csv"]),
        (3, ["lint", "wrong"]),
        (4, ["lint", "lab", "--on", "new.csv"]),
        (1, ["lint", "near", "--strict"]),
    ],
    ids=lambda one: " ".join(one[:4]) if isinstance(one, list) else str(one),
)
def test_a_verb_can_end_with_what_it_declares(lab: Home, code: int, words: list[str]) -> None:
    assert code in OF_VERB[words[0]]
    if words[0] == "retire":
        day = {"definition": "pattern/near", "day": date(2025, 3, 1), "table_name": "matches.near", "engine_version": 1,
               "definition_hash": "", "input_fingerprint": "", "status": "failed"}  # fmt: skip
        ops.append(lab, "intervals", [day], "r")
    assert main(words) == code
