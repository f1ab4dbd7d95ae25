"""The controller with a model of the system: what it sets, what it knows, and what it undoes."""

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, cast

import pytest

from fairlane import Fabric, Scenario, ScenarioError
from fairlane.results.milestones import Milestones
from fairlane.sim.controller import DigitalTwin, JobWork, Settings, Work, control
from fairlane.sim.controller.base import problems_of
from fairlane.sim.controller.digital_twin.search import (
    FEEDBACK,
    GROWTH,
    MIXED,
    Plan,
    Search,
    Trial,
    clipped,
    contention,
    levels_of,
    objective,
)
from fairlane.sim.controller.digital_twin.twin import FIRST_VARIANT, Observation, Twin
from fairlane.sim.controller.episodes import VARIANTS, Episodes
from fairlane.sim.controller.fitting import fit
from samples import TREE

PERIOD = 10**9
JOBS = {"one": 8, "two": 8}


def scenario(**tables: Any) -> Scenario:
    """Two jobs of pairs, with hosts at random, so that they share links."""
    workload = {"name": "random_pairs", "compute": "60 us", "messages_per_iteration": 4}
    jobs = [{"name": name, "ranks": 8, "workload": workload} for name in JOBS]
    return Scenario(**{"fabric": TREE, "placement": {"name": "random", "seed": 5}, "jobs": jobs, "seed": 3, **tables})


def prepared(**parameters: Any) -> DigitalTwin:
    controller = DigitalTwin(**{"trials": 12, "horizon": "1 ms", "default_periods": 1, "confirm": 1, **parameters})
    controller.prepare(fit(scenario(), controller))
    return controller


def twin(**options: Any) -> Twin:
    return Twin(fit(scenario(), DigitalTwin()), JOBS, **{"horizon": PERIOD, "seed": 1, **options})


def work(gain: float, other: float | None = None) -> Work:
    """Both jobs with this improvement over 1000 iterations, or the second with another."""
    gains = {"one": gain, "two": gain if other is None else other}
    ranks = {job: (round(1000 * (1 + own)),) * 8 for job, own in gains.items()}
    return Work(1e-3, {job: JobWork(own, (1e-4,) * 8, (1e-4,) * 8) for job, own in ranks.items()})


@pytest.mark.parametrize("service_levels", range(2, 17))
def test_a_plan_uses_no_more_levels_than_there_are(service_levels: int) -> None:
    lowest, highest = (clipped(at, service_levels) for at in (-99, 99))
    rng = random.Random(service_levels)
    plan = Plan({job: [rng.randint(lowest, highest) for _ in range(ranks)] for job, ranks in JOBS.items()})
    settings = plan.settings(service_levels)
    assert list(problems_of(settings, service_levels, JOBS)) == []
    assert len(settings.weights) == service_levels
    weights = {
        priority: {settings.weights[level] for level in levels}
        for priority, levels in levels_of(service_levels).items()
    }
    assert all(len(of) == 1 for of in weights.values()), "levels of one priority have one weight"
    assert [min(of) for _, of in sorted(weights.items())] == [2**at for at in range(len(weights))]
    assert sorted(level for levels in levels_of(service_levels).values() for level in levels) == [
        *range(service_levels)
    ]


def test_the_default_plan_has_the_levels_of_no_plan() -> None:
    settings = Plan.default(JOBS).settings(16)
    assert {level for ranks in settings.levels.values() for level in ranks.values()} == {0}


def test_ranks_of_a_joined_job_share_level_0_unless_they_have_another_priority() -> None:
    priorities = {"one": (0, 0, 0, 1, -1, 0, 0, 0), "two": (0,) * 8}
    plain, joined = (Plan(priorities, frozenset(jobs)).settings(16) for jobs in ((), ("one",)))
    assert joined.weights == plain.weights
    assert joined.levels["two"] == plain.levels["two"], "the other job stays distributed"
    assert len(set(plain.levels["two"].values())) == len(levels_of(16)[0])
    expected = {rank: plain.levels["one"][rank] if own else 0 for rank, own in enumerate(priorities["one"])}
    assert joined.levels["one"] == expected


def test_priorities_have_no_gap_with_any_number_of_levels() -> None:
    for count in range(1, len(GROWTH) + 1):
        assert sorted(set(GROWTH[:count])) == list(range(min(GROWTH[:count]), max(GROWTH[:count]) + 1))


def test_a_loss_costs_more_than_the_same_gain_and_beyond_the_limit_much_more() -> None:
    assert objective({"a": 0.1, "b": 0.0}, 0.03) == pytest.approx(0.05)
    small, large = (objective({"a": 0.1, "b": -loss}, 0.03) for loss in (0.03, 0.06))
    assert small == pytest.approx(0.035 - 3 * 0.02 / 2)
    assert large == pytest.approx(0.02 - (3 * 0.05 + 10 * 0.03) / 2)
    assert objective({"a": 0.1, "b": 0.0}, 0.03, {"b": -0.06}) == pytest.approx(large)


