"""The keys in which the scenarios of two runs differ: what a change may be the effect of."""

from collections.abc import Iterator, Mapping
from typing import Any

from fairlane.inputs.files import parse_toml
from fairlane.results.run import Run
from fairlane.results.store import SCENARIO, file_of_run


def differing(first: Run, second: Run) -> list[str]:
    """The dotted keys with another value, or in one scenario only, jobs by their name; without the scenarios' names."""
    one, two = (dict(_values(_scenario(run))) for run in (first, second))
    return [key for key in dict.fromkeys([*one, *two]) if key != "name" and one.get(key) != two.get(key)]


def _scenario(run: Run) -> Mapping[str, Any]:
    """The scenario as it is stored; empty where there is none, as of a simulation that still runs."""
    if run.source is not None:
        return parse_toml(run.source.scenario)
    if run.folder is not None:
        return parse_toml(file_of_run(run.folder, SCENARIO).read_text("utf-8"))
    return {}


def _values(data: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(data, Mapping):
        for key, value in data.items():
            yield from _values(value, f"{path}.{key}" if path else key)
    elif isinstance(data, list) and data and all(isinstance(one, Mapping) for one in data):
        for number, value in enumerate(data):
            yield from _values(value, f"{path}[{value.get('name', number)}]")
    else:
        yield path, data
