"""QoS strategies in studies: as treatments, factors and in the scenario; and tables that replace ``[qos]``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fairlane.core.errors import ScenarioError
from fairlane.model.qos import STRATEGIES
from fairlane.model.scenario import Scenario
from fairlane.results.study import StudyResults
from fairlane.study.plan import ComparedPlan, plan
from fairlane.study.running import run
from fairlane.study.study import Study
from fairlane.study.tasks.task import Task, perform, read

pytestmark = pytest.mark.usefixtures("here")

SCENARIO = """
duration = "100 us"
{more}
[fabric]
topology = "fat_tree"
hosts = 8
levels = 2
leaf_down = 4
leaf_up = 1
[[jobs]]
name = "a"
ranks = 2
placement = { hosts = [0, 4] }
workload = { name = "flood_pairs", message_size = "16 KiB", compute = "0 us" }
[[jobs]]
name = "b"
ranks = 3
placement = { hosts = [1, 5, 6] }
workload = { name = "all_to_all", message_size = "16 KiB", compute = "0 us" }
"""
LEVELS = 'qos = { default = 1, service_levels = 4, arbiter = "oldest_first" }'


def study(folder: Path, text: str, more: str = "") -> Study:
    (folder / "two.toml").write_text(SCENARIO.replace("{more}", more))
    (folder / "study.toml").write_text(f'scenario = "two.toml"\n{text}')
    return Study.load(folder / "study.toml")


def planned(folder: Path, text: str, more: str = "") -> ComparedPlan:
    found = plan(study(folder, text, more))
    for cell in found.cells:
        cell.decide([None, None], found.study.treatments)
    return found


def tasks(found: ComparedPlan, treatment: str, job: str | None = None) -> list[Task]:
    return [run.task for cell in found.cells for run in cell.runs if (run.treatment, run.job) == (treatment, job)]


def qos(task: Task) -> dict[str, Any]:
    """What the simulator is given: levels of the jobs, and the table ``qos``."""
    resolved = read(task).decide()
    levels = {job.name: job.service_level for job in resolved.jobs}
    return {"levels": levels, **resolved.tables["qos"]}


def expected(folder: Path, strategy: str) -> dict[str, Any]:
    """The same for ``fairlane run`` with the strategy."""
    scenario = Scenario.load(folder / "two.toml", set=[f"qos={{ strategy = '{strategy}' }}"])
    resolved = scenario.decide()
    return {"levels": {job.name: job.service_level for job in resolved.jobs}, **resolved.tables["qos"]}


PLACES = {
    "treatment": ('[treatments.it.set]\n"qos.strategy" = "{}"', "", "it"),
    "table": ('[treatments.it.set.qos]\nstrategy = "{}"', "qos.default = 1\nqos.service_levels = 4", "it"),
    "factor": ('[factors.qos]\nit = {{ "qos.strategy" = "{}" }}', "", "default"),
    "set": ('[set]\n"qos.strategy" = "{}"', "", "default"),
    "base": ('[treatments.slow.set]\n"mpi.send_overhead" = "1 us"', "qos.strategy = '{}'", "slow"),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("strategy", [*STRATEGIES])
def test_every_strategy_works_wherever_a_study_may_name_it(tmp_path: Path, strategy: str, place: str) -> None:
    text, more, treatment = PLACES[place]
    if strategy == "classes":
        more += "\nclasses.first.job = 'a'"
    found = planned(tmp_path, text.format(strategy), more.format(strategy))
    [task] = tasks(found, treatment)
    assert qos(task) == expected(tmp_path, strategy)
    for own in found.tasks():
        outcome = perform(own)
        assert outcome.error is None


def test_isolated_runs_keep_the_level_and_the_lanes_of_all_jobs(tmp_path: Path) -> None:
    found = planned(tmp_path, '[set]\n"qos.strategy" = "isolate"')
    [task] = tasks(found, "isolated", "b")
    both = expected(tmp_path, "isolate")
    assert both["levels"] == {"a": 0, "b": 1}
    assert qos(task) == {**both, "levels": {"b": 1}}


def test_levels_replace_a_strategy_and_a_strategy_levels(tmp_path: Path) -> None:
    text = f"[treatments.levels.set]\n{LEVELS}\n[treatments.high.set.qos]\ndefault = 2"
    found = planned(tmp_path, text, 'qos.strategy = "split_priority"')
    [levels], [high] = tasks(found, "levels"), tasks(found, "high")
    assert (levels.scenario["qos"]["default"], levels.scenario["qos"]["arbiter"]["name"]) == (1, "oldest_first")
    # Nothing of the strategy is left: one level and its lane, as in a scenario with this table alone.
    assert (high.scenario["qos"]["default"], high.scenario["qos"]["arbiter"]["name"]) == (2, "weighted_round_robin")
    assert set(high.scenario["qos"]["kinds"].values()) == set()


def test_single_keys_beside_a_strategy_are_refused_where_they_stand(tmp_path: Path) -> None:
    wanted = study(tmp_path, '[treatments.a.set]\n"qos.default" = 1', 'qos.strategy = "isolate"')
    with pytest.raises(ScenarioError, match=r"study.toml:3: .*qos\.default.*is set by the QoS strategy isolate"):
        plan(wanted)


def test_a_controller_that_sets_levels_does_not_run_beside_a_strategy_with_levels(tmp_path: Path) -> None:
    text = '[treatments.a]\ncontroller = "process_prioritization"\nperiod = "50 us"\nperiods = 2'
    with pytest.raises(ScenarioError, match=r"qos\.strategy"):
        plan(study(tmp_path, text, 'qos.strategy = "isolate"'))


def test_lossy_lanes_stay_lossy_under_a_strategy(tmp_path: Path) -> None:
    study(tmp_path, "", 'network.transport = "swift"\nqos = { strategy = "isolate", lossy = true }')
    assert Scenario.load(tmp_path / "two.toml").decide().tables["qos"]["lossy"] == [0, 1]


def test_the_study_runs_to_its_end(tmp_path: Path) -> None:
    found = run(study(tmp_path, '[treatments.iso.set]\n"qos.strategy" = "isolate"'), out=tmp_path / "out", workers=1)
    assert isinstance(found, StudyResults)
    assert found.failures.is_empty()
    assert sorted(found.work["treatment"].unique()) == ["default", "iso"]


def test_an_error_while_a_run_is_simulated_names_no_file_that_does_not_exist(tmp_path: Path) -> None:
    task = planned(tmp_path, "").tasks()[0]
    assert isinstance(task, Task)
    wrong = Task(task.function, {**task.scenario, "duration": "soon"}, task.folder, task.label)
    error = perform(wrong).error
    assert error is not None
    assert error.startswith("duration")
