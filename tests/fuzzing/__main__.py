"""The command line: reads as many damaged inputs as wanted, and ends with 1 if one does not end as it should."""

import argparse
import sys
from collections import Counter
from pathlib import Path
from tempfile import mkdtemp

from fuzzing.harness import fuzz


def main() -> int:
    """Runs it."""
    parser = argparse.ArgumentParser(prog="python -m fuzzing", description=__doc__)
    parser.add_argument("--inputs", type=int, default=1000, help="how many inputs")
    parser.add_argument("--first", type=int, default=0, help="number of the first one")
    parser.add_argument("--seed", type=int, default=1, help="what they are drawn from")
    parser.add_argument("--only", type=int, action="append", help="only the input of this number")
    parser.add_argument("--folder", type=Path, help="where inputs with findings stay; by default a new one")
    chosen = parser.parse_args()
    folder = chosen.folder or Path(mkdtemp(prefix="fairlane-fuzz-"))
    folder.mkdir(parents=True, exist_ok=True)
    numbers = chosen.only or range(chosen.first, chosen.first + chosen.inputs)
    found = fuzz(numbers, chosen.seed, folder, told=True)
    print(f"{sum(found.readers.values())} inputs, {len(found.findings)} findings, in {folder}")
    print("readers:", ", ".join(f"{name} {count}" for name, count in found.readers.most_common()))
    print("exit codes:", ", ".join(f"{code}: {count}" for code, count in sorted(Counter(found.ended.values()).items())))
    for one in found.findings:
        print(f"\n{one.number} {one.reader}: {' '.join(one.command)}\n{one.error}")
    return 1 if found.findings else 0


if __name__ == "__main__":
    sys.exit(main())
