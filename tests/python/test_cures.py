"""The comparison of cures: its bound, its intervals, its verdicts on made-up tables, and a small run."""

from pathlib import Path

import numpy
import polars as pl
import pytest

from fairlane.papers.published.cures.method import largest, loads, ranking, variances
from fairlane.papers.reproduce import plan
from fairlane.study.sql import Database
from papers import held, performed, small, stored_tables, study_of
from pictures import assert_drawn


def database(gains: dict[str, list[float]], worst: float = -0.01, system: str = "small") -> Database:
    """Cells of one placement each, by treatment."""
    rows = [
        {
            "system": system,
            "treatment": name,
            "placement": at,
            "seed": 31,
            "controller_seed": 1,
            "improvement": gain,
            "worst": worst,
        }
        | {"best": 0.2, "headroom": 0.08, "w": -0.05, "jobs": 8, "losing": 1}
        for name, of in gains.items()
        for at, gain in enumerate(of)
    ]
    found = Database({"cells": pl.DataFrame(rows)})
    of_cells = "SELECT DISTINCT system, placement, seed, 0.06 AS bound FROM cells"
    found.put("bounds", found.ask(of_cells))
    found.put("ranking", ranking(found))
    return found


def test_the_bound_is_what_a_full_link_leaves() -> None:
    """Two jobs share one link, of which each takes half by default: what one gains the other loses."""
    shared = numpy.array([[0.5, 0.5]])
    assert largest(shared, numpy.array([0.4, 0.4])) == pytest.approx(0.0)
    # By default a fifth of the link is free: two fifths of one of the jobs, half of that in the mean.
    assert largest(shared * 0.8, numpy.array([0.5, 0.1])) == pytest.approx(0.25)
    assert largest(shared * 0.1, numpy.array([0.5, 0.1])) == pytest.approx(0.3), "isolation, where nothing is full"
    # A job may lose five percent if another gains more by it.
    assert largest(numpy.array([[0.8, 0.2]]), numpy.array([0.0, 1.0])) == pytest.approx((-0.05 + 0.2) / 2)


def test_links_carry_what_the_jobs_send() -> None:
    found = loads("small", 201, 31)
    assert found.shape[1] == 8
    # Flood-Pairs: 16 messages of 16 KiB from each of 8 ranks, over its link of 3.2 GB/s to the first switch.
    first = found[:, 0][found[:, 0] > 0].min()
    assert first == pytest.approx(16 * 16384 / 3.2e9, rel=0.05)


def test_intervals_are_of_differences_in_the_same_cells() -> None:
    base = [0.01, 0.03, 0.02, 0.05, 0.0, 0.04]
    tables = database({"algorithm1_tuned": base, "digital_twin": [2 * gain + 0.01 for gain in base]})
    row = tables.ask("SELECT * FROM ranking WHERE treatment = 'digital_twin'").row(0, named=True)
    assert row["difference"] == pytest.approx(0.01)
    assert row["difference_low"] == pytest.approx(0.01), "placements differ, the difference does not"
    assert row["improvement_low"] < row["improvement"] < row["improvement_high"]
    assert row["share"] == pytest.approx(row["improvement"] / 0.08)
    assert row["share_of_bound"] == pytest.approx(row["improvement"] / 0.06)
    assert row["losing"] == pytest.approx(1 / 8)


def test_the_bars_are_twice_algorithm_1_and_no_loss_beyond_five_percent() -> None:
    base = [0.01, 0.02, 0.015, 0.02, 0.01]
    better, little = [0.04, 0.05, 0.04, 0.055, 0.04], [0.03, 0.05, 0.02, 0.055, 0.01]
    for system in ("small", "medium", "large"):
        claim = f"cures.{system}"
        assert (
            held("cures", claim, database({"algorithm1_tuned": base, "digital_twin": better}, system=system))
            == [True] * 2
        )
        losing = database({"algorithm1_tuned": base, "digital_twin": better}, -0.06, system)
        assert held("cures", claim, losing) == [True, False]
        noise = database({"algorithm1_tuned": base, "digital_twin": little}, system=system)
        assert held("cures", claim, noise) == [False, True]
    assert held("cures", "cures.slack", database({"algorithm1_tuned": base, "slack": better})) == [True]
    assert held("cures", "cures.slack", database({"algorithm1_tuned": base, "slack": base})) == [False]


