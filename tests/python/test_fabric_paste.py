"""Dumps as people paste them: byte order marks, prompts, loopbacks, masked GUIDs, cards without a machine's name."""

import codecs
import lzma
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from fairlane import Scenario
from fairlane.cli.main import execute
from fairlane.core.errors import ScenarioError
from fairlane.model.fabric.reader import read_wiring
from fairlane.model.fabric.survey import survey
from fairlane.model.fabric.wiring import Wiring

DATA = Path(__file__).parent.parent / "data" / "fabrics"
X5 = (DATA / "x5.ibnetdiscover").read_text(encoding="utf-8")
NDR = lzma.decompress((DATA / "ndr-dgx.ibnetdiscover.xz").read_bytes()).decode()
Read = Callable[[str | bytes], Wiring]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def read(text: str | bytes, name_map: str | None = None) -> Wiring:
        file, names = tmp_path / "dump.txt", tmp_path / "node-name-map"
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        if name_map is not None:
            names.write_text(name_map, encoding="utf-8")
        return read_wiring(file, node_name_map=names if name_map is not None else None)

    return read


def same(one: Wiring, other: Wiring) -> bool:
    return (one.hosts, one.cables) == (other.hosts, other.cables)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("[root@node17 ~]# ibnetdiscover\n", "[root@node17 ~]# \n"),
        ("root@node17:~# sudo ibnetdiscover -p 1\n", "root@node17:~#\n"),
        ("$ /usr/sbin/ibnetdiscover\n", "$ exit\n"),
        ("(base) user@login2:/tmp> ibnetdiscover | tee x\n", "user@login2:/tmp>\n"),
        ("```text\n", "```\n"),
        ("ibwarn: [2113] get_node: can't reach node\n", ""),
    ],
)
def test_what_a_paste_adds_is_skipped_and_reported(read: Read, before: str, after: str) -> None:
    wiring, plain = read(before + X5 + after), read(X5)
    assert wiring.hosts == plain.hosts
    assert [cable.ends for cable in wiring.cables] == [cable.ends for cable in plain.cables]
    assert " skipped, " in wiring.remarks[0]
    assert "line 1 (" in wiring.remarks[0]
    skipped = [words for words in wiring.remarks if " skipped, " in words]
    assert sum(int(words.split()[0]) for words in skipped) == 1 + bool(after)


@pytest.mark.parametrize(
    "encode",
    [
        lambda text: codecs.BOM_UTF8 + text.encode(),
        lambda text: text.encode("utf-16"),
        lambda text: text.replace("\n", "\r\n").encode(),
        lambda text: text.replace("\t", "        ").encode(),
        lambda text: "".join(f"  {line}\n" for line in text.splitlines()).encode(),
    ],
    ids=["BOM", "UTF-16", "CRLF", "tabs expanded", "indented"],
)
def test_encodings_and_white_space_change_nothing(read: Read, encode: Callable[[str], bytes]) -> None:
    assert same(read(encode(X5)), read(X5))


def test_descriptions_that_are_not_utf8_do_not_hide_the_rest(read: Read) -> None:
    raw = X5.encode().replace(b"Voltaire", b"Volt\xe4ire")
    assert len(read(raw).cables) == len(read(X5).cables)


def with_cable(text: str, section: str, ports: tuple[int, int]) -> str:
    """The dump with a cable between two ports of one section, both of whose lines come first in it."""
    name = re.search(r'"([^"]+)"', section)
    assert name
    a, b = ports
    ends = {a: b, b: a}
    lines = "".join(f'[{port}]\t"{name[1]}"[{to}]\t\t# "itself" lid 9 4xQDR\n' for port, to in ends.items())
    return text.replace(section, f"{section}\n{lines.rstrip()}")


def test_loopback_cables_are_left_out_with_their_line(read: Read) -> None:
    section = next(line for line in NDR.splitlines() if line.startswith("Switch"))
    wiring = read(with_cable(NDR, section, (60, 61)))
    assert [cable.ends for cable in wiring.cables] == [cable.ends for cable in read(NDR).cables]
    line = NDR.splitlines().index(section) + 2
    loops = [words for words in wiring.remarks if "loopback" in words]
    name = "MF0;A09-P1-IBLEAF-04-04:MQM9701/U1"
    assert loops == [f"1 loopback cable left out: {name} port 60 to port 61 (line {line})"]
    assert [words for words in read(with_cable(NDR, section, (60, 60))).remarks if "port 60 to port 60" in words]


