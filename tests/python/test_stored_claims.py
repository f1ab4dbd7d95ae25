"""Verdicts that are stored with the pages follow from the tables that are stored with them."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, cast

import polars as pl
import pytest
from scipy import stats

from fairlane.core.wording import plural
from fairlane.papers.judging import judged
from fairlane.papers.output import verdict_page
from fairlane.papers.replicating import nothing, repeat
from fairlane.papers.reproduce import plan
from fairlane.papers.running import Outcome
from fairlane.papers.storing import known, table_of
from fairlane.papers.verdicts import ClaimVerdict, Verdict
from fairlane.results.reproduction import claims_of, numbers_of, spread_of
from fairlane.study.sql import Database
from pages import table

if TYPE_CHECKING:
    from fairlane.study.tasks.executor import Executor

ENDINGS = (Verdict.HOLDS, Verdict.CONDITIONAL, Verdict.CONTRADICTED, Verdict.SCALED, Verdict.UNDECIDED)
COLUMNS = [*((ending, False) for ending in ENDINGS), (Verdict.HOLDS, True)]
"""Those of the overview: the last word on a claim, and whether it is near certain."""
PAGES = Path(__file__).parents[2] / "docs" / "reproduction"
STRATEGIES = ("none", "split_priority", "bandwidth_weight", "isolate")


def _jobs() -> dict[str, pl.DataFrame]:
    """The table ``jobs`` of savoie2020: one file a study, of Algorithm 1."""
    folder = PAGES / "savoie2020"
    studies = plan("savoie2020").studies
    parts = [
        pl.read_csv(folder / f"{name}.csv").with_columns(study=pl.lit(name), treatment=pl.lit("process_prioritization"))
        for name in studies
        if (folder / f"{name}.csv").exists() and name != "small.adaptive-routing"
    ]
    assert len(parts) > 10
    return {
        "jobs": pl.concat(parts, how="diagonal_relaxed"),
        "rerouted": pl.read_csv(folder / "small.adaptive-routing.csv"),
    }


def _conditions() -> dict[str, pl.DataFrame]:
    """The table ``conditions`` of patki2016, as its folder makes it of the runs."""
    runs = Database({"runs_of_applications": pl.read_csv(PAGES / "patki2016" / "runs.csv")})
    queries = {one.name: one.sql for one in plan("patki2016").folder.paper.table}
    for name in ("labels", "conditions"):
        sql = queries[name]
        assert sql
        runs.put(name, runs.ask(sql))
    return {"conditions": runs.ask("SELECT * FROM conditions")}


def _stats() -> dict[str, pl.DataFrame]:
    """The table ``stats`` of wilke2020."""
    times = pl.read_csv(PAGES / "wilke2020" / "times.csv", schema_overrides={"size": pl.String})
    return {"stats": times.with_row_index("point")}


@pytest.mark.parametrize(
    ("paper", "tables", "left_out"),
    [
        ("savoie2020", _jobs, {"savoie.accepted-configurations"}),
        ("patki2016", _conditions, set()),
        (
            "wilke2020",
            _stats,
            {"wilke.virtual-lanes", "wilke.pingpong", "wilke.pingpong.min-par", "wilke.port-counters"},
        ),
    ],
)
def test_stored_verdicts_follow_from_stored_tables(paper: str, tables: object, left_out: set[str]) -> None:
    assert callable(tables)
    database = Database(tables())
    stored = pl.read_csv(PAGES / paper / "clauses.csv").filter(pl.col("variant").fill_null("") == "", replicate=1)
    seen = 0
    for claim in plan(paper).claims:
        rows = stored.filter(claim=claim.id).to_dicts()
        if claim.id in left_out or not rows:
            continue
        found = judged(claim, database, ()).findings
        assert [(row["clause"], row["in_band"]) for row in rows] == [(one.clause + 1, one.holds) for one in found]
        expected = [one.value for one in found]  # of times with six digits, whose differences have fewer
        assert [row["value"] for row in rows] == pytest.approx(expected, rel=5e-3, abs=1e-5), claim.id
        seen += len(found)
    assert seen >= 5


STORED = sorted(path.parent.name for path in PAGES.glob("*/verdicts.md"))


@lru_cache
def _verdicts(paper: str, *files: str) -> Sequence[ClaimVerdict]:
    """What the stored numbers of all replicates say of each claim; ``files`` of the paper's are judged as well."""
    chosen = replace(plan(paper), studies={})
    earlier = known([PAGES / paper, *(PAGES / paper / file for file in files)], chosen, running=False)
    nowhere = cast("Executor", None)  # nothing is performed
    return repeat(chosen, Outcome(Database(), {}, {}), nothing(chosen), nowhere, 0, None, earlier).verdicts


