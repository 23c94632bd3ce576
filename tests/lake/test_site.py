"""The Spark of a site: what is taken from its file, and what is not."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from chainlake.errors import UsageError
from chainlake.lake.spark import session
from chainlake.lake.spark.site import FIXED, Site, properties_file
from chainlake.paths import Home


@pytest.fixture(autouse=True)
def no_site(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CHAINLAKE_SPARK_CONF", "SPARK_MASTER"):
        monkeypatch.delenv(name, raising=False)


def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> Site:
    file = tmp_path / "spark.conf"
    file.write_text(text)
    monkeypatch.setenv("CHAINLAKE_SPARK_CONF", str(file))
    return Site.from_env()


def ours(tmp_path: Path) -> dict[str, str]:
    home = Home(tmp_path, str(tmp_path / "lake"), tmp_path, tmp_path / "cache")
    return session.settings(home, [tmp_path / "delta.jar"], tmp_path, long_running=False)


def test_the_settings_of_a_site_are_taken_in_every_form_that_spark_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (
        "# ours\n\n!old\nspark.executor.memory   4g \nspark.cores.max=8\nspark.ui.enabled: true\n"
        "spark.a.url=http://x:1?y=z\nspark.driver.memory 3g\n"
    )
    wanted = site(tmp_path, monkeypatch, text).merged(ours(tmp_path))
    assert wanted["spark.executor.memory"] == "4g"
    assert wanted["spark.cores.max"] == "8"
    assert wanted["spark.ui.enabled"] == "true"
    assert wanted["spark.a.url"] == "http://x:1?y=z"
    assert wanted["spark.driver.memory"] == "3g"
    assert wanted["spark.sql.warehouse.dir"] == ours(tmp_path)["spark.sql.warehouse.dir"]


@pytest.mark.parametrize("key", [key for key in FIXED if not key.endswith(".")])
def test_what_rows_depend_on_is_not_the_sites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    asked = site(tmp_path, monkeypatch, f"{key} another\n")
    assert asked.merged(ours(tmp_path))[key] == FIXED[key].value
    (line,) = asked.overruled
    assert key in line and FIXED[key].why in line


def test_whole_families_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = ("spark.sql.legacy.timeParserPolicy", "spark.databricks.delta.properties.defaults.appendOnly")
    asked = site(tmp_path, monkeypatch, "".join(f"{key} LEGACY\n" for key in keys))
    wanted = asked.merged(ours(tmp_path))
    assert not set(keys) & wanted.keys()
    assert len(asked.overruled) == 2


def test_a_site_that_says_what_we_say_is_told_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert site(tmp_path, monkeypatch, "spark.sql.session.timeZone UTC\n").overruled == []


def test_lists_hold_ours_and_theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "spark.jars /x/a.jar,/x/b.jar\nspark.sql.extensions org.x.Own\nspark.driver.extraJavaOptions -Dx=1\n"
    wanted = site(tmp_path, monkeypatch, text).merged(ours(tmp_path))
    assert wanted["spark.jars"].endswith("delta.jar,/x/a.jar,/x/b.jar")
    assert wanted["spark.sql.extensions"] == "io.delta.sql.DeltaSparkSessionExtension,org.x.Own"
    assert wanted["spark.driver.extraJavaOptions"].endswith(" -Dx=1")
    assert "-Duser.timezone=UTC" in wanted["spark.driver.extraJavaOptions"]


def test_a_site_adds_to_the_folders_of_the_workers_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = site(tmp_path, monkeypatch, "spark.executorEnv.PYTHONPATH /x/site\n")
    assert asked.merged({"spark.executorEnv.PYTHONPATH": "/ours.zip"})["spark.executorEnv.PYTHONPATH"] == (
        "/ours.zip:/x/site"
    )


@pytest.mark.parametrize(("folder", "forked"), [("/home/a b", True), (f"/home/a{os.pathsep}b", False)])
def test_workers_are_forked_from_code_that_a_path_can_name(folder: str, forked: bool) -> None:
    found = session._forked_workers(Path(folder, "chainlake-1.zip"))
    assert found.get("spark.executorEnv.PYTHONPATH") == (f"{folder}/chainlake-1.zip" if forked else None)
    assert ("spark.python.daemon.module" in found) is forked


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("spark.a 1\nspark.cores.max\n", 2, "'spark.cores.max' has no value"),
        ("park.cores.max 2\n", 1, "'park.cores.max' is not a setting of Spark"),
        ("spark.a 1\n\nspark.a 2\n", 3, "duplicate key 'spark.a'"),
        ("spark.a x\\\n  y\n", 1, "a backslash is not understood here"),
    ],
)
def test_a_line_that_is_no_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, line: int, said: str
) -> None:
    with pytest.raises(UsageError) as caught:
        site(tmp_path, monkeypatch, text)
    assert f"spark.conf:{line}: {said}" in str(caught.value)


@pytest.mark.parametrize("content", [None, b"\xff\xfe\x00"])
def test_a_file_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes | None) -> None:
    file = tmp_path / "spark.conf"
    if content is not None:
        file.write_bytes(content)
    monkeypatch.setenv("CHAINLAKE_SPARK_CONF", str(file))
    with pytest.raises(UsageError, match=r"(?s)spark\.conf cannot be read: .*CHAINLAKE_SPARK_CONF"):
        Site.from_env()


def test_who_says_where_spark_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Site.from_env().master == "local[2]" and Site.from_env().on_this_machine
    asked = site(tmp_path, monkeypatch, "spark.master spark://a:7077\n")
    assert asked.master == "spark://a:7077" and not asked.on_this_machine
    monkeypatch.setenv("SPARK_MASTER", "yarn")
    assert asked.master == "yarn"


@pytest.mark.parametrize(
    ("master", "variable", "setting", "chosen"),
    [
        ("local[2]", "/theirs/python", "/named/python", sys.executable),
        ("spark://a:7077", "/theirs/python", None, "/theirs/python"),
        ("spark://a:7077", None, None, sys.executable),
        ("k8s://https://a", "/theirs/python", "/named/python", "/named/python"),
    ],
)
def test_the_python_of_the_workers(
    monkeypatch: pytest.MonkeyPatch, master: str, variable: str | None, setting: str | None, chosen: str
) -> None:
    monkeypatch.setenv("SPARK_MASTER", master)
    monkeypatch.setenv("PYSPARK_DRIVER_PYTHON", "")
    monkeypatch.setenv("PYSPARK_PYTHON", variable or "")
    if variable is None:
        monkeypatch.delenv("PYSPARK_PYTHON")
    session._choose_python(Site({} if setting is None else {"spark.pyspark.python": setting}))
    assert os.environ["PYSPARK_PYTHON"] == chosen
    assert os.environ["PYSPARK_DRIVER_PYTHON"] == sys.executable


@pytest.mark.parametrize(
    ("master", "variable", "chosen"),
    [
        ("local[2]", None, "127.0.0.1"),
        ("local[2]", "10.0.0.7", "10.0.0.7"),
        ("spark://a:7077", None, None),
        ("k8s://https://a", "10.0.0.7", "10.0.0.7"),
    ],
)
def test_the_address_of_the_driver(
    monkeypatch: pytest.MonkeyPatch, master: str, variable: str | None, chosen: str | None
) -> None:
    monkeypatch.setenv("SPARK_MASTER", master)
    monkeypatch.setenv("SPARK_LOCAL_IP", variable or "")
    if variable is None:
        monkeypatch.delenv("SPARK_LOCAL_IP")
    session._choose_address(Site({}))
    assert os.environ.get("SPARK_LOCAL_IP") == chosen


def test_the_file_for_the_jvm_is_ours_alone_and_holds_any_value(tmp_path: Path) -> None:
    file = properties_file({"spark.a": "grüß \\ 😀", "spark.b": "x=y:z#!"}, tmp_path / "own")
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.read_text() == "spark.a gr\\u00fc\\u00df \\u005c \\ud83d\\ude00\nspark.b x=y:z#!\n"


def test_the_settings_of_a_site_are_on_no_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--conf spark.x=1 pyspark-shell")
    with session._configured({"spark.authenticate.secret": "hush"}, tmp_path):
        words = os.environ["PYSPARK_SUBMIT_ARGS"].split()
        assert words[0] == "--properties-file" and words[2:] == ["--conf", "spark.x=1", "pyspark-shell"]
        assert Path(words[1]).read_text() == "spark.authenticate.secret hush\n"
    assert not Path(words[1]).exists()
    assert os.environ["PYSPARK_SUBMIT_ARGS"] == "--conf spark.x=1 pyspark-shell"