def test_the_twin_has_the_hosts_and_partners_of_the_system_but_no_variant_of_it() -> None:
    controlled = Episodes(fit(scenario(), DigitalTwin()), period=PERIOD)
    model = twin().model
    assert [job.hosts for job in model.jobs] == [job.hosts for job in controlled.resolved.jobs]
    assert [job.compute for job in model.jobs] == [job.compute for job in controlled.resolved.jobs]
    assert FIRST_VARIANT > 1000 * VARIANTS
    drawn = {id(controlled.program(at, variant)) for at in range(2) for variant in range(VARIANTS)}
    assert not drawn & {id(job.program) for job in model.jobs}


def test_a_trial_on_the_twin_leaves_the_controlled_run_as_it_is() -> None:
    """The default run is the same whether or not a twin is simulated between its periods."""
    plain = [outcome.treated for outcome in control(scenario(), "none", mode="online", period=PERIOD, periods=4)]
    other = twin()
    seen = []
    for outcome in control(scenario(), "none", mode="online", period=PERIOD, periods=4):
        other.simulate(Plan({"one": [1] * 8, "two": [-1] * 8}).settings(16))
        seen.append(outcome.treated)
    assert seen == plain
    assert other.trials == 4


def test_a_twin_with_the_profile_of_another_input_has_other_programs_on_the_same_hosts() -> None:
    same, other = twin(), twin(profile_seed=99)
    assert [job.hosts for job in same.model.jobs] == [job.hosts for job in other.model.jobs]
    assert same.default.iterations != other.default.iterations


def test_who_shares_a_link_shares_it_mutually_and_nobody_with_itself() -> None:
    model = twin().model
    found = contention(model, 3)
    assert found, "random hosts share links"
    for one, others in found.items():
        assert one not in others
        assert all(much > 0 and found[other][one] == pytest.approx(much) for other, much in others.items())
    together = replace(model, jobs=tuple(replace(job, hosts=(0, 1, 2, 3, 0, 1, 2, 3)) for job in model.jobs))
    assert contention(together, 3) == {}, "under one switch no link between switches is used"


def test_contention_is_of_shares_of_a_jobs_traffic() -> None:
    def found(size: str) -> Any:
        workload = {"name": "ring", "message_size": size}
        return contention(scenario(jobs=[{"name": "one", "ranks": 8, "workload": workload}]).resolve(), 3)

    assert found("1 KiB") == found("64 KiB") != {}


def test_ranks_share_links_of_the_rails_that_their_jobs_use() -> None:
    """Paths between first adapters stood for all others."""
    plain, planes = twin().model, {**twin().model.tables["fabric"], "rails": {"count": 2, "wiring": "planes"}}

    def shared(*rails: int) -> Any:
        tables = {**plain.tables, "fabric": planes}
        policies = [{"policy": "only", "only": rail} for rail in rails]
        jobs = (replace(job, rails=policy) for job, policy in zip(plain.jobs, policies, strict=True))
        return contention(replace(plain, tables=tables, jobs=tuple(jobs), fabric=Fabric.build(planes)), 3)

    def between(found: Any) -> float:
        return math.fsum(
            much for (job, _), others in found.items() for (other, _), much in others.items() if job != other
        )

    assert shared(1, 1) == contention(plain, 3)
    assert between(shared(0, 1)) == 0 < between(shared(1, 1))


def test_the_search_is_deterministic_and_no_worse_than_what_it_has_tried() -> None:
    def searched(seed: int) -> tuple[Plan, float]:
        model = twin()
        found = Search(model, contention(model.model, 3), 16, 0.03, random.Random(seed)).best(16)
        assert found.score == objective(model.simulate(found.plan.settings(16)).gains(model.default), 0.03)
        return found.plan, found.score

    assert searched(1) == searched(1)
    assert searched(1)[0] != searched(2)[0]


class MadeUp:
    """A twin in place of simulations: the gain of each job by a function of the levels, as the default run has them."""

    def __init__(self, gains: Callable[[Settings], Mapping[str, float]]) -> None:
        self.made = gains
        self.default = self._seen(dict.fromkeys(JOBS, 0.0))
        self.isolated_gains = dict.fromkeys(JOBS, 0.2)
        self.trials: list[Settings] = []

    def simulate(self, settings: Settings) -> Observation:
        self.trials.append(settings)
        return self._seen(self.made(settings))

    def _seen(self, gains: Mapping[str, float]) -> Observation:
        times = {job: [round(PERIOD * at / (1 + gain)) for at in range(1, 11)] for job, gain in gains.items()}
        return Observation(
            milestones={job: Milestones(1, of, len(of)) for job, of in times.items()},
            iterations={job: (10,) * JOBS[job] for job in gains},
            compute={job: (0.5,) * JOBS[job] for job in gains},
        )


def searched(made: MadeUp, trials: int) -> Trial:
    return Search(cast(Twin, made), {}, 16, 0.03, random.Random(1)).best(trials)


