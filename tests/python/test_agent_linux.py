"""The Linux backend on a device in a network namespace of its own."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import agents
from fairlane.cluster.agent.backends import BACKENDS, Backend, Surroundings
from fairlane.cluster.agent.jobs import NEUTRAL, Setting
from fairlane.cluster.agent.journal import Journal
from fairlane.cluster.agent.system import BackendError
from fairlane.cluster.agent.watch import perform
from fairlane.core.errors import ScenarioError
from possible import no_testbed
from waiting import wait_for

HOSTS = ["host0", "host4", "host8"]
AROUND = Surroundings(HOSTS, {0: 0, 1: 1, 2: 2})
NAMESPACE = f"fairlane{os.getpid()}"
SETTINGS = [Setting("12", 1, ("host0", "host4"))]


def tc(*arguments: str, namespace: str = NAMESPACE) -> str:
    """What tc prints in the namespace."""
    command = ["ip", "netns", "exec", namespace, "tc", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


@pytest.fixture
def namespace() -> Iterator[str]:
    """A namespace with two ends of a cable, which goes with it."""
    ip("netns", "add", NAMESPACE)
    try:
        ip("-n", NAMESPACE, "link", "add", "left", "type", "veth", "peer", "name", "right")
        for device in ("left", "right"):
            ip("-n", NAMESPACE, "link", "set", device, "up")
        try:
            tc("qdisc", "add", "dev", "right", "root", "handle", "9:", "htb")
            tc("qdisc", "del", "dev", "right", "root")
        except subprocess.CalledProcessError as error:
            pytest.skip(f"the kernel has no HTB: {error.stderr.strip()}")
        yield NAMESPACE
    finally:
        subprocess.run(["ip", "netns", "del", NAMESPACE], check=True)


def parameters(**more: Any) -> dict[str, Any]:
    """The parameters of a backend for both ends."""
    devices = [{"namespace": NAMESPACE, "device": one, "rate": "100 Mb/s"} for one in ("left", "right")]
    levels = [
        {"level": 0, "share": 0.2},
        {"level": 1, "share": 0.6, "priority": 0, "dscp": 46},
        {"level": 2, "share": 0.2},
    ]
    addresses = {"host0": "10.77.0.1", "host4": "10.77.0.2", "host8": "10.77.0.3"}
    return {"name": "linux", "devices": devices, "levels": levels, "addresses": addresses, **more}


def backend_of(**more: Any) -> Backend:
    """The backend, checked."""
    found: Backend = BACKENDS.read(parameters(**more))
    found.check(AROUND)
    return found


def roots(device: str) -> list[tuple[str, str]]:
    """Kind and handle of the root qdiscs."""
    shown = json.loads(tc("-j", "qdisc", "show", "dev", device))
    return [(one["kind"], one["handle"]) for one in shown if one.get("root")]


def filters(device: str) -> list[str]:
    """The filters as tc shows them: class, source address, mark."""
    text = tc("filter", "show", "dev", device, "parent", "fa1:")
    return [line.strip() for line in text.splitlines() if "match" in line or "flowid" in line]


@pytest.mark.live("cluster/agent", absent=no_testbed)
@pytest.mark.usefixtures("namespace")
def test_packets_of_a_jobs_hosts_get_the_class_of_their_level() -> None:
    backend = backend_of()
    before = roots("left")
    backend.write(SETTINGS)
    backend.verify(SETTINGS)
    assert roots("left") == [("htb", "fa1:")] == roots("right")
    shown = filters("left")
    assert len(shown) == 6
    # 10.77.0.1 and DSCP 46, which is 0xb8 in the field: class 2 is that of level 1.
    assert "flowid fa1:2" in shown[0]
    assert shown[1:3] == ["match 0a4d0001/ffffffff at 12", "match 00b80000/00fc0000 at 0"]
    classes = tc("class", "show", "dev", "left")
    assert "class htb fa1:2 parent fa1:ffff" in classes
    assert "prio 0 rate 60Mbit ceil 100Mbit" in classes
    assert backend.in_force() == {"host0": 1, "host4": 1}
    backend.write([Setting("13", 2, ("host8",))])
    assert backend.in_force() == {"host8": 2}
    assert filters("right")[1:] == ["match 0a4d0003/ffffffff at 12"], "without a mark all of the host's packets"
    backend.write(())
    assert backend.in_force() == {}
    assert [kind for kind, _ in roots("left")] == [kind for kind, _ in before]


SEND = """
import socket, sys
for source, tos, count in (("10.77.0.1", 0xB8, 5), ("10.77.0.1", 0, 3), ("10.77.0.3", 0xB8, 2)):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos)
        sender.bind((source, 0))
        for _ in range(count):
            sender.sendto(b"x" * 100, ("10.77.0.9", 9))
