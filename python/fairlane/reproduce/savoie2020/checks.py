"""How the claims of Savoie et al. 2020 are judged: what was measured, and whether it is in its band."""

from collections.abc import Callable, Mapping

import polars as pl

from fairlane.reproduce.findings import above, within
from fairlane.reproduce.paper import Check, Finding
from fairlane.reproduce.savoie2020.results import Results

__all__ = ["CHECKS"]

Judge = Callable[[Results], list[Finding]]
STATIC = "small.static"
GAIN = "improvement"


def _value(table: pl.DataFrame, expression: pl.Expr) -> float:
    """One number out of a table; nan if it is empty."""
    found = table.select(expression).item()
    return float("nan") if found is None else float(found)


def _greatest(table: pl.DataFrame, column: str = GAIN) -> float:
    return _value(table, pl.col(column).max())


def _least(table: pl.DataFrame, column: str = GAIN) -> float:
    return _value(table, pl.col(column).min())


def _median(table: pl.DataFrame, column: str = GAIN) -> float:
    return _value(table, pl.col(column).median())


def _mean(table: pl.DataFrame) -> float:
    return _value(table, pl.col(GAIN).mean())


def _most_gain(table: pl.DataFrame) -> Finding:
    return above("share that gains", _value(table, (pl.col(GAIN) > 0).mean()), 0.5)


def _small_static(results: Results) -> list[Finding]:
    cells = results.jobs(STATIC)
    many = cells.filter(pl.col(GAIN) >= 0.10).height
    freed = cells.filter((pl.col("w_treated") >= -0.01) & (pl.col("w_default") <= -0.03)).height
    return [
        _most_gain(cells),
        within("max improvement", _greatest(cells), 0.15, 0.45),
        (f"{many} cells gain 10% (>= 4)", many >= 4),
        within("min improvement", _least(cells), low=-0.06),
        (f"{freed} cells free of contention (>= 1)", freed >= 1),
    ]


def _medium_static(results: Results) -> list[Finding]:
    cells = results.jobs("medium.static")
    bad = cells.filter(pl.col(GAIN) < -0.05).height
    flood = cells.filter((pl.col("workload") == "flood_pairs") & (pl.col("w_default") < 0))
    relief = _value(flood, (1 - pl.col("w_treated") / pl.col("w_default")).max())
    return [
        _most_gain(cells),
        within("max improvement", _greatest(cells), 0.18, 0.45),
        within("min improvement", _least(cells), low=-0.12),
        (f"{bad} cells lose 5% (<= 3)", bad <= 3),
        within("greatest relief of Flood-Pairs", relief, low=0.5),
    ]


def _long_observation(results: Results) -> list[Finding]:
    change = _median(results.jobs("small.long-observation")) - _median(results.jobs(STATIC))
    return [within("median improvement less static's", change, -0.03, 0.03)]


def _imbalance_small(results: Results) -> list[Finding]:
    mean, static = _mean(results.jobs("small.imbalance-small")), _mean(results.jobs(STATIC))
    return [(f"mean improvement {mean:+.3f} (< static's {static:+.3f})", mean < static)]


def _imbalance_large(results: Results) -> list[Finding]:
    cells = results.jobs("small.imbalance-large")
    return [
        within("max improvement", _greatest(cells), low=0.10),
        above("max W with QoS", _greatest(cells, "w_treated"), 0.02),
    ]


def _mini_paradis(results: Results) -> list[Finding]:
    cells = results.jobs("small.mini-paradis")
    bound = _greatest(results.jobs(STATIC)) + 0.02
    return [_most_gain(cells), within("max improvement", _greatest(cells), high=bound)]


def _mini_amg(results: Results) -> list[Finding]:
    cells = results.jobs("small.mini-amg")
    amg = pl.col("workload") == "mini_amg"
    worst = _value(cells.filter(amg), pl.col("w_default").abs().max())
    return [
        within("max |W| of Mini-AMG by default", worst, high=0.05),
        above("mean improvement of the others", _mean(cells.filter(~amg)), 0.0),
    ]


def _compute_35(results: Results) -> list[Finding]:
    cells = results.jobs("small.compute-35")
    return [
        within("min W by default", _least(cells, "w_default"), -0.70, -0.40),
        within("max improvement", _greatest(cells), low=0.15),
        within("min improvement", _least(cells), low=-0.20),
    ]


def _compute_90(results: Results) -> list[Finding]:
    cells = results.jobs("small.compute-90")
    return [
        within("min W by default", _least(cells, "w_default"), -0.20, -0.04),
        within("max improvement", _greatest(cells), 0.02, 0.12),
        within("min improvement", _least(cells), low=-0.02),
    ]


