"""Controllers on simulations: both modes, what is shared, what is refused."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import Field
from typing_extensions import override

from fairlane import Scenario, ScenarioError, Simulation
from fairlane.cli.main import execute
from fairlane.sim.controller import CONTROLLERS, Controller, Settings, Work, control, controller_of, row_of
from fairlane.sim.controller.episodes import Episodes
from fairlane.sim.controller.fitting import Continuous, fit
from fairlane.views.control import view
from fairlane.views.tables import Table
from pictures import assert_drawn
from samples import TREE

PERIOD = 10**9


WORKLOAD = {"name": "flood_pairs", "compute": "20 us", "messages_per_iteration": 4}
ONE, TWO = ({"name": name, "ranks": 8, "workload": WORKLOAD} for name in ("one", "two"))
RAISED = {"name": "fixed", "levels": {"one": dict.fromkeys(range(8), 1)}, "weights": [1, 50], "service_levels": 2}


def scenario(**tables: Any) -> Scenario:
    return Scenario(**{"fabric": TREE, "jobs": [ONE, TWO], "seed": 3, **tables})


def run(given: Any, controller: str | Mapping[str, Any], **options: Any) -> list[dict[str, Any]]:
    """A row for each period and job."""
    return [row_of(outcome, job) for outcome in control(given, controller, **options) for job in outcome.jobs]


SHORT = {"digital_twin": {"trials": 4, "horizon": "1 ms"}}
"""Parameters with which a controller takes little time."""


@pytest.mark.parametrize("mode", ["episodes", "online"])
@pytest.mark.parametrize("name", list(CONTROLLERS))
def test_every_controller_runs_in_every_mode_and_does_the_same_again(name: str, mode: Any) -> None:
    given = {"name": name, **SHORT.get(name, {})}
    once, again = (run(scenario(), given, mode=mode, period=PERIOD, periods=6) for _ in range(2))
    assert once == again
    assert [(row["period"], row["job"]) for row in once] == [(at, job) for at in range(6) for job in ("one", "two")]
    assert all(row["iterations"] > 0 and row["default_iterations"] > 0 for row in once)


def test_without_control_nothing_changes() -> None:
    for row in run(scenario(), "none", period=PERIOD, periods=4, isolated=True):
        assert row["improvement"] == 0
        assert row["isolated_iterations"] > 0


@pytest.mark.parametrize("mode", ["episodes", "online"])
def test_an_advance_is_the_iterations_and_a_part_of_the_next_one(mode: Any) -> None:
    for row in run(scenario(), "none", mode=mode, period=PERIOD, periods=3, isolated=True):
        for which in ("", "default_", "isolated_"):
            assert abs(row[f"{which}advance"] - row[f"{which}iterations"]) <= 1
            assert mode == "online" or row[f"{which}advance"] >= row[f"{which}iterations"]


def test_in_short_periods_advances_tell_rates_apart_and_iterations_do_not() -> None:
    """The rate of a period of a few iterations is that of a long one, whose first iterations are a bit shorter."""
    (long,) = run(scenario(jobs=[ONE]), "none", period=20 * PERIOD, periods=1)
    wrong = []
    for period in range(PERIOD // 4, PERIOD // 2, PERIOD // 50):
        (short,) = run(scenario(jobs=[ONE]), "none", period=period, periods=1)
        expected = long["iterations"] * period / (20 * PERIOD)
        assert short["advance"] == pytest.approx(expected, rel=0.1)
        wrong.append(1 - short["iterations"] / expected)
    assert max(wrong) > 0.2


def test_a_period_has_no_work_of_earlier_ones() -> None:
    """Iterations take 85 us at least: the first one is complete in the second period of 50 us, which had half of it."""
    rows = run(scenario(jobs=[ONE]), "none", mode="online", period=PERIOD // 20, periods=6)
    assert max(row["advance"] for row in rows) < 0.8


def test_both_tables_of_episodes_count_parts_of_iterations() -> None:
    outcomes = list(control(scenario(), RAISED, period=PERIOD // 3, periods=4))
    (rows,) = (part.rows for part in view(outcomes, "").parts if isinstance(part, Table) and part.title == "Iterations")
    for row in filter(None, rows):
        works = [(of.treated.jobs[row["job"]], of.default.jobs[row["job"]]) for of in outcomes if of.default]
        treated, default = (sum(one.fractional for one in of) for of in zip(*works, strict=True))
        assert row["gain"] == pytest.approx(treated / default - 1)


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
    levels = {"one": dict.fromkeys(range(8), 1)}
    little, equal, much = (
        episodes.together(Settings(levels, weights), (0, 0)).result().jobs for weights in ((1, 50), (1, 1), (50, 1))
    )
    assert little["two"].work < equal["two"].work < much["two"].work, "the first weight is that of its level"
    assert much["one"].work < equal["one"].work


def test_online_the_periods_add_up_to_one_simulation() -> None:
    rows = run(scenario(), "none", mode="online", period=PERIOD, periods=5)
    (whole,) = control(scenario(), controller_of("none"), mode="online", period=5 * PERIOD, periods=1)
    for job, done in whole.treated.jobs.items():
        assert sum(row["iterations"] for row in rows if row["job"] == job) == done.done


def test_online_a_shared_beginning_is_simulated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    first = scenario().model_copy(update={"qos": scenario(qos={"service_levels": 16}).qos})
    options: dict[str, Any] = {"mode": "online", "period": PERIOD, "periods": 6}
    controller = {"name": "process_prioritization", "default_periods": 3}
    begun: list[int] = []
    fork, start = Continuous.fork, Continuous.__init__

    def forked(self: Continuous) -> Continuous:
        begun.append(self._periods)
        return fork(self)

    def started(self: Continuous, *arguments: Any) -> None:
        begun.append(0)
        start(self, *arguments)

    monkeypatch.setattr(Continuous, "fork", forked)
    monkeypatch.setattr(Continuous, "__init__", started)
    both = list(control(first, controller, **options))
    assert begun == [0, 3], "one simulation, and a fork when the default was observed"
    assert [outcome.treated == outcome.default for outcome in both] == [True] * 3 + [False] * 3
    treated = list(control(first, controller, default=False, **options))
    default = list(control(first, "none", **options))
    assert [outcome.treated for outcome in both] == [outcome.treated for outcome in treated]
    assert [outcome.default for outcome in both] == [outcome.treated for outcome in default]
    assert both[-1].reached["default"] == default[-1].reached["treated"]


def test_a_job_with_a_stream_keeps_its_variants_when_others_come_and_go() -> None:
    hosts = [{"name": "list", "hosts": list(range(8 * at, 8 * at + 8))} for at in range(2)]
    streams = [{**table, "stream": at, "placement": hosts[at]} for at, table in enumerate((ONE, TWO))]
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
    given = scenario(qos={"arbiter": arbiter}, jobs=[ONE, {**TWO, "service_level": 1}])
    fitted = fit(given, controller_of("isolate"))
    assert fitted.qos.arbiter.parameters["weights"] == [3, 1, *[1] * 14]
    before, after = (Simulation(it.resolve()) for it in (given, fitted))
    for simulation in (before, after):
        simulation.run_until(PERIOD)
    assert before.progress() == after.progress(), "lanes that nobody uses change nothing"
    control(given, "isolate")


def test_jobs_that_come_and_go_restart_the_controller() -> None:
    before, after = scenario(), scenario(jobs=[ONE])
    outcomes = list(control({0: before, 4: after}, controller_of("process_prioritization"), period=PERIOD, periods=8))
    assert [list(outcome.treated.jobs) for outcome in outcomes] == [["one", "two"]] * 4 + [["one"]] * 4
    assert [outcome.state for outcome in outcomes[:2]] == ["DEFAULT", "RUNNING"]
    assert outcomes[4].settings.levels == {}
    assert [outcome.state for outcome in outcomes[5:7]] == ["DEFAULT", "RUNNING"]


@pytest.mark.parametrize("name", ["isolate", "fixed"])
def test_what_is_set_once_and_for_all_holds_from_the_first_period_with_other_jobs(name: str) -> None:
    phases = {0: scenario(jobs=[ONE]), 2: scenario()}
    parameters = {"levels": {"one": {0: 1}, "two": {1: 1}}} if name == "fixed" else {}
    first, *_, last = control(phases, {"name": name, **parameters}, period=PERIOD, periods=4)
    third = list(control(phases, {"name": name, **parameters}, period=PERIOD, periods=4))[2]
    assert set(first.settings.levels) == ({"one"} if name == "isolate" else {"one", "two"})
    assert third.settings == last.settings
    assert set(third.settings.levels) == {"one", "two"}


def test_isolate_gives_each_job_a_level() -> None:
    settings = controller_of({"name": "isolate", "weights": {"b": 5}}).start({"a": 2, "b": 1})
    assert settings.levels == {"a": {0: 0, 1: 0}, "b": {0: 1}}
    assert settings.weights[:3] == (1, 5, 1)


def test_fixed_sets_its_table() -> None:
    settings = controller_of({"name": "fixed", "levels": {"a": {1: 3}, "later": {0: 1}}, "weights": [1, 2]}).start(
        {"a": 2}
    )
    assert settings.levels == {"a": {1: 3}, "later": {0: 1}}
    assert settings.weights == (1, 2, *[1] * 14)


@pytest.mark.parametrize("mode", ["episodes", "online"])
def test_until_their_cost_is_over_settings_have_no_effect(mode: Any) -> None:
    def first(cost: str) -> tuple[int, int]:
        rows = run(scenario(), {**RAISED, "cost": cost}, mode=mode, period=4 * PERIOD, periods=1)
        return rows[1]["iterations"], rows[1]["default_iterations"]  # of the job that pays

    without, default = first("0 s")
    half, late = first("2 ms")[0], first("3999 us")[0]
    assert late == default > half > without


def test_settings_that_stay_cost_nothing_again() -> None:
    rows = run(scenario(), {**RAISED, "cost": "2 ms"}, period=4 * PERIOD, periods=2, draws=1)
    whole = run(scenario(), RAISED, period=4 * PERIOD, periods=2, draws=1)
    assert rows[1]["iterations"] > whole[1]["iterations"]
    assert rows[3]["iterations"] == whole[3]["iterations"]


@pytest.mark.parametrize("name", ["process_prioritization", "slack"])
def test_who_gives_levels_out_finds_none_in_use(name: str) -> None:
    of_job, of_rank, of_file, of_nobody = (
        scenario(jobs=[ONE, {**TWO, **levels}], qos={"service_levels": 16})
        for levels in (
            {"service_level": 3},
            {"service_levels": {"ranks": {5: 2}}},
            {"service_levels": {"default": 2}},
            {"service_level": 0},
        )
    )
    for given, key in ((of_job, "service_level = 3"), (of_rank, "service_levels"), (of_file, "service_levels")):
        with pytest.raises(ScenarioError, match=rf"jobs\[1\]\.{key}: the controller {name} gives out all levels but 0"):
            control(given, name)
    control(of_nobody, name)
    control(of_job, "isolate")


class Rewrites(Controller):
    """Says what it has said before, which means something else by then."""

    levels: dict[str, dict[int, int]] = Field(default_factory=dict)

    @override
    def start(self, jobs: Mapping[str, int]) -> Settings:
        return Settings(self.levels, (1, 20))

    @override
    def observe(self, work: Work) -> Settings:
        self.levels["one"] = dict.fromkeys(range(8), 1)
        return Settings(self.levels, (1, 20))


def test_online_settings_are_what_they_mean_now() -> None:
    outcomes = list(control(scenario(), Rewrites(service_levels=2), mode="online", period=PERIOD, periods=4))
    assert outcomes[0].treated == outcomes[0].default
    assert outcomes[-1].treated != outcomes[-1].default


def test_phases_begin_with_the_first_period() -> None:
    for wrong in (-1, 1):
        with pytest.raises(ScenarioError, match="phases = "):
            next(control({wrong: scenario(), 3: scenario()}, controller_of("none"), period=PERIOD, periods=4))


def test_a_table_may_be_about_ranks_that_a_job_has_later() -> None:
    phases = {0: scenario(jobs=[{**ONE, "ranks": 4}, TWO]), 1: scenario()}
    table = controller_of({"name": "fixed", "levels": {"one": {6: 1}}, "service_levels": 2})
    first, second = control(phases, table, period=PERIOD, periods=2)
    assert len(first.treated.jobs["one"].iterations) == 4
    assert len(second.treated.jobs["one"].iterations) == 8


class Says(Controller):
    """Always the same."""

    levels: dict[str, dict[int, int]] = Field(default_factory=dict)
    weights: tuple[int, ...] = ()

    @override
    def start(self, jobs: Mapping[str, int]) -> Settings:
        return Settings(self.levels, self.weights)

    @override
    def observe(self, work: Work) -> Settings:
        return Settings(self.levels, self.weights)


@pytest.mark.parametrize("mode", ["episodes", "online"])
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"levels": {"on": {0: 1}}}, 'controller.levels.on: unknown job; allowed: one, two; did you mean "one"?'),
        ({"levels": {"one": {8: 1}}}, "controller.levels.one: has no rank 8; allowed: 0 to 7"),
        ({"levels": {"one": {-1: 1}}}, "controller.levels.one: has no rank -1"),
        ({"levels": {"one": {0: 2}}}, "controller.levels.one.0 = 2: out of range; allowed: 0 to 1"),
        ({"weights": (1, 0)}, "controller.weights[1] = 0: out of range; allowed: 1 to 65535"),
        ({"weights": (7, 1, 99)}, "controller.weights = [7, 1, 99]: has 3 of them; allowed: 2 at most"),
    ],
)
def test_settings_that_cannot_be_are_refused(mode: Any, given: dict[str, Any], words: str) -> None:
    with pytest.raises(ScenarioError, match=re.escape(words)):
        next(control(scenario(), Says(service_levels=2, **given), mode=mode, period=PERIOD, periods=1))


PRIORITIZED = {"controller": "process_prioritization"}
REFUSED: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"service_levels": 4}, PRIORITIZED, "qos.service_levels = 4: the controller process_prioritization uses 16"),
    (
        {"sl2vl": [0, 1]},
        PRIORITIZED,
        "qos.sl2vl = [0, 1]: the controller process_prioritization uses 16 service levels",
    ),
    ({"arbiter": "strict_priority"}, PRIORITIZED, 'qos.arbiter = "strict_priority": does not suit the controller'),
    (
        {"default": 1},
        PRIORITIZED,
        "qos.default = 1: the controller process_prioritization gives out all levels but 0; allowed: 0",
    ),
    ({"kinds": {"control": 2}}, PRIORITIZED, "qos.kinds.control = 2: the controller process_prioritization gives out"),
    ({}, {"mode": "onlin"}, 'did you mean "online"'),
    ({}, {"period": "5"}, 'period = "5": '),
    ({}, {"period": -5}, "period = -5: out of range; allowed: above 0"),
    ({}, {"periods": "3"}, 'periods = "3": '),
    ({}, {"draws": 0}, "draws = 0: out of range; allowed: at least 1"),
    ({}, {"variants": 0}, "variants = 0: out of range; allowed: at least 1"),
    ({}, {"threads": 0}, "threads = 0: out of range; allowed: at least 1"),
    ({}, {"seed": -1}, "seed = -1: out of range; allowed: at least 0"),
    ({}, {"draws": 3, "mode": "online"}, "draws = 3: has an effect in episodes only"),
    ({}, {"period": 0}, "period"),
    ({}, {"controller": {"name": "none", "cost": "1 ms"}}, "no settings would ever be in effect; allowed: less than"),
    ({}, {"periods": 0}, "periods = 0: out of range; allowed: at least 1"),
    (
        {},
        {"controller": {"name": "fixed", "levels": {"on": {0: 1}}}},
        'controller.levels.on: unknown job; allowed: one, two; did you mean "one"?',
    ),
    (
        {},
        {"controller": {"name": "fixed", "levels": {"one": {99: 1}}}},
        "controller.levels.one: has no rank 99; allowed: 0 to 7",
    ),
    (
        {},
        {"controller": {"name": "fixed", "levels": {"one": {0: 5}}, "service_levels": 4}},
        "levels.one.0 = 5: out of range; allowed: 0 to 3, or more in service_levels",
    ),
    ({}, {"controller": {"name": "isolate", "weights": {"three": 3}}}, "controller.weights.three: unknown job"),
    (
        {},
        {"controller": {"name": "isolate", "weights": {"one": 70000}}},
        "controller.weights.one = 70000: out of range; allowed: at most",
    ),
    ({}, {"controller": {"name": "process_prioritization", "threshold": True}}, "controller.threshold"),
    ({}, {"controller": {"name": "process_prioritization", "step": 70000}}, "controller.step = 70000"),
]


@pytest.mark.parametrize(("qos", "options", "words"), REFUSED)
def test_what_does_not_suit_is_refused_before_anything_runs(
    qos: dict[str, Any], options: dict[str, Any], words: str
) -> None:
    with pytest.raises(ScenarioError, match=re.escape(words)):
        control(scenario(qos=qos), **{"controller": "none", "period": PERIOD, "periods": 1, **options})


def test_online_what_settings_do_not_say_is_the_scenarios_again() -> None:
    qos = {"service_levels": 2, "arbiter": {"name": "weighted_round_robin", "weights": [3, 1]}}
    jobs = [{**ONE, "name": name, "service_level": at} for at, name in enumerate("ab")]
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
    assert_drawn(out / "improvement.png")
    assert (out / "control.html").is_file()
    assert lines[5].startswith("Mean improvement over the default ")
    assert execute([*words, "--mode", "sometimes"]) == 2
    assert execute([*words, "--with", "threshold=2"]) == 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--period", "1"], '--period = "1"'),
        (["--period", "0 ms"], '--period = "0 ms": out of range'),
        (["--draws", "0"], "--draws"),
        (["--draws", "2", "--mode", "online"], "--draws = 2: has an effect in episodes only"),
        (["--seed", "-3"], "--seed"),
        (["--mode", "onlin", "--out", "{out}/new/folder"], 'did you mean "online"'),
        (["--set", "qos.service_levels=2", "--set", "qos.lanes=1", "--out", "{out}/new/folder"], "qos.lanes = 1"),
        (
            ["--set", 'jobs.0.start="3 s"', "--periods", "50"],
            "starts after the end of the run; allowed: at most 2.94 s",
        ),
        (["--set", "jobs.0.stop=3", "--out", "{out}/new/folder"], "jobs[0].stop = 3: episodes begin anew"),
    ],
)
def test_options_that_cannot_be_are_refused(
    options: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "two.toml"
    file.write_text(
        'fabric = { topology = "fat_tree", hosts = 16 }\n[[jobs]]\nname = "a"\nranks = 4\nworkload = "ring"\n'
    )
    given = [option.replace("{out}", str(tmp_path)) for option in options]
    assert execute(["control", str(file), "--controller", "none", *given]) == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
    (tmp_path / "empty").mkdir()
    assert execute(["control", str(file), "--controller", "none", "--mode", "x", "--out", str(tmp_path / "empty")]) == 2
    assert (tmp_path / "empty").is_dir(), "it was there before"
    assert execute(["control", str(file), "--controller", "none", "--out", str(tmp_path / "new" / ("a" * 300))]) == 2
    assert "File name too long" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
    assert execute(["control", str(file), "--controller", "none", "--periods", "1", "--out", str(file)]) == 2
    assert "--out" in capsys.readouterr().err
