//! Gives deep work a stack that is deep enough.

use super::limits::{DEEP_STACK_BYTES, INLINE_LEVELS};

/// Runs `work`, which goes `levels` deep: here if that is surely fine, and otherwise on a thread
/// with a large stack. Nothing if there is none to be had.
pub(super) fn with_stack_for<T: Send>(levels: u32, work: impl FnOnce() -> T + Send) -> Option<T> {
    if levels <= INLINE_LEVELS {
        return Some(work());
    }
    std::thread::scope(|scope| {
        let builder = std::thread::Builder::new()
            .name("deep-schema".to_owned())
            .stack_size(DEEP_STACK_BYTES);
        builder.spawn_scoped(scope, work).ok()?.join().ok()
    })
}

/// How deep JSON text is nested. Reads each byte once and recurses nowhere.
pub(crate) fn depth_of(text: &[u8]) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let mut bytes = text.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'[' | b'{' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            b'"' => {
                while let Some(byte) = bytes.next() {
                    match byte {
                        b'\\' => {
                            bytes.next();
                        }
                        b'"' => break,
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    deepest
}
