//! Which rule a message triggers, and how often each has been.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::message::Message;
use crate::script::{Rule, Script, Trigger};

/// The rules of a script with their counts.
#[derive(Debug)]
pub(crate) struct RuleSet {
    rules: Vec<(Rule, AtomicU32)>,
}

impl RuleSet {
    pub(crate) fn new(script: &Script) -> Self {
        Self {
            rules: script
                .rules
                .iter()
                .map(|rule| (rule.clone(), AtomicU32::new(0)))
                .collect(),
        }
    }

    /// The first rule that fits, and how often it has been triggered, this time included.
    pub(crate) fn pick(&self, message: &Message) -> Option<(&Rule, u32)> {
        self.pick_where(message.run, |trigger| trigger.matches(message))
    }

    /// As [`Self::pick`], for a message that came with an HTTP request.
    pub(crate) fn pick_http(&self, verb: &str, message: &Message) -> Option<(&Rule, u32)> {
        self.pick_where(message.run, |trigger| match trigger {
            Trigger::Verb(wanted) => wanted == verb,
            Trigger::Method(_) => trigger.matches(message),
            Trigger::Start => false,
        })
    }

    /// All rules for the start of this run.
    pub(crate) fn at_start(&self, run: u32) -> impl Iterator<Item = &Rule> {
        self.rules
            .iter()
            .map(|(rule, _)| rule)
            .filter(move |rule| rule.on == Trigger::Start && rule.run.is_none_or(|own| own == run))
    }

    fn pick_where(&self, run: u32, fits: impl Fn(&Trigger) -> bool) -> Option<(&Rule, u32)> {
        let mut picked = None;
        for (rule, count) in &self.rules {
            if !fits(&rule.on) || rule.run.is_some_and(|own| own != run) {
                continue;
            }
            // Counted even when an earlier rule wins: `nth` is about messages, not about wins.
            let count = count.fetch_add(1, Ordering::SeqCst) + 1;
            if picked.is_none() && rule.nth.is_none_or(|nth| nth == count) {
                picked = Some((rule, count));
            }
        }
        picked
    }
}