def masked(text: str, keep: int) -> str:
    """All but the first ``keep`` hexadecimal digits of every GUID replaced by x, as people do before they publish."""
    return re.sub(
        rf"(?<=[-(x])([0-9a-f]{{{keep}}})([0-9a-f]{{{16 - keep}}})\b", lambda it: it[1] + "x" * len(it[2]), text
    )


@pytest.mark.parametrize("text", [X5, NDR], ids=["x5", "ndr"])
@pytest.mark.parametrize("keep", [0, 9])
def test_masked_guids_are_told_apart_by_lid(read: Read, text: str, keep: int) -> None:
    wiring, plain = read(masked(text, keep)), read(text)
    assert "x" * (16 - keep) in masked(text, keep)
    assert len(wiring.cables) == len(plain.cables)
    assert len(wiring.switches) == len(plain.switches)
    assert any("masked identifiers: they are distinguished by LID" in words for words in wiring.remarks)

    def degrees(wiring: Wiring) -> list[int]:
        return sorted(Counter(end for cable in wiring.cables for end in cable.ends if end in wiring.switches).values())

    assert degrees(wiring) == degrees(plain)
    found, expected = survey(wiring), survey(plain)
    assert {level: len(some) for level, some in found.levels.items()} == {
        level: len(some) for level, some in expected.levels.items()
    }


def test_masked_guids_without_lids_are_refused_with_both_lines(read: Read) -> None:
    text = re.sub(r"\blid \d+", "", masked(X5, 0))
    with pytest.raises(
        ScenarioError, match=r"dump\.txt:\d+: .*has a section already, on line \d+; if GUIDs were masked"
    ):
        read(text)


def test_a_real_cluster_of_machines_with_four_cards(read: Read) -> None:
    wiring = read(NDR)
    starts = Counter(line.split("\t")[0] for line in NDR.splitlines())
    aggregation = sum("Aggregation Node" in line for line in NDR.splitlines() if line.startswith("Ca"))
    adapters = sum(end in set(wiring.hosts) for cable in wiring.cables for end in cable.ends)
    assert (starts["Switch"], starts["Ca"] - aggregation, aggregation) == (40, 542, 40)
    assert (len(wiring.switches), adapters) == (40, 542)
    found = survey(wiring)
    assert sum(count * hosts for count, hosts in found.adapters.items()) == 542
    assert sum(found.adapters.values()) == found.hosts == len(wiring.hosts)
    # Counted from descriptions: machines with an adapter of their own name, and cards that only name their product.
    machines = {
        line.split('"')[3].split()[0]
        for line in NDR.splitlines()
        if line.startswith("Ca") and re.search(r"-p1-dgx-|CUFM", line)
    }
    unnamed = sum(bool(re.match(r'Ca.*"(MT4129|localhost|ubuntu)', line)) for line in NDR.splitlines())
    assert found.hosts == len(machines) + unnamed
    assert any(f"{unnamed} adapters do not name their machine" in words for words in found.anomalies)


def test_adapters_of_one_card_are_one_host(read: Read) -> None:
    """Two cards without a machine's name get one system image GUID; a third one is that of a named adapter."""
    cards = [
        (int(found[1]), found[2])
        for found in (
            re.match(r"(\d+):.*sysimgguid=0x(\w+)", f"{at}:{line}") for at, line in enumerate(NDR.splitlines())
        )
        if found and NDR.splitlines()[int(found[1]) + 2].find("MT4129") > 0
    ]
    (_, first), (_, second), (_, third) = cards[:3]
    named = re.search(r'sysimgguid=0x(\w+)\ncaguid=\S+\nCa\t1 "\S+"\s+# "a08-p1-dgx-04-c17 mlx5_5"', NDR)
    assert named
    text = NDR.replace(f"sysimgguid=0x{second}", f"sysimgguid=0x{first}")
    text = text.replace(f"sysimgguid=0x{third}", f"sysimgguid=0x{named[1]}")
    wiring, plain = read(text), read(NDR)
    assert len(wiring.hosts) == len(plain.hosts) - 2
    cables = Counter(end for cable in wiring.cables for end in cable.ends)
    before = Counter(end for cable in plain.cables for end in cable.ends)
    assert cables["a08-p1-dgx-04-c17"] == before["a08-p1-dgx-04-c17"] + 1
    assert cables[f"H-{first}"] == 2


