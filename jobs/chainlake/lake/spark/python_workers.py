"""What Spark's Python tasks need besides their work."""

from __future__ import annotations

import sys
from zipimport import zipimporter


def forget_archives() -> None:
    """Drop the module finders for archives from Python's cache.

    PySpark's workers come from an archive, with one finder for each of its packages, and before each task PySpark makes
    every finder read the directory of its archive again, in plain Python: a quarter of a second, more than many tasks
    take. Python makes a new finder where it needs one.
    """
    for place, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimporter):
            del sys.path_importer_cache[place]
