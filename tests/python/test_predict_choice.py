"""The model that predict fit takes by itself: the one with the least error on held-out runs, without warnings."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from counters import FEW, made_up
from fairlane.cli.main import execute
from fairlane.models.regressors import one_thread
from fairlane.predict import CounterTable, Predictor, compare, fit
from fairlane.predict.choice import choose

pytest.importorskip("sklearn")
FOLDS = 3


@pytest.fixture(autouse=True)
def few_trees_on_one_thread(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("fairlane.models.regressors.TREES", 8)
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


def test_errors_of_a_held_out_fold_do_not_choose_its_model() -> None:
    table = CounterTable.of(made_up(12, 8), features=FEW)
    choice = choose(table, None, "base", folds=FOLDS, seed=1)
    predictions = compare(table, parts=("base",), folds=FOLDS, transductive=False).predictions
    for fold, (model, _) in choice.of_fold.items():
        others = predictions.filter(pl.col("fold") != fold).group_by("model", "fold")
        errors = others.agg(mse=((pl.col("predicted") - pl.col("seconds")) ** 2).mean()).group_by("model")
        assert model == errors.agg(pl.col("mse").mean()).sort("mse")["model"][0]
    assert sorted(choice.of_fold) == list(range(FOLDS))
    asked = choose(table, "forest", "sparse", folds=FOLDS, seed=1)
    assert (asked.best, asked.candidates) == (("forest", "sparse"), [])


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
