"""The schemas and the grammar by name, and as files of a project that make an editor use them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from chainlake.starter.editors.grammar import GRAMMAR_FILE, LANGUAGE_FILE, extension, grammar, language
from chainlake.starter.editors.schemas import model_schema, pattern_schema, source_schema

#: What ``chainlake schema`` prints.
EDITORS: dict[str, Callable[[], dict[str, Any]]] = {
    "source": source_schema,
    "model": model_schema,
    "pattern": pattern_schema,
    "grammar": grammar,
}


def editor_files() -> dict[str, str]:
    """The files of a project: schemas, the grammar, and what makes VS Code use both."""
    names = {"source": "source.schema.json", "model": "model.schema.json", "grammar": GRAMMAR_FILE}
    schemas = {f"./editors/{names[kind]}": f"config/{kind}s/*.yaml" for kind in ("source", "model")}
    return {
        **{f"editors/{name}": _json(EDITORS[kind]()) for kind, name in names.items()},
        "editors/package.json": _json(extension()),
        f"editors/{LANGUAGE_FILE}": _json(language()),
        ".vscode/settings.json": _json({"yaml.schemas": schemas}),
    }


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"
