//! Binary DUMPI, versions up to 13: one file per rank.

mod calls;
mod collectives;
mod communicators;
mod completions;
mod cursor;
mod describe;
mod file;
mod groups;
mod messages;
mod record;
mod requests;
mod sizes;
mod source;
mod windows;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fairlane_core::program::{Program, Source};

use self::calls::CALLS;
use self::file::TraceFile;
use self::source::RankReader;
use crate::error::TraceError;
use crate::{Iteration, Options};

pub use self::describe::describe;

/// Bytes of the longest `.meta` file that is read.
const LARGEST_META: u64 = 1 << 20;

/// The files of a set, by rank: those of a `.meta` file, or all `PREFIX-RANK.bin` of a directory.
pub fn find(path: &Path) -> Result<Vec<PathBuf>, TraceError> {
    if path.is_dir() {
        return find_in(path);
    }
    if path.extension().is_some_and(|e| e == "meta") {
        return find_by_meta(path);
    }
    let problem = if path.exists() {
        "not a trace; a directory of DUMPI files, a DUMPI .meta file, an OTF2 .otf2 file, or a .tar.zst archive of \
         one of these is wanted"
    } else {
        "no such file or directory"
    };
    Err(TraceError::file(path, problem))
}

fn find_in(directory: &Path) -> Result<Vec<PathBuf>, TraceError> {
    let entries = std::fs::read_dir(directory).map_err(|e| TraceError::file(directory, e))?;
    let files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    let mut metas: Vec<&PathBuf> = files.iter().filter(|f| f.extension().is_some_and(|e| e == "meta")).collect();
    metas.sort();
    match metas.as_slice() {
        [] => {}
        [meta] => return find_by_meta(meta),
        [first, second, ..] => {
            let problem = format!("several traces: {} and {}; name one", first.display(), second.display());
            return Err(TraceError::file(directory, problem));
        }
    }
    let ranked = |file: &PathBuf| {
        let (prefix, rank) = file.file_name()?.to_str()?.strip_suffix(".bin")?.rsplit_once('-')?;
        Some((prefix.to_owned(), rank.parse::<u32>().ok()?, file.clone()))
    };
    let mut found: Vec<(String, u32, PathBuf)> = files.iter().filter_map(ranked).collect();
    found.sort();
    let Some((prefix, ..)) = found.first().cloned() else {
        return Err(TraceError::file(directory, "no trace: no traces.otf2, no .meta file and no PREFIX-RANK.bin"));
    };
    for (expected, (other, rank, file)) in (0..).zip(&found) {
        if *other != prefix {
            return Err(TraceError::file(
                directory,
                format!("several traces: {prefix} and {other}; name a .meta file"),
            ));
        }
        if *rank != expected {
            return Err(TraceError::file(file, format!("the file of rank {expected} is missing")));
        }
    }
    Ok(found.into_iter().map(|(_, _, file)| file).collect())
}

/// The text of a `.meta` file, which has a few lines; a device without end does not fill the memory.
fn read_meta(meta: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    let read = std::fs::File::open(meta)?.take(LARGEST_META + 1).read_to_string(&mut text)?;
    if read as u64 > LARGEST_META {
        return Err(std::io::Error::other("longer than any .meta file"));
    }
    Ok(text)
}

fn find_by_meta(meta: &Path) -> Result<Vec<PathBuf>, TraceError> {
    let text = read_meta(meta).map_err(|e| TraceError::file(meta, e))?;
    let value = |key: &str| {
        let line = text.lines().filter_map(|line| line.split_once('=')).find(|(k, _)| k.trim() == key);
        line.map(|(_, value)| value.trim()).ok_or_else(|| TraceError::file(meta, format!("no line {key}=...")))
    };
    let (ranks, prefix) = (value("numprocs")?, value("fileprefix")?);
    let wanted = || TraceError::file(meta, format!("numprocs={ranks}: a number of at least 1 is wanted"));
    let count: u32 = ranks.parse().ok().filter(|&n| n > 0).ok_or_else(wanted)?;
    // It may have the folder of the recording, which is another one by now.
    let unnamed = || TraceError::file(meta, format!("fileprefix={prefix}: the name of the ranks' files is wanted"));
    let prefix = Path::new(prefix).file_name().and_then(|name| name.to_str()).ok_or_else(unnamed)?;
    let directory = meta.parent().unwrap_or(Path::new("."));
    // The list grows with the files that exist, not with the number that the .meta file claims.
    let mut files = Vec::new();
    for rank in 0..count {
        let file = directory.join(format!("{prefix}-{rank:04}.bin"));
        if !file.is_file() {
            return Err(TraceError::file(&file, format!("missing; {} names {count} ranks", meta.display())));
        }
        files.push(file);
    }
    Ok(files)
}

/// One reader per rank.
fn readers(files: &[PathBuf], options: &Options) -> Result<Vec<RankReader>, TraceError> {
    let options = Arc::new(options.clone());
    let ranks = u32::try_from(files.len()).expect("invariant: ranks are numbered with 32 bits");
    (0..ranks)
        .zip(files)
        .map(|(rank, file)| Ok(RankReader::new(Arc::new(TraceFile::open(file)?), rank, ranks, &options)))
        .collect()
}

/// The program of a set of files.
pub fn open(files: &[PathBuf], options: &Options) -> Result<Program, TraceError> {
    if let Iteration::Region(name) = &options.iteration {
        let known: Vec<&str> = CALLS.iter().map(|format| format.name).collect();
        if !known.contains(&name.as_str()) {
            return Err(TraceError::unknown_name("iteration.region", name, "call", &known));
        }
    }
    let boxed = |reader: RankReader| Box::new(reader) as Box<dyn Source>;
    Ok(Program { ranks: readers(files, options)?.into_iter().map(boxed).collect() })
}
