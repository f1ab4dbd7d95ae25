"""The reproduction of Kim et al. 2008, a paper without a line of Python: run when small, judged on made-up points."""

from pathlib import Path

import polars as pl
import pytest

from fairlane.papers.reproduce import folder_of, plan
from fairlane.study.sql import Database
from papers import held, performed, scenarios, small, stored_tables, study_of
from pictures import assert_drawn


def test_it_has_no_python() -> None:
    assert {path.suffix for path in folder_of("kim2008").path.iterdir() if path.is_file()} == {".toml"}


def test_the_dragonfly_is_the_papers() -> None:
    chosen = plan("kim2008")
    assert len(list(study_of(chosen, "loads").points())) == 2 * 4 * 6 * 3
    scenario = scenarios(chosen, "loads", traffic="adversarial", routing="minimal")[0]
    fabric = scenario.resolve().fabric
    assert (fabric.hosts, fabric.switches) == (1056, 264)


def test_small_loads_are_accepted_whatever_the_routing(tmp_path: Path) -> None:
    load = {"parameters": {"jobs[0].workload.load": [0.1]}}
    change = {"set": load, "scenario": {"duration": "150 us"}, "only": {"traffic": ["uniform"]}}
    found = performed(small("kim2008", "kim.uniform", {"loads": change}), tmp_path)
    assert not found.failed
    points = pl.read_csv(tmp_path / "points.csv")
    # The query divides by 200 us, of which 50 us are simulated: about 1,100 messages, so 3% is a standard deviation.
    assert points["accepted"].to_numpy() * 4 == pytest.approx([0.1] * 4, rel=0.1)
    mean = dict(points.select("routing", "mean_us").iter_rows())
    assert mean["minimal"] < mean["valiant"], "a detour takes longer"
    assert_drawn(tmp_path / "loads.png")
    assert stored_tables("kim2008", tmp_path) == {"cells.csv", "claims.csv", "clauses.csv", "points.csv"}


def verdicts(claim: str, accepted: dict[tuple[str, str], float], ratio: float = 2.0) -> list[bool]:
    rows = [
        {"traffic": traffic, "routing": routing, "offered": offered, "accepted": min(offered, share), "hosts": 72}
        | {"mean_us": 2.0 * (ratio if routing == "ugal_l" else 1)}
        for (traffic, routing), share in accepted.items()
        for offered in (0.3, 0.9)
    ]
    database = Database({"points": pl.DataFrame(rows)})
    (saturated,) = [one for one in folder_of("kim2008").paper.table if one.name == "saturated"]
    database.put("saturated", database.ask(saturated.sql or ""))
    return held("kim2008", claim, database)


def test_claims_are_judged_by_what_is_accepted_at_the_highest_load() -> None:
    ideal = {("uniform", "minimal"): 0.9, ("uniform", "valiant"): 0.5, ("uniform", "ugal_g"): 0.9}
    ideal |= {("uniform", "ugal_l"): 0.88, ("adversarial", "minimal"): 1 / 8, ("adversarial", "valiant"): 0.48}
    ideal |= {("adversarial", "ugal_g"): 0.48, ("adversarial", "ugal_l"): 0.47}
    for claim, count in (("uniform", 2), ("adversarial", 2), ("ugal", 4), ("indirect-congestion", 1)):
        assert verdicts(f"kim.{claim}", ideal) == [True] * count
    worse = ideal | {("adversarial", "minimal"): 0.2, ("adversarial", "ugal_g"): 0.3, ("uniform", "valiant"): 0.8}
    assert verdicts("kim.adversarial", worse) == [False, True]
    assert verdicts("kim.ugal", worse) == [True, False, True, True]
    assert verdicts("kim.uniform", worse) == [True, False]
    assert verdicts("kim.indirect-congestion", ideal, ratio=1.1) == [False]
