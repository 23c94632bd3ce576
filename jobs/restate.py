"""Computes stale days again: ``spark-submit jobs/restate.py --source traffic``."""

from chainlake.cli.main import run_verb

if __name__ == "__main__":
    run_verb("restate")
