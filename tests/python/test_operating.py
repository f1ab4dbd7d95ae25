"""The ten commands of ``docs/operating.md``, from a cluster's dump to a policy that OpenSM has read."""

import re
import shlex
import shutil
from pathlib import Path

import pytest

from fairlane.cli.main import execute
from possible import no_subnet
from small_study import Here

ROOT = Path(__file__).parents[2]
STUDIED = [
    ("solver-first", "+22.3% ± 2.4%", "−1.6%"),
    ("shuffle-first", "+12.2% ± 1.7%", "−0.7%"),
    ("fast-hosts", "+28.7% ± 1.9%", "+18.3%"),
]
"""Mean improvement and the worst job's, as on the page."""


def commands() -> list[list[str]]:
    """The commands of fairlane in the section, without its name."""
    page = (ROOT / "docs" / "operating.md").read_text(encoding="utf-8")
    section = page[page.index("## From a dump to a policy") :]
    block = section[section.index("```console") : section.index("```\n\n1.")]
    assert len(re.findall(r"^\$ ", block, re.MULTILINE)) == 10
    return [shlex.split(line) for line in re.findall(r"^\$ fairlane (.*)$", block, re.MULTILINE)]


@pytest.mark.live("model/fabric", "cluster/counters", "sim/analysis", "cluster/opensm", absent=no_subnet)
def test_the_ten_commands_lead_from_a_dump_to_a_policy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "operating"
    shutil.copytree(ROOT / "examples" / "operating", folder)
    monkeypatch.chdir(folder)
    monkeypatch.setattr("fairlane.study.tasks.pools.Processes", Here)
    for line in Path("simulated-cluster.sh").read_text("utf-8").replace("../..", str(ROOT)).splitlines():
        match shlex.split(line, comments=True):
            case ["fairlane", *arguments]:
                assert execute(arguments) == 0, (line, capsys.readouterr().err)
            case ["cp", source, target]:
                shutil.copy(source, target)
    Path("cluster.fabric.json").unlink()
    capsys.readouterr()
    printed = {}
    for arguments in commands():
        # The counters of the page are of a minute, those of the test of 3 ms.
        simulated = ["3 ms" if argument == "60 s" else argument for argument in arguments]
        assert execute(simulated) == 0, (arguments, capsys.readouterr().err)
        printed[arguments[0]] = capsys.readouterr().out
    assert printed["fabric"].startswith("89 hosts, 11 switches")
    assert "4711, 4712" in printed["analyze"]
    roots = [line for line in printed["analyze"].partition("Roots of congestion")[2].splitlines() if "Gb/s" in line]
    slow = re.compile(r" to (n\d+) .* 98\.\d% +16 Gb/s, most of its peers have 32 Gb/s")
    assert {root[1] for line in roots[:3] if (root := slow.search(line))} == {"n19", "n20", "n21"}
    assert "job 'shuffle': 3 of its 36 hosts (n[19-21]) have 16 Gb/s, the others 32 Gb/s" in printed["check"]
    assert "job 'solver': 6 of its 12 hosts" in printed["check"]
    assert "solver: service level 1" in printed["qos"]
    assert printed["sm"].startswith("all equal")
    assert "318" in printed["sm"]
    # The figures of the page.
    assert "−28.3% ± 2.4%" in printed["run"]
    assert "(W −28.3%), all of it because of shuffle." in printed["run"]
    for treatment, improvement, worst in STUDIED:
        line, *_ = re.findall(rf"^ *{treatment} .*$", printed["study"], re.MULTILINE)
        assert improvement in line
        assert worst in line.split()[-2:]
