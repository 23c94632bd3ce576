"""``chainlake views``: prints the statements that make the lake's tables known to another engine."""

from __future__ import annotations

import argparse
import sys

from chainlake.cli.tables import write_exactly
from chainlake.lake.sql.errors import NotInTheLake
from chainlake.paths import Home

HELP = (
    "Print the statements that make the lake's tables known to another engine, which reads them where they are, and "
    "that define the flat view of each match table, with a row per match and neither structs nor arrays. For Spark, "
    "tables become views; for Trino, they are registered. Print them again after a new table or an edit that changes "
    "columns."
)
EXAMPLE = "  chainlake views spark > views.sql\n  chainlake views trino matches events > views.sql"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the engine and the schemas."""
    from chainlake.lake.sql.elsewhere import ENGINES
    from chainlake.lake.sql.query import SCHEMAS

    parser.add_argument("engine", choices=tuple(ENGINES), help="whose SQL is printed")
    parser.add_argument(
        "schemas", metavar="SCHEMA", nargs="*", help=f"of the tables; default: all ({', '.join(SCHEMAS)})"
    )


def run(args: argparse.Namespace) -> int:
    """Print the statements."""
    from chainlake.lake.sql.elsewhere import statements
    from chainlake.lake.sql.query import SCHEMAS

    for name in args.schemas:
        if name not in SCHEMAS:
            raise NotInTheLake.listed("schema", name, SCHEMAS)
    home = Home.from_env()
    printed = list(statements(home, args.engine, args.schemas or SCHEMAS))
    if not printed:
        raise NotInTheLake.without_tables(home.lake, args.schemas or SCHEMAS)
    write_exactly("".join(f"{one};\n" for one in printed), sys.stdout)
    return 0
