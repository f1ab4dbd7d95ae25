"""Models of run times: folds without leaks, laws found again, saved models, intervals, warnings, wrong input."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from counters import FEW, made_up, two_kinds
from fairlane.cli.main import execute
from fairlane.core.errors import ScenarioError
from fairlane.learn.models import REGRESSORS, estimator, freeze, one_thread
from fairlane.learn.models.validation import grouped_quantile
from fairlane.learn.predict.clusters import local
from fairlane.learn.predict.hyperparameters import Given, fitted, tuned
from fairlane.learn.predict.model import Predictor, fit
from fairlane.learn.predict.table import CounterTable
from fairlane.learn.predict.validation import Comparison, compare, folds_of
from pictures import assert_drawn

pytest.importorskip("sklearn")


@pytest.fixture(autouse=True)
def few_trees_on_one_thread(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("fairlane.learn.models.TREES", 12)
    with one_thread():
        yield


def table_of(frame: pl.DataFrame) -> CounterTable:
    return CounterTable.of(frame, features=FEW)


def test_models_beyond_bounds_give_no_times_and_distances_in_words() -> None:
    def far(value: Any) -> Any:
        if isinstance(value, list):
            return [far(one) for one in value]
        return value * 1e250 if isinstance(value, float) else value

    made = fit(table_of(made_up(12, 8)), model="ridge", parts="base", folds=3, coverage=0.8)
    later = table_of(made_up(2, 8, seed=2).with_columns(pl.lit(1e100).alias(FEW[0])))
    data = made.model_dump(mode="json")
    data["novelty"]["precision"] = far(data["novelty"]["precision"])
    assert all("distance inf" in words for words in type(made).model_validate(data).warnings(later))
    data["pipeline"]["regressors"] = [
        {key: far(value) for key, value in one.items()} for one in data["pipeline"]["regressors"]
    ]
    with pytest.raises(ScenarioError, match=r"the predicted time of run .* is not finite"):
        type(made).model_validate(data).predict(later)


def test_every_run_is_in_one_fold_whole() -> None:
    table = table_of(made_up(17, 6))
    fold = folds_of(table, 5, seed=1)
    of_run = [set(fold[table.run == run]) for run in range(17)]
    assert all(len(one) == 1 for one in of_run)
    assert sorted(np.bincount([one.pop() for one in of_run])) == [3, 3, 3, 4, 4]
    assert (folds_of(table, 5, seed=2) != fold).any()


def test_what_a_run_is_predicted_knows_neither_its_time_nor_the_counters_of_its_fold() -> None:
    frame = made_up(12, 8, kinds=2)
    table = table_of(frame)
    fold = folds_of(table, 2, seed=1)
    one, other = np.unique(table.run[fold == 0])[:2]
    changed = frame.with_columns(
        pl.when(pl.col("run") == table.names[one]).then(9.9).otherwise(pl.col("seconds")).alias("seconds"),
        *(
            pl.when(pl.col("run") == table.names[one]).then(pl.col(name) * 3).otherwise(pl.col(name)).alias(name)
            for name in FEW
        ),
    )
    before, after = (compare(table_of(it), folds=2, models=("gbm",)).predictions for it in (frame, changed))
    others = pl.col("run") == table.names[other]
    for setting, parts in (("inductive", "base"), ("inductive", "sparse"), ("transductive", "sparse")):
        which = others & (pl.col("setting") == setting) & (pl.col("parts") == parts)
        same = before.filter(which)["predicted"] == after.filter(which)["predicted"]
        assert same.len() == 8
        assert same.all() == (setting == "inductive")
    before, after = (
        local(table_of(it), folds=2, clusters=(1, 2), model="ridge").predictions.filter(others)
        for it in (frame, changed)
    )
    for setting in ("inductive", "transductive"):
        once, again = (it.filter(setting=setting)["predicted"].to_list() for it in (before, after))
        assert (once == again) == (setting == "inductive")


def test_sparse_stalls_under_a_background_are_found_by_the_sparse_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairlane.learn.models.TREES", 60)
    found = compare(table_of(made_up(30, 12)), folds=3, models=("gbm",), transductive=False)
    mse = {row["parts"]: row["mse_over_variance"] for row in found.table.iter_rows(named=True)}
    assert mse["sparse"] < 0.7 * mse["base"] < mse["low-rank"]
    row = found.table.row(by_predicate=(pl.col("model") == "gbm") & (pl.col("parts") == "sparse"), named=True)
    own = found.predictions.filter(pl.col("model") == "gbm", pl.col("parts") == "sparse")
    off = (own["predicted"] - own["seconds"]).to_numpy()
    fold = own["fold"].to_numpy()
    assert row["mse"] == pytest.approx(np.mean([(off[fold == one] ** 2).mean() for one in range(3)]))
    assert row["max_abs_error"] == pytest.approx(np.mean([abs(off[fold == one]).max() for one in range(3)]))
    assert row["max_abs_error_sd"] == pytest.approx(np.std([abs(off[fold == one]).max() for one in range(3)], ddof=1))


def test_local_models_are_better_where_kinds_of_runs_pay_different_prices() -> None:
    table = CounterTable.of(two_kinds())
    found = local(table, clusters=(1, 2), model="ridge", parts="base", transductive=False, folds=4).table
    assert found["clusters"].to_list() == [1, 2]
    assert found["mse"][1] < 0.1 * found["mse"][0]


def test_known_kinds_are_as_good_as_clusters_that_find_them() -> None:
    frame = two_kinds()
    table = CounterTable.of(frame)
    kinds = [str(int(name) % 2) for name in table.names]
    made = local(table, clusters=(1, 2), kinds=kinds, model="ridge", parts="base", folds=4)
    mse = {(clusters, setting): mse for clusters, setting, mse in made.table[:, :3].iter_rows()}
    assert list(mse) == [*((count, it) for it in ("inductive", "transductive") for count in (1, 2)), (2, "known kinds")]
    assert mse[2, "known kinds"] == pytest.approx(mse[2, "inductive"])
    assert mse[2, "known kinds"] < 0.1 * mse[1, "inductive"]
    found = made.predictions.filter(clusters=2, setting="inductive")
    by_kind = found.with_columns(kind=pl.col("run") % 2).group_by("fold", "kind").agg(pl.col("cluster").n_unique())
    assert by_kind["cluster"].to_list() == [1] * 8
    with pytest.raises(ScenarioError, match="kinds"):
        local(table, kinds=kinds[1:], folds=4)


def test_tuned_hyperparameters_come_from_the_training_runs_only(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[set[int]] = []

    def watched(name: Any, seed: int, rows: Any, truth: Any, run: Any) -> Any:
        seen.append(set(run))
        return tuned(name, seed, rows, truth, run)

    monkeypatch.setattr("fairlane.learn.predict.hyperparameters.tuned", watched)
    table = table_of(made_up(9, 8))
    found = compare(table, models=("gbm", "ridge"), parts=("base",), hyperparameters=("2018", "tuned"), folds=3)
    names = found.table.select("model", "hyperparameters", "setting").rows()
    assert names == [("gbm", "2018", "inductive"), ("gbm", "tuned", "inductive"), ("ridge", "own", "inductive")]
    fold = folds_of(table, 3, 1)
    assert seen == [set(table.run[fold != number]) for number in range(3)]
    first, again = (tuned("gbm", 1, table.rows, table.truth, table.run).get_params() for _ in range(2))
    assert first == again
    assert (first["learning_rate"], first["n_estimators"]) in {(0.1, 12), (0.03, 36)}


def test_given_hyperparameters_are_those_of_2018_but_for_what_is_given() -> None:
    rng = np.random.default_rng(1)
    rows, truth, run = rng.random((40, 3)), rng.random(40), np.repeat(np.arange(8), 5)
    given = Given(gbm={"max_depth": 2, "subsample": 0.5}, forest={"n_estimators": 7})
    boosting = fitted("gbm", given, 1, rows, truth, run).get_params()
    usual = fitted("gbm", "2018", 1, rows, truth, run).get_params()
    assert {name: value for name, value in boosting.items() if usual[name] != value} == given.gbm
    assert len(fitted("forest", given, 1, rows, truth, run).estimators_) == 7


def test_a_difference_of_two_models_is_paired_by_fold() -> None:
    # Squared errors of two folds of two rows: 1 and 9 less 1 and 1, so differences of 0 and 8.
    keys = {"seconds": [0.0] * 4, "fold": [0, 0, 1, 1]}
    predictions = pl.concat(
        [
            pl.DataFrame({**keys, "predicted": [1.0, -1.0, 3.0, 3.0]}).with_columns(model=pl.lit("worse")),
            pl.DataFrame({**keys, "predicted": [1.0, 1.0, 1.0, -1.0]}).with_columns(model=pl.lit("better")),
        ]
    )
    found = Comparison(pl.DataFrame(), predictions).difference({"model": "worse"}, {"model": "better"})
    assert found.mse == 4
    # Standard deviation sqrt(32), variance times 1/2 + 1 for two folds, and Student's 12.706 for one degree of freedom.
    assert (found.high - found.low) / 2 == pytest.approx(12.7062 * np.sqrt(32 * 1.5), rel=1e-5)
    same = Comparison(pl.DataFrame(), predictions).difference({"model": "worse"}, {"model": "worse"})
    assert (same.mse, same.low, same.high) == (0, 0, 0)


@pytest.mark.parametrize("name", list(REGRESSORS))
def test_a_kept_model_predicts_what_the_library_does(name: str) -> None:
    table = table_of(made_up(20, 10))
    with one_thread():
        made = estimator(name, 1).fit(table.rows, table.truth)  # type: ignore[arg-type]
    off = freeze(made).predict(table.rows) - made.predict(table.rows)
    assert np.abs(off).max() < 1e-12 * np.abs(table.truth).max()


@pytest.mark.parametrize(("model", "parts", "clusters"), [("gbm", "sparse", 2), ("histogram", "low-rank", 1)])
def test_a_model_is_the_same_whenever_it_is_fitted_and_after_reading(
    model: str, parts: str, clusters: int, tmp_path: Path
) -> None:
    frame = made_up(12, 8, kinds=2)
    options = {"model": model, "parts": parts, "clusters": clusters, "folds": 3, "coverage": 0.8}
    made = fit(table_of(frame), **options)  # type: ignore[arg-type]
    made.save(tmp_path / "one.json")
    fit(table_of(frame.sample(fraction=1, shuffle=True, seed=3)), **options).save(tmp_path / "other.json")  # type: ignore[arg-type]
    assert (tmp_path / "one.json").read_bytes() == (tmp_path / "other.json").read_bytes()
    read = Predictor.load(tmp_path / "one.json")
    later = table_of(made_up(4, 8, kinds=2, seed=2))
    assert read.predict(later).equals(made.predict(later))
    turned = CounterTable.of(made_up(4, 8, kinds=2, seed=2), features=None)
    assert read.predict(turned).equals(made.predict(later)), "other counters beside the model's change nothing"


def test_the_interval_holds_what_it_says() -> None:
    # Four runs of one error each: with one more that may be anything, 3 of 5 are within the third.
    off, run = np.array([3.0, 1.0, 2.0, 4.0]), np.arange(4)
    assert grouped_quantile(off, run, 0.6) == 3
    assert grouped_quantile(off, run, 0.61) == 4
    with pytest.raises(ScenarioError, match=r"coverage = 0.81: 4 runs .* at most 0.8"):
        grouped_quantile(off, run, 0.81)
    # A run of many timesteps counts no more than one of few.
    assert grouped_quantile(np.array([1.0] * 98 + [5, 6]), np.array([0] * 98 + [1, 2]), 0.5) == 5
    made = fit(table_of(made_up(30, 10)), model="ridge", parts="base", folds=5, coverage=0.8)
    later = made_up(60, 10, seed=5)
    rows = made.predict(table_of(later)).join(later.select("run", "timestep", "seconds"), on=["run", "timestep"])
    inside = (
        rows.select((pl.col("seconds") >= pl.col("low")) & (pl.col("seconds") <= pl.col("high"))).to_series().mean()
    )
    assert inside == pytest.approx(0.8, abs=0.12)


def test_a_run_unlike_all_others_is_named_and_others_are_not() -> None:
    made = fit(table_of(made_up(20, 8)), model="ridge", parts="sparse", folds=4)
    later = made_up(3, 8, seed=9).with_columns(
        pl.when(pl.col("run") == "run-001")
        .then(pl.col("flits_max_vc3") * 5)
        .otherwise("flits_max_vc3")
        .alias("flits_max_vc3")
    )
    found = made.predict(table_of(later))
    assert found.filter("out_of_distribution")["run"].unique().to_list() == ["run-001"]
    (words,) = made.warnings(table_of(later))
    assert "run run-001 is out of distribution" in words
    assert "flits_max_vc3" in words


def test_the_costly_counters_are_the_important_ones() -> None:
    found = fit(table_of(made_up(30, 12)), model="gbm", parts="sparse", folds=5).importance
    assert set(sorted(found, key=found.__getitem__)[-2:]) == {"stalls_max_vc0", "stalls_sum_vc3"}


def test_from_a_table_to_predictions_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frame = made_up(14, 8).rename({"run": "job", "seconds": "time"})
    frame.write_parquet(tmp_path / "runs.parquet")
    model = str(tmp_path / "model.json")
    options = ["--features", "*_vc0,*_vc3,*_vc6", "--run", "job", "--target", "time", "--folds", "4"]
    assert execute(["predict", "fit", str(tmp_path / "runs.parquet"), "--out", model, *options]) == 0
    said = capsys.readouterr().out
    assert "of the variance" in said
    assert "stalls_max_vc0" in said
    made_up(2, 8, seed=4).drop("seconds").rename({"run": "job"}).write_csv(tmp_path / "later.csv")
    assert execute(["predict", "apply", model, str(tmp_path / "later.csv"), "--run", "job"]) == 0
    rows = pl.read_csv(capsys.readouterr().out.encode())
    assert rows.height == 16
    assert (rows["low"] < rows["predicted"]).all()
    assert (rows["predicted"] < rows["high"]).all()
    out = tmp_path / "out.parquet"
    assert execute(["predict", "apply", model, str(tmp_path / "runs.parquet"), "--run", "job", "--out", str(out)]) == 0
    assert "inside the interval" in capsys.readouterr().err
    assert pl.read_parquet(out).height == 14 * 8


def test_all_models_are_compared_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made_up(8, 7).select("run", "timestep", "seconds", *FEW).write_csv(tmp_path / "runs.csv")
    arguments = ["predict", "compare", str(tmp_path / "runs.csv"), "--folds", "2", "--out", str(tmp_path / "out")]
    assert execute(arguments) == 0
    said = capsys.readouterr().out
    # Boosting and forest on two parts, and three numbers of clusters.
    assert said.count("transductive") == 2 * 2 + 3
    assert "clusters" in said
    written = {path.name for path in (tmp_path / "out").iterdir()}
    assert written == {
        "models.csv",
        "local.csv",
        "predictions.parquet",
        "local-predictions.parquet",
        "predictions.png",
        "local.png",
        "predictions.html",
    }
    for name in ("predictions.png", "local.png"):
        assert_drawn(tmp_path / "out" / name)


@pytest.mark.parametrize(
    ("change", "options", "words"),
    [
        (pl.lit("slow").alias("seconds"), [], ["seconds", "not a column of numbers"]),
        (pl.col("seconds").alias("second"), ["--target", "secons"], ["secons: unknown column", 'did you mean "second']),
        (pl.lit(None, pl.Float64).alias("flits_sum_vc0"), [], ['flits_sum_vc0 = "empty"', "run run-000, timestep 0"]),
        (pl.lit(float("nan")).alias("flits_sum_vc0"), [], ["flits_sum_vc0", "48 of 48 cells", "nan"]),
        (pl.lit(float("inf")).alias("seconds"), [], ["seconds", "inf", "finite"]),
        (pl.lit(0).alias("timestep"), [], ["run run-000 has its timestep 0 more than once"]),
        (pl.lit(0.5).alias("timestep"), [], ["timestep", "Float64", "integers"]),
        (pl.lit(2.0).alias("seconds"), [], ["seconds", "all times are the same"]),
        (pl.lit("x").alias("flits_sum_vc0"), ["--features", "flits_*"], ["flits_sum_vc0", "String"]),
        ([], ["--features", "flits_*,stals_*"], ["stals_*", "unknown column"]),
        ([], ["--folds", "9"], ["folds = 9", "8 runs", "2 to 8"]),
        ([], ["--folds", "4", "--clusters", "7"], ["clusters = 7"]),
        ([], ["--folds", "4", "--coverage", "0.95"], ["coverage = 0.95", "8 runs"]),
        ([], ["--coverage", "1"], ["--coverage = 1"]),
        ([], ["--model", "gbdt"], ["--model", "gbdt", "gbm, forest, histogram, ridge"]),
        ([], ["--parts", "sparce"], ["--parts", 'did you mean "sparse"']),
        (pl.col("timestep") + 1, ["--timestep", "step"], ["step: unknown column", 'did you mean "timestep"']),
    ],
)
def test_what_cannot_be_learned_from_is_refused(
    change: object, options: list[str], words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = made_up(8, 6).select("run", "timestep", "seconds", *FEW).with_columns(change)  # type: ignore[arg-type]
    frame.write_parquet(tmp_path / "runs.parquet")
    out = tmp_path / "model.json"
    given = ["predict", "fit", str(tmp_path / "runs.parquet"), "--out", str(out), "--model", "ridge", *options]
    if "--folds" not in options:
        given += ["--folds", "4"]
    if "--coverage" not in options:
        given += ["--coverage", "0.8"]
    assert execute(given) == 2
    said = capsys.readouterr().err
    assert all(word in said for word in words), said
    assert not out.exists()


def test_few_timesteps_are_refused_for_local_models_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made_up(6, 5).select("run", "timestep", "seconds", *FEW).write_csv(tmp_path / "runs.csv")
    assert execute(["predict", "compare", str(tmp_path / "runs.csv"), "--folds", "2"]) == 2
    assert "6 timesteps or more" in capsys.readouterr().err
    assert execute(["predict", "compare", str(tmp_path / "runs.csv"), "--folds", "2", "--no-local"]) == 0


def test_a_file_that_is_no_model_or_not_for_this_table_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = made_up(8, 6)
    made = fit(table_of(frame), model="gbm", parts="sparse", folds=4, coverage=0.8)
    made.save(tmp_path / "model.json")
    text = (tmp_path / "model.json").read_text()
    frame.write_csv(tmp_path / "runs.csv")

    def refused(content: str, *words: str, table: str = "runs.csv") -> None:
        (tmp_path / "bad.json").write_text(content)
        assert execute(["predict", "apply", str(tmp_path / "bad.json"), str(tmp_path / table)]) == 2
        said = capsys.readouterr().err
        assert all(word in said for word in words), said

    refused("", "bad.json")
    refused(text[:-200], "bad.json", "JSON")
    refused('{"version": "1"}', "format: missing")
    refused(text.replace("fairlane counters 2", "fairlane counters 1"), "format", "fit it again", "fairlane counters 2")
    refused(text.replace('"feature": [', '"feature": [99, ', 1), "nodes, while")
    refused(text.replace('"feature": [', '"feature": [NaN, ', 1), "bad.json")
    refused(text.replace('"axes": [[', '"axes": [[1.0, ', 1), "axes", "not an array of numbers")
    refused(text.replace('"half_width":', '"half_widht":', 1), "half_widht", "half_width")
    frame.drop("flits_sum_vc0").write_csv(tmp_path / "other.csv")
    refused(text, "other.csv: ", "flits_sum_vc0", table="other.csv")
    assert execute(["predict", "apply", str(tmp_path / "none.json"), str(tmp_path / "runs.csv")]) == 2
    assert "none.json: cannot be read" in capsys.readouterr().err


def test_samples_of_components_become_a_table_by_one_statement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import duckdb

    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    rows, steps = [], []
    for run in ("a", "b"):
        grown = np.zeros((3, 2), int)
        for second in range(0, 61, 5):
            rows += [
                {
                    "run": run,
                    "time": 100 + second,
                    "component": f"router-{at}",
                    "flits_vc0": one[0],
                    "stalls_vc0": one[1],
                }
                for at, one in enumerate(grown.tolist())
            ]
            grown += rng.integers(0, 1000, grown.shape)
        steps += [{"run": run, "timestep": at, "begin": 100 + 20 * at, "seconds": 20} for at in range(3)]
    samples, timesteps = pl.DataFrame(rows), pl.DataFrame(steps)
    samples.write_csv("samples.csv")
    timesteps.write_csv("steps.csv")
    statement = Path(__file__).parents[2] / "examples" / "counters" / "from_samples.sql"
    with duckdb.connect() as connection:
        connection.execute(statement.read_text())
    table = CounterTable.read(Path("counters.parquet"))
    assert table.keys.rows() == [(run, at) for run in "ab" for at in range(3)]
    ends = samples.filter(pl.col("time") % 20 == 0).sort("run", "component", "time")
    counted = ends.with_columns(pl.col("flits_vc0", "stalls_vc0").diff().over("run", "component")).drop_nulls()
    expected = counted.group_by("run", "time", maintain_order=True).agg(
        *(
            getattr(pl.col(f"{what}_vc0"), how)().alias(f"{what}_{how}_vc0")
            for what in ("flits", "stalls")
            for how in ("sum", "mean", "max")
        )
    )
    for name in table.features:
        assert table.rows[:, table.features.index(name)] == pytest.approx(expected.sort("run", "time")[name].to_numpy())
    assert len(table.features) == 6
