"""A small campaign from fitting to the map, with the commands."""

import json
import re
from pathlib import Path

import polars as pl
import pytest

from campaigns import CAMPAIGN, cell, cells_of, write
from fairlane.cli.main import execute
from fairlane.papers.campaign.fitting import FITTED
from fairlane.papers.campaign.registry import registered
from fairlane.papers.campaign.simulating import Model
from fairlane.study.tasks import pools
from fairlane.study.tasks.pools import Threads
from fairlane.study.tasks.task import perform
from pictures import assert_drawn

ROWS = [
    cell(4, "none", 4096, 4e-6),
    cell(4, "Flood", 4096, 1e-5),
    cell(8, "none", 4096, 9e-6),
    cell(8, "Flood", 4096, 3e-5),
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A campaign in the current folder, whose simulations run in this process."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pools, "open_pool", lambda _workers: Threads(1))
    return write(tmp_path, ROWS)


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    code = execute(["campaign", *words])
    return code, capsys.readouterr().out


def test_a_campaign_is_predicted_compared_and_mapped(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--workers", "2", "--quiet"]
    code, out = said(capsys, "predict", str(folder), "--label", "first", *options, "--out", "answers")
    assert (code, out.strip()) == (0, str(folder / "predictions" / "01-first"))
    (first,) = registered(folder)
    assert first.table["iterations"].to_list() == [5, 12, 5, 12]
    assert (first.table["mean_s"] <= first.table["p99_s"]).all()
    code, out = said(capsys, "compare", str(folder), "--json")
    found = json.loads(out)
    assert code == (0 if all(bar["holds"] is not False for bar in found["bars"]["judged"]) else 1)
    table = pl.read_csv(folder / "comparison" / "cells.csv")
    assert table["measured_mean_ratio"].drop_nulls().to_list() == pytest.approx([2.5, 10 / 3])
    assert_drawn(folder / "comparison" / "ratios.png")
    assert "01-first" in (folder / "comparison" / "index.html").read_text()
    code, out = said(capsys, "map", str(folder), "--points", "2", *options, "--out", "map")
    assert code == 0
    assert pl.read_csv("map/found.csv")["point"].unique().sort().to_list() == [0, 1, 2]
    assert pl.read_csv("map/cells.csv")["says"].to_list()[0].endswith("2.50")


EXCLUSIVE = (
    CAMPAIGN
    + """
[[parameter]]
name = "switch"
title = "architecture of a switch"
default = "output_queued"
source = "data sheets"
[parameter.levels.output_queued.scenario]
"network.switch" = "output_queued"
[parameter.levels.input_queued.scenario]
"network.switch" = "input_queued"

[[parameter]]
name = "marking"
title = "whether switches mark packets"
default = "no"
source = "data sheets"
[parameter.levels.no.scenario]
"network.transport" = "credits_only"
[parameter.levels.yes.scenario]
"network.transport" = "ib_cc"
"""
)
"""Input-queued switches do not mark packets."""


def test_values_that_exclude_each_other_are_no_points_of_a_map(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(folder, ROWS, EXCLUSIVE)
    said(capsys, "predict", str(folder), "--quiet", "--out", "answers")
    code, out = said(capsys, "map", str(folder), "--points", "10", "--nodes", "4", "--out", "map")
    assert code == 0
    points = pl.read_csv("map/points.csv")
    assert points["point"].to_list() == list(range(11))
    assert pl.read_csv("map/found.csv")["point"].unique().sort().to_list() == list(range(11))
    assert points.filter(switch="input_queued", marking="yes").is_empty()
    assert points.filter(switch="input_queued").height > 0
    assert points.filter(marking="yes").height > 0
    assert re.search(r"1 further point cannot be: .*only with network.switch = output_queued", out)


def test_fitted_values_come_from_isolated_runs_and_predictions_have_them(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cells = cells_of(folder)
    wanted = Model(cells.campaign, cells, {"send_overhead": 400_000.0})
    isolated = perform(wanted.task(cells.all[0], 1)).answer
    assert isolated is not None
    measured = pl.read_csv(folder / "measured.csv").with_columns(
        median_s=pl.when(pl.col("aggressor") == "none").then(isolated["times_s"][0]).otherwise(1.0)
    )
    measured.write_csv(folder / "measured.csv")
    code, _ = said(capsys, "fit", str(folder), "--rounds", "4", "--workers", "1", "--quiet", "--out", "fitting")
    assert code == 0
    text = (folder / FITTED).read_text()
    code, out = said(capsys, "predict", str(folder), "--try", "--nodes", "4", "--out", "tried", "--json", "--quiet")
    tried = json.loads(out)
    assert tried[0]["median_s"] == pytest.approx(isolated["times_s"][0], rel=0.05)
    assert not (folder / "predictions").exists()
    (folder / FITTED).write_text(text.replace("error = ", "error = 1"))
    assert execute(["campaign", "predict", str(folder), "--out", "again"]) == 2
    assert "has changed since it was written" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["predict", ".", "--label", "a b"], "--label"),
        (
            ["predict", ".", "--set", "rooting=fixed"],
            "unknown parameter; allowed: send_overhead, routing, buffer; did you mean",
        ),
        (["predict", ".", "--set", "routing"], '--set = "routing": has no value'),
        (["predict", ".", "--set", "routing=fixt"], 'did you mean "fixed"?'),
        (["predict", ".", "--set", "buffer=4 us"], "--set buffer"),
        (["compare", ".", "--nodes", "eight"], "cannot be used; allowed: numbers, as 8,16"),
        (["compare", "."], "no prediction is registered"),
        (["map", "."], "no prediction is registered"),
    ],
)
def test_wrong_options_are_named(
    words: list[str], message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["campaign", *words]) == 2
    assert message in capsys.readouterr().err
    assert not (folder / "predictions").exists()
    assert not (folder / "comparison").exists()
