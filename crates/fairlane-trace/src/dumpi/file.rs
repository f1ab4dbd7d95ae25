//! The frame of a DUMPI file: the index at its end, the header, the sizes of datatypes and the counts of calls.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::calls::END_OF_STREAM;
use super::cursor::{Cursor, Fault};
use crate::error::TraceError;

const MAGIC: u64 = 0xFFAA_DD44_554D_5049;
const FOOTER_MAGIC: u64 = 0xF007_FEE7;

/// How many function numbers the footer counts.
const COUNTED: usize = 290;

/// One rank's file, as far as it is kept in memory.
pub struct TraceFile {
    /// Where it is.
    pub path: Arc<Path>,
    /// DUMPI's version.
    pub version: [u8; 3],
    /// Where the records start, behind the two time biases.
    pub body: u64,
    /// Where the records end at the latest.
    pub body_end: u64,
    /// The sizes of datatypes in bytes, by datatype number.
    pub sizes: Arc<[i32]>,
    /// How often each function was called and recorded, if the file says so.
    pub calls: Option<Box<[u32]>>,
}

/// The offsets of a file's parts; 0 for a part that is not there.
struct Index {
    sizes: u64,
    header: u64,
    body: u64,
    footer: u64,
    all: [u64; 7],
}

impl TraceFile {
    /// Reads the frame.
    pub fn open(path: &Path) -> Result<Self, TraceError> {
        let length = std::fs::metadata(path).map_err(|e| TraceError::file(path, e))?.len();
        Self::read(path.into(), length).map_err(|problem| TraceError::file(path, problem))
    }

    fn read(path: Arc<Path>, length: u64) -> Result<Self, Fault> {
        let at = |offset: u64| Cursor::new(Arc::clone(&path), offset, length);
        if length < 64 || at(0).u64()? != MAGIC {
            return Err("not a DUMPI file: it does not start with its magic number".to_owned());
        }
        let index = read_index(at(length - 64))?;
        if let Some(outside) = index.all.iter().find(|&&offset| offset >= length) {
            return Err(format!("the index points to offset {outside}, but the file has {length} bytes"));
        }
        if index.body < 8 || index.header == 0 {
            return Err("the index names no records or no header".to_owned());
        }
        let mut header = at(index.header);
        let version = [header.u8()?, header.u8()?, header.u8()?];
        if version[0] > 13 {
            return Err(format!(
                "DUMPI version {}.{}.{}; versions up to 13 are known",
                version[0], version[1], version[2]
            ));
        }
        let sizes = if index.sizes > 0 { read_sizes(at(index.sizes))? } else { Vec::new() };
        let calls = if index.footer > 0 { Some(read_counts(at(index.footer))?) } else { None };
        let behind = index.all.iter().copied().filter(|&offset| offset > index.body).min();
        let (body, body_end) = (index.body + 8, behind.unwrap_or(length - 64));
        Ok(Self { version, body, body_end, sizes: sizes.into(), calls, path })
    }

    /// A cursor at the first record.
    pub fn records(&self) -> Cursor {
        Cursor::new(Arc::clone(&self.path), self.body, self.body_end)
    }

    /// The path as the errors want it.
    pub fn path(&self) -> PathBuf {
        self.path.to_path_buf()
    }
}

/// The index is the end of the file: the magic number, then offsets; older files have up to three offsets fewer.
fn read_index(mut cursor: Cursor) -> Result<Index, Fault> {
    let mut words = [0; 8];
    for word in &mut words {
        *word = cursor.u64()?;
    }
    let start = (0..4).find(|&i| words[i] == MAGIC).ok_or("no index at the end: the file is cut off")?;
    let mut all = [0; 7];
    all[start..].copy_from_slice(&words[start + 1..]);
    let [sizes, _addresses, _counters, header, body, footer, _keys] = all;
    Ok(Index { sizes, header, body, footer, all })
}

fn read_sizes(mut cursor: Cursor) -> Result<Vec<i32>, Fault> {
    let count = cursor.count(4)?;
    (0..count).map(|_| cursor.i32()).collect()
}

fn read_counts(mut cursor: Cursor) -> Result<Box<[u32]>, Fault> {
    if cursor.u64()? != FOOTER_MAGIC {
        return Err("the footer does not start with its magic number".to_owned());
    }
    (0..COUNTED).map(|_| cursor.u32()).collect()
}

const _: () = assert!(COUNTED < END_OF_STREAM as usize);
