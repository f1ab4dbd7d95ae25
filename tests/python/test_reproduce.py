"""The framework of reproductions: folders are read, studies prepared and run, made-up tables judged, figures drawn."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from fairlane import ScenarioError
from fairlane.cli.main import execute
from fairlane.controller import slack
from fairlane.reproduce import PAPERS, conclude, folder_of, plan
from fairlane.reproduce.folder import Claim
from fairlane.reproduce.judging import HOLDS, findings
from fairlane.reproduce.planning import Prepared
from fairlane.reproduce.running import Keyed, perform
from fairlane.scenario import Scenario
from fairlane.study import Study
from fairlane.study.plan import Plan as StudyPlan
from fairlane.study.plan import plan as plan_study
from fairlane.study.sql import Database, QueryError
from fairlane.tasks.executor import Executor
from fairlane.tasks.sources import COUNTING, code_digest, of_another_controller, sources
from fairlane.tasks.store import Store
from pictures import assert_drawn
from small_study import Here

STUDIES = Path(__file__).parents[2] / "docs" / "reproduction" / "savoie2020" / "studies"
CONTROL = "process_prioritization"

PAPER = """
title = "A paper"
citation = "Nobody: Nothing, 2020."
options = ["placements", "periods", "beside"]
beside = "qos"
quick."control.toml" = { note = "one placement", set = { placements = 1 } }
[[study]]
name = "control"
file = "control.toml"
[[study]]
name = "times"
file = "times.toml"
quick = { only = { size = ["small"] }, note = "small messages only" }
[[table]]
name = "medians"
csv = "{size}"
studies = ["times"]
sql = "SELECT size, seed, median(seconds) AS seconds FROM iterations GROUP BY ALL ORDER BY ALL"
"""
CLAIMS = """
[[claim]]
id = "large-is-slow"
where = "I"
setup = "a ring"
claim = "large messages are slow"
check = "large / small > 2"
studies = ["times"]
sql = '''
SELECT large.seconds / small.seconds AS value, 2.0 AS bound FROM medians large, medians small
WHERE large.size = 'large' AND small.size = 'small' AND large.seed = small.seed
'''
[[claim.clause]]
says = "large / small {value:.2f}"
band = "> bound"
[[claim]]
id = "qos"
where = "II"
setup = "two rings"
claim = "nothing is lost"
check = "min improvement >= -0.5"
studies = ["control"]
sql = "SELECT min(improvement) AS value FROM work WHERE treatment = 'qos'"
[[claim.clause]]
says = "min improvement {value:+.3f}"
band = ">= -0.5"
reported = "0"
"""
FIGURES = """
[[figure]]
file = "times"
title = "Times"
[[figure.panel]]
kind = "box"
sql = "SELECT size, seconds FROM iterations WHERE seconds IS NOT NULL"
x = "size"
y = "seconds"
"""
SCENARIO = """
duration = "3 ms"
fabric = { topology = "crossbar", hosts = 8, bandwidth = "100 Gb/s" }
observe = { iterations = ["ring"] }
[[jobs]]
name = "ring"
ranks = 4
stop = 4
workload = { name = "ring", message_size = "1 KiB", compute = "1 us" }
"""
CONTROLLED = """
scenario = "ring.toml"
placements = 2
[treatments.qos]
controller = "none"
period = "100 us"
periods = 3
"""
TIMES = """
scenario = "ring.toml"
seeds = [1, 2]
[factors.size]
small = { "jobs[0].workload.message_size" = "1 KiB" }
large = { "jobs[0].workload.message_size" = "64 KiB" }
[[rules]]
where = { size = "small", seed = 2 }
skip = true
[measure]
until = "ring"
tables.iterations = "SELECT rank, iteration, time_s AS seconds FROM iterations"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "paper"
    place.mkdir()
    plain = SCENARIO.replace("stop = 4\n", "").replace('observe = { iterations = ["ring"] }\n', "")
    files = {
        "paper.toml": PAPER,
        "claims.toml": CLAIMS,
        "figures.toml": FIGURES,
        "ring.toml": SCENARIO.replace("crossbar", "fat_tree").replace("hosts = 8", "hosts = 8, levels = 2, radix = 4"),
        "control.toml": CONTROLLED.replace("ring.toml", "plain.toml"),
        "plain.toml": plain.replace("crossbar", "fat_tree").replace("hosts = 8", "hosts = 8, levels = 2, radix = 4"),
        "times.toml": TIMES,
    }
    for name, text in files.items():
        (place / name).write_text(text)
    return place


