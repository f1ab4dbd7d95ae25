"""Verdicts over replicates: a clause holds, does not hold or is undecided, by its share of replicates.

A replicate is judged as a run without replicates is; in it a clause holds if all its numbers are in their bands. Over
replicates a clause holds from a share of ``HOLDS_FROM`` and does not hold up to ``FAILS_UP_TO``; one that holds by
chance as well has to hold more often than that. A claim holds if all its clauses do, and does not hold if one does not.
What is scaled has no such verdict. Replicates with the same results, bit for bit, count once.

A claim may be judged by variants of its paper's folder as well, each a stated condition; ``ending`` is what comes of
all of them.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from math import comb, isfinite, isnan
from statistics import mean, stdev

from fairlane.core.statistics import spread
from fairlane.core.wording import plural
from fairlane.papers.folder import Claim, Clause
from fairlane.papers.judging import Finding, Judged

HOLDS_FROM, FAILS_UP_TO = 90, 10
"""Percent of replicates from which a clause holds, and up to which it does not."""
OF_VARIANT = 3
"""Replicates in which a claim has to hold by a variant to hold under its condition, or as many as it has without."""
BY_CHANCE = 0.05
"""Probability, under the null model, from which it may be chance that a clause holds in so many replicates."""


class Verdict(StrEnum):
    """Verdicts of clauses and claims."""

    HOLDS = "holds"
    CONDITIONAL = "holds under stated conditions"
    """Of a claim only."""
    FAILS = "does not hold"
    CONTRADICTED = "contradicted"
    """Of a claim that does not hold, as its last word."""
    UNDECIDED = "undecided"
    CALIBRATED = "calibrated"
    """An input was chosen by the number, so it is not a finding."""
    SCALED = "scaled"
    """A study lacks something of the paper's."""
    NOT_RUN = "not run"
    """A study was left out, or a run failed."""


def verdict_of(held: int, replicates: int, chance: float = 0.0) -> Verdict:
    """The verdict on a clause that holds in so many of so many replicates, and in each with ``chance`` by chance."""
    if 100 * held >= HOLDS_FROM * replicates:
        return Verdict.UNDECIDED if _at_least(held, replicates, chance) > BY_CHANCE else Verdict.HOLDS
    return Verdict.FAILS if 100 * held <= FAILS_UP_TO * replicates else Verdict.UNDECIDED


def _at_least(held: int, replicates: int, chance: float) -> float:
    """The probability that something with this chance happens so often or more often."""
    every = range(held, replicates + 1) if chance else ()
    return sum(comb(replicates, times) * chance**times * (1 - chance) ** (replicates - times) for times in every)


@dataclass(frozen=True)
class Measured:
    """One number of a clause over replicates."""

    label: str
    """The measurement, without its numbers."""
    findings: Mapping[int, Finding]
    """By replicate."""

    @property
    def first(self) -> Finding:
        """Finding of the first replicate that has it: replicate 1 as a rule."""
        return self.findings[min(self.findings)]

    @cached_property
    def values(self) -> list[float]:
        """The values that there are."""
        return [finding.value for finding in self.findings.values() if not isnan(finding.value)]

    @property
    def held(self) -> int:
        """In how many replicates the value is in its band."""
        return sum(finding.holds for finding in self.findings.values())

    @property
    def summary(self) -> tuple[float, float, float] | None:
        """Median, least and greatest value; None without a value."""
        return spread(self.values)

    @property
    def nearness(self) -> float:
        """Distance of the mean from the edge of the band, in standard deviations over replicates.

        Infinite where nothing varies, or where fewer than two replicates have a value.
        """
        margins = [finding.margin for finding in self.findings.values() if isfinite(finding.margin)]
        deviation = stdev(margins) if len(margins) > 1 else 0.0
        return abs(mean(margins)) / deviation if deviation else float("inf")


@dataclass(frozen=True)
class ClauseVerdict:
    """A clause over replicates."""

    number: int
    """Number of the clause in the claim, from 0."""
    clause: Clause
    numbers: Sequence[Measured]
    held: int
    """In how many replicates all its numbers are in their bands."""
    replicates: int
    verdict: Verdict

    @property
    def why(self) -> str:
        """The input that was chosen by the number, or why the clause can hardly fail, or by chance."""
        by_chance = f"by chance in {self.clause.chance:.0%} of the replicates: {self.clause.null}"
        return self.clause.calibrated or self.clause.near_certain or (by_chance if self.clause.chance else "")

    @property
    def share_says(self) -> Verdict:
        """The verdict by the share of replicates alone, scaled or not."""
        return verdict_of(self.held, self.replicates, self.clause.chance)

    @property
    def nearness(self) -> float:
        """Nearness of the number that is nearest to its band's edge."""
        return min((number.nearness for number in self.numbers), default=float("inf"))


