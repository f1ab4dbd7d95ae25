"""Advice: alternatives are what single runs are; the model finds a law, and refuses what it cannot read."""

from itertools import product
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from fairlane import Scenario, runner
from fairlane.advice import advise, load_model
from fairlane.advice.model import FEATURES
from fairlane.cli.main import execute
from fairlane.errors import ScenarioError
from fairlane.inputs.problems import Problems, validated
from fairlane.trees import Tree, boosting_of
from small_study import Here

SCENARIO = """
duration = "1 ms"
[fabric]
topology = "fat_tree"
hosts = 16
levels = 2
radix = 8
bandwidth = "3.2 GB/s"
rails = 2
[qos]
service_levels = 2
arbiter = { name = "weighted_round_robin", weights = [7, 1] }
[power]
[[jobs]]
name = "application"
ranks = 8
workload = { name = "nearest_neighbor", compute = "5 us", message_size = "2 KiB" }
[[jobs]]
name = "neighbour"
ranks = 8
workload = { name = "all_to_all", compute = "5 us" }
"""


@pytest.fixture
def scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("fairlane.study.running.LocalPool", Here)
    path = tmp_path / "small.toml"
    path.write_text(SCENARIO)
    return path


def test_alternatives_are_what_single_runs_are(scenario: Path, tmp_path: Path) -> None:
    found = advise(scenario, cap="65 W", seeds=1, out=tmp_path / "advice")
    assert found.table.height == 3 * 2 * 3
    assert found.table["iteration_ms"].is_sorted()
    for row in (found.table.row(0, named=True), found.table.row(-1, named=True)):
        rails = (
            '{ policy = "by_source", order = "random" }'
            if row["rails"] == "all"
            else f"{{ {row['rails'].replace(' ', ' = ')} }}"
        )
        changes = [
            "seed=1",
            f"jobs[0].rails={rails}",
            f"jobs[0].service_level={row['service_level']}",
            f'jobs[0].placement="{row["placement"]}"',
            'jobs[0].power_cap="65 W"',
        ]
        single = runner.run(
            Scenario.load(scenario, set=changes), out=tmp_path / f"{row['rails']}", progress=False, figures=False
        )
        job, neighbour = single.jobs.to_dicts()
        assert row["iteration_ms"] == pytest.approx(1 / job["iterations"], rel=1e-3)
        assert row["neighbours"] == pytest.approx(neighbour["w"])
        assert row["alone_ms"] == pytest.approx(1 / job["isolated_iterations"], rel=1e-3)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--job", "aplication"], ["--job", "aplication", "application"]),
        (["--level", "2"], ["--level = 2", "0 to 1"]),
        (["--cap", "20 W"], ["power_cap", "20 W when idle", "> 20 W"]),
        (["--length", "soon"], ["duration", "soon"]),
    ],
)
def test_what_cannot_be_is_refused_before_anything_runs(
    options: list[str], words: list[str], scenario: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["advise", str(scenario), *options, "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert all(word in said for word in words), said
    assert not (tmp_path / "out").exists()


def test_one_that_is_too_short_says_so(scenario: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["advise", str(scenario), "--length", "4 us", "--out", str(tmp_path / "out")]) == 1
    assert "make it longer" in capsys.readouterr().err


def made_up(applications: int = 3) -> pl.DataFrame:
    """Runs after a law: time that is not computed goes with one adapter and with the share that interference leaves."""
    rows = []
    for number, rails, (level, share), placement in product(
        range(applications),
        ("both", "0"),
        ((None, None), (0, 0.25), (0, 0.5), (0, 0.75)),
        ("packed", "spread", "random"),
    ):
        computing = 1 + number
        network = 2.0 * (1 if rails == "both" else 1.5) / (share or 1) * (1.2 if placement == "random" else 1)
        rows.append(
            {
                "application": f"a{number}",
                "rails": rails,
                "interference_rails": None if share is None else "both",
                "interference_level": level,
                "link_share": share,
                "cap_w": 115,
                "placement": placement,
                "run_time_ms": computing + network,
                "computing_ms": float(computing),
                "waits_for_itself_ms": 0.1,
            }
        )
    return pl.DataFrame(rows, infer_schema_length=None)


def test_the_model_is_far_better_than_a_constant_where_there_is_a_law(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("sklearn")
    monkeypatch.setattr("fairlane.advice.learning.TREES", 30)
    made_up().write_csv(tmp_path / "runs.csv")
    assert execute(["learn", str(tmp_path / "runs.csv"), "--out", str(tmp_path / "model.json")]) == 0
    model = load_model(tmp_path / "model.json")
    assert model.by_condition.mean < 0.5 * model.by_condition.without
    assert model.by_application.mean < 0.7 * model.by_application.without
    assert model.by_condition.regret < model.by_condition.regret_of_any
    condition = dict.fromkeys(FEATURES, 0.0) | {"interference": 1.0, "cap_w": 115.0, "compute_share": 0.33}
    ends = model.predict([condition | {"link_share": share} for share in (0.25, 0.75)])
    assert (ends[:, 0] <= ends[:, 1]).all()
    assert (ends[:, 1] <= ends[:, 2]).all()
    assert ends[0, 1] > ends[1, 1]


def test_saved_trees_predict_what_the_library_does() -> None:
    ensemble = pytest.importorskip("sklearn.ensemble")
    rows = np.random.default_rng(1).random((200, len(FEATURES)))
    y = rows[:, 0] * 3 + rows[:, 3] ** 2
    made = ensemble.GradientBoostingRegressor(n_estimators=1, max_depth=4, random_state=0).fit(rows, y)
    tree = boosting_of(made).trees[0]
    assert tree.predict(rows.astype(np.float32)).tolist() == made.estimators_[0, 0].predict(rows).tolist()


def test_a_tree_is_read_by_hand() -> None:
    tree = Tree(
        feature=[3, -1, 0, -1, -1],
        threshold=[0.5, 0, 2, 0, 0],
        left=[1, -1, 3, -1, -1],
        right=[2, -1, 4, -1, -1],
        value=[0, 1, 0, 2, 3],
    )
    rows = np.zeros((3, len(FEATURES)), np.float32)
    rows[1:, 3], rows[2, 0] = 0.6, 2.5
    assert tree.predict(rows).tolist() == [1, 2, 3]


def test_what_is_no_model_or_no_table_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "model.json").write_text('{"version": "1"}')
    with pytest.raises(ScenarioError, match="by_application"):
        load_model(tmp_path / "model.json")
    with pytest.raises(Problems, match="not a tree"):
        validated(Tree, {"feature": [0], "threshold": [0.0], "left": [0], "right": [0], "value": [0.0]})
    made_up().drop("cap_w").write_csv(tmp_path / "runs.csv")
    assert execute(["learn", str(tmp_path / "runs.csv"), "--out", str(tmp_path / "out.json")]) == 2
    assert "cap_w: there is no such column" in capsys.readouterr().err
    assert not (tmp_path / "out.json").exists()
