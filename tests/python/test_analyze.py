"""`fairlane analyze` from end to end: runs of two jobs, a recorded application, and what is wrong with a folder."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

import fairlane
from fairlane.cli.main import execute
from fairlane.cli.terminal import show
from fairlane.core.errors import FairlaneError, ResultsError, ScenarioError
from fairlane.core.tables import marks
from fairlane.model.scenario import Resolved
from fairlane.sim.analysis.again import Again
from fairlane.sim.analysis.analyze import analyze
from fairlane.sim.analysis.delays import by_neighbour
from fairlane.sim.analysis.links import AHEAD, OWN, delayers
from fairlane.sim.analysis.record import View, rounds
from fairlane.sim.analysis.result import Analysis
from fairlane.sim.analysis.walk import walk
from fairlane.views.analysis import PAGE, view
from pictures import assert_drawn
from sealed import reseal

CASCADE = """
duration = "900 us"
seed = 3

[fabric]
topology = "cascade"
groups = 2
columns = 3
rows = 2
hosts_per_switch = 2
routing = "ugal_l"

[placement]
ranks_per_host = 2

[[jobs]]
name = "halo"
ranks = 16
workload = { name = "lu", compute = "20 us", message_size = "40 KiB" }

[[jobs]]
name = "flood"
ranks = 24
workload = { name = "random_pairs", compute = "5 us", message_size = "64 KiB" }

[observe]
"""
TORUS = """
duration = "400 us"

[fabric]
topology = "torus"
sides = [3, 3]

[[jobs]]
name = "sums"
ranks = 6
workload = { name = "allreduce", compute = "10 us", message_size = "64 KiB" }

[[jobs]]
name = "flood"
ranks = 3
workload = { name = "uniform_random", compute = "5 us" }

[observe]
record = { job = "sums" }
"""
TRACE = Path(__file__).parents[1] / "data" / "traces" / "amg-27.tar.zst"
RECORDED = """
duration = "3 ms"
fabric = { topology = "fat_tree", hosts = 16, levels = 2, radix = 8 }
placement = { name = "random", ranks_per_host = 3 }

[[jobs]]
name = "amg"
trace = { path = "trace.tar.zst", compute_scale = 0.1 }

