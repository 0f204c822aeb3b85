//! What is wrong with a value, and how to mend it.

use std::fmt;

use super::limits::MAX_PROBLEMS;

/// Why a value does not fit a schema. Its text tells a model how to repair its call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    problems: Vec<Problem>,
    /// Whether there are more problems than are told.
    more: bool,
}

/// One thing that is wrong with a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where it is, as a JSON pointer; empty for the whole value.
    pub pointer: String,
    /// The same place as it is written in programs: `filters[2].name`.
    pub path: String,
    /// What is wrong there.
    pub wrong: String,
    /// How to mend it, where that can be told.
    pub fix: Option<String>,
}

impl Mismatch {
    /// The first of these problems; there is always at least one.
    pub(super) fn new(mut problems: Vec<Problem>) -> Self {
        let mut seen: Vec<Problem> = Vec::new();
        problems.retain(|problem| {
            let is_new = !seen.contains(problem);
            if is_new && seen.len() <= MAX_PROBLEMS {
                seen.push(problem.clone());
            }
            is_new
        });
        let more = problems.len() > MAX_PROBLEMS;
        problems.truncate(MAX_PROBLEMS);
        if problems.is_empty() {
            problems.push(Problem::of_whole("does not fit its schema"));
        }
        Self { problems, more }
    }

    /// A mismatch that is about the whole value.
    pub(crate) fn of_whole(wrong: impl Into<String>) -> Self {
        Self::new(vec![Problem::of_whole(wrong)])
    }

    /// What is wrong, in the order of the schema. Never empty, and never long.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Whether there are more problems than [`Mismatch::problems`] tells.
    pub fn has_more(&self) -> bool {
        self.more
    }
}

impl Problem {
    fn of_whole(wrong: impl Into<String>) -> Self {
        Self {
            pointer: String::new(),
            path: String::new(),
            wrong: wrong.into(),
            fix: None,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            formatter.write_str("the value")?;
        } else {
            write!(formatter, "`{}`", self.path)?;
        }
        write!(formatter, " {}", self.wrong)?;
        match &self.fix {
            Some(fix) => write!(formatter, "; {fix}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.problems.as_slice() {
            [only] if !self.more => return only.fmt(formatter),
            _ => {}
        }
        for (index, problem) in self.problems.iter().enumerate() {
            let break_before = if index == 0 { "" } else { "\n" };
            write!(formatter, "{break_before}- {problem}")?;
        }
        if self.more {
            formatter.write_str("\n- and more")?;
        }
        Ok(())
    }
}

impl std::error::Error for Mismatch {}
