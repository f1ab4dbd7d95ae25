"""What ``check`` says of a study: what it takes, and which points are the same simulation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fairlane.cli.main import execute
from fairlane.core.errors import ScenarioError
from fairlane.model.scenario.estimate import START
from fairlane.study import plan
from fairlane.study.measured import plan_of
from fairlane.study.pinned import pin
from fairlane.study.running import cost_of, run
from fairlane.study.study import Study
from fairlane.study.tasks.task import Task

pytestmark = pytest.mark.usefixtures("here")

SCENARIO = """
[scenario]
duration = "100 us"
fabric = { topology = "fat_tree", hosts = 16, levels = 2, leaf_down = 4, leaf_up = 2 }
[[scenario.jobs]]
name = "a"
ranks = 4
placement = { hosts = [0, 4, 8, 12] }
workload = { name = "all_to_all", message_size = "4 KiB", compute = "1 us" }
[[scenario.jobs]]
name = "b"
ranks = 4
placement = { hosts = [1, 5, 9, 13] }
workload = { name = "ring", message_size = "4 KiB", compute = "1 us" }
"""
TREATED = '[treatments.level.set]\n"jobs[0].service_level" = 1\n'
MEASURED = '[measure]\ntables.t = "SELECT packet_hops AS hops FROM run"\n'


def written(folder: Path, text: str) -> Path:
    file = folder / "study.toml"
    file.write_text(f"{text}\n{SCENARIO}")
    return file


def checked(file: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert execute(["check", str(file), "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.parametrize("kind", [TREATED, MEASURED])
def test_it_counts_what_is_then_simulated(tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path, f"placements = 2\nseeds = [1, 2]\n{kind}")
    found = checked(file, capsys)
    meta = run(Study.load(file), out=tmp_path / "out", workers=1).meta
    assert (found["points"], found["runs"]) == (meta.points, meta.runs)
    if kind == TREATED:
        assert found["simulations"] == meta.simulations
    # All jobs list their hosts, so that placements change nothing; seeds are other programs.
    assert found["identical"] == [[0, 2], [1, 3]]
    assert not any(path.name == "runs" for path in tmp_path.iterdir()), "nothing is simulated or written"


def test_the_time_is_that_of_each_simulation_once(tmp_path: Path) -> None:
    single = cost_of(plan_of(Study.load(written(tmp_path, "seeds = [1]\n"))))
    several = cost_of(plan_of(Study.load(written(tmp_path, "placements = 3\nseeds = [1, 2]\n"))))
    assert single.seconds is not None
    assert several.seconds is not None
    assert several.seconds - START == pytest.approx(2 * (single.seconds - START))
    # A default run of eight ranks and an isolated one of each four.
    assert single.runs == single.simulations == 3


def test_memory_is_that_of_the_largest_treatment(tmp_path: Path) -> None:
    small = cost_of(plan_of(Study.load(written(tmp_path, TREATED))))
    large = '[treatments.large.set]\n"fabric.hosts" = 4096\n"fabric.leaf_down" = 64\n"fabric.leaf_up" = 64\n'
    found = cost_of(plan_of(Study.load(written(tmp_path, large))))
    assert small.memory is not None
    assert found.memory is not None
    assert found.memory > small.memory + 4096 * 1000


def test_a_function_of_its_own_is_not_estimated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "method.py").write_text("def counted(scenario, arguments, watch):\n    raise SystemExit\n")
    file = written(tmp_path, '[measure]\nfunction = "method.py:counted"\n')
    assert execute(["check", str(file)]) == 0
    words = capsys.readouterr().out
    assert "time and memory: not known" in words
    assert "method.py" in words


def test_wrong_studies_are_reported_as_by_the_study(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path, '[treatments.level.set]\n"jobs[0].service_level" = 99\n')
    assert execute(["check", str(file)]) == 2
    assert "study.toml:2: treatments.level.set.jobs[0].service_level" in capsys.readouterr().err


def test_runs_that_workers_could_not_read_are_refused_before_the_first_simulation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def damaged(*given: Any) -> Task:
        found = pin(*given)
        return found.changed(qos={**found.scenario["qos"], "strategy": "isolate"})

    monkeypatch.setattr(plan, "pin", damaged)
    with pytest.raises(ScenarioError, match=r"the default run cannot be simulated: .*isolate"):
        plan.plan(Study.load(written(tmp_path, TREATED)))
