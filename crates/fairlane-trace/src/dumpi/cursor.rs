//! A position in a file, read through a small window.
//!
//! The file is opened only to refill the window, so that traces of thousands of ranks need no open files, and a copy
//! of a cursor is a position.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

/// Bytes read at once: some hundreds of records.
const WINDOW: usize = 16 * 1024;

/// The problem at the cursor, in words.
pub type Fault = String;

/// A position in a range of a file.
pub struct Cursor {
    path: Arc<Path>,
    /// The part of the file in memory, and where in the file it ends.
    window: Vec<u8>,
    window_end: u64,
    /// The position within the window.
    at: usize,
    /// Where the range ends.
    end: u64,
}

impl Clone for Cursor {
    fn clone(&self) -> Self {
        Self::new(Arc::clone(&self.path), self.position(), self.end)
    }
}

impl Cursor {
    /// A cursor at `start` that must not go beyond `end`.
    pub const fn new(path: Arc<Path>, start: u64, end: u64) -> Self {
        Self { path, window: Vec::new(), window_end: start, at: 0, end }
    }

    /// The offset in the file.
    pub const fn position(&self) -> u64 {
        self.window_end - (self.window.len() - self.at) as u64
    }

    /// The bytes up to the end of the range.
    pub const fn left(&self) -> u64 {
        self.end.saturating_sub(self.position())
    }

    fn cut_off(&self, wanted: usize) -> Fault {
        format!("{wanted} bytes expected at offset {}, {} left: the file is cut off", self.position(), self.left())
    }

    #[cold]
    #[inline(never)]
    fn refill(&mut self, wanted: usize) -> Result<(), Fault> {
        let position = self.position();
        if wanted as u64 > self.left() {
            return Err(self.cut_off(wanted));
        }
        let size = WINDOW.max(wanted).min(usize::try_from(self.left()).unwrap_or(usize::MAX));
        self.window.resize(size, 0);
        self.at = 0;
        self.window_end = position + size as u64;
        let mut file = File::open(&self.path).map_err(|e| format!("cannot be opened again: {e}"))?;
        file.seek(SeekFrom::Start(position)).map_err(|e| format!("offset {position}: {e}"))?;
        file.read_exact(&mut self.window).map_err(|e| format!("offset {position}: {e}"))
    }

    /// The next `size` bytes.
    #[inline]
    pub fn take(&mut self, size: usize) -> Result<&[u8], Fault> {
        if self.window.len() - self.at < size {
            self.refill(size)?;
        }
        self.at += size;
        Ok(&self.window[self.at - size..self.at])
    }

    /// Goes past the next `size` bytes.
    pub fn skip(&mut self, size: usize) -> Result<(), Fault> {
        if size as u64 > self.left() {
            return Err(self.cut_off(size));
        }
        if self.window.len() - self.at >= size {
            self.at += size;
        } else {
            self.window_end = self.position() + size as u64;
            self.window.clear();
            self.at = 0;
        }
        Ok(())
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let mut bytes = [0; N];
        bytes.copy_from_slice(self.take(N)?);
        Ok(bytes)
    }

    pub fn u8(&mut self) -> Result<u8, Fault> {
        Ok(self.array::<1>()?[0])
    }

    pub fn u16(&mut self) -> Result<u16, Fault> {
        self.array().map(u16::from_be_bytes)
    }

    pub fn u32(&mut self) -> Result<u32, Fault> {
        self.array().map(u32::from_be_bytes)
    }

    pub fn i32(&mut self) -> Result<i32, Fault> {
        self.array().map(i32::from_be_bytes)
    }

    pub fn u64(&mut self) -> Result<u64, Fault> {
        self.array().map(u64::from_be_bytes)
    }

    /// A count of items of at least `item` bytes each; an error when they cannot all be there.
    pub fn count(&mut self, item: u64) -> Result<usize, Fault> {
        let at = self.position();
        let count = self.i32()?;
        match u64::try_from(count) {
            Ok(n) if n * item <= self.left() => Ok(usize::try_from(n).expect("invariant: it came from an i32")),
            Ok(_) => Err(format!("a list of {count} items at offset {at} runs past the end: the file is cut off")),
            Err(_) => Err(format!("a list of {count} items at offset {at}")),
        }
    }
}
