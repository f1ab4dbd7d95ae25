"""The generator of the reference pages: schemas to Markdown."""

from __future__ import annotations

import csv
import re
import tomllib
from pathlib import Path
from typing import Any, Literal

import pytest
import reference
import schema
from pydantic import BaseModel, ConfigDict, Field

from fairlane.cli.registries import KINDS, entries_of
from fairlane.core.units import Bandwidth, Duration, Size
from fairlane.model.placement import PLACEMENTS
from fairlane.model.workload import WORKLOADS
from fairlane.results.schemas import RUN, STUDY
from fairlane.sim.controller import CONTROLLERS


class Inner(BaseModel):
    """What the inner table is for."""

    model_config = ConfigDict(extra="forbid")

    size: int = Field(ge=1, le=9, description="How | big.")


class Outer(BaseModel):
    name: str
    mode: Literal["fast", "exact"] = "fast"
    inner: Inner | None = None
    more: list[Inner] = []
    weights: dict[str, float] = {}


def rows(page: str) -> dict[str, list[str]]:
    """The cells behind the key, of all tables of a page."""
    table = (line.replace("\\|", "/").split("|")[1:-1] for line in page.splitlines() if line.startswith("| `"))
    return {cells[0].strip(" `"): [cell.strip() for cell in cells[1:]] for cells in table}


def test_every_key_has_a_row_with_type_default_and_meaning() -> None:
    found = rows(schema.markdown(Outer.model_json_schema()))
    assert list(found) == ["name", "mode", "inner", "more", "weights", "size"]
    assert found["name"][:2] == ["string", "required"]
    assert found["mode"][:2] == ['`"fast"` or `"exact"`', '`"fast"`']
    assert found["inner"][0] == "[Inner](#inner)"
    assert found["more"][0] == "list of [Inner](#inner)"
    assert found["weights"][0] == "table of number"
    assert found["size"] == ["integer, at least 1, at most 9", "required", "How / big."]


def test_a_definition_has_one_section_however_often_it_is_used() -> None:
    page = schema.markdown(Outer.model_json_schema(), level=3)
    assert page.count("### Inner") == 1
    assert "What the inner table is for." in page


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"type": ["integer", "null"]}, "integer"),
        ({"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}]}, "list of integer, string"),
        ({"anyOf": [{"type": "integer", "minimum": 2}, {"type": "null"}]}, "integer, at least 2"),
        ({"$ref": "#/$defs/Inner"}, "[Inner](#inner)"),
        ({"const": 3}, "`3`"),
        ({}, "any value"),
    ],
)
def test_types_in_words(given: dict[str, Any], words: str) -> None:
    assert schema.type_of(given) == words


class Quantities(BaseModel):
    latency: Duration = 1_500_000
    bandwidth: Bandwidth | None = None
    buffer: Size


def test_quantities_are_shown_with_their_units() -> None:
    found = rows(schema.markdown(Quantities.model_json_schema()))
    assert found["latency"][:2] == ["duration", '`"1.5 us"`']
    assert found["bandwidth"][:2] == ["bandwidth", ""]
    assert found["buffer"][:2] == ["size", "required"]


def test_a_key_without_a_description_has_that_of_its_definition() -> None:
    assert rows(schema.markdown(Outer.model_json_schema()))["inner"][2] == "What the inner table is for."


def test_definitions_are_found_through_definitions_and_cycles() -> None:
    tree = {
        "properties": {"root": {"$ref": "#/$defs/Branch"}},
        "$defs": {
            "Branch": {"properties": {"leaf": {"$ref": "#/$defs/Leaf"}, "next": {"$ref": "#/$defs/Branch"}}},
            "Leaf": {"type": "string"},
        },
    }
    headings = [line for line in schema.markdown(tree).splitlines() if line.startswith("#")]
    assert headings == ["## Branch", "## Leaf"]


