"""Files without end, as devices and what somebody links to them, are refused by every reader, and fill no memory."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from fairlane.cli.command import ExitCode
from fairlane.cli.main import execute
from fairlane.core.errors import FairlaneError
from fairlane.core.units import whole_number
from fairlane.core.wording import significant
from fairlane.inputs.files import read_bytes, read_text, replacing
from fairlane.study.folders import load

DATA = Path(__file__).parents[1] / "data"
DUMP = str(DATA / "fabrics" / "x5.ibnetdiscover")
LOG = str(DATA / "jobs" / "nasa-ipsc-1993-first-400.swf.gz")
SCENARIO = """
duration = "20 us"
[fabric]
topology = "fat_tree"
hosts = 4
levels = 1
[[jobs]]
ranks = 2
workload = { name = "ring", compute = "5 us" }
"""


@pytest.mark.parametrize(
    "command",
    [
        ["check", "zero.toml"],
        ["study", "zero.toml"],
        ["fabric", "import", "zero.ibnetdiscover"],
        ["fabric", "import", DUMP, "--tables", "zero.lft"],
        ["fabric", "import", DUMP, "--node-name-map", "zero.map"],
        ["schedule", "zero.swf", "--set", "sides=[4,4,8]"],
        ["schedule", LOG, "--set", "sides=[4,4,8]", "--mix", "zero.toml"],
        ["schedule", LOG, "--slowdown", "zero.toml"],
        ["slowdown", "show", "zero.toml"],
        ["predict", "apply", "zero.json", "zero.csv"],
        ["predict", "fit", "zero.csv"],
        ["learn", "zero.parquet"],
        ["trace", "describe", "zero.meta"],
        ["trace", "describe", "zero.tar.zst"],
    ],
)
def test_a_device_without_end_is_refused(
    command: Sequence[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for word in command:
        if word.startswith("zero."):
            Path(word).symlink_to("/dev/zero")
    assert execute(list(command)) == ExitCode.WRONG_INPUT
    assert "zero." in capsys.readouterr().err


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("endless")
    (folder / "s.toml").write_text(SCENARIO)
    assert execute(["run", str(folder / "s.toml"), "--out", str(folder / "run"), "--quiet"]) == ExitCode.DONE
    return folder / "run"


@pytest.mark.parametrize("name", ["manifest.json", "run.json", "jobs.parquet"])
def test_a_folder_of_results_with_a_device_is_refused(run: Path, tmp_path: Path, name: str) -> None:
    shutil.copytree(run, tmp_path / "run")
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["files"].get(name, {})["bytes"] = 0  # as long as the device says that it is
    (tmp_path / "run" / "manifest.json").write_text(json.dumps(manifest))
    (tmp_path / "run" / name).unlink()
    (tmp_path / "run" / name).symlink_to("/dev/zero")
    with pytest.raises(FairlaneError, match=f"run|{name}"):
        load(tmp_path / "run")


def test_reading_is_limited_to_the_byte(tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.write_bytes(b"a\r\nb\rc")
    assert read_bytes(file, 6) == b"a\r\nb\rc"
    assert read_text(file) == "a\nb\nc"
    with pytest.raises(OSError, match="more than 5 B"):
        read_bytes(file, 5)


def test_a_process_without_memory_ends_in_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def too_much(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setitem(execute.__globals__, "command", lambda: too_much)
    assert execute(["check", "s.toml"]) == ExitCode.RUN_FAILED
    assert capsys.readouterr().err == "fairlane: out of memory: it takes more than this process may have\n"


@pytest.mark.parametrize("key", ["jobs[\N{SUPERSCRIPT TWO}].ranks", "\N{SUPERSCRIPT TWO}"])
def test_digits_that_are_no_numbers_are_names(run: Path, key: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["check", str(run.parent / "s.toml"), "--set", f"{key}=1"]) == ExitCode.WRONG_INPUT
    assert "fairlane: " in capsys.readouterr().err


def test_numbers_without_bound_can_be_told() -> None:
    assert significant(float("inf")) == "inf"
    assert significant(float("nan")) == "nan"


MANY = "9" * 5000


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("l.csv", f"from,to,cables\na,b,{MANY}\nb,c,1\n", "l.csv:2"),
        ("l.csv", "from,to,cables\na,b,1000000000000\nb,c,1\n", "l.csv:2: cables = 1000000000000"),
        (
            "d.ibnetdiscover",
            f'Switch {MANY} "S-1" # "a" base port 0 lid {MANY} lmc 0\n[{MANY}] "H-1"[1] # "b" lid 1 4xEDR',
            "",
        ),
    ],
)
def test_numbers_with_thousands_of_digits_are_too_large(
    name: str, text: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).write_text(text)
    assert (
        execute(["fabric", "import", str(tmp_path / name), "--out", str(tmp_path / "x.json")]) == ExitCode.WRONG_INPUT
    )
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("key", ["jobs[{}].ranks", "{}", "jobs[0].placement.hosts"])
def test_options_with_thousands_of_digits_are_too_large(
    key: str, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        execute(["check", str(run.parent / "s.toml"), "--set", f'{key.format(MANY)}="{MANY}"']) == ExitCode.WRONG_INPUT
    )
    assert execute(["analyze", str(run), "--iterations", f"{MANY}..", "--quiet"]) == ExitCode.WRONG_INPUT
    assert "Traceback" not in capsys.readouterr().err


def test_a_forwarding_table_with_thousands_of_digits_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t").write_text(
        f"Unicast lids [0x0-0x1] of switch Lid 1 guid 0x{MANY} (x):\n0x1 1 :\n{MANY} valid lids dumped\n"
    )
    assert execute(["fabric", "import", DUMP, "--tables", str(tmp_path / "t")]) == ExitCode.WRONG_INPUT


@pytest.mark.parametrize("digits", ["0", "007", "9" * 100, "0" * 5000 + "7"])
def test_whole_numbers_are_python_s(digits: str) -> None:
    assert whole_number(digits) == int(digits.lstrip("0") or "0")


def test_whole_numbers_stay_large() -> None:
    assert whole_number(MANY) == 10**100 - 1


def test_a_file_is_written_whole_or_stays_as_it_was(tmp_path: Path) -> None:
    file, link = tmp_path / "model.json", tmp_path / "link.json"
    link.symlink_to(file)
    for path, text in ((file, "one"), (link, "two")):
        with replacing(path) as scratch:
            scratch.write_text(text)
    assert link.is_symlink()
    assert file.read_text() == "two"
    with pytest.raises(IsADirectoryError), replacing(file) as scratch:
        (scratch.write_text("half"), tmp_path.write_text(""))
    assert file.read_text() == "two"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.json", "model.json"]
    with replacing(Path("/dev/null")) as scratch:
        scratch.write_text("a device stays one")
    assert Path("/dev/null").is_char_device()
