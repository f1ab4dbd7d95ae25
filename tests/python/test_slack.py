"""Slack on made-up work: who makes way, what is kept, what is tried next."""

import random
from collections import Counter
from collections.abc import Mapping
from statistics import fmean

import pytest

from fairlane.sim.controller import JobWork, Settings, Slack, Work
from fairlane.sim.controller.slack.ladder import Candidate, Changes, Feedback, ladder


def made_up(gain: float = 0.0, job: str = "a") -> Work:
    """A job whose rank 0 is far ahead of the others."""
    iterations = tuple(round((1 + gain) * each) for each in (300, 100, 100, 100))
    return Work(1.0, {job: JobWork(iterations, (0.5,) * 4, (0.5,) * 4)})


def until(controller: Slack, state: str, gain: float = 0.0) -> Settings:
    """What comes first in this state, where everything before has made this of the work."""
    settings = controller.start({"a": 4})
    while controller.state != state:
        settings = controller.observe(made_up(gain if settings.levels else 0.0))
    return settings


@pytest.mark.parametrize("service_levels", range(2, 17))
def test_has_a_rung_below_and_above_with_as_few_levels_as_three(service_levels: int) -> None:
    rungs = ladder(service_levels)
    assert sorted(level for levels in rungs.values() for level in levels) == list(range(service_levels))
    assert list(rungs) == list(range(min(rungs), max(rungs) + 1)), "none is left out"
    assert rungs[0].start == 0, "the default level"
    assert {-1, *range(2 if service_levels > 2 else 1)} <= rungs.keys()


def test_has_ranks_make_way_that_are_ahead() -> None:
    controller = Slack(default_periods=1)
    settings = until(controller, "YIELD")
    # Three times as many iterations are more than an octave and a half: three quarters of a rung, and as much again.
    for below in (ladder(16)[-1], ladder(16)[-2], ladder(16)[-2], ladder(16)[-3]):
        assert settings.levels["a"][0] in below
        assert [settings.levels["a"][rank] for rank in (1, 2, 3)] == [0, 0, 0], "the others stay"
        assert settings.weights[below.start] < settings.weights[0]
        settings = controller.observe(made_up())


def test_raises_ranks_that_fall_behind_their_job_once_they_are_spread() -> None:
    controller = Slack(default_periods=1)
    settings = until(controller, "YIELD")
    while controller.state == "YIELD":
        assert [settings.levels["a"][rank] for rank in (1, 2, 3)] == [0, 0, 0], "not while they share a level"
        settings = controller.observe(made_up(-0.3))
    settings = controller.observe(made_up(-0.3))
    assert controller.state == "SPREAD"
    assert {settings.levels["a"][rank] for rank in (1, 2, 3)} <= set(ladder(16)[1])
    weights = [settings.weights[levels.start] for levels in ladder(16).values()]
    assert weights == sorted(set(weights)), "every rung has more than the one below"


def test_lets_no_rank_go_down_again_to_where_it_has_held_its_job_up() -> None:
    """Ranks 0 and 1 are ahead, but rank 0 is slower than all others where it has a rung less than -1."""
    rungs = {level: rung for rung, levels in ladder(16).items() for level in levels}
    controller = Slack(default_periods=1)
    settings, seen = controller.start({"a": 4}), []
    while controller.state in ("DEFAULT", "YIELD"):
        at = rungs[settings.levels.get("a", {}).get(0, 0)]
        seen.append(at)
        iterations = (50 if at < -1 else 200, 200, 100, 100)
        settings = controller.observe(Work(1.0, {"a": JobWork(iterations, (0.5,) * 4, (0.5,) * 4)}))
    below = seen.index(-2)
    assert -2 not in seen[below + 1 :]
    assert seen[-3:] == [-1, -1, -1], "but to the rung above that"


def test_spreads_ranks_and_ends_that_at_once_where_it_hurts() -> None:
    controller = Slack(default_periods=1)
    settings = until(controller, "SPREAD", 0.05)
    assert len(set(settings.levels["a"].values())) == 4, "nobody shares a level"
    controller.observe(made_up(-0.4))
    assert controller.state == "SPREAD", "one bad period may be an accident"
    settings = controller.observe(made_up(-0.4))
    assert controller.state == "CLIMB"
    assert [settings.levels["a"][rank] for rank in (1, 2, 3)] == [0, 0, 0], "as before it"


