"""The model of run times: it finds a law, its intervals cover what they say, and it refuses what it cannot read."""

from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import advised
from fairlane.cli.main import execute
from fairlane.core.errors import ScenarioError
from fairlane.inputs.problems import Problems, validated
from fairlane.learn.advice.features import COLUMNS, FEATURES, described
from fairlane.learn.advice.model import RunTimeModel
from fairlane.learn.models import TreeSum, freeze

SCENARIO = advised.SCENARIO.replace('"1 ms"', '"0.4 ms"')


TREE: dict[str, object] = {
    "start": 1.0,
    "rate": 0.5,
    "precision": "double",
    "features": 4,
    "roots": [0],
    "feature": [0],
    "threshold": [0.0],
    "left": [0],
    "right": [0],
    "value": [0.0],
}


def made_up(applications: int = 4, noise: float = 0.0, seeds: Sequence[int] = (1,)) -> pl.DataFrame:
    """Runs after a law: time that is not computed goes with one adapter and with the share that interference leaves."""
    rows, random = [], np.random.default_rng(1)
    for number, rails, share, placement, seed in product(
        range(applications), ("all", "only 0"), (None, 0.25, 0.5, 0.75), ("packed", "spread", "random"), seeds
    ):
        computing = 1 + number
        network = 2.0 * (1 if rails == "all" else 1.5) / (share or 1) * (1.2 if placement == "random" else 1)
        wobble = np.exp(random.normal(0, noise)) if noise and share else 1.0
        rows.append(
            {
                "case": "made up",
                "application": f"a{number}",
                "rails": rails,
                "placement": placement,
                "seed": seed,
                "co_scheduled": None if share is None else "others",
                "link_share": share,
                "adapters": 1.0 if rails == "all" else 0.5,
                "adapters_shared": 0.0 if share is None else 1.0,
                "interference_utilisation": 0.0 if share is None else 0.8,
                "cap_w": 115.0,
                "run_time_ms": (computing + network) * wobble,
                "computing_ms": float(computing),
                "network_ms": network,
                "late_partner_ms": 0.0,
                "self_queueing_ms": 0.1,
                "messages": 10.0,
                "kilobytes": 100.0,
                "collective_share": 0.0,
                "host_utilisation": 0.3,
                "switch_utilisation": 0.3,
            }
        )
    return pl.DataFrame(rows, infer_schema_length=None)


@pytest.fixture
def few_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sklearn")
    monkeypatch.setattr("fairlane.learn.advice.model.TREES", 8)


