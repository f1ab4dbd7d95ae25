"""The robustness maps that are stored with the pages: tables, shares, and what the pages say of them."""

from pathlib import Path

import polars as pl
import pytest

from fairlane.papers.robustness_output import CLAUSES, INDICES, POINTS, combine
from fairlane.papers.shares import by_point
from fairlane.results.reproduction import CALIBRATED, DEPENDS, RARE, ROBUST
from fairlane.results.schemas import MAP, types
from pages import table

SCHEMA = types(MAP["robustness"])
PAGE = Path(__file__).parents[2] / "docs" / "reproduction" / "robustness.md"
STORED = PAGE.with_suffix("")
"""The maps that the documentation shows, a folder for each paper."""
MAPS = ("patki2016", "savoie2020", "smith2018", "smith2018-models", "wilke2020", "yang2016")


def test_the_stored_table_of_all_papers_is_that_of_their_stored_maps(tmp_path: Path) -> None:
    clauses = combine([STORED / name for name in MAPS], tmp_path)
    assert (tmp_path / CLAUSES).read_text() == (STORED / CLAUSES).read_text()
    number = {verdict: clauses.filter(verdict=verdict).height for verdict in (ROBUST, DEPENDS, RARE, CALIBRATED)}
    counts = (
        f"Of {clauses.height} clauses, {number[ROBUST]} are robust, {number[DEPENDS]} depend on what is chosen "
        f"(or on chance), {number[RARE]} rarely hold, and {number[CALIBRATED]} are calibrated."
    )
    assert counts in PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", MAPS)
def test_a_stored_map_has_the_shares_of_its_points(name: str) -> None:
    numbers = pl.read_csv(STORED / name / POINTS, infer_schema_length=None)
    found = by_point(numbers.filter(pl.col("point") > 0).select(*SCHEMA).cast(pl.Schema(SCHEMA)))
    shares = found.group_by("claim", "clause", maintain_order=True).agg(points=pl.len(), held=pl.col("holds").sum())
    clauses = pl.read_csv(STORED / name / CLAUSES).select("claim", "clause", "points", "held")
    order = ["claim", "clause"]
    assert shares.sort(order).rows() == clauses.sort(order).rows()


def test_the_page_has_what_the_sets_of_runs_decide() -> None:
    """Of the 64 points on hyperparameters each eight share a set of runs: how many hold, and the variance between."""
    numbers = pl.read_csv(STORED / "smith2018-models" / POINTS, infer_schema_length=None)
    points = by_point(numbers.filter(pl.col("point") > 0).select(*SCHEMA).cast(pl.Schema(SCHEMA)))
    page = (PAGE.parent / "smith2018" / "index.md").read_text(encoding="utf-8")
    for _, rows in points.with_columns(runs=(pl.col("point") - 1) // 8).group_by("claim", "clause"):
        held = rows.group_by("runs").agg(pl.col("holds").sum()).sort("runs")["holds"].to_list()
        ranks = rows.select("runs", rank=pl.col("margin").rank())
        within = ranks.select((pl.col("rank") - pl.col("rank").mean().over("runs")).pow(2).sum()).item()
        total = ranks.select((pl.col("rank") - pl.col("rank").mean()).pow(2).sum()).item()
        share = 1 - within / (64 - 8) / (total / 63)  # without bias from the small number of points
        counted = (
            "0 in all" if sum(held) == 0 else "1 in the fifth set" if sum(held) == 1 else ", ".join(map(str, held))
        )
        assert f"| {counted} | " in page
        assert f" of 8 | {share:.2f} | " in page


def test_the_page_has_what_the_order_of_injection_decides() -> None:
    """Medians over the points of each order on the map of Wilke and Kenny, and the index with its interval."""
    orders = ("messages", "adapter_fifo", "queue_pairs")
    shown = table("docs/reproduction/robustness.md", *(f"`{order}`" for order in orders))
    numbers = pl.read_csv(STORED / "wilke2020" / POINTS, infer_schema_length=None).filter(pl.col("point") > 0)
    indices = pl.read_csv(STORED / "wilke2020" / INDICES).filter(parameter="injection")
    for row, (claim, clause) in zip(
        shown, (("wilke.halo3d", 4), ("wilke.halo3d", 5), ("wilke.allreduce", 1)), strict=True
    ):
        found = numbers.filter(claim=claim, clause=clause).group_by("injection")
        spread = {
            order: (middle, most)
            for order, middle, most in found.agg(pl.col("value").median(), most=pl.col("value").max()).rows()
        }
        index = indices.filter(claim=claim, clause=clause).row(0, named=True)
        if clause == 1:
            expected = [f"{spread[order][0]:.1f}, {spread[order][1]:.2g}" for order in orders]
        else:
            expected = [f"{spread[order][0]:.2f}" for order in orders]
            assert f"({index['index']:.2f}, {index['index_low']:.2f} to {index['index_high']:.2f})" in row[""]
        assert [row[f"`{order}`"] for order in orders] == expected
