"""Weights of levels by OpenSM: what a controller with static levels sets is in the ports of a real OpenSM's subnet."""

import json
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

import agents
from fairlane.cli.main import execute
from fairlane.cluster.agent.backends import BACKENDS, Backend, Surroundings, opensm_files
from fairlane.cluster.agent.control import Steered
from fairlane.cluster.agent.jobs import Setting
from fairlane.cluster.agent.journal import Journal
from fairlane.cluster.agent.system import BackendError
from fairlane.cluster.opensm import check as checking
from fairlane.cluster.opensm.check.layout import layout_of
from fairlane.cluster.opensm.check.query import HIGH, LOW, VL_ARBITRATION, Smp, ask, decode_vlarb
from fairlane.cluster.opensm.check.simulated import simulated_subnet
from fairlane.core.errors import ScenarioError
from fairlane.model.fabric.reader import read_wiring
from possible import no_subnet
from simulated_subnets import TREES, exported, scenario
from steered_jobs import BOTH, CONFIG, NAMED, RANKS, Jobs
from waiting import HANG

CONF = """qos TRUE
qos_policy_file {policy}
max_op_vls 3
qos_sl2vl 0,1,2,3
qos_high_limit 4
qos_vlarb_high 3:16,1:4
qos_vlarb_low 0:1,1:2,2:3,3:4
qos_swe_vlarb_low 0:1,1:2,2:3,3:4
"""
LANES = {0: 0, 1: 1, 2: 2}
SETTINGS = (Setting("12", 1, ("host0/0",), 0, 1.0), Setting("12", 2, ("host4/0",), 1, 4.0))


def made(folder: Path, text: str = CONF, **more: Any) -> Backend:
    """A backend with these options, checked."""
    conf = folder / "opensm.conf"
    conf.write_text(text.format(policy=folder / "qos-policy.conf"))
    found: Backend = BACKENDS.read({**more, "conf": str(conf), "weights": True})
    found.check(Surroundings(["host0", "host4"], LANES))
    return found


def test_weights_are_lines_of_opensm_conf_that_can_be_taken_back(tmp_path: Path) -> None:
    with agents.opensm(tmp_path) as given:
        backend = made(tmp_path, **given)
        conf = tmp_path / "opensm.conf"
        before = conf.read_text()
        assert list(backend.endpoints("host0", 2)) == ["host0/0", "host0/1"]
        backend.write(SETTINGS)
        backend.verify(SETTINGS)
        assert backend.in_force() == {"host0/0": 1, "host4/0": 2}
        # Lanes 0, 1 and 2 are the agent's: 64 units of 64 bytes for the smallest, and 255 at most. Lane 3 is not.
        own = conf.read_text().removeprefix(before)
        assert "qos_vlarb_low 0:64,1:64,2:255,3:4\n" in own
        assert "qos_swe_vlarb_low 0:64,1:64,2:255,3:4\n" in own, "what is set for a kind of ports would be used instead"
        assert "qos_vlarb_high 3:16\n" in own
        assert "qos_ca_" not in own
        saved = backend.save()
        heavier = (SETTINGS[0], Setting("12", 2, ("host4/0",), 1, 200.0))
        backend.write(heavier)
        backend.verify(heavier)
        assert "qos_vlarb_low 0:1,1:1,2:255,3:4\n" in conf.read_text()
        with pytest.raises(BackendError, match="has other weights than were written"):
            backend.verify(SETTINGS)
        conf.write_text("# of the operator\n" + conf.read_text())
        backend.restore(saved)
        backend.verify(SETTINGS)
        backend.write(())
        assert conf.read_text() == "# of the operator\n" + before


@pytest.mark.long("cluster/agent")
def test_the_agent_killed_at_every_step_is_repaired(tmp_path: Path) -> None:
    with agents.opensm(tmp_path) as given:
        conf = tmp_path / "opensm.conf"
        conf.write_text(CONF.format(policy=tmp_path / "qos-policy.conf"))
        agents.check_killed(agents.killed(tmp_path, {**given, "conf": str(conf), "weights": True}, stride=5), 12)
        assert "fairlane" not in conf.read_text()


