"""What the contracts on imports in ``pyproject.toml`` cannot say.

Only the command line prints, results are described once, nothing reads the repository, and functions import only what
may be missing or takes long to load.
"""

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import fairlane

OPTIONAL = [
    "_otf2",
    "backports",
    "compression",
    "distributed",
    "networkx",
    "otf2",
    "perfetto",
    "sklearn",
    "threadpoolctl",
    "tornado",
]
"""Libraries that extras install, or some versions of Python."""
SLOW = [
    "altair",
    "arviz_stats",
    "duckdb",
    "importlib",
    "jsonschema",
    "matplotlib",
    "numpy",
    "pint",
    "platformdirs",
    "polars",
    "pydantic_core",
    "rapidfuzz",
    "scipy",
    "tomlkit",
    "yaml",
    "fairlane.views",
]
"""What takes long to load, and only some calls need."""
LATER = {
    "fairlane.cli.agent": "an operator calls the status again and again",
    "fairlane.cli.command": "help needs none of it",
    "fairlane.cli.doctor": "a library may be missing or damaged",
    "fairlane.cli.main": "help needs none of it",
    "fairlane.cli.names": "help needs none of it",
    "fairlane.cli.scenario": "a scenario needs neither studies nor the agent",
    "fairlane.sim.controller.loop": "controllers are read by name, and import this",
    "fairlane.lab.doctor": "a library may be missing or damaged",
    "fairlane.lab.doctor.installation": "runs in a process of its own",
    "fairlane.cli.registries": "help needs none of it",
    "fairlane.core.otf2_child": "limits are set first",
    "fairlane.lab.serve": "tornado is optional",
    "fairlane.study.tasks.closure": "controllers are read by name, and import this",
    "fairlane.study.tasks.pools": "dask is optional",
    "fairlane.views.tables": "a table needs no library",
}
"""Modules that import others of fairlane inside functions, and why."""


class Sources:
    """All modules of a package: their files and syntax trees, by name."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files = {self._name(path): path for path in sorted(folder.rglob("*.py"))}
        self.trees = {name: ast.parse(path.read_text()) for name, path in self.files.items()}

    def _name(self, path: Path) -> str:
        parts = ("fairlane", *path.relative_to(self.folder).with_suffix("").parts)
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def prints(sources: Sources) -> Iterator[str]:
    """What prints outside the command line; displays of progress, on standard error, are asked for by callers."""
    for module, tree in sources.trees.items():
        if module.split(".")[1:2] == ["cli"] or module in {"fairlane.core.otf2_child", "fairlane.__main__"}:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in {"print", "sys.stdout.write"}:
                yield f"prints: {module}"
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for library in {name.split(".")[0] for name in names} & {"rich", "typer"}:
                if library == "typer" or module.rpartition(".")[2] != "progress":
                    yield f"{library}: {module}"


def described(sources: Sources) -> Iterator[str]:
    """Tables and views that the command line makes itself: results are described once, for every writer."""
    for module, tree in sources.trees.items():
        if module.split(".")[1:2] == ["cli"] and module != "fairlane.cli.terminal":
            calls = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
            yield from (f"describes: {module}: {name}" for name in calls & {"Chart", "Column", "Table", "View"})


def outside(sources: Sources) -> Iterator[str]:
    """Paths that lead out of the package, where an installed fairlane has nothing."""
    for module, tree in sources.trees.items():
        depth = len(sources.files[module].relative_to(sources.folder).parts)
        for node in ast.walk(tree):
            text = ast.unparse(node) if isinstance(node, ast.Attribute | ast.Subscript) else ""
            up = text.count(".parent") if "__file__" in text and ".parents" not in text else 0
            if isinstance(node, ast.Subscript) and "__file__" in text and text.split("[")[0].endswith(".parents"):
                up = 1 + int(ast.literal_eval(node.slice))
            if up > depth or (isinstance(node, ast.Constant) and "../.." in str(node.value)):
                yield f"outside: {module}"


def later(sources: Sources) -> Iterator[str]:
    """Imports inside functions of what is neither optional nor slow, and modules that are in ``LATER`` for nothing."""
    unused = set(LATER) & set(sources.trees)
    for module, tree in sources.trees.items():
        functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
        inner = (node for function in functions for node in ast.walk(function))
        for node in inner:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                if not f"{name}.".startswith(tuple(f"{library}." for library in (*OPTIONAL, *SLOW))):
                    unused.discard(module)
                    if module not in LATER or name.split(".")[0] != "fairlane":
                        yield f"later: {module} -> {name}"
    yield from (f"not later: {module}" for module in sorted(unused))


@pytest.fixture(scope="module")
def sources() -> Sources:
    return Sources(Path(fairlane.__file__).parent)


RULES = (prints, described, outside, later)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_nothing_breaks_a_rule(rule: Callable[[Sources], Iterator[str]], sources: Sources) -> None:
    assert list(rule(sources)) == []


def test_every_rule_reports_what_breaks_it(tmp_path: Path) -> None:
    files = {
        "views/__init__.py": "from rich.console import Console\nprint(open(__file__ + '/../../tests'))",
        "papers/reproduce.py": "from pathlib import Path\nDATA = Path(__file__).parents[2] / 'tests'",
        "cli/__init__.py": "print(Table(DATA))",
        "model/scenario/__init__.py": "import typer\ndef read():\n    import polars, json",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text(text)
    assert sorted(line for rule in RULES for line in rule(Sources(tmp_path))) == [
        "describes: fairlane.cli: Table",
        "later: fairlane.model.scenario -> json",
        "outside: fairlane.papers.reproduce",
        "outside: fairlane.views",
        "prints: fairlane.views",
        "rich: fairlane.views",
        "typer: fairlane.model.scenario",
    ]
