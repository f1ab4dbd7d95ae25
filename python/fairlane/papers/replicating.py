"""Replicates of a paper: the studies again with other seeds, round by round, and the claims judged over all of them.

*The order of replicates: rounds, in which each replicate goes first to the claims that need it most.* Without a limit
of processor time a round is the next replicate of every claim. With one, claims come in this order: those whose
replicate is cheap, up to ``ENOUGH`` replicates; those with fewer than ``FEW``, which say nothing of their spread; then
the half whose clauses are nearest to their bands' edges, the undecided ones first. What does not fit into the rest of
the time is passed over. Costs are those of the first replicate. All this depends on stored answers and their processor
times only: a run that was interrupted goes on where it was.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from fairlane.core.errors import ScenarioError
from fairlane.papers.folder import Claim
from fairlane.papers.judging import Judged, judged
from fairlane.papers.planning import Plan, plan_of
from fairlane.papers.running import Done, Outcome, perform
from fairlane.papers.storing import Known
from fairlane.papers.verdicts import ClaimVerdict, joined, over_replicates
from fairlane.study.tasks.closure import sources
from fairlane.study.tasks.executor import Executor
from fairlane.study.tasks.task import digest_of

CHEAP_S = 600.0
"""Processor time below which a replicate is cheap, s."""
ENOUGH = 10
"""Replicates that a claim gets first if one is cheap."""
FEW = 3
"""Replicates from which on the spread of a clause counts."""


@dataclass(frozen=True)
class Unit:
    """A replicate of a claim, and its processor time, s, without what others need as well."""

    claim: str
    replicate: int
    studies: frozenset[str]
    cpu_s: float


@dataclass
class Ledger:
    """Studies that were run in each replicate, and their costs."""

    claims: Sequence[Claim]
    """Those that can be judged: the ones with all runs in the first replicate."""
    fixed: frozenset[str]
    """Studies that are the same in all replicates."""
    tasks: Mapping[str, frozenset[str]]
    """Digests of the first replicate's tasks, by study."""
    costs: Mapping[str, Done]
    """Their costs, by digest."""
    replicates: int
    """Number of replicates that are wanted."""
    limit_s: float | None = None
    """Processor time for all replicates but the first, s; None for no limit."""
    spent_s: float = 0.0
    """Processor time that they have taken, whenever they were computed, s."""
    run: dict[int, frozenset[str]] = field(default_factory=dict)
    """The studies of each replicate after the first."""
    first: int = 1
    """Number of the first replicate that is run here."""
    known: Mapping[str, frozenset[int]] = field(default_factory=dict)
    """The replicates of each claim that were judged elsewhere."""

    def next_round(self, verdicts: Mapping[str, ClaimVerdict]) -> list[Unit]:
        """Choose the next runs; nothing if all is done or nothing fits."""
        for claims in self._groups(verdicts):
            if units := list(self._fitting(claims)):
                return units
        return []

    def rest(self) -> dict[str, tuple[int, float]]:
        """For each claim that is not complete: how many replicates are missing, and their processor time, s.

        What several claims need is counted for the first of them.
        """
        by_claim: dict[str, tuple[int, float]] = {}
        run = dict(self.run)
        for claim in self.claims:
            studies = self._studies(claim)
            missing = self._missing(claim)
            cpu_s = 0.0
            for number in missing:
                cpu_s += self._cost(studies, run.get(number, frozenset()))
                run[number] = run.get(number, frozenset()) | studies
            if missing:
                by_claim[claim.id] = (len(missing), cpu_s)
        return by_claim

    def complete(self, replicate: int) -> list[Claim]:
        """The claims whose studies were all run in a replicate."""
        there = self.run.get(replicate, frozenset())
        return [claim for claim in self.claims if self._studies(claim) and self._studies(claim) <= there]

    @property
    def _wanted(self) -> range:
        return range(self.first + 1, self.first + self.replicates)

    def _studies(self, claim: Claim) -> frozenset[str]:
        return frozenset(claim.studies) - self.fixed

    def _next(self, claim: Claim) -> int | None:
        """The first replicate that a claim does not have yet."""
        return next(iter(self._missing(claim)), None)

    def _missing(self, claim: Claim) -> list[int]:
        """The wanted replicates that a claim does not have yet."""
        studies, known = self._studies(claim), self.known.get(claim.id, frozenset())
        wanted = (number for number in self._wanted if number not in known)
        return [number for number in wanted if not studies <= self.run.get(number, frozenset())]

    def _cost(self, studies: frozenset[str], there: frozenset[str]) -> float:
        """Processor time of studies where others were run already, s."""
        known = {digest for name in there for digest in self.tasks.get(name, ())}
        known |= {digest for name in self.fixed for digest in self.tasks.get(name, ())}
        new = {digest for name in studies - there for digest in self.tasks.get(name, ())} - known
        return sum(self.costs[digest].cpu for digest in sorted(new))

    def _groups(self, verdicts: Mapping[str, ClaimVerdict]) -> Iterator[list[Claim]]:
        """Claims in the order in which they get their next replicate."""
        left = [claim for claim in self.claims if self._next(claim) is not None]
        if self.limit_s is None:
            yield self._fewest(left)
            return
        count = {claim.id: self._count(claim) for claim in left}
        cost = {claim.id: self._cost(self._studies(claim), frozenset()) for claim in left}
        cheap = [entry for entry in left if cost[entry.id] < CHEAP_S and count[entry.id] < ENOUGH]
        few = [entry for entry in left if entry not in cheap and count[entry.id] < FEW]
        others = [entry for entry in left if entry not in cheap and entry not in few]
        for group in (cheap, few):
            for number in sorted({count[claim.id] for claim in group}):
                yield sorted((entry for entry in group if count[entry.id] == number), key=lambda claim: cost[claim.id])
        others.sort(key=lambda claim: (not verdicts[claim.id].undecided, verdicts[claim.id].nearness, count[claim.id]))
        half = (len(others) + 1) // 2
        yield others[:half]
        yield others[half:]

    def _count(self, claim: Claim) -> int:
        """Count its replicates: the first, those that were run here, and those that were judged elsewhere."""
        elsewhere = self.known.get(claim.id, frozenset()) - {self.first, *self._wanted}
        return 1 + len(self._wanted) - len(self._missing(claim)) + len(elsewhere)

    def _fewest(self, claims: Sequence[Claim]) -> list[Claim]:
        """Those with the fewest replicates."""
        least = min((self._count(claim) for claim in claims), default=0)
        return [claim for claim in claims if self._count(claim) == least]

    def _fitting(self, claims: Sequence[Claim]) -> Iterator[Unit]:
        """The next replicates of these claims, as far as they fit into the rest of the time."""
        left = float("inf") if self.limit_s is None else self.limit_s - self.spent_s
        run = dict(self.run)
        for claim in claims:
            number = self._next(claim)
            assert number is not None, "claims that have all replicates are in no group"
            studies = self._studies(claim)
            there = run.get(number, frozenset())
            cpu_s = self._cost(studies, there)
            if left > 0 and cpu_s <= left:
                left -= cpu_s
                run[number] = there | studies
                yield Unit(claim.id, number, studies, cpu_s)