@pytest.mark.parametrize("paper", STORED)
def test_the_verdicts_on_a_page_follow_from_the_stored_numbers(paper: str) -> None:
    verdicts, page = _verdicts(paper), (PAGES / paper / "index.md").read_text()
    assert (PAGES / paper / "verdicts.md").read_text() == "\n".join(verdict_page(table_of(verdicts))) + "\n"
    assert page.count("```{include} verdicts.md\n```") == 1
    claims = pl.read_csv(PAGES / paper / "claims.csv")
    assert dict(claims.select("claim", "verdict").iter_rows()) == {one.claim.id: one.line for one in verdicts}
    table = pl.read_csv(PAGES / paper / "clauses.csv").with_columns(pl.col("variant").fill_null(""))
    stored = {
        (claim, variant): verdict for claim, variant, verdict in table["claim", "variant", "claim_verdict"].rows()
    }
    assert stored == {(it.claim.id, it.variant): it.verdict for one in verdicts for it in one.settings if it.complete}
    assert {one.ending for one in verdicts} <= {*ENDINGS}
    contradicted = [one for one in verdicts if one.ending is Verdict.CONTRADICTED]
    assert [one.claim.id for one in contradicted if not one.claim.because] == []


SETTINGS = {
    "savoie2020": {
        "": "60 ms",
        "period-5ms": "5 ms, parts of iterations",
        "period-15ms": "15 ms, whole iterations",
        "eager-8k": "5 ms, whole iterations, eager limit 8 KiB",
        "tracer": "5 ms, whole iterations, rules of TraceR",
    },
    "wilke2020": {
        "": "settings of the studies",
        "snappr": "`snappr`",
        "snappr-faces": "`snappr-faces`",
        "snappr-messages": "`snappr-messages`",
        "snappr-lanes": "`snappr-lanes`",
    },
}
"""Columns of the tables of variants, by paper: of savoie2020 the length of a period, and what else differs."""
MORE = {"savoie2020": ["uncounted.csv"]}
"""Files of clauses that the verdicts of a paper do not count."""


@pytest.mark.parametrize("paper", SETTINGS)
def test_the_table_of_variants_follows_from_the_stored_numbers(paper: str) -> None:
    rows, titles = [], SETTINGS[paper]
    for settings in claims_of(table_of(_verdicts(paper, *MORE.get(paper, ())))):
        by_variant = {setting[0]["variant"]: list(numbers_of(setting)) for setting in settings}
        if not by_variant.keys() & titles.keys() - {""}:
            continue
        for at, (first, *_) in enumerate(by_variant[""]):
            cells = dict.fromkeys(titles.values(), "")
            bands = {number[at][0]["band"] for variant, number in by_variant.items() if variant in titles}
            asked = first["band"] if len(bands) == 1 or "~" in first["band"] else first["band"].replace(" ", " ~", 1)
            for variant in titles.keys() & by_variant.keys():
                number = by_variant[variant][at]
                held, of = number[0]["clause_held"], number[0]["clause_replicates"]
                cells[titles[variant]] = f"{spread_of(number)}; {held} of {of}"
            claim = f"`{re.sub(r'^(savoie.small|[a-z]+)[.]', '', first['claim'])}`"
            rows.append({"claim": claim, "measured": first["measured"], "asked": f"`{asked}`", **cells})
    assert pl.DataFrame(rows).write_csv() == (PAGES / paper / "variants.csv").read_text()


def _cell(verdicts: Iterable[ClaimVerdict]) -> str:
    """How many claims there are, by the number of replicates that they rest on."""
    deciding = [one.deciding for one in verdicts]
    count = Counter("fixed" if one.deterministic else plural(one.complete, "replicate") for one in deciding)
    return ", ".join(f"{plural(claims, 'claim')} ({rests})" for rests, claims in sorted(count.items()))


def _clauses(verdicts: Iterable[ClaimVerdict]) -> str:
    """How many clauses hold by their share of replicates: not those that chose an input or hold near certainly."""
    every = [(it.share_says is Verdict.HOLDS, it) for one in verdicts for it in one.deciding.counting]
    held = [holds for holds, it in every if not (holds and it.clause.near_certain)]
    return f"{sum(held)} of {len(held)}"


