//! Asks the processor to fetch what will be needed soon: the engine's limit is memory latency.

/// Starts to fetch `record` into the cache. Changes nothing that a program can see.
#[inline]
#[allow(unsafe_code, reason = "the intrinsic takes a pointer")]
pub fn prefetch<T: ?Sized>(record: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        const LINE: usize = 64;
        let start = std::ptr::from_ref(record).cast::<i8>();
        let mut offset = 0;
        while offset < size_of_val(record) {
            // SAFETY: a prefetch reads nothing; `start + offset` lies within `record`.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(start.add(offset)) };
            offset += LINE;
        }
        // It may end in one line more than it would fill.
        if let Some(last) = size_of_val(record).checked_sub(1).filter(|_| align_of_val(record) < LINE) {
            // SAFETY: as above.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(start.add(last)) };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = record;
}
