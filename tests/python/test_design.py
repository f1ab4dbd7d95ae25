"""Designed studies: which combinations are run, the data set, and effects that are known beforehand."""

from itertools import product
from math import exp, log
from pathlib import Path

import polars as pl
import pytest

from fairlane.cli.main import execute
from fairlane.study.design import combinations, dataset, effects
from fairlane.study.running import run
from fairlane.study.study import Study
from small_study import SCENARIO, Here

DESIGN = """
scenario = "small.toml"
seeds = [1, 2]
placements = ["packed", "spread"]
[design]
[parameters]
"jobs[0].service_level" = [0, 1]
"network.mtu" = ["1 KiB", "4 KiB"]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("fairlane.study.tasks.pools.Processes", Here)
    (tmp_path / "small.toml").write_text(SCENARIO)
    return tmp_path


def test_without_a_number_of_runs_it_is_every_combination() -> None:
    assert list(combinations([2, 1, 3])) == list(product(range(2), range(1), range(3)))


@pytest.mark.parametrize(
    ("levels", "runs"), [([3, 4, 2, 3], 24), ([2, 2, 2, 2, 2, 2, 2], 33), ([2, 3], 5), ([7, 9], 62)]
)
def test_a_sample_is_of_different_combinations_and_even(levels: list[int], runs: int) -> None:
    found = list(combinations(levels, runs, seed=3))
    assert len(set(found)) == runs
    assert found == sorted(found)
    assert found == list(combinations(levels, runs, seed=3))
    for factor, many in enumerate(levels):
        counts = [sum(row[factor] == level for row in found) for level in range(many)]
        assert max(counts) - min(counts) <= max(2, runs // (2 * many)), (factor, counts)


def test_the_first_points_of_a_net_have_every_pair_of_levels_equally_often() -> None:
    """16 points of a Sobol' sequence in two dimensions have one in each of 4 x 4 squares."""
    assert {row[:2] for row in combinations([4, 4, 50], 16, seed=5)} == set(product(range(4), range(4)))


def known(*, interaction: float = 0.0, noise: float = 0.0) -> pl.DataFrame:
    """Times that are 2 times as long for b, 3 times with cap 65, and more for both; a third factor does nothing."""
    rows = []
    for placement, cap, idle, seed in product("ab", (65, 115), (1, 2, 3), (1, 2)):
        both = interaction if (placement == "b") == (cap == 65) else -interaction
        time = log(2) * (placement == "b") + log(3) * (cap == 65) + both + noise * (1 if seed == 1 else -1)
        rows.append(
            {"cap": cap, "idle": idle, "placement": placement, "seed": seed, "name": "j", "iteration_ms": exp(time)}
        )
    return pl.DataFrame(rows)


def test_effects_are_the_factors_that_were_put_in() -> None:
    found = {row["term"]: row for row in effects(known(interaction=0.1)).to_dicts()}
    assert found["placement"]["factor"] == pytest.approx(2)
    assert found["cap"]["factor"] == pytest.approx(3)
    assert found["idle"]["factor"] == pytest.approx(1)
    assert found["cap x placement"]["factor"] == pytest.approx(exp(0.2))
    # Sums of squares of orthogonal terms: a quarter of the squared logarithms, and the interaction's own square.
    squares = {"placement": log(2) ** 2 / 4, "cap": log(3) ** 2 / 4, "cap x placement": 0.1**2}
    for term, square in squares.items():
        assert found[term]["share"] == pytest.approx(square / sum(squares.values()))
    assert {row["degrees"] for row in found.values() if row["term"].startswith("idle")} == {2}
    assert found["residual"]["degrees"] == 24 - (1 + 1 + 1 + 2 + 1 + 2 + 2)


def test_what_seeds_change_is_in_the_residual() -> None:
    found = {row["term"]: row for row in effects(known(noise=0.3)).to_dicts()}
    total = log(2) ** 2 / 4 + log(3) ** 2 / 4 + 0.3**2
    assert found["residual"]["share"] == pytest.approx(0.3**2 / total)
    assert found["placement"]["p"] < 0.01
    assert found["idle"]["p"] > 0.9


def test_a_term_of_which_the_design_says_nothing_has_no_degrees() -> None:
    """Where cap 65 is always packed, nobody can tell the two."""
    aliased = known().filter((pl.col("placement") == "a") == (pl.col("cap") == 65))
    found = {row["term"]: row for row in effects(aliased).to_dicts()}
    assert [found[term]["degrees"] for term in ("cap", "placement", "cap x placement")] == [0, 0, 0]
    assert found["placement"]["factor"] is None


def test_the_data_set_has_every_job_beside_the_others_and_without_them(folder: Path) -> None:
    (folder / "design.toml").write_text(DESIGN)
    found = run(Study.load(folder / "design.toml"), out=folder / "out", workers=1)
    data = pl.read_parquet(folder / "out" / "dataset.parquet")
    assert data.height == 16 * 3 * 2
    assert set(data["placement"]) == {"packed", "spread"}
    on, off = (data.filter(pl.col("interference") == it) for it in ("on", "off"))
    work = found.work.sort("point", "job")
    # Times are those to the last iteration that the job completed in both.
    compared = (work["compared_ps"] / work["compared_iterations"] * 1e-9).to_list()
    assert on["iteration_ms"].to_list() == pytest.approx(compared)
    assert off["iterations"].to_list() == work["isolated_iterations"].to_list()
    ratios = (on["iteration_ms"] / off["iteration_ms"]).to_list()
    assert ratios == pytest.approx((1 / (1 + work["w"])).to_list())
    assert dataset(found.work, ["packed", "spread"]).equals(data)
    terms = pl.read_parquet(folder / "out" / "effects.parquet")
    shares = terms.group_by("name").agg(pl.col("share").sum())
    assert shares["share"].to_list() == pytest.approx([1.0] * 3), "a full factorial's terms add up"
    sheet = (folder / "out" / "dataset.md").read_text()
    assert all(f"| `{name}` |" in sheet for name in data.columns)
    assert found.meta.digest in sheet


def test_more_runs_than_combinations_are_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "design.toml").write_text(DESIGN.replace("[design]", "[design]\nruns = 17"))
    assert execute(["study", str(folder / "design.toml"), "--out", str(folder / "out")]) == 2
    said = capsys.readouterr().err
    assert "design.toml:6: design.runs = 17" in said
    assert "2 to 16" in said
    assert not (folder / "out").exists()
