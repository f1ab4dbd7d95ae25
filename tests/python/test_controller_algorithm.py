"""Algorithm 1 step by step, on work that is made up: each decision about the printed listing has a test."""

from collections.abc import Mapping

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane import ScenarioError
from fairlane.sim.controller import (
    JobWork,
    ProcessPrioritization,
    Settings,
    Work,
    controller_of,
    controller_of_real_jobs,
)
from fairlane.sim.controller.base import Numbers, Positions

JOBS = {"a": 3, "b": 2}


def work(**iterations: tuple[int, ...]) -> Work:
    jobs = {name: JobWork(each, (0.0,) * len(each), (0.0,) * len(each)) for name, each in iterations.items()}
    return Work(1.0, jobs)


DEFAULT = work(a=(100, 105, 200), b=(50, 50))
BETTER = work(a=(110, 115, 200), b=(50, 50))
WORSE = work(a=(90, 95, 200), b=(50, 50))


def started(**parameters: float) -> ProcessPrioritization:
    controller = ProcessPrioritization.model_validate(parameters)
    assert controller.start(JOBS).levels == {}
    return controller


def processes(settings: Settings) -> dict[tuple[str, int], int]:
    """The weight of each process that has a level of its own."""
    return {
        (job, rank): settings.weights[level] for job, ranks in settings.levels.items() for rank, level in ranks.items()
    }


def test_candidates_are_within_the_threshold_of_their_own_jobs_slowest() -> None:
    controller = started()
    tried = [processes(controller.observe(DEFAULT))]
    while controller.state == "RUNNING":
        tried.append(processes(controller.observe(WORSE)))
    # 100 / 0.9 = 111.1: the ranks with 100 and 105, not that with 200; both of job b.
    seen = {process for one in tried for process in one}
    assert seen == {("a", 0), ("a", 1), ("b", 0), ("b", 1)}
    assert all(len(one) == 1 for one in tried[:-1]), "one at a time: what did not help is rolled back"
    assert tried[-1] == {}, "nothing helped: idle with the best, which is none"


def test_with_a_threshold_of_one_the_slowest_is_a_candidate() -> None:
    controller = started(threshold=1.0)
    (process,) = processes(controller.observe(work(a=(100, 105, 200), b=(50, 51))))
    assert process in {("a", 0), ("b", 0)}
    (other,) = processes(controller.observe(WORSE))
    assert {process, other} == {("a", 0), ("b", 0)}
    assert processes(controller.observe(WORSE)) == {}
    assert controller.state == "IDLE"


def test_the_best_is_kept_and_built_upon() -> None:
    controller = started()
    first = processes(controller.observe(DEFAULT))
    second = processes(controller.observe(BETTER))
    assert controller.accepted
    assert set(first) <= set(second)
    assert sum(second.values()) > sum(first.values()), "another process has a level too, or this one more weight"
    controller.observe(BETTER)
    assert not controller.accepted, "as good as the best is not better"


def test_a_process_with_a_level_gets_more_weight() -> None:
    controller = ProcessPrioritization(first_weight=2, step=3)
    controller.start({"a": 1})
    alone = [work(a=(100 + gained,)) for gained in range(4)]
    weights = [processes(controller.observe(one)).get(("a", 0)) for one in alone]
    assert weights == [2, 5, 8, 11]


def test_a_new_level_starts_with_the_weight_of_the_default_level() -> None:
    settings = started().observe(DEFAULT)
    assert set(settings.weights) == {1}
    assert len(settings.weights) == 16


@pytest.mark.parametrize(("levels", "own"), [(2, 1), (3, 2), (4, 3)])
def test_the_default_level_is_one_of_the_service_levels(levels: int, own: int) -> None:
    controller = ProcessPrioritization(service_levels=levels)
    controller.start({"a": 8})
    settings = controller.observe(work(a=(100,) * 8))
    for gained in range(1, 40):
        settings = controller.observe(work(a=(100 + gained,) * 8))
    assert controller.state == "IDLE"
    assert len(processes(settings)) == own
    assert max(level for ranks in settings.levels.values() for level in ranks.values()) == levels - 1


def test_a_rejected_trial_gives_its_level_back() -> None:
    controller = ProcessPrioritization(service_levels=2)
    controller.start({"a": 8})
    controller.observe(work(a=(100,) * 8))
    assert len(processes(controller.observe(work(a=(90,) * 8)))) == 1
    assert controller.state == "RUNNING"


