"""Claims over replicates: seeds, verdicts by share, the order of replicates under a budget, and what is written."""

from dataclasses import replace
from math import inf, isinf
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from fairlane import ScenarioError
from fairlane.cli.main import execute
from fairlane.inputs.document import Document
from fairlane.reproduce import PAPERS, Reproduction, check_replicates, conclude, folder_of, plan
from fairlane.reproduce.bands import LOWER, UPPER, draw_claims, place, unit_of
from fairlane.reproduce.folder import Claim
from fairlane.reproduce.judging import Finding, Judged
from fairlane.reproduce.planning import Options, plan_of
from fairlane.reproduce.reseeding import STRIDE, moved, reseed
from fairlane.reproduce.rounds import Ledger
from fairlane.reproduce.running import Done, _tasks_of, stored_as
from fairlane.reproduce.verdicts import ClaimVerdict, Measured, Verdict, over_replicates, verdict_of
from fairlane.tasks.executor import Executor
from fairlane.tasks.store import Store
from fairlane.tasks.task import Computable
from pictures import assert_drawn
from small_study import Here

# What is measured is the number of the replicate, counted from 0, which its seed says; and the same in a fixed study.
PAPER = """
title = "A paper"
citation = "Nobody: Nothing, 2020."
[replicates]
varies = "the seed"
fixed = ["same"]
[[study]]
name = "varied"
file = "numbers.toml"
quick = { note = "scaled" }
[[study]]
name = "same"
file = "numbers.toml"
set = { seeds = [7] }
[[table]]
name = "replicate_of_methods"
sql = "SELECT seed, replicate FROM replicate"
"""
NUMBERS = """
seeds = [1, 2]
[scenario]
duration = "10 us"
fabric = { topology = "fat_tree", hosts = 8, levels = 2, radix = 4, bandwidth = "100 Gb/s" }
[[scenario.jobs]]
name = "ring"
ranks = 2
workload = { name = "ring", message_size = "1 KiB", compute = "1 us" }
[measure]
tables.numbers = "SELECT seed // 1000000 AS number FROM run"
"""
CLAIMS = """
[[claim]]
id = "three-of-four"
where = "I"
setup = "a ring"
claim = "small numbers"
check = "number <= 2, and others"
studies = ["varied", "same"]
sql = "SELECT study, max(number) AS value FROM numbers GROUP BY study ORDER BY max(number) DESC, study"
[[claim.clause]]
says = "{study} {value}"
band = "<= 2"
reported = "few"
[[claim.clause]]
says = "seed {value}"
sql = "SELECT seed - 1000000 * (replicate - 1) AS value FROM replicate_of_methods"
band = "= 1"
[[claim]]
id = "same"
where = "II"
setup = "a ring"
claim = "nothing varies"
check = "number < 0"
studies = ["same"]
sql = "SELECT max(number) AS value FROM numbers WHERE study = 'same'"
[[claim.clause]]
says = "number {value}"
band = "< 0"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = tmp_path / "paper"
    found.mkdir()
    for name, text in (("paper.toml", PAPER), ("claims.toml", CLAIMS), ("numbers.toml", NUMBERS)):
        (found / name).write_text(text)
    return found


def run(folder: Path, out: Path, pool: Here | None = None, **options: Any) -> Reproduction:
    chosen = plan(folder, quick=options.pop("quick", False), only=options.pop("only", ()))
    with Executor(pool or Here(), Store(out, stored_as)) as executor:
        return conclude(chosen, executor, out, **options)


def verdict(found: Reproduction, claim: str) -> ClaimVerdict:
    return next(one for one in found.verdicts if one.claim.id == claim)


def answers(out: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in (out / "answers").iterdir()}


@pytest.mark.parametrize(
    ("held", "replicates", "expected"),
    [
        (1, 1, Verdict.HOLDS),
        (0, 1, Verdict.FAILS),
        (9, 10, Verdict.HOLDS),
        (8, 10, Verdict.UNDECIDED),
        (2, 10, Verdict.UNDECIDED),
        (1, 10, Verdict.FAILS),
        (17, 19, Verdict.UNDECIDED),
        (18, 20, Verdict.HOLDS),
        (2, 3, Verdict.UNDECIDED),
    ],
)
def test_a_clause_is_judged_by_its_share_of_replicates(held: int, replicates: int, expected: Verdict) -> None:
    assert verdict_of(held, replicates) is expected


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
    assert (same.verdict, same.words) == (Verdict.FAILS, "does not hold, nothing left to chance")
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


class Interrupted(Here):
    """A worker at which somebody presses Ctrl-C."""

    def __init__(self, tasks: int) -> None:
        super().__init__()
        self.left = tasks

    def submit(self, task: Computable) -> Any:
        if not self.left:
            raise KeyboardInterrupt
        self.left -= 1
        return super().submit(task)


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


def test_the_same_budget_again_computes_nothing_more(folder: Path, tmp_path: Path) -> None:
    alone = run(folder, tmp_path / "out")
    hours = 2.5 * sum(done.cpu for done in alone.done) / 3600
    found = run(folder, tmp_path / "out", replicates=50, cpu_hours=hours)
    assert found.replication.done, "one replicate costs less"
    assert found.replication.rest["three-of-four"][0] == 50 - verdict(found, "three-of-four").complete
    after = answers(tmp_path / "out")
    again = run(folder, tmp_path / "out", replicates=50, cpu_hours=hours)
    assert answers(tmp_path / "out") == after
    assert again.verdicts == found.verdicts
    assert again.replication.rest == found.replication.rest


def test_a_number_by_which_an_input_was_chosen_is_no_finding(folder: Path, tmp_path: Path) -> None:
    file = folder / "claims.toml"
    text = file.read_text()
    file.write_text(text.replace('band = "<= 2"\n', 'band = "<= 2"\ncalibrated = "the seed"\n'))
    found = run(folder, tmp_path / "out", replicates=4)
    one = verdict(found, "three-of-four")
    assert [clause.verdict for clause in one.clauses] == [Verdict.CALIBRATED, Verdict.HOLDS]
    assert (one.verdict, one.undecided, len(one.counting)) == (Verdict.HOLDS, False, 1)
    assert "calibrated: the seed" in (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    # A claim of nothing else has no verdict of its own.
    file.write_text(text.replace('band = "< 0"\n', 'band = "< 0"\ncalibrated = "all"\n'))
    single = verdict(run(folder, tmp_path / "single", only="same"), "same")
    assert (single.verdict, single.judged[1].holds) == (Verdict.CALIBRATED, None)
    assert "calibrated: all" in (tmp_path / "single" / "report.md").read_text(encoding="utf-8")


def test_a_clause_that_can_hardly_fail_is_said_to_be_such_and_counts(folder: Path, tmp_path: Path) -> None:
    file = folder / "claims.toml"
    text = file.read_text()
    file.write_text(text.replace('band = "<= 2"\n', 'band = "<= 2"\nnear_certain = "one of four"\n'))
    found = run(folder, tmp_path / "out", replicates=4)
    one = verdict(found, "three-of-four")
    assert [clause.words for clause in one.clauses] == ["undecided, near certain", "holds"]
    assert (one.verdict, len(one.counting)) == (Verdict.UNDECIDED, 2)
    assert "undecided, near certain: one of four |" in (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    run(folder, tmp_path / "out", replicates=1)
    assert "near certain: one of four |" in (tmp_path / "out" / "report.md").read_text(encoding="utf-8")


def test_what_was_scaled_is_never_said_not_to_hold(folder: Path, tmp_path: Path) -> None:
    text = (folder / "claims.toml").read_text().replace('"<= 2"', '"< 0"')
    (folder / "claims.toml").write_text(text)
    found = run(folder, tmp_path / "out", replicates=2, quick=True, only="three-of-four")
    (one,) = found.verdicts
    assert (one.verdict, {clause.verdict for clause in one.clauses}) == (Verdict.IN_PART, {Verdict.IN_PART})
    assert one.words == "not run in full, 2 replicates: 1 of 2 clauses in the band"
    for name in ("report.md", "claims.csv", "clauses.csv"):
        assert "does not hold" not in (tmp_path / "out" / name).read_text(encoding="utf-8")


def test_a_claim_whose_runs_fail_is_not_repeated(folder: Path, tmp_path: Path) -> None:
    text = (folder / "numbers.toml").read_text().replace("seed // 1000000", "seeed // 1000000")
    (folder / "numbers.toml").write_text(text)
    found = run(folder, tmp_path / "out", replicates=3, only="three-of-four")
    (one,) = found.verdicts
    assert (one.verdict, one.words) == (Verdict.NOT_RUN, "not run")
    assert found.replication.done == {}
    assert one.missing


def test_every_kind_of_seed_is_shifted_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "scenario.toml").write_text("seed = 3\nbackground = { seed = 4, fill = 0.5 }\n[[jobs]]\nranks = 5\n")
    data = {
        "scenario": "scenario.toml",
        "placements": 2,
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


class Sized:
    """A task that takes no time."""

    def __init__(self, label: str) -> None:
        self.label = self.digest = label
        self.cost, self.description = 1.0, dict[str, Any]()

    def compute(self, _watch: object) -> dict[str, Any]:
        return {}


def claim_of(name: str, *studies: str) -> Claim:
    clause = {"says": "{value}", "band": "> 0", "sql": "SELECT 1 AS value"}
    return Claim(id=name, where="", setup="", claim="", check="", studies=[*studies], clause=[clause])


def finding(value: float, low: float | None = 0.0, high: float | None = None) -> Finding:
    held = (low is None or value > low) and (high is None or value < high)
    return Finding(0, f"{value}", value, low, high, held, "", "a number")


def judged(claim: Claim, *values: float) -> ClaimVerdict:
    by = {number: Judged(claim, [finding(value)], [], False) for number, value in enumerate(values, 1)}
    return over_replicates(claim, by)


def ledger(costs: dict[str, float], claims: list[Claim], **options: Any) -> Ledger:
    """A ledger in which every study has a task of its own, and they share one called ``common``, which takes 5 s."""
    done = {name: Done(Sized(name), cpu=cpu) for name, cpu in {**costs, "common": 5.0}.items()}
    tasks = {name: frozenset({name, "common"}) for name in costs}
    return Ledger(claims, frozenset(), tasks, done, **{"replicates": 10, **options})


def test_without_a_budget_all_claims_get_all_replicates() -> None:
    claims = [claim_of("a", "x"), claim_of("b", "x", "y")]
    book = ledger({"x": 700.0, "y": 1.0}, claims, replicates=3)
    assert book.rest() == {"a": (2, 1410.0), "b": (2, 2.0)}
    rounds = []
    while units := book.next_round({}):
        rounds.append([(unit.claim, unit.replicate, unit.cpu_s) for unit in units])
        for unit in units:
            book.run[unit.replicate] = book.run.get(unit.replicate, frozenset()) | unit.studies
    # The second claim needs the first one's study, and their common task, too: it costs its own task only.
    assert rounds == [[("a", 2, 705), ("b", 2, 1)], [("a", 3, 705), ("b", 3, 1)]]
    assert book.rest() == {}


def test_under_a_budget_cheap_claims_come_first_then_few_replicates_then_the_nearest() -> None:
    near, far, sure = claim_of("near", "n"), claim_of("far", "f"), claim_of("sure", "s")
    claims = [sure, far, near, claim_of("cheap", "c")]
    book = ledger({"n": 1000.0, "f": 1000.0, "s": 1000.0, "c": 10.0}, claims, replicates=11, limit_s=20_000.0)
    verdicts = {
        "near": judged(near, 0.1, -0.1, 0.2),
        "far": judged(far, 5.0, -0.1, 4.0),
        "sure": judged(sure, 0.01, 0.02, 0.03),
        "cheap": judged(claims[3], 1.0),
    }
    order: list[list[str]] = []
    while units := book.next_round(verdicts):
        order.append([f"{unit.claim} {unit.replicate}" for unit in units])
        for unit in units:
            book.spent_s += unit.cpu_s
            book.run[unit.replicate] = book.run.get(unit.replicate, frozenset()) | unit.studies
    assert order[:9] == [[f"cheap {number}"] for number in range(2, 11)], "ten of a cheap one"
    assert order[9:11] == [["sure 2", "far 2", "near 2"], ["sure 3", "far 3", "near 3"]], "three of any"
    assert order[11] == ["near 4", "far 4"], "the nearest half, the undecided first"
    assert book.spent_s <= 20_000.0
    rest = book.rest()
    assert rest["sure"][0] > rest["near"][0]
    assert all(count > 0 and cpu_s > 0 for count, cpu_s in rest.values())


def test_what_does_not_fit_is_passed_over_and_listed_with_its_cost() -> None:
    claims = [claim_of("large", "l"), claim_of("small", "s")]
    book = ledger({"l": 3600.0, "s": 900.0}, claims, replicates=2, limit_s=1000.0)
    units = book.next_round({one.id: judged(one, 1.0) for one in claims})
    assert [(unit.claim, unit.replicate) for unit in units] == [("small", 2)]
    book.run[2], book.spent_s = frozenset({"s"}), 905.0
    assert book.next_round({one.id: judged(one, 1.0) for one in claims}) == []
    assert book.rest() == {"large": (1, 3600.0)}, "the common task was run"


def test_a_budget_of_no_time_runs_the_first_replicate_and_lists_the_rest(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairlane.reproduce.open_pool", Here)
    words = ["reproduce", str(folder), "--workers", "1", "--out", str(tmp_path / "out"), "--quiet"]
    assert execute([*words, "--replicates", "3", "--cpu-hours", "1e-12"]) == 0
    page = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    assert "Not run: 2 replicates of three-of-four, about" in page
    assert execute([*words[:-1], "--replicates", "3", "--cpu-hours", "1", "--resume"]) == 0
    printed = capsys.readouterr().out
    assert "three-of-four (I): holds, 3 replicates" in printed
    assert "  measured  varied 1 (0 to 2) (band <= 2): in 3 of 3 replicates" in printed
    assert "Not run" not in printed
    assert "of 1 CPU hours" in printed


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--replicates", "0"], "--replicates = 0: leaves nothing to judge; allowed: 1 or more, or --with FILE"),
        (["--replicates", "1001"], "--replicates = 1001: out of range"),
        (["--replicates", "2", "--cpu-hours", "0"], "--cpu-hours = 0.0: out of range; allowed: a number above 0"),
        (["--replicates", "2", "--cpu-hours", "nan"], "--cpu-hours = nan: out of range"),
        (["--replicates", "2", "--cpu-hours", "inf"], "--cpu-hours = inf: out of range"),
        (["--cpu-hours", "2"], "allowed: with --replicates 2 or more"),
    ],
)
def test_wrong_numbers_of_replicates_leave_no_folder(
    folder: Path, tmp_path: Path, options: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["reproduce", str(folder), "--out", str(tmp_path / "out"), *options]) == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_fixed_study_that_does_not_exist_is_named(folder: Path) -> None:
    (folder / "paper.toml").write_text(PAPER.replace('fixed = ["same"]', 'fixed = ["smae"]'))
    with pytest.raises(ScenarioError, match=r'replicates fixed.* did you mean "same"'):
        plan(folder)


def test_distance_from_the_edge_is_counted_in_standard_deviations() -> None:
    # Margins 1 and 3: mean 2, standard deviation sqrt 2.
    assert Measured("", {1: finding(1.0), 2: finding(3.0)}).nearness == pytest.approx(2**0.5)
    # The nearest edge of [0, 10] is 1 away from both.
    both = Measured("", {1: finding(1.0, 0.0, 10.0), 2: finding(9.0, 0.0, 10.0)})
    assert isinf(both.nearness)
    assert Measured("", {1: finding(1.0)}).nearness == inf


def test_infinite_and_missing_values_are_shown_and_have_no_distance(tmp_path: Path) -> None:
    claim = claim_of("a", "x")
    values = (inf, 1.0, 3.0, float("nan"))
    by = {number: Judged(claim, [finding(value)], [], False) for number, value in enumerate(values, 1)}
    one = over_replicates(claim, by)
    (number,) = one.clauses[0].numbers
    assert number.nearness == pytest.approx(2**0.5)
    assert number.summary == (3.0, 1.0, inf)
    assert one.verdict is Verdict.UNDECIDED, "what was not measured is not in the band: 3 of 4"
    draw_claims(plan("kim2008"), [one], tmp_path)
    assert_drawn(tmp_path / "claims.png")


def test_edges_of_bands_are_at_fixed_places_on_any_scale() -> None:
    assert [place(finding(value, 10.0, 20.0), 1.0) for value in (10.0, 15.0, 20.0, 25.0)] == [LOWER, 0.5, UPPER, 1.5]
    lower = Measured("", {1: finding(4.0, 2.0), 2: finding(1.0, 2.0)})
    assert [place(it, unit_of(lower)) for it in lower.findings.values()] == [1.0, -0.5]
    near = finding(3.0, 2.0)
    assert place(near, unit_of(Measured("", {1: near}))) == 0.5, "half of the edge away"
    zero = Measured("", {1: finding(4.0, 0.0), 2: finding(1.0, 0.0)})
    assert [place(it, unit_of(zero)) for it in zero.findings.values()] == [1.0, 0.25]
    upper = Measured("", {1: finding(4.0, None, 2.0), 2: finding(2.0, None, 2.0)})
    assert [place(it, unit_of(upper)) for it in upper.findings.values()] == [2.0, UPPER]
    only = replace(finding(3.0), low=3.0, high=3.0)
    assert place(only, unit_of(Measured("", {1: only}))) == 0.5


def values(found: Reproduction, claim: str) -> dict[int, list[float]]:
    return {
        number: sorted(it.value for it in of.findings) for number, of in sorted(verdict(found, claim).judged.items())
    }


def test_replicates_of_several_runs_are_judged_together(folder: Path, tmp_path: Path) -> None:
    whole = run(folder, tmp_path / "whole", replicates=5)
    run(folder, tmp_path / "early", replicates=2)
    late = plan(folder, first_replicate=3)
    with Executor(Here(), Store(tmp_path / "late", stored_as)) as executor:
        found = conclude(late, executor, tmp_path / "late", replicates=3, earlier=[tmp_path / "early"])
    assert values(found, "three-of-four") == values(whole, "three-of-four")
    assert verdict(found, "three-of-four").words == verdict(whole, "three-of-four").words
    assert len(answers(tmp_path / "late")) == 3 * 2 + 1, "two points of three replicates, and the study without chance"
    assert not found.replication.others
    tables = [
        pl.read_csv(tmp_path / of / "clauses.csv")
        .filter(pl.col("claim") != "same")
        .sort("claim", "clause", "measured", "replicate")
        for of in ("whole", "late")
    ]
    assert tables[0].equals(tables[1])


def test_replicates_that_were_judged_elsewhere_are_not_run_again(folder: Path, tmp_path: Path) -> None:
    run(folder, tmp_path / "early", replicates=3)
    found = run(folder, tmp_path / "late", replicates=4, earlier=[tmp_path / "early" / "clauses.csv"])
    assert verdict(found, "three-of-four").complete == 4
    assert len(answers(tmp_path / "late")) == 2 * 2 + 1, "the first and the fourth replicate"


def test_another_version_of_the_simulator_is_named(folder: Path, tmp_path: Path) -> None:
    run(folder, tmp_path / "early", replicates=2)
    file = tmp_path / "early" / "clauses.csv"
    pl.read_csv(file).with_columns(simulator=pl.lit("0123456789abcdef")).write_csv(file)
    found = run(folder, tmp_path / "late", earlier=[file])
    assert found.replication.others == [2], "the first was run here"
    words = "Replicates judged elsewhere by another version of the simulator: 2."
    assert words in (tmp_path / "late" / "report.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (pl.lit(7).alias("clause"), "clause = 7.*unknown.*1 to 2, the clauses of three-of-four"),
        (pl.lit(9.0).alias("high"), "three-of-four, clause 1: another band.*<= 2"),
        (pl.lit("x").alias("replicate"), "--with.*cannot be read"),
    ],
)
def test_findings_that_do_not_fit_the_paper_are_refused(
    folder: Path, tmp_path: Path, change: pl.Expr, words: str
) -> None:
    run(folder, tmp_path / "early", replicates=2)
    file = tmp_path / "early" / "clauses.csv"
    pl.read_csv(file).with_columns(change).write_csv(file)
    with pytest.raises(ScenarioError, match=f"(?s){words}"):
        run(folder, tmp_path / "late", earlier=[file])
    assert not (tmp_path / "late" / "answers").exists(), "nothing is computed first"
    pl.read_csv(file).drop("in_band").write_csv(file)
    with pytest.raises(ScenarioError, match="in_band is missing"):
        run(folder, tmp_path / "late", earlier=[file])
    with pytest.raises(ScenarioError, match=r"nothing\.csv: --with: cannot be read: No such file"):
        run(folder, tmp_path / "late", earlier=[tmp_path / "nothing.csv"])


def test_files_alone_can_be_judged(folder: Path, tmp_path: Path) -> None:
    whole = run(folder, tmp_path / "whole", replicates=4)
    run(folder, tmp_path / "part", replicates=2, only="three-of-four")
    found = run(folder, tmp_path / "files", replicates=0, earlier=[tmp_path / "whole"])
    assert [one.words for one in found.verdicts] == [one.words for one in whole.verdicts]
    assert not found.done
    assert not (tmp_path / "files" / "answers").exists()
    assert_drawn(tmp_path / "files" / "claims.png")
    found = run(folder, tmp_path / "less", replicates=0, earlier=[tmp_path / "part" / "clauses.csv"])
    assert [one.words for one in found.verdicts] == ["holds, 2 replicates", "not run"]
    with pytest.raises(ScenarioError, match=r"--replicates = 0: leaves nothing to judge.*--with FILE"):
        check_replicates(0, None)