def test_goes_on_spreading_where_it_hurts_now_one_job_and_then_another() -> None:
    controller = Slack(default_periods=1)
    controller.start({"a": 4, "b": 4})

    def work(a: float, b: float) -> Work:
        return Work(1.0, {**made_up(a, "a").jobs, **made_up(b, "b").jobs})

    controller.observe(work(0, 0))
    while controller.state != "SPREAD":
        controller.observe(work(0.05, 0.05))
    for hurt in ((-0.2, 0.2), (0.2, -0.2), (-0.2, 0.2)):
        controller.observe(work(*hurt))
        assert controller.state == "SPREAD"


def test_spreads_nobody_where_the_middle_has_one_level() -> None:
    controller = Slack(default_periods=1, service_levels=3)
    states = []
    controller.start({"a": 4})
    while controller.state != "CLIMB":
        controller.observe(made_up())
        states.append(controller.state)
    assert "SPREAD" not in states


def test_leaves_the_scenario_alone_where_nothing_helps() -> None:
    controller = Slack(default_periods=1)
    assert until(controller, "CLIMB", -0.2) == Settings()
    tried = 0
    while controller.state == "CLIMB":
        settings = controller.observe(made_up(-0.2 if tried else 0.0))
        assert not controller.accepted
        tried = tried + 1 if settings.levels else 0
        assert tried <= 1 + controller.confirm
    assert (controller.state, settings) == ("IDLE", Settings())
    # Its best is the default; when that does less than it did, it looks anew.
    while controller.state == "IDLE":
        settings = controller.observe(made_up(-0.2))
    assert (controller.state, settings) == ("DEFAULT", Settings())


def test_makes_no_difference_between_configurations_that_do_the_same() -> None:
    """However much a job of few iterations loses: what is forgiven does not depend on how long it was looked at."""
    controller = Slack(default_periods=1, patience=10)
    controller.start({"a": 2, "b": 2})

    def work(a: int, b: int) -> Work:
        return Work(1.0, {name: JobWork((done,) * 2, (0.5,) * 2, (0.5,) * 2) for name, done in (("a", a), ("b", b))})

    controller.observe(work(10, 10))
    while controller.state != "CLIMB":
        controller.observe(work(9, 12))
    accepted = 0
    while controller.state == "CLIMB":
        controller.observe(work(9, 12))
        accepted += controller.accepted
    assert accepted == 0


def test_keeps_a_change_that_helps_once_it_has_been_seen_for_a_while() -> None:
    """It helps to have rank 1 above the middle, and nothing else does."""
    controller = Slack(default_periods=1)
    settings = until(controller, "CLIMB", 0.05)
    seen = 0
    while not controller.accepted or seen == 0:
        assert controller.state == "CLIMB"
        helps = settings.levels["a"][1] in (*ladder(16)[1], *ladder(16)[2])
        seen = seen + 1 if helps else 0
        settings = controller.observe(made_up(0.3 if helps else 0.05))
    assert seen == 1 + controller.confirm


def test_tries_nothing_while_the_best_makes_up_for_a_loss() -> None:
    controller = Slack(default_periods=1)
    until(controller, "SPREAD", 0.02)
    controller.observe(made_up(-0.9))
    best = controller.observe(made_up(-0.9))
    assert controller.state == "CLIMB"
    stood = 0
    while controller.observe(made_up(0.02)) == best:
        stood += 1
    # 1.8 periods of work lost, 0.02 more in each other, until the mean is an iteration of 100 and the guard less.
    assert 1.8 / 0.04 - 15 < stood < 1.8 / 0.04 + 5


def test_a_job_of_few_iterations_may_lose_one() -> None:
    """Of ten iterations in a period one more or less says little, of a thousand the same share says much."""
    losing = Candidate({"a": (0, 0)}, gains=[{"a": -0.08, "b": 0.04}])
    assert losing.score(0.01, {"a": 0.1, "b": 0.1}) == pytest.approx(-0.02)
    assert losing.score(0.01, {"a": 0.001, "b": 0.1}) == pytest.approx(-0.02 - 3 * (0.069 + 10 * 0.039) / 2)


def one_port(settings: Settings, needs: Mapping[str, tuple[float, ...]]) -> Work:
    """A port that all ranks share by the weights of their levels, and what each needs of it for an iteration."""
    weights = settings.weights or (1,)
    levels = {
        (job, rank): settings.levels.get(job, {}).get(rank, 0) for job in needs for rank in range(len(needs[job]))
    }
    users = Counter(levels.values())
    whole = sum(weights[level] for level in users)
    share = {rank: weights[level] / whole / users[level] for rank, level in levels.items()}
    jobs = {}
    for job, each in needs.items():
        done = tuple(round(1e4 * share[job, rank] / need) for rank, need in enumerate(each))
        jobs[job] = JobWork(done, (0.5,) * len(each), (0.5,) * len(each))
    return Work(1.0, jobs)


