"""Checks that the packages in a folder have what they need: every file of the sources.

    python tools/check_packages.py dist

A wheel must have every file of ``python/fairlane``, the compiled core for the stable interface of CPython, and the
licence. A source distribution must have what builds all that.
"""

import sys
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from zipfile import ZipFile

ROOT = Path(__file__).resolve().parent.parent
BUILD = ("Cargo.toml", "Cargo.lock", "pyproject.toml", "README.md", "LICENSE")
"""What a source distribution has at its top, besides the package."""


def main(folder: Path) -> int:
    """Prints what is missing; returns the exit code."""
    wheels, sources = sorted(folder.glob("*.whl")), sorted(folder.glob("*.tar.gz"))
    if len(wheels) != 1 or len(sources) != 1:
        print(f"{folder}: has {len(wheels)} wheels and {len(sources)} source distributions; allowed: one each")
        return 2
    problems = [*wheel_problems(wheels[0]), *source_problems(sources[0])]
    for problem in problems:
        print(problem, file=sys.stderr)
    if not problems:
        size = f"{wheels[0].stat().st_size / 2**20:.1f} MiB"
        print(f"{wheels[0].name} ({size}) and {sources[0].name} have all files")
    return 1 if problems else 0


def wheel_problems(wheel: Path) -> Iterator[str]:
    """What is wrong with a wheel."""
    with ZipFile(wheel) as opened:
        names = set(opened.namelist())
    wanted = [path.relative_to("python").as_posix() for path in package_files()]
    yield from absent(wheel, names, wanted)
    yield from absent(wheel, names, ["fairlane/_core.abi3.so"])
    if "-abi3-manylinux" not in wheel.name:
        yield f"{wheel.name}: is not for CPython's stable interface and manylinux"
    if not any(name.endswith(".dist-info/licenses/LICENSE") for name in names):
        yield f"{wheel.name}: has no licence"


def source_problems(archive: Path) -> Iterator[str]:
    """What is wrong with a source distribution."""
    with tarfile.open(archive) as opened:
        names = {name.partition("/")[2] for name in opened.getnames()}
    rust = [path.relative_to(ROOT) for path in (ROOT / "crates").rglob("*.rs") if "tests" not in path.parts]
    wanted = [*BUILD, *(path.as_posix() for path in (*package_files(), *rust))]
    yield from absent(archive, names, wanted)
    if built := sorted(name for name in names if name.endswith((".so", ".pyc"))):
        yield f"{archive.name}: has files that are built: {', '.join(built)}"


def package_files() -> list[Path]:
    """The files of the package, relative to the project's folder; the compiled core is not one of them."""
    home = ROOT / "python" / "fairlane"
    found = {path for path in home.rglob("*") if path.is_file() and path.suffix not in (".so", ".pyc")}
    return sorted(path.relative_to(ROOT) for path in found)


def absent(archive: Path, names: set[str], wanted: Iterable[str]) -> Iterator[str]:
    """A message for every wanted file that an archive does not have."""
    yield from (f"{archive.name}: {name} is missing" for name in wanted if name not in names)


if __name__ == "__main__":
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_dir():
        print("usage: python tools/check_packages.py FOLDER", file=sys.stderr)
        sys.exit(2)
    sys.exit(main(Path(sys.argv[1])))
