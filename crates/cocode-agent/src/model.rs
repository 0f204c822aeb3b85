//! What is known of a model, and what its use takes.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

/// A model as the loop knows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// The name that the provider knows it by; empty where the provider chooses.
    pub name: String,
    /// Tokens that it sees at once.
    pub context_window: u64,
    /// Tokens that it writes at once.
    pub max_output_tokens: Option<u64>,
    /// Whether it sees images.
    pub vision: bool,
    /// Whether it calls tools.
    pub tools: bool,
    /// What it costs, if that is known.
    pub price: Option<Price>,
}

/// US dollars for a million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Price {
    /// That it reads.
    pub input: f64,
    /// That it writes.
    pub output: f64,
    /// That it reads from a cache; as `input`, if not given.
    pub cache_read: Option<f64>,
    /// That it reads and puts into a cache; as `input`, if not given.
    pub cache_write: Option<f64>,
}

/// Tokens that were used. The four kinds do not overlap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Read, and in no cache.
    pub input: u64,
    /// Written, thoughts included.
    pub output: u64,
    /// Read from a cache.
    #[serde(default)]
    pub cache_read: u64,
    /// Read, and put into a cache.
    #[serde(default)]
    pub cache_write: u64,
}

impl Usage {
    /// All that was read.
    pub fn read(&self) -> u64 {
        self.input
            .saturating_add(self.cache_read)
            .saturating_add(self.cache_write)
    }

    /// What was used since it was `before`.
    #[must_use]
    pub fn since(&self, before: Self) -> Self {
        Self {
            input: self.input.saturating_sub(before.input),
            output: self.output.saturating_sub(before.output),
            cache_read: self.cache_read.saturating_sub(before.cache_read),
            cache_write: self.cache_write.saturating_sub(before.cache_write),
        }
    }

    /// All that was read and written.
    pub fn total(&self) -> u64 {
        self.read().saturating_add(self.output)
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        let Self {
            input,
            output,
            cache_read,
            cache_write,
        } = other;
        self.input = self.input.saturating_add(input);
        self.output = self.output.saturating_add(output);
        self.cache_read = self.cache_read.saturating_add(cache_read);
        self.cache_write = self.cache_write.saturating_add(cache_write);
    }
}

impl Price {
    /// What so much use costs, in US dollars.
    pub fn of(&self, usage: &Usage) -> f64 {
        #[expect(
            clippy::cast_precision_loss,
            reason = "tokens are far fewer than what a float counts exactly"
        )]
        let millions = |tokens: u64| tokens as f64 / 1e6;
        millions(usage.input) * self.input
            + millions(usage.output) * self.output
            + millions(usage.cache_read) * self.cache_read.unwrap_or(self.input)
            + millions(usage.cache_write) * self.cache_write.unwrap_or(self.input)
    }
}