@pytest.mark.parametrize("service_levels", [2, 4, 16])
def test_gives_what_some_ranks_can_spare_to_those_that_hold_their_job_up(service_levels: int) -> None:
    """Two jobs on one port, in each of which half of the ranks need an eighth of the others."""
    needs = dict.fromkeys(("a", "b"), (1.0,) * 4 + (0.125,) * 4)
    controller = Slack(service_levels=service_levels)
    settings = controller.start({name: len(each) for name, each in needs.items()})
    default = one_port(Settings(), needs)
    gains = []
    for _ in range(40):
        seen = one_port(settings, needs)
        gains.append(fmean(seen.jobs[name].work / default.jobs[name].work for name in needs))
        settings = controller.observe(seen)
    # An iteration of both takes 9 of the port in all: were nothing wasted, everybody had 16 / 9 of his default.
    assert 1.3 < fmean(gains) < 16 / 9


def test_starts_over_with_other_jobs() -> None:
    once, again = Slack(default_periods=1), Slack(default_periods=1)
    until(once, "CLIMB", 0.05)
    assert once.observe(made_up(job="b")) == again.start({"b": 4}) == Settings()
    assert once.state == "DEFAULT"
    while again.state != "CLIMB":
        seen = made_up(0.02, "b")
        assert once.observe(seen) == again.observe(seen)
    assert once.state == "CLIMB"


@pytest.mark.parametrize(("cost", "periods"), [(0.001, 0), (0.02, 4), (0.5, 6)])
def test_the_best_stands_for_longer_the_more_a_change_has_cost(cost: float, periods: int) -> None:
    controller = Slack(default_periods=1)
    controller.start({"a": 4})

    def work(gain: float) -> Work:
        return Work(1.0, {"a": JobWork((3000, *(round(1000 * (1 + gain)),) * 3), (0.5,) * 4, (0.5,) * 4)})

    controller.observe(work(0))
    while controller.state != "CLIMB":
        controller.observe(work(0.6))
    answers = [controller.observe(work(0.6 - cost)), *(controller.observe(work(0.6)) for _ in range(8))]
    stood = next(at for at, settings in enumerate(answers) if settings != answers[0])
    assert stood == max(1, periods), "another change is tried for one"


def changes(waiting: tuple[float, ...], *, gain: float = 0.1) -> tuple[Changes, Candidate]:
    """A job whose rank 0 is ahead, and whose ranks wait so long; and one that loses what it gains and does not wait."""
    seen, other = JobWork((300, 100, 100, 100), (0.5,) * 4, waiting), JobWork((100,) * 2, (0.5,) * 2, (0.0,) * 2)
    positions = {"a": (0.0,) * 4, "b": (0.0,) * 2}
    best = Candidate(positions, gains=[{"a": gain, "b": -gain}], work=Work(1.0, {"a": seen, "b": other}))
    return Changes(Feedback({"a": 100.0, "b": 100.0}, 16), 0.01, random.Random(1)), best


def drawn(given: Changes, best: Candidate, kind: str) -> Counter[tuple[str, tuple[int, ...], float]]:
    """Which ranks of which job are moved by how much, in the changes of this kind among many."""
    found: Counter[tuple[str, tuple[int, ...], float]] = Counter()
    for one in (given.draw(best) for _ in range(800)):
        if one.change == kind:
            ((job, moved),) = (
                (job, [to - was for to, was in zip(one.positions[job], best.positions[job], strict=True)])
                for job in best.positions
                if one.positions[job] != best.positions[job]
            )
            (by,) = {step for step in moved if step}
            found[job, tuple(rank for rank, step in enumerate(moved) if step), by] += 1
    return found


def test_some_of_the_ranks_that_hold_a_job_up_go_up_rather_those_that_wait_little() -> None:
    given, best = changes((0.1, 0.1, 0.3, 0.4), gain=0.0)
    found = drawn(given, best, "lift")
    assert {len(ranks) for _, ranks, _ in found} == {1, 2}
    assert all(job == "a" and 0 not in ranks and by == 1 for job, ranks, by in found), (
        "rank 0 is ahead, b does not wait"
    )
    assert found["a", (1,), 1] > 2 * found["a", (2,), 1] > 0


def test_who_has_not_waited_for_anything_yet_waits_all_the_time() -> None:
    given, best = changes((0.1, 0.0, 0.3, 0.3), gain=0.0)
    found = drawn(given, best, "lift")
    assert found
    assert all(1 not in ranks for _, ranks, _ in found)


