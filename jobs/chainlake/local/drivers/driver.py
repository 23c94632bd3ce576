"""A process that runs one step after another, so that Python's imports, the JVM and its compiled code are paid once.

Protocol: each line of stdin is ``{"nonce": …, "arguments": […]}``, a call of ``python -m jobs``; all output goes to
stdout, and the line ``NONCE CODE`` ends it. The end of stdin ends the process, and with it its JVM.
"""

from __future__ import annotations

import json
import os
import sys

from chainlake.cli.main import main as jobs_main


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
    main()
