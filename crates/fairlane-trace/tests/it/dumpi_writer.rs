//! Writes DUMPI files call by call, after the format's description and not after the reader.

use std::path::Path;

use fairlane_core::program::{Op, Source};
use fairlane_trace::{Options, TraceError, open};
use tempfile::TempDir;

pub const ANY: i32 = -1;
pub const PROC_NULL: i32 = -2;
pub const REQUEST_NULL: i32 = 1;
pub const INT: u16 = 9;
pub const DOUBLE: u16 = 14;
pub const WORLD: u16 = 2;
pub const COMM_SELF: u16 = 3;
const MAGIC: u64 = 0xFFAA_DD44_554D_5049;

/// An argument of a call.
#[derive(Clone, Copy)]
pub enum Arg<'a> {
    /// A number.
    I(i32),
    /// A handle of 16 bits.
    H(u16),
    /// A handle of 8 bits.
    B(u8),
    /// A number of 64 bits.
    Q(i64),
    /// A list of numbers.
    L(&'a [i32]),
    /// A list of datatypes.
    D(&'a [u16]),
    /// A text.
    T(&'a str),
    /// A list of texts.
    TS(&'a [&'a str]),
    /// Statuses: source, tag, cancelled.
    S(&'a [(i32, i32, bool)]),
}

/// The clocks that a file records.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Clocks {
    None,
    Wall,
    Cpu,
    Both,
}

/// One rank's file in the making. Calls last 500 ns; the CPU computes 1000 ns between them, the wall clock shows 7000 ns.
pub struct Writer {
    bytes: Vec<u8>,
    version: [u8; 3],
    clocks: Clocks,
    pub sizes: Vec<i32>,
    /// How often `MPI_Cancel` is called, for the footer.
    cancels: u32,
    moment: u32,
}

impl Writer {
    /// A file with `MPI_Init` in it.
    pub fn new() -> Self {
        Self::with_version([13, 0, 0])
    }

    pub fn with_version(version: [u8; 3]) -> Self {
        Self::with(version, Clocks::Both)
    }

    pub fn with_clocks(clocks: Clocks) -> Self {
        Self::with([13, 0, 0], clocks)
    }

    fn with(version: [u8; 3], clocks: Clocks) -> Self {
        let mut writer = Self { bytes: Vec::new(), version, clocks, sizes: vec![], cancels: 0, moment: 0 };
        writer.bytes.extend(MAGIC.to_be_bytes());
        writer.bytes.extend([0; 8]);
        if version < [0, 6, 2] {
            writer.call(124, &[Arg::I(1), Arg::I(1), Arg::T("./app")]);
        } else {
            writer.call(124, &[Arg::I(1), Arg::T("./app")]);
        }
        writer
    }

    /// Adds a call.
    pub fn call(&mut self, function: u16, arguments: &[Arg<'_>]) -> &mut Self {
        let with_statuses = arguments.iter().any(|a| matches!(a, Arg::S(_)));
        let (cpu, wall) =
            (matches!(self.clocks, Clocks::Cpu | Clocks::Both), matches!(self.clocks, Clocks::Wall | Clocks::Both));
        let mask = 0x40 + 3 * u8::from(with_statuses) + 4 * u8::from(cpu) + 8 * u8::from(wall);
        self.bytes.extend(function.to_be_bytes());
        self.bytes.extend([mask, 0, 0]);
        for (on, step) in [(cpu, 1500), (wall, 7500)] {
            if on {
                for time in [self.moment * step, self.moment * step + 500] {
                    self.bytes.extend([0, 3]);
                    self.bytes.extend(time.to_be_bytes());
                }
            }
        }
        self.moment += 1;
        self.cancels += u32::from(function == 24);
        arguments.iter().for_each(|argument| self.argument(*argument));
        self
    }

    fn argument(&mut self, argument: Arg<'_>) {
        let length = |n: usize| i32::try_from(n).unwrap().to_be_bytes();
        match argument {
            Arg::I(n) => self.bytes.extend(n.to_be_bytes()),
            Arg::H(n) => self.bytes.extend(n.to_be_bytes()),
            Arg::B(n) => self.bytes.push(n),
            Arg::Q(n) => self.bytes.extend(n.to_be_bytes()),
            Arg::TS(texts) => {
                self.bytes.extend(length(texts.len()));
                texts.iter().for_each(|text| self.argument(Arg::T(text)));
            }
            Arg::L(list) => {
                self.bytes.extend(length(list.len()));
                list.iter().for_each(|n| self.bytes.extend(n.to_be_bytes()));
            }
            Arg::D(list) => {
                self.bytes.extend(length(list.len()));
                list.iter().for_each(|n| self.bytes.extend(n.to_be_bytes()));
            }
            Arg::T(text) => {
                self.bytes.extend(length(text.len()));
                self.bytes.extend(text.as_bytes());
            }
            Arg::S(statuses) => {
                self.bytes.extend(length(statuses.len()));
                for (source, tag, cancelled) in statuses {
                    self.bytes.extend(8_i32.to_be_bytes());
                    self.bytes.extend(source.to_be_bytes());
                    self.bytes.extend([u8::from(*cancelled), 0]);
                    if self.version >= [0, 6, 3] {
                        self.bytes.extend(tag.to_be_bytes());
                    }
                }
            }
        }
    }

    /// The file, with `MPI_Finalize`, header, footer, sizes of datatypes and index.
    pub fn finish(&mut self) -> Vec<u8> {
        let so_far = self.bytes.len();
        self.call(125, &[]);
        let mut bytes = self.bytes.clone();
        self.bytes.truncate(so_far);
        bytes.extend(293_u16.to_be_bytes());
        let header = bytes.len() as u64;
        bytes.extend(self.version);
        bytes.extend(0_u64.to_be_bytes());
        for text in ["host", "user"] {
            bytes.extend(u16::try_from(text.len()).unwrap().to_be_bytes());
            bytes.extend(text.as_bytes());
        }
        bytes.extend([0; 8]);
        let footer = bytes.len() as u64;
        bytes.extend(0xF007_FEE7_u64.to_be_bytes());
        (0..582).for_each(|i| bytes.extend((if i == 24 { self.cancels } else { 0 }).to_be_bytes()));
        let sizes = if self.sizes.is_empty() { 0 } else { bytes.len() as u64 };
        if sizes > 0 {
            bytes.extend(i32::try_from(self.sizes.len()).unwrap().to_be_bytes());
            self.sizes.iter().for_each(|size| bytes.extend(size.to_be_bytes()));
        }
        for word in [MAGIC, sizes, 0, 0, header, 8, footer, 0] {
            bytes.extend(word.to_be_bytes());
        }
        bytes
    }
}

/// Writes the files of a set into a directory.
pub fn write(directory: &Path, files: &[Vec<u8>]) {
    let lines = format!("hostname=host\nnumprocs={}\nfileprefix=t\nversion=13\n", files.len());
    std::fs::write(directory.join("t.meta"), lines).unwrap();
    for (rank, bytes) in files.iter().enumerate() {
        std::fs::write(directory.join(format!("t-{rank:04}.bin")), bytes).unwrap();
    }
}

/// Opens a set in which all ranks have the same file.
pub fn open_copies(
    bytes: &[u8],
    ranks: usize,
    options: &Options,
) -> Result<(TempDir, Vec<Box<dyn Source>>), TraceError> {
    let directory = TempDir::new().unwrap();
    write(directory.path(), &vec![bytes.to_vec(); ranks]);
    let program = open(directory.path(), options)?;
    Ok((directory, program.ranks))
}

/// The program of rank `rank` of `ranks` in a file: its operations without compute and without the mark at the end.
pub fn operations_of(writer: &mut Writer, rank: usize, ranks: usize) -> Result<Vec<Op>, String> {
    let options = Options { repeat: false, ..Options::default() };
    let (_directory, mut sources) = open_copies(&writer.finish(), ranks, &options).map_err(|e| e.to_string())?;
    let mut ops = Vec::new();
    while let Some(op) = sources[rank].next_op()? {
        if !matches!(op, Op::Compute(_)) {
            ops.push(op);
        }
    }
    assert_eq!(ops.pop(), Some(Op::MarkProgress));
    Ok(ops)
}

/// [`operations_of`] rank 1 of 4.
pub fn operations(writer: &mut Writer) -> Vec<Op> {
    operations_of(writer, 1, 4).unwrap()
}

/// The error of rank 1 of 4.
pub fn problem(writer: &mut Writer) -> String {
    operations_of(writer, 1, 4).unwrap_err()
}
