"""The model that predict fit takes by itself: the one with the least error on held-out runs, without warnings."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from counters import FEW, made_up
from fairlane import ScenarioError
from fairlane.cli.main import execute
from fairlane.learn.models import one_thread
from fairlane.learn.predict.hyperparameters import INNER_FOLDS
from fairlane.learn.predict.model import Predictor, fit
from fairlane.learn.predict.table import CounterTable
from fairlane.learn.predict.validation import choose, compare, folds_of

pytest.importorskip("sklearn")
FOLDS = 3


@pytest.fixture(autouse=True)
def few_trees_on_one_thread(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("fairlane.learn.models.TREES", 8)
    with one_thread():
        yield


def port_counters(runs: int = 12, timesteps: int = 8) -> pl.DataFrame:
    """Counters of InfiniBand as ports have them: large numbers, copies of each other, and zeros."""
    rng = np.random.default_rng(3)
    rows = runs * timesteps
    words = rng.lognormal(30, 1.5, rows).astype(np.int64)
    wait = (rng.exponential(1e9, rows) * (rng.random(rows) < 0.2)).astype(np.int64)
    seconds = 2 + 3e-10 * wait + 1e-14 * words + 0.02 * rng.normal(size=rows)
    return pl.DataFrame(
        {
            "run": np.repeat(np.arange(runs), timesteps),
            "timestep": np.tile(np.arange(timesteps), runs),
            "seconds": seconds,
            "port_xmit_data": words,
            "port_rcv_data": words,
            "port_xmit_packets": words // 1024,
            "port_xmit_wait": wait,
            "symbol_error": 0,
            "link_downed": 0,
        }
    )


def test_the_model_with_the_least_error_of_the_comparison_is_taken() -> None:
    table = CounterTable.of(port_counters())
    made = fit(table, folds=FOLDS, coverage=0.8)
    compared = compare(table, folds=FOLDS, transductive=False).table.sort("mse")
    best = compared.row(0, named=True)
    # Times are a weighted sum of the counters, so that is what the linear model finds.
    assert (made.model, made.pipeline.parts.name) == (best["model"], best["parts"]) == ("ridge", "base")
    assert [(it.model, it.parts) for it in made.compared] == compared.select("model", "parts").rows()
    assert [it.mse for it in made.compared] == pytest.approx(compared["mse"].to_list())
    boosting = next(it for it in made.compared if (it.model, it.parts) == ("gbm", "sparse"))
    assert made.validated.mse < 0.1 * boosting.mse
    assert made.validated.mse == pytest.approx(best["mse"])


def test_runs_of_a_held_out_fold_do_not_choose_its_model() -> None:
    table = CounterTable.of(made_up(12, 8), features=FEW)
    choice = choose(table, None, "base", folds=FOLDS, seed=1)
    assert sorted(choice.of_fold) == list(range(FOLDS))
    fold = folds_of(table, FOLDS, 1)
    for number, (model, _) in choice.of_fold.items():
        training = table.filter(fold != number)
        errors = compare(training, parts=("base",), folds=INNER_FOLDS, transductive=False).table
        assert model == errors.sort("mse")["model"][0]
    asked = choose(table, "forest", "sparse", folds=FOLDS, seed=1)
    assert (asked.best, asked.candidates) == (("forest", "sparse"), [])


def test_whatever_a_held_out_run_measures_its_fold_has_the_same_model() -> None:
    table = CounterTable.of(made_up(12, 8), features=FEW)
    fold = folds_of(table, FOLDS, 1)
    chosen = choose(table, None, "base", folds=FOLDS, seed=1).of_fold
    assert table.target is not None
    for number in range(FOLDS):
        noise = np.random.default_rng(number).lognormal(3, 2, len(table.truth))
        other = replace(table, target=np.where(fold == number, noise, table.target))
        assert choose(other, None, "base", folds=FOLDS, seed=1).of_fold[number] == chosen[number]


def test_two_runs_leave_nothing_to_choose_by() -> None:
    table = CounterTable.of(made_up(2, 8), features=FEW)
    with pytest.raises(ScenarioError, match="folds = 2: leaves one run to train with"):
        choose(table, None, None, folds=2, seed=1)


def test_the_command_names_what_it_chose_and_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    port_counters().write_csv(tmp_path / "runs.csv")
    model, options = tmp_path / "model.json", ["--folds", str(FOLDS), "--coverage", "0.8", "-q"]
    command = ["predict", "fit", str(tmp_path / "runs.csv"), "--out", str(model), *options]
    assert execute([*command[:-1]]) == 0
    printed = capsys.readouterr()
    first = printed.out.splitlines()[0]
    made = Predictor.load(model)
    assert first.startswith("Model: ridge on the counters: mean square error on held-out runs ")
    assert f"the least of {len(made.compared)}; next " in first
    assert len(made.compared) == 12
    assert "over 3 folds, the model chosen anew from the training runs of each:" in printed.out
    assert "Warning" not in printed.err
    assert execute([*command[:-1], "--model", "ridge", "--parts", "base"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "Model: ridge on the counters"
    assert Predictor.load(model).compared == []
    assert execute([*command[:-1], "--parts", "base"]) == 0
    assert "the least of 4; next" in capsys.readouterr().out


def test_libraries_warn_of_nothing() -> None:
    # A warning fails a test. Spectral clustering warned of affinities that differ by rounding.
    table = CounterTable.of(port_counters())
    made = fit(table, model="ridge", parts="sparse", clusters=2, folds=FOLDS, coverage=0.8)
    assert made.predict(table)["cluster"].n_unique() == 2
