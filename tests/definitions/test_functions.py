"""Functions of files: which code a pattern can call, and that all who search run what was read."""

from __future__ import annotations

import pickle
from datetime import date
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from chainlake.catalog.functions import codes_of
from chainlake.catalog.patterns import load_patterns
from chainlake.cep.heavy.errors import FunctionFailed
from chainlake.cep.library import as_dicts, from_dicts
from chainlake.cep.pattern import compile_pattern
from chainlake.cep.search.find import find
from chainlake.definitions.source import load_sources
from chainlake.detect.order import SearchPlan, record_plan
from chainlake.detect.stage import Found
from chainlake.errors import DefinitionError
from chainlake.lake.records import ops
from chainlake.paths import PROJECT, Home

PATTERN = "---\nfunctions:\n  f: {{call: '{call}'}}\n---\nPATTERN SEQ(A a, B b) WHERE f(a.x, b.x) > 1 WITHIN 5 s\n"
EVENTS = [{"id": i, "type": "AB"[i % 2], "ts": i, "attrs": {"x": float(i)}} for i in range(4)]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    (tmp_path / "config" / "functions").mkdir(parents=True)
    return Home(tmp_path / "home", str(tmp_path / "lake"), tmp_path / "config", tmp_path / "cache")


def write(home: Home, name: str, text: str) -> Path:
    path = home.config / "functions" / name
    path.write_text(text, encoding="utf-8")
    return path


def text(call: str) -> str:
    return PATTERN.format(call=call)


def found(home: Home, call: str = "numbers:f") -> list[dict]:
    pattern = compile_pattern(text(call), params=codes_of(home, text(call)), strict_units=False)
    table, ids = from_dicts(EVENTS)
    return [one for batch in find(pattern, table) for one in as_dicts(pattern, batch, ids)]


@pytest.mark.parametrize("call", ["numbers:f", "chainlake_functions.numbers:f"])
def test_a_function_of_a_file_is_called(home: Home, call: str) -> None:
    write(home, "numbers.py", "from .more import far\n\ndef f(a, b):\n    return far(a, b)\n")
    write(home, "more.py", "import numpy as np\n\ndef far(a, b):\n    return np.abs(a - b)\n")
    assert found(home, call) == [{"a": 0, "b": 3}]


def test_nothing_is_run_before_it_is_called(home: Home) -> None:
    write(home, "numbers.py", "raise SystemExit('run')\n\ndef f(a, b):\n    return a\n")
    codes = codes_of(home, text("numbers:f"))
    assert compile_pattern(text("numbers:f"), params=codes).definition_hash
    with pytest.raises(FunctionFailed, match="SystemExit: run"):
        found(home)


def test_the_digest_changes_with_the_file_and_with_those_that_it_imports_and_with_no_other(home: Home) -> None:
    def digest() -> str:
        return compile_pattern(text("numbers:f"), params=codes_of(home, text("numbers:f"))).definition_hash

    write(home, "numbers.py", "from . import more\n\ndef f(a, b):\n    return more.far(a, b)\n")
    write(home, "more.py", "def far(a, b):\n    return a - b\n")
    before = digest()
    write(home, "unrelated.py", "def g(a):\n    return a\n")
    assert digest() == before
    write(home, "more.py", "def far(a, b):\n    return b - a\n")
    assert digest() != before


def test_whoever_searches_runs_what_was_read(home: Home) -> None:
    path = write(home, "numbers.py", "def f(a, b):\n    return b - a\n")
    code = codes_of(home, text("numbers:f"))["f"]
    sent = pickle.dumps(code)
    path.write_text("def f(a, b):\n    return a - b\n", encoding="utf-8")
    assert pickle.loads(sent).call(np.array([1.0]), np.array([4.0])).tolist() == [3.0]  # noqa: S301 - our own
    assert codes_of(home, text("numbers:f"))["f"].call(np.array([1.0]), np.array([4.0])).tolist() == [-3.0]


@pytest.mark.parametrize(
    "call, said",
    [
        ("nowhere:f", "there is no file"),
        ("os:system", "there is no file"),
        ("numbers:g", "defines no function g"),
        ("numbers:system", "defines no function system"),
        ("numbers:Later", "defines no function Later"),
        ("broken:f", "is not valid Python (line 1)"),
        ("deep:f", "is not valid Python: it is nested too deep"),
        ("outside:f", "imports from outside its folder"),
        ("package:f", "imports chainlake_functions, which is not a package"),
        ("one:f", "import each other"),
        ("named:f", "has keyword-only arguments"),
    ],
)
def test_what_cannot_be_called_is_told_with_its_place(home: Home, call: str, said: str) -> None:
    write(home, "numbers.py", "from os import system\n\nclass Later: ...\n\ndef f(a, b):\n    return a\n")
    write(home, "broken.py", "def f(:\n")
    write(home, "deep.py", f"x = {'-' * 200_000}1\n\ndef f(a, b):\n    return a\n")
    write(home, "outside.py", "from ..secrets import key\n\ndef f(a, b):\n    return a\n")
    write(home, "package.py", "import chainlake_functions.numbers\n\ndef f(a, b):\n    return a\n")
    write(home, "one.py", "from .other import g\n\ndef f(a, b):\n    return a\n")
    write(home, "other.py", "from .one import f\n\ndef g(a, b):\n    return a\n")
    write(home, "named.py", "def f(a, b, *, scale):\n    return a\n")
    with pytest.raises(DefinitionError) as error:
        codes_of(home, text(call), "p.sase")
    assert said in error.value.what
    assert (error.value.file, error.value.line, error.value.column) == ("p.sase", 3, 3)


