"""``chainlake retire``: ends a pattern or model whose file was removed."""

from __future__ import annotations

import argparse

from chainlake.cli.named import name_of
from chainlake.paths import Home
from chainlake.words import counted

HELP = (
    "End a pattern or a model after its file was removed from dags/config. Its days are marked 'retired'. Its rows "
    "stay readable (--keep, the default) or are removed (--drop). The verb refuses while the file exists. If the "
    "file comes back, its days are computed again. No JVM."
)
EXAMPLE = "  chainlake retire pattern/NAME\n  chainlake retire model/NAME --drop"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add NAME, and what happens to the rows."""
    parser.add_argument(
        "name",
        metavar="NAME",
        type=name_of("pattern", "model"),
        help="pattern/NAME or model/NAME; just NAME if it is only one of them; or the path of the removed file",
    )
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--keep", action="store_true", help="keep the published rows (default)")
    choice.add_argument("--drop", action="store_true", help="remove the published rows")
    parser.add_argument("--run-id", default=None, help="run id recorded in ops.runs; generated if omitted")


def run(args: argparse.Namespace) -> int:
    """Retire the definition."""
    from chainlake.lake.records.runs import new_run_id
    from chainlake.operations.retire import retire

    result = retire(Home.from_env(), args.name, drop=args.drop, run_id=args.run_id or new_run_id("retire"))
    removed = ", ".join(result["dropped"]) or "nothing"
    print(f"retired {result['definition']}: {counted(result['days'], 'day')} marked, {removed} removed")
    return 0
