"""Instructions per packet-hop, counted by callgrind, compared with the stored counts.

A count does not depend on what else the machine does, so a growth of more than 3% is a change of the code, and the exit
code is 1. Needs valgrind and ``gungraun-runner``. ``make bench-instructions`` counts and compares;
``python benches/instructions.py --store`` stores new counts. Another compiler makes other code: with one that the
counts were not stored for, they are printed and not judged.
"""

import argparse
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

STORED = Path(__file__).with_suffix(".toml")
BENCH = Path(__file__).parent.parent / "crates" / "fairlane-python" / "benches" / "instructions.rs"
LIMIT = 0.03
"""Growth that is an error."""


def hops() -> int:
    """Packet-hops of each case, as the benchmark has them."""
    found = re.search(r"const HOPS: u64 = ([0-9_]+);", BENCH.read_text(encoding="utf-8"))
    if found is None:
        raise SystemExit(f"{BENCH}: there is no constant HOPS")
    return int(found[1].replace("_", ""))


def counted() -> dict[str, float]:
    """Instructions per packet-hop by case."""
    command = ["cargo", "bench", "--locked", "--quiet", "--package", "fairlane-python", "--bench", "instructions"]
    output = subprocess.run([*command, "--", "--output-format=json"], stdout=subprocess.PIPE, text=True, check=True)
    cases = [json.loads(line) for line in output.stdout.splitlines() if line.startswith("{")]
    total = {case["id"]: case["profiles"][0]["data"]["total"]["metrics"]["Ir"]["values"]["new"] for case in cases}
    return {name: count / hops() for name, count in total.items()}


def main() -> int:
    """Prints a row for each case; 1 if one has grown beyond the limit."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--store", action="store_true", help="store the counts")
    store = parser.parse_args().store
    compiler = subprocess.run(["rustc", "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
    counts = counted()
    if store:
        rows = "".join(f"{name} = {count:.1f}\n" for name, count in counts.items())
        head = "# Instructions per packet-hop: python benches/instructions.py --store\n"
        STORED.write_text(f'{head}rustc = "{compiler}"\n\n[cases]\n{rows}', encoding="utf-8")
    stored = tomllib.loads(STORED.read_text(encoding="utf-8"))
    judged = stored["rustc"] == compiler
    grown = []
    print(f"{'instructions per packet-hop':<32} {'now':>8} {'stored':>8} {'change':>8}")
    for name in sorted({*counts, *stored["cases"]}):
        now, before = counts.get(name), stored["cases"].get(name)
        if now is None or before is None:
            grown.append(name)
            print(f"{name:<32} {'-' if now is None else f'{now:.1f}':>8} {'-' if before is None else before:>8}")
            continue
        change = now / before - 1
        grown += [name] if change > LIMIT else []
        print(f"{name:<32} {now:>8.1f} {before:>8.1f} {100 * change:>+7.1f}%")
    if not judged:
        print(f"stored with rustc {stored['rustc']}, this is {compiler}: not judged")
        return 0
    if grown:
        print(f"more than {LIMIT:.0%} above what is stored, or not stored: {', '.join(grown)}", file=sys.stderr)
    return int(bool(grown))


if __name__ == "__main__":
    sys.exit(main())
