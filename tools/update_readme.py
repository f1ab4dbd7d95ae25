"""Runs what README.md and the examples show and stores what they print, so that no page promises what is not so.

In README.md the first table that the quick start prints goes between the markers named ``demo``. All that it prints but
latencies and times goes between those of docs/quickstart.md, the output of this page's Python example between those
named ``python``, and the picture of the interference matrix to ``docs/images``. The output of every
``examples/NAME.py`` goes to ``examples/NAME.out``, which the tests compare.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
QUICK_START = ROOT / "docs/quickstart.md"
PICTURE = ROOT / "docs/images/quickstart-interference.png"
WIDTH = 100


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
        sys.exit(f"docs/quickstart.md must have one Python example, and has {len(examples)}")
    return run([sys.executable, "-c", examples[0]])


def first_table(printed: str) -> str:
    """What the quick start prints before the table of latencies."""
    shown, heading, _ = printed.partition("\n\nLatency\n")
    if not heading:
        sys.exit("the quick start must print a table with the title Latency")
    return shown


def without_latencies(printed: str) -> str:
    """What the quick start prints, without the table of latencies and without what differs between machines."""
    return re.sub(r"\n\nLatency\n.*?(?=\n\nWho delays whom)|\nWall time .*", "\n...", printed, flags=re.DOTALL)


def update(file: Path, outputs: dict[str, str]) -> None:
    """Writes a page with outputs between its markers."""
    page = file.read_text(encoding="utf-8")
    for name, output in outputs.items():
        page = paste(file, page, name, output)
    file.write_text(page, encoding="utf-8")


def paste(file: Path, page: str, name: str, output: str) -> str:
    """The page with ``output`` between the markers called ``name``."""
    markers = re.compile(rf"(<!-- output:start {name} -->\n).*?(<!-- output:end -->)", flags=re.DOTALL)
    block = f"\n```text\n{output}\n```\n\n"
    changed, count = markers.subn(lambda found: found[1] + block + found[2], page)
    if count != 1:
        sys.exit(f"{file.name} must have the markers {name!r} once, and has them {count} times")
    return changed


def main() -> None:
    """Updates README.md, the page on the quick start, their picture and the outputs of the examples."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "quickstart"
        printed = demo(folder)
        example = python_example(QUICK_START.read_text(encoding="utf-8"))
        update(README, {"demo": first_table(printed)})
        update(QUICK_START, {"demo": without_latencies(printed), "python": example})
        PICTURE.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(folder / "interference.png", PICTURE)
    for script in sorted((ROOT / "examples").glob("*.py")):
        script.with_suffix(".out").write_text(run([sys.executable, str(script)]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