def test_variance_is_divided_between_placements_scenarios_and_controllers() -> None:
    rng = numpy.random.default_rng(1)
    rows = [
        {
            "system": "small",
            "treatment": "slack",
            "placement": at,
            "seed": 10 * at + seed,
            "controller_seed": controller,
        }
        | {"improvement": mean + of_scenario + rng.normal(0, 0.01)}
        for at, mean in enumerate(rng.normal(0.03, 0.04, 300))
        for seed, of_scenario in enumerate(rng.normal(0, 0.02, 4))
        for controller in range(1, 4)
    ]
    cells = pl.DataFrame(rows)
    (found,) = variances(Database({"cells": cells})).iter_rows(named=True)
    assert found["sd_placements"] == pytest.approx(0.04, rel=0.15)
    assert found["sd_scenarios"] == pytest.approx(0.02, rel=0.1)
    assert found["sd_controllers"] == pytest.approx(0.01, rel=0.05)
    assert (found["scenario_seeds"], found["controller_seeds"]) == (4, 3)
    (found,) = variances(Database({"cells": cells.filter(controller_seed=1)})).iter_rows(named=True)
    assert found["sd_controllers"] is None, "one controller seed tells nothing about them"
    assert found["sd_scenarios"] == pytest.approx((0.02**2 + 0.01**2) ** 0.5, rel=0.1), "scenario and controller"
    assert not variances(Database({"cells": cells.filter(controller_seed=1, seed=0)})).height, "one seed, one placement"
    fewer = cells.filter((pl.col("placement") < 200) | (pl.col("controller_seed") == 1))
    same = variances(Database({"cells": cells.filter(pl.col("placement") < 200)}))
    assert variances(Database({"cells": fewer})).equals(same), "placements with fewer seeds are left out"


def test_placements_count_the_same_whatever_their_number_of_cells() -> None:
    tables = database({"algorithm1_tuned": [0.01, 0.03]})
    second = tables.ask("SELECT * FROM cells WHERE placement = 1").with_columns(headroom=0.2, improvement=0.05)
    more = [second.with_columns(pl.lit(at, pl.Int64).alias("controller_seed")) for at in (2, 3)]
    cells = pl.concat([tables.ask("SELECT * FROM cells"), *more], how="vertical_relaxed")
    (row,) = ranking(Database({"cells": cells, "bounds": tables.ask("SELECT * FROM bounds")})).iter_rows(named=True)
    assert row["improvement"] == pytest.approx((0.01 + (0.03 + 0.05 + 0.05) / 3) / 2)
    assert row["headroom"] == pytest.approx((0.08 + (0.08 + 0.2 + 0.2) / 3) / 2)
    assert row["share"] == pytest.approx(row["improvement"] / row["headroom"])


def test_what_is_tested_was_not_used_for_tuning() -> None:
    """Development used placements up to 200 and seeds up to 30."""
    chosen = plan("cures")
    for name in chosen.studies:
        for point in study_of(chosen, name).points():
            scenario = study_of(chosen, name).scenario(point)
            assert scenario.seed > 30
            assert scenario.placement.model_dump()["seed"] > 200


SHORT = {"periods": 5, "period": "2 ms", "draws": 1}


@pytest.mark.long("papers")
def test_a_small_run_ranks_the_controllers(tmp_path: Path) -> None:
    changes = {
        study: {
            "set": {
                **{f"treatments.{name}.{key}": it for name in of for key, it in SHORT.items()},
                "placements": {"count": 2, "first": first},
                "seeds": {"per_placement": 1, "first": first - 170},
            }
        }
        for study, first, of in (
            ("small.1", 201, ("algorithm1_tuned", "slack")),
            ("small.fresh", 221, ("algorithm1_tuned", "slack", "digital_twin", "lane_per_job", "adaptive", "packed")),
            ("small.printed", 201, ("algorithm1",)),
        )
    }
    changes["small.fresh"]["set"]["treatments.digital_twin.controller.trials"] = 2
    found = performed(small("cures", ["cures.small", "cures.knowledge"], changes), tmp_path)
    assert not found.failed
    rows = pl.read_csv(tmp_path / "ranking.csv")
    other = {"lane_per_job", "adaptive", "packed"}
    assert set(rows["treatment"]) == {"algorithm1", "algorithm1_tuned", "slack", "digital_twin"} | other
    assert 0 < rows["bound"][0] <= rows["headroom"][0] + 0.05
    assert rows.filter(treatment="digital_twin")["gain"].null_count() == 0, "paired with another study's cells"
    kept = {
        "bounds.csv",
        "cells.csv",
        "cells_by_treatment.csv",
        "claims.csv",
        "clauses.csv",
        "jobs.csv",
        "ranking.csv",
        "variances.csv",
    }
    assert stored_tables("cures", tmp_path) == kept, "the page has the same tables"
    for picture in ("ranking", "jobs"):
        assert_drawn(tmp_path / f"{picture}.png")
