"""``python -m jobs VERB``: the command line from the folder of a checkout."""

import os.path
import runpy
import sys

HERE = os.path.dirname(os.path.abspath(__file__))

if __name__ == "__main__":
    # Checked before anything is imported, since another Python cannot even read the package.
    version = runpy.run_path(os.path.join(HERE, "chainlake", "env", "python_version.py"))
    version["check"]("Use .venv/bin/python -m jobs, which 'make setup' makes.")
    sys.path.insert(0, HERE)
    from chainlake.cli.main import command

    command()
