"""Random scenarios give the same result in one go, in pieces, in forks, observed or not, and by the runner.

``FAIRLANE_DIFFERENTIAL=0:2000`` tries these seeds in place of the few that every run of the tests does. That takes
longer than a test may: then also give ``--timeout 0``. ``python -m differential`` in ``tests`` does it without pytest.
"""

import os
from pathlib import Path

import pytest

from differential import compare, draw
from fairlane import RunError, Scenario, Simulation
from fairlane.fabric.view import columns

REPRODUCERS = Path(__file__).parents[1] / "data" / "reproducers"
FIRST, _, END = os.environ.get("FAIRLANE_DIFFERENTIAL", "0:60").partition(":")
SEEDS = range(int(FIRST), int(END or int(FIRST) + 1))
PARTS = 4


@pytest.mark.parametrize("part", range(PARTS))
def test_ways_to_run_a_scenario_agree(part: int) -> None:
    done = [compare(seed) for seed in SEEDS[part::PARTS]]
    assert sum(one["packet_hops"] for one in done) > 0 or len(done) < 10


def test_a_seed_draws_the_same_scenario_again() -> None:
    for seed in (3, 4):
        (first, _), (second, _) = draw(seed), draw(seed)
        assert first.text == second.text


def test_a_fork_without_counters_goes_on_alike() -> None:
    scenario = Scenario.load(REPRODUCERS / "fork_differs.toml")
    for at in range(10, 150, 10):
        first = Simulation(scenario)
        first.run_until(f"{at} us")
        fork = first.fork()
        for one in (first, fork):
            one.run_until("200 us")
        assert first.digest() == fork.digest(), f"forked at {at} us"
    ports = columns(first.engine.table("ports"))
    assert not any(ports[column].any() for column in ports if column not in ("link", "lane"))


def test_iterations_that_take_no_time_are_refused_soon() -> None:
    scenario = Scenario.load(REPRODUCERS / "zero_time.toml")
    with pytest.raises(RunError, match="iterations without any time passing"):
        Simulation(scenario).run_for("20 us")
