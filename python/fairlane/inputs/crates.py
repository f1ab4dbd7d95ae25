"""Build the compiled simulator with plug-in crates.

A crate is generated in the cache folder that depends on the bindings of the simulator and on the plug-ins, and that
Cargo builds to an extension module: everything in it is compiled by one compiler from one set of sources. A library of
a plug-in alone, loaded at run time, would have to share types and functions with a simulator of another build, for
which Rust has no stable binary interface.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from importlib.metadata import distribution, version
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from fairlane.core.errors import FairlaneError, Problem, ScenarioError
from fairlane.core.extension import DEFAULT_FOLDER, ENVIRONMENT, RECORD, Build, Conditions, Crate
from fairlane.inputs.files import parse_toml, replacing, write_text

CORE = "fairlane-core"
BINDINGS = "fairlane-bindings"
PACKAGE = "fairlane-with-plugins"
"""The name of the generated crate."""
REGISTER = "register"
"""The function of a plug-in's library that adds its entries to a registry."""
_CHILD = "import pathlib, sys; from fairlane.core.extension import loaded; loaded(pathlib.Path(sys.argv[1])).tables()"


@dataclass(frozen=True)
class Plugin:
    """A crate, and where its manifest takes the simulator from."""

    crate: Crate
    core: str | None = None
    """Key of ``[patch]``: a registry or the address of a repository; None for the folder of the sources themselves."""


@dataclass(frozen=True)
class Tools:
    """What a build needs besides the plug-ins."""

    cargo: str
    sources: Path
    """The sources of this fairlane: the folder of its ``Cargo.toml``."""
    workspace: Mapping[str, Any] = field(repr=False)
    """That ``Cargo.toml``."""

    @classmethod
    def find(cls, sources: Path | None = None) -> "Tools":
        """Find Cargo, on PATH or where rustup installs it, and the sources.

        They are by default the folder that fairlane was installed from. Raises ``ScenarioError`` for what is missing.
        """
        home = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo"), "bin")
        cargo = shutil.which("cargo") or shutil.which("cargo", path=home)
        if cargo is None:
            words = "Rust is not installed: cargo is not on PATH"
            raise ScenarioError(Problem("", words, allowed="Rust 1.88 or later, from https://rustup.rs"))
        folder, here = sources or _checkout(), version("fairlane")
        if folder is None or not (folder / "Cargo.toml").is_file() or not (folder / "crates" / BINDINGS).is_dir():
            words = "has no sources of the simulator" if folder else "missing: wheels have no sources of the simulator"
            download = f"pip download --no-deps --no-binary fairlane fairlane=={here}"
            allowed = f"a checkout, or the unpacked source distribution ({download})"
            raise ScenarioError(Problem("--sources", words, str(folder) if folder else None, allowed))
        folder = folder.resolve()
        workspace = parse_toml((folder / "Cargo.toml").read_text("utf-8"))
        of_sources = workspace["workspace"]["package"]["version"]
        if of_sources != here:
            raise ScenarioError(Problem("--sources", f"has fairlane {of_sources}", str(folder), here))
        return cls(cargo, folder, workspace)

    def plugin(self, folder: Path) -> Plugin:
        """The crate in a folder. Raises ``ScenarioError`` if it cannot be a plug-in."""
        manifest = folder.resolve() / "Cargo.toml"
        if not manifest.is_file():
            raise ScenarioError(Problem("--with", "is no crate: it has no Cargo.toml", str(folder)))
        command = [self.cargo, "metadata", "--no-deps", "--format-version=1", f"--manifest-path={manifest}"]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        if done.returncode:
            raise ScenarioError(Problem.of_file(manifest, done.stderr.strip()))
        packages = json.loads(done.stdout)["packages"]
        package = next((one for one in packages if manifest.samefile(one["manifest_path"])), None)
        if package is None or not any({"lib", "rlib"} & set(target["kind"]) for target in package["targets"]):
            raise ScenarioError(Problem("--with", "has no library in Rust", str(folder)))
        crate = Crate(package["name"], package["version"], str(manifest.parent))
        core = next((one for one in package["dependencies"] if one["name"] == CORE), None)
        wanted = self.sources / "crates" / CORE
        if core is None or (core.get("path") and not Path(core["path"]).samefile(wanted)):
            words = f"depends on {CORE} in {core['path']}" if core else f"does not depend on {CORE}"
            allowed = f'{CORE} = "{version("fairlane")}", or a path to {wanted}'
            raise ScenarioError(Problem.of_file(manifest, words, allowed=allowed))
        source = core["source"] or ""
        kind, _, address = source.partition("+")
        return Plugin(crate, None if not source else "crates-io" if kind == "registry" else address.partition("?")[0])


def _checkout() -> Path | None:
    """The folder that this fairlane was installed from, as by ``make build`` (PEP 610); None if that was no folder."""
    text = distribution("fairlane").read_text("direct_url.json")
    url = str(json.loads(text)["url"]) if text else ""
    return Path(url2pathname(urlsplit(url).path)) if url.startswith("file:") else None


