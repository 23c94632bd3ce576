"""The files of docker/ against each other and the rest of the project; that they work is `make docker-proof`."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

from chainlake.lake.spark.jars import ARTIFACTS
from chainlake.lake.spark.site import Site
from chainlake.paths import PROJECT

DOCKER = PROJECT / "docker"
SERVICES = yaml.safe_load((DOCKER / "compose.yaml").read_text())
VERSION = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["version"]


def pins(file: Path) -> dict[str, set[str]]:
    """Each pin of a lock with its hashes."""
    blocks = re.split(r"^(?=[A-Za-z0-9])", file.read_text(), flags=re.MULTILINE)[1:]
    return {block.split()[0]: set(re.findall(r"sha256:[0-9a-f]{64}", block)) for block in blocks}


@pytest.mark.parametrize(("name", "at_least"), [("requirements", 100), ("build", 2)])
def test_a_lock_of_the_image_is_a_part_of_the_projects(name: str, at_least: int) -> None:
    whole, image = pins(PROJECT / "requirements.txt"), pins(DOCKER / f"{name}.txt")
    assert len(image) >= at_least and all(image.values())
    assert {pin: hashes for pin, hashes in image.items() if whole.get(pin) != hashes} == {}


def test_what_builds_the_wheel_stays_in_the_stage_that_builds() -> None:
    wanted = set(tomllib.loads((PROJECT / "pyproject.toml").read_text())["build-system"]["requires"])
    kept, left = ({pin.split("==")[0] for pin in pins(DOCKER / f"{name}.txt")} for name in ("requirements", "build"))
    assert wanted and wanted <= left and not wanted & kept
    *_, last = re.split(r"^FROM ", (DOCKER / "Dockerfile").read_text(), flags=re.M)
    assert re.findall(r"^COPY --from=build (\S+)", last, re.M) == ["/opt/venv", "/build/jars"]
    runs = re.split(r"^(?=[A-Z]+ )", (DOCKER / "Dockerfile").read_text(), flags=re.M)
    (installs,) = (run for run in runs if run.startswith("RUN ") and "build.txt" in run)
    assert "/opt/venv" not in installs


def test_the_image_has_the_jars_that_are_wanted() -> None:
    found = re.findall(r"^ADD \$\{MAVEN_REPOSITORY\}/(\S+) jars/$", (DOCKER / "Dockerfile").read_text(), re.M)
    wanted = []
    for name, (coordinate, _) in ARTIFACTS.items():
        group, artifact, version = coordinate.split(":")
        wanted.append(f"{group.replace('.', '/')}/{artifact}/{version}/{name}")
    assert found == wanted


def test_the_image_names_no_host_that_it_is_built_from() -> None:
    text = (DOCKER / "Dockerfile").read_text()
    assert re.findall(r"\w+://|^FROM [\w-]+\.\w+[/:]", text, re.M) == []
    assert "--build-arg MAVEN_REPOSITORY=$(MAVEN_REPOSITORY) " in (PROJECT / "Makefile").read_text()


def test_an_installer_leaves_no_downloads_in_a_layer() -> None:
    commands = re.split(r"^(?=[A-Z]+ )", (DOCKER / "Dockerfile").read_text(), flags=re.M)
    kept = "".join(one for one in commands if one.startswith("ENV "))
    runs = [one for one in commands if one.startswith("RUN ")]
    wanted = {"bin/pip": "--no-cache-dir", "bin/uv": "UV_NO_CACHE=1", "apt-get": "rm -rf /var/lib/apt/lists"}
    for program, told in wanted.items():
        calls = [one for one in runs if f"{program} " in one]
        assert calls and all(told in one + kept for one in calls), program


def test_the_services_take_the_settings_of_the_store() -> None:
    lines = [line for line in (DOCKER / "store.env").read_text().splitlines() if not line.startswith("#")]
    given = dict(line.split("=", 1) for line in lines)
    taken = SERVICES["x-airflow"]["environment"]
    assert {name: taken.get(name) for name in given} == {name: f"${{{name}:-}}" for name in given}
    assert given["CHAINLAKE_STORE_ENDPOINT"] == "http://store:9000"
    bucket = given["CHAINLAKE_LAKE"].split("/")[2]
    assert f"mkdir -p /data/{bucket} " in SERVICES["services"]["store"]["entrypoint"][-1]


def test_what_the_image_copies_is_there_and_let_in() -> None:
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", (DOCKER / "Dockerfile").read_text(), re.M)
    paths = [path for line in copied for path in line.split()]
    let_in = {line[1:] for line in (PROJECT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert len(paths) > 8
    assert [path for path in paths if not (PROJECT / path).exists() or path.split("/")[0] not in let_in] == []


def test_one_version_everywhere() -> None:
    assert f"CHAINLAKE_VERSION:-{VERSION}}}" in SERVICES["x-chainlake"]["image"]
    assert f"--tag chainlake:{VERSION} " in (PROJECT / "Makefile").read_text()


@pytest.mark.parametrize("name", SERVICES["services"])
def test_a_service_is_bounded_and_seen_from_this_machine_only(name: str) -> None:
    service = SERVICES["services"][name]
    assert "mem_limit" in service
    # A port that others have can be another one.
    assert all(re.match(r"127\.0\.0\.1:\$\{CHAINLAKE_\w+_PORT:-\d+\}:", port) for port in service.get("ports", []))
    assert "no-new-privileges:true" in service["security_opt"]
    if name != "init":
        assert "healthcheck" in service
    for other, how in service.get("depends_on", {}).items():
        ends = other == "init"
        assert how["condition"] == ("service_completed_successfully" if ends else "service_healthy")
    assert set(service.get("secrets", [])) <= SERVICES["secrets"].keys()


def test_the_page_has_the_same_port_for_all_who_ask_for_it() -> None:
    of_airflow = {name: one for name, one in SERVICES["services"].items() if "AIRFLOW__API__PORT" in str(one)}
    told = str(of_airflow)
    assert of_airflow.keys() >= {"api-server", "scheduler", "dag-processor", "triggerer"}
    assert told.count("CHAINLAKE_PAGE_PORT") > 10
    assert "8080" not in told.replace("${CHAINLAKE_PAGE_PORT:-8080}", "")


def test_secrets_are_made_once_and_for_the_owner_alone(tmp_path: Path) -> None:
    for name in ("secrets.sh", "spark.conf"):
        shutil.copy(DOCKER / name, tmp_path)
    subprocess.run([tmp_path / "secrets.sh"], check=True)
    files = {path.name: path.read_text() for path in (tmp_path / "secrets").iterdir()}
    assert {f"secrets/{name}" for name in files} == {one["file"] for one in SERVICES["secrets"].values()}
    assert (tmp_path / "secrets").stat().st_mode & 0o077 == 0
    assert files["database_password"] in files["database_url"]
    assert len({files[name] for name in ("database_password", "page_key", "token_key")}) == 3
    subprocess.run([tmp_path / "secrets.sh"], check=True)
    assert {path.name: path.read_text() for path in (tmp_path / "secrets").iterdir()} == files


@pytest.mark.parametrize("file", [DOCKER / "spark.conf", *sorted((DOCKER / "examples").glob("*.conf"))])
def test_settings_are_taken_as_they_are(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHAINLAKE_SPARK_CONF", str(file))
    site = Site.from_env()
    assert len(site.settings) > 5 and site.overruled == []
    assert site.settings.items() <= site.merged({}).items()
