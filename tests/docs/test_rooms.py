"""A room whose ``__init__`` lists its files lists each of them, and no other."""

from __future__ import annotations

import ast
import re

from chainlake.paths import PROJECT

PACKAGE = PROJECT / "jobs" / "chainlake"
LINE = re.compile(r"^\* ((?:``\w+``(?:, )?)+): \S", re.MULTILINE)


def test_the_list_of_a_room_is_that_of_its_files() -> None:
    listed = {}
    for init in PACKAGE.rglob("__init__.py"):
        said = ast.get_docstring(ast.parse(init.read_text(encoding="utf-8"))) or ""
        names = [name for line in LINE.findall(said) for name in re.findall(r"\w+", line)]
        if names:
            listed[init.parent] = names
    assert len(listed) > 20
    for room, names in listed.items():
        there = [file.stem for file in room.glob("*.py") if file.name != "__init__.py"]
        there += [inner.parent.name for inner in room.glob("*/__init__.py")]
        assert sorted(names) == sorted(there), room.relative_to(PACKAGE)