def test_benefit_is_the_mean_of_the_jobs_improvements() -> None:
    controller = started()
    controller.observe(DEFAULT)
    assert controller.benefit(work(a=(110, 200, 200), b=(45, 60))) == pytest.approx((0.10 - 0.10) / 2)
    assert controller.benefit(work(a=(130, 200, 200), b=(45, 60))) == pytest.approx((0.30 - 0.10) / 2)


def test_a_job_that_did_nothing_by_default_has_no_part_in_the_benefit() -> None:
    controller = started()
    controller.observe(work(a=(100, 100, 100), b=(0, 0)))
    assert controller.benefit(work(a=(110, 110, 110), b=(50, 50))) == pytest.approx(0.1)
    nothing = started()
    nothing.observe(work(a=(0, 0, 0), b=(0, 0)))
    assert nothing.benefit(work(a=(1, 1, 1), b=(1, 1))) == 0.0


def idle() -> ProcessPrioritization:
    controller = started()
    controller.observe(DEFAULT)
    while controller.state != "IDLE":
        controller.observe(WORSE)
    return controller


def test_below_the_default_it_starts_over() -> None:
    controller = idle()
    controller.observe(DEFAULT)
    assert controller.state == "IDLE"
    assert controller.observe(WORSE).levels == {}
    assert controller.state == "DEFAULT"
    controller.observe(WORSE)
    assert controller.state == "RUNNING"
    assert controller.benefit(WORSE) == 0, "the new default counts"


@pytest.mark.parametrize("jobs", [{"a": (100, 100, 100)}, {"a": (100, 100, 100), "c": (1, 1)}])
def test_another_job_mix_starts_over(jobs: Mapping[str, tuple[int, ...]]) -> None:
    for controller in (started(), idle()):
        assert controller.observe(work(**jobs)).levels == {}
        assert controller.state == "DEFAULT"


def test_the_default_can_be_observed_for_several_periods() -> None:
    controller = started(default_periods=3)
    for iterations in (90, 100):
        assert controller.observe(work(a=(iterations,) * 3, b=(50, 50))).levels == {}
        assert controller.state == "DEFAULT"
    assert controller.observe(work(a=(110,) * 3, b=(50, 50))).levels
    assert controller.benefit(work(a=(100,) * 3, b=(50, 50))) == pytest.approx(0)


def test_a_trial_can_be_observed_for_several_periods_and_is_judged_by_their_mean() -> None:
    controller = started(trial_periods=2)
    trial = controller.observe(DEFAULT)
    assert controller.observe(WORSE) == trial, "the same trial once more"
    assert controller.observe(work(a=(140, 140, 200), b=(50, 50))) != trial
    assert controller.accepted, "a tenth less and four tenths more are more than the default"
    trial = controller.observe(WORSE)
    controller.observe(WORSE)
    assert not controller.accepted


def test_the_seed_gives_the_order_of_candidates() -> None:
    orders = set()
    for seed in (1, 1, 2, 3, 4):
        controller = started(seed=seed)
        order = [tuple(processes(controller.observe(DEFAULT)))]
        order += [tuple(processes(controller.observe(WORSE))) for _ in range(3)]
        orders.add(tuple(order))
    assert 1 < len(orders) < 5


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"threshold": 0}, "controller.threshold = 0: out of range; allowed: above 0"),
        ({"threshold": 1.1}, "controller.threshold = 1.1: out of range; allowed: at most 1"),
        ({"service_levels": 17}, "service_levels = 17: out of range; allowed: at most 16"),
        ({"treshold": 0.5}, 'did you mean "threshold"?'),
    ],
)
def test_wrong_parameters_are_named(parameters: dict[str, float], words: str) -> None:
    with pytest.raises(ScenarioError) as error:
        controller_of({"name": "process_prioritization", **parameters})
    assert words in str(error.value)


def test_an_unknown_controller_is_named() -> None:
    with pytest.raises(ScenarioError, match='did you mean "process_prioritization"'):
        controller_of("process_prioritisation")


def on_real_jobs(**parameters: float | str) -> ProcessPrioritization:
    """Algorithm 1 with the defaults of the agent and of the testbed."""
    controller = controller_of_real_jobs({"name": "process_prioritization", **parameters})
    assert isinstance(controller, ProcessPrioritization)
    return controller


def marked(times: list[Numbers], period: float, count: int) -> list[Work]:
    """The work of a job whose ranks mark at these times, whatever is set, from the end of the first period on."""
    readings: list[tuple[Numbers, Positions]] = []
    works = []
    for now in (numpy.full(len(times), period * number) for number in range(1, count + 2)):
        made = numpy.array([numpy.searchsorted(rank, now[0] + 1e-9, side="right") for rank in times], float)
        last = numpy.array([rank[int(number) - 1] if number else 0.0 for rank, number in zip(times, made, strict=True)])
        if readings:
            before, old = readings[-1]
            new = old.then(made, last, now)
            whole, unknown = tuple((made - before).astype(int).tolist()), (0.0,) * len(times)
            works.append(Work(period, {"a": JobWork(whole, unknown, unknown, advance=tuple(new.advance(old)))}))
        readings.append((made, new if readings else Positions.begin(made, last, now)))
    return works


