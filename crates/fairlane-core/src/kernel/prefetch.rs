//! Asks the processor to fetch what will be needed soon: the engine's limit is memory latency.

const LINE: usize = 64;

/// Starts to fetch `record` into the cache. Changes nothing that a program can see.
#[inline(always)]
pub fn prefetch<T: ?Sized>(record: &T) {
    fetch(std::ptr::from_ref(record).cast(), size_of_val(record), align_of_val(record));
}

/// Starts to fetch a record of a table. Of a number that is not in the table nothing useful is fetched, and nothing happens.
#[inline(always)]
pub fn prefetch_at<T>(table: &[T], number: usize) {
    fetch(table.as_ptr().wrapping_add(number).cast(), size_of::<T>(), align_of::<T>());
}

#[inline(always)]
#[allow(unsafe_code, reason = "the intrinsic takes a pointer")]
fn fetch(start: *const i8, size: usize, align: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let mut offset = 0;
        while offset < size {
            // SAFETY: a prefetch reads nothing and takes any address.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(start.wrapping_add(offset)) };
            offset += LINE;
        }
        // It may end in one line more than it would fill.
        if size > align && align < LINE {
            // SAFETY: as above.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(start.wrapping_add(size - 1)) };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (start, size, align);
}
