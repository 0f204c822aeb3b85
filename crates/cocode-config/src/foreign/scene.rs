//! What is read or written: which tool, which of its files.

use super::Tool;
use super::places::Place;
use crate::problem::Origin;

/// A tool and one of its files.
#[derive(Debug)]
pub(super) struct Scene<'a> {
    pub(super) tool: Tool,
    pub(super) place: &'a Place,
}

impl Scene<'_> {
    /// The file.
    pub(super) fn origin(&self) -> Origin {
        Origin::file(self.place.path.as_path())
    }
}
