"""Functions and files of fairlane that ``fairlane run`` passes through with the quick start, by room.

Every function that is called counts once, with those at import, in all threads; comprehensions and lambdas do not.
Compute times are known: a check comes first. ``--names`` lists the functions. Usage: ``python benches/functions.py``.
"""

import os
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path
from types import CodeType, FrameType

ROOT = Path(__file__).parent.parent
SOURCES = f"{ROOT / 'python' / 'fairlane'}{os.sep}"
SCENARIO = str(ROOT / "examples" / "quickstart.toml")
SPLIT = ("model", "sim")
"""Rooms whose folders count by themselves."""


def called(arguments: list[str]) -> set[tuple[str, str]]:
    """Run a command in this process; return the functions that it calls, as (file, qualified name)."""
    codes: set[CodeType] = set()

    def keep(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call":
            codes.add(frame.f_code)

    threading.setprofile(keep)
    sys.setprofile(keep)
    from fairlane.cli.main import execute

    code = execute(arguments)
    sys.setprofile(None)
    threading.setprofile(None)  # type: ignore[arg-type]
    if code:
        raise SystemExit(code)
    own = [code for code in codes if code.co_filename.startswith(SOURCES) and not code.co_name.startswith("<")]
    # Bodies of classes have no local variables of their own.
    return {(code.co_filename.removeprefix(SOURCES), code.co_qualname) for code in own if code.co_flags & 2}


def room(file: str) -> str:
    """The room of a file, or its folder in a large room."""
    parts = Path(file).parts
    return "/".join(parts[:2]) if parts[0] in SPLIT and len(parts) > 2 else parts[0]


def main() -> None:
    """Print one row per room."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = folder
        subprocess.run([sys.executable, "-m", "fairlane", "check", SCENARIO], check=True, stdout=subprocess.DEVNULL)
        short = ["--set", 'duration="2 ms"', "--quiet", "--out", f"{folder}/run"]
        functions = called(["run", SCENARIO, *short])
    files = {file for file, _ in functions}
    in_rooms, files_in_rooms = Counter(room(file) for file, _ in functions), Counter(map(room, files))
    for name in sorted(in_rooms):
        print(f"{name:20} {in_rooms[name]:4} functions in {files_in_rooms[name]:3} files")
    print(f"{'all':20} {len(functions):4} functions in {len(files):3} files")
    if "--names" in sys.argv:
        print(*(f"{file} {name}" for file, name in sorted(functions)), sep="\n")


if __name__ == "__main__":
    main()
