"""Views of robustness maps: rows of clauses, alone, compared and of several papers; indices, levels and margins."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from fairlane.results.reproduction import RobustnessResults
from fairlane.views.kinds import view_of
from fairlane.views.model import Chart
from fairlane.views.robustness import indices, papers, shares
from report_kinds import map_results
from report_runs import EVIL


def rows_of(chart: Chart) -> list[dict[str, Any]]:
    """The rows of all layers of a chart."""
    return [row for of in chart.spec.to_dict(validate=False)["datasets"].values() for row in of]


def charts_of(*every: RobustnessResults) -> dict[str, Chart]:
    """The charts of maps by name."""
    return {one.name: one for one in view_of(every, ["a", "b"][: len(every)]).charts}


def labels_of(chart: Chart) -> str:
    """What the rows of a chart are called."""
    [axis] = {
        layer["encoding"]["y"]["axis"]["labelExpr"]
        for layer in chart.spec.to_dict(validate=False)["layer"]
        if "y" in layer["encoding"]
    }
    return str(axis)


def test_clauses_stand_in_rows_with_their_shares() -> None:
    chart = charts_of(map_results())["shares"]
    assert chart.sentence == "A paper: 2 clauses: 1 robust and 1 depends."
    rows = rows_of(chart)
    assert [(row["at"], row["share"], row["usual"], row["decided"]) for row in rows] == [
        (0, 0.5, 0.5, "buffer"),
        (1, 1.0, 1.0, ""),
    ]
    assert labels_of(chart).startswith('["much is accepted","</script>')


def test_clauses_of_two_maps_of_a_paper_are_compared_in_a_row() -> None:
    here = map_results()
    changed = here.frames["robustness-clauses"].with_columns(share=pl.lit(0.25))
    there = replace(here, frames={**here.frames, "robustness-clauses": changed})
    chart = charts_of(here, there)["shares"]
    rows = {(row["map"], row["clause"]): row for row in rows_of(chart)}
    assert [rows[key]["share"] for key in (("a", 1), ("b", 1))] == [0.5, 0.25]
    assert rows["a", 1]["at"] < 0 < rows["b", 1]["at"] < 0.5 < rows["a", 2]["at"]
    assert chart.note.endswith("In each row from top to bottom: a and b.")


def test_clauses_of_several_papers_stand_below_their_titles() -> None:
    clauses = map_results().frames["robustness-clauses"]
    others = clauses.with_columns(title=pl.lit("Another, 2020"), claim=pl.lit("b.other"))
    view = papers(pl.concat([clauses.with_columns(title=pl.lit("A paper, 2019")), others]))
    [chart] = view.charts
    assert [row["at"] for row in rows_of(chart)] == [1, 2, 4, 5]
    assert labels_of(chart).startswith('["A paper","much is accepted"')
    assert [row["map"] for row in view.tables[0].rows if row] == ["A paper"] * 2 + ["Another"] * 2
    alike = papers(
        pl.concat(
            [clauses.with_columns(title=pl.lit("A paper, one")), others.with_columns(title=pl.lit("A paper, two"))]
        )
    )
    assert "A paper, one" in labels_of(alike.charts[0]), "what they begin with does not tell them apart"


def test_indices_have_numbers_where_they_are_beyond_chance() -> None:
    chart = charts_of(map_results())["indices"]
    assert {(row["says"], row["text"]) for row in rows_of(chart)} == {("much is accepted", ".60"), (EVIL, "")}
    assert chart.sentence == "buffer decides most beyond chance: 1 of 2."
    of = map_results().frames
    certain = of["robustness-indices"].with_columns(beyond_chance=pl.lit(value=False))
    [chart] = indices(of["robustness-clauses"], certain)
    assert chart.sentence == "No parameter decides a clause beyond chance."
    assert not [*indices(of["robustness-clauses"], certain.with_columns(index=None))]


def test_levels_are_those_of_the_clause_that_depends() -> None:
    chart = charts_of(map_results())["levels"]
    assert [(row["label"], row["share"]) for row in rows_of(chart)] == [
        ("buffer: small", 0.0),
        ("buffer: large", 1.0),
        ("buffer: small", 1.0),
    ]
    assert chart.sentence == "much is accepted: holds at 50.0% of the points; decided by buffer."


@pytest.mark.parametrize(
    ("values", "places", "labels"),
    [
        ([16.0, 32.0, 64.0, 128.0], [0, 1 / 7, 3 / 7, 1], ["16", "44", "72", "100", "128"]),
        ([1.0, 10.0, 100.0, 10_000.0], [0, 0.25, 0.5, 1], ["1", "10", "100", "1,000", "10,000"]),
        ([0.0, 0.0, 0.0, 0.0], [0, 0, 0, 0], ["0", "0", "0", "0", "0"]),
        (["x", "z", "y", "x"], [0, 1, 0.5, 0], ["x", "y", "z"]),
    ],
)
def test_margins_have_an_axis_for_each_parameter(values: list[Any], places: list[float], labels: list[str]) -> None:
    found = map_results()
    points = found.frames["robustness"].with_columns(pl.Series("buffer", 2 * values))
    chart = charts_of(replace(found, frames={**found.frames, "robustness": points}))["margins"]
    dots = [row for row in rows_of(chart) if row.get("clause") == 1]
    assert [row["x0"] for row in dots] == pytest.approx(places)
    assert [row["held"] for row in dots] == ["outside", "outside", "in the band", "in the band"]
    assert chart.sentence == "much is accepted: 2 of 4 values are in their band."
    text = str(chart.spec.to_dict(validate=False)["layer"])
    assert f'"text":{labels}'.replace("'", '"').replace(", ", ",").replace(
        '"1,000","10,000"', '"1,000","10,000"'
    ) in text.replace(", ", ",")


def test_cells_of_a_campaign_have_the_same_chart() -> None:
    cells = pl.DataFrame(
        {
            "claim": ["x"],
            "clause": 0,
            "says": "x: 1.20",
            "verdict": "depends",
            "share": 0.5,
            "share_low": 0.2,
            "share_high": 0.8,
            "default_points": 0,
            "default_held": 0,
        }
    )
    chart = shares({"": cells}, ("a cell", "is predicted", "the ratio"))
    assert chart.note.startswith("Share of the points at which a cell is predicted")
    assert rows_of(chart)[0]["usual"] is None
