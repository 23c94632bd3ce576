"""Errors, days and places."""

from __future__ import annotations

import argparse
import importlib
import logging
import pickle
import re
from datetime import date
from pathlib import Path

import pytest

from chainlake.cli.main import VERBS, main, module_of
from chainlake.days import US_PER_DAY, Days, day_of_us, day_start_us, parse_day
from chainlake.errors import ChainlakeError, DefinitionError, InfrastructureError, UsageError
from chainlake.lake.errors import UnknownTable
from chainlake.paths import PROJECT, Home


def test_error_names_place_excerpt_and_hint() -> None:
    error = DefinitionError(
        "unknown name 'd'", file="rise.sase", line=3, column=7, excerpt="WHERE d.price > 1", hint="Names are a, b."
    )
    assert str(error) == ("rise.sase:3:7: unknown name 'd'\n    WHERE d.price > 1\n          ^\nhint: Names are a, b.")
    assert error.summary == "rise.sase:3:7: unknown name 'd'. Names are a, b."


def test_error_survives_pickling_with_its_type_and_details() -> None:
    error = DefinitionError("x", file="f", line=1, column=2, key="k", hint="h", excerpt="e")
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is DefinitionError
    assert (copy.what, copy.details()) == (error.what, error.details())


def test_exit_codes_are_those_that_are_documented() -> None:
    assert (ChainlakeError.exit_code, UsageError.exit_code, DefinitionError.exit_code) == (5, 2, 3)
    assert InfrastructureError.exit_code == 5


def test_days_are_half_open() -> None:
    days = Days.parse("2025-10-01", "2025-10-04")
    assert list(days) == [date(2025, 10, 1), date(2025, 10, 2), date(2025, 10, 3)]
    assert len(days) == 3
    assert date(2025, 10, 4) not in days and date(2025, 10, 1) in days
    lo, hi = days.micros()
    assert hi - lo == 3 * US_PER_DAY
    assert day_of_us(hi - 1) == date(2025, 10, 3) and day_of_us(hi) == date(2025, 10, 4)


def test_days_before_1970_floor_to_their_day() -> None:
    assert day_of_us(-1) == date(1969, 12, 31)
    assert day_start_us(date(1969, 12, 31)) == -US_PER_DAY


@pytest.mark.parametrize("end", ["2025-10-01", "2025-09-30"])
def test_an_interval_without_days_says_that_to_is_not_included(end: str) -> None:
    with pytest.raises(UsageError, match="half-open|holds no day"):
        Days.parse("2025-10-01", end)


