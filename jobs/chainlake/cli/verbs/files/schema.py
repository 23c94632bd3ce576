"""``chainlake schema``: prints what editors need to know about definitions."""

from __future__ import annotations

import argparse
import json

HELP = (
    "Print the JSON schema of a kind of definition (for a pattern, of its front matter), so that an editor "
    "completes and checks keys and values while you type. Or print the TextMate grammar with which an editor "
    "colours patterns. lint checks rules that combine several values."
)
EXAMPLE = "  chainlake schema source > source.schema.json\n  chainlake schema grammar > sase.tmLanguage.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the kind."""
    parser.add_argument(
        "kind", choices=("source", "model", "pattern", "grammar"), help="kind of definition, or the grammar"
    )


def run(args: argparse.Namespace) -> int:
    """Print the schema or the grammar."""
    from chainlake.starter.editors.files import EDITORS

    print(json.dumps(EDITORS[args.kind](), indent=2, ensure_ascii=False))
    return 0
