"""The OpenSM backend: the policy file, a process that reads it again, and errors after which the old state is there."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import agents
from agents import OPERATOR
from fairlane.cluster.agent.backends import BACKENDS, Backend, Surroundings
from fairlane.cluster.agent.backends.opensm_files import settings_in, with_settings, without_agent
from fairlane.cluster.agent.jobs import Setting, levels_of
from fairlane.cluster.agent.journal import Journal
from fairlane.cluster.agent.system import BackendError
from fairlane.cluster.agent.watch import perform, recover
from fairlane.cluster.opensm.check import Sizes, simulated_subnet
from fairlane.cluster.opensm.policy import read_policy
from fairlane.core.errors import ScenarioError
from fairlane.inputs.problems import Problems
from possible import no_subnet
from waiting import HANG

HOSTS = [f"host{number}" for number in range(16)]
AROUND = Surroundings(HOSTS, {0: 0, 1: 1, 2: 2})
JOBS = st.integers(1, 10**6).map(str)
SETTINGS = st.dictionaries(JOBS, st.tuples(st.integers(1, 15), st.sets(st.sampled_from(HOSTS), min_size=1)), max_size=5)


def backend_of(parameters: Mapping[str, Any], **more: Any) -> Backend:
    """The backend, checked."""
    found: Backend = BACKENDS.read({**parameters, **more})
    found.check(AROUND)
    return found


@given(drawn=SETTINGS, own=st.sampled_from(["", "\n", agents.POLICY, OPERATOR, OPERATOR.rstrip()]))
def test_an_operators_policy_stays_as_it_was(drawn: dict[str, tuple[int, set[str]]], own: str) -> None:
    settings = [Setting(job, level, tuple(sorted(hosts))) for job, (level, hosts) in drawn.items()]
    text = with_settings(own, settings, lambda host: [f"{host}/P1"])
    found = {job: (level, {port.removesuffix("/P1") for port in ports}) for job, level, ports in settings_in(text)}
    assert found == drawn
    assert without_agent(text) == own
    if settings:
        assert text.count("name: DEFAULT") == 1
        for section in ("port-groups", "qos-levels", "qos-match-rules"):
            assert len(re.findall(rf"^{section}$", text, re.MULTILINE)) == 1
            assert len(re.findall(rf"^end-{section}$", text, re.MULTILINE)) == 1
        rules = text.partition("\nqos-match-rules")[2]
        assert rules.find("fairlane-job-") < (rules.find("source: storage") if "storage" in own else len(rules))


def test_a_change_is_read_by_opensm_and_taken_back(tmp_path: Path) -> None:
    with agents.opensm(tmp_path, OPERATOR) as parameters:
        (tmp_path / "qos-policy.conf").chmod(0o640)
        backend = backend_of(parameters)
        backend.write(agents.SETTINGS)
        backend.verify(agents.SETTINGS)
        loaded = (tmp_path / "loaded.conf").read_text()
        assert loaded == (tmp_path / "qos-policy.conf").read_text()
        assert "port-name: host0/P1, host4/P1" in loaded
        assert backend.in_force() == {"host0": 1, "host4": 1}
        assert (tmp_path / "qos-policy.conf.before-fairlane").read_text() == OPERATOR
        assert (tmp_path / "qos-policy.conf").stat().st_mode & 0o777 == 0o640
        backend.write(())
        assert (tmp_path / "loaded.conf").read_text() == OPERATOR == (tmp_path / "qos-policy.conf").read_text()


@pytest.mark.parametrize("trouble", ["refuses", "deaf"])
def test_a_policy_that_opensm_does_not_take_is_undone(trouble: str, tmp_path: Path) -> None:
    with agents.opensm(tmp_path) as parameters, Journal(tmp_path / "agent.db") as journal:
        backend = backend_of(parameters | {"timeout": agents.IMPATIENT} if trouble == "deaf" else parameters)
        (tmp_path / trouble).touch()
        number = journal.decided(backend.name, "change", ["12"], agents.SETTINGS, (), "a test")
        with pytest.raises(BackendError, match="cannot be undone yet"):
            perform(journal, backend, number)
        assert (tmp_path / "qos-policy.conf").read_text() == agents.POLICY
        assert journal.entry(number).state == "undoing"
        (tmp_path / trouble).unlink()
        (entry,) = recover(journal, backend_of(parameters))
        assert entry.state == "undone"
        assert ("ERR AC03" if trouble == "refuses" else "does not answer") in entry.error
        assert (tmp_path / "loaded.conf").read_text() == agents.POLICY
        assert journal.in_force(backend.name) == ()


def test_a_path_with_another_level_undoes_the_change(tmp_path: Path) -> None:
    printing = "import sys; print('\\t\\tsl......................0x' + sys.argv[1], *sys.argv[2:])"
    with agents.opensm(tmp_path) as parameters, Journal(tmp_path / "agent.db") as journal:
        for level, state in (("0", "undone"), ("1", "verified")):
            command = [sys.executable, "-c", printing, level, "{source}", "{destination}"]
            backend = backend_of(parameters, read_back=command, read_back_wait="200 ms")
            number = journal.decided(backend.name, "change", ["12"], agents.SETTINGS, (), "a test")
            assert perform(journal, backend, number) == (state == "verified")
            entry = journal.entry(number)
            assert entry.state == state
            words = "the path from host0 to host4 of job 12 has level 0; written was 1"
            assert entry.error == (words if state == "undone" else "")
            assert ((tmp_path / "loaded.conf").read_text() == agents.POLICY) == (state == "undone")


ULPS = "qos-ulps\n    default : 3\nend-qos-ulps\n"


@pytest.mark.parametrize("own", [ULPS, agents.POLICY.replace("DEFAULT", "default"), agents.POLICY])
def test_the_operators_default_level_stays(own: str) -> None:
    text = with_settings(own, agents.SETTINGS, lambda host: [f"{host}/P1"])
    assert len(re.findall(r"default\s*:|name: default", text, re.IGNORECASE)) == 1


def test_a_policy_that_opensm_refuses_without_the_agent_is_refused(tmp_path: Path) -> None:
    with agents.opensm(tmp_path, "") as parameters:
        with pytest.raises(ScenarioError, match="has no level DEFAULT"):
            backend_of(parameters)
        (tmp_path / "qos-policy.conf").write_text(with_settings("", agents.SETTINGS, lambda host: [f"{host}/P1"]))
        with pytest.raises(ScenarioError, match="has no level DEFAULT"):
            backend_of(parameters)


def test_undoing_keeps_what_the_operator_has_changed_since(tmp_path: Path) -> None:
    policy = tmp_path / "qos-policy.conf"
    with agents.opensm(tmp_path, OPERATOR) as parameters:
        backend = backend_of(parameters)
        backend.write(agents.SETTINGS)
        saved = backend.save()
        backend.write(())
        changed = OPERATOR.replace("sl: 3", "sl: 4")
        policy.write_text(changed)
        backend.restore(saved)
        assert without_agent(policy.read_text()) == changed
        assert backend.in_force() == levels_of(agents.SETTINGS)
        backend.restore(OPERATOR)
        assert policy.read_text() == changed


def test_an_agent_that_may_not_reach_opensm_does_not_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise PermissionError(1, "Operation not permitted")

    with agents.opensm(tmp_path) as parameters, Journal(tmp_path / "agent.db") as journal:
        backend = backend_of(parameters)
        log = parameters["log"]
        with pytest.raises(BackendError, match="cannot be read"):
            backend_of(parameters, log=f"{log}/within")
        with monkeypatch.context() as patch:
            patch.setattr("os.access", lambda *_: False)
            with pytest.raises(BackendError, match="may not replace it"):
                backend_of(parameters)
        with monkeypatch.context() as patch:
            patch.setattr("os.kill", refuse)
            with pytest.raises(
                BackendError, match="Operation not permitted; the agent has to run as the user of OpenSM"
            ):
                backend_of(parameters)
            number = journal.decided(backend.name, "change", ["12"], agents.SETTINGS, (), "a test")
            with pytest.raises(BackendError, match="cannot be undone yet"):
                perform(journal, backend, number)
        assert journal.entry(number).state == "undoing"
        assert (tmp_path / "qos-policy.conf").read_text() == agents.POLICY


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"port": "mlx5_0/P1"}, "names no port of each host"),
        ({"port": "{hostname}/P1"}, "names no port of each host"),
        ({"port": "{host} mlx5_0/P1"}, "names no port of each host"),
        ({"port": "{host}"}, "names no port of each host"),
        ({"read_back_level": "("}, "no regular expression"),
        ({"read_back_level": "sl"}, "has no group"),
    ],
)
def test_parameters_that_would_fail_within_a_change_are_refused(
    wrong: dict[str, str], words: str, tmp_path: Path
) -> None:
    paths = {"name": "opensm", "policy": str(tmp_path), "log": str(tmp_path), "pid": 2}
    with agents.config(tmp_path).reading(), pytest.raises(Problems, match=words):
        BACKENDS.read({**paths, **wrong})


@pytest.mark.parametrize(
    ("script", "state", "words"),
    [
        ("echo sl..01 | awk '{print $1}'", "verified", ""),
        ("echo sl..", "undone", "printed no service level"),
        ("echo sl..one", "undone", "printed 'one', no service level"),
        ("\0", "undone", "cannot be started"),
    ],
)
def test_whatever_is_printed_for_a_path_is_no_crash(script: str, state: str, words: str, tmp_path: Path) -> None:
    with agents.opensm(tmp_path) as parameters, Journal(tmp_path / "agent.db") as journal:
        more = {"read_back": ["sh", "-c", script], "read_back_level": r"sl\.+(\w+)", "read_back_wait": "0 s"}
        backend = backend_of(parameters, **more)
        number = journal.decided(backend.name, "change", ["12"], agents.SETTINGS, (), "a test")
        perform(journal, backend, number)
        assert journal.entry(number).state == state
        assert words in journal.entry(number).error


def test_a_host_that_cannot_be_named_in_a_policy_is_not_written(tmp_path: Path) -> None:
    with agents.opensm(tmp_path) as parameters:
        backend = backend_of(parameters)
        with pytest.raises(BackendError, match="cannot name a port"):
            backend.write([Setting("12", 1, ("host0", "a#b"))])
        assert (tmp_path / "qos-policy.conf").read_text() == agents.POLICY


def test_no_other_process_gets_a_signal(tmp_path: Path) -> None:
    with agents.opensm(tmp_path) as parameters:
        with pytest.raises(BackendError, match="not 'opensm': it gets no SIGHUP"):
            backend_of(parameters, process="opensm")
        (tmp_path / "opensm.pid").write_text("4000000\n")
        with pytest.raises(BackendError, match="OpenSM does not run"):
            backend_of(parameters)
    with pytest.raises(ValueError, match="one of pid and pid_file"):
        BACKENDS.read({**parameters, "pid": 2})


def test_without_a_number_the_only_process_of_the_name_is_meant(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    unique = tmp_path / "bin" / f"osm{os.getpid()}"  # the name that the kernel has for the process
    unique.symlink_to(sys.executable)
    with agents.opensm(tmp_path, interpreter=str(unique)) as given_parameters:
        parameters = {key: value for key, value in given_parameters.items() if key != "pid_file"}
        parameters["process"] = unique.name
        backend = backend_of(parameters)
        backend.write(agents.SETTINGS)
        assert backend.in_force() == levels_of(agents.SETTINGS)
        second = subprocess.Popen([unique, "-c", "print(flush=True); import time; time.sleep(60)"], stdout=-1)
        try:
            assert second.stdout is not None
            second.stdout.readline()
            with pytest.raises(BackendError, match=f"^2 processes '{unique.name}' on this machine"):
                backend_of(parameters)
        finally:
            second.kill()
            second.communicate()
    with pytest.raises(BackendError, match=r"^0 processes .*: run this on the machine of OpenSM"):
        backend_of(parameters)


@pytest.mark.parametrize("by_guid", [True, False])
def test_a_host_has_the_level_at_each_of_its_ports(by_guid: bool, tmp_path: Path) -> None:
    (tmp_path / "guids.txt").write_text("host0 0x10 0x11\nhost4 0x20\n")
    ports = {"guids": str(tmp_path / "guids.txt")} if by_guid else {"port": ["{host}/P1", "{host}/P2"]}
    with agents.opensm(tmp_path, OPERATOR) as parameters:
        backend = backend_of(parameters, **ports)
        backend.write(agents.SETTINGS)
        policy = read_policy(tmp_path / "loaded.conf")
        group = next(one for one in policy.groups if one.name == "fairlane-job-12")
        if by_guid:
            assert [low for low, _ in group.guids] == [0x10, 0x11, 0x20]
        else:
            assert group.names == ("host0/P1", "host0/P2", "host4/P1", "host4/P2")
        backend.verify(agents.SETTINGS)
        saved = backend.save()
        backend.write(())
        assert (tmp_path / "loaded.conf").read_text() == OPERATOR
        (tmp_path / "qos-policy.conf").write_text(OPERATOR.replace("sl: 3", "sl: 4"))
        backend.restore(saved)
        backend.verify(agents.SETTINGS)


def test_guids_have_to_be_those_of_the_fabric(tmp_path: Path) -> None:
    guids = tmp_path / "guids.txt"
    printed = "\n".join(f'caguid=0x{at + 1:x}\n[1](10{at:04x})  "S-0000000000200003"[4]' for at in range(4))
    discover = [sys.executable, "-c", f"print({printed!r})"]
    with agents.opensm(tmp_path) as parameters:
        guids.write_text("# port GUIDs\nhost0 0x100000\nhost4 0x100002\n")
        backend = backend_of(parameters, guids=str(guids), discover=discover)
        backend.write(agents.SETTINGS)
        assert "port-guid: 0x0000000000100000, 0x0000000000100002" in (tmp_path / "loaded.conf").read_text()
        assert backend.in_force() == levels_of(agents.SETTINGS)
        with pytest.raises(BackendError, match="has no GUID of host host9"):
            backend.write([Setting("13", 1, ("host0", "host9"))])
        assert backend.in_force() == levels_of(agents.SETTINGS)
        for text, words in (
            ("host0 0x100000\nhost4 0x100009\n", 'host4 = "0x0000000000100009": the fabric has no port with this GUID'),
            ("host0 0x100000\nhots4 0x100002\n", f'{guids}:2: host = "hots4": unknown host of the fabric'),
            ("host0 100000\n", f"{guids}:1: not a host and its GUIDs"),
            ("host0 0x100000\nhost0 0x100002\n", f"{guids}:2: the host has GUIDs already"),
            ("host0 0x100000\nhost4 0x100000\n", f"{guids}:2: another port has this GUID"),
        ):
            guids.write_text(text)
            with pytest.raises(ScenarioError, match=re.escape(words)):
                backend_of(parameters, guids=str(guids), discover=discover)


CONF = "qos TRUE\nqos_policy_file {policy}\nqos_max_vls 4\nqos_sl2vl 0,1,2,3,0,0,0,0,0,0,0,0,0,0,0,7  # ours\n"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("qos TRUE", "qos FALSE", ':1: qos: OpenSM does not set up service levels; allowed: TRUE'),
        ("qos TRUE\n", "", "opensm.conf: qos: OpenSM does not set up"),
        ("qos_max_vls 4", "max_op_vls 2", ':3: max_op_vls: the switches have 2 lanes, and service level 2 needs'),
        ("0,1,2,3", "0,1,1,3", "maps service level 2 to lane 1, the twin to lane 2"),
        ("qos_sl2vl", "qos_swe_sl2vl", "adapters and switches have different settings"),
        ("qos_max_vls 4", "qos_max_vsl 4", 'unknown option of OpenSM\'s QoS; did you mean "qos_max_vls"?'),
        ("{policy}", "/etc/other.conf", ':2: qos_policy_file = "/etc/other.conf": is not the policy of'),
    ],
)  # fmt: skip
def test_opensm_conf_has_to_suit_the_twin(old: str, new: str, words: str, tmp_path: Path) -> None:
    with agents.opensm(tmp_path) as parameters:
        conf = tmp_path / "opensm.conf"
        conf.write_text(CONF.format(policy=parameters["policy"]))
        backend_of(parameters, conf=str(conf))
        assert old in CONF
        conf.write_text(CONF.replace(old, new).format(policy=parameters["policy"]))
        with pytest.raises(ScenarioError, match=re.escape(words)):
            backend_of(parameters, conf=str(conf))


NET = """
Switch 4 "leaf"
[1] "host0"[1]
[2] "host4"[1]
[3] "host8"[1]