def run(place: Path | str, out: Path, **options: Any) -> Any:
    with Executor(Here(), Store(out)) as executor:
        return conclude(plan(place, **options), executor, out)


def test_a_paper_without_python_is_run_judged_and_written_down(folder: Path, tmp_path: Path) -> None:
    found = run(folder, tmp_path / "out")
    assert not found.failed
    assert [(one.claim.id, one.holds, one.scaled) for one in found.judged] == [
        ("large-is-slow", True, False),
        ("qos", True, False),
    ]
    (ratio,) = found.judged[0].findings
    large, small = (pl.read_csv(tmp_path / "out" / f"{size}.csv") for size in ("large", "small"))
    assert (large["seed"].to_list(), small["seed"].to_list()) == ([1, 2], [1]), "a rule leaves out a combination"
    assert found.judged[0].findings[0].value == pytest.approx(large["seconds"][0] / small["seconds"][0], rel=1e-5)
    assert ratio.low == 2.0
    assert ratio.high is None
    page = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    assert "](times.png)" in page
    assert "paper: 0 | yes |" in page
    assert_drawn(tmp_path / "out" / "times.png")
    # Everything again: nothing is computed, and the verdicts are the same.
    answers = {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "answers").iterdir()}
    again = run(folder, tmp_path / "out")
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "answers").iterdir()} == answers
    assert again.judged == found.judged
    assert again.unused == 0


def test_quick_and_only_leave_out_what_they_say(folder: Path) -> None:
    chosen = plan(folder, quick=True)
    assert chosen.left_out == {"control": "one placement", "times": "small messages only"}
    times, control = (chosen.studies[name].study for name in ("times", "control"))
    assert times is not None
    assert control is not None
    assert [point.parameters for point in times.points()] == [{"size": "small"}]
    assert control.table.placements == [{"seed": 1}]
    assert list(plan(folder, only="qos").studies) == ["control"]


def test_a_claim_whose_study_was_left_out_is_not_judged(folder: Path, tmp_path: Path) -> None:
    text = (folder / "paper.toml").read_text()
    (folder / "paper.toml").write_text(text.replace("only = { size", "skip = true, only = { size"))
    found = run(folder, tmp_path / "out", quick=True, only="large-is-slow")
    assert [(one.holds, one.findings, one.missing) for one in found.judged] == [
        (None, [], ["times: small messages only"])
    ]
    assert HOLDS[None] == "not run"


@pytest.mark.parametrize(
    ("file", "before", "after", "words"),
    [
        ("paper.toml", "citation", "citatoin", 'paper.toml:3: citatoin = "Nobody: Nothing, 2020.": unknown key'),
        ("paper.toml", 'name = "times"', 'name = "control"', "duplicate name"),
        ("claims.toml", '"times"', '"tiems"', 'did you mean "times"'),
        ("claims.toml", '"> bound"', '">> bound"', "is no band"),
        ("claims.toml", "medians large,", "median large,", "claim large-is-slow: has a query that is wrong"),
        ("claims.toml", "{value:.2f}", "{valeu:.2f}", "does not fit the columns value, bound"),
        ("figures.toml", 'y = "seconds"', 'y = "second"', "figure times: cannot be drawn"),
        ("times.toml", 'size = "small", seed', 'siez = "small", seed', 'did you mean "size"'),
        ("times.toml", 'until = "ring"', 'until = "rnig"', 'did you mean "ring"'),
        ("times.toml", "FROM iterations", "FROM iteration", "measure.tables.iterations"),
    ],
)
def test_what_is_wrong_with_a_folder_is_named(
    folder: Path, tmp_path: Path, file: str, before: str, after: str, words: str
) -> None:
    text = (folder / file).read_text()
    assert before in text
    (folder / file).write_text(text.replace(before, after, 1))
    if file == "times.toml" and "FROM" in before:  # found out where it is simulated
        assert words in run(folder, tmp_path / "out", only="large-is-slow").failed[0].error
        return
    with pytest.raises(ScenarioError) as error:
        run(folder, tmp_path / "out", only="large-is-slow")
    assert words in str(error.value)


