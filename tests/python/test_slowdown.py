"""Slowdowns: features by hand, the fit recovers what it was made from, the file, schedules in which jobs run slower."""

import json
from pathlib import Path

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlane.cli.main import execute
from fairlane.core.errors import ScenarioError
from fairlane.learn.models.validation import ErrorMetrics
from fairlane.learn.scheduler.compare import compare_allocators, pattern_aware_findings
from fairlane.learn.scheduler.easy import replay
from fairlane.learn.scheduler.log import LoggedJob, PatternMix, read_log
from fairlane.learn.scheduler.slowdown.forecast import Forecast, Neighbourhood, verify
from fairlane.learn.scheduler.slowdown.model import (
    contention_matrix,
    fit_model,
    load_model,
    neighbour_features,
    own_features,
    utilisation_of,
)
from fairlane.learn.scheduler.slowdown.snapshots import draw_snapshot
from fairlane.model.fabric.table import FabricTable
from fairlane.model.fabric.view import Fabric
from fairlane.model.pattern import judge, observe, program_of
from fairlane.model.placement import PLACEMENTS
from fairlane.model.scenario.models import Job
from fairlane.study.shipped.slowdowns import Bench, Best, Resident, Snapshots
from fairlane.study.tasks.executor import Executor
from fairlane.study.tasks.pools import Threads
from fairlane.study.tasks.store import Store
from pictures import assert_drawn

ROOT = Path(__file__).parents[2]
LOG = ROOT / "tests" / "data" / "jobs" / "nasa-ipsc-1993-first-400.swf.gz"
MIX = ROOT / "examples" / "schedules" / "pattern-mix.toml"
GB = 10**9
LINE = Fabric.build(
    {
        "topology": "torus",
        "params": {"sides": [4], "hosts_per_switch": 1, "mesh": True, "bandwidth": 8 * GB},
        "routing": "dimension_order",
    }
)
DENSE = {"name": "all_to_all", "message_size": "8 KiB", "messages_per_iteration": 1, "compute_share": 0.3}
SMALL = PatternMix.model_validate({"pattern": [{"kind": "many-to-many", "share": 1, "workload": DENSE}]})


def table() -> FabricTable:
    data = {"topology": "torus", "sides": [4, 4], "bandwidth": "2 GiB/s", "host_bandwidth": "12 GiB/s"}
    return FabricTable.read(data)


@pytest.fixture(scope="module")
def forecast() -> Forecast:
    return Forecast(load_model("torus-128"))


def pair(hosts: list[int], both: float = GB / 4) -> tuple[Best, list[int]]:
    """Two ranks that send each other so many bytes a second."""
    traffic = numpy.array([[0.0, both], [both, 0.0]])
    return Best((0, 1), 0, 1.0, traffic), hosts


def test_what_bytes_meet_on_a_line_by_hand() -> None:
    # 1 GB/s links: a quarter of a GB each way is a use of 1/4 on every link between the two.
    near, far = utilisation_of(LINE, [0, 1], pair([])[0]), utilisation_of(LINE, [0, 3], pair([])[0])
    assert (near.hops, far.hops) == (1.0, 3.0)
    assert (near.utilisation[near.utilisation > 0].tolist(), far.utilisation[far.utilisation > 0].tolist()) == (
        [0.25] * 2,
        [0.25] * 6,
    )
    met = contention_matrix([near, far])
    # A byte of the near pair crosses one link, which the far one uses; of three links of the far one the near uses one.
    assert met == pytest.approx(numpy.array([[0, 0.25], [0.25, 0]]))
    assert own_features(far, near) == pytest.approx([2.0, 3 * 0.25 - 0.25, 0.0])
    assert neighbour_features(met, [near, far]) == pytest.approx(numpy.array([[0.25, 0.25, 0.0625]] * 2))
    alone = utilisation_of(LINE, [2, 3], pair([])[0])
    assert not contention_matrix([near, alone]).any()


def test_a_neighbourhood_says_the_same_however_jobs_came_and_went(forecast: Forecast) -> None:
    snapshot = draw_snapshot(forecast.fabric, forecast.model.mix, 3, 0)[:6]
    there = Neighbourhood(forecast)
    for number, job in enumerate([*snapshot, snapshot[0]]):
        there.add(number, job)
    there.remove(len(snapshot))
    there.remove(1)
    there.add(9, snapshot[1])
    found = dict(zip(there.numbers, there.by_neighbours(), strict=True))
    other = Neighbourhood(forecast)
    for number, job in enumerate(snapshot):
        other.add(number, job)
    direct = other.by_neighbours()
    assert [found[9 if number == 1 else number] for number in range(len(snapshot))] == pytest.approx(direct, abs=1e-6)
    assert min(direct) >= 1