[[jobs]]
name = "flood"
ranks_per_host = 1
ranks = 6
workload = { name = "flood_pairs", compute = "5 us", message_size = "64 KiB" }
"""


def run(folder: Path, name: str, text: str) -> Path:
    file = folder / f"{name}.toml"
    file.write_text(text)
    fairlane.run(fairlane.Scenario.load(file), out=folder / name, isolated=False)
    return folder / name


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def whole(folder: Path) -> Path:
    return run(folder, "whole", CASCADE + 'iterations = ["halo"]\nrecord = { job = "halo" }')


@pytest.fixture(scope="module")
def plain(folder: Path) -> Path:
    return run(folder, "plain", CASCADE)


def look(path: Path, **options: object) -> Analysis:
    return analyze(path, progress=False, **options)  # type: ignore[arg-type]


def own_record(path: Path, job: str) -> Again:
    loaded = fairlane.load(path)
    assert isinstance(loaded, fairlane.Run)
    return Again(loaded, job, View.load(path), progress=False)


def test_the_waits_of_a_whole_record_sum_to_those_of_the_ranks(whole: Path) -> None:
    found = look(whole, iterations=None, threshold_ps=0)
    record = own_record(whole, "halo").own_record()
    assert record is not None
    ranks = found.run.ranks.filter(pl.col("name") == "halo")
    waited = (record.waits["end_ps"] - record.waits["since_ps"]).sum()
    assert waited == (ranks["late_partner_ps"] + ranks["network_ps"]).sum() > 0
    # The parts by neighbour of an iteration are those of its waits; every wait has its message and a neighbour.
    for stretch in found.stretches:
        table = by_neighbour(stretch.delays)
        assert (table["late_ps"] + table["network_ps"]).sum() == stretch.delays["wait_ps"].sum() > 0
        assert stretch.delays["message"].null_count() == stretch.delays["neighbour"].null_count() == 0
        assert (stretch.delays["network_ps"] >= 0).all()
        assert stretch.flits["flits"].sum() > 0


def test_a_run_simulated_again_gives_the_record_that_it_would_have_kept(whole: Path, plain: Path) -> None:
    kept, anew = look(whole), look(plain, job="halo")
    assert kept.iterations.equals(anew.iterations)
    for one, other in zip(kept.stretches, anew.stretches, strict=True):
        assert one.span == other.span
        assert one.record.waits.drop("message").equals(other.record.waits.drop("message"))
        columns = pl.exclude("message", "posted_at_ps", "received_at_ps", "acknowledged_at_ps")
        assert one.record.messages.select(columns).equals(other.record.messages.select(columns))
        assert one.record.departures.equals(other.record.departures)
    # The whole record goes further back than the one with the iteration before.
    assert kept.walk is not None
    assert anew.walk is not None
    assert anew.walk.steps["rank"].to_list() == kept.walk.steps["rank"].to_list()[: anew.walk.steps.height]


def test_every_walk_ends_and_goes_back_in_time_without_gaps(whole: Path) -> None:
    again = own_record(whole, "halo")
    record = again.own_record()
    assert record is not None
    causes = set()
    for start in range(0, record.waits.height, record.waits.height // 40):
        found = walk(record, again.view.links, again.view.names, start)
        assert found is not None
        causes.add(found.cause)
        steps = found.steps
        assert (steps["origin_ps"] < steps["end_ps"]).all()
        assert (steps["origin_ps"][:-1] >= steps["end_ps"][1:]).all()
        assert (steps["origin_rank"][:-1] == steps["rank"][1:]).all()
        assert (steps["late_ps"] + steps["network_ps"] == steps["end_ps"] - steps["since_ps"]).all()
        # What the packets waited is charged whole, but for rounding, to what was on the links and beyond them.
        waited = found.links["queueing_ps"].sum()
        assert found.delayers["queueing_ps"].sum() <= waited + found.delayers.height
    assert "slow message" in causes


def test_charges_to_packets_on_links_are_the_matrix_of_interference(folder: Path) -> None:
    # Buffers without end, so packets wait for packets on links only; both jobs end, so none is left waiting.
    text = CASCADE.replace("\n[[jobs]]\n", "\n[[jobs]]\nstop = 2\n") + 'record = { job = "halo" }'
    ample = text.replace("[placement]", '[network]\nbuffer = "64 MiB"\n\n[placement]').replace("900 us", "50 ms")
    again = own_record(run(folder, "ample", ample), "halo")
    record = again.own_record()
    assert record is not None
    assert again.run.meta.simulated_ps < 50 * 10**9, "both have ended"
    packets = record.departures.filter(pl.col("job") == record.number)
    found = delayers(record, packets, again.view.links, again.view.names)
    assert set(found["how"]) == {AHEAD}
    charged = found.with_columns(by=pl.col("by").replace(OWN, "halo")).group_by("by").agg(pl.col("queueing_ps").sum())
    matrix = again.run.interference.filter(pl.col("victim") == "halo").select(by="aggressor", queueing_ps="queueing_ps")
    rows = matrix.with_columns(pl.col("queueing_ps").cast(pl.Int64)).filter(pl.col("queueing_ps") > 0).sort("by").rows()
    assert charged.sort("by").rows() == rows
    assert len(rows) == 2


def test_the_command_tells_and_draws_and_keeps_what_it_found(
    plain: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = plain.parent / "pictures"
    assert execute(["analyze", str(plain), "--job", "halo", "--out", str(out)]) == 0
    told = capsys.readouterr().out
    for words in ("seed 3; halo: 16 ranks", "Waits by neighbour", "Why the longest wait", "MPI calls"):
        assert words in told
    assert (out / PAGE).is_file()
    for name in ("breakdown", "iterations", "waits", "delays", "flits", "walk"):
        assert_drawn(out / f"{name}.png")
    # The second time nothing is simulated.
    monkeypatch.setattr(Resolved, "engine", None)
    again = look(plain, job="halo")
    show([view(again)])
    assert capsys.readouterr().out in told
    for name, panels in (("breakdown", 2), ("iterations", 1), ("waits", 1), ("delays", 2), ("flits", 1)):
        assert len(again.plot(name).to_dict()["vconcat"]) == panels + 1, "panels and the note"
    assert "<svg" in again._repr_html_()
    with pytest.raises(ScenarioError, match='did you mean "flits"'):
        again.plot("flts")


def test_an_iteration_is_compared_with_the_same_one_of_the_isolated_run(plain: Path) -> None:
    """Not with another, which may do something else: and the one that lost most is looked at."""
    found = look(plain, job="halo")
    loaded = fairlane.Scenario.load(plain / "scenario.toml").resolve()
    alone = loaded.alone(0)
    engine = replace(alone, jobs=(replace(alone.jobs[0], marks=True),)).engine()
    engine.run_until(alone.duration)
    # The last rank's mark of each iteration, after that of the one before.
    ends = marks(engine).group_by("iteration").agg(pl.col("at").max()).sort("iteration")["at"].cast(pl.Int64)
    expected = (ends.diff()[1:] * 1e-12).to_list()
    table = found.iterations.filter(pl.col("isolated_seconds").is_not_null())
    assert table.height >= 3
    assert table["isolated_seconds"].to_list() == pytest.approx(expected[: table.height])
    added = table["seconds"] - table["isolated_seconds"]
    assert found.isolated is not None
    assert found.chosen.span.iteration == found.isolated.span.iteration == table["iteration"][added.arg_max() or 0]
    # There, nobody else has a packet on any link, and the job's tables have the numbers that it has in the run.
    record = found.isolated.record
    assert record.departures["job"].unique().to_list() == [record.number] == [0]
    assert found.chosen.record.departures["job"].n_unique() == 2
    mine = found.isolated.flits["flits"].sum()
    assert 0 < mine < found.chosen.flits["flits"].sum()


def test_of_the_second_job_the_isolated_record_has_its_number(folder: Path) -> None:
    head, first, second = CASCADE.partition("[observe]")[0].split("[[jobs]]")
    found = look(run(folder, "turned", f"{head}[[jobs]]{second}[[jobs]]{first}"), job="halo")
    assert found.isolated is not None
    assert found.isolated.record.departures["job"].unique().to_list() == [1]
    assert found.isolated.delays["neighbour"].null_count() == 0


def test_a_job_without_others_has_nothing_to_be_compared_with(folder: Path) -> None:
    halo, _, rest = CASCADE.partition('\n[[jobs]]\nname = "flood"')
    found = look(run(folder, "lonely", halo + "\n[observe]" + rest.partition("[observe]")[2]))
    assert found.isolated is None
    assert found.chosen.span.name == "slowest"
    assert found.chosen.span.seconds == found.iterations["seconds"].max()


def test_the_most_delayed_round_between_collectives_is_that_of_the_isolated_run_too(folder: Path, whole: Path) -> None:
    with pytest.raises(ScenarioError, match="halo has no collective with point-to-point messages before it"):
        look(whole, between_collectives=True)
    steps = 'name = "milc", compute = "2 us", message_size = "1 KiB", iterations = 3'
    milc = CASCADE.replace('name = "lu", compute = "20 us", message_size = "40 KiB"', steps)
    path = run(folder, "milc", milc)
    found, iteration = look(path, job="halo", between_collectives=True), look(path, job="halo")
    assert found.isolated is not None
    spans = [stretch.span for stretch in (found.isolated, found.chosen)]
    assert spans[0].round == spans[1].round is not None
    assert {span.iteration for span in spans} == {iteration.chosen.span.iteration}
    for stretch, whole_one in zip((found.isolated, found.chosen), iteration.stretches, strict=True):
        assert whole_one.span.from_ps <= stretch.span.from_ps < stretch.span.to_ps <= whole_one.span.to_ps
        assert stretch.record.waits["end_ps"].is_between(stretch.span.from_ps, stretch.span.to_ps).all()
    tables = [rounds(one.record) for one in iteration.stretches]
    added = (
        tables[1]
        .join(tables[0], on="iteration", suffix="_alone")
        .select("iteration", more=pl.col("seconds") - pl.col("seconds_alone"))
    )
    assert added.sort("more")["iteration"][-1] == spans[1].round


def test_iterations_can_be_chosen(whole: Path, capsys: pytest.CaptureFixture[str]) -> None:
    numbers = look(whole).iterations["iteration"].to_list()
    assert len(numbers) >= 3
    chosen = look(whole, iterations=(numbers[1], None))
    assert min(stretch.span.iteration or 0 for stretch in chosen.stretches) >= numbers[1]
    only = look(whole, iterations=(numbers[0], numbers[0]))
    assert [stretch.span.iteration for stretch in only.stretches] == [numbers[0]] * 2
    assert execute(["analyze", str(whole), "--iterations", "700..", "--quiet"]) == 2
    assert f'--iterations = "700..": no such iteration is complete; allowed: {numbers[0]} to' in capsys.readouterr().err
    assert execute(["analyze", str(whole), "--iterations", "some", "--quiet"]) == 2
    assert "FIRST..LAST" in capsys.readouterr().err


@pytest.mark.long("sim/analysis")
def test_a_recorded_application_on_a_fat_tree_is_analysed_whole(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(TRACE, folder / "trace.tar.zst")
    path = run(folder, "recorded", RECORDED)
    # Its trace is beside the scenario, not in the run's folder.
    with pytest.raises(ScenarioError, match=r"trace\.path"):
        look(path, job="amg")
    found = look(path, job="amg", files=folder)
    shutil.rmtree(path / "analysis")
    monkeypatch.chdir(folder)
    assert look(path, job="amg").chosen.delays.equals(found.chosen.delays)
    assert [stretch.span.name for stretch in found.stretches] == ["whole run"]
    ranks = found.run.ranks.filter(pl.col("name") == "amg")
    assert found.chosen.delays["wait_ps"].sum() == (ranks["late_partner_ps"] + ranks["network_ps"]).sum() > 0
    assert set(found.chosen.delays["neighbour"].drop_nulls()) <= {"same host", "same switch", "other switch"}
    assert found.walk is not None


def test_a_job_of_collectives_on_a_torus(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = run(folder, "torus", TORUS)
    found = look(path)
    made = view(found)
    show([made])
    told = capsys.readouterr().out
    assert "1 hop, collective" in told
    assert "recorded stretch" in told
    assert "flits-waits" not in made.pictures, "a torus has no groups"
    with pytest.raises(ScenarioError, match="nothing to show"):
        found.plot("flits-waits")


def test_messages_between_switches_are_drawn_against_flits(folder: Path) -> None:
    random = CASCADE.replace('"lu", compute = "20 us", message_size = "40 KiB"', '"uniform_random", compute = "5 us"')
    found = analyze(run(folder, "random", random + 'record = { job = "halo" }'), job="halo", progress=False)
    drawn = next(chart for chart in view(found).charts if chart.name == "flits-in-flight")
    points = found.chosen.against.points.drop_nulls("under_way_ps")
    assert points.height > 20
    assert [row["flits"] for row in drawn.data] == points["flits"].to_list()
    assert [row["time"] for row in drawn.data] == pytest.approx((points["under_way_ps"] * 1e-12).to_list())


def test_what_is_wrong_is_said(plain: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["analyze", str(plain), "--job", "helo"]) == 2
    assert '--job = "helo": unknown job; allowed: halo, flood; did you mean "halo"?' in capsys.readouterr().err
    assert execute(["analyze", str(plain), "--threshold", "5"]) == 2
    assert '--threshold = "5"' in capsys.readouterr().err
    assert execute(["analyze", str(tmp_path)]) == 2
    assert "holds no results" in capsys.readouterr().err

    copy = tmp_path / "copy"
    shutil.copytree(plain, copy, ignore=shutil.ignore_patterns("analysis", "scenario.toml"))
    with pytest.raises(ResultsError, match="without the scenario"):
        look(copy, job="halo")
    shutil.copy(plain / "scenario.toml", copy)
    meta = json.loads((copy / "run.json").read_text())
    (copy / "run.json").write_text(json.dumps({**meta, "partial": True}))
    with pytest.raises(ResultsError, match=r"run\.json: has changed since it was written"):
        look(copy, job="halo")
    reseal(copy)
    with pytest.raises(ResultsError, match="interrupted"):
        look(copy, job="halo")
    (copy / "run.json").write_text(json.dumps({**meta, "digest": "another"}))
    reseal(copy)
    with pytest.raises(ResultsError, match="gives other results"):
        look(copy, job="halo")
    assert not (copy / "analysis").exists(), "nothing is left of it"
    (copy / "resolved.json").unlink()
    with pytest.raises(FairlaneError, match=r"resolved\.json"):
        look(copy)
