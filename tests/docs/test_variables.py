"""Every environment variable of ours is explained in a page."""

from __future__ import annotations

import re

from chainlake.paths import PROJECT, code_files

_NAME = re.compile(r"\bCHAINLAKE_[A-Z][A-Z_]*[A-Z]\b")


def test_every_variable_is_explained() -> None:
    pages = "".join(page.read_text() for page in (PROJECT / "docs").glob("*.md"))
    files = [*code_files(), *(PROJECT / "dags").glob("*.py")]
    files += [path for path in (PROJECT / "docker").iterdir() if path.is_file()]
    named = {name: path for path in files for name in _NAME.findall(path.read_text())}
    assert len(named) > 10
    explained = set(re.findall(r"`(CHAINLAKE_[A-Z_]+)[`=]", pages))
    assert {name: path for name, path in named.items() if name not in explained} == {}
