//! Notices a model that does the same again and again.

use std::collections::VecDeque;

use crate::content::{Block, ToolCall, ToolResult};

/// So often in a row the same calls with the same results bring a warning.
const WARNED_AFTER: u32 = 3;
/// So often in a row they end the turn.
const ENDED_AFTER: u32 = 6;
/// A loop may be of so many steps.
const MAX_PERIOD: usize = 3;

/// What a model is told that seems to loop.
pub(crate) const WARNING: &str = "Note: you have made the same calls with the same results several \
    times in a row. Doing so again will not help: do something else, or say what is in the way.";

/// What a step was: its calls and their results, by a hash.
#[derive(Debug, Default)]
pub(crate) struct Loops {
    steps: VecDeque<u64>,
}

/// What is to be done about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    Nothing,
    Warn,
    End,
}

impl Loops {
    /// Takes note of a step.
    pub(crate) fn step(&mut self, calls: &[ToolCall], results: &[ToolResult]) -> Seen {
        let most = MAX_PERIOD * ENDED_AFTER as usize;
        self.steps.push_back(print(calls, results));
        while self.steps.len() > most {
            self.steps.pop_front();
        }
        let worst = (1..=MAX_PERIOD).map(|period| self.repeated(period)).max();
        match worst.unwrap_or_default() {
            times if times >= ENDED_AFTER => Seen::End,
            times if times >= WARNED_AFTER => Seen::Warn,
            _ => Seen::Nothing,
        }
    }

    /// How often the last `period` steps were done in a row.
    fn repeated(&self, period: usize) -> u32 {
        let steps: Vec<u64> = self.steps.iter().rev().copied().collect();
        let mut windows = steps.chunks_exact(period);
        let Some(first) = windows.next() else {
            return 0;
        };
        let again = windows.take_while(|window| *window == first).count();
        u32::try_from(again).unwrap_or(u32::MAX).saturating_add(1)
    }
}

fn print(calls: &[ToolCall], results: &[ToolResult]) -> u64 {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    let mut hasher = DefaultHasher::new();
    for call in calls {
        call.name.hash(&mut hasher);
        call.arguments.to_text().hash(&mut hasher);
    }
    for result in results {
        result.is_error.hash(&mut hasher);
        for block in &result.content {
            match block {
                Block::Text { text } => text.hash(&mut hasher),
                Block::Image { data, .. } => data.hash(&mut hasher),
                _ => {}
            }
        }
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Loops, Seen};
    use crate::content::{Arguments, Block, ToolCall, ToolResult};

    fn step(loops: &mut Loops, argument: u32, result: &str) -> Seen {
        let call = ToolCall {
            id: "any".to_owned(),
            name: "read".to_owned(),
            arguments: Arguments::Json(json!({ "n": argument })),
        };
        let result = ToolResult {
            id: "any".to_owned(),
            content: vec![Block::text(result)],
            is_error: false,
        };
        loops.step(&[call], &[result])
    }

    #[test]
    fn the_same_again_is_warned_about_and_then_ended() {
        let mut loops = Loops::default();
        let seen: Vec<_> = (0..6).map(|_| step(&mut loops, 1, "same")).collect();
        let (nothing, warn) = (Seen::Nothing, Seen::Warn);
        assert_eq!(seen, [nothing, nothing, warn, warn, warn, Seen::End]);
    }

    #[test]
    fn going_round_in_circles_is_noticed() {
        let mut loops = Loops::default();
        let seen: Vec<_> = (0..18).map(|n| step(&mut loops, n % 3, "same")).collect();
        assert_eq!(seen.last(), Some(&Seen::End));
        assert_eq!(seen[7], Seen::Nothing);
        assert_eq!(seen[8], Seen::Warn);
    }

    #[test]
    fn results_that_change_are_no_loop() {
        let mut loops = Loops::default();
        for n in 0..50 {
            assert_eq!(step(&mut loops, 1, &n.to_string()), Seen::Nothing);
        }
    }
}
