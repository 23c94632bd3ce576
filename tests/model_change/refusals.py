"""What is said of a wrong model file."""

from __future__ import annotations

from pathlib import Path

import pytest

from chainlake.errors import DefinitionError
from chainlake.model_change.days.definitions import load_definition


def refused(folder: Path, text: str, change: tuple[str, str], key: str, line: int) -> DefinitionError:
    """The error of a model file in which a part of ``text`` is another one; its place is as it has to be."""
    old, new = change
    assert old in text
    path = folder / "wrong.yaml"
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(DefinitionError) as caught:
        load_definition(path)
    error = caught.value
    assert (error.file, error.line, error.key) == (str(path), line, key)
    return error