def _threshold(results: Results) -> list[Finding]:
    low, usual, one = (results.jobs(name) for name in ("small.threshold-0.4", STATIC, "small.threshold-1.0"))
    worst, usual_worst = _least(one), _least(usual)
    return [
        within("median improvement, T = 0.4 less T = 0.9", _median(low) - _median(usual), -0.03, 0.03),
        (f"min improvement, T = 1.0: {worst:+.3f} (< {usual_worst:+.3f}, T = 0.9)", worst < usual_worst),
    ]


def _arrivals(results: Results) -> list[Finding]:
    cells = results.jobs("small.arrivals")
    return [
        _most_gain(cells),
        within("max improvement", _greatest(cells), low=0.12),
        within("min improvement", _least(cells), low=-0.08),
    ]


def _large_static(results: Results) -> list[Finding]:
    cells = results.jobs("large.static")
    return [
        within("max improvement", _greatest(cells), low=0.07),
        within("min improvement", _least(cells), low=-0.05),
    ]


def median_progress(results: Results, experiment: str) -> pl.DataFrame:
    """The median over placements of the mean improvement, by number of accepted configurations."""
    found = results.progress(experiment).group_by("adopted").agg(pl.col("improvement").median())
    return found.sort("adopted")


def _accepted(results: Results) -> list[Finding]:
    findings = []
    for system in ("small", "medium"):
        table = median_progress(results, f"{system}.static")
        rank = _value(table, pl.corr("adopted", "improvement", method="spearman"))
        findings.append(above(f"{system}: rank correlation", rank, 0.5))
    return findings


def _applications(results: Results) -> list[Finding]:
    cells = results.jobs("medium.applications")
    name = pl.col("job")
    quiet = name.str.starts_with("amg") | name.str.starts_with("paradis")
    return [
        within("median W of AMG and ParaDiS", _median(cells.filter(quiet), "w_default"), low=-0.05),
        within("median W of Crystal Router and pF3D", _median(cells.filter(~quiet), "w_default"), high=-0.08),
        within("median improvement", _median(cells), -0.05, 0.05),
    ]


def _mixed(results: Results) -> list[Finding]:
    cells = results.jobs("medium.mixed")
    return [
        within("max improvement", _greatest(cells), low=0.04),
        within("min improvement", _least(cells), low=-0.06),
    ]


def _adaptive(results: Results) -> list[Finding]:
    """W under adaptive routing is against the jobs alone under D-mod-k, as W with QoS is."""
    cells = results.rerouted("small.adaptive-routing")
    assert cells is not None, "a claim is judged when everything it needs is there"
    findings = []
    for workload, better in (
        ("flood_pairs", True),
        ("random_pairs", True),
        ("nearest_neighbor", False),
        ("all_to_all", False),
    ):
        kind = cells.filter(pl.col("workload") == workload)
        first, second = _median(kind, "w_rerouted"), _median(kind, "w_treated")
        sign = ">" if better else "<"
        findings.append(
            (
                f"{workload}: adaptive {first:+.3f} {sign} QoS {second:+.3f}",
                first > second if better else first < second,
            )
        )
    return findings


def _check(judge: Judge, *experiments: str) -> Check:
    return Check(experiments, judge)


CHECKS: Mapping[str, Check] = {
    "savoie.small.static": _check(_small_static, STATIC),
    "savoie.medium.static": _check(_medium_static, "medium.static"),
    "savoie.small.long-observation": _check(_long_observation, "small.long-observation", STATIC),
    "savoie.small.imbalance-small": _check(_imbalance_small, "small.imbalance-small", STATIC),
    "savoie.small.imbalance-large": _check(_imbalance_large, "small.imbalance-large"),
    "savoie.small.mini-paradis": _check(_mini_paradis, "small.mini-paradis", STATIC),
    "savoie.small.mini-amg": _check(_mini_amg, "small.mini-amg"),
    "savoie.small.compute-35": _check(_compute_35, "small.compute-35"),
    "savoie.small.compute-90": _check(_compute_90, "small.compute-90"),
    "savoie.small.threshold": _check(_threshold, "small.threshold-0.4", STATIC, "small.threshold-1.0"),
    "savoie.small.arrivals": _check(_arrivals, "small.arrivals"),
    "savoie.large.static": _check(_large_static, "large.static"),
    "savoie.accepted-configurations": _check(_accepted, STATIC, "medium.static"),
    "savoie.medium.applications": _check(_applications, "medium.applications"),
    "savoie.medium.applications-and-microbenchmarks": _check(_mixed, "medium.mixed"),
    "savoie.small.adaptive-routing": _check(_adaptive, STATIC, "small.adaptive-routing"),
}
"""For each claim, what it needs and how it is judged."""
