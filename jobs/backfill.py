"""Computes long history, many days per application: ``spark-submit jobs/backfill.py 2025-10-01 2025-10-05``."""

from chainlake.cli.main import run_verb

if __name__ == "__main__":
    run_verb("backfill")