def distributed(settings: Settings, job: str) -> bool:
    """Whether its ranks of priority 0 have several levels."""
    return len({*settings.levels[job].values()} & {*levels_of(16)[0]}) > 1


def test_the_default_is_best_where_everything_else_costs_a_job_much() -> None:
    made = MadeUp(lambda settings: {job: -0.1 if any(settings.levels[job].values()) else 0.0 for job in JOBS})
    found = searched(made, 20)
    assert (found.score, found.plan) == (0.0, Plan.default(JOBS))
    assert len(made.trials) <= 20


def test_a_job_that_loses_keeps_the_default_while_others_gain() -> None:
    """One job gains from distribution, the other loses: the mixed plan distributes the first only."""
    made = MadeUp(
        lambda settings: {"one": 0.1 * distributed(settings, "one"), "two": -0.2 * distributed(settings, "two")}
    )
    found = searched(made, 1 + FEEDBACK + MIXED)
    assert found.gains == pytest.approx({"one": 0.1, "two": 0.0}, abs=1e-5)
    assert "two" in found.plan.joined
    assert distributed(found.plan.settings(16), "one")
    assert not distributed(found.plan.settings(16), "two")


@pytest.mark.parametrize("trials", [1, 2, FEEDBACK, 1 + FEEDBACK, 2 + FEEDBACK, 1 + FEEDBACK + MIXED, 30])
def test_no_more_trials_than_allowed(trials: int) -> None:
    made = MadeUp(lambda settings: {"one": 0.1 * distributed(settings, "one"), "two": -0.05})
    searched(made, trials)
    assert 0 < len(made.trials) <= trials


def test_changes_join_and_distribute_jobs() -> None:
    """Only one of the jobs should be distributed, which feedback and mixed plans do not find."""
    made = MadeUp(
        lambda settings: dict.fromkeys(JOBS, 0.1 * (distributed(settings, "one") and not distributed(settings, "two")))
    )
    assert searched(made, 120).gains == pytest.approx(dict.fromkeys(JOBS, 0.1), abs=1e-5)


def test_the_default_is_observed_before_anything_is_set() -> None:
    controller = prepared(default_periods=2)
    assert controller.start(JOBS) == Settings()
    assert controller.observe(work(0.0)) == Settings()
    assert controller.state == "DEFAULT"
    controller.observe(work(0.0))
    assert controller.state in ("VERIFY", "IDLE")


def verifying(**parameters: Any) -> tuple[DigitalTwin, Settings]:
    """A controller that has just applied its first plan."""
    controller = prepared(**parameters)
    controller.start(JOBS)
    settings = controller.observe(work(0.0))
    assert controller.state == "VERIFY", "the twin finds a plan"
    assert settings.levels
    return controller, settings


def test_a_plan_that_helps_is_kept() -> None:
    controller, settings = verifying()
    for _ in range(3):
        assert controller.observe(work(0.05)) == settings
        assert controller.state == "HOLD"


@pytest.mark.parametrize("observed", [work(-0.05), work(0.2, -0.1)], ids=["all lose", "one loses much"])
def test_a_plan_that_costs_a_job_much_is_undone(observed: Work) -> None:
    controller, _ = verifying(replans=0)
    assert controller.observe(observed) == Settings()
    assert controller.state == "IDLE"
    assert controller.observe(work(0.0)) == Settings(), "and stays undone"


def test_a_plan_that_has_helped_is_undone_when_it_no_longer_does() -> None:
    controller, settings = verifying(replans=0)
    assert controller.observe(work(0.02)) == settings
    while controller.state == "HOLD":
        settings = controller.observe(work(-0.2))
    assert settings == Settings()


def test_searches_again_where_a_job_loses_and_gives_up_after_some() -> None:
    controller, settings = verifying(replans=2)
    seen = [settings, *(controller.observe(work(0.05, -0.2)) for _ in range(4))]
    assert seen[-1] == Settings()
    assert all(one.levels for one in seen[:2]), "another plan comes first"
    assert controller.state == "IDLE"


def test_other_jobs_start_it_again() -> None:
    controller, _ = verifying()
    alone = Work(1e-3, {"one": work(0.0).jobs["one"]})
    assert controller.observe(alone) == Settings()
    assert controller.state == "DEFAULT"


def test_without_a_scenario_there_is_no_twin() -> None:
    with pytest.raises(ScenarioError, match="call prepare first"):
        DigitalTwin().start(JOBS)


def total(controller: str | Mapping[str, Any]) -> dict[str, float]:
    """Iterations by job over 12 periods, with different variants in each."""
    done: dict[str, float] = dict.fromkeys(JOBS, 0.0)
    for outcome in control(scenario(), controller, period=PERIOD, periods=12, threads=1):
        for job, own in outcome.treated.jobs.items():
            done[job] += own.work
    return done


def test_small_jobs_on_shared_links_lose_little_with_it() -> None:
    default, treated = total("none"), total({"name": "digital_twin", "trials": 12, "horizon": "1 ms"})
    assert all(treated[job] > 0.95 * default[job] for job in JOBS)
