"""QoS settings to OpenSM and back, for jobs and for Slurm; and what a cluster cannot do."""

import re
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane import Scenario
from fairlane.cli.main import execute
from fairlane.cluster.opensm.export import Exported, export, qos_table
from fairlane.cluster.opensm.nodes import hosts_of_groups
from fairlane.cluster.opensm.options import read_options, write_options
from fairlane.cluster.opensm.policy import read_policy, write_policy
from fairlane.cluster.opensm.settings import Settings
from fairlane.core.errors import ScenarioError
from fairlane.model.fabric.reader import read_wiring

DATA = Path(__file__).parents[1] / "data" / "fabrics"
VLARB = {"name": "vlarb", "high_limit": 10, "vlarb_high": [[3, 64]], "vlarb_low": [[0, 8], [1, 16], [2, 32]]}
FOUR: dict[str, Any] = {"sl2vl": [0, 1, 2, 3], "arbiter": VLARB}
TWO: dict[str, Any] = {"sl2vl": [0, 1]}


def weighted(*weights: int) -> dict[str, Any]:
    """Two lanes that share by packets."""
    return {**TWO, "arbiter": {"name": "weighted_round_robin", "weights": [*weights]}}


def scenario(qos: dict[str, Any], levels: tuple[Any, Any] = (3, 2), **job: Any) -> Scenario:
    """Two jobs of 4 and 8 ranks on a fat-tree of 16 hosts."""
    jobs = [
        {"name": "latency", "ranks": 4, "workload": "ping_pong", "service_level": levels[0]},
        {"name": "bulk job", "ranks": 8, "workload": "all_to_all", "service_level": levels[1], **job},
    ]
    jobs = [{key: value for key, value in one.items() if value is not None} for one in jobs]
    return Scenario.read(
        {"name": "two", "duration": "1 ms", "fabric": {"topology": "fat_tree", "hosts": 16}, "qos": qos, "jobs": jobs}
    )


def exported(qos: dict[str, Any], levels: tuple[Any, Any] = (3, 2), job: Any = None, **options: Any) -> Exported:
    return export(scenario(qos, levels, **(job or {})).decide(), **options)


def options_of(folder: Path, *lines: str) -> tuple[Settings, Any, Any]:
    """What is read of these options."""
    (folder / "opensm.conf").write_text("\n".join(["qos TRUE", *lines]) + "\n")
    return read_options(folder / "opensm.conf")


def rows(text: str) -> dict[str, str]:
    return dict(line.split(" ", 1) for line in text.splitlines() if not line.startswith("#"))


def test_vl_arbitration_is_exported_as_it_is() -> None:
    found = rows(exported(FOUR).files["opensm.conf"])
    assert found == {
        "qos": "TRUE",
        "qos_policy_file": "/etc/opensm/qos-policy.conf",
        "max_op_vls": "5",
        "qos_max_vls": "4",
        "qos_high_limit": "10",
        "qos_vlarb_high": "3:64",
        "qos_vlarb_low": "0:8,1:16,2:32",
        "qos_sl2vl": "0,1,2,3" + ",0" * 12,
    }


def test_the_default_low_table_is_every_other_lane_with_weight_64() -> None:
    found = exported({"sl2vl": [0, 1, 2, 3], "arbiter": {"name": "vlarb", "vlarb_high": [[3, 5]]}}).settings
    assert (found.vlarb_high, found.vlarb_low, found.high_limit) == (((3, 5),), ((0, 64), (1, 64), (2, 64)), 0)


