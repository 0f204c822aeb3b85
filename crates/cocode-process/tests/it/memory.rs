//! The guard of a large owner stays small.

use cocode_process::{GuardedChild, spawn};

use crate::shell;
use crate::system::{eventually, parent, private_kilobytes};

const HEAP_BYTES: usize = 200 * 1024 * 1024;

/// Kilobytes that a guard may hold alone.
const MOST_PRIVATE: u64 = 1024;

fn touch(heap: &mut [u8], value: u8) {
    for page in heap.chunks_mut(4096) {
        page[0] = value;
    }
}

/// Writes to every page of the heap, which leaves the old pages to whoever still holds them, and
/// waits for the guard to be small. One that keeps them never gets small.
fn check(child: &GuardedChild, heap: &mut [u8]) {
    let guard = parent(child.pid());
    touch(heap, 2);
    eventually("the guard is small", || {
        private_kilobytes(guard) < MOST_PRIVATE
    });
    touch(heap, 3);
    let private = private_kilobytes(guard);
    assert!(private < MOST_PRIVATE, "{private} kB");
}

#[tokio::test]
async fn the_guard_of_a_large_owner_is_small() {
    let mut heap = vec![1; HEAP_BYTES];
    let mut child = spawn(&shell("cat; exit 5")).unwrap();
    check(&child, &mut heap);
    // It still does its work without all that memory.
    drop(child.take_stdin());
    assert_eq!(child.wait().await.to_string(), "exit code 5");
}

#[tokio::test]
async fn small_allocations_do_not_make_the_guard_large() {
    // Below the size that gets a mapping of its own, so that the C library's heap grows.
    let mut heaps: Vec<Vec<u8>> = (0..2000).map(|_| vec![1; 64 * 1024]).collect();
    let child = spawn(&shell("sleep 300")).unwrap();
    let guard = parent(child.pid());
    for heap in &mut heaps {
        touch(heap, 2);
    }
    eventually("the guard is small", || {
        private_kilobytes(guard) < MOST_PRIVATE
    });
}
