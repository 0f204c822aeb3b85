//! What the conversation takes: heard as it happens, told when somebody asks.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use cocode_agent::{Listener, Notice, Usage};
use cocode_terminal::{CommandOutcome, Line, Style};

use super::talk::locked;

/// Turns that are told one by one.
const MAX_TURNS: usize = 10;

/// What was taken so far.
#[derive(Debug, Default)]
pub(super) struct Spent(Mutex<Now>);

/// How things are.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Now {
    pub(super) model: Option<String>,
    /// Tokens of the conversation as the model saw it last, and of its window.
    pub(super) context: Option<(u64, u64)>,
    pub(super) usage: Usage,
    pub(super) cost: f64,
    /// The last turns, each with what it took and cost.
    turns: VecDeque<(Usage, f64)>,
    n_turns: usize,
}

impl Spent {
    pub(super) fn now(&self) -> Now {
        locked(&self.0).clone()
    }

    /// Another conversation, or another beginning of one, which has taken so much.
    pub(super) fn begin(&self, usage: Usage, cost: f64) {
        let mut now = locked(&self.0);
        *now = Now {
            model: now.model.take(),
            usage,
            cost,
            ..Now::default()
        };
    }

    /// Which model it is.
    pub(super) fn set_model(&self, name: &str) {
        if !name.is_empty() {
            locked(&self.0).model = Some(name.to_owned());
        }
    }

    pub(super) fn end_turn(&self, usage: Usage, cost: f64) {
        let mut now = locked(&self.0);
        now.n_turns += 1;
        if now.turns.len() == MAX_TURNS {
            now.turns.pop_front();
        }
        now.turns.push_back((usage, cost));
    }

    fn hear(&self, notice: &Notice) {
        match notice {
            Notice::Asking { model, .. } => self.set_model(model),
            Notice::Replied {
                usage,
                cost,
                context,
                ..
            } => {
                let mut now = locked(&self.0);
                now.usage += *usage;
                now.cost += cost.unwrap_or_default();
                now.context = Some(*context);
            }
            Notice::Compacted { after, .. } => {
                let mut now = locked(&self.0);
                now.context = now.context.map(|(_, window)| (*after, window));
            }
            _ => {}
        }
    }

    /// `/cost`.
    pub(super) fn told(&self) -> CommandOutcome {
        let Now {
            model,
            context,
            usage,
            cost,
            turns,
            n_turns,
        } = self.now();
        let mut lines = vec![
            fact(
                "model",
                &model.unwrap_or_else(|| "not known yet".to_owned()),
            ),
            fact("read", &read(&usage)),
            fact("written", &format!("{} tokens", grouped(usage.output))),
            fact("cost", &in_dollars(cost)),
        ];
        if let Some((tokens, window)) = context.filter(|(_, window)| *window > 0) {
            let percent = tokens.saturating_mul(100) / window;
            let (tokens, window) = (grouped(tokens), grouped(window));
            let text = format!("{tokens} of {window} tokens, {percent}%");
            lines.push(fact("context", &text));
        }
        let first = n_turns - turns.len();
        for (place, (usage, cost)) in turns.iter().enumerate() {
            let label = format!("turn {}", first + place + 1);
            let (read, written) = (grouped(usage.read()), grouped(usage.output));
            let cost = in_dollars(*cost);
            lines.push(fact(
                &label,
                &format!("{read} read, {written} written, {cost}"),
            ));
        }
        CommandOutcome::Said(lines)
    }
}

fn fact(label: &str, text: &str) -> Line {
    Line::new(&format!("{label:<9}"), Style::PLAIN.dim()).with(text, Style::PLAIN)
}

fn read(usage: &Usage) -> String {
    let all = grouped(usage.read());
    let cached = [
        (usage.cache_read, "from the cache"),
        (usage.cache_write, "put into the cache"),
    ];
    let cached: Vec<String> = cached
        .iter()
        .filter(|(tokens, _)| *tokens > 0)
        .map(|(tokens, what)| format!("{} {what}", grouped(*tokens)))
        .collect();
    if cached.is_empty() {
        return format!("{all} tokens");
    }
    format!("{all} tokens, of them {}", cached.join(" and "))
}

fn in_dollars(cost: f64) -> String {
    if cost > 0.0 {
        format!("${cost:.4}")
    } else {
        "no price known".to_owned()
    }
}

/// A number with its digits in groups of three.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Hears what a turn takes, and passes everything on.
pub(super) struct Hearing {
    listener: Arc<dyn Listener>,
    spent: Arc<Spent>,
}

impl Hearing {
    pub(super) fn new(listener: Arc<dyn Listener>, spent: Arc<Spent>) -> Self {
        Self { listener, spent }
    }
}

impl Listener for Hearing {
    fn hear(&self, notice: &Notice) {
        self.spent.hear(notice);
        self.listener.hear(notice);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(spent: &Spent) -> Vec<String> {
        match spent.told() {
            CommandOutcome::Said(lines) => lines.iter().map(Line::text).collect(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_was_taken_is_told_by_kind_and_by_turn() {
        let spent = Spent::default();
        let usage = Usage {
            input: 1_000,
            output: 50,
            cache_read: 20_000,
            cache_write: 0,
        };
        spent.hear(&Notice::Asking {
            step: 1,
            model: "m".to_owned(),
        });
        spent.hear(&Notice::Replied {
            content: Vec::new(),
            usage,
            cost: Some(0.25),
            context: (21_050, 100_000),
        });
        spent.end_turn(usage, 0.25);
        let expected = [
            "model    m",
            "read     21,000 tokens, of them 20,000 from the cache",
            "written  50 tokens",
            "cost     $0.2500",
            "context  21,050 of 100,000 tokens, 21%",
            "turn 1   21,000 read, 50 written, $0.2500",
        ];
        assert_eq!(lines(&spent), expected);
        spent.begin(Usage::default(), 0.0);
        assert_eq!(lines(&spent).get(1).unwrap(), "read     0 tokens");
    }

    #[test]
    fn only_the_last_turns_are_told_with_their_numbers() {
        let spent = Spent::default();
        for _ in 0..MAX_TURNS + 2 {
            spent.end_turn(Usage::default(), 0.0);
        }
        let told = lines(&spent);
        assert!(
            told.iter().any(|line| line.starts_with("turn 12")),
            "{told:?}"
        );
        assert!(
            !told.iter().any(|line| line.starts_with("turn 2 ")),
            "{told:?}"
        );
    }

    #[test]
    fn digits_are_in_groups() {
        for (number, expected) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(grouped(number), expected);
        }
    }
}
