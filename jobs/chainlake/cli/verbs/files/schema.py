"""``chainlake schema``: what editors are told of definitions."""

from __future__ import annotations

import argparse
import json

HELP = (
    "Print the JSON schema of a kind of definition (of a pattern that of its front matter), with which an editor knows "
    "keys and values while you type; or the grammar by which an editor colours patterns (TextMate). What values mean "
    "together is for lint."
)
EXAMPLE = "  chainlake schema source > source.schema.json\n  chainlake schema grammar > sase.tmLanguage.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which one."""
    parser.add_argument("kind", choices=("source", "model", "pattern", "grammar"), help="of what")


def run(args: argparse.Namespace) -> int:
    """Print it."""
    from chainlake.starter.editors.files import EDITORS

    print(json.dumps(EDITORS[args.kind](), indent=2, ensure_ascii=False))
    return 0