def test_the_overview_counts_the_stored_verdicts() -> None:
    rows = re.findall(r"^\| \[(\w+)\]\(\w+/index\.md\) \|(.*)\|$", (PAGES / "index.md").read_text(), re.MULTILINE)
    rows = [(paper, [cell.strip() for cell in cells.split("|")[1:]]) for paper, cells in rows if cells.count("|") > 4]
    assert sorted(paper for paper, _ in rows) == STORED
    for paper, cells in rows:
        verdicts = _verdicts(paper)
        expected = [_cell(one for one in verdicts if (one.ending, one.deciding.near_certain) == it) for it in COLUMNS]
        expected.append(_clauses(verdicts))
        assert cells == expected, f"{paper}: {' | '.join(expected)}"
        assert len(verdicts) == len(plan(paper).folder.claims)


def _of(values: pl.Series) -> float:
    return float(values.to_numpy().mean())


def _mean(values: pl.Series, decimals: int) -> str:
    """With the half width of its 95% interval."""
    half_width = stats.t.ppf(0.975, len(values) - 1) * stats.sem(values.to_numpy())
    return f"{_of(values):.{decimals}f} ± {half_width:.{decimals}f}"


def test_the_stored_improvement_of_placements_agrees_with_the_clauses_and_with_the_page() -> None:
    folder = PAGES / "savoie2020"
    placements = pl.read_csv(folder / "small.static-replicates.csv")
    first = pl.read_csv(folder / "small.static.csv").group_by("placement").agg(pl.col("improvement").mean())
    own = placements.filter(replicate=1).join(first, on="placement")
    assert own.height == 8
    assert own["mean_improvement"].to_list() == pytest.approx(own["improvement"].to_list(), abs=1e-6)
    replicates = placements.group_by("replicate").agg(
        pl.col("mean_improvement").mean(),
        gaining=pl.col("gaining").sum() / pl.col("jobs").sum(),
        greatest=pl.col("max_improvement").max(),
        least=pl.col("min_improvement").min(),
    )
    clauses = pl.read_csv(folder / "clauses.csv").with_columns(pl.col("variant").fill_null(""))
    values = clauses.filter(claim="savoie.small.static", variant="")
    for clause, column in ((1, "gaining"), (2, "greatest"), (4, "least")):
        both = values.filter(clause=clause).join(replicates, on="replicate")
        assert both.height == 8, clause
        assert both["value"].to_list() == pytest.approx(both[column].to_list(), rel=1e-3), clause
    means = 100 * replicates["mean_improvement"]
    assert f"the mean improvement is {_mean(means, 1)}%" in (folder / "index.md").read_text()


def test_the_comparison_of_periods_follows_from_the_stored_jobs() -> None:
    """The same placements and jobs with periods of 60 ms and whole iterations, and with 5 ms and parts of them.

    Once Algorithm 1 itself counts whole iterations in periods of 5 ms, too.
    """
    folder, rows = PAGES / "savoie2020", []
    jobs = pl.read_csv(folder / "period-5ms-jobs.csv")
    for (study, counts), short in jobs.group_by("study", "algorithm", maintain_order=True):
        both = pl.read_csv(folder / f"{study}.csv").join(short, on=["placement", "job"], suffix="_short")
        assert both.height == short.height
        percent = both.with_columns(pl.col("^(w_default|improvement).*$") * 100)
        apart = percent.with_columns(w=pl.col("w_default_short") - pl.col("w_default"))
        means = percent.group_by("placement").agg(pl.col("^improvement.*$").mean())
        rows.append(
            {
                "experiment": str(study).removeprefix("small.") + ", whole iterations" * (counts == "whole"),
                "W by default, %: 60 ms": f"{_of(percent['w_default']):.1f}",
                "5 ms": f"{_of(percent['w_default_short']):.1f}",
                "of a job, they differ by": f"{_of(apart['w'].abs()):.1f}",
                "improvement, %: 60 ms": f"{_of(percent['improvement']):.1f}",
                "5 ms ": f"{_of(percent['improvement_short']):.1f}",
                "difference": _mean(means["improvement_short"] - means["improvement"], 1),
            }
        )
    assert len(rows) == 11
    assert pl.DataFrame(rows).write_csv() == (folder / "period-5ms.csv").read_text()


def test_what_candidates_cost_by_threshold_follows_from_the_stored_trials() -> None:
    folder = PAGES / "savoie2020"
    trials = pl.read_csv(folder / "small.threshold.csv")
    means = trials.group_by("study", "replicate").agg(pl.col("trials", "accepted").mean())
    by_study = {str(study): part for (study,), part in means.group_by("study")}
    studies = [by_study[name] for name in ("small.threshold-0.4", "small.static", "small.threshold-1.0")]
    assert [part.height for part in studies] == [7, 7, 7]
    texts = [_mean(part["trials"], 0) for part in studies]
    assert f"{texts[0]}, {texts[1]} and {texts[2]} periods are trials" in (folder / "index.md").read_text()
    assert [round(cast("float", part["accepted"].mean())) for part in studies] == [5, 5, 5]


