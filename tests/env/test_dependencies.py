"""Whatever the code imports is declared in ``pyproject.toml``: a package that only happens to be there is not."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
#: Modules whose distribution has another name.
DISTRIBUTION = {
    "airflow": "apache-airflow",
    "delta": "delta-spark",
    "great_expectations": "great-expectations",
    "openlineage": "openlineage-python",
    "psycopg2": "psycopg2-binary",
    "py4j": "pyspark",
    "yaml": "pyyaml",
}
#: Rooms of the library, which works without extras.
LIBRARY = ("cep", "model_change", "definitions")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def _names(wanted: Iterable[str]) -> set[str]:
    return {re.split(r"[\[<>=~ ]", one)[0].lower() for one in wanted}


@cache
def _imported(folder: Path) -> dict[str, Path]:
    """Distribution that a file imports, at its top or later → such a file."""
    found: dict[str, Path] = {}
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            modules: list[str] = []
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                modules = [node.module]
            for top in {module.partition(".")[0] for module in modules} - sys.stdlib_module_names - {"chainlake"}:
                found.setdefault(DISTRIBUTION.get(top, top.replace("_", "-")), path)
    return found


def test_what_the_library_imports_is_installed_without_extras() -> None:
    base = _names(PROJECT["dependencies"])
    for room in LIBRARY:
        missing = {
            name: path for name, path in _imported(ROOT / "jobs" / "chainlake" / room).items() if name not in base
        }
        assert not missing


def test_what_the_package_imports_is_declared() -> None:
    extras = [one for wanted in PROJECT["optional-dependencies"].values() for one in wanted]
    declared = _names([*PROJECT["dependencies"], *extras])
    found = {**_imported(ROOT / "jobs" / "chainlake"), **_imported(ROOT / "schemas")}
    assert len(found) > 10
    assert not {name: path for name, path in found.items() if name not in declared}