def test_one_rank_and_best_hosts_without_neighbours_are_not_slowed(forecast: Forecast) -> None:
    assert forecast.slowdowns([Resident(0, (5,))]) == [1.0]
    for pattern in range(3):
        best = forecast.bench.best(pattern, 16)
        assert forecast.slowdowns([Resident(pattern, best.hosts)]) == [1.0]
        # Packets of boxes apart from each other meet nowhere.
        other = tuple((host + 64) % 128 for host in best.hosts)
        assert forecast.slowdowns([Resident(pattern, best.hosts), Resident(pattern, other)])[0] == pytest.approx(1.0)


def test_snapshots_are_whole_and_repeat(forecast: Forecast) -> None:
    for number in range(20):
        snapshot = draw_snapshot(forecast.fabric, forecast.model.mix, 1, number)
        hosts = [host for job in snapshot for host in job.hosts]
        assert len(hosts) == len(set(hosts))
        assert snapshot == draw_snapshot(forecast.fabric, forecast.model.mix, 1, number)
        assert all(2 <= job.ranks <= 64 for job in snapshot)


def test_simulated_slowdowns_are_those_of_shared_links() -> None:
    bench = Bench(table(), SMALL.workloads)
    best = bench.best(0, 4)
    mixed = numpy.random.default_rng(1).permutation(16).tolist()
    snapshots = {
        "apart": [Resident(0, best.hosts), Resident(0, tuple((host + 8) % 16 for host in best.hosts))],
        "crossed": [Resident(0, tuple(mixed[:8])), Resident(0, tuple(mixed[8:]))],
    }
    slowdowns = Snapshots({name: (bench, {0: jobs}) for name, jobs in snapshots.items()}).slowdowns()
    apart, crossed = slowdowns["apart"][0], slowdowns["crossed"][0]
    assert apart[0].own == pytest.approx(1.0)
    assert apart[0].neighbours == pytest.approx(1.0, abs=0.02)
    assert all(one.neighbours > 1.02 for one in crossed)


def test_jobs_at_their_best_and_isolated_are_simulated_once_for_all_snapshots() -> None:
    jobs = [Resident(0, (0, 5, 10, 15)), Resident(0, (1, 6, 11, 12)), Resident(0, (2, 3))]
    with Executor(Threads(1), attempts=1, first_failure_ends=True) as executor:
        for numbers in ([0], [0], [0, 1, 2]):
            bench = Bench(table(), SMALL.workloads)
            slowdowns = Snapshots({"torus": (bench, dict.fromkeys(numbers, jobs))}).slowdowns(executor)["torus"]
            # Two sizes at their best, three jobs isolated, and a co-run for each number, which has its own instants.
            assert executor.performed == 2 + len(jobs) + len(numbers)
            assert list(slowdowns) == numbers
            assert {tuple(job.own for job in of) for of in slowdowns.values()} == {tuple(o.own for o in slowdowns[0])}


def test_a_fit_repeats_and_is_better_than_no_model(tmp_path: Path) -> None:
    model = fit_model(table(), SMALL, snapshots=24, seed=2)
    done = []
    for _ in range(2):
        with Executor(
            Threads(2), Store.kept("fit", tmp_path / "kept", {}, ["fairlane.study.shipped.slowdowns.study"])
        ) as executor:
            assert fit_model(table(), SMALL, snapshots=24, seed=2, executor=executor) == model
        done.append(executor.performed)
    assert done[0] > 24
    assert done[1] == 0, "simulations that were kept are not made again"
    error = model.coefficients[0].error
    assert error.count >= 20
    assert error.mean_error < error.baseline_error
    model.save(tmp_path / "model.toml")
    assert load_model(tmp_path / "model.toml") == model
    with pytest.raises(ScenarioError, match="were simulated"):
        fit_model(table(), SMALL, snapshots=1, seed=2)


def test_errors_are_of_the_simulated_slowdown() -> None:
    predicted, simulated = numpy.array([1.0, 2.0, 1.1]), numpy.array([1.25, 1.6, 1.1])
    error = ErrorMetrics.of(predicted / simulated, 1 / simulated)
    assert (error.count, error.mean_error, error.bias) == (3, round((0.2 + 0.25) / 3, 4), round(0.05 / 3, 4))
    assert error.baseline_error == pytest.approx((0.2 + 0.375 + 1 / 11) / 3, abs=1e-4)


def test_the_shipped_model_is_of_the_mix_of_the_examples(forecast: Forecast) -> None:
    mix = PatternMix.from_file(MIX)
    assert forecast.model.mix == mix
    for share, one in zip(mix.pattern, forecast.model.coefficients, strict=True):
        verdict, _ = judge(observe(program_of(Job(ranks=64, workload=share.workload).source, 64)))
        assert (share.kind, share.unit) == (verdict.kind, verdict.unit)
        assert one.error.mean_error < one.error.baseline_error / 2


