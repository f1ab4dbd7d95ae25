//! The layers of the crate: imports point to lower layers only, and every file of a registry stands in its table.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use fairlane_core::mpi::collective::algorithms::{self as collectives, Algorithm};
use fairlane_core::network::transport;
use fairlane_core::qos::arbiter;
use fairlane_core::{routing, topology};

/// The modules, lowest layer first. A module may import from the layers below its own, and from itself. `observe` is
/// records that `network` and `mpi` fill in; `mpi` is the end point that `network` delivers to, by a trait of `network`.
const LAYERS: &[&[&str]] = &[
    &["units", "ids", "rng", "columns"],
    &["error"],
    &["table"],
    &["kernel", "topology"],
    &["routing", "qos", "program", "fault"],
    &["observe"],
    &["network"],
    &["mpi"],
    &["results"],
    &["registry"],
    &["simulation"],
];

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

fn layer(module: &str) -> usize {
    LAYERS
        .iter()
        .position(|modules| modules.contains(&module))
        .unwrap_or_else(|| panic!("module {module} belongs to no layer; add it to LAYERS in tests/it/layers.rs"))
}

/// Every Rust file under `folder`.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let nested = entries.map(|path| if path.is_dir() { files(&path) } else { vec![path] });
    nested.flatten().filter(|path| path.extension().is_some_and(|extension| extension == "rs")).collect()
}

/// The module of a file: the first part of its path under `src`.
fn module(file: &Path) -> String {
    let inside = file.strip_prefix(source()).unwrap();
    Path::new(inside.components().next().unwrap().as_os_str()).file_stem().unwrap().to_str().unwrap().to_owned()
}

/// The modules of this crate that a text names as `crate::module` or in `crate::{...}`, outside comments.
fn imports(text: &str) -> BTreeSet<String> {
    let code: Vec<&str> = text.lines().map(|line| line.split("//").next().unwrap_or("")).collect();
    let code = code.join("\n");
    let mut found = BTreeSet::new();
    for (start, word) in code.match_indices("crate::") {
        if code[..start].ends_with(|before: char| before.is_alphanumeric() || before == '_' || before == '$') {
            continue;
        }
        let rest = &code[start + word.len()..];
        match rest.strip_prefix('{') {
            None => _ = found.insert(first_word(rest)),
            Some(group) => found.extend(members(group).iter().map(|member| first_word(member))),
        }
    }
    found
}

