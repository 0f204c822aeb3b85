//! What a soak found, line by line, and what must not have been found.

use std::collections::BTreeMap;
use std::fmt::Display;

use crate::Failure;
use crate::report::say;

/// What was found so far.
#[derive(Debug, Default)]
pub(crate) struct Found {
    lines: Vec<String>,
    violations: Vec<String>,
}

impl Found {
    pub(crate) fn line(&mut self, line: String) {
        self.lines.push(line);
    }

    /// Something that must not be.
    pub(crate) fn violate(&mut self, text: String) {
        self.violations.push(text);
    }

    pub(crate) fn violations(&mut self, texts: impl IntoIterator<Item = String>) {
        self.violations.extend(texts);
    }

    /// Whether all is as it must be.
    pub(crate) fn holds(&self) -> bool {
        self.violations.is_empty()
    }

    /// Prints everything. Whether all is as it must be.
    pub(crate) fn print(&self) -> bool {
        for line in &self.lines {
            say(line);
        }
        for violation in &self.violations {
            say(&format!("VIOLATION: {violation}"));
        }
        let holds = self.holds();
        say(if holds {
            "soak: everything holds"
        } else {
            "soak: FAILED"
        });
        holds
    }
}

/// Carries a soak out, and prints what it found.
pub(crate) fn print_of<F>(soak: F) -> Result<bool, Failure>
where
    F: Future<Output = Result<Found, Failure>> + Send + 'static,
{
    super::raise_descriptor_limit()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let task = runtime.spawn(soak);
    let found = runtime.block_on(task)??;
    Ok(found.print())
}

/// How often each was counted.
pub(crate) fn shown<N: Display>(counts: &BTreeMap<N, u64>) -> String {
    if counts.is_empty() {
        return "none".into();
    }
    let each = counts.iter().map(|(name, count)| format!("{name} {count}"));
    each.collect::<Vec<_>>().join(", ")
}
