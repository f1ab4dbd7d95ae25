"""Slowdowns of pairs: features by hand, simulated pairs, applications that no model has seen."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from fairlane.cli.main import execute
from fairlane.core.errors import ScenarioError
from fairlane.learn.scheduler.slowdown.model import LinkUse
from fairlane.learn.scheduler.slowdown.pairs import (
    APPLICATIONS,
    PAIR_FEATURES,
    PAIR_MODELS,
    pair_errors,
    pair_features,
    predict_held_out,
    simulate_pairs,
)
from fairlane.study.shipped.slowdowns import Best

pytest.importorskip("sklearn")

TORUS = {"small": {"topology": "torus", "sides": [4, 4], "bandwidth": "2 GiB/s", "host_bandwidth": "12 GiB/s"}}


def test_features_are_those_that_a_hand_finds() -> None:
    # Four links. The job uses three of them, the other two; they share one, and fill it to 1.4.
    use, other = LinkUse(4, np.array([0.4, 0.8, 0.4, 0.0]), 2.0), LinkUse(8, np.array([0.0, 0.6, 0.0, 0.6]), 1.0)
    best = Best((0, 1, 2, 3), compute=30_000_000, iteration_time=50e-6, traffic=np.zeros((4, 4)))
    others_best = Best((0,) * 8, compute=0, iteration_time=1e-6, traffic=np.zeros((8, 8)))
    own = np.array([0.5, 0.25, 0.125])
    found = dict(zip(PAIR_FEATURES, pair_features(use, own, best, other, others_best), strict=True))
    # Of 1.6 link-shares a half is on the shared link; a byte crosses two links.
    met = 2 * (0.8 * 0.6) / 1.6
    assert found == pytest.approx(
        {
            "contention": met,
            "contention_larger": met,
            "contention_x_peak": met * 0.8,
            "shared_traffic": 0.5,
            "peak_shared_utilisation": 1.4,
            "overload": 2 * (0.8 * 0.4) / 1.6,
            "iteration_time_ratio": 0.02,
            "burst": 0.6 * 0.02,
            "burst_contention": met * 0.02,
            "peak_utilisation": 0.8,
            "other_peak_utilisation": 0.6,
            "hops": 2.0,
            "communication_share": 0.4,
            "other_communication_share": 1.0,
            "extra_hops": 0.5,
            "extra_self_contention": 0.25,
            "extra_peak_utilisation": 0.125,
        }
    )
    turned = dict(zip(PAIR_FEATURES, pair_features(other, own, others_best, use, best), strict=True))
    assert turned["contention_larger"] == 0, "the other job is smaller"
    apart = LinkUse(4, np.array([0.0, 0.0, 0.0, 0.5]), 1.0)
    alone = dict(zip(PAIR_FEATURES, pair_features(use, own, best, apart, best), strict=True))
    assert [alone[name] for name in PAIR_FEATURES[:6]] == [0.0] * 6


def test_pairs_are_simulated_the_same_every_time_and_slow_each_other_down_only_where_they_meet() -> None:
    applications = {name: APPLICATIONS[name] for name in ("all_to_all", "random_pairs")}

    def made() -> pl.DataFrame:
        return simulate_pairs(6, fabrics=TORUS, applications=applications, sizes=(4, 8), seed=2)

    found = made()
    assert found.equals(made())
    assert found.height == 12
    assert found.columns == [
        "fabric",
        "pair",
        "application",
        "other",
        "ranks",
        "other_ranks",
        *PAIR_FEATURES,
        "slowdown",
    ]
    met = found.filter(pl.col("contention") > 0)
    apart = found.filter(pl.col("contention") == 0)
    assert met.height
    assert apart.height
    assert apart["slowdown"].to_list() == pytest.approx([1.0] * apart.height, abs=0.05)
    assert met.select(pl.col("slowdown").max()).item() > 1.02


def made_up(rows: int = 240) -> pl.DataFrame:
    """Pairs whose logarithm of slowdown is 0.5 of what a byte meets."""
    rng = np.random.default_rng(1)
    names = np.array(["a", "b", "c", "d"])
    features = {name: rng.random(rows) for name in PAIR_FEATURES}
    return pl.DataFrame(
        {
            "fabric": "made up",
            "pair": range(rows),
            "application": names[rng.integers(4, size=rows)],
            "other": names[rng.integers(4, size=rows)],
            **features,
            "slowdown": np.exp(0.5 * features["contention"]),
        }
    )


def test_a_law_is_found_for_applications_that_were_not_seen() -> None:
    found = predict_held_out(made_up())
    error = dict(pair_errors(found).select("model", "mean_error").rows())
    assert list(error) == list(PAIR_MODELS)
    assert error["contention"] < 0.001
    assert error["neighbours"] < 0.001
    assert error["ridge"] < 0.02
    assert error["gbm"] < 0.5 * error["constant"]
    assert error["constant"] < error["none"]
    assert found.filter(pl.col("role") == "both").select((pl.col("application") == pl.col("other")).all()).item()
    each = pair_errors(found, "held_out")
    assert each["held_out"].unique().sort().to_list() == ["a", "b", "c", "d"]


def test_what_is_predicted_of_an_application_does_not_know_what_happened_to_it_or_beside_it() -> None:
    pairs = made_up()
    here = (pl.col("application") == "a") | (pl.col("other") == "a")
    changed = pairs.with_columns(pl.when(here).then(9.0).otherwise("slowdown").alias("slowdown"))
    before, after = (
        predict_held_out(it).filter(pl.col("held_out") == "a").select(list(PAIR_MODELS)) for it in (pairs, changed)
    )
    assert before.equals(after)


def test_pairs_are_judged_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "pairs.csv"
    made_up(80).write_csv(path)
    assert execute(["predict", "pairs", str(path)]) == 0
    said = capsys.readouterr().out
    assert "80 jobs in pairs" in said
    assert "rank correlation" in said
    made_up(20).drop("overload").write_csv(path)
    assert execute(["predict", "pairs", str(path)]) == 2
    assert "overload: there is no such column" in capsys.readouterr().err
    made_up(20).with_columns(slowdown=pl.lit(0.0)).write_csv(path)
    assert execute(["predict", "pairs", str(path)]) == 2
    assert "slowdown" in capsys.readouterr().err
    with pytest.raises(ScenarioError, match="too few to leave one out"):
        predict_held_out(made_up().with_columns(application=pl.lit("a"), other=pl.lit("b")))
