"""The cabling of a Cray Cascade: read lane by lane, Edison's own against the presets, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from fairlane import Scenario
from fairlane.cli.main import execute
from fairlane.core.errors import ScenarioError
from fairlane.model.fabric.compare import compare
from fairlane.model.fabric.reader import read_wiring
from fairlane.model.fabric.survey import survey
from fairlane.model.fabric.view import Fabric
from fairlane.model.fabric.wiring import Wiring
from fairlane.papers.reproduce import plan
from papers import study_of

EDISON = Path(__file__).parents[1] / "data" / "fabrics" / "edison-links.txt.xz"
GROUPS, ROWS, COLUMNS = 3, 2, 4


@pytest.fixture(scope="module")
def edison() -> Wiring:
    """Edison as it was cabled."""
    return read_wiring(EDISON)


@pytest.fixture(scope="module")
def real(edison: Wiring) -> Fabric:
    """The fabric of its cabling."""
    return edison.fabric()


def cascade(**parameters: Any) -> Fabric:
    return Fabric.build({"topology": "cascade", "params": parameters, "routing": "minimal"})


def test_edison_is_the_preset_of_its_cabling_link_by_link(real: Fabric) -> None:
    preset = cascade(preset="edison-cabling")
    names = {"from_name", "to_name", "from_port", "to_port"}
    for key in set(real.links) - names:
        np.testing.assert_array_equal(real.links[key], preset.links[key], err_msg=key)
    assert real.plan == preset.plan == {"kind": "groups", "switches": 96, "row": 16}
    assert real.classes == preset.classes
    assert (real.host_names[5], real.switch_names[96]) == ("c0-0c0s1n1", "c2-0c0s0a0")
    blue = np.flatnonzero((real.links["from_switch"] == 0) & (real.links["to_switch"] == 96))
    assert real.link_name(int(blue[0])) == "c0-0c0s0a0 port 1 to c2-0c0s0a0"


def test_edison_in_words(edison: Wiring) -> None:
    found = survey(edison)
    assert (found.hosts, found.switches, found.cables) == (5760, 1440, 29880)
    assert found.tree == "15 groups of 96 switches (16 x 6), 24 cables between two groups"
    assert found.anomalies == ("no switch is in group 12", "9360 blue ports are unused")
    assert found.kinds == {"green": 10800, "black": 10800, "ptile": 5760, "blue": 2520}


def test_the_even_preset_differs_in_where_blue_cables_end(real: Fabric) -> None:
    found = compare(real, cascade(preset="edison"))
    counts = {name: tuple(rest) for name, *rest in found.classes.iter_rows()}
    assert counts == {"black": (10800, 10800, 10800), "green": (10800, 10800, 10800), "blue": (2520, 2520, 16)}
    assert found.groups.height == 15 * 14 // 2
    assert found.groups.select(pl.col("first", "second").unique().implode()).row(0) == ([24], [24])
    blue = found.ports.filter(pl.col("class") == "blue")
    assert blue.rows() == [("blue", 2, 360, 360), ("blue", 4, 1080, 1080)]
    assert dict(found.alike.iter_rows()) == {"black": 1440, "blue": 960, "green": 1440}
    assert found.hosts == (5760, 5760)
    assert found.switches_with_as_many_hosts == 1440


def lines_of(groups: int = GROUPS, rows: int = ROWS, columns: int = COLUMNS) -> list[str]:
    """A small machine: a host each, one black and one green link between any two of a line, a blue one by row."""
    free: dict[tuple[int, int, int], int] = {}

    def end(place: tuple[int, int, int]) -> str:
        lane = free[place] = free.get(place, -1) + 1
        group, row, column = place
        return f"c{group}-0c{row}s{column}a0l{lane:02o}({group}:{row}:{column})"

    pairs: list[tuple[str, tuple[int, int, int], tuple[int, int, int]]] = []
    for group in range(groups):
        at = [(group, row, column) for row in range(rows) for column in range(columns)]
        pairs += [("green", a, b) for a, b in combinations(at, 2) if a[1] == b[1]]
        pairs += [("black", a, b) for a, b in combinations(at, 2) if a[2] == b[2]]
    pairs += [("blue", (a, row, b), (b, row, a)) for a, b in combinations(range(groups), 2) for row in range(rows)]
    found = []
    for colour, a, b in pairs:
        ends = end(a), end(b)
        found += [f"{ends[0]} {colour} -> {ends[1]}", f"{ends[1]} {colour} -> {ends[0]}"]
    for group in range(groups):
        for row in range(rows):
            for column in range(columns):
                place = (group, row, column)
                found += [f"{end(place)} ptile -> processor", f"{end(place)} ptile -> processor"]
                found += [f"{end(place)} blue -> unused"]
    return found


@pytest.fixture
def written(tmp_path: Path) -> Callable[[list[str]], Path]:
    """Writes a cabling."""

    def write(lines: list[str]) -> Path:
        path = tmp_path / "cabling.txt"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path

    return write


@pytest.mark.parametrize("routing", ["minimal", "ugal_l", "progressive", "valiant"])
def test_what_is_read_is_simulated_with_routings_of_groups(
    written: Callable[[list[str]], Path], tmp_path: Path, routing: str
) -> None:
    target = tmp_path / "small.fabric.json"
    assert execute(["fabric", "import", str(written(lines_of())), "-o", str(target)]) == 0
    scenario = Scenario(
        fabric={"topology": "imported", "file": str(target), "routing": routing},
        jobs=[{"workload": {"name": "all_to_all", "compute": "1 us"}, "ranks": 24, "stop": 2}],
        duration="20 ms",
    )
    fabric = scenario.resolve().fabric
    assert (fabric.hosts, fabric.plan["switches"], fabric.plan["row"]) == (24, ROWS * COLUMNS, COLUMNS)
    assert fabric.classes == ["host up", "host down", "green", "black", "blue"]
    engine = scenario.resolve().engine()
    engine.run_until(20 * 10**9)
    assert min(min(ranks) for ranks in engine.progress()) == 2
    # Any two hosts are at most a row, a column and a blue link, and these again, apart.
    assert all(len(fabric.route(a, b)) <= 2 + 5 for a, b in combinations(range(24), 2))


@pytest.mark.parametrize(
    ("change", "line", "words"),
    [
        (lambda lines: [*lines[:4], "c0-0c0s0a0l00 green", *lines[5:]], 5, "not a line of a Cray's cabling"),
        (lambda lines: [*lines[:7], lines[3], *lines[8:]], 8, "is in line 4 already"),
        (lambda lines: [lines[0].replace("green", "black"), *lines[1:]], 1, "line 2 contradicts it"),
        (lambda lines: lines[:1] + lines[2:], 1, "has no line: is the file cut off?"),
        (
            lambda lines: [*lines[:2], lines[2].replace("(0:0:0)", "(0:1:0)"), *lines[3:]],
            3,
            "at 0:0:0 in other lines",
        ),
        (lambda lines: [lines[0].replace("(0:0:1)", "(0:0:2)"), *lines[1:]], 1, "c0-0c0s1a0 is at 0:0:1"),
        (
            lambda lines: [line.replace("green", "black") for line in lines[:2]] + lines[2:],
            1,
            "two switches of a column",
        ),
        (lambda lines: [*lines[:-2], *lines[-1:]], None, "lanes to hosts, and each host takes 2"),
        (lambda lines: [*lines, "c9-0c0s0a0l00(9:0:0) ptile -> c0-0c0s0a0l00(0:0:0)"], None, "not a line of a Cray's"),
    ],
)
def test_cablings_that_are_wrong_are_refused_by_line(
    written: Callable[[list[str]], Path], change: Callable[[list[str]], list[str]], line: int | None, words: str
) -> None:
    path = written(change(lines_of()))
    with pytest.raises(ScenarioError) as refused:
        read_wiring(path)
    texts = [(problem.line, str(problem)) for problem in refused.value.problems]
    assert any(words in text and line in (None, at) for at, text in texts), texts


def test_groups_that_differ_have_no_plan(written: Callable[[list[str]], Path]) -> None:
    gone = "c2-0c1s3a0"
    wiring = read_wiring(written([line for line in lines_of() if gone not in line]))
    assert wiring.groups is None
    assert any("groups differ" in remark for remark in wiring.remarks)
    assert wiring.fabric().switches == GROUPS * ROWS * COLUMNS - 1


def test_packed_files_that_are_damaged_are_refused(tmp_path: Path) -> None:
    damaged = tmp_path / "cut.txt.xz"
    damaged.write_bytes(EDISON.read_bytes()[:1000])
    with pytest.raises(ScenarioError, match=r"cut\.txt\.xz: is cut off"):
        read_wiring(damaged)
    damaged.write_bytes(EDISON.read_bytes()[:1000] + b"x" * 1000)
    with pytest.raises(ScenarioError, match=r"cut\.txt\.xz: is damaged"):
        read_wiring(damaged)


def test_fabrics_are_compared_on_the_command_line(
    written: Callable[[list[str]], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(written(lines_of()))
    shape = f"cascade:groups={GROUPS}:rows={ROWS}:columns={COLUMNS}:hosts_per_switch=1:black=1:bundles=2:bundle_links=1"
    assert execute(["fabric", "compare", path, f"{shape}:bundles_by=row:arrangement=absolute"]) == 0
    text = capsys.readouterr().out
    assert "3 pairs of groups: equally many cables in 3" in text
    assert execute(["fabric", "compare", path, path]) == 0
    assert "all between the same switches in 3" in capsys.readouterr().out
    assert execute(["fabric", "compare", path, "cascade:groups=2", "--json"]) == 2
    assert "has 24 switches and the other 192" in capsys.readouterr().err


def test_smith2018_runs_on_edisons_cabling_if_asked() -> None:
    usual, cabled = (plan("smith2018", quick=True, variant=name) for name in (None, "edison"))
    studies = [study_of(chosen, "runs") for chosen in (usual, cabled)]
    fabrics = [study.written(next(study.points())).data["fabric"] for study in studies]
    assert fabrics[1] == {**fabrics[0], "arrangement": "absolute", "bundles_by": "row"}
    assert "arrangement" not in fabrics[0]
    with pytest.raises(ScenarioError, match=r'--variant = "edisn".*did you mean "edison"'):
        plan("smith2018", variant="edisn")
    with pytest.raises(ScenarioError, match=r'--variant = "edison": unknown variant of kim2008'):
        plan("kim2008", variant="edison")
