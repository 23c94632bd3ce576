"""Environment variables: their values are checked at one door, and names that nobody reads are told."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from chainlake.cli.main import VERBS, main
from chainlake.env.variables import NAMES, WrongVariable, check_variables, unknown_variables, value_of
from chainlake.errors import UsageError
from chainlake.lake.spark.lost import NotStarted
from chainlake.paths import Home
from chainlake.storage.settings import apply_settings

WRONG = [
    ("SPARK_DRIVER_MEMORY", "1gigs", "write 1g or 1024m"),
    ("SPARK_DRIVER_MEMORY", "1gb", "write 1g or 1024m"),
    ("SPARK_DRIVER_MEMORY", "1024", "write 1g or 1024m"),
    ("CHAINLAKE_SHUFFLE_PARTITIONS", "many", "a whole number above 0"),
    ("CHAINLAKE_SHUFFLE_PARTITIONS", "0", "a whole number above 0"),
    ("CHAINLAKE_ENGINE", "fast", "auto, files or spark"),
    ("CHAINLAKE_LEASE_SECONDS", "nan", "a number of seconds above 0"),
    ("CHAINLAKE_LEASE_SECONDS", "soon", "a number of seconds above 0"),
    *(
        ("CHAINLAKE_STORE_ENDPOINT", value, "http://HOST:PORT")
        for value in ("127.0.0.1:9000", "localhost:9000", "http://", "http://a:99999", "http://a:9 ", "ftp://a:9")
    ),
    *(("CHAINLAKE_LAKE", value, "s3://BUCKET/PREFIX") for value in ("s3://", "s3:/bucket/prefix", "s3a:///prefix")),
    ("CHAINLAKE_LANDING", "s3://", "s3://BUCKET/PREFIX"),
]


@pytest.mark.parametrize(("name", "value", "write"), WRONG)
def test_a_wrong_value_is_refused_with_what_to_write(
    name: str, value: str, write: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    for read in (lambda: value_of(name), check_variables):
        with pytest.raises(WrongVariable) as raised:
            read()
        assert raised.value.what == f"{name} is '{value}'" and raised.value.exit_code == 2
        assert raised.value.hint is not None and write in raised.value.hint[:1].lower() + raised.value.hint[1:]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SPARK_DRIVER_MEMORY", "2G"), ("SPARK_DRIVER_MEMORY", "1536m"), ("CHAINLAKE_SHUFFLE_PARTITIONS", "200"),
        ("CHAINLAKE_LEASE_SECONDS", "0.5"), ("CHAINLAKE_ENGINE", "spark"), ("CHAINLAKE_ENGINE", ""),
        ("CHAINLAKE_STORE_ENDPOINT", "http://127.0.0.1:9000"), ("CHAINLAKE_STORE_ENDPOINT", "https://s3.a-b.com/x/"),
        ("CHAINLAKE_STORE_ENDPOINT", "http://[::1]:65535"), ("CHAINLAKE_STORE_ENDPOINT", "http://min_io"),
        ("CHAINLAKE_LAKE", "s3://bucket"), ("CHAINLAKE_LAKE", "s3a://bucket/a b"), ("CHAINLAKE_LAKE", "/data/s3:/x"),
    ],
)  # fmt: skip
def test_a_right_value_passes(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    check_variables()
    assert value_of(name) == value


def test_the_address_that_other_programs_read_is_refused_where_a_store_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a lake on a disk it says nothing."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", "localhost:9000")
    monkeypatch.delenv("CHAINLAKE_STORE_ENDPOINT", raising=False)
    check_variables()
    with pytest.raises(WrongVariable, match="AWS_ENDPOINT_URL is 'localhost:9000'"):
        apply_settings()


@pytest.mark.parametrize(
    "words", [("status",), ("plan", "2013-10-07", "2013-10-08"), ("ingest", "stock", "2013-10-07", "2013-10-08")]
)
def test_every_verb_refuses_a_wrong_value_before_it_begins(
    words: tuple[str, ...], home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert words[0] in VERBS
    monkeypatch.setenv("CHAINLAKE_ENGINE", "fast")
    assert main([*words]) == 2
    told = capsys.readouterr()
    assert told.out == "" and "CHAINLAKE_ENGINE is 'fast'" in told.err
    assert list(home.root.iterdir()) == []


def test_a_name_that_nobody_reads_is_told_with_the_one_that_was_meant(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CHAINLAKE_HOMES", "/somewhere")
    monkeypatch.setenv("CHAINLAKE_LANDINGS", "/somewhere")
    assert main(["schema", "source"]) == 0
    told = capsys.readouterr().err.splitlines()
    assert told == [
        "warning: the environment variable CHAINLAKE_HOMES is not read: did you mean CHAINLAKE_HOME?",
        "warning: the environment variable CHAINLAKE_LANDINGS is not read: did you mean CHAINLAKE_LANDING?",
    ]
    assert unknown_variables(dict.fromkeys(NAMES, "x")) == []
    assert unknown_variables({"CHAINLAKE_Q": "x"}) == [
        "the environment variable CHAINLAKE_Q is not read: docs/deploy.md lists those that are"
    ]


def test_a_folder_of_definitions_that_is_not_there_is_refused(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CHAINLAKE_CONFIG", str(home.root / "nowhere"))
    assert main(["status"]) == 2
    assert f"CHAINLAKE_CONFIG is {home.root / 'nowhere'}, which does not exist" in capsys.readouterr().err
    (home.root / "nowhere").write_text("")
    with pytest.raises(UsageError, match="which is a file"):
        Home.from_env()
    (home.root / "nowhere").unlink()
    (home.root / "nowhere").mkdir()
    assert Home.from_env().config == home.root / "nowhere"


def test_the_doctor_checks_values_too() -> None:
    command = [sys.executable, "-m", "chainlake.env.doctor", "--quiet"]
    done = subprocess.run(
        command, env={"PATH": "/usr/bin:/bin", "PYTHONPATH": ":".join(sys.path), "SPARK_DRIVER_MEMORY": "1gigs"},
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert "SPARK_DRIVER_MEMORY is '1gigs'. Write 1g or 1024m." in done.stderr and done.returncode != 0


def test_sentences_of_an_error_are_joined_by_one_full_stop() -> None:
    error = NotStarted.of(RuntimeError("Java gateway process exited before sending its port number."))
    assert re.search(r"its port number\. What Java", error.summary) and ".." not in error.summary
