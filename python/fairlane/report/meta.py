"""The heading and the foot of a page: what it is about, and where that comes from."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fairlane.results.base import Results


def named(found: Results, meta: Mapping[str, Any]) -> tuple[str, str]:
    """The scenario of results by name, and what they are called: their folder, or the scenario where they have none."""
    scenario = str(meta["scenario"].get("name", "scenario"))
    return scenario, found.folder.name if found.folder else scenario


def meta_of(
    title: str, name: str, facts: Iterable[str], provenance: Mapping[str, Any], notes: Sequence[str] = ()
) -> dict[str, Any]:
    """The part ``meta`` of every page.

    Args:
        title: The heading.
        name: What it is called next to another result: by default its folder.
        facts: Some words each, below the heading.
        provenance: Terms and values at the foot of the page.
        notes: Sentences that the reader should know.
    """
    rows = [[term, str(value)] for term, value in provenance.items() if value not in (None, "")]
    return {"title": title, "name": name, "facts": list(facts), "notes": list(notes), "provenance": rows}