def test_a_node_name_map_says_which_machine_a_card_is_in(tmp_path: Path, read: Callable[..., Wiring]) -> None:
    guid = "e09d730300858468"
    names = f'# site map\n0x{guid} "a08-p1-dgx-04-c17 mlx5_9"  # slot 3\n0x2c5eab0300b87b40 "leaf04"\n0xdead "absent"\n'
    wiring = read(NDR, names)
    cables = Counter(end for cable in wiring.cables for end in cable.ends)
    assert cables["a08-p1-dgx-04-c17"] == 5
    assert f"H-{guid}" not in cables
    assert "leaf04" in wiring.switches
    with pytest.raises(
        ScenarioError, match=r'node-name-map:2: not a line of a node name map: .* allowed: 0xGUID "name"'
    ):
        read(NDR, f"{names.splitlines()[0]}\n0xzz leaf\n")
    with pytest.raises(ScenarioError, match=r"node-name-map:2: 0x1 has another name on line 1: a"):
        read(NDR, '0x1 "a"\n0x1 "b"\n')
    links = tmp_path / "links.csv"
    links.write_text("from,to\nh1,s1\nh2,s1\n", encoding="utf-8")
    with pytest.raises(ScenarioError, match=r"--node-name-map = .*goes with the output of ibnetdiscover"):
        read_wiring(links, node_name_map=tmp_path / "node-name-map")