@dataclass(frozen=True)
class ClaimVerdict:
    """A claim over replicates, and its verdicts by variants of the folder."""

    claim: Claim
    judged: Mapping[int, Judged]
    """The claim in each replicate, those with missing runs included."""
    clauses: Sequence[ClauseVerdict]
    verdict: Verdict
    missing: Sequence[str] = ()
    """Studies that are missing in the first replicate."""
    repeats: int = 0
    """Number of replicates with nothing missing that repeat an earlier one."""
    deterministic: bool = False
    """Whether its studies leave nothing to chance: then one replicate is all there is."""
    variant: str = ""
    """The variant by which it was judged; empty for the folder itself."""
    variant_title: str = ""
    under: Sequence["ClaimVerdict"] = ()
    """The same claim by other variants."""

    @property
    def complete(self) -> int:
        """Number of replicates that count: nothing is missing in them, and they do not repeat an earlier one."""
        return sum(_counts(judgement) for judgement in self.judged.values()) - self.repeats

    @property
    def settings(self) -> Sequence["ClaimVerdict"]:
        """This, and each of the other variants."""
        return (self, *self.under)

    @property
    def number(self) -> str:
        """The number of replicates, as text."""
        single = "nothing left to chance" if self.deterministic else "one replicate"
        return single if self.complete == 1 else plural(self.complete, "replicate")

    @property
    def near_certain(self) -> bool:
        """Whether it holds by clauses alone that can hardly fail: then it is no evidence."""
        return self.verdict is Verdict.HOLDS and all(clause.clause.near_certain for clause in self.counting)

    @property
    def scaled(self) -> str:
        """Difference of its studies from the paper's."""
        return "; ".join(dict.fromkeys(judgement.scaled for judgement in self.judged.values() if judgement.scaled))

    @property
    def deciding(self) -> "ClaimVerdict":
        """The setting whose verdict is the last word.

        If the claim does not hold in this one, another in which it does; else this one, or another in which it does
        not hold and that has more replicates.
        """
        enough = min(OF_VARIANT, self.complete)
        rests = [verdict for verdict in self.under if verdict.complete >= enough or verdict.deterministic]
        holding = [verdict for verdict in rests if verdict.verdict is Verdict.HOLDS]
        denied = [verdict for verdict in self.under if verdict.verdict in (Verdict.FAILS, Verdict.UNDECIDED)]
        others = holding if holding and self.verdict is not Verdict.HOLDS else [self, *denied]
        return max(others, key=lambda verdict: verdict.complete)

    @property
    def ending(self) -> Verdict:
        """The last word on the claim over all settings."""
        last = self.deciding
        if last.verdict is Verdict.HOLDS and last.variant:
            return Verdict.CONDITIONAL
        return Verdict.CONTRADICTED if last.verdict is Verdict.FAILS else last.verdict

    @property
    def words(self) -> str:
        """The last word with the number of replicates."""
        return f"{self.ending}, {self._rests_on}" if self._rests_on else str(self.ending)

    @property
    def line(self) -> str:
        """The last word with the number of replicates, and its condition or reason."""
        joint = ", because " if self.ending in (Verdict.CONTRADICTED, Verdict.UNDECIDED) else ": "
        return "; ".join([joint.join(filter(None, (self.numbered, self.reason))), *self.elsewhere])

    @property
    def numbered(self) -> str:
        """The last word, with the number of replicates in brackets."""
        return f"{self.ending} ({self._rests_on})" if self._rests_on else str(self.ending)

    @property
    def reason(self) -> str:
        """The condition under which the claim holds, why it does not or is undecided, or what is scaled; or nothing."""
        if self.ending is Verdict.CONDITIONAL:
            return self.deciding.variant_title
        if self.ending is Verdict.CONTRADICTED:
            return self.claim.because or "a clause is not in its band"
        if self.ending is Verdict.UNDECIDED:
            return self.claim.because
        return self.scaled if self.ending is Verdict.SCALED else ""

    @property
    def elsewhere(self) -> list[str]:
        """The verdicts in the other settings that were run."""
        run = (setting for setting in self.settings if setting.verdict is not Verdict.NOT_RUN)
        return [setting.aside for setting in run if setting is not self.deciding]

    @property
    def aside(self) -> str:
        """The verdict in this setting, as a part of a sentence."""
        setting = f"variant {self.variant}" if self.variant else "settings of the studies"
        return f"{setting}: {self.verdict} ({self.number})"

    @property
    def _rests_on(self) -> str:
        """Say how many replicates decide, and of what is scaled the share of clauses; nothing of what was not run."""
        last = self.deciding
        if last.verdict is Verdict.NOT_RUN:
            return ""
        number = f"near certain, {last.number}" if last.near_certain else last.number
        if last.verdict is not Verdict.SCALED:
            return number
        counting = [clause for clause in last.counting if not clause.clause.near_certain]
        held = sum(clause.share_says is Verdict.HOLDS for clause in counting)
        return f"{number}, {held} of {plural(len(counting), 'clause')} in the band"

    @property
    def counting(self) -> list[ClauseVerdict]:
        """The clauses that are findings: no input was chosen by their numbers."""
        return [clause for clause in self.clauses if clause.verdict is not Verdict.CALIBRATED]

    @property
    def undecided(self) -> bool:
        """Whether the share of replicates decides nothing for one of its clauses, scaled or not."""
        return any(clause.share_says is Verdict.UNDECIDED for clause in self.counting)

    @property
    def nearness(self) -> float:
        """Nearness of its nearest clause; of undecided ones if there are some."""
        every = [(clause.share_says, clause.nearness) for clause in self.counting]
        near = [margin for verdict, margin in every if verdict is Verdict.UNDECIDED] or [margin for _, margin in every]
        return min(near, default=float("inf"))


