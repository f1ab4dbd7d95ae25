"""The framework of reproductions: folders are read, studies prepared and run, made-up tables judged."""

import json
import re
from pathlib import Path

import polars as pl
import pytest

from fairlane import ScenarioError
from fairlane.cli.main import execute
from fairlane.papers.folder import Claim
from fairlane.papers.judging import findings
from fairlane.papers.reproduce import PAPERS, folder_of, plan
from fairlane.study.sql import Database
from pictures import assert_drawn
from small_paper import run, written
from small_study import Here


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return written(tmp_path / "paper")


def test_a_folder_of_a_paper_is_named_as_any_other(capsys: pytest.CaptureFixture[str]) -> None:
    folder = PAPERS["kim2008"]
    assert PAPERS.find(str(folder)) == folder_of("kim2008").path == folder
    assert execute(["list", "papers", str(folder)]) == 0
    assert "Kim, Dally" in capsys.readouterr().out
    with pytest.raises(ScenarioError, match="a folder with a"):
        folder_of(folder.parent)


def test_a_paper_without_python_is_run_judged_and_written_down(folder: Path, tmp_path: Path) -> None:
    found = run(folder, tmp_path / "out")
    assert not found.failed
    assert [(one.claim.id, one.holds, one.scaled) for one in found.judged] == [
        ("large-is-slow", True, ""),
        ("qos", True, ""),
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
    assert [one.words for one in found.verdicts] == ["not run"]


@pytest.mark.parametrize(
    ("file", "before", "after", "words"),
    [
        ("paper.toml", "citation", "citatoin", 'paper.toml:3: citatoin = "Nobody: Nothing, 2020.": unknown key'),
        ("paper.toml", 'name = "times"', 'name = "control"', "duplicate name"),
        ("claims.toml", '"times"', '"tiems"', 'did you mean "times"'),
        ("claims.toml", '"> bound"', '">> bound"', "is no band"),
        ("claims.toml", "medians large,", "median large,", "claim large-is-slow: has a query that is wrong"),
        ("claims.toml", '"> bound"', '"[2, 1]"', 'claims.toml:15: claim[0].clause[0].band = "[2, 1]": is empty'),
        ("claims.toml", 'id = "qos"', 'id = "large-is-slow"', 'claim = "large-is-slow": duplicate name'),
        (
            "claims.toml",
            "{value:.2f}",
            "{valeu:.2f}",
            'claims.toml: claim large-is-slow, clause 1.says = "large / small {valeu:.2f}": unknown column in the '
            'text; allowed: value, bound; did you mean "value"?',
        ),
        ("claims.toml", "{value:.2f}", "{value:d}", "cannot be filled in: Unknown format code 'd'"),
        (
            "claims.toml",
            '"> bound"',
            '"> bond"',
            'clause 1.band = "bond": unknown column of the query; allowed: value, bound; did you mean "bound"?',
        ),
        ("claims.toml", "AS value, 2.0", "AS valeu, 2.0", 'clause 1.value = "value": unknown column of the query'),
        ("claims.toml", "2.0 AS bound", "'two' AS bound", 'clause 1.band = "two": is no number'),
        (
            "figures.toml",
            '"boxplot"',
            '"boxes"',
            'figures.toml:8: figure[0].chart[0].spec.mark = "boxes": is not Vega-Lite; allowed: boxplot, errorbar',
        ),
        (
            "figures.toml",
            'file = "times"',
            'file = "../times"',
            'figures.toml:3: figure[0].file = "../times": is no name',
        ),
        ("figures.toml", 'file = "times"', 'file = "claims"', '"claims.png": is a file of every reproduction'),
        (
            "figures.toml",
            'encoding.y = { field = "seconds" }',
            'encoding.y = { field = "seconds", axes = 1 }',
            "spec.encoding.y.axes: unknown key of Vega-Lite; allowed: aggregate, axis, bandPosition, bin",
        ),
        (
            "figures.toml",
            '{ field = "seconds" }',
            '{ field = "seconds", type = "number" }',
            'figures.toml:10: figure[0].chart[0].spec.encoding.y.type = "number": is not Vega-Lite',
        ),
        ("figures.toml", 'mark = "boxplot"', "", "figures.toml:7: figure[0].chart[0].spec.mark: missing"),
        ("figures.toml", "[[figure.chart]]", "[[figure.panel]]", 'renamed: this key is now "chart"'),
        ("paper.toml", 'csv = "{size}"', 'csv = "a/{size}"', 'csv = "a/{size}": is no name of a file'),
        (
            "paper.toml",
            'quick."control.toml"',
            'quick."contol.toml"',
            'quick = "contol.toml": unknown study file; allowed',
        ),
        (
            "paper.toml",
            'file = "times.toml"',
            'file = "times.toml"\nonly = { siez = ["small"] }',
            'paper.toml: study times: only = "siez": unknown factor of times.toml; allowed: size; did you mean "size"?',
        ),
        (
            "paper.toml",
            'file = "times.toml"',
            'file = "times.toml"\nonly = { size = ["smal"] }',
            'times: only.size = "smal": unknown level of times.toml; allowed: small, large; did you mean "small"?',
        ),
        (
            "paper.toml",
            'file = "times.toml"',
            'file = "times.toml"\nscenario = { "network.bufer" = "1 KiB" }',
            'paper.toml: study.times.scenario.network.bufer = "1 KiB": unknown key',
        ),
        (
            "paper.toml",
            'file = "times.toml"',
            'file = "times.toml"\nset = { "measure.until.of" = 1 }',
            "paper.toml: study.times.set.measure.until.of",
        ),
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


def test_a_clause_without_rows_is_missing_and_does_not_let_the_claim_hold(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairlane.papers.reproduce.open_pool", Here)
    text = (folder / "claims.toml").read_text()
    more = "[[claim.clause]]\nsays = 'small {value}'\nwhere = 'bound = 3'\nband = '> 0'\n[[claim]]\nid = \"qos\""
    (folder / "claims.toml").write_text(text.replace('[[claim]]\nid = "qos"', more))
    found = run(folder, tmp_path / "out", only="large-is-slow")
    assert [one.words for one in found.verdicts] == ["not run"]
    assert found.judged[0].missing == ["clause 2: its query has no rows"]
    assert [it.clause for it in found.judged[0].findings] == [0]
    paper = (folder / "paper.toml").read_text()
    (folder / "paper.toml").write_text(paper.replace('only = { size = ["small"] }, ', ""))
    words = ["reproduce", str(folder), "--only", "large-is-slow", "--quick", "--out", str(tmp_path / "quick")]
    assert execute(words) == 0
    shown = capsys.readouterr().out
    assert "scaled (one replicate, 1 of 1 clause in the band)" in " ".join(shown.split())
    assert "missing: clause 2 (band > 0): its query has no rows" in shown


def test_a_method_of_ones_own_runs_with_permission_only(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairlane.papers.reproduce.open_pool", Here)
    (folder / "figures.toml").unlink()
    (folder / "method.py").write_text(
        "def doubled(tables):\n    return tables.ask('SELECT 2 * seconds AS twice FROM medians')\n"
    )
    text = (folder / "paper.toml").read_text()
    (folder / "paper.toml").write_text(f'{text}[[table]]\nname = "twice"\ncall = "method.py:doubled"\ncsv = "twice"\n')
    words = ["reproduce", str(folder), "--only", "large-is-slow", "--quiet", "--workers", "1", "--out"]
    assert execute([*words, str(tmp_path / "refused")]) == 2
    assert "which is not permitted" in capsys.readouterr().err
    assert not (tmp_path / "refused").exists(), "before anything was run"
    assert execute([*words, str(tmp_path / "out"), "--allow-code"]) == 0
    assert pl.read_csv(tmp_path / "out" / "twice.csv").height == 3


def test_the_command_prints_what_the_paper_reports_what_was_measured_and_whether_it_holds(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairlane.papers.reproduce.open_pool", Here)
    words = ["reproduce", str(folder), "--only", "large-is-slow", "--workers", "1", "--out", str(tmp_path / "out")]
    assert execute(words) == 0
    shown = capsys.readouterr().out
    assert re.search(r"large-is-slow +I +large messages are slow +holds \(one replicate\)", shown)
    assert re.search(r"large-is-slow +large / small +[\d.]+ +> 2 +1 of 1 .* holds", shown)
    assert execute([*words, "--resume"]) == 0
    assert "\n3 of them were stored already.\n" in capsys.readouterr().out
    assert execute([*words, "--resume", "--json"]) == 0
    (claim,) = json.loads(capsys.readouterr().out)["claims"]
    assert claim["holds"] is True
    assert claim["findings"][0]["value"] > 2


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
    with pytest.raises(ScenarioError, match='--variant = "even": unknown variant of savoie2020'):
        plan("savoie2020", variant="even")
    with pytest.raises(ScenarioError, match=r'did you mean "savoie\.small\.static"'):
        plan("savoie2020", only=["savoie.small.static", "savoie.small.statik"])
    with pytest.raises(ScenarioError, match='did you mean "slack"'):
        plan("savoie2020", also=["slak"])


def test_a_run_that_fails_is_reported_and_the_others_go_on(folder: Path, tmp_path: Path) -> None:
    text = (folder / "times.toml").read_text()
    (folder / "times.toml").write_text(text.replace('"64 KiB"', '"512 MiB"'))
    found = run(folder, tmp_path / "out", only="large-is-slow")
    assert [(done.error or "").partition(": ")[2] for done in found.failed] == ["job ring is not done after 3 ms"] * 2
    assert found.judged[0].missing == ["2 runs of times that failed"]
    assert found.judged[0].holds is None
    assert pl.read_csv(tmp_path / "out" / "small.csv").height == 1
    assert len(list((tmp_path / "out").glob("failed/*.toml"))) == 2


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
        (["--also", "slak"], '--also = "slak": unknown controller; allowed: '),
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


def test_a_difference_is_shown_and_has_no_effect_on_verdicts(folder: Path, tmp_path: Path) -> None:
    paper = (folder / "paper.toml").read_text()
    (folder / "paper.toml").write_text(paper.replace('file = "times.toml"', 'file = "times.toml"\ndiffers = "a ring"'))
    found = run(folder, tmp_path / "out", only="large-is-slow")
    assert found.plan.differences == {"a ring": ["times"]}
    assert [one.words for one in found.verdicts] == ["holds, one replicate"]
    assert "- times: a ring" in (tmp_path / "out" / "report.md").read_text().splitlines()
    assert found.outcome.tables.ask("SELECT note, differs FROM studies").row(0) == ("", "a ring")
