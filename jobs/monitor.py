"""From events to model changes of a source: ``spark-submit jobs/monitor.py traffic 2025-10-01 2025-10-05``."""

from chainlake.cli.main import run_verb

if __name__ == "__main__":
    run_verb("monitor")