@given(st.lists(st.floats(0.05, 0.9), min_size=2, max_size=6), st.integers(4, 12))
def test_without_an_effect_nothing_is_adopted_by_the_noise_of_a_count(paces: list[float], count: int) -> None:
    controller = on_real_jobs(min_gain=1e-6)
    controller.start({"a": len(paces)})
    for one in marked([pace * numpy.arange(1, 1 + (count + 1) / pace) for pace in paces], 1.0, count):
        controller.observe(one)
        assert not controller.accepted


def test_counts_alone_adopt_what_has_no_effect() -> None:
    # Iterations of 0.4 s: periods of 1 s have 2 and 3 of them, so that the second is half as much better.
    works = [JobWork((done,), (0.0,), (0.0,), advance=(2.5,)) for done in (2, 3)]
    for controller, adopted in ((on_real_jobs(progress="whole"), True), (on_real_jobs(), False)):
        controller.start({"a": 1})
        for one in works:
            controller.observe(Work(1.0, {"a": one}))
        assert controller.accepted is adopted


def test_trials_without_an_effect_are_adopted_no_more_often_than_by_chance_and_counts_make_them_seem_better() -> None:
    # Of n periods that differ by chance, the last is the best with probability 1/n: so trial k, which is period k + 1,
    # is better than the default run and all trials before with probability 1/(k + 1).
    seeds, trials = 600, 4
    adopted, benefits = numpy.zeros(trials), dict.fromkeys(("whole", "fractional"), 0.0)
    for seed in range(seeds):
        draw = numpy.random.default_rng(seed)
        times = [draw.uniform(0, 0.2) + numpy.cumsum(draw.uniform(0.19, 0.21, 100)) for _ in range(4)]
        works = marked(times, 1.0, trials + 1)
        for controller in (on_real_jobs(progress="whole"), on_real_jobs()):
            controller.start({"a": 4})
            for trial, one in enumerate(works):
                controller.observe(one)
                adopted[trial - 1] += controller.progress == "fractional" and trial > 0 and controller.accepted
            benefits[controller.progress] += controller._best_benefit / seeds
    expected = 1 / numpy.arange(2, trials + 2)
    assert (adopted / seeds <= expected + 4 * numpy.sqrt(expected * (1 - expected) / seeds)).all(), adopted / seeds
    assert benefits["whole"] > 2 * benefits["fractional"], benefits


counts = st.tuples(st.integers(0, 9), st.integers(0, 9))


@given(st.lists(counts, max_size=12), st.lists(counts, min_size=1, max_size=12), st.sampled_from(["own", "static"]))
def test_another_mix_is_controlled_as_if_there_had_been_none_before(
    before: list[tuple[int, int]], after: list[tuple[int, int]], levels: str
) -> None:
    used = ProcessPrioritization.model_validate({"levels": levels, "service_levels": 4})
    fresh = ProcessPrioritization.model_validate({"levels": levels, "service_levels": 4})
    used.start({"a": 2})
    for one in before:
        used.observe(work(a=one))
    assert used.observe(work(b=(1, 1))) == fresh.start({"b": 2})
    used._rng.setstate(fresh._rng.getstate())
    for each in after:
        assert used.observe(work(b=each)) == fresh.observe(work(b=each))
        assert (used.state, used.accepted) == (fresh.state, fresh.accepted)


@given(st.lists(st.tuples(*[st.integers(1, 9)] * 5), min_size=1, max_size=20), st.integers(2, 6))
def test_with_static_levels_processes_keep_theirs_and_one_weight_is_raised_at_a_time(
    works: list[tuple[int, ...]], service_levels: int
) -> None:
    controller = ProcessPrioritization(levels="static", service_levels=service_levels, step=2)
    first = controller.start({"a": 5})
    assert set(first.levels["a"].values()) == set(range(1, min(service_levels, 6)))
    assert set(first.weights) == {1}
    best = first.weights
    for one in works:
        later = controller.observe(work(a=one))
        assert later.levels == first.levels
        if controller.state == "RUNNING" and not controller.accepted:
            assert sum(later.weights) - sum(best) == 2
        best = first.weights if controller.state == "DEFAULT" else best
        if controller.accepted or controller.state == "IDLE":
            return