"""


def packets(device: str) -> dict[str, int]:
    """Packets that each class of a device has sent."""
    text = tc("-s", "class", "show", "dev", device)
    return {name: int(sent) for name, sent in re.findall(r"class htb (\S+) .*?\n Sent \d+ bytes (\d+) pkt", text)}


@pytest.mark.live("cluster/agent", absent=no_testbed)
def test_only_marked_packets_of_the_jobs_hosts_are_served_by_the_levels_class(namespace: str) -> None:
    backend = backend_of()
    backend.write(SETTINGS)
    for number in (1, 3):
        ip("-n", namespace, "addr", "add", f"10.77.0.{number}/24", "dev", "left")
    ip("-n", namespace, "neigh", "add", "10.77.0.9", "lladdr", "02:00:00:00:00:09", "dev", "left")
    before = packets("left")
    subprocess.run(["ip", "netns", "exec", namespace, sys.executable, "-c", SEND], check=True)
    sent = {name: number - before[name] for name, number in packets("left").items()}
    assert sent["fa1:2"] == 5
    assert sent["fa1:1"] >= 5, "those without a mark and those of another host; the kernel has some of its own"
    assert sent["fa1:3"] == 0


KEEP_SENDING = """
import socket, sys
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
    sender.bind(("10.77.0.1", 0))
    sender.connect(("10.77.0.9", 9))
    for line in sys.stdin:
        for _ in range(int(line)):
            sender.send(b"x" * 100)
        print(flush=True)