def test_a_method_of_ones_own_runs_with_permission_only(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairlane.reproduce.open_pool", Here)
    (folder / "figures.toml").unlink()
    (folder / "method.py").write_text(
        "def doubled(tables):\n    return tables.ask('SELECT 2 * seconds AS twice FROM medians')\n"
    )
    text = (folder / "paper.toml").read_text()
    (folder / "paper.toml").write_text(f'{text}[[table]]\nname = "twice"\ncall = "method.py:doubled"\ncsv = "twice"\n')
    words = ["reproduce", str(folder), "--only", "large-is-slow", "--quiet", "--workers", "1", "--out"]
    assert execute([*words, str(tmp_path / "refused")]) == 2
    assert "which is not permitted" in capsys.readouterr().err
    assert execute([*words, str(tmp_path / "out"), "--allow-code"]) == 0
    assert pl.read_csv(tmp_path / "out" / "twice.csv").height == 3


@pytest.mark.parametrize("name", PAPERS)
def test_papers_of_fairlane_can_be_read_and_all_their_studies_are_judged(name: str) -> None:
    folder = folder_of(name)
    entries = {entry.name for entry in folder.paper.study}
    assert {study for claim in folder.claims for study in (*claim.studies, *claim.shown)} == entries
    assert folder.figures


@pytest.mark.parametrize("name", PAPERS)
def test_quick_studies_need_nothing_that_the_package_does_not_have(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("FAIRLANE_TRACES", "FAIRLANE_JOBS"):
        monkeypatch.delenv(variable, raising=False)
    chosen = plan(name, quick=True)
    assert not [words for words in chosen.left_out.values() if "there is no" in words]
    skipped = {entry.name for entry in chosen.folder.paper.study if entry.quick.skip}
    assert set(chosen.studies) == {entry.name for entry in chosen.folder.paper.study} - skipped


def test_unknown_papers_claims_and_options_are_named() -> None:
    with pytest.raises(ScenarioError, match='did you mean "savoie2020"'):
        plan("savoie2019")
    with pytest.raises(ScenarioError, match="--cabling: savoie2020 has no such option"):
        plan("savoie2020", cabling="even")
    with pytest.raises(ScenarioError, match=r'did you mean "savoie\.small\.static"'):
        plan("savoie2020", only=["savoie.small.static", "savoie.small.statik"])
    with pytest.raises(ScenarioError, match='did you mean "slack"'):
        plan("savoie2020", beside=["slak"])


def studied(prepared: Prepared) -> Study:
    assert prepared.study is not None
    return prepared.study


def calibrated(name: str, compute: int = 10**8, **options: Any) -> StudyPlan:
    """A study of savoie2020 with made-up compute times."""
    chosen = plan("savoie2020", quick=True, **options)
    found = plan_study(studied(chosen.studies[name]))
    for cell in found.cells:
        cell.decide([compute] * len(cell.workloads), found.study.treatments)
    return found


def test_default_runs_are_shared_among_studies() -> None:
    names = ("small.static", "small.threshold-0.4", "small.long-observation", "small.adaptive-routing")
    cells = {name: calibrated(name).cells[0] for name in names}
    runs = [run for cell in cells.values() for run in cell.runs]
    assert len({run.task.digest for run in runs if run.treatment == "default"}) == 1
    assert len({run.task.digest for run in runs if run.treatment != "default"}) == 4


def test_another_routing_keeps_hosts_and_compute_times() -> None:
    (cell,) = calibrated("small.adaptive-routing").cells
    default, treated = (cell.of(treatment)[0].task.scenario for treatment in ("default", "adaptive"))
    assert default["jobs"] == treated["jobs"]
    assert (default["fabric"]["routing"]["name"], treated["fabric"]["routing"]["name"]) == ("d_mod_k", "adaptive")


def test_a_controller_beside_is_run_and_not_judged() -> None:
    chosen = plan("savoie2020", quick=True, beside=["slack"])
    kinds = {
        name: list(studied(one).treatments) for name, one in chosen.studies.items() if one.entry.file == "control.toml"
    }
    assert all(treatments == [CONTROL, "slack"] for treatments in kinds.values())
    assert list(studied(chosen.studies["small.adaptive-routing"]).treatments) == ["adaptive"]
    assert chosen.studies["small.arrivals"].arguments["controllers"] == [CONTROL, "slack"]
    (cell,) = calibrated("small.static", beside=["slack"]).cells
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
    before = Keyed(task).digest
    assert Keyed(task, "another method").digest != before
    monkeypatch.setattr("fairlane.reproduce.running.sources", lambda controller: f"another {controller}")
    assert Keyed(task).digest != before
    few, many = ({cell.of(CONTROL)[0].task.digest for cell in plan_with(placements).cells} for placements in (2, 3))
    assert few < many, "more placements leave runs as they are"


def plan_with(placements: int) -> StudyPlan:
    chosen = plan("savoie2020", only="savoie.small.static", placements=placements)
    found = plan_study(studied(chosen.studies["small.static"]))
    for cell in found.cells:
        cell.decide([10**8] * 8, found.study.treatments)
    return found


def test_a_controller_depends_on_its_own_source_only() -> None:
    digests = {name: sources(name) for name in (None, "none", CONTROL, "slack")}
    assert len(set(digests.values())) == 4
    parts = Path(slack.__file__).parent
    assert not any(
        of_another_controller(Path("controller", "slack", part.name), "slack") for part in parts.glob("*.py")
    )
    assert all(of_another_controller(Path("controller", "slack", part.name), CONTROL) for part in parts.glob("*.py"))
    assert not of_another_controller(Path("controller", "base.py"), CONTROL)


def test_what_makes_answers_is_part_of_the_simulator(monkeypatch: pytest.MonkeyPatch) -> None:
    read, found = Path.read_bytes, []

    def noted(path: Path) -> bytes:
        found.append("/".join(path.parts[-2:]))
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", noted)
    code_digest.cache_clear()
    sources()
    others = {"controller/loop.py", "saturation/measure.py", "slowdown/bench.py", "models/torus-128.toml"}
    assert {*COUNTING, *others} <= {*found}
    assert not {"tasks/pools.py", "results/store.py", "cli/main.py"} & {*found}


def test_a_run_that_fails_is_reported_and_the_others_go_on(folder: Path, tmp_path: Path) -> None:
    text = (folder / "times.toml").read_text()
    (folder / "times.toml").write_text(text.replace('"64 KiB"', '"512 MiB"'))
    found = run(folder, tmp_path / "out", only="large-is-slow")
    assert [(done.error or "").partition(": ")[2] for done in found.failed] == ["job ring is not done after 3 ms"] * 2
    assert found.judged[0].missing == ["2 runs of times that failed"]
    assert found.judged[0].holds is None
    assert pl.read_csv(tmp_path / "out" / "small.csv").height == 1
    assert len(list((tmp_path / "out").glob("failed/*.toml"))) == 2


def test_arrivals_keep_hosts_and_are_compared_with_the_default(tmp_path: Path) -> None:
    chosen = plan("savoie2020", only="savoie.small.arrivals", quick=True, periods=2)
    with Executor(Here(), Store(tmp_path)) as executor:
        outcome = perform(chosen, executor)
    assert not outcome.failures
    jobs = outcome.tables.ask("SELECT job, workload, w_default FROM jobs")
    assert jobs["job"].to_list()[:2] == ["flood-0", "flood-1"]
    assert "flood-2" in jobs["job"], "the first job of a workload gives way to another"
    assert jobs["w_default"].drop_nulls().is_between(-1, 0.5).all()


def test_the_command_goes_on_only_when_told_to(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "answers").mkdir()
    (tmp_path / "answers" / "0123.json").write_text("{}")
    words = ["reproduce", "savoie2020", "--quick", "--only", "savoie.small.static", "--out", str(tmp_path)]
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
    only = ["--only", "savoie.small.static"]
    assert execute(["reproduce", "savoie2020", "--quick", *only, "--out", str(out), *options]) == 2
    assert words in capsys.readouterr().err
    assert not out.parent.exists()


def periods(rows: list[dict[str, Any]], study: str = "small.static", treatment: str = CONTROL) -> pl.DataFrame:
    common = {"study": study, "point": 0, "placement": 0, "treatment": treatment, "state": "RUNNING", "accepted": True}
    return pl.DataFrame([{**common, "period": 0, "isolated_iterations": 1000, **row} for row in rows])


def made_up(table: pl.DataFrame, workload: str = "flood_pairs") -> Database:
    """The tables that the paper makes of these periods."""
    work = table.select("study", "point", "name").unique().with_columns(workload=pl.lit(workload))
    database = Database({"periods": table, "work": work})
    for one in folder_of("savoie2020").paper.table:
        assert one.sql is not None
        database.put(one.name, database.ask(one.sql))
    return database


def gains(values: list[float]) -> Database:
    """Everyone does 1000 alone, 900 by default, and so much more with QoS."""
    done = [{"name": f"job-{at}", "iterations": round(900 * (1 + it))} for at, it in enumerate(values)]
    return made_up(periods([{**row, "default_iterations": 900} for row in done]))


def held(claim: str, tables: Database, paper: str = "savoie2020") -> list[bool]:
    (found,) = [one for one in folder_of(paper).claims if one.id == claim]
    return [one.holds for one in findings(found, tables)]


def test_the_static_claim_is_judged_by_its_bands() -> None:
    assert held("savoie.small.static", gains([0.2, 0.12, 0.11, 0.105, 0.02, -0.04])) == [True] * 5
    assert held("savoie.small.static", gains([0.5, -0.1, -0.1, 0.0])) == [False] * 4 + [True]


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
    tables = made_up(pl.concat([static, other]))
    assert tables.ask("SELECT w_rerouted, w_treated FROM rerouted").row(0) == pytest.approx((-0.02, -0.055))
    assert held("savoie.small.adaptive-routing", tables) == [True]


@pytest.mark.parametrize(
    ("band", "value", "expected"),
    [
        (">= 0.1", 0.1, True),
        ("> 0.1", 0.1, False),
        ("[0.1, bound]", 0.5, True),
        ("[0.1, bound]", 0.51, False),
        ("= bound", 0.5, True),
        ("<= bound", None, False),
        ("< nothing", 0.1, False),
    ],
)
def test_bands_compare_with_numbers_and_columns(band: str, value: float | None, expected: bool) -> None:
    clause = {"says": "found {value:.2f}", "band": band}
    claim = Claim(id="a", where="", setup="", claim="", check="", sql="SELECT * FROM t", clause=[clause])
    schema = {"value": pl.Float64, "bound": pl.Float64, "nothing": pl.Float64}
    database = Database({"t": pl.DataFrame({"value": [value], "bound": [0.5], "nothing": [None]}, schema)})
    assert [one.holds for one in findings(claim, database)] == [expected]


def test_columns_of_any_type_can_be_asked_for() -> None:
    wide = pl.Series("wide", [1, 2], pl.Int128)
    table = pl.DataFrame({"text": ["x", None], "empty": [None, None], "float": [0.5, None], "flag": [True, None]})
    found = Database({"t": table.with_columns(wide)}).ask("SELECT * FROM t")
    assert found["text"].to_list() == ["x", None]
    assert found["empty"].to_list() == [None, None]
    assert found["float"].to_list() == [0.5, None]
    assert found["flag"].to_list() == [True, None]
    assert found["wide"].to_list() == [1, 2]
    assert Database({"t": table.clear()}).ask("SELECT * FROM t").height == 0


def test_queries_only_read_and_integers_stay_integers() -> None:
    database = Database({"t": pl.DataFrame({"a": [1, 2]})})
    assert database.ask("SELECT sum(a) AS a, sum(a) * 0.5 AS b FROM t").schema == {"a": pl.Int64, "b": pl.Float64}
    for wrong in ("DROP TABLE t", "SELECT 1; SELECT 2", "SELECT * FROM read_csv('/etc/passwd')", "COPY t TO 'x.csv'"):
        with pytest.raises(QueryError):
            database.ask(wrong)


KINDS = {
    "strip": "SELECT size AS x, seconds AS y, seed::VARCHAR AS s FROM iterations",
    "scatter": "SELECT iteration AS x, seconds AS y, size AS s FROM iterations",
    "bars": "SELECT size AS x, seconds AS y, seed AS s FROM medians",
    "lines": "SELECT seed AS x, seconds AS y, size AS s, 0 AS l, 1 AS h FROM medians",
    "heatmap": "SELECT size AS x, seed::VARCHAR AS y, seconds AS value, size AS s FROM medians",
}


def test_every_kind_of_figure_is_drawn(folder: Path, tmp_path: Path) -> None:
    more = {"scatter": 'column = "s"', "lines": 'low = "l"\nhigh = "h"', "heatmap": ""}
    figures = [
        f'[[figure]]\nfile = "{kind}"\ntitle = "T"\nwidth = 5\nheight = 3\n[[figure.panel]]\nkind = "{kind}"\nx = "x"\n'
        f'y = "y"\nsql = "{sql}"\n{more.get(kind, "")}\n'
        + ('series = "s"\n' if kind not in ("scatter", "heatmap") else "")
        for kind, sql in KINDS.items()
    ]
    (folder / "figures.toml").write_text("".join(figures))
    found = run(folder, tmp_path / "out", only="large-is-slow")
    assert not found.failed
    for kind in KINDS:
        assert_drawn(tmp_path / "out" / f"{kind}.png")
