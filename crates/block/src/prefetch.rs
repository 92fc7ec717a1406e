//! Fetching ahead of use.

/// Asks the processor to bring `place` into its caches. A hint: no value and no result depends on
/// it. It does something on x86-64 only; elsewhere stable Rust has no such instruction.
#[inline]
#[cfg_attr(
    target_arch = "x86_64",
    expect(
        unsafe_code,
        reason = "the instruction is reached through a pointer; proof at the call"
    )
)]
pub fn prefetch<T>(place: &T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch reads and writes nothing that a program can observe and never faults,
    // whatever the address (Intel SDM volume 2, PREFETCHh); the address here is that of a live
    // reference. Every x86-64 processor has the instruction.
    unsafe {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(core::ptr::from_ref(place).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}
