"""What is said when a part of a step failed."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from chainlake.errors import InfrastructureError
from chainlake.lake.records.runs import error_line
from chainlake.run.common import raise_together


def test_what_was_published_is_not_said_of_what_failed() -> None:
    with pytest.raises(InfrastructureError) as caught:
        raise_together([("pattern/p", ValueError("no")), ("pattern/q", KeyError("k"))], "3 days published")
    assert caught.value.what == (
        "2 failed: pattern/p: ValueError: no; pattern/q: KeyError: 'k'. Apart from this, 3 days published"
    )


@pytest.mark.parametrize("module", ["pyarrow", "json"])
def test_an_error_in_one_line_names_no_folder_of_python(module: str) -> None:
    imported = importlib.import_module(module)
    with pytest.raises(ImportError) as caught:
        exec(f"from {module} import there_is_no_such_name")
    assert str(imported.__file__) in str(caught.value)
    line = error_line(caught.value)
    assert line.startswith(f"ImportError: cannot import name 'there_is_no_such_name' from '{module}'")
    assert line.endswith(f"({module}/__init__.py)")


def test_files_of_the_user_keep_their_paths(tmp_path: Path) -> None:
    file = tmp_path / "gone.csv"
    with pytest.raises(OSError) as caught:
        file.read_bytes()
    assert str(file) in error_line(caught.value)
