//! Systems without Landlock: nothing is ever confined, and so nothing that wants to be is started.

use std::convert::Infallible;
use std::io;
use std::path::Path;

use super::{ConfineError, Confinement, Support};

/// There are none.
#[derive(Debug)]
pub(crate) struct Ruleset(Infallible);

impl Ruleset {
    pub(crate) fn enter(&self) -> io::Result<()> {
        match self.0 {}
    }
}

pub(super) fn filters_sockets() -> bool {
    false
}

pub(crate) fn probe() -> Support {
    Support::OtherSystem
}

pub(crate) fn prepare(
    _confinement: &Confinement,
    _base: Option<&Path>,
    support: Support,
) -> Result<Ruleset, ConfineError> {
    Err(ConfineError::Unsupported { support })
}