@pytest.mark.parametrize("weight", [1, 3, 4, 7])
def test_weights_in_packets_send_as_many_full_packets(weight: int) -> None:
    made = scenario(weighted(1, weight), (0, 1)).decide()
    packet = made.tables["network"]["mtu"] + made.tables["network"]["header"]
    found = export(made)
    assert found.settings.vlarb_high == ()
    sent = {0: 0, 1: 0}
    for lane, units in found.settings.vlarb_low:
        sent[lane] += -(-units * 64 // packet)  # packets start while weight is left; the last one may exceed it
        assert units <= 255
    exact = [
        sum((units * 64 - 1) // (packet + 63) + 1 for one, units in found.settings.vlarb_low if one == lane)
        for lane in (0, 1)
    ]
    assert exact == [1, weight]
    assert "full packets" in found.notes[0]


def test_two_levels_of_priority_are_two_tables_without_a_limit() -> None:
    found = exported({**TWO, "arbiter": {"name": "strict_priority", "order": [0, 1]}}, (0, 1)).settings
    assert (found.vlarb_high, found.vlarb_low, found.high_limit) == (((0, 255),), ((1, 255),), 255)


@pytest.mark.parametrize(
    ("qos", "levels", "job", "words"),
    [
        ({**TWO, "arbiter": "oldest_first"}, (0, 1), {}, 'qos.arbiter.name = "oldest_first": .* no ages'),
        ({**FOUR, "arbiter": "strict_priority"}, (3, 2), {}, "qos.arbiter.order = .*4 levels of priority"),
        (
            {**TWO, "arbiter": {"name": "strict_priority", "shares": [[1, 25]]}},
            (0, 1),
            {},
            r"qos.arbiter.shares = \[\[1, 25\]\]: .*bandwidth shares",
        ),
        (
            {"sl2vl": list(range(16))},
            (0, 1),
            {},
            "qos.sl2vl = .*needs 16 virtual lanes; allowed: at most 15: InfiniBand",
        ),
        ({**TWO, "kinds": {"control": 1}}, (0, 0), {}, 'qos.kinds = {"control": 1}: service levels by kind'),
        (
            TWO,
            (0, None),
            {"service_levels": {"default": 0, "ranks": {"3": 1}}},
            r"jobs\[1\].service_levels = \[0, 1\]: service levels by rank of job 'bulk job'",
        ),
        (weighted(300, 1), (0, 1), {}, "qos.arbiter.weights = .*64 entries of weights up to 255"),
    ],
)
def test_what_a_cluster_cannot_do_is_an_error_of_its_key(
    qos: dict[str, Any], levels: tuple[Any, Any], job: dict[str, Any], words: str
) -> None:
    with pytest.raises(ScenarioError, match=words):
        exported(qos, levels, job)


def test_more_lanes_than_the_switches_have_are_refused() -> None:
    with pytest.raises(ScenarioError, match="needs 4 virtual lanes; allowed: at most 2: --data-vls is 2"):
        exported(FOUR, data_lanes=2)
    assert exported(FOUR, data_lanes=4).settings.max_vls == 4
    with pytest.raises(ScenarioError, match="needs 4 virtual lanes; allowed: at most 2: --data-vls is 3"):
        exported(FOUR, data_lanes=3)  # a port has 1, 2, 4, 8 or 15 in operation


@pytest.mark.parametrize("strategy", ["split_priority", "bandwidth_weight"])
def test_approximations_are_notes_in_the_file(strategy: str) -> None:
    with pytest.raises(ScenarioError, match="--approximate"):
        exported({"strategy": strategy}, (None, None))
    found = exported({"strategy": strategy}, (None, None), approximate=True)
    assert any("service levels by kind of traffic" in note for note in found.notes)
    for note in found.notes:
        assert f"# note: {note}\n" in found.files["opensm.conf"]
    assert [one.exported for one in found.shares] == [one.simulated for one in found.shares]


def test_the_policy_gives_each_job_its_level_between_its_own_ports(tmp_path: Path) -> None:
    made = scenario(FOUR).decide()
    found = export(made)
    (tmp_path / "policy").write_text(found.files["qos-policy.conf"])
    policy = read_policy(tmp_path / "policy")
    assert dict(policy.levels) == {"DEFAULT": 0, "sl2": 2, "sl3": 3}
    assert [(rule.source, rule.destination, rule.level) for rule in policy.rules] == [
        ("latency", "latency", "sl3"),
        ("bulk_job", "bulk_job", "sl2"),
    ]
    for group, job in zip(policy.groups, made.jobs, strict=True):
        assert set(group.names) == {f"host{host}/P1" for host in job.hosts}


def test_levels_are_set_by_the_variables_of_each_library() -> None:
    found = exported(FOUR).files["env/bulk job.sh"]
    assert found.splitlines() == [
        "export UCX_IB_SL=2",
        "export NCCL_IB_SL=2",
        "export MV2_DEFAULT_SERVICE_LEVEL=2",
        "export OMPI_MCA_btl_openib_ib_service_level=2",
    ]


@pytest.mark.parametrize(
    ("name", "allowed"),
    [
        ("n01", True),
        ("rack-1.n*(2)[3]:4'x", True),
        ("x" * 64, True),
        ("x" * 65, False),
        ("n#1", False),  # a comment from here on
        ("n,1", False),  # two names
        ("n 1", False),  # OpenSM looks for n1
        ("nü1", False),
        ("my-port-group", False),
        ("name:1", False),
    ],
)
def test_names_that_opensm_does_not_find_in_a_policy_are_refused(name: str, allowed: bool, tmp_path: Path) -> None:
    (tmp_path / "net.csv").write_text(f'from,to,from_kind,to_kind\n"{name}",s,host,switch\nb,s,host,switch\n')
    read_wiring(tmp_path / "net.csv").save(tmp_path / "net.json")
    fabric = {"topology": "imported", "file": str(tmp_path / "net.json")}
    jobs = [{"name": "j", "ranks": 2, "workload": "ring"}]
    resolved = Scenario.read({"name": "one", "duration": "1 ms", "fabric": fabric, "jobs": jobs}).decide()
    if allowed:
        assert f"port-name: {name}/P1\n" in export(resolved).files["qos-policy.conf"]
        return
    with pytest.raises(ScenarioError, match=r"cannot name a port in a policy of OpenSM.*or --guids"):
        export(resolved)


def test_nothing_of_a_scenario_becomes_an_option_of_opensm() -> None:
    for text in ("a\nqos FALSE", "a\r\nqos FALSE", "a\u2028qos FALSE"):
        files = export(replace(scenario(FOUR).decide(), name=text)).files
        assert rows(files["opensm.conf"])["qos"] == "TRUE"
        assert files["qos-policy.conf"].splitlines()[0] == "# QoS policy for a qos FALSE"
        with pytest.raises(ScenarioError, match="--policy-file"):
            exported(FOUR, policy_file=text)
    for path in ("/etc/a b", "/etc/a#b", "/etc/\udcff", "/etc/ä"):
        with pytest.raises(ScenarioError, match="--policy-file"):
            exported(FOUR, policy_file=path)


def test_a_dump_gives_ports_by_guid_and_a_missing_host_is_named(tmp_path: Path) -> None:
    tree = ["fabric", "export", "--topology", "fat_tree", "--set", "hosts=16", "--ibnetdiscover"]
    assert execute([*tree, "-o", str(tmp_path / "dump")]) == 0
    dump = read_wiring(tmp_path / "dump")
    made = scenario(FOUR).decide()
    found = export(made, dump=dump)
    (tmp_path / "policy").write_text(found.files["qos-policy.conf"])
    hosts = hosts_of_groups(read_policy(tmp_path / "policy"), dump, tmp_path / "policy")
    assert [set(names) for names in hosts.values()] == [{f"host{host}" for host in job.hosts} for job in made.jobs]
    with pytest.raises(ScenarioError, match=r'host = "host\d+": no port GUIDs for this host'):
        export(made, dump=read_wiring(DATA / "x5.ibnetdiscover"))


@st.composite
def settings(draw: st.DrawFn) -> Settings:
    lanes = draw(st.sampled_from([1, 2, 4, 8]))
    entry = st.tuples(st.integers(0, lanes - 1), st.integers(1, 255))
    sl2vl = draw(st.lists(st.integers(0, lanes - 1), min_size=16, max_size=16))
    sl2vl[draw(st.integers(0, 15))] = lanes - 1
    tables = [tuple(draw(st.lists(entry, max_size=5))) for _ in range(2)]
    operational = draw(st.sampled_from([8, 15]))
    return Settings(lanes, draw(st.integers(0, 255)), tables[0], tables[1], tuple(sl2vl), operational)


@given(made=settings())
def test_options_come_back(made: Settings, tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.mktemp("opensm") / "opensm.conf"
    file.write_text(write_options(made, "policy", ("a comment",)))
    found, notes, options = read_options(file)
    nothing = ((0, 0),)
    high, low = made.vlarb_high or nothing, made.vlarb_low or nothing
    assert found == replace(made, vlarb_high=high, vlarb_low=low)
    assert (notes, options.policy_file) == ([], "policy")
    table, _ = qos_table(found)
    assert (table["lanes"], tuple(table["sl2vl"])) == (made.max_vls, made.sl2vl)


def test_an_import_of_an_export_is_the_same_table(tmp_path: Path) -> None:
    (tmp_path / "opensm.conf").write_text(exported(FOUR).files["opensm.conf"])
    table, notes = qos_table(read_options(tmp_path / "opensm.conf")[0])
    assert (table["arbiter"], table["sl2vl"][:4], notes) == (VLARB, [0, 1, 2, 3], [])
    again = exported(table)
    assert rows(again.files["opensm.conf"]) == rows(exported(FOUR).files["opensm.conf"])


def test_options_that_are_not_set_are_opensms_defaults(tmp_path: Path) -> None:
    lines = ["qos_max_vls 0", "qos_high_limit -1", "qos_vlarb_high (null)", "qos_sl2vl (null)", "max_op_vls 5"]
    found, _, _ = options_of(tmp_path, *lines, "qos_ca_max_vls 0")
    assert (found.max_vls, found.high_limit, found.sl2vl) == (15, 0, (*range(15), 7))
    assert found.vlarb_high[:2] == ((0, 4), (1, 0))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("qos_max_vls 16", 'qos_max_vls = "16": not a number in range; allowed: 1 to 15'),
        ("qos_high_limit 256", "allowed: 0 to 255"),
        ("qos_vlarb_low 0:8,15:1", "VL15 is for management"),
        ("qos_vlarb_low 0:8,1", "not a table of VL arbitration"),
        ("qos_vlarb_high " + ",".join(["0:1"] * 65), "65 entries; allowed: at most 64"),
        ("qos_sl2vl 0,1,16", "not a lane for each service level"),
        ("qos_sl2v 0,1", 'unknown option of OpenSM\'s QoS; did you mean "qos_sl2vl"'),
        ("qos_swe_high_limit 3", "adapters and switches have different settings"),
        ("qos_sw2w_high_limit 3", 'unknown option of OpenSM\'s QoS; did you mean "qos_sw2sw_high_limit"'),
        ("max_op_vls two", 'max_op_vls = "two": not a code of OperationalVLs; allowed: 1 to 5 for 1, 2, 4'),
    ],
)
def test_wrong_options_are_named_with_their_line(line: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=re.escape(words)) as caught:
        options_of(tmp_path, line)
    assert str(caught.value).startswith(f"{tmp_path / 'opensm.conf'}:2: ")


def test_weights_below_a_packet_are_noted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """28 units are 1,792 bytes and 4 are 256: one packet of 4,122 bytes either, and so is any weight up to 64."""
    (tmp_path / "opensm.conf").write_text("qos TRUE\nqos_vlarb_high 0:4\nqos_vlarb_low 1:28,2:4\nqos_sl2vl 0,1,2\n")
    assert execute(["qos", "import", str(tmp_path / "opensm.conf")]) == 0
    notes = capsys.readouterr().err
    assert (
        "shares of a link on which all lanes always send packets of 4122 bytes: VL0 50.0%, VL1 25.0%, VL2 25.0" in notes
    )
    assert (
        "lanes of vlarb_low do not share by its weights (VL1 87.5%, VL2 12.5%) but by packets: VL1 50.0%, VL2 50.0%"
        in notes
    )
    (tmp_path / "opensm.conf").write_text("qos TRUE\nqos_vlarb_low 1:192,2:64\nqos_sl2vl 0,1,2\n")
    assert execute(["qos", "import", str(tmp_path / "opensm.conf")]) == 0
    assert "do not share" not in capsys.readouterr().err


def test_levels_without_a_lane_are_noted() -> None:
    made = Settings(4, 0, (), ((0, 1), (1, 1), (3, 1)), (0, 1, 15, 7, *[15] * 12), operational_vls=4)
    table, notes = qos_table(made)
    assert table["sl2vl"] == [0, 1, 0, 3]
    assert sum("VL15, which drops its packets" in note for note in notes) == 13
    assert any("4 data lanes in operation (max_op_vls)" in note and "service levels 3" in note for note in notes)


@pytest.mark.parametrize(("code", "lanes"), [(1, 1), (2, 2), (3, 4), (4, 8), (5, 15), (7, 15)])
def test_ports_have_the_lanes_that_max_op_vls_leaves_them(code: int, lanes: int, tmp_path: Path) -> None:
    """As OpenSM 3.3.23 sets SL2VL and VL arbitration of ports that ibsim simulates: the low bits of a lane's number."""
    settings, _, _ = options_of(tmp_path, f"max_op_vls {code}")
    table, notes = qos_table(settings)
    usual = [*range(15), 7]
    assert table["lanes"] == lanes
    assert table["sl2vl"] == (usual if lanes == 15 else [lane % lanes for lane in usual])
    assert table["arbiter"]["vlarb_high"] == [[0, 4]]
    assert table["arbiter"]["vlarb_low"] == [[lane % lanes if lanes < 15 else lane, 4] for lane in range(1, 15)]
    assert bool(notes) == (lanes < 15)
    given = {4: 7, 8: 14}.get(lanes, lanes)  # of 7 data lanes 4 are in operation, of 14 eight
    again, _ = qos_table(replace(settings, operational_vls=15), data_lanes=given)
    assert again == table


def test_qos_max_vls_is_not_used_and_says_so(tmp_path: Path) -> None:
    settings, notes, _ = options_of(tmp_path, "qos_max_vls 2", "qos_sl2vl 0,1,2,3,0,0,0,0,0,0,0,0,0,0,0,15")
    assert qos_table(settings)[0]["sl2vl"][:4] == [0, 1, 2, 3]
    assert notes == [
        "qos_max_vls 2: OpenSM does not use this option; sl2vl has VL3, which is set in ports as max_op_vls has it"
    ]


def test_options_of_ports_between_switches(tmp_path: Path) -> None:
    """OpenSM 5 lists them in its template; where they are not set, the options of switches apply."""
    rows = ["max_vls 0", "high_limit -1", "vlarb_high (null)", "vlarb_low (null)", "sl2vl (null)"]
    kinds = ("", "ca_", "sw0_", "swe_", "sw2sw_", "rtr_")
    found = options_of(tmp_path, *(f"qos_{kind}{row}" for kind in kinds for row in rows))[0]
    assert found == Settings(15, 0, found.vlarb_high, found.vlarb_low, (*range(15), 7))
    assert options_of(tmp_path, "qos_high_limit 3", "qos_sw2sw_high_limit 3")[0].high_limit == 3
    assert options_of(tmp_path, "qos_ca_high_limit 3", "qos_swe_high_limit 3")[0].high_limit == 3
    with pytest.raises(ScenarioError, match=':2: qos_sw2sw_high_limit = "3": switches and ports between switches have'):
        options_of(tmp_path, "qos_sw2sw_high_limit 3")


@pytest.mark.parametrize(
    ("line", "text", "words"),
    [
        (3, "        nme: a", "3: nme: unknown keyword in port-group; allowed: name, use"),
        (4, "        port-guid: 0x12g", 'port-guid = "0x12g": not a port GUID'),
        (4, "        port-guid: 0x20-0x1f", "ends before it begins; allowed: 0x1f-0x20"),
        (5, "    end-port-groups", "end-port-groups: closes what is not open; allowed: end-port-group"),
        (10, "        sl: 16", 'sl = "16": not a service level; allowed: 0 to 15'),
        (15, "        source: b", 'source = "b": unknown port group; allowed: a'),
        (16, "        qos-level-name: DEFAUL", 'did you mean "DEFAULT"'),
    ],
)
def test_wrong_lines_of_a_policy_are_named(line: int, text: str, words: str, tmp_path: Path) -> None:
    lines = """port-groups
    port-group
        name: a
        port-guid: 0x12-0x14, 0x20
    end-port-group
end-port-groups
qos-levels
    qos-level
        name: DEFAULT
        sl: 1
    end-qos-level
end-qos-levels
qos-match-rules
    qos-match-rule
        source: a
        qos-level-name: DEFAULT
    end-qos-match-rule
end-qos-match-rules""".splitlines()
    file = tmp_path / "policy"
    file.write_text("\n".join(lines))
    good = read_policy(file)
    assert (good.groups[0].guids, good.default) == (((0x12, 0x14), (0x20, 0x20)), 1)
    file.write_text(write_policy(good))
    assert read_policy(file).levels == good.levels
    lines[line - 1] = text
    file.write_text("\n".join(lines))
    with pytest.raises(ScenarioError) as caught:
        read_policy(file)
    assert words in str(caught.value)
    assert str(caught.value).startswith(f"{file}:")


def test_a_policy_for_guids_that_the_fabric_lacks_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "opensm.conf").write_text("qos TRUE\n")
    policy = tmp_path / "policy"
    known, level = "0x003048c749cd0001", "qos-levels\nqos-level\nname: DEFAULT\nsl: 0\nend-qos-level\nend-qos-levels\n"
    text = "port-groups\nport-group\nname: a\nport-guid: {}\nend-port-group\nend-port-groups\n" + level
    command = ["qos", "import", str(tmp_path / "opensm.conf"), "--policy", str(policy)]
    command += ["--fabric", str(DATA / "x5.ibnetdiscover"), "-o", str(tmp_path / "qos.toml")]
    policy.write_text(text.format(known))
    assert execute(command) == 0
    kept = (tmp_path / "qos.toml").read_text()
    capsys.readouterr()
    policy.write_text(text.format(known.replace("0001", "0002")))
    assert execute(command) == 2
    printed = capsys.readouterr().err
    assert f'{policy}:2: port-guid = "0x003048c749cd0002": the fabric has no port with this GUID' in printed
    assert f'did you mean "{known}"?' in printed
    assert (tmp_path / "qos.toml").read_text() == kept


def test_the_commands_write_all_files_or_none(small: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "qos"
    assert execute(["qos", "export", small, "--opensm", str(out), "--set", 'qos.arbiter="oldest_first"']) == 2
    assert not out.exists()
    assert execute(["qos", "export", small, "--opensm", str(out)]) == 0
    files = {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*") if path.is_file()}
    assert {"opensm.conf", "qos-policy.conf", "prolog.sh", "epilog.sh", "task-prolog.sh", "apply.toml"} <= set(files)
    assert (out / "prolog.sh").stat().st_mode & stat.S_IXUSR
    assert execute(["qos", "export", small, "--opensm", str(tmp_path / "again")]) == 0
    assert files == {name: (tmp_path / "again" / name).read_bytes() for name in files}
    capsys.readouterr()
    assert execute(["qos", "export", small, "--opensm", str(out)]) == 2
    assert "exists and is not an empty directory" in capsys.readouterr().err
