"""Background jobs: drawn from what the file says, the same for the same seed, on hosts that are left free."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

import fairlane
from fairlane import Scenario, ScenarioError
from fairlane.core.units import DURATION, SIZE
from fairlane.inputs.distribution import distribution
from fairlane.inputs.problems import Problems
from fairlane.model.scenario.resolve import decide

FABRIC = {"topology": "dragonfly", "groups": 5, "switches_per_group": 4, "hosts_per_switch": 4, "global_links": 1}
OWN = {"name": "own", "ranks": 8, "workload": {"name": "ring", "compute": "20 us"}, "stop": 3}
MIX: dict[str, Any] = {
    "fill": 0.75,
    "hosts": {"dist": "lognorm", "s": 0.5, "scale": 6, "min": 2, "max": 16},
    "start": {"dist": "uniform", "loc": "-50 us", "scale": "100 us"},
    "lifetime": {"dist": "expon", "scale": "100 us"},
    "jobs": [
        {"weight": 3, "workload": {"name": "halo3d", "message_size": {"dist": "uniform", "scale": "64 KiB"}}},
        {"weight": 1, "hosts": 4, "workload": "incast"},
    ],
}


def scenario(seed: int = 1, background: Any = None, **changes: Any) -> Scenario:
    table = {**MIX, **(background or {}), **changes}
    return Scenario(fabric=FABRIC, jobs=[OWN], duration="1 ms", seed=seed, background=table)


def test_values_follow_their_distribution_within_bounds() -> None:
    given = {"dist": "lognorm", "s": 0.8, "scale": "64 KiB", "min": "16 KiB", "max": "1 MiB"}
    found, rng = distribution(given), np.random.default_rng(1)
    assert found.kind is SIZE
    values = np.array([found.draw(rng) for _ in range(2000)])
    assert (values.min() >= 2**14, values.max() <= 2**20) == (True, True)
    law = stats.lognorm(s=0.8, scale=2**16)
    low, high = law.cdf([2**14, 2**20])
    assert stats.kstest((law.cdf(values) - low) / (high - low), "uniform").pvalue > 0.01
    assert found.written(65536.4) == "64 KiB"


def test_a_value_is_a_distribution_of_itself_and_takes_a_number_of_the_stream_too() -> None:
    plain, drawn = distribution("2 ms", [DURATION]), distribution({"dist": "uniform", "scale": "2 ms"})
    one, other = np.random.default_rng(1), np.random.default_rng(1)
    assert plain.draw(one) == 2e9
    assert 0 <= drawn.draw(other) <= 2e9
    assert one.random() == other.random()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"dist": "lognormal", "s": 1}, "lognorm"),
        ({"dist": "lognorm"}, "s: missing"),
        ({"dist": "norm", "loc": 1, "sigma": 2}, "sigma"),
        ({"dist": "lognorm", "s": -1.0}, "lognorm does not have"),
        ({"dist": "uniform", "loc": 1, "scale": 2, "max": 0}, "nothing lies between"),
        ({"scale": 2}, "dist: missing"),
        ("64 parsec", "a number"),
        ({"dist": "uniform", "loc": "1 KiB", "scale": "2 ms"}, "not a unit of duration|not a unit of size"),
    ],
)
def test_what_is_no_distribution_is_refused(given: Any, words: str) -> None:
    with pytest.raises(Problems, match=words):
        distribution(given)


def test_a_mix_fills_its_share_with_jobs_of_the_drawn_sizes() -> None:
    whole = scenario(lifetime=None).with_background()
    jobs = whole.jobs[1:]
    assert sum(job.ranks or 0 for job in jobs) == round(0.75 * 72)
    assert [job.name for job in jobs] == [f"background-{number}" for number in range(len(jobs))]
    assert all(1 <= (job.ranks or 0) <= 16 for job in jobs)
    assert {job.kind for job in jobs} == {"halo3d", "incast"}
    assert all(job.background for job in jobs)
    assert not whole.jobs[0].background
    hosts = [host for job in decide(whole).jobs for host in job.hosts]
    assert len(hosts) == len(set(hosts)) == 8 + 54


def test_the_same_seed_draws_the_same_mix_and_another_one_another() -> None:
    def written(one: Scenario) -> list[Any]:
        return [job.model_dump(mode="json") for job in one.with_background().jobs]

    assert written(scenario()) == written(scenario())
    assert written(scenario()) != written(scenario(2))
    own = {"seed": 5}
    assert written(scenario(2, background=own))[1:] == written(scenario(3, background=own))[1:], "a seed of its own"


def test_jobs_come_and_go_as_drawn() -> None:
    jobs = scenario(3).with_background().jobs[1:]
    assert all(job.departure is not None and job.departure > job.start for job in jobs)
    assert len({job.start for job in jobs}) > 1
    assert max(job.start for job in jobs) < 50_000_000


def test_a_run_simulates_them_beside_the_job_and_nobody_alone(tmp_path: Path) -> None:
    run = fairlane.run(scenario(fill=0.3), out=tmp_path / "run")
    own, others = run.jobs.filter(pl.col("name") == "own"), run.jobs.filter(pl.col("name") != "own")
    assert own["w"].null_count() == 0
    assert others.height
    assert others["w"].null_count() == others.height


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"jobs": []}, "background.jobs"),
        ({"jobs": [{"workload": "halo2d"}]}, r"background.jobs\[0\].workload"),
        ({"jobs": [{"workload": {"name": "halo3d", "size": 3}}]}, r"background.jobs\[0\].workload.size"),
        (
            {"jobs": [{"workload": {"name": "halo3d", "message_size": {"dist": "gauss"}}}]},
            r"background.jobs\[0\].workload.message_size.dist",
        ),
        ({"fil": 0.5}, "background.fil"),
        ({"lifetime": "3 KiB"}, "background.lifetime"),
        ({"hosts": {"dist": "expon", "scale": "2 ms"}}, "background.hosts.scale"),
    ],
)
def test_what_is_wrong_is_said_with_its_key(changes: dict[str, Any], key: str) -> None:
    with pytest.raises(ScenarioError, match=key):
        scenario(**changes)