/// The members of a braced group whose opening brace is gone.
fn members(group: &str) -> Vec<&str> {
    let (mut depth, mut start, mut members) = (0, 0, Vec::new());
    for (at, letter) in group.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                members.push(group[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
        if letter == '}' && depth == 0 && start == at + 1 {
            break;
        }
    }
    members.into_iter().filter(|member| !member.is_empty()).collect()
}

fn first_word(text: &str) -> String {
    text.chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect()
}

/// The files of a registry's folder, or folders with a `mod.rs`, that hold an entry; the others hold the registry together.
fn entries(folder: &str) -> BTreeSet<String> {
    let paths = fs::read_dir(source().join(folder)).unwrap().map(|entry| entry.unwrap().path());
    let holds_entry = |path: &PathBuf| {
        let file = if path.is_dir() { path.join("mod.rs") } else { path.clone() };
        fs::read_to_string(file).is_ok_and(|text| text.contains(" const ENTRY: "))
    };
    paths.filter(holds_entry).map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect()
}

fn names<T, N: Into<String>>(table: &[T], name: impl Fn(&T) -> N) -> BTreeSet<String> {
    let names: BTreeSet<String> = table.iter().map(|entry| name(entry).into()).collect();
    assert_eq!(names.len(), table.len(), "two entries of one name");
    names
}

#[test]
fn imports_point_to_lower_layers_only() {
    let mut upward = Vec::new();
    for file in files(&source()) {
        let module = module(&file);
        if module == "lib" {
            continue;
        }
        for import in imports(&fs::read_to_string(&file).unwrap()) {
            if import != module && layer(&import) >= layer(&module) {
                upward.push(format!("{}: {module} must not import {import}", file.display()));
            }
        }
    }
    assert!(upward.is_empty(), "{}", upward.join("\n"));
}

#[test]
fn every_module_of_the_crate_has_a_layer() {
    for path in files(&source()) {
        let module = module(&path);
        assert!(module == "lib" || layer(&module) < LAYERS.len());
    }
}

#[test]
fn imports_are_found_however_they_are_written() {
    let text = "use crate::ids::Rank; // crate::network\nlet x = crate::units::Bytes(1);\nmy_crate::qos::x();\n\
                use crate::{\n    mpi::{self, wait},\n    table,\n};\nuse std::fmt;";
    assert_eq!(imports(text).into_iter().collect::<Vec<_>>(), ["ids", "mpi", "table", "units"]);
}

#[test]
fn every_file_of_a_registry_is_in_its_table() {
    assert_eq!(entries("topology"), names(topology::TABLE, |entry| entry.name));
    assert_eq!(entries("routing"), names(routing::TABLE, |entry| entry.name));
    assert_eq!(entries("qos/arbiter"), names(arbiter::TABLE, |entry| entry.name));
    assert_eq!(entries("network/nic/transport"), names(transport::TABLE, |entry| entry.name));
    let algorithm = |entry: &Algorithm| format!("{}_{}", entry.build.kind.name(), entry.name);
    assert_eq!(entries("mpi/collective/algorithms"), names(collectives::TABLE, algorithm));
}

/// The files of `mpi/` that a file imports from.
fn siblings(text: &str) -> BTreeSet<String> {
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    let mut found = BTreeSet::new();
    for rest in code.split("use super::").skip(1) {
        match rest.strip_prefix('{') {
            None => _ = found.insert(first_word(rest)),
            Some(group) => found.extend(members(group).iter().map(|member| first_word(member))),
        }
    }
    found
}

/// The files of a folder, but for `mod`, with those of the same folder that they import from.
fn imports_between(folder: &str) -> BTreeMap<String, BTreeSet<String>> {
    let of_file = |path: PathBuf| {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        (name, siblings(&fs::read_to_string(path).unwrap()))
    };
    let paths = fs::read_dir(source().join(folder)).unwrap().map(|entry| entry.unwrap().path());
    let mut found: BTreeMap<_, _> = paths.filter(|path| path.is_file()).map(of_file).collect();
    found.remove("mod");
    found
}

/// Takes away the files that import from none that is left, until there are no more: what is left is in a circle, or imports
/// from one.
fn in_circles(mut left: BTreeMap<String, BTreeSet<String>>) -> BTreeMap<String, BTreeSet<String>> {
    loop {
        let free = left.iter().find(|(_, imports)| !imports.iter().any(|import| left.contains_key(import)));
        let Some(free) = free.map(|(name, _)| name.clone()) else { return left };
        left.remove(&free);
    }
}

/// The modules of message passing, by path, with those that each imports from. The table of algorithms is one; the modules
/// `mpi` and those that only hold others together by `mod` are left out.
fn imports_of_message_passing() -> BTreeMap<String, BTreeSet<String>> {
    let root = source().join("mpi");
    let texts: BTreeMap<String, String> = files(&root)
        .into_iter()
        .map(|file| {
            let inside = file.strip_prefix(&root).unwrap().with_extension("");
            let path = inside.to_str().unwrap().replace('/', "::");
            (path.strip_suffix("::mod").unwrap_or(&path).to_owned(), fs::read_to_string(file).unwrap())
        })
        .filter(|(path, _)| path != "mod" && !path.starts_with("collective::algorithms::"))
        .collect();
    let imports = |path: &str, text: &str| {
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        let folder = if texts.keys().any(|other| other.starts_with(&format!("{path}::"))) {
            path
        } else {
            path.rsplit_once("::").map_or("", |(folder, _)| folder)
        };
        let named = code.lines().filter_map(|line| line.strip_prefix("use ")).flat_map(|line| {
            let (base, rest) = match (line.strip_prefix("crate::mpi::"), line.strip_prefix("super::")) {
                (Some(rest), _) => ("", rest),
                (None, Some(rest)) => (folder, rest),
                (None, None) if folder == path => (folder, line),
                (None, None) => return Vec::new(),
            };
            let rest = rest.trim_end_matches(';');
            let members = rest.strip_prefix('{').map_or_else(|| vec![rest], members);
            members.iter().map(|member| format!("{base}::{member}").trim_start_matches("::").to_owned()).collect()
        });
        let known = |name: String| {
            let parts: Vec<&str> = name.split("::").collect();
            let paths = (1..=parts.len()).rev().map(|end| parts[..end].join("::"));
            paths.into_iter().find(|other| other != path && texts.contains_key(other))
        };
        named.filter_map(known).collect()
    };
    texts.iter().map(|(path, text)| (path.clone(), imports(path, text))).collect()
}

#[test]
fn the_files_of_message_passing_import_in_one_direction() {
    let imports = imports_of_message_passing();
    assert!(imports.len() > 35 && imports["p2p"].contains("p2p::transmit"), "{imports:?}");
    assert!(imports["rank"].contains("p2p::matching") && imports["p2p::wait"].contains("messaging"), "{imports:?}");
    let left = in_circles(imports);
    assert!(left.is_empty(), "these files import from each other in a circle: {left:?}");
}

#[test]
fn the_files_of_topologies_import_in_one_direction() {
    let imports = imports_between("topology");
    assert!(imports["names"].contains("graph") && imports["graph"].contains("rails_spec"), "{imports:?}");
    let left = in_circles(imports);
    assert!(left.is_empty(), "these files import from each other in a circle: {left:?}");
}
