//! Systems without a sandbox: a program that is to be confined does not start.

use std::convert::Infallible;
use std::io;

use super::{ConfineError, Confinement, Support};

/// There are none.
#[derive(Debug)]
pub(crate) struct Ruleset(Infallible);

impl Ruleset {
    pub(crate) fn launcher(&self) -> Option<(&'static str, Vec<String>)> {
        match self.0 {}
    }

    pub(crate) fn enter(&self) -> io::Result<()> {
        match self.0 {}
    }
}

pub(crate) fn probe() -> Support {
    Support::OtherSystem
}

pub(crate) fn prepare(
    _confinement: &Confinement,
    support: Support,
) -> Result<Ruleset, ConfineError> {
    Err(ConfineError::Unsupported { support })
}
