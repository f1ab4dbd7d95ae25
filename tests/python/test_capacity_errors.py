"""Scenario files that ask for more than a fabric, a switch or a number can have: exit code 2, and what to change."""

from pathlib import Path

import pytest

from fairlane.cli.main import execute

TREE = """topology = "fat_tree"
hosts = 16
levels = 2
radix = 8"""
DRAGONFLY = """topology = "dragonfly"
groups = 9
switches_per_group = 4
hosts_per_switch = 2
global_links = 2
routing = "progressive\""""
JOB = '[[jobs]]\nranks = 2\nworkload = { name = "ring", compute = "1 us" }\n'
MOST_LINKS = "at most 134217728 links make a fabric; with these parameters it has"

# The fabric's table, further tables, the line and subject of the message, and what it says of the value.
CASES = {
    "hyperx: switches": (
        'topology = "hyperx"\nhosts_per_switch = 1\nsides = [3000, 3000]',
        "",
        "fabric.sides = [3000, 3000]",
        "at most 1048576 switches",
    ),
    "hyperx: links": (
        'topology = "hyperx"\nhosts_per_switch = 1\nsides = [100000]',
        "",
        "fabric.sides = [100000]",
        f"{MOST_LINKS} 10000100000, 100000 hosts and 100000 switches",
    ),
    "random_regular: switches to join": (
        'topology = "random_regular"\nswitches = 10\nhosts_per_switch = 1\ndegree = 12',
        "",
        "fabric.degree = 12",
        "at most 9: 10 switches have that many others to be joined with",
    ),
    "random_regular: links": (
        'topology = "random_regular"\nswitches = 100000\nhosts_per_switch = 1\ndegree = 70000',
        "",
        "fabric.degree = 70000",
        f"{MOST_LINKS} 7000200000, 100000 hosts and 100000 switches",
    ),
    "dragonfly: global ports": (
        DRAGONFLY.replace("groups = 9", "groups = 100"),
        "",
        "fabric.groups = 100",
        "at most 9: a group has 4 switches x 2 global_links to other groups",
    ),
    "fat_tree: ports of its switches": (
        TREE.replace("hosts = 16", "hosts = 1000"),
        "",
        "fabric.hosts = 1000",
        "at most 32 hosts fit (levels: 2, radix: 8, 4 hosts a leaf)",
    ),
    "input buffer": (
        TREE,
        '[network]\nbuffer = "5 GiB"',
        "network.buffer = 5368709120",
        "at least one full packet (mtu + header = 4122 bytes), below 4 GiB",
    ),
    "output buffer": (
        TREE,
        '[network.switch]\nname = "input_queued"\noutput_buffer = "5 GiB"',
        "network.switch.output_buffer = 5368709120",
        "at least one full packet (mtu + header = 4122 bytes), below 4 GiB",
    ),
    "packet": (TREE, '[network]\nmtu = "1 MiB"\nbuffer = "2 MiB"', "network.mtu = 1048576", "from 1 byte to 512 KiB"),
    "lanes of a switch": (TREE, "[qos]\nlanes = 65", "qos.lanes = 65", "out of range; allowed: at most 64"),
    "lanes beyond every integer": (
        TREE,
        "[qos]\nlanes = 1000000000000",
        "qos.lanes = 1000000000000",
        "out of range; allowed: at most 64",
    ),
    "virtual channels": (
        DRAGONFLY,
        "[qos]\nlanes = 3",
        "qos.lanes = 3",
        "at least 6, one for each pair of service level and virtual channel: "
        "(0, 0) (0, 1) (0, 2) (0, 3) (0, 4) (0, 5); a simulated switch has at most 64",
    ),
}


@pytest.mark.parametrize(("fabric", "more", "subject", "words"), CASES.values(), ids=CASES)
def test_what_does_not_fit_is_named_with_line_key_value_and_limit(
    fabric: str, more: str, subject: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, results = tmp_path / "scenario.toml", tmp_path / "results"
    text = f'duration = "10 us"\n[fabric]\n{fabric}\n{more}\n{JOB}'
    file.write_text(text)
    key = subject.partition(" ")[0].rpartition(".")[2]
    (line,) = (number for number, written in enumerate(text.splitlines(), 1) if written.startswith(f"{key} = "))
    assert execute(["run", str(file), "--out", str(results)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"fairlane: {file}:{line}: {subject}: {words}")
    assert not results.exists()
