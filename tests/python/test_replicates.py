"""Claims over replicates: seeds, verdicts by share, the order of replicates under a budget, and what is written."""

from math import inf, isinf
from pathlib import Path

import polars as pl
import pytest

from fairlane import ScenarioError
from fairlane.inputs.document import Document
from fairlane.papers.judging import Judged
from fairlane.papers.output import repeat_lines
from fairlane.papers.planning import Options, plan_of
from fairlane.papers.reproduce import PAPERS, folder_of, plan
from fairlane.papers.reseeding import STRIDE, moved, reseed
from fairlane.papers.running import _tasks_of
from fairlane.papers.storing import table_of
from fairlane.papers.verdicts import Measured, Verdict, over_replicates, verdict_of
from fairlane.results.reproduction import ReproductionResults
from pictures import assert_drawn
from replicated import PAPER, answers, change, claim_of, finding, run, verdict, write_paper
from small_study import Interrupted

# What is measured is the number of the replicate, counted from 0, which its seed says; and the same in a fixed study.


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_paper(tmp_path / "paper")


@pytest.mark.parametrize(
    ("held", "replicates", "chance", "expected"),
    [
        (1, 1, 0, Verdict.HOLDS),
        (0, 1, 0, Verdict.FAILS),
        (9, 10, 0, Verdict.HOLDS),
        (8, 10, 0, Verdict.UNDECIDED),
        (2, 10, 0, Verdict.UNDECIDED),
        (1, 10, 0, Verdict.FAILS),
        (17, 19, 0, Verdict.UNDECIDED),
        (18, 20, 0, Verdict.HOLDS),
        (2, 3, 0, Verdict.UNDECIDED),
        # What holds by chance as well has to hold more often.
        (1, 1, 0.5, Verdict.UNDECIDED),
        (4, 4, 0.5, Verdict.UNDECIDED),  # 1/16 by chance
        (5, 5, 0.5, Verdict.HOLDS),  # 1/32
        (9, 10, 0.5, Verdict.HOLDS),  # 11/1024
        (9, 10, 0.9, Verdict.UNDECIDED),
        (10, 10, 0.7, Verdict.HOLDS),  # 0.7^10 = 0.028
        (8, 10, 0.1, Verdict.UNDECIDED),  # by its share
        (0, 1, 0.5, Verdict.FAILS),
    ],
)
def test_a_clause_is_judged_by_its_share_of_replicates(
    held: int, replicates: int, chance: float, expected: Verdict
) -> None:
    assert verdict_of(held, replicates, chance) is expected


def test_a_clause_that_holds_in_three_of_four_replicates_is_undecided(folder: Path, tmp_path: Path) -> None:
    found = run(folder, tmp_path / "out", replicates=4)
    one = verdict(found, "three-of-four")
    assert (one.verdict, one.words, one.complete) == (Verdict.UNDECIDED, "undecided, 4 replicates", 4)
    first, second = one.clauses
    assert (first.held, first.replicates, first.verdict) == (3, 4, Verdict.UNDECIDED)
    assert second.verdict is Verdict.HOLDS, "methods and queries have the replicate's seed"
    values = {number.label: number.values for number in first.numbers}
    assert values == {"varied": [0, 1, 2, 3], "same": [0, 0, 0, 0]}, "rows are matched by name, in any order"
    same = verdict(found, "same")
    assert (same.verdict, same.words) == (Verdict.FAILS, "contradicted, nothing left to chance")
    rows = pl.read_csv(tmp_path / "out" / "clauses.csv").filter(measured="varied")
    assert rows["value"].to_list() == [0, 1, 2, 3]
    assert rows["in_band"].to_list() == [True, True, True, False]
    assert rows.select("median", "min", "max", "share", "clause_verdict").row(0) == (1.5, 0, 3, 0.75, "undecided")
    assert pl.read_csv(tmp_path / "out" / "claims.csv")["holds"].to_list() == ["undecided", "no"]
    page = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    assert "| varied; paper: few | 0 | 1.5 (0 to 3) | <= 2 | 3 of 4 |" in page
    assert "**undecided, 4 replicates**" in page
    assert "Replicates differ in the seed; run once, as nothing is left to chance: same." in page
    assert "](claims.png)" in page
    assert_drawn(tmp_path / "out" / "claims.png")
    labels = pl.read_csv(tmp_path / "out" / "cells.csv")["cell"].to_list()
    assert sum(label.startswith("replicate 4: varied") for label in labels) == 2
    assert len(labels) == 3 + 3 * 2, "the fixed study is run once"


