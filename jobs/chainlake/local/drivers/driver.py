"""A process that runs one step after another, so that imports and the warm-up of the JVM are paid for only once.

Protocol: each line of stdin is ``{"nonce": …, "arguments": […]}``, a call of ``chainlake``. All output goes to
stdout, and the line ``NONCE CODE`` ends it. The end of stdin ends the process, and its JVM with it.

With ``--prepare`` it first prepares what nearly every step needs, before any request arrives.
"""

from __future__ import annotations

import importlib
import json
import os
import sys

from chainlake.cli.main import main as jobs_main
from chainlake.cli.main import module_of
from chainlake.paths import Home

#: Modules that the steps import when there is work, besides those of their verbs.
_NEEDED = ("chainlake.ingest.rows.parse", "chainlake.detect.run", "chainlake.monitoring.run")


def prepare(home: Home) -> None:
    """Start Spark while Great Expectations is imported, then import the steps."""
    from chainlake.lake.spark.session import spark_session
    from chainlake.quality import warm_up

    audits = warm_up()
    spark_session(home, "chainlake")
    for name in (*map(module_of, ("ingest", "detect", "monitor")), *_NEEDED):
        importlib.import_module(name)
    audits.join()


def main() -> None:
    """Serve requests until stdin ends."""
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
    # Everything that a step or its JVM prints belongs in the task's log.
    os.dup2(1, 2)
    if sys.argv[1:] == ["--prepare"]:
        try:
            prepare(Home.from_env())
        except Exception as error:
            # A step that needs what failed will fail with the same error; other steps should not fail.
            print(f"the driver could not be prepared: {error}", flush=True)
    main()
