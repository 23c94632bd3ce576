"""A process that runs one step after another, so that Python's imports, the JVM and its compiled code are paid once.

Protocol: each line of stdin is ``{"nonce": …, "arguments": […]}``, a call of ``chainlake``; all output goes to
stdout, and the line ``NONCE CODE`` ends it. The end of stdin ends the process, and with it its JVM.

With ``--prepare`` it first makes ready what nearly every step needs, while nothing has been asked of it.
"""

from __future__ import annotations

import importlib
import json
import os
import sys

from chainlake.cli.main import main as jobs_main
from chainlake.cli.main import module_of
from chainlake.paths import Home

#: What the steps import when there is work, beside their verbs.
_NEEDED = ("chainlake.ingest.rows.parse", "chainlake.detect.run", "chainlake.monitoring.run")


def prepare(home: Home) -> None:
    """Start Spark, meanwhile import what audits, and import the steps."""
    from chainlake.lake.spark.session import spark_session
    from chainlake.quality import warm_up

    audits = warm_up()
    spark_session(home, "chainlake")
    for name in (*map(module_of, ("ingest", "detect", "monitor")), *_NEEDED):
        importlib.import_module(name)
    audits.join()


def main() -> None:
    """Serve until stdin ends."""
    for line in sys.stdin:
        request = json.loads(line)
        try:
            code = jobs_main(request["arguments"])
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 2
        sys.stdout.flush()
        sys.stderr.flush()
        os.write(1, f"{request['nonce']} {code}\n".encode())


if __name__ == "__main__":
    # Everything a step or its JVM says belongs to the log of the task.
    os.dup2(1, 2)
    if sys.argv[1:] == ["--prepare"]:
        try:
            prepare(Home.from_env())
        except Exception as error:
            # A step that needs the same meets it again and fails with it; one that does not need it is not to fail.
            print(f"the driver could not be prepared: {error}", flush=True)
    main()
