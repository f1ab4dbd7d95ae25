"""What a check has found in a scenario or a study, and whatever somebody should know before a run: lines of text."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from fairlane.scenario import Resolved, Scenario
from fairlane.slurm import shortened
from fairlane.views.fabric import lanes_text, routes_text
from fairlane.wording import listed, plural

if TYPE_CHECKING:
    from fairlane.study.running import Cost
    from fairlane.study.study import Study


def scenario(loaded: Scenario, resolved: Resolved, facts: Mapping[str, Any]) -> Iterator[str]:
    """A scenario; ``facts`` are its ``virtual_lanes``, ``coverage``, ``jobs``, ``code`` and ``plugins``."""
    yield str(loaded)
    yield f"  {lanes_text(facts['virtual_lanes'])}"
    yield f"  routes: {routes_text(facts['coverage'])}"
    yield from (f"  warning: {words}" for words in facts["coverage"].warnings)
    if loaded.model:
        keys = (f"{key} = {value}" for key, value in loaded.applied.keys.items())
        yield f"  model {loaded.model} sets: {', '.join(keys)}"
        yield from (f"  unlike {loaded.model}: {words}" for words in loaded.applied.differs)
    if resolved.estimate is not None:
        yield f"  {resolved.estimate}"
    for job in facts["jobs"]:
        yield f"  {job['name']}: {plural(job['ranks'], 'rank')} of {job['workload']} on {shortened(job['host_names'])}"
    yield from _code(facts)
    yield from (f"  note: {note}" for note in resolved.notes)


def study(loaded: "Study", cost: "Cost", facts: Mapping[str, Any]) -> Iterator[str]:
    """A study and what it takes; ``facts`` are its ``code`` and ``plugins``."""
    yield f"{loaded.name}: a study of {listed([*loaded.treatments]) or 'no treatment'}"
    yield from (f"  {line}" for line in cost.lines())
    yield from _code(facts)


def _code(facts: Mapping[str, Any]) -> Iterator[str]:
    """The code that an input names, and that of plug-ins."""
    waiting = "it has not run and is not checked without --allow-code"
    yield from (f"  names code: {one}; {waiting}" for one in facts["code"])
    yield from (f"  runs code: {one}" for one in facts["plugins"])