def test_each_variant_of_a_choice_shows_its_own_keys() -> None:
    shared = {"topology": {"type": "string"}, "routing": {"type": "string"}}
    tree = {**shared, "topology": {"const": "tree", "description": "levels"}, "hosts": {"type": "integer"}}
    ring = {**shared, "topology": {"const": "ring", "description": "a circle"}, "length": {"type": "integer"}}
    choice = {"type": "object", "properties": shared, "oneOf": [{"properties": tree}, {"properties": ring}]}
    page = schema.markdown({"properties": {"fabric": {"$ref": "#/$defs/Fabric"}}, "$defs": {"Fabric": choice}})
    sections = page.split("### ")
    assert [section.splitlines()[0] for section in sections[1:]] == ["`tree`", "`ring`"]
    assert list(rows(sections[1])) == ["hosts"]
    assert list(rows(sections[2])) == ["length"]
    assert "a circle" in sections[2]


def test_the_page_of_names_has_every_kind_and_the_parameters_that_no_scenario_has() -> None:
    page = reference.names_page()
    assert [line[3:].lower() for line in page.splitlines() if line.startswith("## ")] == list(KINDS)
    assert all(f"| `{name}` |" in page for known in (WORKLOADS, PLACEMENTS, CONTROLLERS) for name in known)
    assert rows(page.partition("### `slack`")[2])["guard"][1] == "`0.01`"


def test_the_page_of_campaigns_has_the_keys_that_a_campaign_takes() -> None:
    page = reference.campaign_page()
    found = rows(page)
    assert {"victims", "stagger", "spearman", "fit", "scenario"} <= found.keys()
    assert not {"set", "rules", "of"} & found.keys(), "those of papers' parameters"
    assert "](#keys)" not in page


def test_the_page_of_studies_has_the_keys_of_studies_and_of_their_controllers() -> None:
    page = reference.study_page()
    assert {"placements", "measure", "at_most", "per_placement", "prologue", "periods"} <= rows(page).keys()
    assert "](scenario.md#placement)" in page


def test_the_page_of_papers_has_the_keys_of_each_file() -> None:
    page = reference.paper_page()
    assert {"variant", "because", "near_certain", "spec", "shared_seeds", "levels"} <= rows(page).keys()
    headings = [line for line in page.splitlines() if line.startswith("## ")]
    assert headings[:4] == [f"## `{name}.toml`" for name in ("paper", "claims", "figures", "robustness")]
    assert len(set(headings)) == len(headings)


def test_the_page_of_tables_has_every_column_with_its_unit() -> None:
    page = reference.tables_page()
    assert rows(page)["queueing_ps"][0] == "picoseconds"
    for name, columns in {**RUN, **STUDY}.items():
        assert f"### `{name}`" in page
        assert {column for column in columns if not re.search("_(low|high)(_p?s)?$", column)} <= rows(page).keys()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (('jobs = "', 'job = "'), r"\[run\] must describe \['job', 'jobs'\]"),
        (('span_ps = "', 'spam_ps = "'), "spam_ps"),
    ],
)
def test_texts_of_tables_that_do_not_exist_are_refused(
    change: tuple[str, str], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    loads = tomllib.loads
    monkeypatch.setattr(tomllib, "loads", lambda text: loads(text.replace("\n" + change[0], "\n" + change[1])))
    with pytest.raises(ValueError, match=words):
        reference.tables_page()


def test_the_page_of_collectives_names_algorithms_of_their_operation() -> None:
    folder = Path(__file__).parents[2] / "docs" / "data" / "collectives"
    page = (folder.parents[1] / "collectives.md").read_text(encoding="utf-8")
    tables, named = sorted(folder.glob("*.csv")), set()
    for path in tables:
        assert f":file: data/collectives/{path.name}" in page
        with path.open(encoding="utf-8") as file:
            rows = [(row["operation"], row["`mpi.collectives`"]) for row in csv.DictReader(file)]
        named |= {f"{operation} {name}" for operation, cell in rows for name in re.findall(r"`(\w+)`", cell)}
    assert len(tables) == 4
    assert {"alltoall linear", "barrier dissemination"} <= named
    assert named <= entries_of("collectives").keys()
