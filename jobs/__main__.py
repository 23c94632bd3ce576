"""``python -m jobs VERB``: the command line from the folder of a checkout."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from chainlake.cli.main import command  # noqa: E402

if __name__ == "__main__":
    command()
