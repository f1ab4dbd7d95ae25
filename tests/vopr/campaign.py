"""Many cases one after another: what was drawn and checked is counted, and what fails is made small."""

import json
import sys
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from fairlane.model.scenario import Resolved
from vopr.case import Case, draw
from vopr.checks import Difference, check
from vopr.shrink import shrink

__all__ = ["Tally", "run_case", "run_seeds"]


@dataclass
class Tally:
    """What was drawn and checked."""

    cases: int = 0
    failed: list[int] = field(default_factory=list)
    fabrics: Counter[str] = field(default_factory=Counter)
    """Cases by topology and routing."""
    kinds: Counter[str] = field(default_factory=Counter)
    """Cases by arbiter, placement and so on."""
    actions: Counter[str] = field(default_factory=Counter)
    checks: Counter[str] = field(default_factory=Counter)
    """Runs that were compared, by check; and packet-hops."""

    def add(self, case: Case, resolved: Resolved, checks: Counter[str]) -> None:
        """Counts a case that has passed."""
        spec, tables = resolved.tables["fabric"], resolved.tables
        self.cases += 1
        self.fabrics[f"{spec['topology']} {spec['routing']}"] += 1
        found = [f"arbiter {tables['qos']['arbiter']['name']}", f"switching {tables['network']['switching']}"]
        found += [f"switch {tables['network'].get('switch', {}).get('name', 'output_queued')}"]
        found += sorted({f"placement {job.placement.name}" for job in resolved.jobs})
        found += sorted(
            {f"workload {Path(job.workload).stem if '.py:' in job.workload else job.workload}" for job in resolved.jobs}
        )
        found += [key for key in ("background", "power") if key in case.scenario]
        found += ["rails"] if spec.get("rails") else []
        found += [f"observe {key}" for key, value in case.scenario.get("observe", {}).items() if value]
        self.kinds.update(found)
        self.actions.update(action["do"] for action in case.actions)
        self.checks.update(checks)

    def as_json(self) -> dict[str, Any]:
        """All of it, to be stored."""
        return {
            key: dict(sorted(value.items())) if isinstance(value, Counter) else value
            for key, value in vars(self).items()
        }

    def __str__(self) -> str:
        def of(counts: Counter[str]) -> str:
            return ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))

        parts = ("fabrics", self.fabrics), ("kinds", self.kinds), ("actions", self.actions), ("checks", self.checks)
        return "\n".join(f"{name}: {of(counts)}" for name, counts in parts)


def run_seeds(
    first: int, count: int | None, seconds: float | None, shrinking: float, out: TextIO = sys.stdout
) -> Tally:
    """Checks the cases of consecutive seeds, up to a number or a time, s; failures go to ``out`` and are counted."""
    tally, begun, seed = Tally(), time.monotonic(), first
    while (count is None or seed < first + count) and (seconds is None or time.monotonic() < begun + seconds):
        try:
            case, resolved = draw(seed)
        except Exception:
            tally.failed.append(seed)
            print(f"seed {seed}: nothing is drawn\n{traceback.format_exc()}", file=out, flush=True)
        else:
            run_case(case, resolved, tally, shrinking, out)
        seed += 1
    return tally


def run_case(case: Case, resolved: Resolved, tally: Tally, shrinking: float, out: TextIO = sys.stdout) -> None:
    """Checks a case; one that fails is made smaller for so many seconds and printed."""
    try:
        tally.add(case, resolved, check(case, resolved))
    except Difference as difference:
        tally.failed.append(case.seed)
        print(
            f"seed {case.seed}: {difference}\nreplay: python -m vopr --seed {case.seed} --count 1", file=out, flush=True
        )
        small = shrink(case, difference.check, shrinking) if shrinking else case
        print(f"--- the smallest case found, for --replay FILE\n{small.text}{_actions(small)}---", file=out, flush=True)


def _actions(case: Case) -> str:
    lines = [
        f"# at {action['at']} ps: {json.dumps({key: action[key] for key in action if key != 'at'})}"
        for action in case.actions
    ]
    return "\n".join([*lines, ""]) if lines else "# no actions\n"
