"""``chainlake contract``: prints what readers of the tables can rely on, as YAML."""

from __future__ import annotations

import argparse
import sys

from chainlake.catalog.tables import defined_tables
from chainlake.cli.tables import write_exactly
from chainlake.lake.sql.errors import NotInTheLake
from chainlake.paths import Home

HELP = (
    "Print a data contract in the Open Data Contract Standard: the tables of an installation with their columns, "
    "types, meanings, units, keys and rules, and their locations. Without names, it covers all tables that the "
    "definitions publish. It is made from definitions alone; no table is opened."
)
EXAMPLE = "  chainlake contract matches.NAME events.stock > contract.yaml"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the names of tables."""
    parser.add_argument(
        "tables", metavar="TABLE", nargs="*", help="the name in SQL, such as matches.NAME; default: all"
    )


def run(args: argparse.Namespace) -> int:
    """Print the contract."""
    from chainlake.lake.records.runs import code_version
    from chainlake.schemas.documents.contract import as_yaml, contract

    home = Home.from_env()
    known = {f"{table.schema}.{table.name}": table for table in defined_tables(home)}
    for name in args.tables:
        if name not in known:
            raise NotInTheLake.listed("table", name, sorted(known))
    chosen = [known[name] for name in args.tables or sorted(known)]
    write_exactly(as_yaml(contract(chosen, home.lake, code_version())), sys.stdout)
    return 0
