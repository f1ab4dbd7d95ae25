"""The files of the engine's ``network/`` import from each other in one direction."""

import re
from collections.abc import Iterator
from pathlib import Path

NETWORK = Path(__file__).parents[2] / "crates" / "fairlane-core" / "src" / "network"

Module = tuple[str, ...]
"""The path of a module below ``crate::network``; empty for ``network`` itself."""


class Network:
    """The files of a folder of Rust modules, and which of them import what from which others."""

    def __init__(self, folder: Path) -> None:
        self.files: dict[Module, str] = {}
        for path in folder.rglob("*.rs"):
            parts = path.relative_to(folder).with_suffix("").parts
            self.files[parts[:-1] if parts[-1] == "mod" else parts] = path.read_text(encoding="utf-8")
        self._homes: dict[Module, Module] = {}
        for module, text in self.files.items():
            for public, names in uses(text):
                if public and (target := self._absolute(module, names)):
                    self._homes[(*module, target[-1])] = target
        self.imports = {module: set(self._imports(module)) for module in self.files}

    def _absolute(self, module: Module, path: list[str]) -> Module | None:
        """Where a path leads that stands in a module; nothing if that is outside."""
        if path[0] == "crate":
            return tuple(path[2:]) if path[1:2] == ["network"] else None
        ups = sum(part == "super" for part in path)
        if ups > len(module) or (not ups and (*module, path[0]) not in self.files):
            return None
        return (*module[: len(module) - ups], *path[ups:])

    def _file(self, target: Module) -> Module:
        """The file in which something is defined, whatever exports it again."""
        for length in range(len(target) + 1):
            if target[:length] in self._homes:
                return self._file((*self._homes[target[:length]], *target[length:]))
        return next(target[:length] for length in range(len(target), -1, -1) if target[:length] in self.files)

    def _imports(self, module: Module) -> Iterator[Module]:
        for public, path in uses(self.files[module]):
            target = None if public else self._absolute(module, path)
            if target is not None and (file := self._file(target)) != module:
                yield file

    def circle(self) -> list[str]:
        """The files that are in a circle, or import from one: files that import from none left are taken away."""
        left = dict(self.imports)
        while free := [module for module, targets in left.items() if not targets & left.keys()]:
            for module in free:
                del left[module]
        return sorted(f"{'/'.join(module)} -> {sorted(map('/'.join, left[module] & left.keys()))}" for module in left)


def uses(text: str) -> Iterator[tuple[bool, list[str]]]:
    """The paths that a file imports outside its tests, and whether it exports them again."""
    code = re.sub(r"//.*", "", text).partition("#[cfg(test)]\nmod tests")[0]
    for public, tree in re.findall(r"^ *(pub(?:\([^)]*\))? )?use ([^;]+);", code, re.MULTILINE):
        for path in leaves(re.sub(r"\s+", "", tree)):
            yield bool(public), path.removesuffix("::self").split("::")


def leaves(tree: str) -> Iterator[str]:
    """The single paths of a tree like ``a::{b,c::{d,e}}``."""
    start, _, group = tree.partition("{")
    if not group:
        yield tree
        return
    depth, member = 0, ""
    for letter in group[:-1] + ",":
        depth += (letter == "{") - (letter == "}")
        if letter == "," and not depth:
            yield from leaves(start + member) if member else ()
            member = ""
        else:
            member += letter


def test_files_import_in_one_direction() -> None:
    network = Network(NETWORK)
    imports = network.imports
    assert len(imports) > 40
    assert ("port",) in imports["port", "transmit"]
    assert ("port", "state") in imports["shard",], "which port/mod.rs exports again"
    assert network.circle() == []


def test_a_circle_is_found(tmp_path: Path) -> None:
    (tmp_path / "nic").mkdir()
    for name, text in (
        ("mod.rs", "mod a;\npub use a::A;"),
        ("a.rs", "use super::nic::{self, b::{B, C}};"),
        ("nic/mod.rs", "pub(super) mod b;\nuse std::fmt;"),
        ("nic/b.rs", "use crate::network::A; // use crate::units::A;\n#[cfg(test)]\nmod tests {\n    use super::*;\n}"),
    ):
        (tmp_path / name).write_text(text, encoding="utf-8")
    network = Network(tmp_path)
    assert network.imports == {(): set(), ("a",): {("nic",), ("nic", "b")}, ("nic",): set(), ("nic", "b"): {("a",)}}
    assert network.circle() == ["a -> ['nic/b']", "nic/b -> ['a']"]
