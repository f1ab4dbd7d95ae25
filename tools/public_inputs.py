"""Collects public traces and fabrics of other simulators from clones, and checks that they are the known ones.

    python tools/public_inputs.py CLONES OUT

``tests/public_inputs.csv`` names them with repository, commit, licence and SHA-256. CLONES has a clone OWNER/NAME of
each repository; OUT gets OWNER/NAME/PATH. ``FAIRLANE_PUBLIC=OUT pytest tests/python/test_public_inputs.py`` then
compares what fairlane reads with independent counts. None of them is part of this repository: see their licences.
"""

import csv
import re
import subprocess
import sys
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

TABLE = Path(__file__).resolve().parent.parent / "tests" / "public_inputs.csv"


def main(clones: Path, out: Path) -> int:
    """Writes the files; prints what is missing or differs, and returns the exit code."""
    problems = set()
    for row in csv.DictReader(TABLE.read_text().splitlines()):
        clone = clones / row["repository"]
        if not clone.exists():
            problems.add(f"git clone https://github.com/{row['repository']} {clone}")
            continue
        contents = members(clone, row["commit"], row["path"])
        digest = sha256(b"".join(contents.values())).hexdigest()
        if digest != row["sha256"]:
            problems.add(f"{row['repository']}: {row['path']}: SHA-256 {digest}, and {row['sha256']} is known")
            continue
        for path, content in contents.items():
            (out / row["repository"] / path).parent.mkdir(parents=True, exist_ok=True)
            (out / row["repository"] / path).write_bytes(content)
    print(*sorted(problems), sep="\n", file=sys.stderr) if problems else print(f"all files are in {out}")
    return bool(problems)


def members(clone: Path, commit: str, path: str) -> dict[str, bytes]:
    """Contents by path: of a file, or of ``NAME.*.et``, the files of a trace in the order of their ranks."""
    if "*" not in path:
        return {path: git(clone, "show", f"{commit}:{path}")}
    folder, _, name = path.rpartition("/")
    listed = git(clone, "ls-tree", "--name-only", commit, f"{folder}/").decode().split()
    form = re.compile(re.escape(name).replace(r"\*", r"(\d+)"))
    ranks = {int(number[1]): file for file in listed if (number := form.fullmatch(file.rpartition("/")[2]))}
    return {ranks[rank]: git(clone, "show", f"{commit}:{ranks[rank]}") for rank in sorted(ranks)}


def git(clone: Path, *arguments: str) -> bytes:
    """What git prints."""
    command: Sequence[str] = ("git", "-C", str(clone), *arguments)
    return subprocess.run(command, capture_output=True, check=True).stdout


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:3])))
