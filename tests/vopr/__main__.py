"""Tries random cases and prints those that fail, small: ``python -m vopr --seed 0 --count 1000`` in ``tests``."""

import argparse
import json
import sys
import time
from pathlib import Path

from vopr.campaign import Tally, run_case, run_seeds
from vopr.case import Case


def main() -> int:
    """Returns how many cases fail, at most 100."""
    parser = argparse.ArgumentParser(prog="vopr", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, help="how many seeds; default: 100, or as many as there is time for")
    parser.add_argument("--seconds", type=float, help="stop after so many seconds")
    parser.add_argument("--shrink", type=float, default=60, help="seconds that making a failing case smaller may take")
    parser.add_argument("--replay", type=Path, help="check the case of a file instead")
    parser.add_argument("--tally", type=Path, help="write what was drawn and checked as JSON")
    given = parser.parse_args()
    begun, cpu = time.monotonic(), time.process_time()
    if given.replay:
        tally, case = Tally(), Case.load(given.replay)
        run_case(case, case.resolve(), tally, 0)
    else:
        count = 100 if given.count is None and given.seconds is None else given.count
        tally = run_seeds(given.seed, count, given.seconds, given.shrink)
    spent, cpu = time.monotonic() - begun, time.process_time() - cpu
    print(tally)
    total = tally.cases + len(tally.failed)
    times = f"{spent:.0f} s ({cpu:.0f} s of processor time)"
    print(f"{total} cases from seed {given.seed}, {len(tally.failed)} fail {tally.failed}, {times}")
    if given.tally:
        given.tally.write_text(json.dumps({**tally.as_json(), "cpu_s": cpu}, indent=1), encoding="utf-8")
    return min(len(tally.failed), 100)


if __name__ == "__main__":
    sys.exit(main())