@pytest.mark.usefixtures("few_trees")
def test_the_model_finds_a_law_and_its_intervals_cover_what_they_say(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made_up(noise=0.1, seeds=(1, 2)).write_csv(tmp_path / "runs.csv")
    assert execute(["learn", str(tmp_path / "runs.csv"), "--out", str(tmp_path / "model.json")]) == 0
    model = RunTimeModel.load(tmp_path / "model.json")
    for found in (model.by_application, model.by_condition):
        assert found.mean_error < 0.7 * found.baseline_error
        assert 0.7 <= found.coverage <= 0.95
        assert found.regret < found.random_regret
    assert f"mean error {model.by_application.mean_error:.1%}" in capsys.readouterr().out
    ends = model.predict(made_up(1), seen=True)
    assert (ends[:, 0] <= ends[:, 1]).all()
    assert (ends[:, 1] <= ends[:, 2]).all()
    beside = made_up(1).with_row_index("row").filter(rails="all", placement="packed", seed=1)
    times = {row["link_share"]: ends[row["row"], 1] for row in beside.iter_rows(named=True)}
    assert times[0.25] > times[0.5] > times[0.75]


def test_the_first_guess_is_worked_out_by_hand() -> None:
    runs = made_up(1).filter(seed=1)
    table = described(runs)
    alone = table.filter(pl.col("interference") == 0, rails="all", placement="random")
    assert alone["ratio"].to_list() == [1.0], "it is the reference"
    assert alone["guess"].to_list() == [pytest.approx(0.0)]
    # Computing is 1 of 3.4 ms. While it talks, links are busy for 0.3 / (2.4 / 3.4) = 0.425. A quarter of a link is
    # left, or 1 - 0.8 of it: 0.425 / 0.25 = 1.7 for what flows, and 1 + 0.8 0.5 3 = 2.2 for what is single.
    beside = table.filter(link_share=0.25, rails="all", placement="random")
    guess = 1 / 3.4 + 2.4 / 3.4 * (0.425 * 1.7 + 0.575 * 2.2)
    assert np.exp(beside["guess"].to_numpy()) == pytest.approx([guess])


@pytest.mark.usefixtures("few_trees")
def test_advice_by_a_model_takes_few_simulations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("fairlane.learn.advice.model.TREES", 2)
    made_up(3).write_csv(tmp_path / "runs.csv")
    (tmp_path / "small.toml").write_text(SCENARIO)
    model = str(tmp_path / "model.json")
    assert execute(["learn", str(tmp_path / "runs.csv"), "--out", model]) == 0
    capsys.readouterr()
    out = tmp_path / "out"
    options = ["--cap", "65 W", "--model", model, "--show", "18"]
    assert execute(["advise", str(tmp_path / "small.toml"), *options, "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert "18 alternatives, by the model" in said
    # Alone, beside the neighbours as advised, and the neighbours on the hosts of both, which may be the same.
    assert len(list((out / "answers").glob("*.json"))) in (3, 4)
    stored = {path: path.stat().st_mtime_ns for path in (out / "answers").iterdir()}
    assert execute(["advise", str(tmp_path / "small.toml"), *options, "--out", str(out), "--resume"]) == 0
    assert capsys.readouterr().out == said
    assert {path: path.stat().st_mtime_ns for path in (out / "answers").iterdir()} == stored, "nothing was repeated"
    first, second = said.partition("─\n")[2].splitlines()[:2]
    assert first.rstrip().endswith("%"), "what the neighbours lose by the advised alternative"
    assert second.rstrip().endswith("–")
    strict = ["--set", 'qos.arbiter={ name = "strict_priority", order = [1, 0] }']
    assert execute(["advise", str(tmp_path / "small.toml"), *options, *strict, "--out", str(tmp_path / "no")]) == 2
    assert "qos.arbiter" in capsys.readouterr().err
    assert not (tmp_path / "no").exists()


def test_saved_trees_predict_what_the_library_does() -> None:
    ensemble = pytest.importorskip("sklearn.ensemble")

    rows = np.random.default_rng(1).random((200, len(FEATURES)))
    y = rows[:, 0] * 3 + rows[:, 3] ** 2
    made = ensemble.GradientBoostingRegressor(n_estimators=1, max_depth=4, random_state=0).fit(rows, y)
    assert freeze(made).predict(rows).tolist() == pytest.approx(made.predict(rows), rel=1e-15)


def test_a_tree_is_read_by_hand() -> None:
    two_trees = TREE | {
        "roots": [0, 5],
        "feature": [3, -1, 0, -1, -1, -1],
        "threshold": [0.5, 0, 2, 0, 0, 0],
        "left": [1, -1, 3, -1, -1, -1],
        "right": [2, -1, 4, -1, -1, -1],
        "value": [0, 1, 0, 2, 3, 10],
    }
    rows = np.zeros((3, 4))
    rows[1:, 3], rows[2, 0] = 0.6, 2.5
    assert TreeSum.model_validate(two_trees).predict(rows).tolist() == [6.5, 7, 7.5]


def test_what_is_no_model_or_no_table_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "model.json").write_text('{"version": "1"}')
    with pytest.raises(ScenarioError, match="format: missing"):
        RunTimeModel.load(tmp_path / "model.json")
    for wrong_tree in ({"left": [0], "right": [0]}, {"left": [1], "right": [1]}, {"feature": [4]}, {"roots": [1]}):
        with pytest.raises(Problems, match="not trees"):
            validated(TreeSum, TREE | wrong_tree)
    wrong = {
        "cap_w: there is no such column": made_up().drop("cap_w"),
        "no run without neighbours": made_up().filter(pl.col("link_share").is_not_null()),
        "too few": made_up(2),
        "values of another kind": made_up().with_columns(host_utilisation=pl.lit("often")),
    }
    for words, table in wrong.items():
        table.write_csv(tmp_path / "runs.csv")
        assert execute(["learn", str(tmp_path / "runs.csv"), "--out", str(tmp_path / "out.json")]) == 2
        assert words in capsys.readouterr().err
        assert not (tmp_path / "out.json").exists()
    assert set(made_up().columns) == set(COLUMNS)