def test_jobs_run_at_the_pace_of_their_neighbours(forecast: Forecast, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two jobs, the second one comes when half of the first is done: by hand, with a made-up slowdown of 2 together."""
    slow = lambda there: [2.0 if len(there.numbers) > 1 else 1.0 for _ in there.numbers]  # noqa: E731
    monkeypatch.setattr(Neighbourhood, "by_neighbours", slow)
    monkeypatch.setattr(Forecast, "isolated", lambda self, job: (forecast_use(self, job), 1.0))
    jobs = [LoggedJob(1, 0, 100, 2, 100, 1), LoggedJob(2, 50, 100, 2, 100, 2)]
    found = replay(jobs, forecast.fabric, PLACEMENTS["linear"](), forecast=forecast)
    # From 50 both go at half speed: the first ends at 150, with 50 of the second done; that goes on alone until 200.
    assert [one.end for one in found.jobs] == pytest.approx([150, 200])
    assert [one.lost for one in found.jobs] == pytest.approx([50, 50])
    assert [one.slowdown for one in found.jobs] == pytest.approx([1.5, 1.5])


def forecast_use(forecast: Forecast, job: Resident) -> object:
    return utilisation_of(forecast.fabric, job.hosts, forecast.bench.best(job.pattern, job.ranks))


@given(
    rows=st.lists(
        st.tuples(st.integers(0, 200), st.sampled_from([1, 2, 8, 16, 32]), st.integers(1, 99)), min_size=1, max_size=12
    ),
    name=st.sampled_from(["linear", "box", "pattern", "random"]),
)
@settings(max_examples=15)
def test_laws_of_slowed_schedules(forecast: Forecast, rows: list[tuple[int, int, int]], name: str) -> None:
    jobs = [LoggedJob(at, submit, run, hosts, run, at) for at, (submit, hosts, run) in enumerate(sorted(rows))]
    found = replay(jobs, forecast.fabric, PLACEMENTS[name](), forecast=forecast, communication=forecast.communication)
    assert len(found.jobs) + len(found.refused) == len(jobs)
    for at, one in enumerate(found.jobs):
        assert one.start >= one.job.submit
        most = forecast.model.coefficients[forecast.pattern(one.job.number)]
        assert 0.999 * most.min_own <= one.slowdown <= 1.001 * most.max_own * most.max_neighbours
        assert one.lost >= 0
        for other in found.jobs[at + 1 :]:
            overlap = one.start < other.end - 1e-6 and other.start < one.end - 1e-6
            assert not overlap or not set(one.hosts) & set(other.hosts)


def test_verification_compares_with_simulations(forecast: Forecast) -> None:
    jobs = [LoggedJob(at, 0, 100, 16, 100, at) for at in range(8)]
    found = replay(jobs, forecast.fabric, PLACEMENTS["random"](), forecast=forecast)
    checked = verify(found, forecast, 1)
    assert checked.snapshots == 1
    assert checked.jobs.height >= 2
    assert checked.error is not None
    assert checked.error.mean_error == pytest.approx(
        float(((checked.jobs["predicted"] / checked.jobs["simulated"]) - 1).abs().mean()),  # type: ignore[arg-type]
        abs=1e-4,
    )
    assert verify(replay(jobs[:1], forecast.fabric, PLACEMENTS["box"](), forecast=forecast), forecast, 2).error is None


@pytest.mark.parametrize(
    ("slowdown", "utilisation", "verdicts"),
    [(1.26, 0.784, [True, True]), (1.27, 0.784, [False, True]), (1.26, 0.783, [True, False]), (1.0, 0.9, [True, True])],
)
def test_pattern_aware_is_as_fast_as_contiguous_within_5_and_as_full_as_linear_within_2_percent(
    slowdown: float, utilisation: float, verdicts: list[bool]
) -> None:
    """Against a mean slowdown of 1.2 of boxes, 1.05 times which is 1.26, and a linear utilisation of 0.8, 0.784."""
    rows = {
        "box": {"mean_slowdown": 1.2, "utilisation": 0.5},
        "linear": {"mean_slowdown": 9.0, "utilisation": 0.8},
        "pattern": {"mean_slowdown": slowdown, "utilisation": utilisation},
    }
    found = list(pattern_aware_findings(rows))
    assert [held for _, held in found] == verdicts
    assert f"{slowdown:.3f}" in found[0][0]


def test_allocators_are_compared_in_the_order_given_by_the_work_that_they_get_done(forecast: Forecast) -> None:
    read = read_log(LOG, hosts=128, max_jobs=60)
    names = ("box", "linear", "pattern")
    found = compare_allocators(read.jobs, forecast.fabric, {one: PLACEMENTS[one]() for one in names}, forecast=forecast)
    assert found.table["allocator"].to_list() == list(names)
    rows = found.metrics
    assert rows["pattern"].mean_slowdown < rows["linear"].mean_slowdown, "what it is made for"
    assert all(row.useful <= row.utilisation * 1.01 for row in rows.values())


def test_the_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture, placed = tmp_path / "gantt.png", tmp_path / "placed.csv"
    options = ["--slowdown", "torus-128", "--jobs", "40", "--load", "2", "--claim", "--verify", "1"]
    files = ["-o", str(picture), "--placed", str(placed)]
    assert execute(["schedule", str(LOG), *options, *files]) == 0
    out = capsys.readouterr().out
    assert "pattern-aware allocation as fast as contiguous" in out
    assert "simulated" in out
    assert_drawn(picture)
    assert placed.read_text(encoding="utf-8").splitlines()[1].startswith("box,1,0,0.0,1451.0,1.0,0.0,128,host[0-127]")
    assert execute(["schedule", str(LOG), *options[:2], "--jobs", "40", "--allocator", "linear", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert rows["linear"]["mean_slowdown"] > 1
    assert execute(["slowdown", "show", "torus-128"]) == 0
    assert "all_to_all" in capsys.readouterr().out
    mix = tmp_path / "mix.toml"
    mix.write_text('[[pattern]]\nkind = "hybrid"\nshare = 1\nworkload = "ring"\n', encoding="utf-8")
    model = tmp_path / "model.toml"
    fitted = ["slowdown", "fit", str(mix), "--set", "sides=[4,2]", "--snapshots", "20", "-o", str(model)]
    assert execute(fitted) == 0
    assert load_model(model).snapshots == 20


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--slowdown", "torus-12"], 'model = "torus-12"'),
        (["--slowdown", "torus-128", "--fabric", "torus"], "comes from the model"),
        (["--slowdown", "torus-128", "--mix", str(MIX)], "comes from the model"),
        (["--set", "sides=[4,4]", "--verify", "3"], "there is no model to verify"),
        (["--set", "sides=[4,4]", "--claim"], "is about slowdowns"),
        (["--slowdown", "torus-128", "--claim", "--allocator", "box"], "--claim needs linear, pattern too"),
        (["--set", "sides=[4,4]", "--hours", "5:3"], "no span of time"),
        (["--set", "sides=[4,4]", "-o", "x.gif"], ".png, .svg, .pdf, .html"),
        (["--set", "sides=[4,4]", "-o", "/nowhere/x.png"], "there is no such folder"),
        (["--set", "sides=[4,4]", "--allocator", "box:shape=[5,1]"], "does not fit the grid"),
        (["--set", "sides=[4,4]", "--allocator", "box:shape=cub"], 'shape = "cub": unknown name; allowed: cube, prism'),
        (["--set", "sides=[4,4]", "--allocator", "box:shape=[0,1]"], "shape[0] = 0: out of range; allowed: at least 1"),
        (["--set", "sides=[8,4,4]", "--jobs", "9", "-o", "x.png", "--hours", "900:910"], "the last job ends after"),
        ([], "missing: what the jobs run on"),
    ],
)
def test_wrong_options_are_named(options: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["schedule", str(LOG), *options]) == 2
    assert words in capsys.readouterr().err


def test_jobs_that_no_shape_holds_are_named_and_the_rest_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log.swf"
    line = "{} 0 -1 100 {} -1 -1 4 200 -1 1 1 1 1 1 1 -1 -1\n"
    log.write_text(line.format(1, 4) + line.format(2, 7), encoding="utf-8")
    box = ["schedule", str(log), "--set", "sides=[4,4]", "--allocator", "box:shape=[2,2]"]
    assert execute(box) == 0
    words = "log.swf:2: processors = 7: job 2 gets no hosts even on the empty machine"
    assert words in capsys.readouterr().err
    assert execute([*box, "--strict"]) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("extra_hops", "links"), "does not have the features"),
        (("[fabric]", "[fabrik]"), "fabrik"),
        (('kind = "hybrid"', 'kind = "hybrit"'), "hybrid"),
        (("seed = 1", "seed = "), "not valid TOML"),
        (("seed = 1", "seed = 2026-01-01"), "seed"),
    ],
)
def test_models_that_are_wrong_are_refused(tmp_path: Path, change: tuple[str, str], words: str) -> None:
    path = tmp_path / "model.toml"
    load_model("torus-128").save(path)
    path.write_text(path.read_text(encoding="utf-8").replace(*change), encoding="utf-8")
    with pytest.raises(ScenarioError, match=words):
        load_model(path)
    with pytest.raises(ScenarioError, match="workload"):
        fit_model(table(), PatternMix.model_validate({"pattern": [{"kind": "hybrid", "share": 1}]}), snapshots=5)