def build(plugins: Sequence[Plugin], tools: Tools, folder: Path = DEFAULT_FOLDER, *, debug: bool, quiet: bool) -> Build:
    """Build the simulator with plug-ins, and put it into a folder, by default that which fairlane loads from.

    Cargo prints to standard error. What it has compiled stays for the next time: in ``target`` of the sources, or where
    ``CARGO_TARGET_DIR`` says. The folder keeps what it has until the new build is complete and can be loaded.

    Raises:
        ScenarioError: The folder cannot be written.
        FairlaneError: Cargo ends with an error, or what it has built cannot be loaded, as if two names are the same.
    """
    folder = folder.absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(folder) from error
    if not os.access(folder, os.W_OK):
        raise _unwritable(folder)
    compiled = _compiled(tools, _generated(plugins, tools, folder), debug=debug, quiet=quiet)
    name = f"_core-{sha256(compiled.read_bytes()).hexdigest()[:12]}.abi3.so"
    made = Build(folder, name, Conditions.here(), tuple(plugin.crate for plugin in plugins), debug)
    with replacing(made.file) as scratch:
        shutil.copyfile(compiled, scratch)
    _check_loads(made.file)
    write_text(folder / RECORD, made.record())
    _remove_libraries(folder, but=name)
    return made


def remove(folder: Path = DEFAULT_FOLDER) -> None:
    """Remove the build from a folder, and the folder if nothing else is in it."""
    (folder / RECORD).unlink(missing_ok=True)
    _remove_libraries(folder)
    if not any(folder.iterdir()):
        folder.rmdir()


def _unwritable(folder: Path) -> ScenarioError:
    allowed = f"--out with another folder, which the variable {ENVIRONMENT} then names"
    return ScenarioError(Problem("--out", "cannot be written", str(folder), allowed))


def _remove_libraries(folder: Path, but: str = "") -> None:
    for file in folder.glob("_core-*.abi3.so"):
        if file.name != but:
            file.unlink()


def _generated(plugins: Sequence[Plugin], tools: Tools, folder: Path) -> Path:
    """The folder of the generated crate for a build that goes to ``folder``, with its manifest and its one module.

    Where all plug-ins are in the sources, as examples, it is a workspace like that of the sources, whose folders it
    links: for Cargo its crates are then the same, and those that are compiled already are not compiled again.
    """
    import tomlkit
    from platformdirs import user_cache_path

    home: Path = user_cache_path("fairlane") / "build" / sha256(str(folder).encode()).hexdigest()[:12]
    home.mkdir(parents=True, exist_ok=True)
    paths = [Path(plugin.crate.path) for plugin in plugins]
    base, workspace = tools.sources, dict[str, Any]()
    if all(path.is_relative_to(base) for path in paths):
        base, workspace = home, {**tools.workspace["workspace"], "members": []}
        paths = [home / path.relative_to(tools.sources) for path in paths]
        for name in {"crates", *(path.relative_to(home).parts[0] for path in paths)}:
            _link(home / name, tools.sources / name)
    crates = base / "crates"
    dependencies: dict[str, Any] = {BINDINGS: {"path": str(crates / BINDINGS)}}
    module = ["fairlane_bindings::extension! {"]
    for number, (plugin, path) in enumerate(zip(plugins, paths, strict=True)):
        crate = plugin.crate
        dependencies[f"plugin_{number}"] = {"package": crate.name, "path": str(path)}
        module.append(f'    "{crate.name}" "{crate.version}" plugin_{number}::{REGISTER}')
    manifest = {
        "package": {"name": PACKAGE, "version": version("fairlane"), "edition": "2024", "publish": False},
        "lib": {"path": "lib.rs", "crate-type": ["cdylib"]},
        "dependencies": dependencies,
        "patch": {plugin.core: {CORE: {"path": str(crates / CORE)}} for plugin in plugins if plugin.core},
        "profile": tools.workspace.get("profile", {}),
        "workspace": workspace,
    }
    write_text(home / "Cargo.toml", tomlkit.dumps(manifest))
    write_text(home / "lib.rs", "\n".join([*module, "}", ""]))
    lock, own = tools.sources / "Cargo.lock", home / "Cargo.lock"
    if lock.is_file() and not (own.is_file() and own.stat().st_mtime > lock.stat().st_mtime):
        write_text(own, lock.read_text("utf-8"))  # the same versions of libraries
    return home


def _link(link: Path, target: Path) -> None:
    link.unlink(missing_ok=True)
    link.symlink_to(target, target_is_directory=True)


def _compiled(tools: Tools, home: Path, *, debug: bool, quiet: bool) -> Path:
    """The library that Cargo makes of the generated crate. Raises ``FairlaneError``."""
    command = [
        tools.cargo,
        "build",
        f"--manifest-path={home / 'Cargo.toml'}",
        f"--profile={'dev' if debug else 'release'}",
    ]
    command += ["--message-format=json-render-diagnostics", *(["--quiet"] if quiet else [])]
    own = {"PYO3_PYTHON": sys.executable, "PYO3_BUILD_EXTENSION_MODULE": "1"}
    environment = {"CARGO_TARGET_DIR": str(tools.sources / "target"), **os.environ, **own}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment, check=False)
    if done.returncode:
        raise FairlaneError(f"{' '.join(command[:3])}: ended with code {done.returncode}")
    for line in done.stdout.splitlines():
        message = json.loads(line)
        if message["reason"] == "compiler-artifact" and message["target"]["name"] == PACKAGE.replace("-", "_"):
            return Path(message["filenames"][0])
    raise FairlaneError(f"{' '.join(command[:3])}: has built no library")


def _check_loads(library: Path) -> None:
    """Load a library in a process of its own; raise ``FairlaneError`` and remove the library if that fails."""
    command = [sys.executable, "-P", "-c", _CHILD, str(library)]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        library.unlink()
        lines = done.stderr.strip().splitlines()
        raise FairlaneError(f"what was built cannot be loaded: {lines[-1] if lines else f'code {done.returncode}'}")
