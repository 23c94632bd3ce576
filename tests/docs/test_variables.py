"""Every environment variable of ours is explained in a page."""

from __future__ import annotations

import re

from chainlake.env.variables import NAMES
from chainlake.paths import PROJECT, code_files

#: The kinds of files in which names of variables are looked for; entry.sh of the containers is one.
_READ = (".py", ".md", ".yaml", ".yml", ".sh", ".env", ".conf")
_NAME = re.compile(r"\bCHAINLAKE_[A-Z][A-Z0-9_]*[A-Z]\b")


def test_every_variable_is_explained() -> None:
    pages = "".join(page.read_text() for page in (PROJECT / "docs").glob("*.md"))
    files = [*code_files(), *(PROJECT / "dags").glob("*.py")]
    files += [path for path in (PROJECT / "docker").iterdir() if path.is_file()]
    named = {name: path for path in files for name in _NAME.findall(path.read_text())}
    assert len(named) > 10
    explained = set(re.findall(r"`(CHAINLAKE_[A-Z0-9_]+)[`=]", pages))
    assert {name: path for name, path in named.items() if name not in explained} == {}


def test_the_list_in_the_code_has_every_variable_and_no_other() -> None:
    """What is not in the list is told to be read by nobody."""
    folders = ("jobs", "dags", "docker", "docs", "tests")
    files = [path for folder in folders for path in (PROJECT / folder).rglob("*") if path.suffix in _READ]
    texts = {path: path.read_text(errors="replace") for path in [*files, PROJECT / "Makefile", PROJECT / "README.md"]}
    own = {PROJECT / "tests/env/test_environment.py", PROJECT / "jobs/chainlake/env/variables.py"}
    named = {name for path, text in texts.items() if path not in own for name in _NAME.findall(text)}
    assert named - NAMES == set()
    assert {name for name in NAMES - named if name.removesuffix("_FILE") not in named} == set()