def test_a_controller_that_moves_processes_is_refused_and_one_with_static_levels_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with agents.opensm(tmp_path) as given:
        (tmp_path / "opensm.conf").write_text(CONF.format(policy=tmp_path / "qos-policy.conf"))
        backend = {**given, "conf": str(tmp_path / "opensm.conf"), "weights": True}
        rows = [f"{key} = {json.dumps(value)}\n" for key, value in backend.items()]
        table = "\n[backend]\n" + "".join(rows)
        text = CONFIG.replace("[fabric]", "qos = { sl2vl = [0, 1, 2, 3] }\n[fabric]", 1) + table
        for controller in (NAMED, '"slack", mpi_times = false'):
            file = agents.config_file(tmp_path, text.replace(NAMED, controller), BOTH)
            assert execute(["agent", "--config", str(file), "--apply"]) == 2
            words = 'hold for new connections only; allowed: process_prioritization with levels = "static", fixed'
            assert words in capsys.readouterr().err
        config = agents.config(tmp_path, text.replace("threshold = 1.0", 'levels = "static", step = 2'), BOTH)
        jobs = Jobs(tmp_path, RANKS)
        try:
            with Journal(tmp_path / "agent.db") as journal:
                agent = Steered(config, journal, SimpleQueue(), apply=True)
                agent.start()
                agent.period()
                assert {(one.job, one.rank, one.level) for one in journal.in_force("opensm") if one.hosts} == {
                    (job, rank, 1 + rank) for job, rank in RANKS
                }
                jobs.mark(dict.fromkeys(RANKS, 3))
                agent.period()
                weights = {one.level: one.weight for one in journal.in_force("opensm")}
                assert set(weights.values()) == {1.0, 3.0}, "the level of the candidate has more weight"
        finally:
            jobs.close()


def test_weights_need_opensm_conf(tmp_path: Path) -> None:
    with agents.opensm(tmp_path) as given, pytest.raises(ValueError, match=r"are written into opensm\.conf"):
        BACKENDS.read({**given, "weights": True})
    (tmp_path / "opensm.conf").write_text("qos_vlarb_low 0:x\n")
    with pytest.raises(ScenarioError, match="not a table of VL arbitration"):
        opensm_files.lines_for(tmp_path / "opensm.conf", "", SETTINGS, LANES)


@pytest.mark.live("cluster/agent", "cluster/opensm", absent=no_subnet)
def test_a_real_opensm_sets_the_weights_in_all_ports_and_takes_them_back(tmp_path: Path) -> None:
    lanes = list(range(8))
    weights = [[lane, 8 + lane] for lane in lanes]
    arbiter = {"name": "vlarb", "high_limit": 0, "vlarb_high": [], "vlarb_low": weights}
    qos = {"sl2vl": lanes, "arbiter": arbiter}
    source = exported(tmp_path / "qos", scenario(TREES[16], qos, hosts=16))
    layout = layout_of(read_wiring(source / "fabric.ibnetdiscover"))
    (tmp_path / "subnet").mkdir()
    checking._write(tmp_path / "subnet", source, layout, "minhop", None)
    with simulated_subnet(tmp_path / "subnet", layout.hosts, layout.sizes) as subnet:
        places = {
            key: str(subnet.folder / file)
            for key, file in (("policy", "qos-policy.conf"), ("conf", "opensm.conf"), ("log", "osm.log"))
        }
        backend: Backend = BACKENDS.read(
            {"name": "opensm", **places, "pid": subnet.opensm, "weights": True, "timeout": HANG}
        )
        backend.check(Surroundings(layout.hosts, {lane: lane for lane in lanes}))

        def in_ports(table: int) -> set[tuple[tuple[int, int], ...]]:
            asked = [Smp(end.lid, VL_ARBITRATION, table << 16 | end.port) for end in layout.ends]
            return {tuple(pair for pair in decode_vlarb(one) if pair[1]) for one in ask(subnet, asked) if one}

        before = in_ports(LOW)
        settings = [Setting("12", level, (f"{layout.hosts[level]}/0",), level, float(level)) for level in range(1, 8)]
        backend.write(settings)
        backend.verify(settings)
        # The largest weight, 7, is the 255 units that an entry can have.
        assert in_ports(LOW) == {((0, 36), *((level, round(255 / 7 * level)) for level in range(1, 8)))}
        assert in_ports(HIGH) == {()}
        backend.write(())
        assert in_ports(LOW) == before
