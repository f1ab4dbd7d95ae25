"""A paper with claims that its replicates decide, run in this process."""

from pathlib import Path
from typing import Any

from fairlane.papers.folder import Claim
from fairlane.papers.judging import Finding
from fairlane.papers.reproduce import Reproduction, conclude, plan
from fairlane.papers.running import stored_as
from fairlane.papers.verdicts import ClaimVerdict
from fairlane.study.tasks.executor import Executor
from fairlane.study.tasks.store import Store
from small_study import Here

# What is measured is the number of the replicate, counted from 0, which its seed says; and the same in a fixed study.
PAPER = """
title = "A paper"
citation = "Nobody: Nothing, 2020."
[replicates]
varies = "the seed"
fixed = ["same"]
[[study]]
name = "varied"
file = "numbers.toml"
quick = { note = "scaled" }
[[study]]
name = "same"
file = "numbers.toml"
set = { seeds = [7] }
[[table]]
name = "replicate_of_methods"
sql = "SELECT seed, replicate FROM replicate"
"""
NUMBERS = """
seeds = [1, 2]
[scenario]
duration = "10 us"
fabric = { topology = "fat_tree", hosts = 8, levels = 2, radix = 4, bandwidth = "100 Gb/s" }
[[scenario.jobs]]
name = "ring"
ranks = 2
workload = { name = "ring", message_size = "1 KiB", compute = "1 us" }
[measure]
tables.numbers = "SELECT seed // 1000000 AS number FROM run"
"""
CLAIMS = """
[[claim]]
id = "three-of-four"
where = "I"
setup = "a ring"
claim = "small numbers"
check = "number <= 2, and others"
studies = ["varied", "same"]
sql = "SELECT study, max(number) AS value FROM numbers GROUP BY study ORDER BY max(number) DESC, study"
[[claim.clause]]
says = "{study} {value}"
band = "<= 2"
reported = "few"
[[claim.clause]]
says = "seed {value}"
sql = "SELECT seed - 1000000 * (replicate - 1) AS value FROM replicate_of_methods"
band = "= 1"
[[claim]]
id = "same"
where = "II"
setup = "a ring"
claim = "nothing varies"
check = "number < 0"
studies = ["same"]
sql = "SELECT max(number) AS value FROM numbers WHERE study = 'same'"
[[claim.clause]]
says = "number {value}"
band = "< 0"
"""


def write_paper(folder: Path) -> Path:
    """Writes the files of the paper into a new folder."""
    folder.mkdir()
    for name, text in (("paper.toml", PAPER), ("claims.toml", CLAIMS), ("numbers.toml", NUMBERS)):
        (folder / name).write_text(text)
    return folder


def change(folder: Path, file: str, before: str, after: str) -> None:
    """Replaces a text of one of the files."""
    text = (folder / file).read_text()
    assert before in text
    (folder / file).write_text(text.replace(before, after))


def run(folder: Path, out: Path, pool: Here | None = None, **options: Any) -> Reproduction:
    """The paper's claims, judged by runs of this process."""
    settings = {name: options.pop(name) for name in ("quick", "only", "variant") if name in options}
    chosen = plan(folder, **settings)
    with Executor(pool or Here(), Store(out, stored_as)) as executor:
        return conclude(chosen, executor, out, **options)


def verdict(found: Reproduction, claim: str) -> ClaimVerdict:
    """The verdict on a claim."""
    return next(one for one in found.verdicts if one.claim.id == claim)


def answers(out: Path) -> dict[str, int]:
    """When each answer in the folder was written."""
    return {path.name: path.stat().st_mtime_ns for path in (out / "answers").iterdir()}


def claim_of(name: str, *studies: str) -> Claim:
    """A claim of one clause that needs these studies."""
    clause = {"says": "{value}", "band": "> 0", "sql": "SELECT 1 AS value"}
    return Claim(id=name, where="", setup="", claim="", check="", studies=[*studies], clause=[clause])


def finding(value: float, low: float | None = 0.0, high: float | None = None) -> Finding:
    """A value against an open band."""
    held = (low is None or value > low) and (high is None or value < high)
    return Finding(0, f"{value}", value, low, high, held, "", "a number")
