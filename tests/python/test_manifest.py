"""What is stored has a checksum and declared columns: what has changed since is refused or computed again, by name."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from fairlane import load
from fairlane.cli.command import ExitCode
from fairlane.cli.main import execute
from fairlane.core.errors import ResultsError
from fairlane.learn.scheduler.slowdown.model import load_model
from fairlane.results import schemas
from fairlane.results.manifest import MANIFEST
from fairlane.results.parquet import read_parquet
from fairlane.sim.analysis.analyze import analyze
from sealed import reseal
from small_study import CONTROLLED, SCENARIO, STUDY, Here

pytestmark = pytest.mark.usefixtures("here")

REPRODUCERS = Path(__file__).parents[1] / "data" / "reproducers"
EVERYTHING = """
name = "everything"
duration = "200 us"
[fabric]
topology = "fat_tree"
hosts = 8
levels = 1
[observe]
interval = "20 us"
iterations = ["a"]
switch_counters = "a"
record = { job = "a", start = "30 us", stop = "60 us" }
[power]
[[jobs]]
name = "a"
ranks = 4
workload = { name = "flood_pairs", compute = "5 us" }
[[jobs]]
name = "b"
ranks = 4
workload = { name = "ring", compute = "5 us" }
"""


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    (folder / "everything.toml").write_text(EVERYTHING)
    out = folder / "run"
    assert execute(["run", str(folder / "everything.toml"), "--out", str(out), "--quiet"]) == ExitCode.DONE
    return out


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("studies")
    (folder / "small.toml").write_text(SCENARIO)
    (folder / "study.toml").write_text(STUDY.replace("[1, 2]", "[1]") + CONTROLLED)
    command = ["study", str(folder / "study.toml"), "--out", str(folder / "out"), "--workers", "1", "--quiet"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fairlane.study.tasks.pools.Processes", Here)
        assert execute(command) == ExitCode.DONE
    return folder


@pytest.fixture
def run(stored: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(stored, tmp_path / "run"))


def _refused(run: Path, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    for command in (["plot", str(run)], ["query", str(run), "select 1"], ["analyze", str(run)]):
        assert execute(command) == ExitCode.WRONG_INPUT
        assert words in capsys.readouterr().err


def test_every_stored_column_is_declared(stored: Path, study: Path) -> None:
    for name, table in load(stored).tables().items():
        extra = {
            column
            for column in set(table.columns) - set(schemas.RUN[name])
            if "_vc" not in column and column != "input_queueing_ps"
        }
        assert not extra, f"{name}: declare these columns in results/schemas.py"
    found = load(study / "out").tables()
    for name in ("runs", "work", "failures"):
        assert not set(found[name].columns) - set(schemas.STUDY[name])
    assert set(found) == set(schemas.STUDY) - {"effects"}


@pytest.mark.parametrize("which", ["results-x-1014", "results-x-1215", "results-x-1227"])
def test_damaged_folders_of_an_earlier_version_are_refused(
    which: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Path(shutil.copytree(REPRODUCERS / which, tmp_path / which))
    _refused(folder, "schema_version is 3; this version of fairlane reads", capsys)


@pytest.mark.parametrize("which", ["results-x-1014", "results-x-1215", "results-x-1227"])
def test_damaged_tables_are_refused_even_if_the_checksums_fit(
    which: str, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in (REPRODUCERS / which).glob("*.parquet"):
        shutil.copy(path, run)
    reseal(run)
    _refused(run, f"{run}/", capsys)


def test_any_changed_file_is_named(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    changed = "has changed since it was written"
    for path in sorted(run.glob("*.parquet")):
        whole = path.read_bytes()
        path.write_bytes(whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:])
        with pytest.raises(ResultsError, match=rf"{path.name}: {changed} \(its SHA-256"):
            load(run)
        path.write_bytes(whole[:-1])
        with pytest.raises(ResultsError, match=rf"{path.name}: {changed} \({len(whole) - 1} bytes"):
            load(run)
        path.unlink()
        with pytest.raises(ResultsError, match=f"{path.name}: is missing"):
            load(run)
        path.write_bytes(whole)
    jobs = run / "jobs.parquet"
    whole = jobs.read_bytes()
    jobs.write_bytes(whole[:-1])
    _refused(run, f"{jobs}: {changed}", capsys)
    jobs.write_bytes(whole)
    for name in ("resolved.json", "scenario.toml"):
        (run / name).write_bytes((run / name).read_bytes() + b"\n")
        assert execute(["analyze", str(run), "--job", "b"]) == ExitCode.WRONG_INPUT
        assert f"{run / name}: has changed since it was written" in capsys.readouterr().err
        (run / name).write_bytes((run / name).read_bytes()[:-1])


def test_a_folder_without_its_manifest_is_not_complete(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = run / MANIFEST
    whole = json.loads(manifest.read_text())
    for change, words in (
        ({"kind": "study"}, "kind is 'study'; expected 'run'"),
        ({"schema_version": 1}, "schema_version is 1; this version of fairlane reads"),
        ({"files": {"jobs.parquet": {"sha256": "x", "bytes": 1}}}, "files.jobs.parquet.sha256: "),
        ({"files": {}}, "is not listed in manifest.json"),
    ):
        manifest.write_text(json.dumps({**whole, **change}))
        _refused(run, words, capsys)
    manifest.write_text("[" * 100_000)
    _refused(run, f"{manifest}: ", capsys)
    manifest.unlink()
    _refused(run, f"{manifest}: is missing", capsys)


@pytest.mark.parametrize(
    ("table", "change", "words"),
    [
        (
            "jobs",
            lambda it: it.drop("span_ps"),
            "jobs.parquet: column 'span_ps' is missing; expected a column of",
        ),
        (
            "jobs",
            lambda it: it.rename({"w": "ww"}),
            "column 'w' is missing; expected a column of Float64; nearest",
        ),
        (
            "calls",
            lambda it: it.cast({"count": pl.String}),
            "calls.parquet: column 'count' is of String; expected",
        ),
        ("ranks", lambda it: it.with_columns(job=pl.lit(None, pl.UInt32)), "column 'job' has empty cells"),
        (
            "interference",
            lambda it: it.with_columns(victim=pl.lit("x")),
            "column 'victim' names 'x', which is no",
        ),
        ("jobs", lambda it: it.with_columns(name=pl.lit("a")), "column 'name': two jobs have the same name"),
        ("power", lambda it: it.head(0).select("name"), "power.parquet: column 'host' is missing"),
    ],
)
def test_tables_have_the_declared_columns(
    run: Path,
    capsys: pytest.CaptureFixture[str],
    table: str,
    change: Callable[[pl.DataFrame], pl.DataFrame],
    words: str,
) -> None:
    path = run / f"{table}.parquet"
    change(pl.read_parquet(path)).write_parquet(path)
    reseal(run)
    _refused(run, words, capsys)


def test_a_table_that_claims_more_rows_than_the_memory_holds_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "wide.parquet"
    pl.DataFrame({"zero": pl.zeros(1_000_000, pl.UInt8, eager=True)}).write_parquet(path)
    assert path.stat().st_size < 10_000
    monkeypatch.setattr("os.sysconf", lambda _name: 1000)  # so many pages of so many bytes
    with pytest.raises(ResultsError, match="1000000 rows and 1 columns: more than the memory"):
        read_parquet(path)


def test_what_an_analysis_has_kept_is_checked(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def analysed() -> pl.DataFrame:
        return analyze(run, job="b", progress=False).iterations

    first = analysed()
    assert analysed().equals(first)
    kept = run / "analysis" / "iterations-1"
    table = kept / "iterations.parquet"
    table.write_bytes(table.read_bytes()[:-1])
    assert execute(["analyze", str(run), "--job", "b", "--quiet"]) == ExitCode.WRONG_INPUT
    assert f"{kept}: remove it, and the analysis makes it again" in capsys.readouterr().err
    shutil.rmtree(kept)
    assert analysed().equals(first)


def _one_number(answer: dict[str, object]) -> dict[str, object]:
    found = json.loads(re.sub(r"([:\[] )([0-9])", r"\g<1>1\2", json.dumps(answer), count=1))
    assert found != answer
    return dict(found)


@pytest.mark.parametrize(
    "change", [_one_number, lambda _answer: {}, lambda _answer: {"compute": [1]}], ids=["number", "empty", "other"]
)
def test_a_changed_answer_is_computed_again_and_named(
    study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], change: Callable[[dict[str, object]], object]
) -> None:
    folder = Path(shutil.copytree(study, tmp_path / "copy"))
    digest = json.loads((folder / "out" / "study.json").read_text())["digest"]
    answers = sorted((folder / "out" / "answers").iterdir())
    changed = answers[0]
    record = json.loads(changed.read_text())
    changed.write_text(json.dumps({**record, "answer": change(record["answer"])}))
    command = ["study", str(folder / "study.toml"), "--out", str(folder / "out"), "--workers", "1", "--resume"]
    capsys.readouterr()
    assert execute([*command, "--quiet"]) == ExitCode.DONE
    name = f"answers/{changed.name}"
    assert f"{name}: has changed since it was stored; it was computed again" in capsys.readouterr().err
    meta = json.loads((folder / "out" / "study.json").read_text())
    assert meta["digest"] == digest
    assert meta["recomputed"] == [name]
    again = json.loads(changed.read_text())
    assert again["answer"] == record["answer"]
    assert execute([*command, "--quiet"]) == ExitCode.DONE
    assert "changed" not in capsys.readouterr().err
    assert json.loads((folder / "out" / "study.json").read_text())["recomputed"] == []


def test_answers_that_were_swapped_are_computed_again(study: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(study, tmp_path / "copy"))
    one, other, *_ = sorted((folder / "out" / "answers").iterdir())
    first = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(first)
    command = ["study", str(folder / "study.toml"), "--out", str(folder / "out"), "--workers", "1", "--resume"]
    assert execute([*command, "--quiet"]) == ExitCode.DONE
    meta = json.loads((folder / "out" / "study.json").read_text())
    assert sorted(meta["recomputed"]) == [f"answers/{path.name}" for path in (one, other)]
    assert json.loads(one.read_bytes())["answer"] == json.loads(first)["answer"]


def test_a_changed_study_is_refused(study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = Path(shutil.copytree(study / "out", tmp_path / "copy"))
    work = folder / "work.parquet"
    pl.read_parquet(work).with_columns(w=pl.lit(0.5)).write_parquet(work)
    for command in (["plot", str(folder)], ["query", str(folder), "select 1"]):
        assert execute(command) == ExitCode.WRONG_INPUT
        assert f"{work}: has changed since it was written" in capsys.readouterr().err


def test_control_and_advice_leave_manifests(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "small.toml").write_text(SCENARIO)
    command = ["control", str(tmp_path / "small.toml"), "--controller", "none", "--period", "50 us", "--periods", "2"]
    assert execute([*command, "--out", str(tmp_path / "out")]) == ExitCode.DONE
    assert json.loads((tmp_path / "out" / MANIFEST).read_text())["kind"] == "control"
    table = tmp_path / "out" / "periods.parquet"
    table.write_bytes(table.read_bytes() + b"x")
    capsys.readouterr()
    fit = ["predict", "fit", str(table), "--out", str(tmp_path / "model.json"), "--run", "job", "--timestep", "period"]
    assert execute(fit) == ExitCode.WRONG_INPUT
    assert f"{table}: has changed since it was written" in capsys.readouterr().err


def test_a_changed_model_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "model.toml"
    load_model("torus-128").save(path)
    assert execute(["slowdown", "show", str(path)]) == ExitCode.DONE
    shown = capsys.readouterr().out
    assert execute(["slowdown", "show", "torus-128"]) == ExitCode.DONE
    assert capsys.readouterr().out == shown
    text = path.read_text()
    path.write_text(text.replace("snapshots = 200", "snapshots = 201"))
    assert execute(["slowdown", "show", str(path)]) == ExitCode.WRONG_INPUT
    assert f"{path}: sha256: is not that of the file" in capsys.readouterr().err
    path.write_text("".join(line for line in text.splitlines(keepends=True) if "sha256" not in line))
    assert execute(["slowdown", "show", str(path)]) == ExitCode.WRONG_INPUT
    assert f"{path}: sha256: missing" in capsys.readouterr().err
