"""Suite templates: one JSON file per family of tables in ``expectations/``, filled in per pattern, model or source.

A template is a Great Expectations suite in Great Expectations' own JSON form. A string that is just ``"$name"`` is
replaced by the parameter's value with its type (a number, a list), and ``$name`` inside a longer string by its text.
Every expectation has a ``description`` that says in words what is broken when it fails; if that names columns,
``meta.meaning`` says the same for a reader who does not know them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from string import Template
from typing import Any

from chainlake.errors import DefinitionError, UsageError
from chainlake.paths import PACKAGE

#: Folder of the templates.
FOLDER = PACKAGE / "expectations"


class UnknownTemplate(UsageError):
    """A suite was asked for that the templates cannot give."""

    @classmethod
    def of(cls, name: str, known: Iterable[str]) -> UnknownTemplate:
        """There is no template with this name."""
        return cls(f"there is no suite template '{name}'", hint=f"Templates: {', '.join(known)}.")

    @classmethod
    def parameter(cls, name: str, missing: KeyError) -> UnknownTemplate:
        """The template needs a parameter that was not given."""
        return cls(f"suite template '{name}' needs the parameter {missing}")


class UnfitTemplate(DefinitionError):
    """The file of a template is wrong."""

    @classmethod
    def no_json(cls, path: Path, error: json.JSONDecodeError) -> UnfitTemplate:
        """The file is not JSON."""
        return cls(f"the suite template is not JSON: {error.msg}", file=path, line=error.lineno, column=error.colno)

    @classmethod
    def undecided(cls, path: Path, kind: str, column: str) -> UnfitTemplate:
        """An expectation about matches cannot be judged by the smallest and the largest value of a measure."""
        return cls(
            f"three rows per day do not decide {kind} of {column}",
            file=path,
            key=kind,
            hint="Matches are judged by the least and the largest value of a measure: "
            "say what must hold as a measure that lies between two values.",
        )


def template_path(name: str) -> Path:
    """The file of template ``name``.

    Raises:
        UsageError: there is no such template.
    """
    path = FOLDER / f"{name}.json"
    if not path.is_file():
        raise UnknownTemplate.of(name, sorted(p.stem for p in FOLDER.glob("*.json")))
    return path


def instantiate(name: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """The suite made from template ``name``, as a dict with all parameters filled in.

    Raises:
        UsageError: there is no such template, or a parameter that it mentions is not given.
        DefinitionError: the file is not JSON.
    """
    path = template_path(name)
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise UnfitTemplate.no_json(path, error) from None
    try:
        suite: dict[str, Any] = _fill(document, params)
        return suite
    except KeyError as error:
        raise UnknownTemplate.parameter(name, error) from None


def _fill(value: Any, params: Mapping[str, Any]) -> Any:
    if isinstance(value, dict):
        return {key: _fill(item, params) for key, item in value.items()}
    if isinstance(value, list):
        return [_fill(item, params) for item in value]
    if not isinstance(value, str) or "$" not in value:
        return value
    if value[0] == "$" and value[1:].isidentifier():
        return params[value[1:]]
    return Template(value).substitute(params)