@pytest.mark.parametrize(
    "text", ["01.10.2025", "2025-W40-3", "20251001", "２０２５-10-01", "2025-10-01 ", "2025-02-30"]
)
def test_a_wrong_day_says_how_days_are_written(text: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse_day(text)
    assert text in raised.value.what and raised.value.hint == "Write days as YYYY-MM-DD."


def test_home_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CHAINLAKE_HOME", "CHAINLAKE_LAKE", "CHAINLAKE_LANDING", "CHAINLAKE_CONFIG", "CHAINLAKE_CACHE"):
        monkeypatch.delenv(name, raising=False)
    assert Home.from_env().root == PROJECT / ".chainlake"
    monkeypatch.setenv("CHAINLAKE_HOME", "/tmp/with space")
    monkeypatch.setenv("CHAINLAKE_LAKE", "s3a://bucket/lake")
    home = Home.from_env()
    assert home.table("events", "stock") == "s3://bucket/lake/events/stock"
    assert home.staging == "s3://bucket/lake/chainlake-staging"
    assert str(home.landing("stock")) == "/tmp/with space/landing/stock"
    monkeypatch.setenv("CHAINLAKE_LANDING", "s3a://bucket/landed/")
    assert Home.from_env().landed("stock") == "s3://bucket/landed/stock"
    monkeypatch.setenv("CHAINLAKE_LANDING", "here")
    assert str(Home.from_env().landing("stock")) == f"{Path.cwd()}/here/stock"
    for written in ("s3://bucket/my%20lake/", "s3://bucket/my lake", "s3n://bucket/my%2520lake"):
        monkeypatch.setenv("CHAINLAKE_LAKE", written)
        assert Home.from_env().lake == "s3://bucket/my lake"
    monkeypatch.setenv("CHAINLAKE_LAKE", "/on a disk/my%20lake")
    assert Home.from_env().lake == "/on a disk/my%20lake"


@pytest.mark.parametrize("verb", list(VERBS))
def test_every_verb_has_help_with_an_example(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main([verb, "--help"])
    assert stopped.value.code == 0
    assert f"  chainlake {verb}" in capsys.readouterr().out.split("example:")[1]


#: Where the command is written as it may be called from the folder of a checkout, too.
CHECKOUT = {"jobs/__main__.py", "jobs/chainlake/cli/main.py"}


def test_messages_and_pages_call_the_command_by_its_one_name() -> None:
    """It is there wherever the package is installed, in a checkout too; and each verb that they name is one."""
    files = [one for folder in ("jobs", "dags", "schemas") for one in (PROJECT / folder).rglob("*.py")]
    files += [PROJECT / "README.md", *(PROJECT / "docs").rglob("*.md")]
    texts = {file.relative_to(PROJECT).as_posix(): file.read_text() for file in files}
    assert {name for name, text in texts.items() if "python -m jobs" in text} == CHECKOUT
    assert not [name for name, text in texts.items() if re.search(r"[`'\"]jobs [a-z]", text)]
    named = {verb for text in texts.values() for verb in re.findall(r"(?:['`]|bin/)chainlake ([a-z]+)\b", text)}
    assert {"ingest", "status"} <= named <= set(VERBS)


def _options(verb: str) -> set[str]:
    """The long options of a verb, as its parser has them."""
    parser = argparse.ArgumentParser()
    importlib.import_module(module_of(verb)).add_arguments(parser)
    return set(parser._option_string_actions)


def test_options_of_commands_in_pages_are_written_out() -> None:
    """An abbreviation can be ambiguous, and is once a second option begins like it."""
    unknown = [
        f"{page.name}: chainlake {verb}: {option}"
        for page in [PROJECT / "README.md", PROJECT / "CONTRIBUTING.md", *(PROJECT / "docs").rglob("*.md")]
        for verb, rest in re.findall(r"(?:`|^|bin/)chainlake ([a-z]+)\b([^`\n]*)", page.read_text(), re.MULTILINE)
        for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*", rest)
        if option not in _options(verb)
    ]
    assert not unknown


def test_an_unknown_verb_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["detekt"]) == 2
    assert "Did you mean detect?" in capsys.readouterr().err


def test_what_libraries_log_is_printed_while_a_verb_runs_and_not_after(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(args: object) -> int:
        logging.getLogger("chainlake.operations.maintain").info("events.x: 100% of it")
        logging.getLogger("elsewhere").info("not ours")
        return 0

    monkeypatch.setattr("chainlake.cli.verbs.lake.sql.run", run)
    assert main(["sql"]) == 0
    logging.getLogger("chainlake").info("after it")
    assert capsys.readouterr().out == "events.x: 100% of it\n"
    assert not logging.getLogger("chainlake").handlers and logging.getLogger("chainlake").propagate


def test_the_text_of_help_fits_the_terminal_and_breaks_no_option(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    with pytest.raises(SystemExit):
        main(["lint", "--help"])
    text = capsys.readouterr().out.partition("\n\n")[2].partition("positional arguments")[0]
    assert text.startswith("Check definitions of all kinds") and max(map(len, text.splitlines())) <= 58
    assert not any(line.endswith("-") for line in text.splitlines())


def test_a_named_error_keeps_its_fields_on_its_way_to_another_process() -> None:
    error = UnknownTable.of(["events.none", "ops.none"], ["events.one"])
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is UnknownTable and again.names == ("events.none", "ops.none")
    assert str(again) == str(error) and again.details() == error.details()
