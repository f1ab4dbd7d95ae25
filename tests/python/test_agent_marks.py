"""The Linux backend where senders mark: the DSCP of each rank's packets on the wire, and the class that they take."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import agents
from fairlane.cluster.agent.backends import BACKENDS, Backend, Surroundings, nft
from fairlane.cluster.agent.jobs import NEUTRAL, Setting
from fairlane.cluster.agent.journal import Journal
from fairlane.cluster.agent.system import BackendError
from fairlane.cluster.agent.watch import perform
from possible import no_testbed
from waiting import wait_for

PREFIX = f"fairlane{os.getpid()}-"
SWITCH, RECEIVER = f"{PREFIX}switch", f"{PREFIX}receiver"
HOSTS = ("host0", "host4", "host8")
AROUND = Surroundings(HOSTS, {0: 0, 1: 1, 2: 2})
DSCP = {0: 0, 1: 46, 2: 10}
ADDRESSES = {"host0/0": "10.77.0.1", "host0/1": "10.77.0.2", "host4": "10.77.0.3", "host8": "10.77.0.4"}
SLOW, FAST = Setting("12", 1, ("host0/0",), 0, 3.0), Setting("12", 2, ("host0/1",), 1, 2.0)
live = pytest.mark.live("cluster/agent", absent=no_testbed)


def run(namespace: str, *command: str, given: str = "") -> str:
    """The output of a command in a namespace."""
    inside = ["ip", "netns", "exec", namespace, *command]
    return subprocess.run(inside, input=given, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def network() -> Iterator[None]:
    """Three hosts and a receiver on a switch, each a namespace; the first host has two addresses."""
    names = [SWITCH, RECEIVER, *(f"{PREFIX}{host}" for host in HOSTS)]
    try:
        for name in names:
            subprocess.run(["ip", "netns", "add", name], check=True)
        run(SWITCH, "ip", "link", "add", "bridge", "type", "bridge")
        run(SWITCH, "ip", "link", "set", "bridge", "up")
        for name, port in zip(names[1:], ("trunk", *HOSTS), strict=True):
            run(SWITCH, "ip", "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", name)
            run(SWITCH, "ip", "link", "set", port, "master", "bridge", "up")
            run(name, "ip", "link", "set", "eth0", "up")
        for host, address in {**ADDRESSES, "receiver": "10.77.0.9"}.items():
            run(f"{PREFIX}{host.partition('/')[0]}", "ip", "addr", "add", f"{address}/24", "dev", "eth0")
        yield
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], check=True)


def parameters(**more: Any) -> dict[str, Any]:
    """The parameters of a backend whose hosts mark, and whose trunk has a class for each level."""
    return {
        "name": "linux",
        "devices": [{"namespace": SWITCH, "device": "trunk", "rate": "100 Mb/s"}],
        "levels": [{"level": level, "share": 0.3, "dscp": dscp} for level, dscp in DSCP.items()],
        "addresses": ADDRESSES,
        "marks": ["ip", "netns", "exec", f"{PREFIX}{{host}}", "nft"],
        **more,
    }


def backend_of(**more: Any) -> Backend:
    """The backend, checked."""
    backend: Backend = BACKENDS.read(parameters(**more))
    backend.check(AROUND)
    return backend


def on(host: str) -> dict[str, int]:
    """The marks that a host has."""
    return nft.read(["ip", "netns", "exec", f"{PREFIX}{host}", "nft"], 60.0)


def filters() -> list[str]:
    """The matches of the trunk's filters."""
    text = run(SWITCH, "tc", "filter", "show", "dev", "trunk", "parent", "fa1:")
    return [line.strip() for line in text.splitlines() if "match" in line]


ECHO = """
import socket
with socket.create_server(("10.77.0.9", 9000)) as server:
    print(flush=True)
    connections = [server.accept()[0] for _ in range(2)]
    while all(data := [connection.recv(1) for connection in connections]):
        for connection in connections:
            connection.send(b"x")
"""
SEND = """
import socket, sys
connections = []
for source in ("10.77.0.1", "10.77.0.2"):
    connections.append(socket.create_connection(("10.77.0.9", 9000), source_address=(source, 0)))
    connections[-1].setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
print(flush=True)
for line in sys.stdin:
    for connection in int(line) * connections:
        connection.send(b"x")
        if connection is connections[-1]:
            [each.recv(1) for each in connections]
    print(flush=True)
"""


