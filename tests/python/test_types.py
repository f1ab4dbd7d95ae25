"""What type checkers make of users' code, without pydantic's plug-in: units are strings, names are checked."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
RIGHT = """
import fairlane
from fairlane.core.units import Duration, Size
from fairlane.model.workload import Workload


class Ring(Workload):
    message_size: Size = 64 * 1024
    pause: Duration = 0


ring = Ring(message_size="4 KiB", compute="1 ms", pause="2 us", jitter=0.1)
octets: int = 8 * ring.message_size
job = fairlane.Job(ranks=8, workload=ring, start="1 ms", power_cap="65 W", placement="packed")
named = fairlane.Job(ranks=8, workload="ring", rails="round_robin")
scenario = fairlane.Scenario(
    fabric={"topology": "fat_tree", "hosts": 64}, jobs=[job, named, {"workload": "ring", "ranks": 4}], duration="10 ms"
)
run = fairlane.run(scenario)
names: list[str] = run.jobs["name"].to_list()
run.plot("slowdown").set_title("mine")
"""
WRONG = {
    'fairlane.Job(ranks="8", workload="ring")': 'has incompatible type "str"; expected "int | None"',
    'fairlane.Job(rank=8, workload="ring")': 'Unexpected keyword argument "rank"',
    "fairlane.Scenario(jobs=[job])": 'Missing named argument "fabric"',
    'Ring(messages_per_iteration="4 KiB")': 'has incompatible type "str"; expected "int"',
}


@pytest.mark.long("")
def test_examples_and_scenarios_in_python_pass_mypy_as_users_write_them(tmp_path: Path) -> None:
    """In one run of mypy: most of its time is that of reading the package."""
    right, wrong, settings = (tmp_path / name for name in ("right.py", "wrong.py", "mypy.ini"))
    right.write_text(RIGHT)
    wrong.write_text("from right import Ring, fairlane, job\n\n" + "\n".join(WRONG))
    settings.write_text("[mypy]\nstrict = True\nimplicit_reexport = True\n")
    examples = sorted((ROOT / "examples").glob("*.py"))
    command = [sys.executable, "-m", "mypy", "--config-file", str(settings)]
    command += ["--cache-dir", str(ROOT / ".mypy_cache" / "users"), *map(str, [*examples, right, wrong])]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    found = [line for line in done.stdout.splitlines() if ": error:" in line]
    assert [line for line in found if not line.startswith("wrong.py")] == []
    lines = {int(line.split(":")[1]) - 3: line for line in found}
    assert list(lines) == list(range(len(WRONG))), done.stdout
    for number, words in enumerate(WRONG.values()):
        assert words in lines[number]