Hca 1 "host0"
[1] "leaf"[1]

Hca 1 "host4"
[1] "leaf"[2]

Hca 1 "host8"
[1] "leaf"[3]
"""


@contextmanager
def managed_subnet(folder: Path) -> Iterator[dict[str, Any]]:
    """A real OpenSM that manages a subnet which ibsim simulates."""
    (folder / "fabric.net").write_text(NET.replace(" ", "\t", 3))
    (folder / "qos-policy.conf").write_text(OPERATOR)
    (folder / "opensm.conf").write_text(
        f"qos TRUE\nqos_policy_file {folder}/qos-policy.conf\nqos_max_vls 4\nforce_log_flush TRUE\n"
        f"dump_files_dir {folder}\nqos_sl2vl 0,1,2,3,0,0,0,0,0,0,0,0,0,0,0,7\nno_partition_enforcement TRUE\n"
    )
    with simulated_subnet(folder, ["host0", "host8"], Sizes(4, 1, 8)) as subnet:
        names = ("IBSIM_SOCKNAME", "SIM_HOST", "LD_PRELOAD", "PATH")
        inside = ["env", "-C", str(folder), *(f"{name}={subnet.within[name]}" for name in names)]
        yield {
            "name": "opensm",
            "policy": str(folder / "qos-policy.conf"),
            "conf": str(folder / "opensm.conf"),
            "log": str(folder / "osm.log"),
            "pid": subnet.opensm,
            "timeout": HANG,
            "read_back_wait": HANG,
            "guids": str(folder / "guids.txt"),
            "discover": [*inside, "ibnetdiscover"],
            "read_back": [*inside, "saquery", "--sgid-to-dgid", "{source_gid}-{destination_gid}"],
        }


@pytest.mark.live("cluster/agent", "cluster/opensm", absent=no_subnet)
def test_a_real_opensm_gives_paths_the_level_and_takes_it_back(tmp_path: Path) -> None:
    with managed_subnet(tmp_path) as parameters, Journal(tmp_path / "agent.db") as journal:
        command = [*parameters["discover"], "-p"]
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        ports = re.findall(r"^CA +\d+ +1 (0x[0-9a-f]+) .*'(host\d)' -", printed, re.MULTILINE)
        (tmp_path / "guids.txt").write_text("".join(f"{host} {guid}\n" for guid, host in ports))
        backend = backend_of(parameters)
        number = journal.decided(backend.name, "change", ["12"], agents.SETTINGS, (), "a test")
        assert perform(journal, backend, number), journal.entry(number).error
        # Its own reading says so, not only the file: other pairs keep the default.
        levels = {
            pair: backend._level_of(*pair)  # type: ignore[attr-defined]
            for pair in (("host0", "host4"), ("host4", "host0"), ("host0", "host8"))
        }
        assert levels == {("host0", "host4"): 1, ("host4", "host0"): 1, ("host0", "host8"): 0}
        # The operator's file has an error: OpenSM refuses the policy, and the agent's change is not in it afterwards.
        (tmp_path / "qos-policy.conf").write_text(OPERATOR + "garbage\n")
        number = journal.decided(backend.name, "change", ["12"], agents.SETTINGS, (), "a test")
        with pytest.raises(BackendError, match="ERR AC"):
            perform(journal, backend, number)
        assert (tmp_path / "qos-policy.conf").read_text() == OPERATOR + "garbage\n"
        (tmp_path / "qos-policy.conf").write_text(OPERATOR)
        backend.write(())
        assert backend._level_of("host0", "host4") == 0  # type: ignore[attr-defined]
