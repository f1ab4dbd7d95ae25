"""Tries many seeds and prints those that fail: ``python -m differential --seeds 0:2000`` in ``tests``."""

import argparse
import sys
import time
import traceback

from differential import Difference, compare


def main() -> int:
    """Returns how many seeds fail, at most 100."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="0:100", help="FIRST:END, or one seed to replay it")
    first, _, end = parser.parse_args().seeds.partition(":")
    seeds = range(int(first), int(end or int(first) + 1))
    failed, hops, started = [], 0, time.monotonic()
    for seed in seeds:
        try:
            hops += compare(seed)["packet_hops"]
        except Difference as difference:
            failed.append(seed)
            print(difference, flush=True)
        except Exception:
            failed.append(seed)
            print(f"seed {seed}:\n{traceback.format_exc()}", flush=True)
    spent = time.monotonic() - started
    print(f"{len(seeds)} scenarios, {hops} packet-hops each way, {len(failed)} differ {failed}, {spent:.0f} s")
    return min(len(failed), 100)


if __name__ == "__main__":
    sys.exit(main())
