"""``python -m tests.replay --seeds N --first K``: seeds by hand; the first one that fails is printed, exit code 1.

With ``--store`` the lakes of the histories lie in an object store, S3Proxy on the loopback address.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
import time
from pathlib import Path

from chainlake.paths import Home
from tests.proof.s3proxy import BUCKET, serving
from tests.replay.simulator import ACTIONS, Broken, Simulation


def main() -> int:
    """Run the seeds in one session."""
    parser = argparse.ArgumentParser(prog="python -m tests.replay", description=__doc__)
    parser.add_argument("--seeds", type=int, default=20, help="how many")
    parser.add_argument("--first", type=int, default=1, help="the first one")
    parser.add_argument("--actions", type=int, default=ACTIONS, help="length of a history")
    parser.add_argument("--keep-going", action="store_true", help="run the other seeds after one that failed")
    parser.add_argument("--light", action="store_true", help="plain loops in Spark's place: seconds a seed, no JVM")
    parser.add_argument("--store", action="store_true", help="the lakes lie in an object store (S3Proxy)")
    args = parser.parse_args()
    os.environ.setdefault("SPARK_DRIVER_MEMORY", "1g")
    os.environ.setdefault("CHAINLAKE_SHUFFLE_PARTITIONS", "1")
    from chainlake.lake.spark.session import spark_session, stop_session

    cache, failed = Home.from_env().cache, []
    with contextlib.ExitStack() as opened:
        root = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="chainlake-replay-")))
        if args.store:
            opened.enter_context(serving(root, cache))
        if not args.light:
            spark_session(Home(root / "session", str(root / "session" / "lake"), root, cache), "replay")
        for seed in range(args.first, args.first + args.seeds):
            begun = time.monotonic()
            with tempfile.TemporaryDirectory(prefix=f"seed {seed} ", dir=root) as place:
                try:
                    lake = f"s3://{BUCKET}/{seed}/lake" if args.store else ""
                    Simulation(seed, Path(place), cache, light=args.light, actions=args.actions, lake=lake).run()
                except Broken as broken:
                    failed.append(seed)
                    print(broken, flush=True)
            print(f"seed {seed}: {'FAILED' if seed in failed else 'ok'} {time.monotonic() - begun:.1f} s", flush=True)
            if failed and not args.keep_going:
                break
        stop_session()
    if failed:
        print(f"failed seeds: {', '.join(map(str, failed))}; again: make simulate SEEDS=1 FIRST={failed[0]}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
