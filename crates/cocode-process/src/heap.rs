//! The heap of this process.
#![cfg_attr(
    all(target_os = "linux", target_env = "gnu"),
    expect(unsafe_code, reason = "malloc_trim is a function of the C library")
)]

/// Returns free heap pages to the operating system. The GNU C library keeps them otherwise, wherever a live block is
/// behind them; with other allocators this does nothing. Locks the allocator meanwhile: not for a thread that serves
/// requests.
pub fn release_free_heap() {
    // SAFETY: it takes no pointer, may be called by any thread, and leaves allocated memory as it is.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests {
    #[test]
    fn free_heap_between_live_blocks_is_returned() {
        const BLOCK: usize = 16 * 1024;
        let resident_kib = || -> usize {
            let status = std::fs::read_to_string("/proc/self/status").unwrap();
            let resident = status.split("VmRSS:").nth(1).unwrap();
            resident.split_whitespace().next().unwrap().parse().unwrap()
        };
        let mut blocks: Vec<Vec<u8>> = (0..4096).map(|_| vec![1; BLOCK]).collect();
        // Every sixteenth stays, so that the heap cannot shrink at its end.
        let mut number = 0;
        blocks.retain(|_| {
            number += 1;
            number % 16 == 0
        });
        let before = resident_kib();
        super::release_free_heap();
        let released = before.saturating_sub(resident_kib());
        let freed = 4096 * 15 / 16 * BLOCK / 1024;
        assert!(released > freed / 2, "{released} of {freed} KiB");
        drop(blocks);
    }
}
