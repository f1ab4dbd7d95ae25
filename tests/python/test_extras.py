"""What the core needs is all that it imports: its commands work without the libraries of the extras."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from counters import made_up
from fairlane.core.errors import EXTRAS

TESTS = Path(__file__).parent.parent
STUDY = """
scenario = "small.toml"
seeds = [1]
[treatments.longer]
set = { "network.mtu" = "2 KiB" }
"""
BLOCKED = [*EXTRAS.values(), "dask", "dask_jobqueue", "joblib", "pyarrow", "threadpoolctl"]
"""What the extras install, and Arrow, which nothing is to import."""
WITHOUT = """
import json, sys
for name in json.loads(sys.argv[1]):
    sys.modules[name] = None  # type: ignore[assignment]
from fairlane.cli.main import execute
print(json.dumps([execute(command) for command in json.loads(sys.argv[2])]), file=sys.stderr)
"""


def without_extras(commands: list[list[str]], folder: Path) -> tuple[list[int], str]:
    """The exit codes of commands in one process that cannot import the extras, and its messages."""
    arguments = [sys.executable, "-c", WITHOUT, json.dumps(BLOCKED), json.dumps(commands)]
    done = subprocess.run(arguments, cwd=folder, capture_output=True, text=True, check=True)
    *messages, codes = done.stderr.strip().splitlines()
    return json.loads(codes), "\n".join(messages)


@pytest.fixture
def folder(small: str) -> Path:
    folder = Path(small).parent
    (folder / "study.toml").write_text(STUDY)
    made_up(12, 4).write_csv(folder / "counters.csv")
    return folder


@pytest.mark.long("")
def test_the_core_works_without_extras(folder: Path) -> None:
    commands = [
        ["check", "small.toml"],
        ["run", "small.toml", "-o", "run"],
        ["plot", "run"],
        ["query", "run", "select name, w from jobs"],
        ["analyze", "run"],
        ["study", "study.toml", "-o", "study", "--workers", "1", "--quiet"],
        ["place", "small.toml"],
        ["saturate", "small.toml", "-o", "load", "--load", "0.1", "--replicates", "1", "--duration", "20 us"],
        ["control", "small.toml", "--controller", "none", "--period", "50 us", "--periods", "2", "-o", "control"],
        ["fabric", "describe", "small.toml"],
        ["fabric", "draw", "small.toml", "-o", "fabric.svg"],
        ["trace", "describe", str(TESTS / "data" / "traces" / "stencil4d-32.otf2")],
        ["slowdown", "show", "torus-128"],
        ["list"],
        ["schema"],
    ]
    codes, messages = without_extras(commands, folder)
    assert codes == [0] * len(commands), messages


def test_a_missing_extra_is_named(folder: Path) -> None:
    commands = {
        "predict": ["predict", "fit", "counters.csv"],
        "schedule": ["workload", "pattern", "ring", "--ranks", "8"],
        "serve": ["serve", "."],
        "dask": ["study", "study.toml", "-o", "study", "--dask", "tcp://127.0.0.1:1"],
    }
    codes, messages = without_extras(list(commands.values()), folder)
    assert codes == [2] * len(commands)
    for extra in commands:
        assert f'is not installed: pip install "fairlane[{extra}]"' in messages
    assert "Traceback" not in messages


def test_help_and_the_package_itself_import_no_heavy_library() -> None:
    heavy = [
        "duckdb",
        "matplotlib",
        "networkx",
        "numpy",
        "polars",
        "pydantic",
        "rich.table",
        "scipy",
        "sklearn",
    ]
    code = "import sys, fairlane, fairlane.cli.main; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert sorted(set(heavy) & set(loaded)) == []
