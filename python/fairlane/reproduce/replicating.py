"""Replicates of a paper: the studies again with other seeds, round by round, and the claims judged over all of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from fairlane.errors import ScenarioError
from fairlane.reproduce.earlier import Known
from fairlane.reproduce.folder import Claim
from fairlane.reproduce.judging import Judged, judged
from fairlane.reproduce.planning import Plan, plan_of
from fairlane.reproduce.rounds import Ledger
from fairlane.reproduce.running import Done, Outcome, perform
from fairlane.reproduce.verdicts import ClaimVerdict, joined, over_replicates
from fairlane.tasks.executor import Executor
from fairlane.tasks.sources import sources
from fairlane.tasks.task import digest_of


@dataclass(frozen=True)
class Replication:
    """What came of all replicates."""

    verdicts: Sequence[ClaimVerdict]
    replicates: int = 1
    """How many were wanted."""
    limit_s: float | None = None
    """Processor time for all but the first, s; None for no limit."""
    spent_s: float = 0.0
    """What these have taken, whenever they were computed, s."""
    rest: Mapping[str, tuple[int, float]] = field(default_factory=dict)
    """For each claim that is not complete: how many replicates are missing, and their estimated processor time, s."""
    done: Mapping[int, Mapping[str, Done]] = field(default_factory=dict)
    """What came of the tasks that a replicate has on its own, by replicate, after the first."""
    others: Sequence[int] = ()
    """Replicates that were judged elsewhere by another version of the simulator."""

    @property
    def several(self) -> bool:
        """Whether a claim has more than one replicate, here or elsewhere."""
        return self.replicates > 1 or any(one.complete > 1 for one in self.verdicts)


def judge(plan: Plan, outcome: Outcome) -> list[Judged]:
    """The verdicts on the claims in one replicate, by the tables of its outcome.

    Raises ``ScenarioError`` for a claim that does not fit the tables.
    """
    try:
        return [
            judged(
                claim,
                outcome.tables,
                [words for name in claim.studies for words in outcome.missing(plan, name)],
                scaled=plan.scales(claim),
                results=digest_of([outcome.results.get(name) for name in claim.studies]),
            )
            for claim in plan.claims
        ]
    except ScenarioError as error:
        raise ScenarioError(it.at(str(plan.folder.path / "claims.toml"), None) for it in error.problems) from None


def repeat(
    plan: Plan,
    outcome: Outcome,
    first: Sequence[Judged],
    executor: Executor,
    replicates: int = 1,
    limit_s: float | None = None,
    earlier: Known = MappingProxyType({}),
) -> Replication:
    """Performs the replicates after the first, and judges the claims.

    Args:
        plan: The plan of the first replicate.
        outcome: What came of it.
        first: Its verdicts.
        executor: Performs tasks; its store has those that were performed before.
        replicates: How many replicates are wanted; 0 to judge by those from elsewhere alone.
        limit_s: Processor time for all but the first, s; None for no limit.
        earlier: What was judged elsewhere; these replicates are not run again.
    """
    start = plan.options.replicate
    fixed = frozenset(plan.folder.paper.replicates.fixed)
    titles = {"": "", **{name: one.title for name, one in plan.folder.paper.variant.items()}}
    variant = plan.options.variant or ""
    elsewhere = {name: of for name, of in earlier.items() if name != variant}
    of_plan = earlier.get(variant, {})
    claims = [one.claim for one in first if not one.missing and one.findings]
    own = {one.claim.id: _counting(one, of_plan.get(one.claim.id, {}), fixed) for one in first}
    there = {name: frozenset(of) for name, of in own.items()}
    ledger = Ledger(claims, fixed, outcome.tasks, outcome.done, replicates, limit_s, first=start, known=there)
    found = {one.claim.id: _with(one, start, own[one.claim.id]) for one in first}
    done: dict[int, dict[str, Done]] = {}

    def verdicts() -> dict[str, ClaimVerdict]:
        every = {claim.id: claim for claim in plan.claims}
        return {name: over_replicates(every[name], by, fixed, (variant, titles[variant])) for name, by in found.items()}

    def settings(of_plan: ClaimVerdict) -> ClaimVerdict:
        claim = of_plan.claim
        others = {name: of[claim.id] for name, of in elsewhere.items() if of.get(claim.id)}
        judged = [over_replicates(claim, by, fixed, (name, titles[name])) for name, by in others.items()]
        return joined([of_plan, *judged])

    while units := ledger.next_round(verdicts()):
        for number in sorted({unit.replicate for unit in units}):
            before = ledger.complete(number)
            studies = frozenset().union(*(unit.studies for unit in units if unit.replicate == number))
            ledger.run[number] = ledger.run.get(number, frozenset()) | studies
            new = [claim for claim in ledger.complete(number) if claim not in before]
            tasks_of = done.setdefault(number, {})
            for one, tasks in _replicate(plan, new, number, executor):
                found[one.claim.id].setdefault(number, one)
                tasks_of |= {digest: it for digest, it in tasks.items() if digest not in outcome.done}
            ledger.spent_s = sum(it.cpu for tasks in done.values() for it in tasks.values())
    this = sources()
    others = {at for of in found.values() for at, one in of.items() if one.simulator not in ("", this)}
    return Replication(
        [*map(settings, verdicts().values())], replicates, limit_s, ledger.spent_s, ledger.rest(), done, sorted(others)
    )


def _counting(first: Judged, earlier: Mapping[int, Judged], fixed: frozenset[str]) -> Mapping[int, Judged]:
    """The replicates from elsewhere that count; of a claim that leaves nothing to chance one is all there is."""
    if not {*first.claim.studies} <= fixed:
        return earlier
    return {at: one for at, one in earlier.items() if first.missing and at == min(earlier)}


def _with(first: Judged, number: int, earlier: Mapping[int, Judged]) -> dict[int, Judged]:
    """The first replicate with those that were judged elsewhere; its own findings come first if there are any."""
    return {number: first, **earlier} if first.missing else {**earlier, number: first}


def nothing(plan: Plan) -> list[Judged]:
    """The claims of a plan of which nothing is run."""
    return [Judged(claim, (), ["not run here nor elsewhere"], scaled="") for claim in plan.claims]


def _replicate(
    plan: Plan, claims: Sequence[Claim], number: int, executor: Executor
) -> list[tuple[Judged, Mapping[str, Done]]]:
    """The verdicts on some claims in one replicate, with all its tasks."""
    executor.forget()
    executor.stage(f"replicate {number}")
    part = plan_of(plan.folder, claims, replace(plan.options, replicate=number, also=()))
    outcome = perform(part, executor)
    found = [(one, outcome.done) for one in judge(part, outcome)]
    outcome.tables.close()
    return found
