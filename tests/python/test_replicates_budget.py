"""Replicates under a budget of CPU hours: which claims get how many, in which order, and what is left."""

import re
from pathlib import Path
from typing import Any

import pytest

from fairlane.cli.main import execute
from fairlane.papers.folder import Claim
from fairlane.papers.judging import Judged
from fairlane.papers.replicating import Ledger
from fairlane.papers.running import Done
from fairlane.papers.verdicts import ClaimVerdict, over_replicates
from replicated import answers, claim_of, finding, run, verdict, write_paper
from small_study import Here


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_paper(tmp_path / "paper")


class Sized:
    """A task that takes no time."""

    def __init__(self, label: str) -> None:
        self.label = self.digest = label
        self.cost, self.description = 1.0, dict[str, Any]()

    def compute(self, _watch: object) -> dict[str, Any]:
        return {}


def judged(claim: Claim, *values: float) -> ClaimVerdict:
    by = {number: Judged(claim, [finding(value)], [], "") for number, value in enumerate(values, 1)}
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


def test_a_budget_of_no_time_runs_the_first_replicate_and_lists_the_rest(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairlane.papers.reproduce.open_pool", Here)
    words = ["reproduce", str(folder), "--workers", "1", "--out", str(tmp_path / "out"), "--quiet"]
    assert execute([*words, "--replicates", "3", "--cpu-hours", "1e-12"]) == 0
    page = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    assert "Not run: 2 replicates of three-of-four, about" in page
    assert execute([*words[:-1], "--replicates", "3", "--cpu-hours", "1", "--resume"]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"three-of-four +I .* holds \(3 replicates\)", printed)
    assert re.search(r"varied +1 \(0 to 2\) +<= 2 +3 of 3", printed)
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
