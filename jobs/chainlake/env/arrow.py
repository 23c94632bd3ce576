"""Arrow in commands that only read: it need not know pandas."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType


class _NoPandas:
    """A finder of modules for which there is no pandas."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Raise for pandas, and leave all other modules to the next finder."""
        if name == "pandas":
            raise ImportError("pandas is not imported only to ask whether a list is one of its series", name=name)
        return None


def arrow_without_pandas() -> None:
    """Keep Arrow from importing pandas, which takes a quarter of a second, the first time it makes an array of a list.

    It asks once whether there is a pandas whose series the list could be. Whoever imports pandas later gets it, and so
    does ``to_pandas``; only a process that gives series of pandas to Arrow must not call this.
    """
    if "pandas" in sys.modules:
        return
    import pyarrow as pa

    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(finder)