def test_jobs_that_lose_go_up_and_jobs_that_gain_go_down() -> None:
    for gain in (0.1, -0.1):
        given, best = changes((0.1,) * 4, gain=gain)
        loses, gains = ("b", "a") if gain > 0 else ("a", "b")
        assert {(job, by) for job, _, by in drawn(given, best, "lift")} == {(loses, 1)}
        assert {(job, by) for job, _, by in drawn(given, best, "lower")} == {(gains, -1)}


def test_jobs_wait_by_the_time_that_they_compute() -> None:
    given, best = changes((0.4,) * 4, gain=0.0)
    assert best.work is not None
    jobs = {"a": best.work.jobs["a"], "b": JobWork((100,) * 2, (5.0,) * 2, (0.8,) * 2)}
    best.work = Work(1.0, jobs)
    found = drawn(given, best, "lift")
    shares = Counter(job for job, _, _ in found.elements())
    assert shares["a"] > 3 * shares["b"] > 0


def test_every_change_makes_a_difference() -> None:
    given, best = changes((0.5,) * 4)
    before = best.settings(16)
    found = [given.draw(best) for _ in range(200)]
    assert all(one.settings(16) != before for one in found)
    assert {one.change for one in found} == {"step", "spread", "lift", "lower", "assign"} - {"assign"}, (
        "nobody is spread yet"
    )
    spread = best.changed(spread=frozenset({"a"}))
    spread.work, spread.gains = best.work, best.gains
    assigned = [one for one in (given.draw(spread) for _ in range(200)) if one.change == "assign"]
    assert assigned
    assert all(one.settings(16).levels["b"] == {0: 0, 1: 0} for one in assigned), "b is not spread"
    assert len({tuple(one.settings(16).levels["a"].values()) for one in assigned}) > 4


def test_what_has_helped_is_tried_more_often() -> None:
    given, best = changes((0.5,) * 4)

    def share() -> float:
        return fmean(given.draw(best).change == "lower" for _ in range(400))

    before = share()
    for _ in range(20):
        given.learn("lower", helped=True)
        given.learn("lift", helped=False)
    assert before < 0.35
    assert share() > 1.5 * before


def test_slack_learns_what_helps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing helps but spreading ranks or no longer, hardly anything else is tried after a while."""
    candidates: list[Candidate] = []
    draw = Changes.draw

    def noted(changes: Changes, best: Candidate) -> Candidate:
        candidates.append(draw(changes, best))
        return candidates[-1]

    monkeypatch.setattr(Changes, "draw", noted)
    controller = Slack(default_periods=1, patience=1000)
    settings, best = until(controller, "CLIMB", 0.05), Settings()
    tried, gain = [], 0.05
    for _ in range(300):
        on_trial = [one for one in candidates[-1:] if one.settings(16) == settings != best]
        tried += [one.change for one in on_trial]
        helps = {"spread": 0.05}
        settings, before = (
            controller.observe(made_up(gain + sum(helps.get(one.change, -0.001) for one in on_trial))),
            settings,
        )
        gain += 0.05 * controller.accepted
        best = before if controller.accepted or not on_trial else best
    first, last = tried[: len(tried) // 3], tried[-len(tried) // 3 :]
    assert last.count("spread") / len(last) > 0.7
    assert {"lift", "lower"} <= set(first)


def test_nothing_is_set_where_everybody_has_the_first_level() -> None:
    everybody = Candidate({"a": (0.0,)}, spread=frozenset({"a"}))
    assert everybody.settings(16) == Settings()
    assert everybody.changed(assigned={"a": 1}).settings(16).levels == {"a": {0: 1}}


def test_another_seed_tries_other_changes() -> None:
    first, second = (Slack(default_periods=1, seed=seed) for seed in (1, 2))
    tried = []
    for controller in (first, second):
        until(controller, "CLIMB", 0.05)
        tried.append([controller.observe(made_up(0.05)) for _ in range(10)])
    assert tried[0] != tried[1]


def test_without_times_in_mpi_it_does_the_same_whatever_they_are() -> None:
    def settings(wait: float, *, known: bool) -> list[Settings]:
        controller = Slack(default_periods=1, steps=1, mpi_times=known, seed=2)
        rng, found = random.Random(1), [controller.start({"a": 4, "b": 4})]
        for _ in range(60):
            jobs = {
                job: JobWork(tuple(rng.randint(95, 105) for _ in range(4)), (0.5,) * 4, (wait, 0.4, 0.3, own))
                for job, own in (("a", 0.2), ("b", wait))
            }
            found.append(controller.observe(Work(1.0, jobs)))
        return found

    assert settings(0.01, known=False) == settings(5.0, known=False)
    assert settings(0.01, known=True) != settings(5.0, known=True)
