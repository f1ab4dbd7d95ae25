"""The frame of reproductions: claims, plans, cells that survive, and the judgement of made-up results."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from fairlane import ScenarioError
from fairlane.cli.main import execute
from fairlane.controller import slack
from fairlane.reproduce import PAPERS, plan, reproduce
from fairlane.reproduce.claims import claims_of
from fairlane.reproduce.paper import Done
from fairlane.reproduce.running import perform_all, source_of
from fairlane.reproduce.savoie2020.cells import Cell
from fairlane.reproduce.savoie2020.experiment import CONTROL, DEFAULT, Scale
from fairlane.reproduce.savoie2020.experiments import EXPERIMENTS
from fairlane.reproduce.savoie2020.rerouted import rerouted
from fairlane.reproduce.savoie2020.results import Results
from fairlane.reproduce.savoie2020.selection import Measured, Selection
from fairlane.reproduce.savoie2020.systems import SYSTEMS, scenario, static_jobs
from fairlane.study import Study
from fairlane.tasks.progress import TaskProgress
from fairlane.tasks.sources import _another, sources
from fairlane.tasks.store import Store
from fairlane.tasks.task import Outcome, Stopwatch
from small_study import Here

STUDIES = Path(__file__).parents[2] / "docs" / "reproduction" / "savoie2020" / "studies"
TINY = Scale(placements=1, periods=3, period="1 ms", draws=2)


@pytest.mark.parametrize("name", list(PAPERS))
def test_every_claim_has_a_check_that_needs_known_experiments(name: str) -> None:
    paper = PAPERS[name]
    claims = claims_of(name)
    assert {claim.id for claim in claims} == set(paper.checks)
    used = {experiment for check in paper.checks.values() for experiment in (*check.experiments, *check.shown)}
    assert used == set(paper.experiments)


def test_default_runs_are_shared_with_known_experiments() -> None:
    assert {experiment.default for experiment in EXPERIMENTS.values()} <= set(EXPERIMENTS)


def cells_of(claim: str, **options: Any) -> list[Cell]:
    return list(plan("savoie2020", only=claim, **options).selection.tasks)


def test_the_systems_have_room_for_their_jobs() -> None:
    for name, system in SYSTEMS.items():
        jobs = static_jobs(system)
        assert sum(job["ranks"] for job in jobs) <= system.hosts
        scenario(name, system, jobs, 1)


@pytest.mark.parametrize("name", list(SYSTEMS))
def test_the_studies_of_controllers_are_of_the_same_jobs(name: str) -> None:
    study = Study.load(STUDIES / f"{name}.toml")
    found = study.scenario(next(study.points()))
    expected = scenario(name, SYSTEMS[name], static_jobs(SYSTEMS[name]), 1)
    copies = [
        [(label, job.ranks, job.workload) for job in it.jobs for label in job.names()] for it in (found, expected)
    ]
    assert copies[0] == copies[1]
    assert found.fabric == expected.fabric
    assert set(study.treatments) == {"algorithm1", "slack"}


def test_a_controller_beside_is_run_and_not_judged() -> None:
    with pytest.raises(ScenarioError, match='did you mean "slack"'):
        plan("savoie2020", beside=["slak"])
    chosen = plan("savoie2020", only="savoie.small.adaptive-routing", quick=True, beside=["slack"])
    assert isinstance(chosen.selection, Selection)
    cells = [(cell.experiment, cell.treatment) for cell in chosen.selection.tasks]
    assert ("small.static", "slack") in cells
    assert ("small.adaptive-routing", "slack") not in cells, "it has no control at all"
    assert {name: it.judged for name, (it, _) in chosen.selection.experiments.items()} == {
        "small.static": CONTROL,
        "small.adaptive-routing": DEFAULT,
    }


def test_a_plan_shares_default_runs_and_says_what_is_left_out() -> None:
    quick = plan("savoie2020", only="savoie.small.threshold", quick=True)
    cells = [(cell.experiment, cell.treatment) for cell in quick.selection.tasks]
    assert sorted(cells) == [
        ("small.static", DEFAULT),
        ("small.static", CONTROL),
        ("small.threshold-0.4", CONTROL),
        ("small.threshold-1.0", CONTROL),
    ]
    assert all("of 500" in words for words in quick.left_out.values())


def test_unknown_papers_and_claims_are_named() -> None:
    with pytest.raises(ScenarioError, match='did you mean "savoie2020"'):
        plan("savoie2019")
    with pytest.raises(ScenarioError, match="--beside: wilke2020 has no such option"):
        plan("wilke2020", beside=["slack"])
    with pytest.raises(ScenarioError, match=r'did you mean "savoie\.small\.static"'):
        plan("savoie2020", only=["savoie.small.static", "savoie.small.statik"])


def test_several_claims_can_be_chosen() -> None:
    chosen = plan("wilke2020", only=["wilke.allreduce", "wilke.virtual-lanes"])
    assert [claim.id for claim in chosen.claims] == ["wilke.virtual-lanes", "wilke.allreduce"], "in the paper's order"
    assert len(plan("wilke2020").claims) == 8


def computed(cells: list[Cell], folder: Path) -> dict[Cell, Done]:
    return perform_all({cell: cell for cell in cells}, Here(), Store(folder), TaskProgress(wanted=False))


def test_cells_are_stored_and_not_computed_again(tmp_path: Path) -> None:
    cells = [Cell("small.compute-90", 1, treatment, TINY) for treatment in (DEFAULT, CONTROL)]
    first = computed(cells, tmp_path)
    assert [done.error for done in first.values()] == [None, None]
    assert all(done.seconds > 0 and done.cpu > 0 for done in first.values())
    files = {path: path.stat().st_mtime_ns for path in tmp_path.glob("answers/*.json")}
    assert {path.stem for path in files} == {cell.digest for cell in cells}
    second = computed(cells, tmp_path)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.glob("answers/*.json")} == files
    assert second[cells[0]].answer == cells[0].compute(Stopwatch()), "a cell depends on nothing but itself"
    jobs = Results.of(second).jobs("small.compute-90")
    assert jobs.height == 8
    assert jobs["w_default"].drop_nulls().is_between(-1, 0.5).all()


def test_another_simulator_makes_other_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = Cell("small.static", 1, CONTROL, TINY)
    before = cell.digest
    monkeypatch.setattr("fairlane.reproduce.savoie2020.cells.sources", lambda _controller: "another")
    assert Cell("small.static", 1, CONTROL, TINY).digest != before


def test_more_placements_leave_cells_as_they_are() -> None:
    few, many = ({cell.digest for cell in cells_of("savoie.small.static", placements=count)} for count in (2, 3))
    assert len(few) == 4
    assert few < many


def test_a_controller_depends_on_its_own_source_only() -> None:
    digests = {name: sources(name) for name in (None, "none", CONTROL, "slack")}
    assert len(set(digests.values())) == 4
    parts = Path(slack.__file__).parent
    assert not any(_another(Path("controller", "slack", part.name), "slack") for part in parts.glob("*.py"))
    assert all(_another(Path("controller", "slack", part.name), CONTROL) for part in parts.glob("*.py"))
    assert not _another(Path("controller", "base.py"), CONTROL)


def test_another_routing_keeps_hosts_and_compute_times() -> None:
    before = scenario("small", SYSTEMS["small"], static_jobs(SYSTEMS["small"]), 3)
    after = rerouted(before, "adaptive")
    assert after.fabric.routing is not None
    assert after.fabric.routing.name == "adaptive"
    pairs = zip(before.resolve().jobs, after.resolve().jobs, strict=True)
    assert all((one.hosts, one.compute) == (other.hosts, other.compute) for one, other in pairs)


def test_a_cell_that_fails_is_reported_and_the_others_go_on(tmp_path: Path) -> None:
    good = Cell("small.compute-90", 1, "none", TINY)
    bad = Cell("small.compute-90", 1, "no such controller", TINY)
    done = computed([bad, good], tmp_path)
    assert "unknown controller" in (done[bad].error or "")
    assert done[good].answer is not None
    assert "no such controller" in next(tmp_path.glob("failed/*.toml")).read_text()


def test_a_reproduction_ends_in_judged_claims_tables_figures_and_a_page(tmp_path: Path) -> None:
    chosen = plan("savoie2020", only="savoie.small.adaptive-routing", quick=True, periods=2)
    found = reproduce(chosen, tmp_path, TaskProgress(wanted=False), workers=1)
    assert not found.failed
    assert [one.scaled for one in found.judged] == [True]
    assert len(found.judged[0].findings) == 4
    page = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "a try-out, not a judgement" in page
    for name in ("small.static", "small.adaptive-routing"):
        assert pl.read_csv(tmp_path / f"{name}.csv").height == 8
        assert f"]({name}.png)" in page
        assert (tmp_path / f"{name}.png").is_file()


def test_the_command_goes_on_only_when_told_to(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Store(tmp_path).keep(Cell("small.static", 9, CONTROL, TINY), Outcome({}))
    words = ["reproduce", "savoie2020", "--out", str(tmp_path)]
    assert execute(words) == 2
    assert "has cells already: --resume goes on with them" in capsys.readouterr().err
    (tmp_path / "file").touch()
    assert execute([*words[:-1], str(tmp_path / "file")]) == 2
    assert f'--out = "{tmp_path / "file"}": cannot be written' in capsys.readouterr().err
    (tmp_path / "page").mkdir()
    (tmp_path / "page" / "claims.csv").write_text("mine")
    assert execute([*words[:-1], str(tmp_path / "page"), "--resume"]) == 2
    assert "holds other files; allowed: a folder that is new or empty" in capsys.readouterr().err
    assert (tmp_path / "page" / "claims.csv").read_text() == "mine"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--beside", "slak"], '--beside = "slak": unknown controller; allowed: '),
        (["--dask", "foo://x:1"], '--dask = "foo://x:1": unknown protocol; allowed: tcp'),
        (["--dask", "tcp://nowhere"], "names no host and port"),
        (["--periods", "0"], "--periods = 0: out of range"),
    ],
)
def test_wrong_options_leave_no_folder(
    options: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "new" / "folder"
    assert execute(["reproduce", "savoie2020", "--quick", "--out", str(out), *options]) == 2
    assert words in capsys.readouterr().err
    assert not out.parent.exists()


def results(gains: list[float], experiment: str = "small.static") -> Results:
    """Made-up cells: everyone does 1000 alone, 900 by default, and so much more with QoS."""
    jobs = [f"job-{number}" for number in range(len(gains))]
    base = {
        "placement": [1] * len(jobs),
        "period": [0] * len(jobs),
        "job": jobs,
        "workload": ["flood_pairs"] * len(jobs),
    }
    common = {**base, "state": ["RUNNING"] * len(jobs), "accepted": [True] * len(jobs)}
    default = pl.DataFrame({**common, "iterations": [900] * len(jobs), "isolated_iterations": [1000] * len(jobs)})
    done = [round(900 * (1 + gain)) for gain in gains]
    treated = pl.DataFrame({**common, "iterations": done, "isolated_iterations": [None] * len(jobs)})
    return Results({(experiment, DEFAULT): default, (experiment, CONTROL): treated})


def held(claim: str, found: Results) -> list[bool]:
    return [held for _, held in PAPERS["savoie2020"].checks[claim].judge(found)]


def test_an_algorithm_that_starts_over_has_accepted_nothing() -> None:
    states = ["DEFAULT", "RUNNING", "RUNNING", "RUNNING", "DEFAULT", "RUNNING", "RUNNING"]
    accepted = [False, True, True, False, False, True, False]
    gains = [0, 0, 10, 20, 40, 80, 160]
    base = {"placement": [1] * 7, "period": [*range(7)], "job": ["a"] * 7, "workload": ["ring"] * 7}
    common = {**base, "state": states, "accepted": accepted}
    default = pl.DataFrame({**common, "iterations": [100] * 7, "isolated_iterations": [100] * 7})
    treated = default.with_columns(iterations=pl.Series([100 + gain for gain in gains]))
    found = Results({("small.static", DEFAULT): default, ("small.static", CONTROL): treated}).progress("small.static")
    means = {0: (0 + 0 + 0.4 + 0.8) / 4, 1: (0.1 + 1.6) / 2, 2: 0.2}
    assert dict(found.select("adopted", "improvement").iter_rows()) == pytest.approx(means)


def test_a_changed_module_of_the_cells_makes_other_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    before = Cell("small.static", 1, CONTROL, TINY).digest
    for module in ("cells", "rerouted"):
        with monkeypatch.context() as patched:
            name = f"fairlane.reproduce.savoie2020.{module}"
            patched.setattr(
                "fairlane.reproduce.savoie2020.cells.source_of",
                lambda of, name=name: "another" if of == name else source_of(of),
            )
            assert Cell("small.static", 1, CONTROL, TINY).digest != before, module


def test_what_makes_answers_is_part_of_the_simulator(monkeypatch: pytest.MonkeyPatch) -> None:
    read, found = Path.read_bytes, []

    def noted(path: Path) -> bytes:
        found.append("/".join(path.parts[-2:]))
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", noted)
    sources.cache_clear()
    sources()
    assert {"study/work.py", "results/derive.py", "engine/measured.py", "controller/loop.py"} <= {*found}
    assert not {"study/pool.py", "results/text.py", "cli/main.py"} & {*found}


def test_no_claim_is_judged_while_cells_of_it_failed() -> None:
    """What is left may be the better half."""
    found = results([0.1])
    experiments = {"small.static": EXPERIMENTS["small.static"]}
    for failed, missing in ({}, []), ({("small.static", CONTROL): 2}, ["2 cells of small.static that failed"]):
        measured = Measured(found.rows, {}, failed, experiments)
        assert measured.missing("small.static") == missing


def test_the_static_claim_is_judged_by_its_bands() -> None:
    assert held("savoie.small.static", results([0.2, 0.12, 0.11, 0.105, 0.02, -0.04])) == [True] * 5
    assert held("savoie.small.static", results([0.5, -0.1, -0.1, 0.0])) == [False] * 4 + [True]


def test_another_routing_is_judged_against_the_jobs_alone_under_the_first() -> None:
    found = results([0.05, 0.0])
    found.rows["small.adaptive-routing", DEFAULT] = found.rows["small.static", DEFAULT].with_columns(
        iterations=pl.lit(980), isolated_iterations=pl.lit(5000)
    )
    cells = found.rerouted("small.adaptive-routing")
    assert cells is not None
    assert cells["w_rerouted"].to_list() == pytest.approx([-0.02, -0.02])
    assert found.rerouted("small.static", "medium.static") is None


def test_w_and_improvement_are_ratios_of_sums() -> None:
    row = results([0.1]).jobs("small.static").row(0, named=True)
    assert row["w_default"] == pytest.approx(-0.1)
    assert row["w_treated"] == pytest.approx(-0.01)
    assert row["improvement"] == pytest.approx(0.1)
