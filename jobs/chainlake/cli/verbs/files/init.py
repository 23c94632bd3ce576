"""``chainlake init``: creates a project of the user's own."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from chainlake.cli.errors import OptionsClash

HELP = (
    "Create a project: a folder with a source, a pattern with tests, a model, a sample to try them on, a CI "
    "workflow and a README that says how to work with it. --from FILE.csv guesses the source from your file: which "
    "column is the time, which one is the key, and what the attributes are. Each guess is marked in the source's "
    "file. A project keeps its definitions separate from Chainlake: CHAINLAKE_CONFIG names their folder, "
    "CHAINLAKE_HOME the folder where Chainlake writes."
)
EXAMPLE = "  chainlake init ../cold-store\n  chainlake init ../trades --from trades_20250102.csv"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the folder, and a file to guess from."""
    parser.add_argument("folder", metavar="DIR", type=Path, help="the folder of the project, new or empty")
    parser.add_argument("--from", dest="given", metavar="FILE", type=Path, help="a CSV file to guess the source from")
    parser.add_argument("--name", help="name of the source that is guessed (default: from the file's name)")


def run(args: argparse.Namespace) -> int:
    """Create the project, and say what to do next."""
    from chainlake.cep.plain_files.read import regular_file
    from chainlake.starter.project import new_project

    if args.given is not None:
        regular_file(args.given)
    if args.name is not None and args.given is None:
        raise OptionsClash.name_without_file()
    made = new_project(args.folder, Path(sys.executable).with_name("chainlake"), args.given, args.name)
    model = "" if made.model is None else f", model {made.model}"
    print(f"{args.folder}: source {made.source}, pattern {made.pattern}{model}")
    if made.guess is not None:
        found = made.guess
        columns = ", ".join(f"{one.name} ({one.type})" for one in found.attributes)
        key = "none" if found.key is None else found.key.written
        print(f"guessed from {args.given}: time {' '.join(found.time)} ({found.form}), key {key}; {columns}")
    print("next:")
    print(f"  cd {args.folder} && . ./env.sh")
    print(f"  chainlake lint --test --on {made.data}")
    if made.model is not None:
        print(f"  chainlake try {made.model} {made.data}")
    print(f"  chainlake match {made.pattern} {made.data} --source {made.source} --format table")
    print("its README.md continues with landing files, computing days, and the report that draws what was found")
    return 0
