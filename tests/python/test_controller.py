"""Controllers on simulations: both modes, what is shared, what is refused."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from fairlane import Scenario, ScenarioError, Simulation
from fairlane.cli.main import execute
from fairlane.controller import CONTROLLERS, JobWork, Settings, Slack, Work, check, control, make, run
from fairlane.controller.episodes import Episodes
from fairlane.controller.fitting import fit
from fairlane.controller.ladder import Candidate, ladder
from fairlane.controller.online import Continuous

FABRIC = {"topology": "fat_tree", "hosts": 16, "levels": 2, "radix": 8, "bandwidth": "3.2 GB/s"}
PERIOD = 10**9


def scenario(**tables: Any) -> Scenario:
    workload = {"name": "flood_pairs", "compute": "20 us", "messages_per_iteration": 4}
    jobs = [{"name": name, "ranks": 8, "workload": workload} for name in ("one", "two")]
    return Scenario(**{"fabric": FABRIC, "jobs": jobs, "seed": 3, **tables})


@pytest.mark.parametrize("mode", ["episodes", "online"])
@pytest.mark.parametrize("name", list(CONTROLLERS))
def test_every_controller_runs_in_every_mode_and_does_the_same_again(name: str, mode: Any) -> None:
    once, again = (run(scenario(), name, mode=mode, period=PERIOD, periods=6) for _ in range(2))
    assert once == again
    assert [(row["period"], row["job"]) for row in once] == [(at, job) for at in range(6) for job in ("one", "two")]
    assert all(row["iterations"] > 0 and row["default_iterations"] > 0 for row in once)


def test_without_control_nothing_changes() -> None:
    for row in run(scenario(), "none", period=PERIOD, periods=4, isolated=True):
        assert row["improvement"] == 0
        assert row["isolated_iterations"] > 0


def test_the_isolated_run_is_the_job_on_its_hosts_with_nobody_beside_it() -> None:
    episodes = Episodes(scenario(), period=PERIOD)
    alone = Simulation(episodes.resolved.alone(1))
    alone.run_until(PERIOD)
    assert list(episodes.alone(1, 0).result().jobs["two"].iterations) == alone.progress()["two"]


def test_one_thread_or_two_give_the_same() -> None:
    first, second = (
        run(scenario(), "process_prioritization", period=PERIOD, periods=8, threads=threads) for threads in (1, 2)
    )
    assert first == second


def test_periods_have_variants_and_what_is_the_same_is_simulated_once() -> None:
    episodes = Episodes(scenario(), period=PERIOD, draws=3)
    combinations = [episodes.combination(period) for period in range(40)]
    assert len(set(combinations)) == 3
    assert len({Episodes(scenario(), period=PERIOD).combination(period) for period in range(40)}) > 10
    done = [episodes.together(Settings(), combination).result() for combination in combinations]
    assert episodes.simulated == 3
    assert len({tuple(job.iterations for job in work.jobs.values()) for work in done}) > 1, "variants differ"


def test_levels_and_weights_reach_the_fabric() -> None:
    episodes = Episodes(scenario(qos={"service_levels": 2}), period=4 * PERIOD)
    plain, favoured, burdened = (
        episodes.together(Settings({"one": dict.fromkeys(range(8), 1)}, weights), (0, 0)).result().jobs["one"].work
        for weights in ((1, 1), (1, 50), (50, 1))
    )
    assert burdened < plain <= favoured


def test_online_the_periods_add_up_to_one_simulation() -> None:
    rows = run(scenario(), "none", mode="online", period=PERIOD, periods=5)
    (whole,) = control(scenario(), make("none"), mode="online", period=5 * PERIOD, periods=1)
    for job, done in whole.treated.jobs.items():
        parts = sum(row["iterations"] for row in rows if row["job"] == job)
        # The slowest rank of a period need not be the slowest of all.
        assert 0.8 * done.work <= parts <= done.work


def test_a_job_with_a_stream_keeps_its_variants_when_others_come_and_go() -> None:
    tables = [job.model_dump(mode="json", exclude_none=True) for job in scenario().jobs]
    hosts = [{"strategy": "list", "hosts": list(range(8 * at, 8 * at + 8))} for at in range(2)]
    streams = [{**table, "stream": at, "placement": hosts[at]} for at, table in enumerate(tables)]
    both, second = (Episodes(scenario(jobs=jobs), period=PERIOD) for jobs in (streams, streams[1:]))
    combinations = [(both.combination(period), second.combination(period)) for period in range(20)]
    assert all(two[1:] == one for two, one in combinations)
    assert len({one for _, one in combinations}) > 1
    assert both.alone(1, 3).result().jobs == second.alone(0, 3).result().jobs


def test_without_the_default_nothing_but_the_treatment_is_simulated() -> None:
    rows = run(scenario(), "process_prioritization", period=PERIOD, periods=3, default=False)
    assert {row["default_iterations"] for row in rows} == {None}
    compared = run(scenario(), "process_prioritization", period=PERIOD, periods=3)
    assert [row["iterations"] for row in rows] == [row["iterations"] for row in compared]


def test_weights_of_a_scenario_need_not_be_as_many_as_a_controllers_levels() -> None:
    arbiter = {"name": "weighted_round_robin", "weights": [3, 1]}
    levels = [{**job.model_dump(mode="json", exclude_none=True)} for job in scenario().jobs]
    levels[1]["service_level"] = 1
    given = scenario(qos={"arbiter": arbiter}, jobs=levels)
    fitted = fit(given, make("slack"))
    assert fitted.qos.arbiter.parameters["weights"] == [3, 1, *[1] * 14]
    before, after = (Simulation(it.resolve()) for it in (given, fitted))
    for simulation in (before, after):
        simulation.run_until(PERIOD)
    assert before.progress() == after.progress(), "lanes that nobody uses change nothing"
    check(given, "slack")


def test_jobs_that_come_and_go_restart_the_controller() -> None:
    before, after = scenario(), scenario(jobs=scenario().jobs[:1])
    outcomes = list(control({0: before, 4: after}, make("process_prioritization"), period=PERIOD, periods=8))
    assert [list(outcome.treated.jobs) for outcome in outcomes] == [["one", "two"]] * 4 + [["one"]] * 4
    assert [outcome.state for outcome in outcomes[:2]] == ["DEFAULT", "RUNNING"]
    assert outcomes[4].settings.levels == {}
    assert [outcome.state for outcome in outcomes[5:7]] == ["DEFAULT", "RUNNING"]


def test_isolate_gives_each_job_a_level() -> None:
    settings = make("isolate", {"weights": {"b": 5}}).start({"a": 2, "b": 1})
    assert settings.levels == {"a": {0: 0, 1: 0}, "b": {0: 1}}
    assert settings.weights[:3] == (1, 5, 1)


def test_fixed_sets_its_table() -> None:
    settings = make("fixed", {"levels": {"a": {1: 3}, "gone": {0: 1}}, "weights": [1, 2]}).start({"a": 2})
    assert settings.levels == {"a": {1: 3}}
    assert settings.weights == (1, 2, *[1] * 14)


@pytest.mark.parametrize(
    ("qos", "words"),
    [
        ({"service_levels": 4}, "qos.service_levels = 4: the controller process_prioritization uses 16"),
        ({"arbiter": "strict_priority"}, 'qos.arbiter = "strict_priority": does not suit the controller'),
    ],
)
def test_a_scenario_that_does_not_suit_is_refused_before_anything_runs(qos: dict[str, Any], words: str) -> None:
    with pytest.raises(ScenarioError) as error:
        run(scenario(qos=qos), "process_prioritization", period=PERIOD, periods=1)
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"mode": "onlin"}, 'did you mean "online"'),
        ({"period": 0}, "period"),
        ({"periods": 0}, "periods = 0: out of range; allowed: at least 1"),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ScenarioError) as error:
        run(scenario(), "none", **{"period": PERIOD, "periods": 1, **options})
    assert words in str(error.value)


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
def test_slack_has_a_rung_below_and_above_with_as_few_levels_as_three(service_levels: int) -> None:
    rungs = ladder(service_levels)
    assert sorted(level for levels in rungs.values() for level in levels) == list(range(service_levels))
    assert list(rungs) == list(range(min(rungs), max(rungs) + 1)), "none is left out"
    assert rungs[0].start == 0, "the default level"
    assert {-1, *range(2 if service_levels > 2 else 1)} <= rungs.keys()


def test_slack_has_ranks_make_way_that_are_ahead() -> None:
    controller = Slack(default_periods=1)
    settings = until(controller, "YIELD")
    # Three times as many iterations are more than an octave and a half: three quarters of a rung, and as much again.
    for below in (ladder(16)[-1], ladder(16)[-2], ladder(16)[-2], ladder(16)[-3]):
        assert settings.levels["a"][0] in below
        assert [settings.levels["a"][rank] for rank in (1, 2, 3)] == [0, 0, 0], "the others stay"
        assert settings.weights[below.start] < settings.weights[0]
        settings = controller.observe(made_up())


def test_slack_raises_ranks_that_fall_behind_their_job_once_they_are_spread() -> None:
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


def test_slack_lets_no_rank_go_down_again_to_where_it_has_held_its_job_up() -> None:
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


def test_slack_spreads_ranks_and_ends_that_at_once_where_it_hurts() -> None:
    controller = Slack(default_periods=1)
    settings = until(controller, "SPREAD", 0.05)
    assert len(set(settings.levels["a"].values())) == 4, "nobody shares a level"
    controller.observe(made_up(-0.4))
    assert controller.state == "SPREAD", "one bad period may be an accident"
    settings = controller.observe(made_up(-0.4))
    assert controller.state == "CLIMB"
    assert [settings.levels["a"][rank] for rank in (1, 2, 3)] == [0, 0, 0], "as before it"


def test_slack_goes_on_spreading_where_it_hurts_now_one_job_and_then_another() -> None:
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


def test_slack_spreads_nobody_where_the_middle_has_one_level() -> None:
    controller = Slack(default_periods=1, service_levels=3)
    states = []
    controller.start({"a": 4})
    while controller.state != "CLIMB":
        controller.observe(made_up())
        states.append(controller.state)
    assert "SPREAD" not in states


def test_slack_leaves_the_scenario_alone_where_nothing_helps() -> None:
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


def test_slack_makes_no_difference_between_configurations_that_do_the_same() -> None:
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


def test_slack_keeps_a_change_that_helps_once_it_has_been_seen_for_a_while() -> None:
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


def test_slack_tries_nothing_while_the_best_makes_up_for_a_loss() -> None:
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
def test_slack_gives_what_some_ranks_can_spare_to_those_that_hold_their_job_up(service_levels: int) -> None:
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


def test_slack_starts_over_with_other_jobs() -> None:
    once, again = Slack(default_periods=1), Slack(default_periods=1)
    until(once, "CLIMB", 0.05)
    assert once.observe(made_up(job="b")) == again.start({"b": 4}) == Settings()
    assert once.state == "DEFAULT"
    while again.state != "CLIMB":
        seen = made_up(0.02, "b")
        assert once.observe(seen) == again.observe(seen)
    assert once.state == "CLIMB"


def test_online_what_settings_do_not_say_is_the_scenarios_again() -> None:
    qos = {"service_levels": 2, "arbiter": {"name": "weighted_round_robin", "weights": [3, 1]}}
    workload = {"name": "flood_pairs", "compute": "20 us", "messages_per_iteration": 4}
    jobs = [{"name": name, "ranks": 8, "workload": workload, "service_level": at} for at, name in enumerate("ab")]
    given = scenario(qos=qos, jobs=jobs).resolve()
    once, again = Continuous(given, PERIOD), Continuous(given, PERIOD)
    other = Settings({"a": dict.fromkeys(range(8), 1), "b": dict.fromkeys(range(8), 0)}, (1, 50))
    assert once.run(other) == again.run(other)
    own = Settings({"a": dict.fromkeys(range(8), 0), "b": dict.fromkeys(range(8), 1)}, (3, 1))
    assert once.run(Settings()) == again.run(own) != Continuous(given, PERIOD).run(other)


def test_the_command_shows_periods_and_draws_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out = tmp_path / "small.toml", tmp_path / "out"
    file.write_text(scenario().text)
    words = ["control", str(file), "--controller", "process_prioritization", "--with", "threshold=0.8"]
    assert execute([*words, "--period", "1 ms", "--periods", "4", "--out", str(out)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines[1:3]] == [["0", "DEFAULT"], ["1", "RUNNING"]]
    assert (out / "improvement.png").is_file()
    assert execute([*words, "--mode", "sometimes"]) == 2
    assert execute([*words, "--with", "threshold=2"]) == 2


@pytest.mark.parametrize(
    ("controller", "parameters", "words"),
    [
        (
            "fixed",
            {"levels": {"on": {0: 1}}},
            'controller.fixed.levels.on: unknown job; allowed: one, two; did you mean "one"?',
        ),
        ("fixed", {"levels": {"one": {99: 1}}}, "controller.fixed.levels.one: has no rank 99; allowed: 0 to 7"),
        (
            "fixed",
            {"levels": {"one": {0: 5}}, "service_levels": 4},
            "levels.one.0 = 5: a service level that it does not",
        ),
        ("isolate", {"weights": {"three": 3}}, "controller.isolate.weights.three: unknown job"),
        ("process_prioritization", {"threshold": True}, "controller.process_prioritization.threshold"),
        ("process_prioritization", {"step": 70000}, "controller.process_prioritization.step = 70000"),
    ],
)
def test_parameters_that_fit_no_job_are_refused(controller: str, parameters: dict[str, Any], words: str) -> None:
    jobs = [{"name": name, "ranks": 8, "workload": "ring"} for name in ("one", "two")]
    with pytest.raises(ScenarioError) as error:
        check(Scenario(fabric=FABRIC, jobs=jobs), controller, parameters)
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [(["--period", "1"], '--period = "1"'), (["--draws", "0"], "--draws"), (["--seed", "-3"], "--seed")],
)
def test_options_that_cannot_be_are_refused(
    options: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "two.toml"
    file.write_text(
        'fabric = { topology = "fat_tree", hosts = 16 }\n[[jobs]]\nname = "a"\nranks = 4\nworkload = "ring"\n'
    )
    assert execute(["control", str(file), "--controller", "none", *options]) == 2
    assert words in capsys.readouterr().err
    assert execute(["control", str(file), "--controller", "none", "--periods", "1", "--out", str(file)]) == 2
    assert "--out" in capsys.readouterr().err