@pytest.mark.parametrize("name", ["wilke.halo3d", "wilke.fft", "wilke.allreduce"])
def test_stored_times_of_replicates_agree_with_the_clauses(name: str) -> None:
    folder = PAGES / "wilke2020"
    columns = {"size": pl.String, "variant": pl.String, "setting": pl.String}
    variant = pl.col("variant").fill_null("")
    times = pl.read_csv(folder / "times-by-replicate.csv", schema_overrides=columns).with_columns(variant)
    (claim,) = [one for one in plan("wilke2020").claims if one.id == name]
    clauses = pl.read_csv(folder / "clauses.csv").filter(claim=name).with_columns(variant)
    own = times.filter(pl.col("study").is_in(claim.studies), pl.col("setting").fill_null("") == "")
    both = own.select("variant", "replicate").unique().join(clauses, on=["variant", "replicate"], how="semi")
    assert both.height > 0
    for chosen, replicate in both.rows():
        # Cells of two studies may come in any order, so values are compared in the order of their size.
        database = Database({"stats": own.filter(variant=chosen, replicate=replicate).with_row_index("point")})
        rows = clauses.filter(variant=chosen, replicate=replicate).to_dicts()
        values = sorted((row["clause"], row["value"], row["in_band"]) for row in rows)
        found = sorted((one.clause + 1, one.value, one.holds) for one in judged(claim, database, ()).findings)
        assert [(clause, holds) for clause, _, holds in values] == [(clause, holds) for clause, _, holds in found]
        assert [value for _, value, _ in values] == pytest.approx([value for _, value, _ in found], rel=5e-3, abs=1e-5)


def test_the_page_has_the_medians_of_halo3d_with_the_rules_of_snappr() -> None:
    shown = table("docs/reproduction/wilke2020/index.md", "no background", "none", "Split-Priority")
    times = pl.read_csv(PAGES / "wilke2020" / "times-by-replicate.csv", schema_overrides={"size": pl.String})
    own = times.filter(variant="snappr", study="halo3d").sort("replicate").with_columns(pl.col("median_s") * 1e3)
    runs = [("nobody", "none"), *(("halo3d", strategy) for strategy in STRATEGIES)]
    for row, fabric in zip(shown, ("dragonfly-par", "dragonfly-min-par", "fat-tree", "fat-tree-taper"), strict=True):
        medians = [own.filter(fabric=fabric, background=one[0], strategy=one[1])["median_s"] for one in runs]
        assert [*row.values()][1:] == [", ".join(f"{median:.2f}" for median in both) for both in medians]
    of_none = own.join(own.filter(strategy="none", background="halo3d"), on=["replicate", "fabric"], suffix="_none")
    ratios = of_none.filter(pl.col("strategy") != "none").select(pl.col("median_s") / pl.col("median_s_none"))
    assert [f"{100 * edge - 100:.0f}" for edge in (ratios.min().item(), ratios.max().item())] == ["11", "26"]
    of_nobody = own.join(own.filter(background="nobody"), on=["replicate", "fabric"], suffix="_nobody")
    slowed = of_nobody.filter(pl.col("strategy") == "none", pl.col("background").is_in(["fft", "halo3d"]))
    assert slowed.select((pl.col("median_s") / pl.col("median_s_nobody")).max()).item() < 1.03


def test_stored_shares_of_ports_agree_with_the_clauses() -> None:
    folder = PAGES / "wilke2020"
    variant = pl.col("variant").fill_null("")
    own = pl.read_csv(folder / "ports-by-replicate.csv").with_columns(variant)
    mean = (pl.col("stalled") * pl.col("count")).sum() / pl.col("count").sum()
    stalled = own.group_by("variant", "replicate", "fabric", maintain_order=True).agg(stalled=mean)
    clauses = pl.read_csv(folder / "clauses.csv").with_columns(variant).filter(claim="wilke.port-counters", clause=2)
    trees = clauses.with_columns(fabric=pl.col("measured").str.extract(r"^([\w-]+):"))
    both = trees.join(stalled, on=["variant", "replicate", "fabric"])
    assert both.height >= 8
    assert both["value"].to_list() == pytest.approx(both["stalled"].to_list(), rel=1e-2)
    bounds = both.join(stalled.filter(fabric="dragonfly-par"), on=["variant", "replicate"])
    assert bounds["high"].to_list() == pytest.approx([value / 10 for value in bounds["stalled_right"]], rel=1e-2)