def test_a_link_out_of_the_folder_is_not_followed(home: Home, tmp_path: Path) -> None:
    (tmp_path / "evil.py").write_text("def f(a, b):\n    return a\n", encoding="utf-8")
    (home.config / "functions" / "numbers.py").symlink_to(tmp_path / "evil.py")
    with pytest.raises(DefinitionError, match="outside the folder"):
        codes_of(home, text("numbers:f"))
    inside = write(home, "real.py", "def f(a, b):\n    return a - a + 2\n")
    (home.config / "functions" / "linked.py").symlink_to(inside)
    assert len(found(home, "linked:f")) == 3


def test_a_file_that_never_comes_to_its_end_holds_up_no_other(home: Home) -> None:
    write(home, "endless.py", "import time\ntime.sleep(60)\n\ndef f(a, b):\n    return a\n")
    write(home, "numbers.py", "\ufeffdef f(a, b):\n    return b - a\n")
    hasty = text("endless:f").replace("'}", "', longest: 50 ms}")
    pattern = compile_pattern(hasty, params=codes_of(home, hasty), strict_units=False)
    for _ in range(2):
        with pytest.raises(FunctionFailed, match="f was not done after"):
            list(find(pattern, from_dicts(EVENTS)[0]))
    assert found(home) == [{"a": 0, "b": 3}]


def test_the_number_of_values_is_known_without_a_call(home: Home) -> None:
    write(home, "numbers.py", "def f(a, b, c, d=1):\n    return a\n")
    with pytest.raises(DefinitionError, match="f takes 3 to 4 values, not 2"):
        found(home)


def test_no_text_of_a_pattern_loads_code(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    write(home, "numbers.py", "def f(a, b):\n    return a\n")
    monkeypatch.setenv("CHAINLAKE_CONFIG", str(home.config))
    with pytest.raises(FunctionFailed, match="its code was not found"):
        table, _ = from_dicts(EVENTS)
        list(find(compile_pattern(text("numbers:f"), strict_units=False), table))
    with pytest.raises(DefinitionError, match="there is no function"):
        compile_pattern("PATTERN SEQ(A a, B b) WHERE numbers_f(a.x, b.x) > 1 WITHIN 5 s")


def test_the_days_of_a_pattern_are_stale_once_its_function_is_edited(tmp_path: Path) -> None:
    config = tmp_path / "config"
    for folder in ("sources", "patterns", "functions"):
        (config / folder).mkdir(parents=True)
    (config / "sources" / "stock.yaml").write_bytes((PROJECT / "dags/config/sources/stock.yaml").read_bytes())
    query = "PATTERN SEQ(Bar a, Bar b) WHERE a.ticker = b.ticker AND f(a.close, b.close) > 1 WITHIN 5 min"
    front = "source: stock\nfunctions: {f: {call: 'numbers:f'}}"
    (config / "patterns" / "one.sase").write_text(f"---\n{front}\n---\n{query}\n")
    file = config / "functions" / "numbers.py"
    home = Home(tmp_path / "home", str(tmp_path / "lake"), config, tmp_path / "cache")
    prints = []
    for text in ("return b - a", "return b - a", "return a - b"):
        file.write_text(f"def f(a, b):\n    {text}\n")
        (compiled,), broken = load_patterns(home, load_sources(home))
        assert not broken
        prints.append(compiled.definition.definition_hash)
    assert prints[0] == prints[1] != prints[2]
    file.unlink()
    good, (broken_one,) = load_patterns(home, load_sources(home))
    assert not good and "there is no file" in str(broken_one.error)


def test_plans_keep_what_calls_cost(tmp_path: Path) -> None:
    home = Home(tmp_path / "home", str(tmp_path / "lake"), tmp_path / "config", tmp_path / "cache")
    found = Found(evaluations=9, pair_evals=5, pair_memo_hits=2, looked_at=30, inside=20, seconds=(1.0, 4.0, 2.0))
    item = SimpleNamespace(name="pattern/p", fingerprints={date(2024, 1, 1): "", date(2024, 1, 2): ""})
    plan = SearchPlan("estimated", (("a", "b"),), {}, [{}], None, ())
    record_plan(home, item, plan, found + Found(), "run")  # type: ignore[arg-type]
    rows = {row["day"]: row for row in ops.current(home, "plans")}
    names = ("pair_evals", "pair_memo_hits", "replication", "longest_task")
    assert [rows[date(2024, 1, 2)][name] for name in names] == [5, 2, 1.5, 2.0]
    assert [rows[date(2024, 1, 1)][name] for name in names] == [None] * 4
