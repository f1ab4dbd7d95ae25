//! OTF2, as Score-P writes it: MPI's events, read with OTF2's own library.
//!
//! The archive's receives become known when they complete; a second cursor reads ahead to the completion, so that they
//! are posted with source, tag and communicator. Communicators come from the definitions: a rank's first use of one makes
//! it known ([`fairlane_core::program::Comm::Define`]). Other threads of a rank are not
//! simulated: a description lists the calls by which they communicate.

mod collective_calls;
mod collectives;
mod completions;
mod definitions;
mod describe;
mod event;
mod library;
mod messages;
mod needs;
mod one_sided;
mod source;

use std::path::Path;
use std::sync::Arc;

use fairlane_core::program::{Program, Source};

use self::library::Archive;
use self::source::RankReader;
use crate::error::TraceError;
use crate::{Iteration, Options};

pub use self::describe::describe;

/// Opens an archive with the library that the options name.
fn archive(anchor: &Path, options: &Options) -> Result<Arc<Archive>, TraceError> {
    let wanted = "OTF2 archives are read with OTF2's own library: libotf2.so, or the extension module of the Python \
                  package otf2 in a Python process";
    let option = |value: String, problem: String| TraceError::Option { key: "otf2_library", value, problem };
    let library = options.otf2_library.as_deref().ok_or_else(|| option(String::new(), format!("not set; {wanted}")))?;
    if !library.is_file() {
        return Err(option(library.display().to_string(), format!("no such file; {wanted}")));
    }
    // The loader takes a relative path for a name to be looked up elsewhere.
    let library = library.canonicalize().map_err(|e| option(library.display().to_string(), e.to_string()))?;
    Archive::open(&library, anchor).map(Arc::new).map_err(|problem| TraceError::file(anchor, problem))
}

/// One reader per rank.
fn readers(archive: &Arc<Archive>, anchor: &Path, options: &Options) -> Vec<RankReader> {
    let (anchor, options) = (Arc::new(anchor.to_owned()), Arc::new(options.clone()));
    let reader = |(rank, _)| RankReader::new(Arc::clone(archive), Arc::clone(&anchor), rank, &options);
    (0..).zip(&archive.definitions.ranks).map(reader).collect()
}

/// Checks that the archive has the region that bounds iterations.
fn known_region(archive: &Archive, options: &Options) -> Result<(), TraceError> {
    let Iteration::Region(name) = &options.iteration else { return Ok(()) };
    let known: Vec<&str> = archive.definitions.regions.values().map(|region| &*region.name).collect();
    if known.contains(&name.as_str()) {
        return Ok(());
    }
    Err(TraceError::unknown_name("iteration.region", name, "region", &known))
}

/// The program of an archive.
pub fn open(anchor: &Path, options: &Options) -> Result<Program, TraceError> {
    let archive = archive(anchor, options)?;
    known_region(&archive, options)?;
    let boxed = |reader: RankReader| Box::new(reader) as Box<dyn Source>;
    Ok(Program { ranks: readers(&archive, anchor, options).into_iter().map(boxed).collect() })
}