def test_leaves_count_hosts_and_rails_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two hosts at one leaf, one of them with two cables to it."""
    (tmp_path / "links.csv").write_text(
        "from,to,from_kind,to_kind\na,leaf,host,switch\na,leaf,host,switch\nb,leaf,host,switch\n", encoding="utf-8"
    )
    assert execute(["fabric", "import", str(tmp_path / "links.csv"), "-o", str(tmp_path / "f.json")]) == 0
    printed = capsys.readouterr().out
    assert "2, with 3 adapter ports" in printed
    assert "1 x 2, 1 x 1 (hosts x cables of each)" in printed
    assert "1 x 2 (leaves x hosts)" in printed


@pytest.mark.parametrize(
    ("rails", "expected"),
    [
        ("", ["the hosts of job 'j' have 1 to 2 adapters: an adapter of a host with fewer serves several rails"]),
        (
            'rails = "round_robin"',
            ["the hosts of job 'j' have 1 to 2 adapters: an adapter of a host with fewer serves several rails"],
        ),
        ("rails = { only = 0 }", []),
    ],
)
def test_hosts_that_differ_in_adapters_are_noted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], rails: str, expected: list[str]
) -> None:
    (tmp_path / "links.csv").write_text(
        "from,to,from_kind,to_kind\na,s,host,switch\na,s,host,switch\nb,s,host,switch\n", encoding="utf-8"
    )
    assert execute(["fabric", "import", str(tmp_path / "links.csv"), "-o", str(tmp_path / "f.json")]) == 0
    scenario = tmp_path / "s.toml"
    scenario.write_text(
        'duration = "20 us"\n[fabric]\ntopology = "imported"\nfile = "f.json"\n[[jobs]]\nname = "j"\nranks = 2\n'
        f'workload = {{ name = "ping_pong", compute = "1 us" }}\n{rails}\n',
        encoding="utf-8",
    )
    notes = [note for note in Scenario.load(scenario).resolve().notes if note.startswith("the hosts of job 'j'")]
    assert len(notes) == len(expected)
    for note, words in zip(notes, expected, strict=True):
        assert note.startswith(words)
    capsys.readouterr()
    assert execute(["check", str(scenario)]) == 0
    assert capsys.readouterr().out.count("note: the hosts of job 'j'") == len(expected)
    assert execute(["run", str(scenario), "--out", str(tmp_path / "run")]) == 0
    assert capsys.readouterr().out.count("the hosts of job 'j'") == len(expected)


def switch_sections(text: str) -> str:
    return text[: text.index("\ncaguid=")].rpartition("\n\n")[0] + "\n"


@pytest.mark.parametrize("text", [X5, NDR], ids=["x5", "ndr"])
def test_a_dump_of_switches_only_is_read_if_that_is_said(tmp_path: Path, text: str) -> None:
    file = tmp_path / "dump.txt"
    file.write_text(switch_sections(text))
    with pytest.raises(ScenarioError, match=r"is it truncated. --switches-only reads a dump of which only"):
        read_wiring(file)
    (tmp_path / "whole.txt").write_text(text)
    found, whole = read_wiring(file, switches_only=True), read_wiring(tmp_path / "whole.txt")
    assert len(found.cables) == len(whole.cables)
    assert found.switches == whole.switches


def test_dumps_without_speeds_have_the_default_bandwidth(read: Read) -> None:
    """Tools before 2009 print neither speeds nor the GUIDs of ports, and put nodes under headings."""
    text = re.sub(r" \d+x[A-Z]+$", "", X5, flags=re.MULTILINE)
    text = re.sub(r"(?<=\])\([0-9a-f]+\)", "", text).replace("vendid", "Non-Chassis Nodes\n\nvendid", 1)
    wiring, plain = read(text), read(X5)
    assert [cable.ends for cable in wiring.cables] == [cable.ends for cable in plain.cables]
    assert {cable.bandwidth for cable in wiring.cables} == {None}
    assert "no line names a speed: all cables have the fabric's default bandwidth" in wiring.remarks
    some = re.sub(r" 4xDDR$", "", X5, count=1, flags=re.MULTILINE)
    with pytest.raises(ScenarioError, match=r"dump\.txt:\d+: not a whole line of a port: it names no speed"):
        read(some)


@pytest.mark.parametrize(
    ("before", "after", "remarks"),
    [
        ("Last login: Tue Mar  3 10:11:12 2026\n[sudo] password for admin:\n", "", 2),
        ("Script started on 2026-03-03 10:11:12+01:00\n", "logout\nConnection to mgmt closed.\n", 3),
    ],
)
def test_text_in_front_of_the_dump_and_behind_is_skipped_and_reported(
    read: Read, before: str, after: str, remarks: int
) -> None:
    wiring = read(before + X5 + after)
    assert [cable.ends for cable in wiring.cables] == [cable.ends for cable in read(X5).cables]
    assert "skipped, text in front of the dump: line 1 (" in wiring.remarks[0]
    assert sum(int(words.split()[0]) for words in wiring.remarks if " the dump: " in words) == remarks


def test_the_codes_that_full_adds_behind_a_speed_are_accepted(read: Read) -> None:
    full = re.sub(r"(?m)( 4x[QD]DR)$", r"\1 s=7 w=2 e=1", X5)
    assert full != X5
    assert same(read(full), read(X5))


def test_a_dump_that_a_file_holds_twice_is_read_once(read: Read) -> None:
    wiring = read(X5 + X5)
    assert same(wiring, read(X5))
    sections = len(re.findall(r"(?m)^(?:Switch|Ca)\b", X5))
    assert f"{sections} sections repeated word for word" in wiring.remarks[0]
    with pytest.raises(ScenarioError, match=r"has a section already, on line 10; .* if the file holds two dumps"):
        read(X5 + X5.replace("4xDDR", "4xQDR"))


def test_quotes_in_a_description_belong_to_it(read: Read) -> None:
    wiring = read(X5.replace("Voltaire 4036 - 36 QDR ports switch", 'the "old" switch lid 3 4xSDR'))
    assert same(wiring, read(X5.replace("Voltaire 4036 - 36 QDR ports switch", "the old switch")))
    assert 'the "old" switch lid 3 4xSDR' in wiring.labels.values()


def test_switches_without_a_path_to_a_host_are_left_out_and_reported(read: Read) -> None:
    spares = "".join(
        f'\nswitchguid=0x{number}\nSwitch\t36 "S-{number:016x}"\t# "spare{number}" base port 0 lid 90{number} lmc 0\n'
        + (f'[1]\t"S-{3 - number:016x}"[1]\t\t# "spare" lid 90{3 - number} 4xQDR\n' if number < 3 else "")
        for number in (1, 2, 3)
    )
    wiring = read(X5 + spares)
    assert [cable.ends for cable in wiring.cables] == [cable.ends for cable in read(X5).cables]
    assert wiring.remarks[-1].startswith("3 switches without a path to any host left out: spare1 (line ")
