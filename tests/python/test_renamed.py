"""Old keys and names of scenario files are refused, with the new name in the message."""

from pathlib import Path

import pytest

from fairlane import Scenario, ScenarioError
from fairlane.inputs.problems import RENAMED

BASE = """
duration = "1 ms"
[fabric]
topology = "fat_tree"
hosts = 16
[[jobs]]
name = "ring"
ranks = 4
workload = "ring"
"""
MIX = '[background]\nhosts = {{ dist = "expon", {bound} }}\n[[background.jobs]]\n{weight}workload = "ring"\n'
OLD = {
    "counters_at": ('[observe]\ncounters_at = "ring"', "observe.counters_at"),
    "every": ('[observe]\nswitch_counters = { job = "ring", every = "1 us" }', "observe.switch_counters.every"),
    "least": (MIX.format(bound="least = 2", weight=""), "background.hosts.least"),
    "leave_out": ('[[jobs]]\ntrace = { path = "x", leave_out = ["MPI_Put"] }', "jobs[1].trace.leave_out"),
    "most": (MIX.format(bound="most = 2", weight=""), "background.hosts.most"),
    "onward_waiting": ("[observe]\nonward_waiting = true", "observe.onward_waiting"),
    "period": ('[[jobs]]\nranks = 2\nworkload = { name = "ring", period = 4 }', "jobs[1].workload.period"),
    "share": (MIX.format(bound="min = 2", weight="share = 3\n"), "background.jobs[0].share"),
    "strategy": ('[placement]\nstrategy = "linear"\nfit = "best"', "placement.strategy"),
}
DRAGONFLY = {"topology": "dragonfly", "groups": 3, "switches_per_group": 2, "hosts_per_switch": 2, "global_links": 1}


@pytest.mark.parametrize("old", OLD)
def test_an_old_key_is_refused_with_the_new_one(old: str, tmp_path: Path) -> None:
    table, key = OLD[old]
    file = tmp_path / "scenario.toml"
    file.write_text(BASE + table)
    with pytest.raises(ScenarioError) as caught:
        Scenario.load(file)
    (problem,) = (one for one in caught.value.problems if one.key == key or "placement" in one.key)
    assert problem.message == f'renamed: this key is now "{RENAMED[old][0]}"'
    assert problem.line


def test_an_old_value_is_refused_with_the_new_one() -> None:
    routing = {"name": "ugal_l", "ties": "direct"}
    with pytest.raises(ScenarioError, match=r'fabric\.routing\.ties = "direct": renamed: this name is now "minimal"'):
        Scenario(fabric={**DRAGONFLY, "routing": routing}, jobs=[{"ranks": 2, "workload": "ring"}])
    assert {*OLD, "direct", "panel"} == set(RENAMED), "every renamed key is tested"


def test_an_old_name_that_is_a_name_elsewhere_is_allowed_there() -> None:
    found = Scenario(fabric=DRAGONFLY, qos={"strategy": "isolate"}, jobs=[{"ranks": 2, "workload": "ring"}])
    assert found.qos.strategy == "isolate"
