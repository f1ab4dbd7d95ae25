"""Verdicts over replicates: a clause holds, does not hold or is undecided, by its share of replicates.

A replicate is judged as a run without replicates is; in it a clause holds if all its numbers are in their bands. Over
replicates a clause holds from a share of ``HOLDS_FROM`` and does not hold up to ``FAILS_UP_TO``. A claim holds if all
its clauses do, and does not hold if one does not. What is scaled, or was not run in full, has no such verdict.
Replicates with the same results, bit for bit, count once.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from math import isfinite, isnan
from statistics import mean, median, stdev

import polars as pl

from fairlane.reproduce.folder import Claim, Clause
from fairlane.reproduce.judging import Finding, Judged
from fairlane.results.repeats import distinct
from fairlane.wording import plural

HOLDS_FROM, FAILS_UP_TO = 90, 10
"""Percent of replicates from which a clause holds, and up to which it does not."""


class Verdict(StrEnum):
    """What is said of a clause or a claim."""

    HOLDS = "holds"
    FAILS = "does not hold"
    UNDECIDED = "undecided"
    CALIBRATED = "calibrated"
    """An input was chosen by the number, so it is not a finding."""
    IN_PART = "not run in full"
    """A study differs from the paper's."""
    NOT_RUN = "not run"
    """A study was left out, or a run failed."""


def verdict_of(held: int, replicates: int) -> Verdict:
    """The verdict on a clause that holds in so many of so many replicates."""
    if 100 * held >= HOLDS_FROM * replicates:
        return Verdict.HOLDS
    return Verdict.FAILS if 100 * held <= FAILS_UP_TO * replicates else Verdict.UNDECIDED


@dataclass(frozen=True)
class Measured:
    """One number of a clause over replicates."""

    label: str
    """The measurement, without its numbers."""
    findings: Mapping[int, Finding]
    """By replicate."""

    @property
    def first(self) -> Finding:
        """That of the first replicate that has it: replicate 1 as a rule."""
        return self.findings[min(self.findings)]

    @cached_property
    def values(self) -> list[float]:
        """The values that there are."""
        return [one.value for one in self.findings.values() if not isnan(one.value)]

    @property
    def held(self) -> int:
        """In how many replicates the value is in its band."""
        return sum(one.holds for one in self.findings.values())

    @property
    def summary(self) -> tuple[float, float, float] | None:
        """Median, least and greatest value; None without a value."""
        return (median(self.values), min(self.values), max(self.values)) if self.values else None

    @property
    def nearness(self) -> float:
        """Distance of the mean from the edge of the band, in standard deviations over replicates.

        Infinite where nothing varies, or where fewer than two replicates have a value.
        """
        margins = [one.margin for one in self.findings.values() if isfinite(one.margin)]
        spread = stdev(margins) if len(margins) > 1 else 0.0
        if spread == 0:
            return float("inf")
        return abs(mean(margins)) / spread


@dataclass(frozen=True)
class ClauseVerdict:
    """A clause over replicates."""

    number: int
    """Which clause of the claim, from 0."""
    clause: Clause
    numbers: Sequence[Measured]
    held: int
    """In how many replicates all its numbers are in their bands."""
    replicates: int
    verdict: Verdict

    @property
    def words(self) -> str:
        """The verdict, and whether it says little."""
        return f"{self.verdict}, near certain" if self.clause.near_certain else str(self.verdict)

    @property
    def explained(self) -> str:
        """The same with the input that was chosen by the number, or why the clause can hardly fail."""
        why = self.clause.calibrated or self.clause.near_certain
        return f"{self.words}: {why}" if why else self.words

    @property
    def nearness(self) -> float:
        """That of the number that is nearest to its band's edge."""
        return min((one.nearness for one in self.numbers), default=float("inf"))


