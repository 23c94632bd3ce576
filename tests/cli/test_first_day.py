"""What somebody meets on the first day: a wrong Python, a wrong word, a stop, and lists that are easy to read."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from chainlake.cli.main import main
from chainlake.cli.verbs.lake import tune
from chainlake.local.launcher import Stopped, run_program
from chainlake.local.run import serve
from chainlake.model_change.days.definitions import parse_definition
from chainlake.paths import PROJECT, Home
from chainlake.pictures.model import alike
from chainlake.words import closest, nearest

#: Says that it is Python 3.6, and what it can do is read the check alone.
OLD = "import sys; sys.version_info = (3, 6, 9, 'final', 0); import runpy; sys.argv = ['jobs', 'status']; "


def ran(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=60)


def test_a_wrong_python_is_one_sentence() -> None:
    for path, hint in (("jobs/__main__.py", "make setup"), ("jobs/chainlake/env/python_version.py", "make PYTHON=")):
        done = ran(sys.executable, "-c", f"{OLD}runpy.run_path({path!r}, run_name='__main__')")
        assert done.returncode == 5 and done.stdout == ""
        (line,) = done.stderr.splitlines()
        assert line.startswith("chainlake: Python 3.11 is needed and this is 3.6") and hint in line


def test_what_every_python_reads_has_none_of_the_newer_words() -> None:
    """Python 2.7 must be able to read these two: no annotation, no f-string, nothing from ``__future__``."""
    for path in ("jobs/__main__.py", "jobs/chainlake/env/python_version.py"):
        text = (PROJECT / path).read_text()
        assert re.search(r"->|\bf\"|\bf'|annotations|: (str|int)\b(?! *\))", re.sub(r"#.*", "", text)) is None
        assert text.isascii()


def test_a_python_without_the_packages_is_told_so(capsys: pytest.CaptureFixture[str]) -> None:
    done = ran(sys.executable, "-S", "-m", "jobs", "status")
    assert done.returncode == 5, done.stderr
    assert "error: the package numpy is not installed for" in done.stderr and "make setup" in done.stderr
    assert "Traceback" not in done.stderr


def test_make_names_a_python_that_is_not_there() -> None:
    # -B: whether or not an environment is there already.
    done = ran("make", "-B", ".venv/.installed", "PYTHON=no-such-python")
    assert done.stderr.splitlines()[0].startswith("chainlake: there is no no-such-python.")
    assert "Traceback" not in done.stderr and done.returncode != 0


def test_the_targets_stand_in_columns() -> None:
    lines = [line for line in ran("make").stdout.splitlines() if line.startswith("  make ")]
    names = [re.match(r"  make ([a-z-]+)(  +)", line) for line in lines]
    assert len(lines) > 10 and all(names)
    assert len({found.end() for found in names if found}) == 1, lines


def test_clean_leaves_the_data_and_clean_data_wants_a_yes(tmp_path: Path) -> None:
    shutil.copy(PROJECT / "Makefile", tmp_path)
    landed, tools = tmp_path / ".chainlake" / "landing" / "stock" / "__pycache__", tmp_path / ".venv" / "bin"
    for folder in (landed, tools, tmp_path / "jobs" / "__pycache__"):
        folder.mkdir(parents=True)
    assert ran("make", "-C", str(tmp_path), "clean").returncode == 0
    assert landed.is_dir() and not tools.exists() and not (tmp_path / "jobs" / "__pycache__").exists()
    asked = ran("make", "-C", str(tmp_path), "clean-data")
    assert asked.returncode != 0 and landed.is_dir()
    assert f"this removes {tmp_path}/.chainlake" in asked.stderr and "make clean-data YES=1" in asked.stderr
    assert ran("make", "-C", str(tmp_path), "clean-data", "YES=1").returncode == 0
    assert not (tmp_path / ".chainlake").exists()


@pytest.mark.parametrize(("word", "meant"), [("lnit", "lint"), ("Match", "match"), ("back-fill", "backfill")])
def test_an_unknown_verb_names_the_one_that_was_meant(
    word: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([word, "x"]) == 2
    assert f"Did you mean {meant}?" in capsys.readouterr().err


def test_one_way_to_name_what_was_meant() -> None:
    assert closest("Ticker_", ["ticker", "price"]) == "ticker" and closest("zzz", ["ticker"]) is None
    assert closest("window", ["kind", "nodes", "facets"]) is None
    assert nearest("tiker", ["ticker", "price"]) == "Did you mean ticker?"
    assert (
        nearest("zzz", [f"k{n:02}" for n in range(30)])
        == f"Known here: {', '.join(f'k{n:02}' for n in range(20))} and 10 more."
    )


def test_an_ingest_where_nothing_landed_names_the_folder(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["ingest", "stock", "2013-10-07", "2013-10-08"]
    assert main(words) == 0
    told = capsys.readouterr().out
    assert f"nothing has landed for stock: {home.landed('stock')} does not exist" in told
    assert "us_equity_minute_trade_*" in told and "CHAINLAKE_HOME or CHAINLAKE_LANDING" in told
    home.landing("stock").mkdir(parents=True)
    assert main(words) == 0 and f"{home.landed('stock')} has no files" in capsys.readouterr().out


def test_a_source_that_there_is_not_is_told_before_anything_begins(
    home: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = tmp_path / "result.json"
    assert main(["ingest", "stok", "2013-10-07", "2013-10-08", "--result", str(result)]) == 2
    told = capsys.readouterr()
    assert told.out == "" and "there is no source 'stok'" in told.err and "Did you mean stock?" in told.err
    assert list(home.root.iterdir()) == [] and json.loads(result.read_text())["exit_code"] == 2


@pytest.mark.parametrize("stop", [KeyboardInterrupt, lambda: Stopped(15)])
def test_to_stop_airflow_is_no_error(
    stop: Callable[[], BaseException], home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Up:
        address = "http://127.0.0.1:1/"
        ended = False

        def __init__(self, home: Home, say: object) -> None:
            pass

        def __enter__(self) -> Up:
            return self

        def __exit__(self, *about: object) -> None:
            print("all ended")

        def tick(self) -> None:
            raise stop()

    monkeypatch.setattr(serve, "Airflow", Up)
    monkeypatch.setattr(serve.doctor, "require", lambda home: None)
    assert run_program(serve.serve) == 0
    assert capsys.readouterr().out.splitlines()[-2:] == ["all ended", "chainlake: stopped; nothing is left running"]


def test_a_threshold_is_chosen_within_80_columns() -> None:
    """What eps finds and costs comes before what only the periodic baseline is compared by."""
    width, shown = 0, []
    for name, cells in tune._COLUMNS.items():
        width += cells + 2
        if width - 2 <= 80:
            shown.append(name)
    assert {"eps", "changes", "messages", "max error"} <= set(shown)


def features(text: str) -> Iterator[dict[str, list[int]]]:
    rest = "source: s\nstart: 2025-01-01\nnodes: [a, b]\nround: {length: 5 min}\nwindow: {sliding: 12}\neps: 1\n"
    yield alike(parse_definition(f"{rest}response: speed\nfeatures:\n{text}"))


def test_coefficients_of_unlike_units_have_an_axis_each() -> None:
    (road,) = features("  - polynomial: {of: p, degree: 3, scale: [-1, 1], range: [10, 30]}\n")
    assert road == {"coefficients (speed)": [0, 1, 2, 3]}
    (plain,) = features("  - flow\n  - {of: occupancy, transform: log}\n")
    assert plain == {"coefficients (speed)": [0], "speed per flow": [1], "speed per log(occupancy)": [2]}


SHIPPED = sorted(Path(PROJECT / "dags" / "config").glob("*/*.*"))


def test_what_is_shipped_passes_its_own_lint(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", "--test", "--strict", *map(str, SHIPPED)]) == 0
    said = capsys.readouterr().out
    assert re.fullmatch(rf"{len(SHIPPED)} definitions: 0 errors, 0 warnings, [7-9] tests run\n", said)
