"""The compiled functions that a packet-hop runs; instances of the engine for plain networks must contain no features.

``benches/instructions.py`` comes first: this reads the profile that it leaves of fat_tree_64, and the symbols of the
benchmark. A function counts if it has a symbol, which those that are inlined into it do not have, and runs at least one
instruction a hop. An instance contains the functions that it calls, directly or through others. The exit code is 1 if a
hop takes more functions or files than it may, or if more instances contain features than are compiled with them. Needs
``objdump``.
"""

import json
import re
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

from instructions import hops

CASE = "hops.fat_tree_64"
LAYERS = ("network", "routing", "qos")
MOST_FUNCTIONS, MOST_FILES = 10, 6
FEATURES = re.compile(
    r"fairlane_core::network::(loss|nic::(pacing|notices|flows|queue_pairs)|port::(mark|buffered)|switch::input_queued)::"
    r"|fairlane_core::network::.*::(pool_taken|first_useful|repetitions|detail|lost_on_link)$"
)
"""Losses, pacing, notices, queue pairs, marks, input-queued switches, shared memory, errors of links, logs."""
ROOTS = ("run_hosts", "run_ports")
"""The functions of ``network/engine.rs`` that run a window."""
WITH_FEATURES = 2
"""Instances of each that may contain features: with and without counters."""


def executable() -> Path:
    """The compiled benchmark."""
    command = ["cargo", "bench", "--locked", "--quiet", "--package", "fairlane-python", "--bench", "instructions"]
    output = subprocess.run(
        [*command, "--no-run", "--message-format=json"], stdout=subprocess.PIPE, text=True, check=True
    )
    found = [json.loads(line).get("executable") for line in output.stdout.splitlines() if line.startswith("{")]
    return next(Path(path) for path in found if path)


def profiled(profile: Path) -> Counter[str]:
    """Instructions by function, those of its callees not counted."""
    counts, function, call = Counter[str](), "", False
    for line in profile.read_text(encoding="utf-8").splitlines():
        if line.startswith("fn="):
            function = line[3:]
        elif line.startswith("calls="):
            call = True
        elif re.match(r"[+*\-\d]", line):
            counts[function] += 0 if call else int(line.split()[1])
            call = False
    return counts


def file_of(function: str) -> str:
    """The module in which a function is written, by its demangled path."""
    path = function.removeprefix("<").removeprefix("fairlane_core::").partition("<")[0].partition(" ")[0]
    return "::".join(part for part in path.split("::")[:-1] if part and part[0].islower())


def path_of(symbol: str) -> str:
    """The demangled path of a symbol, without its hash."""
    rest, parts = symbol.removeprefix("_ZN"), []
    while match := re.match(r"\d+", rest):
        end = match.end() + int(match[0])
        parts.append(rest[match.end() : end])
        rest = rest[end:]
    path = "::".join(parts[:-1])
    for code, sign in (("..", "::"), ("$LT$", "<"), ("$GT$", ">"), ("$u20$", " "), ("_<", "<")):
        path = path.replace(code, sign)
    return path.removeprefix("<")


def calls(program: Path) -> dict[str, set[str]]:
    """The symbols that each symbol calls or jumps to."""
    output = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", program], stdout=subprocess.PIPE, text=True, check=True
    )
    edges, caller = defaultdict[str, set[str]](set), ""
    for line in output.stdout.splitlines():
        if header := re.match(r"[0-9a-f]+ <(_ZN[^>]+)>:$", line):
            caller = header[1]
        elif target := re.search(r"\s(?:call|j\w+)\s+[0-9a-f]+ <(_ZN[^>+]+)", line):
            edges[caller].add(target[1])
    return edges


def contained(edges: dict[str, set[str]], root: str) -> set[str]:
    """Everything that a function calls, directly or through others."""
    seen, waiting = {root}, [root]
    while waiting:
        new = edges.get(waiting.pop(), set()) - seen
        seen |= new
        waiting += new
    return seen


def main() -> int:
    """Prints the functions of a hop and the instances; 1 if something is not as it must be."""
    program = executable()
    profile = next((program.parents[2] / "gungraun").rglob(f"callgrind.{CASE}.out"))
    counts = {name: count / hops() for name, count in profiled(profile).items()}
    functions = {
        name: count for name, count in counts.items() if count >= 1 and file_of(name).partition("::")[0] in LAYERS
    }
    for name, count in sorted(functions.items(), key=lambda item: -item[1]):
        print(f"{count:>8.1f} instructions a hop  {name}")
    files = {file_of(name) for name in functions}
    print(f"{len(functions)} functions in {len(files)} files; at most {MOST_FUNCTIONS} in {MOST_FILES}")
    wrong = len(functions) > MOST_FUNCTIONS or len(files) > MOST_FILES
    wrong |= any(FEATURES.match(name.removeprefix("<")) for name in functions)
    edges = calls(program)
    for root in ROOTS:
        instances = [symbol for symbol in edges if path_of(symbol).endswith(f"::{root}") and "engine" in symbol]
        paths = [{path_of(symbol) for symbol in contained(edges, symbol)} for symbol in instances]
        features = [{path for path in of_one if FEATURES.match(path)} for of_one in paths]
        plain = sum(not found for found in features)
        print(f"{root}: {plain} instances without features, {len(instances) - plain} with them")
        if not plain or len(instances) - plain > WITH_FEATURES:
            wrong = True
            print("\n".join(f"  {' '.join(sorted(found))}" for found in features if found), file=sys.stderr)
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
