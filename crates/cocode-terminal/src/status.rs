//! The status line, and the line that says what goes on.

use std::time::Duration;

use crate::style::{Color, Line, Style};
use crate::text::{shortened, width};

/// One picture of the spinner for each tick.
const SPINNER: &[&str] = &["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
/// How long each is shown.
pub(crate) const TICK: Duration = Duration::from_millis(100);

/// From here on, how full the window of the model is stands out.
const CONTEXT_WARNING_PERCENT: u64 = 80;

const BETWEEN: &str = " · ";

/// What the status line says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StatusFacts {
    /// Which model.
    pub model: String,
    /// Tokens of the conversation as the model saw it last, and of its window.
    pub context: Option<(u64, u64)>,
    /// What the conversation cost so far, in US dollars, if known.
    pub cost: Option<f64>,
    /// What tools may touch.
    pub sandbox: String,
    /// When a person is asked.
    pub approval: String,
    /// How the servers are.
    pub servers: ServerCounts,
}

/// How many servers are how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerCounts {
    /// Can be used.
    pub ready: usize,
    /// Are on their way.
    pub starting: usize,
    /// Wait for somebody to sign in.
    pub need_login: usize,
    /// Cannot be used.
    pub failed: usize,
}

impl StatusFacts {
    /// The status line. What does not fit is left out, the last first.
    pub(crate) fn line(&self, columns: usize) -> Line {
        let dim = Style::PLAIN.dim();
        let mut line = Line::default();
        for (text, style) in self.parts() {
            let before = if line.is_empty() { "" } else { BETWEEN };
            let room = columns.saturating_sub(line.width() + width(before));
            if line.is_empty() {
                line = Line::new(&shortened(&text, room), style);
            } else if width(&text) <= room {
                line = line.with(before, dim).with(&text, style);
            }
        }
        line
    }

    fn parts(&self) -> Vec<(String, Style)> {
        let Self {
            model,
            context,
            cost,
            sandbox,
            approval,
            servers,
        } = self;
        let dim = Style::PLAIN.dim();
        let mut parts = Vec::new();
        if !model.is_empty() {
            parts.push((model.clone(), dim));
        }
        if let Some((tokens, window)) = context
            && *window > 0
        {
            let percent = tokens.saturating_mul(100) / window;
            let style = if percent >= CONTEXT_WARNING_PERCENT {
                Style::PLAIN.color(Color::Yellow)
            } else {
                dim
            };
            parts.push((format!("context {percent}%"), style));
        }
        if let Some(cost) = cost {
            parts.push((format!("${cost:.2}"), dim));
        }
        parts.extend(servers.part());
        for text in [sandbox, approval] {
            if !text.is_empty() {
                parts.push((text.clone(), dim));
            }
        }
        parts
    }
}

impl ServerCounts {
    fn part(self) -> Option<(String, Style)> {
        let Self {
            ready,
            starting,
            need_login,
            failed,
        } = self;
        let counts = [
            (ready, "ready"),
            (starting, "starting"),
            (need_login, "need login"),
            (failed, "failed"),
        ];
        let said: Vec<String> = counts
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        let style = if failed > 0 {
            Style::PLAIN.color(Color::Red)
        } else if need_login > 0 {
            Style::PLAIN.color(Color::Yellow)
        } else {
            Style::PLAIN.dim()
        };
        (!said.is_empty()).then(|| (format!("servers: {}", said.join(", ")), style))
    }
}

/// The line that says what goes on, for how long, and how to end it.
pub(crate) fn working(what: &str, elapsed: Duration, hint: &str, columns: usize) -> Line {
    let tick = elapsed.as_millis() / TICK.as_millis();
    let place = usize::try_from(tick).unwrap_or_default() % SPINNER.len();
    let picture = SPINNER.get(place).copied().unwrap_or_default();
    let rest = format!(" {}{BETWEEN}{hint}", in_words(elapsed));
    let what = shortened(what, columns.saturating_sub(width(&rest) + 2));
    Line::new(picture, Style::PLAIN.color(Color::Magenta))
        .with(" ", Style::PLAIN)
        .with(&what, Style::PLAIN.bold())
        .with(&rest, Style::PLAIN.dim())
}

/// A time in whole seconds, or in tenths where it is short.
pub(crate) fn in_words(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m {:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h {:02}m", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> StatusFacts {
        StatusFacts {
            model: "model-x".to_owned(),
            context: Some((51_000, 200_000)),
            cost: Some(0.1234),
            sandbox: "workspace-write".to_owned(),
            approval: "on-request".to_owned(),
            servers: ServerCounts {
                ready: 3,
                failed: 1,
                ..ServerCounts::default()
            },
        }
    }

    #[test]
    fn the_status_line_says_what_is_known() {
        let line = facts().line(100).text();
        let expected = "model-x · context 25% · $0.12 · servers: 3 ready, 1 failed · workspace-write · on-request";
        assert_eq!(line, expected);
        assert_eq!(StatusFacts::default().line(80).text(), "");
    }

    #[test]
    fn what_does_not_fit_is_left_out() {
        assert_eq!(facts().line(24).text(), "model-x · context 25%");
        assert_eq!(facts().line(4).text(), "mod…");
    }

    #[test]
    fn times_are_in_words() {
        for (seconds, expected) in [(0, "0s"), (59, "59s"), (61, "1m 01s"), (7260, "2h 01m")] {
            assert_eq!(in_words(Duration::from_secs(seconds)), expected);
        }
        let line = working(
            "thinking",
            Duration::from_millis(1250),
            "Ctrl-C interrupts",
            80,
        );
        assert_eq!(line.text(), "⠹ thinking 1s · Ctrl-C interrupts");
    }
}