@contextmanager
def python(namespace: str, script: str) -> Iterator[Any]:
    """A script in a namespace that has printed its first line; yields a function that has it read a line."""
    command = ["ip", "netns", "exec", namespace, sys.executable, "-c", script]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        lines, answers = process.stdin, process.stdout
        answers.readline()

        def do(line: str) -> None:
            lines.write(f"{line}\n")
            lines.flush()
            answers.readline()

        try:
            yield do
        finally:
            process.kill()


def counted() -> dict[tuple[str, int], int]:
    """Packets that the receiver got, by source address and DSCP."""
    rules = [
        entry["rule"]["expr"]
        for entry in json.loads(run(RECEIVER, "nft", "-j", "-n", "list", "ruleset", "ip"))["nftables"]
        if "rule" in entry
    ]
    return {
        (source["match"]["right"], mark["match"]["right"]): count["counter"]["packets"] for source, mark, count in rules
    }


def received(dscp: int) -> int:
    """Packets that the receiver got with a DSCP."""
    return sum(number for (_, mark), number in counted().items() if mark == dscp)


def served() -> dict[int, int]:
    """Packets that the trunk has sent, by level."""
    text = run(SWITCH, "tc", "-s", "class", "show", "dev", "trunk")
    sent = re.findall(r"class htb fa1:(\w+) .*?\n Sent \d+ bytes (\d+) pkt", text)
    return {int(number, 16) - 1: int(packets) for number, packets in sent if number != "ffff"}


@live
@pytest.mark.usefixtures("network")
def test_two_ranks_of_a_host_have_two_marks_on_the_wire_and_an_open_connection_changes_its_mark() -> None:
    sources = ("10.77.0.1", "10.77.0.2")
    rules = [f"ip saddr {source} ip dscp {dscp} counter\n" for source in sources for dscp in DSCP.values()]
    chain = f"chain seen {{ type filter hook input priority 0;\n{''.join(rules)}}}"
    run(RECEIVER, "nft", "-f", "-", given=f"table ip seen {{ {chain}\n}}\n")
    later = Setting("12", 2, SLOW.hosts, 0, 2.0)
    backend = backend_of()
    with python(RECEIVER, ECHO), python(f"{PREFIX}host0", SEND) as send:
        for settings, dscp in (((), (0, 0)), ((SLOW, FAST), (46, 10)), ((SLOW,), (46, 0)), ((later,), (10, 0))):
            backend.write([NEUTRAL, *settings])
            backend.verify([NEUTRAL, *settings])
            before = counted()
            send("5")
            gained = {key for key, number in counted().items() if number >= before[key] + 5}
            assert gained == set(zip(sources, dscp, strict=True))
            # Acknowledgements may still be on their way. The default class has ARP, too.
            wait_for(lambda: all(served()[level] == received(DSCP[level]) for level in (1, 2)), "equal counts")
        backend.write(())
        send("1")
    assert (on("host0"), backend.in_force()) == ({}, {})
    assert "fa1:" not in run(SWITCH, "tc", "qdisc", "show", "dev", "trunk")