def still(folder: Path) -> None:
    """Leaves nothing to chance."""
    change(folder, "numbers.toml", "seed // 1000000 AS number", "0 AS number")
    job = 'placement = "linear"\nworkload = { name = "ring", message_size = "1 KiB", compute = "0 us" }'
    change(folder, "numbers.toml", 'workload = { name = "ring", message_size = "1 KiB", compute = "1 us" }', job)


def test_replicates_with_the_same_results_count_once(folder: Path, tmp_path: Path) -> None:
    still(folder)
    found = run(folder, tmp_path / "out", replicates=4)
    one, same = verdict(found, "three-of-four"), verdict(found, "same")
    # The seeds of the study change nothing, so four replicates are one. Its two seeds are one point, too.
    assert (one.words, one.complete, one.repeats) == ("holds, nothing left to chance", 1, 3)
    assert (same.complete, same.repeats) == (1, 0), "it is run once"
    notes = list(repeat_lines(found))
    assert notes == [
        "varied: 1 of 2 points repeats another of the same condition, bit for bit: seeds change nothing there.",
        "three-of-four: 3 of 4 replicates repeat another of the same condition, bit for bit, and count once: "
        "seeds change nothing there.",
    ]
    assert pl.read_csv(tmp_path / "out" / "clauses.csv")["replicate"].unique().to_list() == [1]
    assert ReproductionResults.load(tmp_path / "out").meta.notes[-2:] == notes
    page = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    assert all(words in page for words in notes)


def test_replicates_that_differ_in_numbers_alone_count(folder: Path, tmp_path: Path) -> None:
    # The study is the same with every seed, what is derived of it is not.
    still(folder)
    change(folder, "claims.toml", "SELECT seed - 1000000 * (replicate - 1)", "SELECT replicate")
    assert verdict(run(folder, tmp_path / "out", replicates=3), "three-of-four").complete == 3


def test_replicate_1_is_the_run_without_replicates_and_answers_are_found_again(folder: Path, tmp_path: Path) -> None:
    alone = run(folder, tmp_path / "out")
    assert verdict(alone, "three-of-four").words == "holds, one replicate"
    assert alone.replication.done == {}
    before = answers(tmp_path / "out")
    found = run(folder, tmp_path / "out", replicates=3)
    after = answers(tmp_path / "out")
    assert {name: after[name] for name in before} == before
    assert len(after) == len(before) + 2 * 2
    assert found.judged == alone.judged
    again = run(folder, tmp_path / "out", replicates=3)
    assert answers(tmp_path / "out") == after
    assert again.verdicts == found.verdicts
    assert again.unused == 0


