"""The reproduction of Patki et al. 2016: its conditions at their own size, small ones run, made-up ones judged."""

from pathlib import Path

import polars as pl
import pytest

from fairlane.model.scenario.resolve import decide
from fairlane.papers.reproduce import plan
from fairlane.study.sql import Database
from papers import held, performed, scenarios, small, stored_tables, study_of, tables_of
from pictures import assert_drawn

TINY = {
    "*": {
        "only": {"application": ["ft", "kripke"]},
        "scenario": {"jobs[0].ranks": 96},
        "set": {
            "factors.application.ft": {
                "jobs[0].name": "ft",
                "jobs[0].workload": {"name": "ft", "points": 1024, "compute": "0.1 ms"},
                "jobs[0].stop": 1,
            },
            "factors.application.kripke": {
                "jobs[0].name": "kripke",
                "jobs[0].workload": {"name": "kripke", "group_sets": 1, "compute": "40 us"},
                "jobs[0].stop": 1,
            },
        },
    }
}


def test_catalyst_is_filled_as_in_the_paper() -> None:
    chosen = plan("patki2016", only="patki.placement")
    levels = {"application": "ft", "balance": "0-0", "cap": "65", "seed": 1}
    (packed,) = scenarios(chosen, "power", place="packed", **levels)
    jobs = decide(packed).jobs
    application, interference = (sorted(set(job.hosts)) for job in jobs)
    assert (len(jobs[0].hosts), len(application), len(interference)) == (2048, 86, 170)
    assert len({*application, *interference}) == 256
    assert max(jobs[0].hosts.count(host) for host in application) == 24
    assert application == list(range(86)), "packed: five leaves of 18"
    (spread,) = scenarios(chosen, "power", place="spread", **levels)
    assert len({host // 18 for host in decide(spread).jobs[0].hosts}) == 18
    caps = [job.power.cap for job in jobs if job.power]
    assert caps == [65.0, 115.0], "nobody caps the interference"


def test_both_adapters_are_assigned_to_the_processes_of_a_host() -> None:
    chosen = plan("patki2016", only="patki.dual-rail")
    (scenario,) = scenarios(chosen, "rails", application="ft", rails="both", balance="0-0", seed=1)
    jobs = decide(scenario).jobs
    assigned = jobs[0].rails or {}
    ranks: dict[int, list[int]] = {}
    for rank, host in enumerate(jobs[0].hosts):
        ranks.setdefault(host, []).append(assigned["ranks"][rank])
    assert {sum(of) for of in ranks.values() if len(of) == 24} == {12}
    assert {job.rails["policy"] for job in jobs if job.rails} == {"by_source"}


def test_conditions_are_those_of_the_figures() -> None:
    chosen = plan("patki2016")
    counts = {name: len(list(study_of(chosen, name).points())) for name in chosen.studies}
    power = 5 * 4 * 3 * (2 + 1 + 2)
    alone = 5 * 4 * (1 + 1 + 2)
    assert counts == {
        "rails": 3 * 5 * 2,
        "rails.others": 4 * 3 * 5 * 2,
        "alone": 5 * 3 * 2,
        "neighbour": 2 * 2 * 2 * 2,
        "rails.shares": 3 * 5 * (2 + 3),
        "rails.phase": 2 * 2 * 2 * 5,
        "power": power,
        "power.alone": alone,
        "interference": 3,
    }
    (job,) = scenarios(chosen, "interference", neighbour="both")[0].jobs
    assert (job.name, job.ranks) == ("interference", 4080)


def test_a_reproduction_leaves_tables_figures_and_claims(tmp_path: Path) -> None:
    entries = {"power": {**TINY["*"], "only": {"application": ["ft", "kripke"], "cap": ["65", "115"]}}}
    changes = {name: entries.get(name, TINY["*"]) for name in ("power", "power.alone")}
    changes["power"] = {**changes["power"], "scenario": {"jobs[0].ranks": 96, "jobs[1].ranks": 192}}
    alone = {"scenario": {"jobs[0].ranks": 192, "duration": "0.2 ms"}, "only": {"neighbour": ["both"]}}
    found = performed(small("patki2016", "patki.placement", {**changes, "interference": alone}), tmp_path)
    assert not found.failed
    assert [len(one.findings) for one in found.judged] == [3]
    runs = pl.read_csv(tmp_path / "runs.csv", schema_overrides={"rails": pl.String})
    assert runs.height == 2 * 2 * 3 * 3
    assert (runs["run_time_ms"] > runs["computing_ms"]).all()
    assert (runs.filter(pl.col("interference_level").is_null())["waits_for_interference_ms"] == 0).all()
    # Under 65 W everything is computed at a lower frequency: no run is shorter, and none draws more power.
    keys = ["application", "service_level", "interference_level", "placement"]
    low, high = (runs.filter(pl.col("cap_w") == cap) for cap in (65, 115))
    both = low.join(high, on=keys, nulls_equal=True)
    assert both.height == low.height
    assert (both["computing_ms"] > both["computing_ms_right"]).all()
    assert (both["energy_j"] / both["run_time_ms"] < both["energy_j_right"] / both["run_time_ms_right"]).all()
    assert_drawn(tmp_path / "power.png")
    assert stored_tables("patki2016", tmp_path) == {"cells.csv", "claims.csv", "clauses.csv", "runs.csv"}


def measured(variant: str | None = None, **times: float) -> Database:
    """The tables of the paper for run times by what a run's name begins with, and 1 ms for all others."""
    rows: list[dict[str, object]] = []
    for study in ("rails", "power", "power.alone"):
        balances = {"rails": ("3-0", "0-0", "0-3"), "power": ("3-0", "0-0"), "power.alone": (None,)}[study]
        for application in ("ft", "lu", "kripke"):
            for rails in ("both", "0", "1") if study == "rails" else ("0",):
                for balance in balances:
                    for cap in ("115",) if study == "rails" else ("65", "115"):
                        for place in ("random",) if study == "rails" else ("packed", "spread", "random"):
                            for seed in (1, 2):
                                name = f"{study}_{application}_{rails}_{balance}_{cap}_{place}_{seed}".replace("-", "")
                                found = [time for key, time in times.items() if name.startswith(key)]
                                rows.append(
                                    {"study": study, "point": len(rows), "application": application, "rails": rails}
                                    | {"balance": balance, "cap": cap, "place": place, "seed": seed}
                                    | {"neighbour": None if study == "power.alone" else "both"}
                                    | {"run_time": 1e9 * (found[-1] if found else 1.0), "ranks": 4}
                                )
    zero = ("computing", "network", "late_partner", "others", "own_queueing", "messages", "bytes", "collective_share")
    used = ("host_utilisation", "switch_utilisation", "mean_switch_utilisation", "energy_j", "interference_iterations")
    table = pl.DataFrame(rows, infer_schema_length=None).with_columns(pl.lit(0.0).alias(it) for it in (*zero, *used))
    replicate = pl.DataFrame({"variant": [variant]}, {"variant": pl.String})
    return tables_of("patki2016", Database({"measured": table, "replicate": replicate}), 3)


def verdicts(claim: str, **times: float) -> list[bool]:
    return held("patki2016", claim, measured(None, **times))


@pytest.mark.parametrize(
    ("variant", "expected"),
    [(None, [1 / 9, 1 / 2, 8 / 9]), ("shares-64", [1 / 65, 1 / 2, 64 / 65]), ("strict", [0, 1 / 2, 1])],
)
def test_shares_of_a_link_follow_the_weights(variant: str | None, expected: list[float]) -> None:
    shares = measured(variant).ask(
        "SELECT DISTINCT link_share FROM runs_of_applications WHERE experiment = 'rails' ORDER BY ALL"
    )
    assert shares["link_share"].to_list() == pytest.approx(expected)


@pytest.mark.parametrize("variant", ["shares-64", "strict"])
def test_the_interference_of_a_variant_keeps_off_the_only_adapter(variant: str) -> None:
    chosen = plan("patki2016", only="patki.dual-rail", deciding=True, variant=variant)
    points = [point.parameters for point in study_of(chosen, "rails").points()]
    assert {(it["rails"], it["neighbour"]) for it in points} == {("both", "both"), ("0", "1"), ("1", "0")}
    weights = [scenario.qos.arbiter for scenario in scenarios(chosen, "rails", rails="0", balance="3-0", seed=1)]
    assert [it.name for it in weights] == ["strict_priority" if variant == "strict" else "weighted_round_robin"]


def test_greatest_over_least_decides_about_adapters() -> None:
    claim = "patki.dual-rail"
    assert verdicts(claim, rails_ft_both_30=3.0) == [True, True, True]
    assert verdicts(claim, rails_ft_both_30=2.9) == [False, True, True]
    assert verdicts(claim, rails_ft_both_30=4.0, rails_ft_0_00=2.0, rails_ft_1_00=2.1) == [True, True, False]
    assert verdicts(claim, rails_ft_both_30_115_random_1=2.0, rails_ft_both_30_115_random_2=4.0)[0], "the mean of seeds"


def test_each_part_decides_about_placements() -> None:
    claim = "patki.placement"
    assert verdicts(claim) == [False, False, False]
    assert verdicts(claim, power_kripke_0_30_65_spread=0.99) == [True, False, True]
    assert verdicts(claim, power_lu_0_00_65_random=1.01) == [False, True, False]