@live
@pytest.mark.usefixtures("network")
def test_a_change_is_written_on_the_hosts_that_it_is_about(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = backend_of()
    backend.write([SLOW, Setting("13", 2, ("host4",))])
    assert filters() == ["match 00000000/00fc0000 at 0", "match 00b80000/00fc0000 at 0", "match 00280000/00fc0000 at 0"]
    saved = backend.save()
    called: list[Sequence[str]] = []
    run_program = subprocess.run

    def recorded(command: Sequence[str], **options: Any) -> Any:
        called.append(command)
        return run_program(command, **options)

    monkeypatch.setattr(subprocess, "run", recorded)
    settings = [SLOW, FAST, Setting("13", 2, ("host4",))]
    backend.write([*settings[::2], Setting("12", 1, ("host0/1",), 1, 3.0)])
    backend.write(settings[::2])
    transaction, reading = ([*parameters()["marks"], *words] for words in (["-f", "-"], nft.LIST))
    expected = [
        [word.replace("{host}", "host0") for word in command] for command in (transaction, reading, transaction)
    ]
    assert called == expected, "no device, and no other host"
    backend.write(settings)
    backend.verify(settings)
    assert (on("host0"), on("host4"), on("host8")) == ({"10.77.0.1": 46, "10.77.0.2": 10}, {"10.77.0.3": 10}, {})
    backend.restore(saved)
    assert backend.in_force() == {"host0/0": 1, "host4": 2}
    assert json.loads(backend.save()) == json.loads(saved)


@live
@pytest.mark.usefixtures("network")
def test_what_others_change_is_found_and_set_again() -> None:
    backend = backend_of()
    settings = [SLOW, Setting("13", 2, ("host4",))]
    backend.write(settings)
    run(f"{PREFIX}host4", "nft", "delete", "table", "ip", "fairlane")
    assert backend.in_force() == {"host0/0": 1}
    backend.write(settings)
    backend.verify(settings)
    run(f"{PREFIX}host4", "nft", "flush", "table", "ip", "fairlane")
    assert backend.in_force() == {"host0/0": 1}
    backend.write(settings)
    backend.verify(settings)
    run(
        f"{PREFIX}host4",
        "nft",
        "add",
        "rule",
        "ip",
        "fairlane",
        "marks",
        "ip",
        "saddr",
        "10.0.0.1",
        "ip",
        "dscp",
        "set",
        "3",
    )
    assert backend.in_force() == {"host0/0": 1, "host4": 2, "host4/10.0.0.1": -1}
    run(SWITCH, "tc", "qdisc", "del", "dev", "trunk", "root")
    assert set(backend.in_force().values()) == {-1}, "marks without classes are no levels"
    backend.write(settings)
    backend.verify(settings)
    # The same devices classify by source address first, and by mark afterwards.
    by_source = backend_of(marks=None)
    by_source.write(settings)
    assert filters()[0] == "match 0a4d0001/ffffffff at 12"
    backend.in_force()
    backend.write(settings)
    backend.verify(settings)
    assert len(filters()) == 3


@live
@pytest.mark.usefixtures("network")
def test_a_table_of_somebody_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    backend = backend_of()
    run(f"{PREFIX}host4", "nft", "add", "table", "ip", "fairlane")
    with pytest.raises(BackendError, match=r"host4 nft .*table ip fairlane is not the agent's: it has no chain marks"):
        backend_of()
    # Made after the check: writing refuses it as well, and what was written elsewhere is taken back.
    with Journal(tmp_path / "agent.db") as journal:
        number = journal.decided("linux", "change", ["12"], (SLOW, Setting("13", 2, ("host4",))), (), "a test")
        with pytest.raises(BackendError, match="cannot be undone yet"):
            perform(journal, backend, number)
        run(f"{PREFIX}host4", "nft", "delete", "table", "ip", "fairlane")
        assert journal.entry(number).state == "undoing"
        backend.restore(journal.entry(number).old or "")
    assert backend.in_force() == {} == on("host0")


@live
@pytest.mark.usefixtures("network")
def test_a_host_that_does_not_answer_keeps_its_marks_until_it_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached = f'test ! -e {tmp_path}/{{host}}.down && exec ip netns exec {PREFIX}{{host}} nft "$@"'
    backend = backend_of(marks=["sh", "-c", reached, "nft"])
    writer = Setting("13", 2, ("host4",))
    backend.write([SLOW, writer])
    saved = backend.save()
    (tmp_path / "host4.down").touch()
    assert backend.in_force() == {"host0/0": 1}
    assert [*backend.absent] == ["host4"]
    with pytest.raises(BackendError, match=r"sh .* ended with code 1"):
        backend.write([SLOW, FAST, writer])
    assert on("host0") == {"10.77.0.1": 46}, "nothing was written"
    backend.write([SLOW, FAST])
    backend.verify([SLOW, FAST])
    assert (on("host0"), on("host4")) == ({"10.77.0.1": 46, "10.77.0.2": 10}, {"10.77.0.3": 10})
    backend.restore(saved)
    assert on("host0") == {"10.77.0.1": 46}
    backend.write(())
    backend.verify(())
    # An agent that starts meanwhile does not need it. Afterwards its marks are found, and are taken back.
    again = backend_of(marks=["sh", "-c", reached, "nft"])
    assert [*again.absent] == ["host4"]
    (tmp_path / "host4.down").unlink()
    assert again.in_force() == {}, "it is not asked again at once"
    monkeypatch.setattr("fairlane.cluster.agent.absent.AGAIN_S", 0.0)
    assert again.in_force() == {"host4": -1}, "marks without classes are no levels"
    again.write(())
    again.verify(())
    assert (again.absent, on("host4")) == ({}, {})


@live
@pytest.mark.long("cluster/agent")
@pytest.mark.usefixtures("network")
def test_the_agent_killed_at_every_call_is_repaired(tmp_path: Path) -> None:
    # Journal, one call of tc and one of nft for each of three hosts, and the same to read it back.
    addresses = {host: f"10.77.0.{number}" for number, host in enumerate(HOSTS, 1)}
    agents.check_killed(agents.killed(tmp_path, parameters(addresses=addresses), stride=9), 20)
    assert not any(map(on, HOSTS))
    assert "fa1:" not in run(SWITCH, "tc", "qdisc", "show", "dev", "trunk")


def listed(*entries: dict[str, Any]) -> list[dict[str, Any]]:
    """A ruleset of nft with the agent's table and chain, and these entries."""
    chain = {"family": "ip", "table": "fairlane", "name": "marks", "handle": 1}
    chain |= {"type": "filter", "hook": "output", "prio": -150, "policy": "accept"}
    return [{"metainfo": {}}, {"table": {"family": "ip", "name": "fairlane"}}, {"chain": chain}, *entries]


def rule(address: Any, dscp: Any, *more: Any, table: str = "fairlane") -> dict[str, Any]:
    """A rule that marks, and does ``more``."""
    source, mark = ({"payload": {"protocol": "ip", "field": field}} for field in ("saddr", "dscp"))
    match, set_mark = {"op": "==", "left": source, "right": address}, {"key": mark, "value": dscp}
    return {"rule": {"table": table, "handle": 7, "expr": [{"match": match}, {"mangle": set_mark}, *more]}}


def test_the_marks_of_a_ruleset_are_those_of_the_agents_table() -> None:
    other = rule("10.0.0.1", 4, {"accept": None}, table="firewall")
    ruleset = listed(rule("10.0.0.1", 9), other, rule("10.0.0.2", 0))
    assert nft.marks_in(ruleset) == {"10.0.0.1": 9, "10.0.0.2": 0}
    assert nft.marks_in([{"metainfo": {}}, {"table": {"name": "firewall"}}, other]) is None
    assert nft.marks_in(listed()) == {}


@pytest.mark.parametrize(
    ("entries", "has"),
    [
        ([rule("10.0.0.1", 9), rule("10.0.0.1", 8)], "rule 7"),
        ([rule({"prefix": {"addr": "10.0.0.0", "len": 8}}, 9)], "rule 7"),
        ([rule("10.0.0.1", 9, {"counter": None})], "rule 7"),
        ([{"chain": {"table": "fairlane", "name": "input", "hook": "input"}}], "chain input"),
        ([{"set": {"table": "fairlane", "name": "friends"}}, rule("10.0.0.1", 3)], "set friends"),
    ],
)
def test_a_table_with_anything_else_is_not_the_agents(entries: list[dict[str, Any]], has: str) -> None:
    with pytest.raises(ValueError, match=f"is not the agent's: it has {has}"):
        nft.marks_in(listed(*entries))


def test_a_transaction_makes_replaces_and_deletes_the_table() -> None:
    marks = {"10.0.0.1": 9, "10.0.0.2": 0}
    made = nft.transaction(marks, is_there=False).splitlines()
    assert made[0] == "create table ip fairlane", "one that is there already is an error"
    assert made[2:] == [f"add rule ip fairlane marks ip saddr {at} ip dscp set {dscp}" for at, dscp in marks.items()]
    deleted = ["table ip fairlane {}", "delete table ip fairlane"]
    assert nft.transaction({}, is_there=True).splitlines() == deleted
    assert nft.transaction(marks, is_there=True).splitlines() == [*deleted, *made]


WRONG: Sequence[tuple[dict[str, Any], str]] = [
    ({"levels": [{"level": 0, "share": 0.1, "dscp": 0}, {"level": 1, "share": 0.1}]}, r"levels\[1\].dscp: missing"),
    (
        {"levels": [{"level": level, "share": 0.1, "dscp": level // 3} for level in (0, 1, 3)]},
        r"levels\[1\].dscp = 0: level 0 has it too; allowed: 0 to 63, another one for each level",
    ),
    ({"marks": ["ip", "netns", "exec", "n1", "nft"]}, r"marks = .*: is the same command for every host; .*\{host\}"),
    ({"marks": []}, "marks"),
]


@pytest.mark.parametrize(("more", "words"), WRONG)
def test_wrong_parameters_are_refused(more: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        BACKENDS.read(parameters(**more))
