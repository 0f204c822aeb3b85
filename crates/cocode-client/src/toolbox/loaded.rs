//! The tools that a model has found, in the order in which it found them: what is added comes last,
//! so that what stands before stays the same.

use cocode_core::QualifiedName;

/// Tools that were found.
#[derive(Clone, Debug, Default)]
pub(super) struct Loaded {
    tools: Vec<(QualifiedName, u64)>,
    /// Counts what is used.
    clock: u64,
}

impl Loaded {
    /// Adds a tool, unless it is there. Of more than `most`, the least recently used leave.
    pub(super) fn load(&mut self, name: &QualifiedName, most: usize) {
        if self.touch(name) {
            return;
        }
        while self.tools.len() >= most.max(1) {
            let oldest = self.tools.iter().enumerate();
            let oldest = oldest.min_by_key(|(_, (_, used))| *used);
            let Some((place, _)) = oldest else { break };
            self.tools.remove(place);
        }
        self.tools.push((name.clone(), self.clock));
    }

    /// Takes note that a tool is used, and says whether it is here.
    pub(super) fn touch(&mut self, name: &QualifiedName) -> bool {
        self.clock += 1;
        let mut tools = self.tools.iter_mut();
        match tools.find(|(tool, _)| tool == name) {
            Some((_, used)) => {
                *used = self.clock;
                true
            }
            None => false,
        }
    }

    /// Forgets tools.
    pub(super) fn retain(&mut self, stays: impl Fn(&QualifiedName) -> bool) {
        self.tools.retain(|(tool, _)| stays(tool));
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &QualifiedName> {
        self.tools.iter().map(|(tool, _)| tool)
    }

    pub(super) fn contains(&self, name: &QualifiedName) -> bool {
        self.names().any(|tool| tool == name)
    }
}
