"""Replicates that were judged elsewhere: several runs judged together, by the tables that they have stored."""

from pathlib import Path

import polars as pl
import pytest

from fairlane import ScenarioError
from fairlane.papers.reproduce import Reproduction, check_replicates, conclude, plan
from fairlane.papers.running import stored_as
from fairlane.papers.storing import known
from fairlane.study.tasks.executor import Executor
from fairlane.study.tasks.store import Store
from pictures import assert_drawn
from replicated import answers, run, verdict, write_paper
from small_study import Here


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_paper(tmp_path / "paper")


def values(found: Reproduction, claim: str) -> dict[int, list[float]]:
    return {
        number: sorted(it.value for it in of.findings) for number, of in sorted(verdict(found, claim).judged.items())
    }


def test_replicates_of_several_runs_are_judged_together(folder: Path, tmp_path: Path) -> None:
    whole = run(folder, tmp_path / "whole", replicates=5)
    run(folder, tmp_path / "early", replicates=2)
    late = plan(folder, first_replicate=3)
    with Executor(Here(), Store(tmp_path / "late", stored_as)) as executor:
        found = conclude(late, executor, tmp_path / "late", replicates=3, earlier=[tmp_path / "early"])
    assert values(found, "three-of-four") == values(whole, "three-of-four")
    assert verdict(found, "three-of-four").words == verdict(whole, "three-of-four").words
    assert len(answers(tmp_path / "late")) == 3 * 2 + 1, "two points of three replicates, and the study without chance"
    assert not found.replication.others
    tables = [
        pl.read_csv(tmp_path / of / "clauses.csv")
        .filter(pl.col("claim") != "same")
        .sort("claim", "clause", "measured", "replicate")
        for of in ("whole", "late")
    ]
    assert tables[0].equals(tables[1])


def test_replicates_that_were_judged_elsewhere_are_not_run_again(folder: Path, tmp_path: Path) -> None:
    run(folder, tmp_path / "early", replicates=3)
    found = run(folder, tmp_path / "late", replicates=4, earlier=[tmp_path / "early" / "clauses.csv"])
    assert verdict(found, "three-of-four").complete == 4
    assert len(answers(tmp_path / "late")) == 2 * 2 + 1, "the first and the fourth replicate"


def test_another_version_of_the_simulator_is_named(folder: Path, tmp_path: Path) -> None:
    run(folder, tmp_path / "early", replicates=2)
    file = tmp_path / "early" / "clauses.csv"
    pl.read_csv(file).with_columns(simulator=pl.lit("0123456789abcdef")).write_csv(file)
    found = run(folder, tmp_path / "late", earlier=[file])
    assert found.replication.others == [2], "the first was run here"
    words = "Replicates judged elsewhere by another version of the simulator: 2."
    assert words in (tmp_path / "late" / "report.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (pl.lit(7).alias("clause"), "clause = 7.*unknown.*1 to 2, the clauses of three-of-four"),
        (pl.lit(9.0).alias("high"), "three-of-four, clause 1: another band.*<= 2"),
        (pl.lit("x").alias("replicate"), "--with.*cannot be read"),
        (pl.lit("three-of-fuor").alias("claim"), "claim.*three-of-fuor.*did you mean .three-of-four"),
        (
            pl.lit(value=True).alias("scaled"),
            "three-of-four, replicate 1: scaled and full experiments cannot be judged",
        ),
    ],
)
def test_findings_that_do_not_fit_the_paper_are_refused(
    folder: Path, tmp_path: Path, change: pl.Expr, words: str
) -> None:
    run(folder, tmp_path / "early", replicates=2)
    file = tmp_path / "early" / "clauses.csv"
    pl.read_csv(file).with_columns(change).write_csv(file)
    with pytest.raises(ScenarioError, match=f"(?s){words}"):
        run(folder, tmp_path / "late", earlier=[file])
    assert not (tmp_path / "late" / "answers").exists(), "nothing is computed first"
    pl.read_csv(file).drop("in_band").write_csv(file)
    with pytest.raises(ScenarioError, match="in_band is missing"):
        run(folder, tmp_path / "late", earlier=[file])
    with pytest.raises(ScenarioError, match=r"nothing\.csv: --with: cannot be read: No such file"):
        run(folder, tmp_path / "late", earlier=[tmp_path / "nothing.csv"])


def test_bands_of_numbers_from_a_file_are_in_numbers(tmp_path: Path) -> None:
    columns = ("claim", "clause", "measured", "replicate", "value", "low", "high", "in_band", "scaled", "simulator")
    rows = [("wilke.port-counters", 1, "fat-tree: p99 / median of active time", 1, 1.84, None, 1.72, False, False, "")]
    pl.DataFrame(rows, columns, orient="row").write_csv(tmp_path / "clauses.csv")
    found = known([tmp_path], plan("wilke2020"), running=False)[""]["wilke.port-counters"][1]
    assert [it.words for it in found.findings] == ["fat-tree: p99 / median of active time: 1.84 (< 1.72)"]


def test_files_alone_can_be_judged(folder: Path, tmp_path: Path) -> None:
    whole = run(folder, tmp_path / "whole", replicates=4)
    run(folder, tmp_path / "part", replicates=2, only="three-of-four")
    found = run(folder, tmp_path / "files", replicates=0, earlier=[tmp_path / "whole"])
    assert [one.words for one in found.verdicts] == [one.words for one in whole.verdicts]
    assert not found.done
    words = [it.words for it in verdict(found, "three-of-four").judged[1].findings]
    assert words == ["same: 0 (<= 2)", "varied: 0 (<= 2)", "seed: 1 (= 1)"]
    assert not (tmp_path / "files" / "answers").exists()
    assert_drawn(tmp_path / "files" / "claims.png")
    found = run(folder, tmp_path / "less", replicates=0, earlier=[tmp_path / "part" / "clauses.csv"])
    assert [one.words for one in found.verdicts] == ["holds, 2 replicates", "not run"]
    with pytest.raises(ScenarioError, match=r"--replicates = 0: leaves nothing to judge.*--with FILE"):
        check_replicates(0, None)