@dataclass(frozen=True)
class Replication:
    """Results of all replicates."""

    verdicts: Sequence[ClaimVerdict]
    replicates: int = 1
    """Number of replicates that were wanted."""
    limit_s: float | None = None
    """Processor time for all but the first, s; None for no limit."""
    spent_s: float = 0.0
    """Processor time that these have taken, whenever they were computed, s."""
    rest: Mapping[str, tuple[int, float]] = field(default_factory=dict)
    """For each claim that is not complete: how many replicates are missing, and their estimated processor time, s."""
    done: Mapping[int, Mapping[str, Done]] = field(default_factory=dict)
    """Tasks that a replicate has on its own, by replicate, after the first."""
    others: Sequence[int] = ()
    """Replicates that were judged elsewhere by another version of the simulator."""

    @property
    def several(self) -> bool:
        """Whether a claim has more than one replicate, here or elsewhere."""
        return self.replicates > 1 or any(verdict.complete > 1 for verdict in self.verdicts)


def judge(plan: Plan, outcome: Outcome) -> list[Judged]:
    """The verdicts on the claims in one replicate, by the tables of its outcome.

    Raises ``ScenarioError`` for a claim that does not fit the tables.
    """
    try:
        return [
            judged(
                claim,
                outcome.tables,
                [reason for name in claim.studies for reason in outcome.missing(plan, name)],
                scaled=plan.scales(claim),
                results=digest_of([outcome.results.get(name) for name in claim.studies]),
            )
            for claim in plan.claims
        ]
    except ScenarioError as error:
        raise ScenarioError(
            problem.at(str(plan.folder.path / "claims.toml"), None) for problem in error.problems
        ) from None


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
        outcome: Its outcome.
        first: Its verdicts.
        executor: Performs tasks; its store has those that were performed before.
        replicates: How many replicates are wanted; 0 to judge by those from elsewhere alone.
        limit_s: Processor time for all but the first, s; None for no limit.
        earlier: What was judged elsewhere; these replicates are not run again.
    """
    start = plan.options.replicate
    fixed = frozenset(plan.folder.paper.replicates.fixed)
    titles = {"": "", **{name: of.title for name, of in plan.folder.paper.variant.items()}}
    variant = plan.options.variant or ""
    elsewhere = {name: of for name, of in earlier.items() if name != variant}
    of_plan = earlier.get(variant, {})
    claims = [judgement.claim for judgement in first if not judgement.missing and judgement.findings]
    counting = {
        judgement.claim.id: _counting(judgement, of_plan.get(judgement.claim.id, {}), fixed) for judgement in first
    }
    there = {name: frozenset(of) for name, of in counting.items()}
    ledger = Ledger(claims, fixed, outcome.tasks, outcome.done, replicates, limit_s, first=start, known=there)
    by_claim = {judgement.claim.id: _with(judgement, start, counting[judgement.claim.id]) for judgement in first}
    done: dict[int, dict[str, Done]] = {}

    def verdicts() -> dict[str, ClaimVerdict]:
        every = {claim.id: claim for claim in plan.claims}
        return {
            name: over_replicates(every[name], by, fixed, (variant, titles[variant])) for name, by in by_claim.items()
        }

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
            for judgement, tasks in _replicate(plan, new, number, executor):
                by_claim[judgement.claim.id].setdefault(number, judgement)
                tasks_of |= {digest: task for digest, task in tasks.items() if digest not in outcome.done}
            ledger.spent_s = sum(task.cpu for tasks in done.values() for task in tasks.values())
    this = sources()
    others = {at for of in by_claim.values() for at, judgement in of.items() if judgement.simulator not in ("", this)}
    return Replication(
        [*map(settings, verdicts().values())], replicates, limit_s, ledger.spent_s, ledger.rest(), done, sorted(others)
    )


def _counting(first: Judged, earlier: Mapping[int, Judged], fixed: frozenset[str]) -> Mapping[int, Judged]:
    """The replicates from elsewhere that count; of a claim that leaves nothing to chance one is all there is."""
    if not {*first.claim.studies} <= fixed:
        return earlier
    return {at: judgement for at, judgement in earlier.items() if first.missing and at == min(earlier)}


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
    judgements = [(judgement, outcome.done) for judgement in judge(part, outcome)]
    outcome.tables.close()
    return judgements
