"""The reproduction of Savoie et al. 2020: its studies share runs and keep hosts, and made-up periods are judged."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from fairlane.model.scenario import Scenario
from fairlane.papers.planning import Prepared
from fairlane.papers.reproduce import folder_of, plan
from fairlane.papers.running import perform, stored_as
from fairlane.results.schemas import STUDY, types
from fairlane.study.plan import ComparedPlan
from fairlane.study.plan import plan as plan_study
from fairlane.study.sql import Database
from fairlane.study.study import Study
from fairlane.study.tasks.executor import Executor
from fairlane.study.tasks.store import Store
from papers import held, tables_of
from small_study import Here

STUDIES = Path(__file__).parents[2] / "docs" / "reproduction" / "savoie2020" / "studies"

CONTROL = "process_prioritization"


def studied(prepared: Prepared) -> Study:
    assert prepared.study is not None
    return prepared.study


def calibrated(name: str, compute: int = 10**8, **options: Any) -> ComparedPlan:
    """A study of savoie2020 with made-up compute times."""
    chosen = plan("savoie2020", quick=True, **options)
    found = plan_study(studied(chosen.studies[name]))
    for cell in found.cells:
        cell.decide([compute] * len(cell.jobs), found.study.treatments)
    return found


def test_default_runs_are_shared_among_studies() -> None:
    names = ("small.static", "small.threshold-0.4", "small.long-observation", "small.adaptive-routing")
    cells = {name: calibrated(name).cells[0] for name in names}
    runs = [run for cell in cells.values() for run in cell.runs]
    assert len({run.task.digest for run in runs if run.treatment == "default"}) == 1
    treated = {run.task.digest for run in runs if run.treatment not in ("default", "isolated")}
    assert len(treated) == len(names), "W against other isolated runs is of the same treated run"


def test_another_routing_keeps_hosts_and_compute_times() -> None:
    (cell,) = calibrated("small.adaptive-routing").cells
    default, treated = (cell.of(treatment)[0].task.scenario for treatment in ("default", "adaptive"))
    assert default["jobs"] == treated["jobs"]
    assert (default["fabric"]["routing"]["name"], treated["fabric"]["routing"]["name"]) == ("d_mod_k", "adaptive")


def test_a_controller_beside_is_run_and_not_judged() -> None:
    chosen = plan("savoie2020", quick=True, also=["slack"])
    kinds = {
        name: list(studied(one).treatments) for name, one in chosen.studies.items() if one.entry.file == "control.toml"
    }
    assert all(treatments == [CONTROL, "slack"] for treatments in kinds.values())
    assert list(studied(chosen.studies["small.adaptive-routing"]).treatments) == ["adaptive", "adaptive_isolation"]
    arrivals = studied(chosen.studies["small.arrivals"]).table.measure
    assert arrivals is not None
    assert arrivals.arguments["controllers"] == [CONTROL, "slack"]
    (cell,) = calibrated("small.static", also=["slack"]).cells
    (alike,) = calibrated("small.static").cells
    assert cell.of(CONTROL)[0].task.digest == alike.of(CONTROL)[0].task.digest


def test_upper_bounds_are_noted() -> None:
    chosen = plan("savoie2020", placements=3, periods=7, only=["savoie.small.static", "savoie.small.arrivals"])
    assert chosen.left_out == {
        "small.static": "placements 3 of 8; periods 7 of 500",
        "small.arrivals": "placements 3 of 8; periods 7 of 2500",
    }
    assert len(list(studied(chosen.studies["small.static"]).points())) == 3
    assert plan("savoie2020", only="savoie.large.static").left_out == {}


@pytest.mark.parametrize(("name", "hosts"), [("small", 64), ("medium", 324), ("large", 1296)])
def test_the_systems_have_room_for_their_jobs_and_studies_of_controllers_use_them(name: str, hosts: int) -> None:
    study = Study.load(STUDIES / f"{name}.toml")
    found = study.scenario(next(study.points()))
    own = Scenario.load(folder_of("savoie2020").path / f"{name}.toml")
    assert found.jobs == own.jobs
    assert found.fabric == own.fabric
    assert own.fabric.parameters["hosts"] == hosts
    assert sum(job.count * (job.ranks or 0) for job in own.jobs) <= hosts
    assert set(study.treatments) == {"algorithm1", "slack"}


def test_another_simulator_or_controller_makes_other_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    (cell,) = calibrated("small.static").cells
    task = cell.of(CONTROL)[0].task
    before = stored_as(task)
    monkeypatch.setattr("fairlane.papers.running.sources", lambda *_code, controller: f"another {controller}")
    assert stored_as(task) != before
    few, many = ({cell.of(CONTROL)[0].task.digest for cell in plan_with(placements).cells} for placements in (2, 3))
    assert few < many, "more placements leave runs as they are"


def plan_with(placements: int) -> ComparedPlan:
    chosen = plan("savoie2020", only="savoie.small.static", placements=placements)
    found = plan_study(studied(chosen.studies["small.static"]))
    for cell in found.cells:
        cell.decide([10**8] * 8, found.study.treatments)
    return found


def test_arrivals_keep_hosts_and_are_compared_with_the_default(tmp_path: Path) -> None:
    chosen = plan("savoie2020", only="savoie.small.arrivals", quick=True, periods=2)
    with Executor(Here(), Store(tmp_path, stored_as)) as executor:
        outcome = perform(chosen, executor)
    assert not outcome.failures
    jobs = outcome.tables.ask("SELECT job, workload, w_default FROM jobs")
    assert jobs["job"].to_list()[:2] == ["flood-0", "flood-1"]
    assert "flood-2" in jobs["job"], "the first job of a workload gives way to another"
    assert jobs["w_default"].drop_nulls().is_between(-1, 0.5).all()


def periods(rows: list[dict[str, Any]], study: str = "small.static", treatment: str = CONTROL) -> pl.DataFrame:
    common = {"study": study, "point": 0, "placement": 0, "treatment": treatment, "state": "RUNNING", "accepted": True}
    table = pl.DataFrame([{**common, "period": 0, "isolated_iterations": 1000, **row} for row in rows])
    parts = {f"{run}advance": pl.col(f"{run}iterations") for run in ("", "default_", "isolated_")}
    return table.with_columns(**parts)


def made_up(table: pl.DataFrame, workload: str = "flood_pairs") -> Database:
    """The tables that the paper makes of these periods."""
    work = table.select("study", "point", "name").unique().with_columns(workload=pl.lit(workload))
    candidates = pl.DataFrame(schema={"workload": pl.String, "threshold": pl.Float64, "share": pl.Float64})
    return tables_of("savoie2020", Database({"periods": table, "work": work, "candidates": candidates}))


def gains(values: list[float]) -> Database:
    """Everyone does 1000 alone, 900 by default, and so much more with QoS."""
    done = [{"name": f"job-{at}", "iterations": round(900 * (1 + it))} for at, it in enumerate(values)]
    return made_up(periods([{**row, "default_iterations": 900} for row in done]))


def test_the_static_claim_is_judged_by_its_bands() -> None:
    assert held("savoie2020", "savoie.small.static", gains([0.2, 0.12, 0.11, 0.105, 0.02, -0.04])) == [True] * 5
    assert held("savoie2020", "savoie.small.static", gains([0.5, -0.1, -0.1, 0.0])) == [False] * 4 + [True]


def test_w_and_improvement_are_ratios_of_sums() -> None:
    row = gains([0.1]).ask("SELECT * FROM jobs").row(0, named=True)
    assert row["w_default"] == pytest.approx(-0.1)
    assert row["w_treated"] == pytest.approx(-0.01)
    assert row["improvement"] == pytest.approx(0.1)


def test_an_algorithm_that_starts_over_has_accepted_nothing() -> None:
    states = ["DEFAULT", "RUNNING", "RUNNING", "RUNNING", "DEFAULT", "RUNNING", "RUNNING"]
    accepted = [False, True, True, False, False, True, False]
    rows = [
        {"name": "a", "period": at, "state": state, "accepted": it, "iterations": 100 + gain, "default_iterations": 100}
        for at, (state, it, gain) in enumerate(zip(states, accepted, [0, 0, 10, 20, 40, 80, 160], strict=True))
    ]
    found = made_up(periods(rows)).ask("SELECT adopted, improvement FROM progress")
    means = {0: (0 + 0 + 0.4 + 0.8) / 4, 1: (0.1 + 1.6) / 2, 2: 0.2}
    assert dict(found.iter_rows()) == pytest.approx(means)


def test_another_routing_is_judged_against_the_jobs_alone_under_the_first() -> None:
    static = periods([{"name": "a", "iterations": 945, "default_iterations": 900}])
    other = periods([{"name": "a", "iterations": 980, "default_iterations": 900}], "small.adaptive-routing", "adaptive")
    own = periods(
        [{"name": "a", "iterations": 980, "default_iterations": 900, "isolated_iterations": 990}],
        "small.adaptive-routing",
        "adaptive_isolation",
    )
    tables = made_up(pl.concat([static, other, own]))
    found = tables.ask("SELECT w_rerouted, w_rerouted_own, w_treated FROM rerouted").row(0)
    assert found == pytest.approx((-0.02, 980 / 990 - 1, -0.055))
    assert held("savoie2020", "savoie.small.adaptive-routing", tables) == [True]


OF_PLACEMENTS = ["gaining", "mean_improvement", "max_improvement", "min_improvement"]


def test_stored_tables_have_the_columns_that_are_written() -> None:
    tables = made_up(periods([{"name": "a", "iterations": 945, "default_iterations": 900}]))
    jobs = tables.ask("SELECT * EXCLUDE (file) FROM kept").columns
    columns = {
        "small.adaptive-routing": [*jobs, "rerouted_iterations", "w_rerouted", "w_rerouted_own"],
        "medium.static-slack": [jobs[0], "treatment", *jobs[1:]],  # two treatments in one file
        "small.static-replicates": ["replicate", "placement", "jobs", *OF_PLACEMENTS],  # a row for each placement
        "small.candidates": tables.ask("SELECT * FROM chosen").columns,
        "small.threshold": ["replicate", "study", "placement", "trials", "accepted"],  # of seven replicates
    }
    assert tables.ask("SELECT * FROM rerouted").columns == columns["small.adaptive-routing"]
    stored = list(STUDIES.parent.glob("*.*.csv"))
    assert len(stored) > 15
    for path in stored:
        assert pl.read_csv(path).columns == columns.get(path.stem, jobs), path.name
    known = {*types(STUDY["work"]), "message_size", "compute_share"}
    for path in STUDIES.glob("*.csv"):
        assert {*pl.read_csv(path).columns} <= known, path.name
