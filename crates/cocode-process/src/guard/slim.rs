//! Makes the guard small: a forked copy of a large process must not hold on to its memory.
//!
//! After the fork, owner and guard share all pages. Each page that the owner then writes would be
//! copied, and the old one would live as long as the guard. So the guard unmaps what it does not
//! need: anonymous private memory, except its stack, its thread-local data, its command line and
//! the data of loaded libraries.
#![expect(
    unsafe_code,
    reason = "unmaps memory and asks the loader where its data is"
)]

use std::ffi::{CStr, c_void};
use std::hint::black_box;

use libc::c_int;

use super::{proc, system};

/// Mappings below this size are not worth a thought; the loader's own small ones are among them.
const SMALLEST_BYTES: usize = 64 * 1024;

/// Stack kept below the current frame, for all calls that the guard will ever make.
const STACK_BELOW_BYTES: usize = 128 * 1024;

/// Stack kept above a local variable of the current frame, for the frames of its callers up to
/// [`watch`](super::watch).
const STACK_ABOVE_BYTES: usize = 64 * 1024;

/// Kept on both sides of the thread's control block, besides all thread-local data: the C library
/// and the kernel have data of their own there.
const THREAD_BYTES: usize = 64 * 1024;

/// The most writable segments of loaded libraries that are told apart.
const MOST_SEGMENTS: usize = 128;

/// Ranges besides the segments: stack, `errno`, thread control block, command line.
const OTHER_RANGES: usize = 4;

/// Where the writable data of the program and its libraries lies. Gathered before the fork,
/// because the loader's lock may be held by another thread at the moment of the fork.
#[derive(Debug, Clone)]
pub(super) struct Layout {
    page_bytes: usize,
    thread_local_bytes: usize,
    segments: Ranges<MOST_SEGMENTS>,
}

impl Layout {
    pub(super) fn capture() -> Self {
        let mut layout = Self {
            page_bytes: rustix::param::page_size(),
            thread_local_bytes: 0,
            segments: Ranges::new(),
        };
        // SAFETY: the callback gets the pointer to `layout` that is passed here, which outlives
        // the call and is not used otherwise meanwhile.
        unsafe {
            libc::dl_iterate_phdr(Some(note_object), (&raw mut layout).cast());
        }
        layout
    }
}

/// Called by the loader for each loaded object, one after the other.
///
/// SAFETY: `info` is valid as the loader promises, and `data` is the `Layout` of `capture`.
unsafe extern "C" fn note_object(
    info: *mut libc::dl_phdr_info,
    _size: libc::size_t,
    data: *mut c_void,
) -> c_int {
    // SAFETY: see above; both are exclusive for the duration of this call.
    let (info, layout) = unsafe { (&*info, &mut *data.cast::<Layout>()) };
    if info.dlpi_phdr.is_null() {
        return 0;
    }
    // SAFETY: the loader describes this many program headers at this address.
    let headers =
        unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    for header in headers {
        let bytes = to_usize(header.p_memsz);
        if header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_W != 0 {
            let start = to_usize(info.dlpi_addr).wrapping_add(to_usize(header.p_vaddr));
            layout
                .segments
                .push(start, start.saturating_add(bytes), layout.page_bytes);
        } else if header.p_type == libc::PT_TLS {
            layout.thread_local_bytes = layout.thread_local_bytes.saturating_add(bytes);
        }
    }
    0
}

/// The loader's words are as wide as an address, but have another type.
fn to_usize(word: impl TryInto<usize>) -> usize {
    word.try_into().unwrap_or(usize::MAX)
}

/// Renames the calling process and unmaps what it does not need. The heap is gone afterwards, and
/// with it `layout`, which lies there.
pub(super) fn shed_inherited_memory(layout: &Layout, name: &CStr) {
    system::set_name(name);
    let mut needed = Ranges::<{ MOST_SEGMENTS + OTHER_RANGES }>::new();
    let page = layout.page_bytes;
    let around = THREAD_BYTES.saturating_add(layout.thread_local_bytes);
    for address in [system::errno_address(), system::thread_address()] {
        needed.push(
            address.saturating_sub(around),
            address.saturating_add(around),
            page,
        );
    }
    let frame = (&raw const needed).addr();
    let above = frame.saturating_add(STACK_ABOVE_BYTES);
    needed.push(frame.saturating_sub(STACK_BELOW_BYTES), above, page);
    if let Some((start, end)) = proc::own_arguments() {
        proc::replace_arguments((start, end), name);
        needed.push(start, end, page);
    }
    for &(start, end) in layout.segments.as_slice() {
        needed.push(start, end, page);
    }
    if layout.segments.overflowed || needed.overflowed {
        // Better too large than crashed.
        return;
    }
    // From here on the compiler must take the list from the stack, not from `layout`.
    let needed = black_box(needed);
    proc::for_each_anonymous_mapping(|start, end| {
        if end.saturating_sub(start) >= SMALLEST_BYTES {
            for_each_gap(start, end, needed.as_slice(), unmap);
        }
    });
}

fn unmap(start: usize, end: usize) {
    let address = std::ptr::with_exposed_provenance_mut(start);
    // SAFETY: this process is a forked copy with a single thread that never returns to the code
    // that owns this memory. What its own code still uses is in the ranges that the caller left
    // out. A failure leaves the memory mapped, which only costs memory.
    unsafe {
        libc::munmap(address, end.saturating_sub(start));
    }
}

/// Visits the parts of a mapping that no needed range covers.
fn for_each_gap(
    mut start: usize,
    end: usize,
    needed: &[(usize, usize)],
    mut visit: impl FnMut(usize, usize),
) {
    while start < end {
        let next = needed
            .iter()
            .filter(|(from, to)| *from < end && *to > start)
            .min_by_key(|(from, _)| *from);
        let Some(&(from, to)) = next else {
            visit(start, end);
            return;
        };
        if from > start {
            visit(start, from);
        }
        start = to;
    }
}

/// A list of address ranges without a heap, rounded to whole pages.
#[derive(Debug, Clone)]
struct Ranges<const MOST: usize> {
    slots: [(usize, usize); MOST],
    length: usize,
    overflowed: bool,
}

impl<const MOST: usize> Ranges<MOST> {
    fn new() -> Self {
        Self {
            slots: [(0, 0); MOST],
            length: 0,
            overflowed: false,
        }
    }

    fn push(&mut self, start: usize, end: usize, page_bytes: usize) {
        let mask = page_bytes.wrapping_sub(1);
        match self.slots.get_mut(self.length) {
            Some(slot) => {
                *slot = (start & !mask, end.saturating_add(mask) & !mask);
                self.length = self.length.wrapping_add(1);
            }
            None => self.overflowed = true,
        }
    }

    fn as_slice(&self) -> &[(usize, usize)] {
        self.slots.get(..self.length).unwrap_or_default()
    }
}

#[cfg(test)]
#[path = "slim_tests.rs"]
mod tests;
