"""Compacts and cleans the tables: ``spark-submit jobs/maintain.py``."""

from chainlake.cli.main import run_verb

if __name__ == "__main__":
    run_verb("maintain")
