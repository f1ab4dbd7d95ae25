"""The process that reads damaged inputs: it takes numbers of inputs from standard input, and says how each went.

It imports everything once. Whoever started it kills it if an input takes too long or too much memory.
"""

import contextlib
import io
import json
import os
import shutil
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from random import Random

from fuzzing.readers import READERS, prepare

CODES = (0, 1, 2, 3)
"""Exit codes that a command may have."""


def case(seed: int, number: int, whole: dict[str, list[Path]], folder: Path) -> tuple[str, Sequence[str]]:
    """Makes the input of a number in ``folder``: the name of its reader, and the command that reads it.

    Those of negative numbers are whole, and each reader has its turn.
    """
    rng = Random(f"{seed}/{number}")
    reader = READERS[-1 - number] if number < 0 else rng.choices(READERS, [one.weight for one in READERS])[0]
    (folder / "in").mkdir(parents=True)
    (folder / "out").mkdir()
    source = rng.choice(sorted(whole[reader.name]))
    path = prepare(reader, source, folder / "in", None if number < 0 else rng)
    return reader.name, reader.commands(path, folder / "out", rng)


def perform(command: Sequence[str], whole: Path) -> int:
    """Runs a command within this process; returns its exit code."""
    from fairlane.cli.main import execute
    from fairlane.core.errors import FairlaneError

    if command[0] not in ("PLAN", "RESUME"):
        return execute(list(command))
    from fairlane.study.plan import plan
    from fairlane.study.running import run
    from fairlane.study.study import Study

    try:
        if command[0] == "PLAN":
            plan(Study.load(command[1]))
        else:
            study = Study.load(whole / "answers" / "levels.toml")
            run(study, out=Path(command[1]), resume=True, workers=1)
    except (FairlaneError, OSError):
        return 2
    return 0


def main(seed: int, folder: Path) -> None:
    """Serves until standard input ends."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print must not come between the answers
    os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
    import fairlane.study.tasks.pools
    from small_study import Here

    vars(fairlane.study.tasks.pools)["Processes"] = Here
    whole = {reader.name: sorted(reader.inputs(_made(folder / "whole" / reader.name))) for reader in READERS}
    print(json.dumps({"ready": True}), file=out, flush=True)
    for line in sys.stdin:
        number = int(line)
        place = folder / f"input-{number}"
        name, command = case(seed, number, whole, place)
        print(json.dumps({"begun": number, "reader": name, "command": command}), file=out, flush=True)
        told = io.StringIO()
        found: dict[str, object] = {"number": number, "reader": name, "command": command}
        try:
            with contextlib.redirect_stdout(told), contextlib.redirect_stderr(told):
                code = perform(command, folder / "whole")
            found["code"] = code
            if code not in CODES:
                found["error"] = f"exit code {code}"
        except BaseException:  # whatever gets out is a finding
            found["error"] = traceback.format_exc()
        found["told"] = told.getvalue()[-400:]
        if "Traceback (most recent" in told.getvalue():
            found["error"] = told.getvalue()
        if "error" not in found:
            shutil.rmtree(place, ignore_errors=True)
        print(json.dumps(found), file=out, flush=True)


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