def test_an_interrupted_run_goes_on_and_ends_as_one_that_was_not(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(folder, tmp_path / "out", Interrupted(6), replicates=4)
    before = answers(tmp_path / "out")
    assert 3 <= len(before) < 9, "in the second replicate"
    found = run(folder, tmp_path / "out", replicates=4)
    after = answers(tmp_path / "out")
    assert {name: after[name] for name in before} == before
    whole = run(folder, tmp_path / "whole", replicates=4)
    assert after.keys() == answers(tmp_path / "whole").keys()
    assert found.verdicts == whole.verdicts


def test_a_number_by_which_an_input_was_chosen_is_no_finding(folder: Path, tmp_path: Path) -> None:
    change(folder, "claims.toml", 'band = "<= 2"\n', 'band = "<= 2"\ncalibrated = "the seed"\n')
    found = run(folder, tmp_path / "out", replicates=4)
    one = verdict(found, "three-of-four")
    assert [clause.verdict for clause in one.clauses] == [Verdict.CALIBRATED, Verdict.HOLDS]
    assert (one.verdict, one.undecided, len(one.counting)) == (Verdict.HOLDS, False, 1)
    assert "calibrated: the seed" in (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    # A claim of nothing else has no verdict of its own.
    change(folder, "claims.toml", 'band = "< 0"\n', 'band = "< 0"\ncalibrated = "all"\n')
    single = verdict(run(folder, tmp_path / "single", only="same"), "same")
    assert (single.verdict, single.judged[1].holds) == (Verdict.CALIBRATED, None)
    assert "calibrated: all" in (tmp_path / "single" / "report.md").read_text(encoding="utf-8")


def test_a_clause_that_can_hardly_fail_is_said_to_be_such_and_counts(folder: Path, tmp_path: Path) -> None:
    change(folder, "claims.toml", 'band = "<= 2"\n', 'band = "<= 2"\nnear_certain = "one of four"\n')
    found = run(folder, tmp_path / "out", replicates=4)
    one = verdict(found, "three-of-four")
    assert [(clause.verdict, clause.why) for clause in one.clauses] == [
        (Verdict.UNDECIDED, "one of four"),
        (Verdict.HOLDS, ""),
    ]
    assert (one.verdict, len(one.counting)) == (Verdict.UNDECIDED, 2)
    assert "undecided, near certain: one of four |" in (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    run(folder, tmp_path / "out", replicates=1)
    assert "near certain: one of four |" in (tmp_path / "out" / "report.md").read_text(encoding="utf-8")


def test_a_claim_of_clauses_that_can_hardly_fail_holds_without_being_evidence(folder: Path, tmp_path: Path) -> None:
    change(folder, "claims.toml", 'band = "< 0"\n', 'band = "< 1"\nnear_certain = "it is zero"\n')
    one = verdict(run(folder, tmp_path / "out", only="same"), "same")
    assert (one.verdict, one.near_certain) == (Verdict.HOLDS, True)
    assert one.line == "holds (near certain, nothing left to chance)"


def test_a_clause_with_even_odds_needs_more_than_one_replicate(folder: Path, tmp_path: Path) -> None:
    change(folder, "claims.toml", 'band = "= 1"\n', 'band = "= 1"\nchance = 0.5\nnull = "a coin"\n')
    change(folder, "claims.toml", '"<= 2"', '"<= 9"')
    one = verdict(run(folder, tmp_path / "out"), "three-of-four")
    assert (one.verdict, one.words) == (Verdict.UNDECIDED, "undecided, one replicate")
    assert "by chance in 50% of the replicates: a coin" in (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    assert verdict(run(folder, tmp_path / "out", replicates=5), "three-of-four").words == "holds, 5 replicates"
    change(folder, "claims.toml", 'null = "a coin"\n', "")
    with pytest.raises(ScenarioError, match="null: needs one with the other"):
        plan(folder)


VARIANT = """
[variant.small]
title = "numbers of nothing"
claims = ["three-of-four"]
study."numbers.toml".set = { "measure.tables.numbers" = "SELECT 0 AS number FROM run" }
"""


def conditional(folder: Path) -> None:
    """A claim that fails in all replicates but the first, and holds by a variant."""
    (folder / "paper.toml").write_text(PAPER + VARIANT)
    change(folder, "claims.toml", '"<= 2"', '"<= 0"')
    change(folder, "claims.toml", 'id = "three-of-four"', 'id = "three-of-four"\nbecause = "it grows"')


def test_a_claim_that_holds_by_a_variant_says_so_in_one_line(folder: Path, tmp_path: Path) -> None:
    conditional(folder)
    alone = verdict(run(folder, tmp_path / "out", replicates=3), "three-of-four")
    assert alone.line == "undecided (3 replicates), because it grows"
    under = run(folder, tmp_path / "under", replicates=3, variant="small")
    (one,) = under.verdicts
    assert one.line == "holds under stated conditions (3 replicates): numbers of nothing"
    assert {*pl.read_csv(tmp_path / "under" / "clauses.csv")["variant"]} == {"small"}
    files = [tmp_path / "out", tmp_path / "under"]
    both = verdict(run(folder, tmp_path / "both", replicates=0, earlier=files), "three-of-four")
    assert [setting.variant for setting in both.settings] == ["", "small"]
    assert both.line == (
        "holds under stated conditions (3 replicates): numbers of nothing; "
        "settings of the studies: undecided (3 replicates)"
    )
    kept = pl.read_csv(tmp_path / "both" / "clauses.csv").filter(claim="three-of-four")
    assert kept.group_by("variant", "replicate").len().height == 3 + 3
    page = (tmp_path / "both" / "report.md").read_text(encoding="utf-8")
    assert "| **holds under stated conditions** (3 replicates) | numbers of nothing; settings" in page
    assert "`three-of-four`, I, numbers of nothing" in page
    summary = (tmp_path / "both" / "verdicts.md").read_text(encoding="utf-8").partition("<details>")[0].splitlines()
    assert [row.split("<br>")[0] for row in summary[2:4]] == ["| `three-of-four`", "| `same`"]
    assert "- *Variant small*: numbers of nothing." in summary
    run(folder, tmp_path / "few", replicates=2, variant="small")
    files = [tmp_path / "out", tmp_path / "few"]
    few = verdict(run(folder, tmp_path / "little", replicates=0, earlier=files), "three-of-four")
    assert few.line == ("undecided (3 replicates), because it grows; variant small: holds (2 replicates)"), (
        "too few to overrule three"
    )


def test_more_replicates_of_a_variant_overrule_few_that_hold(folder: Path, tmp_path: Path) -> None:
    conditional(folder)
    (folder / "paper.toml").write_text(PAPER + VARIANT.replace("SELECT 0", "SELECT 7"))
    first = run(folder, tmp_path / "out")
    assert verdict(first, "three-of-four").line == "holds (one replicate)"
    run(folder, tmp_path / "under", replicates=2, variant="small")
    files = [tmp_path / "out", tmp_path / "under"]
    both = verdict(run(folder, tmp_path / "both", replicates=0, earlier=files), "three-of-four")
    assert both.ending is Verdict.CONTRADICTED
    assert both.line == (
        "contradicted (2 replicates), because it grows; settings of the studies: holds (one replicate)"
    )


@pytest.mark.parametrize(
    ("paper", "variant", "words"),
    [
        (PAPER, "small", "unknown variant of paper"),
        (PAPER + VARIANT, "smal", 'did you mean "small"'),
        (PAPER + VARIANT.replace("numbers.toml", "nmbers.toml"), None, 'did you mean "numbers.toml"'),
        (PAPER + VARIANT.replace("of-four", "of-fur"), None, 'claims.*did you mean "three-of-four"'),
    ],
)
def test_a_variant_that_fits_nothing_is_refused(folder: Path, paper: str, variant: str | None, words: str) -> None:
    (folder / "paper.toml").write_text(paper)
    with pytest.raises(ScenarioError, match=words):
        plan(folder, variant=variant)


def test_what_was_scaled_is_never_said_not_to_hold(folder: Path, tmp_path: Path) -> None:
    change(folder, "claims.toml", '"<= 2"', '"< 0"')
    found = run(folder, tmp_path / "out", replicates=2, quick=True, only="three-of-four")
    (one,) = found.verdicts
    assert (one.verdict, {clause.verdict for clause in one.clauses}) == (Verdict.SCALED, {Verdict.SCALED})
    assert one.words == "scaled, 2 replicates, 1 of 2 clauses in the band"
    assert one.line == "scaled (2 replicates, 1 of 2 clauses in the band): scaled", "with the note of the study"
    for name in ("report.md", "claims.csv", "clauses.csv", "verdicts.md"):
        text = (tmp_path / "out" / name).read_text(encoding="utf-8")
        assert "does not hold" not in text
        assert "contradicted" not in text
    assert {*pl.read_csv(tmp_path / "out" / "clauses.csv")["scaled"]} == {"scaled"}


def test_a_claim_whose_runs_fail_is_not_repeated(folder: Path, tmp_path: Path) -> None:
    change(folder, "numbers.toml", "seed // 1000000", "seeed // 1000000")
    found = run(folder, tmp_path / "out", replicates=3, only="three-of-four")
    (one,) = found.verdicts
    assert (one.verdict, one.words) == (Verdict.NOT_RUN, "not run")
    assert found.replication.done == {}
    assert one.missing


def test_every_kind_of_seed_is_shifted_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "scenario.toml").write_text("seed = 3\nbackground = { seed = 4, fill = 0.5 }\n[[jobs]]\nranks = 5\n")
    data = {
        "scenario": "scenario.toml",
        "placements": [{"seed": 1}, {"seed": 2}],
        "parameters": {"jobs[0].placement.seed": [1, 2], "jobs[0].ranks": [1, 2]},
        "rules": [{"where": {"seed": [6, 7], "size": "small"}, "set": {"jobs[0].ranks": 4}}],
        "treatments": {
            "qos": {"controller": "process_prioritization", "periods": 5},
            "other": {"controller": {"name": "slack", "seed": 9}},
            "none": {"controller": "none"},
        },
        "design": {"seed": 1},
    }
    document = Document(data, tmp_path / "study.toml")
    reseed(document, 3)
    by = 2 * STRIDE
    found = document.data
    assert found["seeds"] == [3 + by]
    assert found["placements"] == [{"seed": 1 + by}, {"seed": 2 + by}]
    assert found["parameters"] == {"jobs[0].placement.seed": [1 + by, 2 + by], "jobs[0].ranks": [1, 2]}
    assert found["rules"][0] == {"where": {"seed": [6 + by, 7 + by], "size": "small"}, "set": {"jobs[0].ranks": 4}}
    assert found["set"] == {"background.seed": 4 + by}
    assert found["treatments"]["qos"]["controller"] == {"seed": 1 + by, "name": "process_prioritization"}
    assert found["treatments"]["other"]["controller"] == {"name": "slack", "seed": 9 + by}
    assert found["treatments"]["none"] == {"controller": "none"}
    assert found["design"] == {"seed": 1}
    assert found["scenario"] == "scenario.toml"
    of_placements = Document({"scenario": {}, "seeds": {"per_placement": 4}}, None)
    reseed(of_placements, 3)
    assert of_placements.data["seeds"] == {"per_placement": 4, "first": 1 + by}
    assert moved({"seed": True, "seeds": [1], "load": 2}, by) == {"seed": True, "seeds": [1], "load": 2}


def test_replicate_1_has_the_seeds_of_the_folder() -> None:
    document = Document({"placements": 2, "scenario": {}}, None)
    reseed(document, 1)
    assert document.data == {"placements": 2, "scenario": {}}


@pytest.mark.parametrize("name", PAPERS)
def test_every_study_of_a_paper_is_repeated_with_other_runs_or_is_said_to_be_fixed(name: str) -> None:
    folder = folder_of(name)
    assert folder.paper.replicates.varies != "every seed of its studies", "the paper's file says what differs"
    plans = [plan_of(folder, folder.claims, Options(quick=True, replicate=number)) for number in (1, 2)]
    for study in plans[1].studies:
        digests = []
        for one in plans:
            tasks = _tasks_of(one.studies[study])
            digests.append({task.digest for task in (*tasks.calibrations(), *tasks.tasks())})
        if study in folder.paper.replicates.fixed:
            assert digests[0] == digests[1], study
        else:
            assert len(digests[0]) == len(digests[1]), study
            assert digests[0].isdisjoint(digests[1]), study


def test_a_fixed_study_that_does_not_exist_is_named(folder: Path) -> None:
    change(folder, "paper.toml", 'fixed = ["same"]', 'fixed = ["smae"]')
    with pytest.raises(ScenarioError, match=r'replicates fixed.* did you mean "same"'):
        plan(folder)


def test_distance_from_the_edge_is_counted_in_standard_deviations() -> None:
    # Margins 1 and 3: mean 2, standard deviation sqrt 2.
    assert Measured("", {1: finding(1.0), 2: finding(3.0)}).nearness == pytest.approx(2**0.5)
    # The nearest edge of [0, 10] is 1 away from both.
    both = Measured("", {1: finding(1.0, 0.0, 10.0), 2: finding(9.0, 0.0, 10.0)})
    assert isinf(both.nearness)
    assert Measured("", {1: finding(1.0)}).nearness == inf


def test_infinite_and_missing_values_have_no_distance() -> None:
    claim = claim_of("a", "x")
    values = (inf, 1.0, 3.0, float("nan"))
    by = {number: Judged(claim, [finding(value)], [], "") for number, value in enumerate(values, 1)}
    one = over_replicates(claim, by)
    (number,) = one.clauses[0].numbers
    assert number.nearness == pytest.approx(2**0.5)
    assert number.summary == (3.0, 1.0, inf)
    assert one.verdict is Verdict.UNDECIDED, "what was not measured is not in the band: 3 of 4"
    assert table_of([one])["value"].to_list() == [inf, 1.0, 3.0, None]
