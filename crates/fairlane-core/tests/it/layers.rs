//! The layers of the crate: imports point to lower layers only, and every file of a registry stands in its table.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use fairlane_core::mpi::collective::algorithms::{self as collectives, Algorithm};
use fairlane_core::network::transport;
use fairlane_core::qos::arbiter;
use fairlane_core::{routing, topology};
use syn::visit::{self, Visit};
use syn::{Ident, ItemMod, ItemUse, Macro, UseName, UsePath, UseRename, UseTree, Visibility};

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

/// The paths that a file names outside its tests: in imports, in code and in macros.
#[derive(Default)]
struct Paths {
    named: BTreeSet<Vec<String>>,
    /// Items that it hands on, by the name under which it does.
    handed_on: BTreeMap<String, Vec<String>>,
}

impl Paths {
    fn of(text: &str) -> Self {
        let mut paths = Self::default();
        paths.visit_file(&syn::parse_file(text).unwrap());
        paths
    }

    fn add(&mut self, private: bool, name: &Ident, path: Vec<String>) {
        if private {
            self.named.insert(path);
        } else {
            self.handed_on.insert(name.to_string(), path);
        }
    }

    fn add_tree(&mut self, private: bool, tree: &UseTree, mut path: Vec<String>) {
        match tree {
            UseTree::Path(UsePath { ident, tree, .. }) => {
                path.push(ident.to_string());
                self.add_tree(private, tree, path);
            }
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.add_tree(private, tree, path.clone())),
            UseTree::Name(UseName { ident }) | UseTree::Rename(UseRename { ident, .. }) => {
                let name = if let UseTree::Rename(UseRename { rename, .. }) = tree { rename } else { ident };
                path.push(ident.to_string());
                self.add(private, name, path);
            }
            UseTree::Glob(_) => _ = self.named.insert(path),
        }
    }
}

impl<'text> Visit<'text> for Paths {
    fn visit_item_use(&mut self, item: &'text ItemUse) {
        self.add_tree(matches!(item.vis, Visibility::Inherited), &item.tree, Vec::new());
    }

    fn visit_path(&mut self, path: &'text syn::Path) {
        self.named.insert(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, mac: &'text Macro) {
        // Without its texts.
        let tokens: String = mac.tokens.to_string().replace(' ', "").split('"').step_by(2).collect();
        let inside = |letter: char| letter.is_alphanumeric() || "_:".contains(letter);
        let paths = tokens.match_indices("crate::").map(|(start, _)| {
            let path: String = tokens[start..].chars().take_while(|letter| inside(*letter)).collect();
            path.split("::").map(str::to_owned).collect()
        });
        self.named.extend(paths);
        visit::visit_macro(self, mac);
    }

    fn visit_item_mod(&mut self, item: &'text ItemMod) {
        if item.ident != "tests" {
            visit::visit_item_mod(self, item);
        }
    }
}

/// The modules of this crate that a text names as `crate::module`.
fn imports(text: &str) -> BTreeSet<String> {
    let Paths { named, handed_on } = Paths::of(text);
    let paths = named.into_iter().chain(handed_on.into_values());
    paths.filter(|path| path[0] == "crate").filter_map(|path| path.get(1).cloned()).collect()
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
    let text = "use crate::ids::Rank; // crate::network\nconst X: u64 = crate::units::Bytes(1).0 + my_crate::qos::x();\n\
                pub use crate::{\n    mpi::{self, wait},\n    table::Table as Rows,\n};\nuse std::fmt;\n\
                fn f() { assert!(crate::rng::draw(1) > 0); }\nmod tests { use crate::results; }";
    assert_eq!(imports(text).into_iter().collect::<Vec<_>>(), ["ids", "mpi", "rng", "table", "units"]);
    assert_eq!(Paths::of(text).handed_on["Rows"], ["crate", "table", "Table"]);
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

/// Removes files that import no file that is left, and files that no file that is left imports, until there are none: those that
/// are left are in a circle, or on a path between two.
fn in_circles(mut left: BTreeMap<String, BTreeSet<String>>) -> BTreeMap<String, BTreeSet<String>> {
    loop {
        let free = left.iter().find(|(name, imports)| {
            !imports.iter().any(|import| left.contains_key(import))
                || !left.values().any(|imports| imports.contains(*name))
        });
        let Some(free) = free.map(|(name, _)| name.clone()) else { break };
        left.remove(&free);
    }
    let names: BTreeSet<String> = left.keys().cloned().collect();
    left.values_mut().for_each(|imports| imports.retain(|import| names.contains(import)));
    left
}

/// The modules of a folder, by path, with those that each names: where an item is defined, if a module hands it on. What a module names
/// of those that it is in is not looked at.
fn imports_between(folder: &str) -> BTreeMap<String, BTreeSet<String>> {
    let root = source();
    let texts: BTreeMap<String, String> = files(&root.join(folder))
        .into_iter()
        .chain(Some(root.join(folder).with_extension("rs")).filter(|file| file.exists()))
        .map(|file| {
            let inside = file.strip_prefix(&root).unwrap().with_extension("");
            let path = inside.to_str().unwrap().replace('/', "::");
            (path.strip_suffix("::mod").unwrap_or(&path).to_owned(), fs::read_to_string(file).unwrap())
        })
        .collect();
    let absolute = |module: &str, path: &[String]| {
        let mut base: Vec<&str> = module.split("::").collect();
        let mut rest = path.iter().map(String::as_str).peekable();
        if rest.next_if_eq(&"crate").is_some() {
            base.clear();
        }
        while rest.next_if(|part| ["self", "super"].contains(part)).is_some_and(|part| part == "super") {
            base.pop();
        }
        base.into_iter().chain(rest).collect::<Vec<_>>().join("::")
    };
    let paths: BTreeMap<&String, Paths> = texts.iter().map(|(module, text)| (module, Paths::of(text))).collect();
    let handed_on = paths.iter().flat_map(|(module, paths)| {
        paths.handed_on.iter().map(move |(name, path)| (format!("{module}::{name}"), absolute(module, path)))
    });
    let defined: BTreeMap<String, String> = handed_on.collect();
    let module_of = |mut path: String| {
        let mut seen = BTreeSet::new();
        while !texts.contains_key(&path) {
            match defined.get(&path).filter(|_| seen.insert(path.clone())) {
                Some(definition) => path.clone_from(definition),
                None => path.truncate(path.rfind("::")?),
            }
        }
        Some(path)
    };
    let imports = |module: &String| {
        let modules = paths[module].named.iter().filter_map(|path| module_of(absolute(module, path)));
        let others = modules.filter(|other| other != module && !module.starts_with(&format!("{other}::")));
        (module.clone(), others.collect())
    };
    texts.keys().map(imports).collect()
}

#[test]
fn files_import_in_one_direction() {
    let found = |folder, module: &str, import: &str| {
        assert!(imports_between(folder)[module].contains(import), "{module} imports {import}");
    };
    found("topology", "topology::names", "topology::graph");
    found("network", "network::engine", "network::shard");
    found("mpi", "mpi::rank", "mpi::p2p::matching");
    found("mpi", "mpi::p2p::wait", "mpi::messaging");
    for folder in ["kernel", "topology", "routing", "qos", "program", "observe", "network", "mpi", "results"] {
        let left = in_circles(imports_between(folder));
        assert!(left.is_empty(), "these files import from each other in a circle: {left:#?}");
    }
}