"""


@pytest.mark.live("cluster/agent", absent=no_testbed)
def test_what_is_connected_gets_its_new_level_with_the_next_packet_and_nothing_that_waits_is_dropped(
    namespace: str,
) -> None:
    unmarked = [{"level": level, "share": 0.3} for level in range(3)]
    slow = [{"namespace": namespace, "device": "left", "rate": "100 kb/s"}]
    backend = backend_of(levels=unmarked, devices=slow)
    ip("-n", namespace, "addr", "add", "10.77.0.1/24", "dev", "left")
    ip("-n", namespace, "neigh", "add", "10.77.0.9", "lladdr", "02:00:00:00:00:09", "dev", "left")
    weighted = [
        [NEUTRAL, Setting("12", level, ("host0",), 0, weight)] for level, weight in ((1, 1.0), (2, 2.0), (2, 5.0))
    ]
    weighted.insert(1, [NEUTRAL])
    command = ["ip", "netns", "exec", namespace, sys.executable, "-c", KEEP_SENDING]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as sender:
        assert sender.stdin is not None
        assert sender.stdout is not None
        for settings in weighted:
            backend.write(settings)
            sender.stdin.write("40\n")
            sender.stdin.flush()
            sender.stdout.readline()
        sender.stdin.close()

    # At 100 kb/s the first packets wait for long while classes change around them.
    def all_sent() -> bool:
        sent = packets("left")
        return sent["fa1:1"] >= 40 and (sent["fa1:2"], sent["fa1:3"]) == (40, 80)

    wait_for(all_sent, "all packets, each once")


@pytest.mark.live("cluster/agent", absent=no_testbed)
@pytest.mark.usefixtures("namespace")
def test_a_saved_state_comes_back() -> None:
    backend = backend_of()
    backend.write(SETTINGS)
    saved, shown = backend.save(), filters("left")
    backend.write([Setting("13", 2, ("host8",))])
    backend.restore(saved)
    assert backend.in_force() == {"host0": 1, "host4": 1}
    assert filters("left") == shown


def quanta(device: str) -> dict[str, int]:
    """Bytes per round of each class."""
    text = tc("-d", "class", "show", "dev", device)
    return {name: int(size) for name, size in re.findall(r"class htb (\S+) parent .*?quantum (\d+)", text)}


@pytest.mark.live("cluster/agent", absent=no_testbed)
@pytest.mark.usefixtures("namespace")
def test_weights_are_set_in_place_verified_and_come_back() -> None:
    backend = backend_of()
    shares, weights = [
        [Setting("12", 1, ("host0",), 0, weight), Setting("12", 2, ("host4",), 1, 2.0)] for weight in (None, 3.0)
    ]
    backend.write(shares[:1])
    configured = quanta("left")
    saved = backend.save()
    sent = packets("left")
    backend.write(weights)
    backend.verify(weights)
    assert quanta("left")["fa1:2"] == 3 * quanta("left")["fa1:1"]
    assert quanta("right")["fa1:3"] == 2 * quanta("right")["fa1:1"]
    assert packets("left")["fa1:1"] >= sent["fa1:1"], "the same qdisc, whose counts go on"
    with pytest.raises(BackendError, match=r"left: quanta .* were written"):
        backend.verify([Setting("12", 1, ("host0",), 0, 4.0), Setting("12", 2, ("host4",), 1, 2.0)])
    between = backend.save()
    backend.restore(saved)
    assert (quanta("left"), backend.in_force()) == (configured, {"host0": 1})
    backend.restore(between)
    backend.verify(weights)


@pytest.mark.live("cluster/agent", absent=no_testbed)
@pytest.mark.usefixtures("namespace")
def test_ranks_with_addresses_of_their_own_have_levels_of_their_own() -> None:
    addresses = {"host0/0": "10.77.0.1", "host0/1": "10.77.1.1", "host4": "10.77.0.3"}
    backend = backend_of(addresses=addresses)
    assert list(backend.endpoints("host0", 2)) == ["host0/0", "host0/1"]
    assert list(backend.endpoints("host0", 3)) == ["host0"], "one of them has no address"
    backend.write([Setting("12", 2, ("host0/1",), 1, 2.0)])
    assert filters("left")[1:] == ["match 0a4d0101/ffffffff at 12"]
    assert backend.in_force() == {"host0/1": 2}


@pytest.mark.live("cluster/agent", absent=no_testbed)
@pytest.mark.usefixtures("namespace")
def test_a_qdisc_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    backend = backend_of()
    tc("qdisc", "add", "dev", "right", "root", "handle", "1:", "htb")
    with pytest.raises(BackendError, match="has a root qdisc already: htb 1:"):
        backend_of()
    with Journal(tmp_path / "agent.db") as journal:
        number = journal.decided("linux", "change", ["12"], tuple(SETTINGS), (), "a test")
        assert not perform(journal, backend, number)
        assert journal.entry(number).state == "undone"
    assert roots("right") == [("htb", "1:")]
    assert ("htb", "fa1:") not in roots("left")


@pytest.mark.live("cluster/agent", absent=no_testbed)
def test_half_a_change_is_undone(namespace: str, tmp_path: Path) -> None:
    backend = backend_of()
    ip("-n", namespace, "link", "del", "left")  # and with it the other end
    with Journal(tmp_path / "agent.db") as journal:
        number = journal.decided("linux", "change", ["12"], tuple(SETTINGS), (), "a test")
        assert not perform(journal, backend, number)
        assert "nothing was written" in journal.entry(number).error
        assert "Cannot find device" in journal.entry(number).error
    with pytest.raises(BackendError, match="Cannot find device"):
        backend_of()


@pytest.mark.live("cluster/agent", absent=no_testbed)
@pytest.mark.usefixtures("namespace")
def test_the_agent_killed_at_every_call_of_tc_is_repaired(tmp_path: Path) -> None:
    # Without devices on both ends some ten calls of tc are in a change; each is killed before and after.
    data = parameters(devices=parameters()["devices"][:1])
    agents.check_killed(agents.killed(tmp_path, data, stride=9), 14)
    assert ("htb", "fa1:") not in roots("left")


WRONG: Sequence[tuple[dict[str, Any], str]] = [
    ({"levels": [{"level": 0, "share": 0.7}, {"level": 1, "share": 0.7}]}, "more than the link has"),
    ({"levels": [{"level": 1, "share": 0.1}, {"level": 1, "share": 0.7}]}, "a level is listed twice"),
    ({"addresses": {"host0": "10.0.0.1", "host4": "10.0.0.1"}}, "two hosts have one address"),
    ({"addresses": {"host0": "10.0.0"}}, "addresses"),
    ({"devices": [{"namespace": "a;b", "device": "eth0", "rate": "1 Gb/s"}]}, "namespace"),
]


@pytest.mark.parametrize(("more", "words"), WRONG)
def test_wrong_parameters_are_refused(more: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        BACKENDS.read(parameters(**more))


def test_levels_without_a_class_and_unknown_hosts_are_refused() -> None:
    two = parameters()["levels"][:2]
    with pytest.raises(ScenarioError, match="no class for this service level"):
        backend_of(levels=two)
    with pytest.raises(ScenarioError, match='did you mean "host4"'):
        backend_of(addresses={"hots4": "10.77.0.1"})


def test_a_saved_level_that_the_configuration_has_no_more_is_an_error() -> None:
    backend: Backend = BACKENDS.read(parameters())
    for saved, words in (
        ('{"devices": {"a/b": [{"0a4d0001/ffffffff at 12": 5}, {}, true]}, "marks": {}}', "no class for level 5"),
        ('{"devices": {}, "marks": {"x": {"10.77.0.1": 3}}}', "no address of host x"),
    ):
        with pytest.raises(BackendError, match=words):
            backend.restore(saved)


def test_a_namespace_that_is_missing_is_an_error() -> None:
    if sys.platform != "linux" or shutil.which("ip") is None:
        pytest.skip("ip is not installed")
    with pytest.raises(BackendError, match="tc -n fairlane"):
        backend_of()
