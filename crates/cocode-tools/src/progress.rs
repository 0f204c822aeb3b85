//! How a tool tells that it is still at work.

/// Hears how far a call is.
///
/// It is called from the task that drives the call, so it must be quick and must not block.
pub trait Progress: Send + Sync {
    /// So much is done, of a total if that is known. Within one call `done` grows with every
    /// report.
    fn report(&self, done: u64, total: Option<u64>, message: &str);
}

/// Hears nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoProgress;

impl Progress for NoProgress {
    fn report(&self, _done: u64, _total: Option<u64>, _message: &str) {}
}
