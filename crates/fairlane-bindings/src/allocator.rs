//! The allocator of the simulator's memory: jemalloc with transparent huge pages.
//!
//! On a large fabric the engine's limit is memory latency, and with pages of 4 KiB a good part of it are misses of the
//! translation lookaside buffer.

use tikv_jemallocator::Jemalloc;

#[global_allocator]
static JEMALLOC: Jemalloc = Jemalloc;

/// jemalloc reads its options from this symbol. `thp:always` asks for huge pages wherever the system has them on request.
#[allow(unsafe_code, reason = "the symbol's name is jemalloc's")]
#[unsafe(export_name = "_rjem_malloc_conf")]
static OPTIONS: &[u8; 11] = b"thp:always\0";
