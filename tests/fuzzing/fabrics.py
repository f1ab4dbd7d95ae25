"""Inputs of real fabrics and clusters: dumps, settings, counters, tables, and the lists that Slurm prints."""

import json
import lzma
import shutil
from collections.abc import Sequence
from pathlib import Path
from random import Random

from fabric_dumps import dump as dump_text
from fabric_dumps import link_report, ndt, ports_report, tree
from fairlane.model.fabric.wiring import Wiring
from small_study import SCENARIO

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"
Command = Sequence[str]


def written(folder: Path, **files: str) -> list[Path]:
    made = []
    for name, text in files.items():
        path = folder / name.replace("__", ".")
        path.write_text(text)
        made.append(path)
    return made


def fabrics(folder: Path) -> list[Path]:
    from fairlane.model.fabric.export import FORMATS
    from fairlane.model.fabric.reader import read_wiring

    dump = DATA / "fabrics" / "x5.ibnetdiscover"
    wiring = read_wiring(dump)
    rows = [f"{cable.ends[0]},{cable.ends[1]},40 Gbps" for cable in wiring.cables]
    csv = written(folder, links__csv="\n".join(["from,to,bandwidth", *rows]) + "\n")
    for name in ("graphml", "ibsim", "topology-conf", "topology-yaml"):
        (folder / f"links.{name}").write_text(FORMATS[name].write(wiring).text, encoding="utf-8")
    torus = "---\n- topology: t\n  torus3d:\n    toruses:\n"
    torus += "    - name: t\n      dims: {x: 2, y: 2, z: 2}\n      nodes: n[0-7]\n"
    blocks = "BlockName=b1 Nodes=n[0-3]\nBlockName=b2 Nodes=n[4-7]\nBlockSizes=4,8\n"
    ring = "RingName=r Nodes=n[0-7]\n"
    devices = tree(2, 1, {0: 3, 1: 2})
    reports = {
        "reports__p": ports_report(devices),
        "reports__l": link_report(devices),
        "reports__ll": link_report(devices, line_mode=True),
        "reports__ndt": ndt(devices, both_ends=True),
        "reports__pasted": dump_text(devices).replace("\t", ""),
    }
    others = written(folder, torus__yaml=torus, blocks__conf=blocks, ring__conf=ring, **reports)
    exported = [folder / f"links.{name}" for name in ("graphml", "ibsim", "topology-conf", "topology-yaml")]
    return [*csv, *exported, *others, Path(shutil.copy(dump, folder))]


def options(folder: Path) -> list[Path]:
    text = "qos TRUE\nqos_max_vls 4\nqos_high_limit 255\nqos_vlarb_high 1:64,2:32\nqos_vlarb_low 0:8,3:64\n"
    return written(folder, opensm__conf=f"{text}qos_sl2vl 0,1,1,3,0,0,15,0,7\nqos_swe_max_vls 0\n")


def import_qos(path: Path, _out: Path, _rng: Random) -> Command:
    return ["qos", "import", str(path)]


def policies(folder: Path) -> list[Path]:
    options(folder)
    group = "port-group\nname: a\nport-guid: 0x12-0x14, 0x20\nport-name: b/P1\nend-port-group\n"
    level = "qos-level\nname: DEFAULT\nsl: 1\nend-qos-level\n"
    rule = "qos-match-rule\nsource: a\nqos-level-name: DEFAULT\nend-qos-match-rule\n"
    parts = {"port-groups": group, "qos-levels": level, "qos-match-rules": rule}
    return written(folder, policy__conf="".join(f"{name}\n{text}end-{name}\n" for name, text in parts.items()))


def import_policy(path: Path, _out: Path, _rng: Random) -> Command:
    return ["qos", "import", str(path.parent / "opensm.conf"), "--policy", str(path)]


def port_counters(folder: Path) -> list[Path]:
    from port_counters import BASIC, IBQUERYERRORS, PERFQUERY, PROMETHEUS, PYTHON_EXPORTER, SYSFS

    texts = {"perfquery__txt": PERFQUERY, "basic__txt": BASIC, "errors__txt": IBQUERYERRORS, "sysfs__txt": SYSFS}
    return written(folder, **texts, a__prom=PROMETHEUS, b__prom=PYTHON_EXPORTER)


def import_counters(path: Path, _out: Path, _rng: Random) -> Command:
    return ["counters", "import", str(path)]


def allocations(folder: Path) -> list[Path]:
    """Twelve real jobs and the nodes of their cells, plain and packed."""
    examples = ROOT / "examples" / "leonardo"
    for name in ("allocations", "nodes"):
        text = lzma.decompress((examples / f"{name}.csv.xz").read_bytes()).decode()
        lines = [line for line in text.splitlines() if name == "nodes" or "viz" not in line]
        (folder / f"{name}.csv").write_text("\n".join(lines[:13] if name == "allocations" else lines) + "\n")
    packed = folder / "allocations.csv.xz"
    packed.write_bytes(lzma.compress((folder / "allocations.csv").read_bytes()))
    return [folder / "allocations.csv", packed]


