"""Inputs of campaigns: what is to be measured, results of the project's own runs, and folders of CRAB."""

import shutil
from pathlib import Path
from random import Random

from fuzzing.fabrics import ROOT, Command
from measured_campaigns import application, crab, run_folder, victim


def campaigns(folder: Path) -> list[Path]:
    (folder / "campaign").mkdir()
    for name in ("campaign.toml", "measured.csv"):
        shutil.copy(ROOT / "examples" / "campaigns" / "testbed" / name, folder / "campaign")
    return [folder / "campaign"]


def script(path: Path, out: Path, rng: Random) -> Command:
    cells = rng.choice(([], ["--nodes", "4", "--sizes", "1 KiB"]))
    return ["campaign", "script", str(path), "--out", str(out / "scripts"), *cells]


def results(folder: Path) -> list[Path]:
    run_folder(folder / "own", "a")
    crab(folder / "crab", [victim(8), victim(64, "s0"), application("bursty_noise_a2a", "0.001 0.1")])
    return [folder / "own", folder / "crab"]


def read(path: Path, out: Path, _rng: Random) -> Command:
    return ["campaign", "read", str(path), "--out", str(out / "tables")]
