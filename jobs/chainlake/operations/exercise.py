"""Takes one generated day through ingest and detect: ``chainlake.lake.spark.cds`` runs it to see which classes the
steps load.

``CHAINLAKE_HOME`` is then a separate folder, which is removed afterwards.
"""

from __future__ import annotations

import sys
from datetime import date

from chainlake.days import Days
from chainlake.detect.step import detect
from chainlake.generate import Recipe, generate
from chainlake.ingest.step import ingest
from chainlake.lake.spark.session import stop_session
from chainlake.paths import Home

DAY = date(2024, 1, 2)


def exercise() -> int:
    """Ingest and detect the day, then stop the session properly, since the archive is written when the JVM exits."""
    home = Home.from_env()
    generate("stock", DAY, 1, home.landing("stock"), Recipe(patterns=1, changes=0))
    ingest(home, "stock", Days.one(DAY), run_id="exercise")
    detect(home, "stock", Days.one(DAY), run_id="exercise", patterns=["shakeout"])
    stop_session()
    return 0


if __name__ == "__main__":
    sys.exit(exercise())