@dataclass(frozen=True)
class ClaimVerdict:
    """A claim over replicates."""

    claim: Claim
    judged: Mapping[int, Judged]
    """The claim in each replicate, those with missing runs included."""
    clauses: Sequence[ClauseVerdict]
    verdict: Verdict
    missing: Sequence[str] = ()
    """What is missing in the first replicate."""
    repeats: int = 0
    """How many replicates with nothing missing repeat an earlier one."""
    deterministic: bool = False
    """Whether its studies leave nothing to chance: then one replicate is all there is."""

    @property
    def complete(self) -> int:
        """How many replicates count: those in which nothing is missing, and that do not repeat an earlier one."""
        return sum(_counts(one) for one in self.judged.values()) - self.repeats

    @property
    def words(self) -> str:
        """The verdict with the number of replicates."""
        if self.verdict is Verdict.NOT_RUN:
            return str(self.verdict)
        several = plural(self.complete, "replicate")
        one = "nothing left to chance" if self.deterministic else "one replicate"
        number = one if self.complete == 1 else several
        if self.verdict is not Verdict.IN_PART:
            return f"{self.verdict}, {number}"
        held = sum(verdict_of(one.held, one.replicates) is Verdict.HOLDS for one in self.counting)
        return f"{self.verdict}, {number}: {held} of {plural(len(self.counting), 'clause')} in the band"

    @property
    def counting(self) -> list[ClauseVerdict]:
        """The clauses that are findings: no input was chosen by their numbers."""
        return [one for one in self.clauses if one.verdict is not Verdict.CALIBRATED]

    @property
    def undecided(self) -> bool:
        """Whether the share of replicates decides nothing for one of its clauses, scaled or not."""
        return any(verdict_of(one.held, one.replicates) is Verdict.UNDECIDED for one in self.counting)

    @property
    def nearness(self) -> float:
        """That of its nearest clause; of undecided ones if there are some."""
        every = [(verdict_of(one.held, one.replicates), one.nearness) for one in self.counting]
        near = [it for verdict, it in every if verdict is Verdict.UNDECIDED] or [it for _, it in every]
        return min(near, default=float("inf"))


def _counts(one: Judged) -> bool:
    return not one.missing and bool(one.findings)


def over_replicates(claim: Claim, judged: Mapping[int, Judged], fixed: Collection[str] = ()) -> ClaimVerdict:
    """The verdict on a claim, by its findings in each replicate; the first replicate is among them.

    ``fixed`` names the studies that are the same in all replicates.
    """
    every = {number: one for number, one in sorted(judged.items()) if _counts(one)}
    counted = {number: every[number].findings for number in once({at: one.identity for at, one in every.items()})}
    first = judged[min(judged)]
    if not counted:
        return ClaimVerdict(claim, judged, _clauses(claim, {1: first.findings}, None), Verdict.NOT_RUN, first.missing)
    scaled = any(one.scaled for one in judged.values())
    clauses = _clauses(claim, counted, Verdict.IN_PART if scaled else None)
    found = {one.verdict for one in clauses}
    verdicts = (Verdict.IN_PART, Verdict.FAILS, Verdict.UNDECIDED)
    verdict = next((it for it in verdicts if it in found), Verdict.HOLDS)
    if found == {Verdict.CALIBRATED}:
        verdict = Verdict.CALIBRATED
    repeats = len(every) - len(counted)
    deterministic = {*claim.studies} <= {*fixed} or (len(counted) == 1 and repeats > 0)
    return ClaimVerdict(claim, judged, clauses, verdict, repeats=repeats, deterministic=deterministic)


def once(identities: Mapping[int, str]) -> list[int]:
    """The replicates, or points, that do not repeat an earlier one; those without an identity count."""
    rows = [(number, identity or f"unknown {number}") for number, identity in identities.items()]
    table = pl.DataFrame(rows, {"number": pl.Int64, "identity": pl.String}, orient="row")
    return distinct(table, ["identity"])["number"].to_list()


def _clauses(claim: Claim, counted: Mapping[int, Sequence[Finding]], verdict: Verdict | None) -> list[ClauseVerdict]:
    """Verdicts on the clauses that have numbers, or one that is given."""
    found = []
    for number, clause in enumerate(claim.clause):
        of = {at: [one for one in findings if one.clause == number] for at, findings in counted.items()}
        of = {at: findings for at, findings in of.items() if findings}
        if of:
            held = sum(all(one.holds for one in findings) for findings in of.values())
            judged = Verdict.CALIBRATED if clause.calibrated else verdict or verdict_of(held, len(of))
            found.append(ClauseVerdict(number, clause, _numbers(of), held, len(of), judged))
    return found


def _numbers(of: Mapping[int, Sequence[Finding]]) -> list[Measured]:
    """The numbers of one clause: matched by their labels where these are the same in all replicates, else by place."""
    names = [[one.label for one in findings] for findings in of.values()]
    if all(len({*it}) == len(it) and {*it} == {*names[0]} for it in names):
        return [Measured(label, {at: _labelled(findings, label) for at, findings in of.items()}) for label in names[0]]
    most = max(map(len, names))
    by_place = ({at: findings[place] for at, findings in of.items() if place < len(findings)} for place in range(most))
    return [Measured(found[min(found)].label, found) for found in by_place]


def _labelled(findings: Iterable[Finding], label: str) -> Finding:
    return next(one for one in findings if one.label == label)
