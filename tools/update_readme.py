"""Runs what README.md shows and pastes what it prints, so that the page never promises what the program does not do.

The output of the command line goes between the markers named ``demo``, that of the page's Python example between those
named ``python``; the picture of the interference matrix goes to ``docs/images``. With ``--check`` nothing is written:
the exit code says whether the page is up to date.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
PICTURE = ROOT / "docs/images/quickstart-interference.png"
WIDTH = 110


def run(command: list[str]) -> str:
    """What the command prints to standard output, as text of a fixed width without colours."""
    environment = os.environ | {"COLUMNS": str(WIDTH), "NO_COLOR": "1", "TERM": "dumb", "MPLBACKEND": "Agg"}
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return "\n".join(line.rstrip() for line in done.stdout.strip("\n").splitlines())


def demo(folder: Path) -> str:
    """The output of the quick start, whose run folder is written to ``folder``."""
    fairlane = Path(sys.executable).parent / "fairlane"
    printed = run([str(fairlane), "run", "examples/quickstart.toml", "--out", str(folder)])
    return printed.replace(str(folder), "runs/quickstart")


def python_example(page: str) -> str:
    """The output of the page's only Python example."""
    examples = re.findall(r"^```python\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL)
    if len(examples) != 1:
        sys.exit(f"README.md must have one Python example, and has {len(examples)}")
    return run([sys.executable, "-c", examples[0]])


def paste(page: str, name: str, output: str) -> str:
    """The page with ``output`` between the markers called ``name``."""
    markers = re.compile(rf"(<!-- output:start {name} -->\n).*?(<!-- output:end -->)", flags=re.DOTALL)
    block = f"\n```text\n{output}\n```\n\n"
    changed, count = markers.subn(lambda found: found[1] + block + found[2], page)
    if count != 1:
        sys.exit(f"README.md must have the markers {name!r} once, and has them {count} times")
    return changed


def main() -> int:
    """Updates README.md or, with ``--check``, compares it."""
    parser = argparse.ArgumentParser(description="Paste the real output into README.md.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 when the page is out of date")
    check: bool = parser.parse_args().check
    before = README.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "quickstart"
        after = paste(paste(before, "demo", demo(folder)), "python", python_example(before))
        if not check:
            README.write_text(after, encoding="utf-8")
            PICTURE.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(folder / "interference.png", PICTURE)
    if check and before != after:
        print("README.md is out of date: make readme", file=sys.stderr)
    return int(check and before != after)


if __name__ == "__main__":
    sys.exit(main())