def node_maps(folder: Path) -> list[Path]:
    allocations(folder)
    return [folder / "nodes.csv"]


def advise_on(path: Path, _out: Path, _rng: Random) -> Command:
    jobs, nodes = (path, "nodes.csv") if path.name.startswith("allocations") else ("allocations.csv", path)
    return ["advise", "--allocations", str(path.parent / jobs), "--nodes", str(path.parent / nodes)]


def tables(folder: Path) -> list[Path]:
    from fairlane.model.fabric.identities import endpoint_lids, endpoints_of
    from fairlane.model.fabric.reader import read_wiring

    dump = Path(shutil.copy(DATA / "fabrics" / "x5.ibnetdiscover", folder))
    wiring = read_wiring(dump)
    endpoints, lids = endpoints_of(wiring), endpoint_lids(wiring)
    towards = {number: _ports_towards(wiring, endpoints[number][0]) for number in lids.values()}
    blocks = []
    for guid, switch in wiring.guids.items():
        lines = [f"0x{lid:04x} {towards[end][switch]:03d} : (x)" for lid, end in lids.items()]
        head = f"Unicast lids [0x0-0x50] of switch Lid 1 guid 0x{guid:016x} ({switch}):\n  Lid  Out   Destination"
        blocks.append("\n".join([head, *lines, f"{len(lines)} valid lids dumped"]))
    return written(folder, tables__lft="\n".join(blocks) + "\n")


def _ports_towards(wiring: Wiring, host: str) -> dict[str, int]:
    """The port of each switch that a shortest path to the host begins with."""
    found: dict[str, int] = {host: 0}
    near = [host]
    while near:
        further = []
        for cable in wiring.cables:
            for (one, other), at in ((cable.ends, 1), (cable.ends[::-1], 0)):
                if one in near and other not in found and cable.ports:
                    found[other] = cable.ports[at]
                    further.append(other)
        near = further
    return found


def imported(folder: Path) -> list[Path]:
    from fairlane.model.fabric.reader import read_wiring

    read_wiring(DATA / "fabrics" / "x5.ibnetdiscover").save(folder / "x5.json")
    text = SCENARIO.partition("[qos]")[0].partition("[fabric]")[0]
    jobs = "[[jobs]]\nranks = 4\nworkload = { name = 'ring', compute = '5 us' }\n"
    (folder / "imported.toml").write_text(f'{text}[fabric]\ntopology = "imported"\nfile = "x5.json"\n{jobs}')
    return [folder / "x5.json"]


def host_lists(folder: Path) -> list[Path]:
    lists = [f"host[{start}-{start + 3}]" for start in range(0, 12, 4)] + ["host[0-1,3],host7", "host[4-6],host15"]
    return written(folder, lists__txt="\n".join(lists))


def place_on(path: Path, out: Path, rng: Random) -> Command:
    text = path.read_text(errors="replace")
    line = rng.choice(text.split("\n") or [""]).replace("\\", "").replace('"', "").replace("\0", "")
    (out / "small.toml").write_text(SCENARIO.partition('[[jobs]]\nname = "ring"')[0].replace("count = 2\n", ""))
    return ["place", str(out / "small.toml"), "--set", f'jobs[0].placement={{name="list",hosts="{line[:4000]}"}}']


def import_fabric(path: Path, out: Path, _rng: Random) -> Command:
    return ["fabric", "import", str(path), "--out", str(out / "fabric.json")]


def import_tables(path: Path, out: Path, rng: Random) -> Command:
    return [*import_fabric(path.with_name("x5.ibnetdiscover"), out, rng), "--tables", str(path)]


def check_imported(path: Path, _out: Path, _rng: Random) -> Command:
    return ["check", str(path.with_name("imported.toml"))]


def job_lists(folder: Path) -> list[Path]:
    """Two jobs as squeue, sacct and ``squeue --json`` print them, beside the fabric."""
    from fairlane.model.fabric.reader import read_wiring

    shutil.copy(DATA / "fabrics" / "x5.ibnetdiscover", folder)
    hosts = ",".join(read_wiring(folder / "x5.ibnetdiscover").hosts[:3])
    rows = [
        ("JOBID", "NAME", "USER", "ST", "NODELIST(REASON)"),
        ("4711", "cfd", "alice", "R", hosts),
        ("4712", "post", "bob", "PD", "(Priority)"),
    ]
    texts = {name: "".join(f"{sign.join(row)}\n" for row in rows) for name, sign in (("squeue", "  "), ("sacct", "|"))}
    jobs = [
        {"job_id": 4711, "job_state": ["RUNNING"], "name": "cfd", "nodes": hosts},
        {"job_id": {"set": True, "number": 4712}, "job_state": "PENDING", "nodes": ""},
    ]
    return written(folder, **texts, jobs__json=json.dumps({"jobs": jobs, "errors": []}, indent=1))


def first_scenario(path: Path, out: Path, _rng: Random) -> Command:
    return ["init", str(path.with_name("x5.ibnetdiscover")), str(path), "--out", str(out / "cluster.toml")]