def _counts(judgement: Judged) -> bool:
    return not judgement.missing and bool(judgement.findings)


def over_replicates(
    claim: Claim, judged: Mapping[int, Judged], fixed: Collection[str] = (), variant: tuple[str, str] = ("", "")
) -> ClaimVerdict:
    """The verdict on a claim, by its findings in each replicate; the first replicate is among them.

    ``fixed`` names the studies that are the same in all replicates; ``variant`` is that of all, with its
    title.
    """
    every = {number: judgement for number, judgement in sorted(judged.items()) if _counts(judgement)}
    counted = {
        number: every[number].findings for number in once({at: judgement.identity for at, judgement in every.items()})
    }
    first = judged[min(judged)]
    if not counted:
        clauses = _clauses(claim, {min(judged): first.findings}, None)
        return ClaimVerdict(claim, judged, clauses, Verdict.NOT_RUN, first.missing, 0, False, *variant)
    scaled = any(judgement.scaled for judgement in judged.values())
    clauses = _clauses(claim, counted, Verdict.SCALED if scaled else None)
    clause_verdicts = {clause.verdict for clause in clauses}
    verdicts = (Verdict.SCALED, Verdict.FAILS, Verdict.UNDECIDED)
    verdict = next((known for known in verdicts if known in clause_verdicts), Verdict.HOLDS)
    if clause_verdicts == {Verdict.CALIBRATED}:
        verdict = Verdict.CALIBRATED
    repeats = len(every) - len(counted)
    deterministic = {*claim.studies} <= {*fixed} or (len(counted) == 1 and repeats > 0)
    return ClaimVerdict(claim, judged, clauses, verdict, (), repeats, deterministic, *variant)


def joined(settings: Sequence[ClaimVerdict]) -> ClaimVerdict:
    """One claim by several variants: the folder itself first if it is among them."""
    first, *others = sorted(settings, key=lambda setting: setting.variant != "")
    return replace(first, under=others)


def once(identities: Mapping[int, str]) -> list[int]:
    """The replicates, or points, that do not repeat an earlier one; those without an identity count."""
    first: dict[str | int, int] = {}
    for number, identity in identities.items():
        first.setdefault(identity or number, number)
    return [*first.values()]


def _clauses(claim: Claim, counted: Mapping[int, Sequence[Finding]], verdict: Verdict | None) -> list[ClauseVerdict]:
    """Verdicts on the clauses that have numbers, or one that is given."""
    verdicts = []
    for number, clause in enumerate(claim.clause):
        of = {at: [finding for finding in findings if finding.clause == number] for at, findings in counted.items()}
        of = {at: findings for at, findings in of.items() if findings}
        if of:
            held = sum(all(finding.holds for finding in findings) for findings in of.values())
            judged = Verdict.CALIBRATED if clause.calibrated else verdict or verdict_of(held, len(of), clause.chance)
            verdicts.append(ClauseVerdict(number, clause, _numbers(of), held, len(of), judged))
    return verdicts


def _numbers(of: Mapping[int, Sequence[Finding]]) -> list[Measured]:
    """The numbers of one clause: matched by their labels where these are the same in all replicates, else by place."""
    names = [[finding.label for finding in findings] for findings in of.values()]
    if all(len({*labels}) == len(labels) and {*labels} == {*names[0]} for labels in names):
        return [Measured(label, {at: _labelled(findings, label) for at, findings in of.items()}) for label in names[0]]
    most = max(map(len, names))
    by_place = ({at: findings[place] for at, findings in of.items() if place < len(findings)} for place in range(most))
    return [Measured(by_label[min(by_label)].label, by_label) for by_label in by_place]


def _labelled(findings: Iterable[Finding], label: str) -> Finding:
    return next(finding for finding in findings if finding.label == label)
